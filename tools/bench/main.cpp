// SPDX-License-Identifier: Apache-2.0
// core-bench [--large] [the flags of Google Benchmark]
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "tools/bench/rows.hpp"

namespace compute::bench {

const Device& cpu() {
  static const Device device = Device::open("cpu");
  return device;
}

}  // namespace compute::bench

int main(int argc, char** argv) {
  compute::bench::Options options;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--large") != 0) continue;
    options.large = true;
    for (int j = i; j < argc; ++j) argv[j] = argv[j + 1];  // the last is NULL
    --argc;
    --i;
  }
  // The device of the overhead rows is a test plugin, which no search path holds.
  const std::string folder = std::filesystem::path(COMPUTE_NULL_PLUGIN).parent_path();
  const char* given = std::getenv("COMPUTE_PLUGIN_PATH");
  setenv("COMPUTE_PLUGIN_PATH", given != nullptr ? (folder + ":" + given).c_str() : folder.c_str(), 1);
  try {
    compute::bench::add_overhead_rows(options);
    compute::bench::add_elementwise_rows();
    compute::bench::add_memory_bound_rows(options);
    compute::bench::add_matmul_rows(options);
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    benchmark::RunSpecifiedBenchmarks();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "core-bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
