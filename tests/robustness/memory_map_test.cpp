// SPDX-License-Identifier: Apache-2.0
// compute_tensor_map on devices whose memory the host sees, and on those where it is a copy.
#include <gtest/gtest.h>

#include "robustness.hpp"

namespace robustness {
namespace {

compute_device_statistics statistics_of(compute_device* device) {
  compute_device_statistics statistics{};
  statistics.struct_size = sizeof statistics;
  statistics.struct_type = COMPUTE_STRUCT_DEVICE_STATISTICS;
  EXPECT_OK(compute_device_get_statistics(device, &statistics));
  return statistics;
}

// Every second of ten elements from the last one back, mapped and changed: 9 7 5 3 1 become their negatives.
void negate_every_second(compute_tensor* x, int32_t expected_is_copy) {
  const int64_t starts[] = {9}, stops[] = {-11}, steps[] = {-2};
  Tensor view;
  ASSERT_OK(compute_tensor_slice(x, 1, starts, stops, steps, view.out()));
  void* data = nullptr;
  int32_t is_copy = -1;
  ASSERT_OK(compute_tensor_map(view, COMPUTE_ACCESS_READ | COMPUTE_ACCESS_WRITE, &data, &is_copy));
  ASSERT_EQ(is_copy, expected_is_copy);
  const int64_t stride = is_copy == 1 ? 1 : -2;
  auto* elements = static_cast<float*>(data);
  for (int64_t i = 0; i < 5; ++i) {
    EXPECT_EQ(elements[i * stride], static_cast<float>(9 - 2 * i));
    elements[i * stride] = -elements[i * stride];
  }
  EXPECT_OK(compute_tensor_unmap(view, data));
}

std::vector<float> counting() {
  std::vector<float> values(10);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

const std::vector<float> kNegated = {0, -1, 2, -3, 4, -5, 6, -7, 8, -9};

ISOLATED_TEST(MemoryMap, MemoryThatTheHostSeesIsNotCopied) {
  use_plugins({"minimal"});
  setenv("COMPUTE_MINIMAL_HOST_VISIBLE", "1", 1);
  const Device device = open("minimal0");
  const Tensor x = make_tensor(device, counting());
  Tensor y;
  ASSERT_OK(run_op("positive", nullptr, {x}, y.out()));  // work that the map has to wait for
  const compute_device_statistics before = statistics_of(device);
  negate_every_second(y, 0);
  const compute_device_statistics after = statistics_of(device);
  EXPECT_EQ(after.transfers_to_device, before.transfers_to_device);
  EXPECT_EQ(after.transfers_from_device, before.transfers_from_device);
  EXPECT_EQ(read<float>(y), kNegated);
  EXPECT_EQ(read<float>(x), counting());
}

ISOLATED_TEST(MemoryMap, OtherMemoryIsOneCopyEachWay) {
  use_plugins({"minimal"});
  const Device device = open("minimal0");
  const Tensor x = make_tensor(device, counting());
  const compute_device_statistics before = statistics_of(device);
  negate_every_second(x, 1);
  const compute_device_statistics after = statistics_of(device);
  EXPECT_EQ(after.transfers_to_device - before.transfers_to_device, 1);
  EXPECT_EQ(after.transfers_from_device - before.transfers_from_device, 1);
  EXPECT_EQ(read<float>(x), kNegated);
}

ISOLATED_TEST(MemoryMap, WithoutPinnedMemoryTheCopyIsPageable) {
  use_plugins({"minimal"});
  setenv("COMPUTE_MINIMAL_NO_PINNED", "1", 1);
  const Device device = open("minimal0");
  const Tensor x = make_tensor(device, counting());
  negate_every_second(x, 1);
  EXPECT_EQ(read<float>(x), kNegated);
}

}  // namespace
}  // namespace robustness
