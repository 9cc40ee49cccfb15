// SPDX-License-Identifier: Apache-2.0
// The map primitive of the CPU plugin: every way to lay out operands, against plain loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <span>
#include <thread>
#include <type_traits>
#include <vector>

#include "plugins/cpu/isa/isa.hpp"
#include "plugins/cpu/kernels/copy_kernel.hpp"
#include "plugins/cpu/map/elementwise.hpp"
#include "plugins/cpu/order/philox.hpp"
#include "tests/unit/expression_builder.hpp"

namespace compute::cpu {
namespace {

// Pieces of uneven size on separate threads.
std::atomic<int> pieces_run{0};
void uneven_parallel_for(int64_t count, int64_t grain, void (*body)(void*, int64_t, int64_t), void* user) {
  std::vector<std::thread> threads;
  int64_t begin = 0;
  for (int i = 0; begin < count; ++i) {
    const int64_t end = std::min(count, begin + std::max(grain, count / 7) + i);
    ++pieces_run;
    threads.emplace_back([=] { body(user, begin, end); });
    begin = end;
  }
  for (std::thread& t : threads) t.join();
}

using Expression = ExpressionBuilder;

struct Tensor {
  int dtype;
  std::vector<int64_t> strides;  // elements
  void* data;
};

// Returns whether it ran immediately.
bool run_map(const compute_plugin_expression* expression, const std::vector<int64_t>& shape,
             const std::vector<Tensor>& operands, const std::vector<compute_plugin_scalar>& scalars = {},
             const char* isa = nullptr) {
  std::vector<compute_plugin_tensor> tensors;
  std::vector<void*> data;
  for (const Tensor& t : operands) {
    compute_plugin_tensor tensor{};
    tensor.struct_size = sizeof tensor;
    tensor.dtype = t.dtype;
    tensor.rank = static_cast<int32_t>(shape.size());
    tensor.shape = shape.data();
    tensor.strides = t.strides.data();
    tensors.push_back(tensor);
    data.push_back(t.data);
  }
  const compute_plugin_expression* expressions[] = {expression};
  compute_plugin_op op{};
  op.struct_size = sizeof op;
  op.input_count = expression->input_count;
  op.output_count = expression->output_count;
  op.tensors = tensors.data();
  op.expression_count = 1;
  op.expressions = expressions;
  const MapPlan plan(op, *select_isa(isa));
  std::vector<char> workspace(plan.workspace_bytes() + 64);
  char* aligned = workspace.data() + (64 - reinterpret_cast<uintptr_t>(workspace.data()) % 64) % 64;
  plan.run(data.data(), scalars.data(), aligned, &uneven_parallel_for);
  return plan.is_at_once();
}

int64_t points_of(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t(1), std::multiplies<>());
}

// Memory with guards around an array of any strides.
template <typename T>
struct Laid {
  std::vector<T> memory;
  std::vector<int64_t> strides;
  T* origin = nullptr;

