// SPDX-License-Identifier: Apache-2.0
// What a piece of work throws on one thread, for the thread that waits for all pieces.
#pragma once

#include <atomic>
#include <exception>

namespace compute::cpu {

class FirstException {
 public:
  /// Called in a handler, by any thread: keeps the exception if it is the first one.
  void keep() noexcept {
    if (!is_kept_.exchange(true, std::memory_order_relaxed)) exception_ = std::current_exception();
  }

  bool is_kept() const { return is_kept_.load(std::memory_order_relaxed); }

  /// Throws the exception if there is one. No thread calls keep() any more.
  void rethrow() const {
    if (exception_ != nullptr) [[unlikely]]
      std::rethrow_exception(exception_);
  }

 private:
  std::atomic<bool> is_kept_{false};
  std::exception_ptr exception_;
};

}  // namespace compute::cpu
