// SPDX-License-Identifier: Apache-2.0
#include "core/collective/exchange.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>

#include "core/collective/combine.hpp"
#include "core/expressions/dtype.hpp"
#include "core/lifetime/open_device.hpp"
#include "core/memory/buffer.hpp"
#include "core/runner/planned_call.hpp"
#include "core/streams/submission.hpp"

namespace compute {
namespace {

// Of all parts of a chunk. The ranks wait for each other in each chunk, so more of them exchange larger ones.
constexpr int64_t kChunkBytes = int64_t{4} << 20, kLargestChunkBytes = int64_t{16} << 20;
constexpr int64_t kLeastPartBytes = int64_t{64} << 10;

int64_t chunk_bytes(int64_t ranks) {
  return std::max(std::clamp(kChunkBytes * ranks / 2, kChunkBytes, kLargestChunkBytes), kLeastPartBytes * ranks);
}

// An all-reduce of so many bytes and less gathers all values, and each rank combines all of them: one message to each
// rank instead of two.
constexpr int64_t kSmallBytes = int64_t{4} << 10;

// Host memory, pinned where the device has such memory.
class HostMemory {
 public:
  void allocate(Device& device, int64_t size_bytes) {
    if (size_bytes == 0) return;
    if (device.pinned) {
      try {
        pinned_.emplace(*device.pinned, size_bytes, MemoryUse::kTemporary);
        data_ = pinned_->block().host();
        return;
      } catch (const Error&) {
        // The system has no more memory to pin. Pageable memory serves as well.
      }
    }
    // Not a buffer: with COMPUTE_DEBUG=memory a new one is filled in the order of the stream, which waits for the call.
    pageable_.emplace(*host_device().memory, size_bytes, MemoryUse::kTemporary);
    const Block& block = pageable_->block();
    data_ = reinterpret_cast<uint8_t*>(block.buffer) + block.offset_bytes;
  }
  uint8_t* data() const noexcept { return data_; }
  // Where the plugin finds a byte of it, if it is pinned.
  std::optional<compute_plugin_operand> place(int64_t offset_bytes) const noexcept {
    if (!pinned_) return std::nullopt;
    return compute_plugin_operand{pinned_->block().buffer, pinned_->block().offset_bytes + offset_bytes};
  }

 private:
  std::optional<OwnedBlock> pinned_, pageable_;
  uint8_t* data_ = nullptr;
};

struct Slot {
  HostMemory src, dst;
  uint64_t loaded = 0;  // number on the stream for copies
};

class Exchange {
 public:
  Exchange(const Collective& call, Transport& transport, Timeline* copies)
      : call_(call),
        transport_(transport),
        copies_(copies),
        ranks_(transport.size()),
        element_(dtype_size(call.dtype)),
        src_parts_(call.src != nullptr ? call.parts_of_src(ranks_) : 0),
        dst_parts_(call.dst != nullptr ? call.parts_of_dst(ranks_) : 0),
        chunk_(
            std::clamp<int64_t>(chunk_bytes(ranks_) / (element_ * std::max(src_parts_, dst_parts_)) / ranks_ * ranks_,
                                ranks_, std::max<int64_t>(call.count, ranks_))) {}

  void run() {
    allocate();
    const int64_t chunks = (call_.count + chunk_ - 1) / chunk_;
    load(0);
    for (int64_t i = 0; i < chunks; ++i) {
      if (i + 1 < chunks) load(i + 1);
      Slot& slot = slots_[static_cast<size_t>(i % 2)];
      // The copies are in order: what was stored from this slot before has been read, too.
      if (slot.loaded != 0) copies_->require_end(slot.loaded);
      const uint8_t* const src = src_parts_ > 0 ? source(i) : nullptr;
      uint8_t* const dst = dst_parts_ > 0 ? target(i) : nullptr;
      step(src, dst, size_of(i));
      if (dst_parts_ > 0) store(i, dst);
    }
    if (stored_ != 0) copies_->wait_for_own(stored_);
  }

