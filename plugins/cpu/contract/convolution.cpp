// SPDX-License-Identifier: Apache-2.0
// Convolutions as products of matrices. A task computes a block of the result: it copies the windows that a block of
// columns needs, a block of depth at a time, so that they are still in the cache when the packed product reads them.
// What already lies evenly in memory is read in place.
#include "plugins/cpu/contract/convolution.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>

#include "plugins/cpu/base/host.hpp"
#include "plugins/cpu/contract/patches.hpp"
#include "plugins/cpu/contract/window_part.hpp"
#include "plugins/cpu/isa/isa.hpp"
#include "plugins/cpu/kernels/gemm_kernel.hpp"
#include "plugins/cpu/threads/threads.hpp"

namespace compute::cpu {
namespace {

using common::kMaxSpatial;
using common::kWindowAxes;
using common::WindowProduct;

using Extents = std::array<int64_t, kWindowAxes>;

constexpr int64_t kDepthBytes = 1536;               // of a line of a block
constexpr int64_t kColumnBlock = 256;               // at most, of a task
constexpr int64_t kLeastBlock = 64;                 // rows or columns of a task
constexpr int64_t kRowBlock = 1024;                 // at most
constexpr int64_t kSegment = 128;                   // evenly spaced elements are read in place from this length on
constexpr int64_t kThinDepth = 64;                  // terms that are worth the kernel for few rows
constexpr int64_t kTasksPerThread = 3;              // for balance
constexpr int64_t kSerialWork = int64_t{1} << 17;   // multiplications of a task that are worth a thread
constexpr int64_t kDividedWork = int64_t{1} << 24;  // of a result whose sums are worth dividing
constexpr int64_t kMostParts = 64;
constexpr int64_t kMostProducts = 1024;  // of a gradient of the input
constexpr int64_t kAlignment = 64;

int64_t ceiling(int64_t x, int64_t unit) { return (x + unit - 1) / unit; }
int64_t round_up(int64_t x, int64_t unit) { return ceiling(x, unit) * unit; }

bool is_half(compute_dtype dtype) { return dtype == COMPUTE_DTYPE_FLOAT16 || dtype == COMPUTE_DTYPE_BFLOAT16; }

const char* offset(const void* p, int64_t bytes) { return static_cast<const char*>(p) + bytes; }
char* offset(void* p, int64_t bytes) { return static_cast<char*>(p) + bytes; }

/// How many points of an index space, from every multiple of that number on, are `stride` apart.
struct Even {
  int64_t points = 1, stride = 1;
};

Even find_even(const Extents& extents, const Extents& strides) {
  Even even;
  for (size_t axis = kWindowAxes; axis-- > 0;) {
    if (extents[axis] == 1) continue;
    if (even.points == 1) even.stride = strides[axis];
    if (strides[axis] != even.stride * even.points) break;
    even.points *= extents[axis];
  }
  return even;
}

int64_t offset_of(const Extents& extents, const Extents& strides, int64_t point) {
  int64_t sum = 0;
  for (size_t axis = kWindowAxes; axis-- > 0;) {
    sum += point % extents[axis] * strides[axis];
    point /= extents[axis];
  }
  return sum;
}

/// Points in blocks of equal size that do not cross multiples of `segment`.
struct Blocks {
  int64_t points = 0, segment = 1, block = 1;

  static Blocks of(int64_t points, int64_t segment, int64_t most, int64_t unit) {
    const int64_t count = std::max<int64_t>(ceiling(segment, most), 1);
    return {points, segment, std::max<int64_t>(std::min(segment, round_up(ceiling(segment, count), unit)), 1)};
  }
  int64_t per_segment() const { return ceiling(segment, block); }
  int64_t count() const { return points == 0 ? 0 : points / segment * per_segment(); }
  PointRange at(int64_t index) const {
    const int64_t first = index / per_segment() * segment, begin = first + index % per_segment() * block;
    return {begin, std::min(begin + block, first + segment)};
  }
};

// ---- Results --------------------------------------------------------------------------------------------------------

template <class F>
void with_number(compute_dtype dtype, const F& f) {
  switch (dtype) {
    case COMPUTE_DTYPE_INT8:
    case COMPUTE_DTYPE_UINT8:
      return f(uint8_t{}, 1);
    case COMPUTE_DTYPE_INT16:
    case COMPUTE_DTYPE_UINT16:
      return f(uint16_t{}, 1);
    case COMPUTE_DTYPE_INT32:
    case COMPUTE_DTYPE_UINT32:
      return f(uint32_t{}, 1);
    case COMPUTE_DTYPE_INT64:
    case COMPUTE_DTYPE_UINT64:
      return f(uint64_t{}, 1);
    case COMPUTE_DTYPE_FLOAT64:
      return f(double{}, 1);
    case COMPUTE_DTYPE_COMPLEX64:
      return f(float{}, 2);
    case COMPUTE_DTYPE_COMPLEX128:
      return f(double{}, 2);
    default:
      return f(float{}, 1);
  }
}

/// Numbers of the dtype that sums are made in.
struct Sums {
  compute_dtype dtype;
  int32_t bytes;           // of a sum
  const HalfRows* halves;  // conversions of a half type; NULL for other dtypes

