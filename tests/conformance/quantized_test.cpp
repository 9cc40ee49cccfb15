// SPDX-License-Identifier: Apache-2.0
// Quantised weights: every width and group, groups and blocks that end early, layouts, and products of one row to many.
#include <gtest/gtest.h>

#include "registry.hpp"

namespace compute::conformance {

namespace {

using oracle::Inputs;

struct Form {
  int64_t bits, group;
  bool has_offsets;

  Attributes attributes() const { return {{"bits", bits}, {"group_size", group}}; }
  int64_t bytes(int64_t k) const { return (k + 31) / 32 * 4 * bits; }
  int64_t groups(int64_t k) const { return (k + group - 1) / group; }
  std::string name() const {
    return std::to_string(bits) + " bits, groups of " + std::to_string(group) + (has_offsets ? " with offsets" : "");
  }
};

class Case {
 public:
  Case(const Session& session, const std::string& op, Dtype dtype)
      : session_(session), op_(op), dtype_(dtype), seed_(seed_of(op + oracle::info(dtype).name)), inputs_(seed_) {}

  // Of scales, which are not float64.
  Dtype narrow() const { return dtype_ == dtype::FLOAT64 ? dtype::FLOAT32 : dtype_; }

  // With results of the dtype, if that is not the scales'.
  Attributes as_dtype(const Form& form) const {
    Attributes attributes = form.attributes();
    if (dtype_ != narrow()) attributes["dtype"] = int64_t{dtype_};
    return attributes;
  }

  bool is_full() const { return session_.level() == Level::FULL; }

  std::vector<Form> forms() const {
    if (!is_full()) return {{4, 32, false}, {4, 64, true}, {8, 32, false}, {8, 16, true}};
    std::vector<Form> all;
    for (const int64_t bits : {4, 8}) {
      for (const int64_t group : {16, 32, 64, 128}) {
        for (const bool has_offsets : {false, true}) all.push_back({bits, group, has_offsets});
      }
    }
    return all;
  }

  Operand numbers(const Shape& shape, Layout layout = Layout::CONTIGUOUS) {
    return session_.upload(inputs_.uniform(dtype_, shape, -2, 2), layout);
  }

  // Packed numbers, scales and offsets of rows of k; what fills the last block is random too.
  std::vector<Operand> weights(const Form& form, Shape leading, int64_t k, Dtype scales,
                               Layout layout = Layout::CONTIGUOUS) {
    leading.push_back(form.bytes(k));
    std::vector<Operand> given = {session_.upload(inputs_.uniform(dtype::UINT8, leading, 0, 255), layout)};
    leading.back() = form.groups(k);
    given.push_back(session_.upload(inputs_.uniform(scales, leading, 0.01L, 0.25L), layout));
    if (form.has_offsets) given.push_back(session_.upload(inputs_.uniform(scales, leading, -2, 2), layout));
    return given;
  }

  void run(const Attributes& attributes, const std::vector<Operand>& given, const std::string& what) {
    session_.expect(op_, attributes, given, bound_of(op_, dtype_), what + ", seed " + std::to_string(seed_));
  }

  void dequantize() {
    for (const Form& form : forms()) {
      for (const int64_t k : {128, 1, 17, 100, 301}) {
        Attributes attributes = as_dtype(form);
        attributes["size"] = k;
        run(attributes, weights(form, {3}, k, narrow()), form.name() + ", " + std::to_string(k));
      }
      run(as_dtype(form), weights(form, {2, 3}, 256, narrow()), form.name());
      if (!is_full()) continue;
      for (const Layout layout : {Layout::TRANSPOSED, Layout::STEPPED, Layout::NEGATIVE, Layout::OFFSET})
        run(as_dtype(form), weights(form, {3}, 288, narrow(), layout), form.name() + ", " + name(layout));
      for (const Dtype to : {dtype::FLOAT16, dtype::BFLOAT16, dtype::FLOAT32}) {
        Attributes attributes = form.attributes();
        attributes["dtype"] = int64_t{to};
        run(attributes, weights(form, {3}, 128, narrow()), form.name() + " as " + oracle::info(to).name);
      }
    }
  }

