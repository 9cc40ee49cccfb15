// SPDX-License-Identifier: Apache-2.0
// What happens when data would move, or work would run, where the program did not say so.
#pragma once

#include <cstdint>
#include <string>

#include "core/selection/device.hpp"

namespace compute {

// COMPUTE_TRANSFERS: allow, warn, error or break. `op` made `size_bytes` of a host tensor go to `device`; `keeps` is
// false where the copy cannot be kept for the next call (exposed memory). Throws under `error`.
void check_implicit_transfer(Device& device, const char* op, int64_t size_bytes, bool keeps);
// The same for what `op` writes on `device` into a host tensor, and comes back from there.
void check_implicit_return(Device& device, const char* op, int64_t size_bytes);

// COMPUTE_FALLBACK: whether `op`, which `device` refused for `reason`, may run on the host. Warns, throws or breaks as
// told.
bool allows_fallback(const Device& device);
bool may_fall_back(Device& device, const char* op, const std::string& reason);

}  // namespace compute
