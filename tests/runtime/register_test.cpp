// SPDX-License-Identifier: Apache-2.0
// Ops that a program adds.
#include <algorithm>
#include <thread>

#include "runtime.hpp"

namespace runtime {
namespace {

using compute::Op;
using compute::Tensor;

const Op& scale() {
  static const Op op = Op::define("acme.scale", "x y", "x * y * k + c", "k: number = 2!; c: number = 0!", "NUMERIC",
                                  "a product by a number");
  return op;
}

TEST(RegisteredOp, IsFoundListedAndDescribed) {
  EXPECT_EQ(Op("acme.scale").get(), scale().get());
  EXPECT_EQ(Op("acme.scale", 1).get(), scale().get());
  const compute::OpInfo info = scale().info();
  EXPECT_EQ(info.name, "acme.scale");
  EXPECT_EQ(info.summary, "a product by a number");
  EXPECT_EQ(info.inputs, "x y");
  EXPECT_EQ(info.attributes, "k: number = 2!; c: number = 0!");
  EXPECT_EQ(info.expression, "x * y * k + c");
  EXPECT_EQ(info.dtypes, "NUMERIC");
  EXPECT_EQ(info.version, 1);
  int32_t listed = 0;
  std::string before;
  for (const compute::OpInfo& each : Op::list()) {
    EXPECT_LE(before, each.name);
    before = each.name;
    listed += each.name == "acme.scale";
  }
  EXPECT_EQ(listed, 1);
}

TEST(RegisteredOp, RunsOnEveryDeviceWithPromotionAndBroadcasting) {
  for (const compute::Device& device : {host(), remote()}) {
    const Tensor x = device.from_host(iota(3, 1)), y = device.from_host(std::vector<int32_t>{10, 20}).reshape({2, 1});
    const Tensor z = scale()({x, compute::cast(y, compute::float32)});
    EXPECT_EQ(z.device().name(), device.name());
    EXPECT_TRUE(std::ranges::equal(z.shape(), compute::Shape{2, 3}));
    EXPECT_EQ(z.to_vector<float>(), (std::vector<float>{20, 40, 60, 40, 80, 120}));
    const Tensor shifted = scale()({x, x}, {{"k", 0.5}, {"c", 1}});
    EXPECT_EQ(shifted.to_vector<float>(), (std::vector<float>{1.5, 3, 5.5}));
    const Tensor integers = scale()({y, y}, {{"k", 3}});
    EXPECT_EQ(integers.dtype(), compute::int32);
    EXPECT_EQ(integers.to_vector<int32_t>(), (std::vector<int32_t>{300, 1200}));
    EXPECT_EQ(scale()({x, Tensor::scalar(2.0f)}).to_vector<float>(), (std::vector<float>{4, 8, 12}));
    scale().into({x, x}, {x});
    EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{2, 8, 18}));
  }
}

TEST(RegisteredOp, IsQueriedPlannedAndRecorded) {
  EXPECT_EQ(scale().query(remote(), {{compute::float32, {4}}, {compute::float32, {4}}}).level,
            compute::SupportLevel::native);
  const Tensor x = remote().from_host(iota(2, 1));
  const compute::Plan plan(scale(), remote(), {x, x}, {{"k", 10.0}});
  EXPECT_EQ(plan({x, x}).to_vector<float>(), (std::vector<float>{10, 40}));
  EXPECT_EQ(plan({x, x}, {{"k", 1.0}}).to_vector<float>(), (std::vector<float>{1, 4}));
  const compute::Stream stream(remote());
  const Tensor k = Tensor::slot(compute::float32);
  Tensor result;
  const compute::Graph graph = compute::Graph::record(stream, [&] { result = scale()({x, x}, {{"k", k}}, stream); });
  graph.set_slot(k, 5.0f);
  graph.run(stream);
  EXPECT_EQ(result.to_vector<float>(), (std::vector<float>{5, 20}));
}

