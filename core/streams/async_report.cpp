// SPDX-License-Identifier: Apache-2.0
#include "core/streams/async_report.hpp"

#include <algorithm>
#include <memory>

#include "core/base/error.hpp"
#include "core/devices/device.hpp"
#include "core/process/log.hpp"
#include "core/streams/timeline.hpp"

namespace compute {

void take_async_report(uint64_t core_device, uint64_t core_stream, uint64_t last_good, uint64_t seen,
                       compute_error* given) noexcept {
  if (given == nullptr) return;
  const std::unique_ptr<compute_error, decltype(&compute_error_free)> error(given, compute_error_free);
  bool told = false;
  for (Timeline* timeline = last_timeline_made(); timeline != nullptr; timeline = timeline->made_before) {
    // numbers are each stream's own, so a report on all streams of a device has none
    const bool is_one = core_stream != 0;
    if (is_one ? reinterpret_cast<uint64_t>(timeline) != core_stream
               : reinterpret_cast<uint64_t>(&timeline->device) != core_device) {
      continue;
    }
    timeline->device.note_error(error->code);
    // What was not submitted yet, or has been reached, cannot have failed, whatever the plugin says.
    const uint64_t submitted = timeline->submitted();
    const uint64_t good = is_one ? std::max(last_good, timeline->reached()) : timeline->reached();
    if (good >= submitted || timeline->failure() != nullptr) continue;
    timeline->fail(good, is_one ? std::min(seen, submitted) : submitted, copy_error(error.get()), false);
    told = true;
  }
  if (!told) log(COMPUTE_LOG_ERROR, "error", error->message);
}

}  // namespace compute
