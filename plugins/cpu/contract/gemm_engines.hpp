// SPDX-License-Identifier: Apache-2.0
// The two matrix libraries that the CPU's products use where they are installed: oneDNN's sgemm and OpenBLAS built on
// OpenMP. They are opened at first need, from versioned names, and stay open: OpenMP's threads may not lose their code.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace compute::cpu {

/// What became of one library: for the load report.
struct LibraryReport {
  struct Attempt {
    std::string name;      // as given to the system
    std::string error;     // the system's words, or why it will not do; empty for the one that is used
    bool refused = false;  // it is there, but will not do
  };
  std::string library;  // "oneDNN", "OpenBLAS"
  std::string purpose;
  std::string remedy;  // what to install
  std::vector<Attempt> attempts;
  std::string path;     // of the file in use; empty if there is none
  std::string version;  // "2.6.3"; for OpenBLAS with the processor that its kernels are made for

  /// Why none is in use: of a file that is there, rather than of one that is not. Empty if one is.
  std::string error() const;
};

/// Chooses OpenBLAS's kernels through the environment, unless the user has: its own table misses processors that are
/// newer than it. OpenBLAS looks when it is loaded. Call it once, when the plugin is opened: setenv is not thread-safe.
void prepare_engine_environment();

/// The thread count of the OpenMP that a library runs on.
struct Openmp {
  int (*omp_get_max_threads)() = nullptr;  // both NULL for a library without OpenMP
  void (*omp_set_num_threads)(int) = nullptr;
};

/// While it lives, the calling thread's OpenMP thread count is 1. The count belongs to that thread, and perhaps to the
/// user's own OpenMP code, which gets it back.
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

/// oneDNN, as far as versions 2 and 3 agree.
struct Onednn {
  /// c = alpha · op(a) op(b) + beta · c, row-major; op transposes for 'T'. False if oneDNN ran out of memory. Runs on
  /// the calling thread alone.
  bool sgemm(char a_transposed, char b_transposed, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
             int64_t lda, const float* b, int64_t ldb, float beta, float* c, int64_t ldc) const;

  int (*dnnl_sgemm)(char, char, int64_t, int64_t, int64_t, float, const float*, int64_t, const float*, int64_t, float,
                    float*, int64_t);
  Openmp openmp;
};

/// OpenBLAS with 32-bit integers: extents and leading dimensions have to fit. Calls are made under a OneOpenmpThread.
///
/// Only a build on OpenMP will do. A serial one, as distributions build it, hands out its work memory without a lock:
/// two threads that multiply at once may get the same, and wrong products. One on threads has a pool of its own, whose
/// size is the whole process's.
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

/// The libraries, opened at the first call; NULL where there is none that can be used. Throws OUT_OF_MEMORY where
/// something has run out, file descriptors for one; the next call tries again.
///
/// Threads: any thread.
const Onednn* onednn();
const Openblas* openblas();

/// What was tried and found. Opens the libraries, if nothing has yet.
std::vector<LibraryReport> engine_library_reports();

/// True iff a library has been looked for; of use to those who must know that nothing was opened too early.
bool engines_touched();

}  // namespace compute::cpu
