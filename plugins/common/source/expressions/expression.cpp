// SPDX-License-Identifier: Apache-2.0
#include "plugins/common/source/expressions/expression.hpp"

#include <algorithm>
#include <cassert>
#include <cstdio>
#include <cstring>
#include <span>

#include "plugins/common/op/core.hpp"
#include "plugins/common/source/expressions/grammar.hpp"
#include "plugins/common/source/expressions/known_ranges.hpp"
#include "plugins/common/source/expressions/types.hpp"

namespace compute::common {
namespace {

// Ids grow from row to row.
enum : int32_t {
#define COMPUTE_INTRINSIC(id, name, ...) kId_##name = id,
#include <compute/intrinsics.def>
#undef COMPUTE_INTRINSIC
  kIntrinsicLimit
};

std::string hex(uint64_t bits) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(bits));
  return text;
}

std::string value_type(compute_dtype dtype) { return type_text(dtype).value; }

// float16 or bfloat16 from float32
std::string narrow(const std::string& x, compute_dtype to) { return cat("f32_to_", type_text(to).name, "(", x, ")"); }

// A value as float32 such that rounding it to float16 or bfloat16 is the only rounding.
std::string to_narrowable(const std::string& x, compute_dtype from, Functions& functions) {
  if (is_half(from)) return cat(type_text(from).name, "_to_f32(", x, ")");
  switch (from) {
    case COMPUTE_DTYPE_FLOAT64:
      return functions.need("f64_to_odd") + "(" + x + ")";
    case COMPUTE_DTYPE_INT32:
    case COMPUTE_DTYPE_INT64:
      return functions.need("i64_to_odd") + "((i64)(" + x + "))";
    case COMPUTE_DTYPE_UINT32:
    case COMPUTE_DTYPE_UINT64:
      return functions.need("u64_to_odd") + "((u64)(" + x + "))";
    default:
      return "(f32)(" + x + ")";
  }
}

std::string make_complex(compute_dtype dtype, const std::string& re, const std::string& im) {
  return cat(dtype == COMPUTE_DTYPE_COMPLEX64 ? "COMPUTE_C64(" : "COMPUTE_C128(", re, ", ", im, ")");
}

compute_dtype pair_of(compute_dtype part) {
  return part == COMPUTE_DTYPE_FLOAT32 ? COMPUTE_DTYPE_COMPLEX64 : COMPUTE_DTYPE_COMPLEX128;
}

// The bits of a value as an unsigned integer of its size; complex64 as two halves of u64.
std::string to_bits(const std::string& x, compute_dtype from) {
  switch (from) {
    case COMPUTE_DTYPE_FLOAT32:
      return "(u32)COMPUTE_AS_I32(" + x + ")";
    case COMPUTE_DTYPE_FLOAT64:
      return "(u64)COMPUTE_AS_I64(" + x + ")";
    case COMPUTE_DTYPE_COMPLEX64:
      return cat("((u64)(u32)COMPUTE_AS_I32(", x, ".x) | (u64)(u32)COMPUTE_AS_I32(", x, ".y) << 32)");
    default:
      return cat("(", type_text(unsigned_of(from)).storage, ")(", x, ")");
  }
}

std::string from_bits(const std::string& bits, compute_dtype to) {
  switch (to) {
    case COMPUTE_DTYPE_BOOL:
      return "((" + bits + ") != 0)";
    case COMPUTE_DTYPE_FLOAT32:
      return "COMPUTE_AS_F32((i32)(" + bits + "))";
    case COMPUTE_DTYPE_FLOAT64:
      return "COMPUTE_AS_F64((i64)(" + bits + "))";
    case COMPUTE_DTYPE_COMPLEX64:
      return cat("COMPUTE_C64(COMPUTE_AS_F32((i32)(", bits, ")), COMPUTE_AS_F32((i32)((", bits, ") >> 32)))");
    default:
      return cat("(", type_text(to).value, ")(", bits, ")");
  }
}

const char* comparison(int32_t intrinsic) {
  switch (intrinsic) {
    case COMPUTE_PLUGIN_INTRINSIC_EQ:
      return " == ";
    case COMPUTE_PLUGIN_INTRINSIC_NE:
      return " != ";
    case COMPUTE_PLUGIN_INTRINSIC_LT:
      return " < ";
    case COMPUTE_PLUGIN_INTRINSIC_LE:
      return " <= ";
    case COMPUTE_PLUGIN_INTRINSIC_GT:
      return " > ";
    case COMPUTE_PLUGIN_INTRINSIC_GE:
      return " >= ";
    default:
      return nullptr;
  }
}

