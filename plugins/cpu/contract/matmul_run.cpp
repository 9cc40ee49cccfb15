// SPDX-License-Identifier: Apache-2.0
// A run of a planned matrix product: tasks, their tiles, and the sums of parts.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "plugins/cpu/contract/matmul.hpp"
#include "plugins/cpu/contract/matmul_parts.hpp"

namespace compute::cpu {
namespace {

using matmul::ceiling;
using matmul::is_half;
using matmul::kAlignment;

constexpr int64_t kJoined = 64;
constexpr int64_t kShortRow = 24, kMoved = 8;  // of sums, which are moved together: rows are kMoved longer
constexpr int64_t kJoinBytes = 16 << 10;       // of results of parts, from other threads' caches: about 2 us

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

/// A run's factor: the caller's, or 1.
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
  const bool is_copy = (addend.data == nullptr) != (bias.data == nullptr) && (addend.data == nullptr || !scaled);
  if (adjacent && is_copy) {
    const Strided<const T>& term = addend.data != nullptr ? addend : bias;
    if (term.row == n && c.row == n) {
      n *= m;
      m = 1;
    }
    for (int64_t i = 0; i < m; ++i)  // c may be the term
      std::memmove(c.data + i * c.row, term.data + i * term.row, static_cast<size_t>(n) * sizeof(T));
    return;
  }
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

}  // namespace

// ---- Running ------------------------------------------------------------------------------------------------------

struct MatmulPlan::Execution {
  const MatmulPlan* plan;
  const MatmulRun* run;
  Factor alpha, beta;
};

namespace {

// Tasks [next, end) that no thread has taken yet, in a separate cache line.
struct alignas(kAlignment) TaskRange {
  std::atomic<int64_t> next;
  int64_t end;
};

}  // namespace

void MatmulPlan::run(const MatmulRun& run) const {
  if (tasks_ == 0) return;
  Execution execution{this, &run, factor(dtype_, run.alpha), factor(dtype_, run.beta)};
  if (equal_parts_ != nullptr) return run_parts(execution);
  if (cuts_ > 1 && !execution.alpha.zero) return run_split(execution);
  if (tasks_ == 1) return run_task(execution, 0, run.workspace);
  if (slots_ == 1 || run.parallel_for == nullptr) {
    for (int64_t task = 0; task < tasks_ && !run.is_cancelled(); ++task) run_task(execution, task, run.workspace);
  } else if (slot_bytes_ > 0) {
    run_in_slots(execution);
  } else {
    const auto tasks = [](void* user, int64_t begin, int64_t end) {
      const Execution& shared = *static_cast<const Execution*>(user);
      for (int64_t task = begin; task < end; ++task) shared.plan->run_task(shared, task, nullptr);
    };
    run.parallel_for(tasks_, 1, tasks, &execution);
  }
}

/// Tasks that need workspace: each part of it has one thread, which begins with the same tasks each time, for the sake
/// of its cache, and then takes tasks that other threads have not begun.
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
        while (range.next.load(std::memory_order_relaxed) < range.end && !all.execution.run->is_cancelled()) {
          const int64_t task = range.next.fetch_add(1, std::memory_order_relaxed);
          if (task >= range.end) break;
          plan.run_task(all.execution, task, scratch);
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
    const GemmKernel& kernel = *plan.kernel_;
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
void MatmulPlan::run_parts(const Execution& execution) const {
  MatmulRun part = *execution.run;
  part.c = execution.run->workspace;
  part.alpha = nullptr;
  part.workspace = offset(execution.run->workspace, partials_bytes_);
  if (!execution.alpha.zero) {
    equal_parts_->run(part);
    if (last_part_ != nullptr) {
      const int64_t first = cut_k_ * (cuts_ - 1);
      part.a = offset(part.a, first * column_[kA] * element_bytes_);
      part.b = offset(part.b, first * row_[kB] * element_bytes_);
      part.c = offset(part.c, (cuts_ - 1) * m_ * n_ * element_bytes_);
      last_part_->run(part);
    }
  }
  join(execution, {m_, n_, n_, m_ * n_, row_[kC], column_[kC]});
}

/// Adds up the parts, in order, and the other terms, and writes the results: in chunks of a row, on several threads for
/// large results.
void MatmulPlan::join(const Execution& execution, const Parts& parts) const {
  struct Shared {
    const Execution& execution;
    const Parts& parts;
    int64_t chunks;  // of a row
  } shared{execution, parts, ceiling(parts.columns, kJoined)};
  const auto body = [](void* user, int64_t begin, int64_t end) {
    const Shared& all = *static_cast<const Shared*>(user);
    const MatmulPlan& plan = *all.execution.plan;
    alignas(kAlignment) std::byte frame[matmul::kJoinFrameBytes];
    if (plan.epilogue_ != nullptr)
      plan.epilogue_->begin(plan.epilogue_->user, all.execution.run->epilogue_scalars, frame);
    for (int64_t chunk = begin; chunk < end; ++chunk)
      plan.join_chunk(all.execution, all.parts, chunk / all.chunks, chunk % all.chunks * kJoined, frame);
  };
  const int64_t chunks = parts.rows * shared.chunks;
  const int64_t grain = ceiling(kJoinBytes, cuts_ * std::min(parts.columns, kJoined) * element_bytes_);
  if (slots_ == 1 || chunks <= grain || execution.run->parallel_for == nullptr) {
    body(&shared, 0, chunks);
  } else {
    execution.run->parallel_for(chunks, grain, body, &shared);
  }
}

void MatmulPlan::join_chunk(const Execution& execution, const Parts& parts, int64_t row, int64_t first,
                            void* frame) const {
  with_accumulator(dtype_, [&](auto one) {
    using T = decltype(one);
    T alpha, beta;
    std::memcpy(&alpha, execution.alpha.value, sizeof alpha);
    std::memcpy(&beta, execution.beta.value, sizeof beta);
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
    if (!execution.alpha.one && !execution.alpha.zero) {
      for (int64_t j = 0; j < n; ++j) sums[j] = multiply(alpha, sums[j]);
    }
    const auto add_terms = [&](const void* matrix, int operand, bool is_scaled) {
      const T* const term = static_cast<const T*>(matrix) + row * row_[operand] + first * column_[operand];
      for (int64_t j = 0; j < n; ++j) {
        const T value = term[j * column_[operand]];
        sums[j] = add(sums[j], is_scaled ? multiply(beta, value) : value);
      }
    };
    if (has_addend_ && !execution.beta.zero) add_terms(execution.run->addend, kAddend, !execution.beta.one);
    if (has_bias_) add_terms(execution.run->bias, kBias, false);
    if (epilogue_ != nullptr) epilogue_->apply(epilogue_->user, frame, sums, sums, n);
    for (int64_t j = 0; j < n; ++j) c[j * parts.c_column] = sums[j];
  });
}

void MatmulPlan::run_task(const Execution& execution, int64_t task, void* scratch) const {
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
      run_product(execution, tile, false, scratch);
      tile.a = offset(tile.a, step_a);
      tile.b = offset(tile.b, step_b);
      tile.c = offset(tile.c, step_c);
    }
    return;
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
    run_tile(execution, tile, scratch);
  }
}

