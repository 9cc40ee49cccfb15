// SPDX-License-Identifier: Apache-2.0
// An open device: its plugin's table, its memory and its counters.
#pragma once

#include <compute/compute.h>
#include <compute/plugin.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/devices/selector.hpp"
#include "core/loading/device_entry.hpp"
#include "core/loading/plugin.hpp"
#include "core/loading/plugin_table.hpp"
#include "core/process/handle.hpp"

namespace compute {

class MemoryPool;
struct MemoryShape;
class PlanCache;
class Timeline;

// Counted with relaxed atomics; a snapshot may be inconsistent across fields.
struct DeviceCounters {
  std::atomic<int64_t> ops_run{0};  // in graphs; timelines count other ops
  std::atomic<int64_t> ops_fallback{0}, plans_live{0}, plans_prepared{0}, kernels_compiled{0};
  std::atomic<int64_t> to_device{0}, to_device_bytes{0}, from_device{0}, from_device_bytes{0};
  std::atomic<int64_t> implicit{0}, implicit_bytes{0}, mirror_hits{0};

  void count_transfer(bool to, int64_t bytes, bool is_implicit) noexcept {
    (to ? to_device : from_device).fetch_add(1, std::memory_order_relaxed);
    (to ? to_device_bytes : from_device_bytes).fetch_add(bytes, std::memory_order_relaxed);
    if (is_implicit) {
      implicit.fetch_add(1, std::memory_order_relaxed);
      implicit_bytes.fetch_add(bytes, std::memory_order_relaxed);
    }
  }
};

}  // namespace compute

// Never destroyed once opened; its handle counts references only for the program's sake.
struct compute_device : compute::Handle<compute::HandleKind::kDevice> {
  compute_device(const compute::DeviceEntry& entry, compute::DeviceOptions options);

  ~compute_device();

  const compute::DeviceEntry& entry;
  const std::string name;
  const compute::DeviceOptions options;
  std::vector<uint32_t> dtypes;  // levels of support by dtype id, without the hidden ones
  compute_device_info info;      // the entry's, with these dtypes
  bool is_host = false;          // `cpu`: buffers are host addresses
  bool immediate = false;        // NULL streams are one per thread and run work on the caller
  bool strict = true;            // opened by its name alone

  compute::Plugin* plugin = nullptr;  // NULL: `cpu` without its plugin
  compute::DeviceTable table;
  compute::GraphTable graphs;
  compute::NativeTable native;
  compute::ExternalTable external;
  compute::CollectiveTable collectives;
  std::vector<compute_plugin_heap> heaps;
  int32_t priority_least = 0, priority_greatest = 0;  // of streams
  std::string priorities;                             // the same as a text; "" if there are none
  std::atomic<int64_t> clock_wrap_ns{-1};             // as in ClockReading, once it is known; -1 before
  int32_t pinned_heap = -1;
  std::string no_ops_reason;  // why `cpu` has no ops

  compute_device* opened_before = nullptr;  // the device opened before this one: a list that needs no lock
  std::atomic<int64_t> exports{0};          // DLPack exports that are not released yet

  std::unique_ptr<compute::MemoryPool> memory;
  std::unique_ptr<compute::MemoryPool>
      pinned;  // staging and fault records, host-addressable; NULL if there is no such heap
  std::unique_ptr<compute::MemoryPool> upload;  // for what the host writes; NULL: `pinned` serves both directions
  compute::MemoryPool* upload_pool() const noexcept { return upload ? upload.get() : pinned.get(); }
  std::unique_ptr<compute::PlanCache> plans;
  compute::DeviceCounters counters;
  std::atomic<int32_t> health{COMPUTE_HEALTH_GOOD};

  // Throws if the device was lost, needs a restart, or belongs to a parent process.
  void require_usable() const {
    if (health.load(std::memory_order_relaxed) != COMPUTE_HEALTH_GOOD) throw_unusable();
  }
  [[noreturn]] void throw_unusable() const;

  // Records the device's health from the code of a plugin's error.
  void note_error(compute_error_code code) noexcept;

  // Throws the plugin's error, with the device's name.
  void check(compute_error* error);

  // Opens the device in the plugin; returns the layout of its memory.
  compute::MemoryShape open_in_plugin();

  bool hides(compute_dtype dtype) const {
    if (dtype == COMPUTE_DTYPE_COMPLEX64 && hides(COMPUTE_DTYPE_FLOAT32)) return true;  // a pair of them
    if (dtype == COMPUTE_DTYPE_COMPLEX128 && hides(COMPUTE_DTYPE_FLOAT64)) return true;
    return dtype > 0 && dtype < 32 && (options.hidden_dtypes >> dtype & 1) != 0;
  }

  // Whether the device supports `dtype` at `level` (COMPUTE_DTYPE_LEVEL_STORAGE, …).
  bool supports(compute_dtype dtype, int32_t level) const {
    return dtype > 0 && dtype < info.dtype_count && (info.dtypes[dtype] & static_cast<uint32_t>(level)) != 0;
  }
};

namespace compute {

using Device = ::compute_device;

}  // namespace compute
