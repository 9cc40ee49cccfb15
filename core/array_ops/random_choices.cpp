// SPDX-License-Identifier: Apache-2.0
// Random numbers that tensors describe: random_categorical and random_gamma. They compare computed numbers, so that
// another device can come to another decision.
#include "core/array_ops/random.hpp"

namespace compute {

namespace {

// ---- random_categorical ---------------------------------------------------------------------------------------------

int64_t sample_count(const OpCall& call) {
  const int64_t samples = call.attributes.int64(attribute_index(call, "samples"));
  if (samples < 0) refuse_attribute(call, "samples", "samples is " + std::to_string(samples) + "; expected 0 or more");
  return samples;
}

std::vector<OutputDesc> infer_categorical(const OpCall& call) {
  require_class(call, 0, DtypeClass::kFloat);
  const std::span<const int64_t> logits = call.inputs[0].extents();
  if (logits.empty()) refuse(call, "logits is a scalar; expected an axis of classes", 0);
  if (logits.back() == 0) refuse(call, "logits has no classes", 0);
  std::vector<int64_t> shape(logits.begin(), logits.end() - 1);
  if (const int64_t samples = sample_count(call); samples > 0) shape.push_back(samples);
  return {{COMPUTE_DTYPE_INT64, std::move(shape)}};
}

// The Gumbel-max method: the greatest of logits - log(-log(u)), with u over the index space [..., samples,
// classes].
std::optional<Lowering> lower_categorical(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 1) return std::nullopt;
  Steps steps(call, target);
  StepOperand logits = steps.input(0);
  if (const int64_t samples = sample_count(call); samples > 0)
    logits = with_axis(std::move(logits), call.inputs[0].rank - 1, samples);
  const auto axis = static_cast<int32_t>(logits.shape.size()) - 1;
  const compute_dtype computed = computed_in(logits.dtype);
  const StepOperand noisy = steps.temporary(computed, logits.shape);
  Distribution noise;
  for (size_t j = 0; j < 4; ++j) {
    const std::string gumbel = "log(-log(" + open_fraction(COMPUTE_DTYPE_FLOAT32, j) + "))";
    noise.values.push_back(convert_text("@", logits.dtype, computed) + " - " +
                           convert_text(gumbel, COMPUTE_DTYPE_FLOAT32, computed));
  }
  draw(steps, call, noise, noisy, &logits);
  const StepOperand output = with_axis(steps.output(), axis);
  if (alternative == 0) {
    Step& step = steps.add("arg_reduce", {noisy}, output);
    step.attributes.resize(2);
    step.attributes[0].name = "axis";
    step.attributes[0].integers = {axis};
    step.attributes[1].name = "kind";
    step.attributes[1].kind = COMPUTE_KIND_STRING;
    step.attributes[1].texts = {"max"};
    return steps.take();
  }
  const int64_t axes[] = {axis};
  const StepOperand best = steps.temporary(computed, output.shape);
  steps.reduce("max", computed, axes, {"x"}, {noisy}, {"x"}, best);
  const StepExpression position{"where((x == y) | isnan(x), index(" + std::to_string(axis) + "), a)",
                                {extent_term(logits.shape.back())}};
  steps.reduce("min", COMPUTE_DTYPE_INT64, axes, position, {noisy, broadcast_to(best, noisy.shape)}, {"x"}, output);
  return steps.take();
}

// ---- random_gamma ---------------------------------------------------------------------------------------------------

// Blocks that an element takes: one for each attempt, and one for the boost.
constexpr int64_t kAttempts = 8, kBlocks = kAttempts + 1;

std::vector<OutputDesc> infer_gamma(const OpCall& call) {
  require_class(call, 0, DtypeClass::kFloat);
  const std::span<const int64_t> shape = call.inputs[0].extents();
  return {{call.inputs[0].dtype, {shape.begin(), shape.end()}}};
}

// An attempt of Marsaglia and Tsang ("A simple method for generating gamma variables", 2000) for alpha from 1 on;
// smaller ones take alpha + 1. Defines `cube`, `drawn` and `good`.
std::string attempt_text(compute_dtype dtype, compute_dtype computed) {
  const bool is_double = computed == COMPUTE_DTYPE_FLOAT64;
  const std::string radius =
      fraction(computed, 0) + (is_double ? " + 1.1102230246251565404e-16" : " + 5.9604644775390625e-8");
  const std::string turn =
      is_double ? "convert(w2, float64) * 9.3132257461547851562e-10" : "(" + fraction(computed, 1) + ") * 4";
  const std::string chance =
      is_double ? "(convert(w3, float64) + 0.5) * 2.3283064365386962891e-10" : open_fraction(computed, 2);
  return "alpha = " + convert_text("x", dtype, computed) +
         "; depth = where(alpha < 1, alpha + 1, alpha) - 0.33333333333333333333; turn = " + turn +
         "; whole = round(turn); angle = (turn - whole) * 1.5707963267948966192; quarter = convert(whole, int32) & 3; "
         "cosine = where(quarter == 0, cos(angle), where(quarter == 1, -sin(angle), where(quarter == 2, -cos(angle), "
         "sin(angle)))); normal = sqrt(-2 * log(" +
         radius +
         ")) * cosine; root = 1 + normal / sqrt(9 * depth); cube = where(root > 0, root * root * root, 1); "
         "drawn = depth * cube; good = (root > 0) & (log(" +
         chance + ") < 0.5 * normal * normal + depth * (1 - cube + log(cube))); ";
}

// The last attempt first; each earlier one replaces it where it is accepted.
std::optional<Lowering> lower_gamma(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 0) return std::nullopt;
  static const std::string& kPhilox = *new std::string(philox_text("b + c + 9 * convert(index(0), int64)"));
  static_assert(kBlocks == 9);
  Steps steps(call, target);
  const StepOperand alpha = steps.input(0), output = steps.output();
  const compute_dtype dtype = alpha.dtype, computed = computed_in(dtype);
  const auto flat = [](const StepOperand& operand) { return flattened(operand); };
  StepOperand x = alpha;
  if (!flat(x)) {
    x = steps.temporary(dtype, alpha.shape);
    steps.copy(alpha, x);
  }
  x = *flat(x);
  const std::string text = kPhilox + attempt_text(dtype, computed);
  const auto scalars = [&](int64_t block) {
    return std::vector<ScalarTerm>{attribute_term(call, "seed", COMPUTE_DTYPE_INT64),
                                   attribute_term(call, "offset", COMPUTE_DTYPE_INT64), extent_term(block)};
  };
  StepOperand drawn = steps.temporary(computed, x.shape), spare = steps.temporary(computed, x.shape);
  steps.map({text + "drawn", scalars(kAttempts - 1)}, {x}, drawn);
  for (int64_t attempt = kAttempts - 2; attempt >= 0; --attempt) {
    steps.map({text + "where(good, drawn, y)", scalars(attempt)}, {x, drawn}, spare);
    std::swap(drawn, spare);
  }
  const std::string boosted = kPhilox + "alpha = " + convert_text("x", dtype, computed) +
                              "; where(alpha < 1, where(alpha < 0, sqrt(alpha), y * pow(" + open_fraction(computed, 0) +
                              ", 1 / alpha)), y)";
  const auto flat_output = flat(output);
  const StepOperand packed = flat_output ? *flat_output : steps.temporary(output.dtype, x.shape);
  steps.map({boosted, scalars(kAttempts)}, {x, drawn}, packed);
  if (!flat_output) {
    StepOperand from = packed;
    from.shape = output.shape;
    from.strides = row_major_strides(output.shape);
    steps.copy(from, output);
  }
  return steps.take();
}

}  // namespace

const OpRules random_categorical_1_rules{infer_categorical, lower_categorical};
const OpRules random_gamma_1_rules{infer_gamma, lower_gamma};

}  // namespace compute
