// SPDX-License-Identifier: Apache-2.0
#include "core/loading/probe.hpp"

#include <compute/compute.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "core/base/library_file.hpp"
#include "core/loading/elf_needed.hpp"
#include "core/process/log.hpp"
#include "core/settings/config.hpp"
#include "core/text/ascii.hpp"
#include "core/text/printable.hpp"

extern char** environ;

namespace compute {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr size_t kMaxOutputBytes = 1 << 16;
constexpr size_t kUsualOutputBytes = 1 << 10;
constexpr size_t kMaxSmallFileBytes = 1 << 16;
constexpr size_t kMaxVerdicts = 64;
constexpr size_t kKeyDigits = 32;               // of a verdict's name
constexpr time_t kAbandonedAfterSeconds = 600;  // a temporary file that old has lost its writer
constexpr int kReportDescriptor = 3;
constexpr std::chrono::seconds kDeathTakes(1);
constexpr std::string_view kMagic = "compute-verdict 1\n";

// ---- What a verdict depends on --------------------------------------------------------------------------------------

std::string hexadecimal(std::string_view data) {
  const XXH128_hash_t hash = XXH3_128bits(data.data(), data.size());
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return text.data();
}

std::string contents_of(const fs::path& file) { return files::File(file).read(kMaxSmallFileBytes).value_or(""); }

// Identifies a file: another file, or a changed one, gives another text.
std::string identity_of(const fs::path& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) return file.string() + " absent\n";
  const auto time = [](const timespec& t) { return std::to_string(t.tv_sec) + "." + std::to_string(t.tv_nsec); };
  return file.string() + " " + std::to_string(status.st_ino) + " " + std::to_string(status.st_size) + " " +
         time(status.st_mtim) + " " + time(status.st_ctim) + "\n";
}

std::string libraries_of(const std::string& name, const ElfSearch& search) {
  std::string text = name + ":\n";
  if (name.starts_with("/")) return text + identity_of(name);
  for (const std::string& file : find_library(name, search)) text += identity_of(file);
  return text;
}

const char* variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// The libraries that the files of a folder name.
std::string listed_libraries(const ManifestDrivers::List& list, const ElfSearch& search) {
  const std::string named = list.variable.empty() ? "" : variable(list.variable.c_str());
  const fs::path folder = named.empty() ? fs::path(list.folder) : fs::path(named);
  std::error_code error;
  std::vector<fs::path> files = files::entries_of(folder, error);
  std::sort(files.begin(), files.end());
  std::string text = named + "\n";
  for (const fs::path& file : files) {
    const std::string contents = contents_of(file);
    const std::string driver(trimmed(contents.substr(0, contents.find('\n'))));
    text += identity_of(file) + libraries_of(driver, search);
  }
  return text;
}

std::string state_of(const ManifestDrivers& drivers, const ElfSearch& search) {
  std::string text;
  for (const std::string& module : drivers.modules) {
    for (const char* file : {"version", "srcversion"}) text += contents_of(fs::path("/sys/module") / module / file);
    text += "|";
  }
  for (const std::string& library : drivers.libraries) text += libraries_of(library, search);
  for (const ManifestDrivers::List& list : drivers.lists) text += listed_libraries(list, search);
  for (const std::string& name : drivers.variables) text += std::string(variable(name.c_str())) + "\n";
  return text;
}

// Those of the environment that are the plugin's own: COMPUTE_ACME, COMPUTE_ACME_….
std::string settings_of(const std::string& plugin) {
  std::string prefix = "COMPUTE_" + plugin;
  std::transform(prefix.begin(), prefix.end(), prefix.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c; });
  std::vector<std::string> found;
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    const std::string_view one = *at;
    if (!one.starts_with(prefix) || one.size() == prefix.size()) continue;
    if (one[prefix.size()] == '=' || one[prefix.size()] == '_') found.emplace_back(one);
  }
  std::sort(found.begin(), found.end());
  std::string text;
  for (const std::string& one : found) text += one + "\n";
  return text;
}

// ---- Verdicts on disk -----------------------------------------------------------------------------------------------

struct Verdicts {
  const fs::path& folder;
  const files::Trust& trust;

  // Why none are kept; empty if they are.
  std::string problem() const {
    if (folder.empty()) return "no cache directory is known";
    const std::string reason = trust.why_not(folder);
    return reason.empty() ? "" : folder.string() + ": " + reason;
  }

