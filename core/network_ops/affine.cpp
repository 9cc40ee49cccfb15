// SPDX-License-Identifier: Apache-2.0
// affine and gemm: matrix products with addends and an activation, which the product's step applies itself where it
// can.
#include <cctype>

#include "core/network_ops/product_steps.hpp"
#include "core/ops/rules.hpp"
#include "core/ops/steps.hpp"
#include "core/text/printable.hpp"

namespace compute {

namespace {

// The elementwise op whose expression is the activation; NULL for none.
const OpSchema* read_activation(const OpCall& call) {
  const int32_t index = attribute_index(call, "activation");
  if (!call.attributes.has(index)) return nullptr;
  const std::string_view name = call.attributes.string(index);
  if (name == "none") return nullptr;
  for (const OpId id :
       {OpId::k_relu_1, OpId::k_gelu_1, OpId::k_gelu_tanh_1, OpId::k_silu_1, OpId::k_sigmoid_1, OpId::k_tanh_1}) {
    if (op_schema(id).name == name) return &op_schema(id);
  }
  refuse_attribute(
      call, "activation",
      "activation is " + in_quotes(name) + ", not one of none, relu, gelu, gelu_tanh, silu, sigmoid, tanh");
}

std::vector<OutputDesc> infer_affine(const OpCall& call) {
  require_class(call, 0, DtypeClass::kFloat);
  const OperandDesc &x = call.inputs[0], &weight = call.inputs[1];
  if (x.rank == 0) refuse(call, "x has rank 0; expected features along the last axis", 0);
  if (weight.rank != 2) refuse(call, "weight has shape " + shape_text(weight.extents()) + "; expected two axes", 1);
  const bool transposed = flag_attribute(call, "transpose_weight");
  const int64_t k = x.shape[x.rank - 1], n = weight.shape[transposed ? 0 : 1];
  const int64_t expected[] = {transposed ? n : k, transposed ? k : n};
  require_tensor(call, 1, x.dtype, expected);
  if (call.inputs.size() > 2 && call.inputs[2].dtype != COMPUTE_DTYPE_NONE) require_tensor(call, 2, x.dtype, {&n, 1});
  read_activation(call);
  std::vector<int64_t> shape(x.extents().begin(), x.extents().end());
  shape.back() = n;
  return {{x.dtype, std::move(shape)}};
}

// The operands as matrices, of which there is one if the leading axes of x and of the result can be seen as one.
struct Product {
  StepOperand x, weight, bias, y;  // […, m, k], […, k, n], […, m, n] or absent, […, m, n]
};

Product read_product(const OpCall& call, Steps& steps) {
  Product product{steps.input(0), steps.input(1), steps.input(2), steps.output()};
  StepOperand &x = product.x, &weight = product.weight, &y = product.y;
  collapse_rows(x, y);
  if (flag_attribute(call, "transpose_weight")) {
    std::swap(weight.shape[0], weight.shape[1]);
    std::swap(weight.strides[0], weight.strides[1]);
  }
  std::vector<int64_t> shape(y.shape.begin(), y.shape.end() - 2);
  shape.insert(shape.end(), weight.shape.begin(), weight.shape.end());
  weight = broadcast_to(weight, shape);
  if (!product.bias.is_absent()) product.bias = broadcast_to(product.bias, y.shape);
  return product;
}

// The activation of the value `sum`.
std::string applied(const OpSchema* activation, const std::string& sum) {
  if (activation == nullptr) return sum;
  std::string text = "h = " + sum + "; ";
  const auto is_part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  const std::string& row = activation->expression_text;
  for (size_t i = 0; i < row.size(); ++i) {
    const bool is_name = (i == 0 || !is_part(row[i - 1])) && (i + 1 == row.size() || !is_part(row[i + 1]));
    text += is_name && row[i] == 'x' ? 'h' : row[i];
  }
  return text;
}

// Alternative 0: one step; then, with a bias or an activation, the product and a map: of halves first with a float32
// result alone, then with float32 operands too; last, sums of products.
std::optional<Lowering> lower_affine(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  Steps steps(call, target);
  const OpSchema* const activation = read_activation(call);
  const Product product = read_product(call, steps);
  const StepOperand &x = product.x, &bias = product.bias, &y = product.y;
  const compute_dtype computed = computed_in(y.dtype);
  const bool is_plain = activation == nullptr && bias.is_absent();
  if (x.shape.back() == 0) {
    if (alternative > 0) return std::nullopt;
    const ScalarTerm zero{{ScalarSource::kValue, 0, computed, {}}, {computed, false, true}};
    if (bias.is_absent()) {
      steps.map({applied(activation, "a"), {zero}}, {}, y);
    } else {
      steps.map({applied(activation, convert_text("x", y.dtype, computed))}, {bias}, y);
    }
    return steps.take();
  }
  if (alternative == 0) {
    add_contraction(steps, x, product.weight, bias, y);
    if (activation != nullptr) steps.epilogue({activation->expression_text}, computed);
    return steps.take();
  }
  const bool is_half = y.dtype != computed;
  const int32_t last = is_plain ? 1 : is_half ? 3 : 2;
  if (alternative > last) return std::nullopt;
  const StepOperand sum = is_plain || !is_half ? y : steps.temporary(computed, y.shape);
  if (alternative == last) {
    add_sums(steps, x, product.weight, sum);
  } else if (alternative == 1) {
    add_contraction(steps, x, product.weight, {}, sum);
  } else {
    add_contraction(steps, steps.as_dtype(x, computed), steps.as_dtype(product.weight, computed), {}, sum);
  }
  if (is_plain) return steps.take();
  if (bias.is_absent()) {
    steps.map({applied(activation, "x")}, {sum}, y);
  } else {
    steps.map({applied(activation, "x + " + convert_text("y", y.dtype, computed))}, {sum, bias}, y);
  }
  return steps.take();
}

// ---- gemm -----------------------------------------------------------------------------------------------------------

// Inputs c, a, b, bias.
std::vector<OutputDesc> infer_gemm(const OpCall& call) {
  require_class(call, 0, DtypeClass::kFloat);
  const std::span<const int64_t> c = call.inputs[0].extents();
  for (int32_t i = 0; i < 3; ++i) {
    if (call.inputs[static_cast<size_t>(i)].rank < 2)
      refuse(call,
             call.schema.input_name(i) + " has shape " + shape_text(call.inputs[static_cast<size_t>(i)].extents()) +
                 "; expected two axes or more",
             i);
  }
  const std::span<const int64_t> a = call.inputs[1].extents(), b = call.inputs[2].extents();
  const int64_t m = c[c.size() - 2], n = c.back(), k = a.back();
  const auto check_factor = [&](int32_t index, std::span<const int64_t> shape, int64_t rows, int64_t columns) {
    bool fits = call.inputs[static_cast<size_t>(index)].dtype == call.inputs[0].dtype && shape.size() <= c.size() &&
                shape[shape.size() - 2] == rows && shape.back() == columns;
    for (size_t i = 0; fits && i + 2 < shape.size(); ++i)
      fits = shape[i] == 1 || shape[i] == c[c.size() - shape.size() + i];
    if (fits) return;
    const std::vector<int64_t> matrix = {rows, columns};
    refuse(call,
           call.schema.input_name(index) + " is " + dtype_name(call.inputs[static_cast<size_t>(index)].dtype) +
               " of shape " + shape_text(shape) + "; expected matrices " + shape_text(matrix) + " of " +
               dtype_name(call.inputs[0].dtype) + ", with batch axes that broadcast to those of c, " + shape_text(c),
           index);
  };
  check_factor(1, a, m, k);
  check_factor(2, b, k, n);
  if (call.inputs.size() > 3 && call.inputs[3].dtype != COMPUTE_DTYPE_NONE)
    require_tensor(call, 3, call.inputs[0].dtype, {&n, 1});
  read_activation(call);
  return {{call.inputs[0].dtype, {c.begin(), c.end()}}};
}

// activation(alpha sum + beta c + bias) of the operands x, y, z; without a sum of x and y.
StepExpression scaled_sum(const OpCall& call, const OpSchema* activation, bool has_sum, bool has_bias) {
  const compute_dtype dtype = call.inputs[0].dtype, computed = computed_in(dtype);
  StepExpression result;
  std::string text, beta = "a";
  if (has_sum) {
    result.scalars.push_back(attribute_term(call, "alpha", computed));
    text = "a * x + ";
    beta = "b";
  }
  result.scalars.push_back(attribute_term(call, "beta", computed));
  text += "where(" + beta + " == 0, 0, " + beta + " * " + convert_text(has_sum ? "y" : "x", dtype, computed) + ")";
  if (has_bias) text += " + " + convert_text(has_sum ? "z" : "y", dtype, computed);
  result.text = applied(activation, text);
  return result;
}

// Alternatives as those of affine.
std::optional<Lowering> lower_gemm(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  Steps steps(call, target);
  const OpSchema* const activation = read_activation(call);
  const StepOperand c = steps.input(0), y = steps.output();
  StepOperand a = steps.input(1), b = steps.input(2), bias = steps.input(3);
  const bool has_bias = !bias.is_absent();
  const compute_dtype computed = computed_in(y.dtype);
  if (has_bias) bias = broadcast_to(bias, y.shape);
  const int64_t k = a.shape.back();
  const auto map = [&](const StepOperand* sum) {
    std::vector<StepOperand> inputs = {c};
    if (sum != nullptr) inputs.insert(inputs.begin(), *sum);
    if (has_bias) inputs.push_back(bias);
    steps.map(scaled_sum(call, activation, sum != nullptr, has_bias), std::move(inputs), y);
  };
  if (k == 0) {
    if (alternative > 0) return std::nullopt;
    map(nullptr);
    return steps.take();
  }
  std::vector<int64_t> left(y.shape.begin(), y.shape.end() - 1), right(y.shape.begin(), y.shape.end() - 2);
  left.push_back(k);
  right.insert(right.end(), {k, y.shape.back()});
  a = broadcast_to(a, left);
  b = broadcast_to(b, right);
  if (alternative == 0) {
    std::vector<StepOperand> inputs = {a, b, c};
    if (has_bias) inputs.push_back(bias);
    Step& step = steps.add("contraction", std::move(inputs), y);
    step.attributes.resize(1);
    step.attributes[0].name = "scaled";
    step.attributes[0].integers = {1};
    for (const char* name : {"alpha", "beta"}) step.scalars.push_back(attribute_term(call, name, computed).source);
    if (activation != nullptr) steps.epilogue({activation->expression_text}, computed);
    return steps.take();
  }
  const bool is_half = y.dtype != computed;
  const int32_t last = is_half ? 3 : 2;
  if (alternative > last) return std::nullopt;
  const StepOperand sum = steps.temporary(computed, y.shape);
  if (alternative == last) {
    add_sums(steps, a, b, sum);
  } else if (alternative == 1) {
    add_contraction(steps, a, b, {}, sum);
  } else {
    add_contraction(steps, steps.as_dtype(a, computed), steps.as_dtype(b, computed), {}, sum);
  }
  map(&sum);
  return steps.take();
}

}  // namespace

const OpRules affine_1_rules{infer_affine, lower_affine, true};
const OpRules gemm_1_rules{infer_gemm, lower_gemm, true};

}  // namespace compute
