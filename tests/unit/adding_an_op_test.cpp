// SPDX-License-Identifier: Apache-2.0
// The op of docs/adding-an-op.md: its rules match the page and return the right steps.
#include <fstream>
#include <iterator>

#include "core/ops/lower.hpp"
#include "core/ops/rules.hpp"
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

// The steps of softmin for a row-major operand; throws what the rules throw.
std::vector<Step> steps_of_softmin(compute_dtype dtype, const std::vector<int64_t>& shape, int64_t axis) {
  const TestAttributes given = TestAttributes().int64("axis", axis);
  Attributes attributes;
  read_attributes(softmin(), given.list().data(), static_cast<int64_t>(given.list().size()), attributes, nullptr);
  const TestTensor x = like(dtype, shape);
  const OperandDesc desc = x.desc();
  const OpCall call{softmin(), attributes, {&desc, 1}};
  const std::vector<OutputDesc> result = softmin_1_rules.infer(call);
  EXPECT_EQ(result.at(0).dtype, dtype);
  EXPECT_EQ(result.at(0).shape, shape);
  const LoweringTarget::Output output{dtype, x.shape, x.strides};
  return softmin_1_rules.lower(call, {{&output, 1}, false, true}, 0)->steps;
}

TEST(AddingAnOp, TheRulesOfThePageAreRight) {
  const std::vector<Step> steps = steps_of_softmin(COMPUTE_DTYPE_FLOAT16, {2, 3}, -1);
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_STREQ(steps[0].name, "reduce");
  EXPECT_STREQ(steps[1].name, "reduce");
  EXPECT_STREQ(steps[2].name, "map");
  EXPECT_EQ(steps[1].outputs[0].shape, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(steps[1].outputs[0].dtype, COMPUTE_DTYPE_FLOAT32);
  EXPECT_EQ(steps[2].inputs[2].strides, (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(steps_of_softmin(COMPUTE_DTYPE_FLOAT32, {2, 3}, 0)[0].outputs[0].shape, (std::vector<int64_t>{1, 3}));
  EXPECT_THROW(steps_of_softmin(COMPUTE_DTYPE_INT32, {2}, 0), Error);
  EXPECT_THROW(steps_of_softmin(COMPUTE_DTYPE_FLOAT32, {2, 3}, 2), Error);
  EXPECT_THROW(steps_of_softmin(COMPUTE_DTYPE_FLOAT32, {}, 0), Error);
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
