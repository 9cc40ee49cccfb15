// SPDX-License-Identifier: Apache-2.0
// scatter goes over the index space with the axis of the output held at 0; the index puts it in place.
//
// It has four forms: plain stores (set), atomic operations, tables, and lines. Many updates of few places go to tables
// in local memory, one for each group, which are combined with the output at the end. Two points of the index space
// meet in one element only if they differ along the axis alone, so a work item that follows such a line in order needs
// no atomics and gives the same bits every time.
#include <algorithm>
#include <array>
#include <bit>

#include "plugins/common/source/builder/kernel_builder.hpp"
#include "plugins/common/source/builder/report_index.hpp"
#include "plugins/common/source/expressions/combination.hpp"
#include "plugins/common/source/move/ops.hpp"

namespace compute::common {
namespace {

#include "plugins/common/source/move/scatter.inc"

enum class Combine { set, add, mul, min, max };

Combine combine_of(std::string_view name) {
  constexpr std::string_view names[] = {"set", "add", "mul", "min", "max"};
  const auto found = std::find(std::begin(names), std::end(names), name);
  return found == std::end(names) ? Combine::set : static_cast<Combine>(found - std::begin(names));
}

// The combination of two elements in memory's form.
std::string combine_text(Combine combine, compute_dtype dtype, const std::string& x, const std::string& y,
                         Functions& functions) {
  if (combine == Combine::set) return y;
  if (dtype == COMPUTE_DTYPE_BOOL)
    return cat("(u8)(", x, combine == Combine::add || combine == Combine::max ? " || " : " && ", y, ")");
  static constexpr int32_t kIntrinsics[] = {0, COMPUTE_PLUGIN_INTRINSIC_ADD, COMPUTE_PLUGIN_INTRINSIC_MUL,
                                            COMPUTE_PLUGIN_INTRINSIC_MIN, COMPUTE_PLUGIN_INTRINSIC_MAX};
  const compute_dtype wide = computed_in(dtype);
  const std::string value =
      call_text(kIntrinsics[static_cast<int>(combine)], wide,
                {convert_text(x, dtype, wide, functions), convert_text(y, dtype, wide, functions)}, functions);
  return convert_text(value, wide, dtype, functions);
}

// What one atomic operation covers: a word that the device can compare and exchange.
bool has_atomic(Combine combine, compute_dtype dtype, const Dialect& dialect) {
  const int32_t size = dtype_size(dtype);
  if (size <= 4) return true;
  if (is_complex(dtype) && combine == Combine::add) return size == 8 || dialect.has_int64_atomics;  // part by part
  return size == 8 && dialect.has_int64_atomics;
}

// Whether the device has an instruction for it, which does not slow down with the number of items that wait.
bool has_instruction(Combine combine, compute_dtype dtype, const Dialect& dialect) {
  const bool is_add = combine == Combine::add;
  if (part_of(dtype) == COMPUTE_DTYPE_FLOAT32) return is_add && dialect.has_ptx;
  if (dtype == COMPUTE_DTYPE_INT32) return combine != Combine::mul;
  if (!is_add || !is_integer(dtype)) return false;
  return dtype_size(dtype) == 4 || (dtype_size(dtype) == 8 && dialect.has_int64_atomics);
}

constexpr const char *kGlobal = "COMPUTE_GLOBAL", *kLocal = "COMPUTE_LOCAL_POINTER";

// A function that combines an element of memory with `y` atomically. Elements in local memory have 4 bytes or more.
std::string atomic_text(Combine combine, compute_dtype dtype, KernelBuilder& builder, const char* space = kGlobal,
                        const std::string& name = "compute_combine") {
  Functions& functions = builder.functions();
  const char* storage = type_text(dtype).storage;
  const auto by_device = [&](std::string_view operation, const char* type = nullptr) {
    return fill(kCombineByDevice, {{"name", name},
                                   {"space", space},
                                   {"storage", storage},
                                   {"operation", operation},
                                   {"pointer", type ? cat("(volatile ", space, " ", type, "*)") : ""},
                                   {"value", type ? cat("(", type, ")") : ""}});
  };
  if (is_complex(dtype) && combine == Combine::add) {
    const compute_dtype part = part_of(dtype);
    return atomic_text(combine, part, builder, space, name + "_part") +
           fill(kCombineParts,
                {{"name", name}, {"space", space}, {"storage", storage}, {"part", type_text(part).storage}});
  }
  const Dialect& dialect = builder.dialect();
  if (is_integer(dtype) && has_instruction(combine, dtype, dialect) && dtype_size(dtype) == 4) {
    const char* operation = combine == Combine::add ? "ADD" : combine == Combine::min ? "MIN" : "MAX";
    return by_device(cat("COMPUTE_ATOMIC_", operation, "_I32"), "i32");
  }
  if (is_integer(dtype) && combine == Combine::add && dtype_size(dtype) == 8) {
    if (space == kLocal) return fill(kAddInHalves, {{"name", name}, {"space", space}, {"storage", storage}});
    if (has_instruction(combine, dtype, dialect)) return by_device("COMPUTE_ATOMIC_ADD_U64", "u64");
  }
  if (dtype == COMPUTE_DTYPE_FLOAT32 && combine == Combine::add) {
    if (dialect.has_ptx) return fill(space == kGlobal ? kAddByPtx : kAddToLocalByPtx, {{"name", name}});
  }
  const int32_t size = dtype_size(dtype);
  if (size >= 4) {
    return fill(kCombineWords, {{"name", name},
                                {"space", space},
                                {"storage", storage},
                                {"bits", size * 8},
                                {"combined", combine_text(combine, dtype, "old.e", "y", functions)}});
  }
  return fill(kCombineInWords, {{"name", name},
                                {"storage", storage},
                                {"size", size},
                                {"combined", combine_text(combine, dtype, "x", "y", functions)},
                                {"mask", size == 1 ? "0xffu" : "0xffffu"},
                                {"bits", size * 8}});
}

// ---- Tables in local memory -----------------------------------------------------------------------------------------

constexpr int64_t kTableBytes = 16 << 10;
constexpr int64_t kUpdatesOfPlace = 64;  // on average, from which places are few
constexpr int64_t kLeastUpdates = 4;     // of an element of a table
constexpr int64_t kMostCopies = 8;
constexpr int64_t kFewElements = 2048;    // of the output in rows, for which the device's instructions wait
constexpr int64_t kLeastBytes = 32;       // of a row of updates that a group reads
constexpr int64_t kLeastActive = 8;       // items of a group
constexpr int64_t kMostPoints = 1 << 30;  // of a group

// What a table's elements are. Those of small integers have a word, whose lowest bits are the result.
compute_dtype kept_as(compute_dtype dtype) {
  return is_integer(dtype) && dtype_size(dtype) < 4 ? compute_dtype{COMPUTE_DTYPE_INT32} : computed_in(dtype);
}

bool has_local_atomic(Combine combine, compute_dtype kept, const Dialect& dialect) {
  const int32_t size = dtype_size(combine == Combine::add ? part_of(kept) : kept);
  return size == 4 || dialect.has_int64_atomics || (combine == Combine::add && is_integer(kept));
}

Combination combination_of(Combine combine) {
  static constexpr Combination kCombinations[] = {Combination::unknown, Combination::sum, Combination::prod,
                                                  Combination::min, Combination::max};
  return kCombinations[static_cast<int>(combine)];
}

// How groups divide a scatter: each has a chunk of the points along the axis in a block of columns, which are the
// points of the other axes. Its table has `width` columns of the output, in several copies.
struct Tables {
  enum class End { kStore, kAtomic, kParts };  // of a group: what becomes of its table

