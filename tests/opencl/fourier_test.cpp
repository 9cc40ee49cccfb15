// SPDX-License-Identifier: Apache-2.0
// Transforms of lengths with large prime factors, whose plans keep a filter: rows in several parts, long rows, and
// several threads. A row has one element that is not 0, so each element of its transform is one root of unity.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>
#include <thread>

#include "device.hpp"

namespace compute::opencl_tests {
namespace {

using Complex = std::complex<float>;

class OpenclFourier : public testing::Test {
 protected:
  static int64_t place_of(int64_t row, int64_t length) { return (row * 7919 + 12) % length; }

  Tensor rows(int64_t count, int64_t length) const {
    std::vector<Complex> values(static_cast<size_t>(count * length));
    for (int64_t row = 0; row < count; ++row)
      values[static_cast<size_t>(row * length + place_of(row, length))] = {0.f, 2.f};
    return device_.from_host(values, {count, length});
  }

  // Row r of the result is the transform of the row that `of(r)` states. `sign` is the sign of the exponent.
  template <class Of>
  static void expect(const Tensor& result, int64_t length, int sign, double scale, const Of& of) {
    const std::vector<Complex> values = result.to_vector<Complex>();
    std::vector<std::complex<double>> roots;
    for (int64_t k = 0; k < length; ++k)
      roots.push_back(
          std::polar(1.0, sign * 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(length)));
    // As in the tests for every device; the moduli of a row have one that is not 0.
    const double bound = 2 * (std::log2(static_cast<double>(length)) + 8) * 0x1p-24 * 2 * scale;
    int64_t wrong = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      const auto row = static_cast<int64_t>(i) / length, k = static_cast<int64_t>(i) % length;
      const std::complex<double> expected =
          std::complex<double>(0, 2 * scale) * roots[static_cast<size_t>(place_of(of(row), length) * k % length)];
      if (std::abs(std::complex<double>(values[i]) - expected) <= bound) continue;
      if (++wrong == 1)
        ADD_FAILURE() << "row " << row << ", element " << k << ": " << values[i] << ", not " << expected;
    }
    EXPECT_EQ(wrong, 0);
  }

  Device device_ = Device::open("opencl");
};

TEST_F(OpenclFourier, RowsInSeveralParts) {
  const int64_t count = 2200, length = 1009;
  const Tensor x = rows(count, length);
  expect(fft(x, 1), length, -1, 1, [](int64_t row) { return row; });
  // Two loops over the rows of x, or of the result.
  const Tensor turned = x.reshape({count / 2, 2, length}).permute({1, 0, 2});
  const auto of = [](int64_t row) { return row % (count / 2) * 2 + row / (count / 2); };
  expect(fft(turned, 2, true), length, 1, 1.0 / length, of);
  const Tensor y = device_.empty(COMPUTE_DTYPE_COMPLEX64, {count / 2, 2, length});
  fft_into(x.reshape({2, count / 2, length}), y.permute({1, 0, 2}), 2, false, "ortho");
  expect(y, length, -1, 1 / std::sqrt(length), [](int64_t row) { return row % 2 * (count / 2) + row / 2; });
}

TEST_F(OpenclFourier, LongRows) {
  const int64_t length = 70001;  // several kernels of VkFFT
  for (const int64_t count : {1, 3}) {
    expect(fft(rows(count, length), 1), length, -1, 1, [](int64_t row) { return row; });
  }
}

TEST_F(OpenclFourier, ManyThreads) {
  const int64_t count = 3, length = 331;
  const Tensor x = rows(count, length);
  expect(fft(x, 1), length, -1, 1, [](int64_t row) { return row; });
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      const Stream stream(device_);
      for (int i = 0; i < 20; ++i) {
        const Tensor y = fft(x, 1, false, "backward", stream);
        stream.synchronize();
        expect(y, length, -1, 1, [](int64_t row) { return row; });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace compute::opencl_tests
