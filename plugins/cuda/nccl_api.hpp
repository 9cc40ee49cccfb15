// SPDX-License-Identifier: Apache-2.0
// The functions of NCCL that this plugin calls: its own declarations of nccl.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plugins/cuda/driver_api.hpp"

namespace compute::cuda {

using ncclResult = int32_t;
using ncclComm = struct ncclCommunicator*;
struct ncclId {
  char bytes[128];
};

#define COMPUTE_NCCL_CONSTANTS(CONSTANT) \
  CONSTANT(ncclSuccess, 0)               \
  CONSTANT(ncclUnhandledCudaError, 1)    \
  CONSTANT(ncclInvalidUsage, 5)          \
  CONSTANT(ncclRemoteError, 6)           \
  CONSTANT(ncclInProgress, 7)            \
  CONSTANT(ncclInt8, 0)                  \
  CONSTANT(ncclUint8, 1)                 \
  CONSTANT(ncclInt32, 2)                 \
  CONSTANT(ncclUint32, 3)                \
  CONSTANT(ncclInt64, 4)                 \
  CONSTANT(ncclUint64, 5)                \
  CONSTANT(ncclFloat16, 6)               \
  CONSTANT(ncclFloat32, 7)               \
  CONSTANT(ncclFloat64, 8)               \
  CONSTANT(ncclBfloat16, 9)              \
  CONSTANT(ncclSum, 0)                   \
  CONSTANT(ncclProd, 1)                  \
  CONSTANT(ncclMax, 2)                   \
  CONSTANT(ncclMin, 3)                   \
  CONSTANT(ncclAvg, 4)

enum : int32_t {
#define COMPUTE_NCCL_CONSTANT(name, value) name = value,
  COMPUTE_NCCL_CONSTANTS(COMPUTE_NCCL_CONSTANT)
#undef COMPUTE_NCCL_CONSTANT
};

// FUNCTION(member of NcclApi, exported symbol, result, parameters).
#define COMPUTE_NCCL_FUNCTIONS(FUNCTION)                                                                         \
  FUNCTION(get_version, ncclGetVersion, ncclResult, (int* version))                                              \
  FUNCTION(get_unique_id, ncclGetUniqueId, ncclResult, (ncclId * id))                                            \
  FUNCTION(get_error_string, ncclGetErrorString, const char*, (ncclResult result))                               \
  FUNCTION(get_last_error, ncclGetLastError, const char*, (ncclComm comm))                                       \
  FUNCTION(comm_init_rank, ncclCommInitRank, ncclResult, (ncclComm * comm, int size, ncclId id, int rank))       \
  FUNCTION(comm_destroy, ncclCommDestroy, ncclResult, (ncclComm comm))                                           \
  FUNCTION(comm_abort, ncclCommAbort, ncclResult, (ncclComm comm))                                               \
  FUNCTION(comm_get_async_error, ncclCommGetAsyncError, ncclResult, (ncclComm comm, ncclResult * error))         \
  FUNCTION(all_reduce, ncclAllReduce, ncclResult,                                                                \
           (const void* src, void* dst, size_t count, int32_t type, int32_t op, ncclComm comm, CUstream stream)) \
  FUNCTION(reduce_scatter, ncclReduceScatter, ncclResult,                                                        \
           (const void* src, void* dst, size_t count, int32_t type, int32_t op, ncclComm comm, CUstream stream)) \
  FUNCTION(all_gather, ncclAllGather, ncclResult,                                                                \
           (const void* src, void* dst, size_t count, int32_t type, ncclComm comm, CUstream stream))             \
  FUNCTION(broadcast, ncclBroadcast, ncclResult,                                                                 \
           (const void* src, void* dst, size_t count, int32_t type, int root, ncclComm comm, CUstream stream))   \
  FUNCTION(send, ncclSend, ncclResult,                                                                           \
           (const void* src, size_t count, int32_t type, int peer, ncclComm comm, CUstream stream))              \
  FUNCTION(recv, ncclRecv, ncclResult,                                                                           \
           (void* dst, size_t count, int32_t type, int peer, ncclComm comm, CUstream stream))                    \
  FUNCTION(group_start, ncclGroupStart, ncclResult, ())                                                          \
  FUNCTION(group_end, ncclGroupEnd, ncclResult, ())

struct NcclApi {
#define COMPUTE_NCCL_MEMBER(member, symbol, result, parameters) result(*member) parameters;
  COMPUTE_NCCL_FUNCTIONS(COMPUTE_NCCL_MEMBER)
#undef COMPUTE_NCCL_MEMBER
};

}  // namespace compute::cuda
