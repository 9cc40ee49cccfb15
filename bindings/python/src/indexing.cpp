// SPDX-License-Identifier: Apache-2.0
//
// Basic indices: integers, slices, None and an ellipsis, whose results are views. compute/_indexing.py has the other
// kinds.
#include <algorithm>
#include <cstring>

#include "module.hpp"

namespace compute_python {

namespace {

/// A view that grows axis by axis from the axes of an array.
struct View {
  explicit View(PyObject* x) : self(x), array(*reinterpret_cast<ArrayObject*>(x)) {
    if (array.rank == ArrayObject::kUnknown) learn(&array);
    rank = array.rank;
    const bool is_known = rank <= kLazyRank;
    old_shape = is_known ? array.numbers : compute_tensor_shape(array.tensor);
    old_strides = is_known ? array.numbers + kLazyRank : compute_tensor_strides(array.tensor);
    for (int32_t i = 0; i < rank; ++i) has_elements &= old_shape[i] > 0;
  }

  [[nodiscard]] int64_t extent() const { return old_shape[axis]; }
  [[nodiscard]] int64_t stride() const { return old_strides[axis]; }
  void append(int64_t new_extent, int64_t new_stride) {
    if (count < COMPUTE_MAX_RANK) {
      shape[count] = new_extent;
      strides[count] = new_stride;
    }
    ++count;
  }
  void keep_axes(int32_t up_to) {
    for (; axis < up_to; ++axis) append(extent(), stride());
  }

  PyObject* self;
  ArrayObject& array;
  int32_t rank;
  const int64_t* old_shape;
  const int64_t* old_strides;
  bool has_elements = true;  // otherwise there are no offsets
  int64_t offset = 0;        // in elements
  int32_t axis = 0;
  int32_t count = 0;
  int64_t indices[2 * kLazyRank];  // of the first axes, if they select an element
  int64_t shape[COMPUTE_MAX_RANK];
  int64_t strides[COMPUTE_MAX_RANK];
};

/// Whether a key is an int. Objects with __index__ are left to compute/_indexing.py: PyTorch's masks have it, too.
bool is_integer(PyObject* object) { return PyLong_Check(object) != 0 && PyBool_Check(object) == 0; }
bool is_basic(PyObject* object) {
  return PySlice_Check(object) != 0 || is_integer(object) || object == Py_None || object == Py_Ellipsis;
}

/// The non-negative index; -1 with an exception set if there is no such element.
int64_t position_of(Py_ssize_t index, int64_t extent, int32_t axis) {
  const int64_t position = index < 0 ? index + extent : index;
  if (position >= 0 && position < extent) [[likely]]
    return position;
  PyErr_Format(PyExc_IndexError, "index %zd is out of range for axis %d of extent %lld", index, static_cast<int>(axis),
               static_cast<long long>(extent));
  return -1;
}

bool apply_integer(View& view, Py_ssize_t index) {
  const int64_t position = position_of(index, view.extent(), view.axis);
  if (position < 0) return false;
  if (view.has_elements) view.offset += position * view.stride();
  if (view.axis < 2 * kLazyRank) view.indices[view.axis] = position;
  ++view.axis;
  return true;
}

bool apply_slice(View& view, PyObject* slice) {
  Py_ssize_t start = 0, stop = 0, step = 0;
  if (PySlice_Unpack(slice, &start, &stop, &step) < 0) return false;
  const Py_ssize_t extent = PySlice_AdjustIndices(static_cast<Py_ssize_t>(view.extent()), &start, &stop, step);
  if (extent > 0 && view.has_elements) view.offset += start * view.stride();
  view.append(extent, view.stride() * step);
  ++view.axis;
  return true;
}

bool apply(View& view, PyObject* key, int32_t axes_of_ellipsis) {
  if (key == Py_None) {
    view.append(1, 0);
    return true;
  }
  if (key == Py_Ellipsis) {
    view.keep_axes(view.axis + axes_of_ellipsis);
    return true;
  }
  if (PySlice_Check(key) != 0) return apply_slice(view, key);
  const Py_ssize_t index = PyNumber_AsSsize_t(key, PyExc_IndexError);
  if (index != -1 || PyErr_Occurred() == nullptr) return apply_integer(view, index);
  PyErr_Clear();
  PyErr_Format(PyExc_IndexError, "index %S is out of range for axis %d of extent %lld", key,
               static_cast<int>(view.axis), static_cast<long long>(view.extent()));
  return false;
}

PyObject* finish(View& view) {
  view.keep_axes(view.rank);
  if (view.count > COMPUTE_MAX_RANK) {
    return PyErr_Format(PyExc_IndexError, "the result would have more than %d axes", COMPUTE_MAX_RANK);
  }
  ArrayObject& array = view.array;
  if (view.rank > 0 && view.count == 0) return element_object(view.self, view.rank, view.indices, view.offset);
  if (view.rank > 0 && view.count <= kLazyRank) {
    ArrayObject* const lazy = lazy_view(array.tensor != nullptr ? view.self : array.base);
    if (lazy == nullptr) return nullptr;
    lazy->rank = static_cast<int8_t>(view.count);
    lazy->offset = array.offset + view.offset;
    std::copy_n(view.shape, kLazyRank, lazy->numbers);
    std::copy_n(view.strides, kLazyRank, lazy->numbers + kLazyRank);
    return as_object(lazy);
  }
  compute_tensor* const tensor = tensor_of(view.self);
  if (tensor == nullptr) return nullptr;
  const int64_t offset_bytes = compute_tensor_offset_bytes(tensor) + view.offset * compute_dtype_size(array.dtype);
  compute_tensor* result = nullptr;
  const ProgramLine line;
  if (!succeeded(
          compute_tensor_view(tensor, array.dtype, view.count, view.shape, view.strides, offset_bytes, &result))) {
    return nullptr;
  }
  return array_object(result);
}

/// The keys of an index, which is a tuple or a single key, and how many of them consume an axis.
struct Keys {
  explicit Keys(PyObject* index) : tuple(PyTuple_Check(index) != 0 ? index : nullptr), single(index) {
    count = tuple != nullptr ? PyTuple_Size(tuple) : 1;
  }
  [[nodiscard]] PyObject* at(Py_ssize_t i) const { return tuple != nullptr ? PyTuple_GetItem(tuple, i) : single; }

