// SPDX-License-Identifier: Apache-2.0
// fft, rfft and irfft along one axis.
#pragma once

#include <memory>
#include <optional>

#include "plugins/cpu/base/plan.hpp"

namespace compute::cpu {

std::optional<Refusal> refuse_fourier(const Op& op);
std::unique_ptr<Plan> prepare_fourier(const Op& op);

}  // namespace compute::cpu
