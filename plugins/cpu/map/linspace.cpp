// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/map/linspace.hpp"

#include <cstring>

#include "plugins/cpu/isa/isa.hpp"
#include "plugins/cpu/kernels/block_kernels.hpp"
#include "plugins/cpu/threads/threads.hpp"

namespace compute::cpu {
namespace {

// Of float32 or float64, with the same bits as the expression that core would map.
class LinspacePlan final : public Plan {
 public:
  explicit LinspacePlan(const Op& op)
      : size_(op.output(0).shape[0]),
        has_stop_(op.integer("endpoint", 1) != 0),
        is_double_(op.output(0).dtype == COMPUTE_DTYPE_FLOAT64) {}

  void run(const compute_plugin_run& run) const override {
    double start, stop;
    std::memcpy(&start, &run.scalars[0], sizeof start);
    std::memcpy(&stop, &run.scalars[1], sizeof stop);
    char* const dst = address(run.tensors[0]);
    const auto steps = static_cast<double>(has_stop_ ? size_ - 1 : size_);
    const int64_t element = is_double_ ? 8 : 4;
    if (size_ > 1) {
      parallel_for(size_, kPieceElements, [&](int64_t begin, int64_t end) {
        isa().blocks->even_steps[is_double_](start, stop, steps, begin, dst + begin * element, end - begin);
      });
      if (has_stop_) put(stop, dst + (size_ - 1) * element);
    }
    put(start, dst);
  }

 private:
  static constexpr int64_t kPieceElements = 4 << 10;

  void put(double value, char* dst) const {
    const auto narrow = static_cast<float>(value);
    is_double_ ? std::memcpy(dst, &value, sizeof value) : std::memcpy(dst, &narrow, sizeof narrow);
  }

  const int64_t size_;
  const bool has_stop_, is_double_;
};

}  // namespace

std::optional<Refusal> refuse_linspace(const Op& op) {
  const compute_plugin_tensor& result = op.output(0);
  if (result.dtype != COMPUTE_DTYPE_FLOAT32 && result.dtype != COMPUTE_DTYPE_FLOAT64)
    return Refusal{COMPUTE_PLUGIN_REFUSE_DTYPE, 0, "linspace: for dtypes other than float32 and float64, use map", ""};
  if (result.strides[0] != 1)
    return Refusal{COMPUTE_PLUGIN_REFUSE_SHAPE, 0, "linspace: for elements that are not adjacent, use map", ""};
  return std::nullopt;
}

std::unique_ptr<Plan> prepare_linspace(const Op& op) { return std::make_unique<LinspacePlan>(op); }

}  // namespace compute::cpu
