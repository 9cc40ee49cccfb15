// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/move/gather.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

#include "plugins/common/op/layout.hpp"
#include "plugins/cpu/base/walk.hpp"
#include "plugins/cpu/isa/isa.hpp"
#include "plugins/cpu/kernels/copy_kernel.hpp"
#include "plugins/cpu/map/block_program.hpp"
#include "plugins/cpu/move/indices.hpp"
#include "plugins/cpu/threads/threads.hpp"

namespace compute::cpu {
namespace {

constexpr int64_t kPieceElements = 4 << 10;  // a grain
constexpr int64_t kCheckedAtOnce = 16;       // indices

constexpr int64_t kLine = 64;
constexpr int64_t kRowsAhead = 8;
constexpr int64_t kFetchedBytes = 512;            // of a row; the hardware prefetcher fetches the rest
constexpr int64_t kStreamBytes = 16 << 20;        // of rows of whole lines: from here on by non-temporal stores
constexpr int64_t kSharedStreamBytes = 24 << 20;  // the same on several threads, whose caches hold more
constexpr int64_t kStreamAhead = 4096;            // bytes that are prefetched

int64_t divide_up(int64_t x, int64_t y) { return (x + y - 1) / y; }

struct Sixteen {
  char bytes[16];
};

// True if none of kCheckedAtOnce indices counts from the end or is out of range.
template <class Index>
bool are_positions(const char* indices, int64_t extent) {
  using Bits = std::make_unsigned_t<Index>;
  typedef Bits Vector __attribute__((vector_size(16)));
  constexpr uint64_t kMost = std::numeric_limits<Index>::max();
  const Vector last = Vector{} + static_cast<Bits>(std::min(static_cast<uint64_t>(extent - 1), kMost));
  Vector signs = {};  // of each index and of its distance to the last position
#pragma GCC unroll 8
  for (size_t i = 0; i < kCheckedAtOnce * sizeof(Index); i += sizeof(Vector)) {
    Vector given;
    std::memcpy(&given, indices + i, sizeof given);
    signs |= given | (last - given);
  }
  uint64_t words[2];
  std::memcpy(words, &signs, sizeof words);
  constexpr uint64_t kSigns = sizeof(Index) == 4 ? 0x8000'0000'8000'0000 : 0x8000'0000'0000'0000;
  return ((words[0] | words[1]) & kSigns) == 0;
}

// dst[j] = src[j + index[j] along the axis]. True iff there was an index out of range; nothing is written for it.
template <class T, class Index>
[[gnu::noinline]] bool pick(char* dst, int64_t dst_stride, const char* src, int64_t src_stride, int64_t axis_stride,
                            const char* index, int64_t index_stride, int64_t extent, int64_t n) {
  bool bad = false;
  for (int64_t j = 0; j < n; ++j) {
    int64_t at = *reinterpret_cast<const Index*>(index + j * index_stride);
    at += at < 0 ? extent : 0;
    if (static_cast<uint64_t>(at) >= static_cast<uint64_t>(extent)) {
      bad = true;
      continue;
    }
    std::memcpy(dst + j * dst_stride, src + j * src_stride + at * axis_stride, sizeof(T));
  }
  return bad;
}

// The same for elements that are contiguous in dst and along the axis. It checks many indices at a time, unless that
// has been done: fewer instructions per element allow more loads in flight.
template <class T, class Index>
bool pick_dense(char* dst, const char* src, const char* index, int64_t extent, int64_t n, bool is_checked) {
  constexpr int64_t kSize = sizeof(T), kIndexSize = sizeof(Index);
  const auto pick_checked = [&](int64_t first, int64_t count) {
    return pick<T, Index>(dst + first * kSize, kSize, src, 0, kSize, index + first * kIndexSize, kIndexSize, extent,
                          count);
  };
  bool bad = false;
  int64_t j = 0;
  for (; j + kCheckedAtOnce <= n && extent > 0; j += kCheckedAtOnce) {
    if (!is_checked && !are_positions<Index>(index + j * kIndexSize, extent)) {
      bad |= pick_checked(j, kCheckedAtOnce);
      continue;
    }
    const auto* const indices = reinterpret_cast<const Index*>(index) + j;
    char* const to = dst + j * kSize;
#pragma GCC unroll 16
    for (int64_t k = 0; k < kCheckedAtOnce; ++k) std::memcpy(to + k * kSize, src + indices[k] * kSize, sizeof(T));
  }
  return bad | pick_checked(j, n - j);
}

// The same for an element of each size.
template <class T>
bool pick(compute_dtype dtype, char* dst, int64_t dst_stride, const char* src, int64_t src_stride, int64_t axis_stride,
          const char* index, int64_t index_stride, int64_t extent, int64_t n, bool is_checked) {
  constexpr int64_t kSize = sizeof(T);
  const bool is_long = dtype == COMPUTE_DTYPE_INT64;
  if (dst_stride == kSize && axis_stride == kSize && src_stride == 0 && index_stride == (is_long ? 8 : 4)) {
    return is_long ? pick_dense<T, int64_t>(dst, src, index, extent, n, is_checked)
                   : pick_dense<T, int32_t>(dst, src, index, extent, n, is_checked);
  }
  return is_long ? pick<T, int64_t>(dst, dst_stride, src, src_stride, axis_stride, index, index_stride, extent, n)
                 : pick<T, int32_t>(dst, dst_stride, src, src_stride, axis_stride, index, index_stride, extent, n);
}

// True if none of n indices counts from the end or is out of range.
template <class Index>
bool are_positions(const char* indices, int64_t extent, int64_t n) {
  const int64_t whole = extent > 0 ? n - n % kCheckedAtOnce : 0;
  for (int64_t j = 0; j < whole; j += kCheckedAtOnce)
    if (!are_positions<Index>(indices + j * int64_t{sizeof(Index)}, extent)) return false;
  const auto* const each = reinterpret_cast<const Index*>(indices);
  return std::all_of(each + whole, each + n, [=](int64_t at) { return at >= 0 && at < extent; });
}

class GatherPlan final : public Plan {
 public:
  explicit GatherPlan(const Op& op) : indices_(op.input(1)) {
    const compute_plugin_tensor &src = op.input(0), &index = op.input(1), &dst = op.output(0);
    const auto axis = static_cast<size_t>(op.integer("axis", 0));
    reports_faults = true;
    size_ = dtype_size(src.dtype);
    index_dtype_ = index.dtype;
    extent_ = src.shape[axis];
    axis_stride_ = src.strides[axis] * size_;
    std::vector<int64_t> strides[3];
    for (size_t i = 0; i < static_cast<size_t>(dst.rank); ++i) {
      strides[0].push_back(dst.strides[i] * size_);
      strides[1].push_back(index.strides[i] * dtype_size(index.dtype));
      strides[2].push_back(i == axis ? 0 : src.strides[i] * size_);
    }
    const int64_t* const pointers[] = {strides[0].data(), strides[1].data(), strides[2].data()};
    nest_ = common::collapse({dst.shape, static_cast<size_t>(dst.rank)}, pointers, 0);
    loops_ = std::max(nest_.rank - 1, 0);
    if (nest_.rank > 0) {
      inner_ = nest_.extents[static_cast<size_t>(loops_)];
      for (size_t i = 0; i < 3; ++i) strides_[i] = nest_.strides[i][static_cast<size_t>(loops_)];
    }
    // Whole rows from anywhere: the processor does not know the next ones.
    fetches_rows_ = nest_.rank == 2 && strides_[1] == 0 && strides_[2] == size_ && nest_.strides[2][0] == 0 &&
                    inner_ * size_ >= kLine && inner_ <= kPieceElements;
    const int64_t row_bytes = inner_ * size_;
    picks_rows_ = nest_.rank >= 2 && strides_[0] == size_ && strides_[1] == 0 && strides_[2] == size_ &&
                  nest_.strides[2][static_cast<size_t>(loops_ - 1)] == 0 && row_bytes < kLine;
    streams_ = fetches_rows_ && strides_[0] == size_ && row_bytes % kLine == 0 && nest_.strides[0][0] % kLine == 0 &&
               nest_.points() * size_ >= (thread_count() > 1 ? kSharedStreamBytes : kStreamBytes);
    rows_ahead_ = divide_up(kStreamAhead, row_bytes);
    repeats_ = nest_.rank >= 2 && strides_[1] == dtype_size(index.dtype);
    for (int axis = 0; axis < loops_; ++axis) repeats_ &= nest_.strides[1][static_cast<size_t>(axis)] == 0;
    cuts_ = divide_up(inner_, kPieceElements);
    units_ = nest_.points() / inner_ * cuts_;
    grain_ = std::max<int64_t>(kPieceElements / inner_, 1);
  }

