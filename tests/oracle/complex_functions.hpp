// SPDX-License-Identifier: Apache-2.0
// References of complex functions, with the special cases of the array API standard (C's annex G).
#pragma once

#include "elementwise.hpp"

namespace compute::oracle {

Element complex_abs(const Operands&);
Element complex_acos(const Operands&);
Element complex_acosh(const Operands&);
Element complex_add(const Operands&);
Element complex_asin(const Operands&);
Element complex_asinh(const Operands&);
Element complex_atan(const Operands&);
Element complex_atanh(const Operands&);
Element complex_cos(const Operands&);
Element complex_cosh(const Operands&);
Element complex_divide(const Operands&);
Element complex_exp(const Operands&);
Element complex_expm1(const Operands&);
Element complex_log(const Operands&);
Element complex_log10(const Operands&);
Element complex_log1p(const Operands&);
Element complex_log2(const Operands&);
Element complex_multiply(const Operands&);
Element complex_pow(const Operands&);
Element complex_reciprocal(const Operands&);
Element complex_sign(const Operands&);
Element complex_sin(const Operands&);
Element complex_sinh(const Operands&);
Element complex_sqrt(const Operands&);
Element complex_square(const Operands&);
Element complex_subtract(const Operands&);
Element complex_tan(const Operands&);
Element complex_tanh(const Operands&);

}  // namespace compute::oracle
