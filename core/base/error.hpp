// SPDX-License-Identifier: Apache-2.0
// Errors: exceptions inside core, compute_error objects outside, and the only conversion from the former to the latter.
#pragma once

#include <compute/compute.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "core/base/caller_world.hpp"

namespace compute {

// The entry of an error in the list of errors that plugins hold. A copy of an error is in no list.
struct GivenLinks {
  compute_error* before = nullptr;
  compute_error* after = nullptr;
  GivenLinks() = default;
  GivenLinks(const GivenLinks&) noexcept {}
  GivenLinks& operator=(const GivenLinks&) noexcept { return *this; }
};

}  // namespace compute

// The object behind the handle. `static_object` marks the shared out-of-memory error, which is never freed.
struct compute_error {
  compute_error_code code = COMPUTE_ERROR_INTERNAL;
  int32_t argument = -1;
  int64_t native_code = 0;
  std::string message;
  std::string op;
  std::string device;
  std::string attribute;
  compute_error* cause = nullptr;
  bool static_object = false;
  compute::GivenLinks links;
};

namespace compute {

// Thrown where a fault is found; caught only by guard(). The message names op, argument and values in one line. Names
// from the program, a file or a plugin are quoted by printable().
class Error : public std::exception {
 public:
  Error(compute_error_code code, std::string message) : code(code), message(std::move(message)) {}

  // Takes an error object that a plugin returned; frees it.
  static Error adopt(compute_error* error);

  const char* what() const noexcept override { return message.c_str(); }

  Error& with_op(std::string name) & {
    if (op.empty()) op = std::move(name);
    return *this;
  }
  // The message is about a parameter of an interface function. guard() puts the name of the function before it.
  Error&& about_parameter() && {
    wants_function = true;
    return std::move(*this);
  }
  Error&& with_argument(int32_t index) && {
    argument = index;
    return std::move(*this);
  }
  Error&& with_attribute(std::string name) && {
    attribute = std::move(name);
    return std::move(*this);
  }
  Error&& on_device(std::string name) && {
    if (device.empty()) device = std::move(name);
    return std::move(*this);
  }

  compute_error_code code;
  std::string message;
  std::string op;
  std::string device;
  std::string attribute;
  int32_t argument = -1;
  int64_t native_code = 0;
  bool wants_function = false;
  std::shared_ptr<const compute_error> cause;  // NULL if there is none
};

// The error object for the exception in flight; never throws and never returns NULL. `function` is the function that
// the program called.
compute_error* current_exception_to_error(const char* function = nullptr) noexcept;

// An error object with these contents, its texts made printable; the static out-of-memory object if memory runs
// out.
compute_error* make_error(const Error& error) noexcept;

// A deep copy, to return an error that a stream keeps.
compute_error* copy_error(const compute_error* error) noexcept;

// Throws Error::adopt(error) unless error is NULL: for results of plugin calls.
void throw_if(compute_error* error);

// Errors that plugins hold, from error_new until the plugin returns them. take_given_error is false for NULL, and for a
// pointer that no plugin holds, which is never read. The static out-of-memory error may be returned any number of
// times.
void note_given_error(compute_error* error) noexcept;
bool take_given_error(compute_error* error) noexcept;

// Runs `f` at the boundary of the ABI. It stops all exceptions. The caller's floating-point environment and errno do
// not affect `f` and are not changed. guard<CallerErrno> is for an `f` that calculates with integers alone: to look at
// the environment and back costs more than such a call.
template <class World = CallerWorld, class F>
compute_error* guard(F&& f, const char* function = __builtin_FUNCTION()) noexcept {
  [[maybe_unused]] const World world;
  try {
    f();
    return nullptr;
  } catch (...) {
    return current_exception_to_error(function);
  }
}

// Throws INVALID_ARGUMENT naming a parameter that must not be NULL.
[[noreturn]] void throw_null(const char* name);
inline void require_not_null(const void* pointer, const char* name) {
  if (pointer == nullptr) [[unlikely]]
    throw_null(name);
}
// The same for a number that is not a COMPUTE_FORMAT_.
void require_format(int32_t format);

}  // namespace compute
