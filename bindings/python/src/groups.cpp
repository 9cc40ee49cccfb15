// SPDX-License-Identifier: Apache-2.0
//
// Groups of ranks, and collectives.
#include <unistd.h>

#include <atomic>
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
    error = over_mpi != 0 ? compute_group_create_mpi(device, nullptr, &group)
                          : compute_group_create(nullptr, device, nullptr, &group);
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
    error = compute_group_create_all(devices.data(), static_cast<int64_t>(devices.size()), nullptr, groups.data());
  }
  if (!succeeded(error)) return nullptr;
  Ref made(PyList_New(0));
  for (compute_group* const group : groups) {
    const Ref object(group_object(group));
    if (made && (!object || PyList_Append(made.get(), object.get()) < 0)) made = Ref();
  }
  return made.release();
}

// ---- Transports in Python -------------------------------------------------------------------------------------------

// Set when the interpreter ends. The group's own threads must not ask for it then.
std::atomic<bool> transports_have_ended{false};
std::atomic<int> transport_calls{0};  // in progress

/// The `user_data` of a transport whose functions are methods of an object of Python; see compute.distributed.over.
struct PythonTransport {
  PyObject* object;
  std::string text;  // of the last failure, else the description
  int polls = 0;     // since a request was started
};

PythonTransport& transport_of(void* user_data) { return *static_cast<PythonTransport*>(user_data); }

/// Takes the exception that is set, as text.
std::string take_exception() {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  const Ref owned[] = {Ref(type), Ref(value), Ref(trace)};
  const Ref text(value != nullptr ? PyObject_Str(value) : nullptr);
  const char* const data = text ? PyUnicode_AsUTF8AndSize(text.get(), nullptr) : nullptr;
  std::string message = data != nullptr ? data : "";
  PyErr_Clear();
  if (!message.empty()) return message;
  const Ref name(type != nullptr ? PyObject_GetAttrString(type, "__name__") : nullptr);
  const char* const kind = name ? PyUnicode_AsUTF8AndSize(name.get(), nullptr) : nullptr;
  PyErr_Clear();
  return kind != nullptr ? kind : "an exception";
}

/// Calls f() with the interpreter, on any thread. f returns whether no exception is set.
template <class F>
int32_t with_interpreter(std::string* text, F&& f) {
  ++transport_calls;
  bool succeeds = false;
  if (!transports_have_ended) {
    const PyGILState_STATE lock = PyGILState_Ensure();
    PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
    PyErr_Fetch(&type, &value, &trace);  // a destructor may have been called while an exception is set
    succeeds = f();
    std::string message = succeeds ? "" : take_exception();
    if (!succeeds && text != nullptr) text->swap(message);
    PyErr_Restore(type, value, trace);
    PyGILState_Release(lock);
  } else if (text != nullptr) {
    *text = "the interpreter has ended";
  }
  --transport_calls;
  return succeeds ? 0 : COMPUTE_ERROR_PEER_FAILED;
}

PyObject* view_of(void* data, int64_t size_bytes, bool writable) {
  static char nothing = 0;
  return PyMemoryView_FromMemory(data != nullptr ? static_cast<char*>(data) : &nothing,
                                 static_cast<Py_ssize_t>(size_bytes), writable ? PyBUF_WRITE : PyBUF_READ);
}

/// Takes what a method returned: a function, which is the request.
bool take_request(PythonTransport& own, PyObject* function, uint64_t* out_request) {
  own.polls = 0;
  if (function == nullptr) return false;
  if (PyCallable_Check(function) == 0) {
    PyErr_SetString(PyExc_TypeError, "the transport did not return a function");
    Py_DECREF(function);
    return false;
  }
  *out_request = reinterpret_cast<uint64_t>(function);
  return true;
}

template <bool to_each>
int32_t start_exchange(const void* src, void* dst, int64_t size_bytes, uint64_t* out_request, void* user_data) {
  PythonTransport& own = transport_of(user_data);
  return with_interpreter(&own.text, [&] {
    const Ref size(PyObject_GetAttrString(own.object, "size"));
    const int64_t ranks = size ? PyLong_AsLongLong(size.get()) : -1;
    if (ranks < 0) return false;
    PyObject* const from = view_of(const_cast<void*>(src), to_each ? ranks * size_bytes : size_bytes, false);
    PyObject* const to = view_of(dst, ranks * size_bytes, true);
    return take_request(own, PyObject_CallMethod(own.object, to_each ? "all_to_all" : "all_gather", "NN", from, to),
                        out_request);
  });
}

