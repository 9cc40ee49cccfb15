// SPDX-License-Identifier: Apache-2.0
#include "core/device.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "core/buffer.hpp"
#include "core/config.hpp"
#include "core/copy_helpers.hpp"
#include "core/log.hpp"
#include "core/plan.hpp"
#include "core/printable.hpp"
#include "core/service.hpp"
#include "core/sized.hpp"
#include "core/text.hpp"
#include "core/timeline.hpp"

namespace compute {
namespace {


// Memory that the plugin allocates.
class PluginMemory final : public RawMemory {
 public:
  PluginMemory(Device& device, int32_t heap) : device_(device), heap_(heap) {}

  bool allocate(int64_t size_bytes, uint64_t* out_buffer) override {
    compute_plugin_allocation request{};
    request.struct_size = sizeof request;
    request.struct_type = COMPUTE_PLUGIN_STRUCT_ALLOCATION;
    request.heap = heap_;
    request.size_bytes = size_bytes;
    compute_error* error = device_.table.memory_allocate(device_.plugin_device, &request, out_buffer);
    if (error == nullptr) return true;
    if (error->code == COMPUTE_ERROR_OUT_OF_DEVICE_MEMORY || error->code == COMPUTE_ERROR_OUT_OF_MEMORY) {
      compute_error_free(error);
      return false;
    }
    device_.check(error);
    return false;
  }

  void free(uint64_t buffer, int64_t) noexcept override {
    device_.table.memory_free(device_.plugin_device, heap_, buffer);
  }

