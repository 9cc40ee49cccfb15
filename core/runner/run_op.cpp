// SPDX-License-Identifier: Apache-2.0
#include "core/runner/run_op.hpp"

#include <fmt/format.h>

#include "core/lifetime/open_device.hpp"
#include "core/runner/call.hpp"
#include "core/runner/recording.hpp"
#include "core/streams/stream.hpp"

namespace compute {

void note_failed_call(Error& error, const char* name, compute_stream* stream,
                      std::span<Tensor* const> operands) noexcept {
  error.with_op(name);
  const bool has_stream = stream != nullptr && stream->is_alive();
  const Device* device = has_stream ? &stream->device : nullptr;
  for (const Tensor* operand : operands) {
    if (device != nullptr && !device->is_host) break;
    if (operand != nullptr && operand->is_alive() && operand->buffer != nullptr) device = &operand->buffer->device;
  }
  if (error.device.empty() && device != nullptr) error.device = device->name;
  if (has_stream) note_recording_error(stream->timeline, error);
}

namespace {

[[noreturn]] void refuse_operand(const char* name, const char* role, int64_t index, int64_t argument,
                                 const Tensor& operand) {
  throw Error(
      COMPUTE_ERROR_INVALID_ARGUMENT,
      fmt::format("{}: {} {}{}", name, role, index, fault_of_handle(HandleKind::kTensor, &operand, operand.mark())))
      .with_argument(static_cast<int32_t>(argument));
}

[[gnu::noinline]] void check_absent_input(const char* name, int64_t index, const OpSchema* schema) {
  const auto i = static_cast<size_t>(index);
  if (schema != nullptr && i < schema->optional.size() && schema->optional[i]) return;
  throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("{}: input {} is NULL", name, index))
      .with_argument(static_cast<int32_t>(index));
}

inline void check_inputs(const char* name, compute_tensor* const* inputs, int64_t count, const OpSchema* schema) {
  for (int64_t i = 0; i < count; ++i) {
    if (inputs[i] == nullptr) [[unlikely]]
      check_absent_input(name, i, schema);
    else if (!inputs[i]->is_alive()) [[unlikely]]
      refuse_operand(name, "input", i, i, *inputs[i]);
  }
}

}  // namespace

CallAttributes::CallAttributes(const OpSchema& schema, const compute_attribute* given, int64_t count)
    : run_time(schema.run_time.size()) {
  if (count > 0) require_not_null(given, "attributes");
  read_attributes(schema, given, count, statics, run_time.data());
  statics_hash = statics.hash();
  read_scalars(schema);
}

void CallAttributes::change_run_time(const OpSchema& schema, const compute_attribute* given, int64_t count) {
  compute::change_run_time(schema, given, count, run_time.data());
  read_scalars(schema);
}

void CallAttributes::read_scalars(const OpSchema& schema) {
  for (size_t i = 0; i < schema.run_time.size(); ++i) {
    RunTimeValue& value = run_time[i];
    if (value.kind != COMPUTE_KIND_SCALAR) continue;
    const Tensor& scalar = checked(value.scalar);
    if (scalar.kind == Tensor::Kind::kMemory) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                  fmt::format("{}: attribute {} is a tensor with memory; pass a scalar or a slot", schema.name,
                              schema.attributes[static_cast<size_t>(schema.run_time[i])].name));
    }
    value.dtype = scalar.dtype;
    value.bits = scalar_from_memory(scalar.dtype, scalar.bits.data());
  }
}

namespace {

Callee callee_of(const OpSchema& schema, const CallAttributes& attributes) {
  Callee callee = callee_of(schema, attributes.statics, attributes.statics_hash);
  callee.run_time = attributes.run_time;
  return callee;
}

inline void check_operands(const OpSchema& schema, compute_tensor* const* inputs, int64_t input_count,
                           compute_tensor* const* outputs, int64_t output_count) {
  if (input_count > 0) require_not_null(inputs, "inputs");
  if (output_count > 0) require_not_null(outputs, "outputs");
  check_operand_counts(schema, input_count, output_count);
  check_inputs(schema.name.c_str(), inputs, input_count, &schema);
  for (int64_t i = 0; i < output_count; ++i) {
    if (outputs[i] != nullptr && !outputs[i]->is_alive())
      refuse_operand(schema.name.c_str(), "output", i, input_count + i, *outputs[i]);
  }
}

}  // namespace

