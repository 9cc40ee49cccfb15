// SPDX-License-Identifier: Apache-2.0
// take_grad with the same bits each time, which core requests by name. The indices are sorted with their positions, so
// that the rows of dy that go to one row of the output follow one another in the order of positions. They are added by
// chunks of a fixed length; sums of rows in several chunks are put together afterwards.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>

#include "plugins/common/source/expressions/combination.hpp"
#include "plugins/common/source/move/ops.hpp"
#include "plugins/common/source/order/sort.hpp"

namespace compute::common {
namespace {

#include "plugins/common/source/move/take_grad.inc"

constexpr int64_t kChunk = 32;      // sorted indices
constexpr int64_t kRowsAtOnce = 8;  // that an item has in flight
constexpr int64_t kZerosAtOnce = 4;

// The axes of dy: some before the axes of the indices, and some after them.
struct TakenAxes {
  explicit TakenAxes(const Op& op) : dy(op.input(0)), output(op.output(0)), taken(op.input(1).rank) {
    const int64_t given = op.integer("axis", 0);
    axis = static_cast<int32_t>(given < 0 ? given + output.rank : given);
  }

  // The step of dy from one index to the next, if it is the same everywhere.
  std::optional<int64_t> step() const {
    const auto first = static_cast<size_t>(axis), count = static_cast<size_t>(taken);
    return row_major_step(shape_of(dy).subspan(first, count), std::span(dy.strides, dy.rank).subspan(first, count));
  }

  // The other axes, with the strides of dy and of the output.
  LoopNest columns() const {
    std::vector<int64_t> shape;
    std::vector<std::vector<int64_t>> strides(2);
    for (int32_t i = 0; i < output.rank; ++i) {
      if (i == axis) continue;
      shape.push_back(output.shape[i]);
      strides[0].push_back(dy.strides[i < axis ? i : i + taken - 1]);
      strides[1].push_back(output.strides[i]);
    }
    return collapse_operands(shape, strides, 1);
  }

  const compute_plugin_tensor &dy, &output;
  int32_t axis = 0, taken = 0;
};

class TakeGradBuilder {
 public:
  TakeGradBuilder(const Op& op, const Dialect& dialect, bool with_text)
      : op_(op),
        dialect_(dialect),
        with_text_(with_text),
        axes_(op),
        dtype_(op.input(0).dtype),
        wide_(computed_in(dtype_)),
        size_(dtype_size(dtype_)),
        nest_(axes_.columns()),
        source_step_(axes_.step().value_or(0)),
        target_step_(axes_.output.strides[axes_.axis]),
        limit_(axes_.output.shape[axes_.axis]) {
    for (int32_t i = 0; i < op.input(1).rank; ++i) rows_ *= op.input(1).shape[i];
    chunks_ = divide_up(rows_, kChunk);
  }

  BuiltKernels build() {
    BuiltKernels built;
    sorted_ = add_sorted_keys(built, op_, dialect_, with_text_);
    built.reports_faults = true;
    parts_at_ = divide_up(built.workspace_bytes, 256) * 256;
    built.workspace_bytes = parts_at_ + (chunks_ > 1 ? chunks_ * 2 * nest_.points() * dtype_size(wide_) : 0);
    add_zeros(built);
    add_sums(built);
    if (chunks_ > 1) add_join(built);
    return built;
  }

 private:
  static std::string read(int32_t word) { return KernelBuilder::index_word(word); }

  // Columns that an item adds together.
  int choose_lanes() const {
    if (nest_.rank == 0 || dialect_.is_host) return 1;
    const int inner = nest_.rank - 1;
    const auto fits = [&](int count) {
      const int32_t alignment = size_ * count;
      const auto is_aligned = [&](int64_t elements) { return elements * size_ % alignment == 0; };
      bool good = nest_.strides[0][inner] == 1 && nest_.strides[1][inner] == 1 && nest_.extents[inner] % count == 0 &&
                  axes_.dy.alignment >= alignment && axes_.output.alignment >= alignment &&
                  (rows_ == 1 || is_aligned(source_step_)) && is_aligned(target_step_) &&
                  is_aligned(nest_.offsets[0]) && is_aligned(nest_.offsets[1]);
      for (int k = 0; k < inner; ++k) good = good && is_aligned(nest_.strides[0][k]) && is_aligned(nest_.strides[1][k]);
      return good;
    };
    int lanes = std::max(16 / size_, 1);
    while (lanes > 1 && !fits(lanes)) lanes /= 2;
    return lanes;
  }

