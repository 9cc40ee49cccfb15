// SPDX-License-Identifier: Apache-2.0
// compute doctor: what works, what does not, and what would help.
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <compute/compute.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "commands.hpp"
#include "print_json.hpp"
#include "system.hpp"
#include "table.hpp"

namespace {

using nlohmann::json;

struct Attempt {
  bool works = false;
  std::string problem;
};

// The end of a process, in words.
std::string end_text(int status) {
  if (WIFSIGNALED(status)) return fmt::format("crashes: {}", strsignal(WTERMSIG(status)));
  return fmt::format("fails with exit status {}", WEXITSTATUS(status));
}

// Runs this program's `attempt` on a device: what crashes there does not end this process.
Attempt attempt_in_child(const std::string& device) {
  std::array<int, 2> pipe_ends{};
  if (pipe2(pipe_ends.data(), O_CLOEXEC) != 0) return {false, std::strerror(errno)};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDERR_FILENO);
  std::array<std::string, 3> words = {"compute", "attempt", device};
  std::array<char*, 4> arguments = {words[0].data(), words[1].data(), words[2].data(), nullptr};
  pid_t child = 0;
  const int fault = posix_spawn(&child, "/proc/self/exe", &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(pipe_ends[1]);
  std::string output;
  std::array<char, 4096> part;
  for (ssize_t count = 0; fault == 0 && (count = read(pipe_ends[0], part.data(), part.size())) > 0;)
    output.append(part.data(), static_cast<size_t>(count));
  close(pipe_ends[0]);
  if (fault != 0) return {false, std::strerror(fault)};
  int status = 0;
  waitpid(child, &status, 0);
  if (status == 0) return {true, ""};
  const std::string line = output.substr(0, output.find('\n'));
  constexpr std::string_view kSelf = "compute: ";
  if (WIFSIGNALED(status) || !line.starts_with(kSelf)) return {false, end_text(status)};
  return {false, "fails: " + line.substr(kSelf.size(), line.find("; run compute doctor") - kSelf.size())};
}

class Doctor {
 public:
  explicit Doctor(std::string system_root) : system_root_(std::move(system_root)) {}

  int run(bool environment, bool as_json) {
    settle_configuration();
    log_no_choice();
    // Each plugin is probed in a separate process again, regardless of earlier results.
    compute::config_set("COMPUTE_PROBE", "always");
    try_devices();
    report_ = json::parse(compute::load_report(compute::Format::json));
    for (const json& plugin : report_["plugins"]) {
      if (!plugin["rejected"].is_string()) continue;
      fault(fmt::format("plugin {}: {}; reinstall the plugin, or remove this file", plugin["path"].get<std::string>(),
                        plugin["rejected"].get<std::string>()));
    }
    for (const json& entry : report_["refused"])
      warn(fmt::format("{} is ignored: {}", entry["entry"].get<std::string>(), entry["reason"].get<std::string>()));
    choose();
    look_at_system();
    look_at_cache();
    if (as_json) {
      print_json(environment);
    } else {
      print_text(environment);
    }
    return faults_.empty() ? 0 : 1;
  }

 private:
  void fault(const std::string& text) { faults_.push_back(text); }
  // Findings that do not affect the chosen device.
  void warn(const std::string& text) { warnings_.push_back(text); }

  // Goes on without a configuration file that cannot be read.
  void settle_configuration() {
    try {
      static_cast<void>(compute::config_list());
    } catch (const compute::Error& error) {
      fault(fmt::format("ignoring the invalid configuration: {}; compute config --describe lists the settings",
                        error.what()));
      setenv("COMPUTE_CONFIG", "/dev/null", 1);
      unset_faulty_variables();
    }
  }

  // Without the file, the remaining invalid settings are variables.
  void unset_faulty_variables() {
    for (int turn = 0; turn < 64; ++turn) {
      try {
        static_cast<void>(compute::config_list());
        return;
      } catch (const compute::Error& error) {
        const std::string message = error.what();
        const std::string name = message.substr(0, message.find(':'));
        if (getenv(name.c_str()) == nullptr) throw;
        if (turn > 0) fault(message);
        unsetenv(name.c_str());
      }
    }
  }

  // What works there is then used here, so that the report knows the libraries that ops look for.
  void try_devices() {
    for (const compute::DeviceInfo& info : compute::Device::list()) {
      json row = {{"name", info.name}, {"description", info.description}, {"pci_address", info.pci_address}};
      const std::string name(info.name);
      const Attempt attempt = attempt_in_child(name);
      row["works"] = attempt.works;
      row["problem"] = attempt.problem;
      devices_.push_back(row);
      if (attempt.works) {
        static_cast<void>(attempt_device(name));
      } else {
        // Without its plugin `cpu` has memory and no arithmetic.
        const bool has_plugin = name != "cpu" || info.supports(compute::float32, compute::DTypeSupport::arithmetic);
        fault(fmt::format("device {} {}; {}, or exclude it with COMPUTE_DEVICE=auto,-{}", info.name, attempt.problem,
                          has_plugin ? "update its driver" : "install its plugin (the package compute-plugin-cpu)",
                          info.name));
      }
    }
  }

  void choose() {
    try {
      chosen_ = compute::Device::which();
      static_cast<void>(compute::Device::open());
    } catch (const compute::Error& error) {
      chosen_ = error.what();
      fault(fmt::format("the chosen device cannot be used: {}; compute devices lists the available ones",
                        chosen_.substr(0, chosen_.find('\n'))));
    }
  }