const char* operator_of(int32_t intrinsic) {
  switch (intrinsic) {
    case COMPUTE_PLUGIN_INTRINSIC_ADD:
      return " + ";
    case COMPUTE_PLUGIN_INTRINSIC_SUB:
      return " - ";
    case COMPUTE_PLUGIN_INTRINSIC_MUL:
      return " * ";
    case COMPUTE_PLUGIN_INTRINSIC_BIT_AND:
      return " & ";
    case COMPUTE_PLUGIN_INTRINSIC_BIT_OR:
      return " | ";
    case COMPUTE_PLUGIN_INTRINSIC_BIT_XOR:
      return " ^ ";
    default:
      return nullptr;
  }
}

std::string integer_call(int32_t intrinsic, compute_dtype dtype, const std::vector<std::string>& v,
                         Functions& functions) {
  const std::string type = value_type(dtype);
  const bool is_signed_type = is_signed(dtype);
  const char* wide = dtype_size(dtype) == 8 ? "(u64)" : "(u32)";
  if (const char* op = operator_of(intrinsic)) return cat("(", type, ")(", wide, v[0], op, wide, v[1], ")");
  switch (intrinsic) {
    case COMPUTE_PLUGIN_INTRINSIC_NEG:
      return cat("(", type, ")(", wide, "0 - ", wide, v[0], ")");
    case COMPUTE_PLUGIN_INTRINSIC_ABS:
      return is_signed_type ? cat("(", v[0], " < 0 ? (", type, ")(", wide, "0 - ", wide, v[0], ") : ", v[0], ")")
                            : v[0];
    case COMPUTE_PLUGIN_INTRINSIC_SIGN:
      if (is_signed_type && !functions.dialect().has_bool_arithmetic)
        return cat("(", type, ")(", v[0], " > 0 ? 1 : ", v[0], " < 0 ? -1 : 0)");
      return is_signed_type ? cat("(", type, ")((", v[0], " > 0) - (", v[0], " < 0))")
                            : cat("(", type, ")(", v[0], " != 0)");
    case COMPUTE_PLUGIN_INTRINSIC_MIN:
      return cat("(", v[0], " < ", v[1], " ? ", v[0], " : ", v[1], ")");
    case COMPUTE_PLUGIN_INTRINSIC_MAX:
      return cat("(", v[0], " > ", v[1], " ? ", v[0], " : ", v[1], ")");
    case COMPUTE_PLUGIN_INTRINSIC_BIT_NOT:
      return cat("(", type, ")~", v[0]);
    case COMPUTE_PLUGIN_INTRINSIC_MUL_HIGH:
      if (dtype_size(dtype) == 8)
        return cat(is_signed_type ? "COMPUTE_MUL_HIGH_I64(" : "COMPUTE_MUL_HIGH_U64(", v[0], ", ", v[1], ")");
      return cat("(", type, ")(((", is_signed_type ? "i64" : "u64", ")", v[0], " * (", is_signed_type ? "i64" : "u64",
                 ")", v[1], ") >> ", dtype_size(dtype) * 8, ")");
    case COMPUTE_PLUGIN_INTRINSIC_SHL:
      return cat(functions.need("shl", dtype), "(", v[0], ", ", v[1], ")");
    case COMPUTE_PLUGIN_INTRINSIC_SHR:
      return cat(functions.need("shr", dtype), "(", v[0], ", ", v[1], ")");
    case COMPUTE_PLUGIN_INTRINSIC_FLOOR_DIV:
      return cat(functions.need("floor_div", dtype), "(", v[0], ", ", v[1], ")");
    case COMPUTE_PLUGIN_INTRINSIC_MOD:
      return cat(functions.need("mod", dtype), "(", v[0], ", ", v[1], ")");
    case COMPUTE_PLUGIN_INTRINSIC_POW:
      return cat(functions.need("pow", dtype), "(", v[0], ", ", v[1], ")");
    case COMPUTE_PLUGIN_INTRINSIC_ISNAN:
    case COMPUTE_PLUGIN_INTRINSIC_ISINF:
      return "(bool)0";
    case COMPUTE_PLUGIN_INTRINSIC_ISFINITE:
      return "(bool)1";
    default:  // floor, ceil, trunc, round, conj
      return v[0];
  }
}

