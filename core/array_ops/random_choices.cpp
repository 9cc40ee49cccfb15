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
// Copies elements that lie in one line, in row-major order.
void copy_from_line(Steps& steps, StepOperand line, const StepOperand& to) {
  line.shape = to.shape;
  line.strides = row_major_strides(to.shape);
  steps.copy(line, to);
}

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
  if (!flat_output) copy_from_line(steps, packed, output);
  return steps.take();
}

// ---- random_poisson and random_binomial -----------------------------------------------------------------------------

// Each of the first blocks serves two attempts, the last block the inversion.
constexpr int64_t kPairs = 8;

std::vector<OutputDesc> infer_binomial(const OpCall& call) {
  require_class(call, 0, DtypeClass::kFloat);
  require_same(call, 1, 0);
  return infer_gamma(call);
}

// The logarithm of k! less k log(k) - k, for whole k from 0 on.
std::string factorial_rest(const std::string& k) {
  const std::string large = "max(" + k + ", 10)", square = "(" + large + " * " + large + ")";
  return "where(" + k + " < 10, lgamma(" + k + " + 1) - " + k + " * log(max(" + k + ", 1)) + " + k +
         ", 0.5 * log(6.2831853071795864769 * " + large +
         ") + (0.083333333333333333333 - (0.0027777777777777777778 - 7.9365079365079365079e-4 / " + square + ") / " +
         square + ") / " + large + ")";
}

// k log(k / mean) + mean - k, which is at least 0.
std::string surprise(const std::string& k, const std::string& mean) {
  const std::string part = "((" + mean + " - " + k + ") / max(" + k + ", 1))";
  return "where(" + k + " < 1, " + mean + ", " + k + " * (" + part + " - log1p(" + part + ")))";
}

// A distribution of counts, by inversion for means below 10 and by the transformed rejection of Hoermann ("The
// transformed rejection method for generating Poisson random variables", 1993; "The generation of binomial random
// variates", 1993) from there on. Texts are over the inputs x and y.
struct Counts {
  std::string parameters;   // defines `small`, `mean`, `limit` and what the others use
  std::string first, next;  // the probability of 0, and the quotient of the probabilities of "$" and "$" - 1
  std::string limits;       // defines base, slope, centre, ratio and scale
  std::string logarithm;    // of the probability of h$
  std::string most;         // what the scale is relative to
  std::string result;       // of the drawn `value`
};

std::string with_suffix(std::string text, const std::string& suffix) {
  for (size_t at = 0; (at = text.find('$', at)) != std::string::npos; at += suffix.size()) text.replace(at, 1, suffix);
  return text;
}

Counts poisson() {
  return {
      "small = ~(x >= 10); rate = where(x >= 0, min(x, 10), 0); mean = where((x >= 10) & isfinite(x), x, 10); "
      "limit = inf; ",
      "exp(-rate)",
      "rate * (1 / $)",
      "base = 0.931 + 2.53 * sqrt(mean); slope = 0.02483 * base - 0.059; centre = mean + 0.43; "
      "ratio = 0.9277 - 3.6224 / (base - 2); scale = 1.1239 + 1.1328 / (base - 3.4); ",
      "-(" + factorial_rest("h$") + ") - (" + surprise("h$", "mean") + ")",
      "0",
      "where(isfinite(x) & (x >= 0), value, where(x > 0, x, nan))"};
}

// Counts the less probable outcome, whose probability is `chance`.
Counts binomial() {
  const auto logarithm = [](const std::string& k) {
    return "(" + factorial_rest("limit") + ") - (" + factorial_rest(k) + ") - (" +
           factorial_rest("(limit - " + k + ")") + ") - (" + surprise(k, "mean") + ") - (" +
           surprise("(limit - " + k + ")", "(limit - mean)") + ")";
  };
  return {
      "valid = (x >= 0) & isfinite(x) & (floor(x) == x) & (y >= 0) & (y <= 1); turned = y > 0.5; "
      "chance = where(valid, where(turned, 1 - y, y), 0); size = where(valid, x, 0); small = size * chance < 10; "
      "odds = chance / (1 - chance); limit = where(small, 40, size); likely = where(small, 0.5, chance); "
      "mean = limit * likely; ",
      "exp(where(small, size, 0) * log1p(-chance))",
      "(size - ($ - 1)) * (odds * (1 / $))",
      "spread = sqrt(mean * (1 - likely)); base = 1.15 + 2.53 * spread; "
      "slope = 0.0248 * base - 0.0873 + 0.01 * likely; centre = mean + 0.5; ratio = 0.92 - 4.2 / base; "
      "scale = (2.83 + 5.1 / base) * spread; mode = floor((limit + 1) * likely); ",
      logarithm("h$"),
      logarithm("mode"),
      "where(valid, where(turned, size - value, value), nan)"};
}

