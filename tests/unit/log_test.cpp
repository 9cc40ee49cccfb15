// SPDX-License-Identifier: Apache-2.0
#include "core/process/log.hpp"

#include <compute/compute.h>
#include <gtest/gtest.h>

#include "core/base/error.hpp"
#include "core/process/change_settings.hpp"

namespace compute {
namespace {

TEST(Log, WritesWhatTheSettingAsksFor) {
  const std::vector<int32_t> levels = {COMPUTE_LOG_ERROR, COMPUTE_LOG_WARNING, COMPUTE_LOG_INFO, COMPUTE_LOG_DEBUG,
                                       COMPUTE_LOG_TRACE};
  const std::pair<const char*, std::vector<const char*>> words = {"COMPUTE_LOG",
                                                                  {"off", "error", "warn", "info", "debug", "trace"}};
  for (size_t shown = 0; shown < words.second.size(); ++shown) {
    set_setting(words.first, Origin::kApi, words.second[shown]);
    std::string expected, written;
    testing::internal::CaptureStderr();
    for (size_t i = 0; i < levels.size(); ++i) {
      EXPECT_EQ(log_enabled(levels[i]), i < shown) << words.second[shown] << " " << levels[i];
      const std::string line = "level " + std::to_string(levels[i]);
      log(levels[i], "error", line);
      const std::string mark = i == 0 ? "error: " : i == 1 ? "warning: " : "";
      if (i < shown) expected += "compute: " + mark + line + "\n";
    }
    EXPECT_EQ(testing::internal::GetCapturedStderr(), expected) << words.second[shown];
  }
  set_setting(words.first, Origin::kApi, std::nullopt);
}

TEST(Log, HasLevelsByCategoryAndJson) {
  set_setting("COMPUTE_LOG", Origin::kApi, "warn, copy=debug,json");
  testing::internal::CaptureStderr();
  log(COMPUTE_LOG_DEBUG, "copy", "a \"copy\"");
  log(COMPUTE_LOG_DEBUG, "load", "not this");
  log(COMPUTE_LOG_WARNING, "load", "but this");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "{\"level\":\"debug\",\"category\":\"copy\",\"text\":\"a \\\"copy\\\"\"}\n"
            "{\"level\":\"warn\",\"category\":\"load\",\"text\":\"but this\"}\n");
  EXPECT_TRUE(log_enabled(COMPUTE_LOG_DEBUG));
  EXPECT_FALSE(log_enabled(COMPUTE_LOG_TRACE));
  set_setting("COMPUTE_LOG", Origin::kApi, std::nullopt);
  EXPECT_THROW(set_setting("COMPUTE_LOG", Origin::kApi, "info,coppy=debug"), Error);
  EXPECT_THROW(set_setting("COMPUTE_LOG", Origin::kApi, "loud"), Error);
}

}  // namespace
}  // namespace compute
