// SPDX-License-Identifier: Apache-2.0
#include "plugins/common/driver/own_stack.hpp"

#include <pthread.h>

#include <cstddef>
#include <cstdint>

#include "plugins/common/driver/signals_blocked.hpp"

namespace compute::common {
namespace {

// As the first thread of a process has; compilers recurse.
constexpr size_t kLargeBytes = 8 << 20;
constexpr size_t kEnoughBytes = 1 << 20;

}  // namespace

bool is_short_of_stack() noexcept {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return false;
  void* end = nullptr;  // the lowest address
  size_t size = 0;
  const bool is_known = pthread_attr_getstack(&attributes, &end, &size) == 0;
  pthread_attr_destroy(&attributes);
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  return is_known && here - reinterpret_cast<uintptr_t>(end) < kEnoughBytes;
}

void run_on_own_stack(void (*body)(void*), void* user) noexcept {
  struct Call {
    void (*body)(void*);
    void* user;
  } call{body, user};
  pthread_attr_t attributes;
  pthread_t thread;
  bool is_running = false;
  if (pthread_attr_init(&attributes) == 0) {
    const auto start = [](void* given) -> void* {
      const auto& call = *static_cast<const Call*>(given);
      call.body(call.user);
      return nullptr;
    };
    const SignalsBlocked blocked;
    is_running = pthread_attr_setstacksize(&attributes, kLargeBytes) == 0 &&
                 pthread_create(&thread, &attributes, start, &call) == 0;
    pthread_attr_destroy(&attributes);
  }
  if (is_running) {
    pthread_join(thread, nullptr);
  } else {
    body(user);
  }
}

}  // namespace compute::common
