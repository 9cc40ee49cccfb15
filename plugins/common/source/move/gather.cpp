// SPDX-License-Identifier: Apache-2.0
// gather goes over the index space with the axis of the source held at 0; the index puts it in place.
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

BuiltKernels build_gather(const Op& op, const Dialect& dialect, bool with_text) {
  BuiltKernels built;
  built.reports_faults = true;
  const compute_plugin_tensor &source = op.input(0), &indices = op.input(1), &output = op.output(0);
  const auto axis = static_cast<size_t>(op.integer("axis", 0));
  KernelBuilder builder(dialect, "gather", with_text);
  // operands: source, indices, output, position
  std::vector<std::vector<int64_t>> strides = {strides_of(source), strides_of(indices), strides_of(output),
                                               row_major(shape_of(output))};
  const int64_t axis_stride = strides[0][axis], limit = source.shape[axis];
  strides[0][axis] = 0;
  const LoopNest nest = collapse_operands(shape_of(output), strides, 2);
  const int32_t size = dtype_size(output.dtype), index_size = dtype_size(indices.dtype);
  const std::array<int32_t, 4> sizes = {size, index_size, size, 1};
  builder.is_wide = needs_wide(nest, sizes, nest.points(), std::array<int64_t, 4>{limit * std::abs(axis_stride)});
  // One index for several elements that follow one another.
  int lanes = 1;
  if (nest.rank > 0 && !dialect.is_host) {
    const int inner = nest.rank - 1;
    const auto fits = [&](int count) {
      const int32_t alignment = vector_alignment(size, count);
      const auto is_aligned = [&](int64_t elements) { return elements * size % alignment == 0; };
      bool good = nest.strides[0][inner] == 1 && nest.strides[1][inner] == 0 && nest.strides[2][inner] == 1 &&
                  nest.extents[inner] % count == 0 && source.alignment >= alignment && output.alignment >= alignment &&
                  is_aligned(axis_stride) && is_aligned(nest.offsets[0]) && is_aligned(nest.offsets[2]);
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
  const char* storage = bits_storage(size);
  builder.pointer(Pointer::kTensor, 0, nest.offsets[0] * size);
  builder.pointer(Pointer::kTensor, 1, nest.offsets[1] * index_size);
  builder.pointer(Pointer::kTensor, 2, nest.offsets[2] * size);
  builder.pointer(Pointer::kFault, 0, 0);
  const int64_t vectors = nest.points() / lanes, steps = choose_steps(vectors, dialect);
  builder.sign(steps);
  const int32_t vectors_word = builder.word(vectors), limit_word = builder.word(limit),
                axis_word = builder.word(axis_stride), position_word = builder.word(nest.offsets[3]);
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