  Laid(const std::vector<int64_t>& shape, const std::vector<int64_t>& wanted) : strides(wanted) {
    int64_t low = 0, high = 0;
    for (size_t axis = 0; axis < shape.size(); ++axis)
      (strides[axis] < 0 ? low : high) += strides[axis] * (shape[axis] - 1);
    memory.assign(high - low + 1 + 32, T(-7));
    origin = memory.data() + 16 - low;
  }
  T& at(const std::vector<int64_t>& shape, int64_t point) {
    T* p = origin;
    for (int axis = static_cast<int>(shape.size()) - 1; axis >= 0; --axis) {
      p += point % shape[axis] * strides[axis];
      point /= shape[axis];
    }
    return *p;
  }
};

std::vector<int64_t> random_strides(const std::vector<int64_t>& shape, std::mt19937& random, bool output) {
  const int rank = static_cast<int>(shape.size());
  std::vector<int> order(rank);
  std::iota(order.begin(), order.end(), 0);
  if (random() % 3 == 0) std::shuffle(order.begin(), order.end(), random);
  std::vector<int64_t> strides(rank);
  int64_t stride = random() % 4 == 0 ? 2 : 1;
  for (int k = rank - 1; k >= 0; --k) {
    const int axis = order[k];
    strides[axis] = !output && random() % 5 == 0 ? 0 : random() % 5 == 0 ? -stride : stride;
    stride *= shape[axis] + (random() % 4 == 0 ? 1 : 0);
  }
  return strides;
}

TEST(Map, AnyLayout) {
  std::mt19937 random(17);
  for (int round = 0; round < 600; ++round) {
    std::vector<int64_t> shape;
    const int rank = static_cast<int>(random() % 5);
    for (int axis = 0; axis < rank; ++axis) {
      const int64_t extents[] = {1, 2, 3, 7, 17, 40, 150, 300, 1100};
      shape.push_back(extents[random() % (rank > 2 ? 6 : 9)]);
    }
    Laid<int32_t> x(shape, random_strides(shape, random, false)), y(shape, random_strides(shape, random, false)),
        z(shape, random_strides(shape, random, false)), out(shape, random_strides(shape, random, true));
    for (auto* operand : {&x, &y, &z})
      for (int32_t& v : operand->memory) v = static_cast<int32_t>(random() % 1000);
    Expression e;
    const int a = e.input(0, COMPUTE_DTYPE_INT32), b = e.input(1, COMPUTE_DTYPE_INT32),
              c = e.input(2, COMPUTE_DTYPE_INT32);
    const int product = e.call(COMPUTE_PLUGIN_INTRINSIC_MUL, COMPUTE_DTYPE_INT32, {a, b});
    const int sum = e.call(COMPUTE_PLUGIN_INTRINSIC_ADD, COMPUTE_DTYPE_INT32, {product, c});
    run_map(e.view({sum}), shape,
            {{COMPUTE_DTYPE_INT32, x.strides, x.origin},
             {COMPUTE_DTYPE_INT32, y.strides, y.origin},
             {COMPUTE_DTYPE_INT32, z.strides, z.origin},
             {COMPUTE_DTYPE_INT32, out.strides, out.origin}});
    int64_t written = 0;
    for (int64_t p = 0; p < points_of(shape); ++p) {
      const int32_t value = x.at(shape, p) * y.at(shape, p) + z.at(shape, p);
      ASSERT_EQ(out.at(shape, p), value) << "round " << round << " point " << p << " shape "
                                         << testing::PrintToString(shape) << " strides "
                                         << testing::PrintToString(x.strides) << testing::PrintToString(out.strides);
      ++written;
    }
    const int64_t untouched = std::count(out.memory.begin(), out.memory.end(), -7);
    ASSERT_EQ(untouched + written, static_cast<int64_t>(out.memory.size()))
        << "something beside the output was written";
  }
}

TEST(Map, LargeTransposedAndStridedOperands) {
  std::mt19937 random(3);
  for (const std::vector<int64_t>& shape :
       std::vector<std::vector<int64_t>>{{400, 530}, {3, 200, 130}, {130, 5, 200}}) {
    const int rank = static_cast<int>(shape.size());
    std::vector<int64_t> straight(rank), turned(rank);
    int64_t stride = 1;
    for (int axis = rank - 1; axis >= 0; --axis) {
      straight[axis] = stride;
      stride *= shape[axis];
    }
    stride = 1;
    for (int axis = 0; axis < rank; ++axis) {
      turned[axis] = stride;
      stride *= shape[axis];
    }
    Laid<double> x(shape, turned), y(shape, straight), out(shape, straight);
    for (auto* operand : {&x, &y})
      for (double& v : operand->memory) v = static_cast<double>(random() % 1000);
    Expression e;
    const int a = e.input(0, COMPUTE_DTYPE_FLOAT64), b = e.input(1, COMPUTE_DTYPE_FLOAT64);
    const int sum = e.call(COMPUTE_PLUGIN_INTRINSIC_SUB, COMPUTE_DTYPE_FLOAT64, {a, b});
    run_map(e.view({sum}), shape,
            {{COMPUTE_DTYPE_FLOAT64, x.strides, x.origin},
             {COMPUTE_DTYPE_FLOAT64, y.strides, y.origin},
             {COMPUTE_DTYPE_FLOAT64, out.strides, out.origin}});
    for (int64_t p = 0; p < points_of(shape); ++p) ASSERT_EQ(out.at(shape, p), x.at(shape, p) - y.at(shape, p)) << p;
  }
  EXPECT_GT(pieces_run.load(), 0) << "nothing ran in pieces";
}

TEST(Map, IndicesScalarsAndConstants) {
  const std::vector<int64_t> shape = {37, 5, 300};
  Laid<int64_t> out(shape, {1500, 300, 1});
  Expression e;
  const int i = e.index(0, COMPUTE_DTYPE_INT64), k = e.index(2, COMPUTE_DTYPE_INT32);
  const int wide = e.call(COMPUTE_PLUGIN_INTRINSIC_CONVERT, COMPUTE_DTYPE_INT64, {k});
  const int scalar = e.scalar(0, COMPUTE_DTYPE_INT32);
  const int wide_scalar = e.call(COMPUTE_PLUGIN_INTRINSIC_CONVERT, COMPUTE_DTYPE_INT64, {scalar});
  const int constant = e.constant<int64_t>(1000, COMPUTE_DTYPE_INT64);
  const int scaled = e.call(COMPUTE_PLUGIN_INTRINSIC_MUL, COMPUTE_DTYPE_INT64, {i, constant});
  const int sum = e.call(COMPUTE_PLUGIN_INTRINSIC_ADD, COMPUTE_DTYPE_INT64, {scaled, wide});
  const int all = e.call(COMPUTE_PLUGIN_INTRINSIC_ADD, COMPUTE_DTYPE_INT64, {sum, wide_scalar});
  compute_plugin_scalar value{};
  const int32_t seven = 7;
  std::memcpy(value.bits, &seven, 4);
  run_map(e.view({all}), shape, {{COMPUTE_DTYPE_INT64, out.strides, out.origin}}, {value});
  for (int64_t p = 0; p < points_of(shape); ++p) ASSERT_EQ(out.at(shape, p), p / 1500 * 1000 + p % 300 + 7);
}

TEST(Map, OneBlockOfOneFunctionIsRunAtOnce) {
  // scalar - x: the scalar is converted to the dtype of x, once a run.
  Expression e;
  const int x = e.input(0, COMPUTE_DTYPE_FLOAT64), scalar = e.scalar(0, COMPUTE_DTYPE_FLOAT32);
  const int converted = e.call(COMPUTE_PLUGIN_INTRINSIC_CONVERT, COMPUTE_DTYPE_FLOAT64, {scalar});
  const int difference = e.call(COMPUTE_PLUGIN_INTRINSIC_SUB, COMPUTE_DTYPE_FLOAT64, {converted, x});
  compute_plugin_scalar value{};
  const float half = 0.5f;
  std::memcpy(value.bits, &half, sizeof half);
  struct Case {
    std::vector<int64_t> shape, in, out;  // with strides
    bool at_once;
  };
  const Case cases[] = {{{}, {}, {}, true},
                        {{1}, {1}, {1}, true},
                        {{4}, {1}, {1}, true},
                        {{17}, {1}, {1}, true},
                        {{511}, {1}, {1}, true},
                        {{512}, {1}, {1}, true},
                        {{8192}, {1}, {1}, true},
                        {{8193}, {1}, {1}, false},
                        {{5, 7}, {7, 1}, {7, 1}, true},
                        {{5, 7}, {1, 5}, {1, 5}, true},    // transposed, both
                        {{5, 7}, {-7, 1}, {-7, 1}, true},  // backwards, both
                        {{7}, {-1}, {-1}, true},
                        {{7}, {-1}, {1}, false},
                        {{5, 7}, {1, 5}, {7, 1}, false},
                        {{5, 7}, {8, 1}, {7, 1}, false},
                        {{5, 7}, {0, 1}, {7, 1}, false},
                        {{7}, {0}, {1}, false}};
  for (const Case& c : cases) {
    Laid<double> in(c.shape, c.in), out(c.shape, c.out);
    std::iota(in.memory.begin(), in.memory.end(), 1);  // no result is -7
    const bool at_once = run_map(
        e.view({difference}), c.shape,
        {{COMPUTE_DTYPE_FLOAT64, in.strides, in.origin}, {COMPUTE_DTYPE_FLOAT64, out.strides, out.origin}}, {value});
    const std::string name = testing::PrintToString(c.shape) + testing::PrintToString(c.in);
    EXPECT_EQ(at_once, c.at_once) << name;
    const int64_t points = points_of(c.shape);
    for (int64_t p = 0; p < points; ++p) ASSERT_EQ(out.at(c.shape, p), 0.5 - in.at(c.shape, p)) << name << p;
    EXPECT_EQ(std::count(out.memory.begin(), out.memory.end(), -7) + points, static_cast<int64_t>(out.memory.size()))
        << name;
  }
}

TEST(Map, OneBlockAtAnyAddress) {
  // The result is narrower than the operands; the second is a scalar.
  Expression e;
  const int x = e.input(0, COMPUTE_DTYPE_FLOAT64), y = e.scalar(0, COMPUTE_DTYPE_FLOAT64);
  const int less = e.call(COMPUTE_PLUGIN_INTRINSIC_LT, COMPUTE_DTYPE_BOOL, {x, y});
  compute_plugin_scalar value{};
  const double bound = 500;
  std::memcpy(value.bits, &bound, sizeof bound);
  for (const int64_t n : {511, 512, 1000}) {
    for (int offset = 0; offset < 9; ++offset) {
      std::vector<double> in(n + 9);
      std::iota(in.begin(), in.end(), 0);
      std::vector<uint8_t> out(n + 18, 7);
      double* const src = in.data() + offset;
      uint8_t* const dst = out.data() + 9 - offset;
      EXPECT_TRUE(
          run_map(e.view({less}), {n}, {{COMPUTE_DTYPE_FLOAT64, {1}, src}, {COMPUTE_DTYPE_BOOL, {1}, dst}}, {value}));
      for (int64_t p = 0; p < n; ++p) ASSERT_EQ(dst[p], src[p] < bound) << n << " " << offset << " " << p;
      EXPECT_EQ(std::count(out.begin(), out.end(), 7), 18);
    }
  }
}

// What earlier calls leave where a map's frame will lie.
[[gnu::noinline]] void litter_the_stack() {
  char litter[128 * 1024];
  std::memset(litter, 0x5a, sizeof litter);
  asm volatile("" : : "r"(litter) : "memory");
}

TEST(Map, IndicesOfAxesOfOneElementAreZero) {
  for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{{1, 4}, {4, 1}, {1, 600}, {1, 1}, {1}}) {
    const std::vector<int64_t> strides(shape.size(), 1);  // strides of axes with one element are meaningless
    for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis) {
      Laid<int64_t> out(shape, strides);
      Expression e;
      const int index = e.index(axis, COMPUTE_DTYPE_INT64), base = e.constant<int64_t>(1000, COMPUTE_DTYPE_INT64);
      const int sum = e.call(COMPUTE_PLUGIN_INTRINSIC_ADD, COMPUTE_DTYPE_INT64, {index, base});
      litter_the_stack();
      run_map(e.view({sum}), shape, {{COMPUTE_DTYPE_INT64, out.strides, out.origin}});
      for (int64_t p = 0; p < points_of(shape); ++p) {
        ASSERT_EQ(out.at(shape, p), 1000 + (shape[axis] == 1 ? 0 : p)) << "axis " << axis << " of " << points_of(shape);
      }
    }
  }
}

