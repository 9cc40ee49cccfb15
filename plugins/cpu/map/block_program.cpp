// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/map/block_program.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <optional>
#include <type_traits>

#include "plugins/cpu/map/costs.hpp"
#include "plugins/cpu/map/philox_nodes.hpp"

namespace compute::cpu {
namespace {

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

// What is known of an expression's nodes before their values have places.
class NodeUses {
 public:
  struct Use {
    int32_t origin = -1;         // a bitcast is its operand under another dtype
    bool fixed = false;          // the same for all elements
    int32_t last_use = -1;       // node that reads it last; node_count for outputs that are copied at the end
    bool copied_first = false;   // an input whose memory outputs may overwrite
    int32_t direct_output = -1;  // the output that it is computed in
    int32_t need = -1;           // index into needs(); -1: nothing uses it
  };

  explicit NodeUses(const compute_plugin_expression& expression)
      : expression_(expression), uses_(expression.node_count) {
    for (int32_t i = 0; i < expression.node_count; ++i) find_operands(i);
    find_copied_inputs();
    find_outputs();
    find_needs();
  }

  // Whether a node is needed: always (0), or if one of two earlier needs holds, or if one does (`first`) and a `where`
  // takes the operand (1 or 2) that leads to the node.
  struct Need {
    int32_t first, second;
    int32_t where, operand;
    bool operator==(const Need&) const = default;
  };
  static constexpr size_t kMostNeeds = kSplatBytes;  // a byte for each

  const Use& operator[](int32_t node) const { return uses_[node]; }
  const std::vector<Need>& needs() const { return needs_; }
  int32_t origin(int32_t node) const { return uses_[node].origin; }

 private:
  bool is_alias(const compute_plugin_node& node) const {
    if (node.value == COMPUTE_PLUGIN_INTRINSIC_BITCAST) return true;
    return node.value == COMPUTE_PLUGIN_INTRINSIC_CONVERT &&
           expression_.nodes[expression_.operands[node.first_operand]].dtype == node.dtype;
  }

  void find_operands(int32_t i) {
    const compute_plugin_node& node = expression_.nodes[i];
    const int32_t* operands = expression_.operands + node.first_operand;
    uses_[i].origin = i;
    uses_[i].fixed = node.kind == COMPUTE_PLUGIN_NODE_SCALAR || node.kind == COMPUTE_PLUGIN_NODE_CONSTANT;
    if (node.kind != COMPUTE_PLUGIN_NODE_CALL) return;
    if (is_alias(node)) {
      uses_[i].origin = origin(operands[0]);
      return;
    }
    uses_[i].fixed = true;
    for (int32_t k = 0; k < node.operand_count; ++k) {
      Use& operand = uses_[origin(operands[k])];
      operand.last_use = i;
      uses_[i].fixed &= operand.fixed;
      if (expression_.nodes[operand.origin].kind == COMPUTE_PLUGIN_NODE_INPUT) last_input_use_ = i;
    }
  }

  // Several outputs that swap inputs are copied by way of temporaries.
  void find_copied_inputs() {
    for (int32_t k = 0; k < expression_.output_count && expression_.output_count > 1; ++k) {
      const int32_t node = origin(expression_.outputs[k]);
      if (expression_.nodes[node].kind != COMPUTE_PLUGIN_NODE_INPUT) continue;
      uses_[node].copied_first = true;
      if (node > last_input_use_) last_input_use_ = node;
    }
  }

  // The first output of a node may be computed where it belongs, unless an input is still to be read then: the output
  // may be that input's memory. It then serves as the operand of later nodes, too.
  void find_outputs() {
    for (int32_t k = 0; k < expression_.output_count; ++k) {
      const int32_t node = origin(expression_.outputs[k]);
      Use& use = uses_[node];
      if (expression_.nodes[node].kind == COMPUTE_PLUGIN_NODE_CALL && node >= last_input_use_ && use.direct_output < 0)
        use.direct_output = k;
      else
        use.last_use = expression_.node_count;
    }
  }

