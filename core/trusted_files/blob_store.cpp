// SPDX-License-Identifier: Apache-2.0
#include "core/trusted_files/blob_store.hpp"

#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <system_error>
#include <vector>

namespace compute::files {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".blob";
constexpr int64_t kMaxEntryBytes = int64_t{1} << 28;
constexpr time_t kTouchAfterSeconds = 60;       // use is noted at most this often
constexpr time_t kAbandonedAfterSeconds = 600;  // a temporary file that old has lost its writer

// An entry's first bytes, in the machine's byte order: caches are not carried between machines.
struct Header {
  char magic[8];
  XXH128_hash_t key;
  XXH128_hash_t checksum;  // of the blob
  uint64_t blob_bytes;
};
constexpr char kMagic[8] = {'c', 'o', 'm', 'p', 'b', 'l', 'b', '1'};

XXH128_hash_t digest_of(std::string_view key) { return XXH3_128bits(key.data(), key.size()); }

constexpr size_t kDigestDigits = 32;

// The folder may be shared: remove only files with names of this cache.
bool is_entry(const fs::path& path) { return is_kept_name(path.filename().string(), kDigestDigits, kSuffix); }
bool is_temporary(const fs::path& path) { return is_partial_name(path.filename().string(), kDigestDigits, kSuffix); }

// The folder is made where it is missing. False if that fails; errno says why.
bool write(const fs::path& path, std::string_view entry) {
  return make_private_folder(path.parent_path()) && write_whole(path, entry);
}
std::string cannot_write(const fs::path& folder) {
  const std::string reason = std::generic_category().message(errno);
  return folder.string() + " cannot be written: " + reason;
}

}  // namespace

BlobStore::BlobStore(std::optional<fs::path> directory, int64_t limit_bytes, Trust trust, Warn warn)
    : directory_(std::move(directory)),
      limit_bytes_(limit_bytes),
      trust_(std::move(trust)),
      warn_(std::move(warn)),
      unchecked_bytes_(limit_bytes) {}

// Whether the folder can be trusted. Checked each time: compiling takes a thousand times as long.
std::string BlobStore::problem() const {
  if (!directory_) return "no cache directory is known";
  const std::string reason = trust_.why_not(*directory_);
  return reason.empty() ? "" : directory_->string() + ": " + reason + "; set COMPUTE_TRUST_ALL=1 to use it anyway";
}

std::string BlobStore::problem_of_storing() const {
  if (std::string reason = problem(); !reason.empty()) return reason;
  constexpr size_t kTrialBytes = 1 << 16;  // as large as a compiled blob may be
  const fs::path trial = *directory_ / (std::string(kDigestDigits, 'f') + std::string(kSuffix));
  if (!write(trial, std::string(kTrialBytes, '\0'))) return cannot_write(*directory_);
  unlink(trial.c_str());
  return "";
}

void BlobStore::warn_once(const std::string& reason) {
  if (!has_warned_.exchange(true) && warn_) warn_(reason);
}

bool BlobStore::is_usable() {
  const std::string reason = problem();
  if (directory_ && !reason.empty()) warn_once(reason);
  return reason.empty();
}

fs::path BlobStore::path_of(std::string_view key) const {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, digest_of(key));
  std::string name;
  for (const uint8_t byte : canonical.digest) {
    name += "0123456789abcdef"[byte >> 4];
    name += "0123456789abcdef"[byte & 15];
  }
  return *directory_ / (name + std::string(kSuffix));
}

std::optional<std::string> BlobStore::load(std::string_view key) {
  if (!is_usable()) return std::nullopt;
  const File file(path_of(key), Links::kRefuse);
  // A blob may be code: files that other users could have written are not read.
  if (!file || !trust_.why_not(file.status()).empty()) return std::nullopt;
  Header header{};
  if (!file.read_exactly(&header, sizeof header) || std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 ||
      !XXH128_isEqual(header.key, digest_of(key)) || header.blob_bytes > static_cast<uint64_t>(kMaxEntryBytes) ||
      static_cast<uint64_t>(file.status().st_size) != sizeof header + header.blob_bytes) {
    return std::nullopt;
  }
  std::string blob(header.blob_bytes, '\0');
  if (!file.read_exactly(blob.data(), blob.size()) ||
      !XXH128_isEqual(header.checksum, XXH3_128bits(blob.data(), blob.size()))) {
    return std::nullopt;
  }
  if (time(nullptr) - file.status().st_mtime > kTouchAfterSeconds) futimens(file.descriptor(), nullptr);
  return blob;
}

void BlobStore::store(std::string_view key, std::string_view blob) {
  if (!is_usable() || static_cast<int64_t>(blob.size()) > std::min(limit_bytes_, kMaxEntryBytes)) return;
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.key = digest_of(key);
  header.checksum = XXH3_128bits(blob.data(), blob.size());
  header.blob_bytes = blob.size();
  std::string entry(reinterpret_cast<const char*>(&header), sizeof header);
  entry += blob;
  if (!write(path_of(key), entry)) {
    warn_once(cannot_write(*directory_) + "; set COMPUTE_CACHE_DIR to another folder, or COMPUTE_CACHE_LIMIT=0");
    return;
  }
  const std::lock_guard lock(mutex_);
  unchecked_bytes_ += static_cast<int64_t>(entry.size());
  // Scanning all entries at each write would be slow, and other processes write too, so the size is only
  // estimated.
  if (unchecked_bytes_ >= limit_bytes_ / 16) evict();
}

void BlobStore::evict() {
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
  for (const fs::path& file : entries_of(*directory_, failed)) {
    struct stat status {};
    if (lstat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    if (is_temporary(file) && now - status.st_mtime > kAbandonedAfterSeconds) unlink(file.c_str());
    if (!is_entry(file)) continue;
    entries.push_back({file, status.st_size, status.st_mtim});
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

BlobStore::Contents BlobStore::contents(int unused_days) const {
  Contents found;
  if (!problem().empty()) return found;
  std::error_code failed;
  const time_t oldest = time(nullptr) - time_t{unused_days} * 24 * 60 * 60;
  for (const fs::path& path : entries_of(*directory_, failed)) {
    if (!is_entry(path)) continue;
    ++found.entries;
    const File file(path, Links::kRefuse);
    Header header{};
    if (!file || !file.read_exactly(&header, sizeof header) || std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 ||
        static_cast<uint64_t>(file.status().st_size) != sizeof header + header.blob_bytes) {
      ++found.unreadable;
      continue;
    }
    found.bytes += file.status().st_size;
    if (file.status().st_mtime < oldest) ++found.unused;
  }
  return found;
}

int64_t BlobStore::clear() {
  int64_t removed = 0;
  if (!is_usable()) return removed;
  std::error_code failed;
  for (const fs::path& file : entries_of(*directory_, failed)) {
    if (!is_entry(file) && !is_temporary(file)) continue;
    if (unlink(file.c_str()) == 0 && is_entry(file)) ++removed;
  }
  return removed;
}

}  // namespace compute::files
