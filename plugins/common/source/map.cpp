// SPDX-License-Identifier: Apache-2.0
// map and copy. Three forms on GPUs:
//
//   vectors   along the innermost loop every operand moves by one element or not at all: several elements an access
//   elements  any strides, one element an access
//   tiles     some inputs move fastest along another loop than the output: they pass through local memory in square
//             tiles, so that both sides are accessed along memory
//
// and on CPU cores two: runs along the innermost loop, and blocks where GPUs have tiles.
#include <algorithm>
#include <bit>
#include <cstdlib>

#include "plugins/common/source/kernel_builder.hpp"
#include "plugins/common/source/ops.hpp"

namespace compute::common {
namespace {

constexpr int64_t kTileBytes = 32 << 10;  // of local memory
constexpr int64_t kLeastTiled = 16;       // extents from which on tiles pay
constexpr int64_t kPassesCaches =
    8 << 20;  // bytes of outputs, on CPU cores, from which on they are written around the caches

// The loops of a map: tensors in the op's order, then an operand per INDEX axis.
struct MapShape {
  LoopNest nest;
  std::vector<int32_t> axes;   // of INDEX nodes
  std::vector<int32_t> sizes;  // of the tensors' elements
  std::vector<compute_dtype> dtypes;
  int32_t tensors = 0, inputs = 0;
  int lanes = 1;
  bool is_wide = false;
};

bool moves_by_lanes(int64_t stride) { return stride == 0 || stride == 1; }

// The most lanes with which all accesses are whole aligned words.
int choose_lanes(const Op& op, const MapShape& shape) {
  const LoopNest& nest = shape.nest;
  if (nest.rank == 0) return 1;
  const int inner = nest.rank - 1;
  int32_t least = 16, greatest = 1;
  for (size_t i = 0; i < nest.strides.size(); ++i) {
    if (!moves_by_lanes(nest.strides[i][inner])) return 1;
    if (static_cast<int32_t>(i) >= shape.tensors || nest.strides[i][inner] == 0) continue;
    least = std::min(least, shape.sizes[i]);
    greatest = std::max(greatest, shape.sizes[i]);
  }
  for (int lanes = std::clamp(16 / least, 16 / greatest, 32 / greatest); lanes > 1; lanes /= 2) {
    bool fits = nest.rank == 1 || nest.extents[inner] % lanes == 0;
    for (int32_t i = 0; i < shape.tensors && fits; ++i) {
      if (nest.strides[i][inner] == 0) continue;
      const int32_t alignment = vector_alignment(shape.sizes[i], lanes);
      const auto is_aligned = [&](int64_t elements) { return elements * shape.sizes[i] % alignment == 0; };
      fits = op.tensor(i).alignment >= alignment && is_aligned(nest.offsets[i]);
      for (int axis = 0; axis < inner; ++axis) fits = fits && is_aligned(nest.strides[i][axis]);
    }
    if (fits) return lanes;
  }
  return 1;
}

// The loop other than the innermost along which every input that does not follow the output moves by one element, or
// -1.
int find_tile_loop(const MapShape& shape, std::vector<int32_t>* tiled) {
  const LoopNest& nest = shape.nest;
  const int inner = nest.rank - 1;
  tiled->clear();
  if (nest.rank < 2 || nest.extents[inner] < kLeastTiled || nest.strides[shape.inputs][inner] != 1) return -1;
  int loop = -1;
  for (int32_t i = 0; i < shape.inputs; ++i) {
    if (moves_by_lanes(std::llabs(nest.strides[i][inner]))) continue;
    for (int axis = 0; axis < inner; ++axis) {
      if (std::llabs(nest.strides[i][axis]) != 1 || nest.extents[axis] < kLeastTiled || (loop >= 0 && loop != axis))
        continue;
      loop = axis;
      tiled->push_back(i);
    }
  }
  return tiled->empty() ? -1 : loop;
}

// Elements that only move are integers of their size, so that one kernel serves many dtypes.
compute_dtype bits_dtype(compute_dtype dtype) {
  switch (dtype_size(dtype)) {
    case 1:
      return COMPUTE_DTYPE_UINT8;
    case 2:
      return COMPUTE_DTYPE_UINT16;
    case 4:
      return COMPUTE_DTYPE_UINT32;
    case 8:
      return COMPUTE_DTYPE_UINT64;
    default:
      return dtype;
  }
}

class MapBuilder {
 public:
  MapBuilder(const Op& op, const Dialect& dialect, const compute_plugin_expression& expression, std::string_view what,
             bool with_text, bool moves_bits = false)
      : op_(op), expression_(expression), builder_(dialect, what, with_text) {
    const compute_plugin_tensor& leader = op.output(0);
    std::vector<std::vector<int64_t>> strides;
    shape_.tensors = op.tensor_count();
    shape_.inputs = op.input_count();
    for (int32_t i = 0; i < shape_.tensors; ++i) {
      strides.push_back(strides_of(op.tensor(i)));
      const compute_dtype dtype = op.tensor(i).dtype;
      shape_.dtypes.push_back(moves_bits ? bits_dtype(dtype) : dtype);
      shape_.sizes.push_back(dtype_size(dtype));
    }
    shape_.axes = index_axes(expression);
    for (const int32_t axis : shape_.axes) strides.push_back(index_strides(leader.rank, axis));
    shape_.nest = collapse_operands(shape_of(leader), strides, shape_.inputs);
    shape_.is_wide = builder_.is_wide = needs_wide(shape_.nest, shape_.sizes, shape_.nest.points());
  }

