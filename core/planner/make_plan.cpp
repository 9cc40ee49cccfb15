// SPDX-License-Identifier: Apache-2.0
#include "core/planner/make_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <utility>

#include "core/base/per_thread.hpp"
#include "core/base/sized.hpp"
#include "core/devices/device.hpp"
#include "core/loading/plugin_table.hpp"
#include "core/memory/tensor.hpp"
#include "core/ops/composition.hpp"
#include "core/ops/float8_steps.hpp"
#include "core/ops/lower.hpp"
#include "core/ops/shapes.hpp"
#include "core/ops/temporaries.hpp"
#include "core/process/process_config.hpp"
#include "core/streams/timeline.hpp"

namespace compute {

namespace {

// A step in the form that plugins take. Points into the step.
struct PluginOp {
  compute_plugin_op op{};
  std::vector<compute_plugin_tensor> tensors;
  std::vector<compute_attribute> attributes;
  std::vector<std::vector<compute_string>> strings;
  std::vector<std::vector<int32_t>> dtypes;
  std::vector<const compute_plugin_expression*> expressions;
  std::vector<int32_t> scalar_dtypes;
};

int32_t alignment_of(const StepOperand& operand, const PlanRequest& request) {
  if (operand.is_absent()) return 1;
  const int64_t offset = operand.offset * dtype_size(operand.dtype);
  const int32_t offset_alignment = offset == 0 ? 64 : static_cast<int32_t>(std::min<int64_t>(64, offset & -offset));
  int32_t base = 64;
  const auto index = static_cast<size_t>(operand.index);
  if (operand.kind == ValueKind::kInput)
    base = index < request.input_alignment.size() ? request.input_alignment[index] : 1;
  if (operand.kind == ValueKind::kOutput)
    base = index < request.output_alignment.size() ? request.output_alignment[index] : 1;
  return std::min(base, offset_alignment);
}

// COMPUTE_MATH, unless the step has a precision of its own.
uint32_t math_flags(const Step& step) {
  constexpr auto kBf16 = uint32_t{COMPUTE_PLUGIN_OP_FAST_MATH | COMPUTE_PLUGIN_OP_TF32};
  const compute_dtype dtype = step.inputs.empty() ? COMPUTE_DTYPE_NONE : step.inputs[0].dtype;
  const bool is_float32 = dtype == COMPUTE_DTYPE_FLOAT32 || dtype == COMPUTE_DTYPE_COMPLEX64;
  if (step.precision == Precision::kHighest) return 0;
  if (step.precision == Precision::kTf32 && is_float32) return COMPUTE_PLUGIN_OP_TF32;
  if (step.precision == Precision::kBf16 && is_float32) return kBf16;
  static const uint32_t flags = [] {
    const std::string& math = setting(SettingId::kMath).text;
    return math == "fast" ? kBf16 : math == "tf32" ? uint32_t{COMPUTE_PLUGIN_OP_TF32} : 0;
  }();
  return flags;
}

// COMPUTE_DETERMINISTIC, for every op alike.
bool is_deterministic() {
  static const bool flag = setting(SettingId::kDeterministic).flag;
  return flag;
}

PluginOp to_plugin_op(const Step& step, const PlanRequest& request) {
  PluginOp result;
  const auto add_tensor = [&](const StepOperand& operand) {
    if (operand.shape.size() > COMPUTE_PLUGIN_MAX_RANK) {
      throw Error(COMPUTE_ERROR_UNSUPPORTED, fmt::format("{}: {} dimensions are needed; the limit is {}", request.name,
                                                         operand.shape.size(), COMPUTE_PLUGIN_MAX_RANK));
    }
    compute_plugin_tensor tensor{};
    tensor.struct_size = sizeof tensor;
    tensor.struct_type = COMPUTE_PLUGIN_STRUCT_TENSOR;
    tensor.dtype = operand.dtype;
    tensor.rank = operand.is_absent() ? -1 : static_cast<int32_t>(operand.shape.size());
    tensor.shape = operand.is_absent() ? nullptr : operand.shape.data();
    tensor.strides = operand.is_absent() ? nullptr : operand.strides.data();
    tensor.access = operand.access;
    tensor.alignment = alignment_of(operand, request);
    tensor.layout = COMPUTE_PLUGIN_LAYOUT_STRIDED;
    result.tensors.push_back(tensor);
  };
  for (const StepOperand& operand : step.inputs) add_tensor(operand);
  for (const StepOperand& operand : step.outputs) add_tensor(operand);
  result.strings.reserve(step.attributes.size());
  result.dtypes.reserve(step.attributes.size());
  for (const StepAttribute& attribute : step.attributes) {
    compute_attribute value{};
    value.struct_size = sizeof value;
    value.struct_type = COMPUTE_STRUCT_ATTRIBUTE;
    value.name = attribute.name;
    value.name_size = static_cast<int64_t>(std::strlen(attribute.name));
    value.kind = attribute.kind;
    switch (attribute.kind) {
      case COMPUTE_KIND_INT64:
      case COMPUTE_KIND_HANDLE:
        value.values = attribute.integers.data();
        value.count = static_cast<int64_t>(attribute.integers.size());
        break;
      case COMPUTE_KIND_FLOAT64:
        value.values = attribute.reals.data();
        value.count = static_cast<int64_t>(attribute.reals.size());
        break;
      case COMPUTE_KIND_DTYPE:
        result.dtypes.emplace_back(attribute.integers.begin(), attribute.integers.end());
        value.values = result.dtypes.back().data();
        value.count = static_cast<int64_t>(result.dtypes.back().size());
        break;
      default:
        result.strings.emplace_back();
        for (const std::string& text : attribute.texts) {
          result.strings.back().push_back({text.data(), static_cast<int64_t>(text.size())});
        }
        value.values = result.strings.back().data();
        value.count = static_cast<int64_t>(result.strings.back().size());
    }
    result.attributes.push_back(value);
  }
  for (const TypedExpression& expression : step.expressions) result.expressions.push_back(&expression.plugin_view());
  for (const StepScalar& scalar : step.scalars) result.scalar_dtypes.push_back(stored_as(scalar.dtype));
  compute_plugin_op& op = result.op;
  op.struct_size = sizeof op;
  op.struct_type = COMPUTE_PLUGIN_STRUCT_OP;
  op.name = {step.name, static_cast<int64_t>(std::strlen(step.name))};
  op.version = step.version;
  op.flags = math_flags(step) | (step.deterministic || (is_deterministic() && !step.has_no_order)
                                     ? uint32_t{COMPUTE_PLUGIN_OP_DETERMINISTIC}
                                     : 0);
  op.input_count = static_cast<int32_t>(step.inputs.size());
  op.output_count = static_cast<int32_t>(step.outputs.size());
  op.tensors = result.tensors.data();
  op.attributes = result.attributes.data();
  op.attribute_count = static_cast<int32_t>(result.attributes.size());
  op.expressions = result.expressions.data();
  op.expression_count = static_cast<int32_t>(result.expressions.size());
  op.scalar_dtypes = result.scalar_dtypes.data();
  op.scalar_count = static_cast<int32_t>(result.scalar_dtypes.size());
  return result;
}

// Whether a step copies without a conversion, which every plugin must do for all layouts.
bool is_plain_copy(const Step& step) {
  return std::string_view(step.name) == "copy" && step.inputs[0].dtype == step.outputs[0].dtype;
}

// A new row-major temporary for the elements of an operand.
StepOperand packed_temporary(Lowering& lowering, const StepOperand& operand) {
  Temporary temporary;
  temporary.dtype = operand.dtype;
  temporary.size_bytes = dtype_size(operand.dtype);
  for (const int64_t extent : operand.shape) temporary.size_bytes *= extent;
  StepOperand packed = operand;
  packed.kind = ValueKind::kTemporary;
  packed.index = static_cast<int32_t>(lowering.temporaries.size());
  packed.strides = row_major_strides(operand.shape);
  packed.offset = 0;
  lowering.temporaries.push_back(temporary);
  return packed;
}

void insert_copy(Lowering& lowering, size_t index, int32_t call, const StepOperand& from, const StepOperand& to) {
  Step copy;
  copy.name = "copy";
  copy.call = call;
  copy.inputs.push_back(from);
  copy.inputs.back().access = COMPUTE_PLUGIN_TENSOR_INPUT;
  copy.outputs.push_back(to);
  copy.outputs.back().access = COMPUTE_PLUGIN_TENSOR_OUTPUT;
  lowering.steps.insert(lowering.steps.begin() + static_cast<std::ptrdiff_t>(index), std::move(copy));
}

// Lets step `index` read a row-major copy of an input. False if the input is one already.
bool pack_input(Lowering& lowering, size_t index, StepOperand& operand) {
  if (operand.is_absent()) return false;
  // What an earlier step made may still be broadcast, but is not packed twice.
  const bool is_temporary = operand.kind == ValueKind::kTemporary;
  if (is_temporary && operand.strides == row_major_strides(operand.shape)) return false;
  const StepOperand given = operand;
  operand = packed_temporary(lowering, given);
  operand.access = COMPUTE_PLUGIN_TENSOR_INPUT;
  insert_copy(lowering, index, lowering.steps[index].call, given, operand);
  return true;
}

// Lets step `index` write a temporary, which is then copied to where the elements are not aligned to their size. False
// if they are: another lowering may do better without a copy.
bool unpack_output(const PlanRequest& request, Lowering& lowering, size_t index, StepOperand& operand) {
  if (operand.is_absent() || alignment_of(operand, request) >= dtype_size(operand.dtype)) return false;
  const StepOperand given = operand;
  const StepOperand packed = operand = packed_temporary(lowering, given);
  const int32_t call = lowering.steps[index].call;
  insert_copy(lowering, index + 1, call, packed, given);
  if ((given.access & COMPUTE_PLUGIN_TENSOR_INPUT) != 0) insert_copy(lowering, index, call, given, packed);
  return true;
}

// Puts copies around step `index`, so that the plugin need not take the layout of an operand.
bool adapt_layout(const PlanRequest& request, Lowering& lowering, size_t index, int32_t argument) {
  Step& step = lowering.steps[index];
  const auto inputs = static_cast<int32_t>(step.inputs.size());
  if (is_plain_copy(step) || argument < 0 || argument >= inputs + static_cast<int32_t>(step.outputs.size()))
    return false;
  const bool is_input = argument < inputs;
  StepOperand& operand =
      is_input ? step.inputs[static_cast<size_t>(argument)] : step.outputs[static_cast<size_t>(argument - inputs)];
  // The kernel may have the strides as arguments.
  if (std::string_view(step.name) == "kernel" && operand.strides != row_major_strides(operand.shape)) return false;
  const bool adapted =
      is_input ? pack_input(lowering, index, operand) : unpack_output(request, lowering, index, operand);
  if (adapted) layout_temporaries(lowering);
  return adapted;
}

// Changes step `index` so that the reason of its refusal is gone. False if that cannot be done.
bool adapt(const PlanRequest& request, Lowering& lowering, size_t index, const PluginRefusal& refusal) {
  if (refusal.reason == COMPUTE_PLUGIN_REFUSE_LAYOUT) return adapt_layout(request, lowering, index, refusal.argument);
  if (refusal.reason != COMPUTE_PLUGIN_REFUSE_INTRINSIC) return false;
  bool replaced = false;
  for (TypedExpression& expression : lowering.steps[index].expressions) {
    if (auto other = replace_intrinsic(expression, refusal.argument)) {
      replaced = replaced || other->digest() != expression.digest();
      expression = *std::move(other);
    }
  }
  return replaced;
}

// The refusal of a step in which a dtype occurs that the device was opened without.
std::optional<PluginRefusal> refuse_hidden(const compute_device& device, const Step& step) {
  if (device.options.hidden_dtypes == 0) return std::nullopt;
  const auto refusal = [&](compute_dtype dtype, int32_t argument) {
    PluginRefusal result;
    result.reason = COMPUTE_PLUGIN_REFUSE_DTYPE;
    result.argument = argument;
    result.text = fmt::format("{}: the device was opened without {}", step.name, dtype_name(dtype));
    return result;
  };
  int32_t argument = 0;
  for (const auto* operands : {&step.inputs, &step.outputs}) {
    for (const StepOperand& operand : *operands) {
      if (device.hides(operand.dtype)) return refusal(operand.dtype, argument);
      ++argument;
    }
  }
  for (const TypedExpression& expression : step.expressions) {
    const compute_plugin_expression& view = expression.plugin_view();
    for (int32_t i = 0; i < view.node_count; ++i) {
      if (device.hides(view.nodes[i].dtype)) return refusal(view.nodes[i].dtype, -1);
    }
  }
  return std::nullopt;
}

// The refusal of a step as one of the call: `argument` is the position of the call's operand, or -1.
PluginRefusal of_call(const PlanRequest& request, const Step& step, PluginRefusal refusal) {
  const int32_t argument = std::exchange(refusal.argument, -1);
  if (refusal.reason == COMPUTE_PLUGIN_REFUSE_INTRINSIC || argument < 0) return refusal;
  const auto index = static_cast<size_t>(argument);
  if (index >= step.inputs.size() + step.outputs.size()) return refusal;
  const bool is_input = index < step.inputs.size();
  const StepOperand& operand = is_input ? step.inputs[index] : step.outputs[index - step.inputs.size()];
  const size_t inputs = request.call != nullptr ? request.call->inputs.size() : request.map->operands.size();
  if (operand.kind == ValueKind::kInput) refusal.argument = operand.index;
  if (operand.kind == ValueKind::kOutput) refusal.argument = static_cast<int32_t>(inputs) + operand.index;
  return refusal;
}

// The refusal of a lowering whose steps compute with float8, or of float8 on a device that was opened without it.
std::optional<PluginRefusal> refuse_float8(const PlanRequest& request, Lowering& lowering) {
  if (request.device.hides(COMPUTE_DTYPE_FLOAT8_E4M3FN) || request.device.hides(COMPUTE_DTYPE_FLOAT8_E5M2)) {
    for (const Step& step : lowering.steps)
      if (auto refusal = refuse_hidden(request.device, step)) return of_call(request, step, *refusal);
  }
  const std::optional<size_t> step = store_float8(lowering);
  if (!step) return std::nullopt;
  lowering.refused_call = lowering.steps[*step].call;
  PluginRefusal refusal;
  refusal.reason = COMPUTE_PLUGIN_REFUSE_DTYPE;
  refusal.text = fmt::format("{} does not compute with float8; cast it to float32", lowering.steps[*step].name);
  return refusal;
}

// Passes the steps of a lowering to `take(step)` in order, and again after adapting a refused step to the refusal.
// Empty if all were taken, else the refusal that nothing helps against.
template <class F>
std::optional<PluginRefusal> offer(const PlanRequest& request, Lowering& lowering, F&& take) {
  for (Step& step : lowering.steps)
    for (TypedExpression& expression : step.expressions) expression = with_composed_replaced(std::move(expression));
  if (auto refusal = refuse_float8(request, lowering)) return refusal;
  for (size_t i = 0; i < lowering.steps.size();) {
    std::optional<PluginRefusal> refusal = take(lowering.steps[i]);
    if (!refusal) {
      ++i;
    } else if (!adapt(request, lowering, i, *refusal)) {
      lowering.refused_call = lowering.steps[i].call;
      return of_call(request, lowering.steps[i], *refusal);
    }
  }
  return std::nullopt;
}

// The ways to run a composition: of each of its calls the best one that is not refused.
template <class F>
std::optional<PluginRefusal> choose_composition(const OpCall& call, const LoweringTarget& target, F&& take) {
  std::vector<int32_t> alternatives(composed_call_count(call.schema));
  std::optional<PluginRefusal> refusal;
  for (;;) {
    std::optional<Lowering> lowering = lower_composition(call, target, alternatives);
    if (!lowering) return refusal;
    refusal = take(*lowering);
    if (!refusal) return std::nullopt;
    ++alternatives[static_cast<size_t>(lowering->refused_call)];
  }
}

// Gives `take(lowering)` the ways to run the call, best first, until one is not refused. The last refusal otherwise.
template <class F>
std::optional<PluginRefusal> choose_lowering(const PlanRequest& request, F&& take) {
  LoweringTarget target;
  target.outputs = request.output_layouts;
  target.in_place = request.in_place;
  target.deterministic = is_deterministic();
  const int32_t kind = request.device.entry.info.kind;
  target.is_gpu = kind == COMPUTE_DEVICE_KIND_DISCRETE_GPU || kind == COMPUTE_DEVICE_KIND_INTEGRATED_GPU;
  target.has_float64 = request.device.supports(COMPUTE_DTYPE_FLOAT64, COMPUTE_DTYPE_LEVEL_ARITHMETIC);
  if (request.map != nullptr) {
    Lowering lowering = lower(*request.map, request.inference, target);
    return take(lowering);
  }
  std::optional<PluginRefusal> refusal;
  for (int32_t alternative = 0;; ++alternative) {
    std::optional<Lowering> lowering = lower(*request.call, request.inference, target, alternative);
    if (!lowering) return refusal;
    if (!lowering->is_composite && !lowering->is_kernel && request.call->schema.composition)
      return choose_composition(*request.call, target, take);
    refusal = take(*lowering);
    if (!refusal) return std::nullopt;
  }
}

std::string refused_text(const PlanRequest& request, const std::string& reason) {
  return fmt::format("{} on {}: {}", request.name, request.device.name, reason.empty() ? "not supported" : reason);
}

// A rough cost in bytes moved. A step without an expression may be a matrix product, whose number of multiplications is
// the square root of the product of the three sizes.
int64_t work_of(const Step& step) {
  double bytes = 0;
  const auto size_of = [](const StepOperand& operand) {
    double size = 1;
    for (const int64_t extent : operand.shape) size *= static_cast<double>(extent);
    return size;
  };
  for (const auto* operands : {&step.inputs, &step.outputs}) {
    for (const StepOperand& operand : *operands) {
      if (!operand.is_absent()) bytes += size_of(operand) * static_cast<double>(dtype_size(operand.dtype));
    }
  }
  if (step.expressions.empty() && step.inputs.size() >= 2 && !step.outputs.empty()) {
    constexpr double kPerByte = 16;
    const double product = size_of(step.inputs[0]) * size_of(step.inputs[1]) * size_of(step.outputs[0]);
    bytes = std::max(bytes, std::sqrt(product) / kPerByte);
  }
  return static_cast<int64_t>(std::min(bytes, 1e15));
}

// Whether two steps differ only in where their operands and scalars are.
bool are_alike(const PlanRequest& request, const Step& a, const Step& b) {
  const auto same_operand = [&](const StepOperand& x, const StepOperand& y) {
    return x.is_absent() == y.is_absent() && x.dtype == y.dtype && x.access == y.access && x.shape == y.shape &&
           x.strides == y.strides && alignment_of(x, request) == alignment_of(y, request);
  };
  const auto same_attribute = [](const StepAttribute& x, const StepAttribute& y) {
    return std::strcmp(x.name, y.name) == 0 && x.kind == y.kind && x.integers == y.integers && x.reals == y.reals &&
           x.texts == y.texts;
  };
  return std::strcmp(a.name, b.name) == 0 && a.version == b.version && a.deterministic == b.deterministic &&
         a.has_no_order == b.has_no_order && a.precision == b.precision &&
         std::ranges::equal(a.inputs, b.inputs, same_operand) &&
         std::ranges::equal(a.outputs, b.outputs, same_operand) &&
         std::ranges::equal(a.attributes, b.attributes, same_attribute) &&
         std::ranges::equal(a.expressions, b.expressions, {}, &TypedExpression::digest, &TypedExpression::digest) &&
         std::ranges::equal(a.scalars, b.scalars, {}, &StepScalar::dtype, &StepScalar::dtype);
}

// Of recurrent layers the steps of one time have the plans of the time before.
const PlannedStep* find_alike(const PlanRequest& request, const Lowering& lowering, const Step& step,
                              const Plan& plan) {
  constexpr size_t kMostSteps = 4;  // of one time
  const auto index = static_cast<size_t>(&step - lowering.steps.data());
  if (index != plan.steps.size()) return nullptr;
  for (size_t back = 1; back <= std::min(kMostSteps, index); ++back)
    if (are_alike(request, lowering.steps[index - back], step)) return &plan.steps[index - back];
  return nullptr;
}

// Prepares one step of the lowering as the next of the plan, unless it is refused.
std::optional<PluginRefusal> prepare_step(const PlanRequest& request, const Lowering& lowering, const Step& step,
                                          Plan& plan) {
  compute_device& device = request.device;
  PlannedStep prepared;
  prepared.name = step.name;
  const auto add_operand = [&](const StepOperand& operand) {
    const int64_t offset = operand.is_absent() ? 0 : operand.offset * dtype_size(operand.dtype);
    prepared.operands.push_back({operand.kind, operand.index, offset});
  };
  for (const StepOperand& operand : step.inputs) add_operand(operand);
  for (const StepOperand& operand : step.outputs) add_operand(operand);
  prepared.scalars = step.scalars;
  if (plan.steps.size() == plan.steps.capacity())  // nothing fails once there is a plan
    plan.steps.reserve(2 * plan.steps.size() + 1);
  if (const PlannedStep* earlier = find_alike(request, lowering, step, plan)) {
    prepared.plan = earlier->plan;
    prepared.shares_plan = true;
    prepared.workspace_bytes = earlier->workspace_bytes;
    prepared.needs = earlier->needs;
    prepared.reports_faults = earlier->reports_faults;
    prepared.runs_on_host = earlier->runs_on_host;
    plan.work_bytes += work_of(step);
    plan.steps.push_back(std::move(prepared));
    return std::nullopt;
  }
  const PluginOp op = to_plugin_op(step, request);
  compute_plugin_plan_info info{};
  std::optional<PluginRefusal> refusal = refuse_hidden(device, step);
  if (refusal) return refusal;
  device.check(device.table.op_prepare(op.op, &prepared.plan, &info, &refusal));
  if (refusal) return refusal;
  prepared.reports_faults = info.reports_faults != 0;
  prepared.workspace_bytes = info.workspace_bytes;
  prepared.needs = {info.argument_bytes};
  prepared.runs_on_host = (info.flags & COMPUTE_PLUGIN_PLAN_HOST) != 0;
  plan.checks_faults = plan.checks_faults || prepared.reports_faults;
  plan.work_bytes += work_of(step);
  plan.capturable = plan.capturable && (info.flags & COMPUTE_PLUGIN_PLAN_NOT_CAPTURABLE) == 0;
  device.counters.plans_prepared.fetch_add(1, std::memory_order_relaxed);
  device.counters.kernels_compiled.fetch_add(info.kernels_compiled, std::memory_order_relaxed);
  plan.steps.push_back(std::move(prepared));
  return std::nullopt;
}

}  // namespace

void make_plan(const PlanRequest& request, Plan& plan) {
  if (request.device.plugin == nullptr)
    throw Error(COMPUTE_ERROR_UNSUPPORTED, refused_text(request, request.device.no_ops_reason));
  const std::optional<PluginRefusal> refusal = choose_lowering(request, [&](Lowering& lowering) {
    plan.drop_steps();
    std::optional<PluginRefusal> refused =
        offer(request, lowering, [&](const Step& step) { return prepare_step(request, lowering, step, plan); });
    if (refused) return refused;
    plan.indices = lowering.indices;
    for (const Temporary& temporary : lowering.temporaries) plan.temporary_offsets.push_back(temporary.offset_bytes);
    int64_t workspace = 0;
    plan.needs = {};
    plan.runs_on_host = false;
    for (PlannedStep& step : plan.steps) {
      workspace = std::max(workspace, step.workspace_bytes);
      step.place = plan.needs.add(step.needs);
      plan.runs_on_host = plan.runs_on_host || step.runs_on_host;
    }
    plan.workspace_offset = (lowering.temporary_bytes + 255) / 256 * 256;
    plan.block_bytes = workspace > 0 ? plan.workspace_offset + workspace : lowering.temporary_bytes;
    return refused;
  });
  if (refusal) {
    throw Error(COMPUTE_ERROR_UNSUPPORTED, refused_text(request, refusal->text)).with_argument(refusal->argument);
  }
}

PlanSupport query_plan(const PlanRequest& request) {
  compute_device& device = request.device;
  PlanSupport result;
  const auto report = [&](int32_t support, PluginRefusal refusal) {
    if (refusal.reason == COMPUTE_REASON_NONE) refusal.reason = COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED;
    refusal.text = refused_text(request, refusal.text);
    result.support = support;
    result.refusal = std::move(refusal);
    return result;
  };
  if (device.plugin == nullptr) {
    return report(COMPUTE_SUPPORT_NONE, {COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED, -1, device.no_ops_reason});
  }
  result.support = COMPUTE_SUPPORT_NATIVE;
  std::string host_step;  // the first one that the plugin runs on the host
  // The first refusals: of the op by name, and of a primitive. The second, if any, names the missing
  // feature.
  std::optional<PluginRefusal> of_op, of_primitive;
  const std::optional<PluginRefusal> refusal = choose_lowering(request, [&](Lowering& lowering) {
    int64_t workspace_bytes = 0;
    bool refused_optional = false;
    host_step.clear();
    std::optional<PluginRefusal> refused = offer(request, lowering, [&](const Step& step) {
      compute_plugin_query_info info{};
      std::optional<PluginRefusal> of_step = refuse_hidden(device, step);
      if (!of_step) device.check(device.table.op_query(to_plugin_op(step, request).op, &info, &of_step));
      if (!of_step && host_step.empty() && (info.flags & COMPUTE_PLUGIN_QUERY_HOST) != 0) host_step = step.name;
      std::optional<PluginRefusal>& first = lowering.is_composite || lowering.is_kernel ? of_op : of_primitive;
      refused_optional = of_step && step.is_optional;
      if (of_step && !first && !refused_optional) first = of_call(request, step, *of_step);
      workspace_bytes =
          info.workspace_bytes < 0 || workspace_bytes < 0 ? -1 : std::max(workspace_bytes, info.workspace_bytes);
      return of_step;
    });
    // Native is one step, of the op itself or of the primitive that core makes of it first; or several that store no
    // tensor for one another.
    const bool stores_nothing = std::ranges::all_of(lowering.temporaries, [](const Temporary& temporary) {
      return temporary.size_bytes <= dtype_size(temporary.dtype);
    });
    const bool is_native = refused ? lowering.is_composite || lowering.is_kernel || refused_optional
                                   : lowering.is_kernel || lowering.steps.size() <= 1 || stores_nothing;
    if (!is_native) result.support = COMPUTE_SUPPORT_DECOMPOSED;
    if (!refused) result.workspace_bytes = workspace_bytes < 0 ? -1 : lowering.temporary_bytes + workspace_bytes;
    return refused;
  });
  if (refusal) return report(COMPUTE_SUPPORT_NONE, *refusal);
  if (!host_step.empty()) {
    result.support = COMPUTE_SUPPORT_HOST;
    result.refusal.text = refused_text(request, fmt::format("the plugin runs {} on the host", host_step));
    return result;
  }
  const std::optional<PluginRefusal>& first = of_primitive ? of_primitive : of_op;
  if (result.support == COMPUTE_SUPPORT_DECOMPOSED && first) return report(COMPUTE_SUPPORT_DECOMPOSED, *first);
  return result;
}

}  // namespace compute
