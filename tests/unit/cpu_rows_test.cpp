// SPDX-License-Identifier: Apache-2.0
// Which elementwise ops the CPU plugin runs as one compiled loop, found by the digest that core computes, and the
// results of loops over much memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "core/expressions/intrinsic.hpp"
#include "core/ops/infer.hpp"
#include "core/ops/rows.hpp"
#include "plugins/cpu/isa/isa.hpp"
#include "plugins/cpu/kernels/network_kernel.hpp"
#include "plugins/cpu/map/block_program.hpp"

namespace compute {
namespace {

constexpr std::array<compute_dtype, 4> kCompiled = {COMPUTE_DTYPE_BOOL, COMPUTE_DTYPE_INT32, COMPUTE_DTYPE_FLOAT32,
                                                    COMPUTE_DTYPE_FLOAT64};

TypedExpression typed(const OpSchema& op, compute_dtype dtype) {
  std::vector<OperandDesc> operands(op.inputs.size(), OperandDesc{dtype});
  if (op.result == RowResult::kSecond) operands[0] = OperandDesc{COMPUTE_DTYPE_BOOL};
  return type_row(op, operands, row_types(op, operands));
}

// With numbers for all inputs but the first.
TypedExpression typed_with_numbers(const OpSchema& op, compute_dtype dtype) {
  std::vector<OperandDesc> operands(op.inputs.size(), OperandDesc{dtype});
  for (size_t i = 1; i < operands.size(); ++i) operands[i].is_scalar = true;
  return type_row(op, operands, row_types(op, operands));
}

// Whether core composes a function of it before a plugin sees it.
bool is_composed(const TypedExpression& expression) {
  return std::ranges::any_of(expression.nodes(), [](const compute_plugin_node& node) {
    return node.kind == COMPUTE_PLUGIN_NODE_CALL && find_intrinsic(node.value)->composed;
  });
}

class CpuRows : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const cpu::Isa& widest = *cpu::select_isa(nullptr);
    const cpu::Isa* isa = cpu::select_isa(GetParam());
    ASSERT_NE(isa, nullptr);
    table_ = isa->blocks;
    if (std::string(isa->name) != GetParam()) GTEST_SKIP() << "this processor has " << widest.name;
  }
  const cpu::BlockKernels* table_ = nullptr;
};

TEST_P(CpuRows, EveryElementwiseOpIsOneLoop) {
  int64_t rows = 0, checked = 0;
  for (const OpSchema* op : op_schemas()) {
    if (!op->is_elementwise) continue;
    for (const compute_dtype dtype : kCompiled) {
      if (!in_class(dtype, op->input_class)) continue;
      if (op->name == "fmod") continue;  // a remainder costs more than several passes over a block
      const TypedExpression expression = typed(*op, dtype);
      if (is_composed(expression)) continue;  // hundreds of functions: one loop would gain nothing
      const compute_plugin_expression view = expression.plugin_view();
      const cpu::BlockProgram program(view, *table_);
      EXPECT_LE(program.function_count(), 1) << op->name << " of " << dtype_name(dtype);
      EXPECT_FALSE(program.needs_blocks()) << op->name << " of " << dtype_name(dtype);
      ++checked;
      int calls = 0;
      for (const compute_plugin_node& node : expression.nodes()) calls += node.kind == COMPUTE_PLUGIN_NODE_CALL;
      rows += calls > 1;
      if (calls > 1 && op->inputs.size() > 1 && op->result != RowResult::kSecond) {
        const TypedExpression with_numbers = typed_with_numbers(*op, dtype);
        EXPECT_EQ(cpu::BlockProgram(with_numbers.plugin_view(), *table_).function_count(), 1)
            << op->name << " of " << dtype_name(dtype) << " and numbers";
        ++rows;
      }
      if (calls <= 1 || dtype != COMPUTE_DTYPE_FLOAT32) continue;
      for (const compute_dtype half : {COMPUTE_DTYPE_FLOAT16, COMPUTE_DTYPE_BFLOAT16}) {
        const TypedExpression of_half = typed(*op, half);
        EXPECT_EQ(cpu::BlockProgram(of_half.plugin_view(), *table_).function_count(), 1)
            << op->name << " of " << dtype_name(half);
        ++rows;
      }
    }
  }
  // nan_to_num of the Python package.
  for (const compute_dtype dtype : {COMPUTE_DTYPE_FLOAT32, COMPUTE_DTYPE_FLOAT64}) {
    constexpr std::string_view kInput[] = {"x"}, kNumbers[] = {"a", "b"};
    const LeafDesc leaves[] = {{dtype}, {COMPUTE_DTYPE_FLOAT64, true, true}, {COMPUTE_DTYPE_FLOAT64, true, true}};
    const TypedExpression e =
        type_expression(parse("where(isnan(x), a, min(max(x, -b), b))", kInput, kNumbers), leaves);
    EXPECT_EQ(cpu::BlockProgram(e.plugin_view(), *table_).function_count(), 1) << dtype_name(dtype);
    ++rows;
  }
  EXPECT_GT(checked, 150);
  EXPECT_EQ(rows, table_->row_count);  // and none is there that nothing else has
}