  compute_dtype kept = COMPUTE_DTYPE_NONE;
  int64_t entries = 0;         // of local memory
  bool is_private = false;     // each item has a copy of its own: no atomic operations, and always the same order
  bool is_by_columns = false;  // items that follow one another have different columns
  int64_t width = 1, blocks = 1, copies = 1;
  int64_t active = 1, steps = 1;  // items that read updates, and how many each of them has in flight
  int64_t chunk = 1, chunks = 1;
  End end = End::kStore;
  bool starts_from_output = false;  // rather than from identities, where a table is the only one of its elements
};

int64_t power_up_to(int64_t most) { return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(most))); }

// Whether items that follow one another read columns rather than points along the axis.
bool is_by_columns(const Op& op, int32_t axis) {
  const auto reads_along = [&](const compute_plugin_tensor& tensor) {
    const int64_t step = std::abs(tensor.strides[axis]);
    bool is_along = true;
    for (int32_t i = 0; i < tensor.rank; ++i)
      is_along = is_along && (i == axis || tensor.shape[i] == 1 || std::abs(tensor.strides[i]) >= step);
    return is_along;
  };
  const compute_plugin_tensor &indices = op.input(0), &updates = op.input(1);
  const bool is_one = std::all_of(updates.strides, updates.strides + updates.rank, [](int64_t s) { return s == 0; });
  return !reads_along(is_one ? indices : updates);
}

