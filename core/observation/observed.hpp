// SPDX-License-Identifier: Apache-2.0
// What of the library's work is observed. Normally nothing is: then a call costs one load of this word.
#pragma once

#include <atomic>
#include <cstdint>

namespace compute {

enum Observation : uint32_t {
  kProfiles = 1,      // COMPUTE_PROFILE: times per op and transfer
  kTraces = 2,        // COMPUTE_TRACE: events for a viewer
  kListsOps = 4,      // COMPUTE_TRACE_OPS: a line for each op and transfer
  kPlaces = 8,        // COMPUTE_PLACEMENT: where ops ran and where their inputs came from
  kTracksLeaks = 16,  // COMPUTE_LEAKS: tensors that are alive
  kNamesRanges = 32   // ranges of the program's threads, for a profiler that is attached
};

// Observations that need the times of submissions, and observations that receive submissions.
inline constexpr uint32_t kTimesWork = kProfiles | kTraces | kListsOps;
inline constexpr uint32_t kWatchesWork = kTimesWork | kNamesRanges;

[[gnu::visibility("hidden")]] extern std::atomic<uint32_t> observations;  // hidden: no table between the load and it
inline bool observes(uint32_t any_of) noexcept { return (observations.load(std::memory_order_relaxed) & any_of) != 0; }

inline void begin_observing(Observation one) noexcept { observations.fetch_or(one); }
inline void stop_observing(Observation one) noexcept { observations.fetch_and(~static_cast<uint32_t>(one)); }

// Nanoseconds of CLOCK_MONOTONIC, which is the host's clock in plugin.h.
int64_t host_now() noexcept;

}  // namespace compute