  int32_t need_of(const Need& need, int32_t otherwise) {
    const auto known = std::find(needs_.begin(), needs_.end(), need);
    if (known != needs_.end()) return static_cast<int32_t>(known - needs_.begin());
    if (needs_.size() == kMostNeeds) return otherwise;
    needs_.push_back(need);
    return static_cast<int32_t>(needs_.size()) - 1;
  }

  void add_need(int32_t node, int32_t need) {
    int32_t& known = uses_[origin(node)].need;
    if (known < 0 || need == 0)
      known = need;
    else if (known != 0 && known != need)
      known = need_of({known, need, -1, 0}, 0);
  }

  bool is_computed(int32_t node) const {  // in each block
    return expression_.nodes[node].kind == COMPUTE_PLUGIN_NODE_CALL && !uses_[node].fixed;
  }

  void find_needs() {
    needs_.push_back({0, 0, -1, 0});
    for (int32_t k = 0; k < expression_.output_count; ++k) add_need(expression_.outputs[k], 0);
    for (int32_t i = expression_.node_count - 1; i >= 0; --i) {
      const compute_plugin_node& node = expression_.nodes[i];
      if (!is_computed(i) || origin(i) != i || uses_[i].need < 0) continue;
      const int32_t* operands = expression_.operands + node.first_operand;
      const bool chooses = node.value == COMPUTE_PLUGIN_INTRINSIC_WHERE && uses_[origin(operands[0])].fixed;
      for (int32_t k = 0; k < node.operand_count; ++k) {
        if (!is_computed(origin(operands[k]))) continue;
        const int32_t need = uses_[i].need;
        add_need(operands[k], chooses && k > 0 ? need_of({need, -1, i, k}, need) : need);
      }
    }
  }

  const compute_plugin_expression& expression_;
  std::vector<Use> uses_;
  std::vector<Need> needs_;
  int32_t last_input_use_ = -1;
};

// Temporaries are reused once their last reader is done; equal sizes also by that reader's own result.
class TemporarySlots {
 public:
  // The offset of a slot, in bytes per element of a block.
  int64_t take(int64_t size) {
    for (Slot& slot : slots_) {
      if (slot.size == size && !slot.busy) {
        slot.busy = true;
        return slot.offset;
      }
    }
    slots_.push_back({bytes_, size, true});
    bytes_ += size;
    return slots_.back().offset;
  }

  void release(int64_t offset) {
    for (Slot& slot : slots_) {
      // A result of another size must not overlap its operands: a slot serves one size alone, so it does not.
      if (slot.offset == offset) slot.busy = false;
    }
  }

  int64_t bytes() const { return bytes_; }

