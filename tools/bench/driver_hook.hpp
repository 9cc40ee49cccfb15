// SPDX-License-Identifier: Apache-2.0
// Lets a program stand between the CUDA plugin and the driver, a real one too. Plugins look the driver's functions up
// with dlsym, which is found in the program first. Included by one source file of a program, which exports its symbols
// (ENABLE_EXPORTS); not under a sanitizer, which has a dlsym of its own.
#pragma once

#include <dlfcn.h>

#include <cstring>

#include "plugins/cuda/driver_api.hpp"

namespace compute {

// The driver's functions as the plugin found them.
inline decltype(cuda::DriverApi::ctx_get_current) driver_ctx_get_current = nullptr;
inline decltype(cuda::DriverApi::stream_synchronize) driver_stream_synchronize = nullptr;
inline decltype(cuda::DriverApi::ctx_set_current) driver_ctx_set_current = nullptr;
inline decltype(cuda::DriverApi::launch_kernel) driver_launch_kernel = nullptr;
inline decltype(cuda::DriverApi::launch_kernel_ex) driver_launch_kernel_ex = nullptr;

// Defined by the program: what the plugin launches its own kernels with.
cuda::CUresult hooked_launch(const cuda::CUlaunchConfig* config, cuda::CUfunction function, void** parameters,
                             void** extra);

namespace detail {

using FindSymbol = void* (*)(void* library, const char* symbol) noexcept;

// Only a lookup by version leads past the program's own dlsym.
inline FindSymbol find_symbol() {
  for (const char* version : {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"}) {
    if (void* found = dlvsym(RTLD_NEXT, "dlsym", version)) return reinterpret_cast<FindSymbol>(found);
  }
  return nullptr;
}

}  // namespace detail
}  // namespace compute

extern "C" __attribute__((visibility("default"))) void* dlsym(void* library, const char* symbol) noexcept {
  using namespace compute;
  static const detail::FindSymbol find = detail::find_symbol();
  if (find == nullptr) return nullptr;
  // A tail call: what looks from its caller on sees the caller.
  if (library == RTLD_DEFAULT || library == RTLD_NEXT || std::strncmp(symbol, "cu", 2) != 0)
    return find(library, symbol);
  void* found = find(library, symbol);
  if (found == nullptr) return nullptr;
  const auto note = [&]<class Function>(Function& function) {
    if (function == nullptr) function = reinterpret_cast<Function>(found);
  };
  if (std::strcmp(symbol, "cuCtxGetCurrent") == 0) note(driver_ctx_get_current);
  if (std::strcmp(symbol, "cuCtxSetCurrent") == 0) note(driver_ctx_set_current);
  if (std::strcmp(symbol, "cuStreamSynchronize") == 0) note(driver_stream_synchronize);
  if (std::strcmp(symbol, "cuLaunchKernel") == 0) note(driver_launch_kernel);
  if (std::strcmp(symbol, "cuLaunchKernelEx") == 0) {
    note(driver_launch_kernel_ex);
    return reinterpret_cast<void*>(&hooked_launch);
  }
  return found;
}
