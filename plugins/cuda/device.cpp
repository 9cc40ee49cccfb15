// SPDX-License-Identifier: Apache-2.0
#include "plugins/cuda/device.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <utility>

#include "plugins/common/driver/polling.hpp"
#include "plugins/cuda/compiler.hpp"
#include "plugins/cuda/cudnn_graph.hpp"
#include "plugins/cuda/dialect/dialect.hpp"
#include "plugins/cuda/matmul.hpp"
#include "plugins/cuda/solver.hpp"

namespace compute::cuda {
namespace {

constexpr size_t kMemoriesPerBlock = 64;

compute_plugin_heap make_heap(uint32_t flags, int32_t role, int64_t size_bytes) {
  compute_plugin_heap heap{};
  heap.struct_size = sizeof heap;
  heap.struct_type = COMPUTE_PLUGIN_STRUCT_HEAP;
  heap.flags = flags;
  heap.suballocation = COMPUTE_PLUGIN_SUBALLOCATE_OFFSET;
  heap.size_bytes = size_bytes;
  heap.max_allocation_bytes = size_bytes < 0 ? INT64_MAX : size_bytes;
  heap.offset_alignment = 256;
  heap.base_alignment = 256;
  heap.role = role;
  return heap;
}

int64_t host_now_ns() { return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// What LaunchMemory is taken from.
void free_block(const LaunchMemory& block) noexcept {
  cu.mem_free_host(block.fault_record);
  if (block.counters != 0) cu.mem_free(block.counters);
}

CUcontext retain_context(const DeviceInfo& info) {
  CUcontext context = nullptr;
  const CUresult result = cu.device_primary_ctx_retain(&context, info.handle);
  if (result != CUDA_SUCCESS) throw error_of(result, "opening " + info.name);
  return context;
}

}  // namespace

Device::Device(DeviceInfo info)
    : info_(std::move(info)),
      context_(retain_context(info_)),
      heaps_{make_heap(0, COMPUTE_PLUGIN_HEAP_ROLE_DEVICE, info_.memory_bytes),
             make_heap(COMPUTE_PLUGIN_HEAP_PINNED | COMPUTE_PLUGIN_HEAP_HOST_SPACE | COMPUTE_PLUGIN_HEAP_HOST_VISIBLE,
                       COMPUTE_PLUGIN_HEAP_ROLE_SHARED, -1)},
      spin_ns_(common::spin_time_ns()),
      kernels_(info_.compute_capability) {
  caps_.struct_size = sizeof caps_;
  caps_.struct_type = COMPUTE_PLUGIN_STRUCT_CAPS;
  caps_.heap_count = 2;
  caps_.heaps = heaps_;
  {
    const Current current = this->current();
    int least = 0, greatest = 0;  // the greatest priority is the smallest number
    cu.ctx_get_stream_priority_range(&least, &greatest);
    caps_.priority_least = -least;
    caps_.priority_greatest = -greatest;
  }
  dialect_ = cuda::dialect();
  dialect_.has_matrix_units = info_.compute_capability >= 80;
  dialect_.has_float64_units = info_.compute_capability >= 90;
  dialect_.compute_units = info_.multiprocessors;
  dialect_.groups_per_unit = std::max(1, info_.threads_per_multiprocessor / dialect_.group_size);
  dialect_.local_memory_bytes = info_.shared_bytes_per_block;
  dialect_.counters = common::kGroupCounters;
}

const common::Dialect& Device::dialect() const {
  std::call_once(dialect_once_, [this] {
    const Nvrtc* nvrtc = cuda::nvrtc();
    dialect_.has_tile_units = nvrtc != nullptr && has_tile_units(info_.compute_capability, nvrtc->major);
  });
  return dialect_;
}

Device::~Device() {
  try {
    const Current current = this->current();
    for (const CUevent event : events_) cu.event_destroy(event);
    for (const CUevent event : timed_events_) cu.event_destroy(event);
    if (reference_ != nullptr) cu.event_destroy(reference_);
    if (clock_stream_ != nullptr) cu.stream_destroy(clock_stream_);
    for (const LaunchMemory& block : memory_blocks_) free_block(block);
    blas_.reset();
    dnn_.reset();
    solver_.reset();
    kernels_.clear();
  } catch (...) {
    // A context that cannot be made current has lost these already.
  }
  cu.device_primary_ctx_release(info_.handle);
}

template <class Handle>
std::unique_ptr<Handle> Device::make_handle() const {
  try {
    return std::make_unique<Handle>();
  } catch (const Error& error) {  // an old device, for example
    common::log(COMPUTE_LOG_WARNING, "load", error.message + "; " + info_.name + " uses generated kernels instead");
    return nullptr;
  }
}

BlasHandle* Device::blas() {
  std::call_once(blas_once_, [this] {
    if (cublas_lt() != nullptr) blas_ = make_handle<BlasHandle>();
  });
  return blas_.get();
}

DnnHandle* Device::dnn() {
  std::call_once(dnn_once_, [this] {
    if (cudnn() != nullptr) dnn_ = make_handle<DnnHandle>();
  });
  return dnn_.get();
}

SolverHandle* Device::solver() {
  std::call_once(solver_once_, [this] {
    if (cusolver() != nullptr) solver_ = make_handle<SolverHandle>();
  });
  return solver_.get();
}

uint64_t Device::allocate(int32_t heap, int64_t size_bytes) {
  const Current current = this->current();
  if (heap == 1) {
    void* address = nullptr;
    const CUresult result = cu.mem_host_alloc(&address, static_cast<size_t>(size_bytes),
                                              CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    if (result != CUDA_SUCCESS)
      throw error_of(result, "allocating " + std::to_string(size_bytes) + " bytes of pinned host memory");
    return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(address));
  }
  CUdeviceptr address = 0;
  const CUresult result = cu.mem_alloc(&address, static_cast<size_t>(size_bytes));
  if (result != CUDA_SUCCESS) throw error_of(result, "allocating " + std::to_string(size_bytes) + " bytes");
  return address;
}

void Device::free(int32_t heap, uint64_t buffer) {
  const Current current = this->current();
  if (heap == 0) cu.mem_free(buffer);
  if (heap == 1) cu.mem_free_host(reinterpret_cast<void*>(static_cast<uintptr_t>(buffer)));
}

uint64_t Device::import(const compute_plugin_import& import) {
  if (import.dlpack_device_type != kDlCuda && import.dlpack_device_type != kDlCudaManaged) {
    throw Error(COMPUTE_ERROR_UNSUPPORTED,
                "memory of DLPack device type " + std::to_string(import.dlpack_device_type) + " is not CUDA memory");
  }
  const Current current = this->current();
  const uint64_t address = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(import.data));
  // The driver knows whose memory it is; the exporter's number may count devices in another way.
  int ordinal = import.dlpack_device_id;
  if (address != 0) cu.pointer_get_attribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address);
  if (import.dlpack_device_type == kDlCuda && ordinal != info_.ordinal) {
    throw Error(COMPUTE_ERROR_UNSUPPORTED, "the memory is on CUDA device " + std::to_string(ordinal));
  }
  return address;
}

