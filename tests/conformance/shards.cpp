// SPDX-License-Identifier: Apache-2.0
#include "shards.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <stdexcept>
#include <vector>

namespace compute::conformance {

// ---- What a shard says ---------------------------------------------------------------------------------------------

ShardLog::ShardLog(const std::string& path) {
  if (path.empty()) return;
  file_ = std::fopen(path.c_str(), "we");
  if (!file_) throw std::runtime_error("cannot write " + path);
}

ShardLog::~ShardLog() {
  if (file_) std::fclose(file_);
}

void ShardLog::line(const std::string& text) {
  if (!file_) return;
  std::fputs((text + "\n").c_str(), file_);
  std::fflush(file_);
}

void ShardLog::tests(int count) { line("tests " + std::to_string(count)); }
void ShardLog::begin(const std::string& test) { line("begin " + test); }
void ShardLog::end(Ending ending) { line("end " + std::to_string(static_cast<int>(ending))); }
void ShardLog::done() { line("done"); }

void ShardLog::device(const Target& target) {
  const compute_device_statistics s = target.session->statistics();
  std::ostringstream text;
  text << "device " << s.ops_run << " " << s.plans_prepared << " " << s.kernels_compiled << " " << s.ops_fallback << " "
       << target.session->name();
  line(text.str());
}

void print_totals(const Totals& totals) {
  std::cout << "PASS " << totals.of(Ending::PASS) << ", FAIL " << totals.of(Ending::FAIL) << ", UNSUPPORTED "
            << totals.of(Ending::UNSUPPORTED) << ", XFAIL " << totals.of(Ending::XFAIL) << "\n";
  if (totals.run_at_all() == 0) std::cout << "no test ran\n";
  std::cout << totals.of(Ending::PASS) << " passed, " << totals.of(Ending::FAIL) << " failed, "
            << totals.of(Ending::UNSUPPORTED) + totals.of(Ending::XFAIL) << " skipped" << std::endl;
}

namespace {

// ---- Starting them -------------------------------------------------------------------------------------------------

// A folder that goes with this object.
class Scratch {
 public:
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "compute-cts.XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("cannot create a temporary directory: " + name);
    path_ = name;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string file(const std::string& kind, int shard) const {
    return (path_ / (kind + std::to_string(shard))).string();
  }

 private:
  std::filesystem::path path_;
};

// The arguments but for those that the shards get otherwise.
std::vector<std::string> arguments_of_shard(int argc, char** argv) {
  std::vector<std::string> arguments;
  for (int i = 0; i < argc; ++i) {
    const std::string argument = argv[i];
    const bool dropped = argument == "--jobs" || argument == "--json" || argument == "--matrix";
    if (dropped || argument.starts_with("--jobs=") || argument.starts_with("--json=") ||
        argument.starts_with("--matrix=")) {
      i += dropped;
    } else {
      arguments.push_back(argument);
    }
  }
  return arguments;
}

pid_t start(std::vector<std::string> arguments, int shard, int count, const std::string& output) {
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error(std::string("cannot start a process: ") + std::strerror(errno));
  if (child > 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setenv("GTEST_TOTAL_SHARDS", std::to_string(count).c_str(), 1);
  setenv("GTEST_SHARD_INDEX", std::to_string(shard).c_str(), 1);
  unsetenv("GTEST_SHARD_STATUS_FILE");
  const int file = open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (file >= 0) {
    dup2(file, STDOUT_FILENO);
    dup2(file, STDERR_FILENO);
  }
  execv("/proc/self/exe", pointers.data());
  _exit(127);
}

// ---- What came of them ---------------------------------------------------------------------------------------------

struct Outcome {
  Totals totals;
  std::map<std::string, std::vector<int64_t>> devices;  // ops, plans, kernels, fallbacks
  int status = 0;
};

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) return std::string("was killed by ") + strsignal(WTERMSIG(status));
  return "exited with " + std::to_string(WEXITSTATUS(status)) + " before it finished";
}

void add_log(Outcome& outcome, const std::string& path, int shard, int status) {
  std::ifstream file(path);
  std::string word, running, rest;
  int64_t tests = 0, ended = 0;
  bool done = false;
  while (file >> word) {
    if (word == "tests") {
      file >> tests;
    } else if (word == "begin") {
      file >> running;
    } else if (word == "end") {
      int ending = 0;
      file >> ending;
      ++outcome.totals.count[ending];
      ++ended;
      running.clear();
    } else if (word == "device") {
      std::vector<int64_t> numbers(4);
      for (int64_t& number : numbers) file >> number;
      file >> rest;
      std::vector<int64_t>& sum = outcome.devices.try_emplace(rest, 4, 0).first->second;
      for (size_t i = 0; i < 4; ++i) sum[i] += numbers[i];
    } else if (word == "done") {
      done = true;
    }
  }
  if (done && WIFEXITED(status)) {
    outcome.status = std::max(outcome.status, WEXITSTATUS(status));
    return;
  }
  std::cout << "process " << shard + 1 << " " << how_it_ended(status);
  if (!running.empty()) {
    std::cout << " in " << running;
    ++ended;
    ++outcome.totals.count[static_cast<int>(Ending::FAIL)];
  }
  if (tests > ended) std::cout << "; " << tests - ended << " tests after it were not run";
  std::cout << "\n";
  // A shard that exits before its first test reports the reason itself, for example a misspelt device.
  outcome.status = std::max(outcome.status, WIFEXITED(status) && tests == 0 ? WEXITSTATUS(status) : 1);
}

void add_matrix(nlohmann::ordered_json& whole, const std::string& path) {
  std::ifstream file(path);
  const auto part = nlohmann::ordered_json::parse(file, nullptr, false);
  if (part.is_discarded()) return;  // the shard crashed
  for (const auto& device : part["devices"]) {
    auto& devices = whole["devices"];
    auto known =
        std::find_if(devices.begin(), devices.end(), [&](const auto& d) { return d["name"] == device["name"]; });
    if (known == devices.end()) {
      devices.push_back(device);
      continue;
    }
    for (const auto& [op, dtypes] : device["ops"].items()) {
      for (const auto& [dtype, entry] : dtypes.items()) (*known)["ops"][op][dtype] = entry;
    }
    for (const auto& [test, entry] : device["tests"].items()) (*known)["tests"][test] = entry;
  }
}

}  // namespace

