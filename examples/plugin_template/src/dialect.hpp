// SPDX-License-Identifier: Apache-2.0
// The language of the device's compiler, as a table for the kernel kit.
#pragma once

#include <compute_kit/dialect.hpp>

namespace acme {

const compute::common::Dialect& dialect();

}  // namespace acme
