// SPDX-License-Identifier: Apache-2.0
//
// op.hpp: ops by name, plans, and expressions. Include compute.hpp.
//
// The functions of ops.hpp are faster and keep their meaning; what is here serves ops that are known at run time alone:
// a plugin's, a user's, or those of a binding.
#ifndef COMPUTE_OP_HPP_
#define COMPUTE_OP_HPP_

#include <algorithm>
#include <array>
#include <variant>

#include "compute/ops.hpp"

namespace compute {

/// An attribute by name: Attribute("axes", {0, 1}), Attribute("dtype", float32). It owns its value.
class Attribute {
  // What a value that is no plain number is given as.
  struct Place {
    compute_string string{};
    compute_tensor* tensor = nullptr;
    compute_dtype dtype = COMPUTE_DTYPE_NONE;
  };

 public:
  template <IntegerType T>
  Attribute(std::string name, T value) : name_(std::move(name)), value_(Integer(value).value()) {}
  template <std::same_as<bool> T>
  Attribute(std::string name, T value) : name_(std::move(name)), value_(int64_t{value}) {}
  Attribute(std::string name, std::initializer_list<int64_t> values) : name_(std::move(name)), value_(Shape(values)) {}
  Attribute(std::string name, Shape values) : name_(std::move(name)), value_(std::move(values)) {}
  template <std::floating_point T>
  Attribute(std::string name, T value) : name_(std::move(name)), value_(static_cast<double>(value)) {}
  template <std::floating_point T>
  Attribute(std::string name, std::complex<T> value) : name_(std::move(name)), value_(std::complex<double>(value)) {}
  Attribute(std::string name, const char* value) : name_(std::move(name)), value_(std::string(value)) {}
  Attribute(std::string name, std::string value) : name_(std::move(name)), value_(std::move(value)) {}
  Attribute(std::string name, DType value) : name_(std::move(name)), value_(value) {}
  /// A scalar or a graph's slot, for a run-time attribute.
  Attribute(std::string name, Tensor value) : name_(std::move(name)), value_(std::move(value)) {}

  [[nodiscard]] const std::string& name() const noexcept { return name_; }

  /// A list as compute.h takes it. Valid as long as the attributes.
  class Array {
   public:
    explicit Array(List<Attribute> attributes) : handles_(attributes.size()), all_(attributes.size()) {
      for (size_t i = 0; i < attributes.size(); ++i) all_[i] = attributes[i].raw(handles_[i]);
    }
    Array(const Array&) = delete;
    Array& operator=(const Array&) = delete;
    [[nodiscard]] const compute_attribute* data() const noexcept { return all_.data(); }
    [[nodiscard]] int64_t size() const noexcept { return static_cast<int64_t>(all_.size()); }

   private:
    std::vector<Place> handles_;
    std::vector<compute_attribute> all_;
  };

 private:
  [[nodiscard]] compute_attribute raw(Place& place) const {
    compute_attribute to{};
    to.struct_size = sizeof to;
    to.struct_type = COMPUTE_STRUCT_ATTRIBUTE;
    to.name = name_.data();
    to.name_size = static_cast<int64_t>(name_.size());
    to.count = 1;
    const auto give = [&](int32_t kind, const void* values) {
      to.kind = kind;
      to.values = values;
    };
    if (const auto* integer = std::get_if<int64_t>(&value_)) {
      give(COMPUTE_KIND_INT64, integer);
    } else if (const auto* list = std::get_if<Shape>(&value_)) {
      static constexpr int64_t kNothing = 0;
      give(COMPUTE_KIND_INT64, list->empty() ? &kNothing : list->data());
      to.count = static_cast<int64_t>(list->size());
    } else if (const auto* real = std::get_if<double>(&value_)) {
      give(COMPUTE_KIND_FLOAT64, real);
    } else if (const auto* complex = std::get_if<std::complex<double>>(&value_)) {
      give(COMPUTE_KIND_COMPLEX128, complex);
    } else if (const auto* text = std::get_if<std::string>(&value_)) {
      place.string = {text->data(), static_cast<int64_t>(text->size())};
      give(COMPUTE_KIND_STRING, &place.string);
    } else if (const auto* dtype = std::get_if<DType>(&value_)) {
      place.dtype = dtype->id();
      give(COMPUTE_KIND_DTYPE, &place.dtype);
    } else {
      place.tensor = std::get<Tensor>(value_).get();
      give(COMPUTE_KIND_SCALAR, &place.tensor);
    }
    return to;
  }

