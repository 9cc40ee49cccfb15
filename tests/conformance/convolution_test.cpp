// SPDX-License-Identifier: Apache-2.0
// Convolutions, their gradients and transposed ones: every attribute, layouts, degenerate extents, finite differences.
#include <gtest/gtest.h>

#include "registry.hpp"

namespace compute::conformance {

namespace {

using oracle::Inputs;

// A convolution, for all four ops: the shapes of x and the weight, and its attributes.
struct Geometry {
  Shape x, weight;
  Attributes attributes = {};
  bool bias = false;
};

Attributes lists(const Shape& strides, const Shape& dilations, const Shape& begin, const Shape& end, int64_t groups) {
  Attributes all;
  if (!strides.empty()) all["strides"] = strides;
  if (!dilations.empty()) all["dilations"] = dilations;
  if (!begin.empty()) all["pads_begin"] = begin;
  if (!end.empty()) all["pads_end"] = end;
  if (groups != 1) all["groups"] = groups;
  return all;
}

// Channels, and terms of each of the three ops, beyond the sizes of tiles.
Geometry tiles() { return {{2, 66, 7, 8}, {70, 66, 3, 3}, {}, true}; }
Geometry padded_tiles() { return {{2, 70, 9, 6}, {66, 70, 3, 2}, lists({1, 2}, {1, 1}, {1, 1}, {1, 0}, 1), true}; }

class Case {
 public:
  Case(const Session& session, const std::string& op, Dtype dtype)
      : session_(session),
        op_(op),
        dtype_(dtype),
        bound_(bound_of(op, dtype)),
        seed_(seed_of(op + oracle::info(dtype).name)),
        inputs_(seed_) {}

  void quick() {
    run({{2, 3, 9, 8}, {4, 3, 3, 3}, lists({2, 1}, {}, {1, 1}, {1, 0}, 1), true});
    if (session_.level() == Level::SMOKE) return;
    run({{2, 4, 13}, {6, 2, 3}, lists({}, {2}, {2}, {2}, 2)}, Layout::TRANSPOSED, Layout::NEGATIVE);
    if (dtype_ != dtype::FLOAT32) return;
    run({{2, 6, 8, 9}, {6, 1, 3, 3}, lists({}, {}, {1, 1}, {1, 1}, 6), true});
    run({{1, 17, 20, 18}, {35, 17, 1, 1}, {}, true});
    run({{2, 1, 28, 28}, {8, 1, 5, 5}, {{"padding", std::string("same")}}});
    run({{1, 2, 3, 4, 5}, {3, 2, 2, 3, 2}, lists({1, 2, 2}, {}, {}, {}, 1)});
  }

  void full() {
    attributes();
    shapes();
    blocks_of_channels();
    layouts();
    large();
    degenerate();
    outputs();
    special_values();
    exact_differences();
  }

 private:
  bool is_transpose() const { return op_ == "convolution_transpose"; }
  std::string what(const std::string& name) const { return name + ", seed " + std::to_string(seed_); }

  Array array(const Shape& shape) {
    return oracle::is_inexact(dtype_) ? inputs_.uniform(dtype_, shape, -1, 1)
                                      : inputs_.uniform(dtype_, shape, -1e19L, 1e19L);
  }
  Array special(const Shape& shape) { return inputs_.with_specials(dtype_, shape, -2, 2); }

  // The shape of the output of the convolution.
  static Shape output_shape(const Geometry& g) {
    Shape x = g.x, weight = g.weight;
    x[0] = x[1] = weight[0] = weight[1] = 1;
    Attributes one_group = g.attributes;
    one_group.erase("groups");
    const std::vector<Array> arrays = {Array(dtype::INT8, x), Array(dtype::INT8, weight)};
    Shape shape = oracle::find_reference("convolution")(arrays, one_group).shape;
    shape[0] = g.x[0];
    shape[1] = g.weight[0];
    return shape;
  }

