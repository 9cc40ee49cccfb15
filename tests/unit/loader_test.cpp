// SPDX-License-Identifier: Apache-2.0
//
// The loader on real libraries: the minimal plugin, and the faulty one that fails as COMPUTE_FAULTY says.
#include "core/loading/loader.hpp"

#include <compute/compute.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/loading/plugin_core.hpp"
#include "core/process/change_settings.hpp"

namespace compute {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

std::string plugin_file(const std::string& name) {
  return std::string(COMPUTE_TEST_PLUGIN_DIR) + "/" + name + "/compute_plugin_" + name + ".so";
}

class LoaderTest : public testing::Test {
 protected:
  LoaderTest() {
    std::string pattern = (fs::temp_directory_path() / "compute-loader-XXXXXX").string();
    root_ = fs::canonical(mkdtemp(pattern.data()));
  }
  ~LoaderTest() override {
    ::unsetenv("COMPUTE_FAULTY");
    fs::remove_all(root_);
  }

  std::string write(const std::string& name, const std::string& content) {
    std::ofstream(root_ / name) << content;
    return (root_ / name).string();
  }

  static std::unique_ptr<Loader> load(const Names& files) {
    PluginPlaces places;
    for (const std::string& file : files) places.files.push_back({file, "COMPUTE_PLUGIN_FILES"});
    return std::make_unique<Loader>(places, LoaderOptions{});
  }

  // What becomes of the faulty plugin under a fault, opened: the reason of its rejection.
  static std::string rejection(const std::string& fault, LoadStep step) {
    ::setenv("COMPUTE_FAULTY", fault.c_str(), 1);
    const std::unique_ptr<Loader> loader = load({plugin_file("faulty"), plugin_file("minimal")});
    loader->open("faulty");
    loader->open("minimal");
    const LoadReport report = loader->report();
    EXPECT_EQ(report.plugins.size(), 2U);
    EXPECT_EQ(load_step_name(report.plugins[0].step), std::string(load_step_name(step))) << fault;
    // one bad plugin never hides the others
    EXPECT_EQ(report.plugins[1].devices.size(), 2U) << fault;
    EXPECT_EQ(report.plugins[1].rejected, "") << fault;
    return report.plugins[0].rejected;
  }

  static Names device_names(const Loader& loader) {
    Names names;
    for (const KnownDevice& device : loader.devices()) names.push_back(device.record.name);
    return names;
  }

