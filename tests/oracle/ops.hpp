// SPDX-License-Identifier: Apache-2.0
// References of the ops that are not elementwise, found by name as the elementwise ones are.
#pragma once

#include <array>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "result.hpp"

namespace compute::oracle {

/// One attribute; the member in use follows from its kind in ops.def. A dtype is an integer.
struct Attribute {
  std::vector<int64_t> integers;
  std::vector<std::complex<double>> numbers;
  std::string text;

  Attribute() = default;
  Attribute(int64_t x) : integers{x} {}
  Attribute(Shape x) : integers(std::move(x)) {}
  Attribute(std::complex<double> x) : numbers{x} {}
  Attribute(std::string x) : text(std::move(x)) {}
};

/// Those that differ from the schema's defaults.
using Attributes = std::map<std::string, Attribute, std::less<>>;

int64_t integer_or(const Attributes& attributes, std::string_view name, int64_t fallback);
std::complex<double> number_or(const Attributes& attributes, std::string_view name, std::complex<double> fallback);

using Reference = Result (*)(std::span<const Array> inputs, const Attributes& attributes);

/// The reference of `name`, or NULL: the suite then fails with the op's name.
Reference find_reference(std::string_view name);

// One of each row of ops.def that is not elementwise, in reduce.cpp, matmul.cpp, movement.cpp and creation.cpp.
#define COMPUTE_UNARY(...)
#define COMPUTE_BINARY(...)
#define COMPUTE_TERNARY(...)
#define COMPUTE_OP(name, ...) Result reference_##name(std::span<const Array>, const Attributes&);
#include <compute/ops.def>
#undef COMPUTE_UNARY
#undef COMPUTE_BINARY
#undef COMPUTE_TERNARY
#undef COMPUTE_OP

/// Philox 4x32-10.
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

/// `value` of dtype `from` converted to `to`: truncated and saturated from floats to integers (NaN to 0), wrapped
/// between integers, `x != 0` to bool.
Value convert(Dtype from, Dtype to, const Value& value);

}  // namespace compute::oracle
