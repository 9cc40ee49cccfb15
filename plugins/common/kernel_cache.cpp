// SPDX-License-Identifier: Apache-2.0
#include "plugins/common/kernel_cache.hpp"

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <vector>

#include "plugins/common/host.hpp"

namespace compute::common {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".kernel";
constexpr std::string_view kTemporarySuffix = ".partial";
constexpr int64_t kDefaultLimitBytes = int64_t{1} << 30;
constexpr int64_t kMaxEntryBytes = int64_t{1} << 28;
constexpr time_t kTouchAfterSeconds = 60;       // use is noted at most this often
constexpr time_t kAbandonedAfterSeconds = 600;  // a temporary file that old has lost its writer

// An entry's first bytes, in the machine's byte order: caches are not carried between machines.
struct Header {
  char magic[8];
  XXH128_hash_t key;       // of what the program was made from
  XXH128_hash_t checksum;  // of the program
  uint64_t program_bytes;
};
constexpr char kMagic[8] = {'c', 'o', 'm', 'p', 'k', 'r', 'n', '1'};

XXH128_hash_t digest_of(const ProgramKey& key) {
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  for (const std::string_view part : {key.device, key.compiler, key.options, key.source}) {
    const uint64_t size = part.size();  // so that no two lists of parts give the same bytes
    XXH3_128bits_update(&state, &size, sizeof size);
    XXH3_128bits_update(&state, part.data(), part.size());
  }
  return XXH3_128bits_digest(&state);
}

class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  explicit operator bool() const { return descriptor_ >= 0; }
  int get() const { return descriptor_; }

  bool read_all(void* data, size_t size) const {
    for (char* at = static_cast<char*>(data); size > 0;) {
      const ssize_t got = read(descriptor_, at, size);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      at += got;
      size -= static_cast<size_t>(got);
    }
    return true;
  }

  bool write_all(const void* data, size_t size) const {
    for (const char* at = static_cast<const char*>(data); size > 0;) {
      const ssize_t put = write(descriptor_, at, size);
      if (put < 0 && errno == EINTR) continue;
      if (put <= 0) return false;
      at += put;
      size -= static_cast<size_t>(put);
    }
    return true;
  }

 private:
  const int descriptor_;
};

// A program is code: what somebody else could have written is not run.
bool is_trusted(const struct stat& status) {
  return (status.st_uid == geteuid() || status.st_uid == 0) && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// "512M", "2G", "1000000".
std::optional<int64_t> parse_bytes(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || !(number >= 0)) return std::nullopt;
  int shift = 0;
  switch (*end) {
    case 'k': case 'K': shift = 10; break;
    case 'm': case 'M': shift = 20; break;
    case 'g': case 'G': shift = 30; break;
    case 't': case 'T': shift = 40; break;
    case '\0': break;
    default: return std::nullopt;
  }
  const double bytes = number * static_cast<double>(int64_t{1} << shift);
  return bytes < 9e18 ? static_cast<int64_t>(bytes) : INT64_MAX;
}

bool is_entry(const fs::path& path) { return path.extension() == kSuffix; }
bool is_temporary(const fs::path& path) { return path.extension() == kTemporarySuffix; }

}  // namespace

std::optional<fs::path> kernel_cache_directory(std::optional<std::string> setting) {
  if (getauxval(AT_SECURE) != 0) return std::nullopt;
  if (setting && !setting->empty()) return fs::path(*setting);
  // The XDG rules ignore paths that are not absolute.
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache == '/') return fs::path(cache) / "compute";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/') return fs::path(home) / ".cache" / "compute";
  return std::nullopt;
}

KernelCache::KernelCache(std::optional<fs::path> directory, int64_t limit_bytes)
    : directory_(std::move(directory)), limit_bytes_(limit_bytes), unchecked_bytes_(limit_bytes) {}

KernelCache& KernelCache::instance() {
  static KernelCache& cache = *[] {
    int64_t limit = kDefaultLimitBytes;
    if (const auto text = setting("COMPUTE_CACHE_LIMIT")) limit = parse_bytes(*text).value_or(limit);
    return new KernelCache(limit > 0 ? kernel_cache_directory(setting("COMPUTE_CACHE_DIR")) : std::nullopt, limit);
  }();
  return cache;
}

