// SPDX-License-Identifier: Apache-2.0
//
// The type Array: attributes, conversion of single elements, and the methods of the standard that need no op.
#include <algorithm>
#include <cstring>

#include "module.hpp"

namespace compute_python {

namespace {

/// Objects of arrays that are gone, for the next ones: most arrays are short-lived. Guarded by the interpreter's lock.
/// None are kept under the address sanitizer, which is to see their use.
#ifdef __SANITIZE_ADDRESS__
constexpr int kKeptObjects = 0;
#else
constexpr int kKeptObjects = 32;
#endif
PyObject* kept_objects[kKeptObjects + 1];
int kept_count = 0;

PyObject* array_new(PyTypeObject*, PyObject*, PyObject*) {
  PyErr_SetString(PyExc_TypeError, "compute.Array has no constructor; use compute.asarray, compute.empty or the like");
  return nullptr;
}

void array_dealloc(PyObject* self) {
  auto* const array = reinterpret_cast<ArrayObject*>(self);
  PyTypeObject* const type = Py_TYPE(self);
  if (array->weak_references != nullptr) PyObject_ClearWeakRefs(self);
  compute_tensor_release(array->tensor);
  Py_XDECREF(array->shape);
  Py_XDECREF(array->base);
  if (kept_count < kKeptObjects) {
    kept_objects[kept_count++] = self;
  } else {
    static const auto release = reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free));
    release(self);
  }
  Py_DECREF(type);
  if (garbage_waits != 0) collect_garbage();
}

PyObject* integers(const int64_t* values, int32_t count) {
  PyObject* const tuple = PyTuple_New(count);
  for (int32_t i = 0; tuple != nullptr && i < count; ++i) {
    PyObject* const value = PyLong_FromLongLong(values[i]);
    if (value == nullptr || PyTuple_SetItem(tuple, i, value) < 0) {
      Py_DECREF(tuple);
      return nullptr;
    }
  }
  return tuple;
}

int32_t rank_of(PyObject* self) {
  const ArrayObject& array = *reinterpret_cast<ArrayObject*>(self);
  return array.tensor != nullptr ? compute_tensor_rank(array.tensor) : array.rank;
}
const int64_t* shape_of(PyObject* self) {
  const ArrayObject& array = *reinterpret_cast<ArrayObject*>(self);
  return array.tensor != nullptr ? compute_tensor_shape(array.tensor) : array.numbers;
}
int64_t count_of(PyObject* self) {
  const ArrayObject& array = *reinterpret_cast<ArrayObject*>(self);
  if (array.tensor != nullptr) return compute_tensor_element_count(array.tensor);
  int64_t count = 1;
  for (int32_t i = 0; i < array.rank; ++i) count *= array.numbers[i];
  return count;
}
compute_dtype dtype_of(PyObject* self) {
  const ArrayObject& array = *reinterpret_cast<ArrayObject*>(self);
  return array.rank != ArrayObject::kUnknown ? array.dtype : compute_tensor_dtype(array.tensor);
}

PyObject* array_shape(PyObject* self, void*) {
  PyObject*& shape = reinterpret_cast<ArrayObject*>(self)->shape;
  if (shape == nullptr) shape = integers(shape_of(self), rank_of(self));
  Py_XINCREF(shape);
  return shape;
}
PyObject* array_strides(PyObject* self, void*) {
  compute_tensor* const tensor = tensor_of(self);
  return tensor != nullptr ? integers(compute_tensor_strides(tensor), compute_tensor_rank(tensor)) : nullptr;
}
PyObject* array_dtype(PyObject* self, void*) {
  PyObject* const dtype = dtype_object(dtype_of(self));
  Py_INCREF(dtype);
  return dtype;
}
PyObject* array_device(PyObject* self, void*) { return device_object(compute_tensor_device(source_of(self))); }
PyObject* array_ndim(PyObject* self, void*) { return PyLong_FromLong(rank_of(self)); }
/// The number of elements: the value of the dict hooks["sizes"] for the extents, which hooks["size"] adds.
PyObject* array_size(PyObject* self, void*) {
  static PyObject* sizes = nullptr;
  if (sizes == nullptr) sizes = PyDict_GetItemString(state.hooks, "sizes");
  if (sizes == nullptr) return PyLong_FromLongLong(count_of(self));  // the package is being imported
  const Ref shape(array_shape(self, nullptr));
  PyObject* const known = shape ? PyDict_GetItemWithError(sizes, shape.get()) : nullptr;
  if (known != nullptr) return Ref::share(known).release();
  return PyErr_Occurred() == nullptr ? call_hook("size", "(LO)", static_cast<long long>(count_of(self)), shape.get())
                                     : nullptr;
}
PyObject* array_nbytes(PyObject* self, void*) {
  return PyLong_FromLongLong(count_of(self) * compute_dtype_size(dtype_of(self)));
}
PyObject* array_itemsize(PyObject* self, void*) { return PyLong_FromLongLong(compute_dtype_size(dtype_of(self))); }

