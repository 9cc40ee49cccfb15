// SPDX-License-Identifier: Apache-2.0
// Memory of another CUDA library, by DLPack. On the fake driver it is host memory of its device 0, which is cuda1.
#include <gtest/gtest.h>
#include <compute/compute.hpp>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "tests/dlpack/dlpack.hpp"

namespace {

using compute::Device;
using compute::Tensor;

constexpr int32_t kDlCuda = 2;

struct Exported {
  DLManagedTensorVersioned managed{};
  std::unique_ptr<float, void (*)(void*)> memory{static_cast<float*>(std::aligned_alloc(512, 512)), std::free};
  int64_t shape[2] = {2, 3};
  int deleted = 0;

  explicit Exported(int32_t device_type) {
    for (int i = 0; i < 6; ++i) memory.get()[i] = static_cast<float>(i);
    managed.version.major = 1;
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensorVersioned* self) { ++static_cast<Exported*>(self->manager_ctx)->deleted; };
    managed.dl_tensor.data = memory.get();
    managed.dl_tensor.device.device_type = device_type;
    managed.dl_tensor.ndim = 2;
    managed.dl_tensor.dtype.code = 2;
    managed.dl_tensor.dtype.bits = 32;
    managed.dl_tensor.dtype.lanes = 1;
    managed.dl_tensor.shape = shape;
  }
};

TEST(CudaDlpack, TakesMemoryOfTheDeviceThatItLiesOn) {
  const Device first = Device::open("cuda0"), second = Device::open("cuda1");
  Exported exported(kDlCuda);
  compute_tensor* made = nullptr;
  compute::check(compute_tensor_from_dlpack(&exported.managed, &made));
  {
    const Tensor x(made);
    EXPECT_STREQ(compute_device_name(compute_tensor_device(x.get())), "cuda1");
    EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{0, 1, 2, 3, 4, 5}));
    exported.memory.get()[5] = -1;
    EXPECT_EQ(x.to_vector<float>()[5], -1.0f) << "the memory is shared, not copied";
    EXPECT_EQ(exported.deleted, 0);
  }
  EXPECT_EQ(exported.deleted, 1);
}

TEST(CudaDlpack, GivesItsMemoryToOthers) {
  const Device device = Device::open("cuda1");
  const std::vector<float> values = {0, 1, 2, 3, 4, 5};
  const int64_t shape[] = {2, 3};
  compute_tensor* made = nullptr;
  compute::check(compute_tensor_from_host(device.get(), COMPUTE_DTYPE_FLOAT32, 2, shape, values.data(), &made));
  DLManagedTensorVersioned* managed = nullptr;
  constexpr int64_t kLegacyStream = 1;
  compute::check(compute_tensor_to_dlpack(made, kLegacyStream, &managed));
  auto native = compute::sized<compute_native_cuda>();
  compute::check(compute_tensor_native_handle(made, COMPUTE_NATIVE_CUDA, &native));
  EXPECT_EQ(native.device, 0);
  EXPECT_EQ(native.context, device.native<compute_native_cuda>().context);
  EXPECT_EQ(native.stream, 0U);
  compute_tensor_release(made);  // the export keeps the memory
  EXPECT_EQ(managed->dl_tensor.device.device_type, kDlCuda);
  EXPECT_EQ(managed->dl_tensor.device.device_id, 0) << "CUDA's number, not ours";
  EXPECT_EQ(reinterpret_cast<uint64_t>(managed->dl_tensor.data), native.address);
  EXPECT_EQ(managed->dl_tensor.byte_offset, 0U);
  EXPECT_EQ(managed->flags, 0U);
  EXPECT_EQ(static_cast<const float*>(managed->dl_tensor.data)[5], 5.0f);
  managed->deleter(managed);
}

TEST(CudaDlpack, AllocatesForTheExchangeApi) {
  const Device device = Device::open("cuda1");
  int64_t shape[] = {2, 3};
  DLTensor prototype{};
  prototype.device = {kDlCuda, 0};
  prototype.ndim = 2;
  prototype.dtype = {2, 32, 1};
  prototype.shape = shape;
  DLManagedTensorVersioned* managed = nullptr;
  const auto fail = [](void*, const char* kind, const char* message) { ADD_FAILURE() << kind << ": " << message; };
  ASSERT_EQ(compute_dlpack_allocate(&prototype, &managed, nullptr, fail), 0);
  const Tensor made = Tensor::from_dlpack(managed);
  EXPECT_EQ(made.device().name(), "cuda1");
  void* stream = nullptr;
  ASSERT_EQ(compute_dlpack_current_work_stream(kDlCuda, 0, &stream), 0);
  EXPECT_EQ(reinterpret_cast<uint64_t>(stream),
            compute::Stream::default_of(device).native<compute_native_cuda>().stream);
  EXPECT_EQ(compute_dlpack_current_work_stream(kDlCuda, 77, &stream), -1);
  EXPECT_EQ(stream, nullptr);
}

TEST(CudaDlpack, RefusesMemoryOfOtherMakers) {
  const Device device = Device::open("cuda0");
  constexpr int32_t kDlMetal = 8;
  Exported exported(kDlMetal);
  compute_tensor* made = nullptr;
  compute_error* error = compute_tensor_from_dlpack(&exported.managed, &made);
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(compute_error_get_code(error), COMPUTE_ERROR_UNSUPPORTED) << compute_error_message(error);
  compute_error_free(error);
  EXPECT_EQ(exported.deleted, 0);
}

}  // namespace
