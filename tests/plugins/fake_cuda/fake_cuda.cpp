// SPDX-License-Identifier: Apache-2.0
// A libcuda.so.1 without a GPU: memory is host memory, copies and fills happen at once, kernels are accepted but not
// run. It tests the CUDA plugin from enumeration to launch without a device. cuMemcpyHtoD returns before its copy has
// ended, as it may from pageable memory; the copy ends when a caller waits for the default stream.
//
//   FAKE_CUDA_CAPABILITY   90: the devices' compute capability
//   FAKE_CUDA_MEMORY       bytes of each device
//   FAKE_CUDA_FAULT_AFTER  the launch from which on every call gives 700, an illegal address
#include "fake_cuda.hpp"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

using namespace compute::cuda;

namespace compute::cuda {
// The objects behind the driver's handles.
struct CUctx_st {
  int device;
};
struct CUstream_st {
  CUgraph capture = nullptr;
};
struct CUevent_st {
  std::chrono::steady_clock::time_point time;
};
struct CUfunc_st {
  std::string name;
};
struct CUmod_st {
  std::vector<std::unique_ptr<CUfunc_st>> functions;
};
struct CUgraphNode_st {
  CUfunction function = nullptr;
  std::vector<uint64_t> words;
};
struct CUgraph_st {
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;
};
struct CUgraphExec_st {
  CUgraph graph;
};
}  // namespace compute::cuda

