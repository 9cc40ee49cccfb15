// SPDX-License-Identifier: Apache-2.0
// gather_nd, gather_at, scatter_nd and scatter_at: indices of several axes at once. The indexed axes become one, along
// which the primitives gather and scatter work.
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

// To read from: a view of x with `count` axes from `first` on as one, also where they cannot be collapsed. Then indices
// name some of its elements.
OneAxis as_one_axis(Steps& steps, const StepOperand& x, int32_t first, int32_t count) {
  const std::span strides = std::span(x.strides).subspan(static_cast<size_t>(first), static_cast<size_t>(count)),
                  shape = std::span(x.shape).subspan(static_cast<size_t>(first), static_cast<size_t>(count));
  int64_t step = 0, extent = 1;
  bool is_view = count > 1;
  for (const int64_t stride : strides) {
    step = std::gcd(step, stride);
    is_view &= stride >= 0;
  }
  if (!is_view || step == 0) return {steps.as_collapsed(x, first, count), row_major_strides(shape)};
  OneAxis one{x, {}};
  for (size_t i = 0; i < shape.size(); ++i) {
    one.factors.push_back(strides[i] / step);
    extent += (shape[i] - 1) * one.factors[i];
  }
  for (std::vector<int64_t>* list : {&one.view.shape, &one.view.strides})
    list->erase(list->begin() + first + 1, list->begin() + first + count);
  one.view.shape[static_cast<size_t>(first)] = extent;
  one.view.strides[static_cast<size_t>(first)] = step;
  return one;
}

// Indices of one shape as positions [m] along one axis of `total`, which axes with these extents became; unchanged for
// a single axis. An index out of range gives a position out of range.
StepOperand positions_of(Steps& steps, std::vector<StepOperand> indices, std::span<const int64_t> extents,
                         std::span<const int64_t> factors, int64_t total) {
  if (indices.size() == 1) {
    const auto rank = static_cast<int32_t>(indices[0].shape.size());
    return rank == 0 ? with_axis(indices[0], 0) : steps.as_collapsed(indices[0], 0, rank);
  }
  StepExpression linear;
  std::string wrong, position;
  constexpr std::string_view kNames[] = {"x", "y", "z", "x3", "x4", "x5", "x6", "x7"};
  for (size_t i = 0; i < indices.size(); ++i) {
    const std::string e = scalar_name(linear.scalars.size()), p = "p" + std::to_string(i);
    linear.scalars.push_back(extent_term(extents[i]));
    std::string value(kNames[i]);
    if (indices[i].dtype != COMPUTE_DTYPE_INT64) value = "convert(" + value + ", int64)";
    linear.text += "i" + std::to_string(i) + " = " + value + "; " + p + " = where(i" + std::to_string(i) + " < 0, i" +
                   std::to_string(i) + " + " + e + ", i" + std::to_string(i) + "); ";
    wrong += (i > 0 ? " | (" : "(") + p + " < 0) | (" + p + " >= " + e + ")";
    position += (i > 0 ? " + " : "") + p;
    if (factors[i] == 1) continue;
    position += " * " + scalar_name(linear.scalars.size());
    linear.scalars.push_back(extent_term(factors[i]));
  }
  linear.text += "where(" + wrong + ", " + scalar_name(linear.scalars.size()) + ", " + position + ")";
  linear.scalars.push_back(extent_term(total));
  const StepOperand result = steps.temporary(COMPUTE_DTYPE_INT64, indices[0].shape);
  steps.map(linear, std::move(indices), result);
  return *flattened(result);
}

// The same for indices [..., k].
StepOperand positions_of(Steps& steps, const OpCall& call, std::span<const int64_t> factors, int64_t total) {
  const StepOperand all = steps.as_indices(steps.input(1));
  const auto last = static_cast<int32_t>(all.shape.size()) - 1;
  std::vector<StepOperand> each;
  for (int32_t i = 0; i < indexed_axes(call); ++i) each.push_back(without_axis(narrowed(all, last, i, 1), last));
  return positions_of(steps, std::move(each), call.inputs[0].extents(), factors, total);
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

// Positions [m] of axis `axis` repeated over the other axes of what is gathered.
StepOperand repeated(StepOperand positions, const StepOperand& selected, int32_t axis = 0) {
  const auto rank = static_cast<int32_t>(selected.shape.size());
  for (int32_t i = axis + 1; i < rank; ++i) positions = with_axis(std::move(positions), i - axis);
  return broadcast_to(positions, selected.shape);
}

// `operand` with `count` axes from `first` on collapsed to one; for 0, with a new axis.
StepOperand with_one_axis(Steps& steps, const StepOperand& operand, int32_t first, int32_t count) {
  return count == 0 ? with_axis(operand, first) : steps.as_collapsed(operand, first, count);
}

// Elements along an axis at `positions`, to an output of which `count` axes from `axis` on are those of the indices.
void gather_positions(Steps& steps, const StepOperand& x, const StepOperand& positions, int32_t axis, int32_t count) {
  const StepOperand y = steps.output();
  const auto direct = count == 0 ? std::optional(with_axis(y, axis)) : collapsed(y, axis, count);
  const StepOperand to = direct ? *direct : with_one_axis(steps, steps.temporary(y.dtype, y.shape), axis, count);
  steps.gather(x, repeated(positions, to, axis), to, axis);
  if (direct) return;
  StepOperand from = to;
  from.shape = y.shape;
  from.strides = row_major_strides(y.shape);
  steps.copy(from, y);
}

std::vector<OutputDesc> infer_gather_nd(const OpCall& call) { return {{call.inputs[0].dtype, selected_shape(call)}}; }

std::optional<Lowering> lower_gather_nd(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 0) return std::nullopt;
  Steps steps(call, target);
  if (!has_elements(call.inputs[0].extents())) refuse(call, "x has no elements to gather", 0);
  const OneAxis x = as_one_axis(steps, steps.input(0), 0, indexed_axes(call));
  const StepOperand positions = positions_of(steps, call, x.factors, x.view.shape[0]);
  steps.indices_are(place_of(call));
  gather_positions(steps, x.view, positions, 0, call.inputs[1].rank - 1);
  return steps.take();
}

