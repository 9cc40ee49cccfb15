// SPDX-License-Identifier: Apache-2.0
// Hazards: the last users of a piece of memory, for which later work must wait.
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

// Guarded by `lock`, which is held only for look-ups and copies of few elements, and never while work is submitted.
struct Hazards {
  explicit Hazards(bool is_versioned) : is_versioned(is_versioned) {}
  Hazards(const Hazards&) = delete;
  Hazards& operator=(const Hazards&) = delete;

  SpinLock lock;
  const bool is_versioned;
  Access last_write;
  Access last_read;  // of the timeline that read last; work of an earlier owner of the memory counts as a read
  std::vector<Access> more_reads;     // of other timelines
  const Access* inherited = nullptr;  // that earlier work, even if a later use has replaced it above; NULL if none

  std::atomic<uint64_t> version{0};  // if it is counted, it increases when a write is submitted

  // (lock) Records a use under (timeline, number).
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
  // The same for memory that no other thread knows yet: it needs neither a lock nor a new version.
  void record_first_write(Timeline& timeline, uint64_t number) {
    last_write = {&timeline, number};
    last_read = {};
    more_reads.clear();
  }
  // A write that is ordered only after work on its own timeline: pending work of other timelines stays recorded.
  void record_untracked_write(Timeline& timeline, uint64_t number);

 private:
  void record_other_read(Timeline& timeline, uint64_t number);
};

}  // namespace compute
