// SPDX-License-Identifier: Apache-2.0
// Reverse-mode differentiation over the ops of compute.hpp, to copy and to extend.
//
//   tape::Value w = tape::parameter(device.from_host(...));
//   tape::Value loss = mean(square(matmul(x, w) - y));
//   tape::backward(loss);
//   ... w.gradient() ...
//
// A Value is a tensor and how it was computed. backward() walks from a number to the parameters behind it and adds up
// gradients. Elementwise functions are expressions, whose gradients the library derives (Expression::gradient), so that
// each of them is one pass over memory in both directions. The other functions call the gradient ops.
#pragma once

#include <compute/compute.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace tape {

using compute::none;
using compute::Shape;
using compute::Tensor;

/// The stream of this thread's functions; without one, the default stream of each device. A graph of a whole step is
/// recorded on it.
inline thread_local compute::Stream stream;

struct Node {
  Tensor value, gradient;  // gradient: empty until backward() reaches the node
  std::vector<std::shared_ptr<Node>> parents;
  std::function<void(const Tensor& gradient)> backward;  // adds to the parents' gradients
  bool is_wanted = false;                                // whether a parameter is behind it
};

class Value {
 public:
  Value() = default;
  Value(Tensor constant) : node_(std::make_shared<Node>()) {  // NOLINT: implicit on purpose
    node_->value = std::move(constant);
  }
  [[nodiscard]] const Tensor& tensor() const { return node_->value; }
  [[nodiscard]] const Tensor& gradient() const { return node_->gradient; }
  [[nodiscard]] std::span<const int64_t> shape() const { return node_->value.shape(); }
  [[nodiscard]] bool is_wanted() const { return node_ && node_->is_wanted; }
  [[nodiscard]] const std::shared_ptr<Node>& node() const { return node_; }
  explicit operator bool() const { return node_ != nullptr; }

 private:
  std::shared_ptr<Node> node_;
};

[[nodiscard]] inline std::vector<int64_t> extents(const Value& value) {
  return {value.shape().begin(), value.shape().end()};
}

// ---- The tape -------------------------------------------------------------------------------------------------------

/// A value whose gradient is wanted.
[[nodiscard]] inline Value parameter(Tensor tensor) {
  Value value(std::move(tensor));
  value.node()->is_wanted = true;
  return value;
}

/// The sum of `gradient` over the axes along which a tensor of `shape` was broadcast.
[[nodiscard]] inline Tensor unbroadcast(Tensor gradient, std::span<const int64_t> shape) {
  std::vector<int64_t> axes;
  const auto extra = gradient.shape().size() - shape.size();
  for (size_t i = 0; i < gradient.shape().size(); ++i) {
    if (i < extra || (shape[i - extra] == 1 && gradient.shape()[i] != 1)) axes.push_back(static_cast<int64_t>(i));
  }
  if (axes.empty()) return gradient;
  return compute::sum(gradient, axes, true, none, stream).reshape(std::vector<int64_t>(shape.begin(), shape.end()));
}

/// Adds to the gradient of `value`, if that is wanted.
inline void accumulate(const Value& value, const Tensor& gradient) {
  if (!value.is_wanted()) return;
  Tensor& total = value.node()->gradient;
  const Tensor given = unbroadcast(gradient, value.shape());
  total = total.get() != nullptr ? compute::add(total, given, stream) : given;
}

/// The result of a function of `parents`. `backward` gets its gradient and accumulates theirs.
[[nodiscard]] inline Value make(Tensor value, std::vector<Value> parents,
                                std::function<void(const Tensor& gradient)> backward) {
  Value result(std::move(value));
  for (const Value& parent : parents) {
    if (!parent.is_wanted()) continue;
    result.node()->is_wanted = true;
    result.node()->parents.push_back(parent.node());
  }
  if (result.is_wanted()) result.node()->backward = std::move(backward);
  return result;
}

