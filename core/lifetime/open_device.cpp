// SPDX-License-Identifier: Apache-2.0
#include "core/lifetime/open_device.hpp"

#include <fmt/format.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "core/base/sized.hpp"
#include "core/devices/opened_devices.hpp"
#include "core/devices/registry.hpp"
#include "core/lifetime/life.hpp"
#include "core/loading/plugin_core.hpp"
#include "core/memory/buffer.hpp"
#include "core/memory/host_memory.hpp"
#include "core/memory/pool.hpp"
#include "core/memory/pressure.hpp"
#include "core/memory/tensor.hpp"
#include "core/observation/recorder.hpp"
#include "core/planner/plan_cache.hpp"
#include "core/process/log.hpp"
#include "core/process/process_config.hpp"
#include "core/streams/timeline.hpp"
#include "core/text/printable.hpp"
#include "core/text/text.hpp"

namespace compute {
namespace {

// Memory that the plugin allocates.
class PluginMemory final : public RawMemory {
 public:
  PluginMemory(Device& device, int32_t heap) : device_(device), heap_(heap) {}

  bool allocate(int64_t size_bytes, RawBlock* out_block) override {
    const bool is_host_space = (device_.heaps[static_cast<size_t>(heap_)].flags & COMPUTE_PLUGIN_HEAP_HOST_SPACE) != 0;
    compute_error* error =
        device_.table.memory_allocate(heap_, is_host_space, size_bytes, &out_block->buffer, &out_block->data);
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
    if (compute_error* error = device_.table.memory_info(heap_, &state.available, &state.total)) {
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

// The last one opened. A device that has lost its context stays after a newer one, for existing handles.
Device* find_open(const DeviceEntry& entry) {
  for (Device* device = last_opened_device(); device != nullptr; device = device->opened_before) {
    if (&device->entry == &entry) return device;
  }
  return nullptr;
}

// Whether opening the device once more may help. There is one host device: buffers compare with it.
bool can_be_reopened(const Device& device) {
  return device.health.load() == COMPUTE_HEALTH_CONTEXT_LOST && !device.is_host;
}

// Whether an open device has all that is asked for.
bool is_open_with(const Device& open, const DeviceOptions& asked) {
  if (asked.memory_limit && open.options.memory_limit != asked.memory_limit) return false;
  if (asked.hidden_dtypes != 0 && open.options.hidden_dtypes != asked.hidden_dtypes) return false;
  const auto& has = open.options.settings;
  return std::ranges::all_of(asked.settings,
                             [&](const auto& setting) { return std::ranges::count(has, setting) != 0; });
}

std::string amount_text(const std::optional<ByteAmount>& amount) {
  if (!amount) return "none";
  if (amount->fraction > 0) return fmt::format("{:g}%", amount->fraction * 100);
  constexpr std::string_view kUnits = "KMGT";
  int64_t number = amount->size_bytes;
  size_t unit = 0;
  for (; unit < kUnits.size() && number != 0 && number % 1024 == 0; ++unit) number /= 1024;
  return unit == 0 ? std::to_string(number) : std::to_string(number) + kUnits[unit - 1];
}

std::string dtypes_text(uint32_t bits) {
  std::string text;
  for (compute_dtype dtype = 1; dtype < kDtypeCount; ++dtype) {
    if ((bits >> dtype & 1) != 0) text += (text.empty() ? "" : "/") + dtype_name(dtype);
  }
  return text.empty() ? "none" : text;
}

// "cpu is already open with mem=none; mem=1M was requested": the first option that differs.
std::string options_differ(const char* name, const DeviceOptions& open, const DeviceOptions& asked) {
  if (asked.memory_limit && open.memory_limit != asked.memory_limit) {
    return fmt::format("{} is already open with mem={}; mem={} was requested", name, amount_text(open.memory_limit),
                       amount_text(asked.memory_limit));
  }
  if (asked.hidden_dtypes != 0 && open.hidden_dtypes != asked.hidden_dtypes) {
    return fmt::format("{} is already open with without={}; without={} was requested", name,
                       dtypes_text(open.hidden_dtypes), dtypes_text(asked.hidden_dtypes));
  }
  for (const auto& wanted : asked.settings) {
    const auto has = std::ranges::find(open.settings, wanted.first, [](const auto& one) { return one.first; });
    const std::string current = has != open.settings.end() ? has->second : "none";
    if (current == wanted.second) continue;
    return fmt::format("{0} is already open with {1}={2}; {1}={3} was requested", name, wanted.first, current,
                       wanted.second);
  }
  return fmt::format("{} is already open with other options", name);
}

// The options with the device settings that the selector does not give, as they are configured.
DeviceOptions with_configured(DeviceOptions options, const DeviceEntry& entry) {
  const size_t given = options.settings.size();
  for (const Setting* setting : device_settings_of(entry.info.plugin)) {
    const auto end = options.settings.begin() + static_cast<std::ptrdiff_t>(given);
    const auto is_it = [&](const auto& one) { return one.first == option_name(*setting); };
    if (std::any_of(options.settings.begin(), end, is_it)) continue;
    const std::string value = compute::setting(setting->id).text;
    if (!value.empty()) options.settings.emplace_back(option_name(*setting), value);
  }
  return options;
}

MemoryShape shape_of(const compute_plugin_heap& heap) {
  MemoryShape shape;
  shape.suballocate = heap.suballocation == COMPUTE_PLUGIN_SUBALLOCATE_OFFSET;
  shape.offset_alignment = std::max<int64_t>(heap.offset_alignment, 64);
  if (heap.max_allocation_bytes > 0) shape.max_allocation_bytes = heap.max_allocation_bytes;
  return shape;
}

// An open device is returned as it is if `any_options`.
Device& open_or_find(const DeviceSelection& selection, bool any_options) {
  static std::mutex& opening = *new std::mutex;
  const std::lock_guard guard(opening);
  const DeviceEntry& entry = *selection.device;
  Device* open = find_open(entry);
  if (open != nullptr && !can_be_reopened(*open)) {
    open->require_usable();
    if (!any_options && !is_open_with(*open, selection.options)) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, options_differ(entry.info.name, open->options, selection.options))
          .on_device(entry.info.name);
    }
    return *open;
  }
  if (!entry.unusable.empty()) {
    throw Error(COMPUTE_ERROR_NOT_FOUND, fmt::format("{} cannot be used: {}", entry.info.name, entry.unusable));
  }
  begin_configured_observations();
  auto device = std::make_unique<Device>(entry, with_configured(selection.options, entry));
  device->strict = selection.strict;
  Device& opened = add_opened_device(std::move(device));
  prepare_for_the_end();
  return opened;
}

}  // namespace

Device& open_entry(const DeviceSelection& selection) { return open_or_find(selection, false); }

Device& open_device(const char* selector) {
  Device* device = nullptr;
  Registry::instance().select(selector, [&](const DeviceSelection& selection) { device = &open_entry(selection); });
  return *device;
}

Device& device_of(const compute_tensor& tensor) {
  return tensor.buffer != nullptr ? tensor.buffer->device : host_device();
}

Device& host_device() {
  static std::atomic<Device*> cached{nullptr};
  if (Device* device = cached.load(std::memory_order_acquire)) return *device;
  DeviceSelection selection;
  selection.device = Registry::instance().find("cpu");
  selection.options = Registry::instance().host_options();
  Device& device = open_or_find(selection, true);
  cached.store(&device, std::memory_order_release);
  return device;
}

}  // namespace compute

compute_device::~compute_device() = default;

compute_device::compute_device(const compute::DeviceEntry& entry, compute::DeviceOptions options)
    : entry(entry),
      name(entry.info.name),
      options(options),
      dtypes(entry.info.dtypes, entry.info.dtypes + entry.info.dtype_count),
      info(entry.info),
      plugin(entry.plugin) {
  using namespace compute;
  const auto hide = [&] {
    for (size_t i = 0; i < dtypes.size(); ++i) {
      if (hides(static_cast<compute_dtype>(i))) dtypes[i] = 0;
    }
  };
  hide();
  if (options.hidden_dtypes != 0) {
    set_float8_levels(dtypes);
    hide();
  }
  info.dtypes = dtypes.data();
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
  // Programs open `cpu` in addition to the device that the setting is for, and host memory is fast to allocate later.
  if (const auto amount = setting(SettingId::kPreallocate).bytes; amount && !is_host)
    memory->preallocate(amount->of(total));
  memory->relieve = [this](int64_t size_bytes) { return relieve_pressure(*this, size_bytes); };
}

namespace compute {
namespace {

// The heap for transfers in the direction that `role` is for: one with that role, else one for both. -1 if there is
// none that the host can address.
int32_t host_heap(const std::vector<compute_plugin_heap>& heaps, int32_t role) {
  constexpr uint32_t kServesHost = COMPUTE_PLUGIN_HEAP_PINNED | COMPUTE_PLUGIN_HEAP_HOST_SPACE;
  constexpr int32_t kOfOneDirection[] = {COMPUTE_PLUGIN_HEAP_ROLE_UPLOAD, COMPUTE_PLUGIN_HEAP_ROLE_READBACK};
  int32_t for_both = -1;
  for (size_t i = 1; i < heaps.size(); ++i) {
    if ((heaps[i].flags & kServesHost) != kServesHost) continue;
    if (heaps[i].role == role) return static_cast<int32_t>(i);
    if (for_both < 0 && std::ranges::find(kOfOneDirection, heaps[i].role) == std::end(kOfOneDirection))
      for_both = static_cast<int32_t>(i);
  }
  return for_both;
}

// COMPUTE_DEBUG=plugin: tests a heap's flags with one small allocation.
void try_heap(Device& device, int32_t index) {
  constexpr int64_t kBytes = 4096;
  const compute_plugin_heap& heap = device.heaps[static_cast<size_t>(index)];
  const auto reject = [&](const std::string& what) {
    throw Error(COMPUTE_ERROR_PLUGIN_REJECTED, fmt::format("{}: heap {} of the plugin {}", device.name, index, what));
  };
  uint64_t buffer = 0;
  void* data = nullptr;
  const bool is_host_space = (heap.flags & COMPUTE_PLUGIN_HEAP_HOST_SPACE) != 0;
  device.check(device.table.memory_allocate(index, is_host_space, kBytes, &buffer, &data));
  const auto free_buffer = [&](void*) { device.table.memory_free(index, buffer); };
  const std::unique_ptr<void, decltype(free_buffer)> owner(&buffer, free_buffer);
  if (is_host_space) {
    const uint64_t alignment = static_cast<uint64_t>(std::max<int64_t>(heap.base_alignment, 64));
    if (reinterpret_cast<uintptr_t>(data) % alignment != 0)
      reject(fmt::format("is HOST_SPACE but returned {}, which is not aligned to {} bytes", data, alignment));
    std::array<char, kBytes> copy;
    const iovec here{copy.data(), copy.size()}, there{data, copy.size()};
    if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) < 0 && errno == EFAULT) {
      reject(fmt::format("is HOST_SPACE but returned {}, which is not host memory", data));
    }
  }
  if ((heap.flags & COMPUTE_PLUGIN_HEAP_HOST_VISIBLE) == 0 || is_host_space) return;
  if (!device.table.has_memory_map()) reject("is HOST_VISIBLE, but its table has no memory_map");
  const auto mapped = [&](int32_t access, const auto& use) {
    void* range = nullptr;
    compute_error* error = device.table.memory_map(index, {buffer, 0}, kBytes, access, &range);
    if (error != nullptr) reject("is HOST_VISIBLE but cannot be mapped: " + Error::adopt(error).message);
    use(static_cast<unsigned char*>(range));
    device.table.memory_unmap(index, {buffer, 0}, kBytes, access, range);
  };
  bool is_kept = false;
  mapped(COMPUTE_PLUGIN_ACCESS_WRITE, [](unsigned char* bytes) { std::memset(bytes, 0xC5, kBytes); });
  mapped(COMPUTE_PLUGIN_ACCESS_READ, [&](const unsigned char* bytes) {
    is_kept = std::all_of(bytes, bytes + kBytes, [](unsigned char byte) { return byte == 0xC5; });
  });
  if (!is_kept) reject("is HOST_VISIBLE but lost data written through memory_map");
}

}  // namespace
}  // namespace compute

