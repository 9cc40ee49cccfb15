// SPDX-License-Identifier: Apache-2.0
// The portable dialect, in which kernels are written.
#pragma once

#include <string>
#include <vector>

#include "plugins/common/source/builder/launch.hpp"

namespace compute::common {

/// The text that defines the portable dialect, for user kernels: it precedes their text. See plugins/common/README.md.
std::string portable_prelude(const Dialect& dialect);

/// Compiler options that the texts require. CUDA: "--fmad=false" and others; OpenCL: "-cl-std=CL1.2", …
std::vector<std::string> compile_options(const Dialect& dialect);

}  // namespace compute::common
