// SPDX-License-Identifier: Apache-2.0
// random_permutation: the order of random keys. Equal keys stay in order, which favours no element noticeably.
#include "core/array_ops/random.hpp"
#include "core/ops/rules.hpp"
#include "core/sorting_ops/parts.hpp"

namespace compute {

namespace {

std::vector<OutputDesc> infer_permutation(const OpCall& call) {
  const compute_dtype dtype = dtype_attribute(call, "dtype");
  const int64_t size = extent_attribute(call, "size");
  if (dtype != COMPUTE_DTYPE_INT32 && dtype != COMPUTE_DTYPE_INT64)
    refuse_attribute(call, "dtype", "dtype is " + dtype_name(dtype) + "; expected int32 or int64");
  if (dtype == COMPUTE_DTYPE_INT32 && size > int64_t{1} << 31)
    refuse_attribute(call, "size", "size is " + std::to_string(size) + ", which int32 cannot count");
  return {{dtype, {size}}};
}

std::optional<Lowering> lower_permutation(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 1) return std::nullopt;
  Steps steps(call, target);
  const StepOperand y = steps.output();
  const StepOperand keys = steps.temporary(COMPUTE_DTYPE_UINT64, y.shape);
  const StepOperand order = y.dtype == COMPUTE_DTYPE_INT64 ? y : steps.temporary(COMPUTE_DTYPE_INT64, y.shape);
  draw_words(steps, call, keys);
  sort(steps, keys, 0, false, {}, order, alternative == 0);
  if (y.dtype != COMPUTE_DTYPE_INT64) steps.copy(order, y);
  return steps.take();
}

}  // namespace

const OpRules random_permutation_1_rules{infer_permutation, lower_permutation, true, COMPUTE_DTYPE_INT64};

}  // namespace compute
