/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small addon for Node.js: devices, float32 tensors, and all ops that need no attributes.
 *
 *   open([selector]) -> device     name(device) -> string     tensor(device, shape, Float32Array) -> tensor
 *   read(tensor) -> Float32Array   run(op, tensor or number, ...) -> tensor
 *
 * A device or tensor is an external value whose finalizer releases the handle. Errors are thrown. Their code is the
 * name of the library's code.
 */
#include <compute/compute.h>
#include <node_api.h>

enum { kMaxInputs = 8, kMaxRank = COMPUTE_MAX_RANK };

/* Kinds of external values. */
static const napi_type_tag kDevice = {0xb1f6a7c05d8e4c13u, 1}, kTensor = {0xb1f6a7c05d8e4c13u, 2};

/* Throws `error`, if there is one. Returns whether there was one. */
static int failed(napi_env env, compute_error* error) {
  if (error == NULL) return 0;
  napi_throw_error(env, compute_error_code_name(compute_error_get_code(error)), compute_error_message(error));
  compute_error_free(error);
  return 1;
}

static napi_value wrong(napi_env env, const char* message) {
  napi_throw_type_error(env, NULL, message);
  return NULL;
}

static void release_device(napi_env env, void* device, void* hint) {
  (void)env, (void)hint;
  compute_device_release(device);
}

static void release_tensor(napi_env env, void* tensor, void* hint) {
  (void)env;
  int64_t change;
  napi_adjust_external_memory(env, -(int64_t)(intptr_t)hint, &change);
  compute_tensor_release(tensor);
}

static napi_value wrapped_device(napi_env env, compute_device* device) {
  napi_value value = NULL;
  napi_create_external(env, device, release_device, NULL, &value);
  napi_type_tag_object(env, value, &kDevice);
  return value;
}

static napi_value wrapped_tensor(napi_env env, compute_tensor* tensor) {
  napi_value value = NULL;
  int64_t change;
  const int64_t size_bytes = compute_tensor_size_bytes(tensor); /* lets the collector know */
  napi_create_external(env, tensor, release_tensor, (void*)(intptr_t)size_bytes, &value);
  napi_adjust_external_memory(env, size_bytes, &change);
  napi_type_tag_object(env, value, &kTensor);
  return value;
}

/* The handle in an external value of the kind `tag`, else NULL. */
static void* handle_of(napi_env env, napi_value value, const napi_type_tag* tag) {
  napi_valuetype type;
  bool matches = false;
  void* handle = NULL;
  napi_typeof(env, value, &type);
  if (type != napi_external) return NULL;
  napi_check_object_type_tag(env, value, tag, &matches);
  if (matches) napi_get_value_external(env, value, &handle);
  return handle;
}

/* Reads up to `capacity` arguments; missing ones are undefined. Returns how many were given. */
static size_t arguments_of(napi_env env, napi_callback_info info, size_t capacity, napi_value* arguments) {
  size_t count = capacity;
  napi_get_cb_info(env, info, &count, arguments, NULL, NULL);
  return count;
}

static napi_value open(napi_env env, napi_callback_info info) {
  napi_value argument;
  char selector[256];
  compute_device* device = NULL;
  size_t size = 0;
  const size_t count = arguments_of(env, info, 1, &argument);
  if (count > 0 && napi_get_value_string_utf8(env, argument, selector, sizeof selector, &size) != napi_ok)
    return wrong(env, "open: the selector is not a string");
  return failed(env, compute_device_open(count > 0 ? selector : NULL, &device)) ? NULL : wrapped_device(env, device);
}

static napi_value name(napi_env env, napi_callback_info info) {
  napi_value argument, result = NULL;
  arguments_of(env, info, 1, &argument);
  compute_device* device = handle_of(env, argument, &kDevice);
  if (device == NULL) return wrong(env, "name: not a device");
  napi_create_string_utf8(env, compute_device_name(device), NAPI_AUTO_LENGTH, &result);
  return result;
}

