// SPDX-License-Identifier: Apache-2.0
#include "core/trusted_files/trusted_files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <system_error>
#include <utility>

namespace compute::files {
namespace {

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "it is a directory, not a file";
  if (S_ISFIFO(mode)) return "it is a FIFO, not a regular file";
  if (S_ISSOCK(mode)) return "it is a socket, not a regular file";
  if (S_ISLNK(mode)) return "it is a symbolic link, which is not followed here";
  return "it is a device, not a regular file";
}

std::string mode_text(mode_t mode) {
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "%04o", static_cast<unsigned>(mode & 07777));
  return text.data();
}

// Whether `size` bytes more in a regular file exceed the process's limit.
bool exceeds_limit(int descriptor, size_t size) noexcept {
  rlimit limit{};
  struct stat status {};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return false;
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) return false;
  const off_t at = ::lseek(descriptor, 0, SEEK_CUR);
  return at >= 0 && static_cast<rlim_t>(at) + size > limit.rlim_cur;
}

constexpr std::string_view kPartialSuffix = ".partial";
constexpr int kMaxLinks = 40;  // as the kernel's

/// A folder, link or file on the way to a path.
struct Step {
  std::filesystem::path path;
  struct stat status;
};

/// How the kernel gets to a path.
struct Way {
  std::vector<Step> steps;      // in order: each folder above the path and above each link, each link, and the target
  std::filesystem::path whole;  // where it ends, without links
  bool is_there = true;
  std::string problem;  // why it could not be followed
};

void put_before(std::vector<std::filesystem::path>& rest, const std::filesystem::path& path) {
  const std::filesystem::path relative = path.relative_path();
  const std::vector<std::filesystem::path> parts(relative.begin(), relative.end());
  rest.insert(rest.end(), parts.rbegin(), parts.rend());
}

Way way_to(const std::filesystem::path& path) {
  Way way;
  std::error_code error;
  const std::filesystem::path named = std::filesystem::absolute(path, error);
  std::vector<std::filesystem::path> rest;  // backwards
  const auto look = [&](const std::filesystem::path& at) {
    Step step{at, {}};
    const int failed = ::lstat(at.c_str(), &step.status) == 0 ? 0 : errno;
    if (failed == 0) way.steps.push_back(std::move(step));
    return failed;
  };
  const auto fail = [&](const std::string& why) {
    way.problem = why;
    return way;
  };
  if (error) return fail(error.message());
  way.whole = named.root_path();
  if (const int failed = look(way.whole); failed != 0) return fail(std::generic_category().message(failed));
  put_before(rest, named);
  for (int links = 0; !rest.empty();) {
    const std::filesystem::path part = std::move(rest.back());
    rest.pop_back();
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      way.whole = way.whole.parent_path();
      continue;
    }
    const std::filesystem::path at = way.whole / part;
    const int failed = way.is_there ? look(at) : ENOENT;
    if (failed != 0 && failed != ENOENT) return fail(std::generic_category().message(failed));
    if (failed == 0 && S_ISLNK(way.steps.back().status.st_mode)) {
      const std::filesystem::path target = std::filesystem::read_symlink(at, error);
      if (error) return fail(error.message());
      if (++links > kMaxLinks) return fail(std::generic_category().message(ELOOP));
      if (target.is_absolute()) way.whole = target.root_path();
      put_before(rest, target);
      continue;
    }
    // `missing/..` is resolved as if the folder existed
    way.is_there = failed == 0 || std::find(rest.begin(), rest.end(), "..") != rest.end();
    way.whole = at;
  }
  return way;
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
      problem_ = "it is larger than " + std::to_string(limit_bytes) + " bytes";
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

Descriptor open_for_output(const std::filesystem::path& path) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666));
  if (!file) return file;
  const int flags = ::fcntl(file.get(), F_GETFL);
  if (flags < 0 || ::fcntl(file.get(), F_SETFL, flags & ~O_NONBLOCK) != 0) return Descriptor();
  return file;
}

bool write_all(int descriptor, std::string_view data) noexcept {
  if (exceeds_limit(descriptor, data.size())) {
    errno = EFBIG;
    return false;
  }
  while (!data.empty()) {
    const ssize_t put = ::write(descriptor, data.data(), data.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    data.remove_prefix(static_cast<size_t>(put));
  }
  return true;
}

bool write_whole(const std::filesystem::path& path, std::string_view data) {
  static std::atomic<uint64_t> counter{0};
  const std::string beside = path.string() + "." + std::to_string(::getpid()) + "." +
                             std::to_string(counter.fetch_add(1)) + std::string(kPartialSuffix);
  const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
  int fault = 0;
  {
    const Descriptor file(::open(beside.c_str(), flags, S_IRUSR | S_IWUSR));
    if (!file) return false;
    if (!write_all(file.get(), data)) fault = errno;
  }
  if (fault == 0 && ::rename(beside.c_str(), path.c_str()) == 0) return true;
  if (fault == 0) fault = errno;
  ::unlink(beside.c_str());
  errno = fault;
  return false;
}

bool is_kept_name(std::string_view name, size_t digits, std::string_view suffix) noexcept {
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return name.size() == digits + suffix.size() && name.ends_with(suffix) &&
         std::all_of(name.begin(), name.end() - suffix.size(), is_digit);
}

bool is_partial_name(std::string_view name, size_t digits, std::string_view suffix) noexcept {
  const auto take_number = [&name] {
    const size_t end = std::min(name.find_first_not_of("0123456789", 1), name.size());
    if (!name.starts_with('.') || end < 2) return false;
    name.remove_prefix(end);
    return true;
  };
  const size_t whole = digits + suffix.size();
  if (name.size() < whole || !is_kept_name(name.substr(0, whole), digits, suffix)) return false;
  name.remove_prefix(whole);
  return take_number() && take_number() && name == kPartialSuffix;
}

bool make_private_folder(const std::filesystem::path& folder) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) return true;
    errno = ENOTDIR;
    return false;
  }
  const std::filesystem::path above = std::filesystem::absolute(folder).parent_path();
  if (above.empty() || above == folder || !make_private_folder(above)) return false;
  return ::mkdir(folder.c_str(), S_IRWXU) == 0 || errno == EEXIST;
}

