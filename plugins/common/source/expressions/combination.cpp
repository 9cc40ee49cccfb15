// SPDX-License-Identifier: Apache-2.0
#include "plugins/common/source/expressions/combination.hpp"

#include <algorithm>
#include <iterator>

#include "plugins/common/source/expressions/expression.hpp"

namespace compute::common {

Combination combination_of(std::string_view name) {
  constexpr std::string_view names[] = {"sum", "prod", "min", "max", "all", "any"};
  return static_cast<Combination>(std::find(std::begin(names), std::end(names), name) - std::begin(names));
}

std::string identity_text(Combination kind, compute_dtype dtype) {
  const auto bits = [&](uint64_t word, uint64_t second = 0) {
    uint8_t bytes[16] = {};
    for (int i = 0; i < 16; ++i) bytes[i] = static_cast<uint8_t>((i < 8 ? word : second) >> (8 * (i % 8)));
    return constant_text(dtype, bytes);
  };
  const int size = dtype_size(dtype) * 8;
  const uint64_t top = uint64_t{1} << (std::min(size, 64) - 1), all = top | (top - 1);
  const bool is_double = dtype == COMPUTE_DTYPE_FLOAT64;
  switch (kind) {
    case Combination::sum:  // -0 changes nothing, +0 would change -0
      if (part_of(dtype) == COMPUTE_DTYPE_FLOAT64) return bits(uint64_t{1} << 63, uint64_t{1} << 63);
      if (is_float(part_of(dtype))) return bits(uint64_t{1} << 31 | (is_complex(dtype) ? uint64_t{1} << 63 : 0));
      return bits(0);
    case Combination::any:
      return bits(0);
    case Combination::prod:
      if (is_float(part_of(dtype))) {
        const bool wide = part_of(dtype) == COMPUTE_DTYPE_FLOAT64;
        return bits(wide ? 0x3ff0000000000000 : 0x3f800000);
      }
      return bits(1);
    case Combination::all:
      return bits(1);
    case Combination::min:
      if (is_float(dtype)) return bits(is_double ? 0x7ff0000000000000 : 0x7f800000);
      return bits(is_signed(dtype) ? all & ~top : all);
    default:
      if (is_float(dtype)) return bits(is_double ? 0xfff0000000000000 : 0xff800000);
      return bits(is_signed(dtype) ? top : 0);
  }
}

std::string combine_text(Combination kind, compute_dtype dtype, const std::string& x, const std::string& y,
                         Functions& functions) {
  switch (kind) {
    case Combination::sum:
      return call_text(COMPUTE_PLUGIN_INTRINSIC_ADD, dtype, {x, y}, functions);
    case Combination::prod:
      return call_text(COMPUTE_PLUGIN_INTRINSIC_MUL, dtype, {x, y}, functions);
    case Combination::min:
    case Combination::all:
      if (dtype == COMPUTE_DTYPE_BOOL) return cat("(bool)(", x, " && ", y, ")");
      return call_text(COMPUTE_PLUGIN_INTRINSIC_MIN, dtype, {x, y}, functions);
    default:
      if (dtype == COMPUTE_DTYPE_BOOL) return cat("(bool)(", x, " || ", y, ")");
      return call_text(COMPUTE_PLUGIN_INTRINSIC_MAX, dtype, {x, y}, functions);
  }
}

}  // namespace compute::common
