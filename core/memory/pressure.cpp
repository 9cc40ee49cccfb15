// SPDX-License-Identifier: Apache-2.0
#include "core/memory/pressure.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

#include "core/base/deadline.hpp"
#include "core/base/lock.hpp"
#include "core/process/in_use.hpp"

namespace compute {
namespace {

struct Listener {
  compute_pressure_callback callback;
  void* user_data;
  std::atomic<uint32_t> running{0};  // threads inside the callback
};

struct Place {
  Lock lock;
  std::shared_ptr<Listener> listener;
};

Place& place() {
  static auto* const immortal = new Place;
  return *immortal;
}

std::atomic<bool> has_listener{false};

[[gnu::tls_model("initial-exec")]] constinit thread_local int32_t held_off = 0;
// What the calling thread is inside of.
[[gnu::tls_model("initial-exec")]] constinit thread_local const Listener* inside = nullptr;

}  // namespace

PressureHeldOff::PressureHeldOff() noexcept { ++held_off; }
PressureHeldOff::~PressureHeldOff() { --held_off; }

void set_pressure_callback(compute_pressure_callback callback, void* user_data) {
  std::shared_ptr<Listener> listener;
  if (callback != nullptr) {
    listener = std::make_shared<Listener>();
    listener->callback = callback;
    listener->user_data = user_data;
  }
  std::shared_ptr<Listener> before;
  {
    std::lock_guard guard(place().lock);
    before = std::exchange(place().listener, std::move(listener));
    has_listener.store(callback != nullptr, std::memory_order_release);
  }
  if (before == nullptr) return;
  const uint32_t own = inside == before.get() ? 1 : 0;
  for (uint32_t running; (running = before->running.load(std::memory_order_acquire)) > own;)
    wait_on_word(before->running, running, Deadline::max());
}

bool relieve_pressure(compute_device& device, int64_t size_bytes) {
  if (held_off > 0 || inside != nullptr || !has_listener.load(std::memory_order_acquire)) return false;
  std::shared_ptr<Listener> listener;
  {
    std::lock_guard guard(place().lock);
    listener = place().listener;
    if (listener == nullptr) return false;
    listener->running.fetch_add(1, std::memory_order_relaxed);
  }
  inside = listener.get();
  const auto leave = [](Listener* left) noexcept {
    inside = nullptr;
    left->running.fetch_sub(1, std::memory_order_release);
    wake_one_on_word(left->running);  // wakes the thread that replaces it
  };
  const std::unique_ptr<Listener, decltype(leave)> entered(listener.get(), leave);
  listener->callback(&device, size_bytes, listener->user_data);
  return true;
}

}  // namespace compute
