// SPDX-License-Identifier: Apache-2.0
// How values are combined: by the kernel that reads them, in sums that are trees.
#pragma once

#include <compute/plugin.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "plugins/cpu/kernels/reduce_kernel.hpp"

namespace compute::cpu {

constexpr int64_t kGroupsPerSlot = 8;   // groups of kColumnRows rows that are added up one by one
constexpr int64_t kGroupsPerCall = 64;  // of a kernel, where none are held apart

inline int64_t divide_up(int64_t x, int64_t y) { return (x + y - 1) / y; }
inline int64_t round_up(int64_t x, int64_t unit) { return divide_up(x, unit) * unit; }

// Of an expression with one output.
inline compute_dtype output_dtype(const compute_plugin_expression& expression) {
  return expression.nodes[expression.outputs[0]].dtype;
}

inline bool is_float(compute_dtype dtype) { return dtype >= COMPUTE_DTYPE_FLOAT16; }

// How the innermost loop hands elements over.
struct Source {
  int32_t operand = -1;  // >= 0: that input's own elements; -1: the values of `before`
  int64_t element = 0;   // bytes
  ReduceKernel kernel{};
};

// The kernel that reads an input of `before` itself, if there is one.
Source find_direct(const compute_plugin_expression& before, ReduceKind kind, compute_dtype accumulator);

// Combines values one after the other as the digits of a binary counter carry: each passes through log2 of their
// number.
class Counter {
 public:
  Counter(const ReduceKernel& combine, int64_t size_bytes) : combine_(combine), size_bytes_(size_bytes) {}

  void* next() { return slots_[depth_]; }
  void push() {
    ++depth_;
    for (uint64_t digits = ++count_; (digits & 1) == 0; digits >>= 1) join();
  }
  void finish(void* out) {
    while (depth_ > 1) join();
    std::memcpy(out, slots_[0], static_cast<size_t>(size_bytes_));
  }

 private:
  void join() {
    --depth_;
    combine_.columns(slots_[depth_], 0, 1, 1, slots_[depth_ - 1], true);
  }

  const ReduceKernel& combine_;
  const int64_t size_bytes_;
  int depth_ = 0;
  uint64_t count_ = 0;
  alignas(16) char slots_[66][16];
};

// Combines groups of rows into a segment: kGroupsPerSlot groups one by one into a slot, slots as Counter does.
class ColumnTree {
 public:
  ColumnTree(const ReduceKernel& combine, char* slots, int64_t slot_bytes, int64_t width, int64_t groups_per_slot)
      : combine_(combine), slots_(slots), slot_bytes_(slot_bytes), width_(width), groups_per_slot_(groups_per_slot) {}

  // The most rows that add() takes at once.
  int64_t row_limit() const { return kColumnRows * std::min(groups_per_slot_ - groups_, kGroupsPerCall); }
  void add(const ReduceKernel& kernel, const char* rows, int64_t stride_bytes, int64_t row_count) {
    add(row_count,
        [&](char* dst, bool accumulate) { kernel.columns(rows, stride_bytes, row_count, width_, dst, accumulate); });
  }
  // The same where combine(dst, accumulate) combines the rows.
  template <class Combine>
  void add(int64_t row_count, const Combine& combine) {
    combine(slot(depth_), groups_ > 0);
    groups_ += divide_up(row_count, kColumnRows);
    if (groups_ < groups_per_slot_) return;
    groups_ = 0;
    ++depth_;
    for (uint64_t digits = ++count_; (digits & 1) == 0; digits >>= 1) join();
  }
  // The result.
  char* finish() {
    if (groups_ > 0) ++depth_;
    while (depth_ > 1) join();
    return slots_;
  }

  static int64_t slots_for(int64_t groups, int64_t groups_per_slot) {
    return std::bit_width(static_cast<uint64_t>(groups / groups_per_slot)) + 2;
  }

 private:
  char* slot(int64_t i) { return slots_ + i * slot_bytes_; }
  void join() {
    --depth_;
    combine_.columns(slot(depth_), 0, 1, width_, slot(depth_ - 1), true);
  }

  const ReduceKernel& combine_;
  char* const slots_;
  const int64_t slot_bytes_, width_, groups_per_slot_;
  int64_t depth_ = 0, groups_ = 0;
  uint64_t count_ = 0;
};

}  // namespace compute::cpu
