// SPDX-License-Identifier: Apache-2.0
// A prepared row.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "plugins/common/op/layout.hpp"
#include "plugins/cpu/base/plan.hpp"
#include "plugins/cpu/map/block_program.hpp"
#include "plugins/cpu/reduce/combination.hpp"
#include "plugins/cpu/threads/threads.hpp"

namespace compute::cpu {

// A point of a nest at which a block begins. The innermost loop is visited from `first` on, for `width` points.
struct Place {
  std::array<int64_t, common::kMaxRank> at{};
  int64_t first = 0, width = 0;
};

class RowPlan final : public Plan {
 public:
  explicit RowPlan(const Op& op);

  void run(const compute_plugin_run& run) const override;

 private:
  static constexpr int64_t kFramePieces = 16;  // frames in the workspace if they do not fit on the stack

  struct Operand {
    int tensor = -1;  // of the op, or -1: an index
    int axis = -1;    // of an index
    int64_t size = 0;
    bool is_read = false;      // by an expression
    bool is_combined = false;  // a stage combines its elements directly
    bool is_linear = false;    // without gaps over the whole index space, in the order of the blocks
    bool is_constant = false;
    int64_t buffer = 0;  // in the frame
  };
  // Where an operand of a program comes from: operand `operand` of the plan, or the result of `stage`.
  struct Use {
    int slot, operand, stage;
  };
  struct Program {
    BlockProgram block;
    int64_t first_scalar;
    bool is_run;
    std::vector<Use> uses;
    int64_t workspace;  // in the frame
  };
  struct Stage {
    Source source;
    ReduceKernel combine;
    int64_t accumulator_bytes, result_bytes;
    int64_t groups_per_slot;
    bool after_is_identity;
    bool is_direct = false;          // reads the input in place
    bool is_spread = false;          // its result is an operand at every point
    int64_t result = 0, spread = 0;  // in the frame
    int64_t saved = 0;               // in the workspace
  };
  struct Stored {
    size_t stage;
    int operand;
    BlockFunction convert;  // NULL: the dtypes are equal
  };
  struct Tile {
    int64_t index, kept, width;  // kept points from `kept` on
  };
  struct Run {
    char* const* data;
    const compute_plugin_scalar* scalars;
    char* workspace;
  };

  void make_stages(const Op& op);
  void make_operands(const Op& op);
  void find_uses(const Op& op);
  void plan_nests(const Op& op);
  void choose_form();
  void find_layouts();
  int64_t column_width() const;
  void plan_tiles();
  void plan_frame();
  void plan_workspace();

  template <class F>
  void for_pieces(const Run& run, int64_t units, Grain grain, const F& f) const;
  void run_tiles(const Run& run, int64_t begin, int64_t end, char* frame) const;
  void run_split(const Run& run) const;
  void run_blocks(const Run& run, size_t stage, int64_t begin, int64_t end, char* frame) const;
  void join_blocks(const Run& run, size_t stage, int64_t begin, int64_t end, char* frame) const;

  void begin_programs(const Run& run, char* frame) const;
  void begin_tile(const Run& run, const Tile& tile, char* frame) const;
  void load_results(const Run& run, const Tile& tile, size_t stages, char* frame) const;
  void combine(const Run& run, size_t stage, const Tile& tile, int64_t first, int64_t last, char* out,
               char* frame) const;
  void combine_row(const Run& run, size_t stage, const Tile& tile, int64_t first, int64_t last, char* out,
                   char* frame) const;
  void combine_columns(const Run& run, size_t stage, const Tile& tile, int64_t first, int64_t last, char* out,
                       char* frame) const;
  void finish(size_t stage, const Tile& tile, const char* accumulators, char* frame) const;
  void spread(const Stage& stage, const Tile& tile, char* frame) const;
  void map(const Run& run, const Tile& tile, int64_t first, int64_t last, char* frame) const;
  void store(const Run& run, const Tile& tile, char* frame) const;

  const char* produce(const Run& run, size_t stage, const Place& place, int64_t n, char* frame) const;
  void evaluate(const Run& run, const Program& program, const Place& place, int64_t n, void* const* outputs,
                char* frame) const;
  BlockOperand pack(const Run& run, const common::LoopNest& nest, int operand, const Place& place, int64_t n,
                    char* frame) const;
  void unpack(const Run& run, const common::LoopNest& nest, int operand, const Place& place, int64_t n,
              const char* src) const;
  BlockOperand result_operand(const Stage& stage, const char* frame) const;

  Tile tile_at(int64_t unit) const;
  Place place_at(const Tile& tile, int64_t point) const;  // in space_
  Place kept_place(const Tile& tile) const;               // in kept_

  static bool is_point_program(size_t program) { return program % 2 == 0; }
  char* data_of(const Run& run, int operand) const { return run.data[operands_[static_cast<size_t>(operand)].tensor]; }
  int64_t inner_stride(const common::LoopNest& nest, int operand) const {
    return nest.rank == 0 ? 0 : nest.strides[static_cast<size_t>(operand)][static_cast<size_t>(nest.rank - 1)];
  }
  int64_t points_of_block() const { return whole_ ? points_ : step_; }
  BlockOperand* sources(char* frame) const { return reinterpret_cast<BlockOperand*>(frame + sources_offset_); }
  BlockOperand* arguments(char* frame) const { return reinterpret_cast<BlockOperand*>(frame + arguments_offset_); }

  std::vector<Stage> stages_;
  std::vector<Program> programs_;  // `before` and `after` of each stage, then the map
  std::vector<Stored> stored_;
  int map_outputs_ = 0;

  // Operands: inputs, INDEX nodes of programs that run at every point, outputs of the map; then, in kept_ alone, INDEX
  // nodes of `after` and stored outputs.
  std::vector<Operand> operands_;
  int inputs_ = 0, sources_ = 0, space_operands_ = 0;

  common::LoopNest kept_, combined_;  // the former has one loop at least
  common::LoopNest space_;            // both, in the order of the blocks
  int space_kept_ = 0;                // loops of kept_ before combined_ in space_
  int64_t points_ = 1;                // combined per result
  int64_t inner_points_ = 1;          // of the innermost combined loop
  int64_t kept_points_ = 1, kept_inner_ = 1, kept_outer_ = 1;

  bool columns_ = false;
  bool whole_ = false;    // a tile is one block
  bool streams_ = false;  // outputs bypass the cache
  int64_t block_ = 0;     // elements that `before` and the map are evaluated over at a time
  int64_t after_block_ = 0;
  int64_t step_ = 0;      // combined points of a block
  int64_t fold_ = 1;      // points of columns that are combined side by side
  int64_t tile_ = 1;      // results
  int64_t segments_ = 1;  // tiles of the innermost kept loop in the form `columns`
  int64_t tiles_ = 1;
  int64_t blocks_ = 1, block_points_ = 1;  // that threads share of a tile
  double cost_ = 0;                        // nanoseconds of a point
  Grain grain_, join_grain_, block_grain_;

  int64_t accumulator_bytes_ = 0;  // of the widest
  int64_t partial_bytes_ = 0, partials_bytes_ = 0, saved_bytes_ = 0;
  int64_t slot_bytes_ = 0;
  int64_t sources_offset_ = 0, arguments_offset_ = 0, outputs_offset_ = 0, accumulators_offset_ = 0, values_offset_ = 0,
          slots_offset_ = 0;
  int64_t frame_bytes_ = 0;
  bool frame_in_workspace_ = false;
};

// The STRING attribute `kinds`.
std::vector<std::string_view> row_kinds(const Op& op);

}  // namespace compute::cpu
