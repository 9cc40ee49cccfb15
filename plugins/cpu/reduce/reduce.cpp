// SPDX-License-Identifier: Apache-2.0
// Reductions. The index space has two loop nests: kept loops and combined loops. Outputs are computed in segments of
// the innermost kept loop, in one of two forms:
//
//   rows     the innermost combined loop runs along memory: each output of the segment combines rows of it
//   columns  the innermost kept loop runs along memory: all outputs of the segment are combined at once, row by row
//
// Sums are trees whose form depends only on layout and extents, so that results do not depend on threads: a sum in
// blocks of fixed size, within a block of rows or groups of rows, these by the carries of a binary counter.
#include "plugins/cpu/reduce/reduce.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <optional>
#include <vector>

#include "plugins/common/op/layout.hpp"
#include "plugins/cpu/base/walk.hpp"
#include "plugins/cpu/isa/isa.hpp"
#include "plugins/cpu/map/block_program.hpp"
#include "plugins/cpu/reduce/combination.hpp"
#include "plugins/cpu/threads/thread_frame.hpp"
#include "plugins/cpu/threads/threads.hpp"

namespace compute::cpu {
namespace {

constexpr int64_t kStackBytes = kThreadFrameBytes;  // of a thread's frame
constexpr int64_t kBlock = 1024;                    // elements that an expression is evaluated over at a time
constexpr int64_t kDirectRow = 256;                 // shorter rows are gathered in a block first
constexpr int64_t kDecisionRow = 8192;     // elements after which `all` and `any` look whether they are decided
constexpr int64_t kRowSegment = 256;       // outputs of a segment in the form `rows`
constexpr int64_t kPlaneRow = 16;          // elements of a row from which on the form `planes` is chosen
constexpr int64_t kPlaneBytes = 2048;      // of a segment's accumulators in that form
constexpr int64_t kPlaneBlocks = 64;       // at most, of such a segment
constexpr int64_t kColumnBytes = 8192;     // of a segment's accumulators in the form `columns`
constexpr int64_t kRunBytes = 2048;        // of a row that such a segment reads, where rows are longer than twice that
constexpr int64_t kPassBytes = 256 << 10;  // that it reads in a block: a part of a second-level cache
constexpr int64_t kFoldedBytes = 256;      // that narrow rows without gaps are joined to, at the least
constexpr int64_t kFoldedValues = 128;     // the same for rows of values; kColumnRows are evaluated at a time
constexpr int64_t kSlotBytes = 32 << 10;   // of the segments that a binary counter holds
constexpr int64_t kSumBlock = 64 << 10;    // points of a block
constexpr int64_t kManyUnits = 64;         // from this many on there is work for all threads without blocks
constexpr int64_t kGrainNanoseconds = 2000;
constexpr int64_t kFramePieces = 16;  // frames in the workspace if they do not fit on the stack
constexpr int64_t kLine = 64;

bool is_input(const compute_plugin_expression& expression) {
  return expression.output_count == 1 && expression.nodes[expression.outputs[0]].kind == COMPUTE_PLUGIN_NODE_INPUT;
}

// What the kernels of sums compute of values as they read them.
struct Ending {
  compute_plugin_expression values;  // `before` without its last nodes
  ReduceKernel kernel;
};

// `before` split so that a kernel computes its end: it counts computed truths, or squares computed floats.
Ending split_ending(const compute_plugin_expression& before, ReduceKind kind, const ReduceKernel& combine) {
  const ReduceKernels& kernels = *isa().reduce;
  const Ending whole{before, combine};
  // The operand of the call `node`, if no other node uses it.
  const auto operand_before = [&](int32_t node) -> const compute_plugin_node* {
    const compute_plugin_node& call = before.nodes[node];
    const int32_t first = before.operands[call.first_operand];
    return first == node - 1 && before.nodes[first].kind == COMPUTE_PLUGIN_NODE_CALL ? &before.nodes[first] : nullptr;
  };
  const auto without = [&](int32_t nodes, const ReduceKernel& kernel) {
    Ending ending{before, kernel};
    ending.values.node_count -= nodes;
    ending.values.outputs = before.operands + before.nodes[before.node_count - nodes].first_operand;
    std::memset(ending.values.digest, 0, sizeof ending.values.digest);  // which covered all nodes
    return kernel.rows == nullptr ? whole : ending;
  };
  const int32_t last = before.node_count - 1;
  const compute_plugin_node& node = before.nodes[last];
  if (kind != ReduceKind::sum || before.outputs[0] != last || node.kind != COMPUTE_PLUGIN_NODE_CALL) return whole;
  const compute_plugin_node* const x = operand_before(last);
  if (x == nullptr) return whole;
  if (node.value == COMPUTE_PLUGIN_INTRINSIC_CONVERT && x->dtype == COMPUTE_DTYPE_BOOL &&
      (node.dtype == COMPUTE_DTYPE_INT64 || node.dtype == COMPUTE_DTYPE_UINT64))
    return without(1, kernels.widening_sum[COMPUTE_DTYPE_BOOL]);
  const int32_t* const operands = before.operands + node.first_operand;
  if (node.value != COMPUTE_PLUGIN_INTRINSIC_MUL || operands[0] != operands[1]) return whole;
  if (x->value == COMPUTE_PLUGIN_INTRINSIC_CONVERT && x->dtype == COMPUTE_DTYPE_FLOAT64) {
    const compute_plugin_node* const narrow = operand_before(last - 1);
    if (narrow != nullptr && narrow->dtype == COMPUTE_DTYPE_FLOAT32)
      return without(2, kernels.widening_square_sum[COMPUTE_DTYPE_FLOAT32]);
  }
  return without(1, kernels.square_sum[x->dtype]);
}

// The condition of a sum of where(condition, 0, value): `before` as far as it, if it does not depend on `value`.
std::optional<compute_plugin_expression> find_condition(const compute_plugin_expression& before, ReduceKind kind) {
  const compute_plugin_node& last = before.nodes[before.outputs[0]];
  if (kind != ReduceKind::sum || last.kind != COMPUTE_PLUGIN_NODE_CALL || last.value != COMPUTE_PLUGIN_INTRINSIC_WHERE)
    return std::nullopt;
  const int32_t* const operands = before.operands + last.first_operand;
  const compute_plugin_node& zero = before.nodes[operands[1]];
  constexpr char kZero[sizeof zero.bits] = {};
  if (zero.kind != COMPUTE_PLUGIN_NODE_CONSTANT || std::memcmp(zero.bits, kZero, sizeof kZero) != 0)
    return std::nullopt;
  compute_plugin_expression condition = before;
  condition.node_count = operands[0] + 1;
  condition.outputs = operands;
  condition.output_count = 1;
  std::fill(std::begin(condition.digest), std::end(condition.digest), uint8_t{0});
  return condition;
}

// Whether an expression is x - y of its two inputs, which have the dtype of the result.
bool is_difference(const compute_plugin_expression& expression) {
  const int32_t last = expression.outputs[0];
  const compute_plugin_node& node = expression.nodes[last];
  if (last != 2 || node.kind != COMPUTE_PLUGIN_NODE_CALL || node.value != COMPUTE_PLUGIN_INTRINSIC_SUB) return false;
  const int32_t* const operands = expression.operands + node.first_operand;
  const auto is_input = [&](int32_t i) {
    const compute_plugin_node& x = expression.nodes[operands[i]];
    return x.kind == COMPUTE_PLUGIN_NODE_INPUT && x.dtype == node.dtype && x.value == i;
  };
  return is_input(0) && is_input(1);
}

class ReducePlan final : public Plan {
 public:
  explicit ReducePlan(const Op& op);

