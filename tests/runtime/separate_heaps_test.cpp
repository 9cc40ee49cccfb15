// SPDX-License-Identifier: Apache-2.0
// A device with a heap for what the host writes and one for what it reads: ctest sets COMPUTE_MINIMAL_SEPARATE_HEAPS.
#include <algorithm>

#include "runtime.hpp"

namespace runtime {
namespace {

std::vector<std::string> lines;

int64_t allocations_in(int heap) {
  return std::count(lines.begin(), lines.end(), "minimal allocates in heap " + std::to_string(heap));
}

TEST(SeparateHeaps, ServeOneDirectionEach) {
  compute::check(compute_config_set("COMPUTE_LOG", "debug"));
  const auto take = [](compute_borrowed_log_record record, void*) { lines.emplace_back(record->text); };
  compute::check(compute_log_set_callback(take, nullptr));
  const std::vector<float> values = iota(1 << 20);
  const compute::Tensor x = remote().from_host(values);
  EXPECT_GE(allocations_in(1), 1) << "an upload";
  EXPECT_EQ(allocations_in(2), 0);
  const int64_t uploads = allocations_in(1);
  const compute::Tensor y = compute::negative(x);
  EXPECT_EQ(y.to_vector<float>()[1000], -1000.0f);
  EXPECT_GE(allocations_in(2), 1) << "a read-back";
  EXPECT_EQ(allocations_in(1), uploads);
  compute::check(compute_log_set_callback(nullptr, nullptr));
  compute::check(compute_config_set("COMPUTE_LOG", nullptr));
}

}  // namespace
}  // namespace runtime
