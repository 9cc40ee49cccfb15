// SPDX-License-Identifier: Apache-2.0
#include "core/process/log.hpp"

#include <compute/compute.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/base/deadline.hpp"
#include "core/base/error.hpp"
#include "core/base/lock.hpp"
#include "core/process/in_use.hpp"
#include "core/process/process_config.hpp"
#include "core/text/json_writer.hpp"
#include "core/text/printable.hpp"

namespace compute {
namespace {

struct Sink {
  Lock lock;  // held while the callback runs, so that it is never called after it was replaced
  compute_log_callback callback = nullptr;
  void* user_data = nullptr;
};

Sink& sink() {
  static auto* const immortal = new Sink;
  return *immortal;
}

std::atomic<bool> has_callback{false};

// The callback may end the process. A call that it makes against its contract logs nothing, and so does not wait for
// itself.
[[gnu::tls_model("initial-exec")]] constinit thread_local bool inside_callback = false;

// Lines that wait longer for a callback are dropped: a thread inside it may be exiting the process.
constexpr int64_t kLockPatience = int64_t{2'000'000'000};

int32_t level_named(std::string_view text) noexcept {
  if (text == "off") return 0;
  if (text == "error") return COMPUTE_LOG_ERROR;
  if (text == "warn") return COMPUTE_LOG_WARNING;
  if (text == "debug") return COMPUTE_LOG_DEBUG;
  if (text == "trace") return COMPUTE_LOG_TRACE;
  return COMPUTE_LOG_INFO;
}

// COMPUTE_LOG. The default writes the selection line and warnings.
struct LogLevels {
  int32_t general = COMPUTE_LOG_INFO;
  int32_t greatest = COMPUTE_LOG_INFO;  // of any category
  std::vector<std::pair<std::string, int32_t>> by_category;
  bool json = false;

  int32_t of(std::string_view category) const noexcept {
    for (const auto& [name, level] : by_category) {
      if (name == category) return level;
    }
    return general;
  }
};

LogLevels levels_in_force() noexcept {
  LogLevels levels;
  try {
    for (const std::string& word : setting(SettingId::kLog).words) {
      const size_t equals = word.find('=');
      if (word == "json") {
        levels.json = true;
      } else if (equals == std::string::npos) {
        levels.general = level_named(word);
      } else {
        levels.by_category.emplace_back(word.substr(0, equals), level_named(std::string_view(word).substr(equals + 1)));
      }
    }
  } catch (...) {
    // Calls that need an invalid setting report it.
  }
  levels.greatest = levels.general;
  for (const auto& [name, level] : levels.by_category) levels.greatest = std::max(levels.greatest, level);
  return levels;
}

const char* level_name(int32_t level) noexcept {
  constexpr const char* kNames[] = {"off", "error", "warn", "info", "debug", "trace"};
  return level >= 0 && level < static_cast<int32_t>(std::size(kNames)) ? kNames[level] : "trace";
}

void write_line(const LogLevels& levels, int32_t level, const char* category, const std::string& line) {
  if (levels.json) {
    JsonWriter out(JsonLayout::kOneLine);
    out.begin_object().field("level", level_name(level)).field("category", category).field("text", line).end_object();
    std::fprintf(stderr, "%s\n", out.take().c_str());
    return;
  }
  const char* mark = level == COMPUTE_LOG_ERROR ? "error: " : level == COMPUTE_LOG_WARNING ? "warning: " : "";
  std::fprintf(stderr, "compute: %s%s\n", mark, line.c_str());
}

}  // namespace

bool log_enabled(int32_t level) noexcept {
  return has_callback.load(std::memory_order_acquire) || level <= levels_in_force().greatest;
}

void log(int32_t level, const char* category, std::string_view text) noexcept {
  if (inside_callback) return;
  try {
    const std::string line = printable_lines(std::string(text));
    Sink& target = sink();
    if (!target.lock.try_lock_until(deadline_after(kLockPatience))) return;
    const std::lock_guard guard(target.lock, std::adopt_lock);
    if (target.callback != nullptr) {
      inside_callback = true;
      compute_log_record record{};
      record.struct_size = sizeof record;
      record.struct_type = COMPUTE_STRUCT_LOG_RECORD;
      record.level = level;
      record.category = category;
      record.category_size = static_cast<int64_t>(std::strlen(category));
      record.text = line.c_str();
      record.text_size = static_cast<int64_t>(line.size());
      target.callback(&record, target.user_data);
      inside_callback = false;
    } else if (const LogLevels levels = levels_in_force(); level <= levels.of(category)) {
      write_line(levels, level, category, line);
    }
  } catch (...) {
    // A line that cannot be written is lost.
  }
}

void set_log_callback(compute_log_callback callback, void* user_data) {
  Sink& target = sink();
  std::unique_lock guard(target.lock, std::defer_lock);
  if (!inside_callback) guard.lock();
  target.callback = callback;
  target.user_data = user_data;
  has_callback.store(callback != nullptr, std::memory_order_release);
}

}  // namespace compute
