// SPDX-License-Identifier: Apache-2.0
// The C interface of views: metadata only, never a device call.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/interface/about.hpp"
#include "core/memory/tensor.hpp"
#include "core/ops/infer.hpp"
#include "core/ops/shapes.hpp"

using namespace compute;

namespace {

using Dims = std::array<int64_t, COMPUTE_MAX_RANK>;

std::span<const int64_t> as_span(const Dims& values, int32_t rank) {
  return {values.data(), static_cast<size_t>(rank)};
}

// A tensor that has memory to be viewed.
const Tensor& viewed(compute_tensor* tensor, const char* who) {
  const Tensor& self = checked(tensor);
  if (self.buffer == nullptr)
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("{}: a scalar has no views", who));
  return self;
}

void require_rank(const char* who, int32_t rank, const Tensor& tensor) {
  if (rank != tensor.rank) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                fmt::format("{}: got rank {} for a tensor of rank {}", who, rank, tensor.rank));
  }
}

int32_t checked_axis(const char* who, int32_t axis, int32_t rank) {
  const int32_t wrapped = axis < 0 ? axis + rank : axis;
  if (wrapped < 0 || wrapped >= rank) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("{}: axis {} is outside [-{}, {})", who, axis, rank, rank));
  }
  return wrapped;
}

// Strides of `shape` over the elements of `tensor` in row-major order; false if no strides express it.
bool reshape_strides(const Tensor& tensor, std::span<const int64_t> shape, Dims& strides) {
  // Runs of the tensor's axes that are contiguous among themselves must each be split or joined on their own.
  struct Axis {
    int64_t extent, stride;
  };
  std::array<Axis, COMPUTE_MAX_RANK> axes;  // the first `count`
  size_t count = 0;
  for (int32_t i = 0; i < tensor.rank; ++i) {
    if (tensor.shape()[i] != 1) axes[count++] = {tensor.shape()[i], tensor.strides()[i]};
  }
  size_t old = 0, axis = 0;
  while (old < count) {
    size_t old_end = old + 1, axis_end = axis;
    int64_t old_size = axes[old].extent, size = 1;
    const size_t axis_begin = axis;
    while (axis_end < shape.size() && size < old_size) size *= shape[axis_end++];
    while (size != old_size) {
      if (size < old_size) {
        if (axis_end == shape.size()) return false;
        size *= shape[axis_end++];
      } else {
        if (old_end == count) return false;
        old_size *= axes[old_end++].extent;
      }
    }
    for (size_t i = old; i + 1 < old_end; ++i) {
      if (axes[i].stride != axes[i + 1].extent * axes[i + 1].stride) return false;
    }
    int64_t stride = axes[old_end - 1].stride;
    for (size_t i = axis_end; i-- > axis_begin;) {
      strides[i] = stride;
      stride *= shape[i];
    }
    old = old_end;
    axis = axis_end;
  }
  for (; axis < shape.size(); ++axis) strides[axis] = 1;  // extents of 1
  return true;
}

}  // namespace

extern "C" {

compute_error* compute_tensor_reshape(compute_tensor* tensor, int32_t rank, const int64_t* shape,
                                      compute_tensor** out_view) {
  if (out_view != nullptr) *out_view = nullptr;
  return guard<CallerErrno>(about(tensor), [&] {
    constexpr const char* kName = "reshape";
    require_not_null(out_view, "out_view");
    const Tensor& self = viewed(tensor, kName);
    if (rank < 0 || rank > COMPUTE_MAX_RANK) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                  fmt::format("{}: rank {} is outside [0, {}]", kName, rank, COMPUTE_MAX_RANK));
    }
    if (rank > 0) require_not_null(shape, "shape");
    Dims extents{};
    int64_t known = 1;
    int32_t open = -1;
    for (int32_t i = 0; i < rank; ++i) {
      extents[static_cast<size_t>(i)] = shape[i];
      if (shape[i] == -1 && open < 0) {
        open = i;
        continue;
      }
      if (shape[i] < 0) {
        throw Error(
            COMPUTE_ERROR_INVALID_ARGUMENT,
            shape[i] == -1
                ? fmt::format("{}: the extents of axes {} and {} are both -1; only one can be inferred", kName, open, i)
                : fmt::format("{}: shape[{}] is {}; it must not be negative", kName, i, shape[i]));
      }
      if (__builtin_mul_overflow(known, shape[i], &known)) {
        throw Error(COMPUTE_ERROR_OUT_OF_RANGE,
                    fmt::format("{}: the number of elements does not fit in 64 bits", kName));
      }
    }
    if (open >= 0 && known != 0 && self.element_count % known == 0) {
      extents[static_cast<size_t>(open)] = self.element_count / known;
      known = self.element_count;
    }
    if (self.element_count == 0 && open < 0) checked_shape(kName, self.dtype, rank, shape);  // strides are made of it
    if (known != self.element_count || (open >= 0 && extents[static_cast<size_t>(open)] < 0)) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                  fmt::format("{}: shape {} of {} elements cannot become {}", kName, shape_text(self.shape_span()),
                              self.element_count, shape_text({shape, static_cast<size_t>(rank)})));
    }
    Dims strides{};
    if (self.element_count == 0) {
      strides = row_major_array(as_span(extents, rank));
    } else if (!reshape_strides(self, as_span(extents, rank), strides)) {
      throw Error(COMPUTE_ERROR_UNSUPPORTED,
                  fmt::format("{}: strides {} of shape {} cannot be viewed as {}; make a row-major copy first (copy)",
                              kName, shape_text(self.strides_span()), shape_text(self.shape_span()),
                              shape_text(as_span(extents, rank))));
    }
    *out_view = make_view(self, self.dtype, as_span(extents, rank), as_span(strides, rank), self.offset_bytes);
  });
}

