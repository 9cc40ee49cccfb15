// SPDX-License-Identifier: Apache-2.0
// attention and attention_grad by multiplications and additions of items: kernels for every device.
#include "plugins/common/source/attention/attention_tiles.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>

#include "plugins/common/source/attention/ops.hpp"
#include "plugins/common/source/expressions/combination.hpp"

namespace compute::common {
namespace {

#include "plugins/common/source/attention/attention_tiles.inc"

constexpr int64_t kColumns = 64;  // of a tile
constexpr int64_t kMostFeatures = 256;
constexpr int64_t kFewQueries = 16, kManyKeys = 512;

using Part = AttentionPart;

// Bytes of local memory, and how it is divided.
struct TileShape {
  TileShape(const Dialect& dialect, compute_dtype wide, int64_t features, int64_t item_rows)
      : group(dialect.group_size),
        item_rows(item_rows),
        rows(group / 16 * item_rows),
        pitch(rows + 4),
        depth(dtype_size(wide) > 4 ? 8 : 16),
        width(divide_up(features, 16) <= 2 ? divide_up(features, 16) * 16 : divide_up(features, 64) * 64) {
    chunk = std::clamp<int64_t>(8192 / (width * dtype_size(wide)), 4, 16);
    chunk = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(chunk)));
    stage = std::max(depth * (pitch + kColumns + 4), chunk * width);
    bytes = (kColumns * pitch + stage) * dtype_size(wide);
  }

  int64_t group, item_rows, rows, pitch, depth, width, chunk = 0, stage = 0, bytes = 0;
};

int64_t features_of(const Op& op, int32_t first) {
  return std::max(op.input(first).shape[3], op.input(first + 2).shape[3]);
}

constexpr int64_t kItemRows = 4, kManyItemRows = 8;

// Items with twice the rows read local memory less often, for queries that fill the device nevertheless.
int64_t item_rows_of(const Op& op, const Dialect& dialect, Part part) {
  const compute_plugin_tensor& q = op.input(part == Part::kForward ? 0 : 1);
  if (dialect.item_registers < 128 || dialect.group_size != 256) return kItemRows;
  const int64_t most_features = part == Part::kForward ? op.input(2).shape[3] : features_of(op, 1);
  if (computed_in(q.dtype) != COMPUTE_DTYPE_FLOAT32 || most_features > 128) return kItemRows;
  const compute_plugin_tensor& rows = part == Part::kKeys ? op.input(2) : q;
  const int64_t groups = rows.shape[0] * rows.shape[1] * divide_up(rows.shape[2], 16 * kManyItemRows);
  const bool fills = part == Part::kForward ? 2 * groups >= 3 * dialect.compute_units : groups >= dialect.compute_units;
  return fills ? kManyItemRows : kItemRows;
}

void erase_all(std::string& text, std::string_view part) {
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos;) text.erase(at, part.size());
}

// Two groups wait at their barriers at different times: if a multiprocessor has registers for 256 items, two groups of
// half the size are faster, unless they reuse loaded elements too little, as in gradients that see all keys.
Dialect in_groups(const Dialect& dialect, const Op& op, Part part) {
  Dialect own = dialect;
  const bool is_short = part == Part::kForward || op.integer("causal", 0) != 0;
  if (is_short && item_rows_of(op, dialect, part) == kManyItemRows) own.group_size /= 2;
  return own;
}

class TileBuilder {
 public:
  TileBuilder(const Op& op, const Dialect& given, Part part, const AttentionFlags* flags, bool with_text)
      : dialect_(in_groups(given, op, part)),
        op_(op),
        part_(part),
        flags_(flags),
        first_(part == Part::kForward ? 0 : 1),
        builder_(dialect_,
                 part == Part::kForward   ? "attention_tiles"
                 : part == Part::kQueries ? "attention_dq"
                                          : "attention_dk_dv",
                 with_text),
        dtype_(op.input(first_).dtype),
        wide_(computed_in(dtype_)),
        q_(op.input(first_)),
        k_(op.input(first_ + 1)),
        v_(op.input(first_ + 2)),
        features_(q_.shape[3]),
        value_features_(v_.shape[3]),
        shape_(dialect_, wide_, features_of(op, first_), item_rows_of(op, given, part)) {}

