// SPDX-License-Identifier: Apache-2.0
// Matrix products on a fake cuBLASLt: checks by results how the plugin passes shapes, views and batches.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <compute/compute.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/cuda/cublaslt_api.hpp"

namespace {

using compute::Device;
using compute::Tensor;

int64_t library_calls() {
  void* library = dlopen("libcublasLt.so.13", RTLD_NOW | RTLD_NOLOAD);
  return library == nullptr ? 0 : reinterpret_cast<int64_t (*)()>(dlsym(library, "fake_cublaslt_calls"))();
}

int32_t compute_type() {
  void* library = dlopen("libcublasLt.so.13", RTLD_NOW | RTLD_NOLOAD);
  return library == nullptr ? -1 : reinterpret_cast<int32_t (*)()>(dlsym(library, "fake_cublaslt_compute_type"))();
}

// A tensor on the device, and its elements with strides, so that the test can compute the product itself.
struct Operand {
  Tensor tensor;
  std::vector<float> values;
  std::vector<int64_t> shape, strides;

  float at(const std::vector<int64_t>& index) const {
    int64_t place = 0;
    for (size_t i = 0; i < index.size(); ++i) place += index[i] * strides[i];
    return values[static_cast<size_t>(place)];
  }
};

std::vector<int64_t> dense(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

// Small integers, so that every sum is exact.
Operand make(const std::vector<int64_t>& shape, uint32_t seed) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  Operand made;
  for (int64_t i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    made.values.push_back(static_cast<float>(static_cast<int>(seed >> 28) - 8));
  }
  made.shape = shape;
  made.strides = dense(shape);
  made.tensor = Device::open("cuda0").from_host(std::span<const float>(made.values), std::span<const int64_t>(shape));
  return made;
}

Operand permuted(Operand x, const std::vector<int32_t>& axes) {
  x.tensor = x.tensor.permute(std::span<const int32_t>(axes));
  const auto shape = x.shape, strides = x.strides;
  for (size_t i = 0; i < axes.size(); ++i) {
    x.shape[i] = shape[static_cast<size_t>(axes[i])];
    x.strides[i] = strides[static_cast<size_t>(axes[i])];
  }
  return x;
}

// a [batch…, m, k] times b [batch…, k, n], batches of one rank that broadcast.
std::vector<float> product(const Operand& a, const Operand& b) {
  const size_t rank = a.shape.size();
  std::vector<int64_t> shape(rank);
  for (size_t i = 0; i + 2 < rank; ++i) shape[i] = std::max(a.shape[i], b.shape[i]);
  shape[rank - 2] = a.shape[rank - 2];
  shape[rank - 1] = b.shape[rank - 1];
  std::vector<float> result;
  std::vector<int64_t> index(rank, 0);
  while (true) {
    std::vector<int64_t> at_a = index, at_b = index;
    for (size_t i = 0; i + 2 < rank; ++i) {
      if (a.shape[i] == 1) at_a[i] = 0;
      if (b.shape[i] == 1) at_b[i] = 0;
    }
    float sum = 0;
    for (int64_t k = 0; k < a.shape[rank - 1]; ++k) {
      at_a[rank - 1] = k;
      at_b[rank - 2] = k;
      sum += a.at(at_a) * b.at(at_b);
    }
    result.push_back(sum);
    size_t axis = rank;
    while (axis > 0 && ++index[axis - 1] == shape[axis - 1]) index[--axis] = 0;
    if (axis == 0) return result;
  }
}

// The product, by at most `most_calls` of the library.
void expect_product(const Operand& a, const Operand& b, int64_t most_calls, const char* what) {
  const int64_t before = library_calls();
  const std::vector<float> got = compute::matmul(a.tensor, b.tensor).to_vector<float>();
  const int64_t calls = library_calls() - before;
  EXPECT_GE(calls, 1) << what;
  EXPECT_LE(calls, most_calls) << what;
  EXPECT_EQ(got, product(a, b)) << what;
}

TEST(CudaMatmul, TakesTransposedOperandsAsTheyAre) {
  for (const int64_t m : {1, 5, 16}) {
    for (const int64_t n : {1, 7, 16}) {
      for (const int64_t k : {1, 3, 16}) {
        const std::string what = std::to_string(m) + " x " + std::to_string(k) + " x " + std::to_string(n);
        expect_product(make({m, k}, 1), make({k, n}, 2), 1, what.c_str());
        expect_product(permuted(make({k, m}, 3), {1, 0}), make({k, n}, 4), 1, (what + ", a transposed").c_str());
        expect_product(make({m, k}, 5), permuted(make({n, k}, 6), {1, 0}), 1, (what + ", b transposed").c_str());
        expect_product(permuted(make({k, m}, 7), {1, 0}), permuted(make({n, k}, 8), {1, 0}), 1,
                       (what + ", both").c_str());
      }
    }
  }
}

TEST(CudaMatmul, TakesBatchesInOneCall) {
  expect_product(make({4, 3, 5}, 1), make({4, 5, 6}, 2), 1, "a batch");
  expect_product(make({2, 4, 3, 5}, 3), make({2, 4, 5, 6}, 4), 1, "two batch axes that continue each other");
  expect_product(make({4, 3, 5}, 5), make({1, 5, 6}, 6), 1, "one b for all, which makes a longer");
  expect_product(make({1, 3, 5}, 7), make({4, 5, 6}, 8), 1, "one a for all");
  expect_product(make({4, 1, 5}, 9), make({1, 5, 6}, 10), 1, "vectors, which make a matrix");
  expect_product(permuted(make({3, 4, 5}, 11), {1, 0, 2}), make({4, 5, 6}, 12), 1, "batches between the rows");
  expect_product(permuted(make({4, 5, 3}, 13), {0, 2, 1}), permuted(make({4, 6, 5}, 14), {0, 2, 1}), 1,
                 "a batch, both transposed");
}

TEST(CudaMatmul, WalksBatchAxesThatDoNotContinueEachOther) {
  expect_product(permuted(make({4, 2, 3, 5}, 1), {1, 0, 2, 3}), make({2, 4, 5, 6}, 2), 4, "swapped batch axes");
  expect_product(make({2, 1, 3, 5}, 3), make({1, 4, 5, 6}, 4), 4, "batch axes that broadcast against each other");
  expect_product(make({2, 3, 2, 3, 4}, 5), make({2, 1, 2, 4, 5}, 6), 4, "three batch axes, one of them broadcast");
}

TEST(CudaMatmul, LeavesOutputsInTheCallersLayout) {
  const Operand a = make({6, 4}, 1), b = make({4, 5}, 2);
  const Device device = Device::open("cuda0");
  const Tensor memory = device.from_host(std::vector<float>(30, -1), {5, 6});
  const Tensor out = memory.permute({1, 0});
  const int64_t before = library_calls();
  compute::check(compute_matmul_into(nullptr, a.tensor.get(), b.tensor.get(), nullptr, out.get()));
  EXPECT_EQ(library_calls() - before, 1);
  const std::vector<float> expected = product(a, b), got = memory.to_vector<float>();
  for (size_t i = 0; i < 6; ++i) {
    for (size_t j = 0; j < 5; ++j) EXPECT_EQ(got[j * 6 + i], expected[i * 5 + j]);
  }
}

TEST(CudaMatmul, AddsTheBiasOfLargeProducts) {
  // Of fewer terms than matrix units of TF32 take.
  const Operand x = make({2, 140, 63}, 1), weight = make({63, 130}, 2), bias = make({130}, 3);
  const Operand flat = make({280, 63}, 1);
  std::vector<float> expected = product(flat, weight);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] += bias.values[i % 130];
  int64_t before = library_calls();
  EXPECT_EQ(compute::affine(x.tensor, weight.tensor, bias.tensor).to_vector<float>(), expected);
  EXPECT_EQ(library_calls() - before, 1);
  const Operand c = make({280, 130}, 4);
  std::vector<float> sums = product(flat, weight);
  for (size_t i = 0; i < sums.size(); ++i) sums[i] = 2 * sums[i] - 3 * c.values[i] + bias.values[i % 130];
  before = library_calls();
  EXPECT_EQ(compute::gemm(c.tensor, flat.tensor, weight.tensor, bias.tensor, 2, -3).to_vector<float>(), sums);
  EXPECT_EQ(library_calls() - before, 1);
  // Another bias with the same plan.
  const Operand other = make({130}, 5);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] += other.values[i % 130] - bias.values[i % 130];
  EXPECT_EQ(compute::affine(x.tensor, weight.tensor, other.tensor).to_vector<float>(), expected);
}

