// SPDX-License-Identifier: Apache-2.0
#include "core/loading/plugin_search.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

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

// Our own plugins may lie where they are installed, also if a setting names that folder as well, by whatever path.
TEST_F(PluginSearch, KeepsWhatAStandardFolderMayHaveIfItIsNamed) {
  for (const char* name : {"std/x.so", "user/y.so", "other/z.so"}) write(name);
  fs::create_directory_symlink("std", root_ / "link");
  PluginPlaces places;
  places.standard = {{at("std"), "beside libcompute", false, false, true},
                     {at("user"), "the user's folder", false, true}};
  for (const auto named : {&PluginPlaces::folders, &PluginPlaces::api_folders}) {
    (places.*named) = {{at("other"), "named"}, {at("user"), "named"}, {at("link"), "named"}};
    EXPECT_EQ(found(places), (Names{"other/z.so", "user/y.so", "link/x.so"}));
    EXPECT_FALSE(result_.candidates[0].may_be_ours);
    EXPECT_FALSE(result_.candidates[1].may_be_ours);
    EXPECT_TRUE(result_.candidates[2].may_be_ours);
    (places.*named).clear();
  }
}

TEST_F(PluginSearch, RefusesRelativePlacesAndSaysSo) {
  write("d/x.so");
  const fs::path before = fs::current_path();
  fs::current_path(root_);
  PluginPlaces places;
  places.folders = {{"d", "COMPUTE_PLUGIN_PATH"}, {".", "COMPUTE_PLUGIN_PATH"}};
  EXPECT_TRUE(found(places).empty());
  EXPECT_EQ(refused(), (Names{"d: from COMPUTE_PLUGIN_PATH: not an absolute path",
                              ".: from COMPUTE_PLUGIN_PATH: not an absolute path"}));
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
            (Names{at("none") + ": from COMPUTE_PLUGIN_PATH: no such directory",
                   at("file.so") + ": from COMPUTE_PLUGIN_PATH: not a directory; use COMPUTE_PLUGIN_FILES for files"}));
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

TEST_F(PluginSearch, ManifestsOfOursTellOfPluginsThatAreNotInstalled) {
  write("d/a.so");
  write("e/b.so");
  write_manifest("d/0.json", "gone", "gone.so");
  write_manifest("e/0.json", "bee", "b.so");
  write("e/1.json", "{");
  PluginPlaces places;
  places.standard = {{at("d"), "ours", false, false, true}, {at("e"), "the user's", false, true}};
  EXPECT_EQ(found(places), (Names{"d/a.so", "e/b.so+bee"}));
  EXPECT_EQ(refused(), Names{at("e/1.json") + ": line 1: not well-formed JSON"});
  // also where files take the place of the folders
  places.files = {{at("d/a.so"), "COMPUTE_PLUGIN_FILES"}};
  const std::vector<KnownManifest> known = known_manifests(places);
  ASSERT_EQ(known.size(), 2U);
  EXPECT_EQ(known[0].manifest.name, "gone");
  EXPECT_TRUE(known[0].is_ours);
  EXPECT_EQ(known[1].manifest.name, "bee");
  EXPECT_FALSE(known[1].is_ours);
}

TEST_F(PluginSearch, ManifestsThatAreKnownAreNotReadAgain) {
  write("d/b.so");
  write_manifest("d/b.json", "bee", "b.so");
  PluginPlaces places;
  places.standard = {{at("d"), "here"}};
  const std::vector<KnownManifest> known = known_manifests(places);
  write_manifest("d/b.json", "wasp", "b.so");
  const FoundPlugins result = find_plugins(places, known);
  ASSERT_EQ(result.candidates.size(), 1U);
  EXPECT_EQ(result.candidates[0].name, "bee");
  EXPECT_EQ(found(places), Names{"d/b.so+wasp"});
}

// What could not be looked at for want of descriptors is not taken for unknown.
TEST_F(PluginSearch, AShortageHidesNoManifest) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer needs file descriptors of its own";
#endif
  write_manifest("d/b.json", "bee", "b.so");
  PluginPlaces folder, file;
  folder.standard = {{at("d"), "here"}};
  file.files = {{at("d/b.json"), "COMPUTE_PLUGIN_FILES"}};
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none = {0, before.rlim_max};
  for (const PluginPlaces& places : {folder, file}) {
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
    EXPECT_THROW(known_manifests(places), Error);
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_EQ(known_manifests(places).size(), 1U);
  }
}

TEST_F(PluginSearch, TakesOnlyManifestsFromAFolderOfManifests) {
  write("d/a.so");
  write("lib/b.so");
  write_manifest("d/b.json", "bee", at("lib/b.so"));
  PluginPlaces places;
  places.standard = {{at("d"), "the system's manifests", true}};
  EXPECT_EQ(found(places), Names{"lib/b.so+bee"});
}