int32_t start_transfer(const char* method, void* data, int64_t size_bytes, int32_t rank, uint64_t* out_request,
                       void* user_data) {
  PythonTransport& own = transport_of(user_data);
  return with_interpreter(&own.text, [&] {
    PyObject* const view = view_of(data, size_bytes, std::strcmp(method, "send") != 0);
    return take_request(own, PyObject_CallMethod(own.object, method, "Ni", view, static_cast<int>(rank)), out_request);
  });
}

int32_t start_broadcast(void* data, int64_t size_bytes, int32_t root, uint64_t* out_request, void* user_data) {
  return start_transfer("broadcast", data, size_bytes, root, out_request, user_data);
}
int32_t start_send(void* data, int64_t size_bytes, int32_t peer, uint64_t* out_request, void* user_data) {
  return start_transfer("send", data, size_bytes, peer, out_request, user_data);
}
int32_t start_recv(void* data, int64_t size_bytes, int32_t peer, uint64_t* out_request, void* user_data) {
  return start_transfer("recv", data, size_bytes, peer, out_request, user_data);
}

int32_t make_progress(uint64_t request, int32_t* out_done, void* user_data) {
  PythonTransport& own = transport_of(user_data);
  const int32_t code = with_interpreter(&own.text, [&] {
    if (request == 0) return static_cast<bool>(Ref(PyObject_CallMethod(own.object, "look", nullptr)));
    auto* const function = reinterpret_cast<PyObject*>(request);
    const Ref result(PyObject_CallNoArgs(function));
    const int is_done = result ? PyObject_IsTrue(result.get()) : -1;
    *out_done = is_done > 0 ? 1 : 0;
    if (is_done != 0) Py_DECREF(function);
    return is_done >= 0;
  });
  // Lets the engine's own threads and processes run.
  if (code == 0 && request != 0 && *out_done == 0) usleep(++own.polls < 64 ? 20 : 500);
  return code;
}

compute_transport transport_over(PyObject* object, int rank, int size);

/// Reads `rank` and `size` of a transport. Returns false with an exception set if they are no integers.
bool read_place(PyObject* object, int& rank, int& size) {
  const Ref rank_object(PyObject_GetAttrString(object, "rank")), size_object(PyObject_GetAttrString(object, "size"));
  if (!rank_object || !size_object) return false;
  rank = static_cast<int>(PyLong_AsLong(rank_object.get()));
  size = static_cast<int>(PyLong_AsLong(size_object.get()));
  return PyErr_Occurred() == nullptr;
}

int32_t split_transport(int32_t color, int32_t key, compute_transport* out_transport, void* user_data) {
  PythonTransport& own = transport_of(user_data);
  return with_interpreter(&own.text, [&] {
    const Ref part(PyObject_CallMethod(own.object, "split", "ii", static_cast<int>(color), static_cast<int>(key)));
    int rank = 0, size = 0;
    if (!part || !read_place(part.get(), rank, size)) return false;
    *out_transport = transport_over(part.get(), rank, size);
    return true;
  });
}

void abort_transport(const char* reason, void* user_data) {
  with_interpreter(nullptr, [&] {
    return static_cast<bool>(Ref(PyObject_CallMethod(transport_of(user_data).object, "abort", "s", reason)));
  });
}

void close_transport(void* user_data) {
  PythonTransport* const own = &transport_of(user_data);
  with_interpreter(nullptr, [&] {
    const bool succeeds = static_cast<bool>(Ref(PyObject_CallMethod(own->object, "close", nullptr)));
    Py_DECREF(own->object);
    return succeeds;
  });
  delete own;
}

const char* describe_transport(void* user_data) { return transport_of(user_data).text.c_str(); }

