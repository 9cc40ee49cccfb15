// SPDX-License-Identifier: Apache-2.0
// quantized_matmul in the form that plugins compute it in: lines of x by rows of packed weights.
#pragma once

#include <cstdint>
#include <optional>

#include "plugins/common/op/op.hpp"

namespace compute::common {

/// y [m, n] = x [m, k] times the transpose of weights [n, k]. Strides are in elements; bytes, scales and offsets of a
/// row are contiguous.
struct QuantizedProduct {
  int64_t m = 1, n = 0, k = 0;
  int64_t bits = 4, group = 32;
  bool has_offsets = false;
  int64_t x_line = 0, x_step = 0;  // from line to line, and along k
  int64_t weight_row = 0, scales_row = 0, offsets_row = 0;
  int64_t y_line = 0, y_step = 0;

  int64_t blocks() const { return (k + 31) / 32; }
  int64_t groups() const { return (k + group - 1) / group; }
};

/// Why the op's tensors do not have that form, or another dtype.
std::optional<Refusal> refuse_quantized_form(const Op& op);

/// For an op that is not refused.
QuantizedProduct read_quantized_product(const Op& op);

}  // namespace compute::common
