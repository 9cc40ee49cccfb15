// SPDX-License-Identifier: Apache-2.0
#include "core/process/handle.hpp"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <utility>

#include "core/base/lock.hpp"
#include "core/process/process_config.hpp"

namespace compute {
namespace {

struct ReleasedHandles {
  Lock lock;
  std::map<const void*, std::string> descriptions;
};

// Handles are kept, so that no address comes twice.
ReleasedHandles& released_handles() {
  static auto* const immortal = new ReleasedHandles;
  return *immortal;
}

std::string description_of(const void* handle) {
  if (!keeps_released_handles()) return {};
  ReleasedHandles& released = released_handles();
  const std::lock_guard guard(released.lock);
  const auto found = released.descriptions.find(handle);
  return found != released.descriptions.end() ? found->second : std::string();
}

constexpr HandleKind kKinds[] = {HandleKind::kDevice, HandleKind::kTensor, HandleKind::kStream,
                                 HandleKind::kEvent,  HandleKind::kPlan,   HandleKind::kExpression,
                                 HandleKind::kKernel, HandleKind::kGraph,  HandleKind::kSemaphore};

}  // namespace

void note_released(const void* handle, std::string description) noexcept {
  try {
    ReleasedHandles& released = released_handles();
    const std::lock_guard guard(released.lock);
    released.descriptions.insert_or_assign(handle, std::move(description));
  } catch (const std::bad_alloc&) {
    // Messages say less then.
  }
}

const char* handle_name(HandleKind kind) noexcept {
  switch (kind) {
    case HandleKind::kDevice:
      return "device";
    case HandleKind::kTensor:
      return "tensor";
    case HandleKind::kStream:
      return "stream";
    case HandleKind::kEvent:
      return "event";
    case HandleKind::kPlan:
      return "plan";
    case HandleKind::kExpression:
      return "expression";
    case HandleKind::kKernel:
      return "kernel";
    case HandleKind::kGraph:
      return "graph";
    case HandleKind::kSemaphore:
      return "semaphore";
    case HandleKind::kGroup:
      return "group";
  }
  return "handle";
}

std::string fault_of_handle(HandleKind wanted, const void* handle, uint32_t found) {
  const char* name = handle_name(wanted);
  for (const HandleKind other : kKinds) {
    if (found == static_cast<uint32_t>(other))
      return fmt::format(": wrong type of handle: expected {}, got {}", name, handle_name(other));
  }
  const std::string description = description_of(handle);
  if (!description.empty()) return fmt::format(" ({}) was released", description);
  return fmt::format(": invalid {0} handle {1}: it was released or is not a {0}", name, handle);
}

void throw_bad_handle(HandleKind wanted, const void* handle, uint32_t found) {
  const char* name = handle_name(wanted);
  if (handle == nullptr)
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("the {} is NULL", name)).about_parameter();
  const std::string fault = fault_of_handle(wanted, handle, found);
  throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, fault.starts_with(": ") ? fault.substr(2) : name + fault)
      .about_parameter();
}

bool keeps_released_handles() noexcept {
  static const bool keeps = debug_checks("handles");
  return keeps;
}

}  // namespace compute
