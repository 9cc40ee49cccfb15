// SPDX-License-Identifier: Apache-2.0
#include "core/loading/probe.hpp"

#include <compute/compute.h>
#include <signal.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <xxhash.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <optional>
#include <sstream>
#include <system_error>
#include <utility>

#include "core/base/library_file.hpp"
#include "core/loading/child_process.hpp"
#include "core/process/log.hpp"
#include "core/settings/config.hpp"
#include "core/text/ascii.hpp"
#include "core/text/printable.hpp"

extern char** environ;

namespace compute {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxSmallFileBytes = 1 << 16;
constexpr size_t kMaxVerdicts = 64;
constexpr size_t kKeyDigits = 32;               // of a verdict's name
constexpr time_t kAbandonedAfterSeconds = 600;  // a temporary file that old has lost its writer
constexpr int kReportDescriptor = 3;
constexpr std::string_view kMagic = "compute-verdict 2\n";

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

// Which file a bare name means follows from the paths and the cache of the dynamic linker, which are in the key.
std::string library_state(const std::string& name) { return name.starts_with("/") ? identity_of(name) : name + "\n"; }

const char* variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// The library that a file of a list names: OpenCL's by its first line, Vulkan's by "library_path" in JSON, which is
// relative to the folder of the file if it has a slash.
std::string listed_library(const fs::path& file) {
  const std::string contents = contents_of(file);
  if (file.extension() != ".json") return std::string(trimmed(contents.substr(0, contents.find('\n'))));
  const nlohmann::json manifest = nlohmann::json::parse(contents, nullptr, false);
  const auto driver = manifest.is_object() ? manifest.find("ICD") : manifest.end();
  if (driver == manifest.end() || !driver->is_object()) return "";
  const auto path = driver->find("library_path");
  if (path == driver->end() || !path->is_string()) return "";
  const auto library = path->get<std::string>();
  return library.find('/') == std::string::npos ? library : (file.parent_path() / library).lexically_normal().string();
}

// The libraries that the files of a folder name. The variable names another folder, or folders and files.
std::string listed_libraries(const ManifestDrivers::List& list) {
  const std::string named = list.variable.empty() ? "" : variable(list.variable.c_str());
  std::vector<fs::path> files;
  std::istringstream places(named.empty() ? list.folder : named);
  for (std::string place; std::getline(places, place, ':');) {
    std::error_code error;
    if (!fs::is_directory(place, error)) {
      files.emplace_back(place);
      continue;
    }
    const std::vector<fs::path> entries = files::entries_of(place, error);
    files.insert(files.end(), entries.begin(), entries.end());
  }
  std::sort(files.begin(), files.end());
  std::string text = named + "\n";
  for (const fs::path& file : files) text += identity_of(file) + library_state(listed_library(file));
  return text;
}

std::string state_of(const ManifestDrivers& drivers) {
  std::string text;
  for (const std::string& module : drivers.modules) {
    for (const char* file : {"version", "srcversion"}) text += contents_of(fs::path("/sys/module") / module / file);
    text += "|";
  }
  for (const std::string& library : drivers.libraries) text += library_state(library);
  for (const ManifestDrivers::List& list : drivers.lists) text += listed_libraries(list);
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

  // `passed`, or why the plugin is excluded. Ignores files that other users can write, damaged files, symbolic links,
  // and results of probes whose libraries have changed.
  std::optional<std::string> find(const std::string& key) const {
    files::File file(folder / hexadecimal(key), files::Links::kRefuse);
    if (!file || !trust.why_not(file.status()).empty()) return std::nullopt;
    const std::string text = file.read(kMaxSmallFileBytes).value_or("");
    if (!text.starts_with(kMagic)) return std::nullopt;
    std::vector<std::string> lines;
    for (size_t begin = kMagic.size(), end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
      lines.push_back(text.substr(begin, end - begin));
    if (lines.size() < 2) return std::nullopt;
    lines.pop_back();  // the checksum
    const std::string verdict = lines.front();
    lines.erase(lines.begin());
    if (text != framed(key, verdict, lines)) return std::nullopt;
    return verdict;
  }

  bool keep(const std::string& key, const std::string& verdict, const std::vector<std::string>& libraries) const {
    if (!files::make_private_folder(folder) || !problem().empty()) return false;
    prune();
    return files::write_whole(folder / hexadecimal(key), framed(key, verdict, libraries));
  }

 private:
  static std::string framed(const std::string& key, const std::string& verdict,
                            const std::vector<std::string>& libraries) {
    std::string text = std::string(kMagic) + verdict + "\n", identities;
    for (const std::string& library : libraries) {
      text += library + "\n";
      identities += identity_of(library);
    }
    return text + hexadecimal(key + "|" + text + "|" + identities) + "\n";
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

// What the child has reported.
struct Report {
  const std::string& text;
  bool has(std::string_view line) const {
    return text.starts_with(std::string(line) + "\n") ||
           text.find("\n" + std::string(line) + "\n") != std::string::npos;
  }
  // What follows `mark` in each line that begins with it, once.
  std::vector<std::string> all(const std::string& mark) const {
    std::vector<std::string> found;
    for (size_t at = text.find("\n" + mark); at != std::string::npos; at = text.find("\n" + mark, at + 1)) {
      const size_t begin = at + 1 + mark.size();
      std::string one = text.substr(begin, text.find('\n', begin) - begin);
      if (std::find(found.begin(), found.end(), one) == found.end()) found.push_back(std::move(one));
    }
    return found;
  }
  // The same of the last one.
  std::string last(const std::string& mark) const {
    size_t at = text.rfind("\n" + mark);
    if (at == std::string::npos) return "";
    at += 1 + mark.size();
    return text.substr(at, text.find('\n', at) - at);
  }
};

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
  key += identity_of(plugin.real) + identity_of("/etc/ld.so.cache");
  for (const char* name : {"LD_LIBRARY_PATH", "LD_PRELOAD"}) key += std::string(variable(name)) + "\n";
  key += settings_of(plugin.name);
  utsname system{};
  if (::uname(&system) == 0) key += std::string(system.release) + "\n";
  if (plugin.manifest) {
    for (const ManifestRequirement& requirement : plugin.manifest->requirements) {
      for (const std::string& file : requirement.files) key += library_state(file);
    }
  }
  for (const ManifestDrivers& drivers : plugin.drivers) key += state_of(drivers);
  return key;
}

ProbeRun run_probe(const std::vector<std::string>& command, int64_t timeout_ms) {
  ProbeRun run;
  ChildProcess child(command, {}, kReportDescriptor, &run.detail);
  if (!child) return run;
  const bool in_time = child.wait(ChildProcess::Clock::now() + std::chrono::milliseconds(timeout_ms));
  const bool is_gone = child.end();
  const Report report{child.output()};
  run.libraries = report.all("library ");
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
    if (const std::string words = child.last_words(); !words.empty()) run.detail += "; it wrote: " + printable(words);
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
  if (run.is_lasting && (key.empty() || !verdicts.keep(key, verdict.empty() ? "passed" : verdict, run.libraries))) {
    note("Plugins are probed at every start: the results cannot be kept (" +
         (no_verdicts.empty() ? options_.folder.string() + " is not writable" : no_verdicts) + ")");
  }
  return verdict;
}

}  // namespace compute
