// SPDX-License-Identifier: Apache-2.0
// Scaled dot-product attention with its gradient, and the rotary position embedding. Plugins are asked for attention by
// its name; here it is products and rows over the matrix of scores.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/ops/rules.hpp"
#include "core/ops/steps.hpp"

namespace compute {

namespace {

// q [b, h, n, d]; k [b, h_kv, m, d]; v [b, h_kv, m, e]; h is a multiple of h_kv.
struct Attention {
  int64_t b, h, h_kv, n, m, d, e;

  std::vector<int64_t> grouped(int64_t rows, int64_t columns) const { return {b, h_kv, h / h_kv, rows, columns}; }
};

Attention read_attention(const OpCall& call, int32_t first) {
  const auto at = [&](int32_t i) -> const OperandDesc& { return call.inputs[static_cast<size_t>(first + i)]; };
  require_class(call, first, DtypeClass::kFloat);
  for (int32_t i = 0; i < 3; ++i) {
    if (at(i).dtype != at(0).dtype) {
      refuse(call,
             call.schema.input_name(first + i) + " is " + dtype_name(at(i).dtype) + ", but " +
                 call.schema.input_name(first) + " is " + dtype_name(at(0).dtype),
             first + i);
    }
    if (at(i).rank != 4)
      refuse(call,
             call.schema.input_name(first + i) + " has shape " + shape_text(at(i).extents()) +
                 "; expected four axes: batch, heads, positions, features",
             first + i);
  }
  const int64_t *q = at(0).shape, *k = at(1).shape, *v = at(2).shape;
  const bool fits = q[0] == k[0] && k[0] == v[0] && k[1] == v[1] && k[2] == v[2] && q[3] == k[3] &&
                    (k[1] == 0 ? q[1] == 0 : q[1] % k[1] == 0);
  if (!fits) {
    refuse(call,
           "q of shape " + shape_text(at(0).extents()) + ", k of shape " + shape_text(at(1).extents()) +
               " and v of shape " + shape_text(at(2).extents()) + " do not fit together",
           first + 1);
  }
  flag_attribute(call, "causal");
  return {q[0], q[1], k[1], q[2], k[2], q[3], v[3]};
}

// Refuses a mask that is not bool or of the dtype of q, or does not broadcast to the scores.
void check_mask(const OpCall& call, int32_t index, const Attention& a, compute_dtype dtype) {
  if (static_cast<size_t>(index) >= call.inputs.size()) return;
  const OperandDesc& mask = call.inputs[static_cast<size_t>(index)];
  if (mask.dtype == COMPUTE_DTYPE_NONE) return;
  const int64_t scores[] = {a.b, a.h, a.n, a.m};
  bool fits = mask.rank <= 4 && (is_bool(mask.dtype) || mask.dtype == dtype);
  for (int32_t i = 0; fits && i < mask.rank; ++i) {
    const int64_t extent = mask.shape[mask.rank - 1 - i];
    fits = extent == 1 || extent == scores[3 - i];
  }
  if (!fits) {
    refuse(call,
           "mask is " + dtype_name(mask.dtype) + " " + shape_text(mask.extents()) + "; expected bool or " +
               dtype_name(dtype) + ", broadcast to " + shape_text(scores),
           index);
  }
}

std::vector<OutputDesc> infer_attention(const OpCall& call) {
  const Attention a = read_attention(call, 0);
  check_mask(call, 3, a, call.inputs[0].dtype);
  const compute_dtype dtype = call.inputs[0].dtype;
  return {{dtype, {a.b, a.h, a.n, a.e}}, {computed_in(dtype), {a.b, a.h, a.n}}};
}

class Builder {
 public:
  Builder(Steps& steps, const OpCall& call, const Attention& a, int32_t first, int32_t mask)
      : steps_(steps),
        call_(call),
        a_(a),
        mask_(mask),
        computed_(computed_in(call.inputs[static_cast<size_t>(first)].dtype)) {}

  compute_dtype computed() const { return computed_; }