  void build(BuiltKernels& built) {
    builder_.is_wide = is_wide_attention(op_, first_);
    builder_.sign(dtype_);
    builder_.sign(shape_.width);
    builder_.sign(shape_.item_rows);
    builder_.sign(shape_.group);
    builder_.sign(item_features(features_));
    builder_.sign(item_features(value_features_));
    add_operands();
    add_words();
    lanes_ = choose_lanes();
    builder_.sign(lanes_);
    if (builder_.with_text()) {
      if (has_warps()) {
        define_lane_exchange(builder_, "f32");
        builder_.globals += kAttentionWeight;
      }
      builder_.body = fill(kAttentionPlace, place_values()) + (part_ == Part::kForward   ? forward_text()
                                                               : part_ == Part::kQueries ? queries_text()
                                                                                         : keys_text());
    }
    // Compilers for CPU cores take seconds for unrolled kernels with so many barriers.
    if (builder_.with_text() && builder_.dialect().is_host) erase_all(builder_.body, "#pragma unroll\n");
    const int64_t heads = part_ == Part::kKeys ? k_.shape[1] : q_.shape[1];
    built.add(builder_, q_.shape[0] * heads * tiles());
  }

 private:
  enum Operand { kQ, kK, kV, kDy, kY, kLogsumexp, kDelta, kMask, kFirst, kSecond, kOperands };

  struct Place {
    int32_t number = -1;
    compute_dtype dtype = COMPUTE_DTYPE_NONE;
    int32_t words[4] = {};
    bool is_shared = false;  // by heads
  };

  int64_t n() const { return q_.shape[2]; }
  int64_t m() const { return k_.shape[2]; }
  int64_t tiles() const { return divide_up(part_ == Part::kKeys ? m() : n(), shape_.rows); }

  // Of operands whose rows are loaded: 16 bytes an access where whole words lie side by side.
  int choose_lanes() const {
    if (!has_warps() || dtype_ != COMPUTE_DTYPE_FLOAT32 || features_ % shape_.depth != 0 ||
        value_features_ % shape_.depth != 0)
      return 1;
    for (const Operand operand : {kQ, kK, kV, kDy}) {
      if (places_[operand].number < 0) continue;
      const int64_t* strides = strides_[operand];
      if (alignments_[operand] < 16 || strides[3] != 1) return 1;
      if (std::any_of(strides, strides + 3, [](int64_t stride) { return stride % 4 != 0; })) return 1;
    }
    return 4;
  }

  // Whether items exchange registers in warps.
  bool has_warps() const {
    return builder_.dialect().has_warps && shape_.group % kWarp == 0 && wide_ == COMPUTE_DTYPE_FLOAT32;
  }

  // Whether inner tiles, in which every query sees every key, justify separate code.
  bool can_be_inner() const { return places_[kMask].number < 0 && !builder_.dialect().is_host; }

  // ---- parameters

  void add_tensor(Operand operand, int32_t index, bool is_shared = false, bool is_const = true) {
    const compute_plugin_tensor& tensor = op_.tensor(index);
    Place& place = places_[operand];
    place.number = builder_.pointer(Pointer::kTensor, index, 0);
    place.dtype = tensor.dtype;
    place.is_shared = is_shared;
    builder_.declare(place.number, type_text(tensor.dtype).storage, is_const);
    int64_t strides[4] = {};
    for (int32_t i = 0; i < tensor.rank; ++i) {
      const int32_t axis = tensor.rank - 1 - i;
      strides[3 - i] = tensor.shape[axis] == 1 ? 0 : tensor.strides[axis];
    }
    std::copy_n(strides, 4, strides_[operand]);
    alignments_[operand] = tensor.alignment;
  }

