// SPDX-License-Identifier: Apache-2.0
#include "core/collective/local_transport.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/base/deadline.hpp"
#include "core/base/error.hpp"

namespace compute {
namespace {

enum class Step : uint8_t { kAllGather, kAllToAll, kBroadcast, kSplit };

// An exchange of all ranks. Each rank copies what it receives once all have begun, and has done its part when all have
// copied, because its own memory is read until then.
struct Meeting {
  Step step{};
  int64_t size_bytes = 0;
  int32_t root = 0;
  std::vector<const void*> sources;  // by rank
  std::vector<bool> has_copied;      // by rank
  int32_t begun = 0, ended = 0;      // ranks
};

struct Message {
  const void* data;
  int64_t size_bytes;
  int32_t receiver;
  bool is_begun = false;  // the receiver reads `data`
  bool is_taken = false;
};

// What the ranks share. One lock for all: the copies are made without it.
struct Hub {
  explicit Hub(int32_t size)
      : size(size), exchanges_begun(static_cast<size_t>(size)), is_gone(static_cast<size_t>(size)) {}

  const int32_t size;
  std::mutex mutex;  // guards the members below
  std::map<uint64_t, Meeting> exchanges;
  std::vector<uint64_t> exchanges_begun;                                                 // by rank
  std::vector<bool> is_gone;                                                             // by rank
  std::map<std::pair<int32_t, int32_t>, std::deque<std::shared_ptr<Message>>> messages;  // by sender and receiver
  std::string failure;                                                                   // "" if none
  std::map<uint64_t, std::pair<int32_t, std::shared_ptr<Hub>>> parts;  // of splits in progress, by exchange and color

  void fail(const std::string& why) {
    if (failure.empty()) failure = why;
  }
  // Fails if `rank`, which is waited for, is gone.
  void require(int32_t rank) {
    if (is_gone[static_cast<size_t>(rank)]) fail(fmt::format("rank {} has left the group", rank));
  }
};

struct Split {
  int32_t color, key;
};

struct Request {
  uint64_t exchange = 0;  // of all ranks; else 0
  void* dst = nullptr;
  bool has_copied = false;
  std::shared_ptr<Message> message;  // that this rank has sent
  int32_t sender = -1;               // of what this rank receives
  int64_t size_bytes = 0;
};

struct Rank {
  std::shared_ptr<Hub> hub;
  int32_t rank;
  std::string text;
  Deadline patience = Deadline::max();             // of requests without a number, once another rank is gone
  std::vector<std::unique_ptr<Request>> requests;  // that have not ended, also those that the group has given up