  // [b, h, rows, columns] as [b, h_kv, h / h_kv, rows, columns].
  StepOperand heads(const StepOperand& x) const {
    const int64_t groups[] = {a_.h_kv, a_.h / a_.h_kv};
    return split_axis(x, 1, groups);
  }
  // [b, h_kv, rows, columns] repeated for the heads that share it.
  StepOperand shared(const StepOperand& x) const { return with_axis(x, 2, a_.h / a_.h_kv); }
  static StepOperand transposed(const StepOperand& x) {
    StepOperand result = x;
    const size_t last = x.shape.size() - 1;
    std::swap(result.shape[last], result.shape[last - 1]);
    std::swap(result.strides[last], result.strides[last - 1]);
    return result;
  }
  void product(const StepOperand& x, const StepOperand& y, const StepOperand& to, bool by_reduce) {
    if (!by_reduce) {
      Step& step = steps_.add("contraction", {x, y}, to);
      step.attributes.resize(1);
      step.attributes[0].name = "scaled";
      step.attributes[0].integers = {0};
      return;
    }
    const auto rank = static_cast<int32_t>(to.shape.size());
    std::vector<int64_t> space = to.shape;
    space.push_back(x.shape.back());
    const int64_t axis = rank;
    steps_.reduce(
        "sum", computed_in(to.dtype), {&axis, 1}, {"x * y"},
        {broadcast_to(with_axis(x, rank - 1), space), broadcast_to(with_axis(transposed(y), rank - 2), space)}, {"x"},
        with_axis(to, rank));
  }

  // What an expression over the products (as the name `score`) makes of them: the scaled and masked score.
  std::string masked(const std::string& product, const std::string& mask) const {
    std::string text = "(" + product + ") * scale";
    if (steps_.has_input(mask_)) {
      text = is_bool(call_.inputs[static_cast<size_t>(mask_)].dtype) ? "where(" + mask + ", " + text + ", -inf)"
                                                                     : text + " + " + mask;
    }
    if (flag_attribute(call_, "causal")) text = "where(index(4) <= index(3) + offset, " + text + ", -inf)";
    return text;
  }
  // scale, and the difference of the lengths: the last query sees every key.
  std::vector<ScalarTerm> scalars() const {
    return {scale_term().named("scale"), extent_term(a_.m - a_.n).named("offset")};
  }
  std::optional<StepOperand> mask(const std::vector<int64_t>& space) {
    if (!steps_.has_input(mask_)) return std::nullopt;
    StepOperand mask = steps_.input(mask_);
    while (mask.shape.size() < 4) mask = with_axis(std::move(mask), 0);
    const int64_t scores[] = {a_.b, a_.h, a_.n, a_.m};
    return broadcast_to(heads(broadcast_to(mask, scores)), space);
  }

 private:
  // The static attribute scale; 0 means 1 / sqrt(d), or anything if all scores are 0 because d is.
  ScalarTerm scale_term() const {
    const double given = call_.attributes.float64(attribute_index(call_, "scale"));
    const double scale = given != 0 ? given : 1 / std::sqrt(static_cast<double>(std::max<int64_t>(a_.d, 1)));
    const ScalarBits bits = scalar_from_double(scale, computed_);
    return {{ScalarSource::kValue, 0, computed_, bits}, {computed_, false, true}};
  }

