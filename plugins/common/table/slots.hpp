// SPDX-License-Identifier: Apache-2.0
// Code that plugins share for slots: small parts for every plugin, and the slots of the device table for plugins with
// generated kernels.
#pragma once

#include <compute/plugin.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "plugins/common/op/core.hpp"
#include "plugins/common/op/op.hpp"
#include "plugins/common/op/understood.hpp"

namespace compute::common {

// The object with this handle.
template <class T>
T& object(uint64_t handle) {
  return *reinterpret_cast<T*>(static_cast<uintptr_t>(handle));
}

template <class T>
uint64_t handle_of(T* object) {
  return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(object));
}

// The plan data that core receives: the base class of the plugin's plans.
struct PlanAnswer {
  int64_t workspace_bytes = 0;
  int64_t kernels_compiled = 0;
  int32_t flags = 0;
  bool reports_faults = false;
};

// The data about a program's kernel that core receives.
struct KernelAnswer {
  int32_t argument_count;  // -1: not known; the launch checks the count
  int32_t max_group_size;
};

// A struct of an older core; missing trailing fields are zero.
template <class T>
T whole(const T& given) {
  T full{};
  std::memcpy(static_cast<void*>(&full), &given, static_cast<size_t>(given.struct_size));
  full.struct_size = sizeof full;
  return full;
}

// Where op_query and op_prepare report why an op is refused.
struct RefuseTo {
  compute_plugin_refuse call;
  void* context;

  void operator()(const Refusal& refusal) const {
    compute_plugin_refusal shown{};
    shown.struct_size = sizeof shown;
    shown.struct_type = COMPUTE_PLUGIN_STRUCT_REFUSAL;
    shown.reason = refusal.reason;
    shown.argument = refusal.argument;
    shown.text = borrow(refusal.text);
    shown.hint = borrow(refusal.hint);
    call(context, &shown);
  }
};

// The result of op_query.
inline void answer_query(const std::optional<Refusal>& refusal, compute_plugin_query_info* out_info,
                         const RefuseTo& refuse_to) {
  out_info->supported = refusal ? 0 : 1;
  if (refusal) refuse_to(*refusal);
}

// The result of op_prepare: the plan, which core then owns, or NULL if it was refused.
template <class Plan>
Plan* answer_prepare(PlanOrRefusal<Plan> prepared, compute_plugin_plan_info* out_info, const RefuseTo& refuse_to) {
  if (const Refusal* refusal = std::get_if<Refusal>(&prepared)) {
    refuse_to(*refusal);
    return nullptr;
  }
  Plan* made = std::get<std::unique_ptr<Plan>>(prepared).release();
  const PlanAnswer& plan = *made;
  if (COMPUTE_PLUGIN_HAS(out_info, workspace_bytes)) out_info->workspace_bytes = plan.workspace_bytes;
  if (COMPUTE_PLUGIN_HAS(out_info, kernels_compiled)) out_info->kernels_compiled = plan.kernels_compiled;
  if (COMPUTE_PLUGIN_HAS(out_info, flags)) out_info->flags = plan.flags;
  if (COMPUTE_PLUGIN_HAS(out_info, reports_faults)) out_info->reports_faults = plan.reports_faults ? 1 : 0;
  return made;
}

// The calls that queue work. `Of` defines Stream and submitting(), as below.
template <class Of>
class Submission {
 public:
  // Calls `f(stream)`, which queues work.
  template <class F>
  static compute_error* submit(uint64_t handle, const F& f) noexcept {
    return guard([&] {
      auto& stream = object<typename Of::Stream>(handle);
      [[maybe_unused]] const auto submitting = Of::submitting(stream);
      f(stream);
    });
  }
};

// The functions for kernels of programs. `Of` defines the plugin's own parts:
//
//   Device, Stream, Kernel
//   auto entering(Device&)               exists while the device's driver is called
//   auto submitting(Stream&)             exists while one of core's calls queues work; throws if the stream accepts
//   none
//   compile(Device&, const compute_plugin_kernel_source&), answer_of(const Kernel&), launch(Kernel&, Stream&, const
//   compute_plugin_launch&)
template <class Of>
class KernelSlots : public Submission<Of> {
 public:
  using Submission<Of>::submit;

  static const compute_plugin_kernel_table* kernels(uint64_t) {
    static constexpr compute_plugin_kernel_table kTable = {sizeof(compute_plugin_kernel_table), kernel_compile,
                                                           kernel_launch, kernel_release};
    return &kTable;
  }

 private:
  using Device = typename Of::Device;
  using Stream = typename Of::Stream;
  using Kernel = typename Of::Kernel;

  static compute_error* kernel_compile(uint64_t device, const compute_plugin_kernel_source* source,
                                       uint64_t* out_kernel, compute_plugin_kernel_info* out_info) {
    *out_kernel = 0;
    return guard([&] {
      require_understood(source, "the kernel's source");
      require_understood(out_info, "the kernel's result");
      Device& self = object<Device>(device);
      [[maybe_unused]] const auto entering = Of::entering(self);
      std::unique_ptr<Kernel> kernel = Of::compile(self, *source);
      const KernelAnswer answer = Of::answer_of(*kernel);
      if (out_info != nullptr) {
        if (COMPUTE_PLUGIN_HAS(out_info, argument_count)) out_info->argument_count = answer.argument_count;
        if (COMPUTE_PLUGIN_HAS(out_info, max_group_size)) out_info->max_group_size = answer.max_group_size;
      }
      *out_kernel = handle_of(kernel.release());
    });
  }

