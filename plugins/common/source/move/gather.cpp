// SPDX-License-Identifier: Apache-2.0
// gather, and gather_at and gather_nd, which core requests by name, go over the index space with the indexed axes of
// the source held at 0; the indices put it in place.
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

namespace {

constexpr int kIndices = 3;  // the first operand, and the first parameter, with indices

// Axes of the source that are indexed, and the indices of each over the index space.
struct Indexed {
  size_t first = 0, axes = 1;
  std::vector<int32_t> inputs = {1};               // which have the indices
  std::vector<int64_t> offsets = {0};              // of the first indices, in elements
  std::vector<int64_t> source = {};                // the strides of the source over the index space
  std::vector<std::vector<int64_t>> strides = {};  // of the indices
};

Indexed indexed_axes(const Op& op) {
  Indexed found;
  const compute_plugin_tensor &source = op.input(0), &output = op.output(0);
  const auto rank = static_cast<size_t>(output.rank);
  const int64_t axis = op.integer("axis", 0);
  found.first = static_cast<size_t>(axis < 0 ? axis + source.rank : axis);
  found.source = strides_of(source);
  if (op.name() == "gather") {
    found.source[found.first] = 0;
    found.strides = {strides_of(op.input(1))};
    return found;
  }
  const bool in_one = op.name() == "gather_nd";
  const compute_plugin_tensor& all = op.input(1);
  if (in_one) {
    found.axes = static_cast<size_t>(all.shape[all.rank - 1]);
  } else {
    for (found.axes = 0; static_cast<int32_t>(found.axes) + 1 < op.input_count();) {
      if (op.input(static_cast<int32_t>(found.axes) + 1).dtype == COMPUTE_DTYPE_NONE) break;
      ++found.axes;
    }
  }
  // The axes of the indices take the place of those that are indexed.
  const size_t places = rank + found.axes - static_cast<size_t>(source.rank);
  const auto at = found.source.begin() + static_cast<std::ptrdiff_t>(found.first);
  found.source.erase(at, at + static_cast<std::ptrdiff_t>(found.axes));
  found.source.insert(found.source.begin() + static_cast<std::ptrdiff_t>(found.first), places, 0);
  found.inputs.clear();
  found.offsets.clear();
  for (size_t i = 0; i < found.axes; ++i) {
    found.inputs.push_back(in_one ? 1 : static_cast<int32_t>(i) + 1);
    const compute_plugin_tensor& indices = op.input(found.inputs[i]);
    found.offsets.push_back(in_one ? static_cast<int64_t>(i) * all.strides[all.rank - 1] : 0);
    const size_t count = static_cast<size_t>(indices.rank) - (in_one ? 1 : 0);
    std::vector<int64_t> strides(rank, 0);
    for (size_t k = 0; k < count; ++k)
      if (indices.shape[k] != 1) strides[found.first + places - count + k] = indices.strides[k];
    found.strides.push_back(std::move(strides));
  }
  return found;
}

}  // namespace

std::optional<Refusal> refuse_several_indices(const Op& op, const Dialect&) {
  const compute_plugin_tensor& source = op.input(0);
  const Indexed indexed = indexed_axes(op);
  const int64_t* const strides = source.strides + indexed.first;
  if (indexed.axes < 2 || std::any_of(strides, strides + indexed.axes, [](int64_t stride) { return stride < 0; }))
    return Refusal{COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED, 0, "one axis, or one that is turned", ""};
  for (const int32_t input : indexed.inputs) {
    const compute_dtype dtype = op.input(input).dtype;
    if (dtype != COMPUTE_DTYPE_INT32 && dtype != COMPUTE_DTYPE_INT64)
      return Refusal{COMPUTE_PLUGIN_REFUSE_DTYPE, input, "indices of several axes are int32 or int64", ""};
  }
  return std::nullopt;
}

