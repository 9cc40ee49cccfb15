// SPDX-License-Identifier: Apache-2.0
// Updates at indices, grouped by ranges of their targets, so that threads never conflict and the updates of an element
// keep their order.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <span>
#include <utility>

#include "plugins/cpu/move/indices.hpp"
#include "plugins/cpu/threads/threads.hpp"

namespace compute::cpu {

class IndexRanges {
 public:
  struct Update {
    uint32_t at;        // the index
    uint32_t position;  // its position among the indices
  };

  IndexRanges() = default;
  /// `count` indices below `extent`, both fewer than 2^32; ranges have at least `least` elements.
  IndexRanges(int64_t count, int64_t extent, int64_t least, int64_t threads)
      : count_(count),
        extent_(extent),
        piece_(std::max<int64_t>(kLeastPiece, count / (kPiecesPerThread * threads))),
        shift_(std::max(width(extent - 1) - kRangeBits, width(least - 1))) {}

  int64_t count() const { return count_; }
  int64_t ranges() const { return ((extent_ - 1) >> shift_) + 1; }
  int64_t workspace_bytes() const {
    return count_ * int64_t{sizeof(Update)} + (pieces() + 1) * kMostRanges * int64_t{sizeof(uint32_t)};
  }

  /// Reads the indices, `stride` bytes apart. Those out of range are left out; true iff there is one of these.
  bool divide(compute_dtype dtype, const char* indices, int64_t stride, char* memory) const {
    Update* const updates = updates_in(memory);
    uint32_t* const counts = counts_in(memory);
    std::atomic<bool> is_bad{false};
    for_pieces([&](int64_t piece, int64_t begin, int64_t end) {
      uint32_t* const own = counts + piece * kMostRanges;
      std::fill(own, own + kMostRanges, 0);
      const bool bad = for_indices(dtype, indices, stride, begin, end,
                                   [own, shift = shift_](int64_t at, int64_t) { ++own[at >> shift]; });
      if (bad) is_bad.store(true, std::memory_order_relaxed);
    });
    uint32_t sizes[kMostRanges] = {};
    for (int64_t piece = 0; piece < pieces(); ++piece) {
      for (int64_t i = 0; i < kMostRanges; ++i) sizes[i] += counts[piece * kMostRanges + i];
    }
    uint32_t* const ends = counts + pieces() * kMostRanges;
    uint32_t place = 0;
    for (int64_t i = 0; i < kMostRanges; ++i) {
      place += std::exchange(sizes[i], place);
      ends[i] = place;
    }
    for (int64_t piece = 0; piece < pieces(); ++piece) {
      uint32_t* const own = counts + piece * kMostRanges;
      for (int64_t i = 0; i < kMostRanges; ++i) sizes[i] += std::exchange(own[i], sizes[i]);
    }
    for_pieces([&](int64_t piece, int64_t begin, int64_t end) {
      uint32_t* const own = counts + piece * kMostRanges;
      for_indices(dtype, indices, stride, begin, end, [=, shift = shift_](int64_t at, int64_t position) {
        updates[own[at >> shift]++] = {static_cast<uint32_t>(at), static_cast<uint32_t>(position)};
      });
    });
    return is_bad.load();
  }

  /// The elements of a range, and its updates in the order of their positions, once they are divided.
  std::pair<int64_t, int64_t> elements(int64_t range) const {
    return {range << shift_, std::min(extent_, (range + 1) << shift_)};
  }
  std::span<const Update> updates(int64_t range, char* memory) const {
    const uint32_t* const ends = counts_in(memory) + pieces() * kMostRanges;
    const uint32_t first = range == 0 ? 0 : ends[range - 1];
    return {updates_in(memory) + first, ends[range] - first};
  }

 private:
  static constexpr int kRangeBits = 8;
  static constexpr int64_t kMostRanges = int64_t{1} << kRangeBits;
  static constexpr int64_t kLeastPiece = 8 << 10;  // least work that justifies waking a thread
  static constexpr int64_t kPiecesPerThread = 4;

  static int width(int64_t x) { return static_cast<int>(std::bit_width(static_cast<uint64_t>(x))); }
  int64_t pieces() const { return (count_ + piece_ - 1) / piece_; }
  static Update* updates_in(char* memory) { return reinterpret_cast<Update*>(memory); }
  // Of the pieces, followed by the ends of the ranges.
  uint32_t* counts_in(char* memory) const { return reinterpret_cast<uint32_t*>(updates_in(memory) + count_); }

  template <class F>
  void for_pieces(const F& body) const {
    parallel_tasks(pieces(), 1, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) body(i, i * piece_, std::min(count_, (i + 1) * piece_));
    });
  }

  // Calls body(index, position) for positions [begin, end) whose index is in range. True iff one is not.
  template <class F>
  bool for_indices(compute_dtype dtype, const char* indices, int64_t stride, int64_t begin, int64_t end,
                   const F& body) const {
    const auto go = [&]<class I>(I, int64_t step) {
      bool bad = false;
      for (int64_t i = begin; i < end; ++i) {
        const int64_t given = *reinterpret_cast<const I*>(indices + i * step);
        const int64_t at = given < 0 ? given + extent_ : given;
        if (static_cast<uint64_t>(at) < static_cast<uint64_t>(extent_)) {
          body(at, i);
        } else {
          bad = true;
        }
      }
      return bad;
    };
    return dtype == COMPUTE_DTYPE_INT32 ? go(int32_t{}, stride) : go(int64_t{}, stride);
  }

  int64_t count_ = 0, extent_ = 1;
  int64_t piece_ = 1;
  int shift_ = 0;
};

}  // namespace compute::cpu
