// SPDX-License-Identifier: Apache-2.0
// Counts of elements in bins. The edges of the bins are rounded, so only the edge nearest to a number can be on either
// side of it: one comparison tells the bin. Each thread has its own counts. Halves are read as float32.
#include "plugins/cpu/order/histogram.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "plugins/common/op/layout.hpp"
#include "plugins/cpu/order/line.hpp"
#include "plugins/cpu/threads/threads.hpp"

namespace compute::cpu {
namespace {

constexpr int64_t kPieceElements = 32 << 10;  // least work that justifies counts of its own
constexpr int64_t kMostBins = 1 << 22;
constexpr int64_t kLine = 64;

int64_t round_up(int64_t x, int64_t multiple) { return (x + multiple - 1) / multiple * multiple; }

// T is what elements are read as. Edges have the dtype of x, or float32 for integers.
template <class T>
class HistogramPlan final : public Plan {
 public:
  HistogramPlan(const Op& op, compute_dtype value_dtype)
      : bins_(op.output(0).shape[0]), dst_step_(op.output(0).strides[0]) {
    const compute_plugin_tensor& x = op.input(0);
    src_ = LineAccess(x.dtype, value_dtype);
    rounded_ = std::is_integral_v<T> ? compute_dtype{COMPUTE_DTYPE_FLOAT32} : x.dtype;
    for (int32_t i = 0; i < x.rank; ++i) elements_ *= x.shape[i];
    const int64_t most = elements_ / std::max(kPieceElements, 2 * bins_);
    tables_ = std::max(std::clamp<int64_t>(most, 1, thread_count()), elements_ / int64_t{INT32_MAX} + 1);
    edges_bytes_ = round_up((bins_ + 1) * int64_t{sizeof(Edge)}, kLine);
    table_bytes_ = round_up((bins_ + 2) * int64_t{sizeof(uint32_t)}, kLine);
    workspace_bytes = edges_bytes_ + tables_ * table_bytes_;
  }

  void run(const compute_plugin_run& run) const override {
    double a, b;
    std::memcpy(&a, &run.scalars[0], sizeof a);
    std::memcpy(&b, &run.scalars[1], sizeof b);
    const char* const x = address(run.tensors[0]);
    auto* const edges = reinterpret_cast<Edge*>(address(run.workspace));
    const auto table = [&](int64_t i) {
      return reinterpret_cast<uint32_t*>(address(run.workspace) + edges_bytes_ + i * table_bytes_);
    };
    parallel_for((bins_ + kLineBlock) / kLineBlock, 2, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) fill_edges(a, b, i * kLineBlock, edges);
    });
    // The last bin includes its end.
    edges[bins_] = std::nextafter(edges[bins_], std::numeric_limits<Edge>::infinity());
    parallel_tasks(tables_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        std::memset(table(i), 0, static_cast<size_t>(table_bytes_));
        const int64_t first = elements_ * i / tables_, last = elements_ * (i + 1) / tables_;
        count(x + first * src_.size(), last - first, a, b, edges, table(i));
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
  using Edge = std::conditional_t<std::is_same_v<T, float>, float, double>;

  // A block of edges, rounded.
  void fill_edges(double a, double b, int64_t first, Edge* edges) const {
    const int64_t n = std::min(kLineBlock, bins_ + 1 - first);
    alignas(64) double exact[kLineBlock];
    alignas(64) char rounded[kLineBlock * sizeof(double)];
    // As `linspace` computes them; the second way cannot overflow.
    const double bins = static_cast<double>(bins_);
    const bool fits = std::isfinite(2 * bins * std::max(std::abs(a), std::abs(b)));
    for (int64_t i = 0; i < n; ++i) {
      const auto at = static_cast<double>(static_cast<int32_t>(first + i));
      exact[i] = (a * (bins - at) + b * at) / bins;
    }
    for (int64_t i = 0; !fits && i < n; ++i) {
      const auto at = static_cast<double>(first + i);
      if (!std::isfinite(exact[i])) exact[i] = a * ((bins - at) / bins) + b * (at / bins);
    }
    if (first == 0) exact[0] = a;
    if (first + n > bins_) exact[bins_ - first] = b;
    convert(COMPUTE_DTYPE_FLOAT64, exact, rounded_, rounded, n);
    convert(rounded_, rounded, std::is_same_v<Edge, float> ? COMPUTE_DTYPE_FLOAT32 : COMPUTE_DTYPE_FLOAT64,
            edges + first, n);
  }

  static void convert(compute_dtype from, const void* x, compute_dtype to, void* y, int64_t n) {
    const int64_t step = 1;
    isa().blocks->converts[from][to](&x, &step, y, n);
  }

  // The first and the last slot collect what is outside of all bins, and NaN.
  void count(const char* x, int64_t n, double a, double b, const Edge* edges, uint32_t* slots) const {
    // The width of the range and its reciprocal may be too great for a number.
    const double scale = !std::isfinite(b - a) ? 0.5 : b - a < 0x1p-60 ? 0x1p100 : 1;
    const double least = a * scale, bins = static_cast<double>(bins_), per_unit = bins / (b * scale - least);
    alignas(64) char buffer[kLineBlock * sizeof(double)];
    int32_t nearest[kLineBlock];
    for (int64_t at = 0; at < n; at += kLineBlock) {
      const int64_t block = std::min(kLineBlock, n - at);
      const T* const v = reinterpret_cast<const T*>(src_.load(x + at * src_.size(), src_.size(), block, buffer));
      for (int64_t i = 0; i < block; ++i) {
        const double position = (static_cast<double>(v[i]) * scale - least) * per_unit;
        const double above = position > 0 ? position : 0;
        nearest[i] = static_cast<int32_t>((above < bins ? above : bins) + 0.5);
      }
      for (int64_t i = 0; i < block; ++i) ++slots[nearest[i] + (static_cast<Edge>(v[i]) >= edges[nearest[i]])];
    }
  }

  const int64_t bins_, dst_step_;
  int64_t elements_ = 1, tables_ = 1;
  int64_t edges_bytes_ = 0, table_bytes_ = 0;
  LineAccess src_;
  compute_dtype rounded_ = COMPUTE_DTYPE_FLOAT32;  // what edges are rounded to
};

}  // namespace

std::optional<Refusal> refuse_histogram(const Op& op) {
  const compute_plugin_tensor& x = op.input(0);
  switch (x.dtype) {
    case COMPUTE_DTYPE_FLOAT16:
    case COMPUTE_DTYPE_BFLOAT16:
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
  const compute_dtype dtype = op.input(0).dtype;
  switch (dtype) {
    case COMPUTE_DTYPE_FLOAT64:
      return std::make_unique<HistogramPlan<double>>(op, dtype);
    case COMPUTE_DTYPE_INT32:
      return std::make_unique<HistogramPlan<int32_t>>(op, dtype);
    case COMPUTE_DTYPE_INT64:
      return std::make_unique<HistogramPlan<int64_t>>(op, dtype);
    case COMPUTE_DTYPE_UINT8:
      return std::make_unique<HistogramPlan<uint8_t>>(op, dtype);
    default:
      return std::make_unique<HistogramPlan<float>>(op, COMPUTE_DTYPE_FLOAT32);
  }
}

}  // namespace compute::cpu
