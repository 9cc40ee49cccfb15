// SPDX-License-Identifier: Apache-2.0
#include "core/memory/pool.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <mutex>
#include <thread>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/scope.hpp"
#include "core/expressions/dtype.hpp"
#include "core/memory/poison.hpp"
#include "core/observation/observed.hpp"
#include "core/observation/work.hpp"
#include "core/process/process_config.hpp"
#include "core/process/service.hpp"
#include "core/streams/timeline.hpp"
#include "core/text/printable.hpp"

namespace compute {
namespace {

constexpr int64_t kFirstSlab = int64_t{2} << 20;
constexpr int64_t kLargestSlab = int64_t{64} << 20;
constexpr int64_t kOwnSlabFrom = int64_t{32} << 20;  // larger blocks get a separate allocation

constexpr int64_t kGreatestBlock = int64_t{1} << 60;  // more than any address space has; sums of such sizes still fit

// `multiple` is a power of two.
int64_t round_to(int64_t value, int64_t multiple) { return (value + multiple - 1) & -multiple; }

// One of eight sizes per power of two, 64 bytes at least.
size_t bin_of(int64_t rounded) {
  const int exponent = 63 - std::countl_zero(static_cast<uint64_t>(rounded));
  const int eighth = exponent >= 3 ? static_cast<int>((rounded >> (exponent - 3)) & 7) : 0;
  return static_cast<size_t>(exponent * 8 + eighth);
}

bool has_ended(const Access& last) noexcept {
  return last.timeline == nullptr || last.timeline->has_ended(last.number);
}

// Whether no work can touch the memory any more. Queued work may continue for a while on a failed stream.
bool is_over(const Access& last) noexcept { return last.timeline == nullptr || last.timeline->immediate; }

// Makes `last` represent both. False if they are on two timelines that may still be busy.
[[gnu::always_inline]] inline bool join(Access& last, const Access& access) noexcept {
  if (access.timeline == nullptr) return true;
  if (last.timeline == access.timeline) {
    last.number = std::max(last.number, access.number);
  } else if (last.timeline == nullptr || last.timeline->has_ended(last.number)) {
    last = access;
  } else {
    return access.timeline->has_ended(access.number);
  }
  return true;
}

}  // namespace

struct MemoryPool::Slab {
  RawBlock raw;
  int64_t size_bytes;
  Chunk* first;
};

// A range of a slab: in use, in a bin, deferred, or free for best fit. It holds the room that it needs in each of them,
// so that releasing memory never allocates. Its holder gets it as a block, copied as a whole.
struct Chunk : Block {
  Chunk() { chunk = this; }
  Chunk(const Chunk&) = delete;
  Chunk& operator=(const Chunk&) = delete;

  void lie_in(MemoryPool::Slab* owner) noexcept {
    slab = owner;
    buffer = owner->raw.buffer;
    base = static_cast<uint8_t*>(owner->raw.data);
  }

  MemoryPool::Slab* slab = nullptr;
  Chunk* previous = nullptr;  // neighbours by address in the same slab
  Chunk* next = nullptr;
  Chunk* below = nullptr;  // in its bin, or among those deferred
  Access pending;          // queued work that may touch it; while it is in use, work from before it was handed out
  size_t bin = 0;          // of its size; not kept while it is free for best fit
  bool mergeable = false;  // in free_chunks_
  bool in_use = false;
  MemoryUse use = MemoryUse::kTensor;
  bool has_released_pattern = false;
  int32_t dtype = 0;  // of the tensor that it was made for
  int32_t rank = 0;
  std::array<int64_t, 4> extents{};  // the first ones
  std::unique_ptr<std::string> label;
  std::shared_ptr<const std::string> scope;  // in which it was made
  std::array<Access, 2> uses;                // while it is deferred, in addition to `pending`
  std::vector<Access> more_uses;
  MemoryPool::FreeChunks::node_type entry;  // in free_chunks_, while it is not there

