// SPDX-License-Identifier: Apache-2.0
#include "core/network_ops/product_steps.hpp"

#include <utility>

namespace compute {

void collapse_rows(StepOperand& x, StepOperand& y) {
  const auto leading = static_cast<int32_t>(x.shape.size()) - 1;
  if (leading == 0) {
    x = with_axis(std::move(x), 0);
    y = with_axis(std::move(y), 0);
  } else if (const auto rows = collapsed(x, 0, leading), results = collapsed(y, 0, leading); rows && results) {
    x = *rows;
    y = *results;
  }
}

void add_contraction(Steps& steps, const StepOperand& x, const StepOperand& weight, const StepOperand& bias,
                     const StepOperand& y) {
  std::vector<StepOperand> inputs = {x, weight};
  if (!bias.is_absent()) inputs.insert(inputs.end(), {StepOperand{}, bias});
  Step& step = steps.add("contraction", std::move(inputs), y);
  step.attributes.resize(1);
  step.attributes[0].name = "scaled";
  step.attributes[0].integers = {0};
}

void add_sums(Steps& steps, const StepOperand& x, const StepOperand& weight, const StepOperand& y) {
  const auto rank = static_cast<int32_t>(y.shape.size());
  std::vector<int64_t> space = y.shape;
  space.push_back(x.shape.back());
  StepOperand columns = weight;
  std::swap(columns.shape[columns.shape.size() - 2], columns.shape.back());
  std::swap(columns.strides[columns.strides.size() - 2], columns.strides.back());
  const int64_t axis = rank;
  steps.reduce("sum", computed_in(y.dtype), {&axis, 1}, {"x * y"},
               {broadcast_to(with_axis(x, rank - 1), space), broadcast_to(with_axis(columns, rank - 2), space)}, {"x"},
               with_axis(y, rank));
}

}  // namespace compute
