// SPDX-License-Identifier: Apache-2.0
#include "plugins/opencl/device.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <thread>

#include "plugins/common/driver/compiling.hpp"
#include "plugins/common/driver/own_stack.hpp"
#include "plugins/common/driver/polling.hpp"
#include "plugins/common/driver/program_store.hpp"
#include "plugins/common/op/core.hpp"
#include "plugins/opencl/dialect/dialect.hpp"

namespace compute::opencl {
namespace {

// Byte-sized elements are combined atomically by the aligned word around them, which must be inside the buffer.
constexpr int64_t kAllocationUnit = 64;

// Drivers compile for a group's size, and for few or many groups.
uint64_t shape_of(cl_uint rank, const size_t* global_size, const size_t* group_size) {
  uint64_t shape = rank;
  size_t most = 0;
  for (cl_uint axis = 0; axis < rank; ++axis) {
    shape = shape << 16 ^ shape >> 48 ^ group_size[axis];
    most = std::max(most, global_size[axis] / group_size[axis]);
  }
  return shape << 6 ^ shape >> 58 ^ static_cast<uint64_t>(std::bit_width(most));
}

void wait_until_started(cl_event event) {
  const auto begin = std::chrono::steady_clock::now();
  for (;;) {
    cl_int status = CL_COMPLETE;
    const cl_int asked =
        api().clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
    if (asked != CL_SUCCESS || status <= CL_RUNNING) return;
    const bool is_short = std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(1);
    std::this_thread::sleep_for(std::chrono::microseconds(is_short ? 10 : 200));
  }
}

}  // namespace

cl_int CompiledKernel::enqueue(cl_command_queue queue, cl_uint rank, const size_t* global_size,
                               const size_t* group_size) {
  const auto launch = [&](cl_event* out_event) {
    return api().clEnqueueNDRangeKernel(queue, kernel.get(), rank, nullptr, global_size, group_size, 0, nullptr,
                                        out_event);
  };
  const uint64_t shape = shape_of(rank, global_size, group_size);
  if (std::find(started.begin(), started.end(), shape) != started.end()) return launch(nullptr);
  started.reserve(started.size() + 1);
  cl_int status = CL_SUCCESS;
  common::with_enough_stack([&] {
    const common::Compiling compiling;
    cl_event event = nullptr;
    status = launch(&event);
    if (status != CL_SUCCESS) return;
    const Event owned(event);
    if (api().clFlush(queue) == CL_SUCCESS) wait_until_started(event);
    started.push_back(shape);
  });
  return status;
}

Device::Device(DeviceInfo info)
    : spin_ns((info.type & CL_DEVICE_TYPE_CPU) != 0 ? 0 : common::spin_time_ns()), info_(std::move(info)) {
  const intptr_t properties[] = {CL_CONTEXT_PLATFORM, reinterpret_cast<intptr_t>(info_.platform), 0};
  cl_int status = CL_SUCCESS;
  context_ = Context(api().clCreateContext(properties, 1, &info_.device, nullptr, nullptr, &status));
  check(status, "clCreateContext");
  map_queue_ = make_queue();
  for (compute_plugin_heap& heap : heaps_) {
    heap.struct_size = sizeof heap;
    heap.struct_type = COMPUTE_PLUGIN_STRUCT_HEAP;
    heap.max_allocation_bytes = info_.max_allocation_bytes;
    heap.base_alignment = 64;
  }
  heaps_[0].flags = info_.is_unified ? COMPUTE_PLUGIN_HEAP_HOST_VISIBLE : 0u;
  heaps_[0].suballocation = COMPUTE_PLUGIN_SUBALLOCATE_NONE;
  heaps_[0].size_bytes = info_.memory_bytes;
  heaps_[0].offset_alignment = info_.base_alignment;
  heaps_[0].role = COMPUTE_PLUGIN_HEAP_ROLE_DEVICE;
  heaps_[1].role = COMPUTE_PLUGIN_HEAP_ROLE_SHARED;
  heaps_[1].flags = COMPUTE_PLUGIN_HEAP_PINNED | COMPUTE_PLUGIN_HEAP_HOST_SPACE;
  heaps_[1].suballocation = COMPUTE_PLUGIN_SUBALLOCATE_OFFSET;
  heaps_[1].size_bytes = -1;
  heaps_[1].offset_alignment = 64;
  caps_.struct_size = sizeof caps_;
  caps_.struct_type = COMPUTE_PLUGIN_STRUCT_CAPS;
  caps_.heap_count = 2;
  caps_.heaps = heaps_;
  options_ = "-w";  // no warnings: generated code has tautological comparisons, which compilers report on stderr
  for (const std::string& option : compile_options(dialect())) options_ += (options_.empty() ? "" : " ") + option;
}

Device::~Device() = default;

Queue Device::make_queue(cl_bitfield properties) const {
  cl_int status = CL_SUCCESS;
  Queue queue(api().clCreateCommandQueue(context(), info_.device, properties, &status));
  check(status, "clCreateCommandQueue");
  return queue;
}

int64_t end_of(cl_event event) {
  uint64_t time_ns = 0;
  check(api().clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof time_ns, &time_ns, nullptr),
        "clGetEventProfilingInfo");
  return static_cast<int64_t>(time_ns);
}

