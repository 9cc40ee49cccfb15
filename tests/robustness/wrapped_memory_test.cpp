// SPDX-License-Identifier: Apache-2.0
// Wrapped memory of the program that ops on another device write: it receives the results, and the program's own writes
// are not lost.
#include "robustness.hpp"

namespace robustness {
namespace {

constexpr int64_t kShape[] = {4};
const std::vector<float> kSums = {2, 4, 6, 8};

Tensor wrap(std::vector<float>& values, int32_t promise) {
  Tensor tensor;
  EXPECT_OK(compute_tensor_wrap_host(COMPUTE_DTYPE_FLOAT32, 1, kShape, nullptr, values.data(), promise, nullptr,
                                     nullptr, tensor.out()));
  return tensor;
}

struct Setup {
  Setup() {
    use_plugins({"minimal"});
    device = open("minimal0");
    stream = make_stream(device);
    x = make_tensor<float>(device, {1, 2, 3, 4});
  }
  void add_into(compute_tensor* place) const { EXPECT_OK(compute_add_into(stream, x, x, place)); }
  std::vector<float> plus_x(compute_tensor* tensor) const {
    Tensor sum;
    EXPECT_OK(compute_add(stream, tensor, x, sum.out()));
    return read<float>(sum);
  }

  Device device;
  Stream stream;
  Tensor x;
};

ISOLATED_TEST(WrappedMemory, ExposedMemoryHoldsTheResultWhenTheCallReturns) {
  const Setup setup;
  std::vector<float> values(4);
  const Tensor tensor = wrap(values, COMPUTE_WRAP_EXPOSED);
  setup.add_into(tensor);
  EXPECT_EQ(values, kSums);
  values[0] = 100;  // without a word
  EXPECT_EQ(setup.plus_x(tensor), (std::vector<float>{101, 6, 9, 12}));
  EXPECT_EQ(read<float>(tensor), (std::vector<float>{100, 4, 6, 8}));
}

ISOLATED_TEST(WrappedMemory, TrackedMemoryHoldsTheResultOnceItWasWaitedFor) {
  const Setup setup;
  std::vector<float> values(4);
  const Tensor tensor = wrap(values, COMPUTE_WRAP_TRACKED);
  setup.add_into(tensor);
  setup.add_into(tensor);
  EXPECT_OK(compute_tensor_synchronize(tensor));
  EXPECT_EQ(values, kSums);
  values[0] = 100;
  EXPECT_OK(compute_tensor_touch(tensor));
  EXPECT_EQ(setup.plus_x(tensor), (std::vector<float>{101, 6, 9, 12}));
  EXPECT_EQ(read<float>(tensor), (std::vector<float>{100, 4, 6, 8}));
}

ISOLATED_TEST(WrappedMemory, ATouchMakesWhatADeviceHoldsStale) {
  const Setup setup;
  std::vector<float> values(4);
  const Tensor tensor = wrap(values, COMPUTE_WRAP_TRACKED);
  setup.add_into(tensor);
  values = {1, 1, 1, 1};
  EXPECT_OK(compute_tensor_touch(tensor));
  EXPECT_EQ(setup.plus_x(tensor), (std::vector<float>{2, 3, 4, 5}));
  EXPECT_EQ(values, std::vector<float>(4, 1));
}

ISOLATED_TEST(WrappedMemory, TheResultOutlivesTheTensor) {
  const Setup setup;
  std::vector<float> values(4);
  Tensor tensor = wrap(values, COMPUTE_WRAP_TRACKED);
  setup.add_into(tensor);
  tensor.reset();
  EXPECT_EQ(values, kSums);
}

ISOLATED_TEST(WrappedMemory, MappedMemoryHoldsTheResultAndKeepsWhatIsWritten) {
  const Setup setup;
  const Device cpu = open("cpu");
  const Tensor tensor = make_tensor<float>(cpu, {0, 0, 0, 0});
  void* data = nullptr;
  int32_t is_copy = 1;
  ASSERT_OK(compute_tensor_map(tensor, COMPUTE_ACCESS_READ | COMPUTE_ACCESS_WRITE, &data, &is_copy));
  ASSERT_EQ(is_copy, 0);
  setup.add_into(tensor);
  auto* values = static_cast<float*>(data);
  EXPECT_EQ(std::vector<float>(values, values + 4), kSums);
  values[1] = 77;
  EXPECT_OK(compute_tensor_unmap(tensor, data));
  EXPECT_EQ(read<float>(tensor), (std::vector<float>{2, 77, 6, 8}));
}

// An export that comes back is the tensor's own buffer: overlaps are seen, and it is no longer exposed.
ISOLATED_TEST(WrappedMemory, AnExportThatComesBackSharesTheBuffer) {
  const Device cpu = open("cpu");
  Tensor x = make_tensor<float>(cpu, {1, 2, 3, 4}), back, tail;
  struct DLManagedTensorVersioned* managed = nullptr;
  ASSERT_OK(compute_tensor_to_dlpack(x, -1, &managed));
  ASSERT_OK(compute_tensor_from_dlpack(managed, back.out()));
  EXPECT_EQ(compute_tensor_shares_buffer(x, back), 1);
  const int64_t starts[] = {1}, stops[] = {3};
  Tensor head;
  ASSERT_OK(compute_tensor_slice(back, 1, starts, nullptr, nullptr, tail.out()));
  ASSERT_OK(compute_tensor_slice(x, 1, nullptr, stops, nullptr, head.out()));
  EXPECT_FAILS(compute_exp_into(nullptr, head, tail), COMPUTE_ERROR_INVALID_ARGUMENT, "overlaps");
  x.reset();
  EXPECT_EQ(read<float>(back), (std::vector<float>{1, 2, 3, 4}));
}

// The mirror that was to take the result would be the newest copy, with nothing in it.
ISOLATED_TEST(WrappedMemory, ACallThatFailsChangesNothing) {
  use_plugins({"faulty"});
  const Device device = open("faulty0"), cpu = open("cpu");
  const Tensor x = make_tensor<float>(device, {1, 2, 3, 4}), host = make_tensor<float>(cpu, {5, 6, 7, 8});
  set_faults("plan_run=error:OUT_OF_DEVICE_MEMORY");
  EXPECT_FAILS(compute_add_into(nullptr, x, x, host), COMPUTE_ERROR_OUT_OF_DEVICE_MEMORY);
  set_faults("");
  EXPECT_EQ(read<float>(host), (std::vector<float>{5, 6, 7, 8}));
  EXPECT_OK(compute_add_into(nullptr, x, x, host));
  EXPECT_EQ(read<float>(host), kSums);
}

}  // namespace
}  // namespace robustness
