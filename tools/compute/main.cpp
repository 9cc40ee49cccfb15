// SPDX-License-Identifier: Apache-2.0
// compute: what devices there are, which one would be used and why, and what they can do.
#include <CLI/CLI.hpp>
#include <compute/compute.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "commands.hpp"

namespace {

// What a command prints is its result: a full disk or a closed stdout is a failure.
int finished(int code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  std::fprintf(stderr, "compute: the output could not be written: %s\n", std::strerror(errno));
  return code != 0 ? code : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Shows and checks the devices of the compute backend.", "compute");
  app.require_subcommand(1);
  app.set_help_all_flag("--help-all", "Help of every command");

  bool json = false;
  bool verbose = false;
  std::string device;

  auto* devices = app.add_subcommand("devices", "Lists the devices of all plugins, without opening them");
  devices->add_flag("--json", json, "Print a JSON array");
  devices->add_flag("-v,--verbose", verbose, "Also show libraries, dtypes by level and the load report");

  auto* which = app.add_subcommand("which", "Shows which device would be used, what chose it, and why not the others");
  which->add_option("selector", device, "A selector, as in COMPUTE_DEVICE; default: the configured one");
  which->add_flag("--json", json, "Print a JSON object");

  auto* info = app.add_subcommand("info", "Shows what is known about a device, and checks that it works");
  info->add_option("device", device, "A selector; default: the configured one");

  auto* ops =
      app.add_subcommand("ops", "Shows how a device runs each op, by dtype: native, decomposed, host, or refused");
  ops->add_option("--device", device, "A selector; default: the configured one");
  ops->add_flag("--json", json, "Print a JSON array");

  auto* doctor =
      app.add_subcommand("doctor", "Shows the state of every plugin, with remedies; probes each in a separate process");
  bool environment = false;
  doctor->add_flag("--env", environment, "Also show every setting, its value and its origin");

  auto* config = app.add_subcommand("config", "Shows every setting, its value and its origin");
  auto* cache = app.add_subcommand("cache", "Shows where compiled kernels are kept");
  auto* cache_clear = cache->add_subcommand("clear", "Removes compiled kernels; they are compiled again when needed");
  auto* version = app.add_subcommand("version", "Shows the versions of the library and of this program");

  try {
    // Flags of the backend (--compute-device=…) may stand anywhere.
    compute::config_arguments(argc, argv);
    const auto commands = app.get_subcommands({});
    if (argc > 1 && *argv[1] != '-' &&
        std::ranges::none_of(commands, [&](const auto* one) { return one->check_name(argv[1]); })) {
      std::fprintf(stderr, "compute: unknown command \"%s\"; run compute --help for a list\n", argv[1]);
      return 1;
    }
    CLI11_PARSE(app, argc, argv);
    if (devices->parsed()) return finished(show_devices(json, verbose));
    if (which->parsed()) return finished(show_which(device, json));
    if (info->parsed()) return finished(show_info(device));
    if (ops->parsed()) return finished(show_ops(device, json));
    if (doctor->parsed()) return finished(show_doctor(environment));
    if (config->parsed()) return finished(show_config());
    if (cache_clear->parsed()) return finished(clear_cache());
    if (cache->parsed()) return finished(show_cache());
    if (version->parsed()) return finished(show_version());
  } catch (const compute::Error& error) {
    std::fprintf(stderr, "compute: %s\n", error.what());
    return 1;
  } catch (const std::exception& exception) {
    std::fprintf(stderr, "compute: %s\n", exception.what());
    return 1;
  }
  return 0;
}