// ---- Trust ----------------------------------------------------------------------------------------------------------

constexpr uid_t kStranger = 1234;

class TrustOfFiles : public PluginSearch {
 protected:
  TrustOfFiles() { trust_ = files::Trust::of_process(false); }

  std::string distrust_of(const std::string& place) {
    PluginPlaces places;
    places.files = {{place, "COMPUTE_PLUGIN_FILES"}};
    places.trust = trust_;
    const FoundPlugins result = find_plugins(places);
    if (!result.refused.empty()) return result.refused[0].reason;
    return result.candidates.empty() ? "nothing found" : result.candidates[0].distrust;
  }

  files::Trust trust_;
};

// A user who can change a link decides which file is opened, however well its target is protected.
TEST_F(TrustOfFiles, LinksOnTheWayAreJudged) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  const std::string library = write("good/compute_plugin_acme.so");
  fs::create_directory(root_ / "theirs");
  fs::create_directory_symlink(root_ / "good", root_ / "theirs/folder");
  fs::create_directory_symlink(root_ / "theirs/folder", root_ / "mine");
  fs::create_symlink(library, root_ / "good/link.so");
  const std::string manifest = write_manifest("good/acme.json", "acme", at("mine/compute_plugin_acme.so"));
  const std::vector<std::string> ways = {at("theirs/folder/compute_plugin_acme.so"), at("mine/compute_plugin_acme.so"),
                                         manifest};
  for (const std::string& way : ways) EXPECT_EQ(distrust_of(way), "") << way;
  EXPECT_EQ(distrust_of(at("good/link.so")), "");

  ASSERT_EQ(::chown(at("theirs").c_str(), kStranger, kStranger), 0);
  for (const std::string& way : ways) EXPECT_EQ(distrust_of(way), at("theirs") + " is owned by user 1234") << way;
  ASSERT_EQ(::chown(at("theirs").c_str(), 0, 0), 0);
  ASSERT_EQ(::lchown(at("theirs/folder").c_str(), kStranger, kStranger), 0);
  for (const std::string& way : ways)
    EXPECT_EQ(distrust_of(way), "the link " + at("theirs/folder") + " is owned by user 1234") << way;
  ASSERT_EQ(::lchown(at("good/link.so").c_str(), kStranger, kStranger), 0);
  EXPECT_EQ(distrust_of(at("good/link.so")), "the link " + at("good/link.so") + " is owned by user 1234");
  EXPECT_EQ(distrust_of(library), "");

  // a folder in which every user can create links
  fs::create_directory(root_ / "tmp");
  fs::create_directory_symlink(root_ / "good", root_ / "tmp/folder");
  ASSERT_EQ(::chmod(at("tmp").c_str(), 01777), 0);
  EXPECT_EQ(distrust_of(at("tmp/folder/compute_plugin_acme.so")), "");
  ASSERT_EQ(::lchown(at("tmp/folder").c_str(), kStranger, kStranger), 0);
  EXPECT_EQ(distrust_of(at("tmp/folder/compute_plugin_acme.so")),
            "the link " + at("tmp/folder") + " is owned by user 1234");
}

TEST_F(TrustOfFiles, EveryWayOfNamingAFileIsFollowed) {
  write("a/b/file");
  fs::create_directory_symlink("../a/./b", root_ / "a/relative");
  fs::create_symlink("loop", root_ / "loop");
  for (const char* name : {"a/b/file", "a/../a/b/./file", "a//b/file", "a/relative/file", "a/relative/../b/file",
                           "a/missing/file", "a/b/"}) {
    EXPECT_EQ(trust_.why_not(fs::path(at(name))), "") << name;
  }
  EXPECT_EQ(trust_.why_not(fs::path(at("loop"))), "it cannot be resolved: Too many levels of symbolic links");
  EXPECT_EQ(trust_.why_not(fs::path(at("a/b/file/x"))), "it cannot be resolved: Not a directory");
  ASSERT_EQ(::chmod(at("a/b").c_str(), 0777), 0);
  for (const char* name : {"a/b/file", "a/../a/b/./file", "a/relative/file", "a/missing/../b/file", "a/b/missing",
                           "a/missing/../b/missing"}) {
    EXPECT_EQ(trust_.why_not(fs::path(at(name))), at("a/b") + " is writable by everyone (mode 0777)") << name;
  }
  EXPECT_EQ(trust_.why_not(fs::path(at("a/b/"))), "it is writable by everyone (mode 0777)");
}

