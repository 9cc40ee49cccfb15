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

// The function that receives failures that plugins report themselves (core->report_async). It has the parameters of
// report_async, and takes ownership of the error. Until it is set, reports are logged.
using AsyncReportTaker = void (*)(uint64_t core_device, uint64_t core_stream, uint64_t last_good, uint64_t seen,
                                  compute_error* error) noexcept;
void hand_async_reports_to(AsyncReportTaker taker) noexcept;

// The text of a plugin's string; throws PLUGIN_REJECTED if it is invalid. `what` is for the message.
std::string plugin_text(compute_string text, std::string_view what);

}  // namespace compute
