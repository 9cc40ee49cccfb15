// SPDX-License-Identifier: Apache-2.0
// The C interface of ops, plans and expressions.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>

#include "core/base/sized.hpp"
#include "core/devices/registry.hpp"
#include "core/interface/about.hpp"
#include "core/lifetime/open_device.hpp"
#include "core/memory/residency.hpp"
#include "core/ops/composition.hpp"
#include "core/ops/infer.hpp"
#include "core/ops/op_kernels.hpp"
#include "core/ops/shapes.hpp"
#include "core/planner/make_plan.hpp"
#include "core/runner/run_op.hpp"
#include "core/streams/stream.hpp"
#include "core/text/printable.hpp"
#include "core/text/text.hpp"

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
    return dtype == tensor.dtype && is_value == (tensor.kind != compute::Tensor::Kind::kMemory) &&
           is_weak == tensor.weak &&
           std::equal(dims.begin(), dims.end(), tensor.shape(), tensor.shape() + 2 * tensor.rank);
  }
  std::string text() const {
    if (dtype == COMPUTE_DTYPE_NONE) return "NULL";
    if (is_value) return fmt::format("a {}scalar of {}", is_weak ? "weak " : "", compute::dtype_name(dtype));
    const std::span<const int64_t> all(dims);
    return fmt::format("{} {} with strides {}", compute::dtype_name(dtype),
                       compute::shape_text(all.first(all.size() / 2)), compute::shape_text(all.last(all.size() / 2)));
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
  std::vector<PlannedOperand> outputs;  // for an output that was not given, the inferred one
  compute::PlanReference prepared;
};

struct compute_expression : compute::Handle<compute::HandleKind::kExpression> {
  compute::ExpressionTemplate parsed;
  int64_t input_count = 0, scalar_count = 0;

  void require_counts(int64_t inputs, int64_t scalars, int64_t outputs) const {
    if (inputs == input_count && scalars == scalar_count && outputs == parsed.output_count()) return;
    throw compute::Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                         fmt::format("map: the expression has {} inputs, {} scalars and {} outputs; got {}, {} and {}",
                                     input_count, scalar_count, parsed.output_count(), inputs, scalars, outputs));
  }
};

using namespace compute;

namespace {

// Handles that passed the check. Handles are immortal, so they stay valid.
std::array<std::atomic<const compute_op*>, 256> good_handles;

[[gnu::noinline]] void check_handle(const compute_op* op, std::atomic<const compute_op*>& place) {
  if (op == nullptr) throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, "the op is NULL");
  const auto known = op_schemas();
  if (std::find(known.begin(), known.end(), reinterpret_cast<const OpSchema*>(op)) == known.end()) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, "the op was not returned by compute_op_find");
  }
  place.store(op, std::memory_order_relaxed);
}

const OpSchema& schema_of(const compute_op* op) {
  const uint64_t hash = reinterpret_cast<uintptr_t>(op) * 0x9e3779b97f4a7c15u;
  std::atomic<const compute_op*>& place = good_handles[hash >> 56];
  if (op == nullptr || place.load(std::memory_order_relaxed) != op) [[unlikely]]
    check_handle(op, place);
  return *reinterpret_cast<const OpSchema*>(op);
}

// Also an op of a plugin that is not open yet: its name begins with the name of the plugin.
const OpSchema& find_anywhere(std::string_view name, int32_t version) {
  const size_t dot = name.find('.');
  if (dot != std::string_view::npos && !has_op(name)) {
    const std::string first_device = std::string(name.substr(0, dot)) + "0";
    Registry::instance().find(first_device.c_str());
  }
  return find_op(name, version);
}

compute_op_info info_of(const OpSchema& schema) {
  compute_op_info info{};
  const auto set = [](const char*& data, int64_t& size, const std::string& text) {  // schemas are immortal
    data = text.c_str();
    size = static_cast<int64_t>(text.size());
  };
  set(info.name, info.name_size, schema.name);
  set(info.summary, info.summary_size, schema.summary);
  set(info.inputs, info.inputs_size, schema.inputs_text);
  set(info.outputs, info.outputs_size, schema.outputs_text);
  set(info.attributes, info.attributes_size, schema.attributes_text);
  set(info.expression, info.expression_size, schema.expression_text);
  set(info.dtypes, info.dtypes_size, schema.is_elementwise ? schema.input_class_text : schema.dtype_rule);
  set(info.bound, info.bound_size, schema.bound);
  info.version = schema.version;
  info.flags = static_cast<uint32_t>(schema.flags);
  return info;
}