  std::string name_;
  std::variant<int64_t, Shape, double, std::complex<double>, std::string, DType, Tensor> value_;
};

/// An operand without memory, for queries.
struct TensorSpec {
  DType dtype;
  Shape shape;
  Shape strides = {};   ///< empty: row-major
  bool scalar = false;  ///< a scalar: rank 0, given by value
  bool weak = false;    ///< a weak one
  bool absent = false;  ///< an optional operand that is left out; nothing else counts

  [[nodiscard]] static TensorSpec left_out() { return {.dtype = {}, .shape = {}, .absent = true}; }
  [[nodiscard]] static TensorSpec of(const Tensor& tensor) {
    return {.dtype = tensor.dtype(),
            .shape = Shape(tensor.shape().begin(), tensor.shape().end()),
            .strides = Shape(tensor.strides().begin(), tensor.strides().end())};
  }
};

namespace detail {

[[nodiscard]] inline std::vector<compute_tensor_spec> raw_specs(List<TensorSpec> specs) {
  std::vector<compute_tensor_spec> all(specs.size());
  for (size_t i = 0; i < specs.size(); ++i) {
    const TensorSpec& from = specs[i];
    if (!from.strides.empty() && from.strides.size() != from.shape.size()) {
      throw_invalid("TensorSpec: the numbers of strides and extents differ");
    }
    compute_tensor_spec& to = all[i];
    to.struct_size = sizeof to;
    to.struct_type = COMPUTE_STRUCT_TENSOR_SPEC;
    to.dtype = from.dtype.id();
    to.rank = static_cast<int32_t>(from.shape.size());
    to.shape = from.shape.data();
    to.strides = from.strides.empty() ? nullptr : from.strides.data();
    to.flags = (from.scalar ? uint32_t{COMPUTE_SPEC_SCALAR} : 0u) | (from.weak ? uint32_t{COMPUTE_SPEC_WEAK} : 0u) |
               (from.absent ? uint32_t{COMPUTE_SPEC_ABSENT} : 0u);
  }
  return all;
}

// Outputs that are written, not made.
inline void require_defined(Handles& outputs) {
  for (int64_t i = 0; i < outputs.size(); ++i) {
    if (outputs.data()[i] == nullptr) throw_invalid("output " + std::to_string(i) + " is an empty tensor");
  }
}

// The results of a call with in-out outputs that makes all of them.
template <class F>
[[nodiscard]] std::vector<Tensor> outputs_of(size_t count, F&& call) {
  std::vector<compute_tensor*> handles(count, nullptr);
  std::vector<Tensor> outputs(count);
  check(call(handles.data(), static_cast<int64_t>(count)));
  for (size_t i = 0; i < count; ++i) outputs[i] = Tensor(handles[i]);
  return outputs;
}

}  // namespace detail

/// How a device would run something.
enum class SupportLevel : int32_t {
  unsupported = COMPUTE_SUPPORT_NONE,       ///< not at all; the reason says why
  native = COMPUTE_SUPPORT_NATIVE,          ///< in one step
  decomposed = COMPUTE_SUPPORT_DECOMPOSED,  ///< in several steps
  host = COMPUTE_SUPPORT_HOST               ///< on the host; the reason says why not on the device
};

/// Why a plugin refused an op or a step of it; see compute.h. A later library may have further ones: take them for
/// `not_implemented`.
enum class Refusal : int32_t {
  not_refused = COMPUTE_REASON_NONE,
  not_implemented = COMPUTE_REASON_NOT_IMPLEMENTED,
  dtype = COMPUTE_REASON_DTYPE,
  layout = COMPUTE_REASON_LAYOUT,
  rank = COMPUTE_REASON_RANK,
  shape = COMPUTE_REASON_SHAPE,
  attribute = COMPUTE_REASON_ATTRIBUTE,
  library_missing = COMPUTE_REASON_LIBRARY_MISSING,
  intrinsic = COMPUTE_REASON_INTRINSIC
};

struct Support {
  SupportLevel level = SupportLevel::unsupported;
  std::string reason;                      ///< why the plugin refused the op or a step of it; "" if it did not
  int64_t workspace_bytes = -1;            ///< of temporary memory; -1: known when it is prepared
  Refusal refusal = Refusal::not_refused;  ///< the kind of the reason
  int32_t argument = -1;                   ///< the position of the operand at fault, or -1
};

namespace detail {

template <class F>
[[nodiscard]] Support support_of(F&& query) {
  auto answer = sized<compute_support>();
  check(query(&answer));
  Text text;
  text.text = answer.text;
  return {static_cast<SupportLevel>(answer.support), text.str(), answer.workspace_bytes,
          static_cast<Refusal>(answer.reason), answer.argument};
}

}  // namespace detail

/// An op's schema. Strings live as long as the process; their grammar is in compute.h.
struct OpInfo {
  std::string_view name;
  std::string_view summary;
  std::string_view inputs;
  std::string_view outputs;  ///< names, separated by blanks
  std::string_view attributes;
  std::string_view expression;  ///< of an elementwise op; else ""
  std::string_view dtypes;
  std::string_view bound;
  int32_t version = 0;
  bool in_place = false;  ///< may write into the identical view of an input
  bool groups = false;    ///< a call may have several groups of inputs and outputs

