// SPDX-License-Identifier: Apache-2.0
// The plan of a matrix product: the kernel, and the division into parts.
#include "plugins/cpu/contract/matmul.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "plugins/common/op/op.hpp"
#include "plugins/cpu/contract/matmul_parts.hpp"

namespace compute::cpu {
namespace {

using common::is_complex;
using matmul::ceiling;
using matmul::is_half;
using matmul::kAlignment;

// ---- Cuts ---------------------------------------------------------------------------------------------------------

// Multiplications of float32 that take about 2 us: less than twice as many are not worth another thread.
constexpr int64_t kSerialWork = int64_t{3} << 16;
// Accumulators of one task in float32, for float16 and bfloat16: 2 MiB.
constexpr int64_t kHalfTile = int64_t{1} << 19;
// Elements of b, and of a part of a, that are converted to float32 for its kernel without packing.
constexpr int64_t kWidened = 4 << 10;
constexpr int64_t kTasksPerThread = 3;  // for balance
constexpr int64_t kTermsToWrite = 4;    // that writing a result takes the time of
// One equal tile per thread needs the least packing, up to this much work per task, about 15 us. Longer products have
// more tasks, so that faster threads can take over work of slower ones.
constexpr int64_t kOneTaskWork = int64_t{1} << 21;
// Tiles count as equal if all would have at most a part in so many more results than the product.
constexpr int64_t kEqualParts = 12;
constexpr int64_t kPackedPerProduct = 8;  // packing an element takes as long as this many multiplications
constexpr int64_t kLineBytes = 64;
// For a matrix times a vector: a task reads at least this much, which takes about 3 us.
constexpr int64_t kVectorBytes = 64 << 10;
// A result of few long sums is computed in parts of at least this many multiplications.
constexpr int64_t kFewResults = 16 << 10;
constexpr int64_t kPartWork = int64_t{1} << 19;
constexpr int64_t kPartDepth = 128;  // terms at least: a part is written and read again
constexpr int64_t kMostParts = 16;
constexpr int64_t kVectorLanes = 16;  // a shorter row of results takes as long
// A product of a few rows with a matrix of at least this many elements: sums of at least this many terms, and rows of
// this many columns, or any number of columns of adjacent elements.
constexpr int64_t kThinElements = 16 << 10;
constexpr int64_t kThinTerms = 64;
constexpr int64_t kThinColumns = 256;
constexpr int64_t kThinRowTerms = 16;  // times columns of adjacent elements: for each row so many terms
// A smaller matrix stays in the cache. Where at most an eighth of the rows in tiles would be empty, these are faster.
constexpr int64_t kThinBytes = 1 << 20;
constexpr int64_t kThinUnit = 16;        // columns of a tile are multiples of this: a line of float32
constexpr int64_t kThinTile = 64;        // columns: no tile is cut to fewer
constexpr int64_t kThinPiece = 4 << 10;  // bytes of a row that are read at a time, if it has as many
// Parts of its sums read whole rows. The partial sums are small compared with the matrix.
constexpr int64_t kThinPartBytes = 128 << 10;
constexpr int64_t kThinPartDepth = 64;
constexpr int64_t kThinPartRows = 16;     // times the rows of the other matrix
constexpr int64_t kThinSums = 64 << 10;   // results, at most
constexpr int64_t kVectorRows = 64;       // tasks are multiples of this, so that none shares a cache line
constexpr int64_t kFewSums = 64;          // fewer than these, and longer ones than two parts, are cut
constexpr int64_t kMostColumnParts = 32;  // of sums along rows that are adjacent elements
constexpr int64_t kColumnPartBytes = 256 << 10;
constexpr int64_t kColumnBytes = 64 << 10;  // of longer columns a part is worth a task
constexpr int64_t kSumPart = 16 << 10;      // elements of a part
// Tiles of AMX take products of at least so many rows and columns, terms and multiplications. Where the larger matrix
// has adjacent elements along its rows, fewer lines are faster in place.
constexpr int64_t kTileLines = 8, kTileLinesAlongTerms = 3, kTileTerms = 8, kTileWork = 16 << 10;
constexpr int64_t kTileSpeed = 6;           // multiplications in the time of one of float32
constexpr int64_t kTilePacked = 640 << 10;  // elements of b that a task packs, at most: half of a second cache
constexpr int64_t kTileLeastTerms = 320;    // for which that counts: rows of sums stay in the cache too
constexpr int64_t kTileColumns = 128;       // no task is cut to fewer
constexpr int64_t kTileUses = 8;            // columns per row of a, at most: fewer rows use what is packed only once
constexpr int64_t kTileSums = 16 << 10;     // results that are rounded together

int64_t round_up(int64_t x, int64_t unit) { return ceiling(x, unit) * unit; }

/// x · y, or the greatest int64_t.
int64_t product(int64_t x, int64_t y) {
  int64_t result;
  return __builtin_mul_overflow(x, y, &result) ? std::numeric_limits<int64_t>::max() : result;
}

/// What a multiplication costs, in multiplications of float32.
int64_t relative_cost(compute_dtype dtype) {
  switch (dtype) {
    case COMPUTE_DTYPE_INT64:
    case COMPUTE_DTYPE_UINT64:
    case COMPUTE_DTYPE_COMPLEX64:
      return 4;
    case COMPUTE_DTYPE_COMPLEX128:
      return 8;
    case COMPUTE_DTYPE_INT32:
    case COMPUTE_DTYPE_UINT32:
    case COMPUTE_DTYPE_FLOAT64:
      return 2;
    default:
      return 1;
  }
}

}  // namespace

// ---- Preparing ----------------------------------------------------------------------------------------------------

MatmulPlan::MatmulPlan(const MatmulProblem& problem, const MatmulOptions& options)
    : dtype_(problem.dtype),
      element_bytes_(common::dtype_size(problem.dtype)),
      m_(problem.m),
      n_(problem.n),
      k_(problem.k),
      has_addend_(problem.addend != nullptr),
      has_bias_(problem.bias != nullptr),
      epilogue_(problem.epilogue) {
  const MatmulView* const views[kOperands] = {&problem.a, &problem.b, &problem.c, problem.addend, problem.bias};
  batch_.resize(static_cast<size_t>(problem.batch_rank));
  for (int operand = 0; operand < kOperands; ++operand) {
    if (views[operand] == nullptr) continue;
    row_[operand] = views[operand]->row_stride;
    column_[operand] = views[operand]->column_stride;
  }
  for (int32_t axis = 0; axis < problem.batch_rank; ++axis) {
    BatchAxis& batch_axis = batch_[static_cast<size_t>(axis)];
    batch_axis.extent = problem.batch_shape[axis];
    for (int operand = 0; operand < kOperands; ++operand) {
      batch_axis.strides[operand] = views[operand] == nullptr ? 0 : views[operand]->batch_strides[axis];
    }
    batches_ *= batch_axis.extent;
  }
  if (m_ == 0 || n_ == 0 || batches_ == 0) return;  // no tasks

  merge_batch_axes();
  fold_batch_into_matrices();
  if (plan_parts(options)) return;
  addend_like_c_ = has_addend_ && row_[kAddend] == row_[kC] && column_[kAddend] == column_[kC];
  for (const BatchAxis& axis : batch_) addend_like_c_ = addend_like_c_ && axis.strides[kAddend] == axis.strides[kC];

  kernels_ = isa_of(options.isa).gemm;
  kernel_ = &kernels_->by_dtype[dtype_];
  const int64_t threads = std::max(options.threads, 1);
  if (find_vector()) {
    cut_vector(threads);
  } else if (!find_tiles(options.isa) && find_thin()) {
    cut_thin(threads);
  } else {
    // The register tile is wide along columns: adjacent elements of c, and the longer side, belong there.
    const GemmKernel& kernel = *kernel_;
    const bool rows_adjacent = m_ > 1 && row_[kC] == 1 && (n_ == 1 || column_[kC] != 1);
    const auto reads_rows = [&] { return is_in_place() || (kernel.has_narrow_panels && column_[kC] == 1); };
    const bool few_columns = kernel.pack == nullptr && 2 * n_ < kernel.columns && n_ < m_ && !reads_rows();
    if (rows_adjacent || few_columns) transpose();
    find_widened();
    cut(threads);
  }
}

/// Drops axes of one entry and joins axes that are one to every operand.
void MatmulPlan::merge_batch_axes() {
  std::vector<BatchAxis> merged;
  for (const BatchAxis& axis : batch_) {
    if (axis.extent == 1) continue;
    bool joins = !merged.empty();
    for (int operand = 0; operand < kOperands && joins; ++operand) {
      joins = merged.back().strides[operand] == axis.strides[operand] * axis.extent;
    }
    if (!joins) {
      merged.push_back(axis);
      continue;
    }
    const int64_t extent = merged.back().extent * axis.extent;
    merged.back() = axis;
    merged.back().extent = extent;
  }
  batch_ = std::move(merged);
}

/// A batch with a common b is treated as more rows of a, if the rows have one stride, and a batch with a common a as
/// more columns of b.
void MatmulPlan::fold_batch_into_matrices() {
  const bool present[kOperands] = {true, true, true, has_addend_, has_bias_};
  while (!batch_.empty()) {
    const BatchAxis& axis = batch_.back();
    bool rows = axis.strides[kB] == 0;
    bool columns = axis.strides[kA] == 0;
    for (int operand = 0; operand < kOperands; ++operand) {
      if (!present[operand]) continue;
      if (operand != kB) rows = rows && (m_ == 1 || axis.strides[operand] == row_[operand] * m_);
      if (operand != kA) columns = columns && (n_ == 1 || axis.strides[operand] == column_[operand] * n_);
    }
    if (rows) {
      for (int operand = 0; operand < kOperands; ++operand) {
        if (operand != kB && m_ == 1) row_[operand] = axis.strides[operand];
      }
      m_ *= axis.extent;
    } else if (columns) {
      for (int operand = 0; operand < kOperands; ++operand) {
        if (operand != kA && n_ == 1) column_[operand] = axis.strides[operand];
      }
      n_ *= axis.extent;
    } else {
      return;
    }
    batches_ /= axis.extent;
    batch_.pop_back();
  }
}

/// From c = a b to c' = b' a'.
void MatmulPlan::transpose() {
  transposed_ = !transposed_;
  std::swap(m_, n_);
  for (int operand = 0; operand < kOperands; ++operand) std::swap(row_[operand], column_[operand]);
  std::swap(row_[kA], row_[kB]);
  std::swap(column_[kA], column_[kB]);
  for (BatchAxis& axis : batch_) std::swap(axis.strides[kA], axis.strides[kB]);
}

/// True iff the kernel would read a and b in place.
bool MatmulPlan::is_in_place() const {
  GemmCall call{};
  call.m = m_;
  call.n = n_;
  call.k = k_;
  call.a_row = row_[kA];
  call.a_column = column_[kA];
  call.b_row = row_[kB];
  call.b_column = column_[kB];
  call.c_row = row_[kC];
  call.c_column = column_[kC];
  call.accumulate = has_addend_ || has_bias_;
  return kernel_->is_in_place(call);
}

/// Takes the kernel of float32 for halves whose own kernel would pack them, or read many of them in place, if that of
/// float32 would not pack.
void MatmulPlan::find_widened() {
  if (!is_half(dtype_) || kernel_->pack != nullptr || k_ == 0 || product(k_, n_) > kWidened) return;
  if (is_in_place() && product(m_, k_) < kWidened) return;  // without a copy
  const GemmKernel& wide = kernels_->by_dtype[COMPUTE_DTYPE_FLOAT32];
  GemmCall call{};
  call.m = m_;
  call.n = n_;
  call.k = k_;
  call.a_row = k_;
  call.b_row = call.c_row = n_;
  call.a_column = call.b_column = call.c_column = 1;
  is_widened_ = wide.is_in_place(call);
  if (is_widened_) kernel_ = &wide;
}

/// True iff one of the matrices is a vector that the kernel for vectors takes: then it is b, perhaps after
/// transposing the product.
bool MatmulPlan::find_vector() {
  if (k_ == 0 || std::min(m_, n_) != 1) return false;
  const auto fits = [this] { return n_ == 1 && row_[kB] == 1 && (column_[kA] == 1 || row_[kA] == 1); };
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (fits()) return is_vector_ = true;
    transpose();
  }
  return false;
}

