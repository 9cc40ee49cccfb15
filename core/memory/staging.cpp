// SPDX-License-Identifier: Apache-2.0
#include "core/memory/staging.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "core/devices/device.hpp"
#include "core/memory/copy_helpers.hpp"
#include "core/memory/host_copy.hpp"
#include "core/memory/pool.hpp"
#include "core/streams/timeline.hpp"

namespace compute {
namespace {

constexpr int64_t kLeastChunk = int64_t{256} << 10;
constexpr int64_t kMostChunk = int64_t{4} << 20;
constexpr int64_t kAlignment = int64_t{4} << 10;
constexpr size_t kSlots = 6;
static_assert(kSlots <= ChunkedCopy::kMostSlots);

int64_t chunk_bytes(int64_t size_bytes) noexcept {
  return (std::clamp(size_bytes / 32, kLeastChunk, kMostChunk) + kAlignment - 1) / kAlignment * kAlignment;
}

// The pinned chunks of one transfer, as many as memory allows. A chunk is reused once its last submission has
// ended.
class Ring {
 public:
  Ring(Timeline& timeline, MemoryPool& pool, int64_t chunk, int64_t count) : timeline_(timeline) {
    const auto wanted = static_cast<size_t>(std::min<int64_t>(count, kSlots));
    try {
      for (; used_ < wanted; ++used_) {
        const Block& block = slots_[used_].owned.emplace(pool, chunk, MemoryUse::kTemporary).block();
        data_[used_] = block.host();
        if (debugs_memory()) fill_bytes(data_[used_], chunk, kNewPattern.data(), 2);
      }
    } catch (const Error&) {
      // Fewer chunks will do, and without any there is the plugin's plain copy.
    }
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  int64_t size() const noexcept { return static_cast<int64_t>(used_); }
  std::span<void* const> data() const noexcept { return {data_.data(), used_}; }
  void* data(int64_t chunk) const noexcept { return data_[static_cast<size_t>(chunk) % used_]; }
  compute_plugin_operand place(int64_t chunk) noexcept {
    const Block& block = at(chunk).owned->block();
    return {block.buffer, block.offset_bytes};
  }
  // What is queued for this chunk next carries `number`.
  void use(int64_t chunk, uint64_t number) {
    at(chunk).owned->used_by(timeline_, number);
    at(chunk).number = number;
  }
  // It has been queued.
  void mark(int64_t chunk) { timeline_.mark_at_locked(at(chunk).number); }
  void wait(int64_t chunk) {
    if (at(chunk).number != 0) timeline_.wait_locked(at(chunk).number);
  }
  bool is_free(int64_t chunk) noexcept { return at(chunk).number == 0 || timeline_.has_reached(at(chunk).number); }

 private:
  struct Slot {
    std::optional<OwnedBlock> owned;
    uint64_t number = 0;
  };
  Slot& at(int64_t chunk) noexcept { return slots_[static_cast<size_t>(chunk) % used_]; }

  Timeline& timeline_;
  std::array<Slot, kSlots> slots_;
  std::array<void*, kSlots> data_{};
  size_t used_ = 0;
};

}  // namespace

// Memory that the host can see is not reached over a bus: the driver's own copy is one by the processor already.
static bool uses_ring(const compute_device& device) noexcept {
  return device.pinned && (device.heaps[0].flags & COMPUTE_PLUGIN_HEAP_HOST_VISIBLE) == 0;
}

int64_t transfer_numbers(const compute_device& device, int64_t size_bytes) noexcept {
  const int64_t chunk = chunk_bytes(size_bytes);
  return uses_ring(device) ? std::max<int64_t>(1, (size_bytes + chunk - 1) / chunk) : 1;
}

bool copy_to_device(Submission& submission, const void* src, compute_plugin_operand dst, int64_t size_bytes) {
  Timeline& timeline = submission.timeline();
  compute_device& device = timeline.device;
  const auto plain = [&] {
    submission.check(device.table.copy_from_host(timeline.plugin_stream, src, dst, size_bytes));
    return false;
  };
  if (!uses_ring(device) || size_bytes == 0) return plain();
  const int64_t chunk = std::min(chunk_bytes(size_bytes), size_bytes);
  const int64_t count = transfer_numbers(device, size_bytes);
  Ring ring(timeline, *device.upload_pool(), chunk, count);
  if (ring.size() == 0) return plain();
  ChunkedCopy copy(ChunkedCopy::Direction::kToRing, const_cast<void*>(src), size_bytes, ring.data(), chunk);
  for (int64_t i = 0, allowed = 0; i < count; ++i) {
    // Slots that the device has read are filled again, chunk i's in any case.
    const int64_t before = allowed;
    if (allowed < count && i > 0) timeline.ask();
    while (allowed < std::min(count, i + ring.size()) && (allowed <= i || ring.is_free(allowed))) {
      ring.wait(allowed);
      ++allowed;
    }
    if (allowed > before) copy.allow(allowed);
    copy.finish(i);
    const int64_t begin = i * chunk;
    const int64_t bytes = std::min(chunk, size_bytes - begin);
    const compute_plugin_operand part{dst.buffer, dst.offset_bytes + begin};
    ring.use(i, submission.first_number() + static_cast<uint64_t>(i));
    const compute_plugin_operand pinned = ring.place(i);
    submission.check(device.table.copy_from_host(timeline.plugin_stream, ring.data(i), part, bytes, &pinned));
    ring.mark(i);
  }
  return true;
}

bool copy_to_host(Submission& submission, compute_plugin_operand src, void* dst, int64_t size_bytes) {
  Timeline& timeline = submission.timeline();
  compute_device& device = timeline.device;
  const auto plain = [&] {
    submission.check(device.table.copy_to_host(timeline.plugin_stream, src, dst, size_bytes));
    return false;
  };
  if (!uses_ring(device) || size_bytes == 0) return plain();
  const int64_t chunk = std::min(chunk_bytes(size_bytes), size_bytes);
  const int64_t count = transfer_numbers(device, size_bytes);
  Ring ring(timeline, *device.pinned, chunk, count);
  if (ring.size() == 0) return plain();
  const auto queue = [&](int64_t i) {
    const int64_t begin = i * chunk;
    const int64_t bytes = std::min(chunk, size_bytes - begin);
    const compute_plugin_operand part{src.buffer, src.offset_bytes + begin};
    ring.use(i, submission.first_number() + static_cast<uint64_t>(i));
    const compute_plugin_operand pinned = ring.place(i);
    submission.check(device.table.copy_to_host(timeline.plugin_stream, part, ring.data(i), bytes, &pinned));
    ring.mark(i);
  };
  for (int64_t i = 0; i < ring.size(); ++i) queue(i);
  ChunkedCopy copy(ChunkedCopy::Direction::kFromRing, dst, size_bytes, ring.data(), chunk);
  int64_t finished = 0;
  const auto finish_one = [&] {
    copy.finish(finished);
    if (finished + ring.size() < count) queue(finished + ring.size());
    ++finished;
  };
  for (int64_t i = 0; i < count; ++i) {
    ring.wait(i);
    copy.allow(i + 1);
    // Half of the slots are left to the device.
    while (finished <= i && (finished + ring.size() / 2 <= i || copy.is_finished(finished))) finish_one();
  }
  while (finished < count) finish_one();
  return true;
}

}  // namespace compute
