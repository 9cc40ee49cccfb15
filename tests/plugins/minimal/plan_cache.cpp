// SPDX-License-Identifier: Apache-2.0
// Serialized plans. Making a plan is as fast as reading one here, so the data only identifies build, device and op.
#include "plan.hpp"

namespace minimal {
namespace {

std::string data_of(const Device& device, const std::string& description) {
  return std::string(build_id()) + "\n" + std::to_string(device.id) + "\n" + description;
}

compute_error* save_plan(uint64_t device, uint64_t plan, compute_plugin_write write, void* context) {
  return guard([&] {
    const std::string data = data_of(from_handle<Device>(device), from_handle<SharedPlan>(plan)->described);
    const int64_t half = std::ssize(data) / 2;  // in two pieces, as any number may come
    write(context, data.data(), half);
    write(context, data.data() + half, std::ssize(data) - half);
  });
}

compute_error* load_plan(uint64_t device, const compute_plugin_op* op, const void* data, int64_t size,
                         uint64_t* out_plan, compute_plugin_plan_info* out_info) {
  *out_plan = 0;
  return guard([&] {
    understand_all(*op);
    understand(*out_info, "the plan's answer");
    const std::string_view given(static_cast<const char*>(data), static_cast<size_t>(size));
    if (given != data_of(from_handle<Device>(device), Plan::description(*op)))
      throw Failure(COMPUTE_ERROR_UNSUPPORTED, "minimal: the data is not of this build, device and op");
    try {
      auto plan = std::make_shared<const Plan>(*op);
      out_info->reports_faults = plan->primitive->reports_faults;
      *out_plan = to_handle(new SharedPlan(std::move(plan)));
    } catch (const Refused& refused) {
      throw Failure(COMPUTE_ERROR_UNSUPPORTED, std::string("minimal: ") + refused.text);
    }
  });
}

}  // namespace

const compute_plugin_plan_cache_table& plan_cache_table() {
  static constexpr compute_plugin_plan_cache_table kTable = {sizeof(compute_plugin_plan_cache_table), save_plan,
                                                             load_plan};
  return kTable;
}

}  // namespace minimal
