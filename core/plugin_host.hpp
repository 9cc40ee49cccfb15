// SPDX-License-Identifier: Apache-2.0
//
// The host table: the only way from a plugin back into core.
#ifndef COMPUTE_CORE_PLUGIN_HOST_HPP_
#define COMPUTE_CORE_PLUGIN_HOST_HPP_

#include <compute/compute.h>
#include <compute/plugin.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace compute {

// Takes what a plugin reports of failed work, from any thread, and owns `error`. Never throws.
using AsyncReportHandler = void (*)(uint64_t host_device, uint64_t host_stream, uint64_t last_good, uint64_t seen,
                                    compute_error* error) noexcept;

// Set once, by the owner of the streams, before a device is opened. Without one a report goes to the log.
void set_async_report_handler(AsyncReportHandler handler) noexcept;

// Immortal, and the same for every plugin of the one interface version that there is.
const compute_plugin_host& plugin_host() noexcept;

// The text of a plugin's string; throws PLUGIN_REJECTED where it cannot be one. `what` is for the message.
std::string plugin_text(compute_string text, std::string_view what);

}  // namespace compute

#endif  // COMPUTE_CORE_PLUGIN_HOST_HPP_