  void build(BuiltRecipe& recipe) {
    std::vector<int32_t> tiled;
    if (builder_.dialect().is_host) {
      const int loop = find_tile_loop(shape_, &tiled);
      return loop >= 0 ? build_blocks(recipe, loop, tiled) : build_runs(recipe);
    }
    shape_.lanes = choose_lanes(op_, shape_);
    const int tile_loop = shape_.lanes > 1 ? -1 : find_tile_loop(shape_, &tiled);
    if (tile_loop >= 0) {
      int32_t bytes = 0;
      for (const int32_t i : tiled) bytes += shape_.sizes[static_cast<size_t>(i)];
      const int32_t side = 64 * 65 * bytes <= kTileBytes ? 64 : 32;
      if (side * (side + 1) * bytes <= std::min(kTileBytes, builder_.dialect().local_memory_bytes) &&
          side * side % builder_.dialect().group_size == 0 && builder_.dialect().group_size % side == 0) {
        return build_tiles(recipe, tile_loop, tiled, side);
      }
    }
    build_loop(recipe);
  }

 private:
  compute_dtype dtype_of(int32_t tensor) const { return shape_.dtypes[static_cast<size_t>(tensor)]; }
  std::string value_of(int32_t input, const std::string& element) const {
    return value_of_element(dtype_of(input), element);
  }

  void declare_operands(int rank) {
    builder_.sign(shape_.lanes);
    builder_.sign(rank);
    builder_.sign(expression_);
    for (int32_t i = 0; i < shape_.tensors; ++i) {
      const bool is_input = i < shape_.inputs;
      const compute_dtype dtype = dtype_of(i);
      builder_.sign(dtype);
      builder_.pointer(Pointer::kTensor, i, shape_.nest.offsets[i] * shape_.sizes[static_cast<size_t>(i)]);
      builder_.declare(i, type_text(dtype).storage, is_input);
    }
    for (int32_t i = 0; i < expression_.scalar_count; ++i) {
      scalars_.push_back(builder_.scalar(i, op_.scalar_dtype(i)));
      builder_.sign(op_.scalar_dtype(i));
    }
    for (size_t i = 0; i < shape_.axes.size(); ++i) {
      builder_.sign(shape_.axes[i]);
      index_offsets_.push_back(builder_.word(shape_.nest.offsets[static_cast<size_t>(shape_.tensors) + i]));
    }
  }

  bool moves(int32_t operand) const {
    return shape_.nest.rank > 0 && shape_.nest.strides[static_cast<size_t>(operand)][shape_.nest.rank - 1] != 0;
  }

  // The position along an INDEX axis, from the text of the operand's offset.
  std::string index_text(int32_t axis, const std::function<std::string(int32_t operand)>& offset) const {
    const auto place =
        static_cast<int32_t>(std::find(shape_.axes.begin(), shape_.axes.end(), axis) - shape_.axes.begin());
    return cat("(", builder_.index_word(index_offsets_[static_cast<size_t>(place)]), " + ",
               offset(shape_.tensors + place), ")");
  }