  OpInfo() = default;
  explicit OpInfo(const compute_op_info& from)
      : name(detail::string_of(from.name, from.name_size)),
        summary(detail::string_of(from.summary, from.summary_size)),
        inputs(detail::string_of(from.inputs, from.inputs_size)),
        outputs(detail::string_of(from.outputs, from.outputs_size)),
        attributes(detail::string_of(from.attributes, from.attributes_size)),
        expression(detail::string_of(from.expression, from.expression_size)),
        dtypes(detail::string_of(from.dtypes, from.dtypes_size)),
        bound(detail::string_of(from.bound, from.bound_size)),
        version(from.version),
        in_place((from.flags & COMPUTE_OP_IN_PLACE) != 0),
        groups((from.flags & COMPUTE_OP_GROUPS) != 0) {}
};

/// A kernel of a registered op; the fields are those of compute_op_kernel.
struct OpKernel {
  std::string language = "portable";
  std::string source;
  std::string name;   ///< of the kernel function
  std::string items;  ///< "y.size"
  std::string values;
  std::array<int64_t, 3> group_size{256, 0, 0};
  bool strided = false;
  std::string compiler_options;
};

/// An op by name. Immortal: copies cost nothing.
class Op {
 public:
  /// Version 0 is the newest, whose meaning may change with the library. NOT_FOUND has the nearest name.
  explicit Op(const std::string& name, Integer version = 0) {
    const int64_t number = version.value();
    if (number < 0 || number > std::numeric_limits<int32_t>::max())
      detail::throw_invalid("Op: the version is negative or does not fit in int32");
    check(compute_op_find(name.c_str(), static_cast<int32_t>(number), &op_));
  }
  /// Adds an elementwise op to those of this process: Op::define("acme.scale", "x y", "x * y * k", "k: float64 = 1!").
  /// `dtypes` is the class of dtypes that it takes.
  static Op define(const std::string& name, const std::string& inputs, const std::string& expression,
                   const std::string& attributes = "", const std::string& dtypes = "NUMERIC",
                   const std::string& summary = "", Integer version = 1) {
    compute_op_registration given = registration(name, inputs, attributes, summary, version);
    set(given.dtypes, given.dtypes_size, dtypes);
    set(given.expression, given.expression_size, expression);
    return registered(given);
  }
  /// Adds an op that runs other ops: Op::compose("acme.dense", "x w b", "z = matmul(x, w); y = add(z, b)").
  /// docs/expressions.md has the grammar. `outputs` are the names of the results.
  static Op compose(const std::string& name, const std::string& inputs, const std::string& composition,
                    const std::string& outputs = "", const std::string& attributes = "",
                    const std::string& summary = "", Integer version = 1) {
    compute_op_registration given = registration(name, inputs, attributes, summary, version);
    set(given.outputs, given.outputs_size, outputs);
    set(given.composition, given.composition_size, composition);
    return registered(given);
  }
  /// Adds an op that kernels of the program compute. `shapes` and `result_dtypes` say what its results are:
  /// Op::kernel("acme.double", "x", "y", {kernel}, "x", "x"). docs/kernels.md has the grammar.
  static Op kernel(const std::string& name, const std::string& inputs, const std::string& outputs,
                   const std::vector<OpKernel>& kernels, const std::string& shapes, const std::string& result_dtypes,
                   const std::string& attributes = "", const std::string& dtypes = "", const std::string& summary = "",
                   Integer version = 1) {
    compute_op_registration given = registration(name, inputs, attributes, summary, version);
    set(given.outputs, given.outputs_size, outputs);
    set(given.dtypes, given.dtypes_size, dtypes);
    set(given.shapes, given.shapes_size, shapes);
    set(given.result_dtypes, given.result_dtypes_size, result_dtypes);
    return registered(given, kernels);
  }
  /// As define, with kernels that are preferred to the expression.
  static Op define(const std::string& name, const std::string& inputs, const std::string& expression,
                   const std::vector<OpKernel>& kernels, const std::string& attributes = "",
                   const std::string& dtypes = "NUMERIC", const std::string& summary = "", Integer version = 1) {
    compute_op_registration given = registration(name, inputs, attributes, summary, version);
    set(given.dtypes, given.dtypes_size, dtypes);
    set(given.expression, given.expression_size, expression);
    return registered(given, kernels);
  }
  /// As compose, with kernels that are preferred to the composition.
  static Op compose(const std::string& name, const std::string& inputs, const std::string& composition,
                    const std::vector<OpKernel>& kernels, const std::string& outputs = "",
                    const std::string& attributes = "", const std::string& summary = "", Integer version = 1) {
    compute_op_registration given = registration(name, inputs, attributes, summary, version);
    set(given.outputs, given.outputs_size, outputs);
    set(given.composition, given.composition_size, composition);
    return registered(given, kernels);
  }
  /// Every op in the order of names.
  [[nodiscard]] static std::vector<OpInfo> list() {
    const auto infos = detail::list_of<compute_op_info>(compute_op_list);
    return std::vector<OpInfo>(infos.begin(), infos.end());
  }
  [[nodiscard]] OpInfo info() const {
    compute_op_info info{};
    info.struct_size = sizeof info;
    check(compute_op_get_info(op_, &info));
    return OpInfo(info);
  }
  [[nodiscard]] const compute_op* get() const noexcept { return op_; }

