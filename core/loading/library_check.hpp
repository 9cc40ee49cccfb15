// SPDX-License-Identifier: Apache-2.0
// What can be said of a plugin's file without loading it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace compute {

// Why the file cannot be a shared library of this machine, of which dlopen may die: a truncated one, for example. Empty
// if it can. `*out_is_short`: a temporary shortage prevented reading it.
std::string why_no_library(const std::filesystem::path& file, bool* out_is_short);

// The libraries that the file and those that it needs name, and that the dynamic linker does not find; dlopen's message
// names only the first. Asks the dynamic linker, in another process. Empty if that cannot be asked.
std::vector<std::string> missing_libraries(const std::filesystem::path& file);

}  // namespace compute
