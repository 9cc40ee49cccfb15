// SPDX-License-Identifier: Apache-2.0
// attention_grad of float16 and bfloat16 on GPUs with matrix units. For what these kernels do not take there are those
// of attention_tiles.cpp.
#include <bit>
#include <cmath>

#include "plugins/common/source/attention/attention_functions.hpp"
#include "plugins/common/source/attention/attention_tiles.hpp"
#include "plugins/common/source/attention/attention_units.hpp"
#include "plugins/common/source/attention/ops.hpp"
#include "plugins/common/source/expressions/expression.hpp"

namespace compute::common {
namespace {

#include "plugins/common/source/attention/attention_grad.inc"

constexpr int64_t kRows = 128;  // of a group
constexpr int64_t kTile = 32;   // columns
constexpr int32_t kGroupSize = 256;
constexpr int64_t kTwoGroupsFeatures = 64;  // up to which two groups find registers in a multiprocessor

enum Operand { kDy, kQ, kK, kV, kY, kL, kDq, kDk, kDv, kOperandCount };
constexpr std::string_view kNames[kOperandCount] = {"dy", "q", "k", "v", "y", "l", "dq", "dk", "dv"};

// The mask, which may be absent, comes after the inputs.
const compute_plugin_tensor& operand(const Op& op, int i) { return i < kDq ? op.input(i) : op.output(i - kDq); }

// Whether rows of features are read 16 aligned bytes at a time.
bool suits_matrix_units(const Op& op, const Dialect& dialect) {
  const compute_plugin_tensor& q = op.input(kQ);
  if (!dialect.has_matrix_units || !dialect.has_warps || dialect.group_size != kGroupSize || !is_half(q.dtype))
    return false;
  if (op.input_count() > kDq && op.input(kDq).rank >= 0) return false;  // a mask
  const int64_t features = q.shape[3];
  if (features != op.input(kV).shape[3] || features % 16 != 0 || features < 16 || features > 128) return false;
  for (int i = 0; i < kOperandCount; ++i) {
    if (i == kL) continue;
    const compute_plugin_tensor& tensor = operand(op, i);
    bool fits = tensor.alignment >= 16 && tensor.strides[3] == 1;
    for (int axis = 0; axis < 3; ++axis) fits = fits && (tensor.strides[axis] % 8 == 0 || tensor.shape[axis] == 1);
    if (!fits) return false;
  }
  return true;
}

class GradBuilder {
 public:
  GradBuilder(const Op& op, const Dialect& dialect, bool is_of_keys, bool with_text)
      : op_(op),
        is_of_keys_(is_of_keys),
        is_causal_(op.integer("causal", 0) != 0),
        builder_(dialect, is_of_keys ? "attention_units_dk_dv" : "attention_units_dq", with_text),
        q_(op.input(kQ)),
        k_(op.input(kK)),
        features_(q_.shape[3]) {}

  void build(BuiltKernels& built) {
    builder_.is_wide = true;
    builder_.sign(q_.dtype);
    builder_.sign(features_);
    builder_.sign(is_causal_);
    if (!is_of_keys_ && features_ <= kTwoGroupsFeatures) builder_.least_at_once = 2;
    for (int i = 0; i < kOperandCount; ++i) {
      if (is_used(i)) add_operand(i);
    }
    const int32_t deltas = builder_.pointer(Pointer::kWorkspace, 0, 0);
    builder_.declare(deltas, "f32", is_of_keys_);
    name_pointer("all_deltas", "f32", deltas, is_of_keys_);
    const int64_t tiles = divide_up(is_of_keys_ ? k_.shape[2] : q_.shape[2], kRows);
    const int64_t heads = is_of_keys_ ? k_.shape[1] : q_.shape[1];
    add_words(heads, tiles);
    if (builder_.with_text()) add_text();
    built.add(builder_, q_.shape[0] * heads * tiles);
  }

 private:
  bool is_used(int i) const {
    if (i == kY || i == kDq) return !is_of_keys_;
    if (i == kDk || i == kDv) return is_of_keys_;
    return true;
  }

  void name_pointer(std::string_view name, const char* storage, int32_t number, bool is_const) {
    if (builder_.with_text())
      pointers_ += cat("COMPUTE_GLOBAL ", is_const ? "const " : "", storage, "* ", name, " = x", number, ";\n");
  }

  void add_operand(int i) {
    const int32_t number = builder_.pointer(Pointer::kTensor, i < kDq ? i : op_.input_count() + i - kDq, 0);
    const char* const storage = i == kL ? "f32" : "u16";
    builder_.declare(number, storage, i < kDq);
    name_pointer(kNames[i], storage, number, i < kDq);
  }

