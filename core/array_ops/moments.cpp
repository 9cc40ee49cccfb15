// SPDX-License-Identifier: Apache-2.0
// mean, var and std. The latter two read x twice: first for the mean, then for the squares of the differences from it.
// Of many elements they read it once, in chunks.
#include <limits>
#include <optional>

#include "core/array_ops/reduction.hpp"

namespace compute {

namespace {

std::vector<OutputDesc> infer_mean(const OpCall& call) {
  require_class(call, 0, DtypeClass::kInexact);
  return {{call.inputs[0].dtype, read_reduction(call).shape}};
}

std::vector<OutputDesc> infer_variance(const OpCall& call) {
  require_class(call, 0, DtypeClass::kInexact);
  return {{real_part_dtype(call.inputs[0].dtype), read_reduction(call).shape}};
}

// A complex number by a real one, each part rounded once.
StepExpression divided(compute_dtype dtype, int64_t count) {
  return {is_complex(dtype) ? "complex(real(x) / a, imag(x) / a)" : "x / a", {extent_term(count)}};
}

std::optional<Lowering> lower_mean(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 0) return std::nullopt;
  Steps steps(call, target);
  const Reduction reduction = read_reduction(call);
  const StepOperand output = reduced_output(steps, reduction);
  if (reduction.count == 0) {
    steps.fill(output, scalar_from_double(std::numeric_limits<double>::quiet_NaN(), output.dtype));
    return steps.take();
  }
  const StepOperand x = steps.input(0);
  const compute_dtype accumulator = computed_in(x.dtype);
  steps.reduce("sum", accumulator, reduction.axes, {"x"}, {x}, divided(accumulator, reduction.count), output);
  return steps.take();
}

// From `square_sum`, the sum of the squares of the differences from the mean. A correction of n or more divides by 0:
// infinite, or NaN where nothing differs.
StepExpression variance_of(const OpCall& call, int64_t count, compute_dtype accumulator, bool root) {
  const std::string variance = "square_sum / max(count - correction, 0)";
  return {root ? "sqrt(" + variance + ")" : variance,
          {extent_term(count).named("count"), attribute_term(call, "correction", accumulator).named("correction")},
          {"square_sum"}};
}

constexpr int64_t kManyBytes = int64_t{16} << 20;  // of one result: more than a second reading finds in most caches
constexpr int64_t kShortestChunk = 1024, kLongestChunk = 4096;  // elements, which a group of work items can hold

// The length of chunks that divide `count` elements evenly; 0: there is none.
int64_t chunk_of(int64_t count) {
  for (int64_t length = kLongestChunk; length >= kShortestChunk; --length) {
    if (count % length == 0) return length;
  }
  return 0;
}

// A row for each chunk of neighbouring elements, which the device holds while it computes the mean m of the chunk,
// s = sum(x - m), which is not 0 because m was rounded, and q = sum((x - m)^2). Then
//   sum((x - mean)^2) = sum over chunks of q + 2 s (m - mean) + length (m - mean)^2
// holds for every m, and the differences m - mean are as exact as x - mean.
std::optional<Lowering> lower_variance_in_chunks(const OpCall& call, const LoweringTarget& target,
                                                 const Reduction& reduction, bool root) {
  if (!target.is_gpu) return std::nullopt;  // processors read caches fast enough
  Steps steps(call, target);
  const StepOperand x = steps.input(0);
  const auto first = static_cast<int32_t>(reduction.axes.front());
  const auto reduced = static_cast<int32_t>(reduction.axes.size());
  const bool are_neighbours = reduction.axes.back() - first == reduced - 1;
  if (is_complex(x.dtype) || !are_neighbours || reduction.count * dtype_size(x.dtype) < kManyBytes) return std::nullopt;
  const int64_t length = chunk_of(reduction.count);
  const std::optional<StepOperand> line = collapsed(x, first, reduced);
  if (length == 0 || !line || line->strides[static_cast<size_t>(first)] != 1) return std::nullopt;
  const int64_t extents[] = {reduction.count / length, length};
  const StepOperand chunks = split_axis(*line, first, extents);
  std::vector<int64_t> shape = chunks.shape;
  shape[static_cast<size_t>(first) + 1] = 1;
  const compute_dtype computed = computed_in(x.dtype);
  const StepOperand means = steps.temporary(computed, shape), rests = steps.temporary(computed, shape),
                    squares = steps.temporary(computed, shape);
  Row row{{chunks}, {first + 1}, {}};
  row.stages.push_back({"sum", computed, {"x"}, divided(computed, length), computed, "mean"});
  row.stages.push_back({"sum", computed, {"x - mean"}, {"x"}, computed});
  row.stages.push_back({"sum", computed, {"(x - mean) * (x - mean)"}, {"x"}, computed});
  row.stored = {{0, means}, {1, rests}, {2, squares}};
  steps.row(row);
  StepOperand output = reduced_output(steps, reduction);
  for (int32_t axes = reduced; axes > 2; --axes) output = without_axis(std::move(output), first);
  if (reduced == 1) output = with_axis(std::move(output), first);
  Row all{{means, rests, squares}, {first}, {}};
  all.names = {"m", "s", "q"};
  const std::vector<ScalarTerm> scalars = {extent_term(length).named("length")};
  all.stages.push_back({"sum", computed, {"m + s / length", scalars}, divided(computed, extents[0]), computed, "mean"});
  all.stages.push_back({"sum",
                        computed,
                        {"q + (2 * s + length * (m - mean)) * (m - mean)", scalars},
                        variance_of(call, reduction.count, computed, root),
                        output.dtype});
  all.stored.push_back({1, output});
  steps.row_in_steps(all);
  return steps.take();
}

std::optional<Lowering> lower_variance(const OpCall& call, const LoweringTarget& target, bool root,
                                       int32_t alternative) {
  const Reduction reduction = read_reduction(call);
  if (reduction.count > 0 && !reduction.axes.empty()) {
    std::optional<Lowering> in_chunks = lower_variance_in_chunks(call, target, reduction, root);
    if (in_chunks && alternative == 0) return in_chunks;
    if (in_chunks) --alternative;
  }
  if (alternative > 1) return std::nullopt;
  Steps steps(call, target);
  const StepOperand output = reduced_output(steps, reduction);
  if (reduction.count == 0) {
    if (alternative > 0) return std::nullopt;
    steps.fill(output, scalar_from_double(std::numeric_limits<double>::quiet_NaN(), output.dtype));
    return steps.take();
  }
  const StepOperand x = steps.input(0);
  const compute_dtype computed = computed_in(x.dtype), accumulator = real_part_dtype(computed);
  const std::string squares = is_complex(computed) ? "real(x - mean) * real(x - mean) + imag(x - mean) * imag(x - mean)"
                                                   : "(x - mean) * (x - mean)";
  Row row{{x}, reduction.axes, {}};
  row.stages.push_back({"sum", computed, {"x"}, divided(computed, reduction.count), computed, "mean"});
  row.stages.push_back(
      {"sum", accumulator, {squares}, variance_of(call, reduction.count, accumulator, root), output.dtype});
  row.stored.push_back({1, output});
  alternative == 0 ? steps.row(row) : steps.row_in_steps(row);
  return steps.take();
}

std::optional<Lowering> lower_var(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  return lower_variance(call, target, false, alternative);
}

std::optional<Lowering> lower_std(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  return lower_variance(call, target, true, alternative);
}

}  // namespace

const OpRules mean_1_rules{infer_mean, lower_mean};
const OpRules std_1_rules{infer_variance, lower_std, true};
const OpRules var_1_rules{infer_variance, lower_var, true};

}  // namespace compute
