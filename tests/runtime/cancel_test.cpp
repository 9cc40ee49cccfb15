// SPDX-License-Identifier: Apache-2.0
// Work that is cancelled: what ends, and what has values afterwards.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>

#include "runtime.hpp"
#include "sanitizer.hpp"
#include "tests/gate/gate.hpp"

namespace runtime {
namespace {

using compute::Gate;
using compute::Stream;
using compute::Tensor;

constexpr int64_t kCount = int64_t{1} << 23;

// Takes seconds, if it is not cancelled.
const compute::Expression& long_expression() {
  static const auto* const expression =
      new compute::Expression("lgamma(x) + digamma(x) + erfinv(1 / x) + lgamma(x + 1) + digamma(x + 1)", {"x"});
  return *expression;
}

Tensor operand() { return host().full({kCount}, 2.5); }

compute_error_code code_of(const Tensor& tensor) {
  return thrown_by([&] { static_cast<void>(tensor.to_vector<double>()); }).code;
}

constexpr int kMostTries = 20;

// What `call` throws beside a thread that cancels all the time. On a busy machine that thread may get no processor
// during the call, which then succeeds and is made again.
template <class Cancel, class Call>
Thrown thrown_beside(const Cancel& cancel, const Call& call) {
  std::atomic<bool> ends{false};
  std::thread other([&] {
    while (!ends) {
      cancel();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  Thrown thrown;
  for (int i = 0; i < kMostTries && thrown.code == COMPUTE_OK; ++i) thrown = thrown_by(call);
  ends = true;
  other.join();
  return thrown;
}

TEST(Cancel, AStreamOfCpuEndsEarly) {
  const Stream stream(host()), other(host());
  const Tensor x = operand(), before = compute::negative(x, stream);
  stream.synchronize();
  const Tensor y = host().full({kCount}, 7.0), z = host().full({kCount}, 7.0);
  Gate gate;  // for a busy machine: without it all may be complete before this thread cancels it
  gate.hold(stream, host());
  long_expression().into({x}, {}, {y}, stream);
  long_expression().into({x}, {}, {z}, stream);
  const Tensor dependant = compute::negative(y, other);
  stream.cancel();
  gate.open();
  EXPECT_EQ(thrown_by([&] { stream.synchronize(); }).code, COMPUTE_ERROR_CANCELLED);
  EXPECT_EQ(thrown_by([&] { static_cast<void>(compute::negative(x, stream)); }).code, COMPUTE_ERROR_CANCELLED);
  EXPECT_EQ(code_of(y), COMPUTE_ERROR_CANCELLED);
  EXPECT_EQ(code_of(z), COMPUTE_ERROR_CANCELLED);
  EXPECT_EQ(code_of(dependant), COMPUTE_ERROR_CANCELLED);
  // Memory that the cancelled work did not come to is as before.
  void* data = nullptr;
  int32_t is_copy = 0;
  compute::check(compute_tensor_map(z.get(), COMPUTE_ACCESS_WRITE, &data, &is_copy));
  EXPECT_EQ(static_cast<double*>(data)[0], 7.0);
  EXPECT_EQ(static_cast<double*>(data)[kCount - 1], 7.0);
  compute::check(compute_tensor_unmap(z.get(), data));
  // What was complete has its values, and so has what a new stream computes.
  EXPECT_EQ(before.to_vector<double>()[kCount - 1], -2.5);
  EXPECT_EQ(compute::negative(x, Stream(host())).to_vector<double>()[0], -2.5);
  EXPECT_EQ(compute::negative(x, other).to_vector<double>()[0], -2.5);
}

TEST(Cancel, ACallOnTheDefaultStreamOfCpuReturns) {
  const Stream own = Stream::default_of(host());
  const Tensor x = operand(), y = host().full({kCount}, 7.0);
  for (int round = 0; round < 2; ++round) {
    const Thrown thrown = thrown_beside([&] { own.cancel(); }, [&] { long_expression().into({x}, {}, {y}); });
    EXPECT_EQ(thrown.code, COMPUTE_ERROR_CANCELLED);
    EXPECT_EQ(code_of(y), COMPUTE_ERROR_CANCELLED);
  }
  // The stream goes on, and what is overwritten has values again.
  compute::check(compute_negative_into(nullptr, x.get(), y.get()));
  EXPECT_EQ(y.to_vector<double>()[kCount - 1], -2.5);
  own.cancel();  // nothing is running
  EXPECT_EQ(compute::negative(x).to_vector<double>()[0], -2.5);
}

// Products run in tasks, between which they end.
TEST(Cancel, AProductEndsEarly) {
  const int64_t extent = compute::kSanitizer ? 1536 : 3072, count = extent * extent;
  const Tensor x = host().full({extent, extent}, 1.0), y = host().full({extent, extent}, 7.0);
  const Stream own = Stream::default_of(host());
  // A cancellation may come before the first task or behind the last, but not every time.
  bool has_ended_between = false;
  for (int i = 0; i < kMostTries && !has_ended_between; ++i) {
    const Thrown thrown =
        thrown_beside([&] { own.cancel(); },
                      [&] { compute::check(compute_matmul_into(nullptr, x.get(), x.get(), nullptr, y.get())); });
    ASSERT_EQ(thrown.code, COMPUTE_ERROR_CANCELLED);
    void* data = nullptr;
    int32_t is_copy = 0;
    compute::check(compute_tensor_map(y.get(), COMPUTE_ACCESS_WRITE, &data, &is_copy));
    double* const values = static_cast<double*>(data);
    const auto count_of = [&](double value) { return std::count(values, values + count, value); };
    has_ended_between = count_of(7.0) < count && count_of(static_cast<double>(extent)) < count;
    std::fill_n(values, count, 7.0);
    compute::check(compute_tensor_unmap(y.get(), data));
  }
  EXPECT_TRUE(has_ended_between) << "all of it was computed, or nothing";
}

compute_stream* interrupted_stream = nullptr;

TEST(Cancel, ASignalHandlerCanCancel) {
  const Stream own = Stream::default_of(host());
  interrupted_stream = own.get();
  std::signal(SIGUSR1, [](int) { compute_error_free(compute_stream_cancel(interrupted_stream)); });
  const Tensor x = operand();
  const pthread_t self = pthread_self();
  const Thrown thrown = thrown_beside([&] { pthread_kill(self, SIGUSR1); },
                                      [&] { static_cast<void>(compute::map(long_expression(), {x})); });
  EXPECT_EQ(thrown.code, COMPUTE_ERROR_CANCELLED);
  std::signal(SIGUSR1, SIG_DFL);
  EXPECT_EQ(compute::negative(x).to_vector<double>()[0], -2.5);
}

TEST(Cancel, AnotherPluginsStream) {
  const Stream stream(remote()), other(remote());
  const Tensor x = remote().from_host(iota(1 << 16));
  Tensor y = x;
  Gate gate;  // as above
  gate.hold(stream, remote());
  for (int i = 0; i < 200; ++i) y = compute::negative(y, stream);
  const Tensor dependant = compute::negative(y, other);
  stream.cancel();
  gate.open();
  EXPECT_EQ(thrown_by([&] { stream.synchronize(); }).code, COMPUTE_ERROR_CANCELLED);
  EXPECT_EQ(thrown_by([&] { static_cast<void>(dependant.to_vector<float>()); }).code, COMPUTE_ERROR_CANCELLED);
  EXPECT_EQ(compute::negative(x, other).to_vector<float>()[1], -1.0f);
}

TEST(Cancel, NeedsAStream) {
  EXPECT_EQ(thrown_by([&] { compute::check(compute_stream_cancel(nullptr)); }).code, COMPUTE_ERROR_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace runtime
