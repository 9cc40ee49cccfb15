// SPDX-License-Identifier: Apache-2.0
#include "plugins/common/source/expressions/functions.hpp"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "plugins/common/op/core.hpp"
#include "plugins/common/source/expressions/grammar.hpp"
#include "plugins/common/source/expressions/template.hpp"
#include "plugins/common/source/expressions/types.hpp"

namespace compute::common {
namespace {

constexpr FunctionText kFunctions[] = {
#define FUNCTION(base, classes, needs, text) {base, classes, needs, text},
#include "plugins/common/source/expressions/complex_functions.inc"
#include "plugins/common/source/expressions/real_functions.inc"
// Behind the others: where there are two, the others are for C.
#include "plugins/common/source/expressions/float32_functions.inc"
#undef FUNCTION
};

// The polynomials of special_series.inc, as text.
struct Series {
  std::string_view name;
  std::string single, wide;
};

// "(c0, c1, c2)": c0 + x (c1 + x c2)
std::string polynomial(std::string_view variable, std::string_view list) {
  list = list.substr(1, list.size() - 2);
  std::string text, closing;
  while (!list.empty()) {
    const size_t end = std::min(list.find(','), list.size());
    const std::string_view one = list.substr(0, end);
    list.remove_prefix(std::min(end + 2, list.size()));
    text += list.empty() ? std::string(one) : cat("fma(", variable, ", ");
    closing = list.empty() ? closing : cat(", ", one, ")", closing);
  }
  return text + closing;
}

const std::vector<Series>& all_series() {
  static const std::vector<Series>& rows = *new std::vector<Series>{
#define SERIES(name, variable, single, wide) {#name, polynomial(#variable, #single), polynomial(#variable, #wide)},
#include "plugins/common/source/expressions/special_series.inc"
#undef SERIES
  };
  return rows;
}

char class_of(compute_dtype dtype) {
  switch (dtype_row(dtype).category) {
    case Category::kSigned:
      return 's';
    case Category::kUnsigned:
      return 'u';
    case Category::kFloat:
      return 'f';
    case Category::kComplex:
      return 'c';
    default:
      return '-';
  }
}

const FunctionText* find(std::span<const FunctionText> functions, std::string_view base, compute_dtype dtype) {
  const char letter = dtype == COMPUTE_DTYPE_NONE ? '-' : class_of(dtype);
  for (const FunctionText& function : functions) {
    if (function.base != base) continue;
    const std::string_view classes = function.classes;
    const bool is_single = dtype == COMPUTE_DTYPE_FLOAT32 && classes.find('4') != std::string_view::npos;
    if (is_single || classes.find(letter) != std::string_view::npos) return &function;
  }
  return nullptr;
}

const FunctionText* find(const Dialect& dialect, std::string_view base, compute_dtype dtype) {
  const FunctionText* own = find(dialect.functions, base, dtype);
  return own != nullptr ? own : find(kFunctions, base, dtype);
}

// The words of a template for one dtype.
std::optional<std::string_view> word_of(std::string_view word, compute_dtype dtype) {
  const compute_dtype real = part_of(dtype);
  const bool wide = real == COMPUTE_DTYPE_FLOAT64;
  struct Limits {
    const char *bits, *least, *greatest;
  };
  static constexpr Limits kLimits[] = {
      {"8", "((i8)-128)", "((i8)127)"},
      {"16", "((i16)-32768)", "((i16)32767)"},
      {"32", "((i32)(-2147483647 - 1))", "((i32)2147483647)"},
      {"64", "((i64)COMPUTE_U64(0x8000000000000000))", "((i64)COMPUTE_U64(0x7fffffffffffffff))"},
      {"8", "((u8)0)", "((u8)255)"},
      {"16", "((u16)0)", "((u16)65535)"},
      {"32", "((u32)0)", "((u32)0xffffffff)"},
      {"64", "((u64)0)", "((u64)COMPUTE_U64(0xffffffffffffffff))"},
  };
  const auto limits = [&]() -> const Limits& { return kLimits[dtype - COMPUTE_DTYPE_INT8]; };
  const std::pair<std::string_view, std::pair<std::string_view, std::string_view>> floats[] = {
      {"f", {"f", ""}},
      {"S", {"i32", "i64"}},
      {"WORD", {"u32", "u64"}},
      {"C", {"COMPUTE_C64", "COMPUTE_C128"}},
      {"AS_I", {"COMPUTE_AS_I32", "COMPUTE_AS_I64"}},
      {"AS_F", {"COMPUTE_AS_F32", "COMPUTE_AS_F64"}},
      {"SIGN", {"((i32)0x80000000)", "((i64)COMPUTE_U64(0x8000000000000000))"}},
      {"INF", {"COMPUTE_AS_F32(0x7f800000)", "COMPUTE_AS_F64(COMPUTE_I64(0x7ff0000000000000))"}},
      {"NAN", {"COMPUTE_AS_F32(0x7fc00000)", "COMPUTE_AS_F64(COMPUTE_I64(0x7ff8000000000000))"}},
      {"EXP_ABOVE", {"89.0f", "710.0"}},
      {"EXP_BELOW", {"-104.0f", "-746.0"}},
      {"EXP_ROUND", {"(0x1.8p23f + 127.0f)", "(0x1.8p52 + 1023.0)"}},
      {"EXP_PART", {"32.0f", "512.0"}},
      {"EXP_SMALL", {"0x1p-32f", "0x1p-512"}},
      {"EXP_GREAT", {"0x1p32f", "0x1p512"}},
      {"LN2_HIGH", {"0x1.62e4p-1f", "0x1.62e42fefa3p-1"}},
      {"LN2_LOW", {"0x1.7f7d1cp-20f", "0x1.3de6af278ece6p-42"}},
      // (exp(r) - 1 - r) / r^2: a polynomial fitted to it for float32, which is a term shorter than the series, and the
      // exponential series for float64.
      {"EXP_SERIES",
       {"fma(r, fma(r, fma(r, fma(r, 0x1.69df0ep-10f, 0x1.12422cp-7f), 0x1.55582ap-5f), 0x1.555486p-3f), 0.5f)",
        "fma(r, fma(r, fma(r, fma(r, fma(r, fma(r, fma(r, fma(r, fma(r, fma(r, fma(r, 1.605904383682161e-10, "
        "2.08767569878681e-9), 2.505210838544172e-8), 2.755731922398589e-7), 2.7557319223985893e-6), "
        "2.48015873015873e-5), 1.984126984126984e-4), 1.388888888888889e-3), 8.33333333333333333e-3), "
        "4.16666666666666667e-2), 1.66666666666666667e-1), 0.5)"}},
      // r rounds n times ln(2). What that leaves out is added where it would exceed the bound.
      {"EXP_REST", {"fma(q * r, r, r)", "r + fma(q * r, r, fma(n, -0x1.3de6af278ece6p-42, h - r))"}},
      // Pairs: the nearest number and what is left; of atan(n / 4), and of 1 / 5 + t / 7 + t^2 / 9 …
      {"PAIR_THIRD", {"0x1.555556p-2f, -0x1.555556p-27f", "0x1.5555555555555p-2, 0x1.5555555555555p-56"}},
      {"PAIR_ATAN_1", {"0x1.f5b76p-3f, -0x1.b4dfc8p-29f", "0x1.f5b75f92c80ddp-3, 0x1.8ab6e3cf7afbdp-57"}},
      {"PAIR_ATAN_2", {"0x1.dac67p-2f, 0x1.586ed4p-28f", "0x1.dac670561bb4fp-2, 0x1.a2b7f222f65e2p-56"}},
      {"PAIR_ATAN_3", {"0x1.4978fap-1f, 0x1.934f7p-28f", "0x1.4978fa3269ee1p-1, 0x1.2419a87f2a458p-56"}},
      {"PAIR_ATAN_4", {"0x1.921fb6p-1f, -0x1.777a5cp-26f", "0x1.921fb54442d18p-1, 0x1.1a62633145c07p-55"}},
      {"PAIR_HALF_PI", {"0x1.921fb6p0f, -0x1.777a5cp-25f", "0x1.921fb54442d18p0, 0x1.1a62633145c07p-54"}},
      {"PAIR_PI", {"0x1.921fb6p1f, -0x1.777a5cp-24f", "0x1.921fb54442d18p1, 0x1.1a62633145c07p-53"}},
      {"ATANH_SERIES",
       {"fma(t, fma(t, fma(t, 0.09090909090909091f, 0.1111111111111111f), 0.14285714285714285f), 0.2f)",
        "fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, 0.037037037037037035, 0.04),"
        " 0.043478260869565216), 0.047619047619047616), 0.05263157894736842), 0.058823529411764705), 0.06666666666"
        "666667), 0.07692307692307693), 0.09090909090909091), 0.1111111111111111), 0.14285714285714285), 0.2)"}},
      // The root of digamma, less 1, in two parts.
      {"DIGAMMA_ROOT", {"0x1.d8b618p-2f", "0x1.d8b618d5af8fep-2"}},
      {"DIGAMMA_REST", {"0x1.ab5f1fp-27f", "-0x1.1e563779a1f5bp-56"}},
      {"ERFINV_TAIL_FROM", {"18.0f", "14.0"}},
      {"WHOLE", {"0x1p24f", "0x1p53"}},
      {"TOP", {"254", "2046"}},
      {"MANTISSA", {"23", "52"}},
      {"EPS", {"0x1p-23f", "0x1p-52"}},
      {"EXP_MAX", {"88.0f", "709.0"}},
      {"TANH_ONE", {"11.0f", "22.0"}},
      {"HUGE", {"0x1p126f", "0x1p1022"}},
      {"TINY", {"0x1p-100f", "0x1p-960"}},
      {"TO_NORMAL", {"0x1p48f", "0x1p108"}},
      {"SQRT_FROM_NORMAL", {"0x1p-24f", "0x1p-54"}},
      {"LOG_TO_NORMAL", {"33.271064666877376f", "74.85989550047409"}},
      {"SAFE_MAX", {"0x1p61f", "0x1p509"}},
      {"SAFE_MIN", {"0x1p-61f", "0x1p-509"}},
  };
  if (word == "T") return type_text(dtype).value;
  if (word == "t") return type_text(dtype).name;
  if (word == "R") return type_text(real).value;
  if (word == "r") return type_text(real).name;
  if (word == "U") return type_text(unsigned_of(dtype)).value;
  if (word == "W") return dtype_size(dtype) == 8 ? "u64" : "u32";
  if (word == "BITS") return limits().bits;
  if (word == "MIN") return limits().least;
  if (word == "MAX") return limits().greatest;
  for (const auto& [name, texts] : floats) {
    if (name == word) return wide ? texts.second : texts.first;
  }
  for (const Series& series : all_series()) {
    if (series.name == word) return wide ? series.wide : series.single;
  }
  return std::nullopt;
}

struct MathFunction {
  int32_t intrinsic;
  const char* name;
};
constexpr MathFunction kMath[] = {
    {COMPUTE_PLUGIN_INTRINSIC_FLOOR, "floor"}, {COMPUTE_PLUGIN_INTRINSIC_CEIL, "ceil"},
    {COMPUTE_PLUGIN_INTRINSIC_TRUNC, "trunc"}, {COMPUTE_PLUGIN_INTRINSIC_ROUND, "rint"},
    {COMPUTE_PLUGIN_INTRINSIC_SQRT, "sqrt"},   {COMPUTE_PLUGIN_INTRINSIC_RSQRT, "rsqrt"},
    {COMPUTE_PLUGIN_INTRINSIC_CBRT, "cbrt"},   {COMPUTE_PLUGIN_INTRINSIC_EXP, "exp"},
    {COMPUTE_PLUGIN_INTRINSIC_EXP2, "exp2"},   {COMPUTE_PLUGIN_INTRINSIC_EXPM1, "expm1"},
    {COMPUTE_PLUGIN_INTRINSIC_LOG, "log"},     {COMPUTE_PLUGIN_INTRINSIC_LOG1P, "log1p"},
    {COMPUTE_PLUGIN_INTRINSIC_LOG2, "log2"},   {COMPUTE_PLUGIN_INTRINSIC_LOG10, "log10"},
    {COMPUTE_PLUGIN_INTRINSIC_SIN, "sin"},     {COMPUTE_PLUGIN_INTRINSIC_COS, "cos"},
    {COMPUTE_PLUGIN_INTRINSIC_TAN, "tan"},     {COMPUTE_PLUGIN_INTRINSIC_ASIN, "asin"},
    {COMPUTE_PLUGIN_INTRINSIC_ACOS, "acos"},   {COMPUTE_PLUGIN_INTRINSIC_ATAN, "atan"},
    {COMPUTE_PLUGIN_INTRINSIC_ATAN2, "atan2"}, {COMPUTE_PLUGIN_INTRINSIC_SINH, "sinh"},
    {COMPUTE_PLUGIN_INTRINSIC_COSH, "cosh"},   {COMPUTE_PLUGIN_INTRINSIC_TANH, "tanh"},
    {COMPUTE_PLUGIN_INTRINSIC_ASINH, "asinh"}, {COMPUTE_PLUGIN_INTRINSIC_ACOSH, "acosh"},
    {COMPUTE_PLUGIN_INTRINSIC_ATANH, "atanh"}, {COMPUTE_PLUGIN_INTRINSIC_POW, "pow"},
    {COMPUTE_PLUGIN_INTRINSIC_HYPOT, "hypot"}, {COMPUTE_PLUGIN_INTRINSIC_COPYSIGN, "copysign"},
    {COMPUTE_PLUGIN_INTRINSIC_ERF, "erf"},     {COMPUTE_PLUGIN_INTRINSIC_ERFC, "erfc"},
};

// Those of C's mathematics library that are no intrinsics.
constexpr std::string_view kOthers[] = {"fmax", "fmin", "fmod", "ilogb", "ldexp"};

// Whether the language has all of `name` for `real`, or `name` is no function of C's mathematics library.
bool is_native(std::string_view name, compute_dtype real, const Dialect& dialect) {
  const auto row =
      std::find_if(std::begin(kMath), std::end(kMath), [&](const MathFunction& one) { return one.name == name; });
  const Intrinsics& native = real == COMPUTE_DTYPE_FLOAT64 ? dialect.native_wide : dialect.native;
  if (row != std::end(kMath)) return native.test(static_cast<size_t>(row->intrinsic));
  return dialect.has_c_math || std::find(std::begin(kOthers), std::end(kOthers), name) == std::end(kOthers);
}

// `text` with the library's functions of `real` in place of those that the language has not, or not within their
// bounds. `need` adds one and returns its name. A function may call the language's function of its own name.
template <class Need>
std::string with_library(std::string_view text, std::string_view own, compute_dtype real, const Dialect& dialect,
                         const Need& need) {
  const auto is_name = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  };
  std::string out;
  while (!text.empty()) {
    const auto start = static_cast<size_t>(std::find_if(text.begin(), text.end(), is_name) - text.begin());
    out += text.substr(0, start);
    text.remove_prefix(start);
    const auto size = static_cast<size_t>(std::find_if_not(text.begin(), text.end(), is_name) - text.begin());
    const std::string_view word = text.substr(0, size);
    text.remove_prefix(size);
    const bool is_call = text.starts_with('(') && word != own;
    out += is_call && !is_native(word, real, dialect) ? need(word) : std::string(word);
  }
  return out;
}

// complex64 by way of complex128
constexpr std::string_view kByWider = R"(
COMPUTE_FUNCTION c64 ${base}_c64($parameters) {
  const c128 r = ${base}_c128($arguments);
  return COMPUTE_C64((f32)r.x, (f32)r.y);
}
)";

