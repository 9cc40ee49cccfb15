// SPDX-License-Identifier: Apache-2.0
// A host array of any dtype with any strides: what inputs are made in and results are read back into.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "dtype.hpp"

namespace compute::oracle {

using Shape = std::vector<int64_t>;

int64_t element_count(const Shape& shape);
/// Strides in elements of a row-major array, also of an empty one.
Shape row_major_strides(const Shape& shape);
/// The common shape of two; throws std::invalid_argument where they do not broadcast.
Shape broadcast(const Shape& a, const Shape& b);

/// Copies share their storage, as views do.
class Array {
 public:
  Array() = default;
  /// A zero-filled row-major array.
  Array(Dtype dtype, Shape shape);

  Dtype dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  const Shape& strides() const { return strides_; }
  int rank() const { return static_cast<int>(shape_.size()); }
  int64_t size() const { return size_; }
  bool row_major() const { return row_major_; }

  /// The element at a row-major position in [0, size()).
  Value at(int64_t position) const;
  void set(int64_t position, const Value& value);
  /// All elements, row-major.
  std::vector<Value> values() const;
  /// The first byte of the element at `position`.
  const std::byte* element(int64_t position) const;
  std::byte* element(int64_t position);

  /// Contiguous bytes of a row-major array that owns all of its storage.
  std::byte* data() { return element(0); }
  const std::byte* data() const { return element(0); }
  int64_t size_bytes() const { return size_ * info(dtype_).size_bytes; }

  // Views. Extents, steps and permutations follow NumPy's rules.
  Array permute(const std::vector<int>& axes) const;
  /// `count` elements along `axis` from `start` in steps of `step`, which may be negative.
  Array slice(int axis, int64_t start, int64_t count, int64_t step) const;
  Array broadcast_to(const Shape& shape) const;
  Array expand(int axis) const;
  /// Needs a row-major array.
  Array reshape(const Shape& shape) const;
  /// A separate row-major array.
  Array copy() const;

 private:
  int64_t offset_of(int64_t position) const;
  void settle();

  Dtype dtype_ = dtype::FLOAT32;
  Shape shape_;
  Shape strides_;
  int64_t offset_ = 0;  // in elements
  int64_t size_ = 0;
  bool row_major_ = true;
  std::shared_ptr<std::vector<std::byte>> storage_;
};

}  // namespace compute::oracle
