// SPDX-License-Identifier: Apache-2.0
// Drivers and their compilers take more stack than small threads have, and make threads that keep the world of who
// called first.
#pragma once

#include <csignal>
#include <exception>
#include <utility>

namespace compute::common {

// Runs body(user) on a thread with a large stack, which takes none of the program's signals, and waits for it; on the
// caller if there is no thread to be had. `body` does not throw.
void run_on_own_stack(void (*body)(void*), void* user) noexcept;

// Keeps the program's signals from the calling thread, and from the threads that it makes.
class SignalsHeld {
 public:
  SignalsHeld() noexcept;
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;
  ~SignalsHeld();

 private:
  sigset_t before_;
};

// Whether the calling thread's stack is small.
bool is_short_of_stack() noexcept;

// f() on a thread with a large stack, and what it throws.
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

// f() where there is stack enough.
template <class F>
void with_enough_stack(const F& f) {
  if (is_short_of_stack()) {
    on_own_stack(f);
  } else {
    f();
  }
}

}  // namespace compute::common