/// The view with its last two axes exchanged.
PyObject* array_transposed(PyObject* self, void* only_matrices) {
  compute_tensor* const tensor = tensor_of(self);
  if (tensor == nullptr) return nullptr;
  const int32_t rank = compute_tensor_rank(tensor);
  if (only_matrices == nullptr && rank < 2) return Ref::share(self).release();
  if (rank < 2 || (only_matrices == nullptr && rank != 2)) {
    return PyErr_Format(PyExc_ValueError, "%s needs %s, not one with %d axes", only_matrices != nullptr ? "mT" : "T",
                        only_matrices != nullptr ? "an array with at least 2 axes" : "an array with at most 2 axes",
                        static_cast<int>(rank));
  }
  int32_t axes[COMPUTE_MAX_RANK];
  for (int32_t i = 0; i < rank; ++i) axes[i] = i;
  std::swap(axes[rank - 1], axes[rank - 2]);
  compute_tensor* view = nullptr;
  const ProgramLine line;
  return succeeded(compute_tensor_permute(tensor, rank, axes, &view)) ? array_object(view) : nullptr;
}

PyObject* array_label(PyObject* self, void*) {
  const compute_tensor* const tensor = reinterpret_cast<ArrayObject*>(self)->tensor;
  return PyUnicode_FromString(tensor != nullptr ? compute_tensor_label(tensor) : "");
}
int array_set_label(PyObject* self, PyObject* value, void*) {
  const Ref text(value != nullptr ? PyUnicode_AsUTF8String(value) : PyBytes_FromString(""));
  compute_tensor* const tensor = text ? tensor_of(self) : nullptr;
  if (tensor == nullptr) return -1;
  return succeeded(compute_tensor_set_label(tensor, PyBytes_AsString(text.get()))) ? 0 : -1;
}

