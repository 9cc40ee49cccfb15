// SPDX-License-Identifier: Apache-2.0
//
// Devices, and which of them is meant where none is named.
#include <string>
#include <string_view>

#include "module.hpp"

namespace compute_python {

namespace {

std::vector<DeviceObject*> open_devices;               // guarded by the interpreter's lock
thread_local compute_device* thread_device = nullptr;  // set by `with device:`; open for good
compute_device* process_device = nullptr;              // what COMPUTE_DEVICE selects, once it is needed

compute_device* handle_of(PyObject* self) { return reinterpret_cast<DeviceObject*>(self)->handle; }

/// Takes a reference to an open device.
compute_device* keep(compute_device* device) {
  const Ref object(device_object(device));
  compute_device_release(device);
  return object ? device : nullptr;
}

/// The text of a call of compute.h; "" if it fails, which the next call reports.
std::string text_or_nothing(compute_error* error, compute_text* text) {
  std::string result(compute_text_data(text), static_cast<size_t>(compute_text_size(text)));
  compute_text_free(text);
  compute_error_free(error);
  return result;
}

/// Opens the default device of the process, or cpu, before any other. If the default device is cpu, cpu is opened as
/// such, so that the log says who chose it. The log does not mention a cpu that nobody chose and that replaces no other
/// device; a user who sets COMPUTE_LOG decides about that line.
compute_error* open_first(const char* selector, compute_device** out_device) {
  compute_text* text = nullptr;
  compute_error* error = compute_config_get("COMPUTE_DEVICE", &text, nullptr);
  if (text_or_nothing(error, text).starts_with("cpu")) selector = nullptr;
  compute_text* origin = nullptr;
  error = compute_config_get("COMPUTE_LOG", &text, &origin);
  compute_text_free(text);
  bool is_quiet = text_or_nothing(error, origin) == "default";
  if (is_quiet && selector == nullptr) {
    error = compute_device_which(nullptr, COMPUTE_FORMAT_TEXT, &text);
    const std::string answer = text_or_nothing(error, text);
    const std::string_view line = std::string_view(answer).substr(0, answer.find('\n'));
    is_quiet = line.starts_with("cpu:") && line.ends_with(", chosen by auto") &&
               answer.find("\nwarning: ") == std::string::npos;
  }
  if (is_quiet && (error = compute_config_set("COMPUTE_LOG", "warn")) != nullptr) return error;
  error = compute_device_open(selector, out_device);
  if (is_quiet) compute_error_free(compute_config_set("COMPUTE_LOG", nullptr));
  return error;
}

compute_device* open(const char* selector) {
  const bool is_first = open_devices.empty() && (selector == nullptr || std::string_view(selector) == "cpu");
  compute_device* device = nullptr;
  compute_error* error = nullptr;
  {
    const Unlocked unlocked;
    error = is_first ? open_first(selector, &device) : compute_device_open(selector, &device);
  }
  return succeeded(error) ? keep(device) : nullptr;
}

compute_device* device_of_process() {
  if (process_device == nullptr) process_device = open(nullptr);
  return process_device;
}
compute_device* default_device() { return thread_device != nullptr ? thread_device : device_of_process(); }

PyObject* device_name(PyObject* self, void*) { return PyUnicode_FromString(compute_device_name(handle_of(self))); }
PyObject* device_type(PyObject* self, void*) {
  std::string_view name(compute_device_name(handle_of(self)));
  name = name.substr(0, name.find_first_of("0123456789"));
  return text_of(name.data(), static_cast<int64_t>(name.size()));
}
PyObject* device_repr(PyObject* self) {
  return PyUnicode_FromFormat("Device('%s')", compute_device_name(handle_of(self)));
}
PyObject* device_str(PyObject* self) { return device_name(self, nullptr); }
PyObject* device_reduce(PyObject* self, PyObject*) {
  const Ref hook = Ref::share(PyDict_GetItemString(state.hooks, "device"));
  return hook ? Py_BuildValue("(O(s))", hook.get(), compute_device_name(handle_of(self))) : nullptr;
}

/// Puts a string of an information struct into a dict.
bool put(PyObject* dict, const char* key, const char* data, int64_t size) {
  const Ref value(text_of(data, size));
  return value && PyDict_SetItemString(dict, key, value.get()) == 0;
}
bool put(PyObject* dict, const char* key, int64_t number) {
  const Ref value(PyLong_FromLongLong(number));
  return value && PyDict_SetItemString(dict, key, value.get()) == 0;
}

PyObject* info_dict(const compute_device_info& info) {
  Ref dict(PyDict_New());
  Ref dtypes(PyDict_New());
  if (!dict || !dtypes) return nullptr;
  for (int32_t id = 1; id < info.dtype_count && id <= COMPUTE_DTYPE_FLOAT8_E5M2; ++id) {
    if (!put(dtypes.get(), compute_dtype_name(id), info.dtypes[id])) return nullptr;
  }
  const bool complete = put(dict.get(), "name", info.name, info.name_size) &&
                        put(dict.get(), "plugin", info.plugin, info.plugin_size) &&
                        put(dict.get(), "description", info.description, info.description_size) &&
                        put(dict.get(), "vendor", info.vendor, info.vendor_size) &&
                        put(dict.get(), "driver_version", info.driver_version, info.driver_version_size) &&
                        put(dict.get(), "pci_address", info.pci_address, info.pci_address_size) &&
                        put(dict.get(), "uuid", info.uuid, info.uuid_size) &&
                        put(dict.get(), "same_as", info.same_as, info.same_as_size) &&
                        put(dict.get(), "libraries", info.libraries, info.libraries_size) &&
                        put(dict.get(), "unusable", info.unusable, info.unusable_size) &&
                        put(dict.get(), "memory_bytes", info.memory_bytes) && put(dict.get(), "kind", info.kind) &&
                        PyDict_SetItemString(dict.get(), "dtypes", dtypes.get()) == 0;
  return complete ? dict.release() : nullptr;
}

PyObject* device_info(PyObject* self, PyObject*) {
  compute_device_info info{};
  info.struct_size = sizeof info;
  return succeeded(compute_device_get_info(handle_of(self), &info)) ? info_dict(info) : nullptr;
}

PyObject* device_attributes(PyObject* self, PyObject*) {
  std::vector<compute_device_attribute> all(64);
  all[0].struct_size = sizeof all[0];
  int64_t count = 0;
  const auto capacity = static_cast<int64_t>(all.size());
  if (!succeeded(compute_device_attributes(compute_device_name(handle_of(self)), all.data(), capacity, &count))) {
    return nullptr;
  }
  Ref dict(PyDict_New());
  for (int64_t i = 0; dict && i < count && i < capacity; ++i) {
    const compute_device_attribute& one = all[static_cast<size_t>(i)];
    if (!put(dict.get(), one.name, one.value, one.value_size)) return nullptr;
  }
  return dict.release();
}

PyObject* device_statistics(PyObject* self, PyObject*) {
  compute_device_statistics s{};
  s.struct_size = sizeof s;
  if (!succeeded(compute_device_get_statistics(handle_of(self), &s))) return nullptr;
  const std::pair<const char*, int64_t> rows[] = {{"memory_used", s.memory_used},
                                                  {"memory_peak", s.memory_peak},
                                                  {"memory_reserved", s.memory_reserved},
                                                  {"memory_limit", s.memory_limit},
                                                  {"memory_mirrors", s.memory_mirrors},
                                                  {"memory_total", s.memory_total},
                                                  {"memory_available", s.memory_available},
                                                  {"blocks_live", s.blocks_live},
                                                  {"allocations", s.allocations},
                                                  {"allocations_from_device", s.allocations_from_device},
                                                  {"ops_run", s.ops_run},
                                                  {"ops_fallback", s.ops_fallback},
                                                  {"plans_live", s.plans_live},
                                                  {"plans_prepared", s.plans_prepared},
                                                  {"kernels_compiled", s.kernels_compiled},
                                                  {"transfers_to_device", s.transfers_to_device},
                                                  {"transfers_to_device_bytes", s.transfers_to_device_bytes},
                                                  {"transfers_from_device", s.transfers_from_device},
                                                  {"transfers_from_device_bytes", s.transfers_from_device_bytes},
                                                  {"transfers_implicit", s.transfers_implicit},
                                                  {"transfers_implicit_bytes", s.transfers_implicit_bytes},
                                                  {"mirror_hits", s.mirror_hits}};
  Ref dict(PyDict_New());
  for (const auto& [name, value] : rows) {
    if (!dict || !put(dict.get(), name, value)) return nullptr;
  }
  return dict.release();
}

PyObject* device_synchronize(PyObject* self, PyObject*) {
  if (!wait_interruptibly(handle_of(self))) return nullptr;
  compute_error* error = nullptr;
  {
    const Unlocked unlocked;
    error = compute_device_synchronize(handle_of(self));
  }
  if (!succeeded(error)) return nullptr;
  Py_RETURN_NONE;
}

PyObject* device_trim(PyObject* self, PyObject* keep_bytes) {
  const long long bytes = PyLong_AsLongLong(keep_bytes);
  if (bytes == -1 && PyErr_Occurred() != nullptr) return nullptr;
  if (!succeeded(compute_device_trim(handle_of(self), bytes))) return nullptr;
  Py_RETURN_NONE;
}

PyObject* device_native_handle(PyObject* self, PyObject*) {
  compute_native_cuda cuda{};
  cuda.struct_size = sizeof cuda;
  compute_error* error = compute_device_native_handle(handle_of(self), COMPUTE_NATIVE_CUDA, &cuda);
  if (error == nullptr) return PyLong_FromUnsignedLongLong(cuda.context);
  compute_error_free(error);
  compute_native_opencl opencl{};
  opencl.struct_size = sizeof opencl;
  return succeeded(compute_device_native_handle(handle_of(self), COMPUTE_NATIVE_OPENCL, &opencl))
             ? PyLong_FromUnsignedLongLong(opencl.context)
             : nullptr;
}

PyGetSetDef device_getset[] = {{"name", device_name, nullptr, "The canonical name, as 'cuda0'.", nullptr},
                               {"type", device_type, nullptr, "The name without numbers, as 'cuda'.", nullptr},
                               {}};
PyMethodDef device_methods[] = {
    {"info", device_info, METH_NOARGS, "info($self, /)\n--\n\nThe description of the device, as a dict."},
    {"attributes", device_attributes, METH_NOARGS, "attributes($self, /)\n--\n\nFurther properties, as a dict of str."},
    {"statistics", device_statistics, METH_NOARGS, "statistics($self, /)\n--\n\nMemory and counters, as a dict."},
    {"synchronize", device_synchronize, METH_NOARGS, "synchronize($self, /)\n--\n\nWaits for all work of the device."},
    {"native_handle", device_native_handle, METH_NOARGS,
     "native_handle($self, /)\n--\n\nThe CUcontext or cl_context of the device, as an int."},
    {"_trim", device_trim, METH_O, nullptr},
    {"__reduce__", device_reduce, METH_NOARGS, nullptr},
    {}};

PyObject* device_list(PyObject*, PyObject*) {
  std::vector<compute_device_info> infos(256);
  infos[0].struct_size = sizeof infos[0];
  int64_t count = 0;
  compute_error* error = nullptr;
  {
    const Unlocked unlocked;
    error = compute_device_list(infos.data(), static_cast<int64_t>(infos.size()), &count);
  }
  if (!succeeded(error)) return nullptr;
  Ref list(PyList_New(0));
  for (size_t i = 0; list && i < infos.size() && i < static_cast<size_t>(count); ++i) {
    const Ref info(info_dict(infos[i]));
    if (!info || PyList_Append(list.get(), info.get()) < 0) return nullptr;
  }
  return list.release();
}

PyObject* open_device(PyObject*, PyObject* selector) {
  compute_device* const device = device_from(selector);
  return device != nullptr ? device_object(device) : nullptr;
}

/// process_device(): the default device outside of `with device:`.
PyObject* get_process_device(PyObject*, PyObject*) {
  compute_device* const device = device_of_process();
  return device != nullptr ? device_object(device) : nullptr;
}

/// set_thread_device(device or None): returns the previous one, or None.
PyObject* set_thread_device(PyObject*, PyObject* object) {
  compute_device* device = nullptr;
  if (object != Py_None && (device = device_from(object)) == nullptr) return nullptr;
  compute_device* const previous = std::exchange(thread_device, device);
  if (previous == nullptr) Py_RETURN_NONE;
  return device_object(previous);
}

PyObject* device_which(PyObject*, PyObject* args) {
  const char* selector = nullptr;
  if (PyArg_ParseTuple(args, "z", &selector) == 0) return nullptr;
  compute_text* answer = nullptr;
  return succeeded(compute_device_which(selector, COMPUTE_FORMAT_TEXT, &answer)) ? take_text(answer) : nullptr;
}

PyMethodDef functions[] = {{"device_list", device_list, METH_NOARGS, nullptr},
                           {"device", open_device, METH_O, nullptr},
                           {"device_which", device_which, METH_VARARGS, nullptr},
                           {"process_device", get_process_device, METH_NOARGS, nullptr},
                           {"set_thread_device", set_thread_device, METH_O, nullptr},
                           {}};

/// Waits for `stream` in slices, between which signals are handled.
bool wait_in_slices(compute_stream* stream) {
  constexpr int64_t kSliceNs = 50'000'000;
  for (int64_t timeout_ns = 0;; timeout_ns = kSliceNs) {
    int32_t reached = 0;
    compute_error* error = nullptr;
    {
      const Unlocked unlocked(timeout_ns > 0);
      error = compute_stream_wait_for(stream, timeout_ns, &reached);
    }
    if (error != nullptr) {  // work failed: uses of its results report it
      compute_error_free(error);
      return true;
    }
    if (reached != 0) return true;
    if (PyErr_CheckSignals() != 0) return false;
  }
}

}  // namespace

PyObject* device_object(compute_device* device) {
  for (DeviceObject* const known : open_devices) {
    if (known->handle == device) {
      Py_INCREF(as_object(known));
      return as_object(known);
    }
  }
  auto* const object = make<DeviceObject>(state.device_type);
  if (object == nullptr) return nullptr;
  compute_device_retain(device);
  object->handle = device;
  const bool has_one = std::string_view(compute_device_name(device)) != "cpu";
  compute_error* const error = has_one ? compute_device_default_stream(device, &object->default_) : nullptr;
  compute_error_free(error);
  open_devices.push_back(object);
  Py_INCREF(as_object(object));
  return as_object(object);
}

compute_device* device_from(PyObject* object) {
  if (object == Py_None) return default_device();
  if (Py_TYPE(object) == state.device_type) return handle_of(object);
  if (PyUnicode_Check(object) == 0) {
    PyErr_Format(PyExc_TypeError, "a device is a compute.Device, a selector such as 'cuda0', or None, not %R", object);
    return nullptr;
  }
  for (DeviceObject* const known : open_devices) {
    if (PyUnicode_CompareWithASCIIString(object, compute_device_name(known->handle)) == 0) return known->handle;
  }
  const Ref text(PyUnicode_AsUTF8String(object));
  return text ? open(PyBytes_AsString(text.get())) : nullptr;
}

bool find_cpu(compute_device* device) {
  if (state.cpu != nullptr || std::string_view(compute_device_name(device)) != "cpu") return false;
  state.cpu = device;  // a device stays open
  return true;
}

bool wait_interruptibly(compute_device* device) {
  if (is_cpu(device) && current_stream == nullptr) return true;
  for (DeviceObject* const known : open_devices) {
    if (known->handle == device && known->default_ != nullptr && !wait_in_slices(known->default_)) return false;
  }
  compute_stream* const stream = stream_for(device);
  return stream == nullptr || wait_in_slices(stream);
}

bool add_devices(PyObject* module) {
  state.device_type =
      add_type(module, "compute.Device", sizeof(DeviceObject), Py_TPFLAGS_DISALLOW_INSTANTIATION,
               {{Py_tp_repr, reinterpret_cast<void*>(device_repr)},
                {Py_tp_str, reinterpret_cast<void*>(device_str)},
                {Py_tp_getset, device_getset},
                {Py_tp_methods, device_methods},
                {Py_tp_doc, const_cast<char*>("What ops run on. There is one object for each device.")}});
  return state.device_type != nullptr && PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace compute_python
