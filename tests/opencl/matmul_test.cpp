// SPDX-License-Identifier: Apache-2.0
// Matrix products through CLBlast, judged by the oracle; and without it.
#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "device.hpp"
#include "tests/oracle/judge.hpp"
#include "tests/oracle/ops.hpp"

namespace compute::opencl_tests {
namespace {

using oracle::Array;
using oracle::Shape;

class OpenclMatmul : public testing::Test {
 protected:
  // Multiplies into an output that holds NaN before.
  void multiply(compute_dtype dtype, const Shape& a_shape, const Shape& b_shape, bool transposed = false) {
    oracle::Inputs inputs(42);
    const Shape stored_b = transposed ? Shape{b_shape[1], b_shape[0]} : b_shape;
    Array a = inputs.uniform(dtype, a_shape, -1, 1), b = inputs.uniform(dtype, stored_b, -1, 1);
    Tensor b_tensor = upload(device_, b);
    if (transposed) {
      b_tensor = b_tensor.transpose();
      b = b.permute({1, 0});
    }
    Shape shape = a_shape;
    shape.back() = b_shape.back();
    Array output(dtype, shape);
    for (int64_t i = 0; i < output.size(); ++i)
      output.set(i, oracle::Value::of(std::numeric_limits<oracle::Real>::quiet_NaN()));
    const Tensor result = upload(device_, output);
    const Tensor a_tensor = upload(device_, a);
    check(compute_matmul_into(stream_.get(), a_tensor.get(), b_tensor.get(), nullptr, result.get()));
    // Of large ones the first rows and the last.
    const Array actual = download(result, output);
    const int rows_axis = output.rank() - 2;
    const int64_t rows = shape[static_cast<size_t>(rows_axis)], count = output.size() > 100'000 ? 4 : rows;
    for (const int64_t first : {int64_t{0}, rows - count}) {
      const std::array arrays = {a.slice(rows_axis, first, count, 1), b};
      const Array part = actual.slice(rows_axis, first, count, 1);
      const oracle::Verdict verdict =
          oracle::judge(part, oracle::reference_matmul(arrays, {}), {oracle::Bound::TERMS, 0});
      EXPECT_TRUE(verdict.passed()) << verdict.message;
      EXPECT_EQ(verdict.judged, part.size());
    }
  }

