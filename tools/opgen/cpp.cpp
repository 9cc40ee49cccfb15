// SPDX-License-Identifier: Apache-2.0
// compute/ops.hpp: the functions of compute/ops.h in C++. Each calls the typed C function of its version.
#include <algorithm>
#include <cctype>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "tools/opgen/names.hpp"
#include "tools/opgen/texts.hpp"

namespace compute::opgen {

bool is_flag(const AttributeSchema& a) {
  constexpr std::string_view kFlags[] = {"causal",   "ceil_mode", "count_include_pad", "descending",  "deterministic",
                                         "endpoint", "exclusive", "include_initial",   "interleaved", "inverse",
                                         "invert",   "keepdims",  "largest",           "nesterov",    "reverse",
                                         "training"};
  return std::find(std::begin(kFlags), std::end(kFlags), a.name) != std::end(kFlags);
}

bool is_rare(const AttributeSchema& a) { return a.name == "precision"; }

std::string camel(std::string_view name) {
  std::string text;
  bool capital = true;
  for (const char c : name) {
    if (c != '_') text += capital ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    capital = c == '_';
  }
  return text;
}

std::vector<std::string> creation_extents(const OpSchema& op) {
  const auto has = [&](std::string_view name) {
    for (const AttributeSchema& a : op.attributes) {
      if (a.required && a.name == name) return true;
    }
    return false;
  };
  if (has("shape")) return {"shape"};
  if (has("size")) return {"size"};
  if (has("rows") && has("columns")) return {"rows", "columns"};
  throw std::runtime_error(op.name + ": the shape of its result has no form in the bindings");
}

namespace {

constexpr size_t kColumns = 120;

struct Parameter {
  std::string type, name, value;  // value: the default, or ""

