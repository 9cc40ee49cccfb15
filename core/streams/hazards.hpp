// SPDX-License-Identifier: Apache-2.0
// Who used a piece of memory last: what later work must come after.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "core/base/lock.hpp"

namespace compute {

class Timeline;

// A use of memory: submission `number` of `timeline`.
struct Access {
  Timeline* timeline = nullptr;
  uint64_t number = 0;
};

// Guarded by `lock`, which is held for look-ups only, never while work is submitted.
struct Hazards {
  explicit Hazards(bool is_versioned) : is_versioned(is_versioned) {}
  Hazards(const Hazards&) = delete;
  Hazards& operator=(const Hazards&) = delete;

  SpinLock lock;
  const bool is_versioned;
  Access last_write;
  Access last_read;  // of the timeline that read last; work of whoever had the memory before counts as a read
  std::vector<Access> more_reads;     // of other timelines
  const Access* inherited = nullptr;  // that work, also where a later use has taken its place above; NULL for none

  std::atomic<uint64_t> version{0};  // where it is counted, rises when a write is submitted

  // (lock) Remembers a use under (timeline, number).
  void record_read(Timeline& timeline, uint64_t number) {
    if (last_read.timeline == &timeline || last_read.timeline == nullptr) {
      last_read = {&timeline, number};
    } else {
      record_other_read(timeline, number);
    }
  }
  void record_write(Timeline& timeline, uint64_t number) {
    last_write = {&timeline, number};
    last_read = {};
    more_reads.clear();
    if (is_versioned) version.fetch_add(1, std::memory_order_relaxed);
  }
  // A write that came after nothing but work of its own timeline: what others are still doing stays on record.
  void record_untracked_write(Timeline& timeline, uint64_t number);

 private:
  void record_other_read(Timeline& timeline, uint64_t number);
};

}  // namespace compute