// ---- gather_at: an array of indices for each axis -------------------------------------------------------------------

// What gather_at reads: `count` axes of x from `axis` on, at the operands from `first` on, which broadcast to `shape`.
struct Places {
  int32_t first = 1, axis = 0, count = 0;
  std::vector<int64_t> shape = {};
};

Places places_of(const OpCall& call, int32_t first) {
  Places places{first};
  places.axis = axis_attribute(call, call.inputs[0].rank);
  for (auto i = static_cast<size_t>(first); i < call.inputs.size(); ++i) {
    const OperandDesc& indices = call.inputs[i];
    if (indices.dtype == COMPUTE_DTYPE_NONE) continue;
    const auto argument = static_cast<int32_t>(i);
    const std::string name = call.schema.input_name(argument);
    if (first + places.count++ != argument) refuse(call, name + " is given without the indices before it", argument);
    if (!is_integer(indices.dtype)) {
      refuse(call,
             name + " is " + dtype_name(indices.dtype) + "; expected an integer dtype; cast it (cast(" + name +
                 ", int64))",
             argument);
    }
  }
  places.shape = broadcast_shapes(call.schema.name, call.inputs.subspan(static_cast<size_t>(first)));
  if (places.axis + places.count > call.inputs[0].rank) {
    refuse(call,
           std::to_string(places.count) + " arrays of indices from axis " + std::to_string(places.axis) +
               " on, but x has shape " + shape_text(call.inputs[0].extents()),
           places.count);
  }
  return places;
}

// The shape of x, in which the shape of the indices replaces the axes that are indexed.
std::vector<int64_t> selected_shape(const OpCall& call, const Places& places) {
  const std::span<const int64_t> x = call.inputs[0].extents();
  std::vector<int64_t> shape(x.begin(), x.begin() + places.axis);
  shape.insert(shape.end(), places.shape.begin(), places.shape.end());
  shape.insert(shape.end(), x.begin() + places.axis + places.count, x.end());
  return shape;
}

std::span<const int64_t> indexed_extents(const OpCall& call, const Places& places) {
  return call.inputs[0].extents().subspan(static_cast<size_t>(places.axis), static_cast<size_t>(places.count));
}

StepOperand positions_of(Steps& steps, const OpCall& call, const Places& places, std::span<const int64_t> factors,
                         int64_t total) {
  std::vector<StepOperand> indices;
  for (int32_t i = 0; i < places.count; ++i)
    indices.push_back(broadcast_to(steps.as_indices(steps.input(places.first + i)), places.shape));
  return positions_of(steps, std::move(indices), indexed_extents(call, places), factors, total);
}

// The indices of one place are a row of one operand.
IndexPlace place_of(const OpCall& call, const Places& places) {
  IndexPlace place{places.first, places.axis, selected_shape(call, places), places.shape, places.axis};
  if (places.count == 1) return place;
  place.space.insert(place.space.begin() + places.axis + static_cast<std::ptrdiff_t>(places.shape.size()), 1);
  place.shape.push_back(1);
  const std::span<const int64_t> extents = indexed_extents(call, places);
  place.extents.assign(extents.begin(), extents.end());
  return place;
}

IndexPlace place_of_gather_at(const OpCall& call) { return place_of(call, places_of(call, 1)); }

std::vector<OutputDesc> infer_gather_at(const OpCall& call) {
  return {{call.inputs[0].dtype, selected_shape(call, places_of(call, 1))}};
}

std::optional<Lowering> lower_gather_at(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 0) return std::nullopt;
  Steps steps(call, target);
  if (!has_elements(call.inputs[0].extents())) refuse(call, "x has no elements to gather", 0);
  const Places places = places_of(call, 1);
  const OneAxis x = as_one_axis(steps, steps.input(0), places.axis, places.count);
  const StepOperand positions =
      positions_of(steps, call, places, x.factors, x.view.shape[static_cast<size_t>(places.axis)]);
  steps.indices_are(place_of(call, places));
  gather_positions(steps, x.view, positions, places.axis, static_cast<int32_t>(places.shape.size()));
  return steps.take();
}

