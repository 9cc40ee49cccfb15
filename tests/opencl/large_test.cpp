// SPDX-License-Identifier: Apache-2.0
// Results so large that CPU cores write them around their caches, whole lines at a time.
#include <gtest/gtest.h>

#include <algorithm>

#include "device.hpp"

namespace compute::opencl_tests {
namespace {

class OpenclLarge : public testing::Test {
 protected:
  // Element i of the result is of(i).
  template <class T, class F>
  static void expect(const Tensor& result, int64_t count, F&& of) {
    const std::vector<T> values = result.to_vector<T>();
    ASSERT_EQ(static_cast<int64_t>(values.size()), count);
    int64_t i = 0;
    while (i < count && values[static_cast<size_t>(i)] == of(i)) ++i;
    EXPECT_EQ(i, count) << "element " << i << " is " << +values[static_cast<size_t>(std::min(i, count - 1))];
  }
  template <class T>
  Tensor numbers(int64_t count) const {
    std::vector<T> values(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) values[static_cast<size_t>(i)] = static_cast<T>(i % 113);
    return device_.from_host(values);
  }
  template <class T>
  static T number(int64_t i) {
    return static_cast<T>(i % 113);
  }
  Tensor run(decltype(compute_add)* op, const Tensor& x, const Tensor& y) const {
    compute_tensor* result = nullptr;
    check(op(stream_.get(), x.get(), y.get(), &result));
    return Tensor(result);
  }

  Device device_ = Device::open("opencl");
  Stream stream_ = Stream(device_);
};

TEST_F(OpenclLarge, EveryWidth) {
  // Lengths that end inside a line, a block and a run.
  const int64_t n = (9 << 20) + 77;
  expect<int8_t>(run(compute_add, numbers<int8_t>(n), numbers<int8_t>(n)), n,
                 [](int64_t i) { return static_cast<int8_t>(2 * number<int8_t>(i)); });
  expect<float>(run(compute_add, numbers<float>(n), numbers<float>(n)), n,
                [](int64_t i) { return 2 * number<float>(i); });
  expect<double>(run(compute_multiply, numbers<double>(n), numbers<double>(n)), n,
                 [](int64_t i) { return number<double>(i) * number<double>(i); });
}

TEST_F(OpenclLarge, ViewsAtAnyOffset) {
  const int64_t n = (3 << 20) + 5;
  const Tensor x = numbers<float>(n), y = device_.full({n}, -1.f);
  for (const int64_t begin : {1, 16, 19}) {
    const Tensor part = y.slice(0, begin, n - 3);
    check(compute_add_into(stream_.get(), x.slice(0, 2, n - 1 - begin).get(), x.slice(0, 0, n - 3 - begin).get(),
                           part.get()));
    expect<float>(part, n - 3 - begin, [](int64_t i) { return number<float>(i + 2) + number<float>(i); });
    expect<float>(y.slice(0, n - 3, n), 3, [](int64_t) { return -1.f; });
  }
  expect<float>(y.slice(0, 0, 1), 1, [](int64_t) { return -1.f; });
}

TEST_F(OpenclLarge, RowsAndBroadcasts) {
  const int64_t rows = 1031, columns = 2050;
  const Tensor x = numbers<float>(rows * columns).reshape({rows, columns}), row = numbers<float>(columns),
               column = numbers<float>(rows).reshape({rows, 1});
  expect<float>(run(compute_add, x, row).reshape({rows * columns}), rows * columns,
                [&](int64_t i) { return number<float>(i) + number<float>(i % columns); });
  expect<float>(run(compute_add, x, column).reshape({rows * columns}), rows * columns,
                [&](int64_t i) { return number<float>(i) + number<float>(i / columns); });
}

TEST_F(OpenclLarge, Transposes) {
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{1031, 517}, {16, 70}, {33, 16}, {1024, 1024}}) {
    const Tensor x = numbers<float>(rows * columns).reshape({rows, columns}),
                 y = numbers<float>(rows * columns).reshape({columns, rows});
    const auto turned = [rows = rows, columns = columns](int64_t i) {
      return number<float>(i % rows * columns + i / rows);
    };
    expect<float>(run(compute_add, x.transpose(), y).reshape({rows * columns}), rows * columns,
                  [&](int64_t i) { return turned(i) + number<float>(i); });
    expect<float>(run(compute_add, x.transpose(), y.slice(0, std::nullopt, std::nullopt, -1)).reshape({rows * columns}),
                  rows * columns, [&, rows = rows, columns = columns](int64_t i) {
                    return turned(i) + number<float>((columns - 1 - i / rows) * rows + i % rows);
                  });
  }
  // Two loops around the blocks.
  const Tensor x = numbers<int16_t>(int64_t{3} * 5 * 40 * 50).reshape({3, 40, 5, 50});
  expect<int16_t>(run(compute_add, x.permute({0, 3, 2, 1}), device_.full({3, 50, 5, 40}, int16_t{1})).reshape({30000}),
                  30000, [](int64_t i) {
                    const int64_t d = i % 40, c = i / 40 % 5, b = i / 200 % 50, a = i / 10000;
                    return static_cast<int16_t>(number<int16_t>(((a * 40 + d) * 5 + c) * 50 + b) + 1);
                  });
}

TEST_F(OpenclLarge, SeveralOutputsInPlace) {
  const int64_t n = (3 << 20) + 13;
  const Tensor x = numbers<float>(n);
  const Tensor operands[] = {x};
  const std::vector<Tensor> both = Expression("x + 1; x * 3", {"x"}).run(operands, {}, stream_);
  expect<float>(both[0], n, [](int64_t i) { return number<float>(i) + 1; });
  expect<float>(both[1], n, [](int64_t i) { return number<float>(i) * 3; });
  check(compute_add_into(stream_.get(), x.get(), x.get(), x.get()));
  expect<float>(x, n, [](int64_t i) { return 2 * number<float>(i); });
}

}  // namespace
}  // namespace compute::opencl_tests
