// SPDX-License-Identifier: Apache-2.0
//
// A function for each op of the library, made from the op table when the module is imported.
//
//   op(*inputs, out=None, **attributes)   inputs are arrays, numbers of Python, or None for an absent optional input
#include <algorithm>
#include <cctype>
#include <cstring>
#include <string>

#include "module.hpp"

namespace compute_python {

namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

template <class F>
void split(std::string_view text, char separator, F each) {
  while (!text.empty()) {
    const size_t end = text.find(separator);
    const std::string_view part = trimmed(text.substr(0, end));
    if (!part.empty()) each(part);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

int32_t kind_of(std::string_view text) {
  if (text == "int64") return COMPUTE_KIND_INT64;
  if (text == "float64") return COMPUTE_KIND_FLOAT64;
  if (text == "string") return COMPUTE_KIND_STRING;
  if (text == "dtype") return COMPUTE_KIND_DTYPE;
  return text == "number" ? kNumber : 0;
}

/// Reads "name: kind[] = default !". An attribute of a kind that this module does not know is left out.
void add_attribute(std::vector<Attribute>& attributes, std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view name = trimmed(text.substr(0, colon));
  std::string_view kind = trimmed(text.substr(colon + 1));
  kind = trimmed(kind.substr(0, kind.find_first_of("=!")));
  const bool list = kind.size() > 2 && kind.substr(kind.size() - 2) == "[]";
  if (list) kind.remove_suffix(2);
  if (kind_of(kind) == 0) return;
  PyObject* const key = PyUnicode_InternFromString(std::string(name).c_str());
  attributes.push_back({key, name, kind_of(kind), list});
}

// ---- Calls ----------------------------------------------------------------------------------------------------------

/// The values of the attributes of a call, in the form of compute.h.
class Attributes {
 public:
  Attributes() = default;
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;

  /// Reserves room, because values are pointed to.
  void reserve(size_t count) {
    all_.reserve(count);
    values_.reserve(count);
    lists_.reserve(count);
    reals_.reserve(count);
    texts_.reserve(count);
  }

  bool add(const Attribute& attribute, PyObject* object) {
    if (object == Py_None) return true;
    values_.push_back({});
    Value& value = values_.back();
    compute_attribute out{sizeof(compute_attribute),
                          COMPUTE_STRUCT_ATTRIBUTE,
                          nullptr,
                          attribute.text.data(),
                          static_cast<int64_t>(attribute.text.size()),
                          attribute.kind,
                          0,
                          1,
                          &value};
    const bool converted = attribute.list ? add_list(attribute, object, out) : add_value(attribute, object, value, out);
    all_.push_back(out);
    return converted;
  }
  [[nodiscard]] const compute_attribute* data() const { return all_.data(); }
  [[nodiscard]] int64_t count() const { return static_cast<int64_t>(all_.size()); }

 private:
  union Value {
    int64_t integer;
    double parts[2];
    compute_dtype dtype;
    compute_string text;
    compute_tensor* tensor;
  };

  bool add_list(const Attribute& attribute, PyObject* object, compute_attribute& out) {
    if (attribute.kind == COMPUTE_KIND_FLOAT64) return add_reals(object, out);
    if (attribute.kind != COMPUTE_KIND_INT64) {
      PyErr_SetString(PyExc_TypeError, "lists of attributes other than numbers are not supported");
      return false;
    }
    lists_.emplace_back();
    if (!integers_from(object, lists_.back())) return false;
    out.values = lists_.back().data();
    out.count = static_cast<int64_t>(lists_.back().size());
    return true;
  }

  bool add_reals(PyObject* object, compute_attribute& out) {
    const Py_ssize_t size = PySequence_Size(object);
    if (size < 0) return false;
    std::vector<double>& list = reals_.emplace_back();
    for (Py_ssize_t i = 0; i < size; ++i) {
      const Ref item(PySequence_GetItem(object, i));
      if (!item) return false;
      list.push_back(PyFloat_AsDouble(item.get()));
      if (PyErr_Occurred() != nullptr) return false;
    }
    out.values = list.data();
    out.count = static_cast<int64_t>(list.size());
    return true;
  }

  bool add_value(const Attribute& attribute, PyObject* object, Value& value, compute_attribute& out) {
    switch (attribute.kind) {
      case COMPUTE_KIND_INT64: {
        const Ref index(PyNumber_Index(object));
        if (!index) return false;
        value.integer = PyLong_AsLongLong(index.get());
        break;
      }
      case COMPUTE_KIND_FLOAT64:
        value.parts[0] = PyFloat_AsDouble(object);
        break;
      case COMPUTE_KIND_DTYPE:
        value.dtype = dtype_from(object);
        break;
      case COMPUTE_KIND_STRING:
        return add_text(object, value);
      default:
        return add_number(object, value, out);
    }
    return PyErr_Occurred() == nullptr;
  }

  bool add_text(PyObject* object, Value& value) {
    texts_.emplace_back(PyUnicode_AsUTF8String(object));
    char* data = nullptr;
    Py_ssize_t size = 0;
    if (!texts_.back() || PyBytes_AsStringAndSize(texts_.back().get(), &data, &size) < 0) return false;
    value.text = {data, size};
    return true;
  }

  bool add_number(PyObject* given, Value& value, compute_attribute& out) {
    if (is_array(given)) {
      out.kind = COMPUTE_KIND_SCALAR;
      value.tensor = tensor_of(given);
      return value.tensor != nullptr;
    }
    const Ref number(number_from(given));
    if (PyErr_Occurred() != nullptr) return false;
    PyObject* const object = number ? number.get() : given;
    if (PyComplex_Check(object) != 0) {
      out.kind = COMPUTE_KIND_COMPLEX128;
      value.parts[0] = PyComplex_RealAsDouble(object);
      value.parts[1] = PyComplex_ImagAsDouble(object);
    } else if (PyLong_Check(object) != 0) {
      int overflow = 0;
      out.kind = COMPUTE_KIND_INT64;
      value.integer = PyLong_AsLongLongAndOverflow(object, &overflow);
      if (overflow > 0) {  // uint64
        owned_ = weak_scalar(object);
        out.kind = COMPUTE_KIND_SCALAR;
        value.tensor = owned_;
      } else if (overflow < 0) {
        Py_XDECREF(call_hook("too_large", "(Oss)", object, "", "64 bits"));
      }
    } else {
      out.kind = COMPUTE_KIND_FLOAT64;
      value.parts[0] = PyFloat_AsDouble(object);
    }
    return PyErr_Occurred() == nullptr;
  }

  struct Release {
    compute_tensor* tensor = nullptr;
    Release& operator=(compute_tensor* x) {
      compute_tensor_release(tensor);
      tensor = x;
      return *this;
    }
    operator compute_tensor*() const { return tensor; }
    ~Release() { compute_tensor_release(tensor); }
  };

  std::vector<compute_attribute> all_;
  std::vector<Value> values_;
  std::vector<std::vector<int64_t>> lists_;
  std::vector<std::vector<double>> reals_;
  std::vector<Ref> texts_;
  Release owned_;
};

/// The tensors of a call. Scalars that were made for it are released at its end.
struct Tensors {
  std::vector<compute_tensor*> inputs;
  std::vector<compute_tensor*> outputs;
  std::vector<compute_tensor*> owned;
  std::vector<Ref> integers;
  bool has_reals = false;
  bool has_array = false;

  Tensors() = default;
  Tensors(const Tensors&) = delete;
  Tensors& operator=(const Tensors&) = delete;
  ~Tensors() {
    for (compute_tensor* const tensor : owned) compute_tensor_release(tensor);
  }

  bool add_input(PyObject* object) {
    compute_tensor* tensor = nullptr;
    if (is_array(object)) {
      tensor = tensor_of(object);
      if (tensor == nullptr) return false;
    } else if (object != Py_None) {
      Ref number(number_from(object));
      tensor = number ? weak_scalar(number.get()) : nullptr;
      if (tensor == nullptr) return false;  // with an exception only if a number does not fit
      owned.push_back(tensor);
      has_reals |= PyLong_Check(number.get()) == 0;
      if (PyLong_Check(number.get()) != 0) integers.push_back(std::move(number));
    }
    inputs.push_back(tensor);
    has_array |= tensor != nullptr && is_array(object);
    return true;
  }
  /// Whether the integers among the inputs fit in the dtype of the arrays; raises OverflowError if one does not.
  [[nodiscard]] bool integers_fit() const {
    IntegerRange range;
    for (compute_tensor* const tensor : inputs) {
      if (tensor != nullptr && std::find(owned.begin(), owned.end(), tensor) == owned.end()) {
        range.add(compute_tensor_dtype(tensor));
      }
    }
    if (has_reals) return true;  // the result is no integer
    return std::all_of(integers.begin(), integers.end(), [&](const Ref& number) { return range.holds(number.get()); });
  }
  /// For the default dtype float64; returns false with an exception.
  bool use_double(bool is_inexact) {
    unsigned numbers = 0;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (std::find(owned.begin(), owned.end(), inputs[i]) != owned.end()) numbers |= 1u << i;
    }
    compute_tensor* converted = nullptr;
    const int place = double_operand(is_inexact, inputs.data(), static_cast<int>(inputs.size()), numbers, &converted);
    if (place < 0) return true;
    if (converted == nullptr) return false;
    owned.push_back(converted);
    inputs[static_cast<size_t>(place)] = converted;
    return true;
  }
  [[nodiscard]] compute_stream* stream() const {
    std::vector<compute_tensor*> all = inputs;
    all.insert(all.end(), outputs.begin(), outputs.end());
    return stream_for_work(all);
  }
};

/// For pickle, which looks up a function of the table as an attribute of its op in this module.
PyObject* op_reduce(PyObject*, PyObject*) {
  const Ref import_module(PyImport_ImportModule("importlib"));
  const Ref load(import_module ? PyObject_GetAttrString(import_module.get(), "import_module") : nullptr);
  return load ? Py_BuildValue("(O(s))", load.get(), "compute._ops") : nullptr;
}
PyMethodDef op_methods[] = {{"__reduce__", op_reduce, METH_NOARGS, nullptr}, {}};

const OpObject& op_of(PyObject* self) { return *reinterpret_cast<OpObject*>(self); }

bool add_outputs(const OpObject& op, PyObject* out, Tensors& tensors) {
  tensors.outputs.assign(static_cast<size_t>(op.output_count), nullptr);
  if (out == nullptr || out == Py_None) return true;
  if (is_array(out) && op.output_count == 1) {
    tensors.outputs[0] = tensor_of(out);
    return tensors.outputs[0] != nullptr;
  }
  if (PyTuple_Check(out) == 0 || PyTuple_Size(out) != op.output_count) {
    PyErr_Format(PyExc_TypeError, "out must be %s", op.output_count == 1 ? "an array" : "a tuple of all outputs");
    return false;
  }
  for (Py_ssize_t i = 0; i < PyTuple_Size(out); ++i) {
    PyObject* const one = PyTuple_GetItem(out, i);
    if (one == Py_None) continue;
    if ((tensors.outputs[static_cast<size_t>(i)] = tensor_from(one, "out")) == nullptr) return false;
  }
  return true;
}

/// Says which argument it was whose value has a wrong type or does not fit. Other exceptions stay as they are. Returns
/// false.
bool wrong_value(const OpObject& op, const Attribute& attribute, PyObject* value) {
  const bool whole = attribute.kind == COMPUTE_KIND_INT64;
  if (PyErr_ExceptionMatches(PyExc_OverflowError) != 0 && PyLong_Check(value) != 0) {
    PyErr_Clear();
    const char* const dtype = whole ? "int64" : attribute.kind == COMPUTE_KIND_FLOAT64 ? "float64" : "64 bits";
    Py_XDECREF(call_hook("too_large", "(OOs)", value, attribute.name, dtype));
  }
  if (PyErr_ExceptionMatches(PyExc_TypeError) == 0 || is_array(value)) return false;
  const char* const wanted = attribute.list                          ? "integers"
                             : whole                                 ? "an integer"
                             : attribute.kind == COMPUTE_KIND_STRING ? "a str"
                             : attribute.kind == COMPUTE_KIND_DTYPE  ? "a dtype"
                                                                     : "a number";
  PyErr_Format(PyExc_TypeError, "%s: %S is %R; expected %s", op.name, attribute.name, value, wanted);
  return false;
}

bool add_keywords(const OpObject& op, PyObject* const* values, PyObject* names, Attributes& attributes,
                  PyObject** out) {
  const Py_ssize_t count = names != nullptr ? PyTuple_Size(names) : 0;
  attributes.reserve(static_cast<size_t>(count));
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* const name = PyTuple_GetItem(names, i);
    const Attribute* found = nullptr;
    for (const Attribute& attribute : *op.attributes) {
      if (attribute.name == name || PyUnicode_Compare(attribute.name, name) == 0) found = &attribute;
    }
    if (found != nullptr) {
      if (is_variable(values[i])) {
        call_hook("variable_attribute", "(O)", found->name);
        return false;
      }
      if (!attributes.add(*found, values[i])) return wrong_value(op, *found, values[i]);
    } else if (PyUnicode_CompareWithASCIIString(name, "out") == 0) {
      *out = values[i];
    } else {
      PyErr_Format(PyExc_TypeError, "%s has no attribute %R", op.name, name);
      return false;
    }
  }
  return true;
}

/// The outputs as an array or a tuple of arrays: `out`, or new ones. `given` has the tensors that the caller passed.
PyObject* results(Tensors& tensors, const std::vector<compute_tensor*>& given, PyObject* out) {
  if (out != nullptr && is_array(out)) return Ref::share(out).release();
  if (tensors.outputs.size() == 1) [[likely]] {
    if (given[0] != nullptr) compute_tensor_retain(given[0]);
    return array_object(tensors.outputs[0]);
  }
  Ref tuple(PyTuple_New(static_cast<Py_ssize_t>(tensors.outputs.size())));
  for (size_t i = 0; i < tensors.outputs.size(); ++i) {
    if (given[i] != nullptr) compute_tensor_retain(given[i]);
    PyObject* const array = array_object(tensors.outputs[i]);
    if (array == nullptr || !tuple || PyTuple_SetItem(tuple.get(), static_cast<Py_ssize_t>(i), array) < 0) {
      return nullptr;
    }
  }
  return tuple.release();
}

/// The arguments of a call as a tuple and a dict.
struct Arguments {
  Arguments(PyObject* const* args, Py_ssize_t count, PyObject* names)
      : positional(PyTuple_New(count)), named(PyDict_New()) {
    for (Py_ssize_t i = 0; positional && i < count; ++i) {
      PyTuple_SetItem(positional.get(), i, Ref::share(args[i]).release());
    }
    for (Py_ssize_t i = 0; named && names != nullptr && i < PyTuple_Size(names); ++i) {
      if (PyDict_SetItem(named.get(), PyTuple_GetItem(names, i), args[count + i]) < 0) named = Ref();
    }
  }
  explicit operator bool() const { return positional && named; }

