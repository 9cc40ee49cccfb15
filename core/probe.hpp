// SPDX-License-Identifier: Apache-2.0
//
// Trying a plugin in a process of its own: what crashes or hangs there does not get into this one.
#ifndef COMPUTE_CORE_PROBE_HPP_
#define COMPUTE_CORE_PROBE_HPP_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace compute {

// Why the plugin must not be loaded here, in one line: it crashed or hung when it was tried. Empty where it did not,
// and where it could not be tried (no helper, no processes to be had): loading it in this process tells the rest.
//
// A verdict is remembered in the cache folder, by the contents of the library and the versions of this library, the
// kernel and the drivers, and holds until one of them changes.
std::string probe_plugin(const std::filesystem::path& library);

// What a run of the helper came to.
enum class ProbeOutcome { kPassed, kFailed, kCrashed, kHung, kNotRun };
struct ProbeRun {
  ProbeOutcome outcome = ProbeOutcome::kNotRun;
  std::string detail;  // the signal's name, or the helper's last line
};

// Runs `command` (an absolute path first), whose last line is `passed` where all went well. Ends it after `timeout_ms`.
ProbeRun run_probe(const std::vector<std::string>& command, int64_t timeout_ms);

}  // namespace compute

#endif  // COMPUTE_CORE_PROBE_HPP_