  Steps& steps_;
  const OpCall& call_;
  const Attention& a_;
  const int32_t mask_;
  const compute_dtype computed_;
};

// Alternative 0: products; 1: rows in steps too; 2: sums of products.
std::optional<Lowering> lower_attention(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 2) return std::nullopt;
  Steps steps(call, target);
  const Attention a = read_attention(call, 0);
  Builder builder(steps, call, a, 0, 3);
  const compute_dtype computed = builder.computed();
  const StepOperand y = steps.output(0), logsumexp = steps.output(1);
  const auto fill_if = [&](const StepOperand& x, double value) {
    if (has_elements(x.shape)) steps.fill(x, scalar_from_double(value, x.dtype));
  };
  if (a.m == 0 || a.h == 0 || a.n == 0 || a.b == 0) {
    if (alternative > 0) return std::nullopt;
    fill_if(y, 0);
    fill_if(logsumexp, -std::numeric_limits<double>::infinity());
    return steps.take();
  }
  const bool by_reduce = alternative == 2;
  const std::vector<int64_t> space = a.grouped(a.n, a.m);
  const auto as = [&](int32_t index) { return steps.as_dtype(steps.input(index), computed); };
  const StepOperand scores = steps.temporary(computed, space), weights = steps.temporary(computed, space);
  if (a.d > 0) {
    builder.product(builder.heads(as(0)), Builder::transposed(builder.shared(as(1))), scores, by_reduce);
  } else {
    steps.fill(scores, {});
  }
  Row row{{scores}, {4}, {}};
  row.names = {"product"};
  if (const auto mask = builder.mask(space)) {
    row.inputs.push_back(*mask);
    row.names.push_back("mask");
  }
  const std::string score = builder.masked("product", "mask");
  // Of a row that is masked as a whole the weights are 0, and the logarithm is -inf.
  row.stages.push_back(
      {"max", computed, {score, builder.scalars()}, {"where(isfinite(x), x, 0)"}, computed, "greatest"});
  row.stages.push_back({"sum",
                        computed,
                        {"exp(" + score + " - greatest)", builder.scalars()},
                        {"log(sum) + greatest", {}, {"sum"}},
                        computed,
                        "logsumexp"});
  row.map = StepExpression{"where(logsumexp == -inf, 0, exp(" + score + " - logsumexp))", builder.scalars()};
  row.outputs = {weights};
  row.stored = {{1, with_axis(builder.heads(logsumexp), 4)}};
  alternative == 0 ? steps.row(row) : steps.row_in_steps(row);
  if (a.e == 0) return steps.take();
  const StepOperand result = y.dtype == computed ? y : steps.temporary(computed, y.shape);
  builder.product(weights, builder.shared(as(2)), builder.heads(result), by_reduce);
  if (y.dtype != computed) steps.copy(result, y);
  return steps.take();
}

// ---- Gradient -------------------------------------------------------------------------------------------------------

// Inputs dy, q, k, v, y, logsumexp, mask?; outputs dq, dk, dv.
std::vector<OutputDesc> infer_attention_grad(const OpCall& call) {
  const Attention a = read_attention(call, 1);
  const compute_dtype dtype = call.inputs[1].dtype;
  const int64_t y[] = {a.b, a.h, a.n, a.e}, rows[] = {a.b, a.h, a.n};
  require_tensor(call, 0, dtype, y);
  require_tensor(call, 4, dtype, y);
  require_tensor(call, 5, computed_in(dtype), rows);
  check_mask(call, 6, a, dtype);
  return {{dtype, {a.b, a.h, a.n, a.d}}, {dtype, {a.b, a.h_kv, a.m, a.d}}, {dtype, {a.b, a.h_kv, a.m, a.e}}};
}

std::optional<Lowering> lower_attention_grad(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 1) return std::nullopt;
  Steps steps(call, target);
  const Attention a = read_attention(call, 1);
  Builder builder(steps, call, a, 1, 6);
  const compute_dtype computed = builder.computed();
  StepOperand results[3] = {steps.output(0), steps.output(1), steps.output(2)};
  if (a.m == 0 || a.h == 0 || a.n == 0 || a.b == 0 || a.e == 0) {
    if (alternative > 0) return std::nullopt;
    for (const StepOperand& each : results)
      if (has_elements(each.shape)) steps.fill(each, {});
    return steps.take();
  }
  const bool by_reduce = alternative == 1;
  const std::vector<int64_t> space = a.grouped(a.n, a.m);
  const auto as = [&](int32_t index) {
    const StepOperand x = steps.input(index);
    return has_elements(x.shape) ? steps.as_dtype(x, computed) : x;
  };
  const StepOperand dy = builder.heads(as(0)), q = builder.heads(as(1)), k = builder.shared(as(2)),
                    v = builder.shared(as(3)), y = builder.heads(as(4));
  const StepOperand scores = steps.temporary(computed, space), dweights = steps.temporary(computed, space);
  a.d > 0 ? builder.product(q, Builder::transposed(k), scores, by_reduce) : steps.fill(scores, {});
  builder.product(dy, Builder::transposed(v), dweights, by_reduce);
  // delta = sum(dy * y); weight = exp(score - logsumexp); dscore = weight * (dweight - delta) * scale.
  std::vector<int64_t> kept = a.grouped(a.n, 1);
  const StepOperand delta = steps.temporary(computed, kept);
  const int64_t last = 4;
  steps.reduce("sum", computed, {&last, 1}, {"x * y"}, {dy, y}, {"x"}, delta);
  const StepOperand logsumexp = broadcast_to(with_axis(builder.heads(steps.input(5)), 4), space);
  std::vector<StepOperand> inputs = {scores, logsumexp, dweights, broadcast_to(delta, space)};
  std::vector<std::string_view> names = {"product", "logsumexp", "dweight", "delta"};
  if (const auto mask = builder.mask(space)) {
    inputs.push_back(*mask);
    names.push_back("mask");
  }
  // The weights overwrite the scores, and the gradients of the scores those of the weights.
  const StepOperand &weights = scores, &dscores = dweights;
  const std::string weight = "where(logsumexp == -inf, 0, exp(" + builder.masked("product", "mask") + " - logsumexp))";
  steps.map({"w = " + weight + "; w; w * (dweight - delta) * scale", builder.scalars(), names}, std::move(inputs),
            std::vector<StepOperand>{weights, dscores});

