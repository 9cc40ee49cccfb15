// SPDX-License-Identifier: Apache-2.0
// Memory of OpenCL by DLPack: data is the cl_mem, byte_offset says where in it the first element is.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <compute/compute.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/dlpack/dlpack.hpp"

namespace {

using compute::Device;
using compute::Tensor;

constexpr int32_t kDlOpenCl = 4;

// A few functions of the loader, which the program itself would use.
struct Loader {
  void* library = dlopen("libOpenCL.so.1", RTLD_NOW);
  template <class F>
  F* function(const char* name) const {
    return reinterpret_cast<F*>(dlsym(library, name));
  }
  // With `host`: over that memory.
  void* make_buffer(uint64_t context, size_t bytes, void* host = nullptr) const {
    int32_t status = 0;
    constexpr uint64_t kReadWrite = 1, kUseHostPtr = 8;
    return function<void*(uint64_t, uint64_t, size_t, void*, int32_t*)>("clCreateBuffer")(
        context, kReadWrite | (host != nullptr ? kUseHostPtr : 0), bytes, host, &status);
  }
  uint32_t references(void* memory) const {
    uint32_t count = 0;
    constexpr uint32_t kReferenceCount = 0x1105;
    function<int32_t(void*, uint32_t, size_t, void*, size_t*)>("clGetMemObjectInfo")(memory, kReferenceCount,
                                                                                     sizeof count, &count, nullptr);
    return count;
  }
  void release(void* memory) const { function<int32_t(void*)>("clReleaseMemObject")(memory); }
  // Another context on the first platform.
  uint64_t make_context() const {
    void* platform = nullptr;
    function<int32_t(uint32_t, void**, uint32_t*)>("clGetPlatformIDs")(1, &platform, nullptr);
    const intptr_t properties[] = {0x1084, reinterpret_cast<intptr_t>(platform), 0};
    int32_t status = 0;
    return function<uint64_t(const intptr_t*, uint64_t, void*, void*, int32_t*)>("clCreateContextFromType")(
        properties, 0xFFFFFFFF, nullptr, nullptr, &status);
  }
};

struct Exported {
  DLManagedTensorVersioned managed{};
  int64_t shape[1] = {4};
  int deleted = 0;

  Exported(void* memory, uint64_t byte_offset) {
    managed.version = {1, 1};
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensorVersioned* self) { ++static_cast<Exported*>(self->manager_ctx)->deleted; };
    managed.dl_tensor.data = memory;
    managed.dl_tensor.device = {kDlOpenCl, 0};
    managed.dl_tensor.ndim = 1;
    managed.dl_tensor.dtype = {2, 32, 1};
    managed.dl_tensor.shape = shape;
    managed.dl_tensor.byte_offset = byte_offset;
  }

  std::string refusal() {
    compute_tensor* made = nullptr;
    compute_error* error = compute_tensor_from_dlpack(&managed, &made);
    compute_tensor_release(made);
    const std::string text = error != nullptr ? std::string(compute_error_code_name(compute_error_get_code(error))) +
                                                    ": " + compute_error_message(error)
                                              : "";
    compute_error_free(error);
    return text;
  }
};

TEST(OpenclDlpack, GivesTheObjectAndTheOffset) {
  const Device device = Device::open("opencl0:0");
  const Tensor x = device.from_host({0.0f, 1.0f, 2.0f, 3.0f, 4.0f, 5.0f});
  const Tensor part = x[compute::slice(2, compute::none)];
  const auto exported = part.to_dlpack();
  EXPECT_EQ(exported->dl_tensor.device.device_type, kDlOpenCl);
  EXPECT_EQ(exported->dl_tensor.device.device_id, 0);
  EXPECT_EQ(reinterpret_cast<uint64_t>(exported->dl_tensor.data), part.native<compute_native_opencl>().memory);
  EXPECT_EQ(exported->dl_tensor.byte_offset, 8U);
  const DLTensor view = part.to_dltensor<DLTensor>();
  EXPECT_EQ(view.data, exported->dl_tensor.data);
  EXPECT_EQ(view.byte_offset, 8U);
}

