// SPDX-License-Identifier: Apache-2.0
// Collectives between the devices of one process. The tasks of the ranks meet, and the last one makes the exchange.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>

#include "minimal.hpp"
#include "values.hpp"

namespace minimal {
namespace {

// What a rank brings.
struct Part {
  const std::byte* src = nullptr;
  std::byte* dst = nullptr;
};

struct Meeting {
  std::vector<Part> parts;
  int32_t arrived = 0, left = 0;
};

// What the ranks of a group share.
struct Ring {
  explicit Ring(int32_t size) : size(size), devices(static_cast<size_t>(size)), is_aborted(static_cast<size_t>(size)) {}

  const int32_t size;
  std::mutex mutex;  // guards the members below
  std::condition_variable changed;
  std::vector<const Device*> devices;  // by rank, once it has joined
  int32_t joined = 0;
  std::vector<bool> is_aborted;                                       // by rank: its own waits end, not those of others
  std::map<uint64_t, Meeting> meetings;                               // of all ranks, by number
  std::map<std::pair<int32_t, int32_t>, std::vector<Part>> messages;  // by sender and receiver
};

struct Group {
  std::shared_ptr<Ring> ring;
  Device& device;
  int32_t rank;
  uint64_t meetings = 0;  // that were queued
};

std::mutex rings_mutex;
std::map<uint64_t, std::weak_ptr<Ring>> rings;  // by id
uint64_t last_id = 0;

// An id is a number and zeros, which tests that core passes all of it on.
constexpr int64_t kIdSize = 4096;

compute_error* make_id(uint64_t, void* id, int64_t capacity, int64_t* out_size) {
  *out_size = 0;
  return guard([&] {
    if (capacity < kIdSize) throw Failure(COMPUTE_ERROR_UNSUPPORTED, "minimal: there is no room for an id");
    std::memset(id, 0, kIdSize);
    const std::lock_guard lock(rings_mutex);
    ++last_id;
    std::memcpy(id, &last_id, sizeof last_id);
    *out_size = kIdSize;
  });
}

compute_error* join(uint64_t device, const compute_plugin_group_options* options, uint64_t* out_group) {
  *out_group = 0;
  return guard([&] {
    understand(*options, "the group's options");
    if (options->id_size != kIdSize) throw Failure(COMPUTE_ERROR_INTERNAL, "minimal: the id has another size");
    const int32_t size = options->size, rank = options->rank;
    uint64_t number = 0;
    std::memcpy(&number, options->id, sizeof number);
    std::shared_ptr<Ring> ring;
    {
      const std::lock_guard lock(rings_mutex);
      ring = rings[number].lock();
      if (ring == nullptr) rings[number] = ring = std::make_shared<Ring>(size);
    }
    Device& own = from_handle<Device>(device);
    std::unique_lock lock(ring->mutex);
    ring->devices[static_cast<size_t>(rank)] = &own;
    ++ring->joined;
    ring->changed.notify_all();
    const auto all_joined = [&] { return ring->joined == size; };
    if (options->timeout_ns == INT64_MAX) {
      ring->changed.wait(lock, all_joined);
    } else if (!ring->changed.wait_for(lock, std::chrono::nanoseconds(options->timeout_ns), all_joined)) {
      throw Failure(COMPUTE_ERROR_PEER_FAILED, "minimal: not all ranks have joined within the time limit");
    }
    if (std::count(ring->devices.begin(), ring->devices.end(), &own) > 1)
      throw Failure(COMPUTE_ERROR_UNSUPPORTED, "minimal: two ranks are one device");
    log("compile", "minimal joins rank " + std::to_string(rank) + " of " + std::to_string(size));
    *out_group = to_handle(new Group{ring, own, rank});
  });
}

int32_t supports(uint64_t, const compute_plugin_collective* collective) {
  const bool is_known = collective->kind >= COMPUTE_PLUGIN_COLLECTIVE_ALL_REDUCE &&
                        collective->kind <= COMPUTE_PLUGIN_COLLECTIVE_RECV && is_dtype(collective->dtype) &&
                        collective->reduction >= 0 && collective->reduction <= COMPUTE_REDUCTION_MAX;
  if (!is_known || collective->reduction == 0) return is_known ? 1 : 0;
  return collective->dtype == COMPUTE_DTYPE_INT32 ? 1 : 0;
}

int32_t combined(int32_t reduction, int32_t a, int32_t b) {
  switch (reduction) {
    case COMPUTE_REDUCTION_PROD:
      return a * b;
    case COMPUTE_REDUCTION_MIN:
      return std::min(a, b);
    case COMPUTE_REDUCTION_MAX:
      return std::max(a, b);
    default:
      return a + b;
  }
}

int64_t size_of(int32_t dtype) {
  constexpr int64_t kSizes[] = {0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16};
  return kSizes[dtype];
}

// Element i of all ranks, which is element `at` of their sources.
int32_t reduced(const Meeting& meeting, int32_t reduction, int64_t at) {
  int32_t result = 0;
  for (size_t rank = 0; rank < meeting.parts.size(); ++rank) {
    const int32_t value = reinterpret_cast<const int32_t*>(meeting.parts[rank].src)[at];
    result = rank == 0 ? value : combined(reduction, result, value);
  }
  return result;
}

// The whole exchange, for all ranks.
void exchange(Meeting& meeting, const compute_plugin_collective& call) {
  const auto bytes = static_cast<size_t>(call.count * size_of(call.dtype));
  const size_t ranks = meeting.parts.size();
  if (call.kind == COMPUTE_PLUGIN_COLLECTIVE_ALL_REDUCE || call.kind == COMPUTE_PLUGIN_COLLECTIVE_REDUCE_SCATTER) {
    const bool scatters = call.kind == COMPUTE_PLUGIN_COLLECTIVE_REDUCE_SCATTER;
    std::vector<int32_t> results(static_cast<size_t>(call.count) * (scatters ? ranks : 1));
    for (size_t i = 0; i < results.size(); ++i) results[i] = reduced(meeting, call.reduction, static_cast<int64_t>(i));
    for (size_t rank = 0; rank < ranks; ++rank) {
      const size_t first = scatters ? rank * static_cast<size_t>(call.count) : 0;
      std::memcpy(meeting.parts[rank].dst, results.data() + first, bytes);
    }
    return;
  }
  for (size_t to = 0; to < ranks; ++to) {
    std::byte* const dst = meeting.parts[to].dst;
    for (size_t from = 0; from < ranks; ++from) {
      const std::byte* const src = meeting.parts[from].src;
      if (call.kind == COMPUTE_PLUGIN_COLLECTIVE_ALL_GATHER) std::memcpy(dst + from * bytes, src, bytes);
      if (call.kind == COMPUTE_PLUGIN_COLLECTIVE_ALL_TO_ALL) std::memcpy(dst + from * bytes, src + to * bytes, bytes);
    }
    const std::byte* const root = meeting.parts[static_cast<size_t>(call.peer)].src;
    if (call.kind == COMPUTE_PLUGIN_COLLECTIVE_BROADCAST && dst != root) std::memcpy(dst, root, bytes);
  }
}

void meet(Ring& ring, uint64_t number, int32_t rank, const Part& part, const compute_plugin_collective& call) {
  std::unique_lock lock(ring.mutex);
  Meeting& meeting = ring.meetings[number];
  meeting.parts.resize(static_cast<size_t>(ring.size));
  meeting.parts[static_cast<size_t>(rank)] = part;
  if (++meeting.arrived == ring.size) {
    exchange(meeting, call);
    ring.changed.notify_all();
  }
  ring.changed.wait(lock, [&] { return ring.is_aborted[static_cast<size_t>(rank)] || meeting.arrived == ring.size; });
  if (++meeting.left == ring.size) ring.meetings.erase(number);
}

// The receiver copies; the sender waits for that.
void pass(Ring& ring, int32_t rank, const Part& part, const compute_plugin_collective& call) {
  std::unique_lock lock(ring.mutex);
  const bool sends = call.kind == COMPUTE_PLUGIN_COLLECTIVE_SEND;
  std::vector<Part>& waiting = sends ? ring.messages[{rank, call.peer}] : ring.messages[{call.peer, rank}];
  if (sends) {
    waiting.push_back(part);
    ring.changed.notify_all();
    const auto is_there = [&] {
      return std::any_of(waiting.begin(), waiting.end(), [&](const Part& one) { return one.src == part.src; });
    };
    ring.changed.wait(lock, [&] { return ring.is_aborted[static_cast<size_t>(rank)] || !is_there(); });
    return;
  }
  ring.changed.wait(lock, [&] { return ring.is_aborted[static_cast<size_t>(rank)] || !waiting.empty(); });
  if (waiting.empty()) return;
  std::memcpy(part.dst, waiting.front().src, static_cast<size_t>(call.count * size_of(call.dtype)));
  waiting.erase(waiting.begin());
  ring.changed.notify_all();
}

void run_one(Group& group, Stream& stream, const compute_plugin_collective& given) {
  understand(given, "a collective");
  if (given.struct_type != COMPUTE_PLUGIN_STRUCT_COLLECTIVE)
    throw Failure(COMPUTE_ERROR_INVALID_ARGUMENT, "minimal: a collective of another type");
  const compute_plugin_collective call = whole(given);
  const bool is_pair = call.kind == COMPUTE_PLUGIN_COLLECTIVE_SEND || call.kind == COMPUTE_PLUGIN_COLLECTIVE_RECV;
  const int64_t bytes = call.count * size_of(call.dtype);
  Part part;
  if (call.src.buffer != 0) part.src = group.device.memory.resolve(call.src, 0, bytes);
  if (call.dst.buffer != 0) part.dst = group.device.memory.resolve(call.dst, 0, bytes);
  const uint64_t number = is_pair ? 0 : ++group.meetings;
  stream.submit([ring = group.ring, rank = group.rank, number, part, call] {
    if (number == 0) {
      pass(*ring, rank, part, call);
    } else {
      meet(*ring, number, rank, part, call);
    }
  });
}

// In the order of the list, which is one of the orders that the interface allows.
compute_error* run(uint64_t group, uint64_t stream, const compute_plugin_collective* list, int32_t count) {
  return guard([&] {
    for (int32_t i = 0; i < count; ++i) {
      const compute_plugin_collective& one = element(list, i);
      run_one(from_handle<Group>(group), from_handle<Stream>(stream), one);
    }
  });
}

compute_error* failure(uint64_t handle) {
  return guard([&] {
    Ring& ring = *from_handle<Group>(handle).ring;
    const std::lock_guard lock(ring.mutex);
    if (std::count(ring.is_aborted.begin(), ring.is_aborted.end(), true) > 0)
      throw Failure(COMPUTE_ERROR_PEER_FAILED, "minimal: a rank has aborted");
  });
}

void abort(uint64_t handle) {
  const Group& group = from_handle<Group>(handle);
  Ring& ring = *group.ring;
  const std::lock_guard lock(ring.mutex);
  ring.is_aborted[static_cast<size_t>(group.rank)] = true;
  ring.changed.notify_all();
}

void leave(uint64_t handle) { delete &from_handle<Group>(handle); }

void describe(uint64_t, compute_string* out_text) { *out_text = text("loopback 1.0"); }

}  // namespace

const compute_plugin_collective_table& collective_table() {
  static constexpr compute_plugin_collective_table kTable = {
      sizeof(compute_plugin_collective_table), make_id, join, supports, run, failure, abort, leave, describe};
  return kTable;
}

}  // namespace minimal