  /// Returns whether all keys are basic.
  bool classify() {
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyObject* const key = at(i);
      if (!is_basic(key)) return false;
      ellipses += key == Py_Ellipsis ? 1 : 0;
      used += key != Py_Ellipsis && key != Py_None ? 1 : 0;
    }
    return true;
  }

  PyObject* tuple;
  PyObject* single;
  Py_ssize_t count;
  int32_t ellipses = 0;
  int32_t used = 0;
};

/// Applies the keys of a basic index to the axes of an array. Returns false with an exception set.
bool apply_all(View& view, const Keys& keys) {
  if (keys.ellipses > 1) {
    PyErr_Format(PyExc_IndexError, "an index has at most one ellipsis");
    return false;
  }
  if (keys.used > view.rank) {
    PyErr_Format(PyExc_IndexError, "%d indices for an array with %d axes", static_cast<int>(keys.used),
                 static_cast<int>(view.rank));
    return false;
  }
  for (Py_ssize_t i = 0; i < keys.count; ++i) {
    if (!apply(view, keys.at(i), view.rank - keys.used)) return false;
  }
  return true;
}

/// The view of a basic index; None if `key` is not basic.
PyObject* basic_view(PyObject* self, PyObject* key) {
  Keys keys(key);
  if (!keys.classify()) Py_RETURN_NONE;
  View view(self);
  return apply_all(view, keys) ? finish(view) : nullptr;
}

// ---- Few elements on cpu --------------------------------------------------------------------------------------------
//
// The memory of small arrays on cpu is read and written here: an op would take longer. Whatever is unusual (another
// device, a stream, a profile, an index out of range, a failure) is left to the ops.

constexpr int64_t kFewBytes = 8192;

/// Whether the calling thread may read and write the memory of an array on cpu by itself.
bool is_at_hand(PyObject* object) {
  auto& array = *reinterpret_cast<ArrayObject*>(object);
  if (current_stream != nullptr || state.lines != State::Lines::kNotNamed) return false;
  if (array.is_on_cpu == ArrayObject::kUnknown) {
    array.is_on_cpu = is_cpu(compute_tensor_device(source_of(object))) ? 1 : 0;
  }
  return array.is_on_cpu == 1;
}

/// Ends an attempt: false if there was an error, which an op will report.
bool went_well(compute_error* error) {
  if (error == nullptr) [[likely]]
    return true;
  compute_error_free(error);
  return false;
}

template <class T, class V>
bool store(void* element, V value) {
  const T converted = static_cast<T>(value);
  std::memcpy(element, &converted, sizeof converted);
  return true;
}
template <class T>
bool store_integer(void* element, long long value) {
  return std::in_range<T>(value) && store<T>(element, value);
}

/// Writes a number as an element of a dtype. Returns false for numbers and dtypes that are left to Python.
bool number_as_element(PyObject* number, compute_dtype dtype, void* element) {
  if (PyFloat_CheckExact(number) != 0) {
    const double value = PyFloat_AsDouble(number);
    if (dtype == COMPUTE_DTYPE_FLOAT32) return store<float>(element, value);
    return dtype == COMPUTE_DTYPE_FLOAT64 && store<double>(element, value);
  }
  if (dtype == COMPUTE_DTYPE_BOOL) return PyBool_Check(number) != 0 && store<bool>(element, number == Py_True);
  if (PyLong_CheckExact(number) == 0) return false;
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
  if (overflow != 0) return false;
  switch (dtype) {
    case COMPUTE_DTYPE_FLOAT32:
      return store<float>(element, static_cast<double>(value));
    case COMPUTE_DTYPE_FLOAT64:
      return store<double>(element, value);
    case COMPUTE_DTYPE_INT8:
      return store_integer<int8_t>(element, value);
    case COMPUTE_DTYPE_INT16:
      return store_integer<int16_t>(element, value);
    case COMPUTE_DTYPE_INT32:
      return store_integer<int32_t>(element, value);
    case COMPUTE_DTYPE_INT64:
      return store_integer<int64_t>(element, value);
    case COMPUTE_DTYPE_UINT8:
      return store_integer<uint8_t>(element, value);
    case COMPUTE_DTYPE_UINT16:
      return store_integer<uint16_t>(element, value);
    case COMPUTE_DTYPE_UINT32:
      return store_integer<uint32_t>(element, value);
    case COMPUTE_DTYPE_UINT64:
      return store_integer<uint64_t>(element, value);
    default:
      return false;
  }
}

/// Writes the elements of a view of an array, whose offset is in elements of the array. Returns 1 if that is done, 0 if
/// it is left to Python, and -1 with an exception set.
int write_view(PyObject* self, int32_t rank, const int64_t* shape, const int64_t* strides, int64_t offset,
               const void* elements, int64_t size_bytes) {
  compute_tensor* const tensor = tensor_of(self);
  if (tensor == nullptr) return -1;
  note_write(tensor);
  const compute_dtype dtype = reinterpret_cast<ArrayObject*>(self)->dtype;
  const int64_t offset_bytes = compute_tensor_offset_bytes(tensor) + offset * compute_dtype_size(dtype);
  compute_tensor* target = nullptr;
  const bool done = went_well(compute_tensor_view(tensor, dtype, rank, shape, strides, offset_bytes, &target)) &&
                    went_well(compute_tensor_write(target, elements, size_bytes));
  compute_tensor_release(target);
  return done ? 1 : 0;
}

/// Sets the elements of a basic index to a number, if they are few. Returns as write_view.
int assign_number(PyObject* self, PyObject* key, PyObject* value) {
  unsigned char elements[kFewBytes];
  auto* const array = reinterpret_cast<ArrayObject*>(self);
  if (array->rank == ArrayObject::kUnknown) learn(array);
  if (!number_as_element(value, array->dtype, elements) || !is_at_hand(self)) return 0;
  if (array->rank == 1 && PyLong_CheckExact(key) != 0) {
    const Py_ssize_t index = PyLong_AsSsize_t(key);
    if (index == -1 && PyErr_Occurred() != nullptr) {
      PyErr_Clear();
      return 0;
    }
    const int64_t position = position_of(index, array->numbers[0], 0);
    if (position < 0) return -1;
    return write_view(self, 0, nullptr, nullptr, position * array->numbers[kLazyRank], elements,
                      compute_dtype_size(array->dtype));
  }
  Keys keys(key);
  if (!keys.classify()) return 0;
  View view(self);
  if (!apply_all(view, keys)) return -1;
  view.keep_axes(view.rank);
  const int64_t size = compute_dtype_size(array->dtype);
  int64_t count = 1;
  for (int32_t i = 0; i < view.count && i < COMPUTE_MAX_RANK; ++i) count *= view.shape[i];
  if (view.count > COMPUTE_MAX_RANK || count > kFewBytes / size) return 0;
  for (int64_t i = 1; i < count; ++i) std::memcpy(elements + i * size, elements, static_cast<size_t>(size));
  return write_view(self, view.count, view.shape, view.strides, view.offset, elements, count * size);
}

/// The elements of a small array on cpu, in row-major order.
struct Elements {
  explicit Elements(PyObject* object) {
    auto* const array = reinterpret_cast<ArrayObject*>(object);
    if (!is_at_hand(object) || (tensor = tensor_of(object)) == nullptr) return;
    size = compute_tensor_size_bytes(tensor);
    count = compute_tensor_element_count(tensor);
    if (array->rank == ArrayObject::kUnknown) learn(array);
    known = size <= kFewBytes && size > 0 && went_well(compute_tensor_read(tensor, bytes, size));
  }
  compute_tensor* tensor = nullptr;
  int64_t size = 0;
  int64_t count = 0;
  bool known = false;
  unsigned char bytes[kFewBytes];
};

/// Copies a row. The sizes of most elements are inlined.
inline void copy_row(unsigned char* out, const unsigned char* in, int64_t size) {
  if (size == 4) {
    std::memcpy(out, in, 4);
  } else if (size == 8) {
    std::memcpy(out, in, 8);
  } else {
    std::memcpy(out, in, static_cast<size_t>(size));
  }
}

template <class T>
bool gather(const Elements& from, const Elements& at, int64_t extent, int64_t row_bytes, unsigned char* out) {
  for (int64_t i = 0; i < at.count; ++i) {
    T index;
    std::memcpy(&index, at.bytes + i * static_cast<int64_t>(sizeof index), sizeof index);
    const int64_t position = index < 0 ? index + extent : index;
    if (position < 0 || position >= extent) return false;
    copy_row(out + i * row_bytes, from.bytes + position * row_bytes, row_bytes);
  }
  return true;
}

/// x[key] of small arrays on cpu for an array of integers, or a mask of the leading axes of x. Returns NULL without an
/// exception where it is left to the ops.
PyObject* few_elements(PyObject* self, PyObject* key) {
  const Elements from(self);
  if (!from.known) return nullptr;
  const Elements at(key);
  if (!at.known) return nullptr;
  const int32_t rank = compute_tensor_rank(from.tensor), key_rank = compute_tensor_rank(at.tensor);
  const int64_t *const extents = compute_tensor_shape(from.tensor), *const key_extents =
                                                                        compute_tensor_shape(at.tensor);
  const compute_dtype kind = compute_tensor_dtype(at.tensor), dtype = compute_tensor_dtype(from.tensor);
  const bool is_mask = kind == COMPUTE_DTYPE_BOOL;
  const int32_t axes = is_mask ? key_rank : 1;  // of x, that the key replaces
  if (axes == 0 || rank < axes || rank - axes + (is_mask ? 1 : key_rank) > COMPUTE_MAX_RANK) return nullptr;
  int64_t shape[COMPUTE_MAX_RANK], count = 0, row_bytes = compute_dtype_size(dtype);
  for (int32_t i = axes; i < rank; ++i) row_bytes *= extents[i];
  unsigned char out[kFewBytes];
  if (is_mask) {
    for (int32_t i = 0; i < axes; ++i) {
      if (extents[i] != key_extents[i]) return nullptr;
    }
    for (int64_t i = 0; i < at.count; ++i) {
      if (at.bytes[i] == 0) continue;
      copy_row(out + count++ * row_bytes, from.bytes + i * row_bytes, row_bytes);
    }
    shape[0] = count;
  } else {
    if (at.count * row_bytes > kFewBytes) return nullptr;
    const bool in_range = kind == COMPUTE_DTYPE_INT64   ? gather<int64_t>(from, at, extents[0], row_bytes, out)
                          : kind == COMPUTE_DTYPE_INT32 ? gather<int32_t>(from, at, extents[0], row_bytes, out)
                                                        : false;
    if (!in_range) return nullptr;
    std::copy_n(key_extents, key_rank, shape);
  }
  const int32_t new_axes = is_mask ? 1 : key_rank;
  std::copy(extents + axes, extents + rank, shape + new_axes);
  compute_tensor* result = nullptr;
  return went_well(compute_tensor_from_host(compute_tensor_device(from.tensor), dtype, rank - axes + new_axes, shape,
                                            out, &result))
             ? array_object(result)
             : nullptr;
}

}  // namespace

