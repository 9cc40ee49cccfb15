// SPDX-License-Identifier: Apache-2.0
// Settings as compute_plugin_query declares them. What is wrong with one is in robustness_optional_slots.
#include "core/loading/declared_setting.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.hpp"

namespace compute {
namespace {

compute_string words(std::string_view text) { return {text.data(), static_cast<int64_t>(text.size())}; }

compute_plugin_setting setting_of(std::string_view name, int32_t kind, std::string_view choices = {},
                                  std::string_view otherwise = {}, uint32_t flags = 0) {
  return {sizeof(compute_plugin_setting),
          COMPUTE_PLUGIN_STRUCT_SETTING,
          nullptr,
          words(name),
          kind,
          flags,
          words(choices),
          words(otherwise),
          words("help")};
}

TEST(DeclaredSettingText, AreOfEveryKind) {
  const compute_plugin_setting given[] = {
      setting_of("COMPUTE_ACME_NAME", COMPUTE_PLUGIN_SETTING_TEXT, "", "a b"),
      setting_of("COMPUTE_ACME_QUIET", COMPUTE_PLUGIN_SETTING_FLAG, "", "yes"),
      setting_of("COMPUTE_ACME_RINGS", COMPUTE_PLUGIN_SETTING_INTEGER, "-3  12", "", COMPUTE_PLUGIN_SETTING_OF_DEVICE),
      setting_of("COMPUTE_ACME_CACHE", COMPUTE_PLUGIN_SETTING_BYTES, "", "4M"),
      setting_of("COMPUTE_ACME_MODE", COMPUTE_PLUGIN_SETTING_CHOICE, "fast exact", "fast"),
      setting_of("COMPUTE_ACME_PARTS_2", COMPUTE_PLUGIN_SETTING_WORDS, "one two", "all"),
      setting_of("COMPUTE_ACME_FILE", COMPUTE_PLUGIN_SETTING_PATH),
      setting_of("COMPUTE_ACME_FILES", COMPUTE_PLUGIN_SETTING_PATHS),
  };
  compute_plugin_manifest manifest{};
  manifest.settings = given;
  manifest.setting_count = std::size(given);
  const std::vector<DeclaredSetting> read = settings_of(manifest, "acme");
  const SettingKind kinds[] = {SettingKind::kText,   SettingKind::kFlag,  SettingKind::kInteger, SettingKind::kBytes,
                               SettingKind::kChoice, SettingKind::kWords, SettingKind::kPath,    SettingKind::kPaths};
  ASSERT_EQ(read.size(), std::size(kinds));
  for (size_t i = 0; i < read.size(); ++i) {
    EXPECT_EQ(read[i].kind, kinds[i]) << read[i].environment;
    EXPECT_EQ(read[i].names_files, i >= 6) << read[i].environment;
    EXPECT_EQ(read[i].of_device, i == 2) << read[i].environment;
    EXPECT_EQ(read[i].summary, "help");
  }
  EXPECT_EQ(read[0].default_text, "a b");
  EXPECT_EQ(read[2].values, "-3 12");
  EXPECT_EQ(read[4].values, "fast exact");
  EXPECT_EQ(read[5].key, "acme.parts_2");
}

TEST(DeclaredSettingText, OfAnUnknownKindIsText) {
  const compute_plugin_setting given = setting_of("COMPUTE_ACME_RINGS", 99);
  compute_plugin_manifest manifest{};
  manifest.settings = &given;
  manifest.setting_count = 1;
  const std::vector<DeclaredSetting> read = settings_of(manifest, "acme");
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].kind, SettingKind::kText);
}

TEST(DeclaredSettingText, NeedARangeOfTwoNumbers) {
  for (const char* range : {"", "1", "2 1", "1 x", "1 2 3", "- 4", "1 99999999999999999999"}) {
    const compute_plugin_setting given = setting_of("COMPUTE_ACME_RINGS", COMPUTE_PLUGIN_SETTING_INTEGER, range);
    compute_plugin_manifest manifest{};
    manifest.settings = &given;
    manifest.setting_count = 1;
    EXPECT_THROW(settings_of(manifest, "acme"), Error) << range;
  }
}

}  // namespace
}  // namespace compute
