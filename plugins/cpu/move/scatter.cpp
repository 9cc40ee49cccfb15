// SPDX-License-Identifier: Apache-2.0
// Scatter. Two points of the index space meet in one element of the output only if they differ along the axis alone: so
// the other axes are shared between threads, and each follows the axis in order. Sums of many updates into one short
// line go to tables of their own, piece by piece. Results are the same on every run, for any number of threads.
#include "plugins/cpu/move/scatter.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

#include "plugins/common/op/layout.hpp"
#include "plugins/cpu/base/walk.hpp"
#include "plugins/cpu/isa/isa.hpp"
#include "plugins/cpu/map/block_program.hpp"
#include "plugins/cpu/move/copy.hpp"
#include "plugins/cpu/move/indices.hpp"
#include "plugins/cpu/move/ranges.hpp"
#include "plugins/cpu/threads/threads.hpp"

namespace compute::cpu {
namespace {

constexpr int64_t kPieceElements = 16 << 10;  // least work that justifies waking a thread
constexpr int64_t kShortRow = 16;             // rows from here on are combined by vector code
constexpr int64_t kLeastUpdates = 256;        // along the axis: of fewer, rows are cut
constexpr int64_t kRangeBytes = 128;          // two cores never share this much: the processor fetches lines in pairs
constexpr int64_t kUnitsPerThread = 4;
constexpr int64_t kLineThreads = 6;        // from this many threads on, dividing the updates of a line is faster
constexpr int64_t kLeastCut = 32;          // elements of rows that are cut
constexpr int64_t kLineBytes = 128 << 10;  // stays in the cache between a copy and its updates
constexpr int64_t kFewUpdates = 4;         // elements of a line per update, above which a copy takes longer
constexpr int64_t kTables = 4;             // of a piece of a line: updates in a row do not wait for one another's sums
constexpr int64_t kTableBytes = 16 << 10;  // of one, at most
constexpr int64_t kTablePieces = 64;       // at most
constexpr int64_t kTableUpdates = 16;      // of each element of a piece's tables, on average

int64_t divide_up(int64_t x, int64_t y) { return (x + y - 1) / y; }

enum class Combine { set, add, mul, min, max };

std::optional<Combine> combine_of(std::string_view name) {
  constexpr std::string_view names[] = {"set", "add", "mul", "min", "max"};
  for (int i = 0; i < 5; ++i) {
    if (names[i] == name) return static_cast<Combine>(i);
  }
  return std::nullopt;
}

// dst[j + at[j] along the axis] = that combined with src[j], in the order of j
using ScatterRow = void (*)(char* dst, int64_t dst_stride, int64_t axis_stride, const char* src, int64_t src_stride,
                            const int64_t* at, int64_t n);

template <class T, class F>
void scatter_row(char* dst, int64_t dst_stride, int64_t axis_stride, const char* src, int64_t src_stride,
                 const int64_t* at, int64_t n) {
  for (int64_t j = 0; j < n; ++j) {
    if (at[j] == kBadIndex) continue;
    T x, y;
    char* to = dst + j * dst_stride + at[j] * axis_stride;
    std::memcpy(&x, to, sizeof x);
    std::memcpy(&y, src + j * src_stride, sizeof y);
    x = F::apply(x, y);
    std::memcpy(to, &x, sizeof x);
  }
}

// The same along a line of the axis, with the indices as they come. True iff one is out of range; it is passed over.
// Updates go to `tables` lines in turn, which follow one another.
using ScatterLine = bool (*)(char* dst, int64_t axis_stride, const char* src, int64_t src_stride, const char* index,
                             int64_t index_stride, int64_t n, int64_t extent);

template <class T, class F, class I, int64_t tables = 1>
bool scatter_line(char* dst, int64_t axis_stride, const char* src, int64_t src_stride, const char* index,
                  int64_t index_stride, int64_t n, int64_t extent) {
  bool bad = false;
  const auto go = [&](int64_t to_step, int64_t from_step, int64_t index_step) __attribute__((always_inline)) {
    const auto update = [&](char* table, int64_t j) __attribute__((always_inline)) {
      const int64_t given = *reinterpret_cast<const I*>(index + j * index_step);
      const int64_t at = given < 0 ? given + extent : given;
      if (static_cast<uint64_t>(at) >= static_cast<uint64_t>(extent)) {
        bad = true;
        return;
      }
      T x, y;
      char* const to = table + at * to_step;
      std::memcpy(&x, to, sizeof x);
      std::memcpy(&y, src + j * from_step, sizeof y);
      x = F::apply(x, y);
      std::memcpy(to, &x, sizeof x);
    };
    int64_t j = 0;
    for (; j + tables <= n; j += tables) {
#pragma GCC unroll 4
      for (int64_t table = 0; table < tables; ++table) update(dst + table * extent * to_step, j + table);
    }
    for (; j < n; ++j) update(dst, j);
  };
  constexpr int64_t kElement = sizeof(T), kIndex = sizeof(I);
  if (axis_stride == kElement && src_stride == kElement && index_stride == kIndex) {
    go(kElement, kElement, kIndex);
  } else if (axis_stride == kElement && src_stride == 0 && index_stride == kIndex) {  // counts
    go(kElement, 0, kIndex);
  } else {
    go(axis_stride, src_stride, index_stride);
  }
  return bad;
}

// The same along a line of the axis, for updates that have been divided.
using ScatterUpdates = void (*)(char* dst, int64_t axis_stride, const char* src, int64_t src_stride,
                                std::span<const IndexRanges::Update> updates);

template <class T, class F>
void scatter_updates(char* dst, int64_t axis_stride, const char* src, int64_t src_stride,
                     std::span<const IndexRanges::Update> updates) {
  for (const IndexRanges::Update& update : updates) {
    T x, y;
    char* const to = dst + int64_t{update.at} * axis_stride;
    std::memcpy(&x, to, sizeof x);
    std::memcpy(&y, src + int64_t{update.position} * src_stride, sizeof y);
    x = F::apply(x, y);
    std::memcpy(to, &x, sizeof x);
  }
}

struct Add {
  template <class T>
  static T apply(T x, T y) {
    return static_cast<T>(x + y);
  }
};

/// The functions of one combination of one dtype; NULL if it is not defined.
struct ScatterRows {
  ScatterRow row = nullptr;
  ScatterLine line32 = nullptr, line64 = nullptr;
  ScatterUpdates updates = nullptr;
  ScatterLine tables32 = nullptr, tables64 = nullptr;  // kTables lines; of sums
};
template <class T, class F>
constexpr ScatterRows kRows = {scatter_row<T, F>, scatter_line<T, F, int32_t>, scatter_line<T, F, int64_t>,
                               scatter_updates<T, F>};
template <class T>
constexpr ScatterRows kSums = {
    scatter_row<T, Add>,     scatter_line<T, Add, int32_t>,          scatter_line<T, Add, int64_t>,
    scatter_updates<T, Add>, scatter_line<T, Add, int32_t, kTables>, scatter_line<T, Add, int64_t, kTables>};

struct Set {
  template <class T>
  static T apply(const T&, const T& y) {
    return y;
  }
};
struct Mul {
  template <class T>
  static T apply(T x, T y) {
    return static_cast<T>(x * y);
  }
};
// NaN wins on either side.
struct Min {
  template <class T>
  static T apply(T x, T y) {
    return y < x || y != y ? y : x;
  }
};
struct Max {
  template <class T>
  static T apply(T x, T y) {
    return y > x || y != y ? y : x;
  }
};
struct Or {
  static uint8_t apply(uint8_t x, uint8_t y) { return (x | y) != 0; }
};
struct And {
  static uint8_t apply(uint8_t x, uint8_t y) { return x != 0 && y != 0; }
};

template <class T>
struct Complex {
  T re, im;
  friend Complex operator+(Complex x, Complex y) { return {x.re + y.re, x.im + y.im}; }
  friend Complex operator*(Complex x, Complex y) { return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re}; }
};

// float16 and bfloat16, which core adds and multiplies in float32.
template <compute_dtype Dtype, class F>
struct InFloat32 {
  static uint16_t apply(uint16_t x, uint16_t y) {
    const uint16_t halves[2] = {x, y};
    float wide[2];
    uint16_t result;
    convert(Dtype, COMPUTE_DTYPE_FLOAT32, halves, wide, 2);
    wide[0] = F::apply(wide[0], wide[1]);
    convert(COMPUTE_DTYPE_FLOAT32, Dtype, wide, &result, 1);
    return result;
  }
  static void convert(compute_dtype from, compute_dtype to, const void* src, void* dst, int64_t n) {
    const int64_t step = 1;
    isa().blocks->converts[from][to](&src, &step, dst, n);
  }
};

struct Sixteen {
  char bytes[16];
};

ScatterRows set_row(int64_t size) {
  switch (size) {
    case 1:
      return kRows<uint8_t, Set>;
    case 2:
      return kRows<uint16_t, Set>;
    case 4:
      return kRows<uint32_t, Set>;
    case 8:
      return kRows<uint64_t, Set>;
    default:
      return kRows<Sixteen, Set>;
  }
}

template <class T>
ScatterRows real_row(Combine combine) {
  // Integers wrap: sums and products are taken in the unsigned type, which has the same bits.
  using Wrapping = std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>::type;
  using Product = std::conditional_t<std::is_integral_v<T> && sizeof(T) == 2, uint32_t, Wrapping>;
  struct WrappingMul {
    static Wrapping apply(Wrapping x, Wrapping y) { return static_cast<Wrapping>(static_cast<Product>(x) * y); }
  };
  switch (combine) {
    case Combine::add:
      return kSums<Wrapping>;
    case Combine::mul:
      return kRows<Wrapping, WrappingMul>;
    case Combine::min:
      return kRows<T, Min>;
    case Combine::max:
      return kRows<T, Max>;
    default:
      return {};
  }
}

template <compute_dtype Dtype>
ScatterRows half_row(Combine combine) {
  switch (combine) {
    case Combine::min:
      return kRows<uint16_t, InFloat32<Dtype, Min>>;
    case Combine::max:
      return kRows<uint16_t, InFloat32<Dtype, Max>>;
    default:
      return {};
  }
}

template <class T>
ScatterRows complex_row(Combine combine) {
  switch (combine) {
    case Combine::add:
      return kSums<Complex<T>>;
    case Combine::mul:
      return kRows<Complex<T>, Mul>;
    default:
      return {};
  }
}

// NULLs where the combination is not defined.
ScatterRows find_row(Combine combine, compute_dtype dtype) {
  if (combine == Combine::set) return set_row(dtype_size(dtype));
  switch (dtype) {
    case COMPUTE_DTYPE_BOOL:
      return combine == Combine::add || combine == Combine::max ? kRows<uint8_t, Or> : kRows<uint8_t, And>;
    case COMPUTE_DTYPE_INT8:
      return real_row<int8_t>(combine);
    case COMPUTE_DTYPE_INT16:
      return real_row<int16_t>(combine);
    case COMPUTE_DTYPE_INT32:
      return real_row<int32_t>(combine);
    case COMPUTE_DTYPE_INT64:
      return real_row<int64_t>(combine);
    case COMPUTE_DTYPE_UINT8:
      return real_row<uint8_t>(combine);
    case COMPUTE_DTYPE_UINT16:
      return real_row<uint16_t>(combine);
    case COMPUTE_DTYPE_UINT32:
      return real_row<uint32_t>(combine);
    case COMPUTE_DTYPE_UINT64:
      return real_row<uint64_t>(combine);
    case COMPUTE_DTYPE_FLOAT16:
      return half_row<COMPUTE_DTYPE_FLOAT16>(combine);
    case COMPUTE_DTYPE_BFLOAT16:
      return half_row<COMPUTE_DTYPE_BFLOAT16>(combine);
    case COMPUTE_DTYPE_FLOAT32:
      return real_row<float>(combine);
    case COMPUTE_DTYPE_FLOAT64:
      return real_row<double>(combine);
    case COMPUTE_DTYPE_COMPLEX64:
      return complex_row<float>(combine);
    default:
      return complex_row<double>(combine);
  }
}

// The vector code for a row with one index; NULL if there is none.
BlockFunction find_block(Combine combine, compute_dtype dtype) {
  constexpr int intrinsics[] = {0, COMPUTE_PLUGIN_INTRINSIC_ADD, COMPUTE_PLUGIN_INTRINSIC_MUL,
                                COMPUTE_PLUGIN_INTRINSIC_MIN, COMPUTE_PLUGIN_INTRINSIC_MAX};
  return isa().blocks->calls[intrinsics[static_cast<int>(combine)]][dtype];
}

class ScatterPlan final : public Plan {
 public:
  explicit ScatterPlan(const Op& op) : indices_(op.input(0)) {
    const compute_plugin_tensor &index = op.input(0), &src = op.input(1), &dst = op.output(0);
    const auto axis = static_cast<size_t>(op.integer("axis", 0));
    combine_ = *combine_of(op.text("reduction"));
    const ScatterRows rows = find_row(combine_, dst.dtype);
    row_ = rows.row;
    updates_ = rows.updates;
    line_ = index.dtype == COMPUTE_DTYPE_INT32 ? rows.line32 : rows.line64;
    tables_ = index.dtype == COMPUTE_DTYPE_INT32 ? rows.tables32 : rows.tables64;
    block_ = combine_ == Combine::set ? nullptr : find_block(combine_, dst.dtype);
    reports_faults = true;
    size_ = dtype_size(dst.dtype);
    index_dtype_ = index.dtype;
    extent_ = dst.shape[axis];
    axis_extent_ = index.shape[axis];
    axis_strides_ = {dst.strides[axis] * size_, index.strides[axis] * dtype_size(index.dtype),
                     src.strides[axis] * size_};
    std::vector<int64_t> shape, strides[3];
    for (size_t i = 0; i < static_cast<size_t>(dst.rank); ++i) {
      if (i == axis) continue;
      shape.push_back(dst.shape[i]);
      strides[0].push_back(dst.strides[i] * size_);
      strides[1].push_back(index.strides[i] * dtype_size(index.dtype));
      strides[2].push_back(src.strides[i] * size_);
    }
    const int64_t* const pointers[] = {strides[0].data(), strides[1].data(), strides[2].data()};
    nest_ = common::collapse(shape, pointers, 0);
    loops_ = std::max(nest_.rank - 1, 0);
    if (nest_.rank > 0) {
      inner_ = nest_.extents[static_cast<size_t>(loops_)];
      for (size_t i = 0; i < 3; ++i) strides_[i] = nest_.strides[i][static_cast<size_t>(loops_)];
    }
    set_tables(dst.dtype);
    if (pieces_ == 0) set_ranges();
    const auto is_nearer = [&](size_t i) { return std::abs(axis_strides_[i]) < std::abs(strides_[i]); };
    goes_along_ = is_nearer(0) && is_nearer(1) && is_nearer(2);
    // A row is cut if that gives every thread work; the axis never is.
    cut_extent_ = std::max(divide_up(kPieceElements, axis_extent_), kShortRow);
    cuts_ = divide_up(inner_, cut_extent_);
    units_ = nest_.points() / inner_ * cuts_;
    grain_ = std::max<int64_t>(kPieceElements / (std::min(cut_extent_, inner_) * axis_extent_), 1);
    output_ = op.input_count();
    if (op.input_count() < 3) return;
    copies_lines_ = can_copy_lines(op.input(2), dst, axis);
    if (!copies_lines_) copy_ = plan_copy(op.input(2), dst);
  }

