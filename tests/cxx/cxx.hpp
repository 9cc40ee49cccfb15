// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of the C++ interface.
#pragma once

#include <gtest/gtest.h>
#include <compute/compute.hpp>

#include <numeric>
#include <sstream>
#include <string>
#include <vector>

namespace cxx {

using namespace compute;

// Each test runs on `cpu` and on the minimal plugin's device, whose memory the host cannot address.
class OnDevice : public testing::TestWithParam<const char*> {
 protected:
  Device device_ = Device::open(GetParam());

  Tensor iota(std::initializer_list<int64_t> shape) const {
    int64_t count = 1;
    for (const int64_t extent : shape) count *= extent;
    std::vector<float> values(static_cast<size_t>(count));
    std::iota(values.begin(), values.end(), 0.0f);
    return device_.from_host(values, shape);
  }
};

#define COMPUTE_ON_DEVICES(suite) INSTANTIATE_TEST_SUITE_P(Devices, suite, testing::Values("cpu", "minimal0"))

template <class T>
std::vector<T> to_vector(std::span<const T> values) {
  return {values.begin(), values.end()};
}

inline Shape shape_of(const Tensor& tensor) { return to_vector(tensor.shape()); }

inline std::string printed(const Tensor& tensor) {
  std::ostringstream out;
  out << tensor;
  return out.str();
}

// The code and message of what a call throws; COMPUTE_OK if it throws nothing.
struct Thrown {
  compute_error_code code = COMPUTE_OK;
  std::string message;
};

template <class F>
Thrown thrown_by(F&& call) {
  try {
    static_cast<void>(call());
  } catch (const Error& error) {
    return {static_cast<compute_error_code>(error.code()), error.what()};
  }
  return {};
}

}  // namespace cxx
