// SPDX-License-Identifier: Apache-2.0
// Transfers between a device and pageable memory through a ring of pinned chunks, so that the copy by the processor and
// the one by the device overlap.
#pragma once

#include <compute/plugin.h>

#include <cstdint>

#include "core/streams/submission.hpp"

namespace compute {

// How many numbers a Submission needs for a staged transfer of `size_bytes`: one a chunk. 1 where `device` has no
// pinned memory: then the two functions below are its plugin's plain copies.
int64_t transfer_numbers(const compute_device& device, int64_t size_bytes) noexcept;

// Queues the copy under the numbers of `submission`. On return `src` may change if true is returned; else once the
// stream has passed.
bool copy_to_device(Submission& submission, const void* src, compute_plugin_operand dst, int64_t size_bytes);

// The other way. On return `dst` holds the bytes if true is returned; else once the stream has passed.
bool copy_to_host(Submission& submission, compute_plugin_operand src, void* dst, int64_t size_bytes);

}  // namespace compute
