// SPDX-License-Identifier: Apache-2.0
#include "plugins/cuda/cudnn_graph.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "plugins/common/driver/compiling.hpp"
#include "plugins/cuda/stream.hpp"

namespace compute::cuda {
namespace {

constexpr size_t kMostConfigurations = 16;
constexpr size_t kMostNotes = 32;

Error failure(cudnnStatus status, const char* what) {
  return Error(COMPUTE_ERROR_INTERNAL,
               std::string("cuDNN failed while ") + what + ": " + cudnn()->api.get_error_string(status), -1, status);
}

void require(cudnnStatus status, const char* what) {
  if (status != CUDNN_STATUS_SUCCESS) throw failure(status, what);
}

// The numbers of an engine's notes of one kind.
std::vector<int32_t> notes_of(const DnnDescriptor& engine, int32_t attribute, int32_t type) {
  std::array<int32_t, kMostNotes> notes{};
  int64_t count = 0;
  require(cudnn()->api.get_attribute(engine.get(), attribute, type, kMostNotes, &count, notes.data()),
          "asking for an engine's properties");
  return {notes.begin(), notes.begin() + std::clamp<int64_t>(count, 0, kMostNotes)};
}

// The numerical notes that are not named here are about results that differ from run to run, or that depend on more
// than their terms. An engine that is compiled at run time takes long to prepare.
bool is_allowed(const DnnDescriptor& configuration, const DnnLimits& limits) {
  const DnnDescriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor value = engine.get();
  int64_t count = 0;
  if (cudnn()->api.get_attribute(configuration.get(), CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                 &count, &value) != CUDNN_STATUS_SUCCESS)
    return false;
  for (const int32_t note : notes_of(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE)) {
    const bool is_harmless = note == CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP ||
                             (note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE && limits.tensor_cores) ||
                             (note == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC && !limits.same_bits);
    if (!is_harmless && (!limits.is_fast || note == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)) return false;
  }
  if (limits.runtime_compiled) return true;
  const std::vector<int32_t> behaviour = notes_of(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE);
  return std::find(behaviour.begin(), behaviour.end(), CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION) == behaviour.end();
}

// The configurations that cuDNN proposes, the best one first.
std::vector<DnnDescriptor> proposals(const DnnDescriptor& graph, int32_t mode) {
  DnnDescriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  std::vector<DnnDescriptor> configurations;
  if (!heuristic.try_finalize()) return configurations;
  std::array<cudnnBackendDescriptor, kMostConfigurations> values{};
  for (cudnnBackendDescriptor& value : values) {
    configurations.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    value = configurations.back().get();
  }
  int64_t count = 0;
  if (cudnn()->api.get_attribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                 kMostConfigurations, &count, values.data()) != CUDNN_STATUS_SUCCESS)
    count = 0;
  while (static_cast<int64_t>(configurations.size()) > count) configurations.pop_back();
  return configurations;
}

}  // namespace

DnnDescriptor::DnnDescriptor(int32_t type) {
  require(cudnn()->api.create_descriptor(type, &value_), "creating a descriptor");
}

DnnDescriptor::~DnnDescriptor() {
  if (value_ != nullptr) cudnn()->api.destroy_descriptor(value_);
}

void DnnDescriptor::set(int32_t attribute, int32_t type, int64_t count, const void* values) {
  require(cudnn()->api.set_attribute(value_, attribute, type, count, values), "describing an operation");
}

void DnnDescriptor::finalize() { require(cudnn()->api.finalize(value_), "describing an operation"); }

bool DnnDescriptor::try_finalize() { return cudnn()->api.finalize(value_) == CUDNN_STATUS_SUCCESS; }

DnnHandle::DnnHandle() {
  const common::Compiling compiling;
  require(cudnn()->api.create(&handle_), "opening a device");
}

DnnHandle::~DnnHandle() { cudnn()->api.destroy(handle_); }

DnnDescriptor describe_tensor(int64_t id, int32_t type, std::span<const int64_t> extents,
                              std::span<const int64_t> strides, int64_t alignment_bytes, DnnTensorKind kind) {
  DnnDescriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
  tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type);
  tensor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, extents);
  tensor.set(CUDNN_ATTR_TENSOR_STRIDES, strides);
  tensor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, alignment_bytes);
  const bool yes = true;
  if (kind == DnnTensorKind::kVirtual) tensor.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &yes);
  if (kind == DnnTensorKind::kValue) tensor.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &yes);
  tensor.finalize();
  return tensor;
}

std::optional<DnnPlan> DnnPlan::find(DnnHandle& handle, std::span<const DnnDescriptor> operations,
                                     const DnnLimits& limits) {
  const common::Compiling compiling;
  const std::lock_guard lock(handle.mutex());
  const cudnnHandle value = handle.get();
  DnnDescriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &value);
  std::vector<cudnnBackendDescriptor> nodes;
  for (const DnnDescriptor& operation : operations) nodes.push_back(operation.get());
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<int64_t>(nodes.size()),
            nodes.data());
  if (!graph.try_finalize()) return std::nullopt;
  for (const int32_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    for (const DnnDescriptor& configuration : proposals(graph, mode)) {
      if (!is_allowed(configuration, limits)) continue;
      DnnDescriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
      plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &value);
      plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
      if (!plan.try_finalize()) continue;
      int64_t bytes = 0, count = 0;
      require(cudnn()->api.get_attribute(plan.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1,
                                         &count, &bytes),
              "asking for the size of a workspace");
      if (bytes <= limits.workspace_bytes) return DnnPlan(std::move(plan), bytes);
    }
  }
  return std::nullopt;
}

void DnnPlan::run(DnnHandle& handle, Stream& stream, std::span<const int64_t> ids, std::span<void* const> pointers,
                  void* workspace) const {
  DnnDescriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids);
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, static_cast<int64_t>(pointers.size()),
           pointers.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
  pack.finalize();
  const std::lock_guard lock(handle.mutex());
  require(cudnn()->api.set_stream(handle.get(), stream.handle()), "choosing a stream");
  const cudnnStatus status = cudnn()->api.execute(handle.get(), plan_.get(), pack.get());
  // A part of the kernels may be queued.
  if (status != CUDNN_STATUS_SUCCESS) [[unlikely]]
    throw stream.break_off(failure(status, "running an engine"));
}

}  // namespace compute::cuda
