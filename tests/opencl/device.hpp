// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of the OpenCL plugin.
#pragma once

#include <compute/compute.hpp>

#include <mutex>
#include <string>

#include "tests/oracle/inputs.hpp"

namespace compute::opencl_tests {

/// Keeps the log's lines from its making on; one at a time.
class Log {
 public:
  std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }
  bool holds(const std::string& part) const { return text().find(part) != std::string::npos; }

 private:
  mutable std::mutex mutex_;
  std::string text_;
  LogSink sink_{[this](LogLevel, std::string_view, std::string_view text) {
    const std::lock_guard lock(mutex_);
    text_ += std::string(text) + "\n";
  }};
};

inline Tensor upload(const Device& device, const oracle::Array& array) {
  const auto bytes = static_cast<size_t>(array.size_bytes());
  return device.from_host(DType(array.dtype()), std::span(static_cast<const std::byte*>(array.data()), bytes),
                          array.shape());
}

inline oracle::Array download(const Tensor& tensor, const oracle::Array& like) {
  oracle::Array array(like.dtype(), like.shape());
  tensor.read(array.data(), array.size_bytes());
  return array;
}

}  // namespace compute::opencl_tests
