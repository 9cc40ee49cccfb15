// SPDX-License-Identifier: Apache-2.0
#include "plugins/cuda/collective.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include "plugins/common/driver/signals_blocked.hpp"
#include "plugins/cuda/libraries.hpp"
#include "plugins/cuda/status.hpp"

namespace compute::cuda {
namespace {

const NcclApi& require_nccl() {
  if (const NcclApi* const api = nccl()) return *api;
  const LibraryReport report = nccl_report();
  throw Error(COMPUTE_ERROR_NOT_FOUND,
              "NCCL was not found (" + tried_in_short(report) + "): " + report.error + "; " + report.remedy);
}

void check(const NcclApi& api, ncclResult result, ncclComm comm, const char* what) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  const char* const detail = api.get_last_error(comm);
  const compute_error_code code = result == ncclRemoteError    ? COMPUTE_ERROR_PEER_FAILED
                                  : result == ncclInvalidUsage ? COMPUTE_ERROR_UNSUPPORTED
                                                               : COMPUTE_ERROR_INTERNAL;
  throw Error(code, std::string(what) + ": NCCL reports " + api.get_error_string(result) +
                        (detail != nullptr && *detail != '\0' ? std::string(": ") + detail : "") +
                        "; NCCL_DEBUG=WARN says more");
}

// NCCL's type, and how many of them an element is; 0: it has none.
struct Type {
  int32_t type;
  size_t count;
};

Type type_of(int32_t dtype) {
  switch (dtype) {
    case COMPUTE_DTYPE_BOOL:
    case COMPUTE_DTYPE_UINT8:
      return {ncclUint8, 1};
    case COMPUTE_DTYPE_INT8:
      return {ncclInt8, 1};
    case COMPUTE_DTYPE_INT32:
      return {ncclInt32, 1};
    case COMPUTE_DTYPE_UINT32:
      return {ncclUint32, 1};
    case COMPUTE_DTYPE_INT64:
      return {ncclInt64, 1};
    case COMPUTE_DTYPE_UINT64:
      return {ncclUint64, 1};
    case COMPUTE_DTYPE_FLOAT16:
      return {ncclFloat16, 1};
    case COMPUTE_DTYPE_BFLOAT16:
      return {ncclBfloat16, 1};
    case COMPUTE_DTYPE_FLOAT32:
      return {ncclFloat32, 1};
    case COMPUTE_DTYPE_FLOAT64:
      return {ncclFloat64, 1};
    case COMPUTE_DTYPE_COMPLEX64:
      return {ncclFloat32, 2};
    case COMPUTE_DTYPE_COMPLEX128:
      return {ncclFloat64, 2};
    default:
      return {ncclUint8, 0};
  }
}

size_t size_of_element(int32_t dtype) {
  constexpr size_t kSizes[] = {0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16};
  return kSizes[dtype];
}

// For calls that only move elements.
Type type_to_move(int32_t dtype) {
  if (dtype == COMPUTE_DTYPE_INT16 || dtype == COMPUTE_DTYPE_UINT16) return {ncclUint8, 2};
  return type_of(dtype);
}

int32_t op_of(int32_t reduction) {
  switch (reduction) {
    case COMPUTE_REDUCTION_PROD:
      return ncclProd;
    case COMPUTE_REDUCTION_MIN:
      return ncclMin;
    case COMPUTE_REDUCTION_MAX:
      return ncclMax;
    case COMPUTE_REDUCTION_MEAN:
      return ncclAvg;
    default:
      return ncclSum;
  }
}

}  // namespace

// Of bool any byte but 0 is true, which no reduction of NCCL knows. Min and max of floating-point numbers drop NaN.
bool supports_collective(const compute_plugin_collective& collective) {
  if (collective.kind < COMPUTE_PLUGIN_COLLECTIVE_ALL_REDUCE || collective.kind > COMPUTE_PLUGIN_COLLECTIVE_RECV ||
      collective.reduction < 0 || collective.reduction > COMPUTE_REDUCTION_MEAN)
    return false;
  if (collective.reduction == 0) return type_to_move(collective.dtype).count != 0;
  const bool is_order = collective.reduction == COMPUTE_REDUCTION_MIN || collective.reduction == COMPUTE_REDUCTION_MAX;
  if (collective.dtype == COMPUTE_DTYPE_BOOL || (is_order && collective.dtype >= COMPUTE_DTYPE_FLOAT16)) return false;
  const Type type = type_of(collective.dtype);
  return type.count == 1 || (type.count == 2 && collective.reduction != COMPUTE_REDUCTION_PROD);
}