// Nothing if there are too many places, or too few updates of them.
std::optional<Tables> choose_tables(const Op& op, Combine combine, const Dialect& dialect) {
  const compute_plugin_tensor &indices = op.input(0), &updates = op.input(1), &output = op.output(0);
  const auto axis = static_cast<int32_t>(op.integer("axis", 0));
  const compute_dtype dtype = output.dtype;
  // An identity changes the signs of a complex product's infinities.
  if (combine == Combine::set || dtype == COMPUTE_DTYPE_BOOL || (combine == Combine::mul && is_complex(dtype)))
    return std::nullopt;
  const int64_t line = indices.shape[axis], limit = output.shape[axis], group = dialect.group_size;
  int64_t columns = 1;
  for (int32_t i = 0; i < indices.rank; ++i) columns *= i == axis ? 1 : indices.shape[i];

  Tables t;
  t.kept = kept_as(dtype);
  t.entries = power_up_to(std::min(kTableBytes, dialect.local_memory_bytes / 2)) / dtype_size(t.kept);
  // A thread of a host runs a whole group, and atomic operations cost it much more than plain ones.
  t.is_private = op.deterministic() || dialect.is_host || !has_local_atomic(combine, t.kept, dialect);
  int64_t widest = t.entries / limit;
  if (widest == 0) return std::nullopt;
  if (t.is_private) widest = std::min(widest, group);
  t.is_by_columns = columns > 1 && is_by_columns(op, axis);
  t.blocks = t.is_by_columns ? divide_up(columns, widest) : columns;
  t.width = divide_up(columns, t.blocks);
  if (t.is_by_columns && t.blocks > 1 && t.width * dtype_size(dtype) < kLeastBytes) return std::nullopt;

  const int64_t places = limit * t.width;
  if (t.is_private && !dialect.is_host) t.copies = power_up_to(std::min(t.entries / places, group / t.width));
  t.active = t.is_private ? t.copies * t.width : group;
  t.steps = dialect.is_host ? 1 : kSteps;
  // All items of a GPU's group share the work on its table.
  const int64_t least = t.active * kSteps * (t.is_private ? 2 : 1);
  const int64_t points = t.is_private && !dialect.is_host ? least : std::max(least, places * kLeastUpdates);
  const int64_t most_chunks = divide_up(int64_t{dialect.compute_units} * dialect.groups_per_unit, t.blocks);
  t.chunks = std::min(divide_up(line * t.width, points), most_chunks);
  t.chunk = std::min(divide_up(line, t.chunks), kMostPoints / t.width);
  t.chunks = divide_up(line, t.chunk);
  if (!t.is_private) {
    const int64_t updates = std::max<int64_t>(t.chunk * t.width / places, 1);
    t.copies = power_up_to(std::min({t.entries / places, updates, kMostCopies}));
  }
  t.entries = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(places * t.copies)));
  const bool is_direct = !t.is_private && has_instruction(combine, dtype, dialect);
  t.end = t.chunks == 1 ? Tables::End::kStore : is_direct ? Tables::End::kAtomic : Tables::End::kParts;
  t.starts_from_output = t.end == Tables::End::kStore && t.copies == 1 && t.kept == dtype;

  const int64_t groups = t.blocks * t.chunks;
  if (t.is_private) {
    const bool is_wider = groups * t.active >= 2 * columns && (dialect.is_host || t.active >= kLeastActive);
    return line >= kUpdatesOfPlace && is_wider ? std::optional(t) : std::nullopt;
  }
  // Many lines whose elements follow one another.
  const bool has_lines = t.width == 1 && t.blocks >= dialect.compute_units && line >= group && limit <= line * 4 &&
                         indices.strides[axis] == 1 && updates.strides[axis] == 1 && output.strides[axis] == 1;
  // Places so few that updates wait for each other, and so many groups that the device is not idle.
  const bool is_filled = groups * 2 >= dialect.compute_units || t.chunk * t.width <= t.active * kSteps * 4;
  // Instructions for neighbours in rows run together, and rarely wait if there are many elements.
  const bool are_spread = is_direct && t.is_by_columns && limit * columns > kFewElements;
  const bool are_few = line / kUpdatesOfPlace >= limit && !are_spread && (is_filled || !is_direct);
  return has_lines || are_few ? std::optional(t) : std::nullopt;
}

