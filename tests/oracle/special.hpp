// SPDX-License-Identifier: Apache-2.0
// References of special functions: series, asymptotic expansions and continued fractions, taken as far as they need.
#pragma once

#include "elementwise.hpp"

namespace compute::oracle {

/// In a wider format, for sums whose terms cancel.
__extension__ typedef __float128 Wide;

Wide wide_log(Real x);

Element real_i0(const Operands& o);
Element real_i0e(const Operands& o);
Element real_i1(const Operands& o);
Element real_i1e(const Operands& o);
Element real_j0(const Operands& o);
Element real_j1(const Operands& o);
Element real_y0(const Operands& o);
Element real_y1(const Operands& o);
Element real_erfcinv(const Operands& o);
Element real_gammainc(const Operands& o);
Element real_gammaincc(const Operands& o);
Element real_betainc(const Operands& o);
/// Of an order above 0.
Element polygamma(Real order, Real x);

}  // namespace compute::oracle
