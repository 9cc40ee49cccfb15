// SPDX-License-Identifier: Apache-2.0
#include "plugins/common/op/kernel_op.hpp"

#include <algorithm>

#include "plugins/common/op/core.hpp"

namespace compute::common {

KernelOp::KernelOp(const Op& op) {
  launch_.struct_size = sizeof launch_;
  launch_.struct_type = COMPUTE_PLUGIN_STRUCT_LAUNCH;
  std::copy_n(op.integers("groups").begin(), 3, launch_.groups);
  std::copy_n(op.integers("group_size").begin(), 3, launch_.group_size);
  for (int32_t i = 0; i < op.tensor_count(); ++i)
    access_.push_back(op.tensor(i).rank < 0 ? 0 : static_cast<int32_t>(op.tensor(i).access));
  for (int32_t i = 0; i < op.scalar_count(); ++i) scalar_sizes_.push_back(dtype_size(op.scalar_dtype(i)));
}

compute_plugin_kernel_source KernelOp::source_of(const Op& op) {
  compute_plugin_kernel_source source{};
  source.struct_size = sizeof source;
  source.struct_type = COMPUTE_PLUGIN_STRUCT_KERNEL_SOURCE;
  source.language = borrow(op.text("language"));
  source.source = borrow(op.text("source"));
  source.name = borrow(op.text("name"));
  source.options = borrow(op.text("options"));
  return source;
}

std::vector<compute_plugin_kernel_argument> KernelOp::arguments_of(const compute_plugin_run& run) const {
  std::vector<compute_plugin_kernel_argument> arguments;
  arguments.reserve(access_.size() + scalar_sizes_.size());
  compute_plugin_kernel_argument one{};
  one.struct_size = sizeof one;
  one.struct_type = COMPUTE_PLUGIN_STRUCT_KERNEL_ARGUMENT;
  one.kind = COMPUTE_PLUGIN_ARGUMENT_TENSOR;
  for (size_t i = 0; i < access_.size(); ++i) {
    if (access_[i] == 0) continue;
    one.access = access_[i];
    one.tensor = run.tensors[i];
    arguments.push_back(one);
  }
  one.kind = COMPUTE_PLUGIN_ARGUMENT_VALUE;
  one.access = 0;
  one.tensor = {};
  for (size_t i = 0; i < scalar_sizes_.size(); ++i) {
    one.value = run.scalars[i].bits;
    one.value_size = scalar_sizes_[i];
    arguments.push_back(one);
  }
  return arguments;
}

std::optional<Refusal> refuse_kernel_op(const Op& op, std::string_view device, std::string_view own) {
  const std::string_view language = op.text("language");
  if (language != "portable" && (own.empty() || language != own)) {
    return Refusal{COMPUTE_PLUGIN_REFUSE_ATTRIBUTE, -1,
                   "language " + std::string(language) + " is not supported; " + std::string(device) + " accepts " +
                       (own.empty() ? "" : std::string(own) + " and ") + "portable",
                   ""};
  }
  if (op.integers("groups").size() != 3 || op.integers("group_size").size() != 3)
    return Refusal{COMPUTE_PLUGIN_REFUSE_ATTRIBUTE, -1, "groups and group_size must have 3 entries", ""};
  return std::nullopt;
}

}  // namespace compute::common