  void run(const compute_plugin_run& run) const override {
    char* const dst = address(run.tensors[2]) + nest_.offsets[0];
    const char* const index = address(run.tensors[1]) + nest_.offsets[1];
    const char* const src = address(run.tensors[0]) + nest_.offsets[2];
    std::atomic<bool> bad{false};
    const bool streams = streams_ && reinterpret_cast<uintptr_t>(dst) % kLine == 0;
    const bool is_checked =
        repeats_ && (index_dtype_ == COMPUTE_DTYPE_INT64 ? are_positions<int64_t>(index, extent_, inner_)
                                                         : are_positions<int32_t>(index, extent_, inner_));
    parallel_for(units_, grain_, [&](int64_t begin, int64_t end) {
      if (streams) {
        if (stream_rows(dst, index, src, begin, end)) bad.store(true, std::memory_order_relaxed);
        return;
      }
      if (picks_rows_) {
        if (pick_rows(dst, index, src, begin, end)) bad.store(true, std::memory_order_relaxed);
        return;
      }
      int64_t offsets[3] = {};
      Walk walk(nest_, loops_, begin / cuts_, offsets);
      bool piece_bad = false;
      for (int64_t unit = begin, cut = begin % cuts_; unit < end; ++unit) {
        const int64_t first = cut * kPieceElements;
        if (fetches_rows_ && unit + kRowsAhead < end)
          fetch_row(index + offsets[1] + kRowsAhead * nest_.strides[1][0], src + offsets[2]);
        piece_bad |=
            gather_row(dst + offsets[0] + first * strides_[0], index + offsets[1] + first * strides_[1],
                       src + offsets[2] + first * strides_[2], std::min(kPieceElements, inner_ - first), is_checked);
        if (++cut == cuts_) {
          cut = 0;
          walk.next();
        }
      }
      if (piece_bad) bad.store(true, std::memory_order_relaxed);
    });
    if (bad.load(std::memory_order_relaxed)) indices_.report_first_fault(run, "gather", 1, extent_);
  }