void require_like(const compute_plan& plan, const char* role, size_t index, const Tensor* tensor,
                  const PlannedOperand& planned) {
  if (tensor == nullptr ? planned.dtype == COMPUTE_DTYPE_NONE : planned.is_like(*tensor)) return;
  throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
              fmt::format("{}: {} {} is {}, but the plan is for {}", plan.op.name, role, index,
                          tensor == nullptr ? "NULL" : PlannedOperand(*tensor).text(), planned.text()))
      .with_argument(static_cast<int32_t>(index));
}

// What the functions that ask read of compute_tensor_spec.
class SpecifiedOperands {
 public:
  explicit SpecifiedOperands(const char* who) : who_(who) {}

  // Appends the specs of an array, which may be NULL if empty; `implied` flags apply to each.
  void add(const compute_tensor_spec* specs, int64_t count, const char* name, uint32_t implied) {
    if (count > 0) require_not_null(specs, name);
    for (int64_t i = 0; i < count; ++i) {
      const compute_tensor_spec spec = read_sized_at(specs, i, name);
      const uint32_t flags = spec.flags | implied;
      OperandDesc& operand = operands_.emplace_back();
      require_known_flags(flags, COMPUTE_SPEC_SCALAR | COMPUTE_SPEC_WEAK | COMPUTE_SPEC_ABSENT, name);
      require_zero(spec.reserved, name);
      if ((flags & COMPUTE_SPEC_ABSENT) != 0) continue;
      checked_shape(who_, spec.dtype, spec.rank, spec.shape);
      operand.dtype = spec.dtype;
      operand.is_scalar = (flags & COMPUTE_SPEC_SCALAR) != 0;
      operand.weak = (flags & COMPUTE_SPEC_WEAK) != 0;
      if (operand.is_scalar ? spec.rank != 0 : operand.weak) {
        throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                    fmt::format("{}[{}]: {}", name, i,
                                operand.is_scalar ? "a scalar must have rank 0" : "only a scalar can be weak"));
      }
      operand.rank = spec.rank;
      operand.shape = spec.shape;
      operand.strides = spec.strides;
      if (spec.strides == nullptr) operand.strides = dense_.emplace_back(row_major_strides(operand.extents())).data();
    }
  }

  void require_present() const {
    for (size_t i = 0; i < operands_.size(); ++i) {
      if (operands_[i].dtype == COMPUTE_DTYPE_NONE) {
        throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("{}: operand {} is not optional", who_, i))
            .with_argument(static_cast<int32_t>(i));
      }
    }
  }

  size_t size() const { return operands_.size(); }
  const OperandDesc& operator[](size_t index) const { return operands_[index]; }
  std::span<const OperandDesc> all() const { return operands_; }

 private:
  const char* const who_;
  std::vector<OperandDesc> operands_;
  std::deque<std::vector<int64_t>> dense_;  // keeps addresses
};

// The outputs that a program describes to the functions that ask.
class SpecifiedOutputs {
 public:
  // `first` is the position of output 0 among the operands.
  SpecifiedOutputs(const char* who, const compute_tensor_spec* specs, int64_t count, const char* name, size_t first)
      : given_(who) {
    given_.add(specs, count, name, 0);
    bool any = false;
    for (size_t i = 0; i < given_.size(); ++i) {
      const OperandDesc& output = given_[i];
      any = any || output.dtype != COMPUTE_DTYPE_NONE;
      wanted_.push_back(output.dtype);
      const std::span<const int64_t> strides(output.strides, output.extents().size());
      if (output.dtype == COMPUTE_DTYPE_NONE || (!output.is_scalar && !overlaps_itself(output.extents(), strides)))
        continue;
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                  output.is_scalar ? fmt::format("{}: output {} cannot be a scalar", who, i)
                                   : fmt::format("{}: output {} {} has strides {} that make its elements overlap", who,
                                                 i, shape_text(output.extents()), shape_text(strides)))
          .with_argument(static_cast<int32_t>(first + i));
    }
    if (!any) wanted_.clear();
  }

  std::span<const OperandDesc> all() const { return given_.all(); }
  std::span<const compute_dtype> wanted() const { return wanted_; }  // empty if no output is given

 private:
  SpecifiedOperands given_;
  std::vector<compute_dtype> wanted_;
};