TEST(Map, OutputsOfScalarsAndIndices) {
  const std::vector<int64_t> shape = {1000};
  Laid<float> fill(shape, {1});
  Laid<int32_t> ramp(shape, {-1});
  Expression e;
  const int scalar = e.scalar(0, COMPUTE_DTYPE_FLOAT32), index = e.index(0, COMPUTE_DTYPE_INT32);
  compute_plugin_scalar value{};
  const float x = 2.5f;
  std::memcpy(value.bits, &x, 4);
  run_map(e.view({scalar, index}), shape,
          {{COMPUTE_DTYPE_FLOAT32, fill.strides, fill.origin}, {COMPUTE_DTYPE_INT32, ramp.strides, ramp.origin}},
          {value});
  for (int64_t p = 0; p < 1000; ++p) {
    ASSERT_EQ(fill.at(shape, p), 2.5f);
    ASSERT_EQ(ramp.at(shape, p), p);
  }
}

// Outputs that are interleaved in one array, as for random numbers, and the same in another order.
template <typename T>
void check_outputs_by_turns(int count, int dtype) {
  for (const char* isa : {"baseline", "avx2", "avx512"}) {
    for (const int64_t n : {1, 7, 16, 33, 2500}) {
      for (const bool in_order : {true, false}) {
        std::vector<T> x(n), memory(count * n + 2, T(-7));
        std::iota(x.begin(), x.end(), T(1));
        Expression e;
        std::vector<int> results = {e.input(0, dtype)};
        while (static_cast<int>(results.size()) < count)
          results.push_back(e.call(COMPUTE_PLUGIN_INTRINSIC_NEG, dtype, {results.back()}));
        for (int& result : results) result = e.call(COMPUTE_PLUGIN_INTRINSIC_ADD, dtype, {result, results[0]});
        const auto place = [&](int k) { return in_order || count == 1 ? k : (k + 1) % count; };
        std::vector<Tensor> operands = {{dtype, {1}, x.data()}};
        for (int k = 0; k < count; ++k) operands.push_back({dtype, {count}, memory.data() + 1 + place(k)});
        run_map(e.view(results), {n}, operands, {}, isa);
        for (int64_t i = 0; i < n; ++i) {
          // x + x; then -x and x by turns, to which the first result is added
          for (int k = 0; k < count; ++k) {
            const T own = k % 2 == 0 ? x[i] : -x[i], expected = k == 0 ? 2 * x[i] : own + 2 * x[i];
            ASSERT_EQ(memory[1 + i * count + place(k)], expected) << isa << " " << n << " " << i << " " << k;
          }
        }
        EXPECT_EQ(memory.front(), T(-7));
        EXPECT_EQ(memory.back(), T(-7));
      }
    }
  }
}
TEST(Map, OutputsByTurns) {
  check_outputs_by_turns<float>(4, COMPUTE_DTYPE_FLOAT32);
  check_outputs_by_turns<int32_t>(4, COMPUTE_DTYPE_INT32);
  check_outputs_by_turns<double>(2, COMPUTE_DTYPE_FLOAT64);
  check_outputs_by_turns<float>(3, COMPUTE_DTYPE_FLOAT32);
}

TEST(Map, OutputsThatAreInputs) {
  const std::vector<int64_t> shape = {3000};
  std::vector<float> x(3000), y(3000);
  std::iota(x.begin(), x.end(), 0.f);
  std::iota(y.begin(), y.end(), 10000.f);
  const std::vector<int64_t> strides = {1};
  {  // swapped
    Expression e;
    const int a = e.input(0, COMPUTE_DTYPE_FLOAT32), b = e.input(1, COMPUTE_DTYPE_FLOAT32);
    const Tensor first{COMPUTE_DTYPE_FLOAT32, strides, x.data()}, second{COMPUTE_DTYPE_FLOAT32, strides, y.data()};
    run_map(e.view({b, a}), shape, {first, second, first, second});
    for (int i = 0; i < 3000; ++i) {
      ASSERT_EQ(x[i], 10000 + i);
      ASSERT_EQ(y[i], i);
    }
  }
  {  // both results read both inputs
    Expression e;
    const int a = e.input(0, COMPUTE_DTYPE_FLOAT32), b = e.input(1, COMPUTE_DTYPE_FLOAT32);
    const int sum = e.call(COMPUTE_PLUGIN_INTRINSIC_ADD, COMPUTE_DTYPE_FLOAT32, {a, b}),
              difference = e.call(COMPUTE_PLUGIN_INTRINSIC_SUB, COMPUTE_DTYPE_FLOAT32, {a, b});
    const int doubled = e.call(COMPUTE_PLUGIN_INTRINSIC_ADD, COMPUTE_DTYPE_FLOAT32, {sum, sum});
    const Tensor first{COMPUTE_DTYPE_FLOAT32, strides, x.data()}, second{COMPUTE_DTYPE_FLOAT32, strides, y.data()};
    run_map(e.view({doubled, difference}), shape, {first, second, first, second});
    for (int i = 0; i < 3000; ++i) {
      ASSERT_EQ(x[i], 2 * (10000 + 2 * i));
      ASSERT_EQ(y[i], 10000);
    }
  }
}

