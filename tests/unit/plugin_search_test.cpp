// SPDX-License-Identifier: Apache-2.0
#include "core/plugin_search.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace compute {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

class PluginSearch : public testing::Test {
 protected:
  PluginSearch() {
    std::string pattern = (fs::temp_directory_path() / "compute-search-XXXXXX").string();
    root_ = fs::canonical(mkdtemp(pattern.data()));
  }
  ~PluginSearch() override { fs::remove_all(root_); }

  std::string at(const std::string& name) const { return (root_ / name).string(); }

  std::string write(const std::string& name, const std::string& content = "x") {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << content;
    return at(name);
  }

  std::string write_manifest(const std::string& name, const std::string& plugin, const std::string& library) {
    return write(name, R"({"name": ")" + plugin + R"(", "library": ")" + library + "\"}");
  }

  // The libraries relative to the root, `+name` for those with a manifest.
  Names found(const PluginPlaces& places) {
    result_ = find_plugins(places);
    Names names;
    for (const PluginCandidate& candidate : result_.candidates) {
      names.push_back(candidate.library.lexically_relative(root_).string() +
                      (candidate.manifest ? "+" + candidate.manifest->name : ""));
    }
    return names;
  }

  Names refused() const {
    Names texts;
    for (const RefusedEntry& entry : result_.refused) texts.push_back(entry.entry + ": " + entry.reason);
    return texts;
  }

  fs::path root_;
  FoundPlugins result_;
};

TEST_F(PluginSearch, LooksAtEveryLibraryAndManifestInTheOrderOfBytes) {
  for (const char* name : {"d/b.so", "d/a.so", "d/B.so", "d/\xC3\xA4.so", "d/c.so.1", "d/readme.txt", "d/.h.so"}) {
    write(name);
  }
  fs::create_directories(root_ / "d/folder.so");
  PluginPlaces places;
  places.standard = {{at("d"), "here"}};
  EXPECT_EQ(found(places), (Names{"d/.h.so", "d/B.so", "d/a.so", "d/b.so", "d/\xC3\xA4.so"}));
  EXPECT_EQ(refused(), Names{at("d/folder.so") + ": not a regular file"});
  EXPECT_EQ(result_.candidates[0].source, "here");
}

TEST_F(PluginSearch, GoesThroughThePlacesInOrder) {
  for (const char* name : {"api/x.so", "env/y.so", "std/z.so", "file.so"}) write(name);
  PluginPlaces places;
  places.api_folders = {{at("api"), "the API"}};
  places.folders = {{at("env"), "COMPUTE_PLUGIN_PATH"}};
  places.standard = {{at("std"), "beside libcompute"}, {at("none"), "the user's folder"}};
  EXPECT_EQ(found(places), (Names{"api/x.so", "env/y.so", "std/z.so"}));
  ASSERT_EQ(result_.searched.size(), 4U);
  EXPECT_TRUE(result_.searched[2].exists);
  EXPECT_FALSE(result_.searched[3].exists);
  EXPECT_TRUE(refused().empty());

  places.files = {{at("file.so"), "COMPUTE_PLUGIN_FILES"}};
  EXPECT_EQ(found(places), (Names{"api/x.so", "file.so"}));
}

TEST_F(PluginSearch, RefusesRelativePlacesAndSaysSo) {
  write("d/x.so");
  const fs::path before = fs::current_path();
  fs::current_path(root_);
  PluginPlaces places;
  places.folders = {{"d", "COMPUTE_PLUGIN_PATH"}, {".", "COMPUTE_PLUGIN_PATH"}};
  EXPECT_TRUE(found(places).empty());
  EXPECT_EQ(refused(), (Names{"d: named by COMPUTE_PLUGIN_PATH: not an absolute path",
                              ".: named by COMPUTE_PLUGIN_PATH: not an absolute path"}));
  places.files = {{"d/x.so", "COMPUTE_PLUGIN_FILES"}, {"x.so", "COMPUTE_PLUGIN_FILES"}};
  EXPECT_TRUE(found(places).empty());
  EXPECT_EQ(refused().size(), 2U);
  fs::current_path(before);
}

TEST_F(PluginSearch, ReportsNamedPlacesThatAreNotThere) {
  write("file.so");
  PluginPlaces places;
  places.folders = {{at("none"), "COMPUTE_PLUGIN_PATH"}, {at("file.so"), "COMPUTE_PLUGIN_PATH"}};
  EXPECT_TRUE(found(places).empty());
  EXPECT_EQ(refused(),
            (Names{at("none") + ": named by COMPUTE_PLUGIN_PATH: no such folder",
                   at("file.so") + ": named by COMPUTE_PLUGIN_PATH: not a folder; COMPUTE_PLUGIN_FILES names files"}));
  places.files = {{at("gone.so"), "COMPUTE_PLUGIN_FILES"}};
  EXPECT_TRUE(found(places).empty());
  EXPECT_EQ(refused(), Names{at("gone.so") + ": No such file or directory"});
}

