// SPDX-License-Identifier: Apache-2.0
// Calls as lists of steps for plugins.
#pragma once

#include <compute/compute.h>
#include <compute/plugin.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/index_place.hpp"
#include "core/expressions/expression.hpp"

namespace compute {

enum class ValueKind : uint8_t { kInput, kOutput, kTemporary, kAbsent };

// An operand of a step: a view of an input or output of the call, or of a temporary. An optional one may be absent.
struct StepOperand {
  ValueKind kind = ValueKind::kAbsent;
  int32_t index = 0;  // of the call's input or output, or of Lowering::temporaries
  compute_dtype dtype = COMPUTE_DTYPE_NONE;
  int32_t access = COMPUTE_PLUGIN_TENSOR_INPUT;  // COMPUTE_PLUGIN_TENSOR_ bits
  std::vector<int64_t> shape;                    // all >= 1
  std::vector<int64_t> strides;                  // elements
  int64_t offset = 0;                            // elements, from the value's element with all indices 0

  bool is_absent() const { return kind == ValueKind::kAbsent; }
};

// The source of a step's run-time scalar. Values that follow from extents are part of the lowering, because a lowering
// is made for given extents.
enum class ScalarSource : uint8_t {
  kRunTimeAttribute,  // index: among the schema's run-time attributes; run_time_scalar(schema, index, value, dtype)
  kOperand,           // index: of the call's input that is a scalar; convert_scalar(bits, its dtype, dtype)
  kValue              // bits
};

struct StepScalar {
  ScalarSource source = ScalarSource::kValue;
  int32_t index = 0;
  compute_dtype dtype = COMPUTE_DTYPE_NONE;
  ScalarBits bits{};
};

// An attribute for compute_plugin_op, in the form of compute_attribute.
struct StepAttribute {
  const char* name = "";  // immortal
  int32_t kind = COMPUTE_KIND_INT64;
  std::vector<int64_t> integers;   // INT64, HANDLE, and DTYPE as its id
  std::vector<double> reals;       // FLOAT64
  std::vector<std::string> texts;  // STRING
};

// Of the products of float32 in a step: the attribute `precision`, of which the default is COMPUTE_MATH.
enum class Precision : uint8_t { kDefault, kHighest, kTf32, kBf16 };

// One compute_plugin_op.
struct Step {
  const char* name = "";  // of a primitive or, in a composite lowering, of the op itself; immortal
  int32_t version = 1;
  bool deterministic = false;  // COMPUTE_PLUGIN_OP_DETERMINISTIC
  bool has_no_order = false;   // gives the same bits without the flag too
  bool is_optional = false;    // a form that joins steps: a plugin that refuses it still counts as native
  Precision precision = Precision::kDefault;
  int32_t call = 0;  // in a composition: which of its calls the step belongs to
  std::vector<StepOperand> inputs;
  std::vector<StepOperand> outputs;
  std::vector<StepAttribute> attributes;
  std::vector<TypedExpression> expressions;
  std::vector<StepScalar> scalars;
};

struct Temporary {
  compute_dtype dtype = COMPUTE_DTYPE_NONE;
  int64_t size_bytes = 0;
  int64_t offset_bytes = 0;  // in the one block; set by layout_temporaries
};

struct Lowering {
  std::vector<Step> steps;  // none if no output has elements
  std::vector<Temporary> temporaries;
  int64_t temporary_bytes = 0;
  bool is_composite = false;                       // the only step is the op itself, offered to the plugin first
  bool is_kernel = false;                          // a kernel of the program computes the op
  std::shared_ptr<const IndexPlace> indices = {};  // of the steps that gather or scatter, if one operand has them
  int32_t refused_call = 0;                        // Step::call of the step that the plugin refused
};

// The inputs of a lowering besides the call.
struct LoweringTarget {
  struct Output {
    compute_dtype dtype;
    std::span<const int64_t> shape;
    std::span<const int64_t> strides;
  };
  std::span<const Output> outputs;  // as inferred; strides are row-major or the output tensor's
  bool in_place = false;            // output 0 is the identical view of input 0
  bool has_float64 = true;          // the device computes in float64
  bool deterministic = false;       // COMPUTE_DETERMINISTIC
  bool is_gpu = false;
};

}  // namespace compute
