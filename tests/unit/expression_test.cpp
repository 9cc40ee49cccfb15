// SPDX-License-Identifier: Apache-2.0
#include "core/expressions/expression.hpp"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <cmath>
#include <map>
#include <random>
#include <set>

#include "core/base/error.hpp"
#include "core/expressions/float8.hpp"
#include "core/ops/rows.hpp"
#include "core/ops/schema.hpp"
#include "tests/unit/strict_promotion.hpp"

namespace compute {
namespace {

constexpr compute_dtype kBool = COMPUTE_DTYPE_BOOL;
constexpr compute_dtype kByte = COMPUTE_DTYPE_INT8;
constexpr compute_dtype kInt = COMPUTE_DTYPE_INT32;
constexpr compute_dtype kLong = COMPUTE_DTYPE_INT64;
constexpr compute_dtype kHalf = COMPUTE_DTYPE_FLOAT16;
constexpr compute_dtype kFloat = COMPUTE_DTYPE_FLOAT32;
constexpr compute_dtype kDouble = COMPUTE_DTYPE_FLOAT64;
constexpr compute_dtype kComplex = COMPUTE_DTYPE_COMPLEX64;

constexpr std::string_view kNames[] = {"a", "b", "c"};
constexpr std::string_view kScalarNames[] = {"s", "t"};

// Typed over a, b, c of these dtypes; then the scalars s and t.
TypedExpression typed(std::string_view text, std::vector<LeafDesc> inputs, std::vector<LeafDesc> scalars = {},
                      std::vector<compute_dtype> wanted = {}) {
  const ExpressionTemplate parsed =
      parse(text, std::span(kNames).first(inputs.size()), std::span(kScalarNames).first(scalars.size()));
  inputs.insert(inputs.end(), scalars.begin(), scalars.end());
  return type_expression(parsed, inputs, wanted);
}

std::string text_of(std::string_view text, std::vector<LeafDesc> inputs, std::vector<LeafDesc> scalars = {},
                    std::vector<compute_dtype> wanted = {}) {
  return typed(text, std::move(inputs), std::move(scalars), std::move(wanted)).to_string();
}

// The whole message, of parsing or of typing over float32.
std::string fault(std::string_view text, std::vector<LeafDesc> inputs = {{kFloat}, {kFloat}},
                  std::vector<LeafDesc> scalars = {}, std::vector<compute_dtype> wanted = {}) {
  try {
    typed(text, std::move(inputs), std::move(scalars), std::move(wanted));
  } catch (const Error& error) {
    EXPECT_EQ(error.code, COMPUTE_ERROR_INVALID_ARGUMENT);
    return error.message;
  }
  ADD_FAILURE() << "nothing was thrown for " << text;
  return "";
}

// Its first line without the column.
std::string fault_line(std::string_view text, std::vector<LeafDesc> inputs = {{kFloat}, {kFloat}},
                       std::vector<LeafDesc> scalars = {}, std::vector<compute_dtype> wanted = {}) {
  const std::string message = fault(text, std::move(inputs), std::move(scalars), std::move(wanted));
  const size_t start = message.find(": ") + 2;
  return message.substr(start, message.find('\n') - start);
}

// The expression as nested calls, to see how it was parsed.
std::string tree(std::string_view text) {
  const TypedExpression e = typed(text, {{kInt}, {kInt}, {kInt}});
  const std::function<std::string(int32_t)> show = [&](int32_t n) -> std::string {
    const compute_plugin_node& node = e.nodes()[static_cast<size_t>(n)];
    if (node.kind == COMPUTE_PLUGIN_NODE_INPUT) return std::string(kNames[node.value]);
    if (node.kind == COMPUTE_PLUGIN_NODE_CONSTANT)
      return scalar_text(scalar_from_memory(node.dtype, node.bits), node.dtype);
    std::string result = std::string(find_intrinsic(node.value)->name) + "(";
    for (const int32_t operand : e.operands(node)) result += (result.back() == '(' ? "" : ",") + show(operand);
    return result + ")";
  };
  return show(e.plugin_view().outputs[0]);
}

// ---- Parsing --------------------------------------------------------------------------------------------------------

TEST(ExpressionParse, Precedence) {
  EXPECT_EQ(tree("a - b - c"), "sub(sub(a,b),c)");
  EXPECT_EQ(tree("a - b * c"), "sub(a,mul(b,c))");
  EXPECT_EQ(tree("(a - b) * c"), "mul(c,sub(a,b))");
  EXPECT_EQ(tree("a // b % c"), "mod(floor_div(a,b),c)");
  EXPECT_EQ(tree("a ** b ** c"), "pow(a,pow(b,c))");
  EXPECT_EQ(tree("-a ** b"), "neg(pow(a,b))");
  EXPECT_EQ(tree("a ** -b"), "pow(a,neg(b))");
  EXPECT_EQ(tree("~-a"), "bit_not(neg(a))");
  EXPECT_EQ(tree("a << b + c"), "shl(a,add(b,c))");
  EXPECT_EQ(tree("a | b ^ c & a"), "bit_or(a,bit_xor(b,bit_and(a,c)))");
  EXPECT_EQ(tree("a & b == c"), "eq(c,bit_and(a,b))");
  EXPECT_EQ(tree("a >> 1 < b"), "lt(shr(a,1),b)");
  EXPECT_EQ(tree("a != b"), "ne(a,b)");
  EXPECT_EQ(tree("where(a >= b, a, -2)"), "where(ge(a,b),a,-2)");
  EXPECT_EQ(tree(" \n min ( a ,b )\t"), "min(a,b)");
}

TEST(ExpressionParse, NamesOfValues) {
  EXPECT_EQ(tree("h = a * b; h + h"), "add(mul(a,b),mul(a,b))");
  EXPECT_EQ(tree("h = a + b; k = h * c; k - h"), "sub(mul(c,add(a,b)),add(a,b))");
  EXPECT_EQ(tree("k = 2; a + -k"), "add(a,-2)");
  EXPECT_EQ(tree("k = 2; h = 3 * k; a + b"), "add(a,b)");
  EXPECT_EQ(tree("a == b"), "eq(a,b)");
  // Functions that are newer than 1.0 do not take their names.
  EXPECT_EQ(text_of("i0 = a * a; i0(i0)", {{kFloat}}), text_of("h = a * a; i0(h)", {{kFloat}}));
  const auto refused = [](std::string_view text, const std::string& message) {
    try {
      tree(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_NE(error.message.find(message), std::string::npos) << error.message;
    }
  };
  refused("a = b; a", "\"a\" has a value already");
  refused("h = a; h = b; h", "\"h\" has a value already");
  refused("exp = a; a", "\"exp\" is not a free name");
  refused("h = a", "there is no output");
  refused("h = h + a; h", "unknown name \"h\"");
  refused("g + a; g = b", "unknown name \"g\"");
}

TEST(ExpressionParse, Numbers) {
  const auto value = [](std::string_view text, compute_dtype dtype) {
    const TypedExpression e = typed(text, {{kFloat}}, {}, {dtype});
    EXPECT_EQ(e.nodes().size(), 1u) << text;
    return scalar_text(scalar_from_memory(dtype, e.nodes()[0].bits), dtype);
  };
  EXPECT_EQ(value("0x7f", kInt), "127");
  EXPECT_EQ(value("-128", kByte), "-128");
  EXPECT_EQ(value("- -5", kInt), "5");
  EXPECT_EQ(value("18446744073709551615", COMPUTE_DTYPE_UINT64), "18446744073709551615");
  EXPECT_EQ(value("-9223372036854775808", kLong), "-9223372036854775808");
  EXPECT_EQ(value("1.5e3", kFloat), "1500");
  EXPECT_EQ(value(".25", kFloat), "0.25");
  EXPECT_EQ(value("2.", kDouble), "2");
  EXPECT_EQ(value("3", kComplex), "3+0i");
  EXPECT_EQ(value("-inf", kFloat), "-inf");
  EXPECT_EQ(value("nan", kDouble), "nan");
  EXPECT_EQ(value("true", kBool), "true");
  // Rounded to float32 once, not by way of float64.
  EXPECT_EQ(value("1.00000017881393432617187499", kFloat), value("1.0000001192092896", kFloat));
}

TEST(ExpressionParse, FaultsHaveACaret) {
  EXPECT_EQ(fault("tahn(a) + 1"),
            "expression, column 1: unknown function \"tahn\"; did you mean \"tanh\"?\n  tahn(a) + 1\n  ^");
  EXPECT_EQ(fault("a +\n  b * logg(a)"),
            "expression, column 7: unknown function \"logg\"; did you mean \"log\"?\n    b * logg(a)\n        ^");
  EXPECT_EQ(fault("a + "), "expression, column 5: an operand is missing\n  a + \n      ^");
}

TEST(ExpressionParse, FaultTexts) {
  EXPECT_EQ(fault_line(""), "an operand is missing");
  EXPECT_EQ(fault_line("a;"), "an operand is missing");
  EXPECT_EQ(fault_line("a b"), "unexpected 'b'");
  EXPECT_EQ(fault_line("a $ b"), "unexpected '$'");
  EXPECT_EQ(fault_line("* a"), "expected an operand, not '*'");
  EXPECT_EQ(fault_line("(a"), "expected ')' to close '(' at column 1");
  EXPECT_EQ(fault_line("exp(a"), "expected ')' to close 'exp(' at column 1");
  EXPECT_EQ(fault_line("exp"), "expected '(' after exp");
  EXPECT_EQ(fault_line("exp()"), "expected an operand, not ')'");
  EXPECT_EQ(fault_line("max(a)"), "max takes 2 arguments, not 1");
  EXPECT_EQ(fault_line("exp(a, b)"), "exp takes 1 argument, but more were given");
  EXPECT_EQ(fault_line("alpha"), "unknown name \"alpha\"");
  EXPECT_EQ(fault_line("aa"), "unknown name \"aa\"; did you mean \"a\"?");
  EXPECT_EQ(fault_line("a < b < a"), "comparisons cannot be chained; put each in parentheses and combine them with &");
  EXPECT_EQ(fault_line("1.5.2"), "malformed number");
  EXPECT_EQ(fault_line("1e"), "malformed number");
  EXPECT_EQ(fault_line("0x"), "malformed number");
  EXPECT_EQ(fault_line("12abc"), "malformed number");
  EXPECT_EQ(fault_line("."), "malformed number");
  EXPECT_EQ(fault_line("99999999999999999999"), "number out of range");
  EXPECT_EQ(fault_line("1e999"), "number out of range");
  EXPECT_EQ(fault_line("convert(a)"), "expected ',' after the operand");
  EXPECT_EQ(fault_line("convert(a, float23)"), "unknown dtype \"float23\"; did you mean \"float32\"?");
  EXPECT_EQ(fault_line("convert(a, )"), "expected a dtype");
  EXPECT_EQ(fault_line("index(32)"), "index takes an axis from 0 to 31");
  EXPECT_EQ(fault_line("index(-1)"), "index takes an axis from 0 to 31");
  EXPECT_EQ(fault_line("index(a)"), "index takes an axis from 0 to 31");
}

TEST(ExpressionParse, NamesOfLeaves) {
  const auto refused = [](std::vector<std::string_view> inputs, std::vector<std::string_view> scalars) -> std::string {
    try {
      parse("1", inputs, scalars);
    } catch (const Error& error) {
      return error.message;
    }
    return "";
  };
  EXPECT_EQ(refused({"a", "a"}, {}), "expression: \"a\" is given twice");
  EXPECT_EQ(refused({"a"}, {"a"}), "expression: \"a\" is given twice");
  EXPECT_EQ(refused({""}, {}), "expression: \"\" is not a valid name");
  EXPECT_EQ(refused({"2a"}, {}), "expression: \"2a\" is not a valid name");
  EXPECT_EQ(refused({"a b"}, {}), "expression: \"a b\" is not a valid name");
  EXPECT_EQ(refused({"true"}, {}), "expression: \"true\" is a literal, not a name");
  // A leaf may be called as a function is.
  constexpr std::string_view kFunctions[] = {"exp", "index"};
  EXPECT_EQ(parse("exp(exp) + index", kFunctions).output_count(), 1);
}

TEST(ExpressionParse, Limits) {
  const auto nested = [](int depth) {
    return std::string(static_cast<size_t>(depth), '(') + "a" + std::string(static_cast<size_t>(depth), ')');
  };
  EXPECT_EQ(parse(nested(kMaxExpressionDepth - 1), std::span(kNames).first(1)).output_count(), 1);
  EXPECT_EQ(fault_line(nested(kMaxExpressionDepth)), "nested more than 128 levels deep");
  EXPECT_EQ(fault_line(nested(30000)), "nested more than 128 levels deep");
  EXPECT_EQ(fault_line(std::string(30000, '-')), "nested more than 128 levels deep");
  EXPECT_EQ(fault_line(std::string(30000, '~') + "a"), "nested more than 128 levels deep");
  std::string powers = "a";
  for (int i = 0; i < 200; ++i) powers += "**a";
  EXPECT_EQ(fault_line(powers), "nested more than 128 levels deep");
  // A long sum is not deeply nested.
  std::string sum = "a";
  for (int i = 1; i < kMaxExpressionNodes / 2; ++i) sum += "+a";
  EXPECT_EQ(typed(sum, {{kFloat}}).output_count(), 1);
  EXPECT_EQ(fault_line(sum + "+a+a"), "more than 4096 operations");
  std::string outputs = "a";
  for (int i = 0; i < kMaxExpressionOutputs; ++i) outputs += ";a";
  EXPECT_EQ(fault_line(outputs), "more than 64 outputs");
  EXPECT_EQ(fault(std::string(kMaxExpressionText + 1, ' ')),
            "expression: the text is 65537 bytes long; the limit is 65536");
}

// ---- Typing ---------------------------------------------------------------------------------------------------------

TEST(ExpressionType, PlainCallIsOneNode) {
  EXPECT_EQ(text_of("exp(a)", {{kFloat}}), "n0 = input 0: float32\nn1 = exp(n0): float32\noutput n1");
}

TEST(ExpressionType, HalfComputesInFloatAndRoundsOnce) {
  EXPECT_EQ(text_of("tanh(a * b + 1)", {{kHalf}, {kHalf}}),
            "n0 = input 0: float16\nn1 = input 1: float16\nn2 = convert(n0): float32\nn3 = convert(n1): float32\n"
            "n4 = mul(n2, n3): float32\nn5 = 1: float32\nn6 = add(n4, n5): float32\nn7 = tanh(n6): float32\n"
            "n8 = convert(n7): float16\noutput n8");
  EXPECT_EQ(text_of("a", {{kHalf}}), "n0 = input 0: float16\noutput n0");
  EXPECT_EQ(text_of("a < b", {{kHalf}, {kHalf}}),
            "n0 = input 0: float16\nn1 = input 1: float16\nn2 = convert(n0): float32\nn3 = convert(n1): float32\n"
            "n4 = lt(n2, n3): bool\noutput n4");
  // float16 with bfloat16 is float32, and so is the result.
  EXPECT_EQ(typed("a + b", {{kHalf}, {COMPUTE_DTYPE_BFLOAT16}}).output_dtype(0), kFloat);
  // A convert asks for rounding on the way.
  EXPECT_EQ(text_of("convert(a, float16) + a", {{kFloat}}),
            "n0 = input 0: float32\nn1 = convert(n0): float16\nn2 = convert(n1): float32\nn3 = add(n0, n2): "
            "float32\noutput n3");
}

TEST(ExpressionType, PromotionIsExplicit) {
  EXPECT_EQ(text_of("a + b", {{kByte}, {kInt}}),
            "n0 = input 0: int8\nn1 = input 1: int32\nn2 = convert(n0): int32\nn3 = add(n1, n2): int32\noutput n3");
  EXPECT_EQ(text_of("a * b", {{kFloat}, {kComplex}}),
            "n0 = input 0: float32\nn1 = input 1: complex64\nn2 = convert(n0): complex64\nn3 = mul(n1, n2): "
            "complex64\noutput n3");
  EXPECT_EQ(typed("a + b", {{COMPUTE_DTYPE_UINT32}, {kInt}}).output_dtype(0), kLong);
}

TEST(ExpressionType, LiteralsAreWeak) {
  EXPECT_EQ(text_of("a + 1", {{kByte}}), "n0 = input 0: int8\nn1 = 1: int8\nn2 = add(n0, n1): int8\noutput n2");
  EXPECT_EQ(typed("a * 0.5 + 1", {{kComplex}}).output_dtype(0), kComplex);
  EXPECT_EQ(text_of("(1 + 2) * a", {{kFloat}}),
            "n0 = input 0: float32\nn1 = 1: float32\nn2 = 2: float32\nn3 = add(n1, n2): float32\nn4 = mul(n0, n3): "
            "float32\noutput n4");
  EXPECT_EQ(text_of("complex(0, 1) * a", {{kFloat}}),
            "n0 = input 0: float32\nn1 = 0: float32\nn2 = 1: float32\nn3 = complex(n1, n2): complex64\n"
            "n4 = convert(n0): complex64\nn5 = mul(n3, n4): complex64\noutput n5");
  EXPECT_EQ(typed("abs(complex(3, 4)) * a", {{kDouble}}).output_dtype(0), kDouble);
  EXPECT_EQ(typed("where(a < 0, 0, a)", {{kHalf}}).output_dtype(0), kHalf);
  EXPECT_EQ(typed("1; 2.5", {}, {}, {kInt, kFloat}).output_dtype(1), kFloat);
  EXPECT_EQ(text_of("convert(1.5, int32)", {}), "n0 = 1: int32\noutput n0");
  EXPECT_EQ(text_of("convert(1, bool)", {}), "n0 = true: bool\noutput n0");
}

TEST(ExpressionType, ScalarsAreSlots) {
  const TypedExpression e = typed("a * s + t", {{kHalf}}, {{kDouble, true}, {kFloat}});
  EXPECT_EQ(e.output_dtype(0), kFloat);
  ASSERT_EQ(e.scalars().size(), 2u);
  EXPECT_EQ(e.scalars()[0], (ScalarSlot{1, kHalf}));
  EXPECT_EQ(e.scalars()[1], (ScalarSlot{2, kFloat}));
  // A scalar that is used in two dtypes has two slots; one that is not used has none.
  const TypedExpression two = typed("a * s; b * s", {{kFloat}, {kDouble}}, {{kDouble, true}, {kInt}});
  ASSERT_EQ(two.scalars().size(), 2u);
  EXPECT_EQ(two.scalars()[0], (ScalarSlot{2, kFloat}));
  EXPECT_EQ(two.scalars()[1], (ScalarSlot{2, kDouble}));
  // It comes converted.
  EXPECT_EQ(text_of("a + s", {{kInt}}, {{kByte}}),
            "n0 = input 0: int32\nn1 = scalar 0: int32\nn2 = add(n0, n1): int32\noutput n2");
  // An input that is a scalar takes no INPUT number.
  const TypedExpression mixed = typed("a + b * c", {{kFloat}, {kFloat, true, true}, {kFloat}});
  EXPECT_EQ(mixed.input_count(), 2);
  EXPECT_EQ(std::vector(mixed.input_leaves().begin(), mixed.input_leaves().end()), (std::vector<int32_t>{0, 2}));
  // Numbers alone keep their own dtype.
  EXPECT_EQ(typed("s * 2", {}, {{kFloat, true}}).output_dtype(0), kFloat);
  EXPECT_EQ(typed("s < t", {}, {{kInt, true}, {kFloat, true}}).output_dtype(0), kBool);
  EXPECT_EQ(typed("s & true", {}, {{kBool, true}}).output_dtype(0), kBool);
}

TEST(ExpressionType, Identities) {
  for (const char* f : {"floor", "ceil", "trunc", "round", "conj"}) {
    EXPECT_EQ(text_of(std::string(f) + "(a)", {{kInt}}), "n0 = input 0: int32\noutput n0") << f;
  }
  EXPECT_EQ(text_of("conj(a)", {{kHalf}}), "n0 = input 0: float16\noutput n0");
  EXPECT_EQ(text_of("abs(a)", {{COMPUTE_DTYPE_UINT8}}), "n0 = input 0: uint8\noutput n0");
  EXPECT_EQ(text_of("isnan(a)", {{kInt}}), "n0 = false: bool\noutput n0");
  EXPECT_EQ(text_of("isfinite(a)", {{kInt}}), "n0 = true: bool\noutput n0");
  EXPECT_EQ(text_of("convert(a, float32)", {{kFloat}}), "n0 = input 0: float32\noutput n0");
  EXPECT_EQ(text_of("convert(convert(a, int32), int8)", {{kByte}}), "n0 = input 0: int8\noutput n0");
  // Through a float an integer saturates; it must not become one that wraps.
  EXPECT_EQ(typed("convert(convert(a, float32), uint8)", {{kByte}}).nodes().size(), 3u);
  EXPECT_EQ(typed("convert(convert(a, float32), int32)", {{kHalf}}).nodes().size(), 2u);
  EXPECT_EQ(typed("bitcast(bitcast(a, int32), float32)", {{kFloat}}).nodes().size(), 3u);
}

TEST(ExpressionType, EqualNodesMergeAndDeadOnesGo) {
  EXPECT_EQ(text_of("exp(a) * exp(a)", {{kFloat}}),
            "n0 = input 0: float32\nn1 = exp(n0): float32\nn2 = mul(n1, n1): float32\noutput n2");
  EXPECT_EQ(
      text_of("(a + b) * (b + a)", {{kFloat}, {kFloat}}),
      "n0 = input 0: float32\nn1 = input 1: float32\nn2 = add(n0, n1): float32\nn3 = mul(n2, n2): float32\noutput n3");
  EXPECT_EQ(typed("b", {{kFloat}, {kFloat}, {kFloat}}).nodes().size(), 1u);
  EXPECT_EQ(typed("b", {{kFloat}, {kFloat}, {kFloat}}).input_count(), 3);
  EXPECT_EQ(typed("a + b", {{kFloat}, {kFloat}}).digest(), typed("b + a", {{kFloat}, {kFloat}}).digest());
  EXPECT_NE(typed("a - b", {{kFloat}, {kFloat}}).digest(), typed("b - a", {{kFloat}, {kFloat}}).digest());
  EXPECT_NE(typed("a + 0.0", {{kFloat}}).digest(), typed("a + -0.0", {{kFloat}}).digest());
  EXPECT_NE(typed("a; b", {{kFloat}, {kFloat}}).digest(), typed("b; a", {{kFloat}, {kFloat}}).digest());
}

TEST(ExpressionType, Refusals) {
  EXPECT_EQ(fault_line("a + b", {{kLong}, {COMPUTE_DTYPE_UINT64}}),
            "int64 and uint64 have no common dtype; convert one of them (convert(b, int64))");
  EXPECT_EQ(fault_line("~a", {{kFloat}}), "bit_not takes integer dtypes and bool, not float32");
  EXPECT_EQ(fault_line("a < b", {{kComplex}, {kComplex}}), "lt takes integer and floating-point dtypes, not complex64");
  EXPECT_EQ(fault_line("1.5 & 2", {}, {}, {kInt}), "bit_and takes integer dtypes and bool, not numbers of that kind");
  EXPECT_EQ(fault_line("where(a, a, a)"), "the condition of where is float32, not bool; compare it (x != 0)");
  EXPECT_EQ(fault_line("where(1, a, a)"),
            "the condition of where is the integer number, not bool; compare it (x != 0)");
  EXPECT_EQ(fault_line("a + 300", {{kByte}}), "300 does not fit in int8");
  EXPECT_EQ(fault_line("a + -1", {{COMPUTE_DTYPE_UINT8}}), "-1 does not fit in uint8");
  EXPECT_EQ(fault_line("convert(a, float32)", {{kComplex}}),
            "complex numbers cannot be converted to float32; use real(…) or abs(…)");
  EXPECT_EQ(fault_line("bitcast(a, int64)"), "bitcast from float32 to int64: their sizes differ");
  EXPECT_EQ(fault_line("bitcast(a, bool)", {{kByte}}),
            "bitcast from int8 to bool is not possible; compare with 0 instead");
  EXPECT_EQ(fault_line("bitcast(1, int64)"),
            "the dtype of the number in bitcast is not known; write convert(…, float32) around it");
  EXPECT_EQ(fault_line("1 + 2"),
            "the dtype of the output is not known; write convert(…, float32) around it or pass an output");
  EXPECT_EQ(fault_line("a; 2"),
            "the dtype of output 1 is not known; write convert(…, float32) around it or pass an output");
  EXPECT_EQ(fault_line("where(1 < 2, a, a)"),
            "the dtype of these numbers is not known; write convert(…, float32) around one");
  EXPECT_EQ(fault_line("a", {{kFloat}}, {}, {kInt}),
            "the output is float32, not int32; write convert(…, int32) around it");
  EXPECT_EQ(fault_line("1.5", {}, {}, {kInt}), "the output is real and does not fit in int32");
  EXPECT_EQ(fault("a < b", {{kComplex}, {kComplex}}),
            "expression, column 1: lt takes integer and floating-point dtypes, not complex64\n  a < b\n  ^");
}

TEST(ExpressionType, KindsMix) {
  EXPECT_EQ(text_of("a + b", {{kInt}, {kFloat}}),
            "n0 = input 0: int32\nn1 = input 1: float32\nn2 = convert(n0): float32\nn3 = add(n1, n2): "
            "float32\noutput n3");
  EXPECT_EQ(typed("a + 0.5", {{kLong}}).output_dtype(0), kFloat);
  EXPECT_EQ(typed("a + 1", {{kBool}}).output_dtype(0), kLong);
  EXPECT_EQ(typed("a * true", {{kDouble}}).output_dtype(0), kDouble);
  EXPECT_EQ(typed("a / b", {{kInt}, {kLong}}).output_dtype(0), kFloat);
  EXPECT_EQ(typed("exp(a)", {{kBool}}).output_dtype(0), kFloat);
  EXPECT_EQ(typed("where(a < b, a, b)", {{kByte}, {kHalf}}).output_dtype(0), kHalf);
  EXPECT_EQ(typed("a * s", {{kInt}}, {{COMPUTE_DTYPE_COMPLEX128, true}}).output_dtype(0), kComplex);
  // An integer is converted once to what float16 computes in.
  EXPECT_EQ(text_of("a * b", {{kLong}, {kHalf}}),
            "n0 = input 0: int64\nn1 = input 1: float16\nn2 = convert(n0): float32\nn3 = convert(n1): float32\n"
            "n4 = mul(n2, n3): float32\nn5 = convert(n4): float16\noutput n5");
}

TEST(ExpressionType, StrictRefusals) {
  COMPUTE_REQUIRE_STRICT_PROMOTION();
  EXPECT_EQ(fault_line("a + b", {{kInt}, {kFloat}}),
            "int32 and float32 have no common dtype; convert one of them (convert(a, float32)), or set "
            "COMPUTE_PROMOTION=mixed");
  EXPECT_EQ(fault_line("a + 0.5", {{kInt}}),
            "int32 and the real number have no common dtype; convert one of them (convert(a, float32)), or set "
            "COMPUTE_PROMOTION=mixed");
  EXPECT_EQ(fault_line("a + 1", {{kBool}}),
            "bool and the integer number have no common dtype; convert one of them (convert(a, int64)), or set "
            "COMPUTE_PROMOTION=mixed");
  EXPECT_EQ(fault_line("a * true", {{kFloat}}),
            "float32 and bool have no common dtype; convert one of them (convert(true, float32)), or set "
            "COMPUTE_PROMOTION=mixed");
  EXPECT_EQ(fault_line("a / b", {{kInt}, {kInt}}),
            "div takes floating-point and complex dtypes, not int32; convert it (convert(a, float32)), or set "
            "COMPUTE_PROMOTION=mixed");
  EXPECT_EQ(fault_line("a", {{kInt}}, {}, {kFloat}),
            "the output is int32, not float32; write convert(…, float32) around it");
}

TEST(ExpressionType, WantedOutputsKeepTheirKindOrRaiseIt) {
  EXPECT_EQ(typed("a * 2", {{kDouble}}, {}, {kHalf}).output_dtype(0), kHalf);
  EXPECT_EQ(typed("a * 2", {{kLong}}, {}, {kByte}).output_dtype(0), kByte);
  EXPECT_EQ(typed("a * 2", {{kLong}}, {}, {kHalf}).output_dtype(0), kHalf);
  EXPECT_EQ(typed("a < 2", {{kLong}}, {}, {kComplex}).output_dtype(0), kComplex);
  EXPECT_EQ(typed("a * 2; a", {{kLong}}, {}, {COMPUTE_DTYPE_NONE, kByte}).output_dtype(0), kLong);
}

// ---- The canonical form ---------------------------------------------------------------------------------------------

// A call: its operands and its result have the intrinsic's dtypes.
void check_call(const TypedExpression& e, const compute_plugin_node& node, const std::string& what) {
  const auto operands = e.operands(node);
  const bool is_half = computed_in(node.dtype) != node.dtype;
  const IntrinsicInfo& info = *find_intrinsic(node.value);
  ASSERT_EQ(node.operand_count, info.arity) << what;
  if (info.commutative) {
    ASSERT_TRUE(std::is_sorted(operands.begin(), operands.end())) << what;
  }
  if (info.result != IntrinsicResult::kNode) {
    ASSERT_FALSE(is_half) << what;
    const compute_dtype dtype = e.nodes()[static_cast<size_t>(operands.back())].dtype;
    ASSERT_EQ(computed_in(dtype), dtype) << what;
    ASSERT_TRUE(in_class(dtype, info.operands)) << what << ": " << info.name << " of " << dtype_name(dtype);
    for (size_t k = node.value == COMPUTE_PLUGIN_INTRINSIC_WHERE ? 1 : 0; k < operands.size(); ++k) {
      ASSERT_EQ(e.nodes()[static_cast<size_t>(operands[k])].dtype, dtype) << what;
    }
    if (info.result == IntrinsicResult::kSame) {
      ASSERT_EQ(node.dtype, dtype) << what;
    }
    if (info.result == IntrinsicResult::kBool) {
      ASSERT_EQ(node.dtype, kBool) << what;
    }
    if (info.result == IntrinsicResult::kPart) {
      ASSERT_EQ(node.dtype, real_part_dtype(dtype)) << what;
    }
  }
}

// Everything that plugin.h says of an expression.
void check_canonical(const TypedExpression& e, const std::string& what) {
  const compute_plugin_expression& view = e.plugin_view();
  std::vector<uint8_t> hashed;
  const auto put = [&](int32_t value) {
    for (int i = 0; i < 4; ++i) hashed.push_back(static_cast<uint8_t>(static_cast<uint32_t>(value) >> (8 * i)));
  };
  put(view.node_count);
  put(view.input_count);
  put(view.scalar_count);
  put(view.output_count);
  std::set<std::string> seen;
  std::vector<bool> used(e.nodes().size());
  std::set<int32_t> slots;
  for (size_t i = 0; i < e.nodes().size(); ++i) {
    const compute_plugin_node& node = e.nodes()[i];
    const size_t start = hashed.size();
    put(node.kind);
    put(node.dtype);
    put(node.value);
    put(node.operand_count);
    const auto operands = e.operands(node);
    for (const int32_t operand : operands) {
      ASSERT_LT(operand, static_cast<int32_t>(i)) << what;
      used[static_cast<size_t>(operand)] = true;
      put(operand);
    }
    const bool is_half = computed_in(node.dtype) != node.dtype;
    if (node.kind == COMPUTE_PLUGIN_NODE_CONSTANT) {
      hashed.insert(hashed.end(), node.bits, node.bits + 16);
      ASSERT_EQ(node.value, 0);
    }
    if (node.kind == COMPUTE_PLUGIN_NODE_INPUT) {
      ASSERT_LT(node.value, view.input_count) << what;
    }
    if (node.kind == COMPUTE_PLUGIN_NODE_SCALAR) {
      ASSERT_LT(node.value, view.scalar_count) << what;
      ASSERT_EQ(e.scalars()[static_cast<size_t>(node.value)].dtype, node.dtype);
      slots.insert(node.value);
    }
    if (node.kind == COMPUTE_PLUGIN_NODE_CALL) {
      check_call(e, node, what);
    } else {
      ASSERT_EQ(node.operand_count, 0);
      if (node.kind != COMPUTE_PLUGIN_NODE_CONSTANT) {
        for (const uint8_t byte : node.bits) {
          ASSERT_EQ(byte, 0);
        }
      }
      if (node.kind == COMPUTE_PLUGIN_NODE_CONSTANT) {
        ASSERT_TRUE(!is_half || std::find(view.outputs, view.outputs + view.output_count, static_cast<int32_t>(i)) !=
                                    view.outputs + view.output_count)
            << what;
      }
    }
    ASSERT_TRUE(seen.emplace(hashed.begin() + static_cast<std::ptrdiff_t>(start), hashed.end()).second)
        << what << ": equal nodes";
  }
  for (int32_t i = 0; i < view.output_count; ++i) {
    used[static_cast<size_t>(view.outputs[i])] = true;
    put(view.outputs[i]);
  }
  for (size_t i = 0; i < used.size(); ++i) {
    ASSERT_TRUE(used[i]) << what << ": node " << i << " is dead";
  }
  ASSERT_EQ(static_cast<int32_t>(slots.size()), view.scalar_count);
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(hashed.data(), hashed.size()));
  ASSERT_EQ(std::memcmp(canonical.digest, view.digest, 16), 0) << what;
}

// float8 counts as float32, but for outputs, convert and bitcast; plugins see bytes.
TEST(ExpressionTyping, Float8) {
  constexpr compute_dtype kE5m2 = COMPUTE_DTYPE_FLOAT8_E5M2, kE4m3fn = COMPUTE_DTYPE_FLOAT8_E4M3FN;
  EXPECT_EQ(typed("a + b", {{kE5m2}, {kE4m3fn}}).output_dtype(0), kFloat);
  EXPECT_EQ(typed("a * 2", {{kE5m2}}).output_dtype(0), kFloat);
  EXPECT_EQ(typed("a", {{kE5m2}}).output_dtype(0), kE5m2);
  EXPECT_EQ(typed("a + b", {{kE5m2}, {kDouble}}).output_dtype(0), kDouble);
  EXPECT_EQ(typed("convert(a * 2, float8_e4m3fn)", {{kE5m2}}).output_dtype(0), kE4m3fn);
  EXPECT_EQ(typed("a + b", {{kFloat}, {kFloat}}, {}, {kE5m2}).output_dtype(0), kE5m2);
  EXPECT_EQ(text_of("convert(a, float16)", {{kE5m2}}),
            "n0 = input 0: float8_e5m2\nn1 = convert(n0): float16\noutput n1");
  // By way of a dtype that holds all values, and not through one that does not.
  EXPECT_EQ(typed("convert(convert(a, bfloat16), float8_e5m2)", {{kE5m2}}).nodes().size(), 1U);
  EXPECT_EQ(typed("convert(convert(a, float8_e4m3fn), float8_e5m2)", {{kE5m2}}).nodes().size(), 3U);
  EXPECT_EQ(typed("convert(convert(a, float8_e5m2), float32)", {{kByte}}).nodes().size(), 3U);
  for (const compute_dtype from : {kBool, kByte, kLong, kHalf, kFloat, kDouble, kE4m3fn, kE5m2}) {
    for (const compute_dtype to : {kE4m3fn, kE5m2}) {
      for (const bool there : {true, false}) {
        const TypedExpression e = there ? float8_conversion(from, to) : float8_conversion(to, from);
        for (const compute_plugin_node& node : e.nodes()) EXPECT_FALSE(is_float8(node.dtype)) << e.to_string();
        EXPECT_EQ(e.input_count(), 1);
        EXPECT_EQ(e.output_dtype(0), stored_as(there ? to : from));
      }
    }
  }
  const TypedExpression scaled = with_float8_as_bytes(typed("a * s", {{kE5m2}}, {{kE4m3fn}}, {kE5m2}));
  EXPECT_EQ(scaled.output_dtype(0), COMPUTE_DTYPE_UINT8);
  ASSERT_EQ(scaled.scalars().size(), 1U);
  EXPECT_EQ(scaled.scalars()[0].dtype, kFloat);
  const TypedExpression filled = with_float8_as_bytes(typed("s", {}, {{kDouble}}, {kE5m2}));
  EXPECT_EQ(filled.output_dtype(0), COMPUTE_DTYPE_UINT8);
  EXPECT_EQ(filled.scalars()[0].dtype, kE5m2);  // the value comes as a code
  EXPECT_EQ(with_float8_as_bytes(filled).digest(), filled.digest());
}

TEST(ExpressionCanonical, EveryRowOfEveryDtype) {
  int64_t taken = 0;
  std::set<std::array<uint8_t, 16>> digests;
  for (const OpSchema* schema : op_schemas()) {
    if (!schema->is_elementwise) continue;
    for (compute_dtype dtype = 1; dtype < kDtypeCount; ++dtype) {
      for (const bool scalar : {false, true}) {
        const int64_t one = 1;
        std::vector<OperandDesc> operands(schema->inputs.size(), OperandDesc{dtype, 1, &one, &one});
        if (schema->result == RowResult::kSecond) operands[0].dtype = kBool;
        if (scalar) operands.back() = {dtype, 0, nullptr, nullptr, true, true};
        const std::string what = schema->name + " of " + dtype_name(dtype);
        const compute_dtype common = dtype_in_class(dtype, schema->input_class, true);
        if (!in_class(common, schema->input_class)) {
          EXPECT_THROW(row_types(*schema, operands), Error) << what;
          continue;
        }
        const RowTypes types = row_types(*schema, operands);
        EXPECT_EQ(types.common, common) << what;
        const TypedExpression e = type_row(*schema, operands, types);
        EXPECT_EQ(e.output_dtype(0), schema->result == RowResult::kBool   ? kBool
                                     : schema->result == RowResult::kPart ? real_part_dtype(common)
                                                                          : common)
            << what;
        check_canonical(e, what);
        digests.insert(e.digest());
        ++taken;
      }
    }
  }
  EXPECT_GT(taken, 1000);
  EXPECT_GT(digests.size(), 900u);
}

TEST(ExpressionCanonical, RandomExpressions) {
  std::mt19937 random(11);
  const auto pick = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); };
  const std::function<std::string(int)> make = [&](int depth) -> std::string {
    if (depth == 0 || pick(5) == 0)
      return std::vector<std::string>{"a", "b", "c", "s", "t", "2", "0.5", "convert(index(0), float32)"}[pick(8)];
    const auto x = [&] { return make(depth - 1); };
    switch (pick(8)) {
      case 0:
        return "(" + x() + " + " + x() + ")";
      case 1:
        return "(" + x() + " * " + x() + ")";
      case 2:
        return "-" + x();
      case 3:
        return "exp(" + x() + ")";
      case 4:
        return "max(" + x() + ", a)";
      case 5:
        return "where(a < " + x() + ", " + x() + ", b)";
      case 6:
        return "nextafter(" + x() + ", a)";
      default:
        return "convert(a - " + x() + ", float16)";
    }
  };
  for (int i = 0; i < 400; ++i) {
    const std::string text = make(5) + " + a; " + make(3) + " + c";
    const TypedExpression e =
        typed(text, {{kHalf}, {kFloat}, {i % 2 == 0 ? kHalf : kDouble}}, {{kDouble, true}, {kFloat, true}});
    check_canonical(e, text);
    ASSERT_EQ(
        e.digest(),
        typed(text, {{kHalf}, {kFloat}, {i % 2 == 0 ? kHalf : kDouble}}, {{kDouble, true}, {kFloat, true}}).digest());
    if (const auto replaced = replace_intrinsic(e, COMPUTE_PLUGIN_INTRINSIC_LOGADDEXP))
      check_canonical(*replaced, text);
  }
}

