// SPDX-License-Identifier: Apache-2.0
// max_pool and average_pool. A task is a row of windows along the innermost axis, and processes one element of every
// window at a time. Elements in the padding are skipped.
#include "plugins/cpu/reduce/pool.hpp"

#include <algorithm>
#include <limits>

#include "plugins/cpu/reduce/pool_windows.hpp"
#include "plugins/cpu/threads/thread_frame.hpp"
#include "plugins/cpu/threads/threads.hpp"

namespace compute::cpu {
namespace {

constexpr int64_t kPieceElements = 4 << 10;  // a grain
constexpr int64_t kLine = 3840;              // elements of a row of x that are combined together, at the most
constexpr int64_t kLineSlack = 128;          // that kernels may read past their end
constexpr int64_t kMostDoubles = 8;

template <class T>
class PoolPlan final : public Plan {
 public:
  explicit PoolPlan(const Op& op)
      : is_max_(op.name() == "max_pool"),
        counts_padding_(!is_max_ && op.integer("count_include_pad", 0) != 0),
        x_(pool_strides(op.input(0))),
        y_(pool_strides(op.output(0))),
        windows_(pool_windows(op, op.input(0), op.output(0))) {
    channels_ = op.input(0).shape[1];
    rows_ = op.input(0).shape[0] * channels_ * windows_[0].count * windows_[1].count;
    chunk_ = std::max<int64_t>((kLine - windows_[2].reach()) / windows_[2].stride, 1);
    int64_t elements = windows_[2].count;
    for (const PoolWindow& w : windows_) elements *= w.size;
    grain_ = Grain::of(std::max<int64_t>(elements, 1), kPieceElements);
    is_squares_ = is_max_ && x_[4] == 1 && y_[4] == 1 && are_squares(windows_);
  }

  void run(const compute_plugin_run& run) const override {
    const auto* const x = reinterpret_cast<const T*>(address(run.tensors[0]));
    auto* const y = reinterpret_cast<T*>(address(run.tensors[1]));
    if (is_squares_) {
      return parallel_for(rows_, grain_, [&](int64_t begin, int64_t end) { find_squares(x, begin, end, y); });
    }
    parallel_for(rows_, grain_, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t j = row % windows_[1].count, outer = row / windows_[1].count;
        const int64_t i = outer % windows_[0].count, plane = outer / windows_[0].count;
        const int64_t image = plane / channels_, channel = plane % channels_;
        pool_row(x + image * x_[0] + channel * x_[1], i, j,
                 y + image * y_[0] + channel * y_[1] + i * y_[2] + j * y_[3]);
      }
    });
  }

 private:
  void find_squares(const T* x, int64_t begin, int64_t end, T* y) const {
    while (begin < end) {
      const int64_t plane = begin / windows_[1].count, row = begin % windows_[1].count;
      const int64_t image = plane / channels_, channel = plane % channels_;
      const int64_t rows = std::min(end - begin, windows_[1].count - row);
      pool_kernel<T>().find_squares(x + image * x_[0] + channel * x_[1] + 2 * row * x_[3], x_[3], rows,
                                    windows_[2].count, y + image * y_[0] + channel * y_[1] + row * y_[3], y_[3]);
      begin += rows;
    }
  }

  void pool_row(const T* plane, int64_t i, int64_t j, T* y) const {
    for (int64_t first = 0; first < windows_[2].count; first += chunk_) {
      const int64_t end = std::min(windows_[2].count, first + chunk_);
      T* const out = y + first * y_[4];
      is_max_ ? find_greatest(plane, i, j, first, end, out) : find_means(plane, i, j, first, end, out);
    }
  }

  // Windows from `first` to `end` of a row: first the maxima of their columns, in a separate line.
  void find_greatest(const T* plane, int64_t i, int64_t j, int64_t first, int64_t end, T* y) const {
    const PoolWindow& columns = windows_[2];
    const PoolKernel<T>& kernel = pool_kernel<T>();
    const int64_t from = std::max<int64_t>(columns.at(first, 0), 0);
    const int64_t to = std::min(columns.at(end - 1, columns.size - 1) + 1, columns.extent);
    T* const line = reinterpret_cast<T*>(thread_frame());
    T* const results = y_[4] == 1 ? y : line + kLine + kLineSlack;
    bool is_first = true;
    for_lines(plane, i, j, [&](const T* row) {
      const T* const part = row + from * x_[4];
      if (x_[4] != 1) {  // kernels may read past the last element of a step
        for (int64_t k = 0; k < to - from; ++k) {
          const T value = part[k * x_[4]];
          if (is_first || value > line[k] || value != value) line[k] = value;
        }
      } else if (is_first) {
        std::copy(part, part + std::max<int64_t>(to - from, 0), line);
      } else {
        kernel.take_greater(part, 1, to - from, line);
      }
      is_first = false;
    });
    std::fill(results, results + (end - first), -std::numeric_limits<T>::infinity());
    for (int64_t c = 0; c < columns.size && !is_first; ++c) {
      const int64_t begin = std::max(first, columns.first(c)), last = std::min(end, columns.last(c));
      if (begin >= last) continue;
      kernel.take_greater(line + columns.at(begin, c) - from, columns.stride, last - begin, results + (begin - first));
    }
    if (results == y) return;
    for (int64_t k = 0; k < end - first; ++k) y[k * y_[4]] = results[k];
  }

