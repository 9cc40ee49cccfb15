// SPDX-License-Identifier: Apache-2.0
// The C interface of ops, plans and expressions.
#include <fmt/format.h>

#include <algorithm>

#include "core/dispatch.hpp"
#include "core/infer.hpp"
#include "core/sized.hpp"
#include "core/stream.hpp"
#include "core/text.hpp"

struct compute_op {};  // never made: a handle is the address of an OpSchema

// What a plan expects of an operand.
struct PlannedOperand {
  PlannedOperand() = default;
  explicit PlannedOperand(const compute::Tensor& tensor)
      : dtype(tensor.dtype),
        is_value(tensor.kind != compute::Tensor::Kind::kMemory),
        is_weak(tensor.weak),
        dims(tensor.shape(), tensor.shape() + 2 * tensor.rank) {}
  PlannedOperand(compute_dtype dtype, std::span<const int64_t> shape, std::span<const int64_t> strides)
      : dtype(dtype), dims(shape.begin(), shape.end()) {
    dims.insert(dims.end(), strides.begin(), strides.end());
  }

  compute_dtype dtype = COMPUTE_DTYPE_NONE;  // NONE: an optional input that is left out
  bool is_value = false;                     // a scalar or a slot
  bool is_weak = false;
  std::vector<int64_t> dims;  // the shape, then the strides

  bool operator==(const PlannedOperand&) const = default;
  bool is_like(const compute::Tensor& tensor) const {
    return dtype == tensor.dtype && is_value == (tensor.kind != compute::Tensor::Kind::kMemory) && is_weak == tensor.weak &&
           std::equal(dims.begin(), dims.end(), tensor.shape(), tensor.shape() + 2 * tensor.rank);
  }
  std::string text() const {
    if (dtype == COMPUTE_DTYPE_NONE) return "NULL";
    if (is_value) return fmt::format("a {}scalar of {}", is_weak ? "weak " : "", compute::dtype_name(dtype));
    const std::span<const int64_t> all(dims);
    return fmt::format("{} {} with strides {}", compute::dtype_name(dtype), compute::shape_text(all.first(all.size() / 2)),
                       compute::shape_text(all.last(all.size() / 2)));
  }
};

struct compute_plan : compute::Handle<compute::HandleKind::kPlan> {
  compute_plan(const compute::OpSchema& op, compute::Device& device, const compute_attribute* given, int64_t count)
      : op(op), device(device), attributes(op, given, count) {
    for (const compute::RunTimeValue& value : attributes.run_time) {
      if (value.scalar == nullptr) continue;
      value.scalar->retain();
      scalars.emplace_back(value.scalar);
    }
  }

  const compute::OpSchema& op;
  compute::Device& device;
  compute::CallAttributes attributes;
  std::vector<compute::TensorReference> scalars;  // that are values of run-time attributes
  std::vector<PlannedOperand> inputs;
  std::vector<PlannedOperand> outputs;  // of one that was not given, what the op makes
  compute::CallPlanReference prepared;
};

struct compute_expression : compute::Handle<compute::HandleKind::kExpression> {
  compute::ExpressionTemplate parsed;
  int64_t input_count = 0, scalar_count = 0;
};

using namespace compute;

namespace {

const OpSchema& schema_of(const compute_op* op) {
  const auto* wanted = reinterpret_cast<const OpSchema*>(op);
  if (op == nullptr) throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, "the op is NULL");
  // Handles are immortal, so a wrong one is found by looking.
  const auto known = op_schemas();
  if (std::find(known.begin(), known.end(), wanted) == known.end()) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, "the op is no handle of compute_op_find");
  }
  return *wanted;
}

