// SPDX-License-Identifier: Apache-2.0
// Sums of shifted rows for every processor of the architecture: 16-byte vectors (SSE2, NEON).
#define COMPUTE_WINDOW_NAMESPACE baseline
#define COMPUTE_WINDOW_VECTOR_BYTES 16
#include "plugins/cpu/kernels/window_kernel.inc"
