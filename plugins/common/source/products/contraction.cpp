// SPDX-License-Identifier: Apache-2.0
// contraction. Forms:
//
//   small   for many products with a small right side: a work item computes a part of a row, a group several matrices
//   lines   for a few rows or columns, where both operands lie along the depth: see few_lines.hpp
//   tiles   a group computes a square tile, kDepth terms at a time through local memory; while it multiplies these, the
//           next are on their way
//   units   the same for float32 with matrix units
//   warps   the same for float16, bfloat16 and float64 with matrix units whose operands warps hold
//   blocks  on a CPU core: a work item computes kRows × kColumns results alone
//
// Where this keeps more of a GPU busy, the depth of tiles, units and warps is divided, and a second kernel adds up the
// parts. Other products with a vector on one side are reductions, see vector_products.cpp.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <span>

#include "plugins/common/op/matrix_product.hpp"
#include "plugins/common/source/builder/kernel_builder.hpp"
#include "plugins/common/source/builder/ptx_functions.hpp"
#include "plugins/common/source/products/few_lines.hpp"
#include "plugins/common/source/products/matrix_units.hpp"
#include "plugins/common/source/products/ops.hpp"

namespace compute::common {
namespace {

#include "plugins/common/source/products/contraction.inc"

constexpr int kDepth = 16;
constexpr int kRows = 4, kColumns = 16;

// The form of many small products: a right side of at most kMostSmall by kMostSmall. A group has `slots` pieces of
// `rows` rows and all columns; a work item has kSmallColumns columns of a row.
struct Small {
  int slots = 0;
  int rows = 0, blocks = 0;  // work items along a piece's rows and columns
  int depth = 0;             // at least the number of terms: a power of two

  bool is_taken() const { return slots > 0; }
  int items() const { return rows * blocks; }
};

constexpr int kMostSmall = 16, kSmallColumns = 8;  // larger ones fill tiles
constexpr int64_t kLeastSmallGroups = 8, kMostSmallBytes = 32 << 10;

Small choose_small(const Op& op, const Dialect& dialect) {
  const compute_plugin_tensor& c = op.output(0);
  const compute_dtype wide = computed_in(c.dtype);
  const int32_t rank = c.rank;
  Small form;
  if (dialect.is_host || rank < 2 || wide == COMPUTE_DTYPE_BOOL || op.input(0).dtype != c.dtype) return form;
  const int64_t m = c.shape[rank - 2], n = c.shape[rank - 1], k = op.input(0).shape[rank - 1];
  if (n > kMostSmall || k > kMostSmall || n < 2 || k < 2 || m < 2) return form;
  const int64_t products = std::accumulate(c.shape, c.shape + rank - 2, int64_t{1}, std::multiplies<>());
  form.blocks = static_cast<int>(divide_up(n, kSmallColumns));
  const auto power = [](int64_t x) { return static_cast<int>(std::bit_ceil(static_cast<uint64_t>(x))); };
  form.rows = std::min(
      power(m), std::max(static_cast<int>(std::bit_floor(static_cast<unsigned>(dialect.group_size / form.blocks))), 1));
  form.depth = power(k);
  const int64_t pieces = divide_up(m, form.rows) * products;
  const int slots = dialect.group_size / form.items();
  const int64_t matrix_bytes = int64_t{form.depth} * form.blocks * kSmallColumns * dtype_size(wide);
  const int64_t most_bytes = std::min(kMostSmallBytes, dialect.local_memory_bytes);
  if (pieces < kLeastSmallGroups * slots || slots * matrix_bytes > most_bytes) return form;
  form.slots = slots;
  return form;
}

// The side of a tile: large ones read less, but have to fill the device, and be filled by the matrices.
int choose_tile(const Dialect& dialect, int64_t m, int64_t n, int64_t batch, int32_t value_size) {
  for (const int tile : {128, 64}) {
    const int64_t tiles = divide_up(m, tile) * divide_up(n, tile) * batch;
    if (2 * std::min(m, n) > tile && tiles >= dialect.compute_units &&
        2 * kDepth * (tile + 4) * value_size <= std::min<int64_t>(dialect.local_memory_bytes, 48 << 10))
      return tile;
  }
  return 32;
}

// Whether nearly every compute unit has a tile.
bool fills(int64_t tiles, int64_t compute_units) { return tiles * 16 >= compute_units * 15; }

// A tile of warps: see kContractionWarps. A step has `words` words of 16 bytes along the depth.
struct WarpTile {
  int rows = 0, columns = 0;
  int words = 0, stages = 0, parts = 0;  // of a step
  int warps_across = 0;                  // along the columns