TEST(Map, CopiesEveryDtype) {
  for (int dtype = 1; dtype < kDtypeLimit; ++dtype) {
    const int64_t size = dtype_size(dtype), rows = 60, columns = 50;
    std::vector<char> x(rows * columns * size), y(x.size());
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<char>(dtype == COMPUTE_DTYPE_BOOL ? i % 2 : i * 31 % 127);
    Expression e;
    const int a = e.input(0, dtype);
    run_map(e.view({a}), {columns, rows}, {{dtype, {1, columns}, x.data()}, {dtype, {rows, 1}, y.data()}});
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c)
        ASSERT_EQ(std::memcmp(&x[(r * columns + c) * size], &y[(c * rows + r) * size], size), 0) << dtype;
  }
}

// Few rows, whole squares, several stretches, and what is left of each; rows of either side lie apart.
TEST(CopyKernels, TransposeAnyShape) {
  for (const char* isa : {"baseline", "avx2", "avx512"}) {
    for (size_t size_class = 0; size_class < std::size(CopyKernels{}.transpose); ++size_class) {
      const int64_t size = int64_t{1} << size_class;
      for (const int64_t rows : {1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 33, 70, 600}) {
        for (const int64_t columns : {1, 3, 4, 7, 8, 11, 16, 21, 40}) {
          const int64_t src_stride = (columns + 3) * size, dst_stride = (rows + 2) * size;
          std::vector<char> x(rows * src_stride), y(columns * dst_stride, 0x55), expected = y;
          for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<char>(i * 31 % 127);
          for (int64_t i = 0; i < rows; ++i)
            for (int64_t j = 0; j < columns; ++j)
              std::memcpy(&expected[j * dst_stride + i * size], &x[i * src_stride + j * size], size);
          select_isa(isa)->copy->transpose[size_class](x.data(), src_stride, y.data(), dst_stride, rows, columns);
          ASSERT_EQ(y, expected) << isa << ", " << rows << " x " << columns << " of " << size << " bytes";
        }
      }
    }
  }
}

TEST(CopyKernels, RowsOfAnySize) {
  constexpr int64_t kPositions[] = {5, 0, 5, 8, 2, 1};
  constexpr auto kRows = static_cast<int64_t>(std::size(kPositions));
  for (const char* isa : {"baseline", "avx2", "avx512"}) {
    for (int64_t size = 1; size <= 200; ++size) {
      for (const int64_t* positions : {static_cast<const int64_t*>(nullptr), kPositions}) {
        const int64_t src_stride = size + 3, dst_stride = size + 2;
        std::vector<char> x(9 * src_stride), y(kRows * dst_stride, 0x55), expected = y;
        for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<char>(i * 31 % 127);
        for (int64_t i = 0; i < kRows; ++i)
          std::memcpy(&expected[i * dst_stride], &x[(positions == nullptr ? i : positions[i]) * src_stride], size);
        select_isa(isa)->copy->rows(x.data(), src_stride, positions, y.data(), dst_stride, size, kRows);
        ASSERT_EQ(y, expected) << isa << ", rows of " << size << " bytes";
      }
    }
  }
}

// Rows shorter than a block, of elements of every size: broadcast columns, broadcast rows, and rows with gaps.
TEST(Map, ShortRowsOfEveryDtype) {
  constexpr int64_t kRows = 70, kPlanes = 3;
  for (const char* isa : {"baseline", "avx2", "avx512"}) {
    for (int dtype = 1; dtype < kDtypeLimit; ++dtype) {
      const int64_t size = dtype_size(dtype);
      for (const int64_t n : {2, 3, 4, 7, 8, 15, 16, 17, 31, 33, 64, 65, 130, 255, 257, 700}) {
        const std::vector<int64_t> shape = {kPlanes, kRows, n};
        const std::vector<std::vector<int64_t>> layouts = {
            {kRows + 1, 1, 0}, {0, 0, 1}, {0, n + 3, 1}, {kRows * (n + 3) + 1, n + 3, 1}, {0, 2, 0}, {5, 0, 1}};
        for (const std::vector<int64_t>& strides : layouts) {
          std::vector<char> x((kPlanes * (kRows + 1) * (n + 3) + 1) * size), y((kPlanes * kRows * n + 2) * size, 0x55);
          for (size_t i = 0; i < x.size(); ++i)
            x[i] = static_cast<char>(dtype == COMPUTE_DTYPE_BOOL ? i % 3 == 0 : i * 31 % 127);
          Expression e;
          const int a = e.input(0, dtype);
          run_map(e.view({a}), shape, {{dtype, strides, x.data()}, {dtype, {kRows * n, n, 1}, y.data() + size}}, {},
                  isa);
          for (int64_t p = 0; p < kPlanes * kRows * n; ++p) {
            const int64_t from = p / (kRows * n) * strides[0] + p / n % kRows * strides[1] + p % n * strides[2];
            ASSERT_EQ(std::memcmp(&x[from * size], &y[(1 + p) * size], size), 0)
                << isa << " dtype " << dtype << " row of " << n << " point " << p << " strides "
                << testing::PrintToString(strides);
          }
          ASSERT_EQ(std::count(y.begin(), y.begin() + size, 0x55), size);
          ASSERT_EQ(std::count(y.end() - size, y.end(), 0x55), size);
        }
      }
    }
  }
}

TEST(Map, HalvesComputeInFloat) {
  const std::vector<uint16_t> x = {0x3c00, 0x4000, 0x7bff, 0x0001};  // 1, 2, 65504, 2^-24
  std::vector<uint16_t> y(4);
  Expression e;
  const int a = e.input(0, COMPUTE_DTYPE_FLOAT16);
  const int wide = e.call(COMPUTE_PLUGIN_INTRINSIC_CONVERT, COMPUTE_DTYPE_FLOAT32, {a});
  const int square = e.call(COMPUTE_PLUGIN_INTRINSIC_MUL, COMPUTE_DTYPE_FLOAT32, {wide, wide});
  const int root = e.call(COMPUTE_PLUGIN_INTRINSIC_SQRT, COMPUTE_DTYPE_FLOAT32, {square});
  const int narrow = e.call(COMPUTE_PLUGIN_INTRINSIC_CONVERT, COMPUTE_DTYPE_FLOAT16, {root});
  run_map(e.view({narrow}), {4},
          {{COMPUTE_DTYPE_FLOAT16, {1}, const_cast<uint16_t*>(x.data())}, {COMPUTE_DTYPE_FLOAT16, {1}, y.data()}});
  EXPECT_EQ(y, x);
}

