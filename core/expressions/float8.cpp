// SPDX-License-Identifier: Apache-2.0
#include "core/expressions/float8.hpp"

#include <algorithm>
#include <cassert>

#include "core/expressions/expression_builder.hpp"
#include "core/expressions/expression_template.hpp"
#include "core/expressions/expression_type.hpp"

namespace compute {

namespace {

// A format as texts of expressions. No step relies on subnormal numbers of float32, which devices may flush to 0.
struct Format {
  ExpressionTemplate decode;  // from int32, 0 to 255, to float32
  ExpressionTemplate encode;  // from the bits of a float32 as int32 to int32, 0 to 255
};

std::string text(int64_t value) { return std::to_string(value); }

// `mantissa` bits of a fraction are stored. Codes above `most_of_decode` are `special` as a float32. Bits of a float32
// from `over_from` on are too large and become `over`.
Format make_format(int mantissa, int bias, int64_t most_of_decode, const char* special, int64_t over_from,
                   const char* over, const char* nan) {
  constexpr std::string_view kName[] = {"x"};
  const std::string shift = text(23 - mantissa), m = "(x & 127)";
  const int64_t first = int64_t{1} << mantissa;                         // the code of the least normal number
  const std::string scale = text(int64_t{1} << (bias - 1 + mantissa));  // of the least subnormal number to 1
  const int64_t rebias = int64_t{127 - bias} << 23;
  // Subnormal numbers are integers times the least one.
  const std::string decode = "bitcast(where(" + m + " > " + text(most_of_decode) + ", " + special + ", where(" + m +
                             " < " + text(first) + ", bitcast(convert(" + m + ", float32) / " + scale + ", int32), (" +
                             m + " << " + shift + ") + " + text(rebias) + ")) | ((x & 128) << 24), float32)";
  // The bits are rounded as integers: a carry goes into the exponent.
  const std::string a = "(x & 2147483647)";
  const std::string normal = "(((" + a + " + ((" + a + " >> " + shift + ") & 1) + " +
                             text((int64_t{1} << (22 - mantissa)) - 1) + ") >> " + shift + ") - " +
                             text(rebias >> (23 - mantissa)) + ")";
  const std::string subnormal = "convert(round(bitcast(" + a + ", float32) * " + scale + "), int32)";
  const std::string encode = "where(" + a + " > 2139095040, " + nan + ", where(" + a + " >= " + text(over_from) + ", " +
                             over + ", where(" + a + " < " + text(int64_t{128 - bias} << 23) + ", " + subnormal + ", " +
                             normal + "))) | ((x >> 24) & 128)";
  return {parse(decode, kName), parse(encode, kName)};
}

const Format& format_of(compute_dtype dtype) {
  // Of e4m3fn the code 127 is NaN, and 464 is still rounded to 448. Of e5m2 the codes are upper bytes of float16, and
  // 61440 is rounded to infinity.
  static const Format& e4m3fn = *new Format(make_format(3, 7, 126, "2143289344", 0x43e80001, "127", "127"));
  static const Format& e5m2 =
      *new Format(make_format(2, 15, 123, "where((x & 127) == 124, 2139095040, 2143289344)", 0x47700000, "124", "126"));
  return dtype == COMPUTE_DTYPE_FLOAT8_E4M3FN ? e4m3fn : e5m2;
}

// The bits of float64 x as those of a float32 that is rounded to odd, so that the next rounding is the only one.
const ExpressionTemplate& odd_bits() {
  static const ExpressionTemplate& parsed = *new ExpressionTemplate([] {
    constexpr std::string_view kName[] = {"x"};
    const std::string near = "convert(x, float32)", back = "convert(" + near + ", float64)",
                      bits = "bitcast(" + near + ", int32)";
    return parse(
        "where(" + back + " == x, " + bits + ", where(abs(" + back + ") > abs(x), " + bits + " - 1, " + bits + ") | 1)",
        kName);
  }());
  return parsed;
}

int32_t build(ExpressionBuilder& builder, const ExpressionTemplate& text, int32_t node) {
  const TypedLeaf leaf{builder.dtype(node), false, node, -1};
  return build_expression(builder, text.data(), {&leaf, 1}, {}, "float8").front();
}

int32_t decoded(ExpressionBuilder& builder, int32_t bytes, compute_dtype from) {
  return build(builder, format_of(from).decode, builder.convert(bytes, COMPUTE_DTYPE_INT32));
}

int32_t encoded(ExpressionBuilder& builder, int32_t node, compute_dtype to) {
  // All integers that a float32 rounds are too large.
  const int32_t bits = builder.dtype(node) == COMPUTE_DTYPE_FLOAT64
                           ? build(builder, odd_bits(), node)
                           : builder.bitcast(builder.convert(node, COMPUTE_DTYPE_FLOAT32), COMPUTE_DTYPE_INT32);
  return builder.convert(build(builder, format_of(to).encode, bits), COMPUTE_DTYPE_UINT8);
}

}  // namespace

TypedExpression with_float8_as_bytes(const TypedExpression& expression) {
  const auto nodes = expression.nodes();
  if (std::ranges::none_of(nodes, [](const compute_plugin_node& node) { return is_float8(node.dtype); }))
    return expression;
  return rewrite(
      expression, stored_as,
      [&](ExpressionBuilder& builder, const compute_plugin_node& node, const std::vector<int32_t>& operands) {
        if (node.value != COMPUTE_PLUGIN_INTRINSIC_CONVERT) {
          assert(!is_float8(node.dtype) || node.value == COMPUTE_PLUGIN_INTRINSIC_BITCAST);
          return builder.any_call(node.value, operands, stored_as(node.dtype));
        }
        const compute_dtype from = nodes[static_cast<size_t>(expression.operands(node)[0])].dtype;
        const int32_t value = is_float8(from) ? decoded(builder, operands[0], from) : operands[0];
        return is_float8(node.dtype) ? encoded(builder, value, node.dtype) : builder.convert(value, node.dtype);
      });
}

TypedExpression float8_conversion(compute_dtype from, compute_dtype to) {
  ExpressionBuilder builder;
  const int32_t output = builder.convert(builder.input(0, from), to);
  return with_float8_as_bytes(builder.finish({&output, 1}, {0}));
}

}  // namespace compute
