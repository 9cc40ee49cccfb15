// SPDX-License-Identifier: Apache-2.0
// References of lstm and gru: their equations for one time after the other.
#include "tracked.hpp"

namespace compute::oracle {

namespace {

Tracked sigmoid(const Tracked& x) {
  const Real v = 1 / (1 + std::exp(-x.value));
  return {v, v * (1 - v) * x.error + 4 * v};
}

Tracked tanh(const Tracked& x) {
  const Real v = std::tanh(x.value);
  return {v, (1 - v * v) * x.error + 4 * std::fabs(v)};
}

// x [time, batch, features], weights [directions, gates hidden, features or hidden] and biases.
struct Layer {
  Field x, weight, recurrent, bias, recurrent_bias;
  Field lengths;
  bool has_bias, has_recurrent_bias, has_lengths;
  std::string direction;
  int64_t time, batch, directions, hidden;

  Layer(std::span<const Array> inputs, const Attributes& attributes, size_t lengths_input)
      : x(inputs[0]),
        weight(inputs[1]),
        recurrent(inputs[2]),
        has_bias(is_given(inputs, 3)),
        has_recurrent_bias(is_given(inputs, 4)),
        has_lengths(is_given(inputs, lengths_input)),
        direction(attributes.contains("direction") ? attributes.find("direction")->second.text : "forward"),
        time(x.shape[0]),
        batch(x.shape[1]),
        directions(recurrent.shape[0]),
        hidden(recurrent.shape[2]) {
    if (has_bias) bias = Field(inputs[3]);
    if (has_recurrent_bias) recurrent_bias = Field(inputs[4]);
    if (has_lengths) lengths = Field(inputs[lengths_input]);
  }
  Field state(std::span<const Array> inputs, size_t index) const {
    return is_given(inputs, index) ? Field(inputs[index]) : Field({directions, batch, hidden});
  }
  Shape all() const { return {time, directions, batch, hidden}; }
  // The time of step s.
  int64_t time_of(int64_t d, int64_t s) const { return direction == "reverse" || d == 1 ? time - 1 - s : s; }
  bool is_seen(int64_t b, int64_t t) const { return !has_lengths || static_cast<Real>(t) < lengths[{b}].value; }