 private:
  struct Slot {
    int64_t offset, size;
    bool busy;
  };
  std::vector<Slot> slots_;
  int64_t bytes_ = 0;
};

BlockFunction call_function(const compute_plugin_expression& expression, const compute_plugin_node& node,
                            const BlockKernels& table) {
  const int32_t last = expression.operands[node.first_operand + node.operand_count - 1];
  const int32_t last_dtype = expression.nodes[last].dtype;
  const BlockFunction run = node.value == COMPUTE_PLUGIN_INTRINSIC_CONVERT ? table.converts[last_dtype][node.dtype]
                                                                           : table.calls[node.value][last_dtype];
  assert(run != nullptr);
  return run;
}

// The bits of a half with the same value as a normal float32, if there is one.
std::optional<uint16_t> half_of(uint32_t bits, int32_t dtype) {
  if (dtype == COMPUTE_DTYPE_BFLOAT16) return (bits & 0xffff) == 0 ? std::optional<uint16_t>(bits >> 16) : std::nullopt;
  const uint32_t exponent = bits >> 23 & 0xff, sign = bits >> 31 << 15;
  if (exponent < 127 - 14 || exponent > 127 + 15 || (bits & 0x1fff) != 0) return std::nullopt;
  return static_cast<uint16_t>(sign | (exponent - 112) << 10 | (bits & 0x7fffff) >> 13);
}

}  // namespace

void splat(const void* value, int64_t size, void* dst) {
  // A copy of known size is one instruction; a row of a broadcast operand needs this once per row.
  const auto fill = [&]<int64_t kSize>(std::integral_constant<int64_t, kSize>) {
    char one[kSize];
    std::memcpy(one, value, kSize);
    for (int64_t i = 0; i < kSplatBytes; i += kSize) std::memcpy(static_cast<char*>(dst) + i, one, kSize);
  };
  switch (size) {
    case 1:
      return fill(std::integral_constant<int64_t, 1>{});
    case 2:
      return fill(std::integral_constant<int64_t, 2>{});
    case 4:
      return fill(std::integral_constant<int64_t, 4>{});
    case 8:
      return fill(std::integral_constant<int64_t, 8>{});
    default:
      return fill(std::integral_constant<int64_t, 16>{});
  }
}

int32_t BlockProgram::unknown_intrinsic(const compute_plugin_expression& expression) {
  for (int32_t i = 0; i < expression.node_count; ++i) {
    const compute_plugin_node& node = expression.nodes[i];
    if (node.kind == COMPUTE_PLUGIN_NODE_CALL && (node.value < 1 || node.value >= kIntrinsicLimit)) return node.value;
  }
  return 0;
}

BlockProgram::BlockProgram(const compute_plugin_expression& expression, const BlockKernels& table)
    : input_count_(expression.input_count) {
  if (!use_row(expression, table) && !use_halves(expression, table)) build(expression, table);
  if (instructions_.size() != 1 || outputs_.size() != 1 || !outputs_[0].computed_in_place || needs_blocks()) return;
  const Instruction& only = instructions_[0];
  for (int k = 0; k < only.operand_count; ++k)
    if (only.operands[k].place != Place::kOperand && only.operands[k].place != Place::kFixed) return;
  is_one_function_ = true;
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
    for (int32_t i = 0; i < expression.node_count; ++i) {  // its numbers follow the inputs
      const compute_plugin_node& node = expression.nodes[i];
      if (node.kind != COMPUTE_PLUGIN_NODE_SCALAR) continue;
      instruction.operands[input_count_ + node.value] = {Place::kFixed, fixed_bytes_};
      ++instruction.operand_count;
      fixed_values_.push_back({fixed_bytes_, dtype_size(node.dtype), node.value, {}});
      fixed_bytes_ += kSplatBytes;
    }
    instructions_.push_back(instruction);
    const int32_t dtype = expression.nodes[expression.outputs[0]].dtype;
    outputs_.push_back({dtype, dtype_size(dtype), true, {}});
    for (int32_t i = 0; i < expression.node_count; ++i) cost_ += node_cost(expression, i);
    return true;
  }
  return false;
}

