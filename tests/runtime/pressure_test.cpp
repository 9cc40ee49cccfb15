// SPDX-License-Identifier: Apache-2.0
// The function that programs are called by before an allocation fails.
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "runtime.hpp"

namespace {

using compute::Device;
using compute::Tensor;
using namespace runtime;

constexpr int64_t kMebibyte = int64_t{1} << 20;

// A device of 8 MiB, and memory that the program can release.
class Pressure : public testing::TestWithParam<const char*> {
 protected:
  Pressure() : device_(compute::Device::open(std::string(GetParam()) + "+mem=8M")) {}

  compute_error* allocate(int64_t mebibytes, Tensor& out) {
    const int64_t shape[] = {mebibytes * kMebibyte / 4};
    compute_tensor* made = nullptr;
    compute_error* error = compute_tensor_empty(device_.get(), COMPUTE_DTYPE_FLOAT32, 1, shape, &made);
    out = Tensor(made);
    return error;
  }
  compute_error_code code_of(compute_error* error) {
    const compute_error_code code = compute_error_get_code(error);
    compute_error_free(error);
    return code;
  }
  compute_error_code shortage() const {
    return device_.name() == "cpu" ? COMPUTE_ERROR_OUT_OF_MEMORY : COMPUTE_ERROR_OUT_OF_DEVICE_MEMORY;
  }

