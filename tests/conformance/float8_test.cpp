// SPDX-License-Identifier: Apache-2.0
// float8: conversions of every code and of what lies between them, moves, comparisons, products, and refusals.
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "registry.hpp"
#include "tests/dlpack/dlpack.hpp"
#include "tests/oracle/float8.hpp"

namespace compute::conformance {

namespace {

using oracle::Float8;
using oracle::Inputs;

using Bytes = std::vector<uint8_t>;
constexpr Float8 kFormats[] = {oracle::kE4m3fn, oracle::kE5m2};
const Bound kExact{Bound::EXACT, 0};

class Case {
 public:
  Case(const Session& session, const std::string& what)
      : session_(session), seed_(seed_of("float8 " + what)), inputs_(seed_) {}

  bool is_full() const { return session_.level() == Level::FULL; }
  std::string seed() const { return ", seed " + std::to_string(seed_); }
  Inputs& inputs() { return inputs_; }

  Tensor tensor(const Float8& format, const Bytes& codes, const Shape& shape) const {
    Tensor made;
    check(compute_tensor_from_host(session_.device(), format.id, static_cast<int32_t>(shape.size()), shape.data(),
                                   codes.data(), made.out()));
    return made;
  }
  static Bytes every_code() {
    Bytes codes;
    for (int i = 0; i < 256; ++i) codes.push_back(static_cast<uint8_t>(i));
    return codes;
  }
  // Without NaN and infinities.
  Bytes finite(const Float8& format, int64_t count) {
    const Array random = inputs_.uniform(dtype::UINT8, {count}, 0, 255);
    Bytes codes;
    for (int64_t i = 0; i < count; ++i) {
      const auto code = static_cast<uint8_t>(random.at(i).integer);
      codes.push_back((code & 0x7f) > format.last() ? code & 0x9f : code);
    }
    return codes;
  }
  // The same numbers as float32, which holds them all.
  static Array wide(const Float8& format, const Bytes& codes, const Shape& shape) {
    Array array(dtype::FLOAT32, shape);
    for (size_t i = 0; i < codes.size(); ++i) array.set(static_cast<int64_t>(i), Value::of(format.value(codes[i])));
    return array;
  }
  Bytes bytes(const Tensor& x) const {
    Bytes read(static_cast<size_t>(compute_tensor_size_bytes(x)));
    check(compute_tensor_read(x, read.data(), static_cast<int64_t>(read.size())));
    return read;
  }
  Tensor run(const std::string& op, const Attributes& attributes, std::initializer_list<Tensor> inputs,
             Tensor output = {}) const {
    std::vector<Operand> operands;
    for (const Tensor& x : inputs) operands.push_back({{}, x});
    return session_.run(op, attributes, operands, nullptr, std::move(output));
  }
  void expect_bytes(const Tensor& actual, const Float8& format, const Bytes& expected, const std::string& what) const {
    EXPECT_EQ(compute_tensor_dtype(actual), format.id) << what;
    const Bytes read = bytes(actual);
    ASSERT_EQ(read.size(), expected.size()) << what;
    for (size_t i = 0; i < read.size(); ++i)
      ASSERT_EQ(int{read[i]}, int{expected[i]}) << what << ", element " << i << seed();
  }

  // ---- Conversions ----

  // Every dtype at full; below, those that differ most: of each a device may compile a kernel.
  bool is_tested(Dtype dtype) const {
    const bool is_one_of_few = dtype == dtype::BOOL || dtype == dtype::UINT8 || dtype == dtype::INT32 ||
                               dtype == dtype::FLOAT16 || dtype == dtype::FLOAT32 || dtype == dtype::FLOAT64;
    return session_.supports(dtype, COMPUTE_DTYPE_LEVEL_CONVERT) && (is_full() || is_one_of_few);
  }

