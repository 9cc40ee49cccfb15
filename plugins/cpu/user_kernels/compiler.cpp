// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/user_kernels/compiler.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "core/trusted_files/trusted_files.hpp"
#include "plugins/common/op/core.hpp"

extern char** environ;

namespace compute::cpu {
namespace {

using common::Error;
using files::Descriptor;
namespace fs = std::filesystem;

constexpr const char* kNames[] = {"clang++",    "clang++-20", "clang++-19", "clang++-18", "clang++-17",
                                  "clang++-16", "clang++-15", "clang++-14", "g++",        "c++"};
constexpr const char* kRemedy = "install a C++ compiler (Debian: clang or g++), or name one in COMPUTE_CPU_COMPILER";
constexpr int64_t kMostLog = 1 << 20;

bool is_program(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && access(path.c_str(), X_OK) == 0;
}

// The path of a program that PATH has; empty if there is none.
std::string in_path(std::string_view name) {
  const char* variable = secure_getenv("PATH");
  std::string_view rest = variable != nullptr ? variable : "/usr/local/bin:/usr/bin:/bin";
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(':'), rest.size());
    const std::string path = std::string(rest.substr(0, end)) + "/" + std::string(name);
    // A folder that is relative to where the program happens to run is not looked in.
    if (path.front() == '/' && is_program(path)) return path;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return "";
}

// A file without a name in the file system.
Descriptor nameless(const char* label) {
  Descriptor file(memfd_create(label, MFD_CLOEXEC));
  if (!file) throw Error(COMPUTE_ERROR_OUT_OF_MEMORY, std::string("memfd_create: ") + std::strerror(errno));
  return file;
}

void write_all(const Descriptor& file, std::string_view text) {
  if (!files::write_all(file.get(), text))
    throw Error(COMPUTE_ERROR_OUT_OF_MEMORY, std::string("write: ") + std::strerror(errno));
}

std::string read_all(const Descriptor& file, int64_t limit) {
  std::string text;
  char piece[4096];
  for (off_t at = 0; at < limit;) {
    const ssize_t count = pread(file.get(), piece, sizeof piece, at);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    text.append(piece, static_cast<size_t>(count));
    at += count;
  }
  return text;
}

// A folder that is removed at the end.
class Scratch {
 public:
  Scratch() {
    const char* variable = secure_getenv("TMPDIR");
    path_ = (variable != nullptr && variable[0] == '/' ? std::string(variable) : "/tmp") + "/compute-kernel-XXXXXX";
    if (mkdtemp(path_.data()) == nullptr)
      throw Error(COMPUTE_ERROR_UNSUPPORTED, path_ + ": cannot be created for the compiler: " + std::strerror(errno));
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// The program's environment without variables that load libraries into the compiler, and in English.
std::vector<char*> environment_of_compiler() {
  static char english[] = "LC_ALL=C";
  std::vector<char*> variables;
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    const std::string_view variable = *at;
    if (variable.starts_with("LD_PRELOAD=") || variable.starts_with("LC_ALL=") || variable.starts_with("LANGUAGE="))
      continue;
    variables.push_back(*at);
  }
  variables.push_back(english);
  variables.push_back(nullptr);
  return variables;
}

// Runs a program to its end. Returns its exit status, or -1 if somebody else has waited for it.
int run_program(const std::vector<std::string>& words, const Descriptor& in, const Descriptor& log) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  std::vector<char*> environment = environment_of_compiler();

  struct Actions {
    Actions() { posix_spawn_file_actions_init(&value); }
    ~Actions() { posix_spawn_file_actions_destroy(&value); }
    posix_spawn_file_actions_t value;
  } actions;
  posix_spawn_file_actions_adddup2(&actions.value, in.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions.value, log.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions.value, log.get(), STDERR_FILENO);
  struct Attributes {
    Attributes() { posix_spawnattr_init(&value); }
    ~Attributes() { posix_spawnattr_destroy(&value); }
    posix_spawnattr_t value;
  } attributes;
  sigset_t none, usual;
  sigemptyset(&none);
  sigemptyset(&usual);
  for (const int signal : {SIGCHLD, SIGINT, SIGPIPE, SIGTERM}) sigaddset(&usual, signal);
  posix_spawnattr_setsigmask(&attributes.value, &none);
  posix_spawnattr_setsigdefault(&attributes.value, &usual);
  posix_spawnattr_setflags(&attributes.value, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);

