// SPDX-License-Identifier: Apache-2.0
// Memory that a program lends to a device: all of it comes from there, and goes back when nothing uses it.
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>

#include "../dlpack/dlpack.hpp"
#include "runtime.hpp"
#include "tests/gate/gate.hpp"

namespace {

using compute::Device;
using compute::Gate;
using compute::Graph;
using compute::Stream;
using compute::Tensor;
using namespace runtime;

// Counts, and fails where a test says so.
class Counting final : public compute::Allocator {
 public:
  void* allocate(int64_t size_bytes, int64_t alignment) override {
    const std::lock_guard guard(mutex_);
    ++asked;
    EXPECT_GT(size_bytes, 0);
    EXPECT_GE(alignment, 64);
    if (throws) throw std::bad_alloc();
    if (size_bytes > most || --until_failure == 0) return nullptr;
    const auto rounded = static_cast<size_t>((size_bytes + 2 * alignment - 1) / alignment * alignment);
    void* address = std::aligned_alloc(static_cast<size_t>(alignment), rounded);
    address = static_cast<char*>(address) + shift;
    live_[address] = size_bytes;
    live_bytes_ += size_bytes;
    return address;
  }
  void release(void* address, int64_t size_bytes) override {
    const std::lock_guard guard(mutex_);
    const auto found = live_.find(address);
    ASSERT_NE(found, live_.end()) << "memory that was not given";
    EXPECT_EQ(found->second, size_bytes);
    live_.erase(found);
    live_bytes_ -= size_bytes;
    std::free(static_cast<char*>(address) - shift);
    ++released;
  }

  size_t live() const {
    const std::lock_guard guard(mutex_);
    return live_.size();
  }
  int64_t live_bytes() const {
    const std::lock_guard guard(mutex_);
    return live_bytes_;
  }
  bool holds(const void* address) const {
    const std::lock_guard guard(mutex_);
    const auto after = live_.upper_bound(const_cast<void*>(address));
    if (after == live_.begin()) return false;
    const auto [begin, size_bytes] = *std::prev(after);
    return static_cast<const char*>(address) < static_cast<const char*>(begin) + size_bytes;
  }

  std::atomic<int64_t> asked{0}, released{0};
  std::atomic<int64_t> until_failure{0};  // calls; 0 and less: none fails
  std::atomic<int64_t> most{INT64_MAX};   // bytes of one block
  std::atomic<int64_t> shift{0};
  std::atomic<bool> throws{false};

 private:
  mutable std::mutex mutex_;
  std::map<void*, int64_t> live_;
  int64_t live_bytes_ = 0;
};

class Allocators : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    device_ = Device::open(GetParam());
    device_.synchronize();
    device_.set_allocator(allocator_);
  }
  void TearDown() override {
    device_.synchronize();
    device_.trim();
    EXPECT_EQ(allocator_.live(), 0U) << "not all memory went back";
    device_.reset_allocator();
  }
  bool is_cpu() const { return std::string(GetParam()) == "cpu"; }
  compute_error_code out_of_memory() const {
    return is_cpu() ? COMPUTE_ERROR_OUT_OF_MEMORY : COMPUTE_ERROR_OUT_OF_DEVICE_MEMORY;
  }
  int64_t reserved() const { return device_.statistics().memory_reserved; }

  Counting allocator_;
  Device device_;
};

TEST_P(Allocators, GiveAllMemoryAndGetItBack) {
  {
    const Tensor x = device_.from_host(iota(1000));
    const Tensor y = compute::exp(x * 0.0f) + x;
    std::vector<float> expected = iota(1000, 1);
    EXPECT_EQ(y.to_vector<float>(), expected);
    EXPECT_EQ(sum(y).item<float>(), 500500.0f);
    device_.synchronize();  // temporaries are released in the background
    EXPECT_EQ(reserved(), allocator_.live_bytes());
    EXPECT_GE(allocator_.live_bytes(), 8000);
    if (is_cpu()) {
      const auto mapped = y.map<float>();
      EXPECT_TRUE(allocator_.holds(mapped.data()));
    }
  }
  device_.synchronize();
  EXPECT_EQ(allocator_.live(), 0U) << "nothing is cached";
  EXPECT_EQ(reserved(), 0);
  EXPECT_EQ(allocator_.asked, allocator_.released);
  EXPECT_GE(allocator_.asked, 4);
}

