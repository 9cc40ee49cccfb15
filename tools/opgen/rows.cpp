// SPDX-License-Identifier: Apache-2.0
// plugins/cpu/kernels/rows.inc: the rows that the CPU plugin compiles, as C++ over its intrinsics.
#include <algorithm>
#include <cstring>
#include <set>

#include "core/ops/rows.hpp"
#include "tools/opgen/texts.hpp"

namespace compute::opgen {

namespace {

constexpr compute_dtype kDtypes[] = {COMPUTE_DTYPE_BOOL, COMPUTE_DTYPE_INT32, COMPUTE_DTYPE_FLOAT32,
                                     COMPUTE_DTYPE_FLOAT64};

std::string hexadecimal(uint64_t value) {
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += "0123456789abcdef"[value >> shift & 15];
  return "0x" + text;
}

uint64_t big_endian(const uint8_t* bytes) {
  uint64_t value = 0;
  for (int i = 0; i < 8; ++i) value = value << 8 | bytes[i];
  return value;
}

// What plugins/cpu/kernels/rows_table.inc says that a row may hold.
bool is_compiled(const TypedExpression& e) {
  constexpr int32_t kUnspelt[] = {COMPUTE_PLUGIN_INTRINSIC_CONVERT,   COMPUTE_PLUGIN_INTRINSIC_BITCAST,
                                  COMPUTE_PLUGIN_INTRINSIC_FLOOR_DIV, COMPUTE_PLUGIN_INTRINSIC_MOD,
                                  COMPUTE_PLUGIN_INTRINSIC_POW,       COMPUTE_PLUGIN_INTRINSIC_SHL,
                                  COMPUTE_PLUGIN_INTRINSIC_SHR,       COMPUTE_PLUGIN_INTRINSIC_MUL_HIGH};
  int calls = 0;
  std::set<int64_t> sizes;
  for (const compute_plugin_node& node : e.nodes()) {
    if (std::find(std::begin(kDtypes), std::end(kDtypes), node.dtype) == std::end(kDtypes)) return false;
    if (node.kind == COMPUTE_PLUGIN_NODE_SCALAR || node.kind == COMPUTE_PLUGIN_NODE_INDEX) return false;
    if (node.kind == COMPUTE_PLUGIN_NODE_CONSTANT && is_bool(node.dtype)) return false;
    if (!is_bool(node.dtype)) sizes.insert(dtype_size(node.dtype));
    if (node.kind != COMPUTE_PLUGIN_NODE_CALL) continue;
    if (find_intrinsic(node.value)->composed) return false;
    if (std::find(std::begin(kUnspelt), std::end(kUnspelt), node.value) != std::end(kUnspelt)) return false;
    ++calls;
  }
  return calls > 1 && sizes.size() <= 1;
}

// `sorts` puts the operands of commutative calls in the order of their texts: expressions have them in the order of the
// nodes.
std::string spelling(const TypedExpression& e, int32_t number, bool sorts = false) {
  const compute_plugin_node& node = e.nodes()[static_cast<size_t>(number)];
  if (node.kind == COMPUTE_PLUGIN_NODE_INPUT) return "x" + std::to_string(node.value);
  if (node.kind == COMPUTE_PLUGIN_NODE_SCALAR) return "x" + std::to_string(e.plugin_view().input_count + node.value);
  if (node.kind == COMPUTE_PLUGIN_NODE_CONSTANT) {
    uint64_t bits;
    std::memcpy(&bits, node.bits, sizeof bits);
    return "constant<" + dtype_name(node.dtype) + ">(" + hexadecimal(bits) + ")";
  }
  std::vector<std::string> operands;
  for (const int32_t operand : e.operands(node)) operands.push_back(spelling(e, operand, sorts));
  if (node.value == COMPUTE_PLUGIN_INTRINSIC_CONVERT) return operands[0];  // from or to a half
  const IntrinsicInfo& called = *find_intrinsic(node.value);
  if (sorts && called.commutative) std::ranges::sort(operands);
  std::string text = std::string(called.name) + "(";
  for (const std::string& operand : operands) text += (text.back() == '(' ? "" : ", ") + operand;
  return text + ")";
}

// A row's spelling. exp(-y) beside exp(-0.5 * y) is its square, which is as good for the bounds of activations.
std::string row_spelling(const TypedExpression& e) {
  const std::string begin = "exp(neg(";
  std::string text = spelling(e, e.plugin_view().outputs[0]);
  for (size_t at = 0; (at = text.find(begin, at)) != std::string::npos; ++at) {
    size_t end = at + begin.size();
    for (int depth = 1; depth > 0; ++end) depth += text[end] == '(' ? 1 : text[end] == ')' ? -1 : 0;
    const std::string y = text.substr(at + begin.size(), end - 1 - at - begin.size());
    for (const char* half : {"constant<float32>(0x00000000bf000000)", "constant<float64>(0xbfe0000000000000)"}) {
      const std::string root = "exp(mul(" + y + ", " + half + "))";
      if (text.find(root) != std::string::npos) text.replace(at, end + 1 - at, "mul(" + root + ", " + root + ")");
    }
  }
  return text;
}

std::string digest_of(const TypedExpression& e) {
  const auto digest = e.digest();
  return hexadecimal(big_endian(digest.data())) + ", " + hexadecimal(big_endian(digest.data() + 8));
}

bool is_half(compute_dtype dtype) { return dtype == COMPUTE_DTYPE_FLOAT16 || dtype == COMPUTE_DTYPE_BFLOAT16; }

// Whether a node of a half is an input, or a choice between inputs: nothing that was rounded.
bool is_given(const TypedExpression& e, int32_t number) {
  const compute_plugin_node& node = e.nodes()[static_cast<size_t>(number)];
  if (node.kind == COMPUTE_PLUGIN_NODE_INPUT) return true;
  if (node.kind != COMPUTE_PLUGIN_NODE_CALL || node.value != COMPUTE_PLUGIN_INTRINSIC_WHERE) return false;
  const auto operands = e.operands(node);
  return is_given(e, operands[1]) && is_given(e, operands[2]);
}

// Whether an expression of a half is that of float32, rounded once: it computes in float32, with inputs that are
// converted, and chooses between halves at most.
bool is_rounded_once(const TypedExpression& e) {
  return std::ranges::all_of(e.nodes(), [&](const compute_plugin_node& node) {
    if (node.kind != COMPUTE_PLUGIN_NODE_CALL) return true;
    if (node.value == COMPUTE_PLUGIN_INTRINSIC_CONVERT)
      return is_half(node.dtype) || (node.dtype == COMPUTE_DTYPE_FLOAT32 && is_given(e, e.operands(node)[0]));
    return !is_half(node.dtype) || node.value == COMPUTE_PLUGIN_INTRINSIC_WHERE;
  });
}

// The line for a half of a row of float32; empty if its expression is another one.
std::string half_row(const OpSchema& op, compute_dtype half, const TypedExpression& row, const std::string& dtypes) {
  if (!in_class(half, op.input_class)) return "";
  const std::vector<OperandDesc> operands(op.inputs.size(), OperandDesc{half});
  const TypedExpression e = type_row(op, operands, row_types(op, operands));
  const int32_t result = e.plugin_view().outputs[0];
  if (!is_rounded_once(e)) return "";
  if (spelling(e, result, true) != spelling(row, row.plugin_view().outputs[0], true)) return "";
  return "COMPUTE_CPU_HALF_ROW(" + digest_of(e) + ", " + (half == COMPUTE_DTYPE_FLOAT16 ? "Float16" : "Bfloat16") +
         ", " + digest_of(row) + ", " + dtypes + ")\n";
}

// The line for a row whose inputs after the first are numbers; empty if it has one input or another expression.
std::string number_row(const OpSchema& op, compute_dtype dtype, const TypedExpression& row, const std::string& dtypes) {
  if (op.inputs.size() < 2) return "";
  std::vector<OperandDesc> operands(op.inputs.size(), OperandDesc{dtype});
  for (size_t i = 1; i < operands.size(); ++i) operands[i].is_scalar = true;
  const TypedExpression e = type_row(op, operands, row_types(op, operands));
  if (spelling(e, e.plugin_view().outputs[0], true) != spelling(row, row.plugin_view().outputs[0], true)) return "";
  return "COMPUTE_CPU_NUMBER_ROW(" + digest_of(e) + ", " + digest_of(row) + ", " + dtypes + ")\n";
}

// An expression of x and two numbers.
std::string mapped_row(const std::string& name, std::string_view text, compute_dtype dtype) {
  constexpr std::string_view kInput[] = {"x"}, kNumbers[] = {"a", "b"};
  const LeafDesc leaves[] = {{dtype}, {dtype, true, true}, {dtype, true, true}};
  const TypedExpression e = type_expression(parse(text, kInput, kNumbers), leaves);
  const std::string type = dtype_name(dtype);
  return "\n// " + name + " of " + type + "\nCOMPUTE_CPU_ROW(" + digest_of(e) + ", " + type + ", " + type + ", " +
         type + ", " + type + ",\n                " + row_spelling(e) + ")\n";
}

}  // namespace

std::string compiled_rows() {
  std::string text = "// SPDX-License-Identifier: Apache-2.0\n// Generated by opgen from " + std::string(kSources) +
                     "; change those, then build opgen-update.\n"
                     "// Compiled rows, in the form that map/rows_table.inc explains.\n";
  std::set<std::array<uint8_t, 16>> written;
  for (const OpSchema* op : op_schemas()) {
    if (!op->is_elementwise || op->result == RowResult::kSecond) continue;
    for (const compute_dtype dtype : kDtypes) {
      if (!in_class(dtype, op->input_class)) continue;
      const std::vector<OperandDesc> operands(op->inputs.size(), OperandDesc{dtype});
      const TypedExpression e = type_row(*op, operands, row_types(*op, operands));
      if (!is_compiled(e) || !written.insert(e.digest()).second) continue;
      std::string dtypes = dtype_name(e.output_dtype(0));
      for (size_t i = 0; i < 3; ++i) dtypes += i < operands.size() ? ", " + dtype_name(dtype) : ", none";
      text += "\n// " + op->name + " of " + dtype_name(dtype) + "\nCOMPUTE_CPU_ROW(" + digest_of(e) + ", " + dtypes +
              ",\n                " + row_spelling(e) + ")\n" + number_row(*op, dtype, e, dtypes);
      if (dtype != COMPUTE_DTYPE_FLOAT32) continue;
      for (const compute_dtype half : {COMPUTE_DTYPE_FLOAT16, COMPUTE_DTYPE_BFLOAT16})
        text += half_row(*op, half, e, dtypes);
    }
  }
  // As the Python package maps it.
  for (const compute_dtype dtype : {COMPUTE_DTYPE_FLOAT32, COMPUTE_DTYPE_FLOAT64})
    text += mapped_row("nan_to_num", "where(isnan(x), a, min(max(x, -b), b))", dtype);
  return text;
}

}  // namespace compute::opgen