  // Heads that share keys and values add up.
  const auto shared_sum = [&](const StepOperand& left, const StepOperand& right, int64_t columns,
                              const StepOperand& to) {
    const bool is_sum = a.h != a.h_kv || to.dtype != computed;
    const StepOperand parts = is_sum ? steps.temporary(computed, a.grouped(a.m, columns)) : with_axis(to, 2);
    builder.product(Builder::transposed(left), right, parts, by_reduce);
    const int64_t axis = 2;
    if (is_sum) steps.reduce("sum", computed, {&axis, 1}, {"x"}, {parts}, {"x"}, with_axis(to, 2));
  };
  shared_sum(weights, dy, a.e, results[2]);
  if (a.d == 0) return steps.take();
  shared_sum(dscores, q, a.d, results[1]);
  const StepOperand dq = results[0].dtype == computed ? results[0] : steps.temporary(computed, results[0].shape);
  builder.product(dscores, k, builder.heads(dq), by_reduce);
  if (results[0].dtype != computed) steps.copy(dq, results[0]);
  return steps.take();
}

// ---- Rotary embedding -----------------------------------------------------------------------------------------------

// x [..., n, d] with even d; positions [n], integers.
std::vector<OutputDesc> infer_rotary(const OpCall& call) {
  require_class(call, 0, DtypeClass::kFloat);
  const OperandDesc &x = call.inputs[0], &positions = call.inputs[1];
  if (x.rank < 2 || x.shape[x.rank - 1] % 2 != 0) {
    refuse(call, "x has shape " + shape_text(x.extents()) + "; expected positions and an even number of features", 0);
  }
  if (!is_integer(positions.dtype)) refuse(call, "positions is " + dtype_name(positions.dtype) + ", not integers", 1);
  require_tensor(call, 1, positions.dtype, {&x.shape[x.rank - 2], 1});
  flag_attribute(call, "interleaved");
  flag_attribute(call, "inverse");
  return {{x.dtype, {x.extents().begin(), x.extents().end()}}};
}

// Feature pairs (i, i + d / 2), or neighbours, are turned by position * base^(-2 i / d).
std::optional<Lowering> lower_rotary(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 0) return std::nullopt;
  Steps steps(call, target);
  const StepOperand x = steps.input(0), y = steps.output();
  const auto rank = static_cast<int32_t>(x.shape.size());
  const compute_dtype computed = computed_in(x.dtype);
  const compute_dtype angle = target.has_float64 ? COMPUTE_DTYPE_FLOAT64 : COMPUTE_DTYPE_FLOAT32;
  const bool interleaved = flag_attribute(call, "interleaved");
  const int64_t half = x.shape.back() / 2;
  const auto part = [&](const StepOperand& of, int64_t which) {
    StepOperand result = narrowed(of, rank - 1, interleaved ? which : which * half, half);
    if (interleaved) result.strides.back() = 2 * of.strides.back();
    return result;
  };
  const StepOperand positions = with_axis(steps.input(1), 1);
  const std::string type = dtype_name(angle);
  // Cosines and sines of all positions first: they repeat for every batch and head.
  const int64_t table[] = {x.shape[static_cast<size_t>(rank - 2)], half};
  const StepOperand cosines = steps.temporary(computed, table), sines = steps.temporary(computed, table);
  const std::string turn =
      "convert(position, " + type + ") * exp(convert(index(1), " + type + ") * (-2 / features) * log(base))";
  steps.map({"t = " + turn + "; " + convert_text("cos(t)", angle, computed) + "; " +
                 convert_text(flag_attribute(call, "inverse") ? "sin(-t)" : "sin(t)", angle, computed),
             {attribute_term(call, "base", angle).named("base"), extent_term(x.shape.back()).named("features")},
             {"position"}},
            {positions}, std::vector<StepOperand>{cosines, sines});
  steps.map({"x * c - y * s; y * c + x * s", {}, {"x", "y", "c", "s"}}, {part(x, 0), part(x, 1), cosines, sines},
            std::vector<StepOperand>{part(y, 0), part(y, 1)});
  return steps.take();
}

}  // namespace

const OpRules attention_1_rules{infer_attention, lower_attention, true};
const OpRules attention_grad_1_rules{infer_attention_grad, lower_attention_grad, true};
const OpRules rotary_embedding_1_rules{infer_rotary, lower_rotary, true};

}  // namespace compute
