// SPDX-License-Identifier: Apache-2.0
//
// New arrays from nested lists and tuples of numbers of Python, or of arrays of other libraries.
#include <cmath>
#include <cstring>
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
  bool has_other = false;              // arrays and the like; NumPy's float64 is a subclass of float
  PyTypeObject* other_type = nullptr;  // of the first of these; NULL if another one has another type
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
      if (!has_other) other_type = Py_TYPE(item);
      if (Py_TYPE(item) != other_type) other_type = nullptr;
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

/// A new array whose elements are written one after the other: to its own memory if it is large and on cpu, else to
/// memory that is copied.
class NewArray {
 public:
  NewArray(compute_device* device, compute_dtype dtype, const std::vector<int64_t>& shape, int64_t size)
      : device_(device), dtype_(dtype), shape_(shape), size_(size) {}
  NewArray(const NewArray&) = delete;
  NewArray& operator=(const NewArray&) = delete;
  ~NewArray() {
    if (is_mapped_) compute_error_free(compute_tensor_unmap(tensor_, data_));
    compute_tensor_release(tensor_);
  }

  /// The memory for the elements; NULL with an exception set.
  void* begin() {
    if (size_ <= static_cast<int64_t>(sizeof few_)) return data_ = few_;
    if (size_ < kDirectBytes || !is_cpu(device_)) {
      many_.reset(new (std::nothrow) unsigned char[static_cast<size_t>(size_)]);
      data_ = many_.get();
      return data_ != nullptr ? data_ : PyErr_NoMemory();
    }
    const ProgramLine line;
    int32_t is_copy = 0;
    if (!succeeded(compute_tensor_empty(device_, dtype_, rank(), shape_.data(), &tensor_)) ||
        !succeeded(compute_tensor_map(tensor_, COMPUTE_ACCESS_WRITE, &data_, &is_copy))) {
      return nullptr;
    }
    is_mapped_ = true;
    return data_;
  }

  /// The array, once its elements are written. NULL with an exception set.
  PyObject* end() {
    compute_error* error = nullptr;
    if (is_mapped_) {
      is_mapped_ = false;
      error = compute_tensor_unmap(tensor_, data_);
    } else {
      const ProgramLine line;
      const Unlocked unlocked(size_ > kDirectBytes);
      error = compute_tensor_from_host(device_, dtype_, rank(), shape_.data(), data_, &tensor_);
    }
    return succeeded(error) ? array_object(std::exchange(tensor_, nullptr)) : nullptr;
  }

 private:
  [[nodiscard]] int32_t rank() const { return static_cast<int32_t>(shape_.size()); }

  static constexpr int64_t kDirectBytes = 32768;
  compute_device* device_;
  compute_dtype dtype_;
  const std::vector<int64_t>& shape_;
  int64_t size_;  // in bytes
  compute_tensor* tensor_ = nullptr;
  void* data_ = nullptr;
  bool is_mapped_ = false;
  std::unique_ptr<unsigned char[]> many_;
  alignas(16) unsigned char few_[256];
};