/// True iff the kernel for products of a few rows takes this one: then they are a's, perhaps after transposing the
/// product.
bool MatmulPlan::find_thin() {
  if (kernel_->run_thin == nullptr || std::min(m_, n_) < 2) return false;
  const auto fits = [this] {
    if (m_ > n_ || k_ < kThinTerms || product(k_, n_) < kThinElements) return false;
    if (column_[kB] == 1) {
      const bool suits_tiles = kernel_->has_narrow_panels && 8 * m_ >= 7 * round_up(m_, kernel_->rows / 2);
      const bool is_near = product(product(k_, n_), element_bytes_) <= kThinBytes;
      return m_ <= kThinRows && n_ >= kThinColumns && !(suits_tiles && is_near);
    }
    return row_[kB] == 1 && column_[kA] == 1 && m_ <= kThinAdjacentRows && k_ >= kThinRowTerms * m_;
  };
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (fits()) return is_thin_ = true;
    transpose();
  }
  return false;
}

/// True iff it takes the time to write the results.
bool MatmulPlan::is_flat() const {
  return k_ <= kFlatTerms || (n_ >= kFlatColumns && k_ * element_bytes_ <= kFlatRowBytes);
}

/// True iff the kernel for tiles takes the product. Beside a large matrix whose rows are adjacent elements, the kernel
/// for a few rows is faster.
bool MatmulPlan::find_tiles(InstructionSet set) {
  const int64_t few = std::min(m_, n_), many = std::max(m_, n_);
  const bool along_terms = m_ <= n_ ? row_[kB] == 1 : column_[kA] == 1;  // elements of the larger matrix are adjacent
  const bool is_large = many >= kThinColumns && k_ >= kThinTerms && product(k_, many) >= kThinElements;
  if (dtype_ != COMPUTE_DTYPE_BFLOAT16 || few < (along_terms || !is_large ? kTileLinesAlongTerms : kTileLines) ||
      k_ < kTileTerms || product(product(m_, n_), k_) < kTileWork)
    return false;
  if (few < 2 * kTileLines && k_ == kTileTerms) return false;  // most of a tile would be empty
  const GemmKernel* const tiles = tile_kernel(set);
  if (tiles != nullptr) kernel_ = tiles;
  return tiles != nullptr;
}

