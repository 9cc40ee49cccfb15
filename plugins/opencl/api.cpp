// SPDX-License-Identifier: Apache-2.0
#include "plugins/opencl/api.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cstring>
#include <filesystem>

#include "plugins/common/driver/shortage.hpp"
#include "plugins/common/op/core.hpp"

namespace compute::opencl {
namespace {

Api functions{};

struct Loading {
  bool succeeded = false;
  LibraryReport report;
};

// "2.3.1 (OpenCL ICD Loader)", as the loader says of itself; empty if it does not.
std::string version_of_loader(void* library) {
  using Information = cl_int (*)(cl_uint, size_t, void*, size_t*);
  constexpr cl_uint kVersion = 2, kName = 3;  // CL_ICDL_VERSION, CL_ICDL_NAME
  const auto function_of = reinterpret_cast<void* (*)(const char*)>(dlsym(library, "clGetExtensionFunctionAddress"));
  const auto information =
      function_of == nullptr ? nullptr : reinterpret_cast<Information>(function_of("clGetICDLoaderInfoOCLICD"));
  char version[64] = "", name[64] = "";
  if (information == nullptr || information(kVersion, sizeof version - 1, version, nullptr) != CL_SUCCESS) return "";
  if (information(kName, sizeof name - 1, name, nullptr) != CL_SUCCESS) name[0] = 0;
  return std::string(version) + (name[0] != 0 ? " (" + std::string(name) + ")" : "");
}

Loading load() {
  Loading loading;
  void* const library = open_library({"libOpenCL.so.1", "libOpenCL.so"}, &loading.report);
  if (library == nullptr) return loading;
#define FUNCTION(name, result, parameters)                                            \
  functions.name = reinterpret_cast<decltype(functions.name)>(dlsym(library, #name)); \
  if (functions.name == nullptr) {                                                    \
    loading.report.error = #name " is missing; OpenCL 1.2 is required";               \
    return loading;                                                                   \
  }
#include "plugins/opencl/functions.inc"
#undef FUNCTION
  loading.succeeded = true;
  if (const std::string version = version_of_loader(library); !version.empty()) loading.report.found += ", " + version;
  return loading;
}

}  // namespace

std::string version_of_file(const std::string& path) {
  std::error_code error;
  const std::string name = std::filesystem::canonical(path, error).filename();
  const size_t at = error ? std::string::npos : name.find(".so.");
  const std::string version = at == std::string::npos ? "" : name.substr(at + 4);
  return version.find('.') != std::string::npos ? version : "";
}

const Api& api() { return functions; }

void* open_library(std::initializer_list<const char*> names, LibraryReport* report) {
  if (report->error = common::reason_against_libraries(); !report->error.empty()) return nullptr;
  for (const char* name : names) {
    report->tried += (report->tried.empty() ? "" : "\n") + std::string(name);
    if (void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) {
      report->error.clear();
      link_map* map = nullptr;
      if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr) report->found = map->l_name;
      return library;
    }
    const char* error = dlerror();
    if (error != nullptr) common::throw_if_short(error);
    // Reports the first name as missing, unless a file exists that cannot be opened, which is more useful.
    if (error != nullptr && (report->error.empty() || std::strstr(error, "No such file") == nullptr))
      report->error = error;
  }
  return nullptr;
}

bool open_api(LibraryReport* report) {
  // The library stays loaded: drivers own threads.
  static const Loading& loading = *new Loading(load());
  *report = loading.report;
  return loading.succeeded;
}

std::string status_text(cl_int status) {
  struct Name {
    cl_int status;
    const char* name;
  };
  static constexpr Name kNames[] = {
      {-1, "CL_DEVICE_NOT_FOUND"},
      {-2, "CL_DEVICE_NOT_AVAILABLE"},
      {-3, "CL_COMPILER_NOT_AVAILABLE"},
      {-4, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
      {-5, "CL_OUT_OF_RESOURCES"},
      {-6, "CL_OUT_OF_HOST_MEMORY"},
      {-11, "CL_BUILD_PROGRAM_FAILURE"},
      {-13, "CL_MISALIGNED_SUB_BUFFER_OFFSET"},
      {-14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"},
      {-30, "CL_INVALID_VALUE"},
      {-34, "CL_INVALID_CONTEXT"},
      {-36, "CL_INVALID_COMMAND_QUEUE"},
      {-38, "CL_INVALID_MEM_OBJECT"},
      {-42, "CL_INVALID_BINARY"},
      {-43, "CL_INVALID_BUILD_OPTIONS"},
      {-46, "CL_INVALID_KERNEL_NAME"},
      {-48, "CL_INVALID_KERNEL"},
      {-49, "CL_INVALID_ARG_INDEX"},
      {-50, "CL_INVALID_ARG_VALUE"},
      {-51, "CL_INVALID_ARG_SIZE"},
      {-52, "CL_INVALID_KERNEL_ARGS"},
      {-54, "CL_INVALID_WORK_GROUP_SIZE"},
      {-55, "CL_INVALID_WORK_ITEM_SIZE"},
      {-61, "CL_INVALID_BUFFER_SIZE"},
      {-63, "CL_INVALID_GLOBAL_WORK_SIZE"},
      {-1001, "CL_PLATFORM_NOT_FOUND_KHR"},
  };
  for (const Name& one : kNames) {
    if (one.status == status) return std::string(one.name) + " (" + std::to_string(status) + ")";
  }
  return "OpenCL error " + std::to_string(status);
}

common::Error error_of(cl_int status, const char* what) {
  compute_error_code code = COMPUTE_ERROR_STREAM_FAILED;
  if (status == CL_MEM_OBJECT_ALLOCATION_FAILURE || status == CL_OUT_OF_RESOURCES || status == CL_INVALID_BUFFER_SIZE) {
    code = COMPUTE_ERROR_OUT_OF_DEVICE_MEMORY;
  } else if (status == CL_OUT_OF_HOST_MEMORY) {
    code = COMPUTE_ERROR_OUT_OF_MEMORY;
  }
  return common::Error(code, std::string(what) + ": " + status_text(status), -1, status);
}

void check(cl_int status, const char* what) {
  if (status != CL_SUCCESS) throw error_of(status, what);
}

}  // namespace compute::opencl