  void add_operands() {
    const int32_t outputs = op_.input_count();
    add_tensor(kQ, first_);
    add_tensor(kK, first_ + 1, true);
    add_tensor(kV, first_ + 2, true);
    if (part_ != Part::kForward) {
      add_tensor(kDy, 0);
      add_tensor(kLogsumexp, 5);
      Place& delta = places_[kDelta];
      delta.number = builder_.pointer(Pointer::kWorkspace, 0, 0);
      delta.dtype = wide_;
      builder_.declare(delta.number, type_text(wide_).storage, part_ == Part::kKeys);
      strides_[kDelta][0] = q_.shape[1] * n();
      strides_[kDelta][1] = n();
      strides_[kDelta][2] = 1;
    }
    if (part_ == Part::kForward) {
      add_tensor(kFirst, outputs, false, false);
      add_tensor(kLogsumexp, outputs + 1, false, false);
    } else if (part_ == Part::kQueries) {
      add_tensor(kY, 4);
      add_tensor(kFirst, outputs, false, false);
    } else {
      add_tensor(kFirst, outputs + 1, true, false);
      add_tensor(kSecond, outputs + 2, true, false);
    }
    const int32_t mask = first_ + (part_ == Part::kForward ? 3 : 5);
    const bool has_mask = mask < outputs && op_.input(mask).rank >= 0;
    if (has_mask) add_tensor(kMask, mask);
    builder_.sign(has_mask ? places_[kMask].dtype : -1);
    // Statistics have three axes: batch, head and row.
    if (part_ != Part::kForward || places_[kLogsumexp].number >= 0) {
      int64_t* const strides = strides_[kLogsumexp];
      std::copy_n(strides + 1, 3, strides);
      strides[3] = 0;
    }
    builder_.sign(flags_ != nullptr);
    if (flags_ == nullptr) return;
    flags_number_ = builder_.pointer(Pointer::kWorkspace, 0, flags_->offset_bytes);
    builder_.declare(flags_number_, "i32", true);
  }

  void add_words() {
    if (flags_ != nullptr) {
      word_flag_rows_ = builder_.word(flags_->rows);
      word_flag_tiles_ = builder_.word(divide_up(part_ == Part::kKeys ? m() : n(), flags_->rows));
    }
    const double scale = attention_scale(op_, features_);
    word_n_ = builder_.word(n());
    word_m_ = builder_.word(m());
    word_reach_ = builder_.word(op_.integer("causal", 0) != 0 ? m() - n() : m());
    word_features_ = builder_.word(features_);
    word_value_features_ = builder_.word(value_features_);
    word_tiles_ = builder_.word(tiles());
    word_heads_ = builder_.word(part_ == Part::kKeys ? k_.shape[1] : q_.shape[1]);
    word_group_heads_ = builder_.word(q_.shape[1] / k_.shape[1]);
    word_scale_ = builder_.word(wide_ == COMPUTE_DTYPE_FLOAT64 ? std::bit_cast<int64_t>(scale)
                                                               : std::bit_cast<int32_t>(static_cast<float>(scale)));
    for (int i = 0; i < kOperands; ++i) {
      if (places_[i].number < 0) continue;
      for (int axis = 0; axis < 4; ++axis) places_[i].words[axis] = builder_.word(strides_[i][axis]);
    }
  }

  // ---- text

  static std::string word(int32_t number) { return KernelBuilder::index_word(number); }
  std::string type() const { return type_text(wide_).value; }
  int64_t item_features(int64_t features) const {
    return features <= 32 ? divide_up(features, 16) : divide_up(features, 64) * 4;
  }
  std::string feature_of_j(int64_t features) const {
    const int64_t run = std::min<int64_t>(item_features(features), 4);
    return cat("(column_id * ", run, " + j % ", run, " + j / ", run, " * ", 16 * run, ")");
  }

  // Declares where the operands' heads begin.
  std::string bases(std::initializer_list<Operand> operands) const {
    std::string out;
    for (const Operand operand : operands) {
      const Place& place = places_[operand];
      if (place.number < 0) continue;
      out += cat("const ix at", place.number, " = batch * ", word(place.words[0]), " + ",
                 place.is_shared ? "shared_head" : "head", " * ", word(place.words[1]), ";\n");
    }
    return out;
  }
  std::string place(Operand operand, const std::string& row, const std::string& column) const {
    const Place& place = places_[operand];
    std::string text = cat("x", place.number, "[at", place.number, " + ", row, " * ", word(place.words[2]));
    if (!column.empty()) text += cat(" + ", column, " * ", word(place.words[3]));
    return text + "]";
  }
  std::string value(Operand operand, const std::string& row, const std::string& column) {
    const compute_dtype dtype = places_[operand].dtype;
    return convert_text(value_of_element(dtype, place(operand, row, column)), dtype, wide_, builder_.functions());
  }
  std::string call(int32_t intrinsic, const std::string& x) {
    return call_text(intrinsic, wide_, {x}, builder_.functions());
  }

