// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/contract/matmul.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

namespace compute::cpu {
namespace {

// ---- Elements -----------------------------------------------------------------------------------------------------

template <class T>
struct ComplexNumber {
  T re, im;
};

struct BoolByte {
  uint8_t value;
};

template <class T>
T multiply(T x, T y) {
  if constexpr (std::is_same_v<T, uint16_t>) {
    return static_cast<uint16_t>(uint32_t{x} * y);  // as int the product could overflow
  } else {
    return static_cast<T>(x * y);
  }
}
template <class T>
T add(T x, T y) {
  return static_cast<T>(x + y);
}
template <class T>
ComplexNumber<T> multiply(ComplexNumber<T> x, ComplexNumber<T> y) {
  return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
}
template <class T>
ComplexNumber<T> add(ComplexNumber<T> x, ComplexNumber<T> y) {
  return {x.re + y.re, x.im + y.im};
}
BoolByte multiply(BoolByte x, BoolByte y) { return {static_cast<uint8_t>(x.value != 0 && y.value != 0)}; }
BoolByte add(BoolByte x, BoolByte y) { return {static_cast<uint8_t>(x.value != 0 || y.value != 0)}; }

template <class T>
bool is(T x, int value) {
  return x == static_cast<T>(value);
}
template <class T>
bool is(ComplexNumber<T> x, int value) {
  return x.re == static_cast<T>(value) && x.im == 0;
}
bool is(BoolByte x, int value) { return (x.value != 0) == (value != 0); }

bool is_complex(compute_dtype dtype) { return dtype == COMPUTE_DTYPE_COMPLEX64 || dtype == COMPUTE_DTYPE_COMPLEX128; }

bool is_half(compute_dtype dtype) { return dtype == COMPUTE_DTYPE_FLOAT16 || dtype == COMPUTE_DTYPE_BFLOAT16; }

/// Calls f with a value of the accumulator's type; signed integers count as unsigned, so that they wrap.
template <class F>
decltype(auto) with_accumulator(compute_dtype dtype, const F& f) {
  switch (dtype) {
    case COMPUTE_DTYPE_BOOL:
      return f(BoolByte{1});
    case COMPUTE_DTYPE_INT8:
    case COMPUTE_DTYPE_UINT8:
      return f(uint8_t{1});
    case COMPUTE_DTYPE_INT16:
    case COMPUTE_DTYPE_UINT16:
      return f(uint16_t{1});
    case COMPUTE_DTYPE_INT32:
    case COMPUTE_DTYPE_UINT32:
      return f(uint32_t{1});
    case COMPUTE_DTYPE_INT64:
    case COMPUTE_DTYPE_UINT64:
      return f(uint64_t{1});
    case COMPUTE_DTYPE_FLOAT64:
      return f(1.0);
    case COMPUTE_DTYPE_COMPLEX64:
      return f(ComplexNumber<float>{1, 0});
    case COMPUTE_DTYPE_COMPLEX128:
      return f(ComplexNumber<double>{1, 0});
    default:
      return f(1.0f);
  }
}

int64_t bytes_of(compute_dtype dtype) {
  if (is_half(dtype)) return 2;
  return with_accumulator(dtype, [](auto one) { return static_cast<int64_t>(sizeof one); });
}

/// A run's factor: what the caller gave, or 1.
struct Factor {
  const void* value;
  bool zero, one;
};

template <class T>
constexpr T kOne = T{1};

Factor factor(compute_dtype dtype, const void* given) {
  return with_accumulator(dtype, [given](auto one) -> Factor {
    using T = decltype(one);
    if (given == nullptr) return {&kOne<T>, false, true};
    T value;
    std::memcpy(&value, given, sizeof value);
    return {given, is(value, 0), is(value, 1)};
  });
}

const void* offset(const void* p, int64_t bytes) { return static_cast<const std::byte*>(p) + bytes; }
void* offset(void* p, int64_t bytes) { return static_cast<std::byte*>(p) + bytes; }

// ---- The terms besides the product --------------------------------------------------------------------------------

template <class T>
struct Strided {
  T* data;
  int64_t row, column;
};

/// c = beta · addend + bias; a term whose data is NULL is absent.
template <class T>
void write_terms(int64_t m, int64_t n, Strided<T> c, T beta, Strided<const T> addend, Strided<const T> bias) {
  const bool scaled = !is(beta, 1);
  const auto element = [&](int64_t i, int64_t j, int64_t addend_column, int64_t bias_column) {
    T value{};
    if (addend.data != nullptr) {
      value = addend.data[i * addend.row + j * addend_column];
      if (scaled) value = multiply(beta, value);
    }
    if (bias.data != nullptr) {
      const T term = bias.data[i * bias.row + j * bias_column];
      value = addend.data != nullptr ? add(value, term) : term;
    }
    return value;
  };
  const bool adjacent =
      c.column == 1 && (addend.data == nullptr || addend.column == 1) && (bias.data == nullptr || bias.column == 1);
  for (int64_t i = 0; i < m; ++i) {
    if (adjacent) {
      for (int64_t j = 0; j < n; ++j) c.data[i * c.row + j] = element(i, j, 1, 1);
    } else {
      for (int64_t j = 0; j < n; ++j) {
        c.data[i * c.row + j * c.column] = element(i, j, addend.column, bias.column);
      }
    }
  }
}

// ---- Cuts ---------------------------------------------------------------------------------------------------------

// Multiplications of float32 that take about 2 us: less is not worth another thread.
constexpr int64_t kSerialWork = int64_t{1} << 17;
// A task of a library is cut no smaller than this, or than kLibraryTile rows and columns.
constexpr int64_t kLibraryWork = int64_t{1} << 21;
constexpr int64_t kLibraryTile = 256;
constexpr int64_t kLibraryUnit = 48;  // a multiple of the libraries' register tiles
constexpr int64_t kThin = 12;
constexpr int64_t kThinTile = 2048;
constexpr int64_t kThinResults = 128 << 10;
constexpr int64_t kSmallLibraryTile = 128;
constexpr int64_t kLibraryTasks = 8;  // that justify a small tile
// OpenBLAS's AVX-512 kernels for float32 and float64 pack nothing up to this many multiplications, and are at their
// best there.
constexpr int64_t kUnpackedWork = 1000000;
constexpr int64_t kUnpackedTile = 16;
constexpr int64_t kSmallNarrowWork = 16 * 16 * 16;  // the same without AVX-512, against oneDNN's
// Where the shortest side is from here on, our own AVX-512 kernel is faster than the libraries, and cuts for any number
// of threads.
constexpr int64_t kOwnFloat32 = 128;
// Accumulators of one task in float32, for float16 and bfloat16: 2 MiB.
constexpr int64_t kHalfTile = int64_t{1} << 19;
constexpr int64_t kTasksPerThread = 3;  // for balance
// Of a matrix that is multiplied by a vector: what a task reads at least, which takes about 3 us.
constexpr int64_t kVectorBytes = 64 << 10;
// A matrix of few sums that are long is computed in parts of at least so many multiplications.
constexpr int64_t kFewResults = 16 << 10;
constexpr int64_t kPartWork = int64_t{1} << 19;
constexpr int64_t kMostParts = 16;
constexpr int64_t kJoined = 64;
constexpr int64_t kJoinBytes = 16 << 10;  // of results of parts, from other threads' caches: about 2 us
constexpr int64_t kVectorRows = 64;       // tasks are multiples of this, so that none shares a cache line
constexpr int64_t kFewSums = 64;          // fewer than these, and longer ones than two parts, are cut
constexpr int64_t kMostColumnParts = 32;  // of sums along rows that are adjacent elements
constexpr int64_t kColumnPartBytes = 256 << 10;
constexpr int64_t kColumnBytes = 64 << 10;  // of longer columns a part is worth a task
constexpr int64_t kSumPart = 16 << 10;      // elements of a part
constexpr int64_t kAlignment = 64;

int64_t ceiling(int64_t x, int64_t unit) { return (x + unit - 1) / unit; }
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

bool fits_int(int64_t x) { return x <= std::numeric_limits<int>::max(); }

}  // namespace

// ---- Preparing ----------------------------------------------------------------------------------------------------

MatmulPlan::MatmulPlan(const MatmulProblem& problem, const MatmulOptions& options)
    : dtype_(problem.dtype),
      element_bytes_(bytes_of(problem.dtype)),
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
  engine_ = choose_engine(options);
  if (is_vector_) {
    cut_vector(std::max(options.threads, 1));
    return;
  }
  if (engine_ == MatmulEngine::own) {
    // The register tile is wide along columns: adjacent elements of c, and the longer side, belong there.
    const int64_t columns = kernels_->by_dtype[dtype_].columns;
    const bool rows_adjacent = m_ > 1 && row_[kC] == 1 && (n_ == 1 || column_[kC] != 1);
    if (rows_adjacent || (2 * n_ < columns && n_ < m_)) transpose();
  }
  cut(options);
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

/// A batch that shares b is more rows of a, if the rows go on at the same distance; one that shares a is more columns
/// of b.
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

/// True iff all three matrices are such as BLAS takes, perhaps after transposing the whole product.
bool MatmulPlan::describe_for_blas() {
  // Row-major, or the transpose of that; the stride of an axis of one element says nothing.
  const auto describe = [](int64_t rows, int64_t columns, int64_t row, int64_t column, BlasMatrix& out) {
    if ((column == 1 || columns == 1) && (row >= columns || rows == 1)) {
      out = {false, rows == 1 ? columns : row};
      return true;
    }
    if ((row == 1 || rows == 1) && (column >= rows || columns == 1)) {
      out = {true, columns == 1 ? rows : column};
      return true;
    }
    return false;
  };
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (describe(m_, k_, row_[kA], column_[kA], blas_[kA]) && describe(k_, n_, row_[kB], column_[kB], blas_[kB]) &&
        describe(m_, n_, row_[kC], column_[kC], blas_[kC]) && !blas_[kC].transposed) {
      return true;
    }
    transpose();
  }
  return false;
}

