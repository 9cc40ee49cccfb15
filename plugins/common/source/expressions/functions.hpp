// SPDX-License-Identifier: Apache-2.0
// The text of functions that kernels call: only those that one kernel needs, each once and after the functions that it
// needs itself.
#pragma once

#include <compute/compute.h>

#include <set>
#include <string>
#include <string_view>

#include "plugins/common/source/expressions/dialect.hpp"

namespace compute::common {

/// The name in C of an intrinsic that is a function there, such as "exp", or nullptr.
const char* math_name(int32_t intrinsic);

class Functions {
 public:
  explicit Functions(const Dialect& dialect) : dialect_(dialect) {}

  const Dialect& dialect() const { return dialect_; }

  /// The name of function `base` for `dtype`, such as "floor_div_i32". `text` then contains its definition. Error:
  /// UNSUPPORTED if neither the language nor the library has a function that it calls.
  std::string need(std::string_view base, compute_dtype dtype);
  /// The same for a function without a dtype.
  std::string need(std::string_view name);

  /// Whether there is a function without a dtype of this name.
  bool has(std::string_view name) const;

  /// If the device does not round float32 quotients and roots correctly, they are computed in float64.
  bool emulates_division() const { return !dialect_.has_rounded_division && dialect_.has_fp64; }

  /// Whether functions of complex64 are computed in complex128.
  bool computes_complex_in_wide() const;

  const std::string& text() const { return text_; }

 private:
  const Dialect& dialect_;
  std::set<std::string, std::less<>> defined_;
  std::string text_;
};

}  // namespace compute::common
