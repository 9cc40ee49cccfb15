// SPDX-License-Identifier: Apache-2.0
// Every elementwise op in every dtype and layout, on special values and random ones.
#include <gtest/gtest.h>

#include <algorithm>

#include "registry.hpp"
#include "tests/oracle/elementwise.hpp"

namespace compute::conformance {

namespace {

using oracle::Elementwise;
using oracle::Inputs;

Dtype operand_dtype(const Elementwise& op, int index, Dtype dtype) {
  return op.output == Elementwise::SECOND && index == 0 ? static_cast<Dtype>(dtype::BOOL) : dtype;
}

// One case: the operands of an op in a dtype, created for each layout.
class Case {
 public:
  Case(const Session& session, const OpRow& row, Dtype dtype)
      : session_(session),
        row_(row),
        op_(*oracle::find_elementwise(row.name)),
        dtype_(dtype),
        seed_(seed_of(row.name + oracle::info(dtype).name)),
        inputs_(seed_) {
    // The rule for complex dtypes is about the operands: a modulus is real.
    bound_ = bound_of(row, dtype);
    what_ = "seed " + std::to_string(seed_);
  }

  std::vector<Array> arrays(const Shape& shape) {
    std::vector<Array> arrays;
    for (int i = 0; i < op_.arity; ++i)
      arrays.push_back(inputs_.operand(row_.name, i, op_.arity, operand_dtype(op_, i, dtype_), shape));
    return arrays;
  }

  std::vector<Operand> operands(const Shape& shape, Layout layout) {
    std::vector<Operand> operands;
    for (int i = 0; i < op_.arity; ++i) {
      const Array base =
          inputs_.operand(row_.name, i, op_.arity, operand_dtype(op_, i, dtype_), base_shape(layout, shape));
      operands.push_back(view(layout, session_.upload(base), shape));
    }
    return operands;
  }

  void run(const std::vector<Operand>& operands, const std::string& what, compute_stream* stream = nullptr,
           Tensor output = {}) {
    session_.expect(row_.name, {}, operands, bound_, what + ", " + what_, stream, std::move(output));
  }

  void run(const Shape& shape, Layout layout, compute_stream* stream = nullptr) {
    run(operands(shape, layout), name(layout), stream);
  }

  // All combinations of special values, and as many random ones.
  void special_values(Layout layout) {
    const int64_t all = op_.arity < 3 ? Inputs::combinations(row_.name, op_.arity, dtype_) : 1500;
    const int64_t count = std::min<int64_t>(all, 4096) + 333;
    std::vector<Operand> x;
    for (const Array& array : arrays(layout == Layout::CONTIGUOUS ? Shape{count} : Shape{count / 37 + 1, 37}))
      x.push_back(session_.upload(array, layout));
    run(x, std::string("special values, ") + name(layout));
  }

  void lengths() {
    for (int64_t n : {1, 2, 3, 5, 7, 8, 9, 15, 17, 31, 33, 63, 65, 127, 129, 511, 513, 1025})
      run({n}, Layout::CONTIGUOUS);
  }

  void layouts() {
    const Stream stream = session_.stream();
    for (Layout layout : kEveryLayout) {
      run({67}, layout, stream);
      run({13, 37}, layout);
      run({3, 4, 5, 2, 3}, layout, stream);
    }
  }

  void mixed_layouts() {
    if (op_.arity == 1) return;
    std::vector<Operand> x;
    for (int i = 0; i < op_.arity; ++i) {
      const Layout layout = kEveryLayout[static_cast<size_t>(i * 3 + 1) % std::size(kEveryLayout)];
      x.push_back(operands({6, 17}, layout)[static_cast<size_t>(i)]);
    }
    run(x, "layouts mixed");
  }

  void broadcasting() {
    if (op_.arity == 1) return;
    const std::vector<std::vector<Shape>> cases = {{{7, 1}, {1, 19}, {19}}, {{33}, {}, {1}},
                                                   {{}, {5, 3}, {3}},       {{4, 1, 3}, {5, 1}, {}},
                                                   {{0, 3}, {1}, {1, 3}},   {{2, 1}, {2, 65}, {1, 1}}};
    for (const std::vector<Shape>& shapes : cases) {
      std::vector<Operand> x;
      for (int i = 0; i < op_.arity; ++i)
        x.push_back(operands(shapes[static_cast<size_t>(i)], Layout::CONTIGUOUS)[static_cast<size_t>(i)]);
      run(x, "broadcasting");
    }
  }

