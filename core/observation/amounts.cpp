// SPDX-License-Identifier: Apache-2.0
#include "core/observation/amounts.hpp"

#include <fmt/format.h>

#include <array>

namespace compute {

std::string time_text(int64_t ns) {
  const auto value = static_cast<double>(ns);
  if (ns < 1'000) return fmt::format("{} ns", ns);
  if (ns < 1'000'000) return fmt::format("{:.2f} us", value * 1e-3);
  if (ns < 1'000'000'000) return fmt::format("{:.2f} ms", value * 1e-6);
  return fmt::format("{:.3f} s", value * 1e-9);
}

std::string bytes_text(int64_t bytes) {
  if (bytes < 1000) return fmt::format("{} B", bytes);
  auto value = static_cast<double>(bytes);
  constexpr std::array<const char*, 5> kUnits = {"kB", "MB", "GB", "TB", "PB"};
  size_t unit = 0;
  for (value /= 1000; value >= 999.95 && unit + 1 < kUnits.size(); value /= 1000) ++unit;
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string count_text(int64_t count) {
  constexpr std::array<const char*, 6> kUnits = {"", "Ki", "Mi", "Gi", "Ti", "Pi"};
  size_t unit = 0;
  for (; count >= 1024 && unit + 1 < kUnits.size(); count /= 1024) ++unit;
  return fmt::format("{}{}", count, kUnits[unit]);
}

std::string rate_text(int64_t amount, int64_t ns, const char* unit) {
  if (amount <= 0 || ns <= 0) return "";
  double value = static_cast<double>(amount) / static_cast<double>(ns);  // 1e9 per second
  const char* prefix = "G";
  if (value >= 1000) {
    value /= 1000;
    prefix = "T";
  } else if (value < 1) {
    value *= 1000;
    prefix = "M";
  }
  return fmt::format("{:.3g} {}{}", value, prefix, unit);
}

}  // namespace compute