CUevent Device::take_event() {
  {
    const std::lock_guard lock(mutex_);
    if (!events_.empty()) {
      const CUevent event = events_.back();
      events_.pop_back();
      return event;
    }
    events_.reserve(events_.capacity() + 1);  // giving it back cannot fail
  }
  CUevent event = nullptr;
  check(cu.event_create(&event, CU_EVENT_DISABLE_TIMING), "creating an event");
  return event;
}

void Device::give_event(CUevent event) noexcept {
  const std::lock_guard lock(mutex_);
  try {
    events_.push_back(event);
  } catch (...) {
    cu.event_destroy(event);
  }
}

CUevent Device::take_timed_event() {
  {
    const std::lock_guard lock(mutex_);
    if (!timed_events_.empty()) {
      const CUevent event = timed_events_.back();
      timed_events_.pop_back();
      return event;
    }
  }
  CUevent event = nullptr;
  check(cu.event_create(&event, 0), "creating an event");
  return event;
}

void Device::give_timed_event(CUevent event) noexcept {
  EventTime one{event};
  give_timed_events({&one, 1});
}

void Device::give_timed_events(std::span<const EventTime> events) noexcept {
  const std::lock_guard lock(mutex_);
  for (const EventTime& one : events) {
    try {
      timed_events_.push_back(one.event);
    } catch (...) {
      cu.event_destroy(one.event);
    }
  }
}

// With the clock's lock held, and the context current.
void Device::start_clock() {
  if (reference_ != nullptr) return;
  if (clock_stream_ == nullptr)
    check(cu.stream_create(&clock_stream_, CU_STREAM_NON_BLOCKING, 0), "creating a stream for the clock");
  const CUevent event = take_timed_event();
  try {
    check(cu.event_record(event, clock_stream_), "starting the clock");
    check(cu.stream_synchronize(clock_stream_), "starting the clock");
  } catch (...) {
    give_timed_event(event);
    throw;
  }
  reference_ns_ = host_now_ns();
  reference_ = event;
}

