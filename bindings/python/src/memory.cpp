// SPDX-License-Identifier: Apache-2.0
//
// Elements that come from and go to Python: new arrays, copies, views and the buffer protocol.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>

#include "module.hpp"

namespace compute_python {

volatile int garbage_waits = 0;

namespace {

// ---- Garbage --------------------------------------------------------------------------------------------------------
//
// The library calls deleters on any thread, perhaps inside a call that holds its locks. A deleter that waited for the
// interpreter there could deadlock. So deleters only queue objects to free.

struct Garbage {
  void (*free)(void*);
  void* object;
};
std::mutex garbage_mutex;
std::vector<Garbage>* garbage = new std::vector<Garbage>;  // for good: deleters may run after static destructors

int collect_pending(void*) {
  collect_garbage();
  return 0;
}

// ---- New arrays -----------------------------------------------------------------------------------------------------

/// What creation functions have in common: dtype, shape and device.
struct Spec {
  compute_dtype dtype = COMPUTE_DTYPE_NONE;
  std::vector<int64_t> shape;
  compute_device* device = nullptr;

  bool read(PyObject* shape_object, PyObject* dtype_object, PyObject* device_object) {
    if (!integers_from(shape_object, shape)) return false;
    if ((dtype = dtype_from(dtype_object)) == COMPUTE_DTYPE_NONE) return false;
    return (device = device_from(device_object)) != nullptr;
  }
  [[nodiscard]] int32_t rank() const { return static_cast<int32_t>(shape.size()); }
};

/// empty(shape, dtype, device)
PyObject* empty(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 3) return PyErr_Format(PyExc_TypeError, "empty takes 3 arguments");
  Spec spec;
  if (!spec.read(args[0], args[1], args[2])) return nullptr;
  compute_tensor* tensor = nullptr;
  const ProgramLine line;
  if (!succeeded(compute_tensor_empty(spec.device, spec.dtype, spec.rank(), spec.shape.data(), &tensor)))
    return nullptr;
  return array_object(tensor);
}

/// scalar(value bytes, dtype, weak): an operand of rank 0 without memory; or a slot of a graph if value is None.
PyObject* scalar(PyObject*, PyObject* args) {
  PyObject *value = nullptr, *dtype_argument = nullptr;
  int weak = 0;
  if (PyArg_ParseTuple(args, "OOi", &value, &dtype_argument, &weak) == 0) return nullptr;
  const compute_dtype dtype = dtype_from(dtype_argument);
  if (dtype == COMPUTE_DTYPE_NONE) return nullptr;
  compute_tensor* tensor = nullptr;
  const ProgramLine line;
  if (value == Py_None) {
    if (!succeeded(compute_tensor_slot(dtype, &tensor))) return nullptr;
    return array_object(tensor);
  }
  char* data = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(value, &data, &size) < 0) return nullptr;
  if (size != compute_dtype_size(dtype)) return PyErr_Format(PyExc_ValueError, "a value has the size of its dtype");
  return succeeded(compute_tensor_scalar(dtype, data, weak, &tensor)) ? array_object(tensor) : nullptr;
}

/// A contiguous buffer of another object, held for a call.
class HeldBuffer {
 public:
  HeldBuffer(PyObject* object, int flags) : held_(PyObject_GetBuffer(object, &view_, flags) == 0) {}
  HeldBuffer(const HeldBuffer&) = delete;
  HeldBuffer& operator=(const HeldBuffer&) = delete;
  ~HeldBuffer() {
    if (held_) PyBuffer_Release(&view_);
  }
  explicit operator bool() const { return held_; }
  [[nodiscard]] const Py_buffer& view() const { return view_; }

 private:
  Py_buffer view_{};
  bool held_;
};

/// from_bytes(buffer, shape, dtype, device): a copy of the row-major elements of a contiguous buffer.
PyObject* from_bytes(PyObject*, PyObject* args) {
  PyObject *object = nullptr, *shape = nullptr, *dtype = nullptr, *device = nullptr;
  Spec spec;
  if (PyArg_ParseTuple(args, "OOOO", &object, &shape, &dtype, &device) == 0) return nullptr;
  const HeldBuffer buffer(object, PyBUF_SIMPLE);
  if (!buffer || !spec.read(shape, dtype, device)) return nullptr;
  int64_t size = compute_dtype_size(spec.dtype);
  bool fits = true;
  for (const int64_t extent : spec.shape) fits = fits && !__builtin_mul_overflow(size, extent, &size);
  if (fits && size != buffer.view().len) {
    return PyErr_Format(PyExc_ValueError, "the buffer has %zd bytes, the array %lld", buffer.view().len,
                        static_cast<long long>(size));
  }
  compute_tensor* tensor = nullptr;
  compute_error* error = nullptr;
  {
    const ProgramLine line;
    const Unlocked unlocked;
    error =
        compute_tensor_from_host(spec.device, spec.dtype, spec.rank(), spec.shape.data(), buffer.view().buf, &tensor);
  }
  return succeeded(error) ? array_object(tensor) : nullptr;
}

