// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/move/copy.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "plugins/common/op/layout.hpp"
#include "plugins/cpu/base/host.hpp"
#include "plugins/cpu/base/walk.hpp"
#include "plugins/cpu/isa/isa.hpp"
#include "plugins/cpu/kernels/copy_kernel.hpp"
#include "plugins/cpu/map/block_program.hpp"
#include "plugins/cpu/map/elementwise.hpp"
#include "plugins/cpu/threads/threads.hpp"

namespace compute::cpu {
namespace {

constexpr int64_t kPieceBytes = 64 << 10;  // a grain
// Copies from this many bytes on use non-temporal stores: the size of a thread's cache, times the number of threads,
// within bounds. Copies of rows do so earlier, because ordinary stores of short rows read what they overwrite.
constexpr int64_t kStreamBytesOfThread = 1 << 20, kStreamBytes = 16 << 20, kMostStreamBytes = 32 << 20;
constexpr int64_t kRowsStreamBytes = 8 << 20;
constexpr int64_t kFetchDistance = 4096;  // bytes that are prefetched
constexpr int64_t kStreamRow = 256;       // bytes of a row
constexpr int64_t kLine = 64;
constexpr int64_t kShortRow = 256;   // bytes: a call for each would take longer than the copy
constexpr int64_t kShortLoop = 8;    // elements
constexpr int64_t kTileBytes = 512;  // of a transposed tile's row

int64_t divide_up(int64_t x, int64_t y) { return (x + y - 1) / y; }

int64_t stream_bytes(int64_t least) {
  return std::clamp(thread_count() * kStreamBytesOfThread, least, kMostStreamBytes);
}

void copy_piece(char* dst, const char* src, int64_t size_bytes, bool streams) {
  if (streams) {
    const FetchAhead ahead{reinterpret_cast<uintptr_t>(src) + kFetchDistance, 0};
    isa().blocks->stream_copy(dst, src, size_bytes, &ahead, 1);
    isa().blocks->stream_end();
  } else {
    std::memcpy(dst, src, static_cast<size_t>(size_bytes));
  }
}

template <class T>
void copy_strided(char* dst, int64_t dst_stride, const char* src, int64_t src_stride, int64_t n) {
  for (int64_t i = 0; i < n; ++i) std::memcpy(dst + i * dst_stride, src + i * src_stride, sizeof(T));
}

struct Sixteen {
  char bytes[16];
};

// Fills a piece that begins at a multiple of the pattern with a pattern that has been repeated over 64 bytes.
void fill_piece(char* dst, int64_t size_bytes, const char* repeated) {
  int64_t done = 0;
  for (; done + 64 <= size_bytes; done += 64) std::memcpy(dst + done, repeated, 64);
  std::memcpy(dst + done, repeated, static_cast<size_t>(size_bytes - done));
}

// Elements of one size from one layout to another.
class CopyPlan final : public Plan {
 public:
  CopyPlan(const compute_plugin_tensor& src, const compute_plugin_tensor& dst) {
    size_ = dtype_size(dst.dtype);
    size_class_ = std::countr_zero(static_cast<uint64_t>(size_));
    std::vector<int64_t> dst_strides(dst.strides, dst.strides + dst.rank),
        src_strides(src.strides, src.strides + src.rank);
    for (int64_t& stride : dst_strides) stride *= size_;
    for (int64_t& stride : src_strides) stride *= size_;
    const int64_t* const strides[] = {dst_strides.data(), src_strides.data()};
    nest_ = common::collapse({dst.shape, static_cast<size_t>(dst.rank)}, strides, 0);
    choose();
  }

  void run(const compute_plugin_run& run) const override {
    const Addresses at{address(run.tensors[1]) + nest_.offsets[0], address(run.tensors[0]) + nest_.offsets[1]};
    switch (form_) {
      case Form::kContiguous:
        return copy_bytes(at.dst, at.src, extent_ * size_);
      case Form::kTranspose:
        return parallel_for(units_, grain_, [&](int64_t begin, int64_t end) { transpose_tiles(at, begin, end); });
      case Form::kRows:
        if (streams_ && reinterpret_cast<uintptr_t>(at.dst) % kLine == 0)
          return parallel_for(units_, grain_, [&](int64_t begin, int64_t end) { stream_rows(at, begin, end); });
        if (is_short_)
          return parallel_for(units_, grain_, [&](int64_t begin, int64_t end) { copy_short_rows(at, begin, end); });
        [[fallthrough]];
      default:
        return parallel_for(units_, grain_, [&](int64_t begin, int64_t end) { copy_rows(at, begin, end); });
    }
  }

 private:
  // How the innermost loop runs.
  enum class Form { kContiguous, kRows, kRepeat, kTranspose, kToContiguous, kFromContiguous, kStrided };

