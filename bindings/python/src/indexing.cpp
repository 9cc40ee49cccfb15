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
  const bool is_flag = dtype == COMPUTE_DTYPE_BOOL && PyBool_Check(number) != 0;
  if (!is_flag && PyLong_CheckExact(number) == 0) return false;
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
  if (overflow != 0) return false;
  switch (dtype) {
    case COMPUTE_DTYPE_BOOL:  // 0 and 1 are its numbers
      return (value == 0 || value == 1) && store<bool>(element, value);
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

/// The elements of a small array on cpu, or of a list of integers or bool, in row-major order.
struct Elements {
  explicit Elements(PyObject* object) {
    if (!is_array(object)) {
      if (PyList_CheckExact(object) != 0) read_list(object);
      return;
    }
    auto* const array = reinterpret_cast<ArrayObject*>(object);
    if (!is_at_hand(object) || (tensor = tensor_of(object)) == nullptr) return;
    size = compute_tensor_size_bytes(tensor);
    count = compute_tensor_element_count(tensor);
    kind = compute_tensor_dtype(tensor);
    rank = compute_tensor_rank(tensor);
    extents = compute_tensor_shape(tensor);
    if (array->rank == ArrayObject::kUnknown) learn(array);
    known = size <= kFewBytes && size > 0 && went_well(compute_tensor_read(tensor, bytes, size));
  }

  void read_list(PyObject* list) {
    count = PyList_Size(list);
    rank = 1;
    extents = &count;
    if (count == 0 || count > kFewBytes / static_cast<int64_t>(sizeof(int64_t))) return;
    const bool is_mask = PyBool_Check(PyList_GetItem(list, 0)) != 0;
    kind = is_mask ? COMPUTE_DTYPE_BOOL : COMPUTE_DTYPE_INT64;
    size = count * (is_mask ? 1 : static_cast<int64_t>(sizeof(int64_t)));
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyObject* const item = PyList_GetItem(list, i);
      if (is_mask ? PyBool_Check(item) == 0 : PyLong_CheckExact(item) == 0) return;
      if (!number_as_element(item, kind, bytes + i * (size / count))) return;
    }
    known = true;
  }

  template <class T>
  [[nodiscard]] T at(int64_t i) const {
    T value;
    std::memcpy(&value, bytes + i * static_cast<int64_t>(sizeof value), sizeof value);
    return value;
  }

  compute_tensor* tensor = nullptr;  // NULL for a list
  int64_t size = 0;
  int64_t count = 0;
  compute_dtype kind = COMPUTE_DTYPE_NONE;
  int32_t rank = 0;
  const int64_t* extents = nullptr;
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

bool is_array_or_list(PyObject* key) { return is_array(key) || PyList_CheckExact(key) != 0; }

/// Whether an index has an array or a list.
bool has_arrays(PyObject* key) {
  if (PyTuple_Check(key) == 0) return is_array_or_list(key);
  const Py_ssize_t size = PyTuple_Size(key);
  for (Py_ssize_t i = 0; i < size; ++i) {
    if (is_array_or_list(PyTuple_GetItem(key, i))) return true;
  }
  return false;
}

/// Whether a key is `:`, or a slice that is as long as an axis.
bool is_whole(PyObject* key, int64_t extent) {
  if (PySlice_Check(key) == 0) return false;
  Py_ssize_t start = 0, stop = 0, step = 0;
  if (PySlice_Unpack(key, &start, &stop, &step) < 0) {
    PyErr_Clear();
    return false;
  }
  return step == 1 && PySlice_AdjustIndices(static_cast<Py_ssize_t>(extent), &start, &stop, step) == extent;
}

/// The rows of a small array that an index takes: a mask of the leading axes, or integers for axes between
/// leading and trailing `:`, in arrays or lists of one shape and ints.
struct FewRows {
  FewRows(const Elements& x, PyObject* key) {
    int64_t outer = 1;
    places[0] = 0;
    if (PyTuple_Check(key) != 0) {
      const Py_ssize_t size = PyTuple_Size(key);
      if (size > x.rank) return;
      while (axes < size && is_whole(PyTuple_GetItem(key, axes), x.extents[axes])) {
        shape[axes] = x.extents[axes];
        outer *= x.extents[axes++];
      }
      rank = axes;
      for (; axes < size && !is_whole(PyTuple_GetItem(key, axes), x.extents[axes]); ++axes) {
        if (!add(PyTuple_GetItem(key, axes), x.extents[axes])) return;
      }
      for (Py_ssize_t i = axes; i < size; ++i) {
        if (!is_whole(PyTuple_GetItem(key, i), x.extents[i])) return;
      }
    } else {
      const Elements at(key);
      if (!at.known) return;
      if (at.kind == COMPUTE_DTYPE_BOOL) {
        if (!mask(x, at)) return;
      } else if (x.rank == 0 || !add(at, x.extents[axes++])) {
        return;
      }
    }
    if (!has_shape || rank + x.rank - axes > COMPUTE_MAX_RANK || outer * count > kFewBytes) return;
    row_bytes = compute_dtype_size(x.kind);
    for (int32_t i = axes; i < x.rank; ++i) row_bytes *= shape[rank++] = x.extents[i];
    for (int64_t i = outer * count - 1; i >= count; --i) {
      places[i] = static_cast<int16_t>(places[i % count] + i / count * inner);
    }
    count *= outer;
    known = true;
  }

  bool mask(const Elements& x, const Elements& at) {
    if (at.rank == 0 || x.rank < at.rank || !std::equal(at.extents, at.extents + at.rank, x.extents)) return false;
    for (int64_t i = 0; i < at.count; ++i) {
      if (at.bytes[i] != 0) places[count++] = static_cast<int16_t>(i);
    }
    axes = at.rank;
    shape[rank++] = count;
    return has_shape = true;
  }

  /// Adds an integer, or integers, for an axis.
  bool add(PyObject* key, int64_t extent) {
    if (PyLong_CheckExact(key) == 0) {
      const Elements at(key);
      return at.known && add(at, extent);
    }
    const Py_ssize_t index = PyLong_AsSsize_t(key);
    if (index == -1 && PyErr_Occurred() != nullptr) {
      PyErr_Clear();
      return false;
    }
    if (!has_shape) count = 1;
    for (int64_t i = 0; i < count; ++i) {
      if (!append(i, index, extent)) return false;
    }
    inner *= extent;
    return true;
  }
  bool add(const Elements& at, int64_t extent) {
    if (has_shape ? at.rank != key_rank || !std::equal(at.extents, at.extents + at.rank, key_extents)
                  : rank + at.rank > COMPUTE_MAX_RANK) {
      return false;
    }
    if (!has_shape) {
      std::copy_n(at.extents, at.rank, shape + rank);
      std::copy_n(at.extents, at.rank, key_extents);
      key_rank = at.rank;
      rank += at.rank;
      count = at.count;
      for (int64_t i = 1; i < count; ++i) places[i] = places[0];
    }
    has_shape = true;
    for (int64_t i = 0; i < count; ++i) {
      if (!(at.kind == COMPUTE_DTYPE_INT64   ? append(i, at.at<int64_t>(i), extent)
            : at.kind == COMPUTE_DTYPE_INT32 ? append(i, at.at<int32_t>(i), extent)
                                             : false)) {
        return false;
      }
    }
    inner *= extent;
    return true;
  }
  bool append(int64_t i, int64_t index, int64_t extent) {
    const int64_t position = index < 0 ? index + extent : index;
    if (position < 0 || position >= extent) return false;
    places[i] = static_cast<int16_t>(places[i] * extent + position);
    return true;
  }

  bool known = false;
  bool has_shape = false;  // an array, a list or a mask was among the keys
  int32_t axes = 0;        // of x, that the keys replace
  int32_t rank = 0;        // of the result
  int64_t shape[2 * COMPUTE_MAX_RANK];
  int32_t key_rank = 0;
  int64_t key_extents[COMPUTE_MAX_RANK];
  int64_t inner = 1;  // elements of the axes with integers
  int64_t row_bytes = 0;
  int64_t count = 0;          // of rows
  int16_t places[kFewBytes];  // of rows in x, which has at most kFewBytes
};

/// x[key] of small arrays on cpu. Returns NULL without an exception where it is left to the ops.
PyObject* few_elements(PyObject* self, PyObject* key) {
  const Elements from(self);
  if (!from.known) return nullptr;
  const FewRows rows(from, key);
  if (!rows.known || rows.count * rows.row_bytes > kFewBytes) return nullptr;
  unsigned char out[kFewBytes];
  for (int64_t i = 0; i < rows.count; ++i) {
    copy_row(out + i * rows.row_bytes, from.bytes + rows.places[i] * rows.row_bytes, rows.row_bytes);
  }
  compute_tensor* result = nullptr;
  return went_well(compute_tensor_from_host(compute_tensor_device(from.tensor), from.kind, rows.rank, rows.shape, out,
                                            &result))
             ? array_object(result)
             : nullptr;
}

/// x[key] = value of small arrays on cpu, for a number, or an array of the dtype and the shape of x[key]. All elements
/// are written. Returns as write_view.
int assign_few(PyObject* self, PyObject* key, PyObject* value) {
  const bool is_number = PyFloat_CheckExact(value) != 0 || PyLong_Check(value) != 0;
  if (!is_number && !is_array(value)) return 0;
  Elements to(self);
  if (!to.known) return 0;
  const FewRows rows(to, key);
  if (!rows.known || rows.row_bytes == 0) return 0;
  if (is_number) {
    const int64_t size = compute_dtype_size(to.kind);
    unsigned char element[sizeof(double)];
    if (size > static_cast<int64_t>(sizeof element) || !number_as_element(value, to.kind, element)) return 0;
    for (int64_t i = 0; i < rows.count; ++i) {
      unsigned char* const row = to.bytes + rows.places[i] * rows.row_bytes;
      for (int64_t k = 0; k < rows.row_bytes; k += size) copy_row(row + k, element, size);
    }
  } else {
    const Elements from(value);
    if (!from.known || from.kind != to.kind || from.rank != rows.rank ||
        !std::equal(rows.shape, rows.shape + rows.rank, from.extents)) {
      return 0;
    }
    for (int64_t i = 0; i < rows.count; ++i) {
      copy_row(to.bytes + rows.places[i] * rows.row_bytes, from.bytes + i * rows.row_bytes, rows.row_bytes);
    }
  }
  note_write(to.tensor);
  return went_well(compute_tensor_write(to.tensor, to.bytes, to.size)) ? 1 : 0;
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
  if (has_arrays(key)) {
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
  if (has_arrays(key)) {
    if (const int done = assign_few(self, key, value); done != 0) return done > 0 ? 0 : -1;
    if (PyErr_Occurred() != nullptr) return -1;
  }
  const Ref view(basic_view(self, key));
  if (!view) return -1;
  const Ref done(view.get() != Py_None ? call_hook("assign", "(OO)", view.get(), value)
                                       : call_hook("setitem", "(OOO)", self, key, value));
  return done ? 0 : -1;
}

}  // namespace compute_python
