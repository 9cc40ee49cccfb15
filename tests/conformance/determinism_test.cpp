// SPDX-License-Identifier: Apache-2.0
// The same bits each time: of ops with the attribute `deterministic`, and of every op with COMPUTE_DETERMINISTIC.
#include <cstdlib>
#include <cstring>

#include <gtest/gtest.h>

#include "registry.hpp"
#include "tests/oracle/inputs.hpp"

namespace compute::conformance {

namespace {

// Whether every op is deterministic in this process.
bool is_deterministic() {
  const char* text = std::getenv("COMPUTE_DETERMINISTIC");
  return text != nullptr && std::string_view(text) == "1";
}

// Runs the op again and again, every second time while other work of the device is under way.
void expect_same_bits(const Session& session, const std::string& op, const Attributes& attributes,
                      const std::vector<Operand>& inputs) {
  oracle::Inputs numbers(5);
  const bool is_full = session.level() == Level::FULL;
  const int64_t edge = is_full ? 256 : 48;
  const Operand a = session.upload(numbers.uniform(dtype::FLOAT32, {edge, edge}, -1, 1));
  const Stream stream = session.stream(), other = session.stream();
  const int rounds = is_full ? 100 : 10;
  const Array first = session.download(session.run(op, attributes, inputs, stream));
  for (int round = 0; round < rounds; ++round) {
    Tensor unrelated;
    if (round % 2 == 1) unrelated = session.run("matmul", {}, std::vector<Operand>{a, a}, other);
    const Array again = session.download(session.run(op, attributes, inputs, stream));
    ASSERT_EQ(again.size_bytes(), first.size_bytes());
    ASSERT_EQ(std::memcmp(again.data(), first.data(), static_cast<size_t>(first.size_bytes())), 0)
        << op << " gives other bits in round " << round;
  }
}

// Many updates of few elements, of magnitudes that make each order of a sum another number.
void repeated_updates(const Session& session) {
  oracle::Inputs numbers(11);
  const Operand updates = session.upload(numbers.uniform(dtype::FLOAT32, {5000, 8}, -3, 1)),
                x = session.upload(numbers.uniform(dtype::FLOAT32, {16, 8}, -1, 1)),
                rows = session.upload(numbers.indices(dtype::INT64, {5000}, 16, false)),
                places = session.upload(numbers.indices(dtype::INT64, {5000, 8}, 16, false));
  const Operand factors = session.upload(numbers.uniform(dtype::FLOAT32, {5000, 8}, 0.5L, 1.5L));
  const int64_t yes = 1;
  expect_same_bits(session, "take_grad", {{"size", int64_t{16}}, {"deterministic", yes}}, {updates, rows});
  for (const char* reduction : {"set", "add"}) {
    expect_same_bits(session, "scatter", {{"reduction", std::string(reduction)}, {"deterministic", yes}},
                     {x, places, updates});
  }
  if (session.level() != Level::FULL) return;
  expect_same_bits(session, "scatter", {{"reduction", std::string("mul")}, {"deterministic", yes}},
                   {x, places, factors});
}

// Ops that have no attribute for it.
void every_sum(const Session& session) {
  oracle::Inputs numbers(12);
  const auto uniform = [&](const Shape& shape) {
    return session.upload(numbers.uniform(dtype::FLOAT32, shape, -3, 1));
  };
  const Operand image = uniform({2, 3, 20, 20}), rows = uniform({300, 40});
  expect_same_bits(session, "sum", {}, {uniform({100000})});
  expect_same_bits(session, "matmul", {}, {rows, uniform({40, 70})});
  expect_same_bits(session, "take_grad", {{"size", int64_t{4}}},
                   {rows, session.upload(numbers.indices(dtype::INT64, {300}, 4, false))});
  expect_same_bits(session, "segment_reduce", {}, {rows, session.upload(Array(dtype::INT64, {1}))});
  const Attributes window = {{"window", Shape{3, 3}}, {"strides", Shape{1, 1}}};
  const Operand pooled = session.upload(session.download(session.run("max_pool", window, std::vector<Operand>{image})));
  expect_same_bits(session, "max_pool_grad", window, {uniform({2, 3, 18, 18}), image, pooled});
  expect_same_bits(session, "convolution_grad_weight", {{"kernel", Shape{3, 3}}}, {uniform({2, 4, 18, 18}), image});
  expect_same_bits(session, "convolution_grad_input", {{"shape", Shape{20, 20}}},
                   {uniform({2, 4, 18, 18}), uniform({4, 3, 3, 3})});
  expect_same_bits(session, "layer_norm_grad", {}, {rows, rows, uniform({300}), uniform({300}), uniform({40})});
  expect_same_bits(session, "cumulative_sum", {}, {uniform({70000})});
}

}  // namespace

void add_determinism_tests(Registry& registry) {
  const std::vector<Dtype> dtypes{dtype::FLOAT32, dtype::INT32, dtype::INT64};
  registry.add({"determinism", "repeated_updates", repeated_updates, Level::QUICK, "take_grad", dtypes});
  if (!is_deterministic()) return;
  registry.add({"determinism", "every_sum", every_sum, Level::QUICK, "sum", dtypes});
}

}  // namespace compute::conformance