TEST(ExpressionCanonical, GoldenDigests) {
  const auto hex = [](const TypedExpression& e) {
    std::string text;
    for (const uint8_t byte : e.digest()) {
      text += "0123456789abcdef"[byte >> 4];
      text += "0123456789abcdef"[byte & 15];
    }
    return text;
  };
  // Kernel caches and compiled rows are found by these: none may change.
  const std::map<std::string, std::string> golden{
      {"exp float32", "2a11f256d5621554dc9448395f179caf"},
      {"exp float16", "5fb5b8e786f492f74610086046064b8f"},
      {"add int32", "00c05077c4b748c3ae0b0530cc068910"},
      {"add int32 scalar", "b781d03428a539547d53e6f910ac54bd"},
      {"relu float64", "a4a40a4f6d1d64c0c872062f017a2581"},
      {"sigmoid float32", "2bfa546757da609d688d9d707d638c03"},
      {"clip int8", "9f7b39422c8b751b464151024c830165"},
      {"abs complex64", "f402a6c79dc77c98656f8ed373084c79"},
      {"two outputs", "3f66ff6b52416e509201c50abfa5bfc6"},
      {"index", "1a9962d7afd3debd0df0f27bacbc76d5"},
      {"nextafter bfloat16", "49f57bd47db3a9d927d1614c58990267"},
  };
  const std::vector<std::pair<std::string, TypedExpression>> made{
      {"exp float32", typed("exp(a)", {{kFloat}})},
      {"exp float16", typed("exp(a)", {{kHalf}})},
      {"add int32", typed("a + b", {{kInt}, {kInt}})},
      {"add int32 scalar", typed("a + s", {{kInt}}, {{kInt}})},
      {"relu float64", typed("where(a < 0, 0, a)", {{kDouble}})},
      {"sigmoid float32", typed("1 / (1 + exp(-a))", {{kFloat}})},
      {"clip int8", typed("min(max(a, b), c)", {{kByte}, {kByte}, {kByte}})},
      {"abs complex64", typed("abs(a)", {{kComplex}})},
      {"two outputs", typed("a; a * a", {{kDouble}})},
      {"index", typed("index(1) - index(0)", {})},
      {"nextafter bfloat16", typed("nextafter(a, b)", {{COMPUTE_DTYPE_BFLOAT16}, {COMPUTE_DTYPE_BFLOAT16}})},
  };
  for (const auto& [name, e] : made) {
    const auto found = golden.find(name);
    EXPECT_EQ(found == golden.end() ? "" : found->second, hex(e)) << "{\"" << name << "\", \"" << hex(e) << "\"},";
  }
}

