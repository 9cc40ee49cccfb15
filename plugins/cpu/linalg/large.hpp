// SPDX-License-Identifier: Apache-2.0
// Large matrices, each on all threads: LAPACK's blocked algorithms, whose steps the team shares.
#pragma once

#include <memory>

#include "plugins/cpu/linalg/matrix.hpp"

namespace compute::cpu {

// Whether threads share each matrix: there are too few matrices for all threads, and large ones.
bool are_shared(const Op& op);

// x with a x = b in place of b [n, count], for a triangle of a; exchanges rows of b before, if there are pivots. The
// team shares columns of b; within a piece of its work, the calling thread takes all.
template <class T>
void substitute(const LapackLibrary& library, const T* a, Int n, const Int* pivots, bool upper, bool unit, T* b,
                Int count);

// NULL for ops, dtypes and sizes that one thread computes as fast.
template <class T>
std::unique_ptr<Decomposition<T>> make_large(const LapackLibrary& library, const Op& op);

// cholesky, lu, solve and inv; NULL for other ops.
template <class T>
std::unique_ptr<Decomposition<T>> make_large_factors(const LapackLibrary& library, const Op& op);

}  // namespace compute::cpu