  Ref positional, named;
};

/// Hands a call to an operand that is neither an array nor a number, such as a variable of compute.grad.
PyObject* dispatch(const OpObject& op, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  const Arguments call(args, count, names);
  return call ? call_hook("dispatch", "(sOO)", op.name, call.positional.get(), call.named.get()) : nullptr;
}

PyObject* run(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  const OpObject& op = op_of(self);
  Tensors tensors;
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (tensors.add_input(args[i])) continue;
    return PyErr_Occurred() == nullptr ? dispatch(op, args, count, names) : nullptr;
  }
  if (!tensors.has_array && !tensors.owned.empty()) return dispatch(op, args, count, names);
  if (op.promotes && !op.is_inexact && !tensors.integers.empty() && !tensors.integers_fit()) return nullptr;
  if (op.elementwise && !tensors.use_double(op.is_inexact)) return nullptr;
  while (!op.variadic && tensors.inputs.size() < static_cast<size_t>(op.input_count)) tensors.inputs.push_back(nullptr);
  Attributes attributes;
  PyObject* out = nullptr;
  if (!add_keywords(op, args + count, names, attributes, &out) || !add_outputs(op, out, tensors)) return nullptr;
  const std::vector<compute_tensor*> given = tensors.outputs;
  for (compute_tensor* const tensor : given) {
    if (tensor != nullptr) note_write(tensor);
  }
  compute_stream* stream = current_stream;
  if (stream != nullptr) stream = tensors.stream();
  compute_error* error = nullptr;
  {
    const bool brief = op.reduces && tensors.inputs[0] != nullptr && is_brief(tensors.inputs[0]);
    const ProgramLine line;
    const Unlocked unlocked(!brief);
    error = compute_op_run(op.handle, stream, attributes.data(), attributes.count(), tensors.inputs.data(),
                           static_cast<int64_t>(tensors.inputs.size()), tensors.outputs.data(),
                           static_cast<int64_t>(tensors.outputs.size()));
  }
  return succeeded(error) ? results(tensors, given, out) : nullptr;
}

