// SPDX-License-Identifier: Apache-2.0
// The memory that the process may use, from fake trees of /proc and /sys.
#include "core/process/host_limits.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace compute {
namespace {

constexpr int64_t kMebibyte = int64_t{1} << 20;

class HostLimits : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::temp_directory_path() / ("compute_host_limits_" + std::to_string(getpid()));
    write("proc/meminfo",
          "MemTotal:       8388608 kB\nMemFree:  1024 kB\nMemAvailable:    4194304 kB\nSwapFree:  0 kB\n");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& content) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << content;
  }
  void group_v2(const std::string& path, const std::string& max, const std::string& high, int64_t used,
                int64_t inactive) {
    const std::string base = "sys/fs/cgroup" + path + "/";
    write(base + "memory.max", max + "\n");
    write(base + "memory.high", high + "\n");
    write(base + "memory.current", std::to_string(used) + "\n");
    write(base + "memory.stat", "anon 1\ninactive_file " + std::to_string(inactive) + "\n");
  }
  void group_v1(const std::string& path, int64_t limit, int64_t used) {
    const std::string base = "sys/fs/cgroup/memory" + path + "/";
    write(base + "memory.limit_in_bytes", std::to_string(limit) + "\n");
    write(base + "memory.usage_in_bytes", std::to_string(used) + "\n");
    write(base + "memory.stat", "inactive_file 5\ntotal_inactive_file 0\n");
  }
  HostMemoryState state() const { return host_memory_state(root_.string()); }

  std::filesystem::path root_;
};

TEST_F(HostLimits, WithoutGroupsTheMachineCounts) {
  EXPECT_EQ(state().total, 8192 * kMebibyte);
  EXPECT_EQ(state().available, 4096 * kMebibyte);
  EXPECT_EQ(state().limited_by, "the machine");
}

TEST_F(HostLimits, TheLeastLimitOfNestedGroupsHolds) {
  write("proc/self/cgroup", "0::/a/b\n");
  write("proc/self/mountinfo", "25 24 0:22 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n");
  group_v2("/a/b", "max", "max", 100 * kMebibyte, 0);
  group_v2("/a", std::to_string(1500 * kMebibyte), "max", 600 * kMebibyte, 100 * kMebibyte);
  EXPECT_EQ(state().total, 1500 * kMebibyte);
  EXPECT_EQ(state().available, 1000 * kMebibyte) << "what can be dropped is not in the way";
  EXPECT_EQ(state().limited_by, "control group /a");
  group_v2("/a/b", std::to_string(900 * kMebibyte), std::to_string(800 * kMebibyte), 100 * kMebibyte, 0);
  EXPECT_EQ(state().total, 800 * kMebibyte) << "from memory.high on the process is slowed down until it stands";
  EXPECT_EQ(state().available, 700 * kMebibyte);
}

TEST_F(HostLimits, OfTheFirstVersionToo) {
  write("proc/self/cgroup", "9:name=systemd:/\n4:memory:/outer/inner\n1:cpu:/\n");
  write("proc/self/mountinfo",
        "30 24 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n31 24 0:27 / /sys/fs/cgroup/memory rw shared:9 - "
        "cgroup cgroup rw,memory\n");
  group_v1("/outer/inner", 0x7FFFFFFFFFFFF000, 10 * kMebibyte);
  group_v1("/outer", 512 * kMebibyte, 12 * kMebibyte);
  EXPECT_EQ(state().total, 512 * kMebibyte);
  EXPECT_EQ(state().available, 500 * kMebibyte);
}

// A container sees its own group as the root of the mount, with or without a namespace.
TEST_F(HostLimits, InsideAContainer) {
  write("proc/self/cgroup", "0::/docker/abc\n");
  write("proc/self/mountinfo", "25 24 0:22 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n");
  group_v2("", std::to_string(256 * kMebibyte), "max", 56 * kMebibyte, 0);
  EXPECT_EQ(state().available, 200 * kMebibyte);
  write("proc/self/cgroup", "0::/\n");
  write("proc/self/mountinfo", "25 24 0:22 / /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n");
  EXPECT_EQ(state().available, 200 * kMebibyte);
  write("proc/self/cgroup", "0::/../../elsewhere\n");
  EXPECT_EQ(state().available, 200 * kMebibyte);
}

TEST_F(HostLimits, WhatCannotBeReadSetsNoBound) {
  write("proc/meminfo", "nonsense\n");
  write("proc/self/cgroup", "x\n::\n0::\n4:memory\n");
  write("proc/self/mountinfo", "25\n- cgroup2\n1 2 3 4 5 - cgroup2 x\n");
  EXPECT_EQ(state().total, -1);
  EXPECT_EQ(state().available, -1);
}

}  // namespace
}  // namespace compute
