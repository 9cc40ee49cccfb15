// SPDX-License-Identifier: Apache-2.0
// The position of the first greatest or least element along an axis. Along memory, blocks are reduced by the vector
// code of `reduce` and only the block that holds the result is searched; across it, columns go side by side. Where
// there are few results, pieces of the axis are searched on several threads, and then joined.
#include "plugins/cpu/reduce/arg_reduce.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "plugins/common/op/layout.hpp"
#include "plugins/cpu/base/walk.hpp"
#include "plugins/cpu/isa/isa.hpp"
#include "plugins/cpu/map/block_program.hpp"
#include "plugins/cpu/reduce/reduce.hpp"
#include "plugins/cpu/threads/thread_frame.hpp"
#include "plugins/cpu/threads/threads.hpp"

namespace compute::cpu {
namespace {

constexpr int64_t kBlock = 1024;              // elements reduced before the result is checked
constexpr int64_t kColumnBytes = 8 << 10;     // side by side, of the dtype compared in
constexpr int64_t kLoadedRows = 4;            // of columns that are not compared in place
constexpr int64_t kAxisPiece = 64 << 10;      // of one long axis that is shared between threads
constexpr int64_t kPieceElements = 32 << 10;  // least work that justifies waking a thread
constexpr int64_t kPieceRows = 16;            // so that joining is cheap by comparison
constexpr int64_t kMostPieceRows = 1 << 30;   // positions may be int32
constexpr int64_t kPiecesPerThread = 2;       // of columns
constexpr int64_t kJoined = 4 << 10;          // results of pieces
constexpr int64_t kManyUnits = 64;

int64_t divide_up(int64_t x, int64_t y) { return (x + y - 1) / y; }

// The best value so far and its position.
struct Best {
  alignas(8) char value[8];
  int64_t position;
};

struct Kernels {
  // Whether *x beats *best, which came before it.
  bool (*beats)(const char* x, const char* best);
  // The first of n contiguous elements that is `value`, which is there.
  int64_t (*find)(const char* x, int64_t n, const char* value);
  bool (*is_nan)(const char* x);
};

template <class T, bool Greatest>
struct Of {
  static bool better(T x, T best) { return (Greatest ? x > best : x < best) || (x != x && best == best); }