template <class T>
T read_one(const unsigned char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

/// Reads the element of an array that has one, in general.
[[gnu::noinline]] bool read_slowly(const ArrayObject& array, compute_tensor* tensor, int32_t index_count,
                                   unsigned char (&bytes)[16]) {
  compute_device* const device = compute_tensor_device(tensor);
  if (!wait_interruptibly(device)) return false;
  const int64_t size = compute_dtype_size(compute_tensor_dtype(tensor));
  compute_error* error = nullptr;
  {
    const ProgramLine line;
    const Unlocked unlocked(!is_cpu(device));
    error = index_count > 0 ? compute_tensor_read_element(tensor, index_count, array.numbers, bytes, size)
                            : compute_tensor_read(tensor, bytes, size);
  }
  return succeeded(error);
}

/// The size of an element in bytes, without a call.
int64_t element_size(compute_dtype dtype) {
  constexpr uint8_t kSizes[] = {
      0,
#define COMPUTE_DTYPE(id, name, NAME, size_bytes, ...) size_bytes,
#define COMPUTE_STORED_DTYPE COMPUTE_DTYPE
#include <compute/dtypes.def>
#undef COMPUTE_DTYPE
  };
  return kSizes[dtype];
}

/// Reads the element of an array that has one.
inline bool read_only_element(PyObject* self, unsigned char (&bytes)[16]) {
  const ArrayObject& array = *reinterpret_cast<ArrayObject*>(self);
  const Ref base = Ref::share(array.base);  // another thread may give the element its tensor meanwhile
  if (!base || array.index_count == 0) {
    compute_tensor* const tensor = tensor_of(self);
    return tensor != nullptr && has_value(tensor) && read_slowly(array, tensor, 0, bytes);
  }
  compute_tensor* const tensor = source_of(self);
  int8_t& is_on_cpu = reinterpret_cast<ArrayObject*>(array.base)->is_on_cpu;
  if (is_on_cpu == ArrayObject::kUnknown) is_on_cpu = is_cpu(compute_tensor_device(tensor)) ? 1 : 0;
  if (is_on_cpu == 0 || current_stream != nullptr) return read_slowly(array, tensor, array.index_count, bytes);
  const ProgramLine line;
  return succeeded(
      compute_tensor_read_element(tensor, array.index_count, array.numbers, bytes, element_size(array.dtype)));
}

/// The element of an array that has one. float16, bfloat16 and float8 are bytes.
PyObject* only_element(PyObject* self) {
  unsigned char bytes[16];
  if (!read_only_element(self, bytes)) return nullptr;
  const compute_dtype dtype = dtype_of(self);
  switch (dtype) {
    case COMPUTE_DTYPE_BOOL:
      return PyBool_FromLong(bytes[0]);
    case COMPUTE_DTYPE_INT8:
      return PyLong_FromLong(read_one<int8_t>(bytes));
    case COMPUTE_DTYPE_INT16:
      return PyLong_FromLong(read_one<int16_t>(bytes));
    case COMPUTE_DTYPE_INT32:
      return PyLong_FromLong(read_one<int32_t>(bytes));
    case COMPUTE_DTYPE_INT64:
      return PyLong_FromLongLong(read_one<int64_t>(bytes));
    case COMPUTE_DTYPE_UINT8:
      return PyLong_FromLong(read_one<uint8_t>(bytes));
    case COMPUTE_DTYPE_UINT16:
      return PyLong_FromLong(read_one<uint16_t>(bytes));
    case COMPUTE_DTYPE_UINT32:
      return PyLong_FromUnsignedLong(read_one<uint32_t>(bytes));
    case COMPUTE_DTYPE_UINT64:
      return PyLong_FromUnsignedLongLong(read_one<uint64_t>(bytes));
    case COMPUTE_DTYPE_FLOAT32:
      return PyFloat_FromDouble(static_cast<double>(read_one<float>(bytes)));
    case COMPUTE_DTYPE_FLOAT64:
      return PyFloat_FromDouble(read_one<double>(bytes));
    case COMPUTE_DTYPE_COMPLEX64:
      return PyComplex_FromDoubles(static_cast<double>(read_one<float>(bytes)),
                                   static_cast<double>(read_one<float>(bytes + 4)));
    case COMPUTE_DTYPE_COMPLEX128:
      return PyComplex_FromDoubles(read_one<double>(bytes), read_one<double>(bytes + 8));
    default:
      return PyBytes_FromStringAndSize(reinterpret_cast<const char*>(bytes),
                                       static_cast<Py_ssize_t>(element_size(dtype)));
  }
}

/// read_element(array): the element of an array that has one.
PyObject* read_element(PyObject*, PyObject* object) {
  if (!is_array(object)) return PyErr_Format(PyExc_TypeError, "read_element needs a compute.Array");
  if (count_of(object) != 1) return PyErr_Format(PyExc_ValueError, "the array does not have exactly one element");
  return only_element(object);
}

/// The only element of an array, as a number of Python.
PyObject* element(PyObject* self) {
  if (count_of(self) != 1) {
    const Ref shape(array_shape(self, nullptr));
    return shape ? PyErr_Format(PyExc_TypeError, "only an array with one element can be converted to a number, not %S",
                                shape.get())
                 : nullptr;
  }
  Ref value(only_element(self));
  if (!value || PyFloat_CheckExact(value.get()) != 0 || PyBytes_Check(value.get()) == 0) return value.release();
  return call_hook("half", "(OO)", self, value.get());  // float16, bfloat16, float8
}

int array_bool(PyObject* self) {
  if (count_of(self) != 1) {
    const Ref shape(array_shape(self, nullptr));
    if (shape)
      PyErr_Format(PyExc_TypeError, "an array of the shape %S is neither true nor false; use any() or all()",
                   shape.get());
    return -1;
  }
  const Ref number(element(self));
  return number ? PyObject_IsTrue(number.get()) : -1;
}
PyObject* array_float(PyObject* self) {
  const compute_dtype dtype = dtype_of(self);
  if ((dtype == COMPUTE_DTYPE_FLOAT32 || dtype == COMPUTE_DTYPE_FLOAT64) && count_of(self) == 1) {
    unsigned char bytes[16];
    if (!read_only_element(self, bytes)) return nullptr;
    return PyFloat_FromDouble(dtype == COMPUTE_DTYPE_FLOAT64 ? read_one<double>(bytes)
                                                             : static_cast<double>(read_one<float>(bytes)));
  }
  Ref number(element(self));
  if (number && PyFloat_CheckExact(number.get()) != 0) return number.release();
  return number ? PyNumber_Float(number.get()) : nullptr;
}
PyObject* array_int(PyObject* self) {
  const Ref number(element(self));
  return number ? PyNumber_Long(number.get()) : nullptr;
}
PyObject* array_index(PyObject* self) {
  const compute_dtype dtype = dtype_of(self);
  if (dtype < COMPUTE_DTYPE_INT8 || dtype > COMPUTE_DTYPE_UINT64 || rank_of(self) != 0) {
    PyErr_SetString(PyExc_TypeError, "only an integer array without axes can be an index");
    return nullptr;
  }
  return element(self);
}
PyObject* array_complex(PyObject* self, PyObject*) {
  const Ref number(element(self));
  if (!number || PyComplex_Check(number.get()) != 0) return Ref::share(number.get()).release();
  const double value = PyFloat_AsDouble(number.get());
  return value == -1.0 && PyErr_Occurred() != nullptr ? nullptr : PyComplex_FromDoubles(value, 0);
}
/// item(): the only element; item(i) that at a position in row-major order, and item(i, j) or item((i, j)) that at an
/// index.
PyObject* array_item_method(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (count == 0) return element(self);
  if (count == 1 && PyTuple_Check(args[0]) != 0) {
    const Ref found(array_subscript(self, args[0]));
    return found && is_array(found.get()) ? element(found.get()) : nullptr;
  }
  const Ref key(PyTuple_New(count));
  for (Py_ssize_t i = 0; key && i < count; ++i) PyTuple_SetItem(key.get(), i, Ref::share(args[i]).release());
  const Ref flat(count == 1 && rank_of(self) != 1 ? call_hook("ravel", "(O)", self) : Ref::share(self).release());
  const Ref found(flat && key ? array_subscript(flat.get(), key.get()) : nullptr);
  return found && is_array(found.get()) ? element(found.get()) : nullptr;
}

Py_ssize_t array_length(PyObject* self) {
  if (rank_of(self) > 0) return static_cast<Py_ssize_t>(shape_of(self)[0]);
  PyErr_SetString(PyExc_TypeError, "an array without axes has no len()");
  return -1;
}

PyObject* array_iter(PyObject* self) {
  if (rank_of(self) > 0) return PySeqIter_New(self);
  PyErr_SetString(PyExc_TypeError, "an array without axes cannot be iterated over");
  return nullptr;
}

Py_hash_t array_hash(PyObject*) {
  PyErr_SetString(PyExc_TypeError, "unhashable type: 'Array'");
  return -1;
}

PyObject* array_native_handle(PyObject* self, PyObject*) {
  compute_native_dlpack native{};
  native.struct_size = sizeof native;
  compute_tensor* const tensor = tensor_of(self);
  if (tensor == nullptr) return nullptr;
  if (!succeeded(compute_tensor_native_handle(tensor, COMPUTE_NATIVE_DLPACK, &native))) return nullptr;
  return Py_BuildValue("(KK)", static_cast<unsigned long long>(native.data),
                       static_cast<unsigned long long>(native.byte_offset));
}

PyGetSetDef array_getset[] = {{"shape", array_shape, nullptr, "The extents.", nullptr},
                              {"strides", array_strides, nullptr, "The strides, in elements.", nullptr},
                              {"dtype", array_dtype, nullptr, "The data type.", nullptr},
                              {"device", array_device, nullptr, "The device that holds the elements.", nullptr},
                              {"ndim", array_ndim, nullptr, "The number of axes.", nullptr},
                              {"size", array_size, nullptr, "The number of elements.", nullptr},
                              {"nbytes", array_nbytes, nullptr, "The size of all elements in bytes.", nullptr},
                              {"itemsize", array_itemsize, nullptr, "The size of one element in bytes.", nullptr},
                              {"T", array_transposed, nullptr,
                               "The transpose of an array with 2 axes, a view; an array with fewer, itself.", nullptr},
                              {"mT", array_transposed, nullptr, "The array with its last two axes exchanged, a view.",
                               const_cast<char*>("matrices")},
                              {"label", array_label, array_set_label, "A name for reports and messages.", nullptr},
                              {}};
PyMethodDef array_methods[] = {
    {"__complex__", array_complex, METH_NOARGS, nullptr},
    {"item", function(array_item_method), METH_FASTCALL,
     "item($self, /, *index)\n--\n\nThe only element, or the one at an index, as a number of Python."},
    {"native_handle", array_native_handle, METH_NOARGS,
     "native_handle($self, /)\n--\n\nThe CUdeviceptr, cl_mem or VkBuffer, and the offset of element 0 in bytes."},
    {}};
PyMemberDef array_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(ArrayObject, weak_references), READONLY, nullptr}, {}};

