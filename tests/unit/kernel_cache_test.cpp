// SPDX-License-Identifier: Apache-2.0
#include "plugins/common/driver/kernel_cache.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <thread>
#include <vector>

namespace compute::common {
namespace {

namespace fs = std::filesystem;

class KernelCacheTest : public testing::Test {
 protected:
  KernelCacheTest() {
    std::string pattern = (fs::temp_directory_path() / "kernel_cache_XXXXXX").string();
    root_ = mkdtemp(pattern.data());
    directory_ = root_ / "cache";
  }
  ~KernelCacheTest() override { fs::remove_all(root_); }

  std::vector<fs::path> entries() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(directory_)) found.push_back(entry.path());
    return found;
  }

  fs::path root_, directory_;
};

constexpr ProgramKey kKey = {"void f() {}", "sm_90", "nvrtc 13.0", "--fmad=false"};

TEST_F(KernelCacheTest, FindsWhatWasStored) {
  KernelCache writer(directory_, 1 << 20);
  EXPECT_EQ(writer.load(kKey), std::nullopt);
  const std::string program("\0\1binary\0", 9);
  writer.store(kKey, program);
  KernelCache reader(directory_, 1 << 20);
  EXPECT_EQ(reader.load(kKey), program);
  struct stat status {};
  ASSERT_EQ(stat(directory_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
}

TEST_F(KernelCacheTest, ARelativeFolderIsOneOfTheWorkingDirectory) {
  const fs::path before = fs::current_path();
  fs::current_path(root_);
  for (const char* name : {"kc", "./kc2", "kc3/below"}) {
    KernelCache cache(name, 1 << 20);
    cache.store(kKey, "program");
    EXPECT_EQ(cache.load(kKey), "program") << name;
  }
  fs::current_path(before);
}

TEST_F(KernelCacheTest, EveryPartOfTheKeyCounts) {
  KernelCache cache(directory_, 1 << 20);
  cache.store(kKey, "program");
  for (const ProgramKey& other : {ProgramKey{"void f() { }", "sm_90", "nvrtc 13.0", "--fmad=false"},
                                  ProgramKey{"void f() {}", "sm_80", "nvrtc 13.0", "--fmad=false"},
                                  ProgramKey{"void f() {}", "sm_90", "nvrtc 12.9", "--fmad=false"},
                                  ProgramKey{"void f() {}", "sm_90", "nvrtc 13.0", ""},
                                  ProgramKey{"void f() {}", "sm_90nvrtc 13.0", "", "--fmad=false"}}) {
    EXPECT_EQ(cache.load(other), std::nullopt);
  }
}

TEST_F(KernelCacheTest, ACorruptEntryIsRebuilt) {
  KernelCache cache(directory_, 1 << 20);
  const std::string program(1000, 'p');
  cache.store(kKey, program);
  const fs::path entry = entries().at(0);
  const std::string good = [&] {
    std::ifstream file(entry, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }();
  for (size_t at = 0; at < good.size(); at += 37) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    std::ofstream(entry, std::ios::binary) << bad;
    EXPECT_EQ(cache.load(kKey), std::nullopt) << "byte " << at;
  }
  for (const size_t size : {size_t{0}, size_t{10}, good.size() - 1}) {
    std::ofstream(entry, std::ios::binary) << good.substr(0, size);
    EXPECT_EQ(cache.load(kKey), std::nullopt) << size << " bytes";
  }
  std::ofstream(entry, std::ios::binary) << good << "more";
  EXPECT_EQ(cache.load(kKey), std::nullopt);
  cache.store(kKey, program);
  EXPECT_EQ(cache.load(kKey), program);
}

TEST_F(KernelCacheTest, WhatOthersMayWriteToIsNotRead) {
  KernelCache cache(directory_, 1 << 20);
  cache.store(kKey, "program");
  const fs::path entry = entries().at(0);
  ASSERT_EQ(chmod(entry.c_str(), 0666), 0);
  EXPECT_EQ(cache.load(kKey), std::nullopt);
  ASSERT_EQ(chmod(entry.c_str(), 0600), 0);
  EXPECT_EQ(cache.load(kKey), "program");
}

TEST_F(KernelCacheTest, AFolderThatOthersMayWriteToIsNotUsed) {
  KernelCache cache(directory_, 1 << 20);
  cache.store(kKey, "program");
  for (const fs::path& folder : {directory_, root_}) {
    ASSERT_EQ(chmod(folder.c_str(), 0777), 0);
    EXPECT_EQ(cache.load(kKey), std::nullopt) << folder;
    EXPECT_EQ(cache.clear(), 0) << folder;
    files::Trust everybody;
    everybody.everybody = true;
    EXPECT_EQ(KernelCache(directory_, 1 << 20, everybody).load(kKey), "program") << folder;
    ASSERT_EQ(chmod(folder.c_str(), 0700), 0);
  }
  if (geteuid() == 0) {  // as under sudo, with the HOME of somebody else
    ASSERT_EQ(chown(root_.c_str(), 65534, 65534), 0);
    EXPECT_EQ(cache.load(kKey), std::nullopt);
    ASSERT_EQ(chown(root_.c_str(), 0, 0), 0);
  }
  EXPECT_EQ(cache.load(kKey), "program");
}

TEST_F(KernelCacheTest, LinksAndFifosAreNoEntries) {
  KernelCache cache(directory_, 1 << 20);
  cache.store(kKey, "program");
  const fs::path entry = entries().at(0);
  fs::rename(entry, root_ / "elsewhere");
  fs::create_symlink(root_ / "elsewhere", entry);
  EXPECT_EQ(cache.load(kKey), std::nullopt);
  fs::remove(entry);
  ASSERT_EQ(mkfifo(entry.c_str(), 0600), 0);
  EXPECT_EQ(cache.load(kKey), std::nullopt);
}

TEST(KernelCacheLimit, ReadsSizesTheSameInEveryLocale) {
  EXPECT_EQ(parse_cache_limit("1000000"), 1000000);
  EXPECT_EQ(parse_cache_limit("1.5G"), int64_t{3} << 29);
  EXPECT_EQ(parse_cache_limit("512MiB"), int64_t{512} << 20);
  EXPECT_EQ(parse_cache_limit("2KB"), 2048);
  for (const char* text : {"", "G", "1,5G", "-1", "1Q", "1GBs", "nan"})
    EXPECT_EQ(parse_cache_limit(text), std::nullopt) << text;
}

TEST_F(KernelCacheTest, TheLeastRecentlyUsedGoFirst) {
  KernelCache cache(directory_, 64 << 10);
  const std::string program(4 << 10, 'p');
  const auto key = [](const std::string& source) { return ProgramKey{source, "sm_90", "nvrtc", ""}; };
  std::vector<std::string> sources;
  for (int i = 0; i < 12; ++i) {
    sources.push_back("source " + std::to_string(i));
    cache.store(key(sources.back()), program);
    // All but the first lie back in time; the first was used just now.
    for (const auto& entry : entries()) {
      if (i == 0) continue;
      fs::last_write_time(entry, fs::last_write_time(entry) - std::chrono::minutes(5));
    }
  }
  ASSERT_EQ(cache.load(key(sources[0])), program);  // which notes the use
  for (int i = 12; i < 24; ++i) {
    sources.push_back("source " + std::to_string(i));
    cache.store(key(sources.back()), program);
  }
  int64_t total = 0;
  for (const auto& entry : entries()) total += static_cast<int64_t>(fs::file_size(entry));
  EXPECT_LE(total, 64 << 10);
  EXPECT_NE(cache.load(key(sources[0])), std::nullopt);
  EXPECT_EQ(cache.load(key(sources[1])), std::nullopt);
  EXPECT_NE(cache.load(key(sources[23])), std::nullopt);
}

TEST_F(KernelCacheTest, ClearRemovesEntriesAlone) {
  KernelCache cache(directory_, 1 << 20);
  cache.store(kKey, "program");
  std::ofstream(directory_ / "notes.txt") << "mine";
  EXPECT_EQ(cache.clear(), 1);
  EXPECT_EQ(cache.load(kKey), std::nullopt);
  EXPECT_TRUE(fs::exists(directory_ / "notes.txt"));
  EXPECT_EQ(cache.clear(), 0);
}

// Other programs may use the folder too.
TEST_F(KernelCacheTest, ForeignFilesStay) {
  KernelCache cache(directory_, 16 << 10);
  cache.store(kKey, "program");
  const std::string ours = entries().at(0).filename().string();
  const std::string digits = ours.substr(0, ours.find('.'));
  const std::vector<std::string> foreign = {"linux.kernel",
                                            "movie.partial",
                                            digits + "0.kernel",
                                            digits.substr(1) + ".kernel",
                                            "G" + digits.substr(1) + ".kernel",
                                            digits + ".kernel.partial",
                                            digits + ".kernel.1.partial",
                                            digits + ".kernel.1.x.partial",
                                            digits + ".partial",
                                            digits};
  for (const std::string& name : foreign) {
    std::ofstream(directory_ / name) << std::string(16 << 10, 'm');
    fs::last_write_time(directory_ / name, fs::file_time_type::clock::now() - std::chrono::hours(1));
  }
  const fs::path abandoned = directory_ / (digits + ".kernel.123.0.partial");
  std::ofstream(abandoned) << "half";
  fs::last_write_time(abandoned, fs::file_time_type::clock::now() - std::chrono::hours(1));
  for (int i = 0; i < 8; ++i)
    cache.store({std::to_string(i), "sm_90", "nvrtc", ""}, std::string(4 << 10, 'p'));  // which evicts
  EXPECT_FALSE(fs::exists(abandoned));
  EXPECT_GT(cache.clear(), 0);
  EXPECT_EQ(entries().size(), foreign.size());
  for (const std::string& name : foreign) EXPECT_TRUE(fs::exists(directory_ / name)) << name;
}

TEST_F(KernelCacheTest, SaysWhyNothingIsKept) {
  fs::create_directory(directory_);
  EXPECT_EQ(KernelCache(directory_, 1 << 20).problem(), "");
  EXPECT_EQ(KernelCache(std::nullopt, 1 << 20).problem(), "no cache directory is known");
  ASSERT_EQ(chmod(directory_.c_str(), 0777), 0);
  EXPECT_EQ(KernelCache(directory_, 1 << 20).problem(),
            directory_.string() + ": it is writable by everyone (mode 0777); set COMPUTE_TRUST_ALL=1 to use it anyway");
}

// A full disk, as a limit on the size of files.
TEST_F(KernelCacheTest, SaysWhyNothingCanBeStored) {
  KernelCache cache(directory_, 1 << 20);
  EXPECT_EQ(cache.problem_of_storing(), "");
  EXPECT_EQ(entries(), std::vector<fs::path>());
  struct rlimit before {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  const struct rlimit none = {0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &none), 0);
  const std::string problem = cache.problem_of_storing();
  cache.store(kKey, "program");
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, handler);
  EXPECT_EQ(problem, directory_.string() + " cannot be written: File too large");
  EXPECT_EQ(entries(), std::vector<fs::path>());
  std::ofstream(root_ / "file") << "no folder";
  EXPECT_EQ(KernelCache(root_ / "file", 1 << 20).problem_of_storing(),
            (root_ / "file").string() + " cannot be written: Not a directory");
}

TEST_F(KernelCacheTest, WithoutAPlaceItKeepsNothing) {
  KernelCache nowhere(std::nullopt, 1 << 20);
  nowhere.store(kKey, "program");
  EXPECT_EQ(nowhere.load(kKey), std::nullopt);
  std::ofstream(root_ / "file") << "not a directory";
  KernelCache blocked(root_ / "file" / "cache", 1 << 20);
  blocked.store(kKey, "program");
  EXPECT_EQ(blocked.load(kKey), std::nullopt);
}

TEST_F(KernelCacheTest, ManyProcessesWriteAndReadAtOnce) {
  constexpr int kProcesses = 6, kRounds = 200;
  std::vector<pid_t> children;
  for (int process = 0; process < kProcesses; ++process) {
    const pid_t child = fork();
    if (child != 0) {
      children.push_back(child);
      continue;
    }
    bool good = true;
    KernelCache cache(directory_, 40 << 10);  // small, so that they evict as well
    for (int round = 0; round < kRounds; ++round) {
      const std::string source = "source " + std::to_string((round * 7 + process) % 16);
      const std::string program(static_cast<size_t>(2000 + 100 * ((round * 7 + process) % 16)), source.back());
      const ProgramKey key = {source, "sm_90", "nvrtc", ""};
      const auto found = cache.load(key);
      good = good && (!found || *found == program);
      if (!found) cache.store(key, program);
    }
    _exit(good ? 0 : 1);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
}

TEST(KernelCacheDirectory, FollowsTheSettingThenXdg) {
  EXPECT_EQ(kernel_cache_directory("/some/where"), "/some/where");
  EXPECT_EQ(kernel_cache_directory("kc"), fs::current_path() / "kc");
  setenv("XDG_CACHE_HOME", "/xdg", 1);
  EXPECT_EQ(kernel_cache_directory(std::nullopt), "/xdg/compute");
  setenv("XDG_CACHE_HOME", "relative", 1);
  setenv("HOME", "/home/somebody", 1);
  EXPECT_EQ(kernel_cache_directory(std::nullopt), "/home/somebody/.cache/compute");
  EXPECT_EQ(kernel_cache_directory("/some/where", true), std::nullopt);  // privileged
  unsetenv("HOME");
  EXPECT_EQ(kernel_cache_directory(std::nullopt), std::nullopt);
}

}  // namespace
}  // namespace compute::common
