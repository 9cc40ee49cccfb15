// SPDX-License-Identifier: Apache-2.0
#include "source.hpp"

#include <algorithm>
#include <cstring>

#include "../core.hpp"
#include "functions.hpp"
#include "types.hpp"

namespace vulkan {

std::string Source::use(std::string_view function, char cls) {
  used_.insert(function_id(function, cls));
  return "q_" + std::string(function);
}

std::string Source::library() const { return function_texts(used_, features_.float64); }

std::string Source::function(std::string_view name, char cls, const std::string* x, int arity) {
  std::string text = use(name, cls) + "(" + x[0];
  for (int i = 1; i < arity; ++i) text += "," + x[i];
  return text + ")";
}

std::string Source::convert(int32_t from, int32_t to, std::string e) {
  if (from == to) return e;
  char s = class_of(from);
  const char d = class_of(to);
  if (s == 'h') {
    e = from == COMPUTE_DTYPE_FLOAT16 ? function("from_half", '-', &e, 1) : "uintBitsToFloat((" + e + ")<<16)";
    from = COMPUTE_DTYPE_FLOAT32;
    s = 'f';
    if (from == to) return e;
  }
  if (d == 'h') {
    // The only rounding is that to the narrow format.
    if (s == 'd')
      e = function("to_odd", 'd', &e, 1);
    else if (s == 'm')
      e = function("to_odd", 'm', &e, 1);
    else if (s == 'l')
      e = function("to_odd_signed", 'l', &e, 1);
    else if (s == 'i' && bits_of(from) == 32)
      e = function("to_odd_narrow", 'i', &e, 1);
    else if (s == 'u' && bits_of(from) == 32)
      e = "uint64_t(" + e + ")", e = function("to_odd", 'm', &e, 1);
    else if (s != 'f')
      e = "float(" + e + ")";
    return function(to == COMPUTE_DTYPE_FLOAT16 ? "to_half" : "to_bfloat", '-', &e, 1);
  }
  if (d == 'b') {
    if (is_real(s)) return function("nonzero", s, &e, 1);
    if (is_complex(s)) {
      const std::string name = use("nonzero", s == 'c' ? 'f' : 'd');
      return "(" + name + "((" + e + ").x)||" + name + "((" + e + ").y))";
    }
    return "((" + e + ")!=" + type_of(from) + "(0))";
  }
  if (is_complex(d)) {
    if (is_complex(s)) return type_of(to) + "(" + e + ")";
    const int32_t part = d == 'c' ? COMPUTE_DTYPE_FLOAT32 : COMPUTE_DTYPE_FLOAT64;
    return type_of(to) + "(" + convert(from, part, e) + "," + zero_text(part) + ")";
  }
  if (is_complex(s)) throw Refused{COMPUTE_PLUGIN_REFUSE_DTYPE, -1, "complex numbers do not convert to real ones"};
  if (is_real(d)) return type_of(to) + "(" + e + ")";
  if (is_real(s)) {
    if (d == 'l') return function("to_int64", s, &e, 1);
    if (d == 'm') return function("to_uint64", s, &e, 1);
    if (d == 'u') {
      const std::string most = std::to_string((uint64_t{1} << bits_of(to)) - 1) + "u";
      return use("to_uint", s) + "(" + e + "," + most + ")";
    }
    const std::string most = std::to_string((int64_t{1} << (bits_of(to) - 1)) - 1);
    return use("to_int", s) + "(" + e + ",-" + most + "-1," + most + ")";
  }
  if (d == 'm' && s == 'i') return "uint64_t(int64_t(" + e + "))";
  if (d == 'l' && s == 'i') return function("widen", 'i', &e, 1);
  return wrapped(to, type_of(to) + "(" + e + ")");
}

std::string Source::combine(std::string_view kind, int32_t dtype, const std::string& a, const std::string& b) {
  const std::string x[3] = {a, b, b};
  const auto go = [&](int32_t id) { return call(id, dtype, dtype, x); };
  if (kind == "sum" || kind == "add") return go(COMPUTE_PLUGIN_INTRINSIC_ADD);
  if (kind == "prod" || kind == "mul") return go(COMPUTE_PLUGIN_INTRINSIC_MUL);
  if (kind == "min") return go(COMPUTE_PLUGIN_INTRINSIC_MIN);
  if (kind == "max") return go(COMPUTE_PLUGIN_INTRINSIC_MAX);
  if (kind == "all") return go(COMPUTE_PLUGIN_INTRINSIC_BIT_AND);
  if (kind == "any") return go(COMPUTE_PLUGIN_INTRINSIC_BIT_OR);
  throw Refused{COMPUTE_PLUGIN_REFUSE_ATTRIBUTE, -1, "an unknown kind of combination"};
}

std::string Source::integer_call(int32_t id, int32_t dtype, const std::string* x) {
  const char c = class_of(dtype);
  const std::string &a = x[0], &b = x[1], T = type_of(dtype);
  const bool is_signed = c == 'i' || c == 'l', is_wide = c == 'l' || c == 'm';
  const std::string width = std::to_string(bits_of(dtype));
  const std::string in_range = is_wide ? "uint64_t(" + b + ")<" + width + "ul" : "uint(" + b + ")<" + width + "u";
  switch (id) {
    case COMPUTE_PLUGIN_INTRINSIC_ADD:
      return wrapped(dtype, a + "+" + b);
    case COMPUTE_PLUGIN_INTRINSIC_SUB:
      return wrapped(dtype, a + "-" + b);
    case COMPUTE_PLUGIN_INTRINSIC_MUL:
      return wrapped(dtype, a + "*" + b);
    case COMPUTE_PLUGIN_INTRINSIC_FLOOR_DIV:
      return wrapped(dtype, function("floor_div", c, x, 2));
    case COMPUTE_PLUGIN_INTRINSIC_MOD:
      return wrapped(dtype, function("mod", c, x, 2));
    case COMPUTE_PLUGIN_INTRINSIC_POW:
      return wrapped(dtype, function("pow", c, x, 2));
    case COMPUTE_PLUGIN_INTRINSIC_MUL_HIGH:
      if (bits_of(dtype) < 32) return wrapped(dtype, "(" + a + "*" + b + ")>>" + width);
      return function(c == 'l' ? "mul_high_signed" : "mul_high", c, x, 2);
    case COMPUTE_PLUGIN_INTRINSIC_NEG:
      return wrapped(dtype, is_signed ? "-" + a : T + "(0)-" + a);
    case COMPUTE_PLUGIN_INTRINSIC_ABS:
      return is_signed ? wrapped(dtype, a + "<0?-" + a + ":" + a) : a;
    case COMPUTE_PLUGIN_INTRINSIC_SIGN:
      return "(" + a + ">" + T + "(0)?" + T + "(1):" + (is_signed ? a + "<" + T + "(0)?" + T + "(-1):" : "") + T +
             "(0))";
    case COMPUTE_PLUGIN_INTRINSIC_BIT_AND:
      return "(" + a + "&" + b + ")";
    case COMPUTE_PLUGIN_INTRINSIC_BIT_OR:
      return "(" + a + "|" + b + ")";
    case COMPUTE_PLUGIN_INTRINSIC_BIT_XOR:
      return "(" + a + "^" + b + ")";
    case COMPUTE_PLUGIN_INTRINSIC_BIT_NOT:
      return wrapped(dtype, "~" + a);
    case COMPUTE_PLUGIN_INTRINSIC_SHL:
      return wrapped(dtype, in_range + "?" + a + "<<int(" + b + "):" + T + "(0)");
    case COMPUTE_PLUGIN_INTRINSIC_SHR:
      return "(" + in_range + "?" + a + ">>int(" + b +
             "):" + (is_signed ? "(" + a + "<" + T + "(0)?" + T + "(-1):" + T + "(0))" : T + "(0)") + ")";
    case COMPUTE_PLUGIN_INTRINSIC_FLOOR:
    case COMPUTE_PLUGIN_INTRINSIC_CEIL:
    case COMPUTE_PLUGIN_INTRINSIC_TRUNC:
    case COMPUTE_PLUGIN_INTRINSIC_ROUND:
    case COMPUTE_PLUGIN_INTRINSIC_CONJ:
      return a;
    case COMPUTE_PLUGIN_INTRINSIC_ISNAN:
    case COMPUTE_PLUGIN_INTRINSIC_ISINF:
      return "false";
    case COMPUTE_PLUGIN_INTRINSIC_ISFINITE:
      return "true";
    default:
      return "";
  }
}

namespace {

// Functions of the library that have the name and the meaning of an intrinsic.
struct Named {
  int32_t intrinsic;
  const char* name;
  int arity;
  bool is_complex;  // there is one of complex numbers, with the prefix c
};
constexpr Named kNamed[] = {
    {COMPUTE_PLUGIN_INTRINSIC_DIV, "div", 2, true},
    {COMPUTE_PLUGIN_INTRINSIC_FLOOR_DIV, "floor_div", 2, false},
    {COMPUTE_PLUGIN_INTRINSIC_MOD, "mod", 2, false},
    {COMPUTE_PLUGIN_INTRINSIC_SIGN, "sign", 1, true},
    {COMPUTE_PLUGIN_INTRINSIC_MIN, "min", 2, false},
    {COMPUTE_PLUGIN_INTRINSIC_MAX, "max", 2, false},
    {COMPUTE_PLUGIN_INTRINSIC_POW, "pow", 2, true},
    {COMPUTE_PLUGIN_INTRINSIC_SQRT, "sqrt", 1, true},
    {COMPUTE_PLUGIN_INTRINSIC_RSQRT, "rsqrt", 1, false},
    {COMPUTE_PLUGIN_INTRINSIC_CBRT, "cbrt", 1, false},
    {COMPUTE_PLUGIN_INTRINSIC_EXP, "exp", 1, true},
    {COMPUTE_PLUGIN_INTRINSIC_EXP2, "exp2", 1, false},
    {COMPUTE_PLUGIN_INTRINSIC_EXPM1, "expm1", 1, true},
    {COMPUTE_PLUGIN_INTRINSIC_LOG, "log", 1, true},
    {COMPUTE_PLUGIN_INTRINSIC_LOG1P, "log1p", 1, true},
    {COMPUTE_PLUGIN_INTRINSIC_LOG2, "log2", 1, true},
    {COMPUTE_PLUGIN_INTRINSIC_LOG10, "log10", 1, true},
    {COMPUTE_PLUGIN_INTRINSIC_SIN, "sin", 1, true},
    {COMPUTE_PLUGIN_INTRINSIC_COS, "cos", 1, true},
    {COMPUTE_PLUGIN_INTRINSIC_TAN, "tan", 1, true},
    {COMPUTE_PLUGIN_INTRINSIC_ASIN, "asin", 1, true},
    {COMPUTE_PLUGIN_INTRINSIC_ACOS, "acos", 1, true},
    {COMPUTE_PLUGIN_INTRINSIC_ATAN, "atan", 1, true},
    {COMPUTE_PLUGIN_INTRINSIC_ATAN2, "atan2", 2, false},
    {COMPUTE_PLUGIN_INTRINSIC_SINH, "sinh", 1, true},
    {COMPUTE_PLUGIN_INTRINSIC_COSH, "cosh", 1, true},
    {COMPUTE_PLUGIN_INTRINSIC_TANH, "tanh", 1, true},
    {COMPUTE_PLUGIN_INTRINSIC_ASINH, "asinh", 1, true},
    {COMPUTE_PLUGIN_INTRINSIC_ACOSH, "acosh", 1, true},
    {COMPUTE_PLUGIN_INTRINSIC_ATANH, "atanh", 1, true},
    {COMPUTE_PLUGIN_INTRINSIC_HYPOT, "hypot", 2, false},
    {COMPUTE_PLUGIN_INTRINSIC_COPYSIGN, "copysign", 2, false},
    {COMPUTE_PLUGIN_INTRINSIC_NEXTAFTER, "nextafter", 2, false},
    {COMPUTE_PLUGIN_INTRINSIC_SIGNBIT, "signbit", 1, false},
    {COMPUTE_PLUGIN_INTRINSIC_ISNAN, "isnan", 1, true},
    {COMPUTE_PLUGIN_INTRINSIC_ISINF, "isinf", 1, true},
    {COMPUTE_PLUGIN_INTRINSIC_ISFINITE, "isfinite", 1, true},
    {COMPUTE_PLUGIN_INTRINSIC_ERF, "erf", 1, false},
    {COMPUTE_PLUGIN_INTRINSIC_ERFC, "erfc", 1, false},
    {COMPUTE_PLUGIN_INTRINSIC_LOGADDEXP, "logaddexp", 2, false},
    {COMPUTE_PLUGIN_INTRINSIC_ERFINV, "erfinv", 1, false},
    {COMPUTE_PLUGIN_INTRINSIC_DIGAMMA, "digamma", 1, false},
    {COMPUTE_PLUGIN_INTRINSIC_LGAMMA, "lgamma", 1, false},
};

const Named* named(int32_t intrinsic) {
  const auto* found = std::find_if(std::begin(kNamed), std::end(kNamed),
                                   [&](const Named& each) { return each.intrinsic == intrinsic; });
  return found == std::end(kNamed) ? nullptr : found;
}

}  // namespace

std::string Source::real_call(int32_t id, char c, const std::string* x) {
  const std::string &a = x[0], &b = x[1];
  switch (id) {
    case COMPUTE_PLUGIN_INTRINSIC_MUL:
      return "(" + a + "*" + b + ")";
    case COMPUTE_PLUGIN_INTRINSIC_ABS:
      return "abs(" + a + ")";
    case COMPUTE_PLUGIN_INTRINSIC_FLOOR:
      return "floor(" + a + ")";
    case COMPUTE_PLUGIN_INTRINSIC_CEIL:
      return "ceil(" + a + ")";
    case COMPUTE_PLUGIN_INTRINSIC_TRUNC:
      return function("trunc", c, x, 1);
    case COMPUTE_PLUGIN_INTRINSIC_ROUND:
      return function("round", c, x, 1);
    case COMPUTE_PLUGIN_INTRINSIC_CONJ:
      return a;
    case COMPUTE_PLUGIN_INTRINSIC_COMPLEX:
      return (c == 'f' ? "vec2(" : "dvec2(") + a + "," + b + ")";
    default:
      break;
  }
  const Named* const found = named(id);
  return found == nullptr ? "" : function(found->name, c, x, found->arity);
}

std::string Source::complex_call(int32_t id, char c, const std::string* x) {
  const std::string& a = x[0];
  const char real = c == 'c' ? 'f' : 'd';
  switch (id) {
    case COMPUTE_PLUGIN_INTRINSIC_REAL:
      return "(" + a + ").x";
    case COMPUTE_PLUGIN_INTRINSIC_IMAG:
      return "(" + a + ").y";
    case COMPUTE_PLUGIN_INTRINSIC_CONJ:
      return (c == 'c' ? "vec2((" : "dvec2((") + a + ").x,-(" + a + ").y)";
    case COMPUTE_PLUGIN_INTRINSIC_ROUND:
      return function("cround", c, x, 1);
    case COMPUTE_PLUGIN_INTRINSIC_MUL:
      return function("cmul", c, x, 2);
    case COMPUTE_PLUGIN_INTRINSIC_ABS: {
      const std::string parts[2] = {"(" + a + ").x", "(" + a + ").y"};
      return function("hypot", real, parts, 2);
    }
    case COMPUTE_PLUGIN_INTRINSIC_ARG: {
      const std::string parts[2] = {"(" + a + ").y", "(" + a + ").x"};
      return function("atan2", real, parts, 2);
    }
    default:
      break;
  }
  const Named* const found = named(id);
  if (found == nullptr || !found->is_complex) return "";
  const bool is_question = id >= COMPUTE_PLUGIN_INTRINSIC_ISNAN && id <= COMPUTE_PLUGIN_INTRINSIC_ISFINITE;
  if (c == 'z' || !features_.float64 || is_question)
    return function("c" + std::string(found->name), c, x, found->arity);
  const std::string wide[2] = {"dvec2(" + x[0] + ")", "dvec2(" + x[1] + ")"};
  return "vec2(" + function("c" + std::string(found->name), 'z', wide, found->arity) + ")";
}

std::string Source::call(int32_t id, int32_t from, int32_t to, const std::string* x) {
  const char c = class_of(from);
  const std::string &a = x[0], &b = x[1];
  const auto infix = [&](const char* sign) { return "(" + a + sign + b + ")"; };
  if (is_real(c) && !features_.keeps_subnormals[c == 'f' ? 0 : 1]) {
    const std::string swapped[2] = {b, a};
    switch (id) {
      case COMPUTE_PLUGIN_INTRINSIC_EQ:
        return function("equal", c, x, 2);
      case COMPUTE_PLUGIN_INTRINSIC_NE:
        return "(!" + function("equal", c, x, 2) + ")";
      case COMPUTE_PLUGIN_INTRINSIC_LT:
        return function("less", c, x, 2);
      case COMPUTE_PLUGIN_INTRINSIC_LE:
        return function("less_or_equal", c, x, 2);
      case COMPUTE_PLUGIN_INTRINSIC_GT:
        return function("less", c, swapped, 2);
      case COMPUTE_PLUGIN_INTRINSIC_GE:
        return function("less_or_equal", c, swapped, 2);
      default:
        break;
    }
  }
  if (is_complex(c) && id == COMPUTE_PLUGIN_INTRINSIC_EQ) return function("cequal", c, x, 2);
  if (is_complex(c) && id == COMPUTE_PLUGIN_INTRINSIC_NE) return "(!" + function("cequal", c, x, 2) + ")";
  switch (id) {
    case COMPUTE_PLUGIN_INTRINSIC_CONVERT:
      return convert(from, to, a);
    case COMPUTE_PLUGIN_INTRINSIC_BITCAST:
      return from == to ? a : value_from(to, bits_from(from, a));
    case COMPUTE_PLUGIN_INTRINSIC_WHERE:
      return "(" + a + "?" + b + ":" + x[2] + ")";
    case COMPUTE_PLUGIN_INTRINSIC_EQ:
      return infix("==");
    case COMPUTE_PLUGIN_INTRINSIC_NE:
      return infix("!=");
    default:
      break;
  }
  std::string text;
  if (c == 'b') {
    switch (id) {
      case COMPUTE_PLUGIN_INTRINSIC_BIT_AND:
        return infix("&&");
      case COMPUTE_PLUGIN_INTRINSIC_BIT_OR:
        return infix("||");
      case COMPUTE_PLUGIN_INTRINSIC_BIT_XOR:
        return infix("!=");
      case COMPUTE_PLUGIN_INTRINSIC_BIT_NOT:
        return "(!" + a + ")";
      default:
        break;
    }
  } else {
    switch (id) {
      case COMPUTE_PLUGIN_INTRINSIC_LT:
        return infix("<");
      case COMPUTE_PLUGIN_INTRINSIC_LE:
        return infix("<=");
      case COMPUTE_PLUGIN_INTRINSIC_GT:
        return infix(">");
      case COMPUTE_PLUGIN_INTRINSIC_GE:
        return infix(">=");
      default:
        break;
    }
    if (is_integer(c)) {
      if (id == COMPUTE_PLUGIN_INTRINSIC_MIN) return function("min", c, x, 2);
      if (id == COMPUTE_PLUGIN_INTRINSIC_MAX) return function("max", c, x, 2);
      text = integer_call(id, from, x);
    } else {
      switch (id) {
        case COMPUTE_PLUGIN_INTRINSIC_ADD:
          return infix("+");
        case COMPUTE_PLUGIN_INTRINSIC_SUB:
          return infix("-");
        case COMPUTE_PLUGIN_INTRINSIC_NEG:
          return "(-" + a + ")";
        default:
          break;
      }
      text = is_real(c) ? real_call(id, c, x) : is_complex(c) ? complex_call(id, c, x) : "";
    }
  }
  if (text.empty()) throw Refused{COMPUTE_PLUGIN_REFUSE_INTRINSIC, id, "an intrinsic that the plugin does not know"};
  return text;
}

// llvmpipe drops an addition of the constant 0, also to -0, so this is a 0 that no compiler knows.
std::string zero_text(int32_t dtype) {
  return class_of(dtype) == 'f' ? "uintBitsToFloat(gl_NumWorkGroups.y-1u)"
                                : "packDouble2x32(uvec2(0u,gl_NumWorkGroups.y-1u))";
}

std::string constant_text(int32_t dtype, const uint8_t* bytes) {
  uint64_t low = 0, high = 0;
  std::memcpy(&low, bytes, 8);
  std::memcpy(&high, bytes + 8, 8);
  if (is_real(class_of(dtype)) && low == 0) return zero_text(dtype);
  const auto wide = [](uint64_t bits) { return "packDouble2x32(unpackUint2x32(" + std::to_string(bits) + "ul))"; };
  if (bits_of(dtype) == 128) return "dvec2(" + wide(low) + "," + wide(high) + ")";
  if (bits_of(dtype) == 64) return value_from(dtype, std::to_string(low) + "ul");
  return value_from(dtype, std::to_string(low & 0xffffffffu) + "u");
}

std::vector<std::string> Source::emit(std::string& out, const compute_plugin_expression& e, const std::string& prefix,
                                      const Leaves& leaves) {
  for (int32_t i = 0; i < e.node_count; ++i) {
    const compute_plugin_node& node = e.nodes[i];
    std::string value = leaves.known ? leaves.known(i) : "";
    if (!value.empty()) {
      out += type_of(node.dtype) + " " + prefix + std::to_string(i) + "=" + value + ";\n";
      continue;
    }
    switch (node.kind) {
      case COMPUTE_PLUGIN_NODE_INPUT:
        value = leaves.input(node.value, node.dtype);
        break;
      case COMPUTE_PLUGIN_NODE_SCALAR:
        value = leaves.scalar(node.value, node.dtype);
        break;
      case COMPUTE_PLUGIN_NODE_INDEX:
        value = type_of(node.dtype) + "(" + leaves.index(node.value) + ")";
        break;
      case COMPUTE_PLUGIN_NODE_CONSTANT:
        value = constant_text(node.dtype, node.bits);
        break;
      case COMPUTE_PLUGIN_NODE_CALL: {
        std::string x[3];
        for (int32_t k = 0; k < node.operand_count && k < 3; ++k)
          x[k] = prefix + std::to_string(e.operands[node.first_operand + k]);
        value = call(node.value, e.nodes[e.operands[node.first_operand]].dtype, node.dtype, x);
        break;
      }
      default:
        throw Refused{COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED, -1, "a kind of node that the plugin does not know"};
    }
    out += type_of(node.dtype) + " " + prefix + std::to_string(i) + "=" + value + ";\n";
  }
  std::vector<std::string> names;
  for (int32_t i = 0; i < e.output_count; ++i) names.push_back(prefix + std::to_string(e.outputs[i]));
  return names;
}

namespace {

// Run-time scalars are not compared: each expression has its own.
bool is_same(const compute_plugin_expression& a, int32_t i, const compute_plugin_expression& b, int32_t k,
             int& budget) {
  const compute_plugin_node &x = a.nodes[i], &y = b.nodes[k];
  if (--budget < 0 || x.kind != y.kind || x.dtype != y.dtype) return false;
  if (x.kind == COMPUTE_PLUGIN_NODE_CONSTANT) return std::memcmp(x.bits, y.bits, sizeof x.bits) == 0;
  if (x.value != y.value || x.kind == COMPUTE_PLUGIN_NODE_SCALAR) return false;
  if (x.kind != COMPUTE_PLUGIN_NODE_CALL) return true;
  if (x.operand_count != y.operand_count) return false;
  for (int32_t n = 0; n < x.operand_count; ++n)
    if (!is_same(a, a.operands[x.first_operand + n], b, b.operands[y.first_operand + n], budget)) return false;
  return true;
}

}  // namespace

int32_t find_same(const compute_plugin_expression& a, const compute_plugin_expression& b) {
  int budget = 10000;
  if (a.nodes[a.outputs[0]].kind != COMPUTE_PLUGIN_NODE_CALL) return -1;
  for (int32_t k = 0; k < b.node_count; ++k)
    if (is_same(a, a.outputs[0], b, k, budget)) return k;
  return -1;
}

// Only short expressions are unrolled four times: long ones are not limited by memory.
bool is_heavy(const compute_plugin_expression& e) {
  int cost = 0;
  for (int32_t i = 0; i < e.node_count; ++i) {
    const compute_plugin_node& node = e.nodes[i];
    if (node.kind != COMPUTE_PLUGIN_NODE_CALL || node.value < COMPUTE_PLUGIN_INTRINSIC_POW) continue;
    const bool is_function =
        node.value == COMPUTE_PLUGIN_INTRINSIC_POW ||
        (node.value >= COMPUTE_PLUGIN_INTRINSIC_CBRT && node.value <= COMPUTE_PLUGIN_INTRINSIC_HYPOT) ||
        node.value >= COMPUTE_PLUGIN_INTRINSIC_ERF;
    if (is_function) cost += is_complex(class_of(node.dtype)) || needs_float64(node.dtype) ? 4 : 1;
  }
  return cost > 3;
}

bool uses_index(const compute_plugin_expression& e) {
  return std::any_of(e.nodes, e.nodes + e.node_count,
                     [](const compute_plugin_node& node) { return node.kind == COMPUTE_PLUGIN_NODE_INDEX; });
}

}  // namespace vulkan