  struct Addresses {
    char* dst;
    const char* src;
  };

  void choose() {
    const int inner = nest_.rank - 1;
    loops_ = std::max(inner, 0);
    if (nest_.rank == 0) {
      form_ = Form::kContiguous;
      extent_ = 1;
      return;
    }
    extent_ = nest_.extents[static_cast<size_t>(inner)];
    dst_stride_ = nest_.strides[0][static_cast<size_t>(inner)];
    src_stride_ = nest_.strides[1][static_cast<size_t>(inner)];
    const bool to_contiguous = dst_stride_ == size_, from_contiguous = src_stride_ == size_;
    if (to_contiguous && from_contiguous) {
      form_ = nest_.rank == 1 ? Form::kContiguous : Form::kRows;
    } else if (to_contiguous && src_stride_ == 0 && extent_ * size_ > kLine) {
      form_ = Form::kRepeat;
    } else if (to_contiguous && find_transposed()) {  // also of one row, which is repeated
      form_ = Form::kTranspose;
    } else if (to_contiguous && src_stride_ == 0) {
      form_ = Form::kRepeat;
    } else if (to_contiguous) {
      form_ = Form::kToContiguous;
    } else if (from_contiguous) {
      form_ = Form::kFromContiguous;
    } else {
      form_ = Form::kStrided;
    }
    if (form_ == Form::kTranspose) return plan_tiles();
    if (form_ != Form::kRows && form_ != Form::kContiguous) lengthen();
    // A single long row is cut into several.
    const int64_t points = nest_.points();
    const int64_t row_limit = std::max<int64_t>(kPieceBytes / size_, 1);
    cuts_ = divide_up(extent_, row_limit);
    cut_extent_ = divide_up(extent_, cuts_);
    cuts_ = divide_up(extent_, cut_extent_);
    units_ = points / extent_ * cuts_;
    grain_ = std::max<int64_t>(kPieceBytes / (cut_extent_ * size_), 1);
    const int64_t row_bytes = extent_ * size_;
    streams_ = form_ == Form::kRows && cuts_ == 1 && points * size_ >= stream_bytes(kRowsStreamBytes) &&
               row_bytes >= kStreamRow && row_bytes % kLine == 0;
    is_short_ = form_ == Form::kRows && row_bytes <= kShortRow;
    for (int axis = 0; axis < loops_; ++axis) streams_ &= nest_.strides[0][static_cast<size_t>(axis)] % kLine == 0;
  }

  // The other loop along which src is contiguous moves next to the innermost one.
  bool find_transposed() {
    for (int axis = nest_.rank - 2; axis >= 0; --axis) {
      const auto at = static_cast<size_t>(axis);
      // Pairs and triples fill no vectors: they pay where many follow one another.
      if (nest_.strides[1][at] != size_ || nest_.extents[at] < (extent_ < 4 ? 16 : 4)) continue;
      common::move_loop(nest_, axis, nest_.rank - 2);
      return true;
    }
    return false;
  }

  // Rows of few elements that are not adjacent in both: along a longer loop there are fewer of them.
  void lengthen() {
    int longest = nest_.rank - 1;
    for (int axis = 0; axis < nest_.rank; ++axis)
      if (nest_.extents[static_cast<size_t>(axis)] > nest_.extents[static_cast<size_t>(longest)]) longest = axis;
    const auto at = static_cast<size_t>(longest);
    if (extent_ >= kShortLoop || nest_.extents[at] < kShortLoop) return;
    common::move_loop(nest_, longest, nest_.rank - 1);
    extent_ = nest_.extents[static_cast<size_t>(nest_.rank - 1)];
    dst_stride_ = nest_.strides[0][static_cast<size_t>(nest_.rank - 1)];
    src_stride_ = nest_.strides[1][static_cast<size_t>(nest_.rank - 1)];
    form_ = Form::kStrided;
  }

  void plan_tiles() {
    loops_ = nest_.rank - 2;
    columns_ = nest_.extents[static_cast<size_t>(loops_)];
    dst_stride_ = nest_.strides[0][static_cast<size_t>(loops_)];  // between rows of dst, which are columns of src
    tile_ = std::max<int64_t>(kTileBytes / size_, 128);
    row_tiles_ = divide_up(extent_, tile_);
    column_tiles_ = divide_up(columns_, tile_);
    units_ = nest_.points() / (extent_ * columns_) * row_tiles_ * column_tiles_;
    const int64_t tile_bytes = std::min(tile_, extent_) * std::min(tile_, columns_) * size_;
    grain_ = std::max<int64_t>(kPieceBytes / tile_bytes, 1);
  }

