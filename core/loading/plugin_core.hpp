// SPDX-License-Identifier: Apache-2.0
// The core table: the only way from a plugin back into core.
#pragma once

#include <compute/plugin.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace compute {

// Immortal, and the same for every plugin of the one interface version that there is.
const compute_plugin_core& plugin_core() noexcept;

// Who takes what plugins report by themselves (core->report_async); the arguments are that function's, and the error
// becomes the taker's. Until somebody takes them, reports are logged.
using AsyncReportTaker = void (*)(uint64_t core_device, uint64_t core_stream, uint64_t last_good, uint64_t seen,
                                  compute_error* error) noexcept;
void hand_async_reports_to(AsyncReportTaker taker) noexcept;

// The text of a plugin's string; throws PLUGIN_REJECTED where it cannot be one. `what` is for the message.
std::string plugin_text(compute_string text, std::string_view what);

}  // namespace compute
