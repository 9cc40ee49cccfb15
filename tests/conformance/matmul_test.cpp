// SPDX-License-Identifier: Apache-2.0
// Matrix products: every form of operands, layouts, degenerate extents.
#include <gtest/gtest.h>

#include <limits>

#include "registry.hpp"

namespace compute::conformance {

namespace {

using oracle::Inputs;

class Case {
 public:
  Case(const Session& session, Dtype dtype)
      : session_(session),
        dtype_(dtype),
        bound_(bound_of("matmul", dtype)),
        seed_(seed_of("matmul" + std::string(oracle::info(dtype).name))),
        inputs_(seed_) {}

  Array array(const Shape& shape) {
    return oracle::is_inexact(dtype_) ? inputs_.uniform(dtype_, shape, -1, 1)
                                      : inputs_.uniform(dtype_, shape, -1e19L, 1e19L);
  }

  void run(const Operand& a, const Operand& b, const std::string& what) {
    const Operand inputs[] = {a, b};
    session_.expect("matmul", {}, inputs, bound_, what + ", seed " + std::to_string(seed_));
  }

  void run(const Shape& a, const Shape& b, Layout layout_a = Layout::CONTIGUOUS, Layout layout_b = Layout::CONTIGUOUS) {
    run(operand(a, layout_a), operand(b, layout_b), std::string(name(layout_a)) + " by " + name(layout_b));
  }

  Operand operand(const Shape& shape, Layout layout) {
    if (layout == Layout::BROADCAST) return view(layout, session_.upload(array(base_shape(layout, shape))), shape);
    return session_.upload(array(shape), layout);
  }

  void forms() {
    run({3, 5}, {5, 7});
    run({17}, {17});
    run({6, 17}, {17});
    run({17}, {17, 6});
    run({4, 3, 5}, {4, 5, 2});
    run({4, 3, 5}, {5, 2});
    run({3, 5}, {4, 5, 2});
    run({2, 1, 3, 5}, {4, 5, 2});
    run({7}, {3, 7, 2});
    run({3, 2, 7}, {7});
    run({2, 3, 1, 4}, {2, 1, 4, 5});
  }

  void sizes() {
    for (int64_t n : {1, 2, 4, 7, 8, 9, 16, 17, 31, 33, 64}) run({n, n}, {n, n});
    run({1, 70}, {70, 1});
    run({70, 1}, {1, 70});
    run({65, 3}, {3, 65});
    run({2, 3000}, {3000, 3});
    run({1, 129}, {129, 65});
    run({129, 65}, {65, 1});
    run({33, 64, 8}, {33, 8, 8});
  }

  // Beyond the sizes of tiles in each direction, with a depth that is divided, in forms that are loaded differently.
  void tiles() {
    for (Layout a : {Layout::CONTIGUOUS, Layout::TRANSPOSED, Layout::NEGATIVE}) {
      for (Layout b : {Layout::CONTIGUOUS, Layout::TRANSPOSED, Layout::STEPPED}) run({130, 140}, {140, 137}, a, b);
    }
    run({67, 1030}, {1030, 72});
    run({2, 70, 132}, {2, 132, 72});
    run({64, 128}, {128, 260}, Layout::OFFSET, Layout::OFFSET);
    if (dtype_ != dtype::FLOAT32) return;
    // Where parts of a factor would underflow, and products overflow.
    const auto factor = [&](const Shape& shape, long double most) {
      return session_.upload(inputs_.uniform(dtype_, shape, -most, most));
    };
    run(factor({70, 130}, 1e-33L), factor({130, 80}, 1), "small by ordinary factors");
    if (!session_.flushes_subnormals()) {
      run(factor({70, 130}, 1e-37L), factor({130, 80}, 1e20L), "very small by great factors");
      run(factor({70, 130}, 1e-40L), factor({130, 80}, 1e30L), "subnormal by great factors");
    }
    run(factor({70, 130}, 3.4e38L), factor({130, 80}, 1e-20L), "very great by small factors");
    run(factor({70, 130}, 1e20L), factor({130, 80}, 1e20L), "products that overflow");
    // In one tile of several, with factors that are exact in fewer bits, whose low parts are zero.
    Array special = inputs_.uniform(dtype_, {200, 130}, -2, 2), ones(dtype_, {130, 80});
    for (int64_t i = 0; i < 130 * 80; ++i) ones.set(i, oracle::Value::of(oracle::Real{1}));
    special.set(3 * 130 + 5, oracle::Value::of(std::numeric_limits<oracle::Real>::infinity()));
    special.set(7 * 130 + 1, oracle::Value::of(std::numeric_limits<oracle::Real>::quiet_NaN()));
    special.set(9 * 130 + 1, oracle::Value::of(oracle::Real{3.4028234e38L}));
    run(session_.upload(special), session_.upload(ones), "special values by ones");
  }