/// array_of(x): an argument that is an array or a variable of compute.grad; a list or an array of NumPy as an array.
PyObject* array_of(PyObject*, PyObject* object) {
  if (is_array(object) || is_variable(object)) [[likely]]
    return Ref::share(object).release();
  return call_hook("array_of", "(O)", object);
}
/// are_arrays(*values): whether all are arrays, variables, numbers or None, so that none has to become an array.
PyObject* are_arrays(PyObject*, PyObject* const* args, Py_ssize_t count) {
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* const one = args[i];
    const bool is_known = is_array(one) || one == Py_None || PyFloat_CheckExact(one) != 0 || PyLong_Check(one) != 0 ||
                          is_variable(one) || PyComplex_CheckExact(one) != 0;
    if (!is_known) Py_RETURN_FALSE;
  }
  Py_RETURN_TRUE;
}
PyMethodDef functions[] = {{"are_arrays", function(are_arrays), METH_FASTCALL, nullptr},
                           {"array_of", array_of, METH_O, nullptr},
                           {"read_element", read_element, METH_O, nullptr},
                           {}};

}  // namespace

namespace {

/// A new array, or one of those that are kept, without a tensor.
ArrayObject* new_array() {
  ArrayObject* array = nullptr;
  if (kept_count > 0) [[likely]] {
    array = reinterpret_cast<ArrayObject*>(PyObject_Init(kept_objects[--kept_count], state.array_type));
    array->tensor = nullptr;
    array->weak_references = nullptr;
    array->shape = nullptr;
    array->base = nullptr;
  } else {
    static const auto allocate = reinterpret_cast<allocfunc>(PyType_GetSlot(state.array_type, Py_tp_alloc));
    array = reinterpret_cast<ArrayObject*>(allocate(state.array_type, 0));
    if (array == nullptr) return nullptr;
  }
  array->rank = ArrayObject::kUnknown;
  array->index_count = 0;
  array->is_on_cpu = ArrayObject::kUnknown;
  return array;
}

inline ArrayObject* make_lazy(PyObject* base) {
  ArrayObject* const array = new_array();
  if (array == nullptr) [[unlikely]]
    return nullptr;
  const ArrayObject& known = *reinterpret_cast<ArrayObject*>(base);
  Py_INCREF(base);
  array->base = base;
  array->dtype = known.dtype;
  return array;
}

}  // namespace