std::string by_wider(std::string_view base, int operands) {
  return fill(kByWider, {{"base", base},
                         {"parameters", operands == 1 ? "c64 a" : "c64 a, c64 b"},
                         {"arguments", operands == 1 ? "COMPUTE_C128(a.x, a.y)"
                                                     : "COMPUTE_C128(a.x, a.y), COMPUTE_C128(b.x, b.y)"}});
}

}  // namespace

const char* math_name(int32_t intrinsic) {
  const auto row = std::find_if(std::begin(kMath), std::end(kMath),
                                [&](const MathFunction& one) { return one.intrinsic == intrinsic; });
  return row == std::end(kMath) ? nullptr : row->name;
}

bool Functions::computes_complex_in_wide() const {
  return dialect_.has_fp64 && dialect_.native_wide.test(COMPUTE_PLUGIN_INTRINSIC_LOG);
}

std::string Functions::need(std::string_view base, compute_dtype dtype) {
  std::string name = dtype == COMPUTE_DTYPE_NONE ? std::string(base) : cat(base, "_", type_text(dtype).name);
  if (!defined_.insert(name).second) return name;
  static constexpr std::string_view kDirect[] = {"add", "sub", "mul", "eq", "two_sum"};
  // Within 8 ULP of the modulus in float32.
  static constexpr std::string_view kAccurate[] = {"cos",  "cosh", "div", "exp",  "log", "log10", "log2",
                                                   "sign", "sinh", "sin", "sqrt", "tan", "tanh"};
  const auto is_among = [&](std::span<const std::string_view> names) {
    return std::find(names.begin(), names.end(), base) != names.end();
  };
  const bool direct = dtype != COMPUTE_DTYPE_COMPLEX64 || !computes_complex_in_wide() || is_among(kDirect) ||
                      (dialect_.has_rounded_division && is_among(kAccurate));
  if (!direct) {
    need(base, COMPUTE_DTYPE_COMPLEX128);
    text_ += by_wider(base, base == "div" || base == "pow" ? 2 : 1);
    return name;
  }
  const FunctionText* definition = find(dialect_, base, dtype);
  if (definition == nullptr) throw Error(COMPUTE_ERROR_UNSUPPORTED, cat("no function ", name));
  std::string_view needs = definition->needs;
  while (!needs.empty()) {
    const size_t end = std::min(needs.find(' '), needs.size());
    const std::string_view one = needs.substr(0, end);
    needs.remove_prefix(std::min(end + 1, needs.size()));
    if (one.ends_with("@r")) {
      need(one.substr(0, one.size() - 2), part_of(dtype));
    } else {
      need(one, dtype);
    }
  }
  std::string divide = "COMPUTE_DIVIDE";
  if (definition->text.find("$DIV") != std::string_view::npos) {
    const bool is_single = dtype == COMPUTE_DTYPE_FLOAT32;
    const char* const own = !is_single                                            ? nullptr
                            : emulates_division()                                 ? "div"
                            : !dialect_.native.test(COMPUTE_PLUGIN_INTRINSIC_DIV) ? "quotient"
                                                                                  : nullptr;
    if (own != nullptr) {
      divide = need(own, dtype);
    } else if (defined_.insert(divide).second) {
      text_ += "#define COMPUTE_DIVIDE(x, y) ((x) / (y))\n";
    }
  }
  std::string text = fill(definition->text, [&](std::string_view word) {
    return word == "DIV" ? std::string_view(divide) : word_of(word, dtype);
  });
  const compute_dtype real = dtype == COMPUTE_DTYPE_NONE ? COMPUTE_DTYPE_FLOAT32 : part_of(dtype);
  if (!dialect_.has_c_math)
    text = with_library(text, dtype == real ? base : std::string_view(), real, dialect_,
                        [&](std::string_view word) { return need(word, real); });
  text_ += in_grammar_of(dialect_, text);
  return name;
}

bool Functions::has(std::string_view name) const { return find(dialect_, name, COMPUTE_DTYPE_NONE) != nullptr; }

std::string Functions::need(std::string_view name) { return need(name, COMPUTE_DTYPE_NONE); }

}  // namespace compute::common
