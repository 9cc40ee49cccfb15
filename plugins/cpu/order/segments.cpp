// SPDX-License-Identifier: Apache-2.0
// Combinations of rows within segments: columns side by side, or blocks of a single column.
#include "plugins/cpu/order/segments.hpp"

#include <algorithm>
#include <atomic>
#include <bit>

#include "plugins/common/op/layout.hpp"
#include "plugins/cpu/base/walk.hpp"
#include "plugins/cpu/order/line.hpp"
#include "plugins/cpu/order/running.hpp"
#include "plugins/cpu/threads/threads.hpp"

namespace compute::cpu {
namespace {

constexpr int64_t kColumns = 256;
constexpr int64_t kPieceElements = 32 << 10;  // least work that justifies waking a thread

template <class Running, class T>
class SegmentsPlan final : public Plan {
 public:
  explicit SegmentsPlan(const Op& op) {
    const compute_plugin_tensor &src = op.input(0), &offsets = op.input(1), &dst = op.output(0);
    const compute_dtype accumulator = op.dtype("accumulator");
    src_ = LineAccess(src.dtype, accumulator);
    dst_ = LineAccess(dst.dtype, accumulator);
    rows_ = src.shape[0];
    segments_ = dst.shape[0];
    row_stride_ = src.strides[0] * src_.size();
    segment_stride_ = dst.strides[0] * dst_.size();
    offset_stride_ = offsets.strides[0] * int64_t{sizeof(int64_t)};
    std::vector<int64_t> shape(src.shape + 1, src.shape + src.rank), strides[2];
    for (int32_t i = 1; i < src.rank; ++i) {
      strides[0].push_back(src.strides[i] * src_.size());
      strides[1].push_back(dst.strides[i] * dst_.size());
    }
    const int64_t* const pointers[] = {strides[0].data(), strides[1].data()};
    nest_ = common::collapse(shape, pointers, 0);
    if (nest_.rank > 0) {
      const auto last = static_cast<size_t>(nest_.rank - 1);
      inner_ = nest_.extents[last];
      src_inner_ = nest_.strides[0][last];
      dst_inner_ = nest_.strides[1][last];
    }
  }

  void run(const compute_plugin_run& run) const override {
    const char* src = address(run.tensors[0]) + nest_.offsets[0];
    const char* offsets = address(run.tensors[1]);
    char* dst = address(run.tensors[2]) + nest_.offsets[1];
    const int64_t tiles = (inner_ + kColumns - 1) / kColumns, parts = nest_.points() / inner_ * tiles;
    const int64_t elements = std::max<int64_t>(rows_ * std::min(inner_, kColumns) / segments_, 1);
    const int loops = std::max(nest_.rank - 1, 0);
    std::atomic<bool> bad{false};
    parallel_for_uneven(segments_ * parts, std::max<int64_t>(kPieceElements / elements, 1),
                        [&](int64_t begin, int64_t end) {
                          for (int64_t unit = begin; unit < end; ++unit) {
                            const int64_t segment = unit / parts, part = unit % parts, first = part % tiles * kColumns;
                            const int64_t from = offset_at(offsets, segment), to = offset_at(offsets, segment + 1);
                            if (!are_good(from, to)) {
                              bad.store(true, std::memory_order_relaxed);
                              continue;
                            }
                            int64_t at[2] = {};
                            Walk(nest_, loops, part / tiles, at);
                            const char* x = src + at[0] + first * src_inner_ + from * row_stride_;
                            char* y = dst + at[1] + first * dst_inner_ + segment * segment_stride_;
                            const int64_t n = std::min(kColumns, inner_ - first);
                            n == 1 ? reduce_column(x, to - from, y) : reduce_columns(x, to - from, n, y);
                          }
                        });
    if (bad.load(std::memory_order_relaxed)) report_first_fault(run, offsets);
  }

 private:
  bool are_good(int64_t from, int64_t to) const { return from >= 0 && from <= to && to <= rows_; }

  void report_first_fault(const compute_plugin_run& run, const char* offsets) const {
    for (int64_t segment = 0; segment < segments_; ++segment) {
      const int64_t from = offset_at(offsets, segment), to = offset_at(offsets, segment + 1);
      if (are_good(from, to)) continue;
      const int64_t value = from < 0 || from > rows_ ? from : to;
      return report_index_fault(run, "segmented_reduce", 1, value, rows_, segment);
    }
  }

  int64_t offset_at(const char* offsets, int64_t i) const {
    int64_t value = 0;
    std::memcpy(&value, offsets + i * offset_stride_, sizeof value);
    return value;
  }

  static T result(const Running& running, int64_t count) {
    const T value = running.get();
    return count == 0 && value == T{0} ? T{0} : value;
  }

  void reduce_column(const char* src, int64_t count, char* dst) const {
    LineBuffers buffers;
    Running running;
    for (int64_t at = 0; at < count; at += kLineBlock) {
      const int64_t n = std::min(kLineBlock, count - at);
      const T* x = reinterpret_cast<const T*>(src_.load(src + at * row_stride_, row_stride_, n, buffers.load));
      for (int64_t i = 0; i < n; ++i) running.add(x[i]);
    }
    T* made = reinterpret_cast<T*>(buffers.store);
    *made = result(running, count);
    dst_.store(buffers.store, dst, dst_.size(), 1, buffers.store + kLineBlock * kLineElementBytes);
  }

  void reduce_columns(const char* src, int64_t count, int64_t n, char* dst) const {
    LineBuffers buffers;
    Running running[kColumns];
    for (int64_t at = 0; at < count; ++at) {
      const T* x = reinterpret_cast<const T*>(src_.load(src + at * row_stride_, src_inner_, n, buffers.load));
      for (int64_t j = 0; j < n; ++j) running[j].add(x[j]);
    }
    T* made = reinterpret_cast<T*>(buffers.store);
    for (int64_t j = 0; j < n; ++j) made[j] = result(running[j], count);
    dst_.store(buffers.store, dst, dst_inner_, n, buffers.store + kLineBlock * kLineElementBytes);
  }

  common::LoopNest nest_;  // the axes after axis 0; operands: input, output
  LineAccess src_, dst_;
  int64_t rows_ = 0, segments_ = 0;
  int64_t row_stride_ = 0, segment_stride_ = 0, offset_stride_ = 0;  // bytes
  int64_t inner_ = 1, src_inner_ = 0, dst_inner_ = 0;
};

}  // namespace

std::optional<Refusal> refuse_segments(const Op& op) {
  return refuse_running("segmented_reduce", op.text("kind"), op.dtype("accumulator"));
}

std::unique_ptr<Plan> prepare_segments(const Op& op) {
  std::unique_ptr<Plan> plan = with_running<std::unique_ptr<Plan>>(
      op.text("kind"), op.dtype("accumulator"), [&]<class Running, class T>(Running, T) -> std::unique_ptr<Plan> {
        return std::make_unique<SegmentsPlan<Running, T>>(op);
      });
  plan->reports_faults = true;
  return plan;
}

}  // namespace compute::cpu
