// SPDX-License-Identifier: Apache-2.0
// eigh and svd of batches of small real matrices, of which each lane of a vector has one.
#pragma once

#include <memory>

#include "plugins/cpu/linalg/matrix.hpp"

namespace compute::cpu {

// NULL for other ops, and for matrices that LAPACK computes faster one by one.
template <class T>
std::unique_ptr<Decomposition<T>> make_jacobi(const LapackLibrary& library, const Op& op);

}  // namespace compute::cpu
