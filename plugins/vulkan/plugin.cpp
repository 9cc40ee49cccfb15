// SPDX-License-Identifier: Apache-2.0
// The two exported functions and the tables behind them.
#include <compute/plugin.h>
#include <compute_kit/core.hpp>
#include <compute_kit/polling.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core.hpp"
#include "device.hpp"
#include "fill.hpp"
#include "physical.hpp"
#include "plan.hpp"
#include "stream.hpp"
#include "trial.hpp"
#include "user_kernel.hpp"

namespace vulkan {
namespace {

// ---- Memory ---------------------------------------------------------------------------------------------------------

const compute_plugin_caps* device_caps(uint64_t device) { return &from_handle<Device>(device).caps; }
void device_close(uint64_t device) { delete &from_handle<Device>(device); }

compute_error* memory_allocate(uint64_t device, const compute_plugin_allocation* request, uint64_t* out_buffer,
                               void** out_data) {
  *out_buffer = 0;
  *out_data = nullptr;
  return guard([&] {
    understand(*request, "the allocation");
    const Buffer* buffer = from_handle<Device>(device).allocate_in_heap(request->heap, request->size_bytes);
    *out_buffer = buffer->address;
    if (request->heap > 0) *out_data = buffer->host;
  });
}

void memory_free(uint64_t device, int32_t, uint64_t buffer) {
  Device& self = from_handle<Device>(device);
  int64_t offset = 0;
  compute_error* error = guard([&] { self.free(&self.find({buffer, 0}, &offset)); });
  if (error != nullptr) core->error_free(error);
}

compute_error* memory_info(uint64_t device, int32_t heap, int64_t* out_free, int64_t* out_total) {
  *out_free = *out_total = -1;
  return guard([&] { from_handle<Device>(device).memory_info(heap, out_free, out_total); });
}

compute_error* memory_map(uint64_t device, const compute_plugin_mapping* mapping, void** out_data) {
  *out_data = nullptr;
  return guard([&] {
    understand(*mapping, "the mapping");
    int64_t offset = 0;
    const Buffer& found = from_handle<Device>(device).find({mapping->buffer, mapping->offset_bytes}, &offset);
    if (found.host == nullptr) throw Failure(COMPUTE_ERROR_UNSUPPORTED, "vulkan: the host cannot see this memory");
    *out_data = found.host + offset;
  });
}
// All memory that the host sees is coherent and stays mapped.
void memory_unmap(uint64_t, const compute_plugin_mapping*, void*) {}

// ---- Streams --------------------------------------------------------------------------------------------------------

compute_error* stream_create(uint64_t device, const compute_plugin_stream_options* options, uint64_t* out_stream) {
  *out_stream = 0;
  return guard([&] {
    understand(*options, "the stream's options");
    Device& self = from_handle<Device>(device);
    const std::lock_guard lock(self.streams_mutex);
    for (const auto& stream : self.streams) {
      const std::lock_guard inner(stream->mutex);
      if (!stream->is_retired || stream->failed() || !stream->is_idle()) continue;
      stream->begin_again();
      *out_stream = to_handle(stream.get());
      return;
    }
    *out_stream = to_handle(self.streams.emplace_back(std::make_unique<Stream>(self)).get());
  });
}

void stream_destroy(uint64_t handle) {
  Stream& self = from_handle<Stream>(handle);
  compute_error* error = guard([&] {
    const std::lock_guard lock(self.mutex);
    if (!self.failed()) self.flush();
    self.is_retired = true;
  });
  if (error != nullptr) core->error_free(error);
}

// Runs `work` with the lock of the stream, unless the stream has failed: then stream_sync returns the error.
template <class F>
compute_error* submit(uint64_t handle, F&& work) {
  return guard([&] {
    Stream& self = from_handle<Stream>(handle);
    const std::lock_guard lock(self.mutex);
    if (!self.failed()) work(self);
  });
}

compute_error* stream_mark(uint64_t handle, uint64_t number, uint32_t flags) {
  return submit(handle, [&](Stream& self) {
    understand_flags(flags, "the mark", self.device.physical.has_times ? uint32_t{COMPUTE_PLUGIN_MARK_TIMED} : 0u);
    self.mark(number, (flags & COMPUTE_PLUGIN_MARK_TIMED) != 0);
  });
}

compute_error* stream_wait(uint64_t handle, uint64_t other_handle, uint64_t number, uint32_t flags) {
  return guard([&] {
    understand_flags(flags, "the wait");
    Stream& self = from_handle<Stream>(handle);
    Stream& other = from_handle<Stream>(other_handle);
    if (&self.device != &other.device)
      throw Failure(COMPUTE_ERROR_UNSUPPORTED, "vulkan: a timeline semaphore belongs to one device");
    self.wait_for(other, number);
  });
}

compute_error* stream_reached(uint64_t handle, uint64_t* out_reached) {
  return guard([&] {
    Stream& self = from_handle<Stream>(handle);
    const std::lock_guard lock(self.mutex);
    *out_reached = self.progress();
  });
}

compute_error* stream_sync(uint64_t handle, uint64_t number, int64_t timeout_ns, uint64_t* out_reached) {
  return guard([&] {
    Stream& self = from_handle<Stream>(handle);
    const auto wait = [&](uint64_t value) {
      try {
        return self.wait_until(value, timeout_ns);
      } catch (const Failure& failure) {
        const std::lock_guard lock(self.mutex);
        self.fail(failure);
        return true;
      }
    };
    uint64_t value = 0;
    {
      const std::lock_guard lock(self.mutex);
      value = self.failed() ? self.all_submitted() : self.value_of(number);
    }
    if (wait(value)) {  // the failure is returned when all that is queued has ended
      uint64_t rest = 0;
      {
        const std::lock_guard lock(self.mutex);
        try {
          *out_reached = self.progress();
        } catch (const Failure&) {
        }
        if (self.failed() && !self.device.is_lost) rest = self.all_submitted();
      }
      wait(rest);
    }
    const std::lock_guard lock(self.mutex);
    *out_reached = self.progress();
  });
}

int64_t nanoseconds(const Device& device, uint64_t ticks) {
  const uint32_t bits = device.physical.timestamp_bits;
  if (bits < 64) ticks &= (uint64_t{1} << bits) - 1;
  const double period = static_cast<double>(device.physical.properties.limits.timestampPeriod);
  return period == 1.0 ? static_cast<int64_t>(ticks) : static_cast<int64_t>(period * static_cast<double>(ticks));
}

compute_error* mark_time(uint64_t handle, uint64_t number, int64_t* out_ns) {
  if (out_ns != nullptr) *out_ns = 0;
  return guard([&] {
    Stream& self = from_handle<Stream>(handle);
    std::unique_lock lock(self.mutex);
    const auto ticks = self.take_time(number, out_ns != nullptr, lock);
    if (ticks) *out_ns = nanoseconds(self.device, static_cast<uint64_t>(*ticks));
  });
}

compute_error* device_clock(uint64_t handle, int64_t* out_device_ns, int64_t* out_host_ns, int64_t* out_wrap_ns) {
  *out_device_ns = *out_host_ns = *out_wrap_ns = 0;
  return guard([&] {
    const Device& self = from_handle<Device>(handle);
    VkCalibratedTimestampInfoEXT infos[2] = {};
    for (VkCalibratedTimestampInfoEXT& info : infos) info.sType = VK_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_EXT;
    infos[0].timeDomain = VK_TIME_DOMAIN_DEVICE_EXT;
    infos[1].timeDomain = VK_TIME_DOMAIN_CLOCK_MONOTONIC_EXT;
    uint64_t values[2] = {}, deviation = 0;
    check(vkGetCalibratedTimestampsEXT(self.handle, 2, infos, values, &deviation), "vkGetCalibratedTimestampsEXT");
    *out_device_ns = nanoseconds(self, values[0]);
    *out_host_ns = static_cast<int64_t>(values[1]);
    if (self.physical.timestamp_bits < 64)
      *out_wrap_ns = nanoseconds(self, (uint64_t{1} << self.physical.timestamp_bits) - 1);
  });
}

// ---- Copies ---------------------------------------------------------------------------------------------------------

compute_error* copy_from_host(uint64_t handle, const void* src, const compute_plugin_operand* pinned,
                              const compute_plugin_operand* dst, int64_t size_bytes, uint32_t flags) {
  return submit(handle, [&](Stream& self) {
    understand_flags(flags, "the copy");
    int64_t to_offset = 0, from_offset = 0;
    const Buffer& to = self.device.find(*dst, &to_offset);
    if (pinned != nullptr) {
      const Buffer& from = self.device.find(*pinned, &from_offset);
      self.copy(from, from_offset, to, to_offset, size_bytes);
      return;
    }
    const Buffer& staging = self.staging(size_bytes, self.device.caps.heap_count - 1);
    std::memcpy(staging.host, src, static_cast<size_t>(size_bytes));
    self.copy(staging, 0, to, to_offset, size_bytes);
  });
}

compute_error* copy_to_host(uint64_t handle, const compute_plugin_operand* src, void* dst,
                            const compute_plugin_operand* pinned, int64_t size_bytes, uint32_t flags) {
  return guard([&] {
    understand_flags(flags, "the copy");
    Stream& self = from_handle<Stream>(handle);
    std::unique_lock lock(self.mutex);
    if (self.failed()) return;
    int64_t to_offset = 0, from_offset = 0;
    const Buffer& from = self.device.find(*src, &from_offset);
    if (pinned != nullptr) {
      const Buffer& to = self.device.find(*pinned, &to_offset);
      self.copy(from, from_offset, to, to_offset, size_bytes);
      return;
    }
    // Memory that the device cannot reach: finished here.
    const auto free = [&](Buffer* buffer) { self.device.free(buffer); };
    const std::unique_ptr<Buffer, decltype(free)> staging(self.device.allocate_in_heap(1, size_bytes), free);
    self.copy(from, from_offset, *staging, 0, size_bytes);
    const uint64_t value = self.flush();
    lock.unlock();
    self.wait_until(value, INT64_MAX);
    std::memcpy(dst, staging->host, static_cast<size_t>(size_bytes));
  });
}

compute_error* fill(uint64_t handle, const compute_plugin_operand* dst, int64_t size_bytes, const void* pattern,
                    int32_t pattern_size, uint32_t flags) {
  return submit(handle, [&](Stream& self) {
    understand_flags(flags, "the fill");
    queue_fill(self, *dst, size_bytes, pattern, pattern_size);
  });
}

// ---- Ops ------------------------------------------------------------------------------------------------------------

std::unique_ptr<Plan> prepare(uint64_t device, const compute_plugin_op& op, bool query, compute_plugin_refuse refuse,
                              void* context) {
  understand_op(op);
  try {
    return make_plan(from_handle<Device>(device), op, query);
  } catch (const Refused& refused) {
    compute_plugin_refusal refusal = {};
    refusal.struct_size = sizeof refusal;
    refusal.struct_type = COMPUTE_PLUGIN_STRUCT_REFUSAL;
    refusal.reason = refused.reason;
    refusal.argument = refused.argument;
    refusal.text = text(refused.text);
    refusal.hint = text(refused.hint);
    refuse(context, &refusal);
    return nullptr;
  }
}

compute_error* op_query(uint64_t device, const compute_plugin_op* op, compute_plugin_query_info* out_info,
                        compute_plugin_refuse refuse, void* context) {
  out_info->supported = 0;
  return guard([&] {
    understand(*out_info, "the answer");
    const auto plan = prepare(device, *op, true, refuse, context);
    if (plan == nullptr) return;
    out_info->supported = 1;
    out_info->workspace_bytes = plan->workspace_bytes;
  });
}

compute_error* op_prepare(uint64_t device, const compute_plugin_op* op, uint64_t* out_plan,
                          compute_plugin_plan_info* out_info, compute_plugin_refuse refuse, void* context) {
  *out_plan = 0;
  return guard([&] {
    understand(*out_info, "the plan's answer");
    auto plan = prepare(device, *op, false, refuse, context);
    if (plan == nullptr) return;
    out_info->workspace_bytes = plan->workspace_bytes;
    out_info->kernels_compiled = plan->kernels_compiled;
    out_info->reports_faults = plan->reports_faults ? 1 : 0;
    *out_plan = to_handle(plan.release());
  });
}

compute_error* plan_run(uint64_t plan, const compute_plugin_run* run) {
  return submit(run->stream, [&](Stream& self) {
    understand(*run, "the run");
    run_plan(from_handle<Plan>(plan), self, *run);
  });
}

void plan_release(uint64_t, uint64_t plan) { delete &from_handle<Plan>(plan); }

// ---- Kernels of programs --------------------------------------------------------------------------------------------

compute_error* kernel_compile(uint64_t device, const compute_plugin_kernel_source* source, uint64_t* out_kernel,
                              compute_plugin_kernel_info* out_info) {
  *out_kernel = 0;
  return guard([&] {
    understand(*source, "the source");
    understand(*out_info, "the kernel's answer");
    auto kernel = compile_user_kernel(from_handle<Device>(device), view(source->language), view(source->source),
                                      view(source->name));
    out_info->argument_count = -1;
    out_info->max_group_size = static_cast<int32_t>(from_handle<Device>(device).physical.features.group_size);
    *out_kernel = to_handle(kernel.release());
  });
}

compute_error* kernel_launch(uint64_t kernel, const compute_plugin_launch* launch) {
  return submit(launch->stream, [&](Stream& self) {
    understand(*launch, "the launch");
    launch_user_kernel(from_handle<UserKernel>(kernel), self, *launch);
  });
}

void kernel_release(uint64_t, uint64_t kernel) { delete &from_handle<UserKernel>(kernel); }

constexpr compute_plugin_kernel_table kKernelTable = {sizeof(compute_plugin_kernel_table), kernel_compile,
                                                      kernel_launch, kernel_release};
const compute_plugin_kernel_table* kernels(uint64_t) { return &kKernelTable; }

// ---- Device table ---------------------------------------------------------------------------------------------------

constexpr compute_plugin_device_table device_table(bool has_times) {
  compute_plugin_device_table table = {};
  table.table_size = sizeof table;
  table.caps = device_caps;
  table.close = device_close;
  table.memory_allocate = memory_allocate;
  table.memory_free = memory_free;
  table.memory_info = memory_info;
  table.memory_map = memory_map;
  table.memory_unmap = memory_unmap;
  table.stream_create = stream_create;
  table.stream_destroy = stream_destroy;
  table.stream_mark = stream_mark;
  table.stream_wait = stream_wait;
  table.stream_reached = stream_reached;
  table.stream_sync = stream_sync;
  if (has_times) table.mark_time = mark_time, table.clock = device_clock;
  table.copy_from_host = copy_from_host;
  table.copy_to_host = copy_to_host;
  table.fill = fill;
  table.op_query = op_query;
  table.op_prepare = op_prepare;
  table.plan_run = plan_run;
  table.plan_release = plan_release;
  table.kernels = kernels;
  return table;
}
constexpr compute_plugin_device_table kDeviceTable = device_table(false), kTimedTable = device_table(true);

// ---- Plugin table ---------------------------------------------------------------------------------------------------

void emit_requirement(const compute_plugin_sink& sink, const char* name, const LoaderReport& report,
                      const std::string& found, const std::string& error, const char* remedy) {
  compute_plugin_requirement requirement = {};
  requirement.struct_size = sizeof requirement;
  requirement.struct_type = COMPUTE_PLUGIN_STRUCT_REQUIREMENT;
  requirement.name = text(name);
  requirement.tried = text(report.tried);
  requirement.found = text(found);
  requirement.error = text(error);
  requirement.effect = text("there are no Vulkan devices");
  requirement.remedy = text(error.empty() ? "" : remedy);
  requirement.required = 1;
  requirement.state = error.empty()   ? COMPUTE_PLUGIN_LIBRARY_FOUND
                      : found.empty() ? COMPUTE_PLUGIN_LIBRARY_MISSING
                                      : COMPUTE_PLUGIN_LIBRARY_UNUSABLE;
  sink.requirement(sink.context, &requirement);
}

std::string version_text(uint32_t version) {
  return std::to_string(VK_API_VERSION_MAJOR(version)) + "." + std::to_string(VK_API_VERSION_MINOR(version)) + "." +
         std::to_string(VK_API_VERSION_PATCH(version));
}

// PCI vendor ids, and those that Khronos assigns.
const char* vendor_name(uint32_t id) {
  switch (id) {
    case 0x1002:
      return "AMD";
    case 0x1010:
      return "Imagination";
    case 0x106b:
      return "Apple";
    case 0x10de:
      return "NVIDIA";
    case 0x13b5:
      return "Arm";
    case 0x14e4:
      return "Broadcom";
    case 0x5143:
      return "Qualcomm";
    case 0x8086:
      return "Intel";
    case 0x10005:
      return "Mesa";
    default:
      return "";
  }
}

void emit_device(const compute_plugin_sink& sink, const Physical& p, uint64_t id) {
  const Features& features = p.features;
  const std::vector<std::pair<std::string, std::string>> texts = {
      {"vulkan_version", version_text(p.properties.apiVersion)},
      {"queues", std::to_string(p.queue_count)},
      {"float64", features.float64 ? "yes" : "no: needs the feature shaderFloat64"},
      {"int64_atomics", features.int64_atomics ? "yes" : "no"},
      {"rounding", features.rounds_to_even[0] ? "to nearest even" : "not stated by the driver"},
      {"host_memory", p.is_unified ? "shared with the device" : "separate"},
  };
  std::vector<compute_plugin_property> properties;
  for (const auto& [name, value] : texts) {
    compute_plugin_property& property = properties.emplace_back();
    property = {};
    property.struct_size = sizeof property;
    property.struct_type = COMPUTE_PLUGIN_STRUCT_PROPERTY;
    property.name = text(name);
    property.value = text(value);
  }
  uint32_t dtypes[COMPUTE_DTYPE_COMPLEX128 + 1] = {};
  for (int32_t dtype = COMPUTE_DTYPE_BOOL; dtype <= COMPUTE_DTYPE_COMPLEX128; ++dtype) {
    const bool needs_float64 = dtype == COMPUTE_DTYPE_FLOAT64 || dtype == COMPUTE_DTYPE_COMPLEX128;
    if (!needs_float64 || features.float64) {
      dtypes[dtype] = COMPUTE_DTYPE_LEVEL_STORAGE | COMPUTE_DTYPE_LEVEL_CONVERT | COMPUTE_DTYPE_LEVEL_ARITHMETIC |
                      COMPUTE_DTYPE_LEVEL_MATMUL;
    }
  }
  compute_plugin_device_info info = {};
  info.struct_size = sizeof info;
  info.struct_type = COMPUTE_PLUGIN_STRUCT_DEVICE_INFO;
  info.id = id;
  info.description = text(p.properties.deviceName);
  info.vendor = text(vendor_name(p.properties.vendorID));
  info.driver_version = text(p.driver);
  info.pci_address = text(p.pci_address);
  info.uuid = text(p.uuid);
  info.memory_bytes = p.memory_bytes;
  info.kind = p.kind;
  info.property_count = static_cast<int32_t>(properties.size());
  info.properties = properties.data();
  info.dtypes = dtypes;
  info.dtype_count = COMPUTE_DTYPE_COMPLEX128 + 1;
  info.subnormals = features.keeps_subnormals[0] ? COMPUTE_SUBNORMALS_KEPT : COMPUTE_SUBNORMALS_FLUSHED;
  info.unusable = text(p.unusable);
  info.subgroup_size_min = static_cast<int32_t>(features.subgroup_size_min);
  info.subgroup_size_max = static_cast<int32_t>(features.subgroup_size_max);
  info.local_memory_bytes = features.shared_bytes;
  info.argument_bytes = features.push_bytes;
  info.max_group_size = static_cast<int32_t>(features.group_size);
  info.atomic_alignment = 4;
  sink.device(sink.context, &info);
}

compute_error* enumerate(const compute_plugin_sink* sink) {
  return guard([&] {
    LoaderReport report;
    const VkInstance instance = open_api(&report);
    const std::string loader_error = report.no_driver ? "" : report.error;
    emit_requirement(*sink, "Vulkan loader", report, report.found, loader_error,
                     "install the Vulkan loader, e.g. libvulkan1");
    if (!loader_error.empty()) return;
    const std::vector<Physical>& devices = physical_devices();
    std::string drivers;
    for (const Physical& p : devices)
      if (drivers.find(p.driver) == std::string::npos) drivers += (drivers.empty() ? "" : ", ") + p.driver;
    const std::string error = instance == VK_NULL_HANDLE ? report.error
                              : devices.empty()          ? "no driver has a device"
                                                         : "";
    emit_requirement(*sink, "Vulkan driver", report, drivers, error,
                     "install a Vulkan driver, e.g. mesa-vulkan-drivers or the vendor's");
    for (size_t i = 0; i < devices.size(); ++i) emit_device(*sink, devices[i], i + 1);
  });
}

compute_error* device_open(uint64_t id, const compute_plugin_device_options* options, uint64_t* out_device,
                           const compute_plugin_device_table** out_table) {
  *out_device = 0;
  *out_table = nullptr;
  return guard([&] {
    understand(*options, "the device's options");
    const std::vector<Physical>& devices = physical_devices();
    if (id == 0 || id > devices.size())
      throw Failure(COMPUTE_ERROR_NOT_FOUND, "vulkan: there is no device " + std::to_string(id));
    const Physical& physical = devices[id - 1];
    if (!physical.unusable.empty()) throw Failure(COMPUTE_ERROR_UNSUPPORTED, physical.unusable);
    auto device = std::make_unique<Device>(physical);
    try_fused(*device);
    *out_device = to_handle(device.release());
    *out_table = physical.has_times ? &kTimedTable : &kDeviceTable;
  });
}

// ---- Native handles -------------------------------------------------------------------------------------------------

// Fills in the struct of the kind, which core has set to zero, as far as it is long.
template <class F>
compute_error* native(uint32_t kind, void* out_handle, F&& fill_in) {
  return guard([&] {
    if (kind != COMPUTE_NATIVE_VULKAN)
      throw Failure(COMPUTE_ERROR_UNSUPPORTED, "vulkan: there are no native handles of this kind");
    auto* out = static_cast<compute_native_vulkan*>(out_handle);
    compute_native_vulkan made = {};
    const size_t header = offsetof(compute_native_vulkan, get_instance_proc_addr);
    fill_in(made);
    std::memcpy(reinterpret_cast<char*>(out) + header, reinterpret_cast<const char*>(&made) + header,
                std::min<size_t>(out->struct_size, sizeof made) - header);
  });
}

// Handles are pointers, or on some platforms numbers of 64 bits.
template <class T>
uint64_t number_of(T handle) {
  return (uint64_t)handle;
}

void fill_device(const Device& device, compute_native_vulkan& out) {
  out.get_instance_proc_addr = number_of(vkGetInstanceProcAddr);
  out.instance = number_of(open_api(nullptr));
  out.physical_device = number_of(device.physical.handle);
  out.device = number_of(device.handle);
  out.queue_family = device.physical.queue_family;
}

compute_error* native_device(uint64_t device, uint32_t kind, void* out_handle) {
  return native(kind, out_handle, [&](auto& out) { fill_device(from_handle<Device>(device), out); });
}

compute_error* native_stream(uint64_t stream, uint32_t kind, void* out_handle) {
  return native(kind, out_handle, [&](auto& out) {
    Stream& self = from_handle<Stream>(stream);
    const std::lock_guard lock(self.mutex);
    fill_device(self.device, out);
    out.semaphore_value = self.flush();
    out.semaphore = number_of(self.semaphore());
    out.queue = number_of(self.queue());
    out.queue_lock = self.queue_mutex();
    out.lock_queue = [](void* mutex) { static_cast<std::mutex*>(mutex)->lock(); };
    out.unlock_queue = [](void* mutex) { static_cast<std::mutex*>(mutex)->unlock(); };
  });
}

compute_error* native_buffer(uint64_t device, const compute_plugin_operand* place, uint32_t kind, void* out_handle) {
  return native(kind, out_handle, [&](auto& out) {
    Device& self = from_handle<Device>(device);
    fill_device(self, out);
    int64_t offset = 0;
    out.buffer = number_of(self.find(*place, &offset).buffer);
    out.offset_bytes = offset;
    out.address = address_of(*place);
  });
}

constexpr compute_plugin_native_table kNativeTable = {sizeof(compute_plugin_native_table), native_device, native_stream,
                                                      native_buffer};

const void* get_extension(uint64_t, const char* name, int64_t name_size) {
  const bool is_native = std::string_view(name, static_cast<size_t>(name_size)) == COMPUTE_PLUGIN_EXT_NATIVE_V1;
  return is_native ? &kNativeTable : nullptr;
}

constexpr compute_plugin_table plugin_table() {
  compute_plugin_table table = {};
  table.table_size = sizeof table;
  table.enumerate = enumerate;
  table.device_open = device_open;
  table.get_extension = get_extension;
  table.close = compute::common::release_core;
  table.on_exit = [] { compute::common::end_polling(); };
  return table;
}
constexpr compute_plugin_table kPluginTable = plugin_table();

compute_plugin_manifest make_manifest() {
  compute_plugin_manifest manifest = {};
  manifest.struct_size = sizeof manifest;
  manifest.struct_type = COMPUTE_PLUGIN_STRUCT_MANIFEST;
  manifest.interface_min = COMPUTE_PLUGIN_INTERFACE;
  manifest.interface_max = COMPUTE_PLUGIN_INTERFACE;
  manifest.draft = COMPUTE_PLUGIN_DRAFT;
  manifest.name = text("vulkan");
  manifest.version = text(COMPUTE_PLUGIN_VERSION);
  manifest.vendor = text("compute");
  manifest.license = text("Apache-2.0");
  manifest.build_id = text(COMPUTE_PLUGIN_BUILD_ID);
  // A vendor's own interface serves a device better.
  manifest.priority = -1;
  return manifest;
}

}  // namespace
}  // namespace vulkan

extern "C" {

COMPUTE_PLUGIN_EXPORT const compute_plugin_manifest* compute_plugin_query(void) {
  static const compute_plugin_manifest manifest = vulkan::make_manifest();
  return &manifest;
}

COMPUTE_PLUGIN_EXPORT compute_error* compute_plugin_open(uint32_t, const compute_plugin_core* core,
                                                         const compute_plugin_table** out_table) {
  *out_table = nullptr;
  if (compute_error* error = compute::common::refuse_second_core(core, "vulkan")) return error;
  compute::common::set_core(core);
  vulkan::core = core;
  *out_table = &vulkan::kPluginTable;
  return nullptr;
}

}  // extern "C"