std::optional<std::filesystem::path> cache_folder(const std::string& setting) {
  if (!setting.empty()) return std::filesystem::absolute(setting);
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

bool maps_root(std::string_view uid_map) noexcept {
  while (!uid_map.empty()) {  // "first inside, first outside, how many"
    const std::string_view line = uid_map.substr(0, uid_map.find('\n'));
    uid_map.remove_prefix(std::min(line.size() + 1, uid_map.size()));
    const size_t begin = line.find_first_not_of(' ');
    if (begin != std::string_view::npos && line.substr(begin, 2) == "0 ") return true;
  }
  return false;
}

std::optional<uid_t> unmapped_root() {
  constexpr size_t kMaxMapBytes = 1 << 16;
  const std::string map = File("/proc/self/uid_map").read(kMaxMapBytes).value_or("");
  if (map.empty() || maps_root(map)) return std::nullopt;
  const std::string text = File("/proc/sys/kernel/overflowuid").read(kMaxMapBytes).value_or("");
  uid_t user = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), user);
  return error == std::errc() ? std::optional<uid_t>(user) : std::nullopt;
}

Trust Trust::of_process(bool is_privileged) {
  Trust trust;
  if (is_privileged && trust.user == ::getuid()) trust.user.reset();
  return trust;
}

std::string Trust::judge(const struct stat& status, const std::string& what) const {
  if (everybody) return "";
  const uid_t owner = status.st_uid;
  if (owner != 0 && owner != user && owner != neighbour && owner != root_seen_as)
    return what + " is owned by user " + std::to_string(owner) + remedy;
  if (S_ISLNK(status.st_mode)) return "";  // only its owner can change it; its mode is meaningless
  // in a folder with the sticky bit, such as /tmp, only owners can change files
  if (S_ISDIR(status.st_mode) && (status.st_mode & S_ISVTX) != 0) return "";
  const gid_t group = status.st_gid;
  // the group that a user has alone has the user's number
  const bool is_own_group =
      group == 0 || (user && *user == group && ::getegid() == group) ||
      std::find(neighbour_groups.begin(), neighbour_groups.end(), group) != neighbour_groups.end();
  const char* who = (status.st_mode & S_IWOTH) != 0                    ? "everyone"
                    : (status.st_mode & S_IWGRP) != 0 && !is_own_group ? "its group"
                                                                       : nullptr;
  if (who == nullptr) return "";
  return what + " is writable by " + who + " (mode " + mode_text(status.st_mode) + ")" + remedy;
}

std::string Trust::why_not(const struct stat& status) const { return judge(status, "it"); }

std::string Trust::judge_way(const std::filesystem::path& path, const struct stat* opened) const {
  if (everybody) return "";
  Way way = way_to(path);
  if (!way.problem.empty()) return "it cannot be resolved: " + way.problem;
  if (opened != nullptr) {
    const auto is_opened = [&](const struct stat& last) {
      return last.st_dev == opened->st_dev && last.st_ino == opened->st_ino;
    };
    if (!way.is_there || !is_opened(way.steps.back().status)) return "it was replaced while it was being checked";
    way.steps.back().status = *opened;
  }
  for (auto step = way.steps.rbegin(); step != way.steps.rend(); ++step) {
    const bool is_link = S_ISLNK(step->status.st_mode), is_whole = step->path == way.whole;
    if (!base.empty() && !is_link && !is_whole && is_above(step->path, base)) continue;
    const std::string reason =
        judge(step->status, is_whole ? "it" : (is_link ? "the link " : "") + step->path.string());
    if (!reason.empty()) return reason;
  }
  return "";
}

std::string Trust::why_not(const std::filesystem::path& path) const { return judge_way(path, nullptr); }

std::string Trust::why_not(const File& file, const std::filesystem::path& path) const {
  return judge_way(path, &file.status());
}

void Trust::believe_neighbours(const std::filesystem::path& file) {
  base = file.parent_path();
  for (const std::filesystem::path& one : {base, file}) {
    struct stat status {};
    if (one.empty() || ::stat(one.c_str(), &status) != 0) continue;
    if (one == base) neighbour = status.st_uid;
    if ((status.st_mode & (S_IWGRP | S_IWOTH)) == S_IWGRP) neighbour_groups.push_back(status.st_gid);
  }
}

}  // namespace compute::files
