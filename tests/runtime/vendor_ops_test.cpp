// SPDX-License-Identifier: Apache-2.0
// Ops and a dtype that a plugin offers: ctest sets COMPUTE_MINIMAL_OPS, with which the minimal plugin packs two numbers
// of 4 bits in a byte.
#include <algorithm>

#include "runtime.hpp"

namespace runtime {
namespace {

using compute::Op;
using compute::Tensor;

const compute::DType packed_dtype{compute_dtype{64}};

std::vector<uint8_t> numbers() {
  std::vector<uint8_t> values(12);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<uint8_t>(i * 7 % 16);
  return values;
}

std::vector<float> times(double scale) {
  std::vector<float> scaled;
  for (const uint8_t value : numbers()) scaled.push_back(static_cast<float>(scale * value));
  return scaled;
}

Tensor pack(compute::List<compute::Attribute> attributes = {}) {
  return Op("minimal.pack")({remote().from_host(numbers())}, attributes);
}
Tensor unpack(const Tensor& packed, compute::List<compute::Attribute> attributes = {}) {
  return Op("minimal.unpack")({packed}, attributes);
}

// Also opens the plugin, which no device has done.
TEST(VendorOps, AreFoundByTheirName) {
  const compute_op* op = nullptr;
  compute::check(compute_op_find("minimal.unpack", 1, &op));
  auto info = compute::sized<compute_op_info>();
  compute::check(compute_op_get_info(op, &info));
  EXPECT_STREQ(info.attributes, "low_first: int64 = 1; scale: float64 = 1!");
  EXPECT_STREQ(compute_dtype_name(64), "minimal_u4x2");
  EXPECT_EQ(compute_dtype_size(64), 1);
  compute_error* error = compute_op_find("minimal.pack", 2, &op);
  EXPECT_EQ(compute_error_get_code(error), COMPUTE_ERROR_NOT_FOUND);
  compute_error_free(error);
  error = compute_op_find("minimal.broken", 0, &op);
  EXPECT_EQ(compute_error_get_code(error), COMPUTE_ERROR_NOT_FOUND) << "its texts cannot be parsed";
  compute_error_free(error);
  error = compute_op_find("minimal.nothing", 0, &op);
  EXPECT_EQ(compute_error_get_code(error), COMPUTE_ERROR_NOT_FOUND);
  compute_error_free(error);
}

TEST(VendorOps, RunWithAttributes) {
  const Tensor packed = pack();
  EXPECT_EQ(packed.dtype(), packed_dtype);
  ASSERT_EQ(packed.size(), 6);
  EXPECT_EQ(unpack(packed).to_vector<float>(), times(1));
  EXPECT_EQ(unpack(packed, {{"scale", 0.25}}).to_vector<float>(), times(0.25));
  std::vector<float> swapped = times(1);
  for (size_t i = 0; i < swapped.size(); i += 2) std::swap(swapped[i], swapped[i + 1]);
  EXPECT_EQ(unpack(packed, {{"low_first", 0}}).to_vector<float>(), swapped);
  EXPECT_EQ(unpack(pack({{"low_first", 0}}), {{"low_first", 0}}).to_vector<float>(), times(1));
  EXPECT_EQ(thrown_by([&] { unpack(packed, {{"order", 1}}); }).code, COMPUTE_ERROR_INVALID_ARGUMENT);
}

// The library copies, views and indexes elements whose meaning it does not know.
TEST(VendorOps, HaveADtypeOfTheirOwn) {
  const Tensor packed = pack();
  std::vector<uint8_t> bytes(6), expected;
  compute::check(compute_tensor_read(packed.get(), bytes.data(), 6));
  const std::vector<uint8_t> values = numbers();
  for (size_t i = 0; i < 12; i += 2) expected.push_back(static_cast<uint8_t>(values[i] | values[i + 1] << 4));
  EXPECT_EQ(bytes, expected);
  const Tensor reversed = packed[compute::slice(compute::none, compute::none, -1)];
  compute::check(compute_tensor_read(reversed.get(), bytes.data(), 6));
  std::reverse(expected.begin(), expected.end());
  EXPECT_EQ(bytes, expected);
  const Tensor taken = compute::take(packed, remote().from_host(std::vector<int64_t>{5, 0}), 0);
  EXPECT_EQ(taken.dtype(), packed_dtype);
  EXPECT_EQ(unpack(taken).to_vector<float>(), (std::vector<float>{10.f - 4, 13, 0, 7})) << "numbers 10, 11, 0 and 1";
  const Tensor filled = remote().empty(packed_dtype, {3});
  const std::vector<uint8_t> given = {0x21, 0x43, 0x65};
  compute::check(compute_tensor_write(filled.get(), given.data(), 3));
  EXPECT_EQ(unpack(filled).to_vector<float>(), (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

TEST(VendorOps, RunInPlansAndGraphs) {
  const Tensor packed = pack();
  const Op op("minimal.unpack");
  const compute::Plan plan(op, remote(), {packed});
  EXPECT_EQ(plan({packed}).to_vector<float>(), times(1));
  EXPECT_EQ(plan({packed}, {{"scale", 3.0}}).to_vector<float>(), times(3));
  const compute::Stream stream(remote());
  Tensor y;
  const compute::Graph graph = compute::Graph::record(stream, [&] {
    const Tensor unpacked = op({packed}, {{"scale", 2.0}}, stream);
    y = compute::add(unpacked, unpacked, stream);
  });
  graph.run(stream);
  stream.synchronize();
  EXPECT_EQ(y.to_vector<float>(), times(4));
}

TEST(VendorOps, AreRefusedElsewhere) {
  const Tensor x = host().from_host(numbers());
  const Thrown thrown = thrown_by([&] { static_cast<void>(Op("minimal.pack")({x})); });
  EXPECT_EQ(thrown.code, COMPUTE_ERROR_UNSUPPORTED) << thrown.message;
  EXPECT_NE(thrown.message.find("minimal"), std::string::npos) << thrown.message;
  const Tensor packed = pack();
  EXPECT_EQ(thrown_by([&] { static_cast<void>(packed.to(host())); }).code, COMPUTE_ERROR_UNSUPPORTED);
  for (const Thrown& arithmetic :
       {thrown_by([&] { static_cast<void>(packed + packed); }), thrown_by([&] { static_cast<void>(packed + 1); }),
        thrown_by([&] { static_cast<void>(compute::cast(packed, compute::float32)); }),
        thrown_by([&] { static_cast<void>(compute::sum(packed)); })}) {
    EXPECT_NE(arithmetic.code, COMPUTE_OK);
    EXPECT_NE(arithmetic.message.find("minimal_u4x2"), std::string::npos) << arithmetic.message;
  }
}

}  // namespace
}  // namespace runtime
