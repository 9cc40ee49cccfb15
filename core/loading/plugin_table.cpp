// SPDX-License-Identifier: Apache-2.0
#include "core/loading/plugin_table.hpp"

#include <compute/compute.h>
#include <fmt/format.h>

#include <memory>
#include <string_view>
#include <utility>

#include "core/base/sized.hpp"
#include "core/loading/plugin_core.hpp"
#include "core/process/log.hpp"

namespace compute {
namespace {

// "plugin acme: device_open of acme0"
std::string words_for(const PluginPlace& place, const char* function) {
  return place.device.empty() ? fmt::format("plugin {}: {}", place.plugin, function)
                              : fmt::format("plugin {}: {} of {}", place.plugin, function, place.device);
}

// What was thrown, for a message. Called inside a handler.
std::string thrown_words() {
  try {
    throw;
  } catch (const std::exception& exception) {
    return fmt::format("an exception: {}", exception.what());
  } catch (...) {
    return "an exception";
  }
}

constexpr int32_t kMostHeaps = 64;

// Runs the check of a slot's results, and adds the slot's name to its errors.
template <class F>
compute_error* check_answer(const PluginPlace& place, const char* function, F&& look) noexcept {
  return guard([&] {
    try {
      look();
    } catch (Error& error) {
      error.message.insert(0, words_for(place, function) + ": ");
      throw std::move(error).on_device(place.device);
    }
  });
}

[[noreturn]] void reject(const std::string& what) { throw Error(COMPUTE_ERROR_PLUGIN_REJECTED, what); }

enum class Need : uint8_t { REQUIRED, OPTIONAL, NOT_OF_HOST };

// The first slot that must be there and is not; NULL if there is none.
template <class Table>
const char* missing_slot(const Table& table, bool is_host) noexcept;

#define COMPUTE_PLUGIN_SLOT(name, slot, need)                                                           \
  if constexpr (std::is_same_v<Table, name>) {                                                          \
    static_assert(sizeof(static_cast<name*>(nullptr)->slot) == sizeof(void*));                          \
    ++count;                                                                                            \
    const bool may_lack = Need::need == Need::OPTIONAL || (Need::need == Need::NOT_OF_HOST && is_host); \
    if (missing == nullptr && !may_lack && table.slot == nullptr) missing = #slot;                      \
  }
template <class Table>
const char* missing_slot(const Table& table, bool is_host) noexcept {
  const char* missing = nullptr;
  [[maybe_unused]] size_t count = 0;
#include "core/loading/plugin_slots.def"
  return missing;
}
#undef COMPUTE_PLUGIN_SLOT

// A table is its size and its slots: so a slot without a row is seen here.
template <class Table>
constexpr size_t slot_rows() {
  size_t rows = 0;
#define COMPUTE_PLUGIN_SLOT(name, slot, need) rows += std::is_same_v<Table, name> ? 1 : 0;
#include "core/loading/plugin_slots.def"
#undef COMPUTE_PLUGIN_SLOT
  return rows;
}
template <class Table>
constexpr bool has_all_rows = sizeof(Table) == sizeof(int64_t) + slot_rows<Table>() * sizeof(void*);
static_assert(has_all_rows<compute_plugin_table> && has_all_rows<compute_plugin_device_table> &&
                  has_all_rows<compute_plugin_kernel_table> && has_all_rows<compute_plugin_graph_table> &&
                  has_all_rows<compute_plugin_native_table> && has_all_rows<compute_plugin_external_table> &&
                  has_all_rows<compute_plugin_collective_table> && has_all_rows<compute_plugin_ops_table>,
              "plugin_slots.def lacks a slot of plugin.h");

compute_string borrowed(std::string_view text) { return {text.data(), static_cast<int64_t>(text.size())}; }

template <class T>
T sized_struct(uint32_t type) {
  T value{};
  value.struct_size = sizeof value;
  value.struct_type = type;
  return value;
}

// After a slot that gave an error nothing else of it counts.
template <class T>
compute_error* or_nothing(compute_error* error, T* out) noexcept {
  if (error != nullptr) *out = T{};
  return error;
}

}  // namespace

// ---- Errors ---------------------------------------------------------------------------------------------------------

compute_error* contract_error(const PluginPlace& place, const char* function, const std::string& what) noexcept {
  return guard([&] {
    throw Error(COMPUTE_ERROR_PLUGIN_REJECTED, words_for(place, function) + " " + what).on_device(place.device);
  });
}

compute_error* error_of_thrown(const PluginPlace& place, const char* function) noexcept {
  return guard([&] {
    try {
      throw;
    } catch (const std::bad_alloc&) {
      throw;  // a shortage, which may pass
    } catch (...) {
    }
    const std::string words = thrown_words();
    throw Error(COMPUTE_ERROR_PLUGIN_REJECTED, fmt::format("{} threw {}", words_for(place, function), words))
        .on_device(place.device);
  });
}

compute_error* take_plugin_error(const PluginPlace& place, const char* function, compute_error* error) noexcept {
  if (take_given_error(error)) return error;
  return contract_error(place, function,
                        "returned an error that it had returned before, or that error_new did not create");
}

void note_entry(const PluginPlace& place, const char* function) noexcept {
  if (!log_enabled(COMPUTE_LOG_TRACE)) return;
  try {
    log(COMPUTE_LOG_TRACE, "load", "entering " + words_for(place, function));
  } catch (const std::bad_alloc&) {
    // The line is lost.
  }
}

void log_thrown(const PluginPlace& place, const char* function) noexcept {
  compute_error* error = error_of_thrown(place, function);
  log(COMPUTE_LOG_ERROR, "error", error->message);
  compute_error_free(error);
}

// ---- Tables ---------------------------------------------------------------------------------------------------------

template <class Table>
void PluginSlots<Table>::adopt(const Table* given, PluginPlace place) {
  table_ = copy_sized(given, given != nullptr ? given->table_size : 0);
  place_ = std::move(place);
}

template <class Table>
void PluginSlots<Table>::require_slots(bool is_host) const {
  const char* missing = missing_slot(table_, is_host);
  if (missing == nullptr) return;
  throw Error(COMPUTE_ERROR_PLUGIN_REJECTED, place_.device.empty()
                                                 ? fmt::format("its table lacks {}", missing)
                                                 : fmt::format("{}: plugin {} leaves the required slot {} empty",
                                                               place_.device, place_.plugin, missing));
}

void PluginTable::take(const compute_plugin_table* given, const std::string& plugin) {
  adopt(given, {plugin, ""});
  require_slots();
}

namespace {

class OpsTable : public PluginSlots<compute_plugin_ops_table> {
 public:
  OpsTable(const void* given, const PluginPlace& place) {
    adopt(static_cast<const compute_plugin_ops_table*>(given), place);
    require_slots();
  }
  compute_error* list(const compute_plugin_ops_sink& sink) const {
    return call_noted<&compute_plugin_ops_table::list>(&sink);
  }
};

}  // namespace

void PluginTable::list_ops(const compute_plugin_ops_sink& sink) const {
  if (const void* given = extension(0, COMPUTE_PLUGIN_EXT_OPS_V1)) throw_if(OpsTable(given, place()).list(sink));
}

// ---- Devices --------------------------------------------------------------------------------------------------------

DeviceCaps DeviceTable::open(const PluginTable& plugin, uint64_t id, const std::string& name,
                             const DeviceSettings& settings) {
  const PluginPlace place{plugin.place().plugin, name};
  std::vector<compute_plugin_device_setting> given_settings;
  for (const auto& [setting, value] : settings) given_settings.push_back({borrowed(setting), borrowed(value)});
  compute_plugin_device_options options{};
  options.struct_size = sizeof options;
  options.struct_type = COMPUTE_PLUGIN_STRUCT_DEVICE_OPTIONS;
  options.settings = given_settings.data();
  options.setting_count = static_cast<int32_t>(given_settings.size());
  uint64_t handle = 0;
  const compute_plugin_device_table* given = nullptr;
  try {
    throw_if(plugin.open_device(place, id, options, &handle, &given));
  } catch (Error& error) {
    // The arguments are core's, not the program's: another device may still do.
    if (error.code == COMPUTE_ERROR_INVALID_ARGUMENT) error.code = COMPUTE_ERROR_PLUGIN_REJECTED;
    throw;
  }
  const auto reject_open = [&](const char* what) { throw_if(contract_error(place, "device_open", what)); };
  if (given == nullptr) reject_open("returned no table");
  adopt(given, place);
  if (handle == 0) reject_open("returned 0 for the device");
  device_ = handle;  // from here on it is closed
  try {
    DeviceCaps caps = this->caps();
    require_slots((caps.flags & COMPUTE_PLUGIN_DEVICE_IS_HOST) != 0);
    if (has<&Table::memory_map>() != has<&Table::memory_unmap>())
      reject_open("returned a table with only one of memory_map and memory_unmap");
    if (has<&Table::mark_time>() != has<&Table::clock>())
      reject_open("returned a table with only one of mark_time and clock");
    if (has<&Table::stream_wait_host>() != has<&Table::signal_host_wait>())
      reject_open("returned a table with only one of stream_wait_host and signal_host_wait");
    return caps;
  } catch (...) {
    close();
    throw;
  }
}

void DeviceTable::close() noexcept {
  if (device_ != 0 && has<&Table::close>()) tell<&Table::close>(device_);
  device_ = 0;
}

DeviceCaps DeviceTable::caps() const {
  if (!has<&Table::caps>()) require_slots();
  const compute_plugin_caps* given = get<&Table::caps>(device_);
  DeviceCaps result;
  throw_if(check_answer(place(), slot_name<&Table::caps>, [&] {
    const compute_plugin_caps caps = read_plugin_struct(given, "the result");
    result.flags = caps.flags;
    if (caps.heap_count < 1 || caps.heaps == nullptr) reject("it has no heap");
    if (caps.heap_count > kMostHeaps) reject(fmt::format("it has {} heaps", caps.heap_count));
    for (int32_t i = 0; i < caps.heap_count; ++i) {
      const compute_plugin_heap heap = read_plugin_struct_at(caps.heaps, i, "a heap");
      const auto is_alignment = [](int64_t value) { return value >= 0 && (value & (value - 1)) == 0; };
      if (!is_alignment(heap.offset_alignment))
        reject(fmt::format("offset alignment {} is not a power of two", heap.offset_alignment));
      if (!is_alignment(heap.base_alignment))
        reject(fmt::format("base alignment {} is not a power of two", heap.base_alignment));
      result.heaps.push_back(heap);
    }
    if (caps.priority_least > 0 || caps.priority_greatest < 0) {
      reject(fmt::format("the priorities {} to {} do not include 0", caps.priority_least, caps.priority_greatest));
    }
    result.priority_least = caps.priority_least;
    result.priority_greatest = caps.priority_greatest;
  }));
  return result;
}

bool DeviceTable::kernels(KernelTable& out_table) const {
  if (!has<&Table::kernels>()) return false;
  const compute_plugin_kernel_table* given = get<&Table::kernels>(device_);
  if (given == nullptr) throw_if(broken<&Table::kernels>("returned no table"));
  out_table.adopt(given, place());
  out_table.require_slots();
  out_table.device_ = device_;
  return true;
}

void DeviceTable::extensions(const PluginTable& plugin, GraphTable& out_graphs, NativeTable& out_native,
                             ExternalTable& out_external, CollectiveTable& out_collectives) const {
  const auto take = [&](const char* name, auto& out) {
    const void* given = plugin.extension(device_, name);
    out.adopt(static_cast<const typename std::remove_reference_t<decltype(out)>::TableType*>(given), place());
    out.device_ = device_;
    return given != nullptr;
  };
  if (take(COMPUTE_PLUGIN_EXT_GRAPH_V1, out_graphs)) out_graphs.require_slots();
  if (take(COMPUTE_PLUGIN_EXT_NATIVE_V1, out_native)) out_native.ask_dlpack();
  if (take(COMPUTE_PLUGIN_EXT_EXTERNAL_DRAFT1, out_external)) out_external.check_slots();
  if (take(COMPUTE_PLUGIN_EXT_COLLECTIVE_V1, out_collectives)) out_collectives.require_slots();
}

compute_error* DeviceTable::memory_allocate(int32_t heap, bool is_host_space, int64_t size_bytes, uint64_t* out_buffer,
                                            void** out_data) const {
  compute_plugin_allocation request{};
  request.struct_size = sizeof request;
  request.struct_type = COMPUTE_PLUGIN_STRUCT_ALLOCATION;
  request.heap = heap;
  request.size_bytes = size_bytes;
  *out_buffer = 0;
  *out_data = nullptr;
  compute_error* error =
      or_nothing(call_noted<&Table::memory_allocate>(device_, &request, out_buffer, out_data), out_buffer);
  if (error != nullptr) return error;
  if (*out_buffer == 0) return broken<&Table::memory_allocate>(fmt::format("returned 0 for {} bytes", size_bytes));
  if (!is_host_space) {
    *out_data = nullptr;
  } else if (*out_data == nullptr) {
    memory_free(heap, std::exchange(*out_buffer, 0));
    return broken<&Table::memory_allocate>(fmt::format("returned no address for heap {}, which is HOST_SPACE", heap));
  }
  return nullptr;
}

compute_error* DeviceTable::memory_info(int32_t heap, int64_t* out_free, int64_t* out_total) const {
  *out_free = *out_total = -1;
  if (!has<&Table::memory_info>()) return nullptr;
  compute_error* error = call_noted<&Table::memory_info>(device_, heap, out_free, out_total);
  if (error == nullptr && *out_free >= -1 && *out_total >= -1) return nullptr;
  const int64_t free_bytes = std::exchange(*out_free, -1), total = std::exchange(*out_total, -1);
  return error != nullptr
             ? error
             : broken<&Table::memory_info>(fmt::format("returned {} free of {} total bytes", free_bytes, total));
}

namespace {

compute_plugin_mapping mapping_of(int32_t heap, const compute_plugin_operand& place, int64_t size_bytes,
                                  int32_t access) {
  auto mapping = sized_struct<compute_plugin_mapping>(COMPUTE_PLUGIN_STRUCT_MAPPING);
  mapping.buffer = place.buffer;
  mapping.offset_bytes = place.offset_bytes;
  mapping.size_bytes = size_bytes;
  mapping.heap = heap;
  mapping.access = access;
  return mapping;
}

}  // namespace

compute_error* DeviceTable::memory_map(int32_t heap, const compute_plugin_operand& place, int64_t size_bytes,
                                       int32_t access, void** out_data) const {
  *out_data = nullptr;
  const compute_plugin_mapping mapping = mapping_of(heap, place, size_bytes, access);
  compute_error* error = or_nothing(call_noted<&Table::memory_map>(device_, &mapping, out_data), out_data);
  if (error == nullptr && *out_data == nullptr) return broken<&Table::memory_map>("returned NULL");
  return error;
}

void DeviceTable::memory_unmap(int32_t heap, const compute_plugin_operand& place, int64_t size_bytes, int32_t access,
                               void* data) const noexcept {
  const compute_plugin_mapping mapping = mapping_of(heap, place, size_bytes, access);
  tell<&Table::memory_unmap>(device_, &mapping, data);
}

compute_error* DeviceTable::memory_import(const compute_plugin_import& import, uint64_t* out_buffer) const {
  *out_buffer = 0;
  compute_error* error = or_nothing(call_noted<&Table::memory_import>(device_, &import, out_buffer), out_buffer);
  if (error == nullptr && *out_buffer == 0 && import.size_bytes > 0)
    return broken<&Table::memory_import>("returned 0 for the buffer");
  return error;
}

compute_error* DeviceTable::stream_create(uint32_t flags, int32_t priority, uint64_t* out_stream) const {
  compute_plugin_stream_options options{};
  options.struct_size = sizeof options;
  options.struct_type = COMPUTE_PLUGIN_STRUCT_STREAM_OPTIONS;
  options.flags = flags;
  options.priority = priority;
  *out_stream = 0;
  compute_error* error = or_nothing(call_noted<&Table::stream_create>(device_, &options, out_stream), out_stream);
  if (error == nullptr && *out_stream == 0) return broken<&Table::stream_create>("returned 0 for the stream");
  return error;
}

compute_error* DeviceTable::stream_wait_host(uint64_t stream, uint64_t* out_wait) const {
  *out_wait = 0;
  compute_error* error = or_nothing(call_noted<&Table::stream_wait_host>(stream, out_wait), out_wait);
  if (error == nullptr && *out_wait == 0) return broken<&Table::stream_wait_host>("returned 0 for the wait");
  return error;
}

compute_error* DeviceTable::mark_time(uint64_t stream, uint64_t number, int64_t* out_ns) const noexcept {
  if (out_ns == nullptr) return call<&Table::mark_time>(stream, number, out_ns);
  *out_ns = 0;
  return or_nothing(call<&Table::mark_time>(stream, number, out_ns), out_ns);
}

compute_error* DeviceTable::clock(ClockReading* out_reading) const {
  *out_reading = {};
  compute_error* error = or_nothing(
      call_noted<&Table::clock>(device_, &out_reading->device_ns, &out_reading->host_ns, &out_reading->wrap_ns),
      out_reading);
  if (error == nullptr && out_reading->wrap_ns < 0) {
    const int64_t wrap_ns = std::exchange(*out_reading, {}).wrap_ns;
    return broken<&Table::clock>(fmt::format("returned {} ns until its times start again", wrap_ns));
  }
  return error;
}

int64_t ClockReading::between(int64_t begin, int64_t end) const noexcept {
  const int64_t passed = end - begin;
  if (wrap_ns == 0) return passed;
  if (passed > wrap_ns / 2) return passed - wrap_ns;
  return passed < -(wrap_ns / 2) ? passed + wrap_ns : passed;
}

namespace {

// Receives the processes of a device.
struct TakingProcesses {
  std::vector<ProcessMemory> given;
  std::unique_ptr<compute_error, decltype(&compute_error_free)> fault{nullptr, compute_error_free};

