// SPDX-License-Identifier: Apache-2.0
// What the tests of the OpenCL plugin share.
#pragma once

#include <compute/compute.hpp>

#include <mutex>
#include <string>

#include "tests/oracle/inputs.hpp"

namespace compute::opencl_tests {

/// Keeps the log's lines from its making on; one at a time.
class Log {
 public:
  Log() { check(compute_log_set_callback(&Log::take, this)); }
  ~Log() { compute_error_free(compute_log_set_callback(nullptr, nullptr)); }
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }
  bool holds(const std::string& part) const { return text().find(part) != std::string::npos; }

 private:
  static void take(int32_t, const char*, const char* text, void* self) {
    auto* log = static_cast<Log*>(self);
    const std::lock_guard lock(log->mutex_);
    log->text_ += std::string(text) + "\n";
  }

  mutable std::mutex mutex_;
  std::string text_;
};

inline std::string load_report() {
  detail::TextFree text;
  check(compute_load_report(COMPUTE_FORMAT_TEXT, &text.text));
  return text.str();
}

inline Tensor upload(const Device& device, const oracle::Array& array) {
  compute_tensor* tensor = nullptr;
  check(
      compute_tensor_from_host(device.get(), array.dtype(), array.rank(), array.shape().data(), array.data(), &tensor));
  return Tensor(tensor);
}

inline oracle::Array download(const Tensor& tensor, const oracle::Array& like) {
  oracle::Array array(like.dtype(), like.shape());
  tensor.read(array.data(), array.size_bytes());
  return array;
}

}  // namespace compute::opencl_tests
