// SPDX-License-Identifier: Apache-2.0
// quantized_matmul. A few lines are multiplied by rows of weights in registers. For more, a task dequantises a block of
// rows into the cache and multiplies it by all lines with the kernel for products.
#include "plugins/cpu/contract/quantized_matmul.hpp"

#include <algorithm>
#include <atomic>
#include <bit>

#include "plugins/common/op/quantized.hpp"
#include "plugins/cpu/isa/isa.hpp"
#include "plugins/cpu/kernels/gemm_kernel.hpp"
#include "plugins/cpu/kernels/quantized_kernel.hpp"
#include "plugins/cpu/threads/threads.hpp"

namespace compute::cpu {
namespace {

using common::QuantizedProduct;

constexpr int64_t kFewLines = 8;
constexpr int64_t kMostGroups = 4096;  // of a row: of the memory for scales on a thread's stack
constexpr int64_t kGrainProducts = 1 << 15;
constexpr int64_t kFloat = sizeof(float);

int64_t in_lines(int64_t size_bytes) { return (size_bytes + 63) / 64 * 64; }

// Numbers of any floating-point dtype but float64, as float32.
class Numbers {
 public:
  explicit Numbers(compute_dtype dtype)
      : is_half_(dtype != COMPUTE_DTYPE_FLOAT32),
        half_(dtype == COMPUTE_DTYPE_FLOAT16 ? isa().gemm->float16 : isa().gemm->bfloat16) {}

  bool is_half() const { return is_half_; }
  int64_t size() const { return is_half_ ? 2 : kFloat; }

  // `at` and `step` in elements.
  void read(const char* src, int64_t at, int64_t step, float* dst, int64_t n) const {
    if (is_half_) return half_.widen(reinterpret_cast<const uint16_t*>(src) + at, step, dst, n);
    const float* const from = reinterpret_cast<const float*>(src) + at;
    if (step == 1) {
      std::copy_n(from, n, dst);
    } else {
      for (int64_t i = 0; i < n; ++i) dst[i] = from[i * step];
    }
  }
  void write(const float* src, char* dst, int64_t at, int64_t step, int64_t n) const {
    half_.narrow(src, reinterpret_cast<uint16_t*>(dst) + at, step, n);
  }

 private:
  bool is_half_;
  HalfRows half_;
};

class QuantizedMatmulPlan final : public Plan {
 public:
  explicit QuantizedMatmulPlan(const Op& op)
      : product_(common::read_quantized_product(op)),
        x_numbers_(op.input(0).dtype),
        scale_numbers_(op.input(2).dtype),
        inputs_(op.input_count()),
        kernels_(*isa().quantized),
        gemm_(isa().gemm->by_dtype[COMPUTE_DTYPE_FLOAT32]) {
    const QuantizedProduct& p = product_;
    padded_ = p.blocks() * kQuantizedBlock;
    needed_groups_ = p.group < kQuantizedBlock ? p.blocks() * 2 : p.groups();
    is_few_ = p.m <= kFewLines;
    if (is_few_) {
      reads_x_ = !x_numbers_.is_half() && p.x_step == 1 && p.k == padded_;
      x_bytes_ = reads_x_ ? 0 : in_lines(p.m * padded_ * kFloat);
      results_at_ = x_bytes_;
      workspace_bytes = results_at_ + (x_numbers_.is_half() ? in_lines(p.m * p.n * kFloat) : 0);
      return;
    }
    reads_x_ = !x_numbers_.is_half();
    x_bytes_ = reads_x_ ? 0 : in_lines(p.m * p.k * kFloat);
    constexpr int64_t kLeastRows = 48, kMostRows = 192, kTileBytes = 1 << 20;
    const int64_t threads = thread_count(), share = (p.n + 2 * threads - 1) / (2 * threads);
    const int64_t room = std::max(kTileBytes / (padded_ * kFloat) / 16 * 16, kLeastRows);
    tile_rows_ = std::min(std::clamp((share + 15) / 16 * 16, kLeastRows, std::min(kMostRows, room)), p.n);
    tasks_ = (p.n + tile_rows_ - 1) / tile_rows_;
    scratch_at_ = in_lines(tile_rows_ * padded_ * kFloat);
    results_at_ = scratch_at_ + in_lines(gemm_.scratch_bytes(p.m, tile_rows_, p.k));
    slot_bytes_ = results_at_ + (x_numbers_.is_half() ? in_lines(p.m * tile_rows_ * kFloat) : 0);
    slots_ = std::clamp<int64_t>(tasks_, 1, threads);
    workspace_bytes = x_bytes_ + slots_ * slot_bytes_;
  }

