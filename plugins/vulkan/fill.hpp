// SPDX-License-Identifier: Apache-2.0
// Fills of memory with a pattern.
#pragma once

#include <compute/plugin.h>

#include "stream.hpp"

namespace vulkan {

void queue_fill(Stream& stream, const compute_plugin_operand& dst, int64_t size_bytes, const void* pattern,
                int32_t pattern_size);

}  // namespace vulkan
