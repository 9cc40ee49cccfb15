// SPDX-License-Identifier: Apache-2.0
// The only functions that open files, and the check of who may have written them.
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

/// True iff `error`, an errno, is a temporary shortage: descriptors, memory, processes. A later attempt may succeed, so
/// nothing is concluded from it.
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

/// A regular file, open for reading. Opening never blocks, whatever is at the path; a device file is not even opened.
class File {
 public:
  explicit File(const std::filesystem::path& path, Links links = Links::kFollow);

  explicit operator bool() const { return static_cast<bool>(descriptor_); }
  /// Why it is not open: `No such file or directory`, `a folder, not a file`. Empty if it is open.
  const std::string& problem() const { return problem_; }
  /// The errno of the problem; 0 if there is something else than a regular file.
  int error() const { return error_; }
  bool is_short() const { return is_shortage(error_); }
  bool is_folder() const { return is_folder_; }

  int descriptor() const { return descriptor_.get(); }
  const struct stat& status() const { return status_; }

  /// Everything up to the end. Nothing, with a problem, if it cannot be read or is larger than `limit_bytes`.
  std::optional<std::string> read(size_t limit_bytes);
  /// Exactly `size_bytes` from the position after the last read.
  bool read_exactly(void* data, size_t size_bytes) const;

 private:
  void fail(int error);

  Descriptor descriptor_;
  struct stat status_ {};
  std::string problem_;
  int error_ = 0;
  bool is_folder_ = false;
};

/// The entries of `folder`, in no order. Empty with `error` if it cannot be read. Throws std::bad_alloc, where the
/// iterators of the standard library may terminate the process.
std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder, std::error_code& error);

/// Opens a file named by the program or its user for output, and creates or truncates it. Opening does not block: a
/// FIFO without a reader is an error. Empty on failure; errno has the reason.
Descriptor open_for_output(const std::filesystem::path& path);

/// Writes all of `data`. False if that fails; errno says why. If the file would exceed the process's limit
/// (RLIMIT_FSIZE), nothing is written and errno is EFBIG, where write(2) would end the process by a signal.
bool write_all(int descriptor, std::string_view data) noexcept;

/// Makes `data` the contents of `path`. The file is written under another name and renamed, so a reader sees all of it
/// or none. False on failure; then no file is left, and errno has the reason. The folder must exist.
bool write_whole(const std::filesystem::path& path, std::string_view data);

/// True iff `name` is `digits` lower-case hexadecimal digits followed by `suffix`: the file names of caches.
bool is_kept_name(std::string_view name, size_t digits, std::string_view suffix) noexcept;
/// True iff it is the name that write_whole gives to such a file before it is complete.
bool is_partial_name(std::string_view name, size_t digits, std::string_view suffix) noexcept;

/// Creates `folder`, accessible to its owner only, and missing folders above it. False if that fails; errno says why.
bool make_private_folder(const std::filesystem::path& folder);

/// The folder of caches: the value of `setting` if it is set, else by the XDG rules; nothing if neither gives one.
std::optional<std::filesystem::path> cache_folder(const std::string& setting);

uid_t effective_user() noexcept;

/// Whether user 0 is among those that a text like /proc/self/uid_map maps into this process's user namespace.
bool maps_root(std::string_view uid_map) noexcept;

/// The user to whom root's files seem to belong if root is not mapped, as in some sandboxes: the overflow user. Nothing
/// if root is mapped.
std::optional<uid_t> unmapped_root();

/// Whose files are trusted if they become code or decide which code runs. Only root and `user` may have written them.
struct Trust {
  bool everybody = false;                        // the user's decision: COMPUTE_TRUST_ALL
  std::optional<uid_t> user = effective_user();  // the user of this process; nothing: these files are not trusted
  std::optional<uid_t> root_seen_as = unmapped_root();
  std::optional<uid_t> neighbour;       // the owner of the calling library, whose code runs already
  std::vector<gid_t> neighbour_groups;  // those that may write to that library or its folder
  std::filesystem::path base;           // that library's folder; folders above it are not checked
  std::string remedy;                   // ends each reason

  /// Of this process: its effective user. `is_privileged`: the process has more rights than the user who started it. A
  /// user's own files are trusted only if the process has become that user.
  static Trust of_process(bool is_privileged);

  /// Makes the owner of the library at `file`, and the groups that may write to it, neighbours.
  void believe_neighbours(const std::filesystem::path& file);

  /// Why a file with that status is not trusted; empty if it is.
  std::string why_not(const struct stat& status) const;

  /// The same for the file at `path`, each link on the way to it, and each folder above it and above the links; names
  /// the first one that is not trusted. A path that does not exist yet is judged by the folder in which it would be
  /// created.
  std::string why_not(const std::filesystem::path& path) const;

  /// The same for a file that was opened at `path`: the open file is judged, even if the path names another file by
  /// now.
  std::string why_not(const File& file, const std::filesystem::path& path) const;

 private:
  std::string judge(const struct stat& status, const std::string& what) const;
  std::string judge_way(const std::filesystem::path& path, const struct stat* opened) const;
};

}  // namespace compute::files
