// SPDX-License-Identifier: Apache-2.0
// The packed product for every processor of the architecture: 16-byte vectors (SSE2, NEON).
#define COMPUTE_GEMM_NAMESPACE baseline
#define COMPUTE_GEMM_VECTOR_BYTES 16
#if defined(__x86_64__)
#define COMPUTE_GEMM_ROWS 4
#define COMPUTE_GEMM_COMPLEX_ROWS 2
#else
#define COMPUTE_GEMM_ROWS 8
#define COMPUTE_GEMM_COMPLEX_ROWS 4
#endif
#define COMPUTE_GEMM_VECTORS 2
#define COMPUTE_GEMM_COMPLEX_VECTORS 1
#define COMPUTE_GEMM_DEPTH_BYTES 1536
#define COMPUTE_GEMM_PANEL_BYTES (12 << 10)
#define COMPUTE_GEMM_BLOCK_BYTES (128 << 10)
#define COMPUTE_GEMM_IN_PLACE_BYTES (64 << 10)
#include "plugins/cpu/kernels/gemm_kernel.inc"