/// True iff OpenBLAS beats the other two, or may: measured, with kernels that suit the processor.
bool MatmulPlan::openblas_is_best(const MatmulOptions& options) const {
  const int64_t work = product(product(m_, n_), k_);
  const int64_t results = product(m_, n_);
  if (results == 1) return true;
  if (options.isa != InstructionSet::avx512) return work <= kSmallNarrowWork;
  if (dtype_ == COMPUTE_DTYPE_FLOAT32) return work <= kUnpackedWork && (k_ <= 4096 || results < 64);
  if (dtype_ == COMPUTE_DTYPE_FLOAT64) return work <= 8 * kUnpackedWork || k_ <= 128 || cuts_to_unpacked();
  return std::min(m_, n_) < 64;
}

/// True iff the product is thin or flat enough for tiles of kUnpackedWork.
bool MatmulPlan::cuts_to_unpacked() const { return k_ <= 256 || (k_ <= 4096 && (m_ <= 4 || n_ <= 12)); }

/// True iff one of the matrices is a vector that the own kernel for vectors takes: then it is b, perhaps after
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

/// True iff each result is one product, and rows or columns of them can be written as they come: libraries write c
/// twice.
bool MatmulPlan::is_outer() const {
  return k_ == 1 && (dtype_ == COMPUTE_DTYPE_FLOAT32 || dtype_ == COMPUTE_DTYPE_FLOAT64) && !has_addend_ &&
         !has_bias_ && ((column_[kB] == 1 && column_[kC] == 1) || (row_[kA] == 1 && row_[kC] == 1));
}

