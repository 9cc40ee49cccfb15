// SPDX-License-Identifier: Apache-2.0
// The commands of `compute`. Each prints to stdout and returns the exit status.
#pragma once

#include <compute/compute.hpp>

#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

namespace CLI {
class App;
}
class Table;

inline constexpr compute::DType kDtypes[] = {
#define COMPUTE_DTYPE(id, name, NAME, size, category, computed_in, cuda, opencl) COMPUTE_DTYPE_##NAME,
#include <compute/dtypes.def>
#undef COMPUTE_DTYPE
};
inline constexpr compute::DType kStoredDtypes[] = {compute::float8_e4m3fn, compute::float8_e5m2};

// The library's, and those of its plugin's own that the device has.
inline std::vector<compute::DType> dtypes_of(const compute::DeviceInfo& info) {
  std::vector<compute::DType> dtypes(std::begin(kDtypes), std::end(kDtypes));
  dtypes.insert(dtypes.end(), std::begin(kStoredDtypes), std::end(kStoredDtypes));
  for (compute_dtype number = 64; number < 128; ++number) {
    if (info.supports(compute::DType(number), compute::DTypeSupport::storage)) dtypes.emplace_back(number);
  }
  return dtypes;
}

// Leaves out the line that says which device is used: the user has named it, or every device is opened.
void log_no_choice();
int show_devices(bool json, bool verbose);
int show_which(const std::string& selector, bool json);
int show_info(const std::string& device, bool json);
int show_info_of_all(bool json);
// `turns` times, a second apart.
int show_smi(bool json, int turns);
// Of all ops, or of one.
int show_ops(const std::string& device, const std::string& op, bool json);
// `system_root` is the folder above /sys and /dev; "" is the system's own.
int show_doctor(const std::string& system_root, bool environment, bool json);
// What doctor starts for each device: an op on it, so that a crash is this process's.
int attempt_device(const std::string& device);
// Each with its value and origin.
Table settings_table();
int show_config(bool json, bool describe);
int show_version(bool json);
int show_cache(bool json);
int clear_cache();
// Compiles what plain calls of `ops` (all if there are none) need for `dtypes`, in `threads` threads; 0: one per
// processor.
int fill_cache(const std::string& device, const std::vector<std::string>& ops, const std::vector<std::string>& dtypes,
               int threads, bool json);

constexpr int kStaleDays = 90;
struct CacheState {
  std::string directory, problem;
  int64_t programs = 0, bytes = 0;
  int64_t unreadable = 0, unused = 0;  // of the programs; the last for kStaleDays
};
CacheState state_of_cache();
// Starts `ranks` processes of a program, the words of a command, with mpiexec. Returns only if it fails.
int run_ranks(int ranks, const std::vector<std::string>& program);
// Becomes the program, with a device and processors of its own.
int run_as_rank(int ranks, const std::vector<std::string>& program);
// A page for a browser from a trace.
int write_view(const std::string& trace, const std::string& page);
// From the description of the commands.
int print_completion(const CLI::App& app, const std::string& shell);
int print_manual(const CLI::App& app);