/// A function of Python that takes more arguments than an op has inputs, such as decimals for round; borrowed.
PyObject* other_form(const OpObject& op) {
  PyObject* const forms = PyDict_GetItemString(state.hooks, "forms");
  return forms != nullptr ? PyDict_GetItemString(forms, op.name) : nullptr;
}

/// Whether the names of the arguments of a call have one that elementwise functions have in NumPy or PyTorch alone.
bool has_option(PyObject* names) {
  constexpr const char* kOptions[] = {"where", "dtype", "input", "other", "exponent", "divisor", "value", "values"};
  static PyObject* const out = PyUnicode_InternFromString("out");
  for (Py_ssize_t i = 0; names != nullptr && i < PyTuple_Size(names); ++i) {
    PyObject* const name = PyTuple_GetItem(names, i);
    if (name == out) continue;
    for (const char* const option : kOptions) {
      if (PyUnicode_CompareWithASCIIString(name, option) == 0) return true;
    }
  }
  return false;
}

PyObject* run_row(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  const OpObject& op = op_of(self);
  const bool has_names = names != nullptr && PyTuple_Size(names) > 0;
  if (count != op.input_count || has_names) {
    if (PyObject* const form = other_form(op)) {
      const Arguments call(args, count, names);
      return call ? PyObject_Call(form, call.positional.get(), call.named.get()) : nullptr;
    }
    if (count > op.input_count || has_option(names)) {
      const Arguments call(args, count, names);
      return call ? call_hook("with_options", "(sOO)", op.name, call.positional.get(), call.named.get()) : nullptr;
    }
  }
  if (has_names) return run(self, args, count, names);
  if (count != op.input_count) {
    return PyErr_Format(PyExc_TypeError, "%s takes %d argument%s, not %zd", op.name, static_cast<int>(op.input_count),
                        op.input_count == 1 ? "" : "s", count);
  }
  PyObject* const result = run_elementwise(op.handle, op.is_inexact, args, static_cast<int>(count));
  if (result != Py_NotImplemented) return result;
  Py_DECREF(result);
  return dispatch(op, args, count, nullptr);
}

