// SPDX-License-Identifier: Apache-2.0
// compute cache fill: prepares a plain call of every op, so that its kernels are in the cache on disk.
#include <fmt/format.h>
#include <compute/compute.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "commands.hpp"
#include "plain_call.hpp"
#include "print_json.hpp"

namespace {

using compute::DType;
using compute::Tensor;

// The dtype that all operands of an op have if it takes no real numbers.
std::optional<DType> dtype_of_class(std::string_view dtypes) {
  if (dtypes == "BOOL") return compute::bool_;
  if (dtypes == "BITS" || dtypes == "INTEGER") return compute::int32;
  if (dtypes == "COMPLEX") return compute::complex64;
  return std::nullopt;
}

struct Job {
  const compute::OpInfo* info;
  DType dtype;
};

// What became of the calls.
struct Outcome {
  std::atomic<int64_t> prepared{0}, refused{0};
  std::mutex mutex;
  std::vector<std::string> faults;  // (mutex)
};

void prepare(const compute::Device& device, const Job& job, Outcome& outcome) {
  const compute::OpInfo& info = *job.info;
  try {
    const DType dtype = info.expression.empty() ? job.dtype : dtype_of_class(info.dtypes).value_or(job.dtype);
    const PlainCall call = plain_call(info, dtype);
    std::vector<Tensor> inputs;
    for (const compute::TensorSpec& input : call.inputs) inputs.push_back(device.empty(input.dtype, input.shape));
    const compute::Plan plan(compute::Op(std::string(info.name), info.version), device, inputs, call.attributes);
    ++outcome.prepared;
  } catch (const compute::Error& error) {
    // The op does not take the dtype, or the device does not run it.
    if (error.code() == COMPUTE_ERROR_INVALID_ARGUMENT || error.code() == COMPUTE_ERROR_UNSUPPORTED) {
      ++outcome.refused;
      return;
    }
    const std::lock_guard guard(outcome.mutex);
    outcome.faults.emplace_back(error.what());
  }
}

}  // namespace

int fill_cache(const std::string& selector, const std::vector<std::string>& ops, const std::vector<std::string>& dtypes,
               int threads, bool json) {
  const std::vector<compute::OpInfo> infos = compute::Op::list();
  for (const std::string& op : ops)
    static_cast<void>(compute::Op(op));  // of an unknown one the error names the nearest
  log_no_choice();
  const compute::Device device = compute::Device::open(selector);
  std::vector<Job> jobs;
  for (const std::string& dtype : dtypes) {
    for (const compute::OpInfo& info : infos) {
      if (ops.empty() || std::find(ops.begin(), ops.end(), info.name) != ops.end())
        jobs.push_back({&info, dtype_named(dtype)});
    }
  }
  const auto start = std::chrono::steady_clock::now();
  const int64_t before = device.statistics().kernels_compiled;
  if (threads == 0) threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  Outcome outcome;
  std::atomic<size_t> next{0};
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < threads; ++i) {
      workers.emplace_back([&] {
        for (size_t at = next++; at < jobs.size(); at = next++) prepare(device, jobs[at], outcome);
      });
    }
  }
  const int64_t compiled = device.statistics().kernels_compiled - before;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const CacheState cache = state_of_cache();
  if (json) {
    print_json(nlohmann::json{{"device", device.name()},
                              {"calls", outcome.prepared.load()},
                              {"refused", outcome.refused.load()},
                              {"kernels_compiled", compiled},
                              {"seconds", seconds},
                              {"directory", cache.directory},
                              {"problem", cache.problem},
                              {"faults", outcome.faults}});
  } else {
    fmt::print("{} calls prepared on {}, {} refused; {} kernels compiled in {:.1f} s with {} threads; {}\n",
               outcome.prepared.load(), device.name(), outcome.refused.load(), compiled, seconds, threads,
               cache.problem.empty() ? "kept in " + cache.directory : "not kept: " + cache.problem);
    for (const std::string& fault : outcome.faults) fmt::print(stderr, "{}\n", fault);
  }
  return outcome.faults.empty() && (compiled == 0 || cache.problem.empty()) ? 0 : 1;
}
