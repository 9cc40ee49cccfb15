// SPDX-License-Identifier: Apache-2.0
#include "core/staging.hpp"

#include <algorithm>
#include <array>

#include "core/copy_helpers.hpp"
#include "core/device.hpp"
#include "core/timeline.hpp"

namespace compute {
namespace {

constexpr int64_t kLeastChunk = int64_t{256} << 10;
constexpr int64_t kMostChunk = int64_t{4} << 20;
constexpr int64_t kAlignment = int64_t{4} << 10;
constexpr size_t kSlots = 6;

int64_t chunk_bytes(int64_t size_bytes) noexcept {
  return (std::clamp(size_bytes / 64, kLeastChunk, kMostChunk) + kAlignment - 1) / kAlignment * kAlignment;
}

// The pinned chunks of one transfer, as many as there is memory for. A chunk is filled again once the number under which it was used last has been reached.
class Ring {
 public:
  Ring(Timeline& timeline, int64_t chunk, int64_t count) : timeline_(timeline), pool_(*timeline.device.pinned) {
    const auto wanted = static_cast<size_t>(std::min<int64_t>(count, kSlots));
    try {
      for (; used_ < wanted; ++used_) slots_[used_].block = pool_.allocate(chunk, nullptr, MemoryUse::kTemporary);
    } catch (const Error&) {
      // Fewer chunks will do, and without any there is the plugin's plain copy.
    }
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring() {
    for (size_t i = 0; i < used_; ++i) {
      const Access last{&timeline_, slots_[i].number};
      pool_.free(slots_[i].block, {&last, slots_[i].number != 0 ? size_t{1} : size_t{0}});
    }
  }

  int64_t size() const noexcept { return static_cast<int64_t>(used_); }
  void* data(int64_t chunk) noexcept {
    const Block& block = at(chunk).block;
    return reinterpret_cast<void*>(block.buffer + static_cast<uint64_t>(block.offset_bytes));
  }
  // What was queued for this chunk so far carries `number`.
  void mark(int64_t chunk, uint64_t number) {
    at(chunk).number = number;
    timeline_.mark_at_locked(number);
  }
  void wait(int64_t chunk) {
    if (at(chunk).number != 0) timeline_.wait_locked(at(chunk).number);
  }

 private:
  struct Slot {
    Block block;
    uint64_t number = 0;
  };
  Slot& at(int64_t chunk) noexcept { return slots_[static_cast<size_t>(chunk) % used_]; }

  Timeline& timeline_;
  MemoryPool& pool_;
  std::array<Slot, kSlots> slots_;
  size_t used_ = 0;
};

}  // namespace

// Memory that the host can see is not reached over a bus: the driver's own copy is one by the processor already.
static bool uses_ring(const compute_device& device) noexcept {
  return device.pinned && (device.heaps[0].flags & COMPUTE_HEAP_HOST_VISIBLE) == 0;
}

int64_t transfer_numbers(const compute_device& device, int64_t size_bytes) noexcept {
  const int64_t chunk = chunk_bytes(size_bytes);
  return uses_ring(device) ? std::max<int64_t>(1, (size_bytes + chunk - 1) / chunk) : 1;
}

bool copy_to_device(Submission& submission, const void* src, compute_plugin_operand dst, int64_t size_bytes) {
  Timeline& timeline = submission.timeline();
  compute_device& device = timeline.device;
  const auto plain = [&] {
    device.check(device.table.copy_from_host(timeline.plugin_stream, src, &dst, size_bytes));
    return false;
  };
  if (!uses_ring(device)) return plain();
  const int64_t chunk = std::min(chunk_bytes(size_bytes), size_bytes);
  const int64_t count = transfer_numbers(device, size_bytes);
  Ring ring(timeline, chunk, count);
  if (ring.size() == 0) return plain();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t begin = i * chunk;
    const int64_t bytes = std::min(chunk, size_bytes - begin);
    ring.wait(i);
    copy_memory(ring.data(i), static_cast<const char*>(src) + begin, bytes);
    const compute_plugin_operand part{dst.buffer, dst.offset_bytes + begin};
    device.check(device.table.copy_from_host(timeline.plugin_stream, ring.data(i), &part, bytes));
    ring.mark(i, submission.first_number() + static_cast<uint64_t>(i));
  }
  return true;
}

bool copy_to_host(Submission& submission, compute_plugin_operand src, void* dst, int64_t size_bytes) {
  Timeline& timeline = submission.timeline();
  compute_device& device = timeline.device;
  const auto plain = [&] {
    device.check(device.table.copy_to_host(timeline.plugin_stream, &src, dst, size_bytes));
    return false;
  };
  if (!uses_ring(device)) return plain();
  const int64_t chunk = std::min(chunk_bytes(size_bytes), size_bytes);
  const int64_t count = transfer_numbers(device, size_bytes);
  Ring ring(timeline, chunk, count);
  if (ring.size() == 0) return plain();
  const auto queue = [&](int64_t i) {
    const int64_t begin = i * chunk;
    const int64_t bytes = std::min(chunk, size_bytes - begin);
    const compute_plugin_operand part{src.buffer, src.offset_bytes + begin};
    device.check(device.table.copy_to_host(timeline.plugin_stream, &part, ring.data(i), bytes));
    ring.mark(i, submission.first_number() + static_cast<uint64_t>(i));
  };
  for (int64_t i = 0; i < ring.size(); ++i) queue(i);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t begin = i * chunk;
    ring.wait(i);
    copy_memory(static_cast<char*>(dst) + begin, ring.data(i), std::min(chunk, size_bytes - begin));
    if (i + ring.size() < count) queue(i + ring.size());
  }
  return true;
}

}  // namespace compute
