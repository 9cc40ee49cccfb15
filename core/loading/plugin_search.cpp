// SPDX-License-Identifier: Apache-2.0
#include "core/loading/plugin_search.hpp"

#include <algorithm>
#include <map>
#include <system_error>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/library_file.hpp"
#include "core/text/ascii.hpp"
#include "core/text/printable.hpp"

namespace compute {
namespace {

namespace fs = std::filesystem;

const char kPluginFolder[] = "compute/plugins";
constexpr size_t kMaxFiles = 4096;  // of one folder

// A temporary shortage is not a result: the next call repeats the search.
void throw_if_short(const std::error_code& error, const fs::path& what) {
  if (error && files::is_shortage(error.value())) {
    throw Error(COMPUTE_ERROR_OUT_OF_MEMORY,
                "cannot access " + printable(what.string(), kLongestPath) + ": " + error.message());
  }
}

// The plugin's name by the file name: compute_plugin_acme.so is acme. False for other file names, for which the name is
// a guess.
bool read_name(const fs::path& file, std::string& name) {
  name = file.filename().string();
  name = to_lower(name.substr(0, name.find('.')));
  constexpr std::string_view kPrefix = "compute_plugin_";
  if (name.starts_with(kPrefix)) {
    name.erase(0, kPrefix.size());
    return is_plugin_name(name);
  }
  if (name.starts_with("lib")) name.erase(0, 3);
  return false;
}

class Search {
 public:
  Search(const files::Trust& trust, std::span<const KnownManifest> known) : trust_(trust), known_(known) {}

  FoundPlugins run(const PluginPlaces& places) {
    for (const PluginPlaces::Named& named : places.api_folders) named_folder(named, places.standard);
    may_be_ours_ = true;
    is_ours_ = false;
    for (const PluginPlaces::Named& named : places.files) {
      if (is_absolute(named)) entry(named.place, named.source);
    }
    if (!places.files.empty()) return std::move(found_);
    for (const PluginPlaces::Named& named : places.folders) named_folder(named, places.standard);
    for (const PluginPlaces::Folder& standard : places.standard) {
      enter(&standard);
      if (searched(standard.folder, standard.source)) folder(standard.folder, standard.source, standard.manifests_only);
    }
    return std::move(found_);
  }

 private:
  void refuse(const fs::path& what, const std::string& why) { found_.refused.push_back({what.string(), why}); }

  bool is_absolute(const PluginPlaces::Named& named) {
    if (fs::path(named.place).is_absolute()) return true;
    refuse(named.place, "from " + named.source + ": not an absolute path");
    return false;
  }

  // False if the folder is not there or was searched before.
  bool searched(const fs::path& path, const std::string& source) {
    std::error_code error;
    const fs::path real = fs::canonical(path, error);
    throw_if_short(error, path);
    const bool is_folder = !error && fs::is_directory(real, error);
    for (const SearchedPlace& place : found_.searched) {
      if (place.place == path) return false;
    }
    found_.searched.push_back({path.string(), source, is_folder});
    return is_folder && folders_.emplace(real, true).second;
  }

  // Files that follow are from that folder; NULL: from no standard one.
  void enter(const PluginPlaces::Folder* standard) {
    may_be_ours_ = standard != nullptr && !standard->is_users;
    is_ours_ = standard != nullptr && standard->is_ours;
  }

  void named_folder(const PluginPlaces::Named& named, std::span<const PluginPlaces::Folder> standard) {
    if (!is_absolute(named)) return;
    std::error_code error;
    // Naming a standard folder explicitly does not change which files are accepted there.
    const auto same = std::find_if(standard.begin(), standard.end(), [&](const PluginPlaces::Folder& one) {
      std::error_code missing;
      return fs::equivalent(one.folder, named.place, missing);
    });
    enter(same != standard.end() ? &*same : nullptr);
    if (searched(named.place, named.source)) {
      folder(named.place, named.source, false);
    } else if (!fs::exists(named.place, error)) {
      refuse(named.place, "from " + named.source + ": no such directory");
    } else if (!fs::is_directory(named.place, error)) {
      refuse(named.place, "from " + named.source + ": not a directory; use COMPUTE_PLUGIN_FILES for files");
    }
  }

  void folder(const fs::path& path, const std::string& source, bool manifests_only) {
    std::error_code error;
    std::vector<fs::path> files;
    for (fs::path& file : files::entries_of(path, error)) {
      const fs::path extension = file.extension();
      if (extension == ".json" || (extension == ".so" && !manifests_only)) files.push_back(std::move(file));
      if (files.size() > kMaxFiles) {
        refuse(path, "it has more than " + std::to_string(kMaxFiles) + " plugins and manifests");
        return;
      }
    }
    throw_if_short(error, path);
    if (error) refuse(path, error.message());
    std::sort(files.begin(), files.end(), [](const fs::path& x, const fs::path& y) { return x.native() < y.native(); });
    for (const fs::path& file : files) entry(file, source);
  }

  void entry(const fs::path& file, const std::string& source) {
    if (file.extension() != ".json") {
      candidate(file, source, std::nullopt, file);
      return;
    }
    try {
      std::string distrust;
      std::optional<Manifest> manifest = manifest_of(file, &distrust);
      if (!manifest) return refuse(file, distrust);
      const fs::path library = manifest->library;
      candidate(library, source, std::move(manifest), file);
    } catch (const Error& error) {
      if (error.code == COMPUTE_ERROR_OUT_OF_MEMORY) throw;
      // the message begins with the file
      refuse(file,
             error.message.substr(std::min(error.message.size(), printable(file.string(), kLongestPath).size() + 2)));
    }
  }

