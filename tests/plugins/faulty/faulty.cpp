// SPDX-License-Identifier: Apache-2.0
// The layer around the minimal plugin: tables whose slots check for faults before they continue.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "../minimal/minimal.hpp"
#include "faults.hpp"

// The minimal plugin's two functions under other names: see CMakeLists.txt.
extern "C" const compute_plugin_manifest* minimal_plugin_query(void);
extern "C" compute_error* minimal_plugin_open(uint32_t interface_version, const compute_plugin_core* core,
                                              const compute_plugin_table** out_table);

namespace faulty {
namespace {

template <size_t kSize>
struct Name {
  constexpr Name(const char (&text)[kSize]) { std::copy_n(text, kSize, data); }
  char data[kSize];
};

// A table or struct that may claim a larger size: readable garbage follows it.
template <class T>
struct Padded {
  T value;
  unsigned char garbage[64];
};
template <class T>
Padded<T> padded(const T& value) {
  Padded<T> result;
  result.value = value;
  std::memset(result.garbage, 0xEE, sizeof result.garbage);
  return result;
}

// Sizes as of an older or newer plugin. `floor` is a size that lacks something.
template <class T, class Size>
const T* resized(Padded<T>& object, Size T::*size, const std::optional<Fault>& fault, size_t floor) {
  if (!fault) return &object.value;
  if (fault->is("null")) return nullptr;
  if (fault->is("zero")) object.value.*size = 0;
  if (fault->is("small")) object.value.*size = static_cast<Size>(floor);
  if (fault->is("large")) object.value.*size = static_cast<Size>(sizeof object);
  return &object.value;
}

// ---- Slots ----------------------------------------------------------------------------------------------------------

compute_plugin_table real_table = {};
compute_plugin_device_table real_device_table = {};
const compute_plugin_table& real(const compute_plugin_table*) { return real_table; }
const compute_plugin_device_table& real(const compute_plugin_device_table*) { return real_device_table; }

template <Name kName>
constexpr bool kAsksStream =
    std::string_view(kName.data) == "stream_sync" || std::string_view(kName.data) == "stream_reached" ||
    std::string_view(kName.data) == "stream_mark";
void settle(uint64_t stream, auto...) { minimal::from_handle<minimal::Stream>(stream).settle(); }

template <class Table, class Slot, Slot Table::*kSlot, Name kName>
struct Layer;
template <class Table, class R, class... Arguments, R (*Table::*kSlot)(Arguments...), Name kName>
struct Layer<Table, R (*)(Arguments...), kSlot, kName> {
  static R call(Arguments... arguments) {
    compute_error* error = nullptr;
    const std::optional<Fault> fault = next_fault(kName.data);
    // The interface: nothing of a stream touches memory once it is known to have failed.
    if constexpr (kAsksStream<kName>) {
      if (fault && !fault->is("hang")) settle(arguments...);
    }
    const bool struck = fault && act(*fault, kName.data, &error);
    if constexpr (std::is_same_v<R, compute_error*>) {
      if (struck) return error;
      error = (real(static_cast<const Table*>(nullptr)).*kSlot)(arguments...);
      if (fault && error == nullptr) spoil(*fault, arguments...);
      return error;
    } else {
      return (real(static_cast<const Table*>(nullptr)).*kSlot)(arguments...);
    }
  }

