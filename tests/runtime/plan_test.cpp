// SPDX-License-Identifier: Apache-2.0
// Plans that a program keeps.
#include <algorithm>

#include "runtime.hpp"

namespace runtime {
namespace {

const compute_op* find(const char* name) {
  const compute_op* op = nullptr;
  compute::check(compute_op_find(name, 0, &op));
  return op;
}

compute_attribute attribute(const char* name, int32_t kind, const void* value) {
  return {sizeof(compute_attribute),
          COMPUTE_STRUCT_ATTRIBUTE,
          nullptr,
          name,
          static_cast<int64_t>(std::string(name).size()),
          kind,
          0,
          1,
          value};
}

struct Plan : compute::Reference<compute_plan, compute_plan_retain, compute_plan_release> {
  Plan(const char* op, const compute::Device& device, const std::vector<compute_attribute>& attributes,
       const std::vector<compute::Tensor>& inputs) {
    std::vector<compute_tensor*> handles;
    for (const compute::Tensor& input : inputs) handles.push_back(input.get());
    compute_tensor* const none[] = {nullptr};
    compute_plan* plan = nullptr;
    compute::check(compute_plan_create(device.get(), find(op), attributes.data(),
                                       static_cast<int64_t>(attributes.size()), handles.data(),
                                       static_cast<int64_t>(handles.size()), none, 1, &plan));
    Reference::operator=(Reference(plan));
  }

