// SPDX-License-Identifier: Apache-2.0
// The thread count of an OpenMP library that a library of another vendor runs on.
#pragma once

namespace compute::cpu {

struct Openmp {
  int (*omp_get_max_threads)() = nullptr;  // both NULL for a library without OpenMP
  void (*omp_set_num_threads)(int) = nullptr;
};

/// While it lives, the calling thread's OpenMP thread count is 1. The count belongs to that thread, and the user's own
/// OpenMP code may use it, so it is restored.
class OneOpenmpThread {
 public:
  explicit OneOpenmpThread(const Openmp& openmp)
      : openmp_(openmp), before_(openmp.omp_get_max_threads != nullptr ? openmp.omp_get_max_threads() : 1) {
    if (before_ != 1) openmp_.omp_set_num_threads(1);
  }
  ~OneOpenmpThread() {
    if (before_ != 1) openmp_.omp_set_num_threads(before_);
  }
  OneOpenmpThread(const OneOpenmpThread&) = delete;
  OneOpenmpThread& operator=(const OneOpenmpThread&) = delete;

 private:
  const Openmp& openmp_;
  const int before_;
};

}  // namespace compute::cpu