  uint64_t keep(std::unique_ptr<Request> request) {
    requests.push_back(std::move(request));
    return reinterpret_cast<uint64_t>(requests.back().get());
  }
  void end(const Request& request) {
    std::erase_if(requests, [&](const auto& kept) { return kept.get() == &request; });
  }
  int32_t say(const std::string& what) {
    text = what;
    return COMPUTE_ERROR_PEER_FAILED;
  }
};

Rank& self(void* user_data) { return *static_cast<Rank*>(user_data); }
Request& request_of(uint64_t handle) { return *reinterpret_cast<Request*>(handle); }

template <class F>
int32_t guarded(Rank& own, F&& f) noexcept {
  try {
    return f();
  } catch (...) {
    compute_error* const error = current_exception_to_error();
    const int32_t code = error->code;
    own.text.assign(error->message.substr(0, 200));
    compute_error_free(error);
    return code;
  }
}

int32_t begin(Rank& own, Step step, const void* src, void* dst, int64_t size_bytes, int32_t root,
              uint64_t* out_request) {
  return guarded(own, [&]() -> int32_t {
    Hub& hub = *own.hub;
    auto request = std::make_unique<Request>();
    const std::lock_guard guard(hub.mutex);
    if (!hub.failure.empty()) return own.say(hub.failure);
    request->exchange = ++hub.exchanges_begun[static_cast<size_t>(own.rank)];
    Meeting& exchange = hub.exchanges[request->exchange];
    if (exchange.begun == 0) {
      exchange.step = step;
      exchange.size_bytes = size_bytes;
      exchange.root = root;
      exchange.sources.resize(static_cast<size_t>(hub.size));
      exchange.has_copied.resize(static_cast<size_t>(hub.size));
    } else if (exchange.step != step || exchange.size_bytes != size_bytes || exchange.root != root) {
      hub.fail(fmt::format("rank {} exchanges {} bytes where another rank exchanges {}, or in another way", own.rank,
                           size_bytes, exchange.size_bytes));
      return own.say(hub.failure);
    }
    exchange.sources[static_cast<size_t>(own.rank)] = src;
    ++exchange.begun;
    request->dst = dst;
    *out_request = own.keep(std::move(request));
    return 0;
  });
}

int32_t all_gather(const void* src, void* dst, int64_t size_bytes, uint64_t* out_request, void* user_data) {
  return begin(self(user_data), Step::kAllGather, src, dst, size_bytes, 0, out_request);
}

int32_t all_to_all(const void* src, void* dst, int64_t size_bytes, uint64_t* out_request, void* user_data) {
  return begin(self(user_data), Step::kAllToAll, src, dst, size_bytes, 0, out_request);
}

int32_t broadcast(void* data, int64_t size_bytes, int32_t root, uint64_t* out_request, void* user_data) {
  return begin(self(user_data), Step::kBroadcast, data, data, size_bytes, root, out_request);
}

int32_t send(void* data, int64_t size_bytes, int32_t peer, uint64_t* out_request, void* user_data) {
  Rank& own = self(user_data);
  return guarded(own, [&] {
    auto request = std::make_unique<Request>();
    request->message = std::make_shared<Message>(Message{data, size_bytes, peer});
    const std::lock_guard guard(own.hub->mutex);
    own.hub->messages[{own.rank, peer}].push_back(request->message);
    *out_request = own.keep(std::move(request));
    return 0;
  });
}

int32_t recv(void* data, int64_t size_bytes, int32_t peer, uint64_t* out_request, void* user_data) {
  Rank& own = self(user_data);
  return guarded(own, [&] {
    auto request = std::make_unique<Request>();
    request->dst = data;
    request->sender = peer;
    request->size_bytes = size_bytes;
    *out_request = own.keep(std::move(request));
    return 0;
  });
}

void copy_part(const Meeting& exchange, int32_t rank, void* dst) {
  const auto bytes = static_cast<size_t>(exchange.size_bytes);
  auto* out = static_cast<uint8_t*>(dst);
  const auto source = [&](int32_t of) {
    return static_cast<const uint8_t*>(exchange.sources[static_cast<size_t>(of)]);
  };
  if (exchange.step == Step::kBroadcast) {
    if (rank != exchange.root) std::memcpy(out, source(exchange.root), bytes);
    return;
  }
  const size_t begin = exchange.step == Step::kAllToAll ? static_cast<size_t>(rank) * bytes : 0;
  for (int32_t of = 0; of < static_cast<int32_t>(exchange.sources.size()); ++of)
    if (out + static_cast<size_t>(of) * bytes != source(of) + begin)
      std::memcpy(out + static_cast<size_t>(of) * bytes, source(of) + begin, bytes);
}

// Once all ranks have begun, each reads the memory of the others: no failure ends the request before they have done so.
int32_t progress_exchange(Rank& own, Request& request, int32_t* out_done) {
  Hub& hub = *own.hub;
  std::unique_lock guard(hub.mutex);
  Meeting& exchange = hub.exchanges.at(request.exchange);  // stays there until all ranks have left it
  if (exchange.begun < hub.size) {
    for (int32_t rank = 0; rank < hub.size; ++rank) {
      if (hub.exchanges_begun[static_cast<size_t>(rank)] < request.exchange) hub.require(rank);
    }
    return hub.failure.empty() ? 0 : own.say(hub.failure);
  }
  if (!request.has_copied) {
    request.has_copied = true;
    guard.unlock();
    copy_part(exchange, own.rank, request.dst);
    guard.lock();
    exchange.has_copied[static_cast<size_t>(own.rank)] = true;
  }
  for (size_t rank = 0; rank < exchange.has_copied.size(); ++rank) {
    if (!exchange.has_copied[rank] && !hub.is_gone[rank]) return 0;
  }
  *out_done = 1;
  if (++exchange.ended == hub.size) hub.exchanges.erase(request.exchange);
  return 0;
}

int32_t progress_receipt(Rank& own, Request& request, int32_t* out_done) {
  Hub& hub = *own.hub;
  std::shared_ptr<Message> message;
  {
    const std::lock_guard guard(hub.mutex);
    auto& waiting = hub.messages[{request.sender, own.rank}];
    if (waiting.empty()) {
      hub.require(request.sender);
      return hub.failure.empty() ? 0 : own.say(hub.failure);
    }
    message = waiting.front();
    message->is_begun = true;
    waiting.pop_front();
  }
  if (message->size_bytes == request.size_bytes)
    std::memcpy(request.dst, message->data, static_cast<size_t>(request.size_bytes));
  const std::lock_guard guard(hub.mutex);
  message->is_taken = true;
  *out_done = 1;
  if (message->size_bytes == request.size_bytes) return 0;
  hub.fail(fmt::format("rank {} sends {} bytes, but rank {} receives {}", request.sender, message->size_bytes, own.rank,
                       request.size_bytes));
  return own.say(hub.failure);
}

int32_t progress(uint64_t handle, int32_t* out_done, void* user_data) {
  Rank& own = self(user_data);
  *out_done = 0;
  return guarded(own, [&]() -> int32_t {
    Hub& hub = *own.hub;
    if (handle == 0) {  // what the caller waits for may be about to end, although a rank has left
      const std::lock_guard guard(hub.mutex);
      const auto gone = std::find(hub.is_gone.begin(), hub.is_gone.end(), true);
      if (gone != hub.is_gone.end()) {
        if (own.patience == Deadline::max()) own.patience = deadline_after(int64_t{1'000'000'000});
        if (is_past(own.patience)) hub.require(static_cast<int32_t>(gone - hub.is_gone.begin()));
      }
      return hub.failure.empty() ? 0 : own.say(hub.failure);
    }
    Request& request = request_of(handle);
    int32_t code = 0;
    if (request.exchange != 0) {
      code = progress_exchange(own, request, out_done);
    } else if (request.message == nullptr) {
      code = progress_receipt(own, request, out_done);
    } else {
      const std::lock_guard guard(hub.mutex);
      Message& message = *request.message;
      *out_done = message.is_taken ? 1 : 0;
      if (!message.is_begun) {
        hub.require(message.receiver);
        if (!hub.failure.empty()) code = own.say(hub.failure);
        if (code != 0) std::erase(hub.messages[{own.rank, message.receiver}], request.message);
      }
    }
    if (code != 0 || *out_done != 0) own.end(request);
    return code;
  });
}

compute_transport table_of(std::shared_ptr<Hub> hub, int32_t rank);

// The ranks learn of each other's color and key by an exchange. The first of each color makes what they share.
int32_t split(int32_t color, int32_t key, compute_transport* out_transport, void* user_data) {
  Rank& own = self(user_data);
  return guarded(own, [&]() -> int32_t {
    const Split given{color, key};
    std::vector<Split> all(static_cast<size_t>(own.hub->size));
    uint64_t request = 0;
    const int32_t code = begin(own, Step::kAllGather, &given, all.data(), sizeof given, 0, &request);
    if (code != 0) return code;
    const uint64_t exchange = request_of(request).exchange;
    for (int32_t is_done = 0; is_done == 0;) {
      if (const int32_t failed = progress(request, &is_done, user_data)) return failed;
      if (is_done == 0) sched_yield();
    }
    std::vector<int32_t> members;
    for (int32_t rank = 0; rank < own.hub->size; ++rank) {
      if (all[static_cast<size_t>(rank)].color == color) members.push_back(rank);
    }
    std::stable_sort(members.begin(), members.end(), [&](int32_t a, int32_t b) {
      return all[static_cast<size_t>(a)].key < all[static_cast<size_t>(b)].key;
    });
    const auto at = std::find(members.begin(), members.end(), own.rank);
    const uint64_t part = exchange << 32 | static_cast<uint32_t>(color);
    const std::lock_guard guard(own.hub->mutex);
    auto& [taken, hub] = own.hub->parts[part];
    if (hub == nullptr) hub = std::make_shared<Hub>(static_cast<int32_t>(members.size()));
    *out_transport = table_of(hub, static_cast<int32_t>(at - members.begin()));
    if (++taken == hub->size) own.hub->parts.erase(part);
    return 0;
  });
}

void abort(const char* reason, void* user_data) {
  Rank& own = self(user_data);
  const std::lock_guard guard(own.hub->mutex);
  own.hub->fail(fmt::format("rank {} has ended the group: {}", own.rank, reason));
}

// Requests of other ranks that wait for this one end.
void close(void* user_data) {
  const std::unique_ptr<Rank> own(&self(user_data));
  const std::lock_guard guard(own->hub->mutex);
  own->hub->is_gone[static_cast<size_t>(own->rank)] = true;
}

const char* describe(void* user_data) {
  const Rank& own = self(user_data);
  return own.text.empty() ? "threads of one process" : own.text.c_str();
}

compute_transport table_of(std::shared_ptr<Hub> hub, int32_t rank) {
  compute_transport table{};
  table.struct_size = sizeof table;
  table.struct_type = COMPUTE_STRUCT_TRANSPORT;
  table.rank = rank;
  table.size = hub->size;
  table.user_data = new Rank{std::move(hub), rank, "", Deadline::max(), {}};
  table.all_gather = all_gather;
  table.all_to_all = all_to_all;
  table.broadcast = broadcast;
  table.send = send;
  table.recv = recv;
  table.progress = progress;
  table.split = split;
  table.abort = abort;
  table.close = close;
  table.describe = describe;
  return table;
}

}  // namespace

std::vector<compute_transport> local_transports(int32_t size) {
  const auto hub = std::make_shared<Hub>(size);
  std::vector<compute_transport> tables;
  for (int32_t rank = 0; rank < size; ++rank) tables.push_back(table_of(hub, rank));
  return tables;
}

}  // namespace compute
