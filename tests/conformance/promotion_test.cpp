// SPDX-License-Identifier: Apache-2.0
// Dtypes of mixed operands, weak and strong scalars, given outputs, and refusals that suggest a cast.
#include <gtest/gtest.h>

#include <array>

#include "registry.hpp"

namespace compute::conformance {

namespace {

using oracle::Inputs;

int kind(Dtype dtype) {
  return oracle::is_bool(dtype) ? 0 : oracle::is_integer(dtype) ? 1 : oracle::is_float(dtype) ? 2 : 3;
}

// Ops on operands of two dtypes, in both orders where it matters.
void pair(const Session& session, Inputs& inputs, Dtype a, Dtype b) {
  const auto has = [&](Dtype dtype) { return session.supports(dtype, COMPUTE_DTYPE_LEVEL_ARITHMETIC); };
  if (!has(a) || !has(b)) return;
  const Dtype common = oracle::promote(a, b);
  const Operand x[] = {session.upload(inputs.operand("add", 0, 2, a, {97})),
                       session.upload(inputs.operand("add", 1, 2, b, {97}))};
  const std::string what = std::string(oracle::info(a).name) + " and " + oracle::info(b).name;
  if (common == 0) {
    Tensor result;
    const Error error = session.try_run("add", {}, x, nullptr, result);
    EXPECT_EQ(error.code(), COMPUTE_ERROR_INVALID_ARGUMENT) << "add of " << what;
    EXPECT_TRUE(error.mentions(oracle::info(a).name) && error.mentions(oracle::info(b).name) && error.mentions("cast"))
        << error.message();
    return;
  }
  if (!has(common)) return;
  const Operand reversed[] = {x[1], x[0]};
  session.expect("add", {}, x, bound_of("add", common), what);
  session.expect("multiply", {}, reversed, bound_of("multiply", common), what);
  const Dtype quotient = oracle::is_inexact(common) ? common : Dtype{dtype::FLOAT32};
  if (has(quotient)) session.expect("divide", {}, x, bound_of("divide", quotient), what);
  session.expect("equal", {}, x, bound_of("equal", dtype::BOOL), what);
  if (!oracle::is_complex(common)) session.expect("less", {}, reversed, bound_of("less", dtype::BOOL), what);
  if (has(dtype::BOOL)) {
    const Operand chosen[] = {session.upload(inputs.operand("where", 0, 3, dtype::BOOL, {97})), x[0], x[1]};
    session.expect("where", {}, chosen, bound_of("where", common), what);
  }
  session.expect("concat", {{"axis", int64_t{0}}}, x, bound_of("concat", common), what);
  for (const Operand* operands : {x, reversed}) {
    if (operands[0].array.dtype() != common) continue;
    const Operand copy = session.upload(operands[0].array);
    session.expect("subtract", {}, std::array{copy, operands[1]}, bound_of("subtract", common), what + ", in place",
                   nullptr, copy.tensor);
  }
}

void pairs(const Session& session) {
  Inputs inputs(11);
  for (const oracle::DtypeInfo& a : oracle::kDtypes) {
    for (const oracle::DtypeInfo& b : oracle::kDtypes) {
      if (a.id < b.id) pair(session, inputs, a.id, b.id);
    }
  }
}

// The pair that programs meet most often.
void kinds(const Session& session) {
  Inputs inputs(15);
  pair(session, inputs, dtype::INT32, dtype::FLOAT32);
}

// Functions of floats take integers; ops whose kernels have one dtype take operands of two kinds.
void other_ops(const Session& session) {
  Inputs inputs(16);
  const Operand i = session.upload(inputs.uniform(dtype::INT32, {6, 5}, 1, 50)),
                f = session.upload(inputs.uniform(dtype::FLOAT32, {5, 7}, -4, 4));
  for (const char* op : {"sqrt", "exp"}) {
    session.expect(op, {}, std::array{i}, bound_of(op, dtype::FLOAT32), "of integers");
  }
  session.expect("matmul", {}, std::array{i, f}, bound_of("matmul", dtype::FLOAT32), "integers and floats");
  if (!session.supports(dtype::BOOL, COMPUTE_DTYPE_LEVEL_ARITHMETIC)) return;
  const Operand mask = session.upload(inputs.operand("where", 0, 3, dtype::BOOL, {4, 6}));
  session.expect("matmul", {}, std::array{mask, i}, bound_of("matmul", dtype::INT32), "bool and integers");
}

// An output keeps its dtype, if its kind is not lower than the result's. The numbers are exact in all dtypes.
void given_outputs(const Session& session) {
  Inputs inputs(17);
  const auto has = [&](Dtype dtype) { return session.supports(dtype, COMPUTE_DTYPE_LEVEL_ARITHMETIC); };
  constexpr Dtype kSome[] = {dtype::BOOL, dtype::INT32, dtype::FLOAT16, dtype::FLOAT32, dtype::COMPLEX64};
  for (const Dtype from : kSome) {
    for (const Dtype to : kSome) {
      if (!has(from) || !has(to)) continue;
      Array values = inputs.uniform(dtype::INT32, {33}, 0, 1), as(from, {33});
      for (int64_t i = 0; i < 33; ++i) as.set(i, oracle::convert(dtype::INT32, from, values.at(i)));
      const char* op = oracle::is_bool(from) ? "bitwise_xor" : "add";
      const Operand x[] = {session.upload(as), session.upload(as)};
      Tensor output = session.empty(to, {33});
      const Error error = session.try_run(op, {}, x, nullptr, output);
      if (kind(from) > kind(to)) {
        EXPECT_EQ(error.code(), COMPUTE_ERROR_INVALID_ARGUMENT);
        EXPECT_TRUE(error.mentions(oracle::info(from).name) && error.mentions(oracle::info(to).name))
            << error.message();
        continue;
      }
      ASSERT_EQ(error.code(), COMPUTE_OK) << error.message();
      oracle::Result expected = session.reference(op, {}, x);
      for (oracle::Element& e : expected.elements) e.value = oracle::convert(from, to, e.value);
      expected.dtype = to;
      session.judge(output, expected, bound_of("add", to),
                    std::string(oracle::info(from).name) + " into " + oracle::info(to).name);
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
  if (session.supports(dtype::FLOAT16, COMPUTE_DTYPE_LEVEL_ARITHMETIC))
    weak(session.upload(inputs.uniform(dtype::FLOAT16, {9}, -4, 4)), scalar(dtype::FLOAT64, 0.25L, true),
         "weak with float16");
  // A number of a higher kind than the tensor's gives float32.
  const Operand mixed[] = {i8, scalar(dtype::FLOAT64, 2.5L, true)};
  const Operand meant[] = {i8, scalar(dtype::FLOAT32, 2.5L, false)};
  session.judge(session.run("add", {}, mixed), reference("add", {}, meant), bound_of("add", dtype::FLOAT32),
                "weak float64 with int8");
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
  registry.add({"promotion", "kinds", kinds, Level::QUICK, "", {dtype::INT32, dtype::FLOAT32}});
  registry.add({"promotion", "other_ops", other_ops, Level::FULL, "", {dtype::INT32, dtype::FLOAT32}});
  registry.add({"promotion", "given_outputs", given_outputs, Level::FULL});
  registry.add({"promotion", "scalars", scalars});
  registry.add({"promotion", "scalars_make_no_plans", scalars_make_no_plans});
  registry.add({"promotion", "scalars_of_other_ops", scalars_of_other_ops});
}

}  // namespace compute::conformance
