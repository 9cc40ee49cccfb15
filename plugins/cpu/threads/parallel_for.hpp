// SPDX-License-Identifier: Apache-2.0
// How a plan gets its threads from its caller: parallel_for of threads.hpp, or a test's own function.
#pragma once

#include <cstdint>

namespace compute::cpu {

/// Runs body(user, begin, end) over pieces of [0, count) of at least `grain`, on any threads, and returns when all have
/// finished.
using ParallelFor = void (*)(int64_t count, int64_t grain, void (*body)(void* user, int64_t begin, int64_t end),
                             void* user);

}  // namespace compute::cpu
