// SPDX-License-Identifier: Apache-2.0
// The folders of packages that pip and conda install, on a temporary tree.
#include "plugins/common/driver/packages.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace {

using compute::common::package_folders;
namespace fs = std::filesystem;

class Packages : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/compute-packages-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    root_ = name;
    for (const char* folder :
         {"env/lib/python3.11/site-packages/nvidia/cudnn/lib", "env/lib/python3.11/site-packages/other/cudnn/lib",
          "conda/lib/python3.12/site-packages", "loaded/site-packages/nvidia/cu13/lib", "loaded/site-packages/numpy"})
      fs::create_directories(root_ / folder);
    unsetenv("VIRTUAL_ENV");
    unsetenv("CONDA_PREFIX");
  }
  void TearDown() override { fs::remove_all(root_); }

  std::vector<std::string> expected(const std::vector<std::string>& names) const {
    std::vector<std::string> paths;
    for (const std::string& name : names) paths.push_back((root_ / name).string() + "/");
    return paths;
  }

  fs::path root_;
};

TEST_F(Packages, ActiveEnvironmentsAreSearched) {
  EXPECT_EQ(package_folders("nvidia/*/lib"), std::vector<std::string>{});
  setenv("VIRTUAL_ENV", (root_ / "env").c_str(), 1);
  EXPECT_EQ(package_folders("nvidia/*/lib"),
            expected({"env/lib/python3.11/site-packages/nvidia/cudnn/lib", "env/lib"}));
  setenv("CONDA_PREFIX", (root_ / "conda").c_str(), 1);
  EXPECT_EQ(package_folders("nvidia/*/lib"),
            expected({"env/lib/python3.11/site-packages/nvidia/cudnn/lib", "env/lib", "conda/lib"}));
  setenv("VIRTUAL_ENV", "env", 1);  // relative to where the program happens to run
  EXPECT_EQ(package_folders("nvidia/*/lib"), expected({"conda/lib"}));
}

TEST_F(Packages, FoldersOfLoadedPackagesAreSearched) {
  // Any library will do.
  void* const found = dlopen("libz.so.1", RTLD_NOW);
  if (found == nullptr) GTEST_SKIP() << "libz.so.1 is not installed";
  link_map* map = nullptr;
  ASSERT_EQ(dlinfo(found, RTLD_DI_LINKMAP, &map), 0);
  const fs::path copy = root_ / "loaded/site-packages/numpy/core.so";
  fs::copy_file(map->l_name, copy);
  void* const loaded = dlopen(copy.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(loaded, nullptr) << dlerror();
  EXPECT_EQ(package_folders("nvidia/*/lib"), expected({"loaded/site-packages/nvidia/cu13/lib"}));
  dlclose(loaded);
}

}  // namespace