// The inputs and scalars of an expression; plain numbers become scalar tensors.
class ExpressionOperands {
 public:
  ExpressionOperands(const char* who, compute_tensor* const* inputs, int64_t input_count, const compute_number* scalars,
                     int64_t scalar_count) {
    if (input_count > 0) require_not_null(inputs, "inputs");
    if (scalar_count > 0) require_not_null(scalars, "scalars");
    for (int64_t i = 0; i < input_count; ++i) {
      if (inputs[i] == nullptr) {
        throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("{}: input {} is NULL", who, i))
            .with_argument(static_cast<int32_t>(i));
      }
      all_.push_back(&checked(inputs[i]));
    }
    for (int64_t i = 0; i < scalar_count; ++i) {
      require_zero(scalars[i].reserved, "scalars");
      all_.push_back(scalar(who, scalars[i], i, static_cast<int32_t>(input_count + i)));
    }
  }

  std::span<Tensor* const> all() const { return all_; }

 private:
  Tensor* scalar(const char* who, const compute_number& number, int64_t index, int32_t argument) {
    const auto make = [&](compute_dtype dtype, const void* value) {
      return made_.emplace_back(new Tensor(dtype, value, true, Tensor::Kind::kScalar)).get();
    };
    switch (number.kind) {
      case COMPUTE_KIND_INT64:
        return make(COMPUTE_DTYPE_INT64, &number.integer);
      case COMPUTE_KIND_FLOAT64:
        return make(COMPUTE_DTYPE_FLOAT64, &number.real);
      case COMPUTE_KIND_COMPLEX128:
        return make(COMPUTE_DTYPE_COMPLEX128, &number.real);
      case COMPUTE_KIND_SCALAR:
        break;
      default:
        throw Error(
            COMPUTE_ERROR_INVALID_ARGUMENT,
            fmt::format("{}: scalar {} has kind {}, which is not the kind of a number", who, index, number.kind))
            .with_argument(argument);
    }
    Tensor& tensor = checked(number.tensor);
    if (tensor.kind != Tensor::Kind::kMemory) return &tensor;
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                fmt::format("{}: scalar {} is a tensor with memory; create it with compute_tensor_scalar", who, index))
        .with_argument(argument);
  }

  SmallVector<Tensor*, 8> all_;
  std::vector<TensorReference> made_;
};

// The op of the same name; "" if compute_reduce has no such reduction.
const char* reduction_name(int32_t reduction) {
  switch (reduction) {
    case COMPUTE_REDUCTION_SUM:
      return "sum";
    case COMPUTE_REDUCTION_PROD:
      return "prod";
    case COMPUTE_REDUCTION_MIN:
      return "min";
    case COMPUTE_REDUCTION_MAX:
      return "max";
    case COMPUTE_REDUCTION_ALL:
      return "all";
    case COMPUTE_REDUCTION_ANY:
      return "any";
    default:
      return "";
  }
}

// The static part of compute_reduce, checked as far as it can be without operands.
MapReduction read_reduction(const compute_expression& before, int32_t kind, const compute_reduce_options* options,
                            int64_t input_count, int64_t scalar_count) {
  const auto refuse = [](const std::string& what) { throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, "reduce: " + what); };
  MapReduction reduction;
  reduction.kind = reduction_name(kind);
  if (*reduction.kind == '\0')
    refuse(fmt::format("reduction is {}; expected COMPUTE_REDUCTION_SUM, _PROD, _MIN, _MAX, _ALL or _ANY", kind));
  const auto given = options != nullptr ? read_sized(options, "options") : compute_reduce_options{};
  if (given.keepdims != 0 && given.keepdims != 1) refuse(fmt::format("keepdims is {}, not 0 or 1", given.keepdims));
  if (given.accumulator != COMPUTE_DTYPE_NONE && dtype_size(given.accumulator) == 0)
    refuse(fmt::format("accumulator {} is not a dtype", given.accumulator));
  reduction.accumulator = given.accumulator;
  reduction.keepdims = given.keepdims != 0;
  const bool has_list = given.axes != nullptr || given.axes_count != 0;
  if (has_list && given.axes_mask != 0) refuse("axes and axes_mask are both given");
  if (has_list) {
    if (given.axes_count < 0 || given.axes_count > COMPUTE_MAX_RANK)
      refuse(fmt::format("axes_count is {}, outside [0, {}]", given.axes_count, COMPUTE_MAX_RANK));
    require_not_null(given.axes, "axes");
    reduction.axes.assign(given.axes, given.axes + given.axes_count);
  }
  for (int64_t i = 0; i < 64; ++i) {
    if ((given.axes_mask >> i & 1) != 0) reduction.axes.push_back(i);
  }
  reduction.over_all = !has_list && given.axes_mask == 0;
  int64_t scalars = before.scalar_count;
  if (before.parsed.output_count() != 1) refuse("`before` has several outputs");
  if (given.after != nullptr) {
    const compute_expression& after = checked(given.after);
    reduction.after = after.parsed;
    scalars += after.scalar_count;
    if (after.input_count != 1 || after.parsed.output_count() != 1)
      refuse(fmt::format("`after` has {} inputs and {} outputs, not one of each", after.input_count,
                         after.parsed.output_count()));
    if (after.parsed.max_index_axis() >= 0) refuse("`after` cannot use index()");
  }
  if (input_count != before.input_count || scalar_count != scalars) {
    refuse(fmt::format("the expressions have {} inputs and {} scalars; {} and {} were given", before.input_count,
                       scalars, input_count, scalar_count));
  }
  return reduction;
}