  // The shapes of the op's inputs, and its attributes. The transposed convolution maps x to the input of a convolution,
  // so the first two axes of its weight are swapped.
  std::vector<Shape> input_shapes(const Geometry& g) const {
    if (op_ == "convolution") {
      std::vector<Shape> shapes = {g.x, g.weight};
      if (g.bias) shapes.push_back({g.weight[0]});
      return shapes;
    }
    if (op_ == "convolution_grad_input") return {output_shape(g), g.weight};
    if (op_ == "convolution_grad_weight") return {output_shape(g), g.x};
    std::vector<Shape> shapes = {output_shape(g), g.weight};
    if (g.bias) shapes.push_back({g.x[1]});
    return shapes;
  }
  Attributes attributes_of(const Geometry& g) const {
    Attributes all = g.attributes;
    if (op_ == "convolution_grad_input") all["shape"] = Shape(g.x.begin() + 2, g.x.end());
    if (op_ == "convolution_grad_weight") all["kernel"] = Shape(g.weight.begin() + 2, g.weight.end());
    return all;
  }

  Operand operand(const Shape& shape, Layout layout) {
    if (layout == Layout::BROADCAST) return view(layout, session_.upload(array(base_shape(layout, shape))), shape);
    return session_.upload(array(shape), layout);
  }

  void run(const Geometry& g, Layout first = Layout::CONTIGUOUS, Layout second = Layout::CONTIGUOUS) {
    std::vector<Operand> operands;
    for (const Shape& shape : input_shapes(g)) operands.push_back(operand(shape, operands.empty() ? first : second));
    session_.expect(op_, attributes_of(g), operands, bound_, what(std::string(name(first)) + " and " + name(second)));
  }

  void attributes() {
    for (int64_t stride : {1, 2, 3}) {
      for (int64_t dilation : {1, 2, 3}) {
        for (int64_t pad : {0, 1, 5}) {
          run({{2, 4, 16}, {6, 4, 3}, lists({stride}, {dilation}, {pad}, {1}, 1), pad == 1});
          run({{2, 4, 9, 11}, {6, 2, 3, 2}, lists({stride, 1}, {1, dilation}, {pad, 0}, {0, pad}, 2), pad == 0});
        }
      }
    }
    for (const char* padding : {"same", "valid"}) {
      for (int64_t stride : {1, 2, 4}) {
        Attributes all = lists({stride, stride}, {}, {}, {}, 1);
        all["padding"] = std::string(padding);
        run({{1, 2, 10, 11}, {3, 2, 3, 2}, all});
      }
    }
    for (int64_t groups : {1, 2, 3, 6})
      run({{2, 6, 7, 8}, {12, 6 / groups, 3, 3}, lists({}, {}, {1, 1}, {1, 1}, groups)});
    if (!is_transpose()) return;
    for (int64_t more : {0, 1, 2}) {
      Attributes all = lists({3, 3}, {}, {1, 0}, {0, 1}, 1);
      all["output_padding"] = Shape{more, 0};
      run({{2, 4, 10, 11}, {5, 4, 3, 3}, all, true});
    }
  }

