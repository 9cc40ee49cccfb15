// SPDX-License-Identifier: Apache-2.0
// References of the elementwise ops, one hand-written row per op.
#pragma once

#include <span>
#include <string_view>

#include "result.hpp"

namespace compute::oracle {

/// The operands of one element: `x` holds as many values as the op has inputs, `dtype` is the promoted one.
struct Operands {
  Dtype dtype;
  const Value* x;

  Integer i(int n) const { return x[n].integer; }
  Real r(int n) const { return x[n].re; }
  /// As float64, which holds every value of a float dtype exactly.
  double d(int n) const { return static_cast<double>(x[n].re); }
  Complex c(int n) const { return x[n].complex(); }
};

using ElementFunction = Element (*)(const Operands&);

struct Elementwise {
  const char* name;
  int arity;
  enum Output { SAME, BOOL, PART, SECOND } output;
  ElementFunction integer;  // integers and bool
  ElementFunction real;     // floats
  ElementFunction complex;
};

/// The row of `name`, or NULL: the suite then fails with the op's name.
const Elementwise* find_elementwise(std::string_view name);
/// Whether the reference of `op` takes inputs that promote to `dtype`.
bool takes(const Elementwise& op, Dtype dtype);

/// The op applied to broadcast inputs. Throws std::invalid_argument for inputs that the op does not take.
Result evaluate(const Elementwise& op, std::span<const Array> inputs);

}  // namespace compute::oracle