  int side_words(size_t i) const { return (i == 0 ? rows : columns) * words; }
  int row_blocks() const { return rows * warps_across / (kGroupWarps * 16); }
  int column_blocks() const { return columns / (warps_across * 8); }
  static constexpr int kGroupWarps = 8;
};

// From the largest, which reads least, to the smallest, which fills a device soonest.
constexpr WarpTile kTilesOfHalves[] = {{128, 256, 2, 4, 1, 4}, {128, 128, 4, 3, 2, 4}, {64, 64, 4, 4, 2, 2}};
constexpr WarpTile kTilesOfFloat64[] = {{128, 128, 4, 3, 2, 2}, {64, 64, 4, 4, 2, 2}};
constexpr int64_t kLeastOfWarps = 32, kMostWarpBytes = 48 << 10;

WarpTile choose_warp_tile(compute_dtype dtype, int64_t compute_units, int64_t m, int64_t n, int64_t batch) {
  const std::span<const WarpTile> tiles =
      dtype == COMPUTE_DTYPE_FLOAT64 ? std::span<const WarpTile>(kTilesOfFloat64) : kTilesOfHalves;
  for (const WarpTile& tile : tiles.first(tiles.size() - 1))
    if (fills(divide_up(m, tile.rows) * divide_up(n, tile.columns) * batch, compute_units)) return tile;
  return tiles.back();
}

class ContractionBuilder {
 public:
  ContractionBuilder(const Op& op, const Dialect& dialect, bool is_join, bool with_text)
      : op_(op),
        dialect_(dialect),
        is_join_(is_join),
        builder_(dialect, "contraction", with_text),
        dtype_(op.output(0).dtype),
        wide_(computed_in(dtype_)),
        size_(dtype_size(dtype_)),
        rank_(op.output(0).rank),
        is_scaled_(op.integer("scaled", 0) == 1),
        has_addend_(is_scaled_ && is_given(op, 2)),
        has_bias_(is_given(op, 3)),
        has_epilogue_(op.expression_count() > 0),
        tensors_(operands()),
        strides_(operand_strides()),
        space_(collapse_operands(shape_of(op.output(0)).first(static_cast<size_t>(rank_ - 2)), strides_, 2)),
        m_(op.output(0).shape[rank_ - 2]),
        n_(op.output(0).shape[rank_ - 1]),
        k_(op.input(0).shape[rank_ - 1]),
        a_along_k_(std::llabs(stride(0, 1)) <= std::llabs(stride(0, 0))),
        b_along_n_(std::llabs(stride(1, 1)) <= std::llabs(stride(1, 0))),
        b_in_rows_(stride(1, 1) == 1),
        lines_(choose_few_lines(op, dialect)),
        small_(lines_.is_taken() ? Small() : choose_small(op, dialect)),
        has_units_(!lines_.is_taken() && !small_.is_taken() && takes_units()),
        has_warps_(!lines_.is_taken() && !small_.is_taken() && takes_warps()),
        units_(has_units_ ? choose_unit_tiles(space_.points(), m_, n_, k_, dialect.compute_units) : UnitTiles{}),
        warps_(has_warps_ ? choose_warp_tile(dtype_, dialect.compute_units, m_, n_, space_.points()) : WarpTile{}),
        tile_(choose_tile(dialect, m_, n_, space_.points(), dtype_size(wide_))),
        rows_(dialect.is_host     ? kRows
              : lines_.is_taken() ? lines_.of_group(0, dialect.group_size)
              : small_.is_taken() ? small_.rows
              : has_units_        ? units_.rows()
              : has_warps_        ? warps_.rows
                                  : tile_),
        columns_(dialect.is_host     ? kColumns
                 : lines_.is_taken() ? lines_.of_group(1, dialect.group_size)
                 : small_.is_taken() ? small_.blocks * kSmallColumns
                 : has_units_        ? units_.columns()
                 : has_warps_        ? warps_.columns
                                     : tile_),
        tile_rows_(divide_up(m_, rows_)),
        tile_columns_(divide_up(n_, columns_)) {
    divide_depth();
  }

  bool is_divided() const { return parts_ > 1; }
  int64_t partial_bytes() const { return parts_ * results() * dtype_size(wide_); }

  void add_to(BuiltKernels& built) {
    builder_.is_wide = is_wide();
    sign_operands();
    add_operands();
    add_words();
    if (has_units_ && !is_join_) builder_.local_bytes = units_.tile.local_bytes();
    if (is_tiled() && !is_join_ && tile_ == 128 && dtype_size(wide_) == 4) builder_.least_at_once = 2;
    builder_.starts_next = lines_.is_taken() && lines_.is_of_words();
    builder_.least_at_once = std::max(builder_.least_at_once, lines_.at_once);
    if (lines_.how == FewLines::How::kStaged)
      builder_.local_bytes = lines_.stages * lines_.stage_bytes(dialect_.group_size);
    if (builder_.with_text()) {
      builder_.body = is_join_ ? join_text() : text();
      builder_.globals += "#define COMPUTE_STEP " + step() + "\n";
    }
    if (is_join_) {
      built.add(builder_, divide_up(results(), dialect_.group_size));
    } else {
      built.add(builder_, dialect_.is_host    ? divide_up(tiles(), dialect_.group_size)
                          : small_.is_taken() ? divide_up(tiles(), small_.slots)
                                              : tiles() * parts_);
    }
  }

 private:
  // operands in the block: a, b, c, and where given addend and bias
  std::vector<int32_t> operands() const {
    std::vector<int32_t> tensors = {0, 1, op_.input_count()};
    if (has_addend_) tensors.push_back(2);
    if (has_bias_) tensors.push_back(3);
    return tensors;
  }

  std::vector<std::vector<int64_t>> operand_strides() const {
    std::vector<std::vector<int64_t>> strides;
    for (const int32_t i : tensors_) strides.push_back(strides_of(op_.tensor(i)));
    return strides;
  }

  // Of operand `i` along rows (0) or columns (1).
  int64_t stride(size_t i, int32_t axis) const { return strides_[i][static_cast<size_t>(rank_ - 2 + axis)]; }

