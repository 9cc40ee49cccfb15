// SPDX-License-Identifier: Apache-2.0
#include "core/expressions/expression_gradient.hpp"

#include <array>
#include <cassert>

#include "core/base/error.hpp"

namespace compute {
namespace {

bool is_inexact(compute_dtype dtype) { return is_float(dtype) || is_complex(dtype); }

// The gradients of an intrinsic by its operands; an empty template is 0.
struct Rules {
  std::array<ExpressionTemplate, 3> real;
  std::array<ExpressionTemplate, 3> complex;
};

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(' ');
  return begin == std::string_view::npos ? "" : text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

// One rule per operand, separated by ";".
std::array<ExpressionTemplate, 3> parse_rules(std::string_view text) {
  constexpr std::string_view kNames[] = {"x", "y", "z", "r", "g"};
  std::array<ExpressionTemplate, 3> rules;
  for (ExpressionTemplate& rule : rules) {
    const size_t end = text.find(';');
    const std::string_view part = trimmed(text.substr(0, end));
    if (!part.empty()) rule = parse(part, kNames);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return rules;
}

const Rules& rules_of(int32_t intrinsic) {
  static const std::vector<Rules>& parsed = *new std::vector<Rules>([] {
    std::vector<Rules> all;
    for (const IntrinsicInfo& info : intrinsics()) {
      const std::string_view text = info.gradient;
      const size_t bar = text.find(" | ") != std::string_view::npos ? text.find(" | ") + 1
                         : text.starts_with('|')                    ? 0
                                                                    : text.size();
      Rules rules;
      rules.real = parse_rules(text.substr(0, bar));
      rules.complex = bar < text.size() ? parse_rules(text.substr(bar + 1)) : rules.real;
      all.push_back(std::move(rules));
    }
    return all;
  }());
  return parsed[static_cast<size_t>(intrinsic) - 1];
}

class Reverse {
 public:
  explicit Reverse(ExpressionBuilder& builder)
      : builder_(builder), count_(builder.size()), needed_(count_), gradients_(count_, -1) {}

  // Only what leads to needed nodes is differentiated.
  void need(int32_t node) { needed_[static_cast<size_t>(node)] = true; }
  void spread_needs() {
    for (size_t n = 0; n < count_; ++n) {
      for (const int32_t operand : builder_.operands(static_cast<int32_t>(n))) {
        if (needed_[static_cast<size_t>(operand)]) needed_[n] = true;
      }
    }
  }

  // `gradient` counts towards what `node` is computed in.
  void add(int32_t node, int32_t gradient) {
    gradient = as(gradient, computed_in(builder_.dtype(node)));
    int32_t& sum = gradients_[static_cast<size_t>(node)];
    sum = sum < 0 ? gradient : builder_.call(COMPUTE_PLUGIN_INTRINSIC_ADD, std::array{sum, gradient});
  }

  void run() {
    for (size_t n = count_; n-- > 0;) {
      if (gradients_[n] >= 0 && needed_[n]) propagate(static_cast<int32_t>(n));
    }
  }

  // -1 for 0.
  int32_t gradient(int32_t node) const { return gradients_[static_cast<size_t>(node)]; }

  // Complex to real takes the real part: the imaginary part of a real operand is a constant.
  int32_t as(int32_t node, compute_dtype dtype) {
    if (is_complex(builder_.dtype(node)) && !is_complex(dtype)) {
      node = builder_.call(COMPUTE_PLUGIN_INTRINSIC_REAL, {&node, 1});
    }
    return builder_.convert(node, dtype);
  }

 private:
  void propagate(int32_t node) {
    if (builder_.kind(node) != COMPUTE_PLUGIN_NODE_CALL) return;
    const int32_t intrinsic = builder_.value(node), result = gradients_[static_cast<size_t>(node)];
    const std::vector<int32_t> operands = builder_.operands(node);
    if (intrinsic == COMPUTE_PLUGIN_INTRINSIC_CONVERT) {
      if (reaches(operands[0])) add(operands[0], result);
      return;
    }
    std::array<TypedLeaf, 5> leaves;
    leaves.fill({builder_.dtype(node), false, node, -1});
    for (size_t i = 0; i < operands.size(); ++i) {
      leaves[i] = {builder_.dtype(operands[i]), false, operands[i], -1};
    }
    leaves[4] = {builder_.dtype(result), false, result, -1};
    const bool complex = is_complex(builder_.dtype(operands.back()));
    const auto& rules = complex ? rules_of(intrinsic).complex : rules_of(intrinsic).real;
    for (size_t i = 0; i < operands.size(); ++i) {
      if (!rules[i] || !reaches(operands[i])) continue;
      add(operands[i], build_expression(builder_, rules[i].data(), leaves, {}, "gradient").front());
    }
  }

  bool reaches(int32_t operand) const {
    return needed_[static_cast<size_t>(operand)] && is_inexact(builder_.dtype(operand));
  }

  ExpressionBuilder& builder_;
  size_t count_;
  std::vector<bool> needed_;
  std::vector<int32_t> gradients_;
};

[[noreturn]] void refuse(std::string_view op, const std::string& what, int32_t leaf) {
  throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, std::string(op) + ": " + what).with_argument(leaf);
}

// The gradient by output `i` as the output counts.
int32_t upstream(ExpressionBuilder& builder, const TypedLeaf& leaf, int32_t number, size_t i, compute_dtype output,
                 std::string_view op) {
  if (leaf.node < 0) return builder.scalar({leaf.scalar_leaf, computed_in(output)});
  const compute_dtype dtype = builder.dtype(leaf.node);
  if (is_float(output) != is_float(dtype) || is_complex(output) != is_complex(dtype)) {
    refuse(op,
           "the gradient of output " + std::to_string(i) + " is " + dtype_name(dtype) + ", but the output is " +
               dtype_name(output),
           number);
  }
  return leaf.node;
}

std::vector<int32_t> build_gradient(ExpressionBuilder& builder, const ExpressionTemplateData& data,
                                    std::span<const TypedLeaf> leaves, std::span<const compute_dtype> wanted,
                                    std::string_view op) {
  const ExpressionTemplateData& primal = *data.primal;
  const auto inputs = static_cast<size_t>(primal.input_count);
  std::vector<TypedLeaf> own(leaves.begin(), leaves.begin() + primal.input_count);
  const std::span scalars = leaves.subspan(inputs + primal.outputs.size());
  own.insert(own.end(), scalars.begin(), scalars.end());
  for (const int32_t input : data.outputs) {
    const TypedLeaf& leaf = leaves[static_cast<size_t>(input)];
    const std::string& name = primal.leaf_names[static_cast<size_t>(input)];
    if (leaf.node < 0)
      refuse(op, "input '" + name + "' is a scalar; a gradient requires a tensor (rank 0 is allowed)", input);
    if (!is_inexact(leaf.dtype))
      refuse(op, "input '" + name + "' is " + dtype_name(leaf.dtype) + ", which has no gradient", input);
  }

  const std::vector<int32_t> outputs = build_any(builder, primal, own, {}, op);
  Reverse reverse(builder);
  for (const int32_t input : data.outputs) reverse.need(leaves[static_cast<size_t>(input)].node);
  reverse.spread_needs();
  for (size_t i = 0; i < outputs.size(); ++i) {
    const compute_dtype dtype = builder.dtype(outputs[i]);
    if (!is_inexact(dtype)) continue;
    reverse.add(outputs[i], upstream(builder, leaves[inputs + i], static_cast<int32_t>(inputs + i), i, dtype, op));
  }
  reverse.run();
  if (builder.size() > static_cast<size_t>(kMaxGradientNodes)) {
    refuse(op, "the gradient has more than " + std::to_string(kMaxGradientNodes) + " operations", -1);
  }

  std::vector<int32_t> results;
  for (size_t i = 0; i < data.outputs.size(); ++i) {
    const TypedLeaf& leaf = leaves[static_cast<size_t>(data.outputs[i])];
    const compute_dtype asked = wanted.empty() ? COMPUTE_DTYPE_NONE : wanted[i];
    const compute_dtype dtype = asked != COMPUTE_DTYPE_NONE ? asked : leaf.dtype;
    if (is_float(dtype) != is_float(leaf.dtype) || is_complex(dtype) != is_complex(leaf.dtype)) {
      refuse(op, "output " + std::to_string(i) + " is " + dtype_name(leaf.dtype) + ", not " + dtype_name(dtype), -1);
    }
    const int32_t sum = reverse.gradient(leaf.node);
    results.push_back(sum < 0 ? builder.constant({}, dtype) : reverse.as(sum, dtype));
  }
  return results;
}

}  // namespace

std::vector<int32_t> build_any(ExpressionBuilder& builder, const ExpressionTemplateData& data,
                               std::span<const TypedLeaf> leaves, std::span<const compute_dtype> wanted,
                               std::string_view op) {
  return data.primal ? build_gradient(builder, data, leaves, wanted, op)
                     : build_expression(builder, data, leaves, wanted, op);
}

ExpressionTemplate gradient_of(const ExpressionTemplate& expression, std::span<const int32_t> inputs) {
  const ExpressionTemplateData& primal = expression.data();
  auto data = std::make_shared<ExpressionTemplateData>();
  data->text = "gradient of " + primal.text;
  data->primal = expression.shared();
  data->input_count = primal.input_count + static_cast<int32_t>(primal.outputs.size());
  data->scalar_count = primal.scalar_count;
  data->max_index_axis = primal.max_index_axis;
  data->leaf_names.assign(primal.leaf_names.begin(), primal.leaf_names.begin() + primal.input_count);
  for (size_t i = 0; i < primal.outputs.size(); ++i) data->leaf_names.push_back("gradient " + std::to_string(i));
  data->leaf_names.insert(data->leaf_names.end(), primal.leaf_names.begin() + primal.input_count,
                          primal.leaf_names.end());
  data->outputs.assign(inputs.begin(), inputs.end());
  return ExpressionTemplate(std::move(data));
}

}  // namespace compute
