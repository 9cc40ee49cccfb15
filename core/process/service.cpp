// SPDX-License-Identifier: Apache-2.0
#include "core/process/service.hpp"

#include <compute/compute.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

#include "core/base/caller_world.hpp"
#include "core/process/thread.hpp"

namespace compute {
namespace {

[[gnu::tls_model("initial-exec")]] constinit thread_local bool on_service_thread = false;

struct Service {
  std::mutex mutex;
  std::condition_variable work, idle;
  std::deque<std::function<void()>> tasks;
  bool running = false;  // the thread exists
  bool busy = false;     // it is inside a task

  void loop() {
    on_service_thread = true;
    std::unique_lock guard(mutex);
    for (;;) {
      work.wait(guard, [&] { return !tasks.empty(); });
      std::function<void()> task = std::move(tasks.front());
      tasks.pop_front();
      busy = true;
      guard.unlock();
      run(task);
      guard.lock();
      busy = false;
      if (tasks.empty()) idle.notify_all();
    }
  }

  static void run(std::function<void()>& task) noexcept {
    try {
      const CallerWorld world;  // also this thread's own, which a callback may change
      task();
      task = nullptr;
    } catch (...) {
      // Tasks record their own failures; nothing may leave a thread's entry point.
    }
  }
};

// Never destroyed: the thread is still there at exit.
Service& instance() {
  static Service& service = *new Service;
  return service;
}

}  // namespace

void run_in_background(std::function<void()> task) {
  Service& service = instance();
  std::lock_guard guard(service.mutex);
  if (!service.running) {
    // First, so that a task is queued only if somebody will run it.
    start_thread([&service] { service.loop(); });
    service.running = true;
  }
  service.tasks.push_back(std::move(task));
  service.work.notify_one();
}

bool drain_background(int64_t timeout_ns) noexcept {
  Service& service = instance();
  std::unique_lock guard(service.mutex);
  const auto is_idle = [&] { return service.tasks.empty() && !service.busy; };
  if (timeout_ns != COMPUTE_TIMEOUT_NONE)
    return service.idle.wait_for(guard, std::chrono::nanoseconds(timeout_ns), is_idle);
  service.idle.wait(guard, is_idle);
  return true;
}

bool is_background_thread() noexcept { return on_service_thread; }

void forget_background_thread() noexcept {
  on_service_thread = false;  // a callback that forks goes on as the child's only thread
  new (&instance()) Service;  // the parent's tasks are not the child's
}

}  // namespace compute
