// SPDX-License-Identifier: Apache-2.0
// Index tensors, for gather and scatter.
#pragma once

#include <compute/plugin.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "plugins/cpu/base/plan.hpp"

namespace compute::cpu {

constexpr int64_t kIndexBlock = 512;  // indices that are resolved at a time
constexpr int64_t kBadIndex = -1;

// Reads n indices, stride_bytes apart, to out. Indices in [-extent, 0) count from the end; those out of range become
// kBadIndex. True iff there is one of these.
inline bool resolve_indices(compute_dtype dtype, const char* src, int64_t stride_bytes, int64_t n, int64_t extent,
                            int64_t* out) {
  bool bad = false;
  const auto resolve = [&]<class T>(T) {
    for (int64_t j = 0; j < n; ++j) {
      const int64_t index = *reinterpret_cast<const T*>(src + j * stride_bytes);
      const int64_t at = index < 0 ? index + extent : index;
      const bool fits = static_cast<uint64_t>(at) < static_cast<uint64_t>(extent);
      out[j] = fits ? at : kBadIndex;
      bad |= !fits;
    }
  };
  if (dtype == COMPUTE_DTYPE_INT32) {
    resolve(int32_t{});
  } else {
    resolve(int64_t{});
  }
  return bad;
}

// The index tensor of a plan in its own layout, to find the row-major position of a faulty index.
class IndexTensor {
 public:
  IndexTensor() = default;
  explicit IndexTensor(const compute_plugin_tensor& tensor)
      : dtype_(tensor.dtype),
        shape_(tensor.shape, tensor.shape + tensor.rank),
        strides_(tensor.strides, tensor.strides + tensor.rank) {}

  // Reports the first index that is out of range.
  void report_first_fault(const compute_plugin_run& run, std::string_view op, int32_t argument, int64_t extent) const {
    const char* data = address(run.tensors[argument]);
    int64_t points = 1;
    for (const int64_t n : shape_) points *= n;
    for (int64_t position = 0; position < points; ++position) {
      int64_t offset = 0, rest = position;
      for (size_t axis = shape_.size(); axis-- > 0; rest /= shape_[axis])
        offset += rest % shape_[axis] * strides_[axis];
      const int64_t value = dtype_ == COMPUTE_DTYPE_INT32 ? reinterpret_cast<const int32_t*>(data)[offset]
                                                          : reinterpret_cast<const int64_t*>(data)[offset];
      if (value < -extent || value >= extent) return report_index_fault(run, op, argument, value, extent, position);
    }
  }

 private:
  compute_dtype dtype_ = COMPUTE_DTYPE_INT64;
  std::vector<int64_t> shape_, strides_;
};

}  // namespace compute::cpu
