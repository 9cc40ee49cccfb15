// SPDX-License-Identifier: Apache-2.0

// Package compute has tensors on CPUs, CUDA and OpenCL devices.
//
//	device, err := compute.Open("") // COMPUTE_DEVICE, or the best device
//	x, err := compute.FromSlice(device, []float32{1, 2, 3, 4}, 2, 2)
//	y, err := compute.Tanh(x)                 // stays on the device
//	values, err := compute.Values[float32](y) // waits and copies
//
// Every op is a function. Ops run on the default stream of their device.
//
// The garbage collector releases tensors, but it does not know how large they are. Close a tensor that is large or on a
// device with little memory. All functions may be called from any goroutine.
package compute

/*
#cgo pkg-config: compute
#include <compute/compute.h>
#include <stdlib.h>
*/
import "C"

import (
	"fmt"
	"runtime"
	"unsafe"
)

// ---- Errors ---------------------------------------------------------------------------------------------------------

// A Code is the kind of an error. errors.Is(err, compute.NotFound) compares with it.
type Code int32

const (
	InvalidArgument   Code = C.COMPUTE_ERROR_INVALID_ARGUMENT
	OutOfRange        Code = C.COMPUTE_ERROR_OUT_OF_RANGE
	Unsupported       Code = C.COMPUTE_ERROR_UNSUPPORTED
	OutOfMemory       Code = C.COMPUTE_ERROR_OUT_OF_MEMORY
	OutOfDeviceMemory Code = C.COMPUTE_ERROR_OUT_OF_DEVICE_MEMORY
	NotFound          Code = C.COMPUTE_ERROR_NOT_FOUND
	DeviceMismatch    Code = C.COMPUTE_ERROR_DEVICE_MISMATCH
	CompileFailed     Code = C.COMPUTE_ERROR_COMPILE_FAILED
	KernelFailed      Code = C.COMPUTE_ERROR_KERNEL_FAILED
	StreamFailed      Code = C.COMPUTE_ERROR_STREAM_FAILED
	ContextLost       Code = C.COMPUTE_ERROR_CONTEXT_LOST
	DeviceLost        Code = C.COMPUTE_ERROR_DEVICE_LOST
	RestartRequired   Code = C.COMPUTE_ERROR_RESTART_REQUIRED
	Forked            Code = C.COMPUTE_ERROR_FORKED
	ShutDown          Code = C.COMPUTE_ERROR_SHUT_DOWN
	PluginRejected    Code = C.COMPUTE_ERROR_PLUGIN_REJECTED
	Internal          Code = C.COMPUTE_ERROR_INTERNAL
	Cancelled         Code = C.COMPUTE_ERROR_CANCELLED
	PeerFailed        Code = C.COMPUTE_ERROR_PEER_FAILED
	Numerical         Code = C.COMPUTE_ERROR_NUMERICAL
	IO                Code = C.COMPUTE_ERROR_IO
)

// Error returns the name, as INVALID_ARGUMENT.
func (code Code) Error() string {
	return C.GoString(C.compute_error_code_name(C.compute_error_code(code)))
}

// An Error is what the library reports.
type Error struct {
	Code    Code
	Message string
	Op      string // the name of the op, or ""
}

func (err *Error) Error() string { return err.Message }

// Unwrap returns the code.
func (err *Error) Unwrap() error { return err.Code }

func check(err *C.compute_error) error {
	if err == nil {
		return nil
	}
	defer C.compute_error_free(err)
	return &Error{
		Code:    Code(C.compute_error_get_code(err)),
		Message: C.GoString(C.compute_error_message(err)),
		Op:      C.GoString(C.compute_error_op(err)),
	}
}

func invalid(format string, values ...any) error {
	return &Error{Code: InvalidArgument, Message: fmt.Sprintf(format, values...)}
}

// ---- Dtypes and numbers ---------------------------------------------------------------------------------------------

// A DType is the type of the elements of a tensor.
type DType int32

