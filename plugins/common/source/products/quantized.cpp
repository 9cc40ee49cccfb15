// SPDX-License-Identifier: Apache-2.0
// quantized_matmul of a few lines, which core requests by name. It takes as long as reading the weights.
#include <algorithm>
#include <cstdlib>

#include "plugins/common/op/quantized.hpp"
#include "plugins/common/source/products/ops.hpp"

namespace compute::common {
namespace {

#include "plugins/common/source/products/quantized.inc"

constexpr int64_t kMostLines = 8, kMostLinesOfGpu = 4;  // for more, a dequantised copy and its product are faster
constexpr int kPackedWord = 16, kLoadedX = 4;           // of weights; elements of x

enum { kX, kWeight, kScales, kOffsets };

// How a GPU's work items share the rows of weights.
struct Shares {
  int rows = 1;       // of a work item
  int along = kWarp;  // work items along a row
};

int64_t words_of(const QuantizedProduct& p) { return p.blocks() * 32 * p.bits / 8 / kPackedWord; }

// Several rows of a work item read x once. Small matrices need all work items that there are, and short rows would
// leave some idle.
Shares choose_shares(const QuantizedProduct& p, const Dialect& dialect) {
  const int64_t words = words_of(p), items = int64_t{2} * dialect.compute_units * dialect.group_size;
  Shares shares;
  shares.rows = p.m == 1 ? 4 : p.m <= 4 ? 2 : 1;
  while (shares.rows > 1 && p.n * words / shares.rows < items) shares.rows /= 2;
  shares.along = std::min(kWarp, dialect.group_size);
  const auto idle = [&](int64_t along) { return divide_up(words, along) * along - words; };
  while (shares.along > 8 && words < 4 * shares.along && idle(shares.along / 2) < idle(shares.along)) shares.along /= 2;
  while (shares.along < dialect.group_size && words > shares.along && p.n * shares.along / shares.rows < items)
    shares.along *= 2;
  return shares;
}

// As float32.
std::string wide_value(compute_dtype dtype, const std::string& element, KernelBuilder& builder) {
  return convert_text(value_of_element(dtype, element), dtype, COMPUTE_DTYPE_FLOAT32, builder.functions());
}

}  // namespace

std::optional<Refusal> refuse_quantized_matmul(const Op& op, const Dialect& dialect) {
  if (auto refusal = refuse_quantized_form(op)) return refusal;
  const QuantizedProduct p = read_quantized_product(op);
  const auto refused = [](int32_t reason, int32_t argument, const char* what) {
    return Refusal{reason, argument, cat("quantized_matmul: ", what), ""};
  };
  if (p.m > (dialect.is_host ? kMostLines : kMostLinesOfGpu))
    return refused(COMPUTE_PLUGIN_REFUSE_SHAPE, kX, "too many lines");
  if (dialect.is_host) return std::nullopt;
  if (p.k % 32 != 0) return refused(COMPUTE_PLUGIN_REFUSE_SHAPE, kX, "lines that are not whole blocks of 32");
  if (dialect.group_size < kWarp) return refused(COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED, -1, "groups are too small");
  const compute_plugin_tensor &x = op.input(kX), &weight = op.input(kWeight);
  if (p.x_step != 1 || (p.m > 1 && p.x_line % kLoadedX != 0) || x.alignment % (kLoadedX * dtype_size(x.dtype)) != 0)
    return refused(COMPUTE_PLUGIN_REFUSE_LAYOUT, kX, "the lines of x are not in words");
  if (weight.alignment % kPackedWord != 0 || (p.n > 1 && p.weight_row % kPackedWord != 0))
    return refused(COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED, kWeight, "the weights are not in words");
  return std::nullopt;
}

BuiltKernels build_quantized_matmul(const Op& op, const Dialect& dialect, bool with_text) {
  const QuantizedProduct p = read_quantized_product(op);
  const compute_plugin_tensor& y = op.output(0);
  const compute_dtype dtype = y.dtype, scales = op.input(kScales).dtype;
  KernelBuilder builder(dialect, "quantized_matmul", with_text);
  const auto is_far = [](int64_t step, int64_t count, int64_t size) {
    return std::llabs(step) * count * size > INT32_MAX / 2;
  };
  const int64_t size = dtype_size(dtype);
  builder.is_wide = is_far(p.weight_row, p.n, 1) || is_far(p.scales_row, p.n, 4) || is_far(p.offsets_row, p.n, 4) ||
                    is_far(p.x_line, p.m, size) || is_far(p.x_step, p.k, size) || is_far(p.y_line, p.m, size) ||
                    is_far(p.y_step, p.n, size) || p.m * p.n > INT32_MAX / 2;
  const Shares shares = choose_shares(p, dialect);
  for (const int64_t part : {int64_t{dtype}, int64_t{scales}, int64_t{p.has_offsets}, p.bits, p.group})
    builder.sign(part);
  if (!dialect.is_host) {
    for (const int64_t part : {p.m, int64_t{shares.rows}, int64_t{shares.along}}) builder.sign(part);
  }
  const auto tensor = [&](int32_t index, compute_dtype type, bool is_const) {
    const int32_t number = builder.pointer(Pointer::kTensor, index, 0);
    builder.declare(number, type_text(type).storage, is_const);
    return number;
  };
  tensor(kX, dtype, true);
  tensor(kWeight, COMPUTE_DTYPE_UINT8, true);
  tensor(kScales, scales, true);
  if (p.has_offsets) tensor(kOffsets, scales, true);
  const int32_t result = tensor(op.input_count(), dtype, false);
  const auto word = [&](int64_t value) { return KernelBuilder::index_word(builder.word(value)); };
  const std::string n = word(p.n), depth = word(p.k), words = word(words_of(p)), results = word(p.m * p.n),
                    x_line = word(p.x_line), x_step = word(p.x_step), weight_row = word(p.weight_row),
                    scales_row = word(p.scales_row), offsets_row = word(p.offsets_row), y_line = word(p.y_line),
                    y_step = word(p.y_step);
  BuiltKernels built;
  const int64_t rows_of_group = int64_t{dialect.group_size} / shares.along * shares.rows;
  const int64_t groups = dialect.is_host ? divide_up(p.m * p.n, dialect.group_size) : divide_up(p.n, rows_of_group);
  if (with_text) {
    const auto scaled = [&](const char* pointer, const std::string& row) {
      return wide_value(scales, cat(pointer, "[row * ", row, " + group]"), builder);
    };
    const std::string scale = scaled("x2", scales_row),
                      own = cat("-", int64_t{1} << (p.bits - 1), ".0f * ", dialect.is_host ? "scale" : "scale[r][h]");
    const std::string offset = p.has_offsets ? scaled("x3", offsets_row) : own;
    const std::string stored = element_of_value(
        dtype, convert_text(dialect.is_host ? "sum" : "result", COMPUTE_DTYPE_FLOAT32, dtype, builder.functions()));
    if (dialect.is_host) {
      const std::string byte = cat("x1[row * ", weight_row, " + ", p.bits == 8 ? "e" : "e / 32 * 16 + e % 16", "]");
      builder.body =
          fill(kQuantizedResults,
               {{"group_size", dialect.group_size},
                {"results", results},
                {"n", n},
                {"depth", depth},
                {"group_numbers", p.group},
                {"value", wide_value(dtype, cat("x0[line * ", x_line, " + e * ", x_step, "]"), builder)},
                {"number", p.bits == 8 ? cat("(f32)", byte) : cat("(f32)((", byte, " >> (e / 16 % 2 * 4)) & 15)")},
                {"scale", scale},
                {"offset", offset},
                {"y", result},
                {"y_line", y_line},
                {"y_step", y_step},
                {"result", stored}});
    } else {
      const bool exchanges = dialect.has_warps, has_two_groups = p.bits == 4 && p.group == 16;
      if (exchanges) define_lane_exchange(builder, "f32");
      builder.globals += fill(kQuantizedByte, {{"has_ptx", dialect.has_ptx}});
      const VectorText packed = vector_type(builder, "u32", 4, kPackedWord / 4),
                       vector = vector_type(builder, type_text(dtype).storage, dtype_size(dtype), kLoadedX);
      const int64_t numbers = int64_t{8} * kPackedWord / p.bits;
      builder.body =
          fill(kQuantizedLines,
               {{"along", shares.along},
                {"group_size", dialect.group_size},
                {"rows", shares.rows},
                {"n", n},
                {"words", words},
                {"lines", p.m},
                {"packed", packed.type},
                {"packed_word", packed.word},
                {"halves", has_two_groups ? 2 : 1},
                {"weight_row", weight_row},
                {"group", has_two_groups ? std::string("word * 2 + h") : cat("word * ", numbers, " / ", p.group)},
                {"scale", scale},
                {"offset", offset},
                {"parts", p.bits == 4 ? 2 : 1},
                {"vector", vector.type},
                {"vector_word", vector.word},
                {"x_line", x_line},
                {"numbers", numbers},
                {"value", wide_value(dtype, "loaded.e[b]", builder)},
                {"bits", p.bits == 4 ? "(packed[r].e[c] >> (4 * h)) & 0x0f0f0f0fu" : "packed[r].e[c]"},
                {"half", has_two_groups ? "h" : "0"},
                {"exchanges", exchanges},
                {"along_in_warp", std::min(shares.along, kWarp)},
                {"warp", kWarp},
                {"has_warps", shares.along > kWarp},
                {"warps", shares.along / kWarp},
                {"y", result},
                {"y_line", y_line},
                {"y_step", y_step},
                {"result", stored}});
    }
  }
  built.add(builder, groups);
  return built;
}

}  // namespace compute::common
