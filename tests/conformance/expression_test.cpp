// SPDX-License-Identifier: Apache-2.0
// Expressions of the program's own, run in one pass.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "registry.hpp"

namespace compute::conformance {

namespace {

using oracle::Inputs;

Expression parse(const char* text, const std::vector<const char*>& inputs,
                 const std::vector<const char*>& scalars = {}) {
  Expression expression;
  check(compute_expression_parse(text, inputs.data(), static_cast<int64_t>(inputs.size()), scalars.data(),
                                 static_cast<int64_t>(scalars.size()), expression.out()));
  return expression;
}

std::vector<Tensor> run(const Expression& expression, const std::vector<Operand>& inputs,
                        const std::vector<Tensor>& scalars, std::vector<Tensor> outputs,
                        compute_stream* stream = nullptr) {
  std::vector<compute_tensor*> x, s, y;
  for (const Operand& operand : inputs) x.push_back(operand.tensor);
  for (const Tensor& tensor : scalars) s.push_back(tensor);
  for (const Tensor& tensor : outputs) y.push_back(tensor);
  check(compute_map(stream, expression, x.data(), static_cast<int64_t>(x.size()), s.data(),
                    static_cast<int64_t>(s.size()), y.data(), static_cast<int64_t>(y.size())));
  for (size_t i = 0; i < y.size(); ++i) {
    if (!outputs[i]) *outputs[i].out() = y[i];
  }
  return outputs;
}

Tensor scalar(Dtype dtype, Real value) {
  Array x(dtype, {});
  x.set(0, oracle::is_inexact(dtype) ? Value::of(value) : Value::of(static_cast<oracle::Integer>(value)));
  Tensor tensor;
  check(compute_tensor_scalar(dtype, x.data(), 0, tensor.out()));
  return tensor;
}

// What a function of positions gives, as a result to be judged.
oracle::Result expected(Dtype dtype, const Shape& shape, const std::function<Real(int64_t)>& value) {
  oracle::Result result;
  result.dtype = dtype;
  result.accumulator = dtype;
  result.shape = shape;
  for (int64_t i = 0; i < oracle::element_count(shape); ++i) {
    const Real x = value(i);
    result.elements.push_back(
        {oracle::is_inexact(dtype) ? Value::of(x) : Value::of(static_cast<oracle::Integer>(x)), oracle::kSigns});
  }
  return result;
}

const Bound kFour{Bound::ULP, 4};

void single_output(const Session& session) {
  Inputs inputs(51);
  const Expression expression = parse("tanh(a*b + 1)", {"a", "b"});
  const Stream stream = session.stream();
  for (Layout layout : kEveryLayout) {
    const Shape shape = {11, 17};
    const auto make = [&] {
      return view(layout, session.upload(inputs.uniform(dtype::FLOAT32, base_shape(layout, shape), 0.5L, 1.5L)), shape);
    };
    const Operand a = make(), b = make();
    const std::vector<Tensor> y = run(expression, {a, b}, {}, {Tensor()}, stream);
    const auto value = [&](int64_t i) { return std::tanh(a.array.at(i).re * b.array.at(i).re + 1); };
    session.judge(y[0], expected(dtype::FLOAT32, shape, value), kFour, name(layout));
  }
}

void several_outputs(const Session& session) {
  session.need(dtype::BOOL, COMPUTE_DTYPE_ARITHMETIC);
  Inputs inputs(52);
  const Expression expression = parse("a + b; a - b; a < b", {"a", "b"});
  const Operand a = session.upload(inputs.uniform(dtype::FLOAT32, {7, 1, 5}, -2, 2)),
                b = session.upload(inputs.uniform(dtype::FLOAT32, {3, 5}, -2, 2));
  const std::vector<Tensor> y = run(expression, {a, b}, {}, {Tensor(), Tensor(), Tensor()});
  const Operand operands[] = {a, b};
  session.judge(y[0], reference("add", {}, operands), bound_of("add", dtype::FLOAT32), "first");
  session.judge(y[1], reference("subtract", {}, operands), bound_of("subtract", dtype::FLOAT32), "second");
  session.judge(y[2], reference("less", {}, operands), bound_of("less", dtype::BOOL), "third");
  // Given outputs may have any strides.
  const Operand memory = session.upload(Array(dtype::FLOAT32, base_shape(Layout::NEGATIVE, {7, 3, 5})));
  const Operand target = view(Layout::NEGATIVE, memory, {7, 3, 5});
  run(expression, {a, b}, {}, {target.tensor, Tensor(), Tensor()});
  session.judge(target.tensor, reference("add", {}, operands), bound_of("add", dtype::FLOAT32), "into a view");
}

void run_time_scalars(const Session& session) {
  Inputs inputs(53);
  const Expression expression = parse("x * scale + shift", {"x"}, {"scale", "shift"});
  const Operand x = session.upload(inputs.uniform(dtype::INT32, {100}, -1000, 1000));
  const auto check_values = [&](int64_t scale, int64_t shift) {
    const std::vector<Tensor> y = run(
        expression, {x},
        {scalar(dtype::INT32, static_cast<Real>(scale)), scalar(dtype::INT32, static_cast<Real>(shift))}, {Tensor()});
    session.judge(y[0],
                  expected(dtype::INT32, {100},
                           [&](int64_t i) { return static_cast<Real>(x.array.at(i).integer * scale + shift); }),
                  {Bound::EXACT, 0}, "scalars");
  };
  check_values(3, -7);
  const compute_device_statistics before = session.statistics();
  for (int64_t i = 0; i < 20; ++i) check_values(i, 2 * i);
  EXPECT_EQ(session.statistics().plans_prepared, before.plans_prepared) << "the value of a scalar is no part of a plan";
  EXPECT_EQ(session.statistics().kernels_compiled, before.kernels_compiled);
}

void positions(const Session& session) {
  const Expression expression = parse("index(0) * 10 + index(1)", {});
  const Tensor y = session.empty(dtype::INT64, {6, 7});
  run(expression, {}, {}, {y}, session.stream());
  session.judge(y, expected(dtype::INT64, {6, 7}, [](int64_t i) { return static_cast<Real>(i / 7 * 10 + i % 7); }),
                {Bound::EXACT, 0}, "index");
}

// The whole of an expression computes in float32 and rounds once.
void half_types_round_once(const Session& session) {
  Inputs inputs(54);
  const Expression expression = parse("(a + b) * (a - b)", {"a", "b"});
  for (Dtype dtype : {Dtype{dtype::FLOAT16}, Dtype{dtype::BFLOAT16}}) {
    if (!session.supports(dtype, COMPUTE_DTYPE_ARITHMETIC)) continue;
    const Operand a = session.upload(inputs.uniform(dtype, {4000}, 1, 2)),
                  b = session.upload(inputs.uniform(dtype, {4000}, 0.001L, 0.9L));
    const std::vector<Tensor> y = run(expression, {a, b}, {}, {Tensor()});
    const auto value = [&](int64_t i) {
      return (a.array.at(i).re + b.array.at(i).re) * (a.array.at(i).re - b.array.at(i).re);
    };
    session.judge(y[0], expected(dtype, {4000}, value), {Bound::ULP, 2}, oracle::info(dtype).name);
  }
}

void conversions(const Session& session) {
  session.need(dtype::BOOL, COMPUTE_DTYPE_ARITHMETIC);
  Inputs inputs(55);
  const Expression expression = parse("where(x < 0, -x, x) > 2", {"x"});
  const Operand x = session.upload(inputs.uniform(dtype::FLOAT32, {333}, -4, 4));
  const std::vector<Tensor> y = run(expression, {x}, {}, {Tensor()});
  session.judge(y[0], expected(dtype::BOOL, {333}, [&](int64_t i) { return std::fabs(x.array.at(i).re) > 2; }),
                {Bound::EXACT, 0}, "to bool");
}

void in_place(const Session& session) {
  Inputs inputs(56);
  const Expression expression = parse("x * 2 + y", {"x", "y"});
  const Operand x = session.upload(inputs.uniform(dtype::FLOAT32, {50, 4}, 1, 4)),
                y = session.upload(inputs.uniform(dtype::FLOAT32, {50, 4}, 1, 4));
  run(expression, {x, y}, {}, {x.tensor});
  session.judge(x.tensor,
                expected(dtype::FLOAT32, {50, 4}, [&](int64_t i) { return x.array.at(i).re * 2 + y.array.at(i).re; }),
                {Bound::ULP, 1}, "in place");
}

void faults(const Session&) {
  const struct {
    const char* text;
    const char* mention;
  } kFaults[] = {{"a +", "^"},         {"exq(a)", "exp"}, {"a b", "^"},  {"foo + a", "foo"},
                 {"exp(a, b)", "exp"}, {"", ""},          {"((a)", "^"}, {"a @ b", "^"}};
  const char* names[] = {"a", "b"};
  for (const auto& fault : kFaults) {
    Expression expression;
    const Error error(compute_expression_parse(fault.text, names, 2, nullptr, 0, expression.out()));
    EXPECT_EQ(error.code(), COMPUTE_ERROR_INVALID_ARGUMENT) << fault.text;
    EXPECT_TRUE(error.mentions(fault.mention)) << fault.text << ": " << error.message();
    EXPECT_EQ(expression.get(), nullptr);
  }
}

// More strides than a kernel's parameters hold on any device.
void many_operands(const Session& session) {
  constexpr int64_t kOperands = 48, kRank = 12;
  Inputs inputs(57);
  std::vector<std::string> names;
  std::vector<Operand> operands;
  std::string text;
  for (int64_t i = 0; i < kOperands; ++i) {
    names.push_back("x" + std::to_string(i));
    text += (i == 0 ? "" : " + ") + names.back();
    // permutations of the twelve axes, each another one
    std::vector<int> axes;
    for (int64_t axis = 0; axis < kRank; ++axis) {
      axes.push_back(static_cast<int>((axis * Shape{1, 5, 7, 11}[static_cast<size_t>(i) % 4] + i / 4) % kRank));
    }
    operands.push_back(permuted(session.upload(inputs.uniform(dtype::INT32, Shape(kRank, 2), -1000, 1000)), axes));
  }
  std::vector<const char*> pointers;
  for (const std::string& name : names) pointers.push_back(name.c_str());
  const std::vector<Tensor> y = run(parse(text.c_str(), pointers), operands, {}, {Tensor()});
  session.judge(y[0],
                expected(dtype::INT32, Shape(kRank, 2),
                         [&](int64_t i) {
                           Real sum = 0;
                           for (const Operand& operand : operands)
                             sum += static_cast<Real>(operand.array.at(i).integer);
                           return sum;
                         }),
                {Bound::EXACT, 0}, "many operands");
}

}  // namespace

void add_expression_tests(Registry& registry) {
  registry.add({"expression", "single_output", single_output});
  registry.add({"expression", "several_outputs", several_outputs});
  registry.add({"expression", "run_time_scalars", run_time_scalars});
  Test index_test{"expression", "positions", positions};
  index_test.dtypes = {dtype::INT64};
  registry.add(std::move(index_test));
  registry.add({"expression", "half_types_round_once", half_types_round_once});
  registry.add({"expression", "conversions", conversions});
  registry.add({"expression", "in_place", in_place});
  registry.add({"expression", "many_operands", many_operands});
  Test fault_test{"expression", "faults", faults};
  fault_test.runs_ops = false;
  registry.add(std::move(fault_test));
}

}  // namespace compute::conformance