TEST(RegisteredOp, RefusesFaultyDescriptions) {
  const auto refused = [](const std::string& name, const std::string& inputs, const std::string& expression,
                          const std::string& attributes, const std::string& dtypes, int32_t version,
                          const std::string& message) {
    const Thrown error = thrown_by([&] { Op::define(name, inputs, expression, attributes, dtypes, "", version); });
    EXPECT_EQ(error.code, COMPUTE_ERROR_INVALID_ARGUMENT) << message;
    EXPECT_NE(error.message.find(message), std::string::npos) << error.message;
  };
  (void)scale();
  refused("scale", "x", "x", "", "ANY", 1, "two words separated by a dot");
  refused("acme.", "x", "x", "", "ANY", 1, "two words separated by a dot");
  refused("acme.scale", "x", "x", "", "ANY", 1, "version 1 is already registered");
  refused("acme.a", "x x", "x", "", "ANY", 1, "\"x\" is used twice");
  refused("acme.a", "X", "X", "", "ANY", 1, "\"X\" is not a valid name");
  refused("acme.a", "x...", "x", "", "ANY", 1, "is not a valid name");
  refused("acme.a", "", "1", "", "ANY", 1, "0 inputs, not 1 to 16");
  refused("acme.a", "x", "x + q", "", "ANY", 1, "q");
  refused("acme.a", "x", "x; x", "", "ANY", 1, "2 outputs, not 1");
  refused("acme.a", "x", "x", "k: float64 = 1", "ANY", 1, "not a single number marked with !");
  refused("acme.a", "x", "x", "k: int64[] = all!", "ANY", 1, "not a single number marked with !");
  refused("acme.a", "x", "x", "k", "ANY", 1, "is not of the form");
  refused("acme.a", "x", "x", "k: quaternion = 1!", "ANY", 1, "is not of the form");
  refused("acme.a", "x", "x", "", "NUMBERS", 1, "not a class of dtypes");
  const Thrown dtype = thrown_by(
      [] { (void)Op::define("acme.reals", "x", "sqrt(x)", "", "FLOAT")({host().zeros(compute::complex64, {1})}); });
  EXPECT_EQ(dtype.code, COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(dtype.message.find("acme.reals: x is complex64"), std::string::npos) << dtype.message;
  compute_op_registration given{};
  given.struct_size = sizeof given;
  given.struct_type = COMPUTE_STRUCT_OP_REGISTRATION;
  const auto code_of = [](const compute_op_registration* registration, const compute_op** out_op) {
    compute_error* error = compute_op_register(registration, out_op);
    const compute_error_code code = compute_error_get_code(error);
    compute_error_free(error);
    return code;
  };
  const compute_op* op = scale().get();
  EXPECT_EQ(code_of(&given, &op), COMPUTE_ERROR_INVALID_ARGUMENT);  // without a name
  EXPECT_EQ(op, nullptr);
  EXPECT_EQ(code_of(nullptr, &op), COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(code_of(&given, nullptr), COMPUTE_ERROR_INVALID_ARGUMENT);
  given.flags = 1;
  EXPECT_EQ(code_of(&given, &op), COMPUTE_ERROR_UNSUPPORTED);
  given.flags = 0;
  given.struct_type = COMPUTE_STRUCT_LAUNCH;
  EXPECT_EQ(code_of(&given, &op), COMPUTE_ERROR_INVALID_ARGUMENT);
}

TEST(RegisteredOp, ANewerVersionLeavesTheOlderOneAsItIs) {
  const Op first = Op::define("acme.twice", "x", "x * 2"),
           second = Op::define("acme.twice", "x", "x + x + 1", "", "NUMERIC", "", 2);
  const Tensor x = host().from_host(iota(2, 1));
  EXPECT_EQ(Op("acme.twice").get(), second.get());
  EXPECT_EQ(Op("acme.twice", 1).get(), first.get());
  EXPECT_EQ(first({x}).to_vector<float>(), (std::vector<float>{2, 4}));
  EXPECT_EQ(second({x}).to_vector<float>(), (std::vector<float>{3, 5}));
}

TEST(RegisteredOp, ManyThreadsRegisterAndFind) {
  std::vector<std::thread> threads;
  std::atomic<int32_t> found{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const std::string name = "acme.op_" + std::to_string(t) + "_" + std::to_string(i);
        const Op op = Op::define(name, "x", "x + " + std::to_string(i));
        found += Op(name).get() == op.get();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(found, 200);
}

}  // namespace
}  // namespace runtime
