// SPDX-License-Identifier: Apache-2.0
// A graph of ONNX Runtime as this library reads it: names become numbers, attributes are copied.
#pragma once

#include <compute/compute.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "onnxruntime_api.hpp"

namespace onnxruntime_compute {

using compute::DType;
using compute::Shape;
using compute::Tensor;

struct OpEntry;
struct Graph;

/// The dtype of an element type of ONNX; none if there is no such dtype.
DType dtype_of_onnx(int32_t type);
bool is_real(DType dtype);
/// The unsigned dtype of elements of a size.
DType bits_of(int64_t element_size);

struct NodeAttribute {
  int32_t type = kUndefined;
  std::vector<int64_t> ints;  // kInt has one
  std::vector<float> floats;
  std::string text;
  std::vector<std::string> texts;
  Tensor tensor;  // on the host; undefined for element types without a dtype
};

struct Node {
  std::string type;
  std::string domain;
  std::string name;
  int version = 0;  // since which opset the op is defined so
  std::map<std::string, NodeAttribute> attributes;
  std::vector<int> inputs;           // numbers of values; -1: left out
  std::vector<int> implicit_inputs;  // of the graphs inside a node
  std::vector<int> outputs;
  std::vector<std::shared_ptr<Graph>> branches;  // of an If: for true, for false
  const OpEntry* op = nullptr;
  const OrtNode* original = nullptr;

  [[nodiscard]] bool has_input(size_t i) const { return i < inputs.size() && inputs[i] >= 0; }
  [[nodiscard]] bool has_attribute(const std::string& key) const { return find(key) != nullptr; }
  [[nodiscard]] bool has_output(size_t i) const { return i < outputs.size() && outputs[i] >= 0; }
  [[nodiscard]] const NodeAttribute* find(const std::string& key) const {
    const auto found = attributes.find(key);
    return found == attributes.end() ? nullptr : &found->second;
  }
  [[nodiscard]] int64_t integer(const std::string& key, int64_t otherwise) const {
    const NodeAttribute* const found = find(key);
    return found == nullptr || found->ints.empty() ? otherwise : found->ints[0];
  }
  [[nodiscard]] double real(const std::string& key, double otherwise) const {
    const NodeAttribute* const found = find(key);
    return found == nullptr || found->floats.empty() ? otherwise : static_cast<double>(found->floats[0]);
  }
  [[nodiscard]] std::string text(const std::string& key, const std::string& otherwise = "") const {
    const NodeAttribute* const found = find(key);
    return found == nullptr ? otherwise : found->text;
  }
  [[nodiscard]] std::vector<int64_t> integers(const std::string& key) const {
    const NodeAttribute* const found = find(key);
    return found == nullptr ? std::vector<int64_t>() : found->ints;
  }
};

/// What is known of a value before it is computed.
struct ValueFacts {
  std::string name;
  DType dtype;                 // none: no tensor, or an element type without a dtype
  std::optional<Shape> shape;  // -1 for extents that are not known
  bool is_initializer = false;
  const OrtValueInfo* info = nullptr;
};

struct Graph {
  std::vector<Node> nodes;  // in topological order
  std::vector<ValueFacts> values;
  std::map<std::string, int> numbers;
  std::vector<int> outputs;  // of a branch

  /// The number of a value; it is added if it is new.
  int number(const OrtValueInfo* info);
};

/// Reads all nodes of `graph`, and of the branches of each If.
Graph read_graph(const OrtGraph* graph);

std::string type_of(const OrtNode* node);
std::string title_of(const OrtNode* node);

/// Names of the inputs or the outputs of a fused node.
std::vector<std::string> input_names(const OrtNode* node);
std::vector<std::string> output_names(const OrtNode* node);

struct TensorFacts {
  DType dtype;
  Shape shape;
};
TensorFacts tensor_facts(const OrtValue* value);

/// A copy of a value in host memory.
Tensor host_copy(const OrtValue* value);

}  // namespace onnxruntime_compute
