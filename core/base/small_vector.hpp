// SPDX-License-Identifier: Apache-2.0
// A vector of trivially copyable values whose first N live inside it: for lists that are short on the hot path.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

namespace compute {

template <class T, size_t N>
class SmallVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  SmallVector() = default;
  explicit SmallVector(size_t size) { resize(size); }
  SmallVector(const SmallVector& other) { append(other.data_, other.size_); }
  SmallVector& operator=(const SmallVector&) = delete;

  T* data() { return data_; }
  const T* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T& back() { return data_[size_ - 1]; }
  operator std::span<T>() { return {data_, size_}; }
  operator std::span<const T>() const { return {data_, size_}; }

  void push_back(const T& value) {
    if (size_ == capacity_) grow(capacity_ * 2);
    new (data_ + size_++) T(value);
  }
  void append(const T* values, size_t count) {
    T* to = extend(count);
    for (size_t i = 0; i < count; ++i) new (to + i) T(values[i]);  // no memcpy: they are few
  }
  // New elements are value-initialised.
  void resize(size_t size) {
    if (size > capacity_) grow(size);
    for (size_t i = size_; i < size; ++i) new (data_ + i) T{};
    size_ = size;
  }
  // `count` more elements, for the caller to fill in.
  T* extend(size_t count) {
    if (size_ + count > capacity_) grow(std::max(capacity_ * 2, size_ + count));
    size_ += count;
    return data_ + size_ - count;
  }
  // To at most the present size.
  void shrink(size_t size) { size_ = size; }
  void clear() { size_ = 0; }

 private:
  void grow(size_t capacity) {
    auto larger = std::make_unique<T[]>(capacity);
    std::memcpy(larger.get(), data_, size_ * sizeof(T));
    heap_ = std::move(larger);
    data_ = heap_.get();
    capacity_ = capacity;
  }

  alignas(T) std::byte inline_[N * sizeof(T)];  // bytes, so that unused elements are not constructed
  std::unique_ptr<T[]> heap_;
  T* data_ = reinterpret_cast<T*>(inline_);
  size_t size_ = 0;
  size_t capacity_ = N;
};

}  // namespace compute
