// SPDX-License-Identifier: Apache-2.0
#include "api.hpp"

#include <dlfcn.h>
#include <compute_kit/signals_blocked.hpp>

#include "core.hpp"

namespace vulkan {

#define VULKAN_DEFINE(name) PFN_##name name;
VULKAN_GLOBAL_FUNCTIONS(VULKAN_DEFINE)
VULKAN_INSTANCE_FUNCTIONS(VULKAN_DEFINE)
VULKAN_DEVICE_FUNCTIONS(VULKAN_DEFINE)
#undef VULKAN_DEFINE
PFN_vkGetInstanceProcAddr vkGetInstanceProcAddr;

void check(VkResult result, const char* what) {
  if (result == VK_SUCCESS) return;
  compute_error_code code = COMPUTE_ERROR_INTERNAL;
  std::string name = "VkResult " + std::to_string(result);
  switch (result) {
    case VK_ERROR_OUT_OF_HOST_MEMORY:
      code = COMPUTE_ERROR_OUT_OF_MEMORY;
      name = "VK_ERROR_OUT_OF_HOST_MEMORY";
      break;
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
      code = COMPUTE_ERROR_OUT_OF_DEVICE_MEMORY;
      name = "VK_ERROR_OUT_OF_DEVICE_MEMORY";
      break;
    case VK_ERROR_TOO_MANY_OBJECTS:
      code = COMPUTE_ERROR_OUT_OF_DEVICE_MEMORY;
      name = "VK_ERROR_TOO_MANY_OBJECTS";
      break;
    case VK_ERROR_DEVICE_LOST:
      code = COMPUTE_ERROR_CONTEXT_LOST;
      name = "VK_ERROR_DEVICE_LOST";
      break;
    case VK_ERROR_INITIALIZATION_FAILED:
      code = COMPUTE_ERROR_UNSUPPORTED;
      name = "VK_ERROR_INITIALIZATION_FAILED";
      break;
    case VK_ERROR_INCOMPATIBLE_DRIVER:
      code = COMPUTE_ERROR_UNSUPPORTED;
      name = "VK_ERROR_INCOMPATIBLE_DRIVER";
      break;
    default:
      break;
  }
  throw Failure(code, std::string("vulkan: ") + what + " returned " + name, result);
}

namespace {

struct Loader {
  LoaderReport report;
  VkInstance instance = VK_NULL_HANDLE;

  Loader() {
    const compute::common::SignalsBlocked blocked;  // drivers may start threads
    void* library = nullptr;
    for (const char* name : {"libvulkan.so.1", "libvulkan.so"}) {
      report.tried += report.tried.empty() ? name : std::string("\n") + name;
      if (library != nullptr) continue;
      library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
      if (library != nullptr) {
        report.found = name;
        report.error.clear();
      } else if (const char* problem = dlerror(); problem != nullptr && report.error.empty()) {
        report.error = problem;
      }
    }
    if (library == nullptr) return;
    vkGetInstanceProcAddr = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library, "vkGetInstanceProcAddr"));
    if (vkGetInstanceProcAddr == nullptr) {
      report.error = "the library has no vkGetInstanceProcAddr";
      return;
    }
#define VULKAN_LOAD(name) name = reinterpret_cast<PFN_##name>(vkGetInstanceProcAddr(VK_NULL_HANDLE, #name));
    VULKAN_GLOBAL_FUNCTIONS(VULKAN_LOAD)
#undef VULKAN_LOAD
    uint32_t version = VK_API_VERSION_1_0;
    if (vkEnumerateInstanceVersion != nullptr) vkEnumerateInstanceVersion(&version);
    if (version < VK_API_VERSION_1_2) {
      report.error = "the loader is older than Vulkan 1.2";
      return;
    }
    VkApplicationInfo app = {};
    app.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
    app.pApplicationName = "compute";
    app.apiVersion = VK_API_VERSION_1_2;
    VkInstanceCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
    info.pApplicationInfo = &app;
    const VkResult result = vkCreateInstance(&info, nullptr, &instance);
    if (result != VK_SUCCESS) {
      instance = VK_NULL_HANDLE;
      report.no_driver = result == VK_ERROR_INCOMPATIBLE_DRIVER;
      report.error = "vkCreateInstance returned VkResult " + std::to_string(result);
      return;
    }
#define VULKAN_LOAD(name) name = reinterpret_cast<PFN_##name>(vkGetInstanceProcAddr(instance, #name));
    VULKAN_INSTANCE_FUNCTIONS(VULKAN_LOAD)
    VULKAN_DEVICE_FUNCTIONS(VULKAN_LOAD)
#undef VULKAN_LOAD
  }
};

}  // namespace

VkInstance open_api(LoaderReport* report) {
  // Never destroyed: the loader and drivers may be in use until the process ends.
  static const Loader& loader = *new Loader();
  if (report != nullptr) *report = loader.report;
  return loader.instance;
}

}  // namespace vulkan
