// SPDX-License-Identifier: Apache-2.0
// Quantised weights for x86-64-v4 processors. Compiled with -march=x86-64-v4; includes no shared inline code.
#define COMPUTE_QUANTIZED_NAMESPACE avx512
#define COMPUTE_QUANTIZED_VECTOR_BYTES 64
#include "plugins/cpu/kernels/quantized_kernel.inc"
