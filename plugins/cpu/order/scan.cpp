// SPDX-License-Identifier: Apache-2.0
// Running combinations. Along memory a line is scanned in blocks, and a long line in pieces, each of which begins with
// the total of the pieces before it, whether threads share the line or not. So results do not depend on the number of
// threads. Across memory, columns are scanned together, also in pieces.
#include "plugins/cpu/order/scan.hpp"

#include <algorithm>
#include <bit>

#include "plugins/common/op/layout.hpp"
#include "plugins/cpu/base/walk.hpp"
#include "plugins/cpu/kernels/copy_kernel.hpp"
#include "plugins/cpu/kernels/order_kernel.hpp"
#include "plugins/cpu/order/line.hpp"
#include "plugins/cpu/order/running.hpp"
#include "plugins/cpu/threads/threads.hpp"

namespace compute::cpu {
namespace {

constexpr int64_t kPiece = 32 << 10;         // of a long line
constexpr int64_t kPieceElements = 4 << 10;  // a grain
constexpr int64_t kTaskElements = 16 << 10;  // least work that justifies waking a thread
constexpr int64_t kUnitsPerThread = 2;       // tiles of columns; fewer are cut
constexpr int64_t kLeastRows = 64;           // of a piece of columns

int64_t divide_up(int64_t x, int64_t y) { return (x + y - 1) / y; }

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
    if constexpr (kIsExtreme) {
      constexpr bool is_greatest = std::is_same_v<Running, Extreme<T, true>>;
      extremes_ = (is_greatest ? isa().order->greatest : isa().order->least)[op.dtype("accumulator")];
    }
    const common::LoopNest& nest = lines_.nest;
    if (nest.rank > 0) {
      const auto last = static_cast<size_t>(nest.rank - 1);
      inner_ = nest.extents[last];
      src_inner_ = nest.strides[0][last];
      dst_inner_ = nest.strides[1][last];
    }
    across_ = inner_ > 1 && std::abs(src_inner_) < std::abs(lines_.src_stride);
    constexpr int64_t kSize = sizeof(T);
    const bool is_direct = !lines_.exclusive && lines_.src.is_direct() && lines_.dst.is_direct();
    if (is_direct && lines_.src_stride == kSize && lines_.dst_stride == kSize)
      line_scan_ = find_line_scan(op.dtype("accumulator"));
    has_pairs_ = kIsPair && is_direct && across_ && src_inner_ == kSize && dst_inner_ == kSize;
    turns_pairs_ = kIsPair && is_direct && across_ && src_inner_ == kSize && lines_.dst_stride == kSize;
    const int64_t threads = thread_count();
    if (across_) {
      rows_ = std::max(kLeastRows, kPiece / inner_);
      if (lines_.extent >= 2 * rows_) {
        pieces_ = divide_up(lines_.extent, rows_);
        const int64_t tiles = nest.points() / inner_ * divide_up(inner_, kColumns);
        shares_lines_ = threads > 1 && tiles < kUnitsPerThread * threads;
      }
    } else if (lines_.extent >= 2 * kPiece) {
      pieces_ = divide_up(lines_.extent, kPiece);
      shares_lines_ = threads > 1 && nest.points() < threads;
    }
    // The other kernels follow one line nearly as fast, if it is long.
    constexpr bool kIsFast = kHasTotal || kIsPair || kIsExtreme || (std::is_integral_v<T> && sizeof(T) == 8);
    joins_lines_ = line_scan_ != nullptr && !across_ && pieces_ == 1 && inner_ >= kFewLines &&
                   (!kIsFast || lines_.extent <= kShortLine);
    if (shares_lines_) workspace_bytes = nest.points() * pieces_ * static_cast<int64_t>(sizeof(Running));
  }

  void run(const compute_plugin_run& run) const override {
    const char* src = address(run.tensors[0]) + lines_.nest.offsets[0] + lines_.src_start;
    char* dst = address(run.tensors[1]) + lines_.nest.offsets[1] + lines_.dst_start;
    auto* const totals = reinterpret_cast<Running*>(address(run.workspace));
    if (across_) return run_columns(src, dst, totals);
    if (shares_lines_) return run_pieces(src, dst, totals);
    for_units(lines_.nest.points(), lines_.extent, [&](int64_t begin, int64_t end) {
      int64_t offsets[2] = {};
      if (joins_lines_) {
        for (int64_t line = begin, count = 0; line < end; line += count, offsets[0] = offsets[1] = 0) {
          count = std::min(end - line, inner_ - line % inner_);
          Walk(lines_.nest, lines_.nest.rank, line, offsets);
          const Running identity;
          line_scan_(src + offsets[0], src_inner_, count, lines_.extent, dst + offsets[1], dst_inner_, &identity);
        }
        return;
      }
      Walk walk(lines_.nest, lines_.nest.rank, begin, offsets);
      for (int64_t line = begin; line < end; ++line, walk.next()) scan_line(src + offsets[0], dst + offsets[1]);
    });
  }

