// SPDX-License-Identifier: Apache-2.0
#include "trace.hpp"

#include "op_table.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <unordered_map>

namespace onnxruntime_compute {
namespace {

// An expression has at most so many statements and operands: a longer one reads more operands at once than the caches
// and registers of a kernel hold.
constexpr size_t kMostStatements = 32;
constexpr size_t kMostOperands = 8;

const compute::Device& host_device() {
  static const compute::Device cpu = compute::Device::open("cpu");
  return cpu;
}

// Expressions by their text. Numbers that follow from shapes stand in it, so the texts may differ without end.
compute::Expression expression_of(const std::string& text, size_t operand_count) {
  static std::mutex lock;
  static std::unordered_map<std::string, compute::Expression> known;
  constexpr size_t kMostKnown = 1024;
  const std::lock_guard guard(lock);
  if (known.size() >= kMostKnown) known.clear();  // what uses one has its own reference
  compute::Expression& found = known[std::to_string(operand_count) + ":" + text];
  if (!found.defined()) {
    std::vector<std::string> names;
    std::vector<const char*> pointers;
    for (size_t i = 0; i < operand_count; ++i) names.push_back("a" + std::to_string(i));
    for (const std::string& name : names) pointers.push_back(name.c_str());
    found = compute::Expression(text, pointers);
  }
  return found;
}

// Equal chains get equal texts: operands v<id> are named a0, a1, … in their order, statements t<id> h0, h1, ….
std::string canonical(const Chain& chain) {
  std::unordered_map<std::string, std::string> names;
  for (size_t i = 0; i < chain.operands.size(); ++i) {
    names["v" + std::to_string(chain.operands[i].id)] = "a" + std::to_string(i);
  }
  for (size_t i = 0; i < chain.statements.size(); ++i) {
    names["t" + std::to_string(chain.statements[i].first)] = "h" + std::to_string(i);
  }
  std::string to;
  for (size_t i = 0; i < chain.statements.size(); ++i) {
    if (i + 1 < chain.statements.size()) to += "h" + std::to_string(i) + " = ";
    const std::string& from = chain.statements[i].second;
    for (size_t at = 0; at < from.size();) {
      const auto is_part = [&](size_t j) {
        return j < from.size() && (std::isalnum(static_cast<unsigned char>(from[j])) != 0 || from[j] == '_');
      };
      if (!is_part(at)) {
        to += from[at++];
        continue;
      }
      size_t end = at;
      while (is_part(end)) ++end;
      const std::string word = from.substr(at, end - at);
      const auto found = names.find(word);
      to += found == names.end() ? word : found->second;
      at = end;
    }
    if (i + 1 < chain.statements.size()) to += "; ";
  }
  return to;
}

template <class T>
std::string digits_of(T value, const char* format) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

// A constant of one element as a literal; "" if it cannot be one.
std::string literal(const Tensor& tensor) {
  const DType dtype = tensor.dtype();
  std::array<std::byte, 16> bytes{};
  if (dtype == compute::complex64 || dtype == compute::complex128 || is_float8(dtype)) return "";
  if (is_real(dtype)) {
    const Tensor wide = compute::cast(tensor, compute::float64);
    double value = 0;
    wide.read(&value, sizeof value);
    if (value != value) return "nan";
    const double size = value < 0 ? -value : value;
    std::string text =
        size > 1.7976931348623157e308 ? "inf" : digits_of(size, dtype == compute::float64 ? "%.17g" : "%.9g");
    if (text != "inf" && text.find_first_of(".e") == std::string::npos) text += ".0";
    return value < 0 || (value == 0 && 1 / value < 0) ? "(-" + text + ")" : text;
  }
  if (dtype == compute::bool_) {
    tensor.read(bytes.data(), 1);
    return bytes[0] != std::byte{0} ? "true" : "false";
  }
  if (dtype == compute::uint64) {
    uint64_t value = 0;
    tensor.read(&value, sizeof value);
    return std::to_string(value);
  }
  int64_t value = 0;
  compute::cast(tensor, compute::int64).read(&value, sizeof value);
  if (value == std::numeric_limits<int64_t>::min()) return "";
  return value < 0 ? "(" + std::to_string(value) + ")" : std::to_string(value);
}

bool is_row_major(const Tensor& tensor) {
  int64_t stride = 1;
  for (size_t axis = tensor.shape().size(); axis-- > 0; stride *= tensor.shape()[axis]) {
    if (tensor.shape()[axis] != 1 && tensor.strides()[axis] != stride) return false;
  }
  return true;
}

}  // namespace

namespace {

// Attributes as the library takes them. Valid as long as the list.
class RawAttributes {
 public:
  explicit RawAttributes(const std::vector<Attribute>& list) : texts_(list.size()), all_(list.size()) {
    static constexpr int64_t kNothing = 0;
    for (size_t i = 0; i < list.size(); ++i) {
      compute_attribute& to = all_[i];
      to.struct_size = sizeof to;
      to.struct_type = COMPUTE_STRUCT_ATTRIBUTE;
      to.name = list[i].name.data();
      to.name_size = static_cast<int64_t>(list[i].name.size());
      to.count = 1;
      const auto give = [&](int32_t kind, const void* values, size_t count) {
        to.kind = kind;
        to.values = count == 0 ? &kNothing : values;
        to.count = static_cast<int64_t>(count);
      };
      const auto& value = list[i].value;
      if (const auto* integer = std::get_if<int64_t>(&value)) {
        give(COMPUTE_KIND_INT64, integer, 1);
      } else if (const auto* real = std::get_if<double>(&value)) {
        give(COMPUTE_KIND_FLOAT64, real, 1);
      } else if (const auto* integers = std::get_if<std::vector<int64_t>>(&value)) {
        give(COMPUTE_KIND_INT64, integers->data(), integers->size());
      } else if (const auto* reals = std::get_if<std::vector<double>>(&value)) {
        give(COMPUTE_KIND_FLOAT64, reals->data(), reals->size());
      } else if (const auto* text = std::get_if<std::string>(&value)) {
        texts_[i] = {text->data(), static_cast<int64_t>(text->size())};
        give(COMPUTE_KIND_STRING, &texts_[i], 1);
      } else {
        give(COMPUTE_KIND_DTYPE, &std::get<compute_dtype>(value), 1);
      }
    }
  }
  [[nodiscard]] const compute_attribute* data() const { return all_.data(); }
  [[nodiscard]] int64_t size() const { return static_cast<int64_t>(all_.size()); }

