// SPDX-License-Identifier: Apache-2.0
// Copies between strided layouts in host memory, for `cpu` without its plugin and for reads and writes of views.
#pragma once

#include <cstdint>
#include <span>

namespace compute {

// Copies every element. Addresses point to the element with all indices 0; strides are in elements.
void copy_strided(const void* src, std::span<const int64_t> src_strides, void* dst,
                  std::span<const int64_t> dst_strides, std::span<const int64_t> shape, int64_t element_size);

// Fills `size_bytes` with a repeated pattern of 1, 2, 4, 8 or 16 bytes; its size divides size_bytes.
void fill_bytes(void* dst, int64_t size_bytes, const void* pattern, int32_t pattern_size);

}  // namespace compute