  fs::path root_;
};

TEST_F(LoaderTest, OpensThoseThatAreWantedAlone) {
  const std::unique_ptr<Loader> loader = load({plugin_file("minimal"), plugin_file("faulty")});
  EXPECT_EQ(loader->names(), (Names{"minimal", "faulty"}));
  EXPECT_TRUE(loader->devices().empty());
  EXPECT_TRUE(loader->open("minimal"));
  EXPECT_FALSE(loader->open("minimal"));
  EXPECT_FALSE(loader->open("other"));
  EXPECT_EQ(device_names(*loader), (Names{"minimal0", "minimal1"}));
  const KnownDevice& device = loader->devices()[1];
  EXPECT_STREQ(device.entry->info.name, "minimal1");
  EXPECT_STREQ(device.entry->info.plugin, "minimal");
  EXPECT_STREQ(device.entry->info.description, "Minimal device 1");
  EXPECT_STREQ(device.entry->info.same_as, "");
  EXPECT_EQ(device.entry->info.flat_index, 1);
  EXPECT_EQ(device.entry->info.platform_index, -1);
  EXPECT_EQ(device.entry->info.kind, COMPUTE_DEVICE_KIND_ACCELERATOR);
  EXPECT_EQ(device.entry->id, 1U);
  ASSERT_EQ(loader->opened_plugins().size(), 1U);
  const Plugin& plugin = *loader->opened_plugins()[0];
  EXPECT_EQ(&plugin, device.entry->plugin);
  EXPECT_EQ(plugin.name, "minimal");
  EXPECT_EQ(plugin.table.place().plugin, "minimal");

  const LoadReport report = loader->report();
  EXPECT_EQ(report.plugins[0].step, LoadStep::kOpened);
  EXPECT_EQ(report.plugins[0].version, "1.0.0");
  EXPECT_EQ(report.plugins[0].note, "");
  EXPECT_EQ(report.plugins[1].step, LoadStep::kFound);
  EXPECT_EQ(report.plugins[1].note, "not requested");
  EXPECT_EQ(loader->problems().size(), 1U);
}

TEST_F(LoaderTest, RejectsWhatIsNoLibraryOfThisMachine) {
  const Names files = {
      write("text.so", "hello\n"),
      write("script.so", "INPUT(libc.so.6)\n"),
      write("empty.so", ""),
      write("short.so", std::string("\x7f"
                                    "ELF\x02\x01\x01",
                                    7)),
      plugin_file("missing_library"),
      plugin_file("undefined_symbol"),
      plugin_file("no_query"),
      plugin_file("no_open"),
      plugin_file("minimal"),
  };
  const std::unique_ptr<Loader> loader = load(files);
  loader->open_all();
  const LoadReport report = loader->report();
  ASSERT_EQ(report.plugins.size(), files.size());
  const auto rejected = [&](size_t i) { return report.plugins[i].rejected; };
  EXPECT_EQ(rejected(0), "not a shared library");
  EXPECT_EQ(rejected(1), "not a shared library");
  EXPECT_EQ(rejected(2), "an empty file");
  EXPECT_EQ(rejected(3), "not a shared library");
  EXPECT_EQ(rejected(4), "2 libraries are missing: libcompute_absent_one.so.7, libcompute_absent_two.so.7");
  ASSERT_EQ(report.plugins[4].missing_libraries.size(), 2U);
  EXPECT_EQ(report.plugins[4].name, "missing_library");
  EXPECT_NE(rejected(5).find("undefined symbol: compute_absent_function"), std::string::npos) << rejected(5);
  EXPECT_EQ(rejected(6), "it does not export compute_plugin_query");
  EXPECT_EQ(rejected(7), "it does not export compute_plugin_open");
  EXPECT_EQ(rejected(8), "");
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(report.plugins[i].step, LoadStep::kFound) << i;
  EXPECT_EQ(report.plugins[6].step, LoadStep::kDependencies);
  EXPECT_EQ(loader->devices().size(), 2U);
}

TEST_F(LoaderTest, RejectsAManifestThatDoesNotFit) {
  EXPECT_EQ(rejection("query=throw", LoadStep::kDependencies),
            "compute_plugin_query threw an exception: the faulty plugin throws in query");
  EXPECT_EQ(rejection("query=lie", LoadStep::kDependencies), "the manifest from compute_plugin_query is NULL");
  EXPECT_EQ(rejection("manifest=null", LoadStep::kDependencies), "the manifest from compute_plugin_query is NULL");
  EXPECT_EQ(
      rejection("manifest=zero", LoadStep::kDependencies),
      "the manifest from compute_plugin_query has struct_size 0 and struct_type 1001; expected at least 160 and 1001");
  EXPECT_EQ(rejection("manifest=type", LoadStep::kDependencies),
            "the manifest from compute_plugin_query has struct_size " +
                std::to_string(sizeof(compute_plugin_manifest)) +
                " and struct_type 1007; expected at least 160 and 1001");
  EXPECT_EQ(rejection("manifest=interface:7", LoadStep::kDependencies),
            "it requires plugin interface version 7; this library supports version 1");
  EXPECT_EQ(rejection("manifest=interface:0", LoadStep::kDependencies),
            "it requires plugin interface version 0; this library supports version 1");
  EXPECT_EQ(rejection("manifest=draft:9999", LoadStep::kDependencies), why_other_draft(9999, COMPUTE_PLUGIN_DRAFT));
  EXPECT_EQ(rejection("manifest=name:bad1", LoadStep::kDependencies),
            "its name \"bad1\" must consist of letters and \"_\"");
  EXPECT_EQ(rejection("manifest=sanitizer:memory", LoadStep::kDependencies).substr(0, 42),
            "it was built with the sanitizer \"memory\"; ");
}

TEST_F(LoaderTest, ComparesVersionsBeforeItLooksForAnEntryPoint) {
  ::setenv("COMPUTE_FAULTY", "manifest=interface:2", 1);
  const std::unique_ptr<Loader> newer = load({plugin_file("no_open")});  // it exports another function
  newer->open_all();
  EXPECT_EQ(newer->report().plugins.at(0).rejected,
            "it requires plugin interface version 2; this library supports version 1");
}

TEST(Drafts, AreToldFromTheReleasedVersion) {
  EXPECT_EQ(why_other_draft(5, 0),
            "it was built for draft 5 of the plugin interface; this library supports the released version 1");
  EXPECT_EQ(why_other_draft(0, 6),
            "it was built for the released version 1 of the plugin interface; this library supports draft 6");
}

TEST_F(LoaderTest, TakesLargerStructs) {
  for (const char* fault : {"manifest=large", "table=large", "devices=large"}) {
    ::setenv("COMPUTE_FAULTY", fault, 1);
    const std::unique_ptr<Loader> loader = load({plugin_file("faulty")});
    EXPECT_TRUE(loader->open("faulty")) << fault;
    EXPECT_EQ(loader->report().plugins[0].rejected, "") << fault;
    EXPECT_EQ(device_names(*loader), (Names{"faulty0", "faulty1"})) << fault;
    EXPECT_EQ(loader->devices()[0].entry->info.memory_bytes, 1 << 30);
  }
}

TEST_F(LoaderTest, RejectsStructsBelowTheirLeastSize) {
  EXPECT_EQ(rejection("manifest=small", LoadStep::kDependencies),
            "the manifest from compute_plugin_query has struct_size 144 and struct_type 1001; expected at least "
            "160 and 1001");
  EXPECT_EQ(rejection("devices=small", LoadStep::kOpened),
            "enumerate broke its contract: a device has struct_size 120 and struct_type 1003; expected at least "
            "232 and 1003");
}

TEST_F(LoaderTest, RejectsAPluginThatFailsToOpenOrToEnumerate) {
  EXPECT_EQ(rejection("open=error:INTERNAL", LoadStep::kInterface),
            "compute_plugin_open failed: faulty: open fails as asked");
  EXPECT_EQ(rejection("open=throw", LoadStep::kInterface),
            "compute_plugin_open threw an exception: the faulty plugin throws in open");
  EXPECT_EQ(rejection("open=lie", LoadStep::kInterface), "compute_plugin_open returned no table");
  EXPECT_EQ(rejection("table=null", LoadStep::kInterface), "compute_plugin_open returned no table");
  EXPECT_EQ(rejection("table=zero", LoadStep::kInterface), "its table lacks enumerate");
  EXPECT_EQ(rejection("table=small", LoadStep::kInterface), "its table lacks device_open");
  EXPECT_EQ(rejection("table=without:enumerate", LoadStep::kInterface), "its table lacks enumerate");
  EXPECT_EQ(rejection("table=without:device_open", LoadStep::kInterface), "its table lacks device_open");
  EXPECT_EQ(rejection("enumerate=error:DEVICE_LOST", LoadStep::kOpened),
            "enumerate failed: faulty: enumerate fails as asked");
  EXPECT_EQ(rejection("enumerate=throw", LoadStep::kOpened),
            "enumerate failed: plugin faulty: enumerate threw an exception: the faulty plugin throws in enumerate");
  EXPECT_EQ(rejection("devices=null", LoadStep::kOpened), "enumerate broke its contract: a device is NULL");
  EXPECT_EQ(rejection("devices=zero", LoadStep::kOpened),
            "enumerate broke its contract: a device has struct_size 0 and struct_type 1003; expected at least "
            "232 and 1003");
}

TEST_F(LoaderTest, ListsUnusableDevicesAndRequirements) {
  ::setenv("COMPUTE_FAULTY", "devices@1=unusable;requirement=missing", 1);
  std::unique_ptr<Loader> loader = load({plugin_file("faulty")});
  loader->open("faulty");
  ASSERT_EQ(loader->devices().size(), 2U);
  EXPECT_FALSE(loader->devices()[0].record.usable);
  EXPECT_EQ(loader->devices()[0].entry->unusable, "the faulty driver is too old");
  EXPECT_TRUE(loader->devices()[1].record.usable);
  const PluginReport report = loader->report().plugins[0];
  ASSERT_EQ(report.requirements.size(), 1U);
  EXPECT_EQ(report.requirements[0].tried, (Names{"libabsent.so.2", "libabsent.so.1"}));
  EXPECT_EQ(report.requirements[0].state, RequirementReport::State::kMissing);
  EXPECT_EQ(report.remedies(), Names{"install the package absent"});

  ::setenv("COMPUTE_FAULTY", "devices=none;requirement=missing", 1);
  loader = load({plugin_file("faulty")});
  loader->open("faulty");
  ASSERT_EQ(loader->problems().size(), 1U);
  EXPECT_EQ(loader->problems()[0].problem,
            "libabsent: libabsent.so.1: cannot open shared object file; run compute doctor for details");

  ::setenv("COMPUTE_FAULTY", "devices=twice", 1);
  loader = load({plugin_file("faulty")});
  loader->open("faulty");
  EXPECT_EQ(device_names(*loader), (Names{"faulty0", "faulty1"}));
  EXPECT_EQ(loader->report().plugins[0].note, "it listed device 0 twice\nit listed device 1 twice");
}

TEST_F(LoaderTest, TheFirstOfANameWins) {
  const std::string copy = (root_ / "compute_plugin_minimal.so").string();
  fs::copy_file(plugin_file("minimal"), copy);
  const std::unique_ptr<Loader> loader = load({copy, plugin_file("minimal")});
  loader->open("minimal");
  const LoadReport report = loader->report();
  EXPECT_EQ(report.plugins[0].devices.size(), 2U);
  EXPECT_EQ(report.plugins[1].rejected, "another plugin named minimal was found first: " + copy);
  EXPECT_TRUE(loader->problems().empty());
  EXPECT_EQ(loader->names(), Names{"minimal"});
}

TEST_F(LoaderTest, AFilesNameSaysWhatItOffers) {
  const std::string other = (root_ / "compute_plugin_other.so").string(), any = (root_ / "libany.so").string();
  fs::copy_file(plugin_file("minimal"), other);
  fs::copy_file(plugin_file("minimal"), any);
  const std::unique_ptr<Loader> liar = load({other});
  EXPECT_EQ(liar->names(), Names{"other"});
  EXPECT_FALSE(liar->open("minimal"));
  EXPECT_EQ(liar->report().plugins[0].step, LoadStep::kFound);  // it was not touched
  EXPECT_FALSE(liar->open("other"));
  EXPECT_EQ(liar->report().plugins[0].rejected,
            "its file name is that of other, but compute_plugin_query names it minimal; "
            "rename the file to compute_plugin_minimal.so");

  // a file name without the plugin's name counts only if no other file provides it
  const std::unique_ptr<Loader> loader = load({any, plugin_file("faulty")});
  EXPECT_TRUE(loader->open("faulty"));
  EXPECT_EQ(loader->report().plugins[0].step, LoadStep::kFound);
  EXPECT_TRUE(loader->open("minimal"));
  EXPECT_EQ(loader->names(), (Names{"minimal", "faulty"}));
  EXPECT_FALSE(loader->ask_unnamed());
}

TEST_F(LoaderTest, WhatOthersMayWriteToIsNotOpened) {
  const std::string file = (root_ / "compute_plugin_minimal.so").string();
  fs::copy_file(plugin_file("minimal"), file);
  const auto rejected = [&](bool trust_all) {
    PluginPlaces places;
    places.standard = {{root_, "here"}};
    places.trust = files::Trust::of_process(false);
    places.trust.everybody = trust_all;
    Loader loader(places, {});
    loader.open("minimal");
    return loader.report().plugins.at(0).rejected;
  };
  const std::string mine = rejected(false);
  EXPECT_EQ(mine, "");
  ::chmod(file.c_str(), 0777);
  EXPECT_EQ(rejected(false), "it was not opened: it is writable by everyone (mode 0777)");
  EXPECT_EQ(rejected(true), "");
  ::chmod(file.c_str(), 0755);
  ::chmod(root_.c_str(), 0757);
  EXPECT_EQ(rejected(false), "it was not opened: " + root_.string() + " is writable by everyone (mode 0757)");
  ::chmod(root_.c_str(), 0700);
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(file.c_str(), 65534, 65534), 0);
    EXPECT_EQ(rejected(false), "it was not opened: it is owned by user 65534");
  }
}

