// SPDX-License-Identifier: Apache-2.0
// convolution, convolution_grad_input and convolution_grad_weight. Forms:
//
//   item    a work item computes a result by itself: on a CPU core, and where a group of channels has few rows
//   group   a group adds up the terms of one result: few results of many terms each
//   tiles   on a GPU a group computes a tile of results through local memory. Where there are fewer tiles than the
//           device runs at a time, the depth is divided, and a second kernel adds up the parts
#include <algorithm>
#include <cstdlib>

#include "plugins/common/source/kernel_builder.hpp"
#include "plugins/common/source/ops.hpp"
#include "plugins/common/windows.hpp"

namespace compute::common {
namespace {

#include "plugins/common/source/convolution.inc"

constexpr int kTileDepth = 16;
constexpr int64_t kMostParts = 512;
constexpr int64_t kFew = 8;  // rows, columns or terms that are not worth a tile

enum class Form { kItem, kGroup, kTiles, kJoin };

struct Tiles {
  int m = 32, n = 32;
  int64_t rows = 1, columns = 1;  // how many there are
  int64_t parts = 1, part_depth = 0;
};

Form choose_form(const WindowProduct& p, const Dialect& dialect) {
  const int64_t depth = p.depth_points(), columns = p.columns(), results = p.groups * p.rows * columns;
  const bool tiles = !dialect.is_host && dialect.group_size >= 64 && dialect.group_size <= 256;
  if (tiles && std::min({p.rows, columns, depth}) >= kFew) return Form::kTiles;
  const bool few = results < static_cast<int64_t>(dialect.compute_units) * dialect.group_size;
  return few && depth >= 4 * dialect.group_size ? Form::kGroup : Form::kItem;
}

Tiles choose_tiles(const WindowProduct& p, const Dialect& dialect, int32_t value_size) {
  const int64_t columns = p.columns(), depth = p.depth_points();
  const auto side = [&](int64_t extent) {
    const int greatest = std::min(128, dialect.group_size);
    return extent <= 32 ? 32 : extent <= 64 ? std::min(64, greatest) : greatest;
  };
  Tiles tiles{side(p.rows), side(columns)};
  const auto count = [&] { return p.groups * divide_up(p.rows, tiles.m) * divide_up(columns, tiles.n); };
  constexpr int64_t kPlaceBytes = 2 * kTileDepth * 8 * 8;
  const auto bytes = [&] { return int64_t{kTileDepth} * (tiles.m + tiles.n + 8) * value_size + kPlaceBytes; };
  const int64_t most = std::min<int64_t>(dialect.local_memory_bytes, 48 << 10);
  while (std::max(tiles.m, tiles.n) > 32 &&
         (bytes() > most || (count() < dialect.compute_units && std::max(tiles.m, tiles.n) > 64))) {
    (tiles.m >= tiles.n ? tiles.m : tiles.n) /= 2;
  }
  tiles.rows = divide_up(p.rows, tiles.m);
  tiles.columns = divide_up(columns, tiles.n);
  const int64_t wanted = 2 * static_cast<int64_t>(dialect.compute_units) / count();
  tiles.parts = std::clamp<int64_t>(std::min(wanted, depth / (8 * kTileDepth)), 1, kMostParts);
  tiles.part_depth = divide_up(divide_up(depth, tiles.parts), kTileDepth) * kTileDepth;
  tiles.parts = divide_up(depth, tiles.part_depth);
  return tiles;
}

class ConvolutionBuilder {
 public:
  ConvolutionBuilder(const Op& op, const WindowProduct& p, const Dialect& dialect, Form form, const Tiles& tiles,
                     bool with_text)
      : op_(op),
        p_(p),
        dialect_(dialect),
        form_(form),
        tiles_(tiles),
        builder_(dialect, "convolution", with_text),
        operands_(window_operands(op)),
        dtype_(op.output(0).dtype),
        wide_(computed_in(dtype_)),
        size_(dtype_size(dtype_)),
        results_(p.groups * p.rows * p.columns()) {}

