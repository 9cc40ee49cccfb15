// SPDX-License-Identifier: Apache-2.0
// Tools for writing decompositions: views of operands, and a builder of steps.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/ops/lowering.hpp"
#include "core/ops/op_call.hpp"

namespace compute {

// ---- Views ----------------------------------------------------------------------------------------------------------

// With a new axis of `extent` before `axis`, along which the elements repeat.
StepOperand with_axis(StepOperand operand, int32_t axis, int64_t extent = 1);
StepOperand without_axis(StepOperand operand, int32_t axis);
// Broadcast to `shape`.
StepOperand broadcast_to(const StepOperand& operand, std::span<const int64_t> shape);
// Elements [start, start + extent) along `axis`.
StepOperand narrowed(StepOperand operand, int32_t axis, int64_t start, int64_t extent);
// As one axis; nothing if the elements do not lie evenly in row-major order.
std::optional<StepOperand> flattened(const StepOperand& operand);
// Axes [first, first + count) collapsed to one; nothing if their elements are not evenly spaced.
std::optional<StepOperand> collapsed(const StepOperand& operand, int32_t first, int32_t count);
// The axis split into axes of these extents, whose product is its extent.
StepOperand split_axis(const StepOperand& operand, int32_t axis, std::span<const int64_t> extents);
// With the axes in another order.
StepOperand permuted(const StepOperand& operand, std::span<const int32_t> axes);

// ---- Scalars --------------------------------------------------------------------------------------------------------

// A scalar of an expression before typing: StepScalar's source, how it takes part in typing, and its name in the text,
// "" for a, b, c, … by its place (scalar_name).
struct ScalarTerm {
  StepScalar source;
  LeafDesc leaf;
  std::string_view name = {};

  ScalarTerm named(std::string_view in_text) const { return {source, leaf, in_text}; }
};

// A number that follows from extents; takes the dtype of the operand that it is combined with.
ScalarTerm extent_term(int64_t value);
// The run-time attribute as `dtype`.
ScalarTerm attribute_term(const OpCall& call, std::string_view name, compute_dtype dtype);

// An expression of a step, as text over the step's inputs and the scalars. `inputs` are the names of all inputs; if it
// is empty, they are x, y, z, x3, … x8. Names are literals.
struct StepExpression {
  std::string text;
  std::vector<ScalarTerm> scalars = {};
  std::vector<std::string_view> inputs = {};
};

inline constexpr std::string_view kScalarNames = "abcdefghijklmnopqrstuvwABCDEFGHIJKLMNOPQRSTUVWXYZ";
inline std::string scalar_name(size_t index) { return std::string(1, kScalarNames[index]); }

// "convert(x, float32)": the text that converts an operand of some dtype to another; "x" itself if the dtypes are
// equal.
std::string convert_text(std::string_view operand, compute_dtype from, compute_dtype to);

// ---- Rows -----------------------------------------------------------------------------------------------------------

// Values combined along axes. Texts use the names of the row's inputs and the results of earlier stages. In `after`,
// the only input is the combined value, called x unless after.inputs has its name.
struct RowStage {
  const char* kind;
  compute_dtype accumulator;  // the dtype of `before`
  StepExpression before;
  StepExpression after;
  compute_dtype result;        // the dtype of `after`
  std::string_view name = {};  // of the result in later texts; "": r0, r1, …
};

// The computation of the primitive `row`.
struct Row {
  struct Stored {
    int32_t stage;
    StepOperand output;  // of extent 1 along the axes; the result is converted to its dtype
  };
  std::vector<StepOperand> inputs;  // of one shape
  std::vector<int64_t> axes;        // ascending
  std::vector<RowStage> stages;     // at most kMaxRowStages
  std::optional<StepExpression> map =
      {};  // at every position, over inputs and results; its outputs are separated by ";"
  std::vector<StepOperand> outputs = {};
  std::vector<Stored> stored = {};           // ascending
  std::vector<std::string_view> names = {};  // of the inputs; empty: x, y, z, x3, … x8
};

inline constexpr size_t kMaxRowStages = 4;

// Of the primitive reduce.
std::vector<StepAttribute> reduce_attributes(std::span<const int64_t> axes, const char* kind,
                                             compute_dtype accumulator);

// How scatter treats updates of one element.
enum class Duplicates {
  kAnyOrder,  // combines them in any order, but in one with COMPUTE_DETERMINISTIC
  kInOrder,   // gives the same bits each time, and the last one for "set"
  kNone       // there are none
};

inline Duplicates duplicates_of(bool deterministic) {
  return deterministic ? Duplicates::kInOrder : Duplicates::kAnyOrder;
}

// ---- Steps ----------------------------------------------------------------------------------------------------------

class Steps {
 public:
  Steps(const OpCall& call, const LoweringTarget& target) : call_(call), target_(target) {}