TEST(Map, BitcastKeepsBits) {
  std::vector<float> x = {1.0f, -0.0f, 3.5f};
  std::vector<uint32_t> y(3), z(3);
  Expression e;
  const int a = e.input(0, COMPUTE_DTYPE_FLOAT32);
  const int bits = e.call(COMPUTE_PLUGIN_INTRINSIC_BITCAST, COMPUTE_DTYPE_UINT32, {a});
  const int inverted = e.call(COMPUTE_PLUGIN_INTRINSIC_BIT_NOT, COMPUTE_DTYPE_UINT32, {bits});
  run_map(e.view({bits, inverted}), {3},
          {{COMPUTE_DTYPE_FLOAT32, {1}, x.data()},
           {COMPUTE_DTYPE_UINT32, {1}, y.data()},
           {COMPUTE_DTYPE_UINT32, {1}, z.data()}});
  EXPECT_EQ(y, (std::vector<uint32_t>{0x3f800000, 0x80000000, 0x40600000}));
  EXPECT_EQ(z[0], ~0x3f800000u);
}

TEST(Map, ExpressionsTooLargeForTheStack) {
  constexpr int kTerms = 2000;
  Expression e;
  const int x = e.input(0, COMPUTE_DTYPE_INT64);
  std::vector<int> terms;
  for (int i = 0; i < kTerms; ++i)  // all live at the same time
    terms.push_back(
        e.call(COMPUTE_PLUGIN_INTRINSIC_MUL, COMPUTE_DTYPE_INT64, {x, e.constant<int64_t>(i, COMPUTE_DTYPE_INT64)}));
  int sum = terms[0];
  for (int i = 1; i < kTerms; ++i) sum = e.call(COMPUTE_PLUGIN_INTRINSIC_ADD, COMPUTE_DTYPE_INT64, {sum, terms[i]});
  std::vector<int64_t> in(10000), out(10000);
  std::iota(in.begin(), in.end(), 0);
  run_map(e.view({sum}), {10000}, {{COMPUTE_DTYPE_INT64, {1}, in.data()}, {COMPUTE_DTYPE_INT64, {1}, out.data()}});
  for (int64_t i = 0; i < 10000; ++i) ASSERT_EQ(out[i], i * kTerms * (kTerms - 1) / 2);
}

TEST(Map, ManyInputs) {
  constexpr int kInputs = 40;
  std::vector<std::vector<float>> x(kInputs, std::vector<float>(5000));
  std::vector<float> out(5000);
  Expression e;
  std::vector<Tensor> operands;
  int sum = -1;
  for (int i = 0; i < kInputs; ++i) {
    std::iota(x[i].begin(), x[i].end(), static_cast<float>(i));
    const int input = e.input(i, COMPUTE_DTYPE_FLOAT32);
    sum = sum < 0 ? input : e.call(COMPUTE_PLUGIN_INTRINSIC_ADD, COMPUTE_DTYPE_FLOAT32, {sum, input});
    operands.push_back({COMPUTE_DTYPE_FLOAT32, {1}, x[i].data()});
  }
  operands.push_back({COMPUTE_DTYPE_FLOAT32, {1}, out.data()});
  run_map(e.view({sum}), {5000}, operands);
  for (int i = 0; i < 5000; ++i) ASSERT_EQ(out[i], static_cast<float>(kInputs * i + kInputs * (kInputs - 1) / 2));
}

TEST(Map, OutputsBeyondTheCache) {
  const int64_t n = (int64_t(1) << 24) + 17;
  std::vector<float> x(n + 1), out(n + 2, -1.f);
  for (int64_t i = 0; i < n; ++i) x[i] = static_cast<float>(i % 1000);
  Expression e;
  const int a = e.input(0, COMPUTE_DTYPE_FLOAT32);
  const int sum = e.call(COMPUTE_PLUGIN_INTRINSIC_ADD, COMPUTE_DTYPE_FLOAT32, {a, a});
  run_map(e.view({sum}), {n}, {{COMPUTE_DTYPE_FLOAT32, {1}, x.data()}, {COMPUTE_DTYPE_FLOAT32, {1}, out.data() + 1}});
  for (int64_t i = 0; i < n; ++i) ASSERT_EQ(out[i + 1], static_cast<float>(i % 1000 * 2));
  EXPECT_EQ(out[0], -1.f);
  EXPECT_EQ(out[n + 1], -1.f);
}

// One function of a scalar, or of a broadcast column, whose output is written by non-temporal stores.
TEST(Map, ScalarsAndColumnsBeyondTheCache) {
  const int64_t rows = 2100, columns = 4099;  // 34 MB of output alone
  std::vector<float> x(columns), column(rows), out(rows * columns + 2, -1.f);
  for (int64_t i = 0; i < columns; ++i) x[i] = static_cast<float>(i % 1000);
  for (int64_t i = 0; i < rows; ++i) column[i] = static_cast<float>(i % 77);
  compute_plugin_scalar three{};
  const float value = 3.f;
  std::memcpy(three.bits, &value, sizeof value);
  Expression scaled, outer;
  const int product = scaled.call(COMPUTE_PLUGIN_INTRINSIC_MUL, COMPUTE_DTYPE_FLOAT32,
                                  {scaled.input(0, COMPUTE_DTYPE_FLOAT32), scaled.scalar(0, COMPUTE_DTYPE_FLOAT32)});
  const int outer_product = outer.call(COMPUTE_PLUGIN_INTRINSIC_MUL, COMPUTE_DTYPE_FLOAT32,
                                       {outer.input(0, COMPUTE_DTYPE_FLOAT32), outer.input(1, COMPUTE_DTYPE_FLOAT32)});
  run_map(outer.view({outer_product}), {rows, columns},
          {{COMPUTE_DTYPE_FLOAT32, {0, 1}, x.data()},
           {COMPUTE_DTYPE_FLOAT32, {1, 0}, column.data()},
           {COMPUTE_DTYPE_FLOAT32, {columns, 1}, out.data() + 1}});
  for (int64_t i = 0; i < rows * columns; ++i)
    ASSERT_EQ(out[i + 1], static_cast<float>(i % columns % 1000 * (i / columns % 77))) << i;
  std::vector<float> tripled(rows * columns + 2, -1.f);
  run_map(scaled.view({product}), {rows * columns},
          {{COMPUTE_DTYPE_FLOAT32, {1}, out.data() + 1}, {COMPUTE_DTYPE_FLOAT32, {1}, tripled.data() + 1}}, {three});
  for (int64_t i = 0; i < rows * columns; ++i) ASSERT_EQ(tripled[i + 1], 3.f * out[i + 1]) << i;
  for (const std::vector<float>* one : {&out, &tripled}) {
    EXPECT_EQ(one->front(), -1.f);
    EXPECT_EQ(one->back(), -1.f);
  }
}

