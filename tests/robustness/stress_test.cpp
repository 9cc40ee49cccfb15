// SPDX-License-Identifier: Apache-2.0
// Sixteen threads queue random work over shared tensors on eight streams. Updates of one shared tensor commute
// and keep all its elements equal, so its final value does not depend on the order, and every copy taken at any
// moment must be uniform: a missed hazard shows as a torn copy or a lost update. Private chains of each thread,
// which hop from stream to stream, must equal those of a serial run bit by bit. So must concurrent short calls of
// one op.
#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <random>
#include <string_view>
#include <thread>

#include "robustness.hpp"

namespace robustness {
namespace {

constexpr int kThreads = 16;
constexpr int kStreams = 8;
constexpr int64_t kExtent = 259;  // just off a vector's width
constexpr int kRounds = kThreadSanitizer ? 60 : 150;

// The shared tensors, each with an op whose updates commute.
constexpr std::array<const char*, 5> kUpdates = {"add", "bitwise_xor", "multiply", "minimum", "maximum"};

struct World {
  explicit World(const char* name) : device(open(name)) {
    for (int i = 0; i < kStreams; ++i) streams.push_back(make_stream(device));
    for (size_t i = 0; i < kUpdates.size(); ++i) shared.push_back(make_full<int64_t>(device, {kExtent}, 1));
    std::vector<double> values(kExtent);
    for (int64_t i = 0; i < kExtent; ++i) values[static_cast<size_t>(i)] = 0.5 + static_cast<double>(i) / kExtent;
    constant = make_tensor(device, values);
    host_constant = make_tensor(open("cpu"), values);
    results.resize(kThreads);
  }