/// read_into(array, buffer): copies the elements to a contiguous writable buffer, in row-major order.
PyObject* read_into(PyObject*, PyObject* args) {
  PyObject *array = nullptr, *object = nullptr;
  if (PyArg_ParseTuple(args, "OO", &array, &object) == 0) return nullptr;
  compute_tensor* const tensor = tensor_from(array, "read_into");
  if (tensor == nullptr || !has_value(tensor)) return nullptr;
  const HeldBuffer buffer(object, PyBUF_WRITABLE);
  if (!buffer || !wait_interruptibly(compute_tensor_device(tensor))) return nullptr;
  compute_error* error = nullptr;
  {
    const ProgramLine line;
    const Unlocked unlocked;
    error = compute_tensor_read(tensor, buffer.view().buf, static_cast<int64_t>(buffer.view().len));
  }
  if (!succeeded(error)) return nullptr;
  Py_RETURN_NONE;
}

PyObject* to_device(PyObject*, PyObject* args) {
  PyObject *array = nullptr, *device_argument = nullptr;
  if (PyArg_ParseTuple(args, "OO", &array, &device_argument) == 0) return nullptr;
  compute_tensor* const tensor = tensor_from(array, "to_device");
  compute_device* const device = tensor != nullptr ? device_from(device_argument) : nullptr;
  if (device == nullptr) return nullptr;
  compute_tensor* moved = nullptr;
  compute_error* error = nullptr;
  {
    const ProgramLine line;
    const Unlocked unlocked;
    error = compute_tensor_to_device(tensor, device, &moved);
  }
  return succeeded(error) ? array_object(moved) : nullptr;
}

/// copy_implicitly(array, device): an array of the host on a device, by a transfer that counts as an implicit one.
PyObject* copy_implicitly(PyObject*, PyObject* args) {
  static const compute_op* op = nullptr;
  PyObject *array = nullptr, *device_argument = nullptr;
  if (PyArg_ParseTuple(args, "OO", &array, &device_argument) == 0) return nullptr;
  compute_tensor* const tensor = tensor_from(array, "copy_implicitly");
  const Ref device(tensor != nullptr ? device_object(device_from(device_argument)) : nullptr);
  if (!device || (op == nullptr && !succeeded(compute_op_find("copy", 0, &op)))) return nullptr;
  const auto& place = *reinterpret_cast<DeviceObject*>(device.get());
  compute_stream* const current = stream_for(place.handle);
  compute_tensor* copy = nullptr;
  compute_error* error = nullptr;
  {
    const ProgramLine line;
    const Unlocked unlocked;
    error = compute_op_run(op, current != nullptr ? current : place.default_, nullptr, 0, &tensor, 1, &copy, 1);
  }
  return succeeded(error) ? array_object(copy) : nullptr;
}

PyObject* synchronize(PyObject*, PyObject* array) {
  compute_tensor* const tensor = tensor_from(array, "synchronize");
  if (tensor == nullptr || !wait_interruptibly(compute_tensor_device(tensor))) return nullptr;
  compute_error* error = nullptr;
  {
    const ProgramLine line;
    const Unlocked unlocked;
    error = compute_tensor_synchronize(tensor);
  }
  if (!succeeded(error)) return nullptr;
  Py_RETURN_NONE;
}

// ---- Views ----------------------------------------------------------------------------------------------------------

using ShapeView = compute_error* (*)(compute_tensor*, int32_t, const int64_t*, compute_tensor**);
const char* name_of(ShapeView view) { return view == compute_tensor_reshape ? "reshape_view" : "broadcast_view"; }

