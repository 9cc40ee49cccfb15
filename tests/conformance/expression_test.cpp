// SPDX-License-Identifier: Apache-2.0
// Expressions defined by the program, run in one pass.
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
  std::vector<compute_tensor*> x, y;
  std::vector<compute_number> s;
  for (const Operand& operand : inputs) x.push_back(operand.tensor);
  for (const Tensor& tensor : scalars) s.push_back({COMPUTE_KIND_SCALAR, 0, 0, 0, 0, tensor});
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
  session.need(dtype::BOOL, COMPUTE_DTYPE_LEVEL_ARITHMETIC);
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
    if (!session.supports(dtype, COMPUTE_DTYPE_LEVEL_ARITHMETIC)) continue;
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
  session.need(dtype::BOOL, COMPUTE_DTYPE_LEVEL_ARITHMETIC);
  Inputs inputs(55);
  const Expression expression = parse("where(x < 0, -x, x) > 2", {"x"});
  const Operand x = session.upload(inputs.uniform(dtype::FLOAT32, {333}, -4, 4));
  const std::vector<Tensor> y = run(expression, {x}, {}, {Tensor()});
  session.judge(y[0], expected(dtype::BOOL, {333}, [&](int64_t i) { return std::fabs(x.array.at(i).re) > 2; }),
                {Bound::EXACT, 0}, "to bool");
}

