// SPDX-License-Identifier: Apache-2.0
// Memory must not grow in a steady loop, nor plans and kernels over many shapes.
#include <gtest/gtest.h>

#include "registry.hpp"

namespace compute::conformance {

namespace {

using oracle::Inputs;

void steady_loop(const Session& session) {
  Inputs inputs(71);
  const Stream stream = session.stream();
  const Operand x = session.upload(inputs.uniform(dtype::FLOAT32, {100, 100}, -1, 1));
  const auto step = [&] {
    const Operand y{Array(dtype::FLOAT32, {100, 100}), session.run("exp", {}, std::span(&x, 1), stream)};
    const Operand both[] = {x, y};
    const Operand z{Array(dtype::FLOAT32, {100, 100}), session.run("add", {}, both, stream)};
    session.run("sum", {{"axes", Shape{1}}}, std::span(&z, 1), stream);
  };
  for (int i = 0; i < 20; ++i) step();
  check(compute_stream_synchronize(stream));
  const compute_device_statistics before = session.statistics();
  for (int i = 0; i < 500; ++i) step();
  check(compute_stream_synchronize(stream));
  const compute_device_statistics after = session.statistics();
  EXPECT_EQ(after.allocations_from_device, before.allocations_from_device);
  EXPECT_EQ(after.memory_reserved, before.memory_reserved);
  EXPECT_EQ(after.memory_used, before.memory_used);
  EXPECT_EQ(after.plans_prepared, before.plans_prepared);
  EXPECT_EQ(after.kernels_compiled, before.kernels_compiled);
}

// New shapes make plans, of which some thousands are kept, but no kernels.
void many_shapes(const Session& session, int64_t count) {
  // Rank 4 has this many shapes of few elements, so that the time goes into plans.
  constexpr int64_t kElements = 1200;
  const Operand x = session.upload(Array(dtype::FLOAT32, {kElements}));
  std::vector<Shape> shapes;
  for (int64_t a = 1; a <= kElements; ++a) {
    for (int64_t b = 1; a * b <= kElements; ++b) {
      for (int64_t c = 1; a * b * c <= kElements; ++c) {
        for (int64_t d = 1; a * b * c * d <= kElements; ++d) shapes.push_back({a, b, c, d});
      }
    }
  }
  ASSERT_GE(static_cast<int64_t>(shapes.size()), count);
  const auto step = [&](const Shape& shape) {
    const int64_t elements = oracle::element_count(shape), zero = 0, one = 1;
    Tensor part, shaped;
    check(compute_tensor_slice(x.tensor, 1, &zero, &elements, &one, part.out()));
    check(compute_tensor_reshape(part, static_cast<int32_t>(shape.size()), shape.data(), shaped.out()));
    const Operand operand{Array(), shaped};
    session.run("exp", {}, std::span(&operand, 1));
  };
  // The first ones may introduce new layout classes: a row, a column, a vector.
  for (int64_t i = 0; i < 1000; ++i) step(shapes[static_cast<size_t>(i * 7919 % count)]);
  check(compute_device_synchronize(session.device()));
  const compute_device_statistics before = session.statistics();
  for (int64_t i = 0; i < count; ++i) step(shapes[static_cast<size_t>(i)]);
  check(compute_device_synchronize(session.device()));
  const compute_device_statistics after = session.statistics();
  EXPECT_GE(after.plans_prepared - before.plans_prepared, count - 4096);
  EXPECT_LE(after.plans_live, 4096);
  EXPECT_LE(after.kernels_compiled - before.kernels_compiled, 8);
  EXPECT_EQ(after.memory_used, before.memory_used);
  EXPECT_EQ(after.blocks_live, before.blocks_live);
}

// A size that no device has is refused with a table of what holds the memory, and nothing sticks.
void out_of_memory(const Session& session) {
  session.need(dtype::FLOAT32, COMPUTE_DTYPE_LEVEL_ARITHMETIC);
  const compute_device_statistics before = session.statistics();
  const int64_t shape[] = {int64_t{1} << 55};
  Tensor x;
  const Error error(compute_tensor_empty(session.device(), COMPUTE_DTYPE_FLOAT32, 1, shape, x.out()));
  EXPECT_TRUE(error.code() == COMPUTE_ERROR_OUT_OF_DEVICE_MEMORY || error.code() == COMPUTE_ERROR_OUT_OF_MEMORY)
      << compute_error_code_name(error.code());
  EXPECT_EQ(x.get(), nullptr);
  EXPECT_EQ(session.statistics().blocks_live, before.blocks_live);
  const Operand y = session.upload(Array(dtype::FLOAT32, {10}));
  session.expect("exp", {}, std::span(&y, 1), bound_of("exp", dtype::FLOAT32), "after a refusal");
}

// Memory comes aligned, whatever was freed before.
void reuse(const Session& session) {
  Inputs inputs(72);
  for (int round = 0; round < 50; ++round) {
    std::vector<Operand> kept;
    for (int64_t n : {1, 17, 300, 4097, 65}) {
      const Operand x = session.upload(inputs.uniform(dtype::FLOAT32, {n + round}, -2, 2));
      const Tensor y = session.run("exp", {}, std::span(&x, 1));
      if (round % 3) kept.push_back(x);
      session.judge(y, reference("exp", {}, std::span(&x, 1)), bound_of("exp", dtype::FLOAT32), "reused memory");
    }
  }
}

}  // namespace

void add_memory_tests(Registry& registry) {
  registry.add({"memory", "steady_loop", steady_loop});
  registry.add({"memory", "many_shapes",
                [](const Session& session) { many_shapes(session, session.level() == Level::FULL ? 100000 : 3000); }});
  registry.add({"memory", "out_of_memory", out_of_memory});
  registry.add({"memory", "reuse", reuse, Level::FULL});
}

}  // namespace compute::conformance
