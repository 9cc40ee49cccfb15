// SPDX-License-Identifier: Apache-2.0
#include "core/observation/ranges.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <cstdlib>

#include "core/process/log.hpp"
#include "core/settings/config.hpp"
#include "core/text/printable.hpp"

namespace compute {
namespace {

// ---- The protocol of NVTX 3, as far as it is used -------------------------------------------------------------------

using Function = void (*)();

constexpr uint32_t kCallbacks = 1;  // the table that a profiler asks for
constexpr unsigned kRangePush = 9, kRangePop = 11;

// A module is a list of functions that a profiler may set. They are numbered from 1; the list ends with NULL.
struct Module {
  explicit Module(unsigned size) : size(size) {
    for (unsigned i = 1; i < size; ++i) table[i] = &functions[i];
  }

  const unsigned size;
  std::array<Function, 16> functions{};
  std::array<Function*, 17> table{};
};

// NVTX's core module, and three that name objects of other interfaces, whose functions are never called.
std::array<Module, 4>& modules() {
  static std::array<Module, 4> all = {Module(16), Module(9), Module(15), Module(7)};
  return all;
}

int function_table(int32_t module, Function*** out_table, unsigned* out_size) {
  if (module < 1 || module > static_cast<int32_t>(modules().size())) return 0;
  Module& one = modules()[static_cast<size_t>(module - 1)];
  if (out_table != nullptr) *out_table = one.table.data();
  if (out_size != nullptr) *out_size = one.size;
  return 1;
}

struct Callbacks {
  size_t struct_size;
  int (*function_table)(int32_t module, Function*** out_table, unsigned* out_size);
};

const void* export_table(uint32_t id) {
  static const Callbacks callbacks{sizeof(Callbacks), &function_table};
  return id == kCallbacks ? &callbacks : nullptr;
}

using Initialize = int (*)(const void* (*export_table)(uint32_t));

// ---- The two functions ----------------------------------------------------------------------------------------------

struct Profiler {
  int (*push)(const char* name) = nullptr;
  int (*pop)() = nullptr;
};

// Its library stays loaded.
Profiler attach() noexcept {
  const char* const path = process_is_privileged() ? nullptr : std::getenv("NVTX_INJECTION64_PATH");
  if (path == nullptr || *path == '\0') return {};
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  void* const symbol = library != nullptr ? dlsym(library, "InitializeInjectionNvtx2") : nullptr;
  if (symbol == nullptr) {
    const char* const fault = dlerror();
    log(COMPUTE_LOG_WARNING, "load",
        fmt::format("no ranges for the profiler of NVTX_INJECTION64_PATH: {}",
                    printable(fault != nullptr ? fault : path, kLongestPath)));
    return {};
  }
  if (reinterpret_cast<Initialize>(symbol)(&export_table) == 0) return {};
  const Module& core = modules()[0];
  Profiler found;
  found.push = reinterpret_cast<int (*)(const char*)>(core.functions[kRangePush]);
  found.pop = reinterpret_cast<int (*)()>(core.functions[kRangePop]);
  return found.push != nullptr && found.pop != nullptr ? found : Profiler{};
}

const Profiler& profiler() noexcept {
  static const Profiler found = attach();
  return found;
}

}  // namespace

bool find_profiler() noexcept { return profiler().push != nullptr; }

void open_range(const char* name) noexcept {
  if (profiler().push != nullptr) profiler().push(name);
}

void close_range() noexcept {
  if (profiler().pop != nullptr) profiler().pop();
}

}  // namespace compute