compute_transport transport_over(PyObject* object, int rank, int size) {
  compute_transport table{};
  table.struct_size = sizeof table;
  table.struct_type = COMPUTE_STRUCT_TRANSPORT;
  table.rank = rank;
  table.size = size;
  const Ref text(PyObject_Str(object));
  const char* const data = text ? PyUnicode_AsUTF8AndSize(text.get(), nullptr) : nullptr;
  PyErr_Clear();
  table.user_data = new PythonTransport{Ref::share(object).release(), data != nullptr ? data : ""};
  table.all_gather = start_exchange<false>;
  table.all_to_all = start_exchange<true>;
  table.broadcast = start_broadcast;
  table.send = start_send;
  table.recv = start_recv;
  table.progress = make_progress;
  table.split = PyObject_HasAttrString(object, "split") != 0 ? split_transport : nullptr;
  table.abort = abort_transport;
  table.close = close_transport;
  table.describe = describe_transport;
  return table;
}

/// make_group_over(device, transport)
PyObject* make_group_over(PyObject*, PyObject* args) {
  PyObject *device_argument = nullptr, *object = nullptr;
  int rank = 0, size = 0;
  if (PyArg_ParseTuple(args, "OO", &device_argument, &object) == 0 || !read_place(object, rank, size)) return nullptr;
  compute_device* const device = device_from(device_argument);
  if (device == nullptr) return nullptr;
  const compute_transport table = transport_over(object, rank, size);
  compute_group* group = nullptr;
  compute_error* error = nullptr;
  {
    const Unlocked unlocked;
    error = compute_group_create(&table, device, nullptr, &group);
  }
  return succeeded(error) ? group_object(group) : nullptr;
}

// ---- Methods --------------------------------------------------------------------------------------------------------

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
    error = compute_group_barrier(group_of(self));
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
  compute_collective_options options{};
  options.struct_size = sizeof options;
  options.flags = deterministic != 0 ? COMPUTE_COLLECTIVE_DETERMINISTIC : 0u;
  const std::string_view called(name);
  compute_tensor* made = nullptr;
  compute_error* error = nullptr;
  {
    const ProgramLine line;
    const Unlocked unlocked;
    if (called == "all_reduce") {
      error = y != nullptr ? compute_group_all_reduce_into(stream, group, x, number, &options, y)
                           : compute_group_all_reduce(stream, group, x, number, &options, &made);
    } else if (called == "reduce_scatter") {
      error = y != nullptr ? compute_group_reduce_scatter_into(stream, group, x, number, &options, y)
                           : compute_group_reduce_scatter(stream, group, x, number, &options, &made);
    } else if (called == "all_gather") {
      error = y != nullptr ? compute_group_all_gather_into(stream, group, x, &options, y)
                           : compute_group_all_gather(stream, group, x, &options, &made);
    } else if (called == "broadcast") {
      error = y != nullptr ? compute_group_broadcast_into(stream, group, x, number, &options, y)
                           : compute_group_broadcast(stream, group, x, number, &options, &made);
    } else if (called == "all_to_all") {
      error = y != nullptr ? compute_group_all_to_all_into(stream, group, x, &options, y)
                           : compute_group_all_to_all(stream, group, x, &options, &made);
    } else {
      error = compute_group_send(stream, group, x, number, &options);
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
  compute_collective_options options{};
  options.struct_size = sizeof options;
  options.flags = deterministic != 0 ? COMPUTE_COLLECTIVE_DETERMINISTIC : 0u;
  compute_tensor* made = nullptr;
  compute_error* error = nullptr;
  {
    const ProgramLine line;
    const Unlocked unlocked;
    error = y != nullptr ? compute_group_recv_into(stream, group, y, peer, &options)
                         : compute_group_recv(stream, group, dtype, static_cast<int32_t>(shape.size()), shape.data(),
                                              peer, &options, &made);
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
PyMethodDef functions[] = {{"make_group", make_group, METH_VARARGS, nullptr},
                           {"make_groups", make_groups, METH_O, nullptr},
                           {"make_group_over", make_group_over, METH_VARARGS, nullptr},
                           {}};

}  // namespace

void end_transports() {
  transports_have_ended = true;
  while (transport_calls != 0) {
    Py_BEGIN_ALLOW_THREADS;
    usleep(100);
    Py_END_ALLOW_THREADS;
  }
}

bool add_groups(PyObject* module) {
  state.group_type = add_type(module, "compute._core.Group", sizeof(GroupObject), Py_TPFLAGS_DISALLOW_INSTANTIATION,
                              {{Py_tp_dealloc, reinterpret_cast<void*>(dealloc)}, {Py_tp_methods, methods}});
  return state.group_type != nullptr && PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace compute_python