 private:
  std::vector<compute_string> texts_;
  std::vector<compute_attribute> all_;
};

}  // namespace

Shape broadcast_shape(const std::vector<Shape>& shapes) {
  Shape result;
  for (const Shape& shape : shapes) {
    if (shape.size() > result.size()) result.insert(result.begin(), shape.size() - result.size(), 1);
    for (size_t i = 0; i < shape.size(); ++i) {
      int64_t& extent = result[result.size() - shape.size() + i];
      if (extent == 1) {
        extent = shape[i];
      } else if (shape[i] != 1 && shape[i] != extent) {
        throw std::runtime_error("shapes do not broadcast");
      }
    }
  }
  return result;
}

Tracer::Tracer(const compute::Device& device) : device_(device), on_host_(device.get() == host_device().get()) {}

Value Tracer::constant(const Tensor& host, const Tensor& on_device) {
  const Tensor& known = host.defined() ? host : on_device;
  Value value;
  value.dtype = known.dtype();
  value.shape.assign(known.shape().begin(), known.shape().end());
  value.host = host;
  value.tensor = on_device;
  return value;
}

Value Tracer::integers(const std::vector<int64_t>& values) {
  return constant(host_device().from_host(values, {static_cast<int64_t>(values.size())}));
}

Value Tracer::number(double value, DType dtype) {
  return constant(compute::cast(host_device().full({}, value), dtype));
}

Value Tracer::input(int index, const Tensor& tensor) {
  Value value = made(tensor, -1);
  tape_.storages[static_cast<size_t>(value.storage)].input = index;
  return value;
}

Value Tracer::made(const Tensor& tensor, int step) {
  Value value;
  value.dtype = tensor.dtype();
  value.shape.assign(tensor.shape().begin(), tensor.shape().end());
  value.tensor = tensor;
  value.storage = static_cast<int>(tape_.storages.size());
  value.id = next_id_++;
  Storage& storage = tape_.storages.emplace_back();
  storage.size_bytes = tensor.size_bytes();
  storage.element_size = tensor.dtype().size();
  storage.base_offset = tensor.offset_bytes();
  storage.first_step = storage.last_step = step;
  return value;
}

Value Tracer::view(const Value& value, const Tensor& of) {
  // As a view of a whole buffer, which has its own strides for axes of extent 1: so are the operands of a repeated tape.
  const Tensor tensor = value.storage < 0 ? of : of.view(of.dtype(), of.shape(), of.strides(), of.offset_bytes());
  Value result;
  result.dtype = tensor.dtype();
  result.shape.assign(tensor.shape().begin(), tensor.shape().end());
  result.storage = value.storage;
  result.id = next_id_++;
  if (value.is_constant() && value.host.defined()) {
    result.host = tensor;
  } else {
    result.tensor = tensor;
  }
  return result;
}

Tensor Tracer::to_host(const Value& value) {
  if (value.host.defined()) return value.host;
  return value.tensor.to(host_device());
}

Tensor Tracer::on_device(const Value& value) {
  if (value.tensor.defined()) return value.tensor;
  return on_host_ ? value.host : value.host.to(device_);
}

std::vector<int64_t> Tracer::to_integers(const Value& value) {
  if (!value.is_constant()) throw std::runtime_error("a value that is read while tracing is not constant");
  return compute::cast(to_host(value), compute::int64).to_vector<int64_t>();
}

double Tracer::to_real(const Value& value) {
  if (!value.is_constant()) throw std::runtime_error("a value that is read while tracing is not constant");
  return compute::cast(to_host(value), compute::float64).to_vector<double>().at(0);
}

OperandPlace Tracer::place(const Value& value) {
  if (!value.is_present()) return {};
  if (value.is_constant()) {
    tape_.constants.push_back(on_device(value));
    return {OperandPlace::kConstant, static_cast<int>(tape_.constants.size()) - 1};
  }
  Storage& storage = tape_.storages[static_cast<size_t>(value.storage)];
  storage.last_step = static_cast<int>(tape_.steps.size());
  Layout layout;
  layout.storage = value.storage;
  layout.offset_bytes = value.tensor.offset_bytes() - storage.base_offset;
  layout.dtype = value.dtype;
  layout.shape = value.shape;
  layout.strides.assign(value.tensor.strides().begin(), value.tensor.strides().end());
  const auto [found, is_new] = layout_numbers_.try_emplace(layout.key(), static_cast<int>(tape_.layouts.size()));
  if (is_new) tape_.layouts.push_back(layout);
  return {OperandPlace::kLayout, found->second};
}

Value Tracer::settle(const Value& value) { return value.chain == nullptr ? value : run_chain(value); }

Value Tracer::run_chain(const Value& value) {
  const Chain& chain = *value.chain;
  Step step;
  step.node = node_;
  step.expression = expression_of(canonical(chain), chain.operands.size());
  std::vector<Tensor> operands;
  for (const Value& operand : chain.operands) {
    operands.push_back(on_device(operand));
    step.inputs.push_back(place(operand));
  }
  const Tensor result = compute::map(step.expression, operands);
  if (result.dtype() != value.dtype) {
    throw std::runtime_error("the expression " + canonical(chain) + " gives " + std::string(result.dtype().name()) +
                             " and not " + std::string(value.dtype.name()));
  }
  const Value settled = made(result, static_cast<int>(tape_.steps.size()));
  step.outputs.push_back(place(settled));
  tape_.steps.push_back(std::move(step));
  return settled;
}

Value Tracer::map(const std::string& text, const std::vector<Value>& operands, DType dtype) {
  std::vector<Shape> shapes;
  bool all_constant = true;
  for (const Value& operand : operands) {
    shapes.push_back(operand.shape);
    all_constant = all_constant && operand.is_constant();
  }
  const Shape shape = broadcast_shape(shapes);

  // Which constants become literals: those that do not decide the shape, while another operand has their dtype.
  std::vector<std::string> names(operands.size());
  if (!all_constant) {
    std::vector<Shape> other_shapes;
    for (size_t i = 0; i < operands.size(); ++i) {
      if (!operands[i].is_constant() || operands[i].size() != 1) other_shapes.push_back(shapes[i]);
    }
    const bool literals_fit = !other_shapes.empty() && broadcast_shape(other_shapes) == shape;
    for (size_t i = 0; i < operands.size() && literals_fit; ++i) {
      const Value& operand = operands[i];
      if (!operand.is_constant() || operand.size() != 1) continue;
      names[i] = literal(to_host(operand));
      const bool is_typed = std::any_of(operands.begin(), operands.end(), [&](const Value& other) {
        return other.dtype == operand.dtype && !(other.is_constant() && other.size() == 1);
      });
      if (!names[i].empty() && !is_typed)
        names[i] = "convert(" + names[i] + ", " + std::string(operand.dtype.name()) + ")";
    }
  }

  Value result;
  result.dtype = dtype;
  result.shape = shape;
  result.id = next_id_++;
  result.chain = std::make_shared<Chain>();
  Chain& chain = *result.chain;
  const auto add_operand = [&](const Value& operand) {
    for (const Value& known : chain.operands) {
      if (known.id == operand.id) return;
    }
    chain.operands.push_back(operand);
  };
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!names[i].empty()) continue;
    Value operand = operands[i];
    if (operand.chain != nullptr) {
      const Chain& other = *operand.chain;
      if (operand.shape == shape && chain.statements.size() + other.statements.size() < kMostStatements &&
          chain.operands.size() + other.operands.size() < kMostOperands) {
        for (const auto& statement : other.statements) {
          const bool is_known = std::any_of(chain.statements.begin(), chain.statements.end(),
                                            [&](const auto& known) { return known.first == statement.first; });
          if (!is_known) chain.statements.push_back(statement);
        }
        for (const Value& inner : other.operands) add_operand(inner);
        names[i] = "t" + std::to_string(operand.id);
        continue;
      }
      operand = settle(operand);
    }
    if (operand.id == 0) operand.id = next_id_++;  // a constant
    add_operand(operand);
    names[i] = "v" + std::to_string(operand.id);
  }
  std::string statement;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '$') {
      statement += names[static_cast<size_t>(text[++at] - '0')];
    } else {
      statement += text[at];
    }
  }
  chain.statements.emplace_back(result.id, std::move(statement));

  if (all_constant) {
    std::vector<Tensor> tensors;
    for (const Value& operand : chain.operands) tensors.push_back(to_host(operand));
    return constant(compute::map(expression_of(canonical(chain), tensors.size()), tensors));
  }
  return result;
}

