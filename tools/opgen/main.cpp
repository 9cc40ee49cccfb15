// SPDX-License-Identifier: Apache-2.0
// opgen: writes the files generated from the tables of ops and intrinsics, or lists those that are stale.
//
//   opgen update SOURCE_ROOT
//   opgen check SOURCE_ROOT
//   opgen packages FOLDER     writes the files of bindings/ that have every op: Fortran, Go and Rust
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/opgen/texts.hpp"

namespace {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return file ? text.str() : std::string();
}

void write_file(const fs::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path.string());
}

using Texts = std::vector<std::pair<const char*, std::string>>;

void write_packages(const fs::path& folder) {
  using namespace compute::opgen;
  const Texts files = {{"fortran/ops.f90", ops_fortran()}, {"go/ops.go", ops_go()}, {"rust/src/ops.rs", ops_rust()}};
  for (const auto& [name, text] : files) {
    fs::create_directories((folder / name).parent_path());
    write_file(folder / name, text);
  }
}

int update_or_check(std::string_view command, const fs::path& root) {
  using namespace compute::opgen;
  const std::string header = read_file(root / "api/compute/compute.h");
  if (header.empty())
    throw std::runtime_error(root.string() + " is not a source tree: it has no api/compute/compute.h");
  check_names(header);
  check_notes();
  const Texts files = {{"api/compute/ops.h", ops_header()},
                       {"api/compute/ops.hpp", ops_cpp_header()},
                       {"core/interface/op_wrappers.inc", op_wrappers()},
                       {"docs/ops.md", ops_reference()},
                       {"plugins/cpu/kernels/rows.inc", compiled_rows()}};
  int stale = 0;
  for (const auto& [name, text] : files) {
    if (read_file(root / name) == text) continue;
    if (command == "update") {
      write_file(root / name, text);
      std::printf("opgen: wrote %s\n", name);
    } else {
      std::fprintf(stderr, "opgen: %s is stale; build the target opgen-update and commit what it writes\n", name);
      ++stale;
    }
  }
  return stale == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view command = argc == 3 ? argv[1] : "";
  if (command != "update" && command != "check" && command != "packages") {
    std::fprintf(stderr, "usage: opgen update|check SOURCE_ROOT, opgen packages FOLDER\n");
    return 2;
  }
  try {
    if (command != "packages") return update_or_check(command, argv[2]);
    write_packages(argv[2]);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "opgen: %s\n", error.what());
    return 1;
  }
}
