// SPDX-License-Identifier: Apache-2.0
// User kernels as machine code: the system's C++ compiler, which runs as a separate process, compiles the source, and
// the result is loaded from memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "plugins/common/table/emit.hpp"

namespace compute::cpu {

inline constexpr size_t kMostLocalBytes = 1 << 20;  // of a group

// The structs that the compiled code shares with the plugin; prelude.inc has the same.
struct ProgramParameter {
  int32_t is_pointer;
  int32_t size_bytes;
};

struct ProgramGroups {
  int64_t begin, end, groups[3];  // runs groups [begin, end), with axis 0 as the fastest
  int32_t size[3], has_barrier;
  void* const* arguments;  // the addresses of the values
  void (*meet)();
  void (*together)(void (*item)(void* user, int64_t index), void* user, int64_t count);
};

// A loaded kernel. Any number of threads may run it at once.
class Program {
 public:
  // Whether the files that a source includes are read again where the same text has been compiled before.
  enum class Includes { kRead, kAsBefore };

  // Compiles the kernel `name` of a source in the portable dialect, or finds it in memory or in the cache on disk.
  // Throws COMPILE_FAILED with the compiler's messages, UNSUPPORTED if there is no compiler.
  static std::shared_ptr<const Program> make(std::string_view source, std::string_view name, std::string_view options,
                                             Includes includes, bool* out_compiled);

  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  const std::string& name() const { return name_; }
  std::span<const ProgramParameter> parameters() const { return parameters_; }
  bool has_barrier() const { return has_barrier_; }
  // Whether the calling thread has the arrays that a group shares, or can have them. The C library makes them at their
  // first use, and ends the process if it cannot.
  bool has_local_memory() const noexcept;
  void run(const ProgramGroups& groups) const { run_(&groups); }

 private:
  Program() = default;

  std::string name_;
  void* library_ = nullptr;
  std::span<const ProgramParameter> parameters_;
  void (*run_)(const ProgramGroups*) = nullptr;
  bool has_barrier_ = false;
  size_t local_bytes_ = 0;
};

// Why no kernel can be compiled, and what to install; empty if there is a compiler.
std::string reason_against_kernels();

// The compiler for the load report.
common::Requirement report_compiler();

}  // namespace compute::cpu
