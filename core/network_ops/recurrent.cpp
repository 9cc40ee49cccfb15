// SPDX-License-Identifier: Apache-2.0
// lstm and gru: one product of the inputs of all times, and for each time one of the states and a map of the gates.
#include <algorithm>

#include "core/network_ops/product_steps.hpp"
#include "core/ops/rules.hpp"
#include "core/ops/steps.hpp"
#include "core/text/printable.hpp"

namespace compute {

namespace {

constexpr int64_t kLstmGates = 4, kGruGates = 3;

// x [time, batch, features]; weights [directions, gates hidden, features] and [directions, gates hidden, hidden].
struct Recurrence {
  int64_t time, batch, features, hidden, directions;
  bool is_reverse;  // of one direction

  std::vector<int64_t> state() const { return {directions, batch, hidden}; }
};

// Inputs 0 to 2 are x and the weights, 3 and 4 the biases. `states` optional inputs follow, then the peepholes of an
// lstm, then the lengths.
Recurrence read_recurrence(const OpCall& call, int64_t gates, int32_t states) {
  require_class(call, 0, DtypeClass::kFloat);
  for (int32_t i = 0; i < 3; ++i) {
    if (call.inputs[static_cast<size_t>(i)].rank == 3) continue;
    refuse(call,
           call.schema.input_name(i) + " has shape " + shape_text(call.inputs[static_cast<size_t>(i)].extents()) +
               "; expected three axes",
           i);
  }
  const int32_t index = attribute_index(call, "direction");
  const std::string direction(call.attributes.string(index));
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional") {
    refuse_attribute(call, "direction",
                     "direction is " + in_quotes(direction) + ", not one of forward, reverse, bidirectional");
  }
  const int64_t *x = call.inputs[0].shape, *recurrent = call.inputs[2].shape;
  const Recurrence r{x[0], x[1], x[2], recurrent[2], direction == "bidirectional" ? 2 : 1, direction == "reverse"};
  const compute_dtype dtype = call.inputs[0].dtype;
  const auto require_if_given = [&](int32_t input, std::initializer_list<int64_t> shape) {
    const auto at = static_cast<size_t>(input);
    if (at < call.inputs.size() && call.inputs[at].dtype != COMPUTE_DTYPE_NONE)
      require_tensor(call, input, dtype, {shape.begin(), shape.size()});
  };
  const int64_t rows = gates * r.hidden;
  require_if_given(1, {r.directions, rows, r.features});
  require_if_given(2, {r.directions, rows, r.hidden});
  for (const int32_t bias : {3, 4}) require_if_given(bias, {r.directions, rows});
  int32_t next = 5;
  for (int32_t i = 0; i < states; ++i) require_if_given(next++, {r.directions, r.batch, r.hidden});
  if (gates == kLstmGates) require_if_given(next++, {r.directions, 3 * r.hidden});
  if (static_cast<size_t>(next) < call.inputs.size() &&
      call.inputs[static_cast<size_t>(next)].dtype != COMPUTE_DTYPE_NONE) {
    const compute_dtype given = call.inputs[static_cast<size_t>(next)].dtype;
    if (!is_integer(given)) refuse(call, "lengths is " + dtype_name(given) + ", not integers", next);
    require_tensor(call, next, given, {&r.batch, 1});
  }
  return r;
}

class RecurrentSteps {
 public:
  // `lengths` is the input with the lengths of the sequences.
  RecurrentSteps(const OpCall& call, const LoweringTarget& target, const Recurrence& recurrence, int64_t gates,
                 int32_t lengths, int32_t alternative)
      : steps(call, target),
        r(recurrence),
        computed(computed_in(call.inputs[0].dtype)),
        y(steps.output(0)),
        has_lengths(steps.has_input(lengths)),
        gates_(gates),
        alternative_(alternative) {
    if (has_lengths && r.time > 0)
      lengths_ = with_axis(with_axis(steps.as_indices(steps.input(lengths)), 0, r.directions), 2, r.hidden);
  }

