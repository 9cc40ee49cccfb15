// SPDX-License-Identifier: Apache-2.0
//
// Groups of ranks, and collectives.
#include <cstring>

#include "module.hpp"

namespace compute_python {

namespace {

using GroupObject = HandleObject<compute_group>;

compute_group* group_of(PyObject* self) { return reinterpret_cast<GroupObject*>(self)->handle; }

/// Takes the handle, which may be NULL with an exception set.
PyObject* group_object(compute_group* group) {
  if (group == nullptr) return nullptr;
  auto* const object = make<GroupObject>(state.group_type);
  if (object == nullptr) {
    compute_group_release(group);
    return nullptr;
  }
  object->handle = group;
  return as_object(object);
}

void dealloc(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  {
    const Unlocked unlocked;  // it waits for queued calls
    compute_group_release(group_of(self));
  }
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

/// make_group(device, over_mpi)
PyObject* make_group(PyObject*, PyObject* args) {
  PyObject* object = nullptr;
  int over_mpi = 0;
  if (PyArg_ParseTuple(args, "Op", &object, &over_mpi) == 0) return nullptr;
  compute_device* const device = device_from(object);
  if (device == nullptr) return nullptr;
  compute_group* group = nullptr;
  compute_error* error = nullptr;
  {
    const Unlocked unlocked;
    error = over_mpi != 0 ? compute_group_create_mpi(device, &group) : compute_group_create(nullptr, device, &group);
  }
  return succeeded(error) ? group_object(group) : nullptr;
}

/// make_groups(devices): a list.
PyObject* make_groups(PyObject*, PyObject* list) {
  std::vector<compute_device*> devices;
  for (Py_ssize_t i = 0; i < PySequence_Size(list); ++i) {
    const Ref item(PySequence_GetItem(list, i));
    compute_device* const device = item ? device_from(item.get()) : nullptr;
    if (device == nullptr) return nullptr;
    devices.push_back(device);
  }
  std::vector<compute_group*> groups(devices.size());
  compute_error* error = nullptr;
  {
    const Unlocked unlocked;
    error = compute_group_create_all(devices.data(), static_cast<int32_t>(devices.size()), groups.data());
  }
  if (!succeeded(error)) return nullptr;
  Ref made(PyList_New(0));
  for (compute_group* const group : groups) {
    const Ref object(group_object(group));
    if (made && (!object || PyList_Append(made.get(), object.get()) < 0)) made = Ref();
  }
  return made.release();
}

PyObject* split(PyObject* self, PyObject* args) {
  int color = 0, key = 0;
  if (PyArg_ParseTuple(args, "ii", &color, &key) == 0) return nullptr;
  compute_group* group = nullptr;
  compute_error* error = nullptr;
  {
    const Unlocked unlocked;
    error = compute_group_split(group_of(self), color, key, &group);
  }
  return succeeded(error) ? group_object(group) : nullptr;
}

PyObject* abort_group(PyObject* self, PyObject*) {
  if (!succeeded(compute_group_abort(group_of(self)))) return nullptr;
  Py_RETURN_NONE;
}

PyObject* barrier(PyObject* self, PyObject*) {
  compute_error* error = nullptr;
  {
    const Unlocked unlocked;
    error = compute_barrier(group_of(self));
  }
  if (!succeeded(error)) return nullptr;
  Py_RETURN_NONE;
}

/// run(name, x, out or None, reduction or rank, deterministic)
PyObject* run(PyObject* self, PyObject* args) {
  const char* name = nullptr;
  PyObject *object = nullptr, *out = nullptr;
  int number = 0, deterministic = 0;
  if (PyArg_ParseTuple(args, "sOOip", &name, &object, &out, &number, &deterministic) == 0) return nullptr;
  compute_group* const group = group_of(self);
  compute_tensor* const x = tensor_from(object, name);
  if (x == nullptr) return nullptr;
  compute_tensor* y = nullptr;
  if (out != Py_None) {
    y = tensor_from(out, name);
    if (y == nullptr) return nullptr;
    note_write(y);
  }
  compute_stream* const stream = stream_for(compute_group_device(group));
  const uint32_t flags = deterministic != 0 ? COMPUTE_COLLECTIVE_DETERMINISTIC : 0u;
  const std::string_view called(name);
  compute_tensor* made = nullptr;
  compute_error* error = nullptr;
  {
    const ProgramLine line;
    const Unlocked unlocked;
    if (called == "all_reduce") {
      error = y != nullptr ? compute_all_reduce_into(stream, group, x, number, flags, y)
                           : compute_all_reduce(stream, group, x, number, flags, &made);
    } else if (called == "reduce_scatter") {
      error = y != nullptr ? compute_reduce_scatter_into(stream, group, x, number, flags, y)
                           : compute_reduce_scatter(stream, group, x, number, flags, &made);
    } else if (called == "all_gather") {
      error = y != nullptr ? compute_all_gather_into(stream, group, x, flags, y)
                           : compute_all_gather(stream, group, x, flags, &made);
    } else if (called == "broadcast") {
      error = y != nullptr ? compute_broadcast_into(stream, group, x, number, flags, y)
                           : compute_broadcast(stream, group, x, number, flags, &made);
    } else if (called == "all_to_all") {
      error = y != nullptr ? compute_all_to_all_into(stream, group, x, flags, y)
                           : compute_all_to_all(stream, group, x, flags, &made);
    } else {
      error = compute_send(stream, group, x, number, flags);
    }
  }
  if (!succeeded(error)) return nullptr;
  if (made != nullptr) return array_object(made);
  return Ref::share(out).release();
}

/// recv(shape, dtype, out or None, peer, deterministic)
PyObject* recv(PyObject* self, PyObject* args) {
  PyObject *shape_object = nullptr, *dtype_argument = nullptr, *out = nullptr;
  int peer = 0, deterministic = 0;
  if (PyArg_ParseTuple(args, "OOOip", &shape_object, &dtype_argument, &out, &peer, &deterministic) == 0) return nullptr;
  compute_group* const group = group_of(self);
  std::vector<int64_t> shape;
  compute_tensor* y = nullptr;
  compute_dtype dtype = COMPUTE_DTYPE_NONE;
  if (out != Py_None) {
    y = tensor_from(out, "recv");
    if (y == nullptr) return nullptr;
    note_write(y);
  } else {
    dtype = dtype_from(dtype_argument);
    if (dtype == COMPUTE_DTYPE_NONE || !integers_from(shape_object, shape)) return nullptr;
  }
  compute_stream* const stream = stream_for(compute_group_device(group));
  const uint32_t flags = deterministic != 0 ? COMPUTE_COLLECTIVE_DETERMINISTIC : 0u;
  compute_tensor* made = nullptr;
  compute_error* error = nullptr;
  {
    const ProgramLine line;
    const Unlocked unlocked;
    error = y != nullptr ? compute_recv_into(stream, group, y, peer, flags)
                         : compute_recv(stream, group, dtype, static_cast<int32_t>(shape.size()), shape.data(), peer,
                                        flags, &made);
  }
  if (!succeeded(error)) return nullptr;
  if (made != nullptr) return array_object(made);
  return Ref::share(out).release();
}

/// (rank, size, device, description)
PyObject* info(PyObject* self, PyObject*) {
  compute_group* const group = group_of(self);
  return Py_BuildValue("(iiNs)", static_cast<int>(compute_group_rank(group)),
                       static_cast<int>(compute_group_size(group)), device_object(compute_group_device(group)),
                       compute_group_description(group));
}

PyMethodDef methods[] = {{"split", split, METH_VARARGS, nullptr},
                         {"abort", abort_group, METH_NOARGS, nullptr},
                         {"barrier", barrier, METH_NOARGS, nullptr},
                         {"run", run, METH_VARARGS, nullptr},
                         {"recv", recv, METH_VARARGS, nullptr},
                         {"info", info, METH_NOARGS, nullptr},
                         {}};
PyMethodDef functions[] = {
    {"make_group", make_group, METH_VARARGS, nullptr}, {"make_groups", make_groups, METH_O, nullptr}, {}};

}  // namespace

bool add_groups(PyObject* module) {
  state.group_type = add_type(module, "compute._core.Group", sizeof(GroupObject), Py_TPFLAGS_DISALLOW_INSTANTIATION,
                              {{Py_tp_dealloc, reinterpret_cast<void*>(dealloc)}, {Py_tp_methods, methods}});
  return state.group_type != nullptr && PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace compute_python
