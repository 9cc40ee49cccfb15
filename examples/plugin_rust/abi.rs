// SPDX-License-Identifier: Apache-2.0
//! The part of compute/plugin.h that this plugin uses, written by hand. bindgen makes the same from the header.
#![allow(dead_code)]

use std::ffi::c_void;
use std::mem::size_of;

pub const INTERFACE: u32 = 1;
pub const DRAFT: u32 = 0;
pub const MUST_UNDERSTAND: u32 = 0x8000_0000;

pub const INVALID_ARGUMENT: i32 = 1;
pub const UNSUPPORTED: i32 = 3;
pub const OUT_OF_DEVICE_MEMORY: i32 = 5;
pub const KERNEL_FAILED: i32 = 9;
pub const INTERNAL: i32 = 17;

pub const DTYPE_BOOL: i32 = 1;
pub const DTYPE_INT32: i32 = 4;
pub const DTYPE_INT64: i32 = 5;
pub const DTYPE_UINT32: i32 = 8;
pub const DTYPE_FLOAT32: i32 = 12;
pub const DTYPE_ALL_LEVELS: u32 = 1 | 2 | 4 | 8; // storage, convert, arithmetic, matmul

pub const DEVICE_KIND_ACCELERATOR: i32 = 4;
pub const SUBNORMALS_KEPT: i32 = 1;

pub const STRUCT_MANIFEST: u32 = 1001;
pub const STRUCT_ERROR_INFO: u32 = 1002;
pub const STRUCT_DEVICE_INFO: u32 = 1003;
pub const STRUCT_CAPS: u32 = 1007;
pub const STRUCT_HEAP: u32 = 1008;
pub const STRUCT_REFUSAL: u32 = 1013;

pub const HEAP_HOST_SPACE: u32 = 2;
pub const HEAP_PINNED: u32 = 4;
pub const SUBALLOCATE_OFFSET: i32 = 1;
pub const HEAP_ROLE_SHARED: i32 = 4;

pub const NODE_INPUT: i32 = 1;
pub const NODE_SCALAR: i32 = 2;
pub const NODE_INDEX: i32 = 3;
pub const NODE_CONSTANT: i32 = 4;
pub const NODE_CALL: i32 = 5;

pub const REFUSE_NOT_IMPLEMENTED: i32 = 1;
pub const REFUSE_DTYPE: i32 = 2;
pub const REFUSE_LAYOUT: i32 = 3;
pub const REFUSE_ATTRIBUTE: i32 = 6;
pub const REFUSE_INTRINSIC: i32 = 8;

pub const FAULT_INDEX: i32 = 1;

/// An error of core's making; opaque.
pub enum Error {}
pub type Status = *mut Error;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Header {
    pub struct_size: u32,
    pub struct_type: u32,
    pub next: *const Header,
}

