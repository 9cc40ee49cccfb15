// SPDX-License-Identifier: Apache-2.0
// Trying a plugin in a process of its own: what crashes, exits or hangs there does not get into this one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/files/files.hpp"
#include "core/loading/plugin_search.hpp"

namespace compute {

enum class ProbeWhen {
  kNever,
  kNew,    // a plugin that has no verdict here: it is loaded, opened and lists its devices
  kAlways  // each, whatever is known of it: its devices are opened too and run an op
};

struct ProbeOptions {
  ProbeWhen when = ProbeWhen::kNever;
  int64_t seconds = 60;  // after which it hangs: the first use of a driver may take many
  bool privileged = false;
  std::filesystem::path folder;  // of the verdicts; empty: none are kept
  files::Trust trust;            // of that folder

  static ProbeOptions of_process(const Config& config);
};

// What a run of the helper came to.
enum class ProbeOutcome { kPassed, kFailed, kCrashed, kHung, kNotRun };
struct ProbeRun {
  ProbeOutcome outcome = ProbeOutcome::kNotRun;
  std::string detail;      // `SIGSEGV in dlopen`, the helper's last word, or why it was not run
  bool is_lasting = true;  // false: somebody else may have ended it, which says nothing of the next time
};

// Decides which plugins may be loaded into this process.
//
// A verdict is remembered in the cache folder. Its key is all that it depends on: the plugin's file (inode, size,
// times, build id), the libraries that it needs as they are found now, this library, the plugin's own settings in the
// environment and the drivers that its manifest names, or all manifests where it has none. So a repaired plugin is
// tried again, and so is one whose driver changed.
class Prober {
 public:
  explicit Prober(ProbeOptions options) : options_(std::move(options)) {}

  // Why the plugin must not be loaded here, in one line: it crashed, exited or hung when it was tried. Empty where it
  // did not, and where it could not be tried (no helper, no processes to be had): loading it in this process tells the
  // rest.
  std::string reason_against(const PluginCandidate& plugin);

  // What kept plugins from being tried, one line each.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  // Of this process: whoever runs out of memory afterwards and asks again finds it.
  struct Trial {
    std::filesystem::path library;
    std::string key;  // of its verdict; empty where none are kept
    ProbeRun run;
  };

  void note(const std::string& text);

  ProbeOptions options_;
  std::vector<std::string> notes_;
  std::vector<Trial> trials_;
};

// The key of a verdict, as text.
std::string verdict_key(const PluginCandidate& plugin);

// Runs `command` (an absolute path first) in a process group of its own and ends it after `timeout_ms`. It reports in
// lines on descriptor 3: `ready`, `at STEP` before each step, at last `passed`, `failed: REASON` or `untried: REASON`.
// It passed only if it then ends by itself with status 0, as far as its status is to be had: a program may want none of
// its children's. A child that does not die when it is killed, in the middle of a driver for one, is left behind after
// a second.
ProbeRun run_probe(const std::vector<std::string>& command, int64_t timeout_ms);

}  // namespace compute