  bool is_tiled() const {
    return !dialect_.is_host && !has_units_ && !has_warps_ && !lines_.is_taken() && !small_.is_taken();
  }

  // Then no item divides before it loads, which would take long beside reading a small matrix.
  bool is_one_row_of_tiles() const { return lines_.is_taken() && space_.points() == 1 && tile_rows_ == 1; }
  int64_t tiles() const { return space_.points() * tile_rows_ * tile_columns_; }
  int64_t results() const { return space_.points() * m_ * n_; }

  // Of few tiles and many terms, so that there are two groups for each compute unit.
  void divide_depth() {
    constexpr int64_t kLeastTerms = 128, kMostParts = 256;
    parts_ = units_.parts;
    part_depth_ = units_.part_depth;
    if (!(is_tiled() || has_warps_) || fills(tiles(), dialect_.compute_units) || is_complex(wide_)) return;
    if (wide_ == COMPUTE_DTYPE_BOOL || results() > INT32_MAX / 8) return;
    const int64_t wanted = std::min(divide_up(2 * dialect_.compute_units, std::max<int64_t>(tiles(), 1)), kMostParts);
    const int64_t parts = std::min(wanted, k_ / kLeastTerms);
    if (parts < 2) return;
    const int64_t step = has_warps_ ? warp_terms() : kDepth;
    part_depth_ = divide_up(divide_up(k_, parts), step) * step;
    parts_ = divide_up(k_, part_depth_);
  }

  bool takes_units() const {
    return dialect_.has_tile_units && dialect_.group_size == 256 && dtype_ == COMPUTE_DTYPE_FLOAT32 &&
           op_.input(0).dtype == dtype_ && k_ >= kUnitDepth && !is_wide() && results() <= INT32_MAX / 8;
  }

  // Whether units multiply what warps hold: operands that lie in whole words. A library would be faster.
  bool takes_warps() const {
    const bool has_units =
        dtype_ == COMPUTE_DTYPE_FLOAT64 ? dialect_.has_float64_units : is_half(dtype_) && dialect_.has_matrix_units;
    if (!has_units || !dialect_.has_warps || dialect_.has_vendor_products) return false;
    if (dialect_.group_size != WarpTile::kGroupWarps * kWarp || dialect_.local_memory_bytes < kMostWarpBytes)
      return false;
    if (op_.input(0).dtype != dtype_ || op_.input(1).dtype != dtype_) return false;
    if (std::min({m_, n_, k_}) < kLeastOfWarps) return false;
    return lies_in_words_of_side(0, a_along_k_) && lies_in_words_of_side(1, !b_along_n_);
  }
  // Whether words lie along the depth or the side, all of them whole.
  bool lies_in_words_of_side(size_t i, bool along_depth) const {
    const bool is_last = (i == 0) == along_depth;
    const int64_t extent = along_depth ? k_ : i == 0 ? m_ : n_;
    return extent % lanes() == 0 && lies_in_words(op_.input(static_cast<int32_t>(i)), rank_ - (is_last ? 1 : 2), size_);
  }
  int lanes() const { return kWordBytes / size_; }           // elements of a word
  int warp_terms() const { return warps_.words * lanes(); }  // of a step

  // Whether four elements of a or b along the depth are a word.
  bool has_quads(size_t i) const {
    return lies_in_words(op_.input(static_cast<int32_t>(i)), i == 0 ? rank_ - 1 : rank_ - 2, size_);
  }
  UnitLoads unit_loads(size_t i) const {
    if (i == 0 ? !a_along_k_ : b_along_n_) return UnitLoads::kAlongSide;
    return has_quads(i) ? UnitLoads::kQuadsAlongDepth : UnitLoads::kAlongDepth;
  }

  // ---- parameters

  bool is_wide() const {
    const std::vector<int32_t> sizes(tensors_.size(), size_);
    std::array<int64_t, 5> matrices{};
    bool is_wide = false;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const int64_t rows = i == 1 ? k_ : m_, columns = i == 0 ? k_ : n_;
      matrices[i] = std::llabs(stride(i, 0)) * rows + std::llabs(stride(i, 1)) * columns;
      is_wide = is_wide || matrices[i] * size_ > INT32_MAX / 2;
    }
    return is_wide || needs_wide(space_.nest(), sizes, space_.points(), matrices);
  }

  void sign_operands() {
    builder_.sign(dtype_);
    builder_.sign(space_.rank());
    builder_.sign(!dialect_.is_host && a_along_k_);
    builder_.sign(!dialect_.is_host && b_along_n_);
    builder_.sign(is_scaled_);
    builder_.sign(has_addend_);
    builder_.sign(has_bias_);
    builder_.sign(is_join_);
    builder_.sign(is_divided());
    builder_.sign(has_units_);
    builder_.sign(has_warps_);
    if (is_tiled() || !lines_.is_of_words()) builder_.sign(has_end());
    builder_.sign(lines_.side);
    if (lines_.is_taken()) {
      builder_.sign(lines_.few);
      builder_.sign(lines_.lines);
      builder_.sign(lines_.steps);
      builder_.sign(lines_.along);
      builder_.sign(static_cast<int64_t>(lines_.how));
      builder_.sign(lines_.stages);
      builder_.sign(lines_.at_once);
      builder_.sign(is_one_row_of_tiles());
    }
    builder_.sign(small_.slots);
    if (small_.is_taken()) {
      builder_.sign(small_.rows);
      builder_.sign(small_.blocks);
      builder_.sign(small_.depth);
      builder_.sign(is_right_shared());
      builder_.sign(left_lanes());
    }
    if (has_units_) {
      builder_.sign(units_.rows() * 1024 + units_.columns());
      builder_.sign(units_.is_swapped);
      for (const size_t i : {0, 1}) {
        builder_.sign(static_cast<int64_t>(unit_loads(i)));
        builder_.sign(is_dense(i));
      }
      builder_.sign(k_ % kUnitDepth == 0);
    }
    builder_.sign(has_epilogue_);
    if (has_epilogue_) builder_.sign(op_.expression(0));
  }