// One function of inputs that are converted from a half, or constants, and back to it.
bool BlockProgram::use_halves(const compute_plugin_expression& expression, const BlockKernels& table) {
  const auto converted_from = [&](int32_t node) {  // the operand of a conversion; else -1
    const compute_plugin_node& n = expression.nodes[node];
    return n.kind == COMPUTE_PLUGIN_NODE_CALL && n.value == COMPUTE_PLUGIN_INTRINSIC_CONVERT
               ? expression.operands[n.first_operand]
               : -1;
  };
  if (expression.output_count != 1) return false;
  const int32_t result = expression.outputs[0], dtype = expression.nodes[result].dtype, called = converted_from(result);
  if ((dtype != COMPUTE_DTYPE_FLOAT16 && dtype != COMPUTE_DTYPE_BFLOAT16) || called < 0) return false;
  const compute_plugin_node& call = expression.nodes[called];
  if (call.kind != COMPUTE_PLUGIN_NODE_CALL || call.operand_count > 2 || call.dtype != COMPUTE_DTYPE_FLOAT32)
    return false;
  Instruction instruction{table.calls[call.value][dtype], call.operand_count, {}, {Place::kOutput, 0}};
  if (instruction.run == nullptr) return false;
  std::optional<FixedValue> constant;
  for (int k = 0; k < call.operand_count; ++k) {
    const int32_t operand = expression.operands[call.first_operand + k], input = converted_from(operand);
    const compute_plugin_node& node = expression.nodes[operand];
    if (node.kind == COMPUTE_PLUGIN_NODE_CONSTANT && node.dtype == COMPUTE_DTYPE_FLOAT32 && !constant) {
      uint32_t bits;
      std::memcpy(&bits, node.bits, sizeof bits);
      const std::optional<uint16_t> half = half_of(bits, dtype);
      if (!half) return false;
      FixedValue value{fixed_bytes_, sizeof *half, -1, {}};
      std::memcpy(value.bits, &*half, sizeof *half);
      instruction.operands[k] = {Place::kFixed, value.offset};
      constant = value;
      continue;
    }
    if (input < 0 || expression.nodes[operand].dtype != COMPUTE_DTYPE_FLOAT32) return false;
    if (expression.nodes[input].kind != COMPUTE_PLUGIN_NODE_INPUT || expression.nodes[input].dtype != dtype)
      return false;
    instruction.operands[k] = {Place::kOperand, expression.nodes[input].value};
  }
  if (constant) {
    fixed_values_.push_back(*constant);
    fixed_bytes_ += kSplatBytes;
  }
  instructions_.push_back(instruction);
  outputs_.push_back({dtype, dtype_size(dtype), true, {}});
  cost_ = node_cost(expression, called) + node_cost(expression, result);
  return true;
}

