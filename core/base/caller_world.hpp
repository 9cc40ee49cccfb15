// SPDX-License-Identifier: Apache-2.0
// The state of the calling thread: its floating-point environment and errno. Every function of the interface runs in
// the default environment, whatever the caller's is, and restores both.
#pragma once

#include <cerrno>
#include <cstdint>

#if !defined(__x86_64__)
#include <cfenv>
#endif

namespace compute {

#if defined(__x86_64__)

// Round to nearest, no traps, subnormals kept; also for x87, which computes long double.
class DefaultFloatEnvironment {
 public:
  DefaultFloatEnvironment() noexcept {
    asm volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(mxcsr_), "=m"(x87_control_) : : "memory");
    if (!is_default()) [[unlikely]]
      enter();
  }
  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
  DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;
  ~DefaultFloatEnvironment() {
    uint32_t mxcsr;
    asm volatile("stmxcsr %0" : "=m"(mxcsr) : : "memory");
    if (mxcsr != mxcsr_ || x87_control_ != kX87Control) leave();
  }

 private:
  static constexpr uint32_t kFlags = 0x3f;  // the exceptions raised so far; they are not part of the modes
  static constexpr uint32_t kMxcsr = 0x1f80;
  static constexpr uint16_t kX87Control = 0x037f;

  bool is_default() const noexcept { return (mxcsr_ & ~kFlags) == kMxcsr && x87_control_ == kX87Control; }

  [[gnu::noinline]] void enter() noexcept {
    asm volatile("fnstenv %0\n\tfninit\n\tldmxcsr %1" : "=m"(x87_) : "m"(kMxcsr) : "memory");
  }

  [[gnu::noinline]] void leave() const noexcept {
    if (!is_default()) {
      asm volatile("fldenv %0" : : "m"(x87_) : "memory");
    } else {
      asm volatile("fldcw %0" : : "m"(x87_control_) : "memory");  // in case a callback changed it
    }
    asm volatile("ldmxcsr %0" : : "m"(mxcsr_) : "memory");
  }

  uint32_t mxcsr_;
  uint16_t x87_control_;
  struct {
    uint32_t words[7];
  } x87_;  // unless the environment is the default one
};

#else

class DefaultFloatEnvironment {
 public:
  DefaultFloatEnvironment() noexcept {
    std::fegetenv(&environment_);
    std::fesetenv(FE_DFL_ENV);
  }
  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
  DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;
  ~DefaultFloatEnvironment() { std::fesetenv(&environment_); }

 private:
  std::fenv_t environment_;
};

#endif

class CallerErrno {
 public:
  CallerErrno() noexcept : place_(errno), value_(errno) {}
  CallerErrno(const CallerErrno&) = delete;
  CallerErrno& operator=(const CallerErrno&) = delete;
  ~CallerErrno() { place_ = value_; }

 private:
  int& place_;  // the thread's
  const int value_;
};

class CallerWorld {
 private:
  const CallerErrno errno_;
  const DefaultFloatEnvironment environment_;
};

}  // namespace compute