void MatmulPlan::cut(int64_t threads) {
  const GemmKernel& kernel = *kernel_;
  tile_m_ = m_;
  tile_n_ = n_;
  const int64_t terms = std::max<int64_t>(k_, batches_ == 1 ? kTermsToWrite : 1);
  const int64_t speed = kernel_->pack != nullptr ? kTileSpeed : 1;
  const auto work = [&] {
    return product(product(tile_m_, std::max(tile_n_, kVectorLanes)), product(terms, relative_cost(dtype_))) / speed;
  };
  const auto tiles = [&] { return product(product(ceiling(m_, tile_m_), ceiling(n_, tile_n_)), batches_); };
  const auto halve_rows = [&] { tile_m_ = round_up(ceiling(tile_m_, 2), kernel.rows); };
  const auto halve_longer = [&] {
    if (tile_m_ > tile_n_ ? tile_m_ > kernel.rows : tile_n_ <= kernel.columns) {
      halve_rows();
    } else {
      tile_n_ = round_up(ceiling(tile_n_, 2), kernel.columns);
    }
  };
  const auto is_coarse = [&] { return tiles() < kTasksPerThread * threads && work() >= 2 * kSerialWork; };
  // Tiles may be cut anywhere without changing a bit.
  if (is_widened_) {
    tile_m_ = std::min(m_, round_up(std::max<int64_t>(kWidened / k_, 1), kernel.rows));
  } else if (kernel_->pack != nullptr) {
    while (tile_n_ > kTileColumns &&
           (product(tile_n_, std::max(k_, kTileLeastTerms)) > kTilePacked || tile_n_ >= product(kTileUses, m_)))
      tile_n_ = round_up(ceiling(tile_n_, 2), kernel.columns);
  } else {
    while ((is_half(dtype_) || epilogue_ != nullptr) && product(tile_m_, tile_n_) > kHalfTile) halve_longer();
  }
  if (threads > 1 && !is_widened_ && !cut_equally(threads)) {
    // Few terms per result take the time to write it, which is shortest along long rows.
    while (is_flat() && is_coarse() && tile_m_ > kernel.rows) halve_rows();
    while (is_coarse() && (tile_m_ > kernel.rows || tile_n_ > kernel.columns)) halve_longer();
  }
  tiles_m_ = ceiling(m_, tile_m_);
  tiles_n_ = ceiling(n_, tile_n_);
  cut_batch(threads, kSerialWork, work());
  if (k_ > 0 && !(tiles_m_ * tiles_n_ == 1 && is_in_place())) {
    // The tiles at the ends are smaller, but may need more memory, because of rounding to packed
    // blocks.
    for (const int64_t m : {tile_m_, m_ - (tiles_m_ - 1) * tile_m_}) {
      for (const int64_t n : {tile_n_, n_ - (tiles_n_ - 1) * tile_n_})
        kernel_scratch_bytes_ = std::max(kernel_scratch_bytes_, round_up(kernel.scratch_bytes(m, n, k_), kAlignment));
    }
  }
  slot_bytes_ = kernel_scratch_bytes_;
  if (is_half(dtype_) && k_ > 0) {
    const int64_t rows =
        kernel_->pack != nullptr ? std::min(round_up(tile_m_, kernel.rows), band_rows(tile_n_)) : tile_m_;
    slot_bytes_ += round_up(rows * sums_row(tile_n_) * static_cast<int64_t>(sizeof(float)), kAlignment);
  }
  if (is_widened_) {
    widened_ = slot_bytes_;
    slot_bytes_ += round_up((tile_m_ * k_ + k_ * n_) * static_cast<int64_t>(sizeof(float)), kAlignment);
  }
  add_frame();
}

