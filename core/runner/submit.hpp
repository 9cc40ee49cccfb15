// SPDX-License-Identifier: Apache-2.0
// Submits calls whose plan and operands are determined.
#pragma once

#include "core/runner/planned_call.hpp"

namespace compute {

// The plan has at least one step.
void submit(const PlannedCall& call);

}  // namespace compute
