// SPDX-License-Identifier: Apache-2.0
// Starting and ending observations, and their results.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/observation/live_tensors.hpp"

namespace compute {

// Starts the observations that the settings request. Only the first call has an effect.
void begin_configured_observations();

// A new profile; the one before is dropped.
void start_profile();
void stop_profile() noexcept;
// Of the running profile, or of the last one that was stopped. Throws if there was none. `format` is a COMPUTE_FORMAT_.
// The caller has collected the times of queued work.
std::string profile_report(int32_t format);

// Throws if the file cannot be written. A trace that is being written is ended first.
void start_trace(const std::string& path);
// False if none is being written. Throws if the file was not written completely.
bool stop_trace();

// Writes the reports that the settings request at process exit, once. `placement` is the report for COMPUTE_PLACEMENT,
// `memory` the cached memory in the report for COMPUTE_LEAKS.
void report_at_end(std::string (*placement)(int32_t format), std::vector<CachedMemory> (*memory)()) noexcept;

// In the child of a fork: nothing is observed, and the files are the parent's.
void forget_observations() noexcept;

}  // namespace compute