impl Header {
    pub const fn of<T>(struct_type: u32) -> Header {
        Header { struct_size: size_of::<T>() as u32, struct_type, next: std::ptr::null() }
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Text {
    pub data: *const u8,
    pub size: i64,
}

impl Text {
    pub const fn of(text: &str) -> Text {
        Text { data: text.as_ptr(), size: text.len() as i64 }
    }
    pub unsafe fn get<'a>(&self) -> &'a [u8] {
        slice(self.data, self.size)
    }
}

/// The elements of an array whose pointer may be null if there are none.
pub unsafe fn slice<'a, T>(data: *const T, count: i64) -> &'a [T] {
    if count <= 0 {
        return &[];
    }
    std::slice::from_raw_parts(data, count as usize)
}

/// Element `i` of an array of sized structs: the first one's `struct_size` is the distance between elements.
pub unsafe fn element<'a, T>(array: *const T, i: usize) -> &'a T {
    let distance = (*array.cast::<Header>()).struct_size as usize;
    &*array.cast::<u8>().add(i * distance).cast::<T>()
}

#[repr(C)]
pub struct Manifest {
    pub header: Header,
    pub interface_min: u32,
    pub interface_max: u32,
    pub draft: u32,
    pub flags: u32,
    pub name: Text,
    pub version: Text,
    pub vendor: Text,
    pub license: Text,
    pub url: Text,
    pub build_id: Text,
    pub sanitizer: Text,
    pub priority: i32,
    pub setting_count: i32,
    pub settings: *const c_void,
}

#[repr(C)]
pub struct ErrorInfo {
    pub header: Header,
    pub code: i32,
    pub argument: i32,
    pub native_code: i64,
    pub message: Text,
    pub cause: *mut Error,
}

#[repr(C)]
pub struct Core {
    pub table_size: i64,
    pub interface_newest: u32,
    pub core_version: u32,
    pub error_new: extern "C" fn(*const ErrorInfo) -> *mut Error,
    // The other functions follow; this plugin calls none of them.
}

#[repr(C)]
pub struct DeviceInfo {
    pub header: Header,
    pub id: u64,
    pub description: Text,
    pub vendor: Text,
    pub driver_version: Text,
    pub pci_address: Text,
    pub uuid: Text,
    pub libraries: Text,
    pub memory_bytes: i64,
    pub kind: i32,
    pub score: i32,
    pub platform_index: i32,
    pub property_count: i32,
    pub properties: *const c_void,
    pub dtypes: *const u32,
    pub dtype_count: i32,
    pub subnormals: i32,
    pub unusable: Text,
    pub platform: Text,
    pub subgroup_size_min: i32,
    pub subgroup_size_max: i32,
    pub local_memory_bytes: i64,
    pub argument_bytes: i64,
    pub max_group_size: i32,
    pub atomic_alignment: i32,
}

#[repr(C)]
pub struct Sink {
    pub table_size: i64,
    pub context: *mut c_void,
    pub device: extern "C" fn(*mut c_void, *const DeviceInfo),
    pub requirement: extern "C" fn(*mut c_void, *const c_void),
}

#[repr(C)]
pub struct Heap {
    pub header: Header,
    pub flags: u32,
    pub suballocation: i32,
    pub size_bytes: i64,
    pub max_allocation_bytes: i64,
    pub offset_alignment: i64,
    pub base_alignment: i64,
    pub role: i32,
    pub reserved: i32,
}

#[repr(C)]
pub struct Caps {
    pub header: Header,
    pub flags: u32,
    pub heap_count: i32,
    pub heaps: *const Heap,
    pub priority_least: i32,
    pub priority_greatest: i32,
}

#[repr(C)]
pub struct Allocation {
    pub header: Header,
    pub heap: i32,
    pub flags: u32,
    pub size_bytes: i64,
}

#[repr(C)]
pub struct DeviceOptions {
    pub header: Header,
    // The settings follow; this plugin has none.
}

#[repr(C)]
pub struct StreamOptions {
    pub header: Header,
    pub flags: u32,
    pub priority: i32,
}

#[repr(C)]
pub struct Node {
    pub kind: i32,
    pub dtype: i32,
    pub value: i32,
    pub operand_count: i32,
    pub first_operand: i64,
    pub bits: [u8; 16],
}

#[repr(C)]
pub struct Expression {
    pub header: Header,
    pub digest: [u8; 16],
    pub node_count: i32,
    pub input_count: i32,
    pub scalar_count: i32,
    pub output_count: i32,
    pub nodes: *const Node,
    pub operands: *const i32,
    pub operand_total: i64,
    pub outputs: *const i32,
}

#[repr(C)]
pub struct TensorInfo {
    pub header: Header,
    pub dtype: i32,
    pub rank: i32,
    pub shape: *const i64,
    pub strides: *const i64,
    pub access: i32,
    pub alignment: i32,
    pub layout: i32,
    pub reserved: i32,
}

#[repr(C)]
pub struct Attribute {
    pub header: Header,
    pub name: Text,
    pub kind: i32,
    pub reserved: i32,
    pub count: i64,
    pub values: *const c_void,
}

#[repr(C)]
pub struct Op {
    pub header: Header,
    pub name: Text,
    pub version: i32,
    pub flags: u32,
    pub input_count: i32,
    pub output_count: i32,
    pub tensors: *const TensorInfo,
    pub attributes: *const Attribute,
    pub attribute_count: i32,
    pub expression_count: i32,
    pub expressions: *const *const Expression,
    pub scalar_count: i32,
    pub reserved: i32,
    pub scalar_dtypes: *const i32,
}

#[repr(C)]
pub struct Refusal {
    pub header: Header,
    pub reason: i32,
    pub argument: i32,
    pub text: Text,
    pub hint: Text,
}

#[repr(C)]
pub struct QueryInfo {
    pub header: Header,
    pub supported: i32,
    pub flags: u32,
    pub workspace_bytes: i64,
}

#[repr(C)]
pub struct PlanInfo {
    pub header: Header,
    pub workspace_bytes: i64,
    pub kernels_compiled: i64,
    pub flags: u32,
    pub reports_faults: i32,
    pub argument_bytes: i64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Operand {
    pub buffer: u64,
    pub offset_bytes: i64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Scalar {
    pub bits: [u8; 16],
}

#[repr(C)]
pub struct Fault {
    pub code: i32,
    pub argument: i32,
    pub value: i64,
    pub limit: i64,
    pub position: i64,
    pub reserved: [i64; 4],
}

#[repr(C)]
pub struct Run {
    pub header: Header,
    pub stream: u64,
    pub tensors: *const Operand,
    pub scalars: *const Scalar,
    pub workspace: Operand,
    pub fault: Operand,
    pub tensor_count: i32,
    pub scalar_count: i32,
    pub workspace_bytes: i64,
}

pub type Refuse = extern "C" fn(*mut c_void, *const Refusal);
pub type Absent = Option<extern "C" fn()>;

/// The slots that this plugin leaves out are `Absent`: a null pointer, whatever their signature.
#[repr(C)]
pub struct DeviceTable {
    pub table_size: i64,
    pub caps: extern "C" fn(u64) -> *const Caps,
    pub close: extern "C" fn(u64),
    pub memory_allocate: extern "C" fn(u64, &Allocation, &mut u64, &mut *mut u8) -> Status,
    pub memory_free: extern "C" fn(u64, i32, u64),
    pub memory_info: Absent,
    pub memory_map: Absent,
    pub memory_unmap: Absent,
    pub memory_import: Absent,
    pub stream_create: extern "C" fn(u64, &StreamOptions, &mut u64) -> Status,
    pub stream_destroy: extern "C" fn(u64),
    pub stream_mark: extern "C" fn(u64, u64, u32) -> Status,
    pub stream_wait: extern "C" fn(u64, u64, u64, u32) -> Status,
    pub stream_wait_host: Absent,
    pub signal_host_wait: Absent,
    pub stream_cancel: Absent,
    pub stream_reached: extern "C" fn(u64, &mut u64) -> Status,
    pub stream_sync: extern "C" fn(u64, u64, i64, &mut u64) -> Status,
    pub mark_time: Absent,
    pub clock: Absent,
    pub telemetry: Absent,
    pub copy_from_host: extern "C" fn(u64, *const u8, *const Operand, &Operand, i64, u32) -> Status,
    pub copy_to_host: extern "C" fn(u64, &Operand, *mut u8, *const Operand, i64, u32) -> Status,
    pub fill: extern "C" fn(u64, &Operand, i64, *const u8, i32, u32) -> Status,
    pub copy_peer: Absent,
    pub op_query: extern "C" fn(u64, &Op, &mut QueryInfo, Refuse, *mut c_void) -> Status,
    pub op_prepare: extern "C" fn(u64, &Op, &mut u64, &mut PlanInfo, Refuse, *mut c_void) -> Status,
    pub plan_warm: Absent,
    pub plan_run: extern "C" fn(u64, &Run) -> Status,
    pub plan_release: extern "C" fn(u64, u64),
    pub kernels: Absent,
}

#[repr(C)]
pub struct PluginTable {
    pub table_size: i64,
    pub enumerate: extern "C" fn(&Sink) -> Status,
    pub device_open: extern "C" fn(u64, &DeviceOptions, &mut u64, &mut *const DeviceTable) -> Status,
    pub on_fork_child: Absent,
    pub on_exit: Absent,
    pub close: Absent,
    pub get_extension: Absent,
}

// The sizes that the header states.
const _: () = assert!(size_of::<Manifest>() == 160);
const _: () = assert!(size_of::<DeviceInfo>() == 232);
const _: () = assert!(size_of::<Heap>() == 64);
const _: () = assert!(size_of::<Caps>() == 40);
const _: () = assert!(size_of::<Refusal>() == 56);
const _: () = assert!(size_of::<QueryInfo>() == 32);
const _: () = assert!(size_of::<PlanInfo>() == 48);
const _: () = assert!(size_of::<Node>() == 40);

/// A static with pointers in it, all of which point to constants.
#[repr(transparent)]
pub struct Constant<T>(pub T);
unsafe impl<T> Sync for Constant<T> {}