  // On a CPU core: a work item goes along part of the innermost loop.
  void build_runs(BuiltRecipe& recipe) {
    constexpr int64_t kShortest = 64, kLongest = 512;
    const LoopNest& nest = shape_.nest;
    const int inner = nest.rank - 1;
    const auto stride = [&](size_t operand) { return nest.rank == 0 ? 0 : nest.strides[operand][inner]; };
    bool has_unit_strides = true;
    for (size_t i = 0; i < nest.strides.size(); ++i) {
      builder_.sign(stride(i) != 0);
      has_unit_strides = has_unit_strides && moves_by_lanes(stride(i));
    }
    // What is written around the caches is not read into them first, which saves a third of a copy's traffic.
    bool is_streaming = has_unit_strides && nest.rank > 0;
    int64_t written = 0;
    for (int32_t i = shape_.inputs; i < shape_.tensors; ++i) {
      is_streaming = is_streaming && stride(static_cast<size_t>(i)) == 1;
      written += nest.points() * shape_.sizes[static_cast<size_t>(i)];
    }
    is_streaming = is_streaming && written >= kPassesCaches;
    builder_.sign(is_streaming);
    // Outer loops are taken apart once a run, which costs little: up to kOuter of them share a kernel.
    constexpr int kOuter = 3;
    declare_operands(std::max(inner, kOuter) + 1);
    LoopNest outer = nest;
    outer.rank = std::max(inner, 0);
    for (; outer.rank < kOuter; ++outer.rank) {
      outer.extents[outer.rank] = 1;
      for (auto& strides : outer.strides) strides[outer.rank] = 0;
    }
    Space space(outer);
    const int64_t extent = nest.rank == 0 ? 1 : nest.extents[inner], points = extent * outer.points();
    // Long runs, but groups enough for all cores.
    const int64_t share = points / (int64_t{4} * builder_.dialect().compute_units * builder_.dialect().group_size);
    const int64_t run = std::clamp(share / kShortest * kShortest, kShortest, kLongest);
    const int64_t parts = divide_up(extent, run), items = parts * outer.points();
    const int32_t extent_word = builder_.word(extent), parts_word = builder_.word(parts),
                  items_word = builder_.word(items), run_word = builder_.word(run),
                  unit_word = builder_.word(has_unit_strides);
    space.add_words(builder_, 1);
    std::vector<int32_t> stride_words;
    for (size_t i = 0; i < nest.strides.size(); ++i) stride_words.push_back(builder_.word(stride(i)));
    if (builder_.with_text()) {
      std::string& out = builder_.body;
      const auto word = [](int32_t number) { return KernelBuilder::index_word(number); };
      out += cat("  const ix item = (ix)COMPUTE_GROUP_ID(0) * ", builder_.dialect().group_size,
                 " + COMPUTE_LOCAL_ID(0);\n");
      out +=
          cat("  if (item >= ", word(items_word), ") return;\n  const ix row = item / ", word(parts_word),
              ", first = (item - row * ", word(parts_word), ") * ", word(run_word), ";\n  const ix last = first + ",
              word(run_word), " < ", word(extent_word), " ? first + ", word(run_word), " : ", word(extent_word), ";\n");
      space.decompose(builder_, "  ", "c", "row");
      for (size_t i = 0; i < nest.strides.size(); ++i) {
        out += cat("  const ix b", i, " = ", space.offset(static_cast<int>(i), "c"), ";\n");
        if (stride(i) != 0) out += cat("  const ix d", i, " = ", word(stride_words[i]), ";\n");
      }
      // One kernel for both: a loop along memory, which becomes vector code, and one for any strides.
      for (const bool is_unit : {true, false}) {
        out += is_unit ? cat("  if (", word(unit_word), ") {\n") : std::string("  } else {\n");
        out += "    ix i = first;\n";
        if (is_unit && is_streaming) print_streaming();
        out += "    for (; i < last; ++i) {\n";
        const auto offset = [&](int32_t operand) {
          if (stride(static_cast<size_t>(operand)) == 0) return cat("b", operand);
          return is_unit ? cat("(b", operand, " + i)") : cat("(b", operand, " + i * d", operand, ")");
        };
        print_point(
            "      ", offset, [&](int32_t i) { return cat("x", i, "[", offset(i), "]"); },
            [&](int32_t i, const std::string& element) { return cat("x", i, "[", offset(i), "] = ", element, ";\n"); });
        out += "    }\n";
      }
      out += "  }\n";
    }
    recipe.add(builder_, divide_up(items, builder_.dialect().group_size));
  }