  void shapes() {
    run({{3, 5, 40}, {20, 5, 3}, lists({}, {}, {1}, {1}, 1), true});
    run({{2, 50, 70}, {66, 50, 3}, lists({}, {}, {1}, {1}, 1)});
    run({{4, 1, 28, 28}, {32, 1, 5, 5}, lists({}, {}, {2, 2}, {2, 2}, 1), true});
    run({{2, 48, 19, 40}, {20, 24, 3, 3}, lists({}, {}, {1, 1}, {1, 1}, 2), true});
    run({{1, 3, 33, 31}, {16, 3, 7, 7}, lists({2, 2}, {}, {3, 3}, {3, 3}, 1)});
    run({{2, 64, 7, 7}, {40, 64, 1, 1}, {}, true});
    run({{2, 16, 9, 9}, {24, 16, 1, 1}, lists({2, 2}, {}, {}, {}, 1)});
    run({{2, 37, 12, 13}, {37, 1, 3, 3}, lists({}, {}, {1, 1}, {1, 1}, 37), true});
    run({{2, 9, 12, 13}, {18, 1, 5, 3}, lists({2, 1}, {1, 2}, {2, 2}, {2, 2}, 9)});
    run({{2, 9, 30}, {9, 1, 4}, lists({}, {}, {3}, {0}, 9)});
    run({{1, 4, 6, 7, 8}, {5, 4, 3, 3, 3}, lists({}, {}, {1, 1, 1}, {1, 1, 1}, 1), true});
    run({{1, 4, 6, 7, 8}, {6, 2, 2, 3, 1}, lists({2, 1, 2}, {1, 2, 1}, {0, 2, 0}, {1, 2, 0}, 2)});
    run({{300, 2, 3, 3}, {4, 2, 2, 2}, {}});
    run({{2, 9, 90}, {12, 9, 40}, lists({}, {}, {7}, {3}, 1), true});
    run({{16, 3, 120}, {3, 3, 35}, lists({}, {2}, {40}, {4}, 1), true});
    run({{2, 33, 40, 41}, {3, 33, 3, 3}, lists({2, 1}, {1, 2}, {1, 0}, {1, 2}, 1), true});
    run({{3, 3, 65, 67}, {20, 3, 7, 5}, lists({2, 2}, {}, {3, 3}, {3, 3}, 1)});
    run({{4, 30, 37, 36}, {30, 1, 3, 3}, lists({}, {}, {1, 1}, {1, 1}, 30), true});
    run({{2, 3, 41, 46}, {8, 3, 5, 4}, lists({2, 3}, {}, {2, 1}, {1, 3}, 1), true});
    run({{2, 2, 50, 45}, {6, 2, 3, 3}, lists({2, 3}, {2, 2}, {1, 2}, {2, 0}, 1)});
    run({{1, 2, 40, 33}, {3, 2, 3, 3}, lists({2, 2}, {2, 1}, {}, {}, 1)});
    run({{1, 4, 40, 41}, {6, 2, 3, 3}, lists({2, 2}, {}, {1, 1}, {2, 2}, 2), true});
    run({{1, 2, 13, 15, 17}, {20, 2, 3, 3, 4}, lists({2, 1, 2}, {}, {1, 1, 1}, {1, 0, 2}, 1), true});
    run({{16, 1, 301}, {20, 1, 7}, lists({4}, {}, {3}, {3}, 1)});
    if (!oracle::is_inexact(dtype_) && dtype_ != dtype::INT32) return;  // integers have the same kernels
    run({{9, 70, 14, 14}, {72, 70, 3, 3}, lists({}, {}, {1, 1}, {1, 1}, 1)});
    run({{5, 24, 21, 19}, {40, 24, 5, 3}, lists({}, {}, {2, 1}, {2, 0}, 1), true});
    run({{2, 32, 14, 14}, {64, 32, 5, 5}, lists({}, {}, {2, 2}, {2, 2}, 1)});
    run({{1, 20, 12, 50}, {140, 20, 3, 2}, lists({}, {2, 3}, {1, 0}, {1, 2}, 1), true});
    run({{1, 36, 18, 21}, {104, 18, 2, 5}, lists({1, 2}, {2, 1}, {2, 0}, {1, 2}, 2)});
    run({{1, 3, 40, 42}, {160, 3, 7, 7}, lists({2, 2}, {}, {3, 3}, {3, 3}, 1)});
  }

