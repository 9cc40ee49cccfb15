// SPDX-License-Identifier: Apache-2.0
// Sums of shifted rows, and products of recurrent layers, for every processor of the architecture: 16-byte vectors
// (SSE2, NEON).
#define COMPUTE_WINDOW_NAMESPACE baseline
#define COMPUTE_WINDOW_VECTOR_BYTES 16
#include "plugins/cpu/kernels/window_kernel.inc"

#define COMPUTE_RECURRENT_NAMESPACE baseline
#define COMPUTE_RECURRENT_VECTOR_BYTES 16
#define COMPUTE_RECURRENT_SUMS 8
#include "plugins/cpu/kernels/recurrent_kernel.inc"
