// SPDX-License-Identifier: Apache-2.0
// Commands that a layer refuses after other commands of the same plan have been queued, on any driver.
#include <gtest/gtest.h>

#include <complex>
#include <utility>
#include <vector>

#include "device.hpp"
#include "failing_layer.hpp"

namespace compute::opencl_tests {
namespace {

constexpr int64_t kCount = int64_t{1} << 22;  // as many ones: their sum is exact, and of two passes
const std::string kPart = "part of the work had been queued";

struct Outcome {
  compute_error_code code = COMPUTE_OK;
  std::string message;
};

Outcome outcome_of(compute_error* error) {
  if (error == nullptr) return {};
  Outcome outcome{compute_error_get_code(error), compute_error_message(error)};
  compute_error_free(error);
  return outcome;
}

bool has(const Outcome& outcome, const std::string& part) { return outcome.message.find(part) != std::string::npos; }

class OpenclFailure : public testing::Test {
 protected:
  void SetUp() override {
    try {
      device_ = Device::open("opencl");
    } catch (const Error& error) {
      if (error.code() != COMPUTE_ERROR_NOT_FOUND) throw;
      GTEST_SKIP() << error.what();
    }
    ones_ = device_.full({kCount}, 1.0f);
    sum_ = device_.empty(COMPUTE_DTYPE_FLOAT32, {});
    const Stream stream(device_);
    compute_layer_fail(COMPUTE_LAYER_KERNEL, 0);
    ASSERT_EQ(add_up(stream).code, COMPUTE_OK);
    if (compute_layer_calls(COMPUTE_LAYER_KERNEL) == 0)
      GTEST_SKIP() << "the OpenCL loader knows no layers: it has to be ocl-icd 2.3 or Khronos's";
    expect_sum();
  }
  void TearDown() override {
    compute_layer_fail(COMPUTE_LAYER_KERNEL, 0);
    compute_layer_fail(COMPUTE_LAYER_FILL, 0);
  }

  Outcome add_up(const Stream& stream) {
    return outcome_of(compute_sum_into(stream.get(), ones_.get(), nullptr, sum_.get()));
  }

  static Outcome read(const Tensor& tensor, float* value) {
    return outcome_of(compute_tensor_read(tensor.get(), value, sizeof *value));
  }

  void expect_sum() {
    float value = 0;
    const Outcome outcome = read(sum_, &value);
    EXPECT_EQ(outcome.code, COMPUTE_OK) << outcome.message;
    EXPECT_EQ(value, static_cast<float>(kCount));
  }

  // A stream that is said to have failed takes no more, and says why.
  static void expect_failed(const Stream& stream, Outcome again) {
    const int64_t calls = compute_layer_calls(COMPUTE_LAYER_KERNEL);
    EXPECT_EQ(again.code, COMPUTE_ERROR_STREAM_FAILED) << again.message;
    const Outcome waited = outcome_of(compute_stream_synchronize(stream.get()));
    EXPECT_EQ(waited.code, COMPUTE_ERROR_STREAM_FAILED);
    EXPECT_TRUE(has(waited, kPart)) << waited.message;
    EXPECT_EQ(compute_layer_calls(COMPUTE_LAYER_KERNEL), calls);
  }

  // CLBlast starts several kernels for it.
  Outcome multiply(const Stream& stream, const Tensor& product) {
    return outcome_of(compute_matmul_into(stream.get(), square_.get(), square_.get(), nullptr, product.get()));
  }