class TablesBuilder {
 public:
  TablesBuilder(const Op& op, Combine combine, const Tables& tables, const Dialect& dialect, bool with_text)
      : op_(op),
        combine_(combine),
        tables_(tables),
        dialect_(dialect),
        with_text_(with_text),
        dtype_(op.output(0).dtype),
        limit_(op.output(0).shape[op.integer("axis", 0)]),
        line_(op.input(0).shape[op.integer("axis", 0)]) {
    const auto axis = static_cast<size_t>(op.integer("axis", 0));
    const compute_plugin_tensor& indices = op.input(0);
    std::vector<int64_t> shape(indices.shape, indices.shape + indices.rank);
    std::vector<std::vector<int64_t>> strides = {strides_of(indices), strides_of(op.input(1)), strides_of(op.output(0)),
                                                 row_major(shape)};
    for (size_t i = 0; i < steps_.size(); ++i) steps_[i] = strides[i][axis];
    strides[2][axis] = 0;
    shape[axis] = 1;
    nest_ = collapse_operands(shape, strides, 1);
  }

  BuiltKernels build() const {
    BuiltKernels built;
    built.reports_faults = true;
    const bool has_parts = tables_.end == Tables::End::kParts;
    if (has_parts) built.workspace_bytes = tables_.chunks * limit_ * nest_.points() * dtype_size(tables_.kept);
    add_tables(built);
    if (has_parts) add_join(built);
    return built;
  }

 private:
  static std::string read(int32_t word) { return KernelBuilder::index_word(word); }

  void begin(KernelBuilder& builder) const {
    const int32_t size = dtype_size(dtype_), index_size = dtype_size(op_.input(0).dtype);
    std::array<int64_t, 4> further{};
    for (size_t i = 0; i < further.size(); ++i) further[i] = std::abs(steps_[i]) * (i == 2 ? limit_ : line_);
    builder.is_wide = needs_wide(nest_, std::array{index_size, size, size, 1},
                                 std::max(nest_.points(), tables_.chunks * limit_ * nest_.points()), further);
    builder.sign(static_cast<int64_t>(combine_));
    builder.sign(dtype_);
    builder.sign(nest_.rank);
  }

  // The element of the output, which `value` of a table is combined with.
  std::string element(KernelBuilder& builder, std::string_view at) const {
    Functions& functions = builder.functions();
    const std::string y = convert_text("value", tables_.kept, dtype_, functions);
    return fill(kCombineElement, {{"storage", type_text(dtype_).storage},
                                  {"at", at},
                                  {"combined", combine_text(combine_, dtype_, "x", "y", functions)},
                                  {"value", y}});
  }

  // The function that compares a value with the identity by its bits: a sum of -0 is not one of +0.
  void define_identity(KernelBuilder& builder) const {
    const compute_dtype part = part_of(tables_.kept);
    const std::string identity = identity_text(combination_of(combine_), part);
    const auto is_same = [&](const char* x) {
      const char* bits = !is_float(part) ? "" : dtype_size(part) == 4 ? "COMPUTE_AS_I32" : "COMPUTE_AS_I64";
      return cat(bits, "(", x, ") == ", bits, "(", identity, ")");
    };
    const bool is_pair = is_complex(tables_.kept);
    builder.globals +=
        fill(kIsIdentity, {{"kept", type_text(tables_.kept).storage},
                           {"condition", is_pair ? cat(is_same("x.x"), " && ", is_same("x.y")) : is_same("x")}});
  }

