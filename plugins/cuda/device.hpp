// SPDX-License-Identifier: Apache-2.0
// An open device: its primary context, its memory, and the data that its streams and plans share.
#pragma once

#include <compute/plugin.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "plugins/common/source/generator.hpp"
#include "plugins/cuda/device_info.hpp"
#include "plugins/cuda/kernel_table.hpp"
#include "plugins/cuda/status.hpp"

namespace compute::cuda {

class BlasHandle;
class DnnHandle;
class SolverHandle;

// DLPack's numbers.
constexpr int32_t kDlCuda = 2;
constexpr int32_t kDlCudaManaged = 13;

/// What the launches of a stream, or of a graph, share.
struct LaunchMemory {
  compute_plugin_fault* fault_record = nullptr;  // in pinned memory, which kernels address directly
  CUdeviceptr counters = 0;                      // Dialect::counters of them
};

class Device {
 public:
  explicit Device(DeviceInfo info);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const DeviceInfo& info() const { return info_; }
  const compute_plugin_caps& caps() const { return caps_; }
  /// Loads NVRTC, on whose version it depends.
  const common::Dialect& dialect() const;
  CUcontext context() const { return context_; }
  int64_t spin_ns() const { return spin_ns_; }
  KernelTable& kernels() { return kernels_; }

  /// The device's own handles of cuBLASLt, cuDNN and cuSOLVER, made at first need. NULL if the library was not found or
  /// does not support the device. The device's context must be current.
  BlasHandle* blas();
  DnnHandle* dnn();
  SolverHandle* solver();

  /// Makes the context current for a scope.
  Current current() const { return Current(context_, info_.ordinal == 0); }

  // Heap 0 is device memory, heap 1 pinned host memory.
  uint64_t allocate(int32_t heap, int64_t size_bytes);
  void free(int32_t heap, uint64_t buffer);
  uint64_t import(const compute_plugin_import& import);

  /// Events without times.
  CUevent take_event();
  void give_event(CUevent event) noexcept;

  /// Events with times.
  CUevent take_timed_event();
  void give_timed_event(CUevent event) noexcept;
  /// A timed event that has completed, a number of the caller's, and the time in nanoseconds of the device's clock.
  struct EventTime {
    CUevent event;
    uint64_t number = 0;
    int64_t time_ns = 0;
  };
  /// Fills in the times. Takes the events back, also if it throws.
  void take_times(std::span<EventTime> events);
  /// That clock and the host's clock, read at about the same time.
  void read_clock(int64_t* out_device_ns, int64_t* out_host_ns);

  /// Zeroed memory. On return no kernel may use it, and its counters must be 0.
  LaunchMemory take_launch_memory();
  void give_launch_memory(const LaunchMemory& memory) noexcept;
  /// The same; its last owner gives it back.
  std::shared_ptr<const LaunchMemory> share_launch_memory();

  /// Enables access between the memory of this device and of `other`, if the hardware supports it; checked once per
  /// pair.
  void reach(const Device& other);

  /// A copy that lives as long as the device: streams use the names of kernels after these were unloaded.
  const char* keep_name(const std::string& name);

  /// For 8 and 16 byte patterns; NULL without NVRTC.
  const Kernel* fill_kernel();

 private:
  const DeviceInfo info_;
  CUcontext context_ = nullptr;
  compute_plugin_heap heaps_[2]{};
  compute_plugin_caps caps_{};
  mutable common::Dialect dialect_;
  mutable std::once_flag dialect_once_;
  int64_t spin_ns_ = 0;
  KernelTable kernels_;

  std::mutex mutex_;  // guards the members below
  std::vector<CUevent> events_;
  std::vector<CUevent> timed_events_;
  std::vector<LaunchMemory> free_memory_;
  std::vector<LaunchMemory> memory_blocks_;
  std::set<CUdevice> reached_;
  std::set<std::string> names_;

  template <class Handle>
  std::unique_ptr<Handle> make_handle() const;
  std::once_flag blas_once_;
  std::unique_ptr<BlasHandle> blas_;
  std::once_flag dnn_once_;
  std::unique_ptr<DnnHandle> dnn_;
  std::once_flag solver_once_;
  std::unique_ptr<SolverHandle> solver_;

  // The driver returns the time between two events as a float, which is exact to nanoseconds only for short times. So
  // the device's clock is measured from a recent event whose time is known.
  void start_clock();
  void give_timed_events(std::span<const EventTime> events) noexcept;
  std::mutex clock_mutex_;  // guards the members below
  CUstream clock_stream_ = nullptr;
  CUevent reference_ = nullptr;
  int64_t reference_ns_ = 0;
};

}  // namespace compute::cuda