  Device device_;
  Tensor ones_, sum_, square_;
};

// Nothing was queued: the stream is as good as before.
TEST_F(OpenclFailure, OfTheFirstKernelLeavesTheStreamAsItWas) {
  const Stream stream(device_);
  compute_layer_fail(COMPUTE_LAYER_KERNEL, 1);
  const Outcome refused = add_up(stream);
  EXPECT_EQ(refused.code, COMPUTE_ERROR_OUT_OF_DEVICE_MEMORY);
  EXPECT_TRUE(has(refused, "clEnqueueNDRangeKernel: CL_OUT_OF_RESOURCES (-5)")) << refused.message;
  EXPECT_FALSE(has(refused, kPart)) << refused.message;
  stream.synchronize();
  EXPECT_EQ(add_up(stream).code, COMPUTE_OK);
  stream.synchronize();
  expect_sum();
}

TEST_F(OpenclFailure, OfALaterKernelFailsTheStream) {
  const Stream good(device_);
  compute_layer_fail(COMPUTE_LAYER_KERNEL, 0);
  ASSERT_EQ(add_up(good).code, COMPUTE_OK);
  const int64_t count = compute_layer_calls(COMPUTE_LAYER_KERNEL);
  ASSERT_GE(count, 2) << "an op of several kernels is needed";
  for (int64_t nth = 2; nth <= count; ++nth) {
    SCOPED_TRACE(nth);
    const Stream bad(device_);
    const Tensor before = device_.from_host(std::vector<float>{0});
    const Tensor four = device_.from_host(std::vector<float>{-4});
    check(compute_negative_into(bad.get(), four.get(), before.get()));
    bad.synchronize();

    compute_layer_fail(COMPUTE_LAYER_KERNEL, nth);
    const Outcome refused = add_up(bad);
    EXPECT_EQ(refused.code, COMPUTE_ERROR_OUT_OF_DEVICE_MEMORY);
    EXPECT_TRUE(has(refused, kPart)) << refused.message;
    EXPECT_EQ(compute_layer_calls(COMPUTE_LAYER_KERNEL), nth);
    expect_failed(bad, add_up(bad));

    // Its result has no values; earlier results are intact.
    float value = 0;
    EXPECT_EQ(read(sum_, &value).code, COMPUTE_ERROR_STREAM_FAILED);
    const Outcome kept = read(before, &value);
    EXPECT_EQ(kept.code, COMPUTE_OK) << kept.message;
    EXPECT_EQ(value, 4);

    // The device and other streams still work, and a full overwrite heals the result.
    const Outcome healed = add_up(good);
    EXPECT_EQ(healed.code, COMPUTE_OK) << healed.message;
    good.synchronize();
    expect_sum();
  }
}

TEST_F(OpenclFailure, OfALaterKernelOfClblastFailsTheStream) {
  if (std::string(device_.info().libraries).find("CLBlast, ") == std::string::npos)
    GTEST_SKIP() << "CLBlast is not installed";
  const Stream good(device_);
  Tensor product;
  int64_t size = 0, count = 0;
  // Which products it makes with several kernels depends on the device. No multiple of a tile, so that it makes copies
  // that are.
  for (const int64_t tried : {1030, 2054, 4102}) {
    size = tried;
    square_ = device_.full({size, size}, 1.0f);
    product = device_.full({size, size}, 0.0f);
    ASSERT_EQ(multiply(good, product).code, COMPUTE_OK);  // kernels that preparing the plan runs do not count
    compute_layer_fail(COMPUTE_LAYER_KERNEL, 0);
    ASSERT_EQ(multiply(good, product).code, COMPUTE_OK);
    count = compute_layer_calls(COMPUTE_LAYER_KERNEL);
    good.synchronize();
    if (count >= 2) break;
  }
  ASSERT_GE(count, 2) << "a product of several kernels is needed";
  std::vector<float> values(static_cast<size_t>(size * size));
  const std::vector<float> expected(values.size(), static_cast<float>(size));
  const int64_t size_bytes = size * size * static_cast<int64_t>(sizeof(float));
  for (int64_t nth = 1; nth <= count; ++nth) {
    SCOPED_TRACE(nth);
    const Stream bad(device_);
    compute_layer_fail(COMPUTE_LAYER_KERNEL, nth);
    const Outcome refused = multiply(bad, product);
    EXPECT_NE(refused.code, COMPUTE_OK);
    EXPECT_TRUE(has(refused, "CLBlast failed while multiplying")) << refused.message;
    EXPECT_TRUE(has(refused, kPart)) << refused.message;
    expect_failed(bad, multiply(bad, product));
    EXPECT_EQ(outcome_of(compute_tensor_read(product.get(), values.data(), size_bytes)).code,
              COMPUTE_ERROR_STREAM_FAILED);
    ASSERT_EQ(multiply(good, product).code, COMPUTE_OK);
    product.read(values.data(), size_bytes);
    EXPECT_EQ(values, expected);
  }
}

// VkFFT starts kernels between those of the plan.
TEST_F(OpenclFailure, OfALaterKernelOfATransformFailsTheStream) {
  const Tensor x = device_.full({11}, std::complex<float>(1)), y = device_.empty(COMPUTE_DTYPE_COMPLEX64, {11});
  const auto transform = [&](const Stream& stream) {
    return outcome_of(compute_fft_into(stream.get(), x.get(), nullptr, y.get()));
  };
  const Stream good(device_);
  ASSERT_EQ(transform(good).code, COMPUTE_OK);  // kernels that preparing the plan runs do not count
  compute_layer_fail(COMPUTE_LAYER_KERNEL, 0);
  ASSERT_EQ(transform(good).code, COMPUTE_OK);
  const int64_t count = compute_layer_calls(COMPUTE_LAYER_KERNEL);
  ASSERT_GE(count, 2);
  for (int64_t nth = 1; nth <= count; ++nth) {
    SCOPED_TRACE(nth);
    const Stream bad(device_);
    compute_layer_fail(COMPUTE_LAYER_KERNEL, nth);
    const Outcome refused = transform(bad);
    EXPECT_EQ(refused.code, COMPUTE_ERROR_OUT_OF_DEVICE_MEMORY) << refused.message;
    EXPECT_EQ(has(refused, kPart), nth > 1) << refused.message;
    if (nth > 1) expect_failed(bad, transform(bad));
  }
  ASSERT_EQ(transform(good).code, COMPUTE_OK);
  std::complex<float> values[11];
  y.read(values, sizeof values);
  EXPECT_NEAR(values[0].real(), 11, 1e-4);
  EXPECT_NEAR(std::abs(values[1]), 0, 1e-4);
}

// Records of indices out of range are read and cleared when a stream is marked; ones that stay would be taken for those
// of later work.
TEST_F(OpenclFailure, OfClearingTheFaultsFailsTheStream) {
  const Tensor x = device_.from_host(std::vector<float>{1, 2, 3});
  const Tensor indices = device_.from_host(std::vector<int64_t>{2, 0});
  const Tensor y = device_.empty(COMPUTE_DTYPE_FLOAT32, {2});
  const auto take = [&](const Stream& stream) {
    return outcome_of(compute_take_into(stream.get(), x.get(), indices.get(), nullptr, y.get()));
  };
  const Stream good(device_), bad(device_);
  for (const Stream* stream : {&good, &bad}) {
    ASSERT_EQ(take(*stream).code, COMPUTE_OK);
    stream->synchronize();
  }
  ASSERT_EQ(take(bad).code, COMPUTE_OK);
  compute_layer_fail(COMPUTE_LAYER_FILL, 1);
  const Outcome marked = outcome_of(compute_stream_synchronize(bad.get()));
  EXPECT_EQ(marked.code, COMPUTE_ERROR_STREAM_FAILED) << marked.message;
  EXPECT_TRUE(has(marked, "clEnqueueFillBuffer")) << marked.message;
  EXPECT_EQ(compute_layer_calls(COMPUTE_LAYER_FILL), 1);
  compute_layer_fail(COMPUTE_LAYER_KERNEL, 0);
  expect_failed(bad, take(bad));
  ASSERT_EQ(take(good).code, COMPUTE_OK);
  good.synchronize();
  float values[2] = {};
  y.read(values, sizeof values);
  EXPECT_EQ(values[0], 3);
  EXPECT_EQ(values[1], 1);
}

}  // namespace
}  // namespace compute::opencl_tests
