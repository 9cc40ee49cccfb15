// SPDX-License-Identifier: Apache-2.0
// Factors and solutions of small matrices, and triangular systems. An item computes a very small matrix, or a column of
// a triangular system; the matrices are interleaved in memory, so that neighbours access neighbouring elements. A group
// computes a larger matrix in its local memory. On processors an item computes each matrix.
#include <algorithm>
#include <array>
#include <bit>

#include "plugins/common/source/products/ops.hpp"

namespace compute::common {
namespace {

#include "plugins/common/source/products/small_matrices.inc"

constexpr int64_t kMostRows = 32;           // of a matrix that one item factors
constexpr int64_t kFewRows = 8;             // up to which an item is faster than a group
constexpr int64_t kMostTriangleRows = 128;  // of a system of which one item, or a group, solves columns
constexpr int64_t kManyColumns = 32 << 10;  // of small systems, so that an item for each is as fast

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

// How a group computes a matrix of `rows` and `columns`, with `elements` in local memory.
struct Team {
  int32_t items = 0;  // 0: the matrix does not fit
  int32_t wide = 0;   // of items, along a row
  int64_t room = 0;   // elements; rounded up, so that matrices of different sizes share kernels

  std::vector<Value> values() const {
    return {{"group", items}, {"wide", wide}, {"high", items / wide}, {"room", room}};
  }
};

Team team_of(const Dialect& dialect, int64_t rows, int64_t columns, int64_t elements, int32_t size) {
  Team team;
  // Other words of the kernels take less than 256 bytes.
  const int64_t most = (std::min<int64_t>(dialect.local_memory_bytes, 48 << 10) - 256) / size;
  if (dialect.is_host || dialect.group_size < 32 || elements > most) return team;
  const int64_t longest = std::max(rows, columns);
  team.items = std::min(dialect.group_size, longest <= 16 ? 32 : longest <= 32 ? 64 : 256);
  team.wide = team.items < 128 ? 8 : 16;
  team.room = std::min(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(elements))), most);
  return team;
}

// The shape of a system with `count` right sides; of a factorization, 0.
struct Sizes {
  int64_t m, n, count;

  explicit Sizes(const Op& op) {
    const compute_plugin_tensor& a = op.input(0);
    m = a.shape[a.rank - 2];
    n = a.shape[a.rank - 1];
    count = op.name() == "inv" ? n : op.name() == "solve" ? op.input(1).shape[op.input(1).rank - 1] : 0;
  }
  int64_t longest() const { return std::max({m, n, count}); }
};

// No items if an item computes each matrix.
Team team_of(const Op& op, const Dialect& dialect) {
  const Sizes sizes(op);
  if (sizes.longest() <= kFewRows) return {};
  const int64_t width = sizes.n + sizes.count;
  return team_of(dialect, sizes.m, width, sizes.m * (width | 1), dtype_size(op.input(0).dtype));
}

// Of qr: the matrix, its columns of q, and the factors of reflections.
Team team_of_reflections(const Op& op, const Dialect& dialect) {
  const compute_plugin_tensor &a = op.input(0), &q = op.output(0);
  const int64_t m = a.shape[a.rank - 2], n = a.shape[a.rank - 1], columns = q.shape[q.rank - 1];
  return team_of(dialect, m, std::max(n, columns), m * (n | 1) + m * (columns | 1) + std::min(m, n),
                 dtype_size(a.dtype));
}

// As `dialect`, with groups of `items`.
Dialect with_groups(const Dialect& dialect, int32_t items) {
  Dialect narrow = dialect;
  narrow.group_size = items;
  return narrow;
}

// Finds names among more values than a template uses.
std::string fill_some(std::string_view text, const std::vector<Value>& values) {
  return fill(text, [&](std::string_view wanted) -> std::optional<std::string_view> {
    const auto found =
        std::find_if(values.begin(), values.end(), [&](const Value& value) { return value.name == wanted; });
    return found == values.end() ? std::nullopt : std::optional<std::string_view>(found->text);
  });
}

// How a group solves columns of a triangular system: `items` of `wide` columns and `own` rows of each; no items if an
// item solves each column.
struct TriangleTeam {
  int32_t items = 0, wide = 1, own = 1, room = 0;
};

