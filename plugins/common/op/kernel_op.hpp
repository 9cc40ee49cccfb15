// SPDX-License-Identifier: Apache-2.0
// The primitive `kernel`, for plugins that compile kernels from source.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plugins/common/op/op.hpp"

namespace compute::common {

class KernelOp {
 public:
  // `op` must have 3 entries in groups and group_size; see refuse_kernel_op.
  explicit KernelOp(const Op& op);

  // The source. Valid as long as `op`.
  static compute_plugin_kernel_source source_of(const Op& op);

  int32_t tensor_count() const { return static_cast<int32_t>(access_.size()); }
  int32_t scalar_count() const { return static_cast<int32_t>(scalar_sizes_.size()); }

  // Calls f(const compute_plugin_launch&) with this run's launch.
  template <class F>
  void with_launch(const compute_plugin_run& run, const F& f) const {
    std::vector<compute_plugin_kernel_argument> arguments = arguments_of(run);
    compute_plugin_launch launch = launch_;
    launch.stream = run.stream;
    launch.arguments = arguments.data();
    launch.argument_count = static_cast<int32_t>(arguments.size());
    f(launch);
  }

 private:
  std::vector<compute_plugin_kernel_argument> arguments_of(const compute_plugin_run& run) const;

  compute_plugin_launch launch_{};
  std::vector<int32_t> access_;  // of each tensor; 0: it is absent
  std::vector<int32_t> scalar_sizes_;
};

// Why the op is refused whatever its source: a language that is neither `own` nor portable, faulty attributes.
std::optional<Refusal> refuse_kernel_op(const Op& op, std::string_view device, std::string_view own);

}  // namespace compute::common