TEST_P(CpuRows, ArithmeticOfHalvesIsOneLoop) {
  int found = 0;
  for (const OpSchema* op : op_schemas()) {
    for (const char* name : {"add", "subtract", "multiply", "divide", "minimum", "maximum"}) {
      if (op->name != name) continue;
      for (const compute_dtype half : {COMPUTE_DTYPE_FLOAT16, COMPUTE_DTYPE_BFLOAT16}) {
        const TypedExpression expression = typed(*op, half);
        EXPECT_EQ(cpu::BlockProgram(expression.plugin_view(), *table_).function_count(), 1) << name;
        ++found;
      }
    }
  }
  EXPECT_EQ(found, 12);
}

TEST_P(CpuRows, OthersAreInterpreted) {
  // The digest decides: with another one the same expression is a list of intrinsics.
  const OpSchema* sigmoid = nullptr;
  for (const OpSchema* op : op_schemas()) {
    if (op->name == "sigmoid") sigmoid = op;
  }
  ASSERT_NE(sigmoid, nullptr);
  const TypedExpression expression = typed(*sigmoid, COMPUTE_DTYPE_FLOAT32);
  compute_plugin_expression view = expression.plugin_view();
  EXPECT_EQ(cpu::BlockProgram(view, *table_).function_count(), 1);
  view.digest[0] ^= 1;
  EXPECT_GT(cpu::BlockProgram(view, *table_).function_count(), 1);
}

// Numbers take the places of the inputs that they replace.
TEST_P(CpuRows, NumbersAreInputs) {
  constexpr int64_t n = 100;
  const float numbers[] = {0, 0.25F, 1.5F};
  std::vector<float> x[3];
  for (int64_t i = 0; i < n; ++i) x[0].push_back(static_cast<float>(i - 50) / 16);
  for (int k = 1; k < 3; ++k) x[k].assign(cpu::kSplatBytes / sizeof(float), numbers[k]);
  int found = 0;
  for (const OpSchema* op : op_schemas()) {
    if (!op->is_elementwise || op->inputs.size() < 2 || op->result != RowResult::kSame) continue;
    if (!in_class(COMPUTE_DTYPE_FLOAT32, op->input_class)) continue;
    const TypedExpression of_inputs = typed(*op, COMPUTE_DTYPE_FLOAT32),
                          of_numbers = typed_with_numbers(*op, COMPUTE_DTYPE_FLOAT32);
    if (is_composed(of_inputs)) continue;
    std::vector<float> y[2];
    for (const bool has_numbers : {false, true}) {
      const cpu::BlockProgram program((has_numbers ? of_numbers : of_inputs).plugin_view(), *table_);
      alignas(64) char workspace[64 * cpu::kSplatBytes];
      ASSERT_LE(program.workspace_bytes(n), static_cast<int64_t>(sizeof workspace));
      compute_plugin_scalar scalars[2] = {};
      for (int k = 0; k < 2; ++k) std::memcpy(scalars[k].bits, &numbers[k + 1], sizeof numbers[0]);
      program.begin(scalars, workspace);
      const cpu::BlockOperand operands[] = {{x[0].data(), 1}, {x[1].data(), 0}, {x[2].data(), 0}};
      y[has_numbers].assign(n, -7);
      void* const outputs[] = {y[has_numbers].data()};
      program.evaluate(operands, outputs, n, n, workspace);
    }
    EXPECT_EQ(std::memcmp(y[0].data(), y[1].data(), n * sizeof(float)), 0) << op->name;
    ++found;
  }
  EXPECT_GT(found, 10);
}

