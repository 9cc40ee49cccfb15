// SPDX-License-Identifier: Apache-2.0
#include "core/async_report.hpp"

#include <algorithm>
#include <memory>

#include "core/device.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "core/timeline.hpp"

namespace compute {
namespace {

// What was not submitted yet cannot have failed, whatever the plugin says.
void fail(Timeline& timeline, uint64_t last_good, uint64_t seen, const compute_error* error) noexcept {
  const uint64_t submitted = timeline.submitted();
  timeline.fail(std::min(last_good, submitted), std::min(seen, submitted), copy_error(error));
}

}  // namespace

void take_async_report(uint64_t host_device, uint64_t host_stream, uint64_t last_good, uint64_t seen,
                       compute_error* given) noexcept {
  if (given == nullptr) return;
  const std::unique_ptr<compute_error, decltype(&compute_error_free)> error(given, compute_error_free);
  if (host_stream != 0) {
    auto& timeline = *reinterpret_cast<Timeline*>(host_stream);
    timeline.device.note_error(error->code);
    fail(timeline, last_good, seen, error.get());
    return;
  }
  bool told = false;
  if (host_device != 0) {
    auto& device = *reinterpret_cast<Device*>(host_device);
    device.note_error(error->code);
    compute_error* const no_memory = guard([&] {
      for (Timeline* timeline : timelines_of(device)) {
        // numbers are each stream's own, so a report on all of them has none
        if (timeline->immediate || timeline->reached() >= timeline->submitted()) continue;
        fail(*timeline, timeline->reached(), timeline->submitted(), error.get());
        told = true;
      }
    });
    compute_error_free(no_memory);
  }
  if (!told) log(COMPUTE_LOG_ERROR, "error", error->message);
}

}  // namespace compute
