// SPDX-License-Identifier: Apache-2.0
#include "core/base/lock.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

namespace compute {

// Not std::atomic's own wait, which knows no limit.
void wait_on_word(const std::atomic<uint32_t>& word, uint32_t seen, Deadline deadline) noexcept {
  static_assert(sizeof word == sizeof(uint32_t));
  timespec left{};
  if (deadline != Deadline::max()) {
    const int64_t left_ns = left_until(deadline);
    left = {.tv_sec = left_ns / 1'000'000'000, .tv_nsec = left_ns % 1'000'000'000};
  }
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, deadline != Deadline::max() ? &left : nullptr, nullptr, 0);
}

void wake_one_on_word(const std::atomic<uint32_t>& word) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace compute