// ---- The table ------------------------------------------------------------------------------------------------------

/// A function and what its definition points to; for good.
struct Function {
  std::string name;
  std::string doc;
  PyMethodDef definition;
};

PyObject* make_function(PyObject* op, std::string name, std::string doc, PyCFunction call, int flags) {
  auto* const kept = new Function{std::move(name), std::move(doc), {}};
  kept->definition = {kept->name.c_str(), call, flags, kept->doc.c_str()};
  static PyObject* const module_name = PyUnicode_InternFromString("compute");
  return PyCFunction_NewEx(&kept->definition, op, module_name);
}

/// Renames x, y and z in a text to x1, x2 and x3 for functions of several arguments.
std::string with_numbers(std::string_view text, int32_t input_count) {
  const auto is_word = [](char c) { return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0; };
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    out += text[i];
    const bool alone = (i == 0 || !is_word(text[i - 1])) && (i + 1 == text.size() || !is_word(text[i + 1]));
    if (!alone || input_count < 2 || text[i] < 'x' || text[i] >= 'x' + input_count) continue;
    out.back() = 'x';
    out += static_cast<char>('1' + text[i] - 'x');
  }
  return out;
}

/// The dtypes that an elementwise op takes, in words.
std::string dtypes_text(std::string_view set) {
  constexpr std::pair<std::string_view, const char*> kSets[] = {{"ANY", "all"},
                                                                {"BOOL", "bool"},
                                                                {"BITS", "integers and bool"},
                                                                {"INTEGER", "integers"},
                                                                {"FLOAT", "floating-point"},
                                                                {"INEXACT", "floating-point and complex"},
                                                                {"REAL", "integers and floating-point"},
                                                                {"NUMERIC", "all but bool"},
                                                                {"COMPLEX", "complex"}};
  for (const auto& [name, text] : kSets) {
    if (set == name) return text;
  }
  return std::string(set);
}

