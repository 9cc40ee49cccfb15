// SPDX-License-Identifier: Apache-2.0
// Fourier transforms by cuFFT, for all strides that its plans can express. It neither divides by the length nor ignores
// imaginary parts, so core asks for transforms without these.
#pragma once

#include <optional>

#include "plugins/cuda/plan.hpp"

namespace compute::cuda {

inline bool is_fourier(const common::Op& op) {
  return op.name() == "fft" || op.name() == "rfft" || op.name() == "irfft";
}

std::optional<common::Refusal> refuse_fourier(const common::Op& op);

/// The device's context must be current.
common::PlanOrRefusal<Plan> prepare_fourier(Device& device, const common::Op& op);

}  // namespace compute::cuda
