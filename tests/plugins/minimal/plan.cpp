// SPDX-License-Identifier: Apache-2.0
// Plans, and the four slots through which core asks for them and runs them.
#include "plan.hpp"

#include <cstring>
#include <numeric>

#include "minimal.hpp"

namespace minimal {

Tensor::Tensor(const compute_plugin_tensor& tensor)
    : dtype(tensor.dtype),
      alignment(tensor.alignment),
      shape(tensor.shape, tensor.shape + tensor.rank),
      strides(tensor.strides, tensor.strides + tensor.rank) {
  const bool is_packed = dtype != 0 && dtype == packed_dtype();
  if (!is_dtype(dtype) && !is_packed)
    throw Refused{COMPUTE_PLUGIN_REFUSE_DTYPE, -1, "a dtype that is newer than the plugin"};
  if (level_of(dtype) == 0) throw Refused{COMPUTE_PLUGIN_REFUSE_DTYPE, -1, "a dtype that the device does not have"};
  element_bytes = is_packed ? 1 : element_size(dtype);
  const bool is_complex = dtype == COMPUTE_DTYPE_COMPLEX64 || dtype == COMPUTE_DTYPE_COMPLEX128;
  if (alignment < element_bytes / (is_complex ? 2 : 1) || alignment > 64 || (alignment & (alignment - 1)) != 0) {
    throw Failure(COMPUTE_ERROR_INTERNAL, "minimal: elements of " + std::to_string(element_bytes) +
                                              " bytes are said to be aligned to " + std::to_string(alignment));
  }
  end_byte = element_bytes;
  for (int64_t axis = 0; axis < rank(); ++axis) {
    strides[axis] *= element_bytes;
    (strides[axis] < 0 ? first_byte : end_byte) += strides[axis] * (shape[axis] - 1);
  }
}

int64_t Tensor::offset(const int64_t* position) const {
  return std::inner_product(strides.begin(), strides.end(), position, int64_t{0});
}

bool Tensor::row_major() const {
  int64_t expected = element_bytes;
  for (int64_t axis = rank() - 1; axis >= 0; --axis) {
    if (shape[axis] != 1 && strides[axis] != expected) return false;
    expected *= shape[axis];
  }
  return true;
}

namespace {

// As a device would whose kernels know no strides. Core then packs the operand.
void refuse_strides(const Plan& plan) {
  for (int64_t i = 0; i < plan.input_count; ++i) {
    if (plan.tensors[i].row_major()) continue;
    throw Refused{COMPUTE_PLUGIN_REFUSE_LAYOUT, static_cast<int32_t>(i),
                  "the device was told to take row-major operands alone"};
  }
}

// What a newer core adds to a primitive changes its result, so that it is never passed over.
void refuse_more(const Primitive& primitive, const compute_plugin_op& op) {
  if (op.expression_count > primitive.expressions)
    throw Refused{COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED, -1, "the plugin has no epilogues"};
  if (primitive.tensors >= 0 && op.input_count + op.output_count > primitive.tensors)
    throw Refused{COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED, -1, "a tensor that is newer than the plugin"};
  for (int32_t i = 0; i < op.attribute_count; ++i) {
    const compute_attribute& attribute = element(op.attributes, i);
    const std::string name = " " + std::string(attribute.name, static_cast<size_t>(attribute.name_size)) + " ";
    if (primitive.attributes.find(name) == std::string_view::npos)
      throw Refused{COMPUTE_PLUGIN_REFUSE_ATTRIBUTE, -1, "an attribute that is newer than the plugin"};
  }
}

void require_level(const Plan& plan, uint32_t level) {
  for (const Tensor& tensor : plan.tensors) {
    if (!(level_of(tensor.dtype) & level))
      throw Refused{COMPUTE_PLUGIN_REFUSE_DTYPE, -1, "more than the device does with the dtype"};
  }
}

void require_levels(const Plan& plan) {
  const std::string_view name = plan.primitive->name;
  if (name == "map" || name == "reduce" || name == "row") require_level(plan, COMPUTE_DTYPE_LEVEL_ARITHMETIC);
  if (name == "copy" && plan.tensors[0].dtype != plan.tensors[1].dtype)
    require_level(plan, COMPUTE_DTYPE_LEVEL_CONVERT);
}

}  // namespace

Plan::Plan(const compute_plugin_op& op)
    : primitive(find_primitive({op.name.data, static_cast<size_t>(op.name.size)})),
      input_count(op.input_count),
      scalar_count(op.scalar_count) {
  if (primitive == nullptr || op.version != 1) {
    throw Refused{COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED, -1, "the plugin does not implement it"};
  }
  refuse_more(*primitive, op);
  for (int32_t i = 0; i < op.input_count + op.output_count; ++i) {
    const compute_plugin_tensor& tensor = element(op.tensors, i);
    if (tensor.layout != COMPUTE_PLUGIN_LAYOUT_STRIDED)
      throw Refused{COMPUTE_PLUGIN_REFUSE_LAYOUT, i, "a layout that is newer than the plugin"};
    tensors.emplace_back(tensor);
  }
  if (lacks("strides") && primitive->name != "copy") refuse_strides(*this);
  require_levels(*this);
  for (int32_t i = 0; i < op.expression_count; ++i) programs.emplace_back(*op.expressions[i]);
  kept.resize(tensors[0].shape.size());
  std::iota(kept.begin(), kept.end(), 0);
  primitive->prepare(*this, op);
  if (primitive->name == "scatter" && combine != nullptr) require_level(*this, COMPUTE_DTYPE_LEVEL_ARITHMETIC);
}

void understand_all(const compute_plugin_op& op) {
  understand(op, "the op");
  for (int32_t i = 0; i < op.input_count + op.output_count; ++i)
    understand(element(op.tensors, i), "a tensor of the op");
  for (int32_t i = 0; i < op.attribute_count; ++i) understand(element(op.attributes, i), "an attribute of the op");
  for (int32_t i = 0; i < op.expression_count; ++i) understand(*op.expressions[i], "an expression of the op");
}

namespace {

// The op's plan; NULL after a call of `refuse` with the reason.
SharedPlan make_plan(const compute_plugin_op& op, compute_plugin_refuse refuse, void* context) {
  try {
    return std::make_shared<const Plan>(op);
  } catch (const Refused& refused) {
    compute_plugin_refusal refusal = {};
    refusal.struct_size = sizeof refusal;
    refusal.struct_type = COMPUTE_PLUGIN_STRUCT_REFUSAL;
    refusal.reason = refused.reason;
    refusal.argument = refused.argument;
    refusal.text = text(refused.text);
    refuse(context, &refusal);
    return nullptr;
  }
}

// Preparing costs so little that asking whether it would succeed is the same as trying.
compute_error* op_query(uint64_t, const compute_plugin_op* op, compute_plugin_query_info* out_info,
                        compute_plugin_refuse refuse, void* context) {
  out_info->supported = 0;
  return guard([&] {
    understand_all(*op);
    understand(*out_info, "the answer");
    const SharedPlan plan = make_plan(*op, refuse, context);
    out_info->supported = plan != nullptr ? 1 : 0;
    if (plan != nullptr && runs_on_host(plan->primitive->name)) out_info->flags |= COMPUTE_PLUGIN_QUERY_HOST;
  });
}

compute_error* op_prepare(uint64_t, const compute_plugin_op* op, uint64_t* out_plan, compute_plugin_plan_info* out_info,
                          compute_plugin_refuse refuse, void* context) {
  *out_plan = 0;
  return guard([&] {
    understand_all(*op);
    understand(*out_info, "the plan's answer");
    SharedPlan plan = make_plan(*op, refuse, context);
    if (plan == nullptr) return;
    out_info->reports_faults = plan->primitive->reports_faults;
    if (runs_on_host(plan->primitive->name)) out_info->flags |= COMPUTE_PLUGIN_PLAN_HOST;
    if (plans_need_memory() && COMPUTE_PLUGIN_HAS(out_info, argument_bytes))
      out_info->argument_bytes = static_cast<int64_t>(plan->tensors.size() * sizeof(std::byte*));
    *out_plan = to_handle(new SharedPlan(std::move(plan)));
  });
}

// A run that has memory for arguments passes its operands there, and no others.
struct RunMemory {
  std::byte* arguments = nullptr;

