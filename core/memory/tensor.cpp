// SPDX-License-Identifier: Apache-2.0
#include "core/memory/tensor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "core/base/caller_world.hpp"
#include "core/base/mix_hash.hpp"
#include "core/base/strides.hpp"
#include "core/expressions/dtype.hpp"
#include "core/observation/live_tensors.hpp"
#include "core/observation/observed.hpp"
#include "core/text/printable.hpp"

compute_tensor::compute_tensor(compute::BufferReference owned, compute_dtype dtype, std::span<const int64_t> shape,
                               std::span<const int64_t> strides, int64_t offset_bytes)
    : kind(Kind::kMemory),
      weak(false),
      dtype(dtype),
      rank(static_cast<int32_t>(shape.size())),
      buffer(owned.get()),
      offset_bytes(offset_bytes) {
  dims_ = inline_dims_.data();
  if (shape.size() * 2 > inline_dims_.size()) {
    heap_dims_ = std::make_unique<int64_t[]>(shape.size() * 2);
    dims_ = heap_dims_.get();
  }
  for (size_t i = shape.size(); i-- > 0;) {
    dims_[i] = shape[i];
    dims_[shape.size() + i] = strides[i];
    is_row_major = is_row_major && (shape[i] == 1 || strides[i] == element_count);
    element_count *= shape[i];
  }
  is_row_major = is_row_major || element_count == 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    layout_hash = compute::mix_hash(
        layout_hash, static_cast<uint64_t>(dims_[i]) ^ std::rotl(static_cast<uint64_t>(dims_[shape.size() + i]), 32));
  }
  owned.release();  // nothing after this throws
  if (compute::observes(compute::kTracksLeaks)) [[unlikely]]
    track();
}

compute_tensor::compute_tensor(compute_dtype dtype, const void* value, bool weak, Kind kind)
    : kind(kind), weak(weak), dtype(dtype), rank(0), buffer(nullptr), offset_bytes(0) {
  dims_ = inline_dims_.data();
  if (value != nullptr) std::memcpy(bits.data(), value, static_cast<size_t>(compute::dtype_size(dtype)));
}

[[gnu::noinline]] void compute_tensor::track() noexcept {
  const compute::DefaultFloatEnvironment environment;  // a table that grows calculates with floating-point numbers
  try {
    labels_.store(new Label{"", nullptr}, std::memory_order_release);
    const compute::Block& block = buffer->block;
    compute::note_tensor(this, {&buffer->device,
                                dtype,
                                {shape(), shape() + rank},
                                size_bytes(),
                                block ? block.chunk : nullptr,
                                block.size_bytes,
                                "",
                                compute::current_place()});
  } catch (const std::bad_alloc&) {
    // It is not listed.
  }
}

compute_tensor::~compute_tensor() {
  if (labels_.load(std::memory_order_acquire) != nullptr) [[unlikely]]
    drop_labels();
  if (buffer != nullptr) buffer->release();
}

[[gnu::noinline]] void compute_tensor::drop_labels() noexcept {
  if (compute::observes(compute::kTracksLeaks)) compute::forget_tensor(this);
  for (Label* label = labels_.load(std::memory_order_acquire); label != nullptr;)
    delete std::exchange(label, label->before);
}

void compute_tensor::set_label(const char* text) {
  Label* label = new Label{text, labels_.load(std::memory_order_acquire)};
  while (!labels_.compare_exchange_weak(label->before, label, std::memory_order_acq_rel)) {
  }
  if (compute::observes(compute::kTracksLeaks)) compute::label_tensor(this, text);
}

std::string compute_tensor::description() const {
  std::string text = compute::dtype_name(dtype);
  text += kind == Kind::kMemory ? fmt::format(" [{}]", fmt::join(shape_span(), ",")) : std::string(" scalar");
  if (*label() != '\0') text += ", label " + compute::in_quotes(label());
  return text;
}

void compute_tensor::byte_range(int64_t* out_begin, int64_t* out_end) const {
  const int64_t size = compute::dtype_size(dtype);
  int64_t low = 0, high = 0;
  if (element_count == 0) {
    *out_begin = *out_end = offset_bytes;
    return;
  }
  for (int32_t i = 0; i < rank; ++i) {
    const int64_t reach = (shape()[i] - 1) * strides()[i] * size;
    (reach < 0 ? low : high) += reach;
  }
  *out_begin = offset_bytes + low;
  *out_end = offset_bytes + high + size;
}

