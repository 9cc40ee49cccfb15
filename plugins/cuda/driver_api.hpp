// SPDX-License-Identifier: Apache-2.0
// The functions of the CUDA driver that this plugin calls: its own declarations, so that no toolkit is needed to build
// it. If cuda.h is installed, a test compares them with it. Names of types and constants are NVIDIA's. All of it is
// part of the ABI since CUDA 12.0.
#pragma once

#include <cstddef>
#include <cstdint>

namespace compute::cuda {

using CUresult = int32_t;
using CUdevice = int32_t;
using CUdeviceptr = uint64_t;
using CUcontext = struct CUctx_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUkernel = struct CUkern_st*;
using CUgraph = struct CUgraph_st*;
using CUgraphNode = struct CUgraphNode_st*;
using CUgraphExec = struct CUgraphExec_st*;

struct CUuuid {
  char bytes[16];
};

struct CUDA_KERNEL_NODE_PARAMS {
  CUfunction func;
  unsigned gridDimX, gridDimY, gridDimZ;
  unsigned blockDimX, blockDimY, blockDimZ;
  unsigned sharedMemBytes;
  void** kernelParams;
  void** extra;
  CUkernel kern;
  CUcontext ctx;
};

struct CUlaunchAttribute {
  int32_t id;
  int32_t pad;
  union {
    int32_t programmaticStreamSerializationAllowed;
    uint64_t words[8];
  } value;
};

struct CUlaunchConfig {
  unsigned gridDimX, gridDimY, gridDimZ;
  unsigned blockDimX, blockDimY, blockDimZ;
  unsigned sharedMemBytes;
  CUstream hStream;
  CUlaunchAttribute* attrs;
  unsigned numAttrs;
};

struct CUgraphEdgeData {
  unsigned char from_port, to_port, type;
  unsigned char reserved[5];
};

// CONSTANT(name, value)
#define COMPUTE_CUDA_CONSTANTS(CONSTANT)                                          \
  CONSTANT(CUDA_SUCCESS, 0)                                                       \
  CONSTANT(CUDA_ERROR_INVALID_VALUE, 1)                                           \
  CONSTANT(CUDA_ERROR_OUT_OF_MEMORY, 2)                                           \
  CONSTANT(CUDA_ERROR_DEINITIALIZED, 4)                                           \
  CONSTANT(CUDA_ERROR_STUB_LIBRARY, 34)                                           \
  CONSTANT(CUDA_ERROR_DEVICE_UNAVAILABLE, 46)                                     \
  CONSTANT(CUDA_ERROR_NO_DEVICE, 100)                                             \
  CONSTANT(CUDA_ERROR_INVALID_DEVICE, 101)                                        \
  CONSTANT(CUDA_ERROR_INVALID_IMAGE, 200)                                         \
  CONSTANT(CUDA_ERROR_NO_BINARY_FOR_GPU, 209)                                     \
  CONSTANT(CUDA_ERROR_ECC_UNCORRECTABLE, 214)                                     \
  CONSTANT(CUDA_ERROR_INVALID_PTX, 218)                                           \
  CONSTANT(CUDA_ERROR_NVLINK_UNCORRECTABLE, 220)                                  \
  CONSTANT(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, 222)                               \
  CONSTANT(CUDA_ERROR_NOT_FOUND, 500)                                             \
  CONSTANT(CUDA_ERROR_NOT_READY, 600)                                             \
  CONSTANT(CUDA_ERROR_ILLEGAL_ADDRESS, 700)                                       \
  CONSTANT(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, 701)                               \
  CONSTANT(CUDA_ERROR_LAUNCH_TIMEOUT, 702)                                        \
  CONSTANT(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, 704)                           \
  CONSTANT(CUDA_ERROR_CONTEXT_IS_DESTROYED, 709)                                  \
  CONSTANT(CUDA_ERROR_ASSERT, 710)                                                \
  CONSTANT(CUDA_ERROR_HARDWARE_STACK_ERROR, 714)                                  \
  CONSTANT(CUDA_ERROR_ILLEGAL_INSTRUCTION, 715)                                   \
  CONSTANT(CUDA_ERROR_MISALIGNED_ADDRESS, 716)                                    \
  CONSTANT(CUDA_ERROR_INVALID_ADDRESS_SPACE, 717)                                 \
  CONSTANT(CUDA_ERROR_INVALID_PC, 718)                                            \
  CONSTANT(CUDA_ERROR_LAUNCH_FAILED, 719)                                         \
  CONSTANT(CU_STREAM_NON_BLOCKING, 1)                                             \
  CONSTANT(CU_STREAM_CAPTURE_MODE_RELAXED, 2)                                     \
  CONSTANT(CU_EVENT_DISABLE_TIMING, 2)                                            \
  CONSTANT(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, 6)              \
  CONSTANT(CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, 1)                             \
  CONSTANT(CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC, 1)                              \
  CONSTANT(CU_MEMHOSTALLOC_PORTABLE, 1)                                           \
  CONSTANT(CU_MEMHOSTALLOC_DEVICEMAP, 2)                                          \
  CONSTANT(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 9)                                \
  CONSTANT(CU_JIT_INFO_LOG_BUFFER, 3)                                             \
  CONSTANT(CU_JIT_ERROR_LOG_BUFFER, 5)                                            \
  CONSTANT(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, 6)                                 \
  CONSTANT(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0)                            \
  CONSTANT(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 8)                    \
  CONSTANT(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1)                          \
  CONSTANT(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 2)                                \
  CONSTANT(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 3)                                \
  CONSTANT(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 4)                                \
  CONSTANT(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 5)                                 \
  CONSTANT(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 6)                                 \
  CONSTANT(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 7)                                 \
  CONSTANT(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 8)                    \
  CONSTANT(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 9)                          \
  CONSTANT(CU_DEVICE_ATTRIBUTE_WARP_SIZE, 10)                                     \
  CONSTANT(CU_DEVICE_ATTRIBUTE_MAX_PITCH, 11)                                     \
  CONSTANT(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 12)                       \
  CONSTANT(CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 13)                                    \
  CONSTANT(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 14)                             \
  CONSTANT(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16)                          \
  CONSTANT(CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT, 17)                           \
  CONSTANT(CU_DEVICE_ATTRIBUTE_INTEGRATED, 18)                                    \
  CONSTANT(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 19)                           \
  CONSTANT(CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, 20)                                  \
  CONSTANT(CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 31)                            \
  CONSTANT(CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 32)                                   \
  CONSTANT(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 36)                             \
  CONSTANT(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 37)                       \
  CONSTANT(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 38)                                 \
  CONSTANT(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 39)                \
  CONSTANT(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 40)                            \
  CONSTANT(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 41)                            \
  CONSTANT(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75)                      \
  CONSTANT(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76)                      \
  CONSTANT(CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 78)                   \
  CONSTANT(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 81)          \
  CONSTANT(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 82)              \
  CONSTANT(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 83)                                \
  CONSTANT(CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD, 84)                               \
  CONSTANT(CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED, 86)                  \
  CONSTANT(CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 87)         \
  CONSTANT(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 88)                        \
  CONSTANT(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 89)                     \
  CONSTANT(CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, 90)                  \
  CONSTANT(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 95)                            \
  CONSTANT(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97)             \
  CONSTANT(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES, 100) \
  CONSTANT(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 102)          \
  CONSTANT(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 106)                \
  CONSTANT(CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, 108)                 \
  CONSTANT(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 115)                       \
  CONSTANT(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, 116)                    \
  CONSTANT(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 120)

enum : int32_t {
#define COMPUTE_CUDA_CONSTANT(name, value) name = value,
  COMPUTE_CUDA_CONSTANTS(COMPUTE_CUDA_CONSTANT)
#undef COMPUTE_CUDA_CONSTANT
};

// FUNCTION(member of Driver, exported symbol, parameters). All return CUresult.
#define COMPUTE_CUDA_FUNCTIONS(FUNCTION)                                                                               \
  FUNCTION(init, cuInit, (unsigned flags))                                                                             \
  FUNCTION(driver_get_version, cuDriverGetVersion, (int* version))                                                     \
  FUNCTION(get_error_name, cuGetErrorName, (CUresult error, const char** text))                                        \
  FUNCTION(get_error_string, cuGetErrorString, (CUresult error, const char** text))                                    \
  FUNCTION(device_get_count, cuDeviceGetCount, (int* count))                                                           \
  FUNCTION(device_get, cuDeviceGet, (CUdevice * device, int ordinal))                                                  \
  FUNCTION(device_get_name, cuDeviceGetName, (char* name, int capacity, CUdevice device))                              \
  FUNCTION(device_get_uuid, cuDeviceGetUuid_v2, (CUuuid * uuid, CUdevice device))                                      \
  FUNCTION(device_total_mem, cuDeviceTotalMem_v2, (size_t * bytes, CUdevice device))                                   \
  FUNCTION(device_get_attribute, cuDeviceGetAttribute, (int* value, int32_t attribute, CUdevice device))               \
  FUNCTION(device_get_pci_bus_id, cuDeviceGetPCIBusId, (char* text, int capacity, CUdevice device))                    \
  FUNCTION(device_can_access_peer, cuDeviceCanAccessPeer, (int* can, CUdevice device, CUdevice peer))                  \
  FUNCTION(device_primary_ctx_retain, cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device))                \
  FUNCTION(device_primary_ctx_release, cuDevicePrimaryCtxRelease_v2, (CUdevice device))                                \
  FUNCTION(ctx_get_current, cuCtxGetCurrent, (CUcontext * context))                                                    \
  FUNCTION(ctx_set_current, cuCtxSetCurrent, (CUcontext context))                                                      \
  FUNCTION(ctx_enable_peer_access, cuCtxEnablePeerAccess, (CUcontext peer, unsigned flags))                            \
  FUNCTION(ctx_get_stream_priority_range, cuCtxGetStreamPriorityRange, (int* least, int* greatest))                    \
  FUNCTION(mem_get_info, cuMemGetInfo_v2, (size_t * free, size_t * total))                                             \
  FUNCTION(mem_alloc, cuMemAlloc_v2, (CUdeviceptr * address, size_t bytes))                                            \
  FUNCTION(mem_free, cuMemFree_v2, (CUdeviceptr address))                                                              \
  FUNCTION(mem_host_alloc, cuMemHostAlloc, (void** address, size_t bytes, unsigned flags))                             \
  FUNCTION(mem_free_host, cuMemFreeHost, (void* address))                                                              \
  FUNCTION(pointer_get_attribute, cuPointerGetAttribute, (void* data, int32_t attribute, CUdeviceptr address))         \
  FUNCTION(memcpy_htod, cuMemcpyHtoD_v2, (CUdeviceptr dst, const void* src, size_t bytes))                             \
  FUNCTION(memcpy_htod_async, cuMemcpyHtoDAsync_v2, (CUdeviceptr dst, const void* src, size_t bytes, CUstream stream)) \
  FUNCTION(memcpy_dtoh_async, cuMemcpyDtoHAsync_v2, (void* dst, CUdeviceptr src, size_t bytes, CUstream stream))       \
  FUNCTION(                                                                                                            \
      memcpy_peer_async, cuMemcpyPeerAsync,                                                                            \
      (CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context, size_t bytes, CUstream stream)) \
  FUNCTION(memset_d8_async, cuMemsetD8Async, (CUdeviceptr dst, unsigned char value, size_t count, CUstream stream))    \
  FUNCTION(memset_d16_async, cuMemsetD16Async, (CUdeviceptr dst, unsigned short value, size_t count, CUstream stream)) \
  FUNCTION(memset_d32_async, cuMemsetD32Async, (CUdeviceptr dst, unsigned value, size_t count, CUstream stream))       \
  FUNCTION(memset_d2d32_async, cuMemsetD2D32Async,                                                                     \
           (CUdeviceptr dst, size_t pitch, unsigned value, size_t width, size_t height, CUstream stream))              \
  FUNCTION(stream_create, cuStreamCreateWithPriority, (CUstream * stream, unsigned flags, int priority))               \
  FUNCTION(stream_destroy, cuStreamDestroy_v2, (CUstream stream))                                                      \
  FUNCTION(stream_query, cuStreamQuery, (CUstream stream))                                                             \
  FUNCTION(stream_synchronize, cuStreamSynchronize, (CUstream stream))                                                 \
  FUNCTION(stream_wait_event, cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags))                     \
  FUNCTION(stream_begin_capture, cuStreamBeginCapture_v2, (CUstream stream, int32_t mode))                             \
  FUNCTION(stream_end_capture, cuStreamEndCapture, (CUstream stream, CUgraph * graph))                                 \
  FUNCTION(event_create, cuEventCreate, (CUevent * event, unsigned flags))                                             \
  FUNCTION(event_destroy, cuEventDestroy_v2, (CUevent event))                                                          \
  FUNCTION(event_record, cuEventRecord, (CUevent event, CUstream stream))                                              \
  FUNCTION(event_query, cuEventQuery, (CUevent event))                                                                 \
  FUNCTION(event_elapsed_time, cuEventElapsedTime, (float* milliseconds, CUevent start, CUevent end))                  \
  FUNCTION(module_load_data, cuModuleLoadDataEx,                                                                       \
           (CUmodule * module, const void* image, unsigned option_count, int32_t* options, void** values))             \
  FUNCTION(module_unload, cuModuleUnload, (CUmodule module))                                                           \
  FUNCTION(module_get_function, cuModuleGetFunction, (CUfunction * function, CUmodule module, const char* name))       \
  FUNCTION(func_get_attribute, cuFuncGetAttribute, (int* value, int32_t attribute, CUfunction function))               \
  FUNCTION(func_set_attribute, cuFuncSetAttribute, (CUfunction function, int32_t attribute, int value))                \
  FUNCTION(                                                                                                            \
      launch_kernel, cuLaunchKernel,                                                                                   \
      (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,     \
       unsigned block_z, unsigned shared_bytes, CUstream stream, void** parameters, void** extra))                     \
  FUNCTION(launch_kernel_ex, cuLaunchKernelEx,                                                                         \
           (const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra))                       \
  FUNCTION(graph_create, cuGraphCreate, (CUgraph * graph, unsigned flags))                                             \
  FUNCTION(graph_destroy, cuGraphDestroy, (CUgraph graph))                                                             \
  FUNCTION(graph_add_kernel_node, cuGraphAddKernelNode_v2,                                                             \
           (CUgraphNode * node, CUgraph graph, const CUgraphNode* dependencies, size_t dependency_count,               \
            const CUDA_KERNEL_NODE_PARAMS* parameters))                                                                \
  FUNCTION(                                                                                                            \
      graph_add_child_graph_node, cuGraphAddChildGraphNode,                                                            \
      (CUgraphNode * node, CUgraph graph, const CUgraphNode* dependencies, size_t dependency_count, CUgraph child))    \
  FUNCTION(graph_instantiate, cuGraphInstantiateWithFlags,                                                             \
           (CUgraphExec * executable, CUgraph graph, unsigned long long flags))                                        \
  FUNCTION(graph_exec_destroy, cuGraphExecDestroy, (CUgraphExec executable))                                           \
  FUNCTION(graph_exec_kernel_node_set_params, cuGraphExecKernelNodeSetParams_v2,                                       \
           (CUgraphExec executable, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* parameters))                      \
  FUNCTION(graph_exec_child_graph_node_set_params, cuGraphExecChildGraphNodeSetParams,                                 \
           (CUgraphExec executable, CUgraphNode node, CUgraph child))                                                  \
  FUNCTION(graph_upload, cuGraphUpload, (CUgraphExec executable, CUstream stream))                                     \
  FUNCTION(graph_launch, cuGraphLaunch, (CUgraphExec executable, CUstream stream))

// The same for functions that only newer drivers have; NULL if missing.
#define COMPUTE_CUDA_NEWER_FUNCTIONS(FUNCTION)                                   \
  FUNCTION(func_get_param_info, cuFuncGetParamInfo,                              \
           (CUfunction function, size_t index, size_t * offset, size_t * bytes)) \
  FUNCTION(func_load, cuFuncLoad, (CUfunction function))                         \
  FUNCTION(graph_add_dependencies, cuGraphAddDependencies_v2,                    \
           (CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData* data, size_t count))

struct DriverApi {
#define COMPUTE_CUDA_MEMBER(member, symbol, parameters) CUresult(*member) parameters;
  COMPUTE_CUDA_FUNCTIONS(COMPUTE_CUDA_MEMBER)
  COMPUTE_CUDA_NEWER_FUNCTIONS(COMPUTE_CUDA_MEMBER)
#undef COMPUTE_CUDA_MEMBER
};

}  // namespace compute::cuda