  // Whole blocks of 16 channels, for which libraries have kernels.
  void blocks_of_channels() {
    if (dtype_ != dtype::FLOAT32) return;
    run({{3, 32, 70}, {48, 32, 3}, lists({}, {2}, {3}, {1}, 1), true});
    run({{2, 16, 5, 6, 7}, {16, 16, 2, 3, 3}, lists({}, {}, {1, 1, 0}, {0, 1, 2}, 1), true});
    run({{3, 48, 13, 12}, {48, 1, 3, 3}, lists({}, {}, {1, 1}, {1, 1}, 48), true});
    run({{2, 32, 13, 12}, {32, 1, 5, 3}, lists({2, 2}, {}, {2, 1}, {2, 0}, 32)});
    run({{3, 32, 15, 16}, {64, 32, 3, 3}, lists({2, 2}, {1, 2}, {1, 0}, {0, 2}, 1), true});
    run({{1, 64, 9, 9}, {128, 64, 1, 1}, {}, true});
    run({{17, 16, 20, 19}, {16, 16, 3, 3}, lists({}, {}, {1, 1}, {1, 1}, 1)});
    // One image, whose rows are divided among threads.
    run({{1, 16, 41, 38}, {16, 16, 3, 3}, lists({}, {}, {1, 1}, {1, 1}, 1), true});
    run({{1, 16, 45, 38}, {16, 16, 5, 3}, lists({}, {2, 1}, {3, 1}, {5, 2}, 1)});
    run({{1, 16, 83, 38}, {32, 16, 3, 3}, lists({2, 1}, {}, {1, 1}, {0, 1}, 1), true});
    run({{1, 16, 1101}, {16, 16, 3}, {}, true});
    run({{1, 16, 13, 12, 11}, {16, 16, 3, 3, 3}, lists({}, {}, {1, 0, 1}, {1, 1, 0}, 1)});
    run({{1, 32, 83, 40}, {32, 1, 3, 3}, lists({}, {}, {1, 1}, {1, 1}, 32)});
    // Strides, whose gradients of the input divide rows at multiples of them.
    run({{1, 16, 81, 38}, {32, 16, 3, 3}, lists({3, 2}, {2, 1}, {2, 1}, {1, 1}, 1), true});
    run({{1, 16, 82, 38}, {32, 16, 4, 4}, lists({2, 2}, {}, {1, 1}, {1, 1}, 1), true});
    run({{5, 32, 37, 38}, {48, 32, 1, 1}, lists({2, 2}, {}, {}, {}, 1), true});
    run({{1, 32, 90, 35}, {32, 32, 2, 1}, lists({4, 3}, {}, {}, {}, 1)});
    run({{1, 32, 90, 35}, {32, 32, 2, 1}, lists({4, 3}, {}, {3, 2}, {2, 1}, 1)});
    run({{1, 16, 1101}, {32, 16, 5}, lists({2}, {}, {2}, {2}, 1), true});
    run({{1, 16, 13, 12, 11}, {16, 16, 3, 2, 3}, lists({2, 2, 1}, {}, {1, 0, 1}, {1, 1, 0}, 1), true});
    run({{2, 32, 83, 40}, {32, 1, 3, 3}, lists({2, 2}, {}, {1, 1}, {1, 1}, 32), true});
    const Geometry g = {{2, 16, 10, 11}, {32, 16, 3, 3}, lists({}, {}, {1, 1}, {1, 1}, 1), true};
    for (Layout layout : kEveryLayout) run(g, layout, layout);
    std::vector<Operand> operands;
    for (const Shape& shape : input_shapes(g)) operands.push_back(operand(shape, Layout::CONTIGUOUS));
    for (Layout layout : {Layout::TRANSPOSED, Layout::STEPPED, Layout::NEGATIVE, Layout::OFFSET})
      session_.expect_into(op_, attributes_of(g), operands, bound_, what("output"), layout);
  }

  void large() {
    for (Layout layout : {Layout::CONTIGUOUS, Layout::TRANSPOSED}) {
      run(tiles(), layout, Layout::CONTIGUOUS);
      run(padded_tiles(), Layout::CONTIGUOUS, layout);
    }
  }

  void layouts() {
    const Geometry g = {{2, 4, 7, 6}, {6, 2, 3, 2}, lists({1, 2}, {}, {1, 1}, {1, 0}, 2), true};
    for (Layout layout : kEveryLayout) {
      run(g, layout, Layout::CONTIGUOUS);
      run(g, Layout::CONTIGUOUS, layout);
      run(g, layout, Layout::TRANSPOSED);
      run({{2, 5, 5, 6}, {5, 1, 3, 3}, lists({}, {}, {1, 1}, {1, 1}, 5), true}, layout, layout);
    }
    // Channels last.
    for (bool second : {false, true}) {
      std::vector<Operand> operands;
      for (const Shape& shape : input_shapes(g)) {
        if (shape.size() != 4 || (second && operands.empty())) {
          operands.push_back(operand(shape, Layout::CONTIGUOUS));
          continue;
        }
        operands.push_back(permuted(session_.upload(array({shape[0], shape[2], shape[3], shape[1]})), {0, 3, 1, 2}));
      }
      session_.expect(op_, attributes_of(g), operands, bound_, what("channels last"));
    }
  }

