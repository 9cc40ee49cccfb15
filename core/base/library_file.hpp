// SPDX-License-Identifier: Apache-2.0
// The location of libcompute.
#pragma once

#include <filesystem>

namespace compute {

// The file that libcompute was loaded from, and its folder; empty if unknown.
std::filesystem::path library_file();
std::filesystem::path library_folder();

}  // namespace compute
