// SPDX-License-Identifier: Apache-2.0
// Fresh pages cost more than most kernels: a loop that makes and releases results touches none after its first rounds.
#include <sys/resource.h>

#include "runtime.hpp"

namespace runtime {
namespace {

int64_t pages_touched() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

TEST(Pages, ASteadyLoopTouchesNoFreshOnes) {
  constexpr int64_t kCount = int64_t{1} << 20;  // 4 MiB: 1024 pages, or 2 huge ones
  const compute::Tensor x = host().from_host(std::vector<float>(kCount, 1));
  const auto round = [&] {
    compute_tensor* y = nullptr;
    compute_tensor* z = nullptr;
    compute_tensor* tensors[] = {x.get()};
    const compute_op* op = nullptr;
    compute::check(compute_op_find("negative", 0, &op));
    compute::check(compute_op_run(op, nullptr, nullptr, 0, tensors, 1, &y, 1));
    tensors[0] = y;
    compute::check(compute_op_run(op, nullptr, nullptr, 0, tensors, 1, &z, 1));
    compute_tensor_release(z);
    compute_tensor_release(y);
  };
  for (int i = 0; i < 5; ++i) round();
  const int64_t before = pages_touched();
  for (int i = 0; i < 100; ++i) round();
  EXPECT_LT(pages_touched() - before, 256);  // a thread's stack and the like; once through the results would be 204800
}

}  // namespace
}  // namespace runtime
