// SPDX-License-Identifier: Apache-2.0
// An expression prepared to run over blocks of elements: one compiled row if it exists, else a list of block functions.
#pragma once

#include <cstdint>
#include <vector>

#include "compute/plugin.h"
#include "plugins/common/op/op.hpp"
#include "plugins/cpu/kernels/block_kernels.hpp"

namespace compute::cpu {

using common::dtype_size;

/// Copies of the element at `value` over the kSplatBytes at `dst`.
void splat(const void* value, int64_t size, void* dst);

/// The location of an operand for a block: contiguous elements if `step` is 1, one value over kSplatBytes if `step` is
/// 0.
struct BlockOperand {
  const void* data;
  int64_t step;
};

/// An axis whose position the expression uses. The caller passes the positions as a further operand.
struct IndexOperand {
  int32_t axis;
  int32_t dtype;  // int32 or int64
};

/// Immutable once made; any number of threads may use it, each with its own workspace.
///
/// The operands of evaluate are the expression's inputs in order, then one for each entry of indices().
class BlockProgram {
 public:
  /// The id of an intrinsic that this program does not support, or 0. Must be asked before the constructor, which
  /// accepts every other expression.
  static int32_t unknown_intrinsic(const compute_plugin_expression& expression);

  BlockProgram(const compute_plugin_expression& expression, const BlockKernels& table);

  int input_count() const { return input_count_; }
  const std::vector<IndexOperand>& indices() const { return indices_; }
  int output_count() const { return static_cast<int>(outputs_.size()); }
  int32_t output_dtype(int i) const { return outputs_[i].dtype; }

  /// Estimated nanoseconds for one element.
  double cost() const { return cost_; }
  /// Whether the workspace limits `n`. A program of one function without intermediate values has no limit.
  bool needs_blocks() const { return temporary_bytes_ != 0; }
  /// The number of functions that run over each block: one for a compiled row or a single intrinsic.
  int64_t function_count() const { return static_cast<int64_t>(instructions_.size()); }
  /// Says which operands have the step 0 in every block: values that depend only on these are computed once for a
  /// block, not for each element. Enlarges the workspace.
  void expect_single_values(const std::vector<bool>& operands);
  /// Whether `stream` may be called: for one function whose own stores can bypass the cache.
  bool streams() const { return streamed_ != nullptr; }
  /// The size of memory for evaluate with blocks of up to `block` elements; it must be aligned to 64 bytes.
  int64_t workspace_bytes(int64_t block) const { return fixed_bytes_ + temporary_bytes_ * spacing(block); }

  /// Writes constants, scalars, and the values that depend only on these, into the workspace: once before any number of
  /// evaluate.
  void begin(const compute_plugin_scalar* scalars, void* workspace) const;

  /// Computes `n` elements, at most `block` if needs_blocks(). Outputs are contiguous. An output may be the memory of a
  /// contiguous operand if both have the same dtype; otherwise nothing may overlap.
  void evaluate(const BlockOperand* operands, void* const* outputs, int64_t n, int64_t block, void* workspace) const;

  /// Where the only function of a program finds an operand: in one of the expression's inputs, or in the workspace.
  struct OnlyOperand {
    int input;       // -1: in the workspace
    int64_t offset;  // there
  };
  /// NULL if evaluate is more than one call of a function, on operands and the values of `begin`, into the only output.
  BlockFunction only_function() const { return is_one_function_ ? instructions_[0].run : nullptr; }
  /// The operands of that function, at most three.
  std::vector<OnlyOperand> only_operands() const;
  /// Whether `begin` writes anything.
  bool has_fixed_values() const { return fixed_bytes_ != 0; }

  /// Computes any number of elements of the only output with stores that bypass the cache, which the table's stream_end
  /// orders. `workspace` is the same as for evaluate.
  void stream(const BlockOperand* operands, void* output, int64_t n, const void* workspace) const;

 private:
  // The elements of a temporary, so that each begins at a multiple of 64 bytes.
  static constexpr int64_t spacing(int64_t block) { return (block + 63) / 64 * 64; }

  // A value is in an operand, at a fixed place, in a temporary of `block` elements, or in an output.
  enum class Place : int32_t { kOperand, kFixed, kTemporary, kOutput };
  struct Location {
    Place place = Place::kOperand;
    int64_t index = 0;  // operand or output number, or the offset: in bytes, of temporaries in bytes per block element
  };
  struct Instruction {
    BlockFunction run;
    int operand_count;
    Location operands[3];
    Location result;   // a fixed place: of one value for the block
    int64_t size = 0;  // of an element of the result; kPlanes: four temporaries of 4 bytes that follow one another
    int32_t need = 0;  // which of needs_ says whether it runs; 0: always
  };
  static constexpr int64_t kPlanes = -1;
  // Whether a run needs instructions. That of `where` with a condition that is the same for all elements skips the
  // operand that it does not take. `begin` writes one byte for each.
  struct Need {
    int32_t first, second;  // earlier needs, of which one must hold; or, if second is -1, one and the condition
    int64_t condition;      // offset of a fixed bool
    bool wanted;            // its value
  };
  struct FixedValue {
    int64_t offset;
    int64_t size;
    int32_t scalar;  // or -1 for a constant
    uint8_t bits[16];
  };
  struct Output {
    int32_t dtype;
    int64_t size;
    bool computed_in_place;
    Location source;  // where it is copied from if not
  };

  void build(const compute_plugin_expression& expression, const BlockKernels& table);
  bool use_row(const compute_plugin_expression& expression, const BlockKernels& table);
  bool use_halves(const compute_plugin_expression& expression, const BlockKernels& table);
  void run_only(BlockFunction function, const BlockOperand* operands, void* output, int64_t n,
                const void* workspace) const;

  int input_count_ = 0;
  std::vector<IndexOperand> indices_;
  std::vector<FixedValue> fixed_values_;
  std::vector<Instruction> fixed_instructions_;
  std::vector<Instruction> instructions_;
  std::vector<Output> outputs_;
  std::vector<Need> needs_;           // empty: every instruction always runs
  int64_t needed_ = 0;                // offset of their bytes among the fixed values
  bool is_one_function_ = false;      // of operands and fixed values alone, into the only output
  BlockFunction streamed_ = nullptr;  // of that function
  int64_t fixed_bytes_ = 0;
  int64_t temporary_bytes_ = 0;  // per element of a block
  double cost_ = 0;
};

}  // namespace compute::cpu