  pid_t child = 0;
  const int error =
      posix_spawn(&child, words[0].c_str(), &actions.value, &attributes.value, arguments.data(), environment.data());
  if (error != 0) {
    throw Error(files::is_shortage(error) ? COMPUTE_ERROR_OUT_OF_MEMORY : COMPUTE_ERROR_UNSUPPORTED,
                words[0] + " cannot be run: " + std::strerror(error), -1, error);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Runs the compiler with `source` as its input. The result is the file that it writes.
Compilation run_step(const Compiler& compiler, const std::vector<std::string>& options,
                     std::initializer_list<const char*> step, std::string_view source, const std::string& what) {
  const Scratch scratch;
  const std::string path = scratch.path() + "/kernel";
  std::vector<std::string> words = {compiler.path};
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), {"-o", path});
  words.insert(words.end(), step.begin(), step.end());
  const Descriptor in = nameless("compute kernel"), log = nameless("compute kernel log");
  write_all(in, source);
  lseek(in.get(), 0, SEEK_SET);
  const int status = run_program(words, in, log);
  Compilation compilation{"", read_all(log, kMostLog)};
  std::string& said = compilation.log;
  while (!said.empty() && said.back() == '\n') said.pop_back();
  const Descriptor result(status > 0 ? -1 : open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!result) {
    throw Error(COMPUTE_ERROR_COMPILE_FAILED,
                what + ": " + compiler.path + " failed" + (status > 0 ? " with status " + std::to_string(status) : "") +
                    (said.empty() ? "" : "\n" + said),
                -1, status);
  }
  compilation.result = read_all(result, INT64_MAX);
  return compilation;
}

}  // namespace

std::string compilers_tried() {
  std::string names;
  for (const char* name : kNames) names += (names.empty() ? "" : "\n") + std::string(name);
  return names;
}

Compiler find_compiler() {
  Compiler compiler;
  if (!common::reason_against_libraries().empty()) {
    compiler.problem = "a privileged process runs no compiler";
    return compiler;
  }
  const std::string wanted = common::setting("COMPUTE_CPU_COMPILER").value_or("");
  if (wanted == "off") {
    compiler.problem = "COMPUTE_CPU_COMPILER is off";
    return compiler;
  }
  if (!wanted.empty()) {
    compiler.path = wanted.front() != '/' ? in_path(wanted) : is_program(wanted) ? wanted : "";
    if (compiler.path.empty()) compiler.problem = "COMPUTE_CPU_COMPILER is " + wanted + ", which does not exist";
  } else {
    for (const char* name : kNames) {
      if (compiler.path.empty()) compiler.path = in_path(name);
    }
    if (compiler.path.empty()) compiler.problem = std::string("no C++ compiler was found; ") + kRemedy;
  }
  if (compiler.path.empty()) return compiler;
  std::error_code error;
  const fs::path file = fs::canonical(compiler.path, error);
  struct stat status {};
  if (!error && stat(file.c_str(), &status) == 0) {
    compiler.version = compiler.path + " " + file.string() + " " + std::to_string(status.st_size) + " " +
                       std::to_string(status.st_mtim.tv_sec) + "." + std::to_string(status.st_mtim.tv_nsec);
  }
  return compiler;
}

Compilation preprocess(const Compiler& compiler, const std::vector<std::string>& options, std::string_view source,
                       const std::string& what) {
  return run_step(compiler, options, {"-E", "-x", "c++", "-"}, source, what);
}

Compilation compile_shared(const Compiler& compiler, const std::vector<std::string>& options, const char* language,
                           std::string_view source, const std::string& what) {
  // The libraries follow the source that needs them.
  return run_step(compiler, options, {"-shared", "-x", language, "-", "-lm"}, source, what);
}

}  // namespace compute::cpu