// Known ranges of an expression's values allow functions to skip special cases. The test includes the least and
// greatest values, and each argument is a float32 rounded only by the conversion.
void functions_of_known_ranges(const Session& session) {
  session.need(dtype::UINT32, COMPUTE_DTYPE_LEVEL_CONVERT);
  session.need(dtype::FLOAT32, COMPUTE_DTYPE_LEVEL_ARITHMETIC);
  Inputs inputs(55);
  Array words = inputs.uniform(dtype::UINT32, {2000}, 0, 4294967295.0L);
  int64_t count = 0;
  for (int bit = 0; bit < 32; ++bit) {
    for (const int64_t add : {-1, 0, 1})
      words.set(count++, Value::of(static_cast<oracle::Integer>((int64_t{1} << bit) + add)));
  }
  words.set(count, Value::of(static_cast<oracle::Integer>(4294967295)));
  const Operand x = session.upload(words);
  const struct {
    const char* text;
    const char* op;
    Real scale, least;
  } kFunctions[] = {{"sqrt(convert(x, float32))", "sqrt", 1, 0},
                    {"sqrt(convert(x, float32) * 2.3283064365386963e-10)", "sqrt", 0x1p-32L, 0},
                    {"sqrt(convert(x, float32) * 3.3881317890172014e-21)", "sqrt", 0x1p-68L, 0},
                    {"sqrt(convert(x, float32) * 7.888609052210118e-31)", "sqrt", 0x1p-100L, 0},
                    {"log(max(convert(x, float32), 1))", "log", 1, 1},
                    {"log(max(convert(x, float32), 1) * 2.3283064365386963e-10)", "log", 0x1p-32L, 1},
                    {"log(max(convert(x, float32), 1) * 1.1754943508222875e-38)", "log", 0x1p-126L, 1},
                    {"log(max(convert(x, float32), 1) * 39614081257132168796771975168.0)", "log", 0x1p95L, 1}};
  std::string all;
  for (const auto& function : kFunctions) all += (all.empty() ? "" : "; ") + std::string(function.text);
  const std::vector<Tensor> results =
      run(parse(all.c_str(), {"x"}), {x}, {}, std::vector<Tensor>(std::size(kFunctions)));
  for (size_t k = 0; k < results.size(); ++k) {
    const auto& function = kFunctions[k];
    const auto value = [&](int64_t i) {
      const auto word = static_cast<Real>(static_cast<float>(static_cast<uint32_t>(words.at(i).integer)));
      const Real argument = std::max(word, function.least) * function.scale;
      return std::string_view(function.op) == "sqrt" ? std::sqrt(argument) : std::log(argument);
    };
    session.judge(results[k], expected(dtype::FLOAT32, {2000}, value), bound_of(function.op, dtype::FLOAT32),
                  function.text);
  }
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

// ---- compute_reduce ----

Tensor reduce(const Expression& before, int32_t reduction, const Expression* after, int64_t axis,
              const std::vector<Operand>& inputs, const std::vector<compute_number>& scalars,
              compute_tensor* output = nullptr, compute_stream* stream = nullptr) {
  std::vector<compute_tensor*> x;
  for (const Operand& operand : inputs) x.push_back(operand.tensor);
  compute_reduce_options options{};
  options.struct_size = sizeof options;
  options.axes_mask = uint64_t{1} << axis;
  if (after != nullptr) options.after = *after;
  if (output != nullptr) compute_tensor_retain(output);
  Tensor y;
  *y.out() = output;
  compute_tensor* made = output;
  check(compute_reduce(stream, before, reduction, &options, x.data(), static_cast<int64_t>(x.size()), scalars.data(),
                       static_cast<int64_t>(scalars.size()), &made));
  if (output == nullptr) *y.out() = made;
  return y;
}

compute_number number(double value) { return {COMPUTE_KIND_FLOAT64, 0, 0, value, 0, nullptr}; }
compute_number number(int64_t value) { return {COMPUTE_KIND_INT64, 0, value, 0, 0, nullptr}; }

// sqrt(sum((a - b)^2 * s) / n) of broadcast operands in odd layouts, with scalars of both expressions.
void reduction_between_expressions(const Session& session) {
  Inputs inputs(58);
  const Expression before = parse("(a - b) ** 2 * s", {"a", "b"}, {"s"}), after = parse("sqrt(x / n)", {"x"}, {"n"});
  for (Layout layout : kEveryLayout) {
    const Shape shape = {11, 17};
    const Operand a =
        view(layout, session.upload(inputs.uniform(dtype::FLOAT32, base_shape(layout, shape), 0.5L, 1.5L)), shape);
    const Operand b = session.upload(inputs.uniform(dtype::FLOAT32, {17}, -1, 0));
    const auto terms = [&](int64_t along, int64_t row, int64_t column) {
      Real sum = 0;
      for (int64_t i = 0; i < along; ++i) {
        const int64_t r = along == 17 ? row : i, c = along == 17 ? i : column;
        const Real difference = a.array.at(r * 17 + c).re - b.array.at(c).re;
        sum += difference * difference * 3;
      }
      return sum;
    };
    const Tensor rows = reduce(before, COMPUTE_REDUCTION_SUM, &after, 1, {a, b}, {number(int64_t{3}), number(17.0)});
    session.judge(rows, expected(dtype::FLOAT32, {11}, [&](int64_t i) { return std::sqrt(terms(17, i, 0) / 17); }),
                  {Bound::ULP, 16}, std::string("rows, ") + name(layout));
    const Stream stream = session.stream();
    const Tensor columns =
        reduce(before, COMPUTE_REDUCTION_SUM, &after, 0, {a, b}, {number(int64_t{3}), number(11.0)}, nullptr, stream);
    session.judge(columns, expected(dtype::FLOAT32, {17}, [&](int64_t i) { return std::sqrt(terms(11, 0, i) / 11); }),
                  {Bound::ULP, 16}, std::string("columns, ") + name(layout));
  }
}

// Half types sum in float32 and round after `after`: neither holds 2049 or 6147 exactly, both hold 3.
void reduction_rounds_once(const Session& session) {
  const Expression before = parse("x", {"x"}), after = parse("x * 3 - 6144", {"x"});
  Inputs inputs(59);
  for (Dtype dtype : {Dtype{dtype::FLOAT16}, Dtype{dtype::BFLOAT16}}) {
    if (!session.supports(dtype, COMPUTE_DTYPE_LEVEL_ARITHMETIC)) continue;
    const Operand ones = session.upload(inputs.uniform(dtype, {2, 2049}, 1, 1));
    const Tensor y = reduce(before, COMPUTE_REDUCTION_SUM, &after, 1, {ones}, {});
    session.judge(y, expected(dtype, {2}, [](int64_t) { return Real{3}; }), {Bound::EXACT, 0},
                  oracle::info(dtype).name);
  }
}

void reduction_of_nothing(const Session& session) {
  Inputs inputs(60);
  const Expression before = parse("x * s", {"x"}, {"s"}), after = parse("x + t", {"x"}, {"t"});
  const Operand nothing = session.upload(Array(dtype::FLOAT32, {3, 0}));
  constexpr struct {
    const char* name;
    int32_t reduction;
    Real value;
  } kRows[] = {{"sum", COMPUTE_REDUCTION_SUM, 5}, {"prod", COMPUTE_REDUCTION_PROD, 6}};
  for (const auto& [name, reduction, value] : kRows) {
    const Tensor y = reduce(before, reduction, &after, 1, {nothing}, {number(2.0), number(5.0)});
    session.judge(y, expected(dtype::FLOAT32, {3}, [&, value = value](int64_t) { return value; }), {Bound::EXACT, 0},
                  name);
  }
  // Something else has an element, so that the device is reached.
  const Operand one = session.upload(inputs.uniform(dtype::FLOAT32, {1, 1}, 2, 2));
  session.judge(reduce(before, COMPUTE_REDUCTION_MAX, &after, 1, {one}, {number(2.0), number(5.0)}),
                expected(dtype::FLOAT32, {1}, [](int64_t) { return Real{9}; }), {Bound::EXACT, 0}, "max");
}

// Into an output of another float dtype, and in a graph whose slots both expressions read.
void reduction_in_graphs(const Session& session) {
  Inputs inputs(61);
  const Expression before = parse("x * s", {"x"}, {"s"}), after = parse("x + t", {"x"}, {"t"});
  const Operand x = session.upload(inputs.uniform(dtype::INT32, {6, 50}, -100, 100));
  Tensor slots[2];
  compute_number scalars[2] = {};
  for (int i = 0; i < 2; ++i) {
    check(compute_tensor_slot(dtype::INT32, slots[i].out()));
    scalars[i].kind = COMPUTE_KIND_SCALAR;
    scalars[i].tensor = slots[i];
  }
  const Stream stream = session.stream();
  const Tensor y = session.empty(dtype::INT64, {6});
  check(compute_graph_begin(stream, nullptr));
  reduce(before, COMPUTE_REDUCTION_SUM, &after, 1, {x}, {scalars[0], scalars[1]}, y, stream);
  compute_graph* graph = nullptr;
  check(compute_graph_end(stream, &graph));
  for (int32_t scale : {3, -2}) {
    const int32_t shift = 7 * scale;
    check(compute_graph_set_slot(graph, slots[0], &scale));
    check(compute_graph_set_slot(graph, slots[1], &shift));
    check(compute_graph_run(graph, stream));
    const auto value = [&](int64_t row) {
      int64_t sum = shift;
      for (int64_t i = 0; i < 50; ++i) sum += static_cast<int64_t>(x.array.at(row * 50 + i).integer) * scale;
      return static_cast<Real>(sum);
    };
    session.judge(y, expected(dtype::INT64, {6}, value), {Bound::EXACT, 0}, "graph");
  }
  compute_graph_release(graph);
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
  registry.add({"expression", "functions_of_known_ranges", functions_of_known_ranges});
  registry.add({"expression", "in_place", in_place});
  registry.add({"expression", "many_operands", many_operands});
  registry.add({"expression", "reduction_between_expressions", reduction_between_expressions});
  registry.add({"expression", "reduction_of_nothing", reduction_of_nothing});
  Test rounding_test{"expression", "reduction_rounds_once", reduction_rounds_once};
  rounding_test.dtypes = {dtype::FLOAT16, dtype::BFLOAT16};
  registry.add(std::move(rounding_test));
  Test graph_test{"expression", "reduction_in_graphs", reduction_in_graphs};
  graph_test.dtypes = {dtype::INT32, dtype::INT64};
  registry.add(std::move(graph_test));
  Test fault_test{"expression", "faults", faults};
  fault_test.runs_ops = false;
  registry.add(std::move(fault_test));
}

}  // namespace compute::conformance
