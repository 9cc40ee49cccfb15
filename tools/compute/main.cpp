// SPDX-License-Identifier: Apache-2.0
// compute: lists devices, shows which one a program would use and why, and what each supports.
//
// Exit status: 0 success, 1 failure, 2 wrong usage.
#include <CLI/CLI.hpp>
#include <compute/compute.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "commands.hpp"
#include "core/text/nearest_name.hpp"
#include "descriptions.hpp"

namespace {

constexpr int kFailure = 1;
constexpr int kUsage = 2;

// A whole number from `least` on. CLI11's own check prints the limits of double.
CLI::Validator at_least(int least) {
  const std::string text = "a whole number from " + std::to_string(least);
  return CLI::Validator(
      [=](const std::string& word) {
        int number = 0;
        return CLI::detail::lexical_cast(word, number) && number >= least ? "" : word + " is not " + text;
      },
      text);
}

// What a command prints is its result: a full disk or a closed stdout is a failure.
int finished(int code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  std::fprintf(stderr, "compute: the output could not be written: %s\n", std::strerror(errno));
  return code != 0 ? code : kFailure;
}

// The commands with their options, and what each does.
class Program {
 public:
  Program() : app_("Shows and checks the devices of the compute backend.", "compute") {
    app_.set_help_all_flag("--help-all", "Help of every command");
    app_.add_flag("--version", version_, "Print the versions of the library and of this program");
    app_.footer("Exit status: 0 success, 1 failure, 2 wrong usage.");
    add_device_commands();
    add_other_commands();
  }

  int run(int argc, char** argv) {
    try {
      app_.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      if (error.get_exit_code() == 0) return finished(app_.exit(error));  // --help
      const CLI::App& command = given_command();
      const std::vector<std::string> unknown = command.remaining(true);
      const std::string meant =
          unknown.empty() ? "" : compute::did_you_mean(unknown.front(), commands_and_options_of(command));
      std::fprintf(stderr, "compute: %s%s; run %s --help\n", error.what(), meant.c_str(), command_line().c_str());
      return kUsage;
    }
    if (version_) return finished(show_version(false));
    for (auto one = commands_.rbegin(); one != commands_.rend(); ++one) {  // a command of another one stands after it
      if (one->first->parsed()) return finished(one->second());
    }
    std::fprintf(stderr, "compute: no command; run compute --help for a list\n");
    return kUsage;
  }

  // Of an unknown command, with the one that was probably meant, or all.
  int refuse(const std::string& name) const {
    const std::vector<std::string> known = names_of(app_);
    std::string hint = compute::did_you_mean(name, known);
    if (hint.empty()) {
      for (const std::string& one : known) hint += (hint.empty() ? " (known: " : ", ") + one;
      hint += ")";
    }
    std::fprintf(stderr, "compute: unknown command \"%s\"%s\n", name.c_str(), hint.c_str());
    return kUsage;
  }
  bool has(const std::string& name) const {
    const auto commands = app_.get_subcommands([](const CLI::App*) { return true; });
    return std::ranges::any_of(commands, [&](const CLI::App* one) { return one->check_name(name); });
  }

 private:
  // "compute cache fill": the commands that were given.
  std::string command_line() const {
    std::string text = app_.get_name();
    for (const CLI::App* at = &app_; !at->get_subcommands().empty();) {
      at = at->get_subcommands().front();
      text += " " + at->get_name();
    }
    return text;
  }
  // The last of them.
  const CLI::App& given_command() const {
    const CLI::App* at = &app_;
    while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
    return *at;
  }
  CLI::App* add(CLI::App& parent, const char* name, const char* help, std::function<int()> run) {
    CLI::App* const command = parent.add_subcommand(name, help);
    commands_.emplace_back(command, std::move(run));
    return command;
  }
  void add_json(CLI::App* command) { (*command).add_flag("--json", json_, "Print JSON"); }

  void add_device_commands() {
    auto* devices = add(app_, "devices", "Lists the devices of all plugins, without opening them",
                        [this] { return show_devices(json_, verbose_); });
    devices->add_flag("-v,--verbose", verbose_,
                      "Also show libraries, dtypes by level, free memory and the load report");
    add_json(devices);

    auto* which =
        add(app_, "which", "Shows which device a program would use, which setting chose it, and why not another",
            [this] { return show_which(device_, json_); });
    which->add_option("selector,--device", device_, "A selector, as in COMPUTE_DEVICE; default: the configured one");
    add_json(which);

    auto* info = add(app_, "info", "Shows what is known about a device, and checks that it works",
                     [this] { return all_ ? show_info_of_all(json_) : show_info(device_, json_); });
    auto* device = info->add_option("device,--device", device_, "A selector; default: the configured one");
    info->add_flag("--all", all_, "Every device")->excludes(device);
    add_json(info);

    auto* smi = add(app_, "smi", "Shows for each device its memory, utilisation, temperature and power in one line",
                    [this] { return show_smi(json_, watch_ ? turns_ : 1); });
    auto* watch = smi->add_flag("--watch", watch_, "Repeat it every second");
    smi->add_option("--turns", turns_, "Number of refreshes (default: unlimited)")->check(at_least(1))->needs(watch);
    add_json(smi);

    auto* ops = add(app_, "ops", "Shows how a device runs each op, or the signature of one op",
                    [this] { return show_ops(device_, op_, json_); });
    ops->add_option("name", op_, "An op; default: all, one per line");
    ops->add_option("--device", device_, "A selector; default: the configured one");
    add_json(ops);
  }