/// Sets the library's pointer where one is chosen. Everything here depends on the problem and the machine, never on
/// threads.
MatmulEngine MatmulPlan::choose_engine(const MatmulOptions& options) {
  if (options.engine == MatmulEngine::automatic && find_vector()) return MatmulEngine::own;
  const bool is_float32 = dtype_ == COMPUTE_DTYPE_FLOAT32;
  const bool in_libraries = is_float32 || dtype_ == COMPUTE_DTYPE_FLOAT64 || dtype_ == COMPUTE_DTYPE_COMPLEX64 ||
                            dtype_ == COMPUTE_DTYPE_COMPLEX128;
  if (!in_libraries || k_ == 0 || options.engine == MatmulEngine::own) return MatmulEngine::own;
  if (options.engine == MatmulEngine::automatic && is_outer()) return MatmulEngine::own;
  if (!describe_for_blas()) return MatmulEngine::own;

  const bool narrowed = options.engine != MatmulEngine::automatic;
  const Onednn* const onednn_found = is_float32 && options.engine != MatmulEngine::openblas ? onednn() : nullptr;
  const Openblas* openblas_found = options.engine != MatmulEngine::onednn ? openblas() : nullptr;
  if (openblas_found != nullptr) {
    const int64_t greatest = std::max({m_, n_, k_, blas_[kA].leading, blas_[kB].leading, blas_[kC].leading});
    if (!fits_int(greatest) || (!narrowed && !openblas_found->suits_processor)) openblas_found = nullptr;
  }
  MatmulEngine choice = MatmulEngine::own;
  if (narrowed) {
    choice = onednn_found != nullptr     ? MatmulEngine::onednn
             : openblas_found != nullptr ? MatmulEngine::openblas
                                         : MatmulEngine::own;
  } else if (is_float32 && onednn_found != nullptr && !openblas_is_best(options)) {
    choice = options.isa == InstructionSet::avx512 && std::min({m_, n_, k_}) >= kOwnFloat32 ? MatmulEngine::own
                                                                                            : MatmulEngine::onednn;
  } else if (openblas_found != nullptr && openblas_is_best(options)) {
    choice = MatmulEngine::openblas;
  } else if (openblas_found != nullptr && options.isa != InstructionSet::avx512) {
    choice = MatmulEngine::openblas;
  }
  if (choice == MatmulEngine::onednn) onednn_ = onednn_found;
  if (choice == MatmulEngine::openblas) openblas_ = openblas_found;
  return choice;
}

