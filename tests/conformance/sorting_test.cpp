// SPDX-License-Identifier: Apache-2.0
// Cumulative ops, sorting, searching, sets, segments, indices of several axes, and sums of products.
#include <gtest/gtest.h>

#include "registry.hpp"

namespace compute::conformance {

namespace {

using Numbers = std::complex<double>;

class Case {
 public:
  Case(const Session& session, const std::string& op, Dtype dtype)
      : session(session), op(op), dtype(dtype), inputs(seed_of(op + oracle::info(dtype).name)) {}

  bool full() const { return session.level() == Level::FULL; }
  Operand uniform(const Shape& shape, Real low = -2, Real high = 2, Layout layout = Layout::CONTIGUOUS) {
    return session.upload(inputs.uniform(dtype, shape, low, high), layout);
  }
  // With NaN, infinities and both zeros, and with equal elements.
  Operand special(const Shape& shape, Layout layout = Layout::CONTIGUOUS) {
    return session.upload(inputs.with_specials(dtype, shape, -3, 3), layout);
  }
  Operand indices(const Shape& shape, int64_t extent, bool negative = false, Dtype type = dtype::INT64) {
    return session.upload(inputs.indices(type, shape, extent, negative));
  }
  void run(const Attributes& given, const std::vector<Operand>& operands, const std::string& what) {
    session.expect(op, given, operands, bound_of(op, dtype), what);
  }
  void run_into(const Attributes& given, const std::vector<Operand>& operands, Layout layout) {
    session.expect_into(op, given, operands, bound_of(op, dtype), "", layout);
  }
  std::vector<Layout> layouts() const {
    if (!full()) return {Layout::CONTIGUOUS};
    return {Layout::CONTIGUOUS, Layout::TRANSPOSED, Layout::NEGATIVE,
            Layout::BROADCAST,  Layout::OFFSET,     Layout::PERMUTED};
  }

