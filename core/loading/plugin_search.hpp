// SPDX-License-Identifier: Apache-2.0
// Search paths of plugins, and the files found there. Loads nothing.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/loading/manifest.hpp"
#include "core/settings/config.hpp"

namespace compute {

// The places, in the order in which they are searched. A place that is not absolute is refused, so a plugin never comes
// from the working directory.
struct PluginPlaces {
  struct Named {
    std::string place;
    std::string source;  // `COMPUTE_PLUGIN_PATH`, `/etc/compute/config.toml:3`
  };
  struct Folder {
    std::filesystem::path folder;
    std::string source;  // `beside libcompute`
    bool manifests_only = false;
    bool is_users = false;
    bool is_ours = false;  // our own plugins are installed there; their manifests come with core, also without them
  };

  std::vector<Named> api_folders;  // COMPUTE_PLUGIN_PATH, set by the API: always searched
  std::vector<Named> files;        // COMPUTE_PLUGIN_FILES: replaces all that follow
  std::vector<Named> folders;      // COMPUTE_PLUGIN_PATH
  std::vector<Folder> standard;    // they need not exist
  files::Trust trust;              // whose files are trusted

  // The places of this process: next to libcompute (also in the build tree), $XDG_DATA_HOME/compute/plugins,
  // <libdir>/compute/plugins, /etc/compute/plugins.d. The user's folder is left out if the process is privileged.
  static PluginPlaces of_process(const Config& config);
};

struct PluginCandidate {
  std::filesystem::path library;  // absolute, as it was found
  std::filesystem::path real;     // its links resolved
  std::string source;             // the folder, and who named it
  std::string name;               // of the plugin: from the manifest or the file name, else a guess from the file name
  bool name_is_known = false;     // the manifest or the file name states it, so the file need not be opened to know it
  std::string distrust;           // why it must not be opened: other users may have written it
  std::optional<Manifest> manifest;
  std::vector<ManifestDrivers> drivers;  // those that it may find: of its manifest, else of all that are known
  bool may_be_ours =
      false;  // named as a file, or where our own plugins are installed: it may have the name of one of them
};

struct SearchedPlace {
  std::string place;
  std::string source;
  bool exists = false;
};

// What was named or found but is not a candidate.
struct RefusedEntry {
  std::string entry;
  std::string reason;
};

struct FoundPlugins {
  std::vector<PluginCandidate> candidates;
  std::vector<RefusedEntry> refused;
  std::vector<SearchedPlace> searched;
};

// The contents of all manifests, whether their plugins are candidates or not. This includes plugins that are not
// installed, and folders that COMPUTE_PLUGIN_FILES replaces, so that their settings and names are known. Manifests that
// cannot be read are left out; find_plugins reports them. Throws OUT_OF_MEMORY as find_plugins does.
struct KnownManifest {
  Manifest manifest;
  bool is_ours = false;  // the folder of our own plugins
};
std::vector<KnownManifest> known_manifests(const PluginPlaces& places);

// Searches every *.so and *.json in the places, within a folder in the byte order of names. A library that is found
// twice, by whatever path, is one candidate, in its first place; a manifest that comes later is still used. Throws
// OUT_OF_MEMORY if something has run out, such as descriptors; then nothing is known. Manifests of `known` are not read
// again.
FoundPlugins find_plugins(const PluginPlaces& places, std::span<const KnownManifest> known = {});

}  // namespace compute
