// SPDX-License-Identifier: Apache-2.0
#include "plugins/common/op/pooling.hpp"

#include <algorithm>
#include <string>

namespace compute::common {
namespace {

// The tensor with the shape of x, and that with the shape of y.
const compute_plugin_tensor& of_elements(const Op& op) {
  return op.name() == "max_pool_grad" ? op.input(1) : op.name() == "average_pool_grad" ? op.output(0) : op.input(0);
}
const compute_plugin_tensor& of_windows(const Op& op) {
  return op.name().ends_with("_grad") ? op.input(0) : op.output(0);
}

}  // namespace

PoolStrides pool_strides(const compute_plugin_tensor& tensor) {
  PoolStrides strides{};
  const size_t missing = strides.size() - static_cast<size_t>(tensor.rank);
  for (size_t i = 0; i < static_cast<size_t>(tensor.rank); ++i)
    strides[i < kPoolLead ? i : i + missing] = tensor.strides[i];
  return strides;
}

PoolWindows pool_windows(const Op& op, const compute_plugin_tensor& x, const compute_plugin_tensor& y) {
  PoolWindows windows;
  const size_t spatial = static_cast<size_t>(x.rank) - kPoolLead;
  const auto sizes = op.integers("window"), strides = op.integers("strides"), dilations = op.integers("dilations"),
             begin = op.integers("pads_begin"), end = op.integers("pads_end");
  for (size_t i = 0; i < spatial; ++i) {
    PoolWindow& w = windows[kPoolSpatial - spatial + i];
    w.extent = x.shape[kPoolLead + i];
    w.count = y.shape[kPoolLead + i];
    w.size = sizes[i];
    w.stride = strides.empty() ? w.size : strides[i];
    w.dilation = dilations.empty() ? 1 : dilations[i];
    if (!begin.empty()) w.before = begin[i];
    if (!end.empty()) w.after = end[i];
    if (op.text("padding") == "same") {
      const int64_t total = std::max<int64_t>((w.count - 1) * w.stride + w.reach() - w.extent, 0);
      w.before = total / 2;
      w.after = total - w.before;
    }
  }
  return windows;
}

Pooling::Pooling(const Op& op)
    : windows(pool_windows(op, of_elements(op), of_windows(op))),
      is_max(op.name().starts_with("max_")),
      is_grad(op.name().ends_with("_grad")),
      counts_padding(op.integer("count_include_pad", 0) != 0),
      is_padded(false),
      is_overlapping(false) {
  for (const PoolWindow& w : windows) {
    is_padded = is_padded || w.before > 0 || w.after > 0;
    is_overlapping = is_overlapping || w.stride < w.reach();
  }
}

std::optional<Refusal> refuse_pooling(const Op& op) {
  const std::string name(op.name());
  if (of_elements(op).rank > static_cast<int32_t>(kPoolLead + kPoolSpatial))
    return Refusal{COMPUTE_PLUGIN_REFUSE_RANK, 0, name + ": at most 3 spatial axes are supported in one pass", ""};
  const Pooling pooling(op);
  if (pooling.is_padded || (pooling.is_grad && pooling.is_overlapping)) return std::nullopt;
  return Refusal{COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED, -1,
                 name + ": other primitives compute these windows in one pass", ""};
}

}  // namespace compute::common
