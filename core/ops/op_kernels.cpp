// SPDX-License-Identifier: Apache-2.0
#include "core/ops/op_kernels.hpp"

#include <algorithm>
#include <cstring>

#include "core/base/error.hpp"
#include "core/ops/rules.hpp"
#include "core/ops/shapes.hpp"
#include "core/ops/steps.hpp"
#include "core/ops/temporaries.hpp"
#include "core/text/ascii.hpp"
#include "core/text/printable.hpp"

namespace compute {
namespace {

constexpr size_t kMostValues = 64;
constexpr int64_t kMostGroupSize = 1024;

[[noreturn]] void refuse_kernel(const OpSchema& schema, const std::string& what) {
  throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, "op " + in_quotes(schema.name) + ": " + what);
}

// The parts between separators that are in no brackets.
std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  if (trimmed(text).empty()) return parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && (text[i] == '(' || text[i] == '[')) ++depth;
    if (i < text.size() && (text[i] == ')' || text[i] == ']')) --depth;
    if (i < text.size() && (text[i] != separator || depth > 0)) continue;
    parts.push_back(trimmed(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  return parts;
}

int32_t input_named(const OpSchema& schema, std::string_view name) {
  const auto found = std::ranges::find(schema.inputs, name);
  return found == schema.inputs.end() ? -1 : static_cast<int32_t>(found - schema.inputs.begin());
}

// "y.size", "alpha", "float32(alpha)".
KernelValue parse_value(std::string_view text, const OpSchema& schema, const std::string& what) {
  KernelValue value;
  compute_dtype wanted = COMPUTE_DTYPE_NONE;
  const size_t open = text.find('(');
  if (open != std::string_view::npos && text.back() == ')') {
    wanted = dtype_from_name(trimmed(text.substr(0, open)));
    if (wanted != COMPUTE_DTYPE_NONE) text = trimmed(text.substr(open + 1, text.size() - open - 2));
  }
  for (size_t i = 0; i < schema.attributes.size(); ++i) {
    const AttributeSchema& attribute = schema.attributes[i];
    if (attribute.name != text) continue;
    const bool is_real = attribute.kind == AttributeKind::kFloat64 || attribute.kind == AttributeKind::kNumber;
    if (attribute.is_list || (!is_real && attribute.kind != AttributeKind::kInt64))
      refuse_kernel(schema, what + ": the attribute " + attribute.name + " is not a number");
    if (attribute.run_time) {
      value.run_time =
          static_cast<int32_t>(std::ranges::find(schema.run_time, static_cast<int32_t>(i)) - schema.run_time.begin());
    } else if (is_real) {
      value.real = static_cast<int32_t>(i);
    } else {
      continue;
    }
    value.dtype = wanted != COMPUTE_DTYPE_NONE ? wanted : is_real ? COMPUTE_DTYPE_FLOAT64 : COMPUTE_DTYPE_INT64;
    return value;
  }
  value.size = SizeExpression::parse(text, schema, "op " + in_quotes(schema.name) + ": " + what);
  if (wanted != COMPUTE_DTYPE_NONE) value.dtype = wanted;
  return value;
}

OpKernel parse_kernel(const RegisteredKernel& given, const OpSchema& schema, size_t index) {
  const std::string what = "kernel " + std::to_string(index);
  OpKernel kernel;
  kernel.language = given.language;
  kernel.source = given.source;
  kernel.name = given.name;
  kernel.options = given.options;
  kernel.is_strided = given.is_strided;
  if (kernel.language.empty() || kernel.source.empty() || kernel.name.empty())
    refuse_kernel(schema, what + " has no language, source or name");
  const std::string prefix = "op " + in_quotes(schema.name) + ": " + what;
  for (const std::string_view text : parts_of(given.items, ','))
    kernel.items.push_back(SizeExpression::parse(text, schema, prefix));
  if (kernel.items.empty() || kernel.items.size() > 3)
    refuse_kernel(schema, what + " has " + std::to_string(kernel.items.size()) + " axes of work-items, not 1 to 3");
  int64_t items = 1;
  for (size_t axis = 0; axis < 3; ++axis) {
    const int64_t size = given.group_size[axis];
    const bool is_used = axis < kernel.items.size();
    if (is_used ? size < 1 || size > kMostGroupSize : size != 0 && size != 1)
      refuse_kernel(schema, what + ": group_size[" + std::to_string(axis) + "] is " + std::to_string(size));
    kernel.group_size[axis] = is_used ? size : 1;
    items *= kernel.group_size[axis];
  }
  if (items > kMostGroupSize)
    refuse_kernel(schema, what + ": a group has " + std::to_string(items) + " work-items; the limit is " +
                              std::to_string(kMostGroupSize));
  for (const std::string_view text : parts_of(given.values, ','))
    kernel.values.push_back(parse_value(text, schema, what));
  if (kernel.values.size() > kMostValues)
    refuse_kernel(schema, what + " has more than " + std::to_string(kMostValues) + " values");
  return kernel;
}

std::vector<KernelResult> parse_results(const RegisteredOp& given, const OpSchema& schema) {
  const auto count = static_cast<size_t>(schema.output_count);
  const std::vector<std::string_view> shapes = parts_of(given.shapes, ';'), dtypes = parts_of(given.result_dtypes, ';');
  if (shapes.size() != count || dtypes.size() != count) {
    refuse_kernel(schema, "an op with kernels only states the shape and the dtype of each of its " +
                              std::to_string(count) + " outputs");
  }
  std::vector<KernelResult> results(count);
  for (size_t i = 0; i < count; ++i) {
    KernelResult& result = results[i];
    const std::string_view shape = shapes[i];
    const std::string what = "the shape of " + schema.outputs[i];
    if (shape.size() >= 2 && shape.front() == '[' && shape.back() == ']') {
      for (const std::string_view extent : parts_of(shape.substr(1, shape.size() - 2), ','))
        result.extents.push_back(SizeExpression::parse(extent, schema, "op " + in_quotes(schema.name) + ": " + what));
    } else if (result.shape_of = input_named(schema, shape); result.shape_of < 0) {
      refuse_kernel(schema, what + " is " + in_quotes(shape) + ", which is neither an input nor a list in brackets");
    }
    result.dtype_of = input_named(schema, dtypes[i]);
    if (result.dtype_of < 0) result.dtype = dtype_from_name(dtypes[i]);
    if (result.dtype_of < 0 && result.dtype == COMPUTE_DTYPE_NONE)
      refuse_kernel(schema, "the dtype of " + schema.outputs[i] + " is " + in_quotes(dtypes[i]) +
                                ", which is neither an input nor a dtype");
  }
  return results;
}

// The names by which the portable dialect knows dtypes.
const char* portable_type(compute_dtype dtype) {
  switch (dtype) {
    case COMPUTE_DTYPE_INT8:
      return "i8";
    case COMPUTE_DTYPE_INT16:
      return "i16";
    case COMPUTE_DTYPE_INT32:
      return "i32";
    case COMPUTE_DTYPE_INT64:
      return "i64";
    case COMPUTE_DTYPE_UINT32:
      return "u32";
    case COMPUTE_DTYPE_UINT64:
      return "u64";
    case COMPUTE_DTYPE_FLOAT32:
      return "f32";
    case COMPUTE_DTYPE_FLOAT64:
      return "f64";
    case COMPUTE_DTYPE_COMPLEX64:
      return "c64";
    case COMPUTE_DTYPE_COMPLEX128:
      return "c128";
    default:
      return dtype_size(dtype) == 1 ? "u8" : "u16";
  }
}

StepAttribute text_attribute(const char* name, std::string value) {
  StepAttribute attribute;
  attribute.name = name;
  attribute.kind = COMPUTE_KIND_STRING;
  attribute.texts = {std::move(value)};
  return attribute;
}

StepAttribute list_attribute(const char* name, std::vector<int64_t> values) {
  StepAttribute attribute;
  attribute.name = name;
  attribute.integers = std::move(values);
  return attribute;
}

StepScalar scalar_of(const OpCall& call, const KernelValue& value, const std::vector<SizedTensor>& tensors) {
  if (value.run_time >= 0) return {ScalarSource::kRunTimeAttribute, value.run_time, value.dtype, {}};
  ScalarBits bits;
  if (value.real >= 0) {
    const double real = call.attributes.float64(value.real);
    std::memcpy(bits.bits, &real, sizeof real);
    bits = convert_scalar(bits, COMPUTE_DTYPE_FLOAT64, value.dtype);
  } else {
    const int64_t size = value.size.value(call.schema, call.attributes, tensors);
    bits = convert_scalar(scalar_from_int64(size, COMPUTE_DTYPE_INT64), COMPUTE_DTYPE_INT64, value.dtype);
    const ScalarBits back = convert_scalar(bits, value.dtype, COMPUTE_DTYPE_INT64);
    if (std::memcmp(&size, back.bits, sizeof size) != 0)
      refuse(call,
             value.size.text() + " is " + std::to_string(size) + ", which does not fit in " + dtype_name(value.dtype));
  }
  return {ScalarSource::kValue, 0, value.dtype, bits};
}

}  // namespace

