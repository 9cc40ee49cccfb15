// SPDX-License-Identifier: Apache-2.0
// Which elementwise ops the CPU plugin runs as one compiled loop, found by the digest that core computes.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <vector>

#include "core/ops/infer.hpp"
#include "core/ops/rows.hpp"
#include "plugins/cpu/isa/isa.hpp"
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
      const compute_plugin_expression view = expression.plugin_view();
      const cpu::BlockProgram program(view, *table_);
      EXPECT_LE(program.function_count(), 1) << op->name << " of " << dtype_name(dtype);
      EXPECT_FALSE(program.needs_blocks()) << op->name << " of " << dtype_name(dtype);
      ++checked;
      int calls = 0;
      for (const compute_plugin_node& node : expression.nodes()) calls += node.kind == COMPUTE_PLUGIN_NODE_CALL;
      rows += calls > 1;
    }
  }
  EXPECT_GT(checked, 150);
  EXPECT_EQ(rows, table_->row_count);  // and none is there that no op has
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

// Rows of much memory go through another loop: its results are those of the short one.
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

INSTANTIATE_TEST_SUITE_P(Isas, CpuRows, testing::Values("baseline", "avx2", "avx512"));

}  // namespace
}  // namespace compute