void Device::read_clock(int64_t* out_device_ns, int64_t* out_host_ns) {
  const auto host_now = [] {
    return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
  };
  const std::lock_guard lock(clock_mutex_);
  if (!clock_queue_) clock_queue_ = make_queue(CL_QUEUE_PROFILING_ENABLE);
  const int64_t before = host_now();
  cl_event event = nullptr;
  check(api().clEnqueueMarkerWithWaitList(clock_queue_.get(), 0, nullptr, &event), "clEnqueueMarkerWithWaitList");
  const Event owned(event);
  check(api().clFinish(clock_queue_.get()), "clFinish");
  const int64_t after = host_now();
  *out_device_ns = end_of(event);
  *out_host_ns = before + (after - before) / 2;
}

Memory Device::make_memory(int64_t size_bytes) const {
  const int64_t rounded = (size_bytes + kAllocationUnit - 1) / kAllocationUnit * kAllocationUnit;
  cl_bitfield flags = CL_MEM_READ_WRITE;
  if (info_.is_unified) flags |= CL_MEM_ALLOC_HOST_PTR;
  cl_int status = CL_SUCCESS;
  Memory memory(api().clCreateBuffer(context(), flags, static_cast<size_t>(rounded), nullptr, &status));
  check(status, "clCreateBuffer");
  return memory;
}

Memory Device::upload(const void* data, size_t size_bytes) const {
  Memory memory = make_memory(static_cast<int64_t>(size_bytes));
  const Queue queue = make_queue();
  check(api().clEnqueueWriteBuffer(queue.get(), memory.get(), 1, 0, size_bytes, data, 0, nullptr, nullptr),
        "clEnqueueWriteBuffer");
  return memory;
}