/// Rows whose sums are rounded together, while they are in the cache.
int64_t MatmulPlan::band_rows(int64_t n) const {
  return std::max<int64_t>(kTileSums / n / kernel_->rows, 1) * kernel_->rows;
}

/// The distance of rows of sums in float32. The kernel for tiles writes whole tiles; were their rows a power of two
/// apart, they would share few lines of a cache.
int64_t MatmulPlan::sums_row(int64_t n) const {
  if (kernel_->pack == nullptr) return n;
  return round_up(n, kernel_->columns) + (n >= kTileColumns ? kThinUnit : 0);
}

/// Entries of the batch that one task computes, if an entry is one tile, and the number of tasks. Less than `least` is
/// not worth another task; an entry costs `cost`.
void MatmulPlan::cut_batch(int64_t threads, int64_t least, int64_t cost) {
  if (tiles_m_ * tiles_n_ == 1) {
    const int64_t for_balance = threads == 1 ? batches_ : ceiling(batches_, kTasksPerThread * threads);
    const int64_t for_work = std::min(batches_, ceiling(least, std::max<int64_t>(cost, 1)));
    batch_chunk_ = std::max(for_balance, for_work);
  }
  tasks_ = tiles_m_ * tiles_n_ * ceiling(batches_, batch_chunk_);
  slots_ = std::min(threads, tasks_);
}

