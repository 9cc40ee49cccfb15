// SPDX-License-Identifier: Apache-2.0
#include "plugins/cuda/kernel_table.hpp"

#include <iterator>

#include "plugins/common/driver/compiling.hpp"
#include "plugins/cuda/compiler.hpp"
#include "plugins/cuda/libraries.hpp"
#include "plugins/cuda/status.hpp"

namespace compute::cuda {
namespace {

constexpr int kFirstThatWaits = 90;  // as COMPUTE_WAIT_FOR_KERNELS of the generated texts

}  // namespace

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

void KernelTable::clear() noexcept {
  for (const auto& [key, entry] : entries_) {
    if (entry->kernel.module != nullptr) cu.module_unload(entry->kernel.module);
  }
  entries_.clear();
}

KernelTable::Entry& KernelTable::entry_of(const common::KernelKey& key) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Entry>& entry = entries_[key];
  if (!entry) entry = std::make_unique<Entry>();
  return *entry;
}

void KernelTable::make(Entry& entry, const std::string& name, const std::string& text,
                       const std::vector<std::string>& options, int64_t* out_compiled) {
  const Program program = compile(text, name, compute_capability_, options);
  if (program.was_compiled && out_compiled != nullptr) ++*out_compiled;
  entry.kernel = load(program);
  entry.kernel.name = name;
  entry.kernel.waits = target_architecture(compute_capability_) >= kFirstThatWaits;
  entry.is_ready.store(true, std::memory_order_release);
}

}  // namespace compute::cuda
