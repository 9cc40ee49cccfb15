// SPDX-License-Identifier: Apache-2.0
// Queries how a device would run an op, without tensors, and compares the answers with what then runs.
#include "runtime.hpp"

namespace runtime {
namespace {

struct Answer {
  Thrown thrown;
  int32_t support = -1;
  std::string reason;
  int64_t workspace = -1;
};

using Specs = std::vector<compute_tensor_spec>;

constexpr int64_t kShape[] = {4, 4};

compute_tensor_spec matrix(compute_dtype dtype) {
  return {sizeof(compute_tensor_spec), COMPUTE_STRUCT_TENSOR_SPEC, nullptr, dtype, 2, kShape, nullptr, 0, 0};
}

compute_tensor_spec scalar(compute_dtype dtype, uint32_t flags) {
  return {sizeof(compute_tensor_spec), COMPUTE_STRUCT_TENSOR_SPEC, nullptr, dtype, 0, nullptr, nullptr, flags, 0};
}

template <class F>
Answer ask(F&& query) {
  Answer answer;
  compute::detail::Text reason;
  answer.thrown = thrown_by([&] { compute::check(query(&answer.support, &reason.text, &answer.workspace)); });
  answer.reason = reason.str();
  return answer;
}

Answer ask(const char* name, const Specs& inputs, const compute::Device& device = remote()) {
  const compute_op* op = nullptr;
  compute::check(compute_op_find(name, 0, &op));
  return ask([&](int32_t* support, compute_text** reason, int64_t* workspace) {
    return compute_op_query(device.get(), op, nullptr, 0, inputs.data(), static_cast<int64_t>(inputs.size()), support,
                            reason, workspace);
  });
}

struct Expression : compute::Reference<compute_expression, compute_expression_retain, compute_expression_release> {
  Expression(const char* text, const std::vector<const char*>& inputs, const std::vector<const char*>& scalars) {
    compute_expression* expression = nullptr;
    compute::check(compute_expression_parse(text, inputs.data(), static_cast<int64_t>(inputs.size()), scalars.data(),
                                            static_cast<int64_t>(scalars.size()), &expression));
    Reference::operator=(Reference(expression));
  }

