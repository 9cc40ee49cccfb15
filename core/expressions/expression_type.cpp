// SPDX-License-Identifier: Apache-2.0
// Typing. A node *counts as* a dtype, by which it promotes; it is *computed in* float32 where that is float16 or
// bfloat16, and is rounded only at an output, a convert or a bitcast. Numbers are weak: they have no dtype until the
// operand that they are combined with determines it. float8 counts as itself in convert, bitcast and outputs, and as
// float32 for all other intrinsics.
#include "core/expressions/expression_type.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "core/base/error.hpp"

namespace compute {

namespace {

// The dtype that represents a weak kind in promotion.
constexpr compute_dtype kKindDtype[] = {COMPUTE_DTYPE_BOOL, COMPUTE_DTYPE_INT64, COMPUTE_DTYPE_FLOAT64,
                                        COMPUTE_DTYPE_COMPLEX128};
constexpr const char* kKindName[] = {"bool", "integer", "real", "complex"};

struct Typing {
  compute_dtype dtype = COMPUTE_DTYPE_NONE;     // what it counts as; NONE while it is weak
  int kind = 0;                                 // of a weak node: 1 integer, 2 real, 3 complex
  compute_dtype own = COMPUTE_DTYPE_NONE;       // of a weak node: its default dtype; NONE for literals
  compute_dtype operands = COMPUTE_DTYPE_NONE;  // of a call: the common dtype of its operands, if known
  int32_t node = -1;

  bool weak() const { return dtype == COMPUTE_DTYPE_NONE; }
};

// Steps from x to the next float16 or bfloat16 towards y, over bit patterns widened to int32: k counts the numbers from
// 0 on. 31744 is the pattern of float16's infinity, 32640 of bfloat16's.
std::string nextafter_text(const char* infinity) {
  const std::string kx = "where(x < 0, -(x & 32767), x)", ky = "where(y < 0, -(y & 32767), y)";
  const std::string k = "(" + kx + " + where(" + kx + " < " + ky + ", 1, -1))";
  const std::string not_a_number = std::string(" & 32767) > ") + infinity;
  return "where((x" + not_a_number + ", x, where(((y" + not_a_number + ") | (" + kx + " == " + ky + "), y, where((" +
         k + " < 0) | ((" + k + " == 0) & (x < 0)), abs(" + k + ") | 32768, " + k + ")))";
}

const ExpressionTemplate& nextafter_template(compute_dtype dtype) {
  const auto make = [](const char* infinity) {
    constexpr std::string_view kNames[] = {"x", "y"};
    return parse(nextafter_text(infinity), kNames);
  };
  static const ExpressionTemplate &half = *new ExpressionTemplate(make("31744")),
                                  &bfloat = *new ExpressionTemplate(make("32640"));
  return dtype == COMPUTE_DTYPE_FLOAT16 ? half : bfloat;
}

class Typer {
 public:
  Typer(ExpressionBuilder& builder, const ExpressionTemplateData& data, std::span<const TypedLeaf> leaves,
        std::span<const compute_dtype> wanted, std::string_view op)
      : builder_(builder), data_(data), leaves_(leaves), wanted_(wanted), op_(op), types_(data.nodes.size()) {}

  std::vector<int32_t> run() {
    const auto count = static_cast<int32_t>(data_.nodes.size());
    for (int32_t i = 0; i < count; ++i) infer(i);
    for (size_t i = 0; i < data_.outputs.size(); ++i) settle_output(i);
    // Parents come later, so their demands are known before a node is visited. A named number with several parents
    // takes the dtype that the last one demands.
    for (int32_t i = count; i-- > 0;) demand(i);
    for (int32_t i = 0; i < count; ++i) emit(i);
    std::vector<int32_t> outputs;
    for (size_t i = 0; i < data_.outputs.size(); ++i) {
      outputs.push_back(rounded(data_.outputs[i], output_dtype(i)));
    }
    return outputs;
  }

 private:
  const TemplateNode& at(int32_t node) const { return data_.nodes[static_cast<size_t>(node)]; }
  Typing& type(int32_t node) { return types_[static_cast<size_t>(node)]; }
  std::span<const int32_t> operands(const TemplateNode& node) const {
    return {node.operands, static_cast<size_t>(node.operand_count)};
  }