std::string bool_call(int32_t intrinsic, const std::vector<std::string>& v) {
  switch (intrinsic) {
    case COMPUTE_PLUGIN_INTRINSIC_BIT_AND:
      return cat("(bool)(", v[0], " && ", v[1], ")");
    case COMPUTE_PLUGIN_INTRINSIC_BIT_OR:
      return cat("(bool)(", v[0], " || ", v[1], ")");
    case COMPUTE_PLUGIN_INTRINSIC_BIT_XOR:
      return cat("(bool)(", v[0], " != ", v[1], ")");
    case COMPUTE_PLUGIN_INTRINSIC_BIT_NOT:
      return cat("(bool)!", v[0]);
    default:
      assert(false);
      return v[0];
  }
}

std::string float_call(int32_t intrinsic, compute_dtype dtype, const std::vector<std::string>& v,
                       Functions& functions) {
  const bool wide = dtype == COMPUTE_DTYPE_FLOAT64;
  const char* infinity = wide ? "COMPUTE_AS_F64(COMPUTE_I64(0x7ff0000000000000))" : "COMPUTE_AS_F32(0x7f800000)";
  const bool in_fp64 = !wide && functions.dialect().has_fp64 &&
                       ((intrinsic == COMPUTE_PLUGIN_INTRINSIC_SQRT && functions.emulates_division()) ||
                        functions.dialect().wide_intrinsics.test(static_cast<size_t>(intrinsic)));
  if (const char* op = operator_of(intrinsic)) return cat("(", v[0], op, v[1], ")");
  const Intrinsics& native = wide ? functions.dialect().native_wide : functions.dialect().native;
  const auto call = [&](const char* base) {
    std::string text = functions.need(base, dtype) + "(" + v[0];
    if (v.size() > 1) text += ", " + v[1];
    return text + ")";
  };
  if (const char* name = math_name(intrinsic)) {
    if (!native.test(static_cast<size_t>(intrinsic))) return call(name);
    std::string text = in_fp64 ? cat("(f32)", name, "((f64)", v[0]) : cat(name, "(", v[0]);
    if (v.size() > 1) text += (in_fp64 ? ", (f64)" : ", ") + v[1];
    return text + ")";
  }
  switch (intrinsic) {
    case COMPUTE_PLUGIN_INTRINSIC_DIV:
      if (!wide && functions.emulates_division()) return call("div");
      return native.test(COMPUTE_PLUGIN_INTRINSIC_DIV) ? cat("(", v[0], " / ", v[1], ")") : call("quotient");
    case COMPUTE_PLUGIN_INTRINSIC_FLOOR_DIV:
      return call("floor_div");
    case COMPUTE_PLUGIN_INTRINSIC_MOD:
      return call("mod");
    case COMPUTE_PLUGIN_INTRINSIC_NEG:
      return cat("(-", v[0], ")");
    case COMPUTE_PLUGIN_INTRINSIC_ABS:
      return cat("fabs(", v[0], ")");
    case COMPUTE_PLUGIN_INTRINSIC_SIGN:
      return call("sign");
    case COMPUTE_PLUGIN_INTRINSIC_MIN:
      return call("min");
    case COMPUTE_PLUGIN_INTRINSIC_MAX:
      return call("max");
    case COMPUTE_PLUGIN_INTRINSIC_NEXTAFTER:
      return call("nextafter");
    case COMPUTE_PLUGIN_INTRINSIC_SIGNBIT:
      return cat("(", wide ? "COMPUTE_AS_I64(" : "COMPUTE_AS_I32(", v[0], ") < 0)");
    case COMPUTE_PLUGIN_INTRINSIC_ISNAN:
      return cat("(", v[0], " != ", v[0], ")");
    case COMPUTE_PLUGIN_INTRINSIC_ISINF:
      return cat("(fabs(", v[0], ") == ", infinity, ")");
    case COMPUTE_PLUGIN_INTRINSIC_ISFINITE:
      return cat("(fabs(", v[0], ") < ", infinity, ")");
    case COMPUTE_PLUGIN_INTRINSIC_COMPLEX:
      return make_complex(pair_of(dtype), v[0], v[1]);
    case COMPUTE_PLUGIN_INTRINSIC_LOGADDEXP:
      return call("logaddexp");
    case COMPUTE_PLUGIN_INTRINSIC_ERFINV:
      return call("erfinv");
    case COMPUTE_PLUGIN_INTRINSIC_DIGAMMA:
      return call("digamma");
    case COMPUTE_PLUGIN_INTRINSIC_LGAMMA:
      return call("lgamma");
    default:  // conj
      return v[0];
  }
}

