// SPDX-License-Identifier: Apache-2.0
#include "plugins/cuda/status.hpp"

namespace compute::cuda {

bool is_final(CUresult result) {
  switch (result) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
      return true;
    default:
      return false;
  }
}

Error error_of(CUresult result, std::string_view what, std::string_view window) {
  const char *name = nullptr, *text = nullptr;
  cu.get_error_name(result, &name);
  cu.get_error_string(result, &text);
  std::string message(what);
  if (!window.empty()) message += " (" + std::string(window) + ")";
  message += std::string(": CUDA error ") + std::to_string(result);
  if (name != nullptr) message += std::string(", ") + name;
  if (text != nullptr) message += std::string(", ") + text;
  compute_error_code code = COMPUTE_ERROR_INTERNAL;
  if (is_final(result)) {
    code = COMPUTE_ERROR_RESTART_REQUIRED;
    message += "; restart the process to use CUDA again; the cpu device and host data remain usable";
  } else if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    code = COMPUTE_ERROR_OUT_OF_DEVICE_MEMORY;
  } else if (result == CUDA_ERROR_DEVICE_UNAVAILABLE || result == CUDA_ERROR_INVALID_DEVICE) {
    code = COMPUTE_ERROR_DEVICE_LOST;
  } else if (result == CUDA_ERROR_DEINITIALIZED) {
    code = COMPUTE_ERROR_SHUT_DOWN;
  } else if (result == CUDA_ERROR_INVALID_IMAGE || result == CUDA_ERROR_NO_BINARY_FOR_GPU ||
             result == CUDA_ERROR_INVALID_PTX || result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION) {
    code = COMPUTE_ERROR_COMPILE_FAILED;
  }
  return Error(code, std::move(message), -1, result);
}

}  // namespace compute::cuda
