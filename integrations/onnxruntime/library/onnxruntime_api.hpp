// SPDX-License-Identifier: Apache-2.0
// What is used of ONNX Runtime's interface 23, declared here: packages of ONNX Runtime have no headers. The tables of
// functions only grow, so an entry is its position and its type.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <utility>
#include <vector>

extern "C" {

struct OrtStatus;
struct OrtLogger;
struct OrtValue;
struct OrtValueInfo;
struct OrtTypeInfo;
struct OrtTensorTypeAndShapeInfo;
struct OrtGraph;
struct OrtNode;
struct OrtOpAttr;
struct OrtKernelContext;
struct OrtNodeComputeContext;
struct OrtKeyValuePairs;
struct OrtHardwareDevice;
struct OrtEpDevice;
struct OrtEpGraphSupportInfo;
struct OrtSessionOptions;
struct OrtRunOptions;
struct OrtMemoryInfo;
struct OrtMemoryDevice;
struct OrtSyncStream;
struct OrtSyncStreamImpl;

struct OrtApiBase {
  const void* const* (*GetApi)(uint32_t version);
  const char* (*GetVersionString)();
};

struct OrtAllocator {
  uint32_t version;
  void* (*Alloc)(OrtAllocator*, size_t size);
  void (*Free)(OrtAllocator*, void* memory);
  const OrtMemoryInfo* (*Info)(const OrtAllocator*);
  void* (*Reserve)(OrtAllocator*, size_t size);
  OrtStatus* (*GetStats)(const OrtAllocator*, OrtKeyValuePairs**);
  void* (*AllocOnStream)(OrtAllocator*, size_t size, OrtSyncStream*);
};

struct OrtDataTransferImpl {
  uint32_t version;
  void (*Release)(OrtDataTransferImpl*);
  bool (*CanCopy)(const OrtDataTransferImpl*, const OrtMemoryDevice* from, const OrtMemoryDevice* to);
  OrtStatus* (*CopyTensors)(OrtDataTransferImpl*, const OrtValue** from, OrtValue** to, OrtSyncStream** streams,
                            size_t count);
};

struct OrtNodeFusionOptions {
  uint32_t version;
  bool drop_constant_initializers;
};

struct OrtNodeComputeInfo {
  uint32_t version;
  OrtStatus* (*CreateState)(OrtNodeComputeInfo*, OrtNodeComputeContext*, void** state);
  OrtStatus* (*Compute)(OrtNodeComputeInfo*, void* state, OrtKernelContext*);
  void (*ReleaseState)(OrtNodeComputeInfo*, void* state);
};

struct OrtEp {
  uint32_t version;
  const char* (*GetName)(const OrtEp*);
  OrtStatus* (*GetCapability)(OrtEp*, const OrtGraph*, OrtEpGraphSupportInfo*);
  OrtStatus* (*Compile)(OrtEp*, const OrtGraph** graphs, const OrtNode** fused_nodes, size_t count,
                        OrtNodeComputeInfo** infos, OrtNode** context_nodes);
  void (*ReleaseNodeComputeInfos)(OrtEp*, OrtNodeComputeInfo** infos, size_t count);
  OrtStatus* (*GetPreferredDataLayout)(OrtEp*, int32_t* layout);
  OrtStatus* (*ShouldConvertDataLayoutForOp)(OrtEp*, const char* domain, const char* type, int32_t layout, int* answer);
  OrtStatus* (*SetDynamicOptions)(OrtEp*, const char* const* keys, const char* const* values, size_t count);
  OrtStatus* (*OnRunStart)(OrtEp*, const OrtRunOptions*);
  OrtStatus* (*OnRunEnd)(OrtEp*, const OrtRunOptions*, bool sync_stream);
  OrtStatus* (*CreateAllocator)(OrtEp*, const OrtMemoryInfo*, OrtAllocator**);
  OrtStatus* (*CreateSyncStreamForDevice)(OrtEp*, const OrtMemoryDevice*, OrtSyncStreamImpl**);
  const char* (*GetCompiledModelCompatibilityInfo)(OrtEp*, const OrtGraph*);
};

struct OrtEpFactory {
  uint32_t version;
  const char* (*GetName)(const OrtEpFactory*);
  const char* (*GetVendor)(const OrtEpFactory*);
  OrtStatus* (*GetSupportedDevices)(OrtEpFactory*, const OrtHardwareDevice* const* devices, size_t device_count,
                                    OrtEpDevice** ep_devices, size_t max_ep_devices, size_t* ep_device_count);
  OrtStatus* (*CreateEp)(OrtEpFactory*, const OrtHardwareDevice* const* devices,
                         const OrtKeyValuePairs* const* metadata, size_t device_count, const OrtSessionOptions*,
                         const OrtLogger*, OrtEp**);
  void (*ReleaseEp)(OrtEpFactory*, OrtEp*);
  uint32_t (*GetVendorId)(const OrtEpFactory*);
  const char* (*GetVersion)(const OrtEpFactory*);
  OrtStatus* (*ValidateCompiledModelCompatibilityInfo)(OrtEpFactory*, const OrtHardwareDevice* const*, size_t,
                                                       const char*, int32_t*);
  OrtStatus* (*CreateAllocator)(OrtEpFactory*, const OrtMemoryInfo*, const OrtKeyValuePairs* options, OrtAllocator**);
  void (*ReleaseAllocator)(OrtEpFactory*, OrtAllocator*);
  OrtStatus* (*CreateDataTransfer)(OrtEpFactory*, OrtDataTransferImpl**);
  bool (*IsStreamAware)(const OrtEpFactory*);
  OrtStatus* (*CreateSyncStreamForDevice)(OrtEpFactory*, const OrtMemoryDevice*, const OrtKeyValuePairs*,
                                          OrtSyncStreamImpl**);
};

}  // extern "C"

