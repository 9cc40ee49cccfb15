// SPDX-License-Identifier: Apache-2.0
// Philox 4x32-10 of J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011), as core's expressions of
// random numbers have it.
#pragma once

#include <array>
#include <cstdint>

namespace compute::cpu {

using PhiloxWords = std::array<uint32_t, 4>;

// The words of a block, whose number is the counter. The seed is the key.
inline PhiloxWords philox(uint64_t seed, uint64_t block) {
  PhiloxWords x = {static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), 0, 0};
  auto key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t first = uint64_t{x[0]} * 0xD2511F53U, second = uint64_t{x[2]} * 0xCD9E8D57U;
    x = {static_cast<uint32_t>(second >> 32) ^ x[1] ^ key0, static_cast<uint32_t>(second),
         static_cast<uint32_t>(first >> 32) ^ x[3] ^ key1, static_cast<uint32_t>(first)};
    key0 += 0x9E3779B9U;
    key1 += 0xBB67AE85U;
  }
  return x;
}

}  // namespace compute::cpu