  void transpose_tiles(const Addresses& at, int64_t begin, int64_t end) const {
    const auto kernel = isa().copy->transpose[size_class_];
    const int64_t tiles = row_tiles_ * column_tiles_;
    int64_t offsets[2] = {};
    Walk walk(nest_, loops_, begin / tiles, offsets);
    for (int64_t unit = begin, tile = begin % tiles; unit < end; ++unit) {
      // Tiles that follow one another fill the same rows of dst.
      const int64_t row = tile % row_tiles_ * tile_, column = tile / row_tiles_ * tile_;
      kernel(at.src + offsets[1] + row * src_stride_ + column * size_, src_stride_,
             at.dst + offsets[0] + column * dst_stride_ + row * size_, dst_stride_, std::min(tile_, extent_ - row),
             std::min(tile_, columns_ - column));
      if (++tile == tiles) {
        tile = 0;
        walk.next();
      }
    }
  }

  void copy_rows(const Addresses& at, int64_t begin, int64_t end) const {
    int64_t offsets[2] = {};
    Walk walk(nest_, loops_, begin / cuts_, offsets);
    for (int64_t unit = begin, cut = begin % cuts_; unit < end; ++unit) {
      const int64_t first = cut * cut_extent_;
      copy_row(at.dst + offsets[0] + first * dst_stride_, at.src + offsets[1] + first * src_stride_,
               std::min(cut_extent_, extent_ - first));
      if (++cut == cuts_) {
        cut = 0;
        walk.next();
      }
    }
  }

  // Rows of the last loop outside them, as many as there are, at a time.
  void copy_short_rows(const Addresses& at, int64_t begin, int64_t end) const {
    const auto last = static_cast<size_t>(loops_ - 1);
    const int64_t dst_step = nest_.strides[0][last], src_step = nest_.strides[1][last];
    int64_t offsets[2] = {};
    Walk walk(nest_, loops_ - 1, begin / nest_.extents[last], offsets);
    for (int64_t unit = begin, row = begin % nest_.extents[last]; unit < end; row = 0, walk.next()) {
      const int64_t rows = std::min(nest_.extents[last] - row, end - unit);
      isa().copy->rows(at.src + offsets[1] + row * src_step, src_step, nullptr, at.dst + offsets[0] + row * dst_step,
                       dst_step, extent_ * size_, rows);
      unit += rows;
    }
  }

  // Rows of whole lines, by non-temporal stores. The processor fetches nothing ahead from one row to the next.
  void stream_rows(const Addresses& at, int64_t begin, int64_t end) const {
    const BlockKernels& kernels = *isa().blocks;
    const int64_t row_bytes = extent_ * size_;
    const int64_t ahead = divide_up(kFetchDistance, row_bytes) * nest_.strides[1][static_cast<size_t>(loops_ - 1)];
    int64_t offsets[2] = {};
    Walk walk(nest_, loops_, begin, offsets);
    for (int64_t row = begin; row < end; ++row) {
      const char* const src = at.src + offsets[1];
      const FetchAhead fetch{reinterpret_cast<uintptr_t>(src) + static_cast<uintptr_t>(ahead), 0};
      kernels.stream_copy(at.dst + offsets[0], src, row_bytes, &fetch, 1);
      walk.next();
    }
    kernels.stream_end();
  }

  void copy_row(char* dst, const char* src, int64_t n) const {
    switch (form_) {
      case Form::kRows:
        std::memcpy(dst, src, static_cast<size_t>(n * size_));
        return;
      case Form::kRepeat: {
        alignas(64) char repeated[64];
        splat(src, size_, repeated);
        fill_piece(dst, n * size_, repeated);
        return;
      }
      case Form::kToContiguous:
        return isa().blocks->gather[size_class_](src, src_stride_, dst, n);
      case Form::kFromContiguous:
        return isa().blocks->scatter[size_class_](src, dst, dst_stride_, n);
      default:
        break;
    }
    switch (size_) {
      case 1:
        return copy_strided<char>(dst, dst_stride_, src, src_stride_, n);
      case 2:
        return copy_strided<int16_t>(dst, dst_stride_, src, src_stride_, n);
      case 4:
        return copy_strided<int32_t>(dst, dst_stride_, src, src_stride_, n);
      case 8:
        return copy_strided<int64_t>(dst, dst_stride_, src, src_stride_, n);
      default:
        return copy_strided<Sixteen>(dst, dst_stride_, src, src_stride_, n);
    }
  }

