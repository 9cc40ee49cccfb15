// SPDX-License-Identifier: Apache-2.0
// The forms of contraction for a few rows or columns, where both operands lie along the depth, so that it takes as long
// as reading the matrix.
#pragma once

#include <array>
#include <string>

#include "plugins/common/source/builder/kernel_builder.hpp"

namespace compute::common {

/// Bytes that are loaded at once.
inline constexpr int kWordBytes = 16;

/// Whether the lines of a matrix along an axis consist of words.
bool lies_in_words(const compute_plugin_tensor& tensor, int32_t along, int64_t size);

/// `side` is the operand with many rows or columns, the matrix; these are its lines.
struct FewLines {
  enum class How : uint8_t {
    kWords,       // words of both sides go from memory to registers
    kStagedRows,  // those of the few rows through local memory
    kStaged,      // those of the matrix too
    kUnits        // matrix units multiply
  };

  int side = -1;
  How how = How::kWords;
  int few = 0;      // rows or columns
  int lines = 0;    // of the matrix per work item; with units, per group
  int steps = 0;    // words of each that are loaded before the first is used
  int along = 0;    // work items along the depth
  int stages = 0;   // of local memory
  int at_once = 0;  // groups of a multiprocessor, which fill its registers

  bool is_taken() const { return side >= 0; }
  bool is_of_words() const { return how == How::kWords; }
  /// Terms of a step, of elements of `size` bytes.
  int pace(int32_t size) const;
  /// Of local memory for a step.
  int64_t stage_bytes(int64_t group_size) const;
  int64_t groups(int64_t many, int64_t group_size) const;

  /// Rows (side 0) or columns (1) of a group, and the sums of a work item.
  int of_group(int of_side, int group_size) const { return of_side == side ? group_size / along * lines : few; }
  int of_item(int of_side) const;
  /// The text of the row or column of an item's sum i, j.
  std::string place(int of_side) const;
};

FewLines choose_few_lines(const Op& op, const Dialect& dialect);

/// Statements that declare what `place` uses and compute the item's sums, as `sum[i][j]`, from zero.
struct FewLinesText {
  FewLines form;
  compute_dtype dtype = COMPUTE_DTYPE_FLOAT32;
  bool has_end = false;                     // the last step has fewer terms
  std::array<std::string, 2> line_strides;  // of the left and the right side
  std::string left, right;                  // left[s][i].e[e] and right[s][j].e[e] as values
  std::string value;                        // their type
};
std::string few_lines_text(const FewLinesText& given, KernelBuilder& builder);

}  // namespace compute::common
