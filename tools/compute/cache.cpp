// SPDX-License-Identifier: Apache-2.0
// The cache of compiled kernels on disk.
#include <fmt/format.h>
#include <compute/compute.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "commands.hpp"
#include "core/trusted_files/blob_store.hpp"
#include "print_json.hpp"

namespace {

std::optional<std::filesystem::path> directory() {
  return compute::files::cache_folder(compute::config_get("COMPUTE_CACHE_DIR").value);
}

std::unique_ptr<compute::files::BlobStore> cache_at(const std::optional<std::filesystem::path>& place) {
  compute::files::Trust trust = compute::files::Trust::of_process(false);
  trust.everybody = compute::config_get("COMPUTE_TRUST_ALL").value == "1";
  return std::make_unique<compute::files::BlobStore>(place, 0, std::move(trust));
}

}  // namespace

CacheState state_of_cache() {
  const auto place = directory();
  const auto cache = cache_at(place);
  CacheState state;
  state.directory = place ? place->string() : "none";
  state.problem = cache->problem_of_storing();
  const auto contents = cache->contents(kStaleDays);
  state.programs = contents.entries;
  state.bytes = contents.bytes;
  state.unreadable = contents.unreadable;
  state.unused = contents.unused;
  return state;
}

int show_cache(bool json) {
  const auto place = directory();
  if (json) {
    const nlohmann::json directory = place ? nlohmann::json(place->string()) : nlohmann::json();
    print_json(nlohmann::json{{"directory", directory}});
    return place ? 0 : 1;
  }
  fmt::print("{}\n", place ? place->string() : "none: neither COMPUTE_CACHE_DIR nor a home directory is set");
  return place ? 0 : 1;
}

int clear_cache() {
  const auto cache = cache_at(directory());
  if (const std::string problem = cache->problem(); !problem.empty()) {
    fmt::print(stderr, "compute: nothing removed: {}\n", problem);
    return 1;
  }
  fmt::print("{} compiled programs removed\n", cache->clear());
  const int64_t left = cache->contents(0).entries;
  if (left == 0) return 0;
  fmt::print(stderr, "compute: {} compiled programs could not be removed from {}\n", left,
             cache->directory()->string());
  return 1;
}
