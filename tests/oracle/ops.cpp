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
      {"all", reference_all},           {"any", reference_any},
      {"arange", reference_arange},     {"argmax", reference_argmax},
      {"argmin", reference_argmin},     {"cast", reference_cast},
      {"concat", reference_concat},     {"copy", reference_copy},
      {"eye", reference_eye},           {"fill", reference_fill},
      {"linspace", reference_linspace}, {"matmul", reference_matmul},
      {"max", reference_max},           {"mean", reference_mean},
      {"min", reference_min},           {"prod", reference_prod},
      {"scatter", reference_scatter},   {"stack", reference_stack},
      {"std", reference_std},           {"sum", reference_sum},
      {"take", reference_take},         {"take_along_axis", reference_take_along_axis},
      {"var", reference_var},
  };
  for (const auto& entry : kReferences) {
    if (entry.name == name) return entry.reference;
  }
  return nullptr;
}

}  // namespace compute::oracle