TriangleTeam team_of_triangles(const Op& op, const Dialect& dialect) {
  const compute_plugin_tensor& x = op.output(0);
  const int64_t n = x.shape[x.rank - 2], count = x.shape[x.rank - 1];
  int64_t columns = count;
  for (int32_t axis = 0; axis < x.rank - 2; ++axis) columns *= x.shape[axis];
  TriangleTeam team;
  if (n <= kFewRows || (n <= kMostRows && columns >= kManyColumns)) return team;
  if (dialect.is_host || dialect.group_size < 32 || dialect.local_memory_bytes < 32 << 10) return team;
  team.own = dtype_size(x.dtype) == 16 ? 4 : 8;
  team.room = std::max(team.own, static_cast<int32_t>(std::bit_ceil(static_cast<uint64_t>(n))));
  const int32_t high = team.room / team.own;
  team.wide = std::clamp(dialect.group_size / high, 1, count == 1 ? 1 : count <= 8 ? 8 : 32);
  // More items than columns and rows need load a large matrix.
  team.items = std::max(team.wide * high, std::min(dialect.group_size, n <= kMostRows ? 32 : 128));
  return team;
}

BuiltKernels build_triangles(const Op& op, const Dialect& given, bool with_text) {
  const TriangleTeam team = team_of_triangles(op, given);
  const bool by_group = team.items != 0;
  const Dialect dialect = by_group ? with_groups(given, team.items) : given;
  const compute_plugin_tensor &a = op.input(0), &b = op.input(1), &x = op.output(0);
  const compute_dtype dtype = x.dtype;
  const int32_t size = dtype_size(dtype), rank = x.rank;
  const bool upper = op.integer("upper", 0) != 0, unit = op.integer("unit_diagonal", 0) != 0;
  const auto step_of = [rank](const compute_plugin_tensor& tensor, int32_t axis) {
    return tensor.strides[rank - 2 + axis];
  };
  // The loops go over the batch, and over the columns if each has an item.
  std::vector<std::vector<int64_t>> strides = {batch_strides(a, 2), batch_strides(b, 2), batch_strides(x, 2)};
  std::vector<int64_t> shape(x.shape, x.shape + rank - 2);
  if (!by_group) {
    strides[0].push_back(0);
    strides[1].push_back(step_of(b, 1));
    strides[2].push_back(step_of(x, 1));
    shape.push_back(x.shape[rank - 1]);
  }
  const LoopNest nest = collapse_operands(shape, strides, 2);
  const int64_t columns = x.shape[rank - 1], tiles = by_group ? divide_up(columns, team.wide) : 1;
  KernelBuilder builder(dialect, "triangular_solve", with_text);
  builder.is_wide = needs_wide(nest, std::array<int32_t, 3>{size, size, size}, nest.points() * tiles,
                               std::array<int64_t, 3>{reach(a), reach(b), reach(x)});
  builder.sign(dtype);
  builder.sign(nest.rank);
  builder.sign(upper);
  builder.sign(unit);
  builder.sign(team.items);
  builder.sign(team.wide);
  builder.sign(team.room);
  for (int32_t i = 0; i < 3; ++i) builder.pointer(Pointer::kTensor, i, nest.offsets[static_cast<size_t>(i)] * size);
  const int32_t points = builder.word(nest.points()), n = builder.word(x.shape[rank - 2]),
                from_row = builder.word(step_of(a, 0)), from_column = builder.word(step_of(a, 1)),
                right_row = builder.word(step_of(b, 0)), right_column = builder.word(step_of(b, 1)),
                to_row = builder.word(step_of(x, 0)), to_column = builder.word(step_of(x, 1)),
                columns_word = builder.word(columns), tiles_word = builder.word(tiles);
  Space space(nest);
  space.add_words(builder, 1);
  for (int32_t i = 0; i < 3; ++i) builder.declare(i, type_text(dtype).storage, i < 2);
  if (with_text) {
    define_functions(builder, dtype);
    const auto word = [](int32_t number) { return KernelBuilder::index_word(number); };
    std::vector<Value> values = {{"group", dialect.group_size},
                                 {"points", word(points)},
                                 {"coordinates", space.coordinates(builder, "c", "i")},
                                 {"n", word(n)},
                                 {"from", space.offset(0, "c")},
                                 {"to", space.offset(2, "c")},
                                 {"row", upper ? "n - 1 - at" : "at"},
                                 {"right", space.offset(1, "c")},
                                 {"right_row", word(right_row)},
                                 {"from_row", word(from_row)},
                                 {"from_column", word(from_column)},
                                 {"to_row", word(to_row)}};
    if (by_group) {
      values.insert(values.end(), {{"own", team.own},
                                   {"room", team.room},
                                   {"wide", team.wide},
                                   {"tiles", word(tiles_word)},
                                   {"columns", word(columns_word)},
                                   {"right_column", word(right_column)},
                                   {"to_column", word(to_column)},
                                   {"matrix_column", upper ? "n - 1 - k" : "k"},
                                   {"solved", unit ? "own[k]" : "compute_over(own[k], panels[row + k])"}});
    } else {
      values.insert(
          values.end(),
          {{"begin", upper ? "r + 1" : "0"},
           {"end", upper ? "n" : "r"},
           {"quotient", unit ? "s" : cat("compute_over(s, t[r * (", word(from_row), " + ", word(from_column), ")])")}});
    }
    builder.body = fill_some(by_group ? kGroupTriangles : kSmallTriangles, values);
  }
  BuiltKernels built;
  built.add(builder, by_group ? nest.points() * tiles : divide_up(nest.points(), dialect.group_size));
  return built;
}

