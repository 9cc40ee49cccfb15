// SPDX-License-Identifier: Apache-2.0
//
// Errors of compute.h as exceptions. compute/_errors.py has their types.
#include <cstdarg>

#include "module.hpp"

namespace compute_python {

PyObject* call_hook(const char* name, const char* format, ...) {
  PyObject* const hook = PyDict_GetItemString(state.hooks, name);
  if (hook == nullptr) return PyErr_Format(PyExc_RuntimeError, "compute._core needs the package compute (%s)", name);
  va_list list;
  va_start(list, format);
  const Ref arguments(Py_VaBuildValue(format, list));
  va_end(list);
  return arguments ? PyObject_CallObject(hook, arguments.get()) : nullptr;
}

PyObject* raise(compute_error* error) {
  if (compute_error_get_code(error) == COMPUTE_ERROR_CANCELLED && PyErr_CheckSignals() != 0) {  // by Ctrl-C
    compute_error_free(error);
    return nullptr;
  }
  const Ref exception(call_hook("exception", "(isssisLs)", static_cast<int>(compute_error_get_code(error)),
                                compute_error_code_name(compute_error_get_code(error)), compute_error_message(error),
                                compute_error_op(error), static_cast<int>(compute_error_argument(error)),
                                compute_error_attribute(error),
                                static_cast<long long>(compute_error_native_code(error)), compute_error_device(error)));
  compute_error_free(error);
  if (exception) PyErr_SetObject(as_object(Py_TYPE(exception.get())), exception.get());
  return nullptr;
}

PyObject* take_text(compute_text* text) {
  PyObject* const result = text_of(compute_text_data(text), compute_text_size(text));
  compute_text_free(text);
  return result;
}

PyObject* text_of(const char* data, int64_t size) {
  return PyUnicode_DecodeUTF8(data, static_cast<Py_ssize_t>(size), "replace");
}

}  // namespace compute_python
