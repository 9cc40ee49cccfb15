// SPDX-License-Identifier: Apache-2.0
#include "plugins/cuda/device_info.hpp"

#include <algorithm>
#include <cctype>

#include "plugins/cuda/status.hpp"

namespace compute::cuda {
namespace {

// The oldest architecture that NVRTC 12 and cuBLAS 12 make code for.
constexpr int kLeastComputeCapability = 50;

class Reader {
 public:
  explicit Reader(DeviceInfo& info) : info_(info) {}

  // A driver that is older than an attribute refuses it: the property is left out.
  int attribute(int32_t id, int otherwise = -1) const {
    int value = 0;
    return cu.device_get_attribute(&value, id, info_.handle) == CUDA_SUCCESS ? value : otherwise;
  }

  void text(const char* name, std::string value) { info_.properties.emplace_back(name, std::move(value)); }

  void number(const char* name, int32_t id, const char* unit = "") {
    if (const int value = attribute(id); value >= 0) text(name, std::to_string(value) + unit);
  }

  void flag(const char* name, int32_t id) {
    if (const int value = attribute(id); value >= 0) text(name, value != 0 ? "yes" : "no");
  }

  void extents(const char* name, int32_t x, int32_t y, int32_t z) {
    text(name,
         std::to_string(attribute(x)) + " x " + std::to_string(attribute(y)) + " x " + std::to_string(attribute(z)));
  }

 private:
  DeviceInfo& info_;
};

// CUDA cores per multiprocessor, which depend on the architecture and which the driver does not report.
int cores_per_multiprocessor(int capability) {
  switch (capability) {
    case 60:
      return 64;
    case 70:
    case 72:
    case 75:
    case 80:
      return 64;
    default:
      return capability >= 50 ? 128 : 0;
  }
}

std::string uuid_text(const CUuuid& uuid) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    const auto byte = static_cast<unsigned char>(uuid.bytes[i]);
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
    if (i == 3 || i == 5 || i == 7 || i == 9) text += '-';
  }
  return text;
}

// The driver writes 00000000:65:00.0 or 0000:65:00.0.
std::string pci_text(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const size_t colon = text.find(':');
  if (colon != std::string::npos && colon > 4) text.erase(0, colon - 4);
  return text;
}

