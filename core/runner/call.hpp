// SPDX-License-Identifier: Apache-2.0
// One call: where it runs, where its operands are, and which plan it uses.
#pragma once

#include <compute/compute.h>

#include <cstdint>
#include <span>

#include "core/runner/planned_call.hpp"
#include "core/streams/stream.hpp"

namespace compute {

// The called op with its attributes, or a user's expression.
struct Callee {
  const OpSchema* op = nullptr;
  const Attributes* attributes = nullptr;
  uint64_t attributes_hash = 0;
  std::span<const RunTimeValue> run_time;
  const ExpressionTemplate* expression = nullptr;
  const MapReduction* reduction = nullptr;  // with `expression`; `attributes` adds it to the plan's key
  const char* name = "";
  Plan* kept = nullptr;  // tried first

  // Whether an output may be the identical view of an input: any input for elementwise ops, any input of the group in a
  // group of operands, else the input at the same position.
  bool may_share(size_t output, size_t input, size_t input_count) const {
    if (op == nullptr) return reduction == nullptr;
    if (!op->in_place() || op->is_elementwise) return op->in_place();
    const auto groups = static_cast<size_t>(op->group_count(static_cast<int64_t>(input_count)));
    return op->takes_groups() ? output % groups == input % groups : output == input;
  }
  uint64_t identity() const {
    if (op != nullptr) return reinterpret_cast<uint64_t>(op);
    return reinterpret_cast<uint64_t>(&expression->data()) | static_cast<uint64_t>(reduction != nullptr);
  }
};

inline Callee callee_of(const OpSchema& schema, const Attributes& attributes, uint64_t attributes_hash) {
  Callee callee;
  callee.op = &schema;
  callee.attributes = &attributes;
  callee.attributes_hash = attributes_hash;
  callee.name = schema.name.c_str();
  return callee;
}

// For a call without attributes.
inline Callee callee_by_default(const OpSchema& schema) {
  return callee_of(schema, *schema.defaults, schema.defaults_hash);
}

// `outputs` contains the outputs that the program passed, and NULL for those to create.
void run_call(const Callee& callee, compute_stream* stream, std::span<Tensor* const> inputs,
              std::span<compute_tensor*> outputs);

// Everything except running. The plan is borrowed as from PlanCache::find.
Plan* plan_of_call(const Callee& callee, compute_stream* stream, std::span<Tensor* const> inputs,
                   std::span<compute_tensor*> outputs);

// Copies the elements of `src` to `dst`; both have the same shape, dtype and device.
void copy_into(Tensor& src, Tensor& dst, Timeline& timeline);

}  // namespace compute