  /// Makes the op's result. An optional input that is left out is Tensor().
  [[nodiscard]] Tensor operator()(List<Tensor> inputs, List<Attribute> attributes = {},
                                  const Stream& stream = {}) const {
    detail::Handles in(inputs);
    const Attribute::Array given(attributes);
    compute_tensor* out = nullptr;
    check(compute_op_run(op_, stream.get(), given.data(), given.size(), in.data(), in.size(), &out, 1));
    return Tensor(out);
  }
  /// Makes all results of an op that has several.
  [[nodiscard]] std::vector<Tensor> run(List<Tensor> inputs, List<Attribute> attributes = {},
                                        const Stream& stream = {}) const {
    detail::Handles in(inputs);
    const Attribute::Array given(attributes);
    return detail::outputs_of(output_count(inputs.size()), [&](compute_tensor** out, int64_t count) {
      return compute_op_run(op_, stream.get(), given.data(), given.size(), in.data(), in.size(), out, count);
    });
  }
  [[nodiscard]] size_t output_count() const {
    const std::string_view names = info().outputs;
    return 1 + static_cast<size_t>(std::count(names.begin(), names.end(), ' '));
  }
  /// Of a call with so many inputs, which may be several groups.
  [[nodiscard]] size_t output_count(size_t input_count) const {
    const OpInfo schema = info();
    const std::string_view names = schema.inputs;
    const auto per_group = 1 + static_cast<size_t>(std::count(names.begin(), names.end(), ' '));
    return output_count() * (schema.groups ? std::max<size_t>(input_count / per_group, 1) : 1);
  }
  /// Writes into `outputs`.
  void into(List<Tensor> inputs, List<Tensor> outputs, List<Attribute> attributes = {},
            const Stream& stream = {}) const {
    detail::Handles in(inputs), out(outputs);
    detail::require_defined(out);
    const Attribute::Array given(attributes);
    check(compute_op_run(op_, stream.get(), given.data(), given.size(), in.data(), in.size(), out.data(), out.size()));
  }
  /// How `device` would run the op. Throws INVALID_ARGUMENT for what no device runs.
  /// `outputs` are those that are given, TensorSpec::left_out() for the others.
  [[nodiscard]] Support query(const Device& device, List<TensorSpec> inputs, List<Attribute> attributes = {},
                              List<TensorSpec> outputs = {}) const {
    const auto in = detail::raw_specs(inputs), out = detail::raw_specs(outputs);
    const Attribute::Array given(attributes);
    return detail::support_of([&](compute_support* answer) {
      return compute_op_query(device.get(), op_, given.data(), given.size(), in.data(), static_cast<int64_t>(in.size()),
                              out.data(), static_cast<int64_t>(out.size()), answer);
    });
  }

