// SPDX-License-Identifier: Apache-2.0
//! Tensors on CPUs, CUDA and OpenCL devices.
//!
//! ```no_run
//! use compute::{matmul, tanh, Device};
//!
//! fn main() -> compute::Result<()> {
//!     let device = Device::open()?; // COMPUTE_DEVICE, or the best device
//!     let x = device.tensor(&[1.0f32, 2.0, 3.0, 4.0], &[2, 2])?;
//!     let y = tanh(&(matmul(&x, &x)? * 0.1))?; // stays on the device
//!     println!("{:?}", y.to_vec::<f32>()?); // waits and copies
//!     Ok(())
//! }
//! ```
//!
//! Every op is a function, and some are operators. Functions return errors. Operators panic, because their results are
//! tensors. A number that is combined with a tensor takes the dtype of the tensor. Ops run on the default stream of
//! their device.
//!
//! Threads: a handle can be used by several threads at once.
mod call;
mod ops;
pub mod sys;

pub use ops::*;

use std::ffi::{c_char, CStr, CString};
use std::fmt;
use std::ptr::{null, null_mut};

// ---- Errors ---------------------------------------------------------------------------------------------------------

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[repr(i32)]
pub enum ErrorCode {
    InvalidArgument = 1,
    OutOfRange = 2,
    Unsupported = 3,
    OutOfMemory = 4,
    OutOfDeviceMemory = 5,
    NotFound = 6,
    DeviceMismatch = 7,
    CompileFailed = 8,
    KernelFailed = 9,
    StreamFailed = 10,
    ContextLost = 11,
    DeviceLost = 12,
    RestartRequired = 13,
    Forked = 14,
    ShutDown = 15,
    PluginRejected = 16,
    Internal = 17,
    Cancelled = 18,
    PeerFailed = 19,
    Numerical = 20,
    Io = 21,
}

impl ErrorCode {
    /// A code that is newer than this crate is INTERNAL.
    fn of(code: i32) -> Self {
        use ErrorCode::*;
        const ALL: [ErrorCode; 21] = [
            InvalidArgument,
            OutOfRange,
            Unsupported,
            OutOfMemory,
            OutOfDeviceMemory,
            NotFound,
            DeviceMismatch,
            CompileFailed,
            KernelFailed,
            StreamFailed,
            ContextLost,
            DeviceLost,
            RestartRequired,
            Forked,
            ShutDown,
            PluginRejected,
            Internal,
            Cancelled,
            PeerFailed,
            Numerical,
            Io,
        ];
        *usize::try_from(code - 1).ok().and_then(|index| ALL.get(index)).unwrap_or(&Internal)
    }
}

/// The name, as INVALID_ARGUMENT.
impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&text(unsafe { sys::compute_error_code_name(*self as i32) }))
    }
}

#[derive(Clone, Debug)]
pub struct Error {
    code: ErrorCode,
    message: String,
    op: String,
}

