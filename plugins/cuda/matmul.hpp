// SPDX-License-Identifier: Apache-2.0
// Contractions by cuBLASLt: all strides that a flag, a leading dimension and a batch stride can express, without a
// copy.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "plugins/cuda/plan.hpp"

namespace compute::cuda {

/// A handle of cuBLASLt, which belongs to the device whose context was current when it was made. Threads may share it:
/// a call states its stream and its workspace, and the handle keeps neither.
class BlasHandle {
 public:
  /// The device's context must be current, also at the end.
  BlasHandle();
  ~BlasHandle();
  BlasHandle(const BlasHandle&) = delete;
  BlasHandle& operator=(const BlasHandle&) = delete;

  cublasLtHandle get() const { return handle_; }

 private:
  cublasLtHandle handle_ = nullptr;
};

struct MatmulVerdict {
  bool is_taken = false;
  std::string reason;  // why it is refused
  // Set if core should ask for something else rather than take a generated kernel: with a packed copy of an operand, or
  // without the bias and the epilogue.
  std::optional<common::Refusal> refusal;
};

/// Whether cuBLASLt supports a contraction.
MatmulVerdict judge_matmul(Device& device, const common::Op& op);

/// For an op that judge_matmul accepts. NULL if cuBLASLt has no algorithm for its layouts.
std::unique_ptr<Plan> prepare_matmul(Device& device, const common::Op& op);

}  // namespace compute::cuda
