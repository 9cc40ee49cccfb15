// SPDX-License-Identifier: Apache-2.0
#include "core/memory.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <mutex>
#include <utility>

#include "core/config.hpp"
#include "core/dtype.hpp"
#include "core/error.hpp"
#include "core/host_limits.hpp"
#include "core/printable.hpp"
#include "core/timeline.hpp"

namespace compute {
namespace {

constexpr int64_t kHugePage = int64_t{2} << 20;
constexpr int64_t kFirstSlab = int64_t{2} << 20;
constexpr int64_t kLargestSlab = int64_t{64} << 20;
constexpr int64_t kOwnSlabFrom = int64_t{32} << 20;  // greater blocks get an allocation of their own

constexpr int64_t kGreatestBlock = int64_t{1} << 60;         // more than any address space has; sums of such sizes still fit

int64_t round_to(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

// One of eight sizes per power of two, 64 bytes at least.
int bin_of(int64_t rounded) {
  const int exponent = 63 - std::countl_zero(static_cast<uint64_t>(rounded));
  const int eighth = exponent >= 3 ? static_cast<int>((rounded >> (exponent - 3)) & 7) : 0;
  return exponent * 8 + eighth;
}

class HostMemory final : public RawMemory {
 public:
  bool allocate(int64_t size_bytes, uint64_t* out_buffer) override {
    if (!has_room_for(size_bytes)) return false;
    // Over-allocates by a huge page so that large slabs begin on one, and returns the rest.
    const bool large = size_bytes >= kHugePage;
    const auto total = static_cast<size_t>(size_bytes + (large ? kHugePage : 0));
    void* raw = mmap(nullptr, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (raw == MAP_FAILED) return false;
    auto begin = reinterpret_cast<uintptr_t>(raw);
    if (large) {
      const uintptr_t aligned = (begin + kHugePage - 1) & ~static_cast<uintptr_t>(kHugePage - 1);
      if (aligned > begin) munmap(raw, aligned - begin);
      const uintptr_t end = begin + total, used_end = aligned + static_cast<size_t>(size_bytes);
      if (end > used_end) munmap(reinterpret_cast<void*>(used_end), end - used_end);
      begin = aligned;
      madvise(reinterpret_cast<void*>(begin), static_cast<size_t>(size_bytes), MADV_HUGEPAGE);
    }
    *out_buffer = begin;
    held_.fetch_add(size_bytes, std::memory_order_relaxed);
    return true;
  }

  void free(uint64_t buffer, int64_t size_bytes) noexcept override {
    const CallerWorld world;
    munmap(reinterpret_cast<void*>(buffer), static_cast<size_t>(size_bytes));
    held_.fetch_sub(size_bytes, std::memory_order_relaxed);
  }

  std::optional<MemoryState> state() noexcept override {
    try {
      const HostMemoryState now = host_memory_state();
      return MemoryState{now.total, now.available, now.limited_by};
    } catch (...) {
      return std::nullopt;
    }
  }

 private:
  // The system gives memory when it is touched, and ends the process where there is none then. So what was given before and may not have been
  // touched yet counts as used. Small amounts are looked at together.
  bool has_room_for(int64_t size_bytes) {
    unchecked_ += size_bytes;
    if (unchecked_ < kCheckedFrom) return true;
    const HostMemoryState now = host_memory_state();
    const int64_t held = held_.load(std::memory_order_relaxed), resident = resident_bytes();
    const int64_t touched = resident < 0 ? held : std::min(resident, held);
    if (now.available >= 0 && size_bytes + (held - touched) > now.available) return false;
    unchecked_ = 0;
    return true;
  }

  static constexpr int64_t kCheckedFrom = int64_t{32} << 20;

  std::atomic<int64_t> held_{0};
  int64_t unchecked_ = 0;  // the pool asks under its lock
};

[[gnu::always_inline]] inline bool usable_by(const Access& last, const Timeline* user) {
  return last.timeline == nullptr || last.timeline == user || last.timeline->has_ended(last.number);
}

}  // namespace

struct MemoryPool::Slab {
  uint64_t buffer;
  int64_t size_bytes;
  Chunk* first;
};

// A range of a slab: in use, in a bin, deferred, or free for best fit.
struct Chunk {
  MemoryPool::Slab* slab;
  int64_t offset_bytes;
  int64_t size_bytes;
  Chunk* previous;  // neighbours by address in the same slab
  Chunk* next;
  bool mergeable;   // in free_chunks_
  bool in_use;
  MemoryUse use;
  Access pending;   // queued work that may touch it, from before it was handed out
  int32_t dtype = 0;  // of the tensor that it was made for
  int32_t rank = 0;
  std::array<int64_t, 4> extents{};  // the first ones
  std::unique_ptr<std::string> label;
  bool has_released_pattern = false;
};

bool memory_is_debugged = false;

void note_released_pattern(const Block& block) noexcept { block.chunk->has_released_pattern = true; }
bool had_released_pattern(const Block& block) noexcept { return std::exchange(block.chunk->has_released_pattern, false); }

Access pending_on(const Block& block) noexcept { return block ? block.chunk->pending : Access{}; }

bool MemoryPool::BySize::operator()(const Chunk* a, const Chunk* b) const {
  if (a->size_bytes != b->size_bytes) return a->size_bytes < b->size_bytes;
  if (a->slab != b->slab) return a->slab < b->slab;
  return a->offset_bytes < b->offset_bytes;
}

MemoryPool::MemoryPool(std::string device_name, std::unique_ptr<RawMemory> raw, MemoryShape shape, int32_t out_of_memory_code)
    : device_name_(std::move(device_name)),
      raw_(std::move(raw)),
      shape_(shape),
      out_of_memory_code_(out_of_memory_code),
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
    raw_->free(slab->buffer, slab->size_bytes);
    delete slab;
  }
}

int64_t MemoryPool::round_up(int64_t size_bytes) const {
  const int64_t least = std::max<int64_t>(64, shape_.offset_alignment);
  if (size_bytes <= least) return least;
  const auto floor = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(size_bytes)));
  return round_to(size_bytes, std::max(least, floor / 8));
}

