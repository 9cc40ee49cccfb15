// SPDX-License-Identifier: Apache-2.0
#include "plugins/common/source/attention_units.hpp"

#include <bit>

#include "plugins/common/source/attention_functions.hpp"
#include "plugins/common/source/attention_tiles.hpp"
#include "plugins/common/source/matrix_units.hpp"

namespace compute::common {
namespace {

#include "plugins/common/source/attention_units.inc"

using Part = AttentionPart;

constexpr int64_t kRows = 128, kGroup = 256;  // of a group
constexpr int64_t kMostFeatures = 128;
constexpr int64_t kMostSumWidth = 64;  // features of one sum of products, in registers
constexpr int64_t kMostLocalBytes = 227 << 10;

// The inputs of attention_grad, then results, and what is in the workspace.
enum Operand { kDy, kQ, kK, kV, kY, kL, kFirst, kSecond, kDelta, kOperands };

int32_t first_of(const Op& op) { return op.name() == "attention" ? 0 : 1; }

float scale_of(const Op& op) { return static_cast<float>(attention_scale(op, op.input(first_of(op)).shape[3])); }

// Of the tiles of columns, and where a group's local memory is, in elements.
struct UnitsShape {
  UnitsShape(Part part, int64_t features) {
    for (tile = 64; !arrange(part, features); tile /= 2) {
    }
  }

  int64_t tile;
  int64_t by_features = 0, by_columns = 0;  // elements of a part of a tile
  int64_t second_rows = 0, first_tile = 0, second_tile = 0, first_columns = 0, second_columns = 0, end = 0;

 private:
  // Whether it fits.
  bool arrange(Part part, int64_t features) {
    by_features = features / 4 * unit_pitch(tile);
    by_columns = tile / 4 * unit_pitch(features);
    second_rows = kRows * features;
    first_tile = part == Part::kForward ? second_rows : 2 * second_rows;
    second_tile = first_tile + 2 * by_features;
    first_columns = part == Part::kForward ? second_tile : second_tile + 2 * by_features;
    second_columns = first_columns + 2 * by_columns;
    end = part == Part::kKeys ? second_columns + 2 * by_columns : second_columns;
    const int64_t statistics = part == Part::kKeys ? 2 * tile : 0;
    return (end + statistics) * 4 <= kMostLocalBytes && tile * features / 4 % kGroup == 0;
  }
};

class UnitsBuilder {
 public:
  UnitsBuilder(const Op& op, const Dialect& dialect, Part part, int64_t flags_at, bool with_text)
      : op_(op),
        part_(part),
        shape_(part, op.input(first_of(op)).shape[3]),
        flags_at_(flags_at),
        builder_(dialect,
                 part == Part::kForward   ? "attention_units"
                 : part == Part::kQueries ? "attention_units_dq"
                                          : "attention_units_dk_dv",
                 with_text),
        q_(op.input(first_of(op))),
        k_(op.input(first_of(op) + 1)),
        features_(q_.shape[3]) {}

  void build(BuiltRecipe& recipe) {
    builder_.is_wide = is_wide_attention(op_, first_of(op_));
    builder_.local_bytes = shape_.end * 4;
    builder_.sign(features_);
    builder_.sign(shape_.tile);
    add_operands();
    add_words();
    if (builder_.with_text()) add_text();
    recipe.add(builder_, q_.shape[0] * heads() * tiles());
  }

 private:
  bool is_of_keys() const { return part_ == Part::kKeys; }
  int64_t heads() const { return is_of_keys() ? k_.shape[1] : q_.shape[1]; }
  int64_t tiles() const { return divide_up(is_of_keys() ? k_.shape[2] : q_.shape[2], kRows); }

  // ---- parameters

  void add_operand(Operand operand, int32_t index) {
    const bool is_const = index < op_.input_count();
    const compute_plugin_tensor& tensor = op_.tensor(index);
    numbers_[operand] = builder_.pointer(Pointer::kTensor, index, 0);
    builder_.declare(numbers_[operand], "f32", is_const);
    for (int axis = 0; axis < 3; ++axis) strides_[operand][axis] = tensor.strides[axis];
  }

  int32_t add_workspace(const char* storage, int64_t offset, bool is_const) {
    const int32_t number = builder_.pointer(Pointer::kWorkspace, 0, offset);
    builder_.declare(number, storage, is_const);
    return number;
  }

