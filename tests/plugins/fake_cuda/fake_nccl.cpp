// SPDX-License-Identifier: Apache-2.0
// A libnccl.so.2 for the fake driver's memory, between the threads of one process. A call waits for the other ranks, as
// kernels of NCCL do; the last rank makes the exchange.
#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "plugins/cuda/nccl_api.hpp"

using namespace compute::cuda;

namespace {

enum class Kind : uint8_t { kAllReduce, kReduceScatter, kAllGather, kBroadcast };

struct Meeting {
  std::vector<const char*> sources;
  std::vector<char*> targets;
  int arrived = 0, left = 0;
};

struct Ring {
  explicit Ring(int size) : size(size) {}

  const int size;
  int joined = 0;
  bool is_aborted = false;
  std::map<uint64_t, Meeting> meetings;
  std::map<std::pair<int, int>, std::vector<const void*>> messages;  // by sender and receiver
};

std::mutex mutex;  // of all that follows
std::condition_variable changed;
std::map<uint64_t, std::weak_ptr<Ring>> rings;
uint64_t last_id = 0;

size_t size_of(int32_t type) {
  constexpr size_t kSizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return kSizes[type];
}

template <class T>
void add_up(const Meeting& meeting, size_t begin, size_t count, bool mean, char* out) {
  for (size_t i = 0; i < count; ++i) {
    T sum{};
    for (const char* const source : meeting.sources) {
      T value;
      std::memcpy(&value, source + (begin + i) * sizeof(T), sizeof(T));
      sum = static_cast<T>(sum + value);
    }
    if (mean) sum = static_cast<T>(sum / static_cast<T>(meeting.sources.size()));
    std::memcpy(out + i * sizeof(T), &sum, sizeof(T));
  }
}

}  // namespace

struct compute::cuda::ncclCommunicator {
  std::shared_ptr<Ring> ring;
  int rank;
  uint64_t meetings = 0;
};

namespace {

struct Transfer {
  ncclComm comm;
  const void* src;
  void* dst;
  size_t bytes;
  int peer;
};
thread_local int group_depth = 0;
thread_local std::vector<Transfer> queued;

// Only sums and means, of the types that tests reduce.
ncclResult meet(ncclComm comm, Kind kind, const void* src, void* dst, size_t count, int32_t type, int32_t op,
                int root) {
  std::unique_lock lock(mutex);
  Ring& ring = *comm->ring;
  const uint64_t number = ++comm->meetings;
  Meeting& meeting = ring.meetings[number];
  meeting.sources.resize(static_cast<size_t>(ring.size));
  meeting.targets.resize(static_cast<size_t>(ring.size));
  meeting.sources[static_cast<size_t>(comm->rank)] = static_cast<const char*>(src);
  meeting.targets[static_cast<size_t>(comm->rank)] = static_cast<char*>(dst);
  const size_t bytes = count * size_of(type);
  if (++meeting.arrived == ring.size) {
    std::vector<std::vector<char>> results;  // before any is written: a target may be a source
    for (size_t rank = 0; rank < meeting.targets.size(); ++rank) {
      std::vector<char> result(kind == Kind::kAllGather ? bytes * meeting.sources.size() : bytes);
      const size_t begin = kind == Kind::kReduceScatter ? rank * count : 0;
      if (kind == Kind::kAllGather) {
        for (size_t from = 0; from < meeting.sources.size(); ++from)
          std::memcpy(result.data() + from * bytes, meeting.sources[from], bytes);
      } else if (kind == Kind::kBroadcast) {
        std::memcpy(result.data(), meeting.sources[static_cast<size_t>(root)], bytes);
      } else if (type == ncclFloat32) {
        add_up<float>(meeting, begin, count, op == ncclAvg, result.data());
      } else {
        add_up<int32_t>(meeting, begin, count, op == ncclAvg, result.data());
      }
      results.push_back(std::move(result));
    }
    for (size_t rank = 0; rank < meeting.targets.size(); ++rank)
      std::memcpy(meeting.targets[rank], results[rank].data(), results[rank].size());
    changed.notify_all();
  }
  changed.wait(lock, [&] { return ring.is_aborted || meeting.arrived == ring.size; });
  const bool is_complete = meeting.arrived == ring.size;
  if (++meeting.left == ring.size) ring.meetings.erase(number);
  return is_complete ? ncclSuccess : ncclRemoteError;
}

// All sends and receipts together, as between ncclGroupStart and ncclGroupEnd.
ncclResult pass(const std::vector<Transfer>& transfers) {
  std::unique_lock lock(mutex);
  const auto box = [](const Transfer& one) -> std::vector<const void*>& {
    return one.src != nullptr ? one.comm->ring->messages[{one.comm->rank, one.peer}]
                              : one.comm->ring->messages[{one.peer, one.comm->rank}];
  };
  for (const Transfer& one : transfers) {
    if (one.src != nullptr) box(one).push_back(one.src);
  }
  changed.notify_all();
  for (const Transfer& one : transfers) {
    if (one.dst == nullptr) continue;
    std::vector<const void*>& waiting = box(one);
    changed.wait(lock, [&] { return one.comm->ring->is_aborted || !waiting.empty(); });
    if (waiting.empty()) return ncclRemoteError;
    std::memcpy(one.dst, waiting.front(), one.bytes);
    waiting.erase(waiting.begin());
    changed.notify_all();
  }
  for (const Transfer& one : transfers) {
    if (one.src == nullptr) continue;
    const std::vector<const void*>& waiting = box(one);
    const auto is_taken = [&] { return std::find(waiting.begin(), waiting.end(), one.src) == waiting.end(); };
    changed.wait(lock, [&] { return one.comm->ring->is_aborted || is_taken(); });
    if (!is_taken()) return ncclRemoteError;
  }
  return ncclSuccess;
}

ncclResult queue(const Transfer& transfer) {
  if (group_depth == 0) return pass({transfer});
  queued.push_back(transfer);
  return ncclSuccess;
}

}  // namespace

