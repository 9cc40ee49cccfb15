// SPDX-License-Identifier: Apache-2.0
// The functions of compute.h on groups and collectives.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include "core/base/sized.hpp"
#include "core/collective/combine.hpp"
#include "core/collective/group.hpp"
#include "core/collective/local_transport.hpp"
#include "core/collective/mpi_transport.hpp"
#include "core/interface/about.hpp"
#include "core/lifetime/open_device.hpp"
#include "core/memory/overlap.hpp"
#include "core/ops/shapes.hpp"
#include "core/process/process_config.hpp"
#include "core/runner/call.hpp"
#include "core/runner/recording.hpp"
#include "core/runner/run_op.hpp"

using namespace compute;

namespace {

constexpr int64_t kWaitAtEnd = int64_t{2'000'000'000};

// ---- Groups ---------------------------------------------------------------------------------------------------------

compute_group* group_over(const compute_transport& table, Device& device, const GroupOptions& options) {
  return new compute_group(Group::make(device, std::make_unique<Transport>(table), options));
}

// A group of one exchanges nothing.
compute_group* group_of_one(Device& device, const GroupOptions& options) {
  return group_over(local_transports(1).front(), device, options);
}

GroupOptions read_options(const compute_group_options* options) {
  if (options == nullptr) return {};
  const compute_group_options given = read_sized(options, "options");
  require_known_flags(given.flags, 0, "options");
  require_zero(given.reserved, "options");
  if (given.timeout_ns < 0) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                fmt::format("options.timeout_ns is {}; it must not be negative", given.timeout_ns));
  }
  return {.timeout_ns = given.timeout_ns};
}

// The ranks are made at the same time, because each waits for the others.
void make_all(std::span<compute_device* const> devices, const GroupOptions& options, compute_group** out_groups) {
  const std::vector<compute_transport> tables = local_transports(static_cast<int32_t>(devices.size()));
  std::vector<compute_error*> errors(devices.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < devices.size(); ++i) {
    threads.emplace_back([&, i] {
      GroupOptions own = options;
      own.shares_device = std::count(devices.begin(), devices.end(), devices[i]) > 1;
      errors[i] = guard([&] { out_groups[i] = group_over(tables[i], *devices[i], own); });
    });
  }
  for (std::thread& thread : threads) thread.join();
  compute_error* first = nullptr;
  for (compute_error* const error : errors) {
    if (first == nullptr) {
      first = error;
    } else {
      compute_error_free(error);
    }
  }
  if (first == nullptr) return;
  for (size_t i = 0; i < devices.size(); ++i) release_handle(std::exchange(out_groups[i], nullptr));
  throw Error::adopt(first);
}

// ---- Calls ----------------------------------------------------------------------------------------------------------

struct Call {
  int32_t kind;
  const char* name;
  compute_stream* stream;
  compute_group* group;
  compute_tensor* x = nullptr;
  int32_t reduction = 0;
  int32_t peer = 0;
  const compute_collective_options* options = nullptr;
  uint32_t flags = 0;  // of `options`, once they are read

  bool reduces() const {
    return kind == COMPUTE_PLUGIN_COLLECTIVE_ALL_REDUCE || kind == COMPUTE_PLUGIN_COLLECTIVE_REDUCE_SCATTER;
  }
  bool may_share() const {
    return kind == COMPUTE_PLUGIN_COLLECTIVE_ALL_REDUCE || kind == COMPUTE_PLUGIN_COLLECTIVE_BROADCAST;
  }
};

[[noreturn]] void refuse(const Call& call, compute_error_code code, const std::string& why) {
  throw Error(code, fmt::format("{}: {}", call.name, why));
}

void check_tensor(const Call& call, const Group& group, const Tensor& tensor, const char* role) {
  if (tensor.buffer == nullptr)
    refuse(call, COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("{} is a scalar, which no other rank can read", role));
  if (&tensor.buffer->device == &group.device()) return;
  refuse(call, COMPUTE_ERROR_DEVICE_MISMATCH,
         fmt::format("{} is on {}, but the group is for {}; move it (to_device)", role, tensor.buffer->device.name,
                     group.device().name));
}