  void add_to(BuiltRecipe& recipe) {
    builder_.is_wide = is_wide();
    builder_.sign(static_cast<int64_t>(form_));
    builder_.sign(dtype_);
    builder_.sign(operands_.bias >= 0);
    add_operands();
    add_words();
    if (builder_.with_text()) builder_.body = text();
    recipe.add(builder_, groups());
  }

 private:
  int64_t groups() const {
    if (form_ == Form::kTiles) return p_.groups * tiles_.rows * tiles_.columns * tiles_.parts;
    return form_ == Form::kGroup ? results_ : divide_up(results_, dialect_.group_size);
  }

  bool is_wide() const {
    if (results_ * tiles_.parts > INT32_MAX / 8 || p_.depth_points() > INT32_MAX / 8) return true;
    for (const int32_t i : {operands_.a, operands_.b, operands_.c}) {
      const compute_plugin_tensor& tensor = op_.tensor(i);
      int64_t span = 1;
      for (int32_t axis = 0; axis < tensor.rank; ++axis)
        span += std::llabs(tensor.strides[axis]) * (tensor.shape[axis] - 1);
      if (span * size_ > INT32_MAX / 2) return true;
    }
    for (size_t i = 0; i < kMaxSpatial; ++i) {
      const int64_t greatest = std::llabs(p_.start[i]) + std::llabs(p_.depth_step[i]) * p_.depth[1 + i] +
                               std::llabs(p_.column_step[i]) * p_.column[1 + i];
      if (greatest > INT32_MAX / 2) return true;
    }
    return false;
  }

  // ---- parameters

  void add_operands() {
    const auto add = [&](int32_t tensor, int64_t offset, bool is_const) {
      const int32_t number = builder_.pointer(Pointer::kTensor, tensor, offset * size_);
      builder_.declare(number, type_text(dtype_).storage, is_const);
    };
    add(operands_.a, p_.a_offset, true);
    add(operands_.b, 0, true);
    add(operands_.c, p_.c_offset, false);
    if (operands_.bias >= 0) add(operands_.bias, 0, true);
    is_divided_ = tiles_.parts > 1;
    builder_.sign(is_divided_);
    if (!is_divided_) return;
    partials_ = builder_.pointer(Pointer::kWorkspace, 0, 0);
    builder_.declare(partials_, type_text(wide_).storage, form_ == Form::kJoin);
  }

  // An index space: its axes that have more than one point, with the words of their extents and divisors.
  struct Side {
    std::array<bool, kWindowAxes> has{};
    std::array<int32_t, kWindowAxes> extents{}, divisors{};
  };

  Side add_side(const std::array<int64_t, kWindowAxes>& extents) {
    Side side;
    for (size_t i = 0; i < kWindowAxes; ++i) {
      side.has[i] = extents[i] != 1;
      builder_.sign(side.has[i]);
      if (!side.has[i]) continue;
      side.extents[i] = builder_.word(extents[i]);
      side.divisors[i] = builder_.word(divisor_word(std::max<int64_t>(extents[i], 1)));
    }
    return side;
  }

  template <size_t kCount>
  std::array<int32_t, kCount> words_of(const std::array<int64_t, kCount>& values) {
    std::array<int32_t, kCount> words;
    for (size_t i = 0; i < kCount; ++i) words[i] = builder_.word(values[i]);
    return words;
  }

