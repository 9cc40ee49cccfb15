// SPDX-License-Identifier: Apache-2.0
// References of the ops of neural networks, from their definitions: losses, norms, pooling, attention, optimisers.
#include <limits>

#include "tracked.hpp"

namespace compute::oracle {

namespace {

constexpr Real kInfinity = std::numeric_limits<Real>::infinity();

Real number(const Attributes& attributes, const char* name, Real fallback) {
  const auto found = attributes.find(name);
  if (found == attributes.end()) return fallback;
  if (!found->second.numbers.empty()) return static_cast<Real>(found->second.numbers[0].real());
  return static_cast<Real>(found->second.integers.at(0));
}

Shape without(Shape shape, size_t axis) {
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  return shape;
}

Shape with(Shape index, size_t axis, int64_t value) {
  index.insert(index.begin() + static_cast<std::ptrdiff_t>(axis), value);
  return index;
}

// Each line along `axis`: f(indices of its elements).
void for_each_line(const Shape& shape, size_t axis,
                   const std::function<void(const std::vector<Shape>&, const Shape&)>& f) {
  for_each_index(without(shape, axis), [&](const Shape& outer) {
    std::vector<Shape> line;
    for (int64_t i = 0; i < shape[axis]; ++i) line.push_back(with(outer, axis, i));
    f(line, outer);
  });
}

Result softmax_gradient(std::span<const Array> inputs, const Attributes& attributes, bool logarithm) {
  const Field dy(inputs[0]), y(inputs[1]);
  Field dx(dy.shape);
  for_each_line(dy.shape, axis_of(attributes, "axis", -1, dy.shape.size()), [&](const auto& line, const Shape&) {
    std::vector<Tracked> terms;
    for (const Shape& i : line) terms.push_back(logarithm ? dy[i] : dy[i] * y[i]);
    const Tracked total = sum(terms);
    for (const Shape& i : line) dx[i] = logarithm ? dy[i] - exp(y[i]) * total : y[i] * (dy[i] - total);
  });
  return tracked_result(inputs[0].dtype(), dx, computed_in(inputs[0].dtype()));
}

// ---- Norms ----------------------------------------------------------------------------------------------------------

// The same elements in another shape.
Field reshaped(Field x, const Shape& shape) {
  x.shape = shape;
  return x;
}

// The groups that are normalised together, with the index of their statistics, and the index of a parameter.
struct Groups {
  Shape statistics, parameters;
  std::vector<std::vector<Shape>> members;
  std::vector<Shape> names;  // of the groups: indices of the statistics
  bool is_batch, is_group;
  size_t axis;
  Shape whole;  // x's shape; of group norms with the channels as two axes

  Groups(const Shape& shape, size_t at, bool batch, int64_t groups = 0)
      : is_batch(batch), is_group(groups > 0), axis(at), whole(shape) {
    if (is_group) {
      whole[1] /= groups;
      whole.insert(whole.begin() + 1, groups);
    }
    for (size_t i = 0; i < whole.size(); ++i) (is_outer(i) ? statistics : rest_).push_back(whole[i]);
    parameters = is_group ? Shape{whole[1], whole[2]} : batch ? statistics : rest_;
    for_each_index(statistics, [&](const Shape& outer) {
      std::vector<Shape>& group = members.emplace_back();
      names.push_back(outer);
      for_each_index(rest_, [&](const Shape& inner) {
        Shape index;
        size_t o = 0, n = 0;
        for (size_t i = 0; i < whole.size(); ++i) index.push_back(is_outer(i) ? outer[o++] : inner[n++]);
        group.push_back(index);
      });
    });
  }
  bool is_outer(size_t i) const { return is_batch ? i == axis : i < axis; }
  Shape parameter(const Shape& index) const {
    if (is_group) return {index[1], index[2]};
    Shape result;
    for (size_t i = 0; i < index.size(); ++i)
      if (is_outer(i) == is_batch) result.push_back(index[i]);
    return result;
  }

