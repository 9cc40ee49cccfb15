// SPDX-License-Identifier: Apache-2.0
// Starts several processes of a program with the mpiexec that is installed.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "commands.hpp"

namespace {

constexpr int kNotStarted = 1;  // exit status

std::string environment_value(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value != nullptr ? value : "";
}

std::string find_program(const std::vector<std::string>& names) {
  const std::string path = environment_value("PATH");
  for (const std::string& name : names) {
    for (size_t begin = 0; begin <= path.size();) {
      const size_t end = std::min(path.find(':', begin), path.size());
      const std::string file = path.substr(begin, end - begin) + "/" + name;
      if (end > begin && access(file.c_str(), X_OK) == 0) return file;
      begin = end + 1;
    }
  }
  return "";
}

int replace_process(std::vector<std::string> words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execvp(pointers[0], pointers.data());
  std::fprintf(stderr, "compute: %s cannot be started: %s\n", words[0].c_str(), std::strerror(errno));
  return kNotStarted;
}

// The number that a launcher gave, under one of these names.
std::optional<int> number_in(std::initializer_list<const char*> names) {
  for (const char* const name : names) {
    if (const std::string value = environment_value(name); !value.empty()) return std::atoi(value.c_str());
  }
  return std::nullopt;
}

// The device of a rank: a GPU each, in turn, unless the program's user has chosen one.
void choose_device(int local_rank) {
  if (!environment_value("COMPUTE_DEVICE").empty()) return;
  log_no_choice();
  std::vector<std::string> gpus;
  for (const compute::DeviceInfo& info : compute::Device::list()) {
    const bool is_gpu = info.kind == compute::DeviceKind::discrete_gpu;
    if (is_gpu && info.unusable.empty() && info.same_as.empty()) gpus.emplace_back(info.name);
  }
  if (gpus.empty()) return;
  setenv("COMPUTE_DEVICE", gpus[static_cast<size_t>(local_rank) % gpus.size()].c_str(), 1);
}

// The share of a rank of the processors that it may use.
void choose_processors(int local_rank, int local_size) {
  cpu_set_t all, own;
  CPU_ZERO(&own);
  if (sched_getaffinity(0, sizeof all, &all) != 0) return;
  const int count = CPU_COUNT(&all);
  if (count < local_size) return;
  const int begin = count * local_rank / local_size, end = count * (local_rank + 1) / local_size;
  for (int processor = 0, seen = 0; processor < CPU_SETSIZE; ++processor) {
    if (!CPU_ISSET(processor, &all)) continue;
    if (seen >= begin && seen < end) CPU_SET(processor, &own);
    ++seen;
  }
  sched_setaffinity(0, sizeof own, &own);
}

}  // namespace

int run_ranks(int ranks, const std::vector<std::string>& program) {
  const std::string launcher = find_program({"mpiexec.hydra", "mpiexec", "mpirun"});
  if (launcher.empty()) {
    std::fprintf(stderr,
                 "compute: no mpiexec in PATH; install one (pip install mpich, or the package mpich or openmpi-bin of "
                 "the system)\n");
    return kNotStarted;
  }
  setenv("OMPI_MCA_hwloc_base_binding_policy", "none", 0);  // Open MPI gives each rank one core otherwise
  std::vector<std::string> words = {launcher,
                                    "-n",
                                    std::to_string(ranks),
                                    std::filesystem::read_symlink("/proc/self/exe").string(),
                                    "run",
                                    "--as-rank",
                                    "-n",
                                    std::to_string(ranks),
                                    "--"};
  words.insert(words.end(), program.begin(), program.end());
  return replace_process(std::move(words));
}

int run_as_rank(int ranks, const std::vector<std::string>& program) {
  const int local_rank =
      number_in({"MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID", "PMI_RANK"}).value_or(0);
  const int local_size = number_in({"MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE"}).value_or(ranks);
  if (local_size > 0 && local_rank < local_size) choose_processors(local_rank, local_size);
  choose_device(local_rank);
  return replace_process(program);
}