  // An optional input in the computed dtype.
  StepOperand given(int32_t input) {
    return steps.has_input(input) ? steps.as_dtype(steps.input(input), computed) : StepOperand{};
  }
  // A state before the first step: an input, or zeros.
  StepOperand initial(int32_t input) {
    if (steps.has_input(input)) return given(input);
    const StepOperand zeros = steps.temporary(computed, r.state());
    steps.fill(zeros, {});
    return zeros;
  }
  // [directions, n] as [directions, 1, n], which repeats for the batch.
  static StepOperand for_batch(const StepOperand& x) { return with_axis(x, 1); }
  StepOperand gate(const StepOperand& all, int64_t which) const {
    return narrowed(all, static_cast<int32_t>(all.shape.size()) - 1, which * r.hidden, r.hidden);
  }
  // What [time, directions, batch, n] has for step `s`, as [directions, batch, n]. Directions run against each other.
  StepOperand at(const StepOperand& sequence, int64_t s) const {
    StepOperand result = sequence;
    result.offset += time_of(s) * result.strides[0];
    if (r.directions == 2) result.strides[1] += (r.time - 1 - 2 * s) * result.strides[0];
    return without_axis(narrowed(std::move(result), 0, 0, 1), 0);
  }
  // x [directions, batch, k] times the transpose of weight [directions, n, k], from row `first` on.
  void product(const StepOperand& x, const StepOperand& weight, int64_t first, const StepOperand& to) {
    const int32_t order[] = {0, 2, 1};
    const StepOperand columns = permuted(narrowed(weight, 1, first, to.shape.back()), order);
    alternative_ < 2 ? add_contraction(steps, x, columns, {}, to) : add_sums(steps, x, columns, to);
  }
  // The products of all inputs, plus bias [directions, n] or nothing, as [time, directions, batch, n].
  StepOperand of_inputs(const StepOperand& bias) {
    const int64_t columns = r.directions * gates_ * r.hidden;
    const int64_t extents[] = {r.time * r.batch, columns};
    const StepOperand sums = steps.temporary(computed, extents);
    const StepOperand addend = bias.is_absent() ? bias : broadcast_to(steps.as_collapsed(bias, 0, 2), extents);
    if (r.features == 0) {
      bias.is_absent() ? steps.fill(sums, {}) : steps.copy(addend, sums);
    } else {
      const StepOperand x = steps.as_collapsed(given(0), 0, 2);
      StepOperand weight = steps.as_collapsed(given(1), 0, 2);
      std::swap(weight.shape[0], weight.shape[1]);
      std::swap(weight.strides[0], weight.strides[1]);
      const bool joins = alternative_ == 0;
      alternative_ < 2 ? add_contraction(steps, x, weight, joins ? addend : StepOperand{}, sums)
                       : add_sums(steps, x, weight, sums);
      if (!joins && !bias.is_absent()) steps.map({"x + y"}, {sums, addend}, sums);
    }
    const int64_t rows[] = {r.time, r.batch}, parts[] = {r.directions, gates_ * r.hidden};
    const int32_t order[] = {0, 2, 1, 3};
    return permuted(split_axis(split_axis(sums, 1, parts), 0, rows), order);
  }
  // The sum of two biases, of which each may be absent.
  StepOperand sum(const StepOperand& a, const StepOperand& b) {
    if (a.is_absent() || b.is_absent()) return a.is_absent() ? b : a;
    const StepOperand total = steps.temporary(computed, a.shape);
    steps.map({"x + y"}, {a, b}, total);
    return total;
  }

  // The last part of a step. `expression` ends with the name of the new h; with `cell`, c is the new cell state, which
  // is kept there.
  void update(int64_t s, StepExpression expression, std::vector<StepOperand> inputs, const StepOperand& cell = {}) {
    const StepOperand now = at(y, s);
    const bool is_apart = has_lengths || y.dtype != computed;
    if (is_apart && next_h_.is_absent()) next_h_ = steps.temporary(computed, r.state());
    std::string h = "next_h", c = "next_c", shown = h;
    if (has_lengths) {
      expression.text += "is_seen = index(0) * turn + time < length; ";
      expression.scalars.push_back(extent_term(r.time - 1 - 2 * s).named("turn"));
      expression.scalars.push_back(extent_term(time_of(s)).named("time"));
      expression.inputs.push_back("length");
      inputs.push_back(lengths_);
      shown = "where(is_seen, next_h, 0)";
      h = "where(is_seen, next_h, h)";
      c = "where(is_seen, next_c, c)";
      if (std::ranges::find(expression.inputs, "h") == expression.inputs.end()) {
        expression.inputs.push_back("h");
        inputs.push_back(h_);
      }
    }
    std::vector<StepOperand> outputs;
    if (!cell.is_absent()) {
      expression.text += c + "; ";
      outputs.push_back(cell);
    }
    if (is_apart) {
      expression.text += h + "; ";
      outputs.push_back(next_h_);
    }
    expression.text += shown;
    outputs.push_back(now);
    steps.map(expression, std::move(inputs), std::move(outputs));
    h_ = is_apart ? next_h_ : now;
  }
  // Behind the last step.
  void finish() { steps.copy(h_, steps.output(1)); }
  void start(StepOperand h) { h_ = std::move(h); }
  const StepOperand& h() const { return h_; }