 private:
  template <class F>
  static void for_units(int64_t units, int64_t elements, const F& body) {
    if (elements >= kTaskElements) {
      parallel_tasks(units, 1, body);
    } else {
      parallel_for(units, std::max<int64_t>(kPieceElements / elements, 1), body);
    }
  }

  void scan_line(const char* src, char* dst) const {
    if (pieces_ == 1) return scan_piece<false>(src, dst, lines_.extent, Running{});
    Running before;
    for (int64_t at = 0; at < lines_.extent; at += kPiece) {
      Running own;
      scan_piece<true>(src + at * lines_.src_stride, dst + at * lines_.dst_stride, std::min(kPiece, lines_.extent - at),
                       before, at > 0, &own);
      before.add(own);
    }
  }

  static LineScan find_line_scan(compute_dtype dtype) {
    const OrderKernels& kernels = *isa().order;
    if constexpr (kIsExtreme)
      return (std::is_same_v<Running, Extreme<T, true>> ? kernels.line_greatest : kernels.line_least)[dtype];
    else
      return (std::is_same_v<Running, Sum<T>> ? kernels.line_sums : kernels.line_products)[dtype];
  }

  static void sum_pairs([[maybe_unused]] const char* x, [[maybe_unused]] int64_t x_stride,
                        [[maybe_unused]] int64_t rows, [[maybe_unused]] int64_t n, [[maybe_unused]] Running* running,
                        [[maybe_unused]] char* y, [[maybe_unused]] int64_t y_stride) {
    if constexpr (kIsPair) {
      isa().order->float64_column_sums(reinterpret_cast<const double*>(x), x_stride, rows, n * kParts, parts(running),
                                       reinterpret_cast<double*>(y), y_stride);
    }
  }

  // The same for lines of the output that run along the scan: blocks of few columns are transposed.
  void turn_pairs(const char* src, int64_t rows, int64_t n, Running* running, char* dst) const {
    constexpr int64_t kSize = sizeof(T), kWidth = 256 / kSize;
    LineBuffers buffers;
    constexpr int64_t kPitch = kWidth * kSize, kRows = static_cast<int64_t>(sizeof buffers.store) / kPitch;
    for (int64_t first = 0; first < n; first += kWidth) {
      const int64_t width = std::min(kWidth, n - first);
      for (int64_t at = 0; at < rows; at += kRows) {
        const int64_t count = std::min(kRows, rows - at);
        sum_pairs(src + first * kSize + at * lines_.src_stride, lines_.src_stride, count, width, running + first,
                  buffers.store, kPitch);
        isa().copy->transpose[std::countr_zero(sizeof(T))](buffers.store, kPitch, dst + first * dst_inner_ + at * kSize,
                                                           dst_inner_, count, width);
      }
    }
  }

  // Along a line; see PairSums.
  static void scan_pairs([[maybe_unused]] const T* x, [[maybe_unused]] int64_t n,
                         [[maybe_unused]] const Running& before, [[maybe_unused]] Running* running,
                         [[maybe_unused]] T* y) {
    if constexpr (kIsPair) {
      const PairSums sums = kParts == 1 ? isa().order->float64_sums : isa().order->complex128_sums;
      sums(reinterpret_cast<const double*>(x), n, parts(&before), parts(running), reinterpret_cast<double*>(y));
    }
  }

  static const double* parts(const Running* running) { return reinterpret_cast<const double*>(running); }
  static double* parts(Running* running) { return reinterpret_cast<double*>(running); }

