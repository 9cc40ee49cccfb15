// SPDX-License-Identifier: Apache-2.0
// matmul: the contraction primitive, or a reduction of products without a temporary. float8 is converted to a dtype
// that holds all its values.
#include "core/ops/rules.hpp"
#include "core/ops/steps.hpp"

namespace compute {

namespace {

// The call as [batch…, m, k] times [batch…, k, n]: the shapes of its parts.
struct Product {
  std::vector<int64_t> batch;
  int64_t m, n, k;
};

Product read_product(const OpCall& call) {
  for (int32_t i = 0; i < 2; ++i) {
    if (call.inputs[static_cast<size_t>(i)].rank == 0) {
      refuse(call, call.schema.input_name(i) + " has rank 0; use multiply for scalars", i);
    }
  }
  const std::span<const int64_t> a = call.inputs[0].extents(), b = call.inputs[1].extents();
  const auto shapes = [&] { return "shapes " + shape_text(a) + " and " + shape_text(b); };
  Product product;
  product.k = a.back();
  product.m = a.size() > 1 ? a[a.size() - 2] : 1;
  product.n = b.size() > 1 ? b.back() : 1;
  const int64_t rows = b.size() > 1 ? b[b.size() - 2] : b[0];
  if (rows != product.k) {
    refuse(call,
           shapes() + " cannot be multiplied: " + std::to_string(product.k) + " columns, but " + std::to_string(rows) +
               " rows",
           1);
  }
  const size_t batch_a = a.size() > 2 ? a.size() - 2 : 0, batch_b = b.size() > 2 ? b.size() - 2 : 0;
  product.batch.assign(std::max(batch_a, batch_b), 1);
  for (const auto& [extents, count] : {std::pair(a, batch_a), std::pair(b, batch_b)}) {
    for (size_t i = 0; i < count; ++i) {
      int64_t& extent = product.batch[product.batch.size() - count + i];
      if (extent != 1 && extents[i] != 1 && extent != extents[i])
        refuse(call, shapes() + " do not broadcast in their batch axes", 1);
      if (extent == 1) extent = extents[i];
    }
  }
  return product;
}

bool is_of_float8(const OpCall& call) { return is_float8(call.inputs[0].dtype) && is_float8(call.inputs[1].dtype); }

// float32, unless the program gives a result of another dtype.
compute_dtype result_of_float8(const OpCall& call) {
  const compute_dtype wanted = call.wanted.empty() ? COMPUTE_DTYPE_NONE : call.wanted[0];
  return wanted == COMPUTE_DTYPE_FLOAT16 || wanted == COMPUTE_DTYPE_BFLOAT16 ? wanted : COMPUTE_DTYPE_FLOAT32;
}

std::vector<OutputDesc> infer_matmul(const OpCall& call) {
  const compute_dtype dtype = is_of_float8(call) ? result_of_float8(call) : promote_inputs(call, DtypeClass::kNumeric);
  const Product product = read_product(call);
  std::vector<int64_t> shape = product.batch;
  if (call.inputs[0].rank > 1) shape.push_back(product.m);
  if (call.inputs[1].rank > 1) shape.push_back(product.n);
  return {{dtype, std::move(shape)}};
}

std::vector<int64_t> joined(std::vector<int64_t> shape, std::initializer_list<int64_t> more) {
  shape.insert(shape.end(), more);
  return shape;
}

// Of the contraction that an alternative makes. Units for matrices multiply float16 and bfloat16.
struct ProductDtypes {
  compute_dtype factors, result;
};

ProductDtypes product_dtypes(const OpCall& call, compute_dtype output, int32_t alternative) {
  if (!is_of_float8(call)) return {output, output};
  if (alternative > 0) return {COMPUTE_DTYPE_FLOAT32, COMPUTE_DTYPE_FLOAT32};
  return {output == COMPUTE_DTYPE_FLOAT16 ? output : compute_dtype{COMPUTE_DTYPE_BFLOAT16}, output};
}

// Matrices of a batch that continue each other, times one b, are one longer matrix.
void join_rows(StepOperand& a, StepOperand& b, StepOperand& c) {
  const auto batch = static_cast<int32_t>(c.shape.size()) - 2;
  for (size_t axis = 0; axis < static_cast<size_t>(batch); ++axis)
    if (c.shape[axis] != 1 && b.strides[axis] != 0) return;
  const std::optional<StepOperand> rows_of_a = collapsed(a, 0, batch + 1), rows_of_c = collapsed(c, 0, batch + 1);
  if (batch == 0 || !rows_of_a || !rows_of_c) return;
  a = *rows_of_a;
  c = *rows_of_c;
  b.shape.erase(b.shape.begin(), b.shape.end() - 2);
  b.strides.erase(b.strides.begin(), b.strides.end() - 2);
}

std::optional<Lowering> lower_matmul(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  Steps steps(call, target);
  const Product product = read_product(call);
  const int32_t contractions = is_of_float8(call) ? 2 : 1;
  const auto batch = static_cast<int32_t>(product.batch.size());
  StepOperand output = steps.output();
  if (product.k == 0) {
    if (alternative > 0) return std::nullopt;
    steps.fill(output, {});
    return steps.take();
  }
  if (alternative > contractions) return std::nullopt;
  if (call.inputs[0].rank == 1) output = with_axis(std::move(output), batch);
  if (call.inputs[1].rank == 1) output = with_axis(std::move(output), batch + 1);
  StepOperand a = steps.input(0), b = steps.input(1);
  if (call.inputs[0].rank == 1) a = with_axis(std::move(a), 0);
  if (call.inputs[1].rank == 1) b = with_axis(std::move(b), 1);

  if (alternative < contractions) {
    const ProductDtypes dtypes = product_dtypes(call, output.dtype, alternative);
    a = broadcast_to(steps.as_dtype(a, dtypes.factors), joined(product.batch, {product.m, product.k}));
    b = broadcast_to(steps.as_dtype(b, dtypes.factors), joined(product.batch, {product.k, product.n}));
    join_rows(a, b, output);
    const StepOperand result = output.dtype == dtypes.result ? output : steps.temporary(dtypes.result, output.shape);
    Step& step = steps.add("contraction", {std::move(a), std::move(b)}, result);
    step.attributes.resize(1);
    step.attributes[0].name = "scaled";
    step.attributes[0].integers = {0};
    if (output.dtype != dtypes.result) steps.copy(result, std::move(output));
    return steps.take();
  }
  // Index space [batch…, m, n, k], summed over k.
  const std::vector<int64_t> space = joined(product.batch, {product.m, product.n, product.k});
  const auto rank_a = static_cast<int32_t>(a.shape.size()), rank_b = static_cast<int32_t>(b.shape.size());
  a = broadcast_to(with_axis(std::move(a), rank_a - 1), space);
  std::swap(b.shape[b.shape.size() - 2], b.shape[b.shape.size() - 1]);
  std::swap(b.strides[b.strides.size() - 2], b.strides[b.strides.size() - 1]);
  b = broadcast_to(with_axis(std::move(b), rank_b - 2), space);
  const int64_t axis = batch + 2;
  steps.reduce("sum", computed_in(output.dtype), {&axis, 1}, {"x * y"}, {std::move(a), std::move(b)}, {"x"},
               with_axis(std::move(output), batch + 2));
  return steps.take();
}

}  // namespace

const OpRules matmul_1_rules{infer_matmul, lower_matmul};

}  // namespace compute