// The check applies to the file that is read.
TEST_F(TrustOfFiles, AFileThatIsOpenIsJudgedItself) {
  const std::string name = write("file");
  const files::File file(name);
  ASSERT_TRUE(file);
  EXPECT_EQ(trust_.why_not(file, name), "");
  write("other");
  fs::rename(root_ / "other", root_ / "file");
  EXPECT_EQ(trust_.why_not(file, name), "it was replaced while it was being checked");
  fs::remove(root_ / "file");
  EXPECT_EQ(trust_.why_not(file, name), "it was replaced while it was being checked");
  const files::File again(write("file"));
  ASSERT_EQ(::chmod(name.c_str(), 0666), 0);
  const files::File late(name);
  EXPECT_EQ(trust_.why_not(late, name), "it is writable by everyone (mode 0666)");
}

// A tree that a group keeps, libcompute in it.
TEST_F(TrustOfFiles, AGroupThatMayWriteToTheLibraryIsANeighbour) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  constexpr gid_t kGroup = 5000;
  const std::string library = write("lib/libcompute.so"), plugin = write("lib/compute/plugins/compute_plugin_acme.so");
  for (const char* name : {"lib", "lib/libcompute.so", "lib/compute", "lib/compute/plugins",
                           "lib/compute/plugins/compute_plugin_acme.so"}) {
    ASSERT_EQ(::chown(at(name).c_str(), kStranger, kGroup), 0);
    ASSERT_EQ(::chmod(at(name).c_str(), 0775), 0);
  }
  const auto distrust = [&] {
    trust_ = files::Trust::of_process(false);
    trust_.believe_neighbours(library);
    return distrust_of(plugin);
  };
  EXPECT_EQ(distrust(), "");
  ASSERT_EQ(::chmod(at("lib").c_str(), 0755), 0);
  EXPECT_EQ(distrust(), "");  // the file alone says so too
  ASSERT_EQ(::chmod(library.c_str(), 0755), 0);
  EXPECT_EQ(distrust(), "it is writable by its group (mode 0775)");
  ASSERT_EQ(::chmod(at("lib").c_str(), 0777), 0);
  EXPECT_EQ(distrust(), "it is writable by its group (mode 0775)");  // the group "everybody" is not private
  ASSERT_EQ(::chmod(at("lib").c_str(), 0775), 0);
  EXPECT_EQ(distrust(), "");
  ASSERT_EQ(::chown(plugin.c_str(), kStranger, kGroup + 1), 0);
  EXPECT_EQ(distrust(), "it is writable by its group (mode 0775)");
}

TEST(UserMap, TellsWhetherRootIsThere) {
  EXPECT_TRUE(files::maps_root("         0          0 4294967295\n"));
  EXPECT_TRUE(files::maps_root("      1000       1000          1\n         0     100000      65536\n"));
  EXPECT_FALSE(files::maps_root("      1000       1000          1\n"));
  EXPECT_FALSE(files::maps_root("      1000          0          1\n"));
  EXPECT_FALSE(files::maps_root(""));
}

// As in `unshare -Uc`: root's files seem to be the overflow user's.
TEST_F(TrustOfFiles, WhereRootIsNotMappedTheOverflowUserIsRoot) {
  ASSERT_EQ(::chmod(root_.c_str(), 0777), 0);  // so that the other user can access it
  enum { kGood, kBad, kNoNamespaces };
  const pid_t child = ::fork();
  if (child == 0) {
    const uid_t user = ::geteuid() == 0 ? kStranger : ::geteuid();
    if (::geteuid() == 0 && (::setgid(user) != 0 || ::setuid(user) != 0)) ::_exit(kNoNamespaces);
    ::prctl(PR_SET_DUMPABLE, 1);
    if (::unshare(CLONE_NEWUSER) != 0) ::_exit(kNoNamespaces);
    std::ofstream map("/proc/self/uid_map");
    map << user << " " << user << " 1";
    map.close();
    if (!map || ::geteuid() != user) ::_exit(kNoNamespaces);
    const files::Trust trust = files::Trust::of_process(false);
    const fs::path own = root_ / "own";
    if (!files::make_private_folder(own)) ::_exit(kBad);
    // world-writable files are not trusted here either
    const bool good = trust.why_not(fs::path("/usr")).empty() && !trust.why_not(own).empty() && trust.root_seen_as &&
                      trust.why_not(fs::path("/tmp")).empty();
    ::_exit(good ? kGood : kBad);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNoNamespaces) GTEST_SKIP() << "no user namespaces here";
  EXPECT_EQ(WEXITSTATUS(status), kGood);
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
  // core is linked into this test, so its folder is the test's folder
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
