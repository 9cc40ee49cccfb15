// SPDX-License-Identifier: Apache-2.0
#include "core/devices/device.hpp"

#include <fmt/format.h>

void compute_device::throw_unusable() const {
  using compute::Error;
  switch (health.load()) {
    case COMPUTE_HEALTH_FORKED:
      throw Error(COMPUTE_ERROR_FORKED, fmt::format("{} was opened before fork(), and plugin {} does not support its "
                                                    "use in the child process; open the device "
                                                    "after fork(), or call exec() in the child",
                                                    name, entry.info.plugin));
    case COMPUTE_HEALTH_CONTEXT_LOST:
      throw Error(COMPUTE_ERROR_CONTEXT_LOST,
                  fmt::format("{} has lost its context; open the device again to get a working handle", name));
    case COMPUTE_HEALTH_DEVICE_LOST:
      throw Error(COMPUTE_ERROR_DEVICE_LOST,
                  fmt::format("{} is lost: it no longer responds and cannot be reopened in this process", name));
    default:
      throw Error(COMPUTE_ERROR_RESTART_REQUIRED,
                  fmt::format("{} cannot be used until the process is restarted", name));
  }
}

void compute_device::note_error(compute_error_code code) noexcept {
  int32_t severity = COMPUTE_HEALTH_GOOD;
  if (code == COMPUTE_ERROR_CONTEXT_LOST) severity = COMPUTE_HEALTH_CONTEXT_LOST;
  if (code == COMPUTE_ERROR_DEVICE_LOST) severity = COMPUTE_HEALTH_DEVICE_LOST;
  if (code == COMPUTE_ERROR_RESTART_REQUIRED) severity = COMPUTE_HEALTH_RESTART_REQUIRED;
  int32_t now = health.load();
  while (severity > now && !health.compare_exchange_weak(now, severity)) {
  }
}

void compute_device::check(compute_error* error) {
  if (error == nullptr) return;
  note_error(error->code);
  throw compute::Error::adopt(error).on_device(name);
}
