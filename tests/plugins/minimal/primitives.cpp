// SPDX-License-Identifier: Apache-2.0
// The five required primitives, and the table of all. Each is a loop over an index space that visits one position at a
// time.
#include <algorithm>
#include <numeric>
#include <span>

#include "index_space.hpp"
#include "minimal.hpp"
#include "plan.hpp"

namespace minimal {
namespace {

// An expression over a plan's inputs, evaluated at one position after another.
class Evaluation {
 public:
  Evaluation(const Plan& plan, const Operands& operands)
      : plan_(plan), operands_(operands), inputs_(plan.input_count), values_(plan.programs[0].node_count()) {}

  // The values of all nodes; they hold until the next call.
  const std::vector<Value>& at(const Position& position) {
    for (int64_t i = 0; i < plan_.input_count; ++i) {
      inputs_[i] = operands_.tensors[i] + plan_.tensors[i].offset(position.data());
    }
    plan_.programs[0].evaluate({inputs_.data(), operands_.scalars.data(), position.data()}, values_.data());
    return values_;
  }

 private:
  const Plan& plan_;
  const Operands& operands_;
  std::vector<const std::byte*> inputs_;
  std::vector<Value> values_;
};

// Stores a program's results in the outputs, which all have the shape that `position` is in (with extent 1 if it is
// reduced).
void store_outputs(const Plan& plan, const Operands& operands, const Position& position, const Program& program,
                   const std::vector<Value>& values) {
  for (int64_t i = 0; i < program.output_count(); ++i) {
    const Tensor& output = plan.output(i);
    std::memcpy(operands.tensors[plan.input_count + i] + output.offset(position.data()),
                values[program.output(i)].bytes, output.element_bytes);
  }
}

}  // namespace

Function find_combination(std::string_view kind, int32_t dtype) {
  struct Row {
    std::string_view kind;
    int32_t intrinsic;
  };
  static constexpr Row kRows[] = {
      {"sum", COMPUTE_PLUGIN_INTRINSIC_ADD},     {"add", COMPUTE_PLUGIN_INTRINSIC_ADD},
      {"prod", COMPUTE_PLUGIN_INTRINSIC_MUL},    {"mul", COMPUTE_PLUGIN_INTRINSIC_MUL},
      {"min", COMPUTE_PLUGIN_INTRINSIC_MIN},     {"max", COMPUTE_PLUGIN_INTRINSIC_MAX},
      {"all", COMPUTE_PLUGIN_INTRINSIC_BIT_AND}, {"any", COMPUTE_PLUGIN_INTRINSIC_BIT_OR},
  };
  const auto row =
      std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& candidate) { return candidate.kind == kind; });
  if (row == std::end(kRows))
    throw Refused{COMPUTE_PLUGIN_REFUSE_ATTRIBUTE, -1, "the values are combined in an unknown way"};
  const Function function = find_function(row->intrinsic, dtype, dtype);
  if (function == nullptr) throw Refused{COMPUTE_PLUGIN_REFUSE_DTYPE, -1, "values of this dtype do not combine so"};
  return function;
}

