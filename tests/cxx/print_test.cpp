// SPDX-License-Identifier: Apache-2.0
// Tensors as text: what NumPy prints for the same elements.
#include <cmath>

#include "cxx.hpp"

namespace cxx {
namespace {

class Print : public OnDevice {};

TEST_P(Print, AlignsNumbers) {
  EXPECT_EQ(printed(iota({2, 3})), "[[0. 1. 2.]\n [3. 4. 5.]]");
  EXPECT_EQ(printed(device_.from_host({1.0, -2.5, 10.25})), "[ 1.   -2.5  10.25]");
  EXPECT_EQ(printed(device_.from_host({0.1f, 0.2f})), "[0.1 0.2]") << "the digits of float32";
  EXPECT_EQ(printed(device_.from_host({1.0 / 3})), "[0.33333333]");
  EXPECT_EQ(printed(device_.from_host({1, -20, 300})), "[  1 -20 300]");
  EXPECT_EQ(printed(device_.from_host({uint8_t{65}, uint8_t{7}})), "[65  7]");
  EXPECT_EQ(printed(device_.from_host({1, 2}) == 1), "[ True False]");
  EXPECT_EQ(printed(device_.from_host({std::numeric_limits<int64_t>::min()})), "[-9223372036854775808]");
}

TEST_P(Print, SwitchesToExponents) {
  EXPECT_EQ(printed(device_.from_host({1e-5, 1.0})), "[1.e-05 1.e+00]");
  EXPECT_EQ(printed(device_.from_host({1.5e8, 0.0})), "[1.5e+08 0.0e+00]");
  EXPECT_EQ(printed(device_.from_host({1.0, 1001.0})), "[1.000e+00 1.001e+03]") << "more than 1000 times";
  EXPECT_EQ(printed(device_.from_host({1.0, 1000.0})), "[   1. 1000.]");
  EXPECT_EQ(printed(device_.from_host({1e-100, 1.0})), "[1.e-100 1.e+000]");
}

TEST_P(Print, NamesWhatIsNoNumber) {
  const double infinity = INFINITY;
  EXPECT_EQ(printed(device_.from_host({double{NAN}, 1.5, -infinity})), "[ nan  1.5 -inf]");
  EXPECT_EQ(printed(device_.from_host({infinity, 1.0})), "[inf  1.]");
  EXPECT_EQ(printed(device_.from_host({double{NAN}})), "[nan]");
}

TEST_P(Print, HasTheFewestDigitsOfHalves) {
  EXPECT_EQ(printed(cast(device_.from_host({0.1f, 2.5f, 65504.0f}), float16)), "[1.00e-01 2.50e+00 6.55e+04]");
  EXPECT_EQ(printed(cast(device_.from_host({0.1f, 3.14159f}), bfloat16)), "[0.1  3.14]");
  EXPECT_EQ(printed(cast(device_.from_host({0.1f, 18.0f}), float8_e4m3fn)), "[ 0.1 18. ]");
  EXPECT_EQ(printed(cast(device_.from_host({0.3f, -1.0f}), float8_e5m2)), "[ 0.3 -1. ]");
}

TEST_P(Print, ComplexNumbers) {
  const std::vector<std::complex<double>> values{{1, 2}, {-0.5, -10}};
  EXPECT_EQ(printed(device_.from_host(values)), "[ 1.  +2.j -0.5-10.j]");
}

TEST_P(Print, SingleElementsAndNone) {
  EXPECT_EQ(printed(Tensor::scalar(0.1f)), "0.1");
  EXPECT_EQ(printed(device_.full({}, 3.0)), "3.0");
  EXPECT_EQ(printed(device_.full({}, 1e20)), "1e+20");
  EXPECT_EQ(printed(Tensor::scalar(true)), "True");
  EXPECT_EQ(printed(device_.empty(float32, {0, 3})), "[]");
  EXPECT_EQ(printed(Tensor()), "<empty>");
}

TEST_P(Print, BreaksLinesAndLeavesOut) {
  EXPECT_EQ(printed(arange(device_, 30, int32)),
            "[ 0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16 17 18 19 20 21 22 23\n 24 25 26 27 28 29]");
  EXPECT_EQ(printed(arange(device_, 1001, int64)), "[   0    1    2 ...  998  999 1000]");
  EXPECT_EQ(printed(arange(device_, 2000, int32).reshape({2, 1000})),
            "[[   0    1    2 ...  997  998  999]\n [1000 1001 1002 ... 1997 1998 1999]]");
  EXPECT_EQ(printed(arange(device_, 8, int32).reshape({2, 2, 2})), "[[[0 1]\n  [2 3]]\n\n [[4 5]\n  [6 7]]]");
  const Tensor tall = arange(device_, 2000, int32).reshape({1000, 2});
  EXPECT_EQ(printed(tall), "[[   0    1]\n [   2    3]\n [   4    5]\n ...\n [1994 1995]\n [1996 1997]\n [1998 1999]]");
}

TEST_P(Print, OddLayouts) {
  const Tensor x = iota({2, 3});
  EXPECT_EQ(printed(x.transpose()), "[[0. 3.]\n [1. 4.]\n [2. 5.]]");
  EXPECT_EQ(printed(x(1, slice(none, none, -1))), "[5. 4. 3.]");
  EXPECT_EQ(printed(x[0].broadcast_to({2, 3})), "[[0. 1. 2.]\n [0. 1. 2.]]");
}

COMPUTE_ON_DEVICES(Print);

}  // namespace
}  // namespace cxx