namespace compute {

int64_t checked_shape(const char* who, compute_dtype dtype, int32_t rank, const int64_t* shape) {
  if (dtype_size(dtype) == 0)
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("{}: {} is not a dtype", who, dtype));
  if (rank < 0 || rank > COMPUTE_MAX_RANK) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                fmt::format("{}: rank {} is outside [0, {}]", who, rank, COMPUTE_MAX_RANK));
  }
  if (rank > 0) require_not_null(shape, "shape");
  int64_t count = 1, nonzero = 1;  // the product of the extents other than 0 must fit too: strides are made of them
  for (int32_t i = 0; i < rank; ++i) {
    if (shape[i] < 0) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                  fmt::format("{}: shape[{}] is {}; it must not be negative", who, i, shape[i]));
    }
    count *= shape[i] == 0 ? 0 : 1;
    if (shape[i] != 0 && __builtin_mul_overflow(nonzero, shape[i], &nonzero)) {
      throw Error(COMPUTE_ERROR_OUT_OF_RANGE, fmt::format("{}: the number of elements does not fit in 64 bits", who));
    }
  }
  int64_t bytes = 0;
  if (__builtin_mul_overflow(nonzero, dtype_size(dtype), &bytes)) {
    throw Error(COMPUTE_ERROR_OUT_OF_RANGE, fmt::format("{}: the size in bytes does not fit in 64 bits", who));
  }
  return count == 0 ? 0 : nonzero;
}

// More than processors address, and little enough for sums and products of a few such numbers.
constexpr uint64_t kGreatestReach = uint64_t{1} << 60;

Reach checked_reach(const char* who, compute_dtype dtype, std::span<const int64_t> shape,
                    std::span<const int64_t> strides, const void* data) {
  Reach reach;
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return reach;
  const int64_t size = dtype_size(dtype);
  reach.high = size;
  for (size_t i = 0; i < shape.size(); ++i) {
    int64_t elements = 0, bytes = 0;
    if (__builtin_mul_overflow(shape[i] - 1, strides[i], &elements) || __builtin_mul_overflow(elements, size, &bytes) ||
        __builtin_add_overflow(bytes < 0 ? reach.low : reach.high, bytes, bytes < 0 ? &reach.low : &reach.high)) {
      throw Error(COMPUTE_ERROR_OUT_OF_RANGE,
                  fmt::format("{}: stride {} of axis {} exceeds the address space", who, strides[i], i));
    }
  }
  const auto address = reinterpret_cast<uintptr_t>(data);
  const uint64_t below = 0 - static_cast<uint64_t>(reach.low), above = static_cast<uint64_t>(reach.high);
  if (below > address || above > UINTPTR_MAX - address || below > kGreatestReach || above > kGreatestReach) {
    throw Error(COMPUTE_ERROR_OUT_OF_RANGE,
                fmt::format("{}: {} bytes before and {} bytes after {} exceed the address space", who, below, above,
                            fmt::ptr(data)));
  }
  return reach;
}

bool overlaps_itself(const Tensor& tensor) {
  return !tensor.is_row_major && overlaps_itself(tensor.shape_span(), tensor.strides_span());
}

// Sorted by stride, each axis must step over all that the smaller ones reach.
bool overlaps_itself(std::span<const int64_t> shape, std::span<const int64_t> strides) {
  std::array<std::pair<uint64_t, uint64_t>, COMPUTE_MAX_RANK> axes;
  size_t count = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0) return false;
    const auto stride = static_cast<uint64_t>(strides[i]);
    if (shape[i] > 1) axes[count++] = {strides[i] < 0 ? 0 - stride : stride, static_cast<uint64_t>(shape[i])};
  }
  std::sort(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(count));
  uint64_t reach = 0;
  for (size_t i = 0; i < count; ++i) {
    const auto [stride, extent] = axes[i];
    if (stride <= reach) return true;
    uint64_t step = 0;
    if (__builtin_mul_overflow(stride, extent - 1, &step) || __builtin_add_overflow(reach, step, &reach))
      reach = UINT64_MAX;
  }
  return false;
}

std::array<int64_t, COMPUTE_MAX_RANK> row_major_array(std::span<const int64_t> shape) {
  std::array<int64_t, COMPUTE_MAX_RANK> strides;  // those beyond the rank are not looked at, and not set
  row_major_strides(shape, strides.data());
  return strides;
}

std::array<int64_t, COMPUTE_MAX_RANK> settled_strides(std::span<const int64_t> shape, const int64_t* strides) {
  auto settled = row_major_array(shape);
  if (strides == nullptr || std::find(shape.begin(), shape.end(), 0) != shape.end()) return settled;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] > 1) settled[i] = strides[i];
  }
  return settled;
}

Tensor* make_tensor(Device& device, compute_dtype dtype, std::span<const int64_t> shape, Timeline* user) {
  const auto strides = row_major_array(shape);
  return make_tensor(device, dtype, shape, {strides.data(), shape.size()}, user);
}

Tensor* make_tensor(Device& device, compute_dtype dtype, std::span<const int64_t> shape,
                    std::span<const int64_t> strides, Timeline* user) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  const int64_t bytes = count * dtype_size(dtype);
  BufferReference buffer(make_buffer(device, bytes, user, {dtype, shape}));
  return new Tensor(std::move(buffer), dtype, shape, strides, 0);
}

Tensor* make_view(const Tensor& tensor, compute_dtype dtype, std::span<const int64_t> shape,
                  std::span<const int64_t> strides, int64_t offset_bytes) {
  tensor.buffer->retain();
  return new Tensor(BufferReference(tensor.buffer), dtype, shape, strides, offset_bytes);
}

}  // namespace compute
