// SPDX-License-Identifier: Apache-2.0
// Storage of objects that every call creates and releases: each thread reuses the storage that it released last.
#pragma once

#include <cstddef>
#include <new>
#include <utility>

#include "core/base/per_thread.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COMPUTE_RECYCLES_STORAGE 0  // a sanitizer detects the use of released objects only if their storage is freed
#else
#define COMPUTE_RECYCLES_STORAGE 1
#endif

namespace compute {

// A base of T with operator new and delete over a free list of the calling thread, with at most kKept entries.
template <class T>
class Recycled {
 public:
  static void* operator new(size_t size) {
    List* list = COMPUTE_RECYCLES_STORAGE != 0 ? PerThread<List>::find() : nullptr;
    if (list == nullptr || list->first == nullptr) return ::operator new(size);
    Free* taken = list->first;
    list->first = taken->next;
    --list->count;
    return taken;
  }

  static void operator delete(void* object) noexcept {
    List* list = COMPUTE_RECYCLES_STORAGE != 0 ? of_thread() : nullptr;
    if (list == nullptr || list->count >= kKept) {
      ::operator delete(object);
      return;
    }
    list->first = new (object) Free{list->first};
    ++list->count;
  }

 private:
  static constexpr size_t kKept = 64;

  struct Free {
    Free* next;
  };
  struct List {
    Free* first = nullptr;
    size_t count = 0;

    // Storage that the thread releases later is freed immediately.
    ~List() {
      ended = true;
      while (first != nullptr) ::operator delete(std::exchange(first, first->next));
    }
  };

  static List* of_thread() noexcept {
    List* mine = PerThread<List>::find();
    if (mine != nullptr || ended) return mine;
    try {
      return &PerThread<List>::get();
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }

  [[gnu::tls_model("initial-exec")]] static constinit inline thread_local bool ended = false;
};

}  // namespace compute