  // `passed`, or why the plugin is excluded. Ignores files that other users can write, damaged files and symbolic
  // links.
  std::optional<std::string> find(const std::string& key) const {
    files::File file(folder / hexadecimal(key), files::Links::kRefuse);
    if (!file || !trust.why_not(file.status()).empty()) return std::nullopt;
    const std::string text = file.read(kMaxSmallFileBytes).value_or("");
    const size_t end = text.find('\n', kMagic.size());
    if (!text.starts_with(kMagic) || end == std::string::npos) return std::nullopt;
    const std::string verdict = text.substr(kMagic.size(), end - kMagic.size());
    if (text != framed(key, verdict)) return std::nullopt;
    return verdict;
  }

  bool keep(const std::string& key, const std::string& verdict) const {
    if (!files::make_private_folder(folder) || !problem().empty()) return false;
    prune();
    return files::write_whole(folder / hexadecimal(key), framed(key, verdict));
  }

 private:
  static std::string framed(const std::string& key, const std::string& verdict) {
    return std::string(kMagic) + verdict + "\n" + hexadecimal(key + "|" + verdict) + "\n";
  }

  // Keeps the newest: keys of files that are gone are never asked for again.
  void prune() const {
    std::vector<std::pair<int64_t, fs::path>> entries;
    std::error_code error;
    const time_t now = ::time(nullptr);
    for (const fs::path& file : files::entries_of(folder, error)) {
      struct stat status {};
      if (::lstat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
      // only files with a name of this cache
      const std::string name = file.filename().string();
      const bool is_abandoned =
          files::is_partial_name(name, kKeyDigits, "") && now - status.st_mtime > kAbandonedAfterSeconds;
      if (is_abandoned) ::unlink(file.c_str());
      if (files::is_kept_name(name, kKeyDigits, "")) entries.emplace_back(status.st_mtime, file);
    }
    if (entries.size() < kMaxVerdicts) return;
    std::sort(entries.begin(), entries.end());
    for (size_t i = 0; i + kMaxVerdicts * 3 / 4 < entries.size(); ++i) ::unlink(entries[i].second.c_str());
  }
};

// ---- The child ------------------------------------------------------------------------------------------------------

// What the child has reported so far.
struct Report {
  std::string text;
  bool has(std::string_view line) const {
    return text.starts_with(std::string(line) + "\n") ||
           text.find("\n" + std::string(line) + "\n") != std::string::npos;
  }
  // What follows `mark` in the last line that begins with it.
  std::string last(const std::string& mark) const {
    size_t at = text.rfind("\n" + mark);
    if (at == std::string::npos) return "";
    at += 1 + mark.size();
    return text.substr(at, text.find('\n', at) - at);
  }
};

class Child {
 public:
  Child(const std::vector<std::string>& command, std::string* problem);
  ~Child() { end(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  explicit operator bool() const { return pid_ > 0; }

  // Waits until it has ended or `deadline` is past; false then.
  bool wait(Clock::time_point deadline);
  // Kills the child and its descendants if they still run. False if the child cannot be killed because it is stuck in a
  // driver.
  bool end();

  const Report& report() const { return report_; }
  // As of waitpid; nothing if the program does not want to know of its children, or somebody else has asked already.
  const std::optional<int>& status() const { return status_; }

 private:
  bool has_ended();
  bool read_some(int wait_ms);

  pid_t pid_ = 0;
  bool ended_ = false;
  bool killed_ = false;
  files::Descriptor output_;
  Report report_;
  std::optional<int> status_;
};

Child::Child(const std::vector<std::string>& command, std::string* problem) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    *problem = std::generic_category().message(errno);
    return;
  }
  output_.reset(ends[0]);
  const files::Descriptor writing(ends[1]);
  report_.text.reserve(kUsualOutputBytes);
  std::vector<std::string> words = command;
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);

  // Nothing of this program reaches it: no descriptor, no signal that is blocked or ignored; and its end does not reach
  // this program's group.
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_t actions;
  sigset_t none, all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, writing.get(), kReportDescriptor);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
  ::posix_spawn_file_actions_addclosefrom_np(&actions, kReportDescriptor + 1);
#endif
  const int failure = ::posix_spawn(&pid_, arguments.front(), &actions, &attributes, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (failure != 0) {
    pid_ = 0;
    *problem = std::generic_category().message(failure);
  }
}

// Waits for this child only: other children belong to the program.
bool Child::has_ended() {
  if (ended_) return true;
  int status = 0;
  pid_t answer = 0;
  do {
    answer = ::waitpid(pid_, &status, WNOHANG);
  } while (answer < 0 && errno == EINTR);
  if (answer == pid_) status_ = status;
  ended_ = answer != 0;  // ended without a status if SIGCHLD is ignored
  return ended_;
}

