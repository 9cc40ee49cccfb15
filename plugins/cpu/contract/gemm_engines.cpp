// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/contract/gemm_engines.hpp"

#include <dlfcn.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>

#include "plugins/common/driver/shortage.hpp"
#include "plugins/common/op/core.hpp"

namespace compute::cpu {
namespace {

std::atomic<bool> touched{false};

constexpr const char* kOnednnNames[] = {"libdnnl.so.3", "libdnnl.so.2"};

// Full paths: the serial, OpenMP and pthread builds share one SONAME, and which one a bare name finds depends on the
// system's alternatives and on libraries loaded before. The serial build is listed so that the report says why it is
// unsuitable.
constexpr const char* kOpenblasNames[] = {
#if defined(__x86_64__)
    "/usr/lib/x86_64-linux-gnu/openblas-openmp/libopenblas.so.0",
    "/usr/lib/x86_64-linux-gnu/openblas-serial/libopenblas.so.0",
#elif defined(__aarch64__)
    "/usr/lib/aarch64-linux-gnu/openblas-openmp/libopenblas.so.0",
    "/usr/lib/aarch64-linux-gnu/openblas-serial/libopenblas.so.0",
#elif defined(__riscv) && __riscv_xlen == 64
    "/usr/lib/riscv64-linux-gnu/openblas-openmp/libopenblas.so.0",
    "/usr/lib/riscv64-linux-gnu/openblas-serial/libopenblas.so.0",
#elif defined(__powerpc64__) && defined(__LITTLE_ENDIAN__)
    "/usr/lib/powerpc64le-linux-gnu/openblas-openmp/libopenblas.so.0",
    "/usr/lib/powerpc64le-linux-gnu/openblas-serial/libopenblas.so.0",
#endif
    "/usr/lib64/libopenblaso.so.0",
    "/usr/lib64/libopenblas.so.0",
    "/usr/lib/libopenblas.so.0",
    "/usr/local/lib/libopenblas.so.0",
};

template <class Function>
bool find(void* library, const char* name, Function& out_function) {
  out_function = reinterpret_cast<Function>(dlsym(library, name));
  return out_function != nullptr;
}

/// The OpenMP among the library's own dependencies, so that it is the one that it runs on.
bool find_openmp(void* library, Openmp& out_openmp) {
  return find(library, "omp_get_max_threads", out_openmp.omp_get_max_threads) &&
         find(library, "omp_set_num_threads", out_openmp.omp_set_num_threads);
}

constexpr const char* kNoOpenmp = "its OpenMP has no omp_set_num_threads, so it cannot be limited to one thread";

std::string file_of(const void* symbol) {
  Dl_info info;
  return dladdr(symbol, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

/// The library of this name that was installed with the plugins, in `libraries` next to their folder; empty if there is
/// none. Self-contained packages put libraries there.
std::string bundled(const char* name) {
  const std::string plugin = file_of(reinterpret_cast<const void*>(&touched));
  const size_t folder = plugin.rfind("/plugins/");
  if (folder == std::string::npos) return "";
  std::string path = plugin.substr(0, folder) + "/libraries/" + name;
  return access(path.c_str(), R_OK) == 0 ? path : "";
}

/// Opens the first of `names` that `accept` takes; accept returns why not, or an empty string. Throws OUT_OF_MEMORY for
/// want of something.
template <class Accept>
bool open_first(std::span<const char* const> names, int binding, LibraryReport& report, Accept accept) {
  touched.store(true, std::memory_order_relaxed);
  if (const std::string reason = common::reason_against_libraries(); !reason.empty()) {
    report.attempts.push_back({names.front(), reason, true});
    return false;
  }
  for (const char* name : names) {
    void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL | binding);
    if (library == nullptr) {
      const char* error = dlerror();
      if (error != nullptr) common::throw_if_short(error);
      report.attempts.push_back({name, error != nullptr ? error : "cannot be opened"});
      continue;
    }
    std::string reason = accept(library);
    report.attempts.push_back({name, reason, !reason.empty()});
    if (reason.empty()) return true;
    // It stays open: a threaded build may have started threads.
  }
  return false;
}

struct OnednnLibrary {
  Onednn functions{};
  bool usable = false;
  LibraryReport report{
      "oneDNN", "float32 matrix products and convolutions", "install libdnnl2 or newer (Debian: libdnnl-dev)", {}, {},
      {}};

  OnednnLibrary() {
    usable = open_first(kOnednnNames, 0, report, [this](void* library) -> std::string {
      // The common beginning of dnnl_version_t in versions 2 and 3.
      struct Version {
        int major, minor, patch;
        const char* hash;
        unsigned cpu_runtime;
      };
      constexpr unsigned kSequential = 1;
      constexpr unsigned kOpenmp = 2;
      const Version* (*version)() = nullptr;
      if (!find(library, "dnnl_sgemm", functions.dnnl_sgemm)) return "has no dnnl_sgemm";
      if (!find(library, "dnnl_version", version)) return "has no dnnl_version";
      const unsigned runtime = version()->cpu_runtime;
      if (runtime == kOpenmp) {
        if (!find_openmp(library, functions.openmp)) return kNoOpenmp;
      } else if (runtime != kSequential) {
        return "uses its own thread pool (runtime " + std::to_string(runtime) + ")";
      }
      report.version = std::to_string(version()->major) + "." + std::to_string(version()->minor) + "." +
                       std::to_string(version()->patch);
      if (version()->major == 2) functions.primitives = find_onednn_primitives(library);
      report.path = file_of(reinterpret_cast<const void*>(functions.dnnl_sgemm));
      return "";
    });
  }
};

/// True iff kernels of OpenBLAS's processor type `core` use the widest vectors of this machine.
bool suits_this_processor(const char* core) {
#if defined(__x86_64__)
  const auto is = [core](std::initializer_list<const char*> names) {
    for (const char* name : names) {
      if (strcasecmp(core, name) == 0) return true;
    }
    return false;
  };
  const bool avx512_kernels = is({"SkylakeX", "Cooperlake", "Sapphirerapids"});
  if (__builtin_cpu_supports("x86-64-v4")) return avx512_kernels;
  if (__builtin_cpu_supports("x86-64-v3")) return avx512_kernels || is({"Haswell", "Zen", "Excavator"});
  return true;
#else
  (void)core;
  return true;
#endif
}

// A program may have loaded another OpenBLAS globally. All builds define the same symbols and bind even their own
// functions by name, so that ours would use the other's memory functions, which may have no lock.
#if defined(RTLD_DEEPBIND) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
constexpr int kOwnSymbols = RTLD_DEEPBIND;
#else
constexpr int kOwnSymbols = 0;  // the sanitizers refuse it, since their own functions are found by name too
#endif

// OpenBLAS maps 128 MiB for every thread that multiplies concurrently, some of it while it is loaded. If the system
// refuses, it retries forever.
std::string limit_against_openblas() {
  for (const auto& [resource, name] : {std::pair{RLIMIT_AS, "RLIMIT_AS"}, std::pair{RLIMIT_DATA, "RLIMIT_DATA"}}) {
    rlimit limit{};
    if (getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
      return std::string("it hangs when it reaches a limit of memory, and this process has ") + name;
  }
  return "";
}

struct OpenblasLibrary {
  Openblas functions{};
  bool usable = false;
  LibraryReport report{"OpenBLAS", "float64, complex and small matrix products", "install libopenblas0-openmp", {}, {},
                       {}};

  OpenblasLibrary() {
    const std::string own = bundled("libopenblas.so.0");
    std::vector<const char*> names(std::begin(kOpenblasNames), std::end(kOpenblasNames));
    if (!own.empty()) names.insert(names.begin(), own.c_str());
    if (std::string reason = limit_against_openblas(); !reason.empty()) {
      report.attempts.push_back({names.front(), std::move(reason), true});
      report.remedy = "remove the limit (ulimit -v unlimited -d unlimited)";
      return;
    }
    usable = open_first(names, kOwnSymbols, report, [this](void* library) -> std::string {
      int (*parallel)() = nullptr;
      const char* (*config)() = nullptr;
      const char* (*core_name)() = nullptr;
      if (!find(library, "openblas_get_parallel", parallel) || !find(library, "openblas_get_config", config) ||
          !find(library, "openblas_get_corename", core_name)) {
        return "is not OpenBLAS";
      }
      constexpr int kSerial = 0;
      constexpr int kOpenmp = 2;
      if (parallel() == kSerial) return "is a serial build, which may give wrong results when several threads call it";
      if (parallel() != kOpenmp) return "uses its own threads";
      if (!find_openmp(library, functions.openmp)) return kNoOpenmp;
      if (std::strstr(config(), "USE64BITINT") != nullptr) return "uses 64-bit integers";
      if (!find(library, "cblas_sgemm", functions.sgemm) || !find(library, "cblas_dgemm", functions.dgemm) ||
          !find(library, "cblas_cgemm", functions.cgemm) || !find(library, "cblas_zgemm", functions.zgemm)) {
        return "has no cblas_*gemm";
      }
      functions.suits_processor = suits_this_processor(core_name());
      // "OpenBLAS 0.3.21 DYNAMIC_ARCH ...": the second word.
      const std::string words = config();
      const size_t begin = words.find(' ') + 1;
      report.version = words.substr(begin, words.find(' ', begin) - begin) + " (" + core_name() + ")";
      report.path = file_of(reinterpret_cast<const void*>(functions.sgemm));
      return "";
    });
  }
};

// Never freed, because threads may still be inside. A temporary shortage is not remembered: the next call looks again.
// If a selected library cannot be used, one warning says so.
template <class Library>
const Library& opened(std::string_view selected_by) {
  static std::mutex mutex;
  static std::atomic<const Library*> kept{nullptr};
  if (const Library* library = kept.load(std::memory_order_acquire)) return *library;
  std::unique_lock lock(mutex);
  if (const Library* library = kept.load(std::memory_order_relaxed)) return *library;
  const Library* const library = new Library;
  kept.store(library, std::memory_order_release);
  lock.unlock();
  if (!library->usable && common::setting("COMPUTE_CPU_MATMUL") == selected_by) {
    const LibraryReport& report = library->report;
    common::log(COMPUTE_LOG_WARNING, "load",
                report.library + ", which COMPUTE_CPU_MATMUL selects, cannot be used: " + report.error() + "; " +
                    report.remedy);
  }
  return *library;
}

const OnednnLibrary& onednn_library() { return opened<OnednnLibrary>("onednn"); }
const OpenblasLibrary& openblas_library() { return opened<OpenblasLibrary>("openblas"); }

}  // namespace

std::string LibraryReport::error() const {
  if (!path.empty() || attempts.empty()) return "";
  for (const Attempt& attempt : attempts) {
    if (attempt.refused) return attempt.name + ": " + attempt.error;
  }
  return attempts.back().error;
}

void prepare_engine_environment() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  // Forced on a processor without these instructions, such kernels die of SIGILL.
  if (__builtin_cpu_supports("x86-64-v4")) {
    setenv("OPENBLAS_CORETYPE", "SkylakeX", 0);
  } else if (__builtin_cpu_supports("x86-64-v3")) {
    setenv("OPENBLAS_CORETYPE", "Haswell", 0);
  }
#endif
}

bool Onednn::sgemm(char a_transposed, char b_transposed, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
                   int64_t lda, const float* b, int64_t ldb, float beta, float* c, int64_t ldc) const {
  const OneOpenmpThread one(openmp);
  return dnnl_sgemm(a_transposed, b_transposed, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc) == 0;
}

const Onednn* onednn() {
  const OnednnLibrary& library = onednn_library();
  return library.usable ? &library.functions : nullptr;
}

const Openblas* openblas() {
  const OpenblasLibrary& library = openblas_library();
  return library.usable ? &library.functions : nullptr;
}

std::vector<LibraryReport> engine_library_reports() { return {onednn_library().report, openblas_library().report}; }

bool engines_touched() { return touched.load(std::memory_order_relaxed); }

}  // namespace compute::cpu
