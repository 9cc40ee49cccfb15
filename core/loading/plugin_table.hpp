// SPDX-License-Identifier: Apache-2.0
// Calls of plugins. The function pointers of a plugin are private to the classes below. Each class has one function per
// slot, which initialises the outputs of the slot, checks the results, converts exceptions of the slot to
// PLUGIN_REJECTED, and logs a line before the call, unless the slot is used by cached ops.
#pragma once

#include <compute/plugin.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.hpp"

namespace compute {

// The owner of the functions, for messages. `device` is "" for functions of the plugin as a whole.
struct PluginPlace {
  std::string plugin;
  std::string device;
};

// The error for the current exception, thrown by `function` of a plugin.
[[nodiscard]] compute_error* error_of_thrown(const PluginPlace& place, const char* function) noexcept;
// The error for a violation of the contract by a plugin: `what` follows the function's name.
[[nodiscard]] compute_error* contract_error(const PluginPlace& place, const char* function,
                                            const std::string& what) noexcept;
// Takes an error from a plugin. If the plugin returned this error before, or never made it, the result is another
// error.
[[nodiscard]] compute_error* take_plugin_error(const PluginPlace& place, const char* function,
                                               compute_error* error) noexcept;
// One line in the log, which shows where a process ended.
void note_entry(const PluginPlace& place, const char* function) noexcept;
void log_thrown(const PluginPlace& place, const char* function) noexcept;

// Why a plugin refuses an op.
struct PluginRefusal {
  int32_t reason = 0;  // COMPUTE_PLUGIN_REFUSE_, or a number that this library does not know
  int32_t argument = -1;
  std::string text;  // with the hint; may be empty
};

template <auto kSlot>
inline constexpr const char* slot_name = nullptr;
#define COMPUTE_PLUGIN_SLOT(table, slot, need) \
  template <>                                  \
  inline constexpr const char* slot_name<&table::slot> = #slot;
#include "core/loading/plugin_slots.def"
#undef COMPUTE_PLUGIN_SLOT

// The common part of the tables: a full-size copy, with NULL for slots that the plugin does not know.
template <class Table>
class PluginSlots {
 public:
  using TableType = Table;

  PluginSlots() = default;
  PluginSlots(const PluginSlots&) = delete;
  PluginSlots& operator=(const PluginSlots&) = delete;

  const PluginPlace& place() const noexcept { return place_; }

 protected:
  // NULL is a table without slots.
  void adopt(const Table* given, PluginPlace place);
  // Throws PLUGIN_REJECTED if a required slot is missing.
  void require_slots(bool is_host = false) const;

  template <auto kSlot>
  bool has() const noexcept {
    return table_.*kSlot != nullptr;
  }

  // Calls a slot that returns an error.
  template <auto kSlot, class... Arguments>
  [[nodiscard]] compute_error* call(Arguments... arguments) const noexcept {
    return call_of<kSlot>(place_, arguments...);
  }
  // The same, with a line in the log before the call.
  template <auto kSlot, class... Arguments>
  [[nodiscard]] compute_error* call_noted(Arguments... arguments) const noexcept {
    return call_for<kSlot>(place_, arguments...);
  }
  // The same on behalf of somebody else.
  template <auto kSlot, class... Arguments>
  [[nodiscard]] compute_error* call_for(const PluginPlace& place, Arguments... arguments) const noexcept {
    note_entry(place, slot_name<kSlot>);
    return call_of<kSlot>(place, arguments...);
  }

  // Calls a slot that returns another type; its exceptions are thrown as an Error.
  template <auto kSlot, class... Arguments>
  auto get(Arguments... arguments) const {
    note_entry(place_, slot_name<kSlot>);
    try {
      return (table_.*kSlot)(arguments...);
    } catch (...) {
      throw Error::adopt(error_of_thrown(place_, slot_name<kSlot>));
    }
  }

  // Calls a slot that cannot fail; its exceptions are logged.
  template <auto kSlot, class... Arguments>
  void tell(Arguments... arguments) const noexcept {
    note_entry(place_, slot_name<kSlot>);
    try {
      (table_.*kSlot)(arguments...);
    } catch (...) {
      log_thrown(place_, slot_name<kSlot>);
    }
  }