#define FAKE extern "C" __attribute__((visibility("default")))

FAKE ncclResult ncclGetVersion(int* version) {
  *version = 22703;
  return ncclSuccess;
}
FAKE ncclResult ncclGetUniqueId(ncclId* id) {
  const std::lock_guard lock(mutex);
  ++last_id;
  std::memset(id, 0, sizeof *id);
  std::memcpy(id, &last_id, sizeof last_id);
  return ncclSuccess;
}
FAKE const char* ncclGetErrorString(ncclResult) { return "fake error"; }
FAKE const char* ncclGetLastError(ncclComm) { return ""; }
FAKE ncclResult ncclCommInitRank(ncclComm* comm, int size, ncclId id, int rank) {
  if (const char* refused = std::getenv("FAKE_NCCL"); refused != nullptr && std::strcmp(refused, "refuses") == 0)
    return ncclInvalidUsage;
  uint64_t number = 0;
  std::memcpy(&number, &id, sizeof number);
  std::unique_lock lock(mutex);
  std::shared_ptr<Ring> ring = rings[number].lock();
  if (ring == nullptr) rings[number] = ring = std::make_shared<Ring>(size);
  ++ring->joined;
  changed.notify_all();
  changed.wait(lock, [&] { return ring->joined == size; });
  *comm = new compute::cuda::ncclCommunicator{ring, rank};
  return ncclSuccess;
}
FAKE ncclResult ncclCommDestroy(ncclComm comm) {
  delete comm;
  return ncclSuccess;
}
// As NCCL, it frees the communicator; this one is kept, because a call may be in progress.
FAKE ncclResult ncclCommAbort(ncclComm comm) {
  const std::lock_guard lock(mutex);
  comm->ring->is_aborted = true;
  changed.notify_all();
  static auto* const kept = new std::vector<ncclComm>;
  kept->push_back(comm);
  return ncclSuccess;
}
FAKE ncclResult ncclCommGetAsyncError(ncclComm comm, ncclResult* error) {
  const std::lock_guard lock(mutex);
  *error = comm->ring->is_aborted ? ncclRemoteError : ncclSuccess;
  return ncclSuccess;
}
FAKE ncclResult ncclAllReduce(const void* src, void* dst, size_t count, int32_t type, int32_t op, ncclComm comm,
                              CUstream) {
  return meet(comm, Kind::kAllReduce, src, dst, count, type, op, 0);
}
FAKE ncclResult ncclReduceScatter(const void* src, void* dst, size_t count, int32_t type, int32_t op, ncclComm comm,
                                  CUstream) {
  return meet(comm, Kind::kReduceScatter, src, dst, count, type, op, 0);
}
FAKE ncclResult ncclAllGather(const void* src, void* dst, size_t count, int32_t type, ncclComm comm, CUstream) {
  return meet(comm, Kind::kAllGather, src, dst, count, type, ncclSum, 0);
}
FAKE ncclResult ncclBroadcast(const void* src, void* dst, size_t count, int32_t type, int root, ncclComm comm,
                              CUstream) {
  return meet(comm, Kind::kBroadcast, src, dst, count, type, ncclSum, root);
}
FAKE ncclResult ncclSend(const void* src, size_t count, int32_t type, int peer, ncclComm comm, CUstream) {
  return queue({comm, src, nullptr, count * size_of(type), peer});
}
FAKE ncclResult ncclRecv(void* dst, size_t count, int32_t type, int peer, ncclComm comm, CUstream) {
  return queue({comm, nullptr, dst, count * size_of(type), peer});
}
FAKE ncclResult ncclGroupStart() {
  ++group_depth;
  return ncclSuccess;
}
FAKE ncclResult ncclGroupEnd() {
  if (--group_depth > 0) return ncclSuccess;
  return pass(std::exchange(queued, {}));
}
