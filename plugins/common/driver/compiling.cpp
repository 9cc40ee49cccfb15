// SPDX-License-Identifier: Apache-2.0
#include "plugins/common/driver/compiling.hpp"

#include <stdlib.h>

#include <atomic>

#include "plugins/common/op/core.hpp"

namespace compute::common {
namespace {

std::atomic<bool> is_ending{false};

}  // namespace

Compiling::Compiling() {
  if (is_ending.load()) throw Error(COMPUTE_ERROR_SHUT_DOWN, "the process is exiting; no more kernels can be compiled");
}

// exit() runs handlers in the reverse order of their registration: this one before the destructors that the compiler
// has registered so far.
Compiling::~Compiling() {
  on_exit([](int, void*) { is_ending.store(true); }, nullptr);
}

}  // namespace compute::common
