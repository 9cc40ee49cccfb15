// SPDX-License-Identifier: Apache-2.0
// compute-cts: opens the devices, runs every test on each of them and says how it went.
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>

#include "options.hpp"
#include "registry.hpp"
#include "report.hpp"

namespace compute::conformance {

namespace {

// What --level quick may cost on a device that compiles.
constexpr int64_t kQuickKernels = 300;

// GoogleTest's filter has meanings for ':' and '-'; device names have the first.
std::string suite_name(const std::string& device, const std::string& group) {
  std::string text = device + "/" + group;
  for (char& c : text) {
    if (c == ':') c = '_';
  }
  return text;
}

// ---- Running one test ----------------------------------------------------------------------------------------------

class ConformanceTest : public testing::Test {
 public:
  ConformanceTest(Target& target, const conformance::Test& test) : target_(target), test_(test) {}

  void TestBody() override {
    const std::string name = test_.group + "." + test_.name;
    const auto expected = target_.known.expected_to_fail(name);
    try {
      if (expected) {
        run_expecting_failure(*expected);
      } else {
        run();
        finish(HasFailure() ? Ending::FAIL : Ending::PASS, "");
      }
    } catch (const Unsupported& refusal) {
      const auto listed = target_.known.unsupported(name);
      if (!listed && device_has_dtypes()) {
        ADD_FAILURE() << "refused, which " << target_.session->plugin()
                      << "'s list of what it cannot do does not name: " << refusal.what();
      }
      finish(HasFailure() ? Ending::FAIL : Ending::UNSUPPORTED, refusal.what());
      if (!HasFailure()) GTEST_SKIP() << refusal.what();
    }
  }

 private:
  void run() {
    const int64_t before = target_.session->statistics().ops_run;
    try {
      test_.body(*target_.session);
    } catch (const Stop&) {
    } catch (const UnexpectedError& error) {
      ADD_FAILURE() << error.what();
    } catch (const std::exception& error) {
      if (dynamic_cast<const Unsupported*>(&error)) throw;
      ADD_FAILURE() << "the test itself threw: " << error.what();
    }
    if (test_.runs_ops && target_.session->statistics().ops_run == before) {
      ADD_FAILURE() << "no op reached " << target_.session->name() << ": the test has shown nothing";
    }
  }

  void run_expecting_failure(const std::string& reason) {
    testing::TestPartResultArray results;
    {
      testing::ScopedFakeTestPartResultReporter reporter(
          testing::ScopedFakeTestPartResultReporter::INTERCEPT_ALL_THREADS, &results);
      run();
    }
    bool failed = false;
    for (int i = 0; i < results.size(); ++i) failed = failed || results.GetTestPartResult(i).failed();
    if (!failed) {
      ADD_FAILURE() << "passed, but is expected to fail (" << reason << "): take it off the list";
      finish(Ending::FAIL, "unexpected pass");
    } else {
      finish(Ending::XFAIL, reason);
      GTEST_SKIP() << "expected to fail: " << reason;
    }
  }

  bool device_has_dtypes() const {
    for (Dtype dtype : test_.dtypes) {
      if (!target_.session->supports(dtype, test_.needs)) return false;
    }
    return true;
  }

  void finish(Ending ending, const std::string& reason) {
    const std::string name = test_.group + "." + test_.name;
    target_.endings[name] = ending;
    if (!reason.empty()) target_.reasons[name] = reason;
  }

