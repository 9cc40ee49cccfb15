// SPDX-License-Identifier: Apache-2.0
// What the runtime tests share: the devices they look at, and small tensors.
#pragma once

#include <gtest/gtest.h>
#include <compute/compute.hpp>

#include <atomic>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

namespace runtime {

// The device whose memory the host cannot see; ctest points COMPUTE_PLUGIN_PATH at its plugin.
inline const compute::Device& remote() {
  static const auto* const device = new compute::Device(compute::Device::open("minimal0"));
  return *device;
}

inline const compute::Device& host() {
  static const auto* const device = new compute::Device(compute::Device::open("cpu"));
  return *device;
}

inline std::vector<float> iota(int64_t count, float start = 0) {
  std::vector<float> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), start);
  return values;
}

// The code and message that a call throws; COMPUTE_OK if it does not throw.
struct Thrown {
  compute_error_code code = COMPUTE_OK;
  std::string message;
};

template <class F>
Thrown thrown_by(F&& call) {
  try {
    call();
  } catch (const compute::Error& error) {
    return {static_cast<compute_error_code>(error.code()), error.what()};
  }
  return {};
}

}  // namespace runtime
