// SPDX-License-Identifier: Apache-2.0
// The functions of cuBLASLt that this plugin calls: its own declarations, which a test compares with cublasLt.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plugins/cuda/driver_api.hpp"

namespace compute::cuda {

using cublasStatus = int32_t;
using cublasLtHandle = struct cublasLtContext*;

struct cublasLtMatrixLayoutOpaque {
  uint64_t data[8];
};
struct cublasLtMatmulDescOpaque {
  uint64_t data[32];
};
struct cublasLtMatmulPreferenceOpaque {
  uint64_t data[8];
};
struct cublasLtMatmulAlgo {
  uint64_t data[8];
};
struct cublasLtMatmulHeuristicResult {
  cublasLtMatmulAlgo algo;
  size_t workspaceSize;
  cublasStatus state;
  float wavesCount;
  int reserved[4];
};

using cublasLtMatrixLayout = cublasLtMatrixLayoutOpaque*;
using cublasLtMatmulDesc = cublasLtMatmulDescOpaque*;
using cublasLtMatmulPreference = cublasLtMatmulPreferenceOpaque*;

#define COMPUTE_CUBLASLT_CONSTANTS(CONSTANT)               \
  CONSTANT(CUBLAS_STATUS_SUCCESS, 0)                       \
  CONSTANT(CUBLAS_STATUS_ALLOC_FAILED, 3)                  \
  CONSTANT(CUBLAS_STATUS_INVALID_VALUE, 7)                 \
  CONSTANT(CUBLAS_STATUS_NOT_SUPPORTED, 15)                \
  CONSTANT(CUBLAS_OP_N, 0)                                 \
  CONSTANT(CUBLAS_OP_T, 1)                                 \
  CONSTANT(CUBLAS_COMPUTE_32F, 68)                         \
  CONSTANT(CUBLAS_COMPUTE_32F_FAST_16BF, 75)               \
  CONSTANT(CUBLAS_COMPUTE_32F_FAST_TF32, 77)               \
  CONSTANT(CUBLAS_COMPUTE_64F, 70)                         \
  CONSTANT(CUDA_R_32F, 0)                                  \
  CONSTANT(CUDA_R_64F, 1)                                  \
  CONSTANT(CUDA_R_16F, 2)                                  \
  CONSTANT(CUDA_C_32F, 4)                                  \
  CONSTANT(CUDA_C_64F, 5)                                  \
  CONSTANT(CUDA_R_16BF, 14)                                \
  CONSTANT(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 5)          \
  CONSTANT(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, 6) \
  CONSTANT(CUBLASLT_MATMUL_DESC_TRANSA, 3)                 \
  CONSTANT(CUBLASLT_MATMUL_DESC_TRANSB, 4)                 \
  CONSTANT(CUBLASLT_MATMUL_DESC_EPILOGUE, 7)               \
  CONSTANT(CUBLASLT_MATMUL_DESC_BIAS_POINTER, 8)           \
  CONSTANT(CUBLASLT_EPILOGUE_BIAS, 4)                      \
  CONSTANT(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 1)    \
  CONSTANT(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, 3)  \
  CONSTANT(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, 5)  \
  CONSTANT(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, 6)  \
  CONSTANT(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, 7)  \
  CONSTANT(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, 8)  \
  CONSTANT(CUBLASLT_REDUCTION_SCHEME_INPLACE, 1)           \
  CONSTANT(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, 2)

enum : int32_t {
#define COMPUTE_CUBLASLT_CONSTANT(name, value) name = value,
  COMPUTE_CUBLASLT_CONSTANTS(COMPUTE_CUBLASLT_CONSTANT)
#undef COMPUTE_CUBLASLT_CONSTANT
};

// FUNCTION(member of CublasLtApi, exported symbol, result, parameters)
#define COMPUTE_CUBLASLT_FUNCTIONS(FUNCTION)                                                                       \
  FUNCTION(get_version, cublasLtGetVersion, size_t, ())                                                            \
  FUNCTION(get_status_string, cublasLtGetStatusString, const char*, (cublasStatus status))                         \
  FUNCTION(create, cublasLtCreate, cublasStatus, (cublasLtHandle * handle))                                        \
  FUNCTION(destroy, cublasLtDestroy, cublasStatus, (cublasLtHandle handle))                                        \
  FUNCTION(matrix_layout_create, cublasLtMatrixLayoutCreate, cublasStatus,                                         \
           (cublasLtMatrixLayout * layout, int32_t type, uint64_t rows, uint64_t columns, int64_t leading))        \
  FUNCTION(matrix_layout_destroy, cublasLtMatrixLayoutDestroy, cublasStatus, (cublasLtMatrixLayout layout))        \
  FUNCTION(matrix_layout_set_attribute, cublasLtMatrixLayoutSetAttribute, cublasStatus,                            \
           (cublasLtMatrixLayout layout, int32_t attribute, const void* value, size_t size))                       \
  FUNCTION(matmul_desc_create, cublasLtMatmulDescCreate, cublasStatus,                                             \
           (cublasLtMatmulDesc * description, int32_t compute_type, int32_t scale_type))                           \
  FUNCTION(matmul_desc_destroy, cublasLtMatmulDescDestroy, cublasStatus, (cublasLtMatmulDesc description))         \
  FUNCTION(matmul_desc_set_attribute, cublasLtMatmulDescSetAttribute, cublasStatus,                                \
           (cublasLtMatmulDesc description, int32_t attribute, const void* value, size_t size))                    \
  FUNCTION(matmul_preference_create, cublasLtMatmulPreferenceCreate, cublasStatus,                                 \
           (cublasLtMatmulPreference * preference))                                                                \
  FUNCTION(matmul_preference_destroy, cublasLtMatmulPreferenceDestroy, cublasStatus,                               \
           (cublasLtMatmulPreference preference))                                                                  \
  FUNCTION(matmul_preference_set_attribute, cublasLtMatmulPreferenceSetAttribute, cublasStatus,                    \
           (cublasLtMatmulPreference preference, int32_t attribute, const void* value, size_t size))               \
  FUNCTION(matmul_algo_get_heuristic, cublasLtMatmulAlgoGetHeuristic, cublasStatus,                                \
           (cublasLtHandle handle, cublasLtMatmulDesc description, cublasLtMatrixLayout a, cublasLtMatrixLayout b, \
            cublasLtMatrixLayout c, cublasLtMatrixLayout d, cublasLtMatmulPreference preference, int wanted,       \
            cublasLtMatmulHeuristicResult* results, int* found))                                                   \
  FUNCTION(matmul, cublasLtMatmul, cublasStatus,                                                                   \
           (cublasLtHandle handle, cublasLtMatmulDesc description, const void* alpha, const void* a,               \
            cublasLtMatrixLayout a_layout, const void* b, cublasLtMatrixLayout b_layout, const void* beta,         \
            const void* c, cublasLtMatrixLayout c_layout, void* d, cublasLtMatrixLayout d_layout,                  \
            const cublasLtMatmulAlgo* algo, void* workspace, size_t workspace_bytes, CUstream stream))

struct CublasLtApi {
#define COMPUTE_CUBLASLT_MEMBER(member, symbol, result, parameters) result(*member) parameters;
  COMPUTE_CUBLASLT_FUNCTIONS(COMPUTE_CUBLASLT_MEMBER)
#undef COMPUTE_CUBLASLT_MEMBER
};

}  // namespace compute::cuda
