// SPDX-License-Identifier: Apache-2.0
#include "plugins/common/source/attention/attention_few.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <deque>

#include "plugins/common/source/attention/attention_functions.hpp"
#include "plugins/common/source/attention/attention_tiles.hpp"
#include "plugins/common/source/expressions/combination.hpp"

namespace compute::common {
namespace {

#include "plugins/common/source/attention/attention_few.inc"

constexpr int64_t kMostQueries = 16, kMostJoined = 32, kLeastKeys = 128, kMostFeatures = 256;
constexpr int64_t kMostRows = 16;       // of a group
constexpr int64_t kKeys = 4;            // of a stream at a time
constexpr int64_t kRegisters = 32;      // of an item, for the features of its queries, if that is possible
constexpr int64_t kMostRegisters = 64;  // the same, at most
constexpr int32_t kHostGroup = 16;
constexpr int64_t kMostHostNumbers = 1024;  // of an item on a processor: in its caches
constexpr int64_t kGroupsPerUnit = 4;

enum Operand { kQ, kK, kV, kMask, kY, kL, kOperands };

// How a group's items share rows, keys and features.
struct Form {
  Form(const Op& op, const Dialect& dialect)
      : q(op.input(0)),
        k(op.input(1)),
        v(op.input(2)),
        wide(computed_in(q.dtype)),
        n(q.shape[2]),
        m(k.shape[2]),
        features(q.shape[3]),
        value_features(v.shape[3]),
        group_heads(q.shape[1] / k.shape[1]) {
    const int64_t joined = group_heads * n, most = std::max(features, value_features);
    group = dialect.is_host ? std::min(kHostGroup, dialect.group_size) : dialect.group_size;
    rows = std::min(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(joined))), kMostRows);
    along = dialect.is_host ? 1 : 8;
    const int64_t most_lanes = lanes_in_memory();
    const auto divide = [&] {
      lanes = most_lanes;
      while (lanes > 1 && along * lanes > static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(most)))) lanes /= 2;
      words = divide_up(features, along * lanes);
      value_words = divide_up(value_features, along * lanes);
    };
    divide();
    while (dialect.is_host && rows > 1 && rows * most > kMostHostNumbers) rows /= 2;
    const auto registers = [&] { return rows * std::max(words, value_words) * lanes * dtype_size(wide) / 4; };
    if (!dialect.is_host) {
      while (along < kWarp && (registers() > kRegisters || (is_half(q.dtype) && std::max(words, value_words) > 1))) {
        along *= 2;
        divide();
      }
      while (rows > 1 && registers() > kMostRegisters) rows /= 2;
    }
    streams = group / along;
    width = value_words * along * lanes;
    stage = std::max(streams * width, along > 1 ? kKeys * group : 1);
    local_bytes = (stage + 2 * streams) * dtype_size(wide);
    blocks = divide_up(joined, rows);
    const int64_t tasks = q.shape[0] * k.shape[1] * blocks, tile = streams * kKeys;
    loads_ahead =
        !dialect.is_host && is_half(q.dtype) && std::max(words, value_words) == 1 && registers() <= kRegisters;
    const int64_t wanted = loads_ahead ? at_once() * dialect.compute_units / tasks
                                       : divide_up(kGroupsPerUnit * dialect.compute_units, tasks);
    parts = std::clamp<int64_t>(wanted, 1, divide_up(m, 2 * tile));
    limit = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(parts)));
    groups = tasks * parts;
  }

  // Elements of k and v that lie side by side in words.
  int64_t lanes_in_memory() const {
    const int64_t most = 16 / dtype_size(q.dtype);
    for (const compute_plugin_tensor* tensor : {&k, &v}) {
      bool fits = tensor->alignment >= 16 && tensor->strides[3] == 1 && tensor->shape[3] % most == 0;
      for (int axis = 0; axis < 3; ++axis)
        fits = fits && (tensor->strides[axis] % most == 0 || tensor->shape[axis] == 1);
      if (!fits) return 1;
    }
    return most;
  }
  // Groups of a multiprocessor for which the form that loads ahead has registers.
  int64_t at_once() const { return rows == 1 ? 3 : 2; }
  int64_t result_bytes() const { return groups * rows * (value_features + 2) * dtype_size(wide); }

  const compute_plugin_tensor &q, &k, &v;
  const compute_dtype wide;
  const int64_t n, m, features, value_features, group_heads;
  int32_t group = 0;
  int64_t rows = 1, along = 1, lanes = 1, words = 1, value_words = 1;
  int64_t streams = 1, width = 1, stage = 1, local_bytes = 0, blocks = 1, parts = 1, groups = 1;
  int64_t limit = 1;         // of parts, in the text
  bool loads_ahead = false;  // values too before the scores, so that more is on the way
};