  /// sums += more.
  void add(void* sums, const void* more, int64_t n) const {
    with_number(dtype, [&](auto number, int parts) {
      using T = decltype(number);
      T* const x = static_cast<T*>(sums);
      const T* const y = static_cast<const T*>(more);
      for (int64_t i = 0; i < n * parts; ++i) x[i] = static_cast<T>(x[i] + y[i]);
    });
  }

  /// c[i · stride] = sums[i] + *bias; there may be no bias.
  void store(void* sums, const void* bias, void* c, int64_t stride, int64_t n) const {
    if (halves != nullptr) {
      float* const x = static_cast<float*>(sums);
      float term = 0;
      if (bias != nullptr) {
        halves->widen(static_cast<const uint16_t*>(bias), 1, &term, 1);
        for (int64_t i = 0; i < n; ++i) x[i] += term;
      }
      return halves->narrow(x, static_cast<uint16_t*>(c), stride, n);
    }
    with_number(dtype, [&](auto number, int parts) {
      using T = decltype(number);
      const T* const x = static_cast<const T*>(sums);
      T* const to = static_cast<T*>(c);
      T term[2] = {};
      if (bias != nullptr) std::memcpy(term, bias, sizeof(T) * static_cast<size_t>(parts));
      if (parts == 1 && stride == 1 && bias != nullptr) {
        for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(x[i] + term[0]);
      } else if (parts == 1 && bias != nullptr) {
        for (int64_t i = 0; i < n; ++i) to[i * stride] = static_cast<T>(x[i] + term[0]);
      } else if (parts == 1 && stride == 1) {
        std::memcpy(to, x, static_cast<size_t>(n) * sizeof(T));
      } else {
        for (int64_t i = 0; i < n; ++i) {
          for (int part = 0; part < parts; ++part)
            to[i * stride * parts + part] =
                bias != nullptr ? static_cast<T>(x[i * parts + part] + term[part]) : x[i * parts + part];
        }
      }
    });
  }
};

// ---- One product ----------------------------------------------------------------------------------------------------

/// A block of the result of one group.
struct Block {
  int64_t group;
  PointRange rows, columns;
};

class BlockPart final : public WindowPart {
 public:
  BlockPart(const WindowProduct& product, compute_dtype dtype, bool has_bias, bool depth_is_images, int32_t threads)
      : p_(product),
        kernels_(*isa().gemm),
        kernel_(kernels_.by_dtype[dtype]),
        bytes_(common::dtype_size(dtype)),
        sums_{dtype, is_half(dtype) ? 4 : bytes_,
              dtype == COMPUTE_DTYPE_FLOAT16    ? &kernels_.float16
              : dtype == COMPUTE_DTYPE_BFLOAT16 ? &kernels_.bfloat16
                                                : nullptr},
        has_bias_(has_bias),
        is_thin_(reads_few_columns()),
        depth_adjacent_(is_thin_ || p_.depth[kMaxSpatial] > p_.column[kMaxSpatial]) {
    find_strides();
    cut(depth_is_images, threads);
    lay_out();
  }

  int64_t tasks() const override { return row_blocks_.count() * column_blocks_.count() * p_.groups * parts_; }
  int64_t packing_tasks() const override { return packs_ ? p_.groups : 0; }
  int64_t joining_tasks() const override { return parts_ > 1 ? p_.groups * p_.rows : 0; }

