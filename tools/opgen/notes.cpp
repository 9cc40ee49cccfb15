// SPDX-License-Identifier: Apache-2.0
// The columns of ops.def that documentation alone has, and the sources that they name.
#include <algorithm>
#include <stdexcept>

#include "core/base/error.hpp"
#include "tools/opgen/texts.hpp"

namespace compute::opgen {

namespace {

struct Note {
  std::string_view operands, gradient, sources, flags;
};

// By OpId.
#define COMPUTE_UNARY(name, version, inputs, result, expression, ulp, summary, sources) {"", "", sources, ""},
#define COMPUTE_BINARY(name, version, inputs, result, expression, ulp, summary, sources) {"", "", sources, ""},
#define COMPUTE_TERNARY(name, version, inputs, result, expression, ulp, summary, sources) {"", "", sources, ""},
#define COMPUTE_OP(name, version, inputs, attributes, dtype_rule, shape_rule, bound, flags, summary, operands, \
                   gradient, sources, call)                                                                    \
  {operands, gradient, sources, #flags},
constexpr Note kNotes[] = {
#include <compute/ops.def>
};
#undef COMPUTE_UNARY
#undef COMPUTE_BINARY
#undef COMPUTE_TERNARY
#undef COMPUTE_OP

#define COMPUTE_SOURCE(name, text) {#name, text},
constexpr std::pair<std::string_view, std::string_view> kOrigins[] = {
#include "tools/opgen/sources.def"
};
#undef COMPUTE_SOURCE

const Note& note_of(const OpSchema& op) { return kNotes[static_cast<size_t>(op.id)]; }

[[noreturn]] void fail(std::string_view op, const std::string& what) {
  throw std::runtime_error("ops.def: " + std::string(op) + ": " + what);
}

std::vector<std::string_view> split(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + separator.size(), text.size()));
  }
  return parts;
}

// Whether `text` begins with the word `word`.
bool begins_with_word(std::string_view text, std::string_view word) {
  return text.starts_with(word) && (text.size() == word.size() || text[word.size()] == ' ');
}

void check_operands(const OpSchema& op, std::string_view given) {
  const std::vector<std::string_view> operands = split(given, "; ");
  std::vector<std::string_view> names = split(op.inputs_text, " ");
  for (const AttributeSchema& attribute : op.attributes) {
    if (attribute.kind == AttributeKind::kDtype && attribute.required) names.push_back(attribute.name);
  }
  if (!std::ranges::equal(operands, names, begins_with_word))
    fail(op.name, "the operands \"" + std::string(given) + "\" are not the inputs \"" + op.inputs_text + "\"");
}

void check_sources(const OpSchema& op, std::string_view sources) {
  for (const std::string_view source : split(sources, "; ")) {
    const auto is_named = [&](const auto& known) { return begins_with_word(source, known.first); };
    if (std::ranges::none_of(kOrigins, is_named))
      fail(op.name, "the source \"" + std::string(source) + "\" is not in tools/opgen/sources.def");
  }
}

// The inputs whose gradients a row states: those that its parts name ("x and weight: ..."), and those for which an op
// that its first part names has an output ("dx"). A first part without either is about all of them.
std::vector<std::string_view> stated_inputs(const OpSchema& op, std::string_view gradient) {
  const std::vector<std::string_view> inputs(op.inputs.begin(), op.inputs.end());
  std::vector<std::string_view> stated;
  const auto is_input = [&](std::string_view name) { return std::ranges::find(inputs, name) != inputs.end(); };
  const std::vector<std::string_view> parts = split(gradient, "; ");
  for (const std::string_view part : parts) {
    const std::vector<std::string_view> names = split(part.substr(0, part.find(": ")), " and ");
    if (part.find(": ") != std::string_view::npos && std::ranges::all_of(names, is_input)) {
      stated.insert(stated.end(), names.begin(), names.end());
    } else if (part.data() == parts.front().data()) {
      const std::vector<std::string_view> quoted = split(part, "`");
      if (quoted.size() > 1) {
        for (const std::string_view output : split(find_op(quoted[1], 0).outputs_text, " ")) {
          if (output.starts_with('d') && is_input(output.substr(1))) stated.push_back(output.substr(1));
        }
      }
      if (stated.empty()) return inputs;
    }
  }
  return stated;
}

