// SPDX-License-Identifier: Apache-2.0
// The two exported functions and the tables behind them.
#include <compute/plugin.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plugins/common/driver/compiling.hpp"
#include "plugins/common/driver/own_stack.hpp"
#include "plugins/common/driver/polling.hpp"
#include "plugins/common/driver/signals_blocked.hpp"
#include "plugins/common/op/core.hpp"
#include "plugins/common/op/understood.hpp"
#include "plugins/common/table/emit.hpp"
#include "plugins/common/table/entry.hpp"
#include "plugins/common/table/native.hpp"
#include "plugins/common/table/slots.hpp"
#include "plugins/opencl/clblast.hpp"
#include "plugins/opencl/device.hpp"
#include "plugins/opencl/fourier.hpp"
#include "plugins/opencl/kernel.hpp"
#include "plugins/opencl/matmul.hpp"
#include "plugins/opencl/plan.hpp"
#include "plugins/opencl/stream.hpp"

#ifndef COMPUTE_PLUGIN_VERSION
#define COMPUTE_PLUGIN_VERSION "0.0.0"
#endif

namespace compute::opencl {
namespace {

using common::borrow;
using common::Error;
using common::guard;
using common::handle_of;
using common::object;
using common::Op;
using common::Refusal;
using common::require_understood;

// How the slots that plugins fill alike come to this one's devices and streams.
struct OpenCl {
  using Device = opencl::Device;
  using Stream = opencl::Stream;
  using Plan = opencl::Plan;
  using Kernel = UserKernel;
  struct Nothing {};

