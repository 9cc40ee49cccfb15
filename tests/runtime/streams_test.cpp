// SPDX-License-Identifier: Apache-2.0
// Streams without events: hazards between them, waiting, and releases while work is queued.
#include <malloc.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <random>
#include <thread>

#include "runtime.hpp"
#include "sanitizer.hpp"
#include "tests/gate/gate.hpp"

namespace {

using compute::Gate;
using compute::kSanitizer;
using compute::Stream;
using compute::Tensor;
using namespace runtime;

class Streams : public ::testing::TestWithParam<const char*> {
 protected:
  compute::Device device() const { return compute::Device::open(GetParam()); }
};

TEST_P(Streams, AReaderOnAnotherStreamSeesTheWrite) {
  const Stream a(device()), b(device());
  Tensor x = device().from_host(iota(20000));
  for (int i = 0; i < 50; ++i) {
    const Tensor y = compute::add(x, 1.0f, a);
    x = compute::add(y, 1.0f, b);
  }
  EXPECT_EQ(x.to_vector<float>()[0], 100.0f);
}

TEST_P(Streams, TheDefaultStreamHasAHandle) {
  compute_stream* handle = nullptr;
  const Stream stream = Stream::default_of(device());
  EXPECT_EQ(compute_stream_device(stream.get()), device().get());
  const Tensor x = device().from_host(iota(20000));
  const Tensor y = compute::add(x, 1.0f);  // on the default stream
  stream.synchronize();
  EXPECT_TRUE(stream.finished());
  EXPECT_EQ(compute::add(y, 1.0f, stream).to_vector<float>()[19999], 20001);
  EXPECT_EQ(thrown_by([&] { compute::check(compute_graph_begin(stream.get(), nullptr)); }).code,
            COMPUTE_ERROR_UNSUPPORTED);
  EXPECT_EQ(thrown_by([&] { compute::check(compute_device_default_stream(nullptr, &handle)); }).code,
            COMPUTE_ERROR_INVALID_ARGUMENT);
}

// Work queued after a tensor on its stream is held up until the tensor has been waited for and read.
TEST_P(Streams, ATensorIsWaitedForWithoutTheWorkBehindIt) {
  const size_t count = size_t{1} << 22;
  const Tensor ones = device().from_host(std::vector<float>(count, 1));
  std::vector<Stream> streams;
  streams.emplace_back(device());
  if (std::string(GetParam()) != "cpu") streams.push_back(Stream::default_of(device()));
  for (const Stream& stream : streams) {
    compute::multiply(ones, 5.0f, stream).synchronize();  // compiled before anything is held up
    Gate gate;
    std::mutex mutex;
    std::condition_variable done;
    bool is_done = false, has_given_up = false;
    const Tensor y = compute::multiply(ones, 2.0f, stream);
    const Tensor z = compute::multiply(y, 3.0f, stream);
    gate.hold(stream, device());
    const Tensor last = compute::multiply(z, 4.0f, stream);
    std::thread watcher([&] {
      std::unique_lock lock(mutex);
      has_given_up = !done.wait_for(lock, std::chrono::seconds(60), [&] { return is_done; });
      gate.open();
    });
    y.synchronize();
    EXPECT_EQ(y.to_vector<float>(), std::vector<float>(count, 2));
    {
      const std::lock_guard lock(mutex);
      is_done = true;
    }
    done.notify_one();
    watcher.join();
    EXPECT_FALSE(has_given_up) << "the work behind was waited for";
    EXPECT_EQ(last.to_vector<float>(), std::vector<float>(count, 24));
  }
}

TEST_P(Streams, AWriterWaitsForTheReadersOfOtherStreams) {
  const Stream a(device()), b(device()), c(device());
  const Tensor x = device().from_host(std::vector<float>(50000, 1));
  for (int i = 0; i < 20; ++i) {
    const Tensor first = compute::add(x, 0.0f, a), second = compute::add(x, 0.0f, b);
    const Tensor one = Tensor::scalar(1.0f, true);
    compute::check(compute_add_into(c.get(), x.get(), one.get(), x.get()));
    EXPECT_EQ(first.to_vector<float>()[49999], 1.0f + static_cast<float>(i));
    EXPECT_EQ(second.to_vector<float>()[0], 1.0f + static_cast<float>(i));
  }
}

TEST_P(Streams, MemoryReleasedInFlightIsNotReusedTooEarly) {
  const Stream a(device()), b(device());
  const Tensor base = device().from_host(std::vector<float>(30000, 1));
  for (int i = 0; i < 100; ++i) {
    Tensor sum;
    {
      const Tensor temporary = compute::add(base, static_cast<float>(i), a);
      sum = compute::add(temporary, temporary, a);
    }
    const Tensor other = compute::multiply(base, -1.0f, b);  // may take the temporary's memory
    ASSERT_EQ(sum.to_vector<float>()[29999], 2.0f + 2.0f * static_cast<float>(i)) << i;
  }
}

TEST_P(Streams, ReleasedStreamsFinishTheirWork) {
  const Tensor x = device().from_host(iota(10000));
  std::vector<Tensor> results;
  for (int i = 0; i < 40; ++i) {
    const Stream stream(device());
    results.push_back(compute::add(x, static_cast<float>(i), stream));
  }
  for (int i = 0; i < 40; ++i)
    EXPECT_EQ(results[static_cast<size_t>(i)].to_vector<float>()[1], 1.0f + static_cast<float>(i));
}

TEST_P(Streams, EventsOrderWhatTheyAreAskedTo) {
  const Stream a(device()), b(device());
  const Tensor x = device().from_host(iota(10000));
  const Tensor y = compute::add(x, 1.0f, a);
  const compute::Event event(a);
  b.wait(event);
  event.synchronize();
  int32_t finished = 0;
  compute::check(compute_event_query(event.get(), &finished));
  EXPECT_EQ(finished, 1);
  b.synchronize();
  EXPECT_TRUE(a.finished());
}

// Streams that core does not order, with nothing but waits between the writer and the reader.
TEST_P(Streams, EventsOrderThroughAStreamThatOnlyWaits) {
  const auto untracked = [this] {
    compute_stream_options options{};
    options.struct_size = sizeof options;
    options.flags = COMPUTE_STREAM_UNTRACKED;
    compute_stream* stream = nullptr;
    compute::check(compute_stream_create(device().get(), &options, &stream));
    return Stream(stream);
  };
  const Stream writer = untracked(), between = untracked(), reader = untracked();
  constexpr int64_t kSide = 96;
  const Tensor x = device().from_host(std::vector<float>(kSide * kSide, 1), {kSide, kSide});
  for (int i = 0; i < 5; ++i) {
    const Tensor y = device().from_host(std::vector<float>(kSide * kSide, 0), {kSide, kSide});
    y.synchronize();
    compute::check(compute_matmul_into(writer.get(), x.get(), x.get(), nullptr, y.get()));
    between.wait(compute::Event(writer));
    reader.wait(compute::Event(between));
    const Tensor z = compute::negative(y, reader);
    reader.synchronize();
    EXPECT_EQ(z.to_vector<float>(), std::vector<float>(kSide * kSide, -kSide)) << i;
  }
}

TEST_P(Streams, NotifyComesAfterTheWork) {
  const Stream stream(device());
  const Tensor x = device().from_host(std::vector<float>(100000, 1));
  const Tensor y = compute::add(x, 1.0f, stream);
  std::atomic<int> state{0};
  compute::check(compute_stream_notify(
      stream.get(),
      [](const compute_error* error, void* user_data) {
        static_cast<std::atomic<int>*>(user_data)->store(error == nullptr ? 1 : 2);
        static_cast<std::atomic<int>*>(user_data)->notify_all();
      },
      &state));
  state.wait(0);
  EXPECT_EQ(state.load(), 1);
  EXPECT_TRUE(stream.finished());
}

TEST_P(Streams, AsyncTransfersKeepStreamOrder) {
  const Stream stream(device());
  std::vector<float> in = iota(5000), out(5000, 0);
  const Tensor x = device().empty(COMPUTE_DTYPE_FLOAT32, {5000});
  compute::check(compute_tensor_write_async(x.get(), in.data(), 20000, stream.get()));
  const Tensor y = compute::negative(x, stream);
  compute::check(compute_tensor_read_async(y.get(), out.data(), 20000, stream.get()));
  stream.synchronize();
  EXPECT_EQ(out[4999], -4999.0f);
}

TEST_P(Streams, ThreadsShareTensorsWithoutEvents) {
  const Tensor x = device().from_host(std::vector<float>(4096, 0));
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      const Stream stream(device());
      const Tensor one = Tensor::scalar(1.0f, true);
      for (int i = 0; i < 25; ++i) compute::check(compute_add_into(stream.get(), x.get(), one.get(), x.get()));
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::vector<float> values = x.to_vector<float>();
  for (const float value : values) ASSERT_EQ(value, 200.0f);
}

TEST_P(Streams, DefaultStreamsOfThreadsAreOrderedByHazards) {
  const Tensor x = device().from_host(std::vector<float>(1000, 0));
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&] {
      const Tensor one = Tensor::scalar(1.0f, true);
      for (int i = 0; i < 50; ++i) compute::check(compute_add_into(nullptr, x.get(), one.get(), x.get()));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(x.to_vector<float>()[500], 300.0f);
}

TEST_P(Streams, ManyInFlightAreHeldBackNotLost) {
  const Stream stream(device());
  Tensor x = device().from_host(std::vector<float>(4, 0));
  for (int i = 0; i < 10000; ++i) x = compute::add(x, 1.0f, stream);
  EXPECT_EQ(x.to_vector<float>()[3], 10000.0f);
}

TEST_P(Streams, SteadyLoopTakesNothingFromTheDevice) {
  const Tensor x = device().from_host(iota(5000));
  Tensor y;
  for (int i = 0; i < 20; ++i) y = compute::exp(compute::negative(x));
  device().synchronize();
  const auto before = device().statistics();
  for (int i = 0; i < 500; ++i) y = compute::exp(compute::negative(x));
  device().synchronize();
  const auto after = device().statistics();
  EXPECT_EQ(after.allocations_from_device, before.allocations_from_device);
  EXPECT_EQ(after.plans_prepared, before.plans_prepared);
  EXPECT_GT(after.ops_run, before.ops_run);
}

// Bytes that the process holds on its heap; sanitizers' allocators say 0.
size_t heap_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

TEST_P(Streams, ShapesWithoutEndLeaveFewPlansAndFlatMemory) {
  // Plans fill up within the first. Under sanitizers a plan takes up to a millisecond.
  const int kCount = kSanitizer ? 30000 : 100000, kWarm = kSanitizer ? 10000 : 20000;
  const Tensor x = device().from_host(iota(1200));
  compute_device_statistics before{};
  size_t heap_before = 0;
  int count = 0;
  // Rank 4 has this many shapes of few elements, so that the time goes into plans.
  for (int64_t a = 1; a <= 1200 && count < kCount; ++a) {
    for (int64_t b = 1; a * b <= 1200 && count < kCount; ++b) {
      for (int64_t c = 1; a * b * c <= 1200 && count < kCount; ++c) {
        for (int64_t d = 1; a * b * c * d <= 1200 && count < kCount; ++d) {
          static_cast<void>(compute::negative(x.slice(0, 0, a * b * c * d).reshape({a, b, c, d})));
          if (++count != kWarm) continue;
          device().synchronize();
          before = device().statistics();
          heap_before = heap_bytes();
        }
      }
    }
  }
  device().synchronize();
  const auto after = device().statistics();
  EXPECT_GE(after.plans_prepared - before.plans_prepared, kCount - kWarm);
  EXPECT_LE(after.plans_live, 4096);
  EXPECT_EQ(after.kernels_compiled, before.kernels_compiled);
  EXPECT_EQ(after.memory_used, before.memory_used);
  EXPECT_EQ(after.memory_reserved, before.memory_reserved);
  // Evicted plans wait for the device, which may have thousands of calls in flight. If all were kept, they would take
  // 200 MB.
  EXPECT_LE(heap_bytes(), heap_before + (8 << 20));
}

INSTANTIATE_TEST_SUITE_P(Devices, Streams, ::testing::Values("cpu", "minimal0"),
                         [](const auto& info) { return info.param; });

}  // namespace
