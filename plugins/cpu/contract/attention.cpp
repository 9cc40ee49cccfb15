// SPDX-License-Identifier: Apache-2.0
// attention. A task has a block of queries and iterates over the keys in blocks: scores, their running maxima and sums,
// and the sum of values weighted relative to the maxima. See T. Dao, "FlashAttention-2: faster attention with better
// parallelism and work partitioning" (2023).
#include "plugins/cpu/contract/attention.hpp"

#include "plugins/cpu/contract/attention_blocks.hpp"
#include "plugins/cpu/kernels/network_kernel.hpp"

namespace compute::cpu {
namespace {

// Pieces of all blocks together, at most, into which blocks are divided along the keys: few queries would leave threads
// idle. The division depends on the shape alone.
constexpr int64_t kPieces = 64;

template <class T>
class AttentionPlan final : public Plan, AttentionBlocks<T> {
  using Base = AttentionBlocks<T>;
  using Base::b_, Base::h_, Base::n_, Base::d_, Base::e_, Base::joined_, Base::query_block_, Base::key_block_,
      Base::tiles_, Base::kInfinity;

 public:
  explicit AttentionPlan(const Op& op)
      : Base(op, 0, 3, Base::kMostKeys, true),
        y_(Base::operand(op, op.input_count())),
        logsumexp_(Base::operand(op, op.input_count() + 1)) {
    tasks_ = b_ * h_ / joined_ * Base::query_blocks();
    const int64_t key_blocks = key_block_ > 0 ? Base::key_blocks() : 1;
    parts_ = std::clamp<int64_t>(kPieces / std::max<int64_t>(tasks_, 1), 1, key_blocks);
    Parts parts;
    const int64_t rows = Base::whole(query_block_), keys = Base::whole(key_block_);
    scores_at_ = parts.add(Base::bytes(rows * keys));
    if (parts_ == 1) result_at_ = parts.add(result_bytes());
    q_at_ = parts.add(joined_ > 1 ? Base::bytes(query_block_ * d_) : Base::widened_bytes(query_block_ * d_));
    mask_at_ = parts.add(Base::bytes(key_block_));
    if (tiles_ != nullptr) {
      weights_at_ = parts.add(query_block_ * keys * kHalfBytes);
      product_at_ = parts.add(std::max(tiles_->scratch_bytes(query_block_, key_block_, d_),
                                       tiles_->scratch_bytes(query_block_, e_, key_block_)));
    } else {
      k_at_ = parts.add(Base::widened_bytes(key_block_ * d_));
      v_at_ = parts.add(Base::widened_bytes(key_block_ * e_));
      product_at_ = parts.add(Base::product_.scratch_bytes());
    }
    slot_bytes_ = parts.bytes();
    Parts whole;
    whole.add(Base::slots(tasks_ * parts_) * slot_bytes_);
    if (parts_ > 1) {
      results_at_ = whole.add(tasks_ * parts_ * result_bytes());
      counters_at_ = whole.add(tasks_ * static_cast<int64_t>(sizeof(int32_t)));
    }
    workspace_bytes = whole.bytes();
  }

  void run(const compute_plugin_run& given) const override {
    const AttentionRun run(given, tensor_count);
    if (parts_ > 1) std::fill_n(counters(run), tasks_, 0);
    // The last blocks first, whose queries see the most keys.
    Base::each(tasks_ * parts_, run.workspace, slot_bytes_, [&](int64_t piece, char* scratch) {
      const int64_t task = tasks_ - 1 - piece / parts_, heads = b_ * (h_ / joined_);
      const int64_t batch = task % heads / (h_ / joined_), head = task % heads % (h_ / joined_) * joined_;
      const int64_t first = task / heads * query_block_;
      const ScoreBlock at{batch, head, first, std::min(query_block_, n_ * joined_ - first), 0, 0};
      run_block(run, at, task, piece % parts_, scratch);
    });
  }

 private:
  static constexpr int64_t kRowValues = 4, kHalfBytes = 2;

  // Of each query of a block. Exponentials are of scores less `base`, the greatest score so far if that is finite.
  struct Result {
    T *sums, *greatest, *total, *base, *of_block;
  };

  T* part(char* scratch, int64_t at) const { return reinterpret_cast<T*>(scratch + at); }
  int32_t* counters(const AttentionRun& run) const { return reinterpret_cast<int32_t*>(run.workspace + counters_at_); }
  int64_t sums_row() const { return Base::whole(e_); }
  int64_t sums_count() const { return Base::whole(query_block_) * sums_row(); }
  int64_t result_bytes() const { return (Base::bytes(sums_count() + query_block_ * kRowValues) + 63) / 64 * 64; }
  Result result_in(char* memory) const {
    T* const sums = reinterpret_cast<T*>(memory);
    T* const rows = sums + sums_count();
    return {sums, rows, rows + query_block_, rows + 2 * query_block_, rows + 3 * query_block_};
  }
  Result result_of(const AttentionRun& run, int64_t task, int64_t which) const {
    return result_in(run.workspace + results_at_ + (task * parts_ + which) * result_bytes());
  }

