// SPDX-License-Identifier: Apache-2.0
#include "core/service.hpp"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>

namespace compute {
namespace {

thread_local bool on_service_thread = false;

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
      try {
        task();
        task = nullptr;
      } catch (...) {
        // Tasks record their own failures; nothing may leave a thread's entry point.
      }
      guard.lock();
      busy = false;
      if (tasks.empty()) idle.notify_all();
    }
  }
};

// Never destroyed: the thread is still there at exit.
Service*& instance() {
  static Service* service = new Service;
  return service;
}

}  // namespace

void run_in_background(std::function<void()> task) {
  Service& service = *instance();
  std::lock_guard guard(service.mutex);
  service.tasks.push_back(std::move(task));
  if (!service.running) {
    std::thread([&service] { service.loop(); }).detach();
    service.running = true;
  }
  service.work.notify_one();
}

void drain_background() noexcept {
  Service& service = *instance();
  std::unique_lock guard(service.mutex);
  service.idle.wait(guard, [&] { return service.tasks.empty() && !service.busy; });
}

bool is_background_thread() noexcept { return on_service_thread; }

void forget_background_thread() noexcept { instance() = new Service; }

}  // namespace compute