 private:
  explicit Op(const compute_op* op) noexcept : op_(op) {}
  static void set(const char*& data, int64_t& size, const std::string& text) {
    data = text.empty() ? nullptr : text.c_str();
    size = text.empty() ? 0 : static_cast<int64_t>(text.size());
  }
  // Refers to the strings.
  static compute_op_registration registration(const std::string& name, const std::string& inputs,
                                              const std::string& attributes, const std::string& summary,
                                              Integer version) {
    const int64_t number = version.value();
    if (number < 1 || number > std::numeric_limits<int32_t>::max())
      detail::throw_invalid(name + ": the version must be at least 1");
    compute_op_registration given{};
    given.struct_size = sizeof given;
    given.struct_type = COMPUTE_STRUCT_OP_REGISTRATION;
    set(given.name, given.name_size, name);
    set(given.summary, given.summary_size, summary);
    set(given.inputs, given.inputs_size, inputs);
    set(given.attributes, given.attributes_size, attributes);
    given.version = static_cast<int32_t>(number);
    return given;
  }
  static Op registered(compute_op_registration given, const std::vector<OpKernel>& kernels = {}) {
    std::vector<compute_op_kernel> list(kernels.size());
    for (size_t i = 0; i < list.size(); ++i) {
      const OpKernel& from = kernels[i];
      compute_op_kernel& to = list[i];
      to.struct_size = sizeof to;
      to.struct_type = COMPUTE_STRUCT_OP_KERNEL;
      set(to.language, to.language_size, from.language);
      set(to.source, to.source_size, from.source);
      set(to.name, to.name_size, from.name);
      set(to.compiler_options, to.compiler_options_size, from.compiler_options);
      set(to.items, to.items_size, from.items);
      set(to.values, to.values_size, from.values);
      std::copy(from.group_size.begin(), from.group_size.end(), to.group_size);
      to.flags = from.strided ? uint32_t{COMPUTE_OP_KERNEL_STRIDED} : 0u;
    }
    given.kernels = list.empty() ? nullptr : list.data();
    given.kernel_count = static_cast<int64_t>(list.size());
    const compute_op* op = nullptr;
    check(compute_op_register(&given, &op));
    return Op(op);
  }

