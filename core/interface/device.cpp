// SPDX-License-Identifier: Apache-2.0
// The functions of compute.h on devices.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/sized.hpp"
#include "core/devices/opened_devices.hpp"
#include "core/devices/registry.hpp"
#include "core/interface/about.hpp"
#include "core/lifetime/open_device.hpp"
#include "core/memory/buffer.hpp"
#include "core/memory/lent_memory.hpp"
#include "core/memory/pool.hpp"
#include "core/memory/pressure.hpp"
#include "core/planner/plan_cache.hpp"
#include "core/streams/timeline.hpp"
#include "core/text/printable.hpp"
#include "core/text/text.hpp"

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
  return guard(about(device), [&] {
    require_not_null(out_info, "out_info");
    write_sized(checked(device).info, out_info, "out_info");
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
      throw Error(COMPUTE_ERROR_NOT_FOUND, fmt::format("unknown device {}\n{}", in_quotes(name),
                                                       Registry::instance().load_report(COMPUTE_FORMAT_TEXT)));
    }
    std::vector<std::pair<std::string_view, std::string_view>> rows(entry->properties.begin(), entry->properties.end());
    // Known of an open device only.
    const Device* device = last_opened_device();
    while (device != nullptr && &device->entry != entry) device = device->opened_before;
    if (device != nullptr && !device->priorities.empty()) rows.emplace_back("stream_priorities", device->priorities);
    write_list(attributes, capacity, static_cast<int64_t>(rows.size()), "attributes", out_count, [&](int64_t i) {
      compute_device_attribute value{};
      const auto& [name, text] = rows[static_cast<size_t>(i)];
      value.name = name.data();
      value.name_size = static_cast<int64_t>(name.size());
      value.value = text.data();
      value.value_size = static_cast<int64_t>(text.size());
      return value;
    });
  });
}

compute_error* compute_device_get_statistics(compute_device* device, compute_device_statistics* out_statistics) {
  clear_sized(out_statistics);
  return guard(about(device), [&] {
    require_not_null(out_statistics, "out_statistics");
    Device& self = checked(device);
    const InUse in_use;
    // After shutdown the device is closed; in a forked child its driver is not touched.
    const bool may_ask = !is_shut_down() && self.health.load() != COMPUTE_HEALTH_FORKED;
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

compute_error* compute_device_get_telemetry(compute_device* device, compute_device_telemetry* out_telemetry) {
  clear_sized(out_telemetry);
  return guard(about(device), [&] {
    require_not_null(out_telemetry, "out_telemetry");
    Device& self = checked(device);
    const Running running;
    self.require_usable();
    compute_plugin_telemetry given;
    self.check(self.table.telemetry(&given, nullptr));
    compute_device_telemetry value{};
    value.utilization_percent = given.utilization_percent;
    value.temperature_millidegrees = given.temperature_millidegrees;
    value.power_milliwatts = given.power_milliwatts;
    value.memory_process_bytes = given.memory_process_bytes;
    value.memory_used_bytes = given.memory_used_bytes;
    write_sized(value, out_telemetry, "out_telemetry");
  });
}

compute_error* compute_device_processes(compute_device* device, compute_device_process* processes, int64_t capacity,
                                        int64_t* out_count) {
  if (out_count != nullptr) *out_count = 0;
  return guard(about(device), [&] {
    require_not_null(out_count, "out_count");
    Device& self = checked(device);
    const Running running;
    self.require_usable();
    compute_plugin_telemetry telemetry;
    std::vector<ProcessMemory> found;
    self.check(self.table.telemetry(&telemetry, &found));
    write_list(processes, capacity, static_cast<int64_t>(found.size()), "processes", out_count, [&](int64_t i) {
      compute_device_process value{};
      value.process_id = found[static_cast<size_t>(i)].process_id;
      value.memory_bytes = found[static_cast<size_t>(i)].bytes;
      return value;
    });
  });
}

compute_error* compute_device_health(compute_device* device, int32_t* out_health) {
  if (out_health != nullptr) *out_health = COMPUTE_HEALTH_UNKNOWN;
  return guard(about(device), [&] {
    require_not_null(out_health, "out_health");
    *out_health = checked(device).health.load();
  });
}

compute_error* compute_memory_add_pressure_callback(compute_pressure_callback callback, void* user_data) {
  return guard([&] { add_pressure_callback(callback, user_data); });
}

compute_error* compute_memory_remove_pressure_callback(compute_pressure_callback callback, void* user_data) {
  return guard([&] { remove_pressure_callback(callback, user_data); });
}

compute_error* compute_device_trim(compute_device* device, int64_t keep_bytes) {
  return guard(about(device), [&] {
    Device& self = checked(device);
    const Running running;
    if (keep_bytes < 0) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("keep_bytes is {}; it must not be negative", keep_bytes));
    }
    if (self.health.load() == COMPUTE_HEALTH_FORKED) self.throw_unusable();
    for (Timeline* timeline : timelines_of(self)) timeline->poll();
    drop_mirrors(self);
    self.memory->trim(keep_bytes);
    if (self.pinned) self.pinned->trim(keep_bytes);
    if (self.upload) self.upload->trim(keep_bytes);
  });
}

compute_error* compute_device_set_allocator(compute_device* device, const compute_allocator* allocator) {
  return guard(about(device), [&] {
    Device& self = checked(device);
    const Running running;
    self.require_usable();
    std::unique_ptr<RawMemory> lent;
    bool caches = false;
    if (allocator != nullptr) {
      const compute_allocator given = read_sized(allocator, "allocator");
      require_known_flags(given.flags, COMPUTE_ALLOCATOR_CACHED, "allocator");
      require_zero(given.reserved, "allocator");
      require_not_null(reinterpret_cast<const void*>(given.allocate), "allocator->allocate");
      require_not_null(reinterpret_cast<const void*>(given.release), "allocator->release");
      lent = make_lent_memory(self, given);
      caches = (given.flags & COMPUTE_ALLOCATOR_CACHED) != 0;
    }
    for (Timeline* timeline : timelines_of(self)) timeline->poll();
    drop_mirrors(self);
    self.memory->lend(std::move(lent), caches);
  });
}

compute_error* compute_device_synchronize(compute_device* device) {
  return guard(about(device), [&] {
    Device& self = checked(device);
    const Running running;
    self.require_usable();
    // Collects all first, so that a failure of one does not prevent waiting for the others.
    const std::vector<Timeline*> timelines = timelines_of(self);
    for (Timeline* timeline : timelines) timeline->wait_quietly(timeline->submitted());
    self.memory->settle_lent();
    const Failure* first = nullptr;
    for (Timeline* timeline : timelines) {
      const Failure* failure = timeline->untold();
      if (first == nullptr) first = failure;
    }
    if (first != nullptr) throw_failure(*first);
  });
}

}  // extern "C"
