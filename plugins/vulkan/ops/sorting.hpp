// SPDX-License-Identifier: Apache-2.0
// Stable sorting of keys in the workspace, which sort and scatter share.
#pragma once

#include "ops.hpp"

namespace vulkan {

// Lines of keys, unsigned integers of 4 or 8 bytes, and for each key its position in the line (uint). The offsets are
// those of the buffers that hold the result after sort_keys().
struct SortBuffers {
  SortBuffers(Plan& plan, int64_t lines, int64_t length, int64_t key_bytes);
  int64_t lines, length, key_bytes;
  int64_t keys, order;              // filled by the caller; sorted afterwards
  int64_t other_keys, other_order;  // scratch
};

// Adds launches that sort every line.
void sort_keys(const Request& request, SortBuffers& buffers);

}  // namespace vulkan
