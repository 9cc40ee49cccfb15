// SPDX-License-Identifier: Apache-2.0
#include "core/observation/observed.hpp"

#include <ctime>

namespace compute {

std::atomic<uint32_t> observations{0};

int64_t host_now() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace compute