const (
	Bool       DType = C.COMPUTE_DTYPE_BOOL
	Int8       DType = C.COMPUTE_DTYPE_INT8
	Int16      DType = C.COMPUTE_DTYPE_INT16
	Int32      DType = C.COMPUTE_DTYPE_INT32
	Int64      DType = C.COMPUTE_DTYPE_INT64
	Uint8      DType = C.COMPUTE_DTYPE_UINT8
	Uint16     DType = C.COMPUTE_DTYPE_UINT16
	Uint32     DType = C.COMPUTE_DTYPE_UINT32
	Uint64     DType = C.COMPUTE_DTYPE_UINT64
	Float16    DType = C.COMPUTE_DTYPE_FLOAT16
	Bfloat16   DType = C.COMPUTE_DTYPE_BFLOAT16
	Float32    DType = C.COMPUTE_DTYPE_FLOAT32
	Float64    DType = C.COMPUTE_DTYPE_FLOAT64
	Complex64  DType = C.COMPUTE_DTYPE_COMPLEX64
	Complex128 DType = C.COMPUTE_DTYPE_COMPLEX128

	// Stored, moved, converted and multiplied; other operations take a cast of them.
	Float8E4M3FN DType = C.COMPUTE_DTYPE_FLOAT8_E4M3FN
	Float8E5M2   DType = C.COMPUTE_DTYPE_FLOAT8_E5M2
)

// String returns the name, as float32.
func (dtype DType) String() string { return C.GoString(C.compute_dtype_name(C.compute_dtype(dtype))) }

// An Element is a type of elements.
type Element interface {
	bool | int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64 | complex64 | complex128
}

// DTypeOf returns the dtype of a type of elements.
func DTypeOf[T Element]() DType {
	var zero T
	switch any(zero).(type) {
	case bool:
		return Bool
	case int8:
		return Int8
	case int16:
		return Int16
	case int32:
		return Int32
	case int64:
		return Int64
	case uint8:
		return Uint8
	case uint16:
		return Uint16
	case uint32:
		return Uint32
	case uint64:
		return Uint64
	case float32:
		return Float32
	case float64:
		return Float64
	case complex64:
		return Complex64
	}
	return Complex128
}

// A Number is the value of an attribute. The zero Number means the default of the attribute.
type Number struct {
	kind    C.int32_t
	integer int64
	real    float64
}

// Integer returns a Number. Flags are Integer(0) and Integer(1).
func Integer(value int64) Number { return Number{kind: C.COMPUTE_KIND_INT64, integer: value} }

// Float returns a Number.
func Float(value float64) Number { return Number{kind: C.COMPUTE_KIND_FLOAT64, real: value} }

// ---- Devices --------------------------------------------------------------------------------------------------------

// A Device is an open device.
type Device struct{ handle *C.compute_device }

// Open opens the device that a selector names, as "cuda0" or "auto,-opencl". "" means the setting COMPUTE_DEVICE, or the
// best device.
func Open(selector string) (*Device, error) {
	var text *C.char
	if selector != "" {
		text = C.CString(selector)
		defer C.free(unsafe.Pointer(text))
	}
	var handle *C.compute_device
	if err := check(C.compute_device_open(text, &handle)); err != nil {
		return nil, err
	}
	return wrapDevice(handle), nil
}

func wrapDevice(handle *C.compute_device) *Device {
	device := &Device{handle}
	runtime.SetFinalizer(device, (*Device).Close)
	return device
}

// Close releases the device. Its tensors keep it open.
func (device *Device) Close() {
	C.compute_device_release(device.handle)
	device.handle = nil
	runtime.SetFinalizer(device, nil)
}

// Devices returns the names of all devices. It opens none.
func Devices() ([]string, error) {
	for capacity := C.int64_t(16); ; {
		infos := make([]C.compute_device_info, capacity)
		infos[0].struct_size = C.sizeof_compute_device_info
		var count C.int64_t
		if err := check(C.compute_device_list(&infos[0], capacity, &count)); err != nil {
			return nil, err
		}
		if count <= capacity {
			names := make([]string, count)
			for i := range names {
				names[i] = C.GoString(infos[i].name)
			}
			return names, nil
		}
		capacity = count
	}
}