int64_t MemoryPool::round_down_to_block(int64_t size_bytes) const {
  const int64_t least = std::max<int64_t>(64, shape_.offset_alignment);
  return std::max<int64_t>(size_bytes / least * least, 1);
}

Handout MemoryPool::allocate(int64_t size_bytes, Timeline* user, const Holding& holding) {
  if (size_bytes > shape_.max_allocation_bytes) {
    throw Error(out_of_memory_code_, fmt::format("{}: an allocation of {} bytes is above the device's limit of {} bytes for one",
                                                 device_name_, size_bytes, shape_.max_allocation_bytes));
  }
  if (size_bytes > kGreatestBlock) throw_out_of_memory(size_bytes);
  const int64_t rounded = std::min(round_up(size_bytes), std::max(size_bytes, round_down_to_block(shape_.max_allocation_bytes)));
  {
    std::lock_guard guard(blocks_lock_);
    ++requests_;
    if (Chunk* chunk = take_cached(rounded, user)) return account(chunk, holding);
  }
  const auto take = [&] {
    std::lock_guard guard(lock_);
    return take_slowly(rounded, user, holding);
  };
  if (const auto taken = take()) return *taken;
  if (reclaim && reclaim()) {
    if (const auto taken = take()) return *taken;
  }
  if (settle_streams(user != nullptr)) {
    if (const auto taken = take()) return *taken;
  }
  throw_out_of_memory(size_bytes);
}

