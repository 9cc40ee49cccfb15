// SPDX-License-Identifier: Apache-2.0
// NVIDIA's libraries, opened at first need from lists of versioned names, and what became of each.
#pragma once

#include <string>
#include <vector>

#include "plugins/common/emit.hpp"
#include "plugins/cuda/cublaslt_api.hpp"
#include "plugins/cuda/driver_api.hpp"
#include "plugins/cuda/nvrtc_api.hpp"

namespace compute::cuda {

using LibraryReport = common::Requirement;

// The driver's functions; all NULL until open_driver() was true.
extern DriverApi cu;

/// Opens and initialises the driver, once. False if there is none that works; driver_report() says why.
bool open_driver();

struct Nvrtc {
  NvrtcApi api{};
  int major = 0, minor = 0;
  std::vector<int> architectures;  // that it makes code for: 75, 80, …
};

struct CublasLt {
  CublasLtApi api{};
  cublasLtHandle handle = nullptr;
};

/// NULL if there is none that works; the reports say why. The driver must be open, except for nvrtc(), which then takes
/// the newest it finds.
///
/// Threads: any thread.
const Nvrtc* nvrtc();
const CublasLt* cublas_lt();

/// Without looking for anything: what is not yet looked for has state 0.
LibraryReport driver_report();
LibraryReport nvrtc_report();
LibraryReport cublas_lt_report();

/// "13.0", as the driver states the interface that it has; "" without one.
std::string driver_version();

/// The libraries that are open, one a line, for compute_plugin_device_info.
std::string libraries_in_use();

/// "libcublasLt.so.13 and 5 more names", for one-line messages.
std::string tried_in_short(const LibraryReport& report);

}  // namespace compute::cuda