  /// Copies a group's a, if it is used more than once.
  void pack(const WindowMemory& memory, int64_t group) const override {
    auto* const runs = reinterpret_cast<PointRun*>(memory.scratch + runs_at_);
    char* const to = memory.shared + group * p_.rows * depth_ * bytes_;
    const int64_t most = std::max(depth_blocks_.block, kColumnBlock);
    for (int64_t from = 0; from < depth_; from += most) {
      copy_factors(p_, bytes_, a(memory, group, 0), {0, p_.rows}, {from, std::min(from + most, depth_)},
                   to + from * bytes_, depth_, runs);
    }
  }

  void run(const WindowMemory& memory, int64_t task) const override {
    const int64_t part = task % parts_;
    int64_t rest = task / parts_;
    Block block;
    block.rows = row_blocks_.at(rest % row_blocks_.count());
    rest /= row_blocks_.count();
    block.columns = column_blocks_.at(rest % column_blocks_.count());
    block.group = rest / column_blocks_.count();
    const int64_t blocks = depth_blocks_.count(), each = ceiling(blocks, parts_);
    const PointRange depth = {std::min(blocks, part * each), std::min(blocks, (part + 1) * each)};
    if (parts_ > 1) {
      const int64_t results = p_.groups * p_.rows * columns_;
      const int64_t first = (block.group * p_.rows + block.rows.begin) * columns_ + block.columns.begin;
      return add_up(memory, block, depth, memory.shared + factor_bytes_ + (part * results + first) * sums_.bytes,
                    columns_, 1);
    }
    if (is_in_place(block)) {
      const int64_t at = block.group * p_.c_group + block.rows.begin * p_.c_row + p_.c_offset +
                         offset_of(p_.column, p_.c_column, block.columns.begin);
      char* const c = offset(memory.c, at * bytes_);
      if (has_bias_) fill(memory, block, c);
      return add_up(memory, block, depth, c, p_.c_row, even_c_.stride, has_bias_);
    }
    char* const sums = memory.scratch + sums_at_;
    add_up(memory, block, depth, sums, block.columns.size(), 1);
    auto* const runs = reinterpret_cast<PointRun*>(memory.scratch + runs_at_);
    for (int64_t row = block.rows.begin; row < block.rows.end; ++row)
      store(memory, {block.group, {row, row + 1}, block.columns},
            sums + (row - block.rows.begin) * block.columns.size() * sums_.bytes, runs);
  }

  /// Adds up the parts of a row of a group, and stores it.
  void join(const WindowMemory& memory, int64_t row) const override {
    auto* const runs = reinterpret_cast<PointRun*>(memory.scratch + runs_at_);
    char* const first = memory.shared + factor_bytes_ + row * columns_ * sums_.bytes;
    const int64_t results = p_.groups * p_.rows * columns_ * sums_.bytes;
    for (int64_t part = 1; part < parts_; ++part) sums_.add(first, first + part * results, columns_);
    const int64_t of_group = row % p_.rows;
    for (int64_t from = 0; from < columns_; from += kColumnBlock) {
      store(memory, {row / p_.rows, {of_group, of_group + 1}, {from, std::min(from + kColumnBlock, columns_)}},
            first + from * sums_.bytes, runs);
    }
  }

 private:
  // ---- preparing

  // Whether there are so few columns that the kernel for few rows reads a once, in place.
  bool reads_few_columns() const {
    const int64_t depth = p_.depth_points(), columns = p_.columns();
    const Even a = find_even(p_.depth, p_.a_depth);
    return kernel_.run_thin != nullptr && columns <= std::min(kThinAdjacentRows, p_.rows) && depth >= kThinDepth &&
           a.points == depth && a.stride == 1;
  }

  void find_strides() {
    b_depth_strides_[0] = p_.b_depth;
    b_column_strides_[0] = p_.b_column;
    for (size_t i = 0; i < kMaxSpatial; ++i) {
      b_depth_strides_[1 + i] = p_.depth_step[i] * p_.stride[i];
      b_column_strides_[1 + i] = p_.column_step[i] * p_.stride[i];
    }
    depth_ = p_.depth_points();
    columns_ = p_.columns();
    even_a_ = find_even(p_.depth, p_.a_depth);
    even_c_ = find_even(p_.column, p_.c_column);
    const bool is_plain = depth_ > 0 && !p_.is_padded();
    even_b_depth_ = find_even(p_.depth, b_depth_strides_);
    even_b_column_ = find_even(p_.column, b_column_strides_);
    reads_b_ = is_plain && even_b_depth_.points >= std::min(depth_, kSegment) &&
               even_b_column_.points >= std::min(columns_, kSegment);
  }

