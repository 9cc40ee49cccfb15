// SPDX-License-Identifier: Apache-2.0
// Compares the CUDA plugin's declarations with NVIDIA's headers: every function, constant and struct, at compile time.
#include "plugins/cuda/cublaslt_api.hpp"
#include "plugins/cuda/cudnn_api.hpp"
#include "plugins/cuda/cufft_api.hpp"
#include "plugins/cuda/cusolver_api.hpp"
#include "plugins/cuda/driver_api.hpp"
#include "plugins/cuda/nvml_api.hpp"
#include "plugins/cuda/nvrtc_api.hpp"

// NVIDIA's headers come last, since they define macros with the names of functions.
#include <cublasLt.h>
#include <cuda.h>
#if __has_include(<cusolverDn.h>)
#include <cusolverDn.h>
#define COMPUTE_HAS_CUSOLVER_HEADER
#endif
#if __has_include(<cufftXt.h>)
#include <cufftXt.h>
#define COMPUTE_HAS_CUFFT_HEADER
#endif
#if defined(COMPUTE_HAS_CUDNN_HEADERS)
#include <cudnn.h>
#endif
#include <gtest/gtest.h>
#include <nvrtc.h>
#if __has_include(<nvml.h>)
#include <nvml.h>
#define COMPUTE_HAS_NVML_HEADER
#endif

#include <cstddef>
#include <type_traits>