 private:
  // True iff there was an index out of range. `is_checked`: no index is, and none counts from the end.
  bool gather_row(char* dst, const char* index, const char* src, int64_t n, bool is_checked) const {
    if (strides_[1] == 0) {
      int64_t at = 0;
      if (resolve_indices(index_dtype_, index, 0, 1, extent_, &at)) return true;
      copy_row(dst, src + at * axis_stride_, n);
      return false;
    }
    const auto pick_all = [&]<class T>(T) {
      return pick<T>(index_dtype_, dst, strides_[0], src, strides_[2], axis_stride_, index, strides_[1], extent_, n,
                     is_checked);
    };
    switch (size_) {
      case 1:
        return pick_all(char{});
      case 2:
        return pick_all(int16_t{});
      case 4:
        return pick_all(int32_t{});
      case 8:
        return pick_all(int64_t{});
      default:
        return pick_all(Sixteen{});
    }
  }

  // Short rows, of each of which there is one index.
  bool pick_rows(char* dst, const char* index, const char* src, int64_t begin, int64_t end) const {
    const auto last = static_cast<size_t>(loops_ - 1);
    const int64_t dst_step = nest_.strides[0][last], index_step = nest_.strides[1][last];
    const int64_t row_bytes = inner_ * size_;
    const auto copy = isa().copy->rows;
    int64_t offsets[3] = {}, positions[kIndexBlock];
    Walk walk(nest_, loops_ - 1, begin / nest_.extents[last], offsets);
    bool bad = false;
    for (int64_t unit = begin, row = begin % nest_.extents[last]; unit < end;) {
      const int64_t rows = std::min({nest_.extents[last] - row, end - unit, kIndexBlock});
      const char* const from = src + offsets[2];
      char* const to = dst + offsets[0] + row * dst_step;
      if (!resolve_indices(index_dtype_, index + offsets[1] + row * index_step, index_step, rows, extent_, positions)) {
        copy(from, axis_stride_, positions, to, dst_step, row_bytes, rows);
      } else {
        bad = true;
        for (int64_t i = 0; i < rows; ++i) {
          if (positions[i] != kBadIndex) copy(from, axis_stride_, positions + i, to + i * dst_step, 0, row_bytes, 1);
        }
      }
      unit += rows;
      row += rows;
      if (row < nest_.extents[last]) continue;
      row = 0;
      walk.next();
    }
    return bad;
  }

