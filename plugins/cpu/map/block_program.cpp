// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/map/block_program.hpp"

#include <cassert>
#include <cstring>

#include "plugins/cpu/map/costs.hpp"

namespace compute::cpu {
namespace {

constexpr int64_t kSizes[] = {
    0,
#define COMPUTE_DTYPE(id, name, NAME, size, ...) size,
#include "compute/dtypes.def"
#undef COMPUTE_DTYPE
};

void* at(void* base, int64_t offset) { return static_cast<char*>(base) + offset; }

template <int64_t Size>
void copy_elements(const void* const* x, const int64_t* steps, void* out, int64_t n) {
  if (steps[0] == 1) {
    std::memcpy(out, x[0], n * Size);
    return;
  }
  if (Size == 1) {
    std::memset(out, *static_cast<const unsigned char*>(x[0]), n);
    return;
  }
  char* to = static_cast<char*>(out);
  int64_t left = n * Size;
  for (; left >= kSplatBytes; left -= kSplatBytes, to += kSplatBytes) std::memcpy(to, x[0], kSplatBytes);
  std::memcpy(to, x[0], left);
}
BlockFunction copy_function(int64_t size) {
  switch (size) {
    case 1:
      return &copy_elements<1>;
    case 2:
      return &copy_elements<2>;
    case 4:
      return &copy_elements<4>;
    case 8:
      return &copy_elements<8>;
    default:
      return &copy_elements<16>;
  }
}

}  // namespace

int64_t dtype_size(int32_t dtype) { return kSizes[dtype]; }

void splat(const void* value, int64_t size, void* dst) {
  char* to = static_cast<char*>(dst);
  for (int64_t i = 0; i < kSplatBytes; i += size) std::memcpy(to + i, value, size);
}

int32_t BlockProgram::unknown_intrinsic(const compute_plugin_expression& expression) {
  for (int32_t i = 0; i < expression.node_count; ++i) {
    const compute_plugin_node& node = expression.nodes[i];
    if (node.kind == COMPUTE_NODE_CALL && (node.value < 1 || node.value >= kIntrinsicLimit)) return node.value;
  }
  return 0;
}

BlockProgram::BlockProgram(const compute_plugin_expression& expression, const BlockKernels& table)
    : input_count_(expression.input_count) {
  if (!use_row(expression, table)) build(expression, table);
  if (instructions_.size() != 1 || outputs_.size() != 1 || !outputs_[0].computed_in_place || needs_blocks()) return;
  const Instruction& only = instructions_[0];
  for (int k = 0; k < only.operand_count; ++k)
    if (only.operands[k].place != Place::kOperand) return;
  for (int64_t i = 0; i < table.streamed_count; ++i)
    if (table.streamed[i].run == only.run) streamed_ = table.streamed[i].streamed;
}

bool BlockProgram::use_row(const compute_plugin_expression& expression, const BlockKernels& table) {
  uint64_t digest[2] = {};
  for (int i = 0; i < 16; ++i) digest[i / 8] = digest[i / 8] << 8 | expression.digest[i];
  if (expression.output_count != 1 || (digest[0] | digest[1]) == 0) return false;
  for (int64_t r = 0; r < table.row_count; ++r) {
    const CompiledRow& row = table.rows[r];
    if (row.digest_high != digest[0] || row.digest_low != digest[1]) continue;
    Instruction instruction{row.run, input_count_, {}, {Place::kOutput, 0}};
    for (int i = 0; i < input_count_; ++i) instruction.operands[i] = {Place::kOperand, i};
    instructions_.push_back(instruction);
    const int32_t dtype = expression.nodes[expression.outputs[0]].dtype;
    outputs_.push_back({dtype, dtype_size(dtype), true, {}});
    for (int32_t i = 0; i < expression.node_count; ++i) cost_ += node_cost(expression, i);
    return true;
  }
  return false;
}

void BlockProgram::build(const compute_plugin_expression& expression, const BlockKernels& table) {
  const int32_t count = expression.node_count;
  struct Value {
    Location location;
    bool fixed = false;     // the same for all elements
    int32_t last_use = -1;  // node that reads it last; `count` for outputs that are copied at the end
    bool released = false;
  };
  std::vector<Value> values(count);
  // A bitcast is its operand under another dtype.
  std::vector<int32_t> origin(count);
  int32_t last_input_use = -1;
  for (int32_t i = 0; i < count; ++i) {
    const compute_plugin_node& node = expression.nodes[i];
    const int32_t* operands = expression.operands + node.first_operand;
    origin[i] = i;
    if (node.kind != COMPUTE_NODE_CALL) continue;
    const bool alias = node.value == COMPUTE_INTRINSIC_BITCAST ||
                       (node.value == COMPUTE_INTRINSIC_CONVERT && expression.nodes[operands[0]].dtype == node.dtype);
    if (alias) {
      origin[i] = origin[operands[0]];
      continue;
    }
    for (int32_t k = 0; k < node.operand_count; ++k) {
      Value& value = values[origin[operands[k]]];
      value.last_use = i;
      if (expression.nodes[origin[operands[k]]].kind == COMPUTE_NODE_INPUT) last_input_use = i;
    }
  }
  // Several outputs that swap inputs are copied by way of temporaries.
  std::vector<bool> copied_first(count, false);
  for (int32_t k = 0; k < expression.output_count && expression.output_count > 1; ++k) {
    const int32_t node = origin[expression.outputs[k]];
    if (expression.nodes[node].kind != COMPUTE_NODE_INPUT) continue;
    copied_first[node] = true;
    if (node > last_input_use) last_input_use = node;
  }
  // The first output of a node may be computed where it belongs, unless an input is still to be read then: the output
  // may be that input's memory. It then serves as the operand of later nodes, too.
  std::vector<int32_t> direct_output(count, -1);
  for (int32_t k = 0; k < expression.output_count; ++k) {
    const int32_t node = origin[expression.outputs[k]];
    if (expression.nodes[node].kind == COMPUTE_NODE_CALL && node >= last_input_use && direct_output[node] < 0)
      direct_output[node] = k;
    else
      values[node].last_use = count;
  }

  // Temporaries are reused once their last reader is done; equal sizes also by that reader's own result.
  struct Slot {
    int64_t offset, size;
    bool busy;
  };
  std::vector<Slot> slots;
  const auto take_slot = [&](int64_t size) {
    for (Slot& slot : slots) {
      if (slot.size == size && !slot.busy) {
        slot.busy = true;
        return slot.offset;
      }
    }
    slots.push_back({temporary_bytes_, size, true});
    temporary_bytes_ += size;
    return slots.back().offset;
  };
  const auto take_fixed = [&] {
    const int64_t offset = fixed_bytes_;
    fixed_bytes_ += kSplatBytes;
    return offset;
  };

  for (int32_t i = 0; i < count; ++i) {
    const compute_plugin_node& node = expression.nodes[i];
    Value& value = values[i];
    const int64_t size = dtype_size(node.dtype);
    switch (node.kind) {
      case COMPUTE_NODE_INPUT:
        value.location = {Place::kOperand, node.value};
        if (copied_first[i]) {
          const Location copy{Place::kTemporary, take_slot(size)};
          instructions_.push_back({copy_function(size), 1, {value.location}, copy});
          value.location = copy;
        }
        break;
      case COMPUTE_NODE_INDEX:
        value.location = {Place::kOperand, input_count_ + static_cast<int64_t>(indices_.size())};
        indices_.push_back({node.value, node.dtype});
        break;
      case COMPUTE_NODE_SCALAR:
      case COMPUTE_NODE_CONSTANT: {
        value.location = {Place::kFixed, take_fixed()};
        value.fixed = true;
        FixedValue fixed{value.location.index, size, node.kind == COMPUTE_NODE_SCALAR ? node.value : -1, {}};
        std::memcpy(fixed.bits, node.bits, sizeof fixed.bits);
        fixed_values_.push_back(fixed);
        break;
      }
      default: {
        if (origin[i] != i) break;
        const int32_t* operands = expression.operands + node.first_operand;
        const int32_t last_dtype = expression.nodes[operands[node.operand_count - 1]].dtype;
        Instruction instruction{};
        instruction.run = node.value == COMPUTE_INTRINSIC_CONVERT ? table.converts[last_dtype][node.dtype]
                                                                  : table.calls[node.value][last_dtype];
        assert(instruction.run != nullptr);
        instruction.operand_count = node.operand_count;
        bool fixed = true;
        for (int32_t k = 0; k < node.operand_count; ++k) {
          const Value& operand = values[origin[operands[k]]];
          instruction.operands[k] = operand.location;
          fixed &= operand.fixed;
        }
        cost_ += node_cost(expression, i);
        value.fixed = fixed;
        if (fixed) {
          value.location = instruction.result = {Place::kFixed, take_fixed()};
          fixed_instructions_.push_back({instruction, size});
          break;
        }
        for (int32_t k = 0; k < node.operand_count; ++k) {
          Value& operand = values[origin[operands[k]]];
          if (operand.location.place != Place::kTemporary || operand.last_use != i || operand.released) continue;
          operand.released = true;
          for (Slot& slot : slots) {
            // A result of another size must not overlap its operands: a slot serves one size alone, so it does not.
            if (slot.offset == operand.location.index) slot.busy = false;
          }
        }
        value.location = direct_output[i] >= 0 ? Location{Place::kOutput, direct_output[i]}
                                               : Location{Place::kTemporary, take_slot(size)};
        instruction.result = value.location;
        instructions_.push_back(instruction);
        break;
      }
    }
  }
  for (int32_t k = 0; k < expression.output_count; ++k) {
    const int32_t node = origin[expression.outputs[k]];
    const int32_t dtype = expression.nodes[expression.outputs[k]].dtype;
    const Location& location = values[node].location;
    const bool in_place = location.place == Place::kOutput && location.index == k;
    outputs_.push_back({dtype, dtype_size(dtype), in_place, location});
    if (!in_place) cost_ += 0.02 * static_cast<double>(dtype_size(dtype));
  }
}

void BlockProgram::begin(const compute_plugin_scalar* scalars, void* workspace) const {
  for (const FixedValue& value : fixed_values_)
    splat(value.scalar < 0 ? value.bits : scalars[value.scalar].bits, value.size, at(workspace, value.offset));
  const int64_t steps[3] = {};
  for (const FixedInstruction& fixed : fixed_instructions_) {
    const void* x[3] = {};
    for (int k = 0; k < fixed.instruction.operand_count; ++k) x[k] = at(workspace, fixed.instruction.operands[k].index);
    fixed.instruction.run(x, steps, at(workspace, fixed.instruction.result.index), kSplatBytes / fixed.size);
  }
}

void BlockProgram::evaluate(const BlockOperand* operands, void* const* outputs, int64_t n, int64_t block,
                            void* workspace) const {
  void* const temporaries = at(workspace, fixed_bytes_);
  const auto operand_at = [&](const Location& location, int64_t* step) -> const void* {
    switch (location.place) {
      case Place::kOperand:
        *step = operands[location.index].step;
        return operands[location.index].data;
      case Place::kFixed:
        *step = 0;
        return at(workspace, location.index);
      case Place::kTemporary:
        *step = 1;
        return at(temporaries, location.index * block);
      default:
        *step = 1;
        return outputs[location.index];
    }
  };
  for (const Instruction& instruction : instructions_) {
    const void* x[3];
    int64_t steps[3];
    for (int k = 0; k < instruction.operand_count; ++k) x[k] = operand_at(instruction.operands[k], &steps[k]);
    void* result = instruction.result.place == Place::kOutput ? outputs[instruction.result.index]
                                                              : at(temporaries, instruction.result.index * block);
    instruction.run(x, steps, result, n);
  }
  for (size_t k = 0; k < outputs_.size(); ++k) {
    const Output& output = outputs_[k];
    if (output.computed_in_place) continue;
    int64_t step;
    const void* source = operand_at(output.source, &step);
    if (source != outputs[k]) copy_function(output.size)(&source, &step, outputs[k], n);
  }
}

void BlockProgram::stream(const BlockOperand* operands, void* output, int64_t n) const {
  const Instruction& only = instructions_[0];
  const void* x[3];
  int64_t steps[3];
  for (int k = 0; k < only.operand_count; ++k) {
    x[k] = operands[only.operands[k].index].data;
    steps[k] = operands[only.operands[k].index].step;
  }
  streamed_(x, steps, output, n);
}

}  // namespace compute::cpu
