// SPDX-License-Identifier: Apache-2.0
// What the machine can do: reading memory, and multiplying and adding on one core.
#pragma once

#include <cstddef>

namespace compute::bench {

// Reads every byte of [data, data + size); the result depends on all of them.
unsigned long long read_all(const void* data, size_t size) noexcept;

// Performs about `flops` operations by fused multiply-adds in the widest vectors; returns how many exactly, 0 where no
// such code is here.
double multiply_add(double flops, bool is_double) noexcept;

}  // namespace compute::bench