std::unique_ptr<Buffer> Device::take_memory(cl_mem memory, int64_t size_bytes) const {
  const auto property = [&](cl_uint name, auto value) {
    check(api().clGetMemObjectInfo(memory, name, sizeof value, &value, nullptr), "clGetMemObjectInfo");
    return value;
  };
  if (property(CL_MEM_CONTEXT, cl_context{}) != context())
    throw common::Error(COMPUTE_ERROR_UNSUPPORTED, "the cl_mem belongs to a different context than the device");
  if (property(CL_MEM_TYPE, cl_uint{}) != CL_MEM_OBJECT_BUFFER)
    throw common::Error(COMPUTE_ERROR_INVALID_ARGUMENT, "the cl_mem is not a buffer");
  // The program's own memory, on a device that uses it in place. Core relies on the alignment of allocations.
  if (reinterpret_cast<uintptr_t>(property(CL_MEM_HOST_PTR, static_cast<void*>(nullptr))) % 64 != 0) {
    throw common::Error(COMPUTE_ERROR_UNSUPPORTED,
                        "the cl_mem uses memory of the program that is not aligned to 64 bytes; copy it");
  }
  auto buffer = std::make_unique<Buffer>();
  buffer->size_bytes = static_cast<int64_t>(property(CL_MEM_SIZE, size_t{}));
  if (buffer->size_bytes < size_bytes) {
    throw common::Error(COMPUTE_ERROR_INVALID_ARGUMENT, "the cl_mem has " + std::to_string(buffer->size_bytes) +
                                                            " bytes; the tensor needs " + std::to_string(size_bytes));
  }
  check(api().clRetainMemObject(memory), "clRetainMemObject");
  buffer->memory = Memory(memory);
  return buffer;
}

void* Device::map(const Buffer& buffer) {
  std::lock_guard lock(maps_mutex_);
  auto& [address, users] = maps_[&buffer];
  if (users == 0) {
    cl_int status = CL_SUCCESS;
    address = api().clEnqueueMapBuffer(map_queue_.get(), buffer.memory.get(), 1, CL_MAP_READ | CL_MAP_WRITE, 0,
                                       static_cast<size_t>(buffer.size_bytes), 0, nullptr, nullptr, &status);
    if (status != CL_SUCCESS) maps_.erase(&buffer);
    check(status, "clEnqueueMapBuffer");
  }
  ++users;
  return address;
}

void Device::unmap(const Buffer& buffer) {
  std::lock_guard lock(maps_mutex_);
  const auto found = maps_.find(&buffer);
  if (found == maps_.end() || --found->second.second > 0) return;
  api().clEnqueueUnmapMemObject(map_queue_.get(), buffer.memory.get(), found->second.first, 0, nullptr, nullptr);
  api().clFinish(map_queue_.get());
  maps_.erase(found);
}

void* Device::allocate_pinned(int64_t size_bytes) {
  cl_int status = CL_SUCCESS;
  const auto size = static_cast<size_t>(size_bytes);
  Memory memory(api().clCreateBuffer(context(), CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, size, nullptr, &status));
  check(status, "clCreateBuffer");
  void* address = api().clEnqueueMapBuffer(map_queue_.get(), memory.get(), 1, CL_MAP_READ | CL_MAP_WRITE, 0, size, 0,
                                           nullptr, nullptr, &status);
  check(status, "clEnqueueMapBuffer");
  std::lock_guard lock(maps_mutex_);
  pinned_.emplace(address, std::move(memory));
  return address;
}

void Device::free_pinned(void* address) {
  std::lock_guard lock(maps_mutex_);
  const auto found = pinned_.find(address);
  if (found == pinned_.end()) return;
  api().clEnqueueUnmapMemObject(map_queue_.get(), found->second.get(), address, 0, nullptr, nullptr);
  api().clFinish(map_queue_.get());
  pinned_.erase(found);
}

std::shared_ptr<CompiledKernel> Device::kernel(const common::Op& op, const common::Launch& launch,
                                               int64_t* out_compiled) {
  {
    std::lock_guard lock(kernels_mutex_);
    if (const auto found = kernels_.find(launch.key); found != kernels_.end()) return found->second;
  }
  // Compiled without the lock: two threads may compile concurrently, and the first result is kept.
  const common::KernelSource source = common::kernel_source(op, dialect(), launch);
  const auto start = std::chrono::steady_clock::now();
  bool was_compiled = true;
  std::string options = options_;
  if (source.most_registers > 0 && info_.has_extension("cl_nv_compiler_options"))
    options += " -cl-nv-maxrregcount=" + std::to_string(source.most_registers);
  std::shared_ptr<CompiledKernel> compiled = compile(source.text, source.name, options, &was_compiled);
  const auto taken = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start);
  common::log(COMPUTE_LOG_DEBUG, "compile",
              source.name + " on " + info_.name + ": " + std::to_string(taken.count()) + " ms");
  if (was_compiled) ++*out_compiled;
  std::lock_guard lock(kernels_mutex_);
  return kernels_.emplace(launch.key, std::move(compiled)).first->second;
}

