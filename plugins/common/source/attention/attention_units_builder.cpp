// SPDX-License-Identifier: Apache-2.0
#include "plugins/common/source/attention/attention_units_builder.hpp"

#include <bit>

namespace compute::common {
namespace {

// The positions of a group and of an item. An item has the results of rows row_id and row_id + 8. Four neighbours share
// a row.
constexpr std::string_view kPlace = R"(
  const int id = COMPUTE_LOCAL_ID(0), lane = id % 32, half_row = id / 128 * 64, pair = lane % 4 * 2;
  const int row_id = half_row + id / 32 % 4 * 16 + lane / 4;
  const u32 address = (u32)__cvta_generic_to_shared(compute_shared);
$// Query i sees keys up to i + reach; all, unless it is causal.
  const ix n = $n, m = $m, reach = $reach, tiles = $tiles, heads = $heads, group_heads = $group_heads;
  const f32 scale = COMPUTE_AS_F32((i32)$scale), to_power_of_2 = scale * 1.4426950408889634f;
  const f32 infinity = COMPUTE_AS_F32(0x7f800000);
  const ix unit = (ix)COMPUTE_GROUP_ID(0), place = unit / tiles % heads, batch = unit / tiles / heads;
$// The longest first, where rows see a part of the columns.
$if is_of_keys
  const ix first = unit % tiles * $rows, shared_head = place;
$else
  const ix first = (tiles - 1 - unit % tiles) * $rows, head = place, shared_head = head / group_heads;
$end
)";

// What an item's $target has for pairs of rows and columns that do not see each other.
constexpr std::string_view kMask = R"(
#pragma unroll
for (int i = 0; i < $tile / 2; ++i) {
  const ix row = first + row_id + i % 4 / 2 * 8, column = begin + i / 4 * 8 + pair + i % 2;
  if ($is_hidden) $target[i] = $value;
}
)";

// The weights of a tile's scores s, without their common factor, and the factor for the sums so far.
constexpr std::string_view kWeights = R"(
if ($has_edge) {
  $hide
}
#pragma unroll
for (int h = 0; h < 2; ++h) {
  f32 most = greatest[h];
#pragma unroll
  for (int j = 0; j < $tile / 8; ++j) most = fmaxf(most, fmaxf(s[j * 4 + h * 2], s[j * 4 + h * 2 + 1]));
  most = fmaxf(most, compute_of_lanes(most, 1));
  most = fmaxf(most, compute_of_lanes(most, 2));
  const f32 base = most == -infinity ? 0.0f : most * to_power_of_2;
  kept[h] = compute_exp2(greatest[h] * to_power_of_2 - base);
  greatest[h] = most;
  f32 sum = 0.0f;
#pragma unroll
  for (int j = 0; j < $tile / 8; ++j) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const f32 weight = compute_exp2(fma(s[j * 4 + h * 2 + e], to_power_of_2, -base));
      s[j * 4 + h * 2 + e] = weight;
      sum += weight;
    }
  }
  total[h] = fma(total[h], kept[h], sum);
}
)";

const char* suffix_of(AttentionPart part) {
  return part == AttentionPart::kForward ? "" : part == AttentionPart::kQueries ? "_dq" : "_dk_dv";
}

int32_t first_of(const Op& op) { return op.name() == "attention" ? 0 : 1; }

float scale_of(const Op& op) { return static_cast<float>(attention_scale(op, op.input(first_of(op)).shape[3])); }

}  // namespace

AttentionUnitsBuilder::AttentionUnitsBuilder(const Op& op, const Dialect& dialect, Part part, std::string_view name,
                                             const char* storage, bool with_text)
    : op_(op),
      part_(part),
      builder_(dialect, cat(name, suffix_of(part)), with_text),
      q_(op.input(first_of(op))),
      k_(op.input(first_of(op) + 1)),
      features_(q_.shape[3]) {
  builder_.is_wide = is_wide_attention(op_, first_of(op_));
  add_operands(storage);
}

int64_t AttentionUnitsBuilder::tiles() const { return divide_up(is_of_keys() ? k_.shape[2] : q_.shape[2], kUnitRows); }

