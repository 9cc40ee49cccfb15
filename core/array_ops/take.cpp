// SPDX-License-Identifier: Apache-2.0
// take and take_along_axis: the gather primitive over repeated views.
#include "core/ops/rules.hpp"
#include "core/ops/steps.hpp"

namespace compute {

namespace {

void check_indices(const OpCall& call) {
  const compute_dtype dtype = call.inputs[1].dtype;
  if (!is_integer(dtype)) {
    refuse(call, "indices is " + dtype_name(dtype) + "; expected an integer dtype; cast it (cast(indices, int64))", 1);
  }
}

// An axis without elements has nothing that an index could name.
void refuse_empty_axis(const OpCall& call, int32_t axis, std::span<const int64_t> shape) {
  if (call.inputs[0].shape[axis] == 0 && has_elements(shape)) {
    refuse(
        call,
        "axis " + std::to_string(axis) + " of x of shape " + shape_text(call.inputs[0].extents()) + " has no elements",
        0);
  }
}

std::vector<OutputDesc> infer_take(const OpCall& call) {
  check_indices(call);
  const int32_t axis = axis_attribute(call, call.inputs[0].rank);
  const std::span<const int64_t> x = call.inputs[0].extents(), indices = call.inputs[1].extents();
  std::vector<int64_t> shape(x.begin(), x.begin() + axis);
  shape.insert(shape.end(), indices.begin(), indices.end());
  shape.insert(shape.end(), x.begin() + axis + 1, x.end());
  refuse_empty_axis(call, axis, shape);
  return {{call.inputs[0].dtype, std::move(shape)}};
}

// The index space is the output's shape. x repeats along all axes of the indices but the last, which replaces
// `axis`.
std::optional<Lowering> lower_take(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 0) return std::nullopt;
  Steps steps(call, target);
  const int32_t axis = axis_attribute(call, call.inputs[0].rank);
  StepOperand x = steps.input(0), output = steps.output();
  StepOperand indices = steps.as_indices(steps.input(1));
  if (indices.shape.empty()) {
    indices = with_axis(std::move(indices), 0);
    output = with_axis(std::move(output), axis);
  }
  const auto rank = static_cast<int32_t>(indices.shape.size());
  for (int32_t i = 0; i + 1 < rank; ++i) x = with_axis(std::move(x), axis + i, indices.shape[static_cast<size_t>(i)]);
  const auto last = static_cast<int32_t>(output.shape.size());
  for (int32_t i = axis + rank; i < last; ++i) indices = with_axis(std::move(indices), i - axis);
  indices = broadcast_to(indices, output.shape);
  const std::span<const int64_t> given = call.inputs[1].extents();
  steps.indices_are({1, axis, output.shape, {given.begin(), given.end()}, axis});
  steps.gather(std::move(x), std::move(indices), std::move(output), axis + rank - 1);
  return steps.take();
}

// x and the indices broadcast over the other axes.
std::vector<int64_t> along_shape(const OpCall& call, int32_t axis) {
  const OperandDesc &x = call.inputs[0], &indices = call.inputs[1];
  if (x.rank != indices.rank) {
    refuse(call,
           "indices of shape " + shape_text(indices.extents()) + " and x of shape " + shape_text(x.extents()) +
               " differ in rank",
           1);
  }
  std::vector<int64_t> shape(indices.shape, indices.shape + indices.rank);
  for (int32_t i = 0; i < x.rank; ++i) {
    int64_t& extent = shape[static_cast<size_t>(i)];
    if (i == axis || x.shape[i] == extent || x.shape[i] == 1) continue;
    if (extent != 1) {
      refuse(call,
             "shapes " + shape_text(x.extents()) + " and " + shape_text(indices.extents()) +
                 " do not broadcast outside axis " + std::to_string(axis),
             1);
    }
    extent = x.shape[i];
  }
  return shape;
}

std::vector<OutputDesc> infer_along(const OpCall& call) {
  check_indices(call);
  const int32_t axis = axis_attribute(call, call.inputs[0].rank);
  std::vector<int64_t> shape = along_shape(call, axis);
  refuse_empty_axis(call, axis, shape);
  return {{call.inputs[0].dtype, std::move(shape)}};
}

std::optional<Lowering> lower_along(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 0) return std::nullopt;
  Steps steps(call, target);
  const int32_t axis = axis_attribute(call, call.inputs[0].rank);
  const StepOperand x = steps.input(0), indices = steps.as_indices(steps.input(1)), output = steps.output();
  std::vector<int64_t> source = output.shape;
  source[static_cast<size_t>(axis)] = x.shape[static_cast<size_t>(axis)];
  steps.indices_are({1, axis, output.shape, indices.shape});
  steps.gather(broadcast_to(x, source), broadcast_to(indices, output.shape), output, axis);
  return steps.take();
}

