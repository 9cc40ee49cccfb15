// SPDX-License-Identifier: Apache-2.0
// Submits work on a timeline in an order that respects all other uses of its buffers.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/small_vector.hpp"
#include "core/observation/work.hpp"
#include "core/streams/hazards.hpp"
#include "core/streams/timeline.hpp"

namespace compute {

struct Use {
  Hazards* hazards = nullptr;  // of the memory
  bool write = false;
  bool covers = true;   // a write that overwrites the whole buffer, so that earlier failures no longer matter
  bool is_new = false;  // memory that the call made, which no other thread knows yet
};

// A Submission lives from the search for work that it must come after until the plugin has accepted it. The constructor
// locks the timeline, orders it after every conflicting use of the buffers on other timelines, and records the uses
// under a new number. The caller then submits exactly this work and destroys the object. Throws, with nothing recorded,
// if the timeline has failed or an input is invalid because of a failure.
class Submission {
 public:
  // Sorts and merges `uses` in place; each has a buffer. Work in several parts takes `numbers` numbers, and the uses
  // get the last one. `work_bytes` as for Timeline::part_locked.
  Submission(Timeline& timeline, std::span<Use> uses, const char* op, int64_t numbers = 1, int64_t work_bytes = 0);
  ~Submission();
  Submission(const Submission&) = delete;
  Submission& operator=(const Submission&) = delete;

  Timeline& timeline() const { return timeline_; }
  uint64_t number() const { return number_; }
  // Of the parts. Observed work has two more numbers, for marks before and after it.
  uint64_t first_number() const {
    return number_ - extra_numbers_ + (unusual_ != nullptr && unusual_->takes_times() ? 1 : 0);
  }

  // What the observers learn about it; NULL if it is not observed.
  Work* observed() noexcept { return unusual_ != nullptr ? unusual_->work.get() : nullptr; }

  // Handles the plugin's result for a part of this submission. Every call that queues work uses it. Throws an error. If
  // a part was queued before it, the outputs have no values; else they are unchanged. `op` is the op that the error
  // names if it names none.
  void check(compute_error* error, const char* op = "") {
    if (error != nullptr) [[unlikely]]
      refuse(error, op);
    ++parts_;
  }
  // The outputs of this submission have no values, but the stream continues.
  void spoil(const Error& error) noexcept { timeline_.spoil(number_, error); }

 private:
  int64_t numbers() const { return static_cast<int64_t>(extra_numbers_) + 1; }
  bool order_at_once(std::span<const Use> uses, const char* op);
  void order_after_others(std::span<const Use> uses, const char* op);
  SmallVector<Access, 8> look_at_contents(std::span<const Use> uses);
  [[noreturn]] void refuse(compute_error* error, const char* op);
  void note_overwritten(const Use& use);
  void keep_contents() noexcept;
  void begin_observed(const char* op);
  void mark_begin() noexcept;
  void end_observed() noexcept;
  void end_unusual() noexcept;  // unlocks the timeline, too

  // State that most submissions do not need, behind one pointer that they test once.
  struct Unusual {
    struct Place {
      Hazards* hazards;
      Access last_write;
    };
    // Results for which it was not known whether they have values, with the work that wrote them.
    std::vector<Place> overwritten;
    int exceptions = 0;  // in flight before the first of them was found
    WorkReference work;  // NULL: the submission is not observed
    NamedRange range;

    bool takes_times() const noexcept { return work != nullptr && work->is_timed; }
  };

  Timeline& timeline_;
  uint64_t number_ = 0;
  uint64_t extra_numbers_ = 0;
  int32_t parts_ = 0;  // that are queued
  std::unique_ptr<Unusual> unusual_;
};

}  // namespace compute