/// The epilogue's memory, after the slot's other memory.
void MatmulPlan::add_frame() {
  frame_ = slot_bytes_;
  if (epilogue_ != nullptr) slot_bytes_ += round_up(epilogue_->frame_bytes, kAlignment);
}

/// Cuts a product into one tile for each thread; false, without effect, if that does not suit it.
bool MatmulPlan::cut_equally(int64_t threads) {
  if (batches_ != 1 || is_flat()) return false;
  const GemmKernel& kernel = *kernel_;
  const int64_t line = std::max<int64_t>(kLineBytes / element_bytes_, 1);
  int64_t least = std::numeric_limits<int64_t>::max(), best_m = 0, best_n = 0;
  for (int64_t across = 1; across <= threads; ++across) {
    if (threads % across != 0) continue;
    const int64_t down = threads / across;
    const int64_t tile_m = round_up(ceiling(m_, down), kernel.rows), tile_n = round_up(ceiling(n_, across), line);
    if (ceiling(m_, tile_m) != down || ceiling(n_, tile_n) != across) continue;
    const int64_t results = product(tile_m, tile_n);
    const int64_t cost = results / kPackedPerProduct + tile_m + tile_n;
    if (product(results, threads) - product(m_, n_) > product(m_, n_) / kEqualParts || cost >= least) continue;
    least = cost;
    best_m = tile_m;
    best_n = tile_n;
  }
  if (best_m == 0) return false;
  const int64_t speed = kernel_->pack != nullptr ? kTileSpeed : 1;
  const int64_t work = product(product(best_m, best_n), product(k_, relative_cost(dtype_))) / speed;
  if (work < kSerialWork || work > kOneTaskWork) return false;
  if (kernel_->pack != nullptr && product(best_n, k_) > kTilePacked && best_n > kTileColumns) return false;
  if (speed == 1 && (is_half(dtype_) || epilogue_ != nullptr) && product(best_m, best_n) > kHalfTile) return false;
  tile_m_ = best_m;
  tile_n_ = best_n;
  return true;
}