  // The points of a space whose multiples blocks do not cross.
  static int64_t segment_of(int64_t points, int64_t even, bool reads_b, int64_t even_b) {
    return std::min(even < kSegment ? points : even, reads_b ? even_b : points);
  }

  // False if the blocks are as small as they become: a block is whole tiles of the kernel.
  static bool halve(Blocks& blocks, int64_t points, int64_t segment, int64_t tile) {
    if (blocks.block <= kLeastBlock) return false;
    const Blocks halves = Blocks::of(points, segment, ceiling(blocks.block, 2), tile);
    if (halves.block >= blocks.block) return false;
    blocks = halves;
    return true;
  }

  void cut(bool depth_is_images, int32_t threads) {
    const int64_t depth_segment = segment_of(depth_, even_a_.points, reads_b_, even_b_depth_.points);
    if (depth_ > 0) depth_blocks_ = Blocks::of(depth_, depth_segment, kDepthBytes / sums_.bytes, 1);
    const int64_t column_segment = segment_of(columns_, even_c_.points, reads_b_, even_b_column_.points);
    column_blocks_ = Blocks::of(columns_, column_segment, kColumnBlock, kernel_.columns);
    row_blocks_ = Blocks::of(p_.rows, p_.rows, kRowBlock, kernel_.rows);
    divide_depth();
    const auto work = [&] {
      return static_cast<double>(column_blocks_.block) * static_cast<double>(row_blocks_.block) *
             static_cast<double>(depth_) / static_cast<double>(parts_);
    };
    while (threads > 1 && tasks() < kTasksPerThread * threads && work() >= 2 * kSerialWork) {
      const bool columns_first = column_blocks_.block >= row_blocks_.block / 4;
      if (!(columns_first && halve(column_blocks_, columns_, column_segment, kernel_.columns)) &&
          !halve(row_blocks_, p_.rows, p_.rows, kernel_.rows)) {
        break;
      }
    }
    // A block of depth is one piece of a.
    const bool a_is_even = depth_ == 0 || even_a_.points >= depth_segment;
    packs_ = !a_is_even && !depth_is_images && column_blocks_.count() > 1;
    copies_a_ = !a_is_even && !packs_;
  }

  // Few results of many terms each: the terms are divided among tasks, the same way for any number of threads.
  void divide_depth() {
    const double work =
        static_cast<double>(p_.groups * p_.rows) * static_cast<double>(columns_) * static_cast<double>(depth_);
    if (work < static_cast<double>(kDividedWork)) return;
    const int64_t tiles = p_.groups * ceiling(p_.rows, kLeastBlock) * ceiling(columns_, kLeastBlock);
    const auto by_work = static_cast<int64_t>(std::min(work / static_cast<double>(kDividedWork / 4), 1e6));
    parts_ = std::max<int64_t>(std::min({kMostParts / tiles, by_work, depth_blocks_.count() / 4}), 1);
  }

  void lay_out() {
    if (packs_) factor_bytes_ = round_up(p_.groups * p_.rows * depth_ * bytes_, kAlignment);
    if (parts_ > 1) partial_bytes_ = round_up(parts_ * p_.groups * p_.rows * columns_ * sums_.bytes, kAlignment);
    shared_bytes_ = factor_bytes_ + partial_bytes_;
    const auto add = [&](int64_t& at, int64_t size) {
      at = scratch_bytes_;
      scratch_bytes_ += round_up(size, kAlignment);
    };
    const int64_t rows = row_blocks_.block, columns = column_blocks_.block;
    const int64_t depth = depth_ > 0 ? depth_blocks_.block : 0;
    leading_ = depth_adjacent_ ? depth : columns;
    add(runs_at_, std::max({depth, columns, kColumnBlock}) * static_cast<int64_t>(sizeof(PointRun)));
    if (!reads_b_) add(windows_at_, columns * depth * bytes_);
    if (copies_a_) add(factors_at_, rows * depth * bytes_);
    if (parts_ == 1) add(sums_at_, rows * columns * sums_.bytes);
    if (depth == 0) return;
    // Smaller blocks at the end may be divided otherwise.
    int64_t scratch = 0;
    for (const int64_t m : {rows, p_.rows % rows}) {
      for (const int64_t n : {columns, column_blocks_.segment % columns}) {
        for (const int64_t k : {depth, depth_blocks_.segment % depth}) {
          if (m > 0 && n > 0 && k > 0) scratch = std::max(scratch, kernel_.scratch_bytes(m, n, k));
        }
      }
    }
    add(kernel_at_, scratch);
  }

