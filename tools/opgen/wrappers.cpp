// SPDX-License-Identifier: Apache-2.0
// The typed functions of compute/ops.h: their declarations, the bodies of those that are not elementwise, and where the
// fields of their options lie.
#include <algorithm>
#include <cctype>
#include <set>
#include <stdexcept>
#include <utility>

#include "tools/opgen/names.hpp"
#include "tools/opgen/texts.hpp"

namespace compute::opgen {

std::string plain_name(const OpSchema& op) {
  return op.name + (op.version == 1 ? "" : "_v" + std::to_string(op.version));
}

std::string function_name(const OpSchema& op) { return "compute_" + plain_name(op); }

std::string options_name(const OpSchema& op) { return function_name(op) + "_options"; }

bool has_mask(const AttributeSchema& a) { return a.is_list && !a.required && a.default_text == "all"; }

bool is_pointer_field(const AttributeSchema& a) {
  const bool is_real = a.kind == AttributeKind::kFloat64 && a.has_default && a.default_float64 != 0;
  return is_real || (a.kind == AttributeKind::kInt64 && !a.is_list && !(a.has_default && a.default_int64 == 0));
}

std::string bound_text(const OpSchema& op) {
  if (op.bound == "exact" || op.bound == "ulp:0") return "Exact or correctly rounded.";
  if (op.bound == "n" || op.bound == "log2" || op.bound == "backward") return "Error bound: " + op.bound + ".";
  return "Within " + op.bound.substr(4) + " ULP.";
}

std::string elementwise_text(const OpSchema& op) {
  const bool condition = op.result == RowResult::kSecond;
  return std::string(op.inputs.size() == 1 ? "x: "
                     : condition           ? "y and z: "
                                           : "Inputs: ") +
         class_description(op.input_class) + "; result: " + std::string(result_text(op)) + ". " + bound_text(op);
}

std::string op_text(const OpSchema& op) {
  const std::string start = op.name + ": " + op.summary + ". ";
  if (op.is_elementwise) return start + elementwise_text(op);
  return start + "Dtype: " + std::string(dtype_rule_text(op)) + ". Shape: " + std::string(shape_rule_text(op)) + ". " +
         bound_text(op);
}

namespace {

std::string default_comment(const AttributeSchema& a) {
  if (has_mask(a)) return "NULL: as " + a.name + "_mask says";
  const char* zero = is_pointer_field(a) || a.is_list || a.kind == AttributeKind::kString ? "NULL: " : "";
  return zero + (a.default_text == "none" && a.kind == AttributeKind::kDtype ? "0: by the rule" : a.default_text);
}

// Parameters of a required attribute, or fields of an optional one: pairs of a type and a name.
std::vector<std::pair<std::string, std::string>> members(const AttributeSchema& a) {
  if (a.is_list) {
    std::vector<std::pair<std::string, std::string>> list = {
        {a.kind == AttributeKind::kFloat64 ? "const double*" : "const int64_t*", a.name},
        {"int64_t", a.name + "_count"}};
    if (has_mask(a)) list.emplace_back("uint64_t", a.name + "_mask");
    return list;
  }
  switch (a.kind) {
    case AttributeKind::kInt64:
      return {{!a.required && is_pointer_field(a) ? "const int64_t*" : "int64_t", a.name}};
    case AttributeKind::kFloat64:
      return {{!a.required && is_pointer_field(a) ? "const double*" : "double", a.name}};
    case AttributeKind::kString:
      return {{"const char*", a.name}, {"int64_t", a.name + "_size"}};
    case AttributeKind::kDtype:
      return {{"compute_dtype", a.name}};
    case AttributeKind::kNumber:
      return {{a.required ? "const compute_number*" : "compute_number", a.name}};
    case AttributeKind::kHandle:
      break;
  }
  return {};
}

void check_supported(const OpSchema& op) {
  for (const AttributeSchema& a : op.attributes) {
    const bool plain = a.kind != AttributeKind::kHandle &&
                       (a.kind == AttributeKind::kInt64 || a.kind == AttributeKind::kFloat64 || !a.is_list);
    if (!plain) throw std::runtime_error(op.name + ": attribute " + a.name + " has no form in ops.h");
  }
}

struct Parameters {
  std::vector<std::string> list;

