// SPDX-License-Identifier: Apache-2.0
// The values of the CPU's matrix product: every dtype, layout and instruction set against the oracle.
#include <gtest/gtest.h>

#include "sanitizer.hpp"
#include "tests/unit/cpu_matmul_oracle.hpp"

namespace compute::cpu::matmul_test {
namespace {

// Sanitizers look at accesses, which smaller products and one dtype have as well.
class CpuMatmul : public ::testing::TestWithParam<compute_dtype> {
 protected:
  std::mt19937_64 random{20240607};

  Operand make(std::vector<int64_t> batch, int64_t m, int64_t n, Layout layout = Layout::row_major,
               bool repeats_batch = false) {
    Operand operand(GetParam(), std::move(batch), m, n, layout, repeats_batch);
    operand.fill(random);
    return operand;
  }
};

INSTANTIATE_TEST_SUITE_P(Dtypes, CpuMatmul, ::testing::ValuesIn(kDtypes),
                         [](const auto& info) { return std::string(name_of(info.param)); });

TEST_P(CpuMatmul, EveryLayout) {
  static constexpr Shape kShapes[] = {{1, 1, 1}, {1, 33, 7}, {31, 1, 9}, {3, 5, 1}, {15, 18, 17}};
  for (const Setting& setting : all_settings()) {
    for (const Shape& shape : kShapes) {
      for (const Layout a : kInputLayouts) {
        for (const Layout b : kInputLayouts) {
          for (const Layout c : kOutputLayouts) {
            SCOPED_TRACE(setting.name + " " + std::to_string(shape.m) + "x" + std::to_string(shape.n) + "x" +
                         std::to_string(shape.k) + " layouts " + std::to_string(static_cast<int>(a)) +
                         std::to_string(static_cast<int>(b)) + std::to_string(static_cast<int>(c)));
            Product product{make({}, shape.m, shape.k, a), make({}, shape.k, shape.n, b),
                            make({}, shape.m, shape.n, c)};
            run_and_judge(product, setting.options);
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

TEST_P(CpuMatmul, SizesJustOffTheTiles) {
  // Around the register tiles and vectors of every instruction set, and around a packed block's depth.
  static constexpr Shape kShapes[] = {{13, 31, 40},  {14, 32, 33}, {15, 33, 31},  {29, 65, 16},  {8, 16, 64},
                                      {4, 130, 7},   {43, 15, 50}, {130, 70, 12}, {5, 7, 1300},  {16, 34, 641},
                                      {210, 40, 19}, {2, 3, 2600}, {19, 531, 7},  {33, 1100, 8}, {8, 8, 8},
                                      {11, 7, 5},    {6, 3, 90},   {2, 15, 40}};
  for (const Setting& setting : all_settings()) {
    for (const Shape& shape : kShapes) {
      for (const Layout layout : {Layout::row_major, Layout::transposed, Layout::strided}) {
        SCOPED_TRACE(setting.name + " " + std::to_string(shape.m) + "x" + std::to_string(shape.n) + "x" +
                     std::to_string(shape.k) + " layout " + std::to_string(static_cast<int>(layout)));
        Product product{make({}, shape.m, shape.k, layout), make({}, shape.k, shape.n, layout),
                        make({}, shape.m, shape.n, layout)};
        run_and_judge(product, setting.options);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(CpuMatmul, BatchesAndSharedOperands) {
  const std::vector<int64_t> batch = {2, 1, 3};
  for (const Setting& setting : all_settings()) {
    for (const bool shares_a : {false, true}) {
      for (const bool shares_b : {false, true}) {
        for (const Layout layout : {Layout::row_major, Layout::transposed, Layout::reversed}) {
          for (const Shape& shape : {Shape{7, 9, 11}, Shape{1, 20, 6}, Shape{20, 1, 6}}) {
            SCOPED_TRACE(setting.name + " shares " + std::to_string(shares_a) + std::to_string(shares_b) + " layout " +
                         std::to_string(static_cast<int>(layout)));
            Product product{make(batch, shape.m, shape.k, layout, shares_a),
                            make(batch, shape.k, shape.n, layout, shares_b), make(batch, shape.m, shape.n, layout)};
            run_and_judge(product, setting.options);
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

TEST_P(CpuMatmul, FactorsAddendAndBias) {
  const compute_dtype accumulator = accumulator_of(GetParam());
  const Bytes values[] = {encode(accumulator, 1), encode(accumulator, 0),
                          encode(accumulator, is_integer(accumulator) ? 3 : -1.75, 0.5)};
  const std::vector<int64_t> batch = {2};
  for (const Setting& setting : all_settings()) {
    for (const Bytes& alpha_value : values) {
      for (const Bytes& beta_value : values) {
        // Three pairs have each factor in all its kinds: the nine touch no other memory.
        if (kSanitizer && (&alpha_value - values + (&beta_value - values)) % 3 != 0) continue;
        // 0: no addend, 1: c itself, 2: another tensor, 3: another one that repeats
        for (int addend = 0; addend < 4; ++addend) {
          for (int bias = 0; bias < 3; ++bias) {
            SCOPED_TRACE(setting.name + " addend " + std::to_string(addend) + " bias " + std::to_string(bias) +
                         " alpha " + std::to_string(&alpha_value - values) + " beta " +
                         std::to_string(&beta_value - values));
            // A bool factor is 0 or 1.
            const bool boolean = GetParam() == COMPUTE_DTYPE_BOOL;
            const Bytes alpha = boolean ? bytes_of(static_cast<uint8_t>(alpha_value[0] != std::byte{0})) : alpha_value;
            const Bytes beta = boolean ? bytes_of(static_cast<uint8_t>(beta_value[0] != std::byte{0})) : beta_value;
            for (const Layout c : {Layout::row_major, Layout::transposed, Layout::strided}) {
              Product product{make(batch, 18, 21), make(batch, 21, 19), make(batch, 18, 19, c)};
              Operand other = make(batch, 18, 19, addend == 3 ? Layout::repeated_row : Layout::reversed, addend == 3);
              Operand bias_operand = make(batch, 18, 19, bias == 1 ? Layout::repeated_row : Layout::padded, bias == 1);
              if (addend != 0) product.addend = addend == 1 ? &product.c : &other;
              if (bias != 0) product.bias = &bias_operand;
              product.alpha = &alpha;
              product.beta = &beta;
              run_and_judge(product, setting.options);
              if (HasFatalFailure()) return;
            }
          }
        }
      }
    }
  }
}

TEST_P(CpuMatmul, NothingToAddUpGivesTheOtherTerms) {
  for (const Setting& setting : all_settings()) {
    for (const bool with_terms : {false, true}) {
      SCOPED_TRACE(setting.name);
      Product product{make({3}, 5, 0), make({3}, 0, 7), make({3}, 5, 7)};
      Operand bias = make({3}, 5, 7);
      if (with_terms) {
        product.addend = &product.c;
        product.bias = &bias;
      }
      run_and_judge(product, setting.options);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(CpuMatmul, EmptyResultsAreLeftAlone) {
  for (const Setting& setting : all_settings()) {
    for (const Shape& shape : {Shape{0, 4, 3}, Shape{4, 0, 3}, Shape{0, 0, 0}}) {
      Product product{make({2}, shape.m, shape.k), make({2}, shape.k, shape.n), make({2}, shape.m, shape.n)};
      const std::vector<std::byte> before = product.c.bytes;
      product.run(setting.options);
      EXPECT_EQ(product.c.bytes, before);
    }
    Product product{make({0}, 4, 3), make({0}, 3, 4), make({0}, 4, 4)};
    const std::vector<std::byte> before = product.c.bytes;
    product.run(setting.options);
    EXPECT_EQ(product.c.bytes, before);
  }
}

TEST_P(CpuMatmul, ThreadsDoNotChangeABit) {
  const int64_t kLarge = kSanitizer ? 1 : 3;
  const Shape kShapes[] = {{100 * kLarge, 97 * kLarge, 70},
                           {43 * kLarge, 333 * kLarge, 33},
                           {7, 5, 333},
                           {29, 97, 800},  // deeper than a packed block
                           {1, 1000 * kLarge, 400},
                           {667 * kLarge, 17, 50}};
  for (const Setting& setting : all_settings()) {
    for (const Shape& shape : kShapes) {
      SCOPED_TRACE(setting.name + " " + std::to_string(shape.m) + "x" + std::to_string(shape.n) + "x" +
                   std::to_string(shape.k));
      Product one{make({3}, shape.m, shape.k), make({3}, shape.k, shape.n), make({3}, shape.m, shape.n)};
      const Bytes alpha = encode(accumulator_of(GetParam()), is_integer(GetParam()) ? 1 : 0.375);
      one.alpha = &alpha;
      judge_threads(one, setting.options, {2, 7, 64});
      if (HasFatalFailure()) return;
    }
  }
}

// Tiles at the ends are smaller, and may need more memory: here the last thread computes them all.
TEST_P(CpuMatmul, TilesStayWithinTheirMemory) {
  constexpr size_t kGuard = 1 << 20;
  const auto backwards = [](int64_t count, int64_t, void (*body)(void*, int64_t, int64_t), void* user) {
    for (int64_t i = count; i-- > 0;) body(user, i, i + 1);
  };
  for (const Setting& setting : all_settings()) {
    for (int64_t m = 1801; m < 2300; m += kSanitizer ? 200 : 40) {
      for (const int32_t threads : {3, 7}) {
        SCOPED_TRACE(setting.name + " " + std::to_string(m) + " " + std::to_string(threads) + " threads");
        Product product{make({3}, m, 50), make({3}, 50, 17), make({3}, m, 17)};
        MatmulOptions options = setting.options;
        options.threads = threads;
        MatmulView views[2];
        const MatmulPlan plan(product.problem(views), options);
        std::vector<std::byte> memory(static_cast<size_t>(plan.workspace_bytes()) + 64 + kGuard, std::byte{0x5a});
        void* workspace = memory.data();
        size_t room = memory.size();
        std::align(64, room - 64, workspace, room);
        MatmulRun run{product.a.data(), product.b.data(), product.c.data()};
        run.workspace = workspace;
        run.parallel_for = backwards;
        plan.run(run);
        const auto* const end = static_cast<const std::byte*>(workspace) + plan.workspace_bytes();
        ASSERT_TRUE(std::all_of(end, static_cast<const std::byte*>(memory.data() + memory.size()),
                                [](std::byte byte) { return byte == std::byte{0x5a}; }));
      }
    }
  }
}

// One tile for each thread, where these are equal.
TEST_P(CpuMatmul, ASingleProductHasTheSameBitsWithAnyNumberOfThreads) {
  const int64_t kLarge = kSanitizer ? 1 : 3;
  const Shape kShapes[] = {
      {96 * kLarge, 96 * kLarge, 160}, {99 * kLarge, 101 * kLarge, 70}, {16 * kLarge, 640 * kLarge, 90}};
  for (const Setting& setting : all_settings()) {
    for (const Shape& shape : kShapes) {
      SCOPED_TRACE(setting.name + " " + std::to_string(shape.m) + "x" + std::to_string(shape.n) + "x" +
                   std::to_string(shape.k));
      Product one{make({}, shape.m, shape.k), make({}, shape.k, shape.n), make({}, shape.m, shape.n)};
      judge_threads(one, setting.options, {2, 3, 4, 6, 16});
      if (HasFatalFailure()) return;
    }
  }
}

// Small products are computed in place, others from packed panels.
TEST_P(CpuMatmul, TheSameBitsFromEveryLayout) {
  static constexpr Shape kShapes[] = {{3, 16, 20},    {4, 16, 1},    {5, 17, 149},  {7, 40, 150},  {8, 48, 64},
                                      {9, 49, 100},   {23, 64, 148}, {64, 100, 33}, {100, 7, 60},  {120, 130, 140},
                                      {40, 1100, 40}, {21, 600, 6},  {8, 8, 8},     {13, 5, 100},  {3, 15, 20},
                                      {5, 2, 3},      {30, 50, 20},  {6, 14, 400},  {71, 33, 320}, {20, 90, 400}};
  for (const Setting& setting : all_settings()) {
    for (size_t at = 0; at < 3 * std::size(kShapes); ++at) {
      const Shape& shape = kShapes[at / 3];
      const bool is_scaled = at % 3 != 0, is_added = at % 3 == 2;
      SCOPED_TRACE(setting.name + " " + std::to_string(shape.m) + "x" + std::to_string(shape.n) + "x" +
                   std::to_string(shape.k));
      Product one{make({}, shape.m, shape.k), make({}, shape.k, shape.n), make({}, shape.m, shape.n)};
      const Bytes alpha = encode(accumulator_of(GetParam()), is_integer(GetParam()) ? 1 : 0.375);
      Operand addend = make({}, shape.m, shape.n);
      if (is_scaled) one.alpha = &alpha;
      if (is_added) one.addend = &addend;
      one.run(setting.options);
      const auto size = static_cast<size_t>(size_of(GetParam()));
      for (const Layout layout : {Layout::transposed, Layout::strided, Layout::reversed}) {
        Product other{make({}, shape.m, shape.k, layout), make({}, shape.k, shape.n, layout),
                      make({}, shape.m, shape.n)};
        other.alpha = one.alpha;
        other.addend = one.addend;
        for (const auto& [from, to] : {std::pair(&one.a, &other.a), std::pair(&one.b, &other.b)}) {
          for (int64_t i = 0; i < from->rows; ++i) {
            for (int64_t j = 0; j < from->columns; ++j) {
              Bytes value{};
              std::memcpy(value.data(), from->at({}, i, j), size);
              to->set({}, i, j, value);
            }
          }
        }
        other.run(setting.options);
        for (int64_t i = 0; i < shape.m; ++i) {
          for (int64_t j = 0; j < shape.n; ++j) {
            ASSERT_EQ(std::memcmp(one.c.at({}, i, j), other.c.at({}, i, j), size), 0)
                << "element " << i << ", " << j << ", layout " << static_cast<int>(layout);
          }
        }
      }
    }
  }
}

TEST_P(CpuMatmul, FewLongSumsAreCutByTheirLengthAlone) {
  static constexpr Shape kShapes[] = {{1, 1, 40003}, {3, 1, 33001}, {1, 301, 701}, {300, 1, 333}, {31, 17, 2003}};
  for (const Setting& setting : all_settings()) {
    for (const Shape& shape : kShapes) {
      for (const Layout layout : {Layout::row_major, Layout::transposed}) {
        SCOPED_TRACE(setting.name + " " + std::to_string(shape.m) + "x" + std::to_string(shape.n) + "x" +
                     std::to_string(shape.k));
        Product one{make({}, shape.m, shape.k, layout), make({}, shape.k, shape.n, layout),
                    make({}, shape.m, shape.n, Layout::strided)};
        const Bytes alpha = encode(accumulator_of(GetParam()), is_integer(GetParam()) ? 1 : 0.375);
        one.alpha = &alpha;
        run_and_judge(one, setting.options);
        if (HasFatalFailure()) return;
        judge_threads(one, setting.options, {2, 64});
        if (HasFatalFailure()) return;
        if (kSanitizer) break;
      }
    }
  }
}

TEST(CpuMatmulTasks, AreAsManyAsThreadsWhereTilesComeOutEqual) {
  const auto tasks = [](int64_t side, int32_t threads) {
    const MatmulView view = {nullptr, side, 1};
    const MatmulProblem problem = {
        COMPUTE_DTYPE_FLOAT32, side, side, side, 0, nullptr, view, view, view, nullptr, nullptr};
    return MatmulPlan(problem, options_of(widest_instruction_set(), threads)).tasks();
  };
  EXPECT_EQ(tasks(128, 2), 2);
  EXPECT_EQ(tasks(256, 16), 16);
  EXPECT_GE(tasks(256, 7), 14);  // 256 rows do not make 7 equal parts
  EXPECT_GE(tasks(256, 4), 12);  // it takes so long that others should be able to help a thread that is late
}

/// Several packed blocks in m, n and k, judged on a sample of rows.
TEST(CpuMatmulBlocks, ManyInEveryDirection) {
  std::mt19937_64 random(1);
  for (const compute_dtype dtype : {COMPUTE_DTYPE_FLOAT32, COMPUTE_DTYPE_FLOAT64, COMPUTE_DTYPE_BFLOAT16}) {
    if (kSanitizer && dtype != COMPUTE_DTYPE_FLOAT32) continue;
    for (const Setting& setting : all_settings()) {
      SCOPED_TRACE(std::string(name_of(dtype)) + " " + setting.name);
      const int64_t m = 430, n = 2100, k = 700;
      Product product{Operand(dtype, {}, m, k, Layout::row_major), Operand(dtype, {}, k, n, Layout::transposed),
                      Operand(dtype, {}, m, n, Layout::row_major)};
      product.a.fill(random);
      product.b.fill(random);
      product.run(setting.options);
      const auto sample_of = [](const Operand& whole) {
        Operand sample = whole;
        sample.rows = (whole.rows + 106) / 107;
        sample.row_stride = whole.row_stride * 107;
        return sample;
      };
      Product sample{sample_of(product.a), product.b, sample_of(product.c)};
      judge(sample, sample.a, sample.c.bytes);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

// ---- Special values -----------------------------------------------------------------------------------------------

using CpuMatmulFloat = CpuMatmul;
INSTANTIATE_TEST_SUITE_P(Dtypes, CpuMatmulFloat,
                         ::testing::Values(COMPUTE_DTYPE_FLOAT16, COMPUTE_DTYPE_BFLOAT16, COMPUTE_DTYPE_FLOAT32,
                                           COMPUTE_DTYPE_FLOAT64, COMPUTE_DTYPE_COMPLEX64, COMPUTE_DTYPE_COMPLEX128),
                         [](const auto& info) { return std::string(name_of(info.param)); });

TEST_P(CpuMatmulFloat, NanAndInfinityStayInTheirRowAndColumn) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  for (const Setting& setting : all_settings()) {
    for (const Shape& shape : {Shape{9, 13, 6}, Shape{40, 70, 30}, Shape{150, 140, 130}}) {
      SCOPED_TRACE(setting.name + " " + std::to_string(shape.m));
      Product product{make({}, shape.m, shape.k), make({}, shape.k, shape.n), make({}, shape.m, shape.n)};
      product.a.set({}, 3, 2, encode(GetParam(), nan));
      product.b.set({}, 4, 5, encode(GetParam(), infinity));
      product.run(setting.options);
      for (int64_t i = 0; i < shape.m; ++i) {
        for (int64_t j = 0; j < shape.n; ++j) {
          const Number got = read_number(GetParam(), product.c.at({}, i, j));
          if (i == 3) {
            EXPECT_TRUE(std::isnan(got.real()) || std::isnan(got.imag())) << i << ", " << j;
          } else if (j == 5) {
            EXPECT_FALSE(std::isfinite(got.real()) && std::isfinite(got.imag())) << i << ", " << j;
          } else {
            EXPECT_TRUE(std::isfinite(got.real()) && std::isfinite(got.imag())) << i << ", " << j;
          }
        }
      }
    }
  }
}

TEST_P(CpuMatmulFloat, AFactorOfZeroReadsNothing) {
  const Bytes nan = encode(GetParam(), std::numeric_limits<double>::quiet_NaN());
  const Bytes zero = encode(accumulator_of(GetParam()), 0);
  for (const Setting& setting : all_settings()) {
    for (const Shape& shape : {Shape{5, 6, 7}, Shape{120, 120, 120}, Shape{3, 300, 600}}) {
      SCOPED_TRACE(setting.name);
      Product beta_zero{make({}, shape.m, shape.k), make({}, shape.k, shape.n), make({}, shape.m, shape.n)};
      for (int64_t i = 0; i < shape.m; ++i) {
        for (int64_t j = 0; j < shape.n; ++j) beta_zero.c.set({}, i, j, nan);
      }
      beta_zero.run(setting.options);  // no addend: c is not read
      Product alpha_zero = beta_zero;
      for (int64_t i = 0; i < shape.m; ++i) {
        for (int64_t j = 0; j < shape.n; ++j) {
          EXPECT_TRUE(std::isfinite(std::abs(read_number(GetParam(), beta_zero.c.at({}, i, j)))));
          beta_zero.c.set({}, i, j, nan);
        }
      }
      beta_zero.addend = &beta_zero.c;
      beta_zero.beta = &zero;
      run_and_judge(beta_zero, setting.options);

      alpha_zero.a.set({}, 1, 1, nan);
      alpha_zero.addend = &alpha_zero.c;
      alpha_zero.alpha = &zero;
      const std::vector<std::byte> before = alpha_zero.c.bytes;
      alpha_zero.run(setting.options);
      EXPECT_TRUE(alpha_zero.c.bytes == before);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(CpuMatmulHalf, SumsInFloat32AndRoundsOnce) {
  for (const compute_dtype dtype : {COMPUTE_DTYPE_FLOAT16, COMPUTE_DTYPE_BFLOAT16}) {
    for (const Setting& setting : all_settings()) {
      SCOPED_TRACE(std::string(name_of(dtype)) + " " + setting.name);
      const int64_t k = 4096;  // added up in float16, ones would stop at 2048; in bfloat16 at 256
      Product product{Operand(dtype, {}, 3, k, Layout::row_major), Operand(dtype, {}, k, 20, Layout::row_major),
                      Operand(dtype, {}, 3, 20, Layout::row_major)};
      const Bytes one = encode(dtype, 1);
      for (int64_t l = 0; l < k; ++l) {
        for (int64_t i = 0; i < 3; ++i) product.a.set({}, i, l, one);
        for (int64_t j = 0; j < 20; ++j) product.b.set({}, l, j, one);
      }
      product.run(setting.options);
      for (int64_t i = 0; i < 3; ++i) {
        for (int64_t j = 0; j < 20; ++j) EXPECT_EQ(read_number(dtype, product.c.at({}, i, j)), Number(k));
      }
    }
  }
}

/// Exact sums of operands, of products and of sums that are subnormal, in some rows of a matrix or in all. The depth is
/// divided, and tiles of AMX would take such numbers for zeros.
TEST(CpuMatmulHalf, SubnormalNumbersCount) {
  std::mt19937_64 random(5);
  constexpr compute_dtype kDtype = COMPUTE_DTYPE_BFLOAT16;
  const int64_t m = 72, n = 45, k = 450;
  for (const auto& [a_exponent, b_exponent] : {std::pair{-131, 10}, {-131, 120}, {-66, -67}, {-60, -62}, {-50, -59}}) {
    for (const int64_t ordinary : {int64_t{0}, int64_t{37}}) {
      Product product{Operand(kDtype, {}, m, k, Layout::row_major), Operand(kDtype, {}, k, n, Layout::transposed),
                      Operand(kDtype, {}, m, n, Layout::row_major)};
      std::vector<double> values(m * k + k * n);
      double* const a = values.data();
      double* const b = a + m * k;
      const auto draw = [&](int exponent) { return std::ldexp(static_cast<double>(random() % 7) - 3, exponent); };
      // 9 terms of each sum are not 0: it has 7 bits.
      for (int64_t l = 0; l < k; l += 50) {
        for (int64_t i = 0; i < m; ++i) a[i * k + l] = draw(i < ordinary ? -b_exponent : a_exponent);
        for (int64_t j = 0; j < n; ++j) b[l * n + j] = draw(b_exponent);
      }
      for (int64_t l = 0; l < k; ++l) {
        for (int64_t i = 0; i < m; ++i) product.a.set({}, i, l, encode(kDtype, a[i * k + l]));
        for (int64_t j = 0; j < n; ++j) product.b.set({}, l, j, encode(kDtype, b[l * n + j]));
      }
      for (const Setting& setting : all_settings()) {
        SCOPED_TRACE(setting.name + " " + std::to_string(a_exponent) + " " + std::to_string(b_exponent));
        product.run(setting.options);
        for (int64_t i = 0; i < m; ++i) {
          for (int64_t j = 0; j < n; ++j) {
            double sum = 0;
            for (int64_t l = 0; l < k; l += 50) sum += a[i * k + l] * b[l * n + j];
            ASSERT_EQ(read_number(kDtype, product.c.at({}, i, j)).real(), sum) << i << ", " << j;
          }
        }
      }
    }
  }
}

/// Where one factor is subnormal, vectors compute what tiles compute elsewhere, to the bit.
TEST(CpuMatmulHalf, ASubnormalFactorChangesNoOtherBit) {
  constexpr compute_dtype kDtype = COMPUTE_DTYPE_BFLOAT16;
  for (const Setting& setting : all_settings()) {
    for (const Shape& shape : {Shape{67, 131, 900}, Shape{200, 33, 40}, Shape{17, 300, 129}}) {
      SCOPED_TRACE(setting.name);
      std::mt19937_64 random(13);
      Product product{Operand(kDtype, {}, shape.m, shape.k, Layout::row_major),
                      Operand(kDtype, {}, shape.k, shape.n, Layout::row_major),
                      Operand(kDtype, {}, shape.m, shape.n, Layout::row_major)};
      product.a.fill(random);
      product.b.fill(random);
      product.a.set({}, 3, 2, encode(kDtype, 0));
      product.b.set({}, 2, 31, encode(kDtype, 0));
      product.run(setting.options);
      const std::vector<std::byte> expected = product.c.bytes;
      product.a.set({}, 3, 2, encode(kDtype, 0x1p-133));
      product.run(setting.options);
      EXPECT_EQ(product.c.bytes, expected);
      product.b.set({}, 2, 31, encode(kDtype, 0x1p-133));
      product.run(setting.options);
      EXPECT_EQ(product.c.bytes, expected);
    }
  }
}

/// Every float16 or bfloat16 as the product of itself and 1, by every instruction set: widening and narrowing are
/// exact.
TEST(CpuMatmulHalf, EveryValueComesThrough) {
  for (const compute_dtype dtype : {COMPUTE_DTYPE_FLOAT16, COMPUTE_DTYPE_BFLOAT16}) {
    for (const Setting& setting : all_settings()) {
      for (const Layout layout : {Layout::row_major, Layout::transposed, Layout::strided}) {
        SCOPED_TRACE(std::string(name_of(dtype)) + " " + setting.name);
        Product product{Operand(dtype, {}, 256, 1, layout), Operand(dtype, {}, 1, 1, layout),
                        Operand(dtype, {}, 256, 1, layout)};
        product.b.set({}, 0, 0, encode(dtype, 1));
        for (uint32_t high = 0; high < 256; ++high) {
          for (uint32_t low = 0; low < 256; ++low)
            product.a.set({}, low, 0, bytes_of(static_cast<uint16_t>(high << 8 | low)));
          product.run(setting.options);
          for (uint32_t low = 0; low < 256; ++low) {
            const Number expected =
                decode_half(static_cast<uint16_t>(high << 8 | low), dtype == COMPUTE_DTYPE_FLOAT16 ? 5 : 8);
            const Number got = read_number(dtype, product.c.at({}, low, 0));
            ASSERT_TRUE(got == expected || (std::isnan(got.real()) && std::isnan(expected.real())))
                << high << " " << low;
          }
        }
      }
    }
  }
}

/// Sums of two halves that fall on, between and next to the midpoint of two neighbours, on every instruction set.
TEST(CpuMatmulHalf, RoundsToNearestEven) {
  std::mt19937_64 random(7);
  for (const compute_dtype dtype : {COMPUTE_DTYPE_FLOAT16, COMPUTE_DTYPE_BFLOAT16}) {
    const int exponent_bits = dtype == COMPUTE_DTYPE_FLOAT16 ? 5 : 8;
    for (const Setting& setting : all_settings()) {
      SCOPED_TRACE(std::string(name_of(dtype)) + " " + setting.name);
      const int64_t n = 4096;
      Product product{Operand(dtype, {}, 1, 2, Layout::row_major), Operand(dtype, {}, 2, n, Layout::row_major),
                      Operand(dtype, {}, 1, n, Layout::row_major)};
      product.a.set({}, 0, 0, encode(dtype, 1));
      product.a.set({}, 0, 1, encode(dtype, 1));
      std::vector<long double> exact(n);
      for (int64_t j = 0; j < n; ++j) {
        // Exponents at most 12 apart: the sum is exact in float32.
        const auto x = static_cast<uint16_t>(random());
        const int shift = 15 - exponent_bits;
        const int exponent = std::max((x >> shift & ((1 << exponent_bits) - 1)) - static_cast<int>(random() % 13), 0);
        const auto y = static_cast<uint16_t>((random() & 0x8000) | static_cast<uint32_t>(exponent) << shift |
                                             (random() & ((1u << shift) - 1)));
        product.b.set({}, 0, j, bytes_of(x));
        product.b.set({}, 1, j, bytes_of(y));
        exact[static_cast<size_t>(j)] = decode_half(x, exponent_bits) + decode_half(y, exponent_bits);
      }
      product.run(setting.options);
      for (int64_t j = 0; j < n; ++j) {
        const auto bits = read_as<uint16_t>(product.c.at({}, 0, j));
        const long double expected = exact[static_cast<size_t>(j)];
        const long double got = decode_half(bits, exponent_bits);
        if (std::isnan(expected)) {
          EXPECT_TRUE(std::isnan(got));
          continue;
        }
        const uint16_t infinity = static_cast<uint16_t>(((1 << exponent_bits) - 1) << (15 - exponent_bits));
        const long double greatest = decode_half(static_cast<uint16_t>(infinity - 1), exponent_bits);
        const long double overflow =
            greatest + (greatest - decode_half(static_cast<uint16_t>(infinity - 2), exponent_bits)) / 2;
        if (std::fabs(expected) >= overflow) {
          EXPECT_EQ(got, std::copysign(std::numeric_limits<long double>::infinity(), expected));
          continue;
        }
        // No neighbour is nearer, and one as near is odd.
        for (const int step : {-1, 1}) {
          const uint16_t magnitude = bits & 0x7fff;
          if (magnitude == 0 && step < 0) continue;
          const auto neighbour_bits = static_cast<uint16_t>((bits & 0x8000) | (magnitude + step));
          if ((neighbour_bits & 0x7fff) >= infinity) continue;
          const long double neighbour = decode_half(neighbour_bits, exponent_bits);
          const long double error = std::fabs(got - expected);
          const long double other = std::fabs(neighbour - expected);
          EXPECT_TRUE(error < other || (error == other && (bits & 1) == 0)) << static_cast<double>(expected);
        }
      }
    }
  }
}

}  // namespace
}  // namespace compute::cpu::matmul_test
