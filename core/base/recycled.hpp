// SPDX-License-Identifier: Apache-2.0
// Storage of objects that every call makes and releases: each thread keeps what it released last for what it makes
// next.
#pragma once

#include <cstddef>
#include <new>
#include <utility>

#include "core/base/per_thread.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COMPUTE_RECYCLES_STORAGE 0  // a sanitizer sees the use of released objects only if they are given back
#else
#define COMPUTE_RECYCLES_STORAGE 1
#endif

namespace compute {

// A base of T that gives it operator new and delete over a list of the calling thread, at most kKept long.
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

    // What the thread releases after this goes back at once.
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
