// SPDX-License-Identifier: Apache-2.0
// Lines of elements along an axis or across it, block by block as contiguous values of another dtype.
#pragma once

#include <cstring>

#include "plugins/cpu/isa/isa.hpp"
#include "plugins/cpu/map/block_program.hpp"

namespace compute::cpu {

constexpr int64_t kLineBlock = 512;        // elements
constexpr int64_t kLineElementBytes = 16;  // at most

// Elements of a tensor as values of `value_dtype`.
class LineAccess {
 public:
  LineAccess() = default;
  LineAccess(compute_dtype dtype, compute_dtype value_dtype)
      : size_(common::dtype_size(dtype)), log_size_(log_of(size_)) {
    if (dtype == value_dtype) return;
    load_ = isa().blocks->converts[dtype][value_dtype];
    store_ = isa().blocks->converts[value_dtype][dtype];
  }

  int64_t size() const { return size_; }
  bool is_direct() const { return load_ == nullptr; }  // the dtypes are equal

  // Up to kLineBlock elements, `stride` bytes apart: in place, or in `buffer` of two blocks.
  const char* load(const char* from, int64_t stride, int64_t n, char* buffer) const {
    if (stride != size_ && n > 1) {
      char* packed = load_ == nullptr ? buffer : buffer + kLineBlock * kLineElementBytes;
      if (size_ == 16) {
        for (int64_t i = 0; i < n; ++i) std::memcpy(packed + i * 16, from + i * stride, 16);
      } else {
        isa().blocks->gather[log_size_](from, stride, packed, n);
      }
      from = packed;
    }
    if (load_ == nullptr) return from;
    const void* operand = from;
    const int64_t step = 1;
    load_(&operand, &step, buffer, n);
    return buffer;
  }

  // Where `store` finds the values: the tensor's own memory if nothing is left to do.
  char* place(char* to, int64_t stride, char* buffer) const {
    return load_ == nullptr && stride == size_ ? to : buffer;
  }
  // Values from `from`, which place() returned for them; `scratch` has room for a block.
  void store(const char* from, char* to, int64_t stride, int64_t n, char* scratch) const {
    if (from == to) return;
    if (store_ != nullptr) {
      char* made = stride == size_ ? to : scratch;
      const void* operand = from;
      const int64_t step = 1;
      store_(&operand, &step, made, n);
      if (made == to) return;
      from = made;
    }
    switch (size_) {
      case 1:
        return spread<uint8_t>(from, to, stride, n);
      case 2:
        return spread<uint16_t>(from, to, stride, n);
      case 4:
        return spread<uint32_t>(from, to, stride, n);
      case 8:
        return spread<uint64_t>(from, to, stride, n);
      default:
        for (int64_t i = 0; i < n; ++i) std::memcpy(to + i * stride, from + i * 16, 16);
    }
  }

 private:
  static int log_of(int64_t size) { return std::countr_zero(static_cast<uint64_t>(size)); }

  template <class T>
  static void spread(const char* from, char* to, int64_t stride, int64_t n) {
    for (int64_t i = 0; i < n; ++i) std::memcpy(to + i * stride, from + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  }

  int64_t size_ = 0;
  int log_size_ = 0;
  BlockFunction load_ = nullptr, store_ = nullptr;  // NULL: the dtypes are equal
};

// Room for the blocks of one line.
struct LineBuffers {
  alignas(64) char load[2 * kLineBlock * kLineElementBytes];
  alignas(64) char store[2 * kLineBlock * kLineElementBytes];
};

}  // namespace compute::cpu