  // Copies rows of whole cache lines with non-temporal stores. It prefetches the lines of a later row one by one
  // together with this row's: all at once they would fill the queue of cache misses.
  bool stream_rows(char* dst, const char* index, const char* src, int64_t begin, int64_t end) const {
    const BlockKernels& kernels = *isa().blocks;
    const int64_t dst_step = nest_.strides[0][0], index_step = nest_.strides[1][0];
    bool bad = false;
    for (int64_t row = begin; row < end; ++row) {
      int64_t at = 0, later = 0;
      const int64_t ahead = std::min(row + rows_ahead_, end - 1);
      if (resolve_indices(index_dtype_, index + ahead * index_step, 0, 1, extent_, &later)) later = 0;
      if (resolve_indices(index_dtype_, index + row * index_step, 0, 1, extent_, &at)) {
        bad = true;
        continue;
      }
      const FetchAhead fetch{reinterpret_cast<uintptr_t>(src + later * axis_stride_), 0};
      kernels.stream_copy(dst + row * dst_step, src + at * axis_stride_, inner_ * size_, &fetch, 1);
    }
    kernels.stream_end();
    return bad;
  }

  // Asks for the row that `index` names, or for its beginning.
  void fetch_row(const char* index, const char* src) const {
    int64_t at = 0;
    if (resolve_indices(index_dtype_, index, 0, 1, extent_, &at)) return;
    const int64_t bytes = std::min(inner_ * size_, kFetchedBytes);
    for (int64_t line = 0; line < bytes; line += kLine) __builtin_prefetch(src + at * axis_stride_ + line);
  }

  // The whole row has one index.
  void copy_row(char* dst, const char* src, int64_t n) const {
    const auto size_class = static_cast<size_t>(std::countr_zero(static_cast<uint64_t>(size_)));
    if (strides_[0] == size_ && strides_[2] == size_) {
      std::memcpy(dst, src, static_cast<size_t>(n * size_));
    } else if (strides_[0] == size_) {
      isa().blocks->gather[size_class](src, strides_[2], dst, n);
    } else if (strides_[2] == size_) {
      isa().blocks->scatter[size_class](src, dst, strides_[0], n);
    } else {
      for (int64_t j = 0; j < n; ++j) {
        std::memcpy(dst + j * strides_[0], src + j * strides_[2], static_cast<size_t>(size_));
      }
    }
  }

  IndexTensor indices_;
  common::LoopNest nest_;  // operands: output, indices, input without its stride along the axis
  int64_t size_ = 0;
  compute_dtype index_dtype_ = COMPUTE_DTYPE_INT64;
  int64_t extent_ = 0, axis_stride_ = 0;
  int loops_ = 0;
  bool fetches_rows_ = false;
  bool picks_rows_ = false;  // short rows, each with one index
  bool repeats_ = false;     // all rows have the same indices
  bool streams_ = false;     // non-temporal stores write rows
  int64_t rows_ahead_ = 1;
  int64_t inner_ = 1;
  int64_t strides_[3] = {};  // of the innermost loop
  int64_t cuts_ = 1, units_ = 1, grain_ = 1;
};

}  // namespace

std::optional<Refusal> refuse_gather(const Op& op) {
  const compute_dtype index = op.input(1).dtype;
  if (index == COMPUTE_DTYPE_INT32 || index == COMPUTE_DTYPE_INT64) return std::nullopt;
  return Refusal{COMPUTE_PLUGIN_REFUSE_DTYPE, 1,
                 std::string("gather: indices must be int32 or int64, not ") + dtype_name(index), ""};
}

std::unique_ptr<Plan> prepare_gather(const Op& op) { return std::make_unique<GatherPlan>(op); }

}  // namespace compute::cpu
