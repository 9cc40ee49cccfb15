// SPDX-License-Identifier: Apache-2.0
// A table between core and a real plugin: shows that plugin's devices, forwards every slot to it, and makes work fail
// on demand.
//
// COMPUTE_BETWEEN is the file of the real plugin, and COMPUTE_BETWEEN_CELL the address of a std::atomic<int> of the
// program. While that is not 0, the next submitted op, graph or kernel resets it to 0 and fails. Kinds:
//   1 submit    the call returns an error; nothing is queued, and the stream is as good as before
//   2 later     the call returns well, nothing of it and of what follows on its stream runs, and stream_reached and
//             stream_sync say so later
//   3 lost      the same, and every later call of the device says that its context is lost
//   4 hang      the same, but nobody ever says so: the stream does not come to its end
#include <compute/plugin.h>
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace {

enum Kind : int { kNone, kSubmit, kLater, kLost, kHang };

const compute_plugin_core* core = nullptr;
compute_plugin_table real_table = {};
compute_plugin_device_table real = {};  // all devices of a plugin have the same one
compute_plugin_graph_table real_graphs = {};
compute_plugin_kernel_table real_kernels = {};

std::atomic<int>* armed = nullptr;

// An open device. What is lost is lost for good; another opening is another device.
struct Device {
  std::atomic<bool> is_lost{false};
};

struct Stream {
  std::shared_ptr<Device> device;
  std::mutex mutex;
  uint64_t marked = 0;     // the greatest number so far
  uint64_t last_good = 0;  // of a struck stream
  uint64_t end = 0;        // its first mark after the failed work; 0 before that
  bool struck = false;
  Kind kind = kNone;  // of a struck stream
};

std::mutex mutex;  // of the maps and of the real tables
std::map<uint64_t, std::shared_ptr<Device>> devices;
std::map<uint64_t, std::shared_ptr<Stream>> streams;

std::shared_ptr<Stream> find(uint64_t handle) {
  std::lock_guard lock(mutex);
  return streams.at(handle);
}

std::shared_ptr<Device> find_device(uint64_t handle) {
  std::lock_guard lock(mutex);
  return devices.at(handle);
}

compute_error* make_error(compute_error_code code, std::string_view message) {
  compute_plugin_error_info info = {};
  info.struct_size = sizeof info;
  info.struct_type = COMPUTE_PLUGIN_STRUCT_ERROR_INFO;
  info.code = code;
  info.argument = -1;
  info.message = {message.data(), static_cast<int64_t>(message.size())};
  return core->error_new(&info);
}

compute_error* lost_error() { return make_error(COMPUTE_ERROR_CONTEXT_LOST, "between: the device is lost as asked"); }
compute_error* later_error() { return make_error(COMPUTE_ERROR_STREAM_FAILED, "between: the stream fails as asked"); }

// What a submission does instead of continuing; kNone: it continues.
Kind strike() { return armed->load() == kNone ? kNone : static_cast<Kind>(armed->exchange(kNone)); }

template <class F>
compute_error* submit(uint64_t handle, bool may_strike, const F& go_on) {
  const std::shared_ptr<Stream> stream = find(handle);
  const Kind kind = may_strike ? strike() : kNone;
  if (kind == kSubmit) return make_error(COMPUTE_ERROR_INTERNAL, "between: the submission fails as asked");
  if (stream->device->is_lost) return lost_error();
  std::lock_guard guard(stream->mutex);
  if (kind != kNone) {
    stream->struck = true;
    stream->last_good = stream->marked;
    stream->kind = kind;
    if (kind == kLost) stream->device->is_lost = true;
  }
  return stream->struck ? nullptr : go_on();
}

// ---- Slots ----------------------------------------------------------------------------------------------------------

compute_error* stream_create(uint64_t device, const compute_plugin_stream_options* options, uint64_t* out_stream) {
  if (compute_error* error = real.stream_create(device, options, out_stream)) return error;
  auto stream = std::make_shared<Stream>();
  std::lock_guard lock(mutex);
  stream->device = devices.at(device);
  streams[*out_stream] = std::move(stream);
  return nullptr;
}

void stream_destroy(uint64_t stream) {
  {
    std::lock_guard lock(mutex);
    streams.erase(stream);
  }
  real.stream_destroy(stream);
}

compute_error* stream_mark(uint64_t handle, uint64_t number, uint32_t flags) {
  const std::shared_ptr<Stream> stream = find(handle);
  std::lock_guard guard(stream->mutex);
  if (stream->device->is_lost && !stream->struck) return lost_error();
  stream->marked = number;
  if (stream->struck && stream->end == 0) stream->end = number;
  return real.stream_mark(handle, number, flags);
}

compute_error* stream_wait(uint64_t handle, uint64_t other, uint64_t number, uint32_t flags) {
  return submit(handle, false, [&] { return real.stream_wait(handle, other, number, flags); });
}

// What the stream says of itself, given the real one's answer.
compute_error* answer(Stream& stream, compute_error* error, uint64_t* out_reached) {
  std::lock_guard guard(stream.mutex);
  if (error != nullptr) return error;
  if (!stream.struck) return stream.device->is_lost ? lost_error() : nullptr;
  const bool is_over = stream.end != 0 && *out_reached >= stream.end;
  *out_reached = std::min(*out_reached, stream.last_good);
  if (!is_over || stream.kind == kHang) return nullptr;
  return stream.kind == kLost ? lost_error() : later_error();
}

compute_error* stream_reached(uint64_t handle, uint64_t* out_reached) {
  const std::shared_ptr<Stream> stream = find(handle);
  *out_reached = 0;
  return answer(*stream, real.stream_reached(handle, out_reached), out_reached);
}

compute_error* stream_sync(uint64_t handle, uint64_t number, int64_t timeout_ns, uint64_t* out_reached) {
  const std::shared_ptr<Stream> stream = find(handle);
  const auto start = std::chrono::steady_clock::now();
  for (;;) {
    *out_reached = 0;
    compute_error* error = answer(*stream, real.stream_sync(handle, number, timeout_ns, out_reached), out_reached);
    if (error != nullptr || *out_reached >= number ||
        std::chrono::steady_clock::now() - start >= std::chrono::nanoseconds(timeout_ns)) {
      return error;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(20));  // a stream that hangs
  }
}

compute_error* memory_allocate(uint64_t device, const compute_plugin_allocation* request, uint64_t* out_buffer,
                               void** out_data) {
  return find_device(device)->is_lost ? lost_error() : real.memory_allocate(device, request, out_buffer, out_data);
}
compute_error* op_prepare(uint64_t device, const compute_plugin_op* op, uint64_t* out_plan,
                          compute_plugin_plan_info* out_info, compute_plugin_refuse refuse, void* context) {
  return find_device(device)->is_lost ? lost_error() : real.op_prepare(device, op, out_plan, out_info, refuse, context);
}

compute_error* copy_from_host(uint64_t stream, const void* src, const compute_plugin_operand* pinned,
                              const compute_plugin_operand* dst, int64_t size_bytes, uint32_t flags) {
  return submit(stream, false, [&] { return real.copy_from_host(stream, src, pinned, dst, size_bytes, flags); });
}
compute_error* copy_to_host(uint64_t stream, const compute_plugin_operand* src, void* dst,
                            const compute_plugin_operand* pinned, int64_t size_bytes, uint32_t flags) {
  return submit(stream, false, [&] { return real.copy_to_host(stream, src, dst, pinned, size_bytes, flags); });
}
compute_error* fill(uint64_t stream, const compute_plugin_operand* dst, int64_t size_bytes, const void* pattern,
                    int32_t pattern_size, uint32_t flags) {
  return submit(stream, false, [&] { return real.fill(stream, dst, size_bytes, pattern, pattern_size, flags); });
}
compute_error* plan_run(uint64_t plan, const compute_plugin_run* run) {
  return submit(run->stream, true, [&] { return real.plan_run(plan, run); });
}
compute_error* graph_run(uint64_t graph, const compute_plugin_graph_run* run) {
  return submit(run->stream, true, [&] { return real_graphs.run(graph, run); });
}

compute_error* copy_peer(uint64_t stream, uint64_t src_device, const compute_plugin_operand* src,
                         const compute_plugin_operand* dst, int64_t size_bytes, uint32_t flags) {
  return submit(stream, false, [&] { return real.copy_peer(stream, src_device, src, dst, size_bytes, flags); });
}
compute_error* launch(uint64_t kernel, const compute_plugin_launch* launch) {
  return submit(launch->stream, true, [&] { return real_kernels.launch(kernel, launch); });
}

// A copy of a table, as large as this file knows it.
template <class T>
void copy_table(T* own, const void* table) {
  std::memcpy(own, table, std::min(static_cast<size_t>(*static_cast<const int64_t*>(table)), sizeof *own));
  own->table_size = sizeof *own;
}

const compute_plugin_kernel_table* kernels(uint64_t device) {
  const compute_plugin_kernel_table* table = real.kernels(device);
  if (table == nullptr) return nullptr;
  static compute_plugin_kernel_table own;
  std::lock_guard lock(mutex);
  if (own.table_size == 0) {
    copy_table(&real_kernels, table);
    own = real_kernels;
    own.launch = launch;
  }
  return &own;
}

compute_error* device_open(uint64_t id, const compute_plugin_device_options* options, uint64_t* out_device,
                           const compute_plugin_device_table** out_table) {
  const compute_plugin_device_table* inner = nullptr;
  if (compute_error* error = real_table.device_open(id, options, out_device, &inner)) return error;
  static compute_plugin_device_table table;
  std::lock_guard lock(mutex);
  // The devices of a plugin have one table. It is written before other threads read it.
  if (table.table_size == 0) {
    copy_table(&real, inner);
    table = real;
    table.stream_create = stream_create;
    table.stream_destroy = stream_destroy;
    table.stream_mark = stream_mark;
    table.stream_wait = stream_wait;
    table.stream_reached = stream_reached;
    table.stream_sync = stream_sync;
    table.copy_from_host = copy_from_host;
    table.copy_to_host = copy_to_host;
    table.fill = fill;
    table.plan_run = plan_run;
    if (real.memory_allocate != nullptr) table.memory_allocate = memory_allocate;
    table.op_prepare = op_prepare;
    if (real.copy_peer != nullptr) table.copy_peer = copy_peer;
    if (real.kernels != nullptr) table.kernels = kernels;
  }
  devices[*out_device] = std::make_shared<Device>();
  *out_table = &table;
  return nullptr;
}

const void* get_extension(uint64_t device, const char* name, int64_t name_size) {
  const void* table = real_table.get_extension != nullptr ? real_table.get_extension(device, name, name_size) : nullptr;
  if (table == nullptr || std::string_view(name, static_cast<size_t>(name_size)) != COMPUTE_PLUGIN_EXT_GRAPH_V1)
    return table;
  static compute_plugin_graph_table graphs;
  std::lock_guard lock(mutex);
  if (graphs.table_size == 0) {
    copy_table(&real_graphs, table);
    graphs = real_graphs;
    graphs.run = graph_run;
  }
  return &graphs;
}

void* library() {
  static void* const handle = [] {
    const char* file = std::getenv("COMPUTE_BETWEEN");
    return file != nullptr ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : nullptr;
  }();
  return handle;
}

}  // namespace

extern "C" {

COMPUTE_PLUGIN_EXPORT const compute_plugin_manifest* compute_plugin_query(void) {
  void* const handle = library();
  if (handle == nullptr) return nullptr;
  return reinterpret_cast<compute_plugin_query_function>(dlsym(handle, "compute_plugin_query"))();
}

COMPUTE_PLUGIN_EXPORT compute_error* compute_plugin_open(uint32_t interface_version, const compute_plugin_core* given,
                                                         const compute_plugin_table** out_table) {
  core = given;
  static std::atomic<int> nothing{kNone};
  const char* cell = std::getenv("COMPUTE_BETWEEN_CELL");
  armed = cell != nullptr ? reinterpret_cast<std::atomic<int>*>(std::strtoull(cell, nullptr, 16)) : &nothing;
  const compute_plugin_table* inner = nullptr;
  const auto open = reinterpret_cast<compute_plugin_open_function>(dlsym(library(), "compute_plugin_open"));
  if (compute_error* error = open(interface_version, given, &inner)) return error;
  static compute_plugin_table table;
  copy_table(&real_table, inner);
  table = real_table;
  table.device_open = device_open;
  table.get_extension = get_extension;
  *out_table = &table;
  return nullptr;
}

}  // extern "C"
