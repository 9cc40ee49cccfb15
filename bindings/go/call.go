// SPDX-License-Identifier: Apache-2.0

package compute

/*
#include <compute/compute.h>
#include <stdlib.h>
*/
import "C"

import (
	"runtime"
	"sync"
	"unsafe"
)

// A call of one op, with its operands and attributes. The functions of ops.go fill it. The first error is kept.
type call struct {
	op         opName
	tensors    []*Tensor // keeps the inputs alive
	attributes []attribute
	outputs    []*C.compute_tensor
	given      *Tensor // the output that the op writes into; nil: the op creates its outputs
	err        error
}

type attribute struct {
	name     string
	kind     C.int32_t
	integers []int64
	real     float64
	reals    []float64 // a list; nil: real
	text     string
}

type opName struct {
	name    string
	version C.int32_t
}

// Handles of ops are valid until the process ends: opName to *C.compute_op.
var ops sync.Map

func (op opName) find() (*C.compute_op, error) {
	if handle, ok := ops.Load(op); ok {
		return handle.(*C.compute_op), nil
	}
	name := C.CString(op.name)
	defer C.free(unsafe.Pointer(name))
	var handle *C.compute_op
	if err := check(C.compute_op_find(name, op.version, &handle)); err != nil {
		return nil, err
	}
	ops.Store(op, handle)
	return handle, nil
}

func newCall(name string, version C.int32_t) *call { return &call{op: opName{name, version}} }

func (call *call) input(tensors ...*Tensor)     { call.tensors = append(call.tensors, tensors...) }
func (call *call) optionalInput(tensor *Tensor) { call.tensors = append(call.tensors, tensor) }

// create makes the tensor that the op writes its result into.
func (call *call) create(device *Device, dtype DType, shape ...int64) {
	call.given, call.err = Empty(device, dtype, shape...)
}

func (call *call) add(a attribute) { call.attributes = append(call.attributes, a) }

func (call *call) requiredInteger(name string, value int64) {
	call.add(attribute{name: name, kind: C.COMPUTE_KIND_INT64, integers: []int64{value}})
}
func (call *call) requiredIntegers(name string, values []int64) {
	call.add(attribute{name: name, kind: C.COMPUTE_KIND_INT64, integers: values})
}
func (call *call) requiredString(name string, value string) {
	call.add(attribute{name: name, kind: C.COMPUTE_KIND_STRING, text: value})
}
func (call *call) requiredDtype(name string, value DType) {
	call.add(attribute{name: name, kind: C.COMPUTE_KIND_DTYPE, integers: []int64{int64(value)}})
}

// The zero value of an optional attribute means its default.
func (call *call) flag(name string, value bool) {
	if value {
		call.requiredInteger(name, 1)
	}
}
func (call *call) integer(name string, value int64) {
	if value != 0 {
		call.requiredInteger(name, value)
	}
}
func (call *call) integers(name string, values []int64) {
	if values != nil {
		call.requiredIntegers(name, values)
	}
}
func (call *call) reals(name string, values []float64) {
	if values != nil {
		call.add(attribute{name: name, kind: C.COMPUTE_KIND_FLOAT64, reals: values})
	}
}
func (call *call) real(name string, value float64) {
	if value != 0 {
		call.add(attribute{name: name, kind: C.COMPUTE_KIND_FLOAT64, real: value})
	}
}
func (call *call) number(name string, value Number) {
	if value.kind != 0 {
		call.add(attribute{name: name, kind: value.kind, integers: []int64{value.integer}, real: value.real})
	}
}
func (call *call) string(name string, value string) {
	if value != "" {
		call.requiredString(name, value)
	}
}
func (call *call) dtype(name string, value DType) {
	if value != 0 {
		call.requiredDtype(name, value)
	}
}

// An arena is memory of C, because memory of Go that is passed to C holds no pointers into Go.
type arena []unsafe.Pointer

func (arena *arena) allocate(size uintptr) unsafe.Pointer {
	address := C.calloc(1, C.size_t(size+1))
	*arena = append(*arena, address)
	return address
}

func (arena *arena) text(text string) (*C.char, C.int64_t) {
	address := C.CString(text)
	*arena = append(*arena, unsafe.Pointer(address))
	return address, C.int64_t(len(text))
}

func (arena arena) free() {
	for _, address := range arena {
		C.free(address)
	}
}

// fill writes the attribute in the form of compute.h.
func (a *attribute) fill(to *C.compute_attribute, arena *arena) {
	to.struct_size = C.sizeof_compute_attribute
	to.struct_type = C.COMPUTE_STRUCT_ATTRIBUTE
	to.name, to.name_size = arena.text(a.name)
	to.kind = a.kind
	to.count = 1
	switch a.kind {
	case C.COMPUTE_KIND_FLOAT64:
		reals := a.reals
		if reals == nil {
			reals = []float64{a.real}
		}
		to.count = C.int64_t(len(reals))
		to.values = arena.allocate(8 * uintptr(len(reals)))
		copy(unsafe.Slice((*float64)(to.values), len(reals)), reals)
	case C.COMPUTE_KIND_STRING:
		to.values = arena.allocate(C.sizeof_compute_string)
		text := (*C.compute_string)(to.values)
		text.data, text.size = arena.text(a.text)
	case C.COMPUTE_KIND_DTYPE:
		to.values = arena.allocate(4)
		*(*C.compute_dtype)(to.values) = C.compute_dtype(a.integers[0])
	default:
		to.count = C.int64_t(len(a.integers))
		to.values = arena.allocate(8 * uintptr(len(a.integers)))
		copy(unsafe.Slice((*int64)(to.values), len(a.integers)), a.integers)
	}
}

// run runs the op, which has `count` outputs.
func (call *call) run(count int) error {
	if call.err != nil {
		return call.err
	}
	op, err := call.op.find()
	if err != nil {
		return err
	}
	inputs := make([]*C.compute_tensor, len(call.tensors)+1)
	for i, tensor := range call.tensors {
		if tensor != nil {
			inputs[i] = tensor.handle
		}
	}
	var memory arena
	defer memory.free()
	var first *C.compute_attribute
	if count := len(call.attributes); count > 0 {
		first = (*C.compute_attribute)(memory.allocate(uintptr(count) * C.sizeof_compute_attribute))
		list := unsafe.Slice(first, count)
		for i := range list {
			call.attributes[i].fill(&list[i], &memory)
		}
	}
	call.outputs = make([]*C.compute_tensor, count)
	if call.given != nil {
		call.outputs[0] = call.given.handle
	}
	defer runtime.KeepAlive(call)
	return check(C.compute_op_run(op, nil, first, C.int64_t(len(call.attributes)), &inputs[0],
		C.int64_t(len(call.tensors)), &call.outputs[0], C.int64_t(count)))
}

// take returns an output that the op created.
func (call *call) take(i int) *Tensor { return owned(call.outputs[i]) }

// result runs an op with one output.
func (call *call) result() (*Tensor, error) {
	if err := call.run(1); err != nil {
		return nil, err
	}
	if call.given != nil {
		return call.given, nil
	}
	return call.take(0), nil
}