 private:
  Device& device_;
  const int32_t heap_;
};

struct OpenDevices {
  std::mutex mutex;
  std::vector<std::unique_ptr<Device>> devices;
};

OpenDevices& all_devices() {
  static auto* const immortal = new OpenDevices;
  return *immortal;
}

// The last one opened. One that has lost its context stays behind a newer one, for the handles to it.
Device* find_open(const DeviceEntry& entry) {
  const auto& devices = all_devices().devices;
  const auto found = std::find_if(devices.rbegin(), devices.rend(), [&](const auto& device) { return &device->entry == &entry; });
  return found != devices.rend() ? found->get() : nullptr;
}

// Whether opening the device once more may help. There is one host device: buffers compare with it.
bool can_be_reopened(const Device& device) {
  return device.health.load() == COMPUTE_HEALTH_CONTEXT_LOST && !device.is_host;
}

MemoryShape shape_of(const compute_plugin_heap& heap) {
  MemoryShape shape;
  shape.suballocate = heap.suballocation == COMPUTE_SUBALLOCATE_OFFSET;
  shape.offset_alignment = std::max<int64_t>(heap.offset_alignment, 64);
  if (heap.max_allocation_bytes > 0) shape.max_allocation_bytes = heap.max_allocation_bytes;
  return shape;
}

// In the child after fork() no device of the parent works, except those whose plugin has rebuilt itself.
void after_fork_in_child() {
  forget_background_thread();
  forget_other_threads();
  forget_copy_helpers();
  for (const auto& device : all_devices().devices) {
    const auto rebuild = device->plugin != nullptr ? device->plugin->table.on_fork_child : nullptr;
    if (device->plugin == nullptr || (rebuild != nullptr && rebuild() == 1)) continue;
    device->health.store(COMPUTE_HEALTH_FORKED);
  }
}

void shut_down_at_exit();

void prepare_process() {
  static std::once_flag once;
  std::call_once(once, [] {
    pthread_atfork(nullptr, nullptr, after_fork_in_child);
    std::atexit(shut_down_at_exit);
  });
}

using Deadline = std::chrono::steady_clock::time_point;

Deadline deadline_after(int64_t timeout_ns) noexcept {
  const auto now = std::chrono::steady_clock::now();
  return timeout_ns >= std::chrono::nanoseconds(Deadline::max() - now).count() ? Deadline::max()
                                                                                : now + std::chrono::nanoseconds(timeout_ns);
}

int64_t left_until(Deadline deadline) noexcept {
  if (deadline == Deadline::max()) return COMPUTE_TIMEOUT_NONE;
  return std::max<int64_t>(0, std::chrono::nanoseconds(deadline - std::chrono::steady_clock::now()).count());
}

bool drain(int64_t timeout_ns) noexcept {
  const Deadline deadline = deadline_after(timeout_ns);
  bool drained = true;
  for (const auto& device : all_devices().devices) {
    if (device->health.load() != COMPUTE_HEALTH_GOOD) continue;
    for (Timeline* timeline : timelines_of(*device)) {
      if (timeline->immediate || timeline->reached() >= timeline->submitted() || timeline->failure() != nullptr) continue;
      try {
        drained = timeline->wait(timeline->submitted(), left_until(deadline)) && drained;
      } catch (...) {
        // Failed work has ended.
      }
    }
  }
  return drained;
}

std::atomic<bool> plugins_closed{false};

void shut_down_at_exit() {
  if (!is_shut_down()) {
    const Deadline deadline = deadline_after(int64_t{2'000'000'000});
    // Callbacks may use what the program destroys next, and may end with calls.
    if (drain(left_until(deadline)) && !is_background_thread()) drain_background(left_until(deadline));
    refuse_calls();
    drain(left_until(deadline));  // what was submitted meanwhile
  }
  if (plugins_closed.load()) return;
  for (Plugin* plugin : Registry::instance().opened_plugins()) {
    if (plugin->table.on_exit != nullptr) plugin->table.on_exit(COMPUTE_EXIT_PROCESS);
  }
}

}  // namespace

Device& open_entry(const DeviceSelection& selection) {
  std::lock_guard guard(all_devices().mutex);
  const DeviceEntry& entry = *selection.device;
  Device* open = find_open(entry);
  if (open != nullptr && !can_be_reopened(*open)) {
    open->require_usable();
    const bool asks = selection.options.memory_limit || selection.options.streams;
    if (asks && (open->options.memory_limit != selection.options.memory_limit ||
                 open->options.streams != selection.options.streams)) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("{} is open already, with other options", entry.info.name));
    }
    return *open;
  }
  if (!entry.unusable.empty()) {
    throw Error(COMPUTE_ERROR_NOT_FOUND, fmt::format("{} cannot be used: {}", entry.info.name, entry.unusable));
  }
  all_devices().devices.reserve(all_devices().devices.size() + 1);
  auto device = std::make_unique<Device>(entry, selection.options);
  device->strict = selection.strict;
  all_devices().devices.push_back(std::move(device));
  prepare_process();
  return *all_devices().devices.back();
}

Device& open_device(const char* selector) {
  Device* device = nullptr;
  Registry::instance().select(selector, [&](const DeviceSelection& selection) { device = &open_entry(selection); });
  return *device;
}

Device& host_device() {
  static std::atomic<Device*> cached{nullptr};
  if (Device* device = cached.load(std::memory_order_acquire)) return *device;
  DeviceSelection selection;
  selection.device = Registry::instance().find("cpu");
  Device& device = open_entry(selection);
  cached.store(&device, std::memory_order_release);
  return device;
}

std::vector<Device*> open_devices() {
  std::lock_guard guard(all_devices().mutex);
  std::vector<Device*> devices;
  for (const auto& device : all_devices().devices) devices.push_back(device.get());
  return devices;
}

}  // namespace compute