impl Error {
    fn new(code: ErrorCode, message: String) -> Self {
        Self { code, message, op: String::new() }
    }
    pub fn code(&self) -> ErrorCode {
        self.code
    }
    /// The name of the op, or "".
    pub fn op(&self) -> &str {
        &self.op
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

fn text(string: *const c_char) -> String {
    unsafe { CStr::from_ptr(string) }.to_string_lossy().into_owned()
}

fn check(error: *mut sys::compute_error) -> Result<()> {
    if error.is_null() {
        return Ok(());
    }
    unsafe {
        let code = ErrorCode::of(sys::compute_error_get_code(error));
        let (message, op) = (text(sys::compute_error_message(error)), text(sys::compute_error_op(error)));
        sys::compute_error_free(error);
        Err(Error { code, message, op })
    }
}

// ---- Dtypes and numbers ---------------------------------------------------------------------------------------------

macro_rules! dtypes {
    ($($name:ident = $id:literal $($type:ty)?,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        #[repr(i32)]
        pub enum DType {
            $($name = $id),*
        }
        impl DType {
            fn of(id: i32) -> Option<Self> {
                match id {
                    $($id => Some(DType::$name),)*
                    _ => None,
                }
            }
        }
        $($(
            impl sealed::Sealed for $type {}
            impl Element for $type {
                const DTYPE: DType = DType::$name;
            }
        )?)*
    };
}
dtypes! {
    Bool = 1,
    Int8 = 2 i8,
    Int16 = 3 i16,
    Int32 = 4 i32,
    Int64 = 5 i64,
    UInt8 = 6 u8,
    UInt16 = 7 u16,
    UInt32 = 8 u32,
    UInt64 = 9 u64,
    Float16 = 10,
    BFloat16 = 11,
    Float32 = 12 f32,
    Float64 = 13 f64,
    Complex64 = 14,
    Complex128 = 15,
    Float8E4M3FN = 16,
    Float8E5M2 = 17,
}

/// The name, as float32.
impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&text(unsafe { sys::compute_dtype_name(*self as i32) }))
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A type of elements. Cast a bool tensor to read it.
pub trait Element: sealed::Sealed + Copy + Default {
    const DTYPE: DType;
}

/// The value of an attribute that may be an integer or not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    Integer(i64),
    Real(f64),
}
impl From<i64> for Number {
    fn from(value: i64) -> Self {
        Number::Integer(value)
    }
}
impl From<f64> for Number {
    fn from(value: f64) -> Self {
        Number::Real(value)
    }
}

// ---- Devices --------------------------------------------------------------------------------------------------------

/// An open device. A clone is the same device.
pub struct Device {
    handle: *mut sys::compute_device,
}
unsafe impl Send for Device {}
unsafe impl Sync for Device {}

/// The memory of a device, in bytes, and the number of its blocks in use.
#[derive(Clone, Copy, Debug)]
pub struct Statistics {
    pub memory_used: i64,
    pub memory_peak: i64,
    pub memory_reserved: i64,
    pub blocks_live: i64,
}

impl Device {
    /// Opens the device that the setting COMPUTE_DEVICE names, or the best one.
    pub fn open() -> Result<Self> {
        Self::open_selector(null())
    }
    /// Opens the device that a selector names, as "cuda0" or "auto,-opencl".
    pub fn select(selector: &str) -> Result<Self> {
        let selector = CString::new(selector)
            .map_err(|_| Error::new(ErrorCode::InvalidArgument, "the selector contains a NUL".to_string()))?;
        Self::open_selector(selector.as_ptr())
    }
    fn open_selector(selector: *const c_char) -> Result<Self> {
        let mut handle = null_mut();
        check(unsafe { sys::compute_device_open(selector, &mut handle) })?;
        Ok(Self { handle })
    }
    /// The names of all devices; opens none.
    pub fn list() -> Result<Vec<String>> {
        let info = || sys::compute_device_info {
            struct_size: std::mem::size_of::<sys::compute_device_info>() as u32,
            struct_type: 0,
            next: null(),
            name: null(),
            name_size: 0,
        };
        let (mut infos, mut count) = (Vec::new(), 0);
        loop {
            check(unsafe { sys::compute_device_list(infos.as_mut_ptr(), infos.len() as i64, &mut count) })?;
            if count as usize <= infos.len() {
                return Ok(infos[..count as usize].iter().map(|info| text(info.name)).collect());
            }
            infos.resize_with(count as usize, info);
        }
    }
    /// The canonical name, as "cuda0".
    pub fn name(&self) -> String {
        text(unsafe { sys::compute_device_name(self.handle) })
    }
    pub fn statistics(&self) -> Result<Statistics> {
        let mut statistics: sys::compute_device_statistics = unsafe { std::mem::zeroed() };
        statistics.struct_size = std::mem::size_of::<sys::compute_device_statistics>() as u32;
        check(unsafe { sys::compute_device_get_statistics(self.handle, &mut statistics) })?;
        Ok(Statistics {
            memory_used: statistics.memory_used,
            memory_peak: statistics.memory_peak,
            memory_reserved: statistics.memory_reserved,
            blocks_live: statistics.blocks_live,
        })
    }
    /// Waits for all work of the device.
    pub fn synchronize(&self) -> Result<()> {
        check(unsafe { sys::compute_device_synchronize(self.handle) })
    }

