// SPDX-License-Identifier: Apache-2.0
// Scratch memory of the calling thread, for data that is too large for the stacks of small threads.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <new>

namespace compute::cpu {

constexpr size_t kThreadFrameBytes = 64 << 10;

// Allocated at a thread's first use. It is freed at the end of the thread, after its thread_local objects, whose
// destructors may run ops; memory that is allocated after that is freed too. It is not freed when the process exits.
// One user at a time: no plan runs inside a piece of another. Throws std::bad_alloc.
inline char* thread_frame() {
  constexpr std::align_val_t kAlignment{64};
  static constinit thread_local char* bytes = nullptr;
  if (bytes == nullptr) [[unlikely]] {
    struct Key {
      pthread_key_t id = 0;
      bool is_valid = pthread_key_create(&id, free_at_thread_end) == 0;

      static void free_at_thread_end(void* frame) {
        bytes = nullptr;
        ::operator delete(frame, kAlignment);
      }
    };
    static const Key key;
    bytes = static_cast<char*>(::operator new(kThreadFrameBytes, kAlignment));
    // Without a key, or memory for its value, the frame outlives its thread.
    if (key.is_valid) static_cast<void>(pthread_setspecific(key.id, bytes));
  }
  return bytes;
}

}  // namespace compute::cpu