std::string complex_call(int32_t intrinsic, compute_dtype dtype, const std::vector<std::string>& v,
                         Functions& functions) {
  const compute_dtype part = part_of(dtype);
  const std::string re = v[0] + ".x", im = v[0] + ".y";
  const auto by_part = [&](int32_t function, const char* join) {
    return cat("(", float_call(function, part, {re}, functions), join, float_call(function, part, {im}, functions),
               ")");
  };
  const auto call = [&](const char* base) {
    std::string text = functions.need(base, dtype) + "(" + v[0];
    if (v.size() > 1) text += ", " + v[1];
    return text + ")";
  };
  // Of the parts.
  const auto function = [&](int32_t of, const std::string& operands) {
    const Dialect& dialect = functions.dialect();
    const Intrinsics& native = part == COMPUTE_DTYPE_FLOAT64 ? dialect.native_wide : dialect.native;
    const char* name = math_name(of);
    return cat(native.test(static_cast<size_t>(of)) ? name : functions.need(name, part), "(", operands, ")");
  };
  switch (intrinsic) {
    case COMPUTE_PLUGIN_INTRINSIC_NE:
      return "!" + functions.need("eq", dtype) + "(" + v[0] + ", " + v[1] + ")";
    case COMPUTE_PLUGIN_INTRINSIC_EQ:
      return call("eq");
    case COMPUTE_PLUGIN_INTRINSIC_NEG:
      return make_complex(dtype, "-" + re, "-" + im);
    case COMPUTE_PLUGIN_INTRINSIC_CONJ:
      return make_complex(dtype, re, "-" + im);
    case COMPUTE_PLUGIN_INTRINSIC_REAL:
      return re;
    case COMPUTE_PLUGIN_INTRINSIC_IMAG:
      return im;
    case COMPUTE_PLUGIN_INTRINSIC_ABS:
      return function(COMPUTE_PLUGIN_INTRINSIC_HYPOT, cat(re, ", ", im));
    case COMPUTE_PLUGIN_INTRINSIC_ARG:
      return function(COMPUTE_PLUGIN_INTRINSIC_ATAN2, cat(im, ", ", re));
    case COMPUTE_PLUGIN_INTRINSIC_ROUND:
      return make_complex(dtype, "rint(" + re + ")", "rint(" + im + ")");
    case COMPUTE_PLUGIN_INTRINSIC_ISNAN:
    case COMPUTE_PLUGIN_INTRINSIC_ISINF:
      return by_part(intrinsic, " || ");
    case COMPUTE_PLUGIN_INTRINSIC_ISFINITE:
      return by_part(intrinsic, " && ");
    case COMPUTE_PLUGIN_INTRINSIC_ADD:
      return call("add");
    case COMPUTE_PLUGIN_INTRINSIC_SUB:
      return call("sub");
    case COMPUTE_PLUGIN_INTRINSIC_MUL:
      return call("mul");
    case COMPUTE_PLUGIN_INTRINSIC_DIV:
      return call("div");
    case COMPUTE_PLUGIN_INTRINSIC_SIGN:
      return call("sign");
    default:
      return call(math_name(intrinsic));
  }
}

}  // namespace

int32_t unknown_intrinsic(const compute_plugin_expression& expression) {
  for (int32_t i = 0; i < expression.node_count; ++i) {
    const compute_plugin_node& node = expression.nodes[i];
    if (node.kind == COMPUTE_PLUGIN_NODE_CALL && (node.value < 1 || node.value >= kIntrinsicLimit)) return node.value;
  }
  return 0;
}

bool uses_fp64(const compute_plugin_expression& expression) {
  return std::any_of(expression.nodes, expression.nodes + expression.node_count,
                     [](const compute_plugin_node& node) { return needs_fp64(node.dtype); });
}