TEST_P(Allocators, GetBlocksBackOnlyAfterTheWorkThatUsesThem) {
  Gate gate;
  const Stream stream(device_);
  gate.hold(stream, device_);
  const Tensor x = device_.from_host(iota(5000));
  const size_t before = allocator_.live();
  EXPECT_TRUE(compute::add(x, 1.0f, stream).defined());  // and is released at once
  EXPECT_GT(allocator_.live(), before) << "the work has not begun";
  gate.open();
  while (allocator_.live() > before) std::this_thread::yield();  // without a further call
  stream.synchronize();
}

TEST_P(Allocators, ThatFailAreOutOfMemory) {
  const Tensor held = device_.from_host(iota(4000));
  held.set_label("weights");
  allocator_.most = 100'000;
  const Thrown thrown = thrown_by([&] { static_cast<void>(device_.empty(COMPUTE_DTYPE_FLOAT32, {50'000})); });
  EXPECT_EQ(thrown.code, out_of_memory()) << thrown.message;
  EXPECT_NE(thrown.message.find("out of memory allocating 200000 bytes"), std::string::npos) << thrown.message;
  EXPECT_NE(thrown.message.find("float32 [4000]  \"weights\""), std::string::npos) << thrown.message;
  allocator_.most = INT64_MAX;
  allocator_.throws = true;
  EXPECT_EQ(thrown_by([&] { static_cast<void>(device_.empty(COMPUTE_DTYPE_FLOAT32, {10})); }).code, out_of_memory());
  allocator_.throws = false;
  EXPECT_EQ((held + 1).to_vector<float>(), iota(4000, 1));
}

// Whichever call fails, the values are right or there is an error, and nothing is lost.
TEST_P(Allocators, ThatFailOnceLoseNothing) {
  const Tensor x = device_.from_host(iota(300));
  for (int64_t fails = 1; fails < 12; ++fails) {
    allocator_.until_failure = fails;
    const Thrown thrown = thrown_by([&] {
      const Tensor row = x.reshape({3, 100}).slice(0, 0, 1);
      const Tensor y = compute::var(compute::exp(row * 0.0f) + row, 1);
      EXPECT_NEAR(y.item<float>(), 833.25f, 1e-2f);
    });
    EXPECT_TRUE(thrown.code == COMPUTE_OK || thrown.code == out_of_memory()) << thrown.message;
    allocator_.until_failure = 0;
    device_.synchronize();
    EXPECT_EQ(allocator_.live(), 1U) << "the input alone";
  }
}

TEST_P(Allocators, ThatGiveMisalignedMemoryAreRefused) {
  allocator_.shift = 8;
  const Thrown thrown = thrown_by([&] { static_cast<void>(device_.empty(COMPUTE_DTYPE_FLOAT32, {10})); });
  EXPECT_EQ(thrown.code, COMPUTE_ERROR_INVALID_ARGUMENT) << thrown.message;
  EXPECT_NE(thrown.message.find("which is not aligned to"), std::string::npos) << thrown.message;
  EXPECT_EQ(allocator_.live(), 0U);
  EXPECT_EQ(reserved(), 0);
  allocator_.shift = 0;
}

TEST_P(Allocators, ServeThreadsAndStreams) {
  constexpr int kThreads = 4;
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const Stream stream(device_);
      for (int i = 0; i < 50; ++i) {
        const auto size = static_cast<int64_t>(100 + 37 * ((i * 7 + t) % 40));
        Tensor x = device_.from_host(iota(size, static_cast<float>(t)));
        for (int k = 0; k < 4; ++k) x = compute::add(x, 1.0f, stream);
        if (x.to_vector<float>() != iota(size, static_cast<float>(t + 4))) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  device_.synchronize();
  EXPECT_EQ(allocator_.live(), 0U);
}

TEST_P(Allocators, ServeGraphs) {
  const Stream stream(device_);
  const Tensor x = device_.from_host(iota(2000));
  {
    Tensor y;
    const Graph graph = Graph::record(
        stream, [&] { y = compute::add(compute::exp(compute::multiply(x, 0.0f, stream), stream), x, stream); });
    for (int i = 0; i < 3; ++i) graph.run(stream);
    EXPECT_EQ(y.to_vector<float>(), iota(2000, 1));
    EXPECT_GT(allocator_.live(), 1U);
    EXPECT_EQ(thrown_by([&] { device_.reset_allocator(); }).code, COMPUTE_ERROR_INVALID_ARGUMENT);
  }
  stream.synchronize();
  device_.synchronize();
  EXPECT_EQ(allocator_.live(), 1U) << "the input alone";
}

TEST_P(Allocators, HoldMirrorsToo) {
  if (is_cpu()) GTEST_SKIP() << "host tensors need no mirror on cpu";
  {
    const Tensor x = host().from_host(iota(1000)), y = device_.from_host(iota(1000));
    EXPECT_EQ((x + y).to_vector<float>()[999], 1998.0f);
    device_.synchronize();  // temporaries are released in the background
    EXPECT_EQ(allocator_.live_bytes(), reserved());
    EXPECT_GE(allocator_.live(), 2U) << "the mirror of x, and y";
  }
  device_.synchronize();
  EXPECT_EQ(allocator_.live(), 0U);
}

TEST_P(Allocators, AreAskedRarelyWhereBlocksAreCached) {
  device_.set_allocator(allocator_, true);
  const int64_t before = allocator_.asked;
  for (int i = 0; i < 100; ++i) EXPECT_EQ((device_.from_host(iota(100)) + 1).to_vector<float>(), iota(100, 1));
  device_.synchronize();
  EXPECT_LE(allocator_.asked - before, 4);
  EXPECT_GT(allocator_.live(), 0U);
  EXPECT_EQ(reserved(), allocator_.live_bytes());
  device_.trim();
  EXPECT_EQ(allocator_.live(), 0U);
}

TEST_P(Allocators, AreNotChangedUnderLiveTensors) {
  const Tensor x = device_.from_host(iota(100));
  const Thrown thrown = thrown_by([&] { device_.reset_allocator(); });
  EXPECT_EQ(thrown.code, COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(thrown.message.find(GetParam()), std::string::npos) << thrown.message;
  EXPECT_NE(thrown.message.find("are in use"), std::string::npos) << thrown.message;
  const int64_t before = allocator_.asked;
  static_cast<void>(device_.empty(COMPUTE_DTYPE_FLOAT32, {10}));
  EXPECT_EQ(allocator_.asked, before + 1) << "it still serves";
}

TEST_P(Allocators, AreNotAskedAfterTheyAreReset) {
  device_.reset_allocator();
  EXPECT_EQ((device_.from_host(iota(100)) + 1).to_vector<float>(), iota(100, 1));
  EXPECT_EQ(allocator_.asked, 0);
}

TEST_P(Allocators, MustBeComplete) {
  const auto set = [&](auto change) {
    compute_allocator given = {};
    given.struct_size = sizeof given;
    given.struct_type = COMPUTE_STRUCT_ALLOCATOR;
    given.allocate = [](int64_t, int64_t, void*) -> void* { return nullptr; };
    given.release = [](void*, int64_t, void*) {};
    change(given);
    return thrown_by([&] { compute::check(compute_device_set_allocator(device_.get(), &given)); });
  };
  EXPECT_EQ(set([](auto& given) { given.allocate = nullptr; }).code, COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(set([](auto& given) { given.release = nullptr; }).code, COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(set([](auto& given) { given.flags = COMPUTE_ALLOCATOR_CACHED | 2; }).code, COMPUTE_ERROR_UNSUPPORTED);
  EXPECT_EQ(set([](auto& given) { given.reserved = 1; }).code, COMPUTE_ERROR_UNSUPPORTED);
  EXPECT_EQ(set([](auto& given) { given.struct_size = COMPUTE_ALLOCATOR_SIZE_1 - 1; }).code,
            COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(set([](auto& given) { given.struct_type = COMPUTE_STRUCT_LAUNCH; }).code, COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(set([](auto& given) { given.flags = COMPUTE_ALLOCATOR_CACHED; }).code, COMPUTE_OK);
  EXPECT_EQ(set([](auto& given) { given.struct_size = COMPUTE_ALLOCATOR_SIZE_1; }).code, COMPUTE_OK);
  EXPECT_EQ(thrown_by([&] { static_cast<void>(device_.empty(COMPUTE_DTYPE_FLOAT32, {1})); }).code, out_of_memory());
  const Device none;
  EXPECT_EQ(thrown_by([&] { none.reset_allocator(); }).code, COMPUTE_ERROR_INVALID_ARGUMENT);
}

INSTANTIATE_TEST_SUITE_P(Devices, Allocators, ::testing::Values("cpu", "minimal0"),
                         [](const auto& info) { return std::string(info.param); });

TEST(AllocatorsOfOthers, AreRefusedWithTheReason) {
  if (std::getenv("COMPUTE_MINIMAL_NATIVE") != nullptr) GTEST_SKIP() << "the minimal plugin imports memory here";
  Counting allocator;
  const Thrown thrown = thrown_by([&] { remote().set_allocator(allocator); });
  EXPECT_EQ(thrown.code, COMPUTE_ERROR_UNSUPPORTED);
  EXPECT_NE(
      thrown.message.find("minimal0 cannot use memory of a program's allocator: its plugin does not import memory"),
      std::string::npos)
      << thrown.message;
}

// Ends the process: no calls are possible after it.
TEST(AllocatorsAtTheEnd, GetAllBackByShutdown) {
  if (std::getenv("ALLOCATOR_TEST_SHUTDOWN") == nullptr) GTEST_SKIP() << "runs by itself";
  static Counting cpu_memory, device_memory;  // the library may look at them until the end
  host().set_allocator(cpu_memory, true);
  remote().set_allocator(device_memory);
  static const Tensor x = host().from_host(iota(100)), y = remote().from_host(iota(100)) + 1;
  EXPECT_GT(cpu_memory.live(), 0U);
  EXPECT_GT(device_memory.live(), 0U);
  EXPECT_TRUE(compute::shutdown(std::chrono::minutes(1)));
  EXPECT_EQ(cpu_memory.live(), 0U);
  EXPECT_EQ(device_memory.live(), 0U);
}

TEST(AllocatorsAtTheEnd, AreNotCalledAfterShutdown) {
  if (std::getenv("ALLOCATOR_TEST_SHUTDOWN") == nullptr) GTEST_SKIP() << "runs by itself";
  static Counting memory;
  host().set_allocator(memory);
  DLManagedTensorVersioned* managed = nullptr;
  {
    const Tensor x = host().from_host(iota(100));
    compute::check(compute_tensor_to_dlpack(x.get(), -1, &managed));
  }
  EXPECT_TRUE(compute::shutdown(std::chrono::minutes(1)));
  EXPECT_EQ(static_cast<float*>(managed->dl_tensor.data)[99], 99.0f) << "an export stays valid";
  managed->deleter(managed);
  EXPECT_EQ(memory.released, 0);
  EXPECT_EQ(memory.live(), 1U);
}

}  // namespace
