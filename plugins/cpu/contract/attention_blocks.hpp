// SPDX-License-Identifier: Apache-2.0
// What attention and its gradient share: blocks of queries and keys, their scores, and the products of blocks. T is the
// type that is computed in: float for float16 and bfloat16.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "plugins/cpu/base/plan.hpp"
#include "plugins/cpu/isa/isa.hpp"
#include "plugins/cpu/kernels/block_kernels.hpp"
#include "plugins/cpu/kernels/gemm_kernel.hpp"
#include "plugins/cpu/kernels/reduce_kernel.hpp"
#include "plugins/cpu/threads/threads.hpp"

namespace compute::cpu {

/// A matrix in memory. Strides are in elements.
template <class T>
struct BlockView {
  T* data;
  int64_t row, column;

  BlockView transposed() const { return {data, column, row}; }
};

/// Products of small matrices on the calling thread.
template <class T>
class BlockProduct {
 public:
  static constexpr compute_dtype kDtype = std::is_same_v<T, float> ? COMPUTE_DTYPE_FLOAT32 : COMPUTE_DTYPE_FLOAT64;

  /// No side of a product is longer than `longest`.
  explicit BlockProduct(int64_t longest)
      : kernel_(isa().gemm->by_dtype[kDtype]), scratch_bytes_(kernel_.scratch_bytes(longest, longest, longest)) {}

  int64_t scratch_bytes() const { return scratch_bytes_; }

  /// c [m, n] = alpha · a [m, k] · b [k, n], plus c if `accumulate`. With few rows b is read in place.
  void operator()(int64_t m, int64_t n, int64_t k, T alpha, BlockView<const T> a, BlockView<const T> b, bool accumulate,
                  BlockView<T> c, void* scratch) const {
    const bool is_adjacent = a.column == 1 && b.row == 1;
    if (m == 1 && a.column == 1 && (b.row == 1 || b.column == 1)) {
      return kernel_.run_vector(
          {n, 1, k, b.data, b.column, b.row, a.data, 1, 1, c.data, c.column, c.row, &alpha, accumulate, scratch});
    }
    const bool is_thin = m <= kThinRows && (b.column == 1 || (is_adjacent && m <= kThinAdjacentRows));
    (m > 1 && is_thin ? kernel_.run_thin : kernel_.run)({m, n, k, a.data, a.row, a.column, b.data, b.row, b.column,
                                                         c.data, c.row, c.column, &alpha, accumulate, scratch});
  }

 private:
  const GemmKernel kernel_;
  int64_t scratch_bytes_;
};

/// Offsets of parts in a memory that is laid out step by step.
class Parts {
 public:
  int64_t add(int64_t size_bytes) {
    const int64_t at = bytes_;
    bytes_ += (size_bytes + 63) / 64 * 64;
    return at;
  }
  int64_t bytes() const { return bytes_; }

 private:
  int64_t bytes_ = 0;
};

/// A tensor with axes batch, head, position, and for most feature.
struct AttentionOperand {
  int32_t index = -1;  // among the op's tensors
  compute_dtype dtype = COMPUTE_DTYPE_NONE;
  int64_t strides[4] = {};

  int64_t offset(int64_t batch, int64_t head, int64_t row) const {
    return batch * strides[0] + head * strides[1] + row * strides[2];
  }
};

/// Of one run: the addresses of the tensors.
struct AttentionRun {
  explicit AttentionRun(const compute_plugin_run& given, int32_t count) : workspace(address(given.workspace)) {
    for (int32_t i = 0; i < count; ++i) data[i] = address(given.tensors[i]);
  }

  char* data[10];
  char* workspace;
};

/// A block of scores: queries [first_query, + queries) by keys [first_key, + keys). With joined heads, all queries of
/// the heads from `head` on.
struct ScoreBlock {
  int64_t batch, head, first_query, queries, first_key, keys;
};

template <class T>
class AttentionBlocks {
 public:
  static constexpr T kInfinity = std::numeric_limits<T>::infinity();
  static constexpr compute_dtype kDtype = BlockProduct<T>::kDtype;
  static constexpr int64_t kMostKeys = 256;
  static constexpr int64_t kTileSide = 16;
  static constexpr int64_t kTileFeatures = 32;  // with fewer, half of the tiles would be empty

