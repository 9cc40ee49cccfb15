// SPDX-License-Identifier: Apache-2.0
// einsum, tensordot and vecdot: products of two operands at a time as contractions of [batch, m, k] and [batch, k, n].
#include <algorithm>

#include "core/ops/rules.hpp"
#include "core/ops/steps.hpp"

namespace compute {

namespace {

// A tensor whose axes have names. The names of an ellipsis' axes are digits, the last axis being '0'.
struct Named {
  StepOperand tensor;
  std::string labels;
};

// A parsed equation. Without "->" the output has the labels that occur once, in alphabetical order, after the axes of
// ellipses.
struct Equation {
  std::vector<std::string> inputs;
  std::string output;
};

bool is_label(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool has(std::string_view labels, char label) { return labels.find(label) != std::string_view::npos; }

[[noreturn]] void refuse_equation(const OpCall& call, const std::string& what) {
  refuse_attribute(call, "equation",
                   "\"" + std::string(call.attributes.string(attribute_index(call, "equation"))) + "\": " + what);
}

// The labels of a part of the equation, whose ellipsis has `wide` axes.
std::string expanded(const OpCall& call, std::string_view part, int64_t wide) {
  std::string labels;
  for (size_t i = 0; i < part.size(); ++i) {
    if (part.substr(i, 3) == "...") {
      for (int64_t axis = wide; axis-- > 0;) labels += static_cast<char>('0' + axis);
      i += 2;
    } else if (is_label(part[i])) {
      labels += part[i];
    } else {
      refuse_equation(call, "unexpected '" + std::string(1, part[i]) + "'");
    }
  }
  return labels;
}

std::string without_blanks(std::string_view text) {
  std::string result;
  std::copy_if(text.begin(), text.end(), std::back_inserter(result), [](char c) { return c != ' '; });
  return result;
}

Equation read_equation(const OpCall& call) {
  const std::string text = without_blanks(call.attributes.string(attribute_index(call, "equation")));
  const size_t arrow = text.find("->");
  const std::string_view left = std::string_view(text).substr(0, arrow);
  Equation equation;
  int64_t widest = 0;
  size_t begin = 0;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (begin > left.size()) refuse_equation(call, "it has fewer operands than there are tensors");
    const size_t comma = std::min(left.find(',', begin), left.size());
    const std::string_view part = left.substr(begin, comma - begin);
    begin = comma + 1;
    const auto named = static_cast<int64_t>(std::count_if(part.begin(), part.end(), is_label));
    const bool is_wide = part.find("...") != std::string_view::npos;
    const int64_t wide = call.inputs[i].rank - named;
    if (wide < 0 || (wide > 0 && !is_wide) || wide > 9) {
      refuse_equation(call, "operand " + std::to_string(i) + " has " + std::to_string(named) + " labels, but shape " +
                                shape_text(call.inputs[i].extents()));
    }
    widest = std::max(widest, is_wide ? wide : 0);
    equation.inputs.push_back(expanded(call, part, wide));
  }
  if (begin <= left.size()) refuse_equation(call, "it has more operands than there are tensors");
  std::string all;
  for (const std::string& labels : equation.inputs) all += labels;
  if (arrow != std::string::npos) {
    equation.output = expanded(call, std::string_view(text).substr(arrow + 2), widest);
    for (const char label : equation.output) {
      if (!has(all, label))
        refuse_equation(call, std::string("no operand has the label '") + label + "' of the output");
      if (std::count(equation.output.begin(), equation.output.end(), label) > 1)
        refuse_equation(call, std::string("the output has the label '") + label + "' twice");
    }
    return equation;
  }
  for (int64_t axis = widest; axis-- > 0;) equation.output += static_cast<char>('0' + axis);
  std::string sorted = all;
  std::sort(sorted.begin(), sorted.end());
  for (const char label : sorted) {
    if (is_label(label) && std::count(all.begin(), all.end(), label) == 1) equation.output += label;
  }
  return equation;
}

// The extent of each label; only axes of ellipses broadcast.
std::vector<int64_t> read_extents(const OpCall& call, const Equation& equation) {
  std::vector<int64_t> extents(128, -1);
  for (size_t i = 0; i < equation.inputs.size(); ++i) {
    for (size_t axis = 0; axis < equation.inputs[i].size(); ++axis) {
      const char label = equation.inputs[i][axis];
      const int64_t extent = call.inputs[i].shape[axis];
      int64_t& known = extents[static_cast<size_t>(label)];
      if (known < 0 || (known == 1 && !is_label(label))) {
        known = extent;
      } else if (known != extent && (extent != 1 || is_label(label))) {
        refuse(call,
               (is_label(label) ? std::string("label '") + label + "'" : std::string("an axis of '...'")) +
                   " has extents " + std::to_string(known) + " and " + std::to_string(extent),
               static_cast<int32_t>(i));
      }
    }
  }
  return extents;
}

// Multiplies named tensors.
class Products {
 public:
  Products(Steps& steps, std::vector<int64_t> extents, compute_dtype dtype, bool by_reduce)
      : steps_(steps), extents_(std::move(extents)), dtype_(dtype), by_reduce_(by_reduce) {}

