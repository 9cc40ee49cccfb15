// SPDX-License-Identifier: Apache-2.0
//
// Streams and events.
#include "module.hpp"

namespace compute_python {

namespace {

using StreamObject = HandleObject<compute_stream>;
using EventObject = HandleObject<compute_event>;

compute_stream* stream_of(PyObject* self) { return reinterpret_cast<StreamObject*>(self)->handle; }
compute_event* event_of(PyObject* self) { return reinterpret_cast<EventObject*>(self)->handle; }

template <class T, void (*kRelease)(T*)>
void dealloc(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  kRelease(reinterpret_cast<HandleObject<T>*>(self)->handle);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

/// Waits in slices, between which signals are handled, with `wait(timeout_ns, out_reached)`.
template <class F>
PyObject* wait_in_slices(F wait) {
  for (int64_t timeout_ns = 0;; timeout_ns = 50'000'000) {
    int32_t reached = 0;
    compute_error* error = nullptr;
    {
      const Unlocked unlocked;
      error = wait(timeout_ns, &reached);
    }
    if (!succeeded(error)) return nullptr;
    if (reached != 0) Py_RETURN_NONE;
    if (PyErr_CheckSignals() != 0) return nullptr;
  }
}

PyObject* stream_synchronize(PyObject* self, PyObject*) {
  return wait_in_slices([&](int64_t timeout_ns, int32_t* out_reached) {
    return compute_stream_wait_for(stream_of(self), timeout_ns, out_reached);
  });
}
PyObject* stream_finished(PyObject* self, PyObject*) {
  int32_t finished = 0;
  return succeeded(compute_stream_query(stream_of(self), &finished)) ? PyBool_FromLong(finished) : nullptr;
}
PyObject* stream_native_handle(PyObject* self, PyObject*) {
  compute_native_dlpack native{};
  native.struct_size = sizeof native;
  return succeeded(compute_stream_native_handle(stream_of(self), COMPUTE_NATIVE_DLPACK, &native))
             ? PyLong_FromUnsignedLongLong(native.stream)
             : nullptr;
}
PyObject* stream_device(PyObject* self, void*) { return device_object(compute_stream_device(stream_of(self))); }

PyObject* stream_record(PyObject* self, PyObject* args, PyObject* keywords) {
  static char name[] = "timed";
  static char* names[] = {name, nullptr};
  int timed = 0;
  if (PyArg_ParseTupleAndKeywords(args, keywords, "|p", names, &timed) == 0) return nullptr;
  compute_event_options options{sizeof(compute_event_options), COMPUTE_STRUCT_EVENT_OPTIONS, nullptr,
                                timed != 0 ? COMPUTE_EVENT_TIMED : 0u, 0};
  auto* const event = make<EventObject>(state.event_type);
  if (event == nullptr) return nullptr;
  if (succeeded(compute_event_record(stream_of(self), &options, &event->handle))) return as_object(event);
  Py_DECREF(event);
  return nullptr;
}
PyObject* stream_wait(PyObject* self, PyObject* event) {
  if (Py_TYPE(event) != state.event_type) return PyErr_Format(PyExc_TypeError, "wait takes an Event, not %R", event);
  if (!succeeded(compute_event_wait(event_of(event), stream_of(self)))) return nullptr;
  Py_RETURN_NONE;
}

PyObject* event_finished(PyObject* self, PyObject*) {
  int32_t finished = 0;
  return succeeded(compute_event_query(event_of(self), &finished)) ? PyBool_FromLong(finished) : nullptr;
}
PyObject* event_synchronize(PyObject* self, PyObject*) {
  compute_error* error = nullptr;
  {
    const Unlocked unlocked;
    error = compute_event_synchronize(event_of(self));
  }
  if (!succeeded(error)) return nullptr;
  Py_RETURN_NONE;
}
PyObject* event_elapsed_since(PyObject* self, PyObject* start) {
  if (Py_TYPE(start) != state.event_type) return PyErr_Format(PyExc_TypeError, "%R is not an Event", start);
  int64_t ns = 0;
  compute_error* error = nullptr;
  {
    const Unlocked unlocked;
    error = compute_event_elapsed(event_of(start), event_of(self), &ns);
  }
  return succeeded(error) ? PyFloat_FromDouble(static_cast<double>(ns) * 1e-9) : nullptr;
}

/// stream(device, priority)
PyObject* create_stream(PyObject*, PyObject* args) {
  PyObject* device_argument = nullptr;
  int priority = 0;
  if (PyArg_ParseTuple(args, "Oi", &device_argument, &priority) == 0) return nullptr;
  compute_device* const device = device_from(device_argument);
  auto* const stream = device != nullptr ? make<StreamObject>(state.stream_type) : nullptr;
  if (stream == nullptr) return nullptr;
  const compute_stream_options options{sizeof(compute_stream_options), COMPUTE_STRUCT_STREAM_OPTIONS, nullptr, 0,
                                       priority};
  if (succeeded(compute_stream_create(device, &options, &stream->handle))) return as_object(stream);
  Py_DECREF(stream);
  return nullptr;
}

/// set_current_stream(stream or None): returns the previous one, or None.
PyObject* set_current_stream(PyObject*, PyObject* object) {
  if (object != Py_None && Py_TYPE(object) != state.stream_type) {
    return PyErr_Format(PyExc_TypeError, "%R is not a Stream", object);
  }
  compute_stream* const next = object != Py_None ? stream_of(object) : nullptr;
  if (next != nullptr) compute_stream_retain(next);
  compute_stream* const previous = std::exchange(current_stream, next);
  if (previous == nullptr) Py_RETURN_NONE;
  auto* const result = make<StreamObject>(state.stream_type);
  if (result == nullptr) return nullptr;
  result->handle = previous;
  return as_object(result);
}

/// has_current_stream(): whether the calling thread has one.
PyObject* has_current_stream(PyObject*, PyObject*) { return PyBool_FromLong(current_stream != nullptr ? 1 : 0); }

PyMethodDef stream_methods[] = {
    {"synchronize", stream_synchronize, METH_NOARGS, "synchronize($self, /)\n--\n\nWaits for all work of the stream."},
    {"finished", stream_finished, METH_NOARGS, "finished($self, /)\n--\n\nWhether all work has finished. Never waits."},
    {"record", function(stream_record), METH_VARARGS | METH_KEYWORDS,
     "record($self, /, timed=False)\n--\n\nAn Event that happens when the work queued so far has finished. Only events "
     "that are\ntimed have a time, for Event.elapsed_since."},
    {"wait", stream_wait, METH_O,
     "wait($self, event, /)\n--\n\nOrders later work of the stream after the event, which may be of another stream. "
     "The "
     "caller\ndoes not wait. Arrays need no events: ops wait for the work that their operands come from."},
    {"native_handle", stream_native_handle, METH_NOARGS,
     "native_handle($self, /)\n--\n\nThe CUstream or cl_command_queue, as an int."},
    {}};
PyGetSetDef stream_getset[] = {{"device", stream_device, nullptr, "The device of the stream.", nullptr}, {}};
PyMethodDef event_methods[] = {
    {"finished", event_finished, METH_NOARGS, "finished($self, /)\n--\n\nWhether the event has happened. Never waits."},
    {"synchronize", event_synchronize, METH_NOARGS, "synchronize($self, /)\n--\n\nWaits until the event has happened."},
    {"elapsed_since", event_elapsed_since, METH_O,
     "elapsed_since($self, start, /)\n--\n\nThe seconds from the event `start`; waits for both. Both are recorded with "
     "timed=True."},
    {}};
PyMethodDef functions[] = {{"stream", create_stream, METH_VARARGS, nullptr},
                           {"set_current_stream", set_current_stream, METH_O, nullptr},
                           {"has_current_stream", has_current_stream, METH_NOARGS, nullptr},
                           {}};

}  // namespace

bool add_streams(PyObject* module) {
  const auto release_stream = dealloc<compute_stream, compute_stream_release>;
  const auto release_event = dealloc<compute_event, compute_event_release>;
  state.stream_type =
      add_type(module, "compute.Stream", sizeof(StreamObject), Py_TPFLAGS_DISALLOW_INSTANTIATION,
               {{Py_tp_dealloc, reinterpret_cast<void*>(release_stream)},
                {Py_tp_methods, stream_methods},
                {Py_tp_getset, stream_getset},
                {Py_tp_doc, const_cast<char*>("An in-order queue of work on a device; a context manager.")}});
  state.event_type = add_type(module, "compute.Event", sizeof(EventObject), Py_TPFLAGS_DISALLOW_INSTANTIATION,
                              {{Py_tp_dealloc, reinterpret_cast<void*>(release_event)},
                               {Py_tp_methods, event_methods},
                               {Py_tp_doc, const_cast<char*>("A point in the work of a stream.")}});
  return state.stream_type != nullptr && state.event_type != nullptr && PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace compute_python
