// SPDX-License-Identifier: Apache-2.0
#define CL_TARGET_OPENCL_VERSION 300
#include "failing_layer.hpp"

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "layer.hpp"

namespace {

const cl_icd_dispatch* target = nullptr;
std::atomic<int64_t> calls[COMPUTE_LAYER_CALLS];
std::atomic<int64_t> failing[COMPUTE_LAYER_CALLS];

bool fails(compute_layer_call call) { return ++calls[call] == failing[call]; }

cl_int CL_API_CALL enqueue_kernel(cl_command_queue queue, cl_kernel kernel, cl_uint rank, const size_t* offset,
                                  const size_t* global_size, const size_t* group_size, cl_uint wait_count,
                                  const cl_event* waits, cl_event* out_event) {
  if (fails(COMPUTE_LAYER_KERNEL)) return CL_OUT_OF_RESOURCES;
  return target->clEnqueueNDRangeKernel(queue, kernel, rank, offset, global_size, group_size, wait_count, waits,
                                        out_event);
}

cl_int CL_API_CALL enqueue_fill(cl_command_queue queue, cl_mem memory, const void* pattern, size_t pattern_size,
                                size_t offset, size_t size, cl_uint wait_count, const cl_event* waits,
                                cl_event* out_event) {
  if (fails(COMPUTE_LAYER_FILL)) return CL_OUT_OF_RESOURCES;
  return target->clEnqueueFillBuffer(queue, memory, pattern, pattern_size, offset, size, wait_count, waits, out_event);
}

cl_int CL_API_CALL get_device_info(cl_device_id device, cl_device_info name, size_t size, void* value,
                                   size_t* out_size) {
  if (const char* const text = getenv("COMPUTE_LAYER_NAME"); text != nullptr && name == CL_DEVICE_NAME) {
    const size_t needed = std::strlen(text) + 1;
    if (value != nullptr && size < needed) return CL_INVALID_VALUE;
    if (value != nullptr) std::memcpy(value, text, needed);
    if (out_size != nullptr) *out_size = needed;
    return CL_SUCCESS;
  }
  const cl_int status = target->clGetDeviceInfo(device, name, size, value, out_size);
  if (status == CL_SUCCESS && name == CL_DEVICE_TYPE && value != nullptr && getenv("COMPUTE_LAYER_GPU") != nullptr)
    *static_cast<cl_device_type*>(value) = CL_DEVICE_TYPE_GPU;
  return status;
}

}  // namespace

void compute_layer_fail(compute_layer_call call, int64_t nth) {
  calls[call] = 0;
  failing[call] = nth;
}

int64_t compute_layer_calls(compute_layer_call call) { return calls[call]; }

// A layer's two functions, as cl_layer.h declares them.

__attribute__((visibility("default"))) cl_int CL_API_CALL clGetLayerInfo(cl_layer_info name, size_t size, void* value,
                                                                         size_t* out_size) {
  return layer_info("calls that fail on demand", name, size, value, out_size);
}

__attribute__((visibility("default"))) cl_int CL_API_CALL clInitLayer(cl_uint count, const cl_icd_dispatch* next,
                                                                      cl_uint* out_count,
                                                                      const cl_icd_dispatch** out_dispatch) {
  target = next;
  return start_layer(count, next, out_count, out_dispatch, [](cl_icd_dispatch& dispatch) {
    dispatch.clEnqueueNDRangeKernel = &enqueue_kernel;
    dispatch.clEnqueueFillBuffer = &enqueue_fill;
    dispatch.clGetDeviceInfo = &get_device_info;
  });
}
