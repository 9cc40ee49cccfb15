// SPDX-License-Identifier: Apache-2.0
//
// There is one registry per process, so each test runs in a child process.
#include "core/devices/registry.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/loading/plugin.hpp"
#include "core/process/change_settings.hpp"

namespace compute {
namespace {

using Names = std::vector<std::string>;

std::string plugin_folder(const std::string& name) { return std::string(COMPUTE_TEST_PLUGIN_DIR) + "/" + name; }

// Runs a test's body where the plugins named by `plugins` are the only ones.
template <typename Body>
void in_child(const Names& plugins, Body body) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::string files;
    for (const std::string& plugin : plugins) {
      files += (files.empty() ? "" : ":") + plugin_folder(plugin) + "/compute_plugin_" + plugin + ".so";
    }
    for (const char* name : {"COMPUTE_DEVICE", "COMPUTE_DEVICES", "COMPUTE_FAULTY", "COMPUTE_PROBE"}) ::unsetenv(name);
    // by the API, for another test may have read the environment before
    set_setting("COMPUTE_CONFIG", Origin::kApi, "/dev/null");
    set_setting("COMPUTE_LOG", Origin::kApi, "off");
    set_setting("COMPUTE_PLUGIN_FILES", Origin::kApi, files.empty() ? "/none.so" : files);
    try {
      body(Registry::instance());
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
    std::fflush(nullptr);
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "see above";
}

std::string selected(Registry& registry, const char* selector) {
  return registry.select(selector, [](const DeviceSelection&) {}).device->info.name;
}

Names opened(Registry& registry) {
  Names names;
  for (const Plugin* plugin : registry.opened_plugins()) names.push_back(plugin->name);
  return names;
}

TEST(Registry, HasTheCpuWithoutAnyPlugin) {
  in_child({}, [](Registry& registry) {
    ASSERT_EQ(registry.devices().size(), 1U);
    const DeviceEntry& cpu = *registry.devices()[0];
    EXPECT_STREQ(cpu.info.name, "cpu");
    EXPECT_EQ(cpu.plugin, nullptr);
    EXPECT_EQ(cpu.info.kind, COMPUTE_DEVICE_KIND_CPU);
    EXPECT_GT(cpu.info.memory_bytes, 0);
    EXPECT_EQ(registry.find("cpu"), &cpu);
    EXPECT_EQ(registry.select(nullptr, [](const DeviceSelection&) {}).device, &cpu);
    EXPECT_EQ(selected(registry, "cpu0"), "cpu");
    EXPECT_NE(registry.load_report(COMPUTE_FORMAT_TEXT).find("/none.so"), std::string::npos);
  });
}

TEST(Registry, OpensOnlyWhatTheSelectorCanMean) {
  in_child({"minimal", "faulty"}, [](Registry& registry) {
    EXPECT_TRUE(opened(registry).empty());
    EXPECT_EQ(selected(registry, "cpu"), "cpu");
    EXPECT_TRUE(opened(registry).empty());
    EXPECT_EQ(selected(registry, "minimal1"), "minimal1");
    EXPECT_EQ(opened(registry), Names{"minimal"});
    EXPECT_EQ(selected(registry, "auto,-faulty"), "minimal0");
    EXPECT_EQ(opened(registry), Names{"minimal"});
    ASSERT_NE(registry.find("faulty1"), nullptr);
    EXPECT_EQ(opened(registry), (Names{"minimal", "faulty"}));
    EXPECT_EQ(registry.find("faulty2"), nullptr);
    EXPECT_EQ(registry.find("nobody0"), nullptr);
    Names names;
    for (const DeviceEntry* device : registry.devices()) names.emplace_back(device->info.name);
    EXPECT_EQ(names, (Names{"cpu", "faulty0", "faulty1", "minimal0", "minimal1"}));
  });
}

// A shortage of one plugin does not affect the others, and the next call tries it again.
TEST(Registry, AShortageOfOnePluginIsNoFaultOfTheOthers) {
  for (const std::string step : {"open", "enumerate"}) {
    in_child({"minimal", "faulty"}, [&](Registry& registry) {
      const auto names = [&] {
        Names names;
        for (const DeviceEntry* device : registry.devices()) names.emplace_back(device->info.name);
        return names;
      };
      const auto code_of = [&](const char* selector) {
        try {
          registry.select(selector, [](const DeviceSelection&) {});
        } catch (const Error& error) {
          return error.code;
        }
        return 0;
      };
      ::setenv("COMPUTE_FAULTY", (step + "=error:OUT_OF_MEMORY").c_str(), 1);
      EXPECT_EQ(names(), (Names{"cpu", "minimal0", "minimal1"}));
      EXPECT_NE(registry.load_report(COMPUTE_FORMAT_TEXT).find("faulty.so cannot be opened now"), std::string::npos);
      EXPECT_EQ(selected(registry, "auto"), "minimal0");
      EXPECT_EQ(selected(registry, "faulty0,cpu"), "cpu");
      EXPECT_EQ(code_of("faulty0"), COMPUTE_ERROR_OUT_OF_MEMORY);
      EXPECT_EQ(code_of("minimal7"), COMPUTE_ERROR_NOT_FOUND);
      EXPECT_THROW(registry.find("faulty0"), Error);
      EXPECT_EQ(registry.find("minimal7"), nullptr);
      EXPECT_THROW(registry.which("faulty", COMPUTE_FORMAT_TEXT), Error);
      ::unsetenv("COMPUTE_FAULTY");
      EXPECT_EQ(selected(registry, "faulty0"), "faulty0");
      EXPECT_EQ(names(), (Names{"cpu", "faulty0", "faulty1", "minimal0", "minimal1"}));
    });
  }
}

TEST(Registry, SaysWhoChose) {
  in_child({"minimal"}, [](Registry& registry) {
    const auto by = [&](const char* selector) {
      const DeviceSelection selection = registry.select(selector, [](const DeviceSelection&) {});
      return std::string(selection.device->info.name) + " by " + selection.chosen_by +
             (selection.strict ? ", strict" : "") + (selection.fell_through ? ", fell through" : "");
    };
    EXPECT_EQ(by(nullptr), "minimal0 by auto");
    EXPECT_EQ(by("  "), "minimal0 by auto");
    EXPECT_EQ(by("minimal1"), "minimal1 by compute_device_open, strict");
    EXPECT_EQ(by("minimal7,cpu"), "cpu by compute_device_open, fell through");
    set_setting("COMPUTE_DEVICES", Origin::kApi, "a=minimal1;b=cpu,minimal");
    EXPECT_EQ(by("a"), "minimal1 by compute_device_open as a, strict");
    EXPECT_EQ(by(" b "), "cpu by compute_device_open as b");
    EXPECT_EQ(by("minimal7,a"), "minimal1 by compute_device_open as a, fell through");
    set_setting("COMPUTE_DEVICE", Origin::kFlag, "a");
    EXPECT_EQ(by(nullptr), "minimal1 by --compute-device as a, strict");
    set_setting("COMPUTE_DEVICE", Origin::kFlag, "minimal1");
    EXPECT_EQ(by(nullptr), "minimal1 by --compute-device, strict");
    set_setting("COMPUTE_DEVICE", Origin::kApi, "cpu");
    EXPECT_EQ(by(nullptr), "cpu by the API, strict");
    const DeviceSelection selection = registry.select("minimal0+mem=1G", [](const DeviceSelection&) {});
    EXPECT_EQ(selection.options.memory_limit->size_bytes, 1 << 30);
  });
}

std::string refusal(Registry& registry, const char* selector, int32_t code) {
  try {
    selected(registry, selector);
  } catch (const Error& error) {
    EXPECT_EQ(error.code, code) << error.message;
    return error.message;
  }
  return "nothing was refused";
}

TEST(Registry, TellsOfCpuThatAProgramNames) {
  in_child({"minimal"}, [](Registry& registry) {
    static std::string lines;
    ASSERT_EQ(compute_log_set_callback(
                  [](compute_borrowed_log_record record, void*) {
                    if (record->level == COMPUTE_LOG_INFO) lines += std::string(record->text) + "\n";
                  },
                  nullptr),
              nullptr);
    selected(registry, "cpu");
    selected(registry, "cpu");
    EXPECT_TRUE(lines.starts_with("using cpu") && lines.ends_with(", chosen by compute_device_open\n")) << lines;
    EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 1) << lines;
  });
}

TEST(Registry, TellsOnceWhichDeviceWasChosen) {
  in_child({"minimal"}, [](Registry& registry) {
    static std::string lines;
    ASSERT_EQ(compute_log_set_callback(
                  [](compute_borrowed_log_record record, void*) {
                    if (record->level == COMPUTE_LOG_INFO) lines += std::string(record->text) + "\n";
                  },
                  nullptr),
              nullptr);
    selected(registry, nullptr);
    selected(registry, nullptr);
    selected(registry, "cpu");  // the program's own memory, in addition to its device
    EXPECT_EQ(lines, "using minimal0: Minimal device 0, chosen by auto\n");
    // A device that the user chose is logged, also if the program opened it before.
    lines.clear();
    set_setting("COMPUTE_DEVICE", Origin::kFlag, "cpu");
    selected(registry, nullptr);
    EXPECT_TRUE(lines.starts_with("using cpu") && lines.ends_with(", chosen by --compute-device\n")) << lines;
  });
}

TEST(Registry, RefusesADeviceThatIsNotThereWithWhatTheLoadReportSaysOfIt) {
  in_child({"minimal", "missing_library"}, [](Registry& registry) {
    std::string message = refusal(registry, "minimal7", COMPUTE_ERROR_NOT_FOUND);
    EXPECT_EQ(message.substr(0, message.find('\n')),
              "compute_device_open \"minimal7\": minimal has no device 7 (available: minimal0, minimal1)");
    EXPECT_EQ(message.find('\n'), std::string::npos) << "no plugin has a problem:\n" << message;
    message = refusal(registry, "missing_library", COMPUTE_ERROR_NOT_FOUND);
    EXPECT_NE(message.find("\nPlugins\n  missing_library"), std::string::npos) << message;
    EXPECT_EQ(message.find("minimal"), std::string::npos) << "of another plugin:\n" << message;
    EXPECT_EQ(message.substr(0, message.find('\n')),
              "compute_device_open \"missing_library\": missing_library has no device: 2 libraries are missing: "
              "libcompute_absent_one.so.7, libcompute_absent_two.so.7");
    EXPECT_NE(message.find("remedy"), std::string::npos) << message;
    message = refusal(registry, "minmal0", COMPUTE_ERROR_INVALID_ARGUMENT);
    EXPECT_NE(message.find("did you mean \"minimal\"?"), std::string::npos) << message;
    message = refusal(registry, "minimal0:1", COMPUTE_ERROR_INVALID_ARGUMENT);
    EXPECT_NE(message.find("\n          ^"), std::string::npos) << message;
  });
}

TEST(Registry, FallsThroughWhereADeviceFailsToOpen) {
  in_child({"minimal"}, [](Registry& registry) {
    Names tried;
    const auto fail_minimal = [&](const DeviceSelection& selection) {
      tried.emplace_back(selection.device->info.name);
      if (selection.device->plugin != nullptr) throw Error(COMPUTE_ERROR_OUT_OF_DEVICE_MEMORY, "no memory left");
    };
    const DeviceSelection selection = registry.select("auto", fail_minimal);
    EXPECT_STREQ(selection.device->info.name, "cpu");
    EXPECT_TRUE(selection.fell_through);
    EXPECT_EQ(tried, (Names{"minimal0", "minimal1", "cpu"}));
    try {
      registry.select("minimal", fail_minimal);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.code, COMPUTE_ERROR_OUT_OF_DEVICE_MEMORY);  // strict: its own error
      EXPECT_EQ(error.message, "no memory left");
    }
    tried.clear();
    try {
      registry.select("minimal,cpu", [&](const DeviceSelection& wrong) {
        tried.emplace_back(wrong.device->info.name);
        throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, "already open with other options");
      });
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.code, COMPUTE_ERROR_INVALID_ARGUMENT);
      EXPECT_EQ(tried, Names{"minimal0"});
    }
  });
}