void BlockProgram::build(const compute_plugin_expression& expression, const BlockKernels& table) {
  const NodeUses uses(expression);
  // The words keep their temporary to the end: it is one slot, which may have several readers.
  std::optional<PhiloxNodes> philox = find_philox(expression);
  if (philox && (!uses[philox->key[0]].fixed || !uses[philox->key[1]].fixed)) philox.reset();
  const auto is_replaced = [&](int32_t i) { return philox && philox->replaced[i]; };
  TemporarySlots temporaries;
  std::vector<Location> locations(expression.node_count);
  const auto take_fixed = [&] {
    const int64_t offset = fixed_bytes_;
    fixed_bytes_ += kSplatBytes;
    return offset;
  };
  const auto add_call = [&](int32_t i) {
    const compute_plugin_node& node = expression.nodes[i];
    const int32_t* operands = expression.operands + node.first_operand;
    const int64_t size = dtype_size(node.dtype);
    Instruction instruction{call_function(expression, node, table), node.operand_count, {}, {}, size};
    for (int32_t k = 0; k < node.operand_count; ++k) instruction.operands[k] = locations[uses.origin(operands[k])];
    cost_ += node_cost(expression, i);
    if (uses[i].fixed) {
      locations[i] = instruction.result = {Place::kFixed, take_fixed()};
      fixed_instructions_.push_back(instruction);
      return;
    }
    for (int32_t k = 0; k < node.operand_count; ++k) {
      const Location& operand = instruction.operands[k];
      const int32_t origin = uses.origin(operands[k]);
      if (operand.place == Place::kTemporary && uses[origin].last_use == i && !is_replaced(origin))
        temporaries.release(operand.index);
    }
    locations[i] = instruction.result = uses[i].direct_output >= 0
                                            ? Location{Place::kOutput, uses[i].direct_output}
                                            : Location{Place::kTemporary, temporaries.take(size)};
    instruction.need = std::max(uses[i].need, 0);
    instructions_.push_back(instruction);
  };

  std::optional<int64_t> words;  // where they are
  const auto add_philox = [&](int32_t i) {
    const int32_t operands[] = {philox->counter, philox->key[0], philox->key[1]};
    if (!words && i > *std::max_element(std::begin(operands), std::end(operands))) {
      words = temporaries.take(16);
      Instruction instruction{table.philox, 3, {}, {Place::kTemporary, *words}, kPlanes};
      for (int k = 0; k < 3; ++k) instruction.operands[k] = locations[uses.origin(operands[k])];
      instructions_.push_back(instruction);
      cost_ += 5;
    }
    const auto word = std::find(philox->words.begin(), philox->words.end(), i) - philox->words.begin();
    if (word < static_cast<std::ptrdiff_t>(philox->words.size())) locations[i] = {Place::kTemporary, *words + 4 * word};
  };

  for (int32_t i = 0; i < expression.node_count; ++i) {
    const compute_plugin_node& node = expression.nodes[i];
    const int64_t size = dtype_size(node.dtype);
    switch (node.kind) {
      case COMPUTE_PLUGIN_NODE_INPUT:
        locations[i] = {Place::kOperand, node.value};
        if (uses[i].copied_first) {
          const Location copy{Place::kTemporary, temporaries.take(size)};
          instructions_.push_back({copy_function(size), 1, {locations[i]}, copy, size});
          locations[i] = copy;
        }
        break;
      case COMPUTE_PLUGIN_NODE_INDEX:
        locations[i] = {Place::kOperand, input_count_ + static_cast<int64_t>(indices_.size())};
        indices_.push_back({node.value, node.dtype});
        break;
      case COMPUTE_PLUGIN_NODE_SCALAR:
      case COMPUTE_PLUGIN_NODE_CONSTANT: {
        locations[i] = {Place::kFixed, take_fixed()};
        FixedValue fixed{locations[i].index, size, node.kind == COMPUTE_PLUGIN_NODE_SCALAR ? node.value : -1, {}};
        std::memcpy(fixed.bits, node.bits, sizeof fixed.bits);
        fixed_values_.push_back(fixed);
        break;
      }
      default:
        if (is_replaced(i))
          add_philox(i);
        else if (uses.origin(i) == i)
          add_call(i);
    }
  }
  temporary_bytes_ = temporaries.bytes();
  for (size_t i = 1; i < uses.needs().size(); ++i) {
    const auto& [first, second, where, operand] = uses.needs()[i];
    const int32_t condition = second < 0 ? expression.operands[expression.nodes[where].first_operand] : 0;
    needs_.push_back({first, second, second < 0 ? locations[uses.origin(condition)].index : 0, operand == 1});
  }
  if (!needs_.empty()) needed_ = take_fixed();
  for (int32_t k = 0; k < expression.output_count; ++k) {
    const int32_t dtype = expression.nodes[expression.outputs[k]].dtype;
    const Location& location = locations[uses.origin(expression.outputs[k])];
    const bool in_place = location.place == Place::kOutput && location.index == k;
    outputs_.push_back({dtype, dtype_size(dtype), in_place, location});
    if (!in_place) cost_ += 0.02 * static_cast<double>(dtype_size(dtype));
  }
}

void BlockProgram::expect_single_values(const std::vector<bool>& operands) {
  std::vector<std::pair<int64_t, Location>> moved;  // temporaries, and where their values are instead
  const auto find = [&](Location& x) {
    const auto same = [&](const auto& one) { return x.place == Place::kTemporary && one.first == x.index; };
    if (const auto found = std::find_if(moved.begin(), moved.end(), same); found != moved.end()) x = found->second;
    return x.place == Place::kFixed || (x.place == Place::kOperand && operands[x.index]);
  };
  for (Instruction& instruction : instructions_) {
    bool single = true;
    for (int k = 0; k < instruction.operand_count; ++k) single &= find(instruction.operands[k]);
    if (instruction.result.place != Place::kTemporary) continue;
    std::erase_if(moved, [&](const auto& one) { return one.first == instruction.result.index; });
    if (!single || instruction.size == kPlanes) continue;
    moved.push_back({instruction.result.index, {Place::kFixed, fixed_bytes_}});
    instruction.result = moved.back().second;
    fixed_bytes_ += kSplatBytes;
  }
  for (Output& output : outputs_) find(output.source);
}

