// SPDX-License-Identifier: Apache-2.0
// The log: one callback or the default sink, which writes the selection line and warnings to stderr.
#pragma once

#include <compute/compute.h>

#include <cstdint>
#include <string_view>

namespace compute {

// `category` is load, select, place, copy, compile, memory or error. Levels above the setting COMPUTE_LOG are
// dropped, before formatting if the caller checks log_enabled first. Never throws.
bool log_enabled(int32_t level) noexcept;
void log(int32_t level, const char* category, std::string_view text) noexcept;

// As compute_log_set_callback.
void set_log_callback(compute_log_callback callback, void* user_data);

}  // namespace compute