  void add_operands() {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      builder_.pointer(Pointer::kTensor, tensors_[i], space_.nest().offsets[i] * size_);
      builder_.declare(static_cast<int32_t>(i), type_text(dtype_).storage, i != 2);
    }
    if (is_divided()) {
      partials_ = builder_.pointer(Pointer::kWorkspace, 0, 0);
      builder_.declare(partials_, type_text(wide_).storage, is_join_);
    }
    if (is_scaled_) {
      alpha_ = builder_.scalar(0, op_.scalar_dtype(0));
      beta_ = builder_.scalar(1, op_.scalar_dtype(1));
    }
    for (int32_t i = is_scaled_ ? 2 : 0; i < op_.scalar_count(); ++i)
      epilogue_scalars_.push_back(builder_.scalar(i, op_.scalar_dtype(i)));
  }

  void add_words() {
    builder_.sign(is_tiled() ? tile_ : has_warps_ ? warps_.rows * 1024 + warps_.columns : 0);
    builder_.sign((dialect_.is_host || small_.is_taken()) && b_in_rows_);
    m_word_ = builder_.word(m_);
    n_word_ = builder_.word(n_);
    k_word_ = builder_.word(k_);
    rows_word_ = builder_.word(tile_rows_);
    columns_word_ = builder_.word(tile_columns_);
    tiles_word_ = builder_.word(tiles());
    for (size_t i = 0; i < tensors_.size(); ++i)
      stride_words_.push_back({builder_.word(stride(i, 0)), builder_.word(stride(i, 1))});
    space_.add_words(builder_, 1);
    parts_word_ = builder_.word(parts_);
    part_depth_word_ = builder_.word(part_depth_);
    places_word_ = builder_.word(space_.points());
    results_word_ = builder_.word(results());
  }

  // ---- text

  static std::string word(int32_t number) { return KernelBuilder::index_word(number); }

  const char* value() const { return type_text(wide_).value; }
  std::string zero() const {
    uint8_t zero_bits[16] = {};
    return constant_text(wide_, zero_bits);
  }

  // Rows and columns of a work item: runs of up to four that follow one another, so that they are loaded at once.
  int lines() const { return dialect_.group_size / 16; }
  int side_m() const {
    if (lines_.is_taken()) return lines_.of_item(0);
    if (small_.is_taken()) return 1;
    return dialect_.is_host ? kRows : has_units_ ? 2 : has_warps_ ? warps_.row_blocks() * 2 : tile_ / lines();
  }
  int side_n() const {
    if (lines_.is_taken()) return lines_.of_item(1);
    if (small_.is_taken()) return kSmallColumns;
    return dialect_.is_host ? kColumns
           : has_units_     ? units_.tile.item_columns()
           : has_warps_     ? warps_.column_blocks() * 2
                            : tile_ / 16;
  }
  std::string row_of() const {
    if (lines_.is_taken()) return lines_.place(0);
    if (small_.is_taken()) return "line";
    if (dialect_.is_host) return "i";
    if (has_units_) return units_.is_swapped ? units_.tile.column_of_j() : units_.tile.row_of_i();
    if (has_warps_) {
      return cat("id / ", kWarp * warps_.warps_across, " * ", warps_.row_blocks() * 16,
                 " + i / 2 * 16 + i % 2 * 8 + id % 32 / 4");
    }
    const int run = std::min(side_m(), 4);
    return cat("row_id * ", run, " + i % ", run, " + i / ", run, " * ", lines() * run);
  }
  std::string column_of() const {
    if (lines_.is_taken()) return lines_.place(1);
    if (small_.is_taken()) return "block0 + j";
    if (dialect_.is_host) return "j";
    if (has_units_) return units_.is_swapped ? units_.tile.row_of_i() : units_.tile.column_of_j();
    if (has_warps_) {
      return cat("id / 32 % ", warps_.warps_across, " * ", warps_.column_blocks() * 8,
                 " + j / 2 * 8 + id % 4 * 2 + j % 2");
    }
    const int run = std::min(side_n(), 4);
    return cat("column_id * ", run, " + j % ", run, " + j / ", run, " * ", 16 * run);
  }

  // An operand's element in memory; `in_rows` where its columns are neighbours.
  std::string element(int operand, const std::string& row, const std::string& column, bool in_rows = false) const {
    const auto& words = stride_words_[static_cast<size_t>(operand)];
    return cat("x", operand, "[b", operand, " + ", row, " * ", word(words[0]), " + ", column,
               in_rows ? "" : " * " + word(words[1]), "]");
  }
  std::string wide_value(const std::string& element) {
    return convert_text(value_of_element(dtype_, element), dtype_, wide_, builder_.functions());
  }

