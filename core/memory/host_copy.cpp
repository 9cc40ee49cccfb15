// SPDX-License-Identifier: Apache-2.0
#include "core/memory/host_copy.hpp"

#include <algorithm>
#include <cstring>

namespace compute {
namespace {

template <class Element>
void copy_rows(const uint8_t* src, int64_t src_stride, uint8_t* dst, int64_t dst_stride, int64_t count) {
  constexpr int64_t kSize = sizeof(Element);
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(dst + i * dst_stride * kSize, src + i * src_stride * kSize, sizeof(Element));
}

struct Bytes16 {
  uint64_t low, high;
};

void copy_row(const uint8_t* src, int64_t src_stride, uint8_t* dst, int64_t dst_stride, int64_t count, int64_t size) {
  if (src_stride == 1 && dst_stride == 1) {
    std::memcpy(dst, src, static_cast<size_t>(count * size));
    return;
  }
  switch (size) {
    case 1:
      copy_rows<uint8_t>(src, src_stride, dst, dst_stride, count);
      break;
    case 2:
      copy_rows<uint16_t>(src, src_stride, dst, dst_stride, count);
      break;
    case 4:
      copy_rows<uint32_t>(src, src_stride, dst, dst_stride, count);
      break;
    case 8:
      copy_rows<uint64_t>(src, src_stride, dst, dst_stride, count);
      break;
    default:
      copy_rows<Bytes16>(src, src_stride, dst, dst_stride, count);
      break;
  }
}

void copy_axes(const uint8_t* src, const int64_t* src_strides, uint8_t* dst, const int64_t* dst_strides,
               const int64_t* shape, size_t rank, int64_t size) {
  if (rank == 0) {
    std::memcpy(dst, src, static_cast<size_t>(size));
    return;
  }
  if (rank == 1) {
    copy_row(src, src_strides[0], dst, dst_strides[0], shape[0], size);
    return;
  }
  for (int64_t i = 0; i < shape[0]; ++i) {
    copy_axes(src + i * src_strides[0] * size, src_strides + 1, dst + i * dst_strides[0] * size, dst_strides + 1,
              shape + 1, rank - 1, size);
  }
}

}  // namespace

void copy_strided(const void* src, std::span<const int64_t> src_strides, void* dst,
                  std::span<const int64_t> dst_strides, std::span<const int64_t> shape, int64_t element_size) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return;
  // Trailing axes that are contiguous on both sides become one.
  size_t rank = shape.size();
  int64_t inner = 1;
  while (rank > 0 && (shape[rank - 1] == 1 || (src_strides[rank - 1] == inner && dst_strides[rank - 1] == inner))) {
    inner *= shape[--rank];
  }
  if (rank == 0) {
    std::memcpy(dst, src, static_cast<size_t>(inner * element_size));
    return;
  }
  if (inner == 1) {
    copy_axes(static_cast<const uint8_t*>(src), src_strides.data(), static_cast<uint8_t*>(dst), dst_strides.data(),
              shape.data(), shape.size(), element_size);
    return;
  }
  int64_t index[32] = {};
  const auto* from = static_cast<const uint8_t*>(src);
  auto* to = static_cast<uint8_t*>(dst);
  for (;;) {
    std::memcpy(to, from, static_cast<size_t>(inner * element_size));
    size_t axis = rank;
    while (axis-- > 0) {
      from += src_strides[axis] * element_size;
      to += dst_strides[axis] * element_size;
      if (++index[axis] < shape[axis]) break;
      from -= src_strides[axis] * element_size * shape[axis];
      to -= dst_strides[axis] * element_size * shape[axis];
      index[axis] = 0;
      if (axis == 0) return;
    }
  }
}

void fill_bytes(void* dst, int64_t size_bytes, const void* pattern, int32_t pattern_size) {
  auto* to = static_cast<uint8_t*>(dst);
  if (pattern_size == 1) {
    std::memset(to, *static_cast<const uint8_t*>(pattern), static_cast<size_t>(size_bytes));
    return;
  }
  // Doubles the filled part: after a few steps this runs at memcpy's full rate, from a piece that stays in a
  // cache.
  const int64_t piece = std::min<int64_t>(size_bytes, 4096 / pattern_size * pattern_size);
  for (int64_t i = 0; i < piece; i += pattern_size) std::memcpy(to + i, pattern, static_cast<size_t>(pattern_size));
  for (int64_t at = piece; at < size_bytes; at += piece) {
    std::memcpy(to + at, to, static_cast<size_t>(std::min(piece, size_bytes - at)));
  }
}

}  // namespace compute
