// SPDX-License-Identifier: Apache-2.0
#include "core/probe.hpp"

#include <compute/compute.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <xxhash.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <system_error>
#include <utility>

#include "core/config.hpp"
#include "core/plugin_search.hpp"

extern char** environ;

namespace compute {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kTimeoutMs = 60000;  // the first use of a driver may take many seconds
constexpr size_t kMaxOutputBytes = 1 << 16;
constexpr int kStatusFailed = 3;  // the helper's own end where something failed; any other is a crash

std::string contents_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  if (stream) text << stream.rdbuf();
  return std::move(text).str();
}

// What a verdict depends on: a plugin that crashes with one driver may work with the next.
std::string verdict_key(const fs::path& library) {
  std::string all = contents_of(library) + "|" + std::to_string(COMPUTE_VERSION_MAJOR) + "." +
                    std::to_string(COMPUTE_VERSION_MINOR) + "." + std::to_string(COMPUTE_VERSION_PATCH);
  utsname system{};
  if (::uname(&system) == 0) all += std::string("|") + system.release + "|" + system.version;
  for (const char* module : {"nvidia", "amdgpu", "i915", "xe"}) {
    all += "|" + contents_of(fs::path("/sys/module") / module / "version");
    all += "|" + contents_of(fs::path("/sys/module") / module / "srcversion");
  }
  const XXH128_hash_t hash = XXH3_128bits(all.data(), all.size());
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return text.data();
}

// Empty where nothing can be remembered.
fs::path verdict_folder() {
  const SettingValue cache = setting(SettingId::kCacheDir);
  if (cache.is_set()) return fs::path(cache.text) / "probe";
  if (process_is_privileged()) return {};
  const char* cache_home = std::getenv("XDG_CACHE_HOME");
  if (cache_home != nullptr && *cache_home == '/') return fs::path(cache_home) / "compute/probe";
  const char* home = std::getenv("HOME");
  return home != nullptr && *home == '/' ? fs::path(home) / ".cache/compute/probe" : fs::path();
}

// `passed`, or why the plugin is kept out.
std::optional<std::string> remembered(const fs::path& file) {
  std::error_code error;
  if (!fs::exists(file, error)) return std::nullopt;
  const std::string text = contents_of(file);
  const size_t end = text.find('\n');
  if (end == std::string::npos || end + 1 != text.size()) return std::nullopt;  // half written or damaged
  return text.substr(0, end);
}

// Written beside and renamed, so that another process never reads half of it.
void remember(const fs::path& file, const std::string& verdict) {
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  const fs::path beside = file.string() + "." + std::to_string(::getpid());
  {
    std::ofstream stream(beside, std::ios::binary);
    stream << verdict << '\n';
    if (!stream.flush()) error = std::make_error_code(std::errc::io_error);
  }
  if (!error) fs::rename(beside, file, error);
  if (error) fs::remove(beside, error);
}

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() { reset(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  void reset() {
    if (value_ >= 0) ::close(value_);
    value_ = -1;
  }
  int get() const { return value_; }

 private:
  int value_;
};

// What the child writes until it closes its end, or until the time is up.
struct Output {
  std::string text;
  bool timed_out = false;
};

Output read_until(int descriptor, std::chrono::steady_clock::time_point deadline) {
  Output output;
  std::array<char, 4096> buffer;
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd waiting = {descriptor, POLLIN, 0};
    const int ready = left.count() > 0 ? ::poll(&waiting, 1, static_cast<int>(left.count())) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      output.timed_out = true;
      return output;
    }
    const ssize_t count = ::read(descriptor, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return output;
    output.text.append(buffer.data(), static_cast<size_t>(count));
    // of a plugin that prints without end the last part is enough
    if (output.text.size() > kMaxOutputBytes) output.text.erase(0, output.text.size() - kMaxOutputBytes / 2);
  }
}

std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const size_t begin = text.rfind('\n');
  return begin == std::string::npos ? text : text.substr(begin + 1);
}

}  // namespace

ProbeRun run_probe(const std::vector<std::string>& command, int64_t timeout_ms) {
  ProbeRun run;
  std::array<int, 2> pipe_ends{};
  if (::pipe2(pipe_ends.data(), O_CLOEXEC) != 0) {
    run.detail = std::strerror(errno);
    return run;
  }
  Descriptor reading(pipe_ends[0]), writing(pipe_ends[1]);
  std::vector<std::string> words = command;
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, writing.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int failure = ::posix_spawn(&child, arguments.front(), &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  writing.reset();
  if (failure != 0) {
    run.detail = std::strerror(failure);
    return run;
  }

  const Output output =
      read_until(reading.get(), std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms));
  if (output.timed_out) ::kill(child, SIGKILL);
  int status = 0;
  pid_t ended = 0;
  do {
    ended = ::waitpid(child, &status, 0);
  } while (ended < 0 && errno == EINTR);

  run.detail = last_line(output.text);
  if (output.timed_out) {
    run.outcome = ProbeOutcome::kHung;
  } else if (run.detail == "passed") {
    run.outcome = ProbeOutcome::kPassed;  // what happens to it while exiting does not matter here
  } else if (ended == child && WIFEXITED(status) && WEXITSTATUS(status) == kStatusFailed) {
    run.outcome = ProbeOutcome::kFailed;
  } else {
    run.outcome = ProbeOutcome::kCrashed;
    // without a status (a program may have said that it wants none of its children) the missing last line must do
    if (ended != child) {
      run.detail = "ended early";
    } else if (WIFSIGNALED(status)) {
      const char* name = ::sigabbrev_np(WTERMSIG(status));
      run.detail = name != nullptr ? std::string("SIG") + name : "signal " + std::to_string(WTERMSIG(status));
    } else {
      run.detail = "exit status " + std::to_string(WEXITSTATUS(status));
    }
  }
  return run;
}

std::string probe_plugin(const std::filesystem::path& library) {
  const fs::path helper = library_folder() / "compute/compute-probe";
  if (::access(helper.c_str(), X_OK) != 0) return "";
  const fs::path folder = verdict_folder();
  const fs::path file = folder.empty() ? folder : folder / verdict_key(library);
  if (!file.empty()) {
    if (const std::optional<std::string> verdict = remembered(file)) return *verdict == "passed" ? "" : *verdict;
  }
  const ProbeRun run = run_probe({helper.string(), library.string()}, kTimeoutMs);
  std::string verdict;
  switch (run.outcome) {
    case ProbeOutcome::kNotRun:
      return "";
    case ProbeOutcome::kPassed:
    case ProbeOutcome::kFailed:
      break;
    case ProbeOutcome::kCrashed:
      verdict = "it crashed when it was tried in a process of its own (" + run.detail + ")";
      break;
    case ProbeOutcome::kHung:
      verdict = "it hung when it was tried in a process of its own (for " + std::to_string(kTimeoutMs / 1000) + " s)";
      break;
  }
  if (!verdict.empty()) {
    verdict += "; COMPUTE_PROBE=0 loads it all the same";
    if (!file.empty()) verdict += ", removing " + file.string() + " has it tried again";
  }
  if (!file.empty()) remember(file, verdict.empty() ? "passed" : verdict);
  return verdict;
}

}  // namespace compute
