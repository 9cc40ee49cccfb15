// SPDX-License-Identifier: Apache-2.0
// scatter goes over the index space with the axis of the output held at 0; the index puts it in place.
//
// It has four forms: plain stores (set), atomic operations, those on a line of the output in local memory, and lines:
// two points of the index space meet in one element only if they differ along the axis alone, so a work item that
// follows the axis in order needs no atomics and gives the same bits every time.
#include <algorithm>
#include <array>
#include <bit>

#include "plugins/common/source/builder/kernel_builder.hpp"
#include "plugins/common/source/builder/report_index.hpp"
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

constexpr const char *kGlobal = "COMPUTE_GLOBAL", *kLocal = "COMPUTE_LOCAL_POINTER";

// A function that combines an element of memory with `y` atomically. Only words are in local memory.
std::string atomic_text(Combine combine, compute_dtype dtype, KernelBuilder& builder, const char* space = kGlobal,
                        const std::string& name = "compute_combine") {
  Functions& functions = builder.functions();
  const char* storage = type_text(dtype).storage;
  const auto by_device = [&](std::string_view operation, std::string_view pointer) {
    return fill(
        kCombineByDevice,
        {{"name", name}, {"space", space}, {"storage", storage}, {"operation", operation}, {"pointer", pointer}});
  };
  if (is_complex(dtype) && combine == Combine::add) {
    const compute_dtype part = part_of(dtype);
    return atomic_text(combine, part, builder, space, "compute_combine_part") +
           fill(kCombineParts, {{"name", name}, {"storage", storage}, {"part", type_text(part).storage}});
  }
  if (dtype == COMPUTE_DTYPE_INT32 && (combine == Combine::add || combine == Combine::min || combine == Combine::max)) {
    const char* operation = combine == Combine::add ? "ADD" : combine == Combine::min ? "MIN" : "MAX";
    return by_device(cat("COMPUTE_ATOMIC_", operation, "_I32"), cat("(volatile ", space, " i32*)"));
  }
  const Dialect& dialect = builder.dialect();
  if (dtype == COMPUTE_DTYPE_FLOAT32 && combine == Combine::add) {
    const bool is_cuda = dialect.language == Language::kCudaC;
    if (space == kGlobal && (is_cuda || dialect.has_ptx)) return fill(kAddByPtx, {{"name", name}});
    if (is_cuda) return by_device("COMPUTE_ATOMIC_ADD_F32", "");
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

// Lines of the output that are updated in local memory: where the elements of a line follow one another, as do its
// indices and updates, and these are not few.
constexpr int64_t kMostLineBytes = 16 << 10;

bool is_local(const Op& op, Combine combine, const Dialect& dialect) {
  const compute_plugin_tensor &indices = op.input(0), &updates = op.input(1), &output = op.output(0);
  const auto axis = static_cast<size_t>(op.integer("axis", 0));
  const int64_t terms = indices.shape[axis], limit = output.shape[axis];
  int64_t lines = 1;
  for (int32_t i = 0; i < indices.rank; ++i) lines *= static_cast<size_t>(i) == axis ? 1 : indices.shape[i];
  return combine != Combine::set && !dialect.is_host && dtype_size(output.dtype) == 4 &&
         limit * 4 <= std::min(kMostLineBytes, dialect.local_memory_bytes / 2) && limit <= terms * 4 &&
         terms >= dialect.group_size && lines >= dialect.compute_units && indices.strides[axis] == 1 &&
         updates.strides[axis] == 1 && output.strides[axis] == 1;
}

}  // namespace

BuiltKernels build_scatter(const Op& op, const Dialect& dialect, bool with_text) {
  BuiltKernels built;
  built.reports_faults = true;
  const compute_plugin_tensor &indices = op.input(0), &updates = op.input(1), &output = op.output(0);
  const auto axis = static_cast<size_t>(op.integer("axis", 0));
  const Combine combine = combine_of(op.text("reduction"));
  const bool by_lines = op.deterministic() || (combine != Combine::set && !has_atomic(combine, output.dtype, dialect));
  const bool locally = !by_lines && is_local(op, combine, dialect);
  KernelBuilder builder(dialect, by_lines ? "scatter_lines" : locally ? "scatter_local" : "scatter", with_text);
  // operands: indices, updates, output, position
  std::vector<int64_t> shape(indices.shape, indices.shape + indices.rank);
  std::vector<std::vector<int64_t>> strides = {strides_of(indices), strides_of(updates), strides_of(output),
                                               row_major(shape)};
  const int64_t axis_stride = strides[2][axis], limit = output.shape[axis], line = shape[axis];
  strides[2][axis] = 0;
  int64_t line_strides[4];
  for (size_t i = 0; i < 4; ++i) line_strides[i] = strides[i][axis];
  if (by_lines || locally) shape[axis] = 1;
  const LoopNest nest = collapse_operands(shape, strides, 1);
  const int32_t size = dtype_size(output.dtype), index_size = dtype_size(indices.dtype);
  const std::array<int32_t, 4> sizes = {index_size, size, size, 1};
  std::array<int64_t, 4> further = {0, 0, limit * std::abs(axis_stride), 0};
  for (size_t i = 0; i < 4 && (by_lines || locally); ++i) further[i] += std::abs(line_strides[i]) * line;
  builder.is_wide = needs_wide(nest, sizes, nest.points(), further);
  const compute_dtype dtype = output.dtype;
  builder.sign(static_cast<int64_t>(combine));
  builder.sign(combine == Combine::set ? -size : dtype);
  const int64_t steps = by_lines ? 1 : locally ? kSteps : choose_steps(nest.points(), dialect);
  const auto local_size = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(limit)));
  if (locally) builder.sign(local_size);
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
  if (with_text && locally) {
    builder.globals += kReportIndex;
    builder.globals += atomic_text(combine, dtype, builder, kLocal);
    builder.body = fill(kScatterLocal, {{"storage", storage},
                                        {"size", local_size},
                                        {"limit", builder.word_text(limit_word)},
                                        {"line", builder.index_word(line_word)},
                                        {"coordinates", space.coordinates(builder, "c", "place")},
                                        {"index_at", space.offset(0, "c")},
                                        {"update_at", space.offset(1, "c")},
                                        {"to", space.offset(2, "c")},
                                        {"group", dialect.group_size},
                                        {"steps", steps},
                                        {"position", builder.index_word(position_word), " + ", space.offset(3, "c")},
                                        {"position_step", builder.index_word(line_words[3])}});
  } else if (with_text) {
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
  built.add(builder, locally ? nest.points() : divide_up(nest.points(), dialect.group_size * steps));
  return built;
}

}  // namespace compute::common