  // Part `which` of the keys: every parts_-th block.
  void run_block(const AttentionRun& run, ScoreBlock at, int64_t task, int64_t which, char* scratch) const {
    const int64_t queries = at.queries;
    const int64_t seen = Base::seen(joined_ > 1 ? n_ : at.first_query + queries), shared = Base::shared_head(at.head);
    T* const scores = part(scratch, scores_at_);
    const Result result = parts_ > 1 ? result_of(run, task, which) : result_in(scratch + result_at_);
    std::fill_n(result.greatest, queries, -kInfinity);
    std::fill_n(result.total, queries, T{0});
    std::fill_n(result.base, queries, T{0});
    const bool takes_halves = Base::multiplies_halves_ || tiles_ != nullptr;
    const auto q = takes_halves ? BlockView<const T>{} : load_queries(run, at, part(scratch, q_at_));
    const auto halves = takes_halves ? load_halves(run, at, scratch + q_at_) : BlockView<const uint16_t>{};
    bool is_first = true;
    for (int64_t key = which * key_block_; key < seen; key += parts_ * key_block_) {
      at.first_key = key;
      at.keys = std::min(key_block_, seen - key);
      if (Base::is_hidden(run, at)) continue;
      if (Base::multiplies_halves_) {
        Base::scores_of_halves(run, at, halves.data, shared, scores, scratch + mask_at_);
        weigh(at, is_first, scores, result);
        Base::sum_of_halves(run, at, scores, shared, result.sums, !is_first);
        is_first = false;
        continue;
      }
      if constexpr (std::is_same_v<T, float>) {
        if (tiles_ != nullptr) {
          auto* const weights = reinterpret_cast<uint16_t*>(scratch + weights_at_);
          Base::scores_of_tiles(run, at, halves.data, halves.row, halves.column, shared, scores, scratch + mask_at_,
                                scratch + product_at_);
          weigh(at, is_first, scores, result, weights);
          Base::sum_of_tiles(run, at, weights, shared, result.sums, !is_first, scratch + product_at_);
          is_first = false;
          continue;
        }
      }
      const auto k = Base::rows(run, Base::k_, at.batch, shared, key, at.keys, d_, part(scratch, k_at_));
      Base::scores(run, at, q, k, scores, scratch + mask_at_, scratch + product_at_);
      weigh(at, is_first, scores, result);
      const auto v = Base::rows(run, Base::v_, at.batch, shared, key, at.keys, e_, part(scratch, v_at_));
      Base::product_(queries, e_, at.keys, T{1}, {scores, at.keys, 1}, v, !is_first, {result.sums, e_, 1},
                     scratch + product_at_);
      is_first = false;
    }
    if (is_first) std::fill_n(result.sums, queries * sums_row(), T{0});
    if (parts_ == 1) return store(run, at, result);
    // Whoever ends last has the results of the others.
    const std::atomic_ref<int32_t> ended(counters(run)[task]);
    if (ended.fetch_add(1, std::memory_order_acq_rel) == parts_ - 1) store(run, at, combined(run, task, queries));
  }

  BlockView<const T> load_queries(const AttentionRun& run, const ScoreBlock& at, T* room) const {
    if (joined_ == 1) return Base::rows(run, Base::q_, at.batch, at.head, at.first_query, at.queries, d_, room);
    for (int64_t i = 0; i < at.queries; ++i) {
      const auto [head, query] = Base::row_of(at, i);
      Base::load_row(run, Base::q_, Base::q_.offset(at.batch, head, query), room + i * d_, d_);
    }
    return {room, d_, 1};
  }

  // In place, or copied, of joined heads and for vectors.
  BlockView<const uint16_t> load_halves(const AttentionRun& run, const ScoreBlock& at, char* room) const {
    const int64_t stride = Base::q_.strides[3];
    if (joined_ == 1 && !Base::multiplies_halves_)
      return {Base::halves(run, Base::q_, at.batch, at.head, at.first_query), Base::q_.strides[2], stride};
    auto* to = reinterpret_cast<uint16_t*>(room);
    const BlockView<const uint16_t> copy{to, d_, 1};
    for (int64_t i = 0; i < at.queries; ++i) {
      const auto [head, query] = Base::row_of(at, i);
      const uint16_t* const from = Base::halves(run, Base::q_, at.batch, head, query);
      for (int64_t j = 0; j < d_; ++j) *to++ = from[j * stride];
    }
    return copy;
  }