compute_error* compute_tensor_permute(compute_tensor* tensor, int32_t rank, const int32_t* axes,
                                      compute_tensor** out_view) {
  if (out_view != nullptr) *out_view = nullptr;
  return guard<CallerErrno>(about(tensor), [&] {
    constexpr const char* kName = "permute";
    require_not_null(out_view, "out_view");
    const Tensor& self = viewed(tensor, kName);
    require_rank(kName, rank, self);
    Dims shape{}, strides{};
    uint32_t seen = 0;
    for (int32_t i = 0; i < rank; ++i) {
      const int32_t axis = axes != nullptr ? checked_axis(kName, axes[i], rank) : rank - 1 - i;
      if ((seen >> axis & 1u) != 0) {
        throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("{}: axis {} is given twice", kName, axis));
      }
      seen |= 1u << axis;
      shape[static_cast<size_t>(i)] = self.shape()[axis];
      strides[static_cast<size_t>(i)] = self.strides()[axis];
    }
    *out_view = make_view(self, self.dtype, as_span(shape, rank), as_span(strides, rank), self.offset_bytes);
  });
}

compute_error* compute_tensor_slice(compute_tensor* tensor, int32_t rank, const int64_t* starts, const int64_t* stops,
                                    const int64_t* steps, compute_tensor** out_view) {
  if (out_view != nullptr) *out_view = nullptr;
  return guard<CallerErrno>(about(tensor), [&] {
    constexpr const char* kName = "slice";
    require_not_null(out_view, "out_view");
    const Tensor& self = viewed(tensor, kName);
    require_rank(kName, rank, self);
    Dims shape{}, strides{};
    int64_t offset = 0;
    for (int32_t i = 0; i < rank; ++i) {
      const int64_t extent = self.shape()[i];
      const int64_t step = steps != nullptr ? steps[i] : 1;
      if (step == 0) throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("{}: the step of axis {} is 0", kName, i));
      // Python's rules: the ends of the direction where nothing is said, then from the end, then clipped.
      const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? extent : extent - 1;
      const auto settle = [&](const int64_t* given, int64_t unset, int64_t end) {
        if (given == nullptr || given[i] == unset) return end;
        return std::clamp(given[i] < 0 ? given[i] + extent : given[i], low, high);
      };
      const int64_t start = settle(starts, INT64_MIN, step > 0 ? low : high);
      const int64_t stop = settle(stops, INT64_MAX, step > 0 ? high : low);
      int64_t count = 0;
      if (step > 0 && stop > start) count = (stop - start - 1) / step + 1;
      if (step < 0 && stop < start)
        count = static_cast<int64_t>(static_cast<uint64_t>(start - stop - 1) / (0 - static_cast<uint64_t>(step))) + 1;
      shape[static_cast<size_t>(i)] = count;
      // A single element needs no stride, and a step beyond the extent might not fit in one.
      strides[static_cast<size_t>(i)] = count > 1 ? self.strides()[i] * step : self.strides()[i];
      if (count > 0) offset += start * self.strides()[i];
    }
    const bool empty = !has_elements(as_span(shape, rank));
    *out_view = make_view(self, self.dtype, as_span(shape, rank), as_span(strides, rank),
                          self.offset_bytes + (empty ? 0 : offset * dtype_size(self.dtype)));
  });
}

compute_error* compute_tensor_broadcast(compute_tensor* tensor, int32_t rank, const int64_t* shape,
                                        compute_tensor** out_view) {
  if (out_view != nullptr) *out_view = nullptr;
  return guard<CallerErrno>(about(tensor), [&] {
    constexpr const char* kName = "broadcast";
    require_not_null(out_view, "out_view");
    const Tensor& self = viewed(tensor, kName);
    checked_shape(kName, self.dtype, rank, shape);
    const std::span<const int64_t> wanted(shape, static_cast<size_t>(rank));
    Dims strides{};
    bool fits = rank >= self.rank;
    for (int32_t i = 0; fits && i < self.rank; ++i) {
      const int32_t to = rank - self.rank + i;
      fits = self.shape()[i] == shape[to] || self.shape()[i] == 1;
      strides[static_cast<size_t>(to)] = self.shape()[i] == shape[to] ? self.strides()[i] : 0;
    }
    if (!fits) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("{}: shape {} does not broadcast to {}", kName,
                                                              shape_text(self.shape_span()), shape_text(wanted)));
    }
    *out_view = make_view(self, self.dtype, wanted, as_span(strides, rank), self.offset_bytes);
  });
}