  void quantize() {
    for (Form form : forms()) {
      Attributes attributes = form.attributes();
      if (!form.has_offsets) attributes["symmetric"] = int64_t{1};
      for (const int64_t k : {128, 1, 17, 100, 301}) run(attributes, {numbers({3, k})}, form.name());
      if (!is_full()) continue;
      for (const Layout layout : {Layout::TRANSPOSED, Layout::STEPPED, Layout::NEGATIVE, Layout::OFFSET})
        run(attributes, {numbers({5, 130}, layout)}, form.name() + ", " + name(layout));
      attributes["dtype"] = int64_t{dtype::FLOAT16};
      run(attributes, {numbers({2, 3, 256})}, form.name() + " with scales of float16");
      Array equal(dtype_, {2, 64});  // groups of one number, and of zeros
      for (int64_t i = 0; i < 64; ++i) equal.set(i, oracle::Value::of(oracle::Real{-1.5}));
      run(attributes, {session_.upload(equal)}, form.name() + ", equal numbers");
    }
  }

  void product(const Form& form, const Shape& x, int64_t n, Dtype scales, Layout layout = Layout::CONTIGUOUS) {
    std::vector<Operand> given = weights(form, {n}, x.back(), scales);
    given.insert(given.begin(), numbers(x, layout));
    run(form.attributes(), given, form.name() + ", " + std::to_string(x.back()) + ", " + name(layout));
  }

  void quantized_matmul() {
    for (const Form& form : forms()) {
      for (const int64_t rows : {1, 3}) {
        product(form, {rows, 128}, 9, narrow());
        product(form, {rows, 301}, 70, narrow());
      }
      product(form, {37}, 5, dtype::FLOAT32);
      product(form, {2, 1, 512}, 130, dtype::FLOAT16);
      product(form, {40, 160}, 67, narrow());
      if (!is_full()) continue;
      for (const int64_t rows : {1, 2, 4, 5, 7, 8, 9, 17}) {
        for (const int64_t k : {1, 16, 31, 33, 64, 95}) product(form, {rows, k}, 33, dtype::FLOAT16);
        product(form, {rows, 2050}, 5, dtype::FLOAT16);
      }
      for (const Dtype scales : {dtype::FLOAT16, dtype::BFLOAT16, dtype::FLOAT32}) {
        product(form, {1, 4128}, 33, scales);
        product(form, {3, 5, 100}, 11, scales);
        if (form.group == 64) product(form, {70, 290}, 140, scales);
      }
      for (const Layout layout : {Layout::TRANSPOSED, Layout::STEPPED, Layout::NEGATIVE, Layout::OFFSET}) {
        product(form, {2, 96}, 20, narrow(), layout);
        product(form, {30, 96}, 20, narrow(), layout);
        std::vector<Operand> given = weights(form, {20}, 96, narrow(), layout);
        given.insert(given.begin(), numbers({2, 96}));
        run(form.attributes(), given, form.name() + ", weights " + name(layout));
        given[0] = numbers({1, 96});
        session_.expect_into(op_, form.attributes(), given, bound_of(op_, dtype_), form.name(), layout);
      }
      product(form, {0, 64}, 4, narrow());
      product(form, {2, 64}, 0, narrow());
    }
  }

 private:
  const Session& session_;
  const std::string op_;
  const Dtype dtype_;
  const uint64_t seed_;
  Inputs inputs_;
};

struct Row {
  const char* op;
  void (Case::*body)();
};

constexpr Row kRows[] = {
    {"dequantize", &Case::dequantize}, {"quantize", &Case::quantize}, {"quantized_matmul", &Case::quantized_matmul}};

}  // namespace

void add_quantized_tests(Registry& registry) {
  for (const Row& row : kRows) {
    for (const Dtype dtype : {dtype::FLOAT32, dtype::FLOAT16, dtype::BFLOAT16, dtype::FLOAT64}) {
      if (registry.level() != Level::FULL && dtype != dtype::FLOAT32) continue;
      Test test{"quantized", std::string(row.op) + "_" + oracle::info(dtype).name,
                nullptr,     dtype == dtype::FLOAT32 ? Level::SMOKE : Level::QUICK,
                row.op,      {dtype, dtype::UINT8}};
      test.body = [row, dtype](const Session& session) {
        Case c(session, row.op, dtype);
        (c.*row.body)();
      };
      registry.add(std::move(test));
    }
  }
}

}  // namespace compute::conformance