// Name returns the canonical name, as "cuda0".
func (device *Device) Name() string {
	defer runtime.KeepAlive(device)
	return C.GoString(C.compute_device_name(device.handle))
}

// Statistics are the memory of a device in bytes, and the number of its blocks in use.
type Statistics struct{ MemoryUsed, MemoryPeak, MemoryReserved, BlocksLive int64 }

// Statistics returns the statistics of the device.
func (device *Device) Statistics() (Statistics, error) {
	defer runtime.KeepAlive(device)
	var s C.compute_device_statistics
	s.struct_size = C.sizeof_compute_device_statistics
	err := check(C.compute_device_get_statistics(device.handle, &s))
	return Statistics{int64(s.memory_used), int64(s.memory_peak), int64(s.memory_reserved), int64(s.blocks_live)}, err
}

// Synchronize waits for all work of the device.
func (device *Device) Synchronize() error {
	defer runtime.KeepAlive(device)
	return check(C.compute_device_synchronize(device.handle))
}

// ---- Tensors --------------------------------------------------------------------------------------------------------

// A Tensor is a tensor on a device.
type Tensor struct{ handle *C.compute_tensor }

// wrap takes over a handle, unless there is an error.
func wrap(handle *C.compute_tensor, err *C.compute_error) (*Tensor, error) {
	if err := check(err); err != nil {
		return nil, err
	}
	return owned(handle), nil
}

func owned(handle *C.compute_tensor) *Tensor {
	tensor := &Tensor{handle}
	runtime.SetFinalizer(tensor, (*Tensor).Close)
	return tensor
}

// Close releases the tensor. It must not be used afterwards.
func (tensor *Tensor) Close() {
	C.compute_tensor_release(tensor.handle)
	tensor.handle = nil
	runtime.SetFinalizer(tensor, nil)
}

func extents(shape []int64) (rank C.int32_t, first *C.int64_t) {
	if len(shape) > 0 {
		first = (*C.int64_t)(&shape[0])
	}
	return C.int32_t(len(shape)), first
}

// Empty returns a row-major tensor with undefined contents.
func Empty(device *Device, dtype DType, shape ...int64) (*Tensor, error) {
	defer runtime.KeepAlive(device)
	rank, first := extents(shape)
	var handle *C.compute_tensor
	err := C.compute_tensor_empty(device.handle, C.compute_dtype(dtype), rank, first, &handle)
	return wrap(handle, err)
}

// FromSlice returns a tensor with a copy of the row-major values.
func FromSlice[T Element](device *Device, values []T, shape ...int64) (*Tensor, error) {
	elements := int64(1)
	for _, extent := range shape {
		if extent < 0 || (extent > 0 && elements > int64(len(values))) {
			elements = -1
			break
		}
		elements *= extent
	}
	if elements != int64(len(values)) {
		return nil, invalid("FromSlice: %d values do not have the shape %v", len(values), shape)
	}
	return fromHost(device, DTypeOf[T](), address(values), shape)
}

func fromHost(device *Device, dtype DType, data unsafe.Pointer, shape []int64) (*Tensor, error) {
	defer runtime.KeepAlive(device)
	rank, first := extents(shape)
	var handle *C.compute_tensor
	err := C.compute_tensor_from_host(device.handle, C.compute_dtype(dtype), rank, first, data, &handle)
	return wrap(handle, err)
}

func address[T Element](values []T) unsafe.Pointer {
	var none T
	if len(values) == 0 {
		return unsafe.Pointer(&none)
	}
	return unsafe.Pointer(&values[0])
}

// Scalar returns a scalar that takes the dtype of the other operands of an op.
func Scalar(value float64) (*Tensor, error) {
	var handle *C.compute_tensor
	err := C.compute_tensor_scalar(C.COMPUTE_DTYPE_FLOAT64, unsafe.Pointer(&value), 1, &handle)
	return wrap(handle, err)
}

