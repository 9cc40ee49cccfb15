// SPDX-License-Identifier: Apache-2.0
#include "core/loading/manifest.hpp"

#include <compute/compute.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/base/error.hpp"

namespace compute {
namespace {

constexpr const char* kFile = "/opt/acme/acme.json";

std::string rejection(const std::string& text) {
  try {
    parse_manifest(text, kFile);
  } catch (const Error& error) {
    EXPECT_EQ(error.code, COMPUTE_ERROR_PLUGIN_REJECTED);
    return error.what();
  }
  return "nothing was rejected";
}

TEST(Manifest, ReadsEveryKeyAndSkipsUnknownOnes) {
  const Manifest manifest = parse_manifest(R"({
    "name": "Acme", "library": "../lib/compute_plugin_acme.so",
    "interface": {"min": 1, "max": 3, "draft": 7},
    "devices": ["discrete_gpu", "cpu", "integrated_gpu", "accelerator"],
    "priority": -5, "arch": "x86_64",
    "requires": [
      {"name": "acmert", "files": ["libacmert.so.3", "libacmert.so.2"], "min_version": "2.1", "remedy": "install acmert"},
      {"name": "acmeblas"}
    ],
    "drivers": {"libraries": ["libacme.so.1"], "modules": ["acme"], "variables": ["ACME_LAYERS"],
                "lists": [{"folder": "/etc/acme/drivers", "variable": "ACME_DRIVERS"}]},
    "settings": [
      {"name": "COMPUTE_ACME_MODE", "kind": "choice", "choices": ["fast", "exact"], "default": "fast", "help": "how",
       "device": true},
      {"name": "COMPUTE_ACME_RINGS_2", "kind": "integer", "range": [1, 9], "help": "how many"},
      {"name": "COMPUTE_ACME_FILE", "kind": "path", "help": "which"}
    ],
    "version": "1.4", "vendor": "Acme GmbH & Söhne", "license": "MIT", "url": "https://acme.example",
    "future": {"deep": [[[1, 2, {"x": null}]]]}
  })",
                                           kFile);
  EXPECT_EQ(manifest.file, kFile);
  EXPECT_EQ(manifest.name, "acme");
  EXPECT_EQ(manifest.library, "/opt/lib/compute_plugin_acme.so");
  EXPECT_EQ(manifest.interface_min, 1U);
  EXPECT_EQ(manifest.interface_max, 3U);
  EXPECT_EQ(manifest.device_kinds,
            (std::vector<int32_t>{COMPUTE_DEVICE_KIND_DISCRETE_GPU, COMPUTE_DEVICE_KIND_CPU,
                                  COMPUTE_DEVICE_KIND_INTEGRATED_GPU, COMPUTE_DEVICE_KIND_ACCELERATOR}));
  EXPECT_EQ(manifest.priority, -5);
  EXPECT_EQ(manifest.arch, "x86_64");
  ASSERT_EQ(manifest.requirements.size(), 2U);
  EXPECT_EQ(manifest.requirements[0].files, (std::vector<std::string>{"libacmert.so.3", "libacmert.so.2"}));
  EXPECT_EQ(manifest.requirements[0].min_version, "2.1");
  EXPECT_EQ(manifest.requirements[0].remedy, "install acmert");
  EXPECT_EQ(manifest.requirements[1].name, "acmeblas");
  ASSERT_TRUE(manifest.drivers);
  EXPECT_EQ(manifest.drivers->libraries, std::vector<std::string>{"libacme.so.1"});
  EXPECT_EQ(manifest.drivers->modules, std::vector<std::string>{"acme"});
  EXPECT_EQ(manifest.drivers->variables, std::vector<std::string>{"ACME_LAYERS"});
  ASSERT_EQ(manifest.drivers->lists.size(), 1U);
  EXPECT_EQ(manifest.drivers->lists[0].folder, "/etc/acme/drivers");
  EXPECT_EQ(manifest.drivers->lists[0].variable, "ACME_DRIVERS");
  ASSERT_EQ(manifest.settings.size(), 3U);
  EXPECT_EQ(manifest.settings[0].environment, "COMPUTE_ACME_MODE");
  EXPECT_EQ(manifest.settings[0].key, "acme.mode");
  EXPECT_EQ(manifest.settings[0].kind, SettingKind::kChoice);
  EXPECT_EQ(manifest.settings[0].values, "fast exact");
  EXPECT_EQ(manifest.settings[0].default_text, "fast");
  EXPECT_EQ(manifest.settings[0].summary, "how");
  EXPECT_FALSE(manifest.settings[0].names_files);
  EXPECT_EQ(manifest.settings[1].key, "acme.rings_2");
  EXPECT_EQ(manifest.settings[1].values, "1 9");
  EXPECT_TRUE(manifest.settings[2].names_files);
  EXPECT_EQ(manifest.version, "1.4");
  EXPECT_EQ(manifest.vendor, "Acme GmbH & Söhne");
  EXPECT_EQ(manifest.license, "MIT");
  EXPECT_EQ(manifest.url, "https://acme.example");
}