TEST_F(PluginSearch, TakesALibraryOnceByItsRealPath) {
  write("d/real.so");
  fs::create_symlink("real.so", root_ / "d/alias.so");
  fs::create_symlink("gone.so", root_ / "d/broken.so");
  fs::create_directory_symlink("d", root_ / "e");
  PluginPlaces places;
  places.folders = {
      {at("d"), "COMPUTE_PLUGIN_PATH"}, {at("e"), "COMPUTE_PLUGIN_PATH"}, {at("d"), "COMPUTE_PLUGIN_PATH"}};
  EXPECT_EQ(found(places), Names{"d/alias.so"});
  EXPECT_EQ(refused(), Names{at("d/broken.so") + ": No such file or directory"});
}

TEST_F(PluginSearch, JoinsALibraryAndItsManifest) {
  write("d/a.so");
  write("d/b.so");
  write_manifest("d/0.json", "bee", "b.so");
  write_manifest("d/z.json", "ay", "../d/./a.so");
  PluginPlaces places;
  places.standard = {{at("d"), "here"}};
  EXPECT_EQ(found(places), (Names{"d/b.so+bee", "d/a.so+ay"}));
  EXPECT_TRUE(refused().empty());
}

TEST_F(PluginSearch, OneBadManifestHidesNothing) {
  write("d/a.so");
  write("d/0.json", "{");
  write_manifest("d/1.json", "gone", "gone.so");
  write_manifest("d/2.json", "folder", at("d"));
  PluginPlaces places;
  places.standard = {{at("d"), "here"}};
  EXPECT_EQ(found(places), Names{"d/a.so"});
  EXPECT_EQ(refused(), (Names{at("d/0.json") + ": line 1: not well-formed JSON",
                              at("d/1.json") + ": its library " + at("d/gone.so") + ": No such file or directory",
                              at("d/2.json") + ": its library " + at("d") + ": not a regular file"}));
}

TEST_F(PluginSearch, TakesOnlyManifestsFromAFolderOfManifests) {
  write("d/a.so");
  write("lib/b.so");
  write_manifest("d/b.json", "bee", at("lib/b.so"));
  PluginPlaces places;
  places.standard = {{at("d"), "the system's manifests", true}};
  EXPECT_EQ(found(places), Names{"lib/b.so+bee"});
}

class PlacesOfProcess : public testing::Test {
 protected:
  PluginPlaces places(bool privileged) {
    ConfigInputs inputs;
    inputs.environment = [this](const char* name) {
      const auto row = variables_.find(name);
      return row == variables_.end() ? nullptr : row->second.c_str();
    };
    inputs.privileged = privileged;
    inputs.system_file = "/dev/null";
    config_.emplace(inputs);
    return PluginPlaces::of_process(*config_);
  }
  static Names folders(const PluginPlaces& places) {
    Names names;
    for (const PluginPlaces::Folder& folder : places.standard) names.push_back(folder.folder.string());
    return names;
  }

  std::map<std::string, std::string> variables_;
  std::optional<Config> config_;
};

TEST_F(PlacesOfProcess, AreThoseOfTheDesign) {
  variables_ = {{"HOME", "/home/u"}, {"COMPUTE_PLUGIN_PATH", "/p:q"}, {"COMPUTE_PLUGIN_FILES", "/f.so"}};
  PluginPlaces found = places(false);
  // core is linked into this test, so what stands beside libcompute stands beside the test
  const std::string beside = (fs::canonical("/proc/self/exe").parent_path() / "compute/plugins").string();
  Names names = folders(found);
  ASSERT_GE(names.size(), 3U);
  EXPECT_EQ(names[0], beside);
  EXPECT_EQ(names[1], "/home/u/.local/share/compute/plugins");
  EXPECT_EQ(names.back(), "/etc/compute/plugins.d");
  EXPECT_TRUE(found.standard.back().manifests_only);
  ASSERT_EQ(found.folders.size(), 2U);
  EXPECT_EQ(found.folders[1].place, "q");
  EXPECT_EQ(found.files[0].source, "COMPUTE_PLUGIN_FILES");
  EXPECT_TRUE(found.api_folders.empty());

  variables_["XDG_DATA_HOME"] = "/data";
  EXPECT_EQ(folders(places(false))[1], "/data/compute/plugins");
}

TEST_F(PlacesOfProcess, LeaveTheEnvironmentOutWherePrivileged) {
  variables_ = {{"HOME", "/home/u"}, {"XDG_DATA_HOME", "/data"}, {"COMPUTE_PLUGIN_PATH", "/p"}};
  const PluginPlaces found = places(true);
  EXPECT_TRUE(found.folders.empty());
  for (const std::string& folder : folders(found)) {
    EXPECT_FALSE(folder.starts_with("/home") || folder.starts_with("/data")) << folder;
  }
}

}  // namespace
}  // namespace compute
