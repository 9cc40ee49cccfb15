// SPDX-License-Identifier: Apache-2.0
// Which op ran where, and why.
#pragma once

#include <cstdint>
#include <string>

namespace compute {

// As compute_placement_report. `format` is a COMPUTE_FORMAT_.
std::string placement_report(int32_t format);

}  // namespace compute
