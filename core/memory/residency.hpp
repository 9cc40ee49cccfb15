// SPDX-License-Identifier: Apache-2.0
// What happens when data must be copied, or an op must run elsewhere, without an explicit request of the program.
#pragma once

#include <cstdint>
#include <string>

#include "core/devices/device.hpp"

namespace compute {

// COMPUTE_TRANSFERS: allow, warn, error or break. `op` causes a copy of `size_bytes` of a host tensor to `device`.
// `keeps` is false if the copy cannot be kept for the next call (exposed memory). Throws if the setting is `error`.
void check_implicit_transfer(Device& device, const char* op, int64_t size_bytes, bool keeps);
// The same for a result of `op` on `device` that is copied back to a host tensor.
void check_implicit_return(Device& device, const char* op, int64_t size_bytes);

// COMPUTE_FALLBACK: whether `op`, which `device` refused because of `reason`, may run on the host. Warns, throws or
// breaks according to the setting.
bool allows_fallback(const Device& device);
bool may_fall_back(Device& device, const char* op, const std::string& reason);

}  // namespace compute