std::shared_ptr<const OpKernels> parse_kernels(const RegisteredOp& given, const OpSchema& schema) {
  auto kernels = std::make_shared<OpKernels>();
  for (size_t i = 0; i < given.kernels.size(); ++i) kernels->list.push_back(parse_kernel(given.kernels[i], schema, i));
  const bool is_alone = given.expression.empty() && given.composition.empty();
  if (is_alone) {
    kernels->results = parse_results(given, schema);
  } else if (!given.shapes.empty() || !given.result_dtypes.empty()) {
    refuse_kernel(schema, "shapes and result_dtypes follow from the expression or composition");
  }
  return kernels;
}

std::vector<OutputDesc> infer_kernel_op(const OpCall& call) {
  const OpKernels& kernels = *call.schema.kernels;
  std::vector<std::vector<int64_t>> shapes, strides;
  for (const OperandDesc& input : call.inputs) {
    shapes.emplace_back(input.extents().begin(), input.extents().end());
    strides.emplace_back(input.strides, input.strides + (input.strides != nullptr ? input.rank : 0));
  }
  std::vector<SizedTensor> tensors;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const auto index = static_cast<int32_t>(i);
    require_class(call, index, call.schema.input_class);
    if (!has_elements(call.inputs[i].extents()))
      refuse(call, call.schema.inputs[i] + " has no elements, which kernels do not take", index);
    tensors.push_back({call.schema.inputs[i], &shapes[i], nullptr});
  }
  std::vector<OutputDesc> outputs;
  for (size_t i = 0; i < kernels.results.size(); ++i) {
    const KernelResult& result = kernels.results[i];
    OutputDesc& output = outputs.emplace_back();
    output.dtype = result.dtype_of >= 0 ? call.inputs[static_cast<size_t>(result.dtype_of)].dtype : result.dtype;
    if (result.shape_of >= 0) output.shape = shapes[static_cast<size_t>(result.shape_of)];
    for (const SizeExpression& expression : result.extents) {
      const int64_t extent = expression.value(call.schema, call.attributes, tensors);
      if (extent < 0) refuse(call, call.schema.outputs[i] + " would have the extent " + std::to_string(extent));
      output.shape.push_back(extent);
    }
  }
  return outputs;
}

