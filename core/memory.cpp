// SPDX-License-Identifier: Apache-2.0
#include "core/memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <mutex>

#include "core/error.hpp"
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
    // Over-allocates by a huge page so that large slabs begin on one, and returns the rest.
    const bool large = size_bytes >= kHugePage;
    const auto total = static_cast<size_t>(size_bytes + (large ? kHugePage : 0));
    void* raw = mmap(nullptr, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
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
    return true;
  }

  void free(uint64_t buffer, int64_t size_bytes) noexcept override {
    munmap(reinterpret_cast<void*>(buffer), static_cast<size_t>(size_bytes));
  }
};

bool usable_by(const Access& last, const Timeline* user) {
  return last.timeline == nullptr || last.timeline == user || last.timeline->has_reached(last.number);
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
};

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
      next_slab_bytes_(kFirstSlab) {}

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

Block MemoryPool::allocate(int64_t size_bytes, Timeline* user, MemoryUse use) {
  if (size_bytes > shape_.max_allocation_bytes) {
    throw Error(out_of_memory_code_, fmt::format("{}: an allocation of {} bytes is above the device's limit of {} bytes for one",
                                                 device_name_, size_bytes, shape_.max_allocation_bytes));
  }
  if (size_bytes > kGreatestBlock) throw_out_of_memory(size_bytes);
  const int64_t rounded = round_up(size_bytes);
  {
    std::lock_guard guard(blocks_lock_);
    ++requests_;
    if (Chunk* chunk = take_cached(rounded, user)) return account(chunk, use);
  }
  Block block;
  {
    std::lock_guard guard(lock_);
    if (take_slowly(rounded, user, use, &block)) return block;
  }
  if (reclaim && reclaim()) {
    std::lock_guard guard(lock_);
    if (take_slowly(rounded, user, use, &block)) return block;
  }
  if (settle_streams(user != nullptr)) {
    std::lock_guard guard(lock_);
    if (take_slowly(rounded, user, use, &block)) return block;
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
      last.timeline->wait(last.number, COMPUTE_TIMEOUT_NONE);
    } catch (const Error&) {
      // What a failed stream used stays out of use.
    }
  }
  return !pending.empty();
}

Block MemoryPool::account(Chunk* chunk, MemoryUse use) {
  chunk->in_use = true;
  chunk->use = use;
  used_ += chunk->size_bytes;
  peak_ = std::max(peak_, used_);
  used_by_[static_cast<size_t>(use)] += chunk->size_bytes;
  ++live_blocks_;
  return Block{chunk->slab->buffer, chunk->offset_bytes, chunk->size_bytes, chunk};
}

// In the order of cost: free ranges, what other streams have finished with, the device, and the device once more after giving
// back all that is cached.
bool MemoryPool::take_slowly(int64_t rounded, Timeline* user, MemoryUse use, Block* out_block) {
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
  if (chunk == nullptr) return false;
  std::lock_guard guard(blocks_lock_);
  *out_block = account(chunk, use);
  return true;
}

Chunk* MemoryPool::take_cached(int64_t rounded, Timeline* user) {
  auto& bin = bins_[static_cast<size_t>(bin_of(rounded))];
  // Newest first, since it is the likeliest to be in a cache; a few older ones if that one is still in use elsewhere.
  for (size_t tried = 0; tried < std::min<size_t>(bin.size(), 8); ++tried) {
    const size_t index = bin.size() - 1 - tried;
    if (bin[index].chunk->size_bytes < rounded || !usable_by(bin[index].last, user)) continue;
    Chunk* chunk = bin[index].chunk;
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
  Chunk probe{nullptr, 0, rounded, nullptr, nullptr, false, false, MemoryUse::kTensor};
  auto found = free_chunks_.lower_bound(&probe);
  if (found == free_chunks_.end()) return nullptr;
  Chunk* chunk = *found;
  if (chunk->size_bytes - rounded >= std::max<int64_t>(64, shape_.offset_alignment)) {
    // What can throw comes first; the entry in the set is reused for the rest.
    auto rest = std::make_unique<Chunk>(Chunk{chunk->slab, chunk->offset_bytes + rounded, chunk->size_bytes - rounded, chunk,
                                              chunk->next, true, false, MemoryUse::kTensor});
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
  *chunk = {slab.release(), 0, size, nullptr, nullptr, false, false, MemoryUse::kTensor};
  Chunk* whole = chunk.release();
  if (size == rounded) return whole;
  merge_free(whole);
  return take_best_fit(rounded);
}

void MemoryPool::free(const Block& block, std::span<const Access> accesses) noexcept {
  Chunk* chunk = block.chunk;
  if (chunk == nullptr) return;
  std::lock_guard guard(blocks_lock_);
  chunk->in_use = false;
  used_ -= chunk->size_bytes;
  used_by_[static_cast<size_t>(chunk->use)] -= chunk->size_bytes;
  --live_blocks_;
  Access last;
  size_t pending = 0;
  for (const Access& access : accesses) {
    if (access.timeline == nullptr || access.timeline->has_reached(access.number)) continue;
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
      deferred_.push_back({chunk, {accesses.begin(), accesses.end()}});
      return;
    }
    binned_bytes_ += chunk->size_bytes;
    bins_[static_cast<size_t>(bin_of(chunk->size_bytes))].push_back({chunk, pending == 1 ? last : Access{}});
  } catch (const std::bad_alloc&) {
    // Without memory for a list entry the block stays reserved until the pool is destroyed.
  }
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
  const Block block = allocate(size_bytes, nullptr, MemoryUse::kTemporary);
  free(block, {});
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

void MemoryPool::throw_out_of_memory(int64_t size_bytes) {
  std::lock_guard guard(lock_);
  std::lock_guard blocks_guard(blocks_lock_);
  std::vector<int64_t> sizes;
  for (const Slab* slab : slabs_) {
    for (const Chunk* chunk = slab->first; chunk != nullptr; chunk = chunk->next) {
      if (chunk->in_use) sizes.push_back(chunk->size_bytes);
    }
  }
  std::sort(sizes.rbegin(), sizes.rend());
  std::string text = fmt::format("{}: out of memory for {} bytes", device_name_, size_bytes);
  if (limit_ >= 0) text += fmt::format(" (limit {} bytes)", limit_);
  text += fmt::format(
      "\n  tensors     {:>16} bytes\n  mirrors     {:>16} bytes\n  temporaries {:>16} bytes\n  cached      {:>16} bytes"
      "\n  reserved    {:>16} bytes in {} allocations",
      used_by_[0], used_by_[1], used_by_[2], binned_bytes_ + free_bytes_, reserved_, slabs_.size());
  if (!sizes.empty()) text += fmt::format("\n  {} live blocks, the greatest:", sizes.size());
  for (size_t i = 0; i < std::min<size_t>(sizes.size(), 5); ++i) text += fmt::format(" {}", sizes[i]);
  throw Error(out_of_memory_code_, std::move(text)).on_device(device_name_);
}

std::unique_ptr<RawMemory> make_host_memory() { return std::make_unique<HostMemory>(); }

}  // namespace compute
