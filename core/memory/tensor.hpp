// SPDX-License-Identifier: Apache-2.0
// Tensors: a dtype, a shape, strides and an offset over a buffer.
#pragma once

#include <compute/compute.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/base/recycled.hpp"
#include "core/expressions/dtype.hpp"
#include "core/memory/buffer.hpp"
#include "core/memory/transfer_count.hpp"
#include "core/process/handle.hpp"

struct compute_tensor : compute::Handle<compute::HandleKind::kTensor>, compute::Recycled<compute_tensor> {
  enum class Kind : uint8_t { kMemory, kScalar, kSlot };

  compute_tensor(compute::BufferReference buffer, compute_dtype dtype, std::span<const int64_t> shape,
                 std::span<const int64_t> strides, int64_t offset_bytes);
  compute_tensor(compute_dtype dtype, const void* value, bool weak, Kind kind);  // a scalar or a slot
  ~compute_tensor();

  const Kind kind;
  const bool weak;  // a scalar that takes the dtype of the other operands
  const compute_dtype dtype;
  const int32_t rank;
  compute::Buffer* const buffer;  // NULL for scalars; an owned reference
  const int64_t offset_bytes;     // of the element with all indices 0, in the buffer
  int64_t element_count = 1;
  bool is_row_major = true;        // also true without elements
  std::array<uint8_t, 16> bits{};  // of a scalar

  const int64_t* shape() const { return dims_; }
  const int64_t* strides() const { return dims_ + rank; }
  std::span<const int64_t> shape_span() const { return {dims_, static_cast<size_t>(rank)}; }
  std::span<const int64_t> strides_span() const { return {dims_ + rank, static_cast<size_t>(rank)}; }
  // The part of a plan's key for this tensor besides shape, strides and alignment; the upper half is 0.
  const uint64_t key_word = 1 | static_cast<uint64_t>(dtype) << 8 | static_cast<uint64_t>(rank) << 16 |
                            static_cast<uint64_t>(kind != Kind::kMemory) << 24 | static_cast<uint64_t>(weak) << 25;
  uint64_t layout_hash = key_word;  // of key_word, shape and strides
  int64_t size_bytes() const { return element_count * compute::dtype_size(dtype); }
  // The first byte that elements occupy and one past the last, relative to the buffer's byte 0.
  void byte_range(int64_t* out_begin, int64_t* out_end) const;

  // A label is kept as long as the tensor, because another thread may still read it when the next one is set.
  const char* label() const noexcept {
    const Label* newest = labels_.load(std::memory_order_acquire);
    return newest != nullptr ? newest->text.c_str() : "";
  }
  void set_label(const char* text);

  // "float32 [4], label 'weights'"
  std::string description() const;

 private:
  void track() noexcept;
  void drop_labels() noexcept;

  struct Label {
    std::string text;
    Label* before;
  };

  std::atomic<Label*> labels_{nullptr};  // newest first; one that is listed as alive has at least an empty one
  std::array<int64_t, 8> inline_dims_;
  std::unique_ptr<int64_t[]> heap_dims_;
  int64_t* dims_;
};

namespace compute {

using Tensor = ::compute_tensor;

inline Subject subject_of(const Tensor& tensor) noexcept { return {tensor.label(), tensor.dtype, tensor.shape_span()}; }

// Throws INVALID_ARGUMENT or OUT_OF_RANGE for an invalid shape; returns the number of elements.
int64_t checked_shape(const char* who, compute_dtype dtype, int32_t rank, const int64_t* shape);

// The bytes [low, high) that the elements occupy around `data`, the address of the element with all indices 0. Throws
// OUT_OF_RANGE if they leave the address space. The shape was checked.
struct Reach {
  int64_t low = 0, high = 0;
};
Reach checked_reach(const char* who, compute_dtype dtype, std::span<const int64_t> shape,
                    std::span<const int64_t> strides, const void* data);

// A tensor over the program's memory, as compute_tensor_wrap_host makes it, for a checked shape and non-NULL data.
// Messages begin with `who`.
Tensor* wrap_host_memory(const char* who, compute_dtype dtype, std::span<const int64_t> shape, const int64_t* strides,
                         void* data, int32_t promise, compute_deleter deleter, void* user_data);

// Whether two elements may share memory.
bool overlaps_itself(const Tensor& tensor);
bool overlaps_itself(std::span<const int64_t> shape, std::span<const int64_t> strides);  // of any values

// row_major_strides without an allocation.
std::array<int64_t, COMPUTE_MAX_RANK> row_major_array(std::span<const int64_t> shape);

// Strides from outside in the form that tensors store. Strides without effect (along axes of one element, and in
// tensors without elements) become dense, so that products of strides and extents fit in 64 bits. NULL: dense. The
// shape was checked.
std::array<int64_t, COMPUTE_MAX_RANK> settled_strides(std::span<const int64_t> shape, const int64_t* strides);

// A new row-major tensor on a device, which `user` will write first. `strides` are from row_major_array.
Tensor* make_tensor(Device& device, compute_dtype dtype, std::span<const int64_t> shape, Timeline* user);
Tensor* make_tensor(Device& device, compute_dtype dtype, std::span<const int64_t> shape,
                    std::span<const int64_t> strides, Timeline* user);

// A view with any layout over the same buffer.
Tensor* make_view(const Tensor& tensor, compute_dtype dtype, std::span<const int64_t> shape,
                  std::span<const int64_t> strides, int64_t offset_bytes);

struct TensorRelease {
  void operator()(Tensor* tensor) const noexcept { release_handle(tensor); }
};
using TensorReference = std::unique_ptr<Tensor, TensorRelease>;

}  // namespace compute
