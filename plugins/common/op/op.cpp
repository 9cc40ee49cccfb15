// SPDX-License-Identifier: Apache-2.0
#include "plugins/common/op/op.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "plugins/common/op/core.hpp"
#include "plugins/common/op/understood.hpp"

namespace compute::common {
namespace {

constexpr Category category_BOOL = Category::kBool, category_SIGNED = Category::kSigned,
                   category_UNSIGNED = Category::kUnsigned, category_FLOAT = Category::kFloat,
                   category_COMPLEX = Category::kComplex;

// Indexed by id, which dtypes.def numbers from 1.
constexpr DtypeRow kDtypes[] = {
    {"none", 0, Category::kBool},
#define COMPUTE_DTYPE(id, name, NAME, size, category, computed_in, cuda, opencl) {#name, size, category_##category},
#include <compute/dtypes.def>
#undef COMPUTE_DTYPE
};
static_assert(std::size(kDtypes) == kDtypeLimit);

bool is_known(compute_dtype dtype) { return dtype > 0 && dtype < kDtypeLimit; }

bool is_known_intrinsic(int32_t id) {
  constexpr int32_t kCount = 0
#define COMPUTE_INTRINSIC(...) +1
#include <compute/intrinsics.def>
#undef COMPUTE_INTRINSIC
      ;
  return id >= 1 && id <= kCount;
}

struct KnownOp {
  std::string_view name;
  int32_t newest, tensors, expressions;
  std::string_view attributes;  // each between blanks
};

constexpr KnownOp kKnownOps[] = {
#define COMPUTE_KNOWN_OP(name, newest, tensors, expressions, attributes) \
  {#name, newest, tensors, expressions, " " attributes " "},
#include "plugins/common/op/known_ops.def"
#undef COMPUTE_KNOWN_OP
};
static_assert(std::ranges::is_sorted(kKnownOps, {}, &KnownOp::name));

Refusal not_implemented(const Op& op, const std::string& what) {
  return {COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED, -1, std::string(op.name()) + ": " + what, ""};
}

std::optional<Refusal> refuse_more(const Op& op) {
  const auto* known = std::ranges::lower_bound(kKnownOps, op.name(), {}, &KnownOp::name);
  if (known == std::end(kKnownOps) || known->name != op.name()) return not_implemented(op, "the op is not known");
  if (op.version() < 1 || op.version() > known->newest)
    return not_implemented(op, "version " + std::to_string(op.version()) + " is not known");
  if (known->tensors >= 0 && op.tensor_count() > known->tensors)
    return not_implemented(op, std::to_string(op.tensor_count()) + " tensors are more than are known");
  if (op.expression_count() > known->expressions) return not_implemented(op, "there are no such epilogues");
  for (int32_t i = 0; i < op.attribute_count(); ++i) {
    const std::string name(op.attribute_name(i));
    if (known->attributes.find(" " + name + " ") != std::string_view::npos) continue;
    return Refusal{COMPUTE_PLUGIN_REFUSE_ATTRIBUTE, -1,
                   std::string(op.name()) + ": the attribute " + name + " is not known", ""};
  }
  return std::nullopt;
}

std::optional<Refusal> refuse_tensors(const Op& op) {
  const auto refuse_dtype = [](compute_dtype dtype, int32_t argument) {
    return Refusal{COMPUTE_PLUGIN_REFUSE_DTYPE, argument, "unknown dtype " + std::to_string(dtype), ""};
  };
  for (int32_t i = 0; i < op.tensor_count(); ++i) {
    const compute_plugin_tensor& tensor = op.tensor(i);
    const bool absent = i < op.input_count() && tensor.rank < 0;  // an optional operand that is not given
    if (!absent && !is_known(tensor.dtype)) return refuse_dtype(tensor.dtype, i);
    if (tensor.layout != COMPUTE_PLUGIN_LAYOUT_STRIDED) {
      return Refusal{COMPUTE_PLUGIN_REFUSE_LAYOUT, i,
                     "layout " + std::to_string(tensor.layout) + " is newer than the plugin", ""};
    }
  }
  for (int32_t i = 0; i < op.scalar_count(); ++i) {
    if (!is_known(op.scalar_dtype(i))) return refuse_dtype(op.scalar_dtype(i), -1);
  }
  return std::nullopt;
}

std::optional<Refusal> refuse_nodes(const Op& op, const compute_plugin_expression& expression) {
  for (int32_t i = 0; i < expression.node_count; ++i) {
    const compute_plugin_node& node = expression.nodes[i];
    if (node.kind < COMPUTE_PLUGIN_NODE_INPUT || node.kind > COMPUTE_PLUGIN_NODE_CALL)
      return not_implemented(op, "nodes of kind " + std::to_string(node.kind) + " are not known");
    if (!is_known(node.dtype))
      return Refusal{COMPUTE_PLUGIN_REFUSE_DTYPE, -1, "unknown dtype " + std::to_string(node.dtype), ""};
    if (node.kind == COMPUTE_PLUGIN_NODE_CALL && !is_known_intrinsic(node.value)) {
      return Refusal{COMPUTE_PLUGIN_REFUSE_INTRINSIC, node.value,
                     "intrinsic " + std::to_string(node.value) + " is not known", ""};
    }
  }
  return std::nullopt;
}

}  // namespace

Op::Op(const compute_plugin_op* op) {
  std::memcpy(static_cast<void*>(&op_), op, std::min<size_t>(op->struct_size, sizeof op_));
  require_understood(op, "the op");
  require_understood(op_.tensors, tensor_count(), "a tensor of the op");
  require_understood(op_.attributes, op_.attribute_count, "an attribute of the op");
  for (int32_t i = 0; i < op_.expression_count; ++i) require_understood(op_.expressions[i], "an expression of the op");
}

bool is_row_major(const compute_plugin_tensor& tensor, int64_t first) {
  int64_t stride = 1;
  for (int64_t axis = tensor.rank; axis-- > first;) {
    if (tensor.shape[axis] != 1 && tensor.strides[axis] != stride) return false;
    stride *= tensor.shape[axis];
  }
  return true;
}

const compute_plugin_tensor& Op::tensor(int32_t index) const {
  const char* first = reinterpret_cast<const char*>(op_.tensors);
  return *reinterpret_cast<const compute_plugin_tensor*>(first + static_cast<size_t>(index) * op_.tensors->struct_size);
}

const compute_attribute& Op::attribute(int32_t index) const {
  const char* first = reinterpret_cast<const char*>(op_.attributes);
  return *reinterpret_cast<const compute_attribute*>(first + static_cast<size_t>(index) * op_.attributes->struct_size);
}

const compute_attribute* Op::find(std::string_view name, int32_t kind) const {
  for (int32_t i = 0; i < op_.attribute_count; ++i) {
    const compute_attribute& a = attribute(i);
    if (std::string_view(a.name, static_cast<size_t>(a.name_size)) == name && a.kind == kind) return &a;
  }
  return nullptr;
}

std::span<const int64_t> Op::integers(std::string_view name) const {
  const compute_attribute* a = find(name, COMPUTE_KIND_INT64);
  if (a == nullptr) return {};
  return {static_cast<const int64_t*>(a->values), static_cast<size_t>(a->count)};
}

int64_t Op::integer(std::string_view name, int64_t otherwise) const {
  const auto values = integers(name);
  return values.empty() ? otherwise : values[0];
}

double Op::real(std::string_view name, double otherwise) const {
  const compute_attribute* a = find(name, COMPUTE_KIND_FLOAT64);
  return a == nullptr || a->count < 1 ? otherwise : *static_cast<const double*>(a->values);
}

std::string_view Op::text(std::string_view name) const {
  const compute_attribute* a = find(name, COMPUTE_KIND_STRING);
  return a == nullptr || a->count < 1 ? std::string_view() : view(*static_cast<const compute_string*>(a->values));
}

std::vector<std::string_view> Op::texts(std::string_view name) const {
  const compute_attribute* a = find(name, COMPUTE_KIND_STRING);
  std::vector<std::string_view> texts;
  for (int64_t i = 0; a != nullptr && i < a->count; ++i)
    texts.push_back(view(static_cast<const compute_string*>(a->values)[i]));
  return texts;
}

std::string_view Op::attribute_name(int32_t index) const {
  const compute_attribute& a = attribute(index);
  return {a.name, static_cast<size_t>(a.name_size)};
}

compute_dtype Op::dtype(std::string_view name) const {
  const compute_attribute* a = find(name, COMPUTE_KIND_DTYPE);
  return a == nullptr || a->count < 1 ? COMPUTE_DTYPE_NONE : *static_cast<const compute_dtype*>(a->values);
}

const DtypeRow& dtype_row(compute_dtype dtype) { return kDtypes[dtype]; }

std::optional<Refusal> refuse_unknown(const Op& op) {
  const bool is_of_vendor = op.name().find('.') != std::string_view::npos;
  if (std::optional<Refusal> refusal = is_of_vendor ? std::nullopt : refuse_more(op)) return refusal;
  if (std::optional<Refusal> refusal = refuse_tensors(op)) return refusal;
  for (int32_t i = 0; i < op.expression_count(); ++i) {
    if (std::optional<Refusal> refusal = refuse_nodes(op, op.expression(i))) return refusal;
  }
  return std::nullopt;
}

std::optional<Refusal> refuse_unaligned(const Op& op) {
  for (int32_t i = 0; i < op.tensor_count(); ++i) {
    const compute_plugin_tensor& tensor = op.tensor(i);
    if (tensor.rank < 0 || tensor.alignment >= dtype_size(tensor.dtype)) continue;
    return Refusal{COMPUTE_PLUGIN_REFUSE_LAYOUT, i,
                   std::string(op.name()) + ": elements of " + std::string(dtype_name(tensor.dtype)) +
                       " are not aligned to " + std::to_string(dtype_size(tensor.dtype)) + " bytes",
                   "copy the tensor"};
  }
  return std::nullopt;
}

}  // namespace compute::common