Value Tracer::op(const char* name, const std::vector<Value>& inputs, const std::vector<Attribute>& attributes) {
  return ops(name, 1, inputs, attributes).at(0);
}

std::vector<Value> Tracer::ops(const char* name, size_t output_count, const std::vector<Value>& inputs,
                               const std::vector<Attribute>& attributes) {
  const compute::Op op(name, 1);
  std::vector<Value> settled;
  bool all_constant = true;
  for (const Value& input : inputs) {
    settled.push_back(settle(input));
    all_constant = all_constant && (!input.is_present() || input.is_constant());
  }
  std::vector<Tensor> tensors;
  std::vector<Value> results;
  if (all_constant) {
    for (const Value& input : settled) tensors.push_back(input.is_present() ? to_host(input) : Tensor());
    const compute::Stream queue = inputs.empty() ? compute::Stream::default_of(host_device()) : compute::Stream();
    compute::detail::Handles in(tensors);
    const RawAttributes given(attributes);
    for (const Tensor& result : compute::detail::outputs_of(output_count, [&](compute_tensor**out, int64_t count) {
           return compute_op_run(op.get(), queue.get(), given.data(), given.size(), in.data(), in.size(), out, count);
         })) {
      results.push_back(constant(result));
    }
    return results;
  }
  Step step;
  step.node = node_;
  step.op = name;
  for (const Value& input : settled) {
    tensors.push_back(input.is_present() ? on_device(input) : Tensor());
    step.inputs.push_back(place(input));
  }
  {
    const RawAttributes given(attributes);
    compute::detail::Handles in(tensors);
    const std::vector<compute_tensor*> out(output_count, nullptr);
    compute_plan* made_plan = nullptr;
    compute::check(compute_plan_create(device_.get(), op.get(), given.data(), given.size(), in.data(), in.size(),
                                       out.data(), static_cast<int64_t>(out.size()), &made_plan));
    step.plan = compute::Plan(made_plan);
  }
  for (const Tensor& result : step.plan.run(tensors, output_count)) {
    results.push_back(made(result, static_cast<int>(tape_.steps.size())));
    step.outputs.push_back(place(results.back()));
  }
  tape_.steps.push_back(std::move(step));
  return results;
}

