// SPDX-License-Identifier: Apache-2.0
// scatter where equal indices must give the same bits each time. A GPU combines updates one after the other far more
// slowly than it combines them in any order, so there the steps do so, in forms whose result has no order.
#include <bit>

#include "core/ops/steps.hpp"

namespace compute {

namespace {

constexpr int64_t kFewUpdates = 32;                     // along the axis: one item combines them in order
constexpr int64_t kMostTerms = (int64_t{1} << 20) - 1;  // of a sum: infinities and NaN are counted in 20 bits each

// Integers wrap, so that their sums and products have no order either.
bool has_no_order(std::string_view reduction, compute_dtype dtype) {
  return reduction != "set" && (is_bool(dtype) || is_integer(dtype));
}

StepOperand filled(Steps& steps, compute_dtype dtype, const StepOperand& like, int64_t value) {
  StepOperand result = steps.temporary(dtype, like.shape);
  steps.fill(result, scalar_from_int64(value, dtype));
  return result;
}

}  // namespace

void Steps::scatter(StepOperand indices, StepOperand updates, StepOperand dst, int32_t axis, std::string_view reduction,
                    Duplicates duplicates) {
  if (!is_ordered(duplicates, reduction, dst.dtype))
    return add_scatter(std::move(indices), std::move(updates), std::move(dst), axis, reduction, false);
  const int64_t terms = indices.shape[static_cast<size_t>(axis)];
  if (target_.is_gpu && terms > kFewUpdates) {
    if (reduction == "set") return set_last(indices, updates, dst, axis);
    if (reduction == "add" && dst.dtype == COMPUTE_DTYPE_FLOAT32 && terms <= kMostTerms)
      return add_without_order(indices, updates, dst, axis);
  }
  add_scatter(std::move(indices), std::move(updates), std::move(dst), axis, reduction, true);
}

void Steps::scatter_into_copy(StepOperand src, StepOperand indices, StepOperand updates, StepOperand dst, int32_t axis,
                              std::string_view reduction, Duplicates duplicates) {
  const bool deterministic = is_ordered(duplicates, reduction, dst.dtype);
  add_scatter(std::move(indices), std::move(updates), std::move(dst), axis, reduction, deterministic);
  Step& step = lowering_.steps.back();
  step.version = 2;
  step.is_optional = true;
  src.access = COMPUTE_PLUGIN_TENSOR_INPUT;
  step.inputs.push_back(std::move(src));
  step.outputs[0].access = COMPUTE_PLUGIN_TENSOR_OUTPUT;
}

bool Steps::is_ordered(Duplicates duplicates, std::string_view reduction, compute_dtype dtype) const {
  const bool in_order =
      duplicates == Duplicates::kInOrder || (duplicates == Duplicates::kAnyOrder && target_.deterministic);
  return in_order && !has_no_order(reduction, dtype);
}

// The last of several updates is the one with the highest coordinate along the axis.
void Steps::set_last(const StepOperand& indices, const StepOperand& updates, const StepOperand& dst, int32_t axis) {
  const StepOperand positions = temporary(COMPUTE_DTYPE_INT32, indices.shape),
                    last = filled(*this, COMPUTE_DTYPE_INT32, dst, -1),
                    given = temporary(COMPUTE_DTYPE_INT32, dst.shape), taken = temporary(dst.dtype, dst.shape);
  map({"convert(index(" + std::to_string(axis) + "), int32)"}, {}, positions);
  add_scatter(indices, positions, last, axis, "max", false);
  map({"max(x, 0)"}, {last}, given);
  gather(updates, given, taken, axis);
  map({"where(x < 0, y, z)"}, {last, dst, taken}, dst);
}

// Sums of integers have no order. Each element of dst has a unit: 2^-bits of the power of two above the greatest of its
// updates. The updates are added as multiples of it, so that a sum is wrong by less than a half unit for each of them.
// Where an update is infinite or NaN, these are counted instead: +inf from bit 0 on, -inf from bit 20, NaN from bit 40.
void Steps::add_without_order(const StepOperand& indices, const StepOperand& updates, const StepOperand& dst,
                              int32_t axis) {
  const auto terms = static_cast<uint64_t>(indices.shape[static_cast<size_t>(axis)]);
  const std::string bits = std::to_string(62 - std::bit_width(terms));
  // Of the bits of the greatest magnitude: the exponent of the unit, in two halves since a float has no 2^188.
  const auto powers = [&](const char* greatest, bool to_units) {
    const std::string exponent = "max(" + std::string(greatest) + " >> 23, 1) - 126 - " + bits;
    const std::string half = "h = (" + exponent + ") >> 1; ";
    const std::string rest = "r = (" + exponent + ") - h; ";
    const std::string sign = to_units ? "127 - " : "127 + ";
    return half + rest + "p = bitcast((" + sign + "h) << 23, float32); q = bitcast((" + sign + "r) << 23, float32); ";
  };
  const StepOperand magnitudes = temporary(COMPUTE_DTYPE_INT32, indices.shape),
                    greatest = filled(*this, COMPUTE_DTYPE_INT32, dst, 0),
                    scales = temporary(COMPUTE_DTYPE_INT32, indices.shape),
                    units = temporary(COMPUTE_DTYPE_INT64, indices.shape),
                    sums = filled(*this, COMPUTE_DTYPE_INT64, dst, 0);
  map({"bitcast(abs(x), int32)"}, {updates}, magnitudes);
  add_scatter(indices, magnitudes, greatest, axis, "max", false);
  gather(greatest, indices, scales, axis);
  map({powers("y", true) + "count = where(isnan(x), 1099511627776, where(isinf(x), where(x > 0, 1, 1048576), 0)); "
                           "where(y >= 2139095040, count, convert(round(x * p * q), int64))"},
      {updates, scales}, units);
  add_scatter(indices, units, sums, axis, "add", false);
  map({powers("y", false) + "up = (x & 1048575) != 0; down = ((x >> 20) & 1048575) != 0; "
                            "special = where((x >> 40 != 0) | (up & down), nan, where(up, inf, -inf)); "
                            "where(y == 0, z, z + where(y >= 2139095040, special, convert(x, float32) * p * q))"},
      {sums, greatest, dst}, dst);
}

}  // namespace compute