  Parameters(const OpSchema& op) {
    list.push_back("compute_stream* stream");
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      if (op.is_variadic && i + 1 == op.inputs.size()) {
        list.push_back("compute_tensor* const* " + op.inputs[i]);
        list.push_back("int64_t " + op.inputs[i] + "_count");
      } else {
        list.push_back("compute_tensor* " + op.inputs[i]);
      }
    }
    for (const AttributeSchema& a : op.attributes) {
      if (!a.required) continue;
      for (const auto& [type, name] : members(a)) list.push_back(type + " " + name);
    }
    if (!op.is_elementwise) list.push_back("const " + options_name(op) + "* options");
  }
};

// A declaration broken behind commas, aligned with the parenthesis.
std::string signature(const std::string& head, std::vector<std::string> parameters,
                      const std::vector<std::string>& last, const std::string& tail) {
  parameters.insert(parameters.end(), last.begin(), last.end());
  std::string text = head + "(";
  const size_t indent = text.size();
  size_t column = indent;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const std::string part = parameters[i] + (i + 1 < parameters.size() ? "," : ")" + tail);
    if (i > 0 && column + 1 + part.size() > 120) {
      text += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (i > 0) {
      text += ' ';
      ++column;
    }
    text += part;
    column += part.size();
  }
  return text;
}

std::string comment(const OpSchema& op) { return wrapped(op_text(op), "/* ", " * ", 117) + " */\n"; }

// A field of an options struct; `comment` is the default's, of an attribute's first field.
struct Field {
  std::string type, name, comment;
};

std::vector<Field> option_fields(const OpSchema& op) {
  std::vector<Field> fields = {
      {"uint32_t", "struct_size", ""}, {"uint32_t", "struct_type", ""}, {"const void*", "next", ""}};
  // Fields of four bytes go in pairs, so that no struct has padding.
  int32_t fours = 0;
  for (const AttributeSchema& a : op.attributes) {
    if (a.required) continue;
    std::string comment = default_comment(a);
    for (const auto& [type, name] : members(a)) {
      if (name.ends_with("_mask")) comment = "bit i: axis i; 0 without a list: " + a.default_text;
      fields.push_back({type, name, std::exchange(comment, "")});
      fours += type == "compute_dtype";
    }
  }
  if (fours % 2 != 0) fields.push_back({"int32_t", "reserved", ""});
  return fields;
}

// Comments of consecutive fields are aligned in one column.
std::string options_struct(const OpSchema& op) {
  const std::vector<Field> fields = option_fields(op);
  const auto text_of = [](const Field& field) { return "  " + field.type + " " + field.name + ";"; };
  std::string text = "typedef struct " + options_name(op) + " {\n";
  for (size_t i = 0; i < fields.size(); ++i) {
    text += text_of(fields[i]);
    if (!fields[i].comment.empty()) {
      size_t column = 0;
      const auto take = [&](size_t at) {
        if (fields[at].comment.empty()) return false;
        column = std::max(column, text_of(fields[at]).size());
        return true;
      };
      for (size_t at = i; at < fields.size() && take(at); ++at) continue;
      for (size_t at = i; at-- > 0 && take(at);) continue;
      text += std::string(column - text_of(fields[i]).size(), ' ') + " /* " + fields[i].comment + " */";
    }
    text += "\n";
  }
  return text + "} " + options_name(op) + ";\n";
}

// The outputs' names, each behind `prefix`.
std::vector<std::string> each_output(const OpSchema& op, const std::string& prefix) {
  std::vector<std::string> list;
  for (const std::string& output : op.outputs) list.push_back(prefix + output);
  return list;
}

std::string declarations(const OpSchema& op) {
  const std::string head = "COMPUTE_API compute_error* " + function_name(op);
  const Parameters parameters(op);
  std::string text = comment(op);
  if (!op.is_elementwise) text += options_struct(op);
  text += signature(head, parameters.list, each_output(op, "compute_tensor** out_"), ";") + "\n";
  text += signature(head + "_into", parameters.list, each_output(op, "compute_tensor* "), ";") + "\n";
  return text;
}

// One statement that adds an attribute to the list.
std::string add_attribute(const AttributeSchema& a) {
  const std::string from = (a.required ? "" : "given.") + a.name, name = "\"" + a.name + "\"";
  if (has_mask(a)) {
    return "attributes.axes(" + name + ", " + from + ", " + from + "_count, " + from + "_mask);";
  }
  if (a.is_list) {
    return "attributes.list(" + name + ", " + from + ", " + from + "_count" + (a.required ? ", true" : "") + ");";
  }
  switch (a.kind) {
    case AttributeKind::kInt64:
      if (a.required) return "attributes.int64(" + name + ", &" + from + ");";
      if (is_pointer_field(a)) return "attributes.int64(" + name + ", " + from + ");";
      return "attributes.int64(" + name + ", " + from + " != 0 ? &" + from + " : nullptr);";
    case AttributeKind::kFloat64:
      if (!a.required && is_pointer_field(a)) return "attributes.float64(" + name + ", " + from + ");";
      return "attributes.float64(" + name + ", " +
             (a.required ? "&" + from : from + " != 0 ? &" + from + " : nullptr") + ");";
    case AttributeKind::kString:
      return "attributes.string(" + name + ", " + from + ", " + from + "_size);";
    case AttributeKind::kDtype:
      if (a.required) return "attributes.dtype(" + name + ", &" + from + ");";
      return "attributes.dtype(" + name + ", " + from + " != 0 ? &" + from + " : nullptr);";
    case AttributeKind::kNumber:
      return "attributes.number(" + name + ", " + (a.required ? from + ", true" : "&" + from) + ");";
    case AttributeKind::kHandle:
      break;
  }
  return "";
}

// How a wrapper passes the places of its results on: one output by itself, several as arrays.
struct OutputArguments {
  std::vector<std::string> parameters;  // of run_<op>_<version>
  std::string call, made, given;        // for call_op, and for the two functions of ops.h
};

OutputArguments output_arguments(const OpSchema& op) {
  if (op.output_count == 1) {
    const std::string& output = op.outputs[0];
    return {{"compute_tensor** out", "compute_tensor* into"},
            "out, into, \"" + output + "\"",
            "out_" + output + ", nullptr",
            "nullptr, " + output};
  }
  OutputArguments result;
  const std::string count = std::to_string(op.output_count);
  result.parameters = {"const Results<" + count + ">& results"};
  result.call = "results";
  for (const std::string& output : op.outputs) {
    const char* comma = result.made.empty() ? "" : ", ";
    result.made += comma + ("out_" + output);
    result.given += comma + output;
  }
  result.made = "{.made = {" + result.made + "}}";
  result.given = "{.given = {" + result.given + "}, .writes = true}";
  return result;
}

std::string body(const OpSchema& op) {
  const Parameters parameters(op);
  const OutputArguments outputs = output_arguments(op);
  const std::string version = op.name + "_" + std::to_string(op.version), run = "run_" + version;
  std::string arguments;
  for (const std::string& parameter : parameters.list) {
    arguments += parameter.substr(parameter.find_last_of(" *") + 1) + ", ";
  }
  std::string text = signature("static compute_error* " + run, parameters.list, outputs.parameters, " {") + "\n";
  text += "  return call_op(OpId::k_" + version + ", " + outputs.call + ", [&](compute_tensor** outputs) {\n";
  std::string inputs = "nullptr, 0";
  if (op.is_variadic) {
    if (op.inputs.size() != 1)
      throw std::runtime_error(op.name + ": variadic inputs beside others have no form in ops.h");
    inputs = op.inputs[0] + ", " + op.inputs[0] + "_count";
  } else if (!op.inputs.empty()) {
    text += "    compute_tensor* const inputs[] = {";
    for (size_t i = 0; i < op.inputs.size(); ++i) text += (i > 0 ? ", " : "") + op.inputs[i];
    text += "};\n";
    inputs = "inputs, " + std::to_string(op.inputs.size());
  }
  const auto call = [&](const std::string& attributes) {
    return "run_op(op_schema(OpId::k_" + version + "), stream, " + attributes + ", " + inputs + ", outputs, " +
           std::to_string(op.output_count) + ");\n";
  };
  const auto is_required = [](const AttributeSchema& a) { return a.required; };
  if (!op.attributes.empty()) {
    const bool all_optional = std::none_of(op.attributes.begin(), op.attributes.end(), is_required);
    if (all_optional) text += "    if (options == nullptr)\n      return " + call("nullptr, 0");
    text += "    AttributeList<" + std::to_string(op.attributes.size()) + "> attributes;\n";
  }
  const bool all_required = std::all_of(op.attributes.begin(), op.attributes.end(), is_required);
  text += std::string("    ") + (all_required ? "" : "const auto given = ") + "read_options(options);\n";
  for (const AttributeSchema& a : op.attributes) text += "    " + add_attribute(a) + "\n";
  text += "    " + call(op.attributes.empty() ? "nullptr, 0" : "attributes.data(), attributes.size()") + "  });\n}\n";
  const std::string head = "compute_error* " + function_name(op);
  text += signature(head, parameters.list, each_output(op, "compute_tensor** out_"), " {") + "\n  return " + run + "(" +
          arguments + outputs.made + ");\n}\n";
  text += signature(head + "_into", parameters.list, each_output(op, "compute_tensor* "), " {") + "\n  return " + run +
          "(" + arguments + outputs.given + ");\n}\n";
  return text;
}

}  // namespace

