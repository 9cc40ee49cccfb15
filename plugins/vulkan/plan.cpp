// SPDX-License-Identifier: Apache-2.0
#include "plan.hpp"

#include <array>
#include <cstring>

#include "device.hpp"
#include "ops/ops.hpp"
#include "stream.hpp"

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
    {"contraction", contraction},
    {"convolution", convolution},
    {"convolution_grad_input", convolution},
    {"convolution_grad_weight", convolution},
};

}  // namespace

std::unique_ptr<Plan> make_plan(Device& device, const compute_plugin_op& given, bool query) {
  for (const Primitive& primitive : kPrimitives) {
    if (primitive.name != view(given.name)) continue;
    if (given.version != 1) break;
    require_dtypes(device, given);
    const Op op(given);
    auto plan = std::make_unique<Plan>();
    primitive.make({device, op, *plan, query});
    return plan;
  }
  throw Refused{COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED, -1, "the plugin does not implement it"};
}

void run_plan(const Plan& plan, Stream& stream, const compute_plugin_run& run) {
  Device& device = stream.device;
  const uint64_t workspace = plan.workspace_bytes > 0 ? device.address(run.workspace) : 0;
  uint64_t fault = 0;
  if (plan.reports_faults) fault = run.fault.buffer != 0 ? device.address(run.fault) : stream.own_fault();
  const uint32_t push_bytes = device.physical.features.push_bytes;
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
          *word = static_cast<int64_t>(device.address(run.tensors[binding.value]));
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
      }
    }
    if (fits) stream.dispatch(launch.kernel->pipeline, device.layout, words, static_cast<uint32_t>(bytes), launch.groups.data());
    else stream.dispatch(launch.kernel->pipeline, device.layout, &address, sizeof address, launch.groups.data());
  }
}

}  // namespace vulkan