  void add_tables(BuiltKernels& built) const {
    const Tables& t = tables_;
    KernelBuilder builder(dialect_, "scatter_tables", with_text_);
    int32_t step_words[4];
    begin(builder);
    const int32_t size = dtype_size(dtype_), index_size = dtype_size(op_.input(0).dtype);
    builder.sign(index_size);
    builder.sign(t.is_private);
    builder.sign(t.is_by_columns);
    builder.sign(static_cast<int64_t>(t.end));
    builder.sign(t.starts_from_output);
    builder.sign(t.entries);
    const auto steps = [&](size_t i) { return steps_[i] == 1 ? "" : " * " + read(step_words[i]); };
    for (const int64_t step : steps_) builder.sign(step == 1);
    builder.pointer(Pointer::kTensor, 0, nest_.offsets[0] * index_size);
    builder.pointer(Pointer::kTensor, 1, nest_.offsets[1] * size);
    builder.pointer(Pointer::kTensor, 2, nest_.offsets[2] * size);
    builder.pointer(Pointer::kFault, 0, 0);
    const bool has_parts = t.end == Tables::End::kParts;
    if (has_parts) builder.pointer(Pointer::kWorkspace, 0, 0);
    const int32_t limit_word = builder.word(limit_), line_word = builder.word(line_),
                  columns_word = builder.word(nest_.points()), position_word = builder.word(nest_.offsets[3]),
                  width_word = builder.word(t.width), divisor = builder.word(divisor_word(t.width)),
                  copies_word = builder.word(t.copies), active_word = builder.word(t.active),
                  chunk_word = builder.word(t.chunk), chunks_word = builder.word(t.chunks);
    for (size_t i = 0; i < steps_.size(); ++i) step_words[i] = builder.word(steps_[i]);
    Space space(nest_);
    space.add_words(builder, 1);
    const char *storage = type_text(dtype_).storage, *kept = type_text(t.kept).storage;
    builder.declare(0, index_size == 4 ? "i32" : "i64", true);
    builder.declare(1, storage, true);
    builder.declare(2, storage, false);
    if (has_parts) builder.declare(4, kept, false);
    if (with_text_) {
      Functions& functions = builder.functions();
      builder.globals += kReportIndex;
      if (!t.is_private) builder.globals += atomic_text(combine_, t.kept, builder, kLocal, "compute_combine_in_table");
      if (!has_parts && !t.starts_from_output) define_identity(builder);
      if (t.end == Tables::End::kAtomic) builder.globals += atomic_text(combine_, dtype_, builder);
      const std::string coordinates = space.coordinates(builder, "c", "column"),
                        at = cat(space.offset(2, "c"), " + target", steps(2));
      std::string merge = fill(kTablePart, {{"limit", KernelBuilder::word_text(limit_word)}});
      if (!has_parts) {
        const std::string value = convert_text("value", t.kept, dtype_, functions);
        merge = fill(kTableElement,
                     {{"coordinates", coordinates},
                      {"combine", t.end == Tables::End::kAtomic ? cat("compute_combine(x2 + ", at, ", ", value, ");")
                                                                : element(builder, cat("x2[", at, "]"))}});
      }
      builder.body = fill(
          kScatterTables,
          {{"kept", kept},
           {"storage", storage},
           {"entries", t.entries},
           {"group", dialect_.group_size},
           {"steps", t.steps},
           {"limit", KernelBuilder::word_text(limit_word)},
           {"line", read(line_word)},
           {"columns", read(columns_word)},
           {"width", t.is_by_columns ? KernelBuilder::word_text(width_word) : "1"},
           {"divisor", KernelBuilder::word_text(divisor)},
           {"copies", KernelBuilder::word_text(copies_word)},
           {"active", KernelBuilder::word_text(active_word)},
           {"chunk_terms", read(chunk_word)},
           {"chunks", read(chunks_word)},
           {"identity", identity_text(combination_of(combine_), t.kept)},
           {"is_by_columns", t.is_by_columns},
           {"starts_from_output", t.starts_from_output},
           {"place",
            fill(kTablePlace, {{"is_by_columns", t.is_by_columns}, {"divisor", KernelBuilder::word_text(divisor)}})},
           {"at", cat("x2[", at, "]")},
           {"is_private", t.is_private},
           {"coordinates", coordinates},
           {"index_at", cat(space.offset(0, "c"), " + term", steps(0))},
           {"update_at", cat(space.offset(1, "c"), " + term", steps(1))},
           {"position", cat(read(position_word), " + ", space.offset(3, "c"), " + term * ", read(step_words[3]))},
           {"update", convert_text("updates[s]", dtype_, t.kept, functions)},
           {"combined", combine_text(combine_, t.kept, "x", "y", functions)},
           {"merge", merge}});
    }
    built.add(builder, t.blocks * t.chunks);
  }

