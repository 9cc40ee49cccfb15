// SPDX-License-Identifier: Apache-2.0
//
// Elementwise ops on arrays and numbers of Python: the operators of Array, and the path that elementwise functions
// share.
#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "module.hpp"

namespace compute_python {

namespace {

/// Weak scalars that were used lately. A program has few different literals.
struct CachedScalar {
  compute_dtype dtype;
  uint64_t bits;
  compute_tensor* tensor;
};
constexpr size_t kCachedScalars = 64;
CachedScalar cached_scalars[kCachedScalars];  // guarded by the interpreter's lock

compute_tensor* cached_scalar(compute_dtype dtype, uint64_t bits) {
  const uint64_t hash = (bits ^ (bits >> 29) ^ static_cast<uint64_t>(dtype)) * 0x9e3779b97f4a7c15u;
  CachedScalar& slot = cached_scalars[hash >> 58];
  if (slot.tensor == nullptr || slot.bits != bits || slot.dtype != dtype) {
    compute_tensor* tensor = nullptr;
    if (!succeeded(compute_tensor_scalar(dtype, &bits, 1, &tensor))) return nullptr;
    compute_tensor_release(slot.tensor);
    slot = {dtype, bits, tensor};
  }
  compute_tensor_retain(slot.tensor);
  return slot.tensor;
}

compute_tensor* weak_integer(PyObject* number) {
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
  if (overflow == 0) return cached_scalar(COMPUTE_DTYPE_INT64, static_cast<uint64_t>(value));
  const unsigned long long large = PyLong_AsUnsignedLongLong(number);
  if (PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    Py_XDECREF(call_hook("too_large", "(Oss)", number, "", "64 bits"));
    return nullptr;
  }
  return cached_scalar(COMPUTE_DTYPE_UINT64, large);
}

compute_tensor* weak_float(double value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return cached_scalar(COMPUTE_DTYPE_FLOAT64, bits);
}

/// The operands of an op: tensors of arrays are borrowed, scalars are released at the end.
class Operands {
 public:
  Operands() = default;
  Operands(const Operands&) = delete;
  Operands& operator=(const Operands&) = delete;
  ~Operands() {
    for (int i = 0; i < count_; ++i) {
      if ((owned_ & (1u << i)) != 0) compute_tensor_release(tensors_[i]);
    }
  }

  /// Returns false for an object that is not an operand, with an exception if it is a number that does not fit.
  bool add(PyObject* object) {
    if (is_array(object)) {
      compute_tensor* const tensor = tensor_of(object);
      if (tensor == nullptr) [[unlikely]]
        return false;
      tensors_[count_++] = tensor;
      return true;
    }
    compute_tensor* const scalar = weak_scalar(object);
    if (scalar == nullptr) return false;
    owned_ |= 1u << count_;
    has_integers_ |= PyLong_Check(object) != 0;
    tensors_[count_++] = scalar;
    return true;
  }
  [[nodiscard]] bool all_numbers() const { return owned_ + 1 == 1u << count_; }
  [[nodiscard]] bool is_number(int i) const { return (owned_ & (1u << i)) != 0; }
  [[nodiscard]] unsigned numbers() const { return owned_; }
  [[nodiscard]] bool has_integers() const { return has_integers_; }
  /// Takes `tensor`, which stands for operand i from now on.
  void replace(int i, compute_tensor* tensor) {
    if (is_number(i)) compute_tensor_release(tensors_[i]);
    tensors_[i] = tensor;
    owned_ |= 1u << i;
  }
  [[nodiscard]] compute_tensor* const* tensors() const { return tensors_; }
  [[nodiscard]] int count() const { return count_; }
  [[nodiscard]] bool brief() const {
    for (int i = 0; i < count_; ++i) {
      if ((owned_ & (1u << i)) == 0 && !is_brief(tensors_[i])) return false;
    }
    return true;
  }
  [[nodiscard]] compute_stream* stream() const {
    return stream_for_work(std::span(tensors_, static_cast<size_t>(count_)));
  }

