// SPDX-License-Identifier: Apache-2.0
#include "core/base/handle.hpp"

#include <fmt/format.h>

#include "core/base/process_config.hpp"

namespace compute {

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
  }
  return "handle";
}

void throw_bad_handle(HandleKind wanted, const void* handle, uint32_t found) {
  const char* name = handle_name(wanted);
  if (handle == nullptr)
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("the {} is NULL", name)).about_parameter();
  for (const HandleKind other : {HandleKind::kDevice, HandleKind::kTensor, HandleKind::kStream, HandleKind::kEvent,
                                 HandleKind::kPlan, HandleKind::kExpression, HandleKind::kKernel, HandleKind::kGraph}) {
    if (found == static_cast<uint32_t>(other)) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                  fmt::format("wrong type of handle: expected {}, got {}", name, handle_name(other)))
          .about_parameter();
    }
  }
  throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
              fmt::format("invalid {0} handle {1}: it was released or is not a {0}", name, handle))
      .about_parameter();
}

bool keeps_released_handles() noexcept {
  static const bool keeps = debug_checks("handles");
  return keeps;
}

}  // namespace compute