static_assert(COMPUTE_REASON_NOT_IMPLEMENTED == int32_t{COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED} &&
              COMPUTE_REASON_DTYPE == int32_t{COMPUTE_PLUGIN_REFUSE_DTYPE} &&
              COMPUTE_REASON_LAYOUT == int32_t{COMPUTE_PLUGIN_REFUSE_LAYOUT} &&
              COMPUTE_REASON_RANK == int32_t{COMPUTE_PLUGIN_REFUSE_RANK} &&
              COMPUTE_REASON_SHAPE == int32_t{COMPUTE_PLUGIN_REFUSE_SHAPE} &&
              COMPUTE_REASON_ATTRIBUTE == int32_t{COMPUTE_PLUGIN_REFUSE_ATTRIBUTE} &&
              COMPUTE_REASON_LIBRARY_MISSING == int32_t{COMPUTE_PLUGIN_REFUSE_LIBRARY_MISSING} &&
              COMPUTE_REASON_INTRINSIC == int32_t{COMPUTE_PLUGIN_REFUSE_INTRINSIC});

// What the functions that ask return.
class Answer {
 public:
  explicit Answer(compute_support* out) : out_(out) { clear_sized(out); }

  void require_place() const { require_not_null(out_, "out_support"); }

  // One of `call` and `map` is given. `given` are the outputs' layouts, without a dtype where the call makes the
  // output.
  void ask(Device& device, const char* name, const OpCall* call, const MapCall* map, const Inference& inference,
           std::span<const OperandDesc> given) const {
    const std::vector<OutputDesc>& outputs = inference.outputs;
    std::vector<std::vector<int64_t>> strides;
    std::vector<LoweringTarget::Output> layouts;
    for (const OutputDesc& output : outputs) strides.push_back(row_major_strides(output.shape));
    for (size_t i = 0; i < outputs.size(); ++i) {
      const bool is_given = i < given.size() && given[i].dtype != COMPUTE_DTYPE_NONE;
      if (is_given &&
          (given[i].dtype != outputs[i].dtype || !std::ranges::equal(given[i].extents(), outputs[i].shape))) {
        throw Error(
            COMPUTE_ERROR_INVALID_ARGUMENT,
            fmt::format("{}: output {} is {} {}, but the result is {} {}", name, i, dtype_name(given[i].dtype),
                        shape_text(given[i].extents()), dtype_name(outputs[i].dtype), shape_text(outputs[i].shape)))
            .with_argument(static_cast<int32_t>((call != nullptr ? call->inputs.size() : map->operands.size()) + i));
      }
      const std::span<const int64_t> own(strides[i]);
      layouts.push_back({outputs[i].dtype, outputs[i].shape, is_given ? std::span(given[i].strides, own.size()) : own});
    }
    const std::vector<int32_t> input_alignment(call != nullptr ? call->inputs.size() : map->operands.size(), 64);
    const std::vector<int32_t> output_alignment(outputs.size(), 64);
    const auto ask_of = [&](Device& asked) {
      PlanRequest request{asked, inference};
      request.call = call;
      request.map = map;
      request.name = name;
      request.output_layouts = layouts;
      request.input_alignment = input_alignment;
      request.output_alignment = output_alignment;
      return query_plan(request);
    };
    PlanSupport answer = ask_of(device);
    if (answer.support == COMPUTE_SUPPORT_NONE && !device.is_host &&
        allows_fallback(device, call != nullptr && call->schema.runs_on_host())) {
      if (const PlanSupport on_host = ask_of(host_device()); on_host.support != COMPUTE_SUPPORT_NONE) {
        answer.support = COMPUTE_SUPPORT_HOST;
        answer.workspace_bytes = on_host.workspace_bytes;
      }
    }
    write(std::move(answer));
  }