  // The same where nothing can be logged.
  template <auto kSlot, class R, class... Arguments>
  R get_quietly(R if_thrown, Arguments... arguments) const noexcept {
    try {
      return (table_.*kSlot)(arguments...);
    } catch (...) {
      return if_thrown;
    }
  }

  // For values that must be among those that the contract allows.
  template <auto kSlot>
  [[nodiscard]] compute_error* broken(const std::string& what) const noexcept {
    return contract_error(place_, slot_name<kSlot>, what);
  }

 private:
  template <auto kSlot, class... Arguments>
  [[nodiscard]] compute_error* call_of(const PluginPlace& place, Arguments... arguments) const noexcept {
    try {
      compute_error* error = (table_.*kSlot)(arguments...);
      if (error == nullptr) [[likely]]
        return nullptr;
      return take_plugin_error(place, slot_name<kSlot>, error);
    } catch (...) {
      return error_of_thrown(place, slot_name<kSlot>);
    }
  }

  Table table_{};
  PluginPlace place_;
};

class DeviceTable;
class GraphTable;
class NativeTable;
class ExternalTable;
class CollectiveTable;

class KernelTable : public PluginSlots<compute_plugin_kernel_table> {
 public:
  compute_error* compile(const compute_plugin_kernel_source& source, uint64_t* out_kernel,
                         compute_plugin_kernel_info* out_info) const;
  compute_error* launch(uint64_t kernel, const compute_plugin_launch& order) const noexcept {
    return call<&compute_plugin_kernel_table::launch>(kernel, &order);
  }
  void release(uint64_t kernel) const noexcept { tell<&compute_plugin_kernel_table::release>(device_, kernel); }

 private:
  friend class DeviceTable;
  uint64_t device_ = 0;
};

class GraphTable : public PluginSlots<compute_plugin_graph_table> {
 public:
  // False if the plugin has no such extension.
  explicit operator bool() const noexcept { return has<&compute_plugin_graph_table::create>(); }

  // Leaves *out_graph 0 on error, and if the plugin sets no graph.
  compute_error* create(const std::vector<compute_plugin_graph_node>& nodes, int32_t slot_count,
                        uint64_t* out_graph) const;
  compute_error* run(uint64_t graph, const compute_plugin_graph_run& run) const noexcept {
    return call<&compute_plugin_graph_table::run>(graph, &run);
  }
  void release(uint64_t graph) const noexcept { tell<&compute_plugin_graph_table::release>(device_, graph); }

 private:
  friend class DeviceTable;
  uint64_t device_ = 0;
};

class NativeTable : public PluginSlots<compute_plugin_native_table> {
 public:
  // `out_handle` is the struct of that kind, zero except for its first three fields. UNSUPPORTED if the plugin has no
  // such slot.
  compute_error* device_handle(uint32_t kind, void* out_handle) const;
  compute_error* stream_handle(uint64_t stream, uint32_t kind, void* out_handle) const;
  compute_error* buffer_handle(const compute_plugin_operand& place, uint32_t kind, void* out_handle) const;

  // What DLPack says of the device. The second one throws if it says nothing.
  bool has_dlpack() const noexcept { return dlpack_.device_type != 0; }
  compute_native_dlpack dlpack() const;

 private:
  friend class DeviceTable;
  void ask_dlpack();

  uint64_t device_ = 0;
  compute_native_dlpack dlpack_{};
};

class ExternalTable : public PluginSlots<compute_plugin_external_table> {
 public:
  // UNSUPPORTED if the plugin has no such slot. An `out_external` has its size and kind set.
  compute_error* memory_create(int64_t size_bytes, int64_t alignment, uint64_t* out_buffer,
                               compute_external* out_external) const;
  compute_error* memory_import(const compute_external& external, uint64_t* out_buffer) const;
  compute_error* semaphore_create(uint64_t* out_semaphore, compute_external* out_external) const;
  compute_error* semaphore_import(const compute_external& external, uint64_t* out_semaphore) const;
  // For semaphores of the plugin.
  void semaphore_release(uint64_t semaphore) const noexcept {
    tell<&compute_plugin_external_table::semaphore_release>(device_, semaphore);
  }
  compute_error* semaphore_signal(uint64_t stream, uint64_t semaphore, uint64_t value) const noexcept {
    return call<&compute_plugin_external_table::semaphore_signal>(stream, semaphore, value);
  }
  compute_error* semaphore_wait(uint64_t stream, uint64_t semaphore, uint64_t value) const noexcept {
    return call<&compute_plugin_external_table::semaphore_wait>(stream, semaphore, value);
  }