void run_op(const OpSchema& schema, compute_stream* stream, const compute_attribute* attributes,
            int64_t attribute_count, compute_tensor* const* inputs, int64_t input_count, compute_tensor** outputs,
            int64_t output_count) {
  const std::span<Tensor* const> operands = tensors_of(inputs, input_count);
  named_call(schema.name.c_str(), stream, operands, [&] {
    check_operands(schema, inputs, input_count, outputs, output_count);
    const auto run = [&](const Callee& callee) {
      run_call(callee, stream, {inputs, static_cast<size_t>(input_count)},
               {outputs, static_cast<size_t>(output_count)});
    };
    if (attribute_count == 0 && schema.defaults) return run(callee_by_default(schema));
    const CallAttributes read(schema, attributes, attribute_count);
    run(callee_of(schema, read));
  });
}

PlanReference plan_op(const OpSchema& schema, Device& device, const CallAttributes& attributes,
                      compute_tensor* const* inputs, int64_t input_count, compute_tensor* const* outputs,
                      int64_t output_count) {
  check_operands(schema, inputs, input_count, outputs, output_count);
  const Callee callee = callee_of(schema, attributes);
  std::vector<compute_tensor*> given(outputs, outputs + output_count);
  compute_stream stream(device, default_timeline(device), compute_stream::Borrowed{});
  Plan* plan = plan_of_call(callee, &stream, {inputs, static_cast<size_t>(input_count)}, given);
  plan->retain();
  return PlanReference(plan);
}

void run_planned(Plan& kept, const CallAttributes& attributes, compute_stream* stream, compute_tensor* const* inputs,
                 int64_t input_count, compute_tensor** outputs, int64_t output_count) {
  Callee callee = callee_of(*kept.op, attributes);
  callee.kept = &kept;
  const auto run = [&](compute_stream& queue) {
    run_call(callee, &queue, {inputs, static_cast<size_t>(input_count)}, {outputs, static_cast<size_t>(output_count)});
  };
  if (stream != nullptr) return run(*stream);
  compute_stream queue(kept.device, default_timeline(kept.device), compute_stream::Borrowed{});
  run(queue);
}

compute_error* run_elementwise(OpId id, compute_stream* stream, compute_tensor* const* inputs, int64_t input_count,
                               compute_tensor** out, compute_tensor* into) noexcept {
  if (out != nullptr) *out = nullptr;
  return guard([&] {
    const Callee callee = callee_by_default(op_schema(id));
    compute_tensor* output = into;
    const std::span<Tensor* const> operands{inputs, static_cast<size_t>(input_count)};
    named_call(callee.name, stream, operands, [&] {
      check_inputs(callee.name, inputs, input_count, nullptr);
      if (out == nullptr) {
        if (into == nullptr)
          throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("{}: the output pointer is NULL", callee.name));
        if (!into->is_alive()) refuse_operand(callee.name, "output", 0, input_count, *into);
      }
      run_call(callee, stream, operands, {&output, 1});
    });
    if (out != nullptr) *out = output;
  });
}

void run_map(const ExpressionTemplate& expression, compute_stream* stream, std::span<Tensor* const> operands,
             compute_tensor** outputs, int64_t output_count) {
  Callee callee;
  callee.expression = &expression;
  callee.name = "map";
  run_call(callee, stream, operands, {outputs, static_cast<size_t>(output_count)});
}

void run_map_reduction(const ExpressionTemplate& expression, const MapReduction& reduction, compute_stream* stream,
                       std::span<Tensor* const> operands, compute_tensor** output) {
  Attributes told;
  const bool has_after = static_cast<bool>(reduction.after);
  const int64_t words[] = {has_after ? reinterpret_cast<int64_t>(&reduction.after.data()) : 0, reduction.accumulator,
                           reduction.keepdims, reduction.over_all};
  told.append(words);
  told.append(reduction.axes);
  told.append(std::string_view(reduction.kind));
  Callee callee;
  callee.expression = &expression;
  callee.reduction = &reduction;
  callee.attributes = &told;
  callee.attributes_hash = told.hash();
  callee.name = "reduce";
  run_call(callee, stream, operands, {output, 1});
}

TensorReference pack(Tensor& tensor, Timeline& timeline) {
  TensorReference packed(make_tensor(device_of(tensor), tensor.dtype, tensor.shape_span(), &timeline));
  copy_into(tensor, *packed, timeline);
  return packed;
}

}  // namespace compute