 private:
  int64_t size_of(int64_t i) const noexcept { return std::min(chunk_, call_.count - i * chunk_); }
  bool is_in_one_piece(int64_t parts, int64_t i) const noexcept { return parts == 1 || size_of(i) == call_.count; }
  static uint8_t* address(const Tensor& tensor) { return tensor.buffer->host_address() + tensor.offset_bytes; }

  void allocate() {
    Device& device = call_.src != nullptr ? call_.src->buffer->device : call_.dst->buffer->device;
    const bool takes_several = chunk_ < call_.count;
    const auto staged = [&](int64_t parts) {
      return copies_ != nullptr || (parts > 1 && takes_several) ? parts * chunk_ * element_ : 0;
    };
    for (size_t i = 0; i < (takes_several ? 2U : 1U); ++i) {
      slots_[i].src.allocate(device, staged(src_parts_));
      slots_[i].dst.allocate(device, staged(dst_parts_));
    }
    if (call_.kind == COMPUTE_PLUGIN_COLLECTIVE_ALL_REDUCE || call_.kind == COMPUTE_PLUGIN_COLLECTIVE_REDUCE_SCATTER) {
      const int64_t few = std::max<int64_t>(std::min(chunk_, kSmallBytes / element_), ranks_);
      middle_.allocate(host_device(), std::max(chunk_, few * ranks_) * element_ * src_parts_);
    }
  }

  // ---- Between the tensors and host memory

  // Calls copy(offset in the tensor, offset in the slot, bytes) for each part of a chunk.
  template <class F>
  void each_part(int64_t parts, int64_t i, F&& copy) const {
    const int64_t bytes = size_of(i) * element_;
    for (int64_t part = 0; part < parts; ++part)
      copy((part * call_.count + i * chunk_) * element_, part * bytes, bytes);
  }

  template <class F>
  uint64_t queue(const Tensor& tensor, int64_t parts, int64_t i, F&& copy) {
    Submission submission(*copies_, {}, call_.name, 1, parts * size_of(i) * element_);
    each_part(parts, i, [&](int64_t at, int64_t in_slot, int64_t bytes) {
      submission.check(copy(operand_at(*tensor.buffer, tensor.offset_bytes + at), in_slot, bytes));
    });
    copies_->mark_at_locked(submission.number());
    return submission.number();
  }

  void load(int64_t i) {
    if (src_parts_ == 0) return;
    Slot& slot = slots_[static_cast<size_t>(i % 2)];
    if (copies_ != nullptr) {
      slot.loaded = queue(*call_.src, src_parts_, i, [&](const compute_plugin_operand& at, int64_t to, int64_t bytes) {
        const auto pinned = slot.src.place(to);
        return copies_->device.table.copy_to_host(copies_->plugin_stream, at, slot.src.data() + to, bytes,
                                                  pinned ? &*pinned : nullptr);
      });
    } else if (!is_in_one_piece(src_parts_, i)) {
      each_part(src_parts_, i, [&](int64_t at, int64_t to, int64_t bytes) {
        std::memcpy(slot.src.data() + to, address(*call_.src) + at, static_cast<size_t>(bytes));
      });
    }
  }

  const uint8_t* source(int64_t i) const {
    if (copies_ == nullptr && is_in_one_piece(src_parts_, i)) return address(*call_.src) + i * chunk_ * element_;
    return slots_[static_cast<size_t>(i % 2)].src.data();
  }
  uint8_t* target(int64_t i) const {
    if (copies_ == nullptr && is_in_one_piece(dst_parts_, i)) return address(*call_.dst) + i * chunk_ * element_;
    return slots_[static_cast<size_t>(i % 2)].dst.data();
  }