  // Blocks of kBlock elements that begin where cache lines do, written a line at a time.
  void print_streaming() {
    constexpr int kBlock = 64;
    std::string& out = builder_.body;
    out += "#if defined(__has_builtin) && __has_builtin(__builtin_nontemporal_store)\n    if ((0";
    for (int32_t k = shape_.inputs; k < shape_.tensors; ++k) out += cat(" | (u64)(x", k, " + b", k, " + first)");
    out += cat(") % 64 == 0) {\n      for (; i + ", kBlock, " <= last; i += ", kBlock, ") {\n");
    for (int32_t k = shape_.inputs; k < shape_.tensors; ++k) {
      out += cat("        ", type_text(dtype_of(k)).storage, " r", k, "[", kBlock, "] __attribute__((aligned(64)));\n");
    }
    out += cat("        for (int v = 0; v < ", kBlock, "; ++v) {\n");
    const auto offset = [&](int32_t operand) {
      return moves(operand) ? cat("(b", operand, " + i + v)") : cat("b", operand);
    };
    print_point(
        "          ", offset, [&](int32_t k) { return cat("x", k, "[", offset(k), "]"); },
        [&](int32_t k, const std::string& element) { return cat("r", k, "[v] = ", element, ";\n"); });
    out += "        }\n";
    for (int32_t k = shape_.inputs; k < shape_.tensors; ++k) {
      out += cat("        for (int v = 0; v < ", shape_.sizes[static_cast<size_t>(k)],
                 "; ++v) __builtin_nontemporal_store(((const uint16*)r", k, ")[v], (COMPUTE_GLOBAL uint16*)(x", k,
                 " + b", k, " + i) + v);\n");
    }
    out += "      }\n    }\n#endif\n";
  }

  void build_loop(BuiltRecipe& recipe) {
    Space space(shape_.nest);
    const int lanes = shape_.lanes;
    const Dialect& dialect = builder_.dialect();
    // Two accesses an operand in flight where there are few operands.
    const bool is_flat = shape_.nest.rank <= 1;
    const int steps = is_flat && shape_.tensors <= 4 && shape_.axes.empty() ? 2 : 1;
    builder_.sign(steps);
    for (size_t i = 0; i < shape_.nest.strides.size(); ++i) {
      builder_.sign(lanes > 1 ? moves(static_cast<int32_t>(i)) : -1);
    }
    declare_operands(shape_.nest.rank);
    const int64_t points = shape_.nest.points();
    const int64_t vectors = divide_up(points, lanes);
    const int32_t vectors_word = builder_.word(vectors), points_word = builder_.word(points);
    space.add_words(builder_, lanes);
    if (builder_.with_text()) print_steps(space, vectors_word, points_word, steps);
    recipe.add(builder_, divide_up(vectors, static_cast<int64_t>(dialect.group_size) * steps));
  }

  // One point: loads, the expression, stores.
  void print_point(std::string_view indent, const std::function<std::string(int32_t)>& offset,
                   const std::function<std::string(int32_t)>& load,
                   const std::function<std::string(int32_t, const std::string&)>& store) {
    Leaves leaves;
    leaves.input = [&](int32_t i) { return value_of(i, load(i)); };
    leaves.index = [&](int32_t axis) { return index_text(axis, offset); };
    leaves.scalar = [&](int32_t i) { return scalars_[static_cast<size_t>(i)]; };
    const auto values = print_expression(expression_, leaves, indent, "v", builder_.functions(), builder_.body);
    for (int32_t k = 0; k < op_.output_count(); ++k) {
      builder_.body +=
          cat(indent,
              store(shape_.inputs + k, element_of_value(dtype_of(shape_.inputs + k), values[static_cast<size_t>(k)])));
    }
  }