  void add_words() {
    builder_.sign(form_ == Form::kTiles ? tiles_.m * 1024 + tiles_.n : 0);
    a_along_depth_ = std::llabs(p_.a_depth[kMaxSpatial]) <= std::llabs(p_.a_row) || p_.depth[kMaxSpatial] == 1;
    builder_.sign(a_along_depth_);
    depth_ = add_side(p_.depth);
    column_ = add_side(p_.column);
    for (size_t i = 0; i < kMaxSpatial; ++i) {
      is_single_[i] = p_.extent[i] == 1 && p_.depth[1 + i] == 1 && p_.column[1 + i] == 1 && p_.start[i] == 0;
      builder_.sign(is_single_[i]);
    }
    const int64_t even = even_stride();
    is_a_even_ = even != 0;
    builder_.sign(is_a_even_);
    scalars_ = words_of(std::array{p_.groups, p_.rows, p_.columns(), p_.depth_points(), results_, p_.a_group, p_.a_row,
                                   p_.b_group, p_.c_group, p_.c_row, p_.b_depth, p_.b_column, p_.bias_group,
                                   p_.bias_row, tiles_.rows, tiles_.columns, tiles_.parts, tiles_.part_depth, even});
    a_depth_ = words_of(p_.a_depth);
    c_column_ = words_of(p_.c_column);
    extent_ = words_of(p_.extent);
    stride_ = words_of(p_.stride);
    start_ = words_of(p_.start);
    depth_step_ = words_of(p_.depth_step);
    column_step_ = words_of(p_.column_step);
  }

  // The stride of a along all of the depth, or 0.
  int64_t even_stride() const {
    int64_t stride = 0, points = 1;
    for (size_t axis = kWindowAxes; axis-- > 0;) {
      if (p_.depth[axis] == 1) continue;
      if (points == 1) stride = p_.a_depth[axis];
      if (p_.a_depth[axis] != stride * points) return 0;
      points *= p_.depth[axis];
    }
    return stride;
  }

  enum Scalar : size_t {
    kGroups,
    kRows,
    kColumns,
    kDepth,
    kResults,
    kAGroup,
    kARow,
    kBGroup,
    kCGroup,
    kCRow,
    kBDepth,
    kBColumn,
    kBiasGroup,
    kBiasRow,
    kTileRows,
    kTileColumns,
    kParts,
    kPartDepth,
    kEven,
    kScalars
  };

  // ---- text

  static std::string word(int32_t number) { return KernelBuilder::index_word(number); }
  std::string scalar(Scalar which) const { return word(scalars_[which]); }
  const char* value() const { return type_text(wide_).value; }
  std::string zero() const {
    uint8_t zero_bits[16] = {};
    return constant_text(wide_, zero_bits);
  }
  std::string loaded(const std::string& element) {
    return convert_text(value_of_element(dtype_, element), dtype_, wide_, builder_.functions());
  }
  std::string add(const std::string& x, const std::string& y) {
    return call_text(COMPUTE_PLUGIN_INTRINSIC_ADD, wide_, {x, y}, builder_.functions());
  }

  std::string step(const std::string& p, const std::string& q, const std::string& sum) {
    if (is_float(wide_)) return cat("fma(", p, ", ", q, ", ", sum, ")");
    if (is_complex(wide_)) {
      return cat(wide_ == COMPUTE_DTYPE_COMPLEX64 ? "COMPUTE_C64" : "COMPUTE_C128", "(fma(", p, ".x, ", q, ".x, fma(-",
                 p, ".y, ", q, ".y, ", sum, ".x)), fma(", p, ".x, ", q, ".y, fma(", p, ".y, ", q, ".x, ", sum, ".y)))");
    }
    return add(sum, call_text(COMPUTE_PLUGIN_INTRINSIC_MUL, wide_, {p, q}, builder_.functions()));
  }

  // Declares the coordinates prefix0 to prefix3 of a linear index; those of single points are 0.
  std::string coordinates(const Side& side, const std::string& prefix, std::string rest) const {
    std::string out;
    for (size_t axis = kWindowAxes; axis-- > 0;) {
      const std::string name = cat(prefix, axis);
      const bool is_first = std::none_of(side.has.begin(), side.has.begin() + static_cast<std::ptrdiff_t>(axis),
                                         [](bool has) { return has; });
      if (!side.has[axis]) {
        out += cat("const ix ", name, " = 0;\n");
      } else if (is_first) {
        out += cat("const ix ", name, " = ", rest, ";\n");
      } else {
        const std::string quotient = cat(prefix, "q", axis);
        out += builder_.is_wide ? cat("const ix ", quotient, " = ", rest, " / ", word(side.extents[axis]), ";\n")
                                : cat("const ix ", quotient, " = compute_divide(", rest, ", ",
                                      KernelBuilder::word_text(side.divisors[axis]), ");\n");
        out += cat("const ix ", name, " = ", rest, " - ", quotient, " * ", word(side.extents[axis]), ";\n");
        rest = quotient;
      }
    }
    return out;
  }

