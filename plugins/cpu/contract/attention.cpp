// SPDX-License-Identifier: Apache-2.0
// attention. A task has a block of queries and iterates over the keys in blocks: scores, their running maxima and sums,
// and the sum of values weighted relative to the maxima. See T. Dao, "FlashAttention-2: faster attention with better
// parallelism and work partitioning" (2023).
#include "plugins/cpu/contract/attention.hpp"

#include "plugins/cpu/contract/attention_blocks.hpp"

namespace compute::cpu {
namespace {

template <class T>
class AttentionPlan final : public Plan, AttentionBlocks<T> {
  using Base = AttentionBlocks<T>;
  using Base::b_, Base::h_, Base::n_, Base::d_, Base::e_, Base::query_block_, Base::key_block_, Base::kInfinity;

 public:
  explicit AttentionPlan(const Op& op)
      : Base(op, 0, 3), y_(Base::operand(op, op.input_count())), logsumexp_(Base::operand(op, op.input_count() + 1)) {
    tasks_ = b_ * h_ * Base::query_blocks();
    Parts parts;
    scores_at_ = parts.add(Base::bytes(query_block_ * key_block_));
    sums_at_ = parts.add(Base::bytes(query_block_ * e_));
    rows_at_ = parts.add(Base::bytes(query_block_ * kRowValues));
    q_at_ = parts.add(Base::widened_bytes(query_block_ * d_));
    k_at_ = parts.add(Base::widened_bytes(key_block_ * d_));
    v_at_ = parts.add(Base::widened_bytes(key_block_ * e_));
    mask_at_ = parts.add(Base::bytes(key_block_));
    product_at_ = parts.add(Base::product_.scratch_bytes());
    slot_bytes_ = parts.bytes();
    workspace_bytes = Base::slots(tasks_) * slot_bytes_;
  }

  void run(const compute_plugin_run& given) const override {
    const AttentionRun run(given, tensor_count);
    // The last blocks first, whose queries see the most keys.
    Base::each(tasks_, run.workspace, slot_bytes_, [&](int64_t task, char* scratch) {
      const int64_t at = tasks_ - 1 - task, heads = b_ * h_;
      run_block(run, at % heads / h_, at % heads % h_, at / heads * query_block_, scratch);
    });
  }

 private:
  static constexpr int64_t kRowValues = 4;

  // Of each query of a block. Exponentials are of scores less `base`, the greatest score so far if that is finite.
  struct RowState {
    T *greatest, *total, *base, *of_block;
  };

  T* part(char* scratch, int64_t at) const { return reinterpret_cast<T*>(scratch + at); }

  void run_block(const AttentionRun& run, int64_t batch, int64_t head, int64_t first, char* scratch) const {
    const int64_t queries = std::min(query_block_, n_ - first), seen = Base::seen(first + queries);
    const int64_t shared = Base::shared_head(head);
    T *const scores = part(scratch, scores_at_), *const sums = part(scratch, sums_at_),
             *const rows = part(scratch, rows_at_);
    const RowState state{rows, rows + query_block_, rows + 2 * query_block_, rows + 3 * query_block_};
    std::fill_n(state.greatest, queries, -kInfinity);
    std::fill_n(state.total, queries, T{0});
    std::fill_n(state.base, queries, T{0});
    if (seen == 0) std::fill_n(sums, queries * e_, T{0});
    const auto q = Base::rows(run, Base::q_, batch, head, first, queries, d_, part(scratch, q_at_));
    for (int64_t key = 0; key < seen; key += key_block_) {
      const int64_t keys = std::min(key_block_, seen - key);
      const auto k = Base::rows(run, Base::k_, batch, shared, key, keys, d_, part(scratch, k_at_));
      const ScoreBlock at{batch, head, first, queries, key, keys};
      Base::scores(run, at, q, k, scores, scratch + mask_at_, scratch + product_at_);
      weigh(at, key == 0 ? nullptr : sums, scores, state);
      const auto v = Base::rows(run, Base::v_, batch, shared, key, keys, e_, part(scratch, v_at_));
      Base::product_(queries, e_, keys, T{1}, {scores, keys, 1}, v, key > 0, {sums, e_, 1}, scratch + product_at_);
    }
    for (int64_t i = 0; i < queries; ++i) {
      const T total = state.total[i];
      T* const row = sums + i * e_;
      Base::with_value(kId_mul, row, total == 0 ? T{0} : 1 / total, row, e_);
      Base::store_row(run, y_, y_.offset(batch, head, first + i), row, e_);
      reinterpret_cast<T*>(run.data[logsumexp_.index])[logsumexp_.offset(batch, head, first + i)] =
          total == 0 ? -kInfinity : state.base[i] + std::log(total);
    }
  }

  // Turns scores into weights, and scales earlier results to the same base. `sums` is null in the first block.
  void weigh(const ScoreBlock& at, T* sums, T* scores, const RowState& state) const {
    const int64_t queries = at.queries, keys = at.keys;
    Base::reduce(ReduceKind::max, scores, queries, keys, state.of_block);
    for (int64_t i = 0; i < queries; ++i) {
      const T before = state.greatest[i], found = state.of_block[i];
      const T greatest = found > before || found != found ? found : before;
      const T base = std::isfinite(greatest) ? greatest : T{0};
      const T kept = before == -kInfinity ? T{0} : base == state.base[i] ? T{1} : std::exp(state.base[i] - base);
      state.greatest[i] = greatest;
      state.base[i] = base;
      Base::with_value(kId_sub, scores + i * keys, base, scores + i * keys, keys);
      state.total[i] *= kept;
      if (sums != nullptr && kept != 1) Base::with_value(kId_mul, sums + i * e_, kept, sums + i * e_, e_);
    }
    Base::exponentials(at, scores);
    Base::reduce(ReduceKind::sum, scores, queries, keys, state.of_block);
    for (int64_t i = 0; i < queries; ++i) state.total[i] += state.of_block[i];
  }

  const AttentionOperand y_, logsumexp_;
  int64_t tasks_ = 0, slot_bytes_ = 0;
  int64_t scores_at_ = 0, sums_at_ = 0, rows_at_ = 0, q_at_ = 0, k_at_ = 0, v_at_ = 0, mask_at_ = 0, product_at_ = 0;
};

}  // namespace

std::optional<Refusal> refuse_attention(const Op&) { return std::nullopt; }

std::unique_ptr<Plan> prepare_attention(const Op& op) {
  if (op.input(0).dtype == COMPUTE_DTYPE_FLOAT64) return std::make_unique<AttentionPlan<double>>(op);
  return std::make_unique<AttentionPlan<float>>(op);
}

}  // namespace compute::cpu
