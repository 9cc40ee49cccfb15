// SPDX-License-Identifier: Apache-2.0
// The two exported functions, the manifest, and the devices.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <iterator>

#include <unistd.h>

#include "minimal.hpp"

namespace minimal {

const compute_plugin_core* core = nullptr;

std::string setting(std::string_view name) {
  char buffer[256];
  const int64_t size = core->setting(name.data(), static_cast<int64_t>(name.size()), buffer, sizeof buffer);
  return size < 0 || size > std::ssize(buffer) ? std::string() : std::string(buffer, size);
}

namespace {

constexpr std::string_view kSanitizer =
#if defined(__SANITIZE_ADDRESS__)
    "address";
#elif defined(__SANITIZE_THREAD__)
    "thread";
#else
    "";
#endif

// ---- Settings, all from the environment -----------------------------------------------------------------------------

// COMPUTE_MINIMAL_MEMORY: bytes of each device.
int64_t memory_bytes() {
  int64_t bytes = int64_t{1} << 30;
  const std::string value = setting("COMPUTE_MINIMAL_MEMORY");
  std::from_chars(value.data(), value.data() + value.size(), bytes);
  return bytes;
}

// COMPUTE_MINIMAL_NO_PINNED=1: a device without any memory that the host can see. Then faults come through stream_sync.
bool has_pinned_heap() { return setting("COMPUTE_MINIMAL_NO_PINNED") != "1" && !lacks("pinned"); }

// By dtype id: all of every dtype, but for what COMPUTE_MINIMAL_WITHOUT names: "float16" altogether, or one of
// "float16-matmul", "float16-arithmetic" and "float16-convert", each with those before it.
const std::vector<uint32_t>& dtype_levels() {
  static const std::vector<uint32_t> levels = [] {
    constexpr std::string_view kNames[] = {"",        "bool",    "int8",      "int16",     "int32",   "int64",
                                           "uint8",   "uint16",  "uint32",    "uint64",    "float16", "bfloat16",
                                           "float32", "float64", "complex64", "complex128"};
    std::vector<uint32_t> all(COMPUTE_DTYPE_COMPLEX128 + 1);
    for (size_t dtype = COMPUTE_DTYPE_BOOL; dtype < all.size(); ++dtype) {
      const std::string_view name = kNames[dtype];
      uint32_t level = COMPUTE_DTYPE_LEVEL_STORAGE | COMPUTE_DTYPE_LEVEL_CONVERT | COMPUTE_DTYPE_LEVEL_ARITHMETIC |
                       COMPUTE_DTYPE_LEVEL_MATMUL;
      if (lacks(name, "-matmul")) level &= ~uint32_t{COMPUTE_DTYPE_LEVEL_MATMUL};
      if (lacks(name, "-arithmetic")) level = COMPUTE_DTYPE_LEVEL_STORAGE | COMPUTE_DTYPE_LEVEL_CONVERT;
      if (lacks(name, "-convert")) level = COMPUTE_DTYPE_LEVEL_STORAGE;
      if (lacks(name)) level = 0;
      all[dtype] = level;
    }
    if (const auto packed = static_cast<size_t>(packed_dtype()); packed != 0) {
      all.resize(packed + 1);
      all[packed] = COMPUTE_DTYPE_LEVEL_STORAGE;
    }
    return all;
  }();
  return levels;
}

// ---- Devices --------------------------------------------------------------------------------------------------------

constexpr uint64_t kDeviceCount = 2;

compute_plugin_heap make_heap(uint32_t flags, int32_t role, int64_t size_bytes) {
  compute_plugin_heap heap = {};
  heap.struct_size = sizeof heap;
  heap.struct_type = COMPUTE_PLUGIN_STRUCT_HEAP;
  heap.flags = flags;
  heap.suballocation = lacks("offset") ? COMPUTE_PLUGIN_SUBALLOCATE_NONE : COMPUTE_PLUGIN_SUBALLOCATE_OFFSET;
  heap.size_bytes = size_bytes;
  heap.max_allocation_bytes = size_bytes < 0 ? INT64_MAX : size_bytes;
  heap.offset_alignment = 16;
  heap.base_alignment = 256;
  heap.role = role;
  return heap;
}

// What caps() returns must live until close. Both devices are alike, so one object is enough; it is never destroyed,
// since the process may exit while work is still running.
const compute_plugin_caps* caps(uint64_t) {
  constexpr uint32_t kHostFlags =
      COMPUTE_PLUGIN_HEAP_PINNED | COMPUTE_PLUGIN_HEAP_HOST_SPACE | COMPUTE_PLUGIN_HEAP_HOST_VISIBLE;
  static const std::vector<compute_plugin_heap> heaps = [] {
    std::vector<compute_plugin_heap> list = {make_heap(memory_is_visible() ? COMPUTE_PLUGIN_HEAP_HOST_VISIBLE : 0u,
                                                       COMPUTE_PLUGIN_HEAP_ROLE_DEVICE, memory_bytes())};
    if (!has_pinned_heap()) return list;
    if (separates_heaps()) {
      list.push_back(make_heap(kHostFlags, COMPUTE_PLUGIN_HEAP_ROLE_UPLOAD, -1));
      list.push_back(make_heap(kHostFlags, COMPUTE_PLUGIN_HEAP_ROLE_READBACK, -1));
    } else {
      list.push_back(make_heap(kHostFlags, COMPUTE_PLUGIN_HEAP_ROLE_SHARED, -1));
    }
    return list;
  }();
  static const compute_plugin_caps caps = {
      sizeof caps,    COMPUTE_PLUGIN_STRUCT_CAPS, nullptr, 0, static_cast<int32_t>(heaps.size()), heaps.data(),
      kPriorityLeast, kPriorityGreatest};
  return &caps;
}

// There is nothing to measure but memory.
compute_error* telemetry(uint64_t device, compute_plugin_telemetry* out_telemetry, compute_plugin_take_process take,
                         void* context) {
  return guard([&] {
    understand(*out_telemetry, "the telemetry");
    out_telemetry->memory_process_bytes = from_handle<Device>(device).memory.used_bytes();
    compute_plugin_process process = {};
    process.struct_size = sizeof process;
    process.struct_type = COMPUTE_PLUGIN_STRUCT_PROCESS;
    process.process_id = getpid();
    process.memory_bytes = out_telemetry->memory_process_bytes;
    take(context, &process);
  });
}

void close(uint64_t device) { delete &from_handle<Device>(device); }  // joins the threads of its streams

// What is optional stays NULL but for a few: memory_map, mark_time, clock, telemetry, and memory_import where tests
// ask for it.
const compute_plugin_device_table& device_table() {
  static const compute_plugin_device_table device_table = [] {
    compute_plugin_device_table table = {};
    table.table_size = sizeof table;
    table.caps = caps;
    table.close = close;
    fill_memory_slots(table);
    fill_stream_slots(table);
    fill_op_slots(table);
    if (!lacks("telemetry")) table.telemetry = telemetry;
    return table;
  }();
  return device_table;
}

// The device settings, as a line of the log.
void log_settings(uint64_t id, const compute_plugin_device_options& options) {
  std::string line = "minimal" + std::to_string(id) + " is opened with";
  for (int32_t i = 0; i < options.setting_count; ++i) {
    const compute_plugin_device_setting& setting = options.settings[i];
    line += " " + std::string(setting.name.data, setting.name.size) + "=" +
            std::string(setting.value.data, setting.value.size);
  }
  log("load", line);
}

compute_error* device_open(uint64_t id, const compute_plugin_device_options* options, uint64_t* out_device,
                           const compute_plugin_device_table** out_table) {
  *out_device = 0;
  *out_table = nullptr;
  return guard([&] {
    understand(*options, "the device's options");
    log_settings(id, *options);
    if (const std::string how = setting("COMPUTE_MINIMAL_BLOBS"); !how.empty()) try_blobs(how);
    *out_device = to_handle(new Device(id, memory_bytes()));
    *out_table = &device_table();
  });
}

compute_error* enumerate(const compute_plugin_sink* sink) {
  return guard([&] {
    for (uint64_t id = 0; id < kDeviceCount; ++id) {
      const std::string description = "Minimal device " + std::to_string(id);
      compute_plugin_device_info info = {};
      info.struct_size = sizeof info;
      info.struct_type = COMPUTE_PLUGIN_STRUCT_DEVICE_INFO;
      info.id = id;
      info.description = text(description);
      info.vendor = text("Compute");
      info.memory_bytes = memory_bytes();
      info.kind = COMPUTE_DEVICE_KIND_ACCELERATOR;
      info.dtypes = dtype_levels().data();
      info.dtype_count = static_cast<int32_t>(dtype_levels().size());
      info.subnormals = COMPUTE_SUBNORMALS_KEPT;
      info.subgroup_size_min = 1;
      info.subgroup_size_max = 4;
      info.local_memory_bytes = 1 << 15;
      info.argument_bytes = 128;
      info.max_group_size = 64;
      info.atomic_alignment = 4;
      sink->device(sink->context, &info);
    }
  });
}

// ---- Native handles -------------------------------------------------------------------------------------------------

// Writes what fits of a struct behind its first three fields.
template <class T>
void give(void* out_handle, const T& value) {
  auto* out = static_cast<compute_struct_header*>(out_handle);
  const size_t size = std::min<size_t>(out->struct_size, sizeof value);
  std::memcpy(out + 1, reinterpret_cast<const std::byte*>(&value) + sizeof *out, size - sizeof *out);
}

compute_error* native_handle(const Device& device, uint32_t kind, void* out_handle, uint64_t stream, void* data) {
  return guard([&] {
    if (kind == COMPUTE_NATIVE_HOST && data != nullptr) {
      compute_native_host handle = {};
      handle.address = data;
      return give(out_handle, handle);
    }
    if (kind != COMPUTE_NATIVE_DLPACK)
      throw Failure(COMPUTE_ERROR_UNSUPPORTED, "minimal: no native handles of kind " + std::to_string(kind));
    compute_native_dlpack handle = {};
    handle.device_type = kDlExtDev;
    handle.device_id = static_cast<int32_t>(device.id);
    handle.data = to_handle(data);
    handle.stream = stream;
    give(out_handle, handle);
  });
}

compute_error* native_device(uint64_t device, uint32_t kind, void* out_handle) {
  return native_handle(from_handle<Device>(device), kind, out_handle, 0, nullptr);
}

compute_error* native_stream(uint64_t stream, uint32_t kind, void* out_handle) {
  return native_handle(from_handle<Stream>(stream).device, kind, out_handle, stream, nullptr);
}

compute_error* native_buffer(uint64_t device, const compute_plugin_operand* place, uint32_t kind, void* out_handle) {
  const Device& self = from_handle<Device>(device);
  void* data = nullptr;
  if (compute_error* error = guard([&] { data = self.memory.resolve(*place, 0, 0); })) return error;
  return native_handle(self, kind, out_handle, 0, data);
}

constexpr compute_plugin_native_table kNativeTable = {sizeof(compute_plugin_native_table), native_device, native_stream,
                                                      native_buffer};

// ---- The plugin -----------------------------------------------------------------------------------------------------

const void* get_extension(uint64_t, const char* name, int64_t name_size) {
  const std::string_view wanted(name, static_cast<size_t>(name_size));
  if (wanted == COMPUTE_PLUGIN_EXT_GRAPH_V1 && has_graphs()) return &graph_table();
  if (wanted == COMPUTE_PLUGIN_EXT_COLLECTIVE_V1 && has_collectives()) return &collective_table();
  if (wanted == COMPUTE_PLUGIN_EXT_NATIVE_V1 && has_native_handles()) return &kNativeTable;
  if (wanted == COMPUTE_PLUGIN_EXT_OPS_V1 && offers_ops()) return &ops_table();
  if (wanted == COMPUTE_PLUGIN_EXT_EXTERNAL_DRAFT1 && !lacks("external")) return &external_table();
  return nullptr;
}

// Whose the plugin is, between compute_plugin_open and close.
std::atomic<const compute_plugin_core*> owner{nullptr};

const compute_plugin_table kTable = [] {
  compute_plugin_table table = {};
  table.table_size = sizeof table;
  table.enumerate = enumerate;
  table.device_open = device_open;
  table.get_extension = get_extension;
  table.close = [] { owner = nullptr; };
  return table;
}();

// COMPUTE_MINIMAL_MODE, which does nothing but reach device_open.
const compute_plugin_setting kSettings[] = {{sizeof(compute_plugin_setting), COMPUTE_PLUGIN_STRUCT_SETTING, nullptr,
                                             text("COMPUTE_MINIMAL_MODE"), COMPUTE_PLUGIN_SETTING_CHOICE,
                                             COMPUTE_PLUGIN_SETTING_OF_DEVICE, text("fast exact"), text("fast"),
                                             text("how a device of the tests is opened")}};

const compute_plugin_manifest kManifest = [] {
  compute_plugin_manifest manifest = {};
  manifest.struct_size = sizeof manifest;
  manifest.struct_type = COMPUTE_PLUGIN_STRUCT_MANIFEST;
  manifest.interface_min = COMPUTE_PLUGIN_INTERFACE;
  manifest.interface_max = COMPUTE_PLUGIN_INTERFACE;
  manifest.draft = COMPUTE_PLUGIN_DRAFT;
  manifest.name = text("minimal");
  manifest.version = text("1.0.0");
  manifest.vendor = text("Compute");
  manifest.license = text("Apache-2.0");
  manifest.build_id = text(MINIMAL_BUILD_ID);
  manifest.sanitizer = text(kSanitizer);
  manifest.settings = kSettings;
  manifest.setting_count = std::size(kSettings);
  return manifest;
}();

}  // namespace

bool has_native_handles() { return setting("COMPUTE_MINIMAL_NATIVE") == "1"; }
bool separates_heaps() { return setting("COMPUTE_MINIMAL_SEPARATE_HEAPS") == "1"; }
bool plans_need_memory() { return setting("COMPUTE_MINIMAL_ARGUMENTS") == "1"; }
bool runs_on_host(std::string_view primitive) { return setting("COMPUTE_MINIMAL_ON_HOST") == primitive; }
int32_t fault_code() {
  int32_t code = COMPUTE_PLUGIN_FAULT_INDEX;
  const std::string value = setting("COMPUTE_MINIMAL_FAULT");
  std::from_chars(value.data(), value.data() + value.size(), code);
  return code;
}
bool offers_ops() {
  static const bool offers = setting("COMPUTE_MINIMAL_OPS") == "1";
  return offers;
}
bool has_graphs() { return setting("COMPUTE_MINIMAL_GRAPHS") == "1"; }
bool has_collectives() { return setting("COMPUTE_MINIMAL_COLLECTIVES") == "1"; }
bool memory_is_visible() { return setting("COMPUTE_MINIMAL_HOST_VISIBLE") == "1"; }

// Allocates nothing: it is called where a failed allocation is tested.
bool lacks(std::string_view capability, std::string_view suffix) {
  static const struct List {
    List() {
      constexpr std::string_view kName = "COMPUTE_MINIMAL_WITHOUT";
      const int64_t size = core->setting(kName.data(), std::ssize(kName), text, sizeof text);
      if (size > 0 && size <= std::ssize(text)) view = {text, static_cast<size_t>(size)};
    }
    char text[256];
    std::string_view view;
  } list;
  for (std::string_view rest = list.view; !rest.empty();) {
    std::string_view entry = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(entry.size() + 1, rest.size()));
    if (!entry.starts_with(capability)) continue;
    entry.remove_prefix(capability.size());
    if (entry == suffix) return true;
  }
  return false;
}

uint32_t level_of(int32_t dtype) { return dtype_levels()[static_cast<size_t>(dtype)]; }

namespace {

// Two copies of the library in one process load this file once. They cannot share it, because it has one core table.
compute_error* open(const compute_plugin_core* given, const compute_plugin_table** out_table) {
  *out_table = nullptr;
  const compute_plugin_core* const first = owner;
  if (first != nullptr && first != given)
    return make_error(COMPUTE_ERROR_UNSUPPORTED, "minimal: another copy of the library uses the plugin", given);
  owner = core = given;
  *out_table = &kTable;
  return nullptr;
}

}  // namespace
}  // namespace minimal

extern "C" COMPUTE_PLUGIN_EXPORT const compute_plugin_manifest* compute_plugin_query(void) {
  return &minimal::kManifest;
}

extern "C" COMPUTE_PLUGIN_EXPORT compute_error* compute_plugin_open(uint32_t, const compute_plugin_core* core,
                                                                    const compute_plugin_table** out_table) {
  return minimal::open(core, out_table);
}
