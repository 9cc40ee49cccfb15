// SPDX-License-Identifier: Apache-2.0
// What is known of the values of an expression's nodes before it runs, so that functions of them need no special cases.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include <compute/plugin.h>

namespace compute::common {

/// Finite values in [low, high]. Those other than 0 are at least `least` away from it.
struct Range {
  double low = 0, high = 0, least = 0;

  /// The least magnitude of a value that is not 0.
  double least_magnitude() const { return std::max({least, low, -high}); }
};

/// The range of each node. Nothing: any value, also NaN.
std::vector<std::optional<Range>> known_ranges(const compute_plugin_expression& expression);

}  // namespace compute::common
