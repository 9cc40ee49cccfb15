// SPDX-License-Identifier: Apache-2.0
// segment_reduce and histogram: reductions over parts that the data defines.
#include <algorithm>
#include <limits>

#include "core/ops/rules.hpp"
#include "core/sorting_ops/parts.hpp"
#include "core/text/nearest_name.hpp"
#include "core/text/printable.hpp"

namespace compute {

namespace {

// ---- segment_reduce -------------------------------------------------------------------------------------------------

const char* checked_kind(const OpCall& call) {
  static constexpr const char* kKinds[] = {"sum", "prod", "min", "max"};
  const std::string_view kind = call.attributes.string(attribute_index(call, "kind"));
  for (const char* known : kKinds) {
    if (kind == known) return known;
  }
  refuse_attribute(call, "kind", "kind is " + in_quotes(kind) + ", not one of sum, prod, min, max");
}

std::vector<OutputDesc> infer_segment_reduce(const OpCall& call) {
  const std::string_view kind = checked_kind(call);
  require_class(call, 0, kind == "min" || kind == "max" ? DtypeClass::kReal : DtypeClass::kNumeric);
  const OperandDesc &x = call.inputs[0], &offsets = call.inputs[1];
  if (!is_integer(offsets.dtype))
    refuse(call, "offsets is " + dtype_name(offsets.dtype) + "; expected an integer dtype", 1);
  if (offsets.rank != 1 || offsets.shape[0] < 1)
    refuse(call, "offsets has shape " + shape_text(offsets.extents()) + "; expected one axis with elements", 1);
  if (x.rank == 0) refuse(call, "x has rank 0", 0);
  std::vector<int64_t> shape(x.shape, x.shape + x.rank);
  shape[0] = offsets.shape[0] - 1;
  return {{x.dtype, std::move(shape)}};
}

std::optional<Lowering> lower_segment_reduce(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  Steps steps(call, target);
  const char* kind = checked_kind(call);
  const StepOperand y = steps.output();
  if (!has_elements(call.inputs[0].extents())) {
    if (alternative > 0) return std::nullopt;
    steps.fill(y, identity_of(kind, y.dtype));
    return steps.take();
  }
  if (alternative > 1) return std::nullopt;
  const StepOperand x = steps.input(0);
  const compute_dtype accumulator = computed_in(x.dtype);
  const StepOperand offsets = steps.as_dtype(steps.as_indices(steps.input(1)), COMPUTE_DTYPE_INT64);
  if (alternative == 0) {
    Step& step = steps.add("segmented_reduce", {x, offsets}, y);
    step.attributes.resize(2);
    step.attributes[0].name = "kind";
    step.attributes[0].kind = COMPUTE_KIND_STRING;
    step.attributes[0].texts = {kind};
    step.attributes[1].name = "accumulator";
    step.attributes[1].kind = COMPUTE_KIND_DTYPE;
    step.attributes[1].integers = {accumulator};
    return steps.take();
  }
  // The segment of each row is the number of offsets up to it, less one: marks at the offsets are added up. The first
  // row is marked less by one. Elements outside of all segments have a segment that does not exist.
  const int64_t rows = x.shape[0], segments = y.shape[0], marked[] = {rows + 1};
  const StepOperand marks = steps.temporary(COMPUTE_DTYPE_INT64, marked),
                    ids = steps.temporary(COMPUTE_DTYPE_INT64, marked);
  const StepOperand ones = steps.temporary(COMPUTE_DTYPE_INT64, offsets.shape);
  steps.fill(marks, {});
  steps.fill(narrowed(marks, 0, 0, 1), scalar_from_int64(-1, COMPUTE_DTYPE_INT64));
  steps.fill(ones, scalar_from_int64(1, COMPUTE_DTYPE_INT64));
  steps.scatter(offsets, ones, marks, 0, "add", Duplicates::kAnyOrder);
  scan(steps, {"sum", COMPUTE_DTYPE_INT64}, marks, ids, false);
  StepOperand segment = steps.temporary(COMPUTE_DTYPE_INT64, {&rows, 1});
  steps.map({"where(x < 0, a, x)", {extent_term(segments)}}, {narrowed(ids, 0, 0, rows)}, segment);
  const StepOperand sums = accumulator == y.dtype ? y : steps.temporary(accumulator, y.shape);
  steps.fill(sums, identity_of(kind, accumulator));
  for (size_t i = 1; i < x.shape.size(); ++i) segment = with_axis(std::move(segment), static_cast<int32_t>(i));
  const std::string_view name = kind;
  steps.scatter(broadcast_to(segment, x.shape), steps.as_dtype(x, accumulator), sums, 0,
                name == "sum"    ? "add"
                : name == "prod" ? "mul"
                                 : name,
                Duplicates::kAnyOrder);
  if (accumulator != y.dtype) steps.copy(sums, y);
  return steps.take();
}

// ---- histogram ------------------------------------------------------------------------------------------------------

std::vector<OutputDesc> infer_histogram(const OpCall& call) {
  require_class(call, 0, DtypeClass::kReal);
  const int64_t bins = extent_attribute(call, "bins");
  if (bins < 1) refuse_attribute(call, "bins", "bins is " + std::to_string(bins) + "; expected at least 1");
  return {{COMPUTE_DTYPE_INT64, {bins}}};
}

// The lower edge of a bin as a number of `dtype`: linspace in the dtype of x, or float32 for integers. The last bin
// includes its end, so the edge behind it is the next number. `minimum` and `maximum` are in the dtype `computed`.
std::string edge_text(const OpCall& call, const std::string& bin, compute_dtype bin_dtype, compute_dtype computed,
                      compute_dtype dtype) {
  const compute_dtype given = call.inputs[0].dtype,
                      rounded = is_float(given) ? given : compute_dtype{COMPUTE_DTYPE_FLOAT32};
  const std::string edge = "where(" + bin + " == 0, minimum, where(" + bin + " == bins, maximum, " +
                           even_step("minimum", "maximum", "bins", convert_text(bin, bin_dtype, computed)) + "))";
  return "e = " + convert_text(convert_text(edge, computed, rounded), rounded, dtype) + "; edge = where(" + bin +
         " == bins, nextafter(e, inf), e); ";
}

// Edges are rounded, so only the edge nearest to a number can be on either side of it: the number is in the bin above
// that edge, or in the one below. The first and the last slot collect elements outside all bins. Counts in small
// integers first if they suffice: each element reads and writes one, and devices add them faster.
std::optional<Lowering> lower_histogram(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  Steps steps(call, target);
  const StepOperand y = steps.output();
  const int64_t bins = y.shape[0], room[] = {bins + 3};
  const bool is_small =
      std::max(room[0], element_count(call.inputs[0].extents())) <= std::numeric_limits<int32_t>::max();
  if (alternative > (is_small ? 1 : 0)) return std::nullopt;
  const compute_dtype counted = is_small && alternative == 0 ? COMPUTE_DTYPE_INT32 : COMPUTE_DTYPE_INT64;
  // The counts, and behind them the 1 that is added.
  const StepOperand counts = steps.temporary(counted, room);
  steps.map({"convert(index(0) == last, " + dtype_name(counted) + ")", {extent_term(bins + 2).named("last")}}, {},
            counts);
  if (has_elements(call.inputs[0].extents())) {
    StepOperand x = steps.input(0);
    x = steps.as_collapsed(x, 0, static_cast<int32_t>(x.shape.size()));
    constexpr int64_t kManyBins = 1 << 20;  // positions in float32 do not say which edge is the nearest
    const bool is_wide = !is_float(x.dtype) || bins > kManyBins;
    const compute_dtype computed = is_wide && target.has_float64 ? COMPUTE_DTYPE_FLOAT64 : computed_in(x.dtype);
    const compute_dtype real = is_float(computed) ? computed : compute_dtype{COMPUTE_DTYPE_FLOAT32};
    const compute_dtype wide = target.has_float64 ? COMPUTE_DTYPE_FLOAT64 : COMPUTE_DTYPE_FLOAT32;
    const ScalarTerm count{{ScalarSource::kValue, 0, real, scalar_from_double(static_cast<double>(bins), real)},
                           {real, false, true}};
    const StepOperand slots = steps.temporary(counted, x.shape);
    // The width of the range and its reciprocal are scaled by 0.5 or 2^100 if they are too great for the dtype.
    steps.map(
        {"v = " + convert_text("x", computed_in(x.dtype), real) +
             "; s = where(isfinite(b - a), where(b - a < 8.67361737988403547e-19, 1.267650600228229401e30, 1), 0.5); "
             "slot = convert(min(max(round((v * s - a * s) * (c / (b * s - a * s))), 0), c), " +
             dtype_name(counted) + "); " + edge_text(call, "slot", counted, wide, real) + "slot + convert(v >= edge, " +
             dtype_name(counted) + ")",
         {attribute_term(call, "minimum", real), attribute_term(call, "maximum", real), count,
          attribute_term(call, "minimum", wide).named("minimum"),
          attribute_term(call, "maximum", wide).named("maximum"), extent_term(bins).named("bins")}},
        {x}, slots);
    steps.scatter(slots, broadcast_to(narrowed(counts, 0, bins + 2, 1), x.shape), narrowed(counts, 0, 0, bins + 2), 0,
                  "add", Duplicates::kAnyOrder);
  }
  steps.copy(narrowed(counts, 0, 1, bins), y);
  return steps.take();
}

}  // namespace

const OpRules histogram_1_rules{infer_histogram, lower_histogram, true, COMPUTE_DTYPE_FLOAT64};
const OpRules segment_reduce_1_rules{infer_segment_reduce, lower_segment_reduce};

}  // namespace compute
