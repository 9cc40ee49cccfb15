// SPDX-License-Identifier: Apache-2.0
// launch_cost [--rounds N]     on the device that COMPUTE_DEVICE names, a CUDA one
//
// What core and plugin add to the launch of a small op that is cached: host time of compute_add_into beside that of the
// bare cuLaunchKernel with the same kernel, groups, parameters and stream, and of cuLaunchKernelEx with the attribute
// that the plugin gives. One process, in turn; each round times a stretch of calls that the driver's queue holds, and
// waits for the GPU outside of it. Prints medians over the rounds as one JSON object.
#include <algorithm>
#include <chrono>
#include <compute/compute.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <vector>

#include "tools/bench/driver_hook.hpp"

namespace {

using namespace compute::cuda;
using compute::Device;
using compute::Stream;
using compute::Tensor;

constexpr int kCalls = 256;  // core asks the plugin once in as many, so that each stretch has its share of that
constexpr double kBudgetNs = 300;

// A launch of the plugin's, to be repeated without it.
struct RecordedLaunch {
  CUlaunchConfig config{};
  std::vector<CUlaunchAttribute> attributes;
  CUfunction function = nullptr;
  CUcontext context = nullptr;
  std::vector<uint64_t> words;
};

std::vector<RecordedLaunch>* recorded = nullptr;

}  // namespace

CUresult compute::hooked_launch(const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra) {
  if (recorded != nullptr) [[unlikely]] {
    RecordedLaunch& launch = recorded->emplace_back();
    launch.config = *config;
    launch.attributes.assign(config->attrs, config->attrs + config->numAttrs);
    launch.function = function;
    driver_ctx_get_current(&launch.context);
    if (parameters == nullptr && extra != nullptr) {
      const auto* words = static_cast<const uint64_t*>(extra[1]);
      launch.words.assign(words, words + *static_cast<const size_t*>(extra[3]) / sizeof(uint64_t));
    }
  }
  return driver_launch_kernel_ex(config, function, parameters, extra);
}

namespace {

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Nanoseconds of a call.
template <class Wait, class Call>
double time_calls(const Wait& wait, const Call& call) {
  wait();
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kCalls; ++i) call();
  const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
  return spent.count() / kCalls;
}

void require(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "launch_cost: %s returned %d\n", what, static_cast<int>(result));
  std::exit(1);
}

void measure(int rounds) {
  const Device device = Device::open();
  const Stream stream(device);
  const Tensor x = device.from_host(std::vector<float>(16, 1));
  Tensor y = device.from_host(std::vector<float>(16, 0));
  const auto op = [&] { compute::check(compute_add_into(stream.get(), x.get(), x.get(), y.get())); };
  op();
  stream.synchronize();
  if (compute::driver_launch_kernel_ex == nullptr)
    throw std::runtime_error("COMPUTE_DEVICE does not select a CUDA device");

  std::vector<RecordedLaunch> launches;
  recorded = &launches;
  op();
  recorded = nullptr;
  stream.synchronize();
  if (launches.size() != 1 || launches[0].words.empty())
    throw std::runtime_error("an add is not one launch with one block of parameters");
  RecordedLaunch& launch = launches[0];
  launch.config.attrs = launch.attributes.data();
  size_t bytes = launch.words.size() * sizeof(uint64_t);
  // CU_LAUNCH_PARAM_BUFFER_POINTER, _SIZE and _END
  void* extra[] = {reinterpret_cast<void*>(uintptr_t{1}), launch.words.data(), reinterpret_cast<void*>(uintptr_t{2}),
                   &bytes, nullptr};
  const CUlaunchConfig& config = launch.config;
  require(compute::driver_ctx_set_current(launch.context), "cuCtxSetCurrent");
  const auto bare = [&] {
    const CUresult result = compute::driver_launch_kernel(
        launch.function, config.gridDimX, config.gridDimY, config.gridDimZ, config.blockDimX, config.blockDimY,
        config.blockDimZ, config.sharedMemBytes, config.hStream, nullptr, extra);
    if (result != CUDA_SUCCESS) [[unlikely]]
      require(result, "cuLaunchKernel");
  };
  const auto bare_ex = [&] {
    const CUresult result = compute::driver_launch_kernel_ex(&config, launch.function, nullptr, extra);
    if (result != CUDA_SUCCESS) [[unlikely]]
      require(result, "cuLaunchKernelEx");
  };

  // Of launches past core only the driver knows.
  const auto wait = [&] {
    stream.synchronize();
    require(compute::driver_stream_synchronize(config.hStream), "cuStreamSynchronize");
  };

  // The bare launches do what the op does: 1 + 1, where the driver is not the tests' own, which runs no kernel.
  const auto result_of = [&](const auto& call) {
    const std::vector<float> zeros(16, 0);
    y.write(zeros.data(), 64);
    call();
    wait();
    return y.to_vector<float>();
  };
  const std::vector<float> result = result_of(op);
  if (result_of(bare) != result || result_of(bare_ex) != result)
    throw std::runtime_error("the bare launch does not compute what the op computes");

  std::vector<double> ours, plain, ex, added, added_to_ex;
  for (int round = -rounds / 10 - 1; round < rounds; ++round) {
    const double times[3] = {time_calls(wait, op), time_calls(wait, bare), time_calls(wait, bare_ex)};
    if (round < 0) continue;  // warming up
    ours.push_back(times[0]);
    plain.push_back(times[1]);
    ex.push_back(times[2]);
    added.push_back(times[0] - times[1]);
    added_to_ex.push_back(times[0] - times[2]);
  }
  wait();
  std::printf(
      "{\"device\": \"%s\", \"rounds\": %d, \"calls\": %d, \"groups\": %u, \"group_size\": %u, \"parameter_bytes\": "
      "%zu, \"attributes\": %u, \"result\": %g,\n"
      " \"op_ns\": %.1f, \"cuLaunchKernel_ns\": %.1f, \"cuLaunchKernelEx_ns\": %.1f, \"added_ns\": %.1f, "
      "\"added_to_ex_ns\": %.1f, "
      "\"budget_ns\": %.0f}\n",
      compute_device_name(device.get()), rounds, kCalls, config.gridDimX, config.blockDimX, bytes, config.numAttrs,
      static_cast<double>(result[0]), median(ours), median(plain), median(ex), median(added), median(added_to_ex),
      kBudgetNs);
}

}  // namespace

int main(int argc, char** argv) {
  int rounds = 400;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--rounds") == 0 && i + 1 < argc) {
      rounds = std::max(1, std::atoi(argv[++i]));
    } else {
      std::fprintf(stderr, "usage: launch_cost [--rounds N]\n");
      return 2;
    }
  }
  try {
    measure(rounds);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "launch_cost: %s\n", error.what());
    return 1;
  }
  return 0;
}