  /// q, k and v are the inputs from `first` on. With causal, blocks have at most `causal_keys`. If `joins_heads`, few
  /// queries of the heads that share keys are one block.
  AttentionBlocks(const Op& op, int32_t first, int32_t mask, int64_t causal_keys = kMostKeys, bool joins_heads = false)
      : q_(operand(op, first)),
        k_(operand(op, first + 1)),
        v_(operand(op, first + 2)),
        b_(op.input(first).shape[0]),
        h_(op.input(first).shape[1]),
        h_kv_(op.input(first + 1).shape[1]),
        n_(op.input(first).shape[2]),
        m_(op.input(first + 1).shape[2]),
        d_(op.input(first).shape[3]),
        e_(op.input(first + 2).shape[3]),
        is_causal_(op.integer("causal", 0) != 0),
        is_half_(q_.dtype == COMPUTE_DTYPE_FLOAT16 || q_.dtype == COMPUTE_DTYPE_BFLOAT16),
        joined_(joins_heads && h_kv_ > 0 && n_ * (h_ / h_kv_) <= kQueries ? h_ / h_kv_ : 1),
        tiles_(joins_heads && q_.dtype == COMPUTE_DTYPE_BFLOAT16 && n_ * joined_ > kThinAdjacentRows && m_ > 0 &&
                       std::min(d_, e_) >= kTileFeatures
                   ? tile_kernel(isa().set)
                   : nullptr),
        query_block_(std::min(n_ * joined_, tiles_ != nullptr ? kTileQueries : kQueries)),
        key_block_(std::min(m_, tiles_ != nullptr ? kMostKeys : most_keys(is_causal_ ? causal_keys : kMostKeys))),
        product_(std::max({query_block_, key_block_, d_, e_})),
        blocks_(*isa().blocks) {
    const double given = op.real("scale", 0);
    scale_ = static_cast<T>(given != 0 ? given : 1 / std::sqrt(static_cast<double>(d_)));
    half_ = q_.dtype == COMPUTE_DTYPE_FLOAT16 ? isa().gemm->float16 : isa().gemm->bfloat16;
    multiplies_halves_ = is_half_ && query_block_ <= kThinAdjacentRows && k_.strides[3] == 1 && v_.strides[3] == 1 &&
                         b_ * h_kv_ * m_ * (d_ + e_) <= kFarNumbers;
    if (mask < op.input_count() && op.input(mask).rank >= 0) {
      const compute_plugin_tensor& tensor = op.input(mask);
      mask_.index = mask;
      mask_.dtype = tensor.dtype;
      for (int32_t i = 0; i < tensor.rank; ++i) {
        const int32_t axis = tensor.rank - 1 - i;
        mask_.strides[3 - i] = tensor.shape[axis] == 1 ? 0 : tensor.strides[axis];
      }
    }
  }

  static AttentionOperand operand(const Op& op, int32_t index) {
    AttentionOperand result{index, op.tensor(index).dtype, {}};
    std::copy_n(op.tensor(index).strides, op.tensor(index).rank, result.strides);
    return result;
  }

  int64_t shift() const { return m_ - n_; }
  int64_t query_blocks() const { return joined_ > 1 ? 1 : (n_ + query_block_ - 1) / query_block_; }
  int64_t key_blocks() const { return (m_ + key_block_ - 1) / key_block_; }
  /// How many keys the queries before `end` see, from the first on.
  int64_t seen(int64_t end) const { return is_causal_ ? std::clamp<int64_t>(end + shift(), 0, m_) : m_; }
  int64_t shared_head(int64_t head) const { return head / (h_ / h_kv_); }
  /// The head and the query of row `i` of a block.
  std::pair<int64_t, int64_t> row_of(const ScoreBlock& at, int64_t i) const {
    if (joined_ == 1) return {at.head, at.first_query + i};
    return {at.head + i / n_, i % n_};
  }
  int64_t bytes(int64_t elements) const { return elements * static_cast<int64_t>(sizeof(T)); }
  /// Of the room that rows() wants for `elements`.
  int64_t widened_bytes(int64_t elements) const { return is_half_ ? bytes(elements) : 0; }