    /// A tensor with a copy of the row-major `values`.
    pub fn tensor<T: Element>(&self, values: &[T], shape: &[i64]) -> Result<Tensor> {
        let elements = shape.iter().try_fold(1i64, |product, extent| product.checked_mul(*extent));
        if elements != Some(values.len() as i64) {
            let message = format!("tensor: {} values do not have the shape {shape:?}", values.len());
            return Err(Error::new(ErrorCode::InvalidArgument, message));
        }
        Tensor::made(|out| unsafe {
            let data = values.as_ptr().cast();
            sys::compute_tensor_from_host(self.handle, T::DTYPE as i32, shape.len() as i32, shape.as_ptr(), data, out)
        })
    }
    /// A row-major tensor with undefined contents.
    pub fn empty(&self, dtype: DType, shape: &[i64]) -> Result<Tensor> {
        Tensor::made(|out| unsafe {
            sys::compute_tensor_empty(self.handle, dtype as i32, shape.len() as i32, shape.as_ptr(), out)
        })
    }
}

impl Clone for Device {
    fn clone(&self) -> Self {
        unsafe { sys::compute_device_retain(self.handle) };
        Self { handle: self.handle }
    }
}
impl Drop for Device {
    fn drop(&mut self) {
        unsafe { sys::compute_device_release(self.handle) };
    }
}

// ---- Tensors --------------------------------------------------------------------------------------------------------

/// A tensor on a device. A clone is the same tensor: it shares the elements.
pub struct Tensor {
    handle: *mut sys::compute_tensor,
}
unsafe impl Send for Tensor {}
unsafe impl Sync for Tensor {}

impl Tensor {
    fn made(make: impl FnOnce(*mut *mut sys::compute_tensor) -> *mut sys::compute_error) -> Result<Self> {
        let mut handle = null_mut();
        check(make(&mut handle))?;
        Ok(Self { handle })
    }
    /// A scalar that takes the dtype of the other operands of an op.
    pub fn scalar(value: impl Into<Number>) -> Result<Self> {
        Self::made(|out| match value.into() {
            Number::Integer(value) => unsafe {
                sys::compute_tensor_scalar(DType::Int64 as i32, (&value as *const i64).cast(), 1, out)
            },
            Number::Real(value) => unsafe {
                sys::compute_tensor_scalar(DType::Float64 as i32, (&value as *const f64).cast(), 1, out)
            },
        })
    }

    /// The handle, for functions of compute.h that this crate does not have. It is borrowed.
    pub fn as_ptr(&self) -> *mut sys::compute_tensor {
        self.handle
    }
    /// The dtype; None if it is newer than this crate.
    pub fn dtype(&self) -> Option<DType> {
        DType::of(unsafe { sys::compute_tensor_dtype(self.handle) })
    }
    pub fn shape(&self) -> &[i64] {
        let rank = unsafe { sys::compute_tensor_rank(self.handle) } as usize;
        if rank == 0 {
            return &[];
        }
        unsafe { std::slice::from_raw_parts(sys::compute_tensor_shape(self.handle), rank) }
    }
    pub fn device(&self) -> Device {
        let handle = unsafe { sys::compute_tensor_device(self.handle) };
        unsafe { sys::compute_device_retain(handle) };
        Device { handle }
    }

    /// The elements in row-major order. Waits for the work that writes the tensor. T is the dtype of the tensor.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        self.require::<T>("to_vec")?;
        let mut values = vec![T::default(); unsafe { sys::compute_tensor_element_count(self.handle) } as usize];
        check(unsafe {
            sys::compute_tensor_read(
                self.handle,
                values.as_mut_ptr().cast(),
                sys::compute_tensor_size_bytes(self.handle),
            )
        })?;
        Ok(values)
    }
    /// Copies row-major elements into the tensor.
    pub fn write<T: Element>(&self, values: &[T]) -> Result<()> {
        self.require::<T>("write")?;
        check(unsafe {
            sys::compute_tensor_write(self.handle, values.as_ptr().cast(), std::mem::size_of_val(values) as i64)
        })
    }
    fn require<T: Element>(&self, function: &str) -> Result<()> {
        match self.dtype() {
            Some(dtype) if dtype == T::DTYPE => Ok(()),
            dtype => {
                let name = dtype.map_or("newer than this crate".to_string(), |dtype| dtype.to_string());
                let message = format!("{function}: the tensor is {name}, not {}; cast it first", T::DTYPE);
                Err(Error::new(ErrorCode::InvalidArgument, message))
            }
        }
    }

