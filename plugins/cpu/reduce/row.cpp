// SPDX-License-Identifier: Apache-2.0
// Rows: stages of reductions, then a map, over one part of the index space after the other. The index space has two
// loop nests: kept loops and combined loops. A tile is a few points of the kept nest with all their combined points. It
// passes through all stages while it is in a cache, in blocks of elements, in one of two forms:
//
//   rows     the combined loops are innermost: a block is several short rows, or a part of a long one
//   columns  the innermost kept loop is innermost: a block is some combined points of all columns of the tile
//
// In a block of several rows, or of several points of columns, the results of earlier stages are repeated wherever they
// are operands. If there are few tiles, all pass through a stage together, each in blocks of points that threads share;
// partial results are joined in the workspace, which also holds the results.
//
// Sums are trees whose form depends only on layout and extents, as in reduce.
#include "plugins/cpu/reduce/row.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "plugins/cpu/isa/isa.hpp"
#include "plugins/cpu/kernels/copy_kernel.hpp"
#include "plugins/cpu/reduce/reduce.hpp"
#include "plugins/cpu/reduce/row_plan.hpp"
#include "plugins/cpu/threads/thread_frame.hpp"
#include "plugins/cpu/threads/threads.hpp"

namespace compute::cpu {
namespace {

constexpr size_t kMaxStages = 4;

int size_class(int64_t size) { return std::countr_zero(static_cast<uint64_t>(size)); }

// Copies of each value over its size_bytes of dst. The last ones reach up to 15 bytes beyond.
template <typename T>
void repeat_each(const char* values, int64_t count, int64_t size_bytes, char* dst) {
  constexpr uint64_t kCopies = ~uint64_t{0} / static_cast<T>(-1);  // a product with it has one in every T of a word
  for (; count > 0; --count, values += sizeof(T), dst += size_bytes) {
    T value;
    std::memcpy(&value, values, sizeof value);
    const uint64_t word = kCopies * value;
    for (int64_t i = 0; i < size_bytes; i += 16) {
      std::memcpy(dst + i, &word, sizeof word);
      std::memcpy(dst + i + 8, &word, sizeof word);
    }
  }
}
void repeat_each(int64_t element_bytes, const char* values, int64_t count, int64_t size_bytes, char* dst) {
  switch (element_bytes) {
    case 1:
      return repeat_each<uint8_t>(values, count, size_bytes, dst);
    case 2:
      return repeat_each<uint16_t>(values, count, size_bytes, dst);
    case 4:
      return repeat_each<uint32_t>(values, count, size_bytes, dst);
    case 8:
      return repeat_each<uint64_t>(values, count, size_bytes, dst);
    default:
      for (; count > 0; --count, values += 16, dst += size_bytes)
        for (int64_t i = 0; i < size_bytes; i += 16) std::memcpy(dst + i, values, 16);
  }
}

int64_t offset_at(const common::LoopNest& nest, int operand, const Place& place) {
  int64_t offset = nest.offsets[static_cast<size_t>(operand)];
  const auto& strides = nest.strides[static_cast<size_t>(operand)];
  for (size_t axis = 0; axis < static_cast<size_t>(nest.rank); ++axis) offset += place.at[axis] * strides[axis];
  return offset;
}

// How many rows of place.width points the next n points are, if they follow one another along one loop; else 0.
int64_t rows_at(const common::LoopNest& nest, const Place& place, int64_t n) {
  const auto inner = static_cast<size_t>(nest.rank - 1);
  if (inner == 0 || n % place.width != 0 || place.at[inner] != place.first) return 0;
  const int64_t rows = n / place.width;
  return place.at[inner - 1] + rows <= nest.extents[inner - 1] ? rows : 0;
}

int64_t outer_stride(const common::LoopNest& nest, int operand) {
  return nest.strides[static_cast<size_t>(operand)][static_cast<size_t>(nest.rank - 2)];
}

// Calls f(offset, done, count) for the parts of the next n points that lie along the innermost loop.
template <class F>
void for_runs(const common::LoopNest& nest, int operand, Place place, int64_t n, const F& f) {
  const auto& strides = nest.strides[static_cast<size_t>(operand)];
  const auto inner = static_cast<size_t>(nest.rank - 1);
  int64_t offset = offset_at(nest, operand, place);
  for (int64_t done = 0;;) {
    const int64_t count = std::min(place.first + place.width - place.at[inner], n - done);
    f(offset, done, count);
    done += count;
    if (done == n) return;
    offset -= (place.at[inner] - place.first) * strides[inner];
    place.at[inner] = place.first;
    for (size_t axis = inner; axis-- > 0;) {
      offset += strides[axis];
      if (++place.at[axis] < nest.extents[axis]) break;
      offset -= nest.extents[axis] * strides[axis];
      place.at[axis] = 0;
    }
  }
}

}  // namespace

// ---- Places ---------------------------------------------------------------------------------------------------------

RowPlan::Tile RowPlan::tile_at(int64_t unit) const {
  if (!columns_) return {unit, unit * tile_, std::min(tile_, kept_points_ - unit * tile_)};
  const int64_t first = unit % segments_ * tile_;
  return {unit, unit / segments_ * kept_inner_ + first, std::min(tile_, kept_inner_ - first)};
}

Place RowPlan::place_at(const Tile& tile, int64_t point) const {
  Place place;
  const auto seek = [&place](const common::LoopNest& nest, int loops, int first, int64_t at) {
    for (int loop = loops - 1; loop >= 0; --loop) {
      const int64_t extent = nest.extents[static_cast<size_t>(loop)];
      place.at[static_cast<size_t>(first + loop)] = at % extent;
      at /= extent;
    }
  };
  seek(kept_, space_kept_, 0, columns_ ? tile.kept / kept_inner_ : tile.kept);
  seek(combined_, combined_.rank, space_kept_, point);
  const auto inner = static_cast<size_t>(space_.rank - 1);
  place.first = columns_ ? tile.kept % kept_inner_ : 0;
  place.width = columns_ ? tile.width : space_.extents[inner];
  if (columns_) place.at[inner] = place.first;
  return place;
}

Place RowPlan::kept_place(const Tile& tile) const {
  Place place;
  int64_t at = tile.kept;
  for (int loop = kept_.rank - 1; loop >= 0; --loop) {
    const int64_t extent = kept_.extents[static_cast<size_t>(loop)];
    place.at[static_cast<size_t>(loop)] = at % extent;
    at /= extent;
  }
  place.first = 0;
  place.width = kept_inner_;
  return place;
}

// ---- Running --------------------------------------------------------------------------------------------------------

void RowPlan::run(const compute_plugin_run& run) const {
  char** data = static_cast<char**>(__builtin_alloca(static_cast<size_t>(tensor_count) * sizeof(char*)));
  for (int32_t i = 0; i < tensor_count; ++i) data[i] = address(run.tensors[i]);
  const Run state{data, run.scalars, address(run.workspace)};
  if (blocks_ > 1) return run_split(state);
  for_pieces(state, tiles_, grain_,
             [&](int64_t begin, int64_t end, char* frame) { run_tiles(state, begin, end, frame); });
}

template <class F>
void RowPlan::for_pieces(const Run& run, int64_t units, Grain grain, const F& f) const {
  if (!frame_in_workspace_) {
    parallel_for(units, grain, [&](int64_t begin, int64_t end) { f(begin, end, thread_frame()); });
    return;
  }
  char* const frames = run.workspace + partials_bytes_ + saved_bytes_;
  parallel_tasks(kFramePieces, 1, [&](int64_t first, int64_t last) {
    for (int64_t piece = first; piece < last; ++piece) {
      const int64_t begin = units * piece / kFramePieces, end = units * (piece + 1) / kFramePieces;
      if (begin < end) f(begin, end, frames + piece * frame_bytes_);
    }
  });
}

void RowPlan::run_tiles(const Run& run, int64_t begin, int64_t end, char* frame) const {
  begin_programs(run, frame);
  for (int64_t unit = begin; unit < end; ++unit) {
    const Tile tile = tile_at(unit);
    begin_tile(run, tile, frame);
    for (size_t stage = 0; stage < stages_.size(); ++stage) {
      char* const accumulators = frame + accumulators_offset_;
      combine(run, stage, tile, 0, points_, accumulators, frame);
      finish(stage, tile, accumulators, frame);
    }
    map(run, tile, 0, points_, frame);
    store(run, tile, frame);
  }
  if (streams_) isa().blocks->stream_end();
}

// All tiles stage by stage, in blocks.
void RowPlan::run_split(const Run& run) const {
  for (size_t stage = 0; stage <= stages_.size(); ++stage) {
    const bool maps = stage == stages_.size();
    if (maps && map_outputs_ == 0) break;
    for_pieces(run, tiles_ * blocks_, block_grain_,
               [&](int64_t begin, int64_t end, char* frame) { run_blocks(run, stage, begin, end, frame); });
    if (maps) break;
    for_pieces(run, tiles_, join_grain_,
               [&](int64_t begin, int64_t end, char* frame) { join_blocks(run, stage, begin, end, frame); });
  }
}

// Of one stage, or of the map.
void RowPlan::run_blocks(const Run& run, size_t stage, int64_t begin, int64_t end, char* frame) const {
  begin_programs(run, frame);
  int64_t loaded = -1;
  for (int64_t unit = begin; unit < end; ++unit) {
    const Tile tile = tile_at(unit / blocks_);
    if (tile.index != loaded) load_results(run, tile, stage, frame);
    loaded = tile.index;
    const int64_t first = unit % blocks_ * block_points_, last = std::min(first + block_points_, points_);
    if (stage < stages_.size()) {
      combine(run, stage, tile, first, last, run.workspace + unit * partial_bytes_, frame);
    } else {
      map(run, tile, first, last, frame);
    }
  }
  if (streams_ && stage == stages_.size()) isa().blocks->stream_end();
}

void RowPlan::join_blocks(const Run& run, size_t stage, int64_t begin, int64_t end, char* frame) const {
  const Stage& joined = stages_[stage];
  begin_programs(run, frame);
  for (int64_t unit = begin; unit < end; ++unit) {
    const Tile tile = tile_at(unit);
    load_results(run, tile, stage, frame);
    ColumnTree tree(joined.combine, frame + slots_offset_, slot_bytes_, tile.width,
                    joined.groups_per_slot == INT64_MAX ? INT64_MAX : 1);
    for (int64_t block = 0; block < blocks_; block += kColumnRows) {
      tree.add(joined.combine, run.workspace + (unit * blocks_ + block) * partial_bytes_, partial_bytes_,
               std::min<int64_t>(kColumnRows, blocks_ - block));
    }
    finish(stage, tile, tree.finish(), frame);
    std::memcpy(run.workspace + joined.saved + unit * tile_ * joined.result_bytes, frame + joined.result,
                static_cast<size_t>(tile.width * joined.result_bytes));
    if (stage + 1 == stages_.size()) store(run, tile, frame);
  }
}

void RowPlan::begin_programs(const Run& run, char* frame) const {
  for (const Program& program : programs_) {
    if (program.is_run) program.block.begin(run.scalars + program.first_scalar, frame + program.workspace);
  }
}

// The operands of a tile that is one block are the same for all stages.
void RowPlan::begin_tile(const Run& run, const Tile& tile, char* frame) const {
  if (!whole_) return;
  const Place place = place_at(tile, 0);
  for (int i = 0; i < sources_; ++i) {
    if (operands_[static_cast<size_t>(i)].is_read)
      sources(frame)[i] = pack(run, space_, i, place, points_ * tile.width, frame);
  }
}

void RowPlan::load_results(const Run& run, const Tile& tile, size_t stages, char* frame) const {
  for (size_t i = 0; i < stages; ++i) {
    const Stage& stage = stages_[i];
    std::memcpy(frame + stage.result, run.workspace + stage.saved + tile.index * tile_ * stage.result_bytes,
                static_cast<size_t>(tile.width * stage.result_bytes));
    spread(stage, tile, frame);
  }
}

// The combination of points [first, last), of all results of the tile.
void RowPlan::combine(const Run& run, size_t stage, const Tile& tile, int64_t first, int64_t last, char* out,
                      char* frame) const {
  if (columns_) return combine_columns(run, stage, tile, first, last, out, frame);
  if (!whole_) return combine_row(run, stage, tile, first, last, out, frame);
  const Source& source = stages_[stage].source;
  const char* values = produce(run, stage, place_at(tile, 0), points_ * tile.width, frame);
  source.kernel.rows(values, points_ * source.element, tile.width, points_, out);
}

void RowPlan::combine_row(const Run& run, size_t stage, const Tile& tile, int64_t first, int64_t last, char* out,
                          char* frame) const {
  const Stage& combined = stages_[stage];
  const Source& source = combined.source;
  if (combined.is_direct) {
    const char* src = data_of(run, source.operand) + offset_at(space_, source.operand, place_at(tile, first));
    return source.kernel.rows(src, 0, 1, last - first, out);
  }
  Counter counter(combined.combine, combined.accumulator_bytes);
  for (int64_t point = first; point < last; point += step_) {
    const int64_t n = std::min(step_, last - point);
    source.kernel.rows(produce(run, stage, place_at(tile, point), n, frame), 0, 1, n, counter.next());
    counter.push();
  }
  counter.finish(out);
}

void RowPlan::combine_columns(const Run& run, size_t stage, const Tile& tile, int64_t first, int64_t last, char* out,
                              char* frame) const {
  const Stage& combined = stages_[stage];
  const Source& source = combined.source;
  const int64_t width = fold_ * tile.width, row_bytes = width * source.element;
  ColumnTree tree(combined.combine, frame + slots_offset_, slot_bytes_, width, combined.groups_per_slot);
  if (combined.is_direct) {
    const int64_t stride = inner_stride(combined_, source.operand);
    for (int64_t point = first; point < last;) {
      const int64_t rows = std::min({inner_points_ - point % inner_points_, last - point, tree.row_limit()});
      const char* src = data_of(run, source.operand) + offset_at(space_, source.operand, place_at(tile, point));
      tree.add(source.kernel, src, stride, rows);
      point += rows;
    }
    std::memcpy(out, tree.finish(), static_cast<size_t>(tile.width * combined.accumulator_bytes));
    return;
  }
  // Of the last block some points may be left over that are not enough to be combined side by side.
  const char* rest = nullptr;
  int64_t rest_points = 0;
  const int64_t step = points_of_block();
  for (int64_t point = first; point < last; point += step) {
    const int64_t n = std::min(step, last - point);
    const char* values = produce(run, stage, place_at(tile, point), n * tile.width, frame);
    for (int64_t left = n / fold_; left > 0;) {
      const int64_t rows = std::min(left, tree.row_limit());
      tree.add(source.kernel, values, row_bytes, rows);
      values += rows * row_bytes;
      left -= rows;
    }
    rest = values;
    rest_points = n % fold_;
  }
  if (last - first < fold_)
    return source.kernel.columns(rest, tile.width * source.element, rest_points, tile.width, out, false);
  char* const wide = tree.finish();
  if (rest_points > 0) source.kernel.columns(rest, 0, 1, rest_points * tile.width, wide, true);
  combined.combine.columns(wide, tile.width * combined.accumulator_bytes, fold_, tile.width, out, false);
}

// From accumulators to the result of a stage.
void RowPlan::finish(size_t stage, const Tile& tile, const char* accumulators, char* frame) const {
  const Stage& finished = stages_[stage];
  void* result = frame + finished.result;
  if (finished.after_is_identity) {
    std::memcpy(result, accumulators, static_cast<size_t>(tile.width * finished.result_bytes));
  } else {
    const Program& after = programs_[2 * stage + 1];
    BlockOperand* const operands = arguments(frame);
    operands[0] = {accumulators, 1};
    for (const Use& use : after.uses) {
      operands[use.slot] = use.stage >= 0 ? BlockOperand{frame + stages_[static_cast<size_t>(use.stage)].result, 1}
                                          : pack({}, kept_, use.operand, kept_place(tile), tile.width, frame);
    }
    after.block.evaluate(operands, &result, tile.width, after_block_, frame + after.workspace);
  }
  spread(finished, tile, frame);
}

// Repeats a result wherever it is an operand in a block.
void RowPlan::spread(const Stage& stage, const Tile& tile, char* frame) const {
  if (!stage.is_spread) return;
  const char* result = frame + stage.result;
  char* const dst = frame + stage.spread;
  const int64_t size = stage.result_bytes;
  if (columns_) {
    const int64_t row = tile.width * size, total = std::min(step_, points_) * row;
    std::memcpy(dst, result, static_cast<size_t>(row));
    for (int64_t filled = row; filled < total; filled *= 2) {
      std::memcpy(dst + filled, dst, static_cast<size_t>(std::min(filled, total - filled)));
    }
  } else if (whole_) {
    repeat_each(size, result, tile.width, points_ * size, dst);
  } else {
    splat(result, size, dst);
  }
}

BlockOperand RowPlan::result_operand(const Stage& stage, const char* frame) const {
  return {frame + stage.spread, columns_ || whole_ ? 1 : 0};
}

void RowPlan::map(const Run& run, const Tile& tile, int64_t first, int64_t last, char* frame) const {
  if (map_outputs_ == 0) return;
  void** const outputs = reinterpret_cast<void**>(frame + outputs_offset_);
  const int64_t step = points_of_block();
  for (int64_t point = first; point < last; point += step) {
    const Place place = place_at(tile, point);
    const int64_t n = std::min(step, last - point) * tile.width;
    const int64_t left = place.first + place.width - place.at[static_cast<size_t>(space_.rank - 1)];
    const auto is_in_place = [&](int i) {
      const Operand& operand = operands_[static_cast<size_t>(i)];
      return !streams_ && (operand.is_linear || (n <= left && inner_stride(space_, i) == operand.size));
    };
    for (int k = 0; k < map_outputs_; ++k) {
      const int i = sources_ + k;
      outputs[k] = is_in_place(i) ? data_of(run, i) + offset_at(space_, i, place)
                                  : frame + operands_[static_cast<size_t>(i)].buffer;
    }
    evaluate(run, programs_.back(), place, n, outputs, frame);
    for (int k = 0; k < map_outputs_; ++k) {
      const int i = sources_ + k;
      if (!is_in_place(i)) unpack(run, space_, i, place, n, static_cast<const char*>(outputs[k]));
    }
  }
}

// Converts the results that are outputs.
void RowPlan::store(const Run& run, const Tile& tile, char* frame) const {
  for (const Stored& stored : stored_) {
    const char* result = frame + stages_[stored.stage].result;
    if (stored.convert != nullptr) {
      const void* const from = result;
      const int64_t one = 1;
      char* const converted = frame + operands_[static_cast<size_t>(stored.operand)].buffer;
      stored.convert(&from, &one, converted, tile.width);
      result = converted;
    }
    unpack(run, kept_, stored.operand, kept_place(tile), tile.width, result);
  }
}

// ---- Blocks ---------------------------------------------------------------------------------------------------------

// The next n values that a stage combines.
const char* RowPlan::produce(const Run& run, size_t stage, const Place& place, int64_t n, char* frame) const {
  if (const int i = stages_[stage].source.operand; i >= 0) {
    return static_cast<const char*>((whole_ ? sources(frame)[i] : pack(run, space_, i, place, n, frame)).data);
  }
  void* values = frame + values_offset_;
  evaluate(run, programs_[2 * stage], place, n, &values, frame);
  return static_cast<const char*>(values);
}

void RowPlan::evaluate(const Run& run, const Program& program, const Place& place, int64_t n, void* const* outputs,
                       char* frame) const {
  BlockOperand* const operands = arguments(frame);
  for (const Use& use : program.uses) {
    operands[use.slot] = use.stage >= 0 ? result_operand(stages_[static_cast<size_t>(use.stage)], frame)
                         : whole_       ? sources(frame)[use.operand]
                                        : pack(run, space_, use.operand, place, n, frame);
  }
  program.block.evaluate(operands, outputs, n, block_, frame + program.workspace);
}

// The next n points of an operand.
BlockOperand RowPlan::pack(const Run& run, const common::LoopNest& nest, int operand, const Place& place, int64_t n,
                           char* frame) const {
  const Operand& packed = operands_[static_cast<size_t>(operand)];
  const int64_t stride = inner_stride(nest, operand), size = packed.size;
  char* const buffer = frame + packed.buffer;
  if (packed.tensor < 0) {
    for_runs(nest, operand, place, n, [&](int64_t position, int64_t done, int64_t count) {
      char* const dst = buffer + done * size;
      if (size == 8) {
        for (int64_t i = 0; i < count; ++i) reinterpret_cast<int64_t*>(dst)[i] = position + i * stride;
      } else {
        for (int64_t i = 0; i < count; ++i) {
          reinterpret_cast<int32_t*>(dst)[i] = static_cast<int32_t>(position + i * stride);
        }
      }
    });
    return {buffer, 1};
  }
  const char* const data = data_of(run, operand);
  const bool is_run = n <= place.first + place.width - place.at[static_cast<size_t>(nest.rank - 1)];
  if (packed.is_linear || (is_run && stride == size)) return {data + offset_at(nest, operand, place), 1};
  if (!packed.is_combined && (packed.is_constant || (is_run && stride == 0))) {
    splat(data + offset_at(nest, operand, place), size, buffer);
    return {buffer, 0};
  }
  if (const int64_t rows = stride == size ? rows_at(nest, place, n) : 0; rows > 0) {
    const int64_t row_bytes = place.width * size;
    isa().copy->rows(data + offset_at(nest, operand, place), outer_stride(nest, operand), nullptr, buffer, row_bytes,
                     row_bytes, rows);
    return {buffer, 1};
  }
  const auto gather = isa().blocks->gather[size_class(size)];
  for_runs(nest, operand, place, n, [&](int64_t offset, int64_t done, int64_t count) {
    char* const dst = buffer + done * size;
    if (stride == size) {
      std::memcpy(dst, data + offset, static_cast<size_t>(count * size));
    } else {
      gather(data + offset, stride, dst, count);
    }
  });
  return {buffer, 1};
}

void RowPlan::unpack(const Run& run, const common::LoopNest& nest, int operand, const Place& place, int64_t n,
                     const char* src) const {
  const Operand& unpacked = operands_[static_cast<size_t>(operand)];
  const int64_t stride = inner_stride(nest, operand), size = unpacked.size;
  char* const data = data_of(run, operand);
  const bool streams = streams_ && operand < space_operands_;
  const auto write = [&](int64_t offset, int64_t done, int64_t count) {
    char* const dst = data + offset;
    if (stride != size && count > 1) {
      isa().blocks->scatter[size_class(size)](src + done * size, dst, stride, count);
    } else if (streams) {
      isa().blocks->stream_copy(dst, src + done * size, count * size, nullptr, 0);
    } else {
      std::memcpy(dst, src + done * size, static_cast<size_t>(count * size));
    }
  };
  if (unpacked.is_linear) return write(offset_at(nest, operand, place), 0, n);
  if (const int64_t rows = stride == size && !streams ? rows_at(nest, place, n) : 0; rows > 0) {
    const int64_t row_bytes = place.width * size;
    return isa().copy->rows(src, row_bytes, nullptr, data + offset_at(nest, operand, place),
                            outer_stride(nest, operand), row_bytes, rows);
  }
  for_runs(nest, operand, place, n, write);
}

std::optional<Refusal> refuse_row(const Op& op) {
  const auto malformed = [](std::string text) {
    return Refusal{COMPUTE_PLUGIN_REFUSE_ATTRIBUTE, -1, std::move(text), ""};
  };
  const std::vector<std::string_view> kinds = row_kinds(op);
  const auto stages = static_cast<int32_t>(kinds.size());
  if (kinds.empty() || kinds.size() > kMaxStages) {
    return malformed("row: " + std::to_string(kinds.size()) + " stages; expected 1 to " + std::to_string(kMaxStages));
  }
  if (op.expression_count() / 2 != stages) {
    return malformed("row: " + std::to_string(op.expression_count()) + " expressions for " + std::to_string(stages) +
                     " stages");
  }
  for (int32_t i = 0; i < op.expression_count(); ++i) {
    if (const int32_t id = BlockProgram::unknown_intrinsic(op.expression(i))) {
      return Refusal{COMPUTE_PLUGIN_REFUSE_INTRINSIC, id,
                     "the cpu plugin does not support intrinsic " + std::to_string(id), ""};
    }
  }
  for (int32_t i = 0; i < stages; ++i) {
    const std::string name(kinds[static_cast<size_t>(i)]);
    const std::optional<ReduceKind> kind = reduce_kind(name);
    if (!kind) return malformed("row: unknown kind \"" + name + "\"");
    const int32_t accumulator = output_dtype(op.expression(2 * i));
    if (isa().reduce->plain[static_cast<int>(*kind)][accumulator].rows == nullptr) {
      return Refusal{COMPUTE_PLUGIN_REFUSE_DTYPE, -1,
                     "row: " + name + " of " + dtype_name(accumulator) + " is not defined", ""};
    }
  }
  const auto stored = op.integers("stored");
  const bool maps = op.expression_count() % 2 != 0;
  const int32_t mapped = maps ? op.expression(2 * stages).output_count : 0;
  if (op.output_count() != mapped + static_cast<int32_t>(stored.size())) {
    return malformed("row: " + std::to_string(op.output_count()) + " outputs; the map has " + std::to_string(mapped) +
                     ", and " + std::to_string(stored.size()) + " stages are stored");
  }
  for (size_t i = 0; i < stored.size(); ++i) {
    if (stored[i] < 0 || stored[i] >= stages) return malformed("row: stored has stage " + std::to_string(stored[i]));
    const int32_t from = output_dtype(op.expression(static_cast<int32_t>(2 * stored[i] + 1)));
    const int32_t to = op.output(mapped + static_cast<int32_t>(i)).dtype;
    if (from != to && isa().blocks->converts[from][to] == nullptr) {
      return Refusal{COMPUTE_PLUGIN_REFUSE_DTYPE, -1,
                     std::string("row: ") + dtype_name(from) + " is not stored as " + dtype_name(to), ""};
    }
  }
  const compute_plugin_tensor& space = op.input(0);
  const auto loops = std::count_if(space.shape, space.shape + space.rank, [](int64_t extent) { return extent > 1; });
  if (loops > common::kMaxRank) {
    return Refusal{COMPUTE_PLUGIN_REFUSE_RANK, -1, "row: more than " + std::to_string(common::kMaxRank) + " axes", ""};
  }
  return std::nullopt;
}

std::unique_ptr<Plan> prepare_row(const Op& op) { return std::make_unique<RowPlan>(op); }

}  // namespace compute::cpu