  bool is_idle() const noexcept {
    return has_ended(pending) && has_ended(uses[0]) && has_ended(uses[1]) &&
           std::all_of(more_uses.begin(), more_uses.end(), has_ended);
  }
};

namespace {

uint64_t address_of(const Chunk& chunk) { return chunk.buffer + static_cast<uint64_t>(chunk.offset_bytes); }

std::unique_ptr<Chunk> make_chunk() {
  auto chunk = std::make_unique<Chunk>();
  MemoryPool::FreeChunks room;
  chunk->entry = room.extract(room.insert(chunk.get()).first);
  return chunk;
}

}  // namespace

bool memory_is_debugged = false;

void note_released_pattern(const Block& block) noexcept { block.chunk->has_released_pattern = true; }
bool had_released_pattern(const Block& block) noexcept {
  return std::exchange(block.chunk->has_released_pattern, false);
}

const Access* pending_on(const Block& block) noexcept { return block ? &block.chunk->pending : nullptr; }

bool MemoryPool::BySize::operator()(const Chunk* a, const Chunk* b) const {
  if (a->size_bytes != b->size_bytes) return a->size_bytes < b->size_bytes;
  if (a->slab != b->slab) return a->slab < b->slab;
  return a->offset_bytes < b->offset_bytes;
}

MemoryPool::MemoryPool(std::string device_name, std::unique_ptr<RawMemory> raw, MemoryShape shape,
                       int32_t out_of_memory_code)
    : device_name_(std::move(device_name)),
      own_(std::move(raw)),
      raw_(own_.get()),
      shape_(shape),
      out_of_memory_code_(out_of_memory_code),
      least_block_(std::max<int64_t>(64, shape.offset_alignment)),
      greatest_block_(round_down_to_block(shape.max_allocation_bytes)),
      small_block_(least_block_ <= greatest_block_ ? least_block_ : 0),
      small_bin_(small_block_ > 0 ? bin_of(small_block_) : 0),
      next_slab_bytes_(kFirstSlab) {
  // Once, before any block is there to be looked at.
  [[maybe_unused]] static const bool is_known = (memory_is_debugged = debug_checks("memory"), true);
}

MemoryPool::~MemoryPool() {
  for (Slab* slab : slabs_) {
    for (Chunk* chunk = slab->first; chunk != nullptr;) {
      Chunk* next = chunk->next;
      delete chunk;
      chunk = next;
    }
    raw_->free(slab->raw.buffer, slab->size_bytes);
    delete slab;
  }
}

int64_t MemoryPool::round_down_to_block(int64_t size_bytes) const {
  return std::max<int64_t>(size_bytes & -least_block_, 1);
}

int64_t MemoryPool::block_size(int64_t size_bytes) {
  if (size_bytes > shape_.max_allocation_bytes) {
    throw Error(out_of_memory_code_,
                fmt::format("{}: an allocation of {} bytes exceeds the device's limit of {} bytes per allocation",
                            device_name_, size_bytes, shape_.max_allocation_bytes));
  }
  if (size_bytes > kGreatestBlock) throw_out_of_memory(size_bytes);
  const auto floor = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(size_bytes)));
  return std::min(round_to(size_bytes, std::max(least_block_, floor / 8)), std::max(size_bytes, greatest_block_));
}

Handout MemoryPool::allocate(int64_t size_bytes, Timeline* user, const Holding& holding) {
  const Handout taken = take(size_bytes, user, holding);
  if (observes(kTraces)) [[unlikely]]
    record_change(taken.size_bytes());
  return taken;
}

[[gnu::noinline]] void MemoryPool::record_change(int64_t change) const noexcept {
  int64_t used = 0;
  {
    std::lock_guard guard(blocks_lock_);
    used = used_;
  }
  record_memory(device_name_, change > 0 ? used : used + change, change);
}

inline Handout MemoryPool::take(int64_t size_bytes, Timeline* user, const Holding& holding) {
  int64_t rounded = small_block_;
  size_t bin = small_bin_;
  if (size_bytes > small_block_) {
    rounded = block_size(size_bytes);
    bin = bin_of(rounded);
  }
  {
    std::lock_guard guard(blocks_lock_);
    ++requests_;
    if (Chunk* chunk = take_cached(rounded, bin, user)) [[likely]]
      return account(chunk, holding);
  }
  return allocate_slowly(size_bytes, rounded, user, holding);
}

