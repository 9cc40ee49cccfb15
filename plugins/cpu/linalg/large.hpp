// SPDX-License-Identifier: Apache-2.0
// Large matrices, each on all threads: LAPACK's blocked algorithms, whose steps the team shares.
#pragma once

#include <memory>

#include "plugins/cpu/linalg/matrix.hpp"

namespace compute::cpu {

// Whether threads share each matrix: there are too few matrices for all threads, and large ones.
bool are_shared(const Op& op);

// NULL for ops, dtypes and sizes that one thread computes as fast.
template <class T>
std::unique_ptr<Decomposition<T>> make_large(const LapackLibrary& library, const Op& op);

// cholesky, lu, solve and inv; NULL for other ops.
template <class T>
std::unique_ptr<Decomposition<T>> make_large_factors(const LapackLibrary& library, const Op& op);

}  // namespace compute::cpu
