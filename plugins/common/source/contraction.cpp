// SPDX-License-Identifier: Apache-2.0
// contraction: tiles of kTile × kTile results a group, kDepth terms at a time through local memory, kSide × kSide results a work item.
#include <algorithm>
#include <cstdlib>

#include "plugins/common/source/kernel_builder.hpp"
#include "plugins/common/source/ops.hpp"

namespace compute::common {
namespace {

constexpr int kTile = 64, kDepth = 16;

bool is_given(const Op& op, int32_t input) { return input < op.input_count() && op.input(input).rank >= 0; }

}  // namespace

BuiltRecipe build_contraction(const Op& op, const Dialect& dialect, bool with_text) {
  BuiltRecipe recipe;
  const compute_plugin_tensor& c = op.output(0);
  const compute_dtype dtype = c.dtype, wide = computed_in(dtype);
  const int32_t size = dtype_size(dtype), rank = c.rank;
  const bool is_scaled = op.integer("scaled", 0) == 1;
  const bool has_addend = is_scaled && is_given(op, 2), has_bias = is_given(op, 3);
  KernelBuilder builder(dialect, "contraction", with_text);
  // operands in the block: a, b, c, and where given addend and bias
  std::vector<int32_t> tensors = {0, 1, op.input_count()};
  if (has_addend) tensors.push_back(2);
  if (has_bias) tensors.push_back(3);
  std::vector<std::vector<int64_t>> strides;
  for (const int32_t i : tensors) strides.push_back(strides_of(op.tensor(i)));
  const std::vector<int64_t> batch(c.shape, c.shape + rank - 2);
  const LoopNest nest = collapse_operands(batch, strides, 2);
  const int64_t m = c.shape[rank - 2], n = c.shape[rank - 1], k = op.input(0).shape[rank - 1];
  std::vector<int32_t> sizes(tensors.size(), size);
  const auto reach = [&](size_t i, int64_t rows, int64_t columns) {
    return (std::llabs(strides[i][static_cast<size_t>(rank - 2)]) * rows + std::llabs(strides[i][static_cast<size_t>(rank - 1)]) * columns) * size >
           INT32_MAX / 2;
  };
  builder.is_wide = needs_wide(nest, sizes, nest.points()) || reach(0, m, k) || reach(1, k, n);
  for (size_t i = 2; i < tensors.size(); ++i) builder.is_wide = builder.is_wide || reach(i, m, n);
  // Neighbouring items load what is next in memory.
  const auto stride = [&](size_t i, int32_t axis) { return strides[i][static_cast<size_t>(rank - 2 + axis)]; };
  const bool a_along_k = std::llabs(stride(0, 1)) <= std::llabs(stride(0, 0)), b_along_n = std::llabs(stride(1, 1)) <= std::llabs(stride(1, 0));
  builder.sign(dtype);
  builder.sign(nest.rank);
  builder.sign(a_along_k);
  builder.sign(b_along_n);
  builder.sign(is_scaled);
  builder.sign(has_addend);
  builder.sign(has_bias);
  for (size_t i = 0; i < tensors.size(); ++i) builder.pointer(Pointer::kTensor, tensors[i], nest.offsets[i] * size);
  std::string alpha, beta;
  if (is_scaled) {
    alpha = builder.scalar(0, op.scalar_dtype(0));
    beta = builder.scalar(1, op.scalar_dtype(1));
  }
  const int64_t tile_rows = divide_up(m, kTile), tile_columns = divide_up(n, kTile);
  const int32_t m_word = builder.word(m), n_word = builder.word(n), k_word = builder.word(k), rows_word = builder.word(tile_rows),
                columns_word = builder.word(tile_columns);
  std::vector<std::array<int32_t, 2>> stride_words;
  for (size_t i = 0; i < tensors.size(); ++i) stride_words.push_back({builder.word(stride(i, 0)), builder.word(stride(i, 1))});
  Space space(nest);
  space.add_words(builder, 1);
  if (with_text) {
    Functions& functions = builder.functions();
    std::string& out = builder.body;
    const std::string storage = type_text(dtype).storage, value = type_text(wide).value;
    const int group = dialect.group_size, lines = group / 16, side_m = kTile / lines, side_n = kTile / 16;
    for (size_t i = 0; i < tensors.size(); ++i) out += builder.declare(static_cast<int32_t>(i), type_text(dtype).storage, i != 2);
    const auto word = [&](int32_t number) { return KernelBuilder::index_word(number); };
    out += cat("  const ix m = ", word(m_word), ", n = ", word(n_word), ", depth = ", word(k_word), ";\n");
    out += cat("  const ix tile = (ix)COMPUTE_GROUP_ID(0), over = tile / ", word(columns_word), ", place = over / ", word(rows_word), ";\n");
    out += cat("  const ix row0 = (over - place * ", word(rows_word), ") * ", kTile, ", column0 = (tile - over * ", word(columns_word), ") * ", kTile, ";\n");
    space.decompose(builder, "  ", "c", "place");
    for (size_t i = 0; i < tensors.size(); ++i) out += cat("  const ix b", i, " = ", space.offset(static_cast<int>(i), "c"), ";\n");
    out += cat("  COMPUTE_LOCAL ", value, " left[", kDepth, "][", kTile + 1, "];\n  COMPUTE_LOCAL ", value, " right[", kDepth, "][", kTile + 1, "];\n");
    out += "  const int id = COMPUTE_LOCAL_ID(0), column_id = id % 16, row_id = id / 16;\n";
    uint8_t zero_bits[16] = {};
    const std::string zero = constant_text(wide, zero_bits);
    out += cat("  ", value, " sum[", side_m, "][", side_n, "];\n");
    out += cat("#pragma unroll\n  for (int i = 0; i < ", side_m, "; ++i) {\n#pragma unroll\n    for (int j = 0; j < ", side_n, "; ++j) sum[i][j] = ", zero, ";\n  }\n");
    out += cat("  for (ix k0 = 0; k0 < depth; k0 += ", kDepth, ") {\n");
    const auto load = [&](const char* tile, int operand, bool depth_first, const char* extent, const char* origin, bool rows) {
      out += cat("    for (int e = id; e < ", kTile * kDepth, "; e += ", group, ") {\n");
      if (depth_first) {
        out += cat("      const int d = e % ", kDepth, ", t = e / ", kDepth, ";\n");
      } else {
        out += cat("      const int t = e % ", kTile, ", d = e / ", kTile, ";\n");
      }
      const auto& words = stride_words[static_cast<size_t>(operand)];
      out += cat("      ", value, " loaded = ", zero, ";\n      if (", origin, " + t < ", extent, " && k0 + d < depth) {\n");
      const std::string element = cat("x", operand, "[b", operand, " + (", origin, " + t) * ", word(words[rows ? 0 : 1]), " + (k0 + d) * ",
                                      word(words[rows ? 1 : 0]), "]");
      out += cat("        const ", type_text(dtype).value, " element = ", value_of_element(dtype, element), ";\n        loaded = ",
                 convert_text("element", dtype, wide, functions), ";\n      }\n");
      out += cat("      ", tile, "[d][t] = loaded;\n    }\n");
    };
    load("left", 0, a_along_k, "m", "row0", true);
    load("right", 1, !b_along_n, "n", "column0", false);
    out += "    COMPUTE_BARRIER();\n";
    out += cat("#pragma unroll\n    for (int d = 0; d < ", kDepth, "; ++d) {\n      ", value, " p[", side_m, "], q[", side_n, "];\n");
    out += cat("#pragma unroll\n      for (int i = 0; i < ", side_m, "; ++i) p[i] = left[d][row_id + i * ", lines, "];\n");
    out += cat("#pragma unroll\n      for (int j = 0; j < ", side_n, "; ++j) q[j] = right[d][column_id + j * 16];\n");
    std::string step;
    if (is_float(wide)) {
      step = "fma(p[i], q[j], sum[i][j])";
    } else if (is_complex(wide)) {
      step = cat(is_complex(wide) && wide == COMPUTE_DTYPE_COMPLEX64 ? "COMPUTE_C64" : "COMPUTE_C128",
                 "(fma(p[i].x, q[j].x, fma(-p[i].y, q[j].y, sum[i][j].x)), fma(p[i].x, q[j].y, fma(p[i].y, q[j].x, sum[i][j].y)))");
    } else if (wide == COMPUTE_DTYPE_BOOL) {
      step = "(bool)(sum[i][j] || (p[i] && q[j]))";
    } else {
      step = call_text(COMPUTE_INTRINSIC_ADD, wide, {"sum[i][j]", call_text(COMPUTE_INTRINSIC_MUL, wide, {"p[i]", "q[j]"}, functions)}, functions);
    }
    out += cat("#pragma unroll\n      for (int i = 0; i < ", side_m, "; ++i) {\n#pragma unroll\n        for (int j = 0; j < ", side_n, "; ++j) sum[i][j] = ", step,
               ";\n      }\n    }\n    COMPUTE_BARRIER();\n  }\n");
    out += cat("#pragma unroll\n  for (int i = 0; i < ", side_m, "; ++i) {\n#pragma unroll\n    for (int j = 0; j < ", side_n, "; ++j) {\n",
               "      const ix row = row0 + row_id + i * ", lines, ", column = column0 + column_id + j * 16;\n      if (row < m && column < n) {\n");
    out += cat("        ", value, " result = sum[i][j];\n");
    const auto at = [&](int operand) {
      const auto& words = stride_words[static_cast<size_t>(operand)];
      return cat("x", operand, "[b", operand, " + row * ", word(words[0]), " + column * ", word(words[1]), "]");
    };
    const auto wide_value = [&](int operand) {
      return convert_text(value_of_element(dtype, at(operand)), dtype, wide, functions);
    };
    const auto add = [&](const std::string& x, const std::string& y) {
      return wide == COMPUTE_DTYPE_BOOL ? cat("(bool)(", x, " || ", y, ")") : call_text(COMPUTE_INTRINSIC_ADD, wide, {x, y}, functions);
    };
    const auto multiply = [&](const std::string& x, const std::string& y) {
      return wide == COMPUTE_DTYPE_BOOL ? cat("(bool)(", x, " && ", y, ")") : call_text(COMPUTE_INTRINSIC_MUL, wide, {x, y}, functions);
    };
    if (is_scaled) out += cat("        const ", value, " alpha = ", alpha, ", beta = ", beta, ";\n        result = ", multiply("alpha", "result"), ";\n");
    if (has_addend) {
      const std::string some = is_complex(wide) ? "(beta.x != 0 || beta.y != 0)" : "(beta != 0)";
      out += cat("        if ", some, " {\n          const ", value, " addend = ", wide_value(3), ";\n          result = ", add("result", multiply("beta", "addend")),
                 ";\n        }\n");
    }
    if (has_bias) {
      out += cat("        const ", value, " bias = ", wide_value(has_addend ? 4 : 3), ";\n        result = ", add("result", "bias"), ";\n");
    }
    out += cat("        ", at(2), " = ", element_of_value(dtype, convert_text("result", wide, dtype, functions)), ";\n      }\n    }\n  }\n");
  }
  recipe.add(builder, nest.points() * tile_rows * tile_columns);
  return recipe;
}

}  // namespace compute::common
