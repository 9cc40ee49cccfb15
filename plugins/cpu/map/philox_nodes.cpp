// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/map/philox_nodes.hpp"

#include <algorithm>
#include <cstring>

namespace compute::cpu {
namespace {

// Expressions have each call once, and the operands of sums and products in ascending order.
class Search {
 public:
  explicit Search(const compute_plugin_expression& expression)
      : expression_(expression), seen_(expression.node_count, false) {}

  /// The node of a call, or -1.
  int32_t call(int32_t intrinsic, compute_dtype dtype, int32_t x, int32_t y) {
    if (x < 0 || y < 0) return -1;
    for (int32_t i = std::max(x, y) + 1; i < expression_.node_count; ++i) {
      const auto [a, b] = operands(i);
      if (is_call(i, intrinsic, dtype) && ((a == x && b == y) || (a == y && b == x))) return mark(i);
    }
    return -1;
  }
  int32_t word(int32_t intrinsic, int32_t x, int32_t y) { return call(intrinsic, COMPUTE_DTYPE_UINT32, x, y); }

  /// The node of a constant of uint32, or -1.
  int32_t constant(uint32_t value) const {
    for (int32_t i = 0; i < expression_.node_count; ++i) {
      const compute_plugin_node& node = expression_.nodes[i];
      if (node.kind == COMPUTE_PLUGIN_NODE_CONSTANT && node.dtype == COMPUTE_DTYPE_UINT32 &&
          std::memcmp(node.bits, &value, sizeof value) == 0)
        return i;
    }
    return -1;
  }

  /// The first node x ^ x of a uint32, or -1.
  int32_t zero() {
    for (int32_t i = 0; i < expression_.node_count; ++i)
      if (is_call(i, COMPUTE_PLUGIN_INTRINSIC_BIT_XOR, COMPUTE_DTYPE_UINT32) && operands(i).first == operands(i).second)
        return mark(i);
    return -1;
  }

  /// The other operand of the first node x ^ y, or -1.
  int32_t other_of(int32_t x) {
    for (int32_t i = x + 1; x >= 0 && i < expression_.node_count; ++i) {
      const auto [a, b] = operands(i);
      if (is_call(i, COMPUTE_PLUGIN_INTRINSIC_BIT_XOR, COMPUTE_DTYPE_UINT32) && (a == x || b == x))
        return a == x ? b : a;
    }
    return -1;
  }

  /// What is converted to the uint32 of node i, or -1.
  int32_t converted(int32_t i) {
    if (i < 0 || !is_call(i, COMPUTE_PLUGIN_INTRINSIC_CONVERT, COMPUTE_DTYPE_UINT32)) return -1;
    const int32_t from = operands(mark(i)).first;
    return expression_.nodes[from].dtype == COMPUTE_DTYPE_INT64 ? from : -1;
  }

  /// Whether node i is the upper half of x.
  bool is_upper_half(int32_t i, int32_t x) {
    if (i < 0 || !is_call(i, COMPUTE_PLUGIN_INTRINSIC_SHR, COMPUTE_DTYPE_INT64) || operands(i).first != x) return false;
    const compute_plugin_node& count = expression_.nodes[operands(i).second];
    const int64_t half = 32;
    mark(i);
    return count.kind == COMPUTE_PLUGIN_NODE_CONSTANT && std::memcmp(count.bits, &half, sizeof half) == 0;
  }

  const std::vector<bool>& seen() const { return seen_; }

 private:
  bool is_call(int32_t i, int32_t intrinsic, compute_dtype dtype) const {
    const compute_plugin_node& node = expression_.nodes[i];
    return node.kind == COMPUTE_PLUGIN_NODE_CALL && node.value == intrinsic && node.dtype == dtype;
  }
  std::pair<int32_t, int32_t> operands(int32_t i) const {
    const compute_plugin_node& node = expression_.nodes[i];
    const int32_t* const first = expression_.operands + node.first_operand;
    if (node.kind != COMPUTE_PLUGIN_NODE_CALL) return {-1, -1};
    return {first[0], node.operand_count > 1 ? first[1] : -1};
  }
  int32_t mark(int32_t i) {
    seen_[i] = true;
    return i;
  }

  const compute_plugin_expression& expression_;
  std::vector<bool> seen_;
};

// Whether only the words are read by other nodes, or are results.
bool is_closed(const compute_plugin_expression& expression, const PhiloxNodes& found) {
  const auto is_free = [&](int32_t node) {
    return !found.replaced[node] || std::find(found.words.begin(), found.words.end(), node) != found.words.end();
  };
  for (int32_t i = 0; i < expression.node_count; ++i) {
    const compute_plugin_node& node = expression.nodes[i];
    if (found.replaced[i] || node.kind != COMPUTE_PLUGIN_NODE_CALL) continue;
    const int32_t* const operands = expression.operands + node.first_operand;
    if (!std::all_of(operands, operands + node.operand_count, is_free)) return false;
  }
  return std::all_of(expression.outputs, expression.outputs + expression.output_count, is_free);
}

}  // namespace

std::optional<PhiloxNodes> find_philox(const compute_plugin_expression& expression) {
  constexpr int32_t kXor = COMPUTE_PLUGIN_INTRINSIC_BIT_XOR, kMul = COMPUTE_PLUGIN_INTRINSIC_MUL,
                    kMulHigh = COMPUTE_PLUGIN_INTRINSIC_MUL_HIGH, kAdd = COMPUTE_PLUGIN_INTRINSIC_ADD;
  Search search(expression);
  const int32_t first = search.constant(0xD2511F53), second = search.constant(0xCD9E8D57);
  const int32_t steps[2] = {search.constant(0x9E3779B9), search.constant(0xBB67AE85)};
  if (first < 0 || second < 0 || steps[0] < 0 || steps[1] < 0) return std::nullopt;

  PhiloxNodes found;
  const int32_t zero = search.zero(), low = zero < 0 ? -1 : expression.operands[expression.nodes[zero].first_operand];
  const int32_t high = search.other_of(search.word(kMulHigh, zero, second));
  found.counter = search.converted(low);
  if (found.counter < 0 || !search.is_upper_half(search.converted(high), found.counter)) return std::nullopt;
  found.key[0] = search.other_of(search.word(kXor, search.word(kMulHigh, zero, second), high));
  found.key[1] = search.other_of(search.word(kXor, search.word(kMulHigh, low, first), zero));

  if (low < found.counter || low < found.key[0] || low < found.key[1]) return std::nullopt;

  std::array<int32_t, 4> x = {low, high, zero, zero};
  std::array<int32_t, 2> key = found.key;
  for (int round = 0; round < 10; ++round) {
    if (std::any_of(x.begin(), x.end(), [](int32_t node) { return node < 0; })) return std::nullopt;
    x = {search.word(kXor, search.word(kXor, search.word(kMulHigh, x[2], second), x[1]), key[0]),
         search.word(kMul, x[2], second),
         search.word(kXor, search.word(kXor, search.word(kMulHigh, x[0], first), x[3]), key[1]),
         search.word(kMul, x[0], first)};
    for (int i = 0; i < 2 && round < 9; ++i) key[i] = search.word(kAdd, key[i], steps[i]);
  }
  found.words = x;
  found.replaced = search.seen();
  return is_closed(expression, found) ? std::optional(found) : std::nullopt;
}

}  // namespace compute::cpu
