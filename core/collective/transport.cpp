// SPDX-License-Identifier: Apache-2.0
#include "core/collective/transport.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <mutex>
#include <thread>

#include "core/base/error.hpp"

namespace compute {

void keep_forever(std::shared_ptr<void> memory) {
  static auto* const all = new std::vector<std::shared_ptr<void>>;
  static std::mutex mutex;
  const std::lock_guard guard(mutex);
  all->push_back(std::move(memory));
}

Transport::Transport(const compute_transport& table, Owner owner) : table_(table), is_own_(owner == Owner::kTransport) {
  const auto refuse = [&](std::string why) {
    if (is_own_ && table_.close != nullptr) table_.close(table_.user_data);
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, "transport: " + why);
  };
  if (table_.size < 1 || table_.rank < 0 || table_.rank >= table_.size)
    refuse(fmt::format("rank {} of {} ranks", table_.rank, table_.size));
  if (table_.all_gather == nullptr || table_.all_to_all == nullptr || table_.broadcast == nullptr ||
      table_.send == nullptr || table_.recv == nullptr || table_.progress == nullptr || table_.abort == nullptr ||
      table_.close == nullptr)
    refuse("a function is NULL; only `split` and `describe` may be");
}

Transport::~Transport() {
  if (is_own_) table_.close(table_.user_data);
}

std::string Transport::description() const {
  const char* text = table_.describe != nullptr ? table_.describe(table_.user_data) : nullptr;
  return text != nullptr ? text : "a transport of the program";
}

void Transport::check(int32_t code) {
  if (code == 0) return;
  const char* text = table_.describe != nullptr ? table_.describe(table_.user_data) : nullptr;
  throw Error(COMPUTE_ERROR_PEER_FAILED,
              text != nullptr && *text != '\0' ? std::string(text) : fmt::format("transport error {}", code));
}

// Polls, because the transport may make progress in these calls alone, and yields to ranks on the same processors.
// Sleeps between polls after 20 ms.
void Transport::wait(int32_t code, uint64_t request) {
  check(code);
  const Deadline begin = std::chrono::steady_clock::now(), end = deadline_after(timeout_ns_);
  for (int64_t polls = 0;; ++polls) {
    int32_t is_done = 0;
    const int32_t failure = table_.progress(request, &is_done, table_.user_data);
    has_open_request_ = has_open_request_ || failure != 0;
    check(failure);
    if (is_done != 0) return;
    if (is_stopped_.load(std::memory_order_acquire)) {
      has_open_request_ = true;
      throw Error(COMPUTE_ERROR_PEER_FAILED, "the group was aborted");
    }
    if (polls % 16 != 0) continue;
    const Deadline now = std::chrono::steady_clock::now();
    if (now >= end) {
      has_open_request_ = true;
      throw Error(COMPUTE_ERROR_PEER_FAILED, fmt::format("no answer of the other ranks within {} s "
                                                         "(COMPUTE_COLLECTIVE_TIMEOUT)",
                                                         static_cast<double>(timeout_ns_) / 1e9));
    }
    if (now - begin > std::chrono::milliseconds(20)) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    } else if (polls != 0) {
      sched_yield();
    }
  }
}

void Transport::all_gather(const void* src, void* dst, int64_t size_bytes) {
  uint64_t request = 0;
  const int32_t code = table_.all_gather(src, dst, size_bytes, &request, table_.user_data);
  wait(code, request);
}

void Transport::all_to_all(const void* src, void* dst, int64_t size_bytes) {
  uint64_t request = 0;
  const int32_t code = table_.all_to_all(src, dst, size_bytes, &request, table_.user_data);
  wait(code, request);
}

void Transport::broadcast(void* data, int64_t size_bytes, int32_t root) {
  uint64_t request = 0;
  const int32_t code = table_.broadcast(data, size_bytes, root, &request, table_.user_data);
  wait(code, request);
}

void Transport::send(const void* data, int64_t size_bytes, int32_t peer) {
  uint64_t request = 0;
  const int32_t code = table_.send(const_cast<void*>(data), size_bytes, peer, &request, table_.user_data);
  wait(code, request);
}

void Transport::recv(void* data, int64_t size_bytes, int32_t peer) {
  uint64_t request = 0;
  const int32_t code = table_.recv(data, size_bytes, peer, &request, table_.user_data);
  wait(code, request);
}

void Transport::look_at_peers() {
  int32_t is_done = 0;
  check(table_.progress(0, &is_done, table_.user_data));
}

void Transport::require_split() const {
  if (table_.split == nullptr) throw Error(COMPUTE_ERROR_UNSUPPORTED, "the transport of the group cannot be split");
}

std::unique_ptr<Transport> Transport::split(int32_t color, int32_t key) {
  compute_transport made{};
  made.struct_size = sizeof made;
  made.struct_type = COMPUTE_STRUCT_TRANSPORT;
  check(table_.split(color, key, &made, table_.user_data));
  made.struct_size = sizeof made;
  made.struct_type = COMPUTE_STRUCT_TRANSPORT;
  made.next = nullptr;
  return std::make_unique<Transport>(made);
}

void Transport::abort(const std::string& reason) noexcept { table_.abort(reason.c_str(), table_.user_data); }

}  // namespace compute
