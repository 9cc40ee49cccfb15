// SPDX-License-Identifier: Apache-2.0
// Factors and solutions of small matrices, and triangular systems: an item computes a matrix, or a column. On devices
// with many items these are close together in memory, so that neighbours access neighbouring elements.
#include <algorithm>
#include <array>

#include "plugins/common/source/products/ops.hpp"

namespace compute::common {
namespace {

#include "plugins/common/source/products/small_matrices.inc"

constexpr int64_t kMostRows = 32;           // of a matrix that one item factors
constexpr int64_t kMostTriangleRows = 128;  // of a system of which one item solves a column

bool is_triangular(const Op& op) { return op.name() == "triangular_solve"; }

// The last axes but `own`.
std::vector<int64_t> batch_strides(const compute_plugin_tensor& tensor, int32_t own) {
  return {tensor.strides, tensor.strides + tensor.rank - own};
}

void define_functions(KernelBuilder& builder, compute_dtype dtype) {
  builder.globals +=
      fill(kSmallFunctions, {{"type", type_text(dtype).value},
                             {"part", type_text(part_of(dtype)).value},
                             {"is_complex", is_complex(dtype)},
                             {"make", dtype == COMPUTE_DTYPE_COMPLEX128 ? "COMPUTE_C128" : "COMPUTE_C64"}});
}

// How far the elements of a matrix are from its first one, at most.
int64_t reach(const compute_plugin_tensor& tensor) {
  int64_t sum = 0;
  for (int32_t axis = tensor.rank - 2; axis < tensor.rank; ++axis)
    sum += std::abs(tensor.strides[axis]) * (tensor.shape[axis] - 1);
  return sum;
}

BuiltKernels build_triangles(const Op& op, const Dialect& dialect, bool with_text) {
  const compute_plugin_tensor &a = op.input(0), &b = op.input(1), &x = op.output(0);
  const compute_dtype dtype = x.dtype;
  const int32_t size = dtype_size(dtype), rank = x.rank;
  const bool upper = op.integer("upper", 0) != 0, unit = op.integer("unit_diagonal", 0) != 0;
  const auto step_of = [rank](const compute_plugin_tensor& tensor, int32_t axis) {
    return tensor.strides[rank - 2 + axis];
  };
  // The loops go over the batch and the columns.
  std::vector<std::vector<int64_t>> strides = {batch_strides(a, 2), batch_strides(b, 2), batch_strides(x, 2)};
  strides[0].push_back(0);
  strides[1].push_back(step_of(b, 1));
  strides[2].push_back(step_of(x, 1));
  std::vector<int64_t> shape(x.shape, x.shape + rank - 2);
  shape.push_back(x.shape[rank - 1]);
  const LoopNest nest = collapse_operands(shape, strides, 2);
  KernelBuilder builder(dialect, "triangular_solve", with_text);
  builder.is_wide = needs_wide(nest, std::array<int32_t, 3>{size, size, size}, nest.points(),
                               std::array<int64_t, 3>{reach(a), reach(b), reach(x)});
  builder.sign(dtype);
  builder.sign(nest.rank);
  builder.sign(upper);
  builder.sign(unit);
  for (int32_t i = 0; i < 3; ++i) builder.pointer(Pointer::kTensor, i, nest.offsets[static_cast<size_t>(i)] * size);
  const int32_t points = builder.word(nest.points()), n = builder.word(x.shape[rank - 2]),
                from_row = builder.word(step_of(a, 0)), from_column = builder.word(step_of(a, 1)),
                right_row = builder.word(step_of(b, 0)), to_row = builder.word(step_of(x, 0));
  Space space(nest);
  space.add_words(builder, 1);
  for (int32_t i = 0; i < 3; ++i) builder.declare(i, type_text(dtype).storage, i < 2);
  if (with_text) {
    define_functions(builder, dtype);
    const auto word = [](int32_t number) { return KernelBuilder::index_word(number); };
    builder.body = fill(
        kSmallTriangles,
        {{"group", dialect.group_size},
         {"points", word(points)},
         {"coordinates", space.coordinates(builder, "c", "i")},
         {"n", word(n)},
         {"from", space.offset(0, "c")},
         {"to", space.offset(2, "c")},
         {"row", upper ? "n - 1 - at" : "at"},
         {"right", space.offset(1, "c")},
         {"right_row", word(right_row)},
         {"begin", upper ? "r + 1" : "0"},
         {"end", upper ? "n" : "r"},
         {"from_row", word(from_row)},
         {"from_column", word(from_column)},
         {"to_row", word(to_row)},
         {"quotient", unit ? "s" : cat("compute_over(s, t[r * (", word(from_row), " + ", word(from_column), ")])")}});
  }
  BuiltKernels built;
  built.add(builder, divide_up(nest.points(), dialect.group_size));
  return built;
}

}  // namespace

std::optional<Refusal> refuse_small_matrices(const Op& op, const Dialect&) {
  const compute_plugin_tensor& a = op.input(0);
  const auto refused = [&](int32_t reason, const std::string& why) {
    return Refusal{reason, 0, cat(op.name(), ": ", why), ""};
  };
  if (!is_float(a.dtype) && !is_complex(a.dtype)) return refused(COMPUTE_PLUGIN_REFUSE_DTYPE, "not of this dtype");
  if (is_half(a.dtype)) return refused(COMPUTE_PLUGIN_REFUSE_DTYPE, "computed in float32");
  const int64_t rows = a.shape[a.rank - 2], columns = a.shape[a.rank - 1];
  if (is_triangular(op)) {
    if (rows > kMostTriangleRows) return refused(COMPUTE_PLUGIN_REFUSE_SHAPE, "more than 128 rows");
    return std::nullopt;
  }
  const int64_t count = op.name() == "solve" ? op.input(1).shape[op.input(1).rank - 1] : 0;
  if (std::max({rows, columns, count}) > kMostRows)
    return refused(COMPUTE_PLUGIN_REFUSE_SHAPE, "more than 32 rows or columns");
  return std::nullopt;
}

BuiltKernels build_small_matrices(const Op& op, const Dialect& dialect, bool with_text) {
  if (is_triangular(op)) return build_triangles(op, dialect, with_text);
  const std::string_view name = op.name();
  const bool is_cholesky = name == "cholesky", is_lu = name == "lu", is_inverse = name == "inv";
  const bool solves = is_inverse || name == "solve", upper = is_cholesky && op.integer("upper", 0) != 0;
  const compute_plugin_tensor &a = op.input(0), &y = op.output(0);
  const compute_dtype dtype = a.dtype;
  const int32_t size = dtype_size(dtype), inputs = op.input_count();
  const int64_t m = a.shape[a.rank - 2], n = a.shape[a.rank - 1],
                count = !solves      ? 0
                        : is_inverse ? n
                                     : op.input(1).shape[op.input(1).rank - 1];
  // operands: the tensors in order, and the position in the batch
  const std::vector<int64_t> shape(a.shape, a.shape + a.rank - 2);
  std::vector<std::vector<int64_t>> strides;
  std::vector<int32_t> sizes;
  std::vector<int64_t> further;
  for (int32_t i = 0; i < op.tensor_count(); ++i) {
    const bool is_pivots = is_lu && i == 2;
    const compute_plugin_tensor& tensor = op.tensor(i);
    strides.push_back(batch_strides(tensor, is_pivots ? 1 : 2));
    sizes.push_back(dtype_size(tensor.dtype));
    further.push_back(is_pivots ? std::abs(tensor.strides[tensor.rank - 1]) * tensor.shape[tensor.rank - 1]
                                : reach(tensor));
  }
  std::vector<int64_t>& positions = strides.emplace_back(shape.size());
  int64_t matrices = 1;
  for (size_t axis = shape.size(); axis-- > 0; matrices *= shape[axis]) positions[axis] = matrices;
  sizes.push_back(1);
  further.push_back(0);
  const LoopNest nest = collapse_operands(shape, strides, inputs);
  const int64_t elements = m * n + n * count;  // of the workspace, for a matrix
  KernelBuilder builder(dialect, name, with_text);
  builder.is_wide = needs_wide(nest, sizes, nest.points(), further) || elements * nest.points() * size > INT32_MAX / 4;
  builder.sign(dtype);
  builder.sign(nest.rank);
  builder.sign(upper);
  const int32_t tensors = op.tensor_count();
  for (int32_t i = 0; i < tensors; ++i)
    builder.pointer(Pointer::kTensor, i, nest.offsets[static_cast<size_t>(i)] * sizes[static_cast<size_t>(i)]);
  const int32_t work = builder.pointer(Pointer::kWorkspace, 0, 0), fault = builder.pointer(Pointer::kFault, 0, 0);
  const auto row_step = [&](const compute_plugin_tensor& tensor) {
    return tensor.strides[tensor.rank - (upper ? 1 : 2)];
  };
  const auto column_step = [&](const compute_plugin_tensor& tensor) {
    return tensor.strides[tensor.rank - (upper ? 2 : 1)];
  };
  const int32_t points = builder.word(nest.points()), m_word = builder.word(m), n_word = builder.word(n),
                count_word = builder.word(count), from_row = builder.word(row_step(a)),
                from_column = builder.word(column_step(a)), to_row = builder.word(row_step(y)),
                to_column = builder.word(column_step(y)),
                position = builder.word(nest.offsets[static_cast<size_t>(tensors)]),
                elements_word = builder.word(elements),
                pivot_step = builder.word(is_lu ? op.output(1).strides[op.output(1).rank - 1] : 0),
                right_row = builder.word(name == "solve" ? row_step(op.input(1)) : 0),
                right_column = builder.word(name == "solve" ? column_step(op.input(1)) : 0);
  Space space(nest);
  space.add_words(builder, 1);
  for (int32_t i = 0; i < tensors; ++i)
    builder.declare(i, is_lu && i == 2 ? "i64" : type_text(dtype).storage, i < inputs);
  builder.declare(work, type_text(dtype).storage, false);
  if (with_text) {
    define_functions(builder, dtype);
    const auto word = [](int32_t number) { return KernelBuilder::index_word(number); };
    const std::string right = is_inverse ? "compute_make(r == c ? 1 : 0)"
                                         : cat("x1[", name == "solve" ? space.offset(1, "c") : "", " + r * ",
                                               word(right_row), " + c * ", word(right_column), "]");
    const std::string element = "w[(r * n + c) * step]";
    const std::string factor = upper ? cat("compute_conjugate(", element, ")") : element;
    const std::vector<Value> values = {{"group", dialect.group_size},
                                       {"points", word(points)},
                                       {"coordinates", space.coordinates(builder, "c", "i")},
                                       {"m", word(m_word)},
                                       {"n", word(n_word)},
                                       {"step", dialect.is_host ? "1" : word(points)},
                                       {"work", work},
                                       {"first", dialect.is_host ? cat("i * ", word(elements_word)) : "i"},
                                       {"end_of_row", is_cholesky ? "r + 1" : "n"},
                                       {"from", space.offset(0, "c")},
                                       {"from_row", word(from_row)},
                                       {"from_column", word(from_column)},
                                       {"loaded", upper ? "compute_conjugate(x)" : "x"},
                                       {"is_cholesky", is_cholesky},
                                       {"solves", solves},
                                       {"count", word(count_word)},
                                       {"right", right},
                                       {"is_lu", is_lu},
                                       {"pivot", is_lu ? space.offset(2, "c") : ""},
                                       {"pivot_step", word(pivot_step)},
                                       {"result_rows", solves ? "n" : "m"},
                                       {"result_columns", solves ? "count" : "n"},
                                       {"result", solves        ? "b[(r * count + c) * step]"
                                                  : is_cholesky ? cat("c > r ? compute_make(0) : ", factor)
                                                                : element},
                                       {"y", inputs},
                                       {"to", space.offset(inputs, "c")},
                                       {"to_row", word(to_row)},
                                       {"to_column", word(to_column)},
                                       {"fault", fault},
                                       {"position", word(position), " + ", space.offset(tensors, "c")}};
    builder.body = fill(kSmallFactors, [&](std::string_view wanted) -> std::optional<std::string_view> {
      const auto found =
          std::find_if(values.begin(), values.end(), [&](const Value& value) { return value.name == wanted; });
      return found == values.end() ? std::nullopt : std::optional<std::string_view>(found->text);
    });
  }
  BuiltKernels built;
  built.reports_faults = !is_lu;
  built.workspace_bytes = elements * nest.points() * size;
  built.add(builder, divide_up(nest.points(), dialect.group_size));
  return built;
}

}  // namespace compute::common
