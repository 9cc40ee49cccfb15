// SPDX-License-Identifier: Apache-2.0
// The structures of DLPack 1.x and of earlier versions. They are declared here so that its header is not needed. The
// layouts are those of https://dmlc.github.io/dlpack and are asserted below.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

struct DLPackVersion {
  uint32_t major;
  uint32_t minor;
};

struct DLDevice {
  int32_t device_type;
  int32_t device_id;
};

struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};

struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor* self);
};

struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned* self);
  uint64_t flags;
  DLTensor dl_tensor;
};
}

static_assert(sizeof(DLTensor) == 48 && offsetof(DLTensor, shape) == 24 && offsetof(DLTensor, byte_offset) == 40);
static_assert(sizeof(DLManagedTensor) == 64 && offsetof(DLManagedTensor, deleter) == 56);
static_assert(sizeof(DLManagedTensorVersioned) == 80 && offsetof(DLManagedTensorVersioned, dl_tensor) == 32);

namespace compute {

// kDLCPU, kDLCUDA, kDLCUDAHost, kDLOpenCL
enum : int32_t { kDlCpu = 1, kDlDevice = 2, kDlPinnedHost = 3, kDlMemoryObject = 4 };
enum : uint8_t {
  kDlInt = 0,
  kDlUint = 1,
  kDlFloat = 2,
  kDlBfloat = 4,
  kDlComplex = 5,
  kDlBool = 6,
  kDlFloat8E4m3fn = 10,
  kDlFloat8E5m2 = 12
};
enum : uint64_t { kDlReadOnly = 1, kDlIsCopied = 2 };

}  // namespace compute