/// The bound of an elementwise op, in words.
std::string bound_text(std::string_view bound) {
  if (bound == "ulp:0") return "none, or correctly rounded";
  return bound.substr(0, 4) == "ulp:" ? "at most " + std::string(bound.substr(4)) + " ULP" : std::string(bound);
}

/// The docstring of the function of an op, with its signature. `example` is a call and its result, as doctest has them.
std::string documentation(const compute_op_info& info, const OpObject& op, std::string_view example) {
  std::string doc = std::string(info.name) + "(";
  if (!op.elementwise) {
    return doc + "*inputs, out=None, **attributes)\n--\n\n" + std::string(info.summary) +
           ".\n\ninputs:     " + std::string(info.inputs) + "\nattributes: " + std::string(info.attributes) +
           "\nError:      " + std::string(info.bound);
  }
  std::string parameters = op.input_count == 1 ? "x" : "";
  for (int32_t i = 0; op.input_count > 1 && i < op.input_count; ++i) {
    parameters += (i == 0 ? "x" : ", x") + std::to_string(i + 1);
  }
  const bool is_one = op.input_count == 1;
  const size_t width = std::max<size_t>(parameters.size(), 7) + 2;
  const auto row = [width](std::string name, const char* text) {
    name.resize(width, ' ');
    return "\n" + name + text;
  };
  doc += parameters + ", /)\n--\n\n" + with_numbers(info.summary, op.input_count) + ".\n" +
         row(parameters, is_one ? "an array, a list or a number" : "arrays, lists or numbers, which broadcast") +
         row("out", "an array for the result") +
         row("where", "a mask: only where it is true are elements of `out` written") +
         row("dtype", "the dtype to compute in") +
         row("returns", is_one ? "an array of the same shape" : "an array of their common shape") +
         "\n\nRaises TypeError for other dtypes" + (is_one ? "." : ", and ValueError if the shapes do not broadcast.");
  if (!example.empty()) doc += "\n\n" + std::string(example);
  doc +=
      "\n\nExpression: " + with_numbers(info.expression, op.input_count) + "\nDtypes:     " + dtypes_text(info.dtypes);
  if (op.is_inexact) doc += "; integers and bool in the default dtype";
  return doc + "\nError:      " + bound_text(info.bound);
}