void MatmulPlan::cut(const MatmulOptions& options) {
  const GemmKernel& kernel = kernels_->by_dtype[dtype_];
  const int64_t depth = std::max<int64_t>(k_, 1);
  const int64_t cost = relative_cost(dtype_);
  tile_m_ = m_;
  tile_n_ = n_;
  const auto work = [&] { return product(product(tile_m_, tile_n_), product(depth, cost)); };
  const auto tiles = [&] { return product(product(ceiling(m_, tile_m_), ceiling(n_, tile_n_)), batches_); };
  const auto halve_longer = [&](int64_t unit_m, int64_t unit_n) {
    if (tile_m_ > tile_n_ ? tile_m_ > unit_m : tile_n_ <= unit_n) {
      tile_m_ = round_up(ceiling(tile_m_, 2), unit_m);
    } else {
      tile_n_ = round_up(ceiling(tile_n_, 2), unit_n);
    }
  };
  const int64_t threads = std::max(options.threads, 1);
  if (engine_ == MatmulEngine::own) {
    // Tiles of our own kernel may be cut anywhere without changing a bit.
    const auto divisible = [&] { return tile_m_ > kernel.rows || tile_n_ > kernel.columns; };
    while ((is_half(dtype_) || epilogue_ != nullptr) && product(tile_m_, tile_n_) > kHalfTile)
      halve_longer(kernel.rows, kernel.columns);
    if (threads > 1) {
      // A single term per result takes the time to write it, which is fastest along long rows.
      while (k_ == 1 && tiles() < kTasksPerThread * threads && work() >= 2 * kSerialWork && tile_m_ > kernel.rows)
        tile_m_ = round_up(ceiling(tile_m_, 2), kernel.rows);
      while (tiles() < kTasksPerThread * threads && work() >= 2 * kSerialWork && divisible()) {
        halve_longer(kernel.rows, kernel.columns);
      }
    }
  } else {
    // A library's result may depend on the tile, so that the tile may not depend on the number of threads.
    if (engine_ == MatmulEngine::openblas && options.isa == InstructionSet::avx512 && cuts_to_unpacked() &&
        k_ > kThin && !is_complex(dtype_)) {
      while (product(product(tile_m_, tile_n_), k_) > kUnpackedWork && std::max(tile_m_, tile_n_) > kUnpackedTile) {
        halve_longer(kUnpackedTile, kUnpackedTile);
      }
    }
    // A thin product reads or writes one matrix but once, and fastest along long rows.
    const bool long_rows = m_ <= n_ ? column_[kB] == 1 : row_[kA] == 1;
    const bool thin = k_ <= kThin || (std::min(m_, n_) <= kThin && long_rows);
    const int64_t tile = thin ? kThinTile : kLibraryTile;
    while (work() > kLibraryWork && std::max(tile_m_, tile_n_) > tile) halve_longer(kLibraryUnit, kLibraryUnit);
    // What it writes takes the time, where k is short.
    while (k_ <= kThin && product(tile_m_, tile_n_) > kThinResults && tile_m_ > kLibraryUnit)
      tile_m_ = round_up(ceiling(tile_m_, 2), kLibraryUnit);
    while (!thin && work() > kLibraryWork && std::max(tile_m_, tile_n_) > kSmallLibraryTile &&
           tiles() < kLibraryTasks) {
      halve_longer(kLibraryUnit, kLibraryUnit);
    }
  }
  tiles_m_ = ceiling(m_, tile_m_);
  tiles_n_ = ceiling(n_, tile_n_);
  if (tiles_m_ * tiles_n_ == 1) {
    const int64_t for_balance = threads == 1 ? batches_ : ceiling(batches_, kTasksPerThread * threads);
    const int64_t for_work = std::min(batches_, ceiling(kSerialWork, std::max<int64_t>(work(), 1)));
    batch_chunk_ = std::max(for_balance, for_work);
  }
  tasks_ = tiles_m_ * tiles_n_ * ceiling(batches_, batch_chunk_);
  slots_ = std::min(threads, tasks_);
  if (engine_ == MatmulEngine::own && k_ > 0) {
    kernel_scratch_bytes_ = round_up(kernel.scratch_bytes(tile_m_, tile_n_, k_), kAlignment);
    slot_bytes_ = kernel_scratch_bytes_;
    if (is_half(dtype_)) slot_bytes_ += round_up(tile_m_ * tile_n_ * static_cast<int64_t>(sizeof(float)), kAlignment);
  }
  frame_ = slot_bytes_;
  if (epilogue_ != nullptr) slot_bytes_ += round_up(epilogue_->frame_bytes, kAlignment);
}

/// Rows of the matrix are cut for any number of threads, since each result is by itself. A few long sums are cut too,
/// by their length alone.
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
  if (tiles_m_ == 1) {
    const int64_t for_balance = threads == 1 ? batches_ : ceiling(batches_, kTasksPerThread * threads);
    const int64_t for_work = std::min(batches_, ceiling(kVectorBytes, std::max<int64_t>(tile_bytes(), 1)));
    batch_chunk_ = std::max(for_balance, for_work);
  }
  tasks_ = cuts_ > 1 ? (column_[kA] == 1 ? m_ : 1) * cuts_ : tiles_m_ * ceiling(batches_, batch_chunk_);
  slots_ = std::min(threads, tasks_);
  if (is_half(dtype_)) slot_bytes_ = round_up(tile_m_ * static_cast<int64_t>(sizeof(float)), kAlignment);
  frame_ = slot_bytes_;
  if (epilogue_ != nullptr) slot_bytes_ += round_up(epilogue_->frame_bytes, kAlignment);
}