  Device device_;
};

TEST_P(Pressure, ReleasesWhatTheAllocationNeeds) {
  Tensor held, wanted;
  ASSERT_EQ(code_of(allocate(6, held)), COMPUTE_OK);
  int calls = 0;
  int64_t asked = 0;
  std::string name;
  {
    const compute::PressureHandler handler([&](const Device& device, int64_t size_bytes) {
      ++calls;
      asked = size_bytes;
      name = device.name();
      held = Tensor();
    });
    EXPECT_EQ(code_of(allocate(7, wanted)), COMPUTE_OK);
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(asked, 7 * kMebibyte);
    EXPECT_EQ(name, GetParam());
    // Cached memory is freed first, without asking the program.
    wanted = Tensor();
    EXPECT_EQ(code_of(allocate(5, wanted)), COMPUTE_OK);
    EXPECT_EQ(calls, 1);
    // Asked once, then the error.
    EXPECT_EQ(code_of(allocate(6, held)), shortage());
    EXPECT_EQ(calls, 2);
  }
  EXPECT_EQ(code_of(allocate(6, held)), shortage());
  EXPECT_EQ(calls, 2) << "called after it was unset";
}

TEST_P(Pressure, OpsAskToo) {
  Tensor held, x = device_.zeros(compute::float32, {kMebibyte / 2}), y;
  ASSERT_EQ(code_of(allocate(5, held)), COMPUTE_OK);
  int calls = 0;
  const compute::PressureHandler handler([&](const Device& device, int64_t) {
    ++calls;
    held = Tensor();
    device.trim();
  });
  y = compute::exp(x);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(y.to_vector<float>()[0], 1.0f);
}

TEST_P(Pressure, AnAllocationInsideFailsAtOnce) {
  Tensor held, wanted, inside;
  ASSERT_EQ(code_of(allocate(6, held)), COMPUTE_OK);
  int calls = 0;
  compute_error_code code = COMPUTE_OK;
  const compute::PressureHandler handler([&](const Device&, int64_t) {
    ++calls;
    code = code_of(allocate(4, inside));
  });
  EXPECT_EQ(code_of(allocate(4, wanted)), shortage());
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(code, shortage());
}

TEST_P(Pressure, MayUnsetItself) {
  Tensor held, wanted;
  ASSERT_EQ(code_of(allocate(6, held)), COMPUTE_OK);
  static constexpr compute_pressure_callback kUnset = [](compute_device*, int64_t, void* calls) {
    ++*static_cast<int*>(calls);
    compute_error_free(compute_memory_remove_pressure_callback(kUnset, calls));
  };
  int calls = 0;
  compute::check(compute_memory_add_pressure_callback(kUnset, &calls));
  EXPECT_EQ(code_of(allocate(4, wanted)), shortage());
  EXPECT_EQ(code_of(allocate(4, wanted)), shortage());
  EXPECT_EQ(calls, 1);
}

TEST_P(Pressure, CallsAllCallbacksInOrder) {
  Tensor held, more, wanted;
  ASSERT_EQ(code_of(allocate(3, held)), COMPUTE_OK);
  ASSERT_EQ(code_of(allocate(4, more)), COMPUTE_OK);
  std::string calls;
  const compute::PressureHandler first([&](const Device&, int64_t) {
    calls += 'a';
    held = Tensor();
  });
  auto second = std::make_unique<compute::PressureHandler>([&](const Device&, int64_t) {
    calls += 'b';
    more = Tensor();
  });
  EXPECT_EQ(code_of(allocate(8, wanted)), COMPUTE_OK) << "both released memory before the last try";
  EXPECT_EQ(calls, "ab");
  second.reset();
  EXPECT_EQ(code_of(allocate(8, held)), shortage());
  EXPECT_EQ(calls, "aba") << "the first one is still there";
}

// A callback removes one that has not been called yet, without waiting for itself.
TEST_P(Pressure, MayRemoveALaterOne) {
  Tensor held, wanted;
  ASSERT_EQ(code_of(allocate(6, held)), COMPUTE_OK);
  int calls = 0;
  std::unique_ptr<compute::PressureHandler> later;
  const compute::PressureHandler handler([&](const Device&, int64_t) { later.reset(); });
  later = std::make_unique<compute::PressureHandler>([&](const Device&, int64_t) { ++calls; });
  EXPECT_EQ(code_of(allocate(4, wanted)), shortage());
  EXPECT_EQ(calls, 0);
}

TEST(PressureCallbacks, AreAddedAndRemovedOnce) {
  const compute_pressure_callback nothing = [](compute_device*, int64_t, void*) {};
  int one = 0, two = 0;
  const auto code = [](compute_error* error) {
    const compute_error_code result = compute_error_get_code(error);
    compute_error_free(error);
    return result;
  };
  EXPECT_EQ(code(compute_memory_add_pressure_callback(nullptr, &one)), COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(code(compute_memory_remove_pressure_callback(nullptr, &one)), COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(code(compute_memory_remove_pressure_callback(nothing, &one)), COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(code(compute_memory_add_pressure_callback(nothing, &one)), COMPUTE_OK);
  EXPECT_EQ(code(compute_memory_add_pressure_callback(nothing, &one)), COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(code(compute_memory_add_pressure_callback(nothing, &two)), COMPUTE_OK);
  EXPECT_EQ(code(compute_memory_remove_pressure_callback(nothing, &one)), COMPUTE_OK);
  EXPECT_EQ(code(compute_memory_remove_pressure_callback(nothing, &one)), COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(code(compute_memory_remove_pressure_callback(nothing, &two)), COMPUTE_OK);
}

// Threads allocate and release under pressure while another thread sets and unsets the callback.
TEST_P(Pressure, ManyThreads) {
  std::mutex mutex;
  std::vector<Tensor> cache;
  std::atomic<bool> is_set{false}, stop{false};
  std::atomic<int> called_unset{0}, calls{0}, failures{0};
  const auto release_all = [&](const Device&, int64_t) {
    if (!is_set.load()) ++called_unset;
    ++calls;
    std::vector<Tensor> dropped;
    const std::lock_guard guard(mutex);
    dropped.swap(cache);
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 300; ++i) {
        Tensor made;
        const compute_error_code code = code_of(allocate(1 + i % 3, made));
        if (code != COMPUTE_OK && code != shortage()) ++failures;
        const std::lock_guard guard(mutex);
        if (code == COMPUTE_OK) cache.push_back(std::move(made));
      }
    });
  }
  std::thread setter([&] {
    while (!stop.load()) {
      is_set.store(true);
      {
        const compute::PressureHandler handler(release_all);
        std::this_thread::yield();
      }
      is_set.store(false);
      std::this_thread::yield();
    }
  });
  for (std::thread& thread : threads) thread.join();
  stop.store(true);
  setter.join();
  EXPECT_EQ(failures.load(), 0);
  EXPECT_EQ(called_unset.load(), 0);
  cache.clear();
  Tensor all;
  EXPECT_EQ(code_of(allocate(7, all)), COMPUTE_OK) << "nothing is lost";
}

INSTANTIATE_TEST_SUITE_P(, Pressure, testing::Values("cpu", "minimal0"));

// Allocating a mirror calls the program without holding a lock that releasing tensors needs.
TEST(PressureOfMirrors, AsksForTheMirror) {
  const Device device = Device::open("minimal0+mem=8M");
  const Tensor x = host().from_host(std::vector<float>(static_cast<size_t>(kMebibyte)));
  Tensor held = device.empty(compute::float32, {kMebibyte * 5 / 4});
  int64_t asked = 0;
  const compute::PressureHandler handler([&](const Device&, int64_t size_bytes) {
    asked = size_bytes;
    held = Tensor();
  });
  const Tensor y = compute::sum(x, compute::all_axes, false, {}, compute::Stream(device));
  EXPECT_EQ(asked, 4 * kMebibyte);
  EXPECT_EQ(y.item<float>(), 0.0f);
}

}  // namespace
