/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where every field of every struct that crosses the interfaces lies, on a machine with 64-bit pointers.
 *
 * A number that changes here is a change of the ABI: programs and plugins that were built before read other fields than
 * were written. Once an interface version is declared, structs grow at their end only: new lines may be added, sizes
 * may rise, and nothing else. Until then a change is legal and is stated in CHANGELOG.md under ABI in the same commit.
 */
#include <stddef.h>
#include <stdint.h>

#include "compute/compute.h"
#include "compute/plugin.h"

#define SIZE(type, size) _Static_assert(sizeof(type) == (size), "the size of " #type " changed")
#define AT(type, field, offset) _Static_assert(offsetof(type, field) == (offset), #type "." #field " moved")

#if UINTPTR_MAX == UINT64_MAX

/* ---- compute.h -------------------------------------------------------------------------------------------------- */

/* A program of version 1 is never refused for its size. Structs may grow; then compare with the size that they had. */
#define FLOOR(type, constant) \
  _Static_assert((constant) == sizeof(type), "the least size of " #type " is not its size in version 1")
FLOOR(compute_attribute, COMPUTE_ATTRIBUTE_SIZE_1);
FLOOR(compute_stream_options, COMPUTE_STREAM_OPTIONS_SIZE_1);
FLOOR(compute_event_options, COMPUTE_EVENT_OPTIONS_SIZE_1);
FLOOR(compute_tensor_spec, COMPUTE_TENSOR_SPEC_SIZE_1);
FLOOR(compute_kernel_options, COMPUTE_KERNEL_OPTIONS_SIZE_1);
FLOOR(compute_kernel_argument, COMPUTE_KERNEL_ARGUMENT_SIZE_1);
FLOOR(compute_launch, COMPUTE_LAUNCH_SIZE_1);
FLOOR(compute_op_registration, COMPUTE_OP_REGISTRATION_SIZE_1);
FLOOR(compute_op_kernel, COMPUTE_OP_KERNEL_SIZE_1);
FLOOR(compute_allocator, COMPUTE_ALLOCATOR_SIZE_1);
FLOOR(compute_external, COMPUTE_EXTERNAL_SIZE_1);
FLOOR(compute_transport, COMPUTE_TRANSPORT_SIZE_1);
FLOOR(compute_group_options, COMPUTE_GROUP_OPTIONS_SIZE_1);
FLOOR(compute_collective_options, COMPUTE_COLLECTIVE_OPTIONS_SIZE_1);
FLOOR(compute_graph_options, COMPUTE_GRAPH_OPTIONS_SIZE_1);

SIZE(compute_struct_header, 16);
AT(compute_struct_header, struct_size, 0);
AT(compute_struct_header, struct_type, 4);
AT(compute_struct_header, next, 8);

SIZE(compute_string, 16);
AT(compute_string, data, 0);
AT(compute_string, size, 8);

SIZE(compute_attribute, 56);
AT(compute_attribute, struct_size, 0);
AT(compute_attribute, struct_type, 4);
AT(compute_attribute, next, 8);
AT(compute_attribute, name, 16);
AT(compute_attribute, name_size, 24);
AT(compute_attribute, kind, 32);
AT(compute_attribute, reserved, 36);
AT(compute_attribute, count, 40);
AT(compute_attribute, values, 48);

SIZE(compute_native_dlpack, 48);
AT(compute_native_dlpack, struct_size, 0);
AT(compute_native_dlpack, struct_type, 4);
AT(compute_native_dlpack, next, 8);
AT(compute_native_dlpack, device_type, 16);
AT(compute_native_dlpack, device_id, 20);
AT(compute_native_dlpack, data, 24);
AT(compute_native_dlpack, byte_offset, 32);
AT(compute_native_dlpack, stream, 40);

SIZE(compute_native_host, 24);
AT(compute_native_host, struct_size, 0);
AT(compute_native_host, struct_type, 4);
AT(compute_native_host, next, 8);
AT(compute_native_host, address, 16);

SIZE(compute_native_cuda, 48);
AT(compute_native_cuda, struct_size, 0);
AT(compute_native_cuda, struct_type, 4);
AT(compute_native_cuda, next, 8);
AT(compute_native_cuda, device, 16);
AT(compute_native_cuda, reserved, 20);
AT(compute_native_cuda, context, 24);
AT(compute_native_cuda, stream, 32);
AT(compute_native_cuda, address, 40);

SIZE(compute_native_opencl, 64);
AT(compute_native_opencl, struct_size, 0);
AT(compute_native_opencl, struct_type, 4);
AT(compute_native_opencl, next, 8);
AT(compute_native_opencl, platform, 16);
AT(compute_native_opencl, device, 24);
AT(compute_native_opencl, context, 32);
AT(compute_native_opencl, queue, 40);
AT(compute_native_opencl, memory, 48);
AT(compute_native_opencl, offset_bytes, 56);

SIZE(compute_native_vulkan, 128);
AT(compute_native_vulkan, struct_size, 0);
AT(compute_native_vulkan, struct_type, 4);
AT(compute_native_vulkan, next, 8);
AT(compute_native_vulkan, get_instance_proc_addr, 16);
AT(compute_native_vulkan, instance, 24);
AT(compute_native_vulkan, physical_device, 32);
AT(compute_native_vulkan, device, 40);
AT(compute_native_vulkan, queue, 48);
AT(compute_native_vulkan, lock_queue, 56);
AT(compute_native_vulkan, unlock_queue, 64);
AT(compute_native_vulkan, queue_lock, 72);
AT(compute_native_vulkan, queue_family, 80);
AT(compute_native_vulkan, reserved, 84);
AT(compute_native_vulkan, semaphore, 88);
AT(compute_native_vulkan, semaphore_value, 96);
AT(compute_native_vulkan, buffer, 104);
AT(compute_native_vulkan, offset_bytes, 112);
AT(compute_native_vulkan, address, 120);

SIZE(compute_external, 80);
AT(compute_external, struct_size, 0);
AT(compute_external, struct_type, 4);
AT(compute_external, next, 8);
AT(compute_external, kind, 16);
AT(compute_external, descriptor, 20);
AT(compute_external, address, 24);
AT(compute_external, handle, 32);
AT(compute_external, handle_size, 40);
AT(compute_external, size_bytes, 48);
AT(compute_external, offset_bytes, 56);
AT(compute_external, device_uuid, 64);

SIZE(compute_number, 40);
AT(compute_number, kind, 0);
AT(compute_number, reserved, 4);
AT(compute_number, integer, 8);
AT(compute_number, real, 16);
AT(compute_number, imaginary, 24);
AT(compute_number, tensor, 32);
SIZE(compute_reduce_options, 56);
AT(compute_reduce_options, struct_size, 0);
AT(compute_reduce_options, struct_type, 4);
AT(compute_reduce_options, next, 8);
AT(compute_reduce_options, axes, 16);
AT(compute_reduce_options, axes_count, 24);
AT(compute_reduce_options, axes_mask, 32);
AT(compute_reduce_options, after, 40);
AT(compute_reduce_options, accumulator, 48);
AT(compute_reduce_options, keepdims, 52);

SIZE(compute_device_info, 248);
AT(compute_device_info, struct_size, 0);
AT(compute_device_info, struct_type, 4);
AT(compute_device_info, next, 8);
AT(compute_device_info, name, 16);
AT(compute_device_info, name_size, 24);
AT(compute_device_info, plugin, 32);
AT(compute_device_info, plugin_size, 40);
AT(compute_device_info, description, 48);
AT(compute_device_info, description_size, 56);
AT(compute_device_info, vendor, 64);
AT(compute_device_info, vendor_size, 72);
AT(compute_device_info, driver_version, 80);
AT(compute_device_info, driver_version_size, 88);
AT(compute_device_info, pci_address, 96);
AT(compute_device_info, pci_address_size, 104);
AT(compute_device_info, uuid, 112);
AT(compute_device_info, uuid_size, 120);
AT(compute_device_info, same_as, 128);
AT(compute_device_info, same_as_size, 136);
AT(compute_device_info, libraries, 144);
AT(compute_device_info, libraries_size, 152);
AT(compute_device_info, unusable, 160);
AT(compute_device_info, unusable_size, 168);
AT(compute_device_info, memory_bytes, 176);
AT(compute_device_info, kind, 184);
AT(compute_device_info, platform_index, 188);
AT(compute_device_info, device_index, 192);
AT(compute_device_info, flat_index, 196);
AT(compute_device_info, dtypes, 200);
AT(compute_device_info, dtype_count, 208);
AT(compute_device_info, subnormals, 212);
AT(compute_device_info, subgroup_size_min, 216);
AT(compute_device_info, subgroup_size_max, 220);
AT(compute_device_info, local_memory_bytes, 224);
AT(compute_device_info, argument_bytes, 232);
AT(compute_device_info, max_group_size, 240);
AT(compute_device_info, atomic_alignment, 244);

SIZE(compute_device_attribute, 48);
AT(compute_device_attribute, struct_size, 0);
AT(compute_device_attribute, struct_type, 4);
AT(compute_device_attribute, next, 8);
AT(compute_device_attribute, name, 16);
AT(compute_device_attribute, name_size, 24);
AT(compute_device_attribute, value, 32);
AT(compute_device_attribute, value_size, 40);

SIZE(compute_device_telemetry, 48);
AT(compute_device_telemetry, struct_size, 0);
AT(compute_device_telemetry, struct_type, 4);
AT(compute_device_telemetry, next, 8);
AT(compute_device_telemetry, utilization_percent, 16);
AT(compute_device_telemetry, temperature_millidegrees, 20);
AT(compute_device_telemetry, power_milliwatts, 24);
AT(compute_device_telemetry, memory_process_bytes, 32);
AT(compute_device_telemetry, memory_used_bytes, 40);

SIZE(compute_device_process, 32);
AT(compute_device_process, struct_size, 0);
AT(compute_device_process, struct_type, 4);
AT(compute_device_process, next, 8);
AT(compute_device_process, process_id, 16);
AT(compute_device_process, memory_bytes, 24);
SIZE(compute_device_statistics, 192);
AT(compute_device_statistics, struct_size, 0);
AT(compute_device_statistics, struct_type, 4);
AT(compute_device_statistics, next, 8);
AT(compute_device_statistics, memory_used, 16);
AT(compute_device_statistics, memory_peak, 24);
AT(compute_device_statistics, memory_reserved, 32);
AT(compute_device_statistics, memory_limit, 40);
AT(compute_device_statistics, memory_mirrors, 48);
AT(compute_device_statistics, blocks_live, 56);
AT(compute_device_statistics, allocations, 64);
AT(compute_device_statistics, allocations_from_device, 72);
AT(compute_device_statistics, ops_run, 80);
AT(compute_device_statistics, ops_fallback, 88);
AT(compute_device_statistics, plans_live, 96);
AT(compute_device_statistics, plans_prepared, 104);
AT(compute_device_statistics, kernels_compiled, 112);
AT(compute_device_statistics, transfers_to_device, 120);
AT(compute_device_statistics, transfers_to_device_bytes, 128);
AT(compute_device_statistics, transfers_from_device, 136);
AT(compute_device_statistics, transfers_from_device_bytes, 144);
AT(compute_device_statistics, transfers_implicit, 152);
AT(compute_device_statistics, transfers_implicit_bytes, 160);
AT(compute_device_statistics, mirror_hits, 168);
AT(compute_device_statistics, memory_total, 176);
AT(compute_device_statistics, memory_available, 184);

SIZE(compute_stream_options, 24);
AT(compute_stream_options, struct_size, 0);
AT(compute_stream_options, struct_type, 4);
AT(compute_stream_options, next, 8);
AT(compute_stream_options, flags, 16);
AT(compute_stream_options, priority, 20);

SIZE(compute_event_options, 24);
AT(compute_event_options, struct_size, 0);
AT(compute_event_options, struct_type, 4);
AT(compute_event_options, next, 8);
AT(compute_event_options, flags, 16);
AT(compute_event_options, reserved, 20);

SIZE(compute_allocator, 48);
AT(compute_allocator, struct_size, 0);
AT(compute_allocator, struct_type, 4);
AT(compute_allocator, next, 8);
AT(compute_allocator, flags, 16);
AT(compute_allocator, reserved, 20);
AT(compute_allocator, allocate, 24);
AT(compute_allocator, release, 32);
AT(compute_allocator, user_data, 40);

SIZE(compute_transport, 112);
AT(compute_transport, struct_size, 0);
AT(compute_transport, struct_type, 4);
AT(compute_transport, next, 8);
AT(compute_transport, rank, 16);
AT(compute_transport, size, 20);
AT(compute_transport, user_data, 24);
AT(compute_transport, all_gather, 32);
AT(compute_transport, all_to_all, 40);
AT(compute_transport, broadcast, 48);
AT(compute_transport, send, 56);
AT(compute_transport, recv, 64);
AT(compute_transport, progress, 72);
AT(compute_transport, split, 80);
AT(compute_transport, abort, 88);
AT(compute_transport, close, 96);
AT(compute_transport, describe, 104);

SIZE(compute_tensor_spec, 48);
AT(compute_tensor_spec, struct_size, 0);
AT(compute_tensor_spec, struct_type, 4);
AT(compute_tensor_spec, next, 8);
AT(compute_tensor_spec, dtype, 16);
AT(compute_tensor_spec, rank, 20);
AT(compute_tensor_spec, shape, 24);
AT(compute_tensor_spec, strides, 32);
AT(compute_tensor_spec, flags, 40);
AT(compute_tensor_spec, reserved, 44);

SIZE(compute_op_info, 152);
AT(compute_op_info, struct_size, 0);
AT(compute_op_info, struct_type, 4);
AT(compute_op_info, next, 8);
AT(compute_op_info, name, 16);
AT(compute_op_info, name_size, 24);
AT(compute_op_info, summary, 32);
AT(compute_op_info, summary_size, 40);
AT(compute_op_info, inputs, 48);
AT(compute_op_info, inputs_size, 56);
AT(compute_op_info, attributes, 64);
AT(compute_op_info, attributes_size, 72);
AT(compute_op_info, expression, 80);
AT(compute_op_info, expression_size, 88);
AT(compute_op_info, dtypes, 96);
AT(compute_op_info, dtypes_size, 104);
AT(compute_op_info, bound, 112);
AT(compute_op_info, bound_size, 120);
AT(compute_op_info, version, 128);
AT(compute_op_info, flags, 132);
AT(compute_op_info, outputs, 136);
AT(compute_op_info, outputs_size, 144);

SIZE(compute_kernel_options, 40);
AT(compute_kernel_options, struct_size, 0);
AT(compute_kernel_options, struct_type, 4);
AT(compute_kernel_options, next, 8);
AT(compute_kernel_options, compiler_options, 16);
AT(compute_kernel_options, compiler_options_size, 24);
AT(compute_kernel_options, source_size, 32);

SIZE(compute_kernel_argument, 48);
AT(compute_kernel_argument, struct_size, 0);
AT(compute_kernel_argument, struct_type, 4);
AT(compute_kernel_argument, next, 8);
AT(compute_kernel_argument, kind, 16);
AT(compute_kernel_argument, access, 20);
AT(compute_kernel_argument, tensor, 24);
AT(compute_kernel_argument, value, 32);
AT(compute_kernel_argument, value_size, 40);

SIZE(compute_op_kernel, 144);
AT(compute_op_kernel, struct_size, 0);
AT(compute_op_kernel, struct_type, 4);
AT(compute_op_kernel, next, 8);
AT(compute_op_kernel, language, 16);
AT(compute_op_kernel, language_size, 24);
AT(compute_op_kernel, source, 32);
AT(compute_op_kernel, source_size, 40);
AT(compute_op_kernel, name, 48);
AT(compute_op_kernel, name_size, 56);
AT(compute_op_kernel, compiler_options, 64);
AT(compute_op_kernel, compiler_options_size, 72);
AT(compute_op_kernel, items, 80);
AT(compute_op_kernel, items_size, 88);
AT(compute_op_kernel, values, 96);
AT(compute_op_kernel, values_size, 104);
AT(compute_op_kernel, group_size, 112);
AT(compute_op_kernel, flags, 136);
AT(compute_op_kernel, reserved, 140);
SIZE(compute_op_registration, 200);
AT(compute_op_registration, struct_size, 0);
AT(compute_op_registration, struct_type, 4);
AT(compute_op_registration, next, 8);
AT(compute_op_registration, name, 16);
AT(compute_op_registration, name_size, 24);
AT(compute_op_registration, summary, 32);
AT(compute_op_registration, summary_size, 40);
AT(compute_op_registration, inputs, 48);
AT(compute_op_registration, inputs_size, 56);
AT(compute_op_registration, attributes, 64);
AT(compute_op_registration, attributes_size, 72);
AT(compute_op_registration, dtypes, 80);
AT(compute_op_registration, dtypes_size, 88);
AT(compute_op_registration, expression, 96);
AT(compute_op_registration, expression_size, 104);
AT(compute_op_registration, version, 112);
AT(compute_op_registration, flags, 116);
AT(compute_op_registration, outputs, 120);
AT(compute_op_registration, outputs_size, 128);
AT(compute_op_registration, composition, 136);
AT(compute_op_registration, composition_size, 144);
AT(compute_op_registration, kernels, 152);
AT(compute_op_registration, kernel_count, 160);
AT(compute_op_registration, shapes, 168);
AT(compute_op_registration, shapes_size, 176);
AT(compute_op_registration, result_dtypes, 184);
AT(compute_op_registration, result_dtypes_size, 192);

SIZE(compute_launch, 72);
AT(compute_launch, struct_size, 0);
AT(compute_launch, struct_type, 4);
AT(compute_launch, next, 8);
AT(compute_launch, groups, 16);
AT(compute_launch, group_size, 40);
AT(compute_launch, local_memory_bytes, 64);

SIZE(compute_group_options, 32);
AT(compute_group_options, struct_size, 0);
AT(compute_group_options, struct_type, 4);
AT(compute_group_options, next, 8);
AT(compute_group_options, timeout_ns, 16);
AT(compute_group_options, flags, 24);
AT(compute_group_options, reserved, 28);

SIZE(compute_collective_options, 24);
AT(compute_collective_options, struct_size, 0);
AT(compute_collective_options, struct_type, 4);
AT(compute_collective_options, next, 8);
AT(compute_collective_options, flags, 16);
AT(compute_collective_options, reserved, 20);

SIZE(compute_graph_options, 24);
AT(compute_graph_options, struct_size, 0);
AT(compute_graph_options, struct_type, 4);
AT(compute_graph_options, next, 8);
AT(compute_graph_options, flags, 16);
AT(compute_graph_options, reserved, 20);

SIZE(compute_graph_info, 40);
AT(compute_graph_info, struct_size, 0);
AT(compute_graph_info, struct_type, 4);
AT(compute_graph_info, next, 8);
AT(compute_graph_info, nodes, 16);
AT(compute_graph_info, temporary_bytes, 24);
AT(compute_graph_info, native, 32);
AT(compute_graph_info, reserved, 36);

/* ---- ops.h ------------------------------------------------------------------------------------------------------ */

/* Options of ops, written by opgen: a number that changes there is a change of the ABI like any other. */
#include "ops_layout.inc"

/* ---- plugin.h --------------------------------------------------------------------------------------------------- */

/* Until the interface is declared, the least size is the size: there are no older plugins. */
#define SIZE_1(type, constant) _Static_assert((constant) == sizeof(type), "the least size of " #type " is not its size")
SIZE_1(compute_plugin_manifest, COMPUTE_PLUGIN_MANIFEST_SIZE_1);
SIZE_1(compute_plugin_property, COMPUTE_PLUGIN_PROPERTY_SIZE_1);
SIZE_1(compute_plugin_device_info, COMPUTE_PLUGIN_DEVICE_INFO_SIZE_1);
SIZE_1(compute_plugin_requirement, COMPUTE_PLUGIN_REQUIREMENT_SIZE_1);
SIZE_1(compute_plugin_heap, COMPUTE_PLUGIN_HEAP_SIZE_1);
SIZE_1(compute_plugin_refusal, COMPUTE_PLUGIN_REFUSAL_SIZE_1);
SIZE_1(compute_plugin_query_info, COMPUTE_PLUGIN_QUERY_INFO_SIZE_1);
SIZE_1(compute_plugin_plan_info, COMPUTE_PLUGIN_PLAN_INFO_SIZE_1);
SIZE_1(compute_plugin_kernel_info, COMPUTE_PLUGIN_KERNEL_INFO_SIZE_1);
SIZE_1(compute_plugin_caps, COMPUTE_PLUGIN_CAPS_SIZE_1);
SIZE_1(compute_plugin_setting, COMPUTE_PLUGIN_SETTING_SIZE_1);
SIZE_1(compute_plugin_telemetry, COMPUTE_PLUGIN_TELEMETRY_SIZE_1);
SIZE_1(compute_plugin_process, COMPUTE_PLUGIN_PROCESS_SIZE_1);
SIZE_1(compute_plugin_vendor_op, COMPUTE_PLUGIN_VENDOR_OP_SIZE_1);
SIZE_1(compute_plugin_vendor_dtype, COMPUTE_PLUGIN_VENDOR_DTYPE_SIZE_1);

SIZE(compute_plugin_setting, 88);
AT(compute_plugin_setting, struct_size, 0);
AT(compute_plugin_setting, struct_type, 4);
AT(compute_plugin_setting, next, 8);
AT(compute_plugin_setting, name, 16);
AT(compute_plugin_setting, kind, 32);
AT(compute_plugin_setting, flags, 36);
AT(compute_plugin_setting, choices, 40);
AT(compute_plugin_setting, default_value, 56);
AT(compute_plugin_setting, help, 72);

SIZE(compute_plugin_manifest, 160);
AT(compute_plugin_manifest, struct_size, 0);
AT(compute_plugin_manifest, struct_type, 4);
AT(compute_plugin_manifest, next, 8);
AT(compute_plugin_manifest, interface_min, 16);
AT(compute_plugin_manifest, interface_max, 20);
AT(compute_plugin_manifest, draft, 24);
AT(compute_plugin_manifest, flags, 28);
AT(compute_plugin_manifest, name, 32);
AT(compute_plugin_manifest, version, 48);
AT(compute_plugin_manifest, vendor, 64);
AT(compute_plugin_manifest, license, 80);
AT(compute_plugin_manifest, url, 96);
AT(compute_plugin_manifest, build_id, 112);
AT(compute_plugin_manifest, sanitizer, 128);
AT(compute_plugin_manifest, priority, 144);
AT(compute_plugin_manifest, setting_count, 148);
AT(compute_plugin_manifest, settings, 152);

SIZE(compute_plugin_error_info, 56);
AT(compute_plugin_error_info, struct_size, 0);
AT(compute_plugin_error_info, struct_type, 4);
AT(compute_plugin_error_info, next, 8);
AT(compute_plugin_error_info, code, 16);
AT(compute_plugin_error_info, argument, 20);
AT(compute_plugin_error_info, native_code, 24);
AT(compute_plugin_error_info, message, 32);
AT(compute_plugin_error_info, cause, 48);

SIZE(compute_plugin_core, 72);
AT(compute_plugin_core, table_size, 0);
AT(compute_plugin_core, interface_newest, 8);
AT(compute_plugin_core, core_version, 12);
AT(compute_plugin_core, error_new, 16);
AT(compute_plugin_core, error_free, 24);
AT(compute_plugin_core, error_code, 32);
AT(compute_plugin_core, log, 40);
AT(compute_plugin_core, setting, 48);
AT(compute_plugin_core, blob_load, 56);
AT(compute_plugin_core, blob_store, 64);

SIZE(compute_plugin_property, 48);
AT(compute_plugin_property, struct_size, 0);
AT(compute_plugin_property, struct_type, 4);
AT(compute_plugin_property, next, 8);
AT(compute_plugin_property, name, 16);
AT(compute_plugin_property, value, 32);

SIZE(compute_plugin_device_info, 232);
AT(compute_plugin_device_info, struct_size, 0);
AT(compute_plugin_device_info, struct_type, 4);
AT(compute_plugin_device_info, next, 8);
AT(compute_plugin_device_info, id, 16);
AT(compute_plugin_device_info, description, 24);
AT(compute_plugin_device_info, vendor, 40);
AT(compute_plugin_device_info, driver_version, 56);
AT(compute_plugin_device_info, pci_address, 72);
AT(compute_plugin_device_info, uuid, 88);
AT(compute_plugin_device_info, libraries, 104);
AT(compute_plugin_device_info, memory_bytes, 120);
AT(compute_plugin_device_info, kind, 128);
AT(compute_plugin_device_info, score, 132);
AT(compute_plugin_device_info, platform_index, 136);
AT(compute_plugin_device_info, property_count, 140);
AT(compute_plugin_device_info, properties, 144);
AT(compute_plugin_device_info, dtypes, 152);
AT(compute_plugin_device_info, dtype_count, 160);
AT(compute_plugin_device_info, subnormals, 164);
AT(compute_plugin_device_info, unusable, 168);
AT(compute_plugin_device_info, platform, 184);
AT(compute_plugin_device_info, subgroup_size_min, 200);
AT(compute_plugin_device_info, subgroup_size_max, 204);
AT(compute_plugin_device_info, local_memory_bytes, 208);
AT(compute_plugin_device_info, argument_bytes, 216);
AT(compute_plugin_device_info, max_group_size, 224);
AT(compute_plugin_device_info, atomic_alignment, 228);

SIZE(compute_plugin_requirement, 120);
AT(compute_plugin_requirement, struct_size, 0);
AT(compute_plugin_requirement, struct_type, 4);
AT(compute_plugin_requirement, next, 8);
AT(compute_plugin_requirement, name, 16);
AT(compute_plugin_requirement, tried, 32);
AT(compute_plugin_requirement, found, 48);
AT(compute_plugin_requirement, error, 64);
AT(compute_plugin_requirement, effect, 80);
AT(compute_plugin_requirement, remedy, 96);
AT(compute_plugin_requirement, required, 112);
AT(compute_plugin_requirement, state, 116);

SIZE(compute_plugin_sink, 32);
AT(compute_plugin_sink, table_size, 0);
AT(compute_plugin_sink, context, 8);
AT(compute_plugin_sink, device, 16);
AT(compute_plugin_sink, requirement, 24);

SIZE(compute_plugin_heap, 64);
AT(compute_plugin_heap, struct_size, 0);
AT(compute_plugin_heap, struct_type, 4);
AT(compute_plugin_heap, next, 8);
AT(compute_plugin_heap, flags, 16);
AT(compute_plugin_heap, suballocation, 20);
AT(compute_plugin_heap, size_bytes, 24);
AT(compute_plugin_heap, max_allocation_bytes, 32);
AT(compute_plugin_heap, offset_alignment, 40);
AT(compute_plugin_heap, base_alignment, 48);
AT(compute_plugin_heap, role, 56);
AT(compute_plugin_heap, reserved, 60);

SIZE(compute_plugin_import, 40);
AT(compute_plugin_import, struct_size, 0);
AT(compute_plugin_import, struct_type, 4);
AT(compute_plugin_import, next, 8);
AT(compute_plugin_import, dlpack_device_type, 16);
AT(compute_plugin_import, dlpack_device_id, 20);
AT(compute_plugin_import, data, 24);
AT(compute_plugin_import, size_bytes, 32);

SIZE(compute_plugin_node, 40);
AT(compute_plugin_node, kind, 0);
AT(compute_plugin_node, dtype, 4);
AT(compute_plugin_node, value, 8);
AT(compute_plugin_node, operand_count, 12);
AT(compute_plugin_node, first_operand, 16);
AT(compute_plugin_node, bits, 24);

SIZE(compute_plugin_expression, 80);
AT(compute_plugin_expression, struct_size, 0);
AT(compute_plugin_expression, struct_type, 4);
AT(compute_plugin_expression, next, 8);
AT(compute_plugin_expression, digest, 16);
AT(compute_plugin_expression, node_count, 32);
AT(compute_plugin_expression, input_count, 36);
AT(compute_plugin_expression, scalar_count, 40);
AT(compute_plugin_expression, output_count, 44);
AT(compute_plugin_expression, nodes, 48);
AT(compute_plugin_expression, operands, 56);
AT(compute_plugin_expression, operand_total, 64);
AT(compute_plugin_expression, outputs, 72);

SIZE(compute_plugin_tensor, 56);
AT(compute_plugin_tensor, struct_size, 0);
AT(compute_plugin_tensor, struct_type, 4);
AT(compute_plugin_tensor, next, 8);
AT(compute_plugin_tensor, dtype, 16);
AT(compute_plugin_tensor, rank, 20);
AT(compute_plugin_tensor, shape, 24);
AT(compute_plugin_tensor, strides, 32);
AT(compute_plugin_tensor, access, 40);
AT(compute_plugin_tensor, alignment, 44);
AT(compute_plugin_tensor, layout, 48);
AT(compute_plugin_tensor, reserved, 52);

SIZE(compute_plugin_op, 96);
AT(compute_plugin_op, struct_size, 0);
AT(compute_plugin_op, struct_type, 4);
AT(compute_plugin_op, next, 8);
AT(compute_plugin_op, name, 16);
AT(compute_plugin_op, version, 32);
AT(compute_plugin_op, flags, 36);
AT(compute_plugin_op, input_count, 40);
AT(compute_plugin_op, output_count, 44);
AT(compute_plugin_op, tensors, 48);
AT(compute_plugin_op, attributes, 56);
AT(compute_plugin_op, attribute_count, 64);
AT(compute_plugin_op, expression_count, 68);
AT(compute_plugin_op, expressions, 72);
AT(compute_plugin_op, scalar_count, 80);
AT(compute_plugin_op, reserved, 84);
AT(compute_plugin_op, scalar_dtypes, 88);

SIZE(compute_plugin_refusal, 56);
AT(compute_plugin_refusal, struct_size, 0);
AT(compute_plugin_refusal, struct_type, 4);
AT(compute_plugin_refusal, next, 8);
AT(compute_plugin_refusal, reason, 16);
AT(compute_plugin_refusal, argument, 20);
AT(compute_plugin_refusal, text, 24);
AT(compute_plugin_refusal, hint, 40);

SIZE(compute_plugin_plan_info, 48);
AT(compute_plugin_plan_info, struct_size, 0);
AT(compute_plugin_plan_info, struct_type, 4);
AT(compute_plugin_plan_info, next, 8);
AT(compute_plugin_plan_info, workspace_bytes, 16);
AT(compute_plugin_plan_info, kernels_compiled, 24);
AT(compute_plugin_plan_info, flags, 32);
AT(compute_plugin_plan_info, reports_faults, 36);
AT(compute_plugin_plan_info, argument_bytes, 40);

SIZE(compute_plugin_operand, 16);
AT(compute_plugin_operand, buffer, 0);
AT(compute_plugin_operand, offset_bytes, 8);

SIZE(compute_plugin_scalar, 16);
AT(compute_plugin_scalar, bits, 0);

SIZE(compute_plugin_fault, 64);
AT(compute_plugin_fault, code, 0);
AT(compute_plugin_fault, argument, 4);
AT(compute_plugin_fault, value, 8);
AT(compute_plugin_fault, limit, 16);
AT(compute_plugin_fault, position, 24);
AT(compute_plugin_fault, reserved, 32);

SIZE(compute_plugin_run, 112);
AT(compute_plugin_run, struct_size, 0);
AT(compute_plugin_run, struct_type, 4);
AT(compute_plugin_run, next, 8);
AT(compute_plugin_run, stream, 16);
AT(compute_plugin_run, tensors, 24);
AT(compute_plugin_run, scalars, 32);
AT(compute_plugin_run, workspace, 40);
AT(compute_plugin_run, fault, 56);
AT(compute_plugin_run, tensor_count, 72);
AT(compute_plugin_run, scalar_count, 76);
AT(compute_plugin_run, workspace_bytes, 80);
AT(compute_plugin_run, flags, 88);
AT(compute_plugin_run, reserved, 92);
AT(compute_plugin_run, arguments, 96);

SIZE(compute_plugin_kernel_source, 80);
AT(compute_plugin_kernel_source, struct_size, 0);
AT(compute_plugin_kernel_source, struct_type, 4);
AT(compute_plugin_kernel_source, next, 8);
AT(compute_plugin_kernel_source, language, 16);
AT(compute_plugin_kernel_source, source, 32);
AT(compute_plugin_kernel_source, name, 48);
AT(compute_plugin_kernel_source, options, 64);

SIZE(compute_plugin_kernel_info, 24);
AT(compute_plugin_kernel_info, struct_size, 0);
AT(compute_plugin_kernel_info, struct_type, 4);
AT(compute_plugin_kernel_info, next, 8);
AT(compute_plugin_kernel_info, argument_count, 16);
AT(compute_plugin_kernel_info, max_group_size, 20);

SIZE(compute_plugin_kernel_argument, 56);
AT(compute_plugin_kernel_argument, struct_size, 0);
AT(compute_plugin_kernel_argument, struct_type, 4);
AT(compute_plugin_kernel_argument, next, 8);
AT(compute_plugin_kernel_argument, kind, 16);
AT(compute_plugin_kernel_argument, access, 20);
AT(compute_plugin_kernel_argument, tensor, 24);
AT(compute_plugin_kernel_argument, value, 40);
AT(compute_plugin_kernel_argument, value_size, 48);

SIZE(compute_plugin_launch, 88);
AT(compute_plugin_launch, struct_size, 0);
AT(compute_plugin_launch, struct_type, 4);
AT(compute_plugin_launch, next, 8);
AT(compute_plugin_launch, stream, 16);
AT(compute_plugin_launch, groups, 24);
AT(compute_plugin_launch, group_size, 48);
AT(compute_plugin_launch, arguments, 72);
AT(compute_plugin_launch, argument_count, 80);
AT(compute_plugin_launch, flags, 84);

SIZE(compute_plugin_kernel_table, 32);
AT(compute_plugin_kernel_table, table_size, 0);
AT(compute_plugin_kernel_table, compile, 8);
AT(compute_plugin_kernel_table, launch, 16);
AT(compute_plugin_kernel_table, release, 24);

SIZE(compute_plugin_device_setting, 32);
AT(compute_plugin_device_setting, name, 0);
AT(compute_plugin_device_setting, value, 16);

SIZE(compute_plugin_device_options, 32);
AT(compute_plugin_device_options, struct_size, 0);
AT(compute_plugin_device_options, struct_type, 4);
AT(compute_plugin_device_options, next, 8);
AT(compute_plugin_device_options, settings, 16);
AT(compute_plugin_device_options, setting_count, 24);
AT(compute_plugin_device_options, reserved, 28);

SIZE(compute_plugin_caps, 40);
AT(compute_plugin_caps, struct_size, 0);
AT(compute_plugin_caps, struct_type, 4);
AT(compute_plugin_caps, next, 8);
AT(compute_plugin_caps, flags, 16);
AT(compute_plugin_caps, heap_count, 20);
AT(compute_plugin_caps, heaps, 24);
AT(compute_plugin_caps, priority_least, 32);
AT(compute_plugin_caps, priority_greatest, 36);

SIZE(compute_plugin_telemetry, 48);
AT(compute_plugin_telemetry, struct_size, 0);
AT(compute_plugin_telemetry, struct_type, 4);
AT(compute_plugin_telemetry, next, 8);
AT(compute_plugin_telemetry, utilization_percent, 16);
AT(compute_plugin_telemetry, temperature_millidegrees, 20);
AT(compute_plugin_telemetry, power_milliwatts, 24);
AT(compute_plugin_telemetry, memory_process_bytes, 32);
AT(compute_plugin_telemetry, memory_used_bytes, 40);

SIZE(compute_plugin_stream_options, 24);
AT(compute_plugin_stream_options, struct_size, 0);
AT(compute_plugin_stream_options, struct_type, 4);
AT(compute_plugin_stream_options, next, 8);
AT(compute_plugin_stream_options, flags, 16);
AT(compute_plugin_stream_options, priority, 20);

SIZE(compute_plugin_device_table, 248);
AT(compute_plugin_device_table, table_size, 0);
AT(compute_plugin_device_table, caps, 8);
AT(compute_plugin_device_table, close, 16);
AT(compute_plugin_device_table, memory_allocate, 24);
AT(compute_plugin_device_table, memory_free, 32);
AT(compute_plugin_device_table, memory_info, 40);
AT(compute_plugin_device_table, memory_map, 48);
AT(compute_plugin_device_table, memory_unmap, 56);
AT(compute_plugin_device_table, memory_import, 64);
AT(compute_plugin_device_table, stream_create, 72);
AT(compute_plugin_device_table, stream_destroy, 80);
AT(compute_plugin_device_table, stream_mark, 88);
AT(compute_plugin_device_table, stream_wait, 96);
AT(compute_plugin_device_table, stream_wait_host, 104);
AT(compute_plugin_device_table, signal_host_wait, 112);
AT(compute_plugin_device_table, stream_cancel, 120);
AT(compute_plugin_device_table, stream_reached, 128);
AT(compute_plugin_device_table, stream_sync, 136);
AT(compute_plugin_device_table, mark_time, 144);
AT(compute_plugin_device_table, clock, 152);
AT(compute_plugin_device_table, telemetry, 160);
AT(compute_plugin_device_table, copy_from_host, 168);
AT(compute_plugin_device_table, copy_to_host, 176);
AT(compute_plugin_device_table, fill, 184);
AT(compute_plugin_device_table, copy_peer, 192);
AT(compute_plugin_device_table, op_query, 200);
AT(compute_plugin_device_table, op_prepare, 208);
AT(compute_plugin_device_table, plan_warm, 216);
AT(compute_plugin_device_table, plan_run, 224);
AT(compute_plugin_device_table, plan_release, 232);
AT(compute_plugin_device_table, kernels, 240);

SIZE(compute_plugin_table, 56);
AT(compute_plugin_table, table_size, 0);
AT(compute_plugin_table, enumerate, 8);
AT(compute_plugin_table, device_open, 16);
AT(compute_plugin_table, on_fork_child, 24);
AT(compute_plugin_table, on_exit, 32);
AT(compute_plugin_table, close, 40);
AT(compute_plugin_table, get_extension, 48);

SIZE(compute_plugin_graph_node, 48);
AT(compute_plugin_graph_node, struct_size, 0);
AT(compute_plugin_graph_node, struct_type, 4);
AT(compute_plugin_graph_node, next, 8);
AT(compute_plugin_graph_node, kind, 16);
AT(compute_plugin_graph_node, reserved, 20);
AT(compute_plugin_graph_node, plan, 24);
AT(compute_plugin_graph_node, run, 32);
AT(compute_plugin_graph_node, scalar_slots, 40);

SIZE(compute_plugin_graph, 40);
AT(compute_plugin_graph, struct_size, 0);
AT(compute_plugin_graph, struct_type, 4);
AT(compute_plugin_graph, next, 8);
AT(compute_plugin_graph, flags, 16);
AT(compute_plugin_graph, slot_count, 20);
AT(compute_plugin_graph, nodes, 24);
AT(compute_plugin_graph, node_count, 32);

SIZE(compute_plugin_graph_table, 32);
AT(compute_plugin_graph_table, table_size, 0);
AT(compute_plugin_graph_table, create, 8);
AT(compute_plugin_graph_table, run, 16);
AT(compute_plugin_graph_table, release, 24);

SIZE(compute_plugin_native_table, 32);
AT(compute_plugin_native_table, table_size, 0);
AT(compute_plugin_native_table, device_handle, 8);
AT(compute_plugin_native_table, stream_handle, 16);
AT(compute_plugin_native_table, buffer_handle, 24);

SIZE(compute_plugin_external_table, 64);
AT(compute_plugin_external_table, table_size, 0);
AT(compute_plugin_external_table, memory_create, 8);
AT(compute_plugin_external_table, memory_import, 16);
AT(compute_plugin_external_table, semaphore_create, 24);
AT(compute_plugin_external_table, semaphore_import, 32);
AT(compute_plugin_external_table, semaphore_release, 40);
AT(compute_plugin_external_table, semaphore_signal, 48);
AT(compute_plugin_external_table, semaphore_wait, 56);

SIZE(compute_plugin_vendor_op, 152);
AT(compute_plugin_vendor_op, struct_size, 0);
AT(compute_plugin_vendor_op, struct_type, 4);
AT(compute_plugin_vendor_op, next, 8);
AT(compute_plugin_vendor_op, name, 16);
AT(compute_plugin_vendor_op, summary, 32);
AT(compute_plugin_vendor_op, inputs, 48);
AT(compute_plugin_vendor_op, outputs, 64);
AT(compute_plugin_vendor_op, attributes, 80);
AT(compute_plugin_vendor_op, dtypes, 96);
AT(compute_plugin_vendor_op, shapes, 112);
AT(compute_plugin_vendor_op, result_dtypes, 128);
AT(compute_plugin_vendor_op, version, 144);
AT(compute_plugin_vendor_op, flags, 148);

SIZE(compute_plugin_vendor_dtype, 40);
AT(compute_plugin_vendor_dtype, struct_size, 0);
AT(compute_plugin_vendor_dtype, struct_type, 4);
AT(compute_plugin_vendor_dtype, next, 8);
AT(compute_plugin_vendor_dtype, name, 16);
AT(compute_plugin_vendor_dtype, size_bits, 32);
AT(compute_plugin_vendor_dtype, flags, 36);

SIZE(compute_plugin_ops_sink, 32);
AT(compute_plugin_ops_sink, table_size, 0);
AT(compute_plugin_ops_sink, context, 8);
AT(compute_plugin_ops_sink, op, 16);
AT(compute_plugin_ops_sink, dtype, 24);

SIZE(compute_plugin_ops_table, 16);
AT(compute_plugin_ops_table, table_size, 0);
AT(compute_plugin_ops_table, list, 8);

SIZE(compute_struct_header, 16);
AT(compute_struct_header, struct_size, 0);
AT(compute_struct_header, struct_type, 4);
AT(compute_struct_header, next, 8);

SIZE(compute_plugin_allocation, 32);
AT(compute_plugin_allocation, struct_size, 0);
AT(compute_plugin_allocation, struct_type, 4);
AT(compute_plugin_allocation, next, 8);
AT(compute_plugin_allocation, heap, 16);
AT(compute_plugin_allocation, flags, 20);
AT(compute_plugin_allocation, size_bytes, 24);

SIZE(compute_plugin_query_info, 32);
AT(compute_plugin_query_info, struct_size, 0);
AT(compute_plugin_query_info, struct_type, 4);
AT(compute_plugin_query_info, next, 8);
AT(compute_plugin_query_info, supported, 16);
AT(compute_plugin_query_info, flags, 20);
AT(compute_plugin_query_info, workspace_bytes, 24);

SIZE(compute_plugin_collective, 72);
AT(compute_plugin_collective, struct_size, 0);
AT(compute_plugin_collective, struct_type, 4);
AT(compute_plugin_collective, next, 8);
AT(compute_plugin_collective, kind, 16);
AT(compute_plugin_collective, dtype, 20);
AT(compute_plugin_collective, reduction, 24);
AT(compute_plugin_collective, peer, 28);
AT(compute_plugin_collective, count, 32);
AT(compute_plugin_collective, src, 40);
AT(compute_plugin_collective, dst, 56);

SIZE(compute_plugin_mapping, 56);
AT(compute_plugin_mapping, struct_size, 0);
AT(compute_plugin_mapping, struct_type, 4);
AT(compute_plugin_mapping, next, 8);
AT(compute_plugin_mapping, buffer, 16);
AT(compute_plugin_mapping, offset_bytes, 24);
AT(compute_plugin_mapping, size_bytes, 32);
AT(compute_plugin_mapping, heap, 40);
AT(compute_plugin_mapping, access, 44);
AT(compute_plugin_mapping, flags, 48);
AT(compute_plugin_mapping, reserved, 52);

SIZE(compute_plugin_process, 32);
AT(compute_plugin_process, struct_size, 0);
AT(compute_plugin_process, struct_type, 4);
AT(compute_plugin_process, next, 8);
AT(compute_plugin_process, process_id, 16);
AT(compute_plugin_process, memory_bytes, 24);

SIZE(compute_plugin_graph_run, 40);
AT(compute_plugin_graph_run, struct_size, 0);
AT(compute_plugin_graph_run, struct_type, 4);
AT(compute_plugin_graph_run, next, 8);
AT(compute_plugin_graph_run, stream, 16);
AT(compute_plugin_graph_run, slots, 24);
AT(compute_plugin_graph_run, slot_count, 32);
AT(compute_plugin_graph_run, flags, 36);

SIZE(compute_plugin_external_request, 40);
AT(compute_plugin_external_request, struct_size, 0);
AT(compute_plugin_external_request, struct_type, 4);
AT(compute_plugin_external_request, next, 8);
AT(compute_plugin_external_request, kind, 16);
AT(compute_plugin_external_request, flags, 20);
AT(compute_plugin_external_request, size_bytes, 24);
AT(compute_plugin_external_request, alignment, 32);

SIZE(compute_plugin_group_options, 56);
AT(compute_plugin_group_options, struct_size, 0);
AT(compute_plugin_group_options, struct_type, 4);
AT(compute_plugin_group_options, next, 8);
AT(compute_plugin_group_options, id, 16);
AT(compute_plugin_group_options, id_size, 24);
AT(compute_plugin_group_options, size, 32);
AT(compute_plugin_group_options, rank, 36);
AT(compute_plugin_group_options, timeout_ns, 40);
AT(compute_plugin_group_options, flags, 48);
AT(compute_plugin_group_options, reserved, 52);

SIZE(compute_plugin_collective_table, 72);
AT(compute_plugin_collective_table, table_size, 0);
AT(compute_plugin_collective_table, make_id, 8);
AT(compute_plugin_collective_table, join, 16);
AT(compute_plugin_collective_table, supports, 24);
AT(compute_plugin_collective_table, run, 32);
AT(compute_plugin_collective_table, failure, 40);
AT(compute_plugin_collective_table, abort, 48);
AT(compute_plugin_collective_table, leave, 56);
AT(compute_plugin_collective_table, describe, 64);

#endif
