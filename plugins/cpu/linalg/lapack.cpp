// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/linalg/lapack.hpp"

#include <dlfcn.h>
#include <sys/resource.h>

#include <atomic>
#include <mutex>
#include <string_view>

#include "plugins/common/driver/shortage.hpp"
#include "plugins/common/op/core.hpp"
#include "plugins/cpu/isa/isa.hpp"

namespace compute::cpu {
namespace {

#if defined(__aarch64__)
#define COMPUTE_DEBIAN_FOLDER "/usr/lib/aarch64-linux-gnu"
#else
#define COMPUTE_DEBIAN_FOLDER "/usr/lib/x86_64-linux-gnu"
#endif

// Where Debian, Fedora and other systems have the build with OpenMP.
constexpr const char* kNames[] = {COMPUTE_DEBIAN_FOLDER "/openblas-openmp/libopenblas.so.0", "libopenblaso.so.0",
                                  "libopenblas.so.0"};
constexpr const char* kRemedy = "install OpenBLAS as built with OpenMP (Debian: libopenblas0-openmp)";
constexpr int kOpenmpBuild = 2;  // openblas_get_parallel()

template <class Function>
bool find(void* library, const std::string& name, Function& out_function) {
  out_function = reinterpret_cast<Function>(dlsym(library, name.c_str()));
  return out_function != nullptr;
}

template <class T>
bool find_routines(void* library, char letter, Lapack<T>& routines) {
  const auto name = [letter](const char* rest) { return letter + std::string(rest) + "_"; };
  return find(library, name("gemm"), routines.gemm) && find(library, name("trsm"), routines.trsm) &&
         find(library, name("potrf"), routines.potrf) && find(library, name("getrf"), routines.getrf) &&
         find(library, name("getrs"), routines.getrs) && find(library, name("getri"), routines.getri) &&
         find(library, name("geqrf"), routines.geqrf) && find(library, name("geqrt3"), routines.geqrt3) &&
         find(library, name("larft"), routines.larft) &&
         find(library, name(kIsComplex<T> ? "ungqr" : "orgqr"), routines.orgqr) &&
         find(library, name(kIsComplex<T> ? "heevd" : "syevd"), routines.syevd) &&
         find(library, name("geev"), routines.geev) && find(library, name("gesdd"), routines.gesdd);
}

template <class T>
bool find_real_routines(void* library, char letter, RealLapack<T>& routines) {
  const auto name = [letter](const char* rest) { return letter + std::string(rest) + "_"; };
  return find(library, name("dot"), routines.dot) && find(library, name("axpy"), routines.axpy) &&
         find(library, name("scal"), routines.scal) && find(library, name("gemv"), routines.gemv) &&
         find(library, name("symv"), routines.symv) && find(library, name("syr2k"), routines.syr2k) &&
         find(library, name("larfg"), routines.larfg) && find(library, name("stedc"), routines.stedc) &&
         find(library, name("sterf"), routines.sterf) && find(library, name("laed2"), routines.laed2) &&
         find(library, name("laed4"), routines.laed4) && find(library, name("lamrg"), routines.lamrg) &&
         find(library, name("bdsdc"), routines.bdsdc);
}

// OpenBLAS waits without end for memory that a limit of the process refuses.
bool is_limited() {
  for (const auto what : {RLIMIT_AS, RLIMIT_DATA}) {
    rlimit limit{};
    if (getrlimit(what, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) return true;
  }
  return false;
}

// OpenBLAS computes with kernels of an old instruction set on processors that are newer than itself.
void warn_of_old_kernels(void* library) {
  const char* (*get_core)() = nullptr;
  const InstructionSet widest = widest_instruction_set();
  if (widest == InstructionSet::baseline || !find(library, "openblas_get_corename", get_core)) return;
  const std::string_view core = get_core();
  for (const std::string_view old :
       {"Katmai", "Coppermine", "Northwood", "Prescott", "Banias", "Atom", "Core2", "Penryn", "Dunnington", "Nehalem",
        "Athlon", "Opteron", "Opteron_SSE3", "Barcelona", "Bobcat", "Nano"}) {
    if (core != old) continue;
    common::log(COMPUTE_LOG_WARNING, "load",
                "OpenBLAS does not know this processor and has chosen kernels for " + std::string(core) +
                    ", which make decompositions slow; OPENBLAS_CORETYPE=" +
                    (widest >= InstructionSet::avx512 ? "SKYLAKEX" : "HASWELL") +
                    " in the environment of the process chooses others, and so does a newer version");
  }
}

struct Library {
  LapackLibrary functions{};
  std::string found, error;  // one of them is empty
  std::string remedy;        // of the error

  Library() {
    error = common::reason_against_libraries();
    if (error.empty() && is_limited())
      error = "not opened: the process has a limit of memory (ulimit -v or -d), under which OpenBLAS may hang";
    if (!error.empty()) return;
    remedy = kRemedy;
    for (const char* const name : kNames) {
      const std::string reason = open(name);
      if (reason.empty()) {
        error.clear();
        return;
      }
      error += (error.empty() ? "" : "; ") + reason;
    }
  }

 private:
  // Why this file cannot be used, or an empty string.
  std::string open(const char* name) {
    // All builds define the same symbols, so the library must look for its own first. The sanitizers do not allow it.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    constexpr int kFlags = RTLD_NOW | RTLD_LOCAL;
#else
    constexpr int kFlags = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;
#endif
    void* const library = dlopen(name, kFlags);
    if (library == nullptr) {
      const char* const message = dlerror();
      if (message == nullptr) return std::string(name) + ": cannot be opened";
      common::throw_if_short(message);
      return message;
    }
    const std::string start = std::string(name) + ": ";
    int (*get_parallel)() = nullptr;
    const char* (*get_config)() = nullptr;
    if (!find(library, "openblas_get_parallel", get_parallel) || !find(library, "openblas_get_config", get_config))
      return start + "has no openblas_get_parallel";
    // Other builds share one pool of threads in the process, or are not safe to call from several threads.
    if (get_parallel() != kOpenmpBuild) return start + "is not built with OpenMP";
    if (!find(library, "omp_get_max_threads", functions.openmp.omp_get_max_threads) ||
        !find(library, "omp_set_num_threads", functions.openmp.omp_set_num_threads))
      return start + "its OpenMP has no omp_set_num_threads";
    if (!find_routines(library, 's', functions.s) || !find_routines(library, 'd', functions.d) ||
        !find_routines(library, 'c', functions.c) || !find_routines(library, 'z', functions.z) ||
        !find_real_routines(library, 's', functions.real_s) || !find_real_routines(library, 'd', functions.real_d))
      return start + "lacks routines of LAPACK";
    Dl_info info;
    if (dladdr(reinterpret_cast<const void*>(get_parallel), &info) != 0 && info.dli_fname != nullptr)
      found = info.dli_fname;
    found += std::string(" ") + get_config();
    warn_of_old_kernels(library);
    return "";
  }
};

// Never freed, because threads may still be inside.
std::atomic<const Library*> opened{nullptr};

}  // namespace

const LapackLibrary* lapack(std::string* out_reason) {
  static std::mutex mutex;
  const Library* library = opened.load(std::memory_order_acquire);
  if (library == nullptr) {
    const std::lock_guard lock(mutex);
    library = opened.load(std::memory_order_relaxed);
    if (library == nullptr) opened.store(library = new Library, std::memory_order_release);
  }
  if (library->error.empty()) return &library->functions;
  if (out_reason != nullptr) *out_reason = library->error + (library->remedy.empty() ? "" : "; " + library->remedy);
  return nullptr;
}

common::Requirement report_lapack() {
  common::Requirement report;
  report.name = "OpenBLAS";
  report.effect = "decompositions and solvers of matrices are not supported";
  const Library* const library = opened.load(std::memory_order_acquire);
  if (library == nullptr) return report;
  for (const char* const name : kNames) report.tried += (report.tried.empty() ? "" : ", ") + std::string(name);
  report.found = library->found;
  report.error = library->error;
  report.remedy = library->remedy;
  report.state = library->error.empty() ? COMPUTE_PLUGIN_LIBRARY_FOUND : COMPUTE_PLUGIN_LIBRARY_MISSING;
  return report;
}

}  // namespace compute::cpu