fs::path KernelCache::path_of(const ProgramKey& key) const {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, digest_of(key));
  std::string name;
  for (const uint8_t byte : canonical.digest) {
    name += "0123456789abcdef"[byte >> 4];
    name += "0123456789abcdef"[byte & 15];
  }
  return *directory_ / (name + std::string(kSuffix));
}

std::optional<std::string> KernelCache::load(const ProgramKey& key) {
  if (!directory_) return std::nullopt;
  const fs::path path = path_of(key);
  const File file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file) return std::nullopt;
  struct stat status{};
  if (fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) || !is_trusted(status)) return std::nullopt;
  Header header{};
  if (!file.read_all(&header, sizeof header) || std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 ||
      !XXH128_isEqual(header.key, digest_of(key)) || header.program_bytes > static_cast<uint64_t>(kMaxEntryBytes) ||
      static_cast<uint64_t>(status.st_size) != sizeof header + header.program_bytes) {
    return std::nullopt;
  }
  std::string program(header.program_bytes, '\0');
  if (!file.read_all(program.data(), program.size()) ||
      !XXH128_isEqual(header.checksum, XXH3_128bits(program.data(), program.size()))) {
    return std::nullopt;
  }
  if (time(nullptr) - status.st_mtime > kTouchAfterSeconds) futimens(file.get(), nullptr);
  return program;
}

void KernelCache::store(const ProgramKey& key, std::string_view program) {
  if (!directory_ || static_cast<int64_t>(program.size()) > std::min(limit_bytes_, kMaxEntryBytes)) return;
  std::error_code ignored;
  if (!fs::exists(*directory_, ignored)) {
    fs::create_directories(directory_->parent_path(), ignored);
    if (mkdir(directory_->c_str(), S_IRWXU) != 0 && errno != EEXIST) return;
  }
  const fs::path path = path_of(key);
  static std::atomic<uint64_t> counter{0};
  const fs::path temporary = path.string() + "." + std::to_string(getpid()) + "." + std::to_string(counter.fetch_add(1)) +
                             std::string(kTemporarySuffix);
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.key = digest_of(key);
  header.checksum = XXH3_128bits(program.data(), program.size());
  header.program_bytes = program.size();
  bool written = false;
  {
    const File file(open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
    if (!file) return;
    written = file.write_all(&header, sizeof header) && file.write_all(program.data(), program.size());
  }
  if (!written || rename(temporary.c_str(), path.c_str()) != 0) {
    unlink(temporary.c_str());
    return;
  }
  const std::lock_guard lock(mutex_);
  unchecked_bytes_ += static_cast<int64_t>(program.size() + sizeof header);
  // Looking at every entry for each that is written would be slow; others write too, so the size is never known for long.
  if (unchecked_bytes_ >= limit_bytes_ / 16) evict();
}

void KernelCache::evict() {
  unchecked_bytes_ = 0;
  struct Entry {
    fs::path path;
    int64_t bytes;
    struct timespec used;
  };
  std::vector<Entry> entries;
  int64_t total = 0;
  const time_t now = time(nullptr);
  std::error_code failed;
  for (fs::directory_iterator it(*directory_, failed), end; !failed && it != end; it.increment(failed)) {
    struct stat status{};
    if (lstat(it->path().c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    if (is_temporary(it->path()) && now - status.st_mtime > kAbandonedAfterSeconds) unlink(it->path().c_str());
    if (!is_entry(it->path())) continue;
    entries.push_back({it->path(), status.st_size, status.st_mtim});
    total += status.st_size;
  }
  if (total <= limit_bytes_) return;
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.used.tv_sec != b.used.tv_sec ? a.used.tv_sec < b.used.tv_sec : a.used.tv_nsec < b.used.tv_nsec;
  });
  const int64_t wanted = limit_bytes_ - limit_bytes_ / 4;  // so that the next one does not evict again
  for (const Entry& entry : entries) {
    if (total <= wanted) break;
    if (unlink(entry.path.c_str()) == 0) total -= entry.bytes;
  }
}

int64_t KernelCache::clear() {
  int64_t removed = 0;
  if (!directory_) return removed;
  std::error_code failed;
  for (fs::directory_iterator it(*directory_, failed), end; !failed && it != end; it.increment(failed)) {
    if (!is_entry(it->path()) && !is_temporary(it->path())) continue;
    if (unlink(it->path().c_str()) == 0 && is_entry(it->path())) ++removed;
  }
  return removed;
}

}  // namespace compute::common
