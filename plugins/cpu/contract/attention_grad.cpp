// SPDX-License-Identifier: Apache-2.0
// attention_grad. The weights are made again from the scores and their logsumexp, block by block:
//
//   delta = sum(dy * y) of each query, once
//   weights = exp(scores - logsumexp); dscores = weights * (dy v^T - delta)
//   dv += weights^T dy; dk += dscores^T q; dq += dscores k
//
// Where there are enough heads for the threads, a task has all blocks of a head of keys; else a task has a block of
// keys, for dk and dv, and after that a block of queries, for dq, where scores are made a second time. Either way a
// result gets its terms in the same order and from the same products.
#include "plugins/cpu/contract/attention.hpp"
#include "plugins/cpu/contract/attention_blocks.hpp"

namespace compute::cpu {
namespace {

template <class T>
class AttentionGradPlan final : public Plan, AttentionBlocks<T> {
  using Base = AttentionBlocks<T>;
  using Base::b_, Base::h_, Base::h_kv_, Base::n_, Base::m_, Base::d_, Base::e_, Base::query_block_, Base::key_block_,
      Base::kInfinity, Base::bytes;

 public:
  explicit AttentionGradPlan(const Op& op)
      : Base(op, 1, 6, kCausalKeys),
        dy_(Base::operand(op, 0)),
        y_(Base::operand(op, 4)),
        logsumexp_(Base::operand(op, 5)),
        dq_(Base::operand(op, op.input_count())),
        dk_(Base::operand(op, op.input_count() + 1)),
        dv_(Base::operand(op, op.input_count() + 2)),
        group_(h_ / h_kv_) {
    const int64_t threads = thread_count(), heads = b_ * h_kv_;
    by_heads_ = heads >= 2 * threads || heads % threads == 0;
    tasks_ = by_heads_ ? heads : std::max(heads * Base::key_blocks(), b_ * h_ * Base::query_blocks());
    Parts parts;
    weights_at_ = parts.add(bytes(query_block_ * key_block_));
    dscores_at_ = parts.add(bytes(query_block_ * key_block_));
    dk_at_ = parts.add(bytes(key_block_ * d_));
    dv_at_ = parts.add(bytes(key_block_ * e_));
    dq_at_ = parts.add(bytes(by_heads_ ? group_ * n_ * d_ : query_block_ * d_));
    q_at_ = parts.add(Base::widened_bytes(query_block_ * d_));
    dy_at_ = parts.add(Base::widened_bytes(query_block_ * e_));
    k_at_ = parts.add(Base::widened_bytes(key_block_ * d_));
    v_at_ = parts.add(Base::widened_bytes(key_block_ * e_));
    row_at_ = parts.add(bytes(std::max({key_block_, 2 * e_})));
    product_at_ = parts.add(Base::product_.scratch_bytes());
    slot_bytes_ = parts.bytes();
    Parts whole;
    delta_at_ = whole.add(bytes(b_ * h_ * n_));
    slots_at_ = whole.bytes();
    workspace_bytes = slots_at_ + std::max(Base::slots(tasks_), Base::slots(b_ * h_)) * slot_bytes_;
  }

  void run(const compute_plugin_run& given) const override {
    const AttentionRun run(given, tensor_count);
    const auto each = [&](int64_t tasks, const auto& f) {
      Base::each(tasks, run.workspace + slots_at_, slot_bytes_, f);
    };
    each(b_ * h_, [&](int64_t task, char* scratch) { sum_products(run, task / h_, task % h_, scratch); });
    const int64_t heads = b_ * h_kv_;
    if (by_heads_) {
      each(heads, [&](int64_t task, char* scratch) { run_head(run, task / h_kv_, task % h_kv_, scratch); });
      return;
    }
    each(heads * Base::key_blocks(), [&](int64_t task, char* scratch) {
      const int64_t head = task % heads;
      run_keys(run, head / h_kv_, head % h_kv_, task / heads * key_block_, nullptr, scratch);
    });
    const int64_t blocks = b_ * h_ * Base::query_blocks();
    each(blocks, [&](int64_t task, char* scratch) {
      const int64_t at = blocks - 1 - task, head = at % (b_ * h_);
      run_queries(run, head / h_, head % h_, at / (b_ * h_) * query_block_, scratch);
    });
  }