 private:
  friend class DeviceTable;
  compute_error* lacks(const char* what) const noexcept;
  void check_slots() const;

  uint64_t device_ = 0;
};

class CollectiveTable : public PluginSlots<compute_plugin_collective_table> {
  using Table = compute_plugin_collective_table;

 public:
  // False if the plugin has no such extension.
  explicit operator bool() const noexcept { return has<&Table::make_id>(); }

  // Writes to `id`, and at most its size.
  compute_error* make_id(std::span<uint8_t> id, int64_t* out_size) const;
  compute_error* join(std::span<const uint8_t> id, int32_t size, int32_t rank, int64_t timeout_ns,
                      uint64_t* out_group) const;
  bool supports(uint64_t group, const compute_plugin_collective& collective) const {
    return get<&Table::supports>(group, &collective) != 0;
  }
  compute_error* run(uint64_t group, uint64_t stream, const compute_plugin_collective& collective) const noexcept {
    return call<&Table::run>(group, stream, &collective, int32_t{1});
  }
  compute_error* failure(uint64_t group) const noexcept { return call<&Table::failure>(group); }
  void abort(uint64_t group) const noexcept { tell<&Table::abort>(group); }
  void leave(uint64_t group) const noexcept { tell<&Table::leave>(group); }
  std::string describe(uint64_t group) const;

 private:
  friend class DeviceTable;
  uint64_t device_ = 0;
};

// The capabilities of an open device, checked.
struct DeviceCaps {
  uint32_t flags = 0;
  std::vector<compute_plugin_heap> heaps;
  int32_t priority_least = 0, priority_greatest = 0;
};

// Names and values of device settings.
using DeviceSettings = std::vector<std::pair<std::string, std::string>>;

// A process that uses a device.
struct ProcessMemory {
  int64_t process_id = 0;
  int64_t bytes = -1;  // -1: unknown
};

// Two clocks, read at about the same time, in nanoseconds.
struct ClockReading {
  int64_t device_ns = 0, host_ns = 0;
  int64_t wrap_ns = 0;  // after which the device's clock starts again at 0; 0: never

  // The time from `begin` to `end`, of the device's clock. They are less than half of wrap_ns apart.
  int64_t between(int64_t begin, int64_t end) const noexcept;
  // The time on the host's clock for a time of the device's clock that is near this reading.
  int64_t on_host(int64_t time_ns) const noexcept { return host_ns + between(device_ns, time_ns); }
};

class PluginTable : public PluginSlots<compute_plugin_table> {
 public:
  // Throws PLUGIN_REJECTED for a table that lacks a required slot.
  void take(const compute_plugin_table* given, const std::string& plugin);

  compute_error* enumerate(const compute_plugin_sink& sink) const {
    return call_noted<&compute_plugin_table::enumerate>(&sink);
  }
  // True if the plugin has rebuilt itself in a child after fork(). Nothing is logged.
  bool on_fork_child() const noexcept {
    using Table = compute_plugin_table;
    return has<&Table::on_fork_child>() && get_quietly<&Table::on_fork_child>(int32_t{0}) == 1;
  }
  void on_exit() const noexcept {
    if (has<&compute_plugin_table::on_exit>()) tell<&compute_plugin_table::on_exit>();
  }
  void close() const noexcept {
    if (has<&compute_plugin_table::close>()) tell<&compute_plugin_table::close>();
  }
  // The dtypes and ops that the plugin offers. Throws the plugin's error, and PLUGIN_REJECTED for an invalid table.
  void list_ops(const compute_plugin_ops_sink& sink) const;