  // ---- running

  const char* a(const WindowMemory& memory, int64_t group, int64_t row) const {
    return offset(memory.a, (p_.a_offset + group * p_.a_group + row * p_.a_row) * bytes_);
  }

  // Whether sums are made in c itself.
  bool is_in_place(const Block& block) const {
    return sums_.halves == nullptr && depth_ > 0 &&
           block.columns.begin / even_c_.points == (block.columns.end - 1) / even_c_.points;
  }

  // c = the bias, for the columns of a block that lie evenly.
  void fill(const WindowMemory& memory, const Block& block, char* c) const {
    with_number(sums_.dtype, [&](auto number, int parts) {
      using T = decltype(number);
      for (int64_t row = block.rows.begin; row < block.rows.end; ++row, c += p_.c_row * bytes_) {
        T term[2] = {};
        std::memcpy(term, offset(memory.bias, (block.group * p_.bias_group + row * p_.bias_row) * bytes_),
                    static_cast<size_t>(bytes_));
        T* const to = reinterpret_cast<T*>(c);
        if (parts == 1 && even_c_.stride == 1) {
          std::fill_n(to, block.columns.size(), term[0]);
          continue;
        }
        for (int64_t i = 0; i < block.columns.size(); ++i) std::copy_n(term, parts, to + i * even_c_.stride * parts);
      }
    });
  }

  // c = the sums of a block over blocks of depth, or c += these.
  void add_up(const WindowMemory& memory, const Block& block, PointRange depth, void* c, int64_t c_row,
              int64_t c_column, bool accumulates = false) const {
    if (depth.size() <= 0) {
      for (int64_t row = 0; row < block.rows.size(); ++row)
        std::memset(offset(c, row * c_row * sums_.bytes), 0, static_cast<size_t>(block.columns.size() * sums_.bytes));
      return;
    }
    static constexpr double kOnes[][2] = {{1, 0}};
    static constexpr float kOne[2] = {1, 0};
    static constexpr uint64_t kInteger = 1;
    const bool is_double = sums_.dtype == COMPUTE_DTYPE_FLOAT64 || sums_.dtype == COMPUTE_DTYPE_COMPLEX128;
    const bool is_integer = sums_.dtype < COMPUTE_DTYPE_FLOAT16;
    GemmCall call{};
    call.m = block.rows.size();
    call.n = block.columns.size();
    call.c = c;
    call.c_row = c_row;
    call.c_column = c_column;
    call.alpha = is_integer ? static_cast<const void*>(&kInteger) : is_double ? static_cast<const void*>(kOnes) : kOne;
    call.scratch = memory.scratch + kernel_at_;
    for (int64_t i = depth.begin; i < depth.end; ++i) {
      const PointRange range = depth_blocks_.at(i);
      call.k = range.size();
      call.accumulate = accumulates || i > depth.begin;
      place_factors(memory, block, range, call);
      place_windows(memory, block, range, call);
      is_thin_&& call.b_row == 1 ? run_thin(call) : kernel_.run(call);
    }
  }

  // The transposed product, where both factors have adjacent elements along the depth.
  void run_thin(const GemmCall& given) const {
    GemmCall call = given;
    if (given.n == 1) {
      kernel_.run_vector(call);
      return;
    }
    std::swap(call.m, call.n);
    std::swap(call.c_row, call.c_column);
    call.a = given.b;
    call.a_row = given.b_column;
    call.a_column = 1;
    call.b = given.a;
    call.b_row = 1;
    call.b_column = given.a_row;
    kernel_.run_thin(call);
  }

  void place_factors(const WindowMemory& memory, const Block& block, PointRange depth, GemmCall& call) const {
    call.a_column = 1;
    if (packs_) {
      call.a_row = depth_;
      call.a = memory.shared +
               ((block.group * p_.rows + block.rows.begin) * depth_ + depth.begin) * static_cast<int64_t>(bytes_);
    } else if (copies_a_) {
      call.a_row = depth_blocks_.block;
      call.a = memory.scratch + factors_at_;
      copy_factors(p_, bytes_, a(memory, block.group, 0), block.rows, depth, memory.scratch + factors_at_, call.a_row,
                   reinterpret_cast<PointRun*>(memory.scratch + runs_at_));
    } else {
      call.a_row = p_.a_row;
      call.a_column = even_a_.stride;
      call.a = a(memory, block.group, block.rows.begin) + offset_of(p_.depth, p_.a_depth, depth.begin) * bytes_;
    }
  }

