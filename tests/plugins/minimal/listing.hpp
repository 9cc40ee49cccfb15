// SPDX-License-Identifier: Apache-2.0
// How a lambda over C++ types becomes a Function over values, for the files that list the intrinsics.
#pragma once

#include "functions.hpp"

namespace minimal {

// F is the type of a lambda without captures, so that F{} is the lambda again and the result an ordinary function.
template <class T, class F>
Function unary(F) {
  static_assert(std::is_empty_v<F>);
  return [](const Value& x, const Value&, const Value&) { return Value::of(F{}(x.as<T>())); };
}
template <class T, class F>
Function binary(F) {
  static_assert(std::is_empty_v<F>);
  return [](const Value& x, const Value& y, const Value&) { return Value::of(F{}(x.as<T>(), y.as<T>())); };
}
template <class T>
Function find_comparison(int32_t intrinsic) {
  if constexpr (Integer<T> || Real<T>) {
    switch (intrinsic) {
      case COMPUTE_INTRINSIC_LT:
        return binary<T>([](T x, T y) { return x < y; });
      case COMPUTE_INTRINSIC_LE:
        return binary<T>([](T x, T y) { return x <= y; });
      case COMPUTE_INTRINSIC_GT:
        return binary<T>([](T x, T y) { return x > y; });
      case COMPUTE_INTRINSIC_GE:
        return binary<T>([](T x, T y) { return x >= y; });
    }
  }
  switch (intrinsic) {
    case COMPUTE_INTRINSIC_EQ:
      return binary<T>([](T x, T y) { return x == y; });
    case COMPUTE_INTRINSIC_NE:
      return binary<T>([](T x, T y) { return x != y; });
    default:
      return nullptr;
  }
}

// inexact.cpp
template <Real T>
Function find_real(int32_t intrinsic);
template <Complex T>
Function find_complex(int32_t intrinsic);

}  // namespace minimal
