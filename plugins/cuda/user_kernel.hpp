// SPDX-License-Identifier: Apache-2.0
// Kernels that users write, in CUDA C or in the portable dialect.
#pragma once

#include <compute/plugin.h>

#include <string>
#include <vector>

#include "plugins/cuda/compiler.hpp"
#include "plugins/cuda/plan.hpp"
#include "plugins/cuda/stream.hpp"

namespace compute::cuda {

class UserKernel {
 public:
  UserKernel(Device& device, const compute_plugin_kernel_source& source);
  ~UserKernel();
  UserKernel(const UserKernel&) = delete;
  UserKernel& operator=(const UserKernel&) = delete;

  int32_t max_group_size() const { return max_group_size_; }
  bool was_compiled() const { return was_compiled_; }

  void launch(const compute_plugin_launch& launch) const;

 private:
  void check_argument(const compute_plugin_kernel_argument& argument, size_t parameter, int32_t index) const;

  Device& device_;
  const std::string name_;
  const char* const noted_name_;
  Kernel kernel_;
  std::optional<std::vector<KernelParameter>> parameters_;  // empty: not known
  int32_t max_group_size_ = 0;
  bool was_compiled_ = false;
};

// The primitive `kernel`.
std::optional<common::Refusal> refuse_user_kernel(const common::Op& op);
std::unique_ptr<Plan> prepare_user_kernel(Device& device, const common::Op& op);

}  // namespace compute::cuda
