// SPDX-License-Identifier: Apache-2.0
// scatter: a copy of x, then the scatter primitive into the part of it that the indices span, or both as one step. Sums
// and products of float16 and bfloat16 use a float32 copy of that part, which is converted back once.
#include <algorithm>

#include "core/ops/rules.hpp"
#include "core/ops/steps.hpp"
#include "core/text/nearest_name.hpp"
#include "core/text/printable.hpp"

namespace compute {

namespace {

std::string_view checked_reduction(const OpCall& call) {
  const std::string_view reduction = call.attributes.string(attribute_index(call, "reduction"));
  const std::vector<std::string> known{"set", "add", "mul", "min", "max"};
  if (std::find(known.begin(), known.end(), reduction) == known.end()) {
    refuse_attribute(call, "reduction",
                     "reduction is " + in_quotes(reduction) + ", not one of set, add, mul, min, max" +
                         did_you_mean(reduction, known));
  }
  const compute_dtype dtype = call.inputs[0].dtype;
  const bool ordered = reduction == "min" || reduction == "max";
  if (((is_bool(dtype) || is_float8(dtype)) && reduction != "set") || (is_complex(dtype) && ordered)) {
    refuse(call, "reduction " + in_quotes(reduction) + " does not support " + dtype_name(dtype), 0);
  }
  return reduction;
}

std::vector<OutputDesc> infer_scatter(const OpCall& call) {
  const OperandDesc &x = call.inputs[0], &indices = call.inputs[1], &updates = call.inputs[2];
  checked_reduction(call);
  flag_attribute(call, "deterministic");
  if (!is_integer(indices.dtype)) {
    refuse(call,
           "indices is " + dtype_name(indices.dtype) + "; expected an integer dtype; cast it (cast(indices, int64))",
           1);
  }
  const PromotionOperand both[] = {{x.dtype, false, "x"},
                                   {updates.dtype, updates.is_scalar && updates.weak, "updates"}};
  PromotionFault fault;
  if (common_dtype(both, &fault, kinds_mix()) != x.dtype) {
    refuse(call,
           "updates is " + dtype_name(updates.dtype) + ", but x is " + dtype_name(x.dtype) +
               "; cast updates (cast(updates, " + dtype_name(x.dtype) + "))",
           2);
  }
  const int32_t axis = axis_attribute(call, call.inputs[0].rank);
  if (indices.rank != x.rank) {
    refuse(call,
           "indices of shape " + shape_text(indices.extents()) + " and x of shape " + shape_text(x.extents()) +
               " differ in rank",
           1);
  }
  const auto a = indices.extents(), b = updates.extents();
  if (!updates.is_scalar && !std::equal(a.begin(), a.end(), b.begin(), b.end())) {
    refuse(call, "indices have shape " + shape_text(a) + ", but updates have shape " + shape_text(b), 2);
  }
  for (int32_t i = 0; i < x.rank; ++i) {
    const bool fits = i == axis ? x.shape[i] > 0 || !has_elements(a) : indices.shape[i] <= x.shape[i];
    if (!fits) {
      refuse(call,
             "indices have shape " + shape_text(a) + ", which exceeds x of shape " + shape_text(x.extents()) +
                 " along axis " + std::to_string(i),
             1);
    }
  }
  const auto shape = x.extents();
  return {{x.dtype, {shape.begin(), shape.end()}}};
}

std::optional<Lowering> lower_scatter(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  Steps steps(call, target);
  StepOperand output = steps.output();
  if (!has_elements(call.inputs[1].extents())) {
    if (alternative > 0) return std::nullopt;
    if (!target.in_place) steps.copy(steps.input(0), output);
    return steps.take();
  }
  const int32_t axis = axis_attribute(call, call.inputs[0].rank);
  const std::string_view reduction = checked_reduction(call);
  const Duplicates duplicates = duplicates_of(flag_attribute(call, "deterministic"));
  const compute_dtype accumulator = reduction == "add" || reduction == "mul" ? computed_in(output.dtype) : output.dtype;
  const StepOperand indices = steps.as_indices(steps.input(1));
  steps.indices_are({1, axis, indices.shape, indices.shape});
  const StepOperand updates = broadcast_to(
      steps.as_dtype(steps.as_dtype(steps.input(2, output.dtype), output.dtype), accumulator), indices.shape);
  StepOperand source = steps.input(0), destination = output;
  for (int32_t i = 0; i < call.inputs[0].rank; ++i) {
    if (i == axis) continue;
    source = narrowed(std::move(source), i, 0, indices.shape[static_cast<size_t>(i)]);
    destination = narrowed(std::move(destination), i, 0, indices.shape[static_cast<size_t>(i)]);
  }
  // On a CPU the copied elements are still in the cache when updates are combined. On GPUs the order of updates needs
  // separate steps.
  const bool can_be_one =
      !target.in_place && !target.is_gpu && accumulator == output.dtype && destination.shape == output.shape;
  if (alternative > (can_be_one ? 1 : 0)) return std::nullopt;
  if (can_be_one && alternative == 0) {
    steps.scatter_into_copy(std::move(source), indices, updates, std::move(destination), axis, reduction, duplicates);
    return steps.take();
  }
  if (accumulator == output.dtype) {
    if (!target.in_place) steps.copy(steps.input(0), output);
    steps.scatter(indices, updates, std::move(destination), axis, reduction, duplicates);
    return steps.take();
  }
  // Memory of the result's dtype would round at each step.
  if (!target.in_place && destination.shape != output.shape) steps.copy(steps.input(0), output);
  const StepOperand sums = steps.temporary(accumulator, source.shape);
  steps.copy(std::move(source), sums);
  steps.scatter(indices, updates, sums, axis, reduction, duplicates);
  steps.copy(sums, std::move(destination));
  return steps.take();
}

}  // namespace

const OpRules scatter_1_rules{infer_scatter, lower_scatter};

}  // namespace compute
