// SPDX-License-Identifier: Apache-2.0
// Running combinations. Along memory a line is scanned block by block, and a long one in pieces, whose totals are
// combined before; across memory columns go side by side.
#include "plugins/cpu/order/scan.hpp"

#include <algorithm>
#include <bit>

#include "plugins/common/layout.hpp"
#include "plugins/cpu/order/line.hpp"
#include "plugins/cpu/order/order_kernel.hpp"
#include "plugins/cpu/order/running.hpp"
#include "plugins/cpu/threads.hpp"
#include "plugins/cpu/walk.hpp"

namespace compute::cpu {
namespace {

constexpr int64_t kPiece = 128 << 10;        // of one long line that is shared between threads
constexpr int64_t kPieceElements = 4 << 10;  // a grain

// The geometry of a scan: lines of `extent` elements at the points of `nest` (input, output).
struct Lines {
  common::LoopNest nest;
  int64_t extent = 1;
  int64_t src_stride = 0, dst_stride = 0;  // bytes
  int64_t src_start = 0, dst_start = 0;    // of the first element in the order of the scan
  bool exclusive = false;
  LineAccess src, dst;
};

Lines read_lines(const Op& op) {
  const compute_plugin_tensor &src = op.input(0), &dst = op.output(0);
  const compute_dtype accumulator = op.dtype("accumulator");
  const auto axis = static_cast<size_t>(op.integer("axis", 0));
  Lines lines;
  lines.src = LineAccess(src.dtype, accumulator);
  lines.dst = LineAccess(dst.dtype, accumulator);
  lines.extent = src.shape[axis];
  lines.exclusive = op.integer("exclusive", 0) != 0;
  lines.src_stride = src.strides[axis] * lines.src.size();
  lines.dst_stride = dst.strides[axis] * lines.dst.size();
  if (op.integer("reverse", 0) != 0) {
    lines.src_start = (lines.extent - 1) * lines.src_stride;
    lines.dst_start = (lines.extent - 1) * lines.dst_stride;
    lines.src_stride = -lines.src_stride;
    lines.dst_stride = -lines.dst_stride;
  }
  std::vector<int64_t> shape, strides[2];
  for (size_t i = 0; i < static_cast<size_t>(src.rank); ++i) {
    if (i == axis) continue;
    shape.push_back(src.shape[i]);
    strides[0].push_back(src.strides[i] * lines.src.size());
    strides[1].push_back(dst.strides[i] * lines.dst.size());
  }
  const int64_t* const pointers[] = {strides[0].data(), strides[1].data()};
  lines.nest = common::collapse(shape, pointers, 0);
  return lines;
}

template <class Running, class T>
class ScanPlan final : public Plan {
 public:
  explicit ScanPlan(const Op& op) : lines_(read_lines(op)) {
    const common::LoopNest& nest = lines_.nest;
    if (nest.rank > 0) {
      const auto last = static_cast<size_t>(nest.rank - 1);
      inner_ = nest.extents[last];
      src_inner_ = nest.strides[0][last];
      dst_inner_ = nest.strides[1][last];
    }
    across_ = inner_ > 1 && std::abs(src_inner_) < std::abs(lines_.src_stride);
    if (!across_ && nest.points() < thread_count() && lines_.extent >= 2 * kPiece && thread_count() > 1) {
      pieces_ = (lines_.extent + kPiece - 1) / kPiece;
      workspace_bytes = nest.points() * pieces_ * static_cast<int64_t>(sizeof(Running));
    }
  }

  void run(const compute_plugin_run& run) const override {
    const char* src = address(run.tensors[0]) + lines_.nest.offsets[0] + lines_.src_start;
    char* dst = address(run.tensors[1]) + lines_.nest.offsets[1] + lines_.dst_start;
    if (pieces_ > 1) return run_pieces(src, dst, reinterpret_cast<Running*>(address(run.workspace)));
    if (across_) return run_columns(src, dst);
    const int64_t grain = std::max<int64_t>(kPieceElements / lines_.extent, 1);
    parallel_for(lines_.nest.points(), grain, [&](int64_t begin, int64_t end) {
      int64_t offsets[2] = {};
      Walk walk(lines_.nest, lines_.nest.rank, begin, offsets);
      for (int64_t line = begin; line < end; ++line) {
        scan_line(src + offsets[0], dst + offsets[1], lines_.extent, Running{});
        walk.next();
      }
    });
  }

 private:
  void scan_line(const char* src, char* dst, int64_t count, Running running) const {
    LineBuffers buffers;
    for (int64_t at = 0; at < count; at += kLineBlock) {
      const int64_t n = std::min(kLineBlock, count - at);
      const T* x =
          reinterpret_cast<const T*>(lines_.src.load(src + at * lines_.src_stride, lines_.src_stride, n, buffers.load));
      char* to = dst + at * lines_.dst_stride;
      char* made = lines_.dst.place(to, lines_.dst_stride, buffers.store);
      T* y = reinterpret_cast<T*>(made);
      if (lines_.exclusive) {
        for (int64_t i = 0; i < n; ++i) {
          const T value = x[i];
          y[i] = at + i == 0 ? first() : running.get();
          running.add(value);
        }
      } else if constexpr (std::is_same_v<Running, Sum<float>>) {
        isa().order->float32_sums(x, n, &running.value, y);
      } else {
        for (int64_t i = 0; i < n; ++i) {
          running.add(x[i]);
          y[i] = running.get();
        }
      }
      lines_.dst.store(made, to, lines_.dst_stride, n, buffers.store + kLineBlock * kLineElementBytes);
    }
  }