// Long rows use another loop, with the same results as the short one.
TEST_P(CpuRows, LongRowsAreShortOnes) {
  const int64_t n = (int64_t{1} << 19) + 5;
  std::vector<float> x[3], whole(n), pieces(n);
  for (int k = 0; k < 3; ++k) {
    for (int64_t i = 0; i < n; ++i)
      x[k].push_back(static_cast<float>((i * (7 + k) + k) % 1009) - 500.f * static_cast<float>(1 - k));
  }
  const OpSchema* clip = nullptr;
  for (const OpSchema* op : op_schemas()) {
    if (op->name == "clip") clip = op;
  }
  ASSERT_NE(clip, nullptr);
  const TypedExpression expression = typed(*clip, COMPUTE_DTYPE_FLOAT32);
  const cpu::BlockProgram program(expression.plugin_view(), *table_);
  const auto run = [&](int64_t begin, int64_t count, float* out) {
    const cpu::BlockOperand operands[] = {{x[0].data() + begin, 1}, {x[1].data() + begin, 1}, {x[2].data() + begin, 1}};
    void* const outputs[] = {out};
    program.evaluate(operands, outputs, count, 64, nullptr);
  };
  run(0, n, whole.data());
  for (int64_t i = 0; i < n; i += 1000) run(i, std::min<int64_t>(1000, n - i), pieces.data() + i);
  EXPECT_EQ(whole, pieces);
  EXPECT_NE(std::set<float>(whole.begin(), whole.end()).size(), 1u);
}

// Rows of large tensors use other functions, with bitwise the same results.
TEST_P(CpuRows, FarRowsAreNearOnes) {
  const cpu::NetworkKernels& kernels = *cpu::select_isa(GetParam())->network;
  constexpr int64_t kMost = 2048;
  struct alignas(64) Row {
    float x[kMost];
  };
  std::vector<Row> rows(9);
  std::vector<Row> results[2];
  for (const int64_t n : {int64_t(32), int64_t(48), int64_t(528), int64_t(1024), kMost}) {
    float(&x)[kMost] = rows[0].x, (&dy)[kMost] = rows[1].x, (&scale)[kMost] = rows[2].x, (&bias)[kMost] = rows[3].x;
    for (int64_t i = 0; i < n; ++i) {
      x[i] = static_cast<float>(i * 389 % 1009) / 256 - 2;
      dy[i] = static_cast<float>(i * 271 % 1013) / 512 - 1;
      scale[i] = static_cast<float>(i * 7 % 11) / 4;
      bias[i] = static_cast<float>(i * 5 % 13) / 8;
    }
    for (const bool far : {false, true}) {
      const cpu::RowKernels& row = far ? kernels.far : kernels.near;
      std::vector<Row>& y = results[far];
      y.assign(19, Row{});
      Row scratch;
      float mean[4], rstd[4];
      row.softmax(x, n, scratch.x, y[0].x);
      row.log_softmax(x, n, scratch.x, y[1].x);
      row.softmax_grad(dy, y[0].x, n, y[2].x);
      row.log_softmax_grad(dy, y[1].x, n, y[3].x);
      for (int k = 0; k < 4; ++k) {
        row.layer_norm(x, (k & 1) != 0 ? scale : nullptr, (k & 2) != 0 ? bias : nullptr, 1e-5F, n, y[4 + k].x, mean + k,
                       rstd + k);
        y[8].x[2 * k] = mean[k];
        y[8].x[2 * k + 1] = rstd[k];
      }
      for (int k = 0; k < 4 && n % 32 == 0; ++k) {
        row.group_norm(x, (k & 1) != 0 ? scale : nullptr, (k & 2) != 0 ? bias : nullptr, 1e-5F, n, 2, y[15 + k].x,
                       mean + k, rstd + k);
      }
      for (int k = 0; k < 2; ++k)
        row.layer_norm_grad(dy, x, k != 0 ? scale : nullptr, mean[0], rstd[0], n, y[9 + k].x, y[11 + k].x, y[13 + k].x);
      kernels.end_far();
      for (int k = 0; k < 15; ++k) EXPECT_NE(y[k].x[0], y[k].x[5]) << k;  // something was written
    }
    for (size_t k = 0; k < results[0].size(); ++k)
      EXPECT_EQ(std::memcmp(results[0][k].x, results[1][k].x, sizeof(Row)), 0) << "result " << k << " of " << n;
  }
}

// Of any length and in any place; NaN counts for nothing.
TEST_P(CpuRows, FindsTheGreatest) {
  const cpu::NetworkKernels& kernels = *cpu::select_isa(GetParam())->network;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (int64_t n = 1; n < 200; ++n) {
    for (int64_t place = 0; place < n; place += 1 + n / 20) {
      std::vector<float> x(static_cast<size_t>(n), -3);
      x[static_cast<size_t>(n - 1 - place)] = nan;
      x[static_cast<size_t>(place)] = -2;
      EXPECT_EQ(kernels.greatest(x.data(), n), -2) << place << " of " << n;
    }
    EXPECT_EQ(kernels.greatest(std::vector<float>(static_cast<size_t>(n), nan).data(), n),
              -std::numeric_limits<float>::infinity());
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, CpuRows, testing::Values("baseline", "avx2", "avx512"));

}  // namespace
}  // namespace compute