namespace {

// Two types that are passed alike: pointers, integers and enumerations of one size, structs of one size and alignment.
template <class A, class B>
constexpr bool passed_alike() {
  if constexpr (std::is_pointer_v<A> || std::is_pointer_v<B>) {
    return std::is_pointer_v<A> && std::is_pointer_v<B>;
  } else if constexpr (std::is_floating_point_v<A> || std::is_floating_point_v<B>) {
    return std::is_same_v<A, B>;
  } else if constexpr (std::is_class_v<A> || std::is_class_v<B>) {
    return std::is_class_v<A> && std::is_class_v<B> && sizeof(A) == sizeof(B) && alignof(A) == alignof(B);
  } else {
    return (std::is_integral_v<A> || std::is_enum_v<A>)&&(std::is_integral_v<B> || std::is_enum_v<B>)&&sizeof(A) ==
           sizeof(B);
  }
}

// Pointee types matter too, unless they are opaque handles: int* instead of size_t* would be an error.
template <class A, class B>
constexpr bool points_alike() {
  if constexpr (std::is_pointer_v<A> && std::is_pointer_v<B>) {
    using X = std::remove_cv_t<std::remove_pointer_t<A>>;
    using Y = std::remove_cv_t<std::remove_pointer_t<B>>;
    if constexpr (std::is_void_v<X> || std::is_void_v<Y> || std::is_function_v<X> || std::is_function_v<Y>) {
      return true;
    } else if constexpr (std::is_class_v<X> || std::is_class_v<Y>) {
      return std::is_class_v<X> && std::is_class_v<Y>;  // possibly incomplete
    } else {
      return passed_alike<X, Y>() &&
             std::is_const_v<std::remove_pointer_t<A>> == std::is_const_v<std::remove_pointer_t<B>>;
    }
  } else {
    return true;
  }
}

template <class Ours, class Theirs>
struct SameCall : std::false_type {};
template <class R1, class... A1, class R2, class... A2>
struct SameCall<R1 (*)(A1...), R2 (*)(A2...)> {
  static constexpr bool value = [] {
    if constexpr (sizeof...(A1) != sizeof...(A2)) {
      return false;
    } else {
      return passed_alike<R1, R2>() && (passed_alike<A1, A2>() && ...) && (points_alike<A1, A2>() && ...);
    }
  }();
};

#define CHECK_FUNCTION(member, symbol, ...) \
  static_assert(SameCall<decltype(compute::cuda::DriverApi::member), decltype(&::symbol)>::value, #symbol);
COMPUTE_CUDA_FUNCTIONS(CHECK_FUNCTION)
#if CUDA_VERSION >= 12040
COMPUTE_CUDA_NEWER_FUNCTIONS(CHECK_FUNCTION)
#endif
#undef CHECK_FUNCTION

#define CHECK_FUNCTION(member, symbol, ...) \
  static_assert(SameCall<decltype(compute::cuda::NvrtcApi::member), decltype(&::symbol)>::value, #symbol);
COMPUTE_NVRTC_FUNCTIONS(CHECK_FUNCTION)
#undef CHECK_FUNCTION

#define CHECK_FUNCTION(member, symbol, ...) \
  static_assert(SameCall<decltype(compute::cuda::CublasLtApi::member), decltype(&::symbol)>::value, #symbol);
COMPUTE_CUBLASLT_FUNCTIONS(CHECK_FUNCTION)
#undef CHECK_FUNCTION

#if defined(COMPUTE_HAS_CUSOLVER_HEADER)
#define CHECK_FUNCTION(member, symbol, ...) \
  static_assert(SameCall<decltype(compute::cuda::CusolverApi::member), decltype(&::symbol)>::value, #symbol);
COMPUTE_CUSOLVER_FUNCTIONS(CHECK_FUNCTION)
#if CUDA_VERSION >= 12060
COMPUTE_CUSOLVER_NEWER_FUNCTIONS(CHECK_FUNCTION)
#endif
#undef CHECK_FUNCTION
#define CHECK_CONSTANT(name, value) static_assert(static_cast<int>(::name) == (value), #name);
COMPUTE_CUSOLVER_CONSTANTS(CHECK_CONSTANT)
#undef CHECK_CONSTANT
static_assert(::CUBLAS_FILL_MODE_LOWER == compute::cuda::kFillLower);
static_assert(::CUBLAS_FILL_MODE_UPPER == compute::cuda::kFillUpper);
#endif

#if defined(COMPUTE_HAS_CUFFT_HEADER)
#define CHECK_FUNCTION(member, symbol, ...) \
  static_assert(SameCall<decltype(compute::cuda::CufftApi::member), decltype(&::symbol)>::value, #symbol);
COMPUTE_CUFFT_FUNCTIONS(CHECK_FUNCTION)
#undef CHECK_FUNCTION
#define CHECK_CONSTANT(name, value) static_assert(static_cast<int>(::name) == (value), #name);
COMPUTE_CUFFT_CONSTANTS(CHECK_CONSTANT)
#undef CHECK_CONSTANT
#endif

#if defined(COMPUTE_HAS_CUDNN_HEADERS)
#define CHECK_FUNCTION(member, symbol, ...) \
  static_assert(SameCall<decltype(compute::cuda::CudnnApi::member), decltype(&::symbol)>::value, #symbol);
COMPUTE_CUDNN_FUNCTIONS(CHECK_FUNCTION)
#undef CHECK_FUNCTION
#define CHECK_CONSTANT(name, number) static_assert(static_cast<long long>(::name) == (number), #name);
COMPUTE_CUDNN_CONSTANTS(CHECK_CONSTANT)
#undef CHECK_CONSTANT
#endif

#if defined(COMPUTE_HAS_NVML_HEADER)
#define CHECK_FUNCTION(member, symbol, ...) \
  static_assert(SameCall<decltype(compute::cuda::NvmlApi::member), decltype(&::symbol)>::value, #symbol);
COMPUTE_NVML_FUNCTIONS(CHECK_FUNCTION)
#undef CHECK_FUNCTION
static_assert(::NVML_SUCCESS == static_cast<int>(compute::cuda::NVML_SUCCESS));
static_assert(::NVML_TEMPERATURE_GPU == static_cast<int>(compute::cuda::NVML_TEMPERATURE_GPU));
static_assert(sizeof(compute::cuda::nvmlMemoryInfo) == sizeof(nvmlMemory_v2_t));
static_assert(offsetof(compute::cuda::nvmlMemoryInfo, used) == offsetof(nvmlMemory_v2_t, used));
static_assert(compute::cuda::nvmlMemoryInfo{}.version == nvmlMemory_v2);
static_assert(sizeof(compute::cuda::nvmlProcessInfo) == sizeof(nvmlProcessInfo_v2_t));
static_assert(offsetof(compute::cuda::nvmlProcessInfo, used_bytes) == offsetof(nvmlProcessInfo_v2_t, usedGpuMemory));
static_assert(sizeof(compute::cuda::nvmlUtilization) == sizeof(nvmlUtilization_t));
#endif

#define CHECK_CONSTANT(name, number) static_assert(static_cast<long long>(name) == (number), #name);
COMPUTE_CUDA_CONSTANTS(CHECK_CONSTANT)
COMPUTE_CUBLASLT_CONSTANTS(CHECK_CONSTANT)
#undef CHECK_CONSTANT
static_assert(::NVRTC_SUCCESS == static_cast<int>(compute::cuda::NVRTC_SUCCESS));
static_assert(::NVRTC_ERROR_OUT_OF_MEMORY == static_cast<int>(compute::cuda::NVRTC_ERROR_OUT_OF_MEMORY));
static_assert(::NVRTC_ERROR_COMPILATION == static_cast<int>(compute::cuda::NVRTC_ERROR_COMPILATION));

using Ours = compute::cuda::CUDA_KERNEL_NODE_PARAMS;
using Theirs = CUDA_KERNEL_NODE_PARAMS_v2;
static_assert(sizeof(Ours) == sizeof(Theirs));
#define CHECK_MEMBER(member) static_assert(offsetof(Ours, member) == offsetof(Theirs, member), #member);
CHECK_MEMBER(func)
CHECK_MEMBER(gridDimX)
CHECK_MEMBER(blockDimX)
CHECK_MEMBER(sharedMemBytes)
CHECK_MEMBER(kernelParams)
CHECK_MEMBER(extra)
CHECK_MEMBER(kern)
CHECK_MEMBER(ctx)
#undef CHECK_MEMBER

static_assert(sizeof(compute::cuda::CUlaunchConfig) == sizeof(::CUlaunchConfig));
static_assert(offsetof(compute::cuda::CUlaunchConfig, hStream) == offsetof(::CUlaunchConfig, hStream));
static_assert(offsetof(compute::cuda::CUlaunchConfig, attrs) == offsetof(::CUlaunchConfig, attrs));
static_assert(offsetof(compute::cuda::CUlaunchConfig, numAttrs) == offsetof(::CUlaunchConfig, numAttrs));
static_assert(sizeof(compute::cuda::CUlaunchAttribute) == sizeof(::CUlaunchAttribute));
static_assert(offsetof(compute::cuda::CUlaunchAttribute, value) == offsetof(::CUlaunchAttribute, value));
#if CUDA_VERSION >= 12040
static_assert(sizeof(compute::cuda::CUgraphEdgeData) == sizeof(::CUgraphEdgeData));
static_assert(offsetof(compute::cuda::CUgraphEdgeData, type) == offsetof(::CUgraphEdgeData, type));
#endif
static_assert(sizeof(compute::cuda::CUuuid) == sizeof(::CUuuid));
static_assert(sizeof(compute::cuda::cublasLtMatmulAlgo) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(compute::cuda::cublasLtMatmulHeuristicResult) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(compute::cuda::cublasLtMatmulHeuristicResult, workspaceSize) ==
              offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(compute::cuda::cublasLtMatmulHeuristicResult, state) ==
              offsetof(cublasLtMatmulHeuristicResult_t, state));

TEST(CudaDeclarations, AgreeWithTheToolkit) {
  RecordProperty("CUDA_VERSION", CUDA_VERSION);  // the comparison itself is done by the compiler
  SUCCEED() << "headers of CUDA " << CUDA_VERSION;
}

}  // namespace
