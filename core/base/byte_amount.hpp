// SPDX-License-Identifier: Apache-2.0
// Amounts of memory as settings and selectors give them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace compute {

// An amount of memory: bytes, or a part of what the device has in total.
struct ByteAmount {
  int64_t size_bytes = 0;
  double fraction = 0;  // in (0, 1] where the text was a part; `size_bytes` is 0 then

  int64_t of(int64_t total_bytes) const;
  bool operator==(const ByteAmount&) const = default;
};

// Reads `4096`, `4G`, `1.5GiB`, `30%` or `0.3`, a part since it has a decimal point and no unit; empty, with the
// reason, where it is none of them.
//
// The units K, M, G and T, alone or followed by B or iB, are powers of 1024.
std::optional<ByteAmount> parse_byte_amount(std::string_view text, std::string* out_reason);

}  // namespace compute
