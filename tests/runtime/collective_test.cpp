// SPDX-License-Identifier: Apache-2.0
// Collectives between devices of one process: every collective on every dtype, streams, and failures.
#include <array>
#include <chrono>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>

#include "runtime.hpp"

namespace runtime {
namespace {

using compute::Device;
using compute::DType;
using compute::Group;
using compute::Reduction;
using compute::Stream;
using compute::Tensor;

// Runs body(group) on a thread for each rank.
void on_all_ranks(const std::vector<Group>& groups, const std::function<void(const Group&)>& body) {
  std::vector<std::thread> threads;
  for (const Group& group : groups) {
    threads.emplace_back([&] {
      try {
        body(group);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << group.rank() << ": " << error.what();
        group.abort();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

std::vector<Group> over(const std::vector<Device>& devices) { return Group::over_devices(devices); }

std::vector<uint8_t> bytes_of(const Tensor& tensor) {
  std::vector<uint8_t> bytes(static_cast<size_t>(compute_tensor_size_bytes(tensor.get())));
  compute::check(compute_tensor_read(tensor.get(), bytes.data(), static_cast<int64_t>(bytes.size())));
  return bytes;
}

// Waits for a result, whose failure it throws.
void finish(const Tensor& y) { compute::check(compute_tensor_synchronize(y.get())); }

constexpr compute_dtype kFirst = COMPUTE_DTYPE_BOOL, kLast = COMPUTE_DTYPE_COMPLEX128;

// Small whole numbers, which every dtype holds, and whose sums and products it holds too.
int value_of(int32_t rank, int64_t i, compute_dtype dtype) {
  const int value = static_cast<int>((i * 7 + rank * 3) % 4);
  return dtype == COMPUTE_DTYPE_BOOL ? value % 2 : value;
}

Tensor numbers(const Device& device, compute_dtype dtype, std::vector<int64_t> shape,
               const std::function<double(int64_t)>& value) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  std::vector<double> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = value(static_cast<int64_t>(i));
  const Tensor exact = host().from_host(values, shape);
  return compute::cast(exact, DType(dtype)).to(device);
}

Tensor operand(const Device& device, compute_dtype dtype, std::vector<int64_t> shape, int32_t rank) {
  return numbers(device, dtype, std::move(shape),
                 [&](int64_t i) { return static_cast<double>(value_of(rank, i, dtype)); });
}

double combined(Reduction reduction, compute_dtype dtype, int32_t ranks, int64_t i) {
  double result = value_of(0, i, dtype);
  for (int32_t rank = 1; rank < ranks; ++rank) {
    const double next = value_of(rank, i, dtype);
    switch (reduction) {
      case Reduction::prod:
        result *= next;
        break;
      case Reduction::min:
        result = std::min(result, next);
        break;
      case Reduction::max:
        result = std::max(result, next);
        break;
      default:
        result += next;
    }
  }
  if (reduction == Reduction::mean) result /= ranks;
  return dtype == COMPUTE_DTYPE_BOOL ? std::min(result, 1.0) : result;
}

bool has_reduction(Reduction reduction, compute_dtype dtype) {
  const bool is_complex = dtype == COMPUTE_DTYPE_COMPLEX64 || dtype == COMPUTE_DTYPE_COMPLEX128;
  const bool is_inexact = dtype >= COMPUTE_DTYPE_FLOAT16;
  if (reduction == Reduction::mean) return is_inexact;
  return !is_complex || reduction == Reduction::sum || reduction == Reduction::prod;
}

constexpr Reduction kReductions[] = {Reduction::sum, Reduction::prod, Reduction::min, Reduction::max, Reduction::mean};

// Device of each rank: the host, a device whose memory the host cannot address, and both.
struct Ranks {
  const char* name;
  std::vector<Device> (*devices)();
};
void PrintTo(const Ranks& ranks, std::ostream* out) { *out << ranks.name; }

class Collectives : public ::testing::TestWithParam<Ranks> {
 protected:
  std::vector<Group> groups() const { return over(GetParam().devices()); }
};

INSTANTIATE_TEST_SUITE_P(Devices, Collectives,
                         ::testing::Values(Ranks{"host",
                                                 [] {
                                                   return std::vector<Device>{host(), host()};
                                                 }},
                                           Ranks{"remote",
                                                 [] {
                                                   return std::vector<Device>{remote(), Device::open("minimal1")};
                                                 }},
                                           Ranks{"mixed",
                                                 [] {
                                                   return std::vector<Device>{host(), remote(), host()};
                                                 }}),
                         [](const auto& info) { return std::string(info.param.name); });

void reduce_every_dtype_and_size(const Group& group) {
  const int32_t ranks = group.size();
  for (compute_dtype dtype = kFirst; dtype <= kLast; ++dtype) {
    for (const Reduction reduction : kReductions) {
      if (!has_reduction(reduction, dtype)) continue;
      // Small ones, and those that are divided among the ranks, with and without a rest.
      for (const int64_t count : {0, 1, 7, 1024 * 6, 1024 * 6 + 1}) {
        const Tensor x = operand(group.device(), dtype, {count}, group.rank());
        const Tensor expected =
            numbers(group.device(), dtype, {count}, [&](int64_t i) { return combined(reduction, dtype, ranks, i); });
        EXPECT_EQ(bytes_of(group.all_reduce(x, reduction)), bytes_of(expected)) << DType(dtype).name() << count;
        const Tensor wide = operand(group.device(), dtype, {count * ranks}, group.rank());
        const Tensor part = numbers(group.device(), dtype, {count}, [&](int64_t i) {
          return combined(reduction, dtype, ranks, group.rank() * count + i);
        });
        EXPECT_EQ(bytes_of(group.reduce_scatter(wide, reduction)), bytes_of(part)) << DType(dtype).name() << count;
      }
    }
  }
}

TEST_P(Collectives, ReduceEveryDtypeAndSize) { on_all_ranks(groups(), reduce_every_dtype_and_size); }

void move_every_dtype_and_size(const Group& group) {
  const int32_t ranks = group.size(), own = group.rank();
  for (compute_dtype dtype = kFirst; dtype <= kLast; ++dtype) {
    for (const int64_t rows : {0, 1, 5, 700}) {
      const Tensor x = operand(group.device(), dtype, {rows, 3}, own);
      const int64_t size = rows * 3;
      const Tensor joined = group.all_gather(x);
      EXPECT_EQ(joined.shape()[0], rows * ranks);
      const auto all = [&](int64_t i) {
        return static_cast<double>(value_of(static_cast<int32_t>(i / size), i % size, dtype));
      };
      EXPECT_EQ(bytes_of(joined), bytes_of(numbers(group.device(), dtype, {rows * ranks, 3}, all)));
      EXPECT_EQ(bytes_of(group.broadcast(x, ranks - 1)),
                bytes_of(operand(group.device(), dtype, {rows, 3}, ranks - 1)));
      const Tensor wide = operand(group.device(), dtype, {rows * ranks, 3}, own);
      const auto parts = [&](int64_t i) {
        return static_cast<double>(value_of(static_cast<int32_t>(i / size), own * size + i % size, dtype));
      };
      EXPECT_EQ(bytes_of(group.all_to_all(wide)), bytes_of(numbers(group.device(), dtype, {rows * ranks, 3}, parts)));
      if (own == 0) group.send(x, 1);
      if (own == 1) {
        EXPECT_EQ(bytes_of(group.recv(DType(dtype), {rows, 3}, 0)),
                  bytes_of(operand(group.device(), dtype, {rows, 3}, 0)));
      }
      group.barrier();
    }
  }
}

TEST_P(Collectives, MoveEveryDtypeAndSize) { on_all_ranks(groups(), move_every_dtype_and_size); }

// Several chunks, more than memory for one chunk holds.
TEST_P(Collectives, MoveManyChunks) {
  on_all_ranks(groups(), [](const Group& group) {
    const int32_t ranks = group.size(), own = group.rank();
    const int64_t count = (int64_t{5} << 20) / 2 + 11;
    const auto values = [](int32_t rank) {
      return [rank](int64_t i) { return static_cast<double>((i * 31 + rank) % 1009); };
    };
    const Tensor x = numbers(group.device(), COMPUTE_DTYPE_FLOAT32, {count}, values(own));
    const Tensor sum = numbers(group.device(), COMPUTE_DTYPE_FLOAT32, {count}, [&](int64_t i) {
      double total = 0;
      for (int32_t rank = 0; rank < ranks; ++rank) total += values(rank)(i);
      return total;
    });
    EXPECT_TRUE(bytes_of(group.all_reduce(x)) == bytes_of(sum));
    const Tensor joined = group.all_gather(x);
    const Tensor all = numbers(group.device(), COMPUTE_DTYPE_FLOAT32, {count * ranks},
                               [&](int64_t i) { return values(static_cast<int32_t>(i / count))(i % count); });
    EXPECT_TRUE(bytes_of(joined) == bytes_of(all));
    EXPECT_TRUE(bytes_of(group.all_to_all(joined)) ==
                bytes_of(numbers(group.device(), COMPUTE_DTYPE_FLOAT32, {count * ranks},
                                 [&](int64_t i) { return values(own)(i % count); })));
    const Tensor part =
        numbers(group.device(), COMPUTE_DTYPE_FLOAT32, {count}, [&](int64_t i) { return ranks * values(own)(i); });
    EXPECT_TRUE(bytes_of(group.reduce_scatter(joined)) == bytes_of(part));
    // In place.
    group.all_reduce_into(x, x);
    EXPECT_TRUE(bytes_of(x) == bytes_of(sum));
    group.broadcast_into(part, part, 1);
    EXPECT_TRUE(bytes_of(part) == bytes_of(numbers(group.device(), COMPUTE_DTYPE_FLOAT32, {count},
                                                   [&](int64_t i) { return ranks * values(1)(i); })));
  });
}

// Halves are combined in float32, and rounded once: in float16, 2048 + 1 + 1 would stay 2048.
TEST_P(Collectives, RoundHalvesOnce) {
  std::vector<Device> devices = GetParam().devices();
  while (devices.size() < 3) devices.push_back(host());
  on_all_ranks(over(devices), [](const Group& group) {
    const double own = group.rank() == 0 ? 2048 : 1;
    const Tensor x = numbers(group.device(), COMPUTE_DTYPE_FLOAT16, {5}, [&](int64_t) { return own; });
    const Tensor expected = numbers(group.device(), COMPUTE_DTYPE_FLOAT16, {5}, [](int64_t) { return 2050; });
    EXPECT_EQ(bytes_of(group.all_reduce(x)), bytes_of(expected));
  });
}

// The same bits on all ranks, in all runs, and as the ranks' order says.
TEST_P(Collectives, GiveTheSameBits) {
  const std::vector<Group> all = groups();
  const int64_t count = 12345;
  const auto value = [](int32_t rank, int64_t i) {
    return static_cast<float>(std::sin(static_cast<double>(i) * 12.9898 + rank) * 43758.5453);
  };
  std::vector<float> expected(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    float sum = value(0, i);
    for (int32_t rank = 1; rank < static_cast<int32_t>(all.size()); ++rank) sum += value(rank, i);
    expected[static_cast<size_t>(i)] = sum;
  }
  on_all_ranks(all, [&](const Group& group) {
    std::vector<float> own(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) own[static_cast<size_t>(i)] = value(group.rank(), i);
    const Tensor x = group.device().from_host(own, {count});
    for (int run = 0; run < 100; ++run) {
      const std::vector<float> result = group.all_reduce(x, Reduction::sum, {true}).to_vector<float>();
      ASSERT_EQ(std::memcmp(result.data(), expected.data(), expected.size() * sizeof(float)), 0);
    }
  });
}

TEST_P(Collectives, TakeViewsAndGivenResults) {
  on_all_ranks(groups(), [](const Group& group) {
    const int32_t ranks = group.size();
    const Tensor x = operand(group.device(), COMPUTE_DTYPE_INT32, {6, 4}, group.rank());
    const Tensor columns = x.transpose();
    const Tensor wide = group.device().full({8, 6}, int32_t{-1});
    const Tensor target = wide[compute::slice(compute::none, compute::none, 2)];
    group.all_reduce_into(columns, target);
    const std::vector<int32_t> result = wide.to_vector<int32_t>();
    for (int64_t row = 0; row < 8; ++row) {
      for (int64_t column = 0; column < 6; ++column) {
        const double sum = combined(Reduction::sum, COMPUTE_DTYPE_INT32, ranks, column * 4 + row / 2);
        EXPECT_EQ(result[static_cast<size_t>(row * 6 + column)], row % 2 == 0 ? static_cast<int32_t>(sum) : -1);
      }
    }
    const Tensor gathered = group.device().full({6 * ranks, 4}, int32_t{0});
    group.all_gather_into(x, gathered);
    EXPECT_EQ(bytes_of(gathered), bytes_of(group.all_gather(x)));
    const Tensor swapped = group.device().full({6 * ranks, 4}, int32_t{0});
    group.all_to_all_into(gathered, swapped);
    EXPECT_EQ(bytes_of(swapped), bytes_of(group.all_to_all(gathered)));
    const Tensor part = group.device().full({6, 4}, int32_t{0});
    group.reduce_scatter_into(gathered, part);
    EXPECT_EQ(bytes_of(part), bytes_of(group.reduce_scatter(gathered)));
    if (group.rank() == 0) group.send(columns, 1);
    if (group.rank() == 1) {
      const Tensor received = group.device().full({4, 6}, int32_t{0});
      group.recv_into(received, 0);
      EXPECT_EQ(bytes_of(received), bytes_of(operand(group.device(), COMPUTE_DTYPE_INT32, {6, 4}, 0).transpose()));
    }
    const Tensor number = operand(group.device(), COMPUTE_DTYPE_INT32, {}, group.rank());
    EXPECT_EQ(group.all_gather(number).shape()[0], ranks);
  });
}

// Work before and after a call on a stream is in order; the call does not wait for the other ranks.
TEST_P(Collectives, AreInTheOrderOfTheirStream) {
  const std::vector<Group> all = groups();
  std::atomic<int> queued{0};
  on_all_ranks(all, [&](const Group& group) {
    const Stream stream(group.device());
    Tensor x = group.device().full({5000}, 1.0f);
    for (int i = 0; i < 3; ++i) {
      const Tensor doubled = compute::add(x, x, stream);
      x = compute::negative(group.all_reduce(doubled, Reduction::sum, {}, stream), stream);
    }
    ++queued;
    while (queued < static_cast<int>(all.size())) std::this_thread::yield();
    const float factor = -2.0f * static_cast<float>(all.size());
    const std::vector<float> result = x.to_vector<float>();
    EXPECT_EQ(result.front(), factor * factor * factor);
    EXPECT_EQ(result.back(), factor * factor * factor);
  });
}

TEST_P(Collectives, CanBeSplit) {
  std::vector<Device> devices = GetParam().devices();
  while (devices.size() < 4) devices.push_back(host());
  on_all_ranks(over(devices), [](const Group& group) {
    // In reverse order.
    const Group part = group.split(group.rank() % 2, -group.rank());
    EXPECT_EQ(part.size(), 2);
    EXPECT_EQ(part.rank(), group.rank() < 2 ? 1 : 0);
    const Tensor x = group.device().full({3}, static_cast<float>(group.rank()));
    EXPECT_EQ(part.all_reduce(x).to_vector<float>()[0], group.rank() % 2 == 0 ? 2.0f : 4.0f);
    EXPECT_EQ(group.all_reduce(x).to_vector<float>()[0], 6.0f);
  });
}

// Within it a rank is told that another has failed, which takes milliseconds; the limit of time is 600 s by default.
constexpr auto kTold = std::chrono::seconds(30);

TEST_P(Collectives, EndOnAllRanksIfOneFails) {
  const std::vector<Group> all = groups();
  on_all_ranks(all, [&](const Group& group) {
    const Stream stream(group.device());
    const Tensor x = group.device().full({1000}, 1.0f);
    static_cast<void>(group.all_reduce(x).to_vector<float>());
    if (group.rank() == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      group.abort();
    } else {
      const auto begin = std::chrono::steady_clock::now();
      Tensor y;
      const Thrown failure = thrown_by([&] {
        y = group.all_reduce(x, Reduction::sum, {}, stream);
        static_cast<void>(compute::negative(y, stream).to_vector<float>());
      });
      EXPECT_EQ(failure.code, COMPUTE_ERROR_PEER_FAILED);
      EXPECT_NE(failure.message.find("all_reduce: call 2 of the group failed on rank"), std::string::npos)
          << failure.message;
      EXPECT_NE(failure.message.find("rank 0 has ended the group"), std::string::npos) << failure.message;
      EXPECT_LT(std::chrono::steady_clock::now() - begin, kTold);
    }
    // Later calls fail at once, and other work goes on.
    EXPECT_EQ(thrown_by([&] { static_cast<void>(group.all_reduce(x)); }).code, COMPUTE_ERROR_PEER_FAILED);
    EXPECT_EQ(thrown_by([&] { group.barrier(); }).code, COMPUTE_ERROR_PEER_FAILED);
    EXPECT_EQ(compute::negative(x, stream).to_vector<float>()[0], -1.0f);
  });
}

TEST_P(Collectives, EndIfARankLeaves) {
  std::vector<Group> all = groups();
  const std::vector<Group> staying(all.begin() + 1, all.end());
  all.clear();
  on_all_ranks(staying, [](const Group& group) {
    const Tensor x = group.device().full({1000}, 1.0f);
    const Thrown failure = thrown_by([&] { finish(group.all_reduce(x)); });
    EXPECT_EQ(failure.code, COMPUTE_ERROR_PEER_FAILED);
    EXPECT_NE(failure.message.find("rank 0 has left the group"), std::string::npos) << failure.message;
  });
}

// A group reads its settings when it is made.
class Setting {
 public:
  Setting(const char* name, const char* value) : name_(name) { compute::check(compute_config_set(name, value)); }
  ~Setting() { compute_error_free(compute_config_set(name_, nullptr)); }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  const char* name_;
};

// Limits of time are longer than the ranks take to make a group on a busy machine.
TEST_P(Collectives, EndAfterTheTimeout) {
  const Setting limit("COMPUTE_COLLECTIVE_TIMEOUT", "3");
  const std::vector<Group> all = groups();
  const Group& group = all[1];
  const Tensor x = group.device().full({1000}, 1.0f);
  const Thrown failure = thrown_by([&] { finish(group.all_reduce(x)); });
  EXPECT_EQ(failure.code, COMPUTE_ERROR_PEER_FAILED);
  EXPECT_NE(failure.message.find("COMPUTE_COLLECTIVE_TIMEOUT"), std::string::npos) << failure.message;
  const Tensor y = all[0].device().full({1000}, 1.0f);
  EXPECT_NE(thrown_by([&] { finish(all[0].all_reduce(y)); }).message.find("rank 1 has ended the group"),
            std::string::npos);
}

TEST_P(Collectives, EndAfterTheTimeoutOfTheGroup) {
  const std::vector<Group> all =
      Group::over_devices(GetParam().devices(), {.timeout = std::chrono::milliseconds(2500)});
  const Tensor x = all[1].device().full({1000}, 1.0f);
  const Thrown failure = thrown_by([&] { finish(all[1].all_reduce(x)); });
  EXPECT_EQ(failure.code, COMPUTE_ERROR_PEER_FAILED);
  EXPECT_NE(failure.message.find("within 2.5 s"), std::string::npos) << failure.message;
}

TEST(Collective, RefusesOptionsOfAGroup) {
  compute_group* made = nullptr;
  auto options = compute::sized<compute_group_options>();
  const auto code = [&] {
    compute_error* error = compute_group_create(nullptr, host().get(), &options, &made);
    const compute_error_code found = compute_error_get_code(error);
    compute_error_free(error);
    return found;
  };
  options.timeout_ns = -1;
  EXPECT_EQ(code(), COMPUTE_ERROR_INVALID_ARGUMENT);
  options.timeout_ns = 0;
  options.flags = 1;
  EXPECT_EQ(code(), COMPUTE_ERROR_UNSUPPORTED);
  EXPECT_EQ(made, nullptr);
  options.flags = 0;
  options.struct_type = COMPUTE_STRUCT_COLLECTIVE_OPTIONS;
  EXPECT_EQ(code(), COMPUTE_ERROR_INVALID_ARGUMENT);
  options.struct_type = COMPUTE_STRUCT_GROUP_OPTIONS;
  EXPECT_EQ(code(), COMPUTE_OK);
  compute_group_release(made);
}

TEST_P(Collectives, CompareTheirCalls) {
  const Setting check("COMPUTE_COLLECTIVE_CHECK", "1");
  using Call = std::function<void(const Group&)>;
  const auto tensor = [](const Group& group, int64_t count) { return group.device().full({count}, 1.0f); };
  const std::pair<Call, Call> cases[] = {
      {[&](const Group& group) { finish(group.all_reduce(tensor(group, 12))); },
       [&](const Group& group) { finish(group.all_reduce(tensor(group, 18))); }},
      {[&](const Group& group) { finish(group.all_reduce(tensor(group, 12))); },
       [&](const Group& group) { finish(group.all_reduce(tensor(group, 12), Reduction::max)); }},
      {[&](const Group& group) { finish(group.all_reduce(tensor(group, 12))); },
       [&](const Group& group) { finish(group.all_gather(tensor(group, 12))); }},
      {[&](const Group& group) { finish(group.broadcast(tensor(group, 12), 0)); },
       [&](const Group& group) { finish(group.broadcast(tensor(group, 12), 1)); }},
      {[&](const Group& group) { finish(group.all_reduce(tensor(group, 0))); },
       [&](const Group& group) { finish(group.all_reduce(tensor(group, 12))); }},
      {[&](const Group& group) { group.barrier(); },
       [&](const Group& group) { finish(group.all_reduce(tensor(group, 12))); }}};
  for (const auto& [first, second] : cases) {
    on_all_ranks(groups(), [&](const Group& group) {
      EXPECT_EQ(group.all_reduce(tensor(group, 6)).to_vector<float>()[0], static_cast<float>(group.size()));
      const Thrown failure = thrown_by([&] { (group.rank() == 1 ? second : first)(group); });
      EXPECT_EQ(failure.code, COMPUTE_ERROR_PEER_FAILED);
      EXPECT_NE(failure.message.find("call 2"), std::string::npos) << failure.message;
      EXPECT_NE(failure.message.find("rank 1"), std::string::npos) << failure.message;
    });
  }
  on_all_ranks(groups(), [&](const Group& group) {
    if (group.rank() == 0)
      compute_error_free(compute_group_send(nullptr, group.get(), tensor(group, 5).get(), 1, nullptr));
    if (group.rank() != 1) return;
    const Thrown failure = thrown_by([&] { finish(group.recv(DType(COMPUTE_DTYPE_INT32), {5}, 0)); });
    EXPECT_NE(failure.message.find("send of 5 elements of float32"), std::string::npos) << failure.message;
  });
}

// What an input lacks, the results of all ranks lack.
TEST(Collective, PassesOnFaultsInData) {
  on_all_ranks(over({host(), host()}), [](const Group& group) {
    const Stream stream(host());
    const Tensor table = host().full({10}, 1.0f);
    const Tensor places = host().from_host(std::vector<int64_t>{1, group.rank() == 0 ? 99 : 2});
    const Thrown failure = thrown_by([&] {
      const Tensor x = compute::take(table, places, 0, stream);
      const Tensor y = group.all_reduce(x, Reduction::sum, {}, stream);
      static_cast<void>(compute::negative(y, stream).to_vector<float>());
    });
    EXPECT_EQ(failure.code, group.rank() == 0 ? COMPUTE_ERROR_KERNEL_FAILED : COMPUTE_ERROR_PEER_FAILED);
    EXPECT_NE(failure.message.find("index 99"), std::string::npos) << failure.message;
  });
}

TEST(Collective, OfOneRankNeedsNoOther) {
  for (const Device& device : {host(), remote()}) {
    const Group group(device);
    EXPECT_EQ(group.rank(), 0);
    EXPECT_EQ(group.size(), 1);
    EXPECT_EQ(std::string(group.device().name()), std::string(device.name()));
    EXPECT_FALSE(group.description().empty());
    const Tensor x = device.from_host(iota(6), {2, 3});
    for (const Tensor& y : {group.all_reduce(x, Reduction::mean), group.reduce_scatter(x), group.all_gather(x),
                            group.broadcast(x), group.all_to_all(x)})
      EXPECT_EQ(y.to_vector<float>(), iota(6));
    group.barrier();
    EXPECT_EQ(thrown_by([&] { group.send(x, 0); }).code, COMPUTE_ERROR_INVALID_ARGUMENT);
  }
}

// Ranks on one device need streams of their own, because a call of one would wait behind the call of the other.
TEST(Collective, RanksCanShareADevice) {
  const std::vector<Group> groups = over({remote(), remote()});
  const Tensor x = remote().full({1000}, 1.0f);
  EXPECT_EQ(thrown_by([&] { static_cast<void>(groups[0].all_reduce(x)); }).code, COMPUTE_ERROR_INVALID_ARGUMENT);
  on_all_ranks(groups, [](const Group& group) {
    const Stream stream(remote());
    const Tensor own = remote().full({1000}, static_cast<float>(group.rank()));
    EXPECT_EQ(group.all_reduce(own, Reduction::sum, {}, stream).to_vector<float>()[0], 1.0f);
    const Group part = group.split(0);
    EXPECT_EQ(thrown_by([&] { static_cast<void>(part.all_reduce(own)); }).code, COMPUTE_ERROR_INVALID_ARGUMENT);
  });
}

TEST(Collective, RefusesWrongOperands) {
  const Group group(host());
  const Tensor x = host().full({4}, 1.0f), whole = host().full({4}, int32_t{1});
  const Tensor z = compute::cast(x, DType(COMPUTE_DTYPE_COMPLEX64)), elsewhere = remote().full({4}, 1.0f);
  const Stream wrong(remote()), recorded(host());
  const auto code = [](auto&& call) { return thrown_by(call).code; };
  EXPECT_EQ(code([&] { static_cast<void>(group.all_reduce(whole, Reduction::mean)); }), COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(code([&] { static_cast<void>(group.all_reduce(z, Reduction::max)); }), COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(code([&] { static_cast<void>(group.all_reduce(x, Reduction{9})); }), COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(code([&] { static_cast<void>(group.all_reduce(elsewhere)); }), COMPUTE_ERROR_DEVICE_MISMATCH);
  EXPECT_EQ(code([&] { static_cast<void>(group.all_reduce(x, Reduction::sum, {}, wrong)); }),
            COMPUTE_ERROR_DEVICE_MISMATCH);
  EXPECT_EQ(code([&] { static_cast<void>(group.broadcast(x, 1)); }), COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(code([&] { group.all_reduce_into(x, whole); }), COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(code([&] { group.all_gather_into(x, x); }), COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(code([&] { static_cast<void>(group.split(-1)); }), COMPUTE_ERROR_INVALID_ARGUMENT);
  compute_tensor* y = nullptr;
  auto options = compute::sized<compute_collective_options>();
  const auto code_with_options = [&] {
    compute_error* error = compute_group_all_reduce(nullptr, group.get(), x.get(), COMPUTE_REDUCTION_SUM, &options, &y);
    const compute_error_code found = compute_error_get_code(error);
    compute_error_free(error);
    return found;
  };
  options.flags = 64;
  EXPECT_EQ(code_with_options(), COMPUTE_ERROR_UNSUPPORTED);
  options.flags = 0;
  options.reserved = 1;
  EXPECT_EQ(code_with_options(), COMPUTE_ERROR_UNSUPPORTED);
  options.reserved = 0;
  options.struct_size = COMPUTE_COLLECTIVE_OPTIONS_SIZE_1 - 1;
  EXPECT_EQ(code_with_options(), COMPUTE_ERROR_INVALID_ARGUMENT);
  const std::vector<Group> two = over({host(), host()});
  EXPECT_EQ(code([&] { static_cast<void>(two[0].reduce_scatter(host().full({5}, 1.0f))); }),
            COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(code([&] {
              static_cast<void>(compute::Graph::record(
                  recorded, [&] { static_cast<void>(two[0].all_reduce(x, Reduction::sum, {}, recorded)); }));
            }),
            COMPUTE_ERROR_UNSUPPORTED);
}

// Functions of C, with what no program should pass. Out-parameters are written all the same.
TEST(Collective, RefusesNull) {
  const Group group(host());
  const Tensor x = host().full({4}, 1.0f);
  compute_group* const g = group.get();
  compute_device* const device = host().get();
  const auto refused = [](compute_error* error) {
    const compute_error_code code = compute_error_get_code(error);
    compute_error_free(error);
    return code == COMPUTE_ERROR_INVALID_ARGUMENT;
  };
  compute_group* made = g;
  EXPECT_TRUE(refused(compute_group_create(nullptr, nullptr, nullptr, &made)));
  EXPECT_EQ(made, nullptr);
  EXPECT_TRUE(refused(compute_group_create(nullptr, device, nullptr, nullptr)));
  EXPECT_TRUE(refused(compute_group_create_mpi(nullptr, nullptr, &made)));
  EXPECT_TRUE(refused(compute_group_create_mpi(device, nullptr, nullptr)));
  compute_device* const devices[] = {device, nullptr};
  compute_group* groups[] = {g, g};
  EXPECT_TRUE(refused(compute_group_create_all(devices, 2, nullptr, groups)));
  EXPECT_EQ(groups[1], nullptr);
  EXPECT_TRUE(refused(compute_group_create_all(devices, 0, nullptr, groups)));
  EXPECT_TRUE(refused(compute_group_create_all(nullptr, 1, nullptr, groups)));
  EXPECT_TRUE(refused(compute_group_create_all(devices, 1, nullptr, nullptr)));
  EXPECT_TRUE(refused(compute_group_split(nullptr, 0, 0, &made)));
  EXPECT_TRUE(refused(compute_group_split(g, 0, 0, nullptr)));
  EXPECT_TRUE(refused(compute_group_abort(nullptr)));
  EXPECT_TRUE(refused(compute_group_barrier(nullptr)));
  compute_tensor* y = x.get();
  auto options = compute::sized<compute_collective_options>();
  options.flags = COMPUTE_COLLECTIVE_DETERMINISTIC;
  for (compute_group* const to : {g, static_cast<compute_group*>(nullptr)}) {
    compute_tensor* const from = to != nullptr ? nullptr : x.get();
    EXPECT_TRUE(refused(compute_group_all_reduce(nullptr, to, from, COMPUTE_REDUCTION_SUM, &options, &y)));
    EXPECT_EQ(y, nullptr);
    EXPECT_TRUE(refused(compute_group_all_reduce_into(nullptr, to, from, COMPUTE_REDUCTION_SUM, &options, x.get())));
    EXPECT_TRUE(refused(compute_group_reduce_scatter(nullptr, to, from, COMPUTE_REDUCTION_SUM, &options, &y)));
    EXPECT_TRUE(
        refused(compute_group_reduce_scatter_into(nullptr, to, from, COMPUTE_REDUCTION_SUM, &options, x.get())));
    EXPECT_TRUE(refused(compute_group_all_gather(nullptr, to, from, &options, &y)));
    EXPECT_TRUE(refused(compute_group_all_gather_into(nullptr, to, from, &options, x.get())));
    EXPECT_TRUE(refused(compute_group_broadcast(nullptr, to, from, 0, &options, &y)));
    EXPECT_TRUE(refused(compute_group_broadcast_into(nullptr, to, from, 0, &options, x.get())));
    EXPECT_TRUE(refused(compute_group_all_to_all(nullptr, to, from, &options, &y)));
    EXPECT_TRUE(refused(compute_group_all_to_all_into(nullptr, to, from, &options, x.get())));
    EXPECT_TRUE(refused(compute_group_send(nullptr, to, from, 0, &options)));
    const int64_t shape[] = {4};
    EXPECT_TRUE(refused(compute_group_recv(nullptr, to, COMPUTE_DTYPE_FLOAT32, 1, shape, 0, &options, &y)));
    EXPECT_TRUE(refused(compute_group_recv_into(nullptr, to, from, 0, &options)));
  }
  for (const int32_t reduction : {0, int32_t{COMPUTE_REDUCTION_ALL}, int32_t{COMPUTE_REDUCTION_ANY}, 8}) {
    EXPECT_TRUE(refused(compute_group_all_reduce(nullptr, g, x.get(), reduction, nullptr, &y)));
    EXPECT_TRUE(refused(compute_group_reduce_scatter(nullptr, g, x.get(), reduction, nullptr, &y)));
  }
  EXPECT_TRUE(refused(compute_group_all_reduce(nullptr, g, x.get(), COMPUTE_REDUCTION_SUM, nullptr, nullptr)));
  EXPECT_TRUE(refused(compute_group_all_reduce_into(nullptr, g, x.get(), COMPUTE_REDUCTION_SUM, nullptr, nullptr)));
  EXPECT_TRUE(refused(compute_group_reduce_scatter(nullptr, g, x.get(), COMPUTE_REDUCTION_SUM, nullptr, nullptr)));
  EXPECT_TRUE(refused(compute_group_all_gather(nullptr, g, x.get(), nullptr, nullptr)));
  EXPECT_TRUE(refused(compute_group_broadcast(nullptr, g, x.get(), 0, nullptr, nullptr)));
  EXPECT_TRUE(refused(compute_group_all_to_all(nullptr, g, x.get(), nullptr, nullptr)));
  EXPECT_TRUE(refused(compute_group_recv(nullptr, g, COMPUTE_DTYPE_FLOAT32, 0, nullptr, 0, nullptr, nullptr)));
}

// ---- A transport of the program -------------------------------------------------------------------------------------

// One that fails as the test says: at the start of a request, in its progress, or by never ending it.
struct BadTransport {
  int32_t fails_at_start = 0, fails_later = 0;
  int closed = 0, aborted = 0;

  static BadTransport& of(void* user_data) { return *static_cast<BadTransport*>(user_data); }
  static int32_t exchange(const void*, void* dst, int64_t size_bytes, uint64_t* out_request, void* user_data) {
    std::memset(dst, 0, static_cast<size_t>(2 * size_bytes));
    *out_request = 1;
    return of(user_data).fails_at_start;
  }
  static int32_t transfer(void*, int64_t, int32_t, uint64_t* out_request, void* user_data) {
    *out_request = 1;
    return of(user_data).fails_at_start;
  }
  static int32_t progress(uint64_t, int32_t* out_done, void* user_data) {
    *out_done = of(user_data).fails_later == -1 ? 0 : 1;
    return std::max(of(user_data).fails_later, 0);
  }

  compute_transport table() {
    compute_transport table{};
    table.struct_size = sizeof table;
    table.struct_type = COMPUTE_STRUCT_TRANSPORT;
    table.rank = 1;
    table.size = 2;
    table.user_data = this;
    table.all_gather = table.all_to_all = exchange;
    table.broadcast = table.send = table.recv = transfer;
    table.progress = progress;
    table.abort = [](const char*, void* user_data) { ++of(user_data).aborted; };
    table.close = [](void* user_data) { ++of(user_data).closed; };
    return table;
  }
};

TEST(Collective, ReportsWhatATransportReports) {
  const Setting limit("COMPUTE_COLLECTIVE_TIMEOUT", "1");
  const Tensor x = host().full({4000}, 1.0f);
  for (int way = 0; way < 3; ++way) {
    BadTransport transport;
    {
      const Group group(transport.table(), host());
      EXPECT_EQ(group.description(), "a transport of the program");
      static_cast<void>(group.all_reduce(x));
      if (way == 0) transport.fails_at_start = 7;
      if (way == 1) transport.fails_later = 7;
      if (way == 2) transport.fails_later = -1;
      const Thrown failure = thrown_by([&] { static_cast<void>(group.all_reduce(x)); });
      EXPECT_EQ(failure.code, COMPUTE_ERROR_PEER_FAILED);
      EXPECT_NE(failure.message.find(way == 2 ? "no answer" : "transport error 7"), std::string::npos)
          << failure.message;
      EXPECT_EQ(thrown_by([&] { static_cast<void>(group.split(0)); }).code, COMPUTE_ERROR_PEER_FAILED);
    }
    EXPECT_EQ(transport.closed, 1);
    EXPECT_EQ(transport.aborted, 1);
  }
  BadTransport transport;
  EXPECT_EQ(thrown_by([&] { static_cast<void>(Group(transport.table(), host()).split(0)); }).code,
            COMPUTE_ERROR_UNSUPPORTED);
  compute_transport incomplete = transport.table();
  incomplete.send = nullptr;
  EXPECT_EQ(thrown_by([&] { Group(incomplete, host()); }).code, COMPUTE_ERROR_INVALID_ARGUMENT);
  incomplete = transport.table();
  incomplete.rank = 2;
  EXPECT_EQ(thrown_by([&] { Group(incomplete, host()); }).code, COMPUTE_ERROR_INVALID_ARGUMENT);
  incomplete = transport.table();
  incomplete.struct_size = COMPUTE_TRANSPORT_SIZE_1 - 8;
  EXPECT_EQ(thrown_by([&] { Group(incomplete, host()); }).code, COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(transport.closed, 1);  // where the group was made
}

TEST(Collective, HandlesAreCounted) {
  compute_group* group = nullptr;
  compute::check(compute_group_create(nullptr, host().get(), nullptr, &group));
  compute_group_retain(group);
  compute_group_release(group);
  EXPECT_EQ(compute_group_size(group), 1);
  compute_group_release(group);
  compute_group_release(nullptr);
  EXPECT_EQ(compute_group_size(nullptr), 0);
  EXPECT_EQ(compute_group_rank(nullptr), 0);
  EXPECT_EQ(compute_group_device(nullptr), nullptr);
  EXPECT_STREQ(compute_group_description(nullptr), "");
}

// ---- By the library of a plugin: with COMPUTE_MINIMAL_COLLECTIVES=1 -------------------------------------------------

TEST(LibraryCollectives, AreMadeByThePlugin) {
  const std::vector<Group> groups = over({remote(), Device::open("minimal1")});
  EXPECT_EQ(groups[0].description(), "loopback 1.0, threads of one process");
  // Two ranks on one device are not possible there.
  EXPECT_EQ(over({remote(), remote()})[0].description(), "threads of one process");
  EXPECT_EQ(over({remote(), host()})[1].description(), "threads of one process");
}

// The streams fail whose work waits for the other rank.
TEST(LibraryCollectives, EndOnAllRanksIfOneFails) {
  for (const bool hangs : {false, true}) {
    const Setting limit("COMPUTE_COLLECTIVE_TIMEOUT", hangs ? "3" : "0");
    on_all_ranks(over({remote(), Device::open("minimal1")}), [&](const Group& group) {
      const Stream stream(group.device()), other(group.device());
      const Tensor x = group.device().full({1000}, int32_t{1});
      EXPECT_EQ(group.all_reduce(x, Reduction::sum, {}, stream).to_vector<int32_t>()[0], 2);
      if (group.rank() == 0) {
        if (!hangs) group.abort();
        return;
      }
      const auto begin = std::chrono::steady_clock::now();
      const Thrown failure = thrown_by([&] { finish(group.all_reduce(x, Reduction::sum, {}, stream)); });
      EXPECT_EQ(failure.code, COMPUTE_ERROR_PEER_FAILED) << failure.message;
      EXPECT_NE(failure.message.find("all_reduce: call 2"), std::string::npos) << failure.message;
      EXPECT_LT(std::chrono::steady_clock::now() - begin, kTold);
      EXPECT_EQ(thrown_by([&] { finish(group.all_reduce(x, Reduction::sum, {}, other)); }).code,
                COMPUTE_ERROR_PEER_FAILED);
      EXPECT_EQ(compute::negative(x, other).to_vector<int32_t>()[0], -1);
    });
  }
}

TEST(LibraryCollectives, EndIfARankLeaves) {
  std::vector<Group> all = over({remote(), Device::open("minimal1")});
  const Group staying = all[1];
  const Stream stream(staying.device());
  const Tensor y = staying.all_reduce(staying.device().full({1000}, int32_t{1}), Reduction::sum, {}, stream);
  all.clear();
  const Thrown failure = thrown_by([&] { finish(y); });
  EXPECT_EQ(failure.code, COMPUTE_ERROR_PEER_FAILED);
  EXPECT_NE(failure.message.find("rank 0 has left the group"), std::string::npos) << failure.message;
}

TEST(LibraryCollectives, CompareTheirCalls) {
  const Setting check("COMPUTE_COLLECTIVE_CHECK", "1");
  on_all_ranks(over({remote(), Device::open("minimal1")}), [](const Group& group) {
    const Tensor x = group.device().full({group.rank() + 1}, int32_t{1});
    const Thrown failure = thrown_by([&] { finish(group.all_reduce(x)); });
    EXPECT_NE(failure.message.find("rank 1 made call 1, all_reduce of 2 elements"), std::string::npos)
        << failure.message;
  });
}

using compute::Graph;

TEST(LibraryCollectives, AreRecordedInGraphs) {
  on_all_ranks(over({remote(), Device::open("minimal1")}), [](const Group& given) {
    Group group = given;
    const int32_t rank = group.rank();
    const Stream stream(group.device());
    Tensor x = group.device().full({6}, int32_t{0});
    Tensor y, sum, joined;
    const Tensor shared = group.device().full({3}, int32_t{0});
    const Graph graph = Graph::record(stream, [&] {
      y = compute::add(compute::multiply(x, x, stream), int32_t{1}, stream);
      sum = group.all_reduce(y, Reduction::sum, {}, stream);
      const Tensor strided = sum.slice(0, 0, 6, 2);
      joined = group.all_gather(compute::negative(strided, stream), {}, stream);
      group.broadcast_into(strided, shared, 1, {}, stream);
    });
    EXPECT_EQ(graph.info().native, std::getenv("COMPUTE_MINIMAL_GRAPHS") != nullptr);
    EXPECT_EQ(thrown_by([&] { finish(sum); }).code, COMPUTE_ERROR_INVALID_ARGUMENT) << "it has not run";
    group = Group();  // the graph has its own reference
    const Stream other(x.device());
    for (int32_t round = 1; round <= 3; ++round) {
      const std::vector<int32_t> values(6, round + rank);
      x.write(values.data(), 24);
      graph.run(round == 2 ? other : stream);
      const int32_t expected = round * round + 1 + (round + 1) * (round + 1) + 1;
      EXPECT_EQ(sum.to_vector<int32_t>(), std::vector<int32_t>(6, expected));
      EXPECT_EQ(joined.to_vector<int32_t>(), std::vector<int32_t>(6, -expected));
      EXPECT_EQ(shared.to_vector<int32_t>(), std::vector<int32_t>(3, expected));
    }
  });
}

TEST(LibraryCollectives, EndIfTheRunOfAGraphFails) {
  on_all_ranks(over({remote(), Device::open("minimal1")}), [&](const Group& group) {
    const Stream stream(group.device());
    const Tensor x = group.device().full({1000}, int32_t{1});
    Tensor sum, last;
    const Graph graph = Graph::record(stream, [&] {
      sum = group.all_reduce(compute::negative(x, stream), Reduction::sum, {}, stream);
      last = compute::negative(sum, stream);
    });
    graph.run(stream);
    EXPECT_EQ(last.to_vector<int32_t>()[999], 2);
    group.barrier();  // both have read it
    if (group.rank() == 0) {
      group.abort();
      EXPECT_EQ(thrown_by([&] { graph.run(stream); }).code, COMPUTE_ERROR_PEER_FAILED);
      return;
    }
    const Thrown failure = thrown_by([&] {
      graph.run(stream);
      finish(last);
    });
    EXPECT_EQ(failure.code, COMPUTE_ERROR_PEER_FAILED) << failure.message;
    EXPECT_EQ(thrown_by([&] { graph.run(stream); }).code, COMPUTE_ERROR_PEER_FAILED);
  });
}

TEST(LibraryCollectives, AreRefusedInGraphsIfTheyGoThroughTheHost) {
  on_all_ranks(over({remote(), Device::open("minimal1")}), [](const Group& group) {
    const Stream stream(group.device());
    const Tensor x = group.device().full({4}, 1.0f);  // no sum of float32 is the library's
    const auto record = [&] { static_cast<void>(group.all_reduce(x, Reduction::sum, {}, stream)); };
    Thrown failure = thrown_by([&] { static_cast<void>(Graph::record(stream, record)); });
    EXPECT_EQ(failure.code, COMPUTE_ERROR_UNSUPPORTED);
    EXPECT_NE(failure.message.find("goes through the host"), std::string::npos) << failure.message;
    Graph::begin(stream);
    static_cast<void>(thrown_by(record));
    EXPECT_EQ(thrown_by([&] { static_cast<void>(Graph::end(stream)); }).code, COMPUTE_ERROR_UNSUPPORTED);
    record();
  });
}

// ---- Over MPI: mpiexec runs this program ----------------------------------------------------------------------------

const Group& all_processes() {
  static const auto* const group = new Group(Group::over_mpi(host()));
  return *group;
}

TEST(MpiCollectives, ReduceEveryDtypeAndSize) { reduce_every_dtype_and_size(all_processes()); }
TEST(MpiCollectives, MoveEveryDtypeAndSize) { move_every_dtype_and_size(all_processes()); }

TEST(MpiCollectives, ExchangeLargeTensors) {
  const Group& group = all_processes();
  EXPECT_NE(group.description().find("MPI"), std::string::npos) << group.description();
  const Tensor x = host().full({(int64_t{9} << 20) + 1}, static_cast<float>(group.rank() + 1));
  const int32_t ranks = group.size();
  const Stream stream(host());
  for (const Stream& one : {Stream(), stream}) {
    const std::vector<float> sum = group.all_reduce(x, Reduction::sum, {}, one).to_vector<float>();
    EXPECT_EQ(sum.front(), static_cast<float>(ranks * (ranks + 1) / 2));
    EXPECT_EQ(sum.back(), sum.front());
  }
}

TEST(MpiCollectives, CanBeSplit) {
  const Group& group = all_processes();
  const Group part = group.split(group.rank() % 2, -group.rank());
  const Tensor x = host().full({3}, 1.0f);
  EXPECT_EQ(part.size(), group.rank() % 2 == 0 ? (group.size() + 1) / 2 : group.size() / 2);
  EXPECT_EQ(part.all_reduce(x).to_vector<float>()[0], static_cast<float>(part.size()));
}

TEST(MpiCollectives, EndOnAllRanksIfOneFails) {
  const Group group = all_processes().split(0);
  all_processes().barrier();  // all have made theirs
  const Tensor x = host().full({1000}, 1.0f);
  if (group.rank() == 0) {
    group.abort();
  } else {
    const Thrown failure = thrown_by([&] { finish(group.all_reduce(x)); });
    EXPECT_EQ(failure.code, COMPUTE_ERROR_PEER_FAILED);
    EXPECT_NE(failure.message.find("rank 0 has ended the group"), std::string::npos) << failure.message;
  }
  all_processes().barrier();
}

TEST(MpiCollectives, EndIfARankLeaves) {
  Group group = all_processes().split(0);
  all_processes().barrier();  // all have made theirs
  const Tensor x = host().full({1000}, 1.0f);
  const int32_t rank = group.rank();
  if (rank == 1) {
    group = Group();
  } else {
    const Thrown failure = thrown_by([&] { finish(group.all_reduce(x)); });
    EXPECT_EQ(failure.code, COMPUTE_ERROR_PEER_FAILED);
    // With more than two ranks, another one may have ended the group first.
    EXPECT_NE(failure.message.find("rank 1 has left the group"), std::string::npos) << failure.message;
  }
  all_processes().barrier();
}

TEST(MpiCollectives, CompareTheirCalls) {
  const Setting check("COMPUTE_COLLECTIVE_CHECK", "1");
  const Group group = all_processes().split(0);
  const Tensor x = host().full({group.rank() == 1 ? 5 : 4}, 1.0f);
  const Thrown failure = thrown_by([&] { finish(group.all_reduce(x)); });
  EXPECT_EQ(failure.code, COMPUTE_ERROR_PEER_FAILED);
  EXPECT_NE(failure.message.find("rank 1"), std::string::npos) << failure.message;
  all_processes().barrier();
}

}  // namespace
}  // namespace runtime