  /// Rows of a tensor: in place, or converted to `room`.
  BlockView<const T> rows(const AttentionRun& run, const AttentionOperand& x, int64_t batch, int64_t head,
                          int64_t first, int64_t count, int64_t columns, T* room) const {
    const int64_t offset = x.offset(batch, head, first);
    if (!is_half_) return {reinterpret_cast<const T*>(run.data[x.index]) + offset, x.strides[2], x.strides[3]};
    if constexpr (std::is_same_v<T, float>) {
      const auto* src = reinterpret_cast<const uint16_t*>(run.data[x.index]) + offset;
      for (int64_t i = 0; i < count; ++i)
        half_.widen(src + i * x.strides[2], x.strides[3], room + i * columns, columns);
    }
    return {room, columns, 1};
  }

  /// A row of a tensor as contiguous values.
  void load_row(const AttentionRun& run, const AttentionOperand& x, int64_t offset, T* dst, int64_t columns) const {
    if (is_half_) {
      if constexpr (std::is_same_v<T, float>)
        half_.widen(reinterpret_cast<const uint16_t*>(run.data[x.index]) + offset, x.strides[3], dst, columns);
      return;
    }
    const T* const src = reinterpret_cast<const T*>(run.data[x.index]) + offset;
    for (int64_t i = 0; i < columns; ++i) dst[i] = src[i * x.strides[3]];
  }

  /// Stores contiguous values as a row of a tensor.
  void store_row(const AttentionRun& run, const AttentionOperand& x, int64_t offset, const T* src,
                 int64_t columns) const {
    if (is_half_) {
      if constexpr (std::is_same_v<T, float>)
        half_.narrow(src, reinterpret_cast<uint16_t*>(run.data[x.index]) + offset, x.strides[3], columns);
      return;
    }
    T* const dst = reinterpret_cast<T*>(run.data[x.index]) + offset;
    if (x.strides[3] == 1) {
      std::copy_n(src, columns, dst);
    } else {
      for (int64_t i = 0; i < columns; ++i) dst[i * x.strides[3]] = src[i];
    }
  }

  /// The scaled and masked scores of a block, row by row. `room`: of one row of the mask.
  void scores(const AttentionRun& run, const ScoreBlock& at, BlockView<const T> q, BlockView<const T> k, T* s,
              char* room, void* scratch) const {
    product_(at.queries, at.keys, d_, scale_, q, k.transposed(), false, {s, at.keys, 1}, scratch);
    mask_scores(run, at, s, room);
  }
  /// The same with few queries of halves, row by row, and keys that are read where they are.
  void scores_of_halves(const AttentionRun& run, const ScoreBlock& at, const uint16_t* q, int64_t shared, T* s,
                        char* room) const {
    const GemmKernel& kernel = isa().gemm->by_dtype[q_.dtype];
    const uint16_t* const k = halves(run, k_, at.batch, shared, at.first_key);
    if (at.queries == 1) {
      kernel.run_vector({at.keys, 1, d_, k, k_.strides[2], 1, q, 1, 1, s, 1, 1, &scale_, false, nullptr});
    } else {
      kernel.run_thin({at.queries, at.keys, d_, q, d_, 1, k, 1, k_.strides[2], s, at.keys, 1, &scale_, false, nullptr});
    }
    mask_scores(run, at, s, room);
  }
  /// sums = weights times values, plus sums if `accumulate`, with values of halves that are read where they are.
  void sum_of_halves(const AttentionRun& run, const ScoreBlock& at, const T* weights, int64_t shared, T* sums,
                     bool accumulate) const {
    static constexpr T kOne = 1;
    half_.run_thin({at.queries, e_, at.keys, weights, at.keys, 1, halves(run, v_, at.batch, shared, at.first_key),
                    v_.strides[2], 1, sums, e_, 1, &kOne, accumulate, nullptr});
  }
  const uint16_t* halves(const AttentionRun& run, const AttentionOperand& x, int64_t batch, int64_t head,
                         int64_t row) const {
    return reinterpret_cast<const uint16_t*>(run.data[x.index]) + x.offset(batch, head, row);
  }