  void degenerate() {
    run({{0, 2, 5, 5}, {3, 2, 3, 3}, {}, true});
    run({{2, 0, 5, 5}, {3, 0, 3, 3}, {}, true});
    run({{2, 2, 5, 5}, {0, 2, 3, 3}, {}, true});
    run({{1, 1, 1}, {1, 1, 1}, {}, true});
    run({{1, 1, 1, 1}, {1, 1, 3, 3}, lists({}, {}, {1, 1}, {1, 1}, 1)});
    if (!is_transpose()) run({{2, 3, 0, 5}, {4, 3, 1, 1}, lists({}, {}, {1, 0}, {1, 0}, 1), true});
    run({{1, 3, 38, 35}, {5, 3, 16, 16}, lists({16, 16}, {}, {2, 0}, {1, 3}, 1), true});
    // Elements of the input that no window covers.
    run({{2, 2, 9, 10}, {3, 2, 2, 1}, lists({2, 3}, {}, {1, 2}, {}, 1), true}, Layout::TRANSPOSED);
    run({{2, 2, 9, 10}, {3, 2, 2, 2}, lists({4, 3}, {}, {}, {}, 1)});
    run({{2, 2, 9}, {3, 2, 1}, lists({4}, {}, {}, {}, 1), true});
    if (op_ == "convolution") {
      const Operand inputs[] = {operand({2, 3, 8}, Layout::CONTIGUOUS), operand({4, 3, 3}, Layout::CONTIGUOUS),
                                Operand{}};
      session_.expect(op_, {}, inputs, bound_, what("an absent bias"));
    }
  }

  void outputs() {
    const Geometry g = {{2, 4, 7, 6}, {6, 4, 3, 2}, lists({2, 1}, {}, {1, 1}, {1, 0}, 1), true};
    std::vector<Operand> operands;
    for (const Shape& shape : input_shapes(g)) operands.push_back(operand(shape, Layout::CONTIGUOUS));
    for (Layout layout : {Layout::CONTIGUOUS, Layout::TRANSPOSED, Layout::STEPPED, Layout::NEGATIVE, Layout::OFFSET})
      session_.expect_into(op_, attributes_of(g), operands, bound_, what("output"), layout);
  }

  void special_values() {
    if (!oracle::is_inexact(dtype_)) return;
    const Geometry padded = {{2, 2, 6, 7}, {3, 2, 3, 3}, lists({}, {}, {1, 1}, {1, 1}, 1), true};
    const Geometry plain = {{2, 2, 6, 7}, {3, 2, 3, 3}, {}, true};
    // Only where zeros of padding meet no infinity.
    const bool first_moves = op_ != "convolution_grad_weight";
    for (const Geometry& g : {padded, plain}) {
      std::vector<Operand> operands;
      for (const Shape& shape : input_shapes(g))
        operands.push_back(session_.upload(operands.empty() == first_moves ? special(shape) : array(shape)));
      session_.expect(op_, attributes_of(g), operands, bound_, what("special values"));
    }
    if (op_ != "convolution") return;
    const Operand all[] = {session_.upload(special(plain.x)), session_.upload(special(plain.weight)),
                           session_.upload(special({3}))};
    session_.expect(op_, {}, all, bound_, what("special values everywhere"));
  }