compute_error* compute_tensor_expand(compute_tensor* tensor, int32_t axis, compute_tensor** out_view) {
  if (out_view != nullptr) *out_view = nullptr;
  return guard<CallerErrno>(about(tensor), [&] {
    constexpr const char* kName = "expand";
    require_not_null(out_view, "out_view");
    const Tensor& self = viewed(tensor, kName);
    const int32_t rank = self.rank + 1;
    if (rank > COMPUTE_MAX_RANK) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                  fmt::format("{}: the rank is already {}, the maximum", kName, self.rank));
    }
    const int32_t at = checked_axis(kName, axis, rank);
    Dims shape{}, strides{};
    for (int32_t i = 0; i < rank; ++i) {
      const auto index = static_cast<size_t>(i);
      const int32_t from = i < at ? i : i - 1;
      shape[index] = i == at ? 1 : self.shape()[from];
      strides[index] = i == at ? 1 : self.strides()[from];
    }
    *out_view = make_view(self, self.dtype, as_span(shape, rank), as_span(strides, rank), self.offset_bytes);
  });
}

compute_error* compute_tensor_squeeze(compute_tensor* tensor, int32_t axis, compute_tensor** out_view) {
  if (out_view != nullptr) *out_view = nullptr;
  return guard<CallerErrno>(about(tensor), [&] {
    constexpr const char* kName = "squeeze";
    require_not_null(out_view, "out_view");
    const Tensor& self = viewed(tensor, kName);
    const int32_t at = checked_axis(kName, axis, self.rank);
    if (self.shape()[at] != 1) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                  fmt::format("{}: axis {} has extent {}, not 1", kName, at, self.shape()[at]));
    }
    Dims shape{}, strides{};
    for (int32_t i = 0; i < self.rank - 1; ++i) {
      const int32_t from = i < at ? i : i + 1;
      shape[static_cast<size_t>(i)] = self.shape()[from];
      strides[static_cast<size_t>(i)] = self.strides()[from];
    }
    *out_view =
        make_view(self, self.dtype, as_span(shape, self.rank - 1), as_span(strides, self.rank - 1), self.offset_bytes);
  });
}

compute_error* compute_tensor_view(compute_tensor* tensor, compute_dtype dtype, int32_t rank, const int64_t* shape,
                                   const int64_t* strides, int64_t offset_bytes, compute_tensor** out_view) {
  if (out_view != nullptr) *out_view = nullptr;
  return guard<CallerErrno>(about(tensor), [&] {
    constexpr const char* kName = "view";
    require_not_null(out_view, "out_view");
    const Tensor& self = viewed(tensor, kName);
    const int64_t count = checked_shape(kName, dtype, rank, shape);
    const int64_t size = dtype_size(dtype);
    if (size != dtype_size(self.dtype) && !(is_complex(self.dtype) && dtype == real_part_dtype(self.dtype))) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                  fmt::format("{}: {} and {} differ in size", kName, dtype_name(dtype), dtype_name(self.dtype)));
    }
    const int64_t alignment = is_complex(dtype) ? size / 2 : size;  // a power of two
    const int64_t begin = self.buffer->misalignment & (alignment - 1);
    if (((begin + offset_bytes) & (alignment - 1)) != 0) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                  begin == 0
                      ? fmt::format("{}: offset {} is not a multiple of {} bytes", kName, offset_bytes, alignment)
                      : fmt::format("{}: offset {} is not aligned to {} bytes; the buffer begins {} bytes past "
                                    "a multiple of that",
                                    kName, offset_bytes, alignment, begin));
    }
    const auto settled = settled_strides({shape, static_cast<size_t>(rank)}, strides);
    int64_t low = offset_bytes, high = offset_bytes;
    bool inside = offset_bytes >= 0;
    for (int32_t i = 0; count > 0 && inside && i < rank; ++i) {
      int64_t reach = 0;
      inside = !__builtin_mul_overflow(shape[i] - 1, settled[static_cast<size_t>(i)], &reach) &&
               !__builtin_mul_overflow(reach, size, &reach) &&
               !__builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high);
    }
    inside =
        inside && low >= 0 && (count == 0 ? high <= self.buffer->size_bytes : high <= self.buffer->size_bytes - size);
    if (!inside) {
      throw Error(COMPUTE_ERROR_OUT_OF_RANGE,
                  fmt::format("{}: the view exceeds the buffer of {} bytes", kName, self.buffer->size_bytes));
    }
    *out_view = make_view(self, dtype, {shape, static_cast<size_t>(rank)}, as_span(settled, rank), offset_bytes);
  });
}

}  // extern "C"