// ---- Definitions ----------------------------------------------------------------------------------------------------

// The conformance tests of minimal_without_..._intrinsics judge their values.
TEST(ExpressionReplace, DefinitionsHaveOlderIntrinsics) {
  int count = 0;
  for (const IntrinsicInfo& info : intrinsics()) {
    if (*info.definition == '\0') {
      EXPECT_FALSE(replace_intrinsic(typed("a", {{kFloat}}), info.id));
      continue;
    }
    ++count;
    const compute_dtype dtype = in_class(kFloat, info.operands) ? kFloat : kComplex;
    const std::string operands = info.arity == 1 ? "(a)" : info.arity == 2 ? "(a, b)" : "(a, b, c)";
    const std::string text = info.name + operands + " + 1";
    const TypedExpression before = typed(text, std::vector<LeafDesc>(static_cast<size_t>(info.arity), {dtype}));
    const std::optional<TypedExpression> after = replace_intrinsic(before, info.id);
    ASSERT_TRUE(after);
    check_canonical(*after, info.name);
    EXPECT_EQ(after->output_dtype(0), before.output_dtype(0));
    EXPECT_EQ(after->input_count(), before.input_count());
    for (const compute_plugin_node& node : after->nodes()) {
      if (node.kind == COMPUTE_PLUGIN_NODE_CALL) {
        EXPECT_LT(node.value, info.id) << info.name;
      }
    }
  }
  EXPECT_EQ(count, 15);
  EXPECT_FALSE(replace_intrinsic(typed("a", {{kFloat}}), 0));
  EXPECT_FALSE(replace_intrinsic(typed("a", {{kFloat}}), 9999));
}