  std::string add(const std::string& x, const std::string& y) {
    return wide_ == COMPUTE_DTYPE_BOOL ? cat("(bool)(", x, " || ", y, ")")
                                       : call_text(COMPUTE_PLUGIN_INTRINSIC_ADD, wide_, {x, y}, builder_.functions());
  }
  std::string multiply(const std::string& x, const std::string& y) {
    return wide_ == COMPUTE_DTYPE_BOOL ? cat("(bool)(", x, " && ", y, ")")
                                       : call_text(COMPUTE_PLUGIN_INTRINSIC_MUL, wide_, {x, y}, builder_.functions());
  }

  std::string text() {
    std::vector<Value> values = place_values();
    values.insert(values.end(), {{"is_divided", is_divided()},
                                 {"is_on_device", !dialect_.is_host},
                                 {"has_sums", !has_units_},
                                 {"places", word(places_word_)}});
    if (is_divided()) {
      values.emplace_back("partial", partial("((place * m + row) * n + column)"));
    } else {
      values.emplace_back("finish", fill(kContractionFinish, result_values()));
    }
    return fill(kContraction, values);
  }

  std::string join_text() {
    return fill(kContractionJoin, {{"group_size", dialect_.group_size},
                                   {"results", word(results_word_)},
                                   {"n", word(n_word_)},
                                   {"m", word(m_word_)},
                                   {"coordinates", space_.coordinates(builder_, "c", "place")},
                                   {"bases", bases()},
                                   {"type", value()},
                                   {"zero", zero()},
                                   {"parts", word(parts_word_)},
                                   {"partial", partial("item")},
                                   {"result_and_next", add("result", "next")},
                                   {"finish", fill(kContractionFinish, result_values())}});
  }
  std::string partial(const std::string& item) const {
    return cat("x", partials_, "[part * ", word(results_word_), " + ", item, "]");
  }
  std::string bases() const {
    std::string out;
    for (int i = 0; i < static_cast<int>(tensors_.size()); ++i)
      out += cat("const ix b", i, " = ", space_.offset(i, "c"), ";\n");
    return out;
  }

  std::vector<Value> place_values() {
    return {{"m", word(m_word_)},
            {"n", word(n_word_)},
            {"depth", word(k_word_)},
            {"tile", tile_of_item()},
            {"over", is_one_row_of_tiles() ? "0" : cat("tile / ", word(columns_word_))},
            {"up", is_one_row_of_tiles() ? "0" : cat("over / ", word(rows_word_))},
            {"tile_columns", word(columns_word_)},
            {"tile_rows", word(rows_word_)},
            {"is_host", dialect_.is_host},
            {"tiles", word(tiles_word_)},
            {"rows", rows_},
            {"columns", columns_},
            {"coordinates", space_.coordinates(builder_, "c", "place")},
            {"bases", bases()},
            {"type", value()},
            {"item_rows", side_m()},
            {"item_columns", side_n()},
            {"zero", zero()},
            {"depth_place", is_divided() ? cat("const ix depth_begin = part * ", word(part_depth_word_),
                                               ", depth_end = depth_begin + ", word(part_depth_word_),
                                               " < depth ? depth_begin + ", word(part_depth_word_), " : depth;\n")
                                         : std::string("const ix depth_begin = 0, depth_end = depth;\n")},
            {"terms", dialect_.is_host    ? block_text()
                      : lines_.is_taken() ? lines_text()
                      : small_.is_taken() ? small_text()
                      : has_units_        ? units_text()
                      : has_warps_        ? warps_text()
                                          : tile_text()},
            {"row_of_i", row_of()},
            {"column_of_j", column_of()}};
  }

  std::string tile_of_item() const {
    const std::string group = "(ix)COMPUTE_GROUP_ID(0)";
    if (dialect_.is_host) return cat(group, " * ", dialect_.group_size, " + COMPUTE_LOCAL_ID(0)");
    if (!small_.is_taken()) return group;
    const std::string own = cat("(", group, " * ", small_.slots, " + COMPUTE_LOCAL_ID(0) / ", small_.items(), ")");
    return cat("(", own, " < ", word(tiles_word_), " ? ", own, " : ", word(tiles_word_), " - 1)");
  }

  // ---- small

  bool is_right_shared() const {
    for (int loop = 0; loop < space_.rank(); ++loop)
      if (space_.nest().strides[1][loop] != 0) return false;
    return true;
  }
  // Elements of a row of the left side that are loaded at once.
  int left_lanes() const { return lies_in_words(op_.input(0), rank_ - 1, size_) ? kWordBytes / size_ : 1; }

  std::string small_text() {
    const int lanes = left_lanes(), width = small_.blocks * kSmallColumns;
    const VectorText vector = vector_type(builder_, type_text(dtype_).storage, size_, lanes);
    const auto& strides = stride_words_[0];
    const std::string left =
        cat("(b0 + left_row * ", word(strides[0]), " + d", lanes > 1 ? "" : " * " + word(strides[1]), ")");
    return fill(kContractionSmall,
                {{"items", small_.items()},
                 {"blocks", small_.blocks},
                 {"columns", kSmallColumns},
                 {"slots", small_.slots},
                 {"is_shared", is_right_shared()},
                 {"copies", is_right_shared() ? 1 : small_.slots},
                 {"depth_limit", small_.depth},
                 {"width", width},
                 {"group_size", dialect_.group_size},
                 {"tiles", word(tiles_word_)},
                 {"type", value()},
                 {"zero", zero()},
                 {"right_place", b_along_n_ ? cat("const int t = e / ", width, ", j = e % ", width, ";")
                                            : cat("const int j = e / ", small_.depth, ", t = e % ", small_.depth, ";")},
                 {"right", wide_value(element(1, "t", "j", b_in_rows_))},
                 {"vector", vector.type},
                 {"lanes", lanes},
                 {"left_word", cat("*(COMPUTE_GLOBAL const ", vector.word, "*)(x0 + ", left, ")")},
                 {"left", wide_value("word.e[e]")}});
  }

