// SPDX-License-Identifier: Apache-2.0
#include "core/process/change_settings.hpp"

#include <compute/compute.h>

#include <set>
#include <string>
#include <vector>

#include "core/process/log.hpp"
#include "core/process/process_config.hpp"

namespace compute {

void set_setting(std::string_view name, Origin origin, std::optional<std::string_view> text) {
  change_process_config([&](Config& config) { config.set(config.find(name).id, origin, text); });
  warn_of_settings();
}

void take_process_flags(int32_t* argc, char** argv) {
  change_process_config([&](Config& config) { take_flags(config, argc, argv); });
}

void warn_of_settings() {
  static std::set<std::string>& told = *new std::set<std::string>;  // guarded as the configuration is; never destroyed
  std::vector<std::string> lines;
  change_process_config([&](Config& config) {
    for (const std::string& line : config.misspelt()) {
      if (told.insert(line).second) lines.push_back(line);
    }
  });
  for (const std::string& line : lines) log(COMPUTE_LOG_WARNING, "select", line);
}

}  // namespace compute
