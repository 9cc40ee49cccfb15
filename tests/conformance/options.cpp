// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <cstdlib>
#include <functional>

namespace compute::conformance {

const char* const kUsage =
    R"(compute-cts: the conformance tests of a compute device, judged against an oracle in higher precision.

  compute-cts [--device D]... [--level smoke|quick|full] [options]

  --device D      a device (cpu, cuda0, opencl0:1); repeated or separated by commas. Default: every visible device, or
                  those that COMPUTE_TEST_DEVICES names
  --level L       smoke: every op once. quick: every op, one dtype of each kind. full (default): everything
  --known FILE    what the device cannot do, besides the installed list of its plugin; repeated
  --plugin FILE   a plugin file to load in place of the installed ones; repeated
  --json FILE     writes the support matrix: per device, op and dtype, how it is run and how that ended ("-": stdout)
  --list          prints the tests' names and runs none
  --verbose       one line per test
  --gtest_...     as every GoogleTest program, --gtest_filter=cpu/elementwise.exp_* among them

The exit status is 0 if at least one device was tested and nothing failed. The last line is
"N passed, N failed, N skipped"; skipped are tests that the device cannot run or is expected to fail.
)";

namespace {

void add_list(std::vector<std::string>& list, const std::string& text) {
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin) list.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
}

Level level_of(const std::string& text) {
  if (text == "smoke") return Level::SMOKE;
  if (text == "quick") return Level::QUICK;
  if (text == "full") return Level::FULL;
  throw std::runtime_error("--level is smoke, quick or full, not " + text);
}

}  // namespace

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
        if (++i == argc) throw std::runtime_error(argument + " needs a value");
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
    if (!taken) throw std::runtime_error("unknown argument " + argument + "; --help lists them");
  }
  argc = kept;
  argv[argc] = nullptr;
  if (const char* narrowed = std::getenv("COMPUTE_TEST_DEVICES"); narrowed && options.devices.empty()) {
    add_list(options.devices, narrowed);
  }
  return options;
}

}  // namespace compute::conformance