  const Session& session;
  const std::string op;
  const Dtype dtype;
  oracle::Inputs inputs;
};

// ---- Cumulative -----------------------------------------------------------------------------------------------------

void test_cumulative(Case& c) {
  // Products of thousands neither vanish nor overflow.
  const bool is_product = c.op == "cumulative_prod", adds = is_product || c.op == "cumulative_sum";
  const Real low = !is_product ? -2 : oracle::is_complex(c.dtype) ? 0.55L : 0.7L;
  const Real high = !is_product ? 2 : oracle::is_complex(c.dtype) ? 0.85L : 1.34L;
  const auto operand = [&](const Shape& shape, Layout layout = Layout::CONTIGUOUS) {
    return adds ? c.uniform(shape, low, high, layout) : c.special(shape, layout);
  };
  for (Layout layout : c.layouts()) {
    const Operand x = operand({5, 33}, layout);
    c.run({}, {x}, name(layout));
    c.run({{"axis", int64_t{0}}, {"include_initial", int64_t{1}}}, {x}, name(layout));
    c.run({{"exclusive", int64_t{1}}}, {x}, name(layout));
    c.run({{"axis", int64_t{0}}, {"reverse", int64_t{1}}}, {x}, name(layout));
  }
  if (!c.full()) return;
  for (const int64_t n : {0, 1, 2, 3, 255, 256, 257, 1000, 5000}) {
    const Operand x = operand({n});
    c.run({}, {x}, std::to_string(n) + " elements");
    c.run({{"include_initial", int64_t{1}}, {"reverse", int64_t{1}}}, {x}, std::to_string(n) + " elements and one");
    c.run({{"exclusive", int64_t{1}}, {"reverse", int64_t{1}}}, {x}, std::to_string(n) + " elements, exclusive");
  }
  for (const int64_t n : {1, 2, 3, 5, 8, 15, 16, 17, 64, 65})  // of lines that are computed together
    c.run({{"axis", int64_t{1}}}, {operand({21, n})}, "21 lines of " + std::to_string(n) + " elements");
  c.run({{"axis", int64_t{1}}}, {operand({3, 700, 5})}, "long columns");
  c.run({{"axis", int64_t{0}}}, {operand({40, 600})}, "many columns");
  if (c.op == "cumulative_sum" && !oracle::is_complex(c.dtype)) {
    const Operand x = c.uniform({300000}, -1, 1);
    c.run({}, {x}, "one long line");
    c.run({{"exclusive", int64_t{1}}}, {x}, "one long line, exclusive");
    c.run({{"axis", int64_t{0}}, {"exclusive", int64_t{1}}}, {c.uniform({3000, 40}, -1, 1)}, "tall columns, exclusive");
  }
  c.run_into({}, {operand({5, 33})}, Layout::NEGATIVE);
}

// ---- Order ----------------------------------------------------------------------------------------------------------

void test_sort(Case& c) {
  for (Layout layout : c.layouts()) {
    const Operand x = c.special({6, 37}, layout);
    c.run({}, {x}, name(layout));
    c.run({{"axis", int64_t{0}}, {"descending", int64_t{1}}}, {x}, name(layout));
  }
  if (!c.full()) return;
  for (const int64_t n : {0, 1, 2, 3, 191, 192, 1000, 1024, 1025, 3000}) {
    c.run({}, {c.special({n})}, std::to_string(n) + " elements");
    c.run({{"descending", int64_t{1}}}, {c.special({3, n})}, std::to_string(n) + " elements, descending");
  }
  for (const int64_t n : {2, 3, 7, 16, 37, 128, 129}) {
    c.run({}, {c.special({150, n})}, "many lines of " + std::to_string(n));
    c.run({{"axis", int64_t{1}}, {"descending", int64_t{1}}}, {c.special({70, n, 3})},
          "many columns of " + std::to_string(n));
  }
  c.run({{"axis", int64_t{1}}}, {c.special({2, 300, 3})}, "columns");
  c.run({}, {c.uniform({70000}, -1000, 1000)}, "a long line");
  c.run({{"descending", int64_t{1}}}, {c.uniform({70000}, 0, 3)}, "a long line of few values");
  c.run({{"descending", int64_t{1}}}, {c.special({2, 40000})}, "long lines of special values");
  c.run_into({}, {c.special({6, 37})}, Layout::NEGATIVE);
}

void test_top_k(Case& c) {
  for (Layout layout : c.layouts()) {
    const Operand x = c.special({6, 37}, layout);
    c.run({{"k", int64_t{5}}}, {x}, name(layout));
    c.run({{"k", int64_t{3}}, {"axis", int64_t{0}}, {"largest", int64_t{0}}}, {x}, name(layout));
  }
  if (!c.full()) return;
  c.run({{"k", int64_t{0}}}, {c.special({6, 37})}, "none");
  c.run({{"k", int64_t{37}}}, {c.special({6, 37})}, "all");
  c.run({{"k", int64_t{1}}}, {c.special({2000})}, "one of many");
  for (const int64_t largest : {0, 1}) {
    c.run({{"k", int64_t{70}}, {"largest", largest}}, {c.special({3, 3001})}, "some of many");
    c.run({{"k", int64_t{70}}, {"axis", int64_t{0}}, {"largest", largest}}, {c.special({3001, 3})}, "across rows");
    const Operand x = c.special({2, 9000});
    const Operand sorted =
        c.session.upload(c.session.download(c.session.run("sort", {}, std::vector<Operand>{x}, nullptr)));
    c.run({{"k", int64_t{20}}, {"largest", largest}}, {x}, "few of many");
    c.run({{"k", int64_t{20}}, {"largest", largest}}, {sorted}, "few of many in order");
  }
  c.run({{"k", int64_t{900}}}, {c.special({2, 3000})}, "so many that all are sorted");
  c.run({{"k", int64_t{50}}}, {c.special({20000})}, "of a long line");
  c.run({{"k", int64_t{400}}}, {c.uniform({2, 5000}, -100, 100)}, "hundreds");
  c.run({{"k", int64_t{20}}}, {c.session.upload(Array(c.dtype, {3, 500}))}, "of equal ones");
  c.run({{"k", int64_t{20}}}, {c.session.upload(Array(c.dtype, {3, 100}))}, "of a short line of equal ones");
  for (const int64_t k : {1, 5, 60}) c.run({{"k", k}}, {c.special({7, 100})}, "of short lines");
  c.run({{"k", int64_t{100}}}, {c.special({3, 1000})}, "a tenth");
  c.run({{"k", int64_t{3}}, {"axis", int64_t{0}}, {"largest", int64_t{0}}}, {c.special({16399, 2})}, "of long columns");
}

void test_searchsorted(Case& c) {
  const auto sorted = [&](int64_t n) {
    const Operand x = c.special({n});
    return c.session.upload(c.session.download(c.session.run("sort", {}, std::vector<Operand>{x}, nullptr)));
  };
  for (const int64_t n : c.full() ? std::vector<int64_t>{0, 1, 2, 3, 7, 8, 9, 1000} : std::vector<int64_t>{13}) {
    const Operand x = sorted(n);
    for (const char* side : {"left", "right"}) {
      c.run({{"side", std::string(side)}}, {x, c.special({4, 9})}, std::to_string(n) + " elements, " + side);
    }
  }
  const Operand x = c.special({20});
  const Operand order =
      c.session.upload(c.session.download(c.session.run("argsort", {}, std::vector<Operand>{x}, nullptr)));
  c.run({}, {x, c.special({17}), order}, "with a sorter");
  if (c.full()) c.run({}, {sorted(20), c.special({3, 8}, Layout::NEGATIVE)}, "backwards");
}

void test_isin(Case& c) {
  c.run({}, {c.special({5, 11}), c.special({9})}, "");
  c.run({{"invert", int64_t{1}}}, {c.special({5, 11}, Layout::NEGATIVE), c.special({3, 4})}, "inverted");
  c.run({}, {c.special({7}), c.special({0})}, "no values");
}

// ---- Selection ------------------------------------------------------------------------------------------------------

void test_nonzero(Case& c) {
  for (Layout layout : c.layouts()) c.run({}, {c.uniform({5, 4, 7}, -1, 1, layout)}, name(layout));
  if (!c.full()) return;
  c.run({}, {c.special({2000})}, "special values");
  c.run({}, {c.uniform({40000}, -1, 1)}, "a long line");
  c.run({}, {c.uniform({5, 70, 111}, -1, 1)}, "many rows");
  c.run({}, {c.session.upload(Array(c.dtype, {3, 50}))}, "zeros");
  c.run_into({}, {c.uniform({6, 37}, -1, 1)}, Layout::NEGATIVE);
  c.run({}, {c.uniform({0, 3})}, "empty");
}

void test_unique(Case& c) {
  for (Layout layout : c.layouts()) c.run({}, {c.special({4, 13}, layout)}, name(layout));
  c.run({}, {broadcast(c.special({13, 1, 1}), {13, 3, 2})}, "elements that repeat");
  if (!c.full()) return;
  c.run({}, {broadcast(c.special({13, 1, 5}), {13, 3, 5})}, "rows that repeat");
  c.run({}, {broadcast(c.uniform({6000, 1}, -1000, 1000), {6000, 3})}, "a long line of elements that repeat");
  c.run({}, {c.special({1000})}, "many");
  c.run({}, {c.uniform({300, 150}, -1000, 1000)}, "a long line");
  c.run({}, {c.uniform({1})}, "one");
  c.run_into({}, {c.special({6, 37})}, Layout::NEGATIVE);
  c.run({}, {c.session.upload(Array(c.dtype, {50}))}, "equal");
  c.run({}, {c.uniform({0, 3})}, "empty");
}

void test_count_nonzero(Case& c) {
  for (Layout layout : c.layouts()) {
    const Operand x = c.special({5, 4, 7}, layout);
    c.run({}, {x}, name(layout));
    c.run({{"axes", Shape{0, -1}}, {"keepdims", int64_t{1}}}, {x}, name(layout));
  }
  c.run({{"axes", Shape{1}}}, {c.uniform({3, 0})}, "empty");
  // Rows of several vectors, more than a byte can count.
  const Operand wide = c.special({270, 70});
  for (const int64_t axis : {0, 1}) c.run({{"axes", Shape{axis}}}, {wide}, "wide");
  c.run({}, {c.special({3, 5001})}, "long");
}

void test_histogram(Case& c) {
  // Ends of bins are exact in every dtype.
  const bool is_signed = oracle::is_float(c.dtype) || oracle::category(c.dtype) == oracle::Category::SIGNED;
  const Attributes given = {{"bins", int64_t{4}}, {"minimum", Numbers(is_signed ? -8 : 0)}, {"maximum", Numbers(8)}};
  for (Layout layout : c.layouts()) c.run(given, {c.uniform({9, 30}, is_signed ? -10 : 0, 10, layout)}, name(layout));
  c.run(given, {c.special({50})}, "special values");
  c.run(given, {c.uniform({0})}, "empty");
  c.run(given, {c.uniform({70001}, is_signed ? -10 : 0, 10)}, "for several threads");
  // The bins of the edges that linspace gives, and of adjacent numbers.
  if (!oracle::is_float(c.dtype)) return;
  const Stream stream = c.session.stream();
  struct Bins {
    double low, high;
    int64_t count;
  };
  for (const auto& [low, high, count] : {Bins{0.9, 1.1, 10}, Bins{0, 1, 100}, Bins{-3, 3, 60}, Bins{0.1, 0.7, 13}}) {
    const Attributes even = {
        {"start", Numbers(low)}, {"stop", Numbers(high)}, {"size", count + 1}, {"dtype", int64_t{c.dtype}}};
    const Array edges = c.session.download(c.session.run("linspace", even, {}, stream));
    Array x(c.dtype, {3 * count + 3});
    std::vector<int64_t> expected(static_cast<size_t>(count));
    std::vector<Real> ends;
    for (int64_t i = 0; i <= count; ++i) ends.push_back(edges.at(i).re);
    for (int64_t i = 0; i < x.size(); ++i) {
      const Real edge = ends[static_cast<size_t>(i / 3)];
      x.set(i, Value::of(edge + static_cast<Real>(i % 3 - 1) * oracle::ulp(oracle::format(c.dtype), edge)));
      const Real value = x.at(i).re;
      const auto bin = std::upper_bound(ends.begin(), ends.end(), value) - ends.begin() - 1;
      if (bin >= 0 && value <= ends.back()) ++expected[static_cast<size_t>(std::min<int64_t>(bin, count - 1))];
    }
    const Attributes bins = {{"bins", count}, {"minimum", Numbers(low)}, {"maximum", Numbers(high)}};
    const Array counts =
        c.session.download(c.session.run("histogram", bins, std::vector<Operand>{c.session.upload(x)}, stream));
    for (int64_t i = 0; i < count; ++i) {
      EXPECT_EQ(static_cast<int64_t>(counts.at(i).integer), expected[static_cast<size_t>(i)])
          << "bin " << i << " of " << count << " from " << low << " to " << high;
    }
  }
}

void test_segment_reduce(Case& c) {
  Array offsets(dtype::INT64, {6});
  const int64_t ends[] = {0, 3, 3, 10, 11, 20};
  for (int64_t i = 0; i < 6; ++i) offsets.set(i, Value::of(oracle::Integer{ends[i]}));
  const Operand at = c.session.upload(offsets);
  for (const char* kind : {"sum", "prod", "min", "max"}) {
    const bool is_ordered = std::string_view(kind) == "min" || std::string_view(kind) == "max";
    if (is_ordered && oracle::is_complex(c.dtype)) continue;
    for (Layout layout : c.layouts()) {
      c.run({{"kind", std::string(kind)}}, {c.uniform({20, 7}, 0.5L, 1.5L, layout), at}, kind);
      if (!c.full() && std::string_view(kind) != "sum") continue;
      c.run({{"kind", std::string(kind)}}, {c.uniform({20}, 0.5L, 1.5L, layout), at}, kind);
    }
  }
}

void test_diff(Case& c) {
  for (Layout layout : c.layouts()) {
    // Small multiples of 1/8 are subtracted exactly.
    Array x = c.inputs.uniform(c.dtype, {5, 9}, -3, 3);
    for (int64_t i = 0; i < x.size(); ++i) {
      Value v = x.at(i);
      v.re = std::nearbyint(v.re * 8) / 8;
      v.im = std::nearbyint(v.im * 8) / 8;
      x.set(i, v);
    }
    const Operand operand = c.session.upload(x, layout);
    c.run({}, {operand}, name(layout));
    c.run({{"axis", int64_t{0}}, {"n", int64_t{2}}}, {operand}, name(layout));
    c.run({{"axis", int64_t{0}}, {"n", int64_t{7}}}, {operand}, "nothing left");
    c.run({{"n", int64_t{0}}}, {operand}, "unchanged");
  }
}

// ---- Indices of several axes ----------------------------------------------------------------------------------------

// Indices [m, 2] into extents [a, b], which may be negative.
Operand pairs(Case& c, int64_t m, int64_t a, int64_t b) {
  const Array first = c.inputs.indices(dtype::INT64, {m}, a, true),
              second = c.inputs.indices(dtype::INT64, {m}, b, true);
  Array both(dtype::INT64, {m, 2});
  for (int64_t i = 0; i < m; ++i) {
    both.set(2 * i, first.at(i));
    both.set(2 * i + 1, second.at(i));
  }
  return c.session.upload(both);
}

void test_gather_nd(Case& c) {
  for (Layout layout : c.layouts()) {
    c.run({}, {c.uniform({4, 5, 3}, -2, 2, layout), pairs(c, 6, 4, 5)}, name(layout));
    c.run({}, {c.uniform({4, 5}, -2, 2, layout), pairs(c, 6, 4, 5)}, name(layout));
    c.run({}, {c.uniform({7, 3}, -2, 2, layout), c.indices({2, 4, 1}, 7, true, dtype::INT32)}, name(layout));
  }
  c.run({}, {c.uniform({7, 3}), c.indices({1}, 7)}, "one row");
  if (c.full()) c.run_into({}, {c.uniform({4, 5, 3}), pairs(c, 6, 4, 5)}, Layout::NEGATIVE);
}

// Indices that broadcast, of other dtypes, of the first and of the last axes.
void test_gather_at(Case& c) {
  const auto at = [&](Shape shape, int64_t extent, Dtype dtype = dtype::INT64) {
    return c.indices(shape, extent, true, dtype);
  };
  const Attributes from_one = {{"axis", int64_t{1}}}, last = {{"axis", int64_t{-2}}};
  for (Layout layout : c.layouts()) {
    c.run({}, {c.uniform({4, 5, 3}, -2, 2, layout), at({6}, 4), at({6}, 5)}, name(layout));
    c.run(from_one, {c.uniform({3, 5, 6}, -2, 2, layout), at({4, 1}, 5), at({7}, 6, dtype::INT32)}, name(layout));
  }
  if (!c.full()) return;
  for (Layout layout : c.layouts()) {
    c.run(from_one, {c.uniform({4, 7, 2}, -2, 2, layout), at({2, 3}, 7, dtype::INT16)}, "one axis");
    c.run(last, {c.uniform({2, 3, 5, 8}, -2, 2, layout), c.indices({3, 1}, 5, false, dtype::UINT64), at({4}, 8)},
          "last axes");
    c.run({}, {c.uniform({3, 2, 4, 5, 8}, -2, 2, layout), at({3, 2}, 3), at({2}, 2), at({}, 4), at({1, 2}, 5)},
          "four axes");
    c.run({}, {c.uniform({3, 4}, -2, 2, layout), at({}, 3), at({}, 4)}, "an element");
  }
  c.run({}, {c.uniform({4, 5, 3}), at({0}, 4), at({0}, 5)}, "no elements");
  c.run_into(from_one, {c.uniform({3, 4, 5}), at({6}, 4), at({6}, 5)}, Layout::NEGATIVE);
  c.run_into(from_one, {c.uniform({3, 4, 5}), at({6, 1}, 4), at({2}, 5)}, Layout::TRANSPOSED);
}

void test_scatter_nd(Case& c) {
  std::vector<const char*> reductions = {"set", "add", "mul", "min", "max"};
  for (const char* reduction : reductions) {
    const bool sets = std::string_view(reduction) == "set",
               is_ordered = std::string_view(reduction) == "min" || std::string_view(reduction) == "max";
    if ((oracle::is_bool(c.dtype) && !sets) || (oracle::is_complex(c.dtype) && is_ordered)) continue;
    const Attributes given = {{"reduction", std::string(reduction)}};
    // Set takes one update for each element.
    const Operand at = sets ? c.indices({1, 1}, 4) : c.indices({9, 1}, 4);
    const Shape updates = {sets ? 1 : 9, 5};
    for (Layout layout : c.layouts())
      c.run(given, {c.uniform({4, 5}, 0.5L, 1.5L, layout), at, c.uniform(updates, 0.5L, 1.5L, layout)}, reduction);
    if (!sets)
      c.run(given, {c.uniform({4, 5, 3}, 0.5L, 1.5L), pairs(c, 6, 4, 5), c.uniform({6, 3}, 0.5L, 1.5L)}, reduction);
    if (sets || !c.full()) continue;
    // Many rows that go to few.
    for (const int64_t deterministic : {0, 1}) {
      const Attributes many = {{"reduction", std::string(reduction)}, {"deterministic", deterministic}};
      c.run(many, {c.uniform({6, 5}, 0.5L, 1.5L), c.indices({1000, 1}, 6), c.uniform({1000, 5}, 0.5L, 1.5L)},
            "few rows");
      c.run(many, {c.uniform({2, 3, 4}, 0.5L, 1.5L), pairs(c, 600, 2, 3), c.uniform({600, 4}, 0.5L, 1.5L)}, "pairs");
    }
  }
}

void test_scatter_at(Case& c) {
  const auto numbers = [&](Shape shape, Layout layout = Layout::CONTIGUOUS) {
    return c.uniform(shape, 0.5L, 1.5L, layout);
  };
  for (Layout layout : c.layouts()) {
    c.run({}, {numbers({4, 5, 3}, layout), numbers({1, 3}, layout), c.indices({1}, 4, true), c.indices({1}, 5, true)},
          name(layout));
  }
  if (oracle::is_bool(c.dtype)) return;
  const Attributes added = {{"axis", int64_t{1}}, {"reduction", std::string("add")}};
  c.run(added, {numbers({3, 4, 5}), numbers({3, 2, 6}), c.indices({2, 1}, 4, true), c.indices({6}, 5, true)}, "add");
  if (!c.full()) return;
  c.run(added, {numbers({3, 4}), numbers({3, 9}), c.indices({9}, 4, true)}, "one axis");
  const Attributes last = {{"axis", int64_t{-2}}, {"reduction", std::string("mul")}, {"deterministic", int64_t{1}}};
  for (Layout layout : c.layouts())
    c.run(last, {numbers({2, 3, 4, 5}, layout), numbers({2, 3, 7}), c.indices({7}, 4), c.indices({7}, 5)}, "in order");
  c.run(added, {numbers({3, 4, 5}), numbers({3, 0}), c.indices({0}, 4), c.indices({0}, 5)}, "no updates");
}

// ---- Sums of products -----------------------------------------------------------------------------------------------

void test_einsum(Case& c) {
  struct Example {
    const char* equation;
    std::vector<Shape> shapes;
  };
  const std::vector<Example> quick = {
      {"ij,jk->ik", {{3, 4}, {4, 5}}}, {"bij,bjk", {{2, 3, 4}, {2, 4, 5}}}, {"ii->i", {{4, 4}}}};
  const std::vector<Example> full = {{"ij->ji", {{3, 4}}},
                                     {"ij->", {{3, 4}}},
                                     {"i,j->ij", {{3}, {4}}},
                                     {"i,i", {{7}, {7}}},
                                     {"ii", {{5, 5}}},
                                     {"...ij,...jk->...ik", {{2, 1, 3, 4}, {5, 4, 2}}},
                                     {"bhid,bhjd->bhij", {{2, 2, 3, 4}, {2, 2, 5, 4}}},
                                     {"ij,jk,kl->il", {{3, 4}, {4, 2}, {2, 5}}},
                                     {"ijk,jil->kl", {{2, 3, 4}, {3, 2, 5}}},
                                     {"ab,cd->", {{2, 3}, {4, 2}}},
                                     {"iij,j->i", {{3, 3, 4}, {4}}},
                                     {"ij,ij->ij", {{3, 4}, {3, 4}}},
                                     {"a...b->...", {{2, 3, 4, 5}}},
                                     {"ij,jk->ik", {{3, 0}, {0, 5}}}};
  std::vector<Example> examples = quick;
  if (c.full()) examples.insert(examples.end(), full.begin(), full.end());
  for (const Example& example : examples) {
    for (Layout layout :
         c.full() ? std::vector<Layout>{Layout::CONTIGUOUS, Layout::NEGATIVE, Layout::TRANSPOSED} : c.layouts()) {
      std::vector<Operand> operands;
      for (const Shape& shape : example.shapes) operands.push_back(c.uniform(shape, -2, 2, layout));
      c.run({{"equation", std::string(example.equation)}}, operands, example.equation);
    }
  }
}

void test_tensordot(Case& c) {
  for (Layout layout : c.layouts()) {
    c.run({{"axes_a", Shape{1, 0}}, {"axes_b", Shape{0, 1}}},
          {c.uniform({3, 4, 5}, -2, 2, layout), c.uniform({4, 3, 2}, -2, 2, layout)}, name(layout));
    c.run({{"axes_a", Shape{-1}}, {"axes_b", Shape{0}}},
          {c.uniform({3, 4}, -2, 2, layout), c.uniform({4, 2}, -2, 2, layout)}, name(layout));
    c.run({{"axes_a", Shape{}}, {"axes_b", Shape{}}}, {c.uniform({3}, -2, 2, layout), c.uniform({4}, -2, 2, layout)},
          "outer");
  }
}

void test_vecdot(Case& c) {
  for (Layout layout : c.layouts()) {
    c.run({}, {c.uniform({3, 1, 7}, -2, 2, layout), c.uniform({5, 7}, -2, 2, layout)}, name(layout));
    c.run({{"axis", int64_t{-2}}}, {c.uniform({7, 3}, -2, 2, layout), c.uniform({7, 3}, -2, 2, layout)}, name(layout));
  }
  c.run({}, {c.uniform({3, 0}), c.uniform({3, 0})}, "empty");
}

bool is_any(Dtype) { return true; }
bool is_number(Dtype dtype) { return !oracle::is_bool(dtype); }
bool is_ordered(Dtype dtype) { return !oracle::is_complex(dtype); }
bool is_real(Dtype dtype) { return is_ordered(dtype) && is_number(dtype); }

struct Row {
  const char* op;
  void (*body)(Case&);
  bool (*takes)(Dtype);
  bool has_keys = false;  // taken apart, it computes in int32 and uint32
};

constexpr Row kRows[] = {
    {"argsort", test_sort, is_ordered, true},
    {"count_nonzero", test_count_nonzero, is_any},
    {"cumulative_max", test_cumulative, is_real},
    {"cumulative_min", test_cumulative, is_real},
    {"cumulative_prod", test_cumulative, is_number},
    {"cumulative_sum", test_cumulative, is_number},
    {"diff", test_diff, is_number},
    {"einsum", test_einsum, is_number},
    {"gather_at", test_gather_at, is_any},
    {"gather_nd", test_gather_nd, is_any},
    {"histogram", test_histogram, is_real},
    {"isin", test_isin, is_ordered, true},
    {"nonzero", test_nonzero, is_any, true},
    {"scatter_at", test_scatter_at, is_any},
    {"scatter_nd", test_scatter_nd, is_any},
    {"searchsorted", test_searchsorted, is_ordered, true},
    {"segment_reduce", test_segment_reduce, is_number},
    {"sort", test_sort, is_ordered, true},
    {"tensordot", test_tensordot, is_number},
    {"top_k", test_top_k, is_ordered, true},
    {"unique", test_unique, is_any, true},
    {"vecdot", test_vecdot, is_number},
};

}  // namespace

void add_sorting_tests(Registry& registry) {
  for (const Row& row : kRows) {
    for (Dtype dtype : tested_dtypes(registry.level())) {
      if (!row.takes(dtype)) continue;
      const bool is_smoke = dtype == dtype::FLOAT32 || dtype == dtype::INT32;
      Test test{"sorting", std::string(row.op) + "_" + oracle::info(dtype).name,
                nullptr,   is_smoke ? Level::SMOKE : Level::QUICK,
                row.op,    {dtype, dtype::INT64}};
      if (row.has_keys) test.dtypes.insert(test.dtypes.end(), {dtype::INT32, dtype::UINT32});
      if (row.has_keys && dtype == dtype::BOOL) test.dtypes.push_back(dtype::UINT8);
      test.body = [row, dtype](const Session& session) {
        Case c(session, row.op, dtype);
        row.body(c);
      };
      registry.add(std::move(test));
    }
  }
}

}  // namespace compute::conformance
