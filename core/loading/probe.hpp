// SPDX-License-Identifier: Apache-2.0
// Probes: a plugin is tried in another process, so that a crash, an exit or a hang there does not affect this process.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/loading/plugin_search.hpp"
#include "core/trusted_files/trusted_files.hpp"

namespace compute {

enum class ProbeWhen {
  kNever,
  kNew,    // a plugin without a stored result: it is loaded, opened and lists its devices
  kAlways  // every plugin, whatever is stored: its devices are opened too and run an op
};

struct ProbeOptions {
  ProbeWhen when = ProbeWhen::kNever;
  int64_t seconds = 60;  // time limit; the first use of a driver can be slow
  bool privileged = false;
  std::filesystem::path folder;  // of the stored results; empty: none are stored
  files::Trust trust;            // of that folder

  static ProbeOptions of_process(const Config& config);
};

// The result of a run of the helper.
enum class ProbeOutcome { kPassed, kFailed, kCrashed, kHung, kNotRun };
struct ProbeRun {
  ProbeOutcome outcome = ProbeOutcome::kNotRun;
  std::string detail;                  // `SIGSEGV in dlopen`, the helper's last line, or why it was not run
  std::vector<std::string> libraries;  // files that the helper had loaded
  bool is_lasting = true;              // false: another process may have ended it, so the next result may differ
};

// Decides which plugins may be loaded into this process.
//
// A result is stored in the cache folder. Its key contains what the result depends on: the plugin's file (inode, size,
// times), this library, where the dynamic linker searches, the plugin's own settings in the environment and the drivers
// that its manifest names, or all manifests if it names none. The libraries that were loaded are stored with the
// result. So a plugin is tried again after it is repaired, or after its libraries or its driver change.
class Prober {
 public:
  explicit Prober(ProbeOptions options) : options_(std::move(options)) {}

  // Why the plugin must not be loaded here, in one line: it crashed, exited or hung when it was tried. Empty if it
  // passed, and if it could not be tried (no helper, no process could be created); then it is loaded without a probe.
  std::string reason_against(const PluginCandidate& plugin);

  // Why plugins could not be tried, one line each.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  // A result within this process. If memory runs out afterwards, the next call finds it here and does not probe again.
  struct Trial {
    std::filesystem::path library;
    std::string key;  // of its result; empty if none are stored
    ProbeRun run;
  };

  void note(const std::string& text);

  ProbeOptions options_;
  std::vector<std::string> notes_;
  std::vector<Trial> trials_;
};

// The key of a result, as text.
std::string verdict_key(const PluginCandidate& plugin);

// Runs `command` (an absolute path first) in its own process group and terminates it after `timeout_ms`. It reports in
// lines on descriptor 3: `ready`, `at STEP` before each step, `library FILE` for each library that it has loaded, and
// at last `passed`, `failed: REASON` or `untried: REASON`. It has passed only if it then exits with status 0. The
// status is ignored if it is not available, as in programs that discard the status of their children. If a child does
// not die when it is killed, in the middle of a driver for example, core stops waiting for it after a second.
ProbeRun run_probe(const std::vector<std::string>& command, int64_t timeout_ms);

}  // namespace compute
