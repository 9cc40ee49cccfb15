// SPDX-License-Identifier: Apache-2.0
// Shapes, strides and offsets at the ends of their types, by every way in which a program gives them. Each call
// succeeds or is refused; no sum or product on the way leaves its type, which the sanitizers see; and what succeeds
// reads the elements that it names.
#include <random>

#include "robustness.hpp"
#include "tests/dlpack/dlpack.hpp"

namespace robustness {
namespace {

constexpr int64_t kMemory = 4096;  // elements

class Hostile {
 public:
  explicit Hostile(uint64_t seed) : random_(seed), memory_(kMemory) { std::iota(memory_.begin(), memory_.end(), 0.0f); }

  void run() {
    const int32_t rank = static_cast<int32_t>(pick(5));
    for (int32_t i = 0; i < rank; ++i) {
      shape_[i] = pick(4) == 0 ? extreme() : static_cast<int64_t>(1 + pick(4));
      strides_[i] = pick(3) == 0 ? extreme() : static_cast<int64_t>(pick(9)) - 4;
    }
    const Tensor tensor = pick(2) == 0 ? wrap(rank) : import(rank);
    if (tensor.get() == nullptr) return;
    ++made_;
    look(tensor);
    for (int i = 0; i < 3; ++i) look(view_of(tensor));
  }
  int made() const { return made_; }
  int computed() const { return computed_; }

 private:
  uint64_t pick(uint64_t below) { return random_() % below; }

  int64_t extreme() {
    static constexpr int64_t kValues[] = {0,
                                          -1,
                                          INT64_MAX,
                                          INT64_MIN,
                                          INT64_MAX / 2,
                                          INT64_MIN / 2,
                                          int64_t{1} << 62,
                                          int64_t{1} << 61,
                                          INT32_MAX,
                                          INT32_MIN,
                                          int64_t{1} << 32,
                                          int64_t{1} << 31,
                                          INT64_MAX / 4,
                                          INT64_MAX - 1};
    return kValues[pick(std::size(kValues))];
  }

  Tensor wrap(int32_t rank) {
    Tensor tensor;
    compute_error_free(compute_tensor_wrap_host(COMPUTE_DTYPE_FLOAT32, rank, shape_, strides_,
                                                memory_.data() + kMemory / 2, COMPUTE_WRAP_EXPOSED, nullptr, nullptr,
                                                tensor.out()));
    return tensor;
  }

  Tensor import(int32_t rank) {
    constexpr int32_t kCpu = 1;
    constexpr uint8_t kFloat = 2;
    managed_ = {};
    managed_.version.major = 1;
    managed_.dl_tensor = {memory_.data() + kMemory / 2, {kCpu, 0}, rank, {kFloat, 32, 1}, shape_, strides_, 0};
    if (pick(4) == 0) managed_.dl_tensor.byte_offset = static_cast<uint64_t>(extreme());
    Tensor tensor;
    compute_error_free(compute_tensor_from_dlpack(&managed_, tensor.out()));
    return tensor;
  }

  Tensor view_of(compute_tensor* tensor) {
    int64_t a[32] = {}, b[32] = {}, c[32] = {};
    const int32_t rank = compute_tensor_rank(tensor);
    for (int32_t i = 0; i < 32; ++i) {
      a[i] = pick(2) == 0 ? extreme() : static_cast<int64_t>(pick(4));
      b[i] = pick(2) == 0 ? extreme() : static_cast<int64_t>(pick(4));
      c[i] = pick(2) == 0 ? extreme() : 1;
    }
    Tensor view;
    compute_error* error = nullptr;
    switch (pick(5)) {
      case 0:
        error = compute_tensor_slice(tensor, rank, a, b, c, view.out());
        break;
      case 1:
        error = compute_tensor_reshape(tensor, static_cast<int32_t>(pick(4)), a, view.out());
        break;
      case 2:
        error = compute_tensor_broadcast(tensor, rank + 1, a, view.out());
        break;
      case 3:
        error = compute_tensor_view(tensor, COMPUTE_DTYPE_FLOAT32, 2, a, b, pick(2) == 0 ? extreme() & ~int64_t{3} : 0,
                                    view.out());
        break;
      default:
        error = compute_tensor_expand(tensor, static_cast<int32_t>(pick(3)), view.out());
        break;
    }
    compute_error_free(error);
    return view;
  }

  // Where all elements lie in this program's memory, ops go over them.
  void look(compute_tensor* tensor) {
    if (tensor == nullptr || compute_tensor_element_count(tensor) > kMemory) return;
    const int32_t rank = compute_tensor_rank(tensor);
    const int64_t *shape = compute_tensor_shape(tensor), *strides = compute_tensor_strides(tensor);
    const bool is_empty = compute_tensor_element_count(tensor) == 0;
    __int128 low = 0, high = 0;
    for (int32_t i = 0; i < rank && !is_empty; ++i) {
      const __int128 reach = static_cast<__int128>(shape[i] - 1) * strides[i];
      (reach < 0 ? low : high) += reach;
    }
    void* data = nullptr;
    int32_t is_copy = 0;
    if (is_empty || low < -kMemory || high > kMemory) return;
    compute_error* error = compute_tensor_map(tensor, COMPUTE_ACCESS_READ, &data, &is_copy);
    if (error != nullptr) return compute_error_free(error);
    const int64_t at = static_cast<const float*>(data) - memory_.data();
    EXPECT_OK(compute_tensor_unmap(tensor, data));
    if (at + low < 0 || at + high >= kMemory) return;
    ++computed_;
    Tensor copy, sum, greatest;
    EXPECT_OK(run_op("add", nullptr, {tensor, tensor}, copy.out()));
    EXPECT_OK(run_op("sum", nullptr, {tensor}, sum.out()));
    EXPECT_OK(run_op("argmax", nullptr, {tensor}, greatest.out()));
    EXPECT_OK(run_op("copy", nullptr, {tensor}, copy.out()));
    EXPECT_EQ(read<float>(copy)[0], memory_[static_cast<size_t>(at)]);
  }

  std::mt19937_64 random_;
  std::vector<float> memory_;
  int64_t shape_[5] = {}, strides_[5] = {};
  DLManagedTensorVersioned managed_{};  // lives as long as the tensor that it became
  int made_ = 0, computed_ = 0;
};

ISOLATED_TEST(HostileLayout, IsRefusedOrHarmless) {
  const char* times = std::getenv("COMPUTE_TEST_REPEAT");
  const int cases = 20000 * (times != nullptr ? std::max(1, std::atoi(times)) : 1);
  Hostile hostile(20260101);
  for (int i = 0; i < cases; ++i) hostile.run();
  EXPECT_GT(hostile.made(), cases / 20);
  EXPECT_GT(hostile.computed(), cases / 100);
  std::printf("%d tensors made, %d computed with\n", hostile.made(), hostile.computed());
}

}  // namespace
}  // namespace robustness
