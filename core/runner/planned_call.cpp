// SPDX-License-Identifier: Apache-2.0
#include "core/runner/planned_call.hpp"

namespace compute {

compute_plugin_operand operand_at(const Buffer& buffer, int64_t offset_bytes) noexcept {
  if (buffer.device.is_host) return {buffer.handle + static_cast<uint64_t>(buffer.base_offset + offset_bytes), 0};
  return {buffer.handle, buffer.base_offset + offset_bytes};
}

void fill_scalars(const PlannedCall& call, const PlannedStep& step, compute_plugin_scalar* out) {
  for (size_t i = 0; i < step.scalars.size(); ++i) {
    const StepScalar& scalar = step.scalars[i];
    const auto index = static_cast<size_t>(scalar.index);
    switch (scalar.source) {
      case ScalarSource::kValue:
        out[i] = scalar.bits;
        break;
      case ScalarSource::kOperand: {
        const Tensor& tensor = *call.operands[index];
        out[i] = convert_scalar(scalar_from_memory(tensor.dtype, tensor.bits.data()), tensor.dtype, scalar.dtype);
        break;
      }
      case ScalarSource::kRunTimeAttribute:
        out[i] = run_time_scalar(*call.plan->op, scalar.index, call.run_time[index], scalar.dtype);
        break;
    }
  }
}

}  // namespace compute
