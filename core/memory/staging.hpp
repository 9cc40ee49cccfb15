// SPDX-License-Identifier: Apache-2.0
// Transfers between a device and pageable memory through a ring of pinned chunks. The copies by the processor and by
// the device overlap.
#pragma once

#include <compute/plugin.h>

#include <cstdint>

#include "core/streams/submission.hpp"

namespace compute {

// The count of numbers that a Submission needs for a staged transfer of `size_bytes`: one per chunk. It is 1 if
// `device` has no pinned memory; then the two functions below are plain copies by its plugin.
int64_t transfer_numbers(const compute_device& device, int64_t size_bytes) noexcept;

// Queues the copy under the numbers of `submission`. If it returns true, `src` may change at once, else when the stream
// has passed the copy.
bool copy_to_device(Submission& submission, const void* src, compute_plugin_operand dst, int64_t size_bytes);

// The opposite direction. If it returns true, `dst` contains the bytes at once, else when the stream has passed the
// copy.
bool copy_to_host(Submission& submission, compute_plugin_operand src, void* dst, int64_t size_bytes);

}  // namespace compute