  // The call's operands. A scalar input becomes a temporary of rank 0, of `dtype` or else of its own dtype, which a
  // step fills.
  StepOperand input(int32_t index, compute_dtype dtype = COMPUTE_DTYPE_NONE);
  StepOperand output(int32_t index = 0) const;
  // Whether an optional input was given. An absent one is StepOperand{}, also as an input of a step.
  bool has_input(int32_t index) const;
  StepOperand temporary(compute_dtype dtype, std::span<const int64_t> shape);
  // The operand with axes [first, first + count) collapsed to one, or such a view of a row-major copy if they cannot be
  // collapsed.
  StepOperand as_collapsed(const StepOperand& operand, int32_t first, int32_t count);
  // The operand itself if it has this dtype, else a converted temporary.
  StepOperand as_dtype(const StepOperand& operand, compute_dtype dtype);
  // Indices for gather and scatter: int32 and int64 unchanged, narrower ones as int32, other dtypes as int64, where
  // uint64 saturates.
  StepOperand as_indices(const StepOperand& operand);

  void map(const StepExpression& expression, std::vector<StepOperand> inputs, StepOperand output);
  // Several outputs of one shape; their expressions are separated by ";".
  void map(const StepExpression& expression, std::vector<StepOperand> inputs, std::vector<StepOperand> outputs);
  // Adds an epilogue to the step that was added last: over x, which is its result as `from`, before it is rounded.
  void epilogue(const StepExpression& expression, compute_dtype from);
  void copy(StepOperand src, StepOperand dst);
  void fill(StepOperand dst, const ScalarBits& value);  // of dst's dtype
  // `axes` ascending; the output has extent 1 there. `before` gives the accumulator's dtype, and `after` is over x.
  void reduce(const char* kind, compute_dtype accumulator, std::span<const int64_t> axes, const StepExpression& before,
              std::vector<StepOperand> inputs, const StepExpression& after, StepOperand output);
  void gather(StepOperand src, StepOperand indices, StepOperand dst, int32_t axis);
  void scatter(StepOperand indices, StepOperand updates, StepOperand dst, int32_t axis, std::string_view reduction,
               Duplicates duplicates);
  // The same into a copy of src, as one step, which a plugin may refuse.
  void scatter_into_copy(StepOperand src, StepOperand indices, StepOperand updates, StepOperand dst, int32_t axis,
                         std::string_view reduction, Duplicates duplicates);
  // States which operand of the call the steps' indices come from, for messages.
  void indices_are(IndexPlace place) { lowering_.indices = std::make_shared<const IndexPlace>(std::move(place)); }
  // As one step, and as one reduction per stage and a map: the first and second alternative of a rule.
  void row(const Row& row);
  void row_in_steps(const Row& row);
  // Any primitive whose arguments are only tensors and attributes.
  Step& add(const char* primitive, std::vector<StepOperand> inputs, StepOperand output);
  Step& add(const char* primitive, std::vector<StepOperand> inputs, std::vector<StepOperand> outputs);

  Lowering take() { return std::move(lowering_); }

 private:
  void add_scatter(StepOperand indices, StepOperand updates, StepOperand dst, int32_t axis, std::string_view reduction,
                   bool deterministic);
  bool is_ordered(Duplicates duplicates, std::string_view reduction, compute_dtype dtype) const;
  void set_last(const StepOperand& indices, const StepOperand& updates, const StepOperand& dst, int32_t axis);
  void add_without_order(const StepOperand& indices, const StepOperand& updates, const StepOperand& dst, int32_t axis);
  using Names = std::vector<std::string_view>;
  TypedExpression type(const StepExpression& expression, const Names& names, std::span<const compute_dtype> inputs,
                       std::span<const compute_dtype> wanted, std::vector<StepScalar>& out_scalars) const;
  void map(const StepExpression& expression, const Names& names, std::vector<StepOperand> inputs,
           std::vector<StepOperand> outputs);
  void reduce(const char* kind, compute_dtype accumulator, std::span<const int64_t> axes, const StepExpression& before,
              const Names& names, std::vector<StepOperand> inputs, const StepExpression& after, StepOperand output);

  const OpCall& call_;
  const LoweringTarget& target_;
  Lowering lowering_;
  // By all that they depend on. Steps that repeat are parsed once.
  mutable std::vector<std::pair<std::string, TypedExpression>> typed_;
};

}  // namespace compute
