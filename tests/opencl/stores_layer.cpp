// SPDX-License-Identifier: Apache-2.0
// A layer for Oclgrind: kernels store what the host writes to parts of buffers, and no buffer is released.
//
// Oclgrind 21.10 records for each buffer which bytes have values. At a write or fill by the host it replaces the record
// by one as long as the write. It then takes all other bytes for uninitialised, even after kernels write them. The
// buffer that follows a released one inherits its record. Stores of kernels are recorded as they should be.
#define CL_TARGET_OPENCL_VERSION 300
#include <cstddef>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "layer.hpp"

namespace {

const cl_icd_dispatch* target = nullptr;
std::mutex mutex;
std::map<cl_context, cl_kernel> kernels;

constexpr const char* kSource =
    "kernel void store_bytes(global const uchar* x, global uchar* y, ulong offset) {\n"
    "  y[offset + get_global_id(0)] = x[get_global_id(0)];\n"
    "}\n";

cl_int kernel_of(cl_context context, cl_kernel& out_kernel) {
  cl_kernel& kernel = kernels[context];
  cl_int status = CL_SUCCESS;
  if (kernel == nullptr) {
    const char* source = kSource;
    const cl_program program = target->clCreateProgramWithSource(context, 1, &source, nullptr, &status);
    if (status == CL_SUCCESS) status = target->clBuildProgram(program, 0, nullptr, "", nullptr, nullptr);
    if (status == CL_SUCCESS) kernel = target->clCreateKernel(program, "store_bytes", &status);
  }
  out_kernel = kernel;
  return status;
}

bool is_whole(cl_mem memory, size_t offset, size_t size) {
  size_t whole = 0;
  cl_mem parent = nullptr;
  target->clGetMemObjectInfo(memory, CL_MEM_SIZE, sizeof whole, &whole, nullptr);
  target->clGetMemObjectInfo(memory, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof parent, &parent, nullptr);
  return parent == nullptr && offset == 0 && size == whole;
}

cl_int store(cl_command_queue queue, cl_mem memory, size_t offset, size_t size, const void* data, cl_uint wait_count,
             const cl_event* waits, cl_event* out_event) {
  if (is_whole(memory, offset, size)) {
    return target->clEnqueueWriteBuffer(queue, memory, CL_TRUE, offset, size, data, wait_count, waits, out_event);
  }
  const std::lock_guard lock(mutex);
  cl_context context = nullptr;
  cl_int status = target->clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, &context, nullptr);
  cl_kernel kernel = nullptr;
  if (status == CL_SUCCESS) status = kernel_of(context, kernel);
  if (status != CL_SUCCESS) return status;
  const cl_mem written = target->clCreateBuffer(context, CL_MEM_READ_ONLY, size, nullptr, &status);
  if (status != CL_SUCCESS) return status;
  status = target->clEnqueueWriteBuffer(queue, written, CL_TRUE, 0, size, data, wait_count, waits, nullptr);
  if (status != CL_SUCCESS) return status;
  const cl_ulong start = offset;
  target->clSetKernelArg(kernel, 0, sizeof written, &written);
  target->clSetKernelArg(kernel, 1, sizeof memory, &memory);
  target->clSetKernelArg(kernel, 2, sizeof start, &start);
  return target->clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &size, nullptr, 0, nullptr, out_event);
}

cl_int CL_API_CALL enqueue_write(cl_command_queue queue, cl_mem memory, cl_bool, size_t offset, size_t size,
                                 const void* data, cl_uint wait_count, const cl_event* waits, cl_event* out_event) {
  return store(queue, memory, offset, size, data, wait_count, waits, out_event);
}

cl_int CL_API_CALL enqueue_fill(cl_command_queue queue, cl_mem memory, const void* pattern, size_t pattern_size,
                                size_t offset, size_t size, cl_uint wait_count, const cl_event* waits,
                                cl_event* out_event) {
  std::vector<std::byte> data(size);
  for (size_t i = 0; i < size; i += pattern_size) std::memcpy(&data[i], pattern, pattern_size);
  return store(queue, memory, offset, size, data.data(), wait_count, waits, out_event);
}

cl_int CL_API_CALL release(cl_mem) { return CL_SUCCESS; }

}  // namespace

// A layer's two functions, as cl_layer.h declares them.

__attribute__((visibility("default"))) cl_int CL_API_CALL clGetLayerInfo(cl_layer_info name, size_t size, void* value,
                                                                         size_t* out_size) {
  return layer_info("stores of kernels for writes of the host", name, size, value, out_size);
}

__attribute__((visibility("default"))) cl_int CL_API_CALL clInitLayer(cl_uint count, const cl_icd_dispatch* next,
                                                                      cl_uint* out_count,
                                                                      const cl_icd_dispatch** out_dispatch) {
  target = next;
  return start_layer(count, next, out_count, out_dispatch, [](cl_icd_dispatch& dispatch) {
    dispatch.clEnqueueWriteBuffer = &enqueue_write;
    dispatch.clEnqueueFillBuffer = &enqueue_fill;
    dispatch.clReleaseMemObject = &release;
  });
}
