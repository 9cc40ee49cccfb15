// SPDX-License-Identifier: Apache-2.0
#include "table.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <numeric>

namespace {

constexpr size_t kLeastElastic = 20;
constexpr size_t kGap = 2, kIndent = 4;

bool is_start(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

size_t width_of(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), is_start));
}

}  // namespace

size_t terminal_width() {
  if (const char* text = std::getenv("COLUMNS"); text != nullptr) {
    size_t columns = 0;
    const auto [end, error] = std::from_chars(text, text + std::strlen(text), columns);
    if (error == std::errc() && *end == '\0' && columns > 0) return columns;
  }
  winsize size{};
  return isatty(STDOUT_FILENO) == 1 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

std::string cut(std::string_view text, size_t most) {
  constexpr std::string_view kDots = "...";
  if (width_of(text) <= most) return std::string(text);
  size_t end = 0;
  for (size_t kept = 0; end < text.size(); ++end) {
    if (is_start(text[end]) && kept++ + kDots.size() == most) break;
  }
  // A word that takes nearly all of it is cut all the same.
  const size_t blank = text.rfind(' ', end);
  if (blank != std::string_view::npos && blank >= end / 4) end = blank;
  return std::string(text.substr(0, end)) + std::string(kDots);
}

Table::Table(std::initializer_list<std::pair<const char*, Column>> columns) {
  std::vector<std::string> titles;
  for (const auto& [title, column] : columns) {
    columns_.push_back(column);
    titles.emplace_back(title);
  }
  if (std::any_of(titles.begin(), titles.end(), [](const std::string& title) { return !title.empty(); }))
    add(std::move(titles));
}

std::string Table::text(size_t width) const {
  const size_t count = columns_.size();
  std::vector<size_t> widths(count, 0);
  for (const Row& row : rows_) {
    for (size_t i = 0; i < count; ++i) widths[i] = std::max(widths[i], width_of(row.cells[i]));
  }
  std::vector<bool> begins_line(count, false);
  if (width > 0) {
    for (size_t i = 0; i < count; ++i) {
      const size_t whole = std::accumulate(widths.begin(), widths.end(), kGap * (count - 1));
      if (whole > width && columns_[i] == Column::kElastic)
        widths[i] = std::min(widths[i], std::max(kLeastElastic, widths[i] - std::min(widths[i], whole - width)));
      widths[i] = std::min(widths[i], std::max(kLeastElastic, width - std::min(width, kIndent)));
    }
    size_t at = widths[0];
    for (size_t i = 1; i < count; ++i) {
      begins_line[i] = at + kGap + widths[i] > width;
      at = (begins_line[i] ? kIndent : at + kGap) + widths[i];
    }
  }
  std::string text;
  for (const Row& row : rows_) {
    for (size_t i = 0; i < count; ++i) {
      const std::string cell = cut(row.cells[i], widths[i]);
      const std::string blanks(widths[i] - width_of(cell), ' ');
      if (begins_line[i]) {
        text.erase(text.find_last_not_of(' ') + 1);
        text += "\n" + std::string(kIndent, ' ');
      } else if (i > 0) {
        text += std::string(kGap, ' ');
      }
      text += columns_[i] == Column::kNumber ? blanks + cell : cell + blanks;
    }
    text.erase(text.find_last_not_of(' ') + 1);
    text += "\n" + row.below;
  }
  return text;
}