  [[noreturn]] void fault(int32_t node, const std::string& what) const {
    throw_expression_fault(op_, data_.text, at(node).begin, what);
  }

  std::string describe(int32_t node) {
    const Typing& t = type(node);
    return t.weak() ? std::string("the ") + kKindName[t.kind] + " number" : dtype_name(t.dtype);
  }

  // ---- What nodes count as, from leaves to outputs ----

  void infer(int32_t n) {
    const TemplateNode& node = at(n);
    switch (node.kind) {
      case TemplateKind::kLeaf: {
        const TypedLeaf& leaf = leaves_[static_cast<size_t>(node.value)];
        if (leaf.weak && !is_bool(leaf.dtype)) {
          set_weak(n, kind_of(leaf.dtype), leaf.dtype);
        } else {
          type(n).dtype = leaf.dtype;
        }
        return;
      }
      case TemplateKind::kIndex:
        type(n).dtype = COMPUTE_DTYPE_INT64;
        return;
      case TemplateKind::kBool:
        type(n).dtype = COMPUTE_DTYPE_BOOL;
        return;
      case TemplateKind::kInteger:
        return set_weak(n, 1, COMPUTE_DTYPE_NONE);
      case TemplateKind::kReal:
        return set_weak(n, 2, COMPUTE_DTYPE_NONE);
      case TemplateKind::kCall:
        return infer_call(n);
    }
  }

  void set_weak(int32_t n, int kind, compute_dtype own) {
    type(n).kind = kind;
    type(n).own = own;
  }

  void infer_call(int32_t n) {
    const TemplateNode& node = at(n);
    const IntrinsicInfo& info = *find_intrinsic(node.value);
    if (node.value == COMPUTE_PLUGIN_INTRINSIC_CONVERT) return infer_convert(n);
    if (node.value == COMPUTE_PLUGIN_INTRINSIC_BITCAST) return infer_bitcast(n);
    std::span<const int32_t> together = operands(node);
    if (node.value == COMPUTE_PLUGIN_INTRINSIC_WHERE) {
      const int32_t condition = together.front();
      if (type(condition).dtype != COMPUTE_DTYPE_BOOL) {
        fault(condition, "the condition of where is " + describe(condition) + ", not bool; compare it (x != 0)");
      }
      together = together.subspan(1);
    }

    compute_dtype common = unify(together);
    if (common != COMPUTE_DTYPE_NONE) {
      common = dtype_in_class(common, info.operands, mixes_);
      if (!in_class(common, info.operands)) refuse_class(n, info, common);
      type(n).operands = common;
      type(n).dtype = result_dtype(info, common);
      return;
    }
    // Only numbers: an integer serves as a real if the intrinsic takes reals, and a real as a complex number.
    int kind = 0;
    compute_dtype own = COMPUTE_DTYPE_NONE;
    for (const int32_t operand : together) {
      kind = std::max(kind, type(operand).kind);
      own = combined(own, type(operand).own);
    }
    while (kind < 3 && !in_class(kKindDtype[kind], info.operands)) ++kind;
    if (!in_class(kKindDtype[kind], info.operands)) refuse_class(n, info, COMPUTE_DTYPE_NONE);
    if (own != COMPUTE_DTYPE_NONE && kind_of(own) < kind) own = kind == 2 ? COMPUTE_DTYPE_FLOAT32 : complex_or_64(own);
    if (info.result == IntrinsicResult::kBool) {
      if (own == COMPUTE_DTYPE_NONE) {
        fault(n, "the dtype of these numbers is not known; write convert(…, float32) around one");
      }
      type(n).operands = own;
      type(n).dtype = COMPUTE_DTYPE_BOOL;
      return;
    }
    if (info.result == IntrinsicResult::kPart && kind == 3) {
      type(n).operands = COMPUTE_DTYPE_COMPLEX128;  // for demand(): a real number of complex operands
      kind = 2;
      own = own == COMPUTE_DTYPE_NONE ? own : real_part_dtype(own);
    }
    if (info.result == IntrinsicResult::kPair) {
      kind = 3;
      own = own == COMPUTE_DTYPE_NONE ? own : complex_dtype(own);
    }
    set_weak(n, kind, own);
  }

  static compute_dtype complex_or_64(compute_dtype dtype) {
    return is_float(dtype) ? complex_dtype(dtype) : COMPUTE_DTYPE_COMPLEX64;
  }

