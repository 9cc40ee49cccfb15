// SPDX-License-Identifier: Apache-2.0
#include "core/ops/steps.hpp"

#include <algorithm>
#include <cassert>
#include <cctype>
#include <utility>

#include "core/base/error.hpp"
#include "core/ops/rules.hpp"

namespace compute {

namespace {

StepAttribute integers(const char* name, std::span<const int64_t> values) {
  StepAttribute attribute;
  attribute.name = name;
  attribute.integers.assign(values.begin(), values.end());
  return attribute;
}

StepAttribute text(const char* name, std::string_view value) {
  StepAttribute attribute;
  attribute.name = name;
  attribute.kind = COMPUTE_KIND_STRING;
  attribute.texts = {std::string(value)};
  return attribute;
}

StepAttribute dtype_value(const char* name, compute_dtype value) {
  StepAttribute attribute;
  attribute.name = name;
  attribute.kind = COMPUTE_KIND_DTYPE;
  attribute.integers = {value};
  return attribute;
}

constexpr std::string_view kInputNames[] = {"x", "y", "z", "x3", "x4", "x5", "x6", "x7", "x8"};
constexpr std::string_view kResultNames[] = {"r0", "r1", "r2", "r3"};
static_assert(std::size(kResultNames) == kMaxRowStages);

// `given`, or the default names of so many inputs.
std::vector<std::string_view> input_names(const std::vector<std::string_view>& given, size_t count) {
  assert(given.empty() ? count <= std::size(kInputNames) : given.size() == count);
  return given.empty() ? std::vector(kInputNames, kInputNames + count) : given;
}

std::string_view result_name(const Row& row, size_t stage) {
  const std::string_view given = row.stages[stage].name;
  return given.empty() ? kResultNames[stage] : given;
}

std::vector<compute_dtype> dtypes_of(std::span<const StepOperand> operands) {
  std::vector<compute_dtype> dtypes;
  for (const StepOperand& operand : operands) dtypes.push_back(operand.dtype);
  return dtypes;
}

bool mentions(const StepExpression& expression, std::string_view name) {
  const std::string_view text = expression.text;
  const auto is_in_word = [&](size_t at) { return at < text.size() && (std::isalnum(text[at]) || text[at] == '_'); };
  for (size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
    if (!is_in_word(at - 1) && !is_in_word(at + name.size())) return true;
  }
  return false;
}

}  // namespace

// ---- Views ----------------------------------------------------------------------------------------------------------

StepOperand with_axis(StepOperand operand, int32_t axis, int64_t extent) {
  operand.shape.insert(operand.shape.begin() + axis, extent);
  operand.strides.insert(operand.strides.begin() + axis, 0);
  return operand;
}

StepOperand without_axis(StepOperand operand, int32_t axis) {
  operand.shape.erase(operand.shape.begin() + axis);
  operand.strides.erase(operand.strides.begin() + axis);
  return operand;
}

StepOperand broadcast_to(const StepOperand& operand, std::span<const int64_t> shape) {
  OperandDesc view{operand.dtype, static_cast<int32_t>(operand.shape.size()), operand.shape.data(),
                   operand.strides.data()};
  StepOperand result = operand;
  result.strides = broadcast_strides(view, shape);
  result.shape.assign(shape.begin(), shape.end());
  return result;
}

StepOperand narrowed(StepOperand operand, int32_t axis, int64_t start, int64_t extent) {
  const auto i = static_cast<size_t>(axis);
  operand.offset += start * operand.strides[i];
  operand.shape[i] = extent;
  return operand;
}

std::optional<StepOperand> collapsed(const StepOperand& operand, int32_t first, int32_t count) {
  int64_t extent = 1, stride = 1;
  for (int32_t i = first + count; i-- > first;) {
    const auto axis = static_cast<size_t>(i);
    if (operand.shape[axis] == 1) continue;
    if (extent == 1) stride = operand.strides[axis];
    if (operand.strides[axis] != stride * extent) return std::nullopt;
    extent *= operand.shape[axis];
  }
  StepOperand result = operand;
  const auto shape = result.shape.begin() + first, strides = result.strides.begin() + first;
  result.shape.insert(result.shape.erase(shape, shape + count), extent);
  result.strides.insert(result.strides.erase(strides, strides + count), stride);
  return result;
}

std::optional<StepOperand> flattened(const StepOperand& operand) {
  return collapsed(operand, 0, static_cast<int32_t>(operand.shape.size()));
}

StepOperand split_axis(const StepOperand& operand, int32_t axis, std::span<const int64_t> extents) {
  StepOperand result = operand;
  const auto at = static_cast<size_t>(axis);
  int64_t stride = operand.strides[at];
  std::vector<int64_t> strides(extents.size());
  for (size_t i = extents.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= extents[i];
  }
  result.shape.erase(result.shape.begin() + axis);
  result.shape.insert(result.shape.begin() + axis, extents.begin(), extents.end());
  result.strides.erase(result.strides.begin() + axis);
  result.strides.insert(result.strides.begin() + axis, strides.begin(), strides.end());
  return result;
}

StepOperand permuted(const StepOperand& operand, std::span<const int32_t> axes) {
  StepOperand result = operand;
  for (size_t i = 0; i < axes.size(); ++i) {
    result.shape[i] = operand.shape[static_cast<size_t>(axes[i])];
    result.strides[i] = operand.strides[static_cast<size_t>(axes[i])];
  }
  return result;
}

// ---- Scalars --------------------------------------------------------------------------------------------------------

ScalarTerm extent_term(int64_t value) {
  const StepScalar source{ScalarSource::kValue, 0, COMPUTE_DTYPE_INT64, scalar_from_int64(value, COMPUTE_DTYPE_INT64)};
  return {source, {COMPUTE_DTYPE_INT64, true, true}};
}

ScalarTerm attribute_term(const OpCall& call, std::string_view name, compute_dtype dtype) {
  return {{ScalarSource::kRunTimeAttribute, run_time_index(call, name), dtype, {}}, {dtype, false, true}};
}

std::string convert_text(std::string_view operand, compute_dtype from, compute_dtype to) {
  if (from == to) return std::string(operand);
  return "convert(" + std::string(operand) + ", " + dtype_name(to) + ")";
}

std::vector<StepAttribute> reduce_attributes(std::span<const int64_t> axes, const char* kind,
                                             compute_dtype accumulator) {
  return {integers("axes", axes), text("kind", kind), dtype_value("accumulator", accumulator)};
}

// ---- Steps ----------------------------------------------------------------------------------------------------------

StepOperand Steps::input(int32_t index, compute_dtype dtype) {
  StepOperand operand;
  if (!has_input(index)) return operand;
  const OperandDesc& desc = call_.inputs[static_cast<size_t>(index)];
  operand.kind = ValueKind::kInput;
  operand.index = index;
  operand.dtype = desc.dtype;
  if (!desc.is_scalar) {
    operand.shape.assign(desc.shape, desc.shape + desc.rank);
    operand.strides.assign(desc.strides, desc.strides + desc.rank);
    return operand;
  }
  const compute_dtype as = dtype != COMPUTE_DTYPE_NONE ? dtype : desc.dtype;
  operand = temporary(as, {});
  const ScalarTerm term{{ScalarSource::kOperand, index, as, {}}, {as, false, true}};
  map({"a", {term}}, {}, operand);
  return operand;
}

bool Steps::has_input(int32_t index) const {
  return static_cast<size_t>(index) < call_.inputs.size() &&
         call_.inputs[static_cast<size_t>(index)].dtype != COMPUTE_DTYPE_NONE;
}

StepOperand Steps::output(int32_t index) const {
  const LoweringTarget::Output& desc = target_.outputs[static_cast<size_t>(index)];
  StepOperand operand{ValueKind::kOutput, index, desc.dtype, COMPUTE_PLUGIN_TENSOR_OUTPUT, {}, {}, 0};
  operand.shape.assign(desc.shape.begin(), desc.shape.end());
  operand.strides.assign(desc.strides.begin(), desc.strides.end());
  return operand;
}

StepOperand Steps::temporary(compute_dtype dtype, std::span<const int64_t> shape) {
  StepOperand operand{ValueKind::kTemporary,
                      static_cast<int32_t>(lowering_.temporaries.size()),
                      dtype,
                      COMPUTE_PLUGIN_TENSOR_INPUT,
                      {},
                      {},
                      0};
  operand.shape.assign(shape.begin(), shape.end());
  operand.strides = row_major_strides(shape);
  const int64_t size = element_count(call_.schema.name, shape, dtype_size(dtype)) * dtype_size(dtype);
  lowering_.temporaries.push_back({dtype, size, 0});
  return operand;
}

StepOperand Steps::as_collapsed(const StepOperand& operand, int32_t first, int32_t count) {
  if (auto view = collapsed(operand, first, count)) return *view;
  const StepOperand packed = temporary(operand.dtype, operand.shape);
  copy(operand, packed);
  return *collapsed(packed, first, count);
}

StepOperand Steps::as_dtype(const StepOperand& operand, compute_dtype dtype) {
  if (operand.dtype == dtype) return operand;
  // Repeated elements are converted once.
  StepOperand src = operand;
  for (size_t i = 0; i < src.shape.size(); ++i) {
    if (src.strides[i] == 0) src.shape[i] = 1;
  }
  const StepOperand dst = temporary(dtype, src.shape);
  copy(src, dst);
  return broadcast_to(dst, operand.shape);
}

StepOperand Steps::as_indices(const StepOperand& operand) {
  if (operand.dtype == COMPUTE_DTYPE_INT32 || operand.dtype == COMPUTE_DTYPE_INT64) return operand;
  if (dtype_size(operand.dtype) < 4) return as_dtype(operand, COMPUTE_DTYPE_INT32);
  if (operand.dtype != COMPUTE_DTYPE_UINT64) return as_dtype(operand, COMPUTE_DTYPE_INT64);
  const StepOperand dst = temporary(COMPUTE_DTYPE_INT64, operand.shape);
  map({"convert(min(x, 9223372036854775807), int64)"}, {operand}, dst);
  return dst;
}

TypedExpression Steps::type(const StepExpression& expression, const Names& names, std::span<const compute_dtype> inputs,
                            std::span<const compute_dtype> wanted, std::vector<StepScalar>& out_scalars) const {
  assert(names.size() == inputs.size() && expression.scalars.size() <= kScalarNames.size());
  Names scalars;
  for (const ScalarTerm& term : expression.scalars)
    scalars.push_back(term.name.empty() ? kScalarNames.substr(scalars.size(), 1) : term.name);
  std::vector<LeafDesc> leaves;
  for (const compute_dtype dtype : inputs) leaves.push_back({dtype});
  for (const ScalarTerm& term : expression.scalars) leaves.push_back(term.leaf);
  std::string key = expression.text;
  for (const Names* list : {&names, &std::as_const(scalars)}) {
    key += ';';
    for (const std::string_view name : *list) key.append(name).append(1, ',');
  }
  for (const LeafDesc& leaf : leaves) key += {static_cast<char>(leaf.dtype), leaf.weak ? 'w' : ' '};
  for (const compute_dtype dtype : wanted) key += static_cast<char>(dtype);
  constexpr size_t kMostKept = 8;
  auto found = std::ranges::find(typed_, key, &std::pair<std::string, TypedExpression>::first);
  if (found == typed_.end()) {
    if (typed_.size() == kMostKept) typed_.erase(typed_.begin());
    const ExpressionTemplate parsed = parse(expression.text, names, scalars);
    found = typed_.insert(typed_.end(), {std::move(key), type_expression(parsed, leaves, wanted, call_.schema.name)});
  }
  const TypedExpression typed = found->second;
  for (const ScalarSlot& slot : typed.scalars()) {
    StepScalar scalar = expression.scalars[static_cast<size_t>(slot.leaf) - inputs.size()].source;
    if (scalar.source == ScalarSource::kValue) scalar.bits = convert_scalar(scalar.bits, scalar.dtype, slot.dtype);
    scalar.dtype = slot.dtype;
    out_scalars.push_back(scalar);
  }
  return typed;
}

Step& Steps::add(const char* primitive, std::vector<StepOperand> inputs, StepOperand output) {
  std::vector<StepOperand> outputs;
  outputs.push_back(std::move(output));
  return add(primitive, std::move(inputs), std::move(outputs));
}

Step& Steps::add(const char* primitive, std::vector<StepOperand> inputs, std::vector<StepOperand> outputs) {
  Step step;
  step.name = primitive;
  for (StepOperand& operand : inputs) operand.access = COMPUTE_PLUGIN_TENSOR_INPUT;
  for (StepOperand& operand : outputs) {
    if (operand.access != (COMPUTE_PLUGIN_TENSOR_INPUT | COMPUTE_PLUGIN_TENSOR_OUTPUT))
      operand.access = COMPUTE_PLUGIN_TENSOR_OUTPUT;
  }
  step.inputs = std::move(inputs);
  step.outputs = std::move(outputs);
  lowering_.steps.push_back(std::move(step));
  return lowering_.steps.back();
}

void Steps::map(const StepExpression& expression, std::vector<StepOperand> inputs, StepOperand output) {
  Names names = input_names(expression.inputs, inputs.size());
  map(expression, names, std::move(inputs), std::vector<StepOperand>{std::move(output)});
}

void Steps::map(const StepExpression& expression, std::vector<StepOperand> inputs, std::vector<StepOperand> outputs) {
  Names names = input_names(expression.inputs, inputs.size());
  map(expression, names, std::move(inputs), std::move(outputs));
}

void Steps::map(const StepExpression& expression, const Names& names, std::vector<StepOperand> inputs,
                std::vector<StepOperand> outputs) {
  std::vector<compute_dtype> wanted;
  for (const StepOperand& output : outputs) wanted.push_back(output.dtype);
  for (StepOperand& operand : inputs) operand = broadcast_to(operand, outputs.front().shape);
  const std::vector<compute_dtype> dtypes = dtypes_of(inputs);
  Step& step = add("map", std::move(inputs), std::move(outputs));
  step.expressions.push_back(type(expression, names, dtypes, wanted, step.scalars));
}

void Steps::epilogue(const StepExpression& expression, compute_dtype from) {
  Step& step = lowering_.steps.back();
  const compute_dtype wanted = step.outputs.front().dtype;
  step.expressions.push_back(
      type(expression, input_names(expression.inputs, 1), {&from, 1}, {&wanted, 1}, step.scalars));
}

void Steps::copy(StepOperand src, StepOperand dst) { add("copy", {std::move(src)}, std::move(dst)); }

void Steps::fill(StepOperand dst, const ScalarBits& value) {
  const compute_dtype dtype = dst.dtype;
  const ScalarTerm term{{ScalarSource::kValue, 0, dtype, value}, {dtype, false, true}};
  map({"a", {term}}, {}, std::move(dst));
}

void Steps::reduce(const char* kind, compute_dtype accumulator, std::span<const int64_t> axes,
                   const StepExpression& before, std::vector<StepOperand> inputs, const StepExpression& after,
                   StepOperand output) {
  const Names names = input_names(before.inputs, inputs.size());
  reduce(kind, accumulator, axes, before, names, std::move(inputs), after, std::move(output));
}

void Steps::reduce(const char* kind, compute_dtype accumulator, std::span<const int64_t> axes,
                   const StepExpression& before, const Names& names, std::vector<StepOperand> inputs,
                   const StepExpression& after, StepOperand output) {
  assert(std::ranges::all_of(inputs, [&](const StepOperand& operand) { return operand.shape == inputs[0].shape; }));
  const std::vector<compute_dtype> dtypes = dtypes_of(inputs);
  const compute_dtype wanted = output.dtype;
  Step& step = add("reduce", std::move(inputs), std::move(output));
  step.attributes = reduce_attributes(axes, kind, accumulator);
  step.expressions.push_back(type(before, names, dtypes, {&accumulator, 1}, step.scalars));
  step.expressions.push_back(type(after, input_names(after.inputs, 1), {&accumulator, 1}, {&wanted, 1}, step.scalars));
}

// ---- Rows -----------------------------------------------------------------------------------------------------------

void Steps::row(const Row& row) {
  Step& step = add("row", row.inputs, row.outputs);
  for (const Row::Stored& stored : row.stored) {
    step.outputs.push_back(stored.output);
    step.outputs.back().access = COMPUTE_PLUGIN_TENSOR_OUTPUT;
  }
  StepAttribute kinds = text("kinds", ""), accumulators = dtype_value("accumulators", COMPUTE_DTYPE_NONE);
  kinds.texts.clear();
  accumulators.integers.clear();
  Names names = input_names(row.names, row.inputs.size()), earlier;
  std::vector<compute_dtype> dtypes = dtypes_of(row.inputs), after_dtypes(1);
  for (size_t i = 0; i < row.stages.size(); ++i) {
    const RowStage& stage = row.stages[i];
    kinds.texts.emplace_back(stage.kind);
    accumulators.integers.push_back(stage.accumulator);
    after_dtypes.front() = stage.accumulator;
    step.expressions.push_back(type(stage.before, names, dtypes, {&stage.accumulator, 1}, step.scalars));
    Names after_names = input_names(stage.after.inputs, 1);
    after_names.insert(after_names.end(), earlier.begin(), earlier.end());
    step.expressions.push_back(type(stage.after, after_names, after_dtypes, {&stage.result, 1}, step.scalars));
    for (Names* list : {&names, &earlier}) list->push_back(result_name(row, i));
    for (auto* list : {&dtypes, &after_dtypes}) list->push_back(stage.result);
  }
  if (row.map) step.expressions.push_back(type(*row.map, names, dtypes, dtypes_of(row.outputs), step.scalars));
  std::vector<int64_t> stored;
  for (const Row::Stored& each : row.stored) stored.push_back(each.stage);
  step.attributes = {integers("axes", row.axes), std::move(kinds), std::move(accumulators), integers("stored", stored)};
}

void Steps::row_in_steps(const Row& row) {
  const std::vector<int64_t>& space = row.inputs.front().shape;
  std::vector<int64_t> kept = space;
  for (const int64_t axis : row.axes) kept[static_cast<size_t>(axis)] = 1;
  std::vector<StepOperand> results;
  // The inputs, or what `first` holds, and the results that the expression mentions.
  const auto with_results = [&](const StepExpression& expression, std::vector<StepOperand> first, Names& names,
                                const std::vector<int64_t>& shape) {
    for (size_t i = 0; i < results.size(); ++i) {
      if (!mentions(expression, result_name(row, i))) continue;
      first.push_back(broadcast_to(results[i], shape));
      names.push_back(result_name(row, i));
    }
    return first;
  };
  for (size_t i = 0; i < row.stages.size(); ++i) {
    const RowStage& stage = row.stages[i];
    const auto stored = std::find_if(row.stored.begin(), row.stored.end(),
                                     [&](const Row::Stored& each) { return each.stage == static_cast<int32_t>(i); });
    const bool in_place = stored != row.stored.end() && stored->output.dtype == stage.result;
    const StepOperand result = in_place ? stored->output : temporary(stage.result, kept);
    Names names = input_names(row.names, row.inputs.size()), after_names = input_names(stage.after.inputs, 1);
    std::vector<StepOperand> inputs = with_results(stage.before, row.inputs, names, space);
    const std::vector<StepOperand> earlier = with_results(stage.after, {}, after_names, kept);
    if (earlier.empty()) {
      reduce(stage.kind, stage.accumulator, row.axes, stage.before, names, std::move(inputs), stage.after, result);
    } else {
      std::vector<StepOperand> combined = {temporary(stage.accumulator, kept)};
      reduce(stage.kind, stage.accumulator, row.axes, stage.before, names, std::move(inputs), {"x"}, combined[0]);
      combined.insert(combined.end(), earlier.begin(), earlier.end());
      map(stage.after, after_names, std::move(combined), {result});
    }
    if (stored != row.stored.end() && !in_place) copy(result, stored->output);
    results.push_back(result);
  }
  if (!row.map) return;
  Names names = input_names(row.names, row.inputs.size());
  std::vector<StepOperand> inputs = with_results(*row.map, row.inputs, names, space);
  map(*row.map, names, std::move(inputs), row.outputs);
}

void Steps::gather(StepOperand src, StepOperand indices, StepOperand dst, int32_t axis) {
  const int64_t value = axis;
  add("gather", {std::move(src), std::move(indices)}, std::move(dst)).attributes = {integers("axis", {&value, 1})};
}

void Steps::add_scatter(StepOperand indices, StepOperand updates, StepOperand dst, int32_t axis,
                        std::string_view reduction, bool deterministic) {
  const int64_t value = axis;
  dst.access = COMPUTE_PLUGIN_TENSOR_INPUT | COMPUTE_PLUGIN_TENSOR_OUTPUT;
  Step& step = add("scatter", {std::move(indices), std::move(updates)}, std::move(dst));
  step.attributes = {integers("axis", {&value, 1}), text("reduction", reduction)};
  step.deterministic = deterministic;
  step.has_no_order = !deterministic;
}

}  // namespace compute
