// SPDX-License-Identifier: Apache-2.0
// Holds a stream up: reading its page blocks until the gate is opened.
#pragma once

#include <compute/compute.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <new>
#include <thread>

namespace compute {

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
    compute_tensor_release(target_);
    munmap(page_, kBytes);
  }

  // Queues work that ends when the gate is opened.
  void hold(compute_stream* stream, compute_device* device) {
    const int64_t shape[] = {kBytes};
    if (target_ == nullptr) succeed(compute_tensor_empty(device, COMPUTE_DTYPE_UINT8, 1, shape, &target_));
    succeed(compute_tensor_write_async(target_, page_, kBytes, stream));
  }
  template <class Stream, class Device>
  void hold(const Stream& stream, const Device& device) {
    hold(stream.get(), device.get());
  }

  void open() {
    mprotect(page_, kBytes, PROT_READ | PROT_WRITE);
    is_open_.store(true);
  }

  // For what blocks until then.
  void open_soon(std::chrono::milliseconds delay = std::chrono::milliseconds(30)) {
    opener_ = std::thread([this, delay] {
      std::this_thread::sleep_for(delay);
      open();
    });
  }

 private:
  static void succeed(compute_error* error) {
    if (error != nullptr) ADD_FAILURE() << compute_error_message(error);
    compute_error_free(error);
  }

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
  compute_tensor* target_ = nullptr;
};

}  // namespace compute
