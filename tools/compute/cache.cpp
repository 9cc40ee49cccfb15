// SPDX-License-Identifier: Apache-2.0
// The cache of compiled kernels on disk.
#include <fmt/format.h>
#include <compute/compute.hpp>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include "commands.hpp"
#include "plugins/common/kernel_cache.hpp"

namespace {

std::string setting(const char* name) {
  compute_text* text = nullptr;
  compute::check(compute_config_get(name, &text));
  std::string value(compute_text_data(text), static_cast<size_t>(compute_text_size(text)));
  compute_text_free(text);
  value.resize(std::min(value.size(), value.find('\t')));
  return value;
}

std::optional<std::filesystem::path> directory() {
  return compute::common::kernel_cache_directory(setting("COMPUTE_CACHE_DIR"));
}

}  // namespace

int show_cache() {
  const auto place = directory();
  fmt::print("{}\n", place ? place->string() : "none: neither COMPUTE_CACHE_DIR nor a home directory is set");
  return place ? 0 : 1;
}

int clear_cache() {
  compute::files::Trust trust = compute::files::Trust::of_process(false);
  trust.everybody = setting("COMPUTE_TRUST_ALL") == "1";
  compute::common::KernelCache cache(directory(), 0, std::move(trust));
  if (const std::string problem = cache.problem(); !problem.empty()) {
    fmt::print(stderr, "nothing removed: {}\n", problem);
    return 1;
  }
  fmt::print("{} compiled programs removed\n", cache.clear());
  return 0;
}
