// SPDX-License-Identifier: Apache-2.0
// Products of a few rows, which the CPU's own kernel computes without packing: every number of rows, dtype and
// instruction set against the oracle.
#include <gtest/gtest.h>

#include "sanitizer.hpp"
#include "tests/unit/cpu_matmul_oracle.hpp"

namespace compute::cpu::matmul_test {
namespace {

class CpuMatmulRows : public ::testing::TestWithParam<compute_dtype> {
 protected:
  std::mt19937_64 random{20260911};

  Operand make(std::vector<int64_t> batch, int64_t m, int64_t n, Layout layout = Layout::row_major) {
    Operand operand(GetParam(), std::move(batch), m, n, layout);
    operand.fill(random);
    return operand;
  }
};

INSTANTIATE_TEST_SUITE_P(Dtypes, CpuMatmulRows,
                         ::testing::Values(COMPUTE_DTYPE_FLOAT16, COMPUTE_DTYPE_BFLOAT16, COMPUTE_DTYPE_FLOAT32,
                                           COMPUTE_DTYPE_FLOAT64),
                         [](const auto& info) { return std::string(name_of(info.param)); });

std::vector<InstructionSet> instruction_sets() {
  std::vector<InstructionSet> all;
  for (int isa = 0; isa <= static_cast<int>(widest_instruction_set()); ++isa)
    all.push_back(static_cast<InstructionSet>(isa));
  return all;
}

std::string text_of(InstructionSet isa, const Shape& shape) {
  return "instruction set " + std::to_string(static_cast<int>(isa)) + " " + std::to_string(shape.m) + "x" +
         std::to_string(shape.n) + "x" + std::to_string(shape.k);
}

// Up to 16 rows of a matrix whose rows are adjacent elements; the last columns fill no vector, or no tile.
TEST_P(CpuMatmulRows, OfEveryNumberTimesRows) {
  static constexpr Layout kLayouts[] = {Layout::row_major, Layout::transposed, Layout::strided, Layout::reversed};
  for (const InstructionSet isa : instruction_sets()) {
    for (int64_t m = 2; m <= 16; m += kSanitizer ? 3 : 1) {
      const Shape shape = {m, 256 + 37 * (m % 4), 64 + 9 * (m % 3)};
      for (const bool swapped : {false, true}) {  // then b has a few columns
        SCOPED_TRACE(text_of(isa, shape) + (swapped ? " swapped" : ""));
        const Layout few = kLayouts[m % 4], large = m % 2 == 0 ? Layout::row_major : Layout::padded,
                     result = kLayouts[(m + 1) % 4];
        Product product = swapped ? Product{make({}, shape.n, shape.k, Layout::transposed),
                                            make({}, shape.k, shape.m, few), make({}, shape.n, shape.m, result)}
                                  : Product{make({}, shape.m, shape.k, few), make({}, shape.k, shape.n, large),
                                            make({}, shape.m, shape.n, result)};
        const MatmulOptions options = options_of(isa);
        run_and_judge(product, options);
        if (HasFatalFailure()) return;
      }
    }
  }
}

// Few columns, or one, of few terms each, which fill no vector.
TEST_P(CpuMatmulRows, OfFewColumnsAndTerms) {
  static constexpr Layout kLayouts[] = {Layout::row_major, Layout::transposed, Layout::strided, Layout::padded,
                                        Layout::reversed};
  for (const InstructionSet isa : instruction_sets()) {
    for (int64_t k = 1; k <= 9; ++k) {
      for (const int64_t n : {1, 2, 3, 4, 5, 7, 8, 13, 16, 17}) {
        for (const int64_t m : {1, 6, 37}) {
          SCOPED_TRACE(text_of(isa, {m, n, k}));
          const Layout large = k % 3 == 0 ? Layout::padded : Layout::row_major,
                       result = n % 3 == 0 ? Layout::padded : Layout::row_major;
          Product of_rows{make({}, m, k, large), make({}, k, n, kLayouts[(k + n) % 5]), make({}, m, n, result)};
          run_and_judge(of_rows, options_of(isa));
          Product of_any{make({}, m, k, kLayouts[n % 5]), make({}, k, n), make({}, m, n, kLayouts[m % 5])};
          run_and_judge(of_any, options_of(isa));
          if (HasFatalFailure()) return;
        }
      }
    }
    for (const Shape& shape : {Shape{90000, 3, 3}, Shape{3, 90000, 3}, Shape{90000, 1, 3}, Shape{70000, 7, 8}}) {
      SCOPED_TRACE(text_of(isa, shape));
      judge_threads({make({}, shape.m, shape.k), make({}, shape.k, shape.n), make({}, shape.m, shape.n)},
                    options_of(isa), {2, 7});
      if (HasFatalFailure()) return;
    }
  }
}

// Up to 12 rows of a matrix whose columns are adjacent elements.
TEST_P(CpuMatmulRows, OfUpToTwelveTimesColumns) {
  for (const InstructionSet isa : instruction_sets()) {
    for (int64_t m = 2; m <= 12; m += kSanitizer ? 3 : 1) {
      for (const Shape& shape : {Shape{m, 77, 259}, Shape{m, 256, 64}, Shape{m, 5, 4001}}) {
        SCOPED_TRACE(text_of(isa, shape));
        Product product{make({}, shape.m, shape.k, Layout::padded), make({}, shape.k, shape.n, Layout::transposed),
                        make({}, shape.m, shape.n, m % 2 != 0 ? Layout::transposed : Layout::row_major)};
        const MatmulOptions options = options_of(isa);
        run_and_judge(product, options);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(CpuMatmulRows, WithFactorsAddendBiasAndBatch) {
  const compute_dtype accumulator = accumulator_of(GetParam());
  const Bytes alpha = encode(accumulator, 0.375), beta = encode(accumulator, -1.5);
  for (const InstructionSet isa : instruction_sets()) {
    for (const Shape& shape : {Shape{3, 270, 64}, Shape{7, 261, 70}, Shape{300, 11, 65}}) {
      for (const bool columns : {false, true}) {
        SCOPED_TRACE(text_of(isa, shape));
        const Layout layout = columns ? Layout::transposed : Layout::row_major;
        Operand bias = make({3}, shape.m, shape.n, Layout::strided);
        Product product{make({3}, shape.m, shape.k), make({3}, shape.k, shape.n, layout), make({3}, shape.m, shape.n)};
        product.alpha = &alpha;
        product.bias = &bias;
        run_and_judge(product, options_of(isa));
        if (HasFatalFailure()) return;
        product.beta = &beta;
        product.addend = &product.c;
        run_and_judge(product, options_of(isa));
        if (HasFatalFailure()) return;
      }
    }
  }
}

// Tiles depend on the number of threads; parts of long sums of short rows do not.
TEST_P(CpuMatmulRows, HaveTheSameBitsWithAnyNumberOfThreads) {
  for (const InstructionSet isa : instruction_sets()) {
    for (const Shape& shape : {Shape{8, 700, 600}, Shape{5, 1030, 300}, Shape{8, 512, 2100}, Shape{2, 900, 1200}}) {
      for (const Layout layout : {Layout::row_major, Layout::transposed}) {
        SCOPED_TRACE(text_of(isa, shape));
        const Product product{make({}, shape.m, shape.k), make({}, shape.k, shape.n, layout),
                              make({}, shape.m, shape.n)};
        judge_threads(product, options_of(isa), {2, 7, 64});
        if (HasFatalFailure()) return;
      }
    }
  }
}

// Long sums are cut into parts, and those added up: of every dtype.
using CpuMatmulParts = CpuMatmulRows;
INSTANTIATE_TEST_SUITE_P(Dtypes, CpuMatmulParts, ::testing::ValuesIn(kDtypes),
                         [](const auto& info) { return std::string(name_of(info.param)); });

TEST_P(CpuMatmulParts, AreRightWithAllTerms) {
  const bool is_whole = is_integer(GetParam());
  const Bytes alpha = encode(accumulator_of(GetParam()), is_whole ? 1 : 0.375),
              beta = encode(accumulator_of(GetParam()), is_whole ? 1 : -1.5);
  for (const Shape& shape : {Shape{8, 260, 1100}, Shape{3, 1030, 520}, Shape{515, 16, 600}}) {
    SCOPED_TRACE(text_of(widest_instruction_set(), shape));
    const Layout layout = shape.m > shape.n ? Layout::transposed : Layout::row_major;
    Product product{make({}, shape.m, shape.k, layout), make({}, shape.k, shape.n, layout),
                    make({}, shape.m, shape.n, layout)};
    run_and_judge(product, options_of());
    if (HasFatalFailure()) return;
    if (kSanitizer && shape.m != 3) continue;
    Operand bias = make({}, shape.m, shape.n, Layout::strided);
    product.alpha = &alpha;
    product.beta = &beta;
    product.addend = &product.c;
    product.bias = &bias;
    run_and_judge(product, options_of());
    if (HasFatalFailure()) return;
  }
}

// An epilogue sees each result once, after all terms.
TEST(CpuMatmulRowsEpilogue, IsAppliedToSumsOfParts) {
  std::mt19937_64 random(5);
  const auto make = [&](int64_t m, int64_t n) {
    Operand operand(COMPUTE_DTYPE_FLOAT32, {}, m, n, Layout::row_major);
    operand.fill(random);
    return operand;
  };
  Product product{make(8, 1100), make(1100, 260), make(8, 260)};
  Operand bias = make(8, 260);
  product.bias = &bias;
  for (const int32_t threads : {1, 3}) {
    const MatmulOptions options = options_of(widest_instruction_set(), threads);
    product.run(options);
    const Product plain = product;

    const MatmulEpilogue negation = {
        nullptr, sizeof(float),
        [](const void*, const compute_plugin_scalar*, void* frame) { *static_cast<float*>(frame) = -1; },
        [](const void*, void* frame, const void* results, void* out, int64_t n) {
          for (int64_t i = 0; i < n; ++i)
            static_cast<float*>(out)[i] = static_cast<const float*>(results)[i] * *static_cast<float*>(frame);
        }};
    MatmulView views[2];
    MatmulProblem problem = product.problem(views);
    problem.epilogue = &negation;
    const MatmulPlan plan(problem, options);
    Workspace workspace(plan);
    MatmulRun run{product.a.data(), product.b.data(), product.c.data()};
    run.bias = bias.data();
    run.workspace = workspace.data();
    if (threads > 1) run.parallel_for = parallel_by_tbb;
    plan.run(run);
    for (int64_t i = 0; i < 8; ++i) {
      for (int64_t j = 0; j < 260; ++j)
        ASSERT_EQ(read_as<float>(product.c.at({}, i, j)), -read_as<float>(plain.c.at({}, i, j))) << i << ", " << j;
    }
  }
}

// A linear layer of a few rows has work for every thread, with a bias too.
TEST(CpuMatmulRowsTasks, AreAsManyAsThreads) {
  const int64_t m = 8, n = 2048, k = 4096;
  const MatmulView bias = {nullptr, 0, 1};
  for (const MatmulView* term : {static_cast<const MatmulView*>(nullptr), &bias}) {
    MatmulProblem problem{};
    problem.dtype = COMPUTE_DTYPE_FLOAT32;
    problem.m = m;
    problem.n = n;
    problem.k = k;
    problem.a = {nullptr, k, 1};
    problem.b = {nullptr, n, 1};
    problem.c = {nullptr, n, 1};
    problem.bias = term;
    MatmulOptions options;
    for (const int32_t threads : {1, 2, 4, 16}) {
      options.threads = threads;
      EXPECT_GE(MatmulPlan(problem, options).tasks(), threads);
    }
  }
}

}  // namespace
}  // namespace compute::cpu::matmul_test