Handout MemoryPool::allocate_slowly(int64_t size_bytes, int64_t rounded, Timeline* user, const Holding& holding) {
  if (const auto taken = take_at_any_price(size_bytes, rounded, user, holding)) return *taken;
  if (relieve && relieve(size_bytes)) {
    if (const auto taken = take_at_any_price(size_bytes, rounded, user, holding)) return *taken;
  }
  throw_out_of_memory(size_bytes);
}

std::optional<Handout> MemoryPool::take_at_any_price(int64_t size_bytes, int64_t rounded, Timeline* user,
                                                     const Holding& holding) {
  const auto take = [&] {
    return_ended();
    std::unique_lock held(lock_);
    return returns_all_ ? take_lent(size_bytes, holding, held) : take_slowly(rounded, user, holding);
  };
  if (const auto taken = take()) return taken;
  if (reclaim && reclaim()) {
    if (const auto taken = take()) return taken;
  }
  return settle_streams(user != nullptr) ? take() : std::nullopt;
}

// Free blocks may be unusable only because the progress of their last streams has not been queried.
bool MemoryPool::settle_streams(bool waits) {
  std::vector<Access> pending;
  const auto add = [&](const Access& last) {
    if (has_ended(last)) return;
    for (Access& known : pending) {
      if (known.timeline != last.timeline) continue;
      known.number = std::max(known.number, last.number);
      return;
    }
    pending.push_back(last);
  };
  {
    std::lock_guard guard(blocks_lock_);
    for (const Chunk* bin : bins_) {
      for (const Chunk* chunk = bin; chunk != nullptr; chunk = chunk->below) add(chunk->pending);
    }
    for (const Chunk* chunk = deferred_; chunk != nullptr; chunk = chunk->below) {
      add(chunk->pending);
      std::for_each(chunk->uses.begin(), chunk->uses.end(), add);
      std::for_each(chunk->more_uses.begin(), chunk->more_uses.end(), add);
    }
  }
  for (const Access& last : pending) {
    if (waits) {
      last.timeline->wait_quietly(last.number);
    } else {
      last.timeline->poll();
    }
  }
  return !pending.empty();
}

namespace {

// Blocks from this size on are described in the table of an out-of-memory error.
constexpr int64_t kDescribedFrom = 4096;

void describe(Chunk& chunk, const Holding& holding) noexcept {
  chunk.dtype = holding.dtype;
  chunk.rank = static_cast<int32_t>(holding.shape.size());
  for (size_t i = 0; i < std::min(holding.shape.size(), chunk.extents.size()); ++i) chunk.extents[i] = holding.shape[i];
  try {
    chunk.scope = shared_scope();
  } catch (const std::bad_alloc&) {
    chunk.scope.reset();
  }
}

}  // namespace

inline Handout MemoryPool::account(Chunk* chunk, const Holding& holding) {
  if (kPoisons && raw_->takes_poison()) unpoison(address_of(*chunk), chunk->size_bytes);
  chunk->in_use = true;
  chunk->use = holding.use;
  if (holding.use == MemoryUse::kTemporary) chunk->has_released_pattern = false;  // it is written without a look
  chunk->dtype = COMPUTE_DTYPE_NONE;
  if (chunk->size_bytes >= kDescribedFrom) describe(*chunk, holding);
  used_ += chunk->size_bytes;
  peak_ = std::max(peak_, used_);
  used_by_[static_cast<size_t>(chunk->use)] += chunk->size_bytes;
  ++live_blocks_;
  return Handout(*chunk, chunk->pending);
}

