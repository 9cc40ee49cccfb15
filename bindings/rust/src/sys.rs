// SPDX-License-Identifier: Apache-2.0
//! The part of compute.h that this crate uses. Names, sizes and meanings are those of the header.
#![allow(non_camel_case_types)]
use std::ffi::{c_char, c_void};

macro_rules! handles {
    ($($name:ident),*) => {$(
        #[repr(C)]
        pub struct $name {
            _opaque: [u8; 0],
        }
    )*};
}
handles!(compute_error, compute_device, compute_tensor, compute_stream, compute_op);

pub const COMPUTE_KIND_INT64: i32 = 1;
pub const COMPUTE_KIND_FLOAT64: i32 = 2;
pub const COMPUTE_KIND_STRING: i32 = 4;
pub const COMPUTE_KIND_DTYPE: i32 = 5;
pub const COMPUTE_STRUCT_ATTRIBUTE: u32 = 5;

#[repr(C)]
pub struct compute_string {
    pub data: *const c_char,
    pub size: i64,
}

#[repr(C)]
pub struct compute_attribute {
    pub struct_size: u32,
    pub struct_type: u32,
    pub next: *const c_void,
    pub name: *const c_char,
    pub name_size: i64,
    pub kind: i32,
    pub reserved: i32,
    pub count: i64,
    pub values: *const c_void,
}
const _: () = assert!(std::mem::size_of::<compute_attribute>() == 56);

/// The first fields of the header's struct; `struct_size` says so.
#[repr(C)]
pub struct compute_device_info {
    pub struct_size: u32,
    pub struct_type: u32,
    pub next: *const c_void,
    pub name: *const c_char,
    pub name_size: i64,
}

/// The first fields of the header's struct; `struct_size` says so.
#[repr(C)]
pub struct compute_device_statistics {
    pub struct_size: u32,
    pub struct_type: u32,
    pub next: *const c_void,
    pub memory_used: i64,
    pub memory_peak: i64,
    pub memory_reserved: i64,
    pub memory_limit: i64,
    pub memory_mirrors: i64,
    pub blocks_live: i64,
}

extern "C" {
    pub fn compute_error_free(error: *mut compute_error);
    pub fn compute_error_get_code(error: *const compute_error) -> i32;
    pub fn compute_error_message(error: *const compute_error) -> *const c_char;
    pub fn compute_error_op(error: *const compute_error) -> *const c_char;
    pub fn compute_error_code_name(code: i32) -> *const c_char;
    pub fn compute_dtype_name(dtype: i32) -> *const c_char;

    pub fn compute_device_list(infos: *mut compute_device_info, capacity: i64, count: *mut i64) -> *mut compute_error;
    pub fn compute_device_open(selector: *const c_char, device: *mut *mut compute_device) -> *mut compute_error;
    pub fn compute_device_retain(device: *mut compute_device);
    pub fn compute_device_release(device: *mut compute_device);
    pub fn compute_device_name(device: *const compute_device) -> *const c_char;
    pub fn compute_device_get_statistics(
        device: *mut compute_device,
        statistics: *mut compute_device_statistics,
    ) -> *mut compute_error;
    pub fn compute_device_synchronize(device: *mut compute_device) -> *mut compute_error;

    pub fn compute_tensor_empty(
        device: *mut compute_device,
        dtype: i32,
        rank: i32,
        shape: *const i64,
        tensor: *mut *mut compute_tensor,
    ) -> *mut compute_error;
    pub fn compute_tensor_from_host(
        device: *mut compute_device,
        dtype: i32,
        rank: i32,
        shape: *const i64,
        data: *const c_void,
        tensor: *mut *mut compute_tensor,
    ) -> *mut compute_error;
    pub fn compute_tensor_scalar(
        dtype: i32,
        value: *const c_void,
        weak: i32,
        tensor: *mut *mut compute_tensor,
    ) -> *mut compute_error;
    pub fn compute_tensor_retain(tensor: *mut compute_tensor);
    pub fn compute_tensor_release(tensor: *mut compute_tensor);
    pub fn compute_tensor_dtype(tensor: *const compute_tensor) -> i32;
    pub fn compute_tensor_rank(tensor: *const compute_tensor) -> i32;
    pub fn compute_tensor_shape(tensor: *const compute_tensor) -> *const i64;
    pub fn compute_tensor_element_count(tensor: *const compute_tensor) -> i64;
    pub fn compute_tensor_size_bytes(tensor: *const compute_tensor) -> i64;
    pub fn compute_tensor_device(tensor: *const compute_tensor) -> *mut compute_device;
    pub fn compute_tensor_reshape(
        tensor: *mut compute_tensor,
        rank: i32,
        shape: *const i64,
        view: *mut *mut compute_tensor,
    ) -> *mut compute_error;
    pub fn compute_tensor_permute(
        tensor: *mut compute_tensor,
        rank: i32,
        axes: *const i32,
        view: *mut *mut compute_tensor,
    ) -> *mut compute_error;
    pub fn compute_tensor_read(tensor: *mut compute_tensor, dst: *mut c_void, size_bytes: i64) -> *mut compute_error;
    pub fn compute_tensor_write(tensor: *mut compute_tensor, src: *const c_void, size_bytes: i64)
        -> *mut compute_error;
    pub fn compute_tensor_to_device(
        tensor: *mut compute_tensor,
        device: *mut compute_device,
        out: *mut *mut compute_tensor,
    ) -> *mut compute_error;

    pub fn compute_op_find(name: *const c_char, version: i32, op: *mut *const compute_op) -> *mut compute_error;
    pub fn compute_op_run(
        op: *const compute_op,
        stream: *mut compute_stream,
        attributes: *const compute_attribute,
        attribute_count: i64,
        inputs: *const *mut compute_tensor,
        input_count: i64,
        outputs: *mut *mut compute_tensor,
        output_count: i64,
    ) -> *mut compute_error;
}
