// SPDX-License-Identifier: Apache-2.0
// gather and gather_nd, which core requests by name, go over the index space with the indexed axes of the source held
// at 0; the indices put it in place.
#include <algorithm>
#include <array>

#include "plugins/common/source/builder/kernel_builder.hpp"
#include "plugins/common/source/builder/report_index.hpp"
#include "plugins/common/source/move/ops.hpp"

namespace compute::common {
namespace {

#include "plugins/common/source/move/gather.inc"

}  // namespace

std::vector<int64_t> row_major(std::span<const int64_t> shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= shape[i];
  }
  return strides;
}

int64_t choose_steps(int64_t vectors, const Dialect& dialect) {
  const int64_t resident = int64_t{dialect.compute_units} * dialect.groups_per_unit * dialect.group_size;
  return dialect.is_host || vectors < resident * kSteps ? 1 : kSteps;
}

std::optional<Refusal> refuse_gather_nd(const Op& op, const Dialect&) {
  const compute_plugin_tensor &source = op.input(0), &indices = op.input(1);
  const int64_t axes = indices.shape[indices.rank - 1];
  if (axes < 2 || std::any_of(source.strides, source.strides + axes, [](int64_t stride) { return stride < 0; }))
    return Refusal{COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED, 0, "gather_nd: one axis, or one that is turned", ""};
  if (indices.dtype != COMPUTE_DTYPE_INT32 && indices.dtype != COMPUTE_DTYPE_INT64)
    return Refusal{COMPUTE_PLUGIN_REFUSE_DTYPE, 1, "gather_nd: indices are int32 or int64", ""};
  return std::nullopt;
}

BuiltKernels build_gather(const Op& op, const Dialect& dialect, bool with_text) {
  BuiltKernels built;
  built.reports_faults = true;
  const compute_plugin_tensor &source = op.input(0), &indices = op.input(1), &output = op.output(0);
  const bool several = op.name() == "gather_nd";
  const auto first = several ? size_t{0} : static_cast<size_t>(op.integer("axis", 0)),
             axes = several ? static_cast<size_t>(indices.shape[indices.rank - 1]) : size_t{1};
  KernelBuilder builder(dialect, op.name(), with_text);
  // operands: source, indices, output, position
  std::vector<std::vector<int64_t>> strides = {strides_of(source), strides_of(indices), strides_of(output),
                                               row_major(shape_of(output))};
  const std::vector<int64_t> axis_strides(source.strides + first, source.strides + first + axes);
  const int64_t limit = source.shape[first], index_step = indices.strides[std::max(indices.rank - 1, 0)];
  int64_t reach = 0;  // of the indices
  for (size_t i = 0; i < axes; ++i) reach += source.shape[first + i] * std::abs(axis_strides[i]);
  if (several) {
    // Axes of the indices but the last, then those of the source that are not indexed.
    strides[0].erase(strides[0].begin(), strides[0].begin() + static_cast<std::ptrdiff_t>(axes));
    strides[1].pop_back();
    strides[0].insert(strides[0].begin(), strides[1].size(), 0);
    strides[1].resize(strides[0].size(), 0);
  } else {
    strides[0][first] = 0;
  }
  const LoopNest nest = collapse_operands(shape_of(output), strides, 2);
  const int32_t size = dtype_size(output.dtype), index_size = dtype_size(indices.dtype);
  const std::array<int32_t, 4> sizes = {size, index_size, size, 1};
  builder.is_wide =
      needs_wide(nest, sizes, nest.points(),
                 std::array<int64_t, 4>{reach, several ? std::abs(index_step) * static_cast<int64_t>(axes) : 0});
  // One index for several elements that follow one another.
  int lanes = 1;
  if (nest.rank > 0 && !dialect.is_host) {
    const int inner = nest.rank - 1;
    const auto fits = [&](int count) {
      const int32_t alignment = vector_alignment(size, count);
      const auto is_aligned = [&](int64_t elements) { return elements * size % alignment == 0; };
      bool good = nest.strides[0][inner] == 1 && nest.strides[1][inner] == 0 && nest.strides[2][inner] == 1 &&
                  nest.extents[inner] % count == 0 && source.alignment >= alignment && output.alignment >= alignment &&
                  std::all_of(axis_strides.begin(), axis_strides.end(), is_aligned) && is_aligned(nest.offsets[0]) &&
                  is_aligned(nest.offsets[2]);
      for (int k = 0; k < inner; ++k) good = good && is_aligned(nest.strides[0][k]) && is_aligned(nest.strides[2][k]);
      return good;
    };
    for (lanes = 16 / size; lanes > 1 && !fits(lanes);) lanes /= 2;
    lanes = std::max(lanes, 1);
  }
  builder.sign(size);
  builder.sign(index_size);
  builder.sign(nest.rank);
  builder.sign(lanes);
  builder.sign(several ? static_cast<int64_t>(axes) : 0);
  const char* storage = bits_storage(size);
  builder.pointer(Pointer::kTensor, 0, nest.offsets[0] * size);
  builder.pointer(Pointer::kTensor, 1, nest.offsets[1] * index_size);
  builder.pointer(Pointer::kTensor, 2, nest.offsets[2] * size);
  builder.pointer(Pointer::kFault, 0, 0);
  const int64_t vectors = nest.points() / lanes, steps = choose_steps(vectors, dialect);
  builder.sign(steps);
  const int32_t vectors_word = builder.word(vectors), limit_word = builder.word(limit),
                axis_word = builder.word(several ? 1 : axis_strides[0]), position_word = builder.word(nest.offsets[3]),
                step_word = builder.word(index_step);
  std::string add_indices;
  for (size_t i = 0; several && i < axes; ++i) {
    const int32_t extent = builder.word(source.shape[i]), stride = builder.word(axis_strides[i]);
    if (with_text)
      add_indices += fill(kAddIndex, {{"number", static_cast<int64_t>(i)},
                                      {"step", builder.index_word(step_word)},
                                      {"limit", builder.word_text(extent)},
                                      {"axis_stride", builder.word_text(stride)}});
  }
  Space space(nest);
  space.add_words(builder, lanes);
  builder.declare(0, storage, true);
  builder.declare(1, index_size == 4 ? "i32" : "i64", true);
  builder.declare(2, storage, false);
  if (with_text) {
    builder.globals += kReportIndex;
    builder.body = fill(kGather, {{"group", dialect.group_size},
                                  {"group_vectors", dialect.group_size * steps},
                                  {"steps", steps},
                                  {"vectors", builder.index_word(vectors_word)},
                                  {"coordinates", space.coordinates(builder, "c", "i")},
                                  {"index_at", space.offset(1, "c")},
                                  {"several", several},
                                  {"add_indices", add_indices},
                                  {"limit", builder.word_text(limit_word)},
                                  {"position", builder.index_word(position_word), " + ", space.offset(3, "c")},
                                  {"element", lanes > 1 ? vector_type(builder, storage, size, lanes).word : storage},
                                  {"to", space.offset(2, "c")},
                                  {"from", space.offset(0, "c")},
                                  {"axis_stride", builder.index_word(axis_word)}});
  }
  built.add(builder, divide_up(vectors, dialect.group_size * steps));
  return built;
}

}  // namespace compute::common
