// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/user_kernels/program.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "core/trusted_files/trusted_files.hpp"
#include "plugins/common/driver/program_store.hpp"
#include "plugins/common/op/core.hpp"
#include "plugins/cpu/isa/isa.hpp"
#include "plugins/cpu/user_kernels/compiler.hpp"
#include "plugins/cpu/user_kernels/fibers.hpp"

namespace compute::cpu {
namespace {

#include "plugins/cpu/user_kernels/prelude.inc"

using common::Error;

// Of a group, in arrays of fixed size. More than any GPU has, and little enough for every thread to have it.
constexpr size_t kOwnLocalBytes = 256;
// Of a work-item without barriers: as on CUDA, and every thread's stack has that.
constexpr int64_t kMostFrame = 512 << 10;

// Values as on other devices: nothing is contracted or reordered, integers wrap, pointers may refer to other types.
// Vectors are as wide as in the plugin's own kernels.
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
                                      "-Werror=vla",
                                      "-nostdinc",
                                      "-pipe"};
#if defined(__x86_64__)
  switch (isa().set) {
    case InstructionSet::amx:
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

// Loads a library from memory. The dynamic loader identifies libraries by path, so each gets a distinct path: the
// binary digits of a number, with "./" for 0 and ".//" for 1.
void* load(std::string_view library, const std::string& what) {
  static std::atomic<uint64_t> next{1};
  const files::Descriptor file(memfd_create("compute kernel", MFD_CLOEXEC));
  if (!file) throw Error(COMPUTE_ERROR_OUT_OF_MEMORY, std::string("memfd_create: ") + std::strerror(errno));
  if (!files::write_all(file.get(), library))
    throw Error(COMPUTE_ERROR_OUT_OF_MEMORY, std::string("write: ") + std::strerror(errno));
  std::string path = "/proc/self/fd/";
  for (uint64_t digits = next.fetch_add(1); digits != 0; digits >>= 1) path += (digits & 1) != 0 ? ".//" : "./";
  path += std::to_string(file.get());
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const error = dlerror();
    const char* const reason = access("/proc/self/fd", F_OK) != 0 ? "/proc is not mounted"
                               : error != nullptr                 ? error
                                                                  : "unknown error";
    throw Error(COMPUTE_ERROR_COMPILE_FAILED, what + ": the compiled kernel cannot be loaded: " + reason);
  }
  return handle;
}

// Whether the compiler reads only this text: without directives there are no other files and no macros of the
// program.
bool is_whole(std::string_view source, std::string_view options) {
  return options.find_first_not_of(" \t\n") == std::string_view::npos && source.find('#') == std::string_view::npos &&
         source.find("%:") == std::string_view::npos && source.find('\\') == std::string_view::npos;
}

// The thread-local memory of a library.
size_t local_bytes_of(std::string_view library) {
  ElfW(Ehdr) head;
  if (library.size() < sizeof head) return 0;
  std::memcpy(&head, library.data(), sizeof head);
  for (size_t i = 0; i < head.e_phnum; ++i) {
    ElfW(Phdr) segment;
    const size_t at = head.e_phoff + i * sizeof segment;
    if (at > library.size() - sizeof segment) break;
    std::memcpy(&segment, library.data() + at, sizeof segment);
    if (segment.p_type == PT_TLS) return segment.p_memsz;
  }
  return 0;
}

// Looks after the prelude, whose macros may be expanded or not. If an option hides the end of the prelude, the result
// is true, which only makes the kernel slower.
bool uses_barriers(std::string_view text) {
  if (const size_t begin = text.find("1 \"kernel\"\n"); begin != std::string_view::npos) text.remove_prefix(begin);
  return text.find("compute_barrier") != std::string_view::npos ||
         text.find("COMPUTE_BARRIER") != std::string_view::npos;
}

// The live programs, by source and options.
class Table {
 public:
  std::shared_ptr<const Program> find(const std::string& key) {
    const std::lock_guard lock(mutex_);
    std::erase_if(programs_, [](const auto& entry) { return entry.second.expired(); });
    const auto found = programs_.find(key);
    return found != programs_.end() ? found->second.lock() : nullptr;
  }
  void add(const std::string& key, const std::shared_ptr<const Program>& program) {
    const std::lock_guard lock(mutex_);
    programs_[key] = program;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<const Program>> programs_;
};

Table& table() {
  static Table& all = *new Table;
  return all;
}

}  // namespace

std::string reason_against_kernels() { return find_compiler().problem; }

common::Requirement report_compiler() {
  common::Requirement report{
      "C++ compiler", compilers_tried(), "", "", "user kernels cannot be compiled", "install clang or g++", false, 1};
  const Compiler compiler = find_compiler();
  report.found = compiler.path;
  report.error = compiler.problem;
  if (compiler.path.empty()) report.state = COMPUTE_PLUGIN_LIBRARY_MISSING;
  return report;
}

bool Program::has_local_memory() const noexcept {
  if (local_bytes_ <= kOwnLocalBytes) return true;
  void* own = nullptr;
  if (dlinfo(library_, RTLD_DI_TLS_DATA, &own) == 0 && own != nullptr) return true;
  void* const room = std::malloc(local_bytes_ + kOwnLocalBytes);
  std::free(room);
  return room != nullptr;
}

Program::~Program() {
  if (library_ != nullptr) dlclose(library_);
}

std::shared_ptr<const Program> Program::make(std::string_view source, std::string_view name, std::string_view options,
                                             Includes includes, bool* out_compiled) {
  const std::string what = "kernel " + std::string(name);
  if (!is_identifier(name)) throw Error(COMPUTE_ERROR_COMPILE_FAILED, what + ": the name is not an identifier");
  const Compiler compiler = find_compiler();
  if (compiler.path.empty()) throw Error(COMPUTE_ERROR_UNSUPPORTED, what + ": " + compiler.problem);
  std::vector<std::string> words = options_for(options);
  std::string joined;
  for (const std::string& word : words) joined += word + ' ';
  std::string text(kPrelude);
  text += "#line 1 \"kernel\"\n";
  text += source;
  text += "\n#define COMPUTE_NAME " + std::string(name) + "\n#line 1 \"entry\"\n";
  text += kEntry;

  // A text that includes files is identified by its preprocessed form. The compiler's predefined macros represent its
  // version, the options and this processor.
  const bool whole = is_whole(source, options);
  const std::string given_key = compiler.version + '\n' + joined + '\n' + text;
  Table& known = table();
  if (whole || includes == Includes::kAsBefore) {
    if (std::shared_ptr<const Program> program = known.find(given_key)) return program;
  }
  std::string macros;
  if (!whole) {
    text = preprocess(compiler, words, text, what).result;
    std::vector<std::string> for_macros = words;
    for_macros.emplace_back("-dM");
    macros = preprocess(compiler, for_macros, "", what).result;
  }
  const std::string own_key = compiler.version + '\n' + joined + '\n' + macros + '\n' + text;
  if (std::shared_ptr<const Program> program = known.find(own_key)) {
    known.add(given_key, program);
    return program;
  }

  const bool has_barrier = uses_barriers(text);
  const std::string most_frame = std::to_string(has_barrier ? kMostFiberFrame : kMostFrame);
  words.push_back("-Wframe-larger-than=" + most_frame);
  joined += words.back() + '\n' + macros;
  const common::ProgramKey key = {"cpu", text, isa().name, compiler.version, joined};
  std::optional<std::string> library = common::load_program(key);
  if (!library) {
    Compilation compiled = compile_shared(compiler, words, whole ? "c++" : "c++-cpp-output", text, what);
    if (compiled.log.find("[-Wframe-larger-than") != std::string::npos) {
      throw Error(COMPUTE_ERROR_COMPILE_FAILED, what + ": a work-item needs more private memory than the " +
                                                    most_frame + " bytes that cpu allows in kernels with" +
                                                    (has_barrier ? "" : "out") + " barriers\n" + compiled.log);
    }
    library = std::move(compiled.result);
    common::store_program(key, *library);
    *out_compiled = true;
  }
  const size_t local_bytes = local_bytes_of(*library);
  if (local_bytes > kMostLocalBytes + kOwnLocalBytes) {
    throw Error(COMPUTE_ERROR_COMPILE_FAILED, what + ": a group needs more local memory than the " +
                                                  std::to_string(kMostLocalBytes) + " bytes that cpu allows");
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
  program->has_barrier_ = has_barrier;
  program->local_bytes_ = local_bytes;
  known.add(own_key, program);
  known.add(given_key, program);
  return program;
}

}  // namespace compute::cpu