  void run(const compute_plugin_run& run) const override;

 private:
  struct Run {
    char* const* data;
    const compute_plugin_scalar* scalars;
    char* workspace;
    std::atomic<bool> decided{false};  // of a single output: no block that is left can change it
  };
  void plan_form(const Op& op);
  void plan_condition(const compute_plugin_expression& before);
  void plan_frame();
  void plan_units();
  void plan_fold();
  bool adjoin(const common::LoopNest& along, const common::LoopNest& across) const;
  bool suits_packed_rows() const;
  bool suits_planes() const;

  template <class F>
  void for_units(const Run& run, int64_t units, Grain grain, const F& f) const;
  void reduce_units(Run& run, int64_t begin, int64_t end, char* frame) const;
  void join_units(const Run& run, int64_t begin, int64_t end, char* frame) const;
  void enter(const Run& run, int64_t unit, char* frame) const;
  bool all_zero(const Run& run, char* frame, int64_t width) const;
  void reduce_rows(Run& run, char* frame, int64_t width, int64_t first, int64_t last, char* out) const;
  const char* reduce_planes(const Run& run, char* frame, int64_t width, int64_t first, int64_t last) const;
  const char* reduce_columns(const Run& run, char* frame, int64_t width, int64_t first, int64_t last) const;
  template <class Rows>
  void reduce_adjacent(int64_t points, char* slots, char* out, Rows next_rows) const;
  void reduce_adjacent(const char* src, int64_t points, char* slots, char* out) const;
  void produce(const Run& run, char* frame, const int64_t* offsets, int64_t n, char* dst) const;
  void finish(const Run& run, char* frame, const char* accumulators, int64_t width) const;
  BlockOperand index_operand(int operand, int64_t position, int64_t stride, int64_t n, char* frame) const;

  // The start of the segment, and the position in the combined loops.
  int64_t* kept_offsets(char* frame) const { return reinterpret_cast<int64_t*>(frame + offsets_offset_); }
  int64_t* walk_offsets(char* frame) const { return kept_offsets(frame) + sizes_.size(); }

  // Between the accumulators of a counter in the form `columns`.
  int64_t fold_slot_bytes() const { return round_up(fold_ * segment_ * accumulator_bytes_, kLine); }
  bool is_decided(const char* accumulator) const {
    return (kind_ == ReduceKind::any && *accumulator != 0) || (kind_ == ReduceKind::all && *accumulator == 0);
  }
  int64_t inner_stride(const common::LoopNest& nest, int operand) const {
    return nest.rank == 0 ? 0 : nest.strides[static_cast<size_t>(operand)][static_cast<size_t>(nest.rank - 1)];
  }

  ReduceKind kind_;
  compute_dtype accumulator_;
  int64_t accumulator_bytes_;
  ReduceKernel combine_;
  BlockProgram before_;
  BlockProgram after_;
  bool after_is_identity_ = false;
  std::optional<BlockProgram> condition_;  // where it is true for an output, all terms of its sum are 0
  int before_scalars_ = 0;
  Source source_;

  // Operands: inputs, INDEX nodes of `before`, then, in kept_ alone, INDEX nodes of `after` and outputs.
  int inputs_ = 0, sources_ = 0, outputs_ = 0;
  int after_first_ = 0, output_first_ = 0;
  std::vector<int64_t> sizes_;  // bytes of an element, by operand
  common::LoopNest kept_, combined_;
  std::vector<int64_t> base_;     // offsets of the first point, by operand of kept_
  std::vector<int64_t> strides_;  // of the sources along the loop that produce() runs along

  bool squares_difference_ = false;
  int number_ = -1;  // the operand of that difference that is the same for all columns

  bool columns_ = false;
  bool planes_ = false;     // combined rows of neighbouring outputs follow one another; then come the next rows of all
  bool is_direct_ = false;  // the innermost loop reads the input in place
  bool single_call_ = false;  // the whole reduction reads the input and writes the output in place, on one thread
  int64_t points_ = 1;        // combined per output
  int64_t inner_points_ = 1;  // of the innermost combined loop
  int64_t kept_inner_ = 1, kept_outer_ = 1;
  int64_t segment_ = 1, segments_ = 1;
  int64_t blocks_ = 1, block_points_ = 1;
  int64_t fold_ = 1;  // rows that the form `columns` treats as one
  int64_t slot_bytes_ = 0, slots_ = 0, groups_per_slot_ = kGroupsPerSlot, join_groups_per_slot_ = 1;
  int64_t values_stride_ = 0;   // bytes between rows that were produced
  int64_t rows_per_block_ = 0;  // in the form `rows`: short rows whose values are evaluated together, if more than 1
  int64_t units_ = 1, join_units_ = 0;
  Grain grain_, join_grain_;
  int64_t partials_bytes_ = 0;