void read_properties(DeviceInfo& info) {
  Reader read(info);
  const int major = read.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0);
  const int minor = read.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0);
  info.compute_capability = major * 10 + minor;
  info.multiprocessors = read.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 1);
  info.threads_per_multiprocessor = read.attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 1024);
  info.threads_per_block = read.attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024);
  info.warp_size = read.attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32);
  info.shared_bytes_per_block = read.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 48 << 10);
  info.shared_bytes_per_block_opt_in = read.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
                                                      static_cast<int>(info.shared_bytes_per_block));
  info.is_integrated = read.attribute(CU_DEVICE_ATTRIBUTE_INTEGRATED, 0) != 0;
  info.has_fast_doubles = read.attribute(CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 32) <= 2;

  read.text("compute_capability", std::to_string(major) + "." + std::to_string(minor));
  read.number("multiprocessors", CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  if (const int cores = cores_per_multiprocessor(info.compute_capability); cores > 0) {
    read.text("cores",
              std::to_string(cores * info.multiprocessors) + " (" + std::to_string(cores) + " per multiprocessor)");
  }
  const auto megahertz = [&](const char* name, int32_t id) {
    if (const int value = read.attribute(id); value > 0) read.text(name, std::to_string(value / 1000) + " MHz");
  };
  megahertz("clock", CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  megahertz("memory_clock", CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  read.number("memory_bus", CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, " bits");
  const double clock = read.attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 0);
  const double width = read.attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 0);
  if (clock > 0 && width > 0) {
    read.text("memory_bandwidth",
              std::to_string(static_cast<int64_t>(2 * clock * width / 8 / 1e6)) + " GB/s by clock and width");
  }
  read.number("l2_cache", CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, " bytes");
  read.number("l2_cache_persisting", CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, " bytes");
  read.number("constant_memory", CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, " bytes");
  read.number("shared_memory_per_group", CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, " bytes");
  read.number("shared_memory_per_group_opt_in", CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, " bytes");
  read.number("shared_memory_per_multiprocessor", CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, " bytes");
  read.number("registers_per_group", CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
  read.number("registers_per_multiprocessor", CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
  read.number("warp_size", CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  read.number("threads_per_multiprocessor", CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  read.number("groups_per_multiprocessor", CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
  read.number("group_size", CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  read.extents("group_extents", CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,
               CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
  read.extents("grid_extents", CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y,
               CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
  read.number("memory_pitch", CU_DEVICE_ATTRIBUTE_MAX_PITCH, " bytes");
  read.number("texture_alignment", CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, " bytes");
  read.number("copy_engines", CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT);
  read.flag("concurrent_kernels", CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS);
  read.flag("kernel_time_limit", CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT);
  read.text("integrated", info.is_integrated ? "yes" : "no");
  read.flag("maps_host_memory", CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY);
  read.flag("ecc", CU_DEVICE_ATTRIBUTE_ECC_ENABLED);
  read.flag("unified_addressing", CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING);
  read.flag("managed_memory", CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY);
  read.flag("concurrent_managed_access", CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS);
  read.flag("pageable_memory_access", CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS);
  read.flag("host_page_tables", CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES);
  read.flag("host_atomics", CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED);
  read.flag("compute_preemption", CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED);
  read.flag("cooperative_launch", CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH);
  read.flag("cluster_launch", CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH);
  read.flag("stream_priorities", CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED);
  read.flag("virtual_memory_management", CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
  read.flag("memory_pools", CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
  read.flag("gpu_direct_rdma", CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED);
  read.flag("multi_gpu_board", CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD);
  read.number("float32_to_float64_rate", CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, " to 1");
  static constexpr const char* kModes[] = {"default", "exclusive", "prohibited", "exclusive process"};
  const int mode = read.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_MODE);
  if (mode >= 0 && mode < 4) read.text("compute_mode", kModes[mode]);
  read.text("cuda_ordinal", std::to_string(info.ordinal));
  constexpr int kProhibited = 2;
  if (mode == kProhibited) info.unusable = "its compute mode is prohibited; set it with nvidia-smi -c DEFAULT";
  if (info.compute_capability < kLeastComputeCapability) {
    info.unusable = "compute capability " + std::to_string(major) + "." + std::to_string(minor) + " is below 5.0";
  }
}

}  // namespace

std::vector<DeviceInfo> read_devices() {
  int count = 0;
  check(cu.device_get_count(&count), "counting the devices");
  std::vector<DeviceInfo> devices;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    DeviceInfo info;
    info.ordinal = ordinal;
    if (cu.device_get(&info.handle, ordinal) != CUDA_SUCCESS) continue;
    char text[256] = "";
    if (cu.device_get_name(text, sizeof text, info.handle) == CUDA_SUCCESS) info.name = text;
    if (cu.device_get_pci_bus_id(text, sizeof text, info.handle) == CUDA_SUCCESS) info.pci_address = pci_text(text);
    CUuuid uuid{};
    if (cu.device_get_uuid(&uuid, info.handle) == CUDA_SUCCESS) info.uuid = uuid_text(uuid);
    size_t bytes = 0;
    if (cu.device_total_mem(&bytes, info.handle) == CUDA_SUCCESS) info.memory_bytes = static_cast<int64_t>(bytes);
    read_properties(info);
    devices.push_back(std::move(info));
  }
  // Which devices can access each other directly.
  for (DeviceInfo& device : devices) {
    std::string peers;
    for (const DeviceInfo& other : devices) {
      int can = 0;
      if (other.handle == device.handle || cu.device_can_access_peer(&can, device.handle, other.handle) != CUDA_SUCCESS)
        continue;
      if (can != 0) peers += (peers.empty() ? "" : ", ") + other.pci_address;
    }
    if (devices.size() > 1) device.properties.emplace_back("peers", peers.empty() ? "none" : peers);
  }
  std::stable_sort(devices.begin(), devices.end(),
                   [](const DeviceInfo& a, const DeviceInfo& b) { return a.pci_address < b.pci_address; });
  return devices;
}

}  // namespace compute::cuda
