// SPDX-License-Identifier: Apache-2.0
// A libnccl.so.2 for the fake driver's memory, between the threads of one process; with FAKE_NCCL=processes between
// processes, which can only add up a few float32. A call waits for the other ranks, as kernels of NCCL do, until its
// own rank aborts; the last rank makes the exchange.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
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
  std::map<uint64_t, Meeting> meetings;
  std::map<std::pair<int, int>, std::vector<const void*>> messages;  // by sender and receiver
};

// Ranks of processes, in shared memory that begins with zeros.
struct SharedRing {
  static constexpr size_t kRanks = 8, kElements = 1024;

  std::atomic<int> joined, ended;
  std::array<std::atomic<uint64_t>, kRanks> arrived;
  float values[2][kRanks][kElements];  // of a call and of the one before it
};

// Never destroyed, because threads may wait when the process ends.
std::mutex& mutex = *new std::mutex;  // of all that follows
std::condition_variable& changed = *new std::condition_variable;
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
  std::atomic<bool> is_aborted{false};
  SharedRing* shared = nullptr;  // then there is no ring
  int size = 0;
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

template <class F>
void wait_until(F&& is_true) {
  while (!is_true()) std::this_thread::sleep_for(std::chrono::microseconds(100));
}

ncclResult add_up_between_processes(ncclComm comm, const void* src, void* dst, size_t count) {
  SharedRing& ring = *comm->shared;
  const auto own = static_cast<size_t>(comm->rank), size = static_cast<size_t>(comm->size);
  const uint64_t number = ++comm->meetings;
  auto& values = ring.values[number % 2];
  std::memcpy(values[own], src, count * sizeof(float));
  ring.arrived[own] = number;
  for (size_t rank = 0; rank < size; ++rank) {
    wait_until([&] { return comm->is_aborted || ring.arrived[rank] >= number; });
    if (ring.arrived[rank] < number) return ncclRemoteError;
  }
  std::vector<float> sum(count);
  for (size_t rank = 0; rank < size; ++rank) {
    for (size_t i = 0; i < count; ++i) sum[i] += values[rank][i];
  }
  std::memcpy(dst, sum.data(), count * sizeof(float));
  return ncclSuccess;
}

// Only sums and means, of the types that tests reduce.
ncclResult meet(ncclComm comm, Kind kind, const void* src, void* dst, size_t count, int32_t type, int32_t op,
                int root) {
  if (comm->shared != nullptr) {
    const bool is_known = kind == Kind::kAllReduce && type == ncclFloat32 && op == ncclSum;
    if (!is_known || count > SharedRing::kElements) return ncclInvalidUsage;
    return add_up_between_processes(comm, src, dst, count);
  }
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
  changed.wait(lock, [&] { return comm->is_aborted || meeting.arrived == ring.size; });
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
    changed.wait(lock, [&] { return one.comm->is_aborted || !waiting.empty(); });
    if (waiting.empty()) return ncclRemoteError;
    std::memcpy(one.dst, waiting.front(), one.bytes);
    waiting.erase(waiting.begin());
    changed.notify_all();
  }
  for (const Transfer& one : transfers) {
    if (one.src == nullptr) continue;
    const std::vector<const void*>& waiting = box(one);
    const auto is_taken = [&] { return std::find(waiting.begin(), waiting.end(), one.src) == waiting.end(); };
    changed.wait(lock, [&] { return one.comm->is_aborted || is_taken(); });
    if (!is_taken()) return ncclRemoteError;
  }
  return ncclSuccess;
}

ncclResult queue(const Transfer& transfer) {
  if (transfer.comm->shared != nullptr) return ncclInvalidUsage;
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
  const uint64_t number = static_cast<uint64_t>(getpid()) << 32 | last_id;
  std::memset(id, 0, sizeof *id);
  std::memcpy(id, &number, sizeof number);
  return ncclSuccess;
}
FAKE const char* ncclGetErrorString(ncclResult) { return "fake error"; }
FAKE const char* ncclGetLastError(ncclComm) { return ""; }
FAKE ncclResult ncclCommInitRank(ncclComm* comm, int size, ncclId id, int rank) {
  const char* const given = std::getenv("FAKE_NCCL");
  const std::string mode = given != nullptr ? given : "";
  if (mode == "refuses") return ncclInvalidUsage;
  uint64_t number = 0;
  std::memcpy(&number, &id, sizeof number);
  if (mode == "processes") {
    const std::string name = "/fake_nccl_" + std::to_string(number);
    const int file = shm_open(name.c_str(), O_RDWR | O_CREAT, 0600);
    if (file < 0 || size > static_cast<int>(SharedRing::kRanks) || ftruncate(file, sizeof(SharedRing)) != 0)
      return ncclInvalidUsage;
    void* const memory = mmap(nullptr, sizeof(SharedRing), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory == MAP_FAILED) return ncclInvalidUsage;
    auto* const made = new compute::cuda::ncclCommunicator{};
    made->rank = rank;
    made->size = size;
    made->shared = static_cast<SharedRing*>(memory);
    ++made->shared->joined;
    wait_until([&] { return made->shared->joined == size; });
    shm_unlink(name.c_str());
    *comm = made;
    return ncclSuccess;
  }
  std::unique_lock lock(mutex);
  std::shared_ptr<Ring> ring = rings[number].lock();
  if (ring == nullptr) rings[number] = ring = std::make_shared<Ring>(size);
  ++ring->joined;
  changed.notify_all();
  changed.wait(lock, [&] { return ring->joined == size; });
  *comm = new compute::cuda::ncclCommunicator{ring, rank};
  return ncclSuccess;
}

namespace {

// NCCL's destructors do not expect threads inside it either.
struct Ending {
  std::atomic<int> threads = 0;
  ~Ending() {
    if (threads != 0) _exit(77);
  }
};
Ending ending;

// As NCCL, it waits until the ranks of other processes end theirs. With FAKE_NCCL_ABORT_MS it takes as long.
void end(ncclComm comm) {
  if (const char* const given = std::getenv("FAKE_NCCL_ABORT_MS")) {
    ++ending.threads;
    std::this_thread::sleep_for(std::chrono::milliseconds(std::atoi(given)));
    --ending.threads;
  }
  if (comm->shared == nullptr) return;
  ++comm->shared->ended;
  wait_until([&] { return comm->shared->ended == comm->size; });
}

}  // namespace

FAKE ncclResult ncclCommDestroy(ncclComm comm) {
  end(comm);
  delete comm;
  return ncclSuccess;
}
// As NCCL, it frees the communicator; this one is kept, because a call may be in progress.
FAKE ncclResult ncclCommAbort(ncclComm comm) {
  {
    const std::lock_guard lock(mutex);
    comm->is_aborted = true;
    changed.notify_all();
    static auto* const kept = new std::vector<ncclComm>;
    kept->push_back(comm);
  }
  end(comm);
  return ncclSuccess;
}
FAKE ncclResult ncclCommGetAsyncError(ncclComm, ncclResult* error) {
  *error = ncclSuccess;
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
