// SPDX-License-Identifier: Apache-2.0
#include "core/memory/pressure.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "core/base/deadline.hpp"
#include "core/base/error.hpp"
#include "core/base/lock.hpp"
#include "core/process/in_use.hpp"

namespace compute {
namespace {

struct Listener {
  compute_pressure_callback callback;
  void* user_data;
  uint64_t number;                   // in the order in which they were added
  std::atomic<uint32_t> running{0};  // threads inside the callback

  bool is(compute_pressure_callback other, const void* other_data) const {
    return callback == other && user_data == other_data;
  }
};

struct Place {
  Lock lock;
  std::vector<std::shared_ptr<Listener>> listeners;  // by number
  uint64_t last_number = 0;

  auto find(compute_pressure_callback callback, const void* user_data) {
    return std::ranges::find_if(listeners, [&](const auto& one) { return one->is(callback, user_data); });
  }
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

void add_pressure_callback(compute_pressure_callback callback, void* user_data) {
  require_not_null(reinterpret_cast<const void*>(callback), "callback");
  auto listener = std::make_shared<Listener>();
  listener->callback = callback;
  listener->user_data = user_data;
  std::lock_guard guard(place().lock);
  if (place().find(callback, user_data) != place().listeners.end())
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, "the callback was added already with this user_data").about_parameter();
  listener->number = ++place().last_number;
  place().listeners.push_back(std::move(listener));
  has_listener.store(true, std::memory_order_release);
}

void remove_pressure_callback(compute_pressure_callback callback, void* user_data) {
  require_not_null(reinterpret_cast<const void*>(callback), "callback");
  std::shared_ptr<Listener> removed;
  {
    std::lock_guard guard(place().lock);
    const auto found = place().find(callback, user_data);
    if (found == place().listeners.end())
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, "the callback was not added with this user_data").about_parameter();
    removed = std::move(*found);
    place().listeners.erase(found);
    has_listener.store(!place().listeners.empty(), std::memory_order_release);
  }
  const uint32_t own = inside == removed.get() ? 1 : 0;
  for (uint32_t running; (running = removed->running.load(std::memory_order_acquire)) > own;)
    wait_on_word(removed->running, running, Deadline::max());
}

namespace {

// The listener after `number`, up to `last`, entered by the calling thread; NULL if there is none. It is entered under
// the lock, and only when its turn comes: a callback can remove a later one without waiting.
std::shared_ptr<Listener> enter_next(uint64_t number, uint64_t last) {
  std::lock_guard guard(place().lock);
  for (const std::shared_ptr<Listener>& one : place().listeners) {
    if (one->number <= number || one->number > last) continue;
    one->running.fetch_add(1, std::memory_order_relaxed);
    return one;
  }
  return nullptr;
}

}  // namespace

bool relieve_pressure(compute_device& device, int64_t size_bytes) {
  if (held_off > 0 || inside != nullptr || !has_listener.load(std::memory_order_acquire)) return false;
  const uint64_t last = [] {
    std::lock_guard guard(place().lock);
    return place().last_number;
  }();
  uint64_t number = 0;
  while (const std::shared_ptr<Listener> listener = enter_next(number, last)) {
    number = listener->number;
    inside = listener.get();
    const auto leave = [](Listener* left) noexcept {
      inside = nullptr;
      left->running.fetch_sub(1, std::memory_order_release);
      wake_one_on_word(left->running);  // wakes the thread that removes it
    };
    const std::unique_ptr<Listener, decltype(leave)> entered(listener.get(), leave);
    listener->callback(&device, size_bytes, listener->user_data);
  }
  return number != 0;
}

}  // namespace compute
