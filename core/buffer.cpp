// SPDX-License-Identifier: Apache-2.0
#include "core/buffer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "core/log.hpp"
#include "core/residency.hpp"
#include "core/service.hpp"
#include "core/small_vector.hpp"
#include "core/staging.hpp"
#include "core/submission.hpp"
#include "core/timeline.hpp"

namespace compute {
namespace {

using Accesses = SmallVector<Access, 8>;

void collect_accesses(const Buffer& buffer, Accesses& out) {
  if (buffer.last_write.timeline != nullptr) out.push_back(buffer.last_write);
  if (buffer.last_read.timeline != nullptr) out.push_back(buffer.last_read);
  for (const Access& read : buffer.more_reads) out.push_back(read);
}

// Host buffers that have mirrors or had some, for giving their memory back under pressure.
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

void Buffer::record_other_read(Timeline& timeline, uint64_t number) {
  // The two change places, so that a stream that reads again and again stays on the short path.
  for (Access& read : more_reads) {
    if (read.timeline == &timeline) {
      read = last_read;
      last_read = {&timeline, number};
      return;
    }
  }
  std::erase_if(more_reads, [](const Access& read) { return read.timeline->has_reached(read.number); });
  more_reads.push_back(last_read);
  last_read = {&timeline, number};
}

void Buffer::destroy() noexcept {
  if (promise != 0 && newest.load(std::memory_order_acquire) != nullptr) {
    try {
      bring_home(*this);  // the memory outlives its tensors
    } catch (...) {
      // There is nobody left to tell.
    }
  }
  if (is_in_mirrored_list) drop_mirrors_of(*this);  // also where pressure has taken its mirrors
  if (promise != 0) forget_wrapped(*this);
  Accesses accesses;
  try {
    collect_accesses(*this, accesses);
  } catch (const std::bad_alloc&) {
    return;  // kept for ever rather than freed too early
  }
  if (block) device.memory->free(block, accesses);
  if (deleter == nullptr && !imported) {
    delete this;
    return;
  }
  const auto finish = [this]() noexcept {
    if (imported) device.table.memory_free(device.plugin_device, -1, handle);
    if (deleter != nullptr) deleter(deleter_data, deleter_user);
    delete this;
  };
  const bool idle = std::all_of(accesses.begin(), accesses.end(),
                                [](const Access& access) { return access.timeline->has_reached(access.number); });
  if (idle) {
    finish();
    return;
  }
  try {
    run_in_background([this, finish] {
      Accesses pending;
      collect_accesses(*this, pending);
      for (const Access& access : pending) {
        try {
          access.timeline->wait(access.number, COMPUTE_TIMEOUT_NONE);
        } catch (const Error&) {
          // Failed work has ended too.
        }
      }
      finish();
    });
  } catch (...) {
    // Without memory for the wait, the memory of the program stays in use.
  }
}

Buffer* make_buffer(Device& device, int64_t size_bytes, Timeline* user, MemoryUse use) {
  Block block;
  if (size_bytes > 0) block = device.memory->allocate(size_bytes, user, use);
  try {
    auto* buffer = new Buffer(device, block, size_bytes);
    buffer->handle = block.buffer;
    buffer->base_offset = block.offset_bytes;
    return buffer;
  } catch (...) {
    if (block) device.memory->free(block, {});
    throw;
  }
}

void wait_for_buffer(Buffer& buffer, bool for_writing) {
  Accesses accesses;
  {
    std::lock_guard guard(buffer.lock);
    if (for_writing) {
      collect_accesses(buffer, accesses);
    } else if (buffer.last_write.timeline != nullptr) {
      accesses.push_back(buffer.last_write);
    }
  }
  for (const Access& access : accesses) {
    if (access.timeline->has_reached(access.number) && !any_failure()) continue;
    access.timeline->wait(access.number, COMPUTE_TIMEOUT_NONE);
  }
}

// ---- Mirrors ---------------------------------------------------------------------------------------------------------

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
  }
  timeline.wait(number, COMPUTE_TIMEOUT_NONE);
  device.counters.count_transfer(false, mirror.end - mirror.begin, true);
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

BufferReference mirror_on(Buffer& host, int64_t begin, int64_t end, Device& device, Timeline& timeline, MirrorUse use,
                          const char* op, int64_t* out_begin, bool* out_became_newest) {
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
  if (use != MirrorUse::kRead && !here_is_newest) check_implicit_return(device, op, end - begin);
  if (fresh()) {
    device.counters.mirror_hits.fetch_add(1, std::memory_order_relaxed);
  } else {
    bring_home_locked(host);
    if (found != host.mirrors.end() && found->version == host.version.load(std::memory_order_relaxed)) {
      begin = std::min(begin, found->begin);
      end = std::max(end, found->end);
    }
    const bool upload = !(overwrites && found == host.mirrors.end());
    if (upload) check_implicit_transfer(device, op, end - begin, keeps);
    const bool reuse = found != host.mirrors.end() && found->begin == begin && found->end == end;
    BufferReference made;
    if (!reuse) made.reset(make_buffer(device, end - begin, &timeline, MemoryUse::kMirror));
    Buffer& replica = reuse ? *found->replica : *made;
    const uint64_t version = host.version.load(std::memory_order_acquire);
    if (upload) {
      std::array<Use, 2> uses{{{&host, false}, {&replica, true}}};
      Submission submission(timeline, uses, "write", transfer_numbers(device, end - begin));
      copy_to_device(submission, host.host_address() + begin, {replica.handle, replica.base_offset}, end - begin);
      device.counters.count_transfer(true, end - begin, true);
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