  // What an exclusive scan begins with: a sum of nothing is 0, not -0.
  static T first() {
    const T value = Running{}.get();
    return value == T{0} ? T{0} : value;
  }

  Running total(const char* src, int64_t count) const {
    LineBuffers buffers;
    Running running;
    for (int64_t at = 0; at < count; at += kLineBlock) {
      const int64_t n = std::min(kLineBlock, count - at);
      const T* x =
          reinterpret_cast<const T*>(lines_.src.load(src + at * lines_.src_stride, lines_.src_stride, n, buffers.load));
      for (int64_t i = 0; i < n; ++i) running.add(x[i]);
    }
    return running;
  }

  void run_pieces(const char* src, char* dst, Running* totals) const {
    const auto for_pieces = [&](const auto& body) {
      parallel_tasks(lines_.nest.points() * pieces_, 1, [&](int64_t begin, int64_t end) {
        for (int64_t unit = begin; unit < end; ++unit) {
          int64_t offsets[2] = {};
          Walk(lines_.nest, lines_.nest.rank, unit / pieces_, offsets);
          const int64_t first = unit % pieces_ * kPiece;
          body(unit, offsets, first, std::min(kPiece, lines_.extent - first));
        }
      });
    };
    for_pieces([&](int64_t unit, const int64_t* offsets, int64_t first, int64_t count) {
      totals[unit] = total(src + offsets[0] + first * lines_.src_stride, count);
    });
    for (int64_t line = 0; line < lines_.nest.points(); ++line) {
      Running before;
      for (Running* piece = totals + line * pieces_; piece < totals + (line + 1) * pieces_; ++piece) {
        const Running own = *piece;
        *piece = before;
        before.add(own);
      }
    }
    for_pieces([&](int64_t unit, const int64_t* offsets, int64_t first, int64_t count) {
      const char* from = src + offsets[0] + first * lines_.src_stride;
      scan_line(from, dst + offsets[1] + first * lines_.dst_stride, count, totals[unit]);
    });
  }

  void run_columns(const char* src, char* dst) const {
    const int loops = lines_.nest.rank - 1;
    const int64_t tile = std::min<int64_t>(inner_, kColumns), tiles = (inner_ + tile - 1) / tile;
    const int64_t grain = std::max<int64_t>(kPieceElements / (tile * lines_.extent), 1);
    parallel_for(lines_.nest.points() / inner_ * tiles, grain, [&](int64_t begin, int64_t end) {
      int64_t offsets[2] = {};
      Walk walk(lines_.nest, loops, begin / tiles, offsets);
      for (int64_t unit = begin, number = begin % tiles; unit < end; ++unit) {
        const int64_t first = number * tile;
        scan_columns(src + offsets[0] + first * src_inner_, dst + offsets[1] + first * dst_inner_,
                     std::min(tile, inner_ - first));
        if (++number == tiles) {
          number = 0;
          walk.next();
        }
      }
    });
  }

  void scan_columns(const char* src, char* dst, int64_t n) const {
    LineBuffers buffers;
    Running running[kColumns];
    for (int64_t at = 0; at < lines_.extent; ++at) {
      const T* x =
          reinterpret_cast<const T*>(lines_.src.load(src + at * lines_.src_stride, src_inner_, n, buffers.load));
      char* to = dst + at * lines_.dst_stride;
      char* made = lines_.dst.place(to, dst_inner_, buffers.store);
      T* y = reinterpret_cast<T*>(made);
      if (lines_.exclusive) {
        for (int64_t j = 0; j < n; ++j) {
          const T value = x[j];
          y[j] = at == 0 ? first() : running[j].get();
          running[j].add(value);
        }
      } else {
        for (int64_t j = 0; j < n; ++j) {
          running[j].add(x[j]);
          y[j] = running[j].get();
        }
      }
      lines_.dst.store(made, to, dst_inner_, n, buffers.store + kLineBlock * kLineElementBytes);
    }
  }

  static constexpr int64_t kColumns = 256;

  const Lines lines_;
  int64_t inner_ = 1, src_inner_ = 0, dst_inner_ = 0;  // the innermost loop of the nest
  bool across_ = false;
  int64_t pieces_ = 1;
};

}  // namespace

std::optional<Refusal> refuse_scan(const Op& op) {
  return refuse_running("scan", op.text("kind"), op.dtype("accumulator"));
}

std::unique_ptr<Plan> prepare_scan(const Op& op) {
  return with_running<std::unique_ptr<Plan>>(op.text("kind"), op.dtype("accumulator"),
                                             [&]<class Running, class T>(Running, T) -> std::unique_ptr<Plan> {
                                               return std::make_unique<ScanPlan<Running, T>>(op);
                                             });
}

}  // namespace compute::cpu
