// SPDX-License-Identifier: Apache-2.0
#include "core/ops/composed_lowering.hpp"

#include "core/base/error.hpp"
#include "core/ops/composition.hpp"
#include "core/ops/infer.hpp"
#include "core/ops/shapes.hpp"

namespace compute {

namespace {

// Appends the lowerings of calls to the lowering of the composition.
class Joiner {
 public:
  Joiner(const OpCall& outer, const LoweringTarget& target, LowerCall lower)
      : lower_(lower),
        target_(target),
        composition_(*outer.schema.composition),
        outer_(outer),
        values_(outer, composition_) {
    places_.resize(static_cast<size_t>(composition_.value_count));
    for (size_t i = 0; i < outer.inputs.size(); ++i) places_[i] = {ValueKind::kInput, static_cast<int32_t>(i)};
    for (size_t i = 0; i < composition_.outputs.size(); ++i) {
      Place& place = places_[static_cast<size_t>(composition_.outputs[i])];
      if (place.kind == ValueKind::kAbsent) place = {ValueKind::kOutput, static_cast<int32_t>(i)};
    }
  }

  // Takes the alternatives of the call off the front.
  bool join(const ComposedCall& inner, std::span<const int32_t>& alternatives) {
    const InnerAttributes attributes = inner_attributes(inner, outer_);
    const std::vector<OperandDesc> inputs = values_.inputs_of(inner);
    const Inference inference = infer({*inner.op, attributes.statics, inputs});
    LoweringTarget target;
    target.has_float64 = target_.has_float64;
    target.deterministic = target_.deterministic;
    target.is_gpu = target_.is_gpu;
    std::vector<LoweringTarget::Output> outputs;
    for (size_t i = 0; i < inference.outputs.size(); ++i) {
      const auto value = inner.first_result + static_cast<int32_t>(i);
      place_result(value, inference.outputs[i]);
      const OperandDesc& desc = values_[value];
      outputs.push_back({desc.dtype, desc.extents(), {desc.strides, static_cast<size_t>(desc.rank)}});
    }
    target.outputs = outputs;
    const OpCall call{*inner.op, attributes.statics, inputs};
    const size_t count = composed_call_count(*inner.op);
    std::optional<Lowering> lowered = inner.op->composition
                                          ? join_lowerings(call, target, alternatives.first(count), lower_)
                                          : lower_(call, inference, target, alternatives[0]);
    if (!lowered) return false;
    append(*std::move(lowered), inner, attributes);
    first_call_ += static_cast<int32_t>(count);
    alternatives = alternatives.subspan(count);
    return true;
  }

  Lowering take() {
    // An output with two names.
    for (size_t i = 0; i < composition_.outputs.size(); ++i) {
      const Place& place = places_[static_cast<size_t>(composition_.outputs[i])];
      if (place.kind == ValueKind::kOutput && place.index != static_cast<int32_t>(i))
        throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, outer_.schema.name + ": two outputs are one value");
    }
    return std::move(lowering_);
  }

 private:
  struct Place {
    ValueKind kind = ValueKind::kAbsent;  // not placed yet
    int32_t index = 0;
  };

  void place_result(int32_t value, const OutputDesc& desc) {
    Place& place = places_[static_cast<size_t>(value)];
    const bool is_output = place.kind == ValueKind::kOutput;
    values_.set(value, desc, is_output ? target_.outputs[static_cast<size_t>(place.index)].strides.data() : nullptr);
    if (is_output) return;
    place = {ValueKind::kTemporary, static_cast<int32_t>(lowering_.temporaries.size())};
    const int64_t bytes =
        element_count(outer_.schema.name, desc.shape, dtype_size(desc.dtype)) * dtype_size(desc.dtype);
    lowering_.temporaries.push_back({desc.dtype, bytes, 0});
  }

  void append(Lowering inner, const ComposedCall& call, const InnerAttributes& attributes) {
    const auto first = static_cast<int32_t>(lowering_.temporaries.size());
    lowering_.temporaries.insert(lowering_.temporaries.end(), inner.temporaries.begin(), inner.temporaries.end());
    const auto settle = [&](StepOperand& operand) {
      if (operand.kind == ValueKind::kTemporary) {
        operand.index += first;
      } else if (operand.kind != ValueKind::kAbsent) {
        const int32_t value = operand.kind == ValueKind::kInput ? call.inputs[static_cast<size_t>(operand.index)]
                                                                : call.first_result + operand.index;
        const Place& place = places_[static_cast<size_t>(value)];
        operand.kind = place.kind;
        operand.index = place.index;
      }
    };
    for (Step& step : inner.steps) {
      for (StepOperand& operand : step.inputs) settle(operand);
      for (StepOperand& operand : step.outputs) settle(operand);
      for (StepScalar& scalar : step.scalars) settle_scalar(scalar, call, attributes);
      step.call += first_call_;
      lowering_.steps.push_back(std::move(step));
    }
  }

  static void settle_scalar(StepScalar& scalar, const ComposedCall& call, const InnerAttributes& attributes) {
    const auto index = static_cast<size_t>(scalar.index);
    if (scalar.source == ScalarSource::kOperand) {
      scalar.index = call.inputs[index];
    } else if (scalar.source == ScalarSource::kRunTimeAttribute) {
      if (attributes.outer[index] >= 0) {
        scalar.index = attributes.outer[index];
        return;
      }
      scalar.bits = run_time_scalar(*call.op, scalar.index, attributes.run_time[index], scalar.dtype);
      scalar.source = ScalarSource::kValue;
      scalar.index = 0;
    }
  }

  const LowerCall lower_;
  const LoweringTarget& target_;
  const Composition& composition_;
  const OpCall& outer_;
  ComposedValues values_;
  std::vector<Place> places_;
  Lowering lowering_;
  int32_t first_call_ = 0;  // of the call that is joined next
};

}  // namespace

std::optional<Lowering> join_lowerings(const OpCall& call, const LoweringTarget& target,
                                       std::span<const int32_t> alternatives, LowerCall lower) {
  Joiner joiner(call, target, lower);
  for (const ComposedCall& inner : call.schema.composition->calls) {
    if (!joiner.join(inner, alternatives)) return std::nullopt;
  }
  return joiner.take();
}

}  // namespace compute