 private:
  static constexpr int64_t kCausalKeys = 128;

  T* part(char* scratch, int64_t at) const { return reinterpret_cast<T*>(scratch + at); }
  T* deltas(const AttentionRun& run, int64_t batch, int64_t head) const {
    return part(run.workspace, delta_at_) + (batch * h_ + head) * n_;
  }
  // Of a tensor's rows: a block's operands.
  BlockView<const T> load(const AttentionRun& run, const AttentionOperand& x, const ScoreBlock& at, bool is_key,
                          int64_t columns, T* room) const {
    return is_key ? Base::rows(run, x, at.batch, Base::shared_head(at.head), at.first_key, at.keys, columns, room)
                  : Base::rows(run, x, at.batch, at.head, at.first_query, at.queries, columns, room);
  }

  // delta of all queries of a head.
  void sum_products(const AttentionRun& run, int64_t batch, int64_t head, char* scratch) const {
    T *const left = part(scratch, row_at_), *const right = left + e_, *const delta = deltas(run, batch, head);
    const auto gathered = [&](const AttentionOperand& x, int64_t i, T* room) -> const T* {
      const auto view = Base::rows(run, x, batch, head, i, 1, e_, room);
      if (view.column == 1) return view.data;
      for (int64_t f = 0; f < e_; ++f) room[f] = view.data[f * view.column];
      return room;
    };
    for (int64_t i = 0; i < n_; ++i) {
      Base::binary(kId_mul, gathered(dy_, i, left), gathered(y_, i, right), left, e_);
      Base::reduce(ReduceKind::sum, left, e_, 1, e_, delta + i);
    }
  }

  // A block with all of its operands.
  struct Operands {
    BlockView<const T> q, dy, k, v;
  };

  // The weights and the gradients of the scores.
  void differentiate(const AttentionRun& run, const ScoreBlock& at, const Operands& x, char* scratch) const {
    T *const weights = part(scratch, weights_at_), *const dscores = part(scratch, dscores_at_);
    Base::scores(run, at, x.q, x.k, weights, scratch + row_at_, scratch + product_at_);
    Base::product_(at.queries, at.keys, e_, T{1}, x.dy, x.v.transposed(), false, {dscores, at.keys, 1},
                   scratch + product_at_);
    const T* const delta = deltas(run, at.batch, at.head) + at.first_query;
    const T* const logsumexp =
        reinterpret_cast<const T*>(run.data[logsumexp_.index]) + logsumexp_.offset(at.batch, at.head, at.first_query);
    for (int64_t i = 0; i < at.queries; ++i) {
      T *const score = weights + i * at.keys, *const dscore = dscores + i * at.keys;
      const T less = logsumexp[i * logsumexp_.strides[2]];
      if (less == -kInfinity) {
        std::fill_n(score, at.keys, -kInfinity);
      } else {
        Base::with_value(kId_sub, score, less, score, at.keys);
      }
      Base::with_value(kId_sub, dscore, delta[i], dscore, at.keys);
    }
    Base::exponentials(at, weights);
    Base::binary(kId_mul, weights, dscores, dscores, at.queries * at.keys);
  }

  void add_dq(const ScoreBlock& at, const Operands& x, T* dq, char* scratch) const {
    Base::product_(at.queries, d_, at.keys, Base::scale_, {part(scratch, dscores_at_), at.keys, 1}, x.k,
                   at.first_key > 0, {dq, d_, 1}, scratch + product_at_);
  }

