// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"log"

	"compute"
)

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func print(label string, digits int, tensor *compute.Tensor) {
	fmt.Print(label, ":")
	for _, value := range must(compute.Values[float32](tensor)) { // waits and copies
		fmt.Printf(" %.*f", digits, value)
	}
	fmt.Println()
}

func main() {
	device := must(compute.Open("")) // COMPUTE_DEVICE, or the best device
	fmt.Println("device:", device.Name())
	a := must(compute.FromSlice(device, []float32{1, 2, 3, 4, 5, 6}, 2, 3))
	b := must(compute.FromSlice(device, []float32{1, 2, 3, 4, 5, 6}, 3, 2))
	product := must(compute.Matmul(a, b))
	scaled := must(compute.Multiply(product, must(compute.Scalar(0.01))))
	print("product", 0, product)
	print("tanh", 4, must(compute.Tanh(scaled)))
	var failure *compute.Error
	if _, err := compute.Matmul(a, a); errors.As(err, &failure) {
		fmt.Printf("error: %v: %v\n", failure.Code, err)
	}
}