  static compute_dtype combined(compute_dtype a, compute_dtype b) {
    if (a == COMPUTE_DTYPE_NONE || b == COMPUTE_DTYPE_NONE) return a != COMPUTE_DTYPE_NONE ? a : b;
    const PromotionOperand both[] = {{a, true}, {b, true}};
    PromotionFault fault;
    return common_dtype(both, &fault, true);
  }

  static compute_dtype result_dtype(const IntrinsicInfo& info, compute_dtype operand) {
    switch (info.result) {
      case IntrinsicResult::kBool:
        return COMPUTE_DTYPE_BOOL;
      case IntrinsicResult::kPart:
        return real_part_dtype(operand);
      case IntrinsicResult::kPair:
        return complex_dtype(operand);
      default:
        return operand;
    }
  }

  // The dtype of nodes together; NONE if all are weak.
  compute_dtype unify(std::span<const int32_t> nodes) {
    PromotionOperand list[3];
    bool all_weak = true;
    for (size_t i = 0; i < nodes.size(); ++i) {
      const Typing& t = type(nodes[i]);
      all_weak = all_weak && t.weak();
      const compute_dtype own = is_float8(t.dtype) ? computed_in(t.dtype) : t.dtype;
      list[i] = {t.weak() ? kKindDtype[t.kind] : own, t.weak(), {}};
    }
    if (all_weak) return COMPUTE_DTYPE_NONE;
    PromotionFault found;
    const compute_dtype common = common_dtype({list, nodes.size()}, &found, mixes_);
    if (common != COMPUTE_DTYPE_NONE) return common;
    const int32_t second = nodes[static_cast<size_t>(found.second)];
    const int32_t cast = nodes[static_cast<size_t>(found.cast)];
    const compute_dtype target =
        found.target == COMPUTE_DTYPE_FLOAT64 && type(second).weak() ? COMPUTE_DTYPE_FLOAT32 : found.target;
    fault(second, dtype_name(found.first_dtype) + " and " + describe(second) +
                      " have no common dtype; convert one of them (convert(" + std::string(data_.source(at(cast))) +
                      ", " + dtype_name(target) + "))" + promotion_remedy(found.first_dtype, list[found.second].dtype));
  }

  [[noreturn]] void refuse_class(int32_t n, const IntrinsicInfo& info, compute_dtype given) {
    std::string what = std::string(info.name) + " takes " + class_description(info.operands) + ", not " +
                       (given == COMPUTE_DTYPE_NONE ? std::string("numbers of that kind") : dtype_name(given));
    const compute_dtype hint = class_cast_hint(given, info.operands);
    if (given != COMPUTE_DTYPE_NONE && hint != COMPUTE_DTYPE_NONE) {
      what +=
          "; convert it (convert(" + std::string(data_.source(at(at(n).operands[0]))) + ", " + dtype_name(hint) + "))";
      if (!mixes_ && in_class(dtype_in_class(given, info.operands, true), info.operands)) what += kMixedRemedy;
    }
    fault(n, what);
  }

  void infer_convert(int32_t n) {
    const TemplateNode& node = at(n);
    const int32_t operand = node.operands[0];
    const Typing& from = type(operand);
    const compute_dtype source = from.weak() ? kKindDtype[from.kind] : from.dtype;
    if (is_complex(source) && !is_complex(node.target) && !is_bool(node.target)) {
      fault(n, "complex numbers cannot be converted to " + dtype_name(node.target) + "; use real(…) or abs(…)");
    }
    type(n).dtype = node.target;
    if (!from.weak()) return;
    // A number takes the target dtype if its kind allows; else it is converted from its own dtype.
    if (!is_bool(node.target) && from.kind <= kind_of(node.target)) {
      type(n).operands = node.target;
    } else if (from.own != COMPUTE_DTYPE_NONE) {
      type(n).operands = from.own;
    } else {
      type(n).operands = source;
    }
  }

  void infer_bitcast(int32_t n) {
    const TemplateNode& node = at(n);
    const Typing& from = type(node.operands[0]);
    const compute_dtype source = from.weak() ? from.own : from.dtype;
    if (source == COMPUTE_DTYPE_NONE)
      fault(n, "the dtype of the number in bitcast is not known; write convert(…, float32) around it");
    if (is_bool(node.target) || dtype_size(source) != dtype_size(node.target)) {
      fault(n, "bitcast from " + dtype_name(source) + " to " + dtype_name(node.target) +
                   (is_bool(node.target) ? " is not possible; compare with 0 instead" : ": their sizes differ"));
    }
    type(n).operands = source;
    type(n).dtype = node.target;
  }