namespace {

constexpr int kDevices = 2;

int64_t number(const char* variable, int64_t otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr && *text != '\0' ? std::atoll(text) : otherwise;
}

struct UnfinishedCopy {
  CUdeviceptr dst;
  std::vector<char> bytes;
};

struct State {
  std::mutex mutex;
  std::vector<UnfinishedCopy> copies;  // of the default stream
  int64_t copy_count = 0;              // number of copies begun
  std::map<uint64_t, size_t> allocations;
  int64_t used = 0;
  std::vector<FakeLaunch> launches;
  std::atomic<int64_t> launch_count{0};
  std::atomic<bool> faulted{false};
  bool keeps_launches = true;
  std::atomic<const char*> failing{nullptr};
  std::atomic<int64_t> calls_until_failure{0};
  std::atomic<int64_t> host_blocks{0};
  CUctx_st contexts[kDevices] = {{0}, {1}};
};

State& state() {
  static State& instance = *new State;
  return instance;
}

thread_local CUcontext current = nullptr;

CUresult sticky() {
  return state().faulted.load(std::memory_order_relaxed) ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS;
}

CUresult ready(const char* function = __builtin_FUNCTION()) {
  if (current == nullptr) return 201;  // CUDA_ERROR_INVALID_CONTEXT
  State& s = state();
  const char* failing = s.failing.load();
  if (failing != nullptr && std::strcmp(failing, function) == 0 && --s.calls_until_failure == 0) {
    s.failing.store(nullptr);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  return sticky();
}

std::vector<uint64_t> words_of(void** extra) {
  const auto* words = static_cast<const uint64_t*>(extra[1]);
  const size_t bytes = *static_cast<const size_t*>(extra[3]);
  return {words, words + bytes / sizeof(uint64_t)};
}

CUresult count_launch(CUfunction function, const uint64_t* words, size_t count) {
  static const int64_t fault_after = number("FAKE_CUDA_FAULT_AFTER", -1);
  State& s = state();
  const int64_t launches = s.launch_count.fetch_add(1, std::memory_order_relaxed) + 1;
  if (fault_after >= 0 && launches > fault_after) s.faulted.store(true);
  if (!s.keeps_launches) return CUDA_SUCCESS;
  const std::lock_guard lock(s.mutex);
  s.launches.push_back({function->name, {words, words + count}, !s.copies.empty()});
  return CUDA_SUCCESS;
}

void* at(CUdeviceptr address) { return reinterpret_cast<void*>(static_cast<uintptr_t>(address)); }

// With the lock held.
void finish_copies() {
  State& s = state();
  for (const UnfinishedCopy& copy : s.copies) std::memcpy(at(copy.dst), copy.bytes.data(), copy.bytes.size());
  s.copies.clear();
}

}  // namespace

#define FAKE extern "C" __attribute__((visibility("default"))) CUresult

// ---- For tests ------------------------------------------------------------------------------------------------------

extern "C" __attribute__((visibility("default"))) std::vector<FakeLaunch>* fake_cuda_take_launches() {
  const std::lock_guard lock(state().mutex);
  auto* taken = new std::vector<FakeLaunch>(std::move(state().launches));
  state().launches.clear();
  return taken;
}

extern "C" __attribute__((visibility("default"))) void fake_cuda_keep_launches(int keep) {
  state().keeps_launches = keep != 0;
}

extern "C" __attribute__((visibility("default"))) int64_t fake_cuda_used_bytes() { return state().used; }

extern "C" __attribute__((visibility("default"))) int64_t fake_cuda_copies() {
  const std::lock_guard lock(state().mutex);
  return state().copy_count;
}

extern "C" __attribute__((visibility("default"))) int64_t fake_cuda_host_blocks() { return state().host_blocks; }

// `function` is a literal.
extern "C" __attribute__((visibility("default"))) void fake_cuda_fail(const char* function, int64_t call) {
  state().calls_until_failure = call;
  state().failing = function;
}

// ---- The driver -----------------------------------------------------------------------------------------------------

FAKE cuInit(unsigned) { return CUDA_SUCCESS; }
// NVRTC queries it, and works without it.
FAKE cuGetExportTable(const void** table, const CUuuid*) {
  *table = nullptr;
  return CUDA_ERROR_NOT_FOUND;
}
FAKE cuDriverGetVersion(int* version) {
  *version = 13000;
  return CUDA_SUCCESS;
}
FAKE cuGetErrorName(CUresult error, const char** text) {
  *text = error == CUDA_ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_FAKE";
  return CUDA_SUCCESS;
}
FAKE cuGetErrorString(CUresult error, const char** text) {
  *text = error == CUDA_ERROR_ILLEGAL_ADDRESS ? "an illegal memory access was encountered" : "a fake error";
  return CUDA_SUCCESS;
}
FAKE cuDeviceGetCount(int* count) {
  *count = kDevices;
  return CUDA_SUCCESS;
}
FAKE cuDeviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return ordinal < kDevices ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
FAKE cuDeviceGetName(char* name, int capacity, CUdevice device) {
  std::snprintf(name, static_cast<size_t>(capacity), "Fake GPU %d", device);
  return CUDA_SUCCESS;
}
FAKE cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  for (int i = 0; i < 16; ++i) uuid->bytes[i] = static_cast<char>(16 * device + i);
  return CUDA_SUCCESS;
}
FAKE cuDeviceTotalMem_v2(size_t* bytes, CUdevice) {
  *bytes = static_cast<size_t>(number("FAKE_CUDA_MEMORY", int64_t{1} << 30));
  return CUDA_SUCCESS;
}
FAKE cuDeviceGetAttribute(int* value, int32_t attribute, CUdevice) {
  const int capability = static_cast<int>(number("FAKE_CUDA_CAPABILITY", 90));
  static const std::map<int32_t, int> kValues = {
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
      {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 8},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 48 << 10},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 227 << 10},
      {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 1000000},
      {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 1024},
  };
  if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) {
    *value = capability / 10;
  } else if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR) {
    *value = capability % 10;
  } else {
    const auto found = kValues.find(attribute);
    if (found == kValues.end()) return CUDA_ERROR_INVALID_VALUE;
    *value = found->second;
  }
  return CUDA_SUCCESS;
}
// The driver counts against the order of the bus.
FAKE cuDeviceGetPCIBusId(char* text, int capacity, CUdevice device) {
  std::snprintf(text, static_cast<size_t>(capacity), "0000:%02X:00.0", device == 0 ? 0xAB : 0x0C);
  return CUDA_SUCCESS;
}
FAKE cuDeviceCanAccessPeer(int* can, CUdevice, CUdevice) {
  *can = 1;
  return CUDA_SUCCESS;
}
FAKE cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  *context = &state().contexts[device];
  return sticky();
}
FAKE cuDevicePrimaryCtxRelease_v2(CUdevice) { return CUDA_SUCCESS; }
FAKE cuCtxGetCurrent(CUcontext* context) {
  *context = current;
  return CUDA_SUCCESS;
}
FAKE cuCtxSetCurrent(CUcontext context) {
  current = context;
  return CUDA_SUCCESS;
}
FAKE cuCtxEnablePeerAccess(CUcontext, unsigned) { return ready(); }
FAKE cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return ready();
}
FAKE cuMemGetInfo_v2(size_t* free, size_t* total) {
  cuDeviceTotalMem_v2(total, 0);
  *free = *total - static_cast<size_t>(state().used);
  return ready();
}
FAKE cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  if (const CUresult result = ready(); result != CUDA_SUCCESS) return result;
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (s.used + static_cast<int64_t>(bytes) > number("FAKE_CUDA_MEMORY", int64_t{1} << 30))
    return CUDA_ERROR_OUT_OF_MEMORY;
  *address = reinterpret_cast<uintptr_t>(std::aligned_alloc(512, (bytes + 511) / 512 * 512));
  s.allocations[*address] = bytes;
  s.used += static_cast<int64_t>(bytes);
  return CUDA_SUCCESS;
}
FAKE cuMemFree_v2(CUdeviceptr address) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  finish_copies();
  const auto found = s.allocations.find(address);
  if (found == s.allocations.end()) return CUDA_ERROR_INVALID_VALUE;
  s.used -= static_cast<int64_t>(found->second);
  s.allocations.erase(found);
  std::free(at(address));
  return CUDA_SUCCESS;
}
FAKE cuMemHostAlloc(void** address, size_t bytes, unsigned) {
  if (const CUresult result = ready(); result != CUDA_SUCCESS) return result;
  *address = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  ++state().host_blocks;
  return CUDA_SUCCESS;
}
FAKE cuMemFreeHost(void* address) {
  std::free(address);
  --state().host_blocks;
  return CUDA_SUCCESS;
}
FAKE cuPointerGetAttribute(void* data, int32_t, CUdeviceptr) {
  *static_cast<int*>(data) = 0;
  return ready();
}
FAKE cuMemcpyHtoD_v2(CUdeviceptr dst, const void* src, size_t bytes) {
  if (const CUresult result = ready(); result != CUDA_SUCCESS) return result;
  State& s = state();
  const std::lock_guard lock(s.mutex);
  ++s.copy_count;
  const auto* data = static_cast<const char*>(src);
  s.copies.push_back({dst, {data, data + bytes}});
  return CUDA_SUCCESS;
}
FAKE cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void* src, size_t bytes, CUstream) {
  std::memcpy(at(dst), src, bytes);
  return ready();
}
FAKE cuMemcpyDtoHAsync_v2(void* dst, CUdeviceptr src, size_t bytes, CUstream) {
  std::memcpy(dst, at(src), bytes);
  return ready();
}
FAKE cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext, CUdeviceptr src, CUcontext, size_t bytes, CUstream) {
  std::memmove(at(dst), at(src), bytes);
  return ready();
}
FAKE cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t count, CUstream) {
  std::memset(at(dst), value, count);
  return ready();
}
FAKE cuMemsetD16Async(CUdeviceptr dst, unsigned short value, size_t count, CUstream) {
  for (size_t i = 0; i < count; ++i) static_cast<unsigned short*>(at(dst))[i] = value;
  return ready();
}
FAKE cuMemsetD32Async(CUdeviceptr dst, unsigned value, size_t count, CUstream) {
  for (size_t i = 0; i < count; ++i) static_cast<unsigned*>(at(dst))[i] = value;
  return ready();
}
FAKE cuMemsetD2D32Async(CUdeviceptr dst, size_t pitch, unsigned value, size_t width, size_t height, CUstream) {
  for (size_t row = 0; row < height; ++row) {
    for (size_t i = 0; i < width; ++i) static_cast<unsigned*>(at(dst + row * pitch))[i] = value;
  }
  return ready();
}
FAKE cuStreamCreateWithPriority(CUstream* stream, unsigned, int) {
  if (const CUresult result = ready(); result != CUDA_SUCCESS) return result;
  *stream = new CUstream_st;
  return CUDA_SUCCESS;
}
FAKE cuStreamDestroy_v2(CUstream stream) {
  delete stream;
  return CUDA_SUCCESS;
}
FAKE cuStreamQuery(CUstream) { return ready(); }
FAKE cuStreamSynchronize(CUstream stream) {
  if (stream != nullptr) return ready();
  const std::lock_guard lock(state().mutex);
  finish_copies();
  return ready();
}
FAKE cuStreamWaitEvent(CUstream, CUevent, unsigned) { return ready(); }
FAKE cuStreamBeginCapture_v2(CUstream stream, int32_t) {
  stream->capture = new CUgraph_st;
  return ready();
}
FAKE cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  *graph = stream->capture;
  stream->capture = nullptr;
  return ready();
}
FAKE cuEventCreate(CUevent* event, unsigned) {
  *event = new CUevent_st;
  return ready();
}
FAKE cuEventDestroy_v2(CUevent event) {
  delete event;
  return CUDA_SUCCESS;
}
FAKE cuEventRecord(CUevent event, CUstream) {
  event->time = std::chrono::steady_clock::now();
  return ready();
}
FAKE cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  *milliseconds = std::chrono::duration<float, std::milli>(end->time - start->time).count();
  return ready();
}
FAKE cuEventQuery(CUevent) { return ready(); }
FAKE cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned, int32_t*, void**) {
  // A cubin is an ELF file, everything else PTX.
  const auto* bytes = static_cast<const char*>(image);
  if (std::memcmp(bytes, "\177ELF", 4) != 0 && std::strstr(bytes, ".version") == nullptr)
    return CUDA_ERROR_INVALID_IMAGE;
  *module = new CUmod_st;
  return ready();
}
FAKE cuModuleUnload(CUmodule module) {
  delete module;
  return CUDA_SUCCESS;
}
FAKE cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  module->functions.push_back(std::make_unique<CUfunc_st>(CUfunc_st{name}));
  *function = module->functions.back().get();
  return ready();
}
FAKE cuFuncGetAttribute(int* value, int32_t, CUfunction) {
  *value = 1024;
  return ready();
}
FAKE cuFuncSetAttribute(CUfunction, int32_t, int) { return ready(); }
FAKE cuLaunchKernel(CUfunction function, unsigned groups, unsigned, unsigned, unsigned size, unsigned, unsigned,
                    unsigned, CUstream, void**, void** extra) {
  if (const CUresult result = ready(); result != CUDA_SUCCESS) return result;
  if (groups == 0 || size == 0 || size > 1024) return CUDA_ERROR_INVALID_VALUE;
  if (extra == nullptr) return count_launch(function, nullptr, 0);
  const size_t bytes = *static_cast<const size_t*>(extra[3]);
  if (bytes > 4096) return CUDA_ERROR_INVALID_VALUE;
  return count_launch(function, static_cast<const uint64_t*>(extra[1]), bytes / sizeof(uint64_t));
}
FAKE cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra) {
  return cuLaunchKernel(function, config->gridDimX, config->gridDimY, config->gridDimZ, config->blockDimX,
                        config->blockDimY, config->blockDimZ, config->sharedMemBytes, config->hStream, parameters,
                        extra);
}
FAKE cuGraphCreate(CUgraph* graph, unsigned) {
  *graph = new CUgraph_st;
  return ready();
}
FAKE cuGraphDestroy(CUgraph graph) {
  delete graph;
  return CUDA_SUCCESS;
}
FAKE cuGraphAddKernelNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode*, size_t,
                             const CUDA_KERNEL_NODE_PARAMS* parameters) {
  graph->nodes.push_back(
      std::make_unique<CUgraphNode_st>(CUgraphNode_st{parameters->func, words_of(parameters->extra)}));
  *node = graph->nodes.back().get();
  return ready();
}
FAKE cuGraphAddDependencies_v2(CUgraph, const CUgraphNode*, const CUgraphNode*, const CUgraphEdgeData*, size_t) {
  return ready();
}
FAKE cuGraphAddChildGraphNode(CUgraphNode* node, CUgraph graph, const CUgraphNode*, size_t, CUgraph) {
  graph->nodes.push_back(std::make_unique<CUgraphNode_st>());
  *node = graph->nodes.back().get();
  return ready();
}
FAKE cuGraphInstantiateWithFlags(CUgraphExec* executable, CUgraph graph, unsigned long long) {
  *executable = new CUgraphExec_st{graph};
  return ready();
}
FAKE cuGraphExecDestroy(CUgraphExec executable) {
  delete executable;
  return CUDA_SUCCESS;
}
FAKE cuGraphExecKernelNodeSetParams_v2(CUgraphExec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* parameters) {
  if (const CUresult result = ready(); result != CUDA_SUCCESS) return result;
  node->words = words_of(parameters->extra);
  return CUDA_SUCCESS;
}
FAKE cuGraphExecChildGraphNodeSetParams(CUgraphExec, CUgraphNode, CUgraph) { return ready(); }
FAKE cuGraphUpload(CUgraphExec, CUstream) { return ready(); }
FAKE cuGraphLaunch(CUgraphExec executable, CUstream) {
  if (const CUresult result = ready(); result != CUDA_SUCCESS) return result;
  for (const auto& node : executable->graph->nodes) {
    if (node->function != nullptr) count_launch(node->function, node->words.data(), node->words.size());
  }
  return CUDA_SUCCESS;
}
