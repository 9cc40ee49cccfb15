// SPDX-License-Identifier: Apache-2.0
// Random numbers: Philox 4x32-10 as an expression, so that each device computes the same words. The algorithm is that
// of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
//
// Block i of a call is Philox with the counter offset + i and the key seed. An element of one word takes word p % 4 of
// block p / 4, where p is its row-major position; an element of two words takes words 2 p and 2 p + 1 in the same
// order. Normal numbers come in pairs, by the method of Box and Muller.
#include "core/array_ops/random.hpp"

#include <array>

namespace compute {

namespace {

// ---- Blocks ---------------------------------------------------------------------------------------------------------

StepOperand every(const StepOperand& flat, int64_t start, int64_t step, int64_t count) {
  StepOperand part = flat;
  part.offset += start * flat.strides[0];
  part.shape[0] = count;
  part.strides[0] *= step;
  return part;
}

}  // namespace

std::string philox_text(std::string_view counter) {
  std::string text = "n = " + std::string(counter) +
                     "; k0 = convert(a & 0xffffffff, uint32); k1 = convert(a >> 32, uint32); "
                     "p0 = convert(n, uint32); p1 = convert(n >> 32, uint32); p2 = p0 ^ p0; p3 = p0 ^ p0; ";
  std::array<std::string, 4> c = {"p0", "p1", "p2", "p3"};
  std::string key0 = "k0", key1 = "k1";
  for (int round = 0; round < 10; ++round) {
    const std::string r = std::to_string(round);
    const std::string h0 = "f" + r, l0 = "g" + r, h1 = "s" + r, l1 = "t" + r, x0 = "u" + r, x2 = "v" + r;
    text += h0 + " = mul_high(" + c[0] + ", 0xD2511F53); " + l0 + " = " + c[0] + " * 0xD2511F53; ";
    text += h1 + " = mul_high(" + c[2] + ", 0xCD9E8D57); " + l1 + " = " + c[2] + " * 0xCD9E8D57; ";
    text += x0 + " = " + h1 + " ^ " + c[1] + " ^ " + key0 + "; " + x2 + " = " + h0 + " ^ " + c[3] + " ^ " + key1 + "; ";
    c = {x0, l1, x2, l0};
    if (round == 9) break;
    text += "i" + r + " = " + key0 + " + 0x9E3779B9; j" + r + " = " + key1 + " + 0xBB67AE85; ";
    key0 = "i" + r;
    key1 = "j" + r;
  }
  for (size_t i = 0; i < 4; ++i) text += "w" + std::to_string(i) + " = " + c[i] + "; ";
  return text;
}

void draw(Steps& steps, const OpCall& call, const Distribution& distribution, const StepOperand& to,
          const StepOperand* input) {
  static const std::string& kPhilox = *new std::string(philox_text("b + c + index(0)"));
  constexpr std::string_view kNames[] = {"x", "y", "z", "x3"};
  const auto flat_to = flattened(to);
  std::optional<StepOperand> flat_input = input != nullptr ? flattened(*input) : std::nullopt;
  StepOperand packed;
  if (input != nullptr && !flat_input) {
    packed = steps.temporary(input->dtype, input->shape);
    steps.copy(*input, packed);
    flat_input = flattened(packed);
  }
  const StepOperand result = flat_to ? *flat_to : *flattened(packed = steps.temporary(to.dtype, to.shape));
  const auto per_block = static_cast<int64_t>(distribution.values.size());
  const int64_t blocks = result.shape[0] / per_block, rest = result.shape[0] % per_block;
  const auto run = [&](int64_t first_block, int64_t block_count, int64_t elements) {
    StepExpression expression{kPhilox + distribution.definitions};
    std::vector<StepOperand> inputs, outputs;
    for (int64_t j = 0; j < elements; ++j) {
      const int64_t start = first_block * per_block + j;
      std::string value = distribution.values[static_cast<size_t>(j)];
      if (flat_input) {
        inputs.push_back(every(*flat_input, start, per_block, block_count));
        value.replace(value.find('@'), 1, kNames[j]);
      }
      expression.text += (j > 0 ? "; " : "") + value;
      outputs.push_back(every(result, start, per_block, block_count));
    }
    expression.scalars = {attribute_term(call, "seed", COMPUTE_DTYPE_INT64),
                          attribute_term(call, "offset", COMPUTE_DTYPE_INT64), extent_term(first_block)};
    expression.scalars.insert(expression.scalars.end(), distribution.scalars.begin(), distribution.scalars.end());
    steps.map(expression, std::move(inputs), std::move(outputs));
  };
  if (blocks > 0) run(0, blocks, per_block);
  if (rest > 0) run(blocks, 1, rest);
  if (!flat_to) {
    StepOperand from = result;
    from.shape = to.shape;
    from.strides = row_major_strides(to.shape);
    steps.copy(from, to);
  }
}

// ---- Distributions --------------------------------------------------------------------------------------------------

std::string fraction(compute_dtype dtype, size_t j) {
  const std::string w = "w" + std::to_string(dtype == COMPUTE_DTYPE_FLOAT64 ? 2 * j : j);
  if (dtype != COMPUTE_DTYPE_FLOAT64) return "convert(" + w + " >> 8, float32) * 5.9604644775390625e-8";
  return "convert((convert(" + w + ", uint64) << 21) ^ (convert(w" + std::to_string(2 * j + 1) +
         ", uint64) >> 11), float64) * 1.1102230246251565404e-16";
}

std::string open_fraction(compute_dtype dtype, size_t j) {
  if (dtype == COMPUTE_DTYPE_FLOAT32)
    return "(convert(w" + std::to_string(j) + " >> 9, float32) + 0.5) * 1.1920928955078125e-7";
  return "(convert((convert(w" + std::to_string(2 * j) + ", uint64) << 20) ^ (convert(w" + std::to_string(2 * j + 1) +
         ", uint64) >> 12), float64) + 0.5) * 2.220446049250313081e-16";
}

namespace {

size_t elements_per_block(compute_dtype dtype) { return dtype_size(dtype) == 8 ? 2 : 4; }

// The greatest number of a half dtype that is not greater than `value`, a name of a float32: the bits that the dtype
// lacks are cut off, away from zero below it. Of float16 those below its normal range are cut off by floor.
std::string rounded_down(compute_dtype dtype, const std::string& value) {
  const bool is_float16 = dtype == COMPUTE_DTYPE_FLOAT16;
  const std::string below = is_float16 ? "0x1fff" : "0xffff", kept = is_float16 ? "0xffffe000" : "0xffff0000";
  const std::string cut =
      "bitcast((bitcast(" + value + ", uint32) + where(" + value + " < 0, " + below + ", 0)) & " + kept + ", float32)";
  if (!is_float16) return cut;
  return "where(abs(" + value + ") < 6.103515625e-5, floor(" + value + " * 16777216) * 5.9604644775390625e-8, " + cut +
         ")";
}

// The bounds are numbers of the dtype. Halves are rounded down: to the nearest would reach the maximum, and favour even
// numbers.
Distribution uniform(const OpCall& call, compute_dtype dtype) {
  const compute_dtype computed = computed_in(dtype);
  Distribution result;
  result.scalars = {attribute_term(call, "minimum", computed), attribute_term(call, "maximum", computed)};
  const auto bound = [&](const char* scalar) {
    return dtype == computed ? std::string(scalar)
                             : convert_text(convert_text(scalar, computed, dtype), dtype, computed);
  };
  result.definitions = "least = " + bound("d") + "; end = " + bound("e") + "; ";
  for (size_t j = 0; j < elements_per_block(dtype); ++j) {
    const std::string r = "r" + std::to_string(j), q = "q" + std::to_string(j);
    result.definitions += q + " = least + (" + fraction(dtype, j) + ") * (end - least); " + r + " = where(" + q +
                          " < end, " + q + ", least); ";
    result.values.push_back(dtype == computed ? r : rounded_down(dtype, r));
  }
  return result;
}

// Cosine and sine of an angle of up to pi / 4 in float32, by the polynomials of the Cephes library.
std::string eighth_turn(const std::string& h, const std::string& b, const std::string& cosine,
                        const std::string& sine) {
  return b + " = " + h + " * " + h + "; " + cosine + " = 1 - 0.5 * " + b + " + " + b + " * " + b +
         " * (0.041666645683 + " + b + " * (0.000024433157118 * " + b + " - 0.0013887316255)); " + sine + " = " + h +
         " + " + h + " * " + b + " * (" + b + " * (0.0083321608736 - 0.00019515295891 * " + b + ") - 0.16666654611); ";
}

// z0 = sqrt(-2 log(u)) cos(2 pi v), z1 the sine. v is taken in quarter turns from the nearest multiple, so that sine
// and cosine are accurate near their zeros. u is in (0, 1].
Distribution normal(const OpCall& call, compute_dtype dtype) {
  const compute_dtype computed = computed_in(dtype);
  const bool is_double = computed == COMPUTE_DTYPE_FLOAT64;
  const std::string least = is_double ? "1.1102230246251565404e-16" : "5.9604644775390625e-8";
  Distribution result;
  result.scalars = {attribute_term(call, "mean", computed), attribute_term(call, "deviation", computed)};
  for (size_t pair = 0; pair < elements_per_block(computed) / 2; ++pair) {
    const std::string i = std::to_string(pair), m = "m" + i, o = "o" + i, q = "q" + i, h = "h" + i;
    const std::string turns = "y" + i, cosine = "c" + i, sine = "z" + i;
    result.definitions += m + " = sqrt(-2 * log(" + fraction(computed, 2 * pair) + " + " + least + ")); ";
    result.definitions += o + " = (" + fraction(computed, 2 * pair + 1) + ") * 4; " + q + " = round(" + o + "); ";
    result.definitions += h + " = (" + o + " - " + q + ") * 1.5707963267948966192; ";
    result.definitions += turns + " = convert(" + q + ", int32) & 3; ";
    result.definitions += (is_double ? cosine + " = cos(" + h + "); " + sine + " = sin(" + h + "); "
                                     : eighth_turn(h, "b" + i, cosine, sine));
    const auto turned = [&](const std::string& first, const std::string& second, const std::string& third,
                            const std::string& fourth) {
      return "d + e * (" + m + " * where(" + turns + " == 0, " + first + ", where(" + turns + " == 1, " + second +
             ", where(" + turns + " == 2, " + third + ", " + fourth + "))))";
    };
    result.values.push_back(turned(cosine, "-" + sine, "-" + cosine, sine));
    result.values.push_back(turned(sine, cosine, "-" + sine, "-" + cosine));
  }
  return result;
}

// ---- Truncated normal numbers ---------------------------------------------------------------------------------------

// Tails are computed from depths, which neither underflow nor cancel: the depth of z > 0 is -log(erfc(z / sqrt(2))).

// erfc(z / sqrt(2)) as a factor of its leading term, from where erfc nears the end of the range.
std::string series(const std::string& z) {
  const std::string y = "1 / (" + z + " * " + z + ")";
  return "(1 - " + y + " * (1 - " + y + " * (3 - " + y + " * (15 - " + y + " * 105))))";
}

struct Tail {
  std::string first;  // the number of deviations from which the series is taken