TEST(ExpressionReplace, PluginsSeeNoComposedFunction) {
  const TypedExpression e = with_composed_replaced(typed("i1(y1(a)) * erfcinv(s)", {{kHalf}}, {{kFloat}}));
  check_canonical(e, "composed");
  for (const compute_plugin_node& node : e.nodes()) {
    if (node.kind == COMPUTE_PLUGIN_NODE_CALL) {
      EXPECT_FALSE(find_intrinsic(node.value)->composed);
    }
  }
  const TypedExpression same = typed("exp(a) + s", {{kHalf}}, {{kFloat}});
  EXPECT_EQ(with_composed_replaced(same).digest(), same.digest());
}

TEST(ExpressionReplace, TheRestStays) {
  const TypedExpression e = typed("logaddexp(a, s) * t; a", {{kHalf}}, {{kDouble, true}, {kFloat}});
  const TypedExpression replaced = *replace_intrinsic(e, COMPUTE_PLUGIN_INTRINSIC_LOGADDEXP);
  EXPECT_EQ(std::vector(replaced.scalars().begin(), replaced.scalars().end()),
            std::vector(e.scalars().begin(), e.scalars().end()));
  EXPECT_EQ(replaced.output_dtype(1), kHalf);
  // Without the intrinsic the expression is unchanged.
  const TypedExpression same = typed("exp(a) + s", {{kHalf}}, {{kFloat}});
  EXPECT_EQ(replace_intrinsic(same, COMPUTE_PLUGIN_INTRINSIC_LOGADDEXP)->digest(), same.digest());
}

}  // namespace
}  // namespace compute
