// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/map/elementwise.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <span>

#include "plugins/cpu/kernels/copy_kernel.hpp"
#include "plugins/cpu/threads/thread_frame.hpp"

namespace compute::cpu {
namespace {

constexpr int64_t kCacheLine = 64;
constexpr int64_t kStackBytes = kThreadFrameBytes;
constexpr int64_t kBlock = 1024;           // least elements of a block with intermediate values or packed operands
constexpr int64_t kLongBlock = 8192;       // of one without
constexpr int64_t kBlockBytes = 12 << 10;  // of its operands and values: less than a first-level cache
constexpr int64_t kShortRow = 256;         // longer rows are separate blocks
constexpr int64_t kShortSingle = 128;      // the same if an operand is one value in each row, which would be packed
constexpr int64_t kAlignedPoints = 512;    // from here on operands are brought to their cache lines
constexpr int64_t kTileColumns = 256;
constexpr int64_t kTileBytes = 128;  // of a tile's column, which an operand reads in one go
constexpr int64_t kWorkspacePieces = 16;
constexpr double kParallelNanoseconds = 4000;
constexpr double kPieceNanoseconds = 2000;
constexpr int64_t kPieceElements = 8192;
// Bytes of all operands from which on non-temporal stores write results: more on many threads, whose caches hold more.
constexpr int64_t kStreamBytes = 32 << 20, kMostStreamBytes = 48 << 20, kStreamBytesOfThread = 3 << 20;
constexpr int64_t kStreamPieceBytes = 1024;  // of the widest operand
constexpr int kFetchedSources = 4;
constexpr int64_t kFetchDistance = 4096;

int64_t round_up(int64_t x, int64_t multiple) { return (x + multiple - 1) / multiple * multiple; }
int64_t divide_up(int64_t x, int64_t y) { return (x + y - 1) / y; }

char* at(const void* base, int64_t offset) { return const_cast<char*>(static_cast<const char*>(base)) + offset; }

int size_class(int64_t size) { return std::countr_zero(static_cast<uint64_t>(size)); }

}  // namespace

// The position of a loop: the coordinates of the next point, and each operand's offset there.
struct MapPlan::Position {
  std::array<int64_t, common::kMaxRank> coordinates;
  int64_t* offsets;