  std::vector<Value> place_values() {
    const std::string scale = builder_.word_text(word_scale_);
    return {{"type", type()},
            {"columns", kColumns},
            {"pitch", shape_.pitch},
            {"stage_elements", shape_.stage},
            {"n", word(word_n_)},
            {"m", word(word_m_)},
            {"reach", word(word_reach_)},
            {"features", word(word_features_)},
            {"value_features", word(word_value_features_)},
            {"tiles", word(word_tiles_)},
            {"heads", word(word_heads_)},
            {"is_of_queries", part_ != Part::kKeys},
            {"rows", shape_.rows},
            {"scale", wide_ == COMPUTE_DTYPE_FLOAT64 ? cat("COMPUTE_AS_F64(", scale, ")")
                                                     : cat("COMPUTE_AS_F32((i32)", scale, ")")},
            {"least", identity_text(Combination::max, wide_)},
            {"has_flags", flags_ != nullptr},
            {"flags", cat("x", flags_number_)},
            {"flag_rows", word(word_flag_rows_)},
            {"flag_tiles", word(word_flag_tiles_)}};
  }

  const char* row_extent() const { return part_ == Part::kKeys ? "m" : "n"; }
  const char* column_extent() const { return part_ == Part::kKeys ? "n" : "m"; }

  // The type of a vector load, and its statement.
  std::string loaded_type() {
    return lanes_ == 1 ? type() : vector_type(builder_, type_text(dtype_).storage, dtype_size(dtype_), lanes_).type;
  }
  std::string loaded(Operand operand, const std::string& row, const std::string& column) {
    if (lanes_ == 1) return cat("loaded = ", value(operand, row, column), ";");
    return cat("loaded.v[0] = *(COMPUTE_GLOBAL const compute_w16*)&", place(operand, row, column), ";");
  }

  std::string product_text(const char* target, Operand left, Operand right, const char* extent) {
    const int64_t left_loads = shape_.rows * shape_.depth / shape_.group / lanes_;
    const int64_t right_loads = kColumns * shape_.depth / shape_.group / lanes_;
    const int64_t depth_words = shape_.depth / lanes_;
    const auto fetch = [&](const std::string& from) {
      const std::string feature = "(" + from + " + d)";
      return fill(kAttentionFetch, {{"left_loads", left_loads},
                                    {"group", shape_.group},
                                    {"depth_words", depth_words},
                                    {"lanes", lanes_},
                                    {"loaded_type", loaded_type()},
                                    {"zero", lanes_ > 1 ? "{}" : "0"},
                                    {"row_extent", row_extent()},
                                    {"from", from},
                                    {"depth_extent", extent},
                                    {"left_loaded", loaded(left, "(first + t)", feature)},
                                    {"right_loads", right_loads},
                                    {"column_extent", column_extent()},
                                    {"right_loaded", loaded(right, "(begin + t)", feature)}});
    };
    return fill(kAttentionProduct, {{"type", type()},
                                    {"loaded_type", loaded_type()},
                                    {"lanes", lanes_},
                                    {"has_lanes", lanes_ > 1},
                                    {"item_rows", shape_.item_rows},
                                    {"left_loads", left_loads},
                                    {"right_loads", right_loads},
                                    {"fetch_first", fetch("0")},
                                    {"depth_extent", extent},
                                    {"depth", shape_.depth},
                                    {"depth_words", depth_words},
                                    {"group", shape_.group},
                                    {"pitch", shape_.pitch},
                                    {"column_pitch", kColumns + 4},
                                    {"fetch_next", fetch(cat("(f0 + ", shape_.depth, ")"))},
                                    {"target", target}});
  }