void AttentionUnitsBuilder::build(BuiltKernels& built) {
  prepare();
  add_words();
  if (builder_.with_text()) {
    set("is_of_keys", is_of_keys() ? "1" : "");
    set("features", features_);
    set("rows", kUnitRows);
    set("group", kUnitGroup);
    set("tile", tile());
    if (!is_of_keys())
      set_mask("begin + $tile > m || begin + $tile - 1 > first + half_row + reach",
               "column >= m || column > row + reach");
    if (part_ == Part::kForward) set("weigh", filled(kWeights));
    add_text();
  }
  built.add(builder_, q_.shape[0] * heads() * tiles());
}

// ---- parameters

void AttentionUnitsBuilder::add_operand(Operand operand, int32_t index, const char* storage) {
  const bool is_const = index < op_.input_count();
  const compute_plugin_tensor& tensor = op_.tensor(index);
  numbers_[operand] = builder_.pointer(Pointer::kTensor, index, 0);
  builder_.declare(numbers_[operand], operand == kL ? "f32" : storage, is_const);
  for (int axis = 0; axis < 3; ++axis) strides_[operand][axis] = tensor.strides[axis];
}

int32_t AttentionUnitsBuilder::add_workspace(const char* storage, int64_t offset, bool is_const) {
  const int32_t number = builder_.pointer(Pointer::kWorkspace, 0, offset);
  builder_.declare(number, storage, is_const);
  return number;
}

void AttentionUnitsBuilder::add_operands(const char* storage) {
  const int32_t first = first_of(op_), outputs = op_.input_count();
  add_operand(kQ, first, storage);
  add_operand(kK, first + 1, storage);
  add_operand(kV, first + 2, storage);
  if (part_ == Part::kForward) {
    add_operand(kFirst, outputs, storage);
    add_operand(kL, outputs + 1, storage);
    return;
  }
  add_operand(kDy, 0, storage);
  add_operand(kL, 5, storage);
  if (part_ == Part::kQueries) add_operand(kY, 4, storage);
  add_operand(kFirst, part_ == Part::kQueries ? outputs : outputs + 1, storage);
  if (is_of_keys()) add_operand(kSecond, outputs + 2, storage);
  numbers_[kDelta] = add_workspace("f32", 0, is_of_keys());
  strides_[kDelta][0] = q_.shape[1] * q_.shape[2];
  strides_[kDelta][1] = q_.shape[2];
  strides_[kDelta][2] = 1;
}

void AttentionUnitsBuilder::word(std::string_view name, int64_t value) {
  const int32_t number = builder_.word(value);
  if (builder_.with_text()) set(name, KernelBuilder::index_word(number));
}

void AttentionUnitsBuilder::add_words() {
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

std::string AttentionUnitsBuilder::filled(std::string_view text, const std::vector<Value>& own) const {
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

std::string AttentionUnitsBuilder::element(Operand operand, std::string_view row, std::string_view feature) const {
  const bool is_shared = operand == kK || operand == kV || (is_of_keys() && (operand == kFirst || operand == kSecond));
  const auto stride = [&](int axis) { return KernelBuilder::index_word(words_[operand][axis]); };
  return cat("x", numbers_[operand], "[batch * ", stride(0), " + ", is_shared ? "shared_head" : "head", " * ",
             stride(1), " + (", row, ") * ", stride(2), feature.empty() ? "" : " + ", feature, "]");
}

std::string AttentionUnitsBuilder::place_text() const { return filled(kPlace); }

void AttentionUnitsBuilder::set_mask(std::string_view has_edge, std::string_view is_hidden) {
  is_hidden_ = is_hidden;
  set("has_edge", filled(has_edge));
  set("hide", part_ == Part::kForward ? mask_text("s", "-infinity") : mask_text("p", "0.0f"));
}

std::string AttentionUnitsBuilder::mask_text(const char* target, const char* value) const {
  return filled(kMask, {{"target", target}, {"value", value}, {"is_hidden", is_hidden_}});
}

std::string AttentionUnitsBuilder::tile_place_text(std::string_view number) const {
  return is_of_keys() ? cat("const ix begin = start + ", number, " % per_head * ", tile(),
                            ", head = place * group_heads + ", number, " / per_head;\n")
                      : cat("const ix begin = ", number, " * ", tile(), ";\n");
}

}  // namespace compute::common
