// SPDX-License-Identifier: Apache-2.0
// Matrix products through CLBlast.
#pragma once

#include <memory>
#include <string>

#include "plugins/opencl/plan.hpp"

namespace compute::opencl {

/// Whether CLBlast is to compute a device's matrix products, where it is installed.
bool takes_clblast(const DeviceInfo& device);

/// What computes a device's matrix products, and why, for compute_device_info.
std::string matmul_engine(const DeviceInfo& device);

/// A plan that calls CLBlast for the contraction `op`; NULL where the generated kernel is to take it.
std::unique_ptr<Plan> prepare_matmul(Device& device, const common::Op& op);

}  // namespace compute::opencl