  // Begins with `running`, the total before the piece. Also sums the piece alone into *own, as total() does; an extreme
  // may have what is before the piece in it.
  template <bool WantsTotal>
  void scan_piece(const char* src, char* dst, int64_t count, Running running, bool follows = false,
                  Running* own = nullptr) const {
    Running total;
    LineBuffers buffers;
    for (int64_t at = 0; at < count; at += kLineBlock) {
      const int64_t n = std::min(kLineBlock, count - at);
      const T* x =
          reinterpret_cast<const T*>(lines_.src.load(src + at * lines_.src_stride, lines_.src_stride, n, buffers.load));
      char* to = dst + at * lines_.dst_stride;
      char* made = lines_.dst.place(to, lines_.dst_stride, buffers.store);
      T* y = reinterpret_cast<T*>(made);
      if (kIsPair && !lines_.exclusive) {
        scan_pairs(x, n, running, &total, y);
        lines_.dst.store(made, to, lines_.dst_stride, n, buffers.store + kLineBlock * kLineElementBytes);
        continue;
      }
      if constexpr (WantsTotal && kHasTotal) total.value += isa().order->float32_total(x, n);
      const bool is_done = !lines_.exclusive && scan_rows(x, n, 1, &running, y);
      if (lines_.exclusive) {
        for (int64_t i = 0; i < n; ++i) {
          const T value = x[i];
          y[i] = at + i == 0 && !follows ? first() : running.get();
          running.add(value);
          if constexpr (WantsTotal && !kHasTotal && !kIsExtreme) total.add(value);
        }
      } else if (!is_done) {
        for (int64_t i = 0; i < n; ++i) {
          const T value = x[i];
          running.add(value);
          y[i] = running.get();
          if constexpr (WantsTotal && !kHasTotal && !kIsExtreme) total.add(value);
        }
      }
      lines_.dst.store(made, to, lines_.dst_stride, n, buffers.store + kLineBlock * kLineElementBytes);
    }
    if constexpr (WantsTotal) *own = kIsExtreme ? running : total;
  }