TEST_F(LoaderTest, AShortageIsNoVerdict) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer needs file descriptors of its own";
#endif
  const std::unique_ptr<Loader> loader = load({plugin_file("minimal")});
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none = {0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  EXPECT_FALSE(loader->open("minimal"));
  const std::vector<PluginProblem> shortages = loader->shortages();
  PluginPlaces places;
  places.standard = {{root_, "here"}};
  EXPECT_THROW(Loader(places, {}), Error);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_EQ(shortages.size(), 1U);
  EXPECT_EQ(shortages[0].plugin, "minimal");
  EXPECT_NE(shortages[0].problem.find("Too many open files"), std::string::npos) << shortages[0].problem;
  EXPECT_TRUE(loader->open("minimal"));
  EXPECT_TRUE(loader->shortages().empty());
  EXPECT_EQ(loader->devices().size(), 2U);
  for (const char* fault : {"open@1=error:OUT_OF_MEMORY", "enumerate@1=error:OUT_OF_MEMORY"}) {
    ::setenv("COMPUTE_FAULTY", fault, 1);
    const std::unique_ptr<Loader> faulty = load({plugin_file("faulty")});
    EXPECT_FALSE(faulty->open("faulty")) << fault;
    ASSERT_EQ(faulty->shortages().size(), 1U) << fault;
    EXPECT_EQ(faulty->report().plugins[0].problem(), faulty->shortages()[0].problem) << fault;
    EXPECT_EQ(faulty->report().plugins[0].rejected, "") << fault;
    EXPECT_TRUE(faulty->open("faulty")) << fault;
    EXPECT_EQ(faulty->devices().size(), 2U) << fault;
    EXPECT_EQ(faulty->opened_plugins().size(), 1U) << fault;
  }
}

