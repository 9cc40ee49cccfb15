// SPDX-License-Identifier: Apache-2.0
// sort, argsort and top_k.
#include <algorithm>
#include <string>

#include "core/ops/rules.hpp"
#include "core/sorting_ops/parts.hpp"

namespace compute {

namespace {

void check_order(const OpCall& call) {
  const compute_dtype dtype = call.inputs[0].dtype;
  if (!is_bool(dtype)) require_class(call, 0, DtypeClass::kReal);
  axis_attribute(call, call.inputs[0].rank);
}

std::vector<OutputDesc> infer_sort(const OpCall& call) {
  check_order(call);
  flag_attribute(call, "descending");
  return {{call.inputs[0].dtype, shape_of(call)}};
}

std::vector<OutputDesc> infer_argsort(const OpCall& call) {
  std::vector<OutputDesc> outputs = infer_sort(call);
  outputs[0].dtype = COMPUTE_DTYPE_INT64;
  return outputs;
}

std::vector<OutputDesc> infer_top_k(const OpCall& call) {
  check_order(call);
  flag_attribute(call, "largest");
  const int64_t k = extent_attribute(call, "k");
  std::vector<int64_t> shape = shape_of(call);
  int64_t& extent = shape[static_cast<size_t>(axis_attribute(call, call.inputs[0].rank))];
  if (k > extent) {
    refuse_attribute(call, "k",
                     "k is " + std::to_string(k) + ", but x of shape " + shape_text(call.inputs[0].extents()) +
                         " has " + std::to_string(extent) + " elements along the axis");
  }
  extent = k;
  return {{call.inputs[0].dtype, shape}, {COMPUTE_DTYPE_INT64, shape}};
}

std::optional<Lowering> lower(const OpCall& call, const LoweringTarget& target, int32_t alternative,
                              bool wants_indices) {
  if (alternative > 1) return std::nullopt;
  Steps steps(call, target);
  const StepOperand y = steps.output();
  const int32_t axis = axis_attribute(call, call.inputs[0].rank);
  sort(steps, steps.input(0), axis, flag_attribute(call, "descending"), wants_indices ? StepOperand{} : y,
       wants_indices ? y : StepOperand{}, alternative == 0);
  return steps.take();
}

std::optional<Lowering> lower_sort(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  return lower(call, target, alternative, false);
}
std::optional<Lowering> lower_argsort(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  return lower(call, target, alternative, true);
}

struct TopK {
  StepOperand values, indices;
};

constexpr int64_t kPart = 2048;  // elements that plugins sort without passes over memory
constexpr int64_t kLeastParts = 8;

// Stores the elements that sort first, as many as `to` has along the axis.
void store_first(Steps& steps, const TopK& sorted, int32_t axis, const TopK& to) {
  const int64_t k = to.values.shape[static_cast<size_t>(axis)];
  steps.copy(narrowed(sorted.values, axis, 0, k), to.values);
  steps.copy(narrowed(sorted.indices, axis, 0, k), to.indices);
}

TopK sorted_along(Steps& steps, const StepOperand& x, int32_t axis, bool largest, bool is_native) {
  TopK result{steps.temporary(x.dtype, x.shape), steps.temporary(COMPUTE_DTYPE_INT64, x.shape)};
  sort(steps, x, axis, largest, result.values, result.indices, is_native);
  return result;
}

// A long axis is split into parts, each of which may contain all k. The k elements of each part keep the order of x, so
// that equal elements do too.
void top_k(Steps& steps, const StepOperand& x, int32_t axis, bool largest, const TopK& to, bool is_native) {
  const auto at = static_cast<size_t>(axis);
  const int64_t n = x.shape[at], k = to.values.shape[at], parts = n / kPart, rest = n - parts * kPart;
  if (!is_native || k == 0 || parts < kLeastParts || k > kPart / kLeastParts)
    return store_first(steps, sorted_along(steps, x, axis, largest, is_native), axis, to);
  std::vector<int64_t> shape = x.shape;
  shape[at] = parts * k + std::min(rest, k);
  const TopK found{steps.temporary(x.dtype, shape), steps.temporary(COMPUTE_DTYPE_INT64, shape)};
  const int64_t whole[] = {parts, kPart}, kept[] = {parts, k};
  const TopK sorted =
      sorted_along(steps, split_axis(narrowed(x, axis, 0, parts * kPart), axis, whole), axis + 1, largest, is_native);
  steps.copy(narrowed(sorted.values, axis + 1, 0, k),
             split_axis(narrowed(found.values, axis, 0, parts * k), axis, kept));
  steps.map({"x + a * index(" + std::to_string(axis) + ")", {extent_term(kPart)}},
            {narrowed(sorted.indices, axis + 1, 0, k)},
            split_axis(narrowed(found.indices, axis, 0, parts * k), axis, kept));
  if (rest > 0) {
    const int64_t count = std::min(rest, k);
    const TopK last = sorted_along(steps, narrowed(x, axis, parts * kPart, rest), axis, largest, is_native);
    steps.copy(narrowed(last.values, axis, 0, count), narrowed(found.values, axis, parts * k, count));
    steps.map({"x + a", {extent_term(parts * kPart)}}, {narrowed(last.indices, axis, 0, count)},
              narrowed(found.indices, axis, parts * k, count));
  }
  const TopK best{to.values, steps.temporary(COMPUTE_DTYPE_INT64, to.indices.shape)};
  top_k(steps, found.values, axis, largest, best, is_native);
  steps.gather(found.indices, best.indices, to.indices, axis);
}

std::optional<Lowering> lower_top_k(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 1) return std::nullopt;
  Steps steps(call, target);
  top_k(steps, steps.input(0), axis_attribute(call, call.inputs[0].rank), flag_attribute(call, "largest"),
        {steps.output(0), steps.output(1)}, alternative == 0);
  return steps.take();
}

}  // namespace

const OpRules argsort_1_rules{infer_argsort, lower_argsort};
const OpRules sort_1_rules{infer_sort, lower_sort};
const OpRules top_k_1_rules{infer_top_k, lower_top_k, true};

}  // namespace compute
