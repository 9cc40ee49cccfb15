// SPDX-License-Identifier: Apache-2.0
#include "files/files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace compute::files {
namespace {

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder, not a file";
  if (S_ISFIFO(mode)) return "a FIFO, not a regular file";
  if (S_ISSOCK(mode)) return "a socket, not a regular file";
  if (S_ISLNK(mode)) return "a link, which is not followed here";
  return "a device, not a regular file";
}

std::string mode_text(mode_t mode) {
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "%04o", static_cast<unsigned>(mode & 07777));
  return text.data();
}

bool write_all(int descriptor, std::string_view data) {
  while (!data.empty()) {
    const ssize_t put = ::write(descriptor, data.data(), data.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    data.remove_prefix(static_cast<size_t>(put));
  }
  return true;
}

// True iff `folder` is `below` or lies above it.
bool is_above(const std::filesystem::path& folder, const std::filesystem::path& below) {
  const auto [end, ignored] = std::mismatch(folder.begin(), folder.end(), below.begin(), below.end());
  return end == folder.end();
}

}  // namespace

bool is_shortage(int error) noexcept {
  return error == EMFILE || error == ENFILE || error == ENOMEM || error == EAGAIN || error == ENOBUFS;
}

void Descriptor::reset(int value) noexcept {
  if (value_ >= 0) ::close(value_);
  value_ = value;
}

void File::fail(int error) {
  error_ = error;
  problem_ = std::generic_category().message(error);
  descriptor_.reset();
}

File::File(const std::filesystem::path& path, Links links) {
  const bool follow = links == Links::kFollow;
  // looked at first: opening some devices does something
  bool is_there = ::fstatat(AT_FDCWD, path.c_str(), &status_, follow ? 0 : AT_SYMLINK_NOFOLLOW) == 0;
  if (is_there && S_ISREG(status_.st_mode)) {
    const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (follow ? 0 : O_NOFOLLOW);
    descriptor_.reset(::open(path.c_str(), flags));
    is_there = descriptor_ && ::fstat(descriptor_.get(), &status_) == 0;
  }
  if (!is_there) {
    fail(errno);
  } else if (!S_ISREG(status_.st_mode)) {
    descriptor_.reset();
    is_folder_ = S_ISDIR(status_.st_mode);
    problem_ = kind_of(status_.st_mode);
  }
}

std::optional<std::string> File::read(size_t limit_bytes) {
  if (!descriptor_) return std::nullopt;
  std::string text;
  // files of /proc and /sys state no size
  size_t step = std::min(limit_bytes, static_cast<size_t>(std::max<off_t>(status_.st_size, 4095))) + 1;
  for (;;) {
    const size_t before = text.size();
    text.resize(before + step);
    const ssize_t got = ::read(descriptor_.get(), text.data() + before, step);
    text.resize(before + (got > 0 ? static_cast<size_t>(got) : 0));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      fail(errno);
      return std::nullopt;
    }
    if (text.size() > limit_bytes) {
      problem_ = "larger than " + std::to_string(limit_bytes) + " bytes";
      return std::nullopt;
    }
    if (got == 0) return text;
    step = std::min<size_t>(limit_bytes - text.size() + 1, 65536);
  }
}

bool File::read_exactly(void* data, size_t size_bytes) const {
  for (char* at = static_cast<char*>(data); size_bytes > 0;) {
    const ssize_t got = ::read(descriptor_.get(), at, size_bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    size_bytes -= static_cast<size_t>(got);
  }
  return true;
}

std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder, std::error_code& error) {
  std::vector<std::filesystem::path> entries;
  error.clear();
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(folder.c_str()), ::closedir);
  errno = stream ? 0 : errno;
  while (stream) {
    const dirent* entry = ::readdir(stream.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") entries.push_back(folder / name);
    errno = 0;
  }
  if (errno != 0) {
    error.assign(errno, std::generic_category());
    entries.clear();
  }
  return entries;
}

bool write_whole(const std::filesystem::path& path, std::string_view data) {
  static std::atomic<uint64_t> counter{0};
  const std::string beside =
      path.string() + "." + std::to_string(::getpid()) + "." + std::to_string(counter.fetch_add(1)) + ".partial";
  const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
  bool written = false;
  {
    const Descriptor file(::open(beside.c_str(), flags, S_IRUSR | S_IWUSR));
    if (!file) return false;
    written = write_all(file.get(), data);
  }
  if (written && ::rename(beside.c_str(), path.c_str()) == 0) return true;
  ::unlink(beside.c_str());
  return false;
}

bool make_private_folder(const std::filesystem::path& folder) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) == 0) return S_ISDIR(status.st_mode);
  const std::filesystem::path above = folder.parent_path();
  if (above.empty() || above == folder || !make_private_folder(above)) return false;
  return ::mkdir(folder.c_str(), S_IRWXU) == 0 || errno == EEXIST;
}

std::optional<std::filesystem::path> cache_folder(const std::string& setting) {
  if (!setting.empty()) return setting;
  // The XDG rules ignore paths that are not absolute.
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache == '/') {
    return std::filesystem::path(cache) / "compute";
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/') {
    return std::filesystem::path(home) / ".cache" / "compute";
  }
  return std::nullopt;
}

uid_t effective_user() noexcept { return ::geteuid(); }

Trust Trust::of_process(bool is_privileged) {
  Trust trust;
  if (is_privileged && trust.user == ::getuid()) trust.user.reset();
  return trust;
}

std::string Trust::judge(const struct stat& status, const std::string& what) const {
  if (everybody) return "";
  const uid_t owner = status.st_uid;
  if (owner != 0 && owner != user && owner != neighbour) return what + " belongs to user " + std::to_string(owner) + remedy;
  // only their owners change what is in a folder with the sticky bit, as /tmp
  if (S_ISDIR(status.st_mode) && (status.st_mode & S_ISVTX) != 0) return "";
  const gid_t group = status.st_gid;
  // the group that a user has alone has the user's number
  const bool is_own_group = group == 0 || (user && *user == group && ::getegid() == group);
  const char* who = (status.st_mode & S_IWOTH) != 0                    ? "everybody"
                    : (status.st_mode & S_IWGRP) != 0 && !is_own_group ? "its group"
                                                                       : nullptr;
  if (who == nullptr) return "";
  return std::string(who) + " may write to " + what + " (mode " + mode_text(status.st_mode) + ")" + remedy;
}

std::string Trust::why_not(const struct stat& status) const { return judge(status, "it"); }

std::string Trust::why_not(const std::filesystem::path& path) const {
  if (everybody) return "";
  std::error_code error;
  std::filesystem::path real = std::filesystem::weakly_canonical(path, error);
  if (error) return path.string() + " cannot be resolved: " + error.message();
  const std::filesystem::path whole = real;
  for (;; real = real.parent_path()) {
    if (!base.empty() && real != whole && is_above(real, base)) return "";
    struct stat status {};
    if (::lstat(real.c_str(), &status) == 0) {
      const std::string reason = judge(status, real == whole ? "it" : real.string());
      if (!reason.empty()) return reason;
    } else if (errno != ENOENT) {
      return real.string() + ": " + std::generic_category().message(errno);
    }
    if (!real.has_relative_path()) return "";
  }
}

}  // namespace compute::files
