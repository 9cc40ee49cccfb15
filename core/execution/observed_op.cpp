// SPDX-License-Identifier: Apache-2.0
#include "core/execution/observed_op.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <string_view>

#include "core/observation/observed.hpp"

namespace compute {
namespace {

int64_t elements_of(std::span<const int64_t> shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

// Multiplications and additions of the ops whose work is not in proportion to their memory; 0 for others.
int64_t flops_of(const Execution& execution) {
  if (execution.plan->op == nullptr || execution.plan->outputs.empty()) return 0;
  const std::string_view name = execution.plan->name;
  const int64_t results = elements_of(execution.plan->outputs[0].shape);
  const auto shape = [&](size_t input) {
    return input < execution.operands.size() && execution.operands[input] != nullptr
               ? execution.operands[input]->shape_span()
               : std::span<const int64_t>();
  };
  const std::span<const int64_t> first = shape(0), second = shape(1);
  if (name == "matmul" || name == "affine") return first.empty() ? 0 : 2 * results * first.back();
  if (name == "convolution" && !second.empty() && second[0] > 0) return 2 * results * (elements_of(second) / second[0]);
  if (name == "attention" && first.size() == 4 && second.size() == 4)
    return 2 * elements_of(first) / first[3] * second[2] * (first[3] + execution.plan->outputs[0].shape[3]);
  return 0;
}

// Names live as long as the process, because streams and reports keep them.
const char* immortal_name(std::string name) {
  static std::mutex mutex;
  static auto* const names = new std::set<std::string>;
  const std::lock_guard guard(mutex);
  return names->insert(std::move(name)).first->c_str();
}

std::string names_of_steps(const CallPlan& plan) {
  std::string text;
  for (const PreparedStep& step : plan.steps) text += fmt::format("{}{}", text.empty() ? "" : " ", step.name);
  return text;
}

}  // namespace

void tell_of_op(Work& work, const Execution& execution) noexcept {
  try {
    const CallPlan& plan = *execution.plan;
    OpWork& op = work.op.emplace();
    op.how = plan.steps.size() <= 1 ? "native" : "decomposed";
    int64_t largest = -1;
    const auto add = [&](int32_t dtype, std::span<const int64_t> shape, int64_t bytes) {
      op.bytes += bytes;
      if (op.dtype == COMPUTE_DTYPE_NONE) op.dtype = dtype;
      const int64_t elements = elements_of(shape);
      if (elements <= largest) return;
      largest = elements;
      op.shape.clear();
      op.shape.append(shape.data(), shape.size());
    };
    for (const Tensor* tensor : execution.operands) {
      if (tensor == nullptr || tensor->buffer == nullptr) continue;
      int64_t begin = 0, end = 0;
      tensor->byte_range(&begin, &end);
      add(tensor->dtype, tensor->shape_span(), std::min(tensor->size_bytes(), end - begin));
    }
    for (const OutputDesc& output : plan.outputs)
      add(output.dtype, output.shape, elements_of(output.shape) * dtype_size(output.dtype));
    op.flops = flops_of(execution);
    if (observes(kListsOps)) op.steps = names_of_steps(plan);
  } catch (...) {
    work.op.reset();  // as if nobody observed it
  }
}

void tell_of_graph(Work& work, const Recording& recording, bool is_native) noexcept {
  try {
    constexpr size_t kNamed = 8;
    const std::vector<CallPlan*>& plans = recording.plans;
    std::string name = fmt::format("graph of {}:", plans.size());
    for (size_t i = 0; i < std::min(plans.size(), kNamed); ++i) name += fmt::format(" {}", plans[i]->name);
    if (plans.size() > kNamed) name += " ...";
    OpWork& op = work.op.emplace();
    op.category = "graph";
    op.ops = static_cast<int64_t>(plans.size());
    op.how = is_native ? "native" : "step by step";
    for (const CallPlan* plan : plans) op.steps += fmt::format("{}{}", op.steps.empty() ? "" : " ", plan->name);
    work.name = immortal_name(std::move(name));
  } catch (...) {
    work.op.reset();
  }
}

void tell_of_launch(Work& work, const std::string& kernel) noexcept {
  try {
    work.name = immortal_name(kernel);
    OpWork& op = work.op.emplace();
    op.category = op.how = "kernel";
    op.ops = 0;
  } catch (...) {
    // As above.
  }
}

}  // namespace compute