  void degenerate_shapes() {
    for (const Shape& shape : std::vector<Shape>{{}, {0}, {3, 0, 2}, {1}, {1, 1, 1}}) {
      for (Layout layout : {Layout::CONTIGUOUS, Layout::NEGATIVE, Layout::TRANSPOSED}) run(shape, layout);
    }
  }

  void outputs() {
    for (Layout layout : {Layout::CONTIGUOUS, Layout::TRANSPOSED, Layout::STEPPED, Layout::NEGATIVE, Layout::OFFSET,
                          Layout::PERMUTED}) {
      session_.expect_into(row_.name, {}, operands({9, 21}, Layout::CONTIGUOUS), bound_, what_, layout);
    }
    session_.expect_into(row_.name, {}, operands({9, 21}, Layout::NEGATIVE), bound_, what_, Layout::TRANSPOSED);
  }

  // The result takes the place of the last operand, in its view.
  void in_place() {
    const oracle::Result result = evaluate(op_, arrays({1}));
    for (Layout layout : {Layout::CONTIGUOUS, Layout::NEGATIVE}) {
      const std::vector<Operand> x = operands({11, 23}, layout);
      if (x.back().array.dtype() != result.dtype) return;
      run(x, std::string("in place, ") + name(layout), nullptr, x.back().tensor);
    }
  }

  // Every value of a half type; every pair of bytes.
  void exhaustive() {
    const bool bytes = oracle::info(dtype_).size_bytes == 1 && !oracle::is_bool(dtype_);
    if (op_.arity == 1 && (oracle::is_half(dtype_) || bytes)) {
      run({session_.upload(Inputs::exhaustive(dtype_))}, "every value");
    } else if (op_.arity == 2 && bytes) {
      const Array values = Inputs::exhaustive(dtype_);
      run({session_.upload(values.reshape({256, 1})), session_.upload(values)}, "every pair");
    }
  }

  // The error of exp(y log x) grows with |y log x|.
  void large_exponents() {
    Array x = inputs_.uniform(dtype_, {1500}, -2, 2), y = inputs_.uniform(dtype_, {1500}, -20, 20);
    oracle::Value base, exponent;
    base.re = -1.0717874168774442L;
    base.im = -0.28144242950779164L;
    exponent.re = -0.35007550380717756L;
    exponent.im = -1.6825504838226077L;
    x.set(0, base);
    y.set(0, exponent);
    run({session_.upload(x), session_.upload(y)}, "large exponents");
  }

  // Exponents for which devices have fast paths: each for all bases, and next to each other.
  void short_exponents() {
    constexpr oracle::Real kExponents[] = {2, 3, -1, 0.5L, 1, 0, -2, 4, 1.75L};
    const Array bases = oracle::is_complex(dtype_) ? inputs_.uniform(dtype_, {261}, -9, 9)
                                                   : inputs_.operand("pow", 0, 2, dtype_, {261});
    const Operand x = session_.upload(bases);
    const auto set = [](Array& exponents, int64_t i, oracle::Real exponent) {
      oracle::Value value;
      value.re = exponent;
      exponents.set(i, value);
    };
    Array mixed(dtype_, {261});
    for (int64_t i = 0; i < 261; ++i) set(mixed, i, kExponents[i % 8]);
    run({x, session_.upload(mixed)}, "short exponents");
    for (oracle::Real exponent : kExponents) {
      Array one(dtype_, {1});
      set(one, 0, exponent);
      run({x, session_.upload(one)}, "one short exponent");
    }
  }

  // Long enough that devices divide the work.
  void long_one() { run({20011}, Layout::CONTIGUOUS); }

