// SPDX-License-Identifier: Apache-2.0
#include "core/expressions/expression_builder.hpp"

#include <xxhash.h>

#include <algorithm>
#include <cassert>
#include <cstring>

namespace compute {

namespace {

compute_dtype result_dtype(const IntrinsicInfo& info, compute_dtype operand) {
  switch (info.result) {
    case IntrinsicResult::kBool:
      return COMPUTE_DTYPE_BOOL;
    case IntrinsicResult::kPart:
      return real_part_dtype(operand);
    case IntrinsicResult::kPair:
      return complex_dtype(operand);
    default:
      return operand;
  }
}

void hash_int32(XXH3_state_t& state, int32_t value) { XXH3_128bits_update(&state, &value, sizeof value); }

// The layout is part of the interface: plugin.h, compute_plugin_expression.
void set_digest(TypedExpressionData& data) {
  XXH3_state_t state;
  XXH3_INITSTATE(&state);
  XXH3_128bits_reset(&state);
  hash_int32(state, static_cast<int32_t>(data.nodes.size()));
  hash_int32(state, data.view.input_count);
  hash_int32(state, data.view.scalar_count);
  hash_int32(state, static_cast<int32_t>(data.outputs.size()));
  for (const compute_plugin_node& node : data.nodes) {
    hash_int32(state, node.kind);
    hash_int32(state, node.dtype);
    hash_int32(state, node.value);
    hash_int32(state, node.operand_count);
    for (int32_t i = 0; i < node.operand_count; ++i) {
      hash_int32(state, data.operands[static_cast<size_t>(node.first_operand + i)]);
    }
    if (node.kind == COMPUTE_PLUGIN_NODE_CONSTANT) XXH3_128bits_update(&state, node.bits, sizeof node.bits);
  }
  for (const int32_t output : data.outputs) hash_int32(state, output);
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&state));
  static_assert(sizeof canonical.digest == sizeof data.view.digest);
  std::memcpy(data.view.digest, canonical.digest, sizeof canonical.digest);
}

}  // namespace

bool converts_exactly(compute_dtype from, compute_dtype to) noexcept {
  if (from == to) return true;
  // Mantissa bits of a float, value bits of an integer.
  const auto digits = [](compute_dtype dtype) {
    switch (real_part_dtype(dtype)) {
      case COMPUTE_DTYPE_BOOL:
        return 1;
      case COMPUTE_DTYPE_FLOAT16:
        return 11;
      case COMPUTE_DTYPE_BFLOAT16:
        return 8;
      case COMPUTE_DTYPE_FLOAT8_E4M3FN:
        return 4;
      case COMPUTE_DTYPE_FLOAT8_E5M2:
        return 3;
      case COMPUTE_DTYPE_FLOAT32:
        return 24;
      case COMPUTE_DTYPE_FLOAT64:
        return 53;
      default:
        return static_cast<int>(dtype_size(dtype) * 8 - (is_signed_integer(dtype) ? 1 : 0));
    }
  };
  if (is_bool(to) || !is_dtype(from) || !is_dtype(to)) return false;
  if (is_complex(from)) return is_complex(to) && digits(from) <= digits(to);
  if (is_float8(from)) return is_float(to) || is_complex(to);
  if (is_float8(to)) return is_bool(from);
  if (is_float(from)) {
    if (is_integer(to)) return false;
    // Neither half type holds the other; float32 and float64 hold both.
    return digits(to) >= 24 && digits(from) <= digits(to);
  }
  if (is_signed_integer(from) && is_unsigned_integer(to)) return false;
  // float16 ends at 65504, less than a uint16 can be; its 11 digits keep those out.
  return digits(from) <= digits(to);
}

std::tuple<int32_t, compute_dtype, int32_t, int32_t, int32_t, int32_t, uint64_t, uint64_t>
ExpressionBuilder::Node::key() const {
  uint64_t words[2];
  std::memcpy(words, bits.bits, sizeof words);
  return {kind, dtype, value, operands[0], operands[1], operands[2], words[0], words[1]};
}

int32_t ExpressionBuilder::add(Node node) {
  const auto [found, is_new] = known_.try_emplace(node.key(), static_cast<int32_t>(nodes_.size()));
  if (is_new) nodes_.push_back(node);
  return found->second;
}

int32_t ExpressionBuilder::input(int32_t index, compute_dtype dtype) {
  return add({COMPUTE_PLUGIN_NODE_INPUT, dtype, index, {-1, -1, -1}, 0, {}});
}

int32_t ExpressionBuilder::scalar(ScalarSlot slot, compute_dtype dtype) {
  const auto found = std::find(slots_.begin(), slots_.end(), slot);
  const auto number = static_cast<int32_t>(found - slots_.begin());
  if (found == slots_.end()) slots_.push_back(slot);
  return add({COMPUTE_PLUGIN_NODE_SCALAR, dtype, number, {-1, -1, -1}, 0, {}});
}