std::vector<int32_t> index_axes(const compute_plugin_expression& expression) {
  std::vector<int32_t> axes;
  for (int32_t i = 0; i < expression.node_count; ++i) {
    const compute_plugin_node& node = expression.nodes[i];
    if (node.kind == COMPUTE_PLUGIN_NODE_INDEX && std::find(axes.begin(), axes.end(), node.value) == axes.end())
      axes.push_back(node.value);
  }
  return axes;
}

std::string constant_text(compute_dtype dtype, const uint8_t* bits) {
  uint64_t words[2];
  std::memcpy(words, bits, sizeof words);
  const auto part = [](uint64_t word, bool wide) {
    return wide ? cat("COMPUTE_AS_F64((i64)COMPUTE_U64(", hex(word), "))")
                : cat("COMPUTE_AS_F32((i32)", hex(word & 0xffffffff), ")");
  };
  switch (dtype) {
    case COMPUTE_DTYPE_BOOL:
      return (words[0] & 0xff) != 0 ? "(bool)1" : "(bool)0";
    case COMPUTE_DTYPE_FLOAT32:
      return part(words[0], false);
    case COMPUTE_DTYPE_FLOAT64:
      return part(words[0], true);
    case COMPUTE_DTYPE_COMPLEX64:
      return make_complex(dtype, part(words[0], false), part(words[0] >> 32, false));
    case COMPUTE_DTYPE_COMPLEX128:
      return make_complex(dtype, part(words[0], true), part(words[1], true));
    default:
      return cat("(", value_type(dtype), ")COMPUTE_U64(", hex(words[0]), ")");
  }
}

std::string scalar_text(compute_dtype dtype, const std::string& low, const std::string& high) {
  switch (dtype) {
    case COMPUTE_DTYPE_BOOL:
      return "((" + low + " & 255) != 0)";
    case COMPUTE_DTYPE_FLOAT32:
      return "COMPUTE_AS_F32((i32)" + low + ")";
    case COMPUTE_DTYPE_FLOAT64:
      return "COMPUTE_AS_F64(" + low + ")";
    case COMPUTE_DTYPE_COMPLEX64:
      return make_complex(dtype, "COMPUTE_AS_F32((i32)" + low + ")", "COMPUTE_AS_F32((i32)(" + low + " >> 32))");
    case COMPUTE_DTYPE_COMPLEX128:
      return make_complex(dtype, "COMPUTE_AS_F64(" + low + ")", "COMPUTE_AS_F64(" + high + ")");
    default:
      return cat("(", value_type(dtype), ")", low);
  }
}

std::string convert_text(const std::string& x, compute_dtype from, compute_dtype to, Functions& functions) {
  if (from == to) return x;
  const std::string type = value_type(to);
  if (to == COMPUTE_DTYPE_BOOL) {
    if (is_half(from)) return "((" + x + " & 0x7fff) != 0)";
    if (is_complex(from)) return cat("(", x, ".x != 0 || ", x, ".y != 0)");
    return "(" + x + " != 0)";
  }
  if (is_complex(to)) {
    const std::string part = part_of(to) == COMPUTE_DTYPE_FLOAT32 ? "(f32)" : "(f64)";
    if (is_complex(from)) return make_complex(to, part + x + ".x", part + x + ".y");
    return make_complex(to, convert_text(x, from, part_of(to), functions), "0");
  }
  if (is_half(to)) {
    if (from == COMPUTE_DTYPE_FLOAT32) return narrow(x, to);
    return narrow(to_narrowable(x, from, functions), to);
  }
  if (is_half(from)) {
    return convert_text(cat(type_text(from).name, "_to_f32(", x, ")"), COMPUTE_DTYPE_FLOAT32, to, functions);
  }
  if (is_float(from) && is_integer(to)) {
    const Dialect& dialect = functions.dialect();
    const std::string_view own = from != COMPUTE_DTYPE_FLOAT32 ? std::string_view()
                                 : to == COMPUTE_DTYPE_INT32   ? dialect.to_i32
                                 : to == COMPUTE_DTYPE_UINT32  ? dialect.to_u32
                                                               : std::string_view();
    if (!own.empty()) return cat(own, "(", x, ")");
    return functions.need(from == COMPUTE_DTYPE_FLOAT32 ? "f32_to" : "f64_to", to) + "(" + x + ")";
  }
  return cat("(", type, ")", x);
}

