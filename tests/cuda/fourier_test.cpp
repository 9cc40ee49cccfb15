// SPDX-License-Identifier: Apache-2.0
// Fourier transforms on a fake cuFFT: checks by results how the plugin passes axes, strides and batches. The fake
// driver runs no kernels, so these are transforms that need no map.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <compute/compute.hpp>

#include <cmath>
#include <complex>
#include <cstdint>
#include <string>
#include <vector>

namespace {

using compute::Device;
using compute::Tensor;
using Complex = std::complex<float>;

int64_t counted(const char* name) {
  void* library = dlopen("libcufft.so.12", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return 0;
  void* const symbol = dlsym(library, name);
  EXPECT_NE(symbol, nullptr) << "another cuFFT was found";
  return symbol == nullptr ? 0 : reinterpret_cast<int64_t (*)()>(symbol)();
}

template <class T>
std::vector<T> numbers(int64_t count) {
  std::vector<T> values;
  uint32_t seed = 7;
  const auto next = [&] {
    seed = seed * 1664525u + 1013904223u;
    return static_cast<float>(static_cast<int>(seed >> 28) - 8);
  };
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<T, Complex>) {
      const float re = next();
      values.push_back({re, next()});
    } else {
      values.push_back(next());
    }
  }
  return values;
}

int64_t product(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

// What `run` makes of x on cuda0, compared with cpu; and the number of calls that it took.
template <class T, class Run>
void expect_same(const std::vector<int64_t>& shape, int64_t calls, const Run& run, const std::string& what) {
  const std::vector<T> values = numbers<T>(product(shape));
  const int64_t before = counted("fake_cufft_calls");
  const Tensor got = run(Device::open("cuda0").from_host(values, shape));
  const std::vector<Complex> found = got.to_vector<Complex>();
  EXPECT_EQ(counted("fake_cufft_calls") - before, calls) << what;
  const std::vector<Complex> wanted = run(Device::open("cpu").from_host(values, shape)).template to_vector<Complex>();
  ASSERT_EQ(found.size(), wanted.size()) << what;
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_LE(std::abs(found[i] - wanted[i]), 1e-3f) << what << ", element " << i;
}

TEST(CudaFourier, TransformsAlongAnyAxes) {
  const std::vector<int64_t> shape = {3, 4, 5, 6};
  // Axes, and the calls that they take: a plan has one batch axis.
  const std::vector<std::pair<std::vector<int64_t>, int64_t>> cases = {{{3}, 1},
                                                                       {{0}, 1},
                                                                       {{2}, 6},
                                                                       {{1}, 3},
                                                                       {{2, 3}, 1},
                                                                       {{0, 1}, 1},
                                                                       {{1, 2}, 3},
                                                                       {{1, 2, 3}, 1},
                                                                       {{3, 1, 2}, 1},
                                                                       {{0, 1, 2}, 1},
                                                                       // More axes than cuFFT has, one by one.
                                                                       {{0, 1, 2, 3}, 1 + 1 + 3 + 6}};
  for (const auto& [axes, calls] : cases) {
    std::string what = "axes";
    for (const int64_t axis : axes) what += " " + std::to_string(axis);
    expect_same<Complex>(
        shape, calls, [&](const Tensor& x) { return compute::fft(x, axes); }, what);
    expect_same<Complex>(
        shape, calls, [&](const Tensor& x) { return compute::fft(x, axes, true, "forward"); }, what + ", inverse");
  }
  expect_same<Complex>(
      {60}, 1, [](const Tensor& x) { return compute::fft(x, {0}); }, "one line");
  expect_same<Complex>(
      {5, 6}, 1,
      [](const Tensor& x) {
        return compute::fft(x, {0, 1});
      },
      "one matrix");
}

TEST(CudaFourier, TakesViewsWithoutACopy) {
  expect_same<Complex>(
      {6, 8}, 1,
      [](const Tensor& x) {
        return compute::fft(x.permute({1, 0}), {1});
      },
      "transposed");
  expect_same<Complex>(
      {6, 8}, 1, [](const Tensor& x) { return compute::fft(x(compute::slice(1, 5), compute::slice(0, 8, 2)), {1}); },
      "a slice");
}

TEST(CudaFourier, TransformsRealNumbers) {
  for (const std::vector<int64_t>& axes : {std::vector<int64_t>{2}, {1, 2}, {0, 1, 2}, {0}}) {
    expect_same<float>(
        {4, 6, 8}, 1, [&](const Tensor& x) { return compute::rfft(x, axes); }, "rfft");
    expect_same<float>(
        {4, 6, 9}, 1, [&](const Tensor& x) { return compute::rfft(x, axes); }, "rfft of an odd length");
  }
  // Not along rows: the half axis is the outer one.
  expect_same<float>(
      {6, 8}, 2,
      [](const Tensor& x) {
        return compute::rfft(x, {1, 0});
      },
      "rfft, axes exchanged");
}

TEST(CudaFourier, DividesByAMap) {
  const Device cuda = Device::open("cuda0");
  const Tensor x = cuda.from_host(numbers<Complex>(35), {5, 7});
  const int64_t before = counted("fake_cufft_calls");
  const Tensor whole = compute::fft(x, {0, 1}, true), real = compute::irfft(x, {1}, 13),
               both = compute::irfft(x, {0, 1}, 12);
  cuda.synchronize();
  EXPECT_EQ(counted("fake_cufft_calls") - before, 1 + 1 + 2);
}

TEST(CudaFourier, LeavesLengthsWithoutAPlanToKernels) {
  const Device cuda = Device::open("cuda0");
  const int64_t before = counted("fake_cufft_calls");
  const Tensor y = compute::fft(cuda.from_host(numbers<Complex>(9973), {9973}));
  cuda.synchronize();
  EXPECT_EQ(counted("fake_cufft_calls"), before);
}

}  // namespace
