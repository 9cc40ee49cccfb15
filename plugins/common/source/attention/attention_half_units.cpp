// SPDX-License-Identifier: Apache-2.0
#include "plugins/common/source/attention/attention_half_units.hpp"

#include "plugins/common/source/attention/attention_functions.hpp"
#include "plugins/common/source/attention/attention_units_builder.hpp"
#include "plugins/common/source/products/matrix_units.hpp"

namespace compute::common {
namespace {

#include "plugins/common/source/attention/attention_half_units.inc"

using Part = AttentionPart;

constexpr int64_t kStages = 3;

// The features of a row that are adjacent in local memory. The units read words of 16 bytes of eight rows at once, so
// words are swizzled within a row, by its number: `mode` is the units' name for the swizzle.
struct Block {
  explicit Block(int64_t of_features) {
    features = of_features % 64 == 0 ? 64 : of_features % 32 == 0 ? 32 : 16;
    mode = features == 64 ? 1 : features == 32 ? 2 : 3;
  }

  int64_t row_bytes() const { return features * 2; }

  int64_t features, mode;
};

// Columns of a tile, as many as the registers of a group allow.
int64_t tile_of(Part part, int64_t features) {
  if (part == Part::kForward) return 128;
  return part == Part::kQueries && features <= 64 ? 128 : 64;
}

// Where a group's local memory is, in bytes.
struct HalfUnitsShape {
  HalfUnitsShape(Part part, int64_t features)
      : tile(tile_of(part, features)),
        second_rows(kUnitRows * features * 2),
        stages(part == Part::kForward ? second_rows : 2 * second_rows),
        second_tile(tile * features * 2),
        statistics(2 * second_tile),
        stage(statistics + (part == Part::kKeys ? kAlignment : 0)),
        end(stages + kStages * stage) {}

  static constexpr int64_t kAlignment = 1024;  // of blocks

  int64_t tile, second_rows, stages;
  int64_t second_tile, statistics, stage;  // within a stage
  int64_t end;
};

class HalfUnitsBuilder : public AttentionUnitsBuilder {
 public:
  HalfUnitsBuilder(const Op& op, const Dialect& dialect, Part part, bool with_text)
      : AttentionUnitsBuilder(op, dialect, part, "attention_half_units", "u16", with_text),
        shape_(part, features_),
        block_(features_) {}

 private:
  int64_t tile() const override { return shape_.tile; }
  void prepare() override {
    builder_.local_bytes = shape_.end;
    builder_.sign(q_.dtype);
    builder_.sign(features_);
    builder_.sign(shape_.tile);
  }

  // Of `count` rows of features from `begin` on, to `at`.
  std::string load_text(Operand operand, int64_t count, std::string_view begin, const char* extent,
                        std::string_view at) const {
    return filled(kHalfUnitsLoad, {{"count", count},
                                   {"row_words", features_ / 8},
                                   {"has_rest", count * features_ / 8 % kUnitGroup != 0},
                                   {"begin", begin},
                                   {"extent", extent},
                                   {"at", at},
                                   {"block_bytes", count * block_.row_bytes()},
                                   {"element", element(operand, "row", "word * 8")}});
  }
  std::string rows_text(Operand operand, int64_t at) const {
    return load_text(operand, kUnitRows, "first", row_extent(), cat(at));
  }
  std::string columns_text(Operand operand, int64_t at) const {
    return load_text(operand, shape_.tile, part_ == Part::kForward ? "loaded" : "begin", column_extent(),
                     cat("next + ", at));
  }
  std::string scores_text(const char* target, const char* rows_matrix, int64_t at) const {
    return filled(kHalfUnitsScores, {{"target", target},
                                     {"rows_matrix", rows_matrix},
                                     {"at", cat("now + ", at)},
                                     {"block_bytes", shape_.tile * block_.row_bytes()}});
  }
  std::string sum_text(const char* target, const char* weights, const char* stage, int64_t at) const {
    return filled(kHalfUnitsSum, {{"target", target},
                                  {"weights", weights},
                                  {"at", cat(stage, " + ", at)},
                                  {"block_bytes", shape_.tile * block_.row_bytes()}});
  }
  std::string pack_text(const char* weights, const char* values) const {
    return filled(kHalfUnitsPack, {{"weights", weights}, {"values", values}});
  }
  std::string result_text(Operand operand, const char* sums, const char* times) const {
    return filled(kHalfUnitsResult, {{"sums", sums},
                                     {"times", times},
                                     {"extent", row_extent()},
                                     {"element", element(operand, "row", "c * 8 + pair")}});
  }