std::string call_text(int32_t intrinsic, compute_dtype dtype, const std::vector<std::string>& v, Functions& functions) {
  if (intrinsic == COMPUTE_PLUGIN_INTRINSIC_WHERE) return cat("(", v[0], " ? ", v[1], " : ", v[2], ")");
  if (is_complex(dtype)) return complex_call(intrinsic, dtype, v, functions);
  if (const char* op = comparison(intrinsic)) return cat("(", v[0], op, v[1], ")");
  if (dtype == COMPUTE_DTYPE_BOOL) return bool_call(intrinsic, v);
  if (is_float(dtype)) return float_call(intrinsic, dtype, v, functions);
  return integer_call(intrinsic, dtype, v, functions);
}

namespace {

// The function for an intrinsic of an operand in a known range, which it spares special cases, or nullptr.
const char* function_in_range(int32_t intrinsic, compute_dtype dtype, const std::optional<Range>& x,
                              const Functions& functions) {
  if (dtype != COMPUTE_DTYPE_FLOAT32 || !x || x->low < 0) return nullptr;
  const char* found = nullptr;
  if (intrinsic == COMPUTE_PLUGIN_INTRINSIC_LOG && x->low >= 0x1p-126) found = "log_in_range_f32";
  if (intrinsic == COMPUTE_PLUGIN_INTRINSIC_SQRT && x->least_magnitude() >= 0x1p-100) found = "sqrt_in_range_f32";
  return found != nullptr && functions.has(found) ? found : nullptr;
}

// Whether a quotient is rounded to far fewer bits than float32 has, and depends on numbers that have no more. Other
// expressions, as an exponential alone, may have bounds that only float32's own functions keep.
bool is_of_halves(const compute_plugin_expression& expression) {
  const auto is_other = [&](const compute_plugin_node& node) {
    return node.kind == COMPUTE_PLUGIN_NODE_INPUT && !is_half(node.dtype);
  };
  const auto is_quotient = [](const compute_plugin_node& node) {
    return node.kind == COMPUTE_PLUGIN_NODE_CALL && node.value == COMPUTE_PLUGIN_INTRINSIC_DIV;
  };
  const std::span nodes(expression.nodes, static_cast<size_t>(expression.node_count));
  return std::ranges::none_of(nodes, is_other) && std::ranges::any_of(nodes, is_quotient) &&
         std::all_of(expression.outputs, expression.outputs + expression.output_count,
                     [&](int32_t output) { return is_half(expression.nodes[output].dtype); });
}

// The function for an intrinsic in an expression of halves, which is less exact than float32, or nullptr.
const char* function_of_halves(int32_t intrinsic, compute_dtype dtype, const Functions& functions) {
  if (dtype != COMPUTE_DTYPE_FLOAT32) return nullptr;
  const char* const found = intrinsic == COMPUTE_PLUGIN_INTRINSIC_EXP   ? "exp_of_halves_f32"
                            : intrinsic == COMPUTE_PLUGIN_INTRINSIC_DIV ? "quotient_of_halves_f32"
                                                                        : nullptr;
  return found != nullptr && functions.has(found) ? found : nullptr;
}

// Products of two 32-bit numbers of which an expression uses both halves: one instruction, where the dialect has a
// function for it. For each node that is a half, the first of the two nodes; else -1.
std::vector<int32_t> shared_products(const compute_plugin_expression& expression, const Functions& functions) {
  std::vector<int32_t> first(static_cast<size_t>(expression.node_count), -1);
  if (!functions.has("product_u32")) return first;
  struct Product {
    int32_t node;
    std::pair<int32_t, int32_t> operands;
    bool is_high;
  };
  std::vector<Product> products;
  for (int32_t i = 0; i < expression.node_count; ++i) {
    const compute_plugin_node& node = expression.nodes[i];
    const bool is_high = node.value == COMPUTE_PLUGIN_INTRINSIC_MUL_HIGH;
    if (node.kind != COMPUTE_PLUGIN_NODE_CALL || node.dtype != COMPUTE_DTYPE_UINT32 ||
        !(is_high || node.value == COMPUTE_PLUGIN_INTRINSIC_MUL))
      continue;
    const int32_t* operands = expression.operands + node.first_operand;
    products.push_back({i, std::minmax({operands[0], operands[1]}), is_high});
  }
  std::stable_sort(products.begin(), products.end(),
                   [](const Product& x, const Product& y) { return x.operands < y.operands; });
  for (size_t i = 1; i < products.size(); ++i) {
    const Product &before = products[i - 1], &own = products[i];
    if (before.operands != own.operands || before.is_high == own.is_high) continue;
    first[static_cast<size_t>(before.node)] = first[static_cast<size_t>(own.node)] = before.node;
  }
  return first;
}

}  // namespace