  // Words of rows of features that an item loads for a chunk of keys, and the statements.
  int64_t row_loads() const { return divide_up(shape_.chunk * shape_.width, shape_.group * lanes_); }
  std::string fetch_rows(const std::string& from, Operand operand, const char* extent) {
    return fill(kAttentionFetchRows, {{"loads", row_loads()},
                                      {"group", shape_.group},
                                      {"width_words", shape_.width / lanes_},
                                      {"lanes", lanes_},
                                      {"loaded_type", loaded_type()},
                                      {"zero", lanes_ > 1 ? "{}" : "0"},
                                      {"chunk", shape_.chunk},
                                      {"from", from},
                                      {"column_extent", column_extent()},
                                      {"sum_extent", extent},
                                      {"loaded", loaded(operand, cat("(begin + ", from, " + t)"), "d")}});
  }

  std::string sum_text(const char* target, Operand operand, int64_t features, const char* extent) {
    const bool fetches_first = part_ != Part::kForward;
    std::vector<Value> values = {{"fetches_first", fetches_first},
                                 {"columns", kColumns},
                                 {"column_extent", column_extent()},
                                 {"chunk", shape_.chunk},
                                 {"width", shape_.width},
                                 {"width_words", shape_.width / lanes_},
                                 {"group", shape_.group},
                                 {"loads", row_loads()},
                                 {"stored", lanes_ > 1 ? "((COMPUTE_LOCAL_POINTER compute_w16*)stage)[number] = "
                                                         "next_rows[e].v[0];"
                                                       : "stage[number] = next_rows[e];"},
                                 {"fetch_next", fetch_rows(cat("(c0 + ", shape_.chunk, ")"), operand, extent)},
                                 {"type", type()},
                                 {"item_rows", shape_.item_rows},
                                 {"item_features", item_features(features)},
                                 {"has_warps", has_warps()},
                                 {"rows", shape_.rows},
                                 {"pitch", shape_.pitch},
                                 {"feature_of_j", feature_of_j(features)},
                                 {"target", target},
                                 {"loaded_type", loaded_type()},
                                 {"fetch_first", fetches_first ? fetch_rows("0", operand, extent) : ""}};
    return "{\n" + fill(kAttentionSum, values) + "}\n";
  }

  std::string store_weights(const char* weights) const {
    return fill(kAttentionStoreWeights, {{"has_warps", has_warps()},
                                         {"item_rows", shape_.item_rows},
                                         {"rows", shape_.rows},
                                         {"pitch", shape_.pitch},
                                         {"weights", weights}});
  }

  std::string store_text(const char* sums, Operand operand, int64_t features, const char* extent) {
    const std::string sum = cat(sums, "[i][j]");
    return fill(kAttentionStore,
                {{"item_rows", shape_.item_rows},
                 {"item_features", item_features(features)},
                 {"feature_of_j", feature_of_j(features)},
                 {"row_extent", row_extent()},
                 {"sum_extent", extent},
                 {"element", place(operand, "row", "feature")},
                 {"value", element_of_value(dtype_, convert_text(sum, wide_, dtype_, builder_.functions()))}});
  }

  std::string score_text() {
    const bool has_mask = places_[kMask].number >= 0, is_bool = has_mask && places_[kMask].dtype == COMPUTE_DTYPE_BOOL;
    std::vector<Value> values = {{"is_bool_mask", is_bool}, {"is_added_mask", has_mask && !is_bool}};
    if (is_bool) values.emplace_back("mask", value_of_element(COMPUTE_DTYPE_BOOL, place(kMask, "query", "key")));
    if (has_mask && !is_bool) values.emplace_back("mask", value(kMask, "query", "key"));
    return fill(kAttentionScore, values);
  }

  // e to the power x, of a weight.
  std::string weight(const std::string& x) {
    if (!has_warps()) return call(COMPUTE_PLUGIN_INTRINSIC_EXP, x);
    return cat("compute_attention_weight(", x, ")");
  }

  static std::string base() { return "(greatest[i] - greatest[i] == 0 ? greatest[i] : 0)"; }

