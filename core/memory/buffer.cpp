// SPDX-License-Identifier: Apache-2.0
#include "core/memory/buffer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>

#include "core/base/small_vector.hpp"
#include "core/memory/host_copy.hpp"
#include "core/memory/pressure.hpp"
#include "core/memory/residency.hpp"
#include "core/memory/staging.hpp"
#include "core/memory/transfer_count.hpp"
#include "core/process/log.hpp"
#include "core/process/service.hpp"
#include "core/streams/submission.hpp"
#include "core/streams/timeline.hpp"

namespace compute {
namespace {

using Accesses = SmallVector<Access, 8>;

void collect_accesses(const Buffer& buffer, Accesses& out) {
  if (buffer.last_write.timeline != nullptr) out.push_back(buffer.last_write);
  if (buffer.last_read.timeline != nullptr) out.push_back(buffer.last_read);
  for (const Access& read : buffer.more_reads) out.push_back(read);
}

// Host buffers that have or had mirrors, to release their memory under pressure.
struct MirroredBuffers {
  std::mutex mutex;
  std::vector<Buffer*> buffers;
};

MirroredBuffers& mirrored_buffers() {
  static auto* const immortal = new MirroredBuffers;
  return *immortal;
}

// Called with the mirror lock held.
void remember_mirrored(Buffer& host) {
  if (host.is_in_mirrored_list) return;
  MirroredBuffers& all = mirrored_buffers();
  std::lock_guard guard(all.mutex);
  all.buffers.push_back(&host);
  host.is_in_mirrored_list = true;
}

void forget_mirrored(Buffer& host) noexcept {
  MirroredBuffers& all = mirrored_buffers();
  std::lock_guard guard(all.mutex);
  std::erase(all.buffers, &host);
}

}  // namespace

// ---- Patterns in memory, for COMPUTE_DEBUG=memory -------------------------------------------------------------------

namespace {

// Fills the buffer's memory with the pattern, in stream order; on the host immediately, after its last use.
void fill_with(Buffer& buffer, Timeline& timeline, const std::array<uint8_t, 2>& pattern) {
  Device& device = buffer.device;
  const Block& block = buffer.block;
  Use use{&buffer, true, true};
  Submission submission(timeline, {&use, 1}, "debug fill");
  if (device.plugin != nullptr) {
    const auto offset = static_cast<uint64_t>(block.offset_bytes);
    const compute_plugin_operand place{block.buffer + (device.is_host ? offset : 0),
                                       device.is_host ? 0 : block.offset_bytes};
    submission.check(device.table.fill(timeline.plugin_stream, place, block.size_bytes, pattern.data(), 2));
  } else {
    fill_bytes(buffer.host_address(), block.size_bytes, pattern.data(), 2);
  }
}

// Logs an error if the memory was written to after its release. The comparison runs in the background: the stream may
// wait for a semaphore that the calling thread has yet to signal.
void check_released_pattern(Buffer& buffer, Timeline& timeline) {
  Device& device = buffer.device;
  const int64_t bytes = buffer.block.size_bytes;
  auto copy = std::make_unique<std::vector<uint8_t>>(static_cast<size_t>(bytes));
  uint64_t number = 0;
  {
    Use use{&buffer, true, true};  // after all that was pending on it
    Submission submission(timeline, {&use, 1}, "debug read");
    number = submission.number();
    if (device.is_host) {
      std::memcpy(copy->data(), buffer.host_address(), copy->size());
    } else {
      const compute_plugin_operand place{buffer.block.buffer, buffer.block.offset_bytes};
      submission.check(device.table.copy_to_host(timeline.plugin_stream, place, copy->data(), bytes));
    }
  }
  run_in_background([&device, &timeline, number, copied = copy.release()] {
    if (!timeline.wait_quietly(number)) return;  // the device may still write the copy
    const std::unique_ptr<const std::vector<uint8_t>> found(copied);
    timeline.wait_for_own(number);  // throws if there is no copy
    for (size_t i = 0; i < found->size(); ++i) {
      if ((*found)[i] == kReleasedPattern[i % 2]) continue;
      log(COMPUTE_LOG_ERROR, "memory",
          fmt::format("{}: a released block of {} bytes was written to after its release, first at byte {}",
                      device.name, found->size(), i));
      return;
    }
  });
}

// New memory holds a NaN pattern.
void mark_new(Buffer& buffer, Timeline* user) noexcept {
  try {
    Timeline& own = default_timeline(buffer.device);
    Timeline& timeline = user != nullptr && !buffer.device.is_host ? *user : own;
    if (had_released_pattern(buffer.block)) check_released_pattern(buffer, timeline);
    fill_with(buffer, timeline, kNewPattern);
    if (user == nullptr) timeline.wait_for_own(timeline.submitted());
  } catch (...) {
    // Without a working stream there is no pattern.
  }
}

// The stream that the buffer was used on last, where it takes more work: memory that another one filled would have to
// wait for that before the first takes it back. NULL: there is none, or it orders nothing.
Timeline* last_user(const Buffer& buffer) noexcept {
  Timeline* last = buffer.last_write.timeline != nullptr ? buffer.last_write.timeline : buffer.last_read.timeline;
  const bool takes_work = last != nullptr && &last->device == &buffer.device && !last->immediate && !last->untracked &&
                          last->failure() == nullptr && last->recording.load(std::memory_order_relaxed) == nullptr;
  return takes_work ? last : nullptr;
}

void mark_released(Buffer& buffer) noexcept {
  const InUse in_use;
  if (is_shut_down() || buffer.device.health.load() != COMPUTE_HEALTH_GOOD) return;
  try {
    Timeline* last = last_user(buffer);
    std::optional<StreamInUse> stream;
    if (last != nullptr && stream.emplace(*last).handle() == 0) last = nullptr;
    fill_with(buffer, last != nullptr ? *last : default_timeline(buffer.device), kReleasedPattern);
    note_released_pattern(buffer.block);
  } catch (...) {
    // As above.
  }
}

}  // namespace

void Buffer::destroy() noexcept {
  const bool is_own = promise == 0 && !is_in_mirrored_list && deleter == nullptr && !imported;
  if (is_own && !debugs_memory()) [[likely]] {
    free_memory();
    return;
  }
  const CallerWorld world;
  if (promise != 0 && newest.load(std::memory_order_acquire) != nullptr) {
    try {
      bring_home(*this);  // the memory outlives its tensors
    } catch (...) {
      // No caller is left to receive the error.
    }
  }
  if (is_in_mirrored_list) drop_mirrors_of(*this);  // also where pressure has taken its mirrors
  if (promise != 0) forget_wrapped(*this);
  if (block && debugs_memory()) mark_released(*this);
  free_memory();
}

// Called once nothing uses the contents.
void Buffer::free_memory() noexcept {
  if (block) device.memory->free(block, last_write, last_read, &more_reads);
  if (deleter == nullptr && !imported) {
    delete this;
    return;
  }
  const auto finish = [this]() noexcept {
    if (imported && device.health.load() != COMPUTE_HEALTH_FORKED) device.table.memory_free(-1, handle);
    if (deleter != nullptr) deleter(nullptr, deleter_user);
    delete this;
  };
  const auto is_idle = [](const Access& access) {
    return access.timeline == nullptr || access.timeline->has_ended(access.number);
  };
  if (is_idle(last_write) && is_idle(last_read) && std::all_of(more_reads.begin(), more_reads.end(), is_idle)) {
    finish();
    return;
  }
  try {
    run_in_background([this, finish] {
      // No caller is left to receive failures.
      const auto has_ended = [](const Access& access) {
        return access.timeline == nullptr || access.timeline->wait_quietly(access.number);
      };
      // The memory that a stream may use which hangs stays in use.
      if (has_ended(last_write) && has_ended(last_read) && std::all_of(more_reads.begin(), more_reads.end(), has_ended))
        finish();
    });
  } catch (...) {
    // Without memory for the wait, the memory of the program stays in use.
  }
}

Buffer* make_buffer(Device& device, int64_t size_bytes, Timeline* user, const Holding& holding) {
  return make_buffer(device, size_bytes, size_bytes, user, holding);
}

Buffer* make_buffer(Device& device, int64_t size_bytes, int64_t allocated_bytes, Timeline* user,
                    const Holding& holding) {
  std::unique_ptr<Buffer> buffer(new Buffer(device, size_bytes));
  if (size_bytes == 0) return buffer.release();
  buffer->block = device.memory->allocate(allocated_bytes, user, holding).take(buffer->last_read);
  buffer->inherited = pending_on(buffer->block);
  buffer->handle = buffer->block.buffer;
  buffer->base_offset = buffer->block.offset_bytes;
  if (debugs_memory()) [[unlikely]]
    mark_new(*buffer, user);
  return buffer.release();
}

void wait_for_inherited(const Buffer& buffer) {
  const Access before = buffer.inherited != nullptr ? *buffer.inherited : Access{};
  if (before.timeline == nullptr || before.timeline->has_ended(before.number)) return;
  if (!before.timeline->wait_quietly(before.number)) before.timeline->require_healthy();
}

void wait_for_buffer(Buffer& buffer, bool for_writing) {
  wait_for_inherited(buffer);
  Accesses accesses;
  Access last_write;
  {
    std::lock_guard guard(buffer.lock);
    last_write = buffer.last_write;
    if (for_writing) collect_accesses(buffer, accesses);
  }
  for (const Access& access : accesses) access.timeline->require_end(access.number);
  if (last_write.timeline == nullptr) return;
  if (last_write.timeline->has_reached(last_write.number) && !any_failure()) return;
  last_write.timeline->wait(last_write.number, COMPUTE_TIMEOUT_NONE);
}

void wait_to_overwrite(Buffer& buffer) {
  wait_for_inherited(buffer);
  Accesses accesses;
  Access last_write;
  {
    std::lock_guard guard(buffer.lock);
    last_write = buffer.last_write;
    collect_accesses(buffer, accesses);
  }
  for (const Access& access : accesses) access.timeline->require_end(access.number);
  std::lock_guard guard(buffer.lock);
  // Another thread may have queued a write in between.
  if (buffer.last_write.timeline == last_write.timeline && buffer.last_write.number == last_write.number)
    buffer.last_write = {};
}

void require_values(Buffer& buffer) {
  if (!any_failure()) return;
  Access last_write;
  {
    std::lock_guard guard(buffer.lock);
    last_write = buffer.last_write;
  }
  if (last_write.timeline == nullptr) return;
  if (const Failure* failure = last_write.timeline->poison(last_write.number)) throw_failure(*failure);
}

// ---- Mirrors --------------------------------------------------------------------------------------------------------

namespace {

// Copies the newest mirror back. Called with the mirror lock held.
void bring_home_locked(Buffer& host) {
  Buffer* newest = host.newest.load(std::memory_order_acquire);
  if (newest == nullptr) return;
  const auto found = std::find_if(host.mirrors.begin(), host.mirrors.end(),
                                  [&](const Mirror& mirror) { return mirror.replica == newest; });
  Mirror& mirror = *found;
  Device& device = *mirror.device;
  Timeline& timeline = default_timeline(device);
  std::array<Use, 2> uses{{{newest, false}, {&host, true}}};
  uint64_t number = 0;
  {
    const int64_t bytes = mirror.end - mirror.begin;
    Submission submission(timeline, uses, "read", transfer_numbers(device, bytes));
    number = submission.number();
    copy_to_host(submission, {newest->handle, newest->base_offset}, host.host_address() + mirror.begin, bytes);
    count_transfer(submission,
                   {&device, nullptr, bytes, true, "write back", nullptr, host.device.memory.get(), host.block});
  }
  timeline.wait_for_own(number);
  mirror.version = host.version.load(std::memory_order_relaxed);
  host.newest.store(nullptr, std::memory_order_release);
}

}  // namespace

void bring_home(Buffer& host) {
  if (host.newest.load(std::memory_order_acquire) == nullptr) return;
  std::lock_guard guard(host.mirror_lock);
  bring_home_locked(host);
}

BufferReference newest_copy(Buffer& host) {
  if (host.newest.load(std::memory_order_acquire) == nullptr) return nullptr;
  std::lock_guard guard(host.mirror_lock);
  Buffer* newest = host.newest.load(std::memory_order_acquire);
  if (newest != nullptr) newest->retain();
  return BufferReference(newest);
}

void forget_copies(Buffer& host) noexcept {
  std::lock_guard guard(host.mirror_lock);
  host.version.fetch_add(1, std::memory_order_acq_rel);
  host.newest.store(nullptr, std::memory_order_release);
}

void take_back_write(Buffer& host, const Buffer& replica) noexcept {
  std::lock_guard guard(host.mirror_lock);
  if (host.newest.load(std::memory_order_acquire) != &replica) return;
  host.version.fetch_add(1, std::memory_order_acq_rel);
  host.newest.store(nullptr, std::memory_order_release);
}

namespace {

BufferReference mirror_once(Buffer& host, int64_t begin, int64_t end, Device& device, Timeline& timeline, MirrorUse use,
                            const char* op, int64_t* out_begin, bool* out_became_newest) {
  const PressureHeldOff held_off;
  constexpr int64_t kGrain = 64;  // so that offsets keep their alignment
  const bool overwrites = use == MirrorUse::kOverwrite && begin % kGrain == 0;
  begin = begin / kGrain * kGrain;
  const bool keeps = !host.is_exposed();
  std::lock_guard guard(host.mirror_lock);
  auto found = std::find_if(host.mirrors.begin(), host.mirrors.end(),
                            [&](const Mirror& mirror) { return mirror.device == &device; });
  const bool here_is_newest =
      found != host.mirrors.end() && host.newest.load(std::memory_order_acquire) == found->replica;
  const auto covers = [&] { return found->begin <= begin && found->end >= end; };
  const auto fresh = [&] {
    return found != host.mirrors.end() && covers() &&
           (here_is_newest || (keeps && found->version == host.version.load(std::memory_order_relaxed)));
  };
  if (use != MirrorUse::kRead && !here_is_newest) check_implicit_return(device, op, end - begin, host.transfers);
  if (fresh()) {
    device.counters.mirror_hits.fetch_add(1, std::memory_order_relaxed);
  } else {
    bring_home_locked(host);
    if (found != host.mirrors.end() && found->version == host.version.load(std::memory_order_relaxed)) {
      begin = std::min(begin, found->begin);
      end = std::max(end, found->end);
    }
    const bool upload = !(overwrites && found == host.mirrors.end());
    if (upload) check_implicit_transfer(device, op, end - begin, keeps, host.transfers);
    const bool reuse = found != host.mirrors.end() && found->begin == begin && found->end == end;
    BufferReference made;
    if (!reuse) {
      const int64_t misalignment = host.misalignment_of_mirrors();
      made.reset(make_buffer(device, end - begin, end - begin + misalignment, &timeline, MemoryUse::kMirror));
      made->base_offset += misalignment;
      made->misalignment = misalignment;
    }
    Buffer& replica = reuse ? *found->replica : *made;
    const uint64_t version = host.version.load(std::memory_order_acquire);
    if (upload) {
      std::array<Use, 2> uses{{{&host, false}, {&replica, true}}};
      Submission submission(timeline, uses, "write", transfer_numbers(device, end - begin));
      copy_to_device(submission, host.host_address() + begin, {replica.handle, replica.base_offset}, end - begin);
      count_transfer(submission,
                     {nullptr, &device, end - begin, true, op, nullptr, host.device.memory.get(), host.block});
    }
    if (!reuse) {
      if (found == host.mirrors.end()) {
        remember_mirrored(host);
        host.mirrors.push_back({&device, made.release(), begin, end, version});
        found = host.mirrors.end() - 1;
      } else {
        found->replica->release();
        *found = {&device, made.release(), begin, end, version};
      }
    }
    found->version = version;
  }
  if (use != MirrorUse::kRead) {
    found->version = host.version.fetch_add(1, std::memory_order_acq_rel) + 1;
    const Buffer* before = host.newest.exchange(found->replica, std::memory_order_acq_rel);
    if (out_became_newest != nullptr) *out_became_newest = before != found->replica;
  }
  *out_begin = found->begin;
  found->replica->retain();
  return BufferReference(found->replica);
}

}  // namespace

// Where memory is short the program is asked to release some while the mirror lock is not held.
BufferReference mirror_on(Buffer& host, int64_t begin, int64_t end, Device& device, Timeline& timeline, MirrorUse use,
                          const char* op, int64_t* out_begin, bool* out_became_newest) {
  try {
    return mirror_once(host, begin, end, device, timeline, use, op, out_begin, out_became_newest);
  } catch (const Error& error) {
    if (error.code != COMPUTE_ERROR_OUT_OF_DEVICE_MEMORY && error.code != COMPUTE_ERROR_OUT_OF_MEMORY) throw;
    if (!relieve_pressure(device, end - begin)) throw;
  }
  return mirror_once(host, begin, end, device, timeline, use, op, out_begin, out_became_newest);
}

bool drop_mirrors(Device& device) {
  MirroredBuffers& all = mirrored_buffers();
  std::vector<Buffer*> dropped;
  {
    std::lock_guard guard(all.mutex);
    for (Buffer* host : all.buffers) {
      const std::unique_lock held(host->mirror_lock, std::try_to_lock);
      if (!held) continue;
      dropped.reserve(dropped.size() + host->mirrors.size());
      const Buffer* newest = host->newest.load(std::memory_order_acquire);
      std::erase_if(host->mirrors, [&](const Mirror& mirror) {
        if (mirror.device != &device || mirror.replica == newest) return false;
        dropped.push_back(mirror.replica);
        return true;
      });
    }
  }
  for (Buffer* replica : dropped) replica->release();
  return !dropped.empty();
}

void drop_mirrors_of(Buffer& host) noexcept {
  forget_mirrored(host);
  std::lock_guard guard(host.mirror_lock);
  for (const Mirror& mirror : host.mirrors) mirror.replica->release();
  host.mirrors.clear();
  host.newest.store(nullptr, std::memory_order_release);
}

}  // namespace compute
