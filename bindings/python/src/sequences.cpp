// SPDX-License-Identifier: Apache-2.0
//
// New arrays from nested lists and tuples of numbers of Python.
#include <cmath>
#include <limits>
#include <memory>
#include <new>

#include "module.hpp"

namespace compute_python {

namespace {

bool is_sequence(PyObject* object) { return PyList_Check(object) != 0 || PyTuple_Check(object) != 0; }
Py_ssize_t size_of(PyObject* object) { return PyList_Check(object) != 0 ? PyList_Size(object) : PyTuple_Size(object); }

/// Calls `each` with the items of a list or a tuple, until it returns false. The items are borrowed, and `each` runs no
/// code of Python, so the sequence does not change meanwhile.
template <class F>
bool for_each(PyObject* sequence, F each) {
  const bool is_list = PyList_Check(sequence) != 0;
  const Py_ssize_t count = size_of(sequence);
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (!each(is_list ? PyList_GetItem(sequence, i) : PyTuple_GetItem(sequence, i))) return false;
  }
  return true;
}

/// The shape of nested sequences, and the kinds of their numbers.
struct Scan {
  std::vector<int64_t> shape;
  bool has_bool = false, has_integer = false, has_float = false, has_complex = false;
  bool has_other = false;  // arrays and the like; NumPy's float64 is a subclass of float
  const char* fault = nullptr;

  explicit Scan(PyObject* object) {
    for (PyObject* first = object; is_sequence(first);) {
      shape.push_back(size_of(first));
      if (shape.back() == 0 || shape.size() > COMPUTE_MAX_RANK) break;
      first = PyList_Check(first) != 0 ? PyList_GetItem(first, 0) : PyTuple_GetItem(first, 0);
    }
    walk(object, 0);
  }

  [[nodiscard]] char kind() const {
    if (has_complex) return 'c';
    if (has_float || !(has_bool || has_integer)) return 'f';
    return has_integer ? 'i' : 'b';
  }