  void seek(const common::LoopNest& nest, int64_t point) {
    for (int axis = nest.rank - 1; axis >= 0; --axis) {
      coordinates[axis] = point % nest.extents[axis];
      point /= nest.extents[axis];
    }
    locate(nest);
  }
  void locate(const common::LoopNest& nest) {
    for (size_t i = 0; i < nest.strides.size(); ++i) {
      offsets[i] = nest.offsets[i];
      for (int axis = 0; axis < nest.rank; ++axis) offsets[i] += coordinates[axis] * nest.strides[i][axis];
    }
  }
  // Moves from the first column of a row to the first column of another, usually without a division.
  void advance_rows(const common::LoopNest& nest, int64_t rows) {
    const int outer = nest.rank - 2;
    coordinates[outer] += rows;
    if (coordinates[outer] < nest.extents[outer]) {
      for (size_t i = 0; i < nest.strides.size(); ++i) offsets[i] += rows * nest.strides[i][outer];
      return;
    }
    carry(nest, outer);
  }
  void advance(const common::LoopNest& nest, int64_t n) {
    const int inner = nest.rank - 1;
    coordinates[inner] += n;
    if (coordinates[inner] < nest.extents[inner]) {
      for (size_t i = 0; i < nest.strides.size(); ++i) offsets[i] += n * nest.strides[i][inner];
      return;
    }
    if (inner > 0 && coordinates[inner] == nest.extents[inner] &&
        coordinates[inner - 1] + 1 < nest.extents[inner - 1]) {  // to the next row
      const int64_t column = coordinates[inner] - n;
      coordinates[inner] = 0;
      ++coordinates[inner - 1];
      for (size_t i = 0; i < nest.strides.size(); ++i)
        offsets[i] += nest.strides[i][inner - 1] - column * nest.strides[i][inner];
      return;
    }
    carry(nest, inner);
  }
  void carry(const common::LoopNest& nest, int innermost) {
    for (int axis = innermost; axis > 0 && coordinates[axis] >= nest.extents[axis]; --axis) {
      coordinates[axis - 1] += coordinates[axis] / nest.extents[axis];
      coordinates[axis] %= nest.extents[axis];
    }
    locate(nest);
  }
};

struct MapPlan::Run {
  const MapPlan* plan;
  void* const* data;
  const compute_plugin_scalar* scalars;
  char* workspace;
};

// The lists of operands in the frame, the first point of some blocks, and the one after the last.
struct MapPlan::Piece {
  BlockOperand* sources;
  void** results;
  int64_t point, last;
};

inline MapPlan::Piece MapPlan::enter(int64_t begin, int64_t end, void* frame, Position* position) const {
  const Piece piece{reinterpret_cast<BlockOperand*>(at(frame, sources_offset_)),
                    reinterpret_cast<void**>(at(frame, results_offset_)), begin * block_,
                    std::min(end * block_, points_)};
  position->offsets = static_cast<int64_t*>(frame);
  position->seek(nest_, piece.point);
  return piece;
}

MapPlan::MapPlan(const compute_plugin_op& op, const Isa& isa, int32_t threads)
    : program_(*op.expressions[0], *isa.blocks),
      table_(isa.blocks),
      copy_(isa.copy),
      threads_(threads),
      inputs_(program_.input_count()) {
  const int indices = static_cast<int>(program_.indices().size());
  const int outputs = program_.output_count();
  sources_ = inputs_ + indices;
  const auto tensor = [&](int i) {  // an array of structs is stepped by its first element's size
    return reinterpret_cast<const compute_plugin_tensor*>(at(op.tensors, int64_t(i) * op.tensors[0].struct_size));
  };
  const compute_plugin_tensor& leader = *tensor(inputs_);
  const std::span<const int64_t> shape(leader.shape, leader.rank);

  // Strides in bytes; an index operand has the stride 1 along its axis and counts positions.
  std::vector<std::array<int64_t, common::kMaxRank>> bytes(sources_ + outputs);
  operands_.resize(sources_ + outputs);
  for (int i = 0; i < sources_ + outputs; ++i) {
    if (i >= inputs_ && i < sources_) {
      const IndexOperand& index = program_.indices()[i - inputs_];
      operands_[i].index_dtype = index.dtype;
      operands_[i].size = dtype_size(index.dtype);
      bytes[i].fill(0);
      bytes[i][index.axis] = 1;
      continue;
    }
    const compute_plugin_tensor& t = *tensor(i < inputs_ ? i : i - indices);
    operands_[i].size = dtype_size(t.dtype);
    for (int axis = 0; axis < t.rank; ++axis) bytes[i][axis] = t.strides[axis] * operands_[i].size;
  }
  std::vector<const int64_t*> strides;
  for (const auto& b : bytes) strides.push_back(b.data());
  nest_ = common::collapse(shape, strides, sources_);
  points_ = nest_.points();
  plan_loops();
  plan_frame();
  plan_at_once();

  double bytes_per_point = 0;
  for (const Operand& operand : operands_) bytes_per_point += static_cast<double>(operand.size);
  const double cost = std::max(program_.cost(), 0.004 * bytes_per_point);
  parallel_ = cost * static_cast<double>(points_) > kParallelNanoseconds && units_ > 1;
  const int64_t per_unit = points_ / units_ > 0 ? points_ / units_ : 1;
  grain_ =
      std::max<int64_t>(1, std::min(divide_up(kPieceElements, per_unit),
                                    static_cast<int64_t>(kPieceNanoseconds / (cost * static_cast<double>(per_unit)))));
}

void MapPlan::plan_loops() {
  if (nest_.rank == 0) {
    nest_.rank = 1;
    nest_.extents[0] = 1;
    for (size_t i = 0; i < operands_.size(); ++i)
      nest_.strides[i][0] = operands_[i].index_dtype != 0 ? 1 : operands_[i].size;
  }
  // An operand that runs along another loop than the outputs, a transposed one, is read by tiles of both loops.
  const int inner = nest_.rank - 1;
  for (int i = 0; i < sources_ && !tiles_; ++i) {
    const auto& strides = nest_.strides[i];
    if (operands_[i].index_dtype != 0 || std::llabs(strides[inner]) <= operands_[i].size || nest_.extents[inner] < 16)
      continue;
    int best = -1;
    for (int axis = 0; axis < inner; ++axis) {
      if (strides[axis] == operands_[i].size && nest_.extents[axis] >= 8) best = axis;
    }
    if (best < 0) continue;
    common::move_loop(nest_, best, best);
    // moves it inwards, next to the innermost loop
    for (int axis = best; axis + 1 < inner; ++axis) common::move_loop(nest_, axis + 1, axis);
    tiles_ = true;
  }
  for (size_t i = 0; i < operands_.size(); ++i) {
    Operand& operand = operands_[i];
    const auto& strides = nest_.strides[i];
    operand.linear = operand.constant = operand.index_dtype == 0;
    int64_t expected = operand.size;
    for (int axis = nest_.rank - 1; axis >= 0; --axis) {
      operand.linear &= strides[axis] == expected;
      operand.constant &= strides[axis] == 0;
      expected *= nest_.extents[axis];
    }
    operand.tiled = tiles_ && static_cast<int>(i) < sources_ && operand.index_dtype == 0 &&
                    std::llabs(strides[inner]) > operand.size && strides[inner - 1] == operand.size;
  }
}

void MapPlan::plan_frame() {
  const int inner = nest_.rank - 1;
  bool rows = nest_.extents[inner] >= kShortRow || tiles_;
  const auto is_single = [&](int i) { return operands_[i].index_dtype == 0 && nest_.strides[i][inner] == 0; };
  // An operand is packed unless every block of it is contiguous or one value.
  const auto packs = [&](int i) {
    const Operand& operand = operands_[i];
    if (operand.index_dtype != 0) return true;
    if (operand.linear || operand.constant) return false;
    return !rows || (nest_.strides[i][inner] != operand.size && (!is_single(i) || i >= sources_));
  };
  // A broadcast operand is read again and again, from the cache.
  const auto bytes_of = [&](int i) {
    int64_t bytes = operands_[i].constant ? 0 : operands_[i].size;
    for (int axis = 0; axis < nest_.rank; ++axis) bytes *= nest_.strides[i][axis] != 0 ? nest_.extents[axis] : 1;
    return bytes;
  };
  int64_t bytes = 0, output_bytes = 0;
  widest_ = sources_;
  bool any_single = false;
  for (size_t i = 0; i < operands_.size(); ++i) {
    if (operands_[i].index_dtype == 0) bytes += bytes_of(static_cast<int>(i));
    if (!operands_[i].constant && operands_[i].size > operands_[widest_].size) widest_ = static_cast<int>(i);
    if (static_cast<int>(i) >= sources_) output_bytes += operands_[i].size * points_;
    any_single |= !operands_[i].constant && is_single(static_cast<int>(i));
  }
  // Where little is written, reading at full speed matters more.
  const int64_t stream_bytes = std::clamp(threads_ * kStreamBytesOfThread, kStreamBytes, kMostStreamBytes);
  streams_ = bytes >= stream_bytes && output_bytes >= bytes / 4 && !tiles_;
  bool contiguous = true, contiguous_outputs = true;
  const auto find_contiguous = [&] {
    contiguous = contiguous_outputs = true;
    for (int i = 0; i < static_cast<int>(operands_.size()); ++i) {
      contiguous &= !packs(i);
      if (i >= sources_) contiguous_outputs &= !packs(i);
    }
  };
  if (!rows && any_single && !streams_ && nest_.extents[inner] >= kShortSingle) {
    rows = true;
    find_contiguous();
    rows = contiguous;
  }
  find_contiguous();
  streams_ &= contiguous_outputs;
  streams_directly_ = streams_ && contiguous && program_.streams();
  buffers_ = program_.needs_blocks() || (streams_ && !streams_directly_) || !contiguous;
  int64_t point_bytes = (program_.workspace_bytes(kBlock) - program_.workspace_bytes(0)) / kBlock;
  for (const Operand& operand : operands_) point_bytes += operand.size;
  const int64_t block = contiguous && !streams_ ? std::clamp(kBlockBytes / point_bytes, kBlock, kLongBlock) : kBlock;
  block_ = tiles_ ? kTileColumns : buffers_ ? block : kLongBlock;
  stream_piece_ = kStreamPieceBytes / operands_[widest_].size;
  tile_rows_ = 1;
  if (tiles_) {
    int64_t widest = 1;
    for (const Operand& operand : operands_) widest = operand.tiled ? std::max(widest, operand.size) : widest;
    tile_rows_ = std::min(kTileBytes / widest, nest_.extents[inner - 1]);
  }
  const int outputs = program_.output_count();
  interleaves_ = nest_.rank == 1 && !streams_ &&
                 ((outputs == 4 && operands_[sources_].size == 4) || (outputs == 2 && operands_[sources_].size == 8));
  for (int i = sources_; i < sources_ + outputs; ++i) {
    interleaves_ &= operands_[i].size == operands_[sources_].size && nest_.strides[i][0] == outputs * operands_[i].size;
  }
  direct_rows_ = rows && contiguous && !tiles_ && !streams_ && nest_.rank > 1;
  std::vector<bool> singles(sources_);
  for (int i = 0; i < sources_; ++i) singles[i] = operands_[i].constant || (direct_rows_ && is_single(i));
  program_.expect_single_values(singles);
  const auto whole_rows = [&](int64_t block) {
    const int64_t row = nest_.extents[inner];
    return tiles_ || rows || block < row ? block : block / row * row;
  };
  if (buffers_) block_ = whole_rows(block_);
  for (;;) {
    int64_t offset = static_cast<int64_t>(operands_.size() * sizeof(int64_t));  // of the position
    sources_offset_ = offset;
    offset += static_cast<int64_t>(sources_ * sizeof(BlockOperand));
    results_offset_ = offset;
    offset += static_cast<int64_t>(program_.output_count() * sizeof(void*));
    program_offset_ = offset = round_up(offset, kCacheLine);
    offset += round_up(program_.workspace_bytes(block_), kCacheLine);
    for (size_t i = 0; i < operands_.size(); ++i) {
      Operand& operand = operands_[i];
      operand.splat = offset;
      offset += kSplatBytes;
      operand.buffer = offset;
      if (operand.tiled)
        offset += tile_rows_ * (block_ * operand.size + kCacheLine);
      else if (packs(static_cast<int>(i)))
        offset += round_up(block_ * operand.size, kCacheLine) + kSplatBytes;
      else if (streams_ && !streams_directly_ && static_cast<int>(i) >= sources_)
        offset += round_up(stream_piece_ * operand.size, kCacheLine);
    }
    frame_bytes_ = offset;
    if (frame_bytes_ <= kStackBytes || block_ <= 64) break;
    block_ = whole_rows(block_ / 2);
  }
  const int64_t row = nest_.extents[inner];
  if (!tiles_ && !rows && nest_.rank > 1 && block_ % row == 0 && block_ >= 2 * row) block_rows_ = block_ / row;
  for (int i = 0; i < sources_; ++i) {
    Operand& operand = operands_[i];
    operand.kept = (block_rows_ > 0 || rows) && !tiles_ && packs(i) && nest_.strides[i][inner] != 0;
    for (int axis = 0; axis < inner; ++axis) operand.kept &= nest_.strides[i][axis] == 0;
  }
  // Short rows of a tile are evaluated together if no operand has anything between them.
  const auto adjoins = [&](const Operand& operand) {
    const auto& strides = nest_.strides[static_cast<size_t>(&operand - operands_.data())];
    return operand.index_dtype == 0 &&
           (operand.tiled || operand.constant ||
            (strides[inner] == operand.size && strides[inner - 1] == nest_.extents[inner] * operand.size));
  };
  joins_rows_ =
      tiles_ && 2 * nest_.extents[inner] <= block_ && std::all_of(operands_.begin(), operands_.end(), adjoins);
  if (frame_bytes_ > kStackBytes) workspace_bytes_ = kWorkspacePieces * round_up(frame_bytes_, kCacheLine);

  if (tiles_) {
    const int64_t outer = points_ / (nest_.extents[inner] * nest_.extents[inner - 1]);
    units_ = outer * divide_up(nest_.extents[inner - 1], tile_rows_) * divide_up(nest_.extents[inner], block_);
  } else {
    units_ = divide_up(points_, block_);
  }
}

void MapPlan::plan_at_once() {
  const auto is_linear = [](const Operand& operand) { return operand.linear; };
  if (program_.only_function() == nullptr || units_ != 1 || streams_ || program_.workspace_bytes(0) > kAtOnceBytes ||
      !std::all_of(operands_.begin(), operands_.end(), is_linear)) {
    return;
  }
  at_once_.aligns = points_ >= kAlignedPoints;
  at_once_.widest_source = -1;
  for (const auto& [input, offset] : program_.only_operands()) {
    const bool is_fixed = input < 0;
    if (input == widest_) at_once_.widest_source = at_once_.count;
    at_once_.operands[at_once_.count] = {input, is_fixed ? offset : nest_.offsets[input]};
    at_once_.steps[at_once_.count++] = is_fixed ? 0 : 1;
  }
  at_once_.result_offset = nest_.offsets[sources_];
  at_once_.function = program_.only_function();
}

void MapPlan::gather(int operand, const void* src, int64_t stride, void* dst, int64_t n) const {
  const Operand& o = operands_[operand];
  if (o.index_dtype != 0) {  // src is a position, not an address
    table_->positions[o.size == 4 ? 0 : 1](reinterpret_cast<intptr_t>(src), stride, dst, n);
    return;
  }
  if (stride == o.size)
    std::memcpy(dst, src, n * o.size);
  else
    table_->gather[size_class(o.size)](src, stride, dst, n);
}

// Positions of short rows.
template <class Index>
void put_positions(int64_t first, int64_t row_stride, int64_t stride, Index* dst, int64_t row, int64_t rows) {
  for (int64_t i = 0; i < rows; ++i, first += row_stride) {
    for (int64_t j = 0; j < row; ++j) *dst++ = static_cast<Index>(first + j * stride);
  }
}

// The next n points of a source.
BlockOperand MapPlan::pack(const Run& run, int operand, const Position& position, int64_t n, void* frame) const {
  const Operand& o = operands_[operand];
  const auto& strides = nest_.strides[operand];
  const int inner = nest_.rank - 1;
  // An address; of positions the value itself, of which a pointer could not be computed.
  intptr_t src = position.offsets[operand] + (o.index_dtype != 0 ? 0 : reinterpret_cast<intptr_t>(run.data[operand]));
  const auto pointer = [&] { return reinterpret_cast<const char*>(src); };
  if (o.linear) return {pointer(), 1};
  int64_t left = nest_.extents[inner] - position.coordinates[inner];
  char* const splat_at = at(frame, o.splat);
  if (o.constant) return {splat_at, 0};  // filled at the piece's begin
  if (n <= left && strides[inner] == 0) {
    const int64_t index = src;
    const auto narrow_index = static_cast<int32_t>(src);
    const void* const value = o.index_dtype == 0 ? pointer()
                              : o.size == 4      ? static_cast<const void*>(&narrow_index)
                                                 : &index;
    splat(value, o.size, splat_at);
    return {splat_at, 0};
  }
  if (n <= left && o.index_dtype == 0 && strides[inner] == o.size) return {pointer(), 1};
  char* dst = at(frame, o.buffer);
  const int64_t row = nest_.extents[inner];
  int64_t coordinates[common::kMaxRank];
  std::copy_n(position.coordinates.begin(), nest_.rank, coordinates);
  for (int64_t done = 0; done < n;) {
    if (left == row && inner > 0 && n - done >= 2 * row) {  // whole rows, except for the last
      const int64_t whole = n == block_ && done == 0 && block_rows_ > 0 ? block_rows_ : (n - done) / row;
      const int64_t rows = std::min(whole, nest_.extents[inner - 1] - coordinates[inner - 1]);
      if (o.index_dtype == 0)
        table_->gather_rows[size_class(o.size)](pointer(), strides[inner - 1], strides[inner], dst + done * o.size, row,
                                                rows);
      else if (o.size == 4)
        put_positions(src, strides[inner - 1], strides[inner], reinterpret_cast<int32_t*>(dst) + done, row, rows);
      else
        put_positions(src, strides[inner - 1], strides[inner], reinterpret_cast<int64_t*>(dst) + done, row, rows);
      done += rows * row;
      src += (rows - 1) * strides[inner - 1];
      coordinates[inner - 1] += rows - 1;
    } else {
      const int64_t count = std::min(left, n - done);
      gather(operand, pointer(), strides[inner], dst + done * o.size, count);
      done += count;
      left = row;
    }
    // to the next row: back to this one's first column, then on by one, with carries
    src -= coordinates[inner] * strides[inner];
    coordinates[inner] = 0;
    for (int axis = inner - 1; axis >= 0; --axis) {
      src += strides[axis];
      if (++coordinates[axis] < nest_.extents[axis]) break;
      src -= nest_.extents[axis] * strides[axis];
      coordinates[axis] = 0;
    }
  }
  return {at(frame, o.buffer), 1};
}

// Computes n points by short pieces: non-temporal stores write a piece's results while the next piece's operands are
// fetched. With long pieces the processor would compute and write by turns.
void MapPlan::stream_block(const Run& run, const Position& position, BlockOperand* sources, void* const* results,
                           int64_t n, void* frame) const {
  const int outputs = program_.output_count();
  FetchAhead ahead[kFetchedSources];
  int ahead_count = 0;
  int fetched[kFetchedSources];
  for (int i = 0; i < inputs_ && ahead_count < kFetchedSources; ++i) {
    if (sources[i].data != at(run.data[i], position.offsets[i])) continue;
    fetched[ahead_count] = i;
    ahead[ahead_count++].scale = size_class(operands_[i].size) - size_class(operands_[sources_].size);
  }
  const char* first = at(run.data[inputs_], position.offsets[sources_]);
  const int64_t first_size = operands_[sources_].size;
  for (int64_t done = 0; done < n;) {
    // Pieces end where a cache line of the first output does.
    const int64_t lead = (reinterpret_cast<uintptr_t>(first) + done * first_size) % kCacheLine / first_size;
    const int64_t count = std::min(stream_piece_ - lead, n - done);
    program_.evaluate(sources, results, count, block_, at(frame, program_offset_));
    for (int k = 0; k < ahead_count; ++k) {
      const BlockOperand& source = sources[fetched[k]];
      ahead[k].data = reinterpret_cast<uintptr_t>(source.data) + kFetchDistance;
    }
    for (int k = 0; k < outputs; ++k) {
      const int i = sources_ + k;
      char* const dst = at(run.data[inputs_ + k], position.offsets[i] + done * operands_[i].size);
      table_->stream_copy(dst, results[k], count * operands_[i].size, ahead, k == 0 ? ahead_count : 0);
    }
    for (int i = 0; i < sources_; ++i)
      sources[i].data = at(sources[i].data, count * operands_[i].size * sources[i].step);
    done += count;
  }
}

// Computes n points. If vectors are as long as cache lines, each unaligned access touches two lines, so the points
// before the first line of the widest operand are computed separately.
void MapPlan::evaluate_block(BlockOperand* sources, void** results, int64_t n, void* frame) const {
  const int outputs = program_.output_count();
  const int64_t size = operands_[widest_].size;
  const void* data = widest_ < sources_ ? sources[widest_].data : results[widest_ - sources_];
  const auto beyond = static_cast<int64_t>(reinterpret_cast<uintptr_t>(data) % kCacheLine);
  if (beyond == 0 || beyond % size != 0 || n < kAlignedPoints) {
    program_.evaluate(sources, results, n, block_, at(frame, program_offset_));
    return;
  }
  const int64_t lead = (kCacheLine - beyond) / size;
  program_.evaluate(sources, results, lead, block_, at(frame, program_offset_));
  const auto move = [&](int64_t points) {
    for (int i = 0; i < sources_; ++i)
      sources[i].data = at(sources[i].data, points * operands_[i].size * sources[i].step);
    for (int k = 0; k < outputs; ++k) results[k] = at(results[k], points * operands_[sources_ + k].size);
  };
  move(lead);
  program_.evaluate(sources, results, n - lead, block_, at(frame, program_offset_));
  move(-lead);
}

// The same for a plan that is_at_once().
void MapPlan::call_aligned(const void** x, char* result) const {
  const AtOnce& call = at_once_;
  const int64_t size = operands_[call.widest_source < 0 ? sources_ : widest_].size;
  const void* data = call.widest_source < 0 ? result : x[call.widest_source];
  const auto beyond = static_cast<int64_t>(reinterpret_cast<uintptr_t>(data) % kCacheLine);
  if (beyond == 0 || beyond % size != 0) return call.function(x, call.steps, result, points_);
  const int64_t lead = (kCacheLine - beyond) / size;
  call.function(x, call.steps, result, lead);
  for (int k = 0; k < call.count; ++k) {
    if (call.steps[k] != 0) x[k] = at(x[k], lead * operands_[call.operands[k].input].size);
  }
  call.function(x, call.steps, at(result, lead * operands_[sources_].size), points_ - lead);
}

// True if an output is an input too: reading it brings it into the cache, which a non-temporal store would undo.
bool MapPlan::is_in_place(const Run& run) const {
  for (int k = 0; k < program_.output_count(); ++k) {
    for (int i = 0; i < inputs_; ++i) {
      if (run.data[inputs_ + k] == run.data[i]) return true;
    }
  }
  return false;
}

// True if the outputs are the elements of one array by turns.
bool MapPlan::is_interleaved(const Run& run) const {
  for (int k = 1; k < program_.output_count() && interleaves_; ++k) {
    const int64_t offset = nest_.offsets[sources_] - nest_.offsets[sources_ + k] + k * operands_[sources_].size;
    if (at(run.data[inputs_ + k], 0) != at(run.data[inputs_], offset)) return false;
  }
  return interleaves_;
}

void MapPlan::run_blocks(const Run& run, int64_t begin, int64_t end, void* frame) const {
  const int inner = nest_.rank - 1;
  const bool streams = streams_ && !is_in_place(run), interleaves = is_interleaved(run);
  const bool rows = nest_.extents[inner] >= kShortRow;
  const int outputs = program_.output_count();
  Position position;
  auto [sources, results, point, last] = enter(begin, end, frame, &position);
  int64_t kept = 0;  // the points from the begin of a row that are packed
  while (point < last) {
    const int64_t left = nest_.extents[inner] - position.coordinates[inner];
    int64_t n = buffers_ ? std::min(block_, last - point) : last - point;
    if (rows) n = std::min(n, left);
    const bool keeps = position.coordinates[inner] == 0 && n <= kept;
    for (int i = 0; i < sources_; ++i) {
      sources[i] = keeps && operands_[i].kept ? BlockOperand{at(frame, operands_[i].buffer), 1}
                                              : pack(run, i, position, n, frame);
    }
    if (!keeps) kept = position.coordinates[inner] == 0 ? n : 0;
    for (int k = 0; k < outputs; ++k) {
      const int i = sources_ + k;
      const bool direct = operands_[i].linear || (rows && nest_.strides[i][inner] == operands_[i].size);
      results[k] = direct && (!streams || streams_directly_) ? at(run.data[inputs_ + k], position.offsets[i])
                                                             : at(frame, operands_[i].buffer);
    }
    if (streams) {
      if (streams_directly_)
        program_.stream(sources, results[0], n, at(frame, program_offset_));
      else
        stream_block(run, position, sources, results, n, frame);
      point += n;
      if (point < last) position.advance(nest_, n);
      continue;
    }
    evaluate_block(sources, results, n, frame);
    if (interleaves) {
      char* const dst = at(run.data[inputs_], position.offsets[sources_]);
      (outputs == 4 ? table_->interleave4 : table_->interleave2)(results, dst, n);
    }
    for (int k = 0; k < outputs && !interleaves; ++k) {
      const int i = sources_ + k;
      char* dst = at(run.data[inputs_ + k], position.offsets[i]);
      if (results[k] == dst) continue;
      // scattered, by rows
      const auto& strides = nest_.strides[i];
      const char* src = static_cast<const char*>(results[k]);
      std::array<int64_t, common::kMaxRank> coordinates = position.coordinates;
      int64_t count = std::min(left, n);
      for (int64_t done = 0;;) {
        table_->scatter[size_class(operands_[i].size)](src + done * operands_[i].size, dst, strides[inner], count);
        done += count;
        if (done >= n) break;
        count = std::min(nest_.extents[inner], n - done);
        dst -= coordinates[inner] * strides[inner];
        coordinates[inner] = 0;
        for (int axis = inner - 1; axis >= 0; --axis) {
          dst += strides[axis];
          if (++coordinates[axis] < nest_.extents[axis]) break;
          dst -= nest_.extents[axis] * strides[axis];
          coordinates[axis] = 0;
        }
      }
    }
    point += n;
    if (point == last) break;
    if (n == block_ && block_rows_ > 0)
      position.advance_rows(nest_, block_rows_);
    else
      position.advance(nest_, n);
  }
  if (streams) table_->stream_end();
}

// Whole rows one after the other, with as little as possible to do for each; parts of rows like other blocks.
void MapPlan::run_rows(const Run& run, int64_t begin, int64_t end, void* frame) const {
  const int inner = nest_.rank - 1;
  const int64_t extent = nest_.extents[inner];
  const int outputs = program_.output_count();
  Position position;
  auto [sources, results, point, last] = enter(begin, end, frame, &position);
  while (point < last) {
    int64_t n = std::min(extent - position.coordinates[inner], last - point), rows = 1;
    if (buffers_) n = std::min(n, block_);
    if (n == extent) {
      rows = std::min((last - point) / extent, nest_.extents[inner - 1] - position.coordinates[inner - 1]);
    }
    for (int i = 0; i < sources_; ++i) sources[i] = pack(run, i, position, n, frame);
    for (int k = 0; k < outputs; ++k) results[k] = at(run.data[inputs_ + k], position.offsets[sources_ + k]);
    for (int64_t row = 1;; ++row) {
      if (n >= kAlignedPoints)
        evaluate_block(sources, results, n, frame);
      else
        program_.evaluate(sources, results, n, block_, at(frame, program_offset_));
      if (row == rows) break;
      for (int i = 0; i < sources_; ++i) {
        const Operand& o = operands_[i];
        const int64_t step = nest_.strides[i][inner - 1];
        if (step == 0) continue;
        if (sources[i].step == 0) {
          const char* const value = at(run.data[i], position.offsets[i] + row * step);
          table_->gather_rows[size_class(o.size)](value, 0, 0, at(frame, o.splat), kSplatBytes / o.size, 1);
        } else {
          sources[i].data = at(sources[i].data, step);
        }
      }
      for (int k = 0; k < outputs; ++k) results[k] = at(results[k], nest_.strides[sources_ + k][inner - 1]);
    }
    point += n * rows;
    if (point == last) break;
    if (n == extent)
      position.advance_rows(nest_, rows);
    else
      position.advance(nest_, n);
  }
}

// Tiles of tile_rows_ by block_ points of the two inner loops. Those of transposed operands are transposed.
void MapPlan::run_tiles(const Run& run, int64_t begin, int64_t end, void* frame) const {
  const int inner = nest_.rank - 1;
  const int64_t width = nest_.extents[inner], height = nest_.extents[inner - 1];
  const int64_t across = divide_up(width, block_), down = divide_up(height, tile_rows_);
  const int outputs = program_.output_count();
  BlockOperand* const sources = reinterpret_cast<BlockOperand*>(at(frame, sources_offset_));
  void** const results = reinterpret_cast<void**>(at(frame, results_offset_));
  Position position;
  position.offsets = static_cast<int64_t*>(frame);

  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t column = unit % across * block_, row = unit / across % down * tile_rows_;
    const int64_t n = std::min(block_, width - column), rows = std::min(tile_rows_, height - row);
    position.seek(nest_, (unit / (across * down) * height + row) * width + column);
    const auto pitch_of = [&](const Operand& o) { return joins_rows_ ? width * o.size : block_ * o.size + kCacheLine; };
    for (int i = 0; i < sources_; ++i) {
      const Operand& o = operands_[i];
      if (!o.tiled) continue;
      const int64_t pitch = pitch_of(o);
      const char* src = at(run.data[i], position.offsets[i]);
      copy_->transpose[size_class(o.size)](src, nest_.strides[i][inner], at(frame, o.buffer), pitch, n, rows);
    }
    const int64_t most = !joins_rows_ ? 1 : program_.needs_blocks() ? block_ / width : rows;
    for (int64_t r = 0, joined = 0; r < rows; r += joined) {
      joined = std::min(most, rows - r);
      for (int i = 0; i < sources_; ++i) {
        const Operand& o = operands_[i];
        sources[i] =
            o.tiled ? BlockOperand{at(frame, o.buffer + r * pitch_of(o)), 1} : pack(run, i, position, n, frame);
      }
      for (int k = 0; k < outputs; ++k) {
        const int i = sources_ + k;
        const bool direct = nest_.strides[i][inner] == operands_[i].size;
        results[k] = direct ? at(run.data[inputs_ + k], position.offsets[i]) : at(frame, operands_[i].buffer);
      }
      program_.evaluate(sources, results, n * joined, block_, at(frame, program_offset_));
      for (int k = 0; k < outputs; ++k) {
        const int i = sources_ + k;
        char* dst = at(run.data[inputs_ + k], position.offsets[i]);
        if (results[k] != dst)
          table_->scatter[size_class(operands_[i].size)](results[k], dst, nest_.strides[i][inner], n);
      }
      if (r + joined < rows) position.advance(nest_, joined * width);
    }
  }
}