// Two attempts from one block: `value` is what the first accepted one drew, or `later`, what other blocks drew.
std::string attempts_text(const Counts& counts, compute_dtype computed) {
  const auto uniform = [&](int word) {
    return computed == COMPUTE_DTYPE_FLOAT64
               ? "(convert(w" + std::to_string(word) + ", float64) + 0.5) * 2.3283064365386962891e-10"
               : open_fraction(computed, static_cast<size_t>(word));
  };
  std::string text = counts.limits + "most = " + counts.most + "; ";
  for (const int i : {0, 1}) {
    text +=
        with_suffix("from$ = " + uniform(2 * i) + " - 0.5; left$ = 0.5 - abs(from$); level$ = " + uniform(2 * i + 1) +
                        "; drawn$ = floor((2 * slope / left$ + base) * from$ + centre); "
                        "possible$ = (drawn$ >= 0) & (drawn$ <= limit); h$ = where(possible$, drawn$, floor(mean)); "
                        "good$ = possible$ & (((left$ >= 0.07) & (level$ <= ratio)) | (((left$ >= 0.013) | (level$ <= "
                        "left$)) & (log(level$ * scale / (slope / (left$ * left$) + base)) <= " +
                        counts.logarithm + " - most))); ",
                    "_" + std::to_string(i));
  }
  return text + "value = where(good_0, drawn_0, where(good_1, drawn_1, later))";
}

// The number of counts whose distribution function is below a random number.
std::string inversion_text(const Counts& counts, compute_dtype computed) {
  constexpr int kSteps = 48;  // the mean is below 10
  std::string text = "level = " + open_fraction(computed, 0) + "; part_0 = " + counts.first + "; sum_0 = part_0; ";
  for (int i = 1; i <= kSteps; ++i) {
    const std::string n = "_" + std::to_string(i), before = "_" + std::to_string(i - 1);
    text += "count" + n + " = " + (i > 1 ? "count" + before + " + " : "") + "where(level > sum" + before + ", 1, 0); ";
    text += "part" + n + " = part" + before + " * max(" + with_suffix(counts.next, std::to_string(i)) + ", 0); ";
    text += "sum" + n + " = sum" + before + " + part" + n + "; ";
  }
  return text + "value = where(small, min(count_" + std::to_string(kSteps) + ", limit), later)";
}

std::optional<Lowering> lower_counts(const OpCall& call, const LoweringTarget& target, const Counts& counts) {
  static const std::string& kPhilox = *new std::string(philox_text("b + c + 9 * convert(index(0), int64)"));
  static_assert(kPairs + 1 == kBlocks);
  Steps steps(call, target);
  const StepOperand output = steps.output();
  const compute_dtype dtype = output.dtype, computed = computed_in(dtype);
  std::vector<StepOperand> given;
  std::vector<std::string_view> names;
  std::string text = kPhilox;
  for (int32_t i = 0; i < static_cast<int32_t>(call.inputs.size()); ++i) {
    StepOperand x = steps.input(i);
    if (!flattened(x)) {
      const StepOperand packed = steps.temporary(dtype, x.shape);
      steps.copy(x, packed);
      x = packed;
    }
    given.push_back(*flattened(x));
    names.push_back(i == 0 ? "given" : "given_chance");
    text += std::string(i == 0 ? "x" : "y") + " = " + convert_text(names.back(), dtype, computed) + "; ";
  }
  text += counts.parameters;
  const auto expression = [&](const std::string& rest, int64_t block, bool has_later) {
    StepExpression made{text + rest,
                        {attribute_term(call, "seed", COMPUTE_DTYPE_INT64),
                         attribute_term(call, "offset", COMPUTE_DTYPE_INT64), extent_term(block)},
                        names};
    if (has_later) made.inputs.push_back("later");
    return made;
  };
  const auto with = [&](const StepOperand& later) {
    std::vector<StepOperand> inputs = given;
    inputs.push_back(later);
    return inputs;
  };
  const std::vector<int64_t> shape = given[0].shape;
  StepOperand drawn = steps.temporary(computed, shape), spare = steps.temporary(computed, shape);
  const std::string attempts = attempts_text(counts, computed) + "; value";
  // The last attempts first; each earlier one replaces them where it is accepted.
  steps.map(expression("later = floor(mean); " + attempts, kPairs - 1, false), given, drawn);
  for (int64_t block = kPairs - 2; block >= 0; --block) {
    steps.map(expression(attempts, block, true), with(drawn), spare);
    std::swap(drawn, spare);
  }
  const auto flat_output = flattened(output);
  const StepOperand packed = flat_output ? *flat_output : steps.temporary(dtype, shape);
  steps.map(expression(inversion_text(counts, computed) + "; " + counts.result, kPairs, true), with(drawn), packed);
  if (!flat_output) copy_from_line(steps, packed, output);
  return steps.take();
}

std::optional<Lowering> lower_poisson(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 0) return std::nullopt;
  return lower_counts(call, target, poisson());
}

std::optional<Lowering> lower_binomial(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 0) return std::nullopt;
  return lower_counts(call, target, binomial());
}

}  // namespace

const OpRules random_binomial_1_rules{infer_binomial, lower_binomial};
const OpRules random_categorical_1_rules{infer_categorical, lower_categorical};
const OpRules random_gamma_1_rules{infer_gamma, lower_gamma};
const OpRules random_poisson_1_rules{infer_gamma, lower_poisson};

}  // namespace compute
