// SPDX-License-Identifier: Apache-2.0
// Times, sizes and rates in reports.
#pragma once

#include <cstdint>
#include <string>

namespace compute {

std::string time_text(int64_t ns);      // "1.25 ms"
std::string bytes_text(int64_t bytes);  // "4.0 MB"
std::string count_text(int64_t count);  // "1M", of powers of two
// "26.8 TFLOP/s" of an amount per time; "" for none.
std::string rate_text(int64_t amount, int64_t ns, const char* unit);

}  // namespace compute
