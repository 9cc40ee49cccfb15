// SPDX-License-Identifier: Apache-2.0
// The configuration of the process: read at first use, never destroyed, safe from any thread.
#pragma once

#include <functional>
#include <string_view>

#include "core/base/config.hpp"

namespace compute {

SettingValue setting(SettingId id);
// Whether COMPUTE_DEBUG lists `word`, as it was when somebody first asked.
bool debug_checks(std::string_view word) noexcept;

// A consistent copy, for what reads many settings.
Config process_config();
// Changes it by `change`, while nobody reads it.
void change_process_config(const std::function<void(Config&)>& change);

// In the child of a fork that came while another thread held it.
void renew_config_lock() noexcept;

}  // namespace compute
