// SPDX-License-Identifier: Apache-2.0
//
// Watches: whether arrays were changed in place since a watch of them began. Variables of compute.grad watch the arrays
// that their gradients need.
#include "module.hpp"

namespace compute_python {

namespace {

struct WatchObject {
  PyObject_HEAD;
  WatchObject* next;
  WatchObject* previous;
  std::vector<compute_tensor*>* tensors;
  bool written;
};
WatchObject* first = nullptr;  // guarded by the interpreter's lock
PyTypeObject* watch_type = nullptr;

WatchObject* watch_of(PyObject* self) { return reinterpret_cast<WatchObject*>(self); }

/// watch(objects): watches the arrays among the objects of a sequence.
PyObject* watch(PyObject*, PyObject* objects) {
  auto* const made = make<WatchObject>(watch_type);
  if (made == nullptr) return nullptr;
  Ref result(as_object(made));
  made->next = made->previous = nullptr;
  made->written = false;
  made->tensors = new std::vector<compute_tensor*>;
  const Py_ssize_t count = PySequence_Size(objects);
  for (Py_ssize_t i = 0; i < count; ++i) {
    const Ref one(PySequence_GetItem(objects, i));
    if (!one) return nullptr;
    if (!is_array(one.get())) continue;
    compute_tensor* const tensor = source_of(one.get());
    compute_tensor_retain(tensor);
    made->tensors->push_back(tensor);
  }
  if (count < 0) return nullptr;
  made->next = first;
  if (first != nullptr) first->previous = made;
  first = made;
  return result.release();
}

void watch_dealloc(PyObject* self) {
  WatchObject* const watch = watch_of(self);
  if (watch->previous != nullptr) watch->previous->next = watch->next;
  if (watch->next != nullptr) watch->next->previous = watch->previous;
  if (first == watch) first = watch->next;
  if (watch->tensors != nullptr) {
    for (compute_tensor* const tensor : *watch->tensors) compute_tensor_release(tensor);
  }
  delete watch->tensors;
  PyTypeObject* const type = Py_TYPE(self);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

PyObject* watch_written(PyObject* self, void*) { return PyBool_FromLong(watch_of(self)->written ? 1 : 0); }

PyGetSetDef watch_attributes[] = {
    {"written", watch_written, nullptr, "Whether one of the arrays was changed in place.", nullptr}, {}};
PyMethodDef functions[] = {{"watch", watch, METH_O, nullptr}, {}};

}  // namespace

void note_write(compute_tensor* tensor) {
  for (WatchObject* watch = first; watch != nullptr; watch = watch->next) {
    for (compute_tensor* const one : *watch->tensors) {
      if (compute_tensor_shares_buffer(one, tensor) != 0) watch->written = true;
    }
  }
}

bool add_watches(PyObject* module) {
  watch_type = add_type(module, "compute.Watch", sizeof(WatchObject), Py_TPFLAGS_DISALLOW_INSTANTIATION,
                        {{Py_tp_dealloc, reinterpret_cast<void*>(watch_dealloc)},
                         {Py_tp_getset, watch_attributes},
                         {Py_tp_doc, const_cast<char*>("Arrays that are watched for changes in place.")}});
  return watch_type != nullptr && PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace compute_python