  void add_zeros(BuiltKernels& built) const {
    KernelBuilder builder(dialect_, "take_grad_zeros", with_text_);
    const std::vector<std::vector<int64_t>> strides = {strides_of(axes_.output)};
    LoopNest nest = collapse_operands(shape_of(axes_.output), strides, 0);
    int32_t bytes = size_;
    const int64_t offset_bytes = nest.offsets[0] * size_;
    if (nest.rank == 1 && nest.strides[0][0] == 1) {  // as words
      const int64_t total = nest.extents[0] * size_;
      bytes = 16;
      while (bytes > size_ && (total % bytes != 0 || offset_bytes % bytes != 0 || axes_.output.alignment < bytes))
        bytes /= 2;
      nest.extents[0] = total / bytes;
      if (nest.extents[0] == 1) nest.rank = 0;
    }
    const int64_t points = nest.points(), steps = dialect_.is_host ? 1 : kZerosAtOnce;
    builder.is_wide = needs_wide(nest, std::array{bytes}, points);
    builder.sign(bytes);
    builder.sign(nest.rank);
    builder.pointer(Pointer::kTensor, op_.input_count(), offset_bytes);
    const int32_t points_word = builder.word(points);
    Space space(nest);
    space.add_words(builder, 1);
    const char* storage = bytes >= 4 ? "u32" : bits_storage(bytes);
    const int lanes = bytes >= 4 ? bytes / 4 : 1;
    builder.declare(0, storage, false);
    if (with_text_) {
      const VectorText vector = vector_type(builder, storage, bytes / lanes, lanes);
      builder.body = fill(kTakeGradZeros, {{"group_points", dialect_.group_size * steps},
                                           {"points", read(points_word)},
                                           {"vector", vector.type},
                                           {"word", vector.word},
                                           {"lanes", lanes},
                                           {"steps", steps},
                                           {"group", dialect_.group_size},
                                           {"coordinates", space.coordinates(builder, "c", "i")},
                                           {"to", space.offset(0, "c")}});
    }
    built.add(builder, divide_up(points, dialect_.group_size * steps));
  }

  // What the kernels of sums begin with.
  struct Words {
    int32_t columns, rows, chunks, source_step, target_step;
  };
  Words begin(KernelBuilder& builder, int64_t columns, int64_t points) const {
    const std::array<int32_t, 2> sizes = {size_, size_};
    const std::array<int64_t, 2> along = {(std::abs(source_step_) + 1) * rows_, (std::abs(target_step_) + 1) * limit_};
    builder.is_wide = needs_wide(nest_, sizes, std::max(points, chunks_ * 2 * nest_.points()), along) ||
                      along[0] * size_ > INT32_MAX / 4 || along[1] * size_ > INT32_MAX / 4;
    builder.sign(dtype_);
    builder.sign(nest_.rank);
    builder.pointer(Pointer::kTensor, 0, nest_.offsets[0] * size_);
    builder.pointer(Pointer::kTensor, op_.input_count(), nest_.offsets[1] * size_);
    builder.pointer(Pointer::kWorkspace, 0, sorted_.keys_at);
    builder.pointer(Pointer::kWorkspace, 0, sorted_.positions_at);
    builder.pointer(Pointer::kWorkspace, 0, parts_at_);
    const char* storage = type_text(dtype_).storage;
    builder.declare(0, storage, true);
    builder.declare(1, storage, false);
    builder.declare(2, "u32", true);
    builder.declare(3, "u32", true);
    builder.declare(4, type_text(wide_).storage, false);
    return {builder.word(columns), builder.word(rows_), builder.word(chunks_), builder.word(source_step_),
            builder.word(target_step_)};
  }

  // How the items of a kernel add, to `sum` and `lost`, which `at` follows.
  struct Adding {
    std::string term, total, identity;
    bool is_compensated;
  };
  Adding adding(KernelBuilder& builder, std::string_view at) const {
    Functions& functions = builder.functions();
    const std::string sum = cat("sum", at), lost = cat("lost", at);
    Adding adding{cat(sum, " = ", combine_text(Combination::sum, wide_, sum, "value", functions), ";"), sum,
                  identity_text(Combination::sum, wide_), is_compensated_sum(Combination::sum, wide_)};
    if (adding.is_compensated) {
      adding.term = cat(functions.need("two_sum", wide_), "(&", sum, ", &", lost, ", value);");
      adding.total = cat("total_", type_text(wide_).name, "(", sum, ", ", lost, ")");
    }
    return adding;
  }