  // ---- lines

  std::string lines_text() {
    FewLinesText text;
    text.form = lines_;
    text.dtype = dtype_;
    text.value = value();
    text.has_end = has_end();
    for (const size_t side : {0, 1}) text.line_strides[side] = word(stride_words_[side][side]);
    text.left = wide_value("left[s][i].e[e]");
    text.right = wide_value("right[s][j].e[e]");
    return few_lines_text(text, builder_);
  }

  // ---- units

  // Whether neighbours along the side or the depth, in which it is loaded, are neighbours in memory.
  bool is_dense(size_t i) const {
    const bool along_depth = unit_loads(i) != UnitLoads::kAlongSide;
    return stride(i, (i == 0) == along_depth ? 1 : 0) == 1;
  }

  UnitSide unit_side(size_t i) const {
    const UnitLoads loads = unit_loads(i);
    const bool along_depth = loads != UnitLoads::kAlongSide, quads = loads == UnitLoads::kQuadsAlongDepth;
    const auto& words = stride_words_[i];
    const std::string side_stride = word(words[i == 0 ? 0 : 1]), depth_stride = word(words[i == 0 ? 1 : 0]);
    const std::string at = cat("x", i, "[b", i, " + (", i == 0 ? "row0" : "column0", " + t)",
                               !along_depth && is_dense(i) ? "" : " * " + side_stride, " + (depth_begin + next * ",
                               kUnitDepth, " + d)", along_depth && is_dense(i) ? "" : " * " + depth_stride, "]");
    const std::string full =
        k_ % kUnitDepth == 0 ? "" : cat(" && depth_begin + next * ", kUnitDepth, " + d < depth_end");
    return {loads, cat("if (", i == 0 ? "row0 + t < m" : "column0 + t < n", full,
                       ") loaded = ", quads ? cat("*(const float4*)&", at) : at, ";\n")};
  }

  std::string units_text() {
    UnitLoop loop;
    loop.tile = units_.tile;
    loop.left = unit_side(units_.is_swapped ? 1 : 0);
    loop.right = unit_side(units_.is_swapped ? 0 : 1);
    return unit_text(loop, builder_);
  }

  // ---- warps

  std::string warps_text() {
    const bool is_float64 = dtype_ == COMPUTE_DTYPE_FLOAT64;
    builder_.globals += kCopyFunctions;
    if (is_float64) {
      builder_.globals += kFloat64Product;
    } else {
      builder_.globals += kMatrixLoads;
      builder_.globals += fill(kHalfProduct, {{"half_type", dtype_ == COMPUTE_DTYPE_FLOAT16 ? "f16" : "bf16"}});
    }
    const auto operands = is_float64 ? &ContractionBuilder::float64_operands : &ContractionBuilder::half_operands;
    const std::string load_step = fill(kContractionWarpsStep, {{"terms", warp_terms()},
                                                               {"stages", warps_.stages},
                                                               {"left_words", warps_.side_words(0)},
                                                               {"left_load", warp_load(0, a_along_k_)},
                                                               {"right_words", warps_.side_words(1)},
                                                               {"right_load", warp_load(1, !b_along_n_)}});
    const std::string load_part = fill(kContractionWarpsPart, {{"parts", warps_.parts},
                                                               {"stages", warps_.stages},
                                                               {"row_blocks", warps_.row_blocks()},
                                                               {"left_operands", (this->*operands)(0, a_along_k_)},
                                                               {"column_blocks", warps_.column_blocks()},
                                                               {"right_operands", (this->*operands)(1, !b_along_n_)}});
    return fill(kContractionWarps,
                {{"stages", warps_.stages},
                 {"left_words", warps_.side_words(0)},
                 {"right_words", warps_.side_words(1)},
                 {"warps_across", warps_.warps_across},
                 {"row_blocks", warps_.row_blocks()},
                 {"column_blocks", warps_.column_blocks()},
                 {"terms", warp_terms()},
                 {"parts", warps_.parts},
                 {"sum_type", value()},
                 {"operand_type", is_float64 ? "f64" : "u32"},
                 {"operands", is_float64 ? 2 : 4},
                 {"right_operands", is_float64 ? "right[part][j / 2][j % 2]"
                                               : "right[part][j / 2][j % 2 * 2], right[part][j / 2][j % 2 * 2 + 1]"},
                 {"load_step", load_step},
                 {"load_part", load_part},
                 {"item_rows", side_m()},
                 {"item_columns", side_n()}});
  }

