// SPDX-License-Identifier: Apache-2.0
// An OpenCL driver whose platform has no devices, like Mesa's on a machine without a GPU.
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl_icd.h>

#include <cstring>

namespace {

cl_int CL_API_CALL platform_info(cl_platform_id, cl_platform_info name, size_t size, void* value, size_t* out_size) {
  const char* text = nullptr;
  switch (name) {
    case CL_PLATFORM_PROFILE:
      text = "FULL_PROFILE";
      break;
    case CL_PLATFORM_VERSION:
      text = "OpenCL 3.0 test";
      break;
    case CL_PLATFORM_NAME:
      text = "A platform without devices";  // before "Portable Computing Language"
      break;
    case CL_PLATFORM_VENDOR:
      text = "nobody";
      break;
    case CL_PLATFORM_EXTENSIONS:
      text = "cl_khr_icd";
      break;
    case CL_PLATFORM_ICD_SUFFIX_KHR:
      text = "EMPTY";
      break;
    default:
      return CL_INVALID_VALUE;
  }
  const size_t needed = std::strlen(text) + 1;
  if (value != nullptr) {
    if (size < needed) return CL_INVALID_VALUE;
    std::memcpy(value, text, needed);
  }
  if (out_size != nullptr) *out_size = needed;
  return CL_SUCCESS;
}

cl_int CL_API_CALL device_ids(cl_platform_id, cl_device_type, cl_uint, cl_device_id*, cl_uint* out_count) {
  if (out_count != nullptr) *out_count = 0;
  return CL_DEVICE_NOT_FOUND;
}

const cl_icd_dispatch& dispatch() {
  static const cl_icd_dispatch table = [] {
    cl_icd_dispatch filled{};
    filled.clGetPlatformInfo = platform_info;
    filled.clGetDeviceIDs = device_ids;
    return filled;
  }();
  return table;
}

cl_int CL_API_CALL platform_ids(cl_uint capacity, cl_platform_id* platforms, cl_uint* out_count) {
  // What a loader takes for a platform: it begins with the table's address.
  static const struct { const cl_icd_dispatch* table; } platform = {&dispatch()};
  if (out_count != nullptr) *out_count = 1;
  if (platforms != nullptr && capacity > 0) {
    platforms[0] = reinterpret_cast<cl_platform_id>(const_cast<void*>(static_cast<const void*>(&platform)));
  }
  return CL_SUCCESS;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void* CL_API_CALL clGetExtensionFunctionAddress(const char* name) {
  if (std::strcmp(name, "clIcdGetPlatformIDsKHR") == 0) return reinterpret_cast<void*>(platform_ids);
  if (std::strcmp(name, "clGetPlatformInfo") == 0) return reinterpret_cast<void*>(platform_info);
  return nullptr;
}