  /// The same by tiles.
  void scores_of_tiles(const AttentionRun& run, const ScoreBlock& at, const uint16_t* q, int64_t q_row,
                       int64_t q_column, int64_t shared, T* s, char* room, void* scratch) const {
    multiply_tiles({at.queries, at.keys, d_, q, q_row, q_column, halves(run, k_, at.batch, shared, at.first_key),
                    k_.strides[3], k_.strides[2], s, scores_row(at), 1, nullptr, false, scratch});
    with_value(kId_mul, s, scale_, s, at.queries * scores_row(at));
    mask_scores(run, at, s, room);
  }
  void sum_of_tiles(const AttentionRun& run, const ScoreBlock& at, const uint16_t* weights, int64_t shared, T* sums,
                    bool accumulate, void* scratch) const {
    multiply_tiles({at.queries, e_, at.keys, weights, scores_row(at), 1,
                    halves(run, v_, at.batch, shared, at.first_key), v_.strides[2], v_.strides[3], sums, whole(e_), 1,
                    nullptr, accumulate, scratch});
  }
  void multiply_tiles(const GemmCall& call) const {
    tiles_->pack(call);
    tiles_->run(call);
  }
  /// Rows or columns of results, which are whole tiles.
  int64_t whole(int64_t count) const {
    return tiles_ != nullptr ? (count + kTileSide - 1) / kTileSide * kTileSide : count;
  }
  int64_t scores_row(const ScoreBlock& at) const { return whole(at.keys); }

  /// Products as the scores of a block, masked.
  void mask_scores(const AttentionRun& run, const ScoreBlock& at, T* s, char* room) const {
    if (mask_.index < 0 && is_whole(at)) return;
    for (int64_t i = 0; i < at.queries; ++i, s += scores_row(at)) {
      if (mask_.index >= 0) mask_row(run, at, i, s, room);
      std::fill(s + visible(at, i), s + at.keys, -kInfinity);
    }
  }

  /// Whether a mask of bool hides every key of a block from every row. Reads little of masks that do not.
  bool is_hidden(const AttentionRun& run, const ScoreBlock& at) const {
    if (mask_.index < 0 || mask_.dtype != COMPUTE_DTYPE_BOOL) return false;
    const int64_t stride = mask_.strides[3], bytes = stride == 0 ? 1 : at.keys;
    int64_t before = -1;
    for (int64_t i = 0; i < at.queries; ++i) {
      const auto [head, query] = row_of(at, i);
      const int64_t offset = mask_.offset(at.batch, head, query) + at.first_key * stride;
      if (i > 0 && offset == before) continue;
      before = offset;
      const char* const row = run.data[mask_.index] + offset;
      for (int64_t j = 0; j < bytes; ++j)
        if (row[j * stride] != 0) return false;
    }
    return true;
  }

  /// Whether causal leaves out nothing, and how many keys of a block it leaves to its query `i`.
  bool is_whole(const ScoreBlock& at) const {
    return !is_causal_ || at.first_key + at.keys - 1 <= at.first_query + shift();
  }
  int64_t visible(const ScoreBlock& at, int64_t i) const {
    if (!is_causal_) return at.keys;
    return std::clamp<int64_t>(row_of(at, i).second + shift() - at.first_key + 1, 0, at.keys);
  }

  /// The exponentials of a block's scores. Those of keys that causal leaves out are not computed: results below the
  /// least normal number take processors long.
  void exponentials(const ScoreBlock& at, T* s) const {
    if (is_whole(at)) return exponentials(s, at.queries * at.keys);
    for (int64_t i = 0; i < at.queries; ++i) {
      exponentials(s + i * at.keys, visible(at, i));
      std::fill(s + i * at.keys + visible(at, i), s + (i + 1) * at.keys, T{0});
    }
  }

  // ---- Functions of contiguous elements -----------------------------------------------------------------------------

  /// A scalar operand of a block function.
  struct Splat {
    explicit Splat(T value) { std::fill_n(values, kSplatBytes / sizeof(T), value); }
    alignas(64) T values[kSplatBytes / sizeof(T)];
  };

