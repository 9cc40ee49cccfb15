// SPDX-License-Identifier: Apache-2.0
#include "core/base/error.hpp"

#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include "core/base/lock.hpp"
#include "core/base/scope.hpp"
#include "core/text/printable.hpp"

namespace compute {
namespace {

// Made before main and never destroyed, because it must exist when memory has run out.
compute_error& out_of_memory_object() noexcept {
  alignas(compute_error) static unsigned char storage[sizeof(compute_error)];
  static compute_error* const object = [] {
    auto* error = new (storage) compute_error;
    error->code = COMPUTE_ERROR_OUT_OF_MEMORY;
    error->message.assign("out of memory");  // fits the small-string buffer
    error->static_object = true;
    return error;
  }();
  return *object;
}

[[maybe_unused]] const compute_error& made_at_load = out_of_memory_object();

// A plugin holds few errors at a time, so a list will do, and needs no memory.
constinit SpinLock given_lock;
constinit compute_error* first_given = nullptr;
// Once: an error that a stream keeps may have one already.
void add_scope(std::string& message) {
  constexpr std::string_view kBegin = "\nscope: ";
  const std::string scope = current_scope();
  if (!scope.empty() && message.find(kBegin) == std::string::npos) message += std::string(kBegin) + scope;
}

}  // namespace

Error Error::adopt(compute_error* raw) {
  std::unique_ptr<compute_error, decltype(&compute_error_free)> owned(raw, compute_error_free);
  Error error(raw->code, raw->message);
  error.op = raw->op;
  error.device = raw->device;
  error.attribute = raw->attribute;
  error.argument = raw->argument;
  error.native_code = raw->native_code;
  if (raw->cause != nullptr) error.cause.reset(std::exchange(raw->cause, nullptr), compute_error_free);
  return error;
}

compute_error* make_error(const Error& error) noexcept {
  try {
    auto object = std::make_unique<compute_error>();
    object->code = error.code;
    object->message = printable_lines(error.message);
    object->op = printable(error.op);
    object->device = printable(error.device);
    object->attribute = printable(error.attribute);
    object->argument = error.argument;
    object->native_code = error.native_code;
    if (error.cause != nullptr) object->cause = copy_error(error.cause.get());
    return object.release();
  } catch (...) {
    return &out_of_memory_object();
  }
}

compute_error* copy_error(const compute_error* error) noexcept {
  if (error == nullptr || error->static_object) return &out_of_memory_object();
  try {
    auto object = std::make_unique<compute_error>(*error);
    object->cause = nullptr;
    if (error->cause != nullptr) object->cause = copy_error(error->cause);
    return object.release();
  } catch (...) {
    return &out_of_memory_object();
  }
}

compute_error* current_exception_to_error(const char* function) noexcept {
  try {
    throw;
  } catch (Error& error) {
    // Other callers of guard() are functions of core.
    if (function != nullptr && std::string_view(function).starts_with("compute_")) {
      try {
        if (error.wants_function) error.message.insert(0, std::string(function) + ": ");
        add_scope(error.message);
      } catch (const std::bad_alloc&) {
        return &out_of_memory_object();
      }
    }
    return make_error(error);
  } catch (const std::bad_alloc&) {
    return &out_of_memory_object();
  } catch (const std::exception& exception) {
    try {
      return make_error(Error(COMPUTE_ERROR_INTERNAL, std::string("internal error: ") + exception.what()));
    } catch (...) {
      return &out_of_memory_object();
    }
  } catch (...) {
    try {
      return make_error(Error(COMPUTE_ERROR_INTERNAL, "internal error: an exception of unknown type"));
    } catch (...) {
      return &out_of_memory_object();
    }
  }
}

void note_given_error(compute_error* error) noexcept {
  std::lock_guard guard(given_lock);
  error->links.after = first_given;
  if (first_given != nullptr) first_given->links.before = error;
  first_given = error;
}

bool take_given_error(compute_error* error) noexcept {
  if (error == nullptr) return false;
  if (error == &out_of_memory_object()) return true;
  std::lock_guard guard(given_lock);
  compute_error* at = first_given;
  while (at != nullptr && at != error) at = at->links.after;
  if (at == nullptr) return false;
  compute_error* const before = std::exchange(error->links.before, nullptr);
  compute_error* const after = std::exchange(error->links.after, nullptr);
  (before != nullptr ? before->links.after : first_given) = after;
  if (after != nullptr) after->links.before = before;
  return true;
}

void throw_if(compute_error* error) {
  if (error != nullptr) throw Error::adopt(error);
}

void throw_null(const char* name) {
  throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, std::string(name) + " is NULL").about_parameter();
}

void require_format(int32_t format) {
  if (format == COMPUTE_FORMAT_TEXT || format == COMPUTE_FORMAT_JSON) return;
  throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
              "format is " + std::to_string(format) + "; expected COMPUTE_FORMAT_TEXT (0) or COMPUTE_FORMAT_JSON (1)")
      .about_parameter();
}

}  // namespace compute
