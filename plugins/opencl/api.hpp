// SPDX-License-Identifier: Apache-2.0
// OpenCL for this plugin: its own declarations, and the loader library opened at run time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

namespace compute::common {
class Error;
}

namespace compute::opencl {

using cl_int = int32_t;
using cl_uint = uint32_t;
using cl_bitfield = uint64_t;
using cl_platform_id = struct PlatformObject*;
using cl_device_id = struct DeviceObject*;
using cl_context = struct ContextObject*;
using cl_command_queue = struct QueueObject*;
using cl_mem = struct MemoryObject*;
using cl_program = struct ProgramObject*;
using cl_kernel = struct KernelObject*;
using cl_event = struct EventObject*;
using cl_context_callback = void (*)(const char*, const void*, size_t, void*);
using cl_program_callback = void (*)(cl_program, void*);
using cl_event_callback = void (*)(cl_event, cl_int, void*);

enum : int64_t {
#define CONSTANT(name, value) name = value,
#include "plugins/opencl/constants.inc"
#undef CONSTANT
  // Extensions that the headers of 1.2 lack.
  CL_PLATFORM_NOT_FOUND_KHR = -1001,
  CL_DEVICE_PCI_BUS_INFO_KHR = 0x410F,
  CL_DEVICE_UUID_KHR = 0x106A,
  CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV = 0x4000,
  CL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV = 0x4001,
  CL_DEVICE_PCI_BUS_ID_NV = 0x4008,
  CL_DEVICE_PCI_SLOT_ID_NV = 0x4009,
  CL_DEVICE_PCI_DOMAIN_ID_NV = 0x400A,
};

struct Api {
#define FUNCTION(name, result, parameters) result(*name) parameters;
#include "plugins/opencl/functions.inc"
#undef FUNCTION
};

/// "1.5.3" where the library at `path` is the file libname.so.1.5.3; empty if its name has only "1".
std::string version_of_file(const std::string& path);

/// The functions of the loader library, opened by open_api().
const Api& api();

struct LibraryReport {
  std::string tried, found, error;  // `tried`: one a line
};

/// Opens the first of `names` that exists, permanently. NULL if none exists; `report` lists the names tried.
void* open_library(std::initializer_list<const char*> names, LibraryReport* report);

/// Opens the loader library at the first call. False if there is none, or if it lacks a required function; `report`
/// lists the names tried.
bool open_api(LibraryReport* report);

/// "CL_OUT_OF_RESOURCES (-5)"
std::string status_text(cl_int status);

/// The error for a status other than success: `what` is the attempted operation. check() throws it.
common::Error error_of(cl_int status, const char* what);
void check(cl_int status, const char* what);

/// An owning handle of an API object, which is released with it.
template <class T, cl_int (*Api::*release)(T)>
class Handle {
 public:
  Handle() = default;
  explicit Handle(T object) : object_(object) {}
  Handle(Handle&& other) noexcept : object_(other.object_) { other.object_ = nullptr; }
  Handle& operator=(Handle&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    if (object_ != nullptr) (api().*release)(object_);
  }
  T get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  T object_ = nullptr;
};

using Context = Handle<cl_context, &Api::clReleaseContext>;
using Queue = Handle<cl_command_queue, &Api::clReleaseCommandQueue>;
using Memory = Handle<cl_mem, &Api::clReleaseMemObject>;
using Program = Handle<cl_program, &Api::clReleaseProgram>;
using Kernel = Handle<cl_kernel, &Api::clReleaseKernel>;
using Event = Handle<cl_event, &Api::clReleaseEvent>;

}  // namespace compute::opencl