  void print_steps(const Space& space, int32_t vectors_word, int32_t points_word, int steps) {
    std::string& out = builder_.body;
    const int lanes = shape_.lanes, group = builder_.dialect().group_size;
    std::vector<VectorText> vectors(static_cast<size_t>(shape_.tensors));
    const auto is_vector = [&](int32_t i) { return lanes > 1 && moves(i); };
    const auto register_of = [&](int32_t i, const std::string& step) { return cat("r", i, "[", step, "]"); };
    const bool may_end_inside = lanes > 1 && shape_.nest.rank == 1;
    out += cat("  const ix n = ", builder_.index_word(vectors_word), ", points = ", builder_.index_word(points_word),
               ";\n");
    out += cat("  const ix first = (ix)COMPUTE_GROUP_ID(0) * ", group * steps, " + COMPUTE_LOCAL_ID(0);\n");
    for (int32_t i = 0; i < shape_.tensors; ++i) {
      const char* storage = type_text(dtype_of(i)).storage;
      if (is_vector(i)) {
        vectors[static_cast<size_t>(i)] = vector_type(builder_, storage, shape_.sizes[static_cast<size_t>(i)], lanes);
        out += cat("  ", vectors[static_cast<size_t>(i)].type, " r", i, "[", steps, "];\n");
      } else {
        out += cat("  ", storage, " r", i, "[", steps, "];\n");
      }
    }
    const auto open_step = [&] {
      out += cat("#pragma unroll\n  for (int s = 0; s < ", steps, "; ++s) {\n    const ix i = first + s * ", group,
                 ";\n", "    if (i < n) {\n");
      space.decompose(builder_, "      ", "c", "i");
      if (may_end_inside) out += cat("      const ix left = points - i * ", lanes, ";\n");
    };
    const auto offset = [&](int32_t operand) { return space.offset(operand, "c"); };
    // Loads of all steps come before the first store, which the compiler could not know to be elsewhere.
    open_step();
    for (int32_t i = 0; i < shape_.inputs; ++i) {
      if (!is_vector(i)) {
        out += cat("      ", register_of(i, "s"), " = x", i, "[", offset(i), "];\n");
        continue;
      }
      const VectorText& vector = vectors[static_cast<size_t>(i)];
      out += cat("      const ix o", i, " = ", offset(i), ";\n");
      const char* indent = may_end_inside ? "        " : "      ";
      if (may_end_inside) out += cat("      if (left >= ", lanes, ") {\n");
      for (int w = 0; w < vector.words; ++w) {
        out += cat(indent, register_of(i, "s"), ".v[", w, "] = ((COMPUTE_GLOBAL const ", vector.word, "*)(x", i, " + o",
                   i, "))[", w, "];\n");
      }
      if (may_end_inside) {
        out += cat("      } else {\n        for (int v = 0; v < ", lanes, "; ++v) ", register_of(i, "s"),
                   ".e[v] = v < left ? x", i, "[o", i, " + v] : x", i, "[o", i, "];\n      }\n");
      }
    }
    out += "    }\n  }\n";
    open_step();
    const auto lane_offset = [&](int32_t operand) {
      return lanes > 1 && moves(operand) ? cat("(", offset(operand), " + v)") : offset(operand);
    };
    if (lanes > 1) out += cat("#pragma unroll\n      for (int v = 0; v < ", lanes, "; ++v) {\n");
    print_point(
        "        ", lane_offset, [&](int32_t i) { return register_of(i, "s") + (is_vector(i) ? ".e[v]" : ""); },
        [&](int32_t i, const std::string& element) {
          return cat(register_of(i, "s"), is_vector(i) ? ".e[v]" : "", " = ", element, ";\n");
        });
    if (lanes > 1) out += "      }\n";
    for (int32_t i = shape_.inputs; i < shape_.tensors; ++i) {
      if (!is_vector(i)) {
        out += cat("      x", i, "[", offset(i), "] = ", register_of(i, "s"), ";\n");
        continue;
      }
      const VectorText& vector = vectors[static_cast<size_t>(i)];
      out += cat("      const ix o", i, " = ", offset(i), ";\n");
      const char* indent = may_end_inside ? "        " : "      ";
      if (may_end_inside) out += cat("      if (left >= ", lanes, ") {\n");
      for (int w = 0; w < vector.words; ++w) {
        out += cat(indent, "((COMPUTE_GLOBAL ", vector.word, "*)(x", i, " + o", i, "))[", w,
                   "] = ", register_of(i, "s"), ".v[", w, "];\n");
      }
      if (may_end_inside) {
        out += cat("      } else {\n        for (int v = 0; v < ", lanes, "; ++v) {\n          if (v < left) x", i,
                   "[o", i, " + v] = ", register_of(i, "s"), ".e[v];\n        }\n      }\n");
      }
    }
    out += "    }\n  }\n";
  }

