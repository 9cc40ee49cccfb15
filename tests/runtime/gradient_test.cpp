// SPDX-License-Identifier: Apache-2.0
// Gradients of expressions against finite differences in float64, for every intrinsic that has one.
#include <algorithm>
#include <cmath>
#include <complex>
#include <random>
#include <set>

#include "runtime.hpp"

namespace runtime {
namespace {

using Complex = std::complex<double>;

// A function of up to three operands, and where they lie.
struct Case {
  const char* text;  // of x, y and z
  double low = -2, high = 2;
  int32_t operands = 1;
};

// One row per intrinsic with a gradient, so that the list below can be compared with intrinsics.def.
constexpr Case kReal[] = {
    {"convert(x, float64) * 3"},
    {"where(x < 0.3, y, z)", -2, 2, 3},
    {"x + y", -2, 2, 2},
    {"x - y", -2, 2, 2},
    {"x * y", -2, 2, 2},
    {"x / y", 0.5, 2, 2},
    {"x % y", 1.1, 2, 2},
    {"-x"},
    {"abs(x)"},
    {"min(x, y)", -2, 2, 2},
    {"max(x, y)", -2, 2, 2},
    {"nextafter(x, y)", -2, 2, 2},
    {"x ** y", 0.2, 3, 2},
    {"sqrt(x)", 0.1, 9},
    {"rsqrt(x)", 0.1, 9},
    {"cbrt(x)", 0.1, 9},
    {"exp(x)"},
    {"exp2(x)"},
    {"expm1(x)"},
    {"log(x)", 0.1, 9},
    {"log1p(x)", -0.9, 9},
    {"log2(x)", 0.1, 9},
    {"log10(x)", 0.1, 9},
    {"sin(x)"},
    {"cos(x)"},
    {"tan(x)", -1.2, 1.2},
    {"asin(x)", -0.9, 0.9},
    {"acos(x)", -0.9, 0.9},
    {"atan(x)"},
    {"atan2(x, y)", 0.1, 2, 2},
    {"sinh(x)"},
    {"cosh(x)"},
    {"tanh(x)"},
    {"asinh(x)"},
    {"acosh(x)", 1.2, 4},
    {"atanh(x)", -0.9, 0.9},
    {"hypot(x, y)", 0.1, 2, 2},
    {"copysign(x, y)", -2, 2, 2},
    {"erf(x)"},
    {"erfc(x)"},
    {"erfinv(x)", -0.9, 0.9},
    {"digamma(x)", 0.3, 9},
    {"digamma(x - 3.5)", -0.4, 0.4},
    {"lgamma(x)", 0.3, 9},
    {"logaddexp(x, y)", -2, 2, 2},
    {"real(complex(x, y)) * 2 + imag(complex(y, x)) * x", -2, 2, 2},
    {"arg(complex(x, y))", 0.1, 2, 2},
    {"abs(conj(complex(x, y)))", 0.1, 2, 2},
    {"abs(sign(complex(x, y)) + 1)", 0.1, 2, 2},
    {"i0(x)"},
    {"i0e(x)", 0.1, 12},
    {"i1(x)"},
    {"i1e(x)", 0.1, 12},
    {"j0(x)", -9, 9},
    {"j1(x)", -9, 9},
    {"y0(x)", 0.3, 9},
    {"y1(x)", 0.3, 9},
    {"erfcinv(x)", 0.1, 1.9},
    {"polygamma(2, x)", 0.3, 9},
    {"gammainc(2.5, x)", 0.1, 9},
    {"gammaincc(12, x)", 6, 20},
    {"betainc(2.5, 1.5, x)", 0.1, 0.9},
};

constexpr Case kComplex[] = {
    {"x + y", -2, 2, 2},
    {"x - y", -2, 2, 2},
    {"x * y", -2, 2, 2},
    {"x / y", 0.5, 2, 2},
    {"-x"},
    {"abs(x)", 0.2, 2},
    {"sign(x)", 0.2, 2},
    {"x ** y", 0.2, 1.5, 2},
    {"sqrt(x)", 0.2, 2},
    {"exp(x)"},
    {"expm1(x)"},
    {"log(x)", 0.2, 2},
    {"log1p(x)", 0.2, 2},
    {"log2(x)", 0.2, 2},
    {"log10(x)", 0.2, 2},
    {"sin(x)"},
    {"cos(x)"},
    {"tan(x)", 0.1, 1.2},
    {"asin(x)", 0.1, 2},
    {"acos(x)", 0.1, 2},
    {"atan(x)", 0.1, 0.7},
    {"sinh(x)"},
    {"cosh(x)"},
    {"tanh(x)", 0.1, 1.2},
    {"asinh(x)", 0.1, 0.7},
    {"acosh(x)", 0.1, 2},
    {"atanh(x)", 0.1, 2},
    {"real(x)"},
    {"imag(x)"},
    {"arg(x)", 0.2, 2},
    {"conj(x) * x"},
    {"where(real(x) < real(y), x * 2, y)", -2, 2, 2},
    {"convert(real(x), complex128) * y", -2, 2, 2},
};

const char* const kNames[] = {"x", "y", "z"};
constexpr int64_t kCount = 64;

// Each operand has a separate lattice, so that operands are never nearly equal or nearly 0, where some functions have
// no derivative.
template <class T>
T random_value(std::mt19937_64& random, double low, double high, size_t operand = 0) {
  constexpr double kSpacing = 0.02;
  std::uniform_int_distribution<int64_t> cell(0, static_cast<int64_t>((high - low) / kSpacing) - 1);
  const auto draw = [&] {
    return low + kSpacing * static_cast<double>(cell(random)) + 0.005 + 0.006 * static_cast<double>(operand);
  };
  if constexpr (std::is_same_v<T, Complex>) {
    const double real = draw();
    return {real, draw()};
  } else {
    return draw();
  }
}

double inner(double a, double b) { return a * b; }
double inner(Complex a, Complex b) { return a.real() * b.real() + a.imag() * b.imag(); }

// The sum over the outputs of <g, f(inputs)>, at each element.
template <class T>
std::vector<double> weighed(const compute::Expression& f, const std::vector<std::vector<T>>& values, bool real_result,
                            const std::vector<Complex>& g) {
  std::vector<compute::Tensor> inputs;
  for (const auto& input : values) inputs.push_back(host().from_host(input));
  const compute::Tensor result = f.run(inputs).front();
  std::vector<double> sums;
  if (real_result) {
    const auto y = result.to_vector<double>();
    for (size_t i = 0; i < y.size(); ++i) sums.push_back(g[i].real() * y[i]);
  } else {
    const auto y = result.to_vector<Complex>();
    for (size_t i = 0; i < y.size(); ++i) sums.push_back(inner(g[i], y[i]));
  }
  return sums;
}

template <class T>
void expect_gradient(const Case& row) {
  SCOPED_TRACE(row.text);
  std::mt19937_64 random(7);
  std::vector<std::vector<T>> values(static_cast<size_t>(row.operands));
  for (size_t k = 0; k < values.size(); ++k) {
    for (int64_t i = 0; i < kCount; ++i) values[k].push_back(random_value<T>(random, row.low, row.high, k));
  }
  const compute::Expression f(row.text, compute::List<const char*>(std::span(kNames).first(values.size())));
  std::vector<compute::Tensor> inputs;
  for (const auto& input : values) inputs.push_back(host().from_host(input));
  const bool real_result = f.run(inputs).front().dtype() == compute::float64;
  std::vector<Complex> g;
  for (int64_t i = 0; i < kCount; ++i) g.push_back(random_value<Complex>(random, -1, 1));
  if (real_result) {
    std::vector<double> parts;
    for (const Complex& value : g) parts.push_back(value.real());
    inputs.push_back(host().from_host(parts));
  } else {
    inputs.push_back(host().from_host(g));
  }
  const std::vector<compute::Tensor> gradients = f.gradient().run(inputs);
  ASSERT_EQ(gradients.size(), values.size());

  // Along a direction d: <gradient, d> = dL/dt, fourth order in the step.
  constexpr double kStep = 1e-3;
  for (size_t k = 0; k < values.size(); ++k) {
    const auto gradient = gradients[k].to_vector<T>();
    std::vector<T> directions{T(1)};
    if constexpr (std::is_same_v<T, Complex>) directions.push_back(Complex(0, 1));
    for (const T direction : directions) {
      const auto at = [&](double t) {
        auto moved = values;
        for (T& value : moved[k]) value += direction * t;
        return weighed(f, moved, real_result, g);
      };
      const auto p2 = at(2 * kStep), p1 = at(kStep), m1 = at(-kStep), m2 = at(-2 * kStep);
      for (size_t i = 0; i < gradient.size(); ++i) {
        const double expected = (8 * (p1[i] - m1[i]) - (p2[i] - m2[i])) / (12 * kStep);
        ASSERT_NEAR(inner(gradient[i], direction), expected, 2e-7 * (1 + std::abs(expected)))
            << "operand " << k << ", element " << i;
      }
    }
  }
}

TEST(Gradient, OfRealFunctions) {
  for (const Case& row : kReal) expect_gradient<double>(row);
}

TEST(Gradient, OfComplexFunctions) {
  for (const Case& row : kComplex) expect_gradient<Complex>(row);
}

// Every intrinsic of intrinsics.def with a gradient is a row above.
TEST(Gradient, EveryRuleIsTested) {
  std::string all;
  for (const Case& row : kReal) all += std::string(row.text) + '\n';
  const std::set<std::string> operators = {"add", "sub", "mul", "div", "mod", "neg", "pow"};
  int32_t rules = 0;
  const auto look = [&](const std::string& name, const std::string& rule) {
    if (rule.empty()) return;
    ++rules;
    if (operators.contains(name)) return;
    EXPECT_NE(all.find(name + "("), std::string::npos) << name;
  };
#define COMPUTE_INTRINSIC(id, name, arity, operands, result, ulp, commutes, cost, definition, gradient, summary) \
  look(#name, gradient);
#define COMPUTE_COMPOSED_INTRINSIC(id, name, arity, ulp, gradient, summary) look(#name, gradient);
#include <compute/intrinsics.def>
#undef COMPUTE_INTRINSIC
  EXPECT_EQ(rules, 62);
}

TEST(Gradient, OfAParameterIsRefused) {
  const compute::Tensor x = host().from_host(std::vector<double>{1, 2, 3});
  const compute::Expression gradient = compute::Expression("gammainc(x, y)", {"x", "y"}).gradient();
  try {
    (void)gradient.run({x, x, x});
    FAIL();
  } catch (const compute::Error& error) {
    EXPECT_NE(std::string(error.what()).find("operand 1"), std::string::npos) << error.what();
  }
}

TEST(Gradient, OfWhatHasSteps) {
  const compute::Tensor x = host().from_host(std::vector<double>{-1.5, 0, 2.5}),
                        g = host().from_host(std::vector<double>{1, 2, 3});
  const char* const steps[] = {"floor(x)", "round(x)", "sign(x)", "convert(x < 1, float64)",
                               "convert(convert(x, int32), float64)"};
  for (const char* text : steps) {
    const auto gradient = compute::Expression(text, {"x"}).gradient().run({x, g}).front().to_vector<double>();
    EXPECT_EQ(gradient, (std::vector<double>{0, 0, 0})) << text;
  }
  const auto abs = compute::Expression("abs(x)", {"x"}).gradient().run({x, g}).front().to_vector<double>();
  EXPECT_EQ(abs, (std::vector<double>{-1, 0, 3}));
  const auto equal = compute::Expression("max(x, y)", {"x", "y"}).gradient().run({x, x, g});
  EXPECT_EQ(equal[0].to_vector<double>(), (std::vector<double>{0.5, 1, 1.5}));
  EXPECT_EQ(equal[1].to_vector<double>(), (std::vector<double>{0.5, 1, 1.5}));
}

TEST(Gradient, SharesInputsOutputsAndScalars) {
  // L = u . (s a b) + v . (a + index), with s a run-time scalar.
  const compute::Expression f("s * a * b; a + convert(index(0), float64)", {"a", "b"}, {"s"});
  const compute::Expression gradient = f.gradient();
  EXPECT_EQ(gradient.input_count(), 4);
  EXPECT_EQ(gradient.scalar_count(), 1);
  EXPECT_EQ(gradient.output_count(), 2);
  const auto made = [](std::vector<double> values) { return host().from_host(values); };
  const auto results =
      gradient.run({made({1, 2}), made({3, 4}), made({5, 6}), made({7, 8})}, {compute::Tensor::scalar(2.0)});
  EXPECT_EQ(results[0].to_vector<double>(), (std::vector<double>{2 * 3 * 5 + 7, 2 * 4 * 6 + 8}));
  EXPECT_EQ(results[1].to_vector<double>(), (std::vector<double>{2 * 1 * 5, 2 * 2 * 6}));
  const compute::Expression of_b = f.gradient({1});
  EXPECT_EQ(of_b.output_count(), 1);
  // The gradient by an output may be a scalar: a sum has ones.
  const auto ones = of_b.run({made({1, 2}), made({3, 4}), compute::Tensor::scalar(1.0), compute::Tensor::scalar(0.0)},
                             {compute::Tensor::scalar(2.0)});
  EXPECT_EQ(ones[0].to_vector<double>(), (std::vector<double>{2, 4}));
}

TEST(Gradient, OfAGradient) {
  // d²/dx² of x³ y is 6 x y, and d²/dx dy is 3 x².
  const compute::Expression second = compute::Expression("x * x * x * y", {"x", "y"}).gradient({0}).gradient({0, 1});
  EXPECT_EQ(second.input_count(), 4);
  const compute::Tensor x = host().from_host(std::vector<double>{2}), y = host().from_host(std::vector<double>{5}),
                        one = host().from_host(std::vector<double>{1});
  const auto results = second.run({x, y, one, one});
  EXPECT_EQ(results[0].to_vector<double>()[0], 60);
  EXPECT_EQ(results[1].to_vector<double>()[0], 12);
}

TEST(Gradient, BroadcastsAsTheExpressionDoes) {
  const compute::Expression f("x * y", {"x", "y"});
  const compute::Tensor x = host().from_host(std::vector<double>{1, 2, 3}),
                        y = host().from_host(std::vector<double>{10, 20}).reshape({2, 1}), g = host().full({2, 3}, 1.0);
  const auto results = f.gradient().run({x, y, g});
  EXPECT_TRUE(std::ranges::equal(results[0].shape(), compute::Shape{2, 3}));
  EXPECT_EQ(compute::sum(results[0], 0).to_vector<double>(), (std::vector<double>{30, 30, 30}));
  EXPECT_EQ(compute::sum(results[1], 1).to_vector<double>(), (std::vector<double>{6, 6}));
}

TEST(Gradient, NarrowFloatsRoundOnce) {
  // 1 / 3 of float16, summed in float32 over the uses of x.
  const compute::Expression f("x * x + x * x", {"x"});
  const compute::Tensor x = compute::cast(host().from_host(std::vector<float>{0.1f}), compute::float16),
                        g = compute::cast(host().from_host(std::vector<float>{0.3f}), compute::float16);
  const compute::Tensor result = f.gradient().run({x, g}).front();
  EXPECT_EQ(result.dtype(), compute::float16);
  const float exact = 4 * compute::cast(x, compute::float32).to_vector<float>()[0] *
                      compute::cast(g, compute::float32).to_vector<float>()[0];
  const auto rounded =
      compute::cast(compute::cast(host().from_host(std::vector<float>{exact}), compute::float16), compute::float32)
          .to_vector<float>()[0];
  EXPECT_EQ(compute::cast(result, compute::float32).to_vector<float>()[0], rounded);
}

TEST(Gradient, RefusesWhatHasNone) {
  const compute::Expression f("x * y", {"x", "y"});
  Thrown error = thrown_by([&] { (void)f.gradient({2}); });
  EXPECT_EQ(error.code, COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(error.message.find("the expression has 2 inputs"), std::string::npos) << error.message;
  const compute::Tensor integers = host().from_host(std::vector<int32_t>{1}),
                        reals = host().from_host(std::vector<double>{1});
  error = thrown_by([&] { (void)f.gradient().run({integers, integers, integers}); });
  EXPECT_EQ(error.code, COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(error.message.find("input 'x' is int32, which has no gradient"), std::string::npos) << error.message;
  error = thrown_by([&] { (void)f.gradient().run({reals, compute::Tensor::scalar(2.0), reals}); });
  EXPECT_NE(error.message.find("input 'y' is a scalar"), std::string::npos) << error.message;
  error = thrown_by([&] { (void)f.gradient({0}).run({reals, reals, host().full({1}, Complex(1, 0))}); });
  EXPECT_NE(error.message.find("the gradient of output 0 is complex128"), std::string::npos) << error.message;

  compute_expression* gradient = f.get();
  const int32_t none = -1;
  for (const auto& [expression, count, out] :
       {std::tuple(f.get(), int64_t{1}, &gradient), std::tuple(f.get(), int64_t{-1}, &gradient),
        std::tuple(f.get(), int64_t{1} << 40, &gradient), std::tuple(f.get(), int64_t{0}, &gradient),
        std::tuple(static_cast<compute_expression*>(nullptr), int64_t{1}, &gradient),
        std::tuple(f.get(), int64_t{1}, static_cast<compute_expression**>(nullptr))}) {
    compute_error* refused = compute_expression_gradient(expression, &none, count, out);
    EXPECT_EQ(compute_error_get_code(refused), COMPUTE_ERROR_INVALID_ARGUMENT);
    compute_error_free(refused);
    if (out != nullptr) {
      EXPECT_EQ(gradient, nullptr);
    }
  }
}

}  // namespace
}  // namespace runtime
