// SPDX-License-Identifier: Apache-2.0
// A loaded plugin, as the rest of core sees it.
#pragma once

#include <compute/plugin.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "core/lock.hpp"

namespace compute {

// Immortal once opened. Every slot that plugin.h does not mark optional is filled; the loader has seen to that.
struct Plugin {
  std::string name;  // prefix of its devices' names
  std::string path;
  std::string version;
  std::string build_id;
  uint32_t flags = 0;
  int32_t priority = 0;
  compute_plugin_table table{};  // our full-size copy; what the plugin does not know is NULL

  // Held around every call of a plugin that asked for COMPUTE_PLUGIN_GLOBAL_LOCK.
  Lock global_lock;
};

// Keeps other threads out of a plugin that wants to be entered by one at a time.
class PluginGuard {
 public:
  explicit PluginGuard(Plugin& plugin)
      : lock_((plugin.flags & COMPUTE_PLUGIN_GLOBAL_LOCK) != 0 ? &plugin.global_lock : nullptr) {
    if (lock_ != nullptr) lock_->lock();
  }
  ~PluginGuard() {
    if (lock_ != nullptr) lock_->unlock();
  }
  PluginGuard(const PluginGuard&) = delete;
  PluginGuard& operator=(const PluginGuard&) = delete;

 private:
  Lock* lock_;
};

// Copies a table or struct of an older or newer other side into one of today's size, zero-filled.
template <class T>
T copy_sized(const T* source, int64_t source_size) {
  T copy{};
  if (source != nullptr && source_size > 0) {
    std::memcpy(static_cast<void*>(&copy), source, static_cast<size_t>(std::min<int64_t>(source_size, sizeof(T))));
  }
  return copy;
}

}  // namespace compute