/// Computes the gradients of `loss`, a tensor of rank 0, by everything behind it, and drops the tape. `scale`: the
/// gradient of the loss by itself. Calls finished(gradient) as soon as the gradient of a parameter is complete.
inline void backward(const Value& loss, double scale = 1, const std::function<void(Tensor& gradient)>& finished = {}) {
  std::vector<std::shared_ptr<Node>> order, stack{loss.node()};
  std::unordered_set<const Node*> seen, done;
  std::map<const Node*, int> uses;  // that do not have added to the gradient yet
  while (!stack.empty()) {
    const std::shared_ptr<Node> node = stack.back();
    if (seen.insert(node.get()).second) {
      for (const std::shared_ptr<Node>& parent : node->parents) ++uses[parent.get()];
      stack.insert(stack.end(), node->parents.begin(), node->parents.end());
      continue;
    }
    stack.pop_back();
    if (done.insert(node.get()).second) order.push_back(node);  // after everything behind it
  }
  static const compute::Expression constant("0 * x + a", {"x"}, {"a"});
  loss.node()->gradient = compute::map(constant, {loss.tensor()}, {scale}, stream);
  std::for_each(order.rbegin(), order.rend(), [&](const std::shared_ptr<Node>& node) {
    if (node->backward && node->gradient.get() != nullptr) node->backward(node->gradient);
    if (!node->backward) return;
    for (const std::shared_ptr<Node>& parent : node->parents) {
      const bool is_last = --uses[parent.get()] == 0;
      if (finished && is_last && !parent->backward && parent->gradient.get() != nullptr) finished(parent->gradient);
    }
    node->backward = nullptr;
    node->gradient = Tensor();
    node->parents.clear();
  });
}

// ---- Elementwise functions ------------------------------------------------------------------------------------------

/// `text` over x, y, z, u, v (the values, which broadcast) and a, b, c (the numbers):
/// map("tanh(a * x + y)", {x, y}, {2}).
[[nodiscard]] inline Value map(const std::string& text, std::vector<Value> values,
                               std::vector<compute::Scalar> numbers = {}) {
  struct Pair {
    compute::Expression forward, gradient;  // the gradient by every value of float dtype that is wanted
  };
  static constexpr const char* kNames[] = {"x", "y", "z", "u", "v"};
  static constexpr const char* kNumbers[] = {"a", "b", "c", "d"};
  thread_local std::map<std::pair<std::string, std::vector<int32_t>>, Pair> cache;
  std::vector<int32_t> wanted;
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].is_wanted()) wanted.push_back(static_cast<int32_t>(i));
    inputs.push_back(values[i].tensor());
  }
  Pair& pair = cache[{text + '/' + std::to_string(values.size()), wanted}];
  if (!pair.forward) {
    pair.forward =
        compute::Expression(text, std::span(kNames).first(values.size()), std::span(kNumbers).first(numbers.size()));
    if (!wanted.empty()) pair.gradient = pair.forward.gradient(wanted);
  }
  Tensor result = compute::map(pair.forward, inputs, numbers, stream);
  return make(std::move(result), values, [=, gradient = pair.gradient](const Tensor& dy) {
    std::vector<Tensor> all = inputs;
    all.push_back(dy);
    const std::vector<Tensor> gradients = gradient.run(all, numbers, stream);
    for (size_t i = 0; i < wanted.size(); ++i) accumulate(values[static_cast<size_t>(wanted[i])], gradients[i]);
  });
}

[[nodiscard]] inline Value operator+(const Value& x, const Value& y) { return map("x + y", {x, y}); }
[[nodiscard]] inline Value operator-(const Value& x, const Value& y) { return map("x - y", {x, y}); }
[[nodiscard]] inline Value operator*(const Value& x, const Value& y) { return map("x * y", {x, y}); }
[[nodiscard]] inline Value operator/(const Value& x, const Value& y) { return map("x / y", {x, y}); }
[[nodiscard]] inline Value operator*(const Value& x, double a) { return map("x * a", {x}, {a}); }
[[nodiscard]] inline Value operator+(const Value& x, double a) { return map("x + a", {x}, {a}); }
[[nodiscard]] inline Value relu(const Value& x) { return map("where(x <= 0, 0, x)", {x}); }
[[nodiscard]] inline Value tanh(const Value& x) { return map("tanh(x)", {x}); }
[[nodiscard]] inline Value exp(const Value& x) { return map("exp(x)", {x}); }
[[nodiscard]] inline Value log(const Value& x) { return map("log(x)", {x}); }
[[nodiscard]] inline Value square(const Value& x) { return map("x * x", {x}); }
[[nodiscard]] inline Value sigmoid(const Value& x) {
  return map("e = exp(where(x < 0, x, -x)); where(x < 0, e, 1) / (1 + e)", {x});
}
[[nodiscard]] inline Value gelu(const Value& x) { return map("0.5 * x * (1 + erf(x * 0.70710678118654752440))", {x}); }