  static compute_error* kernel_launch(uint64_t kernel, const compute_plugin_launch* launch) {
    if (launch->struct_size < sizeof *launch) [[unlikely]] {
      const compute_plugin_launch full = whole(*launch);
      return kernel_launch(kernel, &full);
    }
    return submit(launch->stream, [&](Stream& s) {
      require_understood(launch, "the launch");
      require_understood(launch->arguments, launch->argument_count, "an argument of the launch");
      Of::launch(object<Kernel>(kernel), s, *launch);
    });
  }

  static void kernel_release(uint64_t, uint64_t kernel) { delete &object<Kernel>(kernel); }
};

// `Of` defines the plugin's own parts:
//
//   Device, Stream, Plan                 Plan has PlanAnswer as its base and run(const compute_plugin_run&, Stream&)
//   auto entering(Device&)               exists while the device's driver is called
//   auto submitting(Stream&)             exists while one of core's calls queues work; throws where none can be queued
//   refuse(Device&, const Op&)           why an op cannot run, or nothing; refuse_unknown has been asked
//   prepare(Device&, const Op&)          its PlanOrRefusal<Plan>; the same
//
// and those of KernelSlots, if the plugin takes kernels of programs: if it has a Kernel.
template <class Of>
class Slots : public Submission<Of> {
 public:
  static constexpr void fill(compute_plugin_device_table& table) {
    table.stream_destroy = stream_destroy;
    table.stream_mark = stream_mark;
    table.stream_wait = stream_wait;
    table.stream_reached = stream_reached;
    table.stream_sync = stream_sync;
    table.op_query = op_query;
    table.op_prepare = op_prepare;
    table.plan_run = plan_run;
    table.plan_release = plan_release;
    if constexpr (requires { typename Of::Kernel; }) table.kernels = KernelSlots<Of>::kernels;
  }

  using Submission<Of>::submit;

 private:
  using Device = typename Of::Device;
  using Stream = typename Of::Stream;
  using Plan = typename Of::Plan;

  static constexpr bool kHasTimes = requires(Stream & stream) { stream.mark(uint64_t{1}, true); };

  // ---- Streams ------------------------------------------------------------------------------------------------------

  static void stream_destroy(uint64_t stream) { delete &object<Stream>(stream); }

  static compute_error* stream_mark(uint64_t stream, uint64_t number, uint32_t flags) {
    return submit(stream, [&](Stream& s) {
      if constexpr (kHasTimes) {
        require_known_flags(flags, "the mark", COMPUTE_PLUGIN_MARK_TIMED);
        s.mark(number, (flags & COMPUTE_PLUGIN_MARK_TIMED) != 0);
      } else {
        require_known_flags(flags, "the mark");
        s.mark(number);
      }
    });
  }

  static compute_error* stream_wait(uint64_t stream, uint64_t other, uint64_t number, uint32_t flags) {
    return submit(stream, [&](Stream& s) {
      require_known_flags(flags, "the wait");
      s.wait(object<Stream>(other), number);
    });
  }

  static compute_error* stream_reached(uint64_t stream, uint64_t* out_reached) {
    *out_reached = 0;
    compute_error* failure = nullptr;
    compute_error* error = guard([&] { *out_reached = object<Stream>(stream).reached(&failure); });
    return error != nullptr ? error : failure;
  }

  static compute_error* stream_sync(uint64_t stream, uint64_t number, int64_t timeout_ns, uint64_t* out_reached) {
    *out_reached = 0;
    compute_error* failure = nullptr;
    compute_error* error = guard([&] { *out_reached = object<Stream>(stream).sync(number, timeout_ns, &failure); });
    return error != nullptr ? error : failure;
  }

  // ---- Ops ----------------------------------------------------------------------------------------------------------

  static compute_error* op_query(uint64_t device, const compute_plugin_op* op, compute_plugin_query_info* out_info,
                                 compute_plugin_refuse refuse_to, void* context) {
    out_info->supported = 0;
    if (COMPUTE_PLUGIN_HAS(out_info, workspace_bytes)) out_info->workspace_bytes = -1;
    return guard([&] {
      require_understood(out_info, "the result");
      Device& self = object<Device>(device);
      [[maybe_unused]] const auto entering = Of::entering(self);
      const Op asked(op);
      std::optional<Refusal> refusal = refuse_unknown(asked);
      if (!refusal) refusal = Of::refuse(self, asked);
      answer_query(refusal, out_info, {refuse_to, context});
    });
  }

  static compute_error* op_prepare(uint64_t device, const compute_plugin_op* op, uint64_t* out_plan,
                                   compute_plugin_plan_info* out_info, compute_plugin_refuse refuse_to, void* context) {
    *out_plan = 0;
    return guard([&] {
      require_understood(out_info, "the plan's result");
      Device& self = object<Device>(device);
      [[maybe_unused]] const auto entering = Of::entering(self);
      const Op asked(op);
      std::optional<Refusal> refusal = refuse_unknown(asked);
      PlanOrRefusal<Plan> prepared = refusal ? PlanOrRefusal<Plan>(*std::move(refusal)) : Of::prepare(self, asked);
      *out_plan = handle_of(answer_prepare<Plan>(std::move(prepared), out_info, {refuse_to, context}));
    });
  }

  static compute_error* plan_run(uint64_t plan, const compute_plugin_run* run) {
    if (run->struct_size < sizeof *run) [[unlikely]] {
      const compute_plugin_run full = whole(*run);
      return plan_run(plan, &full);
    }
    return submit(run->stream, [&](Stream& s) {
      require_understood(run, "the run");
      object<const Plan>(plan).run(*run, s);
    });
  }

  static void plan_release(uint64_t, uint64_t plan) { delete &object<Plan>(plan); }
};

}  // namespace compute::common
