// SPDX-License-Identifier: Apache-2.0
// A binary search for each value. A few go side by side, so that the processor waits for several reads at a time.
#include "plugins/cpu/order/search.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "plugins/common/op/layout.hpp"
#include "plugins/cpu/base/walk.hpp"
#include "plugins/cpu/threads/threads.hpp"

namespace compute::cpu {
namespace {

constexpr int64_t kTogether = 8;
constexpr int64_t kPieceValues = 1024;  // least work that justifies waking a thread

// NaN sorts after all numbers. Without branches, because half of them would be mispredicted.
template <class T>
bool is_less(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return a < b;
  } else {
    return bool((a < b) | ((b != b) & (a == a)));
  }
}

template <class T>
class SearchPlan final : public Plan {
 public:
  explicit SearchPlan(const Op& op) : is_right_(op.text("side") == "right"), terms_(op.input(0).shape[0]) {
    const compute_plugin_tensor &values = op.input(1), &dst = op.output(0);
    step_ = op.input(0).strides[0] * int64_t{sizeof(T)};
    output_ = op.input_count();
    std::vector<int64_t> shape(values.shape, values.shape + values.rank), strides[2];
    for (int32_t i = 0; i < values.rank; ++i) {
      strides[0].push_back(values.strides[i] * int64_t{sizeof(T)});
      strides[1].push_back(dst.strides[i] * int64_t{sizeof(int64_t)});
    }
    const int64_t* const pointers[] = {strides[0].data(), strides[1].data()};
    nest_ = common::collapse(shape, pointers, 0);
  }

  void run(const compute_plugin_run& run) const override {
    const char* sorted = address(run.tensors[0]);
    const char* values = address(run.tensors[1]) + nest_.offsets[0];
    char* dst = address(run.tensors[output_]) + nest_.offsets[1];
    parallel_tasks(nest_.points(), kPieceValues, [&](int64_t begin, int64_t end) {
      int64_t offsets[2] = {};
      Walk walk(nest_, nest_.rank, begin, offsets);
      for (int64_t i = begin; i < end; i += kTogether) {
        const int64_t n = std::min(kTogether, end - i);
        T wanted[kTogether] = {};
        char* to[kTogether] = {};
        int64_t low[kTogether] = {};
        for (int64_t j = 0; j < n; ++j) {
          std::memcpy(&wanted[j], values + offsets[0], sizeof(T));
          to[j] = dst + offsets[1];
          walk.next();
        }
        search(sorted, wanted, low);
        for (int64_t j = 0; j < n; ++j) std::memcpy(to[j], &low[j], sizeof(int64_t));
      }
    });
  }

 private:
  void search(const char* sorted, const T* wanted, int64_t* low) const {
    bool any_nan = false;
    for (int64_t j = 0; j < kTogether; ++j) any_nan |= wanted[j] != wanted[j];
    if (any_nan) {
      search_by(sorted, wanted, low,
                [this](T found, T x) { return is_right_ ? !is_less(x, found) : is_less(found, x); });
    } else if (is_right_) {
      search_by(sorted, wanted, low, [](T found, T x) { return found <= x; });
    } else {
      search_by(sorted, wanted, low, [](T found, T x) { return found < x; });
    }
  }

  template <class IsBefore>
  void search_by(const char* sorted, const T* wanted, int64_t* low, const IsBefore& is_before) const {
    const auto at = [&](int64_t i) {
      T found;
      std::memcpy(&found, sorted + i * step_, sizeof found);
      return found;
    };
    int64_t count = terms_;
    while (count > 1) {
      const int64_t half = count / 2;
      for (int64_t j = 0; j < kTogether; ++j) low[j] += half & -int64_t{is_before(at(low[j] + half - 1), wanted[j])};
      count -= half;
    }
    for (int64_t j = 0; j < kTogether; ++j) low[j] += is_before(at(low[j]), wanted[j]);
  }

  common::LoopNest nest_;  // operands: values, positions
  const bool is_right_;
  const int64_t terms_;
  int64_t step_ = 0;  // bytes
  int32_t output_ = 0;
};

}  // namespace

std::optional<Refusal> refuse_search(const Op& op) {
  if (op.input_count() > 2 && op.input(2).rank >= 0)
    return Refusal{COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED, 2, "searchsorted: a sorter is not supported", ""};
  const compute_dtype dtype = op.input(0).dtype;
  const bool is_known = dtype == COMPUTE_DTYPE_FLOAT32 || dtype == COMPUTE_DTYPE_FLOAT64 ||
                        dtype == COMPUTE_DTYPE_INT32 || dtype == COMPUTE_DTYPE_INT64;
  if (dtype != op.input(1).dtype || !is_known)
    return Refusal{COMPUTE_PLUGIN_REFUSE_DTYPE, 1, "searchsorted: such dtypes are not supported", ""};
  return std::nullopt;
}

std::unique_ptr<Plan> prepare_search(const Op& op) {
  switch (op.input(0).dtype) {
    case COMPUTE_DTYPE_FLOAT32:
      return std::make_unique<SearchPlan<float>>(op);
    case COMPUTE_DTYPE_INT32:
      return std::make_unique<SearchPlan<int32_t>>(op);
    case COMPUTE_DTYPE_INT64:
      return std::make_unique<SearchPlan<int64_t>>(op);
    default:
      return std::make_unique<SearchPlan<double>>(op);
  }
}

}  // namespace compute::cpu