  // The loops but for the innermost and one other.
  LoopNest other_loops(int loop) const {
    const LoopNest& nest = shape_.nest;
    LoopNest outer = nest;
    outer.rank = 0;
    for (int axis = 0; axis < nest.rank - 1; ++axis) {
      if (axis == loop) continue;
      outer.extents[outer.rank] = nest.extents[axis];
      for (size_t i = 0; i < nest.strides.size(); ++i) outer.strides[i][outer.rank] = nest.strides[i][axis];
      ++outer.rank;
    }
    return outer;
  }

  void sign_tiles(int side, int loop, const std::vector<int32_t>& tiled) {
    builder_.sign(side);
    builder_.sign(loop);
    for (const int32_t i : tiled) builder_.sign(i);
    builder_.sign(static_cast<int64_t>(tiled.size()));
  }

  // Of each operand's strides along a tile's rows, which are the positions along `loop`, and along its columns.
  struct TileStrideWords {
    std::vector<int32_t> rows, columns;
  };
  TileStrideWords tile_stride_words(int loop) {
    TileStrideWords words;
    for (const auto& strides : shape_.nest.strides) {
      words.rows.push_back(builder_.word(strides[loop]));
      words.columns.push_back(builder_.word(strides[shape_.nest.rank - 1]));
    }
    return words;
  }

  // On a CPU core, for inputs that move fastest along `loop`: a work item takes a few blocks of a side that is a cache
  // line of float32. Each line of an input is read, and each of the output written, at once.
  void build_blocks(BuiltRecipe& recipe, int loop, const std::vector<int32_t>& tiled) {
    constexpr int kSide = 16, kBlocks = 4;
    const LoopNest& nest = shape_.nest;
    const int inner = nest.rank - 1;
    sign_tiles(kSide, loop, tiled);
    for (const auto& strides : nest.strides) builder_.sign(strides[inner] == 1);
    declare_operands(nest.rank);
    const LoopNest outer = other_loops(loop);
    Space space(outer);
    const int64_t across = divide_up(nest.extents[loop], kSide),
                  along = divide_up(nest.extents[inner], kSide * kBlocks);
    const int64_t items = outer.points() * across * along;
    const int32_t rows_word = builder_.word(nest.extents[loop]), columns_word = builder_.word(nest.extents[inner]),
                  across_word = builder_.word(across), along_word = builder_.word(along),
                  items_word = builder_.word(items);
    space.add_words(builder_, 1);
    const TileStrideWords stride_words = tile_stride_words(loop);
    if (builder_.with_text()) {
      std::string& out = builder_.body;
      const auto word = [](int32_t number) { return KernelBuilder::index_word(number); };
      out += cat("  const ix item = (ix)COMPUTE_GROUP_ID(0) * ", builder_.dialect().group_size,
                 " + COMPUTE_LOCAL_ID(0);\n");
      out += cat("  if (item >= ", word(items_word), ") return;\n  const ix over = item / ", word(along_word),
                 ", place = over / ", word(across_word), ";\n");
      out += cat("  const ix row0 = (over - place * ", word(across_word), ") * ", kSide, ", first = (item - over * ",
                 word(along_word), ") * ", kSide * kBlocks, ";\n");
      out += cat("  const ix last = first + ", kSide * kBlocks, " < ", word(columns_word), " ? first + ",
                 kSide * kBlocks, " : ", word(columns_word), ";\n");
      out += cat("  const ix rows = row0 + ", kSide, " < ", word(rows_word), " ? ", kSide, " : ", word(rows_word),
                 " - row0;\n");
      space.decompose(builder_, "  ", "c", "place");
      for (size_t i = 0; i < nest.strides.size(); ++i) {
        out += cat("  const ix b", i, " = ", space.offset(static_cast<int>(i), "c"), " + row0 * ",
                   word(stride_words.rows[i]), ", d", i, " = ", word(stride_words.rows[i]), ";\n");
      }
      const auto offset = [&](int32_t operand) {
        const auto at = static_cast<size_t>(operand);
        return cat("(b", operand, " + r * d", operand, " + (column0 + c)",
                   nest.strides[at][inner] == 1 ? "" : " * " + word(stride_words.columns[at]), ")");
      };
      out += cat("  for (ix column0 = first; column0 < last; column0 += ", kSide,
                 ") {\n    const ix columns = last - column0 < ", kSide, " ? last - column0 : ", kSide, ";\n");
      for (const int32_t i : tiled) {
        out += cat("    ", type_text(dtype_of(i)).storage, " t", i, "[", kSide, "][", kSide, "];\n");
        out += cat("    for (ix c = 0; c < columns; ++c) {\n      for (ix r = 0; r < rows; ++r) t", i, "[r][c] = x", i,
                   "[", offset(i), "];\n    }\n");
      }
      out += "    for (ix r = 0; r < rows; ++r) {\n      for (ix c = 0; c < columns; ++c) {\n";
      print_point(
          "        ", offset,
          [&](int32_t i) {
            const bool through_block = std::find(tiled.begin(), tiled.end(), i) != tiled.end();
            return through_block ? cat("t", i, "[r][c]") : cat("x", i, "[", offset(i), "]");
          },
          [&](int32_t i, const std::string& element) { return cat("x", i, "[", offset(i), "] = ", element, ";\n"); });
      out += "      }\n    }\n  }\n";
    }
    recipe.add(builder_, divide_up(items, builder_.dialect().group_size));
  }