  void place_windows(const WindowMemory& memory, const Block& block, PointRange depth, GemmCall& call) const {
    const char* b = offset(memory.b, block.group * p_.b_group * bytes_);
    if (reads_b_) {
      int64_t at = offset_of(p_.depth, b_depth_strides_, depth.begin) +
                   offset_of(p_.column, b_column_strides_, block.columns.begin);
      for (size_t i = 0; i < kMaxSpatial; ++i) at += p_.start[i] * p_.stride[i];
      call.b = b + at * bytes_;
      call.b_row = even_b_depth_.stride;
      call.b_column = even_b_column_.stride;
      return;
    }
    copy_windows(p_, bytes_, b, depth_adjacent_, depth_adjacent_ ? block.columns : depth,
                 depth_adjacent_ ? depth : block.columns, memory.scratch + windows_at_, leading_,
                 reinterpret_cast<PointRun*>(memory.scratch + runs_at_));
    call.b = memory.scratch + windows_at_;
    call.b_row = depth_adjacent_ ? 1 : leading_;
    call.b_column = depth_adjacent_ ? leading_ : 1;
  }

  // One row of a block from its sums.
  void store(const WindowMemory& memory, const Block& block, char* sums, PointRun* runs) const {
    const int64_t row = block.rows.begin;
    const void* const bias =
        has_bias_ ? offset(memory.bias, (block.group * p_.bias_group + row * p_.bias_row) * bytes_) : nullptr;
    const int64_t base = block.group * p_.c_group + row * p_.c_row + p_.c_offset;
    const int64_t count = find_runs(p_.column, block.columns, runs);
    for (int64_t i = 0; i < count; ++i) {
      int64_t at = base;
      for (size_t axis = 0; axis < kWindowAxes; ++axis) at += runs[i].at[axis] * p_.c_column[axis];
      sums_.store(sums, bias, offset(memory.c, at * bytes_), p_.c_column[kMaxSpatial], runs[i].count);
      sums += runs[i].count * sums_.bytes;
    }
  }

  const WindowProduct p_;
  const GemmKernels& kernels_;
  const GemmKernel kernel_;
  const int32_t bytes_;
  const Sums sums_;
  const bool has_bias_;
  const bool is_thin_;
  const bool depth_adjacent_;  // copied windows have their depth along the lines
  Extents b_depth_strides_{}, b_column_strides_{};
  int64_t depth_ = 0, columns_ = 0;
  Even even_a_, even_c_, even_b_depth_, even_b_column_;
  bool reads_b_ = false;   // in place
  bool packs_ = false;     // a, once
  bool copies_a_ = false;  // in every task
  Blocks row_blocks_, column_blocks_, depth_blocks_;
  int64_t parts_ = 1;  // of the depth
  int64_t leading_ = 0, factor_bytes_ = 0, partial_bytes_ = 0;
  int64_t runs_at_ = 0, windows_at_ = 0, factors_at_ = 0, sums_at_ = 0, kernel_at_ = 0;
};

// ---- Gaps -----------------------------------------------------------------------------------------------------------

/// Fills the result with zeros or the bias where a kernel that is shorter than its stride leaves gaps, before the tasks
/// of other parts write the elements between them.
class FillPart final : public WindowPart {
 public:
  FillPart(const compute_plugin_tensor& result, int64_t bias_stride, bool has_bias)
      : bytes_(common::dtype_size(result.dtype)), rank_(result.rank), bias_stride_(bias_stride), has_bias_(has_bias) {
    std::copy_n(result.shape, rank_, shape_.begin());
    std::copy_n(result.strides, rank_, strides_.begin());
    // The spatial axes that lie evenly are one.
    while (rank_ > 3 && strides_[last() - 1] == strides_[last()] * shape_[last()]) {
      shape_[last() - 1] *= shape_[last()];
      strides_[last() - 1] = strides_[last()];
      --rank_;
    }
  }

  int64_t packing_tasks() const override { return shape_[0] * shape_[1]; }
  int64_t tasks() const override { return 0; }
  void run(const WindowMemory&, int64_t) const override {}

