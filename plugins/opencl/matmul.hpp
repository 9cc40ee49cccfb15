// SPDX-License-Identifier: Apache-2.0
// Matrix products by CLBlast.
#pragma once

#include <memory>
#include <string>

#include "plugins/opencl/plan.hpp"

namespace compute::opencl {

/// Whether CLBlast may compute matrix products of a device, if it is installed.
bool may_take_clblast(const DeviceInfo& device);

/// The engine of a device's matrix products, and the reason, for compute_device_info.
std::string matmul_engine(const DeviceInfo& device);

/// A plan that calls CLBlast for the contraction `op`; NULL if the generated kernel should be used.
std::unique_ptr<Plan> prepare_matmul(Device& device, const common::Op& op);

}  // namespace compute::opencl