BuiltKernels build_gather(const Op& op, const Dialect& dialect, bool with_text) {
  BuiltKernels built;
  built.reports_faults = true;
  const compute_plugin_tensor &source = op.input(0), &output = op.output(0);
  const bool several = op.name() != "gather";
  const Indexed indexed = indexed_axes(op);
  const size_t first = indexed.first, axes = indexed.axes;
  KernelBuilder builder(dialect, op.name(), with_text);
  // operands: source, output, position, indices
  std::vector<std::vector<int64_t>> strides = {indexed.source, strides_of(output), row_major(shape_of(output))};
  strides.insert(strides.end(), indexed.strides.begin(), indexed.strides.end());
  const std::vector<int64_t> axis_strides(source.strides + first, source.strides + first + axes);
  const int64_t limit = source.shape[first];
  int64_t reach = 0;  // of the indices
  for (size_t i = 0; i < axes; ++i) reach += source.shape[first + i] * std::abs(axis_strides[i]);
  const LoopNest nest = collapse_operands(shape_of(output), strides, 1);
  const int32_t size = dtype_size(output.dtype);
  std::vector<int32_t> sizes = {size, size, 1};
  for (const int32_t input : indexed.inputs) sizes.push_back(dtype_size(op.input(input).dtype));
  std::vector<int64_t> further(sizes.size(), 0);
  further[0] = reach;
  builder.is_wide = needs_wide(nest, sizes, nest.points(), further);
  // One index for several elements that follow one another.
  int lanes = 1;
  if (nest.rank > 0 && !dialect.is_host) {
    const int inner = nest.rank - 1;
    const auto fits = [&](int count) {
      const int32_t alignment = vector_alignment(size, count);
      const auto is_aligned = [&](int64_t elements) { return elements * size % alignment == 0; };
      bool good = nest.strides[0][inner] == 1 && nest.strides[1][inner] == 1 && nest.extents[inner] % count == 0 &&
                  source.alignment >= alignment && output.alignment >= alignment &&
                  std::all_of(axis_strides.begin(), axis_strides.end(), is_aligned) && is_aligned(nest.offsets[0]) &&
                  is_aligned(nest.offsets[1]);
      for (size_t i = kIndices; i < nest.strides.size(); ++i) good = good && nest.strides[i][inner] == 0;
      for (int k = 0; k < inner; ++k) good = good && is_aligned(nest.strides[0][k]) && is_aligned(nest.strides[1][k]);
      return good;
    };
    for (lanes = 16 / size; lanes > 1 && !fits(lanes);) lanes /= 2;
    lanes = std::max(lanes, 1);
  }
  builder.sign(size);
  builder.sign(nest.rank);
  builder.sign(lanes);
  for (size_t i = 0; i < axes; ++i) builder.sign(sizes[kIndices + i]);
  const char* storage = bits_storage(size);
  builder.pointer(Pointer::kTensor, 0, nest.offsets[0] * size);
  builder.pointer(Pointer::kTensor, op.input_count(), nest.offsets[1] * size);
  builder.pointer(Pointer::kFault, 0, 0);
  for (size_t i = 0; i < axes; ++i)
    builder.pointer(Pointer::kTensor, indexed.inputs[i],
                    (nest.offsets[kIndices + i] + indexed.offsets[i]) * sizes[kIndices + i]);
  const int64_t vectors = nest.points() / lanes, steps = choose_steps(vectors, dialect);
  builder.sign(steps);
  const int32_t vectors_word = builder.word(vectors), limit_word = builder.word(limit),
                axis_word = builder.word(several ? 1 : axis_strides[0]), position_word = builder.word(nest.offsets[2]);
  std::vector<int32_t> axis_words;  // of several axes: the extent of each, then its stride
  for (size_t i = 0; several && i < axes; ++i) {
    axis_words.push_back(builder.word(source.shape[first + i]));
    axis_words.push_back(builder.word(axis_strides[i]));
  }
  Space space(nest);
  space.add_words(builder, lanes);
  builder.declare(0, storage, true);
  builder.declare(1, storage, false);
  for (size_t i = 0; i < axes; ++i)
    builder.declare(static_cast<int32_t>(kIndices + i), sizes[kIndices + i] == 4 ? "i32" : "i64", true);
  if (with_text) {
    std::string add_indices;
    for (size_t i = 0; several && i < axes; ++i)
      add_indices += fill(kAddIndex, {{"number", static_cast<int64_t>(kIndices + i)},
                                      {"index_at", space.offset(static_cast<int>(kIndices + i), "c")},
                                      {"limit", builder.word_text(axis_words[2 * i])},
                                      {"axis_stride", builder.word_text(axis_words[2 * i + 1])}});
    builder.globals += kReportIndex;
    builder.body = fill(kGather, {{"group", dialect.group_size},
                                  {"group_vectors", dialect.group_size * steps},
                                  {"steps", steps},
                                  {"vectors", builder.index_word(vectors_word)},
                                  {"coordinates", space.coordinates(builder, "c", "i")},
                                  {"index_at", space.offset(kIndices, "c")},
                                  {"several", several},
                                  {"add_indices", add_indices},
                                  {"limit", builder.word_text(limit_word)},
                                  {"position", builder.index_word(position_word), " + ", space.offset(2, "c")},
                                  {"element", lanes > 1 ? vector_type(builder, storage, size, lanes).word : storage},
                                  {"to", space.offset(1, "c")},
                                  {"from", space.offset(0, "c")},
                                  {"axis_stride", builder.index_word(axis_word)}});
  }
  built.add(builder, divide_up(vectors, dialect.group_size * steps));
  return built;
}

}  // namespace compute::common