  void write(const Operands& operands) const {
    if (arguments != nullptr)
      std::memcpy(arguments, operands.tensors.data(), operands.tensors.size() * sizeof(std::byte*));
  }
  void read(Operands& operands) const {
    if (arguments != nullptr)
      std::memcpy(operands.tensors.data(), arguments, operands.tensors.size() * sizeof(std::byte*));
  }
};

void report_fault(const compute_plugin_fault& fault, compute_plugin_fault* record) {
  if (fault.code == COMPUTE_PLUGIN_FAULT_NONE) return;
  if (record == nullptr) {  // then the stream fails
    throw Failure(COMPUTE_ERROR_KERNEL_FAILED, "index " + std::to_string(fault.value) +
                                                   " is outside of an axis of extent " + std::to_string(fault.limit));
  }
  if (record->code != COMPUTE_PLUGIN_FAULT_NONE) return;
  record->argument = fault.argument;
  record->value = fault.value;
  record->limit = fault.limit;
  record->position = fault.position;
  record->code = fault_code();
}

// A driver would compile here.
compute_error* plan_warm(uint64_t plan) {
  return guard([&] {
    const std::string_view name = from_handle<SharedPlan>(plan)->primitive->name;
    log("compile", "minimal warms a plan of " + std::string(name));
  });
}

compute_error* plan_run(uint64_t plan, const compute_plugin_run* run) {
  return guard([&] {
    Stream& stream = from_handle<Stream>(run->stream);
    stream.submit(make_task(from_handle<SharedPlan>(plan), *run, stream.device));
  });
}

void plan_release(uint64_t, uint64_t plan) { delete &from_handle<SharedPlan>(plan); }

}  // namespace

std::function<void()> make_task(const SharedPlan& plan, const compute_plugin_run& given, Device& device) {
  understand(given, "the run");
  const compute_plugin_run run = whole(given);
  Operands operands;
  for (size_t i = 0; i < plan->tensors.size(); ++i) {
    const Tensor& tensor = plan->tensors[i];
    operands.tensors.push_back(device.memory.resolve(run.tensors[i], tensor.first_byte, tensor.end_byte));
    // A device would fault, or read other elements.
    if (to_handle(operands.tensors.back()) % static_cast<uint64_t>(tensor.alignment) != 0) {
      throw Failure(COMPUTE_ERROR_INTERNAL, "minimal: operand " + std::to_string(i) + " is not aligned to " +
                                                std::to_string(tensor.alignment) + " bytes, as its plan was told");
    }
  }
  operands.scalars.assign(run.scalars, run.scalars + plan->scalar_count);
  std::byte* record = nullptr;
  if (run.fault.buffer != 0) record = device.memory.resolve(run.fault, 0, sizeof(compute_plugin_fault));
  RunMemory memory;
  if (run.arguments.buffer != 0) memory.arguments = device.memory.resolve(run.arguments, 0, 0);
  memory.write(operands);
  return [plan, operands = std::move(operands), memory, record]() mutable {
    memory.read(operands);
    report_fault(plan->primitive->run(*plan, operands), reinterpret_cast<compute_plugin_fault*>(record));
  };
}

void fill_op_slots(compute_plugin_device_table& table) {
  table.op_query = op_query;
  table.op_prepare = op_prepare;
  table.plan_warm = plan_warm;
  table.plan_run = plan_run;
  table.plan_release = plan_release;
}

}  // namespace minimal