  void add_other_commands() {
    auto* doctor =
        add(app_, "doctor", "Checks every plugin and device in a separate process, and shows faults with remedies",
            [this] { return show_doctor(root_, environment_, json_); });
    doctor->add_flag("--env", environment_, "Also show every setting, its value and its origin");
    doctor->add_option("--system-root", root_,
                       "The folder that contains the /sys and /dev to examine, as in a container");
    add_json(doctor);
    auto* attempt = add(app_, "attempt", "Runs an op on a device, for doctor", [this] {
      compute::config_set("COMPUTE_LOG", "off");  // doctor reads the first line
      return attempt_device(device_);
    });
    attempt->add_option("device", device_, "A selector")->required();
    attempt->group("");  // not shown

    auto* run = add(app_, "run", "Starts several processes of a program with mpiexec, each with its device",
                    [this] { return as_rank_ ? run_as_rank(ranks_, command_) : run_ranks(ranks_, command_); });
    run->add_option("-n,--ranks", ranks_, "Number of processes")->check(at_least(1))->required();
    run->add_flag("--as-rank", as_rank_, "")->group("");  // not shown: how each of them begins
    run->add_option("program", command_, "The program and its arguments")->required();
    run->prefix_command();

    auto* config = add(app_, "config", "Shows every setting, its value and its origin",
                       [this] { return show_config(json_, describe_); });
    config->add_flag("--describe", describe_, "Also show what each setting does, its kind, default and choices");
    add_json(config);

    auto* view = add(app_, "view", "Writes a page for a browser that shows a trace (COMPUTE_TRACE), without a network",
                     [this] { return write_view(trace_, page_); });
    view->add_option("trace", trace_, "The trace")->required();
    view->add_option("-o,--output", page_, "The page; default: the name of the trace with .html");

    auto* cache = add(app_, "cache", "Shows where compiled kernels are kept", [this] { return show_cache(json_); });
    add_json(cache);
    add(*cache, "clear", "Removes compiled kernels; they are compiled again when needed", [] { return clear_cache(); });
    auto* fill = add(*cache, "fill", "Compiles the kernels of all ops for a device ahead of use",
                     [this] { return fill_cache(device_, ops_, dtypes_, threads_, json_); });
    fill->add_option("device,--device", device_, "A selector")->required();
    fill->add_option("--ops", ops_, "The ops; default: all")->delimiter(',');
    fill->add_option("--dtypes", dtypes_, "The dtypes; default: float32")->delimiter(',');
    fill->add_option("--threads", threads_, "Number of threads; default: one per processor")->check(at_least(0));
    add_json(fill);

    auto* completion =
        add(app_, "completion", "Prints a completion script", [this] { return print_completion(app_, shell_); });
    completion->add_option("shell", shell_, "bash, zsh or fish; default: bash")
        ->check(CLI::IsMember({"bash", "zsh", "fish"}));
    add(app_, "help", "Shows the help of the command that follows, or of all", [] { return 0; });  // see main
    add(app_, "man", "Prints the manual page", [this] { return print_manual(app_); });
    auto* version = add(app_, "version", "Shows the versions of the library and of this program",
                        [this] { return show_version(json_); });
    add_json(version);
  }

  CLI::App app_;
  std::vector<std::pair<CLI::App*, std::function<int()>>> commands_;
  bool json_ = false, verbose_ = false, all_ = false, environment_ = false, describe_ = false, watch_ = false,
       version_ = false;
  int turns_ = std::numeric_limits<int>::max();
  std::vector<std::string> ops_, dtypes_ = {"float32"};
  int threads_ = 0, ranks_ = 1;
  bool as_rank_ = false;
  std::vector<std::string> command_;
  std::string device_, op_, trace_, page_, root_, shell_ = "bash";
};

}  // namespace

int main(int argc, char** argv) {
  try {
    Program program;
    try {
      // Flags of the backend (--compute-device=…) may stand anywhere. Without one, the configuration is not read yet:
      // it may be faulty, which is for doctor to show.
      const auto is_flag = [](const char* word) { return std::string_view(word).starts_with("--compute-"); };
      const bool has_flags = std::any_of(argv, argv + argc, is_flag);
      if (has_flags) compute::config_arguments(argc, argv);
    } catch (const compute::Error& error) {
      std::fprintf(stderr, "compute: %s\n", error.what());
      return error.code() == COMPUTE_ERROR_INVALID_ARGUMENT || error.code() == COMPUTE_ERROR_NOT_FOUND ? kUsage
                                                                                                       : kFailure;
    }
    // `compute help cache fill` is `compute cache fill --help`.
    std::vector<char*> words(argv, argv + argc);
    static char flag[] = "--help";
    if (words.size() > 1 && std::string_view(words[1]) == "help") {
      words.erase(words.begin() + 1);
      words.push_back(flag);
    }
    if (words.size() > 1 && *words[1] != '-' && !program.has(words[1])) return program.refuse(words[1]);
    return program.run(static_cast<int>(words.size()), words.data());
  } catch (const std::exception& exception) {
    // Errors name the function that refused a name, which means nothing to users of a command.
    std::string message = exception.what();
    for (const std::string_view function : {"compute_device_open ", "compute_op_find: "}) {
      if (message.starts_with(function)) message.erase(0, function.size());
    }
    std::fprintf(stderr, "compute: %s\n", message.c_str());
    return kFailure;
  }
}