// ---- Views and reductions -------------------------------------------------------------------------------------------

/// A view where the strides allow it, else a copy.
[[nodiscard]] inline Tensor reshaped(const Tensor& x, const std::vector<int64_t>& shape) {
  int64_t stride = 1;
  bool is_row_major = true;
  for (int32_t i = x.rank(); i-- > 0;) {
    const auto axis = static_cast<size_t>(i);
    is_row_major = is_row_major && (x.shape()[axis] == 1 || x.strides()[axis] == stride);
    stride *= x.shape()[axis];
  }
  return (is_row_major ? x : compute::copy(x, stream)).reshape(shape);
}

[[nodiscard]] inline Value reshape(const Value& x, std::vector<int64_t> shape) {
  return make(reshaped(x.tensor(), shape), {x}, [x](const Tensor& dy) { accumulate(x, reshaped(dy, extents(x))); });
}

[[nodiscard]] inline Value permute(const Value& x, std::vector<int32_t> axes) {
  return make(x.tensor().permute(axes), {x}, [x, axes](const Tensor& dy) {
    std::vector<int32_t> inverse(axes.size());
    for (size_t i = 0; i < axes.size(); ++i) inverse[static_cast<size_t>(axes[i])] = static_cast<int32_t>(i);
    accumulate(x, dy.permute(inverse));
  });
}

/// x[position] along the first axis.
[[nodiscard]] inline Value select(const Value& x, int64_t position) {
  return make(x.tensor()[position], {x}, [x, position](const Tensor& dy) {
    const Tensor gradient = dy.device().empty(dy.dtype(), extents(x));
    compute::fill_into(gradient, extents(x), dy.dtype(), 0, stream);
    compute::copy_into(dy, gradient[position], stream);
    accumulate(x, gradient);
  });
}

[[nodiscard]] inline Value sum(const Value& x) {
  return make(compute::sum(x.tensor(), compute::all_axes, false, none, stream), {x},
              [x](const Tensor& dy) { accumulate(x, dy.broadcast_to(extents(x))); });
}

[[nodiscard]] inline Value mean(const Value& x) { return sum(x) * (1.0 / static_cast<double>(x.tensor().size())); }

// ---- Products -------------------------------------------------------------------------------------------------------

/// [..., m, k] times [..., k, n]; batch axes broadcast.
[[nodiscard]] inline Value matmul(const Value& a, const Value& b) {
  return make(compute::matmul(a.tensor(), b.tensor(), stream), {a, b}, [a, b](const Tensor& dy) {
    const auto transposed = [](const Tensor& x) {
      std::vector<int32_t> axes(static_cast<size_t>(x.rank()));
      for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int32_t>(i);
      std::swap(axes[axes.size() - 2], axes[axes.size() - 1]);
      return x.permute(axes);
    };
    if (a.is_wanted()) accumulate(a, compute::matmul(dy, transposed(b.tensor()), stream));
    if (b.is_wanted()) accumulate(b, compute::matmul(transposed(a.tensor()), dy, stream));
  });
}

/// x [..., k] times weight [k, n], plus bias [n].
[[nodiscard]] inline Value linear(const Value& x, const Value& weight, const Value& bias) {
  return make(compute::affine(x.tensor(), weight.tensor(), bias.tensor(), 0, "none", stream), {x, weight, bias},
              [=](const Tensor& dy) {
                const int64_t k = weight.shape()[0], n = weight.shape()[1], rows = dy.size() / n;
                const Tensor d = reshaped(dy, {rows, n});
                if (x.is_wanted())
                  accumulate(x, compute::matmul(d, weight.tensor().permute({1, 0}), stream).reshape(extents(x)));
                if (weight.is_wanted())
                  accumulate(weight, compute::matmul(reshaped(x.tensor(), {rows, k}).permute({1, 0}), d, stream));
                if (bias.is_wanted()) accumulate(bias, compute::sum(d, {0}, false, none, stream));
              });
}