/// reshape_view(array, shape), broadcast_view(array, shape), permute_view(array, axes); reshape_view_or_none(array,
/// shape), which is None where reshape_view raises NotImplementedError: an exception takes 100 times as long as a view.
template <ShapeView kView, bool kOrNone = false>
PyObject* shape_view(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count == 2 && !is_array(args[0])) {
    return call_hook("dispatch", "(s(OO)())", kOrNone ? "reshape_view_or_none" : name_of(kView), args[0], args[1]);
  }
  compute_tensor* const tensor = count == 2 ? tensor_from(args[0], "the function") : nullptr;
  std::vector<int64_t> shape;
  if (tensor == nullptr || !integers_from(args[1], shape)) return nullptr;
  compute_tensor* view = nullptr;
  const ProgramLine line;
  compute_error* const error = kView(tensor, static_cast<int32_t>(shape.size()), shape.data(), &view);
  if (kOrNone && error != nullptr && compute_error_get_code(error) == COMPUTE_ERROR_UNSUPPORTED) {
    compute_error_free(error);
    Py_RETURN_NONE;
  }
  return succeeded(error) ? array_object(view) : nullptr;
}
constexpr auto reshape_view_or_none = shape_view<compute_tensor_reshape, true>;

PyObject* permute_view(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count == 2 && !is_array(args[0])) return call_hook("dispatch", "(s(OO)())", "permute_view", args[0], args[1]);
  compute_tensor* const tensor = count == 2 ? tensor_from(args[0], "permute_dims") : nullptr;
  std::vector<int64_t> list;
  if (tensor == nullptr || !integers_from(args[1], list)) return nullptr;
  const std::vector<int32_t> axes(list.begin(), list.end());
  compute_tensor* view = nullptr;
  const ProgramLine line;
  compute_error* const error = compute_tensor_permute(tensor, static_cast<int32_t>(axes.size()), axes.data(), &view);
  return succeeded(error) ? array_object(view) : nullptr;
}
/// strided_view(array, dtype, shape, strides, offset in bytes from the array's own element 0)
PyObject* strided_view(PyObject*, PyObject* args) {
  PyObject *array = nullptr, *dtype_argument = nullptr, *shape_argument = nullptr, *strides_argument = nullptr;
  long long offset_bytes = 0;
  if (PyArg_ParseTuple(args, "OOOOL", &array, &dtype_argument, &shape_argument, &strides_argument, &offset_bytes) ==
      0) {
    return nullptr;
  }
  compute_tensor* const tensor = tensor_from(array, "strided_view");
  std::vector<int64_t> shape, strides;
  if (tensor == nullptr || !integers_from(shape_argument, shape) || !integers_from(strides_argument, strides)) {
    return nullptr;
  }
  const compute_dtype dtype = dtype_from(dtype_argument);
  if (dtype == COMPUTE_DTYPE_NONE) return nullptr;
  if (strides.size() != shape.size()) return PyErr_Format(PyExc_ValueError, "each extent needs a stride");
  compute_tensor* view = nullptr;
  const ProgramLine line;
  compute_error* const error =
      compute_tensor_view(tensor, dtype, static_cast<int32_t>(shape.size()), shape.data(), strides.data(),
                          compute_tensor_offset_bytes(tensor) + offset_bytes, &view);
  return succeeded(error) ? array_object(view) : nullptr;
}

// ---- The buffer protocol --------------------------------------------------------------------------------------------

/// What a buffer that an array exports points to.
struct Exported {
  Py_ssize_t shape[COMPUTE_MAX_RANK];
  Py_ssize_t strides[COMPUTE_MAX_RANK];
  void* mapped;
};

const char* format_of(compute_dtype dtype) {
  // NumPy's int64 is long where that has 64 bits; extensions tell it from long long.
  constexpr bool kLong = sizeof(long) == 8;
  constexpr const char* kFormats[] = {
      nullptr, "?", "b", "h",  "i",  kLong ? "l" : "q", "B",    "H", "I", kLong ? "L" : "Q", "e",
      nullptr, "f", "d", "Zf", "Zd", nullptr,           nullptr};
  return kFormats[dtype];
}

void free_buffer(void* object) {
  auto* const view = static_cast<Py_buffer*>(object);
  PyBuffer_Release(view);
  delete view;
}
void return_buffer(void*, void* user_data) { return_garbage(free_buffer, user_data); }

/// The layout of a buffer. Exporters may leave out what follows from the rest: ctypes, for one, gives no strides.
struct Layout {
  compute_dtype dtype;
  std::vector<int64_t> shape, strides;
  bool is_shareable;  // with strides in elements

