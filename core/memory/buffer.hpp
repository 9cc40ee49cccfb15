// SPDX-License-Identifier: Apache-2.0
// Buffers: memory on a device, the record of who used it last, and for host memory its copies on other devices.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/lock.hpp"
#include "core/base/recycled.hpp"
#include "core/devices/device.hpp"
#include "core/memory/pool.hpp"
#include "core/streams/hazards.hpp"

namespace compute {

struct Buffer;

// The alignment of a byte's address: a power of two, at most 64. The byte is `distance` bytes after a multiple of
// 64.
inline int32_t alignment_at(int64_t distance) noexcept {
  const uint64_t bits = static_cast<uint64_t>(distance) | 64;
  return static_cast<int32_t>(bits & -bits);
}

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
  Block block;          // empty for wrapped and imported memory and for buffers without bytes
  int64_t size_bytes;   // of the range that tensors may use
  uint64_t handle = 0;  // passed to plugins: block.buffer, an imported buffer, or for host memory the address of byte 0
  int64_t base_offset = 0;  // of byte 0, relative to `handle`
  // Distance of byte 0 from the previous multiple of 64 bytes. Not 0 only if core did not choose the address, and in
  // mirrors of such memory.
  int64_t misalignment = 0;

  std::atomic<int64_t> references{1};

  std::atomic<int32_t> exposed{0};  // outstanding writable pointers that core does not control
  int32_t promise = 0;              // COMPUTE_WRAP_, for memory of the program
  std::atomic<int32_t> transfers{COMPUTE_TRANSFERS_DEFAULT};

  // Copies of host memory on other devices, the most recently used one last. `newest` is the mirror that an op wrote,
  // NULL while the host memory itself is up to date.
  Lock mirror_lock;
  std::vector<Mirror> mirrors;
  bool is_in_mirrored_list = false;  // set with the first mirror and never cleared
  std::atomic<Buffer*> newest{nullptr};

  void (*deleter)(void*, void*) = nullptr;
  void* deleter_user = nullptr;
  bool imported = false;  // freed through memory_free with heap -1

  // Whether the program may read or change the memory at any time.
  bool is_exposed() const noexcept {
    return promise == COMPUTE_WRAP_EXPOSED || exposed.load(std::memory_order_acquire) > 0;
  }

  // Of the element at a byte, here and in mirrors.
  int32_t alignment(int64_t offset_bytes) const noexcept { return alignment_at(misalignment + offset_bytes); }
  int32_t alignment_in_mirrors(int64_t offset_bytes) const noexcept {
    return alignment_at(misalignment_of_mirrors() + offset_bytes);
  }
  // An element that is aligned to its size on the host is so in a mirror; no element has more than 16 bytes.
  int64_t misalignment_of_mirrors() const noexcept { return misalignment % 16; }

  uint8_t* host_address() const noexcept { return reinterpret_cast<uint8_t*>(handle) + base_offset; }

  void retain() noexcept { references.fetch_add(1, std::memory_order_relaxed); }
  void release() noexcept {
    // The only holder of a wrapped buffer is not alone: wrap_range may still find the buffer.
    const bool only = block && references.load(std::memory_order_acquire) == 1;
    if (only || references.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy();
  }

 private:
  void destroy() noexcept;
  void free_memory() noexcept;
};

// New memory for `size_bytes` on a device. `user` will probably use it first. NULL: the host uses it first, without
// waiting. It is released like any buffer.
Buffer* make_buffer(Device& device, int64_t size_bytes, Timeline* user, const Holding& holding);
// The same with `allocated_bytes` of memory, which is at least `size_bytes`.
Buffer* make_buffer(Device& device, int64_t size_bytes, int64_t allocated_bytes, Timeline* user,
                    const Holding& holding);

struct BufferRelease {
  void operator()(Buffer* buffer) const noexcept { buffer->release(); }
};
using BufferReference = std::unique_ptr<Buffer, BufferRelease>;

// Waits for work from before the buffer was made that may still access its memory. Needed before the memory is used
// other than by a Submission.
void wait_for_inherited(const Buffer& buffer);

// Waits for the work that wrote `buffer` (and with `for_writing` for all work that reads it), and throws the failure
// that made its contents invalid.
void wait_for_buffer(Buffer& buffer, bool for_writing);
// The same for a caller that overwrites the whole buffer: its earlier contents no longer matter.
void wait_to_overwrite(Buffer& buffer);
// Without waiting: throws a known failure that made the contents invalid.
void require_values(Buffer& buffer);

// Host memory: updates it if an op wrote a copy of it on another device.
void bring_home(Buffer& buffer);

enum class MirrorUse : uint8_t { kRead, kUpdate, kOverwrite };

// The copy of host memory that an op wrote last on another device; NULL while the memory itself is up to date.
BufferReference newest_copy(Buffer& host);
// From now on host memory counts as up to date, and the copies on other devices as stale.
void forget_copies(Buffer& host) noexcept;
// The work for which mirror_on made `replica` the newest copy was not queued.
void take_back_write(Buffer& host, const Buffer& replica) noexcept;

// The copy of [begin, end) of a host buffer on `device`, up to date on `timeline`; transfers only stale parts. The
// returned buffer is a new reference; its byte 0 corresponds to byte *out_begin of the host buffer. kUpdate and
// kOverwrite: the following work writes to the copy (with kOverwrite to all of it), which makes it the newest copy;
// *out_became_newest is true if it was not before.
BufferReference mirror_on(Buffer& host, int64_t begin, int64_t end, Device& device, Timeline& timeline, MirrorUse use,
                          const char* op, int64_t* out_begin, bool* out_became_newest = nullptr);

// Drops all mirrors on `device` except the newest copy; true if there was one.
bool drop_mirrors(Device& device);
void drop_mirrors_of(Buffer& host) noexcept;

// Removes a buffer over the program's memory from the list that later wraps search.
void forget_wrapped(const Buffer& buffer) noexcept;

}  // namespace compute