void MatmulPlan::run_tile(const Execution& execution, const Tile& tile, void* scratch) const {
  if (is_half(dtype_)) return run_half_tile(execution, tile, scratch);
  const bool has_product = k_ > 0 && !execution.alpha.zero;
  // The other terms are written first, unless c already holds them, and the product is added.
  const bool adds_to_c = tile.addend == tile.c && addend_like_c_ && tile.bias == nullptr && execution.beta.one;
  const bool has_terms = tile.addend != nullptr || tile.bias != nullptr;
  if (!(adds_to_c && has_product) && (has_terms || !has_product)) {
    with_accumulator(dtype_, [&](auto one) {
      using T = decltype(one);
      T beta;
      std::memcpy(&beta, execution.beta.value, sizeof beta);
      write_terms<T>(tile.m, tile.n, {static_cast<T*>(tile.c), row_[kC], column_[kC]}, beta,
                     {static_cast<const T*>(tile.addend), row_[kAddend], column_[kAddend]},
                     {static_cast<const T*>(tile.bias), row_[kBias], column_[kBias]});
    });
  }
  if (has_product) run_product(execution, tile, has_terms, scratch);
  if (epilogue_ != nullptr) apply_epilogue(tile, offset(scratch, frame_));
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

/// c = alpha a b, or c += alpha a b.
void MatmulPlan::run_product(const Execution& execution, const Tile& tile, bool accumulate, void* scratch) const {
  const GemmKernel& kernel = *kernel_;
  const auto run = is_vector_ ? kernel.run_vector : is_thin_ ? kernel.run_thin : kernel.run;
  run({tile.m, tile.n, k_, tile.a, row_[kA], column_[kA], tile.b, row_[kB], column_[kB], tile.c, row_[kC], column_[kC],
       execution.alpha.value, accumulate, scratch});
}

void MatmulPlan::run_half_tile(const Execution& execution, const Tile& tile, void* scratch) const {
  void* const frame = offset(scratch, frame_);
  if (k_ == 0 || execution.alpha.zero) return finish_half_tile(execution, tile, nullptr, frame);
  const GemmKernel& kernel = *kernel_;
  const auto run = is_vector_ ? kernel.run_vector : is_thin_ ? kernel.run_thin : kernel.run;
  float* const sums = static_cast<float*>(offset(scratch, kernel_scratch_bytes_));
  GemmCall call = {tile.m, tile.n,           k_, tile.a,       row_[kA], column_[kA], tile.b, row_[kB], column_[kB],
                   sums,   sums_row(tile.n), 1,  &kOne<float>, false,    scratch};
  if (is_widened_) {
    float* const a = static_cast<float*>(offset(scratch, widened_));
    float* const b = a + tile.m * k_;
    widen(tile.a, kA, tile.m, k_, a);
    widen(tile.b, kB, k_, tile.n, b);
    call.a = a;
    call.b = b;
    call.a_row = k_;
    call.b_row = tile.n;
    call.a_column = call.b_column = 1;
  }
  if (kernel.pack == nullptr) {
    run(call);
    return finish_half_tile(execution, tile, sums, frame);
  }
  kernel.pack(call);
  const int64_t rows = band_rows(tile_n_);
  for (int64_t first = 0; first < tile.m; first += rows) {
    const auto from = [&](const void* matrix, int operand) {
      return matrix == nullptr ? nullptr : offset(matrix, first * row_[operand] * element_bytes_);
    };
    const Tile band = {std::min(rows, tile.m - first),
                       tile.n,
                       from(tile.a, kA),
                       tile.b,
                       const_cast<void*>(from(tile.c, kC)),
                       from(tile.addend, kAddend),
                       from(tile.bias, kBias)};
    call.m = band.m;
    call.a = band.a;
    run(call);
    finish_half_tile(execution, band, sums, frame);
  }
}

/// Rows of halves as float32, one after the other.
void MatmulPlan::widen(const void* matrix, int operand, int64_t rows, int64_t columns, float* to) const {
  const HalfRows& kernel = dtype_ == COMPUTE_DTYPE_FLOAT16 ? kernels_->float16 : kernels_->bfloat16;
  const auto* const from = static_cast<const uint16_t*>(matrix);
  if (column_[operand] == 1 && row_[operand] == columns) return kernel.widen(from, 1, to, rows * columns);
  for (int64_t i = 0; i < rows; ++i)
    kernel.widen(from + i * row_[operand], column_[operand], to + i * columns, columns);
}

/// Rounds the sums, which may be NULL and may be moved, and the other terms.
void MatmulPlan::finish_half_tile(const Execution& execution, const Tile& tile, float* sums, void* frame) const {
  const HalfRows& rows = dtype_ == COMPUTE_DTYPE_FLOAT16 ? kernels_->float16 : kernels_->bfloat16;
  float alpha, beta;
  std::memcpy(&alpha, execution.alpha.value, sizeof alpha);
  std::memcpy(&beta, execution.beta.value, sizeof beta);
  constexpr int64_t kPiece = MatmulEpilogue::kMostElements;
  float result[kPiece];
  float term[kPiece];
  uint16_t rounded[kPiece];
  // Rows that follow one another are one line, so that pieces of narrow results are long too.
  const auto step = [&](int operand) { return tile.n == 1 ? row_[operand] : column_[operand]; };
  const auto joins = [&](int operand) { return tile.n == 1 || row_[operand] == tile.n * column_[operand]; };
  int64_t row = sums_row(tile.n);
  if (sums != nullptr && row != tile.n && tile.n <= kShortRow && joins(kC)) {
    for (int64_t i = 1; i < tile.m; ++i) {
      for (int64_t j = 0; j < tile.n; j += kMoved)
        std::memcpy(sums + i * tile.n + j, sums + i * row + j, kMoved * sizeof(float));
    }
    row = tile.n;
  }
  const bool joined = row == tile.n && joins(kC) && (tile.addend == nullptr || joins(kAddend)) &&
                      (tile.bias == nullptr || joins(kBias));
  const int64_t lines = joined ? 1 : tile.m, length = joined ? tile.m * tile.n : tile.n;
  for (int64_t i = 0; i < lines; ++i) {
    for (int64_t first = 0; first < length; first += kPiece) {
      const int64_t n = std::min(kPiece, length - first);
      const auto element = [&](const void* matrix, int operand) {
        return static_cast<const uint16_t*>(matrix) + i * row_[operand] + first * step(operand);
      };
      const float* from = result;
      if (sums == nullptr) {
        std::fill_n(result, n, 0.0f);
      } else if (execution.alpha.one) {
        from = sums + i * row + first;
      } else {
        for (int64_t j = 0; j < n; ++j) result[j] = alpha * sums[i * row + first + j];
      }
      const auto add_term = [&](const void* matrix, int operand, float scale) {
        rows.widen(element(matrix, operand), step(operand), term, n);
        if (from == result) {
          for (int64_t j = 0; j < n; ++j) result[j] += scale * term[j];
        } else {
          for (int64_t j = 0; j < n; ++j) result[j] = from[j] + scale * term[j];
        }
        from = result;
      };
      if (tile.addend != nullptr) add_term(tile.addend, kAddend, beta);
      if (tile.bias != nullptr) add_term(tile.bias, kBias, 1);
      auto* const c = const_cast<uint16_t*>(element(tile.c, kC));
      if (epilogue_ == nullptr) {
        rows.narrow(from, c, step(kC), n);
        continue;
      }
      epilogue_->apply(epilogue_->user, frame, from, rounded, n);
      for (int64_t j = 0; j < n; ++j) c[j * step(kC)] = rounded[j];
    }
  }
}

}  // namespace compute::cpu