/// Columns are cut for any number of threads: into three tiles for each where rows of b are read in long pieces, else
/// into one, so that the pieces stay as long as they can.
void MatmulPlan::cut_thin(int64_t threads) {
  tile_m_ = m_;
  tile_n_ = n_;
  const bool adjacent_rows = column_[kB] == 1;
  const auto tiles = [&] { return product(ceiling(n_, tile_n_), batches_); };
  const auto tile_bytes = [&] { return product(product(tile_n_, k_), element_bytes_); };
  const auto suits = [&] {
    if (tile_bytes() < 2 * kVectorBytes || tile_n_ <= kThinTile) return false;
    const bool long_pieces = !adjacent_rows || tile_n_ * element_bytes_ >= kThinPiece;
    return tiles() < (long_pieces ? kTasksPerThread * threads : threads);
  };
  while (suits() || (is_half(dtype_) && product(m_, tile_n_) > kHalfTile))
    tile_n_ = round_up(ceiling(tile_n_, 2), kThinUnit);
  tiles_m_ = 1;
  tiles_n_ = ceiling(n_, tile_n_);
  cut_batch(threads, kVectorBytes, tile_bytes());
  if (is_half(dtype_)) slot_bytes_ = round_up(tile_m_ * tile_n_ * static_cast<int64_t>(sizeof(float)), kAlignment);
  add_frame();
}