TEST(Registry, TellsWhichDeviceAndWhyNotTheOthers) {
  in_child({"minimal"}, [](Registry& registry) {
    EXPECT_EQ(registry.which("minimal1", COMPUTE_FORMAT_TEXT),
              "minimal1: Minimal device 1, chosen by compute_device_open\n"
              "  not minimal0: not requested\n");
    const nlohmann::json json = nlohmann::json::parse(registry.which(nullptr, COMPUTE_FORMAT_JSON));
    EXPECT_EQ(json["device"], "minimal0");
    EXPECT_EQ(json["chosen_by"], "auto");
    EXPECT_EQ(json["strict"], false);
    ASSERT_EQ(json["others"].size(), 2U);
    EXPECT_EQ(json["others"][0]["name"], "minimal1");
    EXPECT_EQ(json["others"][1]["reason"], "a CPU ranks below an accelerator");
  });
}

TEST(Registry, ReportsAFaultySettingAtEveryCall) {
  in_child({"minimal"}, [](Registry& registry) {
    set_setting("COMPUTE_DEVICE", Origin::kFlag, "cdua0");
    for (int i = 0; i < 2; ++i) {
      const std::string message = refusal(registry, nullptr, COMPUTE_ERROR_INVALID_ARGUMENT);
      EXPECT_TRUE(message.starts_with("--compute-device \"cdua0\", column 1: ")) << message;
    }
    EXPECT_EQ(registry.devices().size(), 3U);  // listing needs no selector
  });
}

}  // namespace
}  // namespace compute