// ---- Layers ---------------------------------------------------------------------------------------------------------

/// x [n, c, spatial...] with weight [c_out, c, kernel...] and bias [c_out].
[[nodiscard]] inline Value convolution(const Value& x, const Value& weight, const Value& bias,
                                       const std::string& padding = "valid") {
  const auto spatial = [](const Value& v) { return std::vector<int64_t>(v.shape().begin() + 2, v.shape().end()); };
  return make(compute::convolution(x.tensor(), weight.tensor(), bias.tensor(), {}, {}, {}, {}, padding, 1, stream),
              {x, weight, bias}, [=](const Tensor& dy) {
                if (x.is_wanted()) {
                  accumulate(x, compute::convolution_grad_input(dy, weight.tensor(), spatial(x), {}, {}, {}, {},
                                                                padding, 1, stream));
                }
                if (weight.is_wanted()) {
                  accumulate(weight, compute::convolution_grad_weight(dy, x.tensor(), spatial(weight), {}, {}, {}, {},
                                                                      padding, 1, stream));
                }
                std::vector<int64_t> axes{0};
                for (int32_t i = 2; i < dy.rank(); ++i) axes.push_back(i);
                if (bias.is_wanted()) accumulate(bias, compute::sum(dy, axes, false, none, stream));
              });
}

/// Windows of [n, c, spatial...] that do not overlap.
[[nodiscard]] inline Value max_pool(const Value& x, std::vector<int64_t> window) {
  const Tensor y = compute::max_pool(x.tensor(), window, {}, {}, {}, {}, "explicit", stream);
  return make(y, {x}, [=](const Tensor& dy) {
    accumulate(x, compute::max_pool_grad(dy, x.tensor(), y, window, {}, {}, {}, {}, "explicit", stream));
  });
}

/// Rows of table [n, d] at integer indices [...]: [..., d].
[[nodiscard]] inline Value embedding(const Value& table, const Tensor& indices) {
  return make(compute::take(table.tensor(), indices, 0, stream), {table}, [=](const Tensor& dy) {
    accumulate(table, compute::take_grad(dy, indices, table.shape()[0], 0, false, stream));
  });
}

[[nodiscard]] inline Value layer_norm(const Value& x, const Value& scale, const Value& bias) {
  const compute::LayerNormResult y = compute::layer_norm(x.tensor(), scale.tensor(), bias.tensor(), -1, 1e-5, stream);
  return make(y.y, {x, scale, bias}, [=](const Tensor& dy) {
    const auto gradients = compute::layer_norm_grad(dy, x.tensor(), y.mean, y.rstd, scale.tensor(), -1, stream);
    accumulate(x, gradients.dx);
    accumulate(scale, gradients.dscale);
    accumulate(bias, gradients.dbias);
  });
}

/// Drops with probability p. `seed` and the attribute `offset` choose the random bits, which the gradient draws again.
[[nodiscard]] inline Value dropout(const Value& x, double p, int64_t seed, const compute::Attribute& offset) {
  static const compute::Op op("dropout");
  const auto dropped = [p, seed, offset](const Tensor& from) {
    return op.run({from}, {{"p", p}, {"seed", seed}, offset}, stream);
  };
  return make(dropped(x.tensor()).front(), {x}, [=](const Tensor& dy) { accumulate(x, dropped(dy).front()); });
}

/// q [b, h, n, d], k and v [b, h, m, d].
[[nodiscard]] inline Value attention(const Value& q, const Value& k, const Value& v, bool causal) {
  const compute::AttentionResult y = compute::attention(q.tensor(), k.tensor(), v.tensor(), {}, causal, 0, stream);
  return make(y.y, {q, k, v}, [=](const Tensor& dy) {
    const auto gradients =
        compute::attention_grad(dy, q.tensor(), k.tensor(), v.tensor(), y.y, y.logsumexp, {}, causal, 0, stream);
    accumulate(q, gradients.dq);
    accumulate(k, gradients.dk);
    accumulate(v, gradients.dv);
  });
}

