// SPDX-License-Identifier: Apache-2.0
// Completion and the manual page, from the description of the commands.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <string>
#include <vector>

#include "commands.hpp"

namespace {

std::vector<const CLI::App*> shown_commands(const CLI::App& app) {
  std::vector<const CLI::App*> shown;
  for (const CLI::App* one : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!one->get_group().empty()) shown.push_back(one);
  }
  return shown;
}

// "--json --verbose -v", and the names of commands inside it.
std::string words_of(const CLI::App& command) {
  std::string words;
  for (const CLI::App* one : shown_commands(command)) words += one->get_name() + " ";
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) words += "--" + name + " ";
    for (const std::string& name : option->get_snames()) words += "-" + name + " ";
  }
  if (!words.empty()) words.pop_back();
  return words;
}

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

int print_completion(const CLI::App& app) {
  fmt::print("# bash completion of compute; source it, or put it into the completions folder of bash\n");
  fmt::print("_compute() {{\n  local current=\"${{COMP_WORDS[COMP_CWORD]}}\" words\n");
  fmt::print("  case \"${{COMP_WORDS[1]}}\" in\n");
  for (const CLI::App* one : shown_commands(app))
    fmt::print("    {}) words=\"{}\" ;;\n", one->get_name(), words_of(*one));
  fmt::print("    *) words=\"{}\" ;;\n  esac\n", words_of(app));
  fmt::print("  if [ \"$COMP_CWORD\" -eq 1 ]; then words=\"{}\"; fi\n", words_of(app));
  fmt::print("  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n}}\n");
  fmt::print("complete -o default -F _compute compute\n");
  return 0;
}

int print_manual(const CLI::App& app) {
  fmt::print(".TH COMPUTE 1\n.SH NAME\ncompute \\- {}\n", troff(app.get_description()));
  fmt::print(".SH SYNOPSIS\n.B compute\n[\\fIoptions\\fR] \\fIcommand\\fR\n.SH OPTIONS\n");
  print_options(app);
  fmt::print(".SH COMMANDS\n");
  for (const CLI::App* one : shown_commands(app)) print_command(*one, "");
  fmt::print(".SH EXIT STATUS\n0 success, 1 failure, 2 wrong usage.\n");
  return 0;
}