  void find_means(const T* plane, int64_t i, int64_t j, int64_t first, int64_t end, T* y) const {
    auto* const sums = reinterpret_cast<double*>(thread_frame());
    std::fill(sums, sums + (end - first), 0.0);
    const PoolWindow& columns = windows_[2];
    for_lines(plane, i, j, [&](const T* row) {
      for (int64_t c = 0; c < columns.size; ++c) {
        const int64_t from = std::max(first, columns.first(c)), to = std::min(end, columns.last(c));
        if (from >= to) continue;
        pool_kernel<T>().add(row + columns.at(from, c) * x_[4], columns.stride * x_[4], to - from,
                             sums + (from - first));
      }
    });
    const auto elements = [this](const PoolWindow& w, int64_t window) {
      return counts_padding_ ? w.size : w.inside(window);
    };
    const int64_t lines = elements(windows_[0], i) * elements(windows_[1], j);
    for (int64_t k = first; k < end; ++k) {
      const int64_t count = std::max<int64_t>(lines * elements(windows_[2], k), 1);
      y[(k - first) * y_[4]] = static_cast<T>(sums[k - first] / static_cast<double>(count));
    }
  }

  // Calls f with the rows of x that the windows (i, j) have.
  template <class F>
  void for_lines(const T* plane, int64_t i, int64_t j, const F& f) const {
    for (int64_t a = 0; a < windows_[0].size; ++a) {
      const int64_t depth = windows_[0].at(i, a);
      if (!windows_[0].has(depth)) continue;
      for (int64_t b = 0; b < windows_[1].size; ++b) {
        const int64_t height = windows_[1].at(j, b);
        if (windows_[1].has(height)) f(plane + depth * x_[2] + height * x_[3]);
      }
    }
  }

  const bool is_max_, counts_padding_;
  bool is_squares_ = false;
  const PoolStrides x_, y_;
  const PoolWindows windows_;
  int64_t channels_ = 1, rows_ = 0;
  Grain grain_;
  int64_t chunk_ = 1;  // windows of a row that are combined together
};

static_assert((2 * kLine + kLineSlack) * sizeof(double) <= kThreadFrameBytes);

}  // namespace

std::optional<Refusal> refuse_pool(const Op& op) {
  const std::string name(op.name());
  const compute_plugin_tensor& x = op.input(0);
  if (x.dtype != COMPUTE_DTYPE_FLOAT32 && x.dtype != COMPUTE_DTYPE_FLOAT64)
    return Refusal{COMPUTE_PLUGIN_REFUSE_DTYPE, 0, name + ": other dtypes are reduced as a view of windows", ""};
  if (x.rank > static_cast<int32_t>(kPoolLead + kPoolSpatial))
    return Refusal{COMPUTE_PLUGIN_REFUSE_RANK, 0, name + ": at most 3 spatial axes are supported in one pass", ""};
  const PoolWindow columns = pool_windows(op, x, op.output(0)).back();
  if (columns.size > columns.count || columns.reach() > kLine)
    return Refusal{COMPUTE_PLUGIN_REFUSE_SHAPE, 0, name + ": few wide windows are faster as a reduction", ""};
  int64_t elements = 1;
  for (const int64_t size : op.integers("window")) elements *= size;
  // They are added one by one.
  if (name == "average_pool" && x.dtype == COMPUTE_DTYPE_FLOAT64 && elements > kMostDoubles)
    return Refusal{COMPUTE_PLUGIN_REFUSE_SHAPE, 0, name + ": sums of many doubles are more exact as a reduction", ""};
  return std::nullopt;
}

std::unique_ptr<Plan> prepare_pool(const Op& op) {
  if (op.input(0).dtype == COMPUTE_DTYPE_FLOAT64) return std::make_unique<PoolPlan<double>>(op);
  return std::make_unique<PoolPlan<float>>(op);
}

}  // namespace compute::cpu