 private:
  void write(PlanSupport&& answer) const {
    compute_support value{};
    value.support = answer.support;
    value.reason = answer.refusal.reason;
    value.argument = answer.refusal.argument;
    value.workspace_bytes = answer.workspace_bytes;
    std::unique_ptr<compute_text, decltype(&compute_text_free)> text(make_text(std::move(answer.refusal.text)),
                                                                     compute_text_free);
    write_sized(value, out_, "out_support");
    if (out_->struct_size >= offsetof(compute_support, text) + sizeof value.text) out_->text = text.release();
  }

  compute_support* const out_;
};

}  // namespace

extern "C" {

compute_error* compute_op_find(const char* name, int32_t version, const compute_op** out_op) {
  if (out_op != nullptr) *out_op = nullptr;
  return guard([&] {
    require_not_null(name, "name");
    require_not_null(out_op, "out_op");
    *out_op = reinterpret_cast<const compute_op*>(&find_anywhere(name, version));
  });
}

compute_error* compute_op_list(compute_op_info* infos, int64_t capacity, int64_t* out_count) {
  if (out_count != nullptr) *out_count = 0;
  return guard([&] {
    require_not_null(out_count, "out_count");
    const auto schemas = op_schemas();
    write_list(infos, capacity, static_cast<int64_t>(schemas.size()), "infos", out_count,
               [&](int64_t i) { return info_of(*schemas[static_cast<size_t>(i)]); });
  });
}

compute_error* compute_op_register(const compute_op_registration* registration, const compute_op** out_op) {
  if (out_op != nullptr) *out_op = nullptr;
  return guard([&] {
    require_not_null(out_op, "out_op");
    require_not_null(registration, "registration");
    const compute_op_registration given = read_sized(registration, "registration");
    if (given.flags != 0) {
      throw Error(COMPUTE_ERROR_UNSUPPORTED,
                  fmt::format("registration has flags {:#x}, which are not supported", given.flags));
    }
    const auto text = [](const char* data, int64_t size, const char* name) {
      const compute_string string = string_in(data, size, name);
      return std::string_view(string.data, static_cast<size_t>(string.size));
    };
    RegisteredOp op;
    op.name = text(given.name, given.name_size, "registration.name");
    op.summary = text(given.summary, given.summary_size, "registration.summary");
    op.inputs = text(given.inputs, given.inputs_size, "registration.inputs");
    op.attributes = text(given.attributes, given.attributes_size, "registration.attributes");
    op.dtypes = text(given.dtypes, given.dtypes_size, "registration.dtypes");
    op.expression = text(given.expression, given.expression_size, "registration.expression");
    op.outputs = text(given.outputs, given.outputs_size, "registration.outputs");
    op.shapes = text(given.shapes, given.shapes_size, "registration.shapes");
    op.result_dtypes = text(given.result_dtypes, given.result_dtypes_size, "registration.result_dtypes");
    if (given.kernel_count < 0 || (given.kernel_count > 0 && given.kernels == nullptr))
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, "registration.kernels is NULL or kernel_count is negative");
    for (int64_t i = 0; i < given.kernel_count; ++i) {
      const compute_op_kernel kernel = read_sized_at(given.kernels, i, "registration.kernels");
      if ((kernel.flags & ~uint32_t{COMPUTE_OP_KERNEL_STRIDED}) != 0) {
        throw Error(COMPUTE_ERROR_UNSUPPORTED,
                    fmt::format("kernel {} has flags {:#x}, which are not supported", i, kernel.flags));
      }
      require_zero(static_cast<int32_t>(kernel.reserved), "kernel.reserved");
      RegisteredKernel& to = op.kernels.emplace_back();
      to.language = text(kernel.language, kernel.language_size, "kernel.language");
      to.source = text(kernel.source, kernel.source_size, "kernel.source");
      to.name = text(kernel.name, kernel.name_size, "kernel.name");
      to.options = text(kernel.compiler_options, kernel.compiler_options_size, "kernel.compiler_options");
      to.items = text(kernel.items, kernel.items_size, "kernel.items");
      to.values = text(kernel.values, kernel.values_size, "kernel.values");
      std::copy(std::begin(kernel.group_size), std::end(kernel.group_size), to.group_size);
      to.is_strided = (kernel.flags & COMPUTE_OP_KERNEL_STRIDED) != 0;
    }
    op.parse_kernels = parse_kernels;
    op.parse_composition = parse_composition;
    op.composition = text(given.composition, given.composition_size, "registration.composition");
    op.version = given.version;
    *out_op = reinterpret_cast<const compute_op*>(&register_op(op));
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
  return guard(
      [&] { run_op(schema_of(op), stream, attributes, attribute_count, inputs, input_count, outputs, output_count); });
}

compute_error* compute_op_query(compute_device* device, const compute_op* op, const compute_attribute* attributes,
                                int64_t attribute_count, const compute_tensor_spec* inputs, int64_t input_count,
                                const compute_tensor_spec* outputs, int64_t output_count,
                                compute_support* out_support) {
  const Answer answer(out_support);
  return guard(about(device), [&] {
    answer.require_place();
    Device& self = checked(device);
    const OpSchema& schema = schema_of(op);
    named_call(schema.name.c_str(), nullptr, [&] {
      check_operand_counts(schema, input_count,
                           output_count != 0 ? output_count : schema.group_count(input_count) * schema.output_count);
      const CallAttributes read(schema, attributes, attribute_count);
      SpecifiedOperands operands(schema.name.c_str());
      operands.add(inputs, input_count, "inputs", 0);
      for (size_t i = 0; i < operands.size(); ++i) {
        if (operands[i].dtype == COMPUTE_DTYPE_NONE && !schema.optional[std::min(i, schema.optional.size() - 1)]) {
          throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("{}: input {} is not optional", schema.name, i))
              .with_argument(static_cast<int32_t>(i));
        }
      }
      const SpecifiedOutputs given(schema.name.c_str(), outputs, output_count, "outputs", operands.size());
      const OpCall call{schema, read.statics, operands.all(), given.wanted()};
      answer.ask(self, schema.name.c_str(), &call, nullptr, infer(call), given.all());
    });
  });
}

compute_error* compute_plan_create(compute_device* device, const compute_op* op, const compute_attribute* attributes,
                                   int64_t attribute_count, compute_tensor* const* inputs, int64_t input_count,
                                   compute_tensor* const* outputs, int64_t output_count, compute_plan** out_plan) {
  if (out_plan != nullptr) *out_plan = nullptr;
  return guard(about(device), [&] {
    require_not_null(out_plan, "out_plan");
    const OpSchema& schema = schema_of(op);
    Device& self = checked(device);
    named_call(schema.name.c_str(), nullptr, [&] {
      auto plan = std::make_unique<compute_plan>(schema, self, attributes, attribute_count);
      plan->prepared = plan_op(schema, self, plan->attributes, inputs, input_count, outputs, output_count);
      for (const PlannedStep& step : plan->prepared->steps) self.check(self.table.plan_warm(step.plan));
      for (int64_t i = 0; i < input_count; ++i) {
        plan->inputs.push_back(inputs[i] != nullptr ? PlannedOperand(*inputs[i]) : PlannedOperand());
      }
      for (size_t i = 0; i < static_cast<size_t>(output_count); ++i) {
        const OutputDesc& made = plan->prepared->outputs[i];
        plan->outputs.push_back(outputs[i] != nullptr
                                    ? PlannedOperand(*outputs[i])
                                    : PlannedOperand(made.dtype, made.shape, plan->prepared->output_strides[i]));
      }
      *out_plan = plan.release();
    });
  });
}

compute_error* compute_plan_run(compute_plan* plan, compute_stream* stream, const compute_attribute* run_time,
                                int64_t run_time_count, compute_tensor* const* inputs, int64_t input_count,
                                compute_tensor** outputs, int64_t output_count) {
  return guard(about(plan, stream), [&] {
    compute_plan& self = checked(plan);
    named_call(self.op.name.c_str(), stream, [&] {
      if (input_count != static_cast<int64_t>(self.inputs.size()) ||
          output_count != static_cast<int64_t>(self.outputs.size())) {
        throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                    fmt::format("{}: the plan takes {} inputs and {} outputs, got {} and {}", self.op.name,
                                self.inputs.size(), self.outputs.size(), input_count, output_count));
      }
      if (input_count > 0) require_not_null(inputs, "inputs");
      if (output_count > 0) require_not_null(outputs, "outputs");
      if (stream != nullptr && &checked(stream).device != &self.device) {
        throw Error(COMPUTE_ERROR_DEVICE_MISMATCH, fmt::format("{}: the plan is for {}, but the stream is on {}",
                                                               self.op.name, self.device.name, stream->device.name));
      }
      for (size_t i = 0; i < self.inputs.size(); ++i) {
        require_like(self, "input", i, inputs[i] != nullptr ? &checked(inputs[i]) : nullptr, self.inputs[i]);
      }
      for (size_t i = 0; i < self.outputs.size(); ++i) {
        if (outputs[i] != nullptr) require_like(self, "output", i, &checked(outputs[i]), self.outputs[i]);
      }
      const auto run = [&](const CallAttributes& attributes) {
        run_planned(*self.prepared, attributes, stream, inputs, input_count, outputs, output_count);
      };
      if (run_time_count == 0) return run(self.attributes);
      CallAttributes changed = self.attributes;
      changed.change_run_time(self.op, run_time, run_time_count);
      run(changed);
    });
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
      if (count < 0)
        throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                    fmt::format("{}_count is {}; it must not be negative", what, count));
      if (count > 0) require_not_null(given, what);
      std::vector<std::string_view> views;
      for (int64_t i = 0; i < count; ++i) {
        require_not_null(given[i], what);
        views.emplace_back(given[i]);
      }
      return views;
    };
    auto expression = std::make_unique<compute_expression>();
    expression->parsed =
        parse(text, names(input_names, input_count, "input_names"), names(scalar_names, scalar_count, "scalar_names"));
    expression->input_count = input_count;
    expression->scalar_count = scalar_count;
    *out_expression = expression.release();
  });
}