  std::string text(bool with_default) const {
    return type + " " + name + (with_default && !value.empty() ? " = " + value : "");
  }
};

Parameter parameter(const OpSchema& op, const AttributeSchema& a) {
  const bool has_value = !a.required;
  const auto unknown = [&] {
    return std::runtime_error(op.name + ": attribute " + a.name + " has no form in ops.hpp");
  };
  if (a.is_list) {
    const char* type = a.kind == AttributeKind::kFloat64 ? "List<double>" : "List<int64_t>";
    if (a.required) return {type, a.name, ""};
    if (a.default_text == "none") return {type, a.name, "{}"};
    if (a.default_text != "all") throw unknown();
    return {"const Axes&", a.name, "all_axes"};
  }
  switch (a.kind) {
    case AttributeKind::kInt64:
      if (is_flag(a)) {
        if (!has_value) return {"Flag", a.name, ""};
        return {"Flag", a.name, a.default_int64 != 0 ? "true" : "false"};
      }
      if (has_value && !a.has_default) return {"std::optional<Integer>", a.name, "none"};
      return {"Integer", a.name, has_value ? std::to_string(a.default_int64) : ""};
    case AttributeKind::kFloat64:
      return {"Real", a.name, has_value ? a.default_text : ""};
    case AttributeKind::kString:
      return {"std::string_view", a.name, has_value ? "\"" + a.default_text + "\"" : ""};
    case AttributeKind::kDtype:
      return {"DType", a.name, has_value ? "none" : ""};
    case AttributeKind::kNumber:
      return {"const Number&", a.name, has_value ? a.default_text : ""};
    case AttributeKind::kHandle:  // no row has one yet
      break;
  }
  throw unknown();
}

// Required attributes come before those with defaults, as in ops.h.
std::vector<Parameter> attribute_parameters(const OpSchema& op) {
  std::vector<Parameter> list;
  for (const bool required : {true, false}) {
    for (const AttributeSchema& a : op.attributes) {
      if (a.required == required && !is_rare(a)) list.push_back(parameter(op, a));
    }
  }
  return list;
}

// The stream, and behind it what few calls say.
std::vector<Parameter> last_parameters(const OpSchema& op) {
  std::vector<Parameter> list{{"const Stream&", "stream", "{}"}};
  for (const AttributeSchema& a : op.attributes) {
    if (is_rare(a)) list.push_back(parameter(op, a));
  }
  return list;
}

// Optional inputs have a default unless a required attribute follows.
std::vector<Parameter> input_parameters(const OpSchema& op) {
  std::vector<Parameter> list;
  const bool has_required =
      std::any_of(op.attributes.begin(), op.attributes.end(), [](const AttributeSchema& a) { return a.required; });
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    const bool many = op.is_variadic && i + 1 == op.inputs.size();
    list.push_back(
        {many ? "List<Tensor>" : "const Tensor&", op.inputs[i], op.optional[i] && !has_required ? "{}" : ""});
  }
  return list;
}

// A call or a signature broken after commas if it does not fit, aligned with the parenthesis; if that does not fit
// either, the arguments go on the next line.
std::string broken(const std::string& head, const std::vector<std::string>& parts, const std::string& tail,
                   size_t indent) {
  const auto lay_out = [&](std::string text, size_t column, size_t margin) {
    bool fits = true;
    for (size_t i = 0; i < parts.size(); ++i) {
      const std::string part = parts[i] + (i + 1 < parts.size() ? "," : tail);
      if (i > 0 && column + 1 + part.size() > kColumns) {
        text += "\n" + std::string(margin, ' ');
        column = margin;
      } else if (i > 0) {
        text += ' ';
        ++column;
      }
      text += part;
      column += part.size();
      fits = fits && column <= kColumns;
    }
    return std::pair(text, fits);
  };
  const std::string start = std::string(indent, ' ') + head + "(";
  const auto [aligned, fits] = lay_out(start, start.size(), start.size());
  if (fits) return aligned;
  const size_t margin = indent + 4;
  return lay_out(start + "\n" + std::string(margin, ' '), margin, margin).first;
}

// check(call(arguments)); on one line, else with the call on its own line, else broken after commas.
std::string checked_call(const std::string& function, const std::vector<std::string>& parts) {
  const std::string text = broken("check(" + function, parts, "));", 2);
  if (text.find('\n') == std::string::npos) return text + "\n";
  const std::string call = broken(function, parts, "));", 6);
  return (call.find('\n') == std::string::npos ? "  check(\n" + call : text) + "\n";
}

std::string signature(const std::string& head, const std::vector<Parameter>& parameters) {
  std::vector<std::string> parts;
  for (const Parameter& one : parameters) parts.push_back(one.text(true));
  return broken(head, parts, ") {", 0) + "\n";
}

std::string comment(const OpSchema& op) { return wrapped(op_text(op), "/// ", "/// ", kColumns) + "\n"; }

// What fills the options, and whether there are any.
std::string fill_options(const OpSchema& op) {
  std::string text;
  for (const AttributeSchema& a : op.attributes) {
    if (a.required) continue;
    const std::string to = "  options." + a.name;
    if (a.is_list) {
      const std::string count = has_mask(a) ? a.name + ".count()" : "static_cast<int64_t>(" + a.name + ".size())";
      text += to + " = " + a.name + ".data();\n" + to + "_count = " + count + ";\n";
    } else if (a.kind == AttributeKind::kInt64 && is_pointer_field(a)) {
      const std::string value = "given_" + a.name;
      if (!a.has_default) {
        text += "  const int64_t " + value + " = " + a.name + " ? " + a.name + "->value() : 0;\n" + to + " = " +
                a.name + " ? &" + value + " : nullptr;\n";
      } else {
        text += "  const int64_t " + value + " = " + a.name + ".value();\n" + to + " = &" + value + ";\n";
      }
    } else if (a.kind == AttributeKind::kInt64) {
      text += to + " = " + a.name + ".value();\n";
    } else if (a.kind == AttributeKind::kFloat64 && is_pointer_field(a)) {
      text += "  const double given_" + a.name + " = " + a.name + ".value();\n" + to + " = &given_" + a.name + ";\n";
    } else if (a.kind == AttributeKind::kFloat64) {
      text += to + " = " + a.name + ".value();\n";
    } else if (a.kind == AttributeKind::kString) {
      text += to + " = " + a.name + ".data();\n" + to + "_size = static_cast<int64_t>(" + a.name + ".size());\n";
    } else if (a.kind == AttributeKind::kDtype) {
      text += to + " = " + a.name + ".id();\n";
    } else {
      text += to + " = " + a.name + ".get();\n";
    }
  }
  if (text.empty()) return "";
  return "  " + options_name(op) + " options{};\n  options.struct_size = sizeof options;\n" + text;
}

std::vector<std::string> arguments(const OpSchema& op, const std::vector<std::string>& out) {
  std::vector<std::string> list{"stream.get()"};
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    if (op.is_variadic && i + 1 == op.inputs.size()) {
      list.push_back("handles.data()");
      list.push_back("handles.size()");
    } else {
      list.push_back(op.inputs[i] + ".get()");
    }
  }
  for (const AttributeSchema& a : op.attributes) {
    if (!a.required) continue;
    if (a.is_list) {
      list.push_back(a.name + ".data()");
      list.push_back("static_cast<int64_t>(" + a.name + ".size())");
    } else if (a.kind == AttributeKind::kString) {
      list.push_back(a.name + ".data()");
      list.push_back("static_cast<int64_t>(" + a.name + ".size())");
    } else if (a.kind == AttributeKind::kInt64) {
      list.push_back(a.name + ".value()");
    } else if (a.kind == AttributeKind::kDtype) {
      list.push_back(a.name + ".id()");
    } else if (a.kind == AttributeKind::kNumber) {
      list.push_back("&" + a.name + ".get()");
    } else {
      throw std::runtime_error(op.name + ": the required attribute " + a.name + " has no form in ops.hpp");
    }
  }
  if (!op.is_elementwise) list.push_back(fill_options(op).empty() ? "nullptr" : "&options");
  list.insert(list.end(), out.begin(), out.end());
  return list;
}

