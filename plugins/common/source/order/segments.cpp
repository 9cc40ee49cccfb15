// SPDX-License-Identifier: Apache-2.0
// segmented_reduce: a work group for some columns of a segment, or of several short ones.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>

#include "plugins/common/source/builder/report_index.hpp"
#include "plugins/common/source/expressions/combination.hpp"
#include "plugins/common/source/order/ops.hpp"

namespace compute::common {
namespace {

#include "plugins/common/source/order/segments.inc"

// Along axis 0; the other axes are the columns.
int64_t first_stride(const compute_plugin_tensor& tensor) { return tensor.strides[0]; }
std::vector<int64_t> column_strides(const compute_plugin_tensor& tensor) {
  return {tensor.strides + 1, tensor.strides + tensor.rank};
}

}  // namespace

BuiltKernels build_segments(const Op& op, const Dialect& dialect, bool with_text) {
  const compute_plugin_tensor &x = op.input(0), &offsets = op.input(1), &output = op.output(0);
  const compute_dtype dtype = x.dtype, wide = op.dtype("accumulator");
  const Combination kind = combination_of(op.text("kind"));
  KernelBuilder builder(dialect, "segmented_reduce", with_text);
  const LoopNest nest =
      collapse_operands(shape_of(output).subspan(1), std::vector{column_strides(x), column_strides(output)}, 1);
  const std::array<int32_t, 2> sizes = {dtype_size(dtype), dtype_size(output.dtype)};
  const int64_t rows = x.shape[0], segments = output.shape[0], columns = nest.points();
  const int64_t across =
      static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::min<int64_t>(columns, dialect.group_size))));
  // As many items as a segment has rows on average, but a warp at least: some segments may be much longer.
  const int64_t average = divide_up(rows, std::max<int64_t>(segments, 1));
  const int64_t least = std::max(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(average))), kWarp / across);
  const int64_t along = std::clamp<int64_t>(least, 1, dialect.group_size / across);
  const int64_t slots = dialect.group_size / (across * along), blocks = divide_up(columns, across);
  const std::array<int64_t, 2> reach = {(std::abs(first_stride(x)) + 1) * rows,
                                        (std::abs(first_stride(output)) + 1) * segments};
  builder.is_wide = needs_wide(nest, sizes, segments * blocks, reach) || reach[0] * sizes[0] > INT32_MAX / 4 ||
                    reach[1] * sizes[1] > INT32_MAX / 4 ||
                    (std::abs(first_stride(offsets)) + 1) * segments * 8 > INT32_MAX / 4;
  for (const int64_t value : {int64_t{dtype}, int64_t{wide}, int64_t{output.dtype}, static_cast<int64_t>(kind),
                              int64_t{nest.rank}, across, along})
    builder.sign(value);
  builder.pointer(Pointer::kTensor, 0, nest.offsets[0] * sizes[0]);
  builder.pointer(Pointer::kTensor, 1, 0);
  builder.pointer(Pointer::kTensor, 2, nest.offsets[1] * sizes[1]);
  builder.pointer(Pointer::kFault, 0, 0);
  const int32_t blocks_word = builder.word(blocks), columns_word = builder.word(columns),
                rows_word = builder.word(rows), segments_word = builder.word(segments),
                row_step = builder.word(first_stride(x)), offset_step = builder.word(first_stride(offsets)),
                output_step = builder.word(first_stride(output));
  Space space(nest);
  space.add_words(builder, 1);
  builder.declare(0, type_text(dtype).storage, true);
  builder.declare(1, "i64", true);
  builder.declare(2, type_text(output.dtype).storage, false);
  if (with_text) {
    Functions& functions = builder.functions();
    builder.globals += kReportIndex;
    constexpr uint8_t zero[16] = {};
    const bool is_compensated = is_compensated_sum(kind, wide);
    const std::string element = cat("x0[base + r * ", KernelBuilder::index_word(row_step), "]");
    std::string term = cat("sum = ", combine_text(kind, wide, "sum", "value", functions), ";\n"), total = "sum";
    if (is_compensated) {
      term = cat(functions.need("two_sum", wide), "(&sum, &lost, value);\n");
      total = cat("total_", type_text(wide).name, "(sum, lost)");
    }
    builder.body =
        fill(kSegments,
             {{"type", type_text(wide).value},
              {"group", dialect.group_size},
              {"across", across},
              {"along", along},
              {"slots", slots},
              {"segments", KernelBuilder::index_word(segments_word)},
              {"blocks", KernelBuilder::index_word(blocks_word)},
              {"columns", KernelBuilder::index_word(columns_word)},
              {"rows", KernelBuilder::word_text(rows_word)},
              {"offset_step", KernelBuilder::index_word(offset_step)},
              {"output_step", KernelBuilder::index_word(output_step)},
              {"coordinates", space.coordinates(builder, "c", "column")},
              {"base", space.offset(0, "c")},
              {"identity", identity_text(kind, wide)},
              {"is_compensated", is_compensated},
              {"value", convert_text(value_of_element(dtype, element), dtype, wide, functions)},
              {"term", term},
              {"total", total},
              {"combined", combine_text(kind, wide, "p", "q", functions)},
              {"to", space.offset(1, "c")},
              {"empty", kind == Combination::sum ? constant_text(wide, zero) : identity_text(kind, wide)},
              {"result", element_of_value(output.dtype, convert_text("reduced", wide, output.dtype, functions))}});
  }
  BuiltKernels built;
  built.reports_faults = true;
  built.add(builder, divide_up(segments, slots) * blocks);
  return built;
}

}  // namespace compute::common
