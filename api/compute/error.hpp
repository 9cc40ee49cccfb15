// SPDX-License-Identifier: Apache-2.0
//
// error.hpp: errors as exceptions, and counted references to handles. Include compute.hpp.
#ifndef COMPUTE_ERROR_HPP_
#define COMPUTE_ERROR_HPP_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "compute/compute.h"

namespace compute {

/// What kind of error it is; see compute.h. A later library may have further ones: take them for `internal`.
enum class ErrorCode : compute_error_code {
  ok = COMPUTE_OK,
  invalid_argument = COMPUTE_ERROR_INVALID_ARGUMENT,
  out_of_range = COMPUTE_ERROR_OUT_OF_RANGE,
  unsupported = COMPUTE_ERROR_UNSUPPORTED,
  out_of_memory = COMPUTE_ERROR_OUT_OF_MEMORY,
  out_of_device_memory = COMPUTE_ERROR_OUT_OF_DEVICE_MEMORY,
  not_found = COMPUTE_ERROR_NOT_FOUND,
  device_mismatch = COMPUTE_ERROR_DEVICE_MISMATCH,
  compile_failed = COMPUTE_ERROR_COMPILE_FAILED,
  kernel_failed = COMPUTE_ERROR_KERNEL_FAILED,
  stream_failed = COMPUTE_ERROR_STREAM_FAILED,
  context_lost = COMPUTE_ERROR_CONTEXT_LOST,
  device_lost = COMPUTE_ERROR_DEVICE_LOST,
  restart_required = COMPUTE_ERROR_RESTART_REQUIRED,
  forked = COMPUTE_ERROR_FORKED,
  shut_down = COMPUTE_ERROR_SHUT_DOWN,
  plugin_rejected = COMPUTE_ERROR_PLUGIN_REJECTED,
  internal = COMPUTE_ERROR_INTERNAL,
  cancelled = COMPUTE_ERROR_CANCELLED,
  peer_failed = COMPUTE_ERROR_PEER_FAILED,
  numerical = COMPUTE_ERROR_NUMERICAL,
  io = COMPUTE_ERROR_IO
};

/// For the constants of compute.h.
[[nodiscard]] constexpr bool operator==(ErrorCode code, compute_error_code number) noexcept {
  return static_cast<compute_error_code>(code) == number;
}

/// The name of a code: "INVALID_ARGUMENT" for 1 and so on; "UNKNOWN" for a number without a name.
[[nodiscard]] inline std::string_view code_name(compute_error_code code) noexcept {
  return compute_error_code_name(code);
}
[[nodiscard]] inline std::string_view code_name(ErrorCode code) noexcept {
  return code_name(static_cast<compute_error_code>(code));
}

/// A struct of compute.h that is zero except for its struct_size, to be filled in.
template <class T>
[[nodiscard]] constexpr T sized() noexcept {
  T value{};
  value.struct_size = sizeof value;
  return value;
}

namespace detail {

/// The kind of native handles that a struct is for.
template <class Handle>
inline constexpr uint32_t native_kind = 0;
template <>
inline constexpr uint32_t native_kind<compute_native_dlpack> = COMPUTE_NATIVE_DLPACK;
template <>
inline constexpr uint32_t native_kind<compute_native_host> = COMPUTE_NATIVE_HOST;
template <>
inline constexpr uint32_t native_kind<compute_native_cuda> = COMPUTE_NATIVE_CUDA;
template <>
inline constexpr uint32_t native_kind<compute_native_opencl> = COMPUTE_NATIVE_OPENCL;
template <>
inline constexpr uint32_t native_kind<compute_native_vulkan> = COMPUTE_NATIVE_VULKAN;

}  // namespace detail

/// An error object of compute.h that someone else owns, or none. It is valid as long as its owner.
class ErrorView {
 public:
  ErrorView() = default;
  explicit ErrorView(const compute_error* error) noexcept : error_(error) {}

  /// Whether there is an error.
  explicit operator bool() const noexcept { return error_ != nullptr; }
  [[nodiscard]] ErrorCode code() const noexcept { return ErrorCode{compute_error_get_code(error_)}; }  // or `ok`
  [[nodiscard]] std::string_view code_name() const noexcept { return compute::code_name(code()); }
  [[nodiscard]] std::string_view message() const noexcept { return compute_error_message(error_); }
  [[nodiscard]] std::string_view op() const noexcept { return compute_error_op(error_); }  // "" if no op
  [[nodiscard]] int32_t argument() const noexcept { return compute_error_argument(error_); }
  [[nodiscard]] std::string_view attribute() const noexcept { return compute_error_attribute(error_); }  // or ""
  [[nodiscard]] std::string_view device() const noexcept { return compute_error_device(error_); }
  [[nodiscard]] int64_t native_code() const noexcept { return compute_error_native_code(error_); }
  [[nodiscard]] ErrorView cause() const noexcept { return ErrorView(compute_error_cause(error_)); }
  [[nodiscard]] const compute_error* get() const noexcept { return error_; }

