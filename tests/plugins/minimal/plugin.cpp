// SPDX-License-Identifier: Apache-2.0
// The two exported functions, the manifest, and the devices.
#include <array>
#include <charconv>
#include <iterator>

#include "minimal.hpp"

namespace minimal {

const compute_plugin_host* host = nullptr;

namespace {

// By dtype id: all of every dtype.
constexpr std::array<uint32_t, COMPUTE_DTYPE_COMPLEX128 + 1> kDtypeLevels = [] {
  std::array<uint32_t, COMPUTE_DTYPE_COMPLEX128 + 1> levels{};
  for (size_t dtype = COMPUTE_DTYPE_BOOL; dtype < levels.size(); ++dtype) {
    levels[dtype] = COMPUTE_DTYPE_STORAGE | COMPUTE_DTYPE_CONVERT | COMPUTE_DTYPE_ARITHMETIC | COMPUTE_DTYPE_MATMUL;
  }
  return levels;
}();

constexpr std::string_view kSanitizer =
#if defined(__SANITIZE_ADDRESS__)
    "address";
#elif defined(__SANITIZE_THREAD__)
    "thread";
#else
    "";
#endif

// ---- Settings, all from the environment -----------------------------------------------------------------------------

std::string setting(std::string_view name) {
  char buffer[64];
  const int64_t size = host->setting(name.data(), static_cast<int64_t>(name.size()), buffer, sizeof buffer);
  return size < 0 || size > std::ssize(buffer) ? std::string() : std::string(buffer, size);
}

// COMPUTE_MINIMAL_MEMORY: bytes of each device.
int64_t memory_bytes() {
  int64_t bytes = int64_t{1} << 30;
  const std::string value = setting("COMPUTE_MINIMAL_MEMORY");
  std::from_chars(value.data(), value.data() + value.size(), bytes);
  return bytes;
}

// COMPUTE_MINIMAL_NO_PINNED=1: a device without any memory that the host can see. Then faults come through stream_sync.
bool has_pinned_heap() { return setting("COMPUTE_MINIMAL_NO_PINNED") != "1"; }

// ---- Devices --------------------------------------------------------------------------------------------------------

constexpr uint64_t kDeviceCount = 2;

compute_plugin_heap make_heap(uint32_t flags, int64_t size_bytes) {
  compute_plugin_heap heap = {};
  heap.struct_size = sizeof heap;
  heap.struct_type = COMPUTE_PLUGIN_STRUCT_HEAP;
  heap.flags = flags;
  heap.suballocation = COMPUTE_SUBALLOCATE_OFFSET;
  heap.size_bytes = size_bytes;
  heap.max_allocation_bytes = size_bytes < 0 ? INT64_MAX : size_bytes;
  heap.offset_alignment = 16;
  heap.base_alignment = 256;
  return heap;
}

// What caps() returns must live until close. Both devices are alike, so one object is enough; it is never destroyed,
// since the process may exit while work is still running.
const compute_plugin_caps* caps(uint64_t) {
  static const compute_plugin_heap heaps[] = {
      make_heap(COMPUTE_HEAP_DEVICE_LOCAL | (memory_is_visible() ? COMPUTE_HEAP_HOST_VISIBLE : 0), memory_bytes()),
      make_heap(COMPUTE_HEAP_PINNED | COMPUTE_HEAP_HOST_SPACE | COMPUTE_HEAP_HOST_VISIBLE | COMPUTE_HEAP_COHERENT, -1),
  };
  static const compute_plugin_caps caps = {sizeof caps, COMPUTE_PLUGIN_STRUCT_CAPS, nullptr,
                                           0,           has_pinned_heap() ? 2 : 1,  heaps};
  return &caps;
}

void close(uint64_t device) { delete &from_handle<Device>(device); }  // joins the threads of its streams

// What is optional stays NULL: memory_info, memory_import, copy_peer, kernels. Only memory_map is there.
const compute_plugin_device_table kDeviceTable = [] {
  compute_plugin_device_table table = {};
  table.table_size = sizeof table;
  table.caps = caps;
  table.close = close;
  fill_memory_slots(table);
  fill_stream_slots(table);
  fill_op_slots(table);
  return table;
}();

compute_error* device_open(uint64_t, const compute_plugin_device_options*, uint64_t* out_device,
                           const compute_plugin_device_table** out_table) {
  *out_device = 0;
  *out_table = nullptr;
  return guard([&] {
    *out_device = to_handle(new Device(memory_bytes()));
    *out_table = &kDeviceTable;
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
      info.platform_index = -1;
      info.dtypes = kDtypeLevels.data();
      info.dtype_count = static_cast<int32_t>(kDtypeLevels.size());
      sink->device(sink->context, &info);
    }
  });
}

// ---- The plugin -----------------------------------------------------------------------------------------------------

const compute_plugin_table kTable = [] {
  compute_plugin_table table = {};
  table.table_size = sizeof table;
  table.enumerate = enumerate;
  table.device_open = device_open;
  return table;
}();

const compute_plugin_manifest kManifest = [] {
  compute_plugin_manifest manifest = {};
  manifest.struct_size = sizeof manifest;
  manifest.struct_type = COMPUTE_PLUGIN_STRUCT_MANIFEST;
  manifest.interface_min = COMPUTE_PLUGIN_INTERFACE;
  manifest.interface_max = COMPUTE_PLUGIN_INTERFACE;
  manifest.draft = COMPUTE_PLUGIN_DRAFT;
  manifest.flags = COMPUTE_PLUGIN_UNLOADABLE;
  manifest.name = text("minimal");
  manifest.version = text("1.0.0");
  manifest.vendor = text("Compute");
  manifest.license = text("Apache-2.0");
  manifest.build_id = text(MINIMAL_BUILD_ID);
  manifest.sanitizer = text(kSanitizer);
  return manifest;
}();

}  // namespace

bool memory_is_visible() { return setting("COMPUTE_MINIMAL_HOST_VISIBLE") == "1"; }

}  // namespace minimal

extern "C" COMPUTE_PLUGIN_EXPORT const compute_plugin_manifest* compute_plugin_query(void) {
  return &minimal::kManifest;
}

extern "C" COMPUTE_PLUGIN_EXPORT compute_error* compute_plugin_open(uint32_t, const compute_plugin_host* host,
                                                                    const compute_plugin_table** out_table) {
  minimal::host = host;
  *out_table = &minimal::kTable;
  return nullptr;
}