  // One axis per label: the axes of a repeated label become their diagonal, and broadcast axes are repeated.
  Named diagonal(const Named& given) const {
    Named result{given.tensor, ""};
    result.tensor.shape.clear();
    result.tensor.strides.clear();
    for (size_t i = 0; i < given.labels.size(); ++i) {
      const char label = given.labels[i];
      const int64_t stride = given.tensor.shape[i] == 1 ? 0 : given.tensor.strides[i];
      const size_t at = result.labels.find(label);
      if (at != std::string::npos) {
        result.tensor.strides[at] += stride;
        continue;
      }
      result.labels += label;
      result.tensor.shape.push_back(extent(label));
      result.tensor.strides.push_back(stride);
    }
    return result;
  }

  // The axes named by `labels`, in that order, each at most once.
  static Named ordered(const Named& x, const std::string& labels) {
    Named result{x.tensor, labels};
    result.tensor.shape.clear();
    result.tensor.strides.clear();
    for (const char label : labels) {
      const size_t axis = x.labels.find(label);
      result.tensor.shape.push_back(x.tensor.shape[axis]);
      result.tensor.strides.push_back(x.tensor.strides[axis]);
    }
    return result;
  }

  // Sums over the labels that are not in `kept`, into `to` if it is given, whose labels are `kept`.
  Named summed(const Named& x, std::string_view kept, const Named* to = nullptr) {
    Named result{{}, ""};
    std::vector<int64_t> axes, shape = x.tensor.shape;
    for (size_t i = 0; i < x.labels.size(); ++i) {
      if (has(kept, x.labels[i])) {
        result.labels += x.labels[i];
      } else {
        axes.push_back(static_cast<int64_t>(i));
        shape[i] = 1;
      }
    }
    if (axes.empty()) return x;
    if (to == nullptr) {
      result.tensor = steps_.temporary(dtype_, shape);
    } else {
      result.tensor = ordered(*to, result.labels).tensor;
      for (const int64_t axis : axes) result.tensor = with_axis(std::move(result.tensor), static_cast<int32_t>(axis));
    }
    const compute_dtype accumulator = computed_in(dtype_);
    steps_.reduce("sum", accumulator, axes, {convert_text("x", computed_in(x.tensor.dtype), accumulator)}, {x.tensor},
                  {"x"}, result.tensor);
    for (size_t i = axes.size(); i-- > 0;) result.tensor = without_axis(result.tensor, static_cast<int32_t>(axes[i]));
    return result;
  }

  // x y, summed over the labels that are not in `kept`, into `to` if it is given, whose labels are `kept` in a matrix
  // layout or, without a sum, in any.
  Named product(const Named& x, const Named& y, std::string_view kept, const Named* to = nullptr) {
    std::string batch, rows, columns, inner;
    for (const char label : x.labels) {
      std::string& group = !has(y.labels, label) ? rows : has(kept, label) ? batch : inner;
      group += label;
    }
    for (const char label : y.labels) {
      if (!has(x.labels, label)) columns += label;
    }
    if (inner.empty()) {
      // Many products of columns and rows are contractions: maps would go along short rows.
      const std::string labels = to != nullptr ? to->labels : batch + rows + columns;
      const bool are_outer = !batch.empty() && !rows.empty() && !columns.empty() && !has(batch, labels.back());
      if (!are_outer || is_complex(dtype_)) return elementwise(x, y, labels, to);
    }
    std::optional<StepOperand> direct;
    if (to != nullptr && to->tensor.dtype == dtype_) {
      direct = as_matrices(*to, {batch, rows, columns});
      if (!direct) {
        // The order of the result's labels, if no operand has to be copied for it.
        const auto sorted = [&](std::string labels) {
          std::sort(labels.begin(), labels.end(),
                    [&](char p, char q) { return to->labels.find(p) < to->labels.find(q); });
          return labels;
        };
        const std::string groups[] = {sorted(batch), sorted(rows), sorted(columns)};
        direct = as_matrices(*to, {groups[0], groups[1], groups[2]});
        if (direct && grouped(x, {groups[0], groups[1], inner}) && grouped(y, {groups[0], inner, groups[2]})) {
          batch = groups[0];
          rows = groups[1];
          columns = groups[2];
        } else {
          direct.reset();
        }
      }
    }
    const StepOperand a = packed(x, {batch, rows, inner}), b = packed(y, {batch, inner, columns});
    if (direct) {
      multiply(a, b, *direct);
      return *to;
    }
    const int64_t shape[] = {count(batch), count(rows), count(columns)};
    const StepOperand made = steps_.temporary(dtype_, shape);
    multiply(a, b, made);
    Named result{made, batch + rows + columns};
    result.tensor.shape.clear();
    for (const char label : result.labels) result.tensor.shape.push_back(extent(label));
    result.tensor.strides = row_major_strides(result.tensor.shape);
    return result;
  }