// In order of cost: free ranges, blocks that other streams have finished with, the device, and the device again after
// giving back all that is cached.
std::optional<Handout> MemoryPool::take_slowly(int64_t rounded, Timeline* user, const Holding& holding) {
  Chunk* chunk = shape_.suballocate ? take_best_fit(rounded) : nullptr;
  if (chunk == nullptr) {
    std::lock_guard guard(blocks_lock_);
    settle_deferred();
    chunk = take_cached(rounded, bin_of(rounded), user);
  }
  if (chunk == nullptr && shape_.suballocate) {
    flush_bins();
    chunk = take_best_fit(rounded);
  }
  if (chunk == nullptr) chunk = take_from_device(rounded);
  if (chunk == nullptr) {
    flush_bins();
    release_empty_slabs(0);
    chunk = take_from_device(rounded);
  }
  if (chunk == nullptr) return std::nullopt;
  chunk->bin = bin_of(chunk->size_bytes);
  std::lock_guard guard(blocks_lock_);
  return account(chunk, holding);
}

inline Chunk* MemoryPool::take_cached(int64_t rounded, size_t bin, Timeline* user) {
  // Newest first, since it is the likeliest to be in a cache; a few older ones if that one is still in use elsewhere.
  Chunk** at = &bins_[bin];
  for (int tried = 0; *at != nullptr && tried < 8; ++tried, at = &(*at)->below) {
    Chunk* chunk = *at;
    if (chunk->size_bytes < rounded) continue;
    if (chunk->pending.timeline != user) {
      if (!has_ended(chunk->pending)) continue;
      chunk->pending = {};
    }
    *at = chunk->below;
    return chunk;
  }
  return nullptr;
}

Chunk* MemoryPool::take_best_fit(int64_t rounded) {
  Chunk probe;
  probe.size_bytes = rounded;
  const auto found = free_chunks_.lower_bound(&probe);
  if (found == free_chunks_.end()) return nullptr;
  Chunk* chunk = *found;
  std::unique_ptr<Chunk> rest;
  if (chunk->size_bytes - rounded >= least_block_) rest = make_chunk();  // what can throw comes first
  chunk->entry = free_chunks_.extract(found);
  if (rest) {
    rest->lie_in(chunk->slab);
    rest->offset_bytes = chunk->offset_bytes + rounded;
    rest->size_bytes = chunk->size_bytes - rounded;
    rest->previous = chunk;
    rest->next = chunk->next;
    rest->mergeable = true;
    if (chunk->next != nullptr) chunk->next->previous = rest.get();
    chunk->next = rest.get();
    chunk->size_bytes = rounded;
    rest->entry.value() = rest.get();
    free_chunks_.insert(std::move(rest->entry));
    static_cast<void>(rest.release());
  }
  free_bytes_ -= chunk->size_bytes;
  chunk->mergeable = false;
  return chunk;
}

Chunk* MemoryPool::take_from_device(int64_t rounded) {
  int64_t size = rounded;
  if (shape_.suballocate && rounded < kOwnSlabFrom) {
    size = std::max(next_slab_bytes_, round_to(rounded, kFirstSlab));
    size = std::min(size, std::max(rounded, shape_.max_allocation_bytes));
  } else if (shape_.suballocate) {
    size = round_to(rounded, kHugePage);
    if (size > shape_.max_allocation_bytes) size = rounded;
  }
  const auto within_limit = [&](int64_t bytes) { return limit_ < 0 || reserved_ + bytes <= limit_; };
  if (!within_limit(size)) size = rounded;
  if (!within_limit(size)) return nullptr;
  auto slab = std::make_unique<Slab>();
  auto chunk = make_chunk();
  auto entry = slabs_.extract(slabs_.insert(slab.get()).first);  // what can throw comes first
  RawBlock raw;
  ++raw_requests_;
  bool allocated = raw_->allocate(size, &raw);
  if (!allocated && size != rounded) {
    size = rounded;
    allocated = raw_->allocate(size, &raw);
  }
  if (!allocated) return nullptr;
  slabs_.insert(std::move(entry));
  next_slab_bytes_ = std::min(next_slab_bytes_ * 2, kLargestSlab);
  reserved_ += size;
  *slab = {raw, size, chunk.get()};
  chunk->lie_in(slab.release());
  chunk->size_bytes = size;
  Chunk* whole = chunk.release();
  if (size == rounded) return whole;
  merge_free(whole);
  return take_best_fit(rounded);
}

