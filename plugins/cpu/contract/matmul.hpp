// SPDX-License-Identifier: Apache-2.0
// The matrix product, with batches, for any dtype, over any strided views. A plan chooses the kernel and the division
// into parts from the whole problem. A run allocates nothing.
#pragma once

#include <compute/plugin.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "plugins/cpu/isa/isa.hpp"
#include "plugins/cpu/kernels/gemm_kernel.hpp"
#include "plugins/cpu/threads/parallel_for.hpp"

namespace compute::cpu {

/// One matrix per batch entry. Strides are in elements and may have any sign; 0 repeats.
struct MatmulView {
  const int64_t* batch_strides;
  int64_t row_stride, column_stride;
};

/// What is applied to each result, before it is rounded, while it is in the cache.
struct MatmulEpilogue {
  static constexpr int64_t kMostElements = 256;  // of one `apply`

  const void* user;
  int64_t frame_bytes;  // memory of a thread, 64-byte aligned, that `begin` prepares
  void (*begin)(const void* user, const compute_plugin_scalar* scalars, void* frame);
  /// Elements of the dtype from results of the accumulator's dtype. Both are contiguous; `out` may be `results` where
  /// the dtypes are equal.
  void (*apply)(const void* user, void* frame, const void* results, void* out, int64_t n);
};

/// c[batch, m, n] = alpha · sum over k of a[batch, m, k] · b[batch, k, n] + beta · addend[batch, m, n] + bias[batch, m,
/// n].
///
/// All operands have `dtype`. float16 and bfloat16 accumulate in float32 and round once. Integers wrap in their own
/// width. The sum over bool is the or of the ands. With a factor of 0 the term is not read, so NaN and infinity in it
/// have no effect. c may be the identical view of the addend or the bias, and otherwise overlaps no operand.
struct MatmulProblem {
  compute_dtype dtype;
  int64_t m, n, k;
  int32_t batch_rank;
  const int64_t* batch_shape;
  MatmulView a, b, c;
  const MatmulView* addend;                  // NULL: none
  const MatmulView* bias;                    // NULL: none
  const MatmulEpilogue* epilogue = nullptr;  // NULL: none
};

struct MatmulOptions {
  int32_t threads = 1;  // that a run may use
  InstructionSet isa = widest_instruction_set();
};

struct MatmulRun {
  const void* a;
  const void* b;
  void* c;
  const void* addend = nullptr;
  const void* bias = nullptr;
  const void* alpha =
      nullptr;  // of the accumulator's dtype: float32 for float16 and bfloat16, else the dtype; NULL is 1
  const void* beta = nullptr;  // the same; NULL is 1 with an addend
  const compute_plugin_scalar* epilogue_scalars = nullptr;
  void* workspace = nullptr;                  // workspace_bytes(), 64-byte aligned
  ParallelFor parallel_for = nullptr;         // NULL: the calling thread does all work
  const std::atomic<bool>* cancel = nullptr;  // once it is true, no further tasks begin, and results are undefined

  [[nodiscard]] bool is_cancelled() const { return cancel != nullptr && cancel->load(std::memory_order_relaxed); }
};

/// A prepared product. Results do not depend on the number of threads.
class MatmulPlan {
 public:
  /// Keeps the epilogue's address.
  MatmulPlan(const MatmulProblem& problem, const MatmulOptions& options);

  /// Threads: any; several runs at once, each with its own workspace.
  void run(const MatmulRun& run) const;

  int64_t workspace_bytes() const;
  int64_t tasks() const { return tasks_; }

 private:
  enum Operand { kA, kB, kC, kAddend, kBias, kOperands };

  struct BatchAxis {
    int64_t extent;
    int64_t strides[kOperands];
  };

  struct Tile {
    int64_t m, n;
    const void* a;
    const void* b;
    void* c;
    const void* addend;
    const void* bias;
  };

  struct Execution;

  /// Results of parts in the workspace, as rows that are contiguous, and where their sums go. Strides are in elements.
  struct Parts {
    int64_t rows, columns;
    int64_t row_stride, part_stride;
    int64_t c_row, c_column;
  };

  void merge_batch_axes();
  void fold_batch_into_matrices();
  void transpose();
  bool find_vector();
  bool find_thin();
  bool find_tiles(InstructionSet set);
  bool is_in_place() const;
  void find_widened();
  bool is_flat() const;
  void cut_batch(int64_t threads, int64_t least, int64_t cost);
  void add_frame();
  void cut_vector(int64_t threads);
  void cut_thin(int64_t threads);
  void cut(int64_t threads);
  bool cut_equally(int64_t threads);
  int64_t parts_of_sums() const;
  bool plan_parts(const MatmulOptions& options);
  void run_in_slots(Execution& execution) const;
  void run_parts(const Execution& execution) const;
  void run_split(const Execution& execution) const;
  void join(const Execution& execution, const Parts& parts) const;
  void join_chunk(const Execution& execution, const Parts& parts, int64_t row, int64_t first, void* frame) const;
  void run_task(const Execution& execution, int64_t task, void* scratch) const;
  void run_tile(const Execution& execution, const Tile& tile, void* scratch) const;
  void run_product(const Execution& execution, const Tile& tile, bool accumulate, void* scratch) const;
  void widen(const void* matrix, int operand, int64_t rows, int64_t columns, float* to) const;
  void run_half_tile(const Execution& execution, const Tile& tile, void* scratch) const;
  void finish_half_tile(const Execution& execution, const Tile& tile, float* sums, void* frame) const;
  int64_t sums_row(int64_t n) const;
  int64_t band_rows(int64_t n) const;
  void apply_epilogue(const Tile& tile, void* frame) const;

  compute_dtype dtype_;
  int64_t element_bytes_;
  int64_t m_, n_, k_;
  int64_t row_[kOperands] = {};
  int64_t column_[kOperands] = {};
  std::vector<BatchAxis> batch_;
  int64_t batches_ = 1;
  bool has_addend_, has_bias_;
  const MatmulEpilogue* epilogue_;
  bool addend_like_c_ = false;  // the addend has c's strides
  bool is_vector_ = false;      // b is one column, for the kernel for vectors
  bool is_thin_ = false;        // a has few rows, for the kernel for those
  bool is_widened_ = false;     // a and b are halves, which are converted to float32 for its kernel
  bool transposed_ = false;     // computes the transposed product: a and b are swapped

  const GemmKernels* kernels_ = nullptr;
  const GemmKernel* kernel_ = nullptr;

  int64_t tile_m_ = 0, tile_n_ = 0, tiles_m_ = 0, tiles_n_ = 0;
  int64_t batch_chunk_ = 1;  // batch entries of one task
  int64_t tasks_ = 0;
  int64_t slots_ = 0;  // concurrent tasks, each with its part of the workspace
  int64_t slot_bytes_ = 0;
  int64_t kernel_scratch_bytes_ = 0;
  int64_t widened_ = 0;           // of a task's memory: a and b as float32
  int64_t frame_ = 0;             // of the epilogue, in a slot
  int64_t cuts_ = 1, cut_k_ = 0;  // parts of the sums of a vector, each a task
  int64_t partials_bytes_ = 0;    // their results, in the workspace
  // The same for few sums of a matrix: a plan for equal parts, as a batch, and one for the rest.
  std::unique_ptr<MatmulPlan> equal_parts_, last_part_;
};

}  // namespace compute::cpu
