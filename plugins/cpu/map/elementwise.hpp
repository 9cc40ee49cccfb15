// SPDX-License-Identifier: Apache-2.0
// The primitive `map`: an expression over tensors of any layout.
#pragma once

#include <cstdint>
#include <vector>

#include "compute/plugin.h"
#include "plugins/common/op/layout.hpp"
#include "plugins/cpu/isa/isa.hpp"
#include "plugins/cpu/kernels/block_kernels.hpp"
#include "plugins/cpu/map/block_program.hpp"
#include "plugins/cpu/threads/parallel_for.hpp"

namespace compute::cpu {

/// An immutable plan of one map. Runs allocate nothing: a thread's memory is on its stack, unless the expression is too
/// large for that.
class MapPlan {
 public:
  /// `op` contains the inputs, the outputs and one expression, all of whose intrinsics BlockProgram::unknown_intrinsic
  /// knows. `threads`: that a run may use.
  MapPlan(const compute_plugin_op& op, const Isa& isa, int32_t threads = 1);

  /// For compute_plugin_plan_info. Not 0 only for the largest expressions, whose pieces then use it in turn.
  int64_t workspace_bytes() const { return workspace_bytes_; }

  /// `data` contains the addresses of inputs, then outputs, each of the element with all indices 0.
  void run(void* const* data, const compute_plugin_scalar* scalars, void* workspace, ParallelFor parallel_for) const;

  /// Whether a run is one or two calls of a function for one block, which run_at_once makes with less around them.
  bool is_at_once() const { return at_once_.function != nullptr; }

  /// The same as `run`, where address(i) is data[i].
  template <class Address>
  void run_at_once(const Address& address, const compute_plugin_scalar* scalars) const {
    alignas(kSplatBytes) char values[kAtOnceBytes];
    if (program_.has_fixed_values()) program_.begin(scalars, values);
    const void* x[3];
    for (int k = 0; k < at_once_.count; ++k) {
      const auto& [input, offset] = at_once_.operands[k];
      x[k] = (input < 0 ? values : static_cast<const char*>(address(input))) + offset;
    }
    char* const result = static_cast<char*>(address(inputs_)) + at_once_.result_offset;
    if (at_once_.aligns)
      call_aligned(x, result);
    else
      at_once_.function(x, at_once_.steps, result, points_);
  }

 private:
  struct Operand {
    int64_t size = 0;
    int32_t index_dtype = 0;  // of an index operand, else 0
    bool linear = false;      // contiguous over the whole nest
    bool constant = false;    // a single element; an index is always packed
    bool tiled = false;       // packed in tiles, because it runs along the second loop
    bool kept = false;        // packed by whole rows, which are all the same: the next block finds them in place
    int64_t buffer = 0;       // offset of its packed block in the frame
    int64_t splat = 0;        // offset of its splat in the frame
  };
  // The call of a run that is_at_once().
  struct AtOnce {
    BlockFunction function = nullptr;
    int count = 0;
    BlockProgram::OnlyOperand operands[3];
    int64_t steps[3];
    int64_t result_offset;
    bool aligns;        // as evaluate_block does
    int widest_source;  // the operand that it aligns; -1: the result
  };
  struct Run;
  struct Position;
  struct Piece;

  void plan_loops();
  void plan_frame();
  void plan_at_once();
  static void body(void* user, int64_t begin, int64_t end);
  bool is_in_place(const Run& run) const;
  bool is_interleaved(const Run& run) const;
  Piece enter(int64_t begin, int64_t end, void* frame, Position* position) const;
  void run_blocks(const Run& run, int64_t begin, int64_t end, void* frame) const;
  void run_rows(const Run& run, int64_t begin, int64_t end, void* frame) const;
  void call_aligned(const void** x, char* result) const;
  void evaluate_block(BlockOperand* sources, void** results, int64_t n, void* frame) const;
  void stream_block(const Run& run, const Position& position, BlockOperand* sources, void* const* results, int64_t n,
                    void* frame) const;
  void run_tiles(const Run& run, int64_t begin, int64_t end, void* frame) const;
  void run_piece(const Run& run, int64_t begin, int64_t end, void* frame) const;
  BlockOperand pack(const Run& run, int operand, const Position& position, int64_t n, void* frame) const;
  void gather(int operand, const void* src, int64_t stride, void* dst, int64_t n) const;

  static constexpr int64_t kAtOnceBytes = 4 * kSplatBytes;  // of fixed values

  BlockProgram program_;
  const BlockKernels* table_;
  const CopyKernels* copy_;
  int32_t threads_;
  int inputs_ = 0;   // inputs of the expression; index operands follow, then outputs
  int sources_ = 0;  // inputs and index operands
  std::vector<Operand> operands_;
  int widest_ = 0;         // operand with the largest elements: an output, if there is one of that size
  common::LoopNest nest_;  // strides in bytes; of index operands in positions
  int64_t points_ = 1;
  bool tiles_ = false;
  int64_t block_ = 0;         // elements
  int64_t block_rows_ = 0;    // whole rows of a block, where it is packed from short rows; else 0
  int64_t stream_piece_ = 0;  // elements of a block that are written together if streams_
  int64_t tile_rows_ = 0;
  bool joins_rows_ = false;   // rows of a tile follow one another in all operands
  int64_t units_ = 0;         // of parallel work: blocks or tiles
  int64_t grain_ = 0;         // in units
  bool buffers_ = false;      // memory in the frame limits blocks
  bool direct_rows_ = false;  // blocks are rows or parts of rows, without packing
  bool parallel_ = false;
  bool streams_ = false;           // operands are so large that stores of outputs bypass the cache
  bool interleaves_ = false;       // outputs may be the elements of one array by turns
  bool streams_directly_ = false;  // the computing function itself does so
  // The frame of a thread contains: position, sources, results, the program's workspace, then each operand's splat and
  // buffer.
  int64_t sources_offset_ = 0;
  int64_t results_offset_ = 0;
  int64_t program_offset_ = 0;
  int64_t frame_bytes_ = 0;
  int64_t workspace_bytes_ = 0;
  AtOnce at_once_;
};

}  // namespace compute::cpu