compute::MemoryShape compute_device::open_in_plugin() {
  using namespace compute;
  DeviceCaps caps = table.open(plugin->table, entry.id, name, options.settings);
  heaps = std::move(caps.heaps);
  priority_least = caps.priority_least;
  priority_greatest = caps.priority_greatest;
  if (priority_least != priority_greatest) priorities = fmt::format("{} to {}", priority_least, priority_greatest);
  immediate = (caps.flags & COMPUTE_PLUGIN_DEVICE_IMMEDIATE) != 0;
  is_host = (caps.flags & COMPUTE_PLUGIN_DEVICE_IS_HOST) != 0;
  if (is_host && entry.info.plugin != std::string_view("cpu")) {
    throw Error(COMPUTE_ERROR_PLUGIN_REJECTED,
                fmt::format("{}: the plugin claims to be the host device, which only the cpu plugin can be", name));
  }
  const auto pool_of = [&](int32_t heap, const char* what) {
    return std::make_unique<MemoryPool>(name + what, std::make_unique<PluginMemory>(*this, heap),
                                        shape_of(heaps[static_cast<size_t>(heap)]), COMPUTE_ERROR_OUT_OF_MEMORY);
  };
  // A heap for one direction serves both if there is no other.
  const int32_t to_device = host_heap(heaps, COMPUTE_PLUGIN_HEAP_ROLE_UPLOAD);
  pinned_heap = host_heap(heaps, COMPUTE_PLUGIN_HEAP_ROLE_READBACK);
  if (pinned_heap < 0) pinned_heap = to_device;
  if (pinned_heap >= 0) pinned = pool_of(pinned_heap, " (pinned)");
  if (to_device >= 0 && to_device != pinned_heap) upload = pool_of(to_device, " (upload)");
  if (const int64_t alignment = heaps[0].base_alignment; alignment != 0 && alignment < kTensorAlignment) {
    throw Error(COMPUTE_ERROR_PLUGIN_REJECTED,
                fmt::format("{}: the plugin aligns allocations to {} bytes; tensors need {}", name, alignment,
                            kTensorAlignment));
  }
  table.extensions(plugin->table, graphs, native, external, collectives);
  if (debug_checks("plugin") && !is_host) {
    for (size_t i = 0; i < heaps.size(); ++i) try_heap(*this, static_cast<int32_t>(i));
  }
  return shape_of(heaps[0]);
}
