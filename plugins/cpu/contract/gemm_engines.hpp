// SPDX-License-Identifier: Apache-2.0
// The two matrix libraries that the CPU's products use if they are installed: oneDNN's sgemm, and OpenBLAS built with
// OpenMP. They are opened at first need, from versioned names, and stay open, because OpenMP's threads must not lose
// their code.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plugins/cpu/contract/onednn_primitives.hpp"

namespace compute::cpu {

/// The state of one library, for the load report.
struct LibraryReport {
  struct Attempt {
    std::string name;      // as passed to dlopen
    std::string error;     // the system's message, or why it is refused; empty for the file in use
    bool refused = false;  // it exists, but is refused
  };
  std::string library;  // "oneDNN", "OpenBLAS"
  std::string purpose;
  std::string remedy;  // what to install
  std::vector<Attempt> attempts;
  std::string path;     // of the file in use; empty if there is none
  std::string version;  // "2.6.3"; for OpenBLAS with the processor that its kernels are made for

  /// Why no file is in use; the reason for an existing file takes precedence over a missing one. Empty if one is in
  /// use.
  std::string error() const;
};

/// Selects OpenBLAS's kernels through the environment, unless the user has: its own table lacks processors that are
/// newer than it. OpenBLAS reads the variable when it is loaded. Call it once, when the plugin is opened: setenv is not
/// thread-safe.
void prepare_engine_environment();

/// The thread count of the OpenMP library that a matrix library uses.
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

/// oneDNN's product, in which versions 2 and 3 agree, and its primitives, in which they do not.
struct Onednn {
  /// c = alpha · op(a) op(b) + beta · c, row-major; op transposes for 'T'. False if oneDNN ran out of memory. Runs only
  /// on the calling thread.
  bool sgemm(char a_transposed, char b_transposed, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
             int64_t lda, const float* b, int64_t ldb, float beta, float* c, int64_t ldc) const;

  int (*dnnl_sgemm)(char, char, int64_t, int64_t, int64_t, float, const float*, int64_t, const float*, int64_t, float,
                    float*, int64_t);
  Openmp openmp;
  std::optional<OnednnPrimitives> primitives;  // of version 2
};

/// OpenBLAS with 32-bit integers: extents and leading dimensions must fit. Calls are made under a OneOpenmpThread.
///
/// Only an OpenMP build is used. Serial builds of distributions allocate their work memory without a lock: two threads
/// that multiply at the same time may get the same memory, and wrong products. A build with its own threads has a pool
/// whose size belongs to the whole process.
struct Openblas {
  template <class Scalar, class Pointer, class Output>
  using Gemm = void (*)(int order, int a_transposed, int b_transposed, int m, int n, int k, Scalar alpha, Pointer a,
                        int lda, Pointer b, int ldb, Scalar beta, Output c, int ldc);
  Gemm<float, const float*, float*> sgemm;
  Gemm<double, const double*, double*> dgemm;
  Gemm<const void*, const void*, void*> cgemm, zgemm;
  Openmp openmp;
  bool suits_processor;  // its kernels use the widest vectors that this processor has

  static constexpr int kRowMajor = 101;
  static constexpr int kNoTranspose = 111;
  static constexpr int kTranspose = 112;
};

/// The libraries, opened at the first call; NULL if no usable one exists. Throws OUT_OF_MEMORY if something has run
/// out, such as file descriptors; the next call tries again.
///
/// Threads: any thread.
const Onednn* onednn();
const Openblas* openblas();

/// What was tried and found. Opens the libraries if they have not been opened yet.
std::vector<LibraryReport> engine_library_reports();

/// True iff a library has been searched; for tests that nothing was opened too early.
bool engines_touched();

}  // namespace compute::cpu