  // A few rows or columns of operands that lie along the depth, and of others.
  void few_lines() {
    for (int64_t lines : {1, 2, 3, 4, 5, 8, 11, 16}) {
      run({lines, 264}, {264, 77}, Layout::CONTIGUOUS, Layout::TRANSPOSED);
      run({77, 264}, {264, lines}, Layout::CONTIGUOUS, Layout::TRANSPOSED);
      run({lines, 264}, {264, 77});
    }
    run({1, 2056}, {2056, 300}, Layout::CONTIGUOUS, Layout::TRANSPOSED);
    run({1, 8200}, {8200, 64}, Layout::CONTIGUOUS, Layout::TRANSPOSED);
    run({6, 512}, {512, 3300}, Layout::CONTIGUOUS, Layout::TRANSPOSED);
    run({16, 520}, {520, 3300}, Layout::CONTIGUOUS, Layout::TRANSPOSED);
    run({3, 4, 128}, {128, 70}, Layout::CONTIGUOUS, Layout::TRANSPOSED);
    run({3, 130}, {130, 70}, Layout::CONTIGUOUS, Layout::TRANSPOSED);
    run({3, 256}, {256, 70}, Layout::NEGATIVE, Layout::TRANSPOSED);
    if (!oracle::is_inexact(dtype_)) return;
    // In the rows and in the matrix, also in the last words of a depth that is no whole number of steps.
    for (const auto& [lines, depth] : {std::pair<int64_t, int64_t>{4, 128}, {6, 136}, {16, 648}}) {
      Array rows = array({lines, depth}), matrix = array({70, depth});
      for (Array* side : {&rows, &matrix}) {
        side->set(1 * depth + depth - 1, oracle::Value::of(std::numeric_limits<oracle::Real>::infinity()));
        side->set(2 * depth + depth / 2, oracle::Value::of(std::numeric_limits<oracle::Real>::quiet_NaN()));
        Array ones(dtype_, {side == &rows ? 70 : lines, depth});
        for (int64_t i = 0; i < ones.size(); ++i) ones.set(i, oracle::Value::of(oracle::Real{1}));
        const Array& left = side == &rows ? rows : ones;
        const Array& right = side == &rows ? ones : matrix;
        run(session_.upload(left), view(Layout::TRANSPOSED, session_.upload(right), {depth, 70}),
            "special values by ones");
      }
    }
  }

  // So many that a group of a GPU computes several.
  void small_matrices() {
    run({7000, 2, 3}, {7000, 3, 2});
    run({3000, 8, 8}, {8, 8});
    run({70, 40, 5, 8}, {8, 9}, Layout::CONTIGUOUS, Layout::TRANSPOSED);
    run({1200, 13, 16}, {1200, 16, 11}, Layout::PERMUTED, Layout::CONTIGUOUS);
    run({1100, 16, 6}, {1100, 6, 16}, Layout::NEGATIVE, Layout::PERMUTED);
    run({20'000, 4}, {4, 3});
    if (dtype_ == dtype::FLOAT32) run({300, 64, 64}, {300, 64, 64});
  }

  // Empty sums give zeros, not the memory's previous contents.
  void degenerate_extents() {
    run({3, 0}, {0, 4});
    run({0, 3}, {3, 4});
    run({3, 4}, {4, 0});
    run({0}, {0});
    run({2, 3, 0}, {0, 4});
    run({0, 3, 4}, {4, 5});
    const Operand empty[] = {session_.upload(Array(dtype_, {3, 0})), session_.upload(Array(dtype_, {0, 4}))};
    session_.expect_into("matmul", {}, empty, bound_, "no terms", Layout::CONTIGUOUS);
  }

  void layouts() {
    for (Layout a : kEveryLayout) {
      for (Layout b : kEveryLayout) run({9, 11}, {11, 13}, a, b);
      run({3, 9, 11}, {3, 11, 5}, a, Layout::TRANSPOSED);
      run({23}, {23, 5}, a, Layout::NEGATIVE);
    }
    run({64, 48}, {48, 56}, Layout::TRANSPOSED, Layout::TRANSPOSED);
    run({64, 48}, {48, 56}, Layout::NEGATIVE, Layout::CONTIGUOUS);
  }

  void outputs() {
    const Operand inputs[] = {operand({9, 11}, Layout::CONTIGUOUS), operand({11, 6}, Layout::TRANSPOSED)};
    for (Layout layout : {Layout::CONTIGUOUS, Layout::TRANSPOSED, Layout::STEPPED, Layout::NEGATIVE, Layout::OFFSET}) {
      session_.expect_into("matmul", {}, inputs, bound_, "seed " + std::to_string(seed_), layout);
    }
  }

  void special_values() {
    if (!oracle::is_inexact(dtype_)) return;
    const Operand a = session_.upload(inputs_.with_specials(dtype_, {13, 4}, -2, 2));
    run(a, session_.upload(inputs_.with_specials(dtype_, {4, 11}, -2, 2)), "special values");
    // A zero hides no NaN and no infinity.
    run(session_.upload(Array(dtype_, {5, 4})), session_.upload(inputs_.with_specials(dtype_, {4, 11}, -2, 2)),
        "zeros by special values");
  }

 private:
  const Session& session_;
  Dtype dtype_;
  Bound bound_;
  uint64_t seed_;
  Inputs inputs_;
};

}  // namespace

void add_matmul_tests(Registry& registry) {
  for (Dtype dtype : tested_dtypes(registry.level())) {
    if (oracle::is_bool(dtype)) continue;
    Test test{"matmul",
              std::string("matmul_") + oracle::info(dtype).name,
              nullptr,
              dtype == dtype::FLOAT32 ? Level::SMOKE : Level::QUICK,
              "matmul",
              {dtype},
              COMPUTE_DTYPE_LEVEL_MATMUL};
    test.body = [dtype](const Session& session) {
      Case c(session, dtype);
      if (session.level() != Level::FULL) {
        c.run({33, 17}, {17, 9});
        if (session.level() == Level::QUICK) c.run({33, 17}, {17, 9}, Layout::TRANSPOSED, Layout::NEGATIVE);
        return;
      }
      c.forms();
      c.sizes();
      c.tiles();
      c.degenerate_extents();
      c.layouts();
      c.outputs();
      c.special_values();
      c.few_lines();
      c.small_matrices();
    };
    registry.add(std::move(test));
  }
}

}  // namespace compute::conformance
