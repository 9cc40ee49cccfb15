// SPDX-License-Identifier: Apache-2.0
// Views and indexing by tensors.
#include "cxx.hpp"

namespace {

using namespace compute;

template <class T>
std::vector<T> values(const Tensor& x) {
  return copy(x).to_vector<T>();
}

Shape shape_of(const Tensor& x) { return {x.shape().begin(), x.shape().end()}; }

class Arrays : public testing::Test {
 protected:
  Device cpu = Device::open("cpu");
  Tensor x = cpu.from_host(std::vector<int32_t>{0, 1, 2, 3, 4, 5}, {2, 3});
};

TEST_F(Arrays, Broadcast) {
  EXPECT_EQ(broadcast_shapes({Shape{2, 1}, Shape{3}, Shape{}}), (Shape{2, 3}));
  EXPECT_EQ(broadcast_shapes({Shape{0, 1}, Shape{1}}), (Shape{0, 1}));
  EXPECT_THROW((void)broadcast_shapes({Shape{2}, Shape{3}}), Error);
  const std::vector<Tensor> both = broadcast_arrays({x, cpu.from_host(std::vector<int32_t>{7, 8, 9})});
  EXPECT_EQ(values<int32_t>(both[1]), (std::vector<int32_t>{7, 8, 9, 7, 8, 9}));
  EXPECT_TRUE(both[0].shares_buffer(x));
}

TEST_F(Arrays, Grids) {
  const Tensor a = cpu.from_host(std::vector<int32_t>{1, 2}), b = cpu.from_host(std::vector<int32_t>{3, 4, 5});
  const std::vector<Tensor> xy = meshgrid({a, b}), ij = meshgrid({a, b.slice(0, none, none, -1)}, Indexing::ij);
  EXPECT_EQ(shape_of(xy[0]), (Shape{3, 2}));
  EXPECT_EQ(values<int32_t>(xy[0]), (std::vector<int32_t>{1, 2, 1, 2, 1, 2}));
  EXPECT_EQ(values<int32_t>(xy[1]), (std::vector<int32_t>{3, 3, 4, 4, 5, 5}));
  EXPECT_EQ(values<int32_t>(ij[0]), (std::vector<int32_t>{1, 1, 1, 2, 2, 2}));
  EXPECT_EQ(values<int32_t>(ij[1]), (std::vector<int32_t>{5, 4, 3, 5, 4, 3}));
}

TEST_F(Arrays, Axes) {
  EXPECT_EQ(values<int32_t>(moveaxis(x, 0, -1)), (std::vector<int32_t>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(shape_of(matrix_transpose(x)), (Shape{3, 2}));
  EXPECT_THROW((void)moveaxis(x, 2, 0), Error);
  EXPECT_EQ(values<int32_t>(flip(x)), (std::vector<int32_t>{5, 4, 3, 2, 1, 0}));
  EXPECT_EQ(values<int32_t>(flip(x, {1})), (std::vector<int32_t>{2, 1, 0, 5, 4, 3}));
  const std::vector<Tensor> columns = unstack(x, 1);
  ASSERT_EQ(columns.size(), 3U);
  EXPECT_EQ(values<int32_t>(columns[2]), (std::vector<int32_t>{2, 5}));
  EXPECT_TRUE(columns[2].shares_buffer(x));
}

TEST_F(Arrays, Masks) {
  EXPECT_EQ(values<int32_t>(select(x, x % 2 == 1)), (std::vector<int32_t>{1, 3, 5}));
  const Tensor rows = sum(x, 1) > int64_t{5};
  EXPECT_EQ(shape_of(select(x, rows)), (Shape{1, 3}));
  EXPECT_EQ(values<int32_t>(select(x, rows)), (std::vector<int32_t>{3, 4, 5}));
  EXPECT_EQ(shape_of(select(x, x > 9)), (Shape{0}));
  EXPECT_THROW((void)select(x, x[0] > 1), Error);
  assign(x, x > 3, Tensor(-1));
  EXPECT_EQ(values<int32_t>(x), (std::vector<int32_t>{0, 1, 2, 3, -1, -1}));
  assign(x, rows, cpu.from_host(std::vector<int32_t>{7, 8, 9}));
  EXPECT_EQ(values<int32_t>(x), (std::vector<int32_t>{0, 1, 2, 7, 8, 9}));
}

TEST_F(Arrays, Indices) {
  const Tensor rows = cpu.from_host(std::vector<int64_t>{1, 0, -1}), columns = cpu.from_host(std::vector<int64_t>{2});
  EXPECT_EQ(values<int32_t>(select(x, {rows, columns})), (std::vector<int32_t>{5, 2, 5}));
  EXPECT_EQ(values<int32_t>(select(x, {columns - int64_t{1}})), (std::vector<int32_t>{3, 4, 5}));
  assign(x, {rows.slice(0, 0, 2), columns}, cpu.from_host(std::vector<int32_t>{50, 20}));
  EXPECT_EQ(values<int32_t>(x), (std::vector<int32_t>{0, 1, 20, 3, 4, 50}));
}

}  // namespace