  // Words of a side's row in local memory, and the place of word w of row t.
  int row_words(size_t i, bool along_depth) const {
    return along_depth ? warps_.words : (i == 0 ? warps_.rows : warps_.columns) / lanes();
  }
  std::string word_place(size_t i, bool along_depth, const char* stage, const std::string& t,
                         const std::string& w) const {
    const int row = row_words(i, along_depth);
    const std::string swap = dtype_ == COMPUTE_DTYPE_FLOAT64 ? cat(t, along_depth ? " / 2 % 2 * 2" : " % 4 * 2")
                             : along_depth                   ? cat(t, " / ", 8 / row, " % ", row)
                                                             : cat(t, " % 8");
    return cat(i == 0 ? "left_at" : "right_at", " + ", stage, " * ", warps_.side_words(i) * kWordBytes, " + (u32)(", t,
               " * ", row, " + (", w, " ^ ", swap, ")) * 16");
  }

  // Loads word `e` of a side: the word w of element t of the side, or of term t.
  std::string warp_load(size_t i, bool along_depth) const {
    const int row = row_words(i, along_depth);
    const auto& words = stride_words_[i];
    const char *side = i == 0 ? "row0" : "column0", *extent = i == 0 ? "m" : "n";
    const std::string stride = word(words[(i == 0) == along_depth ? 0 : 1]);
    const std::string t = cat(along_depth ? side : "from", " + t"),
                      w = cat(along_depth ? "from" : side, " + w * ", lanes());
    return cat("const int t = e / ", row, ", w = e % ", row, ";\nconst bool exists = ", t, " < ",
               along_depth ? extent : "depth_end", " && ", w, " < ", along_depth ? "depth_end" : extent,
               ";\ncompute_copy_async(", word_place(i, along_depth, "stage", "t", "w"), ", x", i, " + b", i,
               " + (exists ? (", t, ") * ", stride, " + ", w, " : 0), exists);\n");
  }

  // Loads the operands of products of 16 terms: of 16 rows, or of twice 8 columns.
  std::string half_operands(size_t i, bool along_depth) const {
    // The second and fourth matrix are the next rows of the left side, but the next terms of the right side.
    const char *one = "lane / 8 % 2", *other = "lane / 16";
    const char *next_rows = i == 0 ? one : other, *next_terms = i == 0 ? other : one;
    const std::string place = word_place(i, along_depth, "next", "t", "w");
    const std::string places =
        along_depth ? cat("const int t = first + ", next_rows, " * 8 + lane % 8, w = d + ", next_terms, ";\n")
                    : cat("const int t = (d + ", next_terms, ") * 8 + lane % 8, w = first / 8 + ", next_rows, ";\n");
    return cat(places, along_depth ? "compute_load_matrices(" : "compute_load_transposed(",
               i == 0 ? "left[to][i]" : "right[to][j / 2]", ", ", place, ");\n");
  }

  // The same of 4 terms.
  std::string float64_operands(size_t i, bool along_depth) const {
    std::string out = "const int term = d * 2 + lane % 4, line = first + lane / 4;\n";
    for (const int next : {0, 1}) {
      const std::string line = cat("(line + ", next * 8, ")"), along = along_depth ? "term" : line;
      out += cat(i == 0 ? "left[to][i]" : "right[to][j / 2]", "[", next, "] = compute_load_local(",
                 word_place(i, along_depth, "next", along_depth ? line : "term", along + " / 2"), " + (u32)(", along,
                 " % 2 * 8));\n");
    }
    return out;
  }

  // ---- blocks

  std::string block_text() {
    return fill(kContractionBlock, {{"rows", kRows},
                                    {"columns", kColumns},
                                    {"type", value()},
                                    {"left", wide_value(element(0, "rows[i]", "k"))},
                                    {"right_inside", wide_value(element(1, "k", "(column0 + j)", b_in_rows_))},
                                    {"right", wide_value(element(1, "k", "column"))}});
  }

  // ---- tiles

  // Elements of a tile of terms that a work item loads.
  int per_item() const { return tile_ * kDepth / dialect_.group_size; }

  std::string tile_text() {
    return fill(kContractionTile, {{"type", value()},
                                   {"depth", kDepth},
                                   {"padded_side", tile_ + 4},
                                   {"loads", per_item()},
                                   {"fetch_first", fetch_text("depth_begin")},
                                   {"storage", type_text(dtype_).storage},
                                   {"left_place", element_place(a_along_k_)},
                                   {"left_value", wide_value("next_left[e]")},
                                   {"right_place", element_place(!b_along_n_)},
                                   {"right_value", wide_value("next_right[e]")},
                                   {"fetch_next", fetch_text(cat("(k0 + ", kDepth, ")"))},
                                   {"item_rows", side_m()},
                                   {"item_columns", side_n()},
                                   {"row_of_i", row_of()},
                                   {"column_of_j", column_of()}});
  }

  // Which element of a tile of terms the work item's element `e` is: neighbouring items load adjacent memory.
  std::string element_place(bool depth_first) const {
    const std::string number = cat("(id + e * ", dialect_.group_size, ")");
    return depth_first ? cat("const int d = ", number, " % ", kDepth, ", t = ", number, " / ", kDepth, ";")
                       : cat("const int t = ", number, " % ", tile_, ", d = ", number, " / ", tile_, ";");
  }

  // Whether the last step of a part has fewer terms.
  bool has_end() const { return k_ % (lines_.is_taken() ? lines_.pace(size_) : kDepth) != 0; }