    /// A copy on `device`, or the same tensor if it is there already.
    pub fn to_device(&self, device: &Device) -> Result<Self> {
        Self::made(|out| unsafe { sys::compute_tensor_to_device(self.handle, device.handle, out) })
    }
    /// A view of another shape. One extent may be -1.
    pub fn reshape(&self, shape: &[i64]) -> Result<Self> {
        Self::made(|out| unsafe { sys::compute_tensor_reshape(self.handle, shape.len() as i32, shape.as_ptr(), out) })
    }
    /// A view with the axes in another order.
    pub fn permute(&self, axes: &[i32]) -> Result<Self> {
        Self::made(|out| unsafe { sys::compute_tensor_permute(self.handle, axes.len() as i32, axes.as_ptr(), out) })
    }
}

impl Clone for Tensor {
    fn clone(&self) -> Self {
        unsafe { sys::compute_tensor_retain(self.handle) };
        Self { handle: self.handle }
    }
}
impl Drop for Tensor {
    fn drop(&mut self) {
        unsafe { sys::compute_tensor_release(self.handle) };
    }
}
impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let dtype = self.dtype().map_or("unknown".to_string(), |dtype| dtype.to_string());
        write!(f, "Tensor({dtype} {:?} on {})", self.shape(), self.device().name())
    }
}

// ---- Operators ------------------------------------------------------------------------------------------------------

fn or_panic(result: Result<Tensor>) -> Tensor {
    result.unwrap_or_else(|error| panic!("{error}"))
}

macro_rules! operators {
    ($($trait:ident $method:ident $op:ident;)*) => {$(
        operators!(@tensors $trait $method $op, Tensor, Tensor);
        operators!(@tensors $trait $method $op, Tensor, &Tensor);
        operators!(@tensors $trait $method $op, &Tensor, Tensor);
        operators!(@tensors $trait $method $op, &Tensor, &Tensor);
        operators!(@numbers $trait $method $op, Tensor, i64);
        operators!(@numbers $trait $method $op, &Tensor, i64);
        operators!(@numbers $trait $method $op, Tensor, f64);
        operators!(@numbers $trait $method $op, &Tensor, f64);
    )*};
    (@tensors $trait:ident $method:ident $op:ident, $left:ty, $right:ty) => {
        impl std::ops::$trait<$right> for $left {
            type Output = Tensor;
            fn $method(self, other: $right) -> Tensor {
                or_panic($op(&self, &other))
            }
        }
    };
    (@numbers $trait:ident $method:ident $op:ident, $tensor:ty, $number:ty) => {
        impl std::ops::$trait<$number> for $tensor {
            type Output = Tensor;
            fn $method(self, other: $number) -> Tensor {
                or_panic(Tensor::scalar(other).and_then(|other| $op(&self, &other)))
            }
        }
        impl std::ops::$trait<$tensor> for $number {
            type Output = Tensor;
            fn $method(self, other: $tensor) -> Tensor {
                or_panic(Tensor::scalar(self).and_then(|number| $op(&number, &other)))
            }
        }
    };
}
operators! {
    Add add add;
    Sub sub subtract;
    Mul mul multiply;
    Div div divide;
}

impl std::ops::Neg for &Tensor {
    type Output = Tensor;
    fn neg(self) -> Tensor {
        or_panic(negative(self))
    }
}
impl std::ops::Neg for Tensor {
    type Output = Tensor;
    fn neg(self) -> Tensor {
        -&self
    }
}