namespace {

// ---- map ------------------------------------------------------------------------------------------------------------

void prepare_map(Plan&, const compute_plugin_op&) {}

compute_plugin_fault run_map(const Plan& plan, const Operands& operands) {
  const std::vector<int64_t>& space = plan.output(0).shape;
  Evaluation evaluation(plan, operands);
  Position position(space);
  for (int64_t n = element_count(space); n > 0; --n, position.step(plan.kept)) {
    store_outputs(plan, operands, position, plan.programs[0], evaluation.at(position));
  }
  return kNoFault;
}

// ---- copy -----------------------------------------------------------------------------------------------------------

void prepare_copy(Plan& plan, const compute_plugin_op&) {
  const int32_t from = plan.tensors[0].dtype, to = plan.tensors[1].dtype;
  plan.widen = find_function(COMPUTE_PLUGIN_INTRINSIC_CONVERT, from, to);
  if (from == to && from == packed_dtype()) plan.widen = [](const Value& x, const Value&, const Value&) { return x; };
  if (plan.widen == nullptr) throw Refused{COMPUTE_PLUGIN_REFUSE_DTYPE, 0, "a complex number is no real one"};
}

compute_plugin_fault run_copy(const Plan& plan, const Operands& operands) {
  const Tensor &input = plan.tensors[0], &output = plan.tensors[1];
  Position position(output.shape);
  for (int64_t n = element_count(output.shape); n > 0; --n, position.step(plan.kept)) {
    const Value value = load(operands.tensors[0] + input.offset(position.data()), input.element_bytes);
    const Value result = plan.widen(value, value, value);
    std::memcpy(operands.tensors[1] + output.offset(position.data()), result.bytes, output.element_bytes);
  }
  return kNoFault;
}

// ---- reduce ---------------------------------------------------------------------------------------------------------

void prepare_reduce(Plan& plan, const compute_plugin_op& op) {
  const auto axes = attribute<int64_t>(op, "axes");
  plan.reduced.assign(axes.begin(), axes.end());
  std::erase_if(plan.kept, [&](int64_t axis) { return std::find(axes.begin(), axes.end(), axis) != axes.end(); });
  plan.before_scalars = op.expressions[0]->scalar_count;
  const auto accumulator = attribute<int32_t>(op, "accumulator");
  if (accumulator.empty()) throw Refused{COMPUTE_PLUGIN_REFUSE_ATTRIBUTE, -1, "reduce has no accumulator"};
  plan.combine = find_combination(text_attribute(op, "kind"), accumulator[0]);
}

class Reduction {
 public:
  Reduction(const Plan& plan, const Operands& operands, Position& position)
      : plan_(plan), position_(position), before_(plan, operands) {}

  // Combines the next `count` terms in pairs, pairs of pairs and so on: the error of a sum grows with the logarithm of
  // the count.
  Value combine(int64_t count) {
    if (count == 1) return term();
    const Value first = combine(count / 2);
    const Value second = combine(count - count / 2);
    return plan_.combine(first, second, second);
  }

 private:
  Value term() {
    const Value value = before_.at(position_)[plan_.programs[0].output(0)];
    position_.step(plan_.reduced);
    return value;
  }

