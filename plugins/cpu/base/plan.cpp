// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/base/plan.hpp"

#include <string>

namespace compute::cpu {

void report_index_fault(const compute_plugin_run& run, std::string_view op, int32_t argument, int64_t value,
                        int64_t limit, int64_t position) {
  if (run.fault.buffer == 0) {
    throw Error(COMPUTE_ERROR_KERNEL_FAILED,
                std::string(op) + ": index " + std::to_string(value) + " at position " + std::to_string(position) +
                    " is out of range for an extent of " + std::to_string(limit),
                argument);
  }
  auto* fault = reinterpret_cast<compute_plugin_fault*>(address(run.fault));
  if (fault->code != COMPUTE_PLUGIN_FAULT_NONE) return;
  fault->argument = argument;
  fault->value = value;
  fault->limit = limit;
  fault->position = position;
  __atomic_store_n(&fault->code, COMPUTE_PLUGIN_FAULT_INDEX, __ATOMIC_RELEASE);
}

}  // namespace compute::cpu
