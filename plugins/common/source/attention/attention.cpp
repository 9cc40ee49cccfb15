// SPDX-License-Identifier: Apache-2.0
// attention, which core requests by name: a kernel for float16 and bfloat16 on GPUs with matrix units. The kernels of
// attention_few.cpp, attention_units.cpp and attention_tiles.cpp compute the other cases.
#include <bit>

#include "plugins/common/source/attention/attention_few.hpp"
#include "plugins/common/source/attention/attention_functions.hpp"
#include "plugins/common/source/attention/attention_tiles.hpp"
#include "plugins/common/source/attention/attention_units.hpp"
#include "plugins/common/source/attention/ops.hpp"

namespace compute::common {
namespace {

#include "plugins/common/source/attention/attention.inc"

constexpr int64_t kQueries = 128;  // of a group
constexpr int32_t kGroupSize = 256;

enum Operand { kQ, kK, kV, kY, kL, kOperandCount };

// The positions of the kernel's operands among the op's tensors; the mask may be absent.
const compute_plugin_tensor& operand(const Op& op, int i) { return i < kY ? op.input(i) : op.output(i - kY); }

// Whether the kernel for matrix units is for this op: it reads 16 aligned bytes at a time, and writes 4.
bool suits_matrix_units(const Op& op, const Dialect& dialect) {
  if (!dialect.has_matrix_units || !dialect.has_warps || dialect.group_size != kGroupSize ||
      !is_half(op.input(kQ).dtype))
    return false;
  if (op.input_count() > 3 && op.input(3).rank >= 0) return false;  // a mask
  const int64_t features = op.input(kQ).shape[3];
  if (!(attention_scale(op, features) > 0)) return false;
  if (op.input(kQ).shape[2] + op.input(kK).shape[2] > INT32_MAX / 2) return false;  // rows are counted by int
  if (features != op.input(kV).shape[3] || features % 16 != 0 || features < 16 || features > 128) return false;
  for (int i = 0; i < kL; ++i) {
    const compute_plugin_tensor& tensor = operand(op, i);
    bool fits = tensor.alignment >= 16 && (tensor.strides[3] == 1);
    for (int axis = 0; axis < 3; ++axis) fits = fits && (tensor.strides[axis] % 8 == 0 || tensor.shape[axis] == 1);
    if (!fits) return false;
  }
  return true;
}

}  // namespace

std::optional<Refusal> refuse_attention(const Op& op, const Dialect& dialect) {
  if (suits_attention_few(op, dialect) || suits_matrix_units(op, dialect)) return std::nullopt;
  return refuse_attention_tiles(op, dialect);
}

BuiltKernels build_attention(const Op& op, const Dialect& dialect, bool with_text) {
  if (suits_attention_few(op, dialect)) return build_attention_few(op, dialect, with_text);
  if (suits_attention_units(op, dialect)) return build_attention_units(op, dialect, with_text);
  if (!suits_matrix_units(op, dialect)) return build_attention_tiles(op, dialect, with_text);
  const compute_plugin_tensor &q = op.input(kQ), &k = op.input(kK);
  const int64_t b = q.shape[0], h = q.shape[1], n = q.shape[2], features = q.shape[3], m = k.shape[2];
  const bool is_causal = op.integer("causal", 0) != 0;
  const auto scale = static_cast<float>(attention_scale(op, features));
  KernelBuilder builder(dialect, "attention", with_text);
  builder.is_wide = true;
  builder.sign(q.dtype);
  builder.sign(features);
  builder.sign(is_causal);
  for (int i = 0; i < kOperandCount; ++i) {
    builder.pointer(Pointer::kTensor, i < kY ? i : op.input_count() + i - kY, 0);
    builder.declare(i, i == kL ? "f32" : "u16", i < kY);
  }
  const int64_t tiles = divide_up(n, kQueries);
  std::vector<Value> values;
  const auto word = [&](std::string_view name, int64_t value) {
    const int32_t number = builder.word(value);
    if (with_text) values.emplace_back(name, KernelBuilder::index_word(number));
  };
  word("n", n);
  word("m", m);
  word("heads", h);
  word("group_heads", h / k.shape[1]);
  word("tiles", tiles);
  word("scale", std::bit_cast<int32_t>(scale));
  constexpr std::string_view kNames[kOperandCount][3] = {{"q_batch", "q_head", "q_row"},
                                                         {"k_batch", "k_head", "k_row"},
                                                         {"v_batch", "v_head", "v_row"},
                                                         {"y_batch", "y_head", "y_row"},
                                                         {"l_batch", "l_head", "l_row"}};
  for (int i = 0; i < kOperandCount; ++i) {
    for (int axis = 0; axis < 3; ++axis) word(kNames[i][axis], operand(op, i).strides[axis]);
  }
  if (with_text) {
    // A tile has 512 words, whose rows have a power of two.
    const int64_t row_words = features / 8, place_words = features <= 64 ? 8 : 16, keys = 512 / place_words;
    builder.globals += cat(kWarpFunctions, kAttentionLanes, kHalfBarrier);
    builder.globals += attention_functions(q.dtype == COMPUTE_DTYPE_FLOAT16 ? "f16" : "bf16");
    values.emplace_back("is_causal", is_causal);
    values.emplace_back("queries", kQueries);
    values.emplace_back("keys", keys);
    values.emplace_back("steps", features / 16);
    values.emplace_back("columns", features / 8);
    values.emplace_back("row_words", row_words);
    values.emplace_back("place_words", place_words);
    values.emplace_back("tile_words", keys * place_words);
    builder.body = fill(kAttention, values);
  }
  BuiltKernels built;
  built.add(builder, b * h * tiles);
  return built;
}

}  // namespace compute::common
