// SPDX-License-Identifier: Apache-2.0
// The system's C++ compiler as a process.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace compute::cpu {

struct Compiler {
  std::string path;     // empty: there is none
  std::string version;  // changes when another compiler is installed at the path
  std::string problem;  // why there is none
};

// The value of COMPUTE_CPU_COMPILER, a path or a name; else the first one that PATH has of the names that are tried.
// Looked for at each call.
Compiler find_compiler();
// The names that are tried, one a line.
std::string compilers_tried();

// The compiler's output for a source, and its messages.
struct Compilation {
  std::string result;
  std::string log;
};

// The two steps of a compilation. Both throw COMPILE_FAILED with all that the compiler said, beginning with `what`;
// OUT_OF_MEMORY or UNSUPPORTED if it cannot run.

// The source with its macros expanded and the contents of the files that it includes.
Compilation preprocess(const Compiler& compiler, const std::vector<std::string>& options, std::string_view source,
                       const std::string& what);
// The contents of a shared library. `language` is as the compiler's option -x.
Compilation compile_shared(const Compiler& compiler, const std::vector<std::string>& options, const char* language,
                           std::string_view source, const std::string& what);

}  // namespace compute::cpu
