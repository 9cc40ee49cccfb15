// SPDX-License-Identifier: Apache-2.0
#include "core/text/nearest_name.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/text/ascii.hpp"

namespace compute {
namespace {

constexpr size_t kMaxLength = 64;  // longer names are not compared; keeps the table small

// Optimal string alignment: Levenshtein's distance, a swap of neighbours counting as one.
size_t edit_distance(std::string_view x, std::string_view y) {
  std::vector<size_t> before(y.size() + 1), last(y.size() + 1), row(y.size() + 1);
  for (size_t j = 0; j <= y.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= x.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= y.size(); ++j) {
      const size_t changed = to_lower(x[i - 1]) == to_lower(y[j - 1]) ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + changed});
      if (i > 1 && j > 1 && to_lower(x[i - 1]) == to_lower(y[j - 2]) && to_lower(x[i - 2]) == to_lower(y[j - 1])) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[y.size()];
}

bool has_same_letters(std::string_view x, std::string_view y) {
  return std::is_permutation(x.begin(), x.end(), y.begin(), y.end(),
                             [](char a, char b) { return to_lower(a) == to_lower(b); });
}

}  // namespace

std::string nearest_name(std::string_view text, std::span<const std::string> known) {
  return nearest_name(text, known, std::max<size_t>(1, text.size() / 3));
}

std::string nearest_name(std::string_view text, std::span<const std::string> known, size_t most) {
  if (text.empty() || text.size() > kMaxLength) return {};
  size_t best = most + 1;
  bool best_is_swapped = false;
  std::string found;
  for (const std::string& name : known) {
    if (name.size() > kMaxLength) continue;
    const size_t more = std::max(name.size(), text.size()) - std::min(name.size(), text.size());
    if (more > best) continue;
    const size_t distance = edit_distance(text, name);
    // Of two names that are as near, the one with the same letters: letters are swapped more often than left out.
    const bool is_swapped = has_same_letters(text, name);
    if (distance < best || (distance == best && best <= most && is_swapped && !best_is_swapped)) {
      best = distance;
      best_is_swapped = is_swapped;
      found = name;
    }
  }
  return found;
}

std::string did_you_mean(std::string_view text, std::span<const std::string> known) {
  const std::string name = nearest_name(text, known);
  return name.empty() ? std::string() : "; did you mean \"" + name + "\"?";
}

}  // namespace compute
