// SPDX-License-Identifier: Apache-2.0
#include "core/observation/placement.hpp"

#include <map>
#include <mutex>
#include <tuple>

#include "core/base/lock.hpp"
#include "core/devices/device.hpp"

namespace compute {
namespace {

// Never destroyed.
struct Placement {
  Lock lock;
  std::map<std::tuple<const Device*, std::string, std::string>, int64_t> fallbacks;
  std::map<std::tuple<const Device*, std::string, int32_t, InputOrigin, std::string, const void*>, InputCount> inputs;
};

Placement& placement() {
  static auto* const immortal = new Placement;
  return *immortal;
}

}  // namespace

void note_fallback(const Device& device, std::string_view op, const std::string& reason) noexcept {
  Placement& all = placement();
  const std::lock_guard guard(all.lock);
  try {
    ++all.fallbacks[{&device, std::string(op), reason}];
  } catch (...) {
    // Without memory it is missing.
  }
}

std::vector<Fallback> fallbacks() {
  Placement& all = placement();
  const std::lock_guard guard(all.lock);
  std::vector<Fallback> found;
  for (const auto& [key, count] : all.fallbacks)
    found.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), count});
  return found;
}

const char* origin_name(InputOrigin origin) noexcept {
  switch (origin) {
    case InputOrigin::kThere:
      return "there";
    case InputOrigin::kMirror:
      return "mirror";
    case InputOrigin::kCopied:
      return "copied";
    case InputOrigin::kByValue:
      return "by value";
  }
  return "";
}

void note_input(const Device& device, std::string_view op, int32_t input, InputOrigin origin) noexcept {
  const ProgramPlace place = origin == InputOrigin::kCopied ? current_place() : ProgramPlace{};
  Placement& all = placement();
  const std::lock_guard guard(all.lock);
  try {
    const std::string scope = place.scope != nullptr ? *place.scope : "";
    InputCount& sum = all.inputs[{&device, std::string(op), input, origin, scope, place.address}];
    if (sum.count == 0) sum = {&device, std::string(op), input, origin, place, 0};
    ++sum.count;
  } catch (...) {
    // As above.
  }
}

std::vector<InputCount> input_counts() {
  Placement& all = placement();
  const std::lock_guard guard(all.lock);
  std::vector<InputCount> found;
  for (const auto& [key, sum] : all.inputs) found.push_back(sum);
  return found;
}

}  // namespace compute
