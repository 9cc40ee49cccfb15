// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/kernels/program.hpp"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "core/files/files.hpp"
#include "plugins/common/core.hpp"
#include "plugins/common/kernel_cache.hpp"
#include "plugins/cpu/isa/isa.hpp"
#include "plugins/cpu/kernels/compiler.hpp"

namespace compute::cpu {
namespace {

#include "plugins/cpu/kernels/prelude.inc"

using common::Error;

// Values as on other devices: nothing is contracted or reordered, integers wrap, pointers may refer to other types. The
// vectors are those of the plugin's own kernels.
std::vector<std::string> options_for(std::string_view given) {
  std::vector<std::string> options = {"-std=c++17",
                                      "-O3",
                                      "-fPIC",
                                      "-fvisibility=hidden",
                                      "-fwrapv",
                                      "-ffp-contract=off",
                                      "-fno-math-errno",
                                      "-fno-trapping-math",
                                      "-fno-strict-aliasing",
                                      "-fno-exceptions",
                                      "-fno-rtti",
                                      "-nostdinc",
                                      "-pipe"};
#if defined(__x86_64__)
  switch (isa().set) {
    case InstructionSet::avx512:
      options.insert(options.end(), {"-march=x86-64-v4", "-mprefer-vector-width=512"});
      break;
    case InstructionSet::avx2:
      options.emplace_back("-march=x86-64-v3");
      break;
    case InstructionSet::baseline:
      break;
  }
#endif
  for (size_t at = 0; at < given.size();) {
    const size_t begin = given.find_first_not_of(" \t\n", at);
    if (begin == std::string_view::npos) break;
    at = std::min(given.find_first_of(" \t\n", begin), given.size());
    options.emplace_back(given.substr(begin, at - begin));
  }
  return options;
}

bool is_identifier(std::string_view name) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !name.empty() && is_letter(name.front()) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

// Loads a library from memory. The loader knows libraries by their paths, so each gets a path of its own: binary
// digits of a number, where "./" is 0 and ".//" is 1.
void* load(std::string_view library, const std::string& what) {
  static std::atomic<uint64_t> next{1};
  const files::Descriptor file(memfd_create("compute kernel", MFD_CLOEXEC));
  if (!file) throw Error(COMPUTE_ERROR_OUT_OF_MEMORY, std::string("memfd_create: ") + std::strerror(errno));
  for (std::string_view rest = library; !rest.empty();) {
    const ssize_t written = write(file.get(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) throw Error(COMPUTE_ERROR_OUT_OF_MEMORY, std::string("write: ") + std::strerror(errno));
    rest.remove_prefix(static_cast<size_t>(written));
  }
  std::string path = "/proc/self/fd/";
  for (uint64_t digits = next.fetch_add(1); digits != 0; digits >>= 1) path += (digits & 1) != 0 ? ".//" : "./";
  path += std::to_string(file.get());
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* error = dlerror();
    throw Error(COMPUTE_ERROR_COMPILE_FAILED,
                what + ": the compiled kernel cannot be loaded: " + (error != nullptr ? error : "unknown error"));
  }
  return handle;
}

// The programs that are alive, by what they are made of.
struct Table {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<const Program>> programs;
};

Table& table() {
  static Table& all = *new Table;
  return all;
}

}  // namespace

std::string reason_against_kernels() { return find_compiler().problem; }

common::Requirement report_compiler() {
  common::Requirement report{"C++ compiler",
                             compilers_tried(),
                             "",
                             "",
                             "kernels of programs cannot be compiled",
                             "install clang or g++",
                             false,
                             1};
  const Compiler compiler = find_compiler();
  report.found = compiler.path;
  report.error = compiler.problem;
  if (compiler.path.empty()) report.state = COMPUTE_PLUGIN_LIBRARY_MISSING;
  return report;
}

Program::~Program() {
  if (library_ != nullptr) dlclose(library_);
}

std::shared_ptr<const Program> Program::make(std::string_view source, std::string_view name, std::string_view options,
                                             bool* out_compiled) {
  const std::string what = "kernel " + std::string(name);
  if (!is_identifier(name)) throw Error(COMPUTE_ERROR_COMPILE_FAILED, what + ": the name is not an identifier");
  const Compiler compiler = find_compiler();
  if (compiler.path.empty()) throw Error(COMPUTE_ERROR_UNSUPPORTED, what + ": " + compiler.problem);
  const std::vector<std::string> words = options_for(options);
  std::string joined;
  for (const std::string& word : words) joined += word + ' ';
  std::string text(kPrelude);
  text += "#line 1 \"kernel\"\n";
  text += source;
  text += "\n#define COMPUTE_NAME " + std::string(name) + "\n#line 1 \"entry\"\n";
  text += kEntry;

  const std::string own_key = compiler.version + '\n' + joined + '\n' + text;
  Table& known = table();
  {
    const std::lock_guard lock(known.mutex);
    std::erase_if(known.programs, [](const auto& entry) { return entry.second.expired(); });
    if (const auto found = known.programs.find(own_key); found != known.programs.end()) {
      if (std::shared_ptr<const Program> program = found->second.lock()) return program;
    }
  }

  const common::ProgramKey key = {text, isa().name, compiler.version, joined};
  common::KernelCache& cache = common::KernelCache::instance();
  std::optional<std::string> library = cache.load(key);
  if (!library) {
    library = compile_shared(compiler, words, text, what);
    cache.store(key, *library);
    *out_compiled = true;
  }
  std::shared_ptr<Program> program(new Program);
  program->name_ = name;
  program->library_ = load(*library, what);
  const auto parameters =
      reinterpret_cast<int32_t (*)(const ProgramParameter**)>(dlsym(program->library_, "compute_parameters"));
  program->run_ = reinterpret_cast<void (*)(const ProgramGroups*)>(dlsym(program->library_, "compute_run"));
  if (parameters == nullptr || program->run_ == nullptr)
    throw Error(COMPUTE_ERROR_COMPILE_FAILED, what + ": the compiled kernel lacks its entry");
  const ProgramParameter* first = nullptr;
  const int32_t count = parameters(&first);
  program->parameters_ = {first, static_cast<size_t>(count)};
  program->has_barrier_ = source.find("COMPUTE_BARRIER") != std::string_view::npos;
  const std::lock_guard lock(known.mutex);
  known.programs[own_key] = program;
  return program;
}

}  // namespace compute::cpu
