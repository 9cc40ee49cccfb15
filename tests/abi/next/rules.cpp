// SPDX-License-Identifier: Apache-2.0
#include "core/ops/rules.hpp"

namespace compute {

const OpRules sum_2_rules = mean_1_rules;

}  // namespace compute
