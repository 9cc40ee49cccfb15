// SPDX-License-Identifier: Apache-2.0
// Sums of shifted rows, and products of recurrent layers, for x86-64-v4 processors. Compiled with -march=x86-64-v4;
// includes no shared inline code.
#define COMPUTE_WINDOW_NAMESPACE avx512
#define COMPUTE_WINDOW_VECTOR_BYTES 64
#include "plugins/cpu/kernels/window_kernel.inc"

#define COMPUTE_RECURRENT_NAMESPACE avx512
#define COMPUTE_RECURRENT_VECTOR_BYTES 64
#define COMPUTE_RECURRENT_SUMS 24
#include "plugins/cpu/kernels/recurrent_kernel.inc"