  // ---- What weak nodes become, from outputs to leaves ----

  compute_dtype wanted(size_t output) const { return wanted_.empty() ? COMPUTE_DTYPE_NONE : wanted_[output]; }

  compute_dtype output_dtype(size_t output) {
    const compute_dtype dtype = wanted(output);
    return dtype != COMPUTE_DTYPE_NONE ? dtype : type(data_.outputs[output]).dtype;
  }

  void settle_output(size_t output) {
    const int32_t n = data_.outputs[output];
    Typing& t = type(n);
    compute_dtype dtype = wanted(output);
    const std::string name = data_.outputs.size() == 1 ? "the output" : "output " + std::to_string(output);
    if (t.weak()) {
      if (dtype == COMPUTE_DTYPE_NONE) dtype = t.own;
      if (dtype == COMPUTE_DTYPE_NONE) {
        fault(n, "the dtype of " + name + " is not known; write convert(…, float32) around it or pass an output");
      }
      if (is_bool(dtype) || t.kind > kind_of(dtype)) {
        fault(n, name + " is " + kKindName[t.kind] + " and does not fit in " + dtype_name(dtype));
      }
      t.dtype = dtype;
    } else if (dtype != COMPUTE_DTYPE_NONE &&
               (mixes_ ? kind_of(dtype) < kind_of(t.dtype) : kind_of(dtype) != kind_of(t.dtype))) {
      fault(n, name + " is " + dtype_name(t.dtype) + ", not " + dtype_name(dtype) + "; write convert(…, " +
                   dtype_name(dtype) + ") around it");
    }
  }

  void demand(int32_t n) {
    const TemplateNode& node = at(n);
    if (node.kind != TemplateKind::kCall) return;
    Typing& t = type(n);
    if (t.weak() && t.operands == COMPUTE_DTYPE_NONE) return;  // a number with a name that nothing uses
    const IntrinsicInfo& info = *find_intrinsic(node.value);
    if (t.operands == COMPUTE_DTYPE_NONE) {
      t.operands = info.result == IntrinsicResult::kPair ? real_part_dtype(t.dtype) : t.dtype;
    } else if (info.result == IntrinsicResult::kPart && is_complex(t.operands)) {
      t.operands = complex_or_64(t.dtype);
    }
    for (const int32_t operand : operands(node)) {
      if (type(operand).weak()) type(operand).dtype = t.operands;
    }
  }

  // ---- Nodes ----

  void emit(int32_t n) {
    const TemplateNode& node = at(n);
    Typing& t = type(n);
    if (t.weak() && node.kind != TemplateKind::kLeaf) return;  // unused, as above
    switch (node.kind) {
      case TemplateKind::kLeaf: {
        // A scalar's nodes are made where it is used: each in the dtype that is needed there.
        const TypedLeaf& leaf = leaves_[static_cast<size_t>(node.value)];
        t.node = leaf.node;
        return;
      }
      case TemplateKind::kIndex:
        t.node = builder_.index(node.value);
        return;
      case TemplateKind::kBool:
        t.node = builder_.constant(scalar_from_int64(node.value, COMPUTE_DTYPE_BOOL), COMPUTE_DTYPE_BOOL);
        return;
      case TemplateKind::kInteger:
        t.node = integer(n);
        return;
      case TemplateKind::kReal: {
        const compute_dtype dtype = computed_in(t.dtype);
        const bool single = real_part_dtype(dtype) == COMPUTE_DTYPE_FLOAT32;
        t.node =
            builder_.constant(scalar_from_double(single ? static_cast<double>(node.real32) : node.real, dtype), dtype);
        return;
      }
      case TemplateKind::kCall:
        t.node = emit_call(n);
    }
  }