std::string prepare(const OpSchema& op) {
  std::string text;
  if (op.is_variadic) text += "  detail::Handles handles(" + op.inputs.back() + ");\n";
  return text + fill_options(op);
}

// The shape of the result of an op without inputs, from its attributes.
std::string creation_shape(const OpSchema& op) {
  std::string text;
  for (const std::string& name : creation_extents(op)) {
    if (name == "shape") return name;
    text += (text.empty() ? "" : ", ") + name + ".value()";
  }
  return "{" + text + "}";
}

// The result of an op without inputs is made on a device that is named, or on the stream's.
std::string creation(const OpSchema& op) {
  std::vector<Parameter> by_device{{"const Device&", "device", ""}}, by_stream{{"const Stream&", "stream", ""}};
  std::vector<std::string> names;
  for (const Parameter& one : attribute_parameters(op)) {
    by_device.push_back(one);
    by_stream.push_back(one);
    names.push_back(one.name);
  }
  by_device.push_back({"const Stream&", "stream", "{}"});
  names.insert(names.begin(), "result");
  names.push_back("stream");
  const std::string name = plain_name(op);
  std::string text = signature("[[nodiscard]] inline Tensor " + name, by_device);
  text += "  const Tensor result = device.empty(dtype, " + creation_shape(op) + ");\n";
  // Declared below: the parameters of _into are the result, then the attributes, then the stream.
  text += broken(name + "_into", names, ");", 2) + "\n  return result;\n}\n";
  text += signature("[[nodiscard]] inline Tensor " + name, by_stream) + prepare(op) +
          "  compute_tensor* out = nullptr;\n" + checked_call(function_name(op), arguments(op, {"&out"})) +
          "  return Tensor(out);\n}\n";
  return text;
}

// "TopKResult": the result type of an op with several outputs.
std::string result_name(const OpSchema& op) { return camel(plain_name(op)) + "Result"; }

std::string result_struct(const OpSchema& op) {
  std::string text = "struct " + result_name(op) + " {\n  Tensor ";
  for (const std::string& output : op.outputs) text += (&output != op.outputs.data() ? ", " : "") + output;
  return text + ";\n};\n";
}

// The call that makes the results, and what returns them.
std::string making(const OpSchema& op) {
  if (op.output_count == 1) {
    return "  compute_tensor* out = nullptr;\n" + checked_call(function_name(op), arguments(op, {"&out"})) +
           "  return Tensor(out);\n}\n";
  }
  std::string text = "  compute_tensor* out[" + std::to_string(op.output_count) + "] = {};\n", results;
  std::vector<std::string> places;
  for (int32_t i = 0; i < op.output_count; ++i) {
    places.push_back("&out[" + std::to_string(i) + "]");
    results += (i > 0 ? ", " : "") + ("Tensor(out[" + std::to_string(i) + "])");
  }
  return text + checked_call(function_name(op), arguments(op, places)) + "  return {" + results + "};\n}\n";
}

