// SPDX-License-Identifier: Apache-2.0
// Buffers: memory on a device, with the record of who used it last, and for host memory its copies on other devices.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/lock.hpp"
#include "core/base/recycled.hpp"
#include "core/memory/pool.hpp"
#include "core/selection/device.hpp"
#include "core/streams/hazards.hpp"

namespace compute {

struct Buffer;

// The copy of a byte range of a host buffer on another device.
struct Mirror {
  Device* device = nullptr;
  Buffer* replica = nullptr;  // owned reference; its byte 0 is byte `begin` of the host buffer
  int64_t begin = 0;
  int64_t end = 0;
  uint64_t version = 0;  // of the host buffer when it was copied
};

struct Buffer : Hazards, Recycled<Buffer> {
  Buffer(Device& device, int64_t size_bytes) : Hazards(device.is_host), device(device), size_bytes(size_bytes) {}
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  Device& device;
  Block block;         // empty for wrapped and imported memory and for buffers without bytes
  int64_t size_bytes;  // of the range that tensors may use
  uint64_t handle =
      0;  // what plugins are given: block.buffer, an imported buffer, or for host memory the address of byte 0
  int64_t base_offset = 0;  // of byte 0 behind `handle`

  std::atomic<int64_t> references{1};

  std::atomic<int32_t> exposed{0};  // outstanding writable pointers that core does not control
  int32_t promise = 0;              // COMPUTE_WRAP_ for memory of the program's own

  // Copies of host memory on other devices, most recently used last. `newest` is the mirror that an op wrote, NULL
  // while the host memory itself is up to date.
  Lock mirror_lock;
  std::vector<Mirror> mirrors;
  bool is_in_mirrored_list = false;  // set with the first mirror, and then for ever
  std::atomic<Buffer*> newest{nullptr};

  void (*deleter)(void*, void*) = nullptr;
  void* deleter_user = nullptr;
  bool imported = false;  // freed through memory_free with heap -1

  // Whether the program may look at or change the memory at any time.
  bool is_exposed() const noexcept {
    return promise == COMPUTE_WRAP_EXPOSED || exposed.load(std::memory_order_acquire) > 0;
  }

  uint8_t* host_address() const noexcept { return reinterpret_cast<uint8_t*>(handle) + base_offset; }

  void retain() noexcept { references.fetch_add(1, std::memory_order_relaxed); }
  void release() noexcept {
    // A wrapped buffer's only holder is not alone: wrap_range may find it again.
    const bool only = block && references.load(std::memory_order_acquire) == 1;
    if (only || references.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy();
  }

 private:
  void destroy() noexcept;
  void free_memory() noexcept;
};

// New memory for `size_bytes` on a device. Most likely `user` uses it first; NULL: the host does, without asking.
// Releases like any buffer.
Buffer* make_buffer(Device& device, int64_t size_bytes, Timeline* user, const Holding& holding);
// The same with `allocated_bytes` of memory, which is not less, for a device that pads.
Buffer* make_buffer(Device& device, int64_t size_bytes, int64_t allocated_bytes, Timeline* user,
                    const Holding& holding);

struct BufferRelease {
  void operator()(Buffer* buffer) const noexcept { buffer->release(); }
};
using BufferReference = std::unique_ptr<Buffer, BufferRelease>;

// Waits for work that may still be touching the memory of `buffer` from before it was made, for whoever is about to use
// it by other means than a Submission.
void wait_for_inherited(const Buffer& buffer);

// Waits for the work that wrote `buffer` (and with `for_writing` for all that reads it), and throws what made its
// contents worthless.
void wait_for_buffer(Buffer& buffer, bool for_writing);
// The same for somebody who overwrites all of it: what it held does not matter from now on.
void wait_to_overwrite(Buffer& buffer);
// Without waiting: throws what is known to have made the contents worthless.
void require_values(Buffer& buffer);

// Host memory: brings it up to date if an op wrote a copy of it on another device.
void bring_home(Buffer& buffer);

enum class MirrorUse : uint8_t { kRead, kUpdate, kOverwrite };

// The copy of host memory that an op wrote last on another device; NULL while the memory itself is up to date.
BufferReference newest_copy(Buffer& host);
// Host memory counts as up to date from now on: what other devices hold is stale.
void forget_copies(Buffer& host) noexcept;
// The work that mirror_on made `replica` the newest copy for was not queued.
void take_back_write(Buffer& host, const Buffer& replica) noexcept;

// The copy of [begin, end) of a host buffer on `device`, up to date on `timeline`; transfers only what is stale. The
// returned buffer is a new reference; *out_begin is the host byte that its byte 0 stands for. kUpdate and kOverwrite:
// the work that follows writes it, all of it in the latter case, which makes it the newest copy; *out_became_newest is
// true if it was not before.
BufferReference mirror_on(Buffer& host, int64_t begin, int64_t end, Device& device, Timeline& timeline, MirrorUse use,
                          const char* op, int64_t* out_begin, bool* out_became_newest = nullptr);

// Drops all mirrors on `device` that are not the newest copy; true if there was one.
bool drop_mirrors(Device& device);
void drop_mirrors_of(Buffer& host) noexcept;

// Takes a buffer over the program's memory out of the list that later wraps look into.
void forget_wrapped(const Buffer& buffer) noexcept;

}  // namespace compute