compute_op_info info_of(const OpSchema& schema) {
  static const auto bounds = [] {
    std::vector<std::pair<const OpSchema*, std::string>> texts;
    for (const OpSchema* op : op_schemas()) texts.emplace_back(op, op->is_elementwise ? fmt::format("ulp:{}", op->ulp) : op->bound);
    return texts;
  }();
  compute_op_info info{};
  info.name = schema.name.c_str();
  info.summary = schema.summary.c_str();
  info.inputs = schema.inputs_text.c_str();
  info.attributes = schema.attributes_text.c_str();
  info.expression = schema.expression_text.c_str();
  info.dtypes = schema.is_elementwise ? schema.input_class_text.c_str() : schema.dtype_rule.c_str();
  for (const auto& [op, text] : bounds) {
    if (op == &schema) info.bound = text.c_str();
  }
  info.version = schema.version;
  info.flags = schema.flags;
  return info;
}

void require_like(const compute_plan& plan, const char* role, size_t index, const Tensor* tensor, const PlannedOperand& planned) {
  if (tensor == nullptr ? planned.dtype == COMPUTE_DTYPE_NONE : planned.is_like(*tensor)) return;
  throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
              fmt::format("{}: {} {} is {}, the plan is for {}", plan.op.name, role, index,
                          tensor == nullptr ? "NULL" : PlannedOperand(*tensor).text(), planned.text()))
      .with_argument(static_cast<int32_t>(index));
}

}  // namespace

