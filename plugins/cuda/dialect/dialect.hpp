// SPDX-License-Identifier: Apache-2.0
// CUDA C as a dialect for generated kernels.
#pragma once

#include <string>
#include <vector>

#include "plugins/common/source/expressions/dialect.hpp"

namespace compute::cuda {

/// What the language has on every device; the fields of a device have their defaults.
common::Dialect dialect();

/// NVRTC's options that generated texts require: every node rounds once, and subnormals count.
std::vector<std::string> compile_options();

}  // namespace compute::cuda
