// SPDX-License-Identifier: Apache-2.0
// The memory of one device: a caching pool over the raw allocations of its plugin (or, for `cpu`, of the system).
#pragma once

#include <array>
#include <atomic>
#include <cassert>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/lock.hpp"
#include "core/streams/hazards.hpp"

namespace compute {

enum class MemoryUse : uint8_t { kTensor, kMirror, kTemporary };

// The purpose of a block, as shown in the table of an out-of-memory error.
struct Holding {
  MemoryUse use = MemoryUse::kTensor;
  int32_t dtype = 0;  // of a tensor: COMPUTE_DTYPE_
  std::span<const int64_t> shape;

  Holding(MemoryUse use) : use(use) {}
  Holding(int32_t dtype, std::span<const int64_t> shape) : dtype(dtype), shape(shape) {}
};

struct Chunk;

// A piece of device memory. `buffer` is the plugin's handle, for host memory the address itself.
struct Block {
  uint64_t buffer = 0;
  uint8_t* base = nullptr;  // where the host addresses byte 0 of the buffer; NULL if it cannot
  int64_t offset_bytes = 0;
  int64_t size_bytes = 0;  // usable, at least the requested size
  Chunk* chunk = nullptr;

  explicit operator bool() const { return chunk != nullptr; }
  // Where the host addresses the block. Only if `base` is not NULL.
  uint8_t* host() const noexcept { return base + offset_bytes; }
};

// Whether COMPUTE_DEBUG requests it: new memory and released memory contain patterns that are NaN in every
// floating-point dtype.
[[gnu::visibility("hidden")]] extern bool memory_is_debugged;  // set before the first block is allocated
inline bool debugs_memory() noexcept { return memory_is_debugged; }
inline constexpr std::array<uint8_t, 2> kNewPattern = {0xF4, 0x7F}, kReleasedPattern = {0xF4, 0xFF};

// For a block that is returned full of kReleasedPattern. Only the holder calls these, the first one before it frees the
// block.
void note_released_pattern(const Block& block) noexcept;
bool had_released_pattern(const Block& block) noexcept;  // and then no more

// The work from before the allocation that may still access a block, as long as the block is held. NULL if there is
// none. Only the holder may ask.
const Access* pending_on(const Block& block) noexcept;

// A block that the pool has just allocated, with the work that may still access it: the timeline that used a block last
// may get it again while that work is queued. The caller that takes the block states how this work is handled.
class [[nodiscard]] Handout {
 public:
  Handout(const Block& block, const Access& pending) : block_(block), pending_(pending) {}

  int64_t size_bytes() const { return block_.size_bytes; }

  // For any user. `out_pending`, whose timeline is NULL if no work is pending, becomes a read in the block's hazard
  // record, so the first writer comes after it. It does not count as a write: if it fails, users of the block are not
  // affected.
  const Block& take(Access& out_pending) const {
    out_pending = pending_;
    return block_;
  }

  // Only for work of `user`, for which the block was allocated: such work comes after all pending work anyway.
  const Block& take_for_work_of([[maybe_unused]] const Timeline& user) const {
    assert(pending_.timeline == nullptr || pending_.timeline == &user);
    return block_;
  }

  // For the host, or for any first user: no work may be pending.
  const Block& take_idle() const {
    assert(pending_.timeline == nullptr);
    return block_;
  }

 private:
  Block block_;
  Access pending_;
};

// The state of the memory from which a pool allocates.
struct MemoryState {
  int64_t total = -1, available = -1;  // bytes; -1: unknown
  std::string limited_by;              // what limits it, if known
};

inline constexpr int64_t kHugePage = int64_t{2} << 20;  // bytes

// Memory as its source hands it out: the buffer, and where the host addresses it; NULL if it cannot.
struct RawBlock {
  uint64_t buffer = 0;
  void* data = nullptr;
};

// The source of a pool's memory. allocate returns false if there is not enough, and throws for any other failure.
class RawMemory {
 public:
  virtual ~RawMemory() = default;
  virtual bool allocate(int64_t size_bytes, RawBlock* out_block) = 0;
  virtual void free(uint64_t buffer, int64_t size_bytes) noexcept = 0;
  virtual std::optional<MemoryState> state() noexcept { return std::nullopt; }
  // Whether free blocks may be poisoned: buffers are addresses on the host, and free unpoisons them.
  virtual bool takes_poison() const noexcept { return false; }
};

struct MemoryShape {
  bool suballocate = true;        // many blocks may share an allocation
  int64_t offset_alignment = 64;  // power of two
  int64_t max_allocation_bytes = INT64_MAX;
};

struct MemoryStatistics {
  int64_t used = 0, peak = 0, reserved = 0, limit = -1, mirrors = 0, live_blocks = 0, requests = 0, raw_requests = 0;
};

struct FreePieces {
  int64_t bytes = 0, largest = 0;
};

// Block sizes are rounded to one of eight sizes per power of two. Freed blocks wait in a list per size, with the
// submission that used them last: the same timeline can reuse them at once, another timeline when that number has been
// reached. Other blocks are cut from slabs by best fit, and free neighbours are merged. Thread-safe.
//
// Only the pool decides when a block may be reused. It never forgets work: work that was pending when a block was
// allocated still counts when the block comes back, whatever its holder states.
class MemoryPool {
 public:
  MemoryPool(std::string device_name, std::unique_ptr<RawMemory> raw, MemoryShape shape, int32_t out_of_memory_code);
  ~MemoryPool();