TEST_F(LoaderTest, AManifestIsHeardBeforeTheLibrary) {
  const auto manifest = [&](const std::string& file, const std::string& rest) {
    return write(file, R"({"library": ")" + plugin_file("minimal") + "\", " + rest + "}");
  };
  const auto report = [&](const std::string& file) {
    const std::unique_ptr<Loader> loader = load({file});
    loader->open_all();
    return loader->report().plugins.at(0);
  };
  const PluginReport other_arch = report(manifest("a.json", R"("name": "minimal", "arch": "vax",
      "requires": [{"name": "vaxrt", "min_version": "3", "files": ["libvax.so.3"], "remedy": "buy a VAX"}])"));
  EXPECT_EQ(other_arch.step, LoadStep::kFound);
  EXPECT_EQ(other_arch.rejected.substr(0, 26), "its manifest is for vax, n");
  ASSERT_EQ(other_arch.requirements.size(), 1U);
  EXPECT_EQ(other_arch.requirements[0].name, "vaxrt 3");
  EXPECT_EQ(report(manifest("b.json", R"("name": "minimal", "interface": {"min": 5, "max": 9})")).rejected,
            "its manifest requires plugin interface versions 5 to 9; this library supports version 1");
  EXPECT_EQ(report(manifest("c.json", R"("name": "other")")).rejected,
            "its manifest names it other, but compute_plugin_query names it minimal");

  const std::unique_ptr<Loader> loader = load({manifest("d.json", R"("name": "minimal", "priority": 7)")});
  loader->open("minimal");
  EXPECT_EQ(loader->devices().at(0).record.priority, 7);
  EXPECT_EQ(loader->report().plugins[0].manifest, (root_ / "d.json").string());
}

