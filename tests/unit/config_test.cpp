// SPDX-License-Identifier: Apache-2.0
#include "core/config.hpp"

#include <compute/compute.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/error.hpp"

namespace compute {
namespace {

namespace fs = std::filesystem;

class ConfigTest : public testing::Test {
 protected:
  ConfigTest() {
    std::string pattern = (fs::temp_directory_path() / "compute-config-XXXXXX").string();
    root_ = mkdtemp(pattern.data());
    variables_["HOME"] = (root_ / "home").string();
  }
  ~ConfigTest() override { fs::remove_all(root_); }

  std::string write(const std::string& name, const std::string& content) {
    const fs::path path = root_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << content;
    return path.string();
  }

  Config load(bool privileged = false) {
    ConfigInputs inputs;
    inputs.environment = [this](const char* name) {
      const auto row = variables_.find(name);
      return row == variables_.end() ? nullptr : row->second.c_str();
    };
    inputs.privileged = privileged;
    inputs.system_file = root_ / "etc/config.toml";
    return Config(inputs);
  }

  std::string refusal(int32_t code = COMPUTE_ERROR_INVALID_ARGUMENT) {
    try {
      load();
    } catch (const Error& error) {
      EXPECT_EQ(error.code, code);
      return error.what();
    }
    return "nothing was refused";
  }

