// SPDX-License-Identifier: Apache-2.0
#include "plugins/cuda/libraries.hpp"

#include <dlfcn.h>
#include <sys/auxv.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>

#include "plugins/common/driver/compiling.hpp"
#include "plugins/common/driver/packages.hpp"
#include "plugins/common/driver/shortage.hpp"
#include "plugins/common/op/core.hpp"

namespace compute::cuda {

DriverApi cu{};

namespace {

std::string version_text(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

// Of cuFFT and cuSOLVER: 12100 for 12.1.
std::string short_version(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 100);
}

std::string file_of(const void* symbol) {
  Dl_info info;
  return dladdr(symbol, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

void add_line(std::string& text, const std::string& line) { text += (text.empty() ? "" : "\n") + line; }

// Folders that the system's search does not cover; "" is that search itself.
std::vector<std::string> driver_folders() {
  return {"",
          "/usr/lib/x86_64-linux-gnu/",
          "/usr/lib/aarch64-linux-gnu/",
          "/usr/lib64/",
          "/usr/lib/wsl/lib/",
          "/run/opengl-driver/lib/",
          "/usr/local/nvidia/lib64/"};
}

std::vector<std::string> toolkit_folders(int major) {
  std::vector<std::string> folders = {""};
  if (getauxval(AT_SECURE) == 0) {
    for (const char* home : {std::getenv("CUDA_HOME"), std::getenv("CUDA_PATH")}) {
      if (home != nullptr && *home == '/') folders.push_back(std::string(home) + "/lib64/");
    }
  }
  folders.push_back("/usr/local/cuda-" + std::to_string(major) + "/lib64/");
  folders.push_back("/usr/local/cuda/lib64/");
  folders.push_back("/opt/cuda/lib64/");
  const std::vector<std::string> packages = common::package_folders("nvidia/*/lib");
  folders.insert(folders.end(), packages.begin(), packages.end());
  return folders;
}

/// Tries `name` in every folder. `accept` returns why a library that was opened is of no use, or "".
template <class Accept>
bool open_one(const std::string& name, const std::vector<std::string>& folders, LibraryReport& report,
              const Accept& accept) {
  if (const std::string reason = common::reason_against_libraries(); !reason.empty()) {
    report.error = reason;
    report.state = COMPUTE_PLUGIN_LIBRARY_UNUSABLE;
    return false;
  }
  for (const std::string& folder : folders) {
    const std::string path = folder + name;
    add_line(report.tried, path);
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      // The system's search gives the useful message; other folders without the file are not reported.
      const char* error = dlerror();
      const std::string text = error != nullptr ? error : "cannot be opened";
      common::throw_if_short(text);
      if (report.error.empty() || text.find("No such file") == std::string::npos) report.error = text;
      continue;
    }
    const std::string reason = accept(library);
    if (reason.empty()) {
      report.error.clear();
      report.state = COMPUTE_PLUGIN_LIBRARY_FOUND;
      return true;
    }
    // It stays open, because vendors' libraries leave threads and handlers.
    report.error = path + " " + reason;
    report.state = COMPUTE_PLUGIN_LIBRARY_UNUSABLE;
    return false;
  }
  if (report.state == COMPUTE_PLUGIN_LIBRARY_NOT_SEARCHED) report.state = COMPUTE_PLUGIN_LIBRARY_MISSING;
  return false;
}

template <class Function>
bool find(void* library, const char* symbol, Function& out) {
  out = reinterpret_cast<Function>(dlsym(library, symbol));
  return out != nullptr;
}

// ---- The driver -----------------------------------------------------------------------------------------------------

struct Driver {
  LibraryReport report;
  bool usable = false;
  int version = 0;

  Driver() {
    report.name = "NVIDIA driver";
    report.effect = "there are no cuda devices";
    report.remedy =
        "install NVIDIA's driver (Debian: nvidia-driver); in a container, start it with the GPU's devices and driver "
        "(docker run --gpus all)";
    report.required = true;
    usable = open_one("libcuda.so.1", driver_folders(), report, [this](void* library) { return accept(library); });
    if (!usable) cu = {};
    if (report.state == COMPUTE_PLUGIN_LIBRARY_MISSING) {
      if (report.error.find("No such file") != std::string::npos) {
        report.error = "libcuda.so.1 was not found in the library path and " +
                       std::to_string(driver_folders().size() - 1) + " other directories";
      }
    }
  }

  std::string accept(void* library) {
    const char* missing = nullptr;
#define COMPUTE_CUDA_FIND(member, symbol, parameters) \
  if (!find(library, #symbol, cu.member) && missing == nullptr) missing = #symbol;
    COMPUTE_CUDA_FUNCTIONS(COMPUTE_CUDA_FIND)
#undef COMPUTE_CUDA_FIND
#define COMPUTE_CUDA_FIND(member, symbol, parameters) find(library, #symbol, cu.member);
    COMPUTE_CUDA_NEWER_FUNCTIONS(COMPUTE_CUDA_FIND)
#undef COMPUTE_CUDA_FIND
    report.found = file_of(reinterpret_cast<const void*>(cu.init));
    if (cu.driver_get_version != nullptr) cu.driver_get_version(&version);
    if (version > 0) report.found += ", CUDA " + version_text(version);
    if (missing != nullptr) {
      report.remedy = "update NVIDIA's driver to one for CUDA 12.0 (525) or later";
      return std::string("has no ") + missing + (version > 0 ? "; it is for CUDA " + version_text(version) : "");
    }
    const CUresult result = cu.init(0);
    if (result == CUDA_SUCCESS) return "";
    const char *name = nullptr, *text = nullptr;
    cu.get_error_name(result, &name);
    cu.get_error_string(result, &text);
    switch (result) {
      case CUDA_ERROR_STUB_LIBRARY:
        report.remedy = "remove the stub's directory from the library path and install NVIDIA's driver";
        break;
      case CUDA_ERROR_NO_DEVICE:
        report.remedy =
            "the driver sees no GPU: check nvidia-smi and CUDA_VISIBLE_DEVICES; in a container, start it with the "
            "GPU's devices (docker run --gpus all)";
        break;
      default:
        report.remedy = "check nvidia-smi; reboot after a driver update";
        break;
    }
    return "cannot be initialized: cuInit returned " + std::to_string(result) +
           (name != nullptr ? std::string(", ") + name : "") + (text != nullptr ? std::string(", ") + text : "") +
           (result == CUDA_ERROR_STUB_LIBRARY ? "; it is the toolkit's stub library" : "");
  }
};

// ---- NVRTC ----------------------------------------------------------------------------------------------------------

// A compiler that is older than the driver makes code that the driver takes; a newer major version may not.
std::vector<int> majors_by_preference(int driver_version) {
  std::vector<int> majors = {13, 12, 11};
  const int driver_major = driver_version / 1000;
  if (driver_major > 0) {
    std::stable_partition(majors.begin(), majors.end(), [&](int major) { return major <= driver_major; });
  }
  return majors;
}

// A library of the CUDA toolkit.
struct ToolkitLibrary {
  LibraryReport report;
  bool usable = false;

 protected:
  /// `name` gives the name of the file in a major version of the toolkit.
  template <class Name, class Accept>
  void open(int driver_version, const Name& name, const Accept& accept) {
    const common::Compiling compiling;
    for (const int major : majors_by_preference(driver_version)) {
      usable = open_one(name(major), toolkit_folders(major), report, accept);
      if (usable) return;
    }
  }
};

struct NvrtcLibrary : ToolkitLibrary {
  Nvrtc nvrtc;

  explicit NvrtcLibrary(int driver_version) {
    report.name = "NVRTC";
    report.effect = "cuda devices have memory and matrix products only: no other op, no kernels from source";
    report.remedy =
        "install libnvrtc of the CUDA toolkit (pip: nvidia-cuda-nvrtc; Debian: libnvrtc12), or set CUDA_HOME";
    open(
        driver_version,
        [](int major) { return "libnvrtc.so." + (major == 11 ? std::string("11.2") : std::to_string(major)); },
        [this](void* library) { return accept(library); });
  }

  std::string accept(void* library) {
    const char* missing = nullptr;
#define COMPUTE_NVRTC_FIND(member, symbol, result, parameters) \
  if (!find(library, #symbol, nvrtc.api.member) && missing == nullptr) missing = #symbol;
    COMPUTE_NVRTC_FUNCTIONS(COMPUTE_NVRTC_FIND)
#undef COMPUTE_NVRTC_FIND
    if (missing != nullptr) return std::string("has no ") + missing;
    int count = 0;
    nvrtc.api.version(&nvrtc.major, &nvrtc.minor);
    if (nvrtc.api.get_num_supported_archs(&count) == NVRTC_SUCCESS && count > 0) {
      nvrtc.architectures.resize(static_cast<size_t>(count));
      nvrtc.api.get_supported_archs(nvrtc.architectures.data());
    }
    if (nvrtc.architectures.empty()) return "reports no supported architecture";
    std::sort(nvrtc.architectures.begin(), nvrtc.architectures.end());
    report.found = file_of(reinterpret_cast<const void*>(nvrtc.api.version)) + ", " + std::to_string(nvrtc.major) +
                   "." + std::to_string(nvrtc.minor);
    return "";
  }
};

// In `accept` of the libraries below: notes the first function that `handle` lacks.
#define COMPUTE_FIND(member, symbol, result, parameters) \
  if (!find(handle, #symbol, library.api.member) && missing == nullptr) missing = #symbol;

// ---- cuBLASLt -------------------------------------------------------------------------------------------------------

struct CublasLtLibrary : ToolkitLibrary {
  CublasLt library;

  explicit CublasLtLibrary(int driver_version) {
    report.name = "cuBLASLt";
    report.effect = "matrix products use a generated kernel, which is slower";
    report.remedy =
        "install libcublasLt of the CUDA toolkit (pip: nvidia-cublas; Debian: libcublas12), or set CUDA_HOME";
    open(
        driver_version, [](int major) { return "libcublasLt.so." + std::to_string(major); },
        [this](void* handle) { return accept(handle); });
  }

  std::string accept(void* handle) {
    const char* missing = nullptr;
    COMPUTE_CUBLASLT_FUNCTIONS(COMPUTE_FIND)
    if (missing != nullptr) return std::string("has no ") + missing;
    // 130000 for 13.0.0 from version 12.2 on, 12000 for 12.0.0 before.
    const size_t version = library.api.get_version();
    const size_t major = version >= 100000 ? version / 10000 : version / 1000;
    const size_t minor = version >= 100000 ? version / 100 % 100 : version / 100 % 10;
    report.found = file_of(reinterpret_cast<const void*>(library.api.create)) + ", " + std::to_string(major) + "." +
                   std::to_string(minor);
    return "";
  }
};

// ---- cuDNN ----------------------------------------------------------------------------------------------------------

struct CudnnLibrary {
  static constexpr size_t kOldest = 90000;  // the graph interface as it is declared here

  LibraryReport report;
  Cudnn library;
  bool usable = false;

  CudnnLibrary() {
    const common::Compiling compiling;
    report.name = "cuDNN";
    report.effect = "convolutions use generated kernels, which are slower, most of all for float16 and bfloat16";
    report.remedy = "install cuDNN 9 (pip: nvidia-cudnn-cu13; Debian: cudnn9-cuda-13), or set CUDNN_PATH";
    std::vector<std::string> folders;
    if (getauxval(AT_SECURE) == 0) {
      const char* home = std::getenv("CUDNN_PATH");
      if (home != nullptr && *home == '/') {
        folders.push_back(std::string(home) + "/lib/");
        folders.push_back(std::string(home) + "/lib64/");
      }
    }
    const std::vector<std::string> more = toolkit_folders(13);
    folders.insert(folders.end(), more.begin(), more.end());
    usable = open_one("libcudnn.so.9", folders, report, [this](void* handle) { return accept(handle); });
  }

  std::string accept(void* handle) {
    const char* missing = nullptr;
    COMPUTE_CUDNN_FUNCTIONS(COMPUTE_FIND)
    if (missing != nullptr) return std::string("has no ") + missing;
    const size_t version = library.api.get_version();
    const std::string text = std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100);
    if (version < kOldest) return "is version " + text + "; version 9.0 or later is required";
    report.found = file_of(reinterpret_cast<const void*>(library.api.create)) + ", " + text;
    return "";
  }
};

// ---- cuFFT ----------------------------------------------------------------------------------------------------------

struct CufftLibrary : ToolkitLibrary {
  Cufft library;

  explicit CufftLibrary(int driver_version) {
    report.name = "cuFFT";
    report.effect = "Fourier transforms use generated kernels, which are slower";
    report.remedy = "install libcufft of the CUDA toolkit (pip: nvidia-cufft; Debian: libcufft11), or set CUDA_HOME";
    // The library of CUDA 13 is libcufft.so.12.
    open(
        driver_version, [](int major) { return "libcufft.so." + std::to_string(major - 1); },
        [this](void* handle) { return accept(handle); });
  }

  std::string accept(void* handle) {
    const char* missing = nullptr;
    COMPUTE_CUFFT_FUNCTIONS(COMPUTE_FIND)
    if (missing != nullptr) return std::string("has no ") + missing;
    int version = 0;
    library.api.get_version(&version);
    report.found = file_of(reinterpret_cast<const void*>(library.api.create)) + ", " + short_version(version);
    return "";
  }
};

// ---- cuSOLVER -------------------------------------------------------------------------------------------------------

struct CusolverLibrary : ToolkitLibrary {
  Cusolver library;

  explicit CusolverLibrary(int driver_version) {
    report.name = "cuSOLVER";
    report.effect = "decompositions of matrices run on the host, except the products in large ones";
    report.remedy =
        "install libcusolver of the CUDA toolkit (pip: nvidia-cusolver; Debian: libcusolver11), or set CUDA_HOME";
    // The library of CUDA 13 is libcusolver.so.12.
    open(
        driver_version, [](int major) { return "libcusolver.so." + std::to_string(std::max(major - 1, 11)); },
        [this](void* handle) { return accept(handle); });
  }

  std::string accept(void* handle) {
    const char* missing = nullptr;
    COMPUTE_CUSOLVER_FUNCTIONS(COMPUTE_FIND)
    if (missing != nullptr) return std::string("has no ") + missing;
    COMPUTE_CUSOLVER_NEWER_FUNCTIONS(COMPUTE_FIND)
    int version = 0;
    library.api.get_version(&version);
    report.found = file_of(reinterpret_cast<const void*>(library.api.create)) + ", " + short_version(version);
    return "";
  }
};

// ---- NCCL -----------------------------------------------------------------------------------------------------------

struct NcclLibrary {
  LibraryReport report;
  NcclApi api{};
  bool usable = false;

  NcclLibrary() {
    report.name = "NCCL";
    report.effect = "collectives between GPUs go through the host, which is slower";
    report.remedy = "install NCCL 2.18 or later (pip: nvidia-nccl-cu13; Debian: libnccl2)";
    usable = open_one("libnccl.so.2", toolkit_folders(13), report, [this](void* library) { return accept(library); });
  }

  std::string accept(void* handle) {
    struct {
      NcclApi& api;
    } library{api};
    const char* missing = nullptr;
    COMPUTE_NCCL_FUNCTIONS(COMPUTE_FIND)
    if (missing != nullptr) return std::string("has no ") + missing;
    int version = 0;
    api.get_version(&version);
    report.found = file_of(reinterpret_cast<const void*>(api.get_version)) + ", " + std::to_string(version / 10000) +
                   "." + std::to_string(version / 100 % 100);
    return "";
  }
};

#undef COMPUTE_FIND

// ---- NVML -----------------------------------------------------------------------------------------------------------

struct NvmlLibrary {
  LibraryReport report;
  NvmlApi api{};
  bool usable = false;

  NvmlLibrary() {
    report.name = "NVML";
    report.effect = "the load, temperature and power of cuda devices are unknown";
    report.remedy =
        "install libnvidia-ml.so.1 of NVIDIA's driver (Debian: libnvidia-ml1); in a container, set "
        "NVIDIA_DRIVER_CAPABILITIES=compute,utility";
    usable = open_one("libnvidia-ml.so.1", driver_folders(), report, [this](void* library) { return accept(library); });
  }

  std::string accept(void* library) {
    const char* missing = nullptr;
#define COMPUTE_NVML_FIND(member, symbol, result, parameters) \
  if (!find(library, #symbol, api.member) && missing == nullptr) missing = #symbol;
    COMPUTE_NVML_FUNCTIONS(COMPUTE_NVML_FIND)
#undef COMPUTE_NVML_FIND
    if (missing != nullptr) return std::string("has no ") + missing;
    report.found = file_of(reinterpret_cast<const void*>(api.init));
    const nvmlReturn result = api.init();
    return result == NVML_SUCCESS ? "" : "cannot be initialized: nvmlInit_v2 returned " + std::to_string(result);
  }
};

// Made at first use and never destroyed; `looked` lets a report be asked for without making one.
template <class T>
struct Once {
  std::once_flag flag;
  std::atomic<T*> object{nullptr};

  template <class... Arguments>
  T& get(Arguments... arguments) {
    std::call_once(flag, [&] { object.store(new T(arguments...), std::memory_order_release); });
    return *object.load(std::memory_order_acquire);
  }
  LibraryReport report(const char* name, bool required) const {
    if (const T* made = object.load(std::memory_order_acquire)) return made->report;
    LibraryReport unknown;
    unknown.name = name;
    unknown.required = required;
    return unknown;
  }
};

Once<Driver> driver;
Once<NvrtcLibrary> nvrtc_library;
Once<CublasLtLibrary> cublas_lt_library;
Once<CudnnLibrary> cudnn_library;
Once<CufftLibrary> cufft_library;
Once<CusolverLibrary> cusolver_library;
Once<NcclLibrary> nccl_library;
Once<NvmlLibrary> nvml_library;

}  // namespace

bool open_driver() { return driver.get().usable; }

const Nvrtc* nvrtc() {
  const NvrtcLibrary& library = nvrtc_library.get(driver.get().version);
  return library.usable ? &library.nvrtc : nullptr;
}

const CublasLt* cublas_lt() {
  const CublasLtLibrary& library = cublas_lt_library.get(driver.get().version);
  return library.usable ? &library.library : nullptr;
}

const Cudnn* cudnn() {
  const CudnnLibrary& library = cudnn_library.get();
  return library.usable ? &library.library : nullptr;
}

const Cufft* cufft() {
  const CufftLibrary& library = cufft_library.get(driver.get().version);
  return library.usable ? &library.library : nullptr;
}

const Cusolver* cusolver() {
  const CusolverLibrary& library = cusolver_library.get(driver.get().version);
  return library.usable ? &library.library : nullptr;
}

const NcclApi* nccl() {
  const NcclLibrary& library = nccl_library.get();
  return library.usable ? &library.api : nullptr;
}

const NvmlApi* nvml() {
  const NvmlLibrary& library = nvml_library.get();
  return library.usable ? &library.api : nullptr;
}

LibraryReport driver_report() { return driver.report("NVIDIA driver", true); }
LibraryReport nvrtc_report() { return nvrtc_library.report("NVRTC", false); }
LibraryReport cublas_lt_report() { return cublas_lt_library.report("cuBLASLt", false); }
LibraryReport cudnn_report() { return cudnn_library.report("cuDNN", false); }
LibraryReport cufft_report() { return cufft_library.report("cuFFT", false); }
LibraryReport cusolver_report() { return cusolver_library.report("cuSOLVER", false); }
LibraryReport nccl_report() { return nccl_library.report("NCCL", false); }
LibraryReport nvml_report() { return nvml_library.report("NVML", false); }

std::string driver_version() {
  const int version = driver.get().version;
  return version > 0 ? version_text(version) : "";
}

std::string libraries_in_use() {
  std::string lines;
  for (const LibraryReport& report : {driver_report(), nvrtc_report(), cublas_lt_report(), cudnn_report(),
                                      cufft_report(), cusolver_report(), nccl_report(), nvml_report()}) {
    if (report.state == COMPUTE_PLUGIN_LIBRARY_FOUND) add_line(lines, report.name + ", " + report.found);
  }
  return lines;
}

std::string tried_in_short(const LibraryReport& report) {
  const auto more = std::count(report.tried.begin(), report.tried.end(), '\n');
  const std::string first = report.tried.substr(0, report.tried.find('\n'));
  return first + (more > 0 ? " and " + std::to_string(more) + " more names" : "");
}

}  // namespace compute::cuda