int32_t ExpressionBuilder::index(int32_t axis) {
  return add({COMPUTE_PLUGIN_NODE_INDEX, COMPUTE_DTYPE_INT64, axis, {-1, -1, -1}, 0, {}});
}

int32_t ExpressionBuilder::constant(const ScalarBits& bits, compute_dtype dtype) {
  return add({COMPUTE_PLUGIN_NODE_CONSTANT, dtype, 0, {-1, -1, -1}, 0, bits});
}

int32_t ExpressionBuilder::convert(int32_t node, compute_dtype dtype) {
  while (true) {
    const Node& from = at(node);
    if (from.dtype == dtype) return node;
    assert(!is_complex(from.dtype) || is_complex(dtype) || is_bool(dtype));
    if (from.kind == COMPUTE_PLUGIN_NODE_CONSTANT) return constant(convert_scalar(from.bits, from.dtype, dtype), dtype);
    if (from.kind != COMPUTE_PLUGIN_NODE_CALL || from.value != COMPUTE_PLUGIN_INTRINSIC_CONVERT) break;
    const compute_dtype first = this->dtype(from.operands[0]);
    // Integers wrap where floats saturate: the way through a float is shortened back to its start alone.
    const bool same_rounding = !is_integer(first) || !is_integer(dtype) || is_integer(from.dtype) || first == dtype;
    if (!converts_exactly(first, from.dtype) || !same_rounding) break;
    node = from.operands[0];
  }
  return add({COMPUTE_PLUGIN_NODE_CALL, dtype, COMPUTE_PLUGIN_INTRINSIC_CONVERT, {node, -1, -1}, 1, {}});
}

int32_t ExpressionBuilder::bitcast(int32_t node, compute_dtype dtype) {
  if (at(node).dtype == dtype) return node;
  if (at(node).kind == COMPUTE_PLUGIN_NODE_CONSTANT) return constant(at(node).bits, dtype);
  return add({COMPUTE_PLUGIN_NODE_CALL, dtype, COMPUTE_PLUGIN_INTRINSIC_BITCAST, {node, -1, -1}, 1, {}});
}

int32_t ExpressionBuilder::call(int32_t intrinsic, std::span<const int32_t> operands) {
  const IntrinsicInfo& info = *find_intrinsic(intrinsic);
  const compute_dtype operand = dtype(operands.back());
  if (is_integer(operand)) {
    switch (intrinsic) {
      case COMPUTE_PLUGIN_INTRINSIC_FLOOR:
      case COMPUTE_PLUGIN_INTRINSIC_CEIL:
      case COMPUTE_PLUGIN_INTRINSIC_TRUNC:
      case COMPUTE_PLUGIN_INTRINSIC_ROUND:
        return operands[0];
      case COMPUTE_PLUGIN_INTRINSIC_ABS:
        if (is_unsigned_integer(operand)) return operands[0];
        break;
      case COMPUTE_PLUGIN_INTRINSIC_ISNAN:
      case COMPUTE_PLUGIN_INTRINSIC_ISINF:
        return constant({}, COMPUTE_DTYPE_BOOL);
      case COMPUTE_PLUGIN_INTRINSIC_ISFINITE:
        return constant({{1}}, COMPUTE_DTYPE_BOOL);
      default:
        break;
    }
  }
  if (intrinsic == COMPUTE_PLUGIN_INTRINSIC_CONJ && !is_complex(operand)) return operands[0];
  Node node{COMPUTE_PLUGIN_NODE_CALL, result_dtype(info, operand), intrinsic, {-1, -1, -1}, info.arity, {}};
  std::copy(operands.begin(), operands.end(), node.operands);
  if (info.commutative) std::sort(node.operands, node.operands + info.arity);
  return add(node);
}