compute_error* compute_expression_gradient(compute_expression* expression, const int32_t* wanted, int64_t wanted_count,
                                           compute_expression** out_gradient) {
  if (out_gradient != nullptr) *out_gradient = nullptr;
  return guard([&] {
    require_not_null(out_gradient, "out_gradient");
    const compute_expression& self = checked(expression);
    std::vector<int32_t> inputs;
    if (wanted == nullptr && wanted_count != 0) throw_null("wanted");
    if (wanted == nullptr) {
      for (int32_t i = 0; i < self.input_count; ++i) inputs.push_back(i);
    } else {
      if (wanted_count < 0 || wanted_count > kMaxExpressionOutputs) {
        throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                    fmt::format("wanted_count is {}, outside [0, {}]", wanted_count, kMaxExpressionOutputs));
      }
      inputs.assign(wanted, wanted + wanted_count);
    }
    if (inputs.empty() || inputs.size() > static_cast<size_t>(kMaxExpressionOutputs)) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("gradients of {} inputs were requested; expected 1 to {}",
                                                              inputs.size(), kMaxExpressionOutputs));
    }
    for (const int32_t input : inputs) {
      if (input >= 0 && input < self.input_count) continue;
      throw Error(
          COMPUTE_ERROR_INVALID_ARGUMENT,
          fmt::format("the expression has {} inputs; there is no input {} for a gradient", self.input_count, input));
    }
    auto gradient = std::make_unique<compute_expression>();
    gradient->parsed = gradient_of(self.parsed, inputs);
    gradient->input_count = gradient->parsed.input_count();
    gradient->scalar_count = self.scalar_count;
    *out_gradient = gradient.release();
  });
}

