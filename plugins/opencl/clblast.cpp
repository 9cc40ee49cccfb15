// SPDX-License-Identifier: Apache-2.0
#include "plugins/opencl/clblast.hpp"

#include <dlfcn.h>

namespace compute::opencl {
namespace {

struct Library {
  ClblastApi api{};
  LibraryReport report;
  bool usable = false;

  Library() {
    void* const library = open_library({"libclblast.so.1", "libclblast.so"}, &report);
    if (library == nullptr) return;
#define FUNCTION(name, result, parameters)                                \
  api.name = reinterpret_cast<decltype(api.name)>(dlsym(library, #name)); \
  if (api.name == nullptr) {                                              \
    report.error = #name " is missing; CLBlast 1.5 is required";          \
    return;                                                               \
  }
#include "plugins/opencl/clblast.inc"
#undef FUNCTION
    usable = true;
    // CLBlast has no function for its version.
    if (const std::string version = version_of_file(report.found); !version.empty()) report.found += ", " + version;
  }
};

const Library& library() {
  // Never destroyed: programs that it keeps belong to drivers, which may be gone by then.
  static const Library& made = *new Library;
  return made;
}

}  // namespace

const ClblastApi* clblast() { return library().usable ? &library().api : nullptr; }

LibraryReport clblast_report() { return library().report; }

std::mutex& clblast_mutex() {
  static std::mutex& mutex = *new std::mutex;
  return mutex;
}

}  // namespace compute::opencl
