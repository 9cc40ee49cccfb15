// SPDX-License-Identifier: Apache-2.0
#include "plugins/common/driver/kernel_cache.hpp"

#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <system_error>
#include <vector>

#include "plugins/common/op/core.hpp"

namespace compute::common {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".kernel";
constexpr int64_t kDefaultLimitBytes = int64_t{1} << 30;
constexpr int64_t kMaxEntryBytes = int64_t{1} << 28;
constexpr time_t kTouchAfterSeconds = 60;       // use is noted at most this often
constexpr time_t kAbandonedAfterSeconds = 600;  // a temporary file that old has lost its writer

// An entry's first bytes, in the machine's byte order: caches are not carried between machines.
struct Header {
  char magic[8];
  XXH128_hash_t key;       // of the program's source and options
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

constexpr size_t kDigestDigits = 32;

// The folder may be shared: remove only files with names of this cache.
bool is_entry(const fs::path& path) { return files::is_kept_name(path.filename().string(), kDigestDigits, kSuffix); }
bool is_temporary(const fs::path& path) {
  return files::is_partial_name(path.filename().string(), kDigestDigits, kSuffix);
}

// The folder is made where it is missing. False if that fails; errno says why.
bool write(const fs::path& path, std::string_view entry) {
  return files::make_private_folder(path.parent_path()) && files::write_whole(path, entry);
}
std::string cannot_write(const fs::path& folder) {
  const std::string reason = std::generic_category().message(errno);
  return folder.string() + " cannot be written: " + reason;
}

}  // namespace

bool may_include(const ProgramKey& key) {
  constexpr std::string_view kWord = "include";  // the directive, and the options of all compilers
  return key.source.find(kWord) != std::string_view::npos || key.options.find(kWord) != std::string_view::npos;
}

std::optional<int64_t> parse_cache_limit(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);  // whatever the locale
  if (error != std::errc() || !(number >= 0)) return std::nullopt;
  std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  int shift = 0;
  if (!unit.empty()) {
    constexpr std::string_view kUnits = "kmgt";
    const size_t at = kUnits.find(static_cast<char>(unit.front() | 0x20));
    if (at == std::string_view::npos) return std::nullopt;
    shift = 10 * (static_cast<int>(at) + 1);
    unit.remove_prefix(1);
    if (!unit.empty() && unit != "B" && unit != "iB" && unit != "b" && unit != "ib") return std::nullopt;
  }
  const double bytes = number * static_cast<double>(int64_t{1} << shift);
  return bytes < 9e18 ? static_cast<int64_t>(bytes) : INT64_MAX;
}

std::optional<fs::path> kernel_cache_directory(const std::optional<std::string>& setting, bool privileged) {
  if (privileged) return std::nullopt;
  return files::cache_folder(setting.value_or(""));
}

KernelCache::KernelCache(std::optional<fs::path> directory, int64_t limit_bytes, files::Trust trust)
    : directory_(std::move(directory)),
      limit_bytes_(limit_bytes),
      trust_(std::move(trust)),
      unchecked_bytes_(limit_bytes) {}

KernelCache& KernelCache::instance() {
  static KernelCache& cache = *[] {
    const bool privileged = getauxval(AT_SECURE) != 0;
    int64_t limit = kDefaultLimitBytes;
    if (const auto text = setting("COMPUTE_CACHE_LIMIT")) limit = parse_cache_limit(*text).value_or(limit);
    files::Trust trust = files::Trust::of_process(privileged);
    trust.everybody = setting("COMPUTE_TRUST_ALL") == "1";
    auto directory = limit > 0 ? kernel_cache_directory(setting("COMPUTE_CACHE_DIR"), privileged) : std::nullopt;
    return new KernelCache(std::move(directory), limit, std::move(trust));
  }();
  return cache;
}

// Whether the folder can be trusted. Checked each time: compiling takes a thousand times as long.
std::string KernelCache::problem() const {
  if (!directory_) return "no cache directory is known";
  const std::string reason = trust_.why_not(*directory_);
  return reason.empty() ? "" : directory_->string() + ": " + reason + "; set COMPUTE_TRUST_ALL=1 to use it anyway";
}

std::string KernelCache::problem_of_storing() const {
  if (std::string reason = problem(); !reason.empty()) return reason;
  constexpr size_t kTrialBytes = 1 << 16;  // as large as a compiled program may be
  const fs::path trial = *directory_ / (std::string(kDigestDigits, 'f') + std::string(kSuffix));
  if (!write(trial, std::string(kTrialBytes, '\0'))) return cannot_write(*directory_);
  unlink(trial.c_str());
  return "";
}

void KernelCache::warn_once(const std::string& reason) {
  if (!has_warned_.exchange(true)) log(COMPUTE_LOG_WARNING, "compile", "compiled kernels are not cached: " + reason);
}

bool KernelCache::is_usable() {
  const std::string reason = problem();
  if (directory_ && !reason.empty()) warn_once(reason);
  return reason.empty();
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
  if (!is_usable()) return std::nullopt;
  const files::File file(path_of(key), files::Links::kRefuse);
  // A program is code: files that other users could have written are not run.
  if (!file || !trust_.why_not(file.status()).empty()) return std::nullopt;
  Header header{};
  if (!file.read_exactly(&header, sizeof header) || std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 ||
      !XXH128_isEqual(header.key, digest_of(key)) || header.program_bytes > static_cast<uint64_t>(kMaxEntryBytes) ||
      static_cast<uint64_t>(file.status().st_size) != sizeof header + header.program_bytes) {
    return std::nullopt;
  }
  std::string program(header.program_bytes, '\0');
  if (!file.read_exactly(program.data(), program.size()) ||
      !XXH128_isEqual(header.checksum, XXH3_128bits(program.data(), program.size()))) {
    return std::nullopt;
  }
  if (time(nullptr) - file.status().st_mtime > kTouchAfterSeconds) futimens(file.descriptor(), nullptr);
  return program;
}

void KernelCache::store(const ProgramKey& key, std::string_view program) {
  if (!is_usable() || static_cast<int64_t>(program.size()) > std::min(limit_bytes_, kMaxEntryBytes)) return;
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.key = digest_of(key);
  header.checksum = XXH3_128bits(program.data(), program.size());
  header.program_bytes = program.size();
  std::string entry(reinterpret_cast<const char*>(&header), sizeof header);
  entry += program;
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
  for (const fs::path& file : files::entries_of(*directory_, failed)) {
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

KernelCache::Contents KernelCache::contents(int unused_days) const {
  Contents found;
  if (!problem().empty()) return found;
  std::error_code failed;
  const time_t oldest = time(nullptr) - time_t{unused_days} * 24 * 60 * 60;
  for (const fs::path& path : files::entries_of(*directory_, failed)) {
    if (!is_entry(path)) continue;
    ++found.entries;
    const files::File file(path, files::Links::kRefuse);
    Header header{};
    if (!file || !file.read_exactly(&header, sizeof header) || std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 ||
        static_cast<uint64_t>(file.status().st_size) != sizeof header + header.program_bytes) {
      ++found.unreadable;
      continue;
    }
    found.bytes += file.status().st_size;
    if (file.status().st_mtime < oldest) ++found.unused;
  }
  return found;
}

int64_t KernelCache::clear() {
  int64_t removed = 0;
  if (!is_usable()) return removed;
  std::error_code failed;
  for (const fs::path& file : files::entries_of(*directory_, failed)) {
    if (!is_entry(file) && !is_temporary(file)) continue;
    if (unlink(file.c_str()) == 0 && is_entry(file)) ++removed;
  }
  return removed;
}

}  // namespace compute::common