// Free blocks may be of no use only because nobody has asked how far the streams are that used them last.
bool MemoryPool::settle_streams(bool waits) {
  std::vector<Access> pending;
  const auto add = [&](const Access& last) {
    if (usable_by(last, nullptr)) return;
    for (Access& known : pending) {
      if (known.timeline != last.timeline) continue;
      known.number = std::max(known.number, last.number);
      return;
    }
    pending.push_back(last);
  };
  {
    std::lock_guard guard(blocks_lock_);
    for (const auto& bin : bins_) {
      for (const FreeEntry& entry : bin) add(entry.last);
    }
    for (const Deferred& entry : deferred_) std::for_each(entry.accesses.begin(), entry.accesses.end(), add);
  }
  for (const Access& last : pending) {
    if (!waits) {
      last.timeline->poll();
      continue;
    }
    try {
      last.timeline->wait_for_end(last.number, COMPUTE_TIMEOUT_NONE);
    } catch (const Error&) {
      // The plugin takes no mark: there is nothing to wait for.
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
}

}  // namespace

inline Handout MemoryPool::account(Chunk* chunk, const Holding& holding) {
  chunk->in_use = true;
  chunk->use = holding.use;
  if (holding.use == MemoryUse::kTemporary) chunk->has_released_pattern = false;  // it is written without a look
  chunk->dtype = COMPUTE_DTYPE_NONE;
  if (chunk->size_bytes >= kDescribedFrom) describe(*chunk, holding);
  used_ += chunk->size_bytes;
  peak_ = std::max(peak_, used_);
  used_by_[static_cast<size_t>(chunk->use)] += chunk->size_bytes;
  ++live_blocks_;
  return Handout({chunk->slab->buffer, chunk->offset_bytes, chunk->size_bytes, chunk}, chunk->pending);
}

// In the order of cost: free ranges, what other streams have finished with, the device, and the device once more after giving
// back all that is cached.
std::optional<Handout> MemoryPool::take_slowly(int64_t rounded, Timeline* user, const Holding& holding) {
  Chunk* chunk = shape_.suballocate ? take_best_fit(rounded) : nullptr;
  if (chunk == nullptr) {
    std::lock_guard guard(blocks_lock_);
    settle_deferred();
    chunk = take_cached(rounded, user);
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
  std::lock_guard guard(blocks_lock_);
  return account(chunk, holding);
}

Chunk* MemoryPool::take_cached(int64_t rounded, Timeline* user) {
  auto& bin = bins_[static_cast<size_t>(bin_of(rounded))];
  // Newest first, since it is the likeliest to be in a cache; a few older ones if that one is still in use elsewhere.
  for (size_t tried = 0; tried < std::min<size_t>(bin.size(), 8); ++tried) {
    const size_t index = bin.size() - 1 - tried;
    if (bin[index].chunk->size_bytes < rounded || !usable_by(bin[index].last, user)) continue;
    Chunk* chunk = bin[index].chunk;
    const Access& last = bin[index].last;
    if (last.timeline != nullptr && !last.timeline->has_ended(last.number)) chunk->pending = last;
    if (tried == 0) {
      bin.pop_back();
    } else {
      bin.erase(bin.begin() + static_cast<std::ptrdiff_t>(index));
    }
    binned_bytes_ -= chunk->size_bytes;
    return chunk;
  }
  return nullptr;
}

Chunk* MemoryPool::take_best_fit(int64_t rounded) {
  Chunk probe{nullptr, 0, rounded, nullptr, nullptr, false, false, MemoryUse::kTensor, {}, 0, 0, {}, nullptr, false};
  auto found = free_chunks_.lower_bound(&probe);
  if (found == free_chunks_.end()) return nullptr;
  Chunk* chunk = *found;
  if (chunk->size_bytes - rounded >= std::max<int64_t>(64, shape_.offset_alignment)) {
    // What can throw comes first; the entry in the set is reused for the rest.
    auto rest = std::make_unique<Chunk>(Chunk{chunk->slab, chunk->offset_bytes + rounded, chunk->size_bytes - rounded, chunk,
                                              chunk->next, true, false, MemoryUse::kTensor, {}, 0, 0, {}, nullptr, false});
    auto entry = free_chunks_.extract(found);
    if (chunk->next != nullptr) chunk->next->previous = rest.get();
    chunk->next = rest.get();
    chunk->size_bytes = rounded;
    entry.value() = rest.release();
    free_chunks_.insert(std::move(entry));
  } else {
    free_chunks_.erase(found);
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
  const auto within_limit = [&](int64_t bytes) {
    return limit_ < 0 || reserved_ + bytes <= limit_;
  };
  if (!within_limit(size)) size = rounded;
  if (!within_limit(size)) return nullptr;
  auto slab = std::make_unique<Slab>();
  auto chunk = std::make_unique<Chunk>();
  auto entry = slabs_.extract(slabs_.insert(slab.get()).first);  // what can throw comes first
  uint64_t buffer = 0;
  ++raw_requests_;
  bool allocated = raw_->allocate(size, &buffer);
  if (!allocated && size != rounded) {
    size = rounded;
    allocated = raw_->allocate(size, &buffer);
  }
  if (!allocated) return nullptr;
  slabs_.insert(std::move(entry));
  next_slab_bytes_ = std::min(next_slab_bytes_ * 2, kLargestSlab);
  reserved_ += size;
  *slab = {buffer, size, chunk.get()};
  *chunk = {slab.release(), 0, size, nullptr, nullptr, false, false, MemoryUse::kTensor, {}, 0, 0, {}, nullptr, false};
  Chunk* whole = chunk.release();
  if (size == rounded) return whole;
  merge_free(whole);
  return take_best_fit(rounded);
}

void MemoryPool::free(const Block& block, std::span<const Access> accesses) noexcept {
  Chunk* chunk = block.chunk;
  if (chunk == nullptr) return;
  std::unique_ptr<std::string> label;  // freed after the lock
  std::lock_guard guard(blocks_lock_);
  chunk->in_use = false;
  if (chunk->label) label = std::move(chunk->label);
  used_ -= chunk->size_bytes;
  used_by_[static_cast<size_t>(chunk->use)] -= chunk->size_bytes;
  --live_blocks_;
  const Access before = chunk->pending;
  Access last;
  size_t pending = 0;
  if (before.timeline != nullptr) {
    chunk->pending = {};
    if (!before.timeline->has_ended(before.number)) {
      last = before;
      pending = 1;
    }
  }
  for (const Access& access : accesses) {
    if (access.timeline == nullptr || access.timeline->has_ended(access.number)) continue;
    if (pending > 0 && access.timeline == last.timeline) {
      last.number = std::max(last.number, access.number);
      continue;
    }
    last = access;
    ++pending;
  }
  if ((++frees_ & 255) == 0) settle_deferred();
  try {
    if (pending > 1) {
      std::vector<Access> all(accesses.begin(), accesses.end());
      all.push_back(before);
      deferred_.push_back({chunk, std::move(all)});
      return;
    }
    binned_bytes_ += chunk->size_bytes;
    bins_[static_cast<size_t>(bin_of(chunk->size_bytes))].push_back({chunk, pending == 1 ? last : Access{}});
  } catch (const std::bad_alloc&) {
    // Without memory for a list entry the block stays reserved until the pool is destroyed.
  }
}

OwnedBlock::~OwnedBlock() {
  if (block_) pool_->free(block_, uses_.empty() ? std::span<const Access>(&last_, 1) : uses_);
}

void OwnedBlock::used_by(Timeline& timeline, uint64_t number) {
  const Access use{&timeline, number};
  if (uses_.empty() && (last_.timeline == &timeline || usable_by(last_, nullptr))) {
    last_ = use;
    return;
  }
  std::erase_if(uses_, [](const Access& access) { return usable_by(access, nullptr); });
  uses_.reserve(uses_.size() + 2);
  if (uses_.empty()) uses_.push_back(last_);
  uses_.push_back(use);
}

void MemoryPool::settle_deferred() noexcept {
  std::erase_if(deferred_, [&](const Deferred& entry) {
    for (const Access& access : entry.accesses) {
      if (!usable_by(access, nullptr)) return false;
    }
    try {
      bins_[static_cast<size_t>(bin_of(entry.chunk->size_bytes))].push_back({entry.chunk, Access{}});
      binned_bytes_ += entry.chunk->size_bytes;
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  });
}

void MemoryPool::flush_bins() noexcept {
  std::lock_guard guard(blocks_lock_);
  for (auto& bin : bins_) {
    std::erase_if(bin, [&](const FreeEntry& entry) {
      if (!usable_by(entry.last, nullptr)) return false;
      binned_bytes_ -= entry.chunk->size_bytes;
      merge_free(entry.chunk);
      return true;
    });
  }
}

void MemoryPool::merge_free(Chunk* chunk) noexcept {
  chunk->has_released_pattern = false;  // what it is joined with and cut into later has none
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
    free_chunks_.erase(chunk);
    absorb_next(chunk);
  }
  try {
    free_chunks_.insert(chunk);
    chunk->mergeable = true;
  } catch (const std::bad_alloc&) {
    // Without memory for its entry the range stays reserved until the pool is destroyed.
  }
}

// What is left in bins counts as kept.
void MemoryPool::release_empty_slabs(int64_t keep_bytes) noexcept {
  int64_t binned_bytes = 0;
  {
    std::lock_guard guard(blocks_lock_);
    binned_bytes = binned_bytes_;
  }
  for (auto it = slabs_.begin(); it != slabs_.end() && binned_bytes + free_bytes_ > keep_bytes;) {
    Slab* slab = *it;
    Chunk* only = slab->first;
    if (only->next != nullptr || !only->mergeable) {
      ++it;
      continue;
    }
    free_chunks_.erase(only);
    free_bytes_ -= only->size_bytes;
    reserved_ -= slab->size_bytes;
    raw_->free(slab->buffer, slab->size_bytes);
    delete only;
    delete slab;
    it = slabs_.erase(it);
  }
}

void MemoryPool::trim(int64_t keep_bytes) noexcept {
  std::lock_guard guard(lock_);
  {
    std::lock_guard blocks_guard(blocks_lock_);
    settle_deferred();
  }
  flush_bins();
  release_empty_slabs(keep_bytes);
}

void MemoryPool::give_everything_back() noexcept {
  std::lock_guard guard(lock_);
  for (Slab* slab : slabs_) raw_->free(slab->buffer, slab->size_bytes);
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

void MemoryPool::set_label(const Block& block, const char* label) {
  auto text = *label != '\0' ? std::make_unique<std::string>(label) : nullptr;
  std::lock_guard guard(blocks_lock_);
  block.chunk->label.swap(text);
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
  if (!live.empty()) text = fmt::format("\n  {} live blocks, the greatest:", live.size());
  for (size_t i = 0; i < std::min(live.size(), kShown); ++i) {
    const Chunk& chunk = *live[i];
    text += fmt::format("\n    {:>14} bytes", chunk.size_bytes);
    if (chunk.use == MemoryUse::kMirror) text += "  mirror";
    if (chunk.use == MemoryUse::kTemporary) text += "  temporary";
    if (chunk.dtype != 0) {
      const size_t shown = std::min(static_cast<size_t>(chunk.rank), chunk.extents.size());
      text += fmt::format("  {} [{}{}]", dtype_name(chunk.dtype), fmt::join(chunk.extents.begin(), chunk.extents.begin() + shown, ", "),
                          static_cast<size_t>(chunk.rank) > shown ? ", …" : "");
    }
    if (chunk.label) text += fmt::format("  {}", in_quotes(*chunk.label));
  }
  return text;
}

void MemoryPool::throw_out_of_memory(int64_t size_bytes) {
  const std::optional<MemoryState> state = raw_->state();
  std::lock_guard guard(lock_);
  std::lock_guard blocks_guard(blocks_lock_);
  std::string text = fmt::format("{}: out of memory for {} bytes", device_name_, size_bytes);
  if (limit_ >= 0) text += fmt::format(" (limit {} bytes)", limit_);
  if (state) {
    text += fmt::format("; {} of {} bytes are available", state->available, state->total);
    if (!state->limited_by.empty()) text += fmt::format(", limited by {}", state->limited_by);
  }
  text += fmt::format(
      "\n  tensors     {:>16} bytes\n  mirrors     {:>16} bytes\n  temporaries {:>16} bytes\n  cached      {:>16} bytes"
      "\n  reserved    {:>16} bytes in {} allocations",
      used_by_[0], used_by_[1], used_by_[2], binned_bytes_ + free_bytes_, reserved_, slabs_.size());
  text += holders();
  throw Error(out_of_memory_code_, std::move(text)).on_device(device_name_);
}

std::unique_ptr<RawMemory> make_host_memory() { return std::make_unique<HostMemory>(); }

}  // namespace compute
