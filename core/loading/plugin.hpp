// SPDX-License-Identifier: Apache-2.0
// A loaded plugin, as the rest of core sees it.
#pragma once

#include <cstdint>
#include <string>

#include "core/loading/plugin_table.hpp"

namespace compute {

// Never destroyed once opened.
struct Plugin {
  std::string name;  // prefix of its devices' names
  std::string path;
  std::string version;
  std::string build_id;
  int32_t priority = 0;
  PluginTable table;
};

}  // namespace compute
