// SPDX-License-Identifier: Apache-2.0
// Dtypes of mixed operands, weak and strong scalars, and refusals that suggest a cast.
#include <gtest/gtest.h>

#include "registry.hpp"

namespace compute::conformance {

namespace {

using oracle::Inputs;

void pairs(const Session& session) {
  Inputs inputs(11);
  for (const oracle::DtypeInfo& a : oracle::kDtypes) {
    for (const oracle::DtypeInfo& b : oracle::kDtypes) {
      if (a.id == b.id || oracle::is_bool(a.id) || oracle::is_bool(b.id)) continue;
      const Dtype promoted = oracle::promote(a.id, b.id);
      if (!session.supports(a.id, COMPUTE_DTYPE_ARITHMETIC) || !session.supports(b.id, COMPUTE_DTYPE_ARITHMETIC))
        continue;
      const Operand x[] = {session.upload(inputs.operand("add", 0, 2, a.id, {97})),
                           session.upload(inputs.operand("add", 1, 2, b.id, {97}))};
      if (promoted != 0) {
        if (!session.supports(promoted, COMPUTE_DTYPE_ARITHMETIC)) continue;
        session.expect("add", {}, x, bound_of("add", promoted), "mixed dtypes");
        session.expect("multiply", {}, x, bound_of("multiply", promoted), "mixed dtypes");
        session.expect("equal", {}, x, bound_of("equal", dtype::BOOL), "mixed dtypes");
        continue;
      }
      Tensor result;
      const Error error = session.try_run("add", {}, x, nullptr, result);
      EXPECT_EQ(error.code(), COMPUTE_ERROR_INVALID_ARGUMENT) << "add of " << a.name << " and " << b.name;
      EXPECT_TRUE(error.mentions(a.name) && error.mentions(b.name) && error.mentions("cast")) << error.message();
    }
  }
}

Operand scalar(Dtype dtype, Real value, bool weak) {
  Operand x{Array(dtype, {}), {}};
  x.array.set(0, oracle::is_inexact(dtype) ? Value::of(value) : Value::of(static_cast<oracle::Integer>(value)));
  check(compute_tensor_scalar(dtype, x.array.data(), weak ? 1 : 0, x.tensor.out()));
  return x;
}

// A strong scalar is an operand as any other; a weak one takes the dtype of the others.
void scalars(const Session& session) {
  Inputs inputs(12);
  const Operand f32 = session.upload(inputs.uniform(dtype::FLOAT32, {33}, -4, 4)),
                i8 = session.upload(inputs.uniform(dtype::INT8, {33}, -100, 100));
  const Operand strong[] = {f32, scalar(dtype::FLOAT32, 1.5L, false)};
  session.expect("multiply", {}, strong, bound_of("multiply", dtype::FLOAT32), "strong scalar");

  const auto weak = [&](const Operand& x, const Operand& s, const std::string& what) {
    const Operand given[] = {x, s};
    const Operand meant[] = {
        x, scalar(x.array.dtype(),
                  oracle::is_inexact(s.array.dtype()) ? s.array.at(0).re : static_cast<Real>(s.array.at(0).integer),
                  false)};
    session.judge(session.run("add", {}, given), reference("add", {}, meant), bound_of("add", x.array.dtype()), what);
  };
  weak(f32, scalar(dtype::FLOAT64, 2.5L, true), "weak float64 with float32");
  weak(f32, scalar(dtype::INT64, 3, true), "weak integer with float32");
  weak(i8, scalar(dtype::INT64, 3, true), "weak integer with int8");
  if (session.supports(dtype::FLOAT16, COMPUTE_DTYPE_ARITHMETIC))
    weak(session.upload(inputs.uniform(dtype::FLOAT16, {9}, -4, 4)), scalar(dtype::FLOAT64, 0.25L, true),
         "weak with float16");
  // A float does not become an integer, weak or not.
  const Operand mixed[] = {i8, scalar(dtype::FLOAT64, 2.5L, true)};
  Tensor result;
  const Error error = session.try_run("add", {}, mixed, nullptr, result);
  EXPECT_EQ(error.code(), COMPUTE_ERROR_INVALID_ARGUMENT) << error.message();
  // Scalars travel with the call: nothing is moved for them.
  const int64_t moved = session.statistics().transfers_to_device;
  session.run("multiply", {}, strong);
  EXPECT_EQ(session.statistics().transfers_to_device, moved);
}

// Ops that are not elementwise take scalars, too.
void scalars_of_other_ops(const Session& session) {
  const Operand number = scalar(dtype::FLOAT32, 2.5L, false), last = scalar(dtype::INT64, -1, false);
  const Operand x = session.upload(Inputs(14).uniform(dtype::FLOAT32, {5}, -4, 4));
  const Stream stream = session.stream();  // scalars alone do not name a device
  const auto expect = [&](const char* op, const std::vector<Operand>& operands, const Attributes& attributes = {}) {
    session.expect(op, attributes, operands, bound_of(op, dtype::FLOAT32), "scalars", stream);
  };
  expect("sum", {number});
  expect("var", {number});
  expect("argmin", {number});
  expect("cast", {number}, {{"dtype", int64_t{dtype::INT32}}});
  expect("stack", {number, number});
  expect("take", {x, last});
}

// Values of a scalar make no plans and no kernels.
void scalars_make_no_plans(const Session& session) {
  Inputs inputs(13);
  const Operand x = session.upload(inputs.uniform(dtype::FLOAT32, {33}, -4, 4));
  const auto run = [&](Real value) {
    const Operand operands[] = {x, scalar(dtype::FLOAT32, value, true)};
    session.expect("add", {}, operands, bound_of("add", dtype::FLOAT32), "scalar");
  };
  run(0.5L);
  const compute_device_statistics before = session.statistics();
  for (int i = 0; i < 50; ++i) run(i * 0.75L);
  const compute_device_statistics after = session.statistics();
  EXPECT_EQ(after.plans_prepared, before.plans_prepared);
  EXPECT_EQ(after.kernels_compiled, before.kernels_compiled);
}

}  // namespace

void add_promotion_tests(Registry& registry) {
  registry.add({"promotion", "pairs", pairs, Level::FULL});
  registry.add({"promotion", "scalars", scalars});
  registry.add({"promotion", "scalars_make_no_plans", scalars_make_no_plans});
  registry.add({"promotion", "scalars_of_other_ops", scalars_of_other_ops});
}

}  // namespace compute::conformance
