// SPDX-License-Identifier: Apache-2.0
// A transport of bytes between the ranks of a group, and waits for its requests.
#pragma once

#include <compute/compute.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/deadline.hpp"

namespace compute {

// Keeps what a transport may use until the process ends. Any thread.
void keep_forever(std::shared_ptr<void> memory);

// The functions wait until their part of the exchange is done. They throw PEER_FAILED with what the transport says,
// after the time limit, and after stop(). The transport may then still use their memory, see has_open_request.
class Transport {
 public:
  // Who calls `close` of the table: the destructor (and a constructor that throws), or, until take_over(), the caller.
  enum class Owner : uint8_t { kTransport, kCaller };
  // Throws INVALID_ARGUMENT if the table is incomplete.
  explicit Transport(const compute_transport& table, Owner owner = Owner::kTransport);
  ~Transport();
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  void take_over() noexcept { is_own_ = true; }
  int32_t rank() const noexcept { return table_.rank; }
  int32_t size() const noexcept { return table_.size; }
  std::string description() const;

  void all_gather(const void* src, void* dst, int64_t size_bytes);
  void all_to_all(const void* src, void* dst, int64_t size_bytes);
  void broadcast(void* data, int64_t size_bytes, int32_t root);
  void send(const void* data, int64_t size_bytes, int32_t peer);
  void recv(void* data, int64_t size_bytes, int32_t peer);
  // The same of one value, in memory that is kept if the transport may still use it.
  template <class T>
  std::vector<T> all_gather_value(const T& own) {
    auto values = std::make_shared<std::vector<T>>(static_cast<size_t>(size()) + 1, own);
    keeping(values, [&] { all_gather(values->data(), values->data() + 1, sizeof(T)); });
    return {values->begin() + 1, values->end()};
  }
  template <class T>
  T broadcast_value(const T& own, int32_t root) {
    auto value = std::make_shared<T>(own);
    keeping(value, [&] { broadcast(value.get(), sizeof(T), root); });
    return *value;
  }
  template <class T>
  void send_value(const T& own, int32_t peer) {
    auto value = std::make_shared<T>(own);
    keeping(value, [&] { send(value.get(), sizeof(T), peer); });
  }
  template <class T>
  T recv_value(int32_t peer) {
    auto value = std::make_shared<T>();
    keeping(value, [&] { recv(value.get(), sizeof(T), peer); });
    return *value;
  }
  // Throws if another rank has aborted or is gone.
  void look_at_peers();
  void require_split() const;  // throws UNSUPPORTED if it cannot be split
  std::unique_ptr<Transport> split(int32_t color, int32_t key);

  // Each later wait has this limit, from its begin.
  void set_timeout(int64_t timeout_ns) noexcept { timeout_ns_ = timeout_ns; }
  // Any thread: ends the waits here.
  void stop() noexcept { is_stopped_.store(true, std::memory_order_release); }
  // Any thread: ends the waits on other ranks.
  void abort(const std::string& reason) noexcept;
  // A request failed or was given up: the transport may read and write its memory until the process ends.
  bool has_open_request() const noexcept { return has_open_request_; }

 private:
  template <class F>
  void keeping(std::shared_ptr<void> memory, F&& exchange) {
    try {
      exchange();
    } catch (...) {
      if (has_open_request_) keep_forever(std::move(memory));
      throw;
    }
  }
  void wait(int32_t code, uint64_t request);
  void check(int32_t code);

  compute_transport table_;
  bool is_own_;
  int64_t timeout_ns_ = COMPUTE_TIMEOUT_NONE;
  std::atomic<bool> is_stopped_{false};
  bool has_open_request_ = false;
};

}  // namespace compute
