// SPDX-License-Identifier: Apache-2.0
// How the memory of tensors is shared.
#pragma once

#include "core/memory/buffer.hpp"
#include "core/memory/tensor.hpp"

namespace compute {

// Whether both are the same elements of one buffer, with equal dtype and layout.
bool same_view(const Tensor& a, const Tensor& b);

// Whether two layouts over one buffer may share a byte. Exact for ranges, for interleaved grids, and for blocks of rows
// or columns; conservative otherwise.
bool may_overlap_in_buffer(const Tensor& a, const Tensor& b);  // the same one
inline bool may_overlap(const Tensor& a, const Tensor& b) {
  return a.buffer == b.buffer && may_overlap_in_buffer(a, b);
}

inline bool is_whole_buffer(const Tensor& tensor) {
  return tensor.offset_bytes == 0 && tensor.is_row_major && tensor.size_bytes() == tensor.buffer->size_bytes;
}

}  // namespace compute