 private:
  const Session& session_;
  const OpRow& row_;
  const Elementwise& op_;
  Dtype dtype_;
  Bound bound_;
  uint64_t seed_;
  Inputs inputs_;
  std::string what_;
};

// Whether the op computes integers and bool in float32.
bool computes_floats(const OpRow& row) { return row.classes == "FLOAT" || row.classes == "INEXACT"; }

// A dtype that the op does not take is refused, before any device is asked.
void refuses(const Session& session, const OpRow& row) {
  const Elementwise& op = *oracle::find_elementwise(row.name);
  for (Dtype dtype : tested_dtypes(Level::FULL)) {
    EXPECT_EQ(oracle::takes(op, dtype), in_class(dtype, row.classes))
        << row.name << ": the oracle and the schema's class " << row.classes << " differ about "
        << oracle::info(dtype).name;
    const bool is_converted = computes_floats(row) && !oracle::is_inexact(dtype);
    if (in_class(dtype, row.classes) || is_converted || !session.supports(dtype, COMPUTE_DTYPE_LEVEL_STORAGE)) continue;
    std::vector<Operand> operands;
    for (int i = 0; i < op.arity; ++i) operands.push_back(session.upload(Array(operand_dtype(op, i, dtype), {3})));
    Tensor result;
    const Error error = session.try_run(row.name, {}, operands, nullptr, result);
    EXPECT_EQ(error.code(), COMPUTE_ERROR_INVALID_ARGUMENT)
        << row.name << " of " << oracle::info(dtype).name << ": " << error.message();
    EXPECT_TRUE(error.mentions(row.name + ":")) << error.message();
    EXPECT_EQ(result.get(), nullptr);
  }
}

}  // namespace

void add_elementwise_tests(Registry& registry) {
  for (const OpRow& row : op_rows()) {
    if (!row.elementwise || !oracle::find_elementwise(row.name)) continue;
    const Elementwise* op = oracle::find_elementwise(row.name);
    // In the order in which smoke takes the first one that an op has.
    std::vector<Dtype> dtypes = tested_dtypes(registry.level());
    std::stable_partition(dtypes.begin(), dtypes.end(), [](Dtype d) { return d == dtype::INT32; });
    std::stable_partition(dtypes.begin(), dtypes.end(), [](Dtype d) { return d == dtype::FLOAT32; });
    std::erase_if(dtypes, [&](Dtype d) { return !in_class(d, row.classes) || !takes(*op, d); });
    for (size_t i = 0; i < dtypes.size(); ++i) {
      const Dtype dtype = dtypes[i];
      const Level level = i == 0 ? Level::SMOKE : Level::QUICK;
      // Quick: every op is met in both layouts, every dtype in one, so that a device which compiles stays within 300.
      const bool contiguous = i != 1, strided = i == 1 || dtypes.size() == 1;
      Test test{"elementwise", row.name + "_" + oracle::info(dtype).name, nullptr, level, row.name, {dtype}};
      test.body = [row, dtype, contiguous, strided](const Session& session) {
        Case c(session, row, dtype);
        if (row.name == "pow" && oracle::is_complex(dtype)) c.large_exponents();
        if (row.name == "pow" && oracle::is_inexact(dtype)) c.short_exponents();
        if (session.level() != Level::FULL) {
          if (contiguous) c.special_values(Layout::CONTIGUOUS);
          if (strided && session.level() == Level::QUICK) c.special_values(Layout::NEGATIVE);
          return;
        }
        c.special_values(Layout::CONTIGUOUS);
        c.special_values(Layout::NEGATIVE);
        c.lengths();
        c.layouts();
        c.mixed_layouts();
        c.broadcasting();
        c.degenerate_shapes();
        c.outputs();
        c.in_place();
        c.exhaustive();
        c.long_one();
      };
      registry.add(std::move(test));
    }
    if (computes_floats(row)) {
      Test test{"elementwise", row.name + "_of_integers",     nullptr, Level::FULL,
                row.name,      {dtype::INT32, dtype::FLOAT32}};
      test.body = [row, op](const Session& session) {
        Inputs inputs(seed_of(row.name));
        std::vector<Operand> x;
        for (int i = 0; i < op->arity; ++i) x.push_back(session.upload(inputs.uniform(dtype::INT32, {41}, -5, 5)));
        session.expect(row.name, {}, x, bound_of(row, dtype::FLOAT32), "of integers");
      };
      registry.add(std::move(test));
    }
    Test refusal{"refusal", row.name, [row](const Session& session) { refuses(session, row); }, Level::QUICK, row.name};
    refusal.runs_ops = false;
    registry.add(std::move(refusal));
  }
}

}  // namespace compute::conformance