  fs::path root_;
  std::map<std::string, std::string> variables_;
};

TEST(Settings, HaveDistinctNamesAndTheirIdsInOrder) {
  std::set<std::string> names;
  size_t position = 0;
  for (const Setting& setting : all_settings()) {
    EXPECT_EQ(static_cast<size_t>(setting.id), position++) << setting.environment;
    EXPECT_TRUE(names.insert(setting.environment).second) << setting.environment;
    EXPECT_TRUE(*setting.key == '\0' || names.insert(setting.key).second) << setting.key;
    EXPECT_EQ(&find_setting(setting.environment), &setting);
    EXPECT_EQ(&find_setting(setting.flag()), &setting);
    EXPECT_NE(std::string(setting.summary), "");
  }
  EXPECT_EQ(names.count("COMPUTE_DEVICE"), 1U);
}

TEST(Settings, OfUnknownNameAreRefusedWithTheNearestOne) {
  const std::vector<std::pair<const char*, const char*>> rows = {
      {"COMPUTE_DEVCE", R"(there is no setting "COMPUTE_DEVCE"; did you mean "COMPUTE_DEVICE"?)"},
      {"--compute-transfer", R"(there is no setting "--compute-transfer"; did you mean "--compute-transfers"?)"},
      {"memory.limits", R"(there is no setting "memory.limits"; did you mean "memory.limit"?)"},
      {"", R"(there is no setting "")"},
  };
  for (const auto& [name, message] : rows) {
    try {
      find_setting(name);
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.code, COMPUTE_ERROR_NOT_FOUND);
      EXPECT_STREQ(error.what(), message);
    }
  }
}

TEST_F(ConfigTest, WithoutAnySourceHoldsDefaults) {
  const Config config = load();
  EXPECT_EQ(config.get(SettingId::kTransfers).text, "allow");
  EXPECT_EQ(config.get(SettingId::kTransfers).origin, Origin::kDefault);
  EXPECT_EQ(config.get(SettingId::kTransfers).source, "default");
  EXPECT_FALSE(config.get(SettingId::kDevice).is_set());
  EXPECT_FALSE(config.get(SettingId::kSync).flag);
  EXPECT_FALSE(config.get(SettingId::kCpuThreads).integer);
}

TEST_F(ConfigTest, TheStrongerSourceWins) {
  write("etc/config.toml", "device = \"opencl\"\ntransfers = \"warn\"\n");
  Config config = load();
  EXPECT_EQ(config.get(SettingId::kDevice).text, "opencl");
  EXPECT_EQ(config.get(SettingId::kDevice).source, (root_ / "etc/config.toml:1").string());

  write("home/.config/compute/config.toml", "\n\ndevice = \"cuda0\"\n");
  config = load();
  EXPECT_EQ(config.get(SettingId::kDevice).text, "cuda0");
  EXPECT_EQ(config.get(SettingId::kDevice).source, (root_ / "home/.config/compute/config.toml:3").string());
  EXPECT_EQ(config.get(SettingId::kTransfers).text, "warn");  // of the weaker file

  variables_["COMPUTE_DEVICE"] = " cuda1 ";
  config = load();
  EXPECT_EQ(config.get(SettingId::kDevice).text, "cuda1");
  EXPECT_EQ(config.get(SettingId::kDevice).origin, Origin::kEnvironment);
  EXPECT_EQ(config.get(SettingId::kDevice).source, "COMPUTE_DEVICE");

  config.set(SettingId::kDevice, Origin::kApi, "cpu");
  config.set(SettingId::kDevice, Origin::kFlag, "cuda2");
  EXPECT_EQ(config.get(SettingId::kDevice).text, "cpu");
  EXPECT_EQ(config.get(SettingId::kDevice).source, "the API");
  config.set(SettingId::kDevice, Origin::kApi, std::nullopt);
  EXPECT_EQ(config.get(SettingId::kDevice).text, "cuda2");
  EXPECT_EQ(config.get(SettingId::kDevice).source, "--compute-device");
  config.set(SettingId::kDevice, Origin::kApi, "");
  EXPECT_FALSE(config.get(SettingId::kDevice).is_set());  // the default, said by the API
}

TEST_F(ConfigTest, AnEmptyVariableIsUnset) {
  write("etc/config.toml", "fallback = \"warn\"\n");
  variables_["COMPUTE_FALLBACK"] = "  ";
  EXPECT_EQ(load().get(SettingId::kFallback).text, "warn");
}

TEST_F(ConfigTest, ANamedFileTakesThePlaceOfTheOthers) {
  write("etc/config.toml", "device = \"opencl\"\n");
  variables_["COMPUTE_CONFIG"] = write("mine.toml", "sync = true\n");
  Config config = load();
  EXPECT_FALSE(config.get(SettingId::kDevice).is_set());
  EXPECT_TRUE(config.get(SettingId::kSync).flag);
  config.set(SettingId::kConfig, Origin::kApi, write("other.toml", "debug = true\n"));
  EXPECT_FALSE(config.get(SettingId::kSync).flag);
  EXPECT_TRUE(config.get(SettingId::kDebug).flag);
  EXPECT_THROW(config.set(SettingId::kConfig, Origin::kApi, (root_ / "none").string()), Error);
  EXPECT_TRUE(config.get(SettingId::kDebug).flag);  // as it was
  config.set(SettingId::kConfig, Origin::kApi, "/dev/null");
  EXPECT_FALSE(config.get(SettingId::kDebug).flag);

  variables_["COMPUTE_CONFIG"] = (root_ / "none.toml").string();
  EXPECT_EQ(refusal(COMPUTE_ERROR_NOT_FOUND),
            "COMPUTE_CONFIG: cannot read " + (root_ / "none.toml").string() + ": no such file");
}

TEST_F(ConfigTest, TheUsersDirectoryIsTheStandardsOne) {
  write("xdg/compute/config.toml", "device = \"cpu\"\n");
  variables_["XDG_CONFIG_HOME"] = (root_ / "xdg").string();
  EXPECT_EQ(load().get(SettingId::kDevice).text, "cpu");
  variables_["XDG_CONFIG_HOME"] = "xdg";  // relative ones do not count
  EXPECT_FALSE(load().get(SettingId::kDevice).is_set());
}

TEST_F(ConfigTest, ReadsEveryKindFromAFile) {
  variables_["COMPUTE_CONFIG"] = write("config.toml", R"(
math = "TF32"
sync = true
debug = "yes"
[plugins]
path = ["/a:b", "/c"]
files = "/x.so:/y.so"
[memory]
limit = "30%"
preallocate = 1048576
[threads]
spin_us = 0
[cpu]
threads = 4
)");
  const Config config = load();
  EXPECT_EQ(config.get(SettingId::kMath).text, "tf32");
  EXPECT_TRUE(config.get(SettingId::kSync).flag);
  EXPECT_TRUE(config.get(SettingId::kDebug).flag);
  EXPECT_EQ(config.get(SettingId::kPluginPath).paths, (std::vector<std::string>{"/a:b", "/c"}));
  EXPECT_EQ(config.get(SettingId::kPluginFiles).paths, (std::vector<std::string>{"/x.so", "/y.so"}));
  EXPECT_EQ(config.get(SettingId::kMemoryLimit).bytes->of(1000), 300);
  EXPECT_EQ(config.get(SettingId::kPreallocate).bytes->of(1000), 1048576);
  EXPECT_EQ(config.get(SettingId::kSpinUs).integer, 0);
  EXPECT_EQ(config.get(SettingId::kCpuThreads).integer, 4);
}

TEST_F(ConfigTest, RefusesWhatAFileCannotSayWithItsLine) {
  const std::vector<std::pair<const char*, const char*>> rows = {
      {"\ndevcie = \"cpu\"\n", R"(:2: there is no setting "devcie"; did you mean "device"?)"},
      {"[memory]\nlimits = \"4G\"\n", R"(:2: there is no setting "memory.limits"; did you mean "memory.limit"?)"},
      {"sync = true\n\n[memroy]\nlimit = \"4G\"\n", R"(:3: there is no section "memroy"; did you mean "memory"?)"},
      {"device = 3\n", R"(:1: "device" must be a string)"},
      {"sync = 3\n", R"(:1: "sync" must be true or false)"},
      {"cpu.threads = 1.5\n", R"(:1: "cpu.threads" must be a number)"},
      {"cpu.threads = 0\n", R"(:1: "0" is no number from 1 to 4096)"},
      {"memory.limit = true\n", R"(:1: "memory.limit" must be a size)"},
      {"memory.limit = \"lots\"\n", R"(:1: "lots" is no size; sizes look like 4G, 512M or 30%)"},
      {"plugins.path = [\"/a\", 3]\n", R"(:1: "plugins.path" must be a string or a list of strings)"},
      {"fallback = \"alow\"\n", R"(:1: "alow" is none of strict, error, warn, allow, break; did you mean "allow"?)"},
      {"device = \"cpu\\u0007\"\n", ":1: the value holds a control character"},
      {"config = \"/x\"\n", R"(:1: there is no setting "config")"},
  };
  const std::string path = write("config.toml", "");
  variables_["COMPUTE_CONFIG"] = path;
  for (const auto& [content, message] : rows) {
    write("config.toml", content);
    EXPECT_EQ(refusal(), path + message);
  }
  write("config.toml", "device = \"cpu\"\nsync = \n");
  EXPECT_TRUE(refusal().starts_with(path + ":2:")) << refusal();
  write("config.toml", std::string(1 << 20, '#') + "#");
  EXPECT_EQ(refusal(), path + ": a configuration file of more than 1 MiB");
}

TEST_F(ConfigTest, RefusesAVariablesValueByTheVariablesName) {
  const std::vector<std::tuple<const char*, const char*, const char*>> rows = {
      {"COMPUTE_SYNC", "maybe", R"(COMPUTE_SYNC: "maybe" is neither 1 nor 0)"},
      {"COMPUTE_TRANSFERS", "wran",
       R"(COMPUTE_TRANSFERS: "wran" is none of allow, warn, error, break; did you mean "warn"?)"},
      {"COMPUTE_SPIN_US", "-1", R"(COMPUTE_SPIN_US: "-1" is no number from 0 to 1000000)"},
      {"COMPUTE_MEMORY_LIMIT", "4X", R"(COMPUTE_MEMORY_LIMIT: "4X" is no size; the units are K, M, G, T and %)"},
  };
  for (const auto& [name, value, message] : rows) {
    variables_ = {{name, value}};
    EXPECT_EQ(refusal(), message);
  }
}

TEST_F(ConfigTest, APrivilegedProcessHearsNothingOfFilesFromItsEnvironment) {
  write("home/.config/compute/config.toml", "device = \"opencl\"\n");
  write("etc/config.toml", "math = \"fast\"\n");
  variables_["COMPUTE_CONFIG"] = write("mine.toml", "sync = true\n");
  variables_["COMPUTE_PLUGIN_PATH"] = "/tmp/plugins";
  variables_["COMPUTE_PLUGIN_FILES"] = "/tmp/a.so";
  variables_["COMPUTE_CACHE_DIR"] = "/tmp/cache";
  variables_["COMPUTE_TRANSFERS"] = "error";
  const Config config = load(true);
  EXPECT_FALSE(config.get(SettingId::kSync).flag);
  EXPECT_FALSE(config.get(SettingId::kDevice).is_set());
  EXPECT_FALSE(config.get(SettingId::kPluginPath).is_set());
  EXPECT_FALSE(config.get(SettingId::kPluginFiles).is_set());
  EXPECT_FALSE(config.get(SettingId::kCacheDir).is_set());
  EXPECT_EQ(config.get(SettingId::kTransfers).text, "error");
  EXPECT_EQ(config.get(SettingId::kMath).text, "fast");
  EXPECT_EQ(config.ignored().size(), 4U);
  EXPECT_EQ(config.ignored().front(), "COMPUTE_CONFIG is ignored: the process is privileged");
}

class Arguments {
 public:
  explicit Arguments(std::vector<std::string> words) : words_(std::move(words)) {
    for (std::string& word : words_) pointers_.push_back(word.data());
    pointers_.push_back(nullptr);
    count_ = static_cast<int32_t>(words_.size());
  }
  int32_t* count() { return &count_; }
  char** pointers() { return pointers_.data(); }
  std::vector<std::string> left() const { return {pointers_.begin(), pointers_.begin() + count_}; }