 private:
  const compute_error* error_ = nullptr;
};

/// What a call of compute.h reported. Copies share the error object.
class Error : public std::runtime_error {
 public:
  /// Takes ownership of `error`, which is not NULL.
  explicit Error(compute_error* error) : Error(std::shared_ptr<const compute_error>(error, compute_error_free)) {}
  /// A fault that this header finds before it calls the library.
  Error(compute_error_code code, const std::string& message) : Error(ErrorCode{code}, message) {}
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}

  [[nodiscard]] ErrorCode code() const noexcept { return code_; }
  [[nodiscard]] std::string_view code_name() const noexcept { return compute::code_name(code_); }
  /// The op that failed, or "".
  [[nodiscard]] std::string_view op() const noexcept { return view().op(); }
  /// The index of the faulty argument, or -1.
  [[nodiscard]] int32_t argument() const noexcept { return view().argument(); }
  /// The canonical name of the device, or "".
  [[nodiscard]] std::string_view device() const noexcept { return view().device(); }
  /// The vendor's own number, or 0.
  [[nodiscard]] int64_t native_code() const noexcept { return view().native_code(); }
  /// What it comes from, if anything. Valid as long as this exception or a copy of it.
  [[nodiscard]] ErrorView cause() const noexcept { return view().cause(); }
  /// The error object itself; empty if the fault was found by this header.
  [[nodiscard]] ErrorView view() const noexcept { return ErrorView(error_.get()); }

 private:
  explicit Error(std::shared_ptr<const compute_error> error)
      : std::runtime_error(compute_error_message(error.get())),
        code_(ErrorCode{compute_error_get_code(error.get())}),
        error_(std::move(error)) {}

  ErrorCode code_;
  std::shared_ptr<const compute_error> error_;
};

namespace detail {

[[noreturn]] inline void throw_error(compute_error* error) { throw Error(error); }

[[noreturn]] inline void throw_invalid(const std::string& message) {
  throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, message);
}

}  // namespace detail

/// Throws compute::Error if a call of compute.h reported one; takes ownership of it.
inline void check(compute_error* error) {
  if (error != nullptr) [[unlikely]]
    detail::throw_error(error);
}

/// A counted reference to a handle of compute.h, or none: what Tensor, Device, Stream and the others are.
template <class T, void (*kRetain)(T*), void (*kRelease)(T*)>
class Reference {
 public:
  Reference() = default;
  /// Takes over one reference.
  explicit Reference(T* handle) noexcept : handle_(handle) {}
  Reference(const Reference& other) noexcept : handle_(other.handle_) {
    if (handle_ != nullptr) kRetain(handle_);
  }
  Reference(Reference&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Reference& operator=(Reference other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Reference() {
    if (handle_ != nullptr) kRelease(handle_);
  }

  /// The handle, still owned by this object; NULL if it holds none.
  [[nodiscard]] T* get() const noexcept { return handle_; }
  /// Gives the reference up: the caller releases it.
  [[nodiscard]] T* detach() noexcept { return std::exchange(handle_, nullptr); }
  /// Whether this object holds a handle.
  [[nodiscard]] bool defined() const noexcept { return handle_ != nullptr; }
  explicit operator bool() const noexcept { return handle_ != nullptr; }

 private:
  T* handle_ = nullptr;
};

namespace detail {

// What a call with one out-parameter of type Handle* made.
template <class Handle, class F>
[[nodiscard]] Handle* made(F&& call) {
  Handle* handle = nullptr;
  check(call(&handle));
  return handle;
}

// A text of compute.h, freed at the end.
struct Text {
  compute_text* text = nullptr;

  Text() = default;
  Text(const Text&) = delete;
  Text& operator=(const Text&) = delete;
  ~Text() { compute_text_free(text); }
  [[nodiscard]] std::string str() const {
    return {compute_text_data(text), static_cast<size_t>(compute_text_size(text))};
  }
};

template <class F>
[[nodiscard]] std::string text_of(F&& call) {
  Text text;
  check(call(&text.text));
  return text.str();
}

// A string of a struct of compute.h.
[[nodiscard]] inline std::string_view string_of(const char* data, int64_t size) noexcept {
  return data == nullptr ? std::string_view() : std::string_view(data, static_cast<size_t>(size));
}

}  // namespace detail

}  // namespace compute

#endif  // COMPUTE_ERROR_HPP_
