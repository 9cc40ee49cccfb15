// SPDX-License-Identifier: Apache-2.0
// The one way to open files, and who may have written them.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace compute::files {

/// True iff `error`, an errno, says that something has run out for now: descriptors, memory, processes. Asking again
/// later may help, so nothing is concluded from it.
bool is_shortage(int error) noexcept;

/// An owned file descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int value) noexcept : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  ~Descriptor() { reset(); }

  explicit operator bool() const { return value_ >= 0; }
  int get() const { return value_; }
  int release() noexcept {
    const int value = value_;
    value_ = -1;
    return value;
  }
  void reset(int value = -1) noexcept;

 private:
  int value_ = -1;
};

enum class Links { kFollow, kRefuse };

/// A regular file, open for reading. Opening never waits, whatever lies there; a device is not even opened.
class File {
 public:
  explicit File(const std::filesystem::path& path, Links links = Links::kFollow);

  explicit operator bool() const { return static_cast<bool>(descriptor_); }
  /// Why it is not open: `No such file or directory`, `a folder, not a file`. Empty where it is.
  const std::string& problem() const { return problem_; }
  /// The system's number of the problem; 0 where what lies there is no regular file.
  int error() const { return error_; }
  bool is_short() const { return is_shortage(error_); }
  bool is_folder() const { return is_folder_; }

  int descriptor() const { return descriptor_.get(); }
  const struct stat& status() const { return status_; }

  /// Everything up to the end. Nothing, with a problem, where it cannot be read or holds more than `limit_bytes`.
  std::optional<std::string> read(size_t limit_bytes);
  /// Exactly `size_bytes` from where the last read ended.
  bool read_exactly(void* data, size_t size_bytes) const;

 private:
  void fail(int error);

  Descriptor descriptor_;
  struct stat status_ {};
  std::string problem_;
  int error_ = 0;
  bool is_folder_ = false;
};

/// What lies in `folder`, in no order. Empty with `error` where it cannot be read. Throws std::bad_alloc, where the
/// iterators of the standard library may end the process.
std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder, std::error_code& error);

/// Makes `data` the contents of `path`: written beside and renamed, so that a reader sees all of it or none. False
/// where that fails; nothing is left behind then. The folder must be there.
bool write_whole(const std::filesystem::path& path, std::string_view data);

/// True iff `name` is `digits` lower-case hexadecimal digits and then `suffix`: what a cache calls its files.
bool is_kept_name(std::string_view name, size_t digits, std::string_view suffix) noexcept;
/// True iff it is one that write_whole gives to such a file before it is whole.
bool is_partial_name(std::string_view name, size_t digits, std::string_view suffix) noexcept;

/// Makes `folder`, for its owner alone. Folders above it that are missing are made too.
bool make_private_folder(const std::filesystem::path& folder);

/// Where caches lie: `setting` if it says so, else by the XDG rules; nothing where neither does.
std::optional<std::filesystem::path> cache_folder(const std::string& setting);

uid_t effective_user() noexcept;

/// Whether user 0 is among those that a text like /proc/self/uid_map maps into this process's user namespace.
bool maps_root(std::string_view uid_map) noexcept;

/// The user that root's files seem to belong to where root is not mapped, as in some sandboxes: the overflow user.
/// Nothing where it is.
std::optional<uid_t> unmapped_root();

/// Whom files are believed that become code or say what becomes code. Root and `user` may have written them, and nobody
/// else.
struct Trust {
  bool everybody = false;                        // the user's word for it: COMPUTE_TRUST_ALL
  std::optional<uid_t> user = effective_user();  // as whom this process acts; nothing where his files do not count
  std::optional<uid_t> root_seen_as = unmapped_root();
  std::optional<uid_t> neighbour;       // the owner of the library that asks: its code runs already
  std::vector<gid_t> neighbour_groups;  // those that may write to that library or its folder
  std::filesystem::path base;           // that library's folder: what lies above it is in its owner's hands already
  std::string remedy;                   // ends each reason

  /// Of this process: its effective user. `is_privileged`: it has more rights than whoever started it; a user's own
  /// files count only where the process has become that user.
  static Trust of_process(bool is_privileged);

  /// Takes the owner of the library at `file`, and the groups that may write to it, for neighbours.
  void believe_neighbours(const std::filesystem::path& file);

  /// Why something with that status is not believed; empty where it is.
  std::string why_not(const struct stat& status) const;

  /// The same for what lies at `path`, each link on the way to it, and each folder above it and above the links; names
  /// the one that is at fault. What does not exist yet is judged by the folder in which it would be made.
  std::string why_not(const std::filesystem::path& path) const;

  /// The same for a file that was opened at `path`: that very file is judged, whatever lies there by now.
  std::string why_not(const File& file, const std::filesystem::path& path) const;

 private:
  std::string judge(const struct stat& status, const std::string& what) const;
  std::string judge_way(const std::filesystem::path& path, const struct stat* opened) const;
};

}  // namespace compute::files
