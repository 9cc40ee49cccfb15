// SPDX-License-Identifier: Apache-2.0
// Why ops ran on cpu, and where the inputs of ops came from.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/observation/place.hpp"

struct compute_device;

namespace compute {

// `op`, which `device` refused because of `reason`, runs on cpu. Always noted.
void note_fallback(const compute_device& device, std::string_view op, const std::string& reason) noexcept;

struct Fallback {
  const compute_device* device = nullptr;
  std::string op, reason;
  int64_t count = 0;
};
std::vector<Fallback> fallbacks();

// For COMPUTE_PLACEMENT: where an input was when its op ran.
enum class InputOrigin : uint8_t { kThere, kMirror, kCopied, kByValue };
const char* origin_name(InputOrigin origin) noexcept;

// Only while observes(kPlaces). Of an input that is copied it is also noted where in the program that was.
void note_input(const compute_device& device, std::string_view op, int32_t input, InputOrigin origin) noexcept;

struct InputCount {
  const compute_device* device = nullptr;
  std::string op;
  int32_t input = 0;
  InputOrigin origin = InputOrigin::kThere;
  ProgramPlace place;  // of copies
  int64_t count = 0;
};
std::vector<InputCount> input_counts();  // sorted by op, then input

}  // namespace compute
