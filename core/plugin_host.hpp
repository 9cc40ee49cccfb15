// SPDX-License-Identifier: Apache-2.0
//
// The host table: the only way from a plugin back into core.
#ifndef COMPUTE_CORE_PLUGIN_HOST_HPP_
#define COMPUTE_CORE_PLUGIN_HOST_HPP_

#include <compute/plugin.h>

#include <string>
#include <string_view>

namespace compute {

// Immortal, and the same for every plugin of the one interface version that there is.
const compute_plugin_host& plugin_host() noexcept;

// The text of a plugin's string; throws PLUGIN_REJECTED where it cannot be one. `what` is for the message.
std::string plugin_text(compute_string text, std::string_view what);

}  // namespace compute

#endif  // COMPUTE_CORE_PLUGIN_HOST_HPP_