std::string ops_header() {
  std::string text = "/* SPDX-License-Identifier: Apache-2.0 */\n/* Generated by opgen from " + std::string(kSources) +
                     "; change those, then build opgen-update. */\n" + R"(/*
 * ops.h: one typed function per op, based on compute_op_run of compute.h. docs/ops.md has the meaning, dtypes and
 * bounds of each op.
 *
 * Rules for all functions:
 *
 * - `compute_exp(stream, x, &out_y)` creates the result, and the caller releases it. `compute_exp_into(stream, x, y)`
 *   writes into `y`, which must have the shape and dtype of the result. An elementwise op converts the result to the
 *   dtype of `y` if its kind is not lower (bool, integer, real, complex). Any strides are allowed with which no two
 *   elements share memory. `y` may be the identical view of an input of an elementwise op (and of scatter's x); any
 *   other overlap is an error.
 * - Inputs of elementwise ops broadcast, and are converted to a common dtype. Scalars made by compute_tensor_scalar can
 *   be inputs too.
 * - Attributes with a default are in an options struct. NULL means all defaults. Set struct_size to the struct's sizeof
 *   and the rest to zero: a field that is zero has its default, which the comment beside the field states.
 * - An op with several results has one out-parameter for each. None of them may be NULL.
 * - A run-time attribute that is a slot of a graph (compute_tensor_slot) is a compute_number of kind
 *   COMPUTE_KIND_SCALAR.
 * - Axes are given as a list (an empty one by any address and count 0) or as a mask, not as both.
 * - A NULL stream is the default stream of the device that the op runs on. Functions without inputs need a stream or
 *   an output.
 *
 * Errors: INVALID_ARGUMENT      dtypes, shapes or attributes that the op does not support; the message names them
 *         OUT_OF_RANGE          a result that is too large
 *         UNSUPPORTED           the device does not support it; the message states the reason
 *         DEVICE_MISMATCH       operands on two devices
 *         OUT_OF_DEVICE_MEMORY  (OUT_OF_MEMORY on cpu); and the error of failed earlier work on the operands.
 */
#ifndef COMPUTE_OPS_H_
#define COMPUTE_OPS_H_

#include "compute/compute.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Elementwise ops --------------------------------------------------------------------------------------------- */
)";
  std::string others =
      "\n/* ---- Other ops "
      "--------------------------------------------------------------------------------------------------- */\n";
  for (const OpSchema* op : op_schemas()) {
    check_supported(*op);
    (op->is_elementwise ? text : others) += "\n" + declarations(*op);
  }
  return text + others + "\n#ifdef __cplusplus\n}\n#endif\n\n#endif /* COMPUTE_OPS_H_ */\n";
}