  // group, row and column of a result's number.
  std::string result_place() const {
    return cat("const ix over = item / ", scalar(kColumns), ", column = item - over * ", scalar(kColumns),
               ", group = over / ", scalar(kRows), ", row = over - group * ", scalar(kRows), ";\n");
  }

  std::string column_place() const {
    std::string out = coordinates(column_, "j", "column");
    for (size_t i = 0; i < kMaxSpatial; ++i)
      out += cat("const ix s", i + 1, " = ", word(start_[i]), " + j", i + 1, " * ", word(column_step_[i]), ";\n");
    return out + cat("const ix bj = group * ", scalar(kBGroup), " + j0 * ", scalar(kBColumn), ";\n");
  }

  std::string depth_place() const {
    std::string out = coordinates(depth_, "d", "l");
    for (size_t i = 0; i < kMaxSpatial; ++i)
      out += cat("const ix p", i + 1, " = s", i + 1, " + d", i + 1, " * ", word(depth_step_[i]), ";\n");
    return out;
  }
  std::string inside() const {
    std::string out;
    for (size_t i = 0; i < kMaxSpatial; ++i) {
      if (!is_single_[i])
        out += cat(out.empty() ? "" : " && ", "p", i + 1, " >= 0 && p", i + 1, " < ", word(extent_[i]));
    }
    return out.empty() ? "1" : out;
  }

  // What a tile's kernel keeps of a term: its places along the spatial axes of b relative to a column's, its offset in
  // b along the other axis, and its offset in a. A term beyond the depth is not used.
  std::string store_place() const {
    std::string out = coordinates(depth_, "d", "l");
    std::string a_offset = "0";
    for (size_t i = 0; i < kWindowAxes; ++i) {
      if (depth_.has[i]) a_offset += cat(" + d", i, " * ", word(a_depth_[i]));
    }
    for (size_t i = 0; i < kMaxSpatial; ++i)
      out += cat("places[turn][id][", i, "] = d", i + 1, " * ", word(depth_step_[i]), ";\n");
    return out + cat("places[turn][id][", kMaxSpatial, "] = d0 * ", scalar(kBDepth), ";\n") +
           (is_a_even_ ? std::string() : cat("places[turn][id][", kMaxSpatial + 1, "] = ", a_offset, ";\n"));
  }
  std::string load_place() const {
    std::string out;
    for (size_t i = 0; i < kMaxSpatial; ++i) {
      if (!is_single_[i]) out += cat("const ix p", i + 1, " = s", i + 1, " + places[turn][d][", i, "];\n");
    }
    return out;
  }
  std::string tile_left() {
    const std::string at = cat("group * ", scalar(kAGroup), " + row * ", scalar(kARow));
    if (is_a_even_) return loaded(cat("x0[", at, " + l * ", scalar(kEven), "]"));
    return loaded(cat("x0[", at, " + places[turn][d][", kMaxSpatial + 1, "]]"));
  }
  std::string tile_right() {
    std::string at = cat("bj + places[turn][d][", kMaxSpatial, "]");
    for (size_t i = 0; i < kMaxSpatial; ++i) {
      if (!is_single_[i]) at += cat(" + p", i + 1, " * ", word(stride_[i]));
    }
    return loaded(cat("x1[", at, "]"));
  }

  std::string left() {
    std::string at = cat("group * ", scalar(kAGroup), " + row * ", scalar(kARow));
    for (size_t i = 0; i < kWindowAxes; ++i) {
      if (depth_.has[i]) at += cat(" + d", i, " * ", word(a_depth_[i]));
    }
    return loaded(cat("x0[", at, "]"));
  }
  std::string right() {
    std::string at = cat("bj + d0 * ", scalar(kBDepth));
    for (size_t i = 0; i < kMaxSpatial; ++i) at += cat(" + p", i + 1, " * ", word(stride_[i]));
    return loaded(cat("x1[", at, "]"));
  }