void compute_expression_retain(compute_expression* expression) {
  if (expression != nullptr && expression->is_alive()) expression->retain();
}
void compute_expression_release(compute_expression* expression) { release_handle(expression); }

int32_t compute_expression_input_count(const compute_expression* expression) {
  return expression != nullptr && expression->is_alive() ? static_cast<int32_t>(expression->input_count) : 0;
}
int32_t compute_expression_scalar_count(const compute_expression* expression) {
  return expression != nullptr && expression->is_alive() ? static_cast<int32_t>(expression->scalar_count) : 0;
}
int32_t compute_expression_output_count(const compute_expression* expression) {
  return expression != nullptr && expression->is_alive() ? expression->parsed.output_count() : 0;
}

compute_error* compute_map(compute_stream* stream, compute_expression* expression, compute_tensor* const* inputs,
                           int64_t input_count, const compute_number* scalars, int64_t scalar_count,
                           compute_tensor** outputs, int64_t output_count) {
  return guard(about(stream), [&] {
    compute_expression& self = checked(expression);
    named_call("map", stream, tensors_of(inputs, input_count), [&] {
      self.require_counts(input_count, scalar_count, output_count);
      require_not_null(outputs, "outputs");
      const ExpressionOperands operands("map", inputs, input_count, scalars, scalar_count);
      for (int64_t i = 0; i < output_count; ++i) {
        if (outputs[i] != nullptr) checked(outputs[i]);
      }
      run_map(self.parsed, stream, operands.all(), outputs, output_count);
    });
  });
}

