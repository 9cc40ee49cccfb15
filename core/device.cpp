// SPDX-License-Identifier: Apache-2.0
#include "core/device.hpp"

#include <fmt/format.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "core/buffer.hpp"
#include "core/config.hpp"
#include "core/life.hpp"
#include "core/log.hpp"
#include "core/plan.hpp"
#include "core/printable.hpp"
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
    compute_error* error = device_.table.memory_allocate(heap_, size_bytes, out_buffer);
    if (error == nullptr) return true;
    if (error->code == COMPUTE_ERROR_OUT_OF_DEVICE_MEMORY || error->code == COMPUTE_ERROR_OUT_OF_MEMORY) {
      compute_error_free(error);
      return false;
    }
    device_.check(error);
    return false;
  }

  std::optional<MemoryState> state() noexcept override {
    if (!device_.table.has_memory_info()) return std::nullopt;
    MemoryState state;
    if (compute_error* error = device_.table.memory_info(&state.available, &state.total)) {
      compute_error_free(error);
      return std::nullopt;
    }
    return state;
  }

  void free(uint64_t buffer, int64_t) noexcept override {
    const CallerWorld world;
    device_.table.memory_free(heap_, buffer);
  }

 private:
  Device& device_;
  const int32_t heap_;
};

constexpr int64_t kTensorAlignment = 64;  // as compute.h promises

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

// Read without the lock.
std::atomic<Device*> opened_last{nullptr};

}  // namespace

Device& open_entry(const DeviceSelection& selection) {
  std::lock_guard guard(all_devices().mutex);
  const DeviceEntry& entry = *selection.device;
  Device* open = find_open(entry);
  if (open != nullptr && !can_be_reopened(*open)) {
    open->require_usable();
    const bool asks = selection.options.memory_limit.has_value();
    if (asks && open->options.memory_limit != selection.options.memory_limit) {
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
  device->opened_before = opened_last.load(std::memory_order_relaxed);
  opened_last.store(device.get(), std::memory_order_release);
  all_devices().devices.push_back(std::move(device));
  prepare_for_the_end();
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

Device* last_opened_device() noexcept { return opened_last.load(std::memory_order_acquire); }

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
    shape = open_in_plugin();
    if (!is_host) raw = std::make_unique<PluginMemory>(*this, 0);
  } else {
    is_host = immediate = true;
    no_ops_reason = entry.no_ops;
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
  } else if (const auto limit = setting(SettingId::kMemoryLimit).bytes; limit) {
    memory->set_limit(limit->of(total));
  }
  if (const auto amount = setting(SettingId::kPreallocate).bytes; amount) memory->preallocate(amount->of(total));
}

namespace compute {
namespace {

// COMPUTE_DEBUG=plugin: whether a heap is what its flags say, tried with one small allocation.
void try_heap(Device& device, int32_t index) {
  constexpr int64_t kBytes = 4096;
  const compute_plugin_heap& heap = device.heaps[static_cast<size_t>(index)];
  const auto reject = [&](const std::string& what) {
    throw Error(COMPUTE_ERROR_PLUGIN_REJECTED, fmt::format("{}: heap {} of the plugin {}", device.name, index, what));
  };
  uint64_t buffer = 0;
  device.check(device.table.memory_allocate(index, kBytes, &buffer));
  const auto free_buffer = [&](void*) { device.table.memory_free(index, buffer); };
  const std::unique_ptr<void, decltype(free_buffer)> owner(&buffer, free_buffer);
  if ((heap.flags & COMPUTE_HEAP_HOST_SPACE) != 0) {
    const uint64_t alignment = static_cast<uint64_t>(std::max<int64_t>(heap.base_alignment, 64));
    if (buffer % alignment != 0) reject(fmt::format("is HOST_SPACE and gave {:#x}, which is not aligned to {}", buffer, alignment));
    std::array<char, kBytes> copy;
    const iovec here{copy.data(), copy.size()}, there{reinterpret_cast<void*>(buffer), copy.size()};
    if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) < 0 && errno == EFAULT) {
      reject(fmt::format("is HOST_SPACE and gave {:#x}, where there is no memory of the host", buffer));
    }
  }
  if ((heap.flags & COMPUTE_HEAP_HOST_VISIBLE) == 0 || (heap.flags & COMPUTE_HEAP_HOST_SPACE) != 0) return;
  if (!device.table.has_memory_map()) reject("is HOST_VISIBLE, and its table has no memory_map");
  const auto map = [&](int32_t access) {
    void* data = nullptr;
    compute_error* error = device.table.memory_map(index, {buffer, 0}, kBytes, access, &data);
    if (error != nullptr) reject("is HOST_VISIBLE and cannot be mapped: " + Error::adopt(error).message);
    return data;
  };
  void* data = map(COMPUTE_TENSOR_OUTPUT);
  std::memset(data, 0xC5, kBytes);
  device.table.memory_unmap(index, buffer, data);
  data = map(COMPUTE_TENSOR_INPUT);
  const auto* bytes = static_cast<const unsigned char*>(data);
  const bool is_kept = std::all_of(bytes, bytes + kBytes, [](unsigned char byte) { return byte == 0xC5; });
  device.table.memory_unmap(index, buffer, data);
  if (!is_kept) reject("is HOST_VISIBLE and lost what was written through memory_map");
}

}  // namespace
}  // namespace compute

