// SPDX-License-Identifier: Apache-2.0
// Ops of ONNX that combine elements along axes.
#include <algorithm>
#include <string>

#include "../op_table.hpp"

namespace onnxruntime_compute {
namespace {

void run_reduce(Call& c) {
  const std::string& type = c.node.type;
  Value x = c.in(0);
  const DType dtype = x.dtype;
  std::vector<int64_t> axes = c.integers("axes", 1);
  if (axes.empty()) {
    if (c.node.integer("noop_with_empty_axes", 0) != 0) {
      if (type == "ReduceL1" || type == "ReduceL2") x = c.t.map("abs($0)", {x}, dtype);
      if (type == "ReduceSumSquare") x = c.t.map("$0 * $0", {x}, dtype);
      if (type == "ReduceLogSum") x = c.t.map("log($0)", {x}, dtype);
      return c.out(0, x);
    }
    for (int64_t i = 0; i < x.rank(); ++i) axes.push_back(i);
  }
  for (int64_t& axis : axes) axis = Call::axis_of(axis, x.rank());
  const int64_t keepdims = c.node.integer("keepdims", 1);
  std::vector<Attribute> attributes{Attribute("axes", axes), Attribute("keepdims", keepdims)};
  if (x.rank() == 0) {  // nothing to combine, but what is done before and behind it
    attributes[1] = Attribute("keepdims", int64_t{0});
  }
  const auto sum = [&](const Value& of) {
    std::vector<Attribute> given = attributes;
    if (!is_real(dtype)) given.emplace_back("dtype", dtype);
    return c.t.op("sum", {of}, given);
  };
  Value y;
  if (type == "ReduceSum") {
    y = sum(x);
  } else if (type == "ReduceMean") {
    y = c.t.op("mean", {x}, attributes);
  } else if (type == "ReduceProd") {
    std::vector<Attribute> given = attributes;
    if (!is_real(dtype)) given.emplace_back("dtype", dtype);
    y = c.t.op("prod", {x}, given);
  } else if (type == "ReduceMax" || type == "ReduceMin") {
    const bool is_greatest = type == "ReduceMax";
    int64_t count = 1;
    for (const int64_t axis : axes) count *= x.shape[static_cast<size_t>(axis)];
    if (dtype == compute::bool_) {
      y = c.t.op(is_greatest ? "any" : "all", {x}, attributes);
    } else if (count == 0) {  // the least number, or the greatest
      Shape shape;
      for (int64_t i = 0; i < x.rank(); ++i) {
        const bool goes = std::find(axes.begin(), axes.end(), i) != axes.end();
        if (!goes || keepdims != 0) shape.push_back(goes ? 1 : x.shape[static_cast<size_t>(i)]);
      }
      y = c.t.fill(is_greatest ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity(),
                   dtype, shape);
    } else {
      y = c.t.op(is_greatest ? "max" : "min", {x}, attributes);
    }
  } else if (type == "ReduceL1") {
    y = sum(c.t.map("abs($0)", {x}, dtype));
  } else if (type == "ReduceL2") {
    y = c.t.map("sqrt($0)", {sum(c.t.map("$0 * $0", {x}, dtype))}, dtype);
  } else if (type == "ReduceSumSquare") {
    y = sum(c.t.map("$0 * $0", {x}, dtype));
  } else if (type == "ReduceLogSum") {
    y = c.t.map("log($0)", {sum(x)}, dtype);
  } else {
    y = c.t.op("logsumexp", {x}, attributes);
  }
  c.out(0, y);
}

std::string refuse_reduce(const Claim& claim) {
  const std::string& type = claim.node.type;
  const DType dtype = claim.dtype(0);
  const bool takes_integers = type == "ReduceSum" || type == "ReduceProd" || type == "ReduceMax" ||
                              type == "ReduceMin" || type == "ReduceL1" || type == "ReduceSumSquare";
  if (dtype == compute::bool_) return type == "ReduceMax" || type == "ReduceMin" ? "" : "the dtype bool";
  return is_real(dtype) || takes_integers ? "" : "the dtype " + std::string(dtype.name());
}

void run_arg(Call& c) {
  Value x = c.in(0);
  const int64_t axis = Call::axis_of(c.node.integer("axis", 0), x.rank());
  const int64_t extent = x.shape.at(static_cast<size_t>(axis));
  const bool takes_last = c.node.integer("select_last_index", 0) != 0;
  if (takes_last) x = c.t.slice_axis(x, axis, extent - 1, compute::Slice().stop, -1);
  Value y = c.t.op(c.node.type == "ArgMax" ? "argmax" : "argmin", {x},
                   {Attribute("axis", axis), Attribute("keepdims", c.node.integer("keepdims", 1))});
  if (takes_last) y = c.t.map(std::to_string(extent - 1) + " - $0", {y}, compute::int64);
  c.out(0, y);
}

void run_cumulative(Call& c) {
  const Value& x = c.in(0);
  std::vector<Attribute> attributes{Attribute("axis", Call::axis_of(c.t.to_integers(c.in(1)).at(0), x.rank())),
                                    Attribute("exclusive", c.node.integer("exclusive", 0)),
                                    Attribute("reverse", c.node.integer("reverse", 0))};
  if (!is_real(x.dtype)) attributes.emplace_back("dtype", x.dtype);
  c.out(0, c.t.op(c.node.type == "CumSum" ? "cumulative_sum" : "cumulative_prod", {x}, attributes));
}

// Before opset 13 the axes from `axis` on counted as one.
void run_softmax(Call& c) {
  Value x = c.in(0);
  const Shape shape = x.shape;
  const bool flattens = c.node.version < 13;
  int64_t axis = Call::axis_of(c.node.integer("axis", flattens ? 1 : -1), x.rank());
  if (flattens) {
    int64_t rows = 1, columns = 1;
    for (size_t i = 0; i < shape.size(); ++i) (static_cast<int64_t>(i) < axis ? rows : columns) *= shape[i];
    x = c.t.reshape(x, {rows, columns});
    axis = 1;
  }
  if (c.node.type == "Hardmax") {
    const Value positions = c.t.op("argmax", {x}, {Attribute("axis", axis)});
    const Value y = c.t.op(
        "one_hot", {positions},
        {Attribute("depth", x.shape[static_cast<size_t>(axis)]), Attribute("axis", axis), Attribute("dtype", x.dtype)});
    return c.out(0, c.t.reshape(y, shape));
  }
  if (x.size() == 0) return c.out(0, c.t.reshape(x, shape));
  const Value y = c.t.op(c.node.type == "Softmax" ? "softmax" : "log_softmax", {x}, {Attribute("axis", axis)});
  c.out(0, c.t.reshape(y, shape));
}

// With a third input, which is a bias.
void run_matmul(Call& c) {
  c.out(0, c.has(2) ? c.t.op("affine", {c.t.settle(c.in(0)), c.in(1), c.in(2)}) : c.t.op("matmul", {c.in(0), c.in(1)}));
}

// A zero point of a matrix: of all of it, or of its rows or columns.
Value zero_point(Call& c, size_t input, bool of_rows) {
  const Value zero = c.t.cast(c.in(input), compute::int32);
  if (zero.rank() != 1 || zero.size() == 1) return zero.size() == 1 ? c.t.reshape(zero, {}) : zero;
  return of_rows ? c.t.reshape(zero, {zero.size(), 1}) : zero;
}

void run_matmul_integer(Call& c) {
  Value a = c.t.cast(c.in(0), compute::int32), b = c.t.cast(c.in(1), compute::int32);
  if (c.has(2)) a = c.t.map("$0 - $1", {a, zero_point(c, 2, true)}, compute::int32);
  if (c.has(3)) b = c.t.map("$0 - $1", {b, zero_point(c, 3, false)}, compute::int32);
  c.out(0, c.t.op("matmul", {a, b}));
}

// Integers a - zero point times integers b - zero point, scaled, rounded and cut to the range of the result's.
void run_matmul_quantized(Call& c) {
  const auto centred = [&](size_t input, bool of_rows) {
    const Value x = c.t.cast(c.in(input), compute::int32);
    return c.has(input + 2) ? c.t.settle(c.t.map("$0 - $1", {x, zero_point(c, input + 2, of_rows)}, compute::int32))
                            : x;
  };
  const auto scale = [&](size_t input, bool of_rows) {
    const Value x = c.t.cast(c.in(input), compute::float32);
    if (x.size() == 1) return c.t.reshape(x, {});
    return x.rank() == 1 && of_rows ? c.t.reshape(x, {x.size(), 1}) : x;
  };
  const Value sums = c.t.op("matmul", {centred(0, true), centred(3, false)});
  const DType dtype = c.in(7).dtype;
  const Value factor = c.t.map("$0 * $1 / $2", {scale(1, true), scale(4, false), scale(6, true)}, compute::float32);
  const Value zero = c.t.cast(zero_point(c, 7, true), compute::float32);
  const std::string range = dtype == compute::int8 ? "-128.0), 127.0" : "0.0), 255.0";
  c.out(0, c.t.map("convert(min(max(round(convert($0, float32) * $1) + $2, " + range + "), " +
                       std::string(dtype.name()) + ")",
                   {sums, c.t.settle(factor), zero}, dtype));
}

std::string refuse_matmul_quantized(const Claim& claim) {
  const DType dtype = claim.dtype(7);
  return dtype == compute::int8 || dtype == compute::uint8 ? "" : "the dtype " + std::string(dtype.name());
}

void run_gemm(Call& c) {
  const double alpha = c.node.real("alpha", 1), beta = c.node.real("beta", 1);
  const bool swaps_a = c.node.integer("transA", 0) != 0, swaps_b = c.node.integer("transB", 0) != 0;
  const Value a = swaps_a ? c.t.permute(c.in(0), {1, 0}) : c.t.settle(c.in(0));
  const DType dtype = a.dtype;
  const bool has_bias = c.has(2) && beta != 0;
  if (is_real(dtype) && alpha == 1 && beta == 1 && has_bias && c.in(2).is_constant()) {
    const int64_t n = c.in(1).shape.at(swaps_b ? 0 : 1);
    if (c.in(2).size() == n && (c.in(2).rank() == 1 || (c.in(2).rank() == 2 && c.in(2).shape[0] == 1))) {
      return c.out(0, c.t.op("affine", {a, c.in(1), c.t.reshape(c.in(2), {n})},
                             {Attribute("transpose_weight", int64_t{swaps_b ? 1 : 0})}));
    }
  }
  const Value b = swaps_b ? c.t.permute(c.in(1), {1, 0}) : c.in(1);
  Value y = c.t.op("matmul", {a, b});
  const auto times = [&](const Value& value, double factor) {
    return factor == 1 ? value : c.t.map("$0 * $1", {value, Tracer::number(factor, dtype)}, dtype);
  };
  y = times(y, alpha);
  if (has_bias) y = c.t.map("$0 + $1", {y, times(c.in(2), beta)}, dtype);
  c.out(0, y);
}

std::string refuse_gemm(const Claim& claim) {
  const bool is_whole = claim.node.real("alpha", 1) == 1 && claim.node.real("beta", 1) == 1;
  return is_real(claim.dtype(0)) || is_whole ? "" : "factors with integers";
}

void run_einsum(Call& c) {
  std::string equation;
  for (const char letter : c.node.text("equation")) {
    if (letter != ' ') equation += letter;
  }
  c.out(0, c.t.op("einsum", c.all(), {Attribute("equation", equation)}));
}

void run_det(Call& c) { c.out(0, c.t.op("det", {c.in(0)})); }

}  // namespace

void add_reductions(std::vector<OpEntry>& table) {
  for (const char* const name : {"ReduceSum", "ReduceMean", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceL1",
                                 "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"}) {
    table.push_back({name, 1, kNewest, kAny, 0b10, refuse_reduce, run_reduce});
  }
  table.push_back({"ArgMax", 1, kNewest, kNumbers, 0, nullptr, run_arg});
  table.push_back({"ArgMin", 1, kNewest, kNumbers, 0, nullptr, run_arg});
  table.push_back({"CumSum", 11, kNewest, kNumbers, 0b10, nullptr, run_cumulative});
  table.push_back({"CumProd", 26, kNewest, kNumbers, 0b10, nullptr, run_cumulative});
  table.push_back({"Softmax", 1, kNewest, kReal, 0, nullptr, run_softmax});
  table.push_back({"LogSoftmax", 1, kNewest, kReal, 0, nullptr, run_softmax});
  table.push_back({"Hardmax", 1, kNewest, kReal, 0, nullptr, run_softmax});
  table.push_back({"MatMul", 1, kNewest, kNumbers, 0, nullptr, run_matmul});
  table.push_back({"MatMulInteger", 10, kNewest, kIntegers, 0, nullptr, run_matmul_integer});
  table.push_back({"QLinearMatMul", 10, kNewest, kIntegers, 0, refuse_matmul_quantized, run_matmul_quantized});
  table.push_back({"Gemm", 7, kNewest, kNumbers, 0, refuse_gemm, run_gemm});
  table.push_back({"Einsum", 12, kNewest, kNumbers, 0, nullptr, run_einsum});
  table.push_back({"Det", 11, kNewest, kReal, 0, nullptr, run_det});
}

}  // namespace onnxruntime_compute