  void run(const compute_plugin_run& run) const override {
    if (copy_) {
      compute_plugin_run copy = run;
      copy.tensors = run.tensors + 2;
      copy_->run(copy);
    }
    const Addresses at{address(run.tensors[output_]) + nest_.offsets[0], address(run.tensors[0]) + nest_.offsets[1],
                       address(run.tensors[1]) + nest_.offsets[2],
                       copies_lines_ ? address(run.tensors[2]) + nest_.offsets[0] : nullptr};
    std::atomic<bool> bad{false};
    if (pieces_ > 0) {
      bad.store(scatter_in_tables(at, address(run.workspace)), std::memory_order_relaxed);
    } else if (ranges_.count() > 0) {
      bad.store(scatter_ranges(at, address(run.workspace)), std::memory_order_relaxed);
    } else {
      parallel_tasks(units_, grain_, [&](int64_t begin, int64_t end) {
        int64_t offsets[3] = {};
        Walk walk(nest_, loops_, begin / cuts_, offsets);
        bool piece_bad = false;
        for (int64_t unit = begin, cut = begin % cuts_; unit < end; ++unit) {
          const int64_t first = cut * cut_extent_;
          const int64_t to = offsets[0] + first * strides_[0];
          piece_bad |=
              scatter_rows({at.dst + to, at.index + offsets[1] + first * strides_[1],
                            at.src + offsets[2] + first * strides_[2], copies_lines_ ? at.before + to : nullptr},
                           std::min(cut_extent_, inner_ - first));
          if (++cut == cuts_) {
            cut = 0;
            walk.next();
          }
        }
        if (piece_bad) bad.store(true, std::memory_order_relaxed);
      });
    }
    if (bad.load(std::memory_order_relaxed)) indices_.report_first_fault(run, "scatter", 0, extent_);
  }