  std::string forward_text() {
    const std::string rescale = fill(kAttentionRescale, {{"type", type()},
                                                         {"kept", weight("base - next")},
                                                         {"base", base()},
                                                         {"item_features", item_features(value_features_)}});
    std::vector<Value> values = {{"group_heads", word(word_group_heads_)},
                                 {"bases", bases({kQ, kK, kV, kFirst, kLogsumexp, kMask})},
                                 {"type", type()},
                                 {"item_rows", shape_.item_rows},
                                 {"item_features", item_features(value_features_)},
                                 {"rows", shape_.rows},
                                 {"columns", kColumns},
                                 {"product", product_text("s", kQ, kK, "features")},
                                 {"loaded_type", loaded_type()},
                                 {"loads", row_loads()},
                                 {"fetch_rows", fetch_rows("0", kV, "value_features")},
                                 {"score", score_text()},
                                 {"can_be_inner", can_be_inner()},
                                 {"pitch", shape_.pitch},
                                 {"store_weights", store_weights("s")},
                                 {"has_warps", has_warps()},
                                 {"rescale", rescale},
                                 {"base", base()},
                                 {"weight", weight("s[i][j] - base")},
                                 {"sum", sum_text("sums", kV, value_features_, "value_features")},
                                 {"logsumexp", place(kLogsumexp, "query", "")},
                                 {"logarithm", call(COMPUTE_PLUGIN_INTRINSIC_LOG, "whole")},
                                 {"store", store_text("sums", kFirst, value_features_, "value_features")}};
    return fill(kAttentionForward, values);
  }

  std::string queries_text() {
    return fill(kAttentionQueries, {{"group_heads", word(word_group_heads_)},
                                    {"bases", bases({kQ, kK, kV, kDy, kY, kLogsumexp, kDelta, kFirst, kMask})},
                                    {"type", type()},
                                    {"item_features", item_features(features_)},
                                    {"dy", value(kDy, "query", "feature")},
                                    {"y", value(kY, "query", "feature")},
                                    {"pitch", shape_.pitch},
                                    {"store_weights", store_weights("s")},
                                    {"logsumexp", place(kLogsumexp, "query", "")},
                                    {"delta", place(kDelta, "query", "")},
                                    {"rows", shape_.rows},
                                    {"columns", kColumns},
                                    {"product", product_text("s", kQ, kK, "features")},
                                    {"gradient_product", product_text("g", kDy, kV, "value_features")},
                                    {"score", score_text()},
                                    {"weight", weight("score - less[i]")},
                                    {"item_rows", shape_.item_rows},
                                    {"can_be_inner", can_be_inner()},
                                    {"sum", sum_text("sums", kK, features_, "features")},
                                    {"store", store_text("sums", kFirst, features_, "features")}});
  }

  std::string keys_text() {
    return fill(kAttentionKeys, {{"type", type()},
                                 {"item_features", item_features(features_)},
                                 {"item_value_features", item_features(value_features_)},
                                 {"columns", kColumns},
                                 {"group_heads", word(word_group_heads_)},
                                 {"bases", bases({kQ, kK, kV, kDy, kLogsumexp, kDelta, kMask})},
                                 {"product", product_text("s", kK, kQ, "features")},
                                 {"gradient_product", product_text("g", kV, kDy, "value_features")},
                                 {"logsumexp", place(kLogsumexp, "query", "")},
                                 {"delta", place(kDelta, "query", "")},
                                 {"score", score_text()},
                                 {"weight", weight("score - less")},
                                 {"item_rows", shape_.item_rows},
                                 {"rows", shape_.rows},
                                 {"can_be_inner", can_be_inner()},
                                 {"store_weights", store_weights("s")},
                                 {"store_gradients", store_weights("g")},
                                 {"value_sum", sum_text("value_sums", kDy, value_features_, "value_features")},
                                 {"sum", sum_text("sums", kQ, features_, "features")},
                                 {"result_bases", bases({kFirst, kSecond})},
                                 {"value_store", store_text("value_sums", kSecond, value_features_, "value_features")},
                                 {"store", store_text("sums", kFirst, features_, "features")}});
  }