OpObject* op_object(const compute_op* handle, const compute_op_info& info) {
  auto* const op = make<OpObject>(state.op_type);
  if (op == nullptr) return nullptr;
  op->handle = handle;
  op->name = info.name;
  op->elementwise = info.expression_size > 0;
  op->promotes = op->elementwise || std::string_view(info.dtypes) == "promote";
  op->is_inexact = op->elementwise && is_inexact_class(info.dtypes);
  op->attributes = new std::vector<Attribute>;
  split(info.inputs, ' ', [&](std::string_view name) {
    ++op->input_count;
    op->variadic |= name.size() > 3 && name.substr(name.size() - 3) == "...";
  });
  split(info.outputs, ' ', [&](std::string_view) { ++op->output_count; });
  split(info.attributes, ';', [&](std::string_view text) { add_attribute(*op->attributes, text); });
  for (const Attribute& attribute : *op->attributes)
    op->reduces |= attribute.text == "keepdims" && op->input_count == 1;
  return op;
}

/// A dict that describes an op, with its functions: "run", and "row" if it is elementwise.
PyObject* entry(const compute_op_info& info, PyObject* examples) {
  const compute_op* handle = nullptr;
  if (!succeeded(compute_op_find(info.name, info.version, &handle))) return nullptr;
  const Ref op(as_object(op_object(handle, info)));
  if (!op) return nullptr;
  const OpObject& known = op_of(op.get());
  PyObject* const example = examples != nullptr ? PyDict_GetItemString(examples, info.name) : nullptr;
  const Ref text(example != nullptr ? PyUnicode_AsUTF8String(example) : nullptr);
  const std::string doc = documentation(info, known, text ? PyBytes_AsString(text.get()) : "");
  const Ref generic(make_function(op.get(), info.name, doc, function(run), METH_FASTCALL | METH_KEYWORDS));
  const Ref row(known.elementwise
                    ? make_function(op.get(), info.name, doc, function(run_row), METH_FASTCALL | METH_KEYWORDS)
                    : Ref::share(Py_None).release());
  if (!generic || !row) return nullptr;
  return Py_BuildValue("{s:s,s:i,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:O,s:O}", "name", info.name, "version",
                       static_cast<int>(info.version), "summary", info.summary, "inputs", info.inputs, "attributes",
                       info.attributes, "outputs", info.outputs, "expression", info.expression, "dtypes", info.dtypes,
                       "bound", info.bound, "run", generic.get(), "row", row.get());
}