  Log log_;
  Device device_ = Device::open("opencl");
  Stream stream_ = Stream(device_);
};

TEST_F(OpenclMatmul, Float32) {
  multiply(COMPUTE_DTYPE_FLOAT32, {33, 17}, {17, 9});
  multiply(COMPUTE_DTYPE_FLOAT32, {33, 17}, {17, 9}, true);
  EXPECT_TRUE(log_.holds("CLBlast's Sgemm on")) << log_.text();
  // Large ones go another way: they take memory of the plan's for copies in the form that its kernel wants.
  multiply(COMPUTE_DTYPE_FLOAT32, {1024, 1024}, {1024, 1024});
  multiply(COMPUTE_DTYPE_FLOAT32, {1030, 1025}, {1025, 1041}, true);
  multiply(COMPUTE_DTYPE_FLOAT32, {2, 1024, 1024}, {2, 1024, 1024});
  EXPECT_NE(std::string(device_.info().libraries).find("CLBlast, "), std::string::npos) << device_.info().libraries;
  EXPECT_NE(load_report().find("CLBlast: "), std::string::npos) << load_report();
}

TEST_F(OpenclMatmul, Float32InBatches) {
  multiply(COMPUTE_DTYPE_FLOAT32, {5, 12, 7}, {5, 7, 9});
  multiply(COMPUTE_DTYPE_FLOAT32, {3, 5, 12, 7}, {3, 5, 7, 9});
  EXPECT_TRUE(log_.holds("CLBlast's Sgemm in batches")) << log_.text();
}

// One kernel of each: they take seconds to compile.
TEST_F(OpenclMatmul, Float64) {
  multiply(COMPUTE_DTYPE_FLOAT64, {33, 17}, {17, 9});
  EXPECT_TRUE(log_.holds("CLBlast's Dgemm")) << log_.text();
}

TEST_F(OpenclMatmul, Complex64) {
  multiply(COMPUTE_DTYPE_COMPLEX64, {33, 17}, {17, 9});
  EXPECT_TRUE(log_.holds("CLBlast's Cgemm")) << log_.text();
}

TEST_F(OpenclMatmul, Complex128) {
  multiply(COMPUTE_DTYPE_COMPLEX128, {33, 17}, {17, 9});
  EXPECT_TRUE(log_.holds("CLBlast's Zgemm")) << log_.text();
}

// It adds up float16 in float16, which is not asked for.
TEST_F(OpenclMatmul, Float16IsGenerated) {
  multiply(COMPUTE_DTYPE_FLOAT16, {33, 170}, {170, 9});
  EXPECT_FALSE(log_.holds("CLBlast")) << log_.text();
}

// With a library path on which libclblast.so.1 is not a library.
using OpenclWithoutClblast = OpenclMatmul;
TEST_F(OpenclWithoutClblast, SaysSoOnceAndGoesOn) {
  multiply(COMPUTE_DTYPE_FLOAT32, {33, 17}, {17, 9});
  multiply(COMPUTE_DTYPE_FLOAT64, {5, 33, 17}, {5, 17, 9});
  const std::string warning = "because CLBlast was not found: tried libclblast.so.1";
  const std::string text = log_.text();
  const size_t first = text.find(warning);
  ASSERT_NE(first, std::string::npos) << text;
  EXPECT_EQ(text.find(warning, first + 1), std::string::npos) << text;
  EXPECT_NE(text.find("file too short"), std::string::npos) << text;
  EXPECT_NE(load_report().find("tried libclblast.so.1, libclblast.so"), std::string::npos) << load_report();
  EXPECT_FALSE(log_.holds("CLBlast's")) << text;
}

std::string matrix_products_of(const char* device) {
  int64_t count = 0;
  check(compute_device_attributes(device, nullptr, 0, &count));
  std::vector<compute_device_attribute> attributes(static_cast<size_t>(count));
  attributes.at(0).struct_size = sizeof(compute_device_attribute);
  check(compute_device_attributes(device, attributes.data(), count, &count));
  for (const compute_device_attribute& attribute : attributes) {
    if (std::string(attribute.name) == "matrix_products") return attribute.value;
  }
  return "";
}

// On a device that says it is a GPU, which no table knows.
class OpenclUnknownGpu : public OpenclMatmul {
 protected:
  void SetUp() override {
    if (device_.info().kind == DeviceKind::cpu) GTEST_SKIP() << "the loader knows no layers";
    if (std::string(device_.info().libraries).find("CLBlast, ") == std::string::npos)
      GTEST_SKIP() << "CLBlast is not installed";
  }
};

TEST_F(OpenclUnknownGpu, MultipliesByGeneratedKernelsWhereNothingIsToBeWon) {
  EXPECT_EQ(matrix_products_of("opencl0:0"), "generated; large ones by CLBlast if it wins a trial on the device");
  multiply(COMPUTE_DTYPE_FLOAT32, {33, 17}, {17, 9});
  multiply(COMPUTE_DTYPE_FLOAT32, {1, 100'000}, {100'000, 1});
  multiply(COMPUTE_DTYPE_FLOAT32, {1024, 1024}, {1024, 1});
  multiply(COMPUTE_DTYPE_FLOAT32, {1, 1024}, {1024, 1024});
  multiply(COMPUTE_DTYPE_FLOAT32, {3, 520}, {520, 100}, true);
  multiply(COMPUTE_DTYPE_BFLOAT16, {8, 520}, {520, 100}, true);
  multiply(COMPUTE_DTYPE_FLOAT32, {64, 2048}, {2048, 64});
  multiply(COMPUTE_DTYPE_FLOAT32, {2048, 64}, {64, 512});
  multiply(COMPUTE_DTYPE_FLOAT32, {4, 256, 256}, {4, 256, 256});
  EXPECT_FALSE(log_.holds("CLBlast")) << log_.text();
}

TEST_F(OpenclUnknownGpu, TriesCLBlastForLargeOnes) {
  multiply(COMPUTE_DTYPE_FLOAT32, {512, 512}, {512, 512});
  multiply(COMPUTE_DTYPE_FLOAT32, {520, 530}, {530, 540}, true);
  const std::string text = log_.text(), line = "tried large products of float32 on ";
  const size_t first = text.find(line);
  ASSERT_NE(first, std::string::npos) << text;
  EXPECT_EQ(text.find(line, first + 1), std::string::npos) << text;
}

TEST_F(OpenclUnknownGpu, KeepsWhatWasTried) {
  multiply(COMPUTE_DTYPE_FLOAT32, {512, 512}, {512, 512});
  EXPECT_FALSE(log_.holds("tried large products")) << log_.text();
}

// Under COMPUTE_OPENCL_MATMUL=generated.
TEST(OpenclGenerated, ComputesProductsByItself) {
  const Device device = Device::open("opencl0:0");
  EXPECT_EQ(matrix_products_of("opencl0:0"), "generated: selected by COMPUTE_OPENCL_MATMUL");
  const Tensor x = device.full({8, 8}, 2.f);
  EXPECT_EQ(matmul(x, x).to_vector<float>(), std::vector<float>(64, 32.f));
}

}  // namespace
}  // namespace compute::opencl_tests
