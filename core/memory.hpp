// SPDX-License-Identifier: Apache-2.0
// The memory of one device: a caching pool over the raw allocations of its plugin (or, for `cpu`, of the system).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/lock.hpp"

namespace compute {

class Timeline;

// A use of memory: submission `number` of `timeline`.
struct Access {
  Timeline* timeline = nullptr;
  uint64_t number = 0;
};

enum class MemoryUse : uint8_t { kTensor, kMirror, kTemporary };

struct Chunk;

// A piece of device memory. `buffer` is the plugin's handle, for host memory the address itself.
struct Block {
  uint64_t buffer = 0;
  int64_t offset_bytes = 0;
  int64_t size_bytes = 0;  // usable, at least what was asked for
  Chunk* chunk = nullptr;

  explicit operator bool() const { return chunk != nullptr; }
};

// Where a pool gets its memory. allocate returns false if there is not enough, and throws for any other failure.
class RawMemory {
 public:
  virtual ~RawMemory() = default;
  virtual bool allocate(int64_t size_bytes, uint64_t* out_buffer) = 0;
  virtual void free(uint64_t buffer, int64_t size_bytes) noexcept = 0;
};

struct MemoryShape {
  bool suballocate = true;        // many blocks may share an allocation
  int64_t offset_alignment = 64;  // power of two
  int64_t max_allocation_bytes = INT64_MAX;
};

struct MemoryStatistics {
  int64_t used = 0, peak = 0, reserved = 0, limit = -1, mirrors = 0, live_blocks = 0, requests = 0, raw_requests = 0;
};

// Blocks are rounded to one of eight sizes per power of two. Freed blocks wait in a list per size, tagged with the submission
// that used them last: the same timeline takes them back at once, another one when that number has been reached. What
// misses there is cut from slabs by best fit, with neighbours merged. Thread-safe.
class MemoryPool {
 public:
  MemoryPool(std::string device_name, std::unique_ptr<RawMemory> raw, MemoryShape shape, int32_t out_of_memory_code);
  ~MemoryPool();

  // Throws OUT_OF_DEVICE_MEMORY (OUT_OF_MEMORY on cpu) with a table of what holds the memory, after giving back what is
  // cached, calling `reclaim`, and asking the streams that used free blocks last how far they are; on behalf of a `user` it
  // waits for them. No timeline is locked by the caller.
  Block allocate(int64_t size_bytes, Timeline* user, MemoryUse use);

  // `accesses` are the last ones; those that have been reached already may be left out.
  void free(const Block& block, std::span<const Access> accesses) noexcept;

  // Returns unused memory to the device until at most `keep_bytes` are cached.
  void trim(int64_t keep_bytes) noexcept;

  // Frees every allocation, used or not: the device is about to be closed and no block will be touched again.
  void give_everything_back() noexcept;

  void set_limit(int64_t limit_bytes);
  void preallocate(int64_t size_bytes);
  MemoryStatistics statistics() const;

  // Drops mirrors and other memory that can be made again; returns whether it dropped some.
  std::function<bool()> reclaim;

  struct Slab;

 private:
  struct FreeEntry {
    Chunk* chunk;
    Access last;
  };
  struct Deferred {
    Chunk* chunk;
    std::vector<Access> accesses;
  };
  struct BySize {
    bool operator()(const Chunk* a, const Chunk* b) const;
  };

  // (B)
  Block account(Chunk* chunk, MemoryUse use);
  Chunk* take_cached(int64_t rounded, Timeline* user);
  void settle_deferred() noexcept;
  // Neither held. Whether there were free blocks that work in flight may use.
  bool settle_streams(bool waits);
  // (L), and (B) not held
  bool take_slowly(int64_t rounded, Timeline* user, MemoryUse use, Block* out_block);
  Chunk* take_best_fit(int64_t rounded);
  Chunk* take_from_device(int64_t rounded);
  void flush_bins() noexcept;
  void merge_free(Chunk* chunk) noexcept;
  void release_empty_slabs(int64_t keep_bytes) noexcept;
  int64_t round_up(int64_t size_bytes) const;
  [[noreturn]] void throw_out_of_memory(int64_t size_bytes);

  static constexpr int kBins = 8 * 60;

  const std::string device_name_;
  const std::unique_ptr<RawMemory> raw_;
  const MemoryShape shape_;
  const int32_t out_of_memory_code_;

  // (L) guards what is cut into blocks, (B) the blocks and what is counted of them. The way to a cached block and back takes the
  // second alone; who needs both takes them in this order.
  mutable Lock lock_;
  std::set<Chunk*, BySize> free_chunks_;
  std::set<Slab*> slabs_;
  int64_t next_slab_bytes_;
  int64_t free_bytes_ = 0;  // in free_chunks_
  int64_t reserved_ = 0, limit_ = -1, raw_requests_ = 0;

  mutable SpinLock blocks_lock_;
  std::array<std::vector<FreeEntry>, kBins> bins_;
  std::vector<Deferred> deferred_;
  int64_t binned_bytes_ = 0;
  uint64_t frees_ = 0;
  int64_t used_ = 0, peak_ = 0, live_blocks_ = 0, requests_ = 0;
  std::array<int64_t, 3> used_by_{};
};

// Anonymous pages, on huge pages where large.
std::unique_ptr<RawMemory> make_host_memory();

}  // namespace compute