  std::string fetch_text(const std::string& from) const {
    const auto load = [&](const char* next, bool is_left) {
      const auto of_term = [&](const std::string& term) {
        return is_left ? element(0, "row", term) : element(1, term, "column");
      };
      return fill(kContractionLoad, {{"has_end", has_end()},
                                     {"from", from},
                                     {"storage", type_text(dtype_).storage},
                                     {"clamped", of_term("(term < depth_end ? term : depth_end - 1)")},
                                     {"next", next},
                                     {"storage_zero", is_complex(dtype_) ? zero() : "0"},
                                     {"element", of_term("(" + from + " + d)")}});
    };
    return fill(kContractionFetch, {{"loads", per_item()},
                                    {"left_place", element_place(a_along_k_)},
                                    {"load_left", load("next_left", true)},
                                    {"right_place", element_place(!b_along_n_)},
                                    {"load_right", load("next_right", false)}});
  }

  // ---- sums and results

  std::string step() {
    if (is_float(wide_)) return "fma(p[i], q[j], sum[i][j])";
    if (is_complex(wide_)) {
      return cat(wide_ == COMPUTE_DTYPE_COMPLEX64 ? "COMPUTE_C64" : "COMPUTE_C128",
                 "(fma(p[i].x, q[j].x, fma(-p[i].y, q[j].y, sum[i][j].x)), fma(p[i].x, q[j].y, fma(p[i].y, q[j].x, "
                 "sum[i][j].y)))");
    }
    if (wide_ == COMPUTE_DTYPE_BOOL) return "(bool)(sum[i][j] || (p[i] && q[j]))";
    return add("sum[i][j]", multiply("p[i]", "q[j]"));
  }

  std::vector<Value> result_values() {
    std::vector<Value> values = {
        {"type", value()}, {"is_scaled", is_scaled_}, {"has_addend", has_addend_}, {"has_bias", has_bias_}};
    if (is_scaled_) {
      values.insert(values.end(), {{"alpha", alpha_}, {"beta", beta_}, {"scaled_result", multiply("alpha", "result")}});
    }
    if (has_addend_) {
      values.insert(values.end(), {{"is_beta_not_zero", is_complex(wide_) ? "beta.x != 0 || beta.y != 0" : "beta != 0"},
                                   {"addend", wide_value(element(3, "row", "column"))},
                                   {"result_with_addend", add("result", multiply("beta", "addend"))}});
    }
    if (has_bias_) {
      values.insert(values.end(), {{"bias", wide_value(element(has_addend_ ? 4 : 3, "row", "column"))},
                                   {"result_with_bias", add("result", "bias")}});
    }
    values.emplace_back("output", element(2, "row", "column"));
    values.emplace_back("has_epilogue", has_epilogue_);
    if (!has_epilogue_) {
      values.emplace_back("result",
                          element_of_value(dtype_, convert_text("result", wide_, dtype_, builder_.functions())));
      return values;
    }
    Leaves leaves;
    leaves.input = [](int32_t) { return std::string("result"); };
    leaves.scalar = [&](int32_t i) { return epilogue_scalars_[static_cast<size_t>(i)]; };
    std::string statements;
    const std::string value = print_expression(op_.expression(0), leaves, "z", builder_.functions(), statements)[0];
    values.emplace_back("epilogue", statements);
    values.emplace_back("result", element_of_value(dtype_, value));
    return values;
  }

  const Op& op_;
  const Dialect& dialect_;
  const bool is_join_;  // adds up the parts of a divided depth
  KernelBuilder builder_;
  const compute_dtype dtype_, wide_;
  const int32_t size_, rank_;
  const bool is_scaled_, has_addend_, has_bias_, has_epilogue_;
  const std::vector<int32_t> tensors_;
  const std::vector<std::vector<int64_t>> strides_;
  Space space_;  // of the batch
  const int64_t m_, n_, k_;
  const bool a_along_k_, b_along_n_, b_in_rows_;  // how a and b lie in memory
  const FewLines lines_;
  const Small small_;
  const bool has_units_, has_warps_;
  const UnitTiles units_;
  const WarpTile warps_;
  const int tile_;
  const int rows_, columns_;                // of a tile or block
  const int64_t tile_rows_, tile_columns_;  // how many tiles there are down and across c
  std::string alpha_, beta_;
  std::vector<std::string> epilogue_scalars_;
  int64_t parts_ = 1, part_depth_ = 0;  // of the depth
  int32_t partials_ = 0, parts_word_ = 0, part_depth_word_ = 0, places_word_ = 0, results_word_ = 0;
  int32_t m_word_ = 0, n_word_ = 0, k_word_ = 0, rows_word_ = 0, columns_word_ = 0, tiles_word_ = 0;
  std::vector<std::array<int32_t, 2>> stride_words_;
};

}  // namespace

bool has_few_lines(const Op& op, const Dialect& dialect) { return choose_few_lines(op, dialect).is_taken(); }
bool is_of_small_matrices(const Op& op, const Dialect& dialect) { return choose_small(op, dialect).is_taken(); }

BuiltKernels build_contraction(const Op& op, const Dialect& dialect, bool with_text) {
  if (!has_few_lines(op, dialect) && is_vector_product(op)) return build_vector_product(op, dialect, with_text);
  BuiltKernels built;
  ContractionBuilder builder(op, dialect, false, with_text);
  builder.add_to(built);
  if (!builder.is_divided()) return built;
  built.workspace_bytes = builder.partial_bytes();
  ContractionBuilder(op, dialect, true, with_text).add_to(built);
  return built;
}

}  // namespace compute::common