extern "C" {

compute_error* compute_op_find(const char* name, int32_t version, const compute_op** out_op) {
  if (out_op != nullptr) *out_op = nullptr;
  return guard([&] {
    require_not_null(name, "name");
    require_not_null(out_op, "out_op");
    *out_op = reinterpret_cast<const compute_op*>(&find_op(name, version));
  });
}

compute_error* compute_op_list(compute_op_info* infos, int64_t capacity, int64_t* out_count) {
  if (out_count != nullptr) *out_count = 0;
  return guard([&] {
    require_not_null(out_count, "out_count");
    const auto schemas = op_schemas();
    *out_count = static_cast<int64_t>(schemas.size());
    if (capacity <= 0) return;
    require_not_null(infos, "infos");
    write_sized_array(infos, std::min(capacity, *out_count), "infos",
                      [&](int64_t i) { return info_of(*schemas[static_cast<size_t>(i)]); });
  });
}

compute_error* compute_op_get_info(const compute_op* op, compute_op_info* out_info) {
  clear_sized(out_info);
  return guard([&] {
    require_not_null(out_info, "out_info");
    write_sized(info_of(schema_of(op)), out_info, "out_info");
  });
}

compute_error* compute_op_run(const compute_op* op, compute_stream* stream, const compute_attribute* attributes,
                              int64_t attribute_count, compute_tensor* const* inputs, int64_t input_count,
                              compute_tensor** outputs, int64_t output_count) {
  return guard([&] {
    run_op(schema_of(op), stream, attributes, attribute_count, inputs, input_count, outputs, output_count);
  });
}

compute_error* compute_op_query(compute_device* device, const compute_op* op, const compute_attribute* attributes,
                                int64_t attribute_count, const compute_tensor_spec* inputs, int64_t input_count,
                                int32_t* out_support, compute_text** out_reason, int64_t* out_workspace_bytes) {
  if (out_support != nullptr) *out_support = COMPUTE_SUPPORT_NONE;
  if (out_reason != nullptr) *out_reason = nullptr;
  if (out_workspace_bytes != nullptr) *out_workspace_bytes = 0;
  return guard([&] {
    require_not_null(out_support, "out_support");
    require_not_null(out_reason, "out_reason");
    require_not_null(out_workspace_bytes, "out_workspace_bytes");
    Device& self = checked(device);
    const OpSchema& schema = schema_of(op);
    const Running running;
    check_operand_counts(schema, input_count, schema.output_count);
    if (input_count > 0) require_not_null(inputs, "inputs");
    if (attribute_count > 0) require_not_null(attributes, "attributes");
    Attributes statics;
    std::array<RunTimeValue, kMaxRunTimeAttributes> run_time;
    read_attributes(schema, attributes, attribute_count, statics, run_time.data());
    std::vector<OperandDesc> operands;
    std::vector<std::vector<int64_t>> dense;
    for (int64_t i = 0; i < input_count; ++i) {
      const compute_tensor_spec spec = read_sized_at(inputs, i, "inputs");
      checked_shape(schema.name.c_str(), spec.dtype, spec.rank, spec.shape);
      OperandDesc operand;
      operand.dtype = spec.dtype;
      operand.rank = spec.rank;
      operand.shape = spec.shape;
      operand.strides = spec.strides;
      if (spec.strides == nullptr) {
        dense.push_back(row_major_strides({spec.shape, static_cast<size_t>(spec.rank)}));
        operand.strides = dense.back().data();
      }
      operands.push_back(operand);
    }
    const OpCall call{schema, statics, operands};
    const std::vector<OutputDesc> outputs = infer(call);
    std::vector<std::vector<int64_t>> strides;
    std::vector<LoweringTarget::Output> layouts;
    for (const OutputDesc& output : outputs) strides.push_back(row_major_strides(output.shape));
    for (size_t i = 0; i < outputs.size(); ++i) layouts.push_back({outputs[i].dtype, outputs[i].shape, strides[i]});
    const std::vector<int32_t> input_alignment(operands.size(), 64), output_alignment(outputs.size(), 64);
    PlanRequest request{self};
    request.call = &call;
    request.name = schema.name.c_str();
    request.outputs = outputs;
    request.output_layouts = layouts;
    request.input_alignment = input_alignment;
    request.output_alignment = output_alignment;
    std::string reason;
    int64_t workspace = 0;
    const int32_t support = query_call(request, &reason, &workspace);
    *out_reason = make_text(std::move(reason));
    *out_support = support;
    *out_workspace_bytes = workspace;
  });
}

compute_error* compute_plan_create(const compute_op* op, compute_device* device, const compute_attribute* attributes,
                                   int64_t attribute_count, compute_tensor* const* inputs, int64_t input_count,
                                   compute_tensor* const* outputs, int64_t output_count, compute_plan** out_plan) {
  if (out_plan != nullptr) *out_plan = nullptr;
  return guard([&] {
    require_not_null(out_plan, "out_plan");
    const OpSchema& schema = schema_of(op);
    Device& self = checked(device);
    const Running running;
    auto plan = std::make_unique<compute_plan>(schema, self, attributes, attribute_count);
    plan->prepared = prepare_op(schema, self, plan->attributes, inputs, input_count, outputs, output_count);
    for (int64_t i = 0; i < input_count; ++i) {
      plan->inputs.push_back(inputs[i] != nullptr ? PlannedOperand(*inputs[i]) : PlannedOperand());
    }
    for (size_t i = 0; i < static_cast<size_t>(output_count); ++i) {
      const OutputDesc& made = plan->prepared->outputs[i];
      plan->outputs.push_back(outputs[i] != nullptr ? PlannedOperand(*outputs[i])
                                                    : PlannedOperand(made.dtype, made.shape, plan->prepared->output_strides[i]));
    }
    *out_plan = plan.release();
  });
}

compute_error* compute_plan_run(compute_plan* plan, compute_stream* stream, const compute_attribute* run_time,
                                int64_t run_time_count, compute_tensor* const* inputs, int64_t input_count,
                                compute_tensor** outputs, int64_t output_count) {
  return guard([&] {
    compute_plan& self = checked(plan);
    const Running running;
    if (input_count != static_cast<int64_t>(self.inputs.size()) || output_count != static_cast<int64_t>(self.outputs.size())) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                  fmt::format("{}: the plan takes {} inputs and {} outputs, not {} and {}", self.op.name, self.inputs.size(),
                              self.outputs.size(), input_count, output_count));
    }
    if (input_count > 0) require_not_null(inputs, "inputs");
    if (output_count > 0) require_not_null(outputs, "outputs");
    if (stream != nullptr && &checked(stream).device != &self.device) {
      throw Error(COMPUTE_ERROR_DEVICE_MISMATCH, fmt::format("{}: the plan is for {}, the stream is on {}", self.op.name,
                                                             self.device.name, stream->device.name));
    }
    for (size_t i = 0; i < self.inputs.size(); ++i) {
      require_like(self, "input", i, inputs[i] != nullptr ? &checked(inputs[i]) : nullptr, self.inputs[i]);
    }
    for (size_t i = 0; i < self.outputs.size(); ++i) {
      if (outputs[i] != nullptr) require_like(self, "output", i, &checked(outputs[i]), self.outputs[i]);
    }
    const auto run = [&](const CallAttributes& attributes) {
      run_prepared(*self.prepared, attributes, stream, inputs, input_count, outputs, output_count);
    };
    if (run_time_count == 0) return run(self.attributes);
    CallAttributes changed = self.attributes;
    changed.change_run_time(self.op, run_time, run_time_count);
    run(changed);
  });
}

