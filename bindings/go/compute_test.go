// SPDX-License-Identifier: Apache-2.0

package compute

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"testing"
	"time"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func expect(t *testing.T, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, not %v", got, want)
	}
}

func cpu() *Device { return must(Open("cpu")) }

func TestValues(t *testing.T) {
	x := must(FromSlice(cpu(), []float32{1, 2, 3, 4, 5, 6}, 2, 3))
	expect(t, x.Shape(), []int64{2, 3})
	expect(t, fmt.Sprintf("%v %v", x.DType(), x.Device().Name()), "float32 cpu")
	y := must(Add(must(Multiply(x, must(Scalar(2)))), must(Scalar(1))))
	expect(t, must(Values[float32](y)), []float32{3, 5, 7, 9, 11, 13})
	rows := must(Sum(x, SumOptions{Axes: []int64{-1}, Keepdims: true}))
	expect(t, rows.Shape(), []int64{2, 1})
	expect(t, must(Values[float32](rows)), []float32{6, 15})
	expect(t, must(Values[float32](must(Sum(x, SumOptions{})))), []float32{21})
	expect(t, must(Values[bool](must(Greater(x, must(Scalar(3)))))), []bool{false, false, false, true, true, true})
	if err := Write(x, make([]float32, 6)); err != nil {
		t.Error(err)
	}
	expect(t, must(Values[float32](x)), make([]float32, 6))
	empty := must(FromSlice(cpu(), []float64{}, 0, 3))
	expect(t, must(Values[float64](empty)), []float64{})
}

func TestAttributes(t *testing.T) {
	x := must(Arange(cpu(), 6, Float32, ArangeOptions{Start: Integer(1), Step: Float(0.5)}))
	expect(t, must(Values[float32](x)), []float32{1, 1.5, 2, 2.5, 3, 3.5})
	values, indices, err := TopK(x, 2, TopKOptions{Largest: Integer(0)})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, must(Values[float32](values)), []float32{1, 1.5})
	expect(t, must(Values[int64](indices)), []int64{0, 1})
	expect(t, must(Concat([]*Tensor{x, x}, ConcatOptions{})).Shape(), []int64{12})
	table := must(x.Reshape(2, -1))
	transposed := must(Einsum([]*Tensor{table}, "ij->ji"))
	expect(t, must(Values[float32](transposed)), must(Values[float32](must(table.Permute(1, 0)))))
	expect(t, must(Values[int32](must(Cast(x, Int32)))), []int32{1, 1, 2, 2, 3, 3})
	y, _, _, err := LayerNorm(x, nil, nil, LayerNormOptions{})
	expect(t, err, nil)
	expect(t, y.Shape(), []int64{6})
}

func TestErrors(t *testing.T) {
	x, y := must(FromSlice(cpu(), []float32{1, 2}, 2)), must(FromSlice(cpu(), []float32{1, 2, 3}, 3))
	_, err := Add(x, y)
	expect(t, err.Error(), "add: shapes [2] and [3] do not broadcast")
	expect(t, errors.Is(err, InvalidArgument), true)
	expect(t, errors.Is(err, NotFound), false)
	var detail *Error
	expect(t, errors.As(err, &detail), true)
	expect(t, detail.Op+" "+detail.Code.Error(), "add INVALID_ARGUMENT")
	_, err = Open("cpu7")
	expect(t, errors.Is(err, NotFound), true)
	_, err = Values[float64](x)
	expect(t, err.Error(), "Values: the tensor is float32, not float64; cast it first")
	_, err = FromSlice(cpu(), []float32{1}, 2)
	expect(t, errors.Is(err, InvalidArgument), true)
	_, err = Arange(cpu(), -1, Float32, ArangeOptions{})
	expect(t, errors.Is(err, InvalidArgument), true)
	x.Close()
	_, err = Exp(x)
	expect(t, errors.Is(err, InvalidArgument), true)
}

func TestMemoryIsReleased(t *testing.T) {
	device := cpu()
	collect := func() { // until nothing is left that earlier tests made
		for end := time.Now().Add(time.Minute); must(device.Statistics()).BlocksLive > 0 && time.Now().Before(end); {
			runtime.GC()
			time.Sleep(time.Millisecond)
		}
	}
	collect()
	expect(t, must(device.Statistics()).MemoryUsed, int64(0))
	x := must(FromSlice(device, make([]float32, 1000), 1000))
	used := must(device.Statistics()).MemoryUsed
	if used < 4000 {
		t.Error("a tensor of 4000 bytes uses", used)
	}
	x.Close()
	expect(t, must(device.Statistics()).MemoryUsed, int64(0))
	for i := 0; i < 10; i++ {
		must(Exp(must(FromSlice(device, make([]float32, 1000), 1000))))
	}
	collect()
	expect(t, must(device.Statistics()).MemoryUsed, int64(0))
}

func TestAnotherDeviceGivesTheSame(t *testing.T) {
	names := must(Devices())
	expect(t, names[0], "cpu")
	x := must(FromSlice(cpu(), []float32{1, 2, 3, 4}, 2, 2))
	for _, name := range names[1:] {
		other, err := Open(name)
		if err != nil {
			continue
		}
		moved := must(x.To(other))
		expect(t, moved.Device().Name(), name)
		expect(t, must(Values[float32](must(Matmul(moved, moved)))), []float32{7, 10, 15, 22})
		return
	}
	t.Skip("there is one device")
}
