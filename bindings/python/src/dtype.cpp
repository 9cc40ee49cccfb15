// SPDX-License-Identifier: Apache-2.0
//
// Data types: one object each.
#include "module.hpp"

namespace compute_python {

namespace {

compute_dtype id_of(PyObject* self) { return reinterpret_cast<DTypeObject*>(self)->id; }

PyObject* dtype_repr(PyObject* self) { return PyUnicode_FromFormat("compute.%s", compute_dtype_name(id_of(self))); }
PyObject* dtype_name(PyObject* self, void*) { return PyUnicode_FromString(compute_dtype_name(id_of(self))); }
PyObject* dtype_itemsize(PyObject* self, void*) { return PyLong_FromLongLong(compute_dtype_size(id_of(self))); }
PyObject* dtype_kind(PyObject* self, void*) {
  constexpr char kKinds[] = "_biiiiuuuuffffccff";
  return PyUnicode_FromStringAndSize(kKinds + id_of(self), 1);
}
PyObject* dtype_id(PyObject* self, void*) { return PyLong_FromLong(id_of(self)); }
PyObject* dtype_reduce(PyObject* self, PyObject*) { return dtype_name(self, nullptr); }

/// dtypes compare with each other by identity, by name with strings, and with types for the dtype that they mean.
PyObject* dtype_compare(PyObject* self, PyObject* other, int how) {
  if (how != Py_EQ && how != Py_NE) Py_RETURN_NOTIMPLEMENTED;
  Ref meant;
  if (PyType_Check(other) != 0) {
    meant = Ref(call_hook("dtype", "(O)", other));
    if (!meant && PyErr_ExceptionMatches(PyExc_TypeError) == 0) return nullptr;
    PyErr_Clear();
    if (meant) other = meant.get();
  }
  if (!is_dtype(other) && PyUnicode_Check(other) == 0) Py_RETURN_NOTIMPLEMENTED;
  const bool same =
      is_dtype(other) ? self == other : PyUnicode_CompareWithASCIIString(other, compute_dtype_name(id_of(self))) == 0;
  return PyBool_FromLong(same == (how == Py_EQ) ? 1 : 0);
}
/// The hash of the name, because strings are equal.
Py_hash_t dtype_hash(PyObject* self) {
  static Py_hash_t hashes[COMPUTE_DTYPE_FLOAT8_E5M2 + 1];
  Py_hash_t& hash = hashes[id_of(self)];
  if (hash != 0) return hash;
  const Ref name(dtype_name(self, nullptr));
  return name ? hash = PyObject_Hash(name.get()) : -1;
}

PyGetSetDef dtype_attributes[] = {
    {"name", dtype_name, nullptr, "The name, as 'float32'.", nullptr},
    {"itemsize", dtype_itemsize, nullptr, "The size of an element in bytes.", nullptr},
    {"kind", dtype_kind, nullptr, "'b', 'i', 'u', 'f' or 'c': bool, signed, unsigned, floating-point, complex.",
     nullptr},
    {"id", dtype_id, nullptr, "The number of the dtype in compute.h.", nullptr},
    {}};
PyMethodDef dtype_methods[] = {{"__reduce__", dtype_reduce, METH_NOARGS, nullptr}, {}};

}  // namespace

bool add_dtypes(PyObject* module) {
  state.dtype_type = add_type(module, "compute.DType", sizeof(DTypeObject), Py_TPFLAGS_DISALLOW_INSTANTIATION,
                              {{Py_tp_repr, reinterpret_cast<void*>(dtype_repr)},
                               {Py_tp_richcompare, reinterpret_cast<void*>(dtype_compare)},
                               {Py_tp_hash, reinterpret_cast<void*>(dtype_hash)},
                               {Py_tp_getset, dtype_attributes},
                               {Py_tp_methods, dtype_methods},
                               {Py_tp_doc, const_cast<char*>("A data type. There is one object for each.")}});
  if (state.dtype_type == nullptr) return false;
  for (compute_dtype id = COMPUTE_DTYPE_BOOL; id <= COMPUTE_DTYPE_FLOAT8_E5M2; ++id) {
    auto* const object = make<DTypeObject>(state.dtype_type);
    if (object == nullptr) return false;
    object->id = id;
    state.dtypes[id] = as_object(object);
    Py_INCREF(as_object(object));
    if (PyModule_AddObject(module, compute_dtype_name(id), as_object(object)) < 0) return false;
  }
  return true;
}

PyObject* dtype_object(compute_dtype id) {
  return id > COMPUTE_DTYPE_NONE && id <= COMPUTE_DTYPE_FLOAT8_E5M2 ? state.dtypes[id] : Py_None;
}

compute_dtype dtype_from(PyObject* object) {
  if (is_dtype(object)) return id_of(object);
  const Ref found(call_hook("dtype", "(O)", object));
  if (!found) return COMPUTE_DTYPE_NONE;
  if (is_dtype(found.get())) return id_of(found.get());
  PyErr_Format(PyExc_TypeError, "%R is not a dtype", object);
  return COMPUTE_DTYPE_NONE;
}

}  // namespace compute_python