  // Changes the slot's last output to 0, or to a number that was never marked.
  template <class Last>
  static void spoil(const Fault& fault, Last last) {
    if constexpr (std::is_same_v<Last, uint64_t*> || std::is_same_v<Last, void**>) {
      if (fault.is("zero")) *last = {};
    }
    if constexpr (std::is_same_v<Last, uint64_t*>) {
      if (fault.is("beyond")) *last += 1000;
    }
    if constexpr (std::is_same_v<Last, int64_t*>) {
    }
  }
  template <class First, class... Rest>
  static void spoil(const Fault& fault, First, Rest... rest) requires(sizeof...(Rest) > 0) {
    spoil(fault, rest...);
  }
  static void spoil(const Fault& fault, uint64_t* buffer, void**) { spoil(fault, buffer); }
  static void spoil(const Fault&) {}
};

// Wraps a slot, or sets it to NULL if a rule for `place` removes it.
template <Name kName, class Table, class Slot, Slot Table::*kSlot>
void cover(Table& table, const std::optional<Fault>& fault) {
  if (real(&table).*kSlot == nullptr) return;
  const bool left_out = fault && fault->is("without") && fault->argument == kName.data;
  table.*kSlot = left_out ? nullptr : &Layer<Table, Slot, kSlot, kName>::call;
}
#define COVER(table, fault, slot)                                              \
  cover<#slot, std::remove_reference_t<decltype(table)>, decltype(table.slot), \
        &std::remove_reference_t<decltype(table)>::slot>(table, fault)

// ---- Devices --------------------------------------------------------------------------------------------------------

const compute_plugin_caps* caps(uint64_t device) {
  const std::optional<Fault> fault = next_fault("caps");
  const compute_plugin_caps* real_caps = real_device_table.caps(device);
  if (!fault) return real_caps;
  compute_error* error = nullptr;
  act(*fault, "caps", &error);
  static Padded<compute_plugin_caps> caps;
  static compute_plugin_heap heaps[2];
  caps = padded(*real_caps);
  heaps[0] = heaps[1] = real_caps->heaps[0];
  compute_plugin_heap& heap = heaps[fault->is("second_heap_next") ? 1 : 0];
  caps.value.next = fault->is("next") ? &must_be_understood : nullptr;
  if (fault->is("flags")) caps.value.flags |= static_cast<uint32_t>(fault->number());
  if (fault->is("heap_next") || fault->is("second_heap_next") || fault->is("heap_flags") || fault->is("heap_zero")) {
    if (fault->is("heap_next") || fault->is("second_heap_next")) heap.next = &must_be_understood;
    if (fault->is("heap_flags")) heap.flags |= static_cast<uint32_t>(fault->number());
    if (fault->is("heap_zero")) heap.struct_size = 0;
    caps.value.heaps = heaps;
    caps.value.heap_count = 2;
  }
  if (fault->is("no_heaps")) caps.value.heap_count = 0;
  if (fault->is("priorities")) caps.value.priority_least = 1;
  if (fault->is("alignment") || fault->is("base_alignment")) {
    (fault->is("alignment") ? heap.offset_alignment : heap.base_alignment) = fault->is("alignment") ? 3 : 16;
    caps.value.heaps = heaps;
    caps.value.heap_count = 1;
  }
  return resized(caps, &compute_plugin_caps::struct_size, fault, offsetof(compute_plugin_caps, heap_count));
}

bool refuses(const Fault& fault) { return fault.is("refuse") || fault.is("refuse_next") || fault.is("refuse_twice"); }

void refuse_as_asked(const Fault& fault, compute_plugin_refuse refuse, void* context) {
  static constexpr std::string_view kText = "faulty refuses as asked", kHint = "ask another device";
  compute_plugin_refusal refusal = {};
  refusal.struct_size = sizeof refusal;
  refusal.struct_type = COMPUTE_PLUGIN_STRUCT_REFUSAL;
  refusal.next = fault.is("refuse_next") ? &must_be_understood : nullptr;
  refusal.reason = static_cast<int32_t>(fault.number());
  refusal.text = {kText.data(), static_cast<int64_t>(kText.size())};
  refusal.hint = {kHint.data(), static_cast<int64_t>(kHint.size())};
  refuse(context, &refusal);
  if (fault.is("refuse_twice")) refuse(context, &refusal);
}

compute_error* op_query(uint64_t device, const compute_plugin_op* op, compute_plugin_query_info* out_info,
                        compute_plugin_refuse refuse, void* context) {
  const std::optional<Fault> fault = next_fault("op_query");
  if (!fault) return real_device_table.op_query(device, op, out_info, refuse, context);
  out_info->supported = 0;
  compute_error* error = nullptr;
  if (act(*fault, "op_query", &error)) return error;
  if (fault->is("answer_next")) out_info->next = &must_be_understood;
  if (fault->is("answer_flags")) out_info->flags = static_cast<uint32_t>(fault->number());
  if (refuses(*fault)) refuse_as_asked(*fault, refuse, context);
  return nullptr;
}

compute_error* op_prepare(uint64_t device, const compute_plugin_op* op, uint64_t* out_plan,
                          compute_plugin_plan_info* out_info, compute_plugin_refuse refuse, void* context) {
  const std::optional<Fault> struck = next_fault("op_prepare");
  compute_error* error = nullptr;
  if (struck && act(*struck, "op_prepare", &error)) return error;
  if (struck && struck->is("silent")) return nullptr;
  if (struck && (refuses(*struck) || struck->is("contradict"))) refuse_as_asked(*struck, refuse, context);
  if (struck && refuses(*struck)) return nullptr;
  error = real_device_table.op_prepare(device, op, out_plan, out_info, refuse, context);
  const std::optional<Fault> fault = error != nullptr || *out_plan == 0 ? std::nullopt : next_fault("plan");
  if (fault && fault->is("workspace")) out_info->workspace_bytes = fault->number();
  if (fault && fault->is("flags")) out_info->flags |= static_cast<uint32_t>(fault->number());
  if (fault && fault->is("next")) out_info->next = &must_be_understood;
  if (fault && fault->is("not_capturable")) out_info->flags |= COMPUTE_PLUGIN_PLAN_NOT_CAPTURABLE;
  if (fault && fault->is("zero")) {
    real_device_table.plan_release(device, *out_plan);
    *out_plan = 0;
  }
  return error;
}

compute_error* device_open(uint64_t id, const compute_plugin_device_options* options, uint64_t* out_device,
                           const compute_plugin_device_table** out_table) {
  compute_error* error = nullptr;
  if (strike("device_open", &error)) return error;
  const compute_plugin_device_table* inner = nullptr;
  error = real_table.device_open(id, options, out_device, &inner);
  if (error != nullptr) return error;
  real_device_table = *inner;
  real_device_table.memory_import = [](uint64_t, const compute_plugin_import*, uint64_t*) {
    return make_error("UNSUPPORTED", "memory_import");
  };
  real_device_table.copy_peer = [](uint64_t, uint64_t, const compute_plugin_operand*, const compute_plugin_operand*,
                                   int64_t, uint32_t) { return make_error("UNSUPPORTED", "copy_peer"); };
  real_device_table.kernels = [](uint64_t) -> const compute_plugin_kernel_table* {
    static constexpr compute_plugin_kernel_table kNoKernels = {
        sizeof kNoKernels,
        [](uint64_t, const compute_plugin_kernel_source*, uint64_t*, compute_plugin_kernel_info*) {
          return make_error("UNSUPPORTED", "compile");
        },
        [](uint64_t, const compute_plugin_launch*) { return make_error("UNSUPPORTED", "launch"); },
        [](uint64_t, uint64_t) {}};
    return &kNoKernels;
  };

  static Padded<compute_plugin_device_table> table;
  if (next_fault("device_handle")) *out_device = 0;
  const std::optional<Fault> fault = next_fault("device_table");
  table = padded(*inner);
  COVER(table.value, fault, close);
  COVER(table.value, fault, memory_allocate);
  COVER(table.value, fault, memory_free);
  COVER(table.value, fault, memory_info);
  COVER(table.value, fault, memory_import);
  COVER(table.value, fault, copy_peer);
  COVER(table.value, fault, kernels);
  COVER(table.value, fault, memory_map);
  COVER(table.value, fault, memory_unmap);
  COVER(table.value, fault, stream_create);
  COVER(table.value, fault, stream_destroy);
  COVER(table.value, fault, stream_mark);
  COVER(table.value, fault, stream_wait);
  COVER(table.value, fault, stream_wait_host);
  COVER(table.value, fault, signal_host_wait);
  COVER(table.value, fault, stream_cancel);
  COVER(table.value, fault, stream_reached);
  COVER(table.value, fault, stream_sync);
  COVER(table.value, fault, mark_time);
  COVER(table.value, fault, clock);
  COVER(table.value, fault, telemetry);
  COVER(table.value, fault, copy_from_host);
  COVER(table.value, fault, copy_to_host);
  COVER(table.value, fault, fill);
  COVER(table.value, fault, plan_warm);
  COVER(table.value, fault, plan_run);
  COVER(table.value, fault, plan_release);
  COVER(table.value, fault, caps);
  COVER(table.value, fault, op_query);
  COVER(table.value, fault, op_prepare);
  if (table.value.caps != nullptr) table.value.caps = caps;
  if (table.value.op_query != nullptr) table.value.op_query = op_query;
  if (table.value.op_prepare != nullptr) table.value.op_prepare = op_prepare;
  *out_table =
      resized(table, &compute_plugin_device_table::table_size, fault, offsetof(compute_plugin_device_table, plan_run));
  return nullptr;
}

// ---- Enumeration ----------------------------------------------------------------------------------------------------

void deliver(void* context, const compute_plugin_device_info* info) {
  const auto& sink = *static_cast<const compute_plugin_sink*>(context);
  const std::optional<Fault> fault = next_fault("devices");
  if (fault && fault->is("none")) return;
  Padded<compute_plugin_device_info> changed = padded(*info);
  static constexpr std::string_view kWhy = "the faulty driver is too old";
  if (fault && fault->is("next")) changed.value.next = &must_be_understood;
  if (fault && fault->is("property_next")) {
    static compute_plugin_property properties[2] = {};
    for (compute_plugin_property& property : properties) {
      property.struct_size = sizeof property;
      property.struct_type = COMPUTE_PLUGIN_STRUCT_PROPERTY;
    }
    properties[1].next = &must_be_understood;
    changed.value.properties = properties;
    changed.value.property_count = 2;
  }
  if (fault && fault->is("text")) changed.value.description = {nullptr, 5};
  if (fault && fault->is("bytes")) changed.value.description = {"\xff\xfe\x80", 3};
  if (fault && fault->is("unusable")) changed.value.unusable = {kWhy.data(), static_cast<int64_t>(kWhy.size())};
  sink.device(sink.context, resized(changed, &compute_plugin_device_info::struct_size, fault,
                                    offsetof(compute_plugin_device_info, memory_bytes)));
  if (fault && fault->is("twice")) sink.device(sink.context, &changed.value);
}

compute_error* enumerate(const compute_plugin_sink* sink) {
  compute_error* error = nullptr;
  if (strike("enumerate", &error)) return error;
  if (const std::optional<Fault> fault = next_fault("requirement")) {
    auto text = [](std::string_view view) { return compute_string{view.data(), static_cast<int64_t>(view.size())}; };
    compute_plugin_requirement requirement = {};
    requirement.struct_size = sizeof requirement;
    requirement.struct_type = COMPUTE_PLUGIN_STRUCT_REQUIREMENT;
    requirement.next = fault->is("next") ? &must_be_understood : nullptr;
    requirement.name = text("libabsent");
    requirement.tried = text("libabsent.so.2\nlibabsent.so.1");
    requirement.error = text("libabsent.so.1: cannot open shared object file");
    requirement.effect = text("no matrix products");
    requirement.remedy = text("install the package absent");
    requirement.required = 1;
    requirement.state = COMPUTE_PLUGIN_LIBRARY_MISSING;
    sink->requirement(sink->context, &requirement);
  }
  const compute_plugin_sink inner = {sizeof inner, const_cast<compute_plugin_sink*>(sink), deliver, sink->requirement};
  return real_table.enumerate(&inner);
}

// ---- The plugin -----------------------------------------------------------------------------------------------------

[[maybe_unused]] const compute_plugin_manifest* query() {
  static Padded<compute_plugin_manifest> manifest;
  static std::string name, sanitizer;
  manifest = padded(*minimal_plugin_query());
  const compute_plugin_setting* const manifest_settings = manifest.value.settings;
  name = FAULTY_NAME;
  sanitizer.assign(manifest.value.sanitizer.data, manifest.value.sanitizer.size);
  const std::optional<Fault> fault = next_fault("manifest");
  static compute_plugin_setting settings[2];
  manifest.value.settings = nullptr;  // another plugin's
  manifest.value.setting_count = 0;
  if (fault && fault->is("setting")) {
    static constexpr std::string_view kSettingName = "COMPUTE_FAULTY_MODE", kHelp = "for tests";
    for (compute_plugin_setting& setting : settings) {
      setting = *manifest_settings;
      setting.name = {kSettingName.data(), static_cast<int64_t>(kSettingName.size())};
      setting.help = {kHelp.data(), static_cast<int64_t>(kHelp.size())};
    }
    compute_plugin_setting& bad = settings[1];
    if (fault->argument == "next") bad.next = &must_be_understood;
    if (fault->argument == "flags") bad.flags = 1u << 16;
    if (fault->argument == "small") settings[0].struct_size = bad.struct_size = 24;
    if (fault->argument == "kind") bad.kind = 99;
    if (fault->argument == "help") bad.help = {};
    if (fault->argument == "name") bad.name = manifest_settings->name;
    if (fault->argument == "path") bad.kind = COMPUTE_PLUGIN_SETTING_PATH;
    if (fault->argument == "range") bad.kind = COMPUTE_PLUGIN_SETTING_INTEGER;
    if (fault->argument == "default") bad.default_value = bad.help;
    manifest.value.settings = settings;
    manifest.value.setting_count = fault->argument == "count" ? -1 : 2;
  }
  if (fault) {
    manifest.value.next = fault->is("next") ? &must_be_understood : nullptr;
    if (fault->is("type")) manifest.value.struct_type = COMPUTE_PLUGIN_STRUCT_CAPS;
    if (fault->is("interface")) manifest.value.interface_min = manifest.value.interface_max = fault->number();
    if (fault->is("draft")) manifest.value.draft = static_cast<uint32_t>(fault->number());
    if (fault->is("flags")) manifest.value.flags = static_cast<uint32_t>(fault->number());
    if (fault->is("name")) name = fault->argument;
    if (fault->is("sanitizer")) sanitizer = fault->argument;
  }
  manifest.value.name = {name.data(), static_cast<int64_t>(name.size())};
  manifest.value.sanitizer = {sanitizer.data(), static_cast<int64_t>(sanitizer.size())};
  return resized(manifest, &compute_plugin_manifest::struct_size, fault, offsetof(compute_plugin_manifest, priority));
}

[[maybe_unused]] compute_error* open(uint32_t interface_version, const compute_plugin_core* given,
                                     const compute_plugin_table** out_table) {
  core = given;
  compute_error* error = nullptr;
  if (strike("open", &error)) return error;
  const compute_plugin_table* inner = nullptr;
  error = minimal_plugin_open(interface_version, given, &inner);
  if (error != nullptr) return error;
  real_table = *inner;
  if (real_table.on_fork_child == nullptr) real_table.on_fork_child = [] { return int32_t{0}; };
  if (real_table.on_exit == nullptr) real_table.on_exit = [] {};
  if (real_table.close == nullptr) real_table.close = [] {};
  real_table.get_extension = [](uint64_t, const char*, int64_t) -> const void* { return nullptr; };

  static Padded<compute_plugin_table> table;
  const std::optional<Fault> fault = next_fault("table");
  table = padded(*inner);
  COVER(table.value, fault, enumerate);
  COVER(table.value, fault, device_open);
  COVER(table.value, fault, on_fork_child);
  COVER(table.value, fault, on_exit);
  COVER(table.value, fault, close);
  COVER(table.value, fault, get_extension);
  if (table.value.enumerate != nullptr) table.value.enumerate = enumerate;
  if (table.value.device_open != nullptr) table.value.device_open = device_open;
  *out_table = resized(table, &compute_plugin_table::table_size, fault, offsetof(compute_plugin_table, device_open));
  return nullptr;
}

// The moment of dlopen.
[[maybe_unused]] const bool loaded = [] {
  compute_error* error = nullptr;
  strike("load", &error);
  return true;
}();

}  // namespace
}  // namespace faulty