  const Plan& plan_;
  Position& position_;
  Evaluation before_;
};

compute_plugin_fault run_reduce(const Plan& plan, const Operands& operands) {
  const Program& after = plan.programs[1];
  const std::vector<int64_t>& space = plan.tensors[0].shape;
  const int64_t results = element_count(plan.output(0).shape);
  const int64_t terms = element_count(space) / results;
  std::vector<Value> values(after.node_count());
  Position position(space);
  Reduction reduction(plan, operands, position);
  for (int64_t n = results; n > 0; --n, position.step(plan.kept)) {
    const Value combined = reduction.combine(terms);  // which leaves the reduced axes at 0
    const std::byte* input = combined.bytes;
    after.evaluate({&input, operands.scalars.data() + plan.before_scalars, position.data()}, values.data());
    store_outputs(plan, operands, position, after, values);
  }
  return kNoFault;
}

// ---- gather and scatter ---------------------------------------------------------------------------------------------

void prepare_indexed(Plan& plan, const compute_plugin_op& op, int64_t indices) {
  const auto axis = attribute<int64_t>(op, "axis");
  plan.axis = axis.empty() ? 0 : axis[0];
  plan.locate = find_function(COMPUTE_PLUGIN_INTRINSIC_CONVERT, plan.tensors[indices].dtype, COMPUTE_DTYPE_INT64);
}

void prepare_gather(Plan& plan, const compute_plugin_op& op) { prepare_indexed(plan, op, 1); }

void prepare_scatter(Plan& plan, const compute_plugin_op& op) {
  prepare_indexed(plan, op, 0);
  const std::string_view reduction = text_attribute(op, "reduction");
  if (reduction.empty() || reduction == "set") return;
  const int32_t dtype = plan.tensors[1].dtype;
  const bool is_half = dtype == COMPUTE_DTYPE_FLOAT16 || dtype == COMPUTE_DTYPE_BFLOAT16;
  const int32_t computed_in = is_half ? COMPUTE_DTYPE_FLOAT32 : dtype;
  plan.widen = find_function(COMPUTE_PLUGIN_INTRINSIC_CONVERT, dtype, computed_in);
  plan.combine = find_combination(reduction, computed_in);
  plan.narrow = find_function(COMPUTE_PLUGIN_INTRINSIC_CONVERT, computed_in, dtype);
}

// Puts the index at `position` in the place of its coordinate along the axis: false, and the first fault, if it is
// outside of the tensor that is indexed.
bool follow_index(const Plan& plan, const Operands& operands, int64_t indices, const Tensor& indexed, int64_t n,
                  Position& position, compute_plugin_fault& fault) {
  const Tensor& tensor = plan.tensors[indices];
  const Value stored = load(operands.tensors[indices] + tensor.offset(position.data()), tensor.element_bytes);
  const int64_t index = plan.locate(stored, stored, stored).as<int64_t>();
  const int64_t extent = indexed.shape[plan.axis];
  if (index >= -extent && index < extent) {
    position[plan.axis] = index < 0 ? index + extent : index;
    return true;
  }
  if (fault.code == COMPUTE_PLUGIN_FAULT_NONE) {
    fault = {COMPUTE_PLUGIN_FAULT_INDEX, static_cast<int32_t>(indices), index, extent, n, {}};
  }
  return false;
}

compute_plugin_fault run_gather(const Plan& plan, const Operands& operands) {
  const Tensor &input = plan.tensors[0], &output = plan.tensors[2];
  compute_plugin_fault fault = {};
  Position position(output.shape);
  for (int64_t n = 0, count = element_count(output.shape); n < count; ++n, position.step(plan.kept)) {
    Position source = position;
    if (!follow_index(plan, operands, 1, input, n, source, fault)) continue;
    std::memcpy(operands.tensors[2] + output.offset(position.data()), operands.tensors[0] + input.offset(source.data()),
                output.element_bytes);
  }
  return fault;
}

// In row-major order, as the flag DETERMINISTIC requires.
compute_plugin_fault run_scatter(const Plan& plan, const Operands& operands) {
  const Tensor &updates = plan.tensors[1], &output = plan.tensors[2];
  compute_plugin_fault fault = {};
  Position position(updates.shape);
  for (int64_t n = 0, count = element_count(updates.shape); n < count; ++n, position.step(plan.kept)) {
    Position target = position;
    if (!follow_index(plan, operands, 0, output, n, target, fault)) continue;
    std::byte* element = operands.tensors[2] + output.offset(target.data());
    Value value = load(operands.tensors[1] + updates.offset(position.data()), updates.element_bytes);
    if (plan.combine != nullptr) {
      const Value old = load(element, output.element_bytes);
      value = plan.combine(plan.widen(old, old, old), plan.widen(value, value, value), value);
      value = plan.narrow(value, value, value);
    }
    std::memcpy(element, value.bytes, output.element_bytes);
  }
  return fault;
}

constexpr Primitive kPrimitives[] = {
    {"map", prepare_map, run_map, false, -1, 1, ""},
    {"copy", prepare_copy, run_copy, false, 2, 0, ""},
    {"reduce", prepare_reduce, run_reduce, false, -1, 2, " axes kind accumulator "},
    {"gather", prepare_gather, run_gather, true, 3, 0, " axis "},
    {"scatter", prepare_scatter, run_scatter, true, 3, 0, " axis reduction "},
    {"row", prepare_row, run_row, false, -1, 9, " axes kinds accumulators stored "},
};

}  // namespace

const Primitive* find_primitive(std::string_view name) {
  for (const Primitive& primitive : kPrimitives) {
    if (primitive.name == name && (name != "row" || !lacks("row"))) return &primitive;
  }
  return find_vendor_op(name);
}

}  // namespace minimal
