// SPDX-License-Identifier: Apache-2.0
// Planning of rows: the nests, the form of blocks, the cuts into tiles and blocks, and the memory of a thread.
#include "plugins/cpu/reduce/row_plan.hpp"

#include <algorithm>
#include <cstdlib>

#include "plugins/cpu/isa/isa.hpp"
#include "plugins/cpu/reduce/reduce.hpp"
#include "plugins/cpu/threads/thread_frame.hpp"

namespace compute::cpu {
namespace {

constexpr int64_t kStackBytes = kThreadFrameBytes;  // of a thread's frame
constexpr int64_t kBlock = 1024;                    // elements of a block in the form `rows`
constexpr int64_t kWholeRowBytes = 2048;            // of values of a row, from which on it is a block of its own
constexpr int64_t kColumnBlock = 2048;              // and in the form `columns`, usually 8 rows
constexpr int64_t kColumns = 256;                   // of a tile of more than a few points
constexpr int64_t kLeastColumnTile = 256;           // elements; smaller tiles are gathered as rows, many together
constexpr int64_t kFoldedElements = 64;             // that narrow rows of columns are joined to, at the least
constexpr int64_t kTileBytes = 256 << 10;           // of inputs: a part of a second-level cache
constexpr int64_t kCachedTileBytes = 1 << 20;       // that stay in some cache from stage to stage
constexpr int64_t kManyTiles = 64;                  // from this many on there is work for all threads
constexpr int64_t kManyCachedTiles = 16;            // the same, of tiles that are worth keeping in a cache
constexpr int64_t kSharedElements = 8 << 10;        // of a tile of columns that is halved to have more of them
constexpr int64_t kSplitElements = 32 << 10;        // of a block of a tile that threads share
constexpr int64_t kMostBlocks = 1024;               // of such a tile
constexpr int64_t kStreamBytes = int64_t(1) << 25;  // of all operands, from which on outputs bypass the cache
constexpr int64_t kStreamRun = 256;                 // elements without gaps that are worth it
constexpr int64_t kGrainNanoseconds = 2000;
constexpr int64_t kLine = 64;

}  // namespace

std::vector<std::string_view> row_kinds(const Op& op) {
  std::vector<std::string_view> values;
  const compute_plugin_op& description = op.description();
  const char* first = reinterpret_cast<const char*>(description.attributes);
  for (int32_t i = 0; i < description.attribute_count; ++i) {
    const auto& attribute = *reinterpret_cast<const compute_attribute*>(
        first + static_cast<size_t>(i) * description.attributes->struct_size);
    if (attribute.kind != COMPUTE_KIND_STRING ||
        std::string_view(attribute.name, static_cast<size_t>(attribute.name_size)) != "kinds")
      continue;
    const auto* strings = static_cast<const compute_string*>(attribute.values);
    for (int64_t k = 0; k < attribute.count; ++k) values.push_back(view(strings[k]));
  }
  return values;
}

RowPlan::RowPlan(const Op& op) {
  inputs_ = op.input_count();
  make_stages(op);
  make_operands(op);
  find_uses(op);
  plan_nests(op);
  choose_form();
  for (block_ = columns_ ? kColumnBlock : kBlock;; block_ /= 2) {
    plan_tiles();
    find_layouts();
    plan_frame();
    if (frame_bytes_ <= kStackBytes || block_ == kLine) break;
  }
  plan_workspace();
}

void RowPlan::make_stages(const Op& op) {
  int64_t scalars = 0;
  for (int32_t i = 0; i < op.expression_count(); ++i) {
    programs_.push_back({BlockProgram(op.expression(i), *isa().blocks), scalars, true, {}, 0});
    scalars += op.expression(i).scalar_count;
  }
  for (const std::string_view name : row_kinds(op)) {
    const auto i = static_cast<int32_t>(2 * stages_.size());
    const compute_plugin_expression &before = op.expression(i), &after = op.expression(i + 1);
    const ReduceKind kind = *reduce_kind(name);
    const int32_t accumulator = output_dtype(before);
    const bool rounds = is_float(accumulator) && (kind == ReduceKind::sum || kind == ReduceKind::prod);
    const compute_plugin_node& last = after.nodes[after.outputs[0]];
    Stage stage{};
    stage.combine = isa().reduce->plain[static_cast<int>(kind)][accumulator];
    stage.accumulator_bytes = dtype_size(accumulator);
    stage.result_bytes = dtype_size(last.dtype);
    stage.groups_per_slot = rounds ? kGroupsPerSlot : INT64_MAX;
    stage.after_is_identity = last.kind == COMPUTE_PLUGIN_NODE_INPUT && last.value == 0;
    stage.source = find_direct(before, kind, accumulator);
    if (stage.source.operand >= inputs_) stage.source.operand = -1;
    if (stage.source.operand < 0) stage.source = {-1, stage.accumulator_bytes, stage.combine};
    const auto program = static_cast<size_t>(i);
    programs_[program].is_run = stage.source.operand < 0;
    programs_[program + 1].is_run = !stage.after_is_identity;
    accumulator_bytes_ = std::max(accumulator_bytes_, stage.accumulator_bytes);
    stages_.push_back(stage);
  }
}

void RowPlan::make_operands(const Op& op) {
  const auto add_tensor = [&](int32_t tensor) {
    Operand operand;
    operand.tensor = tensor;
    operand.size = dtype_size(op.tensor(tensor).dtype);
    operands_.push_back(operand);
  };
  const auto add_indices = [&](bool at_points) {
    for (size_t i = 0; i < programs_.size(); ++i) {
      if (is_point_program(i) != at_points) continue;
      const int inputs = programs_[i].block.input_count();
      for (const IndexOperand& index : programs_[i].block.indices()) {
        Operand operand;
        operand.axis = index.axis;
        operand.size = dtype_size(index.dtype);
        operand.is_read = programs_[i].is_run;
        const int slot = inputs + static_cast<int>(programs_[i].uses.size());
        programs_[i].uses.push_back({slot, static_cast<int>(operands_.size()), -1});
        operands_.push_back(operand);
      }
    }
  };
  const auto stored = op.integers("stored");
  map_outputs_ = op.output_count() - static_cast<int>(stored.size());
  for (int32_t i = 0; i < inputs_; ++i) add_tensor(i);
  add_indices(true);
  sources_ = static_cast<int>(operands_.size());
  for (int32_t i = 0; i < map_outputs_; ++i) add_tensor(inputs_ + i);
  space_operands_ = static_cast<int>(operands_.size());
  add_indices(false);
  for (size_t i = 0; i < stored.size(); ++i) {
    const int32_t tensor = inputs_ + map_outputs_ + static_cast<int32_t>(i);
    const int32_t from = output_dtype(op.expression(static_cast<int32_t>(2 * stored[i] + 1)));
    const int32_t to = op.tensor(tensor).dtype;
    stored_.push_back({static_cast<size_t>(stored[i]), static_cast<int>(operands_.size()),
                       from == to ? nullptr : isa().blocks->converts[from][to]});
    add_tensor(tensor);
  }
}

// The inputs and results that expressions read. Of `after`, input 0 is the combined value.
void RowPlan::find_uses(const Op& op) {
  for (size_t i = 0; i < programs_.size(); ++i) {
    const compute_plugin_expression& expression = op.expression(static_cast<int32_t>(i));
    const int32_t first_result = is_point_program(i) ? inputs_ : 1;
    for (int32_t k = 0; k < expression.node_count; ++k) {
      const compute_plugin_node& node = expression.nodes[k];
      if (node.kind != COMPUTE_PLUGIN_NODE_INPUT || !programs_[i].is_run) continue;
      if (node.value >= first_result) {
        const int stage = node.value - first_result;
        programs_[i].uses.push_back({node.value, -1, stage});
        if (is_point_program(i)) stages_[static_cast<size_t>(stage)].is_spread = true;
      } else if (is_point_program(i)) {
        programs_[i].uses.push_back({node.value, node.value, -1});
        operands_[static_cast<size_t>(node.value)].is_read = true;
      }
    }
  }
  for (const Stage& stage : stages_) {
    if (stage.source.operand < 0) continue;
    Operand& operand = operands_[static_cast<size_t>(stage.source.operand)];
    operand.is_read = operand.is_combined = true;
  }
}

void RowPlan::plan_nests(const Op& op) {
  const compute_plugin_tensor& space = op.input(0);
  std::vector<bool> is_combined(static_cast<size_t>(space.rank));
  for (const int64_t axis : op.integers("axes")) is_combined[static_cast<size_t>(axis)] = true;

  std::vector<int64_t> shape[2];
  std::vector<std::vector<int64_t>> strides[2] = {
      std::vector<std::vector<int64_t>>(operands_.size()),
      std::vector<std::vector<int64_t>>(static_cast<size_t>(space_operands_))};
  for (int32_t axis = 0; axis < space.rank; ++axis) {
    const int nest = is_combined[static_cast<size_t>(axis)] ? 1 : 0;
    shape[nest].push_back(space.shape[axis]);
    for (size_t i = 0; i < strides[nest].size(); ++i) {
      const Operand& operand = operands_[i];
      strides[nest][i].push_back(operand.tensor >= 0    ? op.tensor(operand.tensor).strides[axis] * operand.size
                                 : operand.axis == axis ? 1
                                                        : 0);
    }
  }
  const auto collapse = [&](int nest) {
    std::vector<const int64_t*> pointers;
    for (const auto& operand : strides[nest]) pointers.push_back(operand.data());
    return common::collapse(shape[nest], pointers, 0);
  };
  kept_ = collapse(0);
  combined_ = collapse(1);
  space_kept_ = kept_.rank;
  if (kept_.rank == 0) {
    kept_.rank = 1;
    kept_.extents[0] = 1;
    space_kept_ = combined_.rank == 0 ? 1 : 0;
  }
  points_ = combined_.points();
  inner_points_ = combined_.rank == 0 ? 1 : combined_.extents[static_cast<size_t>(combined_.rank - 1)];
  kept_points_ = kept_.points();
  kept_inner_ = kept_.extents[static_cast<size_t>(kept_.rank - 1)];
  kept_outer_ = kept_points_ / kept_inner_;
}

// The loop along which the inputs move least is innermost, unless that leaves tiles of a few elements.
void RowPlan::choose_form() {
  int64_t along_kept = 0, along_combined = 0;
  for (int i = 0; i < inputs_; ++i) {
    along_kept += std::abs(inner_stride(kept_, i));
    along_combined += std::abs(inner_stride(combined_, i));
  }
  columns_ = kept_inner_ > 1 && (points_ == 1 || along_kept < along_combined) &&
             (kept_outer_ == 1 || kept_inner_ * points_ >= kLeastColumnTile);
  if (columns_) --space_kept_;

  space_.strides.resize(static_cast<size_t>(space_operands_));
  for (size_t i = 0; i < space_.strides.size(); ++i) {
    space_.offsets.push_back(kept_.offsets[i] + combined_.offsets[i]);
  }
  const auto append = [this](const common::LoopNest& nest, int loop) {
    const auto from = static_cast<size_t>(loop), to = static_cast<size_t>(space_.rank++);
    space_.extents[to] = nest.extents[from];
    for (size_t i = 0; i < space_.strides.size(); ++i) space_.strides[i][to] = nest.strides[i][from];
  };
  for (int loop = 0; loop < space_kept_; ++loop) append(kept_, loop);
  for (int loop = 0; loop < combined_.rank; ++loop) append(combined_, loop);
  if (columns_) append(kept_, kept_.rank - 1);
}

// How operands lie along the blocks, and whether outputs bypass the cache.
void RowPlan::find_layouts() {
  int64_t bytes = 0;
  bool streams = map_outputs_ > 0;
  for (int i = 0; i < space_operands_; ++i) {
    Operand& operand = operands_[static_cast<size_t>(i)];
    if (operand.tensor < 0) continue;
    operand.is_linear = !columns_ || segments_ == 1;
    operand.is_constant = true;
    int64_t expected = operand.size;
    for (int loop = space_.rank - 1; loop >= 0; --loop) {
      const int64_t extent = space_.extents[static_cast<size_t>(loop)];
      const int64_t stride = space_.strides[static_cast<size_t>(i)][static_cast<size_t>(loop)];
      if (extent == 1) continue;
      operand.is_linear &= stride == expected;
      operand.is_constant &= stride == 0;
      expected *= extent;
    }
    if (!operand.is_constant) bytes += operand.size * kept_points_ * points_;
    const int64_t run = columns_ ? tile_ : inner_points_;
    if (i >= sources_) streams &= operand.is_linear || (inner_stride(space_, i) == operand.size && run >= kStreamRun);
  }
  streams_ = streams && bytes >= kStreamBytes;
  for (Stage& stage : stages_) {
    const int i = stage.source.operand;
    if (i < 0) continue;
    stage.is_direct = columns_ ? fold_ == 1 && inner_stride(kept_, i) == stage.source.element
                               : !whole_ && combined_.rank == 1 && inner_stride(combined_, i) == stage.source.element;
  }
}

// The columns of a tile: as many as fit in a cache, but not so few that memory is read in small parts.
int64_t RowPlan::column_width() const {
  int64_t bytes = 1;
  for (int i = 0; i < inputs_; ++i) {
    if (inner_stride(kept_, i) != 0) bytes += operands_[static_cast<size_t>(i)].size;
  }
  const int64_t most = std::max(kColumns, block_ / 2 / points_ / kLine * kLine);
  int64_t width = std::min({kept_inner_, most, block_});
  const int64_t fit = kTileBytes / bytes / points_ / kLine * kLine;
  if (fit >= kLine) width = std::min(width, fit);
  while (width >= 2 * kLine && width * points_ >= kSharedElements &&
         kept_outer_ * divide_up(kept_inner_, width) < kManyTiles) {
    width = round_up(width / 2, kLine);
  }
  return width;
}

// Cuts the index space into tiles, and few tiles into blocks that threads share.
void RowPlan::plan_tiles() {
  fold_ = 1;
  if (columns_) {
    tile_ = column_width();
    segments_ = divide_up(kept_inner_, tile_);
    tiles_ = kept_outer_ * segments_;
    step_ = block_ / tile_;
    while (segments_ == 1 && fold_ * tile_ < kFoldedElements && 2 * fold_ <= std::min(step_, points_)) fold_ *= 2;
    const int64_t group = fold_ * kColumnRows;
    step_ -= step_ % (step_ >= group ? group : fold_);
    whole_ = points_ <= step_;
  } else {
    whole_ = points_ <= std::min(block_ / 2, kWholeRowBytes / accumulator_bytes_);
    tile_ = whole_ ? std::min(block_ / points_, kept_points_) : 1;
    tiles_ = divide_up(kept_points_, tile_);
    step_ = block_;
  }

  int64_t bytes = 0;
  for (int i = 0; i < inputs_; ++i) bytes += operands_[static_cast<size_t>(i)].size;
  const int64_t elements = points_ * tile_;
  const int64_t many = elements * bytes <= kCachedTileBytes ? kManyCachedTiles : kManyTiles;
  block_points_ = points_;
  if (!whole_ && tiles_ < many && elements >= 2 * kSplitElements) {
    block_points_ = round_up(std::max(kSplitElements / tile_, divide_up(points_, kMostBlocks)), step_);
  }
  blocks_ = divide_up(points_, block_points_);

  cost_ = 0;
  for (size_t i = 0; i < programs_.size(); i += 2) cost_ += 0.1 + (programs_[i].is_run ? programs_[i].block.cost() : 0);
  const auto grain = [](double nanoseconds) { return Grain::of(static_cast<int64_t>(nanoseconds), kGrainNanoseconds); };
  grain_ = grain(cost_ * static_cast<double>(elements) + 100);
  join_grain_ = grain(0.2 * static_cast<double>(blocks_ * tile_) + 100);
  block_grain_ = grain(cost_ * static_cast<double>(block_points_ * tile_) + 100);
}

// Lays out a thread's scratch memory.
void RowPlan::plan_frame() {
  after_block_ = round_up(tile_, kLine);
  int64_t used = 0;
  const auto take = [&used](int64_t bytes) {
    const int64_t offset = used;
    used += round_up(bytes, kLine);
    return offset;
  };
  size_t argument_count = 0;
  for (const Program& program : programs_) {
    argument_count =
        std::max(argument_count, static_cast<size_t>(program.block.input_count()) + program.block.indices().size());
  }
  sources_offset_ = take(sources_ * static_cast<int64_t>(sizeof(BlockOperand)));
  arguments_offset_ = take(static_cast<int64_t>(argument_count * sizeof(BlockOperand)));
  outputs_offset_ = take(map_outputs_ * static_cast<int64_t>(sizeof(void*)));
  accumulators_offset_ = take(tile_ * accumulator_bytes_);
  for (Stage& stage : stages_) {
    stage.result = take(tile_ * stage.result_bytes);
    // repeat_each() writes beyond the end
    stage.spread = stage.is_spread ? take(std::max<int64_t>(block_ * stage.result_bytes, kSplatBytes) + 16) : 0;
  }
  values_offset_ = take(block_ * accumulator_bytes_);

  int64_t slots = 0;
  if (columns_) {
    const int64_t blocks = divide_up(block_points_, step_) * divide_up(step_ / fold_, kColumnRows);
    const int64_t runs = 2 * divide_up(block_points_, std::min<int64_t>(kColumnRows, inner_points_)) + 2;
    slots = ColumnTree::slots_for(std::max(blocks, runs), kGroupsPerSlot);
  }
  if (blocks_ > 1) slots = std::max(slots, ColumnTree::slots_for(divide_up(blocks_, kColumnRows), 1));
  slot_bytes_ = round_up(fold_ * tile_ * accumulator_bytes_, kLine);
  slots_offset_ = take(slots * slot_bytes_);

  for (size_t i = 0; i < programs_.size(); ++i) {
    if (programs_[i].is_run)
      programs_[i].workspace = take(programs_[i].block.workspace_bytes(is_point_program(i) ? block_ : after_block_));
  }
  for (int i = 0; i < static_cast<int>(operands_.size()); ++i) {
    Operand& operand = operands_[static_cast<size_t>(i)];
    const bool has_buffer = i < sources_          ? operand.is_read && !operand.is_linear
                            : i < space_operands_ ? streams_ || !operand.is_linear
                                                  : true;
    const int64_t elements = i < space_operands_ ? block_ : tile_;
    operand.buffer = take(has_buffer ? std::max<int64_t>(elements * operand.size, kSplatBytes) : 0);
  }
  frame_bytes_ = used;
  frame_in_workspace_ = used > kStackBytes;
}

void RowPlan::plan_workspace() {
  saved_bytes_ = partials_bytes_ = 0;
  if (blocks_ > 1) {
    partial_bytes_ = round_up(tile_ * accumulator_bytes_, kLine);
    partials_bytes_ = tiles_ * blocks_ * partial_bytes_;
    for (Stage& stage : stages_) {
      stage.saved = partials_bytes_ + saved_bytes_;
      saved_bytes_ += round_up(tiles_ * tile_ * stage.result_bytes, kLine);
    }
  }
  workspace_bytes = partials_bytes_ + saved_bytes_ + (frame_in_workspace_ ? kFramePieces * frame_bytes_ : 0);
}

}  // namespace compute::cpu