static napi_value tensor(napi_env env, napi_callback_info info) {
  napi_value arguments[3];
  arguments_of(env, info, 3, arguments);
  compute_device* device = handle_of(env, arguments[0], &kDevice);
  if (device == NULL) return wrong(env, "tensor: not a device");
  int64_t shape[kMaxRank], elements = 1;
  uint32_t rank = 0;
  if (napi_get_array_length(env, arguments[1], &rank) != napi_ok || rank > kMaxRank)
    return wrong(env, "tensor: the shape is not an array");
  for (uint32_t i = 0; i < rank; ++i) {
    napi_value extent;
    napi_get_element(env, arguments[1], i, &extent);
    if (napi_get_value_int64(env, extent, &shape[i]) != napi_ok || shape[i] < 0 || shape[i] > INT32_MAX ||
        elements > INT32_MAX)
      return wrong(env, "tensor: the shape is not one of small numbers");
    elements *= shape[i];
  }
  bool is_array = false;
  napi_is_typedarray(env, arguments[2], &is_array);
  napi_typedarray_type type = napi_int8_array;
  size_t length = 0;
  void* data = NULL;
  if (is_array) napi_get_typedarray_info(env, arguments[2], &type, &length, &data, NULL, NULL);
  if (type != napi_float32_array || (int64_t)length != elements)
    return wrong(env, "tensor: not a Float32Array of as many elements as the shape has");
  compute_tensor* result = NULL;
  return failed(env, compute_tensor_from_host(device, COMPUTE_DTYPE_FLOAT32, (int32_t)rank, shape, data, &result))
             ? NULL
             : wrapped_tensor(env, result);
}

static napi_value read(napi_env env, napi_callback_info info) {
  napi_value argument, buffer, result = NULL;
  arguments_of(env, info, 1, &argument);
  compute_tensor* source = handle_of(env, argument, &kTensor);
  if (compute_tensor_dtype(source) != COMPUTE_DTYPE_FLOAT32) return wrong(env, "read: not a tensor of float32");
  const int64_t size_bytes = compute_tensor_size_bytes(source);
  void* data = NULL;
  if (napi_create_arraybuffer(env, (size_t)size_bytes, &data, &buffer) != napi_ok) return NULL;
  if (failed(env, compute_tensor_read(source, data, size_bytes))) return NULL;
  napi_create_typedarray(env, napi_float32_array, (size_t)size_bytes / sizeof(float), buffer, 0, &result);
  return result;
}

/* A number becomes a weak scalar, which takes the dtype of the other operands. */
static napi_value run(napi_env env, napi_callback_info info) {
  napi_value arguments[1 + kMaxInputs];
  char op_name[64];
  size_t size = 0;
  const size_t count = arguments_of(env, info, 1 + kMaxInputs, arguments);
  if (napi_get_value_string_utf8(env, arguments[0], op_name, sizeof op_name, &size) != napi_ok)
    return wrong(env, "run: the op is not a string");
  if (count > 1 + kMaxInputs) return wrong(env, "run: too many operands");
  const compute_op* op = NULL;
  if (failed(env, compute_op_find(op_name, 0, &op))) return NULL;
  compute_tensor *inputs[kMaxInputs], *scalars[kMaxInputs] = {NULL}, *result = NULL;
  compute_error* error = NULL;
  for (size_t i = 0; i + 1 < count && error == NULL; ++i) {
    double number;
    if (napi_get_value_double(env, arguments[1 + i], &number) == napi_ok)
      error = compute_tensor_scalar(COMPUTE_DTYPE_FLOAT64, &number, 1, &scalars[i]);
    inputs[i] = scalars[i] != NULL ? scalars[i] : handle_of(env, arguments[1 + i], &kTensor);
  }
  if (error == NULL) error = compute_op_run(op, NULL, NULL, 0, inputs, (int64_t)count - 1, &result, 1);
  for (size_t i = 0; i < kMaxInputs; ++i) compute_tensor_release(scalars[i]);
  return failed(env, error) ? NULL : wrapped_tensor(env, result);
}

NAPI_MODULE_INIT() {
  const napi_property_descriptor functions[] = {
      {"open", NULL, open, NULL, NULL, NULL, napi_enumerable, NULL},
      {"name", NULL, name, NULL, NULL, NULL, napi_enumerable, NULL},
      {"tensor", NULL, tensor, NULL, NULL, NULL, napi_enumerable, NULL},
      {"read", NULL, read, NULL, NULL, NULL, napi_enumerable, NULL},
      {"run", NULL, run, NULL, NULL, NULL, napi_enumerable, NULL},
  };
  napi_define_properties(env, exports, sizeof functions / sizeof functions[0], functions);
  return exports;
}