 private:
  std::vector<std::string> words_;
  std::vector<char*> pointers_;
  int32_t count_ = 0;
};

TEST_F(ConfigTest, TakesItsFlagsOutOfTheArguments) {
  Config config = load();
  Arguments arguments({"program", "-v", "--compute-device=cuda0+mem=4G", "file", "--compute-sync",
                       "--compute-memory-limit=30%", "--", "--compute-device=cpu"});
  take_flags(config, arguments.count(), arguments.pointers());
  EXPECT_EQ(arguments.left(), (std::vector<std::string>{"program", "-v", "file", "--", "--compute-device=cpu"}));
  EXPECT_EQ(config.get(SettingId::kDevice).text, "cuda0+mem=4G");
  EXPECT_EQ(config.get(SettingId::kDevice).origin, Origin::kFlag);
  EXPECT_TRUE(config.get(SettingId::kSync).flag);
  EXPECT_EQ(config.get(SettingId::kMemoryLimit).bytes->of(1000), 300);
}

TEST_F(ConfigTest, LeavesArgumentsAloneWhereAFlagIsWrong) {
  const std::vector<std::pair<const char*, const char*>> rows = {
      {"--compute-devise=cpu", R"(there is no setting "--compute-devise"; did you mean "--compute-device"?)"},
      {"--compute-device", "--compute-device needs a value: --compute-device=…"},
      {"--compute-sync=2", R"(--compute-sync: "2" is neither 1 nor 0)"},
  };
  for (const auto& [flag, message] : rows) {
    Config config = load();
    Arguments arguments({"program", "--compute-debug", flag});
    try {
      take_flags(config, arguments.count(), arguments.pointers());
      ADD_FAILURE() << flag;
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), message);
    }
    EXPECT_EQ(arguments.left().size(), 3U);
    EXPECT_FALSE(config.get(SettingId::kDebug).flag);
  }
}

TEST(ProcessConfig, KeepsWhatTheApiSets) {
  EXPECT_EQ(setting(SettingId::kMath).text, "strict");
  set_setting("COMPUTE_MATH", Origin::kApi, "fast");
  EXPECT_EQ(setting(SettingId::kMath).text, "fast");
  EXPECT_EQ(process_config().get(SettingId::kMath).origin, Origin::kApi);
  set_setting("math", Origin::kApi, std::nullopt);
  EXPECT_EQ(setting(SettingId::kMath).text, "strict");
  EXPECT_THROW(set_setting("maths", Origin::kApi, "fast"), Error);
}

}  // namespace
}  // namespace compute