  static bool beats(const char* x, const char* best) {
    T a, b;
    std::memcpy(&a, x, sizeof a);
    std::memcpy(&b, best, sizeof b);
    return better(a, b);
  }
  static bool is_nan(const char* x) {
    T a;
    std::memcpy(&a, x, sizeof a);
    return a != a;
  }
  static int64_t find(const char* data, int64_t n, const char* value) {
    const T* x = reinterpret_cast<const T*>(data);
    T wanted;
    std::memcpy(&wanted, value, sizeof wanted);
    if (wanted != wanted) return std::find_if(x, x + n, [](T e) { return e != e; }) - x;
    return std::find(x, x + n, wanted) - x;
  }
  static constexpr Kernels kernels = {beats, find, is_nan};
};

template <class T>
Kernels pick(bool greatest) {
  return greatest ? Of<T, true>::kernels : Of<T, false>::kernels;
}

// By the dtype that is compared in.
Kernels find_kernels(compute_dtype dtype, bool greatest) {
  switch (dtype) {
    case COMPUTE_DTYPE_UINT8:
      return pick<uint8_t>(greatest);
    case COMPUTE_DTYPE_INT8:
      return pick<int8_t>(greatest);
    case COMPUTE_DTYPE_INT16:
      return pick<int16_t>(greatest);
    case COMPUTE_DTYPE_INT32:
      return pick<int32_t>(greatest);
    case COMPUTE_DTYPE_INT64:
      return pick<int64_t>(greatest);
    case COMPUTE_DTYPE_UINT16:
      return pick<uint16_t>(greatest);
    case COMPUTE_DTYPE_UINT32:
      return pick<uint32_t>(greatest);
    case COMPUTE_DTYPE_UINT64:
      return pick<uint64_t>(greatest);
    case COMPUTE_DTYPE_FLOAT32:
      return pick<float>(greatest);
    default:
      return pick<double>(greatest);
  }
}

class ArgReducePlan final : public Plan {
 public:
  explicit ArgReducePlan(const Op& op) {
    const compute_plugin_tensor &src = op.input(0), &dst = op.output(0);
    const auto axis = static_cast<size_t>(op.integer("axis", 0));
    const bool greatest = op.text("kind") == "max";
    src_size_ = dtype_size(src.dtype);
    axis_extent_ = src.shape[axis];
    axis_stride_ = src.strides[axis] * src_size_;
    std::vector<int64_t> shape, strides[2];
    for (size_t i = 0; i < static_cast<size_t>(src.rank); ++i) {
      if (i == axis) continue;
      shape.push_back(src.shape[i]);
      strides[0].push_back(src.strides[i] * src_size_);
      const size_t to = dst.rank == src.rank || i < axis ? i : i - 1;  // the output may lack the axis
      strides[1].push_back(dst.strides[to] * int64_t{sizeof(int64_t)});
    }
    const int64_t* const pointers[] = {strides[0].data(), strides[1].data()};
    nest_ = common::collapse(shape, pointers, 0);
    loops_ = std::max(nest_.rank - 1, 0);
    if (nest_.rank > 0) {
      inner_ = nest_.extents[static_cast<size_t>(loops_)];
      src_stride_ = nest_.strides[0][static_cast<size_t>(loops_)];
      dst_stride_ = nest_.strides[1][static_cast<size_t>(loops_)];
    }
    columns_ = inner_ > 1 && (std::abs(src_stride_) < std::abs(axis_stride_) || axis_extent_ < 16);
    const bool is_half = src.dtype == COMPUTE_DTYPE_FLOAT16 || src.dtype == COMPUTE_DTYPE_BFLOAT16;
    const compute_dtype compared = is_half                           ? COMPUTE_DTYPE_FLOAT32
                                   : columns_ && src_size_ < 4       ? COMPUTE_DTYPE_INT32
                                   : src.dtype == COMPUTE_DTYPE_BOOL ? COMPUTE_DTYPE_UINT8
                                                                     : src.dtype;
    if (compared != src.dtype) widen_ = isa().blocks->converts[src.dtype][compared];
    size_ = dtype_size(compared);
    kernels_ = find_kernels(compared, greatest);
    reduce_ = isa().reduce->plain[static_cast<int>(greatest ? ReduceKind::max : ReduceKind::min)][compared];
    arg_ = greatest ? isa().reduce->arg_max[compared] : isa().reduce->arg_min[compared];
    if (columns_) {
      divide_columns();
    } else {
      divide_lines();
    }
  }

  void run(const compute_plugin_run& run) const override {
    const char* src = address(run.tensors[0]) + nest_.offsets[0];
    char* dst = address(run.tensors[1]) + nest_.offsets[1];
    if (columns_) return run_columns(src, dst, address(run.workspace));
    if (pieces_ > 1) return run_pieces(src, dst, reinterpret_cast<Best*>(address(run.workspace)));
    parallel_for(nest_.points(), grain_, [&](int64_t begin, int64_t end) {
      int64_t offsets[2] = {};
      Walk walk(nest_, nest_.rank, begin, offsets);
      for (int64_t output = begin; output < end; ++output, walk.next())
        put(dst + offsets[1], search(src + offsets[0], 0, axis_extent_).position);
    });
  }

 private:
  static void put(char* dst, int64_t position) { std::memcpy(dst, &position, sizeof position); }

  void divide_lines() {
    grain_ = std::max<int64_t>(kPieceElements / axis_extent_, 1);
    if (nest_.points() >= kManyUnits || axis_extent_ < 2 * kAxisPiece) return;
    pieces_ = divide_up(axis_extent_, kAxisPiece);
    workspace_bytes = nest_.points() * pieces_ * int64_t{sizeof(Best)};
  }

  // A thread reads rows as long as possible, because each jump between parts of rows crosses a page or more. So only
  // few units are cut along the axis. The number of threads does not change the result: the first of equal elements
  // wins.
  void divide_columns() {
    segment_ = std::min(inner_, kColumnBytes / size_);
    segments_ = divide_up(inner_, segment_);
    const int64_t blocks = nest_.points() / inner_ * segments_;
    const int64_t least = std::max(kPieceRows, divide_up(kPieceElements, segment_));
    const int64_t wanted = thread_count() > 1 ? divide_up(kPiecesPerThread * thread_count(), blocks) : 1;
    piece_ = std::clamp(divide_up(axis_extent_, wanted), std::min(least, axis_extent_), kMostPieceRows);
    pieces_ = divide_up(axis_extent_, piece_);
    units_ = blocks * pieces_;
    grain_ = std::max<int64_t>(kPieceElements / (segment_ * piece_), 1);
    if (pieces_ > 1) workspace_bytes = units_ * segment_ * 2 * size_;
  }

