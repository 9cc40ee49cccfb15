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

#include "plugins/common/source/builder/kernel_builder.hpp"
#include "plugins/common/source/map/ops.hpp"

namespace compute::common {
namespace {

#include "plugins/common/source/map/map.inc"

constexpr int64_t kTileBytes = 32 << 10;  // of local memory
constexpr int64_t kLeastTiled = 16;       // extents from which on tiles pay
constexpr int64_t kPassesCaches =
    8 << 20;  // bytes of outputs, on CPU cores, from which on non-temporal stores write them

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
  int32_t least = 16, greatest = 1, written = 1;
  for (size_t i = 0; i < nest.strides.size(); ++i) {
    if (!moves_by_lanes(nest.strides[i][inner])) return 1;
    if (static_cast<int32_t>(i) >= shape.tensors || nest.strides[i][inner] == 0) continue;
    least = std::min(least, shape.sizes[i]);
    greatest = std::max(greatest, shape.sizes[i]);
    if (static_cast<int32_t>(i) >= shape.inputs) written = std::max(written, shape.sizes[i]);
  }
  // Two words per work item are read at half speed from the first level of caches, but written at half speed to the
  // second: neighbouring work items write halves of its sectors.
  const int most = std::min(32 / greatest, 16 / written);
  for (int lanes = std::clamp(16 / least, std::min(16 / greatest, most), most); lanes > 1; lanes /= 2) {
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

  void build(BuiltKernels& built) {
    std::vector<int32_t> tiled;
    if (builder_.dialect().is_host) {
      const int loop = find_tile_loop(shape_, &tiled);
      return loop >= 0 ? build_blocks(built, loop, tiled) : build_runs(built);
    }
    shape_.lanes = choose_lanes(op_, shape_);
    const int tile_loop = shape_.lanes > 1 ? -1 : find_tile_loop(shape_, &tiled);
    if (tile_loop >= 0) {
      int32_t bytes = 0;
      for (const int32_t i : tiled) bytes += shape_.sizes[static_cast<size_t>(i)];
      const int32_t side = 64 * 65 * bytes <= kTileBytes ? 64 : 32;
      if (side * (side + 1) * bytes <= std::min(kTileBytes, builder_.dialect().local_memory_bytes) &&
          side * side % builder_.dialect().group_size == 0 && builder_.dialect().group_size % side == 0) {
        return build_tiles(built, tile_loop, tiled, side);
      }
    }
    build_loop(built);
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

  struct RunWords {
    int32_t extent, parts, items, run, has_unit_strides;
  };

  // On a CPU core: a work item covers part of the innermost loop.
  void build_runs(BuiltKernels& built) {
    constexpr int64_t kShortest = 64, kLongest = 512;
    const LoopNest& nest = shape_.nest;
    const int inner = nest.rank - 1;
    const auto stride = [&](size_t operand) { return nest.rank == 0 ? 0 : nest.strides[operand][inner]; };
    bool has_unit_strides = true;
    for (size_t i = 0; i < nest.strides.size(); ++i) {
      builder_.sign(stride(i) != 0);
      has_unit_strides = has_unit_strides && moves_by_lanes(stride(i));
    }
    // Non-temporal stores do not read lines first, which saves a third of a copy's traffic.
    bool is_streaming = has_unit_strides && nest.rank > 0;
    int64_t written = 0;
    for (int32_t i = shape_.inputs; i < shape_.tensors; ++i) {
      is_streaming = is_streaming && stride(static_cast<size_t>(i)) == 1;
      written += nest.points() * shape_.sizes[static_cast<size_t>(i)];
    }
    is_streaming = is_streaming && written >= kPassesCaches;
    builder_.sign(is_streaming);
    // The index of outer loops is decomposed once per run, which is cheap: up to kOuter of them share a kernel.
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
    const RunWords words = {builder_.word(extent), builder_.word(parts), builder_.word(items), builder_.word(run),
                            builder_.word(has_unit_strides)};
    space.add_words(builder_, 1);
    std::vector<int32_t> stride_words;
    for (size_t i = 0; i < nest.strides.size(); ++i) stride_words.push_back(builder_.word(stride(i)));
    if (builder_.with_text()) builder_.body = runs_text(space, words, stride_words, is_streaming);
    built.add(builder_, divide_up(items, builder_.dialect().group_size));
  }

  std::string runs_text(const Space& space, const RunWords& words, const std::vector<int32_t>& stride_words,
                        bool is_streaming) {
    const auto word = [](int32_t number) { return KernelBuilder::index_word(number); };
    std::string bases;
    for (int32_t i = 0; i < static_cast<int32_t>(stride_words.size()); ++i) {
      bases += cat("const ix b", i, " = ", space.offset(i, "c"), ";\n");
      if (moves(i)) bases += cat("const ix d", i, " = ", word(stride_words[static_cast<size_t>(i)]), ";\n");
    }
    std::vector<Value> values = {{"group", builder_.dialect().group_size},
                                 {"items", word(words.items)},
                                 {"parts", word(words.parts)},
                                 {"run", word(words.run)},
                                 {"extent", word(words.extent)},
                                 {"coordinates", space.coordinates(builder_, "c", "row")},
                                 {"bases", bases},
                                 {"has_unit_strides", word(words.has_unit_strides)},
                                 {"streams", is_streaming}};
    if (is_streaming) {
      std::string addresses = "0", blocks, stores;
      for (int32_t k = shape_.inputs; k < shape_.tensors; ++k) {
        addresses += cat(" | (u64)(x", k, " + b", k, " + first)");
        blocks += cat(type_text(dtype_of(k)).storage, " r", k, "[64] __attribute__((aligned(64)));\n");
        stores += fill(kMapBlockStore, {{"lines", shape_.sizes[static_cast<size_t>(k)]}, {"k", k}});
      }
      values.insert(values.end(), {{"first_addresses", addresses},
                                   {"blocks", blocks},
                                   {"block_point", run_point([](int32_t) { return std::string("i + v"); }, true)},
                                   {"block_stores", stores}});
    }
    values.emplace_back("unit_point", run_point([](int32_t) { return std::string("i"); }));
    values.emplace_back("strided_point", run_point([](int32_t k) { return cat("i * d", k); }));
    return fill(kMapRuns, values);
  }

  // A point of a run; a moving operand is `step` after its base.
  std::string run_point(const std::function<std::string(int32_t)>& step, bool to_block = false) {
    const auto offset = [&](int32_t k) { return moves(k) ? cat("(b", k, " + ", step(k), ")") : cat("b", k); };
    const auto element = [&](int32_t k) { return cat("x", k, "[", offset(k), "]"); };
    return point(offset, element, [&](int32_t k) { return to_block ? cat("r", k, "[v]") : element(k); });
  }

  void build_loop(BuiltKernels& built) {
    Space space(shape_.nest);
    const int lanes = shape_.lanes;
    const Dialect& dialect = builder_.dialect();
    // With few operands, two accesses per operand are in flight.
    const bool is_flat = shape_.nest.rank <= 1;
    const int steps = is_flat && shape_.tensors <= 4 && shape_.axes.empty() ? 2 : 1;
    builder_.sign(steps);
    for (size_t i = 0; i < shape_.nest.strides.size(); ++i) {
      builder_.sign(lanes > 1 ? moves(static_cast<int32_t>(i)) : -1);
    }
    builder_.sign(may_be_woven());
    declare_operands(shape_.nest.rank);
    const int64_t points = shape_.nest.points();
    const int64_t vectors = divide_up(points, lanes);
    const int32_t vectors_word = builder_.word(vectors), points_word = builder_.word(points);
    space.add_words(builder_, lanes);
    if (builder_.with_text()) builder_.body = loop_text(space, vectors_word, points_word, steps);
    built.add(builder_, divide_up(vectors, static_cast<int64_t>(dialect.group_size) * steps));
  }

  // One point: loads, the expression, and assignments to the elements that `stored` names.
  std::string point(const std::function<std::string(int32_t)>& offset,
                    const std::function<std::string(int32_t)>& loaded,
                    const std::function<std::string(int32_t)>& stored) {
    Leaves leaves;
    leaves.input = [&](int32_t i) { return value_of(i, loaded(i)); };
    leaves.index = [&](int32_t axis) { return index_text(axis, offset); };
    leaves.scalar = [&](int32_t i) { return scalars_[static_cast<size_t>(i)]; };
    std::string out;
    const auto values = print_expression(expression_, leaves, "v", builder_.functions(), out);
    for (int32_t k = 0; k < op_.output_count(); ++k) {
      const int32_t i = shape_.inputs + k;
      out += cat(stored(i), " = ", element_of_value(dtype_of(i), values[static_cast<size_t>(k)]), ";\n");
    }
    return out;
  }

  // Whether all outputs have one dtype and move by as many elements as there are outputs, a word of 8 or 16 bytes
  // together. Whether they are neighbours shows at run time.
  bool may_be_woven() const {
    const int32_t outputs = shape_.tensors - shape_.inputs;
    if (shape_.lanes > 1 || shape_.nest.rank != 1 || outputs < 2) return false;
    for (int32_t i = shape_.inputs; i < shape_.tensors; ++i) {
      if (shape_.nest.strides[static_cast<size_t>(i)][0] != outputs || dtype_of(i) != dtype_of(shape_.inputs))
        return false;
    }
    const int32_t bytes = outputs * shape_.sizes.back();
    return bytes == 8 || bytes == 16;
  }

  // Stores of woven outputs, which are `stores` if they are none.
  std::string woven_text(const Space& space, const std::string& stores) {
    const int32_t first = shape_.inputs, outputs = shape_.tensors - first;
    const char* storage = type_text(dtype_of(first)).storage;
    const VectorText vector = vector_type(builder_, storage, shape_.sizes.back(), outputs);
    std::string neighbours = cat("(u64)x", first, " % ", outputs * shape_.sizes.back(), " == 0"), elements;
    for (int32_t k = 0; k < outputs; ++k) {
      if (k > 0) neighbours += cat(" && x", first + k, " == x", first, " + ", k);
      elements += cat("woven.e[", k, "] = r", first + k, "[s];\n");
    }
    return fill(kMapWoven, {{"are_neighbours", neighbours},
                            {"type", vector.type},
                            {"elements", elements},
                            {"words", cat("*(COMPUTE_GLOBAL ", vector.word, "*)(x", first, " + ",
                                          space.offset(first, "c"), ") = woven.v[0];\n")},
                            {"stores", stores}});
  }

  std::string loop_text(const Space& space, int32_t vectors_word, int32_t points_word, int steps) {
    const int lanes = shape_.lanes, group = builder_.dialect().group_size;
    const bool ends_inside = lanes > 1 && shape_.nest.rank == 1;
    const auto is_vector = [&](int32_t i) { return lanes > 1 && moves(i); };
    const auto offset = [&](int32_t i) { return space.offset(i, "c"); };
    std::string registers, loads, stores;
    for (int32_t i = 0; i < shape_.tensors; ++i) {
      const char* storage = type_text(dtype_of(i)).storage;
      const bool is_input = i < shape_.inputs;
      std::string& accesses = is_input ? loads : stores;
      if (!is_vector(i)) {
        registers += cat(storage, " r", i, "[", steps, "];\n");
        accesses += is_input ? cat("r", i, "[s] = x", i, "[", offset(i), "];\n")
                             : cat("x", i, "[", offset(i), "] = r", i, "[s];\n");
        continue;
      }
      const VectorText vector = vector_type(builder_, storage, shape_.sizes[static_cast<size_t>(i)], lanes);
      registers += cat(vector.type, " r", i, "[", steps, "];\n");
      std::string words;
      for (int w = 0; w < vector.words; ++w) {
        const std::string in_register = cat("r", i, "[s].v[", w, "]");
        const std::string in_memory =
            cat("((COMPUTE_GLOBAL ", is_input ? "const " : "", vector.word, "*)(x", i, " + o", i, "))[", w, "]");
        words += is_input ? cat(in_register, " = ", in_memory, ";\n") : cat(in_memory, " = ", in_register, ";\n");
      }
      accesses +=
          fill(is_input ? kMapLoad : kMapStore,
               {{"k", i}, {"offset", offset(i)}, {"ends_inside", ends_inside}, {"lanes", lanes}, {"words", words}});
    }
    if (may_be_woven()) stores = woven_text(space, stores);
    const auto lane_offset = [&](int32_t i) { return is_vector(i) ? cat("(", offset(i), " + v)") : offset(i); };
    const auto in_register = [&](int32_t i) { return cat("r", i, "[s]", is_vector(i) ? ".e[v]" : ""); };
    return fill(kMapLoop, {{"vectors", builder_.index_word(vectors_word)},
                           {"points", builder_.index_word(points_word)},
                           {"group_vectors", group * steps},
                           {"registers", registers},
                           {"steps", steps},
                           {"group", group},
                           {"coordinates", space.coordinates(builder_, "c", "i")},
                           {"ends_inside", ends_inside},
                           {"lanes", lanes},
                           {"loads", loads},
                           {"has_lanes", lanes > 1},
                           {"point", point(lane_offset, in_register, in_register)},
                           {"stores", stores}});
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

  static constexpr int kSide = 16, kBlocks = 4;  // blocks of a work item

  struct BlockWords {
    int32_t rows, columns, across, along, items;
    TileStrideWords strides;
  };

  // On a CPU core, for inputs that move fastest along `loop`: a block's side is a cache line of float32.
  void build_blocks(BuiltKernels& built, int loop, const std::vector<int32_t>& tiled) {
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
    BlockWords words = {builder_.word(nest.extents[loop]),
                        builder_.word(nest.extents[inner]),
                        builder_.word(across),
                        builder_.word(along),
                        builder_.word(items),
                        {}};
    space.add_words(builder_, 1);
    words.strides = tile_stride_words(loop);
    if (builder_.with_text()) builder_.body = blocks_text(space, words, tiled);
    built.add(builder_, divide_up(items, builder_.dialect().group_size));
  }

  std::string blocks_text(const Space& space, const BlockWords& words, const std::vector<int32_t>& tiled) {
    const LoopNest& nest = shape_.nest;
    const auto word = [](int32_t number) { return KernelBuilder::index_word(number); };
    std::string bases, loads;
    for (size_t i = 0; i < nest.strides.size(); ++i) {
      const std::string stride = word(words.strides.rows[i]);
      bases += cat("const ix b", i, " = ", space.offset(static_cast<int>(i), "c"), " + row0 * ", stride, ", d", i,
                   " = ", stride, ";\n");
    }
    const auto offset = [&](int32_t operand) {
      const auto at = static_cast<size_t>(operand);
      const bool has_unit_stride = nest.strides[at][nest.rank - 1] == 1;
      return cat("(b", operand, " + r * d", operand, " + (column0 + c)",
                 has_unit_stride ? "" : " * " + word(words.strides.columns[at]), ")");
    };
    const auto element = [&](int32_t i) { return cat("x", i, "[", offset(i), "]"); };
    for (const int32_t i : tiled) {
      loads += fill(kMapBlockLoad,
                    {{"storage", type_text(dtype_of(i)).storage}, {"k", i}, {"side", kSide}, {"element", element(i)}});
    }
    const auto loaded = [&](int32_t i) {
      const bool through_block = std::find(tiled.begin(), tiled.end(), i) != tiled.end();
      return through_block ? cat("t", i, "[r][c]") : element(i);
    };
    return fill(kMapBlocks, {{"group", builder_.dialect().group_size},
                             {"items", word(words.items)},
                             {"along", word(words.along)},
                             {"across", word(words.across)},
                             {"side", kSide},
                             {"run", kSide * kBlocks},
                             {"columns", word(words.columns)},
                             {"rows", word(words.rows)},
                             {"coordinates", space.coordinates(builder_, "c", "place")},
                             {"bases", bases},
                             {"block_loads", loads},
                             {"point", point(offset, loaded, element)}});
  }

  struct TileWords {
    int32_t rows, columns, tile_rows, tile_columns;
    TileStrideWords strides;
  };

  void build_tiles(BuiltKernels& built, int loop, const std::vector<int32_t>& tiled, int32_t side) {
    const LoopNest& nest = shape_.nest;
    const int inner = nest.rank - 1;
    sign_tiles(-side, loop, tiled);
    declare_operands(shape_.nest.rank);
    const LoopNest outer = other_loops(loop);
    Space space(outer);
    const int64_t tile_rows = divide_up(nest.extents[loop], side), tile_columns = divide_up(nest.extents[inner], side);
    TileWords words = {builder_.word(nest.extents[loop]),
                       builder_.word(nest.extents[inner]),
                       builder_.word(tile_rows),
                       builder_.word(tile_columns),
                       {}};
    space.add_words(builder_, 1);
    words.strides = tile_stride_words(loop);
    if (builder_.with_text()) builder_.body = tiles_text(space, words, tiled, side);
    built.add(builder_, outer.points() * tile_rows * tile_columns);
  }

  std::string tiles_text(const Space& space, const TileWords& words, const std::vector<int32_t>& tiled, int32_t side) {
    const int32_t lines = builder_.dialect().group_size / side;
    const auto word = [](int32_t number) { return KernelBuilder::index_word(number); };
    const auto is_tiled = [&](int32_t i) { return std::find(tiled.begin(), tiled.end(), i) != tiled.end(); };
    const auto offset = [&](int32_t operand) {
      const auto at = static_cast<size_t>(operand);
      return cat("(", space.offset(operand, "c"), " + row * ", word(words.strides.rows[at]), " + column * ",
                 word(words.strides.columns[at]), ")");
    };
    const auto element = [&](int32_t i) { return cat("x", i, "[", offset(i), "]"); };
    std::string tiles, loads;
    for (const int32_t i : tiled) {
      tiles += cat("COMPUTE_LOCAL ", type_text(dtype_of(i)).storage, " t", i, "[", side, "][", side + 1, "];\n");
      loads += cat("t", i, "[k + line][lane] = ", element(i), ";\n");
    }
    const bool loads_ahead = shape_.inputs == static_cast<int32_t>(tiled.size()) + 1;
    int32_t other = 0;
    while (loads_ahead && is_tiled(other)) ++other;
    const auto loaded = [&](int32_t i) {
      if (is_tiled(i)) return cat("t", i, "[lane][k + line]");
      return loads_ahead ? cat("ahead[k / ", lines, "]") : element(i);
    };
    return fill(kMapTiles, {{"rows", word(words.rows)},
                            {"columns", word(words.columns)},
                            {"tile_rows", word(words.tile_rows)},
                            {"tile_columns", word(words.tile_columns)},
                            {"side", side},
                            {"coordinates", space.coordinates(builder_, "c", "place")},
                            {"tiles", tiles},
                            {"lines", lines},
                            {"tile_loads", loads},
                            {"loads_ahead", loads_ahead},
                            {"ahead_type", type_text(dtype_of(other)).storage},
                            {"side_lines", side / lines},
                            {"ahead_element", element(other)},
                            {"point", point(offset, loaded, element)}});
  }

  const Op& op_;
  const compute_plugin_expression& expression_;
  KernelBuilder builder_;
  MapShape shape_;
  std::vector<std::string> scalars_;
  std::vector<int32_t> index_offsets_;
};

}  // namespace

namespace {

// Whether a map gives the elements of its input.
bool is_identity(const Op& op) {
  const compute_plugin_expression& expression = op.expression(0);
  return op.input_count() == 1 && expression.node_count == 1 && expression.output_count == 1 &&
         expression.nodes[0].kind == COMPUTE_PLUGIN_NODE_INPUT;
}

// The same copy of the real and imaginary parts, along one more axis.
struct CopyOfParts {
  explicit CopyOfParts(const Op& op) : description(op.description()) {
    for (int32_t i = 0; i < 2; ++i) {
      compute_plugin_tensor& tensor = tensors[i] = op.tensor(i);
      shapes[i].assign(tensor.shape, tensor.shape + tensor.rank);
      shapes[i].push_back(2);
      for (const int64_t stride : strides_of(tensor)) strides[i].push_back(2 * stride);
      strides[i].push_back(1);
      tensor.struct_size = sizeof tensor;
      tensor.dtype = part_of(tensor.dtype);
      tensor.rank += 1;
      tensor.shape = shapes[i].data();
      tensor.strides = strides[i].data();
    }
    description.tensors = tensors;
  }
  compute_plugin_op description;
  compute_plugin_tensor tensors[2];
  std::vector<int64_t> shapes[2], strides[2];
};

}  // namespace

bool moves_parts(const Op& op) {
  const bool moves = op.name() == "copy" || (op.name() == "map" && is_identity(op));
  return moves && is_complex(op.input(0).dtype) && op.input(0).dtype == op.output(0).dtype &&
         op.input(0).rank < kMaxRank && refuse_unaligned(op);
}

BuiltKernels build_copy(const Op& op, const Dialect& dialect, bool with_text) {
  if (moves_parts(op)) {
    const CopyOfParts parts(op);
    return build_copy(Op(&parts.description), dialect, with_text);
  }
  const compute_dtype from = op.input(0).dtype, to = op.output(0).dtype;
  compute_plugin_node nodes[2] = {};
  nodes[0].kind = COMPUTE_PLUGIN_NODE_INPUT;
  nodes[0].dtype = from == to ? bits_dtype(from) : from;
  nodes[1].kind = COMPUTE_PLUGIN_NODE_CALL;
  nodes[1].dtype = to;
  nodes[1].value = COMPUTE_PLUGIN_INTRINSIC_CONVERT;
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
  BuiltKernels built;
  MapBuilder(op, dialect, expression, "copy", with_text, from == to).build(built);
  return built;
}

BuiltKernels build_map(const Op& op, const Dialect& dialect, bool with_text) {
  // What only moves elements shares the kernels of copy.
  if (is_identity(op)) return build_copy(op, dialect, with_text);
  BuiltKernels built;
  MapBuilder(op, dialect, op.expression(0), "map", with_text).build(built);
  return built;
}

}  // namespace compute::common