inline void MemoryPool::put_into_bin(Chunk* chunk) noexcept {
  Chunk*& bin = bins_[chunk->bin];
  chunk->below = bin;
  bin = chunk;
}

void MemoryPool::free(const Block& block, const Access& one, const Access& other, std::vector<Access>* more) noexcept {
  Chunk* chunk = block.chunk;
  if (chunk == nullptr) return;
  if (observes(kTraces)) [[unlikely]]
    record_change(-chunk->size_bytes);
  blocks_lock_.lock();
  chunk->in_use = false;
  const std::string* const label = chunk->label.release();
  used_ -= chunk->size_bytes;
  used_by_[static_cast<size_t>(chunk->use)] -= chunk->size_bytes;
  --live_blocks_;
  Access last = chunk->pending;
  if (kPoisons && raw_->takes_poison() && is_over(last) && is_over(one) && is_over(other) &&
      (more == nullptr || more->empty()))
    poison(address_of(*chunk), chunk->size_bytes);
  if (join(last, one) && join(last, other) && (more == nullptr || more->empty())) [[likely]] {
    chunk->pending = last;
    put_into_bin(chunk);
  } else {
    defer(chunk, one, other, more);
  }
  if (watches_frees_) [[unlikely]] {
    after_free(chunk, label);
    return;
  }
  blocks_lock_.unlock();
  if (label != nullptr) [[unlikely]]
    delete label;  // after the lock
}

void MemoryPool::defer(Chunk* chunk, const Access& one, const Access& other, std::vector<Access>* more) noexcept {
  Access last = chunk->pending;
  const auto joins = [&](const Access& access) { return join(last, access); };
  if (joins(one) && joins(other) && (more == nullptr || std::all_of(more->begin(), more->end(), joins))) {
    chunk->pending = last;
    put_into_bin(chunk);
    return;
  }
  chunk->uses = {one, other};
  if (more != nullptr) chunk->more_uses = std::move(*more);
  chunk->below = deferred_;
  deferred_ = chunk;
  watches_frees_ = true;
}

OwnedBlock::~OwnedBlock() {
  if (block_) pool_->free(block_, last_, {}, &uses_);
}

void OwnedBlock::used_by(Timeline& timeline, uint64_t number) {
  const Access use{&timeline, number};
  if (uses_.empty() && (last_.timeline == &timeline || has_ended(last_))) {
    last_ = use;
    return;
  }
  std::erase_if(uses_, has_ended);
  uses_.reserve(uses_.size() + 2);
  if (uses_.empty()) uses_.push_back(last_);
  uses_.push_back(use);
}

void MemoryPool::settle_deferred() noexcept {
  for (Chunk** at = &deferred_; *at != nullptr;) {
    Chunk* chunk = *at;
    if (!chunk->is_idle()) {
      at = &chunk->below;
      continue;
    }
    *at = chunk->below;
    chunk->pending = {};
    chunk->uses = {};
    chunk->more_uses = {};
    put_into_bin(chunk);
  }
  watches_frees_ = returns_all_ || deferred_ != nullptr;
}

void MemoryPool::flush_bins() noexcept {
  std::lock_guard guard(blocks_lock_);
  for (Chunk*& bin : bins_) {
    for (Chunk** at = &bin; *at != nullptr;) {
      Chunk* chunk = *at;
      if (!has_ended(chunk->pending)) {
        at = &chunk->below;
        continue;
      }
      *at = chunk->below;
      chunk->pending = {};
      merge_free(chunk);
    }
  }
}

void MemoryPool::merge_free(Chunk* chunk) noexcept {
  chunk->has_released_pattern = false;  // later joined or split parts have none
  free_bytes_ += chunk->size_bytes;
  const auto absorb_next = [&](Chunk* left) {
    Chunk* right = left->next;
    left->size_bytes += right->size_bytes;
    left->next = right->next;
    if (right->next != nullptr) right->next->previous = left;
    delete right;
  };
  if (chunk->next != nullptr && chunk->next->mergeable) {
    free_chunks_.erase(chunk->next);
    absorb_next(chunk);
  }
  if (chunk->previous != nullptr && chunk->previous->mergeable) {
    chunk = chunk->previous;
    chunk->entry = free_chunks_.extract(chunk);
    absorb_next(chunk);
  }
  chunk->entry.value() = chunk;
  free_chunks_.insert(std::move(chunk->entry));
  chunk->mergeable = true;
}