  void pack(const WindowMemory& memory, int64_t plane) const override {
    const int64_t channel = plane % shape_[1];
    char value[kSplatBytes] = {};
    if (has_bias_)
      std::memcpy(value, offset(memory.bias, channel * bias_stride_ * bytes_), static_cast<size_t>(bytes_));
    fill(offset(memory.c, (plane / shape_[1] * strides_[0] + channel * strides_[1]) * bytes_), 2, value);
  }

 private:
  static constexpr int64_t kSplatBytes = 16;  // of the largest dtype

  size_t last() const { return static_cast<size_t>(rank_) - 1; }

  void fill(char* to, size_t axis, const char* value) const {
    const int64_t extent = shape_[axis], step = strides_[axis] * bytes_;
    if (axis < last()) {
      for (int64_t i = 0; i < extent; ++i) fill(to + i * step, axis + 1, value);
    } else if (!has_bias_ && step == bytes_) {
      std::memset(to, 0, static_cast<size_t>(extent * bytes_));
    } else {
      for (int64_t i = 0; i < extent; ++i) std::memcpy(to + i * step, value, static_cast<size_t>(bytes_));
    }
  }

  const int32_t bytes_;
  int32_t rank_;
  const int64_t bias_stride_;
  const bool has_bias_;
  std::array<int64_t, 2 + kMaxSpatial> shape_{}, strides_{};
};

// ---- Products of few rows -------------------------------------------------------------------------------------------

/// Products that differ only in where a and c begin, evenly, become one: they are its rows, and their rows its groups.
/// Those of a gradient of the input for neighbouring positions are such, and few channels would waste the tile.
std::vector<WindowProduct> join_products(const std::vector<WindowProduct>& products) {
  std::vector<WindowProduct> joined;
  for (size_t first = 0, end = 1; first < products.size(); first = end++) {
    const WindowProduct& p = products[first];
    const auto follows = [&](size_t i) {
      const auto n = static_cast<int64_t>(i - first);
      WindowProduct next = p;
      next.a_offset += n * (products[first + 1].a_offset - p.a_offset);
      next.c_offset += n * (products[first + 1].c_offset - p.c_offset);
      return products[i] == next;
    };
    while (end < products.size() && follows(end)) ++end;
    joined.push_back(p);
    const auto count = static_cast<int64_t>(end - first);
    if (p.groups != 1 || count <= p.rows) {
      end = first + 1;
      continue;
    }
    WindowProduct& all = joined.back();
    all.groups = p.rows;
    all.rows = count;
    all.a_group = p.a_row;
    all.c_group = p.c_row;
    all.b_group = 0;
    all.bias_group = p.bias_row;
    all.a_row = products[first + 1].a_offset - p.a_offset;
    all.c_row = products[first + 1].c_offset - p.c_offset;
    all.bias_row = 0;
  }
  return joined;
}

// ---- The plan -------------------------------------------------------------------------------------------------------

class ConvolutionPlan final : public Plan {
 public:
  explicit ConvolutionPlan(const Op& op) : operands_(common::window_operands(op)) {
    const int32_t threads = thread_count();
    if (op.output(0).dtype == COMPUTE_DTYPE_BFLOAT16) tiles_ = tile_kernel(isa().set);
    if (tiles_ != nullptr) {
      if (std::unique_ptr<WindowPart> part = make_onednn_part(op, threads, tiles_)) add(by_tiles_, std::move(part));
    }
    if (std::unique_ptr<WindowPart> part = make_onednn_part(op, threads, nullptr)) {
      add(parts_, std::move(part));
    } else {
      add_products(op, threads);
    }
    slots_at_ = workspace_bytes;
    slots_ = std::max<int64_t>(std::min<int64_t>(threads, tasks_), 1);
    workspace_bytes += slots_ * slot_bytes_;
  }

