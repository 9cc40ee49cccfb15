// SPDX-License-Identifier: Apache-2.0
// Tables that fit the terminal.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// The width of the terminal on stdout, or COLUMNS if set; 0 if there is no limit.
size_t terminal_width();

// `text`, cut to at most `most` characters at the end of a word.
std::string cut(std::string_view text, size_t most);

// Each column is as wide as its widest cell. Where that is too wide for the terminal, elastic columns are cut, and the
// columns that are still too many continue on a line below, in each row and in the titles.
class Table {
 public:
  enum class Column { kText, kNumber, kElastic };
  Table(std::initializer_list<std::pair<const char*, Column>> columns);

  // One cell for each column, and whole lines that follow the row.
  void add(std::vector<std::string> cells, std::string below = "") {
    rows_.push_back({std::move(cells), std::move(below)});
  }
  std::string text() const { return text(terminal_width()); }
  std::string text(size_t width) const;

 private:
  struct Row {
    std::vector<std::string> cells;
    std::string below;
  };
  std::vector<Column> columns_;
  std::vector<Row> rows_;  // the titles first, if there are any
};