Value Tracer::cast(const Value& value, DType dtype) {
  if (value.dtype == dtype) return value;
  if (dtype == compute::bool_) return map("$0 != 0", {value}, dtype);
  // Expressions read float8 as float32, and round to it in their results alone.
  if (is_float8(value.dtype) && dtype != compute::float32) return cast(cast(value, compute::float32), dtype);
  if (is_float8(dtype)) return settle(map("convert($0, " + std::string(dtype.name()) + ")", {value}, dtype));
  return map("convert($0, " + std::string(dtype.name()) + ")", {value}, dtype);
}

Value Tracer::fill(double value, DType dtype, const Shape& shape) { return broadcast_to(number(value, dtype), shape); }

Value Tracer::reshape(const Value& value, const Shape& shape) {
  if (value.shape == shape) return value;
  Value from = settle(value);
  const Tensor& tensor = from.is_constant() && from.host.defined() ? from.host : from.tensor;
  try {
    return view(from, tensor.reshape(shape));
  } catch (const compute::Error& error) {
    if (error.code() != compute::ErrorCode::unsupported) throw;
  }
  from = op("copy", {from});
  return view(from, (from.is_constant() && from.host.defined() ? from.host : from.tensor).reshape(shape));
}

namespace {
const Tensor& known_tensor(const Value& value) {
  return value.is_constant() && value.host.defined() ? value.host : value.tensor;
}
}  // namespace

