// SPDX-License-Identifier: Apache-2.0
// The configuration of the process: read at first use, never destroyed, safe from any thread.
#pragma once

#include <functional>
#include <string_view>

#include "core/settings/config.hpp"

namespace compute {

SettingValue setting(SettingId id);
// Whether COMPUTE_DEBUG lists `word`, as of the first query.
bool debug_checks(std::string_view word) noexcept;

// A consistent copy, for callers that read many settings.
Config process_config();
// Changes it by `change`, while no other thread reads it.
void change_process_config(const std::function<void(Config&)>& change);

}  // namespace compute
