// SPDX-License-Identifier: Apache-2.0
// Quantised weights for x86-64-v3 processors. Compiled with -march=x86-64-v3; includes no shared inline code.
#define COMPUTE_QUANTIZED_NAMESPACE avx2
#define COMPUTE_QUANTIZED_VECTOR_BYTES 32
#include "plugins/cpu/kernels/quantized_kernel.inc"
