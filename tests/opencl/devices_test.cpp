// SPDX-License-Identifier: Apache-2.0
// Two devices of one platform: POCL_DEVICES="pthread pthread" makes them of one processor.
#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <random>
#include <thread>

#include "device.hpp"

namespace compute::opencl_tests {
namespace {

class OpenclDevices : public testing::Test {
 protected:
  static std::vector<float> numbers(size_t count) {
    std::vector<float> values(count);
    std::iota(values.begin(), values.end(), 1.f);
    return values;
  }
  static Tensor to(const Tensor& tensor, const Device& device) {
    compute_tensor* copy = nullptr;
    check(compute_tensor_to_device(tensor.get(), device.get(), &copy));
    return Tensor(copy);
  }
  static Tensor add(const Stream& stream, const Tensor& x, const Tensor& y) {
    compute_tensor* sum = nullptr;
    check(compute_add(stream.get(), x.get(), y.get(), &sum));
    return Tensor(sum);
  }

  Device first_ = Device::open("opencl0:0"), second_ = Device::open("opencl0:1");
};

TEST_F(OpenclDevices, AreSelectedByNumber) {
  EXPECT_EQ(first_.name(), "opencl0:0");
  EXPECT_EQ(second_.name(), "opencl0:1");
  EXPECT_NE(first_.get(), second_.get());
  EXPECT_EQ(Device::open("opencl:1").name(), second_.name());
  EXPECT_EQ(Device::open("opencl0:7,opencl0:1").name(), second_.name());
  try {
    static_cast<void>(Device::open("opencl0:7"));
    FAIL() << "opencl0:7 opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), COMPUTE_ERROR_NOT_FOUND);
  }
}

TEST_F(OpenclDevices, TensorsMoveBetweenThem) {
  const std::vector<float> values = numbers(100'003);
  const Tensor x = first_.from_host(values);
  const Tensor y = to(x, second_);
  EXPECT_EQ(y.to_vector<float>(), values);
  const Tensor back = to(add(Stream(second_), y, y), first_);
  std::vector<float> twice = values;
  for (float& value : twice) value *= 2;
  EXPECT_EQ(back.to_vector<float>(), twice);
  // Every other element, in reverse.
  std::vector<float> some;
  for (size_t i = values.size(); i-- > 0;) {
    if ((values.size() - 1 - i) % 2 == 0) some.push_back(values[i]);
  }
  EXPECT_EQ(to(x.slice(0, std::nullopt, std::nullopt, -2), second_).to_vector<float>(), some);
}

TEST_F(OpenclDevices, ATensorOfOneIsNoOperandOfTheOther) {
  const Tensor x = first_.from_host(numbers(16)), y = second_.from_host(numbers(16));
  const auto code_of = [](auto&& call) {
    try {
      call();
    } catch (const Error& error) {
      return static_cast<compute_error_code>(error.code());
    }
    return compute_error_code{COMPUTE_OK};
  };
  EXPECT_EQ(code_of([&] { add(Stream(first_), x, y); }), COMPUTE_ERROR_DEVICE_MISMATCH);
}

TEST_F(OpenclDevices, AHostTensorHasAMirrorOnEach) {
  const std::vector<float> values = numbers(5000);
  const Tensor host = Device::open("cpu").from_host(values);
  std::vector<float> twice = values;
  for (float& value : twice) value *= 2;
  for (const Device& device : {first_, second_}) {
    const Tensor sum = add(Stream(device), host, host);
    EXPECT_EQ(sum.to_vector<float>(), twice) << device.name();
  }
}

// Streams of both hand a tensor to and fro, each waiting for the other's events.
TEST_F(OpenclDevices, StreamsWaitForEachOther) {
  const Stream streams[] = {Stream(first_), Stream(second_)};
  const Device* devices[] = {&first_, &second_};
  Tensor x = first_.full({4096}, 1.f);
  for (int step = 1; step <= 6; ++step) {
    const Stream& stream = streams[(step - 1) % 2];
    x = to(add(stream, x, x), *devices[step % 2]);
  }
  const std::vector<float> values = x.to_vector<float>();
  for (const float value : values) ASSERT_EQ(value, 64.f);
}

// The first time gives the stream another queue: work before it and after it stays in order.
TEST_F(OpenclDevices, TimesAreThoseOfTheWorkBetween) {
  const Stream stream(first_), other(second_);
  Tensor x = first_.full({1 << 20}, 1.f);
  for (int step = 0; step < 4; ++step) x = add(stream, x, x);
  const Event start(stream, {.timed = true});
  for (int step = 0; step < 4; ++step) x = add(stream, x, x);
  const Event middle(stream, {.timed = true}), end(stream, {.timed = true});
  const Event far(other, {.timed = true});
  EXPECT_GT(middle.elapsed_since(start).count(), 0);
  EXPECT_GE(end.elapsed_since(middle).count(), 0);
  EXPECT_EQ(end.elapsed_since(start), middle.elapsed_since(start) + end.elapsed_since(middle));
  EXPECT_LT(middle.elapsed_since(start), std::chrono::minutes(1));
  EXPECT_LT(std::chrono::abs(far.elapsed_since(start)), std::chrono::minutes(10)) << "by the host's clock";
  EXPECT_EQ(x.to_vector<float>()[77], 256.f);
}

// A program that has a stream's queue counts on it.
TEST_F(OpenclDevices, AQueueThatIsSharedStays) {
  const Stream stream(first_), timed(first_);
  const uint64_t queue = stream.native<compute_native_opencl>().queue;
  const Event start(stream, {.timed = true}), end(stream, {.timed = true});
  EXPECT_EQ(queue, stream.native<compute_native_opencl>().queue);
  try {
    static_cast<void>(end.elapsed_since(start));
    FAIL() << "there are times";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), COMPUTE_ERROR_UNSUPPORTED) << error.what();
  }
  const Event before(timed, {.timed = true});
  EXPECT_NE(timed.native<compute_native_opencl>().queue, 0U);
  const Event after(timed, {.timed = true});
  EXPECT_GE(after.elapsed_since(before).count(), 0);
}

TEST_F(OpenclDevices, WorkAtOnce) {
  std::vector<std::thread> threads;
  std::vector<float> results(2);
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] {
      const Device& device = i == 0 ? first_ : second_;
      const Stream stream(device);
      Tensor x = device.full({1000}, 1.f);
      for (int step = 0; step < 20; ++step) x = add(stream, x, x);
      results[static_cast<size_t>(i)] = x.to_vector<float>()[999];
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(results[0], 1048576.f);
  EXPECT_EQ(results[1], 1048576.f);
}

// Compilers warn of what people rarely mean, such as comparing a value with itself. A number that differs each time
// makes a kernel that is in no cache.
TEST_F(OpenclDevices, CompilersAreSilent) {
  const Tensor x = first_.from_host(std::vector<int32_t>{1, 2, 3});
  const std::string number = std::to_string(std::random_device()() % 1000000);
  testing::internal::CaptureStderr();
  for (const char* text :
       {"where(x == x, x, ", "where(x < x, x, ", "max(x, x) + min(x, x) * (", "convert(x != x, int32) + ("}) {
    static_cast<void>(Expression(text + number + ")", {"x"})(x).to_vector<int32_t>());
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace compute::opencl_tests
