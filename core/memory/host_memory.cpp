// SPDX-License-Identifier: Apache-2.0
#include "core/memory/host_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <list>
#include <utility>

#include "core/base/caller_world.hpp"
#include "core/memory/poison.hpp"
#include "core/process/host_limits.hpp"

namespace compute {
namespace {

class HostMemory final : public RawMemory {
 public:
  bool allocate(int64_t size_bytes, RawBlock* out_block) override {
    if (!has_room_for(size_bytes)) return false;
    const auto place = given_.emplace(given_.end(), 0, size_bytes);
    // Over-allocates by a huge page so that large slabs begin on one, and returns the rest.
    const bool large = size_bytes >= kHugePage;
    const auto total = static_cast<size_t>(size_bytes + (large ? kHugePage : 0));
    void* raw = mmap(nullptr, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (raw == MAP_FAILED) {
      given_.erase(place);
      return false;
    }
    auto begin = reinterpret_cast<uintptr_t>(raw);
    if (large) {
      const uintptr_t aligned = (begin + kHugePage - 1) & ~static_cast<uintptr_t>(kHugePage - 1);
      if (aligned > begin) munmap(raw, aligned - begin);
      const uintptr_t end = begin + total, used_end = aligned + static_cast<size_t>(size_bytes);
      if (end > used_end) munmap(reinterpret_cast<void*>(used_end), end - used_end);
      begin = aligned;
      madvise(reinterpret_cast<void*>(begin), static_cast<size_t>(size_bytes), MADV_HUGEPAGE);
    }
    place->first = begin;
    *out_block = {begin, reinterpret_cast<void*>(begin)};
    held_ += size_bytes;
    return true;
  }

  void free(uint64_t buffer, int64_t size_bytes) noexcept override {
    const CallerWorld world;
    unpoison(buffer, size_bytes);  // the next owner of the addresses may be anybody
    munmap(reinterpret_cast<void*>(buffer), static_cast<size_t>(size_bytes));
    held_ -= size_bytes;
    given_.erase(std::find_if(given_.begin(), given_.end(), [&](const auto& one) { return one.first == buffer; }));
  }

  std::optional<MemoryState> state() noexcept override {
    try {
      const HostMemoryState now = host_memory_state();
      return MemoryState{now.total, now.available, now.limited_by};
    } catch (...) {
      return std::nullopt;
    }
  }

  bool takes_poison() const noexcept override { return true; }

 private:
  // The system commits memory when it is touched, and kills the process if none is left. So allocated memory that has
  // not been touched yet counts as used. Small amounts are checked together.
  bool has_room_for(int64_t size_bytes) {
    if (size_bytes < kCheckedFrom - unchecked_) {
      unchecked_ += size_bytes;
      return true;
    }
    const int64_t available = host_memory_state().available;
    if (available >= 0 && size_bytes > available - held_ && size_bytes > available - untouched_bytes()) return false;
    unchecked_ = 0;
    return true;
  }

  // Of the allocated memory. Pages of unknown state count as touched.
  int64_t untouched_bytes() const noexcept {
    const int64_t page = sysconf(_SC_PAGESIZE);
    std::array<unsigned char, 4096> resident;
    int64_t touched = 0;
    for (const auto& [begin, size_bytes] : given_) {
      const int64_t step = page * static_cast<int64_t>(resident.size());
      for (int64_t offset = 0; offset < size_bytes; offset += step) {
        const int64_t bytes = std::min(step, size_bytes - offset);
        if (mincore(reinterpret_cast<void*>(begin + static_cast<uint64_t>(offset)), static_cast<size_t>(bytes),
                    resident.data()) != 0) {
          touched += bytes;
          continue;
        }
        const auto end = resident.begin() + (bytes + page - 1) / page;
        touched += page * std::count_if(resident.begin(), end, [](unsigned char one) { return (one & 1) != 0; });
      }
    }
    return std::max<int64_t>(held_ - touched, 0);
  }

  static constexpr int64_t kCheckedFrom = int64_t{32} << 20;

  // The pool asks under its lock.
  std::list<std::pair<uint64_t, int64_t>> given_;  // address and bytes
  int64_t held_ = 0;                               // of all of them
  int64_t unchecked_ = 0;                          // since the last look
};

}  // namespace

std::unique_ptr<RawMemory> make_host_memory() { return std::make_unique<HostMemory>(); }

}  // namespace compute