TEST(OpenclDlpack, TakesMemoryOfItsContext) {
  const Device device = Device::open("opencl0:0");
  const Loader loader;
  void* memory = loader.make_buffer(device.native<compute_native_opencl>().context, 64);
  ASSERT_NE(memory, nullptr);
  Exported exported(memory, 16);
  {
    const Tensor x = Tensor::from_dlpack(&exported.managed);
    EXPECT_EQ(x.device().name(), "opencl0:0");
    EXPECT_EQ(loader.references(memory), 2U);
    x.fill(3);
    EXPECT_EQ((x + 1).to_vector<float>(), (std::vector<float>{4, 4, 4, 4}));
    EXPECT_EQ(x.native<compute_native_opencl>().memory, reinterpret_cast<uint64_t>(memory));
    EXPECT_EQ(x.to_dltensor<DLTensor>().byte_offset, 16U);
    EXPECT_EQ(exported.deleted, 0);
  }
  device.synchronize();
  while (loader.references(memory) != 1) {
  }
  EXPECT_EQ(exported.deleted, 1);
  loader.release(memory);
}

TEST(OpenclDlpack, RefusesMemoryThatDoesNotFit) {
  const Device device = Device::open("opencl0:0");
  const Loader loader;
  void* memory = loader.make_buffer(device.native<compute_native_opencl>().context, 64);
  EXPECT_NE(Exported(memory, 52).refusal().find("the cl_mem has 64 bytes; the tensor needs 68"), std::string::npos)
      << Exported(memory, 52).refusal();
  EXPECT_NE(Exported(memory, 2).refusal().find("byte_offset is not aligned to 4 bytes"), std::string::npos);
  EXPECT_NE(Exported(memory, UINT64_MAX - 3).refusal().find("OUT_OF_RANGE"), std::string::npos);
  EXPECT_EQ(loader.references(memory), 1U);
  loader.release(memory);

  void* foreign = loader.make_buffer(loader.make_context(), 64);
  ASSERT_NE(foreign, nullptr);
  const std::string text = Exported(foreign, 0).refusal();
  EXPECT_EQ(text.substr(0, 12), "UNSUPPORTED:") << text;
  EXPECT_NE(text.find("opencl0:0: the cl_mem belongs to a different context than the device"), std::string::npos)
      << text;
  EXPECT_EQ(loader.references(foreign), 1U);
  loader.release(foreign);
}

// On a device that uses the memory in place, kernels would read vectors that are not aligned.
TEST(OpenclDlpack, RefusesMemoryOfTheProgramThatIsNotAligned) {
  const Device device = Device::open("opencl0:0");
  const Loader loader;
  alignas(64) static float memory[32] = {};
  void* whole = loader.make_buffer(device.native<compute_native_opencl>().context, 64, memory);
  void* part = loader.make_buffer(device.native<compute_native_opencl>().context, 64, memory + 1);
  ASSERT_NE(whole, nullptr);
  ASSERT_NE(part, nullptr);
  EXPECT_EQ(Exported(whole, 0).refusal(), "");
  const std::string text = Exported(part, 0).refusal();
  EXPECT_EQ(text.substr(0, 12), "UNSUPPORTED:") << text;
  EXPECT_NE(text.find("not aligned to 64 bytes"), std::string::npos) << text;
  device.synchronize();
  while (loader.references(whole) != 1) {
  }
  EXPECT_EQ(loader.references(part), 1U);
  loader.release(whole);
  loader.release(part);
}

TEST(OpenclDlpack, LendsNoMemoryByAddress) {
  const Device device = Device::open("opencl0:0");
  compute_allocator given{};
  given.struct_size = sizeof given;
  given.allocate = [](int64_t, int64_t, void*) -> void* { return nullptr; };
  given.release = [](void*, int64_t, void*) {};
  compute_error* error = compute_device_set_allocator(device.get(), &given);
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(compute_error_get_code(error), COMPUTE_ERROR_UNSUPPORTED);
  EXPECT_NE(std::string(compute_error_message(error)).find("its memory consists of objects, which have no addresses"),
            std::string::npos)
      << compute_error_message(error);
  compute_error_free(error);
}

}  // namespace
