// SPDX-License-Identifier: Apache-2.0
//! What the functions of ops.rs fill: a call of one op, with its operands and attributes.
use crate::{check, sys, DType, Number, Result, Tensor};
use std::ffi::{c_void, CStr};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering};

/// An op of the library, which is looked up once.
pub(crate) struct Op {
    name: &'static CStr,
    version: i32,
    handle: AtomicPtr<sys::compute_op>,
}

impl Op {
    pub const fn new(name: &'static CStr, version: i32) -> Self {
        Self { name, version, handle: AtomicPtr::new(null_mut()) }
    }

    fn get(&self) -> Result<*const sys::compute_op> {
        let mut handle = self.handle.load(Ordering::Relaxed).cast_const();
        if handle.is_null() {
            check(unsafe { sys::compute_op_find(self.name.as_ptr(), self.version, &mut handle) })?;
            self.handle.store(handle.cast_mut(), Ordering::Relaxed);
        }
        Ok(handle)
    }
}

enum Value<'a> {
    Integer(i64),
    Integers(&'a [i64]),
    Real(f64),
    Reals(&'a [f64]),
    String(sys::compute_string),
    DType(i32),
}

pub(crate) struct Call<'a> {
    op: &'static Op,
    inputs: Vec<*mut sys::compute_tensor>,
    attributes: Vec<(&'static CStr, Value<'a>)>,
    outputs: Vec<Tensor>,
}

impl<'a> Call<'a> {
    pub fn new(op: &'static Op) -> Self {
        Self { op, inputs: Vec::new(), attributes: Vec::new(), outputs: Vec::new() }
    }

    pub fn input(&mut self, tensor: &'a Tensor) {
        self.inputs.push(tensor.handle);
    }
    pub fn optional_input(&mut self, tensor: Option<&'a Tensor>) {
        self.inputs.push(tensor.map_or(null_mut(), |tensor| tensor.handle));
    }
    pub fn inputs(&mut self, tensors: &[&'a Tensor]) {
        self.inputs.extend(tensors.iter().map(|tensor| tensor.handle));
    }
    /// The tensor that the op writes its result into.
    pub fn output(&mut self, tensor: Tensor) {
        self.outputs.push(tensor);
    }

    pub fn flag(&mut self, name: &'static CStr, value: bool) {
        self.attributes.push((name, Value::Integer(value.into())));
    }
    pub fn integer(&mut self, name: &'static CStr, value: impl Into<Option<i64>>) {
        self.attributes.extend(value.into().map(|value| (name, Value::Integer(value))));
    }
    pub fn real(&mut self, name: &'static CStr, value: f64) {
        self.attributes.push((name, Value::Real(value)));
    }
    pub fn number(&mut self, name: &'static CStr, value: Number) {
        let value = match value {
            Number::Integer(value) => Value::Integer(value),
            Number::Real(value) => Value::Real(value),
        };
        self.attributes.push((name, value));
    }
    pub fn string(&mut self, name: &'static CStr, value: &'a str) {
        let value = sys::compute_string { data: value.as_ptr().cast(), size: value.len() as i64 };
        self.attributes.push((name, Value::String(value)));
    }
    pub fn dtype(&mut self, name: &'static CStr, value: impl Into<Option<DType>>) {
        self.attributes.extend(value.into().map(|value| (name, Value::DType(value as i32))));
    }
    pub fn integers(&mut self, name: &'static CStr, value: impl Into<Option<&'a [i64]>>) {
        self.attributes.extend(value.into().map(|value| (name, Value::Integers(value))));
    }
    pub fn reals(&mut self, name: &'static CStr, value: impl Into<Option<&'a [f64]>>) {
        self.attributes.extend(value.into().map(|value| (name, Value::Reals(value))));
    }

    pub fn result(self) -> Result<Tensor> {
        let [result] = self.results()?;
        Ok(result)
    }

    /// Runs the op, which creates the outputs that are not given.
    pub fn results<const N: usize>(self) -> Result<[Tensor; N]> {
        let attributes: Vec<_> = self.attributes.iter().map(attribute).collect();
        let mut outputs = [null_mut(); N];
        for (place, output) in outputs.iter_mut().zip(&self.outputs) {
            *place = output.handle;
        }
        check(unsafe {
            sys::compute_op_run(
                self.op.get()?,
                null_mut(),
                attributes.as_ptr(),
                attributes.len() as i64,
                self.inputs.as_ptr(),
                self.inputs.len() as i64,
                outputs.as_mut_ptr(),
                N as i64,
            )
        })?;
        self.outputs.into_iter().for_each(std::mem::forget); // they are among `outputs`
        Ok(outputs.map(|handle| Tensor { handle }))
    }
}

fn attribute((name, value): &(&CStr, Value)) -> sys::compute_attribute {
    let (kind, count, values): (i32, usize, *const c_void) = match value {
        Value::Integer(value) => (sys::COMPUTE_KIND_INT64, 1, (value as *const i64).cast()),
        Value::Integers(values) => (sys::COMPUTE_KIND_INT64, values.len(), values.as_ptr().cast()),
        Value::Reals(values) => (sys::COMPUTE_KIND_FLOAT64, values.len(), values.as_ptr().cast()),
        Value::Real(value) => (sys::COMPUTE_KIND_FLOAT64, 1, (value as *const f64).cast()),
        Value::String(value) => (sys::COMPUTE_KIND_STRING, 1, (value as *const sys::compute_string).cast()),
        Value::DType(value) => (sys::COMPUTE_KIND_DTYPE, 1, (value as *const i32).cast()),
    };
    sys::compute_attribute {
        struct_size: std::mem::size_of::<sys::compute_attribute>() as u32,
        struct_type: sys::COMPUTE_STRUCT_ATTRIBUTE,
        next: null(),
        name: name.as_ptr(),
        name_size: -1,
        kind,
        reserved: 0,
        count: count as i64,
        values,
    }
}