  void from(const Float8& format) {
    for (const oracle::DtypeInfo& to : oracle::kDtypes) {
      if (!is_tested(to.id)) continue;
      const Bytes codes = every_code();
      const Tensor made = run("cast", {{"dtype", int64_t{to.id}}}, {tensor(format, codes, {256})});
      const Operand numbers[] = {{wide(format, codes, {256}), {}}};
      session_.judge(made, session_.reference("cast", {{"dtype", int64_t{to.id}}}, numbers), kExact,
                     std::string(format.name) + " to " + to.name);
    }
    for (const Float8& to : kFormats) {
      Bytes expected;
      for (const uint8_t code : every_code())
        expected.push_back(to.id == format.id ? code : to.code(format.value(code)));
      const Tensor made = run("cast", {{"dtype", int64_t{to.id}}}, {tensor(format, every_code(), {256})});
      expect_bytes(made, to, expected, std::string(format.name) + " to " + to.name);
    }
  }

  // The numbers between which a format rounds, and their neighbours in the dtype.
  Array edges(const Float8& format, Dtype dtype) const {
    std::vector<Real> numbers = {0,
                                 1e-30L,
                                 448,
                                 464,
                                 465,
                                 480,
                                 57344,
                                 61440,
                                 61441,
                                 65504,
                                 1e30L,
                                 std::numeric_limits<Real>::infinity(),
                                 std::numeric_limits<Real>::quiet_NaN()};
    for (int code = 0; code <= format.last(); ++code) {
      const Real low = format.value(code);
      const Real middle =
          code == format.last() ? low + (low - format.value(code - 1)) / 2 : (low + format.value(code + 1)) / 2;
      const Real unit = oracle::ulp(oracle::format(dtype), middle);
      for (const Real x : {low, middle, middle - unit, middle + unit}) numbers.push_back(x);
    }
    Array array(dtype, {static_cast<int64_t>(2 * numbers.size())});
    for (size_t i = 0; i < numbers.size(); ++i) {
      array.set(static_cast<int64_t>(2 * i), Value::of(numbers[i]));
      array.set(static_cast<int64_t>(2 * i + 1), Value::of(-numbers[i]));
    }
    return array;
  }

  void convert(const Array& from, const Float8& format, const std::string& what) {
    Bytes expected;
    const bool is_number = oracle::is_integer(from.dtype()) || oracle::is_bool(from.dtype());
    for (int64_t i = 0; i < from.size(); ++i) {
      const Value value = from.at(i);
      expected.push_back(format.code(is_number ? static_cast<Real>(value.integer) : value.re));
    }
    const Operand x = session_.upload(from);
    const Tensor made = run("cast", {{"dtype", int64_t{format.id}}}, {x.tensor});
    expect_bytes(made, format, expected,
                 std::string(oracle::info(from.dtype()).name) + " to " + format.name + ", " + what);
  }

  void to(const Float8& format) {
    for (const oracle::DtypeInfo& info : oracle::kDtypes) {
      if (oracle::is_complex(info.id) || !is_tested(info.id)) continue;
      if (oracle::is_half(info.id) || (info.size_bytes == 1 && !oracle::is_bool(info.id))) {
        convert(Inputs::exhaustive(info.id), format, "every value");
        continue;
      }
      const int64_t count = is_full() ? 100000 : 3000;
      if (oracle::is_float(info.id)) {
        convert(edges(format, info.id), format, "edges");
        const Real range = format.value(format.last()) * 1.2L;
        convert(inputs_.uniform(info.id, {count}, -range, range), format, "random");
        convert(inputs_.uniform(info.id, {count}, -0.05L, 0.05L), format, "random near 0");
      } else if (oracle::is_bool(info.id)) {
        convert(inputs_.uniform(info.id, {17}, 0, 1), format, "random");
      } else {
        const bool is_signed = oracle::category(info.id) == oracle::Category::SIGNED;
        convert(inputs_.uniform(info.id, {count}, is_signed ? -1000 : 0, 1000), format, "small");
        Array ends(info.id, {4});
        ends.set(0, Value::of(oracle::integer_min(info.id)));
        ends.set(1, Value::of(oracle::integer_max(info.id)));
        ends.set(2, Value::of(oracle::Integer{464}));
        ends.set(3, Value::of(oracle::Integer{465}));
        convert(ends, format, "ends");
      }
    }
    // A view, and a result in another layout of memory.
    const Array numbers = inputs_.uniform(dtype::FLOAT32, {7, 9}, -4, 4);
    const Operand x = session_.upload(numbers, Layout::NEGATIVE);
    Bytes expected;
    for (int64_t i = 0; i < numbers.size(); ++i) expected.push_back(format.code(numbers.at(i).re));
    expect_bytes(run("cast", {{"dtype", int64_t{format.id}}}, {x.tensor}), format, expected, "a view");
  }