  int64_t extent(char label) const { return extents_[static_cast<size_t>(label)]; }

 private:
  int64_t count(std::string_view labels) const {
    int64_t result = 1;
    for (const char label : labels) result *= extent(label);
    return result;
  }

  // x y without a sum; `labels` are those of both.
  Named elementwise(const Named& x, const Named& y, const std::string& labels, const Named* to) {
    Named result{{}, labels};
    if (to != nullptr) {
      result = *to;
    } else {
      std::vector<int64_t> shape;
      for (const char label : labels) shape.push_back(extent(label));
      result.tensor = steps_.temporary(dtype_, shape);
    }
    const auto spread = [&](const Named& operand) {
      std::string own;
      for (const char label : result.labels)
        if (has(operand.labels, label)) own += label;
      StepOperand view = ordered(operand, own).tensor;
      for (size_t i = 0; i < result.labels.size(); ++i)
        if (!has(own, result.labels[i])) view = with_axis(std::move(view), static_cast<int32_t>(i));
      return broadcast_to(view, result.tensor.shape);
    };
    const compute_dtype computed = computed_in(dtype_);
    steps_.map({convert_text("x", computed_in(x.tensor.dtype), computed) + " * " +
                convert_text("y", computed_in(y.tensor.dtype), computed)},
               {spread(x), spread(y)}, result.tensor);
    return result;
  }

  using Groups = std::initializer_list<std::string>;
  static std::string joined(Groups groups) {
    std::string all;
    for (const std::string& group : groups) all += group;
    return all;
  }

  // Collapses the axes of each group to one; nothing if their elements are not evenly spaced.
  static std::optional<StepOperand> grouped(StepOperand view, Groups groups) {
    int32_t axis = 0;
    for (const std::string& group : groups) {
      const auto axes = static_cast<int32_t>(group.size());
      const auto one = axes == 0 ? std::optional(with_axis(view, axis)) : collapsed(view, axis, axes);
      if (!one) return std::nullopt;
      view = *one;
      ++axis;
    }
    return view;
  }
  static std::optional<StepOperand> grouped(const Named& x, Groups groups) {
    return grouped(ordered(x, joined(groups)).tensor, groups);
  }

  // The batch, the rows and the columns of a result, if products can be written there as they are.
  static std::optional<StepOperand> as_matrices(const Named& to, Groups groups) {
    const std::optional<StepOperand> view = grouped(to, groups);
    if (!view) return std::nullopt;
    const auto is_even = [&](size_t axis) { return view->strides[axis] == 1 || view->shape[axis] == 1; };
    return is_even(1) || is_even(2) ? view : std::nullopt;
  }

  // Collapses the axes of each group to one.
  StepOperand packed(const Named& x, Groups groups) {
    StepOperand result = ordered(x, joined(groups)).tensor;
    if (result.dtype != dtype_) result = steps_.as_dtype(result, dtype_);
    if (const std::optional<StepOperand> view = grouped(result, groups)) return *view;
    const StepOperand copy = steps_.temporary(dtype_, result.shape);
    steps_.copy(result, copy);
    return *grouped(copy, groups);
  }

  void multiply(const StepOperand& a, const StepOperand& b, const StepOperand& to) {
    const bool are_dots = a.shape[0] > 1 && a.shape[1] == 1 && b.shape[2] == 1;  // many sums of products
    if (!by_reduce_ && !are_dots) {
      Step& step = steps_.add("contraction", {a, b}, to);
      step.attributes.resize(1);
      step.attributes[0].name = "scaled";
      step.attributes[0].integers = {0};
      return;
    }
    const int64_t space[] = {a.shape[0], a.shape[1], b.shape[2], a.shape[2]}, axis = 3;
    const int32_t turned[] = {0, 2, 1};
    steps_.reduce("sum", computed_in(dtype_), {&axis, 1}, {"x * y"},
                  {broadcast_to(with_axis(a, 2), space), broadcast_to(with_axis(permuted(b, turned), 1), space)}, {"x"},
                  with_axis(to, 3));
  }