  void add_operands() {
    const int32_t first = first_of(op_), outputs = op_.input_count();
    add_operand(kQ, first);
    add_operand(kK, first + 1);
    add_operand(kV, first + 2);
    if (part_ == Part::kForward) {
      add_operand(kFirst, outputs);
      add_operand(kL, outputs + 1);
    } else {
      add_operand(kDy, 0);
      add_operand(kL, 5);
      if (part_ == Part::kQueries) add_operand(kY, 4);
      add_operand(kFirst, part_ == Part::kQueries ? outputs : outputs + 1);
      if (is_of_keys()) add_operand(kSecond, outputs + 2);
      numbers_[kDelta] = add_workspace("f32", 0, is_of_keys());
      strides_[kDelta][0] = q_.shape[1] * q_.shape[2];
      strides_[kDelta][1] = q_.shape[2];
      strides_[kDelta][2] = 1;
    }
    flags_number_ = add_workspace("i32", flags_at_, false);
  }

  void word(std::string_view name, int64_t value) {
    const int32_t number = builder_.word(value);
    if (builder_.with_text()) set(name, KernelBuilder::index_word(number));
  }

  void add_words() {
    word("n", q_.shape[2]);
    word("m", k_.shape[2]);
    word("reach", op_.integer("causal", 0) != 0 ? k_.shape[2] - q_.shape[2] : k_.shape[2]);
    word("tiles", tiles());
    word("heads", heads());
    word("group_heads", q_.shape[1] / k_.shape[1]);
    word("scale", std::bit_cast<int32_t>(scale_of(op_)));
    for (int i = 0; i < kOperands; ++i) {
      if (numbers_[i] < 0) continue;
      for (int axis = 0; axis < 3; ++axis) words_[i][axis] = builder_.word(strides_[i][axis]);
    }
  }

  // ---- text

  void set(std::string_view name, std::string value) { values_.emplace_back(name, std::move(value)); }
  void set(std::string_view name, int64_t value) { set(name, cat(value)); }

  std::string filled(std::string_view text, const std::vector<Value>& own = {}) const {
    return fill(text, [&](std::string_view name) -> std::optional<std::string_view> {
      for (const Value& value : own) {
        if (value.name == name) return value.text;
      }
      for (const auto& [known, value] : values_) {
        if (known == name) return value;
      }
      return std::nullopt;
    });
  }

  // The element at `row` and `feature`, or of statistics, which have no features.
  std::string element(Operand operand, std::string_view row, std::string_view feature = {}) const {
    const bool is_shared =
        operand == kK || operand == kV || (is_of_keys() && (operand == kFirst || operand == kSecond));
    const auto stride = [&](int axis) { return KernelBuilder::index_word(words_[operand][axis]); };
    return cat("x", numbers_[operand], "[batch * ", stride(0), " + ", is_shared ? "shared_head" : "head", " * ",
               stride(1), " + (", row, ") * ", stride(2), feature.empty() ? "" : " + ", feature, "]");
  }

  std::string rows_text(Operand operand, int64_t at) const {
    return filled(kUnitsRows, {{"quads", features_ / 4},
                               {"at", at},
                               {"extent", is_of_keys() ? "m" : "n"},
                               {"element", element(operand, "first + t", "quad * 4")}});
  }

  struct Loads {
    std::string fetch, store;
  };
  // Columns from `begin` on, to `at`.
  Loads loads_text(const char* name, Operand operand, bool is_by_columns, const char* begin, int64_t at,
                   bool is_noted) const {
    std::vector<Value> values = {
        {"name", name},
        {"count", shape_.tile * features_ / 4 / kGroup},
        {"quads", features_ / 4},
        {"is_by_columns", is_by_columns},
        {"begin", begin},
        {"extent", is_of_keys() ? "n" : "m"},
        {"element", element(operand, "column", "f")},
        {"element_2", element(operand, "column + 2", "f")},
        {"element_4", element(operand, "column + 4", "f")},
        {"element_6", element(operand, "column + 6", "f")},
        {"at", at},
        {"pitch", unit_pitch(is_by_columns ? features_ : shape_.tile)},
        {"low", is_by_columns ? shape_.by_columns : shape_.by_features},
        {"is_noted", is_noted},
    };
    return {filled(kUnitsFetch, values), filled(kUnitsStore, values)};
  }