void Device::take_times(std::span<EventTime> events) {
  constexpr float kRecentMilliseconds = 1000;
  const std::lock_guard lock(clock_mutex_);
  CUresult result = CUDA_SUCCESS;
  try {
    start_clock();
    for (EventTime& one : events) {
      float milliseconds = 0;
      result = cu.event_elapsed_time(&milliseconds, reference_, one.event);
      if (result != CUDA_SUCCESS) break;
      one.time_ns = reference_ns_ + std::llround(static_cast<double>(milliseconds) * 1e6);
      if (milliseconds <= kRecentMilliseconds) continue;
      std::swap(reference_, one.event);
      reference_ns_ = one.time_ns;
    }
  } catch (...) {
    give_timed_events(events);
    throw;
  }
  give_timed_events(events);
  check(result, "reading the time of an event");
}

void Device::read_clock(int64_t* out_device_ns, int64_t* out_host_ns) {
  const Current current = this->current();
  const CUevent event = take_timed_event();
  int64_t before = 0, after = 0;
  try {
    const std::lock_guard lock(clock_mutex_);
    start_clock();
    before = host_now_ns();
    check(cu.event_record(event, clock_stream_), "reading the clock");
    check(cu.stream_synchronize(clock_stream_), "reading the clock");
    after = host_now_ns();
  } catch (...) {
    give_timed_event(event);
    throw;
  }
  EventTime one{event};
  take_times({&one, 1});
  *out_device_ns = one.time_ns;
  *out_host_ns = before + (after - before) / 2;
}

LaunchMemory Device::take_launch_memory() {
  constexpr size_t kCounterBytes = common::kGroupCounters * sizeof(int32_t);
  const std::lock_guard lock(mutex_);
  if (free_memory_.empty()) {
    const Current current = this->current();
    void* records = nullptr;
    check(cu.mem_host_alloc(&records, kMemoriesPerBlock * sizeof(compute_plugin_fault),
                            CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP),
          "allocating fault records");
    LaunchMemory block;
    block.fault_record = static_cast<compute_plugin_fault*>(records);
    try {
      check(cu.mem_alloc(&block.counters, kMemoriesPerBlock * kCounterBytes), "allocating counters");
      check(cu.memset_d8_async(block.counters, 0, kMemoriesPerBlock * kCounterBytes, nullptr), "clearing counters");
      check(cu.stream_synchronize(nullptr), "clearing counters");
      free_memory_.reserve(kMemoriesPerBlock);
      memory_blocks_.push_back(block);
    } catch (...) {
      free_block(block);
      throw;
    }
    for (size_t i = 0; i < kMemoriesPerBlock; ++i)
      free_memory_.push_back({block.fault_record + i, block.counters + i * kCounterBytes});
  }
  const LaunchMemory memory = free_memory_.back();
  free_memory_.pop_back();
  *memory.fault_record = {};
  return memory;
}

void Device::give_launch_memory(const LaunchMemory& memory) noexcept {
  const std::lock_guard lock(mutex_);
  try {
    free_memory_.push_back(memory);
  } catch (...) {
    // Some kilobytes less until the device is closed.
  }
}

std::shared_ptr<const LaunchMemory> Device::share_launch_memory() {
  return {new LaunchMemory(take_launch_memory()), [this](const LaunchMemory* memory) {
            give_launch_memory(*memory);
            delete memory;
          }};
}

void Device::reach(const Device& other) {
  const std::lock_guard lock(mutex_);
  if (!reached_.insert(other.info_.handle).second) return;
  int can = 0;
  if (cu.device_can_access_peer(&can, info_.handle, other.info_.handle) != CUDA_SUCCESS || can == 0) return;
  const Current current = this->current();
  cu.ctx_enable_peer_access(other.context_, 0);  // without it the driver copies through the host
}

const char* Device::keep_name(const std::string& name) {
  const std::lock_guard lock(mutex_);
  return names_.insert(name).first->c_str();
}

const Kernel* Device::fill_kernel() {
  static constexpr const char* kSource =
      "extern \"C\" __global__ void compute_fill(ulonglong2* dst, unsigned long long count, ulonglong2 value) {\n"
      "#if __CUDA_ARCH__ >= 900\n  asm volatile(\"griddepcontrol.wait;\" ::: \"memory\");\n#endif\n"
      "  const unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;\n"
      "  for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)\n"
      "    dst[i] = value;\n"
      "}\n";
  static constexpr common::KernelKey kKey = {0x636f6d707574655f, 0x66696c6c5f31365f};  // no digest of a signature
  if (nvrtc() == nullptr) return nullptr;
  return &kernels_.get(
      kKey, {},
      [] {
        return common::KernelSource{"compute_fill", kSource};
      },
      nullptr);
}

}  // namespace compute::cuda