  Steps steps;
  const Recurrence& r;
  const compute_dtype computed;
  const StepOperand y;
  const bool has_lengths;

 private:
  int64_t time_of(int64_t s) const { return r.is_reverse ? r.time - 1 - s : s; }

  const int64_t gates_;
  const int32_t alternative_;
  StepOperand lengths_, h_, next_h_;
};

std::string sigmoid(const std::string& x) { return "1 / (1 + exp(-(" + x + ")))"; }

// ---- lstm -----------------------------------------------------------------------------------------------------------

// Inputs x, weight, recurrent_weight, bias, recurrent_bias, initial_h, initial_c, peepholes, lengths.
std::vector<OutputDesc> infer_lstm(const OpCall& call) {
  const Recurrence r = read_recurrence(call, kLstmGates, 2);
  const compute_dtype dtype = call.inputs[0].dtype;
  const std::vector<int64_t> all = {r.time, r.directions, r.batch, r.hidden};
  return {{dtype, all}, {dtype, r.state()}, {dtype, r.state()}, {computed_in(dtype), all}};
}

// Alternative 0: products; 1: the bias in a map; 2: sums of products.
std::optional<Lowering> lower_lstm(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 2) return std::nullopt;
  const Recurrence r = read_recurrence(call, kLstmGates, 2);
  RecurrentSteps b(call, target, r, kLstmGates, 8, alternative);
  Steps& steps = b.steps;
  b.start(b.initial(5));
  StepOperand c = b.initial(6);
  if (r.time > 0) {
    const StepOperand recurrent = b.given(2), cells = steps.output(3);
    const StepOperand sums = b.of_inputs(b.sum(b.given(3), b.given(4)));
    const bool has_peepholes = steps.has_input(7);
    const StepOperand peepholes = has_peepholes ? RecurrentSteps::for_batch(b.given(7)) : StepOperand{};
    const int64_t extents[] = {r.directions, r.batch, kLstmGates * r.hidden};
    const StepOperand of_state = steps.temporary(b.computed, extents);
    StepExpression gates;
    const auto sum_of = [&](const char* name, const char* cell) {
      const std::string n(name);
      return "x" + n + " + h" + n + (has_peepholes ? " + p" + n + " * " + cell : "");
    };
    gates.inputs = {"xi", "xo", "xf", "xg", "hi", "ho", "hf", "hg", "c"};
    if (has_peepholes) gates.inputs.insert(gates.inputs.end(), {"pi", "po", "pf"});
    gates.text = "next_c = " + sigmoid(sum_of("f", "c")) + " * c + " + sigmoid(sum_of("i", "c")) +
                 " * tanh(xg + hg); next_h = " + sigmoid(sum_of("o", "next_c")) + " * tanh(next_c); ";
    for (int64_t s = 0; s < r.time; ++s) {
      b.product(b.h(), recurrent, 0, of_state);
      const StepOperand of_x = b.at(sums, s);
      std::vector<StepOperand> inputs;
      for (const StepOperand& all : {of_x, of_state})
        for (int64_t gate = 0; gate < kLstmGates; ++gate) inputs.push_back(b.gate(all, gate));
      inputs.push_back(c);
      for (int64_t gate = 0; has_peepholes && gate < 3; ++gate) inputs.push_back(b.gate(peepholes, gate));
      const StepOperand next_c = b.at(cells, s);
      b.update(s, gates, std::move(inputs), next_c);
      c = next_c;
    }
  }
  b.finish();
  steps.copy(c, steps.output(2));
  return steps.take();
}

// ---- gru ------------------------------------------------------------------------------------------------------------

