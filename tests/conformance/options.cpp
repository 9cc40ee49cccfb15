// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <sched.h>

#include <charconv>
#include <cstdlib>
#include <functional>

namespace compute::conformance {

const char* const kUsage =
    R"(compute-cts: the conformance tests of a compute device, judged against an oracle in higher precision.

  compute-cts [--device D]... [--level smoke|quick|full] [options]

  --device D      a device (cpu, cuda0, opencl0:1); repeated or separated by commas. Default: every visible device, or
                  those that COMPUTE_TEST_DEVICES names
  --level L       smoke, quick or full (default), see below
  --jobs N        divides the tests among N processes; 0: one per processor
  --known FILE    what the device cannot do, besides the installed list of its plugin; repeated
  --plugin FILE   a plugin file to load in place of the installed ones; repeated
  --json FILE     writes the support matrix: per device, op and dtype, how it is run and how that ended ("-": stdout)
  --matrix FILE   the same as a table of text, an op per line and a dtype per column
  --list          prints the tests' names and runs none
  --verbose       one line per test
  --gtest_...     as every GoogleTest program, --gtest_filter=cpu/elementwise.exp_* among them

A passing run means, for every device that it lists (with the time of one process on the device cpu, and the number of
kernels of a plugin that compiles one for each op, of which a C compiler makes about 15 in a second):
  smoke   1 second, 450 kernels. Each op gives correct results for one dtype, in contiguous memory. For a first check,
          and under slow tools.
  quick   5 seconds, at most 5 kernels an op. Each op for one dtype of each kind (bool, int32, float32, complex64) on
          special values, contiguous and strided; tensors, streams, graphs, errors and memory behave as compute.h says.
          Other dtypes are not tested.
  full    6 minutes, thousands of kernels. Each op in every dtype that the device reports, in every layout, in place and
          into views, at lengths around the ends of vectors, and with every value of the half types; memory does not
          grow over 100,000 shapes. A plugin should pass this level before it is released.
  Dtypes that the device does not report and optional extensions that it lacks are not tested: they count as
  UNSUPPORTED. Speed is not tested.

A file for --known has two lists of lines TEST REASON; * in a test's name matches any text, # begins a comment:
  [unsupported]         may permanently fail with UNSUPPORTED (or be skipped: "ran no op")
    matmul.matmul_int*    the matrix unit has no integers
  [expected to fail]    fails today and is to be fixed; a pass then counts as a failure
    elementwise.pow_complex64   the driver's log loses the last 3 bits
A test's name is GROUP.NAME as --list prints it, without the device. Every entry must have a reason.

The exit status is 0 if at least one device was tested and nothing failed, 1 if something did or a process of --jobs
crashed, 2 if nothing could be tested. The last line is "N passed, N failed, N skipped"; skipped are tests that the
device cannot run or is expected to fail.
)";

namespace {

void add_list(std::vector<std::string>& list, const std::string& text) {
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin) list.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
}

int usable_processors() {
  cpu_set_t usable;
  return sched_getaffinity(0, sizeof usable, &usable) == 0 ? CPU_COUNT(&usable) : 1;
}

int jobs_of(const std::string& text) {
  int jobs = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), jobs);
  if (error != std::errc() || end != text.data() + text.size() || jobs < 0 || jobs > 1024)
    throw std::runtime_error("--jobs must be a number from 0 to 1024, not " + text);
  return jobs == 0 ? usable_processors() : jobs;
}

Level level_of(const std::string& text) {
  if (text == "smoke") return Level::SMOKE;
  if (text == "quick") return Level::QUICK;
  if (text == "full") return Level::FULL;
  throw std::runtime_error("--level must be smoke, quick or full, not " + text);
}

}  // namespace

const char* level_name(Level level) {
  static constexpr const char* kLevels[] = {"smoke", "quick", "full"};
  return kLevels[static_cast<int>(level)];
}

Options read_options(int& argc, char** argv) {
  Options options;
  const struct {
    std::string name;
    std::function<void(const std::string&)> take;
  } kWithValue[] = {
      {"--device", [&](const std::string& value) { add_list(options.devices, value); }},
      {"--level", [&](const std::string& value) { options.level = level_of(value); }},
      {"--known", [&](const std::string& value) { options.known_files.push_back(value); }},
      {"--plugin", [&](const std::string& value) { options.plugins.push_back(value); }},
      {"--json", [&](const std::string& value) { options.json = value; }},
      {"--matrix", [&](const std::string& value) { options.matrix = value; }},
      {"--jobs", [&](const std::string& value) { options.jobs = jobs_of(value); }},
      {"--shard-log", [&](const std::string& value) { options.shard_log = value; }},
  };
  int kept = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.starts_with("--gtest_")) {
      argv[kept++] = argv[i];
      continue;
    }
    bool taken = argument == "--list" || argument == "--verbose" || argument == "--help" || argument == "-h";
    options.list = options.list || argument == "--list";
    options.verbose = options.verbose || argument == "--verbose";
    options.help = options.help || argument == "--help" || argument == "-h";
    for (const auto& option : kWithValue) {
      if (argument == option.name) {
        if (++i == argc) throw std::runtime_error(argument + " requires a value");
        option.take(argv[i]);
        taken = true;
        break;
      }
      if (argument.starts_with(option.name + "=")) {
        option.take(argument.substr(option.name.size() + 1));
        taken = true;
        break;
      }
    }
    if (!taken) throw std::runtime_error("unknown argument " + argument + "; see --help");
  }
  argc = kept;
  argv[argc] = nullptr;
  if (const char* narrowed = std::getenv("COMPUTE_TEST_DEVICES"); narrowed && options.devices.empty()) {
    add_list(options.devices, narrowed);
  }
  return options;
}

}  // namespace compute::conformance
