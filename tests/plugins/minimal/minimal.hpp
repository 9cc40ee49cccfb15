// SPDX-License-Identifier: Apache-2.0
// Shared by the parts of the plugin: errors, handles, and the objects behind the handles.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include <compute/plugin.h>

namespace minimal {

// ---- Errors ---------------------------------------------------------------------------------------------------------

// The core table, given by compute_plugin_open.
extern const compute_plugin_core* core;

struct Failure : std::runtime_error {
  Failure(compute_error_code kind, const std::string& message) : std::runtime_error(message), code(kind) {}
  compute_error_code code;
};

inline compute_string text(std::string_view view) { return {view.data(), static_cast<int64_t>(view.size())}; }

inline compute_error* make_error(compute_error_code code, std::string_view message,
                                 const compute_plugin_core* maker = core) {
  compute_plugin_error_info info = {};
  info.struct_size = sizeof info;
  info.struct_type = COMPUTE_PLUGIN_STRUCT_ERROR_INFO;
  info.code = code;
  info.argument = -1;
  info.message = text(message);
  return maker->error_new(&info);
}

// The body of every function of the tables: no exception crosses the border.
template <class F>
compute_error* guard(F&& body) noexcept {
  try {
    body();
    return nullptr;
  } catch (const Failure& failure) {
    return make_error(failure.code, failure.what());
  } catch (const std::bad_alloc&) {
    return make_error(COMPUTE_ERROR_OUT_OF_MEMORY, "minimal: the host has no memory left");
  } catch (const std::exception& exception) {
    return make_error(COMPUTE_ERROR_INTERNAL, exception.what());
  }
}

// ---- Handles --------------------------------------------------------------------------------------------------------

// Handles of devices, streams and plans are addresses of objects. (Buffers are not: see Memory.)
template <class T>
uint64_t to_handle(T* object) {
  return reinterpret_cast<uintptr_t>(object);
}
template <class T>
T& from_handle(uint64_t handle) {
  return *reinterpret_cast<T*>(static_cast<uintptr_t>(handle));
}

// An array of structs is stepped by the size that its maker compiled them with, which need not be the size that we
// know.
template <class T>
const T& element(const T* array, int64_t index) {
  return *reinterpret_cast<const T*>(reinterpret_cast<const std::byte*>(array) + index * array->struct_size);
}

// What core asks for and we do not know. Entries of a `next` chain that must be understood, and flags 16 to 31, are
// refused; the rest is skipped. Every function that is given a struct begins with this.
inline void understand_flags(uint32_t flags, const char* what, uint32_t known = 0) {
  if ((flags & ~known) < 65536) return;
  throw Failure(COMPUTE_ERROR_UNSUPPORTED, std::string("minimal: ") + what + " has flags that must be understood");
}
template <class T>
void understand(const T& given, const char* what) {
  const void* next = given.next;
  while (next != nullptr) {
    const auto& entry = *static_cast<const compute_struct_header*>(next);
    if (entry.struct_type & COMPUTE_STRUCT_MUST_UNDERSTAND) {
      throw Failure(COMPUTE_ERROR_UNSUPPORTED,
                    std::string("minimal: ") + what + " has an entry that must be understood");
    }
    next = entry.next;
  }
  if constexpr (requires { given.flags; }) {
    if (COMPUTE_PLUGIN_HAS(&given, flags)) understand_flags(given.flags, what);
  }
}

// A struct of core, which may be older or newer than this plugin. Fields that core does not know are zero.
template <class T>
T whole(const T& given) {
  T copy = {};
  std::memcpy(&copy, &given, std::min<size_t>(given.struct_size, sizeof copy));
  return copy;
}

// ---- Settings -------------------------------------------------------------------------------------------------------

std::string setting(std::string_view name);

inline void log(std::string_view category, const std::string& line) {
  core->log(COMPUTE_LOG_DEBUG, category.data(), std::ssize(category), line.data(), std::ssize(line));
}

// ---- What a device can be without -----------------------------------------------------------------------------------

// COMPUTE_MINIMAL_WITHOUT: a list of what the devices lack, for tests of what is optional: dtypes (see plugin.cpp), and
//   pinned       the heap that the host sees
//   map          memory_map and memory_unmap
//   offset       allocations that tensors share
//   wait         waiting for another stream
//   strides      operands that are not contiguous
//   row          the optional primitive of that name
//   times        mark_time and clock
//   telemetry    telemetry
//   cancel       stream_cancel
//   intrinsics   all that have a definition in others
//   external     memory and semaphores that others import (external.cpp)
bool lacks(std::string_view capability, std::string_view suffix = {});
uint32_t level_of(int32_t dtype);  // COMPUTE_DTYPE_LEVEL_STORAGE | …

// ---- Memory ---------------------------------------------------------------------------------------------------------

enum Heap : int32_t { kPrivateHeap = 0 };  // the others are memory of the host
// COMPUTE_MINIMAL_SEPARATE_HEAPS=1: one heap for what the host writes and one for what it reads, not one for both.
bool separates_heaps();

// COMPUTE_MINIMAL_HOST_VISIBLE=1: devices whose own memory the host sees through memory_map.
bool memory_is_visible();
// COMPUTE_MINIMAL_ARGUMENTS=1: plans that need memory for arguments, and runs that pass them there.
bool plans_need_memory();
// COMPUTE_MINIMAL_ON_HOST: a primitive that the plugin says it runs on the host.
bool runs_on_host(std::string_view primitive);

// COMPUTE_MINIMAL_FAULT: the code of the faults that runs report; else that of an index out of range.
int32_t fault_code();

// COMPUTE_MINIMAL_GRAPHS=1: devices that run graphs (graph.cpp).
bool has_graphs();
// COMPUTE_MINIMAL_BLOBS: opening a device tests core's store of blobs (blobs.cpp): `store` for the first process that
// uses the store, `load` for a later one, `none` where core cannot store.
void try_blobs(std::string_view how);
// COMPUTE_MINIMAL_OPS=1: ops and a dtype of the plugin's own (vendor_ops.cpp).
bool offers_ops();
// The number that core has given to the dtype; 0: none.
int32_t packed_dtype();

// COMPUTE_MINIMAL_COLLECTIVES=1: devices that exchange data with each other (collective.cpp).
bool has_collectives();

// COMPUTE_MINIMAL_NATIVE=1: devices that import memory of the host and hand out handles, as DLPack's kDLExtDev.
bool has_native_handles();
constexpr int32_t kDlExtDev = 12;

// A device's memory. A buffer is a number that means nothing to anybody else, as on a real device.
class Memory {
 public:
  explicit Memory(int64_t capacity_bytes) : capacity_bytes_(capacity_bytes) {}

