// SPDX-License-Identifier: Apache-2.0
// Queries how a device would run an op, without tensors, and compares the answers with what then runs.
#include <cstddef>
#include <cstring>

#include "runtime.hpp"

namespace runtime {
namespace {

struct Answer {
  Thrown thrown;
  int32_t support = -1;
  int32_t code = -1;  // COMPUTE_REASON_
  int32_t argument = -1;
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
  auto raw = compute::sized<compute_support>();
  Answer answer;
  answer.thrown = thrown_by([&] { compute::check(query(&raw)); });
  EXPECT_EQ(raw.text == nullptr, answer.thrown.code != COMPUTE_OK);
  compute::detail::Text reason;
  reason.text = raw.text;
  answer.support = raw.support;
  answer.code = raw.reason;
  answer.argument = raw.argument;
  answer.reason = reason.str();
  answer.workspace = raw.workspace_bytes;
  return answer;
}

Answer ask(const char* name, const Specs& inputs, const compute::Device& device = remote(), const Specs& outputs = {}) {
  const compute_op* op = nullptr;
  compute::check(compute_op_find(name, 0, &op));
  return ask([&](compute_support* answer) {
    return compute_op_query(device.get(), op, nullptr, 0, inputs.data(), static_cast<int64_t>(inputs.size()),
                            outputs.data(), static_cast<int64_t>(outputs.size()), answer);
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
    return runtime::ask([&](compute_support* answer) {
      return compute_map_query(remote().get(), get(), inputs.data(), static_cast<int64_t>(inputs.size()),
                               scalars.data(), static_cast<int64_t>(scalars.size()),
                               outputs != nullptr ? outputs->data() : nullptr,
                               outputs != nullptr ? static_cast<int64_t>(outputs->size()) : 0, answer);
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
  EXPECT_EQ(product.code, COMPUTE_REASON_NOT_IMPLEMENTED);
  EXPECT_EQ(product.argument, -1);
  EXPECT_EQ(sum.code, COMPUTE_REASON_NONE);
  // A variance is a row, which both have.
  const Answer variance = ask("var", {matrix(COMPUTE_DTYPE_FLOAT32)});
  EXPECT_EQ(variance.support, COMPUTE_SUPPORT_NATIVE);
  EXPECT_EQ(variance.workspace, 0);
  const Answer on_host = ask("var", {matrix(COMPUTE_DTYPE_FLOAT32)}, host());
  EXPECT_EQ(on_host.support, COMPUTE_SUPPORT_NATIVE) << on_host.reason;
}

// The op writes into a given output as a run does, so the answer includes its strides.
TEST(Query, TakesOutputs) {
  const compute_tensor_spec x = matrix(COMPUTE_DTYPE_FLOAT32);
  const int64_t columns[] = {1, 4}, same[] = {0, 1}, negative[] = {-4, 1}, huge[] = {INT64_MIN, INT64_MAX};
  const auto with = [&](compute_tensor_spec y, const char* op = "exp") { return ask(op, {x}, remote(), {y}); };
  const auto strided = [&](const int64_t* strides) {
    compute_tensor_spec y = x;
    y.strides = strides;
    return y;
  };
  EXPECT_EQ(with(x).support, COMPUTE_SUPPORT_NATIVE);
  EXPECT_EQ(with(strided(columns)).support, COMPUTE_SUPPORT_NATIVE);
  EXPECT_EQ(with(strided(negative)).support, COMPUTE_SUPPORT_NATIVE);
  EXPECT_EQ(with(scalar(COMPUTE_DTYPE_NONE, COMPUTE_SPEC_ABSENT)).support, COMPUTE_SUPPORT_NATIVE);
  const Thrown overlap = with(strided(same)).thrown;
  EXPECT_EQ(overlap.code, COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(overlap.message, "exp: output 0 [4,4] has strides [0,1] that make its elements overlap");
  EXPECT_EQ(with(strided(huge)).thrown.code, COMPUTE_ERROR_INVALID_ARGUMENT) << "no memory is so large";
  EXPECT_EQ(with(matrix(COMPUTE_DTYPE_INT32)).thrown.code, COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(with(x, "sum").thrown.code, COMPUTE_ERROR_INVALID_ARGUMENT) << "the result has rank 0";
  EXPECT_EQ(with(scalar(COMPUTE_DTYPE_FLOAT32, COMPUTE_SPEC_SCALAR)).thrown.message,
            "exp: output 0 cannot be a scalar");
  EXPECT_EQ(ask("exp", {x}, remote(), {x, x}).thrown.code, COMPUTE_ERROR_INVALID_ARGUMENT) << "one output too many";
  // The dtype of a given output takes part, as in a run.
  EXPECT_EQ(ask("add", {matrix(COMPUTE_DTYPE_INT32), matrix(COMPUTE_DTYPE_INT32)}, remote(), {x}).thrown.code,
            thrown_by([&] {
              const compute::Tensor one = remote().empty(COMPUTE_DTYPE_INT32, {4, 4});
              compute::add_into(one, one, remote().empty(COMPUTE_DTYPE_FLOAT32, {4, 4}));
            }).code);
}

// A program of another version has a struct of another size.
TEST(Query, WritesStructsOfOtherSizes) {
  const compute_op* op = nullptr;
  compute::check(compute_op_find("exp", 0, &op));
  const compute_tensor_spec x = matrix(COMPUTE_DTYPE_FLOAT32);
  struct {
    compute_support support;
    int64_t newer[2];
  } larger;
  std::memset(&larger, 0x55, sizeof larger);
  larger.support.struct_size = sizeof larger;
  larger.support.next = nullptr;
  compute::check(compute_op_query(remote().get(), op, nullptr, 0, &x, 1, nullptr, 0, &larger.support));
  EXPECT_EQ(larger.support.struct_type, uint32_t{COMPUTE_STRUCT_SUPPORT});
  EXPECT_EQ(larger.support.support, COMPUTE_SUPPORT_NATIVE);
  EXPECT_EQ(larger.support.reserved, 0);
  EXPECT_EQ(larger.newer[0], 0);
  EXPECT_EQ(larger.newer[1], 0);
  EXPECT_STREQ(compute_text_data(larger.support.text), "");
  compute_text_free(larger.support.text);
  compute_support smaller;
  std::memset(&smaller, 0x55, sizeof smaller);
  smaller.struct_size = offsetof(compute_support, text);
  smaller.next = nullptr;
  compute_text* const before = smaller.text;
  compute::check(compute_op_query(remote().get(), op, nullptr, 0, &x, 1, nullptr, 0, &smaller));
  EXPECT_EQ(smaller.support, COMPUTE_SUPPORT_NATIVE);
  EXPECT_EQ(smaller.text, before) << "beyond the struct";
  auto failed = compute::sized<compute_support>();
  failed.support = failed.reason = failed.argument = 7;
  failed.text = before;
  compute_error_free(compute_op_query(remote().get(), op, nullptr, 0, nullptr, 0, nullptr, 0, &failed));
  EXPECT_EQ(failed.text, nullptr);
  EXPECT_EQ(failed.support, 0);
  EXPECT_EQ(failed.argument, 0);
  failed.struct_size = 8;
  EXPECT_EQ(thrown_by([&] {
              compute::check(compute_op_query(remote().get(), op, nullptr, 0, &x, 1, nullptr, 0, &failed));
            }).code,
            COMPUTE_ERROR_INVALID_ARGUMENT);
}

TEST(Query, SaysWhatThePluginRunsOnTheHost) {
  setenv("COMPUTE_MINIMAL_ON_HOST", "gather", 1);
  const compute::Tensor x = remote().from_host(iota(4)), places = remote().from_host(std::vector<int64_t>{3, 0});
  const compute_tensor_spec index = {
      sizeof(compute_tensor_spec), COMPUTE_STRUCT_TENSOR_SPEC, nullptr, COMPUTE_DTYPE_INT64, 2, kShape, nullptr, 0, 0};
  const Answer answer = ask("take", {matrix(COMPUTE_DTYPE_FLOAT32), index});
  EXPECT_EQ(answer.support, COMPUTE_SUPPORT_HOST);
  EXPECT_EQ(answer.reason, "take on minimal0: the plugin runs gather on the host");
  EXPECT_EQ(answer.code, COMPUTE_REASON_NONE);
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
  const auto reduce = [&](const Specs& inputs, int32_t reduction, compute_reduce_options options,
                          const compute_tensor_spec* output = nullptr) {
    options.struct_size = sizeof options;
    return ask([&](compute_support* answer) {
      return compute_reduce_query(remote().get(), distance.get(), reduction, &options, inputs.data(),
                                  static_cast<int64_t>(inputs.size()), &weak, 1, output, answer);
    });
  };
  EXPECT_EQ(reduce({x, x}, COMPUTE_REDUCTION_SUM, {}).support, COMPUTE_SUPPORT_NATIVE);
  EXPECT_EQ(reduce({x}, COMPUTE_REDUCTION_SUM, {}).thrown.code, COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(reduce({x, x}, COMPUTE_REDUCTION_MEAN, {}).thrown.code, COMPUTE_ERROR_INVALID_ARGUMENT);
  compute_reduce_options options{};
  options.axes_mask = 4;
  EXPECT_EQ(reduce({x, x}, COMPUTE_REDUCTION_SUM, options).thrown.code, COMPUTE_ERROR_INVALID_ARGUMENT);
  options.axes_mask = 2;
  const int64_t extent = 4;
  compute_tensor_spec output = matrix(COMPUTE_DTYPE_FLOAT32);
  output.rank = 1;
  output.shape = &extent;
  EXPECT_EQ(reduce({x, x}, COMPUTE_REDUCTION_MAX, options, &output).support, COMPUTE_SUPPORT_NATIVE);
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
