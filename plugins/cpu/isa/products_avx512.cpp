// SPDX-License-Identifier: Apache-2.0
// The packed product for x86-64-v4 processors. Compiled with -march=x86-64-v4; includes no shared inline code.
#define COMPUTE_GEMM_NAMESPACE avx512
#define COMPUTE_GEMM_VECTOR_BYTES 64
#define COMPUTE_GEMM_ROWS 8
#define COMPUTE_GEMM_VECTORS 3
#define COMPUTE_GEMM_COMPLEX_ROWS 6
#define COMPUTE_GEMM_COMPLEX_VECTORS 2
#define COMPUTE_GEMM_DEPTH_BYTES 2560
#define COMPUTE_GEMM_PANEL_BYTES (28 << 10)
#define COMPUTE_GEMM_BLOCK_BYTES (512 << 10)
#define COMPUTE_GEMM_IN_PLACE_BYTES (128 << 10)
#include "plugins/cpu/kernels/gemm_kernel.inc"
