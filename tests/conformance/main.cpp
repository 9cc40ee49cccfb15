// SPDX-License-Identifier: Apache-2.0
// compute-cts: opens the devices, runs every test on each, and reports the results.
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "options.hpp"
#include "registry.hpp"
#include "report.hpp"
#include "shards.hpp"

namespace compute::conformance {

namespace {

// What --level quick may cost on a device that compiles.
constexpr int64_t kQuickKernelsPerOp = 5;

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
  ConformanceTest(Target& target, const conformance::Test& test, ShardLog& log)
      : target_(target), test_(test), log_(log) {}

  void TestBody() override {
    const std::string name = test_.group + "." + test_.name;
    log_.begin(target_.session->name() + "/" + name);
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
      if (!listed && !dynamic_cast<const Lacking*>(&refusal) && missing_dtypes().empty()) {
        ADD_FAILURE() << "refused, but not in the list of what " << target_.session->plugin()
                      << " cannot do: " << refusal.what();
      }
      finish(HasFailure() ? Ending::FAIL : Ending::UNSUPPORTED, refusal.what());
      if (!HasFailure()) GTEST_SKIP() << refusal.what();
    }
  }

 private:
  // Those that the device left to the host count too: such an op passes through the device.
  int64_t ops_run() const {
    const compute_device_statistics statistics = target_.session->statistics();
    return statistics.ops_run + statistics.ops_fallback;
  }

  void run() {
    target_.session->forget_uses();
    const int64_t before = ops_run();
    try {
      test_.body(*target_.session);
    } catch (const Stop&) {
    } catch (const UnexpectedError& error) {
      ADD_FAILURE() << error.what();
    } catch (const std::exception& error) {
      if (dynamic_cast<const Unsupported*>(&error)) throw;
      ADD_FAILURE() << "the test itself threw: " << error.what();
    }
    if (HasFailure() || !test_.runs_ops || ops_run() != before) return;
    const std::string missing = missing_dtypes();
    if (!missing.empty()) throw Lacking(target_.session->name() + " does not report " + missing);
    if (target_.known.unsupported(test_.group + "." + test_.name)) throw Unsupported("it ran no op");
    ADD_FAILURE() << "no op reached " << target_.session->name() << ": the test has verified nothing";
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
      ADD_FAILURE() << "passed, but is expected to fail (" << reason << "): remove it from the list";
      finish(Ending::FAIL, "unexpected pass");
    } else {
      finish(Ending::XFAIL, reason);
      GTEST_SKIP() << "expected to fail: " << reason;
    }
  }

  // The dtypes that the test needs and the device does not support sufficiently.
  std::string missing_dtypes() const {
    constexpr uint32_t kComputes =
        COMPUTE_DTYPE_LEVEL_STORAGE | COMPUTE_DTYPE_LEVEL_CONVERT | COMPUTE_DTYPE_LEVEL_ARITHMETIC;
    const Session& session = *target_.session;
    std::string missing;
    for (const oracle::DtypeInfo& info : oracle::kDtypes) {
      const bool named = std::find(test_.dtypes.begin(), test_.dtypes.end(), info.id) != test_.dtypes.end();
      const uint32_t needs = named ? static_cast<uint32_t>(test_.needs) : kComputes;
      if ((!named && !session.was_used(info.id)) || session.states(info.id, needs)) continue;
      missing += (missing.empty() ? "" : ", ") + std::string(info.name);
    }
    return missing;
  }

  void finish(Ending ending, const std::string& reason) {
    const std::string name = test_.group + "." + test_.name;
    target_.endings[name] = ending;
    log_.end(ending);
    if (!reason.empty()) target_.reasons[name] = reason;
  }

  Target& target_;
  const conformance::Test& test_;
  ShardLog& log_;
};

// Tells how many tests there are, once the filter and the shard have been applied.
class CountTests : public testing::EmptyTestEventListener {
 public:
  explicit CountTests(ShardLog& log) : log_(log) {}
  void OnTestIterationStart(const testing::UnitTest& program, int) override { log_.tests(program.test_to_run_count()); }

