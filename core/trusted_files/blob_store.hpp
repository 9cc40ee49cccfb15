// SPDX-License-Identifier: Apache-2.0
// Blobs on disk, such as compiled kernels (CUDA cubins, OpenCL binaries), so that a second process compiles nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "core/trusted_files/trusted_files.hpp"

namespace compute::files {

/// A folder of blobs, one file each, shared by any number of processes.
///
/// A blob is written to another file and then renamed, so a reader sees a complete blob or none. Each contains its
/// key's digest and a checksum; a file that does not match counts as absent and is replaced. Files of other users, and
/// files that other users can write, are not read. If other users can write to the folder or a folder above it, nothing
/// is read. Links are not followed. When the folder exceeds its limit, the least recently used blobs are removed first.
/// Files with other names than a blob's are not touched.
///
/// The store never fails: if it cannot read or write, it has no blobs, and the first time it reports why.
///
/// Threads: any thread.
class BlobStore {
 public:
  /// Called at most once, with the reason why nothing is kept.
  using Warn = std::function<void(const std::string& reason)>;

  /// Without a directory: nothing is found or stored.
  BlobStore(std::optional<std::filesystem::path> directory, int64_t limit_bytes, Trust trust = Trust::of_process(false),
            Warn warn = {});

  std::optional<std::string> load(std::string_view key);
  void store(std::string_view key, std::string_view blob);

  /// Removes every blob and no other files. Returns the number of blobs.
  int64_t clear();

  /// What the folder holds. Blobs that are damaged or of another version are unreadable; readable ones that were not
  /// used for `unused_days` are unused. Reads the beginning of each.
  struct Contents {
    int64_t entries = 0, bytes = 0, unreadable = 0, unused = 0;
  };
  Contents contents(int unused_days) const;

  /// Why the store is not used, with the folder; empty if it is used.
  std::string problem() const;
  /// The same, or why nothing can be written there: it writes a blob and removes it.
  std::string problem_of_storing() const;

  const std::optional<std::filesystem::path>& directory() const { return directory_; }

 private:
  std::filesystem::path path_of(std::string_view key) const;
  bool is_usable();
  void warn_once(const std::string& reason);
  void evict();

  const std::optional<std::filesystem::path> directory_;
  const int64_t limit_bytes_;
  const Trust trust_;
  const Warn warn_;
  std::atomic<bool> has_warned_{false};
  std::mutex mutex_;
  int64_t unchecked_bytes_;  // written since the folder's size was last checked
};

}  // namespace compute::files
