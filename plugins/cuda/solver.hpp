// SPDX-License-Identifier: Apache-2.0
// Decompositions and solvers of matrices by cuSOLVER.
#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "plugins/cuda/plan.hpp"

namespace compute::cuda {

/// A handle of cuSOLVER, which belongs to the device whose context was current when it was made. It has one stream at a
/// time, so a caller holds the lock from setting the stream until its calls have returned.
class SolverHandle {
 public:
  /// The device's context must be current, also at the end.
  SolverHandle();
  ~SolverHandle() { destroy(); }
  SolverHandle(const SolverHandle&) = delete;
  SolverHandle& operator=(const SolverHandle&) = delete;

  cusolverDnHandle get() const { return handle_; }
  cusolverDnParams params() const { return params_; }
  cusolverDnJacobi jacobi() const { return jacobi_; }
  cusolverDnJacobiSvd jacobi_svd() const { return jacobi_svd_; }
  std::mutex& mutex() { return mutex_; }

 private:
  void destroy();

  cusolverDnHandle handle_ = nullptr;
  cusolverDnParams params_ = nullptr;
  cusolverDnJacobi jacobi_ = nullptr;
  cusolverDnJacobiSvd jacobi_svd_ = nullptr;
  std::mutex mutex_;
};

/// Whether `op` is one of linear algebra, which generated kernels do not support.
bool is_solver_op(const common::Op& op);

/// Why cuSOLVER does not compute it.
std::optional<common::Refusal> refuse_solver(Device& device, const common::Op& op);

/// For an op that refuse_solver accepts. The device's context must be current.
std::unique_ptr<Plan> prepare_solver(Device& device, const common::Op& op);

}  // namespace compute::cuda