  static void take(void* context, const compute_plugin_process* given) {
    auto& self = *static_cast<TakingProcesses*>(context);
    if (self.fault) return;
    self.fault.reset(guard([&] {
      const compute_plugin_process process = read_plugin_struct(given, "a process");
      if (process.memory_bytes < -1)
        reject(fmt::format("process {} uses {} bytes", process.process_id, process.memory_bytes));
      self.given.push_back({process.process_id, process.memory_bytes});
    }));
  }
};

}  // namespace

compute_error* DeviceTable::telemetry(compute_plugin_telemetry* out_telemetry,
                                      std::vector<ProcessMemory>* out_processes) const {
  const auto unknown = [] {
    compute_plugin_telemetry value{};
    value.struct_size = sizeof value;
    value.struct_type = COMPUTE_PLUGIN_STRUCT_TELEMETRY;
    value.utilization_percent = value.temperature_millidegrees = -1;
    value.power_milliwatts = value.memory_process_bytes = value.memory_used_bytes = -1;
    return value;
  };
  *out_telemetry = unknown();
  if (!has<&Table::telemetry>()) return nullptr;
  TakingProcesses processes;
  compute_error* error =
      call_noted<&Table::telemetry>(device_, out_telemetry, TakingProcesses::take, static_cast<void*>(&processes));
  if (error == nullptr) {
    error = check_answer(place(), slot_name<&Table::telemetry>, [&] {
      const compute_plugin_telemetry& given = *out_telemetry;
      require_filled_struct(given, "the result");
      if (given.utilization_percent < -1 || given.utilization_percent > 100)
        reject(fmt::format("utilization_percent is {}", given.utilization_percent));
      if (processes.fault) throw Error::adopt(processes.fault.release());
      if (given.power_milliwatts < -1) reject(fmt::format("power_milliwatts is {}", given.power_milliwatts));
      if (given.memory_process_bytes < -1 || given.memory_used_bytes < -1)
        reject(fmt::format("memory_process_bytes is {} and memory_used_bytes is {}", given.memory_process_bytes,
                           given.memory_used_bytes));
    });
  }
  if (error != nullptr) {
    *out_telemetry = unknown();
  } else if (out_processes != nullptr) {
    *out_processes = std::move(processes.given);
  }
  return error;
}

compute_error* DeviceTable::beyond_marks(const char* slot, compute_error* error, uint64_t last_mark,
                                         uint64_t* out_reached) const noexcept {
  compute_error_free(error);
  const uint64_t claimed = std::exchange(*out_reached, 0);
  return check_answer(place(), slot, [&] {
    reject(fmt::format("it reported mark {} as reached, but the last mark is {}", claimed, last_mark));
  });
}

compute_error* DeviceTable::gave_up(uint64_t number, uint64_t* out_reached) const noexcept {
  return check_answer(place(), slot_name<&Table::stream_sync>, [&] {
    reject(fmt::format("it returned without a time limit at mark {}, before mark {}", *out_reached, number));
  });
}

namespace {

// What a plugin is given to refuse an op with.
struct Refusing {
  std::optional<PluginRefusal> given;
  int times = 0;
  std::unique_ptr<compute_error, decltype(&compute_error_free)> fault{nullptr, compute_error_free};