 private:
  struct Addresses {
    char* dst;
    const char* index;
    const char* src;
    const char* before;  // the source of lines of dst, laid out like dst
  };

  // Some rows of updates of a range: cut `cut` of `cuts` of the innermost loop.
  struct Unit {
    int32_t range, cut, cuts;
  };

  // Whether each line can be copied just before it is updated, by the thread that does so.
  bool can_copy_lines(const compute_plugin_tensor& before, const compute_plugin_tensor& dst, size_t axis) const {
    if (pieces_ > 0 || ranges_.count() > 0 || (inner_ >= kShortRow && !goes_along_)) return false;
    if (dst.strides[axis] != 1 || extent_ * size_ > kLineBytes || extent_ / kFewUpdates > axis_extent_) return false;
    for (int32_t i = 0; i < dst.rank; ++i) {
      if (dst.shape[i] > 1 && before.strides[i] != dst.strides[i]) return false;
    }
    return true;
  }

  // For many updates of a short line. Pieces depend on the sizes alone.
  void set_tables(compute_dtype dtype) {
    if (tables_ == nullptr || block_ == nullptr || nest_.points() != 1 || axis_strides_[0] != size_) return;
    if (extent_ * size_ > kTableBytes) return;
    const int64_t least = std::max(kPieceElements, kTableUpdates * kTables * extent_);
    pieces_ = std::min(axis_extent_ / least, kTablePieces);
    tables_bytes_ = divide_up(kTables * extent_ * size_, kRangeBytes) * kRangeBytes;
    workspace_bytes = pieces_ * tables_bytes_;
    // A sum of -0 and -0 alone is -0.
    if (dtype == COMPUTE_DTYPE_FLOAT32 || dtype == COMPUTE_DTYPE_COMPLEX64) zero_bits_ = 0x8000'0000'8000'0000;
    if (dtype == COMPUTE_DTYPE_FLOAT64 || dtype == COMPUTE_DTYPE_COMPLEX128) zero_bits_ = uint64_t{1} << 63;
  }