#if !defined(FAULTY_WITHOUT_QUERY)
extern "C" COMPUTE_PLUGIN_EXPORT const compute_plugin_manifest* compute_plugin_query(void) {
  compute_error* error = nullptr;
  return faulty::strike("query", &error) ? nullptr : faulty::query();
}
#endif

#if !defined(FAULTY_WITHOUT_OPEN)
extern "C" COMPUTE_PLUGIN_EXPORT compute_error* compute_plugin_open(uint32_t interface_version,
                                                                    const compute_plugin_core* core,
                                                                    const compute_plugin_table** out_table) {
  return faulty::open(interface_version, core, out_table);
}
#endif

// ---- Faults of the library itself -----------------------------------------------------------------------------------

#if defined(FAULTY_NEEDS_LIBRARIES)
extern "C" void compute_absent_one(void);
extern "C" void compute_absent_two(void);
extern "C" COMPUTE_PLUGIN_EXPORT void compute_faulty_use(void) {
  compute_absent_one();
  compute_absent_two();
}
#endif

#if defined(FAULTY_HAS_UNDEFINED_SYMBOL)
extern "C" void compute_absent_function(void);
extern "C" COMPUTE_PLUGIN_EXPORT void compute_faulty_use(void) { compute_absent_function(); }
#endif