  // Throws OUT_OF_DEVICE_MEMORY (OUT_OF_MEMORY on cpu) with a table of the memory in use. Before that it frees cached
  // memory, calls `reclaim`, and queries the streams that used free blocks last; on behalf of a `user` it waits for
  // them. Then it calls `relieve`, and tries everything once more. The caller must not hold the lock of a timeline. A
  // block without `user` is idle: no work is pending on it.
  Handout allocate(int64_t size_bytes, Timeline* user, const Holding& holding);
  Block allocate_idle(int64_t size_bytes, MemoryUse use) { return allocate(size_bytes, nullptr, use).take_idle(); }

  // Names a block that is in use, for the table of an out-of-memory error.
  void set_label(const Block& block, const char* label);

  // The label, else dtype and shape, else the size: "float32 [64,64]", "4096 bytes". The block is in use.
  std::string description(const Block& block) const;

  // `one`, `other` and `more`, whose contents it may take, are the last accesses. Accesses that have been reached, and
  // those that were pending at allocation, may be omitted. Allocates nothing.
  void free(const Block& block, const Access& one = {}, const Access& other = {},
            std::vector<Access>* more = nullptr) noexcept;

  // Returns unused memory to the device until at most `keep_bytes` are cached.
  void trim(int64_t keep_bytes) noexcept;

  // Frees every allocation, used or not: the device is about to be closed, and no block will be accessed again.
  void give_everything_back() noexcept;

  // Takes memory from `lent` from now on, or with NULL from the pool's own source again. Without `caches` every block
  // is a separate allocation, which is released when the work that uses it has ended. Throws INVALID_ARGUMENT, and
  // changes nothing, while blocks are in use.
  void lend(std::unique_ptr<RawMemory> lent, bool caches);
  // Gives back lent blocks that were freed while work still used them, if that work has ended. When it returns, no
  // other thread is doing this either.
  void settle_lent() noexcept;
  bool is_lent() const noexcept { return is_lent_.load(std::memory_order_acquire); }

  void set_limit(int64_t limit_bytes);
  // Allocates memory from the device now and keeps it for later, in several pieces if the device limits the size of
  // one.
  void preallocate(int64_t size_bytes);
  MemoryStatistics statistics() const;
  // Cached memory that is not in use. Adjacent free blocks count as one piece, because they merge on allocation.
  FreePieces free_pieces() const;
  // The values of the device's driver, or of the system for host memory; empty if they are unknown.
  std::optional<MemoryState> state() const noexcept { return own_->state(); }

  // Drops mirrors and other memory that can be recreated; returns whether it dropped some.
  std::function<bool()> reclaim;
  // Asks the program to release this many bytes; returns whether it was asked. May be empty.
  std::function<bool(int64_t)> relieve;

  struct Slab;
  struct BySize {
    bool operator()(const Chunk* a, const Chunk* b) const;
  };
  using FreeChunks = std::set<Chunk*, BySize>;