  const compute_op* op_ = nullptr;
};

/// An op prepared on a device for the dtypes, shapes and strides of given operands and its static attributes.
///
/// Threads: any; several may run one plan.
class Plan : public Reference<compute_plan, compute_plan_retain, compute_plan_release> {
 public:
  using Reference::Reference;
  /// For operands like `inputs`, and the row-major outputs that the op makes.
  Plan(const Op& op, const Device& device, List<Tensor> inputs, List<Attribute> attributes = {})
      : Plan(op, device, inputs, std::vector<Tensor>(op.output_count(inputs.size())), attributes) {}
  /// For outputs like `outputs`.
  Plan(const Op& op, const Device& device, List<Tensor> inputs, List<Tensor> outputs, List<Attribute> attributes)
      : Reference(detail::made<compute_plan>([&](compute_plan** made) {
          detail::Handles in(inputs), out(outputs);
          const Attribute::Array given(attributes);
          return compute_plan_create(device.get(), op.get(), given.data(), given.size(), in.data(), in.size(),
                                     out.data(), out.size(), made);
        })) {}

  /// Runs the plan; the look-up is saved. `run_time` are values for run-time attributes, for this run only. Without
  /// them it allocates nothing on the heap besides the result.
  [[nodiscard]] Tensor operator()(List<Tensor> inputs, List<Attribute> run_time = {}, const Stream& stream = {}) const {
    detail::Handles in(inputs);
    const Attribute::Array given(run_time);
    compute_tensor* out = nullptr;
    check(compute_plan_run(get(), stream.get(), given.data(), given.size(), in.data(), in.size(), &out, 1));
    return Tensor(out);
  }
  /// Makes all results of an op that has several.
  [[nodiscard]] std::vector<Tensor> run(List<Tensor> inputs, size_t output_count, List<Attribute> run_time = {},
                                        const Stream& stream = {}) const {
    detail::Handles in(inputs);
    const Attribute::Array given(run_time);
    return detail::outputs_of(output_count, [&](compute_tensor** out, int64_t count) {
      return compute_plan_run(get(), stream.get(), given.data(), given.size(), in.data(), in.size(), out, count);
    });
  }
  /// Writes into `outputs`.
  void into(List<Tensor> inputs, List<Tensor> outputs, List<Attribute> run_time = {}, const Stream& stream = {}) const {
    detail::Handles in(inputs), out(outputs);
    detail::require_defined(out);
    const Attribute::Array given(run_time);
    check(compute_plan_run(get(), stream.get(), given.data(), given.size(), in.data(), in.size(), out.data(),
                           out.size()));
  }
};

/// The value of an expression's scalar: a number, which is weak like a literal, or Tensor::scalar or Tensor::slot.
class Scalar {
 public:
  template <class T>
  requires(IntegerType<T> || std::floating_point<T>) Scalar(T value)
      : number_(Number(value).get()) {}  // NOLINT: implicit on purpose
  template <std::floating_point T>
  Scalar(std::complex<T> value) : number_(Number(value).get()) {}  // NOLINT: implicit on purpose
  Scalar(Tensor value) : tensor_(std::move(value)) {               // NOLINT: implicit on purpose
    number_.kind = COMPUTE_KIND_SCALAR;
    number_.tensor = tensor_.get();
  }
  /// Valid as long as the scalar.
  [[nodiscard]] const compute_number& get() const noexcept { return number_; }

