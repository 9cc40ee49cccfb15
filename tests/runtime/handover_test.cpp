// SPDX-License-Identifier: Apache-2.0
// Memory that is reused while work of the previous owner is still queued: that work never affects the new owner's
// data.
#include <algorithm>
#include <optional>

#include "../dlpack/dlpack.hpp"
#include "runtime.hpp"
#include "tests/gate/gate.hpp"

namespace {

using compute::Gate;
using compute::Graph;
using compute::Stream;
using compute::Tensor;
using namespace runtime;

constexpr float kOld = -1, kNew = 9;

// Each test queues `kOld` into a tensor behind a gate, releases it, and gets its memory again in another way. What it
// writes there is `kNew`, and must be so after the old work has run.
class Handover : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    try {
      device_ = compute::Device::open(GetParam());
    } catch (const compute::Error& error) {
      GTEST_SKIP() << error.what();
    }
    static int64_t count = 50000;
    count += 16384;  // a separate block for each test
    count_ = count;
    ones_ = device_.from_host(std::vector<float>(static_cast<size_t>(count_), 1));
    // Kernels are compiled and plans prepared before anything is held up.
    for (const Stream& stream : {first_.emplace(device_), second_.emplace(device_)}) {
      write(compute::multiply(ones_, kOld, stream), kNew, stream);
      stream.synchronize();
    }
    device_.synchronize();
    compute::check(compute_device_trim(device_.get(), 0));
  }

  bool is_cpu() const { return std::string(GetParam()) == "cpu"; }

  // The default stream where it has a handle.
  Stream default_stream() const { return is_cpu() ? *first_ : Stream::default_of(device_); }

  Tensor empty() const { return device_.empty(COMPUTE_DTYPE_FLOAT32, {count_}); }

  void write(const Tensor& y, float value, const Stream& stream) const {
    compute::check(compute_multiply_into(stream.get(), ones_.get(), Tensor::scalar(value, true).get(), y.get()));
  }

  Tensor take(const Tensor& indices, const Stream& stream) const {
    compute_tensor* y = nullptr;
    compute::check(compute_take(stream.get(), ones_.get(), indices.get(), nullptr, &y));
    return Tensor(y);
  }

  Stream untracked_stream() const {
    compute_stream_options options{};
    options.struct_size = sizeof options;
    options.flags = COMPUTE_STREAM_UNTRACKED;
    compute_stream* stream = nullptr;
    compute::check(compute_stream_create(device_.get(), &options, &stream));
    return Stream(stream);
  }

  // Holds `stream` up, with a write into memory that is free on return.
  void leave_old_work(const Stream& stream) {
    const Tensor old = compute::multiply(ones_, kOld, stream);
    gate_.hold(stream, device_);
    write(old, kOld, stream);
  }

  // Gives work that does not wait the time to come too early, and lets the old work run.
  void let_go(const Stream& stream) {
    int32_t reached = 0;
    compute::check(compute_stream_wait_for(stream.get(), 30'000'000, &reached));
    gate_.open();
    first_->synchronize();
    stream.synchronize();
    device_.synchronize();
  }

  void expect_new(const Tensor& y) const {
    const std::vector<float> values = y.to_vector<float>();
    EXPECT_EQ(std::count(values.begin(), values.end(), kNew), count_) << "the first is " << values[0];
  }

  // An output of a graph that was recorded on the first stream: it holds no values, and work of that stream may be
  // pending on its memory.
  Tensor recorded_on_first(Graph& graph) const {
    Tensor y;
    graph = Graph::record(*first_, [&] { y = compute::multiply(ones_, kNew, *first_); });
    return y;
  }

  compute::Device device_;
  int64_t count_ = 0;
  Tensor ones_;
  std::optional<Stream> first_, second_;
  Gate gate_;
};

TEST_P(Handover, OfAGraphThatRunsOnAnotherStream) {
  leave_old_work(*first_);
  Graph graph;
  const Tensor y = recorded_on_first(graph);
  graph.run(*second_);
  let_go(*second_);
  expect_new(y);
}

TEST_P(Handover, OfAGraphThatRunsOnAnUntrackedStream) {
  leave_old_work(*first_);
  Graph graph;
  const Tensor y = recorded_on_first(graph);
  const Stream untracked = untracked_stream();
  graph.run(untracked);
  let_go(untracked);
  expect_new(y);
}

TEST_P(Handover, ToAnOpOnAnotherStream) {
  leave_old_work(default_stream());
  const Tensor y = empty();
  write(y, kNew, *second_);
  let_go(*second_);
  expect_new(y);
}

TEST_P(Handover, ToATransferOnAnotherStream) {
  leave_old_work(default_stream());
  const Tensor y = empty();
  const std::vector<float> values(static_cast<size_t>(count_), kNew);
  compute::check(compute_tensor_write_async(y.get(), values.data(), count_ * 4, second_->get()));
  let_go(*second_);
  expect_new(y);
}

TEST_P(Handover, ToTheHostThatMapsIt) {
  leave_old_work(default_stream());
  const Tensor y = empty();
  gate_.open_soon();
  void* data = nullptr;
  int32_t is_copy = 0;
  compute::check(compute_tensor_map(y.get(), COMPUTE_ACCESS_WRITE, &data, &is_copy));
  std::fill_n(static_cast<float*>(data), count_, kNew);
  compute::check(compute_tensor_unmap(y.get(), data));
  let_go(*second_);
  expect_new(y);
}