ListedDevice listed(uint64_t id, const char* pci, int32_t platform = -1) {
  ListedDevice device;
  device.id = id;
  device.pci_address = pci;
  device.platform_index = platform;
  return device;
}

std::string numbered(const std::string& plugin, std::vector<ListedDevice> devices) {
  std::string text;
  for (const KnownDevice& device : name_devices(plugin, nullptr, std::move(devices))) {
    text += device.record.name + "=" + std::to_string(device.entry->id) + "," +
            std::to_string(device.record.flat_index) + " ";
  }
  return text;
}

TEST(DeviceNumbers, FollowPciAddressesWithinEachPlatform) {
  EXPECT_EQ(numbered("cuda", {listed(7, "0000:c1:00.0"), listed(8, "0000:05:00.0"), listed(9, "10000:01:00.0")}),
            "cuda0=8,0 cuda1=7,1 cuda2=9,2 ");
  EXPECT_EQ(numbered("acme", {listed(1, ""), listed(2, ""), listed(3, "0000:01:00.0")}),
            "acme0=3,0 acme1=1,1 acme2=2,2 ");
  EXPECT_EQ(numbered("opencl",
                     {listed(1, "", 1), listed(2, "0000:02:00.0", 0), listed(3, "0000:01:00.0", 0), listed(4, "", 4)}),
            "opencl0:0=3,0 opencl0:1=2,1 opencl1:0=1,2 opencl2:0=4,3 ");
  EXPECT_EQ(numbered("cpu", {listed(5, "")}), "cpu=5,0 ");
  EXPECT_EQ(numbered("cpu", {listed(5, ""), listed(6, "")}), "cpu0=5,0 cpu1=6,1 ");
  EXPECT_EQ(numbered("cuda", {}), "");
}

