// SPDX-License-Identifier: Apache-2.0
// Compiled programs on disk (CUDA cubins, OpenCL binaries), so that a second process compiles nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "core/trusted_files/trusted_files.hpp"

namespace compute::common {

/// The inputs of a compiled program. Any difference makes another entry.
struct ProgramKey {
  std::string_view source;
  std::string_view device;    // architecture, or an OpenCL device with its driver's version
  std::string_view compiler;  // name and version
  std::string_view options;
};

/// Whether the compiler may read other files for this program. Their contents are not in the key, so such a program is
/// not cached.
bool may_include(const ProgramKey& key);

/// A folder of compiled programs, one file each, shared by any number of processes.
///
/// An entry is written to another file and then renamed, so a reader sees a complete entry or none. Each contains its
/// key's digest and a checksum; an entry that does not match counts as absent and is replaced. Files of other users,
/// and files that other users can write, are not read. If other users can write to the folder or a folder above it,
/// nothing is read. Links are not followed. When the folder exceeds its limit, the least recently used entries are
/// removed first. Files with other names than an entry's are not touched.
///
/// The cache never fails: if it cannot read or write, programs are compiled, and the first time a warning says why.
///
/// Threads: any thread.
class KernelCache {
 public:
  /// Without a directory: nothing is found or stored.
  KernelCache(std::optional<std::filesystem::path> directory, int64_t limit_bytes,
              files::Trust trust = files::Trust::of_process(false));

  /// In the place that the settings give: COMPUTE_CACHE_DIR, else $XDG_CACHE_HOME/compute, else ~/.cache/compute, with
  /// at most COMPUTE_CACHE_LIMIT bytes. Without a directory in a privileged process.
  static KernelCache& instance();

  std::optional<std::string> load(const ProgramKey& key);
  void store(const ProgramKey& key, std::string_view program);

  /// Removes every entry and no other files. Returns the number of entries.
  int64_t clear();

  /// What the folder holds. Entries that are damaged or of another version are unreadable; readable ones that were not
  /// used for `unused_days` are unused. Reads the beginning of each.
  struct Contents {
    int64_t entries = 0, bytes = 0, unreadable = 0, unused = 0;
  };
  Contents contents(int unused_days) const;

  /// Why the cache is not used, with the folder; empty if it is used.
  std::string problem() const;
  /// The same, or why nothing can be written there: it writes an entry and removes it.
  std::string problem_of_storing() const;

  const std::optional<std::filesystem::path>& directory() const { return directory_; }

 private:
  std::filesystem::path path_of(const ProgramKey& key) const;
  bool is_usable();
  void warn_once(const std::string& reason);
  void evict();

  const std::optional<std::filesystem::path> directory_;
  const int64_t limit_bytes_;
  const files::Trust trust_;
  std::atomic<bool> has_warned_{false};
  std::mutex mutex_;
  int64_t unchecked_bytes_;  // written since the folder's size was last checked
};

/// COMPUTE_CACHE_DIR's value, or the folder by the XDG rules; nothing if there is none or the process is privileged.
std::optional<std::filesystem::path> kernel_cache_directory(const std::optional<std::string>& setting,
                                                            bool privileged = false);

/// COMPUTE_CACHE_LIMIT's value: `512M`, `1.5GiB`, `1000000`; nothing if it is not a size. The decimal mark is a point
/// in every locale.
std::optional<int64_t> parse_cache_limit(std::string_view text);

}  // namespace compute::common
