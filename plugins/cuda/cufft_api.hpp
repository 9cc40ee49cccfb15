// SPDX-License-Identifier: Apache-2.0
// The functions of cuFFT that this plugin calls: its own declarations, which a test compares with cufftXt.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plugins/cuda/driver_api.hpp"

namespace compute::cuda {

using cufftStatus = int32_t;
using cufftHandle = int;

#define COMPUTE_CUFFT_CONSTANTS(CONSTANT) \
  CONSTANT(CUFFT_SUCCESS, 0)              \
  CONSTANT(CUFFT_ALLOC_FAILED, 2)         \
  CONSTANT(CUFFT_INTERNAL_ERROR, 5)       \
  CONSTANT(CUFFT_INVALID_SIZE, 8)

enum : int32_t {
#define COMPUTE_CUFFT_CONSTANT(name, value) name = value,
  COMPUTE_CUFFT_CONSTANTS(COMPUTE_CUFFT_CONSTANT)
#undef COMPUTE_CUFFT_CONSTANT
};

// FUNCTION(member of CufftApi, exported symbol, result, parameters). Types of data are those of cuBLASLt's layouts,
// CUDA_R_32F and so on.
#define COMPUTE_CUFFT_FUNCTIONS(FUNCTION)                                                                         \
  FUNCTION(get_version, cufftGetVersion, cufftStatus, (int* version))                                             \
  FUNCTION(create, cufftCreate, cufftStatus, (cufftHandle * plan))                                                \
  FUNCTION(destroy, cufftDestroy, cufftStatus, (cufftHandle plan))                                                \
  FUNCTION(set_auto_allocation, cufftSetAutoAllocation, cufftStatus, (cufftHandle plan, int allocates))           \
  FUNCTION(set_work_area, cufftSetWorkArea, cufftStatus, (cufftHandle plan, void* area))                          \
  FUNCTION(set_stream, cufftSetStream, cufftStatus, (cufftHandle plan, CUstream stream))                          \
  FUNCTION(make_plan_many, cufftXtMakePlanMany, cufftStatus,                                                      \
           (cufftHandle plan, int rank, long long* n, long long* src_embed, long long src_stride,                 \
            long long src_distance, int32_t src_type, long long* dst_embed, long long dst_stride,                 \
            long long dst_distance, int32_t dst_type, long long batch, size_t* work_bytes, int32_t compute_type)) \
  FUNCTION(execute, cufftXtExec, cufftStatus, (cufftHandle plan, void* src, void* dst, int direction))

struct CufftApi {
#define COMPUTE_CUFFT_MEMBER(member, symbol, result, parameters) result(*member) parameters;
  COMPUTE_CUFFT_FUNCTIONS(COMPUTE_CUFFT_MEMBER)
#undef COMPUTE_CUFFT_MEMBER
};

}  // namespace compute::cuda