  Device device;
  std::vector<Stream> streams;
  std::vector<Tensor> shared;
  Tensor constant;       // on the device
  Tensor host_constant;  // the same on the host: a mirror
  std::vector<std::vector<double>> results;
};

// `x op= amount`, whole, through a reversed view every now and then.
void update(World& world, size_t which, int64_t amount, bool reversed, compute_stream* stream) {
  compute_tensor* target = world.shared[which];
  Tensor view;
  if (reversed) {
    const int64_t start = INT64_MIN, stop = INT64_MAX, step = -1;
    ASSERT_OK(compute_tensor_slice(target, 1, &start, &stop, &step, view.out()));
    target = view;
  }
  Tensor scalar;
  ASSERT_OK(compute_tensor_scalar(COMPUTE_DTYPE_INT64, &amount, 0, scalar.out()));
  ASSERT_OK(run_op(kUpdates[which], stream, {target, scalar}, &target));
}

// Takes a copy and reduces it on another stream; both must see one moment.
void expect_uniform(World& world, size_t which, compute_stream* first, compute_stream* second) {
  Tensor copy, least, greatest;
  ASSERT_OK(run_op("copy", first, {world.shared[which]}, copy.out()));
  ASSERT_OK(run_op("min", second, {copy}, least.out()));
  ASSERT_OK(run_op("max", first, {copy}, greatest.out()));
  ASSERT_EQ(read<int64_t>(least), read<int64_t>(greatest)) << kUpdates[which];
}

// The work of one thread. Its random numbers, and so its private chain, do not depend on other
// threads.
void work(World& world, int thread) {
  std::mt19937_64 random(1234 + static_cast<uint64_t>(thread));
  auto pick = [&](uint64_t count) { return static_cast<size_t>(random() % count); };
  Tensor chain = make_full(world.device, {kExtent}, 1.0);
  Event event;
  for (int round = 0; round < kRounds && !testing::Test::HasFatalFailure(); ++round) {
    compute_stream* stream = world.streams[pick(kStreams)];
    compute_stream* other = world.streams[pick(kStreams)];
    const size_t which = pick(kUpdates.size());
    const int64_t amount = static_cast<int64_t>(random() % 1000) * 2 + 1;
    const bool coin = random() % 2 == 0;
    switch (pick(8)) {
      case 0:
      case 1:
      case 2:
        update(world, which, amount, coin, stream);
        break;
      case 3:
        expect_uniform(world, which, stream, other);
        break;
      case 4: {  // y = chain * c + chain, elsewhere than where the chain was made
        Tensor product, sum;
        ASSERT_OK(run_op("multiply", stream, {chain, coin ? world.constant : world.host_constant}, product.out()));
        ASSERT_OK(run_op("add", other, {product, chain}, sum.out()));
        ASSERT_OK(run_op("tanh", stream, {sum}, chain.out()));
        break;
      }
      case 5: {  // in place, and a view of it into a new one
        compute_tensor* target = chain;
        ASSERT_OK(run_op("multiply", stream, {chain, world.constant}, &target));
        const int64_t start = INT64_MIN, stop = INT64_MAX, step = -1;
        Tensor view;
        ASSERT_OK(compute_tensor_slice(chain, 1, &start, &stop, &step, view.out()));
        ASSERT_OK(run_op("negative", other, {view}, chain.out()));
        break;
      }
      case 6:
        if (event.get() != nullptr) {
          ASSERT_OK(compute_event_wait(event, stream));
        }
        ASSERT_OK(compute_event_record(other, nullptr, event.out()));
        if (coin) {
          ASSERT_OK(compute_stream_synchronize(stream));
        }
        break;
      case 7: {
        const std::vector<double> values = read<double>(chain);
        chain = make_tensor(world.device, values);
        break;
      }
    }
  }
  world.results[static_cast<size_t>(thread)] = read<double>(chain);
}

// The updates alone, in the order of one thread after the other.
std::array<int64_t, kUpdates.size()> expected_shared() {
  std::array<int64_t, kUpdates.size()> values;
  values.fill(1);
  for (int thread = 0; thread < kThreads; ++thread) {
    std::mt19937_64 random(1234 + static_cast<uint64_t>(thread));
    for (int round = 0; round < kRounds; ++round) {
      random(), random();
      const size_t which = random() % kUpdates.size();
      const auto amount = static_cast<int64_t>(random() % 1000) * 2 + 1;
      random();
      if (random() % 8 > 2) continue;
      int64_t& value = values[which];
      switch (which) {
        case 0:
          value += amount;
          break;
        case 1:
          value ^= amount;
          break;
        case 2:
          value = static_cast<int64_t>(static_cast<uint64_t>(value) * static_cast<uint64_t>(amount));
          break;
        case 3:
          value = std::min(value, amount);
          break;
        case 4:
          value = std::max(value, amount);
          break;
      }
    }
  }
  return values;
}

class Stress : public testing::TestWithParam<const char*> {};

TEST_P(Stress, RandomWorkOnSharedTensorsEqualsASerialRun) {
  const auto body = [] {
    use_plugins({"minimal"});
    World parallel(GetParam()), serial(GetParam());
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread) threads.emplace_back([&, thread] { work(parallel, thread); });
    for (std::thread& thread : threads) thread.join();
    for (int thread = 0; thread < kThreads; ++thread) work(serial, thread);
    for (int thread = 0; thread < kThreads; ++thread) {
      EXPECT_EQ(parallel.results[static_cast<size_t>(thread)], serial.results[static_cast<size_t>(thread)])
          << "thread " << thread;
    }
    const auto expected = expected_shared();
    for (size_t which = 0; which < kUpdates.size(); ++which) {
      EXPECT_EQ(read<int64_t>(parallel.shared[which]), std::vector<int64_t>(kExtent, expected[which]))
          << kUpdates[which];
      EXPECT_EQ(read<int64_t>(serial.shared[which]), std::vector<int64_t>(kExtent, expected[which])) << kUpdates[which];
    }
  };
  const Outcome outcome = run_in_child(body);
  EXPECT_TRUE(outcome.exited(0)) << "status " << outcome.status << "\n" << outcome.output;
}

// One call that every thread makes with the same read-only operands.
struct SharedCall {
  std::string op;
  std::vector<compute_tensor*> inputs;
  std::vector<compute_attribute> attributes;
  bool is_long = false;
};

using Bytes = std::vector<std::byte>;

void run_and_read(const SharedCall& call, compute_stream* stream, Bytes& out) {
  Tensor result;
  ASSERT_OK(run_op(call.op.c_str(), stream, call.inputs, result.out(), call.attributes)) << call.op;
  int64_t size_bytes = compute_tensor_element_count(result);
  size_bytes *= compute_dtype_size(compute_tensor_dtype(result));
  out.resize(static_cast<size_t>(size_bytes));
  ASSERT_OK(compute_tensor_read(result, out.data(), size_bytes));
}

// Operands of one dtype, and calls of one op after the other, most of them short: what threads share inside the library
// and inside the libraries that it calls is in use all the time.
template <class T>
void add_calls(compute_device* device, std::vector<Tensor>& tensors, std::vector<SharedCall>& calls) {
  std::mt19937 random(7);
  const auto tensor = [&](std::vector<int64_t> shape) -> compute_tensor* {
    const int64_t count = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
    std::vector<T> values;
    for (int64_t i = 0; i < count; ++i)
      values.push_back(static_cast<T>(static_cast<int>(random() % 2000) - 900) / static_cast<T>(7));
    tensors.push_back(make_tensor(device, values, std::move(shape)));
    return tensors.back();
  };
  const auto indices = [&](int64_t count, int64_t extent) -> compute_tensor* {
    std::vector<int64_t> values;
    for (int64_t i = 0; i < count; ++i)
      values.push_back(static_cast<int64_t>(random() % static_cast<uint64_t>(extent)));
    tensors.push_back(make_tensor(device, values));
    return tensors.back();
  };
  static constexpr int64_t kFirst[] = {0}, kSecond[] = {1};
  for (const int64_t size : {1, 20, 33}) {
    calls.push_back({"matmul", {tensor({size, 20}), tensor({20, size})}, {}, false});
    calls.push_back({"matmul", {tensor({12, size, 20}), tensor({12, 20, size})}, {}, false});
    calls.push_back({"sum", {tensor({size, 37})}, {int_attribute("axes", kFirst, 1)}, false});
    calls.push_back({"prod", {tensor({size, 37})}, {int_attribute("axes", kSecond, 1)}, false});
  }
  for (const int64_t size : {5, 300, 20011}) {
    const size_t before = calls.size();
    compute_tensor *x = tensor({size}), *y = tensor({size});
    for (const char* op : {"add", "multiply"}) calls.push_back({op, {x, y}, {}, false});
    for (const char* op : {"square", "copy", "sum"}) calls.push_back({op, {x}, {}, false});
    calls.push_back({"take", {x, indices(size, size)}, {}, false});
    calls.push_back({"scatter", {x, indices(size, size), y}, {int_attribute("deterministic", kSecond, 1)}, false});
    calls.push_back({"concat", {x, y, x}, {}, false});
    if constexpr (!std::is_integral_v<T>) {
      for (const char* op : {"exp", "tanh"}) calls.push_back({op, {x}, {}, false});
    }
    for (size_t i = before; i < calls.size(); ++i) calls[i].is_long = size > 1000;
  }
}

TEST_P(Stress, ThreadsAtOnceGetTheBitsOfOneAlone) {
  const auto body = [] {
    use_plugins({"minimal"});
    const Device device = open(GetParam());
    const bool is_interpreter = std::string_view(GetParam()) != "cpu";
    std::vector<Tensor> tensors;
    std::vector<SharedCall> calls;
    add_calls<float>(device, tensors, calls);
    add_calls<std::complex<float>>(device, tensors, calls);
    if (is_interpreter) {
      std::erase_if(calls, [](const SharedCall& call) { return call.is_long; });
    } else {
      add_calls<double>(device, tensors, calls);
      add_calls<int32_t>(device, tensors, calls);
    }
    // All threads repeat the same call concurrently, short ones more often. First uses also race: the plain calls come
    // last.
    const int repeats = is_interpreter || kSanitizer ? 2 : 60;
    constexpr int kCallers = 8;
    std::barrier together(kCallers);
    std::vector<std::vector<Bytes>> first(kCallers, std::vector<Bytes>(calls.size()));
    std::vector<std::thread> threads;
    for (size_t thread = 0; thread < kCallers; ++thread) {
      threads.emplace_back([&, thread] {
        const Stream own = thread % 4 == 3 ? make_stream(device) : Stream();
        Bytes bytes;
        for (size_t i = 0; i < calls.size(); ++i) {
          together.arrive_and_wait();
          const int times = calls[i].is_long || own != nullptr ? repeats / 10 + 1 : repeats;
          for (int again = 0; again < times; ++again) {
            run_and_read(calls[i], own, bytes);
            if (again == 0) first[thread][i] = bytes;
            if (bytes != first[thread][i])
              ADD_FAILURE() << calls[i].op << ", call " << i << " of thread " << thread << ", again " << again;
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    Bytes alone;
    for (size_t i = 0; i < calls.size(); ++i) {
      run_and_read(calls[i], nullptr, alone);
      for (size_t thread = 0; thread < kCallers; ++thread)
        EXPECT_TRUE(first[thread][i] == alone) << calls[i].op << ", call " << i << " of thread " << thread;
    }
  };
  const Outcome outcome = run_in_child(body);
  EXPECT_TRUE(outcome.exited(0)) << "status " << outcome.status << "\n" << outcome.output;
}

// Memory that the device cannot reach goes through a ring of chunks, which several threads copy: here for one caller at
// a time, while another copies alone.
ISOLATED_TEST(Transfers, GoThroughTheRingByThreads) {
  setenv("COMPUTE_COPY_THREADS", "4", 1);
  use_plugins({"minimal"});
  const Device device = open("minimal0");
  const auto there_and_back = [&](int64_t size, uint64_t seed) {
    std::vector<uint64_t> values(static_cast<size_t>(size));
    std::mt19937_64 random(seed);
    for (uint64_t& value : values) value = random();
    const Tensor x = make_tensor(device, values);
    EXPECT_TRUE(read<uint64_t>(x) == values) << size;
  };
  constexpr int64_t kKiB = 1024 / 8;  // in elements
  const std::vector<int64_t> sizes = {
      1, 64 * kKiB - 1, 64 * kKiB + 1, 256 * kKiB, 256 * kKiB + 1, 1537 * kKiB - 3, 9 * 1024 * kKiB + 5};
  for (const int64_t size : sizes) there_and_back(size, static_cast<uint64_t>(size));
  there_and_back(128 * 1024 * kKiB + 3, 7);  // by non-temporal stores
  std::vector<std::thread> threads;
  for (uint64_t seed = 0; seed < 3; ++seed) {
    threads.emplace_back([&, seed] {
      for (const int64_t size : sizes) there_and_back(size, seed);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

INSTANTIATE_TEST_SUITE_P(Devices, Stress, testing::ValuesIn(devices_with_ops()),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace robustness