 private:
  Tensor tensor_;
  compute_number number_{};
};

namespace detail {

[[nodiscard]] inline std::vector<compute_number> raw_numbers(List<Scalar> scalars) {
  std::vector<compute_number> all;
  all.reserve(scalars.size());
  for (const Scalar& scalar : scalars) all.push_back(scalar.get());
  return all;
}

}  // namespace detail

/// An elementwise expression over named inputs, run in one pass: Expression("tanh(a*b + 1)", {"a", "b"})(x, y). Several
/// outputs are separated by semicolons. The language is in docs/expressions.md.
class Expression : public Reference<compute_expression, compute_expression_retain, compute_expression_release> {
 public:
  using Reference::Reference;
  Expression() = default;
  /// `scalars` are names of run-time numbers. A fault in `text` is INVALID_ARGUMENT with a caret.
  explicit Expression(const std::string& text, List<const char*> inputs = {}, List<const char*> scalars = {})
      : Reference(detail::made<compute_expression>([&](compute_expression** out) {
          return compute_expression_parse(text.c_str(), inputs.data(), static_cast<int64_t>(inputs.size()),
                                          scalars.data(), static_cast<int64_t>(scalars.size()), out);
        })) {}

  [[nodiscard]] int32_t input_count() const noexcept { return compute_expression_input_count(get()); }
  [[nodiscard]] int32_t scalar_count() const noexcept { return compute_expression_scalar_count(get()); }
  [[nodiscard]] int32_t output_count() const noexcept { return compute_expression_output_count(get()); }

  /// The gradients of a number L by these inputs, all if there is no list: an expression of the inputs, then of the
  /// gradients of L by the outputs, with the same scalars.
  [[nodiscard]] Expression gradient(List<int32_t> wanted = {}) const {
    return Expression(detail::made<compute_expression>([&](compute_expression** out) {
      return compute_expression_gradient(get(), wanted.size() == 0 ? nullptr : wanted.data(),
                                         static_cast<int64_t>(wanted.size()), out);
    }));
  }

