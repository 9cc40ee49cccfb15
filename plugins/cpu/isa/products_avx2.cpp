// SPDX-License-Identifier: Apache-2.0
// The packed product for x86-64-v3 processors. Compiled with -mavx2 -mfma -mf16c; includes no shared inline code.
#define COMPUTE_GEMM_NAMESPACE avx2
#define COMPUTE_GEMM_VECTOR_BYTES 32
#define COMPUTE_GEMM_ROWS 6
#define COMPUTE_GEMM_VECTORS 2
#define COMPUTE_GEMM_COMPLEX_ROWS 2
#define COMPUTE_GEMM_COMPLEX_VECTORS 2
#define COMPUTE_GEMM_DEPTH_BYTES 1536
#define COMPUTE_GEMM_PANEL_BYTES (24 << 10)
#define COMPUTE_GEMM_BLOCK_BYTES (192 << 10)
#define COMPUTE_GEMM_IN_PLACE_BYTES (64 << 10)
#include "plugins/cpu/kernels/gemm_kernel.inc"