  const Dialect dialect_;
  const Op& op_;
  const Part part_;
  const AttentionFlags* const flags_;  // or null
  const int32_t first_;                // q among the inputs
  KernelBuilder builder_;
  const compute_dtype dtype_, wide_;
  const compute_plugin_tensor &q_, &k_, &v_;
  const int64_t features_, value_features_;
  const TileShape shape_;
  Place places_[kOperands];
  int64_t strides_[kOperands][4] = {};
  int32_t alignments_[kOperands] = {};
  int lanes_ = 1;  // elements an access
  int32_t word_n_ = 0, word_m_ = 0, word_reach_ = 0, word_features_ = 0, word_value_features_ = 0, word_tiles_ = 0,
          word_heads_ = 0, word_group_heads_ = 0, word_scale_ = 0, word_flag_rows_ = 0, word_flag_tiles_ = 0,
          flags_number_ = 0;
};

}  // namespace

double attention_scale(const Op& op, int64_t features) {
  const double given = op.real("scale", 0);
  return given != 0 ? given : 1 / std::sqrt(static_cast<double>(features));
}

bool is_wide_attention(const Op& op, int32_t first) {
  constexpr int64_t kLimit = INT32_MAX - (1 << 20), kMostRows = 2 * 256;
  const compute_plugin_tensor &q = op.input(first), &k = op.input(first + 1);
  if (q.shape[0] * q.shape[1] * (q.shape[2] + k.shape[2] + kMostRows) > kLimit) return true;
  for (int32_t i = 0; i < op.tensor_count(); ++i) {
    const compute_plugin_tensor& tensor = op.tensor(i);
    int64_t span = 1;
    for (int32_t axis = 0; axis < tensor.rank; ++axis)
      span += std::llabs(tensor.strides[axis]) * (tensor.shape[axis] - 1 + 2 * kColumns);
    if (tensor.rank >= 0 && span * dtype_size(tensor.dtype) > kLimit) return true;
  }
  return false;
}

std::optional<Refusal> refuse_attention_tiles(const Op& op, const Dialect& dialect) {
  const int32_t first = op.name() == "attention" ? 0 : 1;
  const compute_plugin_tensor& q = op.input(first);
  if (!is_float(q.dtype)) return Refusal{COMPUTE_PLUGIN_REFUSE_DTYPE, first, "attention: expected real numbers", ""};
  const int64_t features = features_of(op, first);
  if (features > kMostFeatures)
    return Refusal{COMPUTE_PLUGIN_REFUSE_SHAPE, first, cat("attention: more than ", kMostFeatures, " features"), ""};
  if (dialect.group_size < 64 || dialect.group_size > 256 ||
      TileShape(dialect, computed_in(q.dtype), features, kItemRows).bytes > dialect.local_memory_bytes) {
    return Refusal{COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED, -1, "attention: work groups or local memory are too small",
                   ""};
  }
  // Their groups would be mostly idle, and their scores take little more memory than the keys.
  if (!dialect.is_host && q.shape[2] <= kFewQueries && op.input(first + 1).shape[2] > kManyKeys)
    return Refusal{COMPUTE_PLUGIN_REFUSE_SHAPE, first, "attention: few queries of many keys are faster as products",
                   ""};
  return std::nullopt;
}

void add_attention_tiles(const Op& op, const Dialect& dialect, Part part, const AttentionFlags* flags, bool with_text,
                         BuiltKernels& built) {
  TileBuilder(op, dialect, part, flags, with_text).build(built);
}

BuiltKernels build_attention_tiles(const Op& op, const Dialect& dialect, bool with_text) {
  BuiltKernels built;
  add_attention_tiles(op, dialect, Part::kForward, nullptr, with_text, built);
  return built;
}

BuiltKernels build_attention_grad_tiles(const Op& op, const Dialect& dialect, bool with_text) {
  const compute_plugin_tensor& q = op.input(1);
  BuiltKernels built;
  add_attention_tiles(op, dialect, Part::kQueries, nullptr, with_text, built);
  add_attention_tiles(op, dialect, Part::kKeys, nullptr, with_text, built);
  built.workspace_bytes = q.shape[0] * q.shape[1] * q.shape[2] * dtype_size(computed_in(q.dtype));
  return built;
}

}  // namespace compute::common
