// SPDX-License-Identifier: Apache-2.0
// The functions of compute.h on errors and texts.
#include <compute/compute.h>

#include "core/base/error.hpp"
#include "core/text/text.hpp"

extern "C" {

void compute_error_free(compute_error* error) {
  while (error != nullptr && !error->static_object) {
    compute_error* cause = error->cause;
    delete error;
    error = cause;
  }
}

compute_error_code compute_error_get_code(const compute_error* error) {
  return error == nullptr ? COMPUTE_OK : error->code;
}
const char* compute_error_message(const compute_error* error) { return error == nullptr ? "" : error->message.c_str(); }
const char* compute_error_op(const compute_error* error) { return error == nullptr ? "" : error->op.c_str(); }
int32_t compute_error_argument(const compute_error* error) { return error == nullptr ? -1 : error->argument; }
const char* compute_error_device(const compute_error* error) { return error == nullptr ? "" : error->device.c_str(); }
const char* compute_error_attribute(const compute_error* error) {
  return error == nullptr ? "" : error->attribute.c_str();
}
int64_t compute_error_native_code(const compute_error* error) { return error == nullptr ? 0 : error->native_code; }
const compute_error* compute_error_cause(const compute_error* error) {
  return error == nullptr ? nullptr : error->cause;
}

const char* compute_error_code_name(compute_error_code code) {
  switch (code) {
    case COMPUTE_OK:
      return "OK";
    case COMPUTE_ERROR_INVALID_ARGUMENT:
      return "INVALID_ARGUMENT";
    case COMPUTE_ERROR_OUT_OF_RANGE:
      return "OUT_OF_RANGE";
    case COMPUTE_ERROR_UNSUPPORTED:
      return "UNSUPPORTED";
    case COMPUTE_ERROR_OUT_OF_MEMORY:
      return "OUT_OF_MEMORY";
    case COMPUTE_ERROR_OUT_OF_DEVICE_MEMORY:
      return "OUT_OF_DEVICE_MEMORY";
    case COMPUTE_ERROR_NOT_FOUND:
      return "NOT_FOUND";
    case COMPUTE_ERROR_DEVICE_MISMATCH:
      return "DEVICE_MISMATCH";
    case COMPUTE_ERROR_COMPILE_FAILED:
      return "COMPILE_FAILED";
    case COMPUTE_ERROR_KERNEL_FAILED:
      return "KERNEL_FAILED";
    case COMPUTE_ERROR_STREAM_FAILED:
      return "STREAM_FAILED";
    case COMPUTE_ERROR_CONTEXT_LOST:
      return "CONTEXT_LOST";
    case COMPUTE_ERROR_DEVICE_LOST:
      return "DEVICE_LOST";
    case COMPUTE_ERROR_RESTART_REQUIRED:
      return "RESTART_REQUIRED";
    case COMPUTE_ERROR_FORKED:
      return "FORKED";
    case COMPUTE_ERROR_SHUT_DOWN:
      return "SHUT_DOWN";
    case COMPUTE_ERROR_PLUGIN_REJECTED:
      return "PLUGIN_REJECTED";
    case COMPUTE_ERROR_INTERNAL:
      return "INTERNAL";
    case COMPUTE_ERROR_CANCELLED:
      return "CANCELLED";
    case COMPUTE_ERROR_PEER_FAILED:
      return "PEER_FAILED";
    case COMPUTE_ERROR_NUMERICAL:
      return "NUMERICAL";
    case COMPUTE_ERROR_IO:
      return "IO";
    default:
      return "UNKNOWN";
  }
}

const char* compute_text_data(const compute_text* text) { return text == nullptr ? "" : text->value.c_str(); }
int64_t compute_text_size(const compute_text* text) {
  return text == nullptr ? 0 : static_cast<int64_t>(text->value.size());
}
void compute_text_free(compute_text* text) { delete text; }

}  // extern "C"