  // Rows of n elements that follow one another, `count` elements in all; whether a kernel did it.
  bool scan_rows(const T* x, int64_t count, int64_t n, Running* running, T* y) const {
    if constexpr (std::is_same_v<Running, Sum<float>>) {
      n == 1 ? isa().order->float32_sums(x, count, &running->value, y)
             : isa().order->float32_row_sums(x, count, n, &running->value, y);
      return true;
    } else if constexpr (std::is_same_v<Running, Prod<float>>) {
      if (n > 1 && n <= kNarrow) isa().order->float32_row_products(x, count, n, &running->value, y);
      return n > 1 && n <= kNarrow;
    } else if constexpr (kIsExtreme) {
      if (extremes_ != nullptr) extremes_(x, count, n, &running->value, y);
      return extremes_ != nullptr;
    } else {
      return false;
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
      if constexpr (kHasTotal) {
        running.value += isa().order->float32_total(x, n);
      } else if (kIsPair && !lines_.exclusive) {
        scan_pairs(x, n, Running{}, &running, nullptr);
      } else {
        for (int64_t i = 0; i < n; ++i) running.add(x[i]);
      }
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
      scan_piece<false>(from, dst + offsets[1] + first * lines_.dst_stride, count, totals[unit], first > 0);
    });
  }

  void run_columns(const char* src, char* dst, Running* totals) const {
    const int64_t tiles = divide_up(inner_, kColumns);
    if (shares_lines_) {
      for_column_pieces([&](const ColumnPiece& piece) {
        Running* const own = totals + piece.first_total;
        std::fill(own, own + piece.columns, Running{});
        add_columns(src + piece.src, piece.rows, piece.columns, own);
      });
      for_units(lines_.nest.points(), pieces_, [&](int64_t begin, int64_t end) {
        for (int64_t line = begin; line < end; ++line) {
          Running* const own = totals + line / inner_ * pieces_ * inner_ + line % inner_;
          Running before;
          for (int64_t i = 0; i < pieces_; ++i) before = joined(before, std::exchange(own[i * inner_], before));
        }
      });
      return for_column_pieces([&](const ColumnPiece& piece) {
        scan_columns<false>(src + piece.src, dst + piece.dst, piece.rows, piece.columns, piece.follows,
                            totals + piece.first_total);
      });
    }
    for_units(lines_.nest.points() / inner_ * tiles, std::min(kColumns, inner_) * lines_.extent,
              [&](int64_t begin, int64_t end) {
                int64_t offsets[2] = {};
                Walk walk(lines_.nest, lines_.nest.rank - 1, begin / tiles, offsets);
                for (int64_t unit = begin, number = begin % tiles; unit < end; ++unit) {
                  const int64_t first = number * kColumns;
                  scan_tile(src + offsets[0] + first * src_inner_, dst + offsets[1] + first * dst_inner_,
                            std::min(kColumns, inner_ - first));
                  if (++number == tiles) {
                    number = 0;
                    walk.next();
                  }
                }
              });
  }

  static Running joined(Running before, const Running& own) {
    before.add(own);
    return before;
  }

  // Rows of a piece of the axis, as wide as a tile.
  struct ColumnPiece {
    int64_t src, dst;  // bytes
    int64_t rows, columns;
    int64_t first_total;
    bool follows;  // more elements follow along the axis
  };

  template <class F>
  void for_column_pieces(const F& body) const {
    const int64_t tiles = divide_up(inner_, kColumns), units = lines_.nest.points() / inner_ * pieces_ * tiles;
    parallel_tasks(units, 1, [&](int64_t begin, int64_t end) {
      for (int64_t unit = begin; unit < end; ++unit) {
        int64_t offsets[2] = {};
        Walk(lines_.nest, lines_.nest.rank - 1, unit / tiles / pieces_, offsets);
        const int64_t column = unit % tiles * kColumns, row = unit / tiles % pieces_ * rows_;
        body(ColumnPiece{offsets[0] + column * src_inner_ + row * lines_.src_stride,
                         offsets[1] + column * dst_inner_ + row * lines_.dst_stride,
                         std::min(rows_, lines_.extent - row), std::min(kColumns, inner_ - column),
                         unit / tiles * inner_ + column, row > 0});
      }
    });
  }

  // All rows of a tile.
  void scan_tile(const char* src, char* dst, int64_t n) const {
    Running running[kColumns];
    if (pieces_ == 1) return scan_columns<false>(src, dst, lines_.extent, n, false, running);
    Running before[kColumns], own[kColumns];
    for (int64_t row = 0; row < lines_.extent; row += rows_) {
      std::copy(before, before + n, running);
      std::fill(own, own + n, Running{});
      scan_columns<true>(src + row * lines_.src_stride, dst + row * lines_.dst_stride,
                         std::min(rows_, lines_.extent - row), n, row > 0, running, own);
      for (int64_t j = 0; j < n; ++j) before[j].add(own[j]);
    }
  }

  // Begins with `running`, the totals before the rows. Also sums the rows alone into `own`, as add_columns() does.
  template <bool WantsTotal>
  void scan_columns(const char* src, char* dst, int64_t rows, int64_t n, bool follows, Running* running,
                    Running* own = nullptr) const {
    if (has_pairs_ && n > 2) {
      if constexpr (WantsTotal) sum_pairs(src, lines_.src_stride, rows, n, own, nullptr, 0);
      return sum_pairs(src, lines_.src_stride, rows, n, running, dst, lines_.dst_stride);
    }
    if (turns_pairs_) {
      if constexpr (WantsTotal) sum_pairs(src, lines_.src_stride, rows, n, own, nullptr, 0);
      return turn_pairs(src, rows, n, running, dst);
    }
    if (n <= kNarrow && adjoin(n)) return scan_narrow<WantsTotal>(src, dst, rows, n, follows, running, own);
    LineBuffers buffers;
    for (int64_t at = 0; at < rows; ++at) {
      const T* x =
          reinterpret_cast<const T*>(lines_.src.load(src + at * lines_.src_stride, src_inner_, n, buffers.load));
      char* to = dst + at * lines_.dst_stride;
      char* made = lines_.dst.place(to, dst_inner_, buffers.store);
      T* y = reinterpret_cast<T*>(made);
      if constexpr (WantsTotal && !kIsExtreme) add_row(x, n, own);
      if (lines_.exclusive) {
        for (int64_t j = 0; j < n; ++j) {
          const T value = x[j];
          y[j] = at == 0 && !follows ? first() : running[j].get();
          running[j].add(value);
        }
      } else if constexpr (kHasTotal) {
        isa().order->float32_column_sums(x, n, &running[0].value, y);
      } else if (!scan_rows(x, n, n, running, y)) {
        for (int64_t j = 0; j < n; ++j) {
          running[j].add(x[j]);
          y[j] = running[j].get();
        }
      }
      lines_.dst.store(made, to, dst_inner_, n, buffers.store + kLineBlock * kLineElementBytes);
    }
    if constexpr (WantsTotal && kIsExtreme) std::copy_n(running, n, own);
  }

  // Whether rows of n elements follow one another without gaps.
  bool adjoin(int64_t n) const {
    return src_inner_ == lines_.src.size() && lines_.src_stride == n * src_inner_ && dst_inner_ == lines_.dst.size() &&
           lines_.dst_stride == n * dst_inner_;
  }

  // The same for short rows, of which many make a block.
  template <bool WantsTotal>
  void scan_narrow(const char* src, char* dst, int64_t rows, int64_t n, bool follows, Running* running,
                   Running* own) const {
    LineBuffers buffers;
    const int64_t step = kLineBlock / n;
    for (int64_t at = 0; at < rows; at += step) {
      const int64_t count = std::min(step, rows - at) * n;
      const T* x =
          reinterpret_cast<const T*>(lines_.src.load(src + at * lines_.src_stride, src_inner_, count, buffers.load));
      char* to = dst + at * lines_.dst_stride;
      char* made = lines_.dst.place(to, dst_inner_, buffers.store);
      T* y = reinterpret_cast<T*>(made);
      if constexpr (WantsTotal && !kIsExtreme) add_rows(x, count, n, own);
      const bool is_done = !lines_.exclusive && scan_rows(x, count, n, running, y);
      for (int64_t i = 0; i < count && !is_done; i += n) {
        for (int64_t j = 0; j < n; ++j) {
          const T value = x[i + j];
          if (lines_.exclusive) y[i + j] = at == 0 && i == 0 && !follows ? first() : running[j].get();
          running[j].add(value);
          if (!lines_.exclusive) y[i + j] = running[j].get();
        }
      }
      lines_.dst.store(made, to, dst_inner_, count, buffers.store + kLineBlock * kLineElementBytes);
    }
    if constexpr (WantsTotal && kIsExtreme) std::copy_n(running, n, own);
  }

  void add_columns(const char* src, int64_t rows, int64_t n, Running* own) const {
    LineBuffers buffers;
    const int64_t step = n <= kNarrow && adjoin(n) ? kLineBlock / n : 1;
    for (int64_t at = 0; at < rows && step > 1; at += step) {
      const int64_t count = std::min(step, rows - at) * n;
      const T* x =
          reinterpret_cast<const T*>(lines_.src.load(src + at * lines_.src_stride, src_inner_, count, buffers.load));
      add_rows(x, count, n, own);
    }
    for (int64_t at = 0; at < rows && step == 1; ++at) {
      add_row(reinterpret_cast<const T*>(lines_.src.load(src + at * lines_.src_stride, src_inner_, n, buffers.load)), n,
              own);
    }
  }

  // Rows of n elements that follow one another, `count` elements in all.
  static void add_rows(const T* x, int64_t count, int64_t n, Running* own) {
    if constexpr (kHasTotal) {
      isa().order->float32_row_totals(x, count, n, &own[0].value);
    } else {
      for (int64_t i = 0; i < count; i += n)
        for (int64_t j = 0; j < n; ++j) own[j].add(x[i + j]);
    }
  }

  static void add_row(const T* x, int64_t n, Running* own) {
    if constexpr (kHasTotal) {
      isa().order->float32_column_sums(x, n, &own[0].value, nullptr);
    } else {
      for (int64_t j = 0; j < n; ++j) own[j].add(x[j]);
    }
  }

  static constexpr bool kIsExtreme =
      std::is_same_v<Running, Extreme<T, true>> || std::is_same_v<Running, Extreme<T, false>>;
  static constexpr bool kHasTotal = std::is_same_v<Running, Sum<float>>;
  static constexpr int64_t kParts = sizeof(T) / sizeof(double);
  static constexpr bool kIsPair =
      std::is_same_v<Running, Sum<double>> || std::is_same_v<Running, Sum<std::complex<double>>>;
  static constexpr int64_t kFewLines = 3, kShortLine = 64;  // lines, elements
  static constexpr int64_t kColumns = 256;
  static constexpr int64_t kNarrow = 8;

  const Lines lines_;
  int64_t inner_ = 1, src_inner_ = 0, dst_inner_ = 0;  // the innermost loop of the nest
  bool across_ = false;
  int64_t pieces_ = 1;  // of a line
  int64_t rows_ = 1;    // of a piece of columns
  bool shares_lines_ = false;
  RunningExtremes extremes_ = nullptr;  // a kernel for the dtype
  LineScan line_scan_ = nullptr;        // a kernel for lines of adjoining elements
  bool joins_lines_ = false;            // which it scans side by side
  bool has_pairs_ = false;              // sums in two parts, of adjoining elements across the lines
  bool turns_pairs_ = false;            // the same where the lines of the output have adjoining elements
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