  // target = the products of a row, whose elements are at `left_at`, and the columns of a tile; they are awaited.
  std::string product_text(const char* target, int64_t left_at, int64_t right_at) const {
    constexpr int64_t kMostFeaturesAtOnce = 64;
    const int64_t pitch = unit_pitch(shape_.tile);
    std::string out;
    for (int64_t f = 0; f < features_; f += kMostFeaturesAtOnce) {
      const int64_t count = std::min(features_ - f, kMostFeaturesAtOnce);
      if (f > 0) out += cat("COMPUTE_AWAIT_PRODUCTS(", target, ");\n");
      out += filled(kUnitsProduct, {{"steps", count / 8},
                                    {"left_at", left_at + f * kRows},
                                    {"right_at", right_at + f / 4 * pitch},
                                    {"pitch", pitch},
                                    {"low", shape_.by_features},
                                    {"target", target},
                                    {"adds", f == 0 ? "d != 0" : "1"}});
    }
    return out;
  }

  int64_t sum_width() const { return features_ <= kMostSumWidth ? features_ : features_ / 2; }

  std::string sum_text(const char* target, const char* weights, int64_t right_at, bool is_kept,
                       const std::string& meanwhile) const {
    return filled(kUnitsSum, {{"target", target},
                              {"weights", weights},
                              {"parts", features_ / sum_width()},
                              {"width", sum_width()},
                              {"right_at", right_at},
                              {"pitch", unit_pitch(features_)},
                              {"low", shape_.by_columns},
                              {"is_kept", is_kept},
                              {"meanwhile", meanwhile}});
  }

  std::string result_text(Operand operand, const char* sums, const char* times) const {
    return filled(kUnitsResult, {{"sums", sums},
                                 {"times", times},
                                 {"extent", is_of_keys() ? "m" : "n"},
                                 {"element", element(operand, "row", "f")}});
  }

  void add_text() {
    set("is_of_keys", is_of_keys() ? "1" : "");
    set("features", features_);
    set("rows", kRows);
    set("group", kGroup);
    set("tile", shape_.tile);
    set("flags", cat("x", flags_number_));
    if (shape_.tile == sum_width()) {
      builder_.globals += unit_functions({static_cast<int>(shape_.tile)});
    } else {
      builder_.globals += unit_functions({static_cast<int>(shape_.tile), static_cast<int>(sum_width())});
    }
    builder_.globals += kAttentionLanes;
    builder_.globals += kUnitsFunctions;
    set("flag", filled(kUnitsFlag));
    set("logsumexp", element(kL, "row"));
    if (part_ == Part::kForward) {
      add_forward_text();
    } else {
      add_grad_text();
    }
    builder_.body = filled(kUnitsPlace) + filled(part_ == Part::kForward ? kUnitsForward : kUnitsGrad);
  }

  void add_forward_text() {
    set("load_rows", rows_text(kQ, 0));
    const Loads first = loads_text("keys", kK, false, "0", shape_.first_tile, true);
    const Loads keys = loads_text("keys", kK, false, "begin + $tile", shape_.first_tile, true);
    const Loads values = loads_text("values", kV, true, "begin", shape_.first_columns, true);
    set("fetch_first", first.fetch);
    set("store_keys", first.store);
    set("fetch_keys", filled(keys.fetch));
    set("fetch_values", values.fetch);
    set("store_values", values.store);
    set("product", product_text("s", 0, shape_.first_tile));
    set("sum", sum_text("sums", "s", shape_.first_columns, true, first.store));
    set("store", result_text(kFirst, "sums", " * factor[h]"));
  }

  // Loads the tile with the number `next`.
  std::string tile_text(const std::string& place) const {
    const Operand first = is_of_keys() ? kQ : kK, second = is_of_keys() ? kDy : kV;
    const Loads a = loads_text("first", first, false, "begin", shape_.first_tile, true);
    const Loads b = loads_text("second", second, false, "begin", shape_.second_tile, true);
    std::string out = cat("{\n", place, a.fetch, b.fetch);
    if (is_of_keys()) {
      out += filled(kUnitsStatistics,
                    {{"logsumexp", element(kL, "begin + id")}, {"delta", element(kDelta, "begin + id")}});
    }
    return cat(out, a.store, b.store, "COMPUTE_SHOW_UNITS();\n}\n");
  }