  // ---- Moves ----

  void moves(const Float8& format) {
    session_.need(dtype::BOOL, COMPUTE_DTYPE_LEVEL_CONVERT);
    session_.need(dtype::INT64, COMPUTE_DTYPE_LEVEL_CONVERT);
    const Bytes codes = every_code();
    const Tensor x = tensor(format, codes, {16, 16});
    expect_bytes(run("copy", {}, {x}), format, codes, "copy");
    Tensor turned;
    const int32_t axes[] = {1, 0};
    check(compute_tensor_permute(x, 2, axes, turned.out()));
    Bytes transposed, doubled = codes, rows;
    for (size_t i = 0; i < 256; ++i) transposed.push_back(codes[i % 16 * 16 + i / 16]);
    expect_bytes(run("copy", {}, {turned}), format, transposed, "copy of a transposed view");
    doubled.insert(doubled.end(), transposed.begin(), transposed.end());
    expect_bytes(run("concat", {}, {x, turned}), format, doubled, "concat");
    Array chosen(dtype::INT64, {3});
    for (int64_t i = 0; i < 3; ++i) chosen.set(i, Value::of(oracle::Integer{i * 7 % 16}));
    for (const int64_t row : {0, 7, 14})
      rows.insert(rows.end(), codes.begin() + row * 16, codes.begin() + row * 16 + 16);
    expect_bytes(run("take", {}, {x, session_.upload(chosen).tensor}), format, rows, "take");
    Bytes flipped = codes;
    for (size_t i = 0; i < 256; ++i) flipped[i] = codes[(i / 16 + 13) % 16 * 16 + i % 16];
    expect_bytes(run("roll", {{"shift", int64_t{3}}, {"axis", int64_t{0}}}, {x}), format, flipped, "roll");
    // scatter writes rows 2 and 5.
    Array where(dtype::INT64, {2, 16});
    for (int64_t i = 0; i < 32; ++i) where.set(i, Value::of(oracle::Integer{i < 16 ? 2 : 5}));
    Bytes written = codes;
    for (size_t i = 0; i < 32; ++i) written[(i < 16 ? 32 : 64) + i] = 0x11;
    expect_bytes(run("scatter", {}, {x, session_.upload(where).tensor, tensor(format, Bytes(32, 0x11), {2, 16})}),
                 format, written, "scatter");
    const Attributes fill{{"shape", Shape{5}}, {"dtype", int64_t{format.id}}, {"value", std::complex<double>(0.3)}};
    expect_bytes(run("fill", fill, {}, session_.empty(format.id, {5})), format, Bytes(5, format.code(0.3L)), "fill");
    // Positions where the condition is false come from the other tensor; NaN becomes the one that conversions make.
    Array condition(dtype::BOOL, {256});
    for (int64_t i = 0; i < 256; ++i) condition.set(i, Value::of(i % 3 == 0));
    Bytes mixed;
    for (size_t i = 0; i < 256; ++i) mixed.push_back(i % 3 != 0 ? 0x22 : format.code(format.value(codes[i])));
    expect_bytes(
        run("where", {},
            {session_.upload(condition).tensor, tensor(format, codes, {256}), tensor(format, Bytes(256, 0x22), {256})}),
        format, mixed, "where");
  }

  void shares(const Float8& format) {
    const Tensor x = tensor(format, every_code(), {16, 16});
    DLManagedTensorVersioned* managed = nullptr;
    const Error error(compute_tensor_to_dlpack(x, -1, &managed));
    if (error.code() == COMPUTE_ERROR_UNSUPPORTED) throw Lacking(error.message());
    ASSERT_FALSE(error) << error.message();
    EXPECT_EQ(managed->dl_tensor.dtype.code, format.id == oracle::kE4m3fn.id ? 10 : 12);
    EXPECT_EQ(managed->dl_tensor.dtype.bits, 8);
    Tensor back;
    check(compute_tensor_from_dlpack(managed, back.out()));
    expect_bytes(back, format, every_code(), "DLPack");
  }

