// SPDX-License-Identifier: Apache-2.0
#include "core/expressions/expression_gradient.hpp"

#include <algorithm>
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

bool is_refused(const ExpressionTemplate& rule) { return rule && rule.data().text == "nan"; }

// One rule per operand, separated by ";"; "?" is one that nothing derives.
std::array<ExpressionTemplate, 3> parse_rules(std::string_view text) {
  constexpr std::string_view kNames[] = {"x", "y", "z", "r", "g"};
  std::array<ExpressionTemplate, 3> rules;
  for (ExpressionTemplate& rule : rules) {
    const size_t end = text.find(';');
    const std::string_view part = trimmed(text.substr(0, end));
    if (!part.empty()) rule = parse(part == "?" ? "nan" : part, kNames);
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

// A gradient that applies to one side of nested conditions of `where`; `guard` is the innermost. It is masked when it
// leaves that side, so that infinities and NaN of the operand that was not selected are never multiplied by 0.
struct Guarded {
  int32_t node = -1;  // -1 for 0
  int32_t guard = -1;
};

class Reverse {
 public:
  explicit Reverse(ExpressionBuilder& builder)
      : builder_(builder), count_(builder.size()), needed_(count_), gradients_(count_) {}

  // Differentiates only the paths to needed nodes.
  void need(int32_t node) { needed_[static_cast<size_t>(node)] = true; }
  void spread_needs() {
    for (size_t n = 0; n < count_; ++n) {
      for (const int32_t operand : builder_.operands(static_cast<int32_t>(n))) {
        if (needed_[static_cast<size_t>(operand)]) needed_[n] = true;
      }
    }
  }

  // `gradient` counts towards what `node` is computed in.
  void add(int32_t node, Guarded gradient) {
    gradient.node = as(gradient.node, computed_in(builder_.dtype(node)));
    Guarded& sum = gradients_[static_cast<size_t>(node)];
    sum = sum.node < 0 ? gradient : added(sum, gradient);
  }

  void run() {
    for (size_t n = count_; n-- > 0;) {
      if (gradients_[n].node >= 0 && needed_[n]) propagate(static_cast<int32_t>(n));
    }
  }

  // -1 for 0.
  int32_t gradient(int32_t node) {
    const Guarded& sum = gradients_[static_cast<size_t>(node)];
    return sum.node < 0 ? -1 : masked(sum, 0).node;
  }

  // Complex to real takes the real part: the imaginary part of a real operand is a constant.
  int32_t as(int32_t node, compute_dtype dtype) {
    if (is_complex(builder_.dtype(node)) && !is_complex(dtype)) {
      node = builder_.call(COMPUTE_PLUGIN_INTRINSIC_REAL, {&node, 1});
    }
    return builder_.convert(node, dtype);
  }

 private:
  struct Guard {
    int32_t condition;
    bool side;
    int32_t outer;
    int32_t depth;
  };

  int32_t depth(int32_t guard) const { return guard < 0 ? 0 : guards_[static_cast<size_t>(guard)].depth; }

  int32_t guard(int32_t outer, int32_t condition, bool side) {
    for (size_t i = 0; i < guards_.size(); ++i) {
      const Guard& known = guards_[i];
      if (known.outer == outer && known.condition == condition && known.side == side) return static_cast<int32_t>(i);
    }
    guards_.push_back({condition, side, outer, depth(outer) + 1});
    return static_cast<int32_t>(guards_.size()) - 1;
  }

  // Without the guards deeper than `until`.
  Guarded masked(Guarded gradient, int32_t until) {
    while (depth(gradient.guard) > until) {
      const Guard& known = guards_[static_cast<size_t>(gradient.guard)];
      const int32_t zero = builder_.constant({}, builder_.dtype(gradient.node));
      gradient = {
          known.side ? where(known.condition, gradient.node, zero) : where(known.condition, zero, gradient.node),
          known.outer};
    }
    return gradient;
  }

  int32_t where(int32_t condition, int32_t x, int32_t y) {
    return builder_.call(COMPUTE_PLUGIN_INTRINSIC_WHERE, std::array{condition, x, y});
  }

  Guarded added(Guarded x, Guarded y) {
    if (x.guard != y.guard) {
      const int32_t common = std::min(depth(x.guard), depth(y.guard));
      x = masked(x, common);
      y = masked(y, common);
    }
    while (x.guard != y.guard) {
      const Guard of_x = guards_[static_cast<size_t>(x.guard)], of_y = guards_[static_cast<size_t>(y.guard)];
      if (of_x.outer == of_y.outer && of_x.condition == of_y.condition) {  // its two sides
        const int32_t node = of_x.side ? where(of_x.condition, x.node, y.node) : where(of_x.condition, y.node, x.node);
        return {node, of_x.outer};
      }
      x = masked(x, of_x.depth - 1);
      y = masked(y, of_y.depth - 1);
    }
    return {builder_.call(COMPUTE_PLUGIN_INTRINSIC_ADD, std::array{x.node, y.node}), x.guard};
  }

  void propagate(int32_t node) {
    if (builder_.kind(node) != COMPUTE_PLUGIN_NODE_CALL) return;
    const int32_t intrinsic = builder_.value(node);
    const Guarded result = gradients_[static_cast<size_t>(node)];
    const std::vector<int32_t> operands = builder_.operands(node);
    const int32_t origin = intrinsic == COMPUTE_PLUGIN_INTRINSIC_CONVERT ? operands[0] : builder_.origin(node);
    if (origin >= 0) {
      if (reaches(origin)) add(origin, result);
      return;
    }
    if (intrinsic == COMPUTE_PLUGIN_INTRINSIC_WHERE) {
      for (const bool side : {true, false}) {
        const int32_t operand = operands[side ? 1 : 2];
        if (reaches(operand)) add(operand, {result.node, guard(result.guard, operands[0], side)});
      }
      return;
    }
    std::array<TypedLeaf, 5> leaves;
    leaves.fill({builder_.dtype(node), false, node, -1});
    for (size_t i = 0; i < operands.size(); ++i) {
      leaves[i] = {builder_.dtype(operands[i]), false, operands[i], -1};
    }
    leaves[4] = {builder_.dtype(result.node), false, result.node, -1};
    const bool complex = is_complex(builder_.dtype(operands.back()));
    const auto& rules = complex ? rules_of(intrinsic).complex : rules_of(intrinsic).real;
    for (size_t i = 0; i < operands.size(); ++i) {
      if (!rules[i] || !reaches(operands[i])) continue;
      if (is_refused(rules[i])) {
        throw Error(COMPUTE_ERROR_UNSUPPORTED, "gradient: that of " + std::string(find_intrinsic(intrinsic)->name) +
                                                   " with respect to its operand " + std::to_string(i + 1) +
                                                   " is not known");
      }
      const int32_t gradient = build_expression(builder_, rules[i].data(), leaves, {}, "gradient").front();
      add(operands[i], {gradient, result.guard});
    }
  }

  bool reaches(int32_t operand) const {
    const compute_dtype dtype = builder_.dtype(operand);
    return needed_[static_cast<size_t>(operand)] && (is_inexact(dtype) || is_float8(dtype));
  }

  ExpressionBuilder& builder_;
  size_t count_;
  std::vector<bool> needed_;
  std::vector<Guarded> gradients_;
  std::vector<Guard> guards_;
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
    const compute_dtype own_dtype = builder.dtype(outputs[i]);
    const compute_dtype dtype = is_float8(own_dtype) ? computed_in(own_dtype) : own_dtype;
    if (!is_inexact(dtype)) continue;
    reverse.add(outputs[i], {upstream(builder, leaves[inputs + i], static_cast<int32_t>(inputs + i), i, dtype, op)});
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