// The same with rows that are shorter than a block.
TEST(Map, ShortRowsBeyondTheCache) {
  const int64_t rows = 600000, columns = 15;
  std::vector<float> x(columns), column(rows), out(rows * columns + 2, -1.f);
  for (int64_t i = 0; i < columns; ++i) x[i] = static_cast<float>(i + 1);
  for (int64_t i = 0; i < rows; ++i) column[i] = static_cast<float>(i % 77);
  Expression outer;
  const int product = outer.call(COMPUTE_PLUGIN_INTRINSIC_MUL, COMPUTE_DTYPE_FLOAT32,
                                 {outer.input(0, COMPUTE_DTYPE_FLOAT32), outer.input(1, COMPUTE_DTYPE_FLOAT32)});
  run_map(outer.view({product}), {rows, columns},
          {{COMPUTE_DTYPE_FLOAT32, {0, 1}, x.data()},
           {COMPUTE_DTYPE_FLOAT32, {1, 0}, column.data()},
           {COMPUTE_DTYPE_FLOAT32, {columns, 1}, out.data() + 1}});
  for (int64_t i = 0; i < rows * columns; ++i)
    ASSERT_EQ(out[i + 1], static_cast<float>((i % columns + 1) * (i / columns % 77))) << i;
  EXPECT_EQ(out.front(), -1.f);
  EXPECT_EQ(out.back(), -1.f);
}

// Every significand with an even and with an odd exponent, and values of every exponent.
TEST(Map, SquareRootsAreRoundedCorrectly) {
  std::vector<float> x(1 << 24), y(x.size());
  for (uint32_t i = 0; i < 1U << 24; ++i) x[i] = std::bit_cast<float>(0x3f800000U + i);
  for (uint32_t i = 0; i < 1U << 18; ++i) x.push_back(std::bit_cast<float>(i * 0x4001U));
  y.resize(x.size());
  Expression e;
  const int root = e.call(COMPUTE_PLUGIN_INTRINSIC_SQRT, COMPUTE_DTYPE_FLOAT32, {e.input(0, COMPUTE_DTYPE_FLOAT32)});
  for (const char* isa : {"baseline", "avx2", "avx512"}) {
    run_map(e.view({root}), {static_cast<int64_t>(x.size())},
            {{COMPUTE_DTYPE_FLOAT32, {1}, x.data()}, {COMPUTE_DTYPE_FLOAT32, {1}, y.data()}}, {}, isa);
    for (size_t i = 0; i < x.size(); ++i) {
      const float expected = std::sqrt(x[i]);
      if (std::isnan(expected) ? std::isnan(y[i]) : std::bit_cast<uint32_t>(y[i]) == std::bit_cast<uint32_t>(expected))
        continue;
      FAIL() << isa << ": the root of " << x[i] << " is " << expected << ", not " << y[i];
    }
  }
}

// Long functions use other loops for large operands, and non-temporal stores for very large ones.
TEST(Map, LongFunctionsOfAnyLength) {
  for (const int64_t n : {int64_t(8192), int64_t(20011), (int64_t(1) << 22) + 33}) {
    std::vector<float> x(n), whole(n + 3, -1.f), blocks(n);
    for (int64_t i = 0; i < n; ++i) x[i] = static_cast<float>(i % 4099) * 0.01f - 20.f;
    Expression e;
    const int exponential =
        e.call(COMPUTE_PLUGIN_INTRINSIC_EXP, COMPUTE_DTYPE_FLOAT32, {e.input(0, COMPUTE_DTYPE_FLOAT32)});
    const compute_plugin_expression* const expression = e.view({exponential});
    for (int64_t i = 0; i < n; i += 1000) {
      const int64_t count = std::min<int64_t>(1000, n - i);
      run_map(expression, {count},
              {{COMPUTE_DTYPE_FLOAT32, {1}, x.data() + i}, {COMPUTE_DTYPE_FLOAT32, {1}, blocks.data() + i}});
    }
    run_map(expression, {n}, {{COMPUTE_DTYPE_FLOAT32, {1}, x.data()}, {COMPUTE_DTYPE_FLOAT32, {1}, whole.data() + 1}});
    EXPECT_EQ(std::memcmp(whole.data() + 1, blocks.data(), n * sizeof(float)), 0) << n;
    EXPECT_EQ(whole[0], -1.f);
    EXPECT_EQ(whole[n + 1], -1.f);
    run_map(expression, {n}, {{COMPUTE_DTYPE_FLOAT32, {1}, x.data()}, {COMPUTE_DTYPE_FLOAT32, {1}, x.data()}});
    EXPECT_EQ(std::memcmp(x.data(), blocks.data(), n * sizeof(float)), 0) << n << " in place";
  }
}

// The sizes of the elements of a function's result and operands.
struct Sizes {
  int64_t result = 0;
  std::vector<int64_t> operands;
};

// The types that rows.inc names.
struct none {};
using float32 = float;
using float64 = double;
using int32 = int32_t;
template <typename T>
constexpr int64_t kRowSize = sizeof(T);
template <>
constexpr int64_t kRowSize<none> = 0;

Sizes sizes_of_row(const CompiledRow& wanted) {
  Sizes sizes;
  const auto look = [&](uint64_t digest_high, uint64_t digest_low, std::initializer_list<int64_t> found) {
    if (wanted.digest_high != digest_high || wanted.digest_low != digest_low) return;
    sizes.result = *found.begin();
    for (const int64_t size : std::span(found.begin(), found.end()).subspan(1))
      if (size != 0) sizes.operands.push_back(size);
  };
#define COMPUTE_CPU_ROW(digest_high, digest_low, result, x0, x1, x2, ...) \
  look(digest_high, digest_low, {kRowSize<result>, kRowSize<x0>, kRowSize<x1>, kRowSize<x2>});
#define COMPUTE_CPU_NUMBER_ROW(...)
#define COMPUTE_CPU_HALF_ROW(...)
#include "plugins/cpu/kernels/rows.inc"
#undef COMPUTE_CPU_ROW
#undef COMPUTE_CPU_NUMBER_ROW
#undef COMPUTE_CPU_HALF_ROW
  return sizes;
}

Sizes sizes_of(const BlockKernels& table, BlockFunction function) {
  Sizes sizes;
  const auto look = [&](int id, size_t arity) {
    for (int dtype = 1; dtype < kDtypeLimit; ++dtype) {
      if (table.calls[id][dtype] != function) continue;
      sizes = {dtype_size(dtype), std::vector<int64_t>(arity, dtype_size(dtype))};
      if (id == COMPUTE_PLUGIN_INTRINSIC_WHERE) sizes.operands[0] = 1;
    }
  };
#define COMPUTE_INTRINSIC(id, name, arity, ...) look(id, arity);
#include "compute/intrinsics.def"
#undef COMPUTE_INTRINSIC
  for (int from = 1; from < kDtypeLimit; ++from)
    for (int to = 1; to < kDtypeLimit; ++to)
      if (table.converts[from][to] == function) sizes = {dtype_size(to), {dtype_size(from)}};
  for (int64_t row = 0; row < table.row_count; ++row)
    if (table.rows[row].run == function && sizes.result == 0) sizes = sizes_of_row(table.rows[row]);
  return sizes;
}

