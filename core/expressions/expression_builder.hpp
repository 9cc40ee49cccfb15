// SPDX-License-Identifier: Apache-2.0
// Makes canonical expressions node by node.
#pragma once

#include <compute/plugin.h>

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "core/expressions/expression.hpp"

namespace compute {

// The data that a TypedExpression owns.
struct TypedExpressionData {
  std::vector<compute_plugin_node> nodes;
  std::vector<int32_t> operands;
  std::vector<int32_t> outputs;
  std::vector<ScalarSlot> scalars;
  std::vector<int32_t> input_leaves;
  compute_plugin_expression view{};
};

// Equal nodes are made once, operations without effect are omitted, and constants are converted here. Nodes are
// numbered in the order of creation. finish() sorts them into the canonical order: inputs, scalars and indices by
// number, then the rest in order of creation.
class ExpressionBuilder {
 public:
  int32_t input(int32_t index, compute_dtype dtype);
  int32_t scalar(ScalarSlot slot) { return scalar(slot, slot.dtype); }
  int32_t scalar(ScalarSlot slot, compute_dtype dtype);  // whose bits are read as `dtype`
  int32_t index(int32_t axis);                           // int64
  int32_t constant(const ScalarBits& bits, compute_dtype dtype);
  int32_t convert(int32_t node, compute_dtype dtype);  // not from complex to real
  int32_t bitcast(int32_t node, compute_dtype dtype);
  // The operands have dtypes that the intrinsic supports; the dtype of the result follows from them.
  int32_t call(int32_t intrinsic, std::span<const int32_t> operands);
  // The same, also of convert and bitcast, to `dtype`.
  int32_t any_call(int32_t intrinsic, std::span<const int32_t> operands, compute_dtype dtype);

  // States that a node that is computed from the bits of `origin` has its gradient.
  void derive_as(int32_t node, int32_t origin) { origins_[node] = origin; }
  int32_t origin(int32_t node) const {  // -1: none was stated
    const auto found = origins_.find(node);
    return found == origins_.end() ? -1 : found->second;
  }

  size_t size() const { return nodes_.size(); }
  int32_t kind(int32_t node) const { return at(node).kind; }
  int32_t value(int32_t node) const { return at(node).value; }
  std::vector<int32_t> operands(int32_t node) const {
    return {at(node).operands, at(node).operands + at(node).operand_count};
  }
  compute_dtype dtype(int32_t node) const { return nodes_[static_cast<size_t>(node)].dtype; }

  // `input_leaves[i]` is the leaf of INPUT i.
  TypedExpression finish(std::span<const int32_t> outputs, std::vector<int32_t> input_leaves) const;

 private:
  struct Node {
    int32_t kind;
    compute_dtype dtype;
    int32_t value;
    int32_t operands[3];
    int32_t operand_count;
    ScalarBits bits;
    std::tuple<int32_t, compute_dtype, int32_t, int32_t, int32_t, int32_t, uint64_t, uint64_t> key() const;
  };

  const Node& at(int32_t node) const { return nodes_[static_cast<size_t>(node)]; }
  int32_t add(Node node);

  std::vector<Node> nodes_;
  std::vector<ScalarSlot> slots_;
  std::map<decltype(Node{}.key()), int32_t> known_;
  std::map<int32_t, int32_t> origins_;
};

// Copies an expression: leaves get the dtype that `dtype_of` gives for theirs, and `call_of` makes the copy of a call
// from copies of its operands.
TypedExpression rewrite(
    const TypedExpression& expression, const std::function<compute_dtype(compute_dtype)>& dtype_of,
    const std::function<int32_t(ExpressionBuilder&, const compute_plugin_node&, const std::vector<int32_t>&)>& call_of);

// Whether `to` can represent every value of `from`, so that an intermediate conversion to it changes nothing.
bool converts_exactly(compute_dtype from, compute_dtype to) noexcept;

}  // namespace compute
