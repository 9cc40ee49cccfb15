// SPDX-License-Identifier: Apache-2.0
// Ops of ONNX that compute each element by itself: text of the language of expressions.
#include <cstdio>

#include "../op_table.hpp"

namespace onnxruntime_compute {
namespace {

std::string text_of(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.17g", value);
  std::string made = text;
  if (made == "inf" || made == "nan") return made;
  if (made == "-inf") return "(-inf)";
  if (made.find_first_of(".e") == std::string::npos) made += ".0";
  return value < 0 ? "(" + made + ")" : made;
}

// Replaces each # by `value`.
std::string with(const std::string& text, const std::string& value) {
  std::string made;
  for (const char c : text) made += c == '#' ? value : std::string(1, c);
  return made;
}

constexpr const char* kSigmoid = "where($0 < 0, exp(where($0 < 0, $0, -$0)), 1) / (1 + exp(where($0 < 0, $0, -$0)))";
// The quotient of signed integers, rounded towards zero.
constexpr const char* kTruncated =
    "where((($0 - ($0 // $1) * $1) != 0) & (($0 < 0) ^ ($1 < 0)), ($0 // $1) + 1, $0 // $1)";

struct Plain {
  const char* name;
  int since;
  uint32_t dtypes;
  const char* text;
  bool gives_bool;
};
constexpr Plain kPlain[] = {
    {"Abs", 6, kNumbers, "abs($0)", false},
    {"Acos", 7, kReal, "acos($0)", false},
    {"Acosh", 9, kReal, "acosh($0)", false},
    {"Asin", 7, kReal, "asin($0)", false},
    {"Asinh", 9, kReal, "asinh($0)", false},
    {"Atan", 7, kReal, "atan($0)", false},
    {"Atanh", 9, kReal, "atanh($0)", false},
    {"Ceil", 6, kReal, "ceil($0)", false},
    {"Cos", 7, kReal, "cos($0)", false},
    {"Cosh", 9, kReal, "cosh($0)", false},
    {"Erf", 9, kReal, "erf($0)", false},
    {"Exp", 6, kReal, "exp($0)", false},
    {"Floor", 6, kReal, "floor($0)", false},
    {"HardSwish", 14, kReal, "where($0 <= -3, 0, where($0 >= 3, $0, $0 * (($0 + 3) / 6)))", false},
    {"IsNaN", 9, kReal, "isnan($0)", true},
    {"Log", 6, kReal, "log($0)", false},
    {"Mish", 18, kReal, "$0 * tanh(max($0, 0) + log1p(exp(-abs($0))))", false},
    {"Neg", 6, kNumbers, "-$0", false},
    {"Reciprocal", 6, kReal, "1 / $0", false},
    {"Relu", 6, kNumbers, "where($0 <= 0, 0, $0)", false},
    {"Round", 11, kReal, "round($0)", false},
    {"Sigmoid", 6, kReal, kSigmoid, false},
    {"Sign", 9, kNumbers, "sign($0)", false},
    {"Sin", 7, kReal, "sin($0)", false},
    {"Sinh", 9, kReal, "sinh($0)", false},
    {"Softplus", 1, kReal, "max($0, 0) + log1p(exp(-abs($0)))", false},
    {"Softsign", 1, kReal, "$0 / (1 + abs($0))", false},
    {"Sqrt", 6, kReal, "sqrt($0)", false},
    {"Tan", 7, kReal, "tan($0)", false},
    {"Tanh", 6, kReal, "tanh($0)", false},
    {"Not", 1, kBool, "~$0", true},
    {"BitwiseNot", 18, kIntegers, "~$0", false},
    // Of two inputs
    {"Add", 7, kNumbers, "$0 + $1", false},
    {"Sub", 7, kNumbers, "$0 - $1", false},
    {"Mul", 7, kNumbers, "$0 * $1", false},
    {"And", 7, kBool, "$0 & $1", true},
    {"Or", 7, kBool, "$0 | $1", true},
    {"Xor", 7, kBool, "$0 ^ $1", true},
    {"BitwiseAnd", 18, kIntegers, "$0 & $1", false},
    {"BitwiseOr", 18, kIntegers, "$0 | $1", false},
    {"BitwiseXor", 18, kIntegers, "$0 ^ $1", false},
    {"Equal", 7, kAny, "$0 == $1", true},
    {"Less", 7, kNumbers, "$0 < $1", true},
    {"LessOrEqual", 12, kNumbers, "$0 <= $1", true},
    {"Greater", 7, kNumbers, "$0 > $1", true},
    {"GreaterOrEqual", 12, kNumbers, "$0 >= $1", true},
    {"PRelu", 7, kNumbers, "where($0 < 0, $1 * $0, $0)", false},
};

void run_plain(Call& c) {
  for (const Plain& plain : kPlain) {
    if (c.node.type == plain.name) {
      return c.out(0, c.t.map(plain.text, c.all(), plain.gives_bool ? compute::bool_ : c.in(0).dtype));
    }
  }
}

// One operand and numbers in attributes.
struct Numbered {
  const char* name;
  int since;
  const char* text;  // # stands for the first attribute, @ for the second
  const char* attributes[2];
  double defaults[2];
};
constexpr Numbered kNumbered[] = {
    {"Celu", 12, "max($0, 0) + min(# * expm1($0 / #), 0)", {"alpha", nullptr}, {1, 0}},
    {"Elu", 6, "where($0 > 0, $0, # * expm1($0))", {"alpha", nullptr}, {1, 0}},
    {"HardSigmoid", 6, "min(max(# * $0 + @, 0), 1)", {"alpha", "beta"}, {0.2, 0.5}},
    {"LeakyRelu", 6, "where($0 < 0, # * $0, $0)", {"alpha", nullptr}, {0.01, 0}},
    {"Selu",
     6,
     "@ * where($0 > 0, $0, # * expm1($0))",
     {"alpha", "gamma"},
     {1.67326319217681884765625, 1.05070102214813232421875}},
    {"Shrink", 9, "where($0 < -#, $0 + @, where($0 > #, $0 - @, 0))", {"lambd", "bias"}, {0.5, 0}},
    {"Swish",
     24,
     "$0 * (where(# * $0 < 0, exp(where(# * $0 < 0, # * $0, -(# * $0))), 1) / (1 + exp(where(# * $0 < 0, # * $0, -(# * "
     "$0)))))",
     {"alpha", nullptr},
     {1, 0}},
    {"ThresholdedRelu", 10, "where($0 > #, $0, 0)", {"alpha", nullptr}, {1, 0}},
};

void run_numbered(Call& c) {
  for (const Numbered& op : kNumbered) {
    if (c.node.type != op.name) continue;
    std::string text = with(op.text, text_of(c.node.real(op.attributes[0], op.defaults[0])));
    if (op.attributes[1] != nullptr) {
      const std::string second = text_of(c.node.real(op.attributes[1], op.defaults[1]));
      std::string made;
      for (const char letter : text) made += letter == '@' ? second : std::string(1, letter);
      text = made;
    }
    return c.out(0, c.t.map(text, {c.in(0)}, c.in(0).dtype));
  }
}

void run_divide(Call& c) {
  const DType dtype = c.in(0).dtype;
  const char* const text = is_real(dtype) ? "$0 / $1" : is_unsigned(dtype) ? "$0 // $1" : kTruncated;
  c.out(0, c.t.map(text, {c.in(0), c.in(1)}, dtype));
}

void run_mod(Call& c) {
  const DType dtype = c.in(0).dtype;
  std::string text = "$0 % $1";
  if (c.node.integer("fmod", 0) != 0) {
    if (is_real(dtype)) {
      text = "where(signbit($0), -1, 1) * (where(signbit($0), -$0, $0) % abs($1))";
    } else if (!is_unsigned(dtype)) {
      text = "$0 - (" + std::string(kTruncated) + ") * $1";
    }
  }
  c.out(0, c.t.map(text, {c.in(0), c.in(1)}, dtype));
}

void run_pow(Call& c) {
  const Value& base = c.in(0);
  const Value& exponent = c.in(1);
  if (is_real(base.dtype) && exponent.is_constant() && exponent.size() == 1 && exponent.rank() <= base.rank()) {
    const double value = c.t.to_real(exponent);
    const char* const text = value == 2     ? "$0 * $0"
                             : value == 0.5 ? "sqrt($0)"
                             : value == 3   ? "$0 * $0 * $0"
                             : value == -1  ? "1 / $0"
                                            : nullptr;
    if (text != nullptr) return c.out(0, c.t.map(text, {base}, base.dtype));
  }
  const std::string name(base.dtype.name());
  if (base.dtype == exponent.dtype) return c.out(0, c.t.map("$0 ** $1", {base, exponent}, base.dtype));
  if (!is_real(base.dtype) && is_real(exponent.dtype)) {
    const std::string wide(exponent.dtype.name());
    return c.out(0, c.t.map("convert(convert($0, " + wide + ") ** $1, " + name + ")", {base, exponent}, base.dtype));
  }
  c.out(0, c.t.map("$0 ** convert($1, " + name + ")", {base, exponent}, base.dtype));
}

void run_shift(Call& c) {
  c.out(0, c.t.map(c.node.text("direction") == "LEFT" ? "$0 << $1" : "$0 >> $1", {c.in(0), c.in(1)}, c.in(0).dtype));
}

void run_isinf(Call& c) {
  const bool negative = c.node.integer("detect_negative", 1) != 0, positive = c.node.integer("detect_positive", 1) != 0;
  const char* const text = negative && positive ? "isinf($0)"
                           : negative           ? "$0 == -inf"
                           : positive           ? "$0 == inf"
                                                : "($0 != $0) & ($0 == $0)";
  c.out(0, c.t.map(text, {c.in(0)}, compute::bool_));
}

void run_gelu(Call& c) {
  const char* const text = c.node.text("approximate", "none") == "tanh"
                               ? "0.5 * $0 * (1 + tanh(0.79788456080286535588 * ($0 + 0.044715 * $0 * $0 * $0)))"
                               : "0.5 * $0 * (1 + erf($0 * 0.7071067811865475244))";
  c.out(0, c.t.map(text, {c.in(0)}, c.in(0).dtype));
}

// Any number of inputs, from the left to the right.
void run_variadic(Call& c) {
  const std::string& type = c.node.type;
  const std::string text = type == "Max" ? "max($0, $1)" : type == "Min" ? "min($0, $1)" : "$0 + $1";
  Value value = c.in(0);
  for (size_t i = 1; i < c.count(); ++i) value = c.t.map(text, {value, c.in(i)}, value.dtype);
  if (type == "Mean" && c.count() > 1) {
    value = c.t.map(with("$0 / #", text_of(static_cast<double>(c.count()))), {value}, value.dtype);
  }
  c.out(0, value);
}

void run_clip(Call& c) {
  Value value = c.in(0);
  const DType dtype = value.dtype;
  if (c.node.version < 11) {
    if (c.node.has_attribute("min"))
      value = c.t.map(with("max($0, #)", text_of(c.node.real("min", 0))), {value}, dtype);
    if (c.node.has_attribute("max"))
      value = c.t.map(with("min($0, #)", text_of(c.node.real("max", 0))), {value}, dtype);
  } else {
    if (c.has(1)) value = c.t.map("max($0, $1)", {value, c.in(1)}, dtype);
    if (c.has(2)) value = c.t.map("min($0, $1)", {value, c.in(2)}, dtype);
  }
  c.out(0, value);
}

void run_where(Call& c) { c.out(0, c.t.map("where($0, $1, $2)", {c.in(0), c.in(1), c.in(2)}, c.in(1).dtype)); }

DType wanted_dtype(const Call& c) { return dtype_of_onnx(static_cast<int32_t>(c.node.integer("to", 0))); }

// float8 gets its greatest number instead of what is greater, unless `saturate` is 0.
Value cast_as_stored(Call& c, const Value& x, DType dtype) {
  if (!is_float8(dtype) || c.node.integer("saturate", 1) == 0) return c.t.cast(x, dtype);
  const Value wide = x.dtype == compute::float64 ? x : c.t.cast(x, compute::float32);
  const std::string most = dtype == compute::float8_e4m3fn ? "448.0" : "57344.0";
  return c.t.cast(c.t.map("where($0 > " + most + ", " + most + ", where($0 < -" + most + ", -" + most + ", $0))",
                          {wide}, wide.dtype),
                  dtype);
}

void run_cast(Call& c) { c.out(0, cast_as_stored(c, c.in(0), wanted_dtype(c))); }
void run_cast_like(Call& c) { c.out(0, cast_as_stored(c, c.in(0), c.in(1).dtype)); }

std::string refuse_bit_cast(const Claim& claim) {
  const DType to = claim.output_dtype(0);
  return to.size() != claim.dtype(0).size() ? "elements of another size" : "";
}
void run_bit_cast(Call& c) { c.out(0, c.t.reinterpret(c.in(0), wanted_dtype(c))); }

void run_identity(Call& c) { c.out(0, c.in(0)); }

std::string refuse_dropout(const Claim& claim) {
  if (claim.node.has_input(2)) return "training";
  if (claim.node.has_output(1) && claim.output_dtype(1) != compute::bool_) return "its mask";
  return "";
}

void run_dropout(Call& c) {
  c.out(0, c.in(0));
  c.out(1, c.t.fill(1, compute::bool_, c.in(0).shape));
}

// What has an element for each block of `block` elements of an axis, as a tensor of `shape`.
Value of_blocks(Call& c, const Value& value, int64_t axis, int64_t block, const Shape& shape) {
  const auto at = static_cast<size_t>(Call::axis_of(axis, static_cast<int64_t>(shape.size())));
  Shape apart(value.shape), repeated, joined(value.shape);
  apart.insert(apart.begin() + static_cast<int64_t>(at) + 1, 1);
  repeated = apart;
  repeated[at + 1] = block;
  joined[at] *= block;
  const Value all = c.t.reshape(c.t.broadcast_to(c.t.reshape(value, apart), repeated), joined);
  return c.t.slice_axis(all, static_cast<int64_t>(at), 0, shape[at]);
}

// A scale or a zero point of a node, as an operand that broadcasts to `x`.
Value along_axis(Call& c, const Value& value, int64_t axis, int64_t rank);
Value parameter(Call& c, const Value& value, const Value& x) {
  const int64_t axis = c.node.integer("axis", 1), block = c.node.integer("block_size", 0);
  return block > 0 ? of_blocks(c, value, axis, block, x.shape) : along_axis(c, value, axis, x.rank());
}

// A tensor for one axis of `rank`, as an operand that broadcasts.
Value along_axis(Call& c, const Value& value, int64_t axis, int64_t rank) {
  if (value.rank() != 1 || rank == 0) return value;
  Shape shape(static_cast<size_t>(rank), 1);
  shape[static_cast<size_t>(Call::axis_of(axis, rank))] = value.shape[0];
  return value.shape[0] == 1 ? c.t.reshape(value, {}) : c.t.reshape(value, shape);
}

std::string refuse_quantized(const Claim& claim) {
  const DType given = claim.node.type == "QuantizeLinear" ? claim.output_dtype(0) : claim.dtype(0);
  if (given != compute::int8 && given != compute::uint8 && given != compute::int16 && given != compute::uint16 &&
      given != compute::int32 && !is_float8(given)) {
    return "the dtype " + std::string(given.name());
  }
  if (claim.node.type == "QuantizeLinear" && claim.dtype(0) != claim.dtype(1)) return "mixed dtypes";
  return "";
}

std::pair<double, double> range_of(DType dtype) {
  if (dtype == compute::int8) return {-128, 127};
  if (dtype == compute::uint8) return {0, 255};
  if (dtype == compute::int16) return {-32768, 32767};
  return {0, 65535};
}

void run_quantize(Call& c) {
  const Value& x = c.in(0);
  const Value scale = parameter(c, c.in(1), x);
  DType dtype = compute::uint8;
  Value zero;
  if (c.has(2)) {
    dtype = c.in(2).dtype;
    zero = c.t.cast(parameter(c, c.in(2), x), compute::float32);
  } else if (c.node.integer("output_dtype", 0) != 0) {
    dtype = dtype_of_onnx(static_cast<int32_t>(c.node.integer("output_dtype", 0)));
  }
  if (is_float8(dtype)) {
    const Value quotient = c.t.map("$0 / $1", {x, scale}, x.dtype);
    const Value moved = zero.is_present()
                            ? c.t.map("$0 + $1", {c.t.cast(quotient, compute::float32), zero}, compute::float32)
                            : quotient;
    return c.out(0, cast_as_stored(c, moved, dtype));
  }
  const auto [least, greatest] = range_of(dtype);
  const Value quotient = c.t.cast(c.t.map("round($0 / $1)", {x, scale}, x.dtype), compute::float32);
  const Value moved = zero.is_present() ? c.t.map("$0 + $1", {quotient, zero}, compute::float32) : quotient;
  c.out(0, c.t.map("convert(min(max($0, " + text_of(least) + "), " + text_of(greatest) + "), " +
                       std::string(dtype.name()) + ")",
                   {moved}, dtype));
}

void run_dequantize(Call& c) {
  const Value& x = c.in(0);
  const Value scale = parameter(c, c.in(1), x);
  Value number = c.t.cast(x, compute::float32);
  if (c.has(2)) {
    number = c.t.map("$0 - $1", {number, c.t.cast(parameter(c, c.in(2), x), compute::float32)}, compute::float32);
  }
  const Value wide = c.t.cast(scale, compute::float32);
  c.out(0, c.t.cast(c.t.map("$0 * $1", {number, wide}, compute::float32), scale.dtype));
}

void run_dynamic_quantize(Call& c) {
  const Value x = c.t.settle(c.in(0));
  const Value greatest = c.t.op("max", {x}), least = c.t.op("min", {x});
  const Value scale = c.t.settle(
      c.t.map("where(max($0, 0) == min($1, 0), 1, (max($0, 0) - min($1, 0)) / 255)", {greatest, least}, x.dtype));
  const Value zero = c.t.settle(
      c.t.map("convert(min(max(round((0 - min($0, 0)) / $1), 0), 255), uint8)", {least, scale}, compute::uint8));
  c.out(0, c.t.map("convert(min(max(round($0 / $1) + convert($2, float32), 0), 255), uint8)", {x, scale, zero},
                   compute::uint8));
  c.out(1, scale);
  c.out(2, zero);
}

}  // namespace

void add_elementwise(std::vector<OpEntry>& table) {
  for (const Plain& plain : kPlain)
    table.push_back({plain.name, plain.since, kNewest, plain.dtypes, 0, nullptr, run_plain});
  for (const Numbered& op : kNumbered) table.push_back({op.name, op.since, kNewest, kReal, 0, nullptr, run_numbered});
  table.push_back({"Div", 7, kNewest, kNumbers, 0, nullptr, run_divide});
  table.push_back({"Mod", 10, kNewest, kNumbers, 0, nullptr, run_mod});
  table.push_back({"Pow", 7, kNewest, kNumbers, 0, nullptr, run_pow});
  table.push_back({"BitShift", 11, kNewest, kIntegers, 0, nullptr, run_shift});
  table.push_back({"IsInf", 10, kNewest, kReal, 0, nullptr, run_isinf});
  table.push_back({"Gelu", 20, kNewest, kReal, 0, nullptr, run_gelu});
  table.push_back({"Max", 8, kNewest, kNumbers, 0, nullptr, run_variadic});
  table.push_back({"Min", 8, kNewest, kNumbers, 0, nullptr, run_variadic});
  table.push_back({"Sum", 8, kNewest, kReal, 0, nullptr, run_variadic});
  table.push_back({"Mean", 8, kNewest, kReal, 0, nullptr, run_variadic});
  table.push_back({"Clip", 6, kNewest, kNumbers, 0, nullptr, run_clip});
  table.push_back({"Where", 9, kNewest, kBool, 0, nullptr, run_where});
  table.push_back({"Cast", 6, kNewest, kStored, 0, nullptr, run_cast});
  table.push_back({"CastLike", 15, kNewest, kStored, 0, nullptr, run_cast_like});
  table.push_back({"BitCast", 26, kNewest, kAny, 0, refuse_bit_cast, run_bit_cast});
  table.push_back({"Identity", 1, kNewest, kStored, 0, nullptr, run_identity});
  table.push_back({"Dropout", 7, kNewest, kReal, 0, refuse_dropout, run_dropout});
  table.push_back({"QuantizeLinear", 10, kNewest, kReal | kFloat8, 0, refuse_quantized, run_quantize});
  table.push_back({"DequantizeLinear", 10, kNewest, kIntegers | kFloat8, 0, refuse_quantized, run_dequantize});
  table.push_back({"DynamicQuantizeLinear", 11, kNewest, kReal, 0, nullptr, run_dynamic_quantize});
}

}  // namespace onnxruntime_compute