  // A group computes a tile of side × side: rows are the positions along `loop`, columns those along the innermost
  // loop.
  void build_tiles(BuiltRecipe& recipe, int loop, const std::vector<int32_t>& tiled, int32_t side) {
    const LoopNest& nest = shape_.nest;
    const int inner = nest.rank - 1, group = builder_.dialect().group_size, columns_at_once = group / side;
    sign_tiles(-side, loop, tiled);
    declare_operands(shape_.nest.rank);
    const LoopNest outer = other_loops(loop);
    Space space(outer);
    const int64_t tile_rows = divide_up(nest.extents[loop], side), tile_columns = divide_up(nest.extents[inner], side);
    const int32_t rows_word = builder_.word(nest.extents[loop]), columns_word = builder_.word(nest.extents[inner]);
    const int32_t tile_rows_word = builder_.word(tile_rows), tile_columns_word = builder_.word(tile_columns);
    space.add_words(builder_, 1);
    const TileStrideWords stride_words = tile_stride_words(loop);
    if (builder_.with_text()) {
      std::string& out = builder_.body;
      out += cat("  const ix rows = ", builder_.index_word(rows_word),
                 ", columns = ", builder_.index_word(columns_word), ";\n");
      out += cat("  const ix tile_rows = ", builder_.index_word(tile_rows_word),
                 ", tile_columns = ", builder_.index_word(tile_columns_word), ";\n");
      out += "  const ix tile = (ix)COMPUTE_GROUP_ID(0), over = tile / tile_columns, place = over / tile_rows;\n";
      out += cat("  const ix row0 = (over - place * tile_rows) * ", side, ", column0 = (tile - over * tile_columns) * ",
                 side, ";\n");
      out += cat("  const int lane = COMPUTE_LOCAL_ID(0) % ", side, ", line = COMPUTE_LOCAL_ID(0) / ", side, ";\n");
      space.decompose(builder_, "  ", "c", "place");
      for (const int32_t i : tiled) {
        out += cat("  COMPUTE_LOCAL ", type_text(dtype_of(i)).storage, " t", i, "[", side, "][", side + 1, "];\n");
      }
      const auto at = [&](int32_t operand, const char* row, const char* column) {
        return cat("(", space.offset(operand, "c"), " + ", row, " * ",
                   builder_.index_word(stride_words.rows[static_cast<size_t>(operand)]), " + ", column, " * ",
                   builder_.index_word(stride_words.columns[static_cast<size_t>(operand)]), ")");
      };
      out += cat(
          "#pragma unroll\n  for (int k = 0; k < ", side, "; k += ", columns_at_once, ") {\n",
          "    const ix row = row0 + lane, column = column0 + k + line;\n    if (row < rows && column < columns) {\n");
      for (const int32_t i : tiled)
        out += cat("      t", i, "[k + line][lane] = x", i, "[", at(i, "row", "column"), "];\n");
      out += "    }\n  }\n";
      const auto is_tiled = [&](int32_t i) { return std::find(tiled.begin(), tiled.end(), i) != tiled.end(); };
      const auto offset = [&](int32_t operand) { return at(operand, "row", "column"); };
      const std::string rows_of_outputs = cat(
          "#pragma unroll\n  for (int k = 0; k < ", side, "; k += ", columns_at_once, ") {\n",
          "    const ix row = row0 + k + line, column = column0 + lane;\n    if (row < rows && column < columns) {\n");
      // One other input is loaded meanwhile, ahead of the stores, which the compiler could not know to be elsewhere.
      const bool loads_ahead = shape_.inputs == static_cast<int32_t>(tiled.size()) + 1;
      if (loads_ahead) {
        int32_t other = 0;
        while (is_tiled(other)) ++other;
        out +=
            cat("  ", type_text(dtype_of(other)).storage, " ahead[", side / columns_at_once, "];\n", rows_of_outputs);
        out += cat("      ahead[k / ", columns_at_once, "] = x", other, "[", offset(other), "];\n    }\n  }\n");
      }
      out += "  COMPUTE_BARRIER();\n" + rows_of_outputs;
      print_point(
          "      ", offset,
          [&](int32_t i) {
            if (is_tiled(i)) return cat("t", i, "[lane][k + line]");
            return loads_ahead ? cat("ahead[k / ", columns_at_once, "]") : cat("x", i, "[", offset(i), "]");
          },
          [&](int32_t i, const std::string& element) { return cat("x", i, "[", offset(i), "] = ", element, ";\n"); });
      out += "    }\n  }\n";
    }
    recipe.add(builder_, outer.points() * tile_rows * tile_columns);
  }