namespace onnxruntime_compute {

// The interface that the declarations above are from. Later versions of ONNX Runtime offer it too.
inline constexpr uint32_t kInterface = 23;

enum ErrorCode : int32_t { kFail = 1 };
enum LogLevel : int32_t { kVerbose = 0, kInfo = 1, kWarning = 2, kError = 3 };
enum HardwareType : int32_t { kCpuHardware = 0 };
enum OnnxType : int32_t { kTensorType = 1 };
enum AttributeType : int32_t {
  kUndefined = 0,
  kInt = 1,
  kInts = 2,
  kFloat = 3,
  kFloats = 4,
  kString = 5,
  kStrings = 6,
  kGraph = 7,
  kTensor = 8
};

// A function of a table, and whether it was called.
template <class F>
class Slot;
template <class R, class... A>
class Slot<R(A...)> {
 public:
  void set(const void* address) { function_ = reinterpret_cast<R (*)(A...)>(const_cast<void*>(address)); }
  R operator()(A... arguments) const {
    called_.store(true, std::memory_order_relaxed);
    return function_(arguments...);
  }
  [[nodiscard]] bool called() const { return called_.load(std::memory_order_relaxed); }

 private:
  R (*function_)(A...) = nullptr;
  mutable std::atomic<bool> called_ = false;
};

// SLOT(position, name, type)
#define ORT_API_SLOTS(SLOT)                                                                                       \
  SLOT(0, CreateStatus, OrtStatus*(int32_t, const char*))                                                         \
  SLOT(2, GetErrorMessage, const char*(const OrtStatus*))                                                         \
  SLOT(51, GetTensorMutableData, OrtStatus*(OrtValue*, void**))                                                   \
  SLOT(55, CastTypeInfoToTensorInfo, OrtStatus*(const OrtTypeInfo*, const OrtTensorTypeAndShapeInfo**))           \
  SLOT(56, GetOnnxTypeFromTypeInfo, OrtStatus*(const OrtTypeInfo*, int32_t*))                                     \
  SLOT(60, GetTensorElementType, OrtStatus*(const OrtTensorTypeAndShapeInfo*, int32_t*))                          \
  SLOT(61, GetDimensionsCount, OrtStatus*(const OrtTensorTypeAndShapeInfo*, size_t*))                             \
  SLOT(62, GetDimensions, OrtStatus*(const OrtTensorTypeAndShapeInfo*, int64_t*, size_t))                         \
  SLOT(65, GetTensorTypeAndShape, OrtStatus*(const OrtValue*, OrtTensorTypeAndShapeInfo**))                       \
  SLOT(90, KernelContext_GetInput, OrtStatus*(const OrtKernelContext*, size_t, const OrtValue**))                 \
  SLOT(91, KernelContext_GetOutput, OrtStatus*(OrtKernelContext*, size_t, const int64_t*, size_t, OrtValue**))    \
  SLOT(93, ReleaseStatus, void(OrtStatus*))                                                                       \
  SLOT(94, ReleaseMemoryInfo, void(OrtMemoryInfo*))                                                               \
  SLOT(96, ReleaseValue, void(OrtValue*))                                                                         \
  SLOT(99, ReleaseTensorTypeAndShapeInfo, void(OrtTensorTypeAndShapeInfo*))                                       \
  SLOT(237, HasSessionConfigEntry, OrtStatus*(const OrtSessionOptions*, const char*, int*))                       \
  SLOT(238, GetSessionConfigEntry, OrtStatus*(const OrtSessionOptions*, const char*, char*, size_t*))             \
  SLOT(247, Logger_LogMessage, OrtStatus*(const OrtLogger*, int32_t, const char*, const char*, int, const char*)) \
  SLOT(272, ReadOpAttr, OrtStatus*(const OrtOpAttr*, int32_t, void*, size_t, size_t*))                            \
  SLOT(289, GetValueInfoName, OrtStatus*(const OrtValueInfo*, const char**))                                      \
  SLOT(290, GetValueInfoTypeInfo, OrtStatus*(const OrtValueInfo*, const OrtTypeInfo**))                           \
  SLOT(295, CreateKeyValuePairs, void(OrtKeyValuePairs**))                                                        \
  SLOT(296, AddKeyValuePair, void(OrtKeyValuePairs*, const char*, const char*))                                   \
  SLOT(300, ReleaseKeyValuePairs, void(OrtKeyValuePairs*))                                                        \
  SLOT(307, HardwareDevice_Type, int32_t(const OrtHardwareDevice*))                                               \
  SLOT(317, GetEpApi, const void* const*())                                                                       \
  SLOT(318, GetTensorSizeInBytes, OrtStatus*(const OrtValue*, size_t*))                                           \
  SLOT(320, CreateMemoryInfo_V2,                                                                                  \
       OrtStatus*(const char*, int32_t, uint32_t, int32_t, int32_t, size_t, int32_t, OrtMemoryInfo**))            \
  SLOT(326, ValueInfo_GetInitializerValue, OrtStatus*(const OrtValueInfo*, const OrtValue**))                     \
  SLOT(331, ValueInfo_IsConstantInitializer, OrtStatus*(const OrtValueInfo*, bool*))                              \
  SLOT(340, Graph_GetNumOutputs, OrtStatus*(const OrtGraph*, size_t*))                                            \
  SLOT(341, Graph_GetOutputs, OrtStatus*(const OrtGraph*, const OrtValueInfo**, size_t))                          \
  SLOT(344, Graph_GetNumNodes, OrtStatus*(const OrtGraph*, size_t*))                                              \
  SLOT(345, Graph_GetNodes, OrtStatus*(const OrtGraph*, const OrtNode**, size_t))                                 \
  SLOT(346, Graph_GetParentNode, OrtStatus*(const OrtGraph*, const OrtNode**))                                    \
  SLOT(349, Node_GetName, OrtStatus*(const OrtNode*, const char**))                                               \
  SLOT(350, Node_GetOperatorType, OrtStatus*(const OrtNode*, const char**))                                       \
  SLOT(351, Node_GetDomain, OrtStatus*(const OrtNode*, const char**))                                             \
  SLOT(352, Node_GetSinceVersion, OrtStatus*(const OrtNode*, int*))                                               \
  SLOT(353, Node_GetNumInputs, OrtStatus*(const OrtNode*, size_t*))                                               \
  SLOT(354, Node_GetInputs, OrtStatus*(const OrtNode*, const OrtValueInfo**, size_t))                             \
  SLOT(355, Node_GetNumOutputs, OrtStatus*(const OrtNode*, size_t*))                                              \
  SLOT(356, Node_GetOutputs, OrtStatus*(const OrtNode*, const OrtValueInfo**, size_t))                            \
  SLOT(357, Node_GetNumImplicitInputs, OrtStatus*(const OrtNode*, size_t*))                                       \
  SLOT(358, Node_GetImplicitInputs, OrtStatus*(const OrtNode*, const OrtValueInfo**, size_t))                     \
  SLOT(359, Node_GetNumAttributes, OrtStatus*(const OrtNode*, size_t*))                                           \
  SLOT(360, Node_GetAttributes, OrtStatus*(const OrtNode*, const OrtOpAttr**, size_t))                            \
  SLOT(362, OpAttr_GetTensorAttributeAsOrtValue, OrtStatus*(const OrtOpAttr*, OrtValue**))                        \
  SLOT(363, OpAttr_GetType, OrtStatus*(const OrtOpAttr*, int32_t*))                                               \
  SLOT(364, OpAttr_GetName, OrtStatus*(const OrtOpAttr*, const char**))                                           \
  SLOT(365, Node_GetNumSubgraphs, OrtStatus*(const OrtNode*, size_t*))                                            \
  SLOT(366, Node_GetSubgraphs, OrtStatus*(const OrtNode*, const OrtGraph**, size_t, const char**))                \
  SLOT(378, GetTensorData, OrtStatus*(const OrtValue*, const void**))

#define ORT_EP_API_SLOTS(SLOT)                                                                               \
  SLOT(0, CreateEpDevice,                                                                                    \
       OrtStatus*(OrtEpFactory*, const OrtHardwareDevice*, const OrtKeyValuePairs*, const OrtKeyValuePairs*, \
                  OrtEpDevice**))                                                                            \
  SLOT(2, EpGraphSupportInfo_AddNodesToFuse,                                                                 \
       OrtStatus*(OrtEpGraphSupportInfo*, const OrtNode* const*, size_t, const OrtNodeFusionOptions*))       \
  SLOT(5, EpDevice_AddAllocatorInfo, OrtStatus*(OrtEpDevice*, const OrtMemoryInfo*))                         \
  SLOT(6, MemoryInfo_GetMemoryDevice, const OrtMemoryDevice*(const OrtMemoryInfo*))                          \
  SLOT(8, MemoryDevice_AreEqual, bool(const OrtMemoryDevice*, const OrtMemoryDevice*))                       \
  SLOT(9, MemoryDevice_GetDeviceType, int32_t(const OrtMemoryDevice*))

/// The functions of a loaded ONNX Runtime that this library calls.
struct Ort {
#define SLOT(position, name, ...) Slot<__VA_ARGS__> name;
  ORT_API_SLOTS(SLOT)
  ORT_EP_API_SLOTS(SLOT)
#undef SLOT

  void set(const void* const* api) {
#define SLOT(position, name, ...) name.set(api[position]);
    ORT_API_SLOTS(SLOT)
#undef SLOT
    const void* const* const ep_api = GetEpApi();
#define SLOT(position, name, ...) name.set(ep_api[position]);
    ORT_EP_API_SLOTS(SLOT)
#undef SLOT
  }

  /// Names of functions that were not called yet.
  [[nodiscard]] std::vector<const char*> uncalled() const {
    std::vector<const char*> names;
#define SLOT(position, name, ...) \
  if (!name.called()) names.push_back(#name);
    ORT_API_SLOTS(SLOT)
    ORT_EP_API_SLOTS(SLOT)
#undef SLOT
    return names;
  }
};

/// The one of this process, set by CreateEpFactories.
extern Ort ort;

/// Throws what `status` says, and frees it.
void check_ort(OrtStatus* status);

/// Runs `body`. What it throws becomes a status.
template <class F>
OrtStatus* guarded(F&& body) noexcept {
  try {
    body();
    return nullptr;
  } catch (const std::exception& error) {
    return ort.CreateStatus(kFail, error.what());
  } catch (...) {
    return ort.CreateStatus(kFail, "unknown error");
  }
}

}  // namespace onnxruntime_compute
