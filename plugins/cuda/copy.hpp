// SPDX-License-Identifier: Apache-2.0
// Copies and fills in stream order.
#pragma once

#include <compute/plugin.h>

#include "plugins/cuda/stream.hpp"

namespace compute::cuda {

inline CUdeviceptr address(const compute_plugin_operand& operand) {
  return operand.buffer + static_cast<uint64_t>(operand.offset_bytes);
}

void copy_from_host(Stream& stream, const void* src, CUdeviceptr dst, int64_t size_bytes);
void copy_to_host(Stream& stream, CUdeviceptr src, void* dst, int64_t size_bytes);
void copy_peer(Stream& stream, Device& src_device, CUdeviceptr src, CUdeviceptr dst, int64_t size_bytes);

/// `pattern` has 1, 2, 4, 8 or 16 bytes, which divide the address and the size.
void fill(Stream& stream, CUdeviceptr dst, int64_t size_bytes, const void* pattern, int32_t pattern_size);

}  // namespace compute::cuda