Timeline& timeline_of(const Call& call, const Group& group) {
  if (call.stream != nullptr && &checked(call.stream).device != &group.device()) {
    refuse(call, COMPUTE_ERROR_DEVICE_MISMATCH,
           fmt::format("the stream is on {}, but the group is for {}", call.stream->device.name, group.device().name));
  }
  if (call.stream == nullptr && group.shares_device() && !group.device().immediate) {
    refuse(
        call, COMPUTE_ERROR_INVALID_ARGUMENT,
        fmt::format("other ranks of this process are on {} too; give each a stream of its own", group.device().name));
  }
  return call.stream != nullptr ? call.stream->timeline : default_timeline(group.device());
}

// Of the result, for a checked x.
std::vector<int64_t> result_shape(const Call& call, const Group& group) {
  std::vector<int64_t> shape(call.x->shape_span().begin(), call.x->shape_span().end());
  const int64_t ranks = group.size();
  switch (call.kind) {
    case COMPUTE_PLUGIN_COLLECTIVE_ALL_GATHER:
      if (shape.empty()) shape.push_back(1);
      if (__builtin_mul_overflow(shape[0], ranks, &shape[0]))
        refuse(call, COMPUTE_ERROR_OUT_OF_RANGE, "the result has too many elements");
      break;
    case COMPUTE_PLUGIN_COLLECTIVE_REDUCE_SCATTER:
    case COMPUTE_PLUGIN_COLLECTIVE_ALL_TO_ALL:
      if (shape.empty() || shape[0] % ranks != 0) {
        refuse(call, COMPUTE_ERROR_INVALID_ARGUMENT,
               fmt::format("x has shape {}, whose first axis cannot be divided among {} ranks",
                           shape_text(call.x->shape_span()), ranks));
      }
      if (call.kind == COMPUTE_PLUGIN_COLLECTIVE_REDUCE_SCATTER) shape[0] /= ranks;
      break;
    default:
      break;
  }
  return shape;
}

void check_result(const Call& call, const Tensor& y, compute_dtype dtype, std::span<const int64_t> shape) {
  if (y.buffer->promise == COMPUTE_WRAP_IMMUTABLE)
    refuse(call, COMPUTE_ERROR_INVALID_ARGUMENT, "y is in immutable memory");
  if (overlaps_itself(y)) refuse(call, COMPUTE_ERROR_INVALID_ARGUMENT, "y has strides that make its elements overlap");
  if (y.dtype != dtype || !std::equal(shape.begin(), shape.end(), y.shape_span().begin(), y.shape_span().end())) {
    refuse(call, COMPUTE_ERROR_INVALID_ARGUMENT,
           fmt::format("y is {} {}, but the result is {} {}", dtype_name(y.dtype), shape_text(y.shape_span()),
                       dtype_name(dtype), shape_text(shape)));
  }
  if (call.x == nullptr || !may_overlap(*call.x, y) || (call.may_share() && same_view(*call.x, y))) return;
  refuse(call, COMPUTE_ERROR_INVALID_ARGUMENT, "y overlaps x");
}

// Runs or records a checked call of row-major tensors. With `makes_y`, y was made for it.
void run_dense(const Call& call, Group& group, Timeline& timeline, Tensor* x, Tensor* y, bool makes_y) {
  const bool is_pair = y == nullptr || call.kind == COMPUTE_PLUGIN_COLLECTIVE_RECV;
  if (group.size() == 1 && !is_pair) {
    if (x->buffer == y->buffer && same_view(*x, *y)) return;
    // An all-gather of a tensor of rank 0 adds an axis.
    const auto strides = row_major_array(y->shape_span());
    const TensorReference same(
        make_view(*x, x->dtype, y->shape_span(), {strides.data(), static_cast<size_t>(y->rank)}, x->offset_bytes));
    copy_into(*same, *y, timeline);
    return;
  }
  Collective collective;
  collective.kind = call.kind;
  collective.name = call.name;
  const Tensor& first = x != nullptr ? *x : *y;
  collective.dtype = first.dtype;
  collective.reduction = call.reduction;
  collective.peer = call.peer;
  collective.src = x;
  collective.dst = y;
  collective.count = first.element_count / (x != nullptr ? collective.parts_of_src(group.size()) : 1);
  const bool deterministic =
      (call.flags & COMPUTE_COLLECTIVE_DETERMINISTIC) != 0 || setting(SettingId::kDeterministic).flag;
  if (timeline.recording.load(std::memory_order_relaxed) == nullptr)
    return group.run(collective, deterministic, timeline);
  try {
    group.record(*call.group, collective, deterministic, makes_y, timeline);
  } catch (const Error& error) {
    note_recording_error(timeline, error);
    throw;
  }
}

