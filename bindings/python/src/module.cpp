// SPDX-License-Identifier: Apache-2.0
//
// The extension module compute._core.
#include <unistd.h>

#include <chrono>
#include <string_view>

#include "module.hpp"

namespace compute_python {

PyTypeObject* add_type(PyObject* module, const char* name, int size, unsigned flags, std::vector<PyType_Slot> slots) {
  slots.push_back({0, nullptr});
  PyType_Spec spec{name, size, 0, Py_TPFLAGS_DEFAULT | flags, slots.data()};
  PyObject* const type = PyType_FromModuleAndSpec(module, &spec, nullptr);
  if (type == nullptr) return nullptr;
  Py_INCREF(type);  // for `state`, which stays
  const std::string_view full(name);
  const char* const own_name = name + full.rfind('.') + 1;
  if (PyModule_AddObject(module, own_name, type) == 0) return reinterpret_cast<PyTypeObject*>(type);
  Py_DECREF(type);
  return nullptr;
}

PyThreadState* Unlocked::release() noexcept {
  watch_for_interrupts();
  const bool stops = last_thread_ != 0 && last_thread_ != PyThread_get_thread_ident();
  if (!stops) ++inside_;
  PyThreadState* const state = PyEval_SaveThread();
  while (stops) pause();
  return state;
}

void Unlocked::stop_other_threads() noexcept {
  last_thread_ = PyThread_get_thread_ident();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (inside_ > 0 && std::chrono::steady_clock::now() < end) {
    Py_BEGIN_ALLOW_THREADS;
    usleep(1000);
    Py_END_ALLOW_THREADS;
  }
}

namespace {

/// Called when memory is short: lets Python free arrays that only cycles keep alive.
void collect_cycles(compute_device*, int64_t, void*) {
  if (Py_IsInitialized() == 0) return;
  const PyGILState_STATE lock = PyGILState_Ensure();
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  Py_XDECREF(call_hook("collect", "()"));
  PyErr_Clear();
  collect_garbage();
  PyErr_Restore(type, value, trace);
  PyGILState_Release(lock);
}

PyObject* version(PyObject*, PyObject*) {
  int32_t major = 0, minor = 0, patch = 0;
  compute_version(&major, &minor, &patch);
  return PyUnicode_FromFormat("%d.%d.%d", static_cast<int>(major), static_cast<int>(minor), static_cast<int>(patch));
}

PyObject* begin(PyObject*, PyObject*) {
  if (!succeeded(compute_memory_add_pressure_callback(collect_cycles, nullptr))) return nullptr;
  Py_RETURN_NONE;
}

PyObject* end(PyObject*, PyObject*) {
  Unlocked::stop_other_threads();
  end_transports();
  compute_error* error = nullptr;
  {
    const Unlocked unlocked;  // it waits for callbacks in progress, which need the interpreter
    error = compute_memory_remove_pressure_callback(collect_cycles, nullptr);
  }
  if (!succeeded(error)) return nullptr;
  Py_RETURN_NONE;
}

PyObject* config_set(PyObject*, PyObject* args) {
  const char *name = nullptr, *value = nullptr;
  if (PyArg_ParseTuple(args, "sz", &name, &value) == 0 || !succeeded(compute_config_set(name, value))) return nullptr;
  state.lines = State::Lines::kUnknown;
  state.real = COMPUTE_DTYPE_NONE;
  Py_RETURN_NONE;
}
/// config_get(name): the value and its origin
PyObject* config_get(PyObject*, PyObject* args) {
  const char* name = nullptr;
  compute_text *text = nullptr, *text_of_origin = nullptr;
  if (PyArg_ParseTuple(args, "s", &name) == 0 || !succeeded(compute_config_get(name, &text, &text_of_origin))) {
    return nullptr;
  }
  const Ref value(take_text(text)), origin(take_text(text_of_origin));
  return value && origin ? PyTuple_Pack(2, value.get(), origin.get()) : nullptr;
}
PyObject* config_describe(PyObject*, PyObject* args) {
  int format = 0;
  compute_text* text = nullptr;
  if (PyArg_ParseTuple(args, "i", &format) == 0 || !succeeded(compute_config_describe(format, &text))) return nullptr;
  return take_text(text);
}
PyObject* load_report(PyObject*, PyObject* args) {
  int format = 0;
  compute_text* text = nullptr;
  if (PyArg_ParseTuple(args, "i", &format) == 0 || !succeeded(compute_load_report(format, &text))) return nullptr;
  return take_text(text);
}
PyObject* placement_report(PyObject*, PyObject* args) {
  int format = 0;
  compute_text* text = nullptr;
  if (PyArg_ParseTuple(args, "i", &format) == 0 || !succeeded(compute_placement_report(format, &text))) return nullptr;
  return take_text(text);
}
PyObject* profile_start(PyObject*, PyObject*) {
  if (!succeeded(compute_profile_start())) return nullptr;
  state.profiles = true;
  state.lines = State::Lines::kUnknown;
  Py_RETURN_NONE;
}
PyObject* profile_stop(PyObject*, PyObject*) {
  state.profiles = false;
  state.lines = State::Lines::kUnknown;
  if (!succeeded(compute_profile_stop())) return nullptr;
  Py_RETURN_NONE;
}
// Waits for queued work, meanwhile other threads run.
PyObject* profile_report(PyObject*, PyObject* args) {
  int format = 0;
  compute_text* text = nullptr;
  if (PyArg_ParseTuple(args, "i", &format) == 0) return nullptr;
  compute_error* error = nullptr;
  {
    const Unlocked unlocked;
    error = compute_profile_report(format, &text);
  }
  return succeeded(error) ? take_text(text) : nullptr;
}
PyObject* scope_push(PyObject*, PyObject* args) {
  const char *label = nullptr, *file = nullptr;
  int line = 0;
  if (PyArg_ParseTuple(args, "szi", &label, &file, &line) == 0 || !succeeded(compute_scope_push(label, file, line))) {
    return nullptr;
  }
  Py_RETURN_NONE;
}
PyObject* scope_pop(PyObject*, PyObject*) {
  if (!succeeded(compute_scope_pop())) return nullptr;
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {{"version", version, METH_NOARGS, nullptr},
                           {"begin", begin, METH_NOARGS, nullptr},
                           {"end", end, METH_NOARGS, nullptr},
                           {"config_set", config_set, METH_VARARGS, nullptr},
                           {"config_get", config_get, METH_VARARGS, nullptr},
                           {"config_describe", config_describe, METH_VARARGS, nullptr},
                           {"load_report", load_report, METH_VARARGS, nullptr},
                           {"placement_report", placement_report, METH_VARARGS, nullptr},
                           {"profile_start", profile_start, METH_NOARGS, nullptr},
                           {"profile_stop", profile_stop, METH_NOARGS, nullptr},
                           {"profile_report", profile_report, METH_VARARGS, nullptr},
                           {"scope_push", scope_push, METH_VARARGS, nullptr},
                           {"scope_pop", scope_pop, METH_NOARGS, nullptr},
                           {}};

int execute(PyObject* module) {
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0) {
    PyErr_SetString(PyExc_ImportError, "compute supports the main interpreter only; use threads or processes");
    return -1;
  }
  if (state.hooks != nullptr) {
    PyErr_SetString(PyExc_ImportError, "compute._core is loaded once in a process");
    return -1;
  }
  if (compute_error* const error = compute_require_interface(COMPUTE_INTERFACE_MAJOR, COMPUTE_INTERFACE_MINOR)) {
    PyErr_SetString(PyExc_ImportError, compute_error_message(error));
    compute_error_free(error);
    return -1;
  }
  state.hooks = PyDict_New();
  if (state.hooks == nullptr) return -1;
  Py_INCREF(state.hooks);
  const bool added = PyModule_AddObject(module, "hooks", state.hooks) == 0 && add_dtypes(module) &&
                     add_devices(module) && find_operators() && add_arrays(module) && add_ops(module) &&
                     add_memory(module) && add_dlpack(module) && add_streams(module) && add_programs(module) &&
                     add_groups(module) && add_watches(module) && add_sequences(module) &&
                     PyModule_AddFunctions(module, functions) == 0;
  return added ? 0 : -1;
}

/// The UTF-8 text of an attribute of an object, as bytes.
Ref text_attribute(PyObject* object, const char* name) {
  const Ref text(PyObject_GetAttrString(object, name));
  return Ref(text ? PyUnicode_AsUTF8String(text.get()) : nullptr);
}

/// Whether a file is one of this package, whose folder is a hook, or of NumPy's way to it.
bool is_own(std::string_view file) {
  PyObject* const folder = PyDict_GetItemString(state.hooks, "folder");
  const Ref bytes(folder != nullptr ? PyUnicode_AsUTF8String(folder) : nullptr);
  return (bytes && file.starts_with(PyBytes_AsString(bytes.get()))) || file.starts_with("<__array_function__") ||
         file.find("-packages/numpy/") != std::string_view::npos;
}

/// Whether the library reports places in the program: in a profile, or because a setting says so.
bool reports_places() noexcept {
  for (const char* const name : {"COMPUTE_PROFILE", "COMPUTE_TRACE", "COMPUTE_TRACE_OPS", "COMPUTE_PLACEMENT",
                                 "COMPUTE_LEAKS", "COMPUTE_TRANSFERS"}) {
    compute_text* text = nullptr;
    if (compute_error* const error = compute_config_get(name, &text, nullptr)) {
      compute_error_free(error);  // calls that need the settings report the error
      continue;
    }
    const std::string_view value(compute_text_data(text), static_cast<size_t>(compute_text_size(text)));
    const bool is_off = value.empty() || value == "0" || value == "allow";
    compute_text_free(text);
    if (!is_off) return true;
  }
  return false;
}

PyModuleDef_Slot slots[] = {{Py_mod_exec, reinterpret_cast<void*>(execute)}, {0, nullptr}};
PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_core", "compute.h for the package compute.", 0, nullptr, slots, nullptr, nullptr, nullptr};

}  // namespace

bool ProgramLine::push() noexcept {
  bool pushed = false;
  if (state.lines == State::Lines::kUnknown) {
    state.lines = state.profiles || reports_places() ? State::Lines::kNamed : State::Lines::kNotNamed;
    if (state.lines == State::Lines::kNotNamed) return false;
  }
  Ref frame = Ref::share(as_object(PyEval_GetFrame()));
  while (frame && frame.get() != Py_None && PyErr_Occurred() == nullptr) {
    auto* const current = reinterpret_cast<PyFrameObject*>(frame.get());
    const Ref code(as_object(PyFrame_GetCode(current)));
    const Ref file = text_attribute(code.get(), "co_filename"), function = text_attribute(code.get(), "co_name");
    if (!file || !function) break;
    if (!is_own(PyBytes_AsString(file.get()))) {
      compute_error* const error = compute_scope_push(PyBytes_AsString(function.get()), PyBytes_AsString(file.get()),
                                                      PyFrame_GetLineNumber(current));
      pushed = error == nullptr;
      compute_error_free(error);
      break;
    }
    frame = Ref(PyObject_GetAttrString(frame.get(), "f_back"));
  }
  PyErr_Clear();
  return pushed;
}
void ProgramLine::pop() noexcept { compute_error_free(compute_scope_pop()); }

}  // namespace compute_python

PyMODINIT_FUNC PyInit__core() { return PyModuleDef_Init(&compute_python::definition); }
