// SPDX-License-Identifier: Apache-2.0
// Dialects other than those of the plugins: GLSL, whose texts glslangValidator compiles, and plain C without functions
// of its own, whose results are compared with those of long double.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "plugins/common/source/expressions/combination.hpp"
#include "plugins/common/source/expressions/expression.hpp"
#include "plugins/common/source/expressions/glsl.hpp"
#include "plugins/common/source/expressions/grammar.hpp"
#include "plugins/common/source/expressions/prelude.hpp"
#include "plugins/common/source/expressions/types.hpp"
#include "sanitizer.hpp"
#include "tests/unit/expression_builder.hpp"

namespace compute::common {
namespace {

using Expression = ExpressionBuilder;
constexpr compute_dtype kF32 = COMPUTE_DTYPE_FLOAT32;

// A file of this process in the folder for temporary files.
class TemporaryFile {
 public:
  TemporaryFile(const char* ending, const std::string& text)
      : path_((std::filesystem::temp_directory_path() / ("compute_dialect_" + std::to_string(getpid()) + ending))
                  .string()) {
    std::ofstream(path_) << text;
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// The output of a command, with its status at the end if that is not 0.
std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return "popen failed";
  char buffer[4096];
  while (const size_t size = fread(buffer, 1, sizeof buffer, pipe)) text.append(buffer, size);
  const int status = pclose(pipe);
  return status == 0 ? "" : text + "status " + std::to_string(status);
}

// ---- GLSL -----------------------------------------------------------------------------------------------------------

class Glsl : public testing::Test {
 protected:
  void SetUp() override {
    if (!output_of("glslangValidator --version > /dev/null").empty())
      GTEST_SKIP() << "glslangValidator is not installed (glslang-tools)";
  }

  // A shader that computes the expression from two buffers of 64-bit words.
  static std::string shader(const compute_plugin_expression& expression, const Dialect& dialect,
                            const std::string& more = "") {
    Functions functions(dialect);
    Leaves leaves;
    leaves.input = [&](int32_t i) {
      for (int32_t k = 0; k < expression.node_count; ++k) {
        const compute_plugin_node& node = expression.nodes[k];
        if (node.kind == COMPUTE_PLUGIN_NODE_INPUT && node.value == i)
          return scalar_text(node.dtype, cat("x.words[", 2 * i, "]"), cat("x.words[", 2 * i + 1, "]"));
      }
      return std::string("none");
    };
    leaves.scalar = [](int32_t i) { return cat("(i32)x.words[", i, "]"); };
    leaves.index = [](int32_t) { return std::string("COMPUTE_GLOBAL_ID(0)"); };
    std::string body;
    const std::vector<std::string> outputs = print_expression(expression, leaves, "w", functions, body);
    for (size_t i = 0; i < outputs.size(); ++i) {
      const compute_dtype dtype = expression.nodes[expression.outputs[i]].dtype;
      const std::string part = is_complex(dtype) ? outputs[i] + ".y" : outputs[i];
      body += cat("y.words[", i, "] = int64_t(", part, ");\n");
    }
    return cat("#version 460\n", portable_prelude(dialect),
               "layout(local_size_x = 64) in;\n"
               "layout(std430, binding = 0) buffer X { int64_t words[]; } x;\n"
               "layout(std430, binding = 1) buffer Y { int64_t words[]; } y;\n",
               functions.text(), more, "void main() {\n", body, "}\n");
  }