  explicit Layout(const Py_buffer& view)
      : dtype(dtype_of_format(view.format, view.itemsize)), is_shareable(view.suboffsets == nullptr) {
    if (dtype == COMPUTE_DTYPE_NONE) return;  // such elements may have no size
    const auto rank = static_cast<size_t>(view.ndim);
    shape.assign(rank, view.len / view.itemsize);
    if (view.shape != nullptr) std::copy_n(view.shape, rank, shape.begin());
    strides.assign(rank, 1);
    for (size_t i = rank; i-- > 1;) strides[i - 1] = strides[i] * shape[i];
    for (size_t i = 0; view.strides != nullptr && i < rank; ++i) {
      is_shareable = is_shareable && view.strides[i] % view.itemsize == 0;
      strides[i] = view.strides[i] / view.itemsize;
    }
  }
  [[nodiscard]] int32_t rank() const { return static_cast<int32_t>(shape.size()); }
};

/// Gets a buffer of any layout; one that may be written, if there is one.
bool get_buffer(PyObject* object, Py_buffer* view) {
  if (PyObject_GetBuffer(object, view, PyBUF_FULL) == 0) return true;
  PyErr_Clear();
  return PyObject_GetBuffer(object, view, PyBUF_FULL_RO) == 0;
}

PyObject* refuse_format(const Py_buffer& view, PyObject* kind) {
  return PyErr_Format(kind, "no array can share the memory of a buffer of the format '%s'",
                      view.format != nullptr ? view.format : "B");
}

char nothing;  // buffers without elements may have no address

/// wrap_buffer(object): a host array over the memory of an object with the buffer protocol. BufferError for elements
/// that no array has, NotImplementedError where only a copy can have them.
PyObject* wrap_buffer(PyObject*, PyObject* object) {
  auto view = std::make_unique<Py_buffer>();
  if (!get_buffer(object, view.get())) return nullptr;
  const Layout layout(*view);
  if (layout.dtype == COMPUTE_DTYPE_NONE || !layout.is_shareable) {
    refuse_format(*view, layout.dtype == COMPUTE_DTYPE_NONE ? PyExc_BufferError : PyExc_NotImplementedError);
    PyBuffer_Release(view.get());
    return nullptr;
  }
  compute_tensor* tensor = nullptr;
  const ProgramLine line;
  compute_error* const error = compute_tensor_wrap_host(
      layout.dtype, layout.rank(), layout.shape.data(), layout.strides.data(),
      view->buf != nullptr ? view->buf : &nothing, view->readonly != 0 ? COMPUTE_WRAP_IMMUTABLE : COMPUTE_WRAP_EXPOSED,
      return_buffer, view.get(), &tensor);
  Py_buffer* const kept = view.release();
  if (error != nullptr) free_buffer(kept);
  return succeeded(error) ? array_object(tensor) : nullptr;
}

/// copy_buffer(object): a host array with the elements of an object with the buffer protocol, in any layout.
PyObject* copy_buffer(PyObject*, PyObject* object) {
  Py_buffer view{};
  if (!get_buffer(object, &view)) return nullptr;
  const Layout layout(view);
  compute_device* const cpu = device_from(Ref(PyUnicode_FromString("cpu")).get());
  const ProgramLine line;
  compute_tensor* tensor = nullptr;
  void* data = nullptr;
  int32_t is_copy = 0;
  bool done = false;
  if (layout.dtype == COMPUTE_DTYPE_NONE) {
    refuse_format(view, PyExc_BufferError);
  } else if (cpu != nullptr &&
             succeeded(compute_tensor_empty(cpu, layout.dtype, layout.rank(), layout.shape.data(), &tensor)) &&
             succeeded(compute_tensor_map(tensor, COMPUTE_ACCESS_WRITE, &data, &is_copy))) {
    done = view.len == 0 || PyBuffer_ToContiguous(data, &view, view.len, 'C') == 0;
    compute_error_free(compute_tensor_unmap(tensor, data));
  }
  PyBuffer_Release(&view);
  if (done) return array_object(tensor);
  compute_tensor_release(tensor);
  return nullptr;
}

bool is_row_major(const Py_buffer& view) {
  Py_ssize_t expected = view.itemsize;
  for (int i = view.ndim - 1; i >= 0; --i) {
    if (view.shape[i] != 1 && view.strides[i] != expected && view.len != 0) return false;
    expected *= view.shape[i];
  }
  return true;
}

