// SPDX-License-Identifier: Apache-2.0
// A hash for looking up keys that are then compared word by word: one multiplication per word, no further guarantees.
#pragma once

#include <cstdint>

namespace compute {

constexpr uint64_t mix_hash(uint64_t hash, uint64_t word) noexcept {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
  return hash ^ (hash >> 32);
}

}  // namespace compute