 private:
  Shape rest_;
};

enum class Norm { kLayer, kBatch, kRms, kGroup };

Groups groups_of(const Array& x, const Attributes& attributes, Norm norm) {
  if (norm == Norm::kGroup) return Groups(x.shape(), 2, false, integer_or(attributes, "groups", 1));
  return Groups(x.shape(), axis_of(attributes, "axis", norm == Norm::kBatch ? 1 : -1, x.shape().size()),
                norm == Norm::kBatch);
}

Tracked mean_of(const std::vector<Tracked>& terms) { return sum(terms) / static_cast<Real>(terms.size()); }

Result norm(std::span<const Array> inputs, const Attributes& attributes, Norm kind) {
  const Groups groups = groups_of(inputs[0], attributes, kind);
  const Field x = reshaped(Field(inputs[0]), groups.whole);
  Field y(x.shape), mean(groups.statistics), spread(groups.statistics);
  const Real epsilon = number(attributes, "epsilon", 1e-5L);
  const Field scale = is_given(inputs, 1) ? reshaped(Field(inputs[1]), groups.parameters) : Field(),
              bias = is_given(inputs, 2) ? reshaped(Field(inputs[2]), groups.parameters) : Field();
  for (size_t g = 0; g < groups.names.size(); ++g) {
    std::vector<Tracked> terms, squares;
    for (const Shape& i : groups.members[g]) terms.push_back(x[i]);
    const Tracked m = kind == Norm::kRms ? Tracked() : mean_of(terms);
    for (const Tracked& each : terms) squares.push_back((each - m) * (each - m));
    const Tracked variance = mean_of(squares), rstd = Tracked(1) / sqrt(variance + epsilon);
    mean[groups.names[g]] = m;
    spread[groups.names[g]] = kind == Norm::kBatch ? variance : rstd;
    for (const Shape& i : groups.members[g]) {
      y[i] = (x[i] - m) * rstd;
      if (is_given(inputs, 1)) y[i] = y[i] * scale[groups.parameter(i)];
      if (is_given(inputs, 2)) y[i] = y[i] + bias[groups.parameter(i)];
    }
  }
  const Dtype dtype = inputs[0].dtype(), computed = computed_in(dtype);
  Result result = tracked_result(dtype, reshaped(y, inputs[0].shape()), computed);
  if (kind != Norm::kRms) result.more.push_back(tracked_result(computed, mean, computed));
  result.more.push_back(tracked_result(computed, spread, computed));
  return result;
}

Result norm_gradient(std::span<const Array> inputs, const Attributes& attributes, Norm kind) {
  const Groups groups = groups_of(inputs[1], attributes, kind);
  const Field dy = reshaped(Field(inputs[0]), groups.whole), x = reshaped(Field(inputs[1]), groups.whole);
  const size_t first = kind == Norm::kRms ? 2 : 3;  // the spread
  const Field mean = kind == Norm::kRms ? Field(groups.statistics) : Field(inputs[2]), spread(inputs[first]);
  const Field scale = is_given(inputs, first + 1) ? reshaped(Field(inputs[first + 1]), groups.parameters) : Field();
  const Real epsilon = number(attributes, "epsilon", 1e-5L);
  Field dx(x.shape), dscale(groups.parameters), dbias(groups.parameters);
  std::vector<Sum> scale_sums(dscale.values.size()), bias_sums(dscale.values.size());
  for (size_t g = 0; g < groups.names.size(); ++g) {
    const Tracked m = mean[groups.names[g]], given = spread[groups.names[g]];
    const Tracked rstd = kind == Norm::kBatch ? Tracked(1) / sqrt(given + epsilon) : given;
    std::vector<Tracked> plain, weighted;
    for (const Shape& i : groups.members[g]) {
      const Tracked normalised = (x[i] - m) * rstd;
      const Tracked d = is_given(inputs, first + 1) ? dy[i] * scale[groups.parameter(i)] : dy[i];
      plain.push_back(d);
      weighted.push_back(d * normalised);
      const size_t p = dscale.place(groups.parameter(i));
      scale_sums[p].add(dy[i] * normalised);
      bias_sums[p].add(dy[i]);
    }
    const Tracked s0 = kind == Norm::kRms ? Tracked() : mean_of(plain), s1 = mean_of(weighted);
    for (size_t k = 0; k < plain.size(); ++k) {
      const Shape& i = groups.members[g][k];
      dx[i] = rstd * (plain[k] - s0 - (x[i] - m) * rstd * s1);
    }
  }
  for (size_t p = 0; p < scale_sums.size(); ++p) {
    dscale.values[p] = scale_sums[p].total();
    dbias.values[p] = bias_sums[p].total();
  }
  const Dtype dtype = inputs[1].dtype(), computed = computed_in(dtype);
  const Shape parameter = kind == Norm::kGroup ? Shape{inputs[1].shape()[1]} : groups.parameters;
  Result result = tracked_result(dtype, reshaped(dx, inputs[1].shape()), computed);
  result.more.push_back(tracked_result(dtype, reshaped(dscale, parameter), computed));
  if (kind != Norm::kRms) result.more.push_back(tracked_result(dtype, reshaped(dbias, parameter), computed));
  return result;
}

// ---- Pooling --------------------------------------------------------------------------------------------------------

struct Window {
  int64_t extent, size, stride, dilation = 1, before = 0, after = 0, count = 0;
};

std::vector<Window> windows_of(const Attributes& attributes, const Shape& spatial) {
  const auto list = [&](const char* name, const Shape& fallback) {
    const auto found = attributes.find(name);
    return found == attributes.end() ? fallback : found->second.integers;
  };
  const Shape sizes = list("window", {}), ones(spatial.size(), 1), zeros(spatial.size(), 0);
  const Shape strides = list("strides", sizes), dilations = list("dilations", ones);
  const Shape before = list("pads_begin", zeros), after = list("pads_end", zeros);
  const auto padding = attributes.find("padding");
  std::vector<Window> windows;
  for (size_t i = 0; i < spatial.size(); ++i) {
    Window w{spatial[i], sizes[i], strides[i], dilations[i], before[i], after[i]};
    const int64_t reach = (w.size - 1) * w.dilation + 1;
    if (padding != attributes.end() && padding->second.text == "same") {
      const int64_t count = (w.extent + w.stride - 1) / w.stride;
      const int64_t total = std::max<int64_t>((count - 1) * w.stride + reach - w.extent, 0);
      w.before = total / 2;
      w.after = total - w.before;
    }
    w.count = (w.before + w.extent + w.after - reach) / w.stride + 1;
    windows.push_back(w);
  }
  return windows;
}

Shape spatial_of(const Shape& shape) { return {shape.begin() + 2, shape.end()}; }

Shape pooled(const Shape& shape, const std::vector<Window>& windows) {
  Shape result(shape.begin(), shape.begin() + 2);
  for (const Window& w : windows) result.push_back(w.count);
  return result;
}

// The elements in the window of a result that are not padding, row-major.
std::vector<Shape> elements_of(const Shape& result, const std::vector<Window>& windows) {
  Shape sizes;
  for (const Window& w : windows) sizes.push_back(w.size);
  std::vector<Shape> elements;
  for_each_index(sizes, [&](const Shape& tap) {
    Shape index(result.begin(), result.begin() + 2);
    for (size_t i = 0; i < windows.size(); ++i) {
      const Window& w = windows[i];
      const int64_t at = result[2 + i] * w.stride + tap[i] * w.dilation - w.before;
      if (at < 0 || at >= w.extent) return;
      index.push_back(at);
    }
    elements.push_back(index);
  });
  return elements;
}

Real divisor(const Attributes& attributes, const std::vector<Window>& windows, size_t elements) {
  if (integer_or(attributes, "count_include_pad", 0) == 0) return static_cast<Real>(std::max<size_t>(elements, 1));
  Real product = 1;
  for (const Window& w : windows) product *= static_cast<Real>(w.size);
  return product;
}

// ---- Attention ------------------------------------------------------------------------------------------------------

struct Scores {
  Field weights, logsumexp;  // [b, h, n, m], [b, h, n]
};

// `first` is the position of q among the inputs.
Scores scores_of(std::span<const Array> inputs, size_t first, size_t mask_index, const Attributes& attributes,
                 Real& scale) {
  const Field q(inputs[first]), k(inputs[first + 1]);
  const int64_t b = q.shape[0], h = q.shape[1], n = q.shape[2], d = q.shape[3], m = k.shape[2];
  const bool causal = integer_or(attributes, "causal", 0) != 0;
  scale = number(attributes, "scale", 0);
  if (scale == 0 && d > 0) scale = 1 / std::sqrt(static_cast<Real>(d));
  Array mask;
  if (is_given(inputs, mask_index)) mask = inputs[mask_index].broadcast_to({b, h, n, m});
  Scores result{Field({b, h, n, m}), Field({b, h, n})};
  for_each_index({b, h, n}, [&](const Shape& row) {
    std::vector<Tracked> scores;
    Real greatest = -kInfinity;
    const Tracked* const query = q.row({row[0], row[1], row[2], 0});
    for (int64_t j = 0; j < m; ++j) {
      const Tracked* const key = k.row({row[0], row[1] / (h / k.shape[1]), j, 0});
      Sum products;
      for (int64_t f = 0; f < d; ++f) products.add(query[f] * key[f]);
      Tracked score = products.total() * Tracked(scale, 0);
      if (mask.rank() > 0) {
        const Value value = mask.at(static_cast<int64_t>(result.weights.place({row[0], row[1], row[2], j})));
        if (is_bool(mask.dtype())) {
          if (value.integer == 0) score = Tracked(-kInfinity);
        } else {
          score = score + Tracked(value.re);
        }
      }
      if (causal && j > row[2] + m - n) score = Tracked(-kInfinity);
      scores.push_back(score);
      greatest = std::max(greatest, score.value);
    }
    std::vector<Tracked> exponentials;
    for (const Tracked& score : scores)
      if (score.value != -kInfinity) exponentials.push_back(exp(score - Tracked(greatest)));
    const Tracked lse = exponentials.empty() ? Tracked(-kInfinity) : log(sum(exponentials)) + Tracked(greatest);
    result.logsumexp[row] = lse;
    for (int64_t j = 0; j < m; ++j) {
      const Tracked& score = scores[static_cast<size_t>(j)];
      if (score.value != -kInfinity) result.weights[{row[0], row[1], row[2], j}] = exp(score - lse);
    }
  });
  return result;
}

}  // namespace

Result reference_softmax_grad(std::span<const Array> inputs, const Attributes& attributes) {
  return softmax_gradient(inputs, attributes, false);
}
Result reference_log_softmax_grad(std::span<const Array> inputs, const Attributes& attributes) {
  return softmax_gradient(inputs, attributes, true);
}

namespace {

// The logarithm of the sum of exponentials.
Tracked log_sum(const Field& x, const std::vector<Shape>& line) {
  Real greatest = -kInfinity;
  for (const Shape& i : line) greatest = std::max(greatest, x[i].value);
  std::vector<Tracked> terms;
  for (const Shape& i : line)
    if (x[i].value > -kInfinity) terms.push_back(exp(x[i] - Tracked(greatest)));
  return terms.empty() ? Tracked(-kInfinity) : log(sum(terms)) + Tracked(greatest);
}

bool is_ignored(const Attributes& attributes, Real label) {
  return attributes.contains("ignore_index") && label == static_cast<Real>(integer_or(attributes, "ignore_index", 0));
}

// The probability of class `i` that the label means, smoothed.
Tracked smoothed(const Attributes& attributes, Real label, size_t i, size_t classes) {
  const Tracked smoothing(number(attributes, "label_smoothing", 0), 0);
  const Tracked part = smoothing / static_cast<Real>(classes);
  return label == static_cast<Real>(i) ? Tracked(1) - smoothing + part : part;
}

Result losses(const Array& logits, const Field& loss, const Field& logsumexp) {
  const Dtype computed = computed_in(logits.dtype());
  Result result = tracked_result(computed, loss, computed);
  result.more.push_back(tracked_result(computed, logsumexp, computed));
  return result;
}

}  // namespace

Result reference_cross_entropy(std::span<const Array> inputs, const Attributes& attributes) {
  const Field x(inputs[0]), labels(inputs[1]);
  const size_t axis = axis_of(attributes, "axis", -1, x.shape.size());
  Field loss(without(x.shape, axis)), logsumexp(loss.shape);
  for_each_line(x.shape, axis, [&](const auto& line, const Shape& outer) {
    const Tracked lse = logsumexp[outer] = log_sum(x, line);
    const Real label = labels[outer].value;
    std::vector<Tracked> terms = {lse};
    for (size_t i = 0; i < line.size(); ++i) {
      const Tracked weight = smoothed(attributes, label, i, line.size());
      if (weight.value != 0) terms.push_back(Tracked() - x[line[i]] * weight);
    }
    loss[outer] = is_ignored(attributes, label) ? Tracked() : sum(terms);
  });
  return losses(inputs[0], loss, logsumexp);
}

Result reference_cross_entropy_grad(std::span<const Array> inputs, const Attributes& attributes) {
  const Field dloss(inputs[0]), x(inputs[1]), labels(inputs[2]), logsumexp(inputs[3]);
  const size_t axis = axis_of(attributes, "axis", -1, x.shape.size());
  Field dx(x.shape);
  for_each_line(x.shape, axis, [&](const auto& line, const Shape& outer) {
    const Real label = labels[outer].value;
    if (is_ignored(attributes, label)) return;
    for (size_t i = 0; i < line.size(); ++i) {
      const Tracked one = smoothed(attributes, label, i, line.size());
      dx[line[i]] = dloss[outer] * (exp(x[line[i]] - logsumexp[outer]) - one);
    }
  });
  return tracked_result(inputs[1].dtype(), dx, computed_in(inputs[1].dtype()));
}

Result reference_cross_entropy_soft(std::span<const Array> inputs, const Attributes& attributes) {
  const Field x(inputs[0]), targets(inputs[1]);
  const size_t axis = axis_of(attributes, "axis", -1, x.shape.size());
  Field loss(without(x.shape, axis)), logsumexp(loss.shape);
  for_each_line(x.shape, axis, [&](const auto& line, const Shape& outer) {
    const Tracked lse = logsumexp[outer] = log_sum(x, line);
    std::vector<Tracked> terms;
    for (const Shape& i : line)
      if (targets[i].value != 0) terms.push_back(targets[i] * (lse - x[i]));
    loss[outer] = sum(terms);
  });
  return losses(inputs[0], loss, logsumexp);
}

Result reference_cross_entropy_soft_grad(std::span<const Array> inputs, const Attributes& attributes) {
  const Field dloss(inputs[0]), x(inputs[1]), targets(inputs[2]), logsumexp(inputs[3]);
  Field dx(x.shape);
  const size_t axis = axis_of(attributes, "axis", -1, x.shape.size());
  for_each_line(x.shape, axis, [&](const auto& line, const Shape& outer) {
    std::vector<Tracked> terms;
    for (const Shape& i : line) terms.push_back(targets[i]);
    const Tracked total = sum(terms);
    for (const Shape& i : line) dx[i] = dloss[outer] * (exp(x[i] - logsumexp[outer]) * total - targets[i]);
  });
  return tracked_result(inputs[1].dtype(), dx, computed_in(inputs[1].dtype()));
}

Result reference_layer_norm(std::span<const Array> inputs, const Attributes& attributes) {
  return norm(inputs, attributes, Norm::kLayer);
}
Result reference_batch_norm(std::span<const Array> inputs, const Attributes& attributes) {
  return norm(inputs, attributes, Norm::kBatch);
}
Result reference_rms_norm(std::span<const Array> inputs, const Attributes& attributes) {
  return norm(inputs, attributes, Norm::kRms);
}
Result reference_layer_norm_grad(std::span<const Array> inputs, const Attributes& attributes) {
  return norm_gradient(inputs, attributes, Norm::kLayer);
}
Result reference_batch_norm_grad(std::span<const Array> inputs, const Attributes& attributes) {
  return norm_gradient(inputs, attributes, Norm::kBatch);
}
Result reference_group_norm(std::span<const Array> inputs, const Attributes& attributes) {
  return norm(inputs, attributes, Norm::kGroup);
}
Result reference_group_norm_grad(std::span<const Array> inputs, const Attributes& attributes) {
  return norm_gradient(inputs, attributes, Norm::kGroup);
}
Result reference_rms_norm_grad(std::span<const Array> inputs, const Attributes& attributes) {
  return norm_gradient(inputs, attributes, Norm::kRms);
}

Result reference_batch_norm_inference(std::span<const Array> inputs, const Attributes& attributes) {
  const Field x(inputs[0]), mean(inputs[1]), variance(inputs[2]);
  const Groups groups = groups_of(inputs[0], attributes, Norm::kBatch);
  const Real epsilon = number(attributes, "epsilon", 1e-5L);
  const Field scale = is_given(inputs, 3) ? Field(inputs[3]) : Field(),
              bias = is_given(inputs, 4) ? Field(inputs[4]) : Field();
  Field y(x.shape);
  for_each_index(x.shape, [&](const Shape& i) {
    const Shape p = groups.parameter(i);
    y[i] = (x[i] - mean[p]) / sqrt(variance[p] + epsilon);
    if (is_given(inputs, 3)) y[i] = y[i] * scale[p];
    if (is_given(inputs, 4)) y[i] = y[i] + bias[p];
  });
  return tracked_result(inputs[0].dtype(), y, computed_in(inputs[0].dtype()));
}

Result reference_max_pool(std::span<const Array> inputs, const Attributes& attributes) {
  const Array& x = inputs[0];
  const std::vector<Window> windows = windows_of(attributes, spatial_of(x.shape()));
  const Field places(x.shape());
  Result result;
  result.dtype = x.dtype();
  result.shape = pooled(x.shape(), windows);
  for_each_index(result.shape, [&](const Shape& index) {
    Value best = is_float(x.dtype()) ? Value::of(-kInfinity) : Value::of(integer_min(x.dtype()));
    for (const Shape& i : elements_of(index, windows)) {
      const Value value = x.at(static_cast<int64_t>(places.place(i)));
      if (std::isnan(best.re)) break;
      if (is_float(x.dtype()) ? std::isnan(value.re) || value.re > best.re : value.integer > best.integer) best = value;
    }
    result.elements.push_back({best, kSigns});
  });
  return result;
}

Result reference_max_pool_grad(std::span<const Array> inputs, const Attributes& attributes) {
  const Field dy(inputs[0]), x(inputs[1]);
  const std::vector<Window> windows = windows_of(attributes, spatial_of(x.shape));
  std::vector<Sum> sums(x.values.size());
  for_each_index(dy.shape, [&](const Shape& index) {
    const std::vector<Shape> elements = elements_of(index, windows);
    const Shape* best = nullptr;
    for (const Shape& i : elements) {
      if (best != nullptr && std::isnan(x[*best].value)) break;
      if (best == nullptr || std::isnan(x[i].value) || x[i].value > x[*best].value) best = &i;
    }
    if (best != nullptr) sums[x.place(*best)].add(dy[index]);
  });
  Field dx(x.shape);
  for (size_t i = 0; i < sums.size(); ++i) dx.values[i] = sums[i].total();
  return tracked_result(inputs[1].dtype(), dx, computed_in(inputs[1].dtype()));
}

Result reference_average_pool(std::span<const Array> inputs, const Attributes& attributes) {
  const Field x(inputs[0]);
  const std::vector<Window> windows = windows_of(attributes, spatial_of(x.shape));
  Field y(pooled(x.shape, windows));
  for_each_index(y.shape, [&](const Shape& index) {
    std::vector<Tracked> terms;
    for (const Shape& i : elements_of(index, windows)) terms.push_back(x[i]);
    y[index] = sum(terms) / divisor(attributes, windows, terms.size());
  });
  return tracked_result(inputs[0].dtype(), y, computed_in(inputs[0].dtype()));
}

Result reference_average_pool_grad(std::span<const Array> inputs, const Attributes& attributes) {
  const Field dy(inputs[0]);
  Shape shape(dy.shape.begin(), dy.shape.begin() + 2);
  const Shape spatial = attributes.find("shape")->second.integers;
  shape.insert(shape.end(), spatial.begin(), spatial.end());
  const std::vector<Window> windows = windows_of(attributes, spatial);
  Field dx(shape);
  std::vector<Sum> sums(dx.values.size());
  for_each_index(dy.shape, [&](const Shape& index) {
    const std::vector<Shape> elements = elements_of(index, windows);
    for (const Shape& i : elements) sums[dx.place(i)].add(dy[index] / divisor(attributes, windows, elements.size()));
  });
  for (size_t i = 0; i < sums.size(); ++i) dx.values[i] = sums[i].total();
  return tracked_result(inputs[0].dtype(), dx, computed_in(inputs[0].dtype()));
}

namespace {

// What may be rounded to a half type before it is a factor: by u of its precision, or by half of its least number.
class FactorRounding {
 public:
  explicit FactorRounding(Dtype dtype) {
    if (dtype == computed_in(dtype)) return;
    const Format half = format(dtype);
    ratio_ = std::ldexp(1.0L, 24 - half.precision);
    least_ = smallest_subnormal(half) / 2 * std::ldexp(1.0L, 24);
  }
  Tracked operator()(Tracked x) const {
    x.error += std::fabs(x.value) * ratio_ + least_;
    return x;
  }