compute_device::compute_device(const compute::DeviceEntry& entry, compute::DeviceOptions options)
    : entry(entry), name(entry.info.name), options(options), plugin(entry.plugin) {
  using namespace compute;
  int32_t out_of_memory = COMPUTE_ERROR_OUT_OF_DEVICE_MEMORY;
  MemoryShape shape;
  std::unique_ptr<RawMemory> raw;
  if (plugin != nullptr) {
    compute_plugin_device_options device_options{};
    device_options.struct_size = sizeof device_options;
    device_options.struct_type = COMPUTE_PLUGIN_STRUCT_DEVICE_OPTIONS;
    device_options.host_device = reinterpret_cast<uint64_t>(this);
    const compute_plugin_device_table* given = nullptr;
    check(plugin->table.device_open(entry.id, &device_options, &plugin_device, &given));
    if (given == nullptr) {
      throw Error(COMPUTE_ERROR_PLUGIN_REJECTED, fmt::format("{}: the plugin opened it without a table", name));
    }
    table = copy_sized(given, given->table_size);
    const compute_plugin_caps caps = [&] {
      const compute_plugin_caps* pointer = table.caps != nullptr ? table.caps(plugin_device) : nullptr;
      return copy_sized(pointer, pointer != nullptr ? pointer->struct_size : 0);
    }();
    if (caps.heap_count < 1 || caps.heaps == nullptr) {
      throw Error(COMPUTE_ERROR_PLUGIN_REJECTED, fmt::format("{}: the plugin states no heap", name));
    }
    for (int32_t i = 0; i < caps.heap_count; ++i) {
      const auto* at = reinterpret_cast<const compute_plugin_heap*>(reinterpret_cast<const uint8_t*>(caps.heaps) +
                                                                    static_cast<size_t>(i) * caps.heaps->struct_size);
      heaps.push_back(copy_sized(at, caps.heaps->struct_size));
      if (i > 0 && pinned_heap < 0 && (heaps.back().flags & COMPUTE_HEAP_PINNED) != 0 &&
          (heaps.back().flags & COMPUTE_HEAP_HOST_SPACE) != 0) {
        pinned_heap = i;
      }
    }
    for (const compute_plugin_heap& heap : heaps) {
      const int64_t alignment = heap.offset_alignment;
      if (alignment < 0 || (alignment & (alignment - 1)) != 0) {
        throw Error(COMPUTE_ERROR_PLUGIN_REJECTED,
                    fmt::format("{}: the plugin states an offset alignment of {}, no power of two", name, alignment));
      }
    }
    immediate = (caps.flags & COMPUTE_DEVICE_IMMEDIATE) != 0;
    is_host = (caps.flags & COMPUTE_DEVICE_IS_HOST) != 0;
    if (is_host && entry.info.plugin != std::string_view("cpu")) {
      throw Error(COMPUTE_ERROR_PLUGIN_REJECTED, fmt::format("{}: the plugin says that it is the host, which only the plugin cpu can be", name));
    }
    require_complete_table();
    if (!is_host) {
      shape = shape_of(heaps[0]);
      raw = std::make_unique<PluginMemory>(*this, 0);
    }
    if (pinned_heap >= 0) {
      pinned = std::make_unique<MemoryPool>(name + " (pinned)", std::make_unique<PluginMemory>(*this, pinned_heap),
                                            shape_of(heaps[static_cast<size_t>(pinned_heap)]), COMPUTE_ERROR_OUT_OF_MEMORY);
    }
    if (plugin->table.get_extension != nullptr) {
      const auto take = [&](const char* extension, auto& copy) {
        const void* found = plugin->table.get_extension(plugin_device, extension);
        if (found != nullptr) copy = copy_sized(static_cast<const std::remove_reference_t<decltype(copy)>*>(found), *static_cast<const int64_t*>(found));
        return found != nullptr ? &copy : nullptr;
      };
      graphs = take(COMPUTE_EXT_GRAPH_V1, graph_table);
      if (graphs != nullptr && (graphs->create == nullptr || graphs->run == nullptr || graphs->release == nullptr)) graphs = nullptr;
      native = take(COMPUTE_EXT_NATIVE_V1, native_table);
    }
  } else {
    is_host = immediate = true;
    no_ops_reason = "the cpu plugin is not there";
  }
  if (is_host) {
    raw = make_host_memory();
    shape = MemoryShape{};
    out_of_memory = COMPUTE_ERROR_OUT_OF_MEMORY;
  }
  memory = std::make_unique<MemoryPool>(name, std::move(raw), shape, out_of_memory);
  memory->reclaim = [this] { return drop_mirrors(*this); };
  plans = std::make_unique<PlanCache>(*this);

  const int64_t total = entry.info.memory_bytes;
  if (options.memory_limit) {
    memory->set_limit(options.memory_limit->of(total));
  } else if (const auto limit = setting(SettingId::kMemoryLimit).bytes; limit && !is_host) {
    memory->set_limit(limit->of(total));
  }
  if (const auto amount = setting(SettingId::kPreallocate).bytes; amount && !is_host) memory->preallocate(amount->of(total));
}

