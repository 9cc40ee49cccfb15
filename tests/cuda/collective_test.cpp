// SPDX-License-Identifier: Apache-2.0
// Collectives between two GPUs, with a fake NCCL on the fake driver's devices, or by hand with NCCL on real ones.
#include <gtest/gtest.h>
#include <compute/compute.hpp>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace {

using compute::Device;
using compute::DType;
using compute::Group;
using compute::Reduction;
using compute::Tensor;

bool has_two_devices() {
  compute_device* second = nullptr;
  compute_error* error = compute_device_open("cuda1", &second);
  compute_error_free(error);
  compute_device_release(second);
  return error == nullptr;
}

std::vector<Group> groups() {
  const Device devices[] = {Device::open("cuda0"), Device::open("cuda1")};
  return Group::over_devices(devices);
}

void on_both(const std::vector<Group>& all, const std::function<void(const Group&)>& body) {
  std::vector<std::thread> threads;
  for (const Group& group : all) {
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

Tensor made_of(const Group& group, compute_dtype dtype, const std::vector<uint8_t>& bytes) {
  const auto count = static_cast<int64_t>(bytes.size()) / compute_dtype_size(dtype);
  compute_tensor* made = nullptr;
  compute::check(compute_tensor_from_host(group.device().get(), dtype, 1, &count, bytes.data(), &made));
  return Tensor(made);
}

std::vector<uint8_t> bytes_of(const Tensor& tensor) {
  std::vector<uint8_t> bytes(static_cast<size_t>(compute_tensor_size_bytes(tensor.get())));
  compute::check(compute_tensor_read(tensor.get(), bytes.data(), static_cast<int64_t>(bytes.size())));
  return bytes;
}

TEST(CudaCollectives, AddUp) {
  if (!has_two_devices()) GTEST_SKIP() << "there is one CUDA device";
  on_both(groups(), [](const Group& group) {
    EXPECT_EQ(group.description().substr(0, 5), "nccl ") << group.description();
    const float own = static_cast<float>(group.rank() + 1);
    std::vector<float> values(10001);
    for (size_t i = 0; i < values.size(); ++i) values[i] = own * static_cast<float>(i);
    values.pop_back();
    const Tensor x = group.device().from_host(values);
    const std::vector<float> sum = group.all_reduce(x).to_vector<float>();
    const std::vector<float> mean = group.all_reduce(x, Reduction::mean).to_vector<float>();
    const std::vector<float> exact = group.all_reduce(x, Reduction::max, {true}).to_vector<float>();
    for (size_t i = 0; i < sum.size(); ++i) {
      ASSERT_EQ(sum[i], 3.0f * static_cast<float>(i));
      ASSERT_EQ(mean[i], 1.5f * static_cast<float>(i));
      ASSERT_EQ(exact[i], 2.0f * static_cast<float>(i));
    }
    const std::vector<float> part = group.reduce_scatter(x).to_vector<float>();
    for (size_t i = 0; i < part.size(); ++i)
      ASSERT_EQ(part[i], 3.0f * static_cast<float>(i + static_cast<size_t>(group.rank()) * 5000));
    const std::vector<int32_t> whole(7, group.rank() + 1);
    EXPECT_EQ(group.all_reduce(group.device().from_host(whole)).to_vector<int32_t>(), std::vector<int32_t>(7, 3));
    // NCCL has no such reduction: core makes it.
    const std::vector<uint8_t> flags = {0, static_cast<uint8_t>(group.rank()), 2};
    EXPECT_EQ(bytes_of(group.all_reduce(made_of(group, COMPUTE_DTYPE_BOOL, flags))), (std::vector<uint8_t>{0, 1, 1}));
  });
}

TEST(CudaCollectives, MoveEveryDtype) {
  if (!has_two_devices()) GTEST_SKIP() << "there is one CUDA device";
  on_both(groups(), [](const Group& group) {
    const auto values = [](int32_t rank, compute_dtype dtype) {
      std::vector<uint8_t> bytes(static_cast<size_t>(6 * compute_dtype_size(dtype)));
      for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 3 + static_cast<size_t>(rank));
      return bytes;
    };
    const auto joined = [](std::vector<uint8_t> a, const std::vector<uint8_t>& b) {
      a.insert(a.end(), b.begin(), b.end());
      return a;
    };
    for (compute_dtype dtype = COMPUTE_DTYPE_INT8; dtype <= COMPUTE_DTYPE_COMPLEX128; ++dtype) {
      const std::vector<uint8_t> first = values(0, dtype), second = values(1, dtype);
      const Tensor x = made_of(group, dtype, values(group.rank(), dtype));
      EXPECT_EQ(bytes_of(group.all_gather(x)), joined(first, second)) << DType(dtype).name();
      EXPECT_EQ(bytes_of(group.broadcast(x, 1)), second) << DType(dtype).name();
      const auto half = static_cast<std::ptrdiff_t>(first.size() / 2);
      const auto begin = group.rank() * half;
      const auto part = [&](const std::vector<uint8_t>& of) {
        return std::vector<uint8_t>(of.begin() + begin, of.begin() + begin + half);
      };
      EXPECT_EQ(bytes_of(group.all_to_all(x)), joined(part(first), part(second))) << DType(dtype).name();
      if (group.rank() == 0) {
        group.send(x, 1);
      } else {
        EXPECT_EQ(bytes_of(group.recv(DType(dtype), {6}, 0)), first) << DType(dtype).name();
      }
    }
    group.barrier();
  });
}

// NCCL refuses two ranks on one GPU; the data then go through the host.
TEST(CudaCollectives, GoThroughTheHostWithoutNccl) {
  if (!has_two_devices()) GTEST_SKIP() << "there is one CUDA device";
  setenv("FAKE_NCCL", "refuses", 1);
  const std::vector<Group> all = groups();
  unsetenv("FAKE_NCCL");
  if (all[0].description().substr(0, 5) == "nccl ") GTEST_SKIP() << "it is NVIDIA's";
  on_both(all, [](const Group& group) {
    const std::vector<float> values(1000, static_cast<float>(group.rank() + 1));
    EXPECT_EQ(group.all_reduce(group.device().from_host(values)).to_vector<float>(), std::vector<float>(1000, 3.0f));
  });
}

// Runs a call that needs rank 1, which has left.
void expect_that_rank_1_has_left(const Group& group) {
  try {
    const std::vector<float> sum = group.all_reduce(group.device().full({1000}, 1.0f)).to_vector<float>();
    ADD_FAILURE() << "the sum is " << sum[0];
  } catch (const compute::Error& error) {
    EXPECT_EQ(error.code(), compute::ErrorCode::peer_failed) << error.what();
    EXPECT_NE(std::string(error.what()).find("rank 1 has left the group"), std::string::npos) << error.what();
  }
}

void add_up(const Group& group) {
  EXPECT_EQ(group.all_reduce(group.device().full({1000}, 1.0f)).to_vector<float>(), std::vector<float>(1000, 2.0f));
}

TEST(CudaCollectives, EndIfARankLeaves) {
  if (!has_two_devices()) GTEST_SKIP() << "there is one CUDA device";
  std::vector<Group> all = groups();
  on_both(all, add_up);
  const Group staying = all[0];
  all.clear();
  expect_that_rank_1_has_left(staying);
}

void exit_behind_an_abort() {
  setenv("FAKE_NCCL_ABORT_MS", "1500", 1);
  std::vector<Group> all = groups();
  on_both(all, add_up);
  all[0].abort();
  all.clear();
  exit(0);
}

// NCCL may take longer to end a group than the group's release waits for it.
TEST(CudaCollectives, ExitWaitsForTheEndOfGroups) {
  if (!has_two_devices()) GTEST_SKIP() << "there is one CUDA device";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(exit_behind_an_abort(), testing::ExitedWithCode(0), "");
}

// ---- Two processes, which mpiexec starts ----------------------------------------------------------------------------

Group over_processes() {
  const char* const rank = std::getenv("PMI_RANK");
  return Group::over_mpi(Device::open(rank != nullptr && std::strcmp(rank, "1") == 0 ? "cuda1" : "cuda0"));
}

TEST(CudaProcesses, EndIfARankLeaves) {
  Group group = over_processes();
  ASSERT_EQ(group.description().substr(0, 5), "nccl ") << group.description();
  add_up(group);
  if (group.rank() == 1) {
    group = Group();
  } else {
    expect_that_rank_1_has_left(group);
  }
}

TEST(CudaProcesses, EndIfARankAborts) {
  const Group group = over_processes();
  add_up(group);
  if (group.rank() == 1) {
    group.abort();
    return;
  }
  try {
    add_up(group);
    ADD_FAILURE() << "the call has succeeded";
  } catch (const compute::Error& error) {
    EXPECT_EQ(error.code(), compute::ErrorCode::peer_failed) << error.what();
    EXPECT_NE(std::string(error.what()).find("rank 1 has ended the group"), std::string::npos) << error.what();
  }
}

// The last test: both processes exit with the group.
TEST(CudaProcesses, EndIfARankExits) {
  static const auto* const group = new Group(over_processes());
  add_up(*group);
  if (group->rank() == 0) expect_that_rank_1_has_left(*group);
}

}  // namespace