 private:
  friend class DeviceTable;
  compute_error* open_device(const PluginPlace& device, uint64_t id, const compute_plugin_device_options& options,
                             uint64_t* out_device, const compute_plugin_device_table** out_table) const {
    return call_for<&compute_plugin_table::device_open>(device, id, &options, out_device, out_table);
  }
  const void* extension(uint64_t device, const char* name) const {
    return has<&compute_plugin_table::get_extension>()
               ? get<&compute_plugin_table::get_extension>(device, name, static_cast<int64_t>(std::strlen(name)))
               : nullptr;
  }
};

// An open device of a plugin. It is closed when the object is destroyed.
class DeviceTable : public PluginSlots<compute_plugin_device_table> {
  using Table = compute_plugin_device_table;

 public:
  DeviceTable() = default;
  ~DeviceTable() { close(); }

  // Throws the plugin's error, or PLUGIN_REJECTED for an invalid table or invalid capabilities; then the device is
  // closed again. `name` is the name of the device.
  DeviceCaps open(const PluginTable& plugin, uint64_t id, const std::string& name, const DeviceSettings& settings = {});
  // Does nothing for a device that is not open.
  void close() noexcept;

  // False if the plugin has no kernels.
  bool kernels(KernelTable& out_table) const;
  // Fills the tables of the extensions that exist.
  void extensions(const PluginTable& plugin, GraphTable& out_graphs, NativeTable& out_native,
                  ExternalTable& out_external, CollectiveTable& out_collectives) const;

  bool has_memory_info() const noexcept { return has<&Table::memory_info>(); }
  bool has_memory_map() const noexcept { return has<&Table::memory_map>() && has<&Table::memory_unmap>(); }
  bool has_memory_import() const noexcept { return has<&Table::memory_import>(); }
  bool has_times() const noexcept { return has<&Table::mark_time>(); }
  bool has_copy_peer() const noexcept { return has<&Table::copy_peer>(); }
  bool has_cancel() const noexcept { return has<&Table::stream_cancel>(); }
  bool has_host_waits() const noexcept { return has<&Table::stream_wait_host>(); }

  // *out_data is NULL unless the heap is HOST_SPACE.
  compute_error* memory_allocate(int32_t heap, bool is_host_space, int64_t size_bytes, uint64_t* out_buffer,
                                 void** out_data) const;
  void memory_free(int32_t heap, uint64_t buffer) const noexcept { tell<&Table::memory_free>(device_, heap, buffer); }
  // Bytes; -1: unknown.
  compute_error* memory_info(int32_t heap, int64_t* out_free, int64_t* out_total) const;
  compute_error* memory_map(int32_t heap, const compute_plugin_operand& place, int64_t size_bytes, int32_t access,
                            void** out_data) const;
  // The arguments of memory_map, and its result.
  void memory_unmap(int32_t heap, const compute_plugin_operand& place, int64_t size_bytes, int32_t access,
                    void* data) const noexcept;
  compute_error* memory_import(const compute_plugin_import& import, uint64_t* out_buffer) const;

  compute_error* stream_create(uint32_t flags, int32_t priority, uint64_t* out_stream) const;
  void stream_destroy(uint64_t stream) const noexcept { tell<&Table::stream_destroy>(stream); }
  compute_error* stream_mark(uint64_t stream, uint64_t number, uint32_t flags = 0) const noexcept {
    return call<&Table::stream_mark>(stream, number, flags);
  }
  compute_error* stream_wait(uint64_t stream, uint64_t other, uint64_t number) const noexcept {
    return call<&Table::stream_wait>(stream, other, number, 0u);
  }
  // Only if has_host_waits.
  compute_error* stream_wait_host(uint64_t stream, uint64_t* out_wait) const;
  void signal_host_wait(uint64_t wait) const noexcept { tell<&Table::signal_host_wait>(device_, wait); }
  // Only if has_cancel. Logs nothing, so that a signal handler can call it.
  compute_error* stream_cancel(uint64_t stream) const noexcept { return call<&Table::stream_cancel>(stream); }
  // `last_mark` returns the greatest number that has been marked. It is called after the slot: no greater number can
  // have been reached. *out_reached is 0 if the result is invalid.
  template <class LastMark>
  compute_error* stream_reached(uint64_t stream, LastMark&& last_mark, uint64_t* out_reached) const noexcept {
    *out_reached = 0;
    compute_error* error = call<&Table::stream_reached>(stream, out_reached);
    if (*out_reached <= last_mark()) [[likely]]
      return error;
    return beyond_marks(slot_name<&Table::stream_reached>, error, last_mark(), out_reached);
  }
  template <class LastMark>
  compute_error* stream_sync(uint64_t stream, uint64_t number, int64_t timeout_ns, LastMark&& last_mark,
                             uint64_t* out_reached) const noexcept {
    *out_reached = 0;
    compute_error* error = call<&Table::stream_sync>(stream, number, timeout_ns, out_reached);
    if (*out_reached > last_mark())
      return beyond_marks(slot_name<&Table::stream_sync>, error, last_mark(), out_reached);
    if (error == nullptr && timeout_ns == INT64_MAX && *out_reached < number) return gave_up(number, out_reached);
    return error;
  }

