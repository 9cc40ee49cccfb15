// SPDX-License-Identifier: Apache-2.0
// Counts of elements in bins. The edges of the bins are rounded, so only the edge nearest to a number can be on either
// side of it: one comparison tells the bin. Each thread has its own counts.
#include "plugins/cpu/order/histogram.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "plugins/common/op/layout.hpp"
#include "plugins/cpu/threads/threads.hpp"

namespace compute::cpu {
namespace {

constexpr int64_t kPieceElements = 32 << 10;  // least work that justifies counts of its own
constexpr int64_t kMostBins = 1 << 22;
constexpr int64_t kEdgesAtOnce = 1024;
constexpr int64_t kLine = 64;

int64_t round_up(int64_t x, int64_t multiple) { return (x + multiple - 1) / multiple * multiple; }

// Number i of `bins` even steps from a to b, as `linspace` computes it.
double even_step(double a, double b, double bins, double i) {
  if (i == 0) return a;
  if (i == bins) return b;
  const double whole = (a * (bins - i) + b * i) / bins;
  return std::isfinite(whole) ? whole : a * ((bins - i) / bins) + b * (i / bins);
}

// Edges have the dtype of x, or float32 for integers.
template <class T>
class HistogramPlan final : public Plan {
 public:
  explicit HistogramPlan(const Op& op) : bins_(op.output(0).shape[0]), dst_step_(op.output(0).strides[0]) {
    const compute_plugin_tensor& x = op.input(0);
    for (int32_t i = 0; i < x.rank; ++i) elements_ *= x.shape[i];
    const int64_t most = elements_ / std::max(kPieceElements, 2 * bins_);
    tables_ = std::max(std::clamp<int64_t>(most, 1, thread_count()), elements_ / int64_t{INT32_MAX} + 1);
    edges_bytes_ = round_up((bins_ + 1) * int64_t{sizeof(double)}, kLine);
    table_bytes_ = round_up((bins_ + 2) * int64_t{sizeof(uint32_t)}, kLine);
    workspace_bytes = edges_bytes_ + tables_ * table_bytes_;
  }

  void run(const compute_plugin_run& run) const override {
    double a, b;
    std::memcpy(&a, &run.scalars[0], sizeof a);
    std::memcpy(&b, &run.scalars[1], sizeof b);
    const auto* const x = reinterpret_cast<const T*>(address(run.tensors[0]));
    auto* const edges = reinterpret_cast<double*>(address(run.workspace));
    const auto table = [&](int64_t i) {
      return reinterpret_cast<uint32_t*>(address(run.workspace) + edges_bytes_ + i * table_bytes_);
    };
    parallel_for(bins_ + 1, kEdgesAtOnce, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        edges[i] = static_cast<Edge>(even_step(a, b, static_cast<double>(bins_), static_cast<double>(i)));
    });
    // The last bin includes its end.
    edges[bins_] = std::nextafter(edges[bins_], std::numeric_limits<double>::infinity());
    parallel_tasks(tables_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        std::memset(table(i), 0, static_cast<size_t>(table_bytes_));
        count(x + elements_ * i / tables_, elements_ * (i + 1) / tables_ - elements_ * i / tables_, a, b, edges,
              table(i));
      }
    });
    char* const dst = address(run.tensors[1]);
    for (int64_t i = 0; i < bins_; ++i) {
      int64_t sum = 0;
      for (int64_t k = 0; k < tables_; ++k) sum += table(k)[i + 1];
      std::memcpy(dst + i * dst_step_ * int64_t{sizeof sum}, &sum, sizeof sum);
    }
  }

 private:
  using Edge = std::conditional_t<std::is_same_v<T, double>, double, float>;

  // The first and the last slot collect what is outside of all bins, and NaN.
  void count(const T* x, int64_t n, double a, double b, const double* edges, uint32_t* slots) const {
    // The width of the range and its reciprocal may be too great for a number.
    const double scale = !std::isfinite(b - a) ? 0.5 : b - a < 0x1p-60 ? 0x1p100 : 1;
    const double least = a * scale, bins = static_cast<double>(bins_), per_unit = bins / (b * scale - least);
    for (int64_t i = 0; i < n; ++i) {
      const auto v = static_cast<double>(x[i]);
      const double position = (v * scale - least) * per_unit, above = position > 0 ? position : 0;
      const auto nearest = static_cast<int64_t>((above < bins ? above : bins) + 0.5);
      ++slots[nearest + (v >= edges[nearest])];
    }
  }

  const int64_t bins_, dst_step_;
  int64_t elements_ = 1, tables_ = 1;
  int64_t edges_bytes_ = 0, table_bytes_ = 0;
};

}  // namespace

std::optional<Refusal> refuse_histogram(const Op& op) {
  const compute_plugin_tensor& x = op.input(0);
  switch (x.dtype) {
    case COMPUTE_DTYPE_FLOAT32:
    case COMPUTE_DTYPE_FLOAT64:
    case COMPUTE_DTYPE_INT32:
    case COMPUTE_DTYPE_INT64:
    case COMPUTE_DTYPE_UINT8:
      break;
    default:
      return Refusal{COMPUTE_PLUGIN_REFUSE_DTYPE, 0, std::string("histogram: x is ") + common::dtype_name(x.dtype), ""};
  }
  if (!common::is_row_major(x)) return Refusal{COMPUTE_PLUGIN_REFUSE_LAYOUT, 0, "histogram: x is not row-major", ""};
  if (op.output(0).shape[0] > kMostBins)
    return Refusal{COMPUTE_PLUGIN_REFUSE_SHAPE, -1, "histogram: there are too many bins", ""};
  return std::nullopt;
}

std::unique_ptr<Plan> prepare_histogram(const Op& op) {
  switch (op.input(0).dtype) {
    case COMPUTE_DTYPE_FLOAT32:
      return std::make_unique<HistogramPlan<float>>(op);
    case COMPUTE_DTYPE_FLOAT64:
      return std::make_unique<HistogramPlan<double>>(op);
    case COMPUTE_DTYPE_INT32:
      return std::make_unique<HistogramPlan<int32_t>>(op);
    case COMPUTE_DTYPE_INT64:
      return std::make_unique<HistogramPlan<int64_t>>(op);
    default:
      return std::make_unique<HistogramPlan<uint8_t>>(op);
  }
}

}  // namespace compute::cpu