  std::optional<Manifest> manifest_of(const fs::path& file, std::string* out_distrust) const {
    const auto known =
        std::find_if(known_.begin(), known_.end(), [&](const KnownManifest& one) { return one.manifest.file == file; });
    if (known != known_.end()) return known->manifest;
    return read_manifest(file, trust_, out_distrust);
  }

  // `named_in` is the file that was found: the library or its manifest.
  void candidate(const fs::path& library, const std::string& source, std::optional<Manifest> manifest,
                 const fs::path& named_in) {
    std::error_code error;
    const fs::path real = fs::canonical(library, error);
    throw_if_short(error, library);
    const std::string what =
        manifest ? "its library " + printable(library.string(), kLongestPath) + ": " : std::string();
    if (error == std::errc::no_such_file_or_directory && manifest && is_ours_) {
      return;  // a plugin of a separate package that is not installed
    }
    if (error) {
      refuse(named_in, what + error.message());
    } else if (!fs::is_regular_file(real, error)) {
      refuse(named_in, what + "not a regular file");
    } else if (const auto [known, is_new] = libraries_.emplace(real, found_.candidates.size()); is_new) {
      PluginCandidate& candidate = found_.candidates.emplace_back();
      candidate.library = library.lexically_normal();
      candidate.real = real;
      candidate.source = source;
      candidate.may_be_ours = may_be_ours_;
      candidate.name_is_known = read_name(library, candidate.name) || read_name(real, candidate.name);
      // the library, and the path that led to it
      candidate.distrust = trust_.why_not(real);
      if (candidate.distrust.empty()) candidate.distrust = trust_.why_not(library);
      describe(candidate, std::move(manifest));
    } else if (PluginCandidate& first = found_.candidates[known->second]; manifest && !first.manifest) {
      describe(first, std::move(manifest));
    }
  }

  static void describe(PluginCandidate& candidate, std::optional<Manifest> manifest) {
    if (!manifest) return;
    candidate.name = manifest->name;
    candidate.name_is_known = true;
    candidate.manifest = std::move(manifest);
  }

  const files::Trust& trust_;
  const std::span<const KnownManifest> known_;
  bool may_be_ours_ = false;
  bool is_ours_ = false;
  FoundPlugins found_;
  std::map<fs::path, size_t> libraries_;  // real path to candidate
  std::map<fs::path, bool> folders_;      // real paths
};

}  // namespace

PluginPlaces PluginPlaces::of_process(const Config& config) {
  PluginPlaces places;
  const SettingValue& path = config.get(SettingId::kPluginPath);
  for (const std::string& folder : path.paths) {
    (path.origin == Origin::kApi ? places.api_folders : places.folders).push_back({folder, path.source});
  }
  const SettingValue& files = config.get(SettingId::kPluginFiles);
  for (const std::string& file : files.paths) places.files.push_back({file, files.source});

  const fs::path beside = library_folder();
  if (!beside.empty()) places.standard.push_back({beside / kPluginFolder, "beside libcompute", false, false, true});
  places.trust = config.trust();
  const ConfigInputs& inputs = config.inputs();
  const char* data_home = inputs.privileged ? nullptr : inputs.environment("XDG_DATA_HOME");
  const char* home = inputs.privileged ? nullptr : inputs.environment("HOME");
  if (data_home != nullptr && *data_home == '/') {
    places.standard.push_back({fs::path(data_home) / kPluginFolder, "the user's folder", false, true});
  } else if (home != nullptr && *home == '/') {
    places.standard.push_back({fs::path(home) / ".local/share" / kPluginFolder, "the user's folder", false, true});
  }
#ifdef COMPUTE_INSTALL_LIBDIR
  places.standard.push_back(
      {fs::path(COMPUTE_INSTALL_LIBDIR) / kPluginFolder, "the system's folder", false, false, true});
#endif
  places.standard.push_back({"/etc/compute/plugins.d", "the system's manifests", true});
  return places;
}

std::vector<KnownManifest> known_manifests(const PluginPlaces& places) {
  std::vector<KnownManifest> known;
  const auto take = [&](const fs::path& file, bool is_ours) {
    if (file.extension() != ".json" || !file.is_absolute()) return;
    try {
      std::string distrust;
      if (std::optional<Manifest> manifest = read_manifest(file, places.trust, &distrust))
        known.push_back({std::move(*manifest), is_ours});
    } catch (const Error& error) {
      if (error.code == COMPUTE_ERROR_OUT_OF_MEMORY) throw;
      // find_plugins names it
    }
  };
  const auto take_folder = [&](const fs::path& folder, bool is_ours) {
    if (!folder.is_absolute()) return;
    std::error_code error;
    std::vector<fs::path> files = files::entries_of(folder, error);
    throw_if_short(error, folder);
    if (files.size() > kMaxFiles) return;
    std::sort(files.begin(), files.end(), [](const fs::path& x, const fs::path& y) { return x.native() < y.native(); });
    for (const fs::path& file : files) take(file, is_ours);
  };
  for (const PluginPlaces::Named& named : places.api_folders) take_folder(named.place, false);
  for (const PluginPlaces::Named& named : places.files) take(named.place, false);
  for (const PluginPlaces::Named& named : places.folders) take_folder(named.place, false);
  for (const PluginPlaces::Folder& standard : places.standard) take_folder(standard.folder, standard.is_ours);
  return known;
}

FoundPlugins find_plugins(const PluginPlaces& places, std::span<const KnownManifest> known) {
  return Search(places.trust, known).run(places);
}

}  // namespace compute
