// SPDX-License-Identifier: Apache-2.0
// The core table: the only way from a plugin back into core.
#pragma once

#include <compute/plugin.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace compute {

// Never destroyed, and the same for every plugin, because there is only one interface version.
const compute_plugin_core& plugin_core() noexcept;

// The text of a plugin's string; throws PLUGIN_REJECTED if it is invalid. `what` is for the message.
std::string plugin_text(compute_string text, std::string_view what);

}  // namespace compute
