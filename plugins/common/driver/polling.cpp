// SPDX-License-Identifier: Apache-2.0
#include "plugins/common/driver/polling.hpp"

#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "plugins/common/op/core.hpp"

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

PunctualSleep::PunctualSleep() : slack_ns_(prctl(PR_GET_TIMERSLACK)) {
  if (slack_ns_ > 0) prctl(PR_SET_TIMERSLACK, 1000UL);
}
PunctualSleep::~PunctualSleep() {
  if (slack_ns_ > 0) prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(slack_ns_));
}

int64_t spin_time_ns() {
  cpu_set_t set;
  const bool alone = sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) < 2;
  return integer_setting("COMPUTE_SPIN_US", 0, 1'000'000).value_or(alone ? 0 : 50) * 1000;
}

Pauses::Pauses(Polling& polling, int64_t spin_ns, int64_t timeout_ns)
    : polling_(polling), spin_ns_(spin_ns), timeout_ns_(timeout_ns), start_(std::chrono::steady_clock::now()) {}

bool Pauses::next() {
  using std::chrono::nanoseconds;
  const int64_t waited = std::chrono::duration_cast<nanoseconds>(std::chrono::steady_clock::now() - start_).count();
  if (waited >= timeout_ns_) return false;
  if (waited < spin_ns_) return true;
  if (!punctual_) punctual_.emplace();
  polling_.sleep(nanoseconds(std::min(std::clamp<int64_t>(waited / 64, 2'000, 200'000), timeout_ns_ - waited)));
  return true;
}

void end_polling() {
  is_own = true;
  is_ending.store(true);
  const auto end = std::chrono::steady_clock::now() + kPollingPatience;
  while (polling.load() > 0 && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::microseconds(20));
}

}  // namespace compute::common
