// SPDX-License-Identifier: Apache-2.0
// Amounts of memory in settings and selectors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace compute {

// An amount of memory: bytes, or a fraction of the device's total.
struct ByteAmount {
  int64_t size_bytes = 0;
  double fraction = 0;  // in (0, 1] if the text is a fraction; then `size_bytes` is 0

  int64_t of(int64_t total_bytes) const;
  bool operator==(const ByteAmount&) const = default;
};

// Reads `4096`, `4G`, `1.5GiB`, `30%` or `0.3` (a number with a decimal point and without a unit is a fraction). Empty,
// with the reason, if the text is none of these.
//
// The units K, M, G and T, alone or followed by B or iB, are powers of 1024.
std::optional<ByteAmount> parse_byte_amount(std::string_view text, std::string* out_reason);

}  // namespace compute
