// SPDX-License-Identifier: Apache-2.0
// Ops without inputs.
#include <gtest/gtest.h>

#include "registry.hpp"

namespace compute::conformance {

namespace {

using Number = std::complex<double>;

class Case {
 public:
  Case(const Session& session, const std::string& op, Dtype dtype)
      : session_(session), op_(op), dtype_(dtype), stream_(session.stream()) {}

  void run(Attributes attributes, const std::string& what) {
    attributes["dtype"] = int64_t{dtype_};
    Bound bound = bound_of(op_, dtype_);
    session_.expect(op_, attributes, {}, bound, std::string(oracle::info(dtype_).name) + " " + what, stream_);
    if (session_.level() == Level::FULL)
      session_.expect_into(op_, attributes, {}, bound, std::string(oracle::info(dtype_).name) + " " + what,
                           Layout::STEPPED);
  }

  Dtype dtype() const { return dtype_; }
  bool full() const { return session_.level() == Level::FULL; }

 private:
  const Session& session_;
  std::string op_;
  Dtype dtype_;
  Stream stream_;
};

void test_arange(Case& c) {
  if (oracle::is_bool(c.dtype())) return;
  c.run({{"size", int64_t{100}}}, "from 0");
  if (!c.full()) return;
  c.run({{"start", int64_t{3}}, {"step", int64_t{1}}, {"size", int64_t{0}}}, "no element");
  c.run({{"start", int64_t{3}}, {"step", int64_t{2}}, {"size", int64_t{60}}}, "3, 5, …");
  if (oracle::category(c.dtype()) != oracle::Category::UNSIGNED) {
    c.run({{"start", int64_t{120}}, {"step", int64_t{-1}}, {"size", int64_t{121}}}, "downwards");
  }
  if (oracle::is_inexact(c.dtype())) {
    c.run({{"start", Number(-1.5)}, {"step", Number(0.1)}, {"size", int64_t{1001}}}, "steps of 0.1");
    c.run({{"start", Number(1e4)}, {"step", Number(1.0 / 3)}, {"size", int64_t{513}}}, "steps of 1/3");
  }
  if (oracle::is_complex(c.dtype()))
    c.run({{"start", Number(1, -2)}, {"step", Number(0.5, 0.25)}, {"size", int64_t{33}}}, "complex steps");
  if (c.dtype() == dtype::INT64)
    c.run({{"start", int64_t{9007199254740993}}, {"step", int64_t{4611686018427387}}, {"size", int64_t{999}}},
          "large integers");
}

void test_eye(Case& c) {
  c.run({{"rows", int64_t{9}}, {"columns", int64_t{9}}}, "square");
  if (!c.full()) return;
  for (int64_t k : {-12, -3, 0, 1, 6, 40})
    c.run({{"rows", int64_t{7}}, {"columns", int64_t{11}}, {"k", k}}, "k " + std::to_string(k));
  c.run({{"rows", int64_t{0}}, {"columns", int64_t{3}}}, "no rows");
  c.run({{"rows", int64_t{1}}, {"columns", int64_t{1}}}, "one");
  c.run({{"rows", int64_t{1}}, {"columns", int64_t{4}}, {"k", int64_t{2}}}, "one row");
  c.run({{"rows", int64_t{300}}, {"columns", int64_t{1}}, {"k", int64_t{-270}}}, "one column");
}

void test_fill(Case& c) {
  c.run({{"shape", Shape{5, 7}}, {"value", int64_t{1}}}, "ones");
  if (!c.full()) return;
  c.run({{"shape", Shape{33}}}, "the default");
  c.run({{"shape", Shape{1}}, {"value", int64_t{1}}}, "one");
  c.run({{"shape", Shape{3, 0}}, {"value", int64_t{1}}}, "empty");
  c.run({{"shape", Shape{}}, {"value", int64_t{1}}}, "rank 0");
  if (oracle::is_inexact(c.dtype())) {
    for (double x : {-0.0, 0.1, 1e-42, 65519.0, std::numeric_limits<double>::infinity(),
                     std::numeric_limits<double>::quiet_NaN()}) {
      c.run({{"shape", Shape{17}}, {"value", Number(x)}}, "a value");
    }
  }
  if (oracle::is_complex(c.dtype())) c.run({{"shape", Shape{4, 4}}, {"value", Number(1.5, -2.5)}}, "complex");
  if (c.dtype() == dtype::INT64) c.run({{"shape", Shape{9}}, {"value", INT64_MIN + 1}}, "all bits of an integer");
}

void test_linspace(Case& c) {
  if (!oracle::is_inexact(c.dtype())) return;
  c.run({{"start", Number(0)}, {"stop", Number(1)}, {"size", int64_t{101}}}, "0 to 1");
  if (!c.full()) return;
  c.run({{"start", Number(-3)}, {"stop", Number(5)}, {"size", int64_t{50}}, {"endpoint", int64_t{0}}},
        "without the end");
  c.run({{"start", Number(2)}, {"stop", Number(-2)}, {"size", int64_t{33}}}, "downwards");
  c.run({{"start", Number(2)}, {"stop", Number(7)}, {"size", int64_t{1}}}, "one");
  c.run({{"start", Number(2)}, {"stop", Number(7)}, {"size", int64_t{2}}}, "two");
  c.run({{"start", Number(2)}, {"stop", Number(7)}, {"size", int64_t{0}}}, "none");
  c.run({{"start", Number(0.1)}, {"stop", Number(0.3)}, {"size", int64_t{7}}}, "the end exactly");
  if (oracle::is_complex(c.dtype()))
    c.run({{"start", Number(0, 1)}, {"stop", Number(1, -1)}, {"size", int64_t{21}}}, "complex");
}

}  // namespace

void add_creation_tests(Registry& registry) {
  const struct {
    const char* op;
    void (*body)(Case&);
  } kTests[] = {{"arange", test_arange}, {"eye", test_eye}, {"fill", test_fill}, {"linspace", test_linspace}};
  for (const auto& entry : kTests) {
    for (Dtype dtype : tested_dtypes(registry.level())) {
      if (oracle::is_bool(dtype) && std::string_view(entry.op) == "arange") continue;
      if (!oracle::is_inexact(dtype) && std::string_view(entry.op) == "linspace") continue;
      registry.add({"creation",
                    std::string(entry.op) + "_" + oracle::info(dtype).name,
                    [entry, dtype](const Session& session) {
                      Case c(session, entry.op, dtype);
                      entry.body(c);
                    },
                    dtype == dtype::FLOAT32 ? Level::SMOKE : Level::QUICK,
                    entry.op,
                    {dtype}});
    }
  }
}

}  // namespace compute::conformance