// False once the other end is closed.
bool Child::read_some(int wait_ms) {
  pollfd waiting = {output_.get(), POLLIN, 0};
  const int ready = ::poll(&waiting, 1, wait_ms);
  if (ready <= 0) return true;
  std::array<char, 4096> buffer;
  const ssize_t count = ::read(output_.get(), buffer.data(), buffer.size());
  if (count < 0) return errno == EINTR || errno == EAGAIN;
  if (count == 0) return false;
  if (report_.text.size() < kMaxOutputBytes) report_.text.append(buffer.data(), static_cast<size_t>(count));
  return true;
}

bool Child::wait(Clock::time_point deadline) {
  bool is_open = true;
  // Its descendants may keep the pipe open, so the child's own exit counts; otherwise the end of the pipe shows it.
  while (!has_ended()) {
    if (Clock::now() >= deadline) return false;
    if (is_open) {
      is_open = read_some(50);
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }
  for (size_t before = 0; is_open;) {
    before = report_.text.size();
    is_open = read_some(0) && report_.text.size() != before;
  }
  return true;
}

bool Child::end() {
  if (pid_ <= 0 || has_ended()) return true;
  if (killed_) return false;
  killed_ = true;
  ::kill(-pid_, SIGKILL);
  ::kill(pid_, SIGKILL);
  for (const Clock::time_point end = Clock::now() + kDeathTakes; !has_ended();) {
    if (Clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return true;
}

std::string signal_text(int number) {
  const char* name = ::sigabbrev_np(number);
  return name != nullptr ? std::string("SIG") + name : "signal " + std::to_string(number);
}

// Signals by which a user or the system ends any process.
bool comes_from_outside(int number) {
  return number == SIGKILL || number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGXCPU;
}

}  // namespace

std::string verdict_key(const PluginCandidate& plugin) {
  std::string key = "compute " + std::to_string(COMPUTE_VERSION_MAJOR) + "." + std::to_string(COMPUTE_VERSION_MINOR) +
                    "." + std::to_string(COMPUTE_VERSION_PATCH) + "\n" + identity_of(library_file());
  key += identity_of(plugin.real) + read_elf_file(plugin.real).build_id + "\n";
  ElfSearch search = ElfSearch::of_process();
  search.loaded.clear();  // the same for every program
  const ElfDependencies needed = find_dependencies(plugin.real, search);
  for (const std::string& file : needed.found) key += identity_of(file);
  for (const MissingLibrary& library : needed.missing) key += library.name + " absent\n";
  key += settings_of(plugin.name);
  utsname system{};
  if (::uname(&system) == 0) key += std::string(system.release) + "\n";
  key += std::string(variable("LD_PRELOAD")) + "\n";
  if (plugin.manifest) {
    for (const ManifestRequirement& requirement : plugin.manifest->requirements) {
      for (const std::string& file : requirement.files) key += libraries_of(file, search);
    }
  }
  for (const ManifestDrivers& drivers : plugin.drivers) key += state_of(drivers, search);
  return key;
}

ProbeRun run_probe(const std::vector<std::string>& command, int64_t timeout_ms) {
  ProbeRun run;
  Child child(command, &run.detail);
  if (!child) return run;
  const bool in_time = child.wait(Clock::now() + std::chrono::milliseconds(timeout_ms));
  const bool is_gone = child.end();
  const Report& report = child.report();
  const std::string step = report.last("at ");
  const std::string where = step.empty() ? "" : " in " + step;
  const std::optional<int> status = child.status();

  if (!in_time) {
    run.outcome = ProbeOutcome::kHung;
    run.detail = std::to_string(timeout_ms / 1000) + " s" + where;
    if (!is_gone) run.detail += "; its process cannot be killed";
    return run;
  }
  std::string end = "ended early";
  if (status && WIFSIGNALED(*status)) end = signal_text(WTERMSIG(*status));
  if (status && WIFEXITED(*status)) end = "exit status " + std::to_string(WEXITSTATUS(*status));
  if (!report.has("ready")) {
    run.detail = "compute-probe did not start: " + end;
    return run;
  }
  const bool is_clean = !status || (WIFEXITED(*status) && WEXITSTATUS(*status) == 0);
  const std::string failure = report.last("failed: "), untried = report.last("untried: ");
  if (is_clean && !untried.empty()) {
    run.detail = untried;
  } else if (is_clean && report.has("passed")) {
    run.outcome = ProbeOutcome::kPassed;
  } else if (is_clean && !failure.empty()) {
    run.outcome = ProbeOutcome::kFailed;
    run.detail = failure;
  } else {
    run.outcome = ProbeOutcome::kCrashed;
    const bool at_exit = report.has("passed") || !failure.empty();
    run.detail = end + (at_exit ? " at process exit" : where);
    run.is_lasting = !(status && WIFSIGNALED(*status) && comes_from_outside(WTERMSIG(*status)));
  }
  return run;
}

ProbeOptions ProbeOptions::of_process(const Config& config) {
  ProbeOptions options;
  const std::string& when = config.get(SettingId::kProbe).text;
  options.when = when == "0" ? ProbeWhen::kNever : when == "always" ? ProbeWhen::kAlways : ProbeWhen::kNew;
  options.seconds = config.get(SettingId::kProbeSeconds).integer.value_or(options.seconds);
  options.privileged = config.inputs().privileged;
  options.trust = config.trust();
  const std::optional<fs::path> cache = files::cache_folder(config.get(SettingId::kCacheDir).text);
  if (cache && !options.privileged) options.folder = *cache / "probe";
  return options;
}

void Prober::note(const std::string& text) {
  if (std::find(notes_.begin(), notes_.end(), text) != notes_.end()) return;
  log(COMPUTE_LOG_DEBUG, "load", text);
  notes_.push_back(text);
}

std::string Prober::reason_against(const PluginCandidate& plugin) {
  if (options_.when == ProbeWhen::kNever) return "";
  if (options_.privileged) {
    // a child with fewer rights would not represent this process, and one with the same rights would obey the caller's
    // environment
    note("Plugins are not probed in a separate process: the process is privileged");
    return "";
  }
  const fs::path helper = library_folder() / "compute/compute-probe";
  if (::access(helper.c_str(), X_OK) != 0) {
    note("Plugins are not probed in a separate process: " + printable(helper.string(), kLongestPath) + ": " +
         std::generic_category().message(errno));
    return "";
  }
  const Verdicts verdicts{options_.folder, options_.trust};
  const std::string no_verdicts = verdicts.problem();
  auto trial =
      std::find_if(trials_.begin(), trials_.end(), [&](const Trial& known) { return known.library == plugin.library; });
  if (trial == trials_.end()) {
    trial = trials_.insert(trial, {plugin.library, no_verdicts.empty() ? verdict_key(plugin) : "", ProbeRun()});
  }
  const std::string& key = trial->key;
  const bool is_thorough = options_.when == ProbeWhen::kAlways;
  if (!key.empty() && !is_thorough) {
    if (const std::optional<std::string> verdict = verdicts.find(key)) return *verdict == "passed" ? "" : *verdict;
  }
  const std::string before = identity_of(plugin.real);
  log(COMPUTE_LOG_DEBUG, "load", "probing " + plugin.library.string() + " in a separate process");
  const fs::path& named = plugin.manifest ? plugin.manifest->file : plugin.real;
  std::vector<std::string> command = {helper.string(), named.string()};
  if (is_thorough) command.insert(command.begin() + 1, "--run");
  ProbeRun& run = trial->run;
  if (run.outcome == ProbeOutcome::kNotRun) run = run_probe(command, options_.seconds * 1000);
  if (identity_of(plugin.real) != before) return "its file was replaced while it was probed; start the program again";
  std::string verdict;
  switch (run.outcome) {
    case ProbeOutcome::kNotRun:
      note("A plugin could not be probed in a separate process: " + run.detail);
      return "";
    case ProbeOutcome::kPassed:
    case ProbeOutcome::kFailed:
      break;
    case ProbeOutcome::kCrashed:
      verdict = "it crashed in its probe: " + run.detail;
      break;
    case ProbeOutcome::kHung:
      verdict = "it hung in its probe for " + run.detail;
      break;
  }
  if (!verdict.empty()) {
    verdict =
        printable(verdict, kLongestPath) + "; compute doctor probes it again, COMPUTE_PROBE=0 loads it without a probe";
  }
  if (run.is_lasting && (key.empty() || !verdicts.keep(key, verdict.empty() ? "passed" : verdict))) {
    note("Plugins are probed at every start: the results cannot be kept (" +
         (no_verdicts.empty() ? options_.folder.string() + " is not writable" : no_verdicts) + ")");
  }
  return verdict;
}

}  // namespace compute
