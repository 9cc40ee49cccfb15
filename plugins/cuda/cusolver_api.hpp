// SPDX-License-Identifier: Apache-2.0
// The functions of cuSOLVER that this plugin calls: its own declarations, which a test compares with cusolverDn.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plugins/cuda/driver_api.hpp"

namespace compute::cuda {

using cusolverStatus = int32_t;
using cusolverDnHandle = struct cusolverDnContext*;
using cusolverDnParams = struct cusolverDnParamsOpaque*;
using cusolverDnJacobi = struct syevjInfo*;
using cusolverDnJacobiSvd = struct gesvdjInfo*;

#define COMPUTE_CUSOLVER_CONSTANTS(CONSTANT) \
  CONSTANT(CUSOLVER_STATUS_SUCCESS, 0)       \
  CONSTANT(CUSOLVER_STATUS_ALLOC_FAILED, 2)  \
  CONSTANT(CUSOLVER_EIG_MODE_NOVECTOR, 0)    \
  CONSTANT(CUSOLVER_EIG_MODE_VECTOR, 1)

enum : int32_t {
#define COMPUTE_CUSOLVER_CONSTANT(name, value) name = value,
  COMPUTE_CUSOLVER_CONSTANTS(COMPUTE_CUSOLVER_CONSTANT)
#undef COMPUTE_CUSOLVER_CONSTANT
};

// Of cublas_api.h.
constexpr int32_t kFillLower = 0, kFillUpper = 1;

// orgqr and ungqr, which have no form for all types.
#define COMPUTE_CUSOLVER_ORGQR(FUNCTION, member, symbol, Element)                                                    \
  FUNCTION(member##_buffer_size, symbol##_bufferSize, cusolverStatus,                                                \
           (cusolverDnHandle handle, int m, int n, int k, const Element* a, int lda, const Element* tau, int* size)) \
  FUNCTION(member, symbol, cusolverStatus,                                                                           \
           (cusolverDnHandle handle, int m, int n, int k, Element* a, int lda, const Element* tau, Element* work,    \
            int size, int* info))

// By Jacobi's method, of matrices of up to 32 rows and columns: eigenvalues and singular values, which have no form for
// all types.
#define COMPUTE_CUSOLVER_JACOBI(FUNCTION, letter, symbols, svd_symbol, Element, Real)                                \
  FUNCTION(letter##_eigh_buffer_size, symbols##evjBatched_bufferSize, cusolverStatus,                                \
           (cusolverDnHandle handle, int32_t mode, int32_t uplo, int n, const Element* a, int lda, const Real* w,    \
            int* size, cusolverDnJacobi params, int batch))                                                          \
  FUNCTION(letter##_eigh, symbols##evjBatched, cusolverStatus,                                                       \
           (cusolverDnHandle handle, int32_t mode, int32_t uplo, int n, Element* a, int lda, Real* w, Element* work, \
            int size, int* info, cusolverDnJacobi params, int batch))                                                \
  FUNCTION(letter##_svd_buffer_size, svd_symbol##_bufferSize, cusolverStatus,                                        \
           (cusolverDnHandle handle, int32_t mode, int m, int n, const Element* a, int lda, const Real* s,           \
            const Element* u, int ldu, const Element* v, int ldv, int* size, cusolverDnJacobiSvd params, int batch)) \
  FUNCTION(letter##_svd, svd_symbol, cusolverStatus,                                                                 \
           (cusolverDnHandle handle, int32_t mode, int m, int n, Element* a, int lda, Real* s, Element* u, int ldu,  \
            Element* v, int ldv, Element* work, int size, int* info, cusolverDnJacobiSvd params, int batch))

// FUNCTION(member of CusolverApi, exported symbol, result, parameters). Types of data are those of cuBLASLt's layouts,
// CUDA_R_32F and so on. Matrices are column-major.
#define COMPUTE_CUSOLVER_FUNCTIONS(FUNCTION)                                                                           \
  FUNCTION(get_version, cusolverGetVersion, cusolverStatus, (int* version))                                            \
  FUNCTION(create, cusolverDnCreate, cusolverStatus, (cusolverDnHandle * handle))                                      \
  FUNCTION(destroy, cusolverDnDestroy, cusolverStatus, (cusolverDnHandle handle))                                      \
  FUNCTION(set_stream, cusolverDnSetStream, cusolverStatus, (cusolverDnHandle handle, CUstream stream))                \
  FUNCTION(create_params, cusolverDnCreateParams, cusolverStatus, (cusolverDnParams * params))                         \
  FUNCTION(destroy_params, cusolverDnDestroyParams, cusolverStatus, (cusolverDnParams params))                         \
  FUNCTION(potrf_buffer_size, cusolverDnXpotrf_bufferSize, cusolverStatus,                                             \
           (cusolverDnHandle handle, cusolverDnParams params, int32_t uplo, int64_t n, int32_t type, const void* a,    \
            int64_t lda, int32_t compute, size_t* device_bytes, size_t* host_bytes))                                   \
  FUNCTION(                                                                                                            \
      potrf, cusolverDnXpotrf, cusolverStatus,                                                                         \
      (cusolverDnHandle handle, cusolverDnParams params, int32_t uplo, int64_t n, int32_t type, void* a, int64_t lda,  \
       int32_t compute, void* device, size_t device_bytes, void* host, size_t host_bytes, int* info))                  \
  FUNCTION(getrf_buffer_size, cusolverDnXgetrf_bufferSize, cusolverStatus,                                             \
           (cusolverDnHandle handle, cusolverDnParams params, int64_t m, int64_t n, int32_t type, const void* a,       \
            int64_t lda, int32_t compute, size_t* device_bytes, size_t* host_bytes))                                   \
  FUNCTION(                                                                                                            \
      getrf, cusolverDnXgetrf, cusolverStatus,                                                                         \
      (cusolverDnHandle handle, cusolverDnParams params, int64_t m, int64_t n, int32_t type, void* a, int64_t lda,     \
       int64_t* pivots, int32_t compute, void* device, size_t device_bytes, void* host, size_t host_bytes, int* info)) \
  FUNCTION(getrs, cusolverDnXgetrs, cusolverStatus,                                                                    \
           (cusolverDnHandle handle, cusolverDnParams params, int32_t trans, int64_t n, int64_t count, int32_t type_a, \
            const void* a, int64_t lda, const int64_t* pivots, int32_t type_b, void* b, int64_t ldb, int* info))       \
  FUNCTION(                                                                                                            \
      geqrf_buffer_size, cusolverDnXgeqrf_bufferSize, cusolverStatus,                                                  \
      (cusolverDnHandle handle, cusolverDnParams params, int64_t m, int64_t n, int32_t type, const void* a,            \
       int64_t lda, int32_t type_tau, const void* tau, int32_t compute, size_t* device_bytes, size_t* host_bytes))     \
  FUNCTION(geqrf, cusolverDnXgeqrf, cusolverStatus,                                                                    \
           (cusolverDnHandle handle, cusolverDnParams params, int64_t m, int64_t n, int32_t type, void* a,             \
            int64_t lda, int32_t type_tau, void* tau, int32_t compute, void* device, size_t device_bytes, void* host,  \
            size_t host_bytes, int* info))                                                                             \
  COMPUTE_CUSOLVER_ORGQR(FUNCTION, sorgqr, cusolverDnSorgqr, float)                                                    \
  COMPUTE_CUSOLVER_ORGQR(FUNCTION, dorgqr, cusolverDnDorgqr, double)                                                   \
  COMPUTE_CUSOLVER_ORGQR(FUNCTION, cungqr, cusolverDnCungqr, void)                                                     \
  COMPUTE_CUSOLVER_ORGQR(FUNCTION, zungqr, cusolverDnZungqr, void)                                                     \
  FUNCTION(syevd_buffer_size, cusolverDnXsyevd_bufferSize, cusolverStatus,                                             \
           (cusolverDnHandle handle, cusolverDnParams params, int32_t mode, int32_t uplo, int64_t n, int32_t type,     \
            const void* a, int64_t lda, int32_t type_w, const void* w, int32_t compute, size_t* device_bytes,          \
            size_t* host_bytes))                                                                                       \
  FUNCTION(syevd, cusolverDnXsyevd, cusolverStatus,                                                                    \
           (cusolverDnHandle handle, cusolverDnParams params, int32_t mode, int32_t uplo, int64_t n, int32_t type,     \
            void* a, int64_t lda, int32_t type_w, void* w, int32_t compute, void* device, size_t device_bytes,         \
            void* host, size_t host_bytes, int* info))                                                                 \
  FUNCTION(gesvd_buffer_size, cusolverDnXgesvd_bufferSize, cusolverStatus,                                             \
           (cusolverDnHandle handle, cusolverDnParams params, signed char jobu, signed char jobvt, int64_t m,          \
            int64_t n, int32_t type, const void* a, int64_t lda, int32_t type_s, const void* s, int32_t type_u,        \
            const void* u, int64_t ldu, int32_t type_vt, const void* vt, int64_t ldvt, int32_t compute,                \
            size_t* device_bytes, size_t* host_bytes))                                                                 \
  FUNCTION(gesvd, cusolverDnXgesvd, cusolverStatus,                                                                    \
           (cusolverDnHandle handle, cusolverDnParams params, signed char jobu, signed char jobvt, int64_t m,          \
            int64_t n, int32_t type, void* a, int64_t lda, int32_t type_s, void* s, int32_t type_u, void* u,           \
            int64_t ldu, int32_t type_vt, void* vt, int64_t ldvt, int32_t compute, void* device, size_t device_bytes,  \
            void* host, size_t host_bytes, int* info))                                                                 \
  FUNCTION(gesvdp_buffer_size, cusolverDnXgesvdp_bufferSize, cusolverStatus,                                           \
           (cusolverDnHandle handle, cusolverDnParams params, int32_t mode, int reduced, int64_t m, int64_t n,         \
            int32_t type, const void* a, int64_t lda, int32_t type_s, const void* s, int32_t type_u, const void* u,    \
            int64_t ldu, int32_t type_v, const void* v, int64_t ldv, int32_t compute, size_t* device_bytes,            \
            size_t* host_bytes))                                                                                       \
  FUNCTION(gesvdp, cusolverDnXgesvdp, cusolverStatus,                                                                  \
           (cusolverDnHandle handle, cusolverDnParams params, int32_t mode, int reduced, int64_t m, int64_t n,         \
            int32_t type, void* a, int64_t lda, int32_t type_s, void* s, int32_t type_u, void* u, int64_t ldu,         \
            int32_t type_v, void* v, int64_t ldv, int32_t compute, void* device, size_t device_bytes, void* host,      \
            size_t host_bytes, int* info, double* perturbation))                                                       \
  FUNCTION(create_jacobi, cusolverDnCreateSyevjInfo, cusolverStatus, (cusolverDnJacobi * params))                      \
  FUNCTION(destroy_jacobi, cusolverDnDestroySyevjInfo, cusolverStatus, (cusolverDnJacobi params))                      \
  FUNCTION(create_jacobi_svd, cusolverDnCreateGesvdjInfo, cusolverStatus, (cusolverDnJacobiSvd * params))              \
  FUNCTION(destroy_jacobi_svd, cusolverDnDestroyGesvdjInfo, cusolverStatus, (cusolverDnJacobiSvd params))              \
  COMPUTE_CUSOLVER_JACOBI(FUNCTION, s, cusolverDnSsy, cusolverDnSgesvdjBatched, float, float)                          \
  COMPUTE_CUSOLVER_JACOBI(FUNCTION, d, cusolverDnDsy, cusolverDnDgesvdjBatched, double, double)                        \
  COMPUTE_CUSOLVER_JACOBI(FUNCTION, c, cusolverDnChe, cusolverDnCgesvdjBatched, void, float)                           \
  COMPUTE_CUSOLVER_JACOBI(FUNCTION, z, cusolverDnZhe, cusolverDnZgesvdjBatched, void, double)

// The same for functions that only newer versions have; NULL if missing.
#define COMPUTE_CUSOLVER_NEWER_FUNCTIONS(FUNCTION)                                                                 \
  FUNCTION(syev_batched_buffer_size, cusolverDnXsyevBatched_bufferSize, cusolverStatus,                            \
           (cusolverDnHandle handle, cusolverDnParams params, int32_t mode, int32_t uplo, int64_t n, int32_t type, \
            const void* a, int64_t lda, int32_t type_w, const void* w, int32_t compute, size_t* device_bytes,      \
            size_t* host_bytes, int64_t batch))                                                                    \
  FUNCTION(syev_batched, cusolverDnXsyevBatched, cusolverStatus,                                                   \
           (cusolverDnHandle handle, cusolverDnParams params, int32_t mode, int32_t uplo, int64_t n, int32_t type, \
            void* a, int64_t lda, int32_t type_w, void* w, int32_t compute, void* device, size_t device_bytes,     \
            void* host, size_t host_bytes, int* info, int64_t batch))

struct CusolverApi {
#define COMPUTE_CUSOLVER_MEMBER(member, symbol, result, parameters) result(*member) parameters;
  COMPUTE_CUSOLVER_FUNCTIONS(COMPUTE_CUSOLVER_MEMBER)
  COMPUTE_CUSOLVER_NEWER_FUNCTIONS(COMPUTE_CUSOLVER_MEMBER)
#undef COMPUTE_CUSOLVER_MEMBER
};

}  // namespace compute::cuda