void compute_plan_retain(compute_plan* plan) {
  if (plan != nullptr && plan->is_alive()) plan->retain();
}
void compute_plan_release(compute_plan* plan) { release_handle(plan); }

compute_error* compute_expression_parse(const char* text, const char* const* input_names, int64_t input_count,
                                        const char* const* scalar_names, int64_t scalar_count,
                                        compute_expression** out_expression) {
  if (out_expression != nullptr) *out_expression = nullptr;
  return guard([&] {
    require_not_null(out_expression, "out_expression");
    require_not_null(text, "text");
    const auto names = [](const char* const* given, int64_t count, const char* what) {
      if (count < 0) throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("{}_count is {}, below 0", what, count));
      if (count > 0) require_not_null(given, what);
      std::vector<std::string_view> views;
      for (int64_t i = 0; i < count; ++i) {
        require_not_null(given[i], what);
        views.emplace_back(given[i]);
      }
      return views;
    };
    auto expression = std::make_unique<compute_expression>();
    expression->parsed = parse(text, names(input_names, input_count, "input_names"), names(scalar_names, scalar_count, "scalar_names"));
    expression->input_count = input_count;
    expression->scalar_count = scalar_count;
    *out_expression = expression.release();
  });
}

void compute_expression_retain(compute_expression* expression) {
  if (expression != nullptr && expression->is_alive()) expression->retain();
}
void compute_expression_release(compute_expression* expression) { release_handle(expression); }

compute_error* compute_map(compute_stream* stream, compute_expression* expression, compute_tensor* const* inputs,
                           int64_t input_count, compute_tensor* const* scalars, int64_t scalar_count, compute_tensor** outputs,
                           int64_t output_count) {
  return guard([&] {
    compute_expression& self = checked(expression);
    if (input_count != self.input_count || scalar_count != self.scalar_count || output_count != self.parsed.output_count()) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                  fmt::format("map: the expression has {} inputs, {} scalars and {} outputs; {}, {} and {} were given",
                              self.input_count, self.scalar_count, self.parsed.output_count(), input_count, scalar_count,
                              output_count));
    }
    if (input_count > 0) require_not_null(inputs, "inputs");
    if (scalar_count > 0) require_not_null(scalars, "scalars");
    require_not_null(outputs, "outputs");
    SmallVector<Tensor*, 8> operands;
    for (int64_t i = 0; i < input_count; ++i) operands.push_back(&checked(inputs[i]));
    for (int64_t i = 0; i < scalar_count; ++i) {
      Tensor& scalar = checked(scalars[i]);
      if (scalar.kind == Tensor::Kind::kMemory) {
        throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                    fmt::format("map: scalar {} is a tensor with memory; make it with compute_tensor_scalar", i));
      }
      operands.push_back(&scalar);
    }
    for (int64_t i = 0; i < output_count; ++i) {
      if (outputs[i] != nullptr) checked(outputs[i]);
    }
    run_map(self.parsed, stream, operands, outputs, output_count);
  });
}

}  // extern "C"