  bool scatter_in_tables(const Addresses& at, char* memory) const {
    std::atomic<bool> bad{false};
    parallel_tasks(pieces_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t piece = begin; piece < end; ++piece) {
        char* const tables = memory + piece * tables_bytes_;
        std::fill_n(reinterpret_cast<uint64_t*>(tables), tables_bytes_ / int64_t{sizeof zero_bits_}, zero_bits_);
        const int64_t first = axis_extent_ * piece / pieces_, last = axis_extent_ * (piece + 1) / pieces_;
        if (tables_(tables, size_, at.src + first * axis_strides_[2], axis_strides_[2],
                    at.index + first * axis_strides_[1], axis_strides_[1], last - first, extent_))
          bad.store(true, std::memory_order_relaxed);
        for (int64_t i = 1; i < kTables; ++i) combine_row(tables, tables + i * extent_ * size_, extent_);
      }
    });
    for (int64_t piece = 0; piece < pieces_; ++piece) combine_row(at.dst, memory + piece * tables_bytes_, extent_);
    return bad.load(std::memory_order_relaxed);
  }

  // For updates of rows or single elements whose index depends only on their position along the axis: divides the
  // targets among the threads.
  void set_ranges() {
    const int64_t points = nest_.points(), threads = thread_count();
    const auto is_zero = [](int64_t stride) { return stride == 0; };
    if ((points < kShortRow && threads < kLineThreads) || axis_extent_ < kLeastUpdates ||
        points * axis_extent_ < 2 * kPieceElements)
      return;
    if (std::max(axis_extent_, extent_) > int64_t{UINT32_MAX}) return;
    if (!std::all_of(nest_.strides[1].begin(), nest_.strides[1].begin() + nest_.rank, is_zero)) return;
    const int64_t least = std::max<int64_t>(kRangeBytes / (points * size_), 1);
    const IndexRanges ranges(axis_extent_, extent_, least, threads);
    if (ranges.ranges() < 2) return;
    ranges_ = ranges;
    unit_limit_ = ranges.ranges() + kUnitsPerThread * threads;
    workspace_bytes = ranges.workspace_bytes() + unit_limit_ * int64_t{sizeof(Unit)};
  }

  bool scatter_ranges(const Addresses& at, char* memory) const {
    const bool bad = ranges_.divide(index_dtype_, at.index, axis_strides_[1], memory);
    // Where many updates have few indices, their rows are cut.
    auto* const units = reinterpret_cast<Unit*>(memory + ranges_.workspace_bytes());
    const int64_t share = divide_up(axis_extent_, kUnitsPerThread * thread_count());
    int64_t count = 0;
    for (int64_t range = 0; range < ranges_.ranges(); ++range) {
      const auto updates = static_cast<int64_t>(ranges_.updates(range, memory).size());
      const int64_t cuts = std::min(divide_up(updates, share), std::max<int64_t>(inner_ / kLeastCut, 1));
      for (int64_t cut = 0; cut < cuts; ++cut)
        units[count++] = {static_cast<int32_t>(range), static_cast<int32_t>(cut), static_cast<int32_t>(cuts)};
    }
    std::atomic<int64_t> next{0};
    parallel_tasks(std::min<int64_t>(count, thread_count()), 1, [&](int64_t, int64_t) {
      for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < count;) {
        const int64_t first = inner_ * units[i].cut / units[i].cuts, last = inner_ * (units[i].cut + 1) / units[i].cuts;
        int64_t offsets[3] = {first * strides_[0], 0, first * strides_[2]};
        Walk walk(nest_, loops_, 0, offsets);
        for (int64_t outer = nest_.points() / inner_; outer > 0; --outer, walk.next())
          scatter_range(at.dst + offsets[0], at.src + offsets[2], ranges_.updates(units[i].range, memory),
                        last - first);
      }
    });
    return bad;
  }

  void scatter_range(char* dst, const char* src, std::span<const IndexRanges::Update> updates, int64_t width) const {
    if (width >= kShortRow && combines_rows()) {
      for (const IndexRanges::Update& update : updates) {
        combine_row(dst + int64_t{update.at} * axis_strides_[0], src + int64_t{update.position} * axis_strides_[2],
                    width);
      }
      return;
    }
    for (int64_t j = 0; j < width; ++j)
      updates_(dst + j * strides_[0], axis_strides_[0], src + j * strides_[2], axis_strides_[2], updates);
  }

  // Along the axis, with `width` adjacent elements at each step. True iff an index was out of range.
  bool scatter_rows(const Addresses& at, int64_t width) const {
    if (width < kShortRow || goes_along_) {
      bool bad = false;
      for (int64_t j = 0; j < width; ++j) {
        if (copies_lines_) {
          std::memcpy(at.dst + j * strides_[0], at.before + j * strides_[0], static_cast<size_t>(extent_ * size_));
        }
        bad |= line_(at.dst + j * strides_[0], axis_strides_[0], at.src + j * strides_[2], axis_strides_[2],
                     at.index + j * strides_[1], axis_strides_[1], axis_extent_, extent_);
      }
      return bad;
    }
    int64_t indices[kIndexBlock];
    bool bad = false;
    for (int64_t step = 0; step < axis_extent_; ++step) {
      const char* index = at.index + step * axis_strides_[1];
      const char* src = at.src + step * axis_strides_[2];
      for (int64_t done = 0; done < width; done += kIndexBlock) {
        const int64_t n = std::min(kIndexBlock, width - done);
        if (strides_[1] != 0) {
          bad |= resolve_indices(index_dtype_, index + done * strides_[1], strides_[1], n, extent_, indices);
        } else {
          if (resolve_indices(index_dtype_, index, 0, 1, extent_, indices)) {
            bad = true;
            break;
          }
          std::fill_n(indices + 1, n - 1, indices[0]);
          char* to = at.dst + done * strides_[0] + indices[0] * axis_strides_[0];
          if (combines_rows()) {
            combine_row(to, src + done * strides_[2], n);
            continue;
          }
        }
        row_(at.dst + done * strides_[0], strides_[0], axis_strides_[0], src + done * strides_[2], strides_[2], indices,
             n);
      }
    }
    return bad;
  }

  // Whether there is vector code for whole rows: both are contiguous.
  bool combines_rows() const {
    return strides_[0] == size_ && strides_[2] == size_ && (combine_ == Combine::set || block_ != nullptr);
  }

  void combine_row(char* dst, const char* src, int64_t n) const {
    if (combine_ == Combine::set) {
      std::memcpy(dst, src, static_cast<size_t>(n * size_));
      return;
    }
    const void* const operands[] = {dst, src};
    const int64_t steps[] = {1, 1};
    block_(operands, steps, dst, n);
  }

  IndexTensor indices_;
  int32_t output_ = 2;          // among the tensors of a run
  std::unique_ptr<Plan> copy_;  // of the third input, before everything else
  bool copies_lines_ = false;   // of the third input
  common::LoopNest nest_;       // the axes other than the scattered one; operands: output, indices, updates
  Combine combine_ = Combine::set;
  ScatterRow row_ = nullptr;
  ScatterLine line_ = nullptr, tables_ = nullptr;
  ScatterUpdates updates_ = nullptr;
  BlockFunction block_ = nullptr;
  int64_t size_ = 0;
  compute_dtype index_dtype_ = COMPUTE_DTYPE_INT64;
  int64_t extent_ = 0;       // of the output along the axis
  int64_t axis_extent_ = 0;  // of the index space along it
  std::array<int64_t, 3> axis_strides_{};
  int loops_ = 0;
  int64_t inner_ = 1;
  int64_t strides_[3] = {};  // of the innermost of the other loops
  bool goes_along_ = false;  // elements along the axis are closer together than elements across it
  IndexRanges ranges_;       // empty: the lines are divided among the threads
  int64_t unit_limit_ = 0;
  int64_t pieces_ = 0, tables_bytes_ = 0;  // of a line, with tables of their own
  uint64_t zero_bits_ = 0;                 // of what tables begin with
  int64_t cut_extent_ = 1, cuts_ = 1, units_ = 1, grain_ = 1;
};

}  // namespace

