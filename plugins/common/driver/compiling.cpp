// SPDX-License-Identifier: Apache-2.0
#include "plugins/common/driver/compiling.hpp"

#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <exception>
#include <mutex>
#include <thread>

#include "plugins/common/driver/exit_handlers.hpp"
#include "plugins/common/op/core.hpp"

namespace compute::common {
namespace {

using Clock = std::chrono::steady_clock;

// Of a compiler that does not come back, as of a device.
constexpr auto kPatience = std::chrono::seconds(10);

constinit thread_local int own_depth = 0;

// exit() runs handlers in the reverse order of their registration. Those of the compilers that are known close the gate
// themselves (exit_waits_for_compilers_of). For the libraries that these load later ours is registered again after each
// compilation, every 20 microseconds or so when compilations begin and every millisecond during the next few seconds of
// them: whatever has been registered by then runs after it.
class Gate {
 public:
  static Gate& instance() {
    static Gate& immortal = *new Gate;
    return immortal;
  }

  Gate() {
    // A child whose parent was registering a handler on another thread finds the C library's list locked forever, and
    // hangs in exit().
    pthread_atfork([] { instance().registering_.lock(); }, [] { instance().go_on_after_fork(); },
                   [] { instance().registering_.unlock(); });
  }

  void enter() {
    compiling_.fetch_add(1);
    if (is_ending_.load()) {
      compiling_.fetch_sub(1);
      throw Error(COMPUTE_ERROR_SHUT_DOWN, "the process is exiting; no more kernels can be compiled");
    }
    if (own_depth++ == 0) watch();
  }

  void leave() {
    --own_depth;
    compiling_.fetch_sub(1);
    register_or_owe();
  }

  void close() {
    is_ending_.store(true);
    if (process_ != getpid()) return;  // the child of a fork has no other threads
    // One limit for all of the handlers, from the first that runs.
    static constinit std::atomic<Clock::rep> limit{0};
    Clock::rep none = 0;
    limit.compare_exchange_strong(none, (Clock::now() + kPatience).time_since_epoch().count());
    const Clock::time_point end{Clock::duration(limit.load())};
    while (compiling_.load() > own_depth && Clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

 private:
  // A compiler's first use registers much within a few milliseconds.
  static constexpr int kQuickTicks = 4000, kMostTicks = 8000;

  // (registering_)
  void register_handler() {
    on_exit([](int, void* gate) { static_cast<Gate*>(gate)->close(); }, this);
  }

  // Does not wait: whoever forks may be waiting for this call.
  void register_or_owe() {
    if (const std::unique_lock guard(registering_, std::try_to_lock); guard) {
      register_handler();
    } else {
      is_owed_.store(true);
    }
  }

  void go_on_after_fork() {
    if (is_owed_.exchange(false)) register_handler();
    registering_.unlock();
  }

  void watch() {
    std::lock_guard guard(mutex_);
    if (!has_watch_) {
      register_or_owe();
      sigset_t all, before;
      sigfillset(&all);
      for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP})
        sigdelset(&all, fault);  // blocked, they end the process
      pthread_sigmask(SIG_SETMASK, &all, &before);
      try {
        std::thread([this] { tick(); }).detach();
        has_watch_ = true;
      } catch (const std::exception&) {
        // No thread, or no memory for one. What is registered before and after has to do.
      }
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }
    work_.notify_one();
  }

  void tick() {
    prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);  // nanoseconds
    for (int ticks = 0; ticks < kMostTicks; ++ticks) {
      {
        std::unique_lock guard(mutex_);
        work_.wait(guard, [this] { return compiling_.load() > 0; });
      }
      if (is_ending_.load()) return;
      {
        const std::lock_guard guard(registering_);
        register_handler();
      }
      std::this_thread::sleep_for(ticks < kQuickTicks ? std::chrono::microseconds(20)
                                                      : std::chrono::microseconds(1000));
    }
  }

  const pid_t process_ = getpid();
  std::atomic<int> compiling_{0};
  std::atomic<bool> is_ending_{false};
  std::mutex registering_;            // a handler; held by whoever forks, too
  std::atomic<bool> is_owed_{false};  // one was to be registered during a fork
  std::mutex mutex_;
  std::condition_variable work_;
  bool has_watch_ = false;
};

}  // namespace

Compiling::Compiling() { Gate::instance().enter(); }
Compiling::~Compiling() { Gate::instance().leave(); }

void prepare_for_forks() { static_cast<void>(Gate::instance()); }

void exit_waits_for_compilers_of(const void* address) {
  run_before_exit_handlers_of(address, [] { Gate::instance().close(); });
}

}  // namespace compute::common
