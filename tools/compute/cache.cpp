// SPDX-License-Identifier: Apache-2.0
// The cache of compiled kernels on disk.
#include <compute/compute.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "commands.hpp"
#include "plugins/common/kernel_cache.hpp"

namespace {

std::optional<std::filesystem::path> directory() {
  compute_text* text = nullptr;
  compute::check(compute_config_get("COMPUTE_CACHE_DIR", &text));
  std::string value(compute_text_data(text), static_cast<size_t>(compute_text_size(text)));
  compute_text_free(text);
  value.resize(std::min(value.size(), value.find('\t')));
  return compute::common::kernel_cache_directory(value);
}

}  // namespace

int show_cache() {
  const auto place = directory();
  fmt::print("{}\n", place ? place->string() : "none: neither COMPUTE_CACHE_DIR nor a home directory is set");
  return place ? 0 : 1;
}

int clear_cache() {
  compute::common::KernelCache cache(directory(), 0);
  fmt::print("{} compiled programs removed\n", cache.clear());
  return 0;
}