  // Only if has_times. NULL: the time is discarded.
  compute_error* mark_time(uint64_t stream, uint64_t number, int64_t* out_ns) const noexcept;
  compute_error* clock(ClockReading* out_reading) const;
  // Unknown values are -1. `out_processes` may be NULL.
  compute_error* telemetry(compute_plugin_telemetry* out_telemetry, std::vector<ProcessMemory>* out_processes) const;

  // `pinned` is the place of the host memory if it is in a heap of the device.
  compute_error* copy_from_host(uint64_t stream, const void* src, const compute_plugin_operand& dst, int64_t size_bytes,
                                const compute_plugin_operand* pinned = nullptr) const noexcept {
    return call<&Table::copy_from_host>(stream, src, pinned, &dst, size_bytes, 0u);
  }
  compute_error* copy_to_host(uint64_t stream, const compute_plugin_operand& src, void* dst, int64_t size_bytes,
                              const compute_plugin_operand* pinned = nullptr) const noexcept {
    return call<&Table::copy_to_host>(stream, &src, dst, pinned, size_bytes, 0u);
  }
  compute_error* fill(uint64_t stream, const compute_plugin_operand& dst, int64_t size_bytes, const void* pattern,
                      int32_t pattern_size) const noexcept {
    return call<&Table::fill>(stream, &dst, size_bytes, pattern, pattern_size, 0u);
  }
  // Only where has_copy_peer.
  compute_error* copy_peer(uint64_t stream, const DeviceTable& src_device, const compute_plugin_operand& src,
                           const compute_plugin_operand& dst, int64_t size_bytes) const noexcept {
    return call<&Table::copy_peer>(stream, src_device.device_, &src, &dst, size_bytes, 0u);
  }

  // *out_refusal is set if the op is not supported. UNSUPPORTED, the error for what must be understood, is a refusal.
  compute_error* op_query(const compute_plugin_op& op, compute_plugin_query_info* out_info,
                          std::optional<PluginRefusal>* out_refusal) const;
  // Without an error either *out_plan is not 0 or *out_refusal is set.
  compute_error* op_prepare(const compute_plugin_op& op, uint64_t* out_plan, compute_plugin_plan_info* out_info,
                            std::optional<PluginRefusal>* out_refusal) const;
  // What the first run would do besides its work.
  compute_error* plan_warm(uint64_t plan) const {
    return has<&Table::plan_warm>() ? call_noted<&Table::plan_warm>(plan) : nullptr;
  }
  compute_error* plan_run(uint64_t plan, const compute_plugin_run& run) const noexcept {
    return call<&Table::plan_run>(plan, &run);
  }
  void plan_release(uint64_t plan) const noexcept { tell<&Table::plan_release>(device_, plan); }

 private:
  DeviceCaps caps() const;

  compute_error* beyond_marks(const char* slot, compute_error* error, uint64_t last_mark,
                              uint64_t* out_reached) const noexcept;
  compute_error* gave_up(uint64_t number, uint64_t* out_reached) const noexcept;

  uint64_t device_ = 0;
};

}  // namespace compute