class FewBuilder {
 public:
  FewBuilder(const Op& op, const Dialect& dialect, const Form& form, std::string_view name, bool with_text)
      : op_(op), form_(form), own_(in_groups(dialect, form)), builder_(own_, name, with_text) {
    builder_.is_wide = is_wide_attention(op, 0) || form.result_bytes() > INT32_MAX / 2;
    builder_.sign(form.q.dtype);
    builder_.sign(form.group);
    builder_.sign(form.rows);
  }

  void add_parts(BuiltKernels& built) {
    for (const int64_t part : {form_.along, form_.lanes, form_.words, form_.value_words}) builder_.sign(part);
    builder_.sign(form_.loads_ahead);
    if (form_.loads_ahead) builder_.least_at_once = static_cast<int>(form_.at_once());
    const bool has_mask = op_.input_count() > 3 && op_.input(3).rank >= 0;
    const compute_dtype mask = has_mask ? op_.input(3).dtype : COMPUTE_DTYPE_NONE;
    const bool is_bool = mask == COMPUTE_DTYPE_BOOL;
    builder_.sign(mask);
    for (int32_t i = 0; i < (has_mask ? 4 : 3); ++i) tensor(i, op_.input(i).dtype, true);
    const int32_t result = builder_.pointer(Pointer::kWorkspace, 0, 0);
    builder_.declare(result, type_text(form_.wide).storage, false);
    const double scale = attention_scale(op_, form_.features);
    const bool is_double = form_.wide == COMPUTE_DTYPE_FLOAT64;
    common_words();
    word("m", form_.m);
    word("reach", op_.integer("causal", 0) != 0 ? form_.m - form_.n : form_.m);
    word("features", form_.features);
    const std::string bits = KernelBuilder::word_text(
        builder_.word(is_double ? std::bit_cast<int64_t>(scale) : std::bit_cast<int32_t>(static_cast<float>(scale))));
    const auto [q_batch, q_head, q_row, q_feature] = strides(0);
    strides("k", 1);
    const auto [v_batch, v_head, v_row, v_feature] = strides(2);
    set("v_batch", v_batch);
    set("v_head", v_head);
    std::string mask_column;
    if (has_mask) {
      const auto [batch, head, row, column] = strides(3);
      set("mask_batch", batch);
      set("mask_head", head);
      set("mask_row", row);
      mask_column = column;
    }
    if (builder_.with_text()) {
      const bool exchanges = form_.along > 1 && has_warps();
      if (exchanges) define_lane_exchange(builder_, "f32");
      if (has_warps()) builder_.globals += kAttentionLanes;
      const VectorText vector = vector_type(builder_, type_text(form_.q.dtype).storage, dtype_size(form_.q.dtype),
                                            static_cast<int>(form_.lanes));
      set("loaded_values", fill(kAttentionValues, {{"keys", kKeys},
                                                   {"value_words", form_.value_words},
                                                   {"streams", form_.streams},
                                                   {"along", form_.along},
                                                   {"lanes", form_.lanes},
                                                   {"vector", vector.type},
                                                   {"vector_word", vector.word},
                                                   {"v_row", v_row},
                                                   {"v_feature", v_feature}}));
      set("scale", is_double ? cat("COMPUTE_AS_F64(", bits, ")") : cat("COMPUTE_AS_F32((i32)", bits, ")"));
      set("query", value(form_.q.dtype, cat("x0[batch * ", q_batch, " + head * ", q_head, " + query * ", q_row,
                                            " + feature * ", q_feature, "]")));
      set("key_value", value(form_.k.dtype, cat("k[u][j / ", form_.lanes, "].e[j % ", form_.lanes, "]")));
      set("value_value", value(form_.v.dtype, cat("v[u][j / ", form_.lanes, "].e[j % ", form_.lanes, "]")));
      set("has_mask", has_mask ? "1" : "");
      set("is_bool_mask", is_bool ? "1" : "");
      set("is_added_mask", has_mask && !is_bool ? "1" : "");
      const std::string masked = cat("x3[mask_at[r] + key * ", mask_column, "]");
      if (has_mask) set("mask", is_bool ? value_of_element(mask, masked) : value(mask, masked));
      set("exchanges", exchanges ? "1" : "");
      set("stages", form_.along > 1 && !exchanges ? "1" : "");
      set("warp", kWarp);
      set("weight", weight("s[r][u] - base"));
      set("result", result);
      set("vector", vector.type);
      set("vector_word", vector.word);
      set("item_features", form_.words * form_.lanes);
      set("item_value_features", form_.value_words * form_.lanes);
      set("words", form_.words);
      set("lanes", form_.lanes);
      set("along", form_.along);
      set("streams", form_.streams);
      set("keys", kKeys);
      set("tile", kKeys * form_.streams);
      set("width", form_.width);
      set("stage_elements", form_.stage);
      set("loads_ahead", form_.loads_ahead ? "1" : "");
      set("loads_after", form_.loads_ahead ? "" : "1");
      builder_.body = fill(kAttentionFew, values_);
      erase_unrolling();
    }
    built.add(builder_, form_.groups);
  }

