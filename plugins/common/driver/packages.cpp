// SPDX-License-Identifier: Apache-2.0
#include "plugins/common/driver/packages.hpp"

#include <glob.h>
#include <link.h>
#include <sys/auxv.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace compute::common {
namespace {

void add(std::vector<std::string>& folders, const std::string& folder) {
  if (std::find(folders.begin(), folders.end(), folder) == folders.end()) folders.push_back(folder);
}

void add_matches(std::vector<std::string>& folders, const std::string& pattern) {
  glob_t found{};
  if (glob(pattern.c_str(), GLOB_ONLYDIR, nullptr, &found) == 0) {
    for (size_t i = 0; i < found.gl_pathc; ++i) add(folders, std::string(found.gl_pathv[i]) + "/");
  }
  globfree(&found);
}

int add_packages_of(dl_phdr_info* library, size_t, void* roots) {
  const std::string_view path = library->dlpi_name;
  for (const std::string_view name : {"/site-packages/", "/dist-packages/"}) {
    if (const size_t at = path.find(name); at != std::string_view::npos)
      add(*static_cast<std::vector<std::string>*>(roots), std::string(path.substr(0, at + name.size())));
  }
  return 0;
}

}  // namespace

std::vector<std::string> package_folders(const std::string& below) {
  std::vector<std::string> folders, packages;
  if (getauxval(AT_SECURE) != 0) return folders;
  dl_iterate_phdr(add_packages_of, &packages);
  for (const std::string& root : packages) add_matches(folders, root + below);
  for (const char* environment : {std::getenv("VIRTUAL_ENV"), std::getenv("CONDA_PREFIX")}) {
    if (environment == nullptr || *environment != '/') continue;
    add_matches(folders, std::string(environment) + "/lib/python3*/site-packages/" + below);
    add_matches(folders, std::string(environment) + "/lib");
  }
  return folders;
}

}  // namespace compute::common