/// True iff the sums are so long, and so few, that they are cut: by the problem's shape alone.
bool MatmulPlan::plan_parts(const MatmulOptions& options) {
  const int64_t results = product(m_, n_);
  const bool plain = !has_addend_ && !has_bias_ && epilogue_ == nullptr && !is_half(dtype_) && batches_ == 1;
  if (options.engine != MatmulEngine::automatic || !plain || std::min(m_, n_) < 2 || results > kFewResults ||
      k_ / 4 < std::max(m_, n_))
    return false;
  const int64_t parts = std::min(product(results, k_) / kPartWork, kMostParts);
  if (parts < 2) return false;
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
  MatmulOptions own = options;
  equal_parts_ = std::make_unique<MatmulPlan>(problem, own);
  if (rest > 0) {
    problem.k = rest;
    problem.batch_rank = 0;
    last_part_ = std::make_unique<MatmulPlan>(problem, own);
  }
  engine_ = equal_parts_->engine();
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

// ---- Running ------------------------------------------------------------------------------------------------------

struct MatmulPlan::Execution {
  const MatmulPlan* plan;
  const MatmulRun* run;
  Factor alpha, beta;
  std::atomic<bool> failed{false};
};

namespace {

// Tasks [next, end) that nobody has taken yet, in a cache line of their own.
struct alignas(kAlignment) TaskRange {
  std::atomic<int64_t> next;
  int64_t end;
};

}  // namespace

bool MatmulPlan::run(const MatmulRun& run) const {
  if (tasks_ == 0) return true;
  Execution execution{this, &run, factor(dtype_, run.alpha), factor(dtype_, run.beta)};
  if (equal_parts_ != nullptr) return run_parts(execution);
  if (cuts_ > 1 && !execution.alpha.zero) {
    run_split(execution);
    return true;
  }
  if (tasks_ == 1) return run_task(execution, 0, run.workspace);
  if (slots_ == 1 || run.parallel_for == nullptr) {
    bool succeeded = true;
    for (int64_t task = 0; task < tasks_; ++task) succeeded = run_task(execution, task, run.workspace) && succeeded;
    return succeeded;
  }
  if (slot_bytes_ > 0) {
    run_in_slots(execution);
  } else {
    const auto tasks = [](void* user, int64_t begin, int64_t end) {
      Execution& shared = *static_cast<Execution*>(user);
      for (int64_t task = begin; task < end; ++task) {
        if (!shared.plan->run_task(shared, task, nullptr)) shared.failed.store(true, std::memory_order_relaxed);
      }
    };
    run.parallel_for(tasks_, 1, tasks, &execution);
  }
  return !execution.failed.load(std::memory_order_relaxed);
}

/// Tasks that need workspace: each part of it has one user, who begins with the same tasks each time, for the sake of
/// its cache, and then takes what others have not begun.
void MatmulPlan::run_in_slots(Execution& execution) const {
  constexpr int64_t kRanges = 64;
  struct Shared {
    Execution& execution;
    int64_t count;
    TaskRange ranges[kRanges];
  };
  Shared shared{execution, std::min(slots_, kRanges), {}};
  for (int64_t i = 0; i < shared.count; ++i) {
    shared.ranges[i].next.store(tasks_ * i / shared.count, std::memory_order_relaxed);
    shared.ranges[i].end = tasks_ * (i + 1) / shared.count;
  }
  const auto body = [](void* user, int64_t begin, int64_t end) {
    Shared& all = *static_cast<Shared*>(user);
    const MatmulPlan& plan = *all.execution.plan;
    for (int64_t slot = begin; slot < end; ++slot) {
      void* const scratch = offset(all.execution.run->workspace, slot * plan.slot_bytes_);
      for (int64_t step = 0; step < all.count; ++step) {
        TaskRange& range = all.ranges[(slot + step) % all.count];
        while (range.next.load(std::memory_order_relaxed) < range.end) {
          const int64_t task = range.next.fetch_add(1, std::memory_order_relaxed);
          if (task >= range.end) break;
          if (!plan.run_task(all.execution, task, scratch)) all.execution.failed.store(true, std::memory_order_relaxed);
        }
      }
    }
  };
  execution.run->parallel_for(slots_, 1, body, &shared);
}

/// Results from sums that are cut: first all parts, then their sums in order.
void MatmulPlan::run_split(const Execution& execution) const {
  const auto parts = [](void* user, int64_t begin, int64_t end) {
    const Execution& shared = *static_cast<const Execution*>(user);
    const MatmulPlan& plan = *shared.plan;
    const void* const a = plan.transposed_ ? shared.run->b : shared.run->a;
    const void* const b = plan.transposed_ ? shared.run->a : shared.run->b;
    const GemmKernel& kernel = plan.kernels_->by_dtype[plan.dtype_];
    const bool along_rows = plan.column_[kA] == 1;  // then a part belongs to one row, else to all
    for (int64_t part = begin; part < end; ++part) {
      const int64_t row = along_rows ? part / plan.cuts_ : 0, first = part % plan.cuts_ * plan.cut_k_;
      const int64_t rows = along_rows ? 1 : plan.m_;
      const int64_t start = row * plan.row_[kA] + first * plan.column_[kA];
      kernel.run_vector({rows, 1, std::min(plan.cut_k_, plan.k_ - first), offset(a, start * plan.element_bytes_),
                         plan.row_[kA], plan.column_[kA], offset(b, first * plan.element_bytes_), 1, 1,
                         offset(shared.run->workspace, part * rows * plan.element_bytes_), 1, 1,
                         factor(plan.dtype_, nullptr).value, false, nullptr});
    }
  };
  Execution& shared = const_cast<Execution&>(execution);
  if (slots_ == 1 || execution.run->parallel_for == nullptr) {
    parts(&shared, 0, tasks_);
  } else {
    execution.run->parallel_for(tasks_, 1, parts, &shared);
  }
  if (column_[kA] == 1) {
    join(execution, {m_, 1, cuts_, 1, row_[kC], 0});
  } else {
    join(execution, {1, m_, 0, m_, 0, row_[kC]});
  }
}

/// A matrix of sums that are cut.
bool MatmulPlan::run_parts(const Execution& execution) const {
  MatmulRun part = *execution.run;
  part.c = execution.run->workspace;
  part.alpha = nullptr;
  part.workspace = offset(execution.run->workspace, partials_bytes_);
  if (!execution.alpha.zero) {
    if (!equal_parts_->run(part)) return false;
    if (last_part_ != nullptr) {
      const int64_t first = cut_k_ * (cuts_ - 1);
      part.a = offset(part.a, first * column_[kA] * element_bytes_);
      part.b = offset(part.b, first * row_[kB] * element_bytes_);
      part.c = offset(part.c, (cuts_ - 1) * m_ * n_ * element_bytes_);
      if (!last_part_->run(part)) return false;
    }
  }
  join(execution, {m_, n_, n_, m_ * n_, row_[kC], column_[kC]});
  return true;
}

/// Adds up the parts, in order, and writes the results: in chunks of a row, on several threads where there is much.
void MatmulPlan::join(const Execution& execution, const Parts& parts) const {
  struct Shared {
    const Execution& execution;
    const Parts& parts;
    int64_t chunks;  // of a row
  } shared{execution, parts, ceiling(parts.columns, kJoined)};
  const auto body = [](void* user, int64_t begin, int64_t end) {
    const Shared& all = *static_cast<const Shared*>(user);
    for (int64_t chunk = begin; chunk < end; ++chunk)
      all.execution.plan->join_chunk(all.execution, all.parts, chunk / all.chunks, chunk % all.chunks * kJoined);
  };
  const int64_t chunks = parts.rows * shared.chunks;
  const int64_t grain = ceiling(kJoinBytes, cuts_ * std::min(parts.columns, kJoined) * element_bytes_);
  if (slots_ == 1 || chunks <= grain || execution.run->parallel_for == nullptr) {
    body(&shared, 0, chunks);
  } else {
    execution.run->parallel_for(chunks, grain, body, &shared);
  }
}

void MatmulPlan::join_chunk(const Execution& execution, const Parts& parts, int64_t row, int64_t first) const {
  with_accumulator(dtype_, [&](auto one) {
    using T = decltype(one);
    T alpha;
    std::memcpy(&alpha, execution.alpha.value, sizeof alpha);
    T sums[kJoined];
    const T* partial = static_cast<const T*>(execution.run->workspace) + row * parts.row_stride + first;
    T* const c = static_cast<T*>(execution.run->c) + row * parts.c_row + first * parts.c_column;
    const int64_t n = std::min(kJoined, parts.columns - first);
    if (execution.alpha.zero) {
      std::fill_n(sums, n, T{});
    } else {
      std::copy_n(partial, n, sums);
      for (int64_t part = 1; part < cuts_; ++part) {
        partial += parts.part_stride;
        for (int64_t j = 0; j < n; ++j) sums[j] = add(sums[j], partial[j]);
      }
    }
    for (int64_t j = 0; j < n; ++j) c[j * parts.c_column] = execution.alpha.one ? sums[j] : multiply(alpha, sums[j]);
  });
}

bool MatmulPlan::run_task(const Execution& execution, int64_t task, void* scratch) const {
  const MatmulRun& run = *execution.run;
  const int64_t tiles = tiles_m_ * tiles_n_;
  const int64_t tile_index = task % tiles;
  const int64_t i = tile_index / tiles_n_ * tile_m_;
  const int64_t j = tile_index % tiles_n_ * tile_n_;
  const void* const data[kOperands] = {transposed_ ? run.b : run.a, transposed_ ? run.a : run.b, run.c,
                                       has_addend_ && !execution.beta.zero ? run.addend : nullptr,
                                       has_bias_ ? run.bias : nullptr};
  int64_t start[kOperands];  // of the tile in each matrix, in elements
  for (int operand = 0; operand < kOperands; ++operand) {
    start[operand] = (operand != kB ? i * row_[operand] : 0) + (operand != kA ? j * column_[operand] : 0);
  }
  if (epilogue_ != nullptr) epilogue_->begin(epilogue_->user, run.epilogue_scalars, offset(scratch, frame_));
  bool succeeded = true;
  const int64_t first = task / tiles * batch_chunk_;
  const int64_t end = std::min(first + batch_chunk_, batches_);
  const bool plain = data[kAddend] == nullptr && data[kBias] == nullptr && k_ > 0 && !execution.alpha.zero &&
                     !is_half(dtype_) && batch_.size() <= 1 && epilogue_ == nullptr;
  if (plain) {  // nothing but three addresses changes from entry to entry, which may be very small
    const auto place = [&](int operand) {
      const int64_t stride = batch_.empty() ? 0 : batch_[0].strides[operand];
      return offset(data[operand], (start[operand] + first * stride) * element_bytes_);
    };
    const auto step = [&](int operand) { return batch_.empty() ? 0 : batch_[0].strides[operand] * element_bytes_; };
    const int64_t step_a = step(kA), step_b = step(kB), step_c = step(kC);
    Tile tile = {std::min(tile_m_, m_ - i),
                 std::min(tile_n_, n_ - j),
                 place(kA),
                 place(kB),
                 const_cast<void*>(place(kC)),
                 nullptr,
                 nullptr};
    for (int64_t entry = first; entry < end; ++entry) {
      succeeded = run_product(execution, tile, Terms::kNone, scratch) && succeeded;
      tile.a = offset(tile.a, step_a);
      tile.b = offset(tile.b, step_b);
      tile.c = offset(tile.c, step_c);
    }
    return succeeded;
  }
  for (int64_t entry = first; entry < end; ++entry) {
    int64_t at[kOperands];
    for (int operand = 0; operand < kOperands; ++operand) at[operand] = start[operand];
    int64_t rest = entry;
    for (size_t axis = batch_.size(); axis-- > 0;) {
      // The outermost index needs no division.
      const int64_t index = axis == 0 ? rest : rest % batch_[axis].extent;
      if (axis != 0) rest /= batch_[axis].extent;
      for (int operand = 0; operand < kOperands; ++operand) at[operand] += index * batch_[axis].strides[operand];
    }
    const auto place = [&](int operand) -> const void* {
      return data[operand] == nullptr ? nullptr : offset(data[operand], at[operand] * element_bytes_);
    };
    const Tile tile = {std::min(tile_m_, m_ - i),
                       std::min(tile_n_, n_ - j),
                       place(kA),
                       place(kB),
                       const_cast<void*>(place(kC)),
                       place(kAddend),
                       place(kBias)};
    succeeded = run_tile(execution, tile, scratch) && succeeded;
  }
  return succeeded;
}

bool MatmulPlan::run_tile(const Execution& execution, const Tile& tile, void* scratch) const {
  if (is_half(dtype_)) {
    run_half_tile(execution, tile, scratch);
    return true;
  }
  const bool has_product = k_ > 0 && !execution.alpha.zero;
  // beta · c is the engine's where it can be; other terms are written first and the product is added.
  const bool in_place = tile.addend == tile.c && addend_like_c_ && tile.bias == nullptr;
  const bool scales_c = in_place && (execution.beta.one || engine_ != MatmulEngine::own) && has_product;
  const bool has_terms = tile.addend != nullptr || tile.bias != nullptr;
  if (!scales_c && (has_terms || !has_product)) {
    with_accumulator(dtype_, [&](auto one) {
      using T = decltype(one);
      T beta;
      std::memcpy(&beta, execution.beta.value, sizeof beta);
      write_terms<T>(tile.m, tile.n, {static_cast<T*>(tile.c), row_[kC], column_[kC]}, beta,
                     {static_cast<const T*>(tile.addend), row_[kAddend], column_[kAddend]},
                     {static_cast<const T*>(tile.bias), row_[kBias], column_[kBias]});
    });
  }
  const Terms terms = scales_c ? Terms::kBetaC : has_terms ? Terms::kC : Terms::kNone;
  if (has_product && !run_product(execution, tile, terms, scratch)) return false;
  if (epilogue_ != nullptr) apply_epilogue(tile, offset(scratch, frame_));
  return true;
}

/// For dtypes that are their own accumulators.
void MatmulPlan::apply_epilogue(const Tile& tile, void* frame) const {
  const bool along_rows = row_[kC] == 1 && column_[kC] != 1;  // the elements of a column of c are neighbours
  const int64_t lines = along_rows ? tile.n : tile.m, length = along_rows ? tile.m : tile.n;
  const int64_t next_line = along_rows ? column_[kC] : row_[kC], step = along_rows ? row_[kC] : column_[kC];
  with_accumulator(dtype_, [&](auto one) {
    using T = decltype(one);
    T packed[MatmulEpilogue::kMostElements];
    for (int64_t i = 0; i < lines; ++i) {
      for (int64_t first = 0; first < length; first += MatmulEpilogue::kMostElements) {
        const int64_t n = std::min(MatmulEpilogue::kMostElements, length - first);
        T* const c = static_cast<T*>(tile.c) + i * next_line + first * step;
        if (step == 1) {
          epilogue_->apply(epilogue_->user, frame, c, c, n);
          continue;
        }
        for (int64_t j = 0; j < n; ++j) packed[j] = c[j * step];
        epilogue_->apply(epilogue_->user, frame, packed, packed, n);
        for (int64_t j = 0; j < n; ++j) c[j * step] = packed[j];
      }
    }
  });
}

/// c = alpha a b plus what `terms` says of c.
bool MatmulPlan::run_product(const Execution& execution, const Tile& tile, Terms terms, void* scratch) const {
  if (engine_ != MatmulEngine::own) {
    static constexpr ComplexNumber<double> kZero = {0, 0};  // also of every other type
    const void* const beta = terms == Terms::kBetaC ? execution.beta.value
                             : terms == Terms::kC   ? factor(dtype_, nullptr).value
                                                    : static_cast<const void*>(&kZero);
    return run_library(execution, tile, beta);
  }
  const GemmKernel& kernel = kernels_->by_dtype[dtype_];
  const auto run = is_vector_ ? kernel.run_vector : kernel.run;
  run({tile.m, tile.n, k_, tile.a, row_[kA], column_[kA], tile.b, row_[kB], column_[kB], tile.c, row_[kC], column_[kC],
       execution.alpha.value, terms != Terms::kNone, scratch});
  return true;
}

bool MatmulPlan::run_library(const Execution& execution, const Tile& tile, const void* beta) const {
  const auto value = [](const auto* type, const void* p) {
    std::remove_cv_t<std::remove_pointer_t<decltype(type)>> x;
    std::memcpy(&x, p, sizeof x);
    return x;
  };
  const BlasMatrix& a = blas_[kA];
  const BlasMatrix& b = blas_[kB];
  const int64_t ldc = blas_[kC].leading;
  const void* const alpha = execution.alpha.value;
  if (engine_ == MatmulEngine::onednn) {
    constexpr const float* kFloat = nullptr;
    return onednn_->sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', tile.m, tile.n, k_, value(kFloat, alpha),
                          static_cast<const float*>(tile.a), a.leading, static_cast<const float*>(tile.b), b.leading,
                          value(kFloat, beta), static_cast<float*>(tile.c), ldc);
  }
  const auto call = [&](auto gemm, auto alpha_value, auto beta_value, auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    const int a_transposed = a.transposed ? Openblas::kTranspose : Openblas::kNoTranspose;
    const int b_transposed = b.transposed ? Openblas::kTranspose : Openblas::kNoTranspose;
    gemm(Openblas::kRowMajor, a_transposed, b_transposed, static_cast<int>(tile.m), static_cast<int>(tile.n),
         static_cast<int>(k_), alpha_value, static_cast<const T*>(tile.a), static_cast<int>(a.leading),
         static_cast<const T*>(tile.b), static_cast<int>(b.leading), beta_value, static_cast<T*>(tile.c),
         static_cast<int>(ldc));
  };
  const OneOpenmpThread one(openblas_->openmp);
  switch (dtype_) {
    case COMPUTE_DTYPE_FLOAT32: {
      float* const type = nullptr;
      call(openblas_->sgemm, value(type, alpha), value(type, beta), type);
      break;
    }
    case COMPUTE_DTYPE_FLOAT64: {
      double* const type = nullptr;
      call(openblas_->dgemm, value(type, alpha), value(type, beta), type);
      break;
    }
    case COMPUTE_DTYPE_COMPLEX64:
      call(openblas_->cgemm, alpha, beta, static_cast<void*>(nullptr));
      break;
    default:
      call(openblas_->zgemm, alpha, beta, static_cast<void*>(nullptr));
      break;
  }
  return true;
}