TEST(DeviceNumbers, ACpuOfAnotherPluginIsTheSameAsCpu) {
  ListedDevice processor = listed(1, "");
  processor.kind = COMPUTE_DEVICE_KIND_CPU;
  EXPECT_STREQ(name_devices("opencl", nullptr, {processor}).front().entry->info.same_as, "cpu");
  EXPECT_STREQ(name_devices("cpu", nullptr, {processor}).front().entry->info.same_as, "");
  processor.kind = COMPUTE_DEVICE_KIND_ACCELERATOR;
  EXPECT_STREQ(name_devices("opencl", nullptr, {processor}).front().entry->info.same_as, "");
}

compute_string view(const std::string& text) { return {text.data(), static_cast<int64_t>(text.size())}; }

TEST(PluginHost, MakesErrorsOfAnything) {
  const compute_plugin_core& core = plugin_core();
  compute_plugin_error_info info = {};
  info.struct_size = sizeof info;
  info.struct_type = COMPUTE_PLUGIN_STRUCT_ERROR_INFO;
  info.code = COMPUTE_ERROR_COMPILE_FAILED;
  info.argument = 2;
  info.native_code = 700;
  const std::string message = "line 3: no";
  info.message = view(message);
  info.cause = core.error_new(&info);
  compute_error* error = core.error_new(&info);
  EXPECT_EQ(core.error_code(error), COMPUTE_ERROR_COMPILE_FAILED);
  EXPECT_STREQ(compute_error_message(error), "line 3: no");
  EXPECT_EQ(compute_error_argument(error), 2);
  EXPECT_EQ(compute_error_native_code(error), 700);
  EXPECT_NE(compute_error_cause(error), nullptr);
  core.error_free(error);

  error = core.error_new(nullptr);
  EXPECT_EQ(core.error_code(error), COMPUTE_ERROR_INTERNAL);
  EXPECT_EQ(compute_error_argument(error), -1);
  core.error_free(error);
  info = {};
  info.struct_size = sizeof info;
  info.code = 4711;
  info.message = {nullptr, 12};
  error = core.error_new(&info);
  EXPECT_EQ(core.error_code(error), COMPUTE_ERROR_INTERNAL);
  EXPECT_STREQ(compute_error_message(error), "the plugin gave no reason");
  core.error_free(error);
  core.error_free(nullptr);

  info.struct_size = COMPUTE_PLUGIN_ERROR_INFO_SIZE_1 - 8;
  error = core.error_new(&info);
  EXPECT_EQ(core.error_code(error), COMPUTE_ERROR_PLUGIN_REJECTED);
  EXPECT_STREQ(compute_error_message(error), "an error of the plugin has struct_size 48; expected at least 56");
  EXPECT_EQ(compute_error_argument(error), -1);
  core.error_free(error);
}

TEST(PluginHost, TellsVersions) {
  const compute_plugin_core& core = plugin_core();
  EXPECT_EQ(core.interface_newest, COMPUTE_PLUGIN_INTERFACE);
  EXPECT_EQ(core.core_version, (COMPUTE_VERSION_MAJOR << 16 | COMPUTE_VERSION_MINOR << 8 | COMPUTE_VERSION_PATCH));
}

TEST(PluginHost, TellsSettings) {
  const compute_plugin_core& core = plugin_core();
  const auto setting = [&](const std::string& name) {
    std::string value(64, '\0');
    const int64_t size =
        core.setting(name.data(), static_cast<int64_t>(name.size()), value.data(), static_cast<int64_t>(value.size()));
    return size < 0 ? std::string("unset") : value.substr(0, static_cast<size_t>(size));
  };
  EXPECT_EQ(setting("COMPUTE_MATH"), "strict");
  EXPECT_EQ(setting("COMPUTE_CPU_ISA"), "unset");
  set_setting("COMPUTE_CPU_ISA", Origin::kApi, "avx2");
  EXPECT_EQ(setting("COMPUTE_CPU_ISA"), "avx2");
  set_setting("COMPUTE_CPU_ISA", Origin::kApi, std::nullopt);
  ::setenv("ACME_MODE", "fast", 1);
  EXPECT_EQ(setting("ACME_MODE"), "fast");
  char small[2] = {'?', '?'};
  EXPECT_EQ(core.setting("ACME_MODE", 9, small, 1), 4);
  EXPECT_EQ(small[0], 'f');
  EXPECT_EQ(small[1], '?');
  EXPECT_EQ(core.setting("ACME_MODE", 9, nullptr, 0), 4);
  ::unsetenv("ACME_MODE");
  EXPECT_EQ(setting("ACME_MODE"), "unset");
}

}  // namespace
}  // namespace compute
