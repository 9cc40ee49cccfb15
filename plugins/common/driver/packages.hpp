// SPDX-License-Identifier: Apache-2.0
// Where pip and conda put libraries, which the system's search does not know.
#pragma once

#include <string>
#include <vector>

namespace compute::common {

// Folders, each ending with a slash: lib/ of the environments that are active (VIRTUAL_ENV, CONDA_PREFIX), and what
// matches the pattern `below`, as in "nvidia/*/lib", in their site-packages and in those from which this process, a
// Python then, has loaded something. None if the process is privileged.
std::vector<std::string> package_folders(const std::string& below);

}  // namespace compute::common
