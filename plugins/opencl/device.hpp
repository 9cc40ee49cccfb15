// SPDX-License-Identifier: Apache-2.0
// An open device: its context, memory and compiled kernels.
#pragma once

#include <compute/plugin.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "plugins/common/source/generator.hpp"
#include "plugins/opencl/api.hpp"
#include "plugins/opencl/platform.hpp"

namespace compute::opencl {

struct Buffer {
  Memory memory;
  int64_t size_bytes = 0;
};

inline const Buffer* buffer_of(uint64_t handle) {
  return reinterpret_cast<const Buffer*>(static_cast<uintptr_t>(handle));
}
inline cl_mem memory_of(uint64_t handle) { return handle == 0 ? nullptr : buffer_of(handle)->memory.get(); }

// A kernel of a built program. Its arguments belong to the holder of the lock.
struct CompiledKernel {
  Program program;
  Kernel kernel;
  std::mutex mutex;
  std::vector<uint64_t> started;  // shapes of launches that the driver has started before

  // (mutex) Queues the kernel with the arguments that are set. The first launch of a shape returns when the driver has
  // started it: many drivers compile only then, on their own threads, and must not do so while the process exits.
  cl_int enqueue(cl_command_queue queue, cl_uint rank, const size_t* global_size, const size_t* group_size);
};

// When the command of an event ended, by the device's clock in nanoseconds. Its queue has times.
int64_t end_of(cl_event event);

class Device {
 public:
  explicit Device(DeviceInfo info);
  ~Device();

  const DeviceInfo& info() const { return info_; }
  const common::Dialect& dialect() const { return info_.dialect; }
  cl_context context() const { return context_.get(); }
  const compute_plugin_caps& caps() const { return caps_; }

  // `properties`: 0, or CL_QUEUE_PROFILING_ENABLE for one whose events have times.
  Queue make_queue(cl_bitfield properties = 0) const;
  // For commands without a stream; any thread may use it.
  cl_command_queue queue() const { return map_queue_.get(); }
  Memory make_memory(int64_t size_bytes) const;
  // Memory with a copy of the data.
  Memory upload(const void* data, size_t size_bytes) const;
  // The device's clock, by which events have times, and the host's, in nanoseconds. Waits for the device.
  void read_clock(int64_t* out_device_ns, int64_t* out_host_ns);
  // A buffer over another object's memory, at least `size_bytes` long. UNSUPPORTED if it belongs to another context.
  std::unique_ptr<Buffer> take_memory(cl_mem memory, int64_t size_bytes) const;

  // Host-visible memory: the address stays valid until unmap.
  void* map(const Buffer& buffer);
  void unmap(const Buffer& buffer);

  // Host memory that the device accesses directly, by its address.
  void* allocate_pinned(int64_t size_bytes);
  void free_pinned(void* address);

  // The kernel for a launch of `op`, compiled at most once; *out_compiled counts compilations.
  std::shared_ptr<CompiledKernel> kernel(const common::Op& op, const common::Launch& launch, int64_t* out_compiled);

  // A program from source, taken from the disk cache if it is there. Throws COMPILE_FAILED with the log. *out_compiled,
  // if it is not NULL, states whether the driver compiled it.
  std::shared_ptr<CompiledKernel> compile(const std::string& source, const std::string& name,
                                          const std::string& options, bool* out_compiled = nullptr) const;

  // The results of warming up CLBlast's routines; see clblast_mutex().
  std::map<std::string, std::optional<cl_int>> clblast_status;

  const int64_t spin_ns;  // that a wait asks for the status of an event without a pause; 0 for processors

  std::atomic<int64_t> filter_bytes{0};  // that plans of Fourier transforms keep

  // Whether CLBlast won the trial of a dtype, and with fast mathematics.
  std::mutex trials_mutex;
  std::map<std::pair<compute_dtype, bool>, bool> clblast_wins;

 private:
  Program build(const std::string& given, const std::string& options, bool* out_compiled) const;

  const DeviceInfo info_;
  Context context_;
  Queue map_queue_;
  compute_plugin_heap heaps_[2] = {};
  compute_plugin_caps caps_{};
  std::string options_;

  std::mutex kernels_mutex_;
  std::unordered_map<common::KernelKey, std::shared_ptr<CompiledKernel>, common::KernelKeyHash> kernels_;

  std::mutex clock_mutex_;
  Queue clock_queue_;  // made when the clock is first read

  std::mutex maps_mutex_;
  std::unordered_map<const Buffer*, std::pair<void*, int>> maps_;  // address and users
  std::unordered_map<void*, Memory> pinned_;                       // by the address where it is mapped
};

}  // namespace compute::opencl