  void add_combination(BuiltKernels& built) {
    const auto width = std::min(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(form_.value_features))),
                                int64_t{form_.group});
    builder_.sign(form_.limit);
    builder_.sign(width);
    const int32_t part = builder_.pointer(Pointer::kWorkspace, 0, 0);
    builder_.declare(part, type_text(form_.wide).storage, true);
    tensor(op_.input_count(), form_.q.dtype, false);
    tensor(op_.input_count() + 1, form_.wide, false);
    common_words();
    set("parts_limit", form_.limit);
    set("width", width);
    set("slices", form_.group / width);
    strides("y", op_.input_count());
    const compute_plugin_tensor& logsumexp = op_.output(1);
    word("l_batch", logsumexp.strides[0]);
    word("l_head", logsumexp.strides[1]);
    word("l_row", logsumexp.strides[2]);
    if (builder_.with_text()) {
      if (has_warps()) builder_.globals += kAttentionLanes;
      set("stored",
          element_of_value(form_.q.dtype, convert_text("sum", form_.wide, form_.q.dtype, builder_.functions())));
      set("logarithm", call_text(COMPUTE_PLUGIN_INTRINSIC_LOG, form_.wide, {"total"}, builder_.functions()));
      builder_.body = fill(kAttentionCombine, values_);
      erase_unrolling();
    }
    built.add(builder_, form_.q.shape[0] * form_.q.shape[1] * form_.n);
  }

 private:
  static Dialect in_groups(const Dialect& dialect, const Form& form) {
    Dialect own = dialect;
    own.group_size = form.group;
    return own;
  }

  bool has_warps() const { return own_.has_warps && form_.group % kWarp == 0 && form_.wide == COMPUTE_DTYPE_FLOAT32; }

  template <class T>
  void set(std::string_view name, const T& value) {
    values_.emplace_back(name, value);
  }
  std::string word(int64_t value) { return KernelBuilder::index_word(builder_.word(value)); }
  void word(std::string_view name, int64_t value) { set(name, word(value)); }

  void tensor(int32_t index, compute_dtype dtype, bool is_const) {
    builder_.declare(builder_.pointer(Pointer::kTensor, index, 0), type_text(dtype).storage, is_const);
  }
  // Words of the strides by batch, head, row and column, which a mask may lack.
  std::array<std::string, 4> strides(int32_t index) {
    const compute_plugin_tensor& tensor = op_.tensor(index);
    std::array<int64_t, 4> found = {};
    for (int32_t i = 0; i < tensor.rank; ++i) {
      const int32_t axis = tensor.rank - 1 - i;
      found[static_cast<size_t>(3 - i)] = tensor.shape[axis] == 1 ? 0 : tensor.strides[axis];
    }
    return {word(found[0]), word(found[1]), word(found[2]), word(found[3])};
  }
  void strides(const std::string& name, int32_t index) {
    static constexpr const char* kAxes[] = {"batch", "head", "row", "feature"};
    const std::array<std::string, 4> found = strides(index);
    for (size_t i = 0; i < 4; ++i) names_.push_back(cat(name, "_", kAxes[i]));
    for (size_t i = 0; i < 4; ++i) set(names_[names_.size() - 4 + i], found[i]);
  }

  // What both kernels have.
  void common_words() {
    set("type", type_text(form_.wide).value);
    set("least", identity_text(Combination::max, form_.wide));
    set("rows", form_.rows);
    set("group", form_.group);
    if (builder_.with_text()) set("kept_before", weight("before - base"));
    word("n", form_.n);
    word("value_features", form_.value_features);
    word("parts", form_.parts);
    word("blocks", form_.blocks);
    word("shared_heads", form_.k.shape[1]);
    word("group_heads", form_.group_heads);
  }

  std::string value(compute_dtype dtype, const std::string& element) {
    return convert_text(value_of_element(dtype, element), dtype, form_.wide, builder_.functions());
  }
  // e to the power x.
  std::string weight(const std::string& x) {
    if (has_warps()) return cat("compute_exp2((", x, ") * 1.44269504088896340736f)");
    return call_text(COMPUTE_PLUGIN_INTRINSIC_EXP, form_.wide, {x}, builder_.functions());
  }

  // Compilers for CPU cores take long for unrolled kernels.
  void erase_unrolling() {
    static constexpr std::string_view kUnroll = "#pragma unroll\n";
    if (!own_.is_host) return;
    for (size_t at = 0; (at = builder_.body.find(kUnroll, at)) != std::string::npos;)
      builder_.body.erase(at, kUnroll.size());
  }

  const Op& op_;
  const Form& form_;
  const Dialect own_;
  KernelBuilder builder_;
  std::vector<Value> values_;
  std::deque<std::string> names_;
};

}  // namespace

