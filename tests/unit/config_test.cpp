// SPDX-License-Identifier: Apache-2.0
#include "core/settings/config.hpp"
#include "core/process/change_settings.hpp"
#include "core/process/process_config.hpp"

#include <compute/compute.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/base/error.hpp"

namespace compute {
namespace {

namespace fs = std::filesystem;

class ConfigTest : public testing::Test {
 protected:
  ConfigTest() {
    std::string pattern = (fs::temp_directory_path() / "compute-config-XXXXXX").string();
    root_ = fs::canonical(mkdtemp(pattern.data()));
    variables_["HOME"] = (root_ / "home").string();
  }
  ~ConfigTest() override { fs::remove_all(root_); }

  std::string write(const std::string& name, const std::string& content) {
    const fs::path path = root_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << content;
    return path.string();
  }

  ConfigInputs inputs() {
    ConfigInputs inputs;
    inputs.environment = [this](const char* name) {
      const auto row = variables_.find(name);
      return row == variables_.end() ? nullptr : row->second.c_str();
    };
    for (const auto& [name, value] : variables_) inputs.environment_names.push_back(name);
    inputs.system_file = root_ / "etc/config.toml";
    return inputs;
  }

  Config load(bool privileged = false) {
    ConfigInputs given = inputs();
    given.privileged = privileged;
    return Config(given);
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
      {"COMPUTE_DEVCE", R"(unknown setting "COMPUTE_DEVCE"; did you mean "COMPUTE_DEVICE"?)"},
      {"--compute-transfer", R"(unknown setting "--compute-transfer"; did you mean "--compute-transfers"?)"},
      {"memory.limits", R"(unknown setting "memory.limits"; did you mean "memory.limit"?)"},
      {"", R"(unknown setting "")"},
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
  EXPECT_EQ(refusal(COMPUTE_ERROR_IO),
            "COMPUTE_CONFIG: cannot read " + (root_ / "none.toml").string() + ": No such file or directory");
}

// What the parser of TOML cannot cope with.
TEST_F(ConfigTest, WhatIsNoTomlAtAllIsRefused) {
  variables_["COMPUTE_CONFIG"] = write("mine.toml",
                                       "# \xC3\xA9\n\xC8\x9B"
                                       "evice = \"cpu\"\n");
  EXPECT_NE(refusal().find("mine.toml:2: non-ASCII character outside"), std::string::npos) << refusal();
  variables_["COMPUTE_CONFIG"] = write("mine.toml", "[= 1]\n");
  EXPECT_NE(refusal().find("mine.toml"), std::string::npos);
  variables_["COMPUTE_CONFIG"] = write("mine.toml", "device = \"\xC3\xA9\" # \xC3\xA9\n");
  EXPECT_EQ(load().get(SettingId::kDevice).text, "\xC3\xA9");

  // In front of which the parser looks for blanks.
  variables_["COMPUTE_CONFIG"] = write("mine.toml", "device = \"\"\"\\\n\xC3\xA9\"\"\"\n");
  EXPECT_EQ(load().get(SettingId::kDevice).text, "\xC3\xA9");
  variables_["COMPUTE_CONFIG"] = write("mine.toml", "device = 9'\xCC\xB9'\n");
  EXPECT_NE(refusal().find("mine.toml:1:"), std::string::npos) << refusal();
  variables_["COMPUTE_CONFIG"] = write("mine.toml", "log = \"\xC3\xA9\"\ndevice = \"\xC3\xA9\\\xC3\xA9\"\n");
  EXPECT_NE(refusal().find("mine.toml:2:13: "), std::string::npos) << refusal();
  EXPECT_EQ(refusal().find("\xF3\xB0"), std::string::npos) << refusal();
  variables_["COMPUTE_CONFIG"] = write("mine.toml", "\ndevice = \"\xC3\"\n");
  EXPECT_NE(refusal().find("mine.toml:2: not UTF-8"), std::string::npos) << refusal();
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
      {"\ndevcie = \"cpu\"\n", R"(:2: unknown setting "devcie"; did you mean "device"?)"},
      {"[memory]\nlimits = \"4G\"\n", R"(:2: unknown setting "memory.limits"; did you mean "memory.limit"?)"},
      {"sync = true\n\n[memroy]\nlimit = \"4G\"\n", R"(:3: unknown section "memroy"; did you mean "memory"?)"},
      {"device = 3\n", R"(:1: "device" must be a string)"},
      {"sync = 3\n", R"(:1: "sync" must be true or false)"},
      {"cpu.threads = 1.5\n", R"(:1: "cpu.threads" must be a number)"},
      {"cpu.threads = 0\n", R"(:1: "0" is not a number from 1 to 4096)"},
      {"memory.limit = true\n", R"(:1: "memory.limit" must be a size)"},
      {"memory.limit = \"lots\"\n", R"(:1: "lots" is not a size; expected a value such as 4G, 512M or 30%)"},
      {"plugins.path = [\"/a\", 3]\n", R"(:1: "plugins.path" must be a string or a list of strings)"},
      {"fallback = \"alow\"\n", R"(:1: "alow" is not one of strict, error, warn, allow, break; did you mean "allow"?)"},
      {"device = \"cpu\\u0007\"\n", ":1: the value contains a control character"},
      {"config = \"/x\"\n", R"(:1: unknown setting "config")"},
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
  EXPECT_EQ(refusal(COMPUTE_ERROR_IO), "cannot read " + path + ": it is larger than 1048576 bytes");
}

TEST_F(ConfigTest, RefusesAVariablesValueByTheVariablesName) {
  const std::vector<std::tuple<const char*, const char*, const char*>> rows = {
      {"COMPUTE_SYNC", "maybe", R"(COMPUTE_SYNC: "maybe" is not 0 or 1)"},
      {"COMPUTE_TRANSFERS", "wran",
       R"(COMPUTE_TRANSFERS: "wran" is not one of allow, warn, error, break; did you mean "warn"?)"},
      {"COMPUTE_DEBUG", "plugin,memroy",
       R"(COMPUTE_DEBUG: "memroy" is not one of handles, plugin, memory; did you mean "memory"?)"},
      {"COMPUTE_SPIN_US", "-1", R"(COMPUTE_SPIN_US: "-1" is not a number from 0 to 1000000)"},
      {"COMPUTE_MEMORY_LIMIT", "4X", R"(COMPUTE_MEMORY_LIMIT: "4X" is not a size; the units are K, M, G, T and %)"},
  };
  for (const auto& [name, value, message] : rows) {
    variables_ = {{name, value}};
    EXPECT_EQ(refusal(), message);
  }
}

TEST_F(ConfigTest, TellsOfVariablesThatAreNearlySettings) {
  variables_["COMPUTE_DEVISE"] = "cuda0";
  variables_["COMPTUE_DEVICES"] = "";
  variables_["compute_math"] = "fast";
  variables_["COMPUTE_SYNC"] = "1";
  variables_["COMPUTE_ACME_MODE"] = "fast";  // of a plugin that is not there
  variables_["COMPUTE_DEVI_CES_S"] = "";     // three letters from COMPUTE_DEVICES
  EXPECT_EQ(load().misspelt(),
            (std::vector<std::string>{
                "environment variable \"COMPTUE_DEVICES\" is not a setting; did you mean COMPUTE_DEVICES?",
                "environment variable \"COMPUTE_DEVISE\" is not a setting; did you mean COMPUTE_DEVICE?",
                "environment variable \"compute_math\" is not a setting; did you mean COMPUTE_MATH?"}));
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

class DeclaredSettings : public ConfigTest {
 protected:
  // As plugins do: the settings are in the table for good, and this process has one test.
  static ConfigInputs with_plugins(ConfigInputs inputs) {
    inputs.find_declared = [](const Config&) {
      declare_setting({"COMPUTE_ACME_MODE", "acme.mode", SettingKind::kChoice, "fast", "fast exact", false, "how"});
      declare_setting({"COMPUTE_ACME_FILE", "acme.file", SettingKind::kPath, "", "", true, "which"});
      declare_setting({"COMPUTE_MATH", "acme.math", SettingKind::kText, "own", "", false, "not a name of its own"});
    };
    return inputs;
  }
};

TEST_F(DeclaredSettings, AreReadLikeCoresOwn) {
  variables_["COMPUTE_ACME_MODE"] = "exact";
  variables_["COMPUTE_ACME_MODES"] = "exact";
  Config config(with_plugins(inputs()));
  EXPECT_TRUE(config.misspelt().empty());
  EXPECT_THROW(find_setting("COMPUTE_ACME_MODE"), Error);
  const Setting& mode = config.find("--compute-acme-mode");
  EXPECT_EQ(mode.environment, std::string("COMPUTE_ACME_MODE"));
  EXPECT_EQ(&mode, &config.find("acme.mode"));
  EXPECT_EQ(&mode, &all_settings()[static_cast<size_t>(mode.id)]);
  EXPECT_EQ(config.get(mode.id).text, "exact");
  EXPECT_EQ(config.get(mode.id).source, "COMPUTE_ACME_MODE");
  EXPECT_EQ(config.misspelt().size(), 1U);
  EXPECT_EQ(config.get(SettingId::kMath).text, "strict");  // plugins cannot declare core's settings
  config.set(mode.id, Origin::kApi, "fast");
  EXPECT_EQ(config.get(mode.id).text, "fast");
  EXPECT_THROW(config.set(mode.id, Origin::kApi, "slow"), Error);
  EXPECT_THROW(config.find("acme.modi"), Error);
}

TEST_F(DeclaredSettings, StandInFilesAndFlags) {
  write("etc/config.toml", "math = \"fast\"\n[acme]\nmode = \"exact\"\n");
  Config config(with_plugins(inputs()));
  EXPECT_EQ(config.get(config.find("COMPUTE_ACME_MODE").id).text, "exact");
  EXPECT_EQ(config.get(SettingId::kMath).text, "fast");
  EXPECT_EQ(config.get(config.find("COMPUTE_ACME_MODE").id).source, (root_ / "etc/config.toml").string() + ":3");
  Arguments arguments({"program", "--compute-acme-mode=fast", "file"});
  take_flags(config, arguments.count(), arguments.pointers());
  EXPECT_EQ(config.get(config.find("COMPUTE_ACME_MODE").id).text, "fast");
  EXPECT_EQ(arguments.left(), (std::vector<std::string>{"program", "file"}));
  write("etc/config.toml", "[acme]\nmodus = \"exact\"\n");
  try {
    Config faulty(with_plugins(inputs()));
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.message,
              (root_ / "etc/config.toml").string() + ":2: unknown setting \"acme.modus\"; did you mean \"acme.mode\"?");
  }
}

TEST_F(DeclaredSettings, ThatAreFaultyLeaveTheRestAsItWas) {
  Config config(with_plugins(inputs()));
  variables_["COMPUTE_ACME_MODE"] = "slow";
  for (int i = 0; i < 2; ++i) {
    try {
      config.learn();
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.message, "COMPUTE_ACME_MODE: \"slow\" is not one of fast, exact");
    }
    EXPECT_EQ(config.get(SettingId::kMath).text, "strict");
    EXPECT_FALSE(config.get(find_setting("COMPUTE_ACME_MODE").id).is_set());
  }
  variables_["COMPUTE_ACME_MODE"] = "exact";
  config.learn();
  EXPECT_EQ(config.get(find_setting("COMPUTE_ACME_MODE").id).text, "exact");
}

TEST_F(DeclaredSettings, ThatNameFilesAreNotHeardInAPrivilegedProcess) {
  variables_["COMPUTE_ACME_FILE"] = "/tmp/x";
  ConfigInputs given = with_plugins(inputs());
  given.privileged = true;
  Config config(given);
  config.learn();
  EXPECT_FALSE(config.get(config.find("COMPUTE_ACME_FILE").id).is_set());
  EXPECT_EQ(config.ignored().back(), "COMPUTE_ACME_FILE is ignored: the process is privileged");
}

TEST_F(ConfigTest, APrivilegedProcessHearsNothingOfFilesFromItsEnvironment) {
  write("home/.config/compute/config.toml", "device = \"opencl\"\n");
  write("etc/config.toml", "math = \"fast\"\n");
  variables_["COMPUTE_CONFIG"] = write("mine.toml", "sync = true\n");
  variables_["COMPUTE_PLUGIN_PATH"] = "/tmp/plugins";
  variables_["COMPUTE_PLUGIN_FILES"] = "/tmp/a.so";
  variables_["COMPUTE_CACHE_DIR"] = "/tmp/cache";
  variables_["COMPUTE_TRUST_ALL"] = "1";
  variables_["COMPUTE_TRANSFERS"] = "error";
  Config config = load(true);
  EXPECT_FALSE(config.get(SettingId::kSync).flag);
  EXPECT_FALSE(config.get(SettingId::kDevice).is_set());
  EXPECT_FALSE(config.get(SettingId::kPluginPath).is_set());
  EXPECT_FALSE(config.get(SettingId::kPluginFiles).is_set());
  EXPECT_FALSE(config.get(SettingId::kCacheDir).is_set());
  EXPECT_EQ(config.get(SettingId::kTransfers).text, "error");
  EXPECT_EQ(config.get(SettingId::kMath).text, "fast");
  EXPECT_EQ(config.ignored().size(), 5U);
  EXPECT_EQ(config.ignored().front(), "COMPUTE_CONFIG is ignored: the process is privileged");
  EXPECT_FALSE(config.trust().everybody);
  config.set(SettingId::kTrustAll, Origin::kApi, "1");  // the program's own word
  EXPECT_TRUE(config.trust().everybody);
}

TEST_F(ConfigTest, APrivilegedProcessTakesNoFilesFromItsArguments) {
  for (const Setting& setting : all_settings()) {
    Config config = load(true);
    Arguments arguments({"program", setting.flag() + "=" + (setting.kind == SettingKind::kFlag ? "1" : "")});
    compute_error_code code = 0;
    try {
      take_flags(config, arguments.count(), arguments.pointers());
    } catch (const Error& error) {
      code = error.code;
      EXPECT_EQ(error.message, setting.flag() + " is not allowed: the process is privileged");
    }
    EXPECT_EQ(code, setting.names_files ? COMPUTE_ERROR_INVALID_ARGUMENT : 0) << setting.environment;
    EXPECT_EQ(setting.names_files, setting.kind == SettingKind::kPath || setting.kind == SettingKind::kPaths ||
                                       setting.id == SettingId::kTrustAll || setting.id == SettingId::kCpuCompiler)
        << setting.environment;
  }
}

TEST_F(ConfigTest, AFileThatOthersMayWriteToIsNotRead) {
  const std::string file = write("home/.config/compute/config.toml", "math = \"fast\"\n");
  EXPECT_EQ(load().get(SettingId::kMath).text, "fast");
  ASSERT_EQ(::chmod(file.c_str(), 0666), 0);
  const Config config = load();
  EXPECT_EQ(config.get(SettingId::kMath).text, "strict");
  ASSERT_EQ(config.ignored().size(), 1U);
  EXPECT_EQ(config.ignored()[0],
            file + " is ignored: it is writable by everyone (mode 0666); set COMPUTE_TRUST_ALL=1 to use it anyway");
  variables_["COMPUTE_CONFIG"] = file;
  EXPECT_THROW(load(), Error);  // it was asked for by name
  variables_["COMPUTE_TRUST_ALL"] = "1";
  EXPECT_EQ(load().get(SettingId::kMath).text, "fast");
}

TEST_F(ConfigTest, AFileThatALinkOfOthersLeadsToIsNotRead) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  const std::string file = write("kept/config.toml", "math = \"fast\"\n");
  const std::string link = (root_ / "link.toml").string();
  std::filesystem::create_symlink(file, link);
  variables_["COMPUTE_CONFIG"] = link;
  EXPECT_EQ(load().get(SettingId::kMath).text, "fast");
  ASSERT_EQ(::lchown(link.c_str(), 1234, 1234), 0);
  EXPECT_THROW(load(), Error);
}

TEST_F(ConfigTest, AColonOfAPathIsWrittenWithABackslash) {
  const auto paths = [&](const char* text) {
    variables_["COMPUTE_PLUGIN_PATH"] = text;
    return load().get(SettingId::kPluginPath).paths;
  };
  using Paths = std::vector<std::string>;
  EXPECT_EQ(paths("/a:/b"), (Paths{"/a", "/b"}));
  EXPECT_EQ(paths(":/a:: /b :"), (Paths{"/a", "/b"}));
  EXPECT_EQ(paths("/a\\:b:/c"), (Paths{"/a:b", "/c"}));
  EXPECT_EQ(paths("/a\\\\:b"), (Paths{"/a\\:b"}));
  EXPECT_EQ(paths("/a\\b\\"), (Paths{"/a\\b\\"}));
}

TEST_F(ConfigTest, OnlyARegularFileIsOpened) {
  write("home/x", "");
  const std::string fifo = (root_ / "home/fifo").string();
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  for (const std::string& file : {fifo, root_.string(), std::string("/dev/zero")}) {
    variables_["COMPUTE_CONFIG"] = file;
    try {
      load();
      ADD_FAILURE() << file;
    } catch (const Error& error) {
      EXPECT_EQ(error.code, COMPUTE_ERROR_IO) << error.message;
      EXPECT_TRUE(error.message.ends_with("a FIFO, not a regular file") ||
                  error.message.ends_with("it is a directory, not a file") ||
                  error.message.ends_with("a device, not a regular file"))
          << error.message;
    }
  }
  variables_["COMPUTE_CONFIG"] = "/dev/null";
  EXPECT_EQ(load().get(SettingId::kMath).text, "strict");
}

TEST_F(ConfigTest, AShortageIsNoConfiguration) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer needs file descriptors of its own";
#endif
  write("home/.config/compute/config.toml", "math = \"fast\"\n");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none = {0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  compute_error_code code = 0;
  try {
    load();
  } catch (const Error& error) {
    code = error.code;
  }
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(code, COMPUTE_ERROR_OUT_OF_MEMORY);
}

TEST_F(ConfigTest, LimitsWhatAFileMayHold) {
  const auto message = [&](const std::string& content) -> std::string {
    variables_["COMPUTE_CONFIG"] = write("limits.toml", content);
    try {
      load();
    } catch (const Error& error) {
      return error.message;
    }
    return "";
  };
  const auto repeated = [](const std::string& text, int count) {
    std::string all;
    for (int i = 0; i < count; ++i) all += text;
    return all;
  };
  EXPECT_NE(message(std::string((1 << 20) + 1, '#')).find("larger than 1048576 bytes"), std::string::npos);
  EXPECT_NE(message("x = " + repeated("[", 100000)), "");  // its parser calls itself
  EXPECT_NE(
      message("[plugins]\npath = [" + repeated("\"/p\",", 2000) + "]\n").find("2000 paths given; the limit is 1024"),
      std::string::npos);
  EXPECT_NE(message("[plugins]\npath = [\"/" + std::string(5000, 'p') + "\"]\n").find("longer than 4096 bytes"),
            std::string::npos);
  EXPECT_NE(message("device = \"" + std::string(70000, 'c') + "\"\n").find("70000 bytes long; the limit is 65536"),
            std::string::npos);
}

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

TEST_F(ConfigTest, AListOfWordsTakesOneNoneAndAll) {
  using Words = std::vector<std::string>;
  const std::vector<std::pair<const char*, Words>> rows = {{"1", {"handles"}},
                                                           {"0", {}},
                                                           {"", {}},
                                                           {"plugin, Memory", {"plugin", "memory"}},
                                                           {"1,plugin", {"handles", "plugin"}},
                                                           {"all", {"handles", "plugin", "memory"}}};
  for (const auto& [text, words] : rows) {
    variables_ = {{"COMPUTE_DEBUG", text}};
    EXPECT_EQ(load().get(SettingId::kDebug).words, words) << text;
  }
}

TEST_F(ConfigTest, ANullAmongTheArgumentsIsAnError) {
  Config config = load();
  char program[] = "program", flag[] = "--compute-sync";
  char* arguments[] = {program, nullptr, flag, nullptr};
  int32_t count = 3;
  EXPECT_THROW(take_flags(config, &count, arguments), Error);
  EXPECT_EQ(count, 3);
  EXPECT_FALSE(config.get(SettingId::kSync).flag);
}

TEST_F(ConfigTest, LeavesArgumentsAloneWhereAFlagIsWrong) {
  const std::vector<std::pair<const char*, const char*>> rows = {
      {"--compute-devise=cpu", R"(unknown setting "--compute-devise"; did you mean "--compute-device"?)"},
      {"--compute-device", "--compute-device requires a value: --compute-device=VALUE"},
      {"--compute-sync=2", R"(--compute-sync: "2" is not 0 or 1)"},
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
