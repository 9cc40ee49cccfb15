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

#include "core/files/files.hpp"

namespace compute::common {

/// What a compiled program depends on. Any difference makes another entry.
struct ProgramKey {
  std::string_view source;
  std::string_view device;    // architecture, or an OpenCL device with its driver's version
  std::string_view compiler;  // name and version
  std::string_view options;
};

/// A folder of compiled programs, one file each, shared by any number of processes.
///
/// An entry is written to a file of its own and then renamed, so a reader sees a whole one or none. Each holds its
/// key's digest and a checksum: what does not fit is taken for absent and written anew. Files of another user, or that
/// others may write to, are not read, and nothing is where they may write to the folder or one above it; links are not
/// followed. When the folder outgrows its limit, entries that were not used for longest go first. Files with other
/// names than an entry's are left alone.
///
/// The cache never fails: where it cannot read or write, programs are compiled.
///
/// Threads: any thread.
class KernelCache {
 public:
  /// No directory: nothing is found or kept.
  KernelCache(std::optional<std::filesystem::path> directory, int64_t limit_bytes,
              files::Trust trust = files::Trust::of_process(false));

  /// Where the settings in force put it: COMPUTE_CACHE_DIR, else $XDG_CACHE_HOME/compute, else ~/.cache/compute, with
  /// at most COMPUTE_CACHE_LIMIT bytes. Without a directory in a privileged process.
  static KernelCache& instance();

  std::optional<std::string> load(const ProgramKey& key);
  void store(const ProgramKey& key, std::string_view program);

  /// Removes every entry, and nothing else that lies there. Returns how many there were.
  int64_t clear();

  /// Why nothing is found, kept or removed there, with the folder; empty where it is.
  std::string problem() const;

  const std::optional<std::filesystem::path>& directory() const { return directory_; }

 private:
  std::filesystem::path path_of(const ProgramKey& key) const;
  bool is_usable();
  void evict();

  const std::optional<std::filesystem::path> directory_;
  const int64_t limit_bytes_;
  const files::Trust trust_;
  std::atomic<bool> has_warned_{false};
  std::mutex mutex_;
  int64_t unchecked_bytes_;  // written since the folder's size was last looked at
};

/// COMPUTE_CACHE_DIR's value, or where the XDG rules put it; nothing if there is no place or the process is privileged.
std::optional<std::filesystem::path> kernel_cache_directory(const std::optional<std::string>& setting,
                                                            bool privileged = false);

/// COMPUTE_CACHE_LIMIT's value: `512M`, `1.5GiB`, `1000000`; nothing where it is no size. The decimal mark is a point
/// in every locale.
std::optional<int64_t> parse_cache_limit(std::string_view text);

}  // namespace compute::common
