// SPDX-License-Identifier: Apache-2.0
// The functions of NVRTC, NVIDIA's compiler as a library, that this plugin calls: its own declarations, which a test
// compares with nvrtc.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace compute::cuda {

using nvrtcResult = int32_t;
using nvrtcProgram = struct _nvrtcProgram*;

enum : int32_t { NVRTC_SUCCESS = 0, NVRTC_ERROR_OUT_OF_MEMORY = 1, NVRTC_ERROR_COMPILATION = 6 };

// FUNCTION(member of NvrtcApi, exported symbol, result, parameters); versions from 11.2 on have all of them.
#define COMPUTE_NVRTC_FUNCTIONS(FUNCTION)                                                                            \
  FUNCTION(get_error_string, nvrtcGetErrorString, const char*, (nvrtcResult result))                                 \
  FUNCTION(version, nvrtcVersion, nvrtcResult, (int* major, int* minor))                                             \
  FUNCTION(get_num_supported_archs, nvrtcGetNumSupportedArchs, nvrtcResult, (int* count))                            \
  FUNCTION(get_supported_archs, nvrtcGetSupportedArchs, nvrtcResult, (int* architectures))                           \
  FUNCTION(create_program, nvrtcCreateProgram, nvrtcResult,                                                          \
           (nvrtcProgram * program, const char* source, const char* name, int header_count,                          \
            const char* const* headers, const char* const* header_names))                                            \
  FUNCTION(destroy_program, nvrtcDestroyProgram, nvrtcResult, (nvrtcProgram * program))                              \
  FUNCTION(compile_program, nvrtcCompileProgram, nvrtcResult,                                                        \
           (nvrtcProgram program, int option_count, const char* const* options))                                     \
  FUNCTION(get_ptx_size, nvrtcGetPTXSize, nvrtcResult, (nvrtcProgram program, size_t * size))                        \
  FUNCTION(get_ptx, nvrtcGetPTX, nvrtcResult, (nvrtcProgram program, char* ptx))                                     \
  FUNCTION(get_cubin_size, nvrtcGetCUBINSize, nvrtcResult, (nvrtcProgram program, size_t * size))                    \
  FUNCTION(get_cubin, nvrtcGetCUBIN, nvrtcResult, (nvrtcProgram program, char* cubin))                               \
  FUNCTION(get_program_log_size, nvrtcGetProgramLogSize, nvrtcResult, (nvrtcProgram program, size_t * size))         \
  FUNCTION(get_program_log, nvrtcGetProgramLog, nvrtcResult, (nvrtcProgram program, char* log))                      \
  FUNCTION(add_name_expression, nvrtcAddNameExpression, nvrtcResult, (nvrtcProgram program, const char* expression)) \
  FUNCTION(get_lowered_name, nvrtcGetLoweredName, nvrtcResult,                                                       \
           (nvrtcProgram program, const char* expression, const char** lowered))

struct NvrtcApi {
#define COMPUTE_NVRTC_MEMBER(member, symbol, result, parameters) result(*member) parameters;
  COMPUTE_NVRTC_FUNCTIONS(COMPUTE_NVRTC_MEMBER)
#undef COMPUTE_NVRTC_MEMBER
};

}  // namespace compute::cuda
