// SPDX-License-Identifier: Apache-2.0
// Ops as core passes them to a plugin, and reasons for refusals.
#pragma once

#include <compute/plugin.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace compute::common {

// A checked view of a compute_plugin_op of any struct size; valid as long as that is.
class Op {
 public:
  // Throws UNSUPPORTED for unknown parts that must be understood.
  explicit Op(const compute_plugin_op* op);

  const compute_plugin_op& description() const { return op_; }
  std::string_view name() const { return {op_.name.data, static_cast<size_t>(op_.name.size)}; }
  int32_t version() const { return op_.version; }
  bool deterministic() const { return (op_.flags & COMPUTE_PLUGIN_OP_DETERMINISTIC) != 0; }
  bool fast_math() const { return (op_.flags & COMPUTE_PLUGIN_OP_FAST_MATH) != 0; }
  bool allows_tf32() const { return fast_math() || (op_.flags & COMPUTE_PLUGIN_OP_TF32) != 0; }
  int32_t input_count() const { return op_.input_count; }
  int32_t output_count() const { return op_.output_count; }
  int32_t tensor_count() const { return op_.input_count + op_.output_count; }
  int32_t scalar_count() const { return op_.scalar_count; }
  compute_dtype scalar_dtype(int32_t index) const { return op_.scalar_dtypes[index]; }
  const compute_plugin_tensor& tensor(int32_t index) const;
  const compute_plugin_tensor& input(int32_t index) const { return tensor(index); }
  const compute_plugin_tensor& output(int32_t index) const { return tensor(op_.input_count + index); }
  int32_t expression_count() const { return op_.expression_count; }
  const compute_plugin_expression& expression(int32_t index) const { return *op_.expressions[index]; }

  // Attributes; absent ones have these defaults.
  std::span<const int64_t> integers(std::string_view name) const;
  int64_t integer(std::string_view name, int64_t otherwise) const;
  double real(std::string_view name, double otherwise) const;
  std::string_view text(std::string_view name) const;
  std::vector<std::string_view> texts(std::string_view name) const;
  compute_dtype dtype(std::string_view name) const;

  // The name of an attribute.
  std::string_view attribute_name(int32_t index) const;
  int32_t attribute_count() const { return op_.attribute_count; }

 private:
  const compute_attribute* find(std::string_view name, int32_t kind) const;
  const compute_attribute& attribute(int32_t index) const;

  compute_plugin_op op_{};
};

// The reason why an op is refused.
struct Refusal {
  int32_t reason;
  int32_t argument = -1;
  std::string text;
  std::string hint;
};

// A plan, or the reason for the refusal.
template <class Plan>
using PlanOrRefusal = std::variant<std::unique_ptr<Plan>, Refusal>;

// ---- Dtypes ---------------------------------------------------------------------------------------------------------

enum class Category : uint8_t { kBool, kSigned, kUnsigned, kFloat, kComplex };

struct DtypeRow {
  const char* name;
  int32_t size;
  Category category;
};

inline constexpr int32_t kDtypeLimit = 16;

// `dtype` must be a known one.
const DtypeRow& dtype_row(compute_dtype dtype);
inline const char* dtype_name(compute_dtype dtype) { return dtype_row(dtype).name; }
inline int32_t dtype_size(compute_dtype dtype) { return dtype_row(dtype).size; }
// True iff the elements along the axes from `first` on lie next to one another in row-major order.
bool is_row_major(const compute_plugin_tensor& tensor, int64_t first = 0);

inline bool is_complex(compute_dtype dtype) { return dtype_row(dtype).category == Category::kComplex; }

/// Refuses what a newer core may ask: an op, a version, tensors, expressions or attributes that known_ops.def does not
/// list; dtypes that dtypes.def does not list; unknown layouts; unknown nodes of expressions. Plugins call it first, so
/// that what follows need not check. A plugin checks its own ops (acme.fused) itself.
std::optional<Refusal> refuse_unknown(const Op& op);

/// Refuses complex elements at addresses that are not multiples of their size, which GPUs cannot load in one access.
/// Core copies such operands.
std::optional<Refusal> refuse_unaligned(const Op& op);

}  // namespace compute::common
