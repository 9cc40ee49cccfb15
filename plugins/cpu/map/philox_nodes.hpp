// SPDX-License-Identifier: Apache-2.0
// The nodes of an expression that compute the words of Philox 4x32-10, which one block function replaces.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "compute/plugin.h"

namespace compute::cpu {

/// Numbers of nodes.
struct PhiloxNodes {
  int32_t counter = -1;               // int64
  std::array<int32_t, 2> key = {};    // uint32
  std::array<int32_t, 4> words = {};  // uint32; -1 if nothing uses it
  std::vector<bool> replaced;         // the words, and those that nothing but them needs
};

/// Empty if the expression has no random words as core writes them.
std::optional<PhiloxNodes> find_philox(const compute_plugin_expression& expression);

}  // namespace compute::cpu
