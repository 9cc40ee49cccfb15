// SPDX-License-Identifier: Apache-2.0
#include "plan.hpp"

#include <compute_kit/op.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <string>

#include "device.hpp"
#include "ops/ops.hpp"
#include "stream.hpp"
#include "user_kernel.hpp"

namespace vulkan {
namespace {

struct Primitive {
  std::string_view name;
  void (*make)(const Request& request);
};
constexpr Primitive kPrimitives[] = {
    {"map", map},
    {"copy", copy},
    {"reduce", reduce},
    {"row", row},
    {"gather", gather},
    {"scatter", scatter},
    {"sort", sort},
    {"scan", scan},
    {"arg_reduce", arg_reduce},
    {"contraction", contraction},
    {"kernel", kernel_op},
    {"convolution", convolution},
    {"convolution_grad_input", convolution},
    {"convolution_grad_weight", convolution},
};

void run_user_kernel(const UserLaunch& user, Stream& stream, const compute_plugin_run& run) {
  std::vector<compute_plugin_kernel_argument> arguments;
  const auto add = [&](int32_t kind) -> compute_plugin_kernel_argument& {
    compute_plugin_kernel_argument& argument = arguments.emplace_back();
    argument = {};
    argument.struct_size = sizeof argument;
    argument.struct_type = COMPUTE_PLUGIN_STRUCT_KERNEL_ARGUMENT;
    argument.kind = kind;
    return argument;
  };
  for (int32_t i = 0; i < run.tensor_count; ++i) add(COMPUTE_PLUGIN_ARGUMENT_TENSOR).tensor = run.tensors[i];
  for (size_t i = 0; i < user.scalar_bytes.size(); ++i) {
    compute_plugin_kernel_argument& argument = add(COMPUTE_PLUGIN_ARGUMENT_VALUE);
    argument.value = run.scalars[i].bits;
    argument.value_size = user.scalar_bytes[i];
  }
  compute_plugin_launch launch = {};
  launch.struct_size = sizeof launch;
  launch.struct_type = COMPUTE_PLUGIN_STRUCT_LAUNCH;
  std::copy(user.groups.begin(), user.groups.end(), launch.groups);
  std::copy(user.group_size.begin(), user.group_size.end(), launch.group_size);
  launch.arguments = arguments.data();
  launch.argument_count = static_cast<int32_t>(arguments.size());
  launch_user_kernel(*user.kernel, stream, launch);
}

}  // namespace

void kernel_op(const Request& request) {
  const Op& op = request.op;
  const std::string language = op.string("language");
  if (!is_kernel_language(language)) {
    throw Refused{COMPUTE_PLUGIN_REFUSE_ATTRIBUTE, -1, "kernels are written in glsl or spirv, not in " + language};
  }
  if (request.query) return;
  UserLaunch user;
  const std::vector<int64_t> groups = op.integers("groups"), size = op.integers("group_size");
  std::copy_n(groups.begin(), 3, user.groups.begin());
  std::copy_n(size.begin(), 3, user.group_size.begin());
  for (int32_t i = 0; i < op.scalar_count(); ++i) user.scalar_bytes.push_back(bytes_of(op.scalar_dtype(i)));
  const std::string source = op.string("source"), name = op.string("name");
  const std::string key = language + "\n" + name + "\n" + source;
  {
    const std::lock_guard lock(request.device.user_kernels_mutex);
    std::shared_ptr<UserKernel>& kernel = request.device.user_kernels[key];
    if (kernel == nullptr) {
      kernel = compile_user_kernel(request.device, language, source, name);
      ++request.plan.kernels_compiled;
    }
    user.kernel = kernel;
  }
  std::vector<uint32_t> constants;
  for (const int64_t extent : size) constants.push_back(static_cast<uint32_t>(extent));
  user.kernel->pipeline(constants);
  request.plan.user = std::move(user);
}

// Rounded to words, which kernels exchange to change a part of one.
std::pair<int64_t, int64_t> span_of(const Tensor& tensor) {
  if (tensor.is_absent || product(tensor.shape) == 0) return {0, 0};
  int64_t first = 0, last = bytes_of(tensor.dtype);
  for (size_t axis = 0; axis < tensor.shape.size(); ++axis) {
    const int64_t walked = tensor.strides[axis] * (tensor.shape[axis] - 1);
    (walked < 0 ? first : last) += walked;
  }
  return {first - 3, last + 3};
}

std::unique_ptr<Plan> make_plan(Device& device, const compute_plugin_op& given, bool query) {
  if (const auto refusal = compute::common::refuse_unknown(compute::common::Op(&given)))
    throw Refused{refusal->reason, refusal->argument, refusal->text, refusal->hint};
  for (const Primitive& primitive : kPrimitives) {
    if (primitive.name != view(given.name)) continue;
    if (given.version != 1) break;
    require_dtypes(device, given);
    const Op op(given);
    auto plan = std::make_unique<Plan>();
    primitive.make({device, op, *plan, query});
    plan->input_count = static_cast<size_t>(op.input_count());
    for (const Tensor& tensor : op.tensors()) plan->spans.push_back(span_of(tensor));
    return plan;
  }
  throw Refused{COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED, -1, "the plugin does not implement it"};
}

void run_plan(const Plan& plan, Stream& stream, const compute_plugin_run& run) {
  if (plan.user) {
    run_user_kernel(*plan.user, stream, run);
    return;
  }
  Device& device = stream.device;
  const uint64_t workspace = plan.workspace_bytes > 0 ? address_of(run.workspace) : 0;
  uint64_t fault = 0;
  if (plan.reports_faults) fault = run.fault.buffer != 0 ? address_of(run.fault) : stream.own_fault();
  const uint32_t push_bytes = device.physical.features.push_bytes;
  std::vector<Stream::Access>& accesses = stream.accesses;
  accesses.clear();
  for (size_t t = 0; t < plan.spans.size(); ++t) {
    const auto [first, last] = plan.spans[t];
    if (first == last) continue;
    const uint64_t place = address_of(run.tensors[t]);
    accesses.push_back(
        {place + static_cast<uint64_t>(first), place + static_cast<uint64_t>(last), t >= plan.input_count});
  }
  if (workspace != 0) accesses.push_back({workspace, workspace + static_cast<uint64_t>(plan.workspace_bytes), true});
  for (const Launch& launch : plan.launches) {
    const size_t bytes = launch.words.size() * sizeof(int64_t);
    std::array<int64_t, 32> pushed;  // 256 bytes, the most that Features::push_bytes says
    const bool fits = bytes <= push_bytes;
    int64_t* words = pushed.data();
    uint64_t address = 0;
    if (!fits) {
      const auto [place, host] = stream.arguments(static_cast<int64_t>(bytes));
      address = place;
      words = reinterpret_cast<int64_t*>(host);
    }
    std::memcpy(words, launch.words.data(), bytes);
    for (const Binding& binding : launch.bindings) {
      int64_t* word = words + binding.slot;
      switch (binding.kind) {
        case Binding::kTensor:
          *word = static_cast<int64_t>(address_of(run.tensors[binding.value]));
          break;
        case Binding::kWorkspace:
          *word = static_cast<int64_t>(workspace) + binding.value;
          break;
        case Binding::kScalar:
          std::memcpy(word, run.scalars[binding.value].bits, sizeof run.scalars[binding.value].bits);
          break;
        case Binding::kFault:
          *word = static_cast<int64_t>(fault);
          break;
        case Binding::kCounters:
          *word = static_cast<int64_t>(stream.counters());
          accesses.push_back({static_cast<uint64_t>(*word), static_cast<uint64_t>(*word) + 1, true});
          break;
      }
    }
    // Which of several faults is found first depends on the order.
    stream.dispatch(launch.kernel->pipeline, device.layout, fits ? words : static_cast<const void*>(&address),
                    fits ? static_cast<uint32_t>(bytes) : static_cast<uint32_t>(sizeof address), launch.groups.data(),
                    launch.weight, plan.reports_faults ? nullptr : &accesses);
  }
  stream.offer();
}

}  // namespace vulkan