  std::string depth(const std::string& z) const {
    return "where(" + z + " < " + first + ", -log(erfc(" + z + " * 0.70710678118654752440)), 0.5 * " + z + " * " + z +
           " + log(1.2533141373155002512 * " + z + ") - log(" + series(z) + "))";
  }
  // The reciprocal of the depth's derivative.
  std::string slope(const std::string& z) const {
    return "where(" + z + " < " + first + ", 1.2533141373155002512 * exp(0.5 * " + z + " * " + z + ") * erfc(" + z +
           " * 0.70710678118654752440), " + series(z) + " / " + z + ")";
  }
};

// z of a depth from 3 on, to 3e-8: z^2 = 2 depth - log(pi depth) + a polynomial in `root`, which is 1 / sqrt(depth).
std::string at_depth(const std::string& depth, const std::string& root) {
  constexpr const char* kCoefficients[] = {"-3.8692561114",  "11.0816460916", "-14.2127721659",  "11.330768598",
                                           "-6.31831476322", "1.77060845464", "0.0759796009808", "-0.00107029750125"};
  std::string polynomial = kCoefficients[0];
  for (size_t i = 1; i < std::size(kCoefficients); ++i)
    polynomial = "(" + polynomial + ") * " + root + " + " + kCoefficients[i];
  return "sqrt(2 * " + depth + " - log(3.14159265358979323846 * " + depth + ") + (" + polynomial + "))";
}

// Inverts the distribution function between its values at the limits: with erfinv near the mean, elsewhere from the
// probability of the nearer tail, relative to the limit's if the interval lies in a tail. Tail probabilities are
// doubled. The condition `is_central` is the same for all elements, so that a device can skip the tails.
Distribution truncated_normal(const OpCall& call, compute_dtype dtype) {
  const compute_dtype computed = computed_in(dtype);
  const bool is_double = computed == COMPUTE_DTYPE_FLOAT64;
  const Tail tail{is_double ? "34" : "10"};
  Distribution result;
  for (const char* name : {"mean", "deviation", "lower", "upper"})
    result.scalars.push_back(attribute_term(call, name, computed));
  result.definitions =
      "h = 0.70710678118654752440; low = erf(f * h); range = erf(g * h) - low; "
      // The nearer and the farther limit of an interval in a tail. Beyond 1e9 deviations numbers do not differ from it.
      "is_above = f > 1; is_tail = is_above | (g < -1); near = min(where(is_above, f, -g), 1e9); "
      "far = max(where(is_above, g, -f), near); depth = where(is_tail, " +
      tail.depth("near") + ", 0); rest = where(near < " + tail.first +
      ", erfc(far * h) / erfc(near * h), exp((near - far) * (0.5 * (near + far))) * (near / far) * (" + series("far") +
      " / " + series("near") +
      ")); below = where(is_tail, where(is_above, 2, rest), erfc(-f * h)); "
      "above = where(is_tail, where(is_above, rest, 2), erfc(g * h)); inside = where(is_tail, 1 - rest, range); "
      "is_central = depth - log(min(below, above)) <= 3.0901; ";
  for (size_t j = 0; j < elements_per_block(computed); ++j) {
    const std::string i = std::to_string(j), v = "v" + i + "_", l = "l" + i, u = "h" + i, d = "d" + i, y = "y" + i,
                      z = "z" + i, t = "t" + i + "_", c = "c" + i;
    result.definitions += v + " = " + open_fraction(computed, j) + "; " + l + " = below + " + v + " * inside; " + u +
                          " = above + (1 - " + v + ") * inside; " + d + " = depth - log(min(" + l + ", " + u + ")); " +
                          y + " = 1 / sqrt(" + d + "); " + z + " = " + at_depth(d, y) + "; ";
    // A step of Newton's method.
    const std::string tail_z = is_double ? z + " + (" + d + " - " + tail.depth(z) + ") * " + tail.slope(z) : z;
    result.definitions += t + " = copysign(" + tail_z + ", " + l + " - " + u + "); " + c +
                          " = 1.4142135623730950488 * erfinv(low + " + v + " * range); ";
    result.values.push_back("d + e * min(max(where(is_central, " + c + ", where(" + d + " > 3.0901, " + t + ", " + c +
                            ")), f), g)");
  }
  return result;
}

// 24 bits are compared with p as float32, so that every device decides alike.
Distribution bernoulli(const OpCall& call, compute_dtype dtype) {
  Distribution result;
  result.scalars = {attribute_term(call, "p", COMPUTE_DTYPE_FLOAT32)};
  for (size_t j = 0; j < 4; ++j) {
    const std::string value = fraction(COMPUTE_DTYPE_FLOAT32, j) + " < d";
    result.values.push_back(convert_text(value, COMPUTE_DTYPE_BOOL, dtype));
  }
  return result;
}

// 1 - p is rounded once where the device has float64.
Distribution dropout(const OpCall& call, compute_dtype dtype, bool has_float64) {
  const compute_dtype computed = computed_in(dtype),
                      wide = has_float64 ? compute_dtype{COMPUTE_DTYPE_FLOAT64} : computed;
  Distribution result;
  result.scalars = {attribute_term(call, "p", COMPUTE_DTYPE_FLOAT32), attribute_term(call, "p", wide)};
  result.definitions = "kept = " + convert_text("1 - e", wide, computed) + "; ";
  for (size_t j = 0; j < 4; ++j)
    result.values.push_back("where(" + fraction(COMPUTE_DTYPE_FLOAT32, j) + " < d, 0, @ / kept)");
  return result;
}

// minimum + the high word of a random 64-bit number times the range. The bias is below range / 2^64.
Distribution integers(const OpCall& call, compute_dtype dtype) {
  Distribution result;
  result.scalars = {attribute_term(call, "minimum", COMPUTE_DTYPE_INT64),
                    attribute_term(call, "maximum", COMPUTE_DTYPE_INT64)};
  result.definitions = "o = convert(e & -1, uint64) - convert(d & -1, uint64); ";
  for (const char* words : {"01", "23"}) {
    const std::string low = std::string("w") + words[0], high = std::string("w") + words[1];
    result.values.push_back("convert(convert(d & -1, uint64) + mul_high(convert(" + low + ", uint64) ^ (convert(" +
                            high + ", uint64) << 32), o), " + dtype_name(dtype) + ")");
  }
  return result;
}

Distribution bits(compute_dtype dtype) {
  if (dtype == COMPUTE_DTYPE_UINT32) return {"", {"w0", "w1", "w2", "w3"}};
  Distribution result;
  for (const char* words : {"01", "23"}) {
    result.values.push_back(std::string("convert(w") + words[0] + ", uint64) ^ (convert(w" + words[1] +
                            ", uint64) << 32)");
  }
  return result;
}

}  // namespace

void draw_words(Steps& steps, const OpCall& call, const StepOperand& to) {
  draw(steps, call, bits(COMPUTE_DTYPE_UINT64), to, nullptr);
}

namespace {

// ---- Ops ------------------------------------------------------------------------------------------------------------

std::vector<OutputDesc> infer_random(const OpCall& call, DtypeClass wanted) {
  const compute_dtype dtype = dtype_attribute(call, "dtype");
  if (!in_class(dtype, wanted))
    refuse_attribute(call, "dtype", "dtype is " + dtype_name(dtype) + "; expected " + class_description(wanted));
  const std::span<const int64_t> shape = call.attributes.int64_list(attribute_index(call, "shape"));
  return {{dtype, {shape.begin(), shape.end()}}};
}

std::vector<OutputDesc> infer_floats(const OpCall& call) { return infer_random(call, DtypeClass::kFloat); }
std::vector<OutputDesc> infer_integers(const OpCall& call) { return infer_random(call, DtypeClass::kInteger); }

std::vector<OutputDesc> infer_bits(const OpCall& call) {
  const compute_dtype dtype = dtype_attribute(call, "dtype");
  if (dtype != COMPUTE_DTYPE_UINT32 && dtype != COMPUTE_DTYPE_UINT64)
    refuse_attribute(call, "dtype", "dtype is " + dtype_name(dtype) + "; expected uint32 or uint64");
  return infer_integers(call);
}

std::vector<OutputDesc> infer_bernoulli(const OpCall& call) { return infer_random(call, DtypeClass::kAny); }

std::vector<OutputDesc> infer_dropout(const OpCall& call) {
  require_class(call, 0, DtypeClass::kFloat);
  const std::span<const int64_t> shape = call.inputs[0].extents();
  return {{call.inputs[0].dtype, {shape.begin(), shape.end()}}};
}

template <class Make>
std::optional<Lowering> lower_draw(const OpCall& call, const LoweringTarget& target, int32_t alternative, Make make) {
  if (alternative > 0) return std::nullopt;
  Steps steps(call, target);
  const StepOperand output = steps.output();
  draw(steps, call, make(output.dtype), output, nullptr);
  return steps.take();
}

std::optional<Lowering> lower_uniform(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  return lower_draw(call, target, alternative, [&](compute_dtype dtype) { return uniform(call, dtype); });
}

std::optional<Lowering> lower_normal(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  return lower_draw(call, target, alternative, [&](compute_dtype dtype) { return normal(call, dtype); });
}

std::optional<Lowering> lower_truncated_normal(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  return lower_draw(call, target, alternative, [&](compute_dtype dtype) { return truncated_normal(call, dtype); });
}

std::optional<Lowering> lower_bernoulli(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  return lower_draw(call, target, alternative, [&](compute_dtype dtype) { return bernoulli(call, dtype); });
}

std::optional<Lowering> lower_integers(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  return lower_draw(call, target, alternative, [&](compute_dtype dtype) { return integers(call, dtype); });
}

std::optional<Lowering> lower_bits(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  return lower_draw(call, target, alternative, bits);
}

std::optional<Lowering> lower_dropout(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 0) return std::nullopt;
  Steps steps(call, target);
  const StepOperand x = steps.input(0), output = steps.output();
  draw(steps, call, dropout(call, output.dtype, target.has_float64), output, &x);
  return steps.take();
}

}  // namespace

const OpRules dropout_1_rules{infer_dropout, lower_dropout};
const OpRules random_bernoulli_1_rules{infer_bernoulli, lower_bernoulli};
const OpRules random_bits_1_rules{infer_bits, lower_bits};
const OpRules random_integers_1_rules{infer_integers, lower_integers};
const OpRules random_normal_1_rules{infer_floats, lower_normal};
const OpRules random_truncated_normal_1_rules{infer_floats, lower_truncated_normal};
const OpRules random_uniform_1_rules{infer_floats, lower_uniform};

}  // namespace compute
