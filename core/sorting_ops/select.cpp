// SPDX-License-Identifier: Apache-2.0
// nonzero and unique. The number of results depends on the data: outputs have room for all elements, and `count` says
// how many are used. The rest is 0.
#include "core/ops/rules.hpp"
#include "core/sorting_ops/parts.hpp"

namespace compute {

namespace {

// Positions and counts of `n` elements.
compute_dtype position_dtype(int64_t n) { return n < INT32_MAX ? COMPUTE_DTYPE_INT32 : COMPUTE_DTYPE_INT64; }

std::string as_position(const std::string& value, compute_dtype dtype) {
  return "convert(" + value + ", " + dtype_name(dtype) + ")";
}

// The last element of counts [n], as the tensor `count` of rank 0.
void store_count(Steps& steps, const StepOperand& counts, const StepOperand& count) {
  steps.copy(without_axis(narrowed(counts, 0, counts.shape[0] - 1, 1), 0), count);
}

StepOperand flat_input(Steps& steps) {
  const StepOperand x = steps.input(0);
  return steps.as_collapsed(x, 0, static_cast<int32_t>(x.shape.size()));
}

// flags [n] of dtype bool, and how many are true up to each position.
struct Flags {
  StepOperand flags, counts;
};

Flags counted(Steps& steps, const StepOperand& flags, bool is_native) {
  const compute_dtype dtype = position_dtype(flags.shape[0]);
  Flags result{flags, steps.temporary(dtype, flags.shape)};
  scan(steps, {"sum", dtype}, result.flags, result.counts, is_native);
  return result;
}

// counts [n], the last of which is the number of elements with a flag, as a tensor of shape [n].
StepOperand total_of(const Flags& flags) {
  const StepOperand& counts = flags.counts;
  return broadcast_to(narrowed(counts, 0, counts.shape[0] - 1, 1), counts.shape);
}

std::string own_position(compute_dtype dtype) { return as_position("index(0)", dtype); }

// The target position of each element: flagged elements first, in order, then the rest. Positions are distinct.
StepOperand targets(Steps& steps, const Flags& flags) {
  const compute_dtype dtype = flags.counts.dtype;
  const StepOperand result = steps.temporary(dtype, flags.flags.shape);
  steps.map({"where(x, y - 1, z + (" + own_position(dtype) + " - y))"}, {flags.flags, flags.counts, total_of(flags)},
            result);
  return result;
}

// ---- nonzero --------------------------------------------------------------------------------------------------------

std::vector<OutputDesc> infer_nonzero(const OpCall& call) {
  const std::span<const int64_t> shape = call.inputs[0].extents();
  if (shape.empty()) refuse(call, "x has rank 0", 0);
  return {{COMPUTE_DTYPE_INT64, {call.inputs[0].rank, element_count(call.schema.name, shape)}},
          {COMPUTE_DTYPE_INT64, {}}};
}

std::optional<Lowering> lower_nonzero(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 1) return std::nullopt;
  Steps steps(call, target);
  const StepOperand indices = steps.output(0), count = steps.output(1);
  const int64_t n = element_count(call.inputs[0].extents());
  if (n == 0) {
    if (alternative > 0) return std::nullopt;
    steps.fill(count, {});
    return steps.take();
  }
  const StepOperand x = flat_input(steps);
  const StepOperand is_set = is_bool(x.dtype) ? x : steps.temporary(COMPUTE_DTYPE_BOOL, x.shape);
  if (!is_bool(x.dtype)) steps.map({"x != 0"}, {x}, is_set);
  const Flags flags = counted(steps, is_set, alternative == 0);
  const StepOperand positions = steps.temporary(flags.counts.dtype, flags.counts.shape),
                    places = steps.temporary(flags.counts.dtype, flags.counts.shape);
  fill_with_positions(steps, positions, 0);
  steps.scatter(targets(steps, flags), positions, places, 0, "set", Duplicates::kNone);
  // The coordinates of a row-major position.
  StepExpression coordinates;
  std::vector<StepOperand> outputs;
  const std::vector<int64_t> shape = shape_of(call);
  for (size_t i = 0; i < shape.size(); ++i) {
    int64_t stride = 1;
    for (size_t j = i + 1; j < shape.size(); ++j) stride *= shape[j];
    std::string value = "x";
    if (i + 1 < shape.size()) {
      value = "x // " + scalar_name(coordinates.scalars.size());
      coordinates.scalars.push_back(extent_term(stride));
    }
    if (i > 0) {
      value = "(" + value + ") % " + scalar_name(coordinates.scalars.size());
      coordinates.scalars.push_back(extent_term(shape[i]));
    }
    value = "where(" + own_position(places.dtype) + " < y, " + value + ", 0)";
    coordinates.text += (i > 0 ? "; " : "") + convert_text(value, places.dtype, COMPUTE_DTYPE_INT64);
    outputs.push_back(without_axis(narrowed(indices, 0, static_cast<int64_t>(i), 1), 0));
  }
  steps.map(coordinates, {places, total_of(flags)}, std::move(outputs));
  store_count(steps, flags.counts, count);
  return steps.take();
}

// ---- unique ---------------------------------------------------------------------------------------------------------

std::vector<OutputDesc> infer_unique(const OpCall& call) {
  if (is_float8(call.inputs[0].dtype)) require_class(call, 0, DtypeClass::kReal);
  const std::vector<int64_t> shape = shape_of(call);
  const std::vector<int64_t> all = {element_count(call.schema.name, shape)};
  return {{call.inputs[0].dtype, all},
          {COMPUTE_DTYPE_INT64, all},
          {COMPUTE_DTYPE_INT64, shape},
          {COMPUTE_DTYPE_INT64, all},
          {COMPUTE_DTYPE_INT64, {}}};
}

struct Sorted {
  StepOperand values, order;
};

// Complex numbers are sorted by their imaginary parts, then by their real ones. Those that are NaN in a part are last.
Sorted sorted_values(Steps& steps, const StepOperand& x, bool is_native) {
  Sorted result{steps.temporary(x.dtype, x.shape), steps.temporary(COMPUTE_DTYPE_INT64, x.shape)};
  if (!is_complex(x.dtype)) {
    sort(steps, x, 0, false, result.values, result.order, is_native);
    return result;
  }
  const compute_dtype part = real_part_dtype(x.dtype);
  const StepOperand parts = steps.temporary(part, x.shape), moved = steps.temporary(part, x.shape);
  const StepOperand first = steps.temporary(COMPUTE_DTYPE_INT64, x.shape),
                    second = steps.temporary(COMPUTE_DTYPE_INT64, x.shape);
  steps.map({"where(isnan(x), nan, imag(x))"}, {x}, parts);
  sort(steps, parts, 0, false, {}, first, is_native);
  steps.map({"where(isnan(x), nan, real(x))"}, {x}, parts);
  steps.gather(parts, first, moved, 0);
  sort(steps, moved, 0, false, {}, second, is_native);
  steps.gather(first, second, result.order, 0);
  steps.gather(x, result.order, result.values, 0);
  return result;
}

std::optional<Lowering> lower_unique(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative >= kPartAlternatives) return std::nullopt;
  const NativeParts native = native_parts(alternative);
  Steps steps(call, target);
  const StepOperand inverse = steps.output(2), count = steps.output(4);
  const int64_t n = element_count(call.inputs[0].extents());
  if (n == 0) {
    if (alternative > 0) return std::nullopt;
    steps.fill(count, {});
    return steps.take();
  }
  const Sorted sorted = sorted_values(steps, flat_input(steps), native.sort);
  // A flag where a value differs from the one before it. NaN differs from NaN.
  const compute_dtype dtype = position_dtype(n);
  const int64_t shape[] = {n}, room[] = {n + 1};
  const StepOperand is_new = steps.temporary(COMPUTE_DTYPE_BOOL, shape);
  steps.fill(narrowed(is_new, 0, 0, 1), scalar_from_int64(1, COMPUTE_DTYPE_BOOL));
  if (n > 1) {
    steps.map({"x != y"}, {narrowed(sorted.values, 0, 0, n - 1), narrowed(sorted.values, 0, 1, n - 1)},
              narrowed(is_new, 0, 1, n - 1));
  }
  const Flags flags = counted(steps, is_new, native.scan);
  const StepOperand to = targets(steps, flags), total = total_of(flags);
  const std::string is_used = own_position(dtype) + " < y";
  const auto selected = [&](const StepOperand& from, const StepOperand& y) {
    const StepOperand slots = steps.temporary(from.dtype, shape);
    steps.scatter(to, from, slots, 0, "set", Duplicates::kNone);
    steps.map({is_bool(from.dtype) ? "x & (" + is_used + ")" : "where(" + is_used + ", x, 0)"}, {slots, total}, y);
  };
  selected(sorted.values, steps.output(0));
  selected(sorted.order, steps.output(1));
  // A value's equals reach to where the next value begins.
  const StepOperand positions = steps.temporary(dtype, shape), starts = steps.temporary(dtype, room);
  fill_with_positions(steps, positions, 0);
  steps.fill(narrowed(starts, 0, n, 1), scalar_from_int64(n, dtype));
  steps.scatter(to, positions, narrowed(starts, 0, 0, n), 0, "set", Duplicates::kNone);
  steps.map({convert_text("where(" + is_used + ", where(" + own_position(dtype) + " < y - 1, z, a) - x, 0)", dtype,
                          COMPUTE_DTYPE_INT64),
             {extent_term(n)}},
            {narrowed(starts, 0, 0, n), total, narrowed(starts, 0, 1, n)}, steps.output(3));
  // The rank of each value is written to the value's original position.
  const StepOperand ranks = steps.temporary(COMPUTE_DTYPE_INT64, shape),
                    back = steps.temporary(COMPUTE_DTYPE_INT64, shape);
  steps.map({convert_text("x - 1", dtype, COMPUTE_DTYPE_INT64)}, {flags.counts}, ranks);
  steps.scatter(sorted.order, ranks, back, 0, "set", Duplicates::kNone);
  StepOperand shaped = back;
  shaped.shape = inverse.shape;
  shaped.strides = row_major_strides(inverse.shape);
  steps.copy(shaped, inverse);
  store_count(steps, flags.counts, count);
  return steps.take();
}

}  // namespace

const OpRules nonzero_1_rules{infer_nonzero, lower_nonzero, true};
const OpRules unique_1_rules{infer_unique, lower_unique, true};

}  // namespace compute