 private:
  Handout take(int64_t size_bytes, Timeline* user, const Holding& holding);
  void record_change(int64_t change) const noexcept;  // about to be freed, if negative
  // (B)
  Handout account(Chunk* chunk, const Holding& holding);
  Chunk* take_cached(int64_t rounded, size_t bin, Timeline* user);
  void put_into_bin(Chunk* chunk) noexcept;
  void defer(Chunk* chunk, const Access& one, const Access& other, std::vector<Access>* more) noexcept;
  void settle_deferred() noexcept;
  void after_free(Chunk* chunk, const std::string* label) noexcept;  // gives (B) up
  Chunk* take_ended() noexcept;                                      // a list, by `below`
  // Neither held: blocks go back to the program that lent them.
  void return_lent(Chunk* list) noexcept;
  void return_ended() noexcept;
  void return_in_background() noexcept;
  // Neither held. Whether there were free blocks that work in flight may use.
  bool settle_streams(bool waits);
  Handout allocate_slowly(int64_t size_bytes, int64_t rounded, Timeline* user, const Holding& holding);
  // After releasing everything that can be released without the program's help.
  std::optional<Handout> take_at_any_price(int64_t size_bytes, int64_t rounded, Timeline* user, const Holding& holding);
  // (L), and (B) not held
  std::optional<Handout> take_slowly(int64_t rounded, Timeline* user, const Holding& holding);
  Chunk* take_best_fit(int64_t rounded);
  Chunk* take_from_device(int64_t rounded);
  std::optional<Handout> take_lent(int64_t size_bytes, const Holding& holding, std::unique_lock<Lock>& held);
  void flush_bins() noexcept;
  void merge_free(Chunk* chunk) noexcept;
  void release_empty_slabs(int64_t keep_bytes) noexcept;
  // (L), (B): in bins, or deferred
  int64_t waiting_bytes() const noexcept { return reserved_ - used_ - free_bytes_; }
  // The size of the block for this number of bytes. Throws if no such block is possible.
  int64_t block_size(int64_t size_bytes);
  int64_t round_down_to_block(int64_t size_bytes) const;
  [[noreturn]] void throw_out_of_memory(int64_t size_bytes);
  std::string holders() const;  // (L), (B)
  FreePieces free_pieces_locked() const noexcept;

  static constexpr int kBins = 8 * 60;

  const std::string device_name_;
  const std::unique_ptr<RawMemory> own_;
  std::unique_ptr<RawMemory> lent_;
  RawMemory* raw_;  // the current source; changes under (L), (B) while no block is in use
  std::atomic<bool> is_lent_{false};
  const MemoryShape shape_;
  const int32_t out_of_memory_code_;
  const int64_t least_block_;  // a power of two
  const int64_t greatest_block_;
  const int64_t small_block_;  // the block size for this many bytes and fewer; 0 if the device has no memory for one
  const size_t small_bin_;

  // (L) guards the division of slabs into blocks; (B) guards the blocks and their counters. Allocating and freeing a
  // cached block takes only (B). Code that needs both takes (L) first.
  mutable Lock lock_;
  FreeChunks free_chunks_;
  std::set<Slab*> slabs_;
  int64_t next_slab_bytes_;
  int64_t free_bytes_ = 0;  // in free_chunks_
  int64_t reserved_ = 0, limit_ = -1, raw_requests_ = 0;

  mutable SpinLock blocks_lock_;
  std::array<Chunk*, kBins> bins_{};  // the one freed last of each size
  Chunk* deferred_ = nullptr;         // those that several timelines may still use
  bool returns_all_ = false;          // lent memory that is not cached: freed blocks are deferred or released at once
  bool watches_frees_ = false;        // returns_all_, or some are deferred
  bool is_returning_ = false;         // in the background
  bool has_new_deferred_ = false;     // since returning began
  int64_t returning_ = 0;             // lent blocks on their way back
  uint64_t frees_ = 0;                // counted while watches_frees_
  int64_t used_ = 0, peak_ = 0, live_blocks_ = 0, requests_ = 0;
  std::array<int64_t, 3> used_by_{};
};

// A block whose users only its holder knows. It returns to its pool when the object is destroyed.
class OwnedBlock {
 public:
  OwnedBlock() = default;
  // No work is pending on it.
  OwnedBlock(MemoryPool& pool, int64_t size_bytes, MemoryUse use)
      : pool_(&pool), block_(pool.allocate_idle(size_bytes, use)) {}
  // Only for work of `user`.
  OwnedBlock(MemoryPool& pool, int64_t size_bytes, Timeline& user, MemoryUse use)
      : pool_(&pool), block_(pool.allocate(size_bytes, &user, use).take_for_work_of(user)) {}
  OwnedBlock(OwnedBlock&& other) noexcept
      : pool_(other.pool_),
        block_(std::exchange(other.block_, {})),
        last_(other.last_),
        uses_(std::move(other.uses_)) {}
  OwnedBlock& operator=(OwnedBlock&&) = delete;
  ~OwnedBlock();

  explicit operator bool() const { return static_cast<bool>(block_); }
  const Block& block() const { return block_; }

  // Called before the plugin gets submission `number` of `timeline`, which uses the block.
  void used_by(Timeline& timeline, uint64_t number);

 private:
  MemoryPool* pool_ = nullptr;
  Block block_;
  Access last_;
  std::vector<Access> uses_;  // replaces `last_` once several timelines use the block
};

}  // namespace compute