void MatmulPlan::run_half_tile(const Execution& execution, const Tile& tile, void* scratch) const {
  const HalfRows& rows = dtype_ == COMPUTE_DTYPE_FLOAT16 ? kernels_->float16 : kernels_->bfloat16;
  const bool has_product = k_ > 0 && !execution.alpha.zero;
  float* const sums = static_cast<float*>(offset(scratch, kernel_scratch_bytes_));
  if (has_product) {
    const GemmKernel& kernel = kernels_->by_dtype[dtype_];
    const auto run = is_vector_ ? kernel.run_vector : kernel.run;
    run({tile.m, tile.n, k_, tile.a, row_[kA], column_[kA], tile.b, row_[kB], column_[kB], sums, tile.n, 1,
         &kOne<float>, false, scratch});
  }
  float alpha, beta;
  std::memcpy(&alpha, execution.alpha.value, sizeof alpha);
  std::memcpy(&beta, execution.beta.value, sizeof beta);
  constexpr int64_t kPiece = MatmulEpilogue::kMostElements;
  float result[kPiece];
  float term[kPiece];
  uint16_t rounded[kPiece];
  for (int64_t i = 0; i < tile.m; ++i) {
    for (int64_t first = 0; first < tile.n; first += kPiece) {
      const int64_t n = std::min(kPiece, tile.n - first);
      const auto element = [&](const void* matrix, int operand) {
        return static_cast<const uint16_t*>(matrix) + i * row_[operand] + first * column_[operand];
      };
      if (has_product) {
        for (int64_t j = 0; j < n; ++j) result[j] = alpha * sums[i * tile.n + first + j];
      } else {
        std::fill_n(result, n, 0.0f);
      }
      if (tile.addend != nullptr) {
        rows.widen(element(tile.addend, kAddend), column_[kAddend], term, n);
        for (int64_t j = 0; j < n; ++j) result[j] += beta * term[j];
      }
      if (tile.bias != nullptr) {
        rows.widen(element(tile.bias, kBias), column_[kBias], term, n);
        for (int64_t j = 0; j < n; ++j) result[j] += term[j];
      }
      auto* const c = const_cast<uint16_t*>(element(tile.c, kC));
      if (epilogue_ == nullptr) {
        rows.narrow(result, c, column_[kC], n);
        continue;
      }
      epilogue_->apply(epilogue_->user, offset(scratch, frame_), result, rounded, n);
      for (int64_t j = 0; j < n; ++j) c[j * column_[kC]] = rounded[j];
    }
  }
}

}  // namespace compute::cpu