std::optional<Refusal> refuse_scatter(const Op& op) {
  if (op.input_count() != op.version() + 1)
    return Refusal{COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED, -1, "scatter: wrong number of inputs", ""};
  const compute_dtype index = op.input(0).dtype;
  if (index != COMPUTE_DTYPE_INT32 && index != COMPUTE_DTYPE_INT64) {
    return Refusal{COMPUTE_PLUGIN_REFUSE_DTYPE, 0,
                   std::string("scatter: indices must be int32 or int64, not ") + dtype_name(index), ""};
  }
  const std::optional<Combine> combine = combine_of(op.text("reduction"));
  if (!combine) {
    return Refusal{COMPUTE_PLUGIN_REFUSE_ATTRIBUTE, -1,
                   "scatter: unknown reduction \"" + std::string(op.text("reduction")) + "\"", ""};
  }
  if (find_row(*combine, op.output(0).dtype).row == nullptr) {
    return Refusal{
        COMPUTE_PLUGIN_REFUSE_DTYPE, op.input_count(),
        "scatter: " + std::string(op.text("reduction")) + " of " + dtype_name(op.output(0).dtype) + " is not defined",
        ""};
  }
  return std::nullopt;
}

std::unique_ptr<Plan> prepare_scatter(const Op& op) { return std::make_unique<ScatterPlan>(op); }

}  // namespace compute::cpu