std::optional<Refusal> refuse_type(const Op& op) {
  const compute_dtype dtype = op.input(0).dtype;
  const auto refused = [&](const char* why) {
    return Refusal{COMPUTE_PLUGIN_REFUSE_DTYPE, 0, cat(op.name(), ": ", why), ""};
  };
  if (!is_float(dtype) && !is_complex(dtype)) return refused("not of this dtype");
  if (is_half(dtype)) return refused("computed in float32");
  return std::nullopt;
}

Refusal refused_shape(const Op& op, const char* why) {
  return {COMPUTE_PLUGIN_REFUSE_SHAPE, 0, cat(op.name(), ": ", why), ""};
}

}  // namespace

std::optional<Refusal> refuse_small_matrices(const Op& op, const Dialect& dialect) {
  if (std::optional<Refusal> refusal = refuse_type(op)) return refusal;
  if (is_triangular(op)) {
    const compute_plugin_tensor& a = op.input(0);
    if (a.shape[a.rank - 2] > kMostTriangleRows) return refused_shape(op, "more than 128 rows");
    return std::nullopt;
  }
  if (Sizes(op).longest() > kMostRows && team_of(op, dialect).items == 0)
    return refused_shape(op, "too many rows or columns for a generated kernel");
  return std::nullopt;
}

std::optional<Refusal> refuse_small_reflections(const Op& op, const Dialect& dialect) {
  if (std::optional<Refusal> refusal = refuse_type(op)) return refusal;
  if (dialect.is_host)
    return Refusal{COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED, -1, "qr: the generated kernel is one for GPUs", ""};
  if (team_of_reflections(op, dialect).items == 0)
    return refused_shape(op, "too many rows or columns for a generated kernel");
  return std::nullopt;
}

BuiltKernels build_small_reflections(const Op& op, const Dialect& given, bool with_text) {
  const compute_plugin_tensor &a = op.input(0), &q = op.output(0), &r = op.output(1);
  const compute_dtype dtype = a.dtype;
  const int32_t size = dtype_size(dtype);
  const Team team = team_of_reflections(op, given);
  const Dialect dialect = with_groups(given, team.items);
  const std::vector<int64_t> shape(a.shape, a.shape + a.rank - 2);
  const std::vector<std::vector<int64_t>> strides = {batch_strides(a, 2), batch_strides(q, 2), batch_strides(r, 2)};
  const LoopNest nest = collapse_operands(shape, strides, 1);
  KernelBuilder builder(dialect, "qr", with_text);
  builder.is_wide = needs_wide(nest, std::array<int32_t, 3>{size, size, size}, nest.points(),
                               std::array<int64_t, 3>{reach(a), reach(q), reach(r)});
  builder.sign(dtype);
  builder.sign(nest.rank);
  builder.sign(team.items);
  builder.sign(team.room);
  for (int32_t i = 0; i < 3; ++i) builder.pointer(Pointer::kTensor, i, nest.offsets[static_cast<size_t>(i)] * size);
  std::vector<Value> values = team.values();
  const auto add_word = [&](const char* name, int64_t value) {
    values.emplace_back(name, KernelBuilder::index_word(builder.word(value)));
  };
  const auto step_of = [](const compute_plugin_tensor& tensor, int32_t axis) {
    return tensor.strides[tensor.rank - 2 + axis];
  };
  add_word("m", a.shape[a.rank - 2]);
  add_word("n", a.shape[a.rank - 1]);
  add_word("columns", q.shape[q.rank - 1]);
  add_word("from_row", step_of(a, 0));
  add_word("from_column", step_of(a, 1));
  add_word("q_row", step_of(q, 0));
  add_word("q_column", step_of(q, 1));
  add_word("r_row", step_of(r, 0));
  add_word("r_column", step_of(r, 1));
  Space space(nest);
  space.add_words(builder, 1);
  for (int32_t i = 0; i < 3; ++i) builder.declare(i, type_text(dtype).storage, i == 0);
  if (with_text) {
    define_functions(builder, dtype);
    const bool is_float32 = part_of(dtype) == COMPUTE_DTYPE_FLOAT32;
    values.insert(values.end(), {{"coordinates", space.coordinates(builder, "c", "i")},
                                 {"from", space.offset(0, "c")},
                                 {"q", space.offset(1, "c")},
                                 {"r", space.offset(2, "c")},
                                 {"tiny", is_float32 ? "1e-30f" : "1e-290"},
                                 {"huge", is_float32 ? "1e38f" : "1e308"}});
    builder.body = fill(kGroupReflections, values);
  }
  BuiltKernels built;
  built.add(builder, nest.points());
  return built;
}