TEST(Manifest, NeedsANameAndALibrary) {
  const Manifest manifest = parse_manifest(R"({"name": "a_b", "library": "/x/y.so"})", kFile);
  EXPECT_EQ(manifest.library, "/x/y.so");
  EXPECT_EQ(manifest.interface_max, 0U);
  EXPECT_FALSE(manifest.priority);
  EXPECT_EQ(parse_manifest(R"({"name": "a", "library": "y.so"})", kFile).library, "/opt/acme/y.so");
}

TEST(Manifest, IsRejectedWithFileAndReason) {
  const std::vector<std::pair<const char*, const char*>> rows = {
      {"", "line 1: not well-formed JSON"},
      {"{\n\"name\": \"a\",\n}", "line 3: not well-formed JSON"},
      {"{\"name\": \"a\xff\"}", "line 1: not well-formed JSON"},
      {"[]", "not a JSON object"},
      {"null", "not a JSON object"},
      {"{}", R"("name" is missing)"},
      {R"({"name": 3})", R"("name" must be a string)"},
      {R"({"name": "a"})", R"("library" is missing)"},
      {R"({"name": "a", "library": "x\u0000.so"})", R"("library" contains a control character)"},
      {R"({"name": "gpu", "library": "x"})", R"("name" must consist of letters and "_", and must not be auto or gpu)"},
      {R"({"name": "a1", "library": "x"})", R"("name" must consist of letters and "_", and must not be auto or gpu)"},
      {R"({"name": "a", "library": "x", "interface": 1})", R"("interface" must be an object)"},
      {R"({"name": "a", "library": "x", "interface": {"min": 2, "max": 1}})",
       R"("interface" is not a valid range of versions)"},
      {R"({"name": "a", "library": "x", "interface": {"min": -1}})",
       R"("interface.min" must be a whole number from 0 to 4294967295)"},
      {R"({"name": "a", "library": "x", "interface": {"max": 4294967296}})",
       R"("interface.max" must be a whole number from 0 to 4294967295)"},
      {R"({"name": "a", "library": "x", "devices": "cpu"})", R"("devices" must be a list)"},
      {R"({"name": "a", "library": "x", "priority": 1.5})",
       R"("priority" must be a whole number from -2147483648 to 2147483647)"},
      {R"({"name": "a", "library": "x", "priority": 18446744073709551615})",
       R"("priority" must be a whole number from -2147483648 to 2147483647)"},
      {R"({"name": "a", "library": "x", "requires": [{"name": "y"}, 3]})", R"("requires[1]" must be an object)"},
      {R"({"name": "a", "library": "x", "requires": [{}]})", R"("requires[0].name" is missing)"},
      {R"({"name": "a", "library": "x", "requires": [{"name": "y", "files": [1]}]})",
       R"("requires[0].files" must be a string)"},
      {R"({"name": "a", "library": "x", "drivers": ["y"]})", R"("drivers" must be an object)"},
      {R"({"name": "a", "library": "x", "drivers": {"modules": ["../y"]}})",
       R"("drivers.modules" contains "../y", which is not the name of a module)"},
      {R"({"name": "a", "library": "x", "drivers": {"lists": [{"folder": "y"}]}})",
       R"("drivers.lists[0].folder" must be absolute)"},
      {R"({"name": "a", "library": "x", "drivers": {"lists": [1]}})", R"("drivers.lists[0]" must be an object)"},
      {R"({"name": "a", "library": "x", "settings": [1]})", R"("settings[0]" must be an object)"},
      {R"({"name": "a", "library": "x", "settings": [{"name": "COMPUTE_MATH", "kind": "text", "help": "-"}]})",
       R"("settings[0].name" must be COMPUTE_A_ followed by capital letters, digits and "_")"},
      {R"({"name": "a", "library": "x", "settings": [{"name": "COMPUTE_A_", "kind": "text", "help": "-"}]})",
       R"("settings[0].name" must be COMPUTE_A_ followed by capital letters, digits and "_")"},
      {R"({"name": "a", "library": "x", "settings": [{"name": "COMPUTE_A_B", "kind": "choice", "help": "-"}]})",
       R"("settings[0].default" has no choices)"},
      {R"({"name": "a", "library": "x", "settings": [{"name": "COMPUTE_A_B", "kind": "choice",)"
       R"( "choices": ["c d"], "help": "-"}]})",
       R"("settings[0].choices" contains "c d", which is not a single lowercase word)"},
      {R"({"name": "a", "library": "x", "settings": [{"name": "COMPUTE_A_B", "kind": "integer",)"
       R"( "range": [2, 1], "help": "-"}]})",
       R"("settings[0].range" must be two numbers, minimum and maximum)"},
      {R"({"name": "a", "library": "x", "settings": [{"name": "COMPUTE_A_B", "kind": "flag",)"
       R"( "default": "maybe", "help": "-"}]})",
       R"("settings[0].default" is invalid: its default: "maybe" is not 0 or 1)"},
      {R"({"name": "a", "library": "x", "settings": [{"name": "COMPUTE_A_B", "kind": "flag"}]})",
       R"("settings[0].help" is missing)"},
      {R"({"name": "a", "library": "x", "settings": [{"name": "COMPUTE_A_B", "kind": "flag", "help": "-",)"
       R"( "device": 1}]})",
       R"("settings[0].device" must be true or false)"},
      {R"({"name": "a", "library": "x", "settings": [{"name": "COMPUTE_A_B", "kind": "path", "help": "-",)"
       R"( "device": true}]})",
       R"("settings[0].device" is not allowed: selectors must not name files to load)"},
      {R"({"name": "a", "library": "x", "settings": [{"name": "COMPUTE_A_MEM", "kind": "text", "help": "-",)"
       R"( "device": true}]})",
       R"("settings[0].name" is reserved: selectors have an option mem)"},
      {R"({"name": "a", "x": 1e999})", "a number is out of range"},
  };
  for (const auto& [text, reason] : rows) EXPECT_EQ(rejection(text), std::string(kFile) + ": " + reason) << text;
}

