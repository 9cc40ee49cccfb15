// SPDX-License-Identifier: Apache-2.0
// From a call to work on a device: where it runs, what it needs there, and its submission.
#pragma once

#include <compute/compute.h>

#include <cstdint>
#include <span>
#include <utility>

#include "core/expressions/expression.hpp"
#include "core/memory/tensor.hpp"
#include "core/ops/schema.hpp"
#include "core/planner/plan.hpp"

namespace compute {

// `operands` may contain NULL and invalid handles.
void note_failed_call(Error& error, const char* name, compute_stream* stream,
                      std::span<Tensor* const> operands) noexcept;

// A list that a caller gave, which may be NULL.
inline std::span<Tensor* const> tensors_of(compute_tensor* const* list, int64_t count) {
  return {list, list != nullptr && count > 0 ? static_cast<size_t>(count) : 0};
}

// Runs a complete call. Its errors name the op and the device, and invalidate the graph that `stream`, which may be
// NULL, is recording.
template <class F>
void named_call(const char* name, compute_stream* stream, std::span<Tensor* const> operands, F&& f) {
  const Running running;
  try {
    f();
  } catch (Error& error) {
    note_failed_call(error, name, stream, operands);
    throw;
  }
}

template <class F>
void named_call(const char* name, compute_stream* stream, F&& f) {
  named_call(name, stream, {}, std::forward<F>(f));
}

// compute_op_run without its guard. outputs[i] is input and output.
void run_op(const OpSchema& schema, compute_stream* stream, const compute_attribute* attributes,
            int64_t attribute_count, compute_tensor* const* inputs, int64_t input_count, compute_tensor** outputs,
            int64_t output_count);

// The attributes of a call, checked.
struct CallAttributes {
  CallAttributes(const OpSchema& schema, const compute_attribute* given, int64_t count);
  // Replaces the values of run-time attributes.
  void change_run_time(const OpSchema& schema, const compute_attribute* given, int64_t count);

  Attributes statics;
  uint64_t statics_hash = 0;
  SmallVector<RunTimeValue, kMaxRunTimeAttributes> run_time;

 private:
  void read_scalars(const OpSchema& schema);
};

// Prepares the plan for a call with these operands on the device's default stream. Runs nothing.
PlanReference plan_op(const OpSchema& schema, Device& device, const CallAttributes& attributes,
                      compute_tensor* const* inputs, int64_t input_count, compute_tensor* const* outputs,
                      int64_t output_count);

// Runs the op of `kept`, a plan of plan_op. Uses this plan if it fits the operands (their alignment, and which
// outputs are given, may differ), else looks up another one. A NULL stream is the default stream of the plan's device.
void run_planned(Plan& kept, const CallAttributes& attributes, compute_stream* stream, compute_tensor* const* inputs,
                 int64_t input_count, compute_tensor** outputs, int64_t output_count);

// For the typed wrappers of elementwise ops: writes into `into`, or creates *out.
compute_error* run_elementwise(OpId id, compute_stream* stream, compute_tensor* const* inputs, int64_t input_count,
                               compute_tensor** out, compute_tensor* into) noexcept;

// A map with a parsed expression; in `operands` scalars follow inputs.
void run_map(const ExpressionTemplate& expression, compute_stream* stream, std::span<Tensor* const> operands,
             compute_tensor** outputs, int64_t output_count);
void run_map_reduction(const ExpressionTemplate& expression, const MapReduction& reduction, compute_stream* stream,
                       std::span<Tensor* const> operands, compute_tensor** output);

// A row-major copy of a tensor on its own device, queued on `timeline`.
TensorReference pack(Tensor& tensor, Timeline& timeline);

}  // namespace compute