  // dk and dv of a block of keys, and its part of dq [heads, queries, features] unless that is null.
  void run_keys(const AttentionRun& run, int64_t batch, int64_t shared, int64_t first, T* dq, char* scratch) const {
    const int64_t keys = std::min(key_block_, m_ - first);
    const int64_t first_query =
        Base::is_causal_ ? std::max<int64_t>(first - Base::shift(), 0) / query_block_ * query_block_ : 0;
    T *const dk = part(scratch, dk_at_), *const dv = part(scratch, dv_at_);
    std::fill_n(dk, keys * d_, T{0});
    std::fill_n(dv, keys * e_, T{0});
    ScoreBlock at{batch, shared * group_, 0, 0, first, keys};
    Operands x{};
    x.k = load(run, Base::k_, at, true, d_, part(scratch, k_at_));
    x.v = load(run, Base::v_, at, true, e_, part(scratch, v_at_));
    for (int64_t head = 0; head < group_; ++head) {
      at.head = shared * group_ + head;
      for (at.first_query = first_query; at.first_query < n_; at.first_query += query_block_) {
        at.queries = std::min(query_block_, n_ - at.first_query);
        x.q = load(run, Base::q_, at, false, d_, part(scratch, q_at_));
        x.dy = load(run, dy_, at, false, e_, part(scratch, dy_at_));
        differentiate(run, at, x, scratch);
        const BlockView<const T> weights{part(scratch, weights_at_), keys, 1},
            dscores{part(scratch, dscores_at_), keys, 1};
        Base::product_(keys, e_, at.queries, T{1}, weights.transposed(), x.dy, true, {dv, e_, 1},
                       scratch + product_at_);
        Base::product_(keys, d_, at.queries, Base::scale_, dscores.transposed(), x.q, true, {dk, d_, 1},
                       scratch + product_at_);
        if (dq != nullptr) add_dq(at, x, dq + (head * n_ + at.first_query) * d_, scratch);
      }
    }
    for (int64_t i = 0; i < keys; ++i) {
      Base::store_row(run, dk_, dk_.offset(batch, shared, first + i), dk + i * d_, d_);
      Base::store_row(run, dv_, dv_.offset(batch, shared, first + i), dv + i * e_, e_);
    }
  }

  // dq of a block of queries.
  void run_queries(const AttentionRun& run, int64_t batch, int64_t head, int64_t first, char* scratch) const {
    ScoreBlock at{batch, head, first, std::min(query_block_, n_ - first), 0, 0};
    const int64_t seen = Base::seen(first + at.queries);
    T* const dq = part(scratch, dq_at_);
    if (seen == 0) std::fill_n(dq, at.queries * d_, T{0});
    Operands x{};
    x.q = load(run, Base::q_, at, false, d_, part(scratch, q_at_));
    x.dy = load(run, dy_, at, false, e_, part(scratch, dy_at_));
    for (at.first_key = 0; at.first_key < seen; at.first_key += key_block_) {
      at.keys = std::min(key_block_, m_ - at.first_key);
      x.k = load(run, Base::k_, at, true, d_, part(scratch, k_at_));
      x.v = load(run, Base::v_, at, true, e_, part(scratch, v_at_));
      differentiate(run, at, x, scratch);
      add_dq(at, x, dq, scratch);
    }
    store_dq(run, batch, head, first, at.queries, dq);
  }

  void store_dq(const AttentionRun& run, int64_t batch, int64_t head, int64_t first, int64_t count, const T* dq) const {
    for (int64_t i = 0; i < count; ++i) Base::store_row(run, dq_, dq_.offset(batch, head, first + i), dq + i * d_, d_);
  }

  // All of a head of keys, and of the queries that share it.
  void run_head(const AttentionRun& run, int64_t batch, int64_t shared, char* scratch) const {
    T* const dq = part(scratch, dq_at_);
    std::fill_n(dq, group_ * n_ * d_, T{0});  // of blocks that see no key
    for (int64_t key = 0; key < m_; key += key_block_) run_keys(run, batch, shared, key, dq, scratch);
    for (int64_t head = 0; head < group_; ++head)
      store_dq(run, batch, shared * group_ + head, 0, n_, dq + head * n_ * d_);
  }

  const AttentionOperand dy_, y_, logsumexp_, dq_, dk_, dv_;
  const int64_t group_;
  bool by_heads_ = false;
  int64_t tasks_ = 0, slot_bytes_ = 0, delta_at_ = 0, slots_at_ = 0;
  int64_t weights_at_ = 0, dscores_at_ = 0, dk_at_ = 0, dv_at_ = 0, dq_at_ = 0;
  int64_t q_at_ = 0, dy_at_ = 0, k_at_ = 0, v_at_ = 0, row_at_ = 0, product_at_ = 0;
};

}  // namespace

std::unique_ptr<Plan> prepare_attention_grad(const Op& op) {
  if (op.input(1).dtype == COMPUTE_DTYPE_FLOAT64) return std::make_unique<AttentionGradPlan<double>>(op);
  return std::make_unique<AttentionGradPlan<float>>(op);
}

}  // namespace compute::cpu