int64_t make_group_id(void* id, int64_t capacity) {
  const NcclApi& api = require_nccl();
  ncclId made{};
  if (capacity < static_cast<int64_t>(sizeof made))
    throw Error(COMPUTE_ERROR_UNSUPPORTED, "the id of a group has " + std::to_string(sizeof made) + " bytes");
  check(api, api.get_unique_id(&made), nullptr, "making the id of a group");
  std::memcpy(id, &made, sizeof made);
  return sizeof made;
}

namespace {

// Counts the threads that are inside NCCL to join a group or to end one. Never destroyed, because they may still run
// when the process ends.
class Threads {
 public:
  void add() {
    const std::lock_guard guard(mutex_);
    ++count_;
  }
  void remove() {
    const std::lock_guard guard(mutex_);
    --count_;
    changed_.notify_all();
  }
  void wait_for(std::chrono::nanoseconds limit) {
    std::unique_lock guard(mutex_);
    changed_.wait_for(guard, limit, [this] { return count_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
};
Threads& threads() {
  static auto& made = *new Threads;
  return made;
}

// Runs the function on a thread of its own, without signals. Throws std::system_error if there is no thread.
template <class F>
void start(F&& body) {
  const common::SignalsBlocked blocked;
  threads().add();
  try {
    std::thread([body = std::forward<F>(body)] {
      body();
      threads().remove();
    }).detach();
  } catch (...) {
    threads().remove();
    throw;
  }
}

// A call of ncclCommInitRank, on a thread of its own.
struct Joining {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_done = false, is_given_up = false;
  ncclResult result = ncclSuccess;
  ncclComm comm = nullptr;
};

// ncclCommInitRank has no time limit. So another thread calls it. If that takes too long, the thread is left alone, and
// ends by itself what it has joined.
ncclResult join_within(const NcclApi& api, CUcontext context, const ncclId& id,
                       const compute_plugin_group_options& options, ncclComm* out_comm) {
  const auto joining = std::make_shared<Joining>();
  const auto join = [&api, context, id, size = options.size, rank = options.rank, joining] {
    ncclComm comm = nullptr;
    const bool is_current = cu.ctx_set_current(context) == CUDA_SUCCESS;
    const ncclResult result = is_current ? api.comm_init_rank(&comm, size, id, rank) : ncclUnhandledCudaError;
    {
      const std::lock_guard guard(joining->mutex);
      joining->result = result;
      joining->comm = comm;
      joining->is_done = true;
      joining->changed.notify_all();
      if (!joining->is_given_up) return;
    }
    if (comm != nullptr) api.comm_abort(comm);
  };
  start(join);
  constexpr int64_t kYear = int64_t{365} * 24 * 3600 * 1'000'000'000;
  std::unique_lock guard(joining->mutex);
  const std::chrono::nanoseconds limit(std::min(options.timeout_ns, kYear));
  if (!joining->changed.wait_for(guard, limit, [&] { return joining->is_done; })) {
    joining->is_given_up = true;
    throw Error(COMPUTE_ERROR_PEER_FAILED, "joining a group: not all ranks have joined it within the time limit");
  }
  *out_comm = joining->comm;
  return joining->result;
}

}  // namespace

Group::Group(Device& device, const compute_plugin_group_options& options) : device_(device), size_(options.size) {
  const NcclApi& api = require_nccl();
  const Current current = device.current();
  ncclId id;
  if (options.id_size != static_cast<int64_t>(sizeof id))
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, "the id of a group has " + std::to_string(options.id_size) + " bytes");
  std::memcpy(&id, options.id, sizeof id);
  const bool is_limited = options.timeout_ns != INT64_MAX;
  check(api,
        is_limited ? join_within(api, device.context(), id, options, &comm_)
                   : api.comm_init_rank(&comm_, options.size, id, options.rank),
        nullptr, "joining a group");
  int version = 0;
  api.get_version(&version);  // 22703 for 2.27.3
  description_ = "nccl " + std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
                 std::to_string(version % 100);
}

Group::~Group() {
  if (comm_ == nullptr) return;
  try {
    if (!is_aborted_) free_by(nccl()->comm_destroy);
  } catch (...) {
    // The context is lost, and the communicator with it.
  }
  // Usually it ends soon, and then a program that ends next need not wait in finish_groups.
  if (freed_.valid()) freed_.wait_for(std::chrono::seconds(1));
}

// NCCL ends the proxy thread of a rank after the other ranks of the machine have closed their connections to it. So
// ncclCommDestroy and ncclCommAbort both return after the other ranks have called one of them. A rank that fails must
// not wait for that, because it tells the other ranks afterwards; a rank that leaves may be the only one.
void Group::free_by(ncclResult (*end)(ncclComm)) {
  const auto done = std::make_shared<std::promise<void>>();
  freed_ = done->get_future();
  const auto free = [end, comm = comm_, context = device_.context(), done] {
    // NCCL makes the device current again that it has found. A lost context fails, and the communicator with it.
    if (cu.ctx_set_current(context) == CUDA_SUCCESS) end(comm);
    done->set_value();
  };
  try {
    start(free);
  } catch (const std::system_error&) {
    const Current current = device_.current();
    free();
  }
}

void Group::run(Stream& stream, const compute_plugin_collective* list, int32_t count) {
  {
    const std::lock_guard guard(mutex_);
    if (is_aborted_) throw Error(COMPUTE_ERROR_PEER_FAILED, "the group was aborted");
  }
  for (int32_t i = 0; i < count; ++i) {
    const compute_plugin_collective& collective = *common::at_step(list, i);
    if (!supports_collective(collective))
      throw Error(COMPUTE_ERROR_UNSUPPORTED, "a collective of kind " + std::to_string(collective.kind));
  }
  const NcclApi& api = *nccl();
  const Current current = device_.current();
  ncclResult result = count > 1 ? api.group_start() : ncclSuccess;
  for (int32_t i = 0; i < count && result == ncclSuccess; ++i)
    result = submit(stream.handle(), *common::at_step(list, i));
  if (count > 1) {
    const ncclResult ended = api.group_end();
    if (result == ncclSuccess) result = ended;
  }
  check(api, result, comm_, "a collective");
}

ncclResult Group::submit(CUstream queue, const compute_plugin_collective& collective) {
  const NcclApi& api = *nccl();
  const auto* const src = reinterpret_cast<const char*>(collective.src.buffer + collective.src.offset_bytes);
  auto* const dst = reinterpret_cast<char*>(collective.dst.buffer + collective.dst.offset_bytes);
  const Type type = collective.reduction != 0 ? type_of(collective.dtype) : type_to_move(collective.dtype);
  const size_t count = static_cast<size_t>(collective.count) * type.count;
  const int32_t op = op_of(collective.reduction);
  switch (collective.kind) {
    case COMPUTE_PLUGIN_COLLECTIVE_ALL_REDUCE:
      return api.all_reduce(src, dst, count, type.type, op, comm_, queue);
    case COMPUTE_PLUGIN_COLLECTIVE_REDUCE_SCATTER:
      return api.reduce_scatter(src, dst, count, type.type, op, comm_, queue);
    case COMPUTE_PLUGIN_COLLECTIVE_ALL_GATHER:
      return api.all_gather(src, dst, count, type.type, comm_, queue);
    case COMPUTE_PLUGIN_COLLECTIVE_BROADCAST:
      return api.broadcast(src, dst, count, type.type, collective.peer, comm_, queue);
    case COMPUTE_PLUGIN_COLLECTIVE_ALL_TO_ALL: {
      const size_t part = static_cast<size_t>(collective.count) * size_of_element(collective.dtype);
      ncclResult result = api.group_start();
      for (int32_t peer = 0; result == ncclSuccess && peer < size_; ++peer) {
        result = api.send(src + static_cast<size_t>(peer) * part, count, type.type, peer, comm_, queue);
        if (result == ncclSuccess)
          result = api.recv(dst + static_cast<size_t>(peer) * part, count, type.type, peer, comm_, queue);
      }
      const ncclResult ended = api.group_end();
      return result == ncclSuccess ? ended : result;
    }
    case COMPUTE_PLUGIN_COLLECTIVE_SEND:
      return api.send(src, count, type.type, collective.peer, comm_, queue);
    default:
      return api.recv(dst, count, type.type, collective.peer, comm_, queue);
  }
}

void Group::require_success() const {
  const std::lock_guard guard(mutex_);
  if (is_aborted_) return;
  const NcclApi& api = *nccl();
  ncclResult failure = ncclSuccess;
  check(api, api.comm_get_async_error(comm_, &failure), comm_, "a collective");
  check(api, failure, comm_, "a collective");
}

void Group::abort() {
  const std::lock_guard guard(mutex_);
  if (std::exchange(is_aborted_, true)) return;
  free_by(nccl()->comm_abort);
}

void finish_groups() { threads().wait_for(std::chrono::seconds(10)); }

}  // namespace compute::cuda