// `y` is the given result; else one is made.
Tensor* run(const Call& call, compute_dtype dtype, std::span<const int64_t> shape, Tensor* y) {
  Group& group = *call.group->group;
  group.device().require_usable();
  Timeline& timeline = timeline_of(call, group);
  TensorReference packed, made, unpacked;
  Tensor* x = call.x;
  if (y != nullptr) {
    check_tensor(call, group, *y, "y");
    check_result(call, *y, dtype, shape);
  } else if (call.kind != COMPUTE_PLUGIN_COLLECTIVE_SEND) {
    made.reset(make_tensor(group.device(), dtype, shape, &timeline));
    y = made.get();
  }
  if (x != nullptr && !x->is_row_major) {
    packed = pack(*x, timeline);
    x = packed.get();
  }
  if (y == nullptr || y->is_row_major) {
    run_dense(call, group, timeline, x, y, made != nullptr);
    return made.release();
  }
  unpacked.reset(make_tensor(group.device(), dtype, shape, &timeline));
  run_dense(call, group, timeline, x, unpacked.get(), true);
  copy_into(*unpacked, *y, timeline);
  return nullptr;
}

void check_call(Call& call) {
  const Group& group = *checked(call.group).group;
  if (call.options != nullptr) {
    const compute_collective_options given = read_sized(call.options, "options");
    require_known_flags(given.flags, COMPUTE_COLLECTIVE_DETERMINISTIC, "options");
    require_zero(given.reserved, "options");
    call.flags = given.flags;
  }
  if (call.peer < 0 || call.peer >= group.size()) {
    refuse(call, COMPUTE_ERROR_INVALID_ARGUMENT,
           fmt::format("rank {} is not in the group, which has {}", call.peer, group.size()));
  }
  const bool is_pair = call.kind == COMPUTE_PLUGIN_COLLECTIVE_SEND || call.kind == COMPUTE_PLUGIN_COLLECTIVE_RECV;
  if (is_pair && call.peer == group.rank())
    refuse(call, COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("rank {} is the caller", call.peer));
  if (call.kind == COMPUTE_PLUGIN_COLLECTIVE_RECV) return;
  const Tensor& x = checked(call.x);
  check_tensor(call, group, x, "x");
  if (call.reduces()) require_reduction(call.name, call.reduction, x.dtype);
}

bool is_usable(const compute_group* group) { return group != nullptr && group->is_alive(); }

// A call whose operand is x; it makes its result, or writes to *into.
compute_error* run_on(Call call, compute_tensor** out_y, compute_tensor* into) noexcept {
  if (out_y != nullptr) *out_y = nullptr;
  return guard(about(call.group != nullptr ? call.x : nullptr), [&] {
    const Running running;
    const bool writes = call.kind != COMPUTE_PLUGIN_COLLECTIVE_SEND;
    check_call(call);
    if (writes && out_y == nullptr) checked(into);
    const std::vector<int64_t> shape = result_shape(call, *call.group->group);
    Tensor* const made = run(call, call.x->dtype, shape, into);
    if (out_y != nullptr) *out_y = made;
  });
}

}  // namespace

