// SPDX-License-Identifier: Apache-2.0
// Completion and the manual page, from the description of the commands.
#include "descriptions.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <compute/compute.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "commands.hpp"

std::vector<const CLI::App*> shown_commands(const CLI::App& app) {
  std::vector<const CLI::App*> shown;
  for (const CLI::App* one : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!one->get_group().empty()) shown.push_back(one);
  }
  return shown;
}

std::vector<std::string> names_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* one : shown_commands(app)) names.push_back(one->get_name());
  return names;
}

std::vector<std::string> commands_and_options_of(const CLI::App& command) {
  std::vector<std::string> words = names_of(command);
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
    for (const std::string& name : option->get_snames()) words.push_back("-" + name);
  }
  return words;
}

namespace {

// A line of troff that begins with a dot or a quote would be a request, and a minus a hyphen.
std::string troff(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '\\') safe += "\\e";
    if (c == '-') safe += "\\-";
    if (c != '\\' && c != '-') safe += c;
  }
  return !safe.empty() && (safe[0] == '.' || safe[0] == '\'') ? "\\&" + safe : safe;
}

void print_options(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    fmt::print(".TP\n.B {}\n{}\n", troff(option->get_name(option->get_positional(), true)),
               troff(option->get_description()));
  }
}

void print_command(const CLI::App& command, const std::string& before) {
  const std::string name = before + command.get_name();
  fmt::print(".SS {}\n{}.\n", troff(name), troff(command.get_description()));
  print_options(command);
  for (const CLI::App* one : shown_commands(command)) print_command(*one, name + " ");
}

}  // namespace

namespace {

// Whether `command` takes a device without an option.
bool takes_device(const CLI::App& command) {
  const auto options = command.get_options([](const CLI::Option* option) { return option->get_positional(); });
  return std::any_of(options.begin(), options.end(), [](const CLI::Option* option) {
    return option->get_name(true) == "device" || option->get_name(true) == "selector";
  });
}

// What may follow the words of a line up to the last space.
struct Offer {
  std::string before;  // all commands of the line
  std::vector<std::string> words;
  bool has_devices = false, has_ops = false;
};

void add_offers(const CLI::App& app, const CLI::App& root, const std::string& before, std::vector<Offer>& offers) {
  for (const CLI::App* one : shown_commands(app)) {
    add_offers(*one, root, before + one->get_name() + " ", offers);
    Offer offer{before + one->get_name() + " ", commands_and_options_of(*one), takes_device(*one),
                one->get_name() == "ops"};
    if (one->get_name() == "help") {
      for (std::string& name : names_of(root)) offer.words.push_back(std::move(name));
    }
    offers.push_back(std::move(offer));
  }
}

// The functions of bash and zsh: _compute_offer sets `offered` for the words before the last one.
constexpr std::string_view kDevicesOfPosixShells =
    R"sh(_compute_devices() { COLUMNS= compute devices 2>/dev/null | awk 'NR > 1 { print $1 }'; }
_compute_offer() {
  case "$1" in
    *"--device ") offered="$(_compute_devices)" ;;
    *"--ops " | *"--ops "*,) offered="$_compute_ops" ;;
)sh";

constexpr std::string_view kEndOfBash = R"bash(  esac
}
_compute() {
  # Device names have colons, at which bash divides words.
  local line="${COMP_LINE:0:COMP_POINT}" offered
  local current="${line##*[ ,]}"
  local before="${line%"$current"}"
  case "$current" in --*=*) before+="${current%%=*} "; current="${current#*=}" ;; esac
  _compute_offer "${before#* }"
  mapfile -t COMPREPLY < <(compgen -W "$offered" -- "$current")
  local divided="${current%"${current##*:}"}"
  COMPREPLY=("${COMPREPLY[@]#"$divided"}")
}
complete -o default -F _compute compute
)bash";

constexpr std::string_view kEndOfZsh = R"zsh(  esac
}
_compute() {
  local current="${words[CURRENT]}" before="" offered
  (( CURRENT > 2 )) && before="${(j: :)words[2,CURRENT-1]} "
  case "$current" in --*=*) before+="${current%%=*} "; compset -P '*=' ;; esac
  case "$current" in *,*) before+="${current%,*},"; compset -P '*,' ;; esac
  _compute_offer "$before"
  compadd -- ${=offered}
}
_compute "$@"
)zsh";

constexpr std::string_view kDevicesOfFish =
    R"fish(function __compute_devices
  COLUMNS= compute devices 2>/dev/null | awk 'NR > 1 { print $1 }'
end
function __compute_offer
  set -l before (commandline --tokenize --cut-at-cursor --current-process)[2..-1]
  set -l done (string match --regex '^.*,' -- (commandline --current-token --cut-at-cursor))
  switch (string join ' ' -- $before '')
    case '*--device '
      __compute_devices
    case '*--ops '
      for op in $__compute_ops
        echo $done$op
      end
)fish";

