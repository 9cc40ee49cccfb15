// SPDX-License-Identifier: Apache-2.0
// Ops by name, plans, expressions, graphs and kernels.
#include "cxx.hpp"

namespace cxx {
namespace {

using Floats = std::vector<float>;

class Ops : public OnDevice {};

TEST_P(Ops, RunByName) {
  const Tensor x = iota({2, 3});
  const Op sum_op("sum"), cast_op("cast", 1);
  EXPECT_EQ(sum_op({x}, {Attribute("axes", {1}), Attribute("keepdims", true)}).to_vector<float>(), (Floats{3, 12}));
  EXPECT_EQ(sum_op({x}, {Attribute("axes", Shape{}), Attribute("dtype", float64)}).dtype(), float64);
  EXPECT_EQ(cast_op({x}, {Attribute("dtype", int8)}).to_vector<int8_t>()[5], 5);
  EXPECT_EQ(Op("var")({x}, {Attribute("correction", 1.0)}).item<float>(), 3.5f);
  EXPECT_EQ(Op("take")({x, device_.from_host({int64_t{2}})}, {Attribute("axis", 1)}).to_vector<float>(),
            (Floats{2, 5}));
  const Tensor indices = device_.from_host({int64_t{0}}, {1, 1}), updates = device_.from_host({4.0f}, {1, 1});
  EXPECT_EQ(Op("scatter")({x, indices, updates}, {Attribute("reduction", "max")}).to_vector<float>()[0], 4);
  const Tensor y = device_.zeros(float32, {2, 3});
  Op("exp").into({x * 0}, {y});
  EXPECT_EQ(y.to_vector<float>(), Floats(6, 1));
  EXPECT_EQ(thrown_by([&] { return Op("exp").into({x}, {Tensor()}), 0; }).code, COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(thrown_by([&] { return Op("exp")({x}, {Attribute("axis", 1)}); }).code, COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(thrown_by([] { return Op("expp"); }).code, COMPUTE_ERROR_NOT_FOUND);
  EXPECT_EQ(thrown_by([] { return Op("exp", 99); }).code, COMPUTE_ERROR_NOT_FOUND);
  EXPECT_EQ(thrown_by([] { return Op("exp", int64_t{1} << 40); }).code, COMPUTE_ERROR_INVALID_ARGUMENT);
}

TEST_P(Ops, DescribeThemselves) {
  const auto all = Op::list();
  EXPECT_GT(all.size(), 90u);
  const OpInfo info = Op("add").info();
  EXPECT_EQ(info.name, "add");
  EXPECT_EQ(info.version, 1);
  EXPECT_EQ(info.inputs, "x y");
  EXPECT_EQ(info.expression, "x + y");
  EXPECT_TRUE(info.in_place);
  const TensorSpec matrix{.dtype = float32, .shape = {4, 4}};
  EXPECT_EQ(Op("exp").query(device_, {matrix}).level, SupportLevel::native);
  EXPECT_EQ(Op("exp").query(device_, {TensorSpec::of(iota({3, 2}).transpose())}).reason, "");
  EXPECT_EQ(Op("exp").query(device_, {matrix}).refusal, Refusal::not_refused);
  EXPECT_EQ(Op("exp").query(device_, {matrix}).argument, -1);
  EXPECT_EQ(Op("exp").query(device_, {matrix}, {}, {TensorSpec::left_out()}).level, SupportLevel::native);
  EXPECT_NE(Op("exp").query(device_, {matrix}, {}, {TensorSpec::of(iota({4, 4}).transpose())}).level,
            SupportLevel::unsupported);
  EXPECT_EQ(thrown_by([&] {
              return Op("exp").query(device_, {matrix}, {}, {TensorSpec::of(iota({4, 3}))});
            }).code,
            COMPUTE_ERROR_INVALID_ARGUMENT);
  const TensorSpec scalar{.dtype = float32, .shape = {}, .scalar = true, .weak = true};
  EXPECT_EQ(Op("add").query(device_, {matrix, scalar}).level, SupportLevel::native);
  EXPECT_GE(Op("sum").query(device_, {matrix}, {Attribute("axes", {0})}).workspace_bytes, -1);
  EXPECT_EQ(thrown_by([&] {
              return Op("add").query(device_, {matrix, TensorSpec::left_out()}).level;
            }).code,
            COMPUTE_ERROR_INVALID_ARGUMENT);
}

TEST_P(Ops, PlansAreKept) {
  const Tensor x = iota({4}), y = device_.zeros(float32, {4});
  const Plan square(Op("square"), device_, {x});
  EXPECT_EQ(square({x}).to_vector<float>(), (Floats{0, 1, 4, 9}));
  square.into({x}, {y}, {}, Stream(device_));
  EXPECT_EQ(y.to_vector<float>(), (Floats{0, 1, 4, 9}));
  EXPECT_EQ(thrown_by([&] { return square({iota({5})}); }).code, COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(thrown_by([&] { return square.into({x}, {Tensor()}), 0; }).code, COMPUTE_ERROR_INVALID_ARGUMENT);
  const Plan variance(Op("var"), device_, {x}, {Attribute("correction", 0.0)});
  EXPECT_EQ(variance({x}).item<float>(), 1.25f);
  EXPECT_FLOAT_EQ(variance({x}, {Attribute("correction", 1.0)}).item<float>(), 5.0f / 3);
  EXPECT_EQ(variance({x}, {Attribute("correction", Tensor::scalar(2.0))}).item<float>(), 2.5f);
  const Plan transposed(Op("negative"), device_, {iota({2, 2})}, {device_.zeros(float32, {2, 2}).transpose()}, {});
  EXPECT_TRUE(transposed.defined());
}

TEST_P(Ops, ExpressionsRunInOnePass) {
  const Tensor x = iota({3}), y = device_.from_host({1.0f, 0.0f, -1.0f});
  const Expression affine("a*s + b", {"a", "b"}, {"s"});
  EXPECT_EQ(affine.input_count(), 2);
  EXPECT_EQ(affine.scalar_count(), 1);
  EXPECT_EQ(affine.output_count(), 1);
  EXPECT_EQ(affine.run({x, y}, {2.0f}).at(0).to_vector<float>(), (Floats{1, 2, 3}));
  const Tensor out = device_.zeros(float32, {3});
  affine.into({x, y}, {Tensor::scalar(3.0f)}, {out});
  EXPECT_EQ(out.to_vector<float>(), (Floats{1, 3, 5}));
  EXPECT_EQ(Expression("a + b", {"a", "b"})(x, 1).to_vector<float>(), (Floats{1, 2, 3}));
  const auto both = Expression("a + 1; a * 2", {"a"}).run({x});
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[1].to_vector<float>(), (Floats{0, 2, 4}));
  const Tensor positions = device_.zeros(int64, {3});
  Expression("index(0) * 10").into({}, {}, {positions});
  EXPECT_EQ(positions.to_vector<int64_t>(), (std::vector<int64_t>{0, 10, 20}));
  EXPECT_NE(thrown_by([] { return Expression("a +", {"a"}); }).message.find('^'), std::string::npos);
  const TensorSpec line{.dtype = float32, .shape = {3}}, scalar{.dtype = float32, .shape = {}};
  EXPECT_EQ(affine.query(device_, {line, line}, {scalar}).level, SupportLevel::native);
  EXPECT_EQ(Expression("index(0)").query(device_, {}, {}, {{.dtype = int64, .shape = {3}}}).level,
            SupportLevel::native);
}

TEST_P(Ops, ExpressionsAreReduced) {
  const Tensor x = iota({2, 3}), y = device_.from_host({1.0f, 1.0f, 1.0f});
  const Expression squares("(a - b)**2 * s", {"a", "b"}, {"s"}), root("sqrt(v) + t", {"v"}, {"t"});
  EXPECT_EQ(map(squares, {x, y}, {2}).to_vector<float>(), (Floats{2, 0, 2, 8, 18, 32}));
  EXPECT_EQ(reduce(squares, Reduction::sum, {x, y}, {.axes = 1}, {1}).to_vector<float>(), (Floats{2, 29}));
  const Tensor kept = reduce(squares, Reduction::max, {x, y}, {.axes = 0, .keepdims = true, .after = root},
                             {1.0, Tensor::scalar(0.5f)});
  EXPECT_EQ(kept.shape().size(), 2u);
  EXPECT_EQ(kept.to_vector<float>(), (Floats{2.5f, 3.5f, 4.5f}));
  EXPECT_EQ(reduce(squares, Reduction::sum, {x, y}, {.accumulator = float64}, {1}).dtype(), float64);
  const Tensor out = device_.zeros(float32, {2});
  reduce_into(squares, Reduction::min, {x, y}, out, {.axes = 1}, {3});
  EXPECT_EQ(out.to_vector<float>(), (Floats{0, 12}));
  EXPECT_EQ(thrown_by([&] {
              return reduce(squares, Reduction::mean, {x, y}, {}, {1});
            }).code,
            COMPUTE_ERROR_INVALID_ARGUMENT);
  const TensorSpec matrix{.dtype = float32, .shape = {2, 3}}, scalar{.dtype = float32, .shape = {}};
  EXPECT_EQ(reduce_query(device_, squares, Reduction::sum, {matrix, matrix}, {.axes = 1}, {scalar}).level,
            SupportLevel::native);
}

TEST_P(Ops, GraphsHaveSlots) {
  const Stream stream(device_);
  const Tensor x = iota({3}), slot = Tensor::slot(float32);
  Tensor y;
  const Graph graph = Graph::record(stream, [&] { y = add(multiply(x, slot, stream), 1, stream); });
  EXPECT_EQ(graph.info().nodes, 2);
  for (const float factor : {2.0f, -1.0f}) {
    graph.set_slot(slot, factor);
    graph.run(stream);
    EXPECT_EQ(y.to_vector<float>(), (Floats{1, 1 + factor, 1 + 2 * factor}));
  }
  EXPECT_EQ(thrown_by([&] { return graph.set_slot(slot, 1.0), 0; }).message,
            "set_slot: the slot holds float32, not float64");
  EXPECT_THROW(static_cast<void>(Graph::record(stream, [] { throw std::out_of_range("body"); })), std::out_of_range);
  Graph::begin(stream);  // recording ended with the exception
  static_cast<void>(exp(x, stream));
  EXPECT_EQ(Graph::end(stream).info().nodes, 1);
  EXPECT_NE(thrown_by([&] { return Graph::end(stream); }).code, COMPUTE_OK);
}

TEST_P(Ops, KernelsInALanguageThatNobodyKnowsAreRefused) {
  EXPECT_EQ(thrown_by([&] { return Kernel(device_, "no-such-language", "COMPUTE_KERNEL f() {}", "f"); }).code,
            COMPUTE_ERROR_UNSUPPORTED);
}

COMPUTE_ON_DEVICES(Ops);

// On a device that compiles them.
TEST(Kernels, TakeTensorsAndValues) {
  const Device device = Device::open("opencl");
  const Kernel kernel(device, "portable", R"(
COMPUTE_KERNEL scale(COMPUTE_GLOBAL const f32* x, COMPUTE_GLOBAL f32* y, COMPUTE_GLOBAL f32* z, const f32 factor,
                     const i64 n) {
  const i64 i = COMPUTE_GLOBAL_ID(0);
  if (i < n) {
    y[i] = factor * x[i];
    z[i] += 1;
  }
})",
                      "scale");
  const Tensor x = arange(device, 100, float32), y = device.empty(float32, {100}), z = device.zeros(float32, {100});
  kernel.launch({.groups = {2, 1, 1}, .group_size = {64, 1, 1}}, {reads(x), writes(y), updates(z), 2.0f, int64_t{99}});
  EXPECT_EQ(y[98].item<float>(), 196);
  EXPECT_EQ(sum(z).item<float>(), 99);
  EXPECT_EQ(thrown_by([&] { return kernel.launch({}, {reads(x)}), 0; }).code, COMPUTE_ERROR_INVALID_ARGUMENT);
  const Kernel shared(device, "opencl-c", "kernel void f(local float* t, global float* y) { t[0] = V; y[0] = t[0]; }",
                      "f", "-DV=5");
  shared.launch({}, {local_memory(64), writes(y)});
  EXPECT_EQ(y[0].item<float>(), 5);
  const Kernel last(device, "opencl-c", "kernel void f(global float* y, local float* t) { t[0] = 6; y[0] = t[0]; }",
                    "f");
  last.launch({.local_memory_bytes = 64}, {writes(y)});
  EXPECT_EQ(y[0].item<float>(), 6);
  EXPECT_EQ(thrown_by([&] { return last.launch({}, {writes(y)}), 0; }).code, COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(thrown_by([&] { return Kernel(device, "opencl-c", "kernel void", "f"); }).code,
            COMPUTE_ERROR_COMPILE_FAILED);
  EXPECT_NE(device.native<compute_native_opencl>().context, 0u);
  EXPECT_NE(Stream(device).native<compute_native_opencl>().queue, 0u);
  EXPECT_NE(y.native<compute_native_opencl>().memory, 0u);
}

}  // namespace
}  // namespace cxx