template <class T>
PyObject* packed(PyObject* object, const Scan& scan, compute_dtype dtype, compute_device* device, int64_t count) {
  NewArray array(device, dtype, scan.shape, count * static_cast<int64_t>(sizeof(T)));
  T* out = static_cast<T*>(array.begin());
  if (out == nullptr) return nullptr;
  if (!write(object, scan.shape.size(), out)) {
    PyErr_Clear();
    Py_RETURN_NONE;
  }
  return array.end();
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

/// The buffers of arrays of other libraries, or of their scalars, which all have one layout.
class Buffers {
 public:
  explicit Buffers(PyObject* object) {
    PyObject* first = object;
    while (is_sequence(first)) first = PyList_Check(first) != 0 ? PyList_GetItem(first, 0) : PyTuple_GetItem(first, 0);
    known_ = PyObject_GetBuffer(first, &view_, PyBUF_RECORDS_RO) == 0;
    if (known_) dtype_ = dtype_of_format(view_.format, view_.itemsize);
    is_float_ = known_ && view_.ndim == 0 && dtype_ == COMPUTE_DTYPE_FLOAT64 && PyFloat_Check(first) != 0;
  }
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;
  ~Buffers() {
    if (known_) PyBuffer_Release(&view_);
  }

  [[nodiscard]] compute_dtype dtype() const { return dtype_; }
  [[nodiscard]] const Py_buffer& view() const { return view_; }

  /// Writes the elements of one of them to `out`, which it advances. Returns false if it has another layout.
  bool write(PyObject* object, size_t rank, unsigned char*& out) const {
    if (rank > 0) return for_each(object, [&](PyObject* item) { return write(item, rank - 1, out); });
    if (is_float_) {
      const double value = PyFloat_AsDouble(object);
      std::memcpy(out, &value, sizeof value);
      out += sizeof value;
      return true;
    }
    Py_buffer one;
    if (PyObject_GetBuffer(object, &one, PyBUF_RECORDS_RO) != 0) return false;
    const bool fits = one.itemsize == view_.itemsize && one.ndim == view_.ndim && one.len == view_.len &&
                      std::strcmp(one.format, view_.format) == 0 && has_shape_of(one);
    if (fits && PyBuffer_IsContiguous(&one, 'C') != 0) {
      std::memcpy(out, one.buf, static_cast<size_t>(one.len));
    } else if (fits) {
      PyBuffer_ToContiguous(out, &one, one.len, 'C');
    }
    out += one.len;
    PyBuffer_Release(&one);
    return fits;
  }

 private:
  [[nodiscard]] bool has_shape_of(const Py_buffer& one) const {
    for (int i = 0; i < view_.ndim; ++i) {
      if (one.shape[i] != view_.shape[i]) return false;
    }
    return true;
  }

  Py_buffer view_{};
  bool known_;
  bool is_float_ = false;  // NumPy's float64, a subclass of float
  compute_dtype dtype_ = COMPUTE_DTYPE_NONE;
};

/// Whether a type has dates or their differences: NumPy's scalars of these export their bytes.
bool has_times(PyTypeObject* type) {
  const Ref name(PyType_GetName(type));
  return name && (PyUnicode_CompareWithASCIIString(name.get(), "datetime64") == 0 ||
                  PyUnicode_CompareWithASCIIString(name.get(), "timedelta64") == 0);
}

/// An array of arrays of one built-in type, such as NumPy's, that have one layout; None if they do not.
/// Numbers that are to have another dtype are left to Python, too, which checks their range.
PyObject* stacked(PyObject* object, const Scan& scan, PyObject* dtype, PyObject* device_argument) {
  const bool is_mixed = scan.has_bool || scan.has_integer || scan.has_float || scan.has_complex;
  if (is_mixed || scan.other_type == nullptr || scan.other_type == state.array_type ||
      (PyType_GetFlags(scan.other_type) & Py_TPFLAGS_HEAPTYPE) != 0 || has_times(scan.other_type)) {
    Py_RETURN_NONE;  // a class of Python might change the sequence
  }
  const Buffers buffers(object);
  std::vector<int64_t> shape = scan.shape;
  for (int i = 0; buffers.dtype() != COMPUTE_DTYPE_NONE && i < buffers.view().ndim; ++i) {
    shape.push_back(buffers.view().shape[i]);
  }
  int64_t size = buffers.view().itemsize;
  bool fits = buffers.dtype() != COMPUTE_DTYPE_NONE && shape.size() <= COMPUTE_MAX_RANK;
  fits = fits && (buffers.view().ndim > 0 || dtype == Py_None || dtype == dtype_object(buffers.dtype()));
  for (const int64_t extent : shape) fits = fits && !__builtin_mul_overflow(size, extent, &size);
  if (!fits) {
    PyErr_Clear();
    Py_RETURN_NONE;
  }
  compute_device* const device = device_from(device_argument);
  if (device == nullptr) return nullptr;
  NewArray array(device, buffers.dtype(), shape, size);
  auto* out = static_cast<unsigned char*>(array.begin());
  if (out == nullptr) return nullptr;
  if (!buffers.write(object, scan.shape.size(), out)) {
    PyErr_Clear();
    Py_RETURN_NONE;
  }
  return array.end();
}

/// The dtype of numbers without one.
compute_dtype default_dtype(char kind) {
  if (kind == 'b') return COMPUTE_DTYPE_BOOL;
  if (kind == 'i') return COMPUTE_DTYPE_INT64;
  const bool is_double = default_real() == COMPUTE_DTYPE_FLOAT64;
  if (kind == 'f') return is_double ? COMPUTE_DTYPE_FLOAT64 : COMPUTE_DTYPE_FLOAT32;
  return is_double ? COMPUTE_DTYPE_COMPLEX128 : COMPUTE_DTYPE_COMPLEX64;
}

/// from_sequence(object, dtype or None, device): an array of the numbers of nested lists and tuples, or of one number;
/// or of arrays of another library, in their dtype. None where compute/_creation.py has to make it: from other arrays,
/// in float16, bfloat16 and float8, and for errors about single numbers.
PyObject* from_sequence(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 3) return PyErr_Format(PyExc_TypeError, "from_sequence takes 3 arguments");
  const Scan scan(args[0]);
  if (scan.fault != nullptr) return PyErr_Format(PyExc_ValueError, "%s", scan.fault);
  if (scan.shape.size() > COMPUTE_MAX_RANK) Py_RETURN_NONE;
  if (scan.has_other) return stacked(args[0], scan, args[1], args[2]);
  const bool has_dtype = args[1] != Py_None;
  const compute_dtype dtype = has_dtype ? dtype_from(args[1]) : default_dtype(scan.kind());
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