  common::LoopNest nest_;  // operands: dst, src
  Form form_ = Form::kStrided;
  int64_t size_ = 0;
  int size_class_ = 0;
  int loops_ = 0;       // outside a row or tile
  int64_t extent_ = 1;  // of the innermost loop, along dst
  int64_t dst_stride_ = 0, src_stride_ = 0;
  int64_t cuts_ = 1, cut_extent_ = 1;
  bool streams_ = false;   // non-temporal stores write rows
  bool is_short_ = false;  // short rows
  int64_t columns_ = 1, tile_ = 1, row_tiles_ = 1, column_tiles_ = 1;
  int64_t units_ = 1, grain_ = 1;
};

// A copy to another dtype is a map of one conversion.
class ConvertPlan final : public Plan {
 public:
  ConvertPlan(const compute_plugin_tensor& src, const compute_plugin_tensor& dst) : map_(make(src, dst)) {
    workspace_bytes = map_.workspace_bytes();
  }

  void run(const compute_plugin_run& run) const override {
    void* const data[] = {address(run.tensors[0]), address(run.tensors[1])};
    map_.run(data, nullptr, address(run.workspace), &parallel_for);
  }

 private:
  static MapPlan make(const compute_plugin_tensor& src, const compute_plugin_tensor& dst) {
    compute_plugin_node nodes[2] = {};
    nodes[0].kind = COMPUTE_PLUGIN_NODE_INPUT;
    nodes[0].dtype = src.dtype;
    nodes[1].kind = COMPUTE_PLUGIN_NODE_CALL;
    nodes[1].dtype = dst.dtype;
    nodes[1].value = COMPUTE_PLUGIN_INTRINSIC_CONVERT;
    nodes[1].operand_count = 1;
    const int32_t operand = 0, output = 1;
    compute_plugin_expression expression{};
    expression.struct_size = sizeof expression;
    expression.struct_type = COMPUTE_PLUGIN_STRUCT_EXPRESSION;
    expression.node_count = 2;
    expression.input_count = 1;
    expression.output_count = 1;
    expression.nodes = nodes;
    expression.operands = &operand;
    expression.operand_total = 1;
    expression.outputs = &output;
    const compute_plugin_expression* const expressions[] = {&expression};
    const compute_plugin_tensor tensors[] = {sized(src), sized(dst)};
    compute_plugin_op op{};
    op.struct_size = sizeof op;
    op.struct_type = COMPUTE_PLUGIN_STRUCT_OP;
    op.name = borrow("map");
    op.version = 1;
    op.input_count = 1;
    op.output_count = 1;
    op.tensors = tensors;
    op.expression_count = 1;
    op.expressions = expressions;
    return MapPlan(op, isa(), thread_count());
  }

  static compute_plugin_tensor sized(const compute_plugin_tensor& tensor) {
    compute_plugin_tensor copy{};
    std::memcpy(static_cast<void*>(&copy), &tensor, std::min<size_t>(tensor.struct_size, sizeof copy));
    copy.struct_size = sizeof copy;
    return copy;
  }

  MapPlan map_;
};

}  // namespace

void copy_bytes(void* dst, const void* src, int64_t size_bytes) {
  if (size_bytes <= kPieceBytes) {
    std::memcpy(dst, src, static_cast<size_t>(size_bytes));
    return;
  }
  const bool streams = size_bytes >= stream_bytes(kStreamBytes);
  parallel_for(divide_up(size_bytes, 64), kPieceBytes / 64, [&](int64_t begin, int64_t end) {
    copy_piece(static_cast<char*>(dst) + begin * 64, static_cast<const char*>(src) + begin * 64,
               std::min(end * 64, size_bytes) - begin * 64, streams);
  });
}

void fill_bytes(void* dst, int64_t size_bytes, const void* pattern, int64_t pattern_size) {
  alignas(64) char repeated[64];
  splat(pattern, pattern_size, repeated);
  parallel_for(divide_up(size_bytes, 64), kPieceBytes / 64, [&](int64_t begin, int64_t end) {
    fill_piece(static_cast<char*>(dst) + begin * 64, std::min(end * 64, size_bytes) - begin * 64, repeated);
  });
}

std::optional<Refusal> refuse_copy(const Op& op) {
  const compute_dtype from = op.input(0).dtype, to = op.output(0).dtype;
  if (!is_complex(from) || is_complex(to) || to == COMPUTE_DTYPE_BOOL) return std::nullopt;
  return Refusal{
      COMPUTE_PLUGIN_REFUSE_DTYPE, 0,
      std::string("copy from ") + dtype_name(from) + " to " + dtype_name(to) + " would lose the imaginary part",
      "use real() or abs() first"};
}

std::unique_ptr<Plan> prepare_copy(const Op& op) {
  if (op.input(0).dtype == op.output(0).dtype) return plan_copy(op.input(0), op.output(0));
  return std::make_unique<ConvertPlan>(op.input(0), op.output(0));
}

std::unique_ptr<Plan> plan_copy(const compute_plugin_tensor& src, const compute_plugin_tensor& dst) {
  return std::make_unique<CopyPlan>(src, dst);
}

}  // namespace compute::cpu
