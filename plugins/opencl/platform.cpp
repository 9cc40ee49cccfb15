// SPDX-License-Identifier: Apache-2.0
#include "plugins/opencl/platform.hpp"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstdio>
#include <tuple>

#include "plugins/opencl/dialect/dialect.hpp"

namespace compute::opencl {
namespace {

struct FaultRow {
  const char *platform, *device, *version;
  Fault avoid;
  int32_t argument;
  const char* reason;
};

constexpr FaultRow kFaults[] = {
#define FAULT(platform, device, version, avoid, argument, reason) \
  {platform, device, version, Fault::avoid, argument, reason},
#include "plugins/opencl/faults.inc"
#undef FAULT
};

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\0' || std::isspace(static_cast<unsigned char>(text.back())) != 0))
    text.pop_back();
  const size_t first = text.find_first_not_of(" \t\n");
  return first == std::string::npos ? "" : text.substr(first);
}

std::string platform_text(cl_platform_id platform, cl_uint what) {
  size_t size = 0;
  if (api().clGetPlatformInfo(platform, what, 0, nullptr, &size) != CL_SUCCESS) return "";
  std::string text(size, '\0');
  api().clGetPlatformInfo(platform, what, size, text.data(), nullptr);
  return trimmed(std::move(text));
}

std::string device_text(cl_device_id device, cl_uint what) {
  size_t size = 0;
  if (api().clGetDeviceInfo(device, what, 0, nullptr, &size) != CL_SUCCESS) return "";
  std::string text(size, '\0');
  api().clGetDeviceInfo(device, what, size, text.data(), nullptr);
  return trimmed(std::move(text));
}

template <class T>
T device_number(cl_device_id device, cl_uint what, T otherwise) {
  T value{};
  return api().clGetDeviceInfo(device, what, sizeof value, &value, nullptr) == CL_SUCCESS ? value : otherwise;
}

bool contains(std::string_view text, std::string_view part) {
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
  };
  return std::search(text.begin(), text.end(), part.begin(), part.end(), same) != text.end();
}

std::string pci_address(cl_device_id device) {
  char text[32];
  struct {
    cl_uint domain, bus, device, function;
  } khr{};
  if (api().clGetDeviceInfo(device, CL_DEVICE_PCI_BUS_INFO_KHR, sizeof khr, &khr, nullptr) == CL_SUCCESS) {
    std::snprintf(text, sizeof text, "%04x:%02x:%02x.%x", khr.domain, khr.bus, khr.device, khr.function);
    return text;
  }
  cl_uint bus = 0, slot = 0;
  if (api().clGetDeviceInfo(device, CL_DEVICE_PCI_BUS_ID_NV, sizeof bus, &bus, nullptr) == CL_SUCCESS &&
      api().clGetDeviceInfo(device, CL_DEVICE_PCI_SLOT_ID_NV, sizeof slot, &slot, nullptr) == CL_SUCCESS) {
    const auto domain = device_number<cl_uint>(device, CL_DEVICE_PCI_DOMAIN_ID_NV, 0);
    std::snprintf(text, sizeof text, "%04x:%02x:%02x.%x", domain, bus, slot >> 3, slot & 7);
    return text;
  }
  return "";
}