std::shared_ptr<CompiledKernel> Device::compile(const std::string& source, const std::string& name,
                                                const std::string& options, bool* out_compiled) const {
  auto compiled = std::make_shared<CompiledKernel>();
  bool was_compiled = true;
  cl_int status = CL_SUCCESS;
  common::with_enough_stack([&] {
    compiled->program = build(source, options, out_compiled != nullptr ? out_compiled : &was_compiled);
    compiled->kernel = Kernel(api().clCreateKernel(compiled->program.get(), name.c_str(), &status));
  });
  if (status != CL_SUCCESS) {
    throw common::Error(COMPUTE_ERROR_COMPILE_FAILED,
                        "kernel " + name + " was not found in the source: " + status_text(status), -1, status);
  }
  return compiled;
}

Program Device::build(const std::string& given, const std::string& options, bool* out_compiled) const {
  const std::string device = info_.model(), compiler = info_.driver();
  const common::ProgramKey key{"opencl", given, device, compiler, options};
  // Some drivers' caches identify a program only by its text.
  const bool is_cached = !common::may_include(key);
  const std::string source =
      is_cached ? given : given + "\n//" + std::to_string(std::chrono::system_clock::now().time_since_epoch().count());
  const bool keeps = !info_.avoids(Fault::kBinaries);
  cl_int status = CL_SUCCESS;
  *out_compiled = true;
  if (const std::optional<std::string> binary = is_cached ? common::load_program(key) : std::nullopt) {
    if (!keeps) {
      *out_compiled = false;
    } else {
      const common::Compiling compiling;
      const auto* bytes = reinterpret_cast<const unsigned char*>(binary->data());
      const size_t size = binary->size();
      cl_int loaded = CL_SUCCESS;
      Program program(api().clCreateProgramWithBinary(context(), 1, &info_.device, &size, &bytes, &loaded, &status));
      // A binary that the driver no longer accepts is rebuilt.
      if (status == CL_SUCCESS && loaded == CL_SUCCESS &&
          api().clBuildProgram(program.get(), 1, &info_.device, options.c_str(), nullptr, nullptr) == CL_SUCCESS) {
        *out_compiled = false;
        return program;
      }
    }
  }
  const common::Compiling compiling;
  const char* text = source.c_str();
  const size_t length = source.size();
  Program program(api().clCreateProgramWithSource(context(), 1, &text, &length, &status));
  check(status, "clCreateProgramWithSource");
  status = api().clBuildProgram(program.get(), 1, &info_.device, options.c_str(), nullptr, nullptr);
  if (status != CL_SUCCESS) {
    size_t size = 0;
    api().clGetProgramBuildInfo(program.get(), info_.device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size);
    std::string log(size, '\0');
    api().clGetProgramBuildInfo(program.get(), info_.device, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr);
    throw common::Error(COMPUTE_ERROR_COMPILE_FAILED, "clBuildProgram: " + status_text(status) + "\n" + log.c_str(), -1,
                        status);
  }
  // If the driver caches binaries itself, store a marker that it has this one.
  if (!keeps && *out_compiled && is_cached) common::store_program(key, "kept by the driver");
  size_t size = 0;
  if (keeps && is_cached &&
      api().clGetProgramInfo(program.get(), CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr) == CL_SUCCESS &&
      size > 0) {
    std::string binary(size, '\0');
    char* bytes = binary.data();
    if (api().clGetProgramInfo(program.get(), CL_PROGRAM_BINARIES, sizeof bytes, &bytes, nullptr) == CL_SUCCESS)
      common::store_program(key, binary);
  }
  return program;
}

}  // namespace compute::opencl