std::string functions(const OpSchema& op) {
  const std::string name = plain_name(op);
  std::vector<Parameter> parameters = input_parameters(op), into = parameters;
  std::vector<std::string> places;
  for (const std::string& output : op.outputs) {
    into.push_back({"const Tensor&", output, ""});
    places.push_back(output + ".get()");
  }
  // Parameters after one with a default need a default too, so written outputs come first among them.
  for (Parameter& one : into) one.value = "";
  for (const Parameter& one : attribute_parameters(op)) {
    parameters.push_back(one);
    into.push_back(one);
  }
  for (const Parameter& one : last_parameters(op)) {
    parameters.push_back(one);
    into.push_back(one);
  }
  std::string written = signature("inline void " + name + "_into", into) + prepare(op) +
                        checked_call(function_name(op) + "_into", arguments(op, places)) + "}\n";
  if (op.inputs.empty()) return comment(op) + written + creation(op);
  const std::string result = op.output_count == 1 ? "Tensor" : result_name(op);
  return comment(op) + (op.output_count == 1 ? "" : result_struct(op)) +
         signature("[[nodiscard]] inline " + result + " " + name, parameters) + prepare(op) + making(op) + written;
}

constexpr std::string_view kHead = R"(//
// ops.hpp: every op as a C++ function, based on the typed function of ops.h. Include compute.hpp. docs/ops.md has the
// meaning, dtypes and bounds of each op.
//
// Rules for all functions:
//
// - `exp(x)` creates the result. `exp_into(x, y)` writes into `y`, which must have the shape and dtype of the result.
//   An elementwise op converts the result to the dtype of `y` if its kind is not lower (bool, integer, real, complex).
//   Any strides are allowed with which no two elements share memory. `y` may be the identical view of an input of an
//   elementwise op (and of scatter's x); any other overlap is an error.
// - Inputs of elementwise ops broadcast, and are converted to a common dtype. A number is a weak scalar: add(x, 1.0f)
//   keeps the dtype of a floating-point x.
// - Axes are a number, a list in braces, or all_axes: sum(x, 0), sum(x, {0, 2}), sum(x, all_axes, true). Negative ones
//   count from the end.
// - The last parameter is the stream. Without it the op runs on the default stream of its device. Products have the
//   precision behind it: matmul(a, b, {}, "highest").
// - An op without inputs takes a device, arange(device, 5, int32), or a stream, and makes its result there.
// - A function never changes its meaning: another version of an op is another function, exp_v2. Code that was compiled
//   against version 1 keeps using it.
//
// Threads: any.
// Errors:  compute::Error with INVALID_ARGUMENT for dtypes, shapes or attributes that the op does not take,
//          OUT_OF_RANGE for a result that is too large, UNSUPPORTED if the device does not support the call,
//          DEVICE_MISMATCH for operands on two devices, OUT_OF_DEVICE_MEMORY (OUT_OF_MEMORY on cpu); and the error of
//          failed earlier work on the operands.
#ifndef COMPUTE_OPS_HPP_
#define COMPUTE_OPS_HPP_

#include "compute/device.hpp"

namespace compute {

// ---- Elementwise ops ------------------------------------------------------------------------------------------------
)";

}  // namespace

std::string ops_cpp_header() {
  std::string text = "// SPDX-License-Identifier: Apache-2.0\n// Generated by opgen from " + std::string(kSources) +
                     "; change those, then build opgen-update.\n" + std::string(kHead);
  std::string others =
      "\n// ---- Other ops "
      "------------------------------------------------------------------------------------------------------\n";
  for (const OpSchema* op : op_schemas()) (op->is_elementwise ? text : others) += "\n" + functions(*op);
  return text + others + "\n}  // namespace compute\n\n#endif  // COMPUTE_OPS_HPP_\n";
}

}  // namespace compute::opgen