  void word(std::string name, int64_t value) {
    const int32_t number = builder_.word(value);
    if (builder_.with_text()) words_.emplace_back(std::move(name), KernelBuilder::index_word(number));
  }

  void add_words(int64_t heads, int64_t tiles) {
    const auto scale = static_cast<float>(attention_scale(op_, features_));
    word("n", q_.shape[2]);
    word("m", k_.shape[2]);
    word("heads", heads);
    word("q_heads", q_.shape[1]);
    word("group_heads", q_.shape[1] / k_.shape[1]);
    word("tiles", tiles);
    word("scale", std::bit_cast<int32_t>(scale));
    for (int i = 0; i < kOperandCount; ++i) {
      if (!is_used(i)) continue;
      const int64_t* const strides = operand(op_, i).strides;
      word(cat(kNames[i], "_batch"), strides[0]);
      word(cat(kNames[i], "_head"), strides[1]);
      word(cat(kNames[i], "_row"), strides[2]);
    }
  }

  void add_text() {
    const auto number = [&](std::string name, int64_t value) { words_.emplace_back(std::move(name), cat(value)); };
    const auto text = [&](std::string name, std::string value) {
      words_.emplace_back(std::move(name), std::move(value));
    };
    const auto widened = [&](const char* half) {
      return convert_text(half, q_.dtype, COMPUTE_DTYPE_FLOAT32, builder_.functions());
    };
    text("is_of_keys", is_of_keys_ ? "1" : "");
    text("is_of_queries", is_of_keys_ ? "" : "1");
    text("is_causal", is_causal_ ? "1" : "");
    number("tile", kTile);
    number("steps", features_ / 16);
    number("columns", features_ / 8);
    number("row_words", features_ / 8);
    number("tile_words", kTile * (features_ / 8 + 1));
    text("low_of_dy", widened("(u16)of_dy"));
    text("low_of_y", widened("(u16)of_y"));
    text("high_of_dy", widened("(u16)(of_dy >> 16)"));
    text("high_of_y", widened("(u16)(of_y >> 16)"));
    text("tile_place", is_of_keys_ ? filled(kAttentionKeysTile) : cat("const ix begin = (t) * ", kTile, ";"));
    text("tile_statistics", is_of_keys_ ? filled(kAttentionKeysStatistics) : "");
    const std::string_view results[] = {kNames[is_of_keys_ ? kDk : kDq], kNames[kDv]};
    for (int i = 0; i < (is_of_keys_ ? 2 : 1); ++i) {
      const std::string letter = i == 0 ? "a" : "b", name(results[i]);
      text(letter + "_result", name);
      text(letter + "_batch", found(name + "_batch"));
      text(letter + "_head", found(name + "_head"));
      text(letter + "_result_row", found(name + "_row"));
    }
    builder_.globals += kAttentionLanes;
    builder_.globals += attention_functions(q_.dtype == COMPUTE_DTYPE_FLOAT16 ? "f16" : "bf16");
    builder_.body = pointers_ + filled(kAttentionGrad);
  }

  std::string found(std::string_view name) const {
    for (const auto& [known, value] : words_) {
      if (known == name) return value;
    }
    return {};
  }
  std::string filled(std::string_view text) const {
    return fill(text, [&](std::string_view name) -> std::optional<std::string_view> {
      for (const auto& [known, value] : words_) {
        if (known == name) return value;
      }
      return std::nullopt;
    });
  }

  const Op& op_;
  const bool is_of_keys_, is_causal_;
  KernelBuilder builder_;
  const compute_plugin_tensor &q_, &k_;
  const int64_t features_;
  std::string pointers_;                                    // their names
  std::vector<std::pair<std::string, std::string>> words_;  // of the templates
};

}  // namespace

std::optional<Refusal> refuse_attention_grad(const Op& op, const Dialect& dialect) {
  return suits_matrix_units(op, dialect) ? std::nullopt : refuse_attention_tiles(op, dialect);
}

BuiltKernels build_attention_grad(const Op& op, const Dialect& dialect, bool with_text) {
  if (suits_attention_units(op, dialect)) return build_attention_grad_units(op, dialect, with_text);
  if (!suits_matrix_units(op, dialect)) return build_attention_grad_tiles(op, dialect, with_text);
  const compute_plugin_tensor& q = op.input(kQ);
  BuiltKernels built;
  GradBuilder(op, dialect, false, with_text).build(built);
  GradBuilder(op, dialect, true, with_text).build(built);
  built.workspace_bytes = q.shape[0] * q.shape[1] * q.shape[2] * static_cast<int64_t>(sizeof(float));
  return built;
}

}  // namespace compute::common