// Inputs x, weight, recurrent_weight, bias, recurrent_bias, initial_h, lengths.
std::vector<OutputDesc> infer_gru(const OpCall& call) {
  const Recurrence r = read_recurrence(call, kGruGates, 1);
  const compute_dtype dtype = call.inputs[0].dtype;
  flag_attribute(call, "linear_before_reset");
  return {{dtype, {r.time, r.directions, r.batch, r.hidden}}, {dtype, r.state()}};
}

// The biases of the products of x. With linear_before_reset the candidate's bias of the product of h is not among them.
StepOperand gru_bias(RecurrentSteps& b, bool linear) {
  const StepOperand bias = b.given(3), recurrent = b.given(4);
  if (!linear || recurrent.is_absent()) return b.sum(bias, recurrent);
  const int64_t hidden = b.r.hidden;
  const StepOperand result = b.steps.temporary(b.computed, recurrent.shape);
  const auto gates = [&](const StepOperand& of, int64_t first, int64_t count) {
    return narrowed(of, 1, first * hidden, count * hidden);
  };
  if (bias.is_absent()) {
    b.steps.copy(gates(recurrent, 0, 2), gates(result, 0, 2));
    b.steps.fill(gates(result, 2, 1), {});
  } else {
    b.steps.map({"x + y"}, {gates(bias, 0, 2), gates(recurrent, 0, 2)}, gates(result, 0, 2));
    b.steps.copy(gates(bias, 2, 1), gates(result, 2, 1));
  }
  return result;
}

// Alternatives as those of lstm.
std::optional<Lowering> lower_gru(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 2) return std::nullopt;
  const Recurrence r = read_recurrence(call, kGruGates, 1);
  RecurrentSteps b(call, target, r, kGruGates, 6, alternative);
  Steps& steps = b.steps;
  b.start(b.initial(5));
  const bool linear = flag_attribute(call, "linear_before_reset");
  if (r.time > 0) {
    const StepOperand recurrent = b.given(2), sums = b.of_inputs(gru_bias(b, linear));
    const int64_t extents[] = {r.directions, r.batch, (linear ? 3 : 2) * r.hidden};
    const StepOperand of_state = steps.temporary(b.computed, extents);
    const std::string last = "next_h = (1 - z) * n + z * h; ";
    const bool has_bias = linear && steps.has_input(4);
    const StepOperand bias = has_bias ? RecurrentSteps::for_batch(b.gate(b.given(4), 2)) : StepOperand{};
    const StepOperand z = linear ? StepOperand{} : steps.temporary(b.computed, r.state());
    const StepOperand kept = linear ? StepOperand{} : steps.temporary(b.computed, r.state());
    const StepOperand of_kept = linear ? StepOperand{} : steps.temporary(b.computed, r.state());
    for (int64_t s = 0; s < r.time; ++s) {
      const StepOperand of_x = b.at(sums, s), h = b.h();
      b.product(h, recurrent, 0, of_state);
      std::vector<StepOperand> inputs = {b.gate(of_x, 0), b.gate(of_state, 0), b.gate(of_x, 1), b.gate(of_state, 1)};
      if (linear) {
        inputs.insert(inputs.end(), {b.gate(of_x, 2), b.gate(of_state, 2), h});
        StepExpression gates{"z = " + sigmoid("xz + hz") + "; n = tanh(xn + " + sigmoid("xr + hr") +
                             (has_bias ? " * (hn + bn)); " : " * hn); ") + last};
        gates.inputs = {"xz", "hz", "xr", "hr", "xn", "hn", "h"};
        if (has_bias) {
          gates.inputs.push_back("bn");
          inputs.push_back(bias);
        }
        b.update(s, std::move(gates), std::move(inputs));
        continue;
      }
      inputs.push_back(h);
      StepExpression gates{sigmoid("xz + hz") + "; " + sigmoid("xr + hr") + " * h"};
      gates.inputs = {"xz", "hz", "xr", "hr", "h"};
      steps.map(gates, std::move(inputs), std::vector<StepOperand>{z, kept});
      b.product(kept, recurrent, 2 * r.hidden, of_kept);
      StepExpression candidate{"n = tanh(xn + hn); " + last};
      candidate.inputs = {"xn", "hn", "z", "h"};
      b.update(s, std::move(candidate), {b.gate(of_x, 2), of_kept, z, h});
    }
  }
  b.finish();
  return steps.take();
}

}  // namespace

const OpRules gru_1_rules{infer_gru, lower_gru, true};
const OpRules lstm_1_rules{infer_lstm, lower_lstm, true};

}  // namespace compute