  void run(const compute_plugin_run& given) const override {
    const Run run{address(given.tensors[0]),       reinterpret_cast<const uint8_t*>(address(given.tensors[1])),
                  address(given.tensors[2]),       product_.has_offsets ? address(given.tensors[3]) : nullptr,
                  address(given.tensors[inputs_]), address(given.workspace)};
    is_few_ ? run_few(run) : run_tiles(run);
  }

 private:
  struct Run {
    const char* x;
    const uint8_t* weight;
    const char *scales, *offsets;
    char *y, *workspace;
  };

  // Calls f(first row, rows) with the rows' scales, a few rows at a time.
  template <class F>
  void for_scaled_rows(const Run& run, int64_t begin, int64_t end, const F& f) const {
    const QuantizedProduct& p = product_;
    alignas(64) float scales[kMostGroups], offsets[kMostGroups];
    const int64_t most = std::clamp<int64_t>(kMostGroups / needed_groups_ / kQuantizedRows * kQuantizedRows, 1, 64);
    const auto middle = static_cast<float>(-(int64_t{1} << (p.bits - 1)));
    const int64_t group_shift =
        std::countr_zero(static_cast<uint64_t>(p.group)) - std::countr_zero(uint64_t{kQuantizedBlock});
    const auto read = [&](const char* src, int64_t row, float* dst) {
      scale_numbers_.read(src, row, 1, dst, p.groups());
      std::fill(dst + p.groups(), dst + needed_groups_, 0.0f);
    };
    for (int64_t row = begin; row < end; row += most) {
      const int64_t rows = std::min(most, end - row);
      for (int64_t i = 0; i < rows; ++i) {
        float *const scale = scales + i * needed_groups_, *const offset = offsets + i * needed_groups_;
        read(run.scales, (row + i) * p.scales_row, scale);
        if (p.has_offsets) {
          read(run.offsets, (row + i) * p.offsets_row, offset);
        } else {
          for (int64_t group = 0; group < needed_groups_; ++group) offset[group] = middle * scale[group];
        }
      }
      f(row, QuantizedRows{run.weight + row * p.weight_row, p.weight_row, scales, needed_groups_, offsets, rows,
                           p.blocks(), group_shift});
    }
  }

  void run_few(const Run& run) const {
    const QuantizedProduct& p = product_;
    const float* x = reinterpret_cast<const float*>(run.x);
    int64_t x_line = p.x_line;
    if (!reads_x_) {
      auto* const lines = reinterpret_cast<float*>(run.workspace);
      for (int64_t i = 0; i < p.m; ++i) {
        x_numbers_.read(run.x, i * p.x_line, p.x_step, lines + i * padded_, p.k);
        std::fill(lines + i * padded_ + p.k, lines + (i + 1) * padded_, 0.0f);
      }
      x = lines;
      x_line = padded_;
    }
    const bool is_half = x_numbers_.is_half();
    auto* const results = reinterpret_cast<float*>(is_half ? run.workspace + results_at_ : run.y);
    const int64_t y_line = is_half ? p.n : p.y_line, y_step = is_half ? 1 : p.y_step;
    const auto multiply = p.bits == 4 ? kernels_.multiply4 : kernels_.multiply8;
    parallel_for((p.n + kQuantizedRows - 1) / kQuantizedRows, Grain::of(kQuantizedRows * p.k * p.m, kGrainProducts),
                 [&](int64_t first, int64_t last) {
                   const int64_t begin = first * kQuantizedRows, end = std::min(last * kQuantizedRows, p.n);
                   for_scaled_rows(run, begin, end, [&](int64_t row, const QuantizedRows& rows) {
                     for (int64_t line = 0; line < p.m; line += kQuantizedLines) {
                       multiply(rows, x + line * x_line, x_line, std::min(kQuantizedLines, p.m - line),
                                results + line * y_line + row * y_step, y_line, y_step);
                     }
                   });
                   if (!is_half) return;
                   for (int64_t line = 0; line < p.m; ++line) {
                     x_numbers_.write(results + line * y_line + begin, run.y, line * p.y_line + begin * p.y_step,
                                      p.y_step, end - begin);
                   }
                 });
  }