// DType returns the dtype.
func (tensor *Tensor) DType() DType {
	defer runtime.KeepAlive(tensor)
	return DType(C.compute_tensor_dtype(tensor.handle))
}

// Shape returns a copy of the shape.
func (tensor *Tensor) Shape() []int64 {
	defer runtime.KeepAlive(tensor)
	rank := int(C.compute_tensor_rank(tensor.handle))
	shape := make([]int64, rank)
	if rank > 0 {
		copy(shape, unsafe.Slice((*int64)(C.compute_tensor_shape(tensor.handle)), rank))
	}
	return shape
}

// Device returns the device of the tensor.
func (tensor *Tensor) Device() *Device {
	defer runtime.KeepAlive(tensor)
	handle := C.compute_tensor_device(tensor.handle)
	C.compute_device_retain(handle)
	return wrapDevice(handle)
}

// Values returns the elements in row-major order. It waits for the work that writes the tensor. T is the dtype of the
// tensor.
func Values[T Element](tensor *Tensor) ([]T, error) {
	if dtype := DTypeOf[T](); tensor.DType() != dtype {
		return nil, invalid("Values: the tensor is %v, not %v; cast it first", tensor.DType(), dtype)
	}
	values := make([]T, tensor.count())
	err := tensor.read(address(values))
	if truths, ok := any(values).([]bool); ok && len(truths) > 0 {
		// Memory from elsewhere may hold any byte for true.
		for i, value := range unsafe.Slice((*byte)(unsafe.Pointer(&truths[0])), len(truths)) {
			truths[i] = value != 0
		}
	}
	return values, err
}

// Write copies row-major elements into the tensor.
func Write[T Element](tensor *Tensor, values []T) error {
	if dtype := DTypeOf[T](); tensor.DType() != dtype || tensor.count() != int64(len(values)) {
		return invalid("Write: the tensor has %d elements of %v", tensor.count(), tensor.DType())
	}
	return tensor.write(address(values))
}

func (tensor *Tensor) count() int64 {
	defer runtime.KeepAlive(tensor)
	return int64(C.compute_tensor_element_count(tensor.handle))
}

func (tensor *Tensor) read(dst unsafe.Pointer) error {
	defer runtime.KeepAlive(tensor)
	return check(C.compute_tensor_read(tensor.handle, dst, C.compute_tensor_size_bytes(tensor.handle)))
}

func (tensor *Tensor) write(src unsafe.Pointer) error {
	defer runtime.KeepAlive(tensor)
	return check(C.compute_tensor_write(tensor.handle, src, C.compute_tensor_size_bytes(tensor.handle)))
}

// To returns a copy on a device, or the same elements if they are there already.
func (tensor *Tensor) To(device *Device) (*Tensor, error) {
	defer runtime.KeepAlive(tensor)
	defer runtime.KeepAlive(device)
	var handle *C.compute_tensor
	err := C.compute_tensor_to_device(tensor.handle, device.handle, &handle)
	return wrap(handle, err)
}

// Reshape returns a view of another shape. One extent may be -1.
func (tensor *Tensor) Reshape(shape ...int64) (*Tensor, error) {
	defer runtime.KeepAlive(tensor)
	rank, first := extents(shape)
	var handle *C.compute_tensor
	err := C.compute_tensor_reshape(tensor.handle, rank, first, &handle)
	return wrap(handle, err)
}

// Permute returns a view with the axes in another order.
func (tensor *Tensor) Permute(axes ...int32) (*Tensor, error) {
	defer runtime.KeepAlive(tensor)
	var first *C.int32_t
	if len(axes) > 0 {
		first = (*C.int32_t)(&axes[0])
	}
	var handle *C.compute_tensor
	err := C.compute_tensor_permute(tensor.handle, C.int32_t(len(axes)), first, &handle)
	return wrap(handle, err)
}
