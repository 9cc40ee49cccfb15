// SPDX-License-Identifier: Apache-2.0
// Ops that a program defines as a composition of other ops: "h = matmul(x, w); y = tanh(h)".
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/ops/op_call.hpp"
#include "core/ops/shapes.hpp"

namespace compute {

// An attribute of a call in a composition: a literal, or an attribute of the composed op.
struct ComposedAttribute {
  std::string name;
  int32_t kind = COMPUTE_KIND_INT64;  // of the literal
  std::vector<int64_t> integers;
  std::vector<double> reals;
  std::string text;
  int32_t outer = -1;  // index into the composed op's attributes; -1: a literal
};

// Values are numbered: the inputs of the composed op, then the results of the calls in order.
struct ComposedCall {
  const OpSchema* op = nullptr;
  std::vector<int32_t> inputs;  // -1: an optional input that is absent
  int32_t first_result = 0;
  std::vector<ComposedAttribute> attributes;
};

struct Composition {
  std::string text;
  std::vector<ComposedCall> calls;
  int32_t value_count = 0;
  std::vector<int32_t> outputs;  // values
};

// Parses `text` over the names of `schema`. The newest versions of the ops are taken, for good. Throws INVALID_ARGUMENT
// with the statement at fault.
std::shared_ptr<const Composition> parse_composition(std::string_view text, const OpSchema& schema);

// The number of calls of a composition, counting the calls inside the compositions that it calls.
size_t composed_call_count(const OpSchema& schema);

// The attributes of one call, as if its op had been called with them.
struct InnerAttributes {
  Attributes statics;
  std::array<RunTimeValue, kMaxRunTimeAttributes> run_time;
  std::array<int32_t, kMaxRunTimeAttributes> outer;  // index among the outer op's run-time attributes, or -1
};

InnerAttributes inner_attributes(const ComposedCall& inner, const OpCall& outer);

// The descriptions of all values, known as the calls are inferred in order.
class ComposedValues {
 public:
  ComposedValues(const OpCall& outer, const Composition& composition)
      : descs_(static_cast<size_t>(composition.value_count)), shapes_(descs_.size()) {
    strides_.resize(descs_.size());
    std::ranges::copy(outer.inputs, descs_.begin());
  }
  const OperandDesc& operator[](int32_t value) const { return descs_[static_cast<size_t>(value)]; }

  std::vector<OperandDesc> inputs_of(const ComposedCall& inner) const {
    std::vector<OperandDesc> list;
    for (const int32_t value : inner.inputs) list.push_back(value < 0 ? OperandDesc{} : (*this)[value]);
    return list;
  }
  // Strides are row-major unless they are given.
  void set(int32_t value, const OutputDesc& from, const int64_t* given) {
    const auto i = static_cast<size_t>(value);
    shapes_[i] = from.shape;
    strides_[i] = row_major_strides(from.shape);
    if (given != nullptr) strides_[i].assign(given, given + from.shape.size());
    descs_[i] = {from.dtype, static_cast<int32_t>(from.shape.size()), shapes_[i].data(), strides_[i].data()};
  }

 private:
  std::vector<OperandDesc> descs_;
  std::vector<std::vector<int64_t>> shapes_, strides_;
};

}  // namespace compute