int refuse(Py_buffer* view, const char* reason) {
  view->obj = nullptr;
  PyErr_SetString(PyExc_BufferError, reason);
  return -1;
}

/// Maps the memory for reading and writing, or for reading if it must not be written.
bool map_memory(compute_tensor* tensor, Exported& exported, bool writable, bool& readonly) {
  int32_t is_copy = 0;
  readonly = false;
  compute_error* error =
      compute_tensor_map(tensor, COMPUTE_ACCESS_READ | COMPUTE_ACCESS_WRITE, &exported.mapped, &is_copy);
  if (error != nullptr && !writable) {
    compute_error_free(error);
    readonly = true;
    error = compute_tensor_map(tensor, COMPUTE_ACCESS_READ, &exported.mapped, &is_copy);
  }
  return succeeded(error);
}

/// address_of(buffer): the address of its first byte.
PyObject* address_of(PyObject*, PyObject* object) {
  const HeldBuffer buffer(object, PyBUF_FULL_RO);
  return buffer ? PyLong_FromVoidPtr(buffer.view().buf) : nullptr;
}

PyObject* shares_memory(PyObject*, PyObject* args) {
  PyObject *a = nullptr, *b = nullptr;
  if (PyArg_ParseTuple(args, "O!O!", state.array_type, &a, state.array_type, &b) == 0) return nullptr;
  return PyBool_FromLong(compute_tensor_shares_buffer(source_of(a), source_of(b)));
}

PyObject* is_same_view(PyObject*, PyObject* args) {
  PyObject *a = nullptr, *b = nullptr;
  if (PyArg_ParseTuple(args, "O!O!", state.array_type, &a, state.array_type, &b) == 0) return nullptr;
  const compute_tensor *const x = tensor_of(a), *const y = x != nullptr ? tensor_of(b) : nullptr;
  if (y == nullptr) return nullptr;
  const int32_t rank = compute_tensor_rank(x);
  const auto are_alike = [rank](const int64_t* p, const int64_t* q) { return std::equal(p, p + rank, q); };
  return PyBool_FromLong(compute_tensor_shares_buffer(x, y) != 0 && rank == compute_tensor_rank(y) &&
                         compute_tensor_dtype(x) == compute_tensor_dtype(y) &&
                         compute_tensor_offset_bytes(x) == compute_tensor_offset_bytes(y) &&
                         are_alike(compute_tensor_shape(x), compute_tensor_shape(y)) &&
                         are_alike(compute_tensor_strides(x), compute_tensor_strides(y)));
}

PyMethodDef functions[] = {{"empty", function(empty), METH_FASTCALL, nullptr},
                           {"scalar", scalar, METH_VARARGS, nullptr},
                           {"from_bytes", from_bytes, METH_VARARGS, nullptr},
                           {"read_into", read_into, METH_VARARGS, nullptr},
                           {"to_device", to_device, METH_VARARGS, nullptr},
                           {"copy_implicitly", copy_implicitly, METH_VARARGS, nullptr},
                           {"synchronize", synchronize, METH_O, nullptr},
                           {"reshape_view", function(shape_view<compute_tensor_reshape>), METH_FASTCALL, nullptr},
                           {"reshape_view_or_none", function(reshape_view_or_none), METH_FASTCALL, nullptr},
                           {"broadcast_view", function(shape_view<compute_tensor_broadcast>), METH_FASTCALL, nullptr},
                           {"permute_view", function(permute_view), METH_FASTCALL, nullptr},
                           {"strided_view", strided_view, METH_VARARGS, nullptr},
                           {"wrap_buffer", wrap_buffer, METH_O, nullptr},
                           {"copy_buffer", copy_buffer, METH_O, nullptr},
                           {"address_of", address_of, METH_O, nullptr},
                           {"shares_memory", shares_memory, METH_VARARGS, nullptr},
                           {"is_same_view", is_same_view, METH_VARARGS, nullptr},
                           {}};

}  // namespace

