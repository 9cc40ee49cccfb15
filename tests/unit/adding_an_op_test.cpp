// SPDX-License-Identifier: Apache-2.0
// The op of docs/adding-an-op.md: its rules match the page and compute the right results.
#include <fstream>
#include <iterator>

#include "core/ops/lower.hpp"
#include "core/ops/rules.hpp"
#include "core/ops/temporaries.hpp"
#include "tests/unit/op_caller.hpp"

namespace compute {
extern const OpRules softmin_1_rules;
}  // namespace compute
#include "tests/unit/softmin_example.inc"

namespace compute {
namespace {

// The row of the page, in the form of one that has the same attributes.
const OpSchema& softmin() {
  static const OpSchema schema = [] {
    OpSchema op = find_op("take_along_axis", 1);
    op.name = "softmin";
    op.inputs = {"x"};
    op.optional.resize(1);
    op.least_inputs = 1;
    return op;
  }();
  return schema;
}

TestTensor run_softmin(const TestTensor& x, const TestAttributes& given = {}) {
  std::vector<TestTensor> inputs{x};
  Attributes attributes;
  read_attributes(softmin(), given.list().data(), static_cast<int64_t>(given.list().size()), attributes, nullptr);
  const OperandDesc desc = inputs[0].desc();
  const OpCall call{softmin(), attributes, {&desc, 1}};
  const OutputDesc result = softmin_1_rules.infer(call).at(0);
  std::vector<TestTensor> outputs{empty_tensor(result.dtype, result.shape)};
  const LoweringTarget::Output output{result.dtype, result.shape, outputs[0].strides};
  std::optional<Lowering> lowering = softmin_1_rules.lower(call, {{&output, 1}, false, true}, 0);
  layout_temporaries(*lowering);
  std::vector<RunTimeValue> run_time;
  LoweringEvaluator evaluator(&softmin(), inputs, outputs, run_time);
  evaluator.run(*lowering);
  return outputs[0];
}

TEST(AddingAnOp, TheRulesOfThePageAreRight) {
  const TestTensor x = tensor(COMPUTE_DTYPE_FLOAT32, {2, 3}, {1, 2, 3, 1000, 1000, 1000});
  const std::vector<double> rows = reals(run_softmin(x));
  const double e = std::exp(1.0), sum = 1 + e + e * e;
  const std::vector<double> expected = {e * e / sum, e / sum, 1 / sum, 1.0 / 3, 1.0 / 3, 1.0 / 3};
  ASSERT_EQ(rows.size(), expected.size());
  for (size_t i = 0; i < rows.size(); ++i) EXPECT_NEAR(rows[i], expected[i], 1e-6) << i;
  const std::vector<double> columns = reals(run_softmin(x, TestAttributes().int64("axis", 0)));
  EXPECT_EQ(columns, (std::vector<double>{1, 1, 1, 0, 0, 0}));
  const TestTensor half = run_softmin(tensor(COMPUTE_DTYPE_FLOAT16, {2}, {0, 0}));
  EXPECT_EQ(half.dtype, COMPUTE_DTYPE_FLOAT16);
  EXPECT_EQ(reals(half), (std::vector<double>{0.5, 0.5}));
  EXPECT_THROW(run_softmin(tensor(COMPUTE_DTYPE_INT32, {2}, {1, 2})), Error);
  EXPECT_THROW(run_softmin(x, TestAttributes().int64("axis", 2)), Error);
  EXPECT_THROW(run_softmin(scalar_tensor(COMPUTE_DTYPE_FLOAT32, 1)), Error);
}

TEST(AddingAnOp, ThePageShowsTheRulesThatAreTested) {
  const auto contents = [](const std::string& name) {
    std::ifstream file(std::string(COMPUTE_TEST_SOURCE_DIR) + "/" + name);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const std::string rules = contents("tests/unit/softmin_example.inc");
  EXPECT_GT(rules.size(), 1000U);
  EXPECT_NE(contents("docs/adding-an-op.md").find("```cpp\n" + rules + "```"), std::string::npos);
}

}  // namespace
}  // namespace compute
