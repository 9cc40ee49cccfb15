// SPDX-License-Identifier: Apache-2.0
// Convolutions and attention on a fake cuDNN, by results. With COMPUTE_CUDA_CUDNN=always cuDNN computes every supported
// call, with `auto` the large ones, and with `never` none.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <compute/compute.hpp>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace {

using compute::Device;
using compute::Tensor;

int64_t counted(const char* name) {
  void* library = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return 0;
  void* const symbol = dlsym(library, name);
  EXPECT_NE(symbol, nullptr) << "another cuDNN was found";
  return symbol == nullptr ? 0 : reinterpret_cast<int64_t (*)()>(symbol)();
}

int64_t library_runs() { return counted("fake_cudnn_runs"); }

bool is_set(const char* setting, std::string_view value) {
  const char* text = std::getenv(setting);
  return text != nullptr && text == value;
}

// Small integers, so that every sum is exact.
std::vector<float> numbers(int64_t count, uint32_t seed) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    values.push_back(static_cast<float>(static_cast<int>(seed >> 29) - 4));
  }
  return values;
}

int64_t product(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

struct Case {
  std::vector<int64_t> x, weight;
  std::vector<int64_t> strides, dilations, begin, end;
  int64_t groups;
};

const Case kCases[] = {
    {{2, 8, 6, 7}, {8, 8, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1},
    {{1, 8, 9, 8}, {16, 8, 3, 2}, {2, 1}, {1, 2}, {0, 1}, {1, 0}, 1},
    {{2, 6, 5, 5}, {6, 1, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 6},
    {{3, 8, 20}, {8, 8, 3}, {1}, {1}, {0}, {0}, 1},
};

// The three operations on `device`, in the order forward, gradient of the input, gradient of the weight.
std::vector<std::vector<float>> results(const Device& device, const Case& c) {
  const Tensor x = device.from_host(numbers(product(c.x), 1), c.x);
  const Tensor weight = device.from_host(numbers(product(c.weight), 2), c.weight);
  const Tensor y = compute::convolution(x, weight, {}, c.strides, c.dilations, c.begin, c.end, "explicit", c.groups);
  const Tensor dy = device.from_host(numbers(y.size(), 3), y.shape());
  const std::vector<int64_t> spatial(c.x.begin() + 2, c.x.end()), kernel(c.weight.begin() + 2, c.weight.end());
  const Tensor dx = compute::convolution_grad_input(dy, weight, spatial, c.strides, c.dilations, c.begin, c.end,
                                                    "explicit", c.groups);
  const Tensor dw =
      compute::convolution_grad_weight(dy, x, kernel, c.strides, c.dilations, c.begin, c.end, "explicit", c.groups);
  return {y.to_vector<float>(), dx.to_vector<float>(), dw.to_vector<float>()};
}

TEST(CudaDnn, ConvolvesAsTheCpuDoes) {
  const Device cuda = Device::open("cuda0"), cpu = Device::open("cpu");
  for (const Case& c : kCases) {
    const int64_t before = library_runs();
    const auto got = results(cuda, c), wanted = results(cpu, c);
    const int64_t runs = library_runs() - before;
    if (!is_set("COMPUTE_CUDA_CUDNN", "always")) {
      EXPECT_EQ(runs, 0) << "small convolutions are for generated kernels";
      continue;
    }
    EXPECT_EQ(runs, 2) << "in float32 the gradient of the weight is for generated kernels";
    EXPECT_EQ(got[0], wanted[0]);
    EXPECT_EQ(got[1], wanted[1]);
  }
}

TEST(CudaDnn, ConvolvesHalves) {
  const Device cuda = Device::open("cuda0");
  const std::vector<int64_t> shape = {8, 16, 16, 16}, kernel = {16, 16, 3, 3};
  const Tensor x = compute::cast(cuda.from_host(numbers(product(shape), 1), shape), compute::float16);
  const Tensor weight = compute::cast(cuda.from_host(numbers(product(kernel), 2), kernel), compute::float16);
  const int64_t before = library_runs();
  const Tensor y = compute::convolution(x, weight, {}, {1, 1}, {1, 1}, {1, 1}, {1, 1});
  cuda.synchronize();
  EXPECT_EQ(library_runs() - before, is_set("COMPUTE_CUDA_CUDNN", "never") ? 0 : 1);
  EXPECT_EQ(y.size(), product(shape));
}

TEST(CudaDnn, LeavesOtherLayoutsToGeneratedKernels) {
  const Device cuda = Device::open("cuda0");
  const Tensor x = cuda.from_host(numbers(2 * 6 * 7 * 8, 1), {2, 6, 7, 8}).permute({0, 3, 1, 2});
  const Tensor weight = cuda.from_host(numbers(8 * 8 * 9, 2), {8, 8, 3, 3});
  const int64_t before = library_runs();
  const Tensor y = compute::convolution(x, weight);
  cuda.synchronize();
  EXPECT_EQ(library_runs(), before);
}

TEST(CudaDnn, AttendsAsItsDefinitionSays) {
  constexpr int64_t kHeads = 2, kRows = 5, kFeatures = 8;
  const Device cuda = Device::open("cuda0"), cpu = Device::open("cpu");
  const std::vector<int64_t> shape = {1, kHeads, kRows, kFeatures};
  std::vector<std::vector<float>> values;
  for (uint32_t i = 0; i < 3; ++i) {
    values.push_back(numbers(product(shape), 10 + i));
    for (float& each : values.back()) each /= 4;
  }
  // The fake library reads device memory, so halves must get there without a kernel.
  const auto halves = [&](const std::vector<float>& list) {
    return compute::cast(cpu.from_host(list, shape), compute::float16).to(cuda);
  };
  for (const bool causal : {false, true}) {
    const int64_t before = library_runs();
    const auto [y, logsumexp] = compute::attention(halves(values[0]), halves(values[1]), halves(values[2]), {}, causal);
    const std::vector<float> got = compute::cast(y.to(cpu), compute::float32).to_vector<float>();
    const std::vector<float> sums = logsumexp.to_vector<float>();
    // Small ones are for the generated kernel, which the fake driver does not run.
    if (is_set("COMPUTE_CUDA_CUDNN", "auto") || is_set("COMPUTE_CUDA_CUDNN", "never")) {
      EXPECT_EQ(library_runs(), before);
      continue;
    }
    EXPECT_TRUE(is_set("COMPUTE_CUDA_CUDNN", "always"));
    EXPECT_EQ(library_runs() - before, 1);
    for (int64_t h = 0; h < kHeads; ++h) {
      for (int64_t i = 0; i < kRows; ++i) {
        const auto at = [&](int which, int64_t row, int64_t d) {
          return static_cast<double>(
              values[static_cast<size_t>(which)][static_cast<size_t>((h * kRows + row) * kFeatures + d)]);
        };
        std::vector<double> weights;
        double total = 0;
        for (int64_t j = 0; j < (causal ? i + 1 : kRows); ++j) {
          double score = 0;
          for (int64_t d = 0; d < kFeatures; ++d) score += at(0, i, d) * at(1, j, d);
          weights.push_back(std::exp(score / std::sqrt(static_cast<double>(kFeatures))));
          total += weights.back();
        }
        EXPECT_NEAR(static_cast<double>(sums[static_cast<size_t>(h * kRows + i)]), std::log(total), 1e-5);
        for (int64_t d = 0; d < kFeatures; ++d) {
          double wanted = 0;
          for (size_t j = 0; j < weights.size(); ++j) wanted += weights[j] / total * at(2, static_cast<int64_t>(j), d);
          EXPECT_NEAR(static_cast<double>(got[static_cast<size_t>((h * kRows + i) * kFeatures + d)]), wanted, 2e-3);
        }
      }
    }
  }
}

// With COMPUTE_DETERMINISTIC=1 the graph is another one.
TEST(CudaDnn, GivesTheGradientOfAttentionAsTheCpuDoes) {
  constexpr int64_t kRows = 6;
  const Device cuda = Device::open("cuda0"), cpu = Device::open("cpu");
  const auto halves = [&](uint32_t seed) {
    std::vector<float> list = numbers(2 * 2 * kRows * 8, seed);
    for (float& each : list) each /= 8;
    // Heads lie between rows, as they do after a product that makes all of them.
    return compute::cast(cpu.from_host(list, {2, kRows, 2, 8}), compute::float16).permute({0, 2, 1, 3});
  };
  const Tensor q = halves(1), k = halves(2), v = halves(3), dy = halves(4);
  for (const bool causal : {false, true}) {
    const auto [y, logsumexp] = compute::attention(q, k, v, {}, causal);
    const auto [dq, dk, dv] = compute::attention_grad(dy, q, k, v, y, logsumexp, {}, causal);
    const int64_t before = library_runs();
    const auto [cuda_dq, cuda_dk, cuda_dv] = compute::attention_grad(dy.to(cuda), q.to(cuda), k.to(cuda), v.to(cuda),
                                                                     y.to(cuda), logsumexp.to(cuda), {}, causal);
    cuda.synchronize();
    if (!is_set("COMPUTE_CUDA_CUDNN", "always")) {
      EXPECT_EQ(library_runs(), before);
      continue;
    }
    EXPECT_EQ(library_runs() - before, 1);
    const auto expect_same = [&](const Tensor& got, const Tensor& wanted) {
      const std::vector<float> a = compute::cast(got.to(cpu), compute::float32).to_vector<float>();
      const std::vector<float> b = compute::cast(wanted, compute::float32).to_vector<float>();
      for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 2e-3f) << i;
    };
    expect_same(cuda_dq, dq);
    expect_same(cuda_dk, dk);
    expect_same(cuda_dv, dv);
  }
}

// Runs in a separate process, with COMPUTE_TEST_END=1. The thread that closes the library has no current context, and
// cuda0 is not the driver's first device, whose context would have stayed current.
TEST(CudaDnnEnd, DestroysPlansInTheirContext) {
  if (!is_set("COMPUTE_TEST_END", "1")) GTEST_SKIP() << "for COMPUTE_TEST_END=1";
  {
    const Device cuda = Device::open("cuda0");
    for (const Case& c : kCases) static_cast<void>(results(cuda, c));
  }
  const int64_t before = counted("fake_cudnn_plans_destroyed");
  int32_t is_drained = 0;
  compute::check(compute_shutdown(COMPUTE_TIMEOUT_NONE, &is_drained));
  EXPECT_EQ(is_drained, 1);
  EXPECT_GT(counted("fake_cudnn_plans_destroyed"), before);
  EXPECT_EQ(counted("fake_cudnn_plans_destroyed_without_context"), 0);
}

}  // namespace