  const Op& op_;
  const compute_plugin_expression& expression_;
  KernelBuilder builder_;
  MapShape shape_;
  std::vector<std::string> scalars_;
  std::vector<int32_t> index_offsets_;
};

}  // namespace

BuiltRecipe build_copy(const Op& op, const Dialect& dialect, bool with_text) {
  const compute_dtype from = op.input(0).dtype, to = op.output(0).dtype;
  compute_plugin_node nodes[2] = {};
  nodes[0].kind = COMPUTE_NODE_INPUT;
  nodes[0].dtype = from == to ? bits_dtype(from) : from;
  nodes[1].kind = COMPUTE_NODE_CALL;
  nodes[1].dtype = to;
  nodes[1].value = COMPUTE_INTRINSIC_CONVERT;
  nodes[1].operand_count = 1;
  const int32_t operand = 0, output = from == to ? 0 : 1;
  compute_plugin_expression expression{};
  expression.struct_size = sizeof expression;
  expression.node_count = output + 1;
  expression.input_count = 1;
  expression.output_count = 1;
  expression.nodes = nodes;
  expression.operands = &operand;
  expression.operand_total = output;
  expression.outputs = &output;
  expression.digest[0] = static_cast<uint8_t>(output);
  BuiltRecipe recipe;
  MapBuilder(op, dialect, expression, "copy", with_text, from == to).build(recipe);
  return recipe;
}

BuiltRecipe build_map(const Op& op, const Dialect& dialect, bool with_text) {
  const compute_plugin_expression& expression = op.expression(0);
  // What only moves elements shares the kernels of copy.
  if (op.input_count() == 1 && expression.node_count == 1 && expression.output_count == 1 &&
      expression.nodes[0].kind == COMPUTE_NODE_INPUT) {
    return build_copy(op, dialect, with_text);
  }
  BuiltRecipe recipe;
  MapBuilder(op, dialect, expression, "map", with_text).build(recipe);
  return recipe;
}

}  // namespace compute::common
