// SPDX-License-Identifier: Apache-2.0
// Which ops of ONNX are computed, and how.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace.hpp"

namespace onnxruntime_compute {

/// A node before it is claimed.
class Claim {
 public:
  Claim(const Graph& graph, const Node& node) : graph_(graph), node(node) {}

 private:
  const Graph& graph_;

 public:
  const Node& node;

  [[nodiscard]] DType dtype(size_t input) const {
    return node.has_input(input) ? graph_.values[static_cast<size_t>(node.inputs[input])].dtype : DType();
  }
  [[nodiscard]] DType output_dtype(size_t output) const {
    return node.has_output(output) ? graph_.values[static_cast<size_t>(node.outputs[output])].dtype : DType();
  }
  /// The rank of an input; -1 if it is not known.
  [[nodiscard]] int64_t rank(size_t input) const {
    if (!node.has_input(input)) return -1;
    const auto& shape = graph_.values[static_cast<size_t>(node.inputs[input])].shape;
    return shape ? static_cast<int64_t>(shape->size()) : -1;
  }
};

/// A node while it is traced.
class Call {
 public:
  Call(Tracer& tracer, const Node& node, std::vector<Value>& values) : t(tracer), node(node), values_(values) {}

  Tracer& t;
  const Node& node;

  [[nodiscard]] bool has(size_t input) const { return node.has_input(input); }
  [[nodiscard]] size_t count() const { return node.inputs.size(); }
  /// An input; an absent one is a value that is not present.
  [[nodiscard]] const Value& in(size_t input) const {
    static const Value absent;
    return has(input) ? values_[static_cast<size_t>(node.inputs[input])] : absent;
  }
  [[nodiscard]] std::vector<Value> all() const {
    std::vector<Value> list;
    for (size_t i = 0; i < node.inputs.size(); ++i) list.push_back(in(i));
    return list;
  }
  void out(size_t output, Value value) {
    if (node.has_output(output)) values_[static_cast<size_t>(node.outputs[output])] = std::move(value);
  }

  /// Integers that an attribute has, or an input where the op has it there; `is_given` tells whether either is there.
  [[nodiscard]] std::vector<int64_t> integers(const std::string& attribute, size_t input, bool* is_given = nullptr) {
    const bool here = has(input), there = node.has_attribute(attribute);
    if (is_given != nullptr) *is_given = here || there;
    return here ? t.to_integers(in(input)) : node.integers(attribute);
  }
  /// An axis that counts from the end if it is negative.
  [[nodiscard]] static int64_t axis_of(int64_t axis, int64_t rank) { return axis < 0 ? axis + rank : axis; }

 private:
  std::vector<Value>& values_;
};

/// Sets of dtypes.
enum DTypes : uint32_t { kReal = 1, kIntegers = 2, kBool = 4, kNumbers = 3, kAny = 7, kFloat8 = 8, kStored = 15 };
bool is_in(DType dtype, uint32_t dtypes);
bool is_unsigned(DType dtype);
/// Stored alone: casts read and write it.
bool is_float8(DType dtype);

struct OpEntry {
  const char* name;
  int since;  // of the op's definitions, as in Node::version
  int until;
  uint32_t dtypes;                             // of the first input
  uint32_t value_inputs;                       // bits: inputs whose elements a trace reads
  std::string (*refusal)(const Claim& claim);  // why it is not computed, or ""; NULL: always
  void (*run)(Call& call);                     // NULL: of If, whose branches are traced
  bool is_shape = false;                       // it reads no elements of its inputs
};

inline constexpr int kNewest = 1000;

/// The op of a node, or NULL; then `*reason` says why it is not computed.
const OpEntry* find_op(const Claim& claim, const compute::Device& device, std::string* reason);

/// Names of all ops in the table.
std::vector<std::string> op_names();

void add_elementwise(std::vector<OpEntry>& table);
void add_arrays(std::vector<OpEntry>& table);
void add_indices(std::vector<OpEntry>& table);
void add_reductions(std::vector<OpEntry>& table);
void add_networks(std::vector<OpEntry>& table);
void add_resampling(std::vector<OpEntry>& table);
void add_attention(std::vector<OpEntry>& table);
void add_signals(std::vector<OpEntry>& table);
void add_sampling(std::vector<OpEntry>& table);

}  // namespace onnxruntime_compute
