// SPDX-License-Identifier: Apache-2.0
// What fuzzers that call the client interface share: choices taken from the input, and a device to call.
#pragma once

#include <compute/compute.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace fuzz {

// The input, read from its front; zeros once it is used up.
class Bytes {
 public:
  Bytes(const uint8_t* data, size_t size) : data_(data), size_(size) {}

  bool empty() const { return size_ == 0; }
  uint8_t byte() {
    if (size_ == 0) return 0;
    --size_;
    return *data_++;
  }
  uint32_t below(uint32_t limit) { return byte() % limit; }
  bool one_in(uint32_t n) { return byte() % n == n - 1; }
  int64_t number() {
    int64_t value = 0;
    for (int i = 0; i < 8; ++i) value = static_cast<int64_t>(static_cast<uint64_t>(value) << 8 | byte());
    return value;
  }
  // Small ones mostly, at times one at an edge, rarely anything.
  int64_t extent() {
    constexpr int64_t kEdges[] = {-1, INT64_MIN, INT64_MAX, int64_t{1} << 31, int64_t{1} << 32, int64_t{1} << 62,
                                  -7, 0};
    const uint8_t choice = byte();
    if (choice < 240) return choice % 6;
    return choice < 252 ? kEdges[choice % 8] : number();
  }
  // One that may be negative, for strides and steps.
  int64_t step() {
    const int64_t value = extent();
    return value >= 0 && value < 8 && one_in(4) ? value - 6 : value;
  }
  std::string text(uint32_t limit) {
    std::string result;
    for (uint32_t size = below(limit); size > 0; --size) result += static_cast<char>(byte());
    return result;
  }

 private:
  const uint8_t* data_;
  size_t size_;
};

// An error has a message and is not INTERNAL.
inline bool failed(compute_error* error) {
  if (error == nullptr) return false;
  if (compute_error_message(error)[0] == '\0' || compute_error_get_code(error) == COMPUTE_ERROR_INTERNAL) {
    std::fprintf(stderr, "%s: %s\n", compute_error_code_name(compute_error_get_code(error)),
                 compute_error_message(error));
    std::abort();
  }
  compute_error_free(error);
  return true;
}

inline void require(compute_error* error) {
  if (error == nullptr) return;
  std::fprintf(stderr, "%s: %s\n", compute_error_code_name(compute_error_get_code(error)),
               compute_error_message(error));
  std::abort();
}

// A device of the minimal plugin, with little memory, so that no op is long.
inline compute_device* minimal_device() {
  static compute_device* const device = [] {
    setenv("COMPUTE_PLUGIN_FILES", FUZZ_MINIMAL_PLUGIN, 1);
    setenv("COMPUTE_MINIMAL_MEMORY", "262144", 1);
    setenv("COMPUTE_LOG", "off", 1);
    compute_device* opened = nullptr;
    require(compute_device_open("minimal0", &opened));
    return opened;
  }();
  return device;
}

inline compute_device* cpu_device() {
  static_cast<void>(minimal_device());  // the environment first
  static compute_device* const device = [] {
    compute_device* opened = nullptr;
    require(compute_device_open("cpu", &opened));
    return opened;
  }();
  return device;
}

}  // namespace fuzz
