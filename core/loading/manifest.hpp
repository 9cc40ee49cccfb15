// SPDX-License-Identifier: Apache-2.0
// A plugin's manifest: a JSON file next to the library, or in /etc/compute/plugins.d, that describes the plugin without
// loading it. It is optional; without it the plugin's own query gives the same data.
//
//   {
//     "name": "acme",                          the plugin's name, as its query gives it
//     "library": "compute_plugin_acme.so",     absolute, or relative to the manifest's folder
//     "interface": {"min": 1, "max": 2},       interface versions
//     "devices": ["discrete_gpu", "cpu"],      kinds: cpu, discrete_gpu, integrated_gpu, accelerator
//     "priority": 10,                          among devices of one kind for `auto`; in place of the query's
//     "arch": "x86_64",                        as uname -m spells it
//     "requires": [{"name": "acmert", "files": ["libacmert.so.2"], "min_version": "2.1", "remedy": "install acmert"}],
//     "drivers": {"libraries": ["libacme.so.1"], "modules": ["acme"], "variables": ["ACME_DRIVERS"],
//                 "lists": [{"folder": "/etc/acme/drivers", "variable": "ACME_DRIVERS"}]},
//     "settings": [{"name": "COMPUTE_ACME_MODE", "kind": "choice", "choices": ["fast", "exact"], "default": "fast",
//     "help": "how"}], "version": "1.4", "vendor": "Acme", "license": "MIT", "url": "https://acme.example"
//   }
//
// Only name and library are required. Unknown keys are for newer readers and are skipped.
//
// `drivers` lists what the plugin opens at run time: libraries; kernel modules; environment variables; folders of files
// that name libraries, by their first line or in JSON as Vulkan's drivers do. A variable can name other folders and
// files. When any of these changes, the plugin is probed again before it is loaded. Without the key, the drivers of all
// other manifests are checked.
//
// `settings` are the plugin's own settings. Their names begin with COMPUTE_, the plugin's name and `_`. The key in a
// configuration file follows from the name: acme.mode. Kinds are text, flag, integer (with "range": [0, 10]), bytes,
// choice, words (both with "choices"), path and paths. Paths name files that are loaded. With "device": true selectors
// can set it for a device, acme0+mode=fast.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/settings/setting.hpp"
#include "core/trusted_files/trusted_files.hpp"

namespace compute {

// A family of libraries that the plugin opens at run time.
struct ManifestRequirement {
  std::string name;
  std::vector<std::string> files;  // names that it may have, newest first
  std::string min_version;
  std::string remedy;
};

// What the plugin opens at run time.
struct ManifestDrivers {
  std::vector<std::string> libraries;
  std::vector<std::string> modules;    // of the kernel
  std::vector<std::string> variables;  // of the environment
  // A folder of files whose first lines name libraries, and the variable that can name another folder.
  struct List {
    std::string folder;
    std::string variable;
  };
  std::vector<List> lists;
};

struct Manifest {
  std::filesystem::path file;  // of the manifest itself
  std::string name;
  std::filesystem::path library;  // absolute
  uint32_t interface_min = 0;     // both 0: not stated
  uint32_t interface_max = 0;
  std::vector<int32_t> device_kinds;  // COMPUTE_DEVICE_KIND_
  std::optional<int32_t> priority;
  std::string arch;
  std::vector<ManifestRequirement> requirements;
  std::optional<ManifestDrivers> drivers;
  std::vector<DeclaredSetting> settings;
  std::string version;
  std::string vendor;
  std::string license;
  std::string url;
};

// True iff `name` can be a plugin's name: letters and `_`, and not a word that selectors use otherwise.
bool is_plugin_name(std::string_view name);
// What is wrong with it, as the end of a sentence; "" if nothing is wrong.
std::string why_no_plugin_name(std::string_view name);

// Parses the text of the manifest `file`, an absolute path. Throws PLUGIN_REJECTED, `FILE: reason` in one line.
Manifest parse_manifest(std::string_view text, const std::filesystem::path& file);

// The same for the file's contents. Throws OUT_OF_MEMORY if it cannot be read because of a shortage. If `trust` does
// not trust the opened file, nothing is read and *out_distrust states why.
Manifest read_manifest(const std::filesystem::path& file);
std::optional<Manifest> read_manifest(const std::filesystem::path& file, const files::Trust& trust,
                                      std::string* out_distrust);

}  // namespace compute