// An output of a graph that has not run shows nothing, and least of all what its memory held before.
TEST_P(Handover, ToAnExportThatAsksForNoSynchronisation) {
  if (!is_cpu()) GTEST_SKIP() << GetParam() << " does not export memory";
  leave_old_work(*first_);
  Graph graph;
  const Tensor y = recorded_on_first(graph);
  gate_.open_soon();
  DLManagedTensorVersioned* managed = nullptr;
  EXPECT_EQ(thrown_by([&] { compute::check(compute_tensor_to_dlpack(y.get(), -1, &managed)); }).code,
            COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(managed, nullptr);
}

TEST_P(Handover, ToAWaitForTheTensor) {
  if (is_cpu()) GTEST_SKIP() << "memory of the default stream of cpu is never pending";
  const Stream stream = default_stream();
  leave_old_work(stream);
  const Tensor y = empty();
  gate_.open_soon();
  compute::check(compute_tensor_synchronize(y.get()));  // before the program writes there itself
  int32_t finished = 0;
  compute::check(compute_stream_query(stream.get(), &finished));
  EXPECT_EQ(finished, 1);
}

// A tensor that was never written inherits pending work.
TEST_P(Handover, OfATensorThatWasNeverUsed) {
  leave_old_work(*first_);
  {
    Graph graph;
    recorded_on_first(graph);
  }
  const Tensor y = compute::multiply(ones_, kNew, *second_);
  let_go(*second_);
  expect_new(y);
}

// The same for one that an op made and failed before its submission.
TEST_P(Handover, OfAnOutputWhoseOpFailed) {
  const Stream failing(device_);
  const std::vector<int64_t> out_of_range(static_cast<size_t>(count_), count_);
  const Tensor indices = device_.from_host(out_of_range);
  const Tensor worthless = take(indices, failing);
  ASSERT_EQ(thrown_by([&] { failing.synchronize(); }).code, COMPUTE_ERROR_KERNEL_FAILED);
  leave_old_work(*first_);
  ASSERT_EQ(thrown_by([&] { return compute::negative(worthless, *first_); }).code, COMPUTE_ERROR_KERNEL_FAILED);
  const Tensor y = compute::multiply(ones_, kNew, *second_);
  let_go(*second_);
  expect_new(y);
}

// An untracked stream writes without waiting for other work. Reuse of the memory waits for
// both.
TEST_P(Handover, OfATensorThatAnUntrackedStreamWroteToo) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the two streams write the same bytes at once on purpose";
#endif
  const Stream untracked = untracked_stream();
  {
    const Tensor old = compute::multiply(ones_, kOld, *first_);
    first_->synchronize();
    gate_.hold(*first_, device_);
    write(old, kOld, *first_);
    write(old, kOld, untracked);
  }
  const Tensor y = compute::multiply(ones_, kNew, untracked);
  let_go(untracked);
  expect_new(y);
}

// After a checked fault, dependent work on the stream has no values but still runs.
TEST_P(Handover, OfWorkThatIsSpoiltButStillRuns) {
  const std::vector<int64_t> out_of_range(static_cast<size_t>(count_), count_);
  const Tensor indices = device_.from_host(out_of_range);
  const Tensor y = empty();
  const Tensor worthless = take(indices, *first_);
  const compute::Event taken(*first_);
  gate_.hold(*first_, device_);
  write(y, kOld, *first_);
  ASSERT_EQ(thrown_by([&] { taken.synchronize(); }).code, COMPUTE_ERROR_KERNEL_FAILED);
  gate_.open_soon();
  write(y, kNew, *second_);
  second_->synchronize();
  (void)thrown_by([&] { first_->synchronize(); });
  expect_new(y);
}

// Whoever maps a tensor to overwrite it waits for the writes that it finds. One that another thread queues meanwhile
// stays on record.
TEST_P(Handover, OfATensorThatIsMappedWhileMoreIsQueued) {
  const int64_t extent = std::string(GetParam()) == "minimal0" ? int64_t{1} << 18 : int64_t{1} << 23;
  const Tensor ones = device_.from_host(std::vector<float>(static_cast<size_t>(extent), 1));
  const Tensor old_value = Tensor::scalar(kOld, true);
  Tensor old = device_.empty(COMPUTE_DTYPE_FLOAT32, {extent});
  const auto write_old = [&] {
    compute::check(compute_multiply_into(first_->get(), ones.get(), old_value.get(), old.get()));
  };
  write_old();
  first_->synchronize();
  gate_.hold(*first_, device_);
  write_old();
  std::thread mapper([&] {
    void* data = nullptr;
    int32_t is_copy = 0;
    compute::check(compute_tensor_map(old.get(), COMPUTE_ACCESS_WRITE, &data, &is_copy));
    std::fill_n(static_cast<float*>(data), extent, kOld);
    compute::check(compute_tensor_unmap(old.get(), data));
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  for (int i = 0; i < 30; ++i) write_old();
  gate_.open();
  mapper.join();
  old = Tensor();
  const std::vector<float> wanted(static_cast<size_t>(extent), kNew);
  const Tensor next = device_.empty(COMPUTE_DTYPE_FLOAT32, {extent});
  compute::check(compute_tensor_write(next.get(), wanted.data(), extent * 4));
  first_->synchronize();
  EXPECT_EQ(next.to_vector<float>(), wanted);
}

INSTANTIATE_TEST_SUITE_P(Devices, Handover, ::testing::Values("cpu", "minimal0", "opencl"));

}  // namespace