  void add_join(BuiltKernels& built) const {
    const Tables& t = tables_;
    KernelBuilder builder(dialect_, "scatter_join", with_text_);
    begin(builder);
    const int64_t group = dialect_.group_size, places = limit_ * nest_.points();
    const auto across = static_cast<int64_t>(
        std::bit_ceil(static_cast<uint64_t>(std::min<int64_t>(places, std::max<int64_t>(group / kLeastActive, 1)))));
    builder.sign(across);
    builder.pointer(Pointer::kWorkspace, 0, 0);
    builder.pointer(Pointer::kTensor, 2, nest_.offsets[2] * dtype_size(dtype_));
    const int32_t places_word = builder.word(places), columns_word = builder.word(nest_.points()),
                  chunks_word = builder.word(t.chunks), step_word = builder.word(steps_[2]);
    Space space(nest_);
    space.add_words(builder, 1);
    const char* kept = type_text(t.kept).storage;
    builder.declare(0, kept, true);
    builder.declare(1, type_text(dtype_).storage, false);
    if (with_text_) {
      Functions& functions = builder.functions();
      define_identity(builder);
      const std::string at = cat("x1[", space.offset(2, "c"), " + target * ", read(step_word), "]");
      builder.body = fill(kScatterJoin, {{"kept", kept},
                                         {"group", group},
                                         {"across", across},
                                         {"along", group / across},
                                         {"places", read(places_word)},
                                         {"columns", read(columns_word)},
                                         {"chunks", read(chunks_word)},
                                         {"identity", identity_text(combination_of(combine_), t.kept)},
                                         {"combined", combine_text(combine_, t.kept, "x", "y", functions)},
                                         {"coordinates", space.coordinates(builder, "c", "column")},
                                         {"combine", element(builder, at)}});
    }
    built.add(builder, divide_up(places, across));
  }

  const Op& op_;
  const Combine combine_;
  const Tables& tables_;
  const Dialect& dialect_;
  const bool with_text_;
  const compute_dtype dtype_;
  const int64_t limit_, line_;
  LoopNest nest_;                 // the columns; operands: indices, updates, output, position
  std::array<int64_t, 4> steps_;  // of these along the axis
};

}  // namespace