// ---- The gradient of take -------------------------------------------------------------------------------------------

// In dy the axes of the indices replace `axis`.
std::vector<OutputDesc> infer_take_grad(const OpCall& call) {
  check_indices(call);
  require_class(call, 0, DtypeClass::kNumeric);
  const OperandDesc &dy = call.inputs[0], &indices = call.inputs[1];
  const int32_t rank = dy.rank - indices.rank + 1;
  if (rank < 1) {
    refuse(call,
           "dy of shape " + shape_text(dy.extents()) + " has fewer axes than indices of shape " +
               shape_text(indices.extents()),
           0);
  }
  const int32_t axis = axis_attribute(call, rank);
  for (int32_t i = 0; i < indices.rank; ++i) {
    if (dy.shape[axis + i] == indices.shape[i]) continue;
    refuse(call,
           "dy of shape " + shape_text(dy.extents()) + " does not have the shape " + shape_text(indices.extents()) +
               " of indices from axis " + std::to_string(axis) + " on",
           0);
  }
  flag_attribute(call, "deterministic");
  std::vector<int64_t> shape(dy.shape, dy.shape + axis);
  shape.push_back(extent_attribute(call, "size"));
  shape.insert(shape.end(), dy.shape + axis + indices.rank, dy.shape + dy.rank);
  return {{dy.dtype, std::move(shape)}};
}

// A plugin that supports the whole op reads only the indices.
IndexPlace indices_of_take_grad(const OpCall& call) {
  const OperandDesc &dy = call.inputs[0], &indices = call.inputs[1];
  const std::vector<int64_t> shape(indices.shape, indices.shape + indices.rank);
  return {1, axis_attribute(call, dy.rank - indices.rank + 1), shape, shape};
}

// Rows are added to zeros. Sums of float16 and bfloat16 are made in float32 and converted once.
std::optional<Lowering> lower_take_grad(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 0) return std::nullopt;
  Steps steps(call, target);
  const StepOperand output = steps.output();
  const compute_dtype accumulator = computed_in(output.dtype);
  const OperandDesc& given = call.inputs[1];
  const StepOperand sums = accumulator == output.dtype ? output : steps.temporary(accumulator, output.shape);
  steps.fill(sums, {});
  if (has_elements(call.inputs[0].extents())) {
    const int32_t axis = axis_attribute(call, static_cast<int32_t>(output.shape.size()));
    const std::span<const int64_t> space = call.inputs[0].extents();
    steps.indices_are({1, axis, {space.begin(), space.end()}, {given.shape, given.shape + given.rank}, axis});
    StepOperand indices = steps.as_indices(steps.input(1)), dy = steps.as_dtype(steps.input(0), accumulator);
    if (given.rank == 0) {
      indices = with_axis(std::move(indices), 0);
      dy = with_axis(std::move(dy), axis);
    } else {
      indices = steps.as_collapsed(indices, 0, given.rank);
      dy = steps.as_collapsed(dy, axis, given.rank);
    }
    const auto rank = static_cast<int32_t>(dy.shape.size());
    for (int32_t i = axis + 1; i < rank; ++i) indices = with_axis(std::move(indices), i - axis);
    indices = broadcast_to(indices, dy.shape);
    steps.scatter(std::move(indices), std::move(dy), sums, axis, "add",
                  duplicates_of(flag_attribute(call, "deterministic")));
  }
  if (accumulator != output.dtype) steps.copy(sums, output);
  return steps.take();
}

}  // namespace

const OpRules take_grad_1_rules{infer_take_grad, lower_take_grad, true, COMPUTE_DTYPE_COMPLEX128, indices_of_take_grad};
const OpRules take_1_rules{infer_take, lower_take};
const OpRules take_along_axis_1_rules{infer_along, lower_along};

}  // namespace compute
