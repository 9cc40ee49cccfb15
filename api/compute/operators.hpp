// SPDX-License-Identifier: Apache-2.0
//
// operators.hpp: the operators of tensors. Include compute.hpp.
//
// They are elementwise ops: operands broadcast and promote, a number on either side is a weak scalar, and the result is
// a new tensor. `/` of integers gives float32. `%` is the remainder with the sign of the divisor. `&`, `|`, `^` and `~`
// are bitwise, and logical on bool. Comparisons return tensors of bool. && and || are not overloaded.
#ifndef COMPUTE_OPERATORS_HPP_
#define COMPUTE_OPERATORS_HPP_

#include "compute/ops.hpp"

namespace compute {

[[nodiscard]] inline Tensor operator+(const Tensor& x) { return positive(x); }
[[nodiscard]] inline Tensor operator-(const Tensor& x) { return negative(x); }
[[nodiscard]] inline Tensor operator~(const Tensor& x) { return bitwise_invert(x); }
[[nodiscard]] inline Tensor operator!(const Tensor& x) { return logical_not(x); }

[[nodiscard]] inline Tensor operator+(const Tensor& x, const Tensor& y) { return add(x, y); }
[[nodiscard]] inline Tensor operator-(const Tensor& x, const Tensor& y) { return subtract(x, y); }
[[nodiscard]] inline Tensor operator*(const Tensor& x, const Tensor& y) { return multiply(x, y); }
[[nodiscard]] inline Tensor operator/(const Tensor& x, const Tensor& y) { return divide(x, y); }
[[nodiscard]] inline Tensor operator%(const Tensor& x, const Tensor& y) { return remainder(x, y); }

[[nodiscard]] inline Tensor operator&(const Tensor& x, const Tensor& y) { return bitwise_and(x, y); }
[[nodiscard]] inline Tensor operator|(const Tensor& x, const Tensor& y) { return bitwise_or(x, y); }
[[nodiscard]] inline Tensor operator^(const Tensor& x, const Tensor& y) { return bitwise_xor(x, y); }
[[nodiscard]] inline Tensor operator<<(const Tensor& x, const Tensor& y) { return bitwise_left_shift(x, y); }
[[nodiscard]] inline Tensor operator>>(const Tensor& x, const Tensor& y) { return bitwise_right_shift(x, y); }

[[nodiscard]] inline Tensor operator==(const Tensor& x, const Tensor& y) { return equal(x, y); }
[[nodiscard]] inline Tensor operator!=(const Tensor& x, const Tensor& y) { return not_equal(x, y); }
[[nodiscard]] inline Tensor operator<(const Tensor& x, const Tensor& y) { return less(x, y); }
[[nodiscard]] inline Tensor operator<=(const Tensor& x, const Tensor& y) { return less_equal(x, y); }
[[nodiscard]] inline Tensor operator>(const Tensor& x, const Tensor& y) { return greater(x, y); }
[[nodiscard]] inline Tensor operator>=(const Tensor& x, const Tensor& y) { return greater_equal(x, y); }

}  // namespace compute

#endif  // COMPUTE_OPERATORS_HPP_
