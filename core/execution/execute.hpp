// SPDX-License-Identifier: Apache-2.0
// Submission of calls.
#pragma once

#include "core/execution/execution.hpp"

namespace compute {

// Submits a plan with at least one step.
void execute(const Execution& execution);

}  // namespace compute