  Target& target_;
  const conformance::Test& test_;
};

// ---- Which devices -------------------------------------------------------------------------------------------------

std::vector<compute_device_info> visible_devices() {
  int64_t count = 0;
  check(compute_device_list(nullptr, 0, &count));
  compute_device_info blank{};
  blank.struct_size = sizeof blank;
  blank.struct_type = COMPUTE_STRUCT_DEVICE_INFO;
  std::vector<compute_device_info> infos(static_cast<size_t>(count), blank);
  check(compute_device_list(infos.data(), count, &count));
  infos.resize(static_cast<size_t>(std::min<int64_t>(count, static_cast<int64_t>(infos.size()))));
  return infos;
}

// The installed lists lie beside the program; in the build tree, where they are kept.
std::string known_file(const std::string& plugin) {
  std::error_code ignored;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  const std::filesystem::path candidates[] = {
      program.parent_path() / COMPUTE_CTS_KNOWN_DIR_FROM_BIN / (plugin + ".txt"),
      std::filesystem::path(COMPUTE_CTS_KNOWN_DIR_SOURCE) / (plugin + ".txt")};
  for (const std::filesystem::path& path : candidates) {
    if (std::filesystem::exists(path, ignored)) return path.string();
  }
  return "";
}

std::vector<Target> open_targets(const Options& options) {
  std::vector<std::string> selectors = options.devices;
  if (selectors.empty()) {
    const std::vector<compute_device_info> visible = visible_devices();
    for (const compute_device_info& info : visible) {
      // Among plugins that were named, cpu without its plugin has memory and no ops.
      if (options.plugins.empty() || visible.size() == 1 || std::string_view(info.name) != "cpu")
        selectors.push_back(info.name);
    }
  }
  std::vector<Target> targets;
  for (const std::string& selector : selectors) {
    Device device;
    check(compute_device_open(selector.c_str(), device.out()));
    const auto same = [&](const Target& target) { return target.session->device() == device.get(); };
    if (std::any_of(targets.begin(), targets.end(), same)) continue;
    compute_device_info info{};
    info.struct_size = sizeof info;
    info.struct_type = COMPUTE_STRUCT_DEVICE_INFO;
    check(compute_device_get_info(device, &info));
    Target& target = targets.emplace_back();
    target.session = std::make_unique<Session>(device, info, options.level);
    target.description = info.description;
    if (const std::string file = known_file(info.plugin); !file.empty()) target.known.read(file);
    for (const std::string& file : options.known_files) target.known.read(file);
  }
  return targets;
}

// ---- What is said about it -----------------------------------------------------------------------------------------

struct Totals {
  int64_t count[4] = {};
  int64_t of(Ending ending) const { return count[static_cast<int>(ending)]; }
};

Totals totals_of(const std::vector<Target>& targets) {
  Totals totals;
  for (const Target& target : targets) {
    for (const auto& [name, ending] : target.endings) ++totals.count[static_cast<int>(ending)];
  }
  return totals;
}

int run(int argc, char** argv) {
  Options options = read_options(argc, argv);
  if (options.help) {
    std::cout << kUsage;
    return 0;
  }
  if (!options.plugins.empty()) {
    std::string files;
    for (const std::string& file : options.plugins)
      files += (files.empty() ? "" : ":") + std::filesystem::absolute(file).string();
    check(compute_config_set("COMPUTE_PLUGIN_FILES", files.c_str()));
  }
  // What the device cannot run is to be seen, not run elsewhere.
  check(compute_config_set("COMPUTE_FALLBACK", "error"));
  // Before the flags are read: the printer is chosen then.
  if (!options.verbose) GTEST_FLAG_SET(brief, true);
  testing::InitGoogleTest(&argc, argv);

  Registry registry(options.level);
  add_device_tests(registry);
  add_tensor_tests(registry);
  add_host_tests(registry);
  add_stream_tests(registry);
  add_elementwise_tests(registry);
  add_promotion_tests(registry);
  add_expression_tests(registry);
  add_reduce_tests(registry);
  add_matmul_tests(registry);
  add_movement_tests(registry);
  add_creation_tests(registry);
  add_graph_tests(registry);
  add_memory_tests(registry);
  add_dlpack_tests(registry);
  add_error_tests(registry);
  if (options.list) {
    for (const Test& test : registry.tests()) std::cout << test.group << "." << test.name << "\n";
    return 0;
  }

  std::vector<Target> targets = open_targets(options);
  if (targets.empty()) throw std::runtime_error("no device to test");
  static constexpr const char* kLevels[] = {"smoke", "quick", "full"};
  std::cout << "compute-cts: level " << kLevels[static_cast<int>(options.level)] << ", " << registry.tests().size()
            << " tests on";
  for (const Target& target : targets) std::cout << " " << target.session->name() << " (" << target.description << ")";
  std::cout << std::endl;
  for (Target& target : targets) {
    for (const Test& test : registry.tests()) {
      testing::RegisterTest(suite_name(target.session->name(), test.group).c_str(), test.name.c_str(), nullptr, nullptr,
                            __FILE__, __LINE__,
                            [&target, &test]() -> ConformanceTest* { return new ConformanceTest(target, test); });
    }
  }
  const bool failed = RUN_ALL_TESTS() != 0;
  if (!options.json.empty()) write_matrix(targets, registry.tests(), options.json);

  const Totals totals = totals_of(targets);
  for (const Target& target : targets) {
    const compute_device_statistics s = target.session->statistics();
    std::cout << target.session->name() << ": " << s.ops_run << " ops run, " << s.plans_prepared << " plans, "
              << s.kernels_compiled << " kernels compiled, " << s.ops_fallback << " fallbacks\n";
  }
  std::cout << "PASS " << totals.of(Ending::PASS) << ", FAIL " << totals.of(Ending::FAIL) << ", UNSUPPORTED "
            << totals.of(Ending::UNSUPPORTED) << ", XFAIL " << totals.of(Ending::XFAIL) << "\n";
  bool too_many_kernels = false;
  for (const Target& target : targets) {
    if (options.level != Level::QUICK || target.session->statistics().kernels_compiled <= kQuickKernels) continue;
    too_many_kernels = true;
    std::cout << target.session->name() << " compiled more than " << kQuickKernels << " kernels\n";
  }
  const int64_t run_at_all = totals.of(Ending::PASS) + totals.of(Ending::FAIL) + totals.of(Ending::XFAIL);
  if (run_at_all == 0) std::cout << "no test ran\n";
  std::cout << totals.of(Ending::PASS) << " passed, " << totals.of(Ending::FAIL) << " failed, "
            << totals.of(Ending::UNSUPPORTED) + totals.of(Ending::XFAIL) << " skipped" << std::endl;
  return failed || too_many_kernels || run_at_all == 0 ? 1 : 0;
}

}  // namespace

}  // namespace compute::conformance

int main(int argc, char** argv) {
  int status = 2;
  try {
    status = compute::conformance::run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "compute-cts: " << error.what() << "\n";
  }
  // All handles are released: what is left are the plugins' threads.
  int32_t drained = 0;
  compute_error_free(compute_shutdown(int64_t{10} * 1000 * 1000 * 1000, &drained));
  if (!drained) std::cerr << "compute-cts: work was still running 10 seconds after the last test\n";
  return drained ? status : 2;
}