  void add_grad_text() {
    const Operand first = is_of_keys() ? kQ : kK, second = is_of_keys() ? kDy : kV;
    const auto place = [&](std::string_view number) {
      return is_of_keys() ? cat("const ix begin = start + ", number, " % per_head * ", shape_.tile,
                                ", head = place * group_heads + ", number, " / per_head;\n")
                          : cat("const ix begin = ", number, " * ", shape_.tile, ";\n");
    };
    set("place_of_tile", place("t"));
    set("load_first_rows", rows_text(is_of_keys() ? kK : kQ, 0));
    set("load_second_rows", rows_text(is_of_keys() ? kV : kDy, shape_.second_rows));
    const std::string next = tile_text(place("next"));
    set("load_tile", next);
    const Loads a = loads_text("first", first, true, "begin", shape_.first_columns, false);
    set("fetch_first_by_columns", a.fetch);
    set("store_first_by_columns", a.store);
    set("score_product", product_text("p", 0, shape_.first_tile));
    set("gradient_product", product_text("ds", shape_.second_rows, shape_.second_tile));
    const std::string meanwhile = cat("if (t + 1 < count) {\nconst ix next = t + 1;\n", next, "}\n");
    set("sum", sum_text("sums", "ds", shape_.first_columns, false, is_of_keys() ? std::string() : meanwhile));
    set("store", result_text(kFirst, "sums", ""));
    if (is_of_keys()) {
      const Loads b = loads_text("second", second, true, "begin", shape_.second_columns, false);
      set("fetch_second_by_columns", b.fetch);
      set("store_second_by_columns", b.store);
      set("value_sum", sum_text("value_sums", "p", shape_.second_columns, false, meanwhile));
      set("value_store", result_text(kSecond, "value_sums", ""));
    } else {
      set("dy", element(kDy, "row", "f"));
      set("y", element(kY, "row", "f"));
      set("delta", element(kDelta, "row"));
    }
  }

  const Op& op_;
  const Part part_;
  const UnitsShape shape_;
  const int64_t flags_at_;
  KernelBuilder builder_;
  const compute_plugin_tensor &q_, &k_;
  const int64_t features_;
  int32_t numbers_[kOperands] = {-1, -1, -1, -1, -1, -1, -1, -1, -1};
  int64_t strides_[kOperands][3] = {};
  int32_t words_[kOperands][3] = {};
  int32_t flags_number_ = 0;
  std::vector<std::pair<std::string_view, std::string>> values_;  // of the templates
};

void add_kernels(const Op& op, const Dialect& dialect, Part part, bool with_text, BuiltRecipe& recipe) {
  const compute_plugin_tensor& rows = op.input(first_of(op) + (part == Part::kKeys ? 1 : 0));
  const AttentionFlags flags{recipe.workspace_bytes, kRows};
  recipe.workspace_bytes += rows.shape[0] * rows.shape[1] * divide_up(rows.shape[2], kRows) * 4;
  UnitsBuilder(op, dialect, part, flags.offset_bytes, with_text).build(recipe);
  add_attention_tiles(op, dialect, part, &flags, with_text, recipe);
}

}  // namespace

bool suits_attention_units(const Op& op, const Dialect& dialect) {
  const int32_t first = first_of(op), mask = first == 0 ? 3 : 6;
  const compute_plugin_tensor& q = op.input(first);
  if (!dialect.has_tile_units || dialect.group_size != kGroup || q.dtype != COMPUTE_DTYPE_FLOAT32) return false;
  if (op.input_count() > mask && op.input(mask).rank >= 0) return false;
  const int64_t features = q.shape[3];
  if (features != op.input(first + 2).shape[3] || features % 32 != 0 || features > kMostFeatures || features == 0)
    return false;
  if (!(scale_of(op) > 0)) return false;
  for (int32_t i = 0; i < op.tensor_count(); ++i) {
    const compute_plugin_tensor& tensor = op.tensor(i);
    if (tensor.rank != 4) continue;  // statistics
    bool is_by_words = tensor.alignment >= 16 && tensor.strides[3] == 1;
    for (int axis = 0; axis < 3; ++axis)
      is_by_words = is_by_words && (tensor.strides[axis] % 4 == 0 || tensor.shape[axis] == 1);
    if (!is_by_words) return false;
  }
  return true;
}

BuiltRecipe build_attention_units(const Op& op, const Dialect& dialect, bool with_text) {
  BuiltRecipe recipe;
  add_kernels(op, dialect, Part::kForward, with_text, recipe);
  return recipe;
}

BuiltRecipe build_attention_grad_units(const Op& op, const Dialect& dialect, bool with_text) {
  const compute_plugin_tensor& q = op.input(1);
  BuiltRecipe recipe;
  recipe.workspace_bytes = q.shape[0] * q.shape[1] * q.shape[2] * 4;
  add_kernels(op, dialect, Part::kQueries, with_text, recipe);
  add_kernels(op, dialect, Part::kKeys, with_text, recipe);
  return recipe;
}

}  // namespace compute::common