extern "C" {

compute_error* compute_group_create(const compute_transport* transport, compute_device* device,
                                    const compute_group_options* options, compute_group** out_group) {
  if (out_group != nullptr) *out_group = nullptr;
  return guard(about(device), [&] {
    require_not_null(out_group, "out_group");
    Device& self = checked(device);
    const GroupOptions given = read_options(options);
    const Running running;
    if (transport == nullptr) {
      *out_group = group_of_one(self, given);
      return;
    }
    auto borrowed = std::make_unique<Transport>(read_sized(transport, "transport"), Transport::Owner::kCaller);
    Transport& used = *borrowed;
    *out_group = new compute_group(Group::make(self, std::move(borrowed), given));
    used.take_over();
  });
}

compute_error* compute_group_create_mpi(compute_device* device, const compute_group_options* options,
                                        compute_group** out_group) {
  if (out_group != nullptr) *out_group = nullptr;
  return guard(about(device), [&] {
    require_not_null(out_group, "out_group");
    Device& self = checked(device);
    const GroupOptions given = read_options(options);
    const Running running;
    *out_group = group_over(mpi_transport([] { wait_for_groups(kWaitAtEnd); }), self, given);
  });
}

compute_error* compute_group_create_all(compute_device* const* devices, int64_t count,
                                        const compute_group_options* options, compute_group** out_groups) {
  if (out_groups != nullptr) {
    for (int64_t i = 0; i < count; ++i) out_groups[i] = nullptr;
  }
  return guard([&] {
    if (count < 1 || count > INT32_MAX) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("count is {}; a group has at least one rank", count))
          .about_parameter();
    }
    require_not_null(devices, "devices");
    require_not_null(out_groups, "out_groups");
    const GroupOptions shared = read_options(options);
    const Running running;
    const std::span<compute_device* const> given(devices, static_cast<size_t>(count));
    for (compute_device* const device : given) checked(device).require_usable();
    make_all(given, shared, out_groups);
  });
}

compute_error* compute_group_split(compute_group* group, int32_t color, int32_t key, compute_group** out_group) {
  if (out_group != nullptr) *out_group = nullptr;
  return guard([&] {
    require_not_null(out_group, "out_group");
    Group& self = *checked(group).group;
    const Running running;
    if (color < 0) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("color is {}; it must not be negative", color))
          .about_parameter();
    }
    *out_group = new compute_group(self.split(color, key));
  });
}

int32_t compute_group_rank(const compute_group* group) { return is_usable(group) ? group->group->rank() : 0; }
int32_t compute_group_size(const compute_group* group) { return is_usable(group) ? group->group->size() : 0; }
compute_device* compute_group_device(const compute_group* group) {
  return is_usable(group) ? &group->group->device() : nullptr;
}
const char* compute_group_description(const compute_group* group) {
  return is_usable(group) ? group->group->description().c_str() : "";
}

compute_error* compute_group_abort(compute_group* group) {
  return guard([&] {
    Group& self = *checked(group).group;
    const Running running;
    self.abort();
  });
}

void compute_group_retain(compute_group* group) {
  if (group != nullptr && group->is_alive()) group->retain();
}
void compute_group_release(compute_group* group) { release_handle(group); }

compute_error* compute_group_all_reduce(compute_stream* stream, compute_group* group, compute_tensor* x,
                                        int32_t reduction, const compute_collective_options* options,
                                        compute_tensor** out_y) {
  if (out_y == nullptr) return guard([] { throw_null("out_y"); });
  return run_on({COMPUTE_PLUGIN_COLLECTIVE_ALL_REDUCE, "all_reduce", stream, group, x, reduction, 0, options}, out_y,
                nullptr);
}
compute_error* compute_group_all_reduce_into(compute_stream* stream, compute_group* group, compute_tensor* x,
                                             int32_t reduction, const compute_collective_options* options,
                                             compute_tensor* y) {
  return run_on({COMPUTE_PLUGIN_COLLECTIVE_ALL_REDUCE, "all_reduce", stream, group, x, reduction, 0, options}, nullptr,
                y);
}

compute_error* compute_group_reduce_scatter(compute_stream* stream, compute_group* group, compute_tensor* x,
                                            int32_t reduction, const compute_collective_options* options,
                                            compute_tensor** out_y) {
  if (out_y == nullptr) return guard([] { throw_null("out_y"); });
  return run_on({COMPUTE_PLUGIN_COLLECTIVE_REDUCE_SCATTER, "reduce_scatter", stream, group, x, reduction, 0, options},
                out_y, nullptr);
}
compute_error* compute_group_reduce_scatter_into(compute_stream* stream, compute_group* group, compute_tensor* x,
                                                 int32_t reduction, const compute_collective_options* options,
                                                 compute_tensor* y) {
  return run_on({COMPUTE_PLUGIN_COLLECTIVE_REDUCE_SCATTER, "reduce_scatter", stream, group, x, reduction, 0, options},
                nullptr, y);
}

