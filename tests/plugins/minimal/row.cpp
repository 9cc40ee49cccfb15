// SPDX-License-Identifier: Apache-2.0
// The optional primitive `row`: no result of a stage ever lies in memory, unless the op stores it.
#include <algorithm>

#include "index_space.hpp"
#include "minimal.hpp"
#include "plan.hpp"

namespace minimal {

void prepare_row(Plan& plan, const compute_plugin_op& op) {
  const auto axes = attribute<int64_t>(op, "axes");
  plan.reduced.assign(axes.begin(), axes.end());
  std::erase_if(plan.kept, [&](int64_t axis) { return std::find(axes.begin(), axes.end(), axis) != axes.end(); });
  const auto kinds = attribute<compute_string>(op, "kinds");
  const auto accumulators = attribute<int32_t>(op, "accumulators");
  if (kinds.size() != accumulators.size() || plan.programs.size() / 2 != kinds.size())
    throw Refused{COMPUTE_PLUGIN_REFUSE_ATTRIBUTE, -1, "every stage has a kind, an accumulator and two expressions"};
  for (size_t i = 0; i < kinds.size(); ++i) {
    plan.combines.push_back(find_combination({kinds[i].data, static_cast<size_t>(kinds[i].size)}, accumulators[i]));
  }
  int64_t scalars = 0;
  for (int32_t i = 0; i < op.expression_count; ++i) {
    plan.first_scalars.push_back(scalars);
    scalars += op.expressions[i]->scalar_count;
  }
  const int64_t outputs = static_cast<int64_t>(plan.tensors.size()) - plan.input_count;
  const auto stored = attribute<int64_t>(op, "stored");
  plan.stored.assign(stored.begin(), stored.end());
  for (size_t i = 0; i < stored.size(); ++i) {
    const compute_plugin_expression& after = *op.expressions[2 * stored[i] + 1];
    const int32_t dtype = after.nodes[after.outputs[0]].dtype;
    const Tensor& output = plan.output(outputs - static_cast<int64_t>(stored.size() - i));
    plan.narrows.push_back(find_function(COMPUTE_PLUGIN_INTRINSIC_CONVERT, dtype, output.dtype));
  }
}

namespace {

// One row after another: the stages, then the map.
class Row {
 public:
  Row(const Plan& plan, const Operands& operands)
      : plan_(plan), operands_(operands), position_(plan.tensors[0].shape), results_(plan.combines.size()) {
    for (int64_t axis : plan.reduced) terms_ *= plan.tensors[0].shape[axis];
    for (const Program& program : plan.programs) {
      values_.resize(std::max(values_.size(), static_cast<size_t>(program.node_count())));
    }
  }

  void run() {
    for (size_t stage = 0; stage < results_.size(); ++stage) {
      const Value combined = combine(stage, terms_);  // which leaves the reduced axes at 0
      results_[stage] = evaluate(2 * stage + 1, {combined.bytes}, stage)[plan_.programs[2 * stage + 1].output(0)];
    }
    if (plan_.programs.size() % 2 != 0) map();
    store();
    position_.step(plan_.kept);
  }

 private:
  // In pairs, pairs of pairs and so on, as reduce does.
  Value combine(size_t stage, int64_t count) {
    if (count == 1) {
      const Value value = evaluate(2 * stage, elements(), stage)[plan_.programs[2 * stage].output(0)];
      position_.step(plan_.reduced);
      return value;
    }
    const Value first = combine(stage, count / 2), second = combine(stage, count - count / 2);
    return plan_.combines[stage](first, second, second);
  }

  void map() {
    const Program& program = plan_.programs.back();
    for (int64_t n = terms_; n > 0; --n, position_.step(plan_.reduced)) {
      const std::vector<Value>& values = evaluate(plan_.programs.size() - 1, elements(), results_.size());
      for (int64_t i = 0; i < program.output_count(); ++i) put(i, values[program.output(i)]);
    }
  }

  void store() {
    const auto outputs = static_cast<int64_t>(plan_.tensors.size()) - plan_.input_count;
    const int64_t first = outputs - static_cast<int64_t>(plan_.stored.size());
    for (size_t i = 0; i < plan_.stored.size(); ++i) {
      const Value& result = results_[plan_.stored[i]];
      put(first + static_cast<int64_t>(i), plan_.narrows[i](result, result, result));
    }
  }

  void put(int64_t output, const Value& value) {
    const Tensor& tensor = plan_.output(output);
    std::memcpy(operands_.tensors[plan_.input_count + output] + tensor.offset(position_.data()), value.bytes,
                tensor.element_bytes);
  }

  // The inputs at this position.
  std::vector<const std::byte*> elements() const {
    std::vector<const std::byte*> inputs;
    for (int64_t i = 0; i < plan_.input_count; ++i) {
      inputs.push_back(operands_.tensors[i] + plan_.tensors[i].offset(position_.data()));
    }
    return inputs;
  }

  // All nodes of a program over `inputs` and the results of the first `stages` stages.
  const std::vector<Value>& evaluate(size_t program, std::vector<const std::byte*> inputs, size_t stages) {
    for (size_t i = 0; i < stages; ++i) inputs.push_back(results_[i].bytes);
    const compute_plugin_scalar* scalars = operands_.scalars.data() + plan_.first_scalars[program];
    plan_.programs[program].evaluate({inputs.data(), scalars, position_.data()}, values_.data());
    return values_;
  }

  const Plan& plan_;
  const Operands& operands_;
  Position position_;
  int64_t terms_ = 1;
  std::vector<Value> results_;
  std::vector<Value> values_;
};

}  // namespace

compute_plugin_fault run_row(const Plan& plan, const Operands& operands) {
  int64_t rows = 1;
  for (const int64_t axis : plan.kept) rows *= plan.tensors[0].shape[axis];
  Row row(plan, operands);
  for (int64_t n = rows; n > 0; --n) row.run();
  return kNoFault;
}

}  // namespace minimal