  void with_value(int32_t intrinsic, const T* x, T value, T* out, int64_t count) const {
    const Splat splat(value);
    const void* operands[] = {x, splat.values};
    static constexpr int64_t kSteps[] = {1, 0};
    blocks_.calls[intrinsic][kDtype](operands, kSteps, out, count);
  }
  void binary(int32_t intrinsic, const T* x, const T* y, T* out, int64_t count) const {
    const void* operands[] = {x, y};
    static constexpr int64_t kSteps[] = {1, 1};
    blocks_.calls[intrinsic][kDtype](operands, kSteps, out, count);
  }
  /// The combination of each row of rows that are `step` elements apart.
  void reduce(ReduceKind kind, const T* x, int64_t step, int64_t rows, int64_t columns, T* out) const {
    isa().reduce->plain[static_cast<int>(kind)][kDtype].rows(x, bytes(step), rows, columns, out);
  }

  // ---- Tasks --------------------------------------------------------------------------------------------------------

  static int64_t slots(int64_t tasks) { return std::max<int64_t>(std::min<int64_t>(thread_count(), tasks), 1); }

  /// Calls f(task, scratch) for all tasks, which threads take one at a time.
  template <class F>
  void each(int64_t tasks, char* scratch, int64_t slot_bytes, const F& f) const {
    std::atomic<int64_t> next{0};
    const auto body = [&](int64_t slot, int64_t) {
      for (int64_t task = next.fetch_add(1); task < tasks; task = next.fetch_add(1))
        f(task, scratch + slot * slot_bytes);
    };
    if (slots(tasks) == 1) return body(0, 1);
    parallel_tasks(slots(tasks), 1, body);
  }

  const AttentionOperand q_, k_, v_;
  AttentionOperand mask_;
  const int64_t b_, h_, h_kv_, n_, m_, d_, e_;
  const bool is_causal_, is_half_;
  const int64_t joined_;           // heads of a block
  const GemmKernel* const tiles_;  // for both products, of bfloat16, or NULL
  const int64_t query_block_, key_block_;
  const BlockProduct<T> product_;
  T scale_;
  bool multiplies_halves_ = false;  // a few queries, with rows of k and v that are adjacent elements

 private:
  void exponentials(T* x, int64_t count) const {
    if (count == 0) return;
    const void* operands[] = {x};
    static constexpr int64_t kSteps[] = {1};
    blocks_.calls[kId_exp][kDtype](operands, kSteps, x, count);
  }

  // Of keys and values that come from memory. Conversions request more rows at a time than products.
  static constexpr int64_t kFarNumbers = 32 << 20;
  static constexpr int64_t kQueries = 64, kTileQueries = 128;
  static constexpr int64_t kLeastKeys = 48;
  static constexpr int64_t kWork = 1000000;  // multiplications per product with which libraries run best

  // Whole vectors of keys, but not so many that causal masking wastes much work.
  int64_t most_keys(int64_t limit) const {
    const int64_t keys = kWork / (query_block_ * std::max(d_, e_)), unit = keys >= 64 ? 64 : 16;
    return std::clamp(keys / unit * unit, kLeastKeys, limit);
  }

  void mask_row(const AttentionRun& run, const ScoreBlock& at, int64_t i, T* s, char* room) const {
    const int64_t stride = mask_.strides[3];
    const auto [head, query] = row_of(at, i);
    const int64_t offset = mask_.offset(at.batch, head, query) + at.first_key * stride;
    const char* const data = run.data[mask_.index];
    if (mask_.dtype == COMPUTE_DTYPE_BOOL) {
      const char* seen = data + offset;
      if (stride != 1) {
        blocks_.gather[0](seen, stride, room, at.keys);
        seen = room;
      }
      const Splat unseen(-kInfinity);
      const void* operands[] = {seen, s, unseen.values};
      static constexpr int64_t kSteps[] = {1, 1, 0};
      blocks_.calls[kId_where][kDtype](operands, kSteps, s, at.keys);
      return;
    }
    if (is_half_) {
      if constexpr (std::is_same_v<T, float>)
        half_.widen(reinterpret_cast<const uint16_t*>(data) + offset, stride, reinterpret_cast<float*>(room), at.keys);
    } else {
      const auto* src = reinterpret_cast<const T*>(data) + offset;
      if (stride == 1) return binary(kId_add, s, src, s, at.keys);
      blocks_.gather[sizeof(T) == 4 ? 2 : 3](src, bytes(stride), room, at.keys);
    }
    binary(kId_add, s, reinterpret_cast<const T*>(room), s, at.keys);
  }

  const BlockKernels& blocks_;
  HalfRows half_;
};

}  // namespace compute::cpu