  Answer ask(const Specs& inputs, const Specs& scalars, const Specs* outputs = nullptr) const {
    return runtime::ask([&](int32_t* support, compute_text** reason, int64_t* workspace) {
      return compute_map_query(
          remote().get(), get(), inputs.data(), static_cast<int64_t>(inputs.size()), scalars.data(),
          static_cast<int64_t>(scalars.size()), outputs != nullptr ? outputs->data() : nullptr,
          outputs != nullptr ? static_cast<int64_t>(outputs->size()) : 0, support, reason, workspace);
    });
  }
};

TEST(Query, SaysWhatIsOneStepAndWhatIsNot) {
  EXPECT_EQ(ask("exp", {matrix(COMPUTE_DTYPE_FLOAT32)}).support, COMPUTE_SUPPORT_NATIVE);
  const Answer sum = ask("sum", {matrix(COMPUTE_DTYPE_FLOAT32)});
  EXPECT_EQ(sum.support, COMPUTE_SUPPORT_NATIVE);
  EXPECT_EQ(sum.reason, "");
  // The minimal plugin has no contraction: a reduce replaces it, also in one step.
  const Answer product = ask("matmul", {matrix(COMPUTE_DTYPE_FLOAT32), matrix(COMPUTE_DTYPE_FLOAT32)});
  EXPECT_EQ(product.support, COMPUTE_SUPPORT_DECOMPOSED) << product.thrown.message;
  EXPECT_EQ(product.reason, "matmul on minimal0: the plugin does not implement it");
  // A variance is a row, which both have.
  const Answer variance = ask("var", {matrix(COMPUTE_DTYPE_FLOAT32)});
  EXPECT_EQ(variance.support, COMPUTE_SUPPORT_NATIVE);
  EXPECT_EQ(variance.workspace, 0);
  const Answer on_host = ask("var", {matrix(COMPUTE_DTYPE_FLOAT32)}, host());
  EXPECT_EQ(on_host.support, COMPUTE_SUPPORT_NATIVE) << on_host.reason;
}

TEST(Query, SaysWhatThePluginRunsOnTheHost) {
  setenv("COMPUTE_MINIMAL_ON_HOST", "gather", 1);
  const compute::Tensor x = remote().from_host(iota(4)), places = remote().from_host(std::vector<int64_t>{3, 0});
  const compute_tensor_spec index = {
      sizeof(compute_tensor_spec), COMPUTE_STRUCT_TENSOR_SPEC, nullptr, COMPUTE_DTYPE_INT64, 2, kShape, nullptr, 0, 0};
  const Answer answer = ask("take", {matrix(COMPUTE_DTYPE_FLOAT32), index});
  EXPECT_EQ(answer.support, COMPUTE_SUPPORT_HOST);
  EXPECT_EQ(answer.reason, "take on minimal0: the plugin runs gather on the host");
  EXPECT_EQ(ask("exp", {matrix(COMPUTE_DTYPE_FLOAT32)}).support, COMPUTE_SUPPORT_NATIVE);
  const int64_t before = remote().statistics().ops_fallback;
  EXPECT_EQ(compute::take(x, places, 0).to_vector<float>(), (std::vector<float>{3, 0}));
  EXPECT_EQ(remote().statistics().ops_fallback, before + 1);
  EXPECT_NE(compute::placement_report().find("the plugin runs it on the host"), std::string::npos);
  compute::check(compute_config_set("COMPUTE_FALLBACK", "strict"));
  const Thrown strict = thrown_by([&] { static_cast<void>(compute::take(x, places, 0)); });
  compute::check(compute_config_set("COMPUTE_FALLBACK", nullptr));
  EXPECT_EQ(strict.code, COMPUTE_ERROR_UNSUPPORTED);
  EXPECT_EQ(strict.message, "take on minimal0: the plugin runs it on the host (COMPUTE_FALLBACK=strict)");
  unsetenv("COMPUTE_MINIMAL_ON_HOST");
}

TEST(Query, KnowsScalars) {
  const compute_tensor_spec x = matrix(COMPUTE_DTYPE_INT32);
  EXPECT_EQ(ask("add", {x, scalar(COMPUTE_DTYPE_INT64, COMPUTE_SPEC_SCALAR | COMPUTE_SPEC_WEAK)}).support,
            COMPUTE_SUPPORT_NATIVE);
  // The same as the run: one that is not weak takes part in promotion.
  const compute_tensor_spec y = matrix(COMPUTE_DTYPE_INT64);
  const Answer refused = ask("add", {y, scalar(COMPUTE_DTYPE_UINT64, COMPUTE_SPEC_SCALAR)});
  EXPECT_EQ(refused.thrown.code, COMPUTE_ERROR_INVALID_ARGUMENT);
  const Thrown run = thrown_by([&] {
    static_cast<void>(compute::add(remote().empty(COMPUTE_DTYPE_INT64, {4, 4}), compute::Tensor::scalar(uint64_t{1})));
  });
  EXPECT_EQ(refused.thrown.message, run.message);
  EXPECT_EQ(ask("add", {x, scalar(COMPUTE_DTYPE_FLOAT32, COMPUTE_SPEC_SCALAR)}).support, COMPUTE_SUPPORT_NATIVE);
}

TEST(Query, RefusesWhatIsNoOperand) {
  const compute_tensor_spec x = matrix(COMPUTE_DTYPE_FLOAT32);
  EXPECT_EQ(ask("add", {x, scalar(COMPUTE_DTYPE_FLOAT32, COMPUTE_SPEC_WEAK)}).thrown.code,
            COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(ask("add", {x, scalar(COMPUTE_DTYPE_NONE, COMPUTE_SPEC_ABSENT)}).thrown.message,
            "add: input 1 is not optional");
  compute_tensor_spec wide = x;
  wide.flags = COMPUTE_SPEC_SCALAR;
  EXPECT_EQ(ask("add", {x, wide}).thrown.message, "inputs[1]: a scalar must have rank 0");
  wide.flags = 64;
  EXPECT_EQ(ask("add", {x, wide}).thrown.code, COMPUTE_ERROR_UNSUPPORTED);
}

TEST(Query, TakesExpressions) {
  const Expression expression("tanh(a * b + s)", {"a", "b"}, {"s"});
  EXPECT_EQ(compute_expression_input_count(expression.get()), 2);
  EXPECT_EQ(compute_expression_scalar_count(expression.get()), 1);
  EXPECT_EQ(compute_expression_output_count(expression.get()), 1);
  EXPECT_EQ(compute_expression_output_count(nullptr), 0);
  const compute_tensor_spec x = matrix(COMPUTE_DTYPE_FLOAT32);
  EXPECT_EQ(expression.ask({x, x}, {scalar(COMPUTE_DTYPE_FLOAT32, 0)}).support, COMPUTE_SUPPORT_NATIVE);
  EXPECT_EQ(expression.ask({x}, {scalar(COMPUTE_DTYPE_FLOAT32, 0)}).thrown.code, COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(expression.ask({x, x}, {x}).thrown.message, "scalars[0]: a scalar must have rank 0");
  const Specs other = {matrix(COMPUTE_DTYPE_INT32)};
  EXPECT_EQ(expression.ask({x, x}, {scalar(COMPUTE_DTYPE_FLOAT32, 0)}, &other).thrown.code,
            COMPUTE_ERROR_INVALID_ARGUMENT);
  const Expression index("index(0) * 2", {}, {});
  EXPECT_EQ(index.ask({}, {}).thrown.code, COMPUTE_ERROR_INVALID_ARGUMENT);  // as of the run: no shape
  const Specs integers = {matrix(COMPUTE_DTYPE_INT64)};
  EXPECT_EQ(index.ask({}, {}, &integers).support, COMPUTE_SUPPORT_NATIVE);
}

TEST(Query, TakesReductionsOfExpressions) {
  const Expression distance("(a - b) * (a - b) * s", {"a", "b"}, {"s"});
  const compute_tensor_spec x = matrix(COMPUTE_DTYPE_FLOAT32);
  const compute_tensor_spec weak = scalar(COMPUTE_DTYPE_FLOAT64, COMPUTE_SPEC_WEAK);
  const auto reduce = [&](const Specs& inputs, const char* kind, compute_reduce_options options,
                          const compute_tensor_spec* output = nullptr) {
    options.struct_size = sizeof options;
    return ask([&](int32_t* support, compute_text** reason, int64_t* workspace) {
      return compute_reduce_query(remote().get(), distance.get(), kind, &options, inputs.data(),
                                  static_cast<int64_t>(inputs.size()), &weak, 1, output, support, reason, workspace);
    });
  };
  EXPECT_EQ(reduce({x, x}, "sum", {}).support, COMPUTE_SUPPORT_NATIVE);
  EXPECT_EQ(reduce({x}, "sum", {}).thrown.code, COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(reduce({x, x}, "mean", {}).thrown.code, COMPUTE_ERROR_INVALID_ARGUMENT);
  compute_reduce_options options{};
  options.axes_mask = 4;
  EXPECT_EQ(reduce({x, x}, "sum", options).thrown.code, COMPUTE_ERROR_INVALID_ARGUMENT);
  options.axes_mask = 2;
  const int64_t extent = 4;
  compute_tensor_spec output = matrix(COMPUTE_DTYPE_FLOAT32);
  output.rank = 1;
  output.shape = &extent;
  EXPECT_EQ(reduce({x, x}, "max", options, &output).support, COMPUTE_SUPPORT_NATIVE);
}

TEST(Query, InfosHaveSizesAndFlags) {
  const compute_op* op = nullptr;
  compute::check(compute_op_find("exp", 0, &op));
  compute_op_info info{};
  info.struct_size = sizeof info;
  compute::check(compute_op_get_info(op, &info));
  EXPECT_EQ(std::string(info.name, static_cast<size_t>(info.name_size)), "exp");
  EXPECT_EQ(info.inputs_size, 1);
  EXPECT_EQ(info.inputs[1], 0);
  EXPECT_EQ(info.bound_size, static_cast<int64_t>(std::string(info.bound).size()));
  EXPECT_EQ(info.flags, uint32_t{COMPUTE_OP_IN_PLACE});
  compute::check(compute_op_find("adam", 0, &op));
  compute::check(compute_op_get_info(op, &info));
  EXPECT_EQ(info.flags, uint32_t{COMPUTE_OP_IN_PLACE | COMPUTE_OP_GROUPS});
  compute::check(compute_op_find("svd", 0, &op));
  compute::check(compute_op_get_info(op, &info));
  EXPECT_EQ(info.flags, uint32_t{COMPUTE_OP_HOST});
  int64_t count = 0;
  compute::check(compute_device_list(nullptr, 0, &count));
  std::vector<compute_device_info> devices(static_cast<size_t>(count));
  devices.at(0).struct_size = sizeof(compute_device_info);
  compute::check(compute_device_list(devices.data(), count, &count));
  for (const compute_device_info& device : devices) {
    EXPECT_EQ(std::string(device.name).size(), static_cast<size_t>(device.name_size));
    EXPECT_EQ(std::string(device.description).size(), static_cast<size_t>(device.description_size));
    EXPECT_STREQ(device.unusable, "");
    EXPECT_EQ(device.unusable_size, 0);
  }
}

}  // namespace
}  // namespace runtime