  static void expect_compiles(const std::string& text) {
    const TemporaryFile file(".comp", text);
    const std::string errors = output_of("glslangValidator -V --target-env vulkan1.2 -o /dev/null " + file.path());
    EXPECT_EQ(errors, "") << text;
  }
};

// All intrinsics of a dtype in one expression, and the names of those that a device has no function for.
std::vector<std::string> call_all(Expression& e, compute_dtype dtype, const Dialect& dialect,
                                  std::vector<int32_t>& outputs) {
  struct Row {
    int32_t id;
    const char* name;
    int32_t arity;
    std::string_view operands, result;
  };
  static constexpr Row kRows[] = {
#define COMPUTE_INTRINSIC(id, name, arity, operands, result, ...) {id, #name, arity, #operands, #result},
#include <compute/intrinsics.def>
#undef COMPUTE_INTRINSIC
  };
  const bool is_bool = dtype == COMPUTE_DTYPE_BOOL, integer = is_integer(dtype);
  const bool inexact = is_float(dtype) || is_complex(dtype);
  const int32_t x = e.input(0, dtype), y = e.input(1, dtype), condition = e.input(2, COMPUTE_DTYPE_BOOL);
  std::vector<std::string> missing;
  for (const Row& row : kRows) {
    const bool takes = row.operands == "ANY" || (row.operands == "NUMERIC" && !is_bool) ||
                       (row.operands == "REAL" && (integer || is_float(dtype))) ||
                       (row.operands == "INEXACT" && inexact) || (row.operands == "FLOAT" && is_float(dtype)) ||
                       (row.operands == "COMPLEX" && is_complex(dtype)) || (row.operands == "INTEGER" && integer) ||
                       (row.operands == "BITS" && (integer || is_bool));
    if (!takes || row.result == "NODE") continue;
    const compute_dtype result = row.result == "BOOL"   ? COMPUTE_DTYPE_BOOL
                                 : row.result == "PART" ? part_of(dtype)
                                 : row.result == "PAIR"
                                     ? (dtype == kF32 ? COMPUTE_DTYPE_COMPLEX64 : COMPUTE_DTYPE_COMPLEX128)
                                     : dtype;
    const std::vector<int32_t> operands = row.arity == 3   ? std::vector<int32_t>{condition, x, y}
                                          : row.arity == 2 ? std::vector<int32_t>{x, y}
                                                           : std::vector<int32_t>{x};
    Expression one;
    std::vector<int32_t> inputs;
    if (row.arity == 3) inputs.push_back(one.input(2, COMPUTE_DTYPE_BOOL));
    for (int32_t i = 0; i < std::min(row.arity, 2); ++i) inputs.push_back(one.input(i, dtype));
    if (!missing_function(*one.view({one.call(row.id, result, inputs)}), dialect).empty()) {
      missing.emplace_back(row.name);
      continue;
    }
    outputs.push_back(e.call(row.id, result, operands));
  }
  return missing;
}

TEST_F(Glsl, CompilesEveryIntrinsic) {
  for (const compute_dtype dtype : std::initializer_list<compute_dtype>{
           COMPUTE_DTYPE_BOOL, COMPUTE_DTYPE_INT8, COMPUTE_DTYPE_UINT16, COMPUTE_DTYPE_INT32, COMPUTE_DTYPE_UINT32,
           COMPUTE_DTYPE_INT64, COMPUTE_DTYPE_UINT64, kF32, COMPUTE_DTYPE_COMPLEX64}) {
    SCOPED_TRACE(dtype_name(dtype));
    for (const bool has_fp64 : {false, true}) {
      const Dialect dialect = glsl_dialect(has_fp64);
      Expression e;
      std::vector<int32_t> outputs;
      EXPECT_EQ(call_all(e, dtype, dialect, outputs), std::vector<std::string>());
      expect_compiles(shader(*e.view(outputs), dialect));
    }
  }
}

// Arithmetic, roundings and the functions that need no other; what is missing is named.
TEST_F(Glsl, NamesTheFunctionsOfFloat64ThatAreMissing) {
  const Dialect dialect = glsl_dialect(true);
  Expression e;
  std::vector<int32_t> outputs;
  const std::vector<std::string> missing = call_all(e, COMPUTE_DTYPE_FLOAT64, dialect, outputs);
  EXPECT_EQ(missing,
            (std::vector<std::string>{"mod",      "pow",   "rsqrt", "cbrt",      "exp2",   "expm1",   "log",   "log1p",
                                      "log2",     "log10", "sin",   "cos",       "tan",    "asin",    "acos",  "atan",
                                      "atan2",    "sinh",  "cosh",  "tanh",      "asinh",  "acosh",   "atanh", "hypot",
                                      "copysign", "erf",   "erfc",  "logaddexp", "erfinv", "digamma", "lgamma"}));
  expect_compiles(shader(*e.view(outputs), dialect));
  Expression one;
  const int32_t x = one.input(0, COMPUTE_DTYPE_FLOAT64);
  const std::string why =
      missing_function(*one.view({one.call(COMPUTE_PLUGIN_INTRINSIC_SIN, COMPUTE_DTYPE_FLOAT64, {x})}), dialect);
  EXPECT_EQ(why, "no function sin_f64");
}

TEST_F(Glsl, CompilesEveryConversion) {
  const Dialect dialect = glsl_dialect(true);
  for (compute_dtype from = COMPUTE_DTYPE_BOOL; from <= COMPUTE_DTYPE_COMPLEX128; ++from) {
    Expression e;
    const int32_t x = e.input(0, from);
    std::vector<int32_t> outputs;
    for (compute_dtype to = COMPUTE_DTYPE_BOOL; to <= COMPUTE_DTYPE_COMPLEX128; ++to) {
      if (!is_complex(from) || is_complex(to) || to == COMPUTE_DTYPE_BOOL)
        outputs.push_back(e.call(COMPUTE_PLUGIN_INTRINSIC_CONVERT, to, {x}));
      const bool has_bits = from != COMPUTE_DTYPE_BOOL && to != COMPUTE_DTYPE_BOOL && dtype_size(from) < 16;
      if (has_bits && dtype_size(from) == dtype_size(to))
        outputs.push_back(e.call(COMPUTE_PLUGIN_INTRINSIC_BITCAST, to, {x}));
    }
    SCOPED_TRACE(dtype_name(from));
    expect_compiles(shader(*e.view(outputs), dialect));
  }
}

// Constants of every dtype, run-time scalars, positions, and what reductions combine.
TEST_F(Glsl, CompilesLeavesAndSums) {
  const Dialect dialect = glsl_dialect(false);
  Expression e;
  std::vector<int32_t> outputs = {e.index(0), e.scalar(0, COMPUTE_DTYPE_INT32)};
  for (compute_dtype dtype = COMPUTE_DTYPE_BOOL; dtype <= COMPUTE_DTYPE_COMPLEX64; ++dtype) {
    if (dtype != COMPUTE_DTYPE_FLOAT64) outputs.push_back(e.constant(int64_t{-5}, dtype));
  }
  Functions functions(dialect);
  const std::string sum = functions.need("two_sum", kF32) + functions.need("two_sum", COMPUTE_DTYPE_COMPLEX64);
  EXPECT_EQ(functions.text().find('*' + std::string("s")), std::string::npos);
  expect_compiles(shader(*e.view(outputs), dialect, functions.text()));
}

TEST(Grammar, IsThatOfTheLanguage) {
  Dialect dialect = glsl_dialect(true);
  EXPECT_EQ(in_grammar_of(dialect, "const f32 y = (f32)(x + 1) * 0x1p-2f;"),
            "const precise f32 y = f32((x + 1)) * 2.50000000e-01f;");
  EXPECT_EQ(in_grammar_of(dialect, "u = (u32)-(i32)z.x;"), "u = u32(-i32(z.x));");
  EXPECT_EQ(in_grammar_of(dialect, "i = (i8)f(a)[2];"), "i = to_i8(f(a)[2]);");
  EXPECT_EQ(in_grammar_of(dialect, "u = COMPUTE_U64(0xff) + 1;"), "u = 0xfful + 1;");
  EXPECT_EQ(in_grammar_of(dialect, "b = x != x || z.x != z.x;"), "b = compute_is_nan(x) || z.x != z.x;");
  EXPECT_EQ(in_grammar_of(dialect, "COMPUTE_FUNCTION f32 f(f32 x) { return x * x; }"),
            "COMPUTE_FUNCTION f32 f(f32 x) { { precise f32 compute_result = x * x; return compute_result; } }");
  EXPECT_EQ(in_grammar_of(dialect, "COMPUTE_FUNCTION void f(f32* s, f32 x) { *s = *s * x; }"),
            "COMPUTE_FUNCTION void f(inout f32 s, f32 x) { s = s * x; }");
  const std::string text = in_grammar_of(dialect, "COMPUTE_FUNCTION i32 f(f32 x) { f32 y = 1.0; return (i32)y; }");
  EXPECT_EQ(text, "COMPUTE_FUNCTION i32 f(f32 x) { precise f32 y = 1.0lf; return i32(y); }");
  const std::string c = "const f32 y = (f32)(x + 1) * 0x1p-2f;";
  EXPECT_EQ(in_grammar_of(Dialect(), c), c);
}

// ---- The library's functions of float32 -----------------------------------------------------------------------------

constexpr Word kTypesOfC[] = {
    {"i8", "signed char"},   {"i16", "short"},          {"i32", "int"},          {"i64", "long long"},
    {"u8", "unsigned char"}, {"u16", "unsigned short"}, {"u32", "unsigned int"}, {"u64", "unsigned long long"},
    {"f32", "float"},
};
constexpr Word kWordsOfC[] = {
    {"COMPUTE_FUNCTION", "static inline"},
    {"COMPUTE_AS_F32(x)", "as_f32((int)(x))"},
    {"COMPUTE_AS_I32(x)", "as_i32(x)"},
    {"COMPUTE_U64(x)", "x##ULL"},
    {"COMPUTE_I64(x)", "x##LL"},
    {"fabs(x)", "__builtin_fabsf(x)"},
    {"floor(x)", "__builtin_floorf(x)"},
    {"rint(x)", "__builtin_rintf(x)"},
    {"fma(x, y, z)", "__builtin_fmaf(x, y, z)"},
    {"sqrt(x)", "(__builtin_sqrtf(x) * 1.0000002f)"},  // inexact, as devices' may be
};

Dialect plain_c() {
  Dialect dialect;
  dialect.heading =
      "typedef _Bool bool;\n"
      "static inline float as_f32(int x) { union { int i; float f; } u = {x}; return u.f; }\n"
      "static inline int as_i32(float x) { union { float f; int i; } u = {x}; return u.i; }";
  dialect.types = kTypesOfC;
  dialect.words = kWordsOfC;
  dialect.native = Intrinsics()
                       .set(COMPUTE_PLUGIN_INTRINSIC_FLOOR)
                       .set(COMPUTE_PLUGIN_INTRINSIC_ROUND)
                       .set(COMPUTE_PLUGIN_INTRINSIC_CEIL)
                       .set(COMPUTE_PLUGIN_INTRINSIC_TRUNC);
  dialect.has_fp64 = dialect.has_half_io = dialect.has_c_math = false;
  return dialect;
}

struct Judged {
  int32_t intrinsic;
  int arity;
  double bound;
  long double (*exact)(long double, long double);
};
#define UNARY(f) [](long double x, long double) -> long double { return std::f(x); }
#define BINARY(f) [](long double x, long double y) -> long double { return std::f(x, y); }
const Judged kJudged[] = {
    {COMPUTE_PLUGIN_INTRINSIC_DIV, 2, 0.5, [](long double x, long double y) { return x / y; }},
    {COMPUTE_PLUGIN_INTRINSIC_MOD, 2, 0.5,
     [](long double x, long double y) {
       const long double r = std::fmod(x, y);
       return r == 0 ? std::copysign(r, y) : (r < 0) != (y < 0) ? r + y : r;
     }},
    {COMPUTE_PLUGIN_INTRINSIC_SQRT, 1, 0.5, UNARY(sqrt)},
    {COMPUTE_PLUGIN_INTRINSIC_RSQRT, 1, 2, [](long double x, long double) { return 1 / std::sqrt(x); }},
    {COMPUTE_PLUGIN_INTRINSIC_CBRT, 1, 2, UNARY(cbrt)},
    {COMPUTE_PLUGIN_INTRINSIC_EXP, 1, 1, UNARY(exp)},
    {COMPUTE_PLUGIN_INTRINSIC_EXP2, 1, 2, UNARY(exp2)},
    {COMPUTE_PLUGIN_INTRINSIC_EXPM1, 1, 2, UNARY(expm1)},
    {COMPUTE_PLUGIN_INTRINSIC_LOG, 1, 2, UNARY(log)},
    {COMPUTE_PLUGIN_INTRINSIC_LOG1P, 1, 2, UNARY(log1p)},
    {COMPUTE_PLUGIN_INTRINSIC_LOG2, 1, 2, UNARY(log2)},
    {COMPUTE_PLUGIN_INTRINSIC_LOG10, 1, 2, UNARY(log10)},
    {COMPUTE_PLUGIN_INTRINSIC_SIN, 1, 2, UNARY(sin)},
    {COMPUTE_PLUGIN_INTRINSIC_COS, 1, 2, UNARY(cos)},
    {COMPUTE_PLUGIN_INTRINSIC_TAN, 1, 4, UNARY(tan)},
    {COMPUTE_PLUGIN_INTRINSIC_ASIN, 1, 4, UNARY(asin)},
    {COMPUTE_PLUGIN_INTRINSIC_ACOS, 1, 4, UNARY(acos)},
    {COMPUTE_PLUGIN_INTRINSIC_ATAN, 1, 4, UNARY(atan)},
    {COMPUTE_PLUGIN_INTRINSIC_ATAN2, 2, 4, BINARY(atan2)},
    {COMPUTE_PLUGIN_INTRINSIC_SINH, 1, 4, UNARY(sinh)},
    {COMPUTE_PLUGIN_INTRINSIC_COSH, 1, 4, UNARY(cosh)},
    {COMPUTE_PLUGIN_INTRINSIC_TANH, 1, 4, UNARY(tanh)},
    {COMPUTE_PLUGIN_INTRINSIC_ASINH, 1, 4, UNARY(asinh)},
    {COMPUTE_PLUGIN_INTRINSIC_ACOSH, 1, 4, UNARY(acosh)},
    {COMPUTE_PLUGIN_INTRINSIC_ATANH, 1, 4, UNARY(atanh)},
    {COMPUTE_PLUGIN_INTRINSIC_POW, 2, 4, BINARY(pow)},
    {COMPUTE_PLUGIN_INTRINSIC_HYPOT, 2, 4, BINARY(hypot)},
    {COMPUTE_PLUGIN_INTRINSIC_COPYSIGN, 2, 0, BINARY(copysign)},
    {COMPUTE_PLUGIN_INTRINSIC_ERF, 1, 4, UNARY(erf)},
    {COMPUTE_PLUGIN_INTRINSIC_ERFC, 1, 8, UNARY(erfc)},
};
#undef UNARY
#undef BINARY

using RunLoop = void (*)(const float* x, const float* y, float* result, int64_t count);

// The error of a result in units of its last place. Results that are subnormal may have one unit more, for they are
// rounded twice.
double error_of(float result, long double exact, double bound) {
  if (std::isnan(exact)) return std::isnan(result) ? 0 : INFINITY;
  const float rounded = static_cast<float>(exact);
  if (std::isinf(rounded) || std::isinf(result)) {
    const long double greatest = std::numeric_limits<float>::max();
    const bool is_near = std::fabs(exact) >= greatest && std::signbit(exact) == std::signbit(result);
    return result == rounded || (bound >= 1 && is_near) ? 0 : INFINITY;
  }
  if (bound <= 0.5) return result == rounded && std::signbit(result) == std::signbit(rounded) ? 0 : INFINITY;
  if (exact == 0) return result == 0 && std::signbit(result) == std::signbit(exact) ? 0 : INFINITY;
  int e = 0;
  std::frexp(exact, &e);
  const long double unit = std::ldexp(1.0L, std::max(e - 24, -149));
  const double error = static_cast<double>(std::fabs((static_cast<long double>(result) - exact) / unit));
  return std::fabs(exact) < 0x1p-126L ? std::max(0.0, error - 1) : error;
}

TEST(Float32Functions, KeepTheirBounds) {
  if (kSanitizer) GTEST_SKIP() << "the functions are compiled without the sanitizer";
  const Dialect dialect = plain_c();
  Functions functions(dialect);
  std::string loops;
  for (const Judged& one : kJudged) {
    std::vector<std::string> operands = {"x[i]"};
    if (one.arity == 2) operands.emplace_back("y[i]");
    loops +=
        cat("void run_", one.intrinsic, "(const f32* x, const f32* y, f32* r, i64 n) {\n",
            "  for (i64 i = 0; i < n; ++i) r[i] = ", call_text(one.intrinsic, kF32, operands, functions), ";\n}\n");
  }
  const TemporaryFile source(".c", cat(portable_prelude(dialect), functions.text(), loops));
  const TemporaryFile library(".so", "");
  ASSERT_EQ(output_of(cat(COMPUTE_TEST_CC, " -O2 -mfma -w -ffp-contract=off -fPIC -shared -o ", library.path(), " ",
                          source.path())),
            "")
      << functions.text();
  void* handle = dlopen(library.path().c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(handle, nullptr) << dlerror();
  const char* const wanted = std::getenv("COMPUTE_TEST_STEP");
  const uint64_t step = wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 16411;
  // Every number at that distance, and random ones where the functions are used.
  std::vector<float> all;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += step) {
    const auto word = static_cast<uint32_t>(bits);
    float x;
    std::memcpy(&x, &word, sizeof x);
    all.push_back(x);
  }
  std::mt19937 random(7);
  std::normal_distribution<float> near(0, 2);
  std::uniform_real_distribution<float> unit(-1, 1), tens(-110, 110), far(-3e5f, 3e5f);
  for (int i = 0; i < 100'000; ++i) {
    for (const float x : {near(random), unit(random), tens(random), far(random), 1 + 0.01f * near(random)})
      all.push_back(x);
  }
  for (const float x : {0.0f, 1.0f, 0.5f, 2.0f, INFINITY, 0x1p-126f, 0x1p-149f, 0x1.fffffep127f, 88.72283f,
                        0x1.fffffep-1f, 0x1.fffffep0f, 0x1.000002p0f}) {
    all.push_back(x);
    all.push_back(-x);
  }
  all.push_back(NAN);
  std::vector<float> other(all.size()), result(all.size());
  for (const Judged& one : kJudged) {
    const auto run = reinterpret_cast<RunLoop>(dlsym(handle, cat("run_", one.intrinsic).c_str()));
    ASSERT_NE(run, nullptr);
    // Exponents of pow that lead to finite results, and any others.
    for (size_t i = 0; i < all.size(); ++i) {
      const float any = all[(i * 7919 + 13) % all.size()];
      const bool is_power = one.intrinsic == COMPUTE_PLUGIN_INTRINSIC_POW && i % 4 != 0;
      other[i] = is_power ? tens(random) / std::log(std::fabs(all[i])) : any;
    }
    run(all.data(), other.data(), result.data(), static_cast<int64_t>(all.size()));
    double worst = 0;
    size_t at = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      const double error = error_of(result[i], one.exact(all[i], other[i]), one.bound);
      if (error > worst) worst = error, at = i;
    }
    EXPECT_LE(worst, std::max(one.bound, 0.5)) << "intrinsic " << one.intrinsic << " of " << all[at] << ", "
                                               << other[at] << " is " << result[at] << ", off by " << worst;
    RecordProperty("intrinsic_" + std::to_string(one.intrinsic), std::to_string(worst));
  }
  dlclose(handle);
}

}  // namespace
}  // namespace compute::common