 private:
  ShardLog& log_;
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

// The lists are installed next to the program; in the build tree they are in the source tree.
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

std::string load_report(int32_t format) {
  compute_text* text = nullptr;
  check(compute_load_report(format, &text));
  std::string report = compute_text_data(text);
  compute_text_free(text);
  return report;
}

// The devices of the plugins that --plugin names. Throws, with the load report, if one of them is missing or refused,
// or if they have no device: what would be tested then is another plugin.
std::vector<std::string> devices_of_plugins(const Options& options) {
  std::string files;
  for (const std::string& file : options.plugins)
    files += (files.empty() ? "" : ":") + std::filesystem::absolute(file).string();
  check(compute_config_set("COMPUTE_PLUGIN_FILES", files.c_str()));
  static_cast<void>(visible_devices());
  const auto report = nlohmann::json::parse(load_report(COMPUTE_FORMAT_JSON));
  std::vector<std::string> devices;
  bool is_refused = !report.at("refused").empty();
  for (const auto& plugin : report.at("plugins")) {
    is_refused = is_refused || plugin.at("rejected").is_string();
    for (const auto& device : plugin.at("devices")) devices.push_back(device.at("name"));
  }
  if (is_refused || devices.empty()) {
    throw std::runtime_error(std::string(is_refused ? "a plugin cannot be loaded" : "the plugins have no device") +
                             "\n" + load_report(COMPUTE_FORMAT_TEXT));
  }
  return devices;
}

std::vector<Target> open_targets(const Options& options, const std::vector<std::string>& of_plugins) {
  std::vector<std::string> selectors = !options.devices.empty() ? options.devices : of_plugins;
  if (selectors.empty()) {
    for (const compute_device_info& info : visible_devices()) selectors.push_back(info.name);
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

Totals totals_of(const std::vector<Target>& targets) {
  Totals totals;
  for (const Target& target : targets) {
    for (const auto& [name, ending] : target.endings) ++totals.count[static_cast<int>(ending)];
  }
  return totals;
}

void print_heading(const Options& options, const Registry& registry, const std::vector<Target>& targets) {
  std::cout << "compute-cts: level " << level_name(options.level) << ", " << registry.tests().size() << " tests on";
  for (const Target& target : targets) std::cout << " " << target.session->name() << " (" << target.description << ")";
  std::cout << std::endl;
}

// True if a device compiled more kernels than a level may cost.
bool print_statistics(const Options& options, const std::vector<Target>& targets) {
  bool too_many_kernels = false;
  const auto most = kQuickKernelsPerOp * static_cast<int64_t>(op_rows().size());
  for (const Target& target : targets) {
    const compute_device_statistics s = target.session->statistics();
    std::cout << target.session->name() << ": " << s.ops_run << " ops run, " << s.plans_prepared << " plans, "
              << s.kernels_compiled << " kernels compiled, " << s.ops_fallback << " fallbacks\n";
    if (options.level != Level::QUICK || s.kernels_compiled <= most) continue;
    too_many_kernels = true;
    std::cout << target.session->name() << " compiled more than " << most << " kernels\n";
  }
  return too_many_kernels;
}

int run(int argc, char** argv) {
  std::vector<char*> given(argv, argv + argc);
  Options options = read_options(argc, argv);
  if (options.help) {
    std::cout << kUsage;
    return 0;
  }
  std::vector<std::string> of_plugins;
  if (!options.plugins.empty() && !options.list) of_plugins = devices_of_plugins(options);
  if (options.jobs > 1 && !options.list) return run_in_shards(options, static_cast<int>(given.size()), given.data());
  // What the device cannot run is to be seen, not run elsewhere.
  check(compute_config_set("COMPUTE_FALLBACK", "error"));
  // Before the flags are read: the printer is chosen then.
  if (!options.verbose) GTEST_FLAG_SET(brief, true);
  testing::InitGoogleTest(&argc, argv);

  Registry registry(options.level);
  add_device_tests(registry);
  add_tensor_tests(registry);
  add_host_tests(registry);
  add_interop_tests(registry);
  add_kernel_tests(registry);
  add_stream_tests(registry);
  add_elementwise_tests(registry);
  add_promotion_tests(registry);
  add_quantized_tests(registry);
  add_expression_tests(registry);
  add_reduce_tests(registry);
  add_network_tests(registry);
  add_determinism_tests(registry);
  add_random_tests(registry);
  add_range_tests(registry);
  add_sorting_tests(registry);
  add_softmax_tests(registry);
  add_linalg_tests(registry);
  add_matmul_tests(registry);
  add_convolution_tests(registry);
  add_movement_tests(registry);
  add_float8_tests(registry);
  add_fourier_tests(registry);
  add_creation_tests(registry);
  add_gradient_tests(registry);
  add_graph_tests(registry);
  add_collective_tests(registry);
  add_memory_tests(registry);
  add_dlpack_tests(registry);
  add_error_tests(registry);
  if (options.list) {
    for (const Test& test : registry.tests()) std::cout << test.group << "." << test.name << "\n";
    return 0;
  }

  std::vector<Target> targets = open_targets(options, of_plugins);
  if (targets.empty()) throw std::runtime_error("no device to test");
  const bool is_shard = !options.shard_log.empty();
  if (!is_shard) print_heading(options, registry, targets);
  ShardLog log(options.shard_log);
  if (is_shard) testing::UnitTest::GetInstance()->listeners().Append(new CountTests(log));
  for (Target& target : targets) {
    for (const Test& test : registry.tests()) {
      testing::RegisterTest(
          suite_name(target.session->name(), test.group).c_str(), test.name.c_str(), nullptr, nullptr, __FILE__,
          __LINE__, [&target, &test, &log]() -> ConformanceTest* { return new ConformanceTest(target, test, log); });
    }
  }
  const bool failed = RUN_ALL_TESTS() != 0;
  if (options.wants_matrix()) write_matrix(support_matrix(targets, registry.tests()), options.json, options.matrix);

  if (is_shard) {
    for (const Target& target : targets) log.device(target);
    log.done();
    return failed ? 1 : 0;
  }
  const bool too_many_kernels = print_statistics(options, targets);
  const Totals totals = totals_of(targets);
  print_totals(totals);
  if (failed || too_many_kernels) return 1;
  return totals.run_at_all() == 0 ? kNothingTested : 0;
}

}  // namespace

}  // namespace compute::conformance

int main(int argc, char** argv) {
  setenv("COMPUTE_HANG_SECONDS", "300", 0);  // a stream without progress fails its test, and the others run
  int status = compute::conformance::kNothingTested;
  try {
    status = compute::conformance::run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "compute-cts: " << error.what() << "\n";
  }
  // All handles are released: only the plugins' threads are left.
  int32_t drained = 0;
  compute_error_free(compute_shutdown(int64_t{10} * 1000 * 1000 * 1000, &drained));
  if (!drained) std::cerr << "compute-cts: work was still running 10 seconds after the last test\n";
  return drained ? status : compute::conformance::kNothingTested;
}
