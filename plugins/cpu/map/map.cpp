// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/map/map.hpp"

#include <string>

#include "plugins/cpu/isa/isa.hpp"
#include "plugins/cpu/map/elementwise.hpp"
#include "plugins/cpu/threads/threads.hpp"

namespace compute::cpu {
namespace {

class MapPrimitive final : public Plan {
 public:
  explicit MapPrimitive(const Op& op) : map_(op.description(), isa(), thread_count()) {
    workspace_bytes = map_.workspace_bytes();
  }

  void run(const compute_plugin_run& run) const override {
    if (map_.is_at_once()) [[likely]]
      return map_.run_at_once([&](int i) { return address(run.tensors[i]); }, run.scalars);
    void** data = static_cast<void**>(__builtin_alloca(static_cast<size_t>(tensor_count) * sizeof(void*)));
    for (int32_t i = 0; i < tensor_count; ++i) data[i] = address(run.tensors[i]);
    map_.run(data, run.scalars, address(run.workspace), &parallel_for);
  }

 private:
  MapPlan map_;
};

}  // namespace

std::optional<Refusal> refuse_map(const Op& op) {
  const int32_t id = BlockProgram::unknown_intrinsic(op.expression(0));
  if (id == 0) return std::nullopt;
  return Refusal{COMPUTE_PLUGIN_REFUSE_INTRINSIC, id, "the cpu plugin does not support intrinsic " + std::to_string(id),
                 ""};
}

std::unique_ptr<Plan> prepare_map(const Op& op) { return std::make_unique<MapPrimitive>(op); }

}  // namespace compute::cpu