compute_error* compute_map_query(compute_device* device, compute_expression* expression,
                                 const compute_tensor_spec* inputs, int64_t input_count,
                                 const compute_tensor_spec* scalars, int64_t scalar_count,
                                 const compute_tensor_spec* outputs, int64_t output_count,
                                 compute_support* out_support) {
  const Answer answer(out_support);
  return guard(about(device), [&] {
    answer.require_place();
    Device& self = checked(device);
    const compute_expression& asked = checked(expression);
    named_call("map", nullptr, [&] {
      asked.require_counts(input_count, scalar_count, output_count != 0 ? output_count : asked.parsed.output_count());
      SpecifiedOperands operands("map");
      operands.add(inputs, input_count, "inputs", 0);
      operands.add(scalars, scalar_count, "scalars", COMPUTE_SPEC_SCALAR);
      operands.require_present();
      const SpecifiedOutputs given("map", outputs, output_count, "outputs", operands.size());
      MapCall call{asked.parsed, operands.all()};
      call.wanted = given.wanted();
      for (const OperandDesc& output : given.all()) {
        if (output.dtype != COMPUTE_DTYPE_NONE) call.wanted_shape = output.extents();
      }
      answer.ask(self, "map", nullptr, &call, infer(call), given.all());
    });
  });
}

compute_error* compute_reduce(compute_stream* stream, compute_expression* before, int32_t reduction,
                              const compute_reduce_options* options, compute_tensor* const* inputs, int64_t input_count,
                              const compute_number* scalars, int64_t scalar_count, compute_tensor** output) {
  return guard(about(stream), [&] {
    compute_expression& self = checked(before);
    named_call("reduce", stream, tensors_of(inputs, input_count), [&] {
      const MapReduction read = read_reduction(self, reduction, options, input_count, scalar_count);
      require_not_null(output, "output");
      const ExpressionOperands operands("reduce", inputs, input_count, scalars, scalar_count);
      if (*output != nullptr) checked(*output);
      run_map_reduction(self.parsed, read, stream, operands.all(), output);
    });
  });
}

compute_error* compute_reduce_query(compute_device* device, compute_expression* before, int32_t reduction,
                                    const compute_reduce_options* options, const compute_tensor_spec* inputs,
                                    int64_t input_count, const compute_tensor_spec* scalars, int64_t scalar_count,
                                    const compute_tensor_spec* output, compute_support* out_support) {
  const Answer answer(out_support);
  return guard(about(device), [&] {
    answer.require_place();
    Device& self = checked(device);
    const compute_expression& asked = checked(before);
    named_call("reduce", nullptr, [&] {
      const MapReduction read = read_reduction(asked, reduction, options, input_count, scalar_count);
      SpecifiedOperands operands("reduce");
      operands.add(inputs, input_count, "inputs", 0);
      operands.add(scalars, scalar_count, "scalars", COMPUTE_SPEC_SCALAR);
      operands.require_present();
      const SpecifiedOutputs given("reduce", output, output != nullptr ? 1 : 0, "output", operands.size());
      MapCall call{asked.parsed, operands.all()};
      call.reduction = &read;
      call.wanted = given.wanted();
      answer.ask(self, "reduce", nullptr, &call, infer(call), given.all());
    });
  });
}

}  // extern "C"