Value Tracer::permute(const Value& value, const std::vector<int32_t>& axes) {
  const Value from = settle(value);
  return view(from, known_tensor(from).permute(axes));
}

Value Tracer::slice(const Value& value, const std::vector<int64_t>& starts, const std::vector<int64_t>& stops,
                    const std::vector<int64_t>& steps) {
  const Value from = settle(value);
  compute_tensor* made_view = nullptr;
  compute::check(compute_tensor_slice(known_tensor(from).get(), static_cast<int32_t>(starts.size()), starts.data(),
                                      stops.data(), steps.data(), &made_view));
  return view(from, Tensor(made_view));
}

Value Tracer::slice_axis(const Value& value, int64_t axis, int64_t start, int64_t stop, int64_t step) {
  const size_t rank = value.shape.size();
  std::vector<int64_t> starts(rank, 0), stops(value.shape), steps(rank, 1);
  const auto at = static_cast<size_t>(axis);
  starts[at] = start;
  stops[at] = stop;
  steps[at] = step;
  return slice(value, starts, stops, steps);
}

Value Tracer::broadcast_to(const Value& value, const Shape& shape) {
  if (value.shape == shape) return value;
  const Value from = settle(value);
  return view(from, known_tensor(from).broadcast_to(shape));
}

Value Tracer::reinterpret(const Value& value, DType dtype) {
  const Value from = settle(value);
  const Tensor& tensor = known_tensor(from);
  return view(from, tensor.view(dtype, tensor.shape(), tensor.strides(), tensor.offset_bytes()));
}

Tape Tracer::finish(const std::vector<Value>& outputs, std::vector<Tensor>* tensors) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    Value value = settle(outputs[i]);
    TapeOutput& output = tape_.outputs.emplace_back();
    output.dtype = value.dtype;
    output.shape = value.shape;
    if (value.is_constant()) {
      Tensor tensor = on_device(value);
      if (!is_row_major(tensor)) tensor = compute::copy(tensor);
      output.constant = tensor;
      tensors->push_back(tensor);
      continue;
    }
    const Storage& storage = tape_.storages[static_cast<size_t>(value.storage)];
    const bool is_whole = storage.input < 0 && storage.output < 0 && is_row_major(value.tensor) &&
                          value.tensor.offset_bytes() == storage.base_offset &&
                          value.tensor.size_bytes() == storage.size_bytes;
    if (!is_whole) value = op("copy", {value});
    tape_.storages[static_cast<size_t>(value.storage)].output = static_cast<int>(i);
    tensors->push_back(value.tensor);
  }
  for (Storage& storage : tape_.storages) {
    if (storage.input >= 0) storage.first_step = 0;
  }
  return std::move(tape_);
}

}  // namespace onnxruntime_compute