// Devices are destroyed only where opening one failed half-way.
compute_device::~compute_device() {
  if (plugin_device != 0 && table.close != nullptr) table.close(plugin_device);
}

// The slots that plugin.h does not call optional. A device without them is no device.
void compute_device::require_complete_table() const {
  const char* missing = nullptr;
  const auto need = [&](const void* slot, const char* slot_name) {
    if (slot == nullptr && missing == nullptr) missing = slot_name;
  };
#define COMPUTE_NEED(slot) need(reinterpret_cast<const void*>(table.slot), #slot)
  COMPUTE_NEED(caps);
  COMPUTE_NEED(close);
  if (!is_host) {
    COMPUTE_NEED(memory_allocate);
    COMPUTE_NEED(memory_free);
  }
  COMPUTE_NEED(stream_create);
  COMPUTE_NEED(stream_destroy);
  COMPUTE_NEED(stream_mark);
  COMPUTE_NEED(stream_wait);
  COMPUTE_NEED(stream_reached);
  COMPUTE_NEED(stream_sync);
  COMPUTE_NEED(copy_from_host);
  COMPUTE_NEED(copy_to_host);
  COMPUTE_NEED(copy);
  COMPUTE_NEED(fill);
  COMPUTE_NEED(op_query);
  COMPUTE_NEED(op_prepare);
  COMPUTE_NEED(op_run);
  COMPUTE_NEED(op_release);
#undef COMPUTE_NEED
  if (missing != nullptr) {
    throw compute::Error(COMPUTE_ERROR_PLUGIN_REJECTED,
                         fmt::format("{}: plugin {} leaves the required slot {} empty", name, plugin->path, missing));
  }
}

void compute_device::throw_unusable() const {
  using compute::Error;
  switch (health.load()) {
    case COMPUTE_HEALTH_FORKED:
      throw Error(COMPUTE_ERROR_FORKED,
                  fmt::format("{} was opened before fork() and plugin {} cannot take it into the child; fork before it is opened, or "
                              "start the child by exec",
                              name, entry.info.plugin));
    case COMPUTE_HEALTH_CONTEXT_LOST:
      throw Error(COMPUTE_ERROR_CONTEXT_LOST, fmt::format("{} has lost its context; opening it again makes a new handle that works", name));
    case COMPUTE_HEALTH_DEVICE_LOST:
      throw Error(COMPUTE_ERROR_DEVICE_LOST, fmt::format("{} is lost: it does not answer any more and cannot be opened again in this process", name));
    default:
      throw Error(COMPUTE_ERROR_RESTART_REQUIRED, fmt::format("{} can be used again after a restart of the process only", name));
  }
}

void compute_device::note_error(compute_error_code code) noexcept {
  int32_t severity = COMPUTE_HEALTH_GOOD;
  if (code == COMPUTE_ERROR_CONTEXT_LOST) severity = COMPUTE_HEALTH_CONTEXT_LOST;
  if (code == COMPUTE_ERROR_DEVICE_LOST) severity = COMPUTE_HEALTH_DEVICE_LOST;
  if (code == COMPUTE_ERROR_RESTART_REQUIRED) severity = COMPUTE_HEALTH_RESTART_REQUIRED;
  int32_t now = health.load();
  while (severity > now && !health.compare_exchange_weak(now, severity)) {
  }
}