// What is left in bins counts as kept.
void MemoryPool::release_empty_slabs(int64_t keep_bytes) noexcept {
  int64_t waiting = 0;
  {
    std::lock_guard guard(blocks_lock_);
    waiting = waiting_bytes();
  }
  for (auto it = slabs_.begin(); it != slabs_.end() && waiting + free_bytes_ > keep_bytes;) {
    Slab* slab = *it;
    Chunk* only = slab->first;
    if (only->next != nullptr || !only->mergeable) {
      ++it;
      continue;
    }
    free_chunks_.erase(only);
    free_bytes_ -= only->size_bytes;
    reserved_ -= slab->size_bytes;
    raw_->free(slab->raw.buffer, slab->size_bytes);
    delete only;
    delete slab;
    it = slabs_.erase(it);
  }
}

void MemoryPool::trim(int64_t keep_bytes) noexcept {
  settle_lent();
  std::lock_guard guard(lock_);
  if (returns_all_) return;
  {
    std::lock_guard blocks_guard(blocks_lock_);
    settle_deferred();
  }
  flush_bins();
  release_empty_slabs(keep_bytes);
}

void MemoryPool::give_everything_back() noexcept {
  std::lock_guard guard(lock_);
  for (Slab* slab : slabs_) raw_->free(slab->raw.buffer, slab->size_bytes);
}

// ---- Memory that a program lends ------------------------------------------------------------------------------------

void MemoryPool::lend(std::unique_ptr<RawMemory> lent, bool caches) {
  settle_streams(true);
  trim(0);
  std::lock_guard guard(lock_);
  std::lock_guard blocks_guard(blocks_lock_);
  if (reserved_ != 0) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                fmt::format("{}: {} bytes of memory are in use; set the allocator first, or release all memory{}",
                            device_name_, reserved_, holders()))
        .on_device(device_name_);
  }
  lent_ = std::move(lent);
  raw_ = lent_ ? lent_.get() : own_.get();
  is_lent_.store(lent_ != nullptr, std::memory_order_release);
  returns_all_ = watches_frees_ = lent_ && !caches;
  next_slab_bytes_ = kFirstSlab;
}

// The lender is called without a lock. Until it has answered, the bytes count as reserved.
std::optional<Handout> MemoryPool::take_lent(int64_t size_bytes, const Holding& holding, std::unique_lock<Lock>& held) {
  const int64_t size = round_to(size_bytes, least_block_);
  if (limit_ >= 0 && reserved_ + size > limit_) return std::nullopt;
  auto slab = std::make_unique<Slab>();
  auto chunk = make_chunk();
  auto entry = slabs_.extract(slabs_.insert(slab.get()).first);  // what can throw comes first
  RawBlock raw;
  bool allocated = false;
  reserved_ += size;
  ++raw_requests_;
  held.unlock();
  try {
    allocated = raw_->allocate(size, &raw);
  } catch (...) {
    held.lock();
    reserved_ -= size;
    throw;
  }
  held.lock();
  if (!allocated) {
    reserved_ -= size;
    return std::nullopt;
  }
  slabs_.insert(std::move(entry));
  *slab = {raw, size, chunk.get()};
  chunk->lie_in(slab.release());
  chunk->size_bytes = size;
  chunk->bin = bin_of(size);
  std::lock_guard guard(blocks_lock_);
  return account(chunk.release(), holding);
}

// The work of a watched free. Allocates nothing.
void MemoryPool::after_free(Chunk* chunk, const std::string* label) noexcept {
  Chunk* ended = nullptr;
  bool must_wait = false;
  if (!returns_all_) {
    if ((++frees_ & 255) == 0) settle_deferred();
  } else {
    Chunk*& first = bins_[chunk->bin] == chunk ? bins_[chunk->bin] : deferred_;
    first = chunk->below;
    chunk->below = nullptr;
    if (chunk->is_idle()) {
      ended = chunk;
      ++returning_;
    } else {
      chunk->below = deferred_;
      deferred_ = chunk;
      has_new_deferred_ = true;
      must_wait = !std::exchange(is_returning_, true);
      if ((++frees_ & 63) == 0) ended = take_ended();
    }
  }
  blocks_lock_.unlock();
  delete label;  // after the lock
  return_lent(ended);
  if (must_wait) return_in_background();
}

