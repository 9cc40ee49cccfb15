// SPDX-License-Identifier: Apache-2.0
// Threads with a large stack. Drivers and their compilers need more stack than small threads have, and create threads
// that inherit the state of the first caller.
#pragma once

#include <exception>
#include <utility>

namespace compute::common {

// Runs body(user) on a thread with a large stack, which receives none of the program's signals, and waits for it; on
// the caller if no thread can be created. `body` does not throw.
void run_on_own_stack(void (*body)(void*), void* user) noexcept;

// Whether the calling thread's stack is small.
bool is_short_of_stack() noexcept;

// Calls f() on a thread with a large stack, and rethrows its exception.
template <class F>
void on_own_stack(const F& f) {
  struct Call {
    const F& f;
    std::exception_ptr thrown;
  } call{f, nullptr};
  run_on_own_stack(
      [](void* user) {
        auto& call = *static_cast<Call*>(user);
        try {
          call.f();
        } catch (...) {
          call.thrown = std::current_exception();
        }
      },
      &call);
  if (call.thrown != nullptr) std::rethrow_exception(std::move(call.thrown));
}

// Calls f() on a thread that has enough stack.
template <class F>
void with_enough_stack(const F& f) {
  if (is_short_of_stack()) {
    on_own_stack(f);
  } else {
    f();
  }
}

}  // namespace compute::common