PyObject* array_object(compute_tensor* tensor) {
  ArrayObject* const array = new_array();
  if (array == nullptr) {
    compute_tensor_release(tensor);
    return nullptr;
  }
  array->tensor = tensor;
  return as_object(array);
}

ArrayObject* lazy_view(PyObject* base) { return make_lazy(base); }

PyObject* element_of_row(PyObject* base, int64_t index) {
  const ArrayObject& row = *reinterpret_cast<ArrayObject*>(base);
  ArrayObject* const element = make_lazy(base);
  if (element == nullptr) return nullptr;
  element->rank = 0;
  element->index_count = 1;
  element->numbers[0] = index;
  element->offset = index * row.numbers[kLazyRank];
  return as_object(element);
}

PyObject* element_object(PyObject* base, int32_t count, const int64_t (&indices)[2 * kLazyRank], int64_t offset) {
  if (tensor_of(base) == nullptr) return nullptr;  // the indices refer to a tensor
  ArrayObject* const element = make_lazy(base);
  if (element == nullptr) return nullptr;
  element->rank = 0;
  element->offset = offset;
  if (count <= 2 * kLazyRank) {
    element->index_count = static_cast<int8_t>(count);
    std::memcpy(element->numbers, indices, sizeof indices);
  }
  return as_object(element);
}

