// SPDX-License-Identifier: Apache-2.0
// Named ranges of the calling thread, for a profiler of a vendor that is attached to the process.
#pragma once

namespace compute {

// Whether a profiler is attached. Looks once, as the NVTX headers do: the profiler sets NVTX_INJECTION64_PATH to its
// library, which receives the ranges. Ignored in privileged processes.
bool find_profiler() noexcept;

// Ranges of a thread are nested. Without a profiler nothing happens.
void open_range(const char* name) noexcept;
void close_range() noexcept;

// A range until the end of its life, on the thread that opened it.
class NamedRange {
 public:
  NamedRange() = default;
  NamedRange(const NamedRange&) = delete;
  NamedRange& operator=(const NamedRange&) = delete;
  ~NamedRange() {
    if (is_open_) close_range();
  }

  // Once.
  void open(const char* name) noexcept {
    open_range(name);
    is_open_ = true;
  }

 private:
  bool is_open_ = false;
};

}  // namespace compute