TEST(CudaMatmul, HasThePrecisionOfTheOp) {
  const Device device = Device::open("cuda0");
  const Tensor x = make({16, 16}, 1).tensor;
  const auto used = [&](std::string_view precision) {
    static_cast<void>(compute::matmul(x, x, {}, precision));
    return compute_type();
  };
  EXPECT_EQ(used("highest"), compute::cuda::CUBLAS_COMPUTE_32F);
  EXPECT_EQ(used("tf32"), compute::cuda::CUBLAS_COMPUTE_32F_FAST_TF32);
  EXPECT_EQ(used("bf16"), compute::cuda::CUBLAS_COMPUTE_32F_FAST_16BF);
  static_cast<void>(compute::affine(x, x, {}, 0, "none", {}, "tf32"));
  EXPECT_EQ(compute_type(), compute::cuda::CUBLAS_COMPUTE_32F_FAST_TF32);
}

TEST(CudaMatmul, SaysWhyAnActivationIsAStepOfItsOwn) {
  const Device device = Device::open("cuda0");
  const compute_op* op = nullptr;
  compute::check(compute_op_find("affine", 0, &op));
  const int64_t x[] = {512, 63}, weight[] = {63, 128}, bias[] = {128};
  const auto spec = [](std::span<const int64_t> shape) {
    compute_tensor_spec made{};
    made.struct_size = sizeof made;
    made.dtype = COMPUTE_DTYPE_FLOAT32;
    made.rank = static_cast<int32_t>(shape.size());
    made.shape = shape.data();
    return made;
  };
  const compute_tensor_spec specs[] = {spec(x), spec(weight), spec(bias)};
  const compute_string relu{"relu", 4};
  compute_attribute activation{};
  activation.struct_size = sizeof activation;
  activation.name = "activation";
  activation.name_size = 10;
  activation.kind = COMPUTE_KIND_STRING;
  activation.count = 1;
  activation.values = &relu;
  auto support = compute::sized<compute_support>();
  compute::check(compute_op_query(device.get(), op, &activation, 1, specs, 3, nullptr, 0, &support));
  EXPECT_EQ(support.support, COMPUTE_SUPPORT_DECOMPOSED);
  EXPECT_STREQ(compute_text_data(support.text),
               "affine on cuda0: contraction: cuBLASLt does not apply the activation as the op does");
  compute_text_free(support.text);
  compute::check(compute_op_query(device.get(), op, nullptr, 0, specs, 3, nullptr, 0, &support));
  EXPECT_EQ(support.support, COMPUTE_SUPPORT_NATIVE);
  EXPECT_EQ(support.reason, COMPUTE_REASON_NONE);
  EXPECT_STREQ(compute_text_data(support.text), "");
  compute_text_free(support.text);
}

}  // namespace