  void add_sums(BuiltKernels& built) const {
    KernelBuilder builder(dialect_, "take_grad_sums", with_text_);
    const int lanes = choose_lanes();
    const int64_t columns = nest_.points() / lanes, points = chunks_ * columns;
    const Words words = begin(builder, columns, points);
    builder.sign(lanes);
    const int32_t points_word = builder.word(points);
    Space space(nest_);
    space.add_words(builder, lanes);
    if (with_text_) {
      Functions& functions = builder.functions();
      const VectorText vector = vector_type(builder, type_text(dtype_).storage, size_, lanes);
      const Adding add = adding(builder, "[v]");
      const auto part = [&](int which) {
        return fill(kTakeGradPart, {{"lanes", lanes}, {"which", which}, {"total", add.total}});
      };
      std::string reset = cat("sum[v] = ", add.identity, ";");
      if (add.is_compensated) reset += cat("\nlost[v] = ", add.identity, ";");
      builder.body = fill(
          kTakeGradSums,
          {{"group", dialect_.group_size},
           {"columns", read(words.columns)},
           {"points", read(points_word)},
           {"coordinates", space.coordinates(builder, "c", "column")},
           {"from", space.offset(0, "c")},
           {"to", space.offset(1, "c")},
           {"source_step", read(words.source_step)},
           {"target_step", read(words.target_step)},
           {"rows", read(words.rows)},
           {"chunk", kChunk},
           {"steps", kRowsAtOnce},
           {"lanes", lanes},
           {"type", type_text(wide_).value},
           {"is_compensated", add.is_compensated},
           {"reset", reset},
           {"vector", vector.type},
           {"word", vector.word},
           {"value", convert_text(value_of_element(dtype_, "loaded[s].e[v]"), dtype_, wide_, functions)},
           {"term", add.term},
           {"store_end", part(0)},
           {"store_begin", part(1)},
           {"store", fill(kTakeGradRow,
                          {{"vector", vector.type},
                           {"lanes", lanes},
                           {"word", vector.word},
                           {"result", element_of_value(dtype_, convert_text(add.total, wide_, dtype_, functions))}})}});
    }
    built.add(builder, divide_up(points, dialect_.group_size));
  }

  void add_join(BuiltKernels& built) const {
    KernelBuilder builder(dialect_, "take_grad_join", with_text_);
    constexpr int64_t kItems = 4;  // of a column
    const int64_t columns = nest_.points(), group = dialect_.group_size;
    const auto across = static_cast<int64_t>(
        std::bit_ceil(static_cast<uint64_t>(std::min<int64_t>(columns, std::max<int64_t>(group / kItems, 1)))));
    const int64_t blocks = divide_up(columns, across), groups = (chunks_ - 1) * blocks;
    const Words words = begin(builder, columns, groups);
    builder.sign(across);
    const int32_t blocks_word = builder.word(blocks);
    Space space(nest_);
    space.add_words(builder, 1);
    if (with_text_) {
      Functions& functions = builder.functions();
      const Adding add = adding(builder, "");
      builder.body = fill(kTakeGradJoin,
                          {{"type", type_text(wide_).value},
                           {"group", group},
                           {"across", across},
                           {"along", group / across},
                           {"blocks", read(blocks_word)},
                           {"columns", read(words.columns)},
                           {"chunk", kChunk},
                           {"chunks", read(words.chunks)},
                           {"identity", add.identity},
                           {"is_compensated", add.is_compensated},
                           {"term", add.term},
                           {"total", add.total},
                           {"combined", combine_text(Combination::sum, wide_, "p", "q", functions)},
                           {"coordinates", space.coordinates(builder, "c", "column")},
                           {"to", space.offset(1, "c")},
                           {"target_step", read(words.target_step)},
                           {"result", element_of_value(dtype_, convert_text("reduced", wide_, dtype_, functions))}});
    }
    built.add(builder, groups);
  }

  const Op& op_;
  const Dialect& dialect_;
  const bool with_text_;
  const TakenAxes axes_;
  const compute_dtype dtype_, wide_;  // of the elements, and of their sums
  const int32_t size_;
  const LoopNest nest_;  // the columns; operands: dy, output
  const int64_t source_step_, target_step_, limit_;
  int64_t rows_ = 1, chunks_ = 1;  // indices, and chunks of them
  SortedKeys sorted_;
  int64_t parts_at_ = 0;
};

}  // namespace

BuiltKernels build_take_grad(const Op& op, const Dialect& dialect, bool with_text) {
  return TakeGradBuilder(op, dialect, with_text).build();
}

std::optional<Refusal> refuse_take_grad(const Op& op, const Dialect& dialect) {
  // Without an order of sums atomic operations are faster. Those of integers have none.
  if (!op.deterministic() && op.integer("deterministic", 0) == 0)
    return Refusal{COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED, -1, "take_grad: no kernel adds in any order", ""};
  if (!is_float(part_of(op.input(0).dtype)))
    return Refusal{COMPUTE_PLUGIN_REFUSE_DTYPE, 0, "take_grad: no kernel adds integers in order", ""};
  if (!TakenAxes(op).step())
    return Refusal{COMPUTE_PLUGIN_REFUSE_LAYOUT, 0, "take_grad: the rows of dy are not in steps", ""};
  return refuse_sorted_rows(op, dialect);
}

}  // namespace compute::common