// Non-temporal stores write the same values as other stores, from any element of a line on.
TEST(BlockKernels, StreamsTheSameResults) {
  std::mt19937_64 random(11);
  // The bits of numbers near 1, in float32 and float64, and of truth.
  std::vector<uint64_t> numbers(1200), truth(1200);
  for (uint64_t& word : numbers)
    word = 0x3f80000000000000 | (random() & 0x001fffff00000000) | 0x3f800000 | random() % 0x800000;
  for (uint64_t& word : truth) word = random() & 0x0101010101010101;
  for (const char* isa : {"baseline", "avx2", "avx512"}) {
    const BlockKernels& table = *select_isa(isa)->blocks;
    EXPECT_EQ(table.streamed_count > 0, select_isa(isa)->set >= InstructionSet::avx512);
    for (int64_t k = 0; k < table.streamed_count; ++k) {
      const StreamedFunction& function = table.streamed[k];
      if (function.run == nullptr) continue;  // a row whose result is bool
      const Sizes sizes = sizes_of(table, function.run);
      ASSERT_NE(sizes.result, 0) << "function " << k << " streams what nothing else computes";
      for (const int64_t n : {0, 1, 2, 7, 15, 16, 17, 63, 64, 65, 1000}) {
        for (const unsigned same : {0, 1, 2}) {  // which operands have a single value
          for (const int64_t offset : {int64_t(0), int64_t(1), int64_t(4), sizes.result, 7 * sizes.result}) {
            std::vector<unsigned char> expected(9000, 77), streamed(9000, 77);
            const void* sources[3] = {};
            int64_t steps[3] = {};
            alignas(64) char splats[3][kSplatBytes];
            for (size_t i = 0; i < sizes.operands.size(); ++i) {
              const std::vector<uint64_t>& words = sizes.operands[i] == 1 ? truth : numbers;
              steps[i] = (same >> i & 1) == 0;
              sources[i] = words.data() + 1 + i;
              splat(words.data() + 5 + i, sizes.operands[i], splats[i]);
              if (steps[i] == 0) sources[i] = splats[i];
            }
            const auto line = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(streamed.data()) & 63);
            function.run(sources, steps, expected.data() + line + offset, n);
            function.streamed(sources, steps, streamed.data() + line + offset, n);
            table.stream_end();
            ASSERT_EQ(expected, streamed) << isa << " function " << k << ", " << n << " from " << offset;
          }
        }
      }
    }
  }
}

// Values that depend only on columns and scalars, for rows of any length: they are computed once for a row.
TEST(Map, ValuesOfColumns) {
  constexpr int64_t kRows = 9;
  for (const char* isa : {"baseline", "avx2", "avx512"}) {
    for (const int64_t n : {1, 5, 64, 127, 128, 129, 200, 255, 256, 1100}) {
      Expression e;
      const auto call = [&](int intrinsic, int dtype, std::initializer_list<int> operands) {
        return e.call(intrinsic, dtype, operands);
      };
      constexpr int kMul = COMPUTE_PLUGIN_INTRINSIC_MUL, kAdd = COMPUTE_PLUGIN_INTRINSIC_ADD,
                    kConvert = COMPUTE_PLUGIN_INTRINSIC_CONVERT;
      constexpr int kInt = COMPUTE_DTYPE_INT32, kLong = COMPUTE_DTYPE_INT64;
      const int x = e.input(0, kInt), a = e.input(1, kInt), b = e.input(2, kInt), c = e.input(3, kLong);
      const int sum = call(kAdd, kInt, {call(kMul, kInt, {a, a}), b});
      const int wide = call(kMul, kLong, {call(kConvert, kLong, {sum}), c});
      const int narrow = call(kConvert, kInt, {wide});
      const int first = call(kAdd, kInt, {call(kMul, kInt, {x, narrow}), sum});
      const int second = call(kAdd, kInt, {call(kMul, kInt, {first, narrow}), call(kAdd, kInt, {narrow, a})});
      std::vector<int32_t> rows(kRows * n), left(kRows), right(kRows), y(kRows * n), z(kRows * n), only(kRows * n);
      std::iota(rows.begin(), rows.end(), -50);
      std::iota(left.begin(), left.end(), -3);
      std::iota(right.begin(), right.end(), 7);
      std::vector<int64_t> factor = {5}, copied(kRows * n);
      run_map(e.view({first, second, call(kMul, kInt, {narrow, a}), wide}), {kRows, n},
              {{kInt, {n, 1}, rows.data()},
               {kInt, {1, 0}, left.data()},
               {kInt, {1, 0}, right.data()},
               {kLong, {0, 0}, factor.data()},
               {kInt, {n, 1}, y.data()},
               {kInt, {n, 1}, z.data()},
               {kInt, {n, 1}, only.data()},
               {kLong, {n, 1}, copied.data()}},
              {}, isa);
      for (int64_t p = 0; p < kRows * n; ++p) {
        const int32_t one = left[p / n], s = one * one + right[p / n], w = s * 5;
        ASSERT_EQ(y[p], rows[p] * w + s) << isa << " row of " << n << " point " << p;
        ASSERT_EQ(z[p], y[p] * w + w + one) << isa << " row of " << n << " point " << p;
        ASSERT_EQ(only[p], w * one) << isa << " row of " << n << " point " << p;
        ASSERT_EQ(copied[p], w) << isa << " row of " << n << " point " << p;
      }
    }
  }
}