BuiltKernels build_small_matrices(const Op& op, const Dialect& given, bool with_text) {
  if (is_triangular(op)) return build_triangles(op, given, with_text);
  const Team team = team_of(op, given);
  const bool by_group = team.items != 0;
  const Dialect dialect = by_group ? with_groups(given, team.items) : given;
  const std::string_view name = op.name();
  const bool is_cholesky = name == "cholesky", is_lu = name == "lu", is_inverse = name == "inv";
  const bool solves = is_inverse || name == "solve", upper = is_cholesky && op.integer("upper", 0) != 0;
  const compute_plugin_tensor &a = op.input(0), &y = op.output(0);
  const compute_dtype dtype = a.dtype;
  const int32_t size = dtype_size(dtype), inputs = op.input_count();
  const auto [m, n, count] = Sizes(op);
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
  const int64_t elements = by_group ? 0 : m * n + n * count;  // of the workspace, for a matrix
  KernelBuilder builder(dialect, name, with_text);
  builder.is_wide = needs_wide(nest, sizes, nest.points(), further) || elements * nest.points() * size > INT32_MAX / 4;
  builder.sign(dtype);
  builder.sign(nest.rank);
  builder.sign(upper);
  builder.sign(team.items);
  builder.sign(team.room);
  const int32_t tensors = op.tensor_count();
  for (int32_t i = 0; i < tensors; ++i)
    builder.pointer(Pointer::kTensor, i, nest.offsets[static_cast<size_t>(i)] * sizes[static_cast<size_t>(i)]);
  const int32_t work = by_group ? -1 : builder.pointer(Pointer::kWorkspace, 0, 0),
                fault = builder.pointer(Pointer::kFault, 0, 0);
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
  if (!by_group) builder.declare(work, type_text(dtype).storage, false);
  if (with_text) {
    define_functions(builder, dtype);
    const auto word = [](int32_t number) { return KernelBuilder::index_word(number); };
    const std::string right = is_inverse ? "compute_make(r == c ? 1 : 0)"
                                         : cat("x1[", name == "solve" ? space.offset(1, "c") : "", " + r * ",
                                               word(right_row), " + c * ", word(right_column), "]");
    const std::string element = "w[(r * n + c) * step]";
    const std::string factor = upper ? cat("compute_conjugate(", element, ")") : element;
    std::vector<Value> values = {{"points", word(points)},
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
                                 {"upper", upper},
                                 {"solves", solves},
                                 {"count", word(count_word)},
                                 {"right", right},
                                 {"is_lu", is_lu},
                                 {"pivot", is_lu ? space.offset(2, "c") : ""},
                                 {"pivot_step", word(pivot_step)},
                                 {"result_rows", solves ? "n" : "m"},
                                 {"result_columns", !solves    ? "n"
                                                    : by_group ? "width - n"
                                                               : "count"},
                                 {"result", solves        ? "b[(r * count + c) * step]"
                                            : is_cholesky ? cat("c > r ? compute_make(0) : ", factor)
                                                          : element},
                                 {"y", inputs},
                                 {"to", space.offset(inputs, "c")},
                                 {"to_row", word(to_row)},
                                 {"to_column", word(to_column)},
                                 {"fault", fault},
                                 {"position", word(position), " + ", space.offset(tensors, "c")}};
    if (by_group) {
      const std::vector<Value> more = team.values();
      values.insert(values.end(), more.begin(), more.end());
    } else {
      values.emplace_back("group", dialect.group_size);
    }
    builder.body = fill_some(by_group ? kGroupFactors : kSmallFactors, values);
  }
  BuiltKernels built;
  built.reports_faults = !is_lu;
  built.workspace_bytes = elements * nest.points() * size;
  built.add(builder, by_group ? nest.points() : divide_up(nest.points(), dialect.group_size));
  return built;
}

}  // namespace compute::common
