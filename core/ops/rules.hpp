// SPDX-License-Identifier: Apache-2.0
// What core/ops/*.cpp implement: one OpRules per row of ops.def that is not elementwise, called <name>_<version>_rules.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/ops/lowering.hpp"
#include "core/ops/op_call.hpp"
#include "core/ops/shapes.hpp"

namespace compute {

struct OpRules {
  // The outputs' dtypes and shapes; throws for calls that the op does not support.
  std::vector<OutputDesc> (*infer)(const OpCall& call);
  // As lower() in decompose.hpp. Called only for outputs that have elements. Steps handles inputs that are scalars.
  std::optional<Lowering> (*lower)(const OpCall& call, const LoweringTarget& target, int32_t alternative);
  // Whether plugins are first asked for the op as a whole.
  bool is_composite = false;
  // The dtype in which plugins then receive run-time number attributes.
  compute_dtype composite_number = COMPUTE_DTYPE_COMPLEX128;
  // Where the indices are that a plugin then finds out of range, if the op has indices.
  IndexPlace (*composite_indices)(const OpCall& call) = nullptr;
};

#define COMPUTE_UNARY(...)
#define COMPUTE_BINARY(...)
#define COMPUTE_TERNARY(...)
#define COMPUTE_OP(name, version, ...) extern const OpRules name##_##version##_rules;
#include <compute/ops.def>
#undef COMPUTE_UNARY
#undef COMPUTE_BINARY
#undef COMPUTE_TERNARY
#undef COMPUTE_OP

// Of an op that is not elementwise.
const OpRules& op_rules(OpId id);

// ---- Refusals and attributes, in one form for all ops ---------------------------------------------------------------

// Throws INVALID_ARGUMENT: "name: what".
[[noreturn]] void refuse(const OpCall& call, const std::string& what, int32_t argument = -1);
[[noreturn]] void refuse_attribute(const OpCall& call, std::string_view name, const std::string& what);
[[noreturn]] void refuse_dtype(std::string_view op, std::string_view input, compute_dtype given, DtypeClass wanted,
                               int32_t argument, std::string_view remedy = "");
// Refuses input `index` unless its dtype is in the class.
void require_class(const OpCall& call, int32_t index, DtypeClass wanted);
// Refuses input `index` unless it has the dtype and the shape of input `like`.
void require_same(const OpCall& call, int32_t index, int32_t like);
// Refuses input `index` unless it has this dtype and this shape.
void require_tensor(const OpCall& call, int32_t index, compute_dtype dtype, std::span<const int64_t> shape);
// Throws OUT_OF_RANGE if the sum is too large for an extent.
int64_t sum_of_extents(const OpCall& call, int64_t a, int64_t b);
// The index of an attribute, which the schema must have.
int32_t attribute_index(const OpCall& call, std::string_view name);
// Position among OpSchema::run_time.
int32_t run_time_index(const OpCall& call, std::string_view name);
// An int64 attribute that is 0 or 1.
bool flag_attribute(const OpCall& call, std::string_view name);
// An int64 attribute that is an extent.
int64_t extent_attribute(const OpCall& call, std::string_view name);
// The attribute `axis` of a tensor of that rank, from 0.
int32_t axis_attribute(const OpCall& call, int32_t rank);
// The attribute `precision`; the default if the op has none.
Precision precision_attribute(const OpCall& call);
compute_dtype dtype_attribute(const OpCall& call, std::string_view name);
// The dtype in which an op of the class `wanted` computes with the operands; refuses the one that gives a dtype outside
// of the class.
compute_dtype common_in_class(std::string_view op, std::span<const PromotionOperand> operands, DtypeClass wanted);
// The same of all inputs that are present.
compute_dtype promote_inputs(const OpCall& call, DtypeClass wanted);

// ---- Formulas that several ops share --------------------------------------------------------------------------------

// The text of the i-th of c even steps from a to b, where all are numbers of one dtype. The weights of a and b are
// whole numbers, so that even steps come out exactly; where that overflows, they are fractions.
std::string even_step(const std::string& a, const std::string& b, const std::string& c, const std::string& i);

}  // namespace compute
