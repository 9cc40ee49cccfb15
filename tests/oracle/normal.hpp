// SPDX-License-Identifier: Apache-2.0
// The normal distribution.
#pragma once

#include "dtype.hpp"

namespace compute::oracle {

/// The logarithm of the probability that a normal number is greater than z.
Real log_tail(Real z);

}  // namespace compute::oracle