PyObject* array_item(PyObject* self, Py_ssize_t index) {
  auto* const array = reinterpret_cast<ArrayObject*>(self);
  if (array->rank == ArrayObject::kUnknown) learn(array);
  if (array->rank == 0) return PyErr_Format(PyExc_IndexError, "1 index for an array without axes");
  if (array->rank == 1) {
    const int64_t position = position_of(index, array->numbers[0], 0);
    return position >= 0 && tensor_of(self) != nullptr ? element_of_row(self, position) : nullptr;
  }
  View view(self);
  return apply_integer(view, index) ? finish(view) : nullptr;
}

PyObject* array_subscript(PyObject* self, PyObject* key) {
  // The commonest keys: an int and a slice. Only an int beyond Py_ssize_t is left to the general way.
  auto* const array = reinterpret_cast<ArrayObject*>(self);
  if (array->rank == ArrayObject::kUnknown) learn(array);
  if (PyLong_CheckExact(key) != 0 && array->rank > 0) {
    const Py_ssize_t index = PyLong_AsSsize_t(key);
    if (index != -1 || PyErr_Occurred() == nullptr) return array_item(self, index);
    PyErr_Clear();
  } else if (PySlice_Check(key) != 0 && array->rank > 0) {
    View whole(self);
    return apply_slice(whole, key) ? finish(whole) : nullptr;
  }
  if (is_array(key)) {
    PyObject* const found = few_elements(self, key);
    if (found != nullptr || PyErr_Occurred() != nullptr) return found;
    return call_hook("getitem", "(OO)", self, key);
  }
  PyObject* const view = basic_view(self, key);
  if (view != Py_None) return view;
  Py_DECREF(view);
  return call_hook("getitem", "(OO)", self, key);
}

int array_assign_subscript(PyObject* self, PyObject* key, PyObject* value) {
  if (value == nullptr) {
    PyErr_SetString(PyExc_TypeError, "elements of an array cannot be deleted");
    return -1;
  }
  if (PyFloat_CheckExact(value) != 0 || PyLong_Check(value) != 0) {
    if (const int done = assign_number(self, key, value); done != 0) return done > 0 ? 0 : -1;
  }
  const Ref view(basic_view(self, key));
  if (!view) return -1;
  const Ref done(view.get() != Py_None ? call_hook("assign", "(OO)", view.get(), value)
                                       : call_hook("setitem", "(OOO)", self, key, value));
  return done ? 0 : -1;
}

}  // namespace compute_python