  // Few outputs with a long axis each.
  void run_pieces(const char* src, char* dst, Best* best) const {
    const int64_t outputs = nest_.points();
    const auto offsets_of = [&](int64_t output, int64_t* offsets) { Walk(nest_, nest_.rank, output, offsets); };
    parallel_tasks(outputs * pieces_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t unit = begin; unit < end; ++unit) {
        int64_t offsets[2] = {};
        offsets_of(unit / pieces_, offsets);
        const int64_t first = unit % pieces_ * kAxisPiece;
        best[unit] = search(src + offsets[0], first, std::min(first + kAxisPiece, axis_extent_));
      }
    });
    for (int64_t output = 0; output < outputs; ++output) {
      int64_t offsets[2] = {};
      offsets_of(output, offsets);
      const Best* piece = best + output * pieces_;
      const Best* winner = piece;
      for (int64_t i = 1; i < pieces_; ++i) {
        if (kernels_.beats(piece[i].value, winner->value)) winner = piece + i;
      }
      put(dst + offsets[1], winner->position);
    }
  }

  // n elements, `stride` bytes apart, as contiguous elements of the compared dtype: in place, or in `buffer`, which has
  // room for twice as many.
  const char* load(const char* src, int64_t stride, int64_t n, char* buffer) const {
    if (stride != src_size_ && n > 1) {
      char* packed = widen_ == nullptr ? buffer : buffer + n * size_;
      isa().blocks->gather[std::countr_zero(static_cast<uint64_t>(src_size_))](src, stride, packed, n);
      src = packed;
    }
    if (widen_ == nullptr) return src;
    const void* operand = src;
    const int64_t step = 1;
    widen_(&operand, &step, buffer, n);
    return buffer;
  }

  // Elements [first, last) along the axis.
  Best search(const char* src, int64_t first, int64_t last) const {
    alignas(64) char buffer[2 * kBlock * 8];
    Best best{};
    int64_t best_block = -1;
    for (int64_t at = first; at < last; at += kBlock) {
      const int64_t n = std::min(kBlock, last - at);
      char value[8];
      reduce_.rows(load(src + at * axis_stride_, axis_stride_, n, buffer), 0, 1, n, value);
      if (best_block >= 0 && !kernels_.beats(value, best.value)) continue;
      std::memcpy(best.value, value, sizeof value);
      best_block = at;
      if (kernels_.is_nan(value)) break;
    }
    const int64_t n = std::min(kBlock, last - best_block);
    const char* block = load(src + best_block * axis_stride_, axis_stride_, n, buffer);
    best.position = best_block + kernels_.find(block, n, best.value);
    return best;
  }

  // Rows [first, last) of n columns. `best` and `position` have kColumnBytes each.
  void search_columns(const char* src, int64_t first, int64_t last, int64_t n, char* best, char* position,
                      char* buffer) const {
    src += first * axis_stride_;
    std::memcpy(best, load(src, src_stride_, n, buffer), static_cast<size_t>(n * size_));
    std::memset(position, 0, static_cast<size_t>(n * size_));
    const int64_t rows = last - first;
    if (widen_ == nullptr && (src_stride_ == src_size_ || n == 1)) {
      if (rows > 1) arg_.columns(src + axis_stride_, axis_stride_, rows - 1, n, 1, best, position);
      return;
    }
    for (int64_t at = 1; at < rows; at += kLoadedRows) {
      const int64_t loaded = std::min(kLoadedRows, rows - at);
      for (int64_t i = 0; i < loaded; ++i) {
        char* const row = buffer + i * kColumnBytes;
        const char* const from = load(src + (at + i) * axis_stride_, src_stride_, n, row);
        if (from != row) std::memcpy(row, from, static_cast<size_t>(n * size_));
      }
      arg_.columns(buffer, kColumnBytes, loaded, n, at, best, position);
    }
  }

