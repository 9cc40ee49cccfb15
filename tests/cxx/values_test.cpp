// SPDX-License-Identifier: Apache-2.0
// What operators, indices, assignments and ops compute.
#include <cmath>

#include "cxx.hpp"

namespace cxx {
namespace {

using Floats = std::vector<float>;
using Bools = std::vector<uint8_t>;

class Values : public OnDevice {};

TEST_P(Values, OperatorsComputeWithScalarsOnBothSides) {
  const Tensor x = device_.from_host({1.0f, -2.0f, 3.5f}), y = device_.from_host({2.0f, 4.0f, -1.0f});
  EXPECT_EQ((x + y).to_vector<float>(), (Floats{3, 2, 2.5f}));
  EXPECT_EQ((x - 1).to_vector<float>(), (Floats{0, -3, 2.5f}));
  EXPECT_EQ((1 - x).to_vector<float>(), (Floats{0, 3, -2.5f}));
  EXPECT_EQ((2.0 * x).to_vector<float>(), (Floats{2, -4, 7}));
  EXPECT_EQ((7 / y).to_vector<float>(), (Floats{3.5f, 1.75f, -7}));
  EXPECT_EQ((x % 2).to_vector<float>(), (Floats{1, 0, 1.5f}));
  EXPECT_EQ((x % -2).to_vector<float>(), (Floats{-1, 0, -0.5f})) << "the sign of the divisor";
  EXPECT_EQ((-x).to_vector<float>(), (Floats{-1, 2, -3.5f}));
  EXPECT_EQ((+x).to_vector<float>(), x.to_vector<float>());
  EXPECT_FALSE((+x).shares_buffer(x));
  EXPECT_EQ((x * std::numeric_limits<double>::infinity()).to_vector<float>()[1], -INFINITY);
}

TEST_P(Values, ComparisonsAreTensorsOfBool) {
  const Tensor x = device_.from_host({1.0f, 2.0f, NAN}), y = device_.from_host({1.0f, 3.0f, NAN});
  EXPECT_EQ((x == y).dtype(), bool_);
  EXPECT_EQ((x == y).to_vector<uint8_t>(), (Bools{1, 0, 0}));
  EXPECT_EQ((x != y).to_vector<uint8_t>(), (Bools{0, 1, 1}));
  EXPECT_EQ((x < y).to_vector<uint8_t>(), (Bools{0, 1, 0}));
  EXPECT_EQ((x <= y).to_vector<uint8_t>(), (Bools{1, 1, 0}));
  EXPECT_EQ((x > 1).to_vector<uint8_t>(), (Bools{0, 1, 0}));
  EXPECT_EQ((1 >= x).to_vector<uint8_t>(), (Bools{1, 0, 0}));
  EXPECT_EQ((2 == x).to_vector<uint8_t>(), (Bools{0, 1, 0}));
  EXPECT_EQ((2 != x).to_vector<uint8_t>(), (Bools{1, 0, 1}));
  static_assert(!std::is_constructible_v<bool, Tensor>, "if (x == y) must not compile");
}

TEST_P(Values, BitsAndLogic) {
  const Tensor x = device_.from_host({6, -1, 5}), y = device_.from_host({3, 8, 1});
  const std::vector<int32_t> both{2, 8, 1}, either{7, -1, 5}, one{5, -9, 4}, inverse{-7, 0, -6}, left{24, -4, 20};
  EXPECT_EQ((x & y).to_vector<int32_t>(), both);
  EXPECT_EQ((x | y).to_vector<int32_t>(), either);
  EXPECT_EQ((x ^ y).to_vector<int32_t>(), one);
  EXPECT_EQ((~x).to_vector<int32_t>(), inverse);
  EXPECT_EQ((x << 2).to_vector<int32_t>(), left);
  EXPECT_EQ((x >> 1).to_vector<int32_t>(), (std::vector<int32_t>{3, -1, 2}));
  EXPECT_EQ((!(x > 5)).to_vector<uint8_t>(), (Bools{0, 1, 1}));
  EXPECT_EQ(((x > 0) & (y > 2)).to_vector<uint8_t>(), (Bools{1, 0, 0}));
}

TEST_P(Values, AssignmentWithAnOperatorWritesInPlace) {
  Tensor x = iota({2, 3});
  const Tensor same = x, row = x[1];
  (x += 1) *= 2;
  EXPECT_EQ(same.to_vector<float>(), (Floats{2, 4, 6, 8, 10, 12}));
  EXPECT_EQ(row.to_vector<float>(), (Floats{8, 10, 12}));
  x[0] -= device_.from_host({1.0f, 2.0f, 3.0f});
  x(slice(), slice(none, none, -2)) /= 2;
  EXPECT_EQ(x.to_vector<float>(), (Floats{0.5f, 2, 1.5f, 4, 10, 6}));
  x %= 4;
  EXPECT_EQ(x.to_vector<float>(), (Floats{0.5f, 2, 1.5f, 0, 2, 2}));
  Tensor bits = device_.from_host({1, 2, 3});
  bits <<= 4;
  bits |= 1;
  bits ^= 3;
  bits &= 0xfe;
  bits >>= 1;
  EXPECT_EQ(bits.to_vector<int32_t>(), (std::vector<int32_t>{9, 17, 25}));
  EXPECT_EQ(thrown_by([&] { return x += iota({4, 2, 3}); }).code, COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(thrown_by([&] { return bits += 0.5f; }).code, COMPUTE_ERROR_INVALID_ARGUMENT);
}

TEST_P(Values, IndicesTakeParts) {
  const Tensor x = iota({3, 4, 5});
  EXPECT_EQ(x(1, 2, 3).item<float>(), 33);
  EXPECT_EQ(x(-1, -1, -1).item<float>(), 59);
  EXPECT_EQ(shape_of(x[2]), (Shape{4, 5}));
  EXPECT_EQ(x[2](0, 1).item<float>(), 41);
  const Tensor y = x(slice(1, none), 3, slice(none, none, -2));
  EXPECT_EQ(shape_of(y), (Shape{2, 3}));
  EXPECT_EQ(y.to_vector<float>(), (Floats{39, 37, 35, 59, 57, 55}));
  EXPECT_TRUE(y.shares_buffer(x));
  EXPECT_EQ(shape_of(x(newaxis, ellipsis, newaxis, 0)), (Shape{1, 3, 4, 1}));
  EXPECT_EQ(shape_of(x(ellipsis, slice(1, 3))), (Shape{3, 4, 2}));
  EXPECT_EQ(shape_of(x(0, ellipsis, 0, 0)), (Shape{}));
  EXPECT_EQ(shape_of(x[slice(5, 9)]), (Shape{0, 4, 5})) << "slices are clipped";
  EXPECT_EQ(shape_of(x(slice(2, 1), 0, newaxis)), (Shape{0, 1, 5}));
  EXPECT_EQ(shape_of(x()), (Shape{3, 4, 5}));
  EXPECT_EQ(x.transpose()(4, slice(0, 2)).transpose()(2, 1).item<float>(), 49) << "of a permuted layout";
  const Tensor repeated = device_.from_host({1.0f, 2.0f}).broadcast_to({3, 2});
  EXPECT_EQ(repeated(slice(1, none), 1, newaxis).to_vector<float>(), (Floats{2, 2})) << "of stride 0";
}

TEST_P(Values, IndicesRefuse) {
  const Tensor x = iota({3, 4});
  const Thrown far = thrown_by([&] { return x(0, 4); });
  EXPECT_EQ(far.code, COMPUTE_ERROR_OUT_OF_RANGE);
  EXPECT_EQ(far.message, "index: 4 is outside axis 1 of extent 4");
  EXPECT_EQ(thrown_by([&] { return x[-4]; }).code, COMPUTE_ERROR_OUT_OF_RANGE);
  EXPECT_EQ(thrown_by([&] { return x(0, 0, 0); }).code, COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(thrown_by([&] { return x(ellipsis, ellipsis); }).code, COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(thrown_by([&] { return x[slice(0, 2, 0)]; }).code, COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(thrown_by([&] { return Tensor(1.0f)[0]; }).code, COMPUTE_ERROR_INVALID_ARGUMENT);
  const Tensor deep = device_.zeros(float32, std::vector<int64_t>(COMPUTE_MAX_RANK, 1));
  EXPECT_EQ(deep(ellipsis, newaxis, 0).rank(), COMPUTE_MAX_RANK);
  EXPECT_EQ(thrown_by([&] { return deep[newaxis]; }).code, COMPUTE_ERROR_INVALID_ARGUMENT);
}

TEST_P(Values, AssignmentToAViewWritesElements) {
  Tensor x = iota({2, 3});
  const Tensor before = x;
  x[0] = device_.from_host({7.0f, 8.0f, 9.0f});
  x(1, slice(1, none)) = -1;
  EXPECT_EQ(before.to_vector<float>(), (Floats{7, 8, 9, 3, -1, -1}));
  x(slice(), slice(none, none, 2)) = device_.from_host({1.0f, 2.0f});  // broadcast
  EXPECT_EQ(before.to_vector<float>(), (Floats{1, 8, 2, 1, -1, 2}));
  Tensor mask = before > 1;
  mask[1] = false;
  EXPECT_EQ(mask.to_vector<uint8_t>(), (Bools{0, 1, 1, 0, 0, 0}));
  EXPECT_EQ(thrown_by([&] { return x.fill(true), 0; }).code, COMPUTE_ERROR_INVALID_ARGUMENT);
  x.fill(0.5);
  EXPECT_EQ(before.to_vector<float>(), Floats(6, 0.5f));
  x = iota({2});  // another handle
  EXPECT_EQ(before.to_vector<float>(), Floats(6, 0.5f));
  EXPECT_EQ(thrown_by([&] {
              return before[0].assign(device_.from_host({1.0, 2.0, 3.0})), 0;
            }).code,
            COMPUTE_ERROR_INVALID_ARGUMENT)
      << "another dtype";
  EXPECT_EQ(thrown_by([&] { return before.assign(iota({4})), 0; }).code, COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(thrown_by([&] { return device_.zeros(int32, {2}).fill(0.5), 0; }).code, COMPUTE_ERROR_INVALID_ARGUMENT);
}

TEST_P(Values, AxesAreANumberOrAList) {
  const Tensor x = iota({2, 3, 4});
  EXPECT_EQ(sum(x).item<float>(), 276);
  EXPECT_EQ(shape_of(sum(x, 1)), (Shape{2, 4}));
  EXPECT_EQ(sum(x, {0, -1}).to_vector<float>(), (Floats{60, 92, 124}));
  EXPECT_EQ(shape_of(mean(x, all_axes, true)), (Shape{1, 1, 1}));
  const std::vector<int64_t> axes{2};
  EXPECT_EQ(shape_of(max(x, axes, true)), (Shape{2, 3, 1}));
  EXPECT_EQ(sum(x, std::vector<int64_t>{}).to_vector<float>(), x.to_vector<float>()) << "no axis";
  EXPECT_EQ(sum(x, 0, false, float64).dtype(), float64);
  EXPECT_EQ(argmax(x).item<int64_t>(), 23);
  EXPECT_EQ(argmax(x, 1, true).to_vector<int64_t>(), (std::vector<int64_t>(8, 2)));
  EXPECT_EQ(var(device_.from_host({1.0f, 2.0f, 3.0f}), 0, 1).item<float>(), 1);
  EXPECT_EQ(thrown_by([&] { return sum(x, 3); }).code, COMPUTE_ERROR_INVALID_ARGUMENT);
  static_assert(!std::is_constructible_v<Axes, bool> && !std::is_constructible_v<Axes, double>);
  static_assert(!std::is_constructible_v<Axes>, "sum(x, {}) must not compile");
}

TEST_P(Values, ListsTakeBracesAndContainers) {
  const Tensor x = device_.from_host({1, 2}), y = device_.from_host({3});
  EXPECT_EQ(concat({x, y, x}).to_vector<int32_t>(), (std::vector<int32_t>{1, 2, 3, 1, 2}));
  const std::vector<Tensor> many(20, y);  // more handles than are kept on the stack
  EXPECT_EQ(concat(many).to_vector<int32_t>(), std::vector<int32_t>(20, 3));
  const std::array<Tensor, 2> two{x, x};
  EXPECT_EQ(stack(two, 1).to_vector<int32_t>(), (std::vector<int32_t>{1, 1, 2, 2}));
  EXPECT_EQ(thrown_by([&] { return concat({}); }).code, COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(take(x, device_.from_host({int64_t{-1}}), 0).to_vector<int32_t>(), std::vector<int32_t>{2});
  EXPECT_EQ(scatter(x, device_.from_host({int64_t{1}}), y, 0, "add").to_vector<int32_t>(),
            (std::vector<int32_t>{1, 5}));
}

TEST_P(Values, OpsMakeTensorsOnADeviceOrAStream) {
  EXPECT_EQ(arange(device_, 4, int32).to_vector<int32_t>(), (std::vector<int32_t>{0, 1, 2, 3}));
  const Stream stream(device_);
  EXPECT_EQ(arange(stream, 3, float32, 1, 0.5).to_vector<float>(), (Floats{1, 1.5f, 2}));
  EXPECT_EQ(linspace(device_, 0, 1, 5, float64).to_vector<double>(), (std::vector<double>{0, 0.25, 0.5, 0.75, 1}));
  EXPECT_EQ(linspace(device_, 0, 1, 4, float64, false).to_vector<double>()[3], 0.75);
  EXPECT_EQ(eye(device_, 2, 3, int32, 1).to_vector<int32_t>(), (std::vector<int32_t>{0, 1, 0, 0, 0, 1}));
  EXPECT_EQ(fill(device_, {2}, float32, 2.5).to_vector<float>(), (Floats{2.5f, 2.5f}));
  EXPECT_EQ(arange(device_, 2, float32).device().name(), GetParam());
  EXPECT_EQ(eye(stream, 1, 1, bool_).device().name(), GetParam());
}

TEST_P(Values, IntoWritesWhatIsGiven) {
  const Tensor x = iota({2, 3}), y = device_.zeros(float32, {3, 2});
  add_into(x, 1, y.transpose());
  EXPECT_EQ(y.to_vector<float>(), (Floats{1, 4, 2, 5, 3, 6}));
  sum_into(x, y[2], 1);
  EXPECT_EQ(y.to_vector<float>(), (Floats{1, 4, 2, 5, 3, 12}));
  arange_into(y(slice(), 0), 3, float32, 5);
  EXPECT_EQ(y.to_vector<float>(), (Floats{5, 4, 6, 5, 7, 12}));
  EXPECT_EQ(thrown_by([&] { return exp_into(x, y), 0; }).code, COMPUTE_ERROR_INVALID_ARGUMENT);
}

TEST_P(Values, ScalarsAreTyped) {
  const Tensor x = device_.from_host({int8_t{1}, int8_t{2}});
  EXPECT_EQ((x + 1).dtype(), int8) << "a literal is weak";
  EXPECT_EQ((x + Tensor::scalar(int32_t{1})).dtype(), int32);
  EXPECT_EQ((x + 1.5f).to_vector<float>(), (Floats{2.5f, 3.5f})) << "a higher kind decides";
  EXPECT_EQ((x + true).to_vector<int8_t>(), (std::vector<int8_t>{2, 3}));
  EXPECT_EQ((device_.from_host({1.0f}) * std::complex<float>(0, 2)).dtype(), complex64);
  static_assert(!std::is_constructible_v<Flag, int> && !std::is_constructible_v<Flag, const char*>);
  static_assert(!std::is_constructible_v<Integer, bool> && !std::is_constructible_v<Integer, double>);
  static_assert(!std::is_constructible_v<Real, bool> && !std::is_constructible_v<Number, bool>);
  static_assert(!std::is_convertible_v<int, DType> && !std::is_convertible_v<char, Tensor>);
  static_assert(!std::is_convertible_v<const char*, Tensor> && !std::is_convertible_v<std::nullptr_t, Tensor>);
  EXPECT_EQ(thrown_by([] { return Integer(std::numeric_limits<uint64_t>::max()); }).code, COMPUTE_ERROR_OUT_OF_RANGE);
}

COMPUTE_ON_DEVICES(Values);

}  // namespace
}  // namespace cxx