/// op_table(examples): the description of each op, by name. `examples` is a dict of texts for docstrings.
PyObject* op_table(PyObject*, PyObject* examples) {
  int64_t count = 0;
  if (!succeeded(compute_op_list(nullptr, 0, &count))) return nullptr;
  std::vector<compute_op_info> infos(static_cast<size_t>(count) + 1);
  infos[0].struct_size = sizeof infos[0];
  if (!succeeded(compute_op_list(infos.data(), count, &count))) return nullptr;
  Ref dict(PyDict_New());
  for (int64_t i = 0; dict && i < count; ++i) {  // versions ascend: the newest stays
    const Ref one(entry(infos[static_cast<size_t>(i)], examples));
    if (!one || PyDict_SetItemString(dict.get(), infos[static_cast<size_t>(i)].name, one.get()) < 0) return nullptr;
  }
  return dict.release();
}

/// find_op(name, version): an entry of the table for one op, also for a registered one.
PyObject* find_op(PyObject*, PyObject* args) {
  const char* name = nullptr;
  int version = 0;
  const compute_op* op = nullptr;
  compute_op_info info{};
  info.struct_size = sizeof info;
  if (PyArg_ParseTuple(args, "si", &name, &version) == 0 || !succeeded(compute_op_find(name, version, &op)) ||
      !succeeded(compute_op_get_info(op, &info))) {
    return nullptr;
  }
  return entry(info, nullptr);
}

/// register_op(name, inputs, attributes, dtypes, expression, composition, outputs, summary, version)
PyObject* register_op(PyObject*, PyObject* args) {
  compute_op_registration r{};
  r.struct_size = sizeof r;
  r.struct_type = COMPUTE_STRUCT_OP_REGISTRATION;
  int version = 1;
  if (PyArg_ParseTuple(args, "sszzzzzzi", &r.name, &r.inputs, &r.attributes, &r.dtypes, &r.expression, &r.composition,
                       &r.outputs, &r.summary, &version) == 0) {
    return nullptr;
  }
  const auto size = [](const char* text) { return text != nullptr ? static_cast<int64_t>(std::strlen(text)) : 0; };
  r.name_size = size(r.name);
  r.inputs_size = size(r.inputs);
  r.attributes_size = size(r.attributes);
  r.dtypes_size = size(r.dtypes);
  r.expression_size = size(r.expression);
  r.composition_size = size(r.composition);
  r.outputs_size = size(r.outputs);
  r.summary_size = size(r.summary);
  r.version = version;
  const compute_op* op = nullptr;
  if (!succeeded(compute_op_register(&r, &op))) return nullptr;
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {{"op_table", op_table, METH_O, nullptr},
                           {"find_op", find_op, METH_VARARGS, nullptr},
                           {"register_op", register_op, METH_VARARGS, nullptr},
                           {}};

}  // namespace

bool integers_from(PyObject* object, std::vector<int64_t>& out) {
  const bool is_single = PyIndex_Check(object) != 0 && !is_array(object);
  const Py_ssize_t count = is_single ? 1 : PySequence_Size(object);
  for (Py_ssize_t i = 0; i < count; ++i) {
    const Ref item(is_single ? Ref::share(object).release() : PySequence_GetItem(object, i));
    out.push_back(item ? PyNumber_AsSsize_t(item.get(), PyExc_OverflowError) : -1);
    if (out.back() == -1 && PyErr_Occurred() != nullptr) break;
  }
  if (count >= 0 && PyErr_Occurred() == nullptr) return true;
  for (PyObject* const kind : {PyExc_TypeError, PyExc_OverflowError}) {
    if (PyErr_ExceptionMatches(kind) == 0) continue;
    PyErr_Clear();
    call_hook("no_integers", "(OO)", object, kind);
    break;
  }
  return false;
}

bool add_ops(PyObject* module) {
  state.op_type = add_type(module, "compute.Op", sizeof(OpObject), Py_TPFLAGS_DISALLOW_INSTANTIATION,
                           {{Py_tp_methods, op_methods}, {Py_tp_doc, const_cast<char*>("An op of the library.")}});
  return state.op_type != nullptr && PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace compute_python