  void store(int64_t i, const uint8_t* dst) {
    if (copies_ != nullptr) {
      stored_ = queue(*call_.dst, dst_parts_, i, [&](const compute_plugin_operand& at, int64_t from, int64_t bytes) {
        const auto pinned = slots_[static_cast<size_t>(i % 2)].dst.place(from);
        return copies_->device.table.copy_from_host(copies_->plugin_stream, dst + from, at, bytes,
                                                    pinned ? &*pinned : nullptr);
      });
    } else if (!is_in_one_piece(dst_parts_, i)) {
      each_part(dst_parts_, i, [&](int64_t at, int64_t from, int64_t bytes) {
        std::memcpy(address(*call_.dst) + at, dst + from, static_cast<size_t>(bytes));
      });
    }
  }

  // ---- Between the ranks

  void step(const uint8_t* src, uint8_t* dst, int64_t count) {
    const int64_t bytes = count * element_;
    switch (call_.kind) {
      case COMPUTE_PLUGIN_COLLECTIVE_ALL_REDUCE:
        all_reduce(src, dst, count);
        break;
      case COMPUTE_PLUGIN_COLLECTIVE_REDUCE_SCATTER:
        transport_.all_to_all(src, middle_.data(), bytes);
        combine(call_.reduction, call_.dtype, middle_.data(), ranks_, dst, count);
        break;
      case COMPUTE_PLUGIN_COLLECTIVE_ALL_GATHER:
        transport_.all_gather(src, dst, bytes);
        break;
      case COMPUTE_PLUGIN_COLLECTIVE_BROADCAST:
        if (transport_.rank() == call_.peer && src != dst) std::memcpy(dst, src, static_cast<size_t>(bytes));
        transport_.broadcast(dst, bytes, call_.peer);
        break;
      case COMPUTE_PLUGIN_COLLECTIVE_ALL_TO_ALL:
        transport_.all_to_all(src, dst, bytes);
        break;
      case COMPUTE_PLUGIN_COLLECTIVE_SEND:
        transport_.send(src, bytes, call_.peer);
        break;
      default:
        transport_.recv(dst, bytes, call_.peer);
        break;
    }
  }

  // Each rank combines one part of the chunk. The elements that the ranks cannot share equally are combined by all.
  void all_reduce(const uint8_t* src, uint8_t* dst, int64_t count) {
    const int64_t part = count * element_ <= kSmallBytes ? 0 : count / ranks_;
    if (part > 0) transport_.all_to_all(src, middle_.data(), part * element_);
    const int64_t rest = count - part * ranks_;
    if (rest > 0) {  // before `dst`, which may be `src`, is written
      HostMemory& memory = part > 0 ? rest_ : middle_;
      if (part > 0 && memory.data() == nullptr) memory.allocate(host_device(), ranks_ * ranks_ * element_);
      const int64_t at = part * ranks_ * element_;
      transport_.all_gather(src + at, memory.data(), rest * element_);
      combine(call_.reduction, call_.dtype, memory.data(), ranks_, dst + at, rest);
    }
    if (part == 0) return;
    uint8_t* const own = dst + transport_.rank() * part * element_;
    combine(call_.reduction, call_.dtype, middle_.data(), ranks_, own, part);
    transport_.all_gather(own, dst, part * element_);
  }

  const Collective& call_;
  Transport& transport_;
  Timeline* const copies_;
  const int32_t ranks_;
  const int64_t element_;
  const int64_t src_parts_, dst_parts_;
  const int64_t chunk_;  // elements of a part
  std::array<Slot, 2> slots_;
  HostMemory middle_, rest_;
  uint64_t stored_ = 0;
};

}  // namespace

void exchange(const Collective& call, Transport& transport, Timeline* copies, bool* out_keeps_tensors) {
  auto exchange = std::make_shared<Exchange>(call, transport, copies);
  try {
    exchange->run();
  } catch (...) {
    if (transport.has_open_request()) {
      *out_keeps_tensors = copies == nullptr;
      keep_forever(std::move(exchange));
    } else if (copies != nullptr) {
      copies->wait_quietly(copies->submitted());
    }
    throw;
  }
}

}  // namespace compute