compute::MemoryShape compute_device::open_in_plugin() {
  using namespace compute;
  DeviceCaps caps = table.open(plugin->table, entry.id, reinterpret_cast<uint64_t>(this), name);
  heaps = std::move(caps.heaps);
  immediate = (caps.flags & COMPUTE_DEVICE_IMMEDIATE) != 0;
  is_host = (caps.flags & COMPUTE_DEVICE_IS_HOST) != 0;
  if (is_host && entry.info.plugin != std::string_view("cpu")) {
    throw Error(COMPUTE_ERROR_PLUGIN_REJECTED, fmt::format("{}: the plugin says that it is the host, which only the plugin cpu can be", name));
  }
  constexpr uint32_t kServesHost = COMPUTE_HEAP_PINNED | COMPUTE_HEAP_HOST_SPACE;
  for (size_t i = 1; i < heaps.size() && pinned_heap < 0; ++i) {
    if ((heaps[i].flags & kServesHost) == kServesHost) pinned_heap = static_cast<int32_t>(i);
  }
  if (pinned_heap >= 0) {
    pinned = std::make_unique<MemoryPool>(name + " (pinned)", std::make_unique<PluginMemory>(*this, pinned_heap),
                                          shape_of(heaps[static_cast<size_t>(pinned_heap)]), COMPUTE_ERROR_OUT_OF_MEMORY);
  }
  if (const int64_t alignment = heaps[0].base_alignment; alignment != 0 && alignment < kTensorAlignment) {
    throw Error(COMPUTE_ERROR_PLUGIN_REJECTED,
                fmt::format("{}: the plugin aligns allocations to {} bytes; tensors need {}", name, alignment, kTensorAlignment));
  }
  table.extensions(plugin->table, graphs, native);
  if (debug_checks("plugin") && !is_host) {
    for (size_t i = 0; i < heaps.size(); ++i) try_heap(*this, static_cast<int32_t>(i));
  }
  return shape_of(heaps[0]);
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
    const std::vector<const DeviceEntry*> devices = Registry::instance().devices();
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
    const InUse in_use;
    // After shutdown the device is closed; in a forked child its driver is not touched.
    const bool may_ask = in_use.may_go_on() && self.health.load() != COMPUTE_HEALTH_FORKED;
    const MemoryStatistics memory = self.memory->statistics();
    const DeviceCounters& counters = self.counters;
    compute_device_statistics value{};
    value.memory_used = memory.used;
    value.memory_peak = memory.peak;
    value.memory_reserved = memory.reserved;
    value.memory_limit = memory.limit;
    value.memory_mirrors = memory.mirrors;
    const std::optional<MemoryState> state = may_ask ? self.memory->state() : std::nullopt;
    value.memory_total = state ? state->total : -1;
    value.memory_available = state ? state->available : -1;
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
    if (self.health.load() == COMPUTE_HEALTH_FORKED) self.throw_unusable();
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
    // All of them first: a failure of one keeps nobody from waiting for the others.
    const std::vector<Timeline*> timelines = timelines_of(self);
    for (Timeline* timeline : timelines) timeline->wait_for_end(timeline->submitted(), COMPUTE_TIMEOUT_NONE);
    for (Timeline* timeline : timelines) {
      if (const Failure* failure = timeline->untold()) throw_failure(*failure);
    }
  });
}

}  // extern "C"
