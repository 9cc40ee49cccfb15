// SPDX-License-Identifier: Apache-2.0
// Sums of shifted rows for x86-64-v3 processors. Compiled with -mavx2 -mfma -mf16c; includes no shared inline code.
#define COMPUTE_WINDOW_NAMESPACE avx2
#define COMPUTE_WINDOW_VECTOR_BYTES 32
#include "plugins/cpu/kernels/window_kernel.inc"
