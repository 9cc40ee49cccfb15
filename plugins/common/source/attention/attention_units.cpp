// SPDX-License-Identifier: Apache-2.0
#include "plugins/common/source/attention/attention_units.hpp"

#include "plugins/common/source/attention/attention_functions.hpp"
#include "plugins/common/source/attention/attention_half_units.hpp"
#include "plugins/common/source/attention/attention_tiles.hpp"
#include "plugins/common/source/attention/attention_units_builder.hpp"
#include "plugins/common/source/products/matrix_units.hpp"

namespace compute::common {
namespace {

#include "plugins/common/source/attention/attention_units.inc"

using Part = AttentionPart;

constexpr int64_t kMostSumWidth = 64;  // features of one sum of products, in registers

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
    second_rows = kUnitRows * features;
    first_tile = part == Part::kForward ? second_rows : 2 * second_rows;
    second_tile = first_tile + 2 * by_features;
    first_columns = part == Part::kForward ? second_tile : second_tile + 2 * by_features;
    second_columns = first_columns + 2 * by_columns;
    end = part == Part::kKeys ? second_columns + 2 * by_columns : second_columns;
    const int64_t statistics = part == Part::kKeys ? 2 * tile : 0;
    return (end + statistics) * 4 <= kMostUnitLocalBytes && tile * features / 4 % kUnitGroup == 0;
  }
};

class UnitsBuilder : public AttentionUnitsBuilder {
 public:
  UnitsBuilder(const Op& op, const Dialect& dialect, Part part, int64_t flags_at, bool with_text)
      : AttentionUnitsBuilder(op, dialect, part, "attention_units", "f32", with_text),
        shape_(part, features_),
        flags_number_(add_workspace("i32", flags_at, false)) {}

 private:
  int64_t tile() const override { return shape_.tile; }
  void prepare() override {
    builder_.local_bytes = shape_.end * 4;
    builder_.sign(features_);
    builder_.sign(shape_.tile);
  }

  std::string rows_text(Operand operand, int64_t at) const {
    return filled(kUnitsRows, {{"quads", features_ / 4},
                               {"at", at},
                               {"extent", row_extent()},
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
        {"count", shape_.tile * features_ / 4 / kUnitGroup},
        {"quads", features_ / 4},
        {"is_by_columns", is_by_columns},
        {"begin", begin},
        {"extent", column_extent()},
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
                                    {"left_at", left_at + f * kUnitRows},
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
    return filled(
        kUnitsResult,
        {{"sums", sums}, {"times", times}, {"extent", row_extent()}, {"element", element(operand, "row", "f")}});
  }

  void add_text() override {
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
    builder_.body = place_text() + "u32 least = ~0u;\n" + filled(part_ == Part::kForward ? kUnitsForward : kUnitsGrad);
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
    set("place_of_tile", tile_place_text("t"));
    set("load_first_rows", rows_text(is_of_keys() ? kK : kQ, 0));
    set("load_second_rows", rows_text(is_of_keys() ? kV : kDy, shape_.second_rows));
    const std::string next = tile_text(tile_place_text("next"));
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
      set_mask("first + half_row + 63 > begin + reach", "row > column + reach");
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

  const UnitsShape shape_;
  const int32_t flags_number_;
};

int32_t first_of(const Op& op) { return op.name() == "attention" ? 0 : 1; }

void add_kernels(const Op& op, const Dialect& dialect, Part part, bool with_text, BuiltKernels& built) {
  const compute_plugin_tensor& rows = op.input(first_of(op) + (part == Part::kKeys ? 1 : 0));
  if (rows.dtype != COMPUTE_DTYPE_FLOAT32) return add_attention_half_units(op, dialect, part, with_text, built);
  const AttentionFlags flags{built.workspace_bytes, kUnitRows};
  built.workspace_bytes += rows.shape[0] * rows.shape[1] * divide_up(rows.shape[2], kUnitRows) * 4;
  UnitsBuilder(op, dialect, part, flags.offset_bytes, with_text).build(built);
  add_attention_tiles(op, dialect, part, &flags, with_text, built);
}

}  // namespace

bool suits_attention_units(const Op& op, const Dialect& dialect) {
  const int32_t first = first_of(op), mask = first == 0 ? 3 : 6;
  const compute_plugin_tensor& q = op.input(first);
  if (!dialect.has_tile_units || dialect.group_size != kUnitGroup) return false;
  if (q.dtype != COMPUTE_DTYPE_FLOAT32 && !is_half(q.dtype)) return false;
  if (op.input_count() > mask && op.input(mask).rank >= 0) return false;
  const int64_t features = q.shape[3], step = q.dtype == COMPUTE_DTYPE_FLOAT32 ? 32 : 16;
  if (features != op.input(first + 2).shape[3] || features % step != 0 || features > kMostUnitFeatures || features == 0)
    return false;
  if (!(static_cast<float>(attention_scale(op, features)) > 0)) return false;
  const int64_t word = 16 / dtype_size(q.dtype);
  for (int32_t i = 0; i < op.tensor_count(); ++i) {
    const compute_plugin_tensor& tensor = op.tensor(i);
    if (tensor.rank != 4) continue;  // statistics
    bool is_by_words = tensor.alignment >= 16 && tensor.strides[3] == 1;
    for (int axis = 0; axis < 3; ++axis)
      is_by_words = is_by_words && (tensor.strides[axis] % word == 0 || tensor.shape[axis] == 1);
    if (!is_by_words) return false;
  }
  return true;
}

BuiltKernels build_attention_units(const Op& op, const Dialect& dialect, bool with_text) {
  BuiltKernels built;
  add_kernels(op, dialect, Part::kForward, with_text, built);
  return built;
}

BuiltKernels build_attention_grad_units(const Op& op, const Dialect& dialect, bool with_text) {
  const compute_plugin_tensor& q = op.input(1);
  BuiltKernels built;
  built.workspace_bytes = q.shape[0] * q.shape[1] * q.shape[2] * 4;
  add_kernels(op, dialect, Part::kQueries, with_text, built);
  add_kernels(op, dialect, Part::kKeys, with_text, built);
  return built;
}

}  // namespace compute::common
