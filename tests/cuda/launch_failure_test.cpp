// SPDX-License-Identifier: Apache-2.0
// A launch that fails in the middle of a plan, on the fake driver, or by hand on a real one. The failing launch never
// reaches the driver; all others do.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <compute/compute.hpp>

#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "plugins/cuda/driver_api.hpp"
#include "runs_kernels.hpp"

using namespace compute::cuda;

namespace {

int launches = 0, failing = 0;  // the launch that fails, from 1; 0: none
decltype(DriverApi::launch_kernel_ex) launch_kernel_ex = nullptr;

CUresult launch(const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra) {
  if (++launches == failing) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  return launch_kernel_ex(config, function, parameters, extra);
}

using FindSymbol = void* (*)(void* library, const char* symbol) noexcept;

// Only a lookup by version leads past the program's own dlsym.
FindSymbol find_symbol() {
  for (const char* version : {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"}) {
    if (void* found = dlvsym(RTLD_NEXT, "dlsym", version)) return reinterpret_cast<FindSymbol>(found);
  }
  return nullptr;
}

}  // namespace

// The plugin looks the driver's functions up with dlsym. This one is found first, as the program exports its symbols.
extern "C" __attribute__((visibility("default"))) void* dlsym(void* library, const char* symbol) noexcept {
  static const FindSymbol find = find_symbol();
  if (find == nullptr) return nullptr;
  // A tail call: what looks from its caller on sees the caller.
  if (library == RTLD_DEFAULT || library == RTLD_NEXT || std::strcmp(symbol, "cuLaunchKernelEx") != 0)
    return find(library, symbol);
  void* found = find(library, symbol);
  if (found == nullptr) return nullptr;
  launch_kernel_ex = reinterpret_cast<decltype(launch_kernel_ex)>(found);
  return reinterpret_cast<void*>(&launch);
}

namespace {

using compute::Device;
using compute::Stream;
using compute::Tensor;

constexpr int64_t kCount = int64_t{1} << 22;  // as many ones: their sums are exact, and of two passes

std::pair<compute_error_code, std::string> outcome_of(compute_error* error) {
  if (error == nullptr) return {COMPUTE_OK, ""};
  std::pair<compute_error_code, std::string> outcome{compute_error_get_code(error), compute_error_message(error)};
  compute_error_free(error);
  return outcome;
}

class CudaLaunchFailure : public testing::Test {
 protected:
  void SetUp() override {
    try {
      device = Device::open("cuda0");
      x = device.full({kCount}, 1.0f);
      sums = device.empty(COMPUTE_DTYPE_FLOAT32, {kCount});
      y = sums[kCount - 1];
      compute::check(compute_cumulative_sum_into(nullptr, x.get(), nullptr, sums.get()));
    } catch (const compute::Error& error) {
      if (error.code() != COMPUTE_ERROR_NOT_FOUND && error.code() != COMPUTE_ERROR_UNSUPPORTED) throw;
      GTEST_SKIP() << error.what();
    }
    expect_sum();
    std::printf("launches fail on %s\n", runs_kernels(device) ? "a GPU" : "the fake driver");
  }

  std::pair<compute_error_code, std::string> sum(const Stream& stream, int fail = 0) {
    launches = 0;
    failing = fail;
    auto outcome = outcome_of(compute_cumulative_sum_into(stream.get(), x.get(), nullptr, sums.get()));
    failing = 0;
    return outcome;
  }

  std::pair<compute_error_code, std::string> read(const Tensor& tensor, float* value) {
    return outcome_of(compute_tensor_read(tensor.get(), value, sizeof *value));
  }

  void expect_sum() {
    float value = 0;
    const auto [code, message] = read(y, &value);
    EXPECT_EQ(code, COMPUTE_OK) << message;
    if (runs_kernels(device)) {
      EXPECT_EQ(value, static_cast<float>(kCount));
    }
  }

  Device device;
  Tensor x, sums, y;  // y is the last of the sums
};

// Nothing was queued: the stream is as good as before.
TEST_F(CudaLaunchFailure, OfTheFirstLeavesTheStreamAsItWas) {
  const Stream stream(device);
  const auto [code, message] = sum(stream, 1);
  EXPECT_NE(code, COMPUTE_OK);
  EXPECT_NE(message.find("launching a kernel"), std::string::npos) << message;
  EXPECT_EQ(message.find("part of the work"), std::string::npos) << message;
  EXPECT_EQ(launches, 1);
  stream.synchronize();
  EXPECT_EQ(sum(stream).first, COMPUTE_OK);
  stream.synchronize();
  expect_sum();
}

TEST_F(CudaLaunchFailure, OfALaterOneFailsTheStream) {
  const Stream good(device);
  ASSERT_EQ(sum(good).first, COMPUTE_OK);
  const int count = launches;
  ASSERT_GE(count, 2) << "an op of several launches is needed";
  for (int nth = 2; nth <= count; ++nth) {
    SCOPED_TRACE(nth);
    const Stream bad(device);
    const Tensor before = device.from_host(std::vector<float>{0});
    const Tensor four = device.from_host(std::vector<float>{-4});
    compute::check(compute_negative_into(bad.get(), four.get(), before.get()));
    bad.synchronize();

    const auto [code, message] = sum(bad, nth);
    EXPECT_NE(code, COMPUTE_OK);
    EXPECT_NE(message.find("part of the work had been queued"), std::string::npos) << message;
    EXPECT_EQ(launches, nth);

    // The stream takes no more, and says why.
    const auto [again, why] = sum(bad);
    EXPECT_EQ(again, COMPUTE_ERROR_STREAM_FAILED) << why;
    EXPECT_EQ(launches, 0);
    const auto [waited, reason] = outcome_of(compute_stream_synchronize(bad.get()));
    EXPECT_EQ(waited, COMPUTE_ERROR_STREAM_FAILED);
    EXPECT_NE(reason.find("part of the work had been queued"), std::string::npos) << reason;

    // Its result has no values; earlier results are intact.
    float value = 0;
    EXPECT_EQ(read(y, &value).first, COMPUTE_ERROR_STREAM_FAILED);
    const auto [kept, error] = read(before, &value);
    EXPECT_EQ(kept, COMPUTE_OK) << error;
    if (runs_kernels(device)) {
      EXPECT_EQ(value, 4);
    }

    // The device and other streams still work, and a full overwrite heals the result.
    const auto [healed, complaint] = sum(good);
    EXPECT_EQ(healed, COMPUTE_OK) << complaint;
    good.synchronize();
    expect_sum();
  }
}

}  // namespace
