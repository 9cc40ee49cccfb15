// SPDX-License-Identifier: Apache-2.0
// Quantised weights for every processor of the architecture: 16-byte vectors (SSE2, NEON).
#define COMPUTE_QUANTIZED_NAMESPACE baseline
#define COMPUTE_QUANTIZED_VECTOR_BYTES 16
#include "plugins/cpu/kernels/quantized_kernel.inc"