  /// All outputs; `inputs` and `scalars` in the order of the names.
  [[nodiscard]] std::vector<Tensor> run(List<Tensor> inputs, List<Scalar> scalars = {},
                                        const Stream& stream = {}) const {
    detail::Handles in(inputs);
    const auto values = detail::raw_numbers(scalars);
    return detail::outputs_of(static_cast<size_t>(output_count()), [&](compute_tensor** out, int64_t count) {
      return compute_map(stream.get(), get(), in.data(), in.size(), values.data(), static_cast<int64_t>(values.size()),
                         out, count);
    });
  }
  /// Writes into `outputs`, which an expression without inputs needs.
  void into(List<Tensor> inputs, List<Scalar> scalars, List<Tensor> outputs, const Stream& stream = {}) const {
    detail::Handles in(inputs), out(outputs);
    const auto values = detail::raw_numbers(scalars);
    detail::require_defined(out);
    check(compute_map(stream.get(), get(), in.data(), in.size(), values.data(), static_cast<int64_t>(values.size()),
                      out.data(), out.size()));
  }
  /// The only output of an expression without scalars.
  template <std::convertible_to<Tensor>... Inputs>
  [[nodiscard]] Tensor operator()(const Inputs&... inputs) const {
    const std::array<Tensor, sizeof...(inputs)> all{Tensor(inputs)...};
    detail::Handles in(all);
    compute_tensor* out = nullptr;
    check(compute_map(nullptr, get(), in.data(), in.size(), nullptr, 0, &out, 1));
    return Tensor(out);
  }
  /// How `device` would run it. `outputs` are those that are given, TensorSpec::left_out() for the others.
  [[nodiscard]] Support query(const Device& device, List<TensorSpec> inputs, List<TensorSpec> scalars = {},
                              List<TensorSpec> outputs = {}) const {
    const auto in = detail::raw_specs(inputs), values = detail::raw_specs(scalars), out = detail::raw_specs(outputs);
    return detail::support_of([&](compute_support* answer) {
      return compute_map_query(device.get(), get(), in.data(), static_cast<int64_t>(in.size()), values.data(),
                               static_cast<int64_t>(values.size()), out.data(), static_cast<int64_t>(out.size()),
                               answer);
    });
  }
};

/// The only output of `expression`: map(affine, {x, y}, {2.0, 3}).
[[nodiscard]] inline Tensor map(const Expression& expression, List<Tensor> inputs, List<Scalar> scalars = {},
                                const Stream& stream = {}) {
  detail::Handles in(inputs);
  const auto values = detail::raw_numbers(scalars);
  compute_tensor* out = nullptr;
  check(compute_map(stream.get(), expression.get(), in.data(), in.size(), values.data(),
                    static_cast<int64_t>(values.size()), &out, 1));
  return Tensor(out);
}

/// How reduce combines. Not kept beyond the call.
struct ReduceOptions {
  Axes axes = all_axes;
  bool keepdims = false;
  DType accumulator = {};  ///< none: that of the op of the same name
  Expression after = {};   ///< of one input, the combined value; empty: that itself
};

namespace detail {

[[nodiscard]] inline compute_reduce_options raw_options(const ReduceOptions& options) {
  compute_reduce_options to{};
  to.struct_size = sizeof to;
  to.struct_type = COMPUTE_STRUCT_OP_OPTIONS;
  to.axes = options.axes.data();
  to.axes_count = options.axes.count();
  to.after = options.after.get();
  to.accumulator = options.accumulator.id();
  to.keepdims = options.keepdims ? 1 : 0;
  return to;
}

}  // namespace detail

/// Combines the values of `before` in one pass over `inputs`:
/// reduce(Expression("(a - b)**2", {"a", "b"}), Reduction::sum, {x, y}, {.axes = 0}). `scalars` holds those of
/// `before`, then those of options.after.
[[nodiscard]] inline Tensor reduce(const Expression& before, Reduction reduction, List<Tensor> inputs,
                                   const ReduceOptions& options = {}, List<Scalar> scalars = {},
                                   const Stream& stream = {}) {
  detail::Handles in(inputs);
  const auto values = detail::raw_numbers(scalars);
  const compute_reduce_options raw = detail::raw_options(options);
  compute_tensor* out = nullptr;
  check(compute_reduce(stream.get(), before.get(), static_cast<int32_t>(reduction), &raw, in.data(), in.size(),
                       values.data(), static_cast<int64_t>(values.size()), &out));
  return Tensor(out);
}
/// Writes into `output`.
inline void reduce_into(const Expression& before, Reduction reduction, List<Tensor> inputs, const Tensor& output,
                        const ReduceOptions& options = {}, List<Scalar> scalars = {}, const Stream& stream = {}) {
  if (!output.defined()) detail::throw_invalid("reduce_into: the output is an empty tensor");
  detail::Handles in(inputs);
  const auto values = detail::raw_numbers(scalars);
  const compute_reduce_options raw = detail::raw_options(options);
  compute_tensor* out = output.get();
  check(compute_reduce(stream.get(), before.get(), static_cast<int32_t>(reduction), &raw, in.data(), in.size(),
                       values.data(), static_cast<int64_t>(values.size()), &out));
}
/// How `device` would run reduce.
[[nodiscard]] inline Support reduce_query(const Device& device, const Expression& before, Reduction reduction,
                                          List<TensorSpec> inputs, const ReduceOptions& options = {},
                                          List<TensorSpec> scalars = {},
                                          const TensorSpec& output = TensorSpec::left_out()) {
  const auto in = detail::raw_specs(inputs), values = detail::raw_specs(scalars);
  const auto out = detail::raw_specs({output});
  const compute_reduce_options raw = detail::raw_options(options);
  return detail::support_of([&](compute_support* answer) {
    return compute_reduce_query(device.get(), before.get(), static_cast<int32_t>(reduction), &raw, in.data(),
                                static_cast<int64_t>(in.size()), values.data(), static_cast<int64_t>(values.size()),
                                out.data(), answer);
  });
}

}  // namespace compute

#endif  // COMPUTE_OP_HPP_
