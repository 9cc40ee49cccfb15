// SPDX-License-Identifier: Apache-2.0
#include "known.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

namespace compute::conformance {
namespace {

class KnownTest : public testing::Test {
 protected:
  KnownTest()
      : path_(testing::TempDir() + "known_test_" + testing::UnitTest::GetInstance()->current_test_info()->name()) {}
  ~KnownTest() override { std::remove(path_.c_str()); }

  Known read(const std::string& text) {
    std::ofstream(path_) << text;
    Known known;
    known.read(path_);
    return known;
  }

  std::string fault(const std::string& text) {
    try {
      read(text);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  }

 private:
  std::string path_;
};

TEST(Matches, StarsStandForAnyText) {
  EXPECT_TRUE(matches("elementwise.exp_*", "elementwise.exp_float32"));
  EXPECT_TRUE(matches("*_float64", "matmul.matmul_float64"));
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("a*b*c", "a-b-b-c"));
  EXPECT_FALSE(matches("*_float64", "matmul.matmul_float64x"));
  EXPECT_FALSE(matches("exp", "exp2"));
  EXPECT_FALSE(matches("", "x"));
}

TEST_F(KnownTest, TwoListsWithReasons) {
  const Known known = read(
      "# why\n[unsupported]\n*_float64  needs cl_khr_fp64\r\n\n[expected to fail]\nelementwise.pow_complex64\tlog is "
      "short\n");
  EXPECT_EQ(known.unsupported("elementwise.exp_float64"), "needs cl_khr_fp64");
  EXPECT_EQ(known.unsupported("elementwise.pow_complex64"), std::nullopt);
  EXPECT_EQ(known.expected_to_fail("elementwise.pow_complex64"), "log is short");
}

TEST_F(KnownTest, FaultsNameTheLine) {
  EXPECT_NE(fault("[unsupported]\n*_float64\n").find(":2: an entry without a reason"), std::string::npos);
  EXPECT_NE(fault("x y\n").find(":1: an entry before"), std::string::npos);
  EXPECT_NE(fault("[known]\n").find("no such list"), std::string::npos);
  EXPECT_THROW(Known().read("/nonexistent/list.txt"), std::runtime_error);
}

}  // namespace
}  // namespace compute::conformance
