// SPDX-License-Identifier: Apache-2.0
// Faulty plugins: each is rejected with a reason in the load report, and never hides the
// others.
#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "robustness.hpp"

namespace robustness {
namespace {

std::string load_report() {
  compute_text* text = nullptr;
  EXPECT_OK(compute_load_report(COMPUTE_FORMAT_TEXT, &text));
  return text ? take_text(text) : "";
}

std::vector<std::string> device_names() {
  int64_t count = 0;
  EXPECT_OK(compute_device_list(nullptr, 0, &count));
  std::vector<compute_device_info> infos(static_cast<size_t>(count));
  for (compute_device_info& info : infos) info.struct_size = sizeof info;
  EXPECT_OK(compute_device_list(infos.data(), count, &count));
  std::vector<std::string> names;
  for (const compute_device_info& info : infos) names.emplace_back(info.name);
  return names;
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The good plugin is there, `faulty` has no device, and the report has all the parts.
void expect_rejected(const std::vector<std::string>& parts) {
  const auto names = device_names();
  EXPECT_TRUE(has(names, "cpu"));
  EXPECT_TRUE(has(names, "minimal0"));
  EXPECT_FALSE(has(names, "faulty0"));
  const std::string report = load_report();
  for (const std::string& part : parts) EXPECT_NE(report.find(part), std::string::npos) << part << "\n" << report;
}

// A folder that is gone after the test.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    char name[] = "/tmp/compute-robustness-XXXXXX";
    path_ = mkdtemp(name);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  const std::filesystem::path& path() const { return path_; }
  std::string write(const std::string& name, const std::string& contents) const {
    std::ofstream(path_ / name, std::ios::binary) << contents;
    chmod((path_ / name).c_str(), 0644);  // whatever the umask
    return (path_ / name).string();
  }

 private:
  std::filesystem::path path_;
};

std::string contents_of(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::string minimal_library() { return plugin_folder("minimal") + "/compute_plugin_minimal.so"; }

void use_folder(const TemporaryFolder& folder) {
  setenv("COMPUTE_PLUGIN_PATH", (folder.path().string() + ":" + plugin_folder("minimal")).c_str(), 1);
  setenv("COMPUTE_PROBE", "0", 0);
}

void use_verdicts_in(const TemporaryFolder& cache) {
  setenv("COMPUTE_CACHE_DIR", cache.path().c_str(), 1);
  setenv("COMPUTE_PROBE", "1", 0);
}

// ---- Files ----------------------------------------------------------------------------------------------------------

ISOLATED_TEST(Loader, MissingLibrariesAreAllNamed) {
  use_plugins({"missing_library", "minimal"});
  expect_rejected({"compute_plugin_missing_library.so", "libcompute_absent_one.so.7", "libcompute_absent_two.so.7"});
}

ISOLATED_TEST(Loader, UndefinedSymbolsAreNamed) {
  use_plugins({"undefined_symbol", "minimal"});
  expect_rejected({"compute_plugin_undefined_symbol.so", "compute_absent_function"});
}

ISOLATED_TEST(Loader, BothExportsMustBeThere) {
  use_plugins({"no_query", "no_open", "minimal"});
  expect_rejected({"compute_plugin_query", "compute_plugin_open"});
}

ISOLATED_TEST(Loader, AlienFilesAreNamed) {
  const TemporaryFolder folder;
  const std::string good = contents_of(minimal_library());
  ASSERT_GT(good.size(), sizeof(Elf64_Ehdr));
  folder.write("compute_plugin_text.so", "this is no library\n");
  folder.write("compute_plugin_empty.so", "");
  folder.write("compute_plugin_short.so", good.substr(0, 1000));
  std::string alien = good;
  reinterpret_cast<Elf64_Ehdr*>(alien.data())->e_machine = EM_S390;
  folder.write("compute_plugin_alien.so", alien);
  std::filesystem::create_directory(folder.path() / "compute_plugin_folder.so");
  std::filesystem::create_symlink("nowhere", folder.path() / "compute_plugin_dangling.so");
  mkfifo((folder.path() / "compute_plugin_fifo.so").c_str(), 0600);
  folder.write("broken.json", "{\"name\": ");
  folder.write("gone.json", "{\"name\": \"gone\", \"library\": \"compute_plugin_gone.so\"}");
  use_folder(folder);
  expect_rejected({"compute_plugin_text.so", "compute_plugin_empty.so", "compute_plugin_short.so",
                   "compute_plugin_alien.so", "compute_plugin_folder.so", "compute_plugin_dangling.so",
                   "compute_plugin_fifo.so", "broken.json", "gone"});
}

ISOLATED_TEST(Loader, UnreadableFilesAreNamed) {
  if (geteuid() == 0) GTEST_SKIP() << "root reads everything";
  const TemporaryFolder folder;
  const std::string file = folder.write("compute_plugin_secret.so", contents_of(minimal_library()));
  chmod(file.c_str(), 0);
  use_folder(folder);
  expect_rejected({"compute_plugin_secret.so", "ermission"});
}

ISOLATED_TEST(Loader, PlacesThatAreNotAbsoluteAreRefused) {
  setenv("COMPUTE_PLUGIN_PATH", ("plugins:" + plugin_folder("minimal")).c_str(), 1);
  EXPECT_TRUE(has(device_names(), "minimal0"));
  EXPECT_NE(load_report().find("plugins"), std::string::npos);
}

ISOLATED_TEST(Loader, NamedFilesReplaceEverything) {
  setenv("COMPUTE_PLUGIN_FILES", minimal_library().c_str(), 1);
  const auto names = device_names();
  EXPECT_EQ(names, (std::vector<std::string>{"cpu", "minimal0", "minimal1"}));
}

ISOLATED_TEST(Loader, TwoCopiesOfOnePluginAreOne) {
  const TemporaryFolder folder;
  folder.write("compute_plugin_minimal.so", contents_of(minimal_library()));
  use_folder(folder);
  const auto names = device_names();
  EXPECT_EQ(std::count(names.begin(), names.end(), "minimal0"), 1) << load_report();
}

// ---- Manifests and tables -------------------------------------------------------------------------------------------

// A rule of COMPUTE_FAULTY for which the plugin is rejected, and the report's text.
struct Rejection {
  friend void PrintTo(const Rejection& rejection, std::ostream* out) { *out << rejection.faults; }

  std::string name;
  std::string faults;
  std::vector<std::string> parts;
};

class RejectedPlugins : public testing::TestWithParam<Rejection> {};

TEST_P(RejectedPlugins, SayWhyAndHideNobody) {
  const Outcome outcome = run_in_child([&] {
    use_plugins({"faulty", "minimal"});
    set_faults(GetParam().faults);
    expect_rejected(GetParam().parts);
    Device device;
    const Error error(compute_device_open("faulty0", device.out()));
    ASSERT_NE(error, nullptr);
    const std::string message = compute_error_message(error.get());
    EXPECT_TRUE(compute_error_get_code(error.get()) == COMPUTE_ERROR_NOT_FOUND ||
                compute_error_get_code(error.get()) == COMPUTE_ERROR_INVALID_ARGUMENT)
        << message;
    for (const std::string& part : GetParam().parts) EXPECT_NE(message.find(part), std::string::npos) << message;
  });
  EXPECT_TRUE(outcome.exited(0)) << outcome.output;
}

INSTANTIATE_TEST_SUITE_P(
    Loader, RejectedPlugins,
    testing::Values(
        Rejection{"NoManifest", "manifest=null", {"NULL"}},
        Rejection{"ManifestOfSizeZero", "manifest=zero", {"struct_size 0"}},
        Rejection{"ManifestOfAnotherType", "manifest=type", {"struct_type"}},
        Rejection{"NewerInterface", "manifest=interface:7", {"7", "1"}},
        Rejection{"AnotherDraft", "manifest=draft:99", {"draft", "99"}},
        Rejection{"NameWithADigit", "manifest=name:faulty9", {"faulty9"}},
        Rejection{"NameOfNothing", "manifest=name:", {"name"}},
        Rejection{"NameWithBlanks", "manifest=name:fau lty", {"fau lty"}},
        Rejection{"NameOfSelectors", "manifest=name:auto", {"auto", "reserved in selectors"}},
        Rejection{"NameOfOurs", "manifest=name:OpenCL", {"opencl", "COMPUTE_PLUGIN_FILES"}},
        Rejection{"ManifestNotUnderstood", "manifest=next", {"0x8000004d", "must not be ignored"}},
        Rejection{"DeviceNotUnderstood", "devices=next", {"0x8000004d", "must not be ignored"}},
        Rejection{
            "PropertyNotUnderstood", "devices=property_next", {"a property", "0x8000004d", "must not be ignored"}},
        Rejection{
            "RequirementNotUnderstood", "requirement=next", {"a requirement", "0x8000004d", "must not be ignored"}},
        Rejection{"ManifestFlagsNotUnderstood", "manifest=flags:65536", {"0x10000", "must not be ignored"}},
        Rejection{"ErrorNotUnderstood", "open=error_next:INTERNAL", {"an error", "0x8000004d", "open fails as asked"}},
        Rejection{"DeviceOfSizeZero", "devices=zero", {"struct_size 0"}},
        Rejection{"TextWithoutData", "devices=text", {"description", "NULL"}},
        Rejection{"AnotherSanitizer", "manifest=sanitizer:memory", {"memory"}},
        Rejection{"QueryThrows", "query=throw", {"throws in query"}},
        Rejection{"OpenFails", "open=error:INTERNAL", {"open fails as asked"}},
        Rejection{"OpenThrows", "open=throw", {"throws in open"}}, Rejection{"OpenLies", "open=lie", {"table"}},
        Rejection{"NoTable", "table=null", {"table"}}, Rejection{"TableOfSizeZero", "table=zero", {"enumerate"}},
        Rejection{"TableWithoutDeviceOpen", "table=small", {"device_open"}},
        Rejection{"TableWithoutEnumerate", "table=without:enumerate", {"enumerate"}},
        Rejection{"EnumerateFails", "enumerate=error:INTERNAL", {"enumerate fails as asked"}},
        Rejection{"EnumerateThrows", "enumerate=throw", {"throws in enumerate"}}),
    [](const auto& info) { return info.param.name; });

ISOLATED_TEST(Loader, StructsOfOtherSizesAreAccepted) {
  use_plugins({"faulty"});
  set_faults("manifest=large;table=large;devices=large;device_table=large");
  const Device device = open("faulty0");
  const Tensor x = make_full(device, {4}, 2.0f);
  EXPECT_EQ(read<float>(x), std::vector<float>(4, 2.0f));
}

ISOLATED_TEST(Loader, RequirementsReachTheReport) {
  use_plugins({"faulty", "minimal"});
  set_faults("requirement=missing;devices=none");
  expect_rejected(
      {"libabsent", "libabsent.so.2", "libabsent.so.1", "no matrix products", "install the package absent"});
  Device device;
  EXPECT_FAILS(compute_device_open("faulty", device.out()), COMPUTE_ERROR_NOT_FOUND, "libabsent",
               "install the package absent");
}

ISOLATED_TEST(Loader, UnusableDevicesAreShownWithTheReason) {
  use_plugins({"faulty"});
  set_faults("devices=unusable");
  EXPECT_NE(load_report().find("the faulty driver is too old"), std::string::npos);
  Device device;
  EXPECT_FAILS(compute_device_open("faulty0", device.out()), COMPUTE_ERROR_NOT_FOUND, "faulty0",
               "the faulty driver is too old");
}

// ---- Devices --------------------------------------------------------------------------------------------------------

class UselessDevices : public testing::TestWithParam<Rejection> {};

TEST_P(UselessDevices, FailToOpenAndSayWhy) {
  const Outcome outcome = run_in_child([&] {
    use_plugins({"faulty"});
    set_faults(GetParam().faults);
    Device device;
    compute_error* error = compute_device_open("faulty0", device.out());
    ASSERT_NE(error, nullptr);
    const std::string message = compute_error_message(error);
    compute_error_free(error);
    EXPECT_EQ(device.get(), nullptr);
    for (const std::string& part : GetParam().parts) EXPECT_NE(message.find(part), std::string::npos) << message;
    set_faults("");
    EXPECT_OK(compute_device_open("faulty0", device.out()));  // it still works
  });
  EXPECT_TRUE(outcome.exited(0)) << outcome.output;
}

INSTANTIATE_TEST_SUITE_P(
    Loader, UselessDevices,
    testing::Values(
        Rejection{"OpenFails", "device_open=error:DEVICE_LOST", {"device_open fails as asked"}},
        Rejection{"OpenThrows", "device_open=throw", {"throws in device_open"}},
        Rejection{"OpenLies", "device_open=lie", {"faulty0", "table"}},
        Rejection{"NoTable", "device_table=null", {"faulty0", "table"}},
        Rejection{"OldTable", "device_table=small", {"faulty0", "plan_run"}},
        Rejection{"EmptyTable", "device_table=zero", {"faulty0"}},
        Rejection{"NoAllocation", "device_table=without:memory_allocate", {"faulty0", "memory_allocate"}},
        Rejection{"NoFill", "device_table=without:fill", {"faulty0", "fill"}},
        Rejection{"NoSync", "device_table=without:stream_sync", {"faulty0", "stream_sync"}},
        Rejection{"NoQuery", "device_table=without:op_query", {"faulty0", "op_query"}},
        Rejection{"NoCaps", "caps=null", {"faulty0", "caps", "NULL"}},
        Rejection{"OldCaps", "caps=small", {"faulty0", "caps", "struct_size"}},
        Rejection{"CapsNotUnderstood", "caps=next", {"faulty0", "caps", "0x8000004d"}},
        Rejection{"FlagsNotUnderstood", "caps=flags:65536", {"faulty0", "caps", "0x10000"}},
        Rejection{"HeapNotUnderstood", "caps=heap_next", {"faulty0", "caps", "heap", "0x8000004d"}},
        Rejection{"SecondHeapNotUnderstood", "caps=second_heap_next", {"faulty0", "caps", "heap", "0x8000004d"}},
        Rejection{"HeapFlagsNotUnderstood", "caps=heap_flags:131072", {"faulty0", "caps", "heap", "0x20000"}},
        Rejection{"HeapOfSizeZero", "caps=heap_zero", {"faulty0", "caps", "heap", "struct_size 0"}},
        Rejection{"NoHandle", "device_handle=zero", {"faulty0", "device_open", "returned 0"}},
        Rejection{"NoHeaps", "caps=no_heaps", {"faulty0", "heap"}},
        Rejection{"OddAlignment", "caps=alignment", {"faulty0", "alignment", "3"}},
        Rejection{"SmallAlignment", "caps=base_alignment", {"faulty0", "aligns allocations to 16 bytes", "64"}}),
    [](const auto& info) { return info.param.name; });

// ---- Files that are not wanted --------------------------------------------------------------------------------------

ISOLATED_TEST(Loader, FilesThatTheSelectorCannotMatchAreNotOpened) {
  setenv("COMPUTE_PROBE", "0", 1);
  setenv("COMPUTE_DEVICE", "minimal0", 1);
  use_plugins({"faulty", "minimal"});
  set_faults("load=exit:42");
  const Device device = open(nullptr);
  EXPECT_EQ(read<float>(make_full(device, {2}, 3.0f)), std::vector<float>(2, 3.0f));
  EXPECT_STREQ(compute_device_name(device.get()), "minimal0");
}

ISOLATED_TEST(Loader, FilesWhoseManifestStatesNoGpuAreNotOpenedForGpu) {
  setenv("COMPUTE_PROBE", "0", 1);
  const TemporaryFolder folder;
  const std::string library = plugin_folder("faulty") + "/compute_plugin_faulty.so";
  folder.write("faulty.json",
               "{\"name\": \"faulty\", \"library\": \"" + library + "\", \"devices\": [\"accelerator\", \"cpu\"]}");
  setenv("COMPUTE_PLUGIN_PATH", folder.path().c_str(), 1);
  Device device;
  set_faults("load=exit:42");
  EXPECT_OK(compute_device_open("gpu,cpu", device.out()));  // a GPU of another plugin, or cpu
  set_faults("");
  EXPECT_TRUE(has(device_names(), "faulty0"));  // it is available on request
}

// ---- What manifests declare -----------------------------------------------------------------------------------------

std::string setting_of(const char* name) {
  compute_text *value = nullptr, *origin = nullptr;
  EXPECT_OK(compute_config_get(name, &value, &origin));
  if (value == nullptr || origin == nullptr) return "";
  const std::string text = take_text(value);
  return text + " from " + take_text(origin);
}

void declare_mode(const TemporaryFolder& folder) {
  folder.write("minimal.json", "{\"name\": \"minimal\", \"library\": \"" + minimal_library() + R"(", "settings": [
    {"name": "COMPUTE_MINIMAL_WITHOUT", "kind": "text", "help": "what the device does without"},
    {"name": "COMPUTE_MINIMAL_MODE", "kind": "choice", "choices": ["fast", "exact"], "default": "fast", "help": "how"}]})");
  setenv("COMPUTE_PLUGIN_PATH", folder.path().c_str(), 1);
}

ISOLATED_TEST(Loader, SettingsThatAManifestDeclaresAreSettings) {
  const TemporaryFolder folder, config;
  declare_mode(folder);
  setenv("COMPUTE_CONFIG", config.write("config.toml", "[minimal]\nmode = \"exact\"\nwithout = \"pinned\"\n").c_str(),
         1);
  setenv("COMPUTE_MINIMAL_MODES", "fast", 1);
  static std::string lines;
  ASSERT_OK(compute_log_set_callback(
      [](compute_borrowed_log_record record, void*) { lines += std::string(record->text) + "\n"; }, nullptr));
  EXPECT_EQ(setting_of("COMPUTE_MINIMAL_MODE"), "exact from " + (config.path() / "config.toml").string() + ":2");
  compute_text* all = nullptr;
  ASSERT_OK(compute_config_describe(COMPUTE_FORMAT_TEXT, &all));
  EXPECT_NE(take_text(all).find("COMPUTE_MINIMAL_MODE\n  how\n"), std::string::npos);
  char program[] = "program", flag[] = "--compute-minimal-mode=fast";
  char* arguments[] = {program, flag, nullptr};
  int32_t count = 2;
  EXPECT_OK(compute_config_arguments(&count, arguments));
  EXPECT_EQ(count, 1);
  EXPECT_EQ(setting_of("minimal.mode"), "fast from --compute-minimal-mode");
  EXPECT_FAILS(compute_config_set("COMPUTE_MINIMAL_MODE", "slow"), COMPUTE_ERROR_INVALID_ARGUMENT, "fast, exact");
  EXPECT_FAILS(compute_config_set("COMPUTE_MINIMAL_MUDE", "fast"), COMPUTE_ERROR_NOT_FOUND, "COMPUTE_MINIMAL_MODE");
  const Device device = open("minimal0");
  EXPECT_NE(lines.find("\"COMPUTE_MINIMAL_MODES\" is not a setting; did you mean COMPUTE_MINIMAL_MODE?"),
            std::string::npos)
      << lines;
}

ISOLATED_TEST(Loader, AFaultyValueOfADeclaredSettingIsNamed) {
  const TemporaryFolder folder;
  declare_mode(folder);
  setenv("COMPUTE_MINIMAL_MODE", "slow", 1);
  Device device;
  EXPECT_FAILS(compute_device_open("cpu", device.out()), COMPUTE_ERROR_INVALID_ARGUMENT, "COMPUTE_MINIMAL_MODE",
               "slow");
  EXPECT_FAILS(compute_device_open("cpu", device.out()), COMPUTE_ERROR_INVALID_ARGUMENT, "COMPUTE_MINIMAL_MODE",
               "slow");
}

ISOLATED_TEST(Loader, KeysThatNobodyDeclaresAreRefused) {
  const TemporaryFolder folder, config;
  declare_mode(folder);
  setenv("COMPUTE_CONFIG", config.write("config.toml", "[minimal]\nmodus = \"exact\"\n").c_str(), 1);
  compute_text* text = nullptr;
  EXPECT_FAILS(compute_config_describe(COMPUTE_FORMAT_TEXT, &text), COMPUTE_ERROR_INVALID_ARGUMENT, "config.toml:2",
               "minimal.modus", "minimal.mode");
}

// Names are known by the manifests that are installed, also where files take the place of all folders.
ISOLATED_TEST(Loader, NamesOfPluginsThatAreNotLookedAtAreKnown) {
  setenv("COMPUTE_PLUGIN_FILES", minimal_library().c_str(), 1);
  Device device;
  EXPECT_FAILS(compute_device_open("opencl0:1", device.out()), COMPUTE_ERROR_NOT_FOUND, "opencl",
               "the plugin is not installed");
  EXPECT_FAILS(compute_device_open("cuda0", device.out()), COMPUTE_ERROR_NOT_FOUND, "cuda",
               "the plugin is not installed");
  EXPECT_OK(compute_device_open("cuda0,minimal0", device.out()));
  EXPECT_STREQ(compute_device_name(device), "minimal0");
  EXPECT_FAILS(compute_device_open("cdua0", device.out()), COMPUTE_ERROR_INVALID_ARGUMENT, "did you mean \"cuda\"?");
}

ISOLATED_TEST(Loader, OthersMayNotPrepareAPlugin) {
  const TemporaryFolder folder;
  const std::string file =
      folder.write("compute_plugin_faulty.so", contents_of(plugin_folder("faulty") + "/compute_plugin_faulty.so"));
  chmod(file.c_str(), 0777);
  use_folder(folder);
  set_faults("load=exit:42");
  expect_rejected(
      {"compute_plugin_faulty.so", "it is writable by everyone (mode 0777); set COMPUTE_TRUST_ALL=1 to use it anyway"});
}

// The path of a link decides which file is opened, so it is checked too.
ISOLATED_TEST(Loader, OthersMayNotLeadToAPlugin) {
  if (geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  const TemporaryFolder theirs;
  const std::string link = (theirs.path() / "link").string();
  std::filesystem::create_directory_symlink(plugin_folder("faulty"), link);
  ASSERT_EQ(lchown(link.c_str(), 1234, 1234), 0);
  ASSERT_EQ(chown(theirs.path().c_str(), 1234, 1234), 0);
  setenv("COMPUTE_PROBE", "0", 1);
  setenv("COMPUTE_PLUGIN_PATH", (link + ":" + plugin_folder("minimal")).c_str(), 1);
  set_faults("load=exit:42");
  expect_rejected({"compute_plugin_faulty.so", "is owned by user 1234; set COMPUTE_TRUST_ALL=1 to use it anyway"});
}

// A shortage of one plugin does not affect the others, and the next call tries it again.
ISOLATED_TEST(Loader, AShortageOfOnePluginIsItsOwn) {
  use_plugins({"faulty", "minimal"});
  for (const char* fault : {"open=error:OUT_OF_MEMORY", "enumerate=error:OUT_OF_MEMORY"}) {
    set_faults(fault);
    expect_rejected({"compute_plugin_faulty.so cannot be opened now"});
    Device device;
    EXPECT_OK(compute_device_open("auto", device.out()));
    EXPECT_OK(compute_device_open("faulty0,minimal0", device.out()));
    EXPECT_STREQ(compute_device_name(device), "minimal0") << fault;
    EXPECT_FAILS(compute_device_open("faulty0", device.out()), COMPUTE_ERROR_OUT_OF_MEMORY, "compute_plugin_faulty.so");
  }
  set_faults("");
  EXPECT_TRUE(has(device_names(), "faulty0"));
}

ISOLATED_TEST(Loader, HeapsThatLieAreFoundWhereThePluginIsChecked) {
  setenv("COMPUTE_DEBUG", "plugin", 1);
  use_plugins({"faulty", "minimal"});
  EXPECT_EQ(read<float>(make_full(open("minimal0"), {4}, 2.0f)), std::vector<float>(4, 2.0f));
  Device device;
  set_faults("caps=heap_flags:2");
  EXPECT_FAILS(compute_device_open("faulty0", device.out()), COMPUTE_ERROR_PLUGIN_REJECTED, "faulty0", "heap 0",
               "HOST_SPACE");
}

// Whatever the first device of a list does, the next one is tried, with a warning.
ISOLATED_TEST(Loader, AListGoesOnAfterADeviceThatFailsToOpen) {
  use_plugins({"faulty", "minimal"});
  for (const char* fault : {"throw", "error:INVALID_ARGUMENT", "error:OUT_OF_MEMORY", "stale", "lie"}) {
    set_faults(std::string("device_open=") + fault);
    Device device;
    EXPECT_OK(compute_device_open("faulty0,minimal0", device.out()));
    EXPECT_STREQ(compute_device_name(device), "minimal0") << fault;
  }
}

ISOLATED_TEST(Loader, BytesThatAreNoTextAreShownEscaped) {
  use_plugins({"faulty"});
  set_faults("devices=bytes");
  EXPECT_TRUE(has(device_names(), "faulty0"));
  EXPECT_EQ(load_report().find('\xff'), std::string::npos);
}

// ---- Crashes --------------------------------------------------------------------------------------------------------

// In process a crash is a crash, as the documentation says.
TEST(Loader, ACrashingPluginTakesTheProcessDown) {
  if (kSanitizer) GTEST_SKIP() << "a sanitizer ends the process another way";
  for (const char* faults : {"load=crash", "query=crash", "open=crash"}) {
    const Outcome outcome = run_in_child([&] {
      use_plugins({"faulty"});
      set_faults(faults);
      load_report();
    });
    EXPECT_TRUE(outcome.was_killed_by(SIGSEGV)) << faults << "\n" << outcome.output;
  }
}

#if defined(COMPUTE_HAS_PROBE)
// A new plugin is first probed in a separate process.
class ProbedPlugins : public testing::TestWithParam<Rejection> {};

TEST_P(ProbedPlugins, CannotTakeTheProcessDown) {
  const TemporaryFolder cache;
  const Outcome outcome = run_in_child([&] {
    use_verdicts_in(cache);
    use_plugins({"faulty", "minimal"});
    set_faults(GetParam().faults);
    // Enough for the plugin that does not hang, also under sanitizers and on a busy machine.
    if (GetParam().faults.find("hang") != std::string::npos) setenv("COMPUTE_PROBE_SECONDS", "10", 1);
    expect_rejected(GetParam().parts);
    const Device device = open("minimal0");
    EXPECT_EQ(read<float>(make_full(device, {2}, 3.0f)), std::vector<float>(2, 3.0f));
  });
  EXPECT_TRUE(outcome.exited(0)) << outcome.output;
}

INSTANTIATE_TEST_SUITE_P(
    Loader, ProbedPlugins,
    testing::Values(Rejection{"LoadCrashes", "load=crash", {"crashed in its probe: SIGSEGV in dlopen"}},
                    Rejection{"LoadExits", "load=exit:0", {"crashed in its probe: exit status 0 in dlopen"}},
                    Rejection{"LoadExitsWith3", "load=exit:3", {"exit status 3 in dlopen"}},
                    // A sanitizer ends the process before the exception has left dlopen.
                    Rejection{"LoadThrows",
                              "load=throw",
                              {kSanitizer ? "crashed in its probe: SIGABRT in dlopen"
                                          : "crashed in its probe: SIGABRT in dlopen, which threw an exception"}},
                    Rejection{"LoadHangs", "load=hang:60000", {"hung in its probe for 10 s in dlopen"}},
                    Rejection{"QueryCrashes", "query=crash", {"SIGSEGV in compute_plugin_query"}},
                    Rejection{"QueryExits", "query=exit:3", {"exit status 3 in compute_plugin_query"}},
                    Rejection{"QueryThrows", "query=throw", {"compute_plugin_query threw an exception"}},
                    Rejection{"OpenCrashes", "open=crash", {"SIGSEGV in compute_plugin_open"}},
                    Rejection{"OpenExits", "open=exit:0", {"exit status 0 in compute_plugin_open"}},
                    Rejection{"OpenHangs", "open=hang:60000", {"hung in its probe for 10 s in compute_plugin_open"}},
                    Rejection{"EnumerateCrashes", "enumerate=crash", {"SIGSEGV in plugin faulty: enumerate"}},
                    Rejection{"EnumerateExits", "enumerate=exit:1", {"exit status 1 in plugin faulty: enumerate"}}),
    [](const auto& info) { return info.param.name; });

// The file that is called the minimal plugin is another one each time.
void install(const TemporaryFolder& folder, const char* plugin) {
  const std::string target = (folder.path() / "compute_plugin_minimal.so").string();
  folder.write("new", contents_of(plugin_folder(plugin) + "/compute_plugin_" + plugin + ".so"));
  std::filesystem::rename(folder.path() / "new", target);
}

Outcome list_with(const TemporaryFolder& folder, const TemporaryFolder& cache, const char* faults, const char* probe) {
  return run_in_child([&] {
    use_verdicts_in(cache);
    setenv("COMPUTE_PROBE", probe, 1);
    setenv("COMPUTE_LOG", "debug", 1);
    setenv("COMPUTE_PLUGIN_FILES", (folder.path() / "compute_plugin_minimal.so").c_str(), 1);
    set_faults(faults);
    std::fputs(load_report().c_str(), stdout);
  });
}

bool says(const Outcome& outcome, const char* part) { return outcome.output.find(part) != std::string::npos; }

TEST(Loader, AVerdictHoldsUntilThePluginChanges) {
  const TemporaryFolder folder, cache;
  const char* const kTrying = "probing ";
  const char* const kCrashed = "crashed in its probe: SIGSEGV in dlopen";
  install(folder, "faulty");
  const Outcome first = list_with(folder, cache, "load=crash", "1");
  EXPECT_TRUE(first.exited(0) && says(first, kTrying) && says(first, kCrashed)) << first.output;
  const Outcome again = list_with(folder, cache, "load=crash", "1");
  EXPECT_TRUE(again.exited(0) && !says(again, kTrying) && says(again, kCrashed)) << again.output;

  install(folder, "minimal");  // repaired
  const Outcome repaired = list_with(folder, cache, "load=crash", "1");
  EXPECT_TRUE(repaired.exited(0) && says(repaired, kTrying) && says(repaired, "minimal1")) << repaired.output;
  const Outcome known = list_with(folder, cache, "load=crash", "1");
  EXPECT_TRUE(known.exited(0) && !says(known, kTrying) && says(known, "minimal1")) << known.output;

  install(folder, "faulty");  // broken after a good verdict
  const Outcome broken = list_with(folder, cache, "load=crash", "1");
  EXPECT_TRUE(broken.exited(0) && says(broken, kTrying) && says(broken, kCrashed)) << broken.output;
}

// A colon separates paths in the setting by which the helper names the plugin.
TEST(Loader, AFileWithAColonInItsPathIsTried) {
  const TemporaryFolder folder, cache;
  std::filesystem::create_directory(folder.path() / "a:b");
  std::filesystem::copy_file(plugin_folder("faulty") + "/compute_plugin_faulty.so",
                             folder.path() / "a:b/compute_plugin_faulty.so");
  const Outcome outcome = run_in_child([&] {
    use_verdicts_in(cache);
    setenv("COMPUTE_PLUGIN_PATH", ((folder.path() / "a\\:b").string() + ":" + plugin_folder("minimal")).c_str(), 1);
    set_faults("load=crash");
    expect_rejected({"a:b/compute_plugin_faulty.so", "crashed in its probe: SIGSEGV in dlopen"});
  });
  EXPECT_TRUE(outcome.exited(0)) << outcome.output;
}

TEST(Loader, AFileThatIsReplacedWhileItIsProbedIsNotLoaded) {
  const TemporaryFolder folder, cache;
  install(folder, "minimal");
  const Outcome replaced = run_in_child([&] {
    use_verdicts_in(cache);
    setenv("COMPUTE_PLUGIN_FILES", (folder.path() / "compute_plugin_minimal.so").c_str(), 1);
    ASSERT_OK(compute_log_set_callback(
        [](compute_borrowed_log_record record, void* at) {
          if (std::string_view(record->text).starts_with("probing "))
            install(*static_cast<const TemporaryFolder*>(at), "minimal");
        },
        const_cast<TemporaryFolder*>(&folder)));
    std::fputs(load_report().c_str(), stdout);
  });
  EXPECT_TRUE(replaced.exited(0) && says(replaced, "its file was replaced while it was probed")) << replaced.output;
  const Outcome later = list_with(folder, cache, "", "1");
  EXPECT_TRUE(later.exited(0) && says(later, "probing ") && says(later, "minimal1")) << later.output;
}

// Nobody has named the plugin: without a line its user would not know why another device is used.
TEST(Loader, AutoTellsOfAPluginThatCrashedInItsProbe) {
  const TemporaryFolder cache;
  for (const bool is_known : {false, true}) {
    const Outcome outcome = run_in_child([&] {
      use_verdicts_in(cache);
      use_plugins({"faulty", "minimal"});
      set_faults("load=crash");
      setenv("COMPUTE_LOG", "info", 1);
      const Device device = open("auto");
      EXPECT_STREQ(compute_device_name(device), "minimal0");
    });
    EXPECT_TRUE(outcome.exited(0)) << outcome.output;
    EXPECT_TRUE(says(outcome, "compute_plugin_faulty.so is left out: it crashed in its probe: SIGSEGV in dlopen"))
        << is_known << outcome.output;
  }
}

// Like compute doctor: probes again despite an earlier good verdict.
TEST(Loader, AlwaysTriesAfresh) {
  const TemporaryFolder folder, cache;
  install(folder, "faulty");
  EXPECT_TRUE(
      list_with(folder, cache, "", "1").exited(0));  // passed; its name differs from its file's, which is not a crash
  const Outcome doctor = list_with(folder, cache, "load=crash", "always");
  EXPECT_TRUE(doctor.exited(0) && says(doctor, "SIGSEGV in dlopen")) << doctor.output;
  const Outcome later = list_with(folder, cache, "load=crash", "1");  // what it found holds
  EXPECT_TRUE(later.exited(0) && says(later, "SIGSEGV in dlopen")) << later.output;
}

TEST(Loader, AVerdictIsBelievedOnlyWhereNobodyElseMayHaveWrittenIt) {
  const TemporaryFolder folder, cache;
  install(folder, "minimal");
  EXPECT_TRUE(says(list_with(folder, cache, "", "1"), "probing "));
  const auto verdict = [&] {
    for (const auto& entry : std::filesystem::directory_iterator(cache.path() / "probe")) return entry.path();
    return std::filesystem::path();
  };
  const std::filesystem::path file = verdict();
  const std::string good = contents_of(file);
  EXPECT_FALSE(says(list_with(folder, cache, "", "1"), "probing "));
  const auto is_tried_again = [&](const char* what) {
    const Outcome outcome = list_with(folder, cache, "", "1");
    EXPECT_TRUE(outcome.exited(0) && says(outcome, "probing ") && says(outcome, "minimal1")) << what << "\n"
                                                                                             << outcome.output;
  };
  chmod(file.c_str(), 0666);
  is_tried_again("writable by others");
  std::filesystem::remove(file);
  mkfifo(file.c_str(), 0600);
  is_tried_again("a FIFO");
  std::filesystem::remove(file);
  std::ofstream(cache.path() / "elsewhere") << good;
  std::filesystem::create_symlink(cache.path() / "elsewhere", file);
  is_tried_again("a link");
  std::filesystem::remove(file);
  std::ofstream(file) << good.substr(0, good.size() / 2);
  is_tried_again("half of it");
  std::ofstream(file) << good << "x";
  is_tried_again("damaged");
  EXPECT_FALSE(says(list_with(folder, cache, "", "1"), "probing "));
  chmod((cache.path() / "probe").c_str(), 0777);
  is_tried_again("a folder that others may write to");
}
#endif

}  // namespace
}  // namespace robustness