  Steps& steps_;
  const std::vector<int64_t> extents_;
  const compute_dtype dtype_;
  const bool by_reduce_;
};

std::vector<int64_t> output_shape(const Equation& equation, const std::vector<int64_t>& extents) {
  std::vector<int64_t> shape;
  for (const char label : equation.output) shape.push_back(extents[static_cast<size_t>(label)]);
  return shape;
}

bool is_empty(const OpCall& call) {
  return std::any_of(call.inputs.begin(), call.inputs.end(),
                     [](const OperandDesc& x) { return !has_elements(x.extents()); });
}

// Whether one contraction makes the result, which is rounded once. Otherwise sums and products come one after the other
// and are not rounded to a half type in between.
bool is_one_product(const Equation& equation) {
  if (equation.inputs.size() != 2) return false;
  for (size_t i = 0; i < 2; ++i) {
    for (const char label : equation.inputs[i]) {
      if (!has(equation.output, label) && !has(equation.inputs[1 - i], label)) return false;
    }
  }
  return true;
}

std::optional<Lowering> lower_equation(const OpCall& call, const LoweringTarget& target, int32_t alternative,
                                       const Equation& equation) {
  if (alternative > 1 || (alternative > 0 && (is_empty(call) || call.inputs.size() == 1))) return std::nullopt;
  Steps steps(call, target);
  const StepOperand y = steps.output();
  if (is_empty(call)) {
    steps.fill(y, {});
    return steps.take();
  }
  const compute_dtype dtype = is_one_product(equation) ? y.dtype : computed_in(y.dtype);
  Products products(steps, read_extents(call, equation), dtype, alternative == 1);
  std::vector<Named> operands;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    operands.push_back(products.diagonal({steps.input(static_cast<int32_t>(i)), equation.inputs[i]}));
  }
  const auto wanted_after = [&](size_t i) {
    std::string labels = equation.output;
    for (size_t j = i + 1; j < operands.size(); ++j) labels += operands[j].labels;
    return labels;
  };
  const Named wanted{y, equation.output};
  Named result = operands[0];
  for (size_t i = 1; i < operands.size(); ++i) {
    const std::string later = wanted_after(i);
    const Named x = products.summed(result, later + operands[i].labels),
                z = products.summed(operands[i], later + result.labels);
    result = products.product(x, z, later, i + 1 == operands.size() ? &wanted : nullptr);
  }
  if (operands.size() == 1) result = products.summed(result, equation.output, &wanted);
  if (result.tensor.kind != ValueKind::kOutput) steps.copy(Products::ordered(result, equation.output).tensor, y);
  return steps.take();
}

// ---- einsum ---------------------------------------------------------------------------------------------------------

std::vector<OutputDesc> infer_einsum(const OpCall& call) {
  const compute_dtype dtype = promote_inputs(call, DtypeClass::kNumeric);
  const Equation equation = read_equation(call);
  return {{dtype, output_shape(equation, read_extents(call, equation))}};
}

std::optional<Lowering> lower_einsum(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  return lower_equation(call, target, alternative, read_equation(call));
}

// ---- tensordot ------------------------------------------------------------------------------------------------------

std::vector<int32_t> axes_of(const OpCall& call, const char* name, int32_t input) {
  const std::span<const int64_t> given = call.attributes.int64_list(attribute_index(call, name));
  std::vector<int32_t> axes;
  for (const int64_t axis : given)
    axes.push_back(normalize_axis(call.schema.name, axis, call.inputs[static_cast<size_t>(input)].rank, name));
  for (size_t i = 0; i < axes.size(); ++i) {
    if (std::find(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(i), axes[i]) !=
        axes.begin() + static_cast<std::ptrdiff_t>(i))
      refuse_attribute(call, name, std::string(name) + " names axis " + std::to_string(axes[i]) + " twice");
  }
  return axes;
}

Equation tensordot_equation(const OpCall& call) {
  const std::vector<int32_t> axes[] = {axes_of(call, "axes_a", 0), axes_of(call, "axes_b", 1)};
  if (axes[0].size() != axes[1].size()) {
    refuse_attribute(
        call, "axes_b",
        "axes_a has " + std::to_string(axes[0].size()) + " axes and axes_b " + std::to_string(axes[1].size()));
  }
  Equation equation;
  char next = 'a';
  equation.inputs.assign(2, "");
  for (size_t i = 0; i < 2; ++i) equation.inputs[i].assign(static_cast<size_t>(call.inputs[i].rank), ' ');
  for (size_t i = 0; i < axes[0].size(); ++i) {
    const int64_t a = call.inputs[0].shape[axes[0][i]], b = call.inputs[1].shape[axes[1][i]];
    if (a != b) {
      refuse(call,
             "axis " + std::to_string(axes[0][i]) + " of a has extent " + std::to_string(a) + ", but axis " +
                 std::to_string(axes[1][i]) + " of b has " + std::to_string(b),
             1);
    }
    equation.inputs[0][static_cast<size_t>(axes[0][i])] = equation.inputs[1][static_cast<size_t>(axes[1][i])] = next++;
  }
  for (std::string& labels : equation.inputs) {
    for (char& label : labels) {
      if (label != ' ') continue;
      label = next++;
      equation.output += label;
    }
  }
  if (equation.output.size() > COMPUTE_MAX_RANK)
    refuse(call, "the result would have " + std::to_string(equation.output.size()) + " axes", 0);
  return equation;
}

std::vector<OutputDesc> infer_tensordot(const OpCall& call) {
  const compute_dtype dtype = promote_inputs(call, DtypeClass::kNumeric);
  const Equation equation = tensordot_equation(call);
  return {{dtype, output_shape(equation, read_extents(call, equation))}};
}

std::optional<Lowering> lower_tensordot(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  return lower_equation(call, target, alternative, tensordot_equation(call));
}

// ---- vecdot ---------------------------------------------------------------------------------------------------------

// The other axes broadcast: they are named from the last on.
std::vector<OutputDesc> infer_vecdot(const OpCall& call) {
  const compute_dtype dtype = promote_inputs(call, DtypeClass::kNumeric);
  std::vector<std::vector<int64_t>> others;
  for (int32_t i = 0; i < 2; ++i) {
    const std::span<const int64_t> shape = call.inputs[static_cast<size_t>(i)].extents();
    const int32_t axis = axis_attribute(call, static_cast<int32_t>(shape.size()));
    others.emplace_back(shape.begin(), shape.end());
    others.back().erase(others.back().begin() + axis);
  }
  const auto extent = [&](size_t i) { return call.inputs[i].shape[axis_attribute(call, call.inputs[i].rank)]; };
  if (extent(0) != extent(1)) {
    refuse(call,
           "shapes " + shape_text(call.inputs[0].extents()) + " and " + shape_text(call.inputs[1].extents()) +
               " differ along the axis",
           1);
  }
  std::vector<OperandDesc> descs;
  std::vector<std::vector<int64_t>> strides;
  for (size_t i = 0; i < 2; ++i) {
    strides.push_back(row_major_strides(others[i]));
    descs.push_back(
        {call.inputs[i].dtype, static_cast<int32_t>(others[i].size()), others[i].data(), strides[i].data()});
  }
  return {{dtype, broadcast_shapes(call.schema.name, descs)}};
}

std::optional<Lowering> lower_vecdot(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 0) return std::nullopt;
  Steps steps(call, target);
  const StepOperand y = steps.output();
  if (is_empty(call)) {
    steps.fill(y, {});
    return steps.take();
  }
  std::vector<int64_t> space = y.shape;
  std::vector<StepOperand> operands;
  for (int32_t i = 0; i < 2; ++i) {
    StepOperand x = steps.input(i);
    const auto axis = static_cast<size_t>(axis_attribute(call, static_cast<int32_t>(x.shape.size())));
    const int64_t extent = x.shape[axis], stride = x.strides[axis];
    x = without_axis(x, static_cast<int32_t>(axis));
    x.shape.push_back(extent);
    x.strides.push_back(stride);
    if (i == 0) space.push_back(extent);
    operands.push_back(broadcast_to(x, space));
  }
  const auto last = static_cast<int64_t>(y.shape.size());
  const compute_dtype accumulator = computed_in(y.dtype);
  const auto value = [&](const char* name, size_t i) {
    return convert_text(name, computed_in(operands[i].dtype), accumulator);
  };
  const std::string a = value("x", 0), b = value("y", 1);
  steps.reduce("sum", accumulator, {&last, 1}, {is_complex(y.dtype) ? "conj(" + a + ") * " + b : a + " * " + b},
               operands, {"x"}, with_axis(y, static_cast<int32_t>(last)));
  return steps.take();
}

}  // namespace

const OpRules einsum_1_rules{infer_einsum, lower_einsum};
const OpRules tensordot_1_rules{infer_tensordot, lower_tensordot};
const OpRules vecdot_1_rules{infer_vecdot, lower_vecdot};

}  // namespace compute