compute_error* compute_group_all_gather(compute_stream* stream, compute_group* group, compute_tensor* x,
                                        const compute_collective_options* options, compute_tensor** out_y) {
  if (out_y == nullptr) return guard([] { throw_null("out_y"); });
  return run_on({COMPUTE_PLUGIN_COLLECTIVE_ALL_GATHER, "all_gather", stream, group, x, 0, 0, options}, out_y, nullptr);
}
compute_error* compute_group_all_gather_into(compute_stream* stream, compute_group* group, compute_tensor* x,
                                             const compute_collective_options* options, compute_tensor* y) {
  return run_on({COMPUTE_PLUGIN_COLLECTIVE_ALL_GATHER, "all_gather", stream, group, x, 0, 0, options}, nullptr, y);
}

compute_error* compute_group_broadcast(compute_stream* stream, compute_group* group, compute_tensor* x, int32_t root,
                                       const compute_collective_options* options, compute_tensor** out_y) {
  if (out_y == nullptr) return guard([] { throw_null("out_y"); });
  return run_on({COMPUTE_PLUGIN_COLLECTIVE_BROADCAST, "broadcast", stream, group, x, 0, root, options}, out_y, nullptr);
}
compute_error* compute_group_broadcast_into(compute_stream* stream, compute_group* group, compute_tensor* x,
                                            int32_t root, const compute_collective_options* options,
                                            compute_tensor* y) {
  return run_on({COMPUTE_PLUGIN_COLLECTIVE_BROADCAST, "broadcast", stream, group, x, 0, root, options}, nullptr, y);
}

compute_error* compute_group_all_to_all(compute_stream* stream, compute_group* group, compute_tensor* x,
                                        const compute_collective_options* options, compute_tensor** out_y) {
  if (out_y == nullptr) return guard([] { throw_null("out_y"); });
  return run_on({COMPUTE_PLUGIN_COLLECTIVE_ALL_TO_ALL, "all_to_all", stream, group, x, 0, 0, options}, out_y, nullptr);
}
compute_error* compute_group_all_to_all_into(compute_stream* stream, compute_group* group, compute_tensor* x,
                                             const compute_collective_options* options, compute_tensor* y) {
  return run_on({COMPUTE_PLUGIN_COLLECTIVE_ALL_TO_ALL, "all_to_all", stream, group, x, 0, 0, options}, nullptr, y);
}

compute_error* compute_group_send(compute_stream* stream, compute_group* group, compute_tensor* x, int32_t peer,
                                  const compute_collective_options* options) {
  return run_on({COMPUTE_PLUGIN_COLLECTIVE_SEND, "send", stream, group, x, 0, peer, options}, nullptr, nullptr);
}

compute_error* compute_group_recv(compute_stream* stream, compute_group* group, compute_dtype dtype, int32_t rank,
                                  const int64_t* shape, int32_t peer, const compute_collective_options* options,
                                  compute_tensor** out_y) {
  if (out_y != nullptr) *out_y = nullptr;
  return guard([&] {
    require_not_null(out_y, "out_y");
    const Running running;
    Call call{COMPUTE_PLUGIN_COLLECTIVE_RECV, "recv", stream, group, nullptr, 0, peer, options};
    check_call(call);
    checked_shape(call.name, dtype, rank, shape);
    *out_y = run(call, dtype, {shape, static_cast<size_t>(rank)}, nullptr);
  });
}
compute_error* compute_group_recv_into(compute_stream* stream, compute_group* group, compute_tensor* y, int32_t peer,
                                       const compute_collective_options* options) {
  return guard(about(y), [&] {
    const Running running;
    Call call{COMPUTE_PLUGIN_COLLECTIVE_RECV, "recv", stream, group, nullptr, 0, peer, options};
    check_call(call);
    Tensor& self = checked(y);
    check_tensor(call, *call.group->group, self, "y");
    run(call, self.dtype, self.shape_span(), &self);
  });
}

compute_error* compute_group_barrier(compute_group* group) {
  return guard([&] {
    Group& self = *checked(group).group;
    const Running running;
    self.barrier();
  });
}

}  // extern "C"