Chunk* MemoryPool::take_ended() noexcept {
  Chunk* ended = nullptr;
  for (Chunk** at = &deferred_; *at != nullptr;) {
    Chunk* chunk = *at;
    if (!chunk->is_idle()) {
      at = &chunk->below;
      continue;
    }
    *at = chunk->below;
    chunk->below = ended;
    ended = chunk;
    ++returning_;
  }
  return ended;
}

void MemoryPool::return_lent(Chunk* list) noexcept {
  while (list != nullptr) {
    const std::unique_ptr<Chunk> chunk(list);
    list = chunk->below;
    const std::unique_ptr<Slab> slab(chunk->slab);
    {
      std::lock_guard guard(lock_);
      slabs_.erase(slab.get());
    }
    raw_->free(slab->raw.buffer, slab->size_bytes);
    std::lock_guard guard(lock_);
    std::lock_guard blocks_guard(blocks_lock_);
    reserved_ -= slab->size_bytes;
    --returning_;
  }
}

void MemoryPool::return_ended() noexcept {
  blocks_lock_.lock();
  Chunk* ended = returns_all_ ? take_ended() : nullptr;
  blocks_lock_.unlock();
  return_lent(ended);
}

void MemoryPool::settle_lent() noexcept {
  return_ended();
  const auto others_return = [&] {
    std::lock_guard guard(blocks_lock_);
    return returning_ > 0;
  };
  while (others_return()) std::this_thread::yield();
}

// Waits for the work that uses freed blocks. Where that cannot be waited for, a later call of the pool looks again.
void MemoryPool::return_in_background() noexcept {
  try {
    run_in_background([this] {
      {
        std::lock_guard guard(blocks_lock_);
        has_new_deferred_ = false;
      }
      try {
        settle_streams(true);
      } catch (...) {
        // Without memory for the list of them.
      }
      return_ended();
      bool goes_on = false;
      {
        std::lock_guard guard(blocks_lock_);
        goes_on = is_returning_ = has_new_deferred_ && deferred_ != nullptr;
      }
      if (goes_on) return_in_background();
    });
  } catch (...) {
    std::lock_guard guard(blocks_lock_);
    is_returning_ = false;
  }
}

void MemoryPool::set_limit(int64_t limit_bytes) {
  std::lock_guard guard(lock_);
  limit_ = limit_bytes;
}

void MemoryPool::preallocate(int64_t size_bytes) {
  const int64_t most = round_down_to_block(shape_.max_allocation_bytes);
  std::vector<OwnedBlock> pieces;
  for (int64_t left = size_bytes; left > 0;) {
    const int64_t piece = std::min(left, most);
    pieces.emplace_back(*this, piece, MemoryUse::kTemporary);
    left -= piece;
  }
}

MemoryStatistics MemoryPool::statistics() const {
  std::lock_guard guard(lock_);
  std::lock_guard blocks_guard(blocks_lock_);
  MemoryStatistics result;
  result.used = used_;
  result.peak = peak_;
  result.reserved = reserved_;
  result.limit = limit_;
  result.mirrors = used_by_[static_cast<size_t>(MemoryUse::kMirror)];
  result.live_blocks = live_blocks_;
  result.requests = requests_;
  result.raw_requests = raw_requests_;
  return result;
}

FreePieces MemoryPool::free_pieces() const {
  std::lock_guard guard(lock_);
  std::lock_guard blocks_guard(blocks_lock_);
  return free_pieces_locked();
}