TEST(Manifest, IsRejectedWhereItIsNestedTooDeep) {
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  EXPECT_EQ(rejection("{\"name\": \"a\", \"library\": \"x\", \"y\": " + deep + "}"),
            std::string(kFile) + ": nested more than 16 levels deep");
}

TEST(Manifest, OfANewerLibraryMayHaveUnknownKinds) {
  const Manifest manifest = parse_manifest(R"({"name": "acme", "library": "a.so", "devices": ["quantum"],
      "settings": [{"name": "COMPUTE_ACME_B", "kind": "number", "default": "5", "help": "-"}]})",
                                           kFile);
  EXPECT_EQ(manifest.device_kinds, std::vector<int32_t>{COMPUTE_DEVICE_KIND_ACCELERATOR});
  ASSERT_EQ(manifest.settings.size(), 1u);
  EXPECT_EQ(manifest.settings[0].kind, SettingKind::kText);
  EXPECT_EQ(manifest.settings[0].default_text, "5");
}

TEST(Manifest, HoldsNoMoreThanAnybodyNeeds) {
  const std::string start = R"({"name": "acme", "library": "a.so", )";
  EXPECT_EQ(rejection(start + R"("vendor": ")" + std::string(5000, 'v') + "\"}"),
            std::string(kFile) + ": \"vendor\" is longer than 4096 bytes");
  std::string kinds = "\"cpu\"";
  for (int i = 0; i < 256; ++i) kinds += ", \"cpu\"";
  EXPECT_EQ(rejection(start + "\"devices\": [" + kinds + "]}"),
            std::string(kFile) + ": \"devices\" has more than 256 entries");
}

TEST(Manifest, OfAFileThatCannotBeReadIsRejected) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path();
  for (const std::filesystem::path& path : {folder, folder / "compute-no-such-manifest.json"}) {
    try {
      read_manifest(path);
      ADD_FAILURE() << path;
    } catch (const Error& error) {
      EXPECT_EQ(error.code, COMPUTE_ERROR_PLUGIN_REJECTED);
      EXPECT_TRUE(error.message.starts_with(path.string() + ": cannot be read")) << error.message;
    }
  }
}

}  // namespace
}  // namespace compute