/// Attention of x [b, n, 3 c] to itself: each row has its query, key and value side by side, in `heads` heads. The
/// result is [b, n, c]. The parts of x and of its gradient are views.
[[nodiscard]] inline Value self_attention(const Value& x, int64_t heads, bool causal) {
  const int64_t b = x.shape()[0], n = x.shape()[1], c = x.shape()[2] / 3, d = c / heads;
  const auto part = [=](const Tensor& t, int64_t i) {
    return t.reshape({b, n, 3, heads, d}).permute({2, 0, 3, 1, 4})[i];
  };
  const auto by_heads = [=](const Tensor& t) { return t.reshape({b, n, heads, d}).permute({0, 2, 1, 3}); };
  const compute::Device device = x.tensor().device();
  const compute::DType dtype = x.tensor().dtype();
  const Tensor y = device.empty(dtype, {b, n, c});
  const Tensor logsumexp = device.empty(dtype == compute::float64 ? dtype : compute::float32, {b, heads, n});
  const Tensor in = x.tensor();
  compute::attention_into(part(in, 0), part(in, 1), part(in, 2), {}, by_heads(y), logsumexp, causal, 0, stream);
  return make(y, {x}, [=](const Tensor& dy) {
    const Tensor gradient = device.empty(dtype, {b, n, 3 * c});
    compute::attention_grad_into(by_heads(reshaped(dy, {b, n, c})), part(in, 0), part(in, 1), part(in, 2), by_heads(y),
                                 logsumexp, {}, part(gradient, 0), part(gradient, 1), part(gradient, 2), causal, 0,
                                 stream);
    accumulate(x, gradient);
  });
}

/// Mean over the samples of -log softmax(logits)[label]; logits [n, classes], integer labels [n].
[[nodiscard]] inline Value cross_entropy(const Value& logits, const Tensor& labels) {
  const compute::CrossEntropyResult y = compute::cross_entropy(logits.tensor(), labels, -1, 0, none, stream);
  return mean(make(y.loss, {logits}, [=](const Tensor& dy) {
    accumulate(logits, compute::cross_entropy_grad(dy, logits.tensor(), labels, y.logsumexp, -1, 0, none, stream));
  }));
}

/// Mean of the cross-entropy of sigmoid(logits) with targets in [0, 1].
[[nodiscard]] inline Value binary_cross_entropy(const Value& logits, const Tensor& targets) {
  return mean(map("max(x, 0) - x * y + log1p(exp(-abs(x)))", {logits, targets}));
}

// ---- Optimiser ------------------------------------------------------------------------------------------------------

/// Adam, or AdamW if `decay` is given, over parameters that stay where they are.
class Adam {
 public:
  explicit Adam(std::vector<Value> parameters, double decay = -1) : parameters_(std::move(parameters)), decay_(decay) {
    for (const Value& parameter : parameters_) {
      for (auto* moments : {&m_, &v_})
        moments->push_back(parameter.tensor().device().zeros(parameter.tensor().dtype(), extents(parameter)));
    }
  }
  /// Takes one step of all parameters that have gradients in one call, and drops these. The attribute `step` counts
  /// from 1.
  void step(double rate, const compute::Attribute& step) {
    std::vector<Tensor> parameters, gradients, m, v, inputs;
    for (size_t i = 0; i < parameters_.size(); ++i) {
      Tensor& gradient = parameters_[i].node()->gradient;
      if (gradient.get() == nullptr) continue;
      parameters.push_back(parameters_[i].tensor());
      gradients.push_back(std::exchange(gradient, Tensor()));
      m.push_back(m_[i]);
      v.push_back(v_[i]);
    }
    if (parameters.empty()) return;
    for (const auto* list : {&parameters, &gradients, &m, &v}) inputs.insert(inputs.end(), list->begin(), list->end());
    std::vector<Tensor> outputs = parameters;
    for (const auto* list : {&m, &v}) outputs.insert(outputs.end(), list->begin(), list->end());
    static const compute::Op adam("adam"), adamw("adamw");
    std::vector<compute::Attribute> attributes = {{"rate", rate}, step};
    if (decay_ >= 0) attributes.emplace_back("decay", decay_);
    (decay_ < 0 ? adam : adamw).into(inputs, outputs, attributes, stream);
  }

 private:
  std::vector<Value> parameters_;
  std::vector<Tensor> m_, v_;
  double decay_;
};

}  // namespace tape