  static Nothing entering(const Device&) { return {}; }
  static Stream::Submitting submitting(Stream& stream) { return Stream::Submitting(stream); }
  static std::optional<Refusal> refuse(const Device& device, const Op& op) { return opencl::refuse(device, op); }
  static common::PlanOrRefusal<Plan> prepare(Device& device, const Op& op) { return opencl::prepare(device, op); }
  static std::unique_ptr<Kernel> compile(Device& device, const compute_plugin_kernel_source& source) {
    return compile_user_kernel(device, source);
  }
  static common::KernelAnswer answer_of(const Kernel& kernel) {
    return {static_cast<int32_t>(kernel.parameters.size()), kernel.max_group_size};
  }
  static void launch(const Kernel& kernel, Stream& stream, const compute_plugin_launch& launch) {
    launch_user_kernel(kernel, stream, launch);
  }
};

using Slots = common::Slots<OpenCl>;

// ---- Device table ---------------------------------------------------------------------------------------------------

const compute_plugin_caps* device_caps(uint64_t device) { return &object<Device>(device).caps(); }

void device_close(uint64_t device) { delete &object<Device>(device); }

compute_error* memory_allocate(uint64_t device, const compute_plugin_allocation* request, uint64_t* out_buffer,
                               void** out_data) {
  *out_buffer = 0;
  return guard([&] {
    require_understood(request, "the allocation");
    const int64_t size_bytes = request->size_bytes;
    if (request->heap == 1) {
      *out_data = object<Device>(device).allocate_pinned(size_bytes);
      *out_buffer = handle_of(static_cast<char*>(*out_data));
      return;
    }
    auto buffer = std::make_unique<Buffer>();
    buffer->memory = object<Device>(device).make_memory(size_bytes);
    buffer->size_bytes = size_bytes;
    *out_buffer = handle_of(buffer.release());
  });
}

void memory_free(uint64_t device, int32_t heap, uint64_t buffer) {
  if (heap == 1) {
    object<Device>(device).free_pinned(&object<char>(buffer));
  } else {
    delete &object<Buffer>(buffer);
  }
}

// DLPack's kDLOpenCL: `data` is a cl_mem.
constexpr int32_t kDlOpenCl = 4;

compute_error* memory_import(uint64_t device, const compute_plugin_import* import, uint64_t* out_buffer) {
  *out_buffer = 0;
  return guard([&] {
    require_understood(import, "the import");
    if (import->dlpack_device_type != kDlOpenCl) {
      throw Error(COMPUTE_ERROR_UNSUPPORTED, "memory of DLPack device type " +
                                                 std::to_string(import->dlpack_device_type) + " is not OpenCL memory");
    }
    if (import->size_bytes == 0) return;
    *out_buffer =
        handle_of(object<Device>(device).take_memory(static_cast<cl_mem>(import->data), import->size_bytes).release());
  });
}

compute_error* memory_map(uint64_t device, const compute_plugin_mapping* mapping, void** out_data) {
  *out_data = nullptr;
  return guard([&] {
    require_understood(mapping, "the mapping");
    void* const whole = object<Device>(device).map(*buffer_of(mapping->buffer));
    *out_data = static_cast<char*>(whole) + mapping->offset_bytes;
  });
}

void memory_unmap(uint64_t device, const compute_plugin_mapping* mapping, void*) {
  object<Device>(device).unmap(*buffer_of(mapping->buffer));
}

compute_error* stream_create(uint64_t device, const compute_plugin_stream_options* options, uint64_t* out_stream) {
  *out_stream = 0;
  return guard([&] {
    require_understood(options, "the stream's options");
    *out_stream = handle_of(new Stream(&object<Device>(device)));
  });
}

compute_error* mark_time(uint64_t stream, uint64_t number, int64_t* out_ns) {
  if (out_ns != nullptr) *out_ns = 0;
  return guard([&] { object<Stream>(stream).take_time(number, out_ns); });
}

compute_error* device_clock(uint64_t device, int64_t* out_device_ns, int64_t* out_host_ns, int64_t*) {
  *out_device_ns = *out_host_ns = 0;
  return guard([&] { object<Device>(device).read_clock(out_device_ns, out_host_ns); });
}

compute_error* copy_from_host(uint64_t stream, const void* src, const compute_plugin_operand*,
                              const compute_plugin_operand* dst, int64_t size_bytes, uint32_t flags) {
  return Slots::submit(stream, [&](Stream& self) {
    common::require_known_flags(flags, "the copy");
    check(api().clEnqueueWriteBuffer(self.queue(), memory_of(dst->buffer), 0, static_cast<size_t>(dst->offset_bytes),
                                     static_cast<size_t>(size_bytes), src, 0, nullptr, nullptr),
          "clEnqueueWriteBuffer");
  });
}

compute_error* copy_to_host(uint64_t stream, const compute_plugin_operand* src, void* dst,
                            const compute_plugin_operand*, int64_t size_bytes, uint32_t flags) {
  return Slots::submit(stream, [&](Stream& self) {
    common::require_known_flags(flags, "the copy");
    check(api().clEnqueueReadBuffer(self.queue(), memory_of(src->buffer), 0, static_cast<size_t>(src->offset_bytes),
                                    static_cast<size_t>(size_bytes), dst, 0, nullptr, nullptr),
          "clEnqueueReadBuffer");
  });
}

compute_error* fill(uint64_t stream, const compute_plugin_operand* dst, int64_t size_bytes, const void* pattern,
                    int32_t pattern_size, uint32_t flags) {
  return Slots::submit(stream, [&](Stream& self) {
    common::require_known_flags(flags, "the fill");
    check(api().clEnqueueFillBuffer(self.queue(), memory_of(dst->buffer), pattern, static_cast<size_t>(pattern_size),
                                    static_cast<size_t>(dst->offset_bytes), static_cast<size_t>(size_bytes), 0, nullptr,
                                    nullptr),
          "clEnqueueFillBuffer");
  });
}

constexpr compute_plugin_device_table device_table() {
  compute_plugin_device_table table{};
  table.table_size = sizeof table;
  Slots::fill(table);  // queued commands keep the queue, the kernels and the buffers that they use
  table.caps = device_caps;
  table.close = device_close;
  table.memory_allocate = memory_allocate;
  table.memory_free = memory_free;
  table.memory_import = memory_import;
  table.memory_map = memory_map;
  table.memory_unmap = memory_unmap;
  table.stream_create = stream_create;
  table.mark_time = mark_time;
  table.clock = device_clock;
  table.copy_from_host = copy_from_host;
  table.copy_to_host = copy_to_host;
  table.fill = fill;
  return table;
}

constexpr compute_plugin_device_table kDeviceTable = device_table();

// ---- Plugin table ---------------------------------------------------------------------------------------------------

int32_t kind_of(const DeviceInfo& info) {
  if ((info.type & CL_DEVICE_TYPE_CPU) != 0) return COMPUTE_DEVICE_KIND_CPU;
  if ((info.type & CL_DEVICE_TYPE_GPU) == 0) return COMPUTE_DEVICE_KIND_ACCELERATOR;
  return info.is_unified ? COMPUTE_DEVICE_KIND_INTEGRATED_GPU : COMPUTE_DEVICE_KIND_DISCRETE_GPU;
}

void emit_device(const compute_plugin_sink& sink, const DeviceInfo& device, const std::string& library) {
  std::vector<std::pair<std::string, std::string>> texts = {
      {"platform", device.platform_name},
      {"platform_version", device.platform_version},
      {"device_version", device.version},
      {"c_version", device.c_version},
      {"compute_units", std::to_string(device.dialect.compute_units)},
      {"group_size", std::to_string(device.dialect.group_size)},
      {"greatest_allocation", std::to_string(device.max_allocation_bytes) + " bytes"},
      {"buffer_alignment", std::to_string(device.base_alignment) + " bytes"},
      {"host_memory", device.is_unified ? "shared with the device" : "separate"},
      {"float64", device.dialect.has_fp64 ? "yes" : "no: needs cl_khr_fp64"},
      {"int64_atomics", device.dialect.has_int64_atomics ? "yes" : "no: needs cl_khr_int64_base_atomics"},
      {"rounded_division", device.dialect.has_rounded_division ? "by the device"
                           : device.dialect.has_fp64           ? "by way of float64"
                                                               : "no"},
      {"matrix_products", matmul_engine(device)},
      {"extensions", device.extensions},
  };
  for (const KnownFault& fault : device.faults) {
    if (fault.avoid != Fault::kClblast) texts.emplace_back("known_fault", fault.reason);
  }
  const std::vector<compute_plugin_property> properties = common::properties_of(texts);
  compute_plugin_device_info info{};
  info.struct_size = sizeof info;
  info.struct_type = COMPUTE_PLUGIN_STRUCT_DEVICE_INFO;
  info.id = device.id;
  info.description = borrow(device.name);
  info.vendor = borrow(device.vendor);
  info.driver_version = borrow(device.driver_version);
  info.pci_address = borrow(device.pci_address);
  info.uuid = borrow(device.uuid);
  info.libraries = borrow(library);
  info.memory_bytes = device.memory_bytes;
  info.kind = kind_of(device);
  info.score = device.dialect.compute_units;
  info.platform_index = device.platform_number;
  const std::string platform = device.platform_name + "\n" + device.platform_version + "\n" + device.platform_suffix;
  info.platform = borrow(platform);
  info.property_count = static_cast<int32_t>(properties.size());
  info.properties = properties.data();
  const auto levels = common::dtype_levels(device.dialect.has_fp64);
  info.dtypes = levels.data();
  info.dtype_count = static_cast<int32_t>(levels.size());
  info.unusable = borrow(device.unusable);
  info.subnormals = device.keeps_subnormals ? COMPUTE_SUBNORMALS_KEPT : COMPUTE_SUBNORMALS_FLUSHED;
  info.local_memory_bytes = device.dialect.local_memory_bytes;
  info.argument_bytes = device.dialect.max_block_bytes;
  info.max_group_size = device.max_group_size;
  if (device.dialect.has_ptx) info.subgroup_size_min = info.subgroup_size_max = 32;
  info.atomic_alignment = 4;
  sink.device(sink.context, &info);
}

compute_error* enumerate(const compute_plugin_sink* sink) {
  return guard([&] {
    LibraryReport report;
    bool opened = false, usable = false;
    cl_int status = CL_SUCCESS;
    std::string idle;  // platforms without a device
    std::vector<DeviceInfo> devices;
    common::on_own_stack([&] {
      const common::Compiling compiling;  // drivers load their compilers here, and make their threads
      opened = open_api(&report);
      if (opened) devices = list_devices(&status, &idle);
      usable = std::any_of(devices.begin(), devices.end(), may_take_clblast) && clblast() != nullptr;
    });
    const auto require = [&](common::Requirement requirement) { common::emit(*sink, requirement); };
    const std::string effect = "there are no OpenCL devices";
    if (!opened) {
      require({"OpenCL loader", report.tried, report.found, report.error, effect,
               "install the OpenCL ICD loader, e.g. ocl-icd-libopencl1", true, report.found.empty() ? 2 : 3});
      return;
    }
    require({"OpenCL loader", report.tried, report.found, "", effect, "", true, 1});
    if (devices.empty()) {
      const bool no_platform = status == CL_PLATFORM_NOT_FOUND_KHR || status == CL_SUCCESS;
      const std::string problem = "no platform has a device" + (idle.empty() ? "" : ": " + idle);
      const bool is_pocl = idle.find("Portable Computing Language") != std::string::npos;
      const char* const remedy =
          is_pocl ? "set POCL_CACHE_DIR to a folder that PoCL can write, or install another OpenCL driver"
                  : "install an OpenCL driver, e.g. pocl-opencl-icd";
      require({"OpenCL driver", "clGetPlatformIDs", "",
               no_platform ? problem : "clGetPlatformIDs: " + status_text(status), effect, remedy, true, 2});
      return;
    }
    std::string found;
    for (const DeviceInfo& device : devices) {
      const std::string text = device.platform_name + " (" + device.platform_version + ")";
      if (found.find(text) == std::string::npos) found += (found.empty() ? "" : ", ") + text;
    }
    require({"OpenCL driver", "clGetPlatformIDs", found, "", effect, "", true, 1});
    std::string libraries = "OpenCL loader, " + report.found;
    if (std::any_of(devices.begin(), devices.end(), may_take_clblast)) {
      const LibraryReport found = clblast_report();
      require({"CLBlast", found.tried, found.found, found.error,
               "large matrix products use generated kernels, even on devices where it is faster",
               "install CLBlast (Debian: libclblast1)", false,
               usable                ? 1
               : found.found.empty() ? 2
                                     : 3});
      if (usable) libraries += "\nCLBlast, " + found.found;
    }
    if (const std::string fourier = fourier_library(); !fourier.empty()) libraries += "\n" + fourier + ", built in";
    for (const DeviceInfo& device : devices) emit_device(*sink, device, libraries);
  });
}

std::unique_ptr<Device> open_device(uint64_t id) {
  const common::Compiling compiling;
  LibraryReport report;
  if (!open_api(&report)) throw Error(COMPUTE_ERROR_NOT_FOUND, "the OpenCL loader was not found: " + report.error);
  cl_int status = CL_SUCCESS;
  std::vector<DeviceInfo> devices = list_devices(&status);
  if (id < 1 || id > devices.size())
    throw Error(COMPUTE_ERROR_NOT_FOUND, "the opencl plugin has no device " + std::to_string(id));
  DeviceInfo& info = devices[id - 1];
  if (!info.unusable.empty()) throw Error(COMPUTE_ERROR_UNSUPPORTED, info.unusable);
  return std::make_unique<Device>(std::move(info));
}

compute_error* device_open(uint64_t id, const compute_plugin_device_options* options, uint64_t* out_device,
                           const compute_plugin_device_table** out_table) {
  *out_device = 0;
  *out_table = nullptr;
  return guard([&] {
    require_understood(options, "the device's options");
    std::unique_ptr<Device> device;
    const common::SignalsBlocked blocked;  // drivers make threads here
    // On the caller if possible: Oclgrind's checks keep a context's memory with the thread that made it.
    common::with_enough_stack([&] { device = open_device(id); });
    *out_device = handle_of(device.release());
    *out_table = &kDeviceTable;
  });
}

// ---- Native handles -------------------------------------------------------------------------------------------------

// `queue` and `place` are NULL for a device.
compute_error* native_handle(const Device& device, uint32_t kind, void* out_handle, cl_command_queue queue,
                             const compute_plugin_operand* place) {
  return guard([&] {
    const uint64_t memory = place != nullptr ? handle_of(memory_of(place->buffer)) : 0;
    const int64_t offset_bytes = place != nullptr ? place->offset_bytes : 0;
    if (kind == COMPUTE_NATIVE_OPENCL) {
      compute_native_opencl handle{};
      handle.platform = handle_of(device.info().platform);
      handle.device = handle_of(device.info().device);
      handle.context = handle_of(device.context());
      handle.queue = handle_of(queue);
      handle.memory = memory;
      handle.offset_bytes = offset_bytes;
      common::give_handle(out_handle, handle);
    } else if (kind == COMPUTE_NATIVE_DLPACK) {
      compute_native_dlpack handle{};
      handle.device_type = kDlOpenCl;
      handle.device_id = static_cast<int32_t>(device.info().id) - 1;
      handle.data = memory;
      handle.byte_offset = static_cast<uint64_t>(offset_bytes);
      handle.stream = handle_of(queue);
      common::give_handle(out_handle, handle);
    } else {
      common::refuse_handle("opencl", kind);
    }
  });
}

compute_error* native_device(uint64_t device, uint32_t kind, void* out_handle) {
  return native_handle(object<Device>(device), kind, out_handle, nullptr, nullptr);
}

compute_error* native_stream(uint64_t stream, uint32_t kind, void* out_handle) {
  Stream& self = object<Stream>(stream);
  cl_command_queue queue = nullptr;
  if (compute_error* error = guard([&] { queue = self.share_queue(); })) return error;
  return native_handle(*self.device(), kind, out_handle, queue, nullptr);
}

compute_error* native_buffer(uint64_t device, const compute_plugin_operand* place, uint32_t kind, void* out_handle) {
  return native_handle(object<Device>(device), kind, out_handle, nullptr, place);
}

constexpr compute_plugin_native_table native_table() {
  compute_plugin_native_table table{};
  table.table_size = sizeof table;
  table.device_handle = native_device;
  table.stream_handle = native_stream;
  table.buffer_handle = native_buffer;
  return table;
}

constexpr compute_plugin_native_table kNativeTable = native_table();

const void* get_extension(uint64_t, const char* name, int64_t name_size) {
  return std::string_view(name, static_cast<size_t>(name_size)) == COMPUTE_PLUGIN_EXT_NATIVE_V1 ? &kNativeTable
                                                                                                : nullptr;
}

constexpr compute_plugin_table plugin_table() {
  compute_plugin_table table{};
  table.table_size = sizeof table;
  table.enumerate = enumerate;
  table.device_open = device_open;
  table.on_exit = [] { common::end_polling(); };
  table.close = common::release_core;
  table.get_extension = get_extension;
  return table;
}

constexpr compute_plugin_table kPluginTable = plugin_table();

}  // namespace
}  // namespace compute::opencl

extern "C" {

COMPUTE_PLUGIN_EXPORT const compute_plugin_manifest* compute_plugin_query(void) {
  static const compute_plugin_manifest manifest = compute::common::make_manifest("opencl", COMPUTE_PLUGIN_VERSION);
  return &manifest;
}

COMPUTE_PLUGIN_EXPORT compute_error* compute_plugin_open(uint32_t interface_version, const compute_plugin_core* core,
                                                         const compute_plugin_table** out_table) {
  return compute::common::open_plugin("opencl", interface_version, core, compute::opencl::kPluginTable, out_table);
}

}  // extern "C"
