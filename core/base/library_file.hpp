// SPDX-License-Identifier: Apache-2.0
// Where libcompute lies.
#pragma once

#include <filesystem>

namespace compute {

// The file that libcompute was loaded from, and its folder; empty where that cannot be told.
std::filesystem::path library_file();
std::filesystem::path library_folder();

}  // namespace compute
