// SPDX-License-Identifier: Apache-2.0
// Texts that the program frees.
#pragma once

#include <compute/compute.h>

#include <string>
#include <utility>

struct compute_text {
  std::string value;
};

namespace compute {

inline compute_text* make_text(std::string value) { return new compute_text{std::move(value)}; }

}  // namespace compute
