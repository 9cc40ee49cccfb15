// SPDX-License-Identifier: Apache-2.0
#include "array.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace compute::oracle {

int64_t element_count(const Shape& shape) {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

Shape row_major_strides(const Shape& shape) {
  Shape strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= std::max<int64_t>(shape[i], 1);
  }
  return strides;
}

Shape broadcast(const Shape& a, const Shape& b) {
  Shape shape(std::max(a.size(), b.size()));
  for (size_t i = 0; i < shape.size(); ++i) {
    const size_t missing_a = shape.size() - a.size(), missing_b = shape.size() - b.size();
    const int64_t x = i < missing_a ? 1 : a[i - missing_a];
    const int64_t y = i < missing_b ? 1 : b[i - missing_b];
    if (x != y && x != 1 && y != 1) throw std::invalid_argument("shapes do not broadcast");
    shape[i] = x == 1 ? y : x;
  }
  return shape;
}

Array::Array(Dtype dtype, Shape shape) : dtype_(dtype), shape_(std::move(shape)), strides_(row_major_strides(shape_)) {
  settle();
  storage_ = std::make_shared<std::vector<std::byte>>(static_cast<size_t>(size_bytes()));
}

void Array::settle() {
  size_ = element_count(shape_);
  const Shape expected = row_major_strides(shape_);
  row_major_ = true;
  for (size_t i = 0; i < shape_.size(); ++i) row_major_ = row_major_ && (shape_[i] == 1 || strides_[i] == expected[i]);
}

int64_t Array::offset_of(int64_t position) const {
  if (row_major_) return offset_ + position;
  int64_t offset = offset_;
  for (size_t i = shape_.size(); i-- > 0;) {
    offset += position % shape_[i] * strides_[i];
    position /= shape_[i];
  }
  return offset;
}

const std::byte* Array::element(int64_t position) const {
  return storage_->data() + offset_of(position) * info(dtype_).size_bytes;
}

std::byte* Array::element(int64_t position) { return storage_->data() + offset_of(position) * info(dtype_).size_bytes; }

Value Array::at(int64_t position) const { return decode(dtype_, element(position)); }

void Array::set(int64_t position, const Value& value) { encode(dtype_, value, element(position)); }

std::vector<Value> Array::values() const {
  std::vector<Value> all(static_cast<size_t>(size_));
  for (int64_t i = 0; i < size_; ++i) all[static_cast<size_t>(i)] = at(i);
  return all;
}

Array Array::permute(const std::vector<int>& axes) const {
  Array view = *this;
  for (size_t i = 0; i < axes.size(); ++i) {
    view.shape_[i] = shape_[static_cast<size_t>(axes[i])];
    view.strides_[i] = strides_[static_cast<size_t>(axes[i])];
  }
  view.settle();
  return view;
}

Array Array::slice(int axis, int64_t start, int64_t count, int64_t step) const {
  Array view = *this;
  const auto i = static_cast<size_t>(axis);
  if (count > 0) view.offset_ += start * strides_[i];
  view.shape_[i] = count;
  view.strides_[i] = strides_[i] * step;
  view.settle();
  return view;
}

Array Array::broadcast_to(const Shape& shape) const {
  if (broadcast(shape_, shape) != shape) throw std::invalid_argument("the shape does not broadcast to the one given");
  Array view = *this;
  view.shape_ = shape;
  view.strides_.assign(shape.size(), 0);
  const size_t missing = shape.size() - shape_.size();
  for (size_t i = 0; i < shape_.size(); ++i) {
    if (shape_[i] == shape[missing + i]) view.strides_[missing + i] = strides_[i];
  }
  view.settle();
  return view;
}

Array Array::expand(int axis) const {
  Array view = *this;
  view.shape_.insert(view.shape_.begin() + axis, 1);
  view.strides_.insert(view.strides_.begin() + axis, 1);
  view.settle();
  return view;
}

Array Array::reshape(const Shape& shape) const {
  if (!row_major_ || element_count(shape) != size_)
    throw std::invalid_argument("the array cannot be viewed in that shape");
  Array view = *this;
  view.shape_ = shape;
  view.strides_ = row_major_strides(shape);
  view.settle();
  return view;
}

Array Array::copy() const {
  Array result(dtype_, shape_);
  const auto element_bytes = static_cast<size_t>(info(dtype_).size_bytes);
  for (int64_t i = 0; i < size_; ++i) std::memcpy(result.element(i), element(i), element_bytes);
  return result;
}

}  // namespace compute::oracle