bool suits_attention_few(const Op& op, const Dialect& dialect) {
  const compute_plugin_tensor &q = op.input(0), &k = op.input(1);
  const int64_t n = q.shape[2], features = q.shape[3], value_features = op.input(2).shape[3];
  if (!is_float(q.dtype) || q.shape[0] < 1 || q.shape[1] < 1 || n < 1 || n > kMostQueries) return false;
  if (n * (q.shape[1] / k.shape[1]) > kMostJoined || k.shape[2] < kLeastKeys) return false;
  if (std::min(features, value_features) < 1 || std::max(features, value_features) > kMostFeatures) return false;
  const Form form(op, dialect);
  return (dialect.is_host || form.group >= kWarp) && form.local_bytes <= dialect.local_memory_bytes &&
         form.groups <= dialect.max_groups && q.shape[0] * q.shape[1] * n <= dialect.max_groups;
}

BuiltKernels build_attention_few(const Op& op, const Dialect& dialect, bool with_text) {
  const Form form(op, dialect);
  BuiltKernels built;
  FewBuilder(op, dialect, form, "attention_few", with_text).add_parts(built);
  FewBuilder(op, dialect, form, "attention_combine", with_text).add_combination(built);
  built.workspace_bytes = form.result_bytes();
  return built;
}

}  // namespace compute::common
