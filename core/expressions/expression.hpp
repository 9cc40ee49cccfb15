// SPDX-License-Identifier: Apache-2.0
// Expressions: parsing of text into an untyped template, typing into the canonical form that plugins receive.
#pragma once

#include <compute/compute.h>
#include <compute/plugin.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/expressions/dtype.hpp"
#include "core/expressions/intrinsic.hpp"

namespace compute {

// The limits of an expression's text; beyond them parse() throws INVALID_ARGUMENT.
inline constexpr int64_t kMaxExpressionText = 65536;
inline constexpr int32_t kMaxExpressionDepth = 128;
inline constexpr int32_t kMaxExpressionNodes = 4096;
inline constexpr int32_t kMaxExpressionOutputs = 64;
// The maximum of nodes while a gradient is made.
inline constexpr int32_t kMaxGradientNodes = 65536;

// ---- Templates ------------------------------------------------------------------------------------------------------

struct ExpressionTemplateData;

// Parsed text: immutable, cheap to copy.
class ExpressionTemplate {
 public:
  ExpressionTemplate() = default;
  explicit ExpressionTemplate(std::shared_ptr<const ExpressionTemplateData> data) : data_(std::move(data)) {}

  const std::string& text() const noexcept;
  int32_t input_count() const noexcept;
  int32_t scalar_count() const noexcept;
  int32_t output_count() const noexcept;
  // The greatest axis in any index(i), or -1.
  int32_t max_index_axis() const noexcept;
  const ExpressionTemplateData& data() const noexcept { return *data_; }
  const std::shared_ptr<const ExpressionTemplateData>& shared() const noexcept { return data_; }
  explicit operator bool() const noexcept { return data_ != nullptr; }

 private:
  std::shared_ptr<const ExpressionTemplateData> data_;
};

// Grammar: docs/expressions.md. Throws INVALID_ARGUMENT with the text and a caret below the fault on two further lines.
ExpressionTemplate parse(std::string_view text, std::span<const std::string_view> input_names,
                         std::span<const std::string_view> scalar_names = {});

// The gradients of a number L with respect to these inputs of the expression, as an expression of three groups of
// leaves: its inputs, the gradients of L with respect to its outputs, and its scalars. Every number of `inputs` is
// below input_count().
ExpressionTemplate gradient_of(const ExpressionTemplate& expression, std::span<const int32_t> inputs);

// ---- Typed expressions ----------------------------------------------------------------------------------------------

// One leaf of a template: its inputs come first, then its scalars.
struct LeafDesc {
  compute_dtype dtype;
  bool weak = false;       // takes the dtype of the operand that it is combined with
  bool is_scalar = false;  // becomes a SCALAR node, not an INPUT node; implied for the template's scalars
};

// What a run must pass as SCALAR node i: the value of leaf `leaf` (as in LeafDesc), converted to `dtype` on the host.
struct ScalarSlot {
  int32_t leaf;
  compute_dtype dtype;
  bool operator==(const ScalarSlot&) const = default;
};

struct TypedExpressionData;

// The canonical SSA form of plugin.h: immutable, cheap to copy, owns what plugin_view() points to.
class TypedExpression {
 public:
  TypedExpression() = default;
  explicit TypedExpression(std::shared_ptr<const TypedExpressionData> data) : data_(std::move(data)) {}

  const compute_plugin_expression& plugin_view() const noexcept;
  std::span<const compute_plugin_node> nodes() const noexcept;
  std::span<const int32_t> operands(const compute_plugin_node& node) const noexcept;
  std::array<uint8_t, 16> digest() const noexcept;
  int32_t input_count() const noexcept { return plugin_view().input_count; }
  int32_t output_count() const noexcept { return plugin_view().output_count; }
  compute_dtype output_dtype(int32_t output) const noexcept;
  // By the number of the SCALAR node.
  std::span<const ScalarSlot> scalars() const noexcept;
  // The leaf of INPUT node i: leaves that are not scalars, in order.
  std::span<const int32_t> input_leaves() const noexcept;
  // "n0 = input 0: float32\nn1 = exp(n0): float32\noutput n1", for tests and reports.
  std::string to_string() const;
  explicit operator bool() const noexcept { return data_ != nullptr; }

 private:
  std::shared_ptr<const TypedExpressionData> data_;
};

// The typed form for leaves of these dtypes, one per input and scalar of the template. `wanted` is empty, or the dtype
// of every output. An output of another dtype is converted to it if that keeps its kind, else refused. `op` begins the
// message of the INVALID_ARGUMENT that is thrown for dtypes that an intrinsic does not support.
TypedExpression type_expression(const ExpressionTemplate& expression, std::span<const LeafDesc> leaves,
                                std::span<const compute_dtype> wanted = {}, std::string_view op = "expression");

// The same expression with intrinsic `id` replaced by its definition; nothing if it has no definition.
// The same expression without functions that core composes.
TypedExpression with_composed_replaced(TypedExpression expression);
std::optional<TypedExpression> replace_intrinsic(const TypedExpression& expression, int32_t id);

}  // namespace compute