  void compares(const Float8& format) {
    session_.need(dtype::BOOL, COMPUTE_DTYPE_LEVEL_ARITHMETIC);
    const Bytes codes = every_code();
    Bytes others = codes;
    for (size_t i = 0; i < 256; i += 2) others[i] = 0x80;
    const Operand numbers[] = {{wide(format, codes, {256}), {}}, {wide(format, others, {256}), {}}};
    const Tensor x = tensor(format, codes, {256}), y = tensor(format, others, {256});
    for (const char* op : {"equal", "not_equal"})
      session_.judge(run(op, {}, {x, y}), session_.reference(op, {}, numbers), kExact, op);
    session_.judge(run("any", {}, {x}), session_.reference("any", {}, std::span(numbers).first(1)), kExact, "any");
  }

  // ---- Products ----

  void product(const Float8& a, const Float8& b, int64_t m, int64_t k, int64_t n, bool is_turned, Dtype to) {
    const Bytes left = finite(a, m * k), right = finite(b, k * n);
    Operand y{wide(b, right, {k, n}), tensor(b, right, {k, n})};
    if (is_turned) {
      // The memory has the columns as rows.
      Bytes turned(right.size());
      for (int64_t i = 0; i < k; ++i)
        for (int64_t j = 0; j < n; ++j) turned[static_cast<size_t>(j * k + i)] = right[static_cast<size_t>(i * n + j)];
      const int32_t axes[] = {1, 0};
      const Tensor memory = tensor(b, turned, {n, k});
      check(compute_tensor_permute(memory, 2, axes, y.tensor.out()));
    }
    const Operand numbers[] = {{wide(a, left, {m, k}), {}}, {y.array, {}}};
    oracle::Result expected = session_.reference("matmul", {}, numbers);
    expected.dtype = to;
    Tensor output;
    if (to != dtype::FLOAT32) output = session_.empty(to, {m, n});
    const Tensor made = run("matmul", {}, {tensor(a, left, {m, k}), y.tensor}, output);
    session_.judge(made, expected, bound_of("matmul", dtype::FLOAT32),
                   std::string(a.name) + " by " + b.name + " " + std::to_string(m) + "x" + std::to_string(k) + "x" +
                       std::to_string(n) + seed());
  }

  void products(Dtype to) {
    for (const Float8& a : kFormats) {
      for (const Float8& b : kFormats) {
        if (!is_full() && a.id != oracle::kE4m3fn.id) continue;
        product(a, b, 33, 17, 9, false, to);
        product(a, b, 16, 64, 32, true, to);
        if (!is_full()) continue;
        for (const auto& [m, k, n] : {std::array<int64_t, 3>{1, 1, 1},
                                      {1, 100, 37},
                                      {3, 31, 130},
                                      {65, 129, 63},
                                      {128, 16, 16},
                                      {5, 1000, 3},
                                      {2, 4096, 48}}) {
          product(a, b, m, k, n, false, to);
          product(a, b, m, k, n, true, to);
        }
      }
    }
    const Tensor batch = tensor(oracle::kE4m3fn, Bytes(2 * 3 * 4, 0x38), {2, 3, 4});  // ones
    const Tensor vector = tensor(oracle::kE5m2, Bytes(4, 0x40), {4});                 // twos
    const Array sums = session_.download(run("matmul", {}, {batch, vector}));
    for (int64_t i = 0; i < sums.size(); ++i) EXPECT_EQ(sums.at(i).re, 8);
  }

  // ---- Refusals ----

