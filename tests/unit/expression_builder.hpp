// SPDX-License-Identifier: Apache-2.0
// Expressions as core gives them to plugins, made of nodes.
#pragma once

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include <compute/plugin.h>

namespace compute {

/// The digest is made of the expression's own nodes.
class ExpressionBuilder {
 public:
  int32_t input(int32_t index, compute_dtype dtype) {
    inputs_ = std::max(inputs_, index + 1);
    return add({COMPUTE_PLUGIN_NODE_INPUT, dtype, index, 0, 0, {}});
  }
  int32_t scalar(int32_t index, compute_dtype dtype) {
    scalars_ = std::max(scalars_, index + 1);
    return add({COMPUTE_PLUGIN_NODE_SCALAR, dtype, index, 0, 0, {}});
  }
  int32_t index(int32_t axis, compute_dtype dtype = COMPUTE_DTYPE_INT64) {
    return add({COMPUTE_PLUGIN_NODE_INDEX, dtype, axis, 0, 0, {}});
  }
  template <class T>
  int32_t constant(T value, compute_dtype dtype) {
    compute_plugin_node node{COMPUTE_PLUGIN_NODE_CONSTANT, dtype, 0, 0, 0, {}};
    std::memcpy(node.bits, &value, sizeof value);
    return add(node);
  }
  int32_t call(int32_t intrinsic, compute_dtype dtype, const std::vector<int32_t>& operands) {
    const auto count = static_cast<int32_t>(operands.size());
    const auto first = static_cast<int64_t>(operands_.size());
    operands_.insert(operands_.end(), operands.begin(), operands.end());
    return add({COMPUTE_PLUGIN_NODE_CALL, dtype, intrinsic, count, first, {}});
  }

  /// Valid until the next change of this object.
  const compute_plugin_expression* view(std::vector<int32_t> outputs) {
    outputs_ = std::move(outputs);
    view_ = {};
    view_.struct_size = sizeof view_;
    view_.node_count = static_cast<int32_t>(nodes_.size());
    view_.input_count = inputs_;
    view_.scalar_count = scalars_;
    view_.output_count = static_cast<int32_t>(outputs_.size());
    view_.nodes = nodes_.data();
    view_.operands = operands_.data();
    view_.operand_total = static_cast<int64_t>(operands_.size());
    view_.outputs = outputs_.data();
    uint64_t digest[2] = {14695981039346656037u, 1099511628211u};
    const auto mix = [&](int64_t value) {
      digest[0] = (digest[0] ^ static_cast<uint64_t>(value)) * 1099511628211u;
      digest[1] = (digest[1] + digest[0]) * 31;
    };
    for (const compute_plugin_node& node : nodes_) {
      mix(node.kind);
      mix(node.dtype);
      mix(node.value);
      int64_t words[sizeof node.bits / sizeof(int64_t)];
      std::memcpy(words, node.bits, sizeof node.bits);
      for (const int64_t word : words) mix(word);
    }
    for (const int32_t operand : operands_) mix(operand);
    for (const int32_t output : outputs_) mix(output);
    std::memcpy(view_.digest, digest, sizeof digest);
    return &view_;
  }

 private:
  int32_t add(const compute_plugin_node& node) {
    nodes_.push_back(node);
    return static_cast<int32_t>(nodes_.size()) - 1;
  }

  std::vector<compute_plugin_node> nodes_;
  std::vector<int32_t> operands_, outputs_;
  int32_t inputs_ = 0, scalars_ = 0;
  compute_plugin_expression view_{};
};

}  // namespace compute