  // The op is linear in each factor, so differences are exact for small integers: the gradient of an element is the
  // change of the sum of dy * y if the element grows by 1.
  void exact_differences() {
    if (dtype_ != dtype::FLOAT64 || (op_ != "convolution_grad_input" && op_ != "convolution_grad_weight")) return;
    const Geometry g = {{2, 4, 6, 5}, {6, 2, 3, 2}, lists({2, 1}, {1, 2}, {1, 1}, {0, 2}, 2)};
    const auto integers = [&](const Shape& shape) {
      Array values(dtype_, shape);
      for (int64_t i = 0; i < values.size(); ++i)
        values.set(i, Value::of(static_cast<Real>(inputs_.random().below(9)) - 4));
      return values;
    };
    const bool to_weight = op_ == "convolution_grad_weight";
    Array x = integers(g.x), weight = integers(g.weight);
    const Array dy = integers(output_shape(g));
    const auto total = [&] {
      const Operand inputs[] = {session_.upload(x), session_.upload(weight)};
      const std::vector<Value> y = session_.download(session_.run("convolution", g.attributes, inputs)).values();
      Real sum = 0;
      for (size_t i = 0; i < y.size(); ++i) sum += y[i].re * dy.at(static_cast<int64_t>(i)).re;
      return sum;
    };
    const Operand inputs[] = {session_.upload(dy), session_.upload(to_weight ? x : weight)};
    const Array gradient = session_.download(session_.run(op_, attributes_of(g), inputs));
    const Real before = total();
    Array& changed = to_weight ? weight : x;
    ASSERT_EQ(gradient.shape(), changed.shape());
    for (int64_t i = 0; i < changed.size(); ++i) {
      const Value old = changed.at(i);
      changed.set(i, Value::of(old.re + 1));
      EXPECT_EQ(gradient.at(i).re, total() - before) << what("element " + std::to_string(i));
      changed.set(i, old);
    }
  }

  const Session& session_;
  const std::string op_;
  const Dtype dtype_;
  const Bound bound_;
  const uint64_t seed_;
  Inputs inputs_;
};

void refuses(const Session& session) {
  const auto refusal = [&](const std::string& op, const Attributes& attributes, const std::vector<Shape>& shapes) {
    std::vector<Operand> inputs;
    for (const Shape& shape : shapes) inputs.push_back(session.upload(Array(dtype::FLOAT32, shape)));
    Tensor result;
    const Error error = session.try_run(op, attributes, inputs, nullptr, result);
    EXPECT_EQ(error.code(), COMPUTE_ERROR_INVALID_ARGUMENT) << op << ": " << error.message();
  };
  const Shape x = {2, 4, 8, 8}, weight = {6, 4, 3, 3};
  refusal("convolution", {}, {{2, 4}, {6, 4}});
  refusal("convolution", {}, {x, {6, 4, 3}});
  refusal("convolution", {}, {x, {6, 3, 3, 3}});
  refusal("convolution", {}, {x, {6, 4, 9, 3}});
  refusal("convolution", {}, {x, {6, 4, 0, 3}});
  refusal("convolution", {}, {x, weight, {5}});
  refusal("convolution", {{"groups", int64_t{3}}}, {x, {6, 1, 3, 3}});
  refusal("convolution", {{"groups", int64_t{0}}}, {x, weight});
  refusal("convolution", {{"strides", Shape{0, 1}}}, {x, weight});
  refusal("convolution", {{"strides", Shape{1}}}, {x, weight});
  refusal("convolution", {{"pads_begin", Shape{-1, 0}}}, {x, weight});
  refusal("convolution", {{"padding", std::string("full")}}, {x, weight});
  refusal("convolution", {{"padding", std::string("same")}, {"pads_end", Shape{1, 1}}}, {x, weight});
  refusal("convolution_grad_input", {{"shape", Shape{8, 8}}}, {{2, 6, 6, 5}, weight});
  refusal("convolution_grad_weight", {{"kernel", Shape{3, 3}}}, {{2, 6, 6, 5}, x});
  refusal("convolution_transpose", {{"output_padding", Shape{1, 0}}}, {x, {4, 6, 3, 3}});
}

}  // namespace

void add_convolution_tests(Registry& registry) {
  for (const char* op : {"convolution", "convolution_grad_input", "convolution_grad_weight", "convolution_transpose"}) {
    for (Dtype dtype : tested_dtypes(registry.level())) {
      if (oracle::is_bool(dtype)) continue;
      Test test{"convolution",
                std::string(op) + "_" + oracle::info(dtype).name,
                nullptr,
                dtype == dtype::FLOAT32 ? Level::SMOKE : Level::QUICK,
                op,
                {dtype}};
      test.body = [op, dtype](const Session& session) {
        Case c(session, op, dtype);
        session.level() == Level::FULL ? c.full() : c.quick();
      };
      registry.add(std::move(test));
    }
  }
  Test refusal{"refusal", "convolutions_that_do_not_fit", refuses};
  refusal.runs_ops = false;
  registry.add(std::move(refusal));
}

}  // namespace compute::conformance
