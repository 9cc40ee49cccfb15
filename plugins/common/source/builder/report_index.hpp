// SPDX-License-Identifier: Apache-2.0
// The function compute_report_index, for kernels with a fault record.
#pragma once

#include <string_view>

namespace compute::common {

// The first fault wins; code is written last.
inline constexpr std::string_view kReportIndex = R"(
COMPUTE_FUNCTION void compute_report_index(COMPUTE_GLOBAL u8* p, i32 argument, i64 value, i64 limit, i64 position) {
  if (COMPUTE_ATOMIC_CAS_U32((volatile COMPUTE_GLOBAL u32*)p + 8, 0u, 1u) != 0u) return;
  ((COMPUTE_GLOBAL i32*)p)[1] = argument;
  ((COMPUTE_GLOBAL i64*)p)[1] = value;
  ((COMPUTE_GLOBAL i64*)p)[2] = limit;
  ((COMPUTE_GLOBAL i64*)p)[3] = position;
  COMPUTE_FENCE();
  *(volatile COMPUTE_GLOBAL i32*)p = 1;
}
)";

}  // namespace compute::common
