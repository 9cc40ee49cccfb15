// SPDX-License-Identifier: Apache-2.0
// Templates of kernels: what becomes of names, lines and sections, and that no mistake passes.
#include "plugins/common/source/expressions/template.hpp"

#include <gtest/gtest.h>

#include "plugins/common/op/core.hpp"

namespace compute::common {
namespace {

// The message of the internal error that `text` is refused with, "" if it is not.
std::string refusal(std::string_view text, const std::vector<Value>& values) {
  try {
    fill(text, values);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, COMPUTE_ERROR_INTERNAL);
    return error.what();
  }
}

TEST(Template, NamesBecomeValues) {
  EXPECT_EQ(fill("$type x$k = ${value}f;\n", {{"type", "f32"}, {"k", 3}, {"value", 1, '.', 5}}), "f32 x3 = 1.5f;\n");
  EXPECT_EQ(fill("\n\nx[$i][$i]", {{"i", "$i"}}), "\nx[$i][$i]") << "values are text, and only one newline is left out";
  EXPECT_EQ(fill("", std::vector<Value>{}), "");
}

TEST(Template, NamesAloneOnTheirLineBecomeLines) {
  const char* text = "  {\n    $lines\n  }\n";
  EXPECT_EQ(fill(text, {{"lines", "a;\n\n  b;\n#pragma unroll\nc;\n"}}),
            "  {\n    a;\n\n      b;\n#pragma unroll\n    c;\n  }\n");
  EXPECT_EQ(fill(text, {{"lines", "a;"}}), "  {\n    a;\n  }\n");
  EXPECT_EQ(fill(text, {{"lines", ""}}), "  {\n  }\n");
  EXPECT_EQ(fill("  $x;\n", {{"x", ""}}), "  ;\n");
}

TEST(Template, SectionsFollowConditions) {
  const char* text = "$if x\na\n$if y\nb\n$else\nc\n$end\n$else\nd\n$if y\ne\n$end\n$end\nf\n";
  EXPECT_EQ(fill(text, {{"x", true}, {"y", true}}), "a\nb\nf\n");
  EXPECT_EQ(fill(text, {{"x", true}, {"y", false}}), "a\nc\nf\n");
  EXPECT_EQ(fill(text, {{"x", false}, {"y", true}}), "d\ne\nf\n");
  EXPECT_EQ(fill(text, {{"x", false}, {"y", false}}), "d\nf\n");
  EXPECT_EQ(fill("$if word\n$word\n$end\n", {{"word", "u32"}}), "u32\n") << "any value is a condition";
  EXPECT_EQ(fill("$if x\n$y $z\n$if z\n$end\n$end\n", {{"x", false}, {"y", 1}}), "") << "a name without a value";
}

TEST(Template, CommentsAreNotPrinted) {
  EXPECT_EQ(fill("  a;\n  $// Loads of all $steps come first.\n  // b\n", std::vector<Value>{}), "  a;\n  // b\n");
}

TEST(Template, MistakesAreInternalErrors) {
  EXPECT_EQ(refusal("$x + $y\n", {{"x", 1}}), "kernel template: no value for y");
  EXPECT_EQ(refusal("  $lines\n", {}), "kernel template: no value for lines");
  EXPECT_EQ(refusal("$if x\n$end\n", {}), "kernel template: no value for x");
  EXPECT_EQ(refusal("$x\n", {{"x", 1}, {"y", 2}}), "kernel template: missing or given twice: y");
  EXPECT_EQ(refusal("$xy ${yx}\n$// $x\n", {{"xy", 1}, {"yx", 1}, {"x", 2}}),
            "kernel template: missing or given twice: x");
  EXPECT_EQ(refusal("$x\n", {{"x", 1}, {"x", 1}}), "kernel template: missing or given twice: x");
  EXPECT_EQ(refusal("$if x\n", {{"x", true}}), "kernel template: no $end after $if");
  EXPECT_EQ(refusal("$else\n", {}), "kernel template: no $if before $else");
  EXPECT_EQ(refusal("$end\n", {}), "kernel template: no $if before $end");
  for (const char* text : {"a $ b\n", "$\n", "${x\n", "${}\n"}) EXPECT_NE(refusal(text, {}), "") << text;
  const auto find = [](std::string_view name) -> std::optional<std::string_view> {
    return name == "T" ? std::optional<std::string_view>("f32") : std::nullopt;
  };
  EXPECT_EQ(fill("exp_$T($T x)", find), "exp_f32(f32 x)");
  EXPECT_THROW(fill("$T $U", find), Error);
}

}  // namespace
}  // namespace compute::common