FreePieces MemoryPool::free_pieces_locked() const noexcept {
  FreePieces found;
  for (const Slab* slab : slabs_) {
    int64_t piece = 0;
    for (const Chunk* chunk = slab->first; chunk != nullptr; chunk = chunk->next) {
      piece = chunk->in_use ? 0 : piece + chunk->size_bytes;
      if (!chunk->in_use) found.bytes += chunk->size_bytes;
      found.largest = std::max(found.largest, piece);
    }
  }
  return found;
}

void MemoryPool::set_label(const Block& block, const char* label) {
  auto text = *label != '\0' ? std::make_unique<std::string>(label) : nullptr;
  std::lock_guard guard(blocks_lock_);
  block.chunk->label.swap(text);
}

std::string MemoryPool::description(const Block& block) const {
  std::lock_guard guard(blocks_lock_);
  const Chunk& chunk = *block.chunk;
  if (chunk.label) return *chunk.label;
  if (chunk.dtype == COMPUTE_DTYPE_NONE) return fmt::format("{} bytes", chunk.size_bytes);
  const size_t shown = std::min(static_cast<size_t>(chunk.rank), chunk.extents.size());
  return fmt::format("{} [{}{}]", dtype_name(chunk.dtype),
                     fmt::join(chunk.extents.begin(), chunk.extents.begin() + shown, ","),
                     static_cast<size_t>(chunk.rank) > shown ? ",…" : "");
}

// One block a line: "4000000 bytes  float32 [1000, 1000]  'weights'".
std::string MemoryPool::holders() const {
  constexpr size_t kShown = 10;
  std::vector<const Chunk*> live;
  for (const Slab* slab : slabs_) {
    for (const Chunk* chunk = slab->first; chunk != nullptr; chunk = chunk->next) {
      if (chunk->in_use) live.push_back(chunk);
    }
  }
  std::sort(live.begin(), live.end(), [](const Chunk* a, const Chunk* b) { return a->size_bytes > b->size_bytes; });
  std::string text;
  if (!live.empty()) text = fmt::format("\n  {} live blocks, largest first:", live.size());
  for (size_t i = 0; i < std::min(live.size(), kShown); ++i) {
    const Chunk& chunk = *live[i];
    text += fmt::format("\n    {:>14} bytes", chunk.size_bytes);
    if (chunk.use == MemoryUse::kMirror) text += "  mirror";
    if (chunk.use == MemoryUse::kTemporary) text += "  temporary";
    if (chunk.dtype != 0) {
      const size_t shown = std::min(static_cast<size_t>(chunk.rank), chunk.extents.size());
      text += fmt::format("  {} [{}{}]", dtype_name(chunk.dtype),
                          fmt::join(chunk.extents.begin(), chunk.extents.begin() + shown, ", "),
                          static_cast<size_t>(chunk.rank) > shown ? ", …" : "");
    }
    if (chunk.label) text += fmt::format("  {}", in_quotes(*chunk.label));
    if (chunk.dtype != 0 && chunk.scope) text += fmt::format("  scope: {}", printable(*chunk.scope));
  }
  return text;
}

void MemoryPool::throw_out_of_memory(int64_t size_bytes) {
  const std::optional<MemoryState> state = raw_->state();
  std::lock_guard guard(lock_);
  std::lock_guard blocks_guard(blocks_lock_);
  std::string text = fmt::format("{}: out of memory allocating {} bytes", device_name_, size_bytes);
  if (limit_ >= 0) text += fmt::format(" (limit {} bytes)", limit_);
  if (state) {
    text += fmt::format("; {} of {} bytes are available", state->available, state->total);
    if (!state->limited_by.empty()) text += fmt::format(", limited by {}", state->limited_by);
  }
  text += fmt::format(
      "\n  tensors     {:>16} bytes\n  mirrors     {:>16} bytes\n  temporaries {:>16} bytes\n  cached      {:>16} "
      "bytes, the "
      "largest piece {}\n  reserved    {:>16} bytes in {} allocations",
      used_by_[0], used_by_[1], used_by_[2], waiting_bytes() + free_bytes_, free_pieces_locked().largest, reserved_,
      slabs_.size());
  text += holders();
  throw Error(out_of_memory_code_, std::move(text)).on_device(device_name_);
}

}  // namespace compute
