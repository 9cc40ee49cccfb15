// SPDX-License-Identifier: Apache-2.0
#include "core/trusted_files/blob_store.hpp"

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

namespace compute::files {
namespace {

namespace fs = std::filesystem;

class BlobStoreTest : public testing::Test {
 protected:
  BlobStoreTest() {
    std::string pattern = (fs::temp_directory_path() / "blob_store_XXXXXX").string();
    root_ = mkdtemp(pattern.data());
    directory_ = root_ / "cache";
  }
  ~BlobStoreTest() override { fs::remove_all(root_); }

  std::vector<fs::path> entries() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(directory_)) found.push_back(entry.path());
    return found;
  }

  fs::path root_, directory_;
};

constexpr std::string_view kKey("cuda void f() {}\0sm_90", 23);

TEST_F(BlobStoreTest, FindsWhatWasStored) {
  BlobStore writer(directory_, 1 << 20);
  EXPECT_EQ(writer.load(kKey), std::nullopt);
  const std::string program("\0\1binary\0", 9);
  writer.store(kKey, program);
  BlobStore reader(directory_, 1 << 20);
  EXPECT_EQ(reader.load(kKey), program);
  struct stat status {};
  ASSERT_EQ(stat(directory_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
}

TEST_F(BlobStoreTest, ARelativeFolderIsOneOfTheWorkingDirectory) {
  const fs::path before = fs::current_path();
  fs::current_path(root_);
  for (const char* name : {"kc", "./kc2", "kc3/below"}) {
    BlobStore cache(name, 1 << 20);
    cache.store(kKey, "program");
    EXPECT_EQ(cache.load(kKey), "program") << name;
  }
  fs::current_path(before);
}

TEST_F(BlobStoreTest, EveryByteOfTheKeyCounts) {
  BlobStore store(directory_, 1 << 20);
  store.store(kKey, "blob");
  EXPECT_EQ(store.load(""), std::nullopt);
  for (size_t at = 0; at < kKey.size(); ++at) {
    std::string other(kKey);
    other[at] = static_cast<char>(other[at] ^ 1);
    EXPECT_EQ(store.load(other), std::nullopt) << at;
    EXPECT_EQ(store.load(kKey.substr(0, at)), std::nullopt) << at;
  }
  EXPECT_EQ(store.load(kKey), "blob");
}

TEST_F(BlobStoreTest, ACorruptEntryIsRebuilt) {
  BlobStore cache(directory_, 1 << 20);
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

TEST_F(BlobStoreTest, WhatOthersMayWriteToIsNotRead) {
  BlobStore cache(directory_, 1 << 20);
  cache.store(kKey, "program");
  const fs::path entry = entries().at(0);
  ASSERT_EQ(chmod(entry.c_str(), 0666), 0);
  EXPECT_EQ(cache.load(kKey), std::nullopt);
  ASSERT_EQ(chmod(entry.c_str(), 0600), 0);
  EXPECT_EQ(cache.load(kKey), "program");
}

TEST_F(BlobStoreTest, AFolderThatOthersMayWriteToIsNotUsed) {
  BlobStore cache(directory_, 1 << 20);
  cache.store(kKey, "program");
  for (const fs::path& folder : {directory_, root_}) {
    ASSERT_EQ(chmod(folder.c_str(), 0777), 0);
    EXPECT_EQ(cache.load(kKey), std::nullopt) << folder;
    EXPECT_EQ(cache.clear(), 0) << folder;
    Trust everybody;
    everybody.everybody = true;
    EXPECT_EQ(BlobStore(directory_, 1 << 20, everybody).load(kKey), "program") << folder;
    ASSERT_EQ(chmod(folder.c_str(), 0700), 0);
  }
  if (geteuid() == 0) {  // as under sudo, with the HOME of somebody else
    ASSERT_EQ(chown(root_.c_str(), 65534, 65534), 0);
    EXPECT_EQ(cache.load(kKey), std::nullopt);
    ASSERT_EQ(chown(root_.c_str(), 0, 0), 0);
  }
  EXPECT_EQ(cache.load(kKey), "program");
}

TEST_F(BlobStoreTest, LinksAndFifosAreNoEntries) {
  BlobStore cache(directory_, 1 << 20);
  cache.store(kKey, "program");
  const fs::path entry = entries().at(0);
  fs::rename(entry, root_ / "elsewhere");
  fs::create_symlink(root_ / "elsewhere", entry);
  EXPECT_EQ(cache.load(kKey), std::nullopt);
  fs::remove(entry);
  ASSERT_EQ(mkfifo(entry.c_str(), 0600), 0);
  EXPECT_EQ(cache.load(kKey), std::nullopt);
}

TEST_F(BlobStoreTest, TheLeastRecentlyUsedGoFirst) {
  BlobStore cache(directory_, 64 << 10);
  const std::string program(4 << 10, 'p');
  const auto key = [](const std::string& source) { return source; };
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

TEST_F(BlobStoreTest, ClearRemovesEntriesAlone) {
  BlobStore cache(directory_, 1 << 20);
  cache.store(kKey, "program");
  std::ofstream(directory_ / "notes.txt") << "mine";
  EXPECT_EQ(cache.clear(), 1);
  EXPECT_EQ(cache.load(kKey), std::nullopt);
  EXPECT_TRUE(fs::exists(directory_ / "notes.txt"));
  EXPECT_EQ(cache.clear(), 0);
}

// Other programs may use the folder too.
TEST_F(BlobStoreTest, ForeignFilesStay) {
  BlobStore cache(directory_, 16 << 10);
  cache.store(kKey, "program");
  const std::string ours = entries().at(0).filename().string();
  const std::string digits = ours.substr(0, ours.find('.'));
  const std::vector<std::string> foreign = {"linux.blob",
                                            "movie.partial",
                                            digits + "0.blob",
                                            digits.substr(1) + ".blob",
                                            "G" + digits.substr(1) + ".blob",
                                            digits + ".blob.partial",
                                            digits + ".blob.1.partial",
                                            digits + ".blob.1.x.partial",
                                            digits + ".partial",
                                            digits};
  for (const std::string& name : foreign) {
    std::ofstream(directory_ / name) << std::string(16 << 10, 'm');
    fs::last_write_time(directory_ / name, fs::file_time_type::clock::now() - std::chrono::hours(1));
  }
  const fs::path abandoned = directory_ / (digits + ".blob.123.0.partial");
  std::ofstream(abandoned) << "half";
  fs::last_write_time(abandoned, fs::file_time_type::clock::now() - std::chrono::hours(1));
  for (int i = 0; i < 8; ++i) cache.store(std::to_string(i), std::string(4 << 10, 'p'));  // which evicts
  EXPECT_FALSE(fs::exists(abandoned));
  EXPECT_GT(cache.clear(), 0);
  EXPECT_EQ(entries().size(), foreign.size());
  for (const std::string& name : foreign) EXPECT_TRUE(fs::exists(directory_ / name)) << name;
}

TEST_F(BlobStoreTest, SaysWhyNothingIsKept) {
  fs::create_directory(directory_);
  EXPECT_EQ(BlobStore(directory_, 1 << 20).problem(), "");
  EXPECT_EQ(BlobStore(std::nullopt, 1 << 20).problem(), "no cache directory is known");
  ASSERT_EQ(chmod(directory_.c_str(), 0777), 0);
  EXPECT_EQ(BlobStore(directory_, 1 << 20).problem(),
            directory_.string() + ": it is writable by everyone (mode 0777); set COMPUTE_TRUST_ALL=1 to use it anyway");
}

// A full disk, as a limit on the size of files.
TEST_F(BlobStoreTest, SaysWhyNothingCanBeStored) {
  BlobStore cache(directory_, 1 << 20);
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
  EXPECT_EQ(BlobStore(root_ / "file", 1 << 20).problem_of_storing(),
            (root_ / "file").string() + " cannot be written: Not a directory");
}

TEST_F(BlobStoreTest, WithoutAPlaceItKeepsNothing) {
  BlobStore nowhere(std::nullopt, 1 << 20);
  nowhere.store(kKey, "program");
  EXPECT_EQ(nowhere.load(kKey), std::nullopt);
  std::ofstream(root_ / "file") << "not a directory";
  BlobStore blocked(root_ / "file" / "cache", 1 << 20);
  blocked.store(kKey, "program");
  EXPECT_EQ(blocked.load(kKey), std::nullopt);
}

TEST_F(BlobStoreTest, ManyProcessesWriteAndReadAtOnce) {
  constexpr int kProcesses = 6, kRounds = 200;
  std::vector<pid_t> children;
  for (int process = 0; process < kProcesses; ++process) {
    const pid_t child = fork();
    if (child != 0) {
      children.push_back(child);
      continue;
    }
    bool good = true;
    BlobStore cache(directory_, 40 << 10);  // small, so that they evict as well
    for (int round = 0; round < kRounds; ++round) {
      const std::string source = "source " + std::to_string((round * 7 + process) % 16);
      const std::string program(static_cast<size_t>(2000 + 100 * ((round * 7 + process) % 16)), source.back());
      const std::string key = source;
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

TEST(BlobStoreDirectory, FollowsTheSettingThenXdg) {
  EXPECT_EQ(cache_folder("/some/where"), "/some/where");
  EXPECT_EQ(cache_folder("kc"), fs::current_path() / "kc");
  setenv("XDG_CACHE_HOME", "/xdg", 1);
  EXPECT_EQ(cache_folder(""), "/xdg/compute");
  setenv("XDG_CACHE_HOME", "relative", 1);
  setenv("HOME", "/home/somebody", 1);
  EXPECT_EQ(cache_folder(""), "/home/somebody/.cache/compute");
  unsetenv("HOME");
  EXPECT_EQ(cache_folder(""), std::nullopt);
}

}  // namespace
}  // namespace compute::files