int run_in_shards(const Options& options, int argc, char** argv) {
  if (std::getenv("GTEST_TOTAL_SHARDS"))
    throw std::runtime_error("--jobs divides the tests itself; unset GTEST_TOTAL_SHARDS");
  const Scratch scratch;
  const std::vector<std::string> arguments = arguments_of_shard(argc, argv);
  std::cout << "compute-cts: level " << level_name(options.level) << ", in " << options.jobs << " processes"
            << std::endl;
  std::map<pid_t, int> running;
  for (int shard = 0; shard < options.jobs; ++shard) {
    std::vector<std::string> own = arguments;
    own.push_back("--shard-log=" + scratch.file("log", shard));
    if (options.wants_matrix()) own.push_back("--json=" + scratch.file("json", shard));
    running.emplace(start(std::move(own), shard, options.jobs, scratch.file("output", shard)), shard);
  }
  Outcome outcome;
  while (!running.empty()) {
    int status = 0;
    const pid_t child = waitpid(-1, &status, 0);
    if (child < 0 && errno != EINTR) throw std::runtime_error(std::string("cannot wait: ") + std::strerror(errno));
    const auto found = running.find(child);
    if (found == running.end()) continue;
    const int shard = found->second;
    running.erase(found);
    // An empty file as the source would set the stream's failure bit.
    std::ifstream output(scratch.file("output", shard));
    if (output.peek() != std::ifstream::traits_type::eof()) std::cout << output.rdbuf();
    add_log(outcome, scratch.file("log", shard), shard, status);
    std::cout.flush();
  }
  if (options.wants_matrix()) {
    nlohmann::ordered_json whole;
    whole["devices"] = nlohmann::ordered_json::array();
    for (int shard = 0; shard < options.jobs; ++shard) add_matrix(whole, scratch.file("json", shard));
    write_matrix(whole, options.json, options.matrix);
  }
  for (const auto& [name, n] : outcome.devices) {
    std::cout << name << ": " << n[0] << " ops run, " << n[1] << " plans, " << n[2] << " kernels compiled, " << n[3]
              << " fallbacks\n";
  }
  print_totals(outcome.totals);
  if (outcome.status == 0 && outcome.totals.of(Ending::FAIL) > 0) return 1;
  return outcome.status == 0 && outcome.totals.run_at_all() == 0 ? kNothingTested : outcome.status;
}

}  // namespace compute::conformance
