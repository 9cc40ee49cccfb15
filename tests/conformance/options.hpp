// SPDX-License-Identifier: Apache-2.0
// The command line of compute-cts.
#pragma once

#include <string>
#include <vector>

#include "session.hpp"

namespace compute::conformance {

struct Options {
  std::vector<std::string> devices;      // selectors; empty: every visible device
  std::vector<std::string> known_files;  // in addition to the plugin's
  std::vector<std::string> plugins;      // plugin files to load instead of the installed ones
  std::string json, matrix;              // files for the support matrix
  bool wants_matrix() const { return !json.empty() || !matrix.empty(); }
  Level level = Level::FULL;
  int jobs = 1;           // processes
  std::string shard_log;  // of a process that another one started: where it says how far it is
  bool list = false;
  bool verbose = false;
  bool help = false;
};

// Exit status.
inline constexpr int kNothingTested = 2;

extern const char* const kUsage;
const char* level_name(Level level);

/// Takes the program's own options out of argv; those of GoogleTest stay. Throws std::runtime_error for unknown ones.
Options read_options(int& argc, char** argv);

}  // namespace compute::conformance