BuiltKernels build_scatter(const Op& op, const Dialect& dialect, bool with_text) {
  BuiltKernels built;
  built.reports_faults = true;
  const compute_plugin_tensor &indices = op.input(0), &updates = op.input(1), &output = op.output(0);
  const auto axis = static_cast<size_t>(op.integer("axis", 0));
  const Combine combine = combine_of(op.text("reduction"));
  if (const std::optional<Tables> tables = choose_tables(op, combine, dialect))
    return TablesBuilder(op, combine, *tables, dialect, with_text).build();
  const bool by_lines = op.deterministic() || (combine != Combine::set && !has_atomic(combine, output.dtype, dialect));
  KernelBuilder builder(dialect, by_lines ? "scatter_lines" : "scatter", with_text);
  // operands: indices, updates, output, position
  std::vector<int64_t> shape(indices.shape, indices.shape + indices.rank);
  std::vector<std::vector<int64_t>> strides = {strides_of(indices), strides_of(updates), strides_of(output),
                                               row_major(shape)};
  const int64_t axis_stride = strides[2][axis], limit = output.shape[axis], line = shape[axis];
  strides[2][axis] = 0;
  int64_t line_strides[4];
  for (size_t i = 0; i < 4; ++i) line_strides[i] = strides[i][axis];
  if (by_lines) shape[axis] = 1;
  const LoopNest nest = collapse_operands(shape, strides, 1);
  const int32_t size = dtype_size(output.dtype), index_size = dtype_size(indices.dtype);
  const std::array<int32_t, 4> sizes = {index_size, size, size, 1};
  std::array<int64_t, 4> further = {0, 0, limit * std::abs(axis_stride), 0};
  for (size_t i = 0; i < 4 && by_lines; ++i) further[i] += std::abs(line_strides[i]) * line;
  builder.is_wide = needs_wide(nest, sizes, nest.points(), further);
  const compute_dtype dtype = output.dtype;
  builder.sign(static_cast<int64_t>(combine));
  builder.sign(combine == Combine::set ? -size : dtype);
  const int64_t steps = by_lines ? 1 : choose_steps(nest.points(), dialect);
  builder.sign(index_size);
  builder.sign(nest.rank);
  builder.sign(steps);
  builder.pointer(Pointer::kTensor, 0, nest.offsets[0] * index_size);
  builder.pointer(Pointer::kTensor, 1, nest.offsets[1] * size);
  builder.pointer(Pointer::kTensor, 2, nest.offsets[2] * size);
  builder.pointer(Pointer::kFault, 0, 0);
  const int32_t points_word = builder.word(nest.points()), limit_word = builder.word(limit),
                axis_word = builder.word(axis_stride), position_word = builder.word(nest.offsets[3]),
                line_word = builder.word(line);
  int32_t line_words[4];
  for (size_t i = 0; i < 4; ++i) line_words[i] = builder.word(line_strides[i]);
  Space space(nest);
  space.add_words(builder, 1);
  const char* storage = combine == Combine::set ? bits_storage(size) : type_text(dtype).storage;
  builder.declare(0, index_size == 4 ? "i32" : "i64", true);
  builder.declare(1, storage, true);
  builder.declare(2, storage, false);
  if (with_text) {
    builder.globals += kReportIndex;
    const bool in_order = by_lines && combine != Combine::set, atomically = !by_lines && combine != Combine::set;
    const std::string position = cat(builder.index_word(position_word), " + ", space.offset(3, "c"));
    const std::string point = fill(
        kScatterPoint, {{"index", by_lines ? "x0[index_at + t * index_step]" : "indices[s]"},
                        {"position", position, by_lines ? " + t * position_step" : ""},
                        {"by_lines", by_lines},
                        {"sets", combine == Combine::set},
                        {"in_order", in_order},
                        {"atomically", atomically},
                        {"update", by_lines ? "x1[update_at + t * update_step]" : "updates[s]"},
                        {"storage", storage},
                        {"combined", in_order ? combine_text(combine, dtype, "x", "y", builder.functions()) : ""}});
    if (atomically) builder.globals += atomic_text(combine, dtype, builder);
    std::vector<Value> values = {{"group_points", dialect.group_size * steps},
                                 {"points", builder.index_word(points_word)},
                                 {"coordinates", space.coordinates(builder, "c", "i")},
                                 {"index_at", space.offset(0, "c")},
                                 {"update_at", space.offset(1, "c")},
                                 {"to", space.offset(2, "c")},
                                 {"axis_stride", builder.index_word(axis_word)},
                                 {"limit", builder.word_text(limit_word)},
                                 {"by_lines", by_lines},
                                 {"group", dialect.group_size},
                                 {"steps", steps},
                                 {"storage", storage},
                                 {"line", builder.index_word(line_word)},
                                 {"index_step", builder.index_word(line_words[0])},
                                 {"update_step", builder.index_word(line_words[1])},
                                 {"position_step", builder.index_word(line_words[3])},
                                 {"point", point}};
    builder.body = fill(kScatter, values);
  }
  built.add(builder, divide_up(nest.points(), dialect.group_size * steps));
  return built;
}

}  // namespace compute::common