  ~Memory();

  uint64_t allocate(int32_t heap, int64_t size_bytes, void** out_data);
  // Memory of somebody else; `release` ends its use.
  uint64_t adopt(void* data, int64_t size_bytes, std::function<void()> release = nullptr);
  void free(int32_t heap, uint64_t buffer);
  // Where an operand's first element is; the bytes from `first` up to `end` around it will be used.
  std::byte* resolve(compute_plugin_operand operand, int64_t first, int64_t end) const;
  int64_t used_bytes() const;

 private:
  struct Block {
    int64_t size_bytes;
    std::byte* base;
    std::function<void()> release;  // NULL: adopted memory that somebody else frees
  };

  const int64_t capacity_bytes_;
  mutable std::mutex mutex_;
  std::unordered_map<uint64_t, Block> blocks_;
  uint64_t last_ = 0;
  int64_t used_bytes_ = 0;
};

// ---- Streams --------------------------------------------------------------------------------------------------------

// How far a stream has come. It outlives the stream, since other streams may still wait for a number.
class Timeline {
 public:
  struct Progress {
    uint64_t reached = 0;
    std::optional<Failure> failure;
  };

  void reach(uint64_t number);
  void fail(const Failure& failure);
  // Waits until `number` is reached, the stream has failed or the time is over.
  Progress wait(uint64_t number, int64_t timeout_ns);

  // Keeps the time at which `number` is reached, until it is taken or not wanted (out_ns NULL).
  void keep_time(uint64_t number);
  void take_time(uint64_t number, int64_t* out_ns);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  Progress progress_;
  std::unordered_map<uint64_t, std::optional<int64_t>> times_;
};

// The clock of the devices: the host's, an hour ahead, so that tests detect confusion of the two. It has 36 bits.
constexpr int64_t kClockWrapNs = int64_t{1} << 36;
int64_t device_clock_ns();
int64_t host_clock_ns();

// What a stream's priority makes of a thread: nothing. Others are refused.
constexpr int32_t kPriorityLeast = -2, kPriorityGreatest = 3;

struct Device;

// A queue of tasks and the thread that runs them in order.
class Stream {
 public:
  explicit Stream(Device& owner);
  ~Stream();  // waits for queued work

  void submit(std::function<void()> task);
  // Fails the stream with CANCELLED. A task that waits for the host ends.
  void cancel();
  bool is_cancelled() const { return cancelled_.load(); }
  void retire();  // no work follows: the thread ends after the queued work
  bool finished();
  void settle();  // waits until nothing is queued and nothing runs

  Device& device;
  Memory& memory;
  const std::shared_ptr<Timeline> timeline = std::make_shared<Timeline>();

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable filled_, emptied_;
  std::deque<std::function<void()>> tasks_;
  bool busy_ = false;
  bool retired_ = false;
  bool finished_ = false;
  std::atomic<bool> cancelled_{false};
  std::thread thread_;
};

// ---- Devices --------------------------------------------------------------------------------------------------------

struct Device {
  Device(uint64_t id, int64_t capacity_bytes) : id(id), memory(capacity_bytes) {}

  const uint64_t id;
  Memory memory;
  std::mutex mutex;  // of the list
  std::vector<std::unique_ptr<Stream>> streams;
};

// Each part fills its slots of the device table.
void fill_memory_slots(compute_plugin_device_table& table);
void fill_stream_slots(compute_plugin_device_table& table);
void fill_op_slots(compute_plugin_device_table& table);

const compute_plugin_graph_table& graph_table();
const compute_plugin_external_table& external_table();
const compute_plugin_collective_table& collective_table();
const compute_plugin_ops_table& ops_table();

}  // namespace minimal