  // The results of all parts, in the memory of the first.
  Result combined(const AttentionRun& run, int64_t task, int64_t queries) const {
    const Result result = result_of(run, task, 0);
    for (int64_t i = 0; i < queries; ++i) {
      T greatest = -kInfinity;
      for (int64_t which = 0; which < parts_; ++which)
        greatest = greater(result_of(run, task, which).greatest[i], greatest);
      const T base = std::isfinite(greatest) ? greatest : T{0};
      T* const sums = result.sums + i * sums_row();
      T total = 0;
      for (int64_t which = 0; which < parts_; ++which) {
        const Result other = result_of(run, task, which);
        const T kept = kept_of(other, i, base);
        const T* const src = other.sums + i * sums_row();
        total += other.total[i] * kept;
        for (int64_t j = 0; j < e_; ++j) sums[j] = (which == 0 ? T{0} : sums[j]) + src[j] * kept;
      }
      result.total[i] = total;
      result.base[i] = base;
    }
    return result;
  }

  void store(const AttentionRun& run, const ScoreBlock& at, const Result& result) const {
    for (int64_t i = 0; i < at.queries; ++i) {
      const auto [head, query] = Base::row_of(at, i);
      const T total = result.total[i];
      T* const row = result.sums + i * sums_row();
      Base::with_value(kId_mul, row, total == 0 ? T{0} : 1 / total, row, e_);
      Base::store_row(run, y_, y_.offset(at.batch, head, query), row, e_);
      reinterpret_cast<T*>(run.data[logsumexp_.index])[logsumexp_.offset(at.batch, head, query)] =
          total == 0 ? -kInfinity : result.base[i] + std::log(total);
    }
  }

  // The greater, or NaN.
  static T greater(T x, T y) { return x > y || x != x ? x : y; }
  // By how much exponentials relative to another base are less.
  static T kept_of(const Result& result, int64_t i, T base) {
    return result.greatest[i] == -kInfinity ? T{0} : base == result.base[i] ? T{1} : std::exp(result.base[i] - base);
  }

  // Turns scores into weights, in place or as halves, and scales earlier results to the same base.
  void weigh(const ScoreBlock& at, bool is_first, T* scores, const Result& result, uint16_t* halves = nullptr) const {
    const int64_t queries = at.queries, keys = at.keys, step = Base::scores_row(at);
    Base::reduce(ReduceKind::max, scores, step, queries, keys, result.of_block);
    for (int64_t i = 0; i < queries; ++i) {
      const T greatest = greater(result.of_block[i], result.greatest[i]);
      const T base = std::isfinite(greatest) ? greatest : T{0}, kept = kept_of(result, i, base);
      result.greatest[i] = greatest;
      result.base[i] = base;
      result.total[i] *= kept;
      T* const sums = result.sums + i * sums_row();
      if (!is_first && kept != 1) Base::with_value(kId_mul, sums, kept, sums, e_);
      T* const row = scores + i * step;
      if constexpr (std::is_same_v<T, float>) {
        // Results below the least normal number take processors long: not for keys that causal leaves out.
        const int64_t seen = Base::visible(at, i);
        if (halves != nullptr) {
          uint16_t* const weights = halves + i * step;
          result.total[i] += isa().network->bfloat16_weights(row, base, seen, weights);
          std::fill(weights + seen, weights + keys, uint16_t{0});
        } else {
          result.total[i] += isa().network->weights(row, base, seen);
          std::fill(row + seen, row + keys, T{0});
        }
      } else {
        Base::with_value(kId_sub, row, base, row, keys);
      }
    }
    if constexpr (!std::is_same_v<T, float>) {
      Base::exponentials(at, scores);
      Base::reduce(ReduceKind::sum, scores, keys, queries, keys, result.of_block);
      for (int64_t i = 0; i < queries; ++i) result.total[i] += result.of_block[i];
    }
  }

  const AttentionOperand y_, logsumexp_;
  int64_t tasks_ = 0, parts_ = 1, slot_bytes_ = 0, results_at_ = 0, counters_at_ = 0;
  int64_t scores_at_ = 0, result_at_ = 0, q_at_ = 0, k_at_ = 0, v_at_ = 0, mask_at_ = 0, product_at_ = 0,
          weights_at_ = 0;
};

}  // namespace

std::optional<Refusal> refuse_attention(const Op&) { return std::nullopt; }

std::unique_ptr<Plan> prepare_attention(const Op& op) {
  if (op.input(0).dtype == COMPUTE_DTYPE_FLOAT64) return std::make_unique<AttentionPlan<double>>(op);
  return std::make_unique<AttentionPlan<float>>(op);
}

}  // namespace compute::cpu