void compute_device::check(compute_error* error) {
  if (error == nullptr) return;
  note_error(error->code);
  throw compute::Error::adopt(error).on_device(name);
}

// ---- The C interface -------------------------------------------------------------------------------------------------

using namespace compute;

extern "C" {

compute_error* compute_device_list(compute_device_info* infos, int64_t capacity, int64_t* out_count) {
  if (out_count != nullptr) *out_count = 0;
  return guard([&] {
    require_not_null(out_count, "out_count");
    const Running running;
    const auto& devices = Registry::instance().devices();
    write_list(infos, capacity, static_cast<int64_t>(devices.size()), "infos", out_count,
               [&](int64_t i) { return devices[static_cast<size_t>(i)]->info; });
  });
}

compute_error* compute_device_open(const char* selector, compute_device** out_device) {
  if (out_device != nullptr) *out_device = nullptr;
  return guard([&] {
    require_not_null(out_device, "out_device");
    const Running running;
    Device& device = open_device(selector);
    device.retain();
    *out_device = &device;
  });
}

compute_error* compute_device_which(const char* selector, int32_t format, compute_text** out_answer) {
  if (out_answer != nullptr) *out_answer = nullptr;
  return guard([&] {
    require_not_null(out_answer, "out_answer");
    require_format(format);
    const Running running;
    *out_answer = make_text(Registry::instance().which(selector, format));
  });
}

void compute_device_retain(compute_device* device) {
  if (device != nullptr && device->is_alive()) device->retain();
}
// Devices stay open until shutdown: closing one would take its pool and its compiled kernels away from the next user.
void compute_device_release(compute_device* device) {
  if (device != nullptr && device->is_alive()) device->drop();
}

const char* compute_device_name(const compute_device* device) {
  return device != nullptr && device->is_alive() ? device->name.c_str() : "";
}

compute_error* compute_device_get_info(compute_device* device, compute_device_info* out_info) {
  clear_sized(out_info);
  return guard([&] {
    require_not_null(out_info, "out_info");
    write_sized(checked(device).entry.info, out_info, "out_info");
  });
}

compute_error* compute_device_attributes(const char* name, compute_device_attribute* attributes, int64_t capacity,
                                         int64_t* out_count) {
  if (out_count != nullptr) *out_count = 0;
  return guard([&] {
    require_not_null(name, "name");
    require_not_null(out_count, "out_count");
    const Running running;
    const DeviceEntry* entry = Registry::instance().find(name);
    if (entry == nullptr) {
      throw Error(COMPUTE_ERROR_NOT_FOUND, fmt::format("no device is called {}\n{}", in_quotes(name),
                                                       Registry::instance().load_report(COMPUTE_FORMAT_TEXT)));
    }
    write_list(attributes, capacity, static_cast<int64_t>(entry->properties.size()), "attributes", out_count, [&](int64_t i) {
      compute_device_attribute value{};
      const auto& [name, text] = entry->properties[static_cast<size_t>(i)];
      value.name = name.c_str();
      value.name_size = static_cast<int64_t>(name.size());
      value.value = text.c_str();
      value.value_size = static_cast<int64_t>(text.size());
      return value;
    });
  });
}

compute_error* compute_device_get_statistics(compute_device* device, compute_device_statistics* out_statistics) {
  clear_sized(out_statistics);
  return guard([&] {
    require_not_null(out_statistics, "out_statistics");
    Device& self = checked(device);
    const MemoryStatistics memory = self.memory->statistics();
    const DeviceCounters& counters = self.counters;
    compute_device_statistics value{};
    value.memory_used = memory.used;
    value.memory_peak = memory.peak;
    value.memory_reserved = memory.reserved;
    value.memory_limit = memory.limit;
    value.memory_mirrors = memory.mirrors;
    value.blocks_live = memory.live_blocks;
    value.allocations = memory.requests;
    value.allocations_from_device = memory.raw_requests;
    value.ops_run = counters.ops_run;
    for (const Timeline* timeline : timelines_of(self)) value.ops_run += timeline->ops_run();
    value.ops_fallback = counters.ops_fallback;
    value.plans_live = counters.plans_live;
    value.plans_prepared = counters.plans_prepared;
    value.kernels_compiled = counters.kernels_compiled;
    value.transfers_to_device = counters.to_device;
    value.transfers_to_device_bytes = counters.to_device_bytes;
    value.transfers_from_device = counters.from_device;
    value.transfers_from_device_bytes = counters.from_device_bytes;
    value.transfers_implicit = counters.implicit;
    value.transfers_implicit_bytes = counters.implicit_bytes;
    value.mirror_hits = counters.mirror_hits;
    write_sized(value, out_statistics, "out_statistics");
  });
}

compute_error* compute_device_health(compute_device* device, int32_t* out_health) {
  if (out_health != nullptr) *out_health = COMPUTE_HEALTH_GOOD;
  return guard([&] {
    require_not_null(out_health, "out_health");
    *out_health = checked(device).health.load();
  });
}

compute_error* compute_device_trim(compute_device* device, int64_t keep_bytes) {
  return guard([&] {
    Device& self = checked(device);
    const Running running;
    if (keep_bytes < 0) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("keep_bytes is {}, below 0", keep_bytes));
    }
    for (Timeline* timeline : timelines_of(self)) timeline->poll();
    drop_mirrors(self);
    self.memory->trim(keep_bytes);
    if (self.pinned) self.pinned->trim(keep_bytes);
  });
}