  void run(const compute_plugin_run& run) const override {
    constexpr uint16_t kNothing = std::numeric_limits<uint16_t>::max();
    std::atomic<bool> failed{false};
    std::atomic<uint16_t> leasts[] = {kNothing, kNothing};
    WindowMemory memory{};
    memory.failed = &failed;
    memory.leasts = leasts;
    const auto each_of = [&](const Parts& parts, auto count, auto perform) {
      each(run, parts, memory, count, perform);
    };
    bool done = false;
    if (!by_tiles_.all.empty()) {
      each_of(by_tiles_, &WindowPart::packing_tasks, &WindowPart::pack);
      done = tiles_->is_normal(leasts[0], leasts[1]);
      if (done) each_of(by_tiles_, &WindowPart::tasks, &WindowPart::run);
    }
    if (!done) {
      each_of(parts_, &WindowPart::packing_tasks, &WindowPart::pack);
      each_of(parts_, &WindowPart::tasks, &WindowPart::run);
      each_of(parts_, &WindowPart::joining_tasks, &WindowPart::join);
    }
    if (failed.load(std::memory_order_relaxed))
      throw Error(COMPUTE_ERROR_OUT_OF_MEMORY, "convolution: oneDNN has no memory");
  }

 private:
  struct Parts {
    std::vector<std::unique_ptr<WindowPart>> all;
    std::vector<int64_t> shared_at;
  };

  void add(Parts& parts, std::unique_ptr<WindowPart> part) {
    parts.shared_at.push_back(workspace_bytes);
    workspace_bytes += part->shared_bytes();
    slot_bytes_ = std::max(slot_bytes_, part->scratch_bytes());
    tasks_ += part->tasks();
    parts.all.push_back(std::move(part));
  }

  void add_products(const Op& op, int32_t threads) {
    const compute_dtype dtype = op.output(0).dtype;
    const bool has_bias = operands_.bias >= 0, depth_is_images = op.name() == "convolution_grad_weight";
    std::vector<WindowProduct> products = common::read_windows(op);
    const bool has_gaps = op.name() == "convolution_grad_input" && op.output(0).shape[0] > 0 &&
                          std::erase_if(products, [](const WindowProduct& p) { return p.depth_points() == 0; }) > 0;
    if (has_gaps) {
      add(parts_,
          std::make_unique<FillPart>(op.output(0), has_bias ? op.input(operands_.bias).strides[0] : 0, has_bias));
    }
    for (const WindowProduct& product : join_products(products)) {
      std::unique_ptr<WindowPart> part = make_shifted_part(product, dtype, has_bias, threads);
      if (!part && !depth_is_images) part = make_plane_part(product, dtype, has_bias, threads);
      if (!part) part = std::make_unique<BlockPart>(product, dtype, has_bias, depth_is_images, threads);
      add(parts_, std::move(part));
    }
  }

  // Tasks of all parts, which threads take one at a time: each has its own scratch.
  void each(const compute_plugin_run& run, const Parts& parts, const WindowMemory& common,
            int64_t (WindowPart::*count)() const,
            void (WindowPart::*perform)(const WindowMemory&, int64_t) const) const {
    int64_t total = 0;
    for (const auto& part : parts.all) total += ((*part).*count)();
    if (total == 0) return;
    std::atomic<int64_t> next{0};
    const auto body = [&](int64_t slot, int64_t) {
      char* const workspace = address(run.workspace);
      WindowMemory memory = common;
      memory.a = address(run.tensors[operands_.a]);
      memory.b = address(run.tensors[operands_.b]);
      memory.c = address(run.tensors[operands_.c]);
      if (operands_.bias >= 0) memory.bias = address(run.tensors[operands_.bias]);
      memory.scratch = workspace + slots_at_ + slot * slot_bytes_;
      int64_t first = 0;
      size_t part = 0;
      for (int64_t task = next.fetch_add(1); task < total; task = next.fetch_add(1)) {
        while (task - first >= ((*parts.all[part]).*count)()) first += ((*parts.all[part++]).*count)();
        memory.shared = workspace + parts.shared_at[part];
        ((*parts.all[part]).*perform)(memory, task - first);
      }
    };
    if (slots_ == 1 || total == 1) return body(0, 1);
    parallel_tasks(std::min(slots_, total), 1, body);
  }

  const common::WindowOperands operands_;
  const GemmKernel* tiles_ = nullptr;
  Parts by_tiles_, parts_;  // the first one for factors that tiles do not flush
  int64_t tasks_ = 0, slots_at_ = 0, slot_bytes_ = 0, slots_ = 1;
};

}  // namespace

std::optional<Refusal> refuse_convolution(const Op& op) { return common::refuse_windows(op, kMostProducts); }

std::unique_ptr<Plan> prepare_convolution(const Op& op) { return std::make_unique<ConvolutionPlan>(op); }

}  // namespace compute::cpu