std::optional<Lowering> lower_to_kernel(const OpCall& call, const LoweringTarget& target, int32_t index) {
  const OpSchema& schema = call.schema;
  if (schema.kernels == nullptr || static_cast<size_t>(index) >= schema.kernels->list.size()) return std::nullopt;
  const OpKernel& kernel = schema.kernels->list[static_cast<size_t>(index)];
  Steps steps(call, target);
  std::vector<StepOperand> inputs, outputs;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (!has_elements(call.inputs[i].extents())) return std::nullopt;
    StepOperand operand = steps.input(static_cast<int32_t>(i));
    if (!kernel.is_strided && operand.strides != row_major_strides(operand.shape)) {
      const StepOperand packed = steps.temporary(operand.dtype, operand.shape);
      steps.copy(operand, packed);
      operand = packed;
    }
    inputs.push_back(std::move(operand));
  }
  // An output that is an input too, or whose layout the kernel does not take, is written afterwards.
  std::vector<std::pair<StepOperand, StepOperand>> copies;
  for (int32_t i = 0; i < schema.output_count; ++i) {
    StepOperand operand = steps.output(i);
    if (target.in_place || (!kernel.is_strided && operand.strides != row_major_strides(operand.shape))) {
      const StepOperand made = steps.temporary(operand.dtype, operand.shape);
      copies.emplace_back(made, operand);
      operand = made;
    }
    outputs.push_back(std::move(operand));
  }
  std::vector<SizedTensor> tensors;
  std::string types;
  const auto know = [&](const std::string& name, const StepOperand& operand) {
    tensors.push_back({name, &operand.shape, &operand.strides});
    types += std::string("typedef ") + portable_type(operand.dtype) + " " + name + "_type; ";
  };
  for (size_t i = 0; i < inputs.size(); ++i) know(schema.inputs[i], inputs[i]);
  for (size_t i = 0; i < outputs.size(); ++i) know(schema.outputs[i], outputs[i]);
  std::vector<int64_t> groups(3, 1);
  for (size_t axis = 0; axis < kernel.items.size(); ++axis) {
    const int64_t items = kernel.items[axis].value(schema, call.attributes, tensors);
    if (items < 1)
      refuse(call, kernel.items[axis].text() + " is " + std::to_string(items) + "; a kernel needs 1 or more");
    groups[axis] = (items - 1) / kernel.group_size[axis] + 1;
  }
  std::vector<StepScalar> scalars;
  for (const KernelValue& value : kernel.values) scalars.push_back(scalar_of(call, value, tensors));
  const bool is_portable = kernel.language == "portable";
  Step& step = steps.add("kernel", inputs, outputs);
  step.attributes = {text_attribute("language", kernel.language),
                     text_attribute("source", (is_portable ? types + "\n#line 1\n" : std::string()) + kernel.source),
                     text_attribute("name", kernel.name),
                     text_attribute("options", kernel.options),
                     list_attribute("groups", groups),
                     list_attribute("group_size", {kernel.group_size.begin(), kernel.group_size.end()})};
  step.scalars = std::move(scalars);
  for (const auto& [from, to] : copies) steps.copy(from, to);
  Lowering lowering = steps.take();
  lowering.is_kernel = true;
  layout_temporaries(lowering);
  return lowering;
}

}  // namespace compute