// ---- scatter_nd and scatter_at --------------------------------------------------------------------------------------

// Refuses calls whose updates, an input of this number, are neither a number nor of the shape that is selected.
std::vector<OutputDesc> infer_written(const OpCall& call, int32_t argument, const std::vector<int64_t>& selected) {
  const OperandDesc &x = call.inputs[0], &updates = call.inputs[static_cast<size_t>(argument)];
  const std::string_view reduction = call.attributes.string(attribute_index(call, "reduction"));
  const bool ordered = reduction == "min" || reduction == "max";
  if (reduction != "set" && reduction != "add" && reduction != "mul" && !ordered)
    refuse_attribute(call, "reduction",
                     "reduction is \"" + std::string(reduction) + "\", not one of set, add, mul, min, max");
  if (((is_bool(x.dtype) || is_float8(x.dtype)) && reduction != "set") || (is_complex(x.dtype) && ordered))
    refuse(call, "reduction \"" + std::string(reduction) + "\" does not support " + dtype_name(x.dtype), 0);
  flag_attribute(call, "deterministic");
  if (!updates.is_scalar) {
    require_tensor(call, argument, x.dtype, selected);
  } else {
    const PromotionOperand both[] = {{x.dtype, false, "x"}, {updates.dtype, updates.weak, "updates"}};
    PromotionFault fault;
    if (common_dtype(both, &fault, kinds_mix()) != x.dtype)
      refuse(call, "updates is " + dtype_name(updates.dtype) + ", but x is " + dtype_name(x.dtype), argument);
  }
  return {{x.dtype, {x.shape, x.shape + x.rank}}};
}

// Writes updates to `count` axes from `axis` on, as one axis, at positions whose shape has `rank` axes.
// `positions_in` makes these from the factors of the axes and their product.
template <class Positions>
Lowering scatter_positions(const OpCall& call, const LoweringTarget& target, int32_t axis, int32_t count, int32_t rank,
                           int32_t argument, const std::vector<int64_t>& selected, IndexPlace place,
                           const Positions& positions_in) {
  Steps steps(call, target);
  const StepOperand y = steps.output();
  const std::string_view reduction = call.attributes.string(attribute_index(call, "reduction"));
  const compute_dtype accumulator = reduction == "add" || reduction == "mul" ? computed_in(y.dtype) : y.dtype;
  const auto direct = accumulator == y.dtype ? collapsed(y, axis, count) : std::nullopt;
  const StepOperand made = direct ? y : steps.temporary(accumulator, y.shape);
  if (!direct || !target.in_place) steps.copy(steps.input(0), made);
  if (has_elements(selected)) {
    const StepOperand to = *collapsed(made, axis, count);
    const std::span axes = std::span(made.shape).subspan(static_cast<size_t>(axis), static_cast<size_t>(count));
    const StepOperand positions = positions_in(steps, row_major_strides(axes), to.shape[static_cast<size_t>(axis)]);
    const StepOperand given = steps.as_dtype(steps.as_dtype(steps.input(argument, y.dtype), y.dtype), accumulator);
    const StepOperand updates = with_one_axis(steps, broadcast_to(given, selected), axis, rank);
    steps.indices_are(std::move(place));
    steps.scatter(repeated(positions, updates, axis), updates, to, axis, reduction,
                  duplicates_of(flag_attribute(call, "deterministic")));
  }
  if (!direct) steps.copy(made, y);
  return steps.take();
}

std::vector<OutputDesc> infer_scatter_nd(const OpCall& call) { return infer_written(call, 2, selected_shape(call)); }

std::optional<Lowering> lower_scatter_nd(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 0) return std::nullopt;
  return scatter_positions(call, target, 0, indexed_axes(call), call.inputs[1].rank - 1, 2, selected_shape(call),
                           place_of(call), [&](Steps& steps, const std::vector<int64_t>& factors, int64_t total) {
                             return positions_of(steps, call, factors, total);
                           });
}

std::vector<OutputDesc> infer_scatter_at(const OpCall& call) {
  return infer_written(call, 1, selected_shape(call, places_of(call, 2)));
}

std::optional<Lowering> lower_scatter_at(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 0) return std::nullopt;
  const Places places = places_of(call, 2);
  return scatter_positions(call, target, places.axis, places.count, static_cast<int32_t>(places.shape.size()), 1,
                           selected_shape(call, places), place_of(call, places),
                           [&](Steps& steps, const std::vector<int64_t>& factors, int64_t total) {
                             return positions_of(steps, call, places, factors, total);
                           });
}

}  // namespace

const OpRules gather_at_1_rules{infer_gather_at, lower_gather_at, true, COMPUTE_DTYPE_COMPLEX128, place_of_gather_at};
const OpRules gather_nd_1_rules{infer_gather_nd, lower_gather_nd, true, COMPUTE_DTYPE_COMPLEX128, place_of};
const OpRules scatter_at_1_rules{infer_scatter_at, lower_scatter_at};
const OpRules scatter_nd_1_rules{infer_scatter_nd, lower_scatter_nd};

}  // namespace compute