/// Rows of the matrix are cut for any number of threads, because results are independent. A few long sums are cut too,
/// only by their length.
void MatmulPlan::cut_vector(int64_t threads) {
  tile_n_ = tiles_n_ = 1;
  tile_m_ = m_;
  const auto tile_bytes = [&] { return product(product(tile_m_, k_), element_bytes_); };
  const bool plain = !has_addend_ && !has_bias_ && epilogue_ == nullptr && !is_half(dtype_);
  if (plain && batches_ == 1) {
    if (column_[kA] != 1 && m_ * element_bytes_ <= kColumnBytes) {
      cut_k_ = std::max(ceiling(kColumnPartBytes, m_ * element_bytes_), ceiling(k_, kMostColumnParts));
    } else if (column_[kA] == 1 && m_ < kFewSums) {
      cut_k_ = kSumPart;
    }
    if (cut_k_ > 0 && k_ >= 2 * cut_k_) cuts_ = ceiling(k_, cut_k_);
    if (cuts_ > 1) partials_bytes_ = round_up(m_ * cuts_ * element_bytes_, kAlignment);
  }
  while (ceiling(m_, tile_m_) * batches_ < kTasksPerThread * threads && tile_bytes() >= 2 * kVectorBytes &&
         tile_m_ > kVectorRows) {
    tile_m_ = round_up(ceiling(tile_m_, 2), kVectorRows);
  }
  tiles_m_ = ceiling(m_, tile_m_);
  cut_batch(threads, kVectorBytes, tile_bytes());
  if (cuts_ > 1) {
    tasks_ = (column_[kA] == 1 ? m_ : 1) * cuts_;
    slots_ = std::min(threads, tasks_);
  }
  if (is_half(dtype_)) slot_bytes_ = round_up(tile_m_ * static_cast<int64_t>(sizeof(float)), kAlignment);
  add_frame();
}

/// The number of parts into which sums are cut, each a task: for few long sums, or for a few rows times a matrix with
/// long rows, because parts read whole rows. At most 1: sums are not cut.
int64_t MatmulPlan::parts_of_sums() const {
  const int64_t least = std::min(m_, n_), greatest = std::max(m_, n_), results = product(m_, n_);
  if (least < 2 || batches_ != 1 || is_half(dtype_)) return 1;
  if (epilogue_ != nullptr && epilogue_->frame_bytes > matmul::kJoinFrameBytes) return 1;
  if (k_ / 4 >= greatest && results <= kFewResults) {
    const int64_t lanes = product(least, std::max(greatest, kVectorLanes));
    return std::min({product(lanes, k_) / kPartWork, k_ / kPartDepth, kMostParts});
  }
  const bool in_rows = m_ <= n_ ? column_[kB] == 1 : row_[kA] == 1;
  if (!in_rows || least > kThinRows || greatest < kThinColumns || results > kThinSums) return 1;
  const int64_t bytes = product(product(k_, greatest), element_bytes_);
  if (bytes <= kThinBytes) return 1;
  return std::min({kMostParts, bytes / kThinPartBytes, k_ / std::max(kThinPartDepth, kThinPartRows * least)});
}

/// True iff the sums are cut: by the problem's shape alone.
bool MatmulPlan::plan_parts(const MatmulOptions& options) {
  const int64_t parts = parts_of_sums();
  if (parts < 2) return false;
  const int64_t results = product(m_, n_);
  const int64_t depth = k_ / parts, rest = k_ - depth * parts;
  const int64_t batch_strides[] = {depth * column_[kA], depth * row_[kB], results};
  MatmulProblem problem{};
  problem.dtype = dtype_;
  problem.m = m_;
  problem.n = n_;
  problem.k = depth;
  problem.batch_rank = 1;
  problem.batch_shape = &parts;
  problem.a = {&batch_strides[0], row_[kA], column_[kA]};
  problem.b = {&batch_strides[1], row_[kB], column_[kB]};
  problem.c = {&batch_strides[2], n_, 1};
  equal_parts_ = std::make_unique<MatmulPlan>(problem, options);
  if (rest > 0) {
    problem.k = rest;
    problem.batch_rank = 0;
    last_part_ = std::make_unique<MatmulPlan>(problem, options);
  }
  tasks_ = equal_parts_->tasks();
  cuts_ = parts + (rest > 0 ? 1 : 0);
  cut_k_ = depth;
  partials_bytes_ = round_up(product(cuts_, results) * element_bytes_, kAlignment);
  return true;
}

int64_t MatmulPlan::workspace_bytes() const {
  int64_t bytes = slots_ * slot_bytes_;
  if (equal_parts_ != nullptr) bytes = equal_parts_->workspace_bytes();
  if (last_part_ != nullptr) bytes = std::max(bytes, last_part_->workspace_bytes());
  return partials_bytes_ + bytes;
}

}  // namespace compute::cpu