  void run_tiles(const Run& run) const {
    const QuantizedProduct& p = product_;
    const float* x = reinterpret_cast<const float*>(run.x);
    int64_t x_line = p.x_line, x_step = p.x_step;
    if (!reads_x_) {
      auto* const lines = reinterpret_cast<float*>(run.workspace);
      parallel_for(p.m, Grain::of(p.k, kGrainProducts), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) x_numbers_.read(run.x, i * p.x_line, p.x_step, lines + i * p.k, p.k);
      });
      x = lines;
      x_line = p.k;
      x_step = 1;
    }
    const auto dequantize = p.bits == 4 ? kernels_.dequantize4 : kernels_.dequantize8;
    const float one = 1;
    const auto run_tile = [&](int64_t first, char* slot) {
      auto* const tile = reinterpret_cast<float*>(slot);
      const int64_t rows = std::min(tile_rows_, p.n - first);
      for_scaled_rows(run, first, first + rows, [&](int64_t row, const QuantizedRows& scaled) {
        dequantize(scaled, tile + (row - first) * padded_, padded_);
      });
      const bool is_half = x_numbers_.is_half();
      auto* const results =
          is_half ? reinterpret_cast<float*>(slot + results_at_) : reinterpret_cast<float*>(run.y) + first * p.y_step;
      const int64_t y_line = is_half ? rows : p.y_line, y_step = is_half ? 1 : p.y_step;
      gemm_.run({p.m, rows, p.k, x, x_line, x_step, tile, 1, padded_, results, y_line, y_step, &one, false,
                 slot + scratch_at_});
      if (!is_half) return;
      for (int64_t line = 0; line < p.m; ++line)
        x_numbers_.write(results + line * rows, run.y, line * p.y_line + first * p.y_step, p.y_step, rows);
    };
    std::atomic<int64_t> next{0};
    const auto body = [&](int64_t slot, int64_t) {
      for (int64_t task = next.fetch_add(1); task < tasks_; task = next.fetch_add(1))
        run_tile(task * tile_rows_, run.workspace + x_bytes_ + slot * slot_bytes_);
    };
    if (slots_ == 1) return body(0, 1);
    parallel_tasks(slots_, 1, body);
  }

  const QuantizedProduct product_;
  const Numbers x_numbers_, scale_numbers_;
  const int32_t inputs_;
  const QuantizedKernels& kernels_;
  const GemmKernel gemm_;
  int64_t padded_ = 0;         // numbers of a row in whole blocks
  int64_t needed_groups_ = 0;  // of a row in whole blocks
  bool is_few_ = false;
  bool reads_x_ = false;  // in place
  int64_t x_bytes_ = 0;
  int64_t tile_rows_ = 0, tasks_ = 0, slots_ = 0, slot_bytes_ = 0, scratch_at_ = 0, results_at_ = 0;
};

}  // namespace

std::optional<Refusal> refuse_quantized_matmul(const Op& op) {
  if (std::optional<Refusal> refusal = common::refuse_quantized_form(op)) return refusal;
  const QuantizedProduct product = common::read_quantized_product(op);
  if (product.groups() < kMostGroups) return std::nullopt;
  return Refusal{COMPUTE_PLUGIN_REFUSE_SHAPE, 2, "quantized_matmul: rows of too many groups", ""};
}

std::unique_ptr<Plan> prepare_quantized_matmul(const Op& op) { return std::make_unique<QuantizedMatmulPlan>(op); }

}  // namespace compute::cpu