  compute::Tensor run(const std::vector<compute::Tensor>& inputs, const std::vector<compute_attribute>& run_time = {},
                      const compute::Stream& stream = {}, compute_tensor* output = nullptr) const {
    std::vector<compute_tensor*> handles;
    for (const compute::Tensor& input : inputs) handles.push_back(input.get());
    const bool given = output != nullptr;
    compute::check(compute_plan_run(get(), stream.get(), run_time.data(), static_cast<int64_t>(run_time.size()),
                                    handles.data(), static_cast<int64_t>(handles.size()), &output, 1));
    if (given) compute_tensor_retain(output);
    return compute::Tensor(output);
  }
};

// The minimal plugin passes the operands of such a run in that memory alone.
TEST(Plan, GetsMemoryForArgumentsAndOnTheHost) {
  setenv("COMPUTE_MINIMAL_ARGUMENTS", "1", 1);
  const compute::Stream stream(remote());
  compute::Tensor x = remote().from_host(iota(50000));
  std::vector<compute::Tensor> results;
  for (int i = 0; i < 100; ++i)
    results.push_back(compute::sqrt(compute::sum(x, compute::all_axes, true, compute::none, stream), stream));
  for (const compute::Tensor& result : results) EXPECT_EQ(result.to_vector<float>(), results[0].to_vector<float>());
  // In a graph, every run has its own.
  compute::check(compute_graph_begin(stream.get(), nullptr));
  const compute::Tensor y = compute::negative(compute::sin(x, stream), stream);
  compute_graph* graph = nullptr;
  compute::check(compute_graph_end(stream.get(), &graph));
  for (int i = 0; i < 3; ++i) compute::check(compute_graph_run(graph, stream.get()));
  EXPECT_EQ(y.to_vector<float>(), compute::negative(compute::sin(x)).to_vector<float>());
  compute_graph_release(graph);
  unsetenv("COMPUTE_MINIMAL_ARGUMENTS");
}

TEST(Plan, IsWarmedWhereAProgramPreparesAhead) {
  std::vector<std::string> lines;
  compute::check(compute_config_set("COMPUTE_LOG", "debug"));
  const auto take = [](compute_borrowed_log_record record, void* user) {
    static_cast<std::vector<std::string>*>(user)->emplace_back(record->text);
  };
  const compute::Tensor x = remote().from_host(iota(8));
  compute::check(compute_log_set_callback(take, &lines));
  const auto count = [&] { return std::count(lines.begin(), lines.end(), "minimal warms a plan of map"); };
  EXPECT_EQ(compute::square(x).to_vector<float>()[7], 49);
  EXPECT_EQ(count(), 0);
  const Plan plan("square", remote(), {}, {x});
  EXPECT_EQ(count(), 1);
  compute::check(compute_log_set_callback(nullptr, nullptr));
  compute::check(compute_config_set("COMPUTE_LOG", nullptr));
}

TEST(Plan, RunsOnItsDeviceWhateverTheOperands) {
  const compute::Tensor x = host().from_host(iota(8, 1));
  const Plan plan("square", remote(), {}, {x});
  const compute::Tensor y = plan.run({x});
  EXPECT_EQ(y.device().name(), "minimal0");
  EXPECT_EQ(y.to_vector<float>()[7], 64);
  const compute::Stream stream(remote());
  EXPECT_EQ(plan.run({x}, {}, stream).device().name(), "minimal0");
  const Thrown error = thrown_by([&] { plan.run({x}, {}, compute::Stream(host())); });
  EXPECT_EQ(error.code, COMPUTE_ERROR_DEVICE_MISMATCH) << error.message;
}

TEST(Plan, TakesOtherRunTimeAttributes) {
  const compute::Tensor x = remote().from_host(std::vector<float>{1, 2, 3, 6});
  const double one = 1, two = 2;
  const Plan plan("var", remote(), {attribute("correction", COMPUTE_KIND_FLOAT64, &one)}, {x});
  EXPECT_FLOAT_EQ(plan.run({x}).item<float>(), 14.0f / 3);
  EXPECT_FLOAT_EQ(plan.run({x}, {attribute("correction", COMPUTE_KIND_FLOAT64, &two)}).item<float>(), 7.0f);
  EXPECT_FLOAT_EQ(plan.run({x}).item<float>(), 14.0f / 3);  // for one run only
  const compute::Tensor three = compute::Tensor::scalar(3.0);
  compute_tensor* const scalar = three.get();
  EXPECT_FLOAT_EQ(plan.run({x}, {attribute("correction", COMPUTE_KIND_SCALAR, &scalar)}).item<float>(), 14.0f);
  const int64_t keep = 1;
  const Thrown fixed = thrown_by([&] { plan.run({x}, {attribute("keepdims", COMPUTE_KIND_INT64, &keep)}); });
  EXPECT_EQ(fixed.code, COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(fixed.message.find("keepdims is static"), std::string::npos) << fixed.message;
  const Thrown unknown = thrown_by([&] { plan.run({x}, {attribute("corection", COMPUTE_KIND_FLOAT64, &two)}); });
  EXPECT_NE(unknown.message.find("\"correction\""), std::string::npos) << unknown.message;
}

TEST(Plan, IsNotLookedUp) {
  const compute::Tensor x = remote().from_host(iota(5));
  const Plan plan("negative", remote(), {}, {x});
  // The cache forgets it.
  for (int64_t n = 1; n <= 4200; ++n) static_cast<void>(compute::abs(remote().empty(COMPUTE_DTYPE_INT32, {n + 8})));
  const int64_t prepared = remote().statistics().plans_prepared;
  EXPECT_EQ(plan.run({x}).to_vector<float>()[4], -4);
  EXPECT_EQ(remote().statistics().plans_prepared, prepared);
  static_cast<void>(compute::negative(x));
  EXPECT_EQ(remote().statistics().plans_prepared, prepared + 1);
}

TEST(Plan, FindsAnotherForOtherAlignmentAndOutputs) {
  const compute::Tensor all = remote().from_host(iota(9));
  const compute::Tensor x = all.slice(0, 0, 8), shifted = all.slice(0, 1, 9);
  const Plan plan("negative", remote(), {}, {x});
  EXPECT_EQ(plan.run({shifted}).to_vector<float>()[7], -8);
  const compute::Tensor y = remote().empty(COMPUTE_DTYPE_FLOAT32, {8});
  EXPECT_EQ(plan.run({x}, {}, {}, y.get()).get(), y.get());
  EXPECT_EQ(y.to_vector<float>()[7], -7);
  EXPECT_EQ(plan.run({x}, {}, {}, x.get()).to_vector<float>()[7], -7);  // in place
}

TEST(Plan, RefusesOtherOperands) {
  const compute::Tensor x = remote().from_host(iota(8)), one = compute::Tensor::scalar(1.0f),
                        weak = compute::Tensor::scalar(1.0f, true);
  const Plan plan("add", remote(), {}, {x, one});
  EXPECT_EQ(plan.run({x, compute::Tensor::scalar(2.0f)}).to_vector<float>()[7], 9);
  const auto message = [&](const compute::Tensor& a, const compute::Tensor& b, compute_tensor* output = nullptr) {
    return thrown_by([&] { plan.run({a, b}, {}, {}, output); }).message;
  };
  EXPECT_EQ(message(x, weak), "add: input 1 is a weak scalar of float32, but the plan is for a scalar of float32");
  EXPECT_EQ(message(x, remote().full<float>({}, 1)),
            "add: input 1 is float32 [] with strides [], but the plan is for a scalar of float32");
  EXPECT_EQ(message(x.slice(0, 0, 8, 2), one),
            "add: input 0 is float32 [4] with strides [2], but the plan is for float32 [8] with strides [1]");
  EXPECT_EQ(message(x, one, remote().empty(COMPUTE_DTYPE_FLOAT64, {8}).get()),
            "add: output 0 is float64 [8] with strides [1], but the plan is for float32 [8] with strides [1]");
}

}  // namespace
}  // namespace runtime