  void add_text() override {
    set("block", block_.features);
    set("block_words", block_.features / 8);
    set("block_steps", block_.features / 16);
    set("row_bytes", block_.row_bytes());
    set("mode", block_.mode);
    set("rows_block", kUnitRows * block_.row_bytes());
    set("stages_at", shape_.stages);
    set("stage", shape_.stage);
    const char* const half_type = q_.dtype == COMPUTE_DTYPE_FLOAT16 ? "f16" : "bf16";
    builder_.globals += unit_functions({});
    builder_.globals += kAttentionLanes;
    builder_.globals += attention_functions(half_type);
    builder_.globals += filled(kHalfUnitsFunctions);
    const std::string types = cat("k16.f32.", half_type, ".", half_type);
    builder_.globals += unit_multiply_text({"scores", shape_.tile, types, false, ", 0, 0"});
    builder_.globals += unit_multiply_text({"sums", features_, types, true, ", 1"});
    set("logsumexp", element(kL, "row"));
    if (part_ == Part::kForward) {
      add_forward_text();
    } else {
      add_grad_text();
    }
    builder_.body = place_text() + filled(part_ == Part::kForward ? kHalfUnitsForward : kHalfUnitsGrad);
  }

  void add_forward_text() {
    set("load_rows", rows_text(kQ, 0));
    set("load_tile", columns_text(kK, 0) + columns_text(kV, shape_.second_tile));
    set("scores", scores_text("s", "rows_matrix", 0));
    set("pack", pack_text("weights", "s"));
    set("sum", sum_text("sums", "weights", "before", shape_.second_tile));
    set("store", result_text(kFirst, "sums", " * factor[h]"));
  }

  void add_grad_text() {
    set("is_of_queries", is_of_keys() ? "" : "1");
    set("second_rows", shape_.second_rows);
    set("statistics_at", shape_.statistics);
    set("delta", element(kDelta, "row"));
    set("place_of_tile", tile_place_text("t"));
    set("load_first_rows", rows_text(is_of_keys() ? kK : kQ, 0));
    set("load_second_rows", rows_text(is_of_keys() ? kV : kDy, shape_.second_rows));
    set("load_tile", cat(tile_place_text("number"), columns_text(is_of_keys() ? kQ : kK, 0),
                         columns_text(is_of_keys() ? kDy : kV, shape_.second_tile),
                         is_of_keys() ? filled(kHalfUnitsStatistics) : std::string()));
    if (is_of_keys()) {
      set_mask("begin + $tile > n || first + half_row + 63 > begin + reach", "column >= n || row > column + reach");
    }
    set("hide_gradients", mask_text("ds", "0.0f"));
    set("scores", scores_text("p", "first_matrix", 0));
    set("score_gradients", scores_text("ds", "second_matrix", shape_.second_tile));
    set("pack_gradients", pack_text("gradients", "ds"));
    set("sum", sum_text("sums", "gradients", "now", 0));
    set("store", result_text(kFirst, "sums", ""));
    if (is_of_keys()) {
      set("pack_weights", pack_text("weights", "p"));
      set("value_sum", sum_text("value_sums", "weights", "now", shape_.second_tile));
      set("value_store", result_text(kSecond, "value_sums", ""));
      return;
    }
    const auto widened = [&](const char* half) {
      return convert_text(half, q_.dtype, COMPUTE_DTYPE_FLOAT32, builder_.functions());
    };
    set("dy", element(kDy, "row", "f"));
    set("y", element(kY, "row", "f"));
    set("low_of_dy", widened("(u16)dys[i]"));
    set("low_of_y", widened("(u16)ys[i]"));
    set("high_of_dy", widened("(u16)(dys[i] >> 16)"));
    set("high_of_y", widened("(u16)(ys[i] >> 16)"));
  }

  const HalfUnitsShape shape_;
  const Block block_;
};

}  // namespace

void add_attention_half_units(const Op& op, const Dialect& dialect, AttentionPart part, bool with_text,
                              BuiltKernels& built) {
  HalfUnitsBuilder(op, dialect, part, with_text).build(built);
}

}  // namespace compute::common
