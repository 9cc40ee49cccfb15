// SPDX-License-Identifier: Apache-2.0
// Tables as text.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <vector>

namespace compute {

// Each column is as wide as its widest cell, so that no cell runs into the next one.
class TextTable {
 public:
  struct Column {
    const char* title;
    bool is_number = false;  // aligned to the right
  };
  TextTable(std::initializer_list<Column> columns) : columns_(columns) {}

  // One cell for each column.
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  // The titles and the rows, a line each.
  std::string text() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// At most `most` characters of one line of text; where some are left out it ends in "...".
std::string shortened(const std::string& text, size_t most);

}  // namespace compute
