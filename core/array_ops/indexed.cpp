// SPDX-License-Identifier: Apache-2.0
// gather_nd and scatter_nd: indices of several axes at once. The indexed axes become one, along which the primitives
// gather and scatter work.
#include <algorithm>
#include <numeric>

#include "core/ops/rules.hpp"
#include "core/ops/steps.hpp"

namespace compute {

namespace {

// The number of axes of x that an index names.
int32_t indexed_axes(const OpCall& call) {
  const OperandDesc &x = call.inputs[0], &indices = call.inputs[1];
  if (!is_integer(indices.dtype))
    refuse(call,
           "indices is " + dtype_name(indices.dtype) + "; expected an integer dtype; cast it (cast(indices, int64))",
           1);
  if (indices.rank == 0) refuse(call, "indices has rank 0; expected [..., k]", 1);
  const int64_t count = indices.shape[indices.rank - 1];
  if (count < 1 || count > x.rank) {
    refuse(call,
           "indices of shape " + shape_text(indices.extents()) + " index " + std::to_string(count) +
               " axes of x of shape " + shape_text(x.extents()) + "; expected 1 to " + std::to_string(x.rank),
           1);
  }
  return static_cast<int32_t>(count);
}

// The shape that is gathered: of the indices without their last axis, then of the axes that are not indexed.
std::vector<int64_t> selected_shape(const OpCall& call) {
  const OperandDesc &x = call.inputs[0], &indices = call.inputs[1];
  const int32_t axes = indexed_axes(call);
  std::vector<int64_t> shape(indices.shape, indices.shape + indices.rank - 1);
  shape.insert(shape.end(), x.shape + axes, x.shape + x.rank);
  return shape;
}

// A tensor whose first axes became one, and how far along it an index of each of them leads.
struct OneAxis {
  StepOperand view;
  std::vector<int64_t> factors;
};

// To read from: a view of x also where the axes cannot be collapsed. Then indices name some of its elements.
OneAxis as_one_axis(Steps& steps, const StepOperand& x, int32_t axes) {
  const auto count = static_cast<size_t>(axes);
  int64_t step = 0, extent = 1;
  bool is_view = axes > 1;
  for (size_t i = 0; i < count; ++i) {
    step = std::gcd(step, x.strides[i]);
    is_view &= x.strides[i] >= 0;
  }
  if (!is_view || step == 0)
    return {steps.as_collapsed(x, 0, axes), row_major_strides(std::span(x.shape).first(count))};
  OneAxis one{x, {}};
  for (size_t i = 0; i < count; ++i) {
    one.factors.push_back(x.strides[i] / step);
    extent += (x.shape[i] - 1) * one.factors[i];
  }
  one.view.shape.erase(one.view.shape.begin() + 1, one.view.shape.begin() + axes);
  one.view.strides.erase(one.view.strides.begin() + 1, one.view.strides.begin() + axes);
  one.view.shape[0] = extent;
  one.view.strides[0] = step;
  return one;
}

// The indices as positions [m] along one axis of `extent`; unchanged for a single axis. An index out of range gives a
// position out of range.
StepOperand positions_of(Steps& steps, const OpCall& call, std::span<const int64_t> factors, int64_t total) {
  const int32_t axes = indexed_axes(call);
  const StepOperand indices = steps.as_indices(steps.input(1));
  const auto last = static_cast<int32_t>(indices.shape.size()) - 1;
  if (axes == 1) {
    const StepOperand positions = without_axis(indices, last);
    return last == 0 ? with_axis(positions, 0) : steps.as_collapsed(positions, 0, last);
  }
  StepExpression linear;
  std::string wrong, position;
  std::vector<StepOperand> inputs;
  constexpr std::string_view kNames[] = {"x", "y", "z", "x3", "x4", "x5", "x6", "x7"};
  for (int32_t i = 0; i < axes; ++i) {
    inputs.push_back(without_axis(narrowed(indices, last, i, 1), last));
    const std::string e = scalar_name(linear.scalars.size()), p = "p" + std::to_string(i);
    linear.scalars.push_back(extent_term(call.inputs[0].shape[i]));
    std::string value(kNames[i]);
    if (indices.dtype != COMPUTE_DTYPE_INT64) value = "convert(" + value + ", int64)";
    linear.text += "i" + std::to_string(i) + " = " + value + "; " + p + " = where(i" + std::to_string(i) + " < 0, i" +
                   std::to_string(i) + " + " + e + ", i" + std::to_string(i) + "); ";
    wrong += (i > 0 ? " | (" : "(") + p + " < 0) | (" + p + " >= " + e + ")";
    position += (i > 0 ? " + " : "") + p;
    const int64_t factor = factors[static_cast<size_t>(i)];
    if (factor == 1) continue;
    position += " * " + scalar_name(linear.scalars.size());
    linear.scalars.push_back(extent_term(factor));
  }
  linear.text += "where(" + wrong + ", " + scalar_name(linear.scalars.size()) + ", " + position + ")";
  linear.scalars.push_back(extent_term(total));
  const StepOperand result = steps.temporary(COMPUTE_DTYPE_INT64, inputs[0].shape);
  steps.map(linear, std::move(inputs), result);
  return *flattened(result);
}

// The indices of one step over all of them; the index space is the shape that is gathered.
IndexPlace place_of(const OpCall& call) {
  const OperandDesc &x = call.inputs[0], &indices = call.inputs[1];
  const int32_t axes = indexed_axes(call);
  IndexPlace place{1, 0, selected_shape(call), {indices.shape, indices.shape + indices.rank}};
  place.space.insert(place.space.begin() + indices.rank - 1, 1);
  place.shape.back() = 1;
  if (axes > 1) place.extents.assign(x.shape, x.shape + axes);
  return place;
}

// Positions [m] repeated over the axes that are not indexed, all but the first of x.
StepOperand repeated(StepOperand positions, const StepOperand& selected) {
  for (size_t i = 1; i < selected.shape.size(); ++i)
    positions = with_axis(std::move(positions), static_cast<int32_t>(i));
  return broadcast_to(positions, selected.shape);
}

// `operand` with its first `axes` axes collapsed to one; for 0, with a new axis.
StepOperand with_first_as_one(Steps& steps, const StepOperand& operand, int32_t axes) {
  return axes == 0 ? with_axis(operand, 0) : steps.as_collapsed(operand, 0, axes);
}

std::vector<OutputDesc> infer_gather_nd(const OpCall& call) { return {{call.inputs[0].dtype, selected_shape(call)}}; }

std::optional<Lowering> lower_gather_nd(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 0) return std::nullopt;
  Steps steps(call, target);
  const StepOperand y = steps.output();
  if (!has_elements(call.inputs[0].extents())) refuse(call, "x has no elements to gather", 0);
  const OneAxis x = as_one_axis(steps, steps.input(0), indexed_axes(call));
  const StepOperand positions = positions_of(steps, call, x.factors, x.view.shape[0]);
  const int32_t batch = call.inputs[1].rank - 1;
  const auto direct = batch == 0 ? std::optional(with_axis(y, 0)) : collapsed(y, 0, batch);
  const StepOperand to = direct ? *direct : with_first_as_one(steps, steps.temporary(y.dtype, y.shape), batch);
  steps.indices_are(place_of(call));
  steps.gather(x.view, repeated(positions, to), to, 0);
  if (!direct) {
    StepOperand from = to;
    from.shape = y.shape;
    from.strides = row_major_strides(y.shape);
    steps.copy(from, y);
  }
  return steps.take();
}

std::vector<OutputDesc> infer_scatter_nd(const OpCall& call) {
  const OperandDesc &x = call.inputs[0], &updates = call.inputs[2];
  const std::string_view reduction = call.attributes.string(attribute_index(call, "reduction"));
  const bool ordered = reduction == "min" || reduction == "max";
  if (reduction != "set" && reduction != "add" && reduction != "mul" && !ordered)
    refuse_attribute(call, "reduction",
                     "reduction is \"" + std::string(reduction) + "\", not one of set, add, mul, min, max");
  if (((is_bool(x.dtype) || is_float8(x.dtype)) && reduction != "set") || (is_complex(x.dtype) && ordered))
    refuse(call, "reduction \"" + std::string(reduction) + "\" does not support " + dtype_name(x.dtype), 0);
  flag_attribute(call, "deterministic");
  require_tensor(call, 2, x.dtype, selected_shape(call));
  (void)updates;
  return {{x.dtype, {x.shape, x.shape + x.rank}}};
}

std::optional<Lowering> lower_scatter_nd(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 0) return std::nullopt;
  Steps steps(call, target);
  const StepOperand y = steps.output();
  const bool has_updates = has_elements(call.inputs[2].extents());
  const std::string_view reduction = call.attributes.string(attribute_index(call, "reduction"));
  const compute_dtype accumulator = reduction == "add" || reduction == "mul" ? computed_in(y.dtype) : y.dtype;
  const int32_t axes = indexed_axes(call);
  const auto direct = accumulator == y.dtype ? collapsed(y, 0, axes) : std::nullopt;
  const StepOperand made = direct ? y : steps.temporary(accumulator, y.shape);
  if (!direct || !target.in_place) steps.copy(steps.input(0), made);
  if (has_updates) {
    const StepOperand to = *collapsed(made, 0, axes);
    const std::span first(made.shape.data(), static_cast<size_t>(axes));
    const StepOperand positions = positions_of(steps, call, row_major_strides(first), to.shape[0]);
    const StepOperand updates =
        with_first_as_one(steps, steps.as_dtype(steps.input(2), accumulator), call.inputs[1].rank - 1);
    steps.indices_are(place_of(call));
    steps.scatter(repeated(positions, updates), updates, to, 0, reduction,
                  duplicates_of(flag_attribute(call, "deterministic")));
  }
  if (!direct) steps.copy(made, y);
  return steps.take();
}

}  // namespace

const OpRules gather_nd_1_rules{infer_gather_nd, lower_gather_nd, true, COMPUTE_DTYPE_COMPLEX128, place_of};
const OpRules scatter_nd_1_rules{infer_scatter_nd, lower_scatter_nd};

}  // namespace compute