compute_dtype dtype_of_format(const char* format, Py_ssize_t size) {
  std::string_view text(format != nullptr ? format : "B");
  if (!text.empty() && (text[0] == '@' || text[0] == '=' || text[0] == '<')) text.remove_prefix(1);
  const auto sized = [size](compute_dtype first) {  // the integers of 1, 2, 4 and 8 bytes
    return size == 1 ? first : size == 2 ? first + 1 : size == 4 ? first + 2 : size == 8 ? first + 3 : 0;
  };
  const auto fixed = [size](compute_dtype dtype) {
    return size == compute_dtype_size(dtype) ? dtype : COMPUTE_DTYPE_NONE;
  };
  if (text == "Zf") return fixed(COMPUTE_DTYPE_COMPLEX64);
  if (text == "Zd") return fixed(COMPUTE_DTYPE_COMPLEX128);
  if (text.size() != 1) return COMPUTE_DTYPE_NONE;
  switch (text[0]) {
    case '?':
      return fixed(COMPUTE_DTYPE_BOOL);
    case 'e':
      return fixed(COMPUTE_DTYPE_FLOAT16);
    case 'f':
      return fixed(COMPUTE_DTYPE_FLOAT32);
    case 'd':
      return fixed(COMPUTE_DTYPE_FLOAT64);
    case 'F':  // of Python 3.14
      return fixed(COMPUTE_DTYPE_COMPLEX64);
    case 'D':
      return fixed(COMPUTE_DTYPE_COMPLEX128);
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n':
      return sized(COMPUTE_DTYPE_INT8);
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
    case 'N':
      return sized(COMPUTE_DTYPE_UINT8);
    default:
      return COMPUTE_DTYPE_NONE;
  }
}

void return_garbage(void (*free)(void*), void* object) {
  bool first = false;
  {
    const std::lock_guard lock(garbage_mutex);
    first = garbage->empty();
    garbage->push_back({free, object});
    garbage_waits = 1;
  }
  if (first && Py_IsInitialized() != 0) Py_AddPendingCall(collect_pending, nullptr);
}

void collect_garbage() {
  std::vector<Garbage> collected;
  {
    const std::lock_guard lock(garbage_mutex);
    collected.swap(*garbage);
    garbage_waits = 0;
  }
  for (const Garbage& one : collected) one.free(one.object);
}

int array_get_buffer(PyObject* self, Py_buffer* view, int flags) {
  compute_tensor* const tensor = tensor_of(self);
  if (tensor == nullptr) {
    view->obj = nullptr;
    return -1;
  }
  const compute_dtype dtype = compute_tensor_dtype(tensor);
  if (!is_cpu(compute_tensor_device(tensor))) return refuse(view, "the array is not on cpu; use to_device(\"cpu\")");
  if (format_of(dtype) == nullptr) return refuse(view, "buffers have no format for bfloat16 and float8");
  const ProgramLine line;
  auto exported = std::make_unique<Exported>();
  bool readonly = false;
  if (!map_memory(tensor, *exported, (flags & PyBUF_WRITABLE) != 0, readonly)) {
    view->obj = nullptr;
    return -1;
  }
  view->buf = exported->mapped != nullptr ? exported->mapped : &nothing;
  view->len = static_cast<Py_ssize_t>(compute_tensor_size_bytes(tensor));
  view->itemsize = static_cast<Py_ssize_t>(compute_dtype_size(dtype));
  view->readonly = readonly ? 1 : 0;
  view->ndim = compute_tensor_rank(tensor);
  for (int i = 0; i < view->ndim; ++i) {
    exported->shape[i] = static_cast<Py_ssize_t>(compute_tensor_shape(tensor)[i]);
    exported->strides[i] = static_cast<Py_ssize_t>(compute_tensor_strides(tensor)[i]) * view->itemsize;
  }
  view->shape = exported->shape;
  view->strides = exported->strides;
  view->suboffsets = nullptr;
  view->format = (flags & PyBUF_FORMAT) != 0 ? const_cast<char*>(format_of(dtype)) : nullptr;
  const bool row_major = is_row_major(*view);
  view->internal = exported.release();
  const bool takes_strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES;
  if (!row_major && (!takes_strides || (flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS)) {
    array_release_buffer(self, view);
    return refuse(view, "the elements of the array are not contiguous");
  }
  if (!takes_strides) view->strides = nullptr;
  if ((flags & PyBUF_ND) == 0) view->shape = nullptr;
  Py_INCREF(self);
  view->obj = self;
  return 0;
}

void array_release_buffer(PyObject* self, Py_buffer* view) {
  auto* const exported = static_cast<Exported*>(view->internal);
  if (compute_error* const error = compute_tensor_unmap(tensor_of(self), exported->mapped)) compute_error_free(error);
  delete exported;
}

bool add_memory(PyObject* module) { return PyModule_AddFunctions(module, functions) == 0; }

}  // namespace compute_python