  static void take(void* context, const compute_plugin_refusal* refusal) {
    auto& self = *static_cast<Refusing*>(context);
    ++self.times;
    self.fault.reset(guard([&] {
      const compute_plugin_refusal value = read_plugin_struct(refusal, "its refusal");
      PluginRefusal taken{value.reason, value.argument, plugin_text(value.text, "a refusal's text")};
      if (const std::string hint = plugin_text(value.hint, "a refusal's hint"); !hint.empty())
        taken.text += "; " + hint;
      self.given = std::move(taken);
    }));
  }

  // Called by check_answer.
  void require_good() {
    if (times > 1) reject("the op was refused twice");
    if (fault) throw Error::adopt(fault.release());
  }
};

}  // namespace

namespace {

// An op that has something that must be understood is refused.
compute_error* or_refusal(compute_error* error, std::optional<PluginRefusal>* out_refusal) noexcept {
  if (error->code != COMPUTE_ERROR_UNSUPPORTED) return error;
  return guard([&] {
    *out_refusal = PluginRefusal{COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED, -1, Error::adopt(error).message};
  });
}

void clear_info(compute_plugin_query_info* out_info) {
  *out_info = sized_struct<compute_plugin_query_info>(COMPUTE_PLUGIN_STRUCT_QUERY_INFO);
}

}  // namespace

compute_error* DeviceTable::op_query(const compute_plugin_op& op, compute_plugin_query_info* out_info,
                                     std::optional<PluginRefusal>* out_refusal) const {
  out_refusal->reset();
  clear_info(out_info);
  Refusing refusing;
  if (compute_error* error = call_noted<&Table::op_query>(device_, &op, out_info, Refusing::take, &refusing)) {
    clear_info(out_info);
    return or_refusal(error, out_refusal);
  }
  return check_answer(place(), slot_name<&Table::op_query>, [&] {
    refusing.require_good();
    require_filled_struct(*out_info, "the result");
    if (out_info->supported != 0 && out_info->supported != 1)
      reject(fmt::format("`supported` is {}", out_info->supported));
    if (out_info->supported == 1 && refusing.given) reject("`supported` is 1 for an op that it refused");
    if (out_info->workspace_bytes < -1) reject(fmt::format("workspace_bytes is {}", out_info->workspace_bytes));
    if (out_info->supported == 0) *out_refusal = std::move(refusing.given).value_or(PluginRefusal{});
  });
}

namespace {

void clear_info(compute_plugin_plan_info* out_info) {
  *out_info = sized_struct<compute_plugin_plan_info>(COMPUTE_PLUGIN_STRUCT_PLAN_INFO);
}

// Called by check_answer.
void require_good(const compute_plugin_plan_info& info) {
  require_filled_struct(info, "the result");
  if (info.workspace_bytes < 0) reject(fmt::format("workspace_bytes is {}", info.workspace_bytes));
  if (info.kernels_compiled < 0) reject(fmt::format("kernels_compiled is {}", info.kernels_compiled));
  if (info.argument_bytes < 0) reject(fmt::format("argument_bytes is {}", info.argument_bytes));
}

}  // namespace

compute_error* DeviceTable::op_prepare(const compute_plugin_op& op, uint64_t* out_plan,
                                       compute_plugin_plan_info* out_info,
                                       std::optional<PluginRefusal>* out_refusal) const {
  out_refusal->reset();
  *out_plan = 0;
  clear_info(out_info);
  Refusing refusing;
  if (compute_error* error = or_nothing(
          call_noted<&Table::op_prepare>(device_, &op, out_plan, out_info, Refusing::take, &refusing), out_plan)) {
    clear_info(out_info);
    return or_refusal(error, out_refusal);
  }
  compute_error* error = check_answer(place(), slot_name<&Table::op_prepare>, [&] {
    refusing.require_good();
    if (refusing.given && *out_plan != 0) reject("it returned a plan for an op that it refused");
    if (!refusing.given && *out_plan == 0) reject("it returned neither a plan nor a refusal");
    require_good(*out_info);
    *out_refusal = std::move(refusing.given);
  });
  if (error != nullptr && *out_plan != 0) plan_release(std::exchange(*out_plan, 0));
  return error;
}

// ---- Extensions -----------------------------------------------------------------------------------------------------

compute_error* KernelTable::compile(const compute_plugin_kernel_source& source, uint64_t* out_kernel,
                                    compute_plugin_kernel_info* out_info) const {
  using Table = compute_plugin_kernel_table;
  *out_kernel = 0;
  *out_info = {};
  out_info->struct_size = sizeof *out_info;
  out_info->struct_type = COMPUTE_PLUGIN_STRUCT_KERNEL_INFO;
  out_info->argument_count = -1;
  if (compute_error* error =
          or_nothing(call_noted<&Table::compile>(device_, &source, out_kernel, out_info), out_kernel))
    return error;
  compute_error* error = check_answer(place(), slot_name<&Table::compile>, [&] {
    if (*out_kernel == 0) reject("it returned 0 for the kernel");
    require_filled_struct(*out_info, "the result");
  });
  if (error != nullptr && *out_kernel != 0) release(std::exchange(*out_kernel, 0));
  return error;
}

namespace {

compute_error* no_handles(const PluginPlace& place, const char* what) noexcept {
  return guard([&] {
    throw Error(COMPUTE_ERROR_UNSUPPORTED, fmt::format("{} does not provide native handles of {}", place.device, what))
        .on_device(place.device);
  });
}

}  // namespace

compute_error* GraphTable::create(const std::vector<compute_plugin_graph_node>& nodes, int32_t slot_count,
                                  uint64_t* out_graph) const {
  using Table = compute_plugin_graph_table;
  compute_plugin_graph graph{};
  graph.struct_size = sizeof graph;
  graph.struct_type = COMPUTE_PLUGIN_STRUCT_GRAPH;
  graph.slot_count = slot_count;
  graph.nodes = nodes.data();
  graph.node_count = static_cast<int64_t>(nodes.size());
  *out_graph = 0;
  compute_error* error = or_nothing(call_noted<&Table::create>(device_, &graph, out_graph), out_graph);
  if (error == nullptr && *out_graph == 0) return broken<&Table::create>("returned no graph");
  return error;
}

compute_error* NativeTable::device_handle(uint32_t kind, void* out_handle) const {
  using Table = compute_plugin_native_table;
  return has<&Table::device_handle>() ? call_noted<&Table::device_handle>(device_, kind, out_handle)
                                      : no_handles(place(), "devices");
}

compute_error* NativeTable::stream_handle(uint64_t stream, uint32_t kind, void* out_handle) const {
  using Table = compute_plugin_native_table;
  return has<&Table::stream_handle>() ? call_noted<&Table::stream_handle>(stream, kind, out_handle)
                                      : no_handles(place(), "streams");
}

compute_error* NativeTable::buffer_handle(const compute_plugin_operand& place, uint32_t kind, void* out_handle) const {
  using Table = compute_plugin_native_table;
  return has<&Table::buffer_handle>() ? call_noted<&Table::buffer_handle>(device_, &place, kind, out_handle)
                                      : no_handles(this->place(), "memory");
}

void NativeTable::ask_dlpack() {
  compute_native_dlpack named{};
  named.struct_size = sizeof named;
  named.struct_type = COMPUTE_NATIVE_DLPACK;
  if (compute_error* error = device_handle(COMPUTE_NATIVE_DLPACK, &named)) {
    compute_error_free(error);
  } else {
    dlpack_ = named;
  }
}

compute_native_dlpack NativeTable::dlpack() const {
  if (has_dlpack()) return dlpack_;
  throw Error(COMPUTE_ERROR_UNSUPPORTED, fmt::format("{} has no DLPack device", place().device))
      .on_device(place().device);
}

void ExternalTable::check_slots() const {
  using Table = compute_plugin_external_table;
  const bool released = has<&Table::semaphore_release>();
  if (has<&Table::semaphore_signal>() == released && has<&Table::semaphore_wait>() == released &&
      (released || (!has<&Table::semaphore_import>() && !has<&Table::semaphore_create>())))
    return;
  throw Error(COMPUTE_ERROR_PLUGIN_REJECTED,
              fmt::format("{}: the table of {} has only some of the functions of semaphores", place().device,
                          COMPUTE_PLUGIN_EXT_EXTERNAL_DRAFT1));
}

compute_error* ExternalTable::lacks(const char* what) const noexcept {
  return guard([&] {
    throw Error(COMPUTE_ERROR_UNSUPPORTED, fmt::format("{} does not {}", place().device, what))
        .on_device(place().device);
  });
}

namespace {

compute_plugin_external_request request_for(uint32_t kind, int64_t size_bytes, int64_t alignment) {
  auto request = sized_struct<compute_plugin_external_request>(COMPUTE_PLUGIN_STRUCT_EXTERNAL_REQUEST);
  request.kind = kind;
  request.size_bytes = size_bytes;
  request.alignment = alignment;
  return request;
}

}  // namespace

compute_error* ExternalTable::memory_create(int64_t size_bytes, int64_t alignment, uint64_t* out_buffer,
                                            compute_external* out_external) const {
  using Table = compute_plugin_external_table;
  *out_buffer = 0;
  if (!has<&Table::memory_create>()) return lacks("share memory with other libraries");
  const compute_plugin_external_request request = request_for(out_external->kind, size_bytes, alignment);
  compute_error* error =
      or_nothing(call_noted<&Table::memory_create>(device_, &request, out_buffer, out_external), out_buffer);
  if (error == nullptr && *out_buffer == 0) return broken<&Table::memory_create>("returned 0 for the buffer");
  return error;
}

compute_error* ExternalTable::memory_import(const compute_external& external, uint64_t* out_buffer) const {
  using Table = compute_plugin_external_table;
  *out_buffer = 0;
  if (!has<&Table::memory_import>()) return lacks("import external memory");
  compute_error* error = or_nothing(call_noted<&Table::memory_import>(device_, &external, out_buffer), out_buffer);
  if (error == nullptr && *out_buffer == 0) return broken<&Table::memory_import>("returned 0 for the buffer");
  return error;
}

compute_error* ExternalTable::semaphore_create(uint64_t* out_semaphore, compute_external* out_external) const {
  using Table = compute_plugin_external_table;
  *out_semaphore = 0;
  if (!has<&Table::semaphore_create>()) return lacks("share semaphores with other libraries");
  const compute_plugin_external_request request = request_for(out_external->kind, 0, 0);
  compute_error* error =
      or_nothing(call_noted<&Table::semaphore_create>(device_, &request, out_semaphore, out_external), out_semaphore);
  if (error == nullptr && *out_semaphore == 0) return broken<&Table::semaphore_create>("returned 0 for the semaphore");
  return error;
}

compute_error* ExternalTable::semaphore_import(const compute_external& external, uint64_t* out_semaphore) const {
  using Table = compute_plugin_external_table;
  *out_semaphore = 0;
  if (!has<&Table::semaphore_import>()) return lacks("import external semaphores");
  compute_error* error =
      or_nothing(call_noted<&Table::semaphore_import>(device_, &external, out_semaphore), out_semaphore);
  if (error == nullptr && *out_semaphore == 0) return broken<&Table::semaphore_import>("returned 0 for the semaphore");
  return error;
}

compute_error* CollectiveTable::make_id(std::span<uint8_t> id, int64_t* out_size) const {
  *out_size = 0;
  const auto capacity = static_cast<int64_t>(id.size());
  compute_error* error =
      or_nothing(call_noted<&Table::make_id>(device_, static_cast<void*>(id.data()), capacity, out_size), out_size);
  if (error == nullptr && (*out_size < 0 || *out_size > capacity)) {
    return broken<&Table::make_id>(
        fmt::format("returned an id of {} bytes; there are {}", std::exchange(*out_size, 0), capacity));
  }
  return error;
}

compute_error* CollectiveTable::join(std::span<const uint8_t> id, int32_t size, int32_t rank, int64_t timeout_ns,
                                     uint64_t* out_group) const {
  auto options = sized_struct<compute_plugin_group_options>(COMPUTE_PLUGIN_STRUCT_GROUP_OPTIONS);
  options.id = id.data();
  options.id_size = static_cast<int64_t>(id.size());
  options.size = size;
  options.rank = rank;
  options.timeout_ns = timeout_ns;
  *out_group = 0;
  compute_error* error = or_nothing(call_noted<&Table::join>(device_, &options, out_group), out_group);
  if (error == nullptr && *out_group == 0) return broken<&Table::join>("returned 0 for the group");
  return error;
}

std::string CollectiveTable::describe(uint64_t group) const {
  compute_string text{};
  tell<&Table::describe>(group, &text);
  std::string description = plugin_text(text, "the description of a group");
  return description.empty() ? place().plugin : description;
}

}  // namespace compute