  // n products add up with n roundings.
  static Tracked product(const Tracked* a, const Tracked* b, int64_t n) {
    Tracked total;
    Real moduli = 0;
    for (int64_t i = 0; i < n; ++i) {
      const Tracked term = a[i] * b[i];
      total.value += term.value;
      total.error += term.error;
      moduli += std::fabs(term.value);
    }
    total.error += moduli * static_cast<Real>(n);
    return total;
  }
  Tracked of_x(int64_t d, int64_t row, int64_t t, int64_t b) const {
    Tracked sum = product(x.row({t, b, 0}), weight.row({d, row, 0}), x.shape[2]);
    if (has_bias) sum = sum + bias[{d, row}];
    return sum;
  }
  Tracked of_state(int64_t d, int64_t row, const Tracked* state) const {
    return product(state, recurrent.row({d, row, 0}), hidden);
  }
  Tracked with_recurrent_bias(int64_t d, int64_t row, const Tracked& sum) const {
    return has_recurrent_bias ? sum + recurrent_bias[{d, row}] : sum;
  }
};

}  // namespace

Result reference_lstm(std::span<const Array> inputs, const Attributes& attributes) {
  const Layer layer(inputs, attributes, 8);
  const int64_t hidden = layer.hidden;
  Field h = layer.state(inputs, 5), c = layer.state(inputs, 6), y(layer.all()), cells(layer.all());
  const Field peepholes = is_given(inputs, 7) ? Field(inputs[7]) : Field({layer.directions, 3 * hidden});
  for (int64_t s = 0; s < layer.time; ++s) {
    for_each_index({layer.directions, layer.batch}, [&](const Shape& at) {
      const int64_t d = at[0], b = at[1], t = layer.time_of(d, s);
      Tracked *const state = &h[{d, b, 0}], *const cell = &c[{d, b, 0}];
      std::vector<Tracked> next_h(static_cast<size_t>(hidden)), next_c(next_h);
      for (int64_t j = 0; j < hidden; ++j) {
        const auto sum_of = [&](int64_t gate) {
          const int64_t row = gate * hidden + j;
          return layer.with_recurrent_bias(d, row, layer.of_x(d, row, t, b)) + layer.of_state(d, row, state);
        };
        const auto peephole = [&](int64_t gate, const Tracked& of) { return peepholes[{d, gate * hidden + j}] * of; };
        const Tracked i = sigmoid(sum_of(0) + peephole(0, cell[j])), f = sigmoid(sum_of(2) + peephole(2, cell[j]));
        const Tracked next = f * cell[j] + i * tanh(sum_of(3));
        const Tracked o = sigmoid(sum_of(1) + peephole(1, next));
        next_c[static_cast<size_t>(j)] = next;
        next_h[static_cast<size_t>(j)] = o * tanh(next);
      }
      for (int64_t j = 0; j < hidden; ++j) {
        if (layer.is_seen(b, t)) {
          state[j] = y[{t, d, b, j}] = next_h[static_cast<size_t>(j)];
          cell[j] = next_c[static_cast<size_t>(j)];
        }
        cells[{t, d, b, j}] = cell[j];
      }
    });
  }
  const Dtype dtype = inputs[0].dtype(), computed = computed_in(dtype);
  Result result = tracked_result(dtype, y, computed);
  result.more = {tracked_result(dtype, h, computed), tracked_result(dtype, c, computed),
                 tracked_result(computed, cells, computed)};
  return result;
}

Result reference_gru(std::span<const Array> inputs, const Attributes& attributes) {
  const Layer layer(inputs, attributes, 6);
  const int64_t hidden = layer.hidden;
  const bool is_linear = integer_or(attributes, "linear_before_reset", 0) != 0;
  Field h = layer.state(inputs, 5), y(layer.all());
  for (int64_t s = 0; s < layer.time; ++s) {
    for_each_index({layer.directions, layer.batch}, [&](const Shape& at) {
      const int64_t d = at[0], b = at[1], t = layer.time_of(d, s);
      Tracked* const state = &h[{d, b, 0}];
      const auto sum_of = [&](int64_t gate, int64_t j) {
        const int64_t row = gate * hidden + j;
        return layer.with_recurrent_bias(d, row, layer.of_x(d, row, t, b)) + layer.of_state(d, row, state);
      };
      std::vector<Tracked> kept, next;
      for (int64_t j = 0; j < hidden; ++j) kept.push_back(sigmoid(sum_of(1, j)) * state[j]);
      for (int64_t j = 0; j < hidden; ++j) {
        const int64_t row = 2 * hidden + j;
        const Tracked of_x = layer.of_x(d, row, t, b), z = sigmoid(sum_of(0, j));
        const Tracked n =
            is_linear
                ? tanh(of_x + sigmoid(sum_of(1, j)) * layer.with_recurrent_bias(d, row, layer.of_state(d, row, state)))
                : tanh(layer.with_recurrent_bias(d, row, of_x) + layer.of_state(d, row, kept.data()));
        next.push_back((Tracked(1) - z) * n + z * state[j]);
      }
      if (!layer.is_seen(b, t)) return;
      for (int64_t j = 0; j < hidden; ++j) state[j] = y[{t, d, b, j}] = next[static_cast<size_t>(j)];
    });
  }
  const Dtype dtype = inputs[0].dtype(), computed = computed_in(dtype);
  Result result = tracked_result(dtype, y, computed);
  result.more = {tracked_result(dtype, h, computed)};
  return result;
}

}  // namespace compute::oracle
