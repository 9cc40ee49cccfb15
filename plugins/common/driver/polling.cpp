// SPDX-License-Identifier: Apache-2.0
#include "plugins/common/driver/polling.hpp"

#include <unistd.h>

#include <atomic>
#include <thread>

namespace compute::common {
namespace {

std::atomic<int> polling{0};
std::atomic<bool> is_ending{false};
constinit thread_local bool is_own = false;

void enter() {
  polling.fetch_add(1);
  if (!is_ending.load() || is_own) return;
  polling.fetch_sub(1);
  for (;;) pause();
}

}  // namespace

Polling::Polling() { enter(); }
Polling::~Polling() { polling.fetch_sub(1); }

void Polling::sleep(std::chrono::nanoseconds duration) {
  polling.fetch_sub(1);
  std::this_thread::sleep_for(duration);
  enter();
}

void end_polling() {
  is_own = true;
  is_ending.store(true);
  const auto end = std::chrono::steady_clock::now() + kPollingPatience;
  while (polling.load() > 0 && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::microseconds(20));
}

}  // namespace compute::common
