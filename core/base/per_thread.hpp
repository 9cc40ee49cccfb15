// SPDX-License-Identifier: Apache-2.0
// Thread-local objects.
#pragma once

#include <pthread.h>

#include <memory>

namespace compute {

// Unlike a thread_local object, the thread's T is destroyed after all its thread_local objects, whose destructors may
// make calls. It is not destroyed when the process exits, because exit handlers and destructors of static objects may
// make calls too. A thread that needs it again while it ends gets a new one. T needs a destructor that does not throw.
template <class T>
class PerThread {
 public:
  // NULL until the thread's first call of get().
  static T* find() noexcept { return mine_; }
  static T& get() { return mine_ != nullptr ? *mine_ : make(); }

 private:
  struct Key {
    pthread_key_t id = 0;
    bool is_valid = pthread_key_create(&id, destroy) == 0;
  };

  static T& make() {
    static const Key key;
    auto object = std::make_unique<T>();
    // Without a key, or memory for its value, the object outlives its thread.
    if (key.is_valid) static_cast<void>(pthread_setspecific(key.id, object.get()));
    mine_ = object.release();
    return *mine_;
  }

  static void destroy(void* object) noexcept {
    mine_ = nullptr;
    delete static_cast<T*>(object);
  }

  [[gnu::tls_model("initial-exec")]] static constinit inline thread_local T* mine_ = nullptr;
};

}  // namespace compute
