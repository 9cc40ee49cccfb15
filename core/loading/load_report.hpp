// SPDX-License-Identifier: Apache-2.0
// The state of every plugin that was found: how far loading came, what is missing and how to fix it. The loader fills
// this value. compute_load_report prints it, and it is part of the error if a device does not exist.
//
// The JSON form:
//
//   {
//     "plugins": [{
//       "name", "version", "build_id", "vendor", "license", "url": strings, "" where unknown
//       "path", "source": where the library is and who named the place
//       "manifest": its path, "" without one
//       "state": "found" | "manifest" | "dependencies" | "query" | "interface" | "opened": the last step that succeeded
//       "rejected": why loading stopped there, or null
//       "note": why a good plugin was not opened, or null
//       "devices": [{"name", "description", "problem"}],   "problem" is null for a device that can be used
//       "missing_libraries": [names],
//       "requirements": [{"name", "state": "found" | "missing" | "unusable" | "unknown", "required": bool,
//                         "tried": [...], "found", "error", "effect", "remedy"}],
//       "remedies": [what the user can do, one string each]
//     }],
//     "refused": [{"entry", "reason"}],                    files that were named or found and are not plugins
//     "searched": [{"place", "source", "exists": bool}],
//     "notes": [...]
//   }
#pragma once

#include <compute/plugin.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/loading/plugin_search.hpp"

namespace compute {

// The steps of loading, in order.
enum class LoadStep { kFound, kManifest, kDependencies, kQuery, kInterface, kOpened };

// A library or driver that a plugin opens at run time.
struct RequirementReport {
  enum class State {
    kUnknown = COMPUTE_PLUGIN_LIBRARY_NOT_SEARCHED,
    kFound = COMPUTE_PLUGIN_LIBRARY_FOUND,
    kMissing = COMPUTE_PLUGIN_LIBRARY_MISSING,
    kUnusable = COMPUTE_PLUGIN_LIBRARY_UNUSABLE
  };

  std::string name;
  State state = State::kUnknown;
  bool required = false;  // without it there are no devices
  std::vector<std::string> tried;
  std::string found;   // path and version
  std::string error;   // the system's message
  std::string effect;  // features that need it
  std::string remedy;
};

struct DeviceReport {
  std::string name;
  std::string description;
  std::string problem;  // empty: it is usable
};

struct PluginReport {
  std::string name;  // until the plugin states its name, the one that the file name suggests
  std::string version;
  std::string build_id;
  std::string vendor;
  std::string license;
  std::string url;
  std::string path;
  std::string source;
  std::string manifest;
  LoadStep step = LoadStep::kFound;  // the last step that succeeded
  std::string rejected;              // why the next step failed
  std::string note;                  // why a plugin was not opened although it could have been
  std::vector<DeviceReport> devices;
  std::vector<std::string> missing_libraries;
  std::vector<RequirementReport> requirements;

  bool is_opened() const { return step == LoadStep::kOpened; }

  // In one line, why there is no device: `no NVIDIA driver: tried libcuda.so.1`; empty if there are devices.
  std::string problem() const;
  std::vector<std::string> remedies() const;
};

struct LoadReport {
  std::vector<PluginReport> plugins;
  std::vector<RefusedEntry> refused;
  std::vector<SearchedPlace> searched;
  std::vector<std::string> notes;

  std::string to_text() const;
  std::string to_json() const;
};

const char* load_step_name(LoadStep step);

}  // namespace compute
