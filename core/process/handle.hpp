// SPDX-License-Identifier: Apache-2.0
// The common beginning of every handle: a mark with its kind and whether it is alive, and its reference count.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <type_traits>
#include <variant>

#include "core/base/error.hpp"
#include "core/process/in_use.hpp"

namespace compute {

enum class HandleKind : uint32_t {
  kDevice = 0x64657663,  // "devc"
  kTensor = 0x746e7372,
  kStream = 0x7374726d,
  kEvent = 0x65766e74,
  kPlan = 0x706c616e,
  kExpression = 0x65787072,
  kKernel = 0x6b726e6c,
  kGraph = 0x67726170,
  kSemaphore = 0x73656d61,
  kGroup = 0x67726f75,
};

const char* handle_name(HandleKind kind) noexcept;

// What follows the name of a handle that is not one of kind `wanted`: " (float32 [4]) was released",
// ": wrong type of handle: expected tensor, got device".
std::string fault_of_handle(HandleKind wanted, const void* handle, uint32_t found);

// Throws for NULL, for a handle of another kind and, if its memory still shows it, for a released one.
[[noreturn]] void throw_bad_handle(HandleKind wanted, const void* handle, uint32_t found);

// True with COMPUTE_DEBUG=handles: released handles are kept, so that a use of one is always detected.
bool keeps_released_handles() noexcept;
// Then it stores descriptions of released handles, for messages about their use.
void note_released(const void* handle, std::string description) noexcept;

template <HandleKind kKind>
class Handle {
 public:
  static constexpr HandleKind handle_kind = kKind;

  bool is_alive() const noexcept { return mark_ == static_cast<uint32_t>(kKind); }
  uint32_t mark() const noexcept { return mark_; }
  void retain() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  int32_t references() const noexcept { return references_.load(std::memory_order_acquire); }

  // True for the last reference; the caller then destroys the object. If the count is one, no atomic subtraction is
  // needed, because no other thread has a reference to copy.
  bool drop() noexcept {
    return references_.load(std::memory_order_acquire) == 1 || references_.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }

 protected:
  ~Handle() { mark_ = 0xdeadbeef; }

 private:
  volatile uint32_t mark_ = static_cast<uint32_t>(kKind);
  std::atomic<int32_t> references_{1};
};

// The object of a handle that a program passed in.
template <class T>
T& checked(T* handle) {
  if (handle == nullptr || !handle->is_alive()) {
    throw_bad_handle(T::handle_kind, handle, handle == nullptr ? 0 : handle->mark());
  }
  return *handle;
}

template <class T>
const T& checked(const T* handle) {
  return checked(const_cast<T*>(handle));
}

// Drops a reference, and destroys the object with the last one. After compute_shutdown nothing is destroyed. With
// COMPUTE_DEBUG=handles the memory is kept and marked as dead.
template <class T>
void release_handle(T* handle) noexcept {
  if (handle == nullptr || !handle->is_alive() || !handle->drop()) return;
  // Last tensors of buffers are released too often for it. Buffer::destroy() does it where the buffer leaves the pool.
  [[maybe_unused]] const std::conditional_t<T::handle_kind == HandleKind::kTensor, std::monostate, CallerWorld> world;
  const InUse in_use;
  if (is_shut_down()) return;
  if (keeps_released_handles()) {
    if constexpr (requires { handle->description(); }) note_released(handle, handle->description());
    handle->~T();
  } else {
    delete handle;
  }
}

}  // namespace compute