  void refusals(const Float8& format) {
    const Tensor x = tensor(format, every_code(), {16, 16});
    const std::vector<Operand> pair = {{{}, x}, {{}, x}};
    for (const char* op : {"add", "less", "exp", "sum", "sort", "softmax"}) {
      const bool is_binary = std::strcmp(op, "add") == 0 || std::strcmp(op, "less") == 0;
      Tensor made;
      const Error error = session_.try_run(op, {}, std::span(pair).first(is_binary ? 2 : 1), nullptr, made);
      EXPECT_EQ(error.code(), COMPUTE_ERROR_INVALID_ARGUMENT) << op;
      EXPECT_TRUE(error.mentions(format.name) && error.mentions("float32")) << op << ": " << error.message();
    }
    const Operand wide_operand = session_.upload(wide(format, every_code(), {16, 16}));
    Tensor made;
    const std::vector<Operand> mixed = {{{}, x}, wide_operand};
    const Error error = session_.try_run("matmul", {}, mixed, nullptr, made);
    EXPECT_TRUE(error.mentions("no common dtype") && error.mentions("cast")) << error.message();
  }

  // Expressions compute in float32 and round at the output.
  void expressions(const Float8& format) {
    Expression expression;
    const char* names[] = {"x"};
    const std::string text = std::string("x * 2 + 0.25; convert(x * 0.5, ") + format.name + "); bitcast(x, uint8)";
    check(compute_expression_parse(text.c_str(), names, 1, nullptr, 0, expression.out()));
    const Tensor x = tensor(format, every_code(), {256});
    compute_tensor* const input = x;
    compute_tensor* outputs[3] = {};
    check(compute_map(nullptr, expression, &input, 1, nullptr, 0, outputs, 3));
    Tensor results[3];
    for (int i = 0; i < 3; ++i) *results[i].out() = outputs[i];
    const Array numbers = session_.download(results[0]);
    EXPECT_EQ(numbers.dtype(), dtype::FLOAT32);
    Bytes halves;
    for (int i = 0; i < 256; ++i) {
      const Real value = format.value(i);
      halves.push_back(format.code(value / 2));
      if (std::isnan(value)) continue;
      EXPECT_EQ(numbers.at(i).re, static_cast<Real>(static_cast<float>(value * 2 + 0.25L))) << i;
    }
    // Computed NaNs have any sign.
    EXPECT_EQ(compute_tensor_dtype(results[1]), format.id);
    const Bytes read = bytes(results[1]);
    ASSERT_EQ(read.size(), halves.size());
    for (size_t i = 0; i < read.size(); ++i) {
      if (std::isnan(format.value(halves[i])) && std::isnan(format.value(read[i]))) continue;
      EXPECT_EQ(int{read[i]}, int{halves[i]}) << "half of " << i;
    }
    EXPECT_EQ(bytes(results[2]), every_code());
  }

 private:
  const Session& session_;
  uint64_t seed_;
  Inputs inputs_;
};

void need(const Session& session, const Float8& format, uint32_t level) {
  if (!session.states(format.id, level)) throw Lacking(std::string(format.name) + " is not supported");
}

}  // namespace

void add_float8_tests(Registry& registry) {
  for (const Float8& format : kFormats) {
    const auto add = [&](const char* what, void (Case::*body)(const Float8&), bool runs_ops = true) {
      Test test{"float8", std::string(what) + "_" + format.name, nullptr, Level::QUICK};
      test.body = [=](const Session& session) {
        need(session, format, COMPUTE_DTYPE_LEVEL_CONVERT);
        (Case(session, what).*body)(format);
      };
      test.runs_ops = runs_ops;
      registry.add(std::move(test));
    };
    add("from", &Case::from);
    add("to", &Case::to);
    add("moves", &Case::moves);
    add("compares", &Case::compares);
    add("shares", &Case::shares, false);
    add("refusals", &Case::refusals, false);
    add("expressions", &Case::expressions);
  }
  for (const Dtype to : {dtype::FLOAT32, dtype::FLOAT16, dtype::BFLOAT16}) {
    registry.add({"float8", std::string("matmul_") + oracle::info(to).name,
                  [to](const Session& session) {
                    need(session, oracle::kE4m3fn, COMPUTE_DTYPE_LEVEL_MATMUL);
                    session.need(to, COMPUTE_DTYPE_LEVEL_CONVERT);
                    Case(session, oracle::info(to).name).products(to);
                  },
                  Level::QUICK});
  }
}

}  // namespace compute::conformance
