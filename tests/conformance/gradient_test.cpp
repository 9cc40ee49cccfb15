// SPDX-License-Identifier: Apache-2.0
// Gradients against independent values: results of PyTorch (gradients.py), derivatives by formulas in 50 digits
// (derivatives.py), and central differences.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <map>
#include <set>

#include "registry.hpp"
#include "tests/oracle/elementwise.hpp"

namespace compute::conformance {

namespace {

// ---- Results of PyTorch ---------------------------------------------------------------------------------------------

enum Kind : int { kAbsent, kFloat, kInteger, kBool };

struct Numbers {
  Kind kind = kAbsent;
  Shape shape = {};
  std::vector<double> values = {};
};

struct Call {
  std::string op;
  Attributes attributes;
  std::vector<Numbers> inputs, outputs;
};

const std::vector<Call>& calls() {
  static const auto& list = *new std::vector<Call>{
#include "gradients.inc"
  };
  return list;
}

Dtype dtype_of(const Numbers& numbers, Dtype floats) {
  return numbers.kind == kInteger ? Dtype{dtype::INT64} : numbers.kind == kBool ? Dtype{dtype::BOOL} : floats;
}

Operand upload(const Session& session, const Numbers& numbers, Dtype floats) {
  if (numbers.kind == kAbsent) return {};
  Array array(dtype_of(numbers, floats), numbers.shape);
  for (int64_t i = 0; i < array.size(); ++i) {
    const double x = numbers.values[static_cast<size_t>(i)];
    array.set(i, numbers.kind == kFloat ? Value::of(Real{x}) : Value::of(static_cast<oracle::Integer>(x)));
  }
  return session.upload(array);
}

// The inputs are small, and so are the sums: their roundings stay below 512 u of the greatest result.
void compare(const Session& session, compute_tensor* actual, const Numbers& expected, const std::string& what) {
  const Array array = session.download(actual);
  ASSERT_EQ(array.shape(), expected.shape) << what;
  Real greatest = 0;
  for (const double x : expected.values) greatest = std::max(greatest, std::fabs(Real{x}));
  const Real u = array.dtype() == dtype::FLOAT64 ? 0x1p-53L : 0x1p-24L;
  for (int64_t i = 0; i < array.size(); ++i) {
    const Real error = std::fabs(array.at(i).re - Real{expected.values[static_cast<size_t>(i)]});
    EXPECT_FALSE(!(error <= 512 * u * greatest))
        << what << ", element " << i << ": " << static_cast<double>(array.at(i).re) << ", PyTorch has "
        << expected.values[static_cast<size_t>(i)];
  }
}

void agrees_with_pytorch(const Session& session, Dtype floats) {
  for (size_t k = 0; k < calls().size(); ++k) {
    const Call& call = calls()[k];
    std::vector<Operand> inputs;
    for (const Numbers& numbers : call.inputs) inputs.push_back(upload(session, numbers, floats));
    std::vector<Tensor> outputs(call.outputs.size());
    session.run_all(call.op, call.attributes, inputs, nullptr, outputs);
    const std::string what = call.op + ", call " + std::to_string(k) + " of gradients.inc, output ";
    for (size_t i = 0; i < outputs.size(); ++i) compare(session, outputs[i], call.outputs[i], what + std::to_string(i));
  }
}

const char* expression_of(const std::string& op) {
#define COMPUTE_UNARY(name, version, inputs, result, expression, ...) \
  if (op == #name) return expression;
#define COMPUTE_BINARY COMPUTE_UNARY
#define COMPUTE_TERNARY COMPUTE_UNARY
#define COMPUTE_OP(...)
#include <compute/ops.def>
#undef COMPUTE_UNARY
#undef COMPUTE_BINARY
#undef COMPUTE_TERNARY
#undef COMPUTE_OP
  return "";
}

// ---- Points where derivatives are delicate --------------------------------------------------------------------------

struct Points {
  std::string function;  // an op, or an expression of x, y, z
  int32_t arity;
  std::vector<double> points, derivatives;
};

const std::vector<Points>& points() {
  constexpr double kInf = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();
  static const auto& list = *new std::vector<Points>{
#include "derivatives.inc"
  };
  return list;
}

// Steps, whose gradients are 0 by definition.
const std::set<std::string> kConstant = {"ceil", "floor", "floor_divide", "round", "sign", "trunc"};

// Whose derivative is a difference that is near 0 far from 0: its error is in units of 1 there.
const std::set<std::string> kDifferences = {"gelu", "gelu_tanh", "tanh"};

void derivatives_agree_at_points(const Session& session, Dtype floats) {
  const char* const names[] = {"x", "y", "z"};
  const Real u = floats == dtype::FLOAT64 ? 0x1p-53L : 0x1p-24L;
  const Real least = floats == dtype::FLOAT64 ? 0x1p-1022L : 0x1p-126L;
  const Real greatest = floats == dtype::FLOAT64 ? std::numeric_limits<double>::max() : 0x1.fffffep127L;
  const bool may_flush = floats == dtype::FLOAT32 && session.flushes_subnormals();
  for (const Points& list : points()) {
    const auto arity = static_cast<size_t>(list.arity);
    const size_t count = list.points.size() / arity;
    std::vector<Operand> inputs;
    for (size_t k = 0; k <= arity; ++k) {
      Array array(floats, {static_cast<int64_t>(count)});
      for (size_t i = 0; i < count; ++i) {
        array.set(static_cast<int64_t>(i), Value::of(k < arity ? Real{list.points[i * arity + k]} : Real{1}));
      }
      inputs.push_back(session.upload(array));
    }
    std::vector<compute_tensor*> given, results(arity);
    for (const Operand& input : inputs) given.push_back(input.tensor);
    Expression forward, gradient;
    const std::string text = expression_of(list.function);
    check(compute_expression_parse(text.empty() ? list.function.c_str() : text.c_str(), names, list.arity, nullptr, 0,
                                   forward.out()));
    check(compute_expression_gradient(forward, nullptr, 0, gradient.out()));
    check(compute_map(nullptr, gradient, given.data(), list.arity + 1, nullptr, 0, results.data(), list.arity));
    for (size_t k = 0; k < arity; ++k) {
      Tensor result;
      *result.out() = results[k];
      const Array actual = session.download(result);
      for (size_t i = 0; i < count; ++i) {
        const auto is_subnormal = [&](Real x) { return x != 0 && std::fabs(x) < least; };
        bool is_open = false;
        for (size_t j = 0; j < arity; ++j) is_open |= may_flush && is_subnormal(list.points[i * arity + j]);
        if (is_open) continue;
        const Real found = actual.at(static_cast<int64_t>(i)).re;
        Real expected = list.derivatives[i * arity + k];
        if (std::fabs(expected) > greatest) expected = std::copysign(std::numeric_limits<Real>::infinity(), expected);
        const Real scale =
            kDifferences.contains(list.function) ? std::max(std::fabs(expected), 1.0L) : std::fabs(expected);
        const bool is_near = std::isnan(expected)   ? std::isnan(found)
                             : std::isinf(expected) ? found == expected
                                                    : std::fabs(found - expected) <= 64 * u * scale + least;
        std::string at;
        for (size_t j = 0; j < arity; ++j) at += (j > 0 ? ", " : "") + std::to_string(list.points[i * arity + j]);
        EXPECT_TRUE(is_near) << list.function << " by input " << k << " at " << at << ": " << static_cast<double>(found)
                             << ", not " << static_cast<double>(expected);
      }
    }
  }
}

using Complex = std::complex<double>;

// The gradient of the real part of a function of one complex number, where that has one, and else by convention.
void complex_derivatives_agree_at_points(const Session& session) {
  struct Point {
    const char* text;
    Complex x, gradient;
  };
  const Complex i(0, 1);
  constexpr double kRoot = 0.70710678118654752440;
  for (const Point& point : {Point{"abs(x)", 0, 0},
                             Point{"abs(x)", {3, -4}, {0.6, -0.8}},
                             Point{"arg(x)", 0, 0},
                             Point{"arg(x)", 1, i},
                             Point{"arg(x)", 2.0 * i, -0.5},
                             Point{"sign(x)", 0, 0},
                             Point{"real(sign(x))", i, 1},
                             Point{"real(x * x)", 0, 0},
                             Point{"real(x)", 1, 1},
                             Point{"imag(x)", 1, i},
                             Point{"imag(conj(x))", 1, -i},
                             Point{"real(sqrt(x))", -1, 0.5 * i},
                             Point{"real(log(x))", i, i},
                             Point{"real(exp(x))", 0, 1},
                             Point{"real(1 / x)", i, 1},
                             Point{"real(x ** 2)", 0, 0},
                             Point{"real(atan(x))", 1, 0.5},
                             Point{"real(asinh(x))", 1, kRoot},
                             Point{"real(tanh(x))", 0, 1},
                             Point{"real(complex(real(x), imag(x)) * 2)", {0.5, 3}, 2},
                             Point{"real(where(x == 0, 1, 1 / x))", 0, 0},
                             Point{"real(log10(x))", 1, 0.43429448190325182765},
                             Point{"real(log2(x))", 2, 0.72134752044448170368}}) {
    Array x(dtype::COMPLEX64, {1});
    x.set(0, {0, Real{point.x.real()}, Real{point.x.imag()}});
    const Operand input = session.upload(x);
    const char* const names[] = {"x"};
    Expression forward, gradient;
    check(compute_expression_parse(point.text, names, 1, nullptr, 0, forward.out()));
    check(compute_expression_gradient(forward, nullptr, 0, gradient.out()));
    const bool is_complex = std::string_view(point.text) == "sign(x)";
    Array one(is_complex ? dtype::COMPLEX64 : dtype::FLOAT32, {1});
    one.set(0, Value::of(Real{1}));
    const Operand dy = session.upload(one);
    compute_tensor* const given[] = {input.tensor, dy.tensor};
    Tensor result;
    check(compute_map(nullptr, gradient, given, 2, nullptr, 0, result.out(), 1));
    const Value found = session.download(result).at(0);
    const Complex actual(static_cast<double>(found.re), static_cast<double>(found.im));
    EXPECT_FALSE(!(std::abs(actual - point.gradient) <= 1e-6))
        << point.text << " at " << point.x << ": " << actual << ", not " << point.gradient;
  }
}

// No gradient of an elementwise op or an intrinsic is 0 unless that is written down: each that takes floating-point
// numbers has points above where its derivative by every input is something else, or is a step.
void every_function_has_derivatives(const Session&) {
  std::map<std::string, std::set<size_t>> known;  // the inputs of an op by which its derivative is somewhere not 0
  std::string texts;
  for (const Points& list : points()) {
    const auto arity = static_cast<size_t>(list.arity);
    for (size_t i = 0; i < list.derivatives.size(); ++i) {
      if (list.derivatives[i] != 0) known[list.function].insert(i % arity);
    }
    const std::string text = expression_of(list.function);
    texts += (text.empty() ? list.function : text) + ";";
  }
  const std::set<std::pair<std::string, size_t>> constant = {
      {"copysign", 1}, {"heaviside", 0}, {"nextafter", 1}, {"where", 0}};
  // By their last operand alone, for given parameters.
  const std::set<std::string> of_parameters = {"betainc", "gammainc", "gammaincc", "polygamma"};
  for (const OpRow& row : op_rows()) {
    const oracle::Elementwise* op = oracle::find_elementwise(row.name);
    if (of_parameters.contains(row.name)) {
      EXPECT_NE(texts.find(row.name + "("), std::string::npos) << row.name;
      continue;
    }
    if (!row.elementwise || row.name == "where" || op->output == oracle::Elementwise::BOOL ||
        !in_class(dtype::FLOAT64, row.classes))
      continue;
    for (size_t i = 0; i < static_cast<size_t>(op->arity); ++i) {
      const bool is_constant = kConstant.contains(row.name) || constant.contains({row.name, i});
      EXPECT_EQ(known[row.name].contains(i), !is_constant) << row.name << " by input " << i;
    }
  }
  // So is each intrinsic of real numbers: it has a rule, and a function above is made of it; or it is a step.
  const std::set<std::string> steps = {"bitcast", "bit_and", "bit_not", "bit_or", "bit_xor", "ceil",     "eq",
                                       "floor",   "ge",      "gt",      "isinf",  "isnan",   "isfinite", "floor_div",
                                       "le",      "lt",      "ne",      "round",  "shl",     "shr",      "mul_high",
                                       "sign",    "signbit", "trunc",   "convert"};
  const std::map<std::string, std::string> operators = {{"add", "+"}, {"sub", "-"}, {"mul", "*"}, {"div", "/"},
                                                        {"mod", "%"}, {"neg", "-"}, {"pow", "**"}};
#define COMPUTE_INTRINSIC(id, name, arity, operands, result, ulp, commutes, cost, definition, gradient, summary) \
  {                                                                                                              \
    const std::string rule = std::string(gradient).substr(0, std::string(gradient).find("| "));                  \
    EXPECT_NE(rule.find_first_not_of(" ;") != std::string::npos, steps.contains(#name)) << #name;                \
    const auto found = operators.find(#name);                                                                    \
    const std::string spelling = found != operators.end() ? found->second : std::string(#name) + "(";            \
    EXPECT_TRUE(steps.contains(#name) || std::string_view(#operands) == "COMPLEX" ||                             \
                std::string_view(#name) == "complex" || texts.find(spelling) != std::string::npos)               \
        << #name << " is in no function of derivatives.inc";                                                     \
  }
#include <compute/intrinsics.def>
#undef COMPUTE_INTRINSIC
}

// ---- Central differences --------------------------------------------------------------------------------------------

using Operands = std::vector<Operand>;

struct Forward {
  Operands inputs, results;  // of the forward op
  Operand dy;                // the gradient of its first result
};

class Differences {
 public:
  explicit Differences(const Session& session) : session_(session), inputs_(20240612) {}

  Operand numbers(const Shape& shape, Real low = -1, Real high = 1) {
    return session_.upload(inputs_.uniform(dtype::FLOAT64, shape, low, high));
  }
  Operand integers(const Shape& shape, int64_t extent) {
    return session_.upload(inputs_.indices(dtype::INT64, shape, extent, false));
  }
  Operands run(const std::string& op, const Attributes& attributes, const Operands& given, size_t count) const {
    std::vector<Tensor> outputs(count);
    session_.run_all(op, attributes, given, nullptr, outputs);
    Operands operands;
    for (const Tensor& output : outputs) operands.push_back({session_.download(output), output});
    return operands;
  }

  // Compares the gradients of sum(op(inputs) dy) by the first inputs, as `backward` has them, with central differences.
  // `count` is the number of results of the op.
  void check(const std::string& op, const Attributes& attributes, const Operands& given, size_t count,
             const std::function<Operands(const Forward&)>& backward) {
    Forward forward{given, run(op, attributes, given, count), {}};
    forward.dy = numbers(forward.results[0].array.shape(), 0.5L, 1.5L);
    const Operands gradients = backward(forward);
    for (size_t k = 0; k < gradients.size(); ++k) {
      for (int64_t i = 0; i < given[k].array.size(); ++i) {
        constexpr Real kStep = 1e-5L;
        const auto moved = [&](Real by) {
          Operands all = given;
          Array array = given[k].array.copy();
          array.set(i, Value::of(array.at(i).re + by));
          all[k] = session_.upload(array);
          return weighted(run(op, attributes, all, count)[0].array, forward.dy.array);
        };
        const Real difference = (moved(kStep) - moved(-kStep)) / (2 * kStep), gradient = gradients[k].array.at(i).re;
        EXPECT_NEAR(static_cast<double>(gradient), static_cast<double>(difference),
                    static_cast<double>(2e-6L * (1 + std::fabs(difference))))
            << op << ", input " << k << ", element " << i;
      }
    }
  }

 private:
  static Real weighted(const Array& y, const Array& weights) {
    Real sum = 0;
    for (int64_t i = 0; i < y.size(); ++i) sum += y.at(i).re * weights.at(i).re;
    return sum;
  }

  const Session& session_;
  oracle::Inputs inputs_;
};

using Number = std::complex<double>;

void differ_rows(Differences& d) {
  for (const std::string op : {"softmax", "log_softmax"}) {
    d.check(op, {{"axis", int64_t{1}}}, {d.numbers({2, 5, 3})}, 1, [&](const Forward& f) {
      return d.run(op + "_grad", {{"axis", int64_t{1}}}, {f.dy, f.results[0]}, 1);
    });
  }
  for (const Attributes& attributes :
       {Attributes{}, {{"label_smoothing", Number(0.25)}, {"ignore_index", int64_t{1}}}}) {
    d.check("cross_entropy", attributes, {d.numbers({4, 5}), d.integers({4}, 5)}, 2, [&](const Forward& f) {
      return d.run("cross_entropy_grad", attributes, {f.dy, f.inputs[0], f.inputs[1], f.results[1]}, 1);
    });
  }
  d.check("cross_entropy_soft", {}, {d.numbers({4, 5}), d.numbers({4, 5}, 0, 1)}, 2, [&](const Forward& f) {
    return d.run("cross_entropy_soft_grad", {}, {f.dy, f.inputs[0], f.inputs[1], f.results[1]}, 1);
  });
  const auto norm = [&](const std::string& op, const Attributes& attributes, const Operands& given) {
    d.check(op, attributes, given, op == "rms_norm" ? 2 : 3, [&](const Forward& f) {
      Operands list = {f.dy, f.inputs[0]};
      list.insert(list.end(), f.results.begin() + 1, f.results.end());
      list.push_back(f.inputs[1]);
      return d.run(op + "_grad", attributes, list, f.inputs.size());
    });
  };
  norm("layer_norm", {{"axis", int64_t{1}}}, {d.numbers({3, 2, 3}), d.numbers({2, 3}), d.numbers({2, 3})});
  norm("rms_norm", {}, {d.numbers({3, 5}), d.numbers({5})});
  norm("batch_norm", {{"epsilon", Number(0.125)}}, {d.numbers({3, 4, 2}), d.numbers({4}), d.numbers({4})});
  norm("group_norm", {{"groups", int64_t{2}}}, {d.numbers({2, 4, 3}), d.numbers({4}), d.numbers({4})});
}

void differ_windows(Differences& d) {
  const Attributes window = {{"window", Shape{3, 2}}, {"strides", Shape{2, 1}}, {"padding", std::string("same")}};
  d.check("max_pool", window, {d.numbers({1, 2, 5, 4})}, 1, [&](const Forward& f) {
    return d.run("max_pool_grad", window, {f.dy, f.inputs[0], f.results[0]}, 1);
  });
  d.check("average_pool", window, {d.numbers({1, 2, 5, 4})}, 1, [&](const Forward& f) {
    Attributes backward = window;
    backward["shape"] = Shape{5, 4};
    return d.run("average_pool_grad", backward, {f.dy}, 1);
  });
  const auto convolution = [&](const Attributes& attributes, const Shape& x, const Shape& weight) {
    d.check("convolution", attributes, {d.numbers(x), d.numbers(weight)}, 1, [&](const Forward& f) {
      Attributes by_input = attributes, by_weight = attributes;
      by_input["shape"] = Shape(x.begin() + 2, x.end());
      by_weight["kernel"] = Shape(weight.begin() + 2, weight.end());
      Operands gradients = d.run("convolution_grad_input", by_input, {f.dy, f.inputs[1]}, 1);
      gradients.push_back(d.run("convolution_grad_weight", by_weight, {f.dy, f.inputs[0]}, 1)[0]);
      return gradients;
    });
  };
  convolution({}, {2, 3, 7}, {2, 3, 3});
  convolution({{"strides", Shape{2, 1}}, {"dilations", Shape{1, 2}}, {"padding", std::string("same")}}, {1, 2, 5, 4},
              {3, 2, 3, 2});
  convolution({{"groups", int64_t{4}}, {"pads_begin", Shape{1}}, {"pads_end", Shape{0}}}, {1, 4, 5}, {4, 1, 3});
  d.check("convolution_transpose", {{"strides", Shape{2}}}, {d.numbers({1, 3, 4}), d.numbers({3, 2, 3})}, 1,
          [&](const Forward& f) {
            return d.run("convolution", {{"strides", Shape{2}}}, {f.dy, f.inputs[1]}, 1);
          });
}

void differ_attention(Differences& d) {
  const auto check = [&](const Attributes& attributes, int64_t shared, const Operand& mask) {
    Operands given = {d.numbers({1, 2, 3, 4}), d.numbers({1, shared, 5, 4}), d.numbers({1, shared, 5, 3})};
    if (mask.tensor) given.push_back(mask);
    d.check("attention", attributes, given, 2, [&](const Forward& f) {
      Operands list = {f.dy, f.inputs[0], f.inputs[1], f.inputs[2], f.results[0], f.results[1]};
      if (mask.tensor) list.push_back(mask);
      return d.run("attention_grad", attributes, list, 3);
    });
  };
  check({}, 2, {});
  check({{"causal", int64_t{1}}}, 1, {});
  check({{"scale", Number(0.75)}}, 2, d.numbers({1, 2, 3, 5}));
}

void differ_places(Differences& d) {
  d.check("take", {{"axis", int64_t{1}}}, {d.numbers({2, 4}), d.integers({5}, 4)}, 1, [&](const Forward& f) {
    return d.run("take_grad", {{"axis", int64_t{1}}, {"size", int64_t{4}}}, {f.dy, f.inputs[1]}, 1);
  });
  for (const int64_t reverse : {0, 1}) {
    d.check("cumulative_sum", {{"reverse", reverse}}, {d.numbers({2, 5})}, 1, [&](const Forward& f) {
      return d.run("cumulative_sum", {{"reverse", 1 - reverse}}, {f.dy}, 1);
    });
  }
  for (const int64_t interleaved : {0, 1}) {
    const Attributes attributes = {{"interleaved", interleaved}, {"base", Number(100)}};
    d.check("rotary_embedding", attributes, {d.numbers({2, 3, 6}), d.integers({3}, 50)}, 1, [&](const Forward& f) {
      Attributes backward = attributes;
      backward["inverse"] = int64_t{1};
      return d.run("rotary_embedding", backward, {f.dy, f.inputs[1]}, 1);
    });
  }
  const Attributes drop = {{"p", Number(0.25)}, {"seed", int64_t{7}}, {"offset", int64_t{3}}};
  d.check("dropout", drop, {d.numbers({5, 6})}, 1, [&](const Forward& f) { return d.run("dropout", drop, {f.dy}, 1); });
}

}  // namespace

void add_gradient_tests(Registry& registry) {
  for (const Dtype dtype : {dtype::FLOAT32, dtype::FLOAT64}) {
    const std::string suffix = std::string("_") + oracle::info(dtype).name;
    const std::vector<Dtype> needed = {dtype, dtype::INT64, dtype::BOOL};
    registry.add({"gradients", "agree_with_pytorch" + suffix,
                  [dtype](const Session& session) { agrees_with_pytorch(session, dtype); }, Level::FULL, "", needed});
    registry.add({"gradients",
                  "derivatives_agree_at_points" + suffix,
                  [dtype](const Session& session) { derivatives_agree_at_points(session, dtype); },
                  Level::FULL,
                  "",
                  {dtype}});
  }
  registry.add({"gradients",
                "every_function_has_derivatives",
                every_function_has_derivatives,
                Level::QUICK,
                "",
                {},
                COMPUTE_DTYPE_LEVEL_ARITHMETIC,
                false});
  registry.add({"gradients",
                "complex_derivatives_agree_at_points",
                complex_derivatives_agree_at_points,
                Level::FULL,
                "",
                {dtype::COMPLEX64}});
  const auto add = [&](const char* name, void (*body)(Differences&)) {
    registry.add({"gradients",
                  std::string("differences_of_") + name,
                  [body](const Session& session) {
                    Differences differences(session);
                    body(differences);
                  },
                  Level::FULL,
                  "",
                  {dtype::FLOAT64, dtype::INT64}});
  };
  add("rows", differ_rows);
  add("windows", differ_windows);
  add("attention", differ_attention);
  add("places", differ_places);
}

}  // namespace compute::conformance