// One function computes Philox if all elements have one key, and nothing else reads what is in between.
TEST(Map, RandomWords) {
  enum Kind { kOneKey, kOwnKeys, kReadInside, kKinds };
  constexpr int kWord = COMPUTE_DTYPE_UINT32, kLong = COMPUTE_DTYPE_INT64;
  for (const char* isa : {"baseline", "avx2", "avx512"}) {
    for (int kind = 0; kind < kKinds; ++kind) {
      Expression e;
      const auto word = [&](int intrinsic, int x, int y) { return e.call(intrinsic, kWord, {x, y}); };
      const auto narrow = [&](int x) { return e.call(COMPUTE_PLUGIN_INTRINSIC_CONVERT, kWord, {x}); };
      constexpr int kXor = COMPUTE_PLUGIN_INTRINSIC_BIT_XOR, kMul = COMPUTE_PLUGIN_INTRINSIC_MUL,
                    kHigh = COMPUTE_PLUGIN_INTRINSIC_MUL_HIGH, kAdd = COMPUTE_PLUGIN_INTRINSIC_ADD;
      const int counter = e.input(0, kLong);
      int key[2] = {kind == kOwnKeys ? e.input(1, kWord) : e.scalar(0, kWord),
                    kind == kOwnKeys ? e.input(2, kWord) : e.scalar(1, kWord)};
      const int low = narrow(counter), half = e.constant(int64_t{32}, kLong);
      const int high = narrow(e.call(COMPUTE_PLUGIN_INTRINSIC_SHR, kLong, {counter, half})),
                zero = word(kXor, low, low);
      const int first = e.constant(0xD2511F53U, kWord), second = e.constant(0xCD9E8D57U, kWord);
      const int steps[2] = {e.constant(0x9E3779B9U, kWord), e.constant(0xBB67AE85U, kWord)};
      int x[4] = {low, high, zero, zero}, inside = low;
      for (int round = 0; round < 10; ++round) {
        const int a = word(kHigh, x[0], first), b = word(kMul, x[0], first), c = word(kHigh, x[2], second),
                  d = word(kMul, x[2], second);
        const int y[4] = {word(kXor, word(kXor, x[1], c), key[0]), d, word(kXor, word(kXor, x[3], a), key[1]), b};
        std::copy(y, y + 4, x);
        if (round == 4) inside = y[2];
        for (int i = 0; i < 2 && round < 9; ++i) key[i] = word(kAdd, key[i], steps[i]);
      }
      const int sum = word(kAdd, x[1], kind == kReadInside ? inside : narrow(counter));
      for (const int64_t n : {1, 3, 31, 64, 1000, 2100}) {
        std::vector<int64_t> counters(n);
        for (int64_t i = 0; i < n; ++i) counters[i] = i * 0x123456789abcd - 5;
        std::vector<uint32_t> keys[2] = {std::vector<uint32_t>(n, 7), std::vector<uint32_t>(n, 0xfffffff0)};
        for (int64_t i = 0; i < n && kind == kOwnKeys; ++i) keys[0][i] += i, keys[1][i] += 3 * i;
        std::vector<uint32_t> words[4], sums(n);
        std::vector<Tensor> tensors = {{kLong, {1}, counters.data()}};
        for (int i = 0; i < 2 && kind == kOwnKeys; ++i) tensors.push_back({kWord, {1}, keys[i].data()});
        for (std::vector<uint32_t>& one : words) {
          one.resize(n);
          tensors.push_back({kWord, {1}, one.data()});
        }
        tensors.push_back({kWord, {1}, sums.data()});
        std::vector<compute_plugin_scalar> scalars(2);
        for (int i = 0; i < 2; ++i) std::memcpy(scalars[i].bits, &keys[i][0], sizeof(uint32_t));
        run_map(e.view({x[0], x[1], x[2], x[3], sum}), {n}, tensors, scalars, isa);
        for (int64_t i = 0; i < n; ++i) {
          const PhiloxWords expected =
              philox(keys[0][i] | uint64_t{keys[1][i]} << 32, static_cast<uint64_t>(counters[i]));
          for (int k = 0; k < 4; ++k) ASSERT_EQ(words[k][i], expected[k]) << isa << ", kind " << kind << ", word " << k;
          if (kind == kReadInside) continue;
          ASSERT_EQ(sums[i], expected[1] + static_cast<uint32_t>(counters[i])) << isa;
        }
      }
    }
  }
}

TEST(Program, KnowsItsIntrinsics) {
  Expression e;
  const int x = e.input(0, COMPUTE_DTYPE_FLOAT32);
  EXPECT_EQ(
      BlockProgram::unknown_intrinsic(*e.view({e.call(COMPUTE_PLUGIN_INTRINSIC_EXP, COMPUTE_DTYPE_FLOAT32, {x})})), 0);
  EXPECT_EQ(BlockProgram::unknown_intrinsic(*e.view({e.call(1000, COMPUTE_DTYPE_FLOAT32, {x})})), 1000);
}

// where(p, exp(x), where(q, log(x), exp(x) * sqrt(x))), for scalars p and q: only the functions of the value that is
// taken run.
TEST(Program, SkipsWhatAConditionOfScalarsLeavesOut) {
  static int64_t calls[3];
  static BlockFunction functions[3];
  constexpr int kCounted[] = {COMPUTE_PLUGIN_INTRINSIC_EXP, COMPUTE_PLUGIN_INTRINSIC_LOG,
                              COMPUTE_PLUGIN_INTRINSIC_SQRT};
  BlockKernels table = *select_isa(nullptr)->blocks;
  const auto count = [&]<int kFunction>(std::integral_constant<int, kFunction>) {
    BlockFunction& function = table.calls[kCounted[kFunction]][COMPUTE_DTYPE_FLOAT32];
    functions[kFunction] = function;
    function = [](const void* const* x, const int64_t* steps, void* out, int64_t n) {
      ++calls[kFunction];
      functions[kFunction](x, steps, out, n);
    };
  };
  count(std::integral_constant<int, 0>{});
  count(std::integral_constant<int, 1>{});
  count(std::integral_constant<int, 2>{});
  Expression e;
  const int x = e.input(0, COMPUTE_DTYPE_FLOAT32), p = e.scalar(0, COMPUTE_DTYPE_BOOL),
            q = e.scalar(1, COMPUTE_DTYPE_BOOL);
  const auto call = [&](int intrinsic, std::initializer_list<int> operands) {
    return e.call(intrinsic, COMPUTE_DTYPE_FLOAT32, operands);
  };
  const int power = call(kCounted[0], {x}), logarithm = call(kCounted[1], {x}), root = call(kCounted[2], {x});
  const int product = call(COMPUTE_PLUGIN_INTRINSIC_MUL, {power, root});
  const int other = call(COMPUTE_PLUGIN_INTRINSIC_WHERE, {q, logarithm, product});
  const BlockProgram program(*e.view({call(COMPUTE_PLUGIN_INTRINSIC_WHERE, {p, power, other})}), table);
  const std::vector<float> values = {0.25f, 1, 2, 9};
  struct Case {
    uint8_t p, q;
    int64_t calls[3];
    float (*value)(float);
  };
  for (const Case& c : {Case{1, 0, {1, 0, 0}, [](float v) { return std::exp(v); }},
                        Case{1, 1, {1, 0, 0}, [](float v) { return std::exp(v); }},
                        Case{0, 1, {0, 1, 0}, [](float v) { return std::log(v); }},
                        Case{0, 0, {1, 0, 1}, [](float v) { return std::exp(v) * std::sqrt(v); }}}) {
    compute_plugin_scalar scalars[2] = {};
    scalars[0].bits[0] = c.p;
    scalars[1].bits[0] = c.q;
    std::vector<char> memory(static_cast<size_t>(program.workspace_bytes(64)) + 64);
    void* workspace = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64;
    std::fill(std::begin(calls), std::end(calls), 0);
    std::vector<float> result(values.size());
    const BlockOperand operands[] = {{values.data(), 1}};
    void* const outputs[] = {result.data()};
    program.begin(scalars, workspace);
    program.evaluate(operands, outputs, static_cast<int64_t>(values.size()), 64, workspace);
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(calls[i], c.calls[i]) << i << ", " << int{c.p} << int{c.q};
    for (size_t i = 0; i < values.size(); ++i)
      EXPECT_NEAR(result[i], c.value(values[i]), 1e-6f * std::abs(c.value(values[i]))) << int{c.p} << int{c.q};
  }
}

}  // namespace
}  // namespace compute::cpu