std::string uuid_text(cl_device_id device) {
  unsigned char bytes[16];
  if (api().clGetDeviceInfo(device, CL_DEVICE_UUID_KHR, sizeof bytes, bytes, nullptr) != CL_SUCCESS) return "";
  std::string text;
  for (int i = 0; i < 16; ++i) {
    char digits[4];
    std::snprintf(digits, sizeof digits, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", bytes[i]);
    text += digits;
  }
  return text;
}

// "OpenCL 1.2 …" or "OpenCL C 1.2 …": 120
int version_number(const std::string& text) {
  const size_t digit = text.find_first_of("0123456789");
  int major = 0, minor = 0;
  if (digit == std::string::npos || std::sscanf(text.c_str() + digit, "%d.%d", &major, &minor) != 2) return 0;
  return major * 100 + minor * 10;
}

// Ten times the major number; 0 of other vendors' devices.
int compute_capability(cl_device_id device) {
  const auto major = device_number<cl_uint>(device, CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV, 0);
  return static_cast<int>(10 * major + device_number<cl_uint>(device, CL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV, 0));
}

void describe(DeviceInfo& info) {
  const cl_device_id device = info.device;
  info.name = device_text(device, CL_DEVICE_NAME);
  info.vendor = device_text(device, CL_DEVICE_VENDOR);
  info.driver_version = device_text(device, CL_DRIVER_VERSION);
  info.version = device_text(device, CL_DEVICE_VERSION);
  info.c_version = device_text(device, CL_DEVICE_OPENCL_C_VERSION);
  info.extensions = device_text(device, CL_DEVICE_EXTENSIONS);
  info.pci_address = pci_address(device);
  info.uuid = uuid_text(device);
  info.type = device_number<cl_bitfield>(device, CL_DEVICE_TYPE, 0);
  info.memory_bytes = static_cast<int64_t>(device_number<uint64_t>(device, CL_DEVICE_GLOBAL_MEM_SIZE, 0));
  info.max_allocation_bytes = static_cast<int64_t>(device_number<uint64_t>(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, 0));
  info.base_alignment = std::max<int32_t>(
      1, static_cast<int32_t>(device_number<cl_uint>(device, CL_DEVICE_MEM_BASE_ADDR_ALIGN, 1024)) / 8);
  info.is_unified = device_number<cl_uint>(device, CL_DEVICE_HOST_UNIFIED_MEMORY, 0) != 0;
  for (const FaultRow& row : kFaults) {
    const bool same_version =
        contains(info.driver_version, row.version) || contains(info.platform_version, row.version);
    if (contains(info.platform_name, row.platform) && contains(info.name, row.device) && same_version) {
      info.faults.push_back({row.avoid, row.argument, row.reason});
    }
  }
  if (const KnownFault* fault = info.known(Fault::kDevice)) info.unusable = fault->reason;
  if (device_number<cl_uint>(device, CL_DEVICE_AVAILABLE, 1) == 0)
    info.unusable = "the driver reports that it is not available";
  if (device_number<cl_uint>(device, CL_DEVICE_COMPILER_AVAILABLE, 1) == 0)
    info.unusable = "its driver has no compiler";
  if (version_number(info.version) < 120) info.unusable = info.version + ": OpenCL 1.2 is required";

  common::Dialect& dialect = info.dialect;
  dialect = (info.type & CL_DEVICE_TYPE_CPU) != 0 ? dialect_of_cores() : opencl::dialect();
  const bool states_fp64 =
      info.has_extension("cl_khr_fp64") || device_number<cl_bitfield>(device, CL_DEVICE_DOUBLE_FP_CONFIG, 0) != 0;
  dialect.has_fp64 = states_fp64 && !info.avoids(Fault::kFp64);
  dialect.has_int64_atomics = info.has_extension("cl_khr_int64_base_atomics");
  dialect.has_half_io = !info.avoids(Fault::kHalfIo);
  dialect.has_ptx = dialect.has_warps = contains(info.platform_name, "NVIDIA");
  dialect.has_matrix_units = dialect.has_ptx && compute_capability(device) >= 80;
  dialect.has_float64_units = dialect.has_ptx && compute_capability(device) >= 90;
  // OpenCL C 1.2 has no fence between groups.
  if (dialect.has_ptx) dialect.counters = common::kGroupCounters;
  const auto single = device_number<cl_bitfield>(device, CL_DEVICE_SINGLE_FP_CONFIG, 0);
  dialect.has_rounded_division = (single & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
  info.keeps_subnormals = (single & CL_FP_DENORM) != 0;
  for (const KnownFault& fault : info.faults) {
    if (fault.avoid == Fault::kWideIntrinsic) dialect.wide_intrinsics.set(static_cast<size_t>(fault.argument));
  }
  const auto group_limit = static_cast<int64_t>(device_number<size_t>(device, CL_DEVICE_MAX_WORK_GROUP_SIZE, 64));
  info.max_group_size = static_cast<int32_t>(std::min<int64_t>(group_limit, INT32_MAX));
  dialect.group_size =
      static_cast<int32_t>(std::bit_floor(static_cast<uint64_t>(std::clamp<int64_t>(group_limit, 1, 256))));
  // Registers may limit a kernel's groups elsewhere.
  dialect.largest_group = dialect.has_ptx ? 1024 : dialect.group_size;
  dialect.compute_units = static_cast<int32_t>(device_number<cl_uint>(device, CL_DEVICE_MAX_COMPUTE_UNITS, 1));
  dialect.groups_per_unit = dialect.is_host ? 4 : 8;
  dialect.local_memory_bytes =
      static_cast<int64_t>(device_number<uint64_t>(device, CL_DEVICE_LOCAL_MEM_SIZE, 16 << 10));
  dialect.max_block_bytes =
      std::min<int64_t>(4096, static_cast<int64_t>(device_number<size_t>(device, CL_DEVICE_MAX_PARAMETER_SIZE, 256)));
}

}  // namespace

const KnownFault* DeviceInfo::known(Fault fault) const {
  const auto found =
      std::find_if(faults.begin(), faults.end(), [&](const KnownFault& row) { return row.avoid == fault; });
  return found == faults.end() ? nullptr : &*found;
}

bool DeviceInfo::has_extension(std::string_view name) const {
  return (" " + extensions + " ").find(" " + std::string(name) + " ") != std::string::npos;
}

std::vector<DeviceInfo> list_devices(cl_int* out_status, std::string* out_idle) {
  cl_uint count = 0;
  *out_status = api().clGetPlatformIDs(0, nullptr, &count);
  if (*out_status != CL_SUCCESS || count == 0) return {};
  std::vector<cl_platform_id> platforms(count);
  *out_status = api().clGetPlatformIDs(count, platforms.data(), nullptr);
  if (*out_status != CL_SUCCESS) return {};
  // The loader lists them as the folder of its files happens to be ordered.
  std::stable_sort(platforms.begin(), platforms.end(), [](cl_platform_id a, cl_platform_id b) {
    const auto key = [](cl_platform_id p) {
      return std::make_tuple(platform_text(p, CL_PLATFORM_NAME), platform_text(p, CL_PLATFORM_VENDOR),
                             platform_text(p, CL_PLATFORM_VERSION));
    };
    return key(a) < key(b);
  });
  std::vector<DeviceInfo> devices;
  for (size_t i = 0; i < platforms.size(); ++i) {
    cl_uint found = 0;
    if (api().clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, 0, nullptr, &found) != CL_SUCCESS || found == 0) {
      if (out_idle != nullptr)
        *out_idle += (out_idle->empty() ? "" : ", ") + platform_text(platforms[i], CL_PLATFORM_NAME);
      continue;
    }
    std::vector<cl_device_id> ids(found);
    if (api().clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, found, ids.data(), nullptr) != CL_SUCCESS) continue;
    for (const cl_device_id id : ids) {
      DeviceInfo& info = devices.emplace_back();
      info.id = devices.size();
      info.platform = platforms[i];
      info.device = id;
      info.platform_number = static_cast<int32_t>(i) + 1;
      info.platform_name = platform_text(platforms[i], CL_PLATFORM_NAME);
      info.platform_version = platform_text(platforms[i], CL_PLATFORM_VERSION);
      info.platform_suffix = platform_text(platforms[i], CL_PLATFORM_ICD_SUFFIX_KHR);
      describe(info);
    }
  }
  return devices;
}

}  // namespace compute::opencl
