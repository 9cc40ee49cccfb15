// SPDX-License-Identifier: Apache-2.0
// Ops on matrices, which run on the host where the device does not have them, and data without a result.
#include <string_view>

#include "runtime.hpp"
#include "sanitizer.hpp"

namespace runtime {
namespace {

const compute::Tensor& regular() {
  static const compute::Tensor x = remote().from_host({2.0f, 0.0f, 0.0f, 4.0f}, {2, 2});
  return x;
}

// The second of three matrices is singular.
compute::Tensor singular(const compute::Device& device) {
  return device.from_host({1.0f, 0.0f, 0.0f, 1.0f, 1.0f, 2.0f, 2.0f, 4.0f, 2.0f, 0.0f, 0.0f, 2.0f}, {3, 2, 2});
}

TEST(LinearAlgebra, RunsOnTheHostUnlessStrict) {
  const int64_t before = remote().statistics().ops_fallback;
  EXPECT_EQ(compute::inv(regular()).to_vector<float>(), (std::vector<float>{0.5f, 0, 0, 0.25f}));
  EXPECT_EQ(remote().statistics().ops_fallback, before + 1);
  EXPECT_NE(compute::placement_report().find("inv"), std::string::npos);
  compute::check(compute_config_set("COMPUTE_FALLBACK", "strict"));
  const Thrown strict = thrown_by([&] { static_cast<void>(compute::inv(regular())); });
  compute::check(compute_config_set("COMPUTE_FALLBACK", nullptr));
  EXPECT_EQ(strict.code, COMPUTE_ERROR_UNSUPPORTED);
  EXPECT_NE(strict.message.find("COMPUTE_FALLBACK=strict"), std::string::npos) << strict.message;
}

TEST(LinearAlgebra, NamesAMatrixWithoutAResult) {
  for (const compute::Device& device : {remote(), host()}) {
    Thrown thrown = thrown_by([&] { static_cast<void>(compute::inv(singular(device)).to_vector<float>()); });
    EXPECT_EQ(thrown.code, COMPUTE_ERROR_NUMERICAL) << thrown.message;
    EXPECT_EQ(thrown.message, "inv: matrix 1 of the batch is singular");
    const compute::Tensor b = device.from_host({1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f}, {3, 2, 1});
    thrown = thrown_by([&] { static_cast<void>(compute::solve(singular(device), b).to_vector<float>()); });
    EXPECT_EQ(thrown.code, COMPUTE_ERROR_NUMERICAL);
    EXPECT_EQ(thrown.message, "solve: matrix 1 of the batch is singular");
    thrown = thrown_by([&] { static_cast<void>(compute::cholesky(singular(device)).to_vector<float>()); });
    EXPECT_EQ(thrown.message, "cholesky: matrix 1 of the batch is not positive definite");
  }
}

// The fault belongs to the result: the stream goes on.
TEST(LinearAlgebra, KeepsTheStreamAfterAFault) {
  const compute::Stream stream(host());
  const compute::Tensor bad = compute::inv(singular(host()), stream);
  const compute::Tensor good = compute::inv(host().from_host({4.0f}, {1, 1}), stream);
  EXPECT_EQ(good.to_vector<float>(), std::vector<float>{0.25f});
  EXPECT_EQ(thrown_by([&] { static_cast<void>(bad.to_vector<float>()); }).code, COMPUTE_ERROR_NUMERICAL);
  static_cast<void>(thrown_by([&] { stream.synchronize(); }));  // which reports it once
  stream.synchronize();
}

// Large matrices are taken apart into blocks, on the device and on the host alike.
TEST(LinearAlgebra, NamesAMatrixOfManyRows) {
  constexpr int64_t kRows = 513;  // one more than are taken apart, so that the last block has one column
  std::vector<float> values(2 * kRows * kRows);
  for (int64_t i = 0; i < kRows; ++i) values[static_cast<size_t>(i * (kRows + 1))] = 1;
  for (const bool is_remote : {true, false}) {
    const compute::Tensor x = (is_remote ? remote() : host()).from_host(values, {2, kRows, kRows});
    for (const auto& [name, op] :
         {std::pair{"inv", +[](const compute::Tensor& t) { return compute::inv(t); }},
          std::pair{"cholesky", +[](const compute::Tensor& t) { return compute::cholesky(t); }}}) {
      // The minimal plugin's plain loops take minutes under the thread sanitizer; cholesky has a third of the products.
      if (compute::kSanitizer && is_remote && name == std::string_view("inv")) continue;
      const Thrown thrown = thrown_by([&] { static_cast<void>(op(x).to_vector<float>()); });
      EXPECT_EQ(thrown.code, COMPUTE_ERROR_NUMERICAL) << thrown.message;
      EXPECT_EQ(thrown.message.find(std::string(name) + ": matrix 1 of the batch is"), 0u) << thrown.message;
    }
  }
}

}  // namespace
}  // namespace runtime