std::string op_wrappers() {
  std::string text = "// SPDX-License-Identifier: Apache-2.0\n// Generated by opgen from " + std::string(kSources) +
                     "; change those, then build opgen-update.\n// The functions of ops, for "
                     "core/interface/typed_ops.cpp.\n\n";
  std::string others;
  for (const OpSchema* op : op_schemas()) {
    const std::string name = function_name(*op);
    if (!op->is_elementwise) {
      others += "\n" + body(*op);
    } else {
      text += "COMPUTE_ELEMENTWISE_" + std::to_string(op->inputs.size()) + "(" + name + ", " + name + "_into, k_" +
              op->name + "_" + std::to_string(op->version) + ")\n";
    }
  }
  return text + others;
}

void check_names(std::string_view compute_header) {
  std::set<std::string> taken;
  constexpr std::string_view kPrefix = "compute_";
  for (size_t at = compute_header.find(kPrefix); at != std::string_view::npos;
       at = compute_header.find(kPrefix, at + 1)) {
    size_t end = at;
    while (end < compute_header.size() &&
           (std::isalnum(static_cast<unsigned char>(compute_header[end])) || compute_header[end] == '_'))
      ++end;
    taken.insert(std::string(compute_header.substr(at, end - at)));
  }
  for (const OpSchema* op : op_schemas()) {
    std::vector<std::string> names{function_name(*op), function_name(*op) + "_into"};
    if (!op->is_elementwise) names.push_back(options_name(*op));
    for (const std::string& name : names) {
      if (!taken.insert(name).second)
        throw std::runtime_error(name + " of ops.h is already a name of compute.h, or is defined twice");
    }
  }
}

}  // namespace compute::opgen