constexpr std::string_view kEndOfFish = R"fish(  end
end
complete --command compute --no-files --arguments '(__compute_offer)'
)fish";

// A setting of core, from the description that config prints.
struct SettingLine {
  std::string name, summary;
};

// As if nothing were set: the manual does not depend on who makes it.
std::vector<SettingLine> described_settings() {
  std::vector<std::string> variables;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string_view variable = *at;
    if (variable.starts_with("COMPUTE_")) variables.emplace_back(variable.substr(0, variable.find('=')));
  }
  for (const std::string& name : variables) unsetenv(name.c_str());
  setenv("COMPUTE_CONFIG", "/dev/null", 1);
  std::vector<SettingLine> lines;
  for (const auto& row : nlohmann::json::parse(compute::config_describe(compute::Format::json)))
    lines.push_back({row["name"], row["summary"]});
  return lines;
}

struct Example {
  const char *command, *what;
};
constexpr Example kExamples[] = {
    {"compute devices", "lists the devices"},
    {"COMPUTE_DEVICE=cuda,cpu compute which", "shows which of these a program would use, and why"},
    {"compute doctor", "tests each device, and says what is missing and how to install it"},
    {"compute info cpu", "shows what is known about a device, and checks that it works"},
    {"compute ops matmul --device cpu", "shows how a device runs an op for each dtype"},
    {"compute smi --watch", "shows memory, load, temperature and power every second"},
    {"compute cache fill cpu --ops exp,matmul --dtypes float32,float64", "compiles kernels ahead of use"},
    {"COMPUTE_TRACE=trace.json program; compute view trace.json", "shows a timeline of the run in a browser"},
};

}  // namespace

int print_completion(const CLI::App& app, const std::string& shell) {
  std::vector<Offer> offers;
  add_offers(app, app, "", offers);
  std::string ops;
  for (const compute::OpInfo& op : compute::Op::list()) ops += fmt::format(" {}", op.name);
  const std::string first = fmt::format("{}", fmt::join(commands_and_options_of(app), " "));
  if (shell == "fish") {
    fmt::print("# fish completion of compute; put it into the completions folder of fish\n");
    fmt::print("set --global __compute_ops{}\n{}", ops, kDevicesOfFish);
    for (const Offer& offer : offers) {
      fmt::print("    case '{}*'\n      printf '%s\\n' {}\n", offer.before, fmt::join(offer.words, " "));
      if (offer.has_devices) fmt::print("      __compute_devices\n");
      if (offer.has_ops) fmt::print("      printf '%s\\n' $__compute_ops\n");
    }
    fmt::print("    case '*'\n      printf '%s\\n' {}\n{}", first, kEndOfFish);
    return 0;
  }
  const bool is_zsh = shell == "zsh";
  fmt::print("{}_compute_ops=\"{} \"\n{}",
             is_zsh ? "#compdef compute\n# zsh completion of compute; put it into a folder of $fpath, as _compute\n"
                    : "# bash completion of compute; source it, or put it into the completions folder of bash\n",
             ops, kDevicesOfPosixShells);
  for (const Offer& offer : offers) {
    fmt::print("    \"{}\"*) offered=\"{}{}{}\" ;;\n", offer.before, fmt::join(offer.words, " "),
               offer.has_devices ? " $(_compute_devices)" : "", offer.has_ops ? " $_compute_ops" : "");
  }
  fmt::print("    *) offered=\"{}\" ;;\n{}", first, is_zsh ? kEndOfZsh : kEndOfBash);
  return 0;
}

int print_manual(const CLI::App& app) {
  fmt::print(".TH COMPUTE 1\n.SH NAME\ncompute \\- {}\n", troff(app.get_description()));
  fmt::print(".SH SYNOPSIS\n.B compute\n[\\fIoptions\\fR] \\fIcommand\\fR\n.SH OPTIONS\n");
  print_options(app);
  fmt::print(".SH COMMANDS\n");
  for (const CLI::App* one : shown_commands(app)) print_command(*one, "");
  fmt::print(
      ".SH ENVIRONMENT\nEach setting is a variable; a configuration file and flags are other ways to give it.\n");
  fmt::print("A plugin may have more, which\n.B compute config \\-\\-describe\nshows.\n");
  for (const SettingLine& one : described_settings())
    fmt::print(".TP\n.B {}\n{}\n", troff(one.name), troff(one.summary));
  fmt::print(".TP\n.B COLUMNS\nthe width of tables (default: the width of the terminal)\n.SH EXAMPLES\n");
  for (const Example& one : kExamples) fmt::print(".TP\n.B {}\n{}\n", troff(one.command), troff(one.what));
  fmt::print(".SH EXIT STATUS\n0 success, 1 failure, 2 wrong usage.\n");
  return 0;
}
