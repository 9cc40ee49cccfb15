// SPDX-License-Identifier: Apache-2.0
#include "core/linalg_ops/matrices.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "core/expressions/dtype.hpp"

namespace compute {

namespace {

std::vector<int64_t> joined(std::vector<int64_t> shape, std::initializer_list<int64_t> more) {
  shape.insert(shape.end(), more);
  return shape;
}

std::vector<int64_t> broadcast_batches(const OpCall& call, std::span<const int64_t> a, std::span<const int64_t> b) {
  std::vector<int64_t> batch(std::max(a.size(), b.size()), 1);
  for (const std::span<const int64_t> extents : {a, b}) {
    for (size_t i = 0; i < extents.size(); ++i) {
      int64_t& extent = batch[batch.size() - extents.size() + i];
      if (extent != 1 && extents[i] != 1 && extent != extents[i]) {
        refuse(call,
               "shapes " + shape_text(call.inputs[0].extents()) + " and " + shape_text(call.inputs[1].extents()) +
                   " do not broadcast in their batch axes",
               1);
      }
      if (extent == 1) extent = extents[i];
    }
  }
  return batch;
}

// The distance from 1 to the next number.
double epsilon_of(compute_dtype dtype) {
  switch (real_part_dtype(dtype)) {
    case COMPUTE_DTYPE_FLOAT16:
      return std::ldexp(1., -10);
    case COMPUTE_DTYPE_BFLOAT16:
      return std::ldexp(1., -7);
    case COMPUTE_DTYPE_FLOAT32:
      return std::ldexp(1., -23);
    default:
      return std::ldexp(1., -52);
  }
}

}  // namespace

std::vector<int64_t> Matrices::with(std::initializer_list<int64_t> more) const { return joined(batch, more); }
std::vector<int64_t> System::with(std::initializer_list<int64_t> more) const { return joined(batch, more); }

Matrices matrices_of(const OpCall& call, int32_t index) {
  const std::span<const int64_t> shape = call.inputs[static_cast<size_t>(index)].extents();
  if (shape.size() < 2) {
    refuse(
        call,
        call.schema.input_name(index) + " has rank " + std::to_string(shape.size()) + "; expected matrices [..., m, n]",
        index);
  }
  return {{shape.begin(), shape.end() - 2}, shape[shape.size() - 2], shape[shape.size() - 1]};
}

Matrices square_matrices_of(const OpCall& call, int32_t index) {
  Matrices result = matrices_of(call, index);
  if (result.rows != result.columns) {
    refuse(call,
           call.schema.input_name(index) + " has matrices of shape " +
               shape_text(std::vector{result.rows, result.columns}) + ", which are not square",
           index);
  }
  return result;
}

System system_of(const OpCall& call) {
  System system;
  system.a = matrices_of(call, 0);
  const std::span<const int64_t> b = call.inputs[1].extents();
  if (b.empty()) refuse(call, "b has rank 0; expected a vector or matrices", 1);
  system.is_vector = b.size() == 1;
  const int64_t rows = system.is_vector ? b[0] : b[b.size() - 2];
  if (rows != system.a.rows) {
    refuse(call,
           "a has " + std::to_string(system.a.rows) + " rows, but b of shape " + shape_text(b) + " has " +
               std::to_string(rows),
           1);
  }
  if (!system.is_vector) system.count = b.back();
  system.batch =
      broadcast_batches(call, system.a.batch, system.is_vector ? std::span<const int64_t>() : b.first(b.size() - 2));
  return system;
}

int32_t rank_of(const StepOperand& operand) { return static_cast<int32_t>(operand.shape.size()); }

StepOperand transposed(const StepOperand& matrices) {
  StepOperand result = matrices;
  const size_t rank = result.shape.size();
  std::swap(result.shape[rank - 2], result.shape[rank - 1]);
  std::swap(result.strides[rank - 2], result.strides[rank - 1]);
  return result;
}

StepOperand adjoint(Steps& steps, const StepOperand& matrices) {
  if (!is_complex(matrices.dtype)) return transposed(matrices);
  const StepOperand conjugate = steps.temporary(matrices.dtype, matrices.shape);
  steps.map({"conj(x)"}, {matrices}, conjugate);
  return transposed(conjugate);
}

StepOperand diagonal_of(const StepOperand& matrices) {
  StepOperand result = matrices;
  const int64_t rows = result.shape[result.shape.size() - 2], row_stride = result.strides[result.shape.size() - 2];
  result.shape.erase(result.shape.end() - 2);
  result.strides.erase(result.strides.end() - 2);
  result.shape.back() = std::min(result.shape.back(), rows);
  result.strides.back() += row_stride;
  return result;
}

void decompose(Steps& steps, const char* name, const std::vector<StepOperand>& inputs,
               const std::vector<StepOperand>& outputs, std::initializer_list<std::pair<const char*, bool>> flags) {
  std::vector<StepOperand> wide_inputs, wide_outputs;
  for (const StepOperand& input : inputs) wide_inputs.push_back(steps.as_dtype(input, computed_in(input.dtype)));
  for (const StepOperand& output : outputs) {
    const compute_dtype dtype = computed_in(output.dtype);
    wide_outputs.push_back(dtype == output.dtype ? output : steps.temporary(dtype, output.shape));
  }
  const std::vector<StepOperand> results = wide_outputs;
  Step& step = steps.add(name, std::move(wide_inputs), std::move(wide_outputs));
  for (const auto& [flag, value] : flags) {
    if (!value) continue;
    StepAttribute& attribute = step.attributes.emplace_back();
    attribute.name = flag;
    attribute.integers = {1};
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (results[i].dtype != outputs[i].dtype) steps.copy(results[i], outputs[i]);
  }
}

void multiply(Steps& steps, const StepOperand& a, const StepOperand& b, const StepOperand& c, bool is_reduction) {
  if (is_reduction) {
    const int32_t axis = rank_of(c);
    const StepOperand rows = with_axis(a, axis - 1, b.shape.back()), sums = with_axis(c, axis),
                      columns = with_axis(transposed(b), axis - 2, a.shape[a.shape.size() - 2]);
    const int64_t last = axis;
    steps.reduce("sum", c.dtype, {&last, 1}, {"x * y"}, {rows, columns}, {"x"}, sums);
    return;
  }
  Step& step = steps.add("contraction", {a, b}, c);
  step.attributes.resize(1);
  step.attributes[0].name = "scaled";
  step.attributes[0].integers = {0};
}

void fill_unit(Steps& steps, const StepOperand& matrices) {
  const int32_t rank = rank_of(matrices);
  steps.map({"where(index(" + std::to_string(rank - 2) + ") == index(" + std::to_string(rank - 1) + "), 1, 0)"}, {},
            matrices);
}

void fill_number(Steps& steps, const StepOperand& operand, const char* number) { steps.map({number}, {}, operand); }

void check_tolerance(const OpCall& call, int32_t index, const Matrices& x) {
  if (static_cast<size_t>(index) >= call.inputs.size()) return;
  const OperandDesc& rtol = call.inputs[static_cast<size_t>(index)];
  if (rtol.dtype == COMPUTE_DTYPE_NONE) return;
  require_class(call, index, DtypeClass::kReal);
  const std::span<const int64_t> shape = rtol.extents();
  bool fits = shape.size() <= x.batch.size();
  for (size_t i = 0; fits && i < shape.size(); ++i) {
    const int64_t extent = x.batch[x.batch.size() - shape.size() + i];
    fits = shape[i] == 1 || shape[i] == extent;
  }
  if (!fits)
    refuse(call, "rtol of shape " + shape_text(shape) + " does not broadcast to the batch " + shape_text(x.batch),
           index);
}

StepOperand tolerance(Steps& steps, const OpCall& call, int32_t index, const Matrices& x, compute_dtype dtype) {
  if (steps.has_input(index)) {
    StepOperand rtol = steps.as_dtype(steps.input(index, dtype), dtype);
    return broadcast_to(with_axis(rtol, rank_of(rtol)), x.with({1}));
  }
  const StepOperand one = steps.temporary(dtype, {});
  const double value = static_cast<double>(std::max(x.rows, x.columns)) * epsilon_of(call.inputs[0].dtype);
  steps.fill(one, scalar_from_double(value, dtype));
  return broadcast_to(with_axis(one, 0), x.with({1}));
}

}  // namespace compute
