// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/contract/onednn_primitives.hpp"

#include <dlfcn.h>

#include <atomic>
#include <mutex>
#include <string>
#include <type_traits>

#include "plugins/common/driver/shortage.hpp"
#include "plugins/common/op/core.hpp"

namespace compute::cpu {
namespace {

constexpr const char* kName = "libdnnl.so.2";

template <class Function>
bool find(void* library, const char* name, Function& out_function) {
  out_function = reinterpret_cast<Function>(dlsym(library, name));
  return out_function != nullptr;
}

/// Finds the functions and makes the engine and the stream; false if one is missing.
bool find_primitives(void* library, OnednnPrimitives& p) {
  bool all = true;
#define COMPUTE_FIND(name) all = find(library, #name, p.name) && all
  COMPUTE_FIND(dnnl_engine_create);
  COMPUTE_FIND(dnnl_stream_create);
  COMPUTE_FIND(dnnl_memory_desc_init_by_strides);
  COMPUTE_FIND(dnnl_memory_desc_init_by_tag);
  COMPUTE_FIND(dnnl_memory_desc_get_size);
  COMPUTE_FIND(dnnl_memory_desc_equal);
  COMPUTE_FIND(dnnl_dilated_convolution_forward_desc_init);
  COMPUTE_FIND(dnnl_dilated_convolution_backward_data_desc_init);
  COMPUTE_FIND(dnnl_dilated_convolution_backward_weights_desc_init);
  COMPUTE_FIND(dnnl_primitive_attr_create);
  COMPUTE_FIND(dnnl_primitive_attr_set_scratchpad_mode);
  COMPUTE_FIND(dnnl_primitive_attr_destroy);
  COMPUTE_FIND(dnnl_primitive_desc_create);
  COMPUTE_FIND(dnnl_reorder_primitive_desc_create);
  COMPUTE_FIND(dnnl_primitive_desc_query);
  COMPUTE_FIND(dnnl_primitive_desc_query_md);
  COMPUTE_FIND(dnnl_primitive_desc_destroy);
  COMPUTE_FIND(dnnl_primitive_create);
  COMPUTE_FIND(dnnl_primitive_execute);
  COMPUTE_FIND(dnnl_primitive_destroy);
  COMPUTE_FIND(dnnl_memory_create);
  COMPUTE_FIND(dnnl_memory_destroy);
#undef COMPUTE_FIND
  return all && p.dnnl_engine_create(&p.engine, onednn_codes::kCpu, 0) == onednn_codes::kSuccess &&
         p.dnnl_stream_create(&p.stream, p.engine, onednn_codes::kInOrder) == onednn_codes::kSuccess;
}

struct Library {
  Onednn functions{};
  std::string found, error;  // one of them is empty

  Library() {
    error = common::reason_against_libraries();
    if (error.empty()) error = open();
  }

 private:
  /// Why the library cannot be used, or an empty string.
  std::string open() {
    void* const library = dlopen(kName, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      const char* const message = dlerror();
      if (message == nullptr) return "cannot be opened";
      common::throw_if_short(message);
      return message;
    }
    // dnnl_version_t
    struct Version {
      int major, minor, patch;
      const char* hash;
      unsigned cpu_runtime;
    };
    constexpr unsigned kSequential = 1, kOpenmp = 2;
    const Version* (*version)() = nullptr;
    const std::string name = std::string(kName) + ": ";
    if (!find(library, "dnnl_version", version)) return name + "has no dnnl_version";
    const Version& v = *version();
    if (v.major != 2) return name + "is not of version 2";
    if (v.cpu_runtime != kSequential && v.cpu_runtime != kOpenmp)
      return name + "uses its own thread pool (runtime " + std::to_string(v.cpu_runtime) + ")";
    // The OpenMP among the library's own dependencies is the one that it runs on.
    if (v.cpu_runtime == kOpenmp && (!find(library, "omp_get_max_threads", functions.openmp.omp_get_max_threads) ||
                                     !find(library, "omp_set_num_threads", functions.openmp.omp_set_num_threads))) {
      return name + "its OpenMP has no omp_set_num_threads, so it cannot be limited to one thread";
    }
    if (!find_primitives(library, functions.primitives)) return name + "lacks functions, or has no engine";
    Dl_info info;
    if (dladdr(reinterpret_cast<const void*>(version), &info) != 0 && info.dli_fname != nullptr) found = info.dli_fname;
    found += " " + std::to_string(v.major) + "." + std::to_string(v.minor) + "." + std::to_string(v.patch);
    return "";
  }
};

// Never freed, because threads may still be inside.
std::atomic<const Library*> opened{nullptr};

}  // namespace

const Onednn* onednn() {
  static std::mutex mutex;
  const Library* library = opened.load(std::memory_order_acquire);
  if (library == nullptr) {
    const std::lock_guard lock(mutex);
    library = opened.load(std::memory_order_relaxed);
    if (library == nullptr) opened.store(library = new Library, std::memory_order_release);
  }
  return library->error.empty() ? &library->functions : nullptr;
}

common::Requirement report_onednn() {
  common::Requirement report;
  report.name = "oneDNN";
  report.effect = "convolutions use the plugin's own kernels, which are slower";
  const Library* const library = opened.load(std::memory_order_acquire);
  if (library == nullptr) return report;
  report.tried = kName;
  report.found = library->found;
  report.error = library->error;
  report.remedy = "install version 2 of oneDNN (Debian: libdnnl2)";
  report.state = library->error.empty() ? COMPUTE_PLUGIN_LIBRARY_FOUND : COMPUTE_PLUGIN_LIBRARY_MISSING;
  return report;
}

}  // namespace compute::cpu
