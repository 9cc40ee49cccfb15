// SPDX-License-Identifier: Apache-2.0
// Registered ops that are computed by kernels of the program.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/ops/lowering.hpp"
#include "core/ops/op_call.hpp"
#include "core/ops/size_expression.hpp"

namespace compute {

// An argument of a kernel after the tensors.
struct KernelValue {
  int32_t run_time = -1;  // among the schema's run-time attributes
  int32_t real = -1;      // a static float64 attribute
  SizeExpression size;    // where both are -1
  compute_dtype dtype = COMPUTE_DTYPE_INT64;
};

struct OpKernel {
  std::string language, source, name, options;
  std::vector<SizeExpression> items;  // work-items along 1 to 3 axes
  std::array<int64_t, 3> group_size{1, 1, 1};
  std::vector<KernelValue> values;
  bool is_strided = false;  // takes tensors of any strides
};

// The shape and dtype of a result of an op that has kernels only.
struct KernelResult {
  int32_t shape_of = -1;  // an input, else `extents`
  std::vector<SizeExpression> extents;
  int32_t dtype_of = -1;  // an input, else `dtype`
  compute_dtype dtype = COMPUTE_DTYPE_NONE;
};

struct OpKernels {
  std::vector<OpKernel> list;  // best first
  std::vector<KernelResult> results;
};

// Throws INVALID_ARGUMENT for an invalid description. `schema` has names and attributes.
std::shared_ptr<const OpKernels> parse_kernels(const RegisteredOp& given, const OpSchema& schema);

// Of an op that has kernels only.
std::vector<OutputDesc> infer_kernel_op(const OpCall& call);

// The step `kernel` for kernel number `index`, with copies of tensors whose layout the kernel does not support. Nothing
// if there is no such kernel, or an input is empty.
std::optional<Lowering> lower_to_kernel(const OpCall& call, const LoweringTarget& target, int32_t index);

}  // namespace compute
