// SPDX-License-Identifier: Apache-2.0
// Kernels of programs, and the primitive `kernel`.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "plugins/cpu/base/plan.hpp"
#include "plugins/cpu/user_kernels/program.hpp"

namespace compute::cpu {

class UserKernel {
 public:
  explicit UserKernel(const compute_plugin_kernel_source& source);

  int32_t argument_count() const { return static_cast<int32_t>(program_->parameters().size()); }
  static int32_t max_group_size();
  static int64_t max_local_bytes();

  // One run, to be queued: its arguments are checked and copied. The plan belongs to the caller.
  Plan* make_launch(const compute_plugin_launch& launch) const;

 private:
  std::shared_ptr<const Program> program_;
};

std::optional<Refusal> refuse_kernel(const Op& op);
std::unique_ptr<Plan> prepare_kernel(const Op& op);

}  // namespace compute::cpu
