// SPDX-License-Identifier: Apache-2.0
#include "core/process/host_limits.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <string_view>
#include <vector>

namespace compute {
namespace {

// Without a limit the kernel writes "max" (version 2) or nearly the greatest number (version 1).
constexpr int64_t kNoLimit = int64_t{1} << 60;

std::string content_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The number at the beginning of a text; -1 if there is none, as in "max".
int64_t number_in(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return -1;
  int64_t number = -1;
  std::from_chars(text.data() + begin, text.data() + text.size(), number);
  return number;
}

// The number after `name` at the beginning of a line; -1 if missing.
int64_t number_after(std::string_view text, std::string_view name) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    if (line.starts_with(name)) return number_in(line.substr(name.size()));
    at = end + 1;
  }
  return -1;
}

void limit(HostMemoryState& state, int64_t total, int64_t available, const std::string& by) {
  if (total >= 0 && (state.total < 0 || total < state.total)) state.total = total;
  available = std::max<int64_t>(available, 0);
  if (state.available >= 0 && state.available <= available) return;
  state.available = available;
  state.limited_by = by;
}

// One hierarchy of control groups: where it is mounted, which of its groups is mounted there, and the process's own.
struct Hierarchy {
  bool is_second_version = false;
  std::string mount_point, mounted, own;
};

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(std::move(word));
  return words;
}

bool has_word(std::string_view list, std::string_view word) {
  for (size_t at = 0; at <= list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    if (list.substr(at, end - at) == word) return true;
    at = end + 1;
  }
  return false;
}

std::vector<Hierarchy> hierarchies_of(const std::string& root) {
  std::vector<Hierarchy> found;
  std::istringstream groups(content_of(root + "/proc/self/cgroup"));
  for (std::string line; std::getline(groups, line);) {  // "4:memory:/a/b", "0::/a/b"
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (!controllers.empty() && !has_word(controllers, "memory")) continue;
    found.push_back({controllers.empty(), "", "", line.substr(second + 1)});
  }
  std::istringstream mounts(content_of(root + "/proc/self/mountinfo"));
  for (std::string line;
       std::getline(mounts, line);) {  // "31 23 0:27 /mounted /mount/point options - cgroup source options"
    const std::vector<std::string> words = words_of(line);
    const auto dash = std::find(words.begin(), words.end(), "-");
    if (words.size() < 5 || words.end() - dash < 4) continue;
    for (Hierarchy& one : found) {
      const bool fits =
          one.is_second_version ? dash[1] == "cgroup2" : dash[1] == "cgroup" && has_word(dash[3], "memory");
      if (fits && one.mount_point.empty()) one.mount_point = words[4], one.mounted = words[3];
    }
  }
  return found;
}

// Applies one group: its limits less the used memory that cannot be reclaimed.
void apply_group(HostMemoryState& state, const std::string& directory, const std::string& name,
                 bool is_second_version) {
  const auto number = [&](const char* file) { return number_in(content_of(directory + "/" + file)); };
  int64_t most = -1, used = -1, reclaimable = 0;
  const std::string statistics = content_of(directory + "/memory.stat");
  if (is_second_version) {
    most = number("memory.max");
    if (const int64_t high = number("memory.high"); high >= 0 && (most < 0 || high < most)) most = high;
    used = number("memory.current");
    reclaimable = number_after(statistics, "inactive_file ");
  } else {
    most = number("memory.limit_in_bytes");
    used = number("memory.usage_in_bytes");
    reclaimable = number_after(statistics, "total_inactive_file ");
  }
  if (most < 0 || most >= kNoLimit) return;
  limit(state, most, most - std::max<int64_t>(used, 0) + std::max<int64_t>(reclaimable, 0), "control group " + name);
}

// The limits of a group hold for all below it.
void apply_groups(HostMemoryState& state, const std::string& root, const Hierarchy& hierarchy) {
  if (hierarchy.mount_point.empty()) return;
  std::string inside = hierarchy.own;
  if (hierarchy.mounted != "/") {
    const bool is_below = inside.starts_with(hierarchy.mounted);
    inside = is_below ? inside.substr(hierarchy.mounted.size()) : "";
  }
  if (inside.find("..") != std::string::npos) inside.clear();
  while (inside.ends_with('/')) inside.pop_back();
  for (;;) {
    apply_group(state, root + hierarchy.mount_point + inside, inside.empty() ? "/" : inside,
                hierarchy.is_second_version);
    const size_t slash = inside.find_last_of('/');
    if (slash == std::string::npos) return;
    inside.resize(slash);
  }
}

}  // namespace

HostMemoryState host_memory_state(const std::string& root) {
  HostMemoryState state;
  const std::string machine = content_of(root + "/proc/meminfo");
  constexpr int64_t kKiB = 1024;
  const int64_t total = number_after(machine, "MemTotal:"), available = number_after(machine, "MemAvailable:");
  const int64_t swap = std::max<int64_t>(number_after(machine, "SwapFree:"), 0);
  if (total >= 0) limit(state, total * kKiB, ((available >= 0 ? available : total) + swap) * kKiB, "the machine");
  for (const Hierarchy& hierarchy : hierarchies_of(root)) apply_groups(state, root, hierarchy);
  struct rlimit space {};
  if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY &&
      space.rlim_cur < static_cast<rlim_t>(kNoLimit)) {
    const int64_t pages = number_in(content_of(root + "/proc/self/statm"));
    const auto most = static_cast<int64_t>(space.rlim_cur);
    limit(state, most, most - std::max<int64_t>(pages, 0) * ::sysconf(_SC_PAGE_SIZE), "RLIMIT_AS");
  }
  return state;
}

int64_t host_memory_total() {
  static const int64_t total = host_memory_state().total;
  return total;
}

}  // namespace compute
