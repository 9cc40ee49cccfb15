// SPDX-License-Identifier: Apache-2.0
//
// Basic indices: integers, slices, None and an ellipsis, whose results are views. compute/_indexing.py has the other
// kinds.
#include <algorithm>

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

/// The view of a basic index; None if `key` is not basic.
PyObject* basic_view(PyObject* self, PyObject* key) {
  Keys keys(key);
  if (!keys.classify()) Py_RETURN_NONE;
  View view(self);
  if (keys.ellipses > 1) return PyErr_Format(PyExc_IndexError, "an index has at most one ellipsis");
  if (keys.used > view.rank) {
    return PyErr_Format(PyExc_IndexError, "%d indices for an array with %d axes", static_cast<int>(keys.used),
                        static_cast<int>(view.rank));
  }
  for (Py_ssize_t i = 0; i < keys.count; ++i) {
    if (!apply(view, keys.at(i), view.rank - keys.used)) return nullptr;
  }
  return finish(view);
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
  const Ref view(basic_view(self, key));
  if (!view) return -1;
  const Ref done(view.get() != Py_None ? call_hook("assign", "(OO)", view.get(), value)
                                       : call_hook("setitem", "(OOO)", self, key, value));
  return done ? 0 : -1;
}

}  // namespace compute_python
