// SPDX-License-Identifier: Apache-2.0
#include "core/submission.hpp"

#include <algorithm>
#include <mutex>
#include <vector>

#include "core/buffer.hpp"
#include "core/small_vector.hpp"

namespace compute {
namespace {

// Sorts by address and merges uses of one buffer, so that each lock is taken once and in one order.
std::span<Use> merge(std::span<Use> uses) {
  size_t count = 0;
  for (const Use use : uses) {  // insertion sort: there are three of them
    size_t at = count;
    while (at > 0 && uses[at - 1].buffer > use.buffer) --at;
    if (at > 0 && uses[at - 1].buffer == use.buffer) {
      Use& same = uses[at - 1];
      same.covers = same.write && use.write && (same.covers || use.covers);
      same.write |= use.write;
      continue;
    }
    for (size_t i = count++; i > at; --i) uses[i] = uses[i - 1];
    uses[at] = use;
  }
  return uses.first(count);
}

using Dependencies = SmallVector<Access, 8>;

void add(Dependencies& found, const Timeline& own, const Access& access) {
  if (access.timeline == nullptr || access.timeline == &own || access.timeline->has_reached(access.number)) return;
  // Failed work has ended; waiting for it would pass its failure on to what overwrites its results.
  if (const Failure* failure = access.timeline->failure(); failure != nullptr && access.number > failure->last_good) return;
  for (Access& seen : found) {
    if (seen.timeline == access.timeline) {
      seen.number = std::max(seen.number, access.number);
      return;
    }
  }
  found.push_back(access);
}

// What a use must come after.
void collect(Dependencies& found, const Timeline& own, const Use& use) {
  add(found, own, use.buffer->last_write);
  if (!use.write) return;
  add(found, own, use.buffer->last_read);
  for (const Access& read : use.buffer->more_reads) add(found, own, read);
}

// True iff the use comes after nothing that another timeline may still be doing, and is recorded without allocating.
bool is_settled(const Use& use, const Timeline& own) {
  const auto settled = [&](const Access& access) {
    return access.timeline == &own || access.timeline == nullptr || access.timeline->has_reached(access.number);
  };
  const Buffer& buffer = *use.buffer;
  if (!settled(buffer.last_write)) return false;
  if (use.write) return settled(buffer.last_read) && buffer.more_reads.empty();
  return buffer.last_read.timeline == &own || buffer.last_read.timeline == nullptr;
}

void record(const Use& use, Timeline& timeline, uint64_t number) {
  if (use.write) {
    use.buffer->record_write(timeline, number);
  } else {
    use.buffer->record_read(timeline, number);
  }
}

}  // namespace

Submission::Submission(Timeline& timeline, std::span<Use> uses, const char* op, int64_t numbers)
    : timeline_(timeline), extra_numbers_(static_cast<uint64_t>(numbers - 1)) {
  const std::span<const Use> merged = merge(uses);
  if (!order_at_once(merged, op)) order_after_others(merged, op);
}

// The usual case: one stream, nothing to wait for, nothing failed. Otherwise nothing is locked or recorded on return.
bool Submission::order_at_once(std::span<const Use> uses, const char* op) {
  timeline_.lock.lock();
  if (any_failure() || timeline_.must_throttle()) {
    timeline_.lock.unlock();
    return false;
  }
  for (const Use& use : uses) use.buffer->lock.lock();
  bool settled = true;
  for (const Use& use : uses) settled = settled && is_settled(use, timeline_);
  if (settled) {
    number_ = timeline_.next(op, numbers());
    for (const Use& use : uses) record(use, timeline_, number_);
  }
  for (const Use& use : uses) use.buffer->lock.unlock();
  if (!settled) timeline_.lock.unlock();
  return settled;
}

void Submission::order_after_others(std::span<const Use> uses, const char* op) {
  Timeline& timeline = timeline_;
  SmallVector<Timeline*, 4> others;  // locked as well, in the order of their ids
  const auto lock_all = [&] {
    bool own_locked = false;
    for (Timeline* other : others) {
      if (!own_locked && timeline.id < other->id) {
        timeline.lock.lock();
        own_locked = true;
      }
      other->lock.lock();
    }
    if (!own_locked) timeline.lock.lock();
  };
  const auto unlock_others = [&] {
    for (Timeline* other : others) other->lock.unlock();
  };
  const auto unlock_buffers = [&] {
    for (const Use& use : uses) use.buffer->lock.unlock();
  };

  for (;;) {
    lock_all();
    try {
      timeline.require_healthy();
      if (!timeline.immediate) timeline.throttle_locked();
    } catch (...) {
      unlock_others();
      timeline.lock.unlock();
      throw;
    }
    for (const Use& use : uses) use.buffer->lock.lock();
    Dependencies dependencies;
    try {
      if (!timeline.untracked) {
        for (const Use& use : uses) collect(dependencies, timeline, use);
      }
    } catch (...) {
      unlock_buffers();
      unlock_others();
      timeline.lock.unlock();
      throw;
    }
    Access on_host;                // waited for here without any lock: of another plugin, or this timeline runs work as it is called
    Timeline* unlocked = nullptr;  // one of this plugin that is not locked yet
    for (const Access& access : dependencies) {
      const bool same_plugin = access.timeline->device.plugin == timeline.device.plugin && access.timeline->plugin_stream != 0 &&
                               timeline.plugin_stream != 0;
      if (!same_plugin || timeline.immediate) {
        on_host = access;
      } else if (std::find(others.begin(), others.end(), access.timeline) == others.end()) {
        unlocked = access.timeline;
      }
    }
    const Failure* poison = nullptr;
    if (any_failure()) {
      for (const Use& use : uses) {
        const Access& last = use.buffer->last_write;
        if ((use.write && use.covers) || last.timeline == nullptr) continue;
        poison = last.timeline->poison(last.number);
        if (poison != nullptr) break;
      }
    }
    if (poison == nullptr && on_host.timeline == nullptr && unlocked == nullptr) {
      number_ = timeline.next(op, numbers());
      try {
        for (const Use& use : uses) record(use, timeline, number_);
        unlock_buffers();
      } catch (...) {
        unlock_buffers();
        unlock_others();
        if (timeline.immediate) timeline.reach_immediately();
        timeline.lock.unlock();
        throw;
      }
      try {
        for (const Access& access : dependencies) timeline.wait_for_locked(*access.timeline, access.number, number_);
      } catch (...) {
        unlock_others();
        timeline.lock.unlock();
        throw;
      }
      unlock_others();
      return;
    }
    unlock_buffers();
    unlock_others();
    timeline.lock.unlock();
    if (poison != nullptr) throw_failure(*poison);
    if (on_host.timeline != nullptr) {
      try {
        on_host.timeline->wait(on_host.number, COMPUTE_TIMEOUT_NONE);
      } catch (const Error&) {
        // Failed work has ended; whether its results are needed is looked at again.
        if (on_host.timeline->failure() == nullptr) throw;
      }
      continue;
    }
    others.push_back(unlocked);
    std::sort(others.begin(), others.end(), [](const Timeline* a, const Timeline* b) { return a->id < b->id; });
  }
}

Submission::~Submission() {
  if (timeline_.immediate) timeline_.reach_immediately();
  timeline_.lock.unlock();
}

}  // namespace compute
