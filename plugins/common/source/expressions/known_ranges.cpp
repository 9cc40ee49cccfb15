// SPDX-License-Identifier: Apache-2.0
#include "plugins/common/source/expressions/known_ranges.hpp"

#include <cmath>
#include <cstring>
#include <limits>

#include "plugins/common/source/expressions/types.hpp"

namespace compute::common {
namespace {

using MaybeRange = std::optional<Range>;

constexpr double kExact = 0x1p53 - 1;  // up to which every integer is a double, and no other is rounded to one

// The nearest float32. GCC 12 makes vectors of neighbouring conversions, and then takes them and those back for none.
double to_single(double x) {
  const volatile auto single = static_cast<float>(x);
  return static_cast<double>(single);
}

bool is_wide_or_single(compute_dtype dtype) { return dtype == COMPUTE_DTYPE_FLOAT32 || dtype == COMPUTE_DTYPE_FLOAT64; }

// All values of an integer dtype; 64-bit ranges end at the next double.
Range all_of(compute_dtype dtype) {
  const int bits = dtype_size(dtype) * 8;
  const double limit = std::ldexp(1.0, is_signed(dtype) ? bits - 1 : bits), last = bits == 64 ? limit : limit - 1;
  return {is_signed(dtype) ? -limit : 0, last, 1};
}

// Integers that wrap where they leave the dtype.
Range wrapped(compute_dtype dtype, double low, double high) {
  const Range all = all_of(dtype);
  const bool fits = low >= std::max(all.low, -kExact) && high <= std::min(all.high, kExact);
  return fits ? Range{low, high, 1} : all;
}

// Results that are rounded once to a float dtype, which keeps their order. For sums, products and roots of float32,
// rounding first to float64 and then to float32 equals one rounding.
MaybeRange rounded(compute_dtype dtype, double low, double high, double least) {
  const bool is_single = dtype == COMPUTE_DTYPE_FLOAT32;
  if (is_single) {
    constexpr double kGreatest = std::numeric_limits<float>::max();
    if (!(low >= -kGreatest && high <= kGreatest)) return std::nullopt;
    low = to_single(low);
    high = to_single(high);
    least = to_single(least);
  }
  if (!std::isfinite(low) || !std::isfinite(high)) return std::nullopt;
  // Products may become 0 or subnormal.
  const double least_normal =
      is_single ? double{std::numeric_limits<float>::min()} : std::numeric_limits<double>::min();
  return Range{low, high, least >= least_normal ? least : 0};
}

MaybeRange of_result(compute_dtype dtype, double low, double high, double least = 0) {
  if (is_integer(dtype)) return wrapped(dtype, low, high);
  return rounded(dtype, low, high, least);
}

MaybeRange of_constant(compute_dtype dtype, const uint8_t* bits) {
  double value = 0;
  if (dtype == COMPUTE_DTYPE_FLOAT32) {
    float single;
    std::memcpy(&single, bits, sizeof single);
    value = static_cast<double>(single);
  } else if (dtype == COMPUTE_DTYPE_FLOAT64) {
    std::memcpy(&value, bits, sizeof value);
  } else {
    uint64_t word;
    std::memcpy(&word, bits, sizeof word);
    const int unused = 64 - dtype_size(dtype) * 8;
    value = is_signed(dtype) ? static_cast<double>(static_cast<int64_t>(word << unused) >> unused)
                             : static_cast<double>(word << unused >> unused);
  }
  return of_result(dtype, value, value, std::abs(value));
}

MaybeRange of_conversion(const MaybeRange& x, compute_dtype from, compute_dtype to) {
  if (!x) return is_integer(to) ? MaybeRange(all_of(to)) : std::nullopt;
  if (is_integer(from) || !is_integer(to)) return of_result(to, x->low, x->high, x->least_magnitude());
  const Range all = all_of(to);  // floats saturate
  return Range{std::clamp(std::trunc(x->low), all.low, all.high), std::clamp(std::trunc(x->high), all.low, all.high),
               1};
}

MaybeRange of_product(compute_dtype dtype, const Range& x, const Range& y) {
  const auto [low, high] = std::minmax({x.low * y.low, x.low * y.high, x.high * y.low, x.high * y.high});
  return of_result(dtype, low, high, x.least_magnitude() * y.least_magnitude());
}

MaybeRange of_shift(compute_dtype dtype, const Range& x, const Range& count) {
  if (count.low != count.high || count.low < 0 || count.low >= dtype_size(dtype) * 8) return all_of(dtype);
  const int bits = static_cast<int>(count.low);
  return wrapped(dtype, std::floor(std::ldexp(x.low, -bits)), std::floor(std::ldexp(x.high, -bits)));
}

// A bitwise and with a non-negative number is at most that number.
Range of_common_bits(compute_dtype dtype, const Range& x, const Range& y) {
  const Range all = all_of(dtype);
  if (x.low < 0 && y.low < 0) return all;
  return {0, std::min(x.low < 0 ? all.high : x.high, y.low < 0 ? all.high : y.high), 1};
}

// Within a few ULP. The numbers next to 1 have logarithms of half an ULP of 1 and more.
MaybeRange of_logarithm(compute_dtype dtype, const Range& x) {
  if (!(x.low > 0)) return std::nullopt;
  const double low = std::log(x.low), high = std::log(x.high), slack = 0x1p-20;
  const double least = dtype == COMPUTE_DTYPE_FLOAT32 ? 0x1p-25 : 0x1p-54;
  return rounded(dtype, low - slack * std::abs(low), high + slack * std::abs(high), least);
}

MaybeRange of_call(const compute_plugin_node& node, compute_dtype from, const MaybeRange* x, const MaybeRange* y,
                   const MaybeRange* z) {
  const compute_dtype dtype = node.dtype;
  if (node.value == COMPUTE_PLUGIN_INTRINSIC_CONVERT) return of_conversion(*x, from, dtype);
  if (node.value == COMPUTE_PLUGIN_INTRINSIC_WHERE) {
    if (!*y || !*z) return std::nullopt;
    return Range{std::min((*y)->low, (*z)->low), std::max((*y)->high, (*z)->high),
                 std::min((*y)->least_magnitude(), (*z)->least_magnitude())};
  }
  if (!*x || (y != nullptr && !*y)) return std::nullopt;
  const Range a = **x, b = y != nullptr ? **y : Range{};
  switch (node.value) {
    case COMPUTE_PLUGIN_INTRINSIC_ADD:
      return of_result(dtype, a.low + b.low, a.high + b.high);
    case COMPUTE_PLUGIN_INTRINSIC_SUB:
      return of_result(dtype, a.low - b.high, a.high - b.low);
    case COMPUTE_PLUGIN_INTRINSIC_MUL:
      return of_product(dtype, a, b);
    case COMPUTE_PLUGIN_INTRINSIC_NEG:
      return of_result(dtype, -a.high, -a.low, a.least);
    case COMPUTE_PLUGIN_INTRINSIC_ABS: {
      const double nearest = a.low <= 0 && a.high >= 0 ? 0 : a.least_magnitude();
      return of_result(dtype, nearest, std::max(-a.low, a.high), a.least);
    }
    case COMPUTE_PLUGIN_INTRINSIC_MIN:
      return Range{std::min(a.low, b.low), std::min(a.high, b.high),
                   std::min(a.least_magnitude(), b.least_magnitude())};
    case COMPUTE_PLUGIN_INTRINSIC_MAX:
      return Range{std::max(a.low, b.low), std::max(a.high, b.high),
                   std::min(a.least_magnitude(), b.least_magnitude())};
    case COMPUTE_PLUGIN_INTRINSIC_BIT_AND:
      return of_common_bits(dtype, a, b);
    case COMPUTE_PLUGIN_INTRINSIC_SHR:
      return of_shift(dtype, a, b);
    case COMPUTE_PLUGIN_INTRINSIC_SQRT:
      if (a.low < 0) return std::nullopt;
      return rounded(dtype, std::sqrt(a.low), std::sqrt(a.high), std::sqrt(a.least_magnitude()));
    case COMPUTE_PLUGIN_INTRINSIC_LOG:
      return of_logarithm(dtype, a);
    default:
      return std::nullopt;
  }
}

}  // namespace

std::vector<std::optional<Range>> known_ranges(const compute_plugin_expression& expression) {
  std::vector<MaybeRange> ranges(static_cast<size_t>(expression.node_count));
  for (int32_t i = 0; i < expression.node_count; ++i) {
    const compute_plugin_node& node = expression.nodes[i];
    MaybeRange& range = ranges[static_cast<size_t>(i)];
    if (!is_integer(node.dtype) && !is_wide_or_single(node.dtype)) continue;
    if (node.kind == COMPUTE_PLUGIN_NODE_CONSTANT) {
      range = of_constant(node.dtype, node.bits);
    } else if (node.kind == COMPUTE_PLUGIN_NODE_CALL) {
      const int32_t* operands = expression.operands + node.first_operand;
      const MaybeRange* of[3] = {};
      for (int32_t k = 0; k < std::min(node.operand_count, 3); ++k) of[k] = &ranges[static_cast<size_t>(operands[k])];
      range = of_call(node, expression.nodes[operands[0]].dtype, of[0], of[1], of[2]);
    }
    if (!range && is_integer(node.dtype)) range = all_of(node.dtype);
  }
  return ranges;
}

}  // namespace compute::common