  // An unused GPU is not a fault: many servers have one for their console.
  void look_at_system() {
    closed_nodes_ = closed_device_nodes(system_root_);
    modules_ = gpu_modules(system_root_);
    compiler_ = compiler_in(report_);
    for (const std::string& node : closed_nodes_) warn("no access to " + node);
    for (const PciDevice& device : pci_devices(system_root_)) {
      const bool is_driven = std::any_of(devices_.begin(), devices_.end(), [&](const json& row) {
        return row["pci_address"].get<std::string>() == device.address;
      });
      pci_.push_back(
          {{"address", device.address}, {"ids", device.ids}, {"driver", device.driver}, {"used", is_driven}});
      if (!is_driven)
        warn(fmt::format("no plugin uses the GPU {} ({}): {}", device.address, device.ids, remedy_for(device)));
    }
  }

  void look_at_cache() {
    const CacheState cache = state_of_cache();
    cache_ = {{"directory", cache.directory},
              {"programs", cache.programs},
              {"bytes", cache.bytes},
              {"unreadable", cache.unreadable},
              {"unused", cache.unused}};
    if (!cache.problem.empty())
      warn("compiled kernels are not cached: " + cache.problem + "; set COMPUTE_CACHE_DIR to a folder of your own");
    if (cache.unreadable + cache.unused > 0) {
      warn(
          fmt::format("the kernel cache is stale: {} programs are damaged or of another version, {} were not used "
                      "for {} days; run compute cache clear",
                      cache.unreadable, cache.unused, kStaleDays));
    }
  }

  void print_text(bool environment) {
    fmt::print("{}Devices\n", compute::load_report());
    for (const json& row : devices_) {
      fmt::print("  {:<15} {}\n", row["name"].get<std::string>(),
                 row["works"].get<bool>() ? "works" : row["problem"].get<std::string>());
    }
    fmt::print("Chosen\n  {}\n", chosen_.substr(0, chosen_.find('\n')));
    fmt::print("System\n  {:<15} {}\n", "kernel", system_name());
    if (!compiler_.empty()) fmt::print("  {:<15} {}\n", "C++ compiler", compiler_);
    for (const std::string& module : modules_) fmt::print("  {:<15} {}\n", "module", module);
    for (const json& row : pci_) {
      const std::string driver = row["driver"];
      fmt::print("  {:<15} {} {}, kernel driver: {}{}\n", "PCI", row["address"].get<std::string>(),
                 row["ids"].get<std::string>(), driver.empty() ? "none" : driver,
                 row["used"].get<bool>() ? "" : "; no plugin uses it");
    }
    fmt::print("  {:<15} {}: {} programs, {:.1f} MB\n", "kernel cache", cache_["directory"].get<std::string>(),
               cache_["programs"].get<int64_t>(), 1e-6 * cache_["bytes"].get<double>());
    if (environment) {
      fmt::print("Settings\n{}", settings_table().text());
      fmt::print("Variables\n");
      for (const char* name : kVariables)
        if (const char* value = getenv(name)) fmt::print("{:<24} {}\n", name, value);
    }
    if (!warnings_.empty()) fmt::print("Warnings\n");
    for (const std::string& text : warnings_) fmt::print("  {}\n", text);
    fmt::print("{}\n", faults_.empty() ? "No faults" : "Faults");
    for (const std::string& text : faults_) fmt::print("  {}\n", text);
  }

  void print_json(bool environment) {
    json all = report_;
    all["devices"] = devices_;
    all["chosen"] = chosen_;
    all["faults"] = faults_;
    all["warnings"] = warnings_;
    all["system"] = {{"kernel", system_name()},
                     {"compiler", compiler_},
                     {"modules", modules_},
                     {"pci", pci_},
                     {"closed_device_nodes", closed_nodes_},
                     {"kernel_cache", cache_}};
    if (environment) {
      all["settings"] = json::parse(compute::config_describe(compute::Format::json));
      for (const char* name : kVariables)
        if (const char* value = getenv(name)) all["variables"][name] = value;
    }
    ::print_json(all);
  }

  // That the library, loaders and drivers read.
  static constexpr const char* kVariables[] = {"PATH",
                                               "HOME",
                                               "TMPDIR",
                                               "XDG_CACHE_HOME",
                                               "XDG_CONFIG_HOME",
                                               "XDG_DATA_HOME",
                                               "LD_LIBRARY_PATH",
                                               "LD_PRELOAD",
                                               "VIRTUAL_ENV",
                                               "CONDA_PREFIX",
                                               "OMPI_COMM_WORLD_SIZE",
                                               "PMI_SIZE",
                                               "CUDA_HOME",
                                               "CUDA_PATH",
                                               "CUDNN_PATH",
                                               "CUDA_VISIBLE_DEVICES",
                                               "CUDA_DEVICE_ORDER",
                                               "NVIDIA_VISIBLE_DEVICES",
                                               "NVTX_INJECTION64_PATH",
                                               "OCL_ICD_VENDORS",
                                               "OPENCL_VENDOR_PATH",
                                               "POCL_DEVICES",
                                               "POCL_CACHE_DIR"};

  const std::string system_root_;
  json report_, devices_ = json::array(), pci_ = json::array(), cache_;
  std::string chosen_, compiler_;
  std::vector<std::string> faults_, warnings_, closed_nodes_, modules_;
};

}  // namespace

int show_doctor(const std::string& system_root, bool environment, bool as_json) {
  return Doctor(system_root).run(environment, as_json);
}
