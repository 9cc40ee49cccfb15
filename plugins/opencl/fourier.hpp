// SPDX-License-Identifier: Apache-2.0
// Fourier transforms by VkFFT, where the build found its header, for strides that its plans can express.
#pragma once

#include <optional>
#include <string>

#include "plugins/opencl/plan.hpp"

namespace compute::opencl {

inline bool is_fourier(const common::Op& op) {
  return op.name() == "fft" || op.name() == "rfft" || op.name() == "irfft";
}

// "VkFFT 1.2.26", or "" if the build did not find its header.
std::string fourier_library();

std::optional<common::Refusal> refuse_fourier(const Device& device, const common::Op& op);
common::PlanOrRefusal<Plan> prepare_fourier(Device& device, const common::Op& op);

}  // namespace compute::opencl
