// SPDX-License-Identifier: Apache-2.0
// What core costs: ops of two elements on a device that does nothing, beside the bare call through its plugin's table.
#include <dlfcn.h>

#include <compute/plugin.h>

#include <stdexcept>

#include "tools/bench/rows.hpp"

namespace compute::bench {
namespace {

const Device& null_device() {
  static const Device device = Device::open("null");
  return device;
}

// plan_run of the plugin, reached as core reaches it but without core.
struct BareCall {
  compute_error* (*plan_run)(uint64_t, const compute_plugin_run*) = nullptr;
  compute_plugin_run run{};

  BareCall() {
    void* library = dlopen(COMPUTE_NULL_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(dlerror());
    const auto open = reinterpret_cast<compute_plugin_open_function>(dlsym(library, "compute_plugin_open"));
    const compute_plugin_table* table = nullptr;
    const compute_plugin_device_table* device = nullptr;
    uint64_t handle = 0;
    check(open(COMPUTE_PLUGIN_INTERFACE, nullptr, &table));
    check(table->device_open(1, nullptr, &handle, &device));
    plan_run = device->plan_run;
    run.struct_size = sizeof run;
    run.struct_type = COMPUTE_PLUGIN_STRUCT_RUN;
  }
  void operator()() { benchmark::DoNotOptimize(plan_run(1, &run)); }
};

Tensor two() { return null_device().empty(COMPUTE_DTYPE_FLOAT32, {2}); }

template <class Make>
void add_pair(const std::string& name, Make make) {
  add_row("call/" + name, {}, make);
  add_row("call/" + name + "@plugin", {}, [] { return BareCall(); });
}

}  // namespace

void add_overhead_rows(const Options&) {
  add_pair("add_into", [] {
    return [x = two(), y = two(), z = two()] { check(compute_add_into(nullptr, x.get(), y.get(), z.get())); };
  });
  add_pair("add", [] {
    return [x = two(), y = two()] {
      compute_tensor* z = nullptr;
      check(compute_add(nullptr, x.get(), y.get(), &z));
      compute_tensor_release(z);
    };
  });
  add_pair("sum", [] {
    return [x = two()] {
      compute_tensor* y = nullptr;
      check(compute_sum(nullptr, x.get(), nullptr, &y));
      compute_tensor_release(y);
    };
  });
  add_row("call/tensor_empty", {}, [] {
    return [] {
      constexpr int64_t kShape[1] = {2};
      compute_tensor* x = nullptr;
      check(compute_tensor_empty(null_device().get(), COMPUTE_DTYPE_FLOAT32, 1, kShape, &x));
      compute_tensor_release(x);
    };
  });
}

}  // namespace compute::bench