  // Stores `sum` of the result whose column has the coordinates with that prefix.
  std::string store(const std::string& sum, const std::string& prefix) {
    std::string at = cat("group * ", scalar(kCGroup), " + row * ", scalar(kCRow)), result = sum;
    for (size_t i = 0; i < kWindowAxes; ++i) {
      if (column_.has[i]) at += cat(" + ", prefix, i, " * ", word(c_column_[i]));
    }
    std::string out;
    if (operands_.bias >= 0) {
      out = cat("const ", value(),
                " bias = ", loaded(cat("x3[group * ", scalar(kBiasGroup), " + row * ", scalar(kBiasRow), "]")),
                ", total = ", add(sum, "bias"), ";\n");
      result = "total";
    }
    return cat(out, "x2[", at,
               "] = ", element_of_value(dtype_, convert_text(result, wide_, dtype_, builder_.functions())), ";\n");
  }

  std::string partial(const std::string& column) const {
    return cat("x", partials_, "[((part * ", scalar(kGroups), " + group) * ", scalar(kRows), " + row) * ",
               scalar(kColumns), " + ", column, "]");
  }

  std::string text() {
    switch (form_) {
      case Form::kItem:
        return item_text();
      case Form::kGroup:
        return group_text();
      case Form::kTiles:
        return tile_text();
      case Form::kJoin:
        break;
    }
    return fill(kConvolutionJoin, {{"group_size", dialect_.group_size},
                                   {"results", scalar(kResults)},
                                   {"result_place", result_place()},
                                   {"result_column_place", coordinates(column_, "j", "column")},
                                   {"type", value()},
                                   {"zero", zero()},
                                   {"parts", scalar(kParts)},
                                   {"partial", partial("column")},
                                   {"joined", add("x", "y")},
                                   {"store", store("sum", "j")}});
  }

  std::string item_text() {
    std::vector<Value> values = {{"group_size", dialect_.group_size},
                                 {"results", scalar(kResults)},
                                 {"result_place", result_place()},
                                 {"column_place", column_place()},
                                 {"type", value()},
                                 {"zero", zero()},
                                 {"left", left()},
                                 {"right", right()},
                                 {"step", step("p", "q", "sum")},
                                 {"store", store("sum", "j")}};
    static constexpr const char* kDepths[] = {"depth0", "depth1", "depth2", "depth3"};
    static constexpr const char* kSteps[] = {"step1", "step2", "step3"};
    static constexpr const char* kExtents[] = {"extent1", "extent2", "extent3"};
    for (size_t i = 0; i < kWindowAxes; ++i)
      values.emplace_back(kDepths[i], depth_.has[i] ? word(depth_.extents[i]) : std::string("1"));
    for (size_t i = 0; i < kMaxSpatial; ++i) {
      values.emplace_back(kSteps[i], word(depth_step_[i]));
      values.emplace_back(kExtents[i], word(extent_[i]));
    }
    return fill(kConvolutionItem, values);
  }

  std::string group_text() {
    return fill(kConvolutionGroup, {{"group_size", dialect_.group_size},
                                    {"result_place", result_place()},
                                    {"column_place", column_place()},
                                    {"type", value()},
                                    {"zero", zero()},
                                    {"depth", scalar(kDepth)},
                                    {"depth_place", depth_place()},
                                    {"inside", inside()},
                                    {"left", left()},
                                    {"right", right()},
                                    {"step", step("p", "q", "sum")},
                                    {"joined", add("x", "y")},
                                    {"store", store("sum", "j")}});
  }

  // Rows and columns of a work item: runs of up to four that follow one another, so that they are loaded at once.
  static std::string place_of(const std::string& id, const std::string& i, int side, int lanes) {
    const int run = std::min(side, 4);
    return cat(id, " * ", run, " + ", i, " % ", run, " + ", i, " / ", run, " * ", lanes * run);
  }