 private:
  bool walk(PyObject* object, size_t axis) {
    if (axis == shape.size()) return see(object);
    if (!is_sequence(object)) return fail("asarray: the sequences have different lengths");
    if (size_of(object) != shape[axis]) return fail("asarray: the sequences have different lengths");
    if (axis + 1 < shape.size()) return for_each(object, [&](PyObject* item) { return walk(item, axis + 1); });
    return for_each(object, [&](PyObject* item) {
      if (PyFloat_CheckExact(item) == 0) return see(item);
      has_float = true;
      return true;
    });
  }
  bool see(PyObject* item) {
    if (PyFloat_CheckExact(item) != 0) {
      has_float = true;
    } else if (PyLong_CheckExact(item) != 0) {
      has_integer = true;
    } else if (PyBool_Check(item) != 0) {
      has_bool = true;
    } else if (PyComplex_CheckExact(item) != 0) {
      has_complex = true;
    } else if (is_sequence(item)) {
      return fail("asarray: the sequences have different depths");
    } else {
      has_other = true;
    }
    return true;
  }
  bool fail(const char* message) {
    fault = message;
    return false;
  }
};

/// Converts a number to an element. Returns false if Python has to: for the error, and for other numbers than its own.
bool convert(PyObject* item, double& out) {
  if (PyFloat_Check(item) != 0) {
    out = PyFloat_AsDouble(item);
    return true;
  }
  if (PyLong_Check(item) == 0) return false;
  out = PyLong_AsDouble(item);
  return out != -1.0 || PyErr_Occurred() == nullptr;
}
bool convert(PyObject* item, float& out) {
  double value = 0;
  if (!convert(item, value)) return false;
  out = static_cast<float>(value);
  return true;
}
bool convert(PyObject* item, bool& out) {
  if (PyFloat_Check(item) == 0 && PyLong_Check(item) == 0) return false;
  out = PyObject_IsTrue(item) != 0;
  return true;
}
template <class T>
bool convert_integer(PyObject* item, T& out) {
  if (PyFloat_Check(item) != 0) {
    const double value = std::trunc(PyFloat_AsDouble(item));
    // The greatest integer of 64 bits is no double: the next one is.
    const double beyond = std::ldexp(1.0, std::numeric_limits<T>::digits);
    if (!(value >= static_cast<double>(std::numeric_limits<T>::min()) && value < beyond)) return false;
    out = static_cast<T>(value);
    return true;
  }
  if (PyLong_Check(item) == 0) return false;
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(item, &overflow);
  if (overflow == 0 && std::in_range<T>(value)) {
    out = static_cast<T>(value);
    return true;
  }
  if (overflow <= 0 || sizeof(T) < 8 || std::numeric_limits<T>::is_signed) return false;
  const unsigned long long large = PyLong_AsUnsignedLongLong(item);
  out = static_cast<T>(large);
  return PyErr_Occurred() == nullptr;
}
bool convert(PyObject* item, int8_t& out) { return convert_integer(item, out); }
bool convert(PyObject* item, int16_t& out) { return convert_integer(item, out); }
bool convert(PyObject* item, int32_t& out) { return convert_integer(item, out); }
bool convert(PyObject* item, int64_t& out) { return convert_integer(item, out); }
bool convert(PyObject* item, uint8_t& out) { return convert_integer(item, out); }
bool convert(PyObject* item, uint16_t& out) { return convert_integer(item, out); }
bool convert(PyObject* item, uint32_t& out) { return convert_integer(item, out); }
bool convert(PyObject* item, uint64_t& out) { return convert_integer(item, out); }
template <class T>
struct Complex {
  T real, imag;
};
template <class T>
bool convert(PyObject* item, Complex<T>& out) {
  double real = 0;
  const bool is_complex = PyComplex_Check(item) != 0;
  if (is_complex) real = PyComplex_RealAsDouble(item);
  if (!is_complex && !convert(item, real)) return false;
  out = {static_cast<T>(real), static_cast<T>(is_complex ? PyComplex_ImagAsDouble(item) : 0.0)};
  return true;
}

/// Writes the numbers of nested sequences of `rank` levels to `out`, which it advances.
template <class T>
bool write(PyObject* object, size_t rank, T*& out) {
  if (rank == 0) return convert(object, *out++);
  return for_each(object, [&](PyObject* item) { return write(item, rank - 1, out); });
}

template <class T>
PyObject* packed(PyObject* object, const Scan& scan, compute_dtype dtype, compute_device* device, int64_t count) {
  const std::unique_ptr<T[]> data(new (std::nothrow) T[static_cast<size_t>(count) + 1]);
  if (!data) return PyErr_NoMemory();
  T* out = data.get();
  if (!write(object, scan.shape.size(), out)) {
    PyErr_Clear();
    Py_RETURN_NONE;
  }
  compute_tensor* tensor = nullptr;
  compute_error* error = nullptr;
  {
    const ProgramLine line;
    const Unlocked unlocked(count > 4096);
    error = compute_tensor_from_host(device, dtype, static_cast<int32_t>(scan.shape.size()), scan.shape.data(),
                                     data.get(), &tensor);
  }
  return succeeded(error) ? array_object(tensor) : nullptr;
}

PyObject* pack(PyObject* object, const Scan& scan, compute_dtype dtype, compute_device* device) {
  int64_t count = 1;
  for (const int64_t extent : scan.shape) count *= extent;
  switch (dtype) {
    case COMPUTE_DTYPE_BOOL:
      return packed<bool>(object, scan, dtype, device, count);
    case COMPUTE_DTYPE_INT8:
      return packed<int8_t>(object, scan, dtype, device, count);
    case COMPUTE_DTYPE_INT16:
      return packed<int16_t>(object, scan, dtype, device, count);
    case COMPUTE_DTYPE_INT32:
      return packed<int32_t>(object, scan, dtype, device, count);
    case COMPUTE_DTYPE_INT64:
      return packed<int64_t>(object, scan, dtype, device, count);
    case COMPUTE_DTYPE_UINT8:
      return packed<uint8_t>(object, scan, dtype, device, count);
    case COMPUTE_DTYPE_UINT16:
      return packed<uint16_t>(object, scan, dtype, device, count);
    case COMPUTE_DTYPE_UINT32:
      return packed<uint32_t>(object, scan, dtype, device, count);
    case COMPUTE_DTYPE_UINT64:
      return packed<uint64_t>(object, scan, dtype, device, count);
    case COMPUTE_DTYPE_FLOAT32:
      return packed<float>(object, scan, dtype, device, count);
    case COMPUTE_DTYPE_FLOAT64:
      return packed<double>(object, scan, dtype, device, count);
    case COMPUTE_DTYPE_COMPLEX64:
      return packed<Complex<float>>(object, scan, dtype, device, count);
    case COMPUTE_DTYPE_COMPLEX128:
      return packed<Complex<double>>(object, scan, dtype, device, count);
    default:
      Py_RETURN_NONE;
  }
}

/// from_sequence(object, dtype or None, device, defaults): an array of the numbers of nested lists and tuples, or of
/// one number. `defaults` has the dtypes of kinds, for numbers without a dtype. None where compute/_creation.py has to
/// make it: from arrays, in float16 and bfloat16, and for errors about single numbers.
PyObject* from_sequence(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 4) return PyErr_Format(PyExc_TypeError, "from_sequence takes 4 arguments");
  const Scan scan(args[0]);
  if (scan.fault != nullptr) return PyErr_Format(PyExc_ValueError, "%s", scan.fault);
  if (scan.has_other || scan.shape.size() > COMPUTE_MAX_RANK) Py_RETURN_NONE;
  const bool has_dtype = args[1] != Py_None;
  const char kind[] = {scan.kind(), '\0'};
  const Ref wanted(has_dtype ? Ref::share(args[1]).release() : PyMapping_GetItemString(args[3], kind));
  const compute_dtype dtype = wanted ? dtype_from(wanted.get()) : COMPUTE_DTYPE_NONE;
  compute_device* const device = dtype != COMPUTE_DTYPE_NONE ? device_from(args[2]) : nullptr;
  if (device == nullptr) return nullptr;
  PyObject* const array = pack(args[0], scan, dtype, device);
  if (array != Py_None || has_dtype || dtype != COMPUTE_DTYPE_INT64) return array;
  Py_DECREF(array);  // an integer that fits in no int64
  return pack(args[0], scan, COMPUTE_DTYPE_UINT64, device);
}

PyMethodDef functions[] = {{"from_sequence", function(from_sequence), METH_FASTCALL, nullptr}, {}};

}  // namespace

bool add_sequences(PyObject* module) { return PyModule_AddFunctions(module, functions) == 0; }

}  // namespace compute_python