void MapPlan::run_piece(const Run& run, int64_t begin, int64_t end, void* frame) const {
  program_.begin(run.scalars, at(frame, program_offset_));
  for (int i = 0; i < inputs_; ++i) {
    if (operands_[i].constant)
      splat(at(run.data[i], nest_.offsets[i]), operands_[i].size, at(frame, operands_[i].splat));
  }
  if (tiles_)
    run_tiles(run, begin, end, frame);
  else if (direct_rows_)
    run_rows(run, begin, end, frame);
  else
    run_blocks(run, begin, end, frame);
}

void MapPlan::body(void* user, int64_t begin, int64_t end) {
  const Run& run = *static_cast<const Run*>(user);
  const MapPlan& plan = *run.plan;
  if (plan.workspace_bytes_ == 0) {
    plan.run_piece(run, begin, end, thread_frame());
    return;
  }
  for (int64_t piece = begin; piece < end; ++piece) {
    const int64_t first = plan.units_ * piece / kWorkspacePieces, last = plan.units_ * (piece + 1) / kWorkspacePieces;
    if (first < last)
      plan.run_piece(run, first, last, run.workspace + plan.workspace_bytes_ / kWorkspacePieces * piece);
  }
}

void MapPlan::run(void* const* data, const compute_plugin_scalar* scalars, void* workspace,
                  ParallelFor parallel_for) const {
  if (is_at_once()) return run_at_once([data](int i) { return data[i]; }, scalars);
  Run run{this, data, scalars, static_cast<char*>(workspace)};
  const int64_t count = workspace_bytes_ == 0 ? units_ : kWorkspacePieces;
  const int64_t grain = workspace_bytes_ == 0 ? grain_ : 1;
  if (parallel_ && count > grain)
    parallel_for(count, grain, &MapPlan::body, &run);
  else
    body(&run, 0, count);
}

}  // namespace compute::cpu
