// SPDX-License-Identifier: Apache-2.0
// gather and scatter. Both go over the index space with the axis of the indexed operand held at 0; the index puts it in
// place.
//
// scatter has three forms: plain stores (set), atomic operations, and lines: two points of the index space meet in one
// element only if they differ along the axis alone, so a work item that goes along the axis in order needs no atomics
// and gives the same bits every time.
#include <algorithm>
#include <array>

#include "plugins/common/source/kernel_builder.hpp"
#include "plugins/common/source/ops.hpp"

namespace compute::common {
namespace {

// The first fault wins; code is written last.
constexpr const char* kFaultText = R"(
COMPUTE_FUNCTION void compute_report_index(COMPUTE_GLOBAL u8* p, i32 argument, i64 value, i64 limit, i64 position) {
  if (COMPUTE_ATOMIC_CAS_U32((volatile COMPUTE_GLOBAL u32*)p + 8, 0u, 1u) != 0u) return;
  ((COMPUTE_GLOBAL i32*)p)[1] = argument;
  ((COMPUTE_GLOBAL i64*)p)[1] = value;
  ((COMPUTE_GLOBAL i64*)p)[2] = limit;
  ((COMPUTE_GLOBAL i64*)p)[3] = position;
  COMPUTE_FENCE();
  *(volatile COMPUTE_GLOBAL i32*)p = 1;
}
)";

// An element's type where only its bits count.
const char* bits_storage(int32_t size) {
  switch (size) {
    case 1:
      return "u8";
    case 2:
      return "u16";
    case 4:
      return "u32";
    case 8:
      return "u64";
    default:
      return "compute_w16";
  }
}

std::vector<int64_t> row_major(std::span<const int64_t> shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= shape[i];
  }
  return strides;
}

// Statements that check `index` and count it from the front; what follows runs only for a good one.
std::string check_text(std::string_view indent, int32_t fault, int32_t argument, const std::string& limit,
                       const std::string& position) {
  return cat(indent, "const i64 given = index;\n", indent, "if (index < 0) index += ", limit, ";\n", indent,
             "if (index < 0 || index >= ", limit, ") {\n", indent, "  compute_report_index(p", fault, " + a.w[", fault,
             "], ", argument, ", given, ", limit, ", ", position, ");\n", indent, "} else {\n");
}

}  // namespace

BuiltRecipe build_gather(const Op& op, const Dialect& dialect, bool with_text) {
  BuiltRecipe recipe;
  recipe.reports_faults = true;
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
  builder.is_wide = needs_wide(nest, sizes, nest.points()) || limit * std::abs(axis_stride) * size > INT32_MAX / 2;
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
  const int64_t vectors = nest.points() / lanes;
  const int32_t vectors_word = builder.word(vectors), limit_word = builder.word(limit),
                axis_word = builder.word(axis_stride), position_word = builder.word(nest.offsets[3]);
  Space space(nest);
  space.add_words(builder, lanes);
  if (with_text) {
    builder.globals += kFaultText;
    std::string& out = builder.body;
    builder.declare(0, storage, true);
    builder.declare(1, index_size == 4 ? "i32" : "i64", true);
    builder.declare(2, storage, false);
    out += cat("  const ix i = (ix)COMPUTE_GROUP_ID(0) * ", dialect.group_size, " + COMPUTE_LOCAL_ID(0);\n");
    out += cat("  if (i >= ", builder.index_word(vectors_word), ") return;\n");
    space.decompose(builder, "  ", "c", "i");
    out += cat("  i64 index = x1[", space.offset(1, "c"), "];\n");
    out += check_text("  ", 3, 1, builder.word_text(limit_word),
                      cat("(i64)(", builder.index_word(position_word), " + ", space.offset(3, "c"), ")"));
    const std::string from = cat(space.offset(0, "c"), " + (ix)index * ", builder.index_word(axis_word));
    if (lanes > 1) {
      const VectorText vector = vector_type(builder, storage, size, lanes);
      out += cat("    *(COMPUTE_GLOBAL ", vector.word, "*)(x2 + ", space.offset(2, "c"), ") = *(COMPUTE_GLOBAL const ",
                 vector.word, "*)(x0 + ", from, ");\n");
    } else {
      out += cat("    x2[", space.offset(2, "c"), "] = x0[", from, "];\n");
    }
    out += "  }\n";
  }
  recipe.add(builder, divide_up(vectors, dialect.group_size));
  return recipe;
}

