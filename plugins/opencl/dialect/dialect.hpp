// SPDX-License-Identifier: Apache-2.0
// OpenCL C as a dialect for generated kernels.
#pragma once

#include <string>
#include <vector>

#include "plugins/common/source/expressions/dialect.hpp"

namespace compute::opencl {

/// What the language has; the fields of a device have their defaults.
common::Dialect dialect();

/// The same for kernels that run on CPU cores.
common::Dialect dialect_of_cores();

/// The compiler's options that generated texts require.
std::vector<std::string> compile_options(const common::Dialect& dialect);

}  // namespace compute::opencl
