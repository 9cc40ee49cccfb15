// SPDX-License-Identifier: Apache-2.0
// Fresh pages cost more than most kernels: a loop that makes and releases results touches none after its first rounds.
// Nothing past the end of a tensor is read, because the next page may not be mapped.
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

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
  // A thread touches its stack and the like when it first takes part, which may be late on a busy machine, and the
  // system moves pages. Once through the results would be 204800, or 400 huge ones, every time.
  int64_t least = INT64_MAX;
  for (int stretch = 0; stretch < 10 && least >= 256; ++stretch) {
    const int64_t before = pages_touched();
    for (int i = 0; i < 100; ++i) round();
    least = std::min(least, pages_touched() - before);
  }
  EXPECT_LT(least, 256);
}

// Two rows of every step-th element; the last element is at the end of its page.
TEST(Pages, PoolsReadNothingBehindTheirTensor) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* const pages = mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  ASSERT_EQ(mprotect(static_cast<char*>(pages) + page, page, PROT_NONE), 0);
  float* const end = static_cast<float*>(pages) + page / sizeof(float);
  for (const int64_t step : {1, 2, 3}) {
    for (const int64_t columns : {6, 32, 62, 64, 66}) {
      const int64_t row = 200, last = row + (columns - 1) * step;
      float* const data = end - 1 - last;
      for (int64_t i = 0; i <= last; ++i) data[i] = static_cast<float>(i);
      const compute::Tensor x = compute::Tensor::wrap_host(data, {1, 1, 2, columns}, compute::Wrap::exposed,
                                                           compute::List<int64_t>{2 * row, 2 * row, row, step});
      const std::vector<float> most = compute::max_pool(x, {2, 2}).to_vector<float>();
      const std::vector<float> means = compute::average_pool(x, {2, 2}).to_vector<float>();
      for (int64_t i = 0; i < columns / 2; ++i) {
        const auto greatest = static_cast<float>(row + (2 * i + 1) * step);
        EXPECT_EQ(most[static_cast<size_t>(i)], greatest) << "step " << step;
        EXPECT_EQ(means[static_cast<size_t>(i)], greatest - static_cast<float>(row + step) / 2) << "step " << step;
      }
    }
  }
  compute::Device::open("cpu").synchronize();
  munmap(pages, 2 * page);
}

}  // namespace
}  // namespace runtime
