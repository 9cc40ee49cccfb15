// SPDX-License-Identifier: Apache-2.0
// Holds a stream up: reading its page blocks until the gate is opened.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>
#include <compute/compute.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace runtime {

// The source of a copy that is queued on a stream. One at a time.
class Gate {
 public:
  static constexpr size_t kBytes = 4096;

  Gate() {
    page_ = mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page_ == MAP_FAILED) throw std::bad_alloc();
    current().store(this);
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &action, &before_);
  }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  ~Gate() {
    open();
    if (opener_.joinable()) opener_.join();
    sigaction(SIGSEGV, &before_, nullptr);
    current().store(nullptr);
    munmap(page_, kBytes);
  }

  // Queues work that ends when the gate is opened.
  void hold(const compute::Stream& stream, const compute::Device& device) {
    if (!target_.defined()) target_ = device.empty(COMPUTE_DTYPE_UINT8, {static_cast<int64_t>(kBytes)});
    compute::check(compute_tensor_write_async(target_.get(), page_, kBytes, stream.get()));
  }

  void open() {
    mprotect(page_, kBytes, PROT_READ | PROT_WRITE);
    is_open_.store(true);
  }

  // For what blocks until then.
  void open_soon() {
    opener_ = std::thread([this] {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      open();
    });
  }

 private:
  static std::atomic<Gate*>& current() {
    static std::atomic<Gate*> gate{nullptr};
    return gate;
  }

  static void on_fault(int, siginfo_t* info, void*) {
    Gate* gate = current().load();
    const auto at = reinterpret_cast<uintptr_t>(info->si_addr),
               begin = gate != nullptr ? reinterpret_cast<uintptr_t>(gate->page_) : 0;
    if (gate == nullptr || at < begin || at >= begin + kBytes) {
      signal(SIGSEGV, SIG_DFL);  // somebody else's fault, which comes again on return
      return;
    }
    while (!gate->is_open_.load()) usleep(200);
  }

  void* page_ = nullptr;
  std::atomic<bool> is_open_{false};
  struct sigaction before_ {};
  std::thread opener_;
  compute::Tensor target_;
};

}  // namespace runtime