std::vector<std::string> print_expression(const compute_plugin_expression& expression, const Leaves& leaves,
                                          std::string_view prefix, Functions& functions, std::string& out) {
  std::vector<std::string> names(static_cast<size_t>(expression.node_count));
  std::string statements;
  const std::vector<int32_t> products = shared_products(expression, functions);
  const std::vector<std::optional<Range>> ranges = known_ranges(expression);
  const bool of_halves = is_of_halves(expression);
  for (int32_t i = 0; i < expression.node_count; ++i) {
    const compute_plugin_node& node = expression.nodes[i];
    const int32_t* operands = expression.operands + node.first_operand;
    std::string text;
    switch (node.kind) {
      case COMPUTE_PLUGIN_NODE_INPUT:
        text = leaves.input(node.value);
        break;
      case COMPUTE_PLUGIN_NODE_SCALAR:
        text = leaves.scalar(node.value);
        break;
      case COMPUTE_PLUGIN_NODE_INDEX:
        text = cat("(", value_type(node.dtype), ")", leaves.index(node.value));
        break;
      case COMPUTE_PLUGIN_NODE_CONSTANT:
        text = constant_text(node.dtype, node.bits);
        break;
      default: {
        std::vector<std::string> values;
        for (int32_t k = 0; k < node.operand_count; ++k) values.push_back(names[static_cast<size_t>(operands[k])]);
        const compute_dtype last = expression.nodes[operands[node.operand_count - 1]].dtype;
        const char* own = function_in_range(node.value, last, ranges[static_cast<size_t>(operands[0])], functions);
        if (own == nullptr && of_halves) own = function_of_halves(node.value, last, functions);
        if (const int32_t first = products[static_cast<size_t>(i)]; first >= 0) {
          const std::string product = cat(prefix, "product", first);
          if (first == i) {
            statements += cat("const u64 ", product, " = ", functions.need("product_u32"), "(", values[0], ", ",
                              values[1], ");\n");
          }
          text = node.value == COMPUTE_PLUGIN_INTRINSIC_MUL ? cat("(u32)", product) : cat("(u32)(", product, " >> 32)");
        } else if (node.value == COMPUTE_PLUGIN_INTRINSIC_CONVERT) {
          text = convert_text(values[0], last, node.dtype, functions);
        } else if (node.value == COMPUTE_PLUGIN_INTRINSIC_BITCAST) {
          text = node.dtype == last ? values[0] : from_bits(to_bits(values[0], last), node.dtype);
        } else if (own != nullptr) {
          text = cat(functions.need(own), "(", values[0], values.size() > 1 ? ", " + values[1] : "", ")");
        } else {
          text = call_text(node.value, last, values, functions);
        }
      }
    }
    std::string& name = names[static_cast<size_t>(i)];
    name = cat(prefix, i);
    statements += cat("const ", value_type(node.dtype), " ", name, " = ", text, ";\n");
  }
  out += in_grammar_of(functions.dialect(), statements);
  std::vector<std::string> outputs;
  for (int32_t k = 0; k < expression.output_count; ++k)
    outputs.push_back(names[static_cast<size_t>(expression.outputs[k])]);
  return outputs;
}

std::string missing_function(const compute_plugin_expression& expression, const Dialect& dialect) {
  Functions functions(dialect);
  std::string out;
  const auto any = [](int32_t) { return std::string("x"); };
  try {
    print_expression(expression, {any, any, any}, "v", functions, out);
  } catch (const Error& error) {
    if (error.code == COMPUTE_ERROR_UNSUPPORTED) return error.message;
    throw;
  }
  return "";
}

}  // namespace compute::common
