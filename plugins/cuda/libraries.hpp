// SPDX-License-Identifier: Apache-2.0
// NVIDIA's libraries, opened at first need from lists of versioned names, and the result for each.
#pragma once

#include <string>
#include <vector>

#include "plugins/common/table/emit.hpp"
#include "plugins/cuda/cublaslt_api.hpp"
#include "plugins/cuda/cudnn_api.hpp"
#include "plugins/cuda/cufft_api.hpp"
#include "plugins/cuda/cusolver_api.hpp"
#include "plugins/cuda/driver_api.hpp"
#include "plugins/cuda/nccl_api.hpp"
#include "plugins/cuda/nvml_api.hpp"
#include "plugins/cuda/nvrtc_api.hpp"

namespace compute::cuda {

using LibraryReport = common::Requirement;

// The driver's functions; all NULL until open_driver() has returned true.
extern DriverApi cu;

/// Opens and initialises the driver, once. False if no driver works; driver_report() has the reason.
bool open_driver();

struct Nvrtc {
  NvrtcApi api{};
  int major = 0, minor = 0;
  std::vector<int> architectures;  // the architectures for which it generates code: 75, 80, …
};

struct CublasLt {
  CublasLtApi api{};
};

struct Cudnn {
  CudnnApi api{};
};

struct Cufft {
  CufftApi api{};
};

struct Cusolver {
  CusolverApi api{};
};

/// NULL if no library works; the reports have the reason. The driver must be open, except for nvrtc(), which without a
/// driver uses the newest version that it finds.
///
/// Threads: any thread.
const Nvrtc* nvrtc();
const CublasLt* cublas_lt();
const Cudnn* cudnn();
const Cufft* cufft();
const Cusolver* cusolver();
const NcclApi* nccl();
const NvmlApi* nvml();

/// Does not search anything: a library that has not been searched yet has state 0.
LibraryReport driver_report();
LibraryReport nvrtc_report();
LibraryReport cublas_lt_report();
LibraryReport cudnn_report();
LibraryReport cufft_report();
LibraryReport cusolver_report();
LibraryReport nccl_report();
LibraryReport nvml_report();

/// "13.0", the version that the driver reports; "" without a driver.
std::string driver_version();

/// The open libraries, one per line, for compute_plugin_device_info.
std::string libraries_in_use();

/// "libcublasLt.so.13 and 5 more names", for one-line messages.
std::string tried_in_short(const LibraryReport& report);

}  // namespace compute::cuda