  int64_t block_ = kBlock;  // elements of an evaluation
  int64_t program_offset_ = 0, after_program_offset_ = 0, condition_offset_ = 0, values_offset_ = 0, slots_offset_ = 0,
          accumulators_offset_ = 0, offsets_offset_ = 0, operands_offset_ = 0;
  std::vector<int64_t> pack_offsets_;
  int64_t frame_bytes_ = 0;
  bool frame_in_workspace_ = false;
};

// ---- Planning -------------------------------------------------------------------------------------------------------

ReducePlan::ReducePlan(const Op& op)
    : kind_(*reduce_kind(op.text("kind"))),
      accumulator_(output_dtype(op.expression(0))),
      accumulator_bytes_(dtype_size(accumulator_)),
      combine_(isa().reduce->plain[static_cast<int>(kind_)][accumulator_]),
      before_(split_ending(op.expression(0), kind_, combine_).values, *isa().blocks),
      after_(op.expression(1), *isa().blocks) {
  before_scalars_ = op.expression(0).scalar_count;
  source_ = find_direct(op.expression(0), kind_, accumulator_);
  if (source_.operand < 0) {
    const Ending ending = split_ending(op.expression(0), kind_, combine_);
    source_ = {-1, dtype_size(output_dtype(ending.values)), ending.kernel};
    squares_difference_ = ending.kernel.columns == isa().reduce->square_sum[COMPUTE_DTYPE_FLOAT64].columns &&
                          is_difference(ending.values);
  }
  after_is_identity_ = is_input(op.expression(1));

  plan_form(op);
  plan_condition(op.expression(0));
  plan_units();
  plan_frame();
}

// Fills the two nests and chooses the form.
void ReducePlan::plan_form(const Op& op) {
  inputs_ = op.input_count();
  sources_ = inputs_ + static_cast<int>(before_.indices().size());
  after_first_ = sources_;
  output_first_ = after_first_ + static_cast<int>(after_.indices().size());
  outputs_ = op.output_count();
  const int operands = output_first_ + outputs_;

  const compute_plugin_tensor& space = op.input(0);
  const int32_t rank = space.rank;
  std::vector<bool> is_combined(static_cast<size_t>(rank));
  for (const int64_t axis : op.integers("axes")) is_combined[static_cast<size_t>(axis)] = true;

  std::vector<int64_t> shape[2];
  std::vector<std::vector<int64_t>> strides[2] = {std::vector<std::vector<int64_t>>(static_cast<size_t>(operands)),
                                                  std::vector<std::vector<int64_t>>(static_cast<size_t>(sources_))};
  for (int32_t axis = 0; axis < rank; ++axis) {
    const int nest = is_combined[static_cast<size_t>(axis)] ? 1 : 0;
    shape[nest].push_back(space.shape[axis]);
    for (int i = 0; i < static_cast<int>(strides[nest].size()); ++i) {
      int64_t stride = 0;
      if (i < inputs_) {
        stride = op.input(i).strides[axis] * dtype_size(op.input(i).dtype);
      } else if (i < sources_) {
        stride = before_.indices()[static_cast<size_t>(i - inputs_)].axis == axis ? 1 : 0;
      } else if (i < output_first_) {
        stride = after_.indices()[static_cast<size_t>(i - after_first_)].axis == axis ? 1 : 0;
      } else {
        const compute_plugin_tensor& output = op.output(i - output_first_);
        stride = output.strides[axis] * dtype_size(output.dtype);
      }
      strides[nest][static_cast<size_t>(i)].push_back(stride);
    }
  }
  const auto collapse = [&](int nest) {
    std::vector<const int64_t*> pointers;
    for (const auto& operand : strides[nest]) pointers.push_back(operand.data());
    return common::collapse(shape[nest], pointers, 0);
  };
  kept_ = collapse(0);
  combined_ = collapse(1);

  for (int i = 0; i < inputs_; ++i) sizes_.push_back(dtype_size(op.input(i).dtype));
  for (const IndexOperand& index : before_.indices()) sizes_.push_back(dtype_size(index.dtype));
  for (const IndexOperand& index : after_.indices()) sizes_.push_back(dtype_size(index.dtype));
  for (int i = 0; i < outputs_; ++i) sizes_.push_back(dtype_size(op.output(i).dtype));
  base_ = kept_.offsets;
  for (int i = 0; i < sources_; ++i) base_[static_cast<size_t>(i)] += combined_.offsets[static_cast<size_t>(i)];

  points_ = combined_.points();
  inner_points_ = combined_.rank == 0 ? 1 : combined_.extents[static_cast<size_t>(combined_.rank - 1)];
  kept_inner_ = kept_.rank == 0 ? 1 : kept_.extents[static_cast<size_t>(kept_.rank - 1)];
  kept_outer_ = kept_.points() / kept_inner_;

  // The loop along which the inputs move least is innermost, unless it is too short to be worth a call.
  int64_t along_kept = 0, along_combined = 0;
  for (int i = 0; i < inputs_; ++i) {
    along_kept += std::abs(inner_stride(kept_, i));
    along_combined += std::abs(inner_stride(combined_, i));
  }
  if (kept_inner_ == 1 || suits_packed_rows()) {
    columns_ = false;
  } else if (points_ == 1 || (points_ < 16 && kept_inner_ >= 16)) {
    columns_ = true;
  } else {
    columns_ = along_kept < along_combined;
  }
  planes_ = suits_planes();
  const common::LoopNest& along = columns_ ? kept_ : combined_;
  for (int i = 0; i < sources_; ++i) strides_.push_back(inner_stride(along, i));
  is_direct_ = source_.operand >= 0 && strides_[static_cast<size_t>(source_.operand)] == source_.element &&
               (columns_ || combined_.rank <= 1 || inner_points_ >= kDirectRow);
}

// Finds a condition that is one value for all terms of an output.
void ReducePlan::plan_condition(const compute_plugin_expression& before) {
  const std::optional<compute_plugin_expression> condition = find_condition(before, kind_);
  if (!condition) return;
  for (int32_t i = 0; i < condition->node_count; ++i) {
    const compute_plugin_node& node = condition->nodes[i];
    if (node.kind == COMPUTE_PLUGIN_NODE_INDEX) return;
    for (int32_t k = 0; node.kind == COMPUTE_PLUGIN_NODE_CALL && k < node.operand_count; ++k) {
      const compute_plugin_node& operand = before.nodes[before.operands[node.first_operand + k]];
      if (operand.kind != COMPUTE_PLUGIN_NODE_INPUT) continue;
      const auto input = static_cast<size_t>(operand.value);
      for (int axis = 0; axis < combined_.rank; ++axis) {
        if (combined_.strides[input][static_cast<size_t>(axis)] != 0) return;
      }
      if (kept_inner_ > 1 && inner_stride(kept_, operand.value) != sizes_[input]) return;
    }
  }
  condition_.emplace(*condition, *isa().blocks);
}

// Consecutive short rows, of which the kernels combine a vector at a time.
bool ReducePlan::suits_packed_rows() const {
  return isa().reduce->packs_rows && source_.operand >= 0 && source_.element >= 4 &&
         source_.element == accumulator_bytes_ && !is_complex(accumulator_) && combined_.rank == 1 &&
         (points_ == 2 || points_ == 4 || points_ == 8) &&
         inner_stride(combined_, source_.operand) == source_.element &&
         inner_stride(kept_, source_.operand) == points_ * source_.element && kept_inner_ >= 16;
}

// The rows of a segment's outputs are then read in the order in which they lie.
bool ReducePlan::suits_planes() const {
  const bool decides = kind_ == ReduceKind::any || kind_ == ReduceKind::all;
  if (columns_ || decides || source_.operand < 0 || combined_.rank < 2 || inner_points_ < kPlaneRow || kept_inner_ == 1)
    return false;
  const auto& strides = combined_.strides[static_cast<size_t>(source_.operand)];
  return inner_stride(combined_, source_.operand) == source_.element &&
         std::abs(inner_stride(kept_, source_.operand)) < std::abs(strides[static_cast<size_t>(combined_.rank - 2)]);
}

// Cuts the work into units: segments of outputs, times blocks of points if there are few segments.
void ReducePlan::plan_units() {
  const bool rounds = is_float(accumulator_) && (kind_ == ReduceKind::sum || kind_ == ReduceKind::prod);
  if (!rounds) groups_per_slot_ = join_groups_per_slot_ = INT64_MAX;
  const int64_t least = kColumnRows * kGroupsPerSlot;  // points of a block are a multiple of it
  if (columns_) {
    const bool is_whole = kept_inner_ * source_.element <= 2 * kRunBytes;
    segment_ = std::min(is_whole ? kept_inner_ : kRunBytes / source_.element, kColumnBytes / accumulator_bytes_);
    for (;; segment_ = round_up(segment_ / 2, kLine)) {
      block_points_ = std::min(round_up(kPassBytes / (segment_ * source_.element), least), points_);
      blocks_ = divide_up(points_, block_points_);
      slots_ = ColumnTree::slots_for(divide_up(block_points_, std::min<int64_t>(kColumnRows, inner_points_)),
                                     groups_per_slot_);
      if (blocks_ > 1)
        slots_ = std::max(slots_, ColumnTree::slots_for(divide_up(blocks_, kColumnRows), join_groups_per_slot_));
      if (segment_ <= kLine || slots_ * segment_ * accumulator_bytes_ <= kSlotBytes) break;
    }
    plan_fold();
  } else if (planes_) {
    segment_ =
        std::min({kept_inner_, kPlaneBytes / accumulator_bytes_, std::max<int64_t>(kSumBlock / inner_points_, 1)});
    const int64_t planes = points_ / inner_points_;
    int64_t block_planes = planes;
    if (kept_outer_ * divide_up(kept_inner_, segment_) < kManyUnits)
      block_planes = std::max(divide_up(kSumBlock, segment_ * inner_points_), divide_up(planes, kPlaneBlocks));
    block_points_ = std::min(block_planes, planes) * inner_points_;
    blocks_ = divide_up(points_, block_points_);
    slots_ = std::max(ColumnTree::slots_for(divide_up(block_planes, kColumnRows), groups_per_slot_),
                      ColumnTree::slots_for(divide_up(blocks_, kColumnRows), join_groups_per_slot_));
  } else {
    segment_ = std::min(kept_inner_, std::clamp<int64_t>(kSumBlock / points_, 1, kRowSegment));
    block_points_ = points_;
    if (kept_outer_ * divide_up(kept_inner_, segment_) < kManyUnits && points_ * segment_ >= 2 * kSumBlock) {
      block_points_ = round_up(std::max(kSumBlock / segment_, least), least);
      blocks_ = divide_up(points_, block_points_);
      slots_ = ColumnTree::slots_for(divide_up(blocks_, kColumnRows), join_groups_per_slot_);
    }
  }
  segments_ = divide_up(kept_inner_, segment_);
  slot_bytes_ = round_up(segment_ * accumulator_bytes_, kLine);
  values_stride_ = round_up(segment_ * source_.element, kLine);
  units_ = kept_outer_ * segments_ * blocks_;

  const double read_cost = 0.05 * static_cast<double>(source_.element) / 4;
  const auto grain = [this](double cost, int64_t points) {
    return Grain::of(static_cast<int64_t>(cost * static_cast<double>(points * segment_)) + 20, kGrainNanoseconds);
  };
  grain_ = grain(source_.operand >= 0 ? read_cost : std::max(read_cost, before_.cost() + 0.1), block_points_);
  if (blocks_ > 1) {
    join_units_ = kept_outer_ * segments_;
    join_grain_ = grain(read_cost, blocks_);
    partials_bytes_ = join_units_ * blocks_ * slot_bytes_;
  }

  const bool writes_accumulator = after_is_identity_ && outputs_ == 1;
  single_call_ =
      writes_accumulator && is_direct_ && units_ == 1 && combined_.rank <= 1 &&
      (kept_.rank == 0 || (kept_.rank == 1 && inner_stride(kept_, output_first_) == accumulator_bytes_)) &&
      (columns_ ? slots_ * fold_slot_bytes() <= kSlotBytes : kind_ != ReduceKind::all && kind_ != ReduceKind::any);
}

// Rows without gaps between them are joined to longer ones that fill vectors, cache lines and evaluations of `before`;
// their parts are combined at the end.
void ReducePlan::plan_fold() {
  if (segment_ < kept_inner_ || combined_.rank != 1 || !adjoin(kept_, combined_)) return;
  const int64_t row_bytes = kept_inner_ * source_.element;
  int64_t fold = 1;
  if (is_direct_) {
    while (fold * row_bytes % kLine != 0 || fold * row_bytes < kFoldedBytes) fold *= 2;
  } else {
    while (fold * kept_inner_ < kFoldedValues) fold *= 2;
  }
  const int64_t limit = std::min({block_points_ / kColumnRows, kColumnBytes / (segment_ * accumulator_bytes_),
                                  kSlotBytes / (slots_ * segment_ * accumulator_bytes_)});
  while (fold > limit && fold > 1) fold /= 2;
  fold_ = fold;
}

// True iff rows of the innermost loop of `along` follow one another without gaps in that of `across`, in all inputs
// that differ between points.
bool ReducePlan::adjoin(const common::LoopNest& along, const common::LoopNest& across) const {
  if (sources_ > inputs_ || along.rank == 0) return false;
  const int64_t extent = along.extents[static_cast<size_t>(along.rank - 1)];
  for (int i = 0; i < inputs_; ++i) {
    const int64_t stride = inner_stride(along, i), row_stride = inner_stride(across, i);
    const bool is_one_value = stride == 0 && row_stride == 0;
    if (!is_one_value && (stride != sizes_[static_cast<size_t>(i)] || row_stride != extent * stride)) return false;
  }
  return true;
}

// Lays out a thread's scratch memory; blocks become shorter for expressions with many intermediate values.
void ReducePlan::plan_frame() {
  const int operands = output_first_ + outputs_;
  for (;; block_ /= 2) {
    int64_t used = 0;
    const auto take = [&used](int64_t bytes) {
      const int64_t offset = used;
      used += round_up(bytes, kLine);
      return offset;
    };
    const int64_t width = std::min(segment_, block_);
    offsets_offset_ = take(2 * operands * static_cast<int64_t>(sizeof(int64_t)));
    operands_offset_ = take((operands + 1) * static_cast<int64_t>(sizeof(BlockOperand)));
    accumulators_offset_ = take(segment_ * accumulator_bytes_);
    slots_offset_ = take(slots_ * fold_slot_bytes());
    values_offset_ = take(planes_      ? kColumnRows * slot_bytes_
                          : is_direct_ ? 0
                          : columns_   ? kColumnRows * std::max(values_stride_, fold_ * segment_ * source_.element)
                                       : block_ * source_.element);
    pack_offsets_.assign(static_cast<size_t>(operands), 0);
    if (source_.operand < 0) {
      program_offset_ = take(before_.workspace_bytes(block_));
      for (int i = 0; i < sources_; ++i) {
        const bool in_place = i < inputs_ && strides_[static_cast<size_t>(i)] == sizes_[static_cast<size_t>(i)];
        pack_offsets_[static_cast<size_t>(i)] =
            take(in_place                                ? 0
                 : strides_[static_cast<size_t>(i)] == 0 ? kSplatBytes
                                                         : block_ * sizes_[static_cast<size_t>(i)]);
      }
    }
    if (condition_) condition_offset_ = take(round_up(segment_, kLine) + condition_->workspace_bytes(segment_));
    if (!after_is_identity_ || outputs_ != 1) {
      after_program_offset_ = take(after_.workspace_bytes(width));
      for (int i = after_first_; i < operands; ++i) {
        pack_offsets_[static_cast<size_t>(i)] =
            take(std::max<int64_t>(width * sizes_[static_cast<size_t>(i)], kSplatBytes));
      }
    }
    frame_bytes_ = used;
    frame_in_workspace_ = used > kStackBytes;
    if (!frame_in_workspace_ || block_ == kLine) break;
  }
  if (!columns_ && !planes_ && !is_direct_ && combined_.rank == 1 && adjoin(combined_, kept_))
    rows_per_block_ = block_ / points_;
  // One of the operands of a squared difference is a number for all columns.
  for (int i = 0; squares_difference_ && columns_ && fold_ == 1 && i < 2; ++i) {
    if (inner_stride(kept_, i) == 0 && inner_stride(kept_, 1 - i) == sizes_[static_cast<size_t>(1 - i)]) number_ = i;
  }
  workspace_bytes = partials_bytes_ + (frame_in_workspace_ ? kFramePieces * frame_bytes_ : 0);
}

// ---- Running --------------------------------------------------------------------------------------------------------

void ReducePlan::run(const compute_plugin_run& run) const {
  char** data = static_cast<char**>(__builtin_alloca(static_cast<size_t>(tensor_count) * sizeof(char*)));
  for (int32_t i = 0; i < tensor_count; ++i) data[i] = address(run.tensors[i]);
  if (single_call_) {
    const auto input = static_cast<size_t>(source_.operand);
    const char* src = data[input] + base_[input];
    char* out = data[inputs_] + base_[static_cast<size_t>(output_first_)];
    if (!columns_) return source_.kernel.rows(src, inner_stride(kept_, source_.operand), kept_inner_, points_, out);
    static_assert(kSlotBytes <= kStackBytes);
    char* const slots = thread_frame();
    return reduce_adjacent(src, points_, slots, out);
  }
  Run state{data, run.scalars, address(run.workspace)};
  for_units(state, units_, grain_,
            [&](int64_t begin, int64_t end, char* frame) { reduce_units(state, begin, end, frame); });
  if (blocks_ == 1) return;
  for_units(state, join_units_, join_grain_,
            [&](int64_t begin, int64_t end, char* frame) { join_units(state, begin, end, frame); });
}

template <class F>
void ReducePlan::for_units(const Run& run, int64_t units, Grain grain, const F& f) const {
  if (!frame_in_workspace_) {
    parallel_for(units, grain, [&](int64_t begin, int64_t end) { f(begin, end, thread_frame()); });
    return;
  }
  parallel_tasks(kFramePieces, 1, [&](int64_t first, int64_t last) {
    for (int64_t piece = first; piece < last; ++piece) {
      const int64_t begin = units * piece / kFramePieces, end = units * (piece + 1) / kFramePieces;
      if (begin < end) f(begin, end, run.workspace + partials_bytes_ + piece * frame_bytes_);
    }
  });
}

// Puts the offsets of a segment's first output into the frame.
void ReducePlan::enter(const Run&, int64_t segment_unit, char* frame) const {
  int64_t* offsets = kept_offsets(frame);
  std::copy(base_.begin(), base_.end(), offsets);
  if (kept_.rank == 0) return;
  Walk(kept_, kept_.rank - 1, segment_unit / segments_, offsets);
  const int64_t first = segment_unit % segments_ * segment_;
  for (size_t i = 0; i < base_.size(); ++i) offsets[i] += first * inner_stride(kept_, static_cast<int>(i));
}

// Whether the condition says that the sums of a segment are 0.
bool ReducePlan::all_zero(const Run& run, char* frame, int64_t width) const {
  auto* const operands = reinterpret_cast<BlockOperand*>(frame + operands_offset_);
  for (int i = 0; i < inputs_; ++i) operands[i] = {run.data[i] + kept_offsets(frame)[i], 1};
  char* const truths = frame + condition_offset_;
  void* out = truths;
  char* const workspace = truths + round_up(segment_, kLine);
  condition_->begin(run.scalars, workspace);
  condition_->evaluate(operands, &out, width, segment_, workspace);
  return std::memchr(truths, 0, static_cast<size_t>(width)) == nullptr;
}

void ReducePlan::reduce_units(Run& run, int64_t begin, int64_t end, char* frame) const {
  if (source_.operand < 0) before_.begin(run.scalars, frame + program_offset_);
  if (blocks_ == 1 && after_program_offset_ != 0)
    after_.begin(run.scalars + before_scalars_, frame + after_program_offset_);
  for (int64_t unit = begin; unit < end; ++unit) {
    // The segments of a block of columns are consecutive units: the hardware prefetcher fetched the beginning of the
    // next one, which is still in a cache. A segment that meets one number after another stays in a cache itself.
    int64_t block = unit % blocks_, segment_unit = unit / blocks_;
    if (number_ >= 0) {
      const int64_t part = unit / kept_outer_;
      block = part / segments_;
      segment_unit = unit % kept_outer_ * segments_ + part % segments_;
    } else if (columns_) {
      block = unit / segments_ % blocks_;
      segment_unit = unit / (segments_ * blocks_) * segments_ + unit % segments_;
    }
    enter(run, segment_unit, frame);
    const int64_t width = std::min(segment_, kept_inner_ - segment_unit % segments_ * segment_);
    const int64_t first = block * block_points_, last = std::min(first + block_points_, points_);
    char* out =
        blocks_ == 1 ? frame + accumulators_offset_ : run.workspace + (segment_unit * blocks_ + block) * slot_bytes_;
    const char* result = out;
    if (condition_ && all_zero(run, frame, width)) {
      std::memset(out, 0, static_cast<size_t>(width * accumulator_bytes_));
    } else if (columns_ || planes_) {
      result =
          columns_ ? reduce_columns(run, frame, width, first, last) : reduce_planes(run, frame, width, first, last);
      if (blocks_ > 1) std::memcpy(out, result, static_cast<size_t>(width * accumulator_bytes_));
    } else {
      reduce_rows(run, frame, width, first, last, out);
    }
    if (blocks_ == 1) finish(run, frame, result, width);
  }
}

void ReducePlan::join_units(const Run& run, int64_t begin, int64_t end, char* frame) const {
  if (after_program_offset_ != 0) after_.begin(run.scalars + before_scalars_, frame + after_program_offset_);
  for (int64_t unit = begin; unit < end; ++unit) {
    enter(run, unit, frame);
    const int64_t width = std::min(segment_, kept_inner_ - unit % segments_ * segment_);
    ColumnTree tree(combine_, frame + slots_offset_, slot_bytes_, width, join_groups_per_slot_);
    for (int64_t block = 0; block < blocks_; block += kColumnRows) {
      tree.add(combine_, run.workspace + (unit * blocks_ + block) * slot_bytes_, slot_bytes_,
               std::min<int64_t>(kColumnRows, blocks_ - block));
    }
    finish(run, frame, tree.finish(), width);
  }
}

void ReducePlan::reduce_rows(Run& run, char* frame, int64_t width, int64_t first, int64_t last, char* out) const {
  const bool decides = kind_ == ReduceKind::any || kind_ == ReduceKind::all;
  const bool shares_decision = decides && kept_.rank == 0;
  const int64_t limit = decides ? kDecisionRow : INT64_MAX;
  if (is_direct_ && combined_.rank <= 1 && last - first <= limit && !shares_decision) {
    const int i = source_.operand;
    const int64_t offset = kept_offsets(frame)[i] + first * inner_stride(combined_, i);
    return source_.kernel.rows(run.data[i] + offset, inner_stride(kept_, i), width, last - first, out);
  }
  int64_t* offsets = walk_offsets(frame);
  char* values = frame + values_offset_;
  if (rows_per_block_ > 1 && last - first == points_) {
    std::copy_n(kept_offsets(frame), sources_, offsets);
    for (int64_t o = 0; o < width; o += rows_per_block_, out += rows_per_block_ * accumulator_bytes_) {
      const int64_t rows = std::min(rows_per_block_, width - o);
      produce(run, frame, offsets, rows * points_, values);
      source_.kernel.rows(values, points_ * source_.element, rows, points_, out);
      for (int i = 0; i < sources_; ++i) offsets[i] += rows * inner_stride(kept_, i);
    }
    return;
  }
  for (int64_t o = 0; o < width; ++o, out += accumulator_bytes_) {
    if (shares_decision && run.decided.load(std::memory_order_relaxed)) {
      *out = kind_ == ReduceKind::any ? 1 : 0;
      continue;
    }
    for (int i = 0; i < sources_; ++i) {
      offsets[i] =
          kept_offsets(frame)[i] + o * inner_stride(kept_, i) + first % inner_points_ * inner_stride(combined_, i);
    }
    Walk walk(combined_, std::max(combined_.rank - 1, 0), first / inner_points_, offsets);
    Counter counter(combine_, accumulator_bytes_);
    int64_t at = first % inner_points_, filled = 0;
    for (int64_t point = first; point < last;) {
      int64_t n = std::min(inner_points_ - at, last - point);
      bool decided = false;
      if (is_direct_) {
        n = std::min(n, limit);
        const char* src = run.data[source_.operand] + offsets[source_.operand];
        if (n == last - first) {
          source_.kernel.rows(src, 0, 1, n, out);
          break;
        }
        source_.kernel.rows(src, 0, 1, n, counter.next());
        decided = decides && is_decided(static_cast<const char*>(counter.next()));
        counter.push();
      } else {
        n = std::min(n, block_ - filled);
        produce(run, frame, offsets, n, values + filled * source_.element);
        filled += n;
        if (filled == block_ || point + n == last) {
          source_.kernel.rows(values, 0, 1, filled, counter.next());
          decided = decides && is_decided(static_cast<const char*>(counter.next()));
          counter.push();
          filled = 0;
        }
      }
      point += n;
      if (decided) {
        if (shares_decision) run.decided.store(true, std::memory_order_relaxed);
        point = last;
      }
      if (point == last) {
        counter.finish(out);
        break;
      }
      at += n;
      for (int i = 0; i < sources_; ++i) offsets[i] += n * strides_[static_cast<size_t>(i)];
      if (at == inner_points_) {
        for (int i = 0; i < sources_; ++i) offsets[i] -= at * strides_[static_cast<size_t>(i)];
        at = 0;
        walk.next();
      }
    }
  }
}

const char* ReducePlan::reduce_planes(const Run& run, char* frame, int64_t width, int64_t first, int64_t last) const {
  const int operand = source_.operand;
  int64_t* offsets = walk_offsets(frame);
  char* values = frame + values_offset_;
  for (int i = 0; i < sources_; ++i) offsets[i] = kept_offsets(frame)[i];
  Walk walk(combined_, combined_.rank - 1, first / inner_points_, offsets);
  ColumnTree tree(combine_, frame + slots_offset_, slot_bytes_, width, groups_per_slot_);
  int64_t rows = 0;
  for (int64_t point = first; point < last;) {
    source_.kernel.rows(run.data[operand] + offsets[operand], inner_stride(kept_, operand), width, inner_points_,
                        values + rows * slot_bytes_);
    point += inner_points_;
    if (++rows == kColumnRows || point == last) {
      tree.add(combine_, values, slot_bytes_, rows);
      rows = 0;
    }
    if (point < last) walk.next();
  }
  return tree.finish();
}

const char* ReducePlan::reduce_columns(const Run& run, char* frame, int64_t width, int64_t first, int64_t last) const {
  int64_t* offsets = walk_offsets(frame);
  char* values = frame + values_offset_;
  for (int i = 0; i < sources_; ++i) {
    offsets[i] = kept_offsets(frame)[i] + first % inner_points_ * inner_stride(combined_, i);
  }
  if (fold_ > 1) {
    char* out = frame + accumulators_offset_;
    if (is_direct_) {
      reduce_adjacent(run.data[source_.operand] + offsets[source_.operand], last - first, frame + slots_offset_, out);
    } else {
      reduce_adjacent(last - first, frame + slots_offset_, out, [&](int64_t points) {
        produce(run, frame, offsets, points * segment_, values);
        for (int i = 0; i < sources_; ++i) offsets[i] += points * inner_stride(combined_, i);
        return values;
      });
    }
    return out;
  }
  Walk walk(combined_, std::max(combined_.rank - 1, 0), first / inner_points_, offsets);
  ColumnTree tree(combine_, frame + slots_offset_, slot_bytes_, width, groups_per_slot_);
  int64_t at = first % inner_points_;
  for (int64_t point = first; point < last;) {
    const int64_t rows =
        std::min({inner_points_ - at, last - point, is_direct_ || number_ >= 0 ? tree.row_limit() : kColumnRows});
    if (number_ >= 0) {
      const int numbers = number_, others = 1 - number_;
      tree.add(rows, [&](char* dst, bool accumulate) {
        isa().reduce->square_differences(run.data[numbers] + offsets[numbers], inner_stride(combined_, numbers),
                                         run.data[others] + offsets[others], inner_stride(combined_, others), rows,
                                         width, reinterpret_cast<double*>(dst), accumulate);
      });
      for (int i = 0; i < sources_; ++i) offsets[i] += rows * inner_stride(combined_, i);
    } else if (is_direct_) {
      tree.add(source_.kernel, run.data[source_.operand] + offsets[source_.operand],
               inner_stride(combined_, source_.operand), rows);
      for (int i = 0; i < sources_; ++i) offsets[i] += rows * inner_stride(combined_, i);
    } else {
      for (int64_t row = 0; row < rows; ++row) {
        produce(run, frame, offsets, width, values + row * values_stride_);
        for (int i = 0; i < sources_; ++i) offsets[i] += inner_stride(combined_, i);
      }
      tree.add(source_.kernel, values, values_stride_, rows);
    }
    point += rows;
    at += rows;
    if (at == inner_points_ && point < last) {
      for (int i = 0; i < sources_; ++i) offsets[i] -= at * inner_stride(combined_, i);
      at = 0;
      walk.next();
    }
  }
  return tree.finish();
}

// The same for rows of one loop, fold_ at a time; next_rows returns where the next points lie. Those that are left over
// are added where the first ones are.
template <class Rows>
void ReducePlan::reduce_adjacent(int64_t points, char* slots, char* out, Rows next_rows) const {
  const int64_t row_bytes = is_direct_ ? inner_stride(combined_, source_.operand) : segment_ * source_.element;
  const int64_t limit = is_direct_ ? INT64_MAX : kColumnRows, rest = points % fold_;
  ColumnTree tree(combine_, slots, fold_slot_bytes(), fold_ * segment_, groups_per_slot_);
  for (int64_t left = points / fold_; left > 0;) {
    const int64_t rows = std::min({left, tree.row_limit(), limit});
    tree.add(source_.kernel, next_rows(rows * fold_), fold_ * row_bytes, rows);
    left -= rows;
  }
  char* wide = tree.finish();
  if (rest > 0) source_.kernel.columns(next_rows(rest), 0, 1, rest * segment_, wide, true);
  combine_.columns(wide, segment_ * accumulator_bytes_, fold_, segment_, out, false);
}

// For rows that are read in place.
void ReducePlan::reduce_adjacent(const char* src, int64_t points, char* slots, char* out) const {
  reduce_adjacent(points, slots, out, [this, src](int64_t count) mutable {
    const char* rows = src;
    src += count * inner_stride(combined_, source_.operand);
    return rows;
  });
}

// Positions along an axis, as an operand of a program.
BlockOperand ReducePlan::index_operand(int operand, int64_t position, int64_t stride, int64_t n, char* frame) const {
  char* dst = frame + pack_offsets_[static_cast<size_t>(operand)];
  const int64_t size = sizes_[static_cast<size_t>(operand)];
  const int64_t count = stride == 0 ? kSplatBytes / size : n;
  if (size == 8) {
    auto* positions = reinterpret_cast<int64_t*>(dst);
    for (int64_t j = 0; j < count; ++j) positions[j] = position + j * stride;
  } else {
    auto* positions = reinterpret_cast<int32_t*>(dst);
    for (int64_t j = 0; j < count; ++j) positions[j] = static_cast<int32_t>(position + j * stride);
  }
  return {dst, stride == 0 ? 0 : 1};
}

// The next n elements along the innermost loop: of the input, or of `before`.
void ReducePlan::produce(const Run& run, char* frame, const int64_t* offsets, int64_t n, char* dst) const {
  const auto gather = [](int64_t size, const char* src, int64_t stride, char* to, int64_t count) {
    if (stride == size) {
      std::memcpy(to, src, static_cast<size_t>(count * size));
    } else {
      isa().blocks->gather[std::countr_zero(static_cast<uint64_t>(size))](src, stride, to, count);
    }
  };
  if (source_.operand >= 0) {
    const int i = source_.operand;
    return gather(source_.element, run.data[i] + offsets[i], strides_[static_cast<size_t>(i)], dst, n);
  }
  auto* operands = reinterpret_cast<BlockOperand*>(frame + operands_offset_);
  for (int64_t done = 0; done < n; done += block_) {
    const int64_t count = std::min(block_, n - done);
    for (int i = 0; i < sources_; ++i) {
      const int64_t stride = strides_[static_cast<size_t>(i)], size = sizes_[static_cast<size_t>(i)];
      const int64_t offset = offsets[i] + done * stride;
      if (i >= inputs_) {
        operands[i] = index_operand(i, offset, stride, count, frame);
        continue;
      }
      const char* src = run.data[i] + offset;
      if (stride == size) {
        operands[i] = {src, 1};
        continue;
      }
      char* packed = frame + pack_offsets_[static_cast<size_t>(i)];
      if (stride == 0) {
        splat(src, size, packed);
      } else {
        gather(size, src, stride, packed, count);
      }
      operands[i] = {packed, stride == 0 ? 0 : 1};
    }
    void* out = dst + done * source_.element;
    before_.evaluate(operands, &out, count, block_, frame + program_offset_);
  }
}

// From accumulators to outputs.
void ReducePlan::finish(const Run& run, char* frame, const char* accumulators, int64_t width) const {
  const int64_t* offsets = kept_offsets(frame);
  const auto scatter = [this](int operand, const char* src, char* dst, int64_t n) {
    const int64_t size = sizes_[static_cast<size_t>(operand)], stride = inner_stride(kept_, operand);
    if (stride == size || n == 1) {
      std::memcpy(dst, src, static_cast<size_t>(n * size));
    } else {
      isa().blocks->scatter[std::countr_zero(static_cast<uint64_t>(size))](src, dst, stride, n);
    }
  };
  if (after_program_offset_ == 0) {
    return scatter(output_first_, accumulators, run.data[inputs_] + offsets[output_first_], width);
  }
  auto* operands = reinterpret_cast<BlockOperand*>(frame + operands_offset_);
  void** results = reinterpret_cast<void**>(operands + 1 + (output_first_ - after_first_));
  const int64_t block = std::min(segment_, block_);
  for (int64_t done = 0; done < width; done += block) {
    const int64_t n = std::min(block, width - done);
    operands[0] = {accumulators + done * accumulator_bytes_, 1};
    for (int i = after_first_; i < output_first_; ++i) {
      const int64_t stride = inner_stride(kept_, i);
      operands[1 + i - after_first_] = index_operand(i, offsets[i] + done * stride, stride, n, frame);
    }
    const auto place = [&](int i) {
      const int operand = output_first_ + i;
      return run.data[inputs_ + i] + offsets[operand] + done * inner_stride(kept_, operand);
    };
    const auto adjoins = [&](int i) {
      const int operand = output_first_ + i;
      return inner_stride(kept_, operand) == sizes_[static_cast<size_t>(operand)];
    };
    for (int i = 0; i < outputs_; ++i)
      results[i] = adjoins(i) ? place(i) : frame + pack_offsets_[static_cast<size_t>(output_first_ + i)];
    after_.evaluate(operands, results, n, block, frame + after_program_offset_);
    for (int i = 0; i < outputs_; ++i)
      if (!adjoins(i)) scatter(output_first_ + i, static_cast<const char*>(results[i]), place(i), n);
  }
}

}  // namespace

std::optional<ReduceKind> reduce_kind(std::string_view name) {
  constexpr std::string_view names[kReduceKinds] = {"sum", "prod", "min", "max", "all", "any"};
  for (int i = 0; i < kReduceKinds; ++i) {
    if (names[i] == name) return static_cast<ReduceKind>(i);
  }
  return std::nullopt;
}

std::optional<Refusal> refuse_reduce(const Op& op) {
  const std::optional<ReduceKind> kind = reduce_kind(op.text("kind"));
  if (!kind) {
    return Refusal{COMPUTE_PLUGIN_REFUSE_ATTRIBUTE, -1, "reduce: unknown kind \"" + std::string(op.text("kind")) + "\"",
                   ""};
  }
  for (int32_t i = 0; i < 2; ++i) {
    if (const int32_t id = BlockProgram::unknown_intrinsic(op.expression(i))) {
      return Refusal{COMPUTE_PLUGIN_REFUSE_INTRINSIC, id,
                     "the cpu plugin does not support intrinsic " + std::to_string(id), ""};
    }
  }
  const compute_dtype accumulator = output_dtype(op.expression(0));
  if (isa().reduce->plain[static_cast<int>(*kind)][accumulator].rows == nullptr) {
    return Refusal{COMPUTE_PLUGIN_REFUSE_DTYPE, -1,
                   "reduce: " + std::string(op.text("kind")) + " of " + dtype_name(accumulator) + " is not defined",
                   ""};
  }
  return std::nullopt;
}

std::unique_ptr<Plan> prepare_reduce(const Op& op) { return std::make_unique<ReducePlan>(op); }

}  // namespace compute::cpu
