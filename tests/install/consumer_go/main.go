// SPDX-License-Identifier: Apache-2.0

// A program in Go through an installed library, without any C of its own: reductions over axes, expressions with
// numbers, and callbacks that Go exports.
package main

/*
#cgo pkg-config: compute
#include <compute/compute.h>

void goFinished(compute_borrowed_error error, void* user_data);
void goLog(compute_borrowed_log_record record, void* user_data);
void goPressure(compute_device* device, int64_t size_bytes, void* user_data);
*/
import "C"

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"
)

var (
	finished  = make(chan C.compute_error_code, 1)
	pressures int32
	logLock   sync.Mutex
	logLines  []string
)

//export goFinished
func goFinished(err C.compute_borrowed_error, userData unsafe.Pointer) {
	finished <- C.compute_error_get_code(err)
}

//export goLog
func goLog(record C.compute_borrowed_log_record, userData unsafe.Pointer) {
	logLock.Lock()
	defer logLock.Unlock()
	logLines = append(logLines, fmt.Sprintf("%d %s: %s", int(record.level), C.GoString(record.category), C.GoString(record.text)))
}

//export goPressure
func goPressure(device *C.compute_device, sizeBytes C.int64_t, userData unsafe.Pointer) {
	atomic.AddInt32(&pressures, 1)
}

func check(err *C.compute_error) {
	if err == nil {
		return
	}
	defer C.compute_error_free(err)
	fmt.Fprintln(os.Stderr, C.GoString(C.compute_error_message(err)))
	os.Exit(1)
}

func require(ok bool, what ...interface{}) {
	if !ok {
		fmt.Fprintln(os.Stderr, what...)
		os.Exit(1)
	}
}

func read(tensor *C.compute_tensor, count int) []float32 {
	values := make([]float32, count)
	check(C.compute_tensor_read(tensor, unsafe.Pointer(&values[0]), C.int64_t(4*count)))
	return values
}

func reductions(x *C.compute_tensor) {
	var options C.compute_sum_options
	options.struct_size = C.sizeof_compute_sum_options
	options.struct_type = C.COMPUTE_STRUCT_OP_OPTIONS
	options.axes_mask = 1 << 1
	var sums *C.compute_tensor
	check(C.compute_sum(nil, x, &options, &sums))
	require(fmt.Sprint(read(sums, 2)) == "[6 15]", "sum over axis 1:", read(sums, 2))
	C.compute_tensor_release(sums)

	names := []*C.char{C.CString("x")}
	var square *C.compute_expression
	text := C.CString("x * x * s")
	scalarNames := []*C.char{C.CString("s")}
	check(C.compute_expression_parse(text, &names[0], 1, &scalarNames[0], 1, &square))
	scalars := []C.compute_number{{kind: C.COMPUTE_KIND_FLOAT64, real: 0.5}}
	inputs := []*C.compute_tensor{x}
	outputs := []*C.compute_tensor{nil}
	check(C.compute_map(nil, square, &inputs[0], 1, &scalars[0], 1, &outputs[0], 1))
	require(read(outputs[0], 6)[5] == 18, "map:", read(outputs[0], 6))
	C.compute_tensor_release(outputs[0])

	var reduction C.compute_reduce_options
	reduction.struct_size = C.sizeof_compute_reduce_options
	reduction.axes_mask = 1
	var largest *C.compute_tensor
	check(C.compute_reduce(nil, square, C.COMPUTE_REDUCTION_MAX, &reduction, &inputs[0], 1, &scalars[0], 1, &largest))
	require(fmt.Sprint(read(largest, 3)) == "[8 12.5 18]", "reduce:", read(largest, 3))
	C.compute_tensor_release(largest)
	C.compute_expression_release(square)
}

func main() {
	check(C.compute_log_set_callback(C.compute_log_callback(C.goLog), nil))
	check(C.compute_memory_add_pressure_callback(C.compute_pressure_callback(C.goPressure), nil))
	var device *C.compute_device
	check(C.compute_device_open(C.CString("cpu+mem=1M"), &device))
	shape := []C.int64_t{2, 3}
	values := []float32{1, 2, 3, 4, 5, 6}
	var x *C.compute_tensor
	check(C.compute_tensor_from_host(device, C.COMPUTE_DTYPE_FLOAT32, 2, &shape[0], unsafe.Pointer(&values[0]), &x))
	reductions(x)

	var stream *C.compute_stream
	check(C.compute_stream_create(device, nil, &stream))
	check(C.compute_stream_notify(stream, C.compute_stream_callback(C.goFinished), nil))
	require(<-finished == C.COMPUTE_OK, "the notification has an error")
	C.compute_stream_release(stream)

	large := []C.int64_t{1 << 20}
	var none *C.compute_tensor
	err := C.compute_tensor_empty(device, C.COMPUTE_DTYPE_FLOAT32, 1, &large[0], &none)
	require(C.compute_error_get_code(err) == C.COMPUTE_ERROR_OUT_OF_MEMORY, "4 MiB of 1 MiB were allocated")
	C.compute_error_free(err)
	require(atomic.LoadInt32(&pressures) == 1, "the pressure callback was not called once:", pressures)
	check(C.compute_memory_remove_pressure_callback(C.compute_pressure_callback(C.goPressure), nil))
	check(C.compute_log_set_callback(nil, nil))
	require(strings.Contains(strings.Join(logLines, "\n"), "cpu"), "the log has no line about cpu:", logLines)
	C.compute_tensor_release(x)
	C.compute_device_release(device)
	fmt.Println("go: passed")
}