namespace {

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
    return cat("(u8)(", x, combine == Combine::add || combine == Combine::max ? " | " : " & ", y, ")");
  static constexpr int32_t kIntrinsics[] = {0, COMPUTE_INTRINSIC_ADD, COMPUTE_INTRINSIC_MUL, COMPUTE_INTRINSIC_MIN,
                                            COMPUTE_INTRINSIC_MAX};
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

// A function that combines an element of memory with `y` atomically.
std::string atomic_text(Combine combine, compute_dtype dtype, KernelBuilder& builder,
                        const std::string& name = "compute_combine") {
  Functions& functions = builder.functions();
  const std::string storage = type_text(dtype).storage;
  const std::string head =
      cat("COMPUTE_FUNCTION void ", name, "(COMPUTE_GLOBAL ", storage, "* p, ", storage, " y) {\n");
  if (is_complex(dtype) && combine == Combine::add) {
    const compute_dtype part = part_of(dtype);
    const std::string real = type_text(part).storage;
    const std::string one = atomic_text(combine, part, builder, "compute_combine_part");
    return cat(one, head, "  compute_combine_part((COMPUTE_GLOBAL ", real,
               "*)p, y.x);\n  compute_combine_part((COMPUTE_GLOBAL ", real, "*)p + 1, y.y);\n}\n");
  }
  if (dtype == COMPUTE_DTYPE_INT32 && (combine == Combine::add || combine == Combine::min || combine == Combine::max)) {
    const char* name = combine == Combine::add ? "ADD" : combine == Combine::min ? "MIN" : "MAX";
    return cat(head, "  COMPUTE_ATOMIC_", name, "_I32((volatile COMPUTE_GLOBAL i32*)p, y);\n}\n");
  }
  if (dtype == COMPUTE_DTYPE_FLOAT32 && combine == Combine::add && builder.dialect().language == Language::kCudaC) {
    return head + "  COMPUTE_ATOMIC_ADD_F32(p, y);\n}\n";
  }
  const int32_t size = dtype_size(dtype);
  const char* word = size == 8 ? "u64" : "u32";
  std::string text = head;
  if (size >= 4) {
    text += cat("  volatile COMPUTE_GLOBAL ", word, "* w = (volatile COMPUTE_GLOBAL ", word, "*)p;\n  union {\n    ",
                word, " w;\n    ", storage, " e;\n  } old, made;\n  ", word, " seen = COMPUTE_ATOMIC_LOAD_U", size * 8,
                "(w);\n  do {\n    old.w = seen;\n    made.e = ", combine_text(combine, dtype, "old.e", "y", functions),
                ";\n    seen = COMPUTE_ATOMIC_CAS_U", size * 8, "(w, old.w, made.w);\n  } while (seen != old.w);\n}\n");
    return text;
  }
  // Small elements are exchanged with the aligned word around them.
  text += cat("  const u64 address = (u64)p;\n  const u32 shift = (u32)(address & 3) * 8;\n",
              "  volatile COMPUTE_GLOBAL u32* w = (volatile COMPUTE_GLOBAL u32*)(p - (address & 3) / ", size,
              ");\n  u32 old, seen = COMPUTE_ATOMIC_LOAD_U32(w);\n  do {\n    old = seen;\n", "    const ", storage,
              " x = (", storage, ")(old >> shift);\n    const ", storage,
              " z = ", combine_text(combine, dtype, "x", "y", functions), ";\n    const u32 made = (old & ~(",
              size == 1 ? "0xffu" : "0xffffu", " << shift)) | ((u32)(u", size * 8, ")z << shift);\n",
              "    seen = COMPUTE_ATOMIC_CAS_U32(w, old, made);\n  } while (seen != old);\n}\n");
  return text;
}

}  // namespace

BuiltRecipe build_scatter(const Op& op, const Dialect& dialect, bool with_text) {
  BuiltRecipe recipe;
  recipe.reports_faults = true;
  const compute_plugin_tensor &indices = op.input(0), &updates = op.input(1), &output = op.output(0);
  const auto axis = static_cast<size_t>(op.integer("axis", 0));
  const Combine combine = combine_of(op.text("reduction"));
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
  builder.is_wide = needs_wide(nest, sizes, nest.points()) || limit * std::abs(axis_stride) * size > INT32_MAX / 2;
  for (size_t i = 0; i < 4 && by_lines; ++i)
    builder.is_wide = builder.is_wide || std::abs(line_strides[i]) * line * sizes[i] > INT32_MAX / 2;
  const compute_dtype dtype = output.dtype;
  builder.sign(static_cast<int64_t>(combine));
  builder.sign(combine == Combine::set ? -size : dtype);
  builder.sign(index_size);
  builder.sign(nest.rank);
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
  if (with_text) {
    builder.globals += kFaultText;
    const char* storage = combine == Combine::set ? bits_storage(size) : type_text(dtype).storage;
    std::string& out = builder.body;
    builder.declare(0, index_size == 4 ? "i32" : "i64", true);
    builder.declare(1, storage, true);
    builder.declare(2, storage, false);
    out += cat("  const ix i = (ix)COMPUTE_GROUP_ID(0) * ", dialect.group_size, " + COMPUTE_LOCAL_ID(0);\n");
    out += cat("  if (i >= ", builder.index_word(points_word), ") return;\n");
    space.decompose(builder, "  ", "c", "i");
    std::string along[4];
    if (by_lines) {
      out += cat("  for (ix t = 0; t < ", builder.index_word(line_word), "; ++t) {\n");
      for (int i = 0; i < 4; ++i) along[i] = cat(" + t * ", builder.index_word(line_words[i]));
    }
    const std::string indent = by_lines ? "    " : "  ";
    out += cat(indent, "i64 index = x0[", space.offset(0, "c"), along[0], "];\n");
    out += check_text(indent, 3, 0, builder.word_text(limit_word),
                      cat("(i64)(", builder.index_word(position_word), " + ", space.offset(3, "c"), along[3], ")"));
    const std::string to = cat(space.offset(2, "c"), " + (ix)index * ", builder.index_word(axis_word));
    const std::string update = cat("x1[", space.offset(1, "c"), along[1], "]");
    if (combine == Combine::set) {
      out += cat(indent, "  x2[", to, "] = ", update, ";\n");
    } else if (by_lines) {
      out += cat(indent, "  const ", storage, " x = x2[", to, "], y = ", update, ";\n");
      out += cat(indent, "  x2[", to, "] = ", combine_text(combine, dtype, "x", "y", builder.functions()), ";\n");
    } else {
      builder.globals += atomic_text(combine, dtype, builder);
      out += cat(indent, "  compute_combine(x2 + ", to, ", ", update, ");\n");
    }
    out += indent + "}\n";
    if (by_lines) out += "  }\n";
  }
  recipe.add(builder, divide_up(nest.points(), dialect.group_size));
  return recipe;
}

}  // namespace compute::common