void learn(ArrayObject* array) {
  compute_tensor* const tensor = array->tensor;
  const int32_t rank = compute_tensor_rank(tensor);
  array->dtype = compute_tensor_dtype(tensor);
  array->offset = 0;
  const int64_t* const shape = compute_tensor_shape(tensor);
  const int64_t* const strides = compute_tensor_strides(tensor);
  for (int32_t i = 0; rank <= kLazyRank && i < rank; ++i) {
    array->numbers[i] = shape[i];
    array->numbers[kLazyRank + i] = strides[i];
  }
  array->rank = static_cast<int8_t>(rank);
}

compute_tensor* make_view(ArrayObject* array) {
  const Ref base = Ref::share(array->base);
  compute_tensor* const source = source_of(base.get());
  const int64_t offset_bytes = compute_tensor_offset_bytes(source) + array->offset * compute_dtype_size(array->dtype);
  compute_tensor* tensor = nullptr;
  const ProgramLine line;
  if (!succeeded(compute_tensor_view(source, array->dtype, array->rank, array->numbers, array->numbers + kLazyRank,
                                     offset_bytes, &tensor))) {
    return nullptr;
  }
  array->tensor = tensor;
  array->offset = 0;
  Py_DECREF(std::exchange(array->base, nullptr));
  return tensor;
}

compute_tensor* tensor_from(PyObject* object, const char* function) {
  if (is_array(object)) return tensor_of(object);
  PyErr_Format(PyExc_TypeError, "%s needs a compute.Array, not %R", function, Py_TYPE(object));
  return nullptr;
}

bool add_arrays(PyObject* module) {
  std::vector<PyType_Slot> slots = operator_slots();
  const PyType_Slot own[] = {{Py_tp_new, reinterpret_cast<void*>(array_new)},
                             {Py_tp_dealloc, reinterpret_cast<void*>(array_dealloc)},
                             {Py_tp_hash, reinterpret_cast<void*>(array_hash)},
                             {Py_tp_iter, reinterpret_cast<void*>(array_iter)},
                             {Py_nb_bool, reinterpret_cast<void*>(array_bool)},
                             {Py_nb_float, reinterpret_cast<void*>(array_float)},
                             {Py_nb_int, reinterpret_cast<void*>(array_int)},
                             {Py_nb_index, reinterpret_cast<void*>(array_index)},
                             {Py_mp_length, reinterpret_cast<void*>(array_length)},
                             {Py_mp_subscript, reinterpret_cast<void*>(array_subscript)},
                             {Py_mp_ass_subscript, reinterpret_cast<void*>(array_assign_subscript)},
                             {Py_sq_length, reinterpret_cast<void*>(array_length)},
                             {Py_sq_item, reinterpret_cast<void*>(array_item)},
                             {Py_bf_getbuffer, reinterpret_cast<void*>(array_get_buffer)},
                             {Py_bf_releasebuffer, reinterpret_cast<void*>(array_release_buffer)},
                             {Py_tp_getset, array_getset},
                             {Py_tp_methods, array_methods},
                             {Py_tp_members, array_members},
                             {Py_tp_doc, const_cast<char*>("An array of the array API standard, on a device.")}};
  slots.insert(slots.end(), std::begin(own), std::end(own));
  state.array_type = add_type(module, "compute.Array", sizeof(ArrayObject), 0, std::move(slots));
  return state.array_type != nullptr && PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace compute_python
