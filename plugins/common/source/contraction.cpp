// SPDX-License-Identifier: Apache-2.0
// contraction. Two forms:
//
//   tiles   a group computes a square tile, kDepth terms at a time through local memory; while it multiplies these, the
//           next are on their way
//   blocks  on a CPU core: a work item computes kRows × kColumns results by itself
#include <algorithm>
#include <cstdlib>

#include "plugins/common/matrix_product.hpp"
#include "plugins/common/source/kernel_builder.hpp"
#include "plugins/common/source/ops.hpp"

namespace compute::common {
namespace {

constexpr int kDepth = 16;
constexpr int kRows = 4, kColumns = 16;

// The side of a tile: large ones read less, but have to fill the device.
int choose_tile(const Dialect& dialect, int64_t m, int64_t n, int64_t batch, int32_t value_size) {
  for (const int tile : {128, 64}) {
    const int64_t tiles = divide_up(m, tile) * divide_up(n, tile) * batch;
    if (tiles >= dialect.compute_units &&
        2 * kDepth * (tile + 4) * value_size <= std::min<int64_t>(dialect.local_memory_bytes, 48 << 10))
      return tile;
  }
  return 32;
}

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
    return (std::llabs(strides[i][static_cast<size_t>(rank - 2)]) * rows +
            std::llabs(strides[i][static_cast<size_t>(rank - 1)]) * columns) *
               size >
           INT32_MAX / 2;
  };
  builder.is_wide = needs_wide(nest, sizes, nest.points()) || reach(0, m, k) || reach(1, k, n);
  for (size_t i = 2; i < tensors.size(); ++i) builder.is_wide = builder.is_wide || reach(i, m, n);
  // Neighbouring items load what is next in memory.
  const auto stride = [&](size_t i, int32_t axis) { return strides[i][static_cast<size_t>(rank - 2 + axis)]; };
  const bool a_along_k = std::llabs(stride(0, 1)) <= std::llabs(stride(0, 0)),
             b_along_n = std::llabs(stride(1, 1)) <= std::llabs(stride(1, 0));
  builder.sign(dtype);
  builder.sign(nest.rank);
  builder.sign(!dialect.is_host && a_along_k);
  builder.sign(!dialect.is_host && b_along_n);
  builder.sign(is_scaled);
  builder.sign(has_addend);
  builder.sign(has_bias);
  for (size_t i = 0; i < tensors.size(); ++i) builder.pointer(Pointer::kTensor, tensors[i], nest.offsets[i] * size);
  std::string alpha, beta;
  if (is_scaled) {
    alpha = builder.scalar(0, op.scalar_dtype(0));
    beta = builder.scalar(1, op.scalar_dtype(1));
  }
  const int tile = choose_tile(dialect, m, n, nest.points(), dtype_size(wide));
  const bool b_in_rows = stride(1, 1) == 1;
  builder.sign(dialect.is_host ? 0 : tile);
  builder.sign(dialect.is_host && b_in_rows);
  const int64_t tile_rows = divide_up(m, dialect.is_host ? kRows : tile),
                tile_columns = divide_up(n, dialect.is_host ? kColumns : tile);
  const int32_t m_word = builder.word(m), n_word = builder.word(n), k_word = builder.word(k),
                rows_word = builder.word(tile_rows), columns_word = builder.word(tile_columns),
                tiles_word = builder.word(nest.points() * tile_rows * tile_columns);
  std::vector<std::array<int32_t, 2>> stride_words;
  for (size_t i = 0; i < tensors.size(); ++i)
    stride_words.push_back({builder.word(stride(i, 0)), builder.word(stride(i, 1))});
  Space space(nest);
  space.add_words(builder, 1);
  if (with_text) {
    Functions& functions = builder.functions();
    std::string& out = builder.body;
    const std::string storage = type_text(dtype).storage, value = type_text(wide).value;
    const int group = dialect.group_size, lines = group / 16, side_m = dialect.is_host ? kRows : tile / lines,
              side_n = dialect.is_host ? kColumns : tile / 16;
    for (size_t i = 0; i < tensors.size(); ++i)
      out += builder.declare(static_cast<int32_t>(i), type_text(dtype).storage, i != 2);
    const auto word = [&](int32_t number) { return KernelBuilder::index_word(number); };
    out += cat("  const ix m = ", word(m_word), ", n = ", word(n_word), ", depth = ", word(k_word), ";\n");
    const std::string tile_id = dialect.is_host ? cat("(ix)COMPUTE_GROUP_ID(0) * ", group, " + COMPUTE_LOCAL_ID(0)")
                                                : std::string("(ix)COMPUTE_GROUP_ID(0)");
    out += cat("  const ix tile = ", tile_id, ", over = tile / ", word(columns_word), ", place = over / ",
               word(rows_word), ";\n");
    if (dialect.is_host) out += cat("  if (tile >= ", word(tiles_word), ") return;\n");
    out += cat("  const ix row0 = (over - place * ", word(rows_word), ") * ", dialect.is_host ? kRows : tile,
               ", column0 = (tile - over * ", word(columns_word), ") * ", dialect.is_host ? kColumns : tile, ";\n");
    space.decompose(builder, "  ", "c", "place");
    for (size_t i = 0; i < tensors.size(); ++i)
      out += cat("  const ix b", i, " = ", space.offset(static_cast<int>(i), "c"), ";\n");
    uint8_t zero_bits[16] = {};
    const std::string zero = constant_text(wide, zero_bits);
    out += cat("  ", value, " sum[", side_m, "][", side_n, "];\n");
    out += cat("#pragma unroll\n  for (int i = 0; i < ", side_m, "; ++i) {\n#pragma unroll\n    for (int j = 0; j < ",
               side_n, "; ++j) sum[i][j] = ", zero, ";\n  }\n");
    const auto element = [&](int operand, const std::string& row, const std::string& column, bool in_rows = false) {
      const auto& words = stride_words[static_cast<size_t>(operand)];
      const std::string text = cat("x", operand, "[b", operand, " + ", row, " * ", word(words[0]), " + ", column,
                                   in_rows ? "" : " * " + word(words[1]), "]");
      return convert_text(value_of_element(dtype, text), dtype, wide, functions);
    };
    // Rows and columns of a work item: runs of up to four that follow one another, so that they are loaded at once.
    const int run_m = std::min(side_m, 4), run_n = std::min(side_n, 4);
    const std::string row_of =
        dialect.is_host ? "i" : cat("row_id * ", run_m, " + i % ", run_m, " + i / ", run_m, " * ", lines * run_m);
    const std::string column_of =
        dialect.is_host ? "j" : cat("column_id * ", run_n, " + j % ", run_n, " + j / ", run_n, " * ", 16 * run_n);
    if (dialect.is_host) {
      // Rows and columns beyond the edge repeat the last ones and are not stored.
      out += cat("  ix rows[", kRows, "];\n  for (int i = 0; i < ", kRows,
                 "; ++i) rows[i] = row0 + i < m ? row0 + i : m - 1;\n");
      const auto terms = [&](bool whole) {
        out += cat("    for (ix k = 0; k < depth; ++k) {\n      ", value, " p[", kRows, "], q[", kColumns, "];\n");
        out += cat("#pragma unroll\n      for (int i = 0; i < ", kRows, "; ++i) p[i] = ", element(0, "rows[i]", "k"),
                   ";\n");
        if (!whole)
          out += cat("      for (int j = 0; j < ", kColumns,
                     "; ++j) {\n        const ix column = column0 + j < n ? column0 + j : n - 1;\n        q[j] = ",
                     element(1, "k", "column"), ";\n      }\n");
        if (whole)
          out += cat("#pragma unroll\n      for (int j = 0; j < ", kColumns,
                     "; ++j) q[j] = ", element(1, "k", "(column0 + j)", b_in_rows), ";\n");
      };
      out += cat("  if (column0 + ", kColumns, " <= n) {\n");
      terms(true);
      out += cat("#pragma unroll\n      for (int i = 0; i < ", side_m,
                 "; ++i) {\n#pragma unroll\n        for (int j = 0; j < ", side_n,
                 "; ++j) sum[i][j] = COMPUTE_STEP;\n      }\n    }\n  } else {\n");
      terms(false);
      out += cat("      for (int i = 0; i < ", side_m, "; ++i) {\n        for (int j = 0; j < ", side_n,
                 "; ++j) sum[i][j] = COMPUTE_STEP;\n      }\n    }\n  }\n");
    } else {
      const int per_item = tile * kDepth / group;
      out += cat("  COMPUTE_LOCAL ", value, " left[", kDepth, "][", tile + 4,
                 "] __attribute__((aligned(16)));\n  COMPUTE_LOCAL ", value, " right[", kDepth, "][", tile + 4,
                 "] __attribute__((aligned(16)));\n");
      out += "  const int id = COMPUTE_LOCAL_ID(0), column_id = id % 16, row_id = id / 16;\n";
      out += cat("  ", value, " next_left[", per_item, "], next_right[", per_item, "];\n");
      const auto place = [&](bool depth_first) {
        return depth_first ? cat("const int d = (id + e * ", group, ") % ", kDepth, ", t = (id + e * ", group, ") / ",
                                 kDepth, ";\n")
                           : cat("const int t = (id + e * ", group, ") % ", tile, ", d = (id + e * ", group, ") / ",
                                 tile, ";\n");
      };
      const auto fetch = [&](const std::string& indent, const std::string& from) {
        for (const bool is_left : {true, false}) {
          const char* extent = is_left ? "m" : "n";
          const char* origin = is_left ? "row0" : "column0";
          out += cat("#pragma unroll\n", indent, "for (int e = 0; e < ", per_item, "; ++e) {\n", indent, "  ",
                     place(is_left ? a_along_k : !b_along_n));
          const std::string loaded = is_left ? element(0, "(row0 + t)", "(" + from + " + d)")
                                             : element(1, "(" + from + " + d)", "(column0 + t)");
          out += cat(indent, "  ", value, " loaded = ", zero, ";\n", indent, "  if (", origin, " + t < ", extent,
                     " && ", from, " + d < depth) loaded = ", loaded, ";\n");
          out += cat(indent, "  next_", is_left ? "left" : "right", "[e] = loaded;\n", indent, "}\n");
        }
      };
      fetch("  ", "0");
      out += cat("  for (ix k0 = 0; k0 < depth; k0 += ", kDepth, ") {\n    COMPUTE_BARRIER();\n");
      for (const bool is_left : {true, false}) {
        out += cat("#pragma unroll\n    for (int e = 0; e < ", per_item, "; ++e) {\n      ",
                   place(is_left ? a_along_k : !b_along_n));
        out += cat("      ", is_left ? "left" : "right", "[d][t] = next_", is_left ? "left" : "right", "[e];\n    }\n");
      }
      out += "    COMPUTE_BARRIER();\n";
      out += cat("    if (k0 + ", kDepth, " < depth) {\n");
      fetch("      ", cat("(k0 + ", kDepth, ")"));
      out += "    }\n";
      out += cat("#pragma unroll\n    for (int d = 0; d < ", kDepth, "; ++d) {\n      ", value, " p[", side_m, "], q[",
                 side_n, "];\n");
      out += cat("#pragma unroll\n      for (int i = 0; i < ", side_m, "; ++i) p[i] = left[d][", row_of, "];\n");
      out += cat("#pragma unroll\n      for (int j = 0; j < ", side_n, "; ++j) q[j] = right[d][", column_of, "];\n");
      out += cat("#pragma unroll\n      for (int i = 0; i < ", side_m,
                 "; ++i) {\n#pragma unroll\n        for (int j = 0; j < ", side_n,
                 "; ++j) sum[i][j] = COMPUTE_STEP;\n      }\n    }\n  }\n");
    }
    std::string step;
    if (is_float(wide)) {
      step = "fma(p[i], q[j], sum[i][j])";
    } else if (is_complex(wide)) {
      step = cat(is_complex(wide) && wide == COMPUTE_DTYPE_COMPLEX64 ? "COMPUTE_C64" : "COMPUTE_C128",
                 "(fma(p[i].x, q[j].x, fma(-p[i].y, q[j].y, sum[i][j].x)), fma(p[i].x, q[j].y, fma(p[i].y, q[j].x, "
                 "sum[i][j].y)))");
    } else if (wide == COMPUTE_DTYPE_BOOL) {
      step = "(bool)(sum[i][j] || (p[i] && q[j]))";
    } else {
      step = call_text(COMPUTE_INTRINSIC_ADD, wide,
                       {"sum[i][j]", call_text(COMPUTE_INTRINSIC_MUL, wide, {"p[i]", "q[j]"}, functions)}, functions);
    }
    builder.globals += "#define COMPUTE_STEP " + step + "\n";
    out += cat("#pragma unroll\n  for (int i = 0; i < ", side_m, "; ++i) {\n#pragma unroll\n    for (int j = 0; j < ",
               side_n, "; ++j) {\n", "      const ix row = row0 + ", row_of, ", column = column0 + ", column_of,
               ";\n      if (row < m && column < n) {\n");
    out += cat("        ", value, " result = sum[i][j];\n");
    const auto at = [&](int operand) {
      const auto& words = stride_words[static_cast<size_t>(operand)];
      return cat("x", operand, "[b", operand, " + row * ", word(words[0]), " + column * ", word(words[1]), "]");
    };
    const auto wide_value = [&](int operand) {
      return convert_text(value_of_element(dtype, at(operand)), dtype, wide, functions);
    };
    const auto add = [&](const std::string& x, const std::string& y) {
      return wide == COMPUTE_DTYPE_BOOL ? cat("(bool)(", x, " || ", y, ")")
                                        : call_text(COMPUTE_INTRINSIC_ADD, wide, {x, y}, functions);
    };
    const auto multiply = [&](const std::string& x, const std::string& y) {
      return wide == COMPUTE_DTYPE_BOOL ? cat("(bool)(", x, " && ", y, ")")
                                        : call_text(COMPUTE_INTRINSIC_MUL, wide, {x, y}, functions);
    };
    if (is_scaled)
      out += cat("        const ", value, " alpha = ", alpha, ", beta = ", beta,
                 ";\n        result = ", multiply("alpha", "result"), ";\n");
    if (has_addend) {
      const std::string some = is_complex(wide) ? "(beta.x != 0 || beta.y != 0)" : "(beta != 0)";
      out += cat("        if ", some, " {\n          const ", value, " addend = ", wide_value(3),
                 ";\n          result = ", add("result", multiply("beta", "addend")), ";\n        }\n");
    }
    if (has_bias) {
      out += cat("        const ", value, " bias = ", wide_value(has_addend ? 4 : 3),
                 ";\n        result = ", add("result", "bias"), ";\n");
    }
    out += cat("        ", at(2), " = ", element_of_value(dtype, convert_text("result", wide, dtype, functions)),
               ";\n      }\n    }\n  }\n");
  }
  const int64_t tiles = nest.points() * tile_rows * tile_columns;
  recipe.add(builder, dialect.is_host ? divide_up(tiles, dialect.group_size) : tiles);
  return recipe;
}

}  // namespace compute::common