 private:
  compute_tensor* tensors_[4]{};
  unsigned owned_ = 0;
  bool has_integers_ = false;
  int count_ = 0;
};

/// Reads the setting COMPUTE_FLOAT.
compute_dtype read_default_real() {
  compute_text* text = nullptr;
  if (compute_error* const error = compute_config_get("COMPUTE_FLOAT", &text, nullptr)) {
    compute_error_free(error);  // calls that need the settings report the error
    return COMPUTE_DTYPE_FLOAT32;
  }
  const std::string_view value(compute_text_data(text), static_cast<size_t>(compute_text_size(text)));
  state.real = value == "float64" ? COMPUTE_DTYPE_FLOAT64 : COMPUTE_DTYPE_FLOAT32;
  compute_text_free(text);
  return state.real;
}

/// Whether the integer `number` is in the range of an integer dtype. Other numbers are the library's to judge.
bool in_range(PyObject* number, compute_dtype dtype) {
  if (PyLong_Check(number) == 0 || PyBool_Check(number) != 0) return true;
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
  if (dtype == COMPUTE_DTYPE_UINT64) return overflow > 0 || (overflow == 0 && value >= 0);
  const auto bits = static_cast<int>(compute_dtype_size(dtype)) * 8;
  const bool is_signed = dtype <= COMPUTE_DTYPE_INT64;
  const int64_t greatest = bits == 64 ? INT64_MAX : (int64_t{1} << (is_signed ? bits - 1 : bits)) - 1;
  const int64_t least = is_signed ? -greatest - 1 : 0;
  return overflow == 0 && value >= least && value <= greatest;
}

/// The common dtype of two integer dtypes; NONE if there is none.
compute_dtype common_integer(compute_dtype a, compute_dtype b) {
  const bool a_is_signed = a <= COMPUTE_DTYPE_INT64, b_is_signed = b <= COMPUTE_DTYPE_INT64;
  if (a_is_signed == b_is_signed) return std::max(a, b);
  const compute_dtype is_signed = a_is_signed ? a : b, is_unsigned = a_is_signed ? b : a;
  return is_unsigned == COMPUTE_DTYPE_UINT64
             ? COMPUTE_DTYPE_NONE
             : std::max(is_signed, is_unsigned - COMPUTE_DTYPE_UINT8 + COMPUTE_DTYPE_INT8 + 1);
}

/// Whether the numbers among the operands fit in the dtype of the arrays; raises OverflowError if one does not.
bool numbers_fit(const Operands& operands, PyObject* const* objects) {
  IntegerRange range;
  for (int i = 0; i < operands.count(); ++i) {
    if (!operands.is_number(i)) range.add(compute_tensor_dtype(operands.tensors()[i]));
  }
  if (!range.is_limited()) return true;
  for (int i = 0; i < operands.count(); ++i) {
    if (PyFloat_Check(objects[i]) != 0 || PyComplex_Check(objects[i]) != 0) return true;  // the result is no integer
  }
  for (int i = 0; i < operands.count(); ++i) {
    if (!operands.is_number(i)) continue;
    if (PyLong_Check(objects[i]) != 0) {
      if (!range.holds(objects[i])) return false;
      continue;
    }
    const Ref number(number_from(objects[i]));
    if (!number || !range.holds(number.get())) return false;
  }
  return true;
}

/// The ops behind the operators, in the order of `kNames`.
enum Operator {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kRemainder,
  kPow,
  kSquare,
  kMatmul,
  kAnd,
  kOr,
  kXor,
  kLeftShift,
  kRightShift,
  kNegative,
  kPositive,
  kAbs,
  kInvert,
  kLess,
  kLessEqual,
  kEqual,
  kNotEqual,
  kGreater,
  kGreaterEqual,
  kOperatorCount
};
constexpr const char* kNames[kOperatorCount] = {"add",
                                                "subtract",
                                                "multiply",
                                                "divide",
                                                "floor_divide",
                                                "remainder",
                                                "pow",
                                                "square",
                                                "matmul",
                                                "bitwise_and",
                                                "bitwise_or",
                                                "bitwise_xor",
                                                "bitwise_left_shift",
                                                "bitwise_right_shift",
                                                "negative",
                                                "positive",
                                                "abs",
                                                "bitwise_invert",
                                                "less",
                                                "less_equal",
                                                "equal",
                                                "not_equal",
                                                "greater",
                                                "greater_equal"};
struct {
  const compute_op* op;
  bool is_inexact;
} operators[kOperatorCount];

template <Operator op>
PyObject* unary(PyObject* self) {
  return run_elementwise(operators[op].op, operators[op].is_inexact, &self, 1);
}
template <Operator op>
PyObject* binary(PyObject* left, PyObject* right) {
  PyObject* const operands[] = {left, right};
  return run_elementwise(operators[op].op, operators[op].is_inexact, operands, 2);
}
/// The first byte of a tensor with elements in its buffer, and the byte behind its last one.
std::pair<int64_t, int64_t> bytes_of(const compute_tensor* tensor) {
  int64_t first = compute_tensor_offset_bytes(tensor), last = first;
  const int64_t size = compute_dtype_size(compute_tensor_dtype(tensor));
  for (int32_t axis = 0; axis < compute_tensor_rank(tensor); ++axis) {
    const int64_t reach = (compute_tensor_shape(tensor)[axis] - 1) * compute_tensor_strides(tensor)[axis] * size;
    (reach < 0 ? first : last) += reach;
  }
  return {first, last + size};
}

/// Whether x may have elements of y at other places than y has them.
bool may_overlap(const compute_tensor* x, const compute_tensor* y) {
  if (x == y || compute_tensor_shares_buffer(x, y) == 0) return false;
  const int32_t rank = compute_tensor_rank(x);
  if (compute_tensor_offset_bytes(x) == compute_tensor_offset_bytes(y) && rank == compute_tensor_rank(y) &&
      std::equal(compute_tensor_shape(x), compute_tensor_shape(x) + rank, compute_tensor_shape(y)) &&
      std::equal(compute_tensor_strides(x), compute_tensor_strides(x) + rank, compute_tensor_strides(y)))
    return false;
  const auto [x_first, x_end] = bytes_of(x);
  const auto [y_first, y_end] = bytes_of(y);
  return x_first < y_end && y_first < x_end;
}

/// x op= y: into x itself, which keeps its shape and dtype.
template <Operator op>
PyObject* in_place(PyObject* self, PyObject* other) {
  PyObject* const operands[] = {self, other};
  compute_tensor* const tensor = tensor_of(self);
  if (tensor == nullptr) return nullptr;
  if (is_array(other)) {
    compute_tensor* const y = tensor_of(other);
    if (y == nullptr) return nullptr;
    if (may_overlap(tensor, y)) return call_hook("in_place", "(sOOO)", kNames[op], self, other, Py_None);
  }
  PyObject* const result = run_elementwise(operators[op].op, operators[op].is_inexact, operands, 2, tensor);
  if (result != nullptr || PyDict_GetItemString(state.hooks, "in_place") == nullptr) return result;
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  const Ref type_ref(type), value_ref(value), trace_ref(trace);
  return call_hook("in_place", "(sOOO)", kNames[op], self, other, value);
}
PyObject* power(PyObject* left, PyObject* right, PyObject* modulus) {
  if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
  int overflow = 0;
  if (is_array(left) && PyLong_CheckExact(right) != 0 && PyLong_AsLongAndOverflow(right, &overflow) == 2) {
    const compute_tensor* const tensor = tensor_of(left);
    if (tensor == nullptr) return nullptr;
    if (compute_tensor_dtype(tensor) != COMPUTE_DTYPE_BOOL) return unary<kSquare>(left);
  }
  return binary<kPow>(left, right);
}
PyObject* in_place_power(PyObject* self, PyObject* other, PyObject*) { return in_place<kPow>(self, other); }
PyObject* in_place_matmul(PyObject* self, PyObject* other) {
  return is_array(other) ? call_hook("in_place_matmul", "(OO)", self, other) : Ref::share(Py_NotImplemented).release();
}
PyObject* matmul(PyObject* left, PyObject* right) {
  for (PyObject* const operand : {left, right}) {
    if (PyFloat_Check(operand) != 0 || PyLong_Check(operand) != 0) Py_RETURN_NOTIMPLEMENTED;
  }
  return binary<kMatmul>(left, right);
}

PyObject* compare(PyObject* self, PyObject* other, int how) {
  constexpr Operator kOperators[] = {kLess, kLessEqual, kEqual, kNotEqual, kGreater, kGreaterEqual};
  PyObject* const operands[] = {self, other};
  return run_elementwise(operators[kOperators[how]].op, false, operands, 2);
}

template <class F>
PyType_Slot slot(int id, F* call) {
  return {id, reinterpret_cast<void*>(call)};
}

}  // namespace

compute_dtype default_real() {
  if (state.real != COMPUTE_DTYPE_NONE) [[likely]]
    return state.real;
  return read_default_real();
}

bool is_brief(compute_tensor* tensor) {
  constexpr int64_t kElements = 4096;
  return is_cpu(compute_tensor_device(tensor)) && compute_tensor_element_count(tensor) <= kElements;
}

compute_tensor* weak_scalar(PyObject* number) {
  if (PyFloat_Check(number) != 0) return weak_float(PyFloat_AsDouble(number));
  if (PyBool_Check(number) != 0) return cached_scalar(COMPUTE_DTYPE_BOOL, number == Py_True ? 1 : 0);
  if (PyLong_Check(number) != 0) return weak_integer(number);
  if (PyComplex_Check(number) == 0) return nullptr;
  const double parts[] = {PyComplex_RealAsDouble(number), PyComplex_ImagAsDouble(number)};
  compute_tensor* tensor = nullptr;
  return succeeded(compute_tensor_scalar(COMPUTE_DTYPE_COMPLEX128, parts, 1, &tensor)) ? tensor : nullptr;
}

Ref number_from(PyObject* object) {
  if (PyLong_Check(object) != 0 || PyFloat_Check(object) != 0 || PyComplex_Check(object) != 0) {
    return Ref::share(object);
  }
  Ref number(call_hook("operand", "(O)", object));
  return number.get() == Py_NotImplemented ? Ref() : std::move(number);
}

void IntegerRange::add(compute_dtype dtype) {
  if (dtype == COMPUTE_DTYPE_BOOL) return;
  const bool is_integer = dtype >= COMPUTE_DTYPE_INT8 && dtype <= COMPUTE_DTYPE_UINT64;
  mixed_ |= !is_integer;
  if (is_integer) dtype_ = dtype_ == COMPUTE_DTYPE_NONE ? dtype : common_integer(dtype_, dtype);
  mixed_ |= dtype_ == COMPUTE_DTYPE_NONE;
}

bool IntegerRange::holds(PyObject* number) const {
  if (!is_limited() || in_range(number, dtype_)) return true;
  PyErr_Format(PyExc_OverflowError, "the number %S does not fit in %s", number, compute_dtype_name(dtype_));
  return false;
}

namespace {

/// Runs an elementwise op on operands of which some are neither arrays nor numbers. Lists and arrays of NumPy become
/// arrays; of other operands returns NotImplemented.
PyObject* run_converted(const compute_op* op, bool is_inexact, PyObject* const* objects, int count,
                        compute_tensor* output) {
  const Ref given(PyTuple_New(count));
  for (int i = 0; given && i < count; ++i) PyTuple_SetItem(given.get(), i, Ref::share(objects[i]).release());
  const Ref found(given ? call_hook("operands", "(O)", given.get()) : nullptr);
  if (!found || found.get() == Py_NotImplemented) return Ref::share(found.get()).release();
  PyObject* operands[4];
  for (int i = 0; i < count; ++i) operands[i] = PyTuple_GetItem(found.get(), i);
  return run_elementwise(op, is_inexact, operands, count, output);
}

}  // namespace

int double_operand(bool is_inexact, compute_tensor* const* tensors, int count, unsigned numbers, compute_tensor** out) {
  if (default_real() != COMPUTE_DTYPE_FLOAT64) [[likely]]
    return -1;
  *out = nullptr;
  int array = -1, number = -1, inexact = -1;
  for (int i = 0; i < count; ++i) {
    if (tensors[i] == nullptr) continue;
    const bool is_number = (numbers >> i & 1) != 0, is_real = compute_tensor_dtype(tensors[i]) >= COMPUTE_DTYPE_FLOAT16;
    if (is_real && !is_number) return -1;
    (is_real ? inexact : is_number ? number : array) = i;
  }
  const int place = inexact >= 0 ? inexact : !is_inexact ? -1 : number >= 0 ? number : array;
  if (place < 0) return -1;
  compute_tensor* const tensor = tensors[place];
  if (place == array) {
    const ProgramLine line;
    succeeded(compute_cast(stream_for(compute_tensor_device(tensor)), tensor, COMPUTE_DTYPE_FLOAT64, nullptr, out));
    return place;
  }
  union {
    int64_t integer;
    uint64_t large;
    uint8_t flag;
    double parts[2];
  } value{};
  if (!succeeded(compute_tensor_read(tensor, &value, compute_tensor_size_bytes(tensor)))) return place;
  compute_dtype dtype = COMPUTE_DTYPE_FLOAT64;
  switch (compute_tensor_dtype(tensor)) {
    case COMPUTE_DTYPE_BOOL:
      value.parts[0] = value.flag;
      break;
    case COMPUTE_DTYPE_INT64:
      value.parts[0] = static_cast<double>(value.integer);
      break;
    case COMPUTE_DTYPE_UINT64:
      value.parts[0] = static_cast<double>(value.large);
      break;
    case COMPUTE_DTYPE_COMPLEX128:
      dtype = COMPUTE_DTYPE_COMPLEX128;
      break;
    default:
      break;
  }
  succeeded(compute_tensor_scalar(dtype, value.parts, 0, out));
  return place;
}

PyObject* run_elementwise(const compute_op* op, bool is_inexact, PyObject* const* objects, int count,
                          compute_tensor* output) {
  Operands operands;
  for (int i = 0; i < count; ++i) {
    if (operands.add(objects[i])) [[likely]]
      continue;
    if (PyErr_Occurred() != nullptr) return nullptr;
    if (is_variable(objects[i])) Py_RETURN_NOTIMPLEMENTED;
    const Ref number(number_from(objects[i]));
    if (!number || !operands.add(number.get())) {
      return PyErr_Occurred() != nullptr ? nullptr : run_converted(op, is_inexact, objects, count, output);
    }
  }
  if (operands.all_numbers()) Py_RETURN_NOTIMPLEMENTED;
  if (operands.has_integers() && !is_inexact && !numbers_fit(operands, objects)) return nullptr;
  const bool brief = operands.brief();
  compute_tensor* converted = nullptr;
  const int place = double_operand(is_inexact, operands.tensors(), count, operands.numbers(), &converted);
  if (place >= 0) [[unlikely]] {
    if (converted == nullptr) return nullptr;
    operands.replace(place, converted);
  }
  compute_tensor* result = output;
  if (output != nullptr) note_write(output);
  compute_stream* stream = current_stream;
  if (stream != nullptr) stream = operands.stream();
  compute_error* error = nullptr;
  {
    const ProgramLine line;
    const Unlocked unlocked(!brief);
    error = compute_op_run(op, stream, nullptr, 0, operands.tensors(), count, &result, 1);
  }
  if (error != nullptr) [[unlikely]]
    return raise(error);
  if (output != nullptr) {
    Py_INCREF(objects[0]);
    return objects[0];
  }
  return array_object(result);
}

bool find_operators() {
  for (int i = 0; i < kOperatorCount; ++i) {
    compute_op_info info{};
    info.struct_size = sizeof info;
    if (!succeeded(compute_op_find(kNames[i], 0, &operators[i].op)) ||
        !succeeded(compute_op_get_info(operators[i].op, &info)))
      return false;
    operators[i].is_inexact = is_inexact_class(info.dtypes);
  }
  return true;
}

const std::vector<PyType_Slot>& operator_slots() {
  static const std::vector<PyType_Slot> slots = {
      slot(Py_nb_add, binary<kAdd>),
      slot(Py_nb_subtract, binary<kSubtract>),
      slot(Py_nb_multiply, binary<kMultiply>),
      slot(Py_nb_true_divide, binary<kDivide>),
      slot(Py_nb_floor_divide, binary<kFloorDivide>),
      slot(Py_nb_remainder, binary<kRemainder>),
      slot(Py_nb_power, power),
      slot(Py_nb_matrix_multiply, matmul),
      slot(Py_nb_and, binary<kAnd>),
      slot(Py_nb_or, binary<kOr>),
      slot(Py_nb_xor, binary<kXor>),
      slot(Py_nb_lshift, binary<kLeftShift>),
      slot(Py_nb_rshift, binary<kRightShift>),
      slot(Py_nb_negative, unary<kNegative>),
      slot(Py_nb_positive, unary<kPositive>),
      slot(Py_nb_absolute, unary<kAbs>),
      slot(Py_nb_invert, unary<kInvert>),
      slot(Py_nb_inplace_add, in_place<kAdd>),
      slot(Py_nb_inplace_subtract, in_place<kSubtract>),
      slot(Py_nb_inplace_multiply, in_place<kMultiply>),
      slot(Py_nb_inplace_true_divide, in_place<kDivide>),
      slot(Py_nb_inplace_floor_divide, in_place<kFloorDivide>),
      slot(Py_nb_inplace_remainder, in_place<kRemainder>),
      slot(Py_nb_inplace_power, in_place_power),
      slot(Py_nb_inplace_matrix_multiply, in_place_matmul),
      slot(Py_nb_inplace_and, in_place<kAnd>),
      slot(Py_nb_inplace_or, in_place<kOr>),
      slot(Py_nb_inplace_xor, in_place<kXor>),
      slot(Py_nb_inplace_lshift, in_place<kLeftShift>),
      slot(Py_nb_inplace_rshift, in_place<kRightShift>),
      slot(Py_tp_richcompare, compare),
  };
  return slots;
}

}  // namespace compute_python
