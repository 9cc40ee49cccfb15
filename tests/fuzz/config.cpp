// SPDX-License-Identifier: Apache-2.0
//
// Any bytes are a configuration file or are refused in words that name it; flags made of them too.
#include "core/settings/config.hpp"

#include <compute/compute.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.hpp"

namespace {

// In a private folder, because files that other users can write are not read.
const std::string& config_file() {
  static const std::string path = [] {
    std::string folder = (std::filesystem::temp_directory_path() / "compute-fuzz.XXXXXX").string();
    if (mkdtemp(folder.data()) == nullptr) std::abort();
    static std::string file;
    file = folder + "/config.toml";
    std::atexit([] { std::filesystem::remove_all(std::filesystem::path(file).parent_path()); });
    return file;
  }();
  return path;
}

const char* environment(const char* name) {
  return std::string_view(name) == "COMPUTE_CONFIG" ? config_file().c_str() : nullptr;
}

void require_known_refusal(const compute::Error& error) {
  if (error.code != COMPUTE_ERROR_INVALID_ARGUMENT && error.code != COMPUTE_ERROR_NOT_FOUND) std::abort();
  if (error.message.empty()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  std::ofstream(config_file(), std::ios::binary | std::ios::trunc) << text;
  compute::ConfigInputs inputs;
  inputs.environment = environment;
  inputs.privileged = false;
  inputs.system_file = "/nonexistent";
  try {
    const compute::Config config(inputs);
    for (const compute::Setting& setting : compute::all_settings()) static_cast<void>(config.get(setting.id).is_set());
  } catch (const compute::Error& error) {
    require_known_refusal(error);
  }

  // The same as arguments, one a line.
  std::vector<std::string> lines = {"program"};
  for (size_t begin = 0; begin < text.size() && lines.size() < 16;) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back("--compute-" + std::string(text, begin, end - begin));
    begin = end + 1;
  }
  std::vector<char*> argv;
  for (std::string& line : lines) argv.push_back(line.data());
  argv.push_back(nullptr);
  std::ofstream(config_file(), std::ios::trunc);
  compute::Config config(inputs);
  auto argc = static_cast<int32_t>(lines.size());
  try {
    take_flags(config, &argc, argv.data());
    if (argc < 1 || argv[static_cast<size_t>(argc)] != nullptr) std::abort();
  } catch (const compute::Error& error) {
    require_known_refusal(error);
    if (argc != static_cast<int32_t>(lines.size())) std::abort();  // nothing changes on error
  }
  return 0;
}
