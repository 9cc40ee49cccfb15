// SPDX-License-Identifier: Apache-2.0
#include "core/runner/observed_op.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <string_view>

#include "core/observation/observed.hpp"
#include "core/observation/text_table.hpp"

namespace compute {
namespace {

int64_t elements_of(std::span<const int64_t> shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

// The product of the extents of the labels that an equation of two operands sums over.
int64_t summed_extents(std::string_view equation, std::span<const OperandDesc> inputs) {
  std::string text;
  for (const char c : equation) {
    if (c != ' ') text += c;
  }
  const size_t arrow = std::min(text.find("->"), text.size());
  const std::string left = text.substr(0, arrow), result = text.substr(std::min(arrow + 2, text.size()));
  const size_t comma = std::min(left.find(','), left.size());
  const auto is_summed = [&](char label) {
    return arrow < text.size() ? result.find(label) == std::string::npos
                               : std::count(left.begin(), left.end(), label) > 1;
  };
  std::map<char, int64_t> summed;
  for (size_t i = 0; i < 2; ++i) {
    const std::string part = i == 0 ? left.substr(0, comma) : left.substr(std::min(comma + 1, left.size()));
    const size_t dots = part.find("...");
    for (size_t at = 0; at < part.size(); ++at) {
      if (part[at] == '.' || !is_summed(part[at])) continue;
      const size_t axis = at < dots ? at : static_cast<size_t>(inputs[i].rank) - (part.size() - at);
      summed[part[at]] = inputs[i].extents()[axis];
    }
  }
  int64_t product = 1;
  for (const auto& [label, extent] : summed) product *= extent;
  return product;
}

// Names live as long as the process, because streams and reports keep them.
const char* immortal_name(std::string name) {
  static std::mutex mutex;
  static auto* const names = new std::set<std::string>;
  const std::lock_guard guard(mutex);
  return names->insert(std::move(name)).first->c_str();
}

std::string names_of_steps(const Plan& plan) {
  std::string text;
  for (const PlannedStep& step : plan.steps) text += fmt::format("{}{}", text.empty() ? "" : " ", step.name);
  return text;
}

// Calls without an op are named by their expression; otherwise all would be called map.
std::string label_of(const Plan& plan, size_t most) {
  if (plan.op != nullptr) return plan.name;
  std::string label = plan.name;
  label += ' ';
  for (const char c : plan.expression.text()) {
    if (c != ' ' && c != '\t' && c != '\n') label += c;
  }
  return shortened(label, most);
}

}  // namespace

int64_t flops_of(const OpCall& call, std::span<const OutputDesc> outputs) {
  if (outputs.empty()) return 0;
  const std::string_view name = call.schema.name;
  const int64_t results = elements_of(outputs[0].shape);
  const auto shape = [&](size_t input) {
    return input < call.inputs.size() ? call.inputs[input].extents() : std::span<const int64_t>();
  };
  const auto last = [&](size_t input) { return shape(input).empty() ? 0 : shape(input).back(); };
  // Of a convolution between `places` elements that have the weights' first axis as channels.
  const auto convolved = [](int64_t places, std::span<const int64_t> weight) {
    return weight.empty() || weight[0] == 0 ? 0 : 2 * places * (elements_of(weight) / weight[0]);
  };
  if (name == "matmul" || name == "affine") return 2 * results * last(0);
  if (name == "gemm") return 2 * results * last(1);
  if (name == "tensordot") {
    int64_t summed = 1;
    for (const int64_t axis : call.attributes.int64_list(0))
      summed *= shape(0)[static_cast<size_t>(axis < 0 ? axis + call.inputs[0].rank : axis)];
    return 2 * results * summed;
  }
  if (name == "einsum" && call.inputs.size() == 2)
    return 2 * results * summed_extents(call.attributes.string(0), call.inputs);
  if (name == "convolution") return convolved(results, shape(1));
  if (name == "convolution_grad_input" || name == "convolution_transpose")
    return convolved(elements_of(shape(0)), shape(1));
  if (name == "convolution_grad_weight") return convolved(elements_of(shape(0)), outputs[0].shape);
  const bool is_gradient = name == "attention_grad";
  if (!is_gradient && name != "attention") return 0;
  const size_t first = is_gradient ? 1 : 0;  // q, k and v
  const std::span<const int64_t> q = shape(first), k = shape(first + 1), v = shape(first + 2);
  if (q.size() != 4 || k.size() != 4 || v.size() != 4) return 0;
  const int64_t scores = q[0] * q[1] * q[2] * k[2];
  return 2 * scores * (is_gradient ? 3 * q[3] + 2 * v[3] : q[3] + v[3]);
}

void tell_of_op(Work& work, const PlannedCall& call) noexcept {
  try {
    const Plan& plan = *call.plan;
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
    for (const Tensor* tensor : call.operands) {
      if (tensor == nullptr || tensor->buffer == nullptr) continue;
      int64_t begin = 0, end = 0;
      tensor->byte_range(&begin, &end);
      add(tensor->dtype, tensor->shape_span(), std::min(tensor->size_bytes(), end - begin));
    }
    for (const OutputDesc& output : plan.outputs)
      add(output.dtype, output.shape, elements_of(output.shape) * dtype_size(output.dtype));
    op.flops = plan.flops;
    if (plan.op == nullptr) work.name = immortal_name(label_of(plan, 120));
    if (observes(kListsOps)) op.steps = names_of_steps(plan);
  } catch (...) {
    work.op.reset();  // as if it were not observed
  }
}

void tell_of_graph(Work& work, const Recording& recording, bool is_native) noexcept {
  try {
    constexpr size_t kNamed = 8;
    const std::vector<Plan*>& plans = recording.plans;
    std::string name = fmt::format("graph of {}:", plans.size());
    for (size_t i = 0; i < std::min(plans.size(), kNamed); ++i) name += " " + label_of(*plans[i], 24);
    if (plans.size() > kNamed) name += " ...";
    OpWork& op = work.op.emplace();
    op.category = "graph";
    op.ops = static_cast<int64_t>(plans.size());
    op.how = is_native ? "native" : "step by step";
    for (const Plan* plan : plans) {
      op.steps += fmt::format("{}{}", op.steps.empty() ? "" : " ", plan->name);
      op.flops += plan->flops;
    }
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