compute_error* compute_device_synchronize(compute_device* device) {
  return guard([&] {
    Device& self = checked(device);
    const Running running;
    self.require_usable();
    for (Timeline* timeline : timelines_of(self)) {
      const uint64_t number = timeline->submitted();
      if (number > 0 && timeline->failure() == nullptr) timeline->wait(number, COMPUTE_TIMEOUT_NONE);
    }
  });
}

compute_error* compute_shutdown(int64_t timeout_ns, int32_t* out_drained) {
  if (out_drained != nullptr) *out_drained = 0;
  return guard([&] {
    require_not_null(out_drained, "out_drained");
    if (timeout_ns < 0) throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("timeout_ns is {}, below 0", timeout_ns));
    const Running running;
    if (is_background_thread()) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, "compute_shutdown: called inside a callback, which it would wait for");
    }
    std::lock_guard guard(all_devices().mutex);
    const auto deadline = deadline_after(timeout_ns);
    bool drained = drain(timeout_ns) && drain_background(left_until(deadline));
    drained = refuse_calls_and_wait(left_until(deadline)) && drained;
    drained = drain(left_until(deadline)) && drained;  // what was submitted meanwhile
    drained = drained && drain_background(left_until(deadline));
    *out_drained = drained ? 1 : 0;
    if (!drained) return;  // work still uses the devices: they stay open until the process ends
    plugins_closed.store(true);
    for (const auto& device : all_devices().devices) {
      if (device->plugin == nullptr || device->health.load() != COMPUTE_HEALTH_GOOD) continue;
      device->plans->clear();
      for (Timeline* timeline : timelines_of(*device)) timeline->close();
      device->memory->give_everything_back();
      if (device->pinned) device->pinned->give_everything_back();
      device->table.close(device->plugin_device);
      device->plugin_device = 0;
    }
    for (Plugin* plugin : Registry::instance().opened_plugins()) {
      if (plugin->table.close != nullptr) plugin->table.close();
    }
  });
}

}  // extern "C"
