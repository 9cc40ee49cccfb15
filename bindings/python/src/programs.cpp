// SPDX-License-Identifier: Apache-2.0
//
// What programs bring along: expressions, kernels and recorded graphs.
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "module.hpp"

namespace compute_python {

namespace {

using ExpressionObject = HandleObject<compute_expression>;
using KernelObject = HandleObject<compute_kernel>;
using GraphObject = HandleObject<compute_graph>;

template <class T>
T* handle_of(PyObject* self) {
  return reinterpret_cast<HandleObject<T>*>(self)->handle;
}

template <class T, void (*kRelease)(T*)>
void dealloc(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  kRelease(handle_of<T>(self));
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

/// An object for a handle that a call made; takes the handle.
template <class T>
PyObject* wrap(PyTypeObject* type, compute_error* error, T* handle, void (*release)(T*)) {
  if (!succeeded(error)) return nullptr;
  auto* const object = make<HandleObject<T>>(type);
  if (object == nullptr) {
    release(handle);
    return nullptr;
  }
  object->handle = handle;
  return as_object(object);
}

// ---- Expressions ----------------------------------------------------------------------------------------------------

/// The strings of a sequence, and pointers to them.
struct Names {
  std::vector<std::string> texts;
  std::vector<const char*> pointers;

  bool read(PyObject* sequence) {
    const Py_ssize_t count = PySequence_Size(sequence);
    for (Py_ssize_t i = 0; i < count; ++i) {
      const Ref item(PySequence_GetItem(sequence, i));
      const Ref text(item ? PyUnicode_AsUTF8String(item.get()) : nullptr);
      if (!text) return false;
      texts.emplace_back(PyBytes_AsString(text.get()));
    }
    for (const std::string& text : texts) pointers.push_back(text.c_str());
    return count >= 0;
  }
  [[nodiscard]] int64_t count() const { return static_cast<int64_t>(pointers.size()); }
};

/// expression(text, input names, scalar names)
PyObject* parse_expression(PyObject*, PyObject* args) {
  const char* text = nullptr;
  PyObject *input_names = nullptr, *scalar_names = nullptr;
  Names inputs, scalars;
  if (PyArg_ParseTuple(args, "sOO", &text, &input_names, &scalar_names) == 0 || !inputs.read(input_names) ||
      !scalars.read(scalar_names)) {
    return nullptr;
  }
  compute_expression* expression = nullptr;
  compute_error* const error = compute_expression_parse(text, inputs.pointers.data(), inputs.count(),
                                                        scalars.pointers.data(), scalars.count(), &expression);
  return wrap(state.expression_type, error, expression, compute_expression_release);
}

PyObject* expression_gradient(PyObject* self, PyObject* wanted) {
  std::vector<int64_t> positions;
  if (wanted != Py_None && !integers_from(wanted, positions)) return nullptr;
  const std::vector<int32_t> narrow(positions.begin(), positions.end());
  compute_expression* gradient = nullptr;
  compute_error* const error =
      compute_expression_gradient(handle_of<compute_expression>(self), wanted != Py_None ? narrow.data() : nullptr,
                                  static_cast<int64_t>(narrow.size()), &gradient);
  return wrap(state.expression_type, error, gradient, compute_expression_release);
}

/// The operands of an expression: arrays, and numbers for its scalars.
struct ExpressionCall {
  std::vector<compute_tensor*> inputs;
  std::vector<compute_number> scalars;
  std::vector<compute_tensor*> owned;
  compute_device* device = nullptr;

  ExpressionCall() = default;
  ExpressionCall(const ExpressionCall&) = delete;
  ExpressionCall& operator=(const ExpressionCall&) = delete;
  ~ExpressionCall() {
    for (compute_tensor* const tensor : owned) compute_tensor_release(tensor);
  }

  bool read(PyObject* input_list, PyObject* scalar_list) {
    IntegerRange range;
    for (Py_ssize_t i = 0; i < PySequence_Size(input_list); ++i) {
      const Ref item(PySequence_GetItem(input_list, i));  // the list keeps it alive
      compute_tensor* const tensor = item ? tensor_from(item.get(), "an expression") : nullptr;
      if (tensor == nullptr) return false;
      inputs.push_back(tensor);
      range.add(compute_tensor_dtype(tensor));
      if (device == nullptr || is_cpu(device)) device = compute_tensor_device(tensor);
    }
    for (Py_ssize_t i = 0; i < PySequence_Size(scalar_list); ++i) {
      const Ref item(PySequence_GetItem(scalar_list, i));
      if (!item || !add_scalar(item.get(), range)) return false;
    }
    return PyErr_Occurred() == nullptr;
  }
  bool add_scalar(PyObject* object, const IntegerRange& range) {
    scalars.emplace_back();
    compute_number& scalar = scalars.back();
    scalar.kind = COMPUTE_KIND_SCALAR;
    if (is_array(object)) {
      scalar.tensor = tensor_of(object);
      return scalar.tensor != nullptr;
    }
    const Ref number(number_from(object));
    if (!number) {
      if (PyErr_Occurred() == nullptr) PyErr_Format(PyExc_TypeError, "%R is neither an array nor a number", object);
      return false;
    }
    if (PyBool_Check(number.get()) != 0) {
      scalar.kind = COMPUTE_KIND_INT64;
      scalar.integer = number.get() == Py_True ? 1 : 0;
      return true;
    }
    if (!range.holds(number.get())) return false;
    scalar.tensor = weak_scalar(number.get());
    if (scalar.tensor == nullptr) return false;
    owned.push_back(scalar.tensor);
    return true;
  }
  [[nodiscard]] compute_stream* stream() const {
    return current_stream != nullptr && device != nullptr ? stream_for(device) : nullptr;
  }
};

/// map(inputs, scalars, out): `out` is None or a tuple of arrays. Returns a tuple.
PyObject* expression_map(PyObject* self, PyObject* args) {
  PyObject *input_list = nullptr, *scalar_list = nullptr, *out = nullptr;
  ExpressionCall call;
  if (PyArg_ParseTuple(args, "OOO", &input_list, &scalar_list, &out) == 0 || !call.read(input_list, scalar_list)) {
    return nullptr;
  }
  auto* const expression = handle_of<compute_expression>(self);
  std::vector<compute_tensor*> outputs(static_cast<size_t>(compute_expression_output_count(expression)));
  for (size_t i = 0; out != Py_None && i < outputs.size(); ++i) {
    PyObject* const one = PyTuple_GetItem(out, static_cast<Py_ssize_t>(i));
    if (one == nullptr || (outputs[i] = tensor_from(one, "out")) == nullptr) return nullptr;
    note_write(outputs[i]);
  }
  compute_error* error = nullptr;
  {
    const ProgramLine line;
    const Unlocked unlocked;
    error = compute_map(call.stream(), expression, call.inputs.data(), static_cast<int64_t>(call.inputs.size()),
                        call.scalars.data(), static_cast<int64_t>(call.scalars.size()), outputs.data(),
                        static_cast<int64_t>(outputs.size()));
  }
  if (!succeeded(error)) return nullptr;
  if (out != Py_None) return Ref::share(out).release();
  Ref tuple(PyTuple_New(static_cast<Py_ssize_t>(outputs.size())));
  for (size_t i = 0; tuple && i < outputs.size(); ++i) {
    PyObject* const array = array_object(outputs[i]);
    if (array == nullptr || PyTuple_SetItem(tuple.get(), static_cast<Py_ssize_t>(i), array) < 0) return nullptr;
  }
  return tuple.release();
}

/// 0, which the library refuses, if there is no such reduction.
int32_t reduction_from(std::string_view kind) {
  constexpr std::pair<std::string_view, int32_t> kReductions[] = {
      {"sum", COMPUTE_REDUCTION_SUM}, {"prod", COMPUTE_REDUCTION_PROD}, {"min", COMPUTE_REDUCTION_MIN},
      {"max", COMPUTE_REDUCTION_MAX}, {"all", COMPUTE_REDUCTION_ALL},   {"any", COMPUTE_REDUCTION_ANY}};
  for (const auto& [name, reduction] : kReductions) {
    if (kind == name) return reduction;
  }
  return 0;
}

/// reduce(kind, inputs, scalars, axes or None, keepdims, after or None)
PyObject* expression_reduce(PyObject* self, PyObject* args) {
  const char* kind = nullptr;
  PyObject *input_list = nullptr, *scalar_list = nullptr, *axes = nullptr, *after = nullptr;
  int keepdims = 0;
  ExpressionCall call;
  if (PyArg_ParseTuple(args, "sOOOpO", &kind, &input_list, &scalar_list, &axes, &keepdims, &after) == 0 ||
      !call.read(input_list, scalar_list)) {
    return nullptr;
  }
  const int32_t reduction = reduction_from(kind);
  compute_reduce_options options{};
  options.struct_size = sizeof options;
  std::vector<int64_t> axis_list;
  if (axes != Py_None) {
    axis_list.reserve(1);  // without axes too, the pointer is not NULL, which means all
    if (!integers_from(axes, axis_list)) return nullptr;
    options.axes = axis_list.data();
    options.axes_count = static_cast<int64_t>(axis_list.size());
  }
  if (after != Py_None) options.after = handle_of<compute_expression>(after);
  options.keepdims = keepdims;
  compute_tensor* output = nullptr;
  compute_error* error = nullptr;
  {
    const ProgramLine line;
    const Unlocked unlocked;
    error = compute_reduce(call.stream(), handle_of<compute_expression>(self), reduction, &options, call.inputs.data(),
                           static_cast<int64_t>(call.inputs.size()), call.scalars.data(),
                           static_cast<int64_t>(call.scalars.size()), &output);
  }
  return succeeded(error) ? array_object(output) : nullptr;
}

PyObject* expression_counts(PyObject* self, PyObject*) {
  auto* const expression = handle_of<compute_expression>(self);
  return Py_BuildValue("(iii)", static_cast<int>(compute_expression_input_count(expression)),
                       static_cast<int>(compute_expression_scalar_count(expression)),
                       static_cast<int>(compute_expression_output_count(expression)));
}

// ---- Kernels --------------------------------------------------------------------------------------------------------

/// kernel(device, language, source, name, compiler options or None)
PyObject* compile_kernel(PyObject*, PyObject* args) {
  PyObject* device_argument = nullptr;
  const char *language = nullptr, *source = nullptr, *name = nullptr, *compiler_options = nullptr;
  if (PyArg_ParseTuple(args, "Osssz", &device_argument, &language, &source, &name, &compiler_options) == 0) {
    return nullptr;
  }
  compute_device* const device = device_from(device_argument);
  if (device == nullptr) return nullptr;
  compute_kernel_options options{};
  options.struct_size = sizeof options;
  options.compiler_options = compiler_options;
  options.compiler_options_size = compiler_options != nullptr ? -1 : 0;
  compute_kernel* kernel = nullptr;
  compute_error* error = nullptr;
  {
    const ProgramLine line;
    const Unlocked unlocked;
    error = compute_kernel_compile(device, language, source, -1, name, &options, &kernel);
  }
  return wrap(state.kernel_type, error, kernel, compute_kernel_release);
}

bool three_from(PyObject* object, int64_t* out) {
  std::vector<int64_t> list;
  if (!integers_from(object, list)) return false;
  if (list.empty() || list.size() > 3) {
    PyErr_SetString(PyExc_ValueError, "a launch has 1 to 3 axes");
    return false;
  }
  for (size_t i = 0; i < 3; ++i) out[i] = i < list.size() ? list[i] : 1;
  return true;
}

/// launch(groups, group_size, local_memory_bytes, arguments): an argument is (array, access) or bytes.
PyObject* kernel_launch(PyObject* self, PyObject* args) {
  PyObject *groups = nullptr, *group_size = nullptr, *list = nullptr;
  long long local_memory_bytes = 0;
  compute_launch launch{};
  launch.struct_size = sizeof launch;
  if (PyArg_ParseTuple(args, "OOLO", &groups, &group_size, &local_memory_bytes, &list) == 0 ||
      !three_from(groups, launch.groups) || !three_from(group_size, launch.group_size)) {
    return nullptr;
  }
  launch.local_memory_bytes = local_memory_bytes;
  std::vector<compute_kernel_argument> arguments;
  for (Py_ssize_t i = 0; i < PySequence_Size(list); ++i) {
    const Ref item(PySequence_GetItem(list, i));  // the list keeps it alive
    if (!item) return nullptr;
    compute_kernel_argument argument{};
    argument.struct_size = sizeof argument;
    if (PyTuple_Check(item.get()) != 0) {
      PyObject* array = nullptr;
      if (PyArg_ParseTuple(item.get(), "O!i", state.array_type, &array, &argument.access) == 0) return nullptr;
      argument.kind = COMPUTE_ARGUMENT_TENSOR;
      argument.tensor = tensor_of(array);
      if (argument.tensor == nullptr) return nullptr;
      if ((argument.access & COMPUTE_ACCESS_WRITE) != 0) note_write(argument.tensor);
    } else {
      char* data = nullptr;
      Py_ssize_t size = 0;
      if (PyBytes_AsStringAndSize(item.get(), &data, &size) < 0) return nullptr;
      argument.kind = COMPUTE_ARGUMENT_VALUE;
      argument.value = data;
      argument.value_size = size;
    }
    arguments.push_back(argument);
  }
  compute_device* const device =
      !arguments.empty() && arguments[0].tensor != nullptr ? compute_tensor_device(arguments[0].tensor) : nullptr;
  compute_error* error = nullptr;
  {
    const ProgramLine line;
    const Unlocked unlocked;
    error = compute_kernel_launch(handle_of<compute_kernel>(self), device != nullptr ? stream_for(device) : nullptr,
                                  &launch, arguments.data(), static_cast<int64_t>(arguments.size()));
  }
  if (!succeeded(error)) return nullptr;
  Py_RETURN_NONE;
}

// ---- Graphs ---------------------------------------------------------------------------------------------------------

PyObject* begin_graph(PyObject*, PyObject* stream) {
  if (Py_TYPE(stream) != state.stream_type) return PyErr_Format(PyExc_TypeError, "%R is not a Stream", stream);
  if (!succeeded(compute_graph_begin(handle_of<compute_stream>(stream), nullptr))) return nullptr;
  Py_RETURN_NONE;
}
PyObject* end_graph(PyObject*, PyObject* stream) {
  if (Py_TYPE(stream) != state.stream_type) return PyErr_Format(PyExc_TypeError, "%R is not a Stream", stream);
  compute_graph* graph = nullptr;
  compute_error* const error = compute_graph_end(handle_of<compute_stream>(stream), &graph);
  return wrap(state.graph_type, error, graph, compute_graph_release);
}
PyObject* graph_run(PyObject* self, PyObject* stream) {
  compute_stream* const handle = stream != Py_None ? handle_of<compute_stream>(stream) : nullptr;
  compute_error* error = nullptr;
  {
    const ProgramLine line;
    const Unlocked unlocked;
    error = compute_graph_run(handle_of<compute_graph>(self), handle);
  }
  if (!succeeded(error)) return nullptr;
  Py_RETURN_NONE;
}
PyObject* graph_set_slot(PyObject* self, PyObject* args) {
  PyObject *slot = nullptr, *value = nullptr;
  char* data = nullptr;
  Py_ssize_t size = 0;
  if (PyArg_ParseTuple(args, "O!O", state.array_type, &slot, &value) == 0 ||
      PyBytes_AsStringAndSize(value, &data, &size) < 0) {
    return nullptr;
  }
  compute_tensor* const tensor = tensor_of(slot);
  if (tensor == nullptr) return nullptr;
  if (size != compute_tensor_size_bytes(tensor)) {
    return PyErr_Format(PyExc_ValueError, "the value does not have the size of the slot's dtype");
  }
  if (!succeeded(compute_graph_set_slot(handle_of<compute_graph>(self), tensor, data))) return nullptr;
  Py_RETURN_NONE;
}
PyObject* graph_info(PyObject* self, PyObject*) {
  compute_graph_info info{};
  info.struct_size = sizeof info;
  if (!succeeded(compute_graph_get_info(handle_of<compute_graph>(self), &info))) return nullptr;
  return Py_BuildValue("{s:L,s:L,s:O}", "nodes", static_cast<long long>(info.nodes), "temporary_bytes",
                       static_cast<long long>(info.temporary_bytes), "native", info.native != 0 ? Py_True : Py_False);
}

PyMethodDef expression_methods[] = {{"map", expression_map, METH_VARARGS, nullptr},
                                    {"reduce", expression_reduce, METH_VARARGS, nullptr},
                                    {"gradient", expression_gradient, METH_O, nullptr},
                                    {"counts", expression_counts, METH_NOARGS, nullptr},
                                    {}};
PyMethodDef kernel_methods[] = {{"launch", kernel_launch, METH_VARARGS, nullptr}, {}};
PyMethodDef graph_methods[] = {{"run", graph_run, METH_O, nullptr},
                               {"set_slot", graph_set_slot, METH_VARARGS, nullptr},
                               {"info", graph_info, METH_NOARGS, nullptr},
                               {}};
PyMethodDef functions[] = {{"expression", parse_expression, METH_VARARGS, nullptr},
                           {"kernel", compile_kernel, METH_VARARGS, nullptr},
                           {"begin_graph", begin_graph, METH_O, nullptr},
                           {"end_graph", end_graph, METH_O, nullptr},
                           {}};

}  // namespace

bool add_programs(PyObject* module) {
  const auto release_expression = dealloc<compute_expression, compute_expression_release>;
  const auto release_kernel = dealloc<compute_kernel, compute_kernel_release>;
  const auto release_graph = dealloc<compute_graph, compute_graph_release>;
  state.expression_type =
      add_type(module, "compute._core.Expression", sizeof(ExpressionObject), Py_TPFLAGS_DISALLOW_INSTANTIATION,
               {{Py_tp_dealloc, reinterpret_cast<void*>(release_expression)}, {Py_tp_methods, expression_methods}});
  state.kernel_type =
      add_type(module, "compute._core.Kernel", sizeof(KernelObject), Py_TPFLAGS_DISALLOW_INSTANTIATION,
               {{Py_tp_dealloc, reinterpret_cast<void*>(release_kernel)}, {Py_tp_methods, kernel_methods}});
  state.graph_type =
      add_type(module, "compute._core.Graph", sizeof(GraphObject), Py_TPFLAGS_DISALLOW_INSTANTIATION,
               {{Py_tp_dealloc, reinterpret_cast<void*>(release_graph)}, {Py_tp_methods, graph_methods}});
  return state.expression_type != nullptr && state.kernel_type != nullptr && state.graph_type != nullptr &&
         PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace compute_python
