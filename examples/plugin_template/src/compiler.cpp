// SPDX-License-Identifier: Apache-2.0
// TODO: the vendor's compiler. Until then it is the C compiler of the host, as another process.
#include "compiler.hpp"

#include <compute_kit/core.hpp>

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

extern char** environ;

namespace acme {
namespace {

namespace kit = compute::common;

// A folder that is removed with its files.
class Folder {
 public:
  Folder() {
    if (mkdtemp(path_) == nullptr) throw kit::Error(COMPUTE_ERROR_COMPILE_FAILED, "acme: no folder for a kernel");
  }
  ~Folder() {
    for (const char* name : {"kernel.c", "kernel.so", "log"}) unlink(file(name).c_str());
    rmdir(path_);
  }
  std::string file(const char* name) const { return std::string(path_) + "/" + name; }

 private:
  char path_[32] = "/tmp/acme_XXXXXX";
};

KernelFunction compile(const std::string& text) {
  const std::string compiler = find_compiler();
  if (compiler.empty()) throw kit::Error(COMPUTE_ERROR_COMPILE_FAILED, "acme: there is no C compiler");
  const Folder folder;
  const std::string source = folder.file("kernel.c"), object = folder.file("kernel.so"), log = folder.file("log");
  std::ofstream(source) << text;
  // Every node rounds once.
  const char* arguments[] = {compiler.c_str(),    "-std=gnu11",   "-O1",     "-w",
                             "-ffp-contract=off", "-fPIC",        "-shared", "-o",
                             object.c_str(),      source.c_str(), "-lm",     nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 2, log.c_str(), O_WRONLY | O_CREAT, 0600);
  pid_t process = 0;
  int status = posix_spawn(&process, compiler.c_str(), &actions, nullptr, const_cast<char**>(arguments), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (status == 0 && waitpid(process, &status, 0) != process) status = -1;
  if (status != 0) {
    std::stringstream errors;
    errors << std::ifstream(log).rdbuf();
    throw kit::Error(COMPUTE_ERROR_COMPILE_FAILED, "acme: " + errors.str(), -1, status);
  }
  void* const library = dlopen(object.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw kit::Error(COMPUTE_ERROR_COMPILE_FAILED, std::string("acme: ") + dlerror());
  return reinterpret_cast<KernelFunction>(dlsym(library, "kernel"));
}

}  // namespace

KernelFunction Kernels::find(const std::string& key, const std::function<std::string()>& text, int64_t* out_compiled) {
  const std::lock_guard lock(mutex_);
  KernelFunction& kernel = by_key_[key];
  if (kernel == nullptr) {
    kernel = compile(text());
    ++*out_compiled;
  }
  return kernel;
}

std::string find_compiler() {
  if (const std::optional<std::string> path = kit::setting("COMPUTE_ACME_COMPILER"); path && !path->empty())
    return access(path->c_str(), X_OK) == 0 ? *path : "";
  for (const char* path : {"/usr/bin/cc", "/usr/local/bin/cc"}) {
    if (access(path, X_OK) == 0) return path;
  }
  return "";
}

}  // namespace acme