TypedExpression ExpressionBuilder::finish(std::span<const int32_t> outputs, std::vector<int32_t> input_leaves) const {
  std::vector<bool> live(nodes_.size());
  for (const int32_t output : outputs) live[static_cast<size_t>(output)] = true;
  for (size_t i = nodes_.size(); i-- > 0;) {
    if (!live[i]) continue;
    for (int32_t k = 0; k < nodes_[i].operand_count; ++k) live[static_cast<size_t>(nodes_[i].operands[k])] = true;
  }

  // Scalar slots that are in use, by leaf and dtype, take new numbers.
  std::vector<int32_t> slots;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (live[i] && nodes_[i].kind == COMPUTE_PLUGIN_NODE_SCALAR) slots.push_back(nodes_[i].value);
  }
  const auto slot_key = [&](int32_t slot) {
    const ScalarSlot& s = slots_[static_cast<size_t>(slot)];
    return std::pair(s.leaf, s.dtype);
  };
  std::sort(slots.begin(), slots.end(), [&](int32_t a, int32_t b) { return slot_key(a) < slot_key(b); });

  const auto value_of = [&](const Node& node) {
    if (node.kind != COMPUTE_PLUGIN_NODE_SCALAR) return node.value;
    return static_cast<int32_t>(std::find(slots.begin(), slots.end(), node.value) - slots.begin());
  };
  std::vector<int32_t> order;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (live[i]) order.push_back(static_cast<int32_t>(i));
  }
  const auto rank = [&](int32_t node) {
    const Node& n = at(node);
    const bool leaf = n.kind == COMPUTE_PLUGIN_NODE_INPUT || n.kind == COMPUTE_PLUGIN_NODE_SCALAR ||
                      n.kind == COMPUTE_PLUGIN_NODE_INDEX;
    return leaf ? std::pair(n.kind, value_of(n)) : std::pair(COMPUTE_PLUGIN_NODE_CALL + 1, node);
  };
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return rank(a) < rank(b); });

  auto data = std::make_shared<TypedExpressionData>();
  std::vector<int32_t> number(nodes_.size(), -1);
  for (const int32_t i : order) {
    const Node& from = at(i);
    compute_plugin_node node{};
    node.kind = from.kind;
    node.dtype = from.dtype;
    node.value = value_of(from);
    node.operand_count = from.operand_count;
    node.first_operand = static_cast<int64_t>(data->operands.size());
    std::memcpy(node.bits, from.bits.bits, sizeof node.bits);
    for (int32_t k = 0; k < from.operand_count; ++k) {
      data->operands.push_back(number[static_cast<size_t>(from.operands[k])]);
    }
    if (from.kind == COMPUTE_PLUGIN_NODE_CALL && find_intrinsic(from.value)->commutative) {
      std::sort(data->operands.end() - from.operand_count, data->operands.end());
    }
    number[static_cast<size_t>(i)] = static_cast<int32_t>(data->nodes.size());
    data->nodes.push_back(node);
  }
  for (const int32_t output : outputs) data->outputs.push_back(number[static_cast<size_t>(output)]);
  for (const int32_t slot : slots) data->scalars.push_back(slots_[static_cast<size_t>(slot)]);
  data->input_leaves = std::move(input_leaves);

  compute_plugin_expression& view = data->view;
  view.struct_size = sizeof view;
  view.struct_type = COMPUTE_PLUGIN_STRUCT_EXPRESSION;
  view.node_count = static_cast<int32_t>(data->nodes.size());
  view.input_count = static_cast<int32_t>(data->input_leaves.size());
  view.scalar_count = static_cast<int32_t>(data->scalars.size());
  view.output_count = static_cast<int32_t>(data->outputs.size());
  view.nodes = data->nodes.data();
  view.operands = data->operands.data();
  view.operand_total = static_cast<int64_t>(data->operands.size());
  view.outputs = data->outputs.data();
  set_digest(*data);
  return TypedExpression(std::move(data));
}

int32_t ExpressionBuilder::any_call(int32_t intrinsic, std::span<const int32_t> operands, compute_dtype dtype) {
  if (intrinsic == COMPUTE_PLUGIN_INTRINSIC_CONVERT) return convert(operands[0], dtype);
  if (intrinsic == COMPUTE_PLUGIN_INTRINSIC_BITCAST) return bitcast(operands[0], dtype);
  return call(intrinsic, operands);
}

TypedExpression rewrite(const TypedExpression& expression, const std::function<compute_dtype(compute_dtype)>& dtype_of,
                        const std::function<int32_t(ExpressionBuilder&, const compute_plugin_node&,
                                                    const std::vector<int32_t>&)>& call_of) {
  ExpressionBuilder builder;
  std::vector<int32_t> made;
  for (const compute_plugin_node& node : expression.nodes()) {
    std::vector<int32_t> operands;
    for (const int32_t operand : expression.operands(node)) operands.push_back(made[static_cast<size_t>(operand)]);
    const compute_dtype dtype = dtype_of(node.dtype);
    switch (node.kind) {
      case COMPUTE_PLUGIN_NODE_INPUT:
        made.push_back(builder.input(node.value, dtype));
        break;
      case COMPUTE_PLUGIN_NODE_SCALAR:
        made.push_back(builder.scalar(expression.scalars()[static_cast<size_t>(node.value)], dtype));
        break;
      case COMPUTE_PLUGIN_NODE_INDEX:
        made.push_back(builder.index(node.value));
        break;
      case COMPUTE_PLUGIN_NODE_CONSTANT:
        made.push_back(builder.constant(scalar_from_memory(node.dtype, node.bits), dtype));
        break;
      default:
        made.push_back(call_of(builder, node, operands));
    }
  }
  std::vector<int32_t> outputs;
  const compute_plugin_expression& view = expression.plugin_view();
  for (int32_t i = 0; i < view.output_count; ++i) outputs.push_back(made[static_cast<size_t>(view.outputs[i])]);
  const auto leaves = expression.input_leaves();
  return builder.finish(outputs, {leaves.begin(), leaves.end()});
}

}  // namespace compute
