// SPDX-License-Identifier: Apache-2.0
//
// What the sources of the extension module compute._core share. It is written for the limited API of Python 3.11, on
// compute.h alone.
#ifndef COMPUTE_PYTHON_MODULE_HPP_
#define COMPUTE_PYTHON_MODULE_HPP_

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <compute/compute.h>
#include <structmember.h>

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace compute_python {

// ---- Ownership ------------------------------------------------------------------------------------------------------

/// A reference to a Python object that is dropped at the end of the scope.
class Ref {
 public:
  Ref() = default;
  explicit Ref(PyObject* object) noexcept : object_(object) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  Ref(const Ref&) = delete;
  Ref& operator=(const Ref&) = delete;
  ~Ref() { Py_XDECREF(object_); }

  [[nodiscard]] static Ref share(PyObject* object) noexcept {
    Py_XINCREF(object);
    return Ref(object);
  }
  [[nodiscard]] PyObject* get() const noexcept { return object_; }
  [[nodiscard]] PyObject* release() noexcept { return std::exchange(object_, nullptr); }
  explicit operator bool() const noexcept { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

/// Releases the interpreter for the time of a call that may take long. `active` is false for short calls. When the
/// interpreter is ending, daemon threads stop here: exit() would destroy compilers and drivers that they use.
class Unlocked {
 public:
  explicit Unlocked(bool active = true) noexcept : state_(active ? release() : nullptr) {}
  ~Unlocked() {
    if (state_ == nullptr) return;
    PyEval_RestoreThread(state_);
    --inside_;
  }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

  /// From now on only the calling thread makes calls. Waits for those of other threads, ten seconds at most.
  static void stop_other_threads() noexcept;

 private:
  static PyThreadState* release() noexcept;

  // Guarded by the interpreter's lock.
  static inline int inside_ = 0;
  static inline unsigned long last_thread_ = 0;

  PyThreadState* state_;
};

/// While the library reports places in the program: a scope that names the line which the calling thread runs. Without
/// it, the library would name lines of this extension. Each call that makes a tensor or may copy between devices has
/// one. Needs the interpreter, so it is declared before Unlocked.
class ProgramLine {
 public:
  ProgramLine() noexcept;
  ~ProgramLine() {
    if (pushed_) [[unlikely]]
      pop();
  }
  ProgramLine(const ProgramLine&) = delete;
  ProgramLine& operator=(const ProgramLine&) = delete;

 private:
  static bool push() noexcept;
  static void pop() noexcept;
  bool pushed_;
};

// ---- Objects --------------------------------------------------------------------------------------------------------

struct DTypeObject {
  PyObject_HEAD;
  compute_dtype id;
};

struct DeviceObject {
  PyObject_HEAD;
  compute_device* handle;    // one reference, for good
  compute_stream* default_;  // its default stream; NULL on cpu, which has one for each thread
};

/// A basic index of an array gives a view that keeps the array, and gets its own tensor at first use. Reading the value
/// of an element or the shape needs no tensor. Results with more axes than kLazyRank, and views of arrays without axes,
/// have a tensor from the start.
constexpr int32_t kLazyRank = 2;
struct ArrayObject {
  PyObject_HEAD;
  compute_tensor* tensor;  // NULL of a view that was not used yet
  PyObject* weak_references;
  PyObject* shape;  // once it was asked for
  PyObject* base;   // for views without a tensor, an array that has one; else NULL
  // What indices need to know of an array. A view without a tensor has it from the start.
  int8_t rank;         // kUnknown until an index asks
  int8_t index_count;  // for an element `base[numbers[0], ...]`; else 0
  int8_t is_on_cpu;    // kUnknown until an element of the array was read
  compute_dtype dtype;
  int64_t offset;                  // of a view without a tensor, in elements of its base
  int64_t numbers[2 * kLazyRank];  // extents, then strides, if there are no more than kLazyRank; or such indices
  static constexpr int8_t kUnknown = -1;
};

/// An object that holds one handle: streams, events, expressions, kernels and graphs.
template <class T>
struct HandleObject {
  PyObject_HEAD;
  T* handle;
};

/// A type of attribute values, and whether there are several.
struct Attribute {
  PyObject* name;  // interned
  std::string_view text;
  int32_t kind;  // COMPUTE_KIND_, or kNumber
  bool list;
};
constexpr int32_t kNumber = 100;

/// An op of the library. Objects of this type are the `self` of the functions that run it.
struct OpObject {
  PyObject_HEAD;
  const compute_op* handle;
  const char* name;     // for good
  int32_t input_count;  // with optional ones; the least number if `variadic`
  int32_t output_count;
  bool variadic;
  bool elementwise;
  bool promotes;    // its inputs have a common dtype
  bool is_inexact;  // elementwise, on floating-point and complex numbers alone
  bool reduces;     // its result is no larger than its only input
  std::vector<Attribute>* attributes;
};

/// The module is made once in a process, for the main interpreter.
struct State {
  PyTypeObject* dtype_type;
  PyTypeObject* device_type;
  PyTypeObject* array_type;
  PyTypeObject* op_type;
  PyTypeObject* stream_type;
  PyTypeObject* event_type;
  PyTypeObject* expression_type;
  PyTypeObject* kernel_type;
  PyTypeObject* graph_type;
  PyTypeObject* group_type;
  PyObject* dtypes[COMPUTE_DTYPE_FLOAT8_E5M2 + 1];
  compute_device* cpu;  // once it was seen; see is_cpu
  PyObject* hooks;      // a dict of Python functions that the package sets
  bool profiles;        // a profile is being taken
  compute_dtype real;   // the default dtype of floating-point numbers; NONE until it is asked for
  // Whether something reports places in the program.
  enum class Lines : int8_t { kUnknown, kNamed, kNotNamed } lines;
};
inline State state{};

inline ProgramLine::ProgramLine() noexcept : pushed_(state.lines != State::Lines::kNotNamed && push()) {}

/// The stream that the calling thread runs ops of its device on; NULL: the default streams.
[[gnu::tls_model("initial-exec")]] constinit inline thread_local compute_stream* current_stream = nullptr;

// ---- errors.cpp -----------------------------------------------------------------------------------------------------

/// Raises the exception that stands for `error`, which it frees. Returns NULL.
PyObject* raise(compute_error* error);
/// Returns whether there is no error; raises it otherwise.
inline bool succeeded(compute_error* error) {
  if (error == nullptr) [[likely]]
    return true;
  raise(error);
  return false;
}
/// Calls a function of the dict of hooks. Takes a format for the arguments, as Py_BuildValue.
PyObject* call_hook(const char* name, const char* format, ...);
/// Lets Ctrl-C end long calls of the main thread on cpu. Called in front of them.
void watch_for_interrupts();
/// The text as a str; frees it.
PyObject* take_text(compute_text* text);
/// A string of a struct of compute.h.
PyObject* text_of(const char* data, int64_t size);

// ---- dtype.cpp ------------------------------------------------------------------------------------------------------

bool add_dtypes(PyObject* module);
/// The object of a dtype, borrowed.
PyObject* dtype_object(compute_dtype id);
/// The dtype that an object stands for; NONE with an exception set if it stands for none.
compute_dtype dtype_from(PyObject* object);
inline bool is_dtype(PyObject* object) { return Py_TYPE(object) == state.dtype_type; }
inline bool is_complex(compute_dtype id) { return id == COMPUTE_DTYPE_COMPLEX64 || id == COMPUTE_DTYPE_COMPLEX128; }
inline bool is_float(compute_dtype id) { return id >= COMPUTE_DTYPE_FLOAT16 && id <= COMPUTE_DTYPE_FLOAT64; }

// ---- device.cpp -----------------------------------------------------------------------------------------------------

bool add_devices(PyObject* module);
/// The object of a device, a new reference.
PyObject* device_object(compute_device* device);
/// The device that an argument means: a Device, a selector, or None for the default device. NULL with an exception set.
compute_device* device_from(PyObject* object);
/// Whether `device` is cpu, whose default streams are immediate.
bool find_cpu(compute_device* device);
inline bool is_cpu(compute_device* device) { return device == state.cpu || find_cpu(device); }
/// Waits until the default stream and the current stream of `device` have finished. Signals such as Ctrl-C end the
/// wait. Failures of work are left to the call that needs its results.
bool wait_interruptibly(compute_device* device);
/// The stream for work on `device`: the thread's current one if it belongs to that device, else NULL.
inline compute_stream* stream_for(compute_device* device) {
  if (current_stream == nullptr) [[likely]]
    return nullptr;
  return compute_stream_device(current_stream) == device ? current_stream : nullptr;
}

/// False for numbers and for slots of graphs.
inline bool has_memory(const compute_tensor* tensor) { return compute_tensor_shares_buffer(tensor, tensor) != 0; }
/// False, with an exception set, for slots of graphs.
inline bool has_value(const compute_tensor* tensor) {
  if (compute_tensor_rank(tensor) > 0 || has_memory(tensor)) return true;
  PyErr_SetString(PyExc_TypeError, "a slot of a graph has no value yet: Graph.set gives it one for a run");
  return false;
}
/// The stream for work with tensors, of which some may be NULL: the current one if it belongs to their device. That is
/// cpu, or the device of the first tensor elsewhere. Tensors without memory are on every device.
template <class Tensors>
compute_stream* stream_for_work(const Tensors& tensors) {
  compute_device* device = nullptr;
  bool any_memory = false;
  for (const compute_tensor* const tensor : tensors) {
    if (tensor == nullptr) continue;
    device = compute_tensor_device(tensor);
    if (!is_cpu(device)) return stream_for(device);
    any_memory = any_memory || has_memory(tensor);
  }
  return any_memory ? stream_for(device) : current_stream;
}

// ---- array.cpp, indexing.cpp, operators.cpp -------------------------------------------------------------------------

bool add_arrays(PyObject* module);
/// An array over `tensor`, whose reference it takes. NULL with an exception set.
PyObject* array_object(compute_tensor* tensor);
/// A view of `base`, which has a tensor; the view gets its own later. The caller fills in its fields. NULL with an
/// exception set.
ArrayObject* lazy_view(PyObject* base);
/// The element of an array with axes whose index, one for each axis, is in range.
PyObject* element_object(PyObject* base, int32_t count, const int64_t (&indices)[2 * kLazyRank], int64_t offset);
/// The same for an array with one axis and a tensor.
PyObject* element_of_row(PyObject* base, int64_t index);
/// Fills in what indices need to know of an array.
void learn(ArrayObject* array);
inline bool is_array(PyObject* object) { return Py_TYPE(object) == state.array_type; }

/// Whether an object is a variable of compute.grad.
inline bool is_variable(PyObject* object) {
  static PyObject* variable = nullptr;
  if (variable == nullptr) variable = PyDict_GetItemString(state.hooks, "Variable");
  return reinterpret_cast<PyObject*>(Py_TYPE(object)) == variable;
}
/// Gives a view its tensor. NULL with an exception set, for want of memory alone.
compute_tensor* make_view(ArrayObject* array);
/// The tensor of an array; NULL with an exception set as above.
inline compute_tensor* tensor_of(PyObject* object) {
  auto* const array = reinterpret_cast<ArrayObject*>(object);
  return array->tensor != nullptr ? array->tensor : make_view(array);
}
/// The tensor of an array, or of the array that it is a view of, for properties that both share.
inline compute_tensor* source_of(PyObject* object) {
  auto* const array = reinterpret_cast<ArrayObject*>(object);
  return array->tensor != nullptr ? array->tensor : reinterpret_cast<ArrayObject*>(array->base)->tensor;
}
/// The tensor of an argument that must be an array; NULL with an exception set.
compute_tensor* tensor_from(PyObject* object, const char* function);

PyObject* array_subscript(PyObject* self, PyObject* key);
int array_assign_subscript(PyObject* self, PyObject* key, PyObject* value);
PyObject* array_item(PyObject* self, Py_ssize_t index);

/// The slots of Array for operators.
const std::vector<PyType_Slot>& operator_slots();
bool find_operators();
/// Whether a class of dtypes of compute_op_info has floating-point and complex ones alone.
inline bool is_inexact_class(std::string_view dtypes) { return dtypes == "FLOAT" || dtypes == "INEXACT"; }
/// Runs an elementwise op on arrays and numbers of Python. Returns NotImplemented for other operands.
/// `is_inexact` is as in OpObject.
PyObject* run_elementwise(const compute_op* op, bool is_inexact, PyObject* const* operands, int count,
                          compute_tensor* output = nullptr);
/// Core gives float32 for integers, bool and numbers where a floating-point dtype is needed. If float64 is the default,
/// one of the operands must be float64: returns its place and the new operand, or -1. A bit of `numbers` stands for an
/// operand that is a number of Python. With an exception *out is NULL and the place is not -1.
int double_operand(bool is_inexact, compute_tensor* const* tensors, int count, unsigned numbers, compute_tensor** out);
/// The default dtype of floating-point numbers: the setting COMPUTE_FLOAT.
compute_dtype default_real();
/// The number of Python that an object is or stands for, such as an integer of NumPy; empty, perhaps with an exception,
/// if it is none.
Ref number_from(PyObject* object);
/// The range of the common dtype of the arrays of a call, if all are integers: its numbers must be in it.
class IntegerRange {
 public:
  void add(compute_dtype dtype);
  [[nodiscard]] bool is_limited() const { return !mixed_ && dtype_ != COMPUTE_DTYPE_NONE; }
  /// Raises OverflowError if `number` is not in the range.
  [[nodiscard]] bool holds(PyObject* number) const;

 private:
  compute_dtype dtype_ = COMPUTE_DTYPE_NONE;
  bool mixed_ = false;  // the library checks numbers combined with arrays of other dtypes than integers
};
/// A weak scalar for a number of Python; NULL without an exception if it is none.
compute_tensor* weak_scalar(PyObject* number);
/// Whether an op on `tensor` is over so soon that releasing the interpreter would cost more.
bool is_brief(compute_tensor* tensor);

// ---- ops.cpp, memory.cpp, sequences.cpp, dlpack.cpp, streams.cpp, programs.cpp, watches.cpp -------------------------

bool add_ops(PyObject* module);
bool add_memory(PyObject* module);
bool add_dlpack(PyObject* module);
bool add_streams(PyObject* module);
bool add_programs(PyObject* module);

// ---- groups.cpp -----------------------------------------------------------------------------------------------------

bool add_groups(PyObject* module);
/// From now on the transports that are written in Python fail. Waits for their calls in progress.
void end_transports();
bool add_watches(PyObject* module);
bool add_sequences(PyObject* module);

/// The dtype of elements of `size` bytes with a format of the module struct; NONE if there is none.
compute_dtype dtype_of_format(const char* format, Py_ssize_t size);

/// Notes that a call writes to an array, in front of the call.
void note_write(compute_tensor* tensor);

/// Reads integers from a sequence, or a single one.
bool integers_from(PyObject* object, std::vector<int64_t>& out);
int array_get_buffer(PyObject* self, Py_buffer* view, int flags);
void array_release_buffer(PyObject* self, Py_buffer* view);

/// Things of Python that the library gave back on a thread that may not hold the interpreter.
void return_garbage(void (*free)(void*), void* object);
/// Frees them. Needs the interpreter.
void collect_garbage();
extern volatile int garbage_waits;

// ---- Types ----------------------------------------------------------------------------------------------------------

/// Makes a type and adds it to the module.
PyTypeObject* add_type(PyObject* module, const char* name, int size, unsigned flags, std::vector<PyType_Slot> slots);

template <class T>
T* make(PyTypeObject* type) {
  const auto allocate = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc));
  return reinterpret_cast<T*>(allocate(type, 0));
}

template <class T>
PyObject* as_object(T* object) {
  return reinterpret_cast<PyObject*>(object);
}

using Fast = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t);
using FastKeywords = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);
inline PyCFunction function(Fast call) { return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(call)); }
inline PyCFunction function(PyCFunctionWithKeywords call) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(call));
}
inline PyCFunction function(FastKeywords call) { return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(call)); }

}  // namespace compute_python

#endif  // COMPUTE_PYTHON_MODULE_HPP_