  int32_t integer(int32_t n) {
    const TemplateNode& node = at(n);
    const compute_dtype dtype = computed_in(type(n).dtype);
    if (is_integer(dtype)) {
      const int bits = static_cast<int>(dtype_size(dtype)) * 8 - (is_signed_integer(dtype) ? 1 : 0);
      const uint64_t most = bits == 64 ? UINT64_MAX : (uint64_t{1} << bits) - 1;
      const uint64_t allowed = !node.negative ? most : is_signed_integer(dtype) ? most + 1 : 0;
      if (node.magnitude > allowed) {
        fault(n, std::string(data_.source(node)) + " does not fit in " + dtype_name(dtype));
      }
    }
    ScalarBits bits = scalar_from_uint64(node.magnitude, dtype);
    if (node.negative) {
      bits = node.magnitude <= uint64_t{1} << 63 ? scalar_from_int64(static_cast<int64_t>(~node.magnitude + 1), dtype)
                                                 : scalar_from_double(-static_cast<double>(node.magnitude), dtype);
    }
    return builder_.constant(bits, dtype);
  }

  // The node as `dtype` is computed in.
  int32_t computed(int32_t n, compute_dtype dtype) { return builder_.convert(source(n, dtype), computed_in(dtype)); }

  // The node as `dtype` itself, rounded to it.
  int32_t rounded(int32_t n, compute_dtype dtype) { return builder_.convert(source(n, dtype), dtype); }

  // What to convert to `dtype`: a scalar comes converted.
  int32_t source(int32_t n, compute_dtype dtype) {
    if (at(n).kind == TemplateKind::kLeaf) {
      const TypedLeaf& leaf = leaves_[static_cast<size_t>(at(n).value)];
      if (leaf.node < 0) return builder_.scalar({leaf.scalar_leaf, dtype});
    }
    return type(n).node;
  }

  int32_t emit_call(int32_t n) {
    const TemplateNode& node = at(n);
    const compute_dtype common = type(n).operands;
    if (node.value == COMPUTE_PLUGIN_INTRINSIC_CONVERT) {
      // A lone weak number is converted directly; anything else keeps its dtype.
      const int32_t operand = node.operands[0];
      return rounded(operand, node.target);
    }
    if (node.value == COMPUTE_PLUGIN_INTRINSIC_BITCAST)
      return builder_.bitcast(rounded(node.operands[0], common), node.target);
    if (node.value == COMPUTE_PLUGIN_INTRINSIC_NEXTAFTER && computed_in(common) != common) return emit_nextafter(n);
    int32_t made[3];
    for (int32_t i = 0; i < node.operand_count; ++i) {
      const bool condition = node.value == COMPUTE_PLUGIN_INTRINSIC_WHERE && i == 0;
      made[i] = computed(node.operands[i], condition ? COMPUTE_DTYPE_BOOL : common);
    }
    return builder_.call(node.value, {made, static_cast<size_t>(node.operand_count)});
  }

  int32_t emit_nextafter(int32_t n) {
    const compute_dtype dtype = type(n).operands;
    TypedLeaf leaves[2];
    const int32_t operands[] = {rounded(at(n).operands[0], dtype), rounded(at(n).operands[1], dtype)};
    for (int i = 0; i < 2; ++i) {
      const int32_t bits = builder_.bitcast(operands[i], COMPUTE_DTYPE_INT16);
      leaves[i] = {COMPUTE_DTYPE_INT32, false, builder_.convert(bits, COMPUTE_DTYPE_INT32), -1};
    }
    const int32_t bits = build_expression(builder_, nextafter_template(dtype).data(), leaves, {}, op_).front();
    const int32_t result = builder_.bitcast(builder_.convert(bits, COMPUTE_DTYPE_INT16), dtype);
    builder_.derive_as(result, operands[0]);
    return result;
  }

  ExpressionBuilder& builder_;
  const ExpressionTemplateData& data_;
  std::span<const TypedLeaf> leaves_;
  std::span<const compute_dtype> wanted_;
  std::string_view op_;
  const bool mixes_ = kinds_mix();
  std::vector<Typing> types_;
};

}  // namespace

std::vector<int32_t> build_expression(ExpressionBuilder& builder, const ExpressionTemplateData& data,
                                      std::span<const TypedLeaf> leaves, std::span<const compute_dtype> wanted,
                                      std::string_view op) {
  assert(!data.primal && static_cast<int32_t>(leaves.size()) == data.input_count + data.scalar_count);
  return Typer(builder, data, leaves, wanted, op).run();
}

}  // namespace compute
