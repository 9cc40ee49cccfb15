// SPDX-License-Identifier: Apache-2.0
// What the description of the commands says of one.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

// The commands of `app` that are shown.
std::vector<const CLI::App*> shown_commands(const CLI::App& app);
std::vector<std::string> names_of(const CLI::App& app);
// Its commands and options: "fill", "--json", "-v".
std::vector<std::string> commands_and_options_of(const CLI::App& command);
