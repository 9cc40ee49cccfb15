// SPDX-License-Identifier: Apache-2.0
#include "core/lifetime/life.hpp"

#include <compute/compute.h>
#include <pthread.h>
#include <stdlib.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "core/base/deadline.hpp"
#include "core/base/lock.hpp"
#include "core/devices/opened_devices.hpp"
#include "core/devices/registry.hpp"
#include "core/lifetime/placement_report.hpp"
#include "core/memory/copy_helpers.hpp"
#include "core/memory/pool.hpp"
#include "core/memory/pressure.hpp"
#include "core/observation/recorder.hpp"
#include "core/planner/plan_cache.hpp"
#include "core/process/in_use.hpp"
#include "core/process/log.hpp"
#include "core/process/process_config.hpp"
#include "core/process/service.hpp"
#include "core/streams/device_times.hpp"
#include "core/streams/timeline.hpp"

namespace compute {
namespace {

// What exit may take.
constexpr int64_t kPatience = int64_t{2'000'000'000};

// Held by the thread that shuts down.
Lock shutting_down;
bool devices_closed = false;     // (shutting_down)
bool process_is_ending = false;  // (shutting_down) plugins were told: nothing is closed any more

// Waits for queued work.
bool drain(Deadline deadline) noexcept {
  bool drained = true;
  for (Timeline* timeline = last_timeline_made(); timeline != nullptr; timeline = timeline->made_before) {
    if (timeline->device.health.load() != COMPUTE_HEALTH_GOOD || timeline->immediate) continue;
    const uint64_t number = timeline->submitted();
    if (timeline->has_ended(number)) continue;
    try {
      drained = timeline->wait_for_end(number, left_until(deadline)) && drained;
    } catch (...) {
      // What takes no mark cannot be waited for: unless its stream has failed, it may still run.
      drained = drained && timeline->failure() != nullptr && !timeline->is_hung(number);
    }
  }
  return drained;
}

// ---- Exit -----------------------------------------------------------------------------------------------------------

bool is_first_of_its_plugin(const Device& device) noexcept {
  for (const Device* other = device.opened_before; other != nullptr; other = other->opened_before) {
    if (other->plugin == device.plugin) return false;
  }
  return true;
}

void tell_plugins_of_exit() noexcept {
  for (const Device* device = last_opened_device(); device != nullptr; device = device->opened_before) {
    if (device->plugin == nullptr || device->health.load() == COMPUTE_HEALTH_FORKED || !is_first_of_its_plugin(*device))
      continue;
    device->plugin->table.on_exit();
  }
}

// Registered after each device is opened: exit() runs handlers in the reverse order of their registration, so this one
// before those of the libraries that the plugin has loaded. The first run does everything.
void end_with_process(int, void*) noexcept {
  if (process_is_ending) return;
  const Deadline deadline = deadline_after(kPatience);
  if (!is_shut_down()) {
    // Callbacks may use what the program destroys next, and may end with calls.
    drain(deadline);
    drain_background(left_until(deadline));
  }
  // Daemon threads of Python finish the calls that they are in.
  refuse_calls_and_wait(left_until(deadline));
  drain(deadline);  // what was submitted meanwhile
  collect_all_times(deadline);
  report_at_end(placement_report, cached_memory);
  if (!shutting_down.try_lock_until(deadline)) return;
  const std::lock_guard guard(shutting_down, std::adopt_lock);
  if (!devices_closed) tell_plugins_of_exit();
  process_is_ending = true;
}

// ---- Fork -----------------------------------------------------------------------------------------------------------

// No other thread was in a call. No device of the parent works, except those whose plugin has rebuilt itself.
void after_fork_in_child() {
  forget_other_threads();
  forget_observations();
  forget_background_thread();
  forget_copy_helpers();
  for (Device* first = last_opened_device(); first != nullptr; first = first->opened_before) {
    if (first->plugin == nullptr || !is_first_of_its_plugin(*first) || first->health.load() == COMPUTE_HEALTH_FORKED)
      continue;
    if (first->plugin->table.on_fork_child()) continue;
    for (Device* device = last_opened_device(); device != nullptr; device = device->opened_before) {
      if (device->plugin == first->plugin) device->health.store(COMPUTE_HEALTH_FORKED);
    }
  }
}

// ---- Shutdown -------------------------------------------------------------------------------------------------------

// Nobody is inside any more, and nothing is queued.
void close_devices() {
  std::vector<const Plugin*> with_open_devices;
  for (Device* device = last_opened_device(); device != nullptr; device = device->opened_before) {
    const bool is_exported = device->exports.load() > 0;
    if (device->plugin == nullptr) {
      if (!is_exported) device->memory->give_everything_back();
      continue;
    }
    const int32_t health = device->health.load();
    // Memory that is exported is the plugin's, and a device that does not answer, or is the parent's, is not touched.
    const bool stays =
        health == COMPUTE_HEALTH_GOOD ? is_exported && !device->is_host : health != COMPUTE_HEALTH_CONTEXT_LOST;
    if (stays) {
      with_open_devices.push_back(device->plugin);
      continue;
    }
    if (health == COMPUTE_HEALTH_CONTEXT_LOST) {
      device->table.close();  // which frees all that is left of it
      continue;
    }
    device->plans->clear();
    for (Timeline* timeline : timelines_of(*device)) timeline->close();
    if (!is_exported) device->memory->give_everything_back();
    if (device->pinned) device->pinned->give_everything_back();
    if (device->upload) device->upload->give_everything_back();
    device->table.close();
  }
  for (Plugin* plugin : Registry::instance().opened_plugins()) {
    if (std::find(with_open_devices.begin(), with_open_devices.end(), plugin) == with_open_devices.end())
      plugin->table.close();
  }
}

bool shut_down(Deadline deadline) {
  if (devices_closed) return true;
  if (process_is_ending) return false;
  // Refused first: who goes on calling would otherwise hold this up forever.
  bool drained = refuse_calls_and_wait(left_until(deadline));
  drained = drain(deadline) && drained;
  drained = drain_background(left_until(deadline)) && drained;
  drained = drain(deadline) && drained;  // what callbacks and transfers in the background submitted
  if (!drained) return false;            // work still uses the devices: they stay open until the process ends
  collect_all_times(deadline);
  report_at_end(placement_report, cached_memory);
  close_devices();
  devices_closed = true;
  return true;
}

}  // namespace

void prepare_for_the_end() noexcept {
  static std::once_flag once;
  std::call_once(once, [] { pthread_atfork(nullptr, nullptr, after_fork_in_child); });
  // Not atexit, which leaves a name of the object in the library that tests look for.
  on_exit(end_with_process, nullptr);
}

void give_back_export(compute_device& device) noexcept {
  // Behind a shutdown that waits for something else the memory stays with the process.
  if (!shutting_down.try_lock_until(deadline_after(kPatience))) return;
  const std::lock_guard guard(shutting_down, std::adopt_lock);
  const bool was_last = device.exports.fetch_sub(1) == 1;
  // A program's allocator is not called behind shutdown.
  if (was_last && devices_closed && device.is_host && !device.memory->is_lent()) device.memory->give_everything_back();
}

bool shut_down_library(int64_t timeout_ns) {
  if (own_depth() > 0 || is_background_thread()) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                "compute_shutdown: called from a callback, which it would wait for forever");
  }
  const Deadline deadline = deadline_after(timeout_ns);
  // Not counted as a call: of several threads that shut down, each would wait for the others.
  if (!shutting_down.try_lock_until(deadline)) return false;
  const std::lock_guard guard(shutting_down, std::adopt_lock);
  return shut_down(deadline);
}

}  // namespace compute