 private:
  Real ratio_ = 0, least_ = 0;
};

}  // namespace

Result reference_attention(std::span<const Array> inputs, const Attributes& attributes) {
  const Field v(inputs[2]);
  Real scale = 0;
  const Scores scores = scores_of(inputs, 0, 3, attributes, scale);
  const Shape& s = scores.weights.shape;
  Field y({s[0], s[1], s[2], v.shape[3]});
  const FactorRounding rounded(inputs[0].dtype());
  for_each_index(scores.logsumexp.shape, [&](const Shape& row) {
    const Tracked* const weights = scores.weights.row({row[0], row[1], row[2], 0});
    std::vector<Sum> sums(static_cast<size_t>(v.shape[3]));
    for (int64_t j = 0; j < s[3]; ++j) {
      const Tracked weight = rounded(weights[j]);
      const Tracked* value = v.row({row[0], row[1] / (s[1] / v.shape[1]), j, 0});
      for (Sum& sum : sums) sum.add(weight * *value++);
    }
    Tracked* result = y.values.data() + y.place({row[0], row[1], row[2], 0});
    for (const Sum& sum : sums) *result++ = sum.total();
  });
  const Dtype dtype = inputs[0].dtype(), computed = computed_in(dtype);
  Result result = tracked_result(dtype, y, computed);
  result.more.push_back(tracked_result(computed, scores.logsumexp, computed));
  return result;
}

Result reference_attention_grad(std::span<const Array> inputs, const Attributes& attributes) {
  const Field dy(inputs[0]), q(inputs[1]), k(inputs[2]), v(inputs[3]), y(inputs[4]);
  Real scale = 0;
  const Scores scores = scores_of(inputs, 1, 6, attributes, scale);
  const Shape& s = scores.weights.shape;
  const int64_t group = s[1] / k.shape[1];
  const FactorRounding rounded(inputs[1].dtype());
  std::vector<Sum> dq(q.values.size()), dk(k.values.size()), dv(v.values.size());
  for_each_index({s[0], s[1], s[2]}, [&](const Shape& row) {
    const int64_t shared = row[1] / group;
    const Tracked *const dy_row = dy.row({row[0], row[1], row[2], 0}),
                         *const y_row = y.row({row[0], row[1], row[2], 0}),
                         *const query = q.row({row[0], row[1], row[2], 0});
    Sum* const dq_row = dq.data() + (query - q.values.data());
    Sum products;
    for (int64_t f = 0; f < v.shape[3]; ++f) products.add(dy_row[f] * y_row[f]);
    const Tracked delta = products.total();
    for (int64_t j = 0; j < s[3]; ++j) {
      const Tracked weight = scores.weights[{row[0], row[1], row[2], j}];
      if (weight.value == 0 && weight.error == 0) continue;
      const Tracked *const key = k.row({row[0], shared, j, 0}), *const value = v.row({row[0], shared, j, 0});
      Sum *const dk_row = dk.data() + (key - k.values.data()), *const dv_row = dv.data() + (value - v.values.data());
      const Tracked factor = rounded(weight);
      Sum terms;
      for (int64_t f = 0; f < v.shape[3]; ++f) {
        terms.add(dy_row[f] * value[f]);
        dv_row[f].add(factor * dy_row[f]);
      }
      const Tracked dscore = rounded(weight * (terms.total() - delta) * Tracked(scale, 0));
      for (int64_t f = 0; f < q.shape[3]; ++f) {
        dq_row[f].add(dscore * key[f]);
        dk_row[f].add(dscore * query[f]);
      }
    }
  });
  const Dtype dtype = inputs[1].dtype(), computed = computed_in(dtype);
  const auto summed = [&](const Field& like, const std::vector<Sum>& sums) {
    Field result(like.shape);
    for (size_t i = 0; i < sums.size(); ++i) result.values[i] = sums[i].total();
    return tracked_result(dtype, result, computed);
  };
  Result result = summed(q, dq);
  result.more = {summed(k, dk), summed(v, dv)};
  return result;
}

Result reference_rotary_embedding(std::span<const Array> inputs, const Attributes& attributes) {
  const Field x(inputs[0]), positions(inputs[1]);
  const int64_t d = x.shape.back(), half = d / 2;
  const Real base = number(attributes, "base", 10000);
  const bool interleaved = integer_or(attributes, "interleaved", 0) != 0;
  const Real sign = integer_or(attributes, "inverse", 0) != 0 ? -1 : 1;
  Field y(x.shape);
  Shape outer = x.shape;
  outer.back() = half;
  for_each_index(outer, [&](Shape i) {
    const int64_t pair = i.back();
    Shape a = i, b = i;
    a.back() = interleaved ? 2 * pair : pair;
    b.back() = interleaved ? 2 * pair + 1 : pair + half;
    const Real position = positions[{i[i.size() - 2]}].value;
    const Real angle = position * std::pow(base, -2.0L * static_cast<Real>(pair) / static_cast<Real>(d));
    // Without float64, the angle is computed in the accumulator's precision.
    const Tracked c(std::cos(angle), 8 * std::fabs(angle) + 4), s(sign * std::sin(angle), 8 * std::fabs(angle) + 4);
    y[a] = x[a] * c - x[b] * s;
    y[b] = x[b] * c + x[a] * s;
  });
  return tracked_result(inputs[0].dtype(), y, computed_in(inputs[0].dtype()));
}

Result reference_local_response_norm(std::span<const Array> inputs, const Attributes& attributes) {
  const Field x(inputs[0]);
  const int64_t size = integer_or(attributes, "size", 1), channels = x.shape[1];
  const Tracked alpha(number(attributes, "alpha", 1e-4L), 0), bias(number(attributes, "bias", 1), 0);
  const Real beta = number(attributes, "beta", 0.75L);
  Field y(x.shape);
  for_each_index(x.shape, [&](const Shape& i) {
    Sum sum;
    const int64_t first = i[1] - (size - 1) / 2;
    for (int64_t channel = first; channel < first + size; ++channel) {
      if (channel < 0 || channel >= channels) continue;
      Shape at = i;
      at[1] = channel;
      sum.add(x[at] * x[at]);
    }
    const Tracked base = bias + alpha / Tracked(static_cast<Real>(size)) * sum.total();
    // The power's own bound, and the errors of what is raised and of beta.
    const Real power = std::pow(base.value, beta), of_beta = std::fabs(beta * std::log(base.value));
    const Real error = std::fabs(beta) * base.error / base.value + of_beta + 4;
    y[i] = x[i] / Tracked(power, power * error);
  });
  return tracked_result(inputs[0].dtype(), y, computed_in(inputs[0].dtype()));
}

// ---- Optimisers -----------------------------------------------------------------------------------------------------

namespace {

Result steps(std::span<const Array> inputs, const std::vector<Field>& outputs) {
  const Dtype dtype = inputs[0].dtype(), computed = computed_in(dtype);
  Result result = tracked_result(dtype, outputs[0], computed);
  for (size_t i = 1; i < outputs.size(); ++i) result.more.push_back(tracked_result(dtype, outputs[i], computed));
  return result;
}

Result adam(std::span<const Array> inputs, const Attributes& attributes, bool decoupled) {
  const Field p(inputs[0]), g(inputs[1]), m(inputs[2]), v(inputs[3]);
  // Numbers reach the device in the accumulator's dtype.
  const auto given = [&](const char* name, Real fallback) { return Tracked(number(attributes, name, fallback), 0); };
  const Tracked rate = given("rate", 0.001L), b1 = given("beta1", 0.9L), b2 = given("beta2", 0.999L);
  const Tracked epsilon = given("epsilon", 1e-8L), decay = given("decay", decoupled ? 0.01L : 0);
  const Real step = number(attributes, "step", 1);
  const auto rest = [&](const Tracked& b) {
    // 1 - b^step: the error of b counts step times, as where float64 is missing.
    const Real power = std::pow(b.value, step);
    return Tracked(1 - power, power * (step * 2 + 8));
  };
  const Tracked r1 = Tracked(1) - b1, r2 = Tracked(1) - b2, c1 = rate / rest(b1), c2 = Tracked(1) / sqrt(rest(b2));
  Field np(p.shape), nm(p.shape), nv(p.shape);
  for (size_t i = 0; i < p.values.size(); ++i) {
    const Tracked d = decoupled ? g.values[i] : g.values[i] + decay * p.values[i];
    nm.values[i] = b1 * m.values[i] + r1 * d;
    nv.values[i] = b2 * v.values[i] + r2 * (d * d);
    const Tracked start = decoupled ? p.values[i] * (Tracked(1) - rate * decay) : p.values[i];
    np.values[i] = start - c1 * nm.values[i] / (sqrt(nv.values[i]) * c2 + epsilon);
  }
  return steps(inputs, {np, nm, nv});
}

}  // namespace

namespace {

Result adam_l2(std::span<const Array> inputs, const Attributes& attributes) { return adam(inputs, attributes, false); }
Result adamw(std::span<const Array> inputs, const Attributes& attributes) { return adam(inputs, attributes, true); }

Result sgd(std::span<const Array> inputs, const Attributes& attributes) {
  const Field p(inputs[0]), g(inputs[1]);
  const Tracked rate(number(attributes, "rate", 0.01L), 0), decay(number(attributes, "decay", 0), 0);
  Field result(p.shape);
  for (size_t i = 0; i < p.values.size(); ++i)
    result.values[i] = p.values[i] - rate * (g.values[i] + decay * p.values[i]);
  return steps(inputs, {result});
}

Result sgd_momentum(std::span<const Array> inputs, const Attributes& attributes) {
  const Field p(inputs[0]), g(inputs[1]), v(inputs[2]);
  const Tracked rate(number(attributes, "rate", 0.01L), 0), decay(number(attributes, "decay", 0), 0);
  const Tracked momentum(number(attributes, "momentum", 0.9L), 0);
  const bool nesterov = integer_or(attributes, "nesterov", 0) != 0;
  Field np(p.shape), nv(p.shape);
  for (size_t i = 0; i < p.values.size(); ++i) {
    const Tracked d = g.values[i] + decay * p.values[i];
    nv.values[i] = momentum * v.values[i] + d;
    np.values[i] = p.values[i] - rate * (nesterov ? d + momentum * nv.values[i] : nv.values[i]);
  }
  return steps(inputs, {np, nv});
}

// `one` of each group of operands: all first inputs come first, then all second ones, and so do the outputs.
Result of_groups(std::span<const Array> inputs, const Attributes& attributes, size_t per_group, Reference one) {
  const size_t groups = inputs.size() / per_group;
  std::vector<Result> results;
  for (size_t g = 0; g < groups; ++g) {
    std::vector<Array> group;
    for (size_t i = 0; i < per_group; ++i) group.push_back(inputs[i * groups + g]);
    results.push_back(one(group, attributes));
  }
  std::vector<Result> all;
  const size_t outputs = 1 + results[0].more.size();
  for (size_t i = 0; i < outputs; ++i)
    for (size_t g = 0; g < groups; ++g) all.push_back(i == 0 ? results[g] : results[g].more[i - 1]);
  Result result = all[0];
  result.more.assign(all.begin() + 1, all.end());
  return result;
}

}  // namespace

Result reference_adam(std::span<const Array> inputs, const Attributes& attributes) {
  return of_groups(inputs, attributes, 4, adam_l2);
}
Result reference_adamw(std::span<const Array> inputs, const Attributes& attributes) {
  return of_groups(inputs, attributes, 4, adamw);
}
Result reference_sgd(std::span<const Array> inputs, const Attributes& attributes) {
  return of_groups(inputs, attributes, 2, sgd);
}
Result reference_sgd_momentum(std::span<const Array> inputs, const Attributes& attributes) {
  return of_groups(inputs, attributes, 3, sgd_momentum);
}

// ---- Indices --------------------------------------------------------------------------------------------------------

Result reference_take_grad(std::span<const Array> inputs, const Attributes& attributes) {
  const Array &dy = inputs[0], &indices = inputs[1];
  const size_t rank = static_cast<size_t>(dy.rank() - indices.rank() + 1), taken = static_cast<size_t>(indices.rank());
  const size_t axis = axis_of(attributes, "axis", 0, rank);
  const int64_t size = integer_or(attributes, "size", 0);
  Shape shape(dy.shape().begin(), dy.shape().begin() + static_cast<std::ptrdiff_t>(axis));
  shape.push_back(size);
  shape.insert(shape.end(), dy.shape().begin() + static_cast<std::ptrdiff_t>(axis + taken), dy.shape().end());
  const Field places(shape), positions(indices.shape()), all(dy.shape());
  std::vector<Tracked> terms[2];
  Result result;
  result.dtype = dy.dtype();
  result.shape = shape;
  result.accumulator = computed_in(dy.dtype());
  result.terms = std::max<int64_t>(indices.size(), 1);
  result.elements.resize(places.values.size());
  std::vector<Bits> integers(places.values.size());
  for_each_index(dy.shape(), [&](const Shape& i) {
    const Shape at(i.begin() + static_cast<std::ptrdiff_t>(axis),
                   i.begin() + static_cast<std::ptrdiff_t>(axis + taken));
    auto index = static_cast<int64_t>(indices.at(static_cast<int64_t>(positions.place(at))).integer);
    Shape to(i.begin(), i.begin() + static_cast<std::ptrdiff_t>(axis));
    to.push_back(index < 0 ? index + size : index);
    to.insert(to.end(), i.begin() + static_cast<std::ptrdiff_t>(axis + taken), i.end());
    const Value value = dy.at(static_cast<int64_t>(all.place(i)));
    Element& e = result.elements[places.place(to)];
    integers[places.place(to)] += static_cast<Bits>(value.integer);
    e.value.re += value.re;
    e.value.im += value.im;
    e.scale += std::hypot(value.re, value.im);
  });
  for (size_t i = 0; i < integers.size(); ++i) {
    if (!is_inexact(dy.dtype())) result.elements[i].value = Value::of(wrap(dy.dtype(), integers[i]));
    result.elements[i].open = kSigns;
  }
  return result;
}

}  // namespace compute::oracle
