// SPDX-License-Identifier: Apache-2.0
// What happens when data must be copied, or an op must run elsewhere, without an explicit request of the program.
#pragma once

#include <cstdint>
#include <string>

#include "core/devices/device.hpp"

namespace compute {

// COMPUTE_TRANSFERS: allow, warn, error or break; `own`, a COMPUTE_TRANSFERS_, is what the program has set for the
// tensor. `op` causes a copy of `size_bytes` of a host tensor to `device`. `keeps` is false if the copy cannot be kept
// for the next call (exposed memory). Throws if copies are errors.
void check_implicit_transfer(Device& device, const char* op, int64_t size_bytes, bool keeps, int32_t own);
// The same for a result of `op` on `device` that is copied back to a host tensor.
void check_implicit_return(Device& device, const char* op, int64_t size_bytes, int32_t own);
// The same for an operand of `op` that is copied from `device`, because the op runs on the host.
void check_implicit_move(Device& device, const char* op, int64_t size_bytes, int32_t own);

// COMPUTE_FALLBACK: whether `op`, which `device` refused because of `reason`, may run on the host. Warns or breaks
// according to the setting. An op that `runs_on_host` by its schema may do so under each one but `strict`.
bool allows_fallback(const Device& device, bool runs_on_host);
bool may_fall_back(Device& device, const char* op, bool runs_on_host, const std::string& reason);
// Counts a run that the plugin of `device` itself makes on the host. Throws UNSUPPORTED with COMPUTE_FALLBACK=strict.
void note_run_on_host(Device& device, const char* op);

}  // namespace compute
