// SPDX-License-Identifier: Apache-2.0
// The driver's results as errors by severity, and the context that a call needs.
#pragma once

#include <string>
#include <string_view>

#include "plugins/common/op/core.hpp"
#include "plugins/cuda/libraries.hpp"

namespace compute::cuda {

using common::Error;

/// The error of a result other than CUDA_SUCCESS. `what` is the attempted operation; `window` is the work that may be
/// at fault, or "".
///
/// A fault of a kernel (such as an illegal address) is final: CUDA keeps returning it in this process, also in new
/// contexts. It is RESTART_REQUIRED, and so is every later call.
Error error_of(CUresult result, std::string_view what, std::string_view window = {});

inline void check(CUresult result, const char* what) {
  if (result != CUDA_SUCCESS) [[unlikely]]
    throw error_of(result, what);
}

/// True iff CUDA can no longer be used in this process.
bool is_final(CUresult result);

/// Makes a context current for the calls of its scope, and restores the program's own context. A thread that had none
/// keeps the context of the first device, as CUDA itself would set it.
class Current {
 public:
  Current(CUcontext context, bool may_stay) {
    cu.ctx_get_current(&before_);
    changed_ = before_ != context;
    if (!changed_) return;
    check(cu.ctx_set_current(context), "making the context current");
    if (before_ == nullptr && may_stay) changed_ = false;
  }
  ~Current() {
    if (changed_) cu.ctx_set_current(before_);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  CUcontext before_ = nullptr;
  bool changed_ = false;
};

}  // namespace compute::cuda
