// SPDX-License-Identifier: Apache-2.0
// cuDNN's descriptors, and the choice of an engine for a graph of its operations.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "plugins/cuda/libraries.hpp"
#include "plugins/cuda/status.hpp"

namespace compute::cuda {

class Device;
class Stream;

/// A descriptor that is destroyed with this object. Its calls throw if cuDNN reports an error.
class DnnDescriptor {
 public:
  explicit DnnDescriptor(int32_t type);
  ~DnnDescriptor();
  DnnDescriptor(DnnDescriptor&& other) noexcept : value_(std::exchange(other.value_, nullptr)) {}
  DnnDescriptor& operator=(DnnDescriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }

  cudnnBackendDescriptor get() const { return value_; }

  void set(int32_t attribute, int32_t type, int64_t count, const void* values);
  void set(int32_t attribute, int64_t value) { set(attribute, CUDNN_TYPE_INT64, 1, &value); }
  void set(int32_t attribute, int32_t type, int32_t value) { set(attribute, type, 1, &value); }
  void set(int32_t attribute, std::span<const int64_t> values) {
    set(attribute, CUDNN_TYPE_INT64, static_cast<int64_t>(values.size()), values.data());
  }
  void set(int32_t attribute, const DnnDescriptor& value) {
    set(attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.value_);
  }
  void finalize();
  /// False if cuDNN does not support the descriptor.
  bool try_finalize();

 private:
  cudnnBackendDescriptor value_ = nullptr;
};

/// A handle of cuDNN for one device. cuDNN allows one thread at a time in it.
class DnnHandle {
 public:
  /// The device's context must be current.
  DnnHandle();
  ~DnnHandle();
  DnnHandle(const DnnHandle&) = delete;
  DnnHandle& operator=(const DnnHandle&) = delete;

  cudnnHandle get() const { return handle_; }
  std::mutex& mutex() { return mutex_; }

 private:
  cudnnHandle handle_ = nullptr;
  std::mutex mutex_;
};

/// What a graph's tensor is: memory that a run names, a value on the host that a run names, or an intermediate that
/// only exists in the graph.
enum class DnnTensorKind : uint8_t { kMemory, kValue, kVirtual };

/// A tensor of a graph, which a run refers to by `id`.
DnnDescriptor describe_tensor(int64_t id, int32_t type, std::span<const int64_t> extents,
                              std::span<const int64_t> strides, int64_t alignment_bytes,
                              DnnTensorKind kind = DnnTensorKind::kMemory);

/// What results an engine may give.
struct DnnLimits {
  bool is_fast = false;           // results may depend on more than their terms: Winograd, Fourier transforms
  bool tensor_cores = true;       // for float32 they round the factors to TF32
  bool runtime_compiled = false;  // takes longer to prepare
  bool same_bits = true;          // in each run
  int64_t workspace_bytes = int64_t{1} << 30;
};

/// An engine that is ready to run.
class DnnPlan {
 public:
  /// The best engine, by cuDNN's own estimate, within `limits`. Empty if there is none.
  static std::optional<DnnPlan> find(DnnHandle& handle, std::span<const DnnDescriptor> operations,
                                     const DnnLimits& limits);

  int64_t workspace_bytes() const { return workspace_bytes_; }

  /// Queues the work. pointers[i] is the address of the tensor with ids[i].
  void run(DnnHandle& handle, Stream& stream, std::span<const int64_t> ids, std::span<void* const> pointers,
           void* workspace) const;

 private:
  DnnPlan(DnnDescriptor plan, int64_t workspace_bytes) : plan_(std::move(plan)), workspace_bytes_(workspace_bytes) {}

  DnnDescriptor plan_;
  int64_t workspace_bytes_;
};

}  // namespace compute::cuda
