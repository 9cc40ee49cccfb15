// SPDX-License-Identifier: Apache-2.0
// The portable dialect, in which kernels are written.
#pragma once

#include <string>

#include "plugins/common/source/expressions/dialect.hpp"

namespace compute::common {

/// The text that defines the portable dialect. It precedes generated functions and the kernels of programs.
std::string portable_prelude(const Dialect& dialect);

}  // namespace compute::common
