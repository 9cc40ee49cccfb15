// SPDX-License-Identifier: Apache-2.0
#include "node.hpp"

#include <stdexcept>

namespace onnxruntime_compute {
namespace {

struct ElementType {
  int32_t onnx;
  DType dtype;
};
constexpr ElementType kElementTypes[] = {
    {1, compute::float32},      {2, compute::uint8},       {3, compute::int8},      {4, compute::uint16},
    {5, compute::int16},        {6, compute::int32},       {7, compute::int64},     {9, compute::bool_},
    {10, compute::float16},     {11, compute::float64},    {12, compute::uint32},   {13, compute::uint64},
    {14, compute::complex64},   {15, compute::complex128}, {16, compute::bfloat16}, {17, compute::float8_e4m3fn},
    {19, compute::float8_e5m2},
};

std::string text_of(const OrtNode* node, const Slot<OrtStatus*(const OrtNode*, const char**)>& getter) {
  const char* text = nullptr;
  check_ort(getter(node, &text));
  return text == nullptr ? std::string() : std::string(text);
}

using Count = Slot<OrtStatus*(const OrtNode*, size_t*)>;
using Values = Slot<OrtStatus*(const OrtNode*, const OrtValueInfo**, size_t)>;

std::vector<const OrtValueInfo*> values_of(const OrtNode* node, const Count& count_of, const Values& values_of) {
  size_t count = 0;
  check_ort(count_of(node, &count));
  std::vector<const OrtValueInfo*> infos(count, nullptr);
  if (count > 0) check_ort(values_of(node, infos.data(), count));
  return infos;
}

std::string name_of(const OrtValueInfo* info) {
  if (info == nullptr) return {};
  const char* name = nullptr;
  check_ort(ort.GetValueInfoName(info, &name));
  return name == nullptr ? std::string() : std::string(name);
}

std::vector<std::string> names_of(const std::vector<const OrtValueInfo*>& infos) {
  std::vector<std::string> names;
  for (const OrtValueInfo* info : infos) names.push_back(name_of(info));
  return names;
}

template <class T>
std::vector<T> read_list(const OrtOpAttr* attribute, int32_t type) {
  size_t size_bytes = 0;
  OrtStatus* const status = ort.ReadOpAttr(attribute, type, nullptr, 0, &size_bytes);  // refuses, and tells the size
  if (status != nullptr) ort.ReleaseStatus(status);
  std::vector<T> list(size_bytes / sizeof(T));
  if (!list.empty()) check_ort(ort.ReadOpAttr(attribute, type, list.data(), size_bytes, &size_bytes));
  return list;
}

NodeAttribute read_attribute(const OrtOpAttr* from) {
  NodeAttribute to;
  check_ort(ort.OpAttr_GetType(from, &to.type));
  size_t size_bytes = 0;
  if (to.type == kInt) {
    to.ints.resize(1);
    check_ort(ort.ReadOpAttr(from, kInt, to.ints.data(), sizeof(int64_t), &size_bytes));
  } else if (to.type == kInts) {
    to.ints = read_list<int64_t>(from, kInts);
  } else if (to.type == kFloat) {
    to.floats.resize(1);
    check_ort(ort.ReadOpAttr(from, kFloat, to.floats.data(), sizeof(float), &size_bytes));
  } else if (to.type == kFloats) {
    to.floats = read_list<float>(from, kFloats);
  } else if (to.type == kString) {
    const std::vector<char> text = read_list<char>(from, kString);
    to.text.assign(text.begin(), text.end());
    while (!to.text.empty() && to.text.back() == '\0') to.text.pop_back();
  } else if (to.type == kStrings) {
    to.texts.emplace_back();
    for (const char character : read_list<char>(from, kStrings)) {  // each ends with a NUL
      character == '\0' ? static_cast<void>(to.texts.emplace_back()) : to.texts.back().push_back(character);
    }
    if (to.texts.back().empty()) to.texts.pop_back();
  } else if (to.type == kTensor) {
    OrtValue* value = nullptr;
    check_ort(ort.OpAttr_GetTensorAttributeAsOrtValue(from, &value));
    try {
      if (value != nullptr && tensor_facts(value).dtype != DType()) to.tensor = host_copy(value);
    } catch (...) {
      ort.ReleaseValue(value);
      throw;
    }
    if (value != nullptr) ort.ReleaseValue(value);
  }
  return to;
}

TensorFacts facts_of(const OrtTensorTypeAndShapeInfo* info) {
  TensorFacts facts;
  int32_t type = 0;
  check_ort(ort.GetTensorElementType(info, &type));
  facts.dtype = dtype_of_onnx(type);
  size_t rank = 0;
  check_ort(ort.GetDimensionsCount(info, &rank));
  facts.shape.resize(rank);
  check_ort(ort.GetDimensions(info, facts.shape.data(), rank));
  return facts;
}

}  // namespace

DType dtype_of_onnx(int32_t type) {
  for (const ElementType& one : kElementTypes) {
    if (one.onnx == type) return one.dtype;
  }
  return {};
}

bool is_real(DType dtype) {
  return dtype == compute::float32 || dtype == compute::float64 || dtype == compute::float16 ||
         dtype == compute::bfloat16;
}

DType bits_of(int64_t element_size) {
  switch (element_size) {
    case 1:
      return compute::uint8;
    case 2:
      return compute::uint16;
    case 4:
      return compute::uint32;
    default:
      return compute::uint64;
  }
}

TensorFacts tensor_facts(const OrtValue* value) {
  OrtTensorTypeAndShapeInfo* info = nullptr;
  check_ort(ort.GetTensorTypeAndShape(value, &info));
  try {
    TensorFacts facts = facts_of(info);
    ort.ReleaseTensorTypeAndShapeInfo(info);
    return facts;
  } catch (...) {
    ort.ReleaseTensorTypeAndShapeInfo(info);
    throw;
  }
}

Tensor host_copy(const OrtValue* value) {
  static const compute::Device cpu = compute::Device::open("cpu");
  const TensorFacts facts = tensor_facts(value);
  const void* data = nullptr;
  check_ort(ort.GetTensorData(value, &data));
  compute_tensor* made = nullptr;
  compute::check(compute_tensor_from_host(cpu.get(), facts.dtype.id(), static_cast<int32_t>(facts.shape.size()),
                                          facts.shape.data(), data, &made));
  return Tensor(made);
}

int Graph::number(const OrtValueInfo* info) {
  const std::string name = name_of(info);
  if (name.empty()) return -1;
  const auto [place, is_new] = numbers.try_emplace(name, static_cast<int>(values.size()));
  if (!is_new) return place->second;
  ValueFacts& facts = values.emplace_back();
  facts.name = name;
  facts.info = info;
  const OrtTypeInfo* type = nullptr;
  check_ort(ort.GetValueInfoTypeInfo(info, &type));
  if (type != nullptr) {
    int32_t kind = 0;
    check_ort(ort.GetOnnxTypeFromTypeInfo(type, &kind));
    const OrtTensorTypeAndShapeInfo* tensor = nullptr;
    if (kind == kTensorType) check_ort(ort.CastTypeInfoToTensorInfo(type, &tensor));
    if (tensor != nullptr) {
      TensorFacts known = facts_of(tensor);
      facts.dtype = known.dtype;
      // A shape that is not known is reported as one without extents, as a scalar's is.
      if (!known.shape.empty()) facts.shape = std::move(known.shape);
    }
  }
  check_ort(ort.ValueInfo_IsConstantInitializer(info, &facts.is_initializer));
  return place->second;
}

namespace {

std::vector<std::shared_ptr<Graph>> read_branches(const OrtNode* node) {
  size_t count = 0;
  check_ort(ort.Node_GetNumSubgraphs(node, &count));
  std::vector<const OrtGraph*> graphs(count, nullptr);
  std::vector<const char*> names(count, nullptr);
  if (count > 0) check_ort(ort.Node_GetSubgraphs(node, graphs.data(), count, names.data()));
  std::vector<std::shared_ptr<Graph>> branches(2);
  for (size_t i = 0; i < count; ++i) {
    auto branch = std::make_shared<Graph>(read_graph(graphs[i]));
    size_t outputs = 0;
    check_ort(ort.Graph_GetNumOutputs(graphs[i], &outputs));
    std::vector<const OrtValueInfo*> infos(outputs, nullptr);
    if (outputs > 0) check_ort(ort.Graph_GetOutputs(graphs[i], infos.data(), outputs));
    for (const OrtValueInfo* info : infos) branch->outputs.push_back(branch->number(info));
    branches[std::string(names[i]) == "then_branch" ? 0 : 1] = std::move(branch);
  }
  if (branches[0] == nullptr || branches[1] == nullptr) branches.clear();
  return branches;
}

}  // namespace

std::string title_of(const OrtNode* node) { return text_of(node, ort.Node_GetName); }
std::string type_of(const OrtNode* node) { return text_of(node, ort.Node_GetOperatorType); }

Graph read_graph(const OrtGraph* graph) {
  Graph read;
  size_t count = 0;
  check_ort(ort.Graph_GetNumNodes(graph, &count));
  std::vector<const OrtNode*> nodes(count);
  if (count > 0) check_ort(ort.Graph_GetNodes(graph, nodes.data(), count));
  for (const OrtNode* from : nodes) {
    Node& node = read.nodes.emplace_back();
    node.original = from;
    node.type = type_of(from);
    node.domain = text_of(from, ort.Node_GetDomain);
    if (node.domain == "ai.onnx") node.domain.clear();
    node.name = text_of(from, ort.Node_GetName);
    check_ort(ort.Node_GetSinceVersion(from, &node.version));
    for (const OrtValueInfo* info : values_of(from, ort.Node_GetNumInputs, ort.Node_GetInputs)) {
      node.inputs.push_back(read.number(info));
    }
    for (const OrtValueInfo* info : values_of(from, ort.Node_GetNumImplicitInputs, ort.Node_GetImplicitInputs)) {
      node.implicit_inputs.push_back(read.number(info));
    }
    for (const OrtValueInfo* info : values_of(from, ort.Node_GetNumOutputs, ort.Node_GetOutputs)) {
      node.outputs.push_back(read.number(info));
    }
    if (node.type == "If" && node.domain.empty()) node.branches = read_branches(from);
    size_t attribute_count = 0;
    check_ort(ort.Node_GetNumAttributes(from, &attribute_count));
    std::vector<const OrtOpAttr*> attributes(attribute_count);
    if (attribute_count > 0) check_ort(ort.Node_GetAttributes(from, attributes.data(), attribute_count));
    for (const OrtOpAttr* attribute : attributes) {
      const char* key = nullptr;
      check_ort(ort.OpAttr_GetName(attribute, &key));
      int32_t type = kUndefined;
      check_ort(ort.OpAttr_GetType(attribute, &type));
      if (type == kGraph) {
        node.attributes[key].type = kGraph;
      } else {
        node.attributes[key] = read_attribute(attribute);
      }
    }
  }
  return read;
}

std::vector<std::string> input_names(const OrtNode* node) {
  return names_of(values_of(node, ort.Node_GetNumInputs, ort.Node_GetInputs));
}
std::vector<std::string> output_names(const OrtNode* node) {
  return names_of(values_of(node, ort.Node_GetNumOutputs, ort.Node_GetOutputs));
}

}  // namespace onnxruntime_compute
