// SPDX-License-Identifier: Apache-2.0
#include "ops.hpp"

namespace compute::oracle {

int64_t integer_or(const Attributes& attributes, std::string_view name, int64_t fallback) {
  const auto found = attributes.find(name);
  return found == attributes.end() ? fallback : found->second.integers.at(0);
}

std::complex<double> number_or(const Attributes& attributes, std::string_view name, std::complex<double> fallback) {
  const auto found = attributes.find(name);
  return found == attributes.end() ? fallback : found->second.numbers.at(0);
}

Reference find_reference(std::string_view name) {
  static constexpr struct {
    std::string_view name;
    Reference reference;
  } kReferences[] = {
#define COMPUTE_UNARY(...)
#define COMPUTE_BINARY(...)
#define COMPUTE_TERNARY(...)
#define COMPUTE_OP(name, ...) {#name, reference_##name},
#include <compute/ops.def>
#undef COMPUTE_UNARY
#undef COMPUTE_BINARY
#undef COMPUTE_TERNARY
#undef COMPUTE_OP
  };
  for (const auto& entry : kReferences) {
    if (entry.name == name) return entry.reference;
  }
  return nullptr;
}

}  // namespace compute::oracle
