// SPDX-License-Identifier: Apache-2.0
#include "plugins/cuda/module.hpp"

#include <iterator>

#include "plugins/common/driver/compiling.hpp"
#include "plugins/cuda/status.hpp"

namespace compute::cuda {

Kernel load(const Program& program) {
  const common::Compiling compiling;  // the driver's compiler for PTX
  Kernel kernel;
  kernel.name = program.entry;
  std::string log(8192, '\0');
  int32_t options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log.data(), reinterpret_cast<void*>(static_cast<uintptr_t>(log.size()))};
  if (const CUresult result =
          cu.module_load_data(&kernel.module, program.code.c_str(), std::size(options), options, values);
      result != CUDA_SUCCESS) {
    Error error = error_of(result, "loading kernel " + program.entry);
    log.resize(log.find('\0'));
    if (!log.empty()) error.message += "\n" + log;
    throw error;
  }
  if (const CUresult result = cu.module_get_function(&kernel.function, kernel.module, program.entry.c_str());
      result != CUDA_SUCCESS) {
    cu.module_unload(kernel.module);
    throw error_of(result, "finding kernel " + program.entry);
  }
  // Modules are loaded lazily by default. Asking for an attribute loads the function where cuFuncLoad is not there yet.
  int threads = 0;
  cu.func_get_attribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel.function);
  if (cu.func_load != nullptr) cu.func_load(kernel.function);
  return kernel;
}

}  // namespace compute::cuda
