// SPDX-License-Identifier: Apache-2.0
// Threads that help to copy memory of the program, which one thread alone cannot do at the rate of a GPU's bus. Started at first need.
#pragma once

#include <cstdint>

namespace compute {

// memcpy, with the help of COMPUTE_COPY_THREADS threads, the caller counted, where the size is worth it. From any thread; while the
// helpers serve one caller, others copy alone.
void copy_memory(void* dst, const void* src, int64_t size_bytes) noexcept;

// In the child after fork(): the threads are gone; new ones are started at the next need.
void forget_copy_helpers() noexcept;

}  // namespace compute