void check_gradient(const OpSchema& op, std::string_view operands, std::string_view gradient) {
  const std::vector<std::string_view> parts = split(gradient, "`");
  for (size_t i = 1; i < parts.size(); i += 2) find_op(parts[i], 0);
  const std::vector<std::string_view> stated = stated_inputs(op, gradient), described = split(operands, "; ");
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    if (described[i].find("INTEGER") != std::string_view::npos) continue;  // they have no gradient
    if (std::ranges::find(stated, op.inputs[i]) == stated.end())
      fail(op.name, "there is no gradient with respect to " + op.inputs[i] + ", nor \"none\"");
  }
}

// Whether the rules of intrinsics.def derive the gradient with respect to this input.
bool is_derived(const OpSchema& op, int32_t input, std::span<const LeafDesc> leaves) {
  try {
    (void)type_expression(gradient_of(op.expression, {&input, 1}), leaves);
    return true;
  } catch (const Error& error) {
    if (error.code != COMPUTE_ERROR_UNSUPPORTED) throw;
    return false;
  }
}

// "expression", or "0" if the gradients of all inputs are 0. Names the inputs if others have none.
std::string derived_gradient(const OpSchema& op, compute_dtype dtype) {
  std::vector<int32_t> wanted;
  std::vector<LeafDesc> leaves;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    const bool is_condition = op.result == RowResult::kSecond && i == 0;
    leaves.push_back({is_condition ? COMPUTE_DTYPE_BOOL : dtype});
    if (!is_condition) wanted.push_back(static_cast<int32_t>(i));
  }
  const compute_dtype result = type_expression(op.expression, leaves).output_dtype(0);
  leaves.push_back({result});
  const auto all = wanted.size();
  std::erase_if(wanted, [&](int32_t input) { return !is_derived(op, input, leaves); });
  std::string named;
  if (wanted.size() < all)
    for (const int32_t input : wanted) named += op.inputs[static_cast<size_t>(input)] + ": ";
  const TypedExpression gradient = type_expression(gradient_of(op.expression, wanted), leaves);
  const std::span outputs(gradient.plugin_view().outputs, static_cast<size_t>(gradient.output_count()));
  const bool is_zero = std::ranges::all_of(outputs, [&](int32_t node) {
    return gradient.nodes()[static_cast<size_t>(node)].kind == COMPUTE_PLUGIN_NODE_CONSTANT;
  });
  return is_zero ? "0" : named + "expression";
}

// Of an elementwise op.
std::string row_gradient(const OpSchema& op) {
  const bool has_real = in_class(COMPUTE_DTYPE_FLOAT32, op.input_class),
             has_complex = in_class(COMPUTE_DTYPE_COMPLEX64, op.input_class);
  if (op.result == RowResult::kBool || (!has_real && !has_complex)) return "none";
  if (!has_real || !has_complex)
    return derived_gradient(op, has_real ? COMPUTE_DTYPE_FLOAT32 : COMPUTE_DTYPE_COMPLEX64);
  const std::string real = derived_gradient(op, COMPUTE_DTYPE_FLOAT32),
                    complex = derived_gradient(op, COMPUTE_DTYPE_COMPLEX64);
  return real == complex ? real : real + "; complex: " + complex;
}

}  // namespace

void check_notes() {
  for (const OpSchema* op : op_schemas()) {
    const Note& note = note_of(*op);
    check_sources(*op, note.sources);
    if (op->is_elementwise) continue;
    check_operands(*op, note.operands);
    check_gradient(*op, note.operands, note.gradient);
  }
}

OpNote op_note(const OpSchema& op) {
  const Note& note = note_of(op);
  return {std::string(note.operands), op.is_elementwise ? row_gradient(op) : std::string(note.gradient),
          std::string(note.sources)};
}

std::string ops_with_flag(std::string_view flag) {
  std::string text;
  for (const OpSchema* op : op_schemas()) {
    if (note_of(*op).flags.find(flag) != std::string_view::npos) text += "`" + op->name + "`, ";
  }
  return text.substr(0, text.rfind(','));
}

std::string source_table() {
  std::string text = "| source | what it is |\n| --- | --- |\n";
  for (const auto& [name, what] : kOrigins) text += "| " + std::string(name) + " | " + std::string(what) + " |\n";
  return text;
}

}  // namespace compute::opgen