  // Best elements and positions of a piece of a block of columns, consecutively.
  char* results_of(char* workspace, int64_t unit) const { return workspace + unit * segment_ * 2 * size_; }

  void run_columns(const char* src, char* dst, char* workspace) const {
    const int64_t per_line = segments_ * pieces_;
    parallel_for(units_, grain_, [&](int64_t begin, int64_t end) {
      char* const best = thread_frame();
      char* const position = best + kColumnBytes;
      int64_t offsets[2] = {};
      Walk walk(nest_, loops_, begin / per_line, offsets);
      for (int64_t unit = begin, in_line = begin % per_line; unit < end; ++unit) {
        const int64_t column = in_line / pieces_ * segment_, n = std::min(segment_, inner_ - column);
        const int64_t first = in_line % pieces_ * piece_, last = std::min(first + piece_, axis_extent_);
        search_columns(src + offsets[0] + column * src_stride_, first, last, n, best, position,
                       position + kColumnBytes);
        if (pieces_ == 1) {
          char* const to = dst + offsets[1] + column * dst_stride_;
          for (int64_t j = 0; j < n; ++j) put(to + j * dst_stride_, position_at(position, j));
        } else {
          char* const results = results_of(workspace, unit);
          std::memcpy(results, best, static_cast<size_t>(n * size_));
          std::memcpy(results + segment_ * size_, position, static_cast<size_t>(n * size_));
        }
        if (++in_line == per_line) {
          in_line = 0;
          walk.next();
        }
      }
    });
    if (pieces_ > 1) join_columns(dst, workspace);
  }

  // Of pieces, in order, so that the first of equals wins.
  void join_columns(char* dst, char* workspace) const {
    parallel_for(nest_.points(), divide_up(kJoined, pieces_), [&](int64_t begin, int64_t end) {
      int64_t offsets[2] = {};
      Walk walk(nest_, nest_.rank, begin, offsets);
      for (int64_t output = begin; output < end; ++output, walk.next()) {
        const int64_t line = output / inner_, column = output % inner_;
        const int64_t unit = (line * segments_ + column / segment_) * pieces_, j = column % segment_;
        const char* best = results_of(workspace, unit) + j * size_;
        int64_t winner = 0;
        for (int64_t piece = 1; piece < pieces_; ++piece) {
          const char* const next = results_of(workspace, unit + piece) + j * size_;
          if (!kernels_.beats(next, best)) continue;
          best = next;
          winner = piece;
        }
        const char* const positions = results_of(workspace, unit + winner) + segment_ * size_;
        put(dst + offsets[1], winner * piece_ + position_at(positions, j));
      }
    });
  }

  int64_t position_at(const char* positions, int64_t j) const {
    return size_ == 4 ? reinterpret_cast<const int32_t*>(positions)[j] : reinterpret_cast<const int64_t*>(positions)[j];
  }

  common::LoopNest nest_;  // the axes that are kept; operands: input, output
  Kernels kernels_{};
  ReduceKernel reduce_{};
  ArgKernel arg_{};
  BlockFunction widen_ = nullptr;  // float16 and bfloat16 are compared in float32; columns of small integers in int32
  int64_t src_size_ = 0, size_ = 0;
  int64_t axis_extent_ = 1, axis_stride_ = 0;
  int loops_ = 0;
  int64_t inner_ = 1, src_stride_ = 0, dst_stride_ = 0;
  bool columns_ = false;
  int64_t segment_ = 1, segments_ = 1, units_ = 1, grain_ = 1;
  int64_t piece_ = 1, pieces_ = 1;  // of the axis
};

}  // namespace

std::optional<Refusal> refuse_arg_reduce(const Op& op) {
  if (op.text("kind") != "max" && op.text("kind") != "min") {
    return Refusal{COMPUTE_PLUGIN_REFUSE_ATTRIBUTE, -1,
                   "arg_reduce: unknown kind \"" + std::string(op.text("kind")) + "\"", ""};
  }
  if (is_complex(op.input(0).dtype)) {
    return Refusal{COMPUTE_PLUGIN_REFUSE_DTYPE, 0, "arg_reduce: complex numbers are not ordered", ""};
  }
  return std::nullopt;
}

std::unique_ptr<Plan> prepare_arg_reduce(const Op& op) { return std::make_unique<ArgReducePlan>(op); }

}  // namespace compute::cpu