  std::string left_at() const {
    const std::string number = cat("(id + e * ", dialect_.group_size, ")");
    return a_along_depth_ ? cat("const int d = ", number, " % ", kTileDepth, ", t = ", number, " / ", kTileDepth, ";")
                          : cat("const int t = ", number, " % ", tiles_.m, ", d = ", number, " / ", tiles_.m, ";");
  }

  std::string tile_text() {
    const int lines = dialect_.group_size / 16, side_m = tiles_.m / lines, side_n = tiles_.n / 16;
    return fill(
        kConvolutionTile,
        {{"type", value()},
         {"zero", zero()},
         {"tile_depth", kTileDepth},
         {"tile_m", tiles_.m},
         {"tile_n", tiles_.n},
         {"rows", scalar(kRows)},
         {"columns", scalar(kColumns)},
         {"tile_rows", scalar(kTileRows)},
         {"tile_columns", scalar(kTileColumns)},
         {"groups", scalar(kGroups)},
         {"depth", scalar(kDepth)},
         {"part_depth", scalar(kPartDepth)},
         {"column_place", column_place()},
         {"item_rows", side_m},
         {"item_columns", side_n},
         {"left_loads", tiles_.m * kTileDepth / dialect_.group_size},
         {"right_loads", tiles_.n * kTileDepth / dialect_.group_size},
         {"right_skip", dialect_.group_size / tiles_.n},
         {"left_at", left_at()},
         {"left", tile_left()},
         {"place_words", is_a_even_ ? 4 : 8},
         {"store_place", store_place()},
         {"load_place", load_place()},
         {"inside", inside()},
         {"right", tile_right()},
         {"row_of_i", place_of("row_id", "i", side_m, lines)},
         {"column_of_j", place_of("column_id", "j", side_n, 16)},
         {"tile_step", step("p[i]", "q[j]", "sum[i][j]")},
         {"result_column_place", is_divided_ ? std::string() : coordinates(column_, "c", "result_column")},
         {"store_tile", is_divided_ ? cat(partial("result_column"), " = sum[i][j];") : store("sum[i][j]", "c")}});
  }

  const Op& op_;
  const WindowProduct& p_;
  const Dialect& dialect_;
  const Form form_;
  const Tiles tiles_;
  KernelBuilder builder_;
  const WindowOperands operands_;
  const compute_dtype dtype_, wide_;
  const int32_t size_;
  const int64_t results_;
  bool is_divided_ = false;                    // the depth
  bool a_along_depth_ = false;                 // neighbours in memory
  bool is_a_even_ = false;                     // one stride along all of the depth
  std::array<bool, kMaxSpatial> is_single_{};  // spatial axes with one position
  int32_t partials_ = 0;
  Side depth_, column_;
  std::array<int32_t, kScalars> scalars_{};
  std::array<int32_t, kWindowAxes> a_depth_{}, c_column_{};
  std::array<int32_t, kMaxSpatial> extent_{}, stride_{}, start_{}, depth_step_{}, column_step_{};
};

}  // namespace

BuiltRecipe build_convolution(const Op& op, const Dialect& dialect, bool with_text) {
  BuiltRecipe recipe;
  const int32_t value_size = dtype_size(computed_in(op.output(0).dtype));
  for (const WindowProduct& p : read_windows(op)) {
    const Form form = choose_form(p, dialect);
    const Tiles tiles = form == Form::kTiles ? choose_tiles(p, dialect, value_size) : Tiles{};
    ConvolutionBuilder(op, p, dialect, form, tiles, with_text).add_to(recipe);
    if (tiles.parts == 1) continue;
    recipe.workspace_bytes =
        std::max(recipe.workspace_bytes, tiles.parts * p.groups * p.rows * p.columns() * value_size);
    ConvolutionBuilder(op, p, dialect, Form::kJoin, tiles, with_text).add_to(recipe);
  }
  return recipe;
}

}  // namespace compute::common