void BlockProgram::begin(const compute_plugin_scalar* scalars, void* workspace) const {
  for (const FixedValue& value : fixed_values_)
    splat(value.scalar < 0 ? value.bits : scalars[value.scalar].bits, value.size, at(workspace, value.offset));
  const int64_t steps[3] = {};
  for (const Instruction& fixed : fixed_instructions_) {
    const void* x[3] = {};
    for (int k = 0; k < fixed.operand_count; ++k) x[k] = at(workspace, fixed.operands[k].index);
    fixed.run(x, steps, at(workspace, fixed.result.index), kSplatBytes / fixed.size);
  }
  bool* const needed = static_cast<bool*>(at(workspace, needed_));
  for (size_t i = 0; i < needs_.size(); ++i) {
    const Need& need = needs_[i];
    const auto holds = [&](int32_t k) { return k == 0 || needed[k]; };
    const auto condition = [&] { return *static_cast<const unsigned char*>(at(workspace, need.condition)) != 0; };
    needed[i + 1] =
        need.second < 0 ? holds(need.first) && condition() == need.wanted : holds(need.first) || holds(need.second);
  }
}

void BlockProgram::evaluate(const BlockOperand* operands, void* const* outputs, int64_t n, int64_t block,
                            void* workspace) const {
  if (is_one_function_) return run_only(instructions_[0].run, operands, outputs[0], n, workspace);
  void* const temporaries = at(workspace, fixed_bytes_);
  const int64_t elements = spacing(block);
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
        return at(temporaries, location.index * elements);
      default:
        *step = 1;
        return outputs[location.index];
    }
  };
  const bool* const needed = static_cast<const bool*>(at(workspace, needed_));
  for (const Instruction& instruction : instructions_) {
    if (instruction.need != 0 && !needed[instruction.need]) continue;
    const void* x[3];
    int64_t steps[3];
    for (int k = 0; k < instruction.operand_count; ++k) x[k] = operand_at(instruction.operands[k], &steps[k]);
    if (instruction.size == kPlanes) steps[2] = elements;
    const auto [place, index] = instruction.result;
    if (place == Place::kFixed)
      instruction.run(x, steps, at(workspace, index), kSplatBytes / instruction.size);
    else
      instruction.run(x, steps, place == Place::kOutput ? outputs[index] : at(temporaries, index * elements), n);
  }
  for (size_t k = 0; k < outputs_.size(); ++k) {
    const Output& output = outputs_[k];
    if (output.computed_in_place) continue;
    int64_t step;
    const void* source = operand_at(output.source, &step);
    if (source != outputs[k]) copy_function(output.size)(&source, &step, outputs[k], n);
  }
}

std::vector<BlockProgram::OnlyOperand> BlockProgram::only_operands() const {
  std::vector<OnlyOperand> all;
  const Instruction& only = instructions_[0];
  for (int k = 0; k < only.operand_count; ++k) {
    const Location& location = only.operands[k];
    const bool is_fixed = location.place == Place::kFixed;
    all.push_back({is_fixed ? -1 : static_cast<int>(location.index), is_fixed ? location.index : 0});
  }
  return all;
}

void BlockProgram::run_only(BlockFunction function, const BlockOperand* operands, void* output, int64_t n,
                            const void* workspace) const {
  const Instruction& only = instructions_[0];
  const void* x[3] = {};
  int64_t steps[3] = {};
  for (int k = 0; k < only.operand_count; ++k) {
    const Location& location = only.operands[k];
    if (location.place == Place::kFixed) {
      x[k] = static_cast<const char*>(workspace) + location.index;
    } else {
      x[k] = operands[location.index].data;
      steps[k] = operands[location.index].step;
    }
  }
  function(x, steps, output, n);
}

void BlockProgram::stream(const BlockOperand* operands, void* output, int64_t n, const void* workspace) const {
  run_only(streamed_, operands, output, n, workspace);
}

}  // namespace compute::cpu
