// SPDX-License-Identifier: Apache-2.0
// The functions of cuDNN's graph interface that this plugin calls: its own declarations, which a test compares with
// cudnn_graph.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plugins/cuda/driver_api.hpp"

namespace compute::cuda {

using cudnnStatus = int32_t;
using cudnnHandle = struct cudnnContext*;
using cudnnBackendDescriptor = void*;

#define COMPUTE_CUDNN_CONSTANTS(CONSTANT)                                      \
  CONSTANT(CUDNN_STATUS_SUCCESS, 0)                                            \
  CONSTANT(CUDNN_DATA_FLOAT, 0)                                                \
  CONSTANT(CUDNN_DATA_DOUBLE, 1)                                               \
  CONSTANT(CUDNN_DATA_HALF, 2)                                                 \
  CONSTANT(CUDNN_DATA_INT32, 4)                                                \
  CONSTANT(CUDNN_DATA_BFLOAT16, 9)                                             \
  CONSTANT(CUDNN_DATA_BOOLEAN, 11)                                             \
  CONSTANT(CUDNN_POINTWISE_ADD, 0)                                             \
  CONSTANT(CUDNN_POINTWISE_MUL, 1)                                             \
  CONSTANT(CUDNN_POINTWISE_DIV, 6)                                             \
  CONSTANT(CUDNN_POINTWISE_SUB, 9)                                             \
  CONSTANT(CUDNN_POINTWISE_EXP, 13)                                            \
  CONSTANT(CUDNN_POINTWISE_LOG, 15)                                            \
  CONSTANT(CUDNN_POINTWISE_IDENTITY, 21)                                       \
  CONSTANT(CUDNN_POINTWISE_CMP_GE, 303)                                        \
  CONSTANT(CUDNN_POINTWISE_GEN_INDEX, 501)                                     \
  CONSTANT(CUDNN_POINTWISE_BINARY_SELECT, 601)                                 \
  CONSTANT(CUDNN_REDUCE_TENSOR_ADD, 0)                                         \
  CONSTANT(CUDNN_REDUCE_TENSOR_MAX, 3)                                         \
  CONSTANT(CUDNN_CROSS_CORRELATION, 1)                                         \
  CONSTANT(CUDNN_HEUR_MODE_FALLBACK, 2)                                        \
  CONSTANT(CUDNN_HEUR_MODE_A, 3)                                               \
  CONSTANT(CUDNN_NUMERICAL_NOTE_TENSOR_CORE, 0)                                \
  CONSTANT(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, 4)                           \
  CONSTANT(CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP, 9)                            \
  CONSTANT(CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION, 0)                         \
  CONSTANT(CUDNN_TYPE_HANDLE, 0)                                               \
  CONSTANT(CUDNN_TYPE_DATA_TYPE, 1)                                            \
  CONSTANT(CUDNN_TYPE_BOOLEAN, 2)                                              \
  CONSTANT(CUDNN_TYPE_INT64, 3)                                                \
  CONSTANT(CUDNN_TYPE_FLOAT, 4)                                                \
  CONSTANT(CUDNN_TYPE_DOUBLE, 5)                                               \
  CONSTANT(CUDNN_TYPE_VOID_PTR, 6)                                             \
  CONSTANT(CUDNN_TYPE_CONVOLUTION_MODE, 7)                                     \
  CONSTANT(CUDNN_TYPE_HEUR_MODE, 8)                                            \
  CONSTANT(CUDNN_TYPE_NUMERICAL_NOTE, 11)                                      \
  CONSTANT(CUDNN_TYPE_POINTWISE_MODE, 14)                                      \
  CONSTANT(CUDNN_TYPE_BACKEND_DESCRIPTOR, 15)                                  \
  CONSTANT(CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 18)                             \
  CONSTANT(CUDNN_TYPE_BEHAVIOR_NOTE, 19)                                       \
  CONSTANT(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, 0)                              \
  CONSTANT(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, 1)                            \
  CONSTANT(CUDNN_BACKEND_ENGINE_DESCRIPTOR, 2)                                 \
  CONSTANT(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, 3)                              \
  CONSTANT(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, 4)                             \
  CONSTANT(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, 5)                         \
  CONSTANT(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, 10)         \
  CONSTANT(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, 11) \
  CONSTANT(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, 12)   \
  CONSTANT(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, 13)                   \
  CONSTANT(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, 15)                        \
  CONSTANT(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, 16)                          \
  CONSTANT(CUDNN_BACKEND_TENSOR_DESCRIPTOR, 17)                                \
  CONSTANT(CUDNN_BACKEND_MATMUL_DESCRIPTOR, 18)                                \
  CONSTANT(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, 19)                      \
  CONSTANT(CUDNN_BACKEND_REDUCTION_DESCRIPTOR, 21)                             \
  CONSTANT(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, 22)                   \
  CONSTANT(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, 31)                     \
  CONSTANT(CUDNN_ATTR_POINTWISE_MODE, 0)                                       \
  CONSTANT(CUDNN_ATTR_POINTWISE_MATH_PREC, 1)                                  \
  CONSTANT(CUDNN_ATTR_POINTWISE_AXIS, 9)                                       \
  CONSTANT(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, 100)                              \
  CONSTANT(CUDNN_ATTR_CONVOLUTION_CONV_MODE, 101)                              \
  CONSTANT(CUDNN_ATTR_CONVOLUTION_DILATIONS, 102)                              \
  CONSTANT(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, 103)                         \
  CONSTANT(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, 104)                          \
  CONSTANT(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, 105)                           \
  CONSTANT(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 106)                           \
  CONSTANT(CUDNN_ATTR_ENGINEHEUR_MODE, 200)                                    \
  CONSTANT(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, 201)                         \
  CONSTANT(CUDNN_ATTR_ENGINEHEUR_RESULTS, 202)                                 \
  CONSTANT(CUDNN_ATTR_ENGINECFG_ENGINE, 300)                                   \
  CONSTANT(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, 400)                              \
  CONSTANT(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, 401)                       \
  CONSTANT(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 402)                      \
  CONSTANT(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, 700)                \
  CONSTANT(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, 701)                 \
  CONSTANT(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, 702)            \
  CONSTANT(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, 703)                    \
  CONSTANT(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, 704)                    \
  CONSTANT(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, 705)                    \
  CONSTANT(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, 706)               \
  CONSTANT(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, 707)                \
  CONSTANT(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, 708)           \
  CONSTANT(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, 709)                   \
  CONSTANT(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, 710)                  \
  CONSTANT(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, 711)                  \
  CONSTANT(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, 712)             \
  CONSTANT(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, 713)              \
  CONSTANT(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, 714)         \
  CONSTANT(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, 715)                \
  CONSTANT(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, 716)                 \
  CONSTANT(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, 717)                \
  CONSTANT(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, 750)                  \
  CONSTANT(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, 751)                          \
  CONSTANT(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, 752)                          \
  CONSTANT(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, 753)                          \
  CONSTANT(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, 758)                          \
  CONSTANT(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, 800)                              \
  CONSTANT(CUDNN_ATTR_OPERATIONGRAPH_OPS, 801)                                 \
  CONSTANT(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 900)                              \
  CONSTANT(CUDNN_ATTR_TENSOR_DATA_TYPE, 901)                                   \
  CONSTANT(CUDNN_ATTR_TENSOR_DIMENSIONS, 902)                                  \
  CONSTANT(CUDNN_ATTR_TENSOR_STRIDES, 903)                                     \
  CONSTANT(CUDNN_ATTR_TENSOR_UNIQUE_ID, 906)                                   \
  CONSTANT(CUDNN_ATTR_TENSOR_IS_VIRTUAL, 907)                                  \
  CONSTANT(CUDNN_ATTR_TENSOR_IS_BY_VALUE, 908)                                 \
  CONSTANT(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, 1000)                           \
  CONSTANT(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, 1001)                        \
  CONSTANT(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, 1003)                            \
  CONSTANT(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, 1303)                             \
  CONSTANT(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, 1305)                              \
  CONSTANT(CUDNN_ATTR_MATMUL_COMP_TYPE, 1500)                                  \
  CONSTANT(CUDNN_ATTR_OPERATION_MATMUL_ADESC, 1520)                            \
  CONSTANT(CUDNN_ATTR_OPERATION_MATMUL_BDESC, 1521)                            \
  CONSTANT(CUDNN_ATTR_OPERATION_MATMUL_CDESC, 1522)                            \
  CONSTANT(CUDNN_ATTR_OPERATION_MATMUL_DESC, 1523)                             \
  CONSTANT(CUDNN_ATTR_REDUCTION_OPERATOR, 1600)                                \
  CONSTANT(CUDNN_ATTR_REDUCTION_COMP_TYPE, 1601)                               \
  CONSTANT(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, 1610)                         \
  CONSTANT(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, 1611)                         \
  CONSTANT(CUDNN_ATTR_OPERATION_REDUCTION_DESC, 1612)                          \
  CONSTANT(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, 2200)                           \
  CONSTANT(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, 2201)

enum : int32_t {
#define COMPUTE_CUDNN_CONSTANT(name, value) name = value,
  COMPUTE_CUDNN_CONSTANTS(COMPUTE_CUDNN_CONSTANT)
#undef COMPUTE_CUDNN_CONSTANT
};

// FUNCTION(member of CudnnApi, exported symbol, result, parameters)
#define COMPUTE_CUDNN_FUNCTIONS(FUNCTION)                                                                           \
  FUNCTION(get_version, cudnnGetVersion, size_t, ())                                                                \
  FUNCTION(get_error_string, cudnnGetErrorString, const char*, (cudnnStatus status))                                \
  FUNCTION(create, cudnnCreate, cudnnStatus, (cudnnHandle * handle))                                                \
  FUNCTION(destroy, cudnnDestroy, cudnnStatus, (cudnnHandle handle))                                                \
  FUNCTION(set_stream, cudnnSetStream, cudnnStatus, (cudnnHandle handle, CUstream stream))                          \
  FUNCTION(create_descriptor, cudnnBackendCreateDescriptor, cudnnStatus,                                            \
           (int32_t type, cudnnBackendDescriptor * descriptor))                                                     \
  FUNCTION(destroy_descriptor, cudnnBackendDestroyDescriptor, cudnnStatus, (cudnnBackendDescriptor))                \
  FUNCTION(finalize, cudnnBackendFinalize, cudnnStatus, (cudnnBackendDescriptor descriptor))                        \
  FUNCTION(set_attribute, cudnnBackendSetAttribute, cudnnStatus,                                                    \
           (cudnnBackendDescriptor descriptor, int32_t attribute, int32_t type, int64_t count, const void* values)) \
  FUNCTION(get_attribute, cudnnBackendGetAttribute, cudnnStatus,                                                    \
           (cudnnBackendDescriptor const descriptor, int32_t attribute, int32_t type, int64_t room, int64_t* count, \
            void* values))                                                                                          \
  FUNCTION(execute, cudnnBackendExecute, cudnnStatus,                                                               \
           (cudnnHandle handle, cudnnBackendDescriptor plan, cudnnBackendDescriptor variant_pack))

struct CudnnApi {
#define COMPUTE_CUDNN_MEMBER(member, symbol, result, parameters) result(*member) parameters;
  COMPUTE_CUDNN_FUNCTIONS(COMPUTE_CUDNN_MEMBER)
#undef COMPUTE_CUDNN_MEMBER
};

}  // namespace compute::cuda
