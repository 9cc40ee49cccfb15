// SPDX-License-Identifier: Apache-2.0
// Host tensors on a device whose memory the host cannot address: what is copied, when, and what is not.
#include <algorithm>
#include "runtime.hpp"

namespace {

using compute::Stream;
using compute::Tensor;
using namespace runtime;

compute_device_statistics now() { return remote().statistics(); }

Tensor wrap(std::vector<float>& values, int32_t promise) {
  const int64_t shape[] = {static_cast<int64_t>(values.size())};
  compute_tensor* tensor = nullptr;
  compute::check(compute_tensor_wrap_host(COMPUTE_DTYPE_FLOAT32, 1, shape, nullptr, values.data(), promise, nullptr,
                                          nullptr, &tensor));
  return Tensor(tensor);
}

TEST(Residency, HostTensorMovesOnceWhileItDoesNotChange) {
  const Stream stream(remote());
  const Tensor x = host().from_host(iota(1000));
  const auto before = now();
  Tensor y;
  for (int i = 0; i < 10; ++i) y = compute::add(x, x, stream);
  const auto after = now();
  EXPECT_EQ(after.transfers_to_device - before.transfers_to_device, 1);
  EXPECT_EQ(after.transfers_implicit - before.transfers_implicit, 1);
  EXPECT_EQ(after.transfers_to_device_bytes - before.transfers_to_device_bytes, 4000);
  EXPECT_EQ(after.mirror_hits - before.mirror_hits, 19);
  EXPECT_EQ(after.transfers_from_device, before.transfers_from_device);
  EXPECT_EQ(y.device().name(), "minimal0") << "results stay where they were computed";
  EXPECT_EQ(y.to_vector<float>()[999], 1998.0f);
}

TEST(Residency, WritingTheHostTensorMakesItsCopyStale) {
  const Stream stream(remote());
  Tensor x = host().from_host(iota(100));
  Tensor y = compute::negative(x, stream);
  const auto before = now();
  const std::vector<float> other = iota(100, 50);
  x.write(other.data(), 400);
  y = compute::negative(x, stream);
  EXPECT_EQ(now().transfers_to_device - before.transfers_to_device, 1);
  EXPECT_EQ(y.to_vector<float>()[0], -50.0f);
}

TEST(Residency, AHostOpOnTheTensorMakesItsCopyStale) {
  const Stream stream(remote());
  Tensor x = host().from_host(iota(100));
  Tensor y = compute::negative(x, stream);
  compute::check(compute_add_into(nullptr, x.get(), x.get(), x.get()));
  y = compute::negative(x, stream);
  EXPECT_EQ(y.to_vector<float>()[99], -198.0f);
}

TEST(Residency, ViewsShareTheCopyOfTheirBuffer) {
  const Stream stream(remote());
  const Tensor x = host().from_host(iota(1000));
  Tensor y = compute::negative(x, stream);
  const auto before = now();
  y = compute::negative(x.slice(0, 100, 900, 3), stream);
  EXPECT_EQ(now().transfers_to_device, before.transfers_to_device);
  EXPECT_EQ(y.to_vector<float>()[1], -103.0f);
  y = compute::negative(x.slice(0, std::nullopt, std::nullopt, -1), stream);
  EXPECT_EQ(now().transfers_to_device, before.transfers_to_device);
  EXPECT_EQ(y.to_vector<float>()[0], -999.0f);
}

TEST(Residency, TheCopyGrowsToTheUnionOfWhatWasUsed) {
  const Stream stream(remote());
  const Tensor x = host().from_host(iota(10000));
  static_cast<void>(compute::negative(x.slice(0, 0, 16), stream));
  const auto before = now();
  const Tensor y = compute::negative(x, stream);
  static_cast<void>(compute::negative(x.slice(0, 0, 16), stream));
  EXPECT_EQ(now().transfers_to_device - before.transfers_to_device, 1);
  EXPECT_EQ(y.to_vector<float>()[9999], -9999.0f);
}

TEST(Residency, AnOpMayWriteAHostTensorWithoutBringingItHomeEachTime) {
  const Stream stream(remote());
  const Tensor x = remote().from_host(iota(100));
  const Tensor y = host().from_host(std::vector<float>(100, -1));
  const auto before = now();
  for (int i = 0; i < 5; ++i) compute::check(compute_add_into(stream.get(), x.get(), x.get(), y.get()));
  EXPECT_EQ(now().transfers_from_device, before.transfers_from_device);
  EXPECT_EQ(y.to_vector<float>()[99], 198.0f);
  EXPECT_EQ(now().transfers_from_device - before.transfers_from_device, 1);
  EXPECT_EQ(compute::negative(y).to_vector<float>()[1], -2.0f);
  EXPECT_EQ(now().transfers_from_device - before.transfers_from_device, 1);
}

TEST(Residency, WritingPartOfAHostTensorKeepsTheRest) {
  const Stream stream(remote());
  const Tensor x = remote().from_host(iota(10));
  const Tensor y = host().from_host(std::vector<float>(30, 7));
  compute::check(compute_negative_into(stream.get(), x.get(), y.slice(0, 5, 25, 2).get()));
  const std::vector<float> values = y.to_vector<float>();
  for (int i = 0; i < 30; ++i) {
    const float wanted = i >= 5 && i < 25 && (i - 5) % 2 == 0 ? -static_cast<float>((i - 5) / 2) : 7.0f;
    EXPECT_EQ(values[static_cast<size_t>(i)], wanted) << i;
  }
}

TEST(Residency, MappedForWritingIsCopiedAtEachUse) {
  const Stream stream(remote());
  const Tensor x = host().from_host(iota(100));
  void* data = nullptr;
  int32_t is_copy = 0;
  compute::check(compute_tensor_map(x.get(), COMPUTE_ACCESS_READ | COMPUTE_ACCESS_WRITE, &data, &is_copy));
  EXPECT_EQ(is_copy, 0);
  const auto before = now();
  for (int i = 0; i < 3; ++i) {
    static_cast<float*>(data)[0] = static_cast<float>(i);
    EXPECT_EQ(compute::negative(x, stream).to_vector<float>()[0], -static_cast<float>(i));
  }
  EXPECT_EQ(now().transfers_to_device - before.transfers_to_device, 3);
  compute::check(compute_tensor_unmap(x.get(), data));
  static_cast<void>(compute::negative(x, stream));
  const auto settled = now();
  static_cast<void>(compute::negative(x, stream));
  EXPECT_EQ(now().transfers_to_device, settled.transfers_to_device);
}

TEST(Residency, MappedRemoteTensorIsACopyThatUnmapWritesBack) {
  const Tensor x = remote().from_host(iota(10));
  void* data = nullptr;
  int32_t is_copy = 0;
  compute::check(compute_tensor_map(x.get(), COMPUTE_ACCESS_READ | COMPUTE_ACCESS_WRITE, &data, &is_copy));
  EXPECT_EQ(is_copy, 1);
  EXPECT_EQ(static_cast<float*>(data)[9], 9.0f);
  static_cast<float*>(data)[0] = 42;
  compute::check(compute_tensor_unmap(x.get(), data));
  EXPECT_EQ(x.to_vector<float>()[0], 42.0f);
  const Thrown again = thrown_by([&] { compute::check(compute_tensor_unmap(x.get(), data)); });
  EXPECT_EQ(again.code, COMPUTE_ERROR_INVALID_ARGUMENT);
}

TEST(Residency, WrappedMemoryKeepsItsPromise) {
  const Stream stream(remote());
  std::vector<float> values = iota(100);
  {
    const Tensor x = wrap(values, COMPUTE_WRAP_TRACKED);
    static_cast<void>(compute::negative(x, stream));
    const auto before = now();
    static_cast<void>(compute::negative(x, stream));
    EXPECT_EQ(now().transfers_to_device, before.transfers_to_device);
    values[0] = 5;
    compute::check(compute_tensor_touch(x.get()));
    EXPECT_EQ(compute::negative(x, stream).to_vector<float>()[0], -5.0f);
    EXPECT_EQ(now().transfers_to_device - before.transfers_to_device, 1);
  }
  {
    const Tensor x = wrap(values, COMPUTE_WRAP_EXPOSED);
    const auto before = now();
    static_cast<void>(compute::negative(x, stream));
    static_cast<void>(compute::negative(x, stream));
    EXPECT_EQ(now().transfers_to_device - before.transfers_to_device, 2);
  }
  {
    const Tensor x = wrap(values, COMPUTE_WRAP_IMMUTABLE);
    const Thrown thrown = thrown_by([&] { compute::check(compute_negative_into(nullptr, x.get(), x.get())); });
    EXPECT_EQ(thrown.code, COMPUTE_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(thrown.message, "negative: output 0 is in immutable memory");
  }
}

TEST(Residency, OverlappingWrapsShareOneRecord) {
  const Stream stream(remote());
  std::vector<float> values = iota(100);
  const Tensor whole = wrap(values, COMPUTE_WRAP_TRACKED);
  const int64_t shape[] = {10};
  compute_tensor* part = nullptr;
  compute::check(compute_tensor_wrap_host(COMPUTE_DTYPE_FLOAT32, 1, shape, nullptr, values.data() + 50,
                                          COMPUTE_WRAP_TRACKED, nullptr, nullptr, &part));
  const Tensor inner(part);
  EXPECT_EQ(compute_tensor_shares_buffer(whole.get(), part), 1);
  static_cast<void>(compute::negative(whole, stream));
  compute::check(compute_negative_into(nullptr, part, part));
  EXPECT_EQ(compute::negative(whole, stream).to_vector<float>()[50], 50.0f);
}

TEST(Residency, TheDeleterWaitsForTheCopyAndRunsOnce) {
  static std::atomic<int> calls{0};
  auto* values = new std::vector<float>(iota(100000));
  const int64_t shape[] = {100000};
  compute_tensor* tensor = nullptr;
  compute::check(compute_tensor_wrap_host(
      COMPUTE_DTYPE_FLOAT32, 1, shape, nullptr, values->data(), COMPUTE_WRAP_IMMUTABLE,
      [](void*, void* user_data) {
        delete static_cast<std::vector<float>*>(user_data);
        ++calls;
      },
      values, &tensor));
  {
    const Stream stream(remote());
    Tensor x(tensor);
    const Tensor y = compute::negative(x, stream);
    x = Tensor();
    EXPECT_EQ(y.to_vector<float>()[99999], -99999.0f);
  }
  int32_t drained = 0;
  compute::check(compute_shutdown(COMPUTE_TIMEOUT_NONE, &drained));  // waits for core's own thread too
  EXPECT_EQ(calls.load(), 1);
}

TEST(Residency, TransfersCanBeForbidden) {
  const Stream stream(remote());
  const Tensor x = host().from_host(iota(10));
  compute::check(compute_config_set("COMPUTE_TRANSFERS", "error"));
  const Thrown thrown = thrown_by([&] { return compute::negative(x, stream); });
  const Tensor there = remote().from_host(iota(10)), home = host().from_host(iota(10));
  const Thrown thrown_back =
      thrown_by([&] { compute::check(compute_negative_into(stream.get(), there.get(), home.get())); });
  compute::check(compute_config_set("COMPUTE_TRANSFERS", nullptr));
  EXPECT_EQ(thrown_back.code, COMPUTE_ERROR_UNSUPPORTED);
  EXPECT_NE(thrown_back.message.find("bytes for a host tensor are copied back from minimal0"), std::string::npos)
      << thrown_back.message;
  EXPECT_EQ(home.to_vector<float>(), iota(10));
  EXPECT_EQ(thrown.code, COMPUTE_ERROR_UNSUPPORTED);
  EXPECT_NE(thrown.message.find("negative: 40 bytes of a host tensor are copied to minimal0"), std::string::npos)
      << thrown.message;
}

TEST(Residency, TransfersOfOneTensorCanBeForbidden) {
  const Stream stream(remote());
  const Tensor x = host().from_host(iota(10)), y = host().from_host(iota(10)), home = host().from_host(iota(10));
  x.set_transfers(compute::Transfers::error);
  home.set_transfers(compute::Transfers::error);
  const Thrown thrown = thrown_by([&] { return compute::negative(x, stream); });
  EXPECT_EQ(thrown.code, COMPUTE_ERROR_UNSUPPORTED);
  EXPECT_NE(thrown.message.find("40 bytes of a host tensor are copied to minimal0; create the tensor there to avoid "
                                "this (compute_tensor_set_transfers)"),
            std::string::npos)
      << thrown.message;
  const Tensor view = x.slice(0, 2, 4);
  EXPECT_EQ(thrown_by([&] { return compute::negative(view, stream); }).code, COMPUTE_ERROR_UNSUPPORTED) << "of a view";
  const Tensor there = remote().from_host(iota(10));
  EXPECT_EQ(thrown_by([&] { compute::check(compute_negative_into(stream.get(), there.get(), home.get())); }).code,
            COMPUTE_ERROR_UNSUPPORTED);
  EXPECT_EQ(home.to_vector<float>(), iota(10));
  // Others are copied, and so is this one if it is asked for, or allowed again.
  EXPECT_EQ(compute::negative(y, stream).to_vector<float>()[9], -9.0f);
  EXPECT_EQ(x.to(remote()).to_vector<float>(), iota(10));
  compute::check(compute_config_set("COMPUTE_TRANSFERS", "error"));
  x.set_transfers(compute::Transfers::allow);
  EXPECT_EQ(compute::negative(x, stream).to_vector<float>()[9], -9.0f);
  compute::check(compute_config_set("COMPUTE_TRANSFERS", nullptr));
  EXPECT_EQ(thrown_by([&] { compute::check(compute_tensor_set_transfers(x.get(), 4)); }).code,
            COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(thrown_by([&] { Tensor::scalar(1.0f).set_transfers(compute::Transfers::warn); }).code,
            COMPUTE_ERROR_INVALID_ARGUMENT);
}

TEST(Residency, TransfersOfOneTensorCanBeReported) {
  std::vector<std::string> lines;
  const auto take = [](compute_borrowed_log_record record, void* user) {
    static_cast<std::vector<std::string>*>(user)->emplace_back(record->text);
  };
  const Stream stream(remote());
  compute::check(compute_log_set_callback(take, &lines));
  const auto copies_of = [&](int32_t transfers) {
    const Tensor x = host().from_host(iota(10));
    compute::check(compute_tensor_set_transfers(x.get(), transfers));
    lines.clear();
    EXPECT_EQ(compute::negative(x, stream).to_vector<float>()[9], -9.0f);
    return std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
      return line.find("40 bytes of a host tensor are copied to minimal0") != std::string::npos;
    });
  };
  EXPECT_EQ(copies_of(COMPUTE_TRANSFERS_DEFAULT), 0);
  EXPECT_EQ(copies_of(COMPUTE_TRANSFERS_ALLOW), 0);
  EXPECT_EQ(copies_of(COMPUTE_TRANSFERS_WARN), 1);
  compute::check(compute_log_set_callback(nullptr, nullptr));
  const Tensor x = host().from_host(iota(10));
  compute::check(compute_tensor_set_transfers(x.get(), COMPUTE_TRANSFERS_ERROR));
  EXPECT_EQ(thrown_by([&] { return compute::negative(x, stream); }).code, COMPUTE_ERROR_UNSUPPORTED);
}

TEST(Residency, OperandsOnTwoDevicesAreRefused) {
  const Tensor a = remote().from_host(iota(4));
  const Tensor b = compute::Device::open("minimal1").from_host(iota(4));
  const Thrown thrown = thrown_by([&] { return compute::add(a, b); });
  EXPECT_EQ(thrown.code, COMPUTE_ERROR_DEVICE_MISMATCH);
  EXPECT_NE(thrown.message.find("add: input 1 is on minimal1"), std::string::npos) << thrown.message;
}

TEST(Residency, MovingBetweenDevicesKeepsTheValues) {
  const Tensor a = remote().from_host(iota(6), {2, 3}).transpose();
  const Tensor b = a.to(compute::Device::open("minimal1"));
  EXPECT_EQ(b.device().name(), "minimal1");
  EXPECT_EQ(b.to_vector<float>(), (std::vector<float>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(b.to(host()).to_vector<float>(), (std::vector<float>{0, 3, 1, 4, 2, 5}));
}

}  // namespace
