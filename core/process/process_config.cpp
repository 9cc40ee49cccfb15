// SPDX-License-Identifier: Apache-2.0
#include "core/process/process_config.hpp"

#include <algorithm>
#include <mutex>
#include <optional>

#include "core/base/error.hpp"

namespace compute {
namespace {

struct ProcessConfig {
  std::mutex mutex;
  std::optional<Config> config;

  // A configuration that cannot be read is read again at the next call, and each call returns its error.
  Config& loaded() {
    if (!config) config.emplace(ConfigInputs::of_process());
    return *config;
  }
};

ProcessConfig& process() {
  static ProcessConfig& instance = *new ProcessConfig;  // never destroyed: plugins ask for settings while exiting
  return instance;
}

}  // namespace

SettingValue setting(SettingId id) {
  const std::lock_guard lock(process().mutex);
  return process().loaded().get(id);
}

bool debug_checks(std::string_view word) noexcept {
  static const auto* const listed = [] {
    auto* found = new std::vector<std::string>;  // never destroyed, as the settings
    try {
      *found = setting(SettingId::kDebug).words;
    } catch (const Error&) {
      // Calls that need an invalid setting report it.
    }
    return found;
  }();
  return std::find(listed->begin(), listed->end(), word) != listed->end();
}

Config process_config() {
  const std::lock_guard lock(process().mutex);
  return process().loaded();
}

void change_process_config(const std::function<void(Config&)>& change) {
  const std::lock_guard lock(process().mutex);
  change(process().loaded());
}

}  // namespace compute
